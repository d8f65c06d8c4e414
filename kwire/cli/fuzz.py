"""``kwire fuzz``: input for other Kafka parsers, with the verdict of the protocol on each piece of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from kwire.cli.reading import Names

__all__ = ["register"]

EPILOG = """\
examples:
  kwire fuzz corpus --out corpus --api Fetch       valid and damaged frames as files, with a manifest
  kwire fuzz run --lines --cmd 'python adapter.py'   what a parser makes of them
"""

CORPUS_EPILOG = """\
examples:
  kwire fuzz corpus --out corpus                            every version of every API: some 60,000 files
  kwire fuzz corpus --out corpus --api Fetch --version 12
  kwire fuzz corpus --out corpus --api Fetch,Produce --kind one,null,cut

The reference page "Corpus" lists the kinds. manifest.jsonl says what each file is.
"""

RUN_EPILOG = """\
examples:
  kwire fuzz run --cmd './parser {}'                         a file; exit code 0 accepts, 1 refuses
  kwire fuzz run --cmd './parser --api {api_key} --version {version}'          standard input
  kwire fuzz run --lines --cmd 'python my_adapter.py' --junit out.xml --json out.json
  kwire fuzz run --lines --cmd 'python my_adapter.py' --api Fetch --kind cut   when one thing is mended

Start with --lines as soon as the parser has an adapter: it asks a thousand cases in a second, and compares values.
The guide on testing a parser says what an adapter reads and writes, and has one of 15 lines.
"""


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "fuzz",
        help="valid and damaged input for any Kafka parser",
        description="Tests other Kafka parsers.",
        epilog=EPILOG,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    corpus: argparse.ArgumentParser = commands.add_parser(
        "corpus",
        help="write valid and damaged frames, with a manifest",
        description="Writes frames into a folder: every layout by several shapes, and each kind of damage\n"
        "at every border of a field. A manifest says of each file what it is, what a parser has to\n"
        "make of it, and why.",
        epilog=CORPUS_EPILOG,
    )
    corpus.add_argument("--out", required=True, metavar="FOLDER", help="a new folder")
    _add_choice(corpus)
    corpus.set_defaults(run=run_corpus, parser=corpus)
    feed: argparse.ArgumentParser = commands.add_parser(
        "run",
        help="give the corpus to a parser, and report what it gets wrong",
        description="Gives the corpus to a program, and reports crashes, hangs, too much memory, and wrong\n"
        "verdicts. Of each kind the smallest case is made smaller. The exit code is 1 if anything\n"
        "is wrong.",
        epilog=RUN_EPILOG,
    )
    feed.add_argument(
        "--cmd",
        required=True,
        metavar="COMMAND",
        help="the parser; {} is a file with the frame, {role}, {api_key}, {version} and {body_at} what it is. Without "
        "{} the frame is on standard input",
    )
    feed.add_argument("--lines", action="store_true", help="the parser is started once, and answers lines")
    feed.add_argument(
        "--refused",
        action=Names,
        default=None,
        metavar="CODES",
        help="exit codes that refuse a frame (default: 1, which is that of a Python error too); any other but 0 is a "
        "crash",
    )
    feed.add_argument("--timeout", type=float, default=5.0, metavar="SECONDS", help="for each frame (default: 5)")
    feed.add_argument("--memory", type=int, default=1024, metavar="MIB", help="the parser may take (default: 1024)")
    feed.add_argument("--seconds", type=float, default=0, metavar="N", help="end after so long (default: never)")
    feed.add_argument(
        "--most",
        type=int,
        metavar="N",
        help="ask at most so many frames, spread over all (default: all with --lines, else 2000)",
    )
    feed.add_argument(
        "--role",
        choices=("request", "response", "records"),
        help="ask only about these: a parser of requests has no use for responses (default: all)",
    )
    feed.add_argument("--junit", metavar="FILE", help="write what came out as JUnit's XML")
    feed.add_argument("--json", metavar="FILE", help="write what came out as JSON")
    _add_choice(feed)
    feed.set_defaults(run=run_parser, parser=feed)


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


def run_parser(args: argparse.Namespace) -> int:
    """Asks a parser, and prints what is wrong. Returns 1 if anything is."""
    import os
    import sys

    from rich.console import Console
    from rich.progress import Progress

    from kwire.errors import KwireError
    from kwire.tables.showing import readable
    from kwire.testing import corpus, feeding, fuzz_reports

    if not hasattr(os, "killpg"):
        raise KwireError("kwire fuzz run needs Linux or macOS; kwire fuzz corpus writes the same cases anywhere")
    bounds = feeding.Bounds(args.timeout, args.memory << 20)
    codes = args.refused or ["1"]
    if not all(one.lstrip("-").isdecimal() for one in codes):
        raise KwireError(f"--refused takes exit codes such as 1,3, not {','.join(codes)!r}")
    if args.lines:
        parser: feeding.Lines | feeding.Once = feeding.Lines(args.cmd, bounds)
    else:
        parser = feeding.Once(args.cmd, bounds, [int(one) for one in codes])
    asked = [one for one in _chosen(args) if args.role in (None, one.role)]
    some = corpus.spread(asked, args.most or (0 if args.lines else 2000))
    try:
        with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
            task = bar.add_task("asking", total=len(some))
            outcome = feeding.run(parser, some, lambda done: bar.update(task, completed=done), args.seconds)
            bar.update(task, description="making them smaller")
            feeding.shrink(parser, outcome)
    finally:
        parser.close()
    for line in fuzz_reports.text(outcome):
        print(readable(line, None))
    for wanted, form in ((args.junit, fuzz_reports.junit), (args.json, fuzz_reports.as_json)):
        if wanted is not None:
            fuzz_reports.write(wanted, form(outcome))
    if not outcome.asked:
        raise KwireError("the parser was asked nothing, or skipped all: see --api, --role and --kind")
    return int(bool(outcome.groups))
