"""What ``kwire audit``, ``findings``, ``lineage``, ``report`` and ``why`` have in common.

They read captures once, and give an answer at the end, as a table, as JSON, as Parquet or as a page.

A file that cannot be read, or not to its end, is reported in one line, and the exit code is 2. The answer is that of
the bytes that could be read.

They are read in order of time (``kwire.cli.captures``), and the next capture knows the names of topics by their ids
from those before. Captures that were rotated are one: connections and all that is counted go on from file to file. The
first of them stands for all, and frames are numbered through.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kwire.cli.captures import Files, captures, shown_name
from kwire.cli.reading import (
    add_options,
    add_output,
    check_outputs,
    given,
    named_topics,
    opened_keylog,
)
from kwire.errors import CaptureError, KwireError, needed
from kwire.report import KAFKA

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.tables.showing import Column
    from kwire.values import Schemas

__all__ = ["Reader", "add_captures", "add_formats", "write"]

_DIRECTIONS: Final = ("requests", "responses")
FORMATS: Final = ("table", "json", "jsonl", "html", "parquet")
_M_MMAP_THRESHOLD: Final = -3
"""The parameter of mallopt(3)."""
_LARGE: Final = 1 << 20
"""Bytes from which on a buffer has pages of its own."""


def add_formats(parser: argparse.ArgumentParser, more: Sequence[str] = ()) -> None:
    """Adds the captures, how they are read, and how the answer is written. ``more``: further formats."""
    parser.add_argument(
        "--format", choices=(*FORMATS, *more), default="table", help="how it is written (default: table)"
    )
    add_captures(parser)


def add_captures(parser: argparse.ArgumentParser) -> None:
    """Adds the captures, how they are read, and ``-o``."""
    parser.add_argument(
        "files", nargs="*", metavar="CAPTURE", help="a capture, a folder with captures, - for standard input"
    )
    add_output(parser)
    add_options(parser, "ports", "vxlan_ports", "keylog", "topic_ids", "limits")
    parser.set_defaults(more=[], parser=parser)


def _give_back_large_buffers() -> None:
    """Lets the C library return each large buffer to the system when it is freed, if it is glibc.

    An answer keeps small things that are made while large buffers come and go. In one heap these lie between them, and
    the heap cannot shrink: a report on a hostile capture took 15 % more memory.
    """
    if sys.platform != "linux" or "MALLOC_MMAP_THRESHOLD_" in os.environ:
        return
    import ctypes

    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)


class Reader:
    """The captures of a command, read one after the other, each with those that go on with it.

    - ``code`` is 2 once one of them could not be read.
    - ``read``: whether any of them had something to make an answer of.
    - ``notes_of``: what was said of each that was begun.
    - ``schemas``: where the schemas of values come from (``--values``). None: values are bytes.
    """

    def __init__(self, args: argparse.Namespace, files: Sequence[str] | None = None) -> None:
        self._args = args
        self._files = captures([*args.files, *args.more] if files is None else files)
        self.code: int = 0
        self.encrypted: int = 0
        self.read: bool = False
        self.notes_of: dict[str, list[str]] = {}
        self.schemas: Schemas | None = None
        if not self._files:
            args.parser.error("the following arguments are required: CAPTURE")
        if getattr(args, "format", None) == "parquet" and args.output is None:
            args.parser.error("--format parquet needs -o OUT")
        check_outputs((*self._files, *(args.keylog or ())), args.output)
        _give_back_large_buffers()
        if getattr(args, "schemas", None) is not None:
            with needed(f"kwire {args.command} --values", "capture"):
                from kwire.values.sources import Schemas
            self.schemas = Schemas.of(args.schemas)
            if getattr(args, "validate", False):
                self.schemas = self.schemas.validated()
        elif getattr(args, "validate", False):
            args.parser.error("--validate goes with --values")

    def batches(self, tables: Mapping[str, Sequence[str] | None]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows of some tables of all captures: a table's name, and a batch."""
        how: dict[str, Any] = {
            "memory": {},
            "learnt": named_topics(self._args.topic_ids),
            **given(self._args),
            "keylog": opened_keylog(self._args.keylog),
            "topic_ids": None,
            "schemas": self.schemas if "records" in tables else None,
            "dictionaries": True,
        }
        files = deque(self._files)
        while files:
            file = files.popleft()
            try:
                yield from self._of_files(file, files, tables, how)
            except BrokenPipeError:
                raise
            except (KwireError, OSError) as error:
                self._say(error, file)

    def _say(self, error: KwireError | OSError, file: str) -> None:
        from kwire.cli.stderr import BAD_INPUT, print_error, worded

        print_error(error, file)
        self.notes_of.setdefault(file, []).append(worded(error, file))
        self.code = BAD_INPUT

    def _of_files(
        self, file: str, more: deque[str], tables: Mapping[str, Sequence[str] | None], how: dict[str, Any]
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows of a capture, and of those of ``more`` that go on with it, which are taken from there."""
        from kwire.cli.stderr import say

        with needed(f"kwire {self._args.command}", "capture"):
            from kwire.tables import reading
        name = shown_name(file)
        notes = self.notes_of.setdefault(file, [])
        there = False
        encrypted = 0
        directions: Counter[str] = Counter()
        # There may be Kafka in it, and no row of the tables that are wanted.
        known = ("status", *_DIRECTIONS)
        asked = {**tables, "connections": list(dict.fromkeys((*(tables.get("connections") or ()), *known)))}
        with Files(self._say, file, more) as files:
            for table, batch in reading.read(
                files.source,
                asked,
                name=name,
                **how | {"progress": files.progress, "on_note": notes.append},
            ):
                if table == "connections":
                    words = batch.column("status").to_pylist()
                    encrypted += words.count("encrypted")
                    there = there or any(word in KAFKA for word in words)
                    for direction in _DIRECTIONS:
                        directions[direction] += sum(batch.column(direction).to_pylist())
                    # Before a capture that is damaged says so.
                    self.read = self.read or there
                if table in tables:
                    yield table, batch
        for one in files.later:
            self.notes_of.setdefault(one, [])
        if not there:
            if files.wrong:
                return
            raise CaptureError("; ".join(notes) or "no Kafka traffic", file=name)
        self.encrypted += encrypted
        if encrypted:
            notes.append(f"{encrypted:,} connections over TLS were not decrypted")
        for direction, other in (_DIRECTIONS, _DIRECTIONS[::-1]):
            if directions[direction] and not directions[other]:
                notes.append(f"there are {direction} and no {other}: what needs both is not found")
        for note in notes:
            say(f"{name}: note: {note}")

    def summary(self, said: Sequence[str]) -> list[str]:
        """What an answer says together, and on a page, which is shown to others, what it cannot be about."""
        if not self.encrypted or self._args.format != "html":
            return [*said]
        return [*said, f"{self.encrypted:,} connections over TLS were not decrypted: nothing is known of them."]


def _as_json(about: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """``about`` with its ``rows``, which may be many, in ASCII alone: what a terminal may obey is escaped."""
    head, tail = json.dumps({**about, "rows": [None]}, indent=1).rsplit("null", 1)
    begin = head.removesuffix("\n  ")
    for row in rows:
        yield begin + "\n  " + json.dumps(row, indent=1).replace("\n", "\n  ")
        begin = ","
    if begin != ",":
        yield json.dumps({**about, "rows": []}, indent=1) + "\n"
    else:
        yield tail + "\n"


def write(
    args: argparse.Namespace,
    batch: pa.RecordBatch,
    shown: Sequence[Column],
    *,
    title: str,
    summary: Sequence[str],
    about: Mapping[str, Any],
) -> None:
    """Writes an answer: its rows. In JSON and on a page also what it says as a whole (``about``, ``summary``)."""
    from kwire.cli.output import open_output, open_text
    from kwire.tables.terminal import rows_of

    if args.format in ("json", "html"):
        with open_text(args.output) as file:
            if args.format == "json":
                for text in _as_json(about, rows_of(batch)):
                    file.write(text)
            else:
                from kwire.report.html import page

                file.write(page(title, summary, shown, rows_of(batch)))
        return
    with open_output(args.format, args.output, shown, batch.schema) as output:
        output.write(batch)
        output.flush()
    if args.format == "table" and args.output is None:
        for line in summary:
            print(line)
