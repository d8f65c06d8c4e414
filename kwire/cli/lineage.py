"""``kwire lineage``: who writes and who reads each topic, as a table and as a graph."""

from __future__ import annotations

import argparse
from typing import Any

from kwire.cli import answers
from kwire.cli.reading import add_options
from kwire.errors import needed

__all__ = ["register"]

GRAPHS = ("dot", "mermaid")
EPILOG = """\
examples:
  kwire lineage broker.pcap
  kwire lineage *.pcap.gz --format dot | dot -Tsvg -o lineage.svg
  kwire lineage broker.pcap --format mermaid
  kwire lineage broker.pcap --values schemas/
"""


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "lineage",
        help="who writes and who reads each topic",
        description="Says of each topic which clients write it, read it (with their groups) or replicate it.",
        epilog=EPILOG,
    )
    add_options(parser, "schemas")
    answers.add_formats(parser, GRAPHS)
    parser.set_defaults(run=run, command="lineage")


def run(args: argparse.Namespace) -> int:
    """Reads the captures. Returns 0, or 2 if one could not be read to its end."""
    reader = answers.Reader(args)
    with needed("kwire lineage", "capture"):
        from kwire.report import lineage
    made = lineage.Lineage()
    tables = {**lineage.TABLES, **({"records": lineage.OF_VALUES} if reader.schemas is not None else {})}
    for name, batch in reader.batches(tables):
        made.add(name, batch)
    if not reader.read:
        return reader.code
    edges = made.result()
    if args.format in GRAPHS:
        from kwire.cli.output import open_text

        with open_text(args.output) as file:
            file.write(lineage.dot(edges) if args.format == "dot" else lineage.mermaid(edges))
        return reader.code
    said = reader.summary(lineage.summary(edges))
    answers.write(args, lineage.batch_of(edges), lineage.SHOWN, title="Lineage", summary=said, about={})
    return reader.code
