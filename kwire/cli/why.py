"""``kwire why``: what happened to a group, a transaction or a record, as one story in order of time."""

from __future__ import annotations

import argparse
import shutil
from typing import TYPE_CHECKING, Any

from kwire.cli import answers
from kwire.errors import needed
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

A name that is not there lists those that are.
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
    reader = answers.Reader(args)
    with needed("kwire why", "capture"):
        from kwire.cli.output import open_text
        from kwire.report import why
    story: Story
    if args.record is not None:
        story = why.Record.of(printable(args.record))
    elif args.transaction is not None:
        story = why.Transaction(name=printable(args.transaction))
    else:
        story = why.Group(name=printable(args.group))
    for name, batch in reader.batches(story.tables):
        story.add(name, batch)
    if not reader.read:
        return reader.code
    lines = story.result()
    said = [*story.headline(), *story.left_out()]
    if args.format == "table":
        frame = next((one.frame for one in lines if one.frame is not None), None)
        if frame is not None and len(reader.notes_of) == 1:
            said.append(f"A frame in full: kwire explain {public(next(iter(reader.notes_of)))} --frame {frame}")
        width = shutil.get_terminal_size((_WIDTH, 24)).columns if args.output is None else _WIDTH
        with open_text(args.output) as file:
            file.writelines(f"{one}\n" for one in (*why.text_of(lines, width), *said))
        return reader.code
    said, about = reader.summary(said), {"summary": story.headline()}
    answers.write(args, why.batch_of(lines), why.SHOWN, title="What happened", summary=said, about=about)
    return reader.code
