"""``kwire decode``: captures and log segments as tables, in the terminal, as JSON lines or as Parquet.

Files are read one after the other and batches are written as they come, so a capture of any size needs little memory.
A file that cannot be read, or not to its end, is reported in one line; the rows before it, and the other files, are
written all the same, and the exit code is 2.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from kwire.errors import CaptureError, KwireError, MissingExtraError

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.capture.tables import Table
    from kwire.cli.output import Output

__all__ = ["register"]

TABLES = ("frames", "messages", "records", "client_metrics", "batches")
CAPTURE_TABLES = ("frames", "messages", "records", "client_metrics")
MEANINGS = ("cloudevents", "hono")
FORMATS = ("table", "jsonl", "parquet")

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
"""File name endings of captures that are decompressed while they are read, and Arrow's name for the codec."""

EPILOG = """\
examples:
  kwire decode broker.pcap
  kwire decode broker.pcap --table records --format jsonl | jq .topic
  kwire decode *.pcap.gz --table messages --format parquet -o messages.parquet
  tcpdump -i any -w - port 9092 | kwire decode -
  kwire decode orders-0/00000000000000000000.log
  kwire decode __consumer_offsets-12/ --deep
"""


class Ports(argparse.Action):
    """``--port 9092``, ``--port 9092 9093``, ``--port 9092,9093``, or several of them.

    A capture may stand behind the ports: what is no number is taken as one more file.
    """

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Sorts ``values`` into ports and files."""
        for value in values:
            parts = value.split(",")
            if not all(part.isdecimal() for part in parts):
                namespace.more = [*namespace.more, value]
                continue
            if not all(0 < int(part) < 65536 for part in parts):
                raise argparse.ArgumentError(self, f"{value} is no port: ports are 1 to 65535")
            namespace.port = [*(namespace.port or ()), *map(int, parts)]


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "decode",
        help="captures and log segments as tables",
        description="Decodes captures (pcap, pcapng; also .gz, .bz2, .zst, .lz4) of Kafka traffic, and the log "
        "segments of brokers: .log files, and folders with them.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="a capture, - for standard input; a segment or a folder"
    )
    parser.add_argument(
        "--table", choices=TABLES, help="what a row is (default: frames of captures, records of segments)"
    )
    parser.add_argument("--as", dest="as_", choices=MEANINGS, help="records as events or messages (see docs/)")
    parser.add_argument("--format", choices=FORMATS, default="table", help="how rows are written (default: table)")
    parser.add_argument("-o", "--output", metavar="OUT", help="write to this file, not to standard output")
    parser.add_argument(
        "--port",
        action=Ports,
        nargs="+",
        metavar="N",
        help="ports of the brokers (default: found out from the traffic)",
    )
    parser.add_argument("--deep", action="store_true", help="decode the records of Kafka's own topics (segments)")
    parser.add_argument("--check-indexes", action="store_true", help="compare .index and .timeindex (segments)")
    parser.set_defaults(run=run, more=[], parser=parser)


def run(args: argparse.Namespace) -> int:
    """Decodes the files. Returns 0, or 2 where one of them could not be read to its end."""
    files = [*args.files, *args.more]
    if not files:
        args.parser.error("the following arguments are required: FILE")
    if args.format == "parquet" and args.output is None:
        args.parser.error("--format parquet needs -o OUT")
    segments = _segments(files)
    if segments:
        return _decode_segments(files, segments, args)
    if args.deep or args.check_indexes or args.table == "batches":
        args.parser.error("--deep, --check-indexes and --table batches are for log segments")
    if args.as_ is not None:
        if args.table not in (None, "records"):
            args.parser.error(f"--as {args.as_} reads records, not {args.table}")
        args.table = args.as_
    args.table = args.table or CAPTURE_TABLES[0]
    try:
        from kwire.cli.output import open_output

        schema, read = _table(args.table)
    except ModuleNotFoundError as missing:
        if missing.name in ("numpy", "pyarrow"):
            raise MissingExtraError("kwire decode", "capture") from None
        raise
    from kwire.cli import BAD_INPUT, report

    code = 0
    with open_output(args.format, args.output, args.table, schema) as output:
        for file in files:
            try:
                _decode(file, args, read, output)
            except BrokenPipeError:
                raise
            except (KwireError, OSError) as error:
                # What was decoded comes first, then what is wrong with the rest.
                output.flush()
                report(error, file)
                code = BAD_INPUT
    return code


def _segments(files: list[str]) -> list[str]:
    """Those of the files that are log segments, or folders with them."""
    try:
        from kwire.cli.segments import holds_segments

        return [file for file in files if file != "-" and holds_segments(file)]
    except ModuleNotFoundError as missing:
        if missing.name in ("numba", "numpy", "pyarrow"):
            raise MissingExtraError("kwire decode", "capture") from None
        raise


def _decode_segments(files: list[str], segments: list[str], args: argparse.Namespace) -> int:
    from kwire.cli import BAD_INPUT, report
    from kwire.cli import segments as tables
    from kwire.cli.output import open_output

    table = args.table or tables.TABLES[0]
    if table not in tables.TABLES or args.as_ is not None:
        args.parser.error(f"log segments have the tables {' and '.join(tables.TABLES)}")
    if len(segments) < len(files):
        other = next(file for file in files if file not in segments)
        args.parser.error(f"{other} is no log segment: decode captures and segments one after the other")
    code = 0
    shown = table if table == "batches" else "log_records_deep" if args.deep else "log_records"
    with open_output(args.format, args.output, shown, tables.schema(table, deep=args.deep)) as output:
        for file in files:
            try:
                with _progress(file, _bytes_below(file), output) as progress:
                    right = tables.decode(
                        file,
                        output.write,
                        lambda line: _say(line, output),
                        table=table,
                        deep=args.deep,
                        check_indexes=args.check_indexes,
                        progress=progress,
                    )
                code = code if right else BAD_INPUT
            except BrokenPipeError:
                raise
            except (KwireError, OSError) as error:
                output.flush()
                report(error, file)
                code = BAD_INPUT
    return code


def _say(line: str, output: Output) -> None:
    output.flush()
    print(f"kwire: {line}", file=sys.stderr)


def _bytes_below(path: str) -> int:
    """How many bytes of segments there are to read, for the progress bar."""
    root = Path(path)
    return sum(one.stat().st_size for one in root.rglob("*.log")) if root.is_dir() else root.stat().st_size


def _table(name: str) -> tuple[pa.Schema, Callable[..., Iterator[pa.RecordBatch]]]:
    """The schema of a table, and what reads it."""
    if name == "client_metrics":
        from kwire.events import telemetry

        return telemetry.CLIENT_METRICS, telemetry.read
    if name in MEANINGS:
        from kwire.cli import events

        return events.SCHEMAS[name], events.reader(name)
    from kwire.capture import read
    from kwire.capture.tables import SCHEMAS

    table = cast("Table", name)
    return SCHEMAS[table], functools.partial(read, table=table)


def _decode(file: str, args: argparse.Namespace, read: Callable[..., Iterator[pa.RecordBatch]], output: Output) -> None:
    name = "standard input" if file == "-" else file
    notes: list[str] = []
    rows = 0
    with _open(file) as (stream, size), _progress(name, size, output) as progress:
        for batch in read(stream, ports=args.port, name=name, progress=progress, on_note=notes.append):
            rows += batch.num_rows
            output.write(batch)
    if not rows and not _has_frames(file, args):
        raise CaptureError("; ".join(notes) or "no Kafka traffic", file=name)
    if notes:
        output.flush()
        for note in notes:
            print(f"kwire: {name}: note: {note}", file=sys.stderr)


def _has_frames(file: str, args: argparse.Namespace) -> bool:
    """Whether a capture without a row has frames all the same: there may be no records or metrics in them."""
    from kwire.capture import read

    if args.table in ("frames", "messages"):
        return False
    if file == "-":
        # Standard input is gone; nothing wrong is better than something wrong said.
        return True
    with _open(file) as (stream, _):
        return any(True for _ in read(stream, ports=args.port))


@contextlib.contextmanager
def _open(file: str) -> Iterator[tuple[IO[bytes], int | None]]:
    """The bytes of ``file``, and how many there are where that is known."""
    if file == "-":
        yield sys.stdin.buffer, None
        return
    import os

    with open(file, "rb") as raw:  # noqa: PTH123
        codec = next((codec for ending, codec in COMPRESSED.items() if file.endswith(ending)), None)
        if codec is None:
            yield raw, os.fstat(raw.fileno()).st_size
        else:
            import pyarrow as pa

            yield pa.CompressedInputStream(raw, codec), None


@contextlib.contextmanager
def _progress(name: str, size: int | None, output: Output) -> Iterator[Callable[[int], None] | None]:
    """Shows a bar while the block runs, where there is a terminal to show it on and no rows appear there.

    Gives what to call with the number of bytes read so far, or ``None``.
    """
    if output.to_terminal or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from kwire.cli.table import readable

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(readable(name)), total=size)
        yield lambda done: bar.update(task, completed=done)
