"""``kwire report``: what captures say, as a page of HTML that needs no network."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from typing import TYPE_CHECKING, Any, Final

from kwire.cli import answers
from kwire.cli.reading import add_options
from kwire.errors import KwireError, needed
from kwire.naming import public
from kwire.opening import open_file
from kwire.report import DEFAULT_TARGET

if TYPE_CHECKING:
    from kwire.report.findings import Thresholds

__all__ = ["register"]

EPILOG = """\
examples:
  kwire report broker.pcap -o report.html
  kwire report *.pcap.gz -o report.html --target 4.3
  kwire report broker.pcap -o report.html --values http://registry:8081
  kwire report today.pcap -o today.html --against yesterday.html
  tcpdump -w - port 9092 | kwire report - -o report.html

The guide on reports says what is on the page.
"""
_PAGE: Final = b"<!doctype html>"
_MOST_BYTES: Final = 256 << 20
"""Of a page that is given as an earlier report."""


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "report",
        help="what captures say, as a page with charts",
        description="Writes one page of HTML, which fetches nothing: traffic, latencies, topics, clients, batches, "
        "errors, gaps, versions, groups, transactions, the way of records, lineage, findings and the audit.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "--against", metavar="OTHER", help="an earlier report, or a capture: the page begins with what changed"
    )
    parser.add_argument(
        "--target",
        default=DEFAULT_TARGET,
        metavar="RELEASE",
        help="the release of the audit (default: %(default)s)",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=N", help="another threshold of findings; several"
    )
    add_options(parser, "schemas", "validate")
    answers.add_captures(parser)
    parser.set_defaults(run=run, command="report")


def run(args: argparse.Namespace) -> int:
    """Writes the report. Returns 0, or 2 if a capture could not be read to its end."""
    from kwire import versions

    versions.release_name(args.target)
    if args.output is None and sys.stdout.isatty():
        args.parser.error("a page is nothing for a terminal: it needs -o OUT or a pipe")
    reader = answers.Reader(args)
    with needed("kwire report", "capture"):
        from kwire.report import findings, page
    from kwire.cli.output import open_text

    try:
        thresholds = findings.Thresholds.of(args.set)
    except ValueError as wrong:
        raise KwireError(str(wrong)) from None
    against, code = (None, 0) if args.against is None else _figures(args, thresholds)
    over = _overview(args, reader, thresholds)
    if not reader.read:
        return reader.code
    captures = [page.Source(public(name), notes) for name, notes in reader.notes_of.items()]
    with open_text(args.output) as file:
        file.write(page.render(over, captures, against, public(args.against or "")))
    return reader.code or code


def _overview(args: argparse.Namespace, reader: answers.Reader, thresholds: Thresholds) -> Any:
    from kwire.report.overview import TABLES, WITH_VALUES, Overview

    over = Overview(args.target, thresholds, reader.schemas)
    for name, batch in reader.batches(TABLES if reader.schemas is None else WITH_VALUES):
        over.add(name, batch)
    over.finish()
    return over


def _figures(args: argparse.Namespace, thresholds: Thresholds) -> tuple[Any, int]:
    """The figures of what ``--against`` names, and the exit code. None: nothing could be read of a capture."""
    from kwire.report import changes, page

    if args.against == "-" or stat.S_ISFIFO(os.stat(args.against).st_mode):  # noqa: PTH116
        args.parser.error("--against is read twice: it has to be a file")
    with open_file(args.against) as file:
        if file.read(len(_PAGE)).lower() == _PAGE:
            text = _PAGE + file.read(_MOST_BYTES + 1)
            if len(text) > _MOST_BYTES:
                raise KwireError(f"{args.against}: no report of kwire is so large")
            return changes.figures_of_page(text.decode("utf-8", "replace"), args.against), 0
    reader = answers.Reader(args, [args.against])
    over = _overview(args, reader, thresholds)
    return page.figures(over) if reader.read else None, reader.code
