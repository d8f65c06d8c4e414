"""``kwire findings``: what goes wrong in the traffic, with evidence."""

from __future__ import annotations

import argparse
from typing import Any

from kwire.cli import answers
from kwire.cli.reading import Names, add_options
from kwire.errors import KwireError, needed

__all__ = ["register"]

EPILOG = """\
examples:
  kwire findings broker.pcap
  kwire findings *.pcap.gz --format html -o findings.html
  kwire findings broker.pcap --rule lag,offsets-back --set lag=500
  kwire findings broker.pcap --topic orders,payments
  kwire findings broker.pcap --values http://registry:8081 --validate
  kwire findings broker.pcap --format jsonl | jq -r .evidence[].frame

Captures that were rotated are read as one: kwire explain broker.pcap* --frame N has the frames of all of them.
A wrong name after --rule or --set lists them all. The page on findings says what each rule finds.
"""


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "findings",
        help="what goes wrong in captures, with evidence",
        description="Looks for what clients do wrong and what they are told: who, how often, in which frames, and what "
        "to change.",
        epilog=EPILOG,
    )
    parser.add_argument("--rule", action=Names, metavar="NAMES", help="only these rules, separated by commas")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=N", help="another threshold, such as lag=500; several"
    )
    parser.add_argument(
        "--topic",
        action=Names,
        metavar="NAMES",
        dest="of_topics",
        help="only what is about these topics: findings without a topic are left out",
    )
    add_options(parser, "secrets", "schemas", "validate")
    answers.add_formats(parser)
    parser.set_defaults(run=run, command="findings")


def run(args: argparse.Namespace) -> int:
    """Looks for findings. Returns 0, or 2 if a capture could not be read to its end."""
    if "invalid-values" in (args.rule or ()) and not args.validate:
        args.parser.error("the rule invalid-values needs --values and --validate")
    reader = answers.Reader(args)
    with needed("kwire findings", "capture"):
        from kwire.report import findings
    try:
        thresholds = findings.Thresholds.of(args.set, args.rule)
        tables = findings.needed(args.rule, schemas=reader.schemas is not None)
        finder = findings.Finder(args.rule, thresholds, reader.schemas)
    except ValueError as wrong:
        raise KwireError(str(wrong)) from None
    for name, batch in reader.batches(tables):
        finder.add(name, batch)
    if not reader.read:
        return reader.code
    found = [one for one in finder.result() if args.of_topics is None or one.topic in args.of_topics]
    said = reader.summary(findings.summary(found))
    columns = findings.shown(len(reader.notes_of))
    answers.write(args, findings.batch_of(found), columns, title="Findings", summary=said, about={})
    return reader.code
