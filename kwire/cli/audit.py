"""``kwire audit``: which clients an upgrade of the brokers breaks. The exit code is 1 if one would."""

from __future__ import annotations

import argparse
from typing import Any, Final

from kwire.cli import answers
from kwire.errors import needed
from kwire.report import DEFAULT_TARGET

__all__ = ["register"]

BREAKS: Final = 1
"""The exit code where a client would break."""

EPILOG = """\
examples:
  kwire audit broker.pcap
  kwire audit *.pcap.gz --target 4.3 --format html -o audit.html
  kwire audit broker.pcap --format json | jq '.rows[] | select(.verdict == "breaks") | .client_ids'

The exit code is 0 where every client that was seen would work or cannot be judged, 1 where one would break, 2 for bad
input.
"""


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "audit",
        help="which clients break when the brokers are upgraded",
        description="Says of each client in captures whether brokers of a later release serve what it uses: APIs and "
        "their versions, and record formats.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "--target", default=DEFAULT_TARGET, metavar="RELEASE", help="a release of Kafka (default: %(default)s)"
    )
    answers.add_formats(parser)
    parser.set_defaults(run=run, command="audit")


def run(args: argparse.Namespace) -> int:
    """Audits the captures. Returns 0, 1 if a client would break, or 2 if one could not be read to its end."""
    from kwire import versions

    versions.release_name(args.target)
    reader = answers.Reader(args)
    with needed("kwire audit", "capture"):
        from kwire.report import audit
    found = audit.of_tables(reader.batches({"connections": audit.CONNECTIONS, "records": audit.RECORDS}), args.target)
    about = {"target": found.target, "counts": found.counts()}
    said = audit.summary(found)
    if not reader.read:
        return reader.code
    answers.write(args, found.batch(), audit.SHOWN, title=f"Upgrade to Kafka {found.target}", summary=said, about=about)
    return reader.code or (BREAKS if found.breaks else 0)
