"""What ``kwire audit``, ``findings``, ``lineage`` and ``report`` have in common: they read captures once, and give
an answer at the end, as a table, as JSON, as Parquet or as a page.

A file that cannot be read, or not to its end, is reported in one line and the exit code is 2; the answer is that of
what could be read.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kwire.cli.decode import Ports
from kwire.cli.reading import add_keylog, add_limits, check_outputs, opened, opened_keylog, progress_bar
from kwire.errors import CaptureError, KwireError, MissingExtraError

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.tables.showing import Column

__all__ = ["Reader", "add_captures", "add_options", "write"]

KAFKA: Final = ("ok", "encrypted")
"""What ``status`` of a connection says where it may be one of Kafka."""
FORMATS: Final = ("table", "json", "jsonl", "html", "parquet")


def add_options(parser: argparse.ArgumentParser, more: Sequence[str] = ()) -> None:
    """Adds the captures, how they are read, and how the answer is written; ``more``: further formats."""
    parser.add_argument(
        "--format", choices=(*FORMATS, *more), default="table", help="how it is written (default: table)"
    )
    add_captures(parser)


def add_captures(parser: argparse.ArgumentParser) -> None:
    """Adds the captures, how they are read, and ``-o``."""
    parser.add_argument("files", nargs="*", metavar="CAPTURE", help="a capture, - for standard input")
    parser.add_argument("-o", "--output", metavar="OUT", help="write to this file, not to standard output")
    for name, text in (
        ("--port", "ports of the brokers (default: found out from the traffic)"),
        ("--vxlan-port", "ports of UDP where VXLAN is spoken, besides 4789 and 8472"),
    ):
        parser.add_argument(name, action=Ports, nargs="+", metavar="N", help=text)
    add_keylog(parser)
    add_limits(parser)
    parser.set_defaults(more=[], parser=parser)


class Reader:
    """The captures of a command, read one after the other. ``code`` is 2 once one of them could not be read; ``read``:
    whether there was something in any of them to make an answer of; ``told``: what was said of each that was begun."""

    def __init__(self, args: argparse.Namespace, files: Sequence[str] | None = None) -> None:
        self._args = args
        self._files = [*args.files, *args.more] if files is None else list(files)
        self.code = 0
        self.read = False
        self.told: dict[str, list[str]] = {}
        if not self._files:
            args.parser.error("the following arguments are required: CAPTURE")
        if getattr(args, "format", None) == "parquet" and args.output is None:
            args.parser.error("--format parquet needs -o OUT")
        check_outputs((*self._files, *(args.keylog or ())), args.output)

    def batches(self, tables: Mapping[str, Sequence[str] | None]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows of some tables of all captures: a table's name, and a batch."""
        from kwire.cli import BAD_INPUT, report, worded

        keys = opened_keylog(self._args.keylog)
        memory: dict[str, Any] = {}
        for file in self._files:
            try:
                yield from self._of_file(file, tables, memory, keys)
            except BrokenPipeError:
                raise
            except (KwireError, OSError) as error:
                report(error, file)
                self.told.setdefault(file, []).append(worded(error, file))
                self.code = BAD_INPUT

    def _of_file(
        self, file: str, tables: Mapping[str, Sequence[str] | None], memory: dict[str, Any], keys: Any
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        from kwire.cli import say

        try:
            from kwire.tables import reading
        except ModuleNotFoundError as missing:
            if missing.name in ("numba", "numpy", "pyarrow"):
                raise MissingExtraError(f"kwire {self._args.command}", "capture") from None
            raise
        args = self._args
        name = "standard input" if file == "-" else file
        notes = self.told.setdefault(file, [])
        there = False
        # There may be Kafka in it, and no row of the tables that are wanted.
        asked = {"connections": ("status",), **tables}
        with opened(file) as (stream, size), progress_bar(name, size) as progress:
            for table, batch in reading.read(
                stream,
                asked,
                ports=args.port,
                vxlan_ports=args.vxlan_port,
                name=name,
                progress=progress,
                on_note=notes.append,
                memory=memory,
                limits=args.limits,
                secrets=getattr(args, "secrets", False),
                keys=keys,
            ):
                if table == "connections":
                    there = there or any(word in KAFKA for word in batch.column("status").to_pylist())
                    # Before a capture that is damaged says so.
                    self.read = self.read or there
                if table in tables:
                    yield table, batch
        if not there:
            raise CaptureError("; ".join(notes) or "no Kafka traffic", file=name)
        for note in notes:
            say(f"{name}: note: {note}")


def write(
    args: argparse.Namespace,
    batch: pa.RecordBatch,
    shown: Sequence[Column],
    *,
    title: str,
    summary: Sequence[str],
    about: Mapping[str, Any],
) -> None:
    """Writes an answer: its rows, and in JSON and on a page what it says as a whole (``about``, ``summary``)."""
    from kwire.cli.output import open_output, open_text, rows_of

    if args.format in ("json", "html"):
        with open_text(args.output) as file:
            if args.format == "json":
                whole = {**about, "rows": list(rows_of(batch))}
                # ASCII alone: what a terminal may obey is escaped.
                file.write(json.dumps(whole, indent=1) + "\n")
            else:
                from kwire.report.pages import page

                file.write(page(title, summary, shown, rows_of(batch)))
        return
    with open_output(args.format, args.output, shown, batch.schema) as output:
        output.write(batch)
        output.flush()
    if args.format == "table" and args.output is None:
        for line in summary:
            print(line)
