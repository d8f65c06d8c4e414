"""``kwire decode``: captures and log segments as tables, in the terminal, as JSON lines, CSV, Arrow or Parquet.

Files are read one after the other and batches are written as they come. So a capture of any size needs little memory.
If a file cannot be read, or not to its end, one line says so and the exit code is 2. The rows before the error, and the
other files, are written all the same.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kwire import tables
from kwire.cli.captures import captures
from kwire.cli.reading import (
    Names,
    add_options,
    add_output,
    check_outputs,
    flag_of,
    given,
    is_live,
    named_topics,
    opened,
    opened_keylog,
    progress_bar,
)
from kwire.errors import CaptureError, KwireError, needed
from kwire.naming import joined
from kwire.opening import below, is_regular
from kwire.options import CAPTURE, OF_SEGMENTS, OPTIONS, FilterOptions, check_tables, chosen

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.capture.account import Line
    from kwire.capture.parts import Part
    from kwire.capture.tracker import Tracker
    from kwire.cli.output import Output
    from kwire.log import Segment
    from kwire.tables.definition import Table
    from kwire.tables.showing import Column
    from kwire.tls import KeyLog

__all__ = ["decode", "register"]

TABLES = tuple(dict.fromkeys((*tables.names(tables.CAPTURE), *tables.names(tables.LOG))))
FORMATS = ("table", "jsonl", "csv", "arrow", "parquet")
ACCOUNTS = ("capture", "connections")

EPILOG = """\
examples:
  kwire decode broker.pcap
  kwire decode broker.pcap --table records --format jsonl | jq .topic
  kwire decode *.pcap.gz --table messages --format parquet -o messages.parquet
  kwire decode broker.pcap --table frames,records --format parquet -o '{table}.parquet'
  kwire decode broker.pcap --columns timestamp,client_id,api_name,latency_ms
  kwire decode broker.pcap --api Produce,Fetch                  requests and responses of some APIs
  kwire decode broker.pcap --api Produce --direction response   bodies of one API, of one direction
  tcpdump -i any -U -w - port 9092 | kwire decode -
  kwire decode rotated/ --across                                a folder of what tcpdump -C has written
  kwire decode -j 4 broker-*.pcap --table records --format parquet -o records.parquet
  kwire decode broker.pcap --keylog keys.log
  kwire decode broker.pcap --table partitions --api OffsetCommit --topic orders --since 2026-11-22T10:30
  kwire decode orders-0/00000000000000000000.log
  kwire decode __consumer_offsets-12/ --deep
"""


class Account(argparse.Action):
    """``--account``, ``--account connections``.

    A capture may follow it: any other word is one more file.
    """

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Takes the word, if it is one."""
        namespace.account = namespace.account or ACCOUNTS[0]
        if values in ACCOUNTS:
            namespace.account = values
        elif values is not None:
            namespace.more = [*namespace.more, values]


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "decode",
        help="captures and log segments as tables",
        description="Decodes captures (pcap, pcapng; also compressed) of Kafka traffic, and the log "
        "segments of brokers: files, and folders with them. Captures are read in order of their first packets.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="a capture or a segment, a folder with some, - for standard input"
    )
    parser.add_argument(
        "--table",
        action=Names,
        one_of=TABLES,
        metavar=f"{{{','.join(TABLES)}}}",
        help="what a row is (default: frames of captures, records of segments); several, separated by commas, in one "
        "pass, with {table} in -o",
    )
    parser.add_argument(
        "--columns",
        action=Names,
        each=True,
        metavar="NAMES",
        help="only these columns, in this order, separated by commas (a wrong name lists them)",
    )
    parser.add_argument(
        "--as",
        dest="as_",
        choices=tables.names(tables.EVENTS),
        help="records as events or messages (guides: CloudEvents, Hono)",
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="how rows are written (default: table)")
    add_output(parser)
    parser.add_argument(
        "--follow", action="store_true", help="go on when the end of a growing capture is reached (Ctrl-C ends it)"
    )
    parser.add_argument(
        "-j",
        "--jobs",
        type=_jobs,
        default=1,
        metavar="N",
        help="decode N captures or segments at once (default: 1; 0: as many as there are processors)",
    )
    parser.add_argument(
        "--across",
        action="store_true",
        help="the captures are one that was cut (tcpdump -C, -G): connections go on from each to the next",
    )
    parser.add_argument(
        "--partition",
        type=_partition,
        metavar="N",
        help="with --topic: the partition of a lone segment",
    )
    parser.add_argument("--deep", action="store_true", help="decode the records of Kafka's own topics (segments)")
    parser.add_argument("--check-indexes", action="store_true", help="compare .index and .timeindex (segments)")
    parser.add_argument(
        "--account",
        action=Account,
        nargs="?",
        metavar="connections",
        help="say in the end what became of each byte of the Kafka connections of a capture (connections: of each and "
        "its directions)",
    )
    add_options(parser)
    parser.set_defaults(run=run, more=[], parser=parser)


def _partition(text: str) -> int:
    if not text.isdecimal() or len(text) > 10 or int(text) >= 1 << 31:
        raise argparse.ArgumentTypeError(f"{text} is no number of a partition")
    return int(text)


def _jobs(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is no number of processes")
    return int(text) or os.cpu_count() or 1


def run(args: argparse.Namespace) -> int:
    """Decodes the files. Returns 0, or 2 if one of them could not be read to its end."""
    files = [*args.files, *args.more]
    if not files:
        args.parser.error("the following arguments are required: FILE")
    for file in files:
        if file in TABLES and not os.path.lexists(file):
            args.parser.error(f"there is no file {file}: --table {file} says what a row is")
    if args.format == "parquet" and args.output is None:
        args.parser.error("--format parquet needs -o OUT")
    if args.format == "arrow" and args.output is None and sys.stdout.isatty():
        args.parser.error("--format arrow is no text: it needs -o OUT or a pipe")
    segments = _segments(files)
    if not segments:
        files = captures(files)
    if args.output is not None:
        several = args.table if len(args.table or ()) > 1 else ["{table}"]
        check_outputs((*files, *(args.keylog or ())), *{args.output.replace("{table}", one) for one in several})
    if segments:
        for name in (*given(args), "account"):
            if name != "topics" and getattr(args, name) and (name not in OPTIONS or OPTIONS[name].form == CAPTURE):
                args.parser.error(f"{flag_of(name)} is for captures")
        for name in ("follow", "across"):
            if getattr(args, name):
                args.parser.error(f"{flag_of(name)} is for captures")
        if len(args.topics or ()) > 1:
            args.parser.error("--topic says of which topic segments are: one")
        if args.partition is not None and not args.topics:
            args.parser.error("--partition goes with --topic")
        return _decode_segments(files, segments, args)
    if args.partition is not None or args.deep or args.check_indexes:
        for file in files:
            if file != "-":
                os.stat(file)  # noqa: PTH116
    if args.partition is not None:
        args.parser.error("--partition is for log segments")
    if args.deep or args.check_indexes:
        args.parser.error("--deep and --check-indexes are for log segments")
    if args.jobs > 1 and (args.follow or "-" in files):
        args.parser.error("-j is for files that are there: not for --follow and standard input")
    if args.jobs > 1 and args.as_ == "hono":
        args.parser.error("-j is not for --as hono, which remembers devices from one file to the next")
    if args.across and (args.jobs > 1 or args.follow or "-" in files or args.account):
        args.parser.error("--across reads files one after the other as one: not with -j, --follow, --account or -")
    args.api = None
    if args.apis and len(args.apis) == 1 and args.table in (None, ["messages"]) and args.as_ is None:
        # The bodies of one API are structs.
        (args.api,), args.apis = args.apis, None
    if args.direction and not args.api:
        args.parser.error("--direction goes with the --api of messages")
    wanted = args.table or (["messages"] if args.api else [])
    if args.as_ is not None:
        if wanted not in ([], ["records"]):
            args.parser.error(f"--as {args.as_} reads records, not {', '.join(wanted)}")
        wanted = [args.as_]
    wanted = wanted or [tables.names(tables.CAPTURE)[0]]
    if len(wanted) > 1 and (args.output is None or "{table}" not in args.output):
        args.parser.error("several tables need -o OUT with {table} in its name")
    if len(wanted) > 1 and args.columns is not None:
        args.parser.error("--columns is for one table")
    with needed("kwire decode", "capture"):
        from kwire.capture.across import in_order
        from kwire.cli.output import open_output
        from kwire.tables.filters import Filter
        from kwire.tables.reading import chosen_table
    from kwire.cli.stderr import BAD_INPUT, print_error

    code = 0
    live = any(is_live(file, follow=args.follow) for file in files)
    _check_use(args, wanted)
    how = given(args)
    how["topic_ids"] = named_topics(args.topic_ids)
    _open_schemas(args, how)
    memory: dict[str, Any] = {}
    keys = opened_keylog(args.keylog, growing=live)
    try:
        args.only = Filter.of(**chosen(how, FilterOptions))
    except ValueError as wrong:
        args.parser.error(str(wrong))
    args.how = how | {"direction": _direction(args)}
    with contextlib.ExitStack() as stack:
        outputs: dict[str, Output] = {}
        schemas: dict[str, pa.Schema] = {}
        for name in wanted:
            path = args.output.replace("{table}", name) if len(wanted) > 1 else args.output
            try:
                table = chosen_table(name, args.api, _direction(args), payloads=args.payloads, how=how)
                args.only.check(table)
            except ValueError as wrong:
                args.parser.error(str(wrong))
            if args.across and table.of_one_file:
                args.parser.error(f"--across: the rows of {name} are of whole files, which cannot be put together")
            shown, schemas[name] = _chosen(table, args.columns)
            outputs[name] = stack.enter_context(open_output(args.format, path, shown, schemas[name], live=live))
        # What does not end has no end at which this could be said.
        if live:
            _tell(outputs, _other_half(args))
        if args.jobs > 1 and len(files) > 1:
            code = _decode_at_once(files, args, outputs, schemas)
            _tell(outputs, [] if code else _other_half(args))
            return code
        parts = in_order(range(len(files))) if args.across else ((None, None) for _ in files)
        for file, (part, ended) in zip(files, parts, strict=True):
            try:
                _tell(outputs, decode(file, args, outputs, memory if part is None else part.memory, keys, part, ended))
            except BrokenPipeError:
                raise
            except (KwireError, OSError) as error:
                # The decoded rows come first, then the error of the rest.
                for output in outputs.values():
                    output.flush()
                print_error(error, file)
                code = BAD_INPUT
        _tell(outputs, [] if code or live else _other_half(args))
    return code


def _open_schemas(args: argparse.Namespace, how: Any) -> None:
    """Opens ``--values``. What names none of the columns gets values as JSON. Raises ``KwireError``, ``OSError``."""
    if not args.schemas:
        for name in ("values", "mask", "validate"):
            if getattr(args, name):
                args.parser.error(f"{flag_of(name)} goes with {flag_of('schemas')}")
        return
    if args.values == "typed" and len(args.topics or ()) != 1:
        args.parser.error(
            f"{flag_of('values')} typed needs one topic, whose schema is the type: give {flag_of('topics')}"
        )
    from kwire.tables.reading import settled_values

    settled_values(how)
    if args.columns is None and args.values is None:
        how["values"] = "json"
    if args.jobs > 1 and how["schemas"] is not None:
        # Each process has schemas of its own: a registry is asked by one.
        how["schemas"] = how["schemas"].fetched(how.get("topics"))


def _other_half(args: argparse.Namespace) -> list[str]:
    """With ``--api`` of one API, and nothing said of a direction: that there is another one.

    Bodies are structs then, which the two do not share. With several APIs there are rows of both.
    """
    if not args.api or args.direction:
        return []
    return [
        f"note: these are the requests of {args.api}; --direction response gives its responses, "
        "--table frames both without their bodies"
    ]


def _check_use(args: argparse.Namespace, wanted: Sequence[str]) -> None:
    """Ends the program where an option is given that none of these tables has a use for."""
    try:
        check_tables(given(args), wanted, flag_of)
    except ValueError as wrong:
        args.parser.error(str(wrong))


def _decode_at_once(
    files: Sequence[str], args: argparse.Namespace, outputs: Mapping[str, Output], schemas: Mapping[str, pa.Schema]
) -> int:
    """``-j``: the same lines and exit code."""
    from kwire.cli.parallel import decoded
    from kwire.cli.stderr import BAD_INPUT

    code = 0
    plain = argparse.Namespace(**{name: value for name, value in vars(args).items() if name not in ("parser", "run")})
    tasks = [(file, file) for file in files]
    with contextlib.closing(decoded(tasks, args.jobs, partial(_capture, plain), schemas)) as outcomes:
        for outcome in outcomes:
            for table, batch in outcome.batches():
                outputs[table].write(batch)
            _tell(outputs, outcome.notes)
            if outcome.error is not None:
                _tell(outputs, [outcome.error])
                code = BAD_INPUT
    return code


def _capture(args: argparse.Namespace, file: str, outputs: Mapping[str, Output], say: Callable[[str], None]) -> bool:
    """A capture that a process decodes."""
    for line in decode(file, args, outputs, {}, opened_keylog(args.keylog, quiet=True)):
        say(line)
    return True


def _tell(outputs: Mapping[str, Output], lines: Sequence[str]) -> None:
    """Prints lines after the rows that were written."""
    from kwire.cli.stderr import say

    if lines:
        for output in outputs.values():
            output.flush()
    for line in lines:
        say(line)


def _direction(args: argparse.Namespace) -> str | None:
    """Which messages of ``--api`` are wanted."""
    return args.direction or "request" if args.api else None


def _chosen(table: Table, columns: Sequence[str] | None) -> tuple[Sequence[Column], pa.Schema]:
    """What is shown of a table, and the schema of its rows. Raises ``KwireError`` for columns that it has not."""
    from kwire.tables.showing import full

    try:
        schema = table.chosen(columns)
    except ValueError as wrong:
        raise KwireError(str(wrong)) from None
    return table.shown if columns is None else [full(field) for field in schema], schema


def _decode_segments_at_once(
    tasks: Sequence[tuple[str, Segment | str]],
    args: argparse.Namespace,
    name: str,
    output: Output,
    schema: pa.Schema,
    how: Mapping[str, Any],
) -> int:
    """``-j``: the same lines and exit code."""
    from kwire.cli.parallel import decoded
    from kwire.cli.stderr import BAD_INPUT

    code = 0
    over: str | None = None
    work = partial(_segment, name, args.deep, args.columns, how, args.check_indexes)
    with contextlib.closing(decoded(tasks, args.jobs, work, {name: schema})) as outcomes:
        for outcome in outcomes:
            if outcome.file == over:
                # Nothing is read of a folder after an error.
                continue
            over = None
            for _, batch in outcome.batches():
                output.write(batch)
            lines = outcome.notes
            if outcome.error is not None:
                lines = [*lines, outcome.error]
                over = outcome.file
            _tell({name: output}, lines)
            if outcome.error is not None or not outcome.right:
                code = BAD_INPUT
    return code


def _segment(
    name: str,
    deep: bool,
    columns: Sequence[str] | None,
    how: Mapping[str, Any],
    check_indexes: bool,
    segment: Segment | str,
    outputs: Mapping[str, Output],
    say: Callable[[str], None],
) -> bool:
    """A segment that a process decodes. A file that is none is read to report what is wrong with it."""
    from kwire.cli import segments as reading

    table = tables.table(name, tables.LOG)
    if deep and table.deep is not None:
        table = table.deep
    return reading.decode(
        segment,
        outputs[name].write,
        say,
        table=table,
        columns=columns,
        check_indexes=check_indexes,
        how=how,
    )


def _of_segments(args: argparse.Namespace) -> dict[str, Any]:
    """The options of reading log segments, and which segments these are."""
    topic = args.topics[0] if args.topics else None
    return {name: getattr(args, name) for name in OF_SEGMENTS} | {"topic": topic, "partition": args.partition}


def _segments(files: list[str]) -> list[str]:
    """Those of the files that are log segments, or folders with them."""
    with needed("kwire decode", "capture"):
        from kwire.cli.segments import holds_segments, what_else

        found = [file for file in files if file != "-" and holds_segments(file)]
        for file in files:
            if file not in found and (said := what_else(file)) is not None:
                raise CaptureError(said, file=file)
        return found


def _decode_segments(files: list[str], segments: list[str], args: argparse.Namespace) -> int:
    from kwire.cli import segments as reading
    from kwire.cli.output import open_output
    from kwire.cli.stderr import BAD_INPUT, print_error

    known = tables.names(tables.LOG)
    wanted = args.table or [known[0]]
    if not set(wanted) <= set(known) or args.as_ is not None:
        args.parser.error(f"log segments have the tables {joined(known)}")
    if len(wanted) > 1:
        args.parser.error("log segments are decoded as one table at a time")
    if len(segments) < len(files):
        other = next(file for file in files if file not in segments)
        args.parser.error(f"{other} is no log segment: decode captures and segments one after the other")
    code = 0
    _check_use(args, wanted)
    table = tables.table(wanted[0], tables.LOG)
    if args.deep and table.deep is not None:
        table = table.deep
    how = _of_segments(args)
    names = args.columns
    if args.schemas or args.values or args.mask or args.validate:
        how |= {"schemas": args.schemas, "mask": args.mask, "values": args.values, "validate": args.validate}
        _open_schemas(args, how)
        way = how.pop("values")
        del how["validate"]
        if way == "typed" or (way == "json" and names is None):
            from kwire.tables.values import as_json, typed

            table = as_json(table) if way == "json" else typed(table, args.topics[0], how["schemas"])
            names = table.schema.names if names is None else names
            if way == "typed":
                how["value_type"] = table.schema.field("value")
    shown, schema = _chosen(table, args.columns)
    args.columns = names
    with open_output(args.format, args.output, shown, schema) as output:
        if args.jobs > 1:
            tasks = [(file, segment) for file in files for segment in reading.segments(file)]
            if len(tasks) > 1:
                return _decode_segments_at_once(tasks, args, table.name, output, schema, how)
        for file in files:
            try:
                with progress_bar(file, _bytes_below(file), output) as progress:
                    right = reading.decode(
                        file,
                        output.write,
                        lambda line: _say(line, output),
                        table=table,
                        columns=names,
                        check_indexes=args.check_indexes,
                        progress=progress,
                        how=how,
                    )
                code = code if right else BAD_INPUT
            except BrokenPipeError:
                raise
            except (KwireError, OSError) as error:
                output.flush()
                print_error(error, file)
                code = BAD_INPUT
    return code


def _say(line: str, output: Output) -> None:
    from kwire.cli.stderr import say

    output.flush()
    say(line)


def _bytes_below(path: str) -> int:
    """How many bytes of segments there are to read, for the progress bar."""
    files = (one for one in below(path) if one.endswith(".log")) if os.path.isdir(path) else [path]  # noqa: PTH112
    return sum(os.path.getsize(one) for one in files if is_regular(one))  # noqa: PTH202


def decode(
    file: str,
    args: argparse.Namespace,
    outputs: Mapping[str, Output],
    memory: dict[str, Any],
    keys: KeyLog | None,
    part: Part | None = None,
    ended: Callable[[Tracker], None] | None = None,
) -> list[str]:
    """Decodes a capture, or a part of one that was cut (``kwire.capture.across.in_order``).

    Returns the notes about it. Raises ``KwireError``, ``OSError``.
    """
    from kwire.tables import reading

    name = "standard input" if file == "-" else file
    notes: list[str] = []
    lines: list[Line] = []
    read: list[Tracker] = []
    rows = 0
    wanted = dict.fromkeys(outputs, args.columns)
    live = is_live(file, follow=args.follow)

    def at_end(tracker: Tracker) -> None:
        read.append(tracker)
        if ended is not None:
            ended(tracker)

    with opened(file, follow=args.follow) as (stream, size), progress_bar(name, size, *outputs.values()) as progress:
        found = reading.read(
            stream,
            wanted,
            name=name,
            memory=memory,
            part=part,
            on_end=at_end,
            on_account=lines.extend if args.account else None,
            **args.how | {"live": live, "progress": progress, "on_note": notes.append, "keylog": keys},
        )
        for table, batch in found:
            rows += batch.num_rows
            outputs[table].write(batch)
            if live:
                outputs[table].flush()
    frames = read[0].n_frames
    if not rows and not frames:
        raise CaptureError("; ".join(notes) or "no Kafka traffic", file=name)
    said = [f"note: {note}" for note in notes]
    if not rows and (args.only or args.api):
        what = "the filters" if args.only else f"--api {args.api}"
        said.append(f"note: no row of {', '.join(outputs)} matches {what}; {frames:,} frames were looked at")
    if args.account:
        said += _accounts(lines, each=args.account == "connections") + [f"account: {one}" for one in read[0].left_out()]
    return [f"{name}: {text}" for text in said]


def _accounts(lines: Sequence[Line], *, each: bool) -> list[str]:
    """The lines about the account of a capture. ``each``: also of each connection and direction."""
    from kwire.capture.account import total

    count = len({line.connection for line in lines})
    connections = "1 Kafka connection" if count == 1 else f"{count:,} Kafka connections"
    return [*(f"account: {line}" for line in lines if each), f"account of {connections}: {total(lines)}"]
