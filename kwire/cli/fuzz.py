"""``kwire fuzz``: input for other Kafka parsers, with the verdict of the protocol on each piece of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from kwire.cli.reading import Names

__all__ = ["register"]

CORPUS_EPILOG = """\
examples:
  kwire fuzz corpus --out corpus                            every version of every API: some 60,000 files
  kwire fuzz corpus --out corpus --api Fetch --version 12
  kwire fuzz corpus --out corpus --api Fetch,Produce --kind one,null,cut

The kinds are listed in docs/reference/corpus.md. manifest.jsonl says what each file is.
"""


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "fuzz", help="valid and damaged input for any Kafka parser", description="Tests other Kafka parsers."
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    corpus: argparse.ArgumentParser = commands.add_parser(
        "corpus",
        help="write valid and damaged frames, with a manifest",
        description="Writes frames into a folder: every layout by several shapes, and each kind of damage at every "
        "border of a field. A manifest says of each file what it is, what a parser has to make of it, and why.",
        epilog=CORPUS_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    corpus.add_argument("--out", required=True, metavar="FOLDER", help="a new folder")
    _add_choice(corpus)
    corpus.set_defaults(run=run_corpus, parser=corpus)


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--api", action=Names, default=[], metavar="NAMES", help="only of these APIs (default: all)")
    parser.add_argument(
        "--version",
        action=Names,
        dest="versions",
        default=[],
        metavar="N",
        help="only these versions of each API (default: all)",
    )
    parser.add_argument(
        "--kind",
        action=Names,
        dest="kinds",
        default=[],
        metavar="NAMES",
        help="only these shapes and kinds of damage (default: all)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the values in messages (default: 0)")


def _chosen(args: argparse.Namespace) -> Any:
    """The cases that the arguments ask for."""
    from kwire.errors import KwireError
    from kwire.testing import corpus

    for one in args.versions:
        if not (one.isascii() and one.isdecimal()):
            raise KwireError(f"--version takes numbers, not {one!r}")
    versions = [int(one) for one in args.versions]
    try:
        corpus.check(args.api, args.kinds)
    except ValueError as error:
        raise KwireError(str(error)) from None
    return corpus.cases(args.api, args.kinds, versions=versions, seed=args.seed)


def run_corpus(args: argparse.Namespace) -> int:
    """Writes the corpus, and says how much it is. Returns 0."""
    from kwire.testing import corpus

    count = corpus.write(Path(args.out), _chosen(args))
    words = ", ".join(f"{number:,} {verdict}" for verdict, number in sorted(count.items()))
    print(f"{count.total():,} files and {corpus.MANIFEST}: {words or 'no case is like that'}")
    return 0
