"""``kwire why``: what happened to a group, a transaction or a record, as one story in order of time."""

from __future__ import annotations

import argparse
import shutil
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from kwire.cli import answers
from kwire.cli.captures import captures
from kwire.cli.reading import check_outputs, given, named_topics, opened, opened_keylog
from kwire.errors import KwireError, needed
from kwire.naming import public
from kwire.wire import printable

if TYPE_CHECKING:
    from kwire.report.why import Story

__all__ = ["register"]

_WIDTH = 120
"""Characters of a line that goes to a file or a pipe."""
EPILOG = """\
examples:
  kwire why --transaction orders-7 broker.pcap
  kwire why --record orders:3:1500 broker.pcap
  kwire why --group billing *.pcap.gz --format json

Captures are read as one, in order of their first packets. A line names the frame that shows it:
  kwire explain broker.pcap --frame 12
Of several captures, give explain all of them.
"""


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "why",
        help="what happened to a group, a transaction or a record",
        description="Tells one story in order of time: what happened, who did it, and the frame that shows it.",
        epilog=EPILOG,
    )
    subject = parser.add_mutually_exclusive_group(required=True)
    subject.add_argument("--group", metavar="G", help="a group: its members, and why it rebalanced")
    subject.add_argument("--transaction", metavar="T", help="the transactions of a transactional id")
    subject.add_argument("--record", metavar="TOPIC:PARTITION:OFFSET", help="who wrote a record, and who got it")
    answers.add_formats(parser)
    parser.set_defaults(run=run, command="why")


def run(args: argparse.Namespace) -> int:
    """Tells the story. Returns 0, or 2 if a capture could not be read to its end."""
    files = captures([*args.files, *args.more])
    if not files:
        args.parser.error("the following arguments are required: CAPTURE")
    if args.format == "parquet" and args.output is None:
        args.parser.error("--format parquet needs -o OUT")
    check_outputs((*files, *(args.keylog or ())), args.output)
    with needed("kwire why", "capture"):
        from kwire.report import why
    story: Story
    if args.record is not None:
        story = why.Record.of(printable(args.record))
    elif args.transaction is not None:
        story = why.Transaction(name=printable(args.transaction))
    else:
        story = why.Group(name=printable(args.group))
    code = _read(args, files, story)
    lines = story.result()
    said = [*story.headline(), *story.left_out()]
    if lines and args.format == "table" and len(files) == 1:
        frame = next((one.frame for one in lines if one.frame is not None), None)
        said += [f"A frame in full: kwire explain {public(files[0])} --frame {frame}"] if frame is not None else []
    if args.format == "table":
        from kwire.cli.output import open_text

        width = shutil.get_terminal_size((_WIDTH, 24)).columns if args.output is None else _WIDTH
        with open_text(args.output) as file:
            file.writelines(f"{one}\n" for one in (*why.text_of(lines, width), *said))
        return code
    batch = why.batch_of(lines)
    answers.write(args, batch, why.SHOWN, title="What happened", summary=said, about={"summary": story.headline()})
    return code


def _read(args: argparse.Namespace, files: list[str], story: Story) -> int:
    """Reads the captures as one. Returns 0, or 2 for a capture that could not be read to its end."""
    from kwire.cli.stderr import BAD_INPUT, print_error, say
    from kwire.tables import reading

    how: dict[str, Any] = {
        **given(args),
        "keylog": opened_keylog(args.keylog),
        "topic_ids": named_topics(args.topic_ids) or None,
        "on_note": lambda note: say(f"note: {note}"),
    }
    names = ["standard input" if file == "-" else file for file in files]
    with ExitStack() as stack:
        try:
            sources = [stack.enter_context(opened(file))[0] for file in files]
            if len(sources) == 1:
                found = reading.read(sources[0], story.tables, name=names[0], **how)
            else:
                found = reading.read_in_order(sources, story.tables, files, **how)
            for name, batch in found:
                story.add(name, batch)
        except BrokenPipeError:
            raise
        except (KwireError, OSError) as error:
            print_error(error, names[0])
            return BAD_INPUT
    return 0
