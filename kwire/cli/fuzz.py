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
  kwire fuzz server --cmd './client {}'            what a client makes of damaged responses
  kwire fuzz tcp 127.0.0.1:9092                    what a server makes of damaged requests
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

SERVER_EPILOG = """\
examples:
  kwire fuzz server --cmd 'python client.py {}' --junit out.xml          each response that it gets, damaged
  kwire fuzz server --cmd './client {}' --api Fetch --kind batch-bomb --timeout 120
  kwire fuzz server --topic orders:3 --share 0.2 --seconds 60 --out cases   for clients that are started elsewhere

Let the client write, read and commit, and end with 0. Its timeouts must be shorter than --timeout.
"""

TCP_EPILOG = """\
examples:
  kwire fuzz tcp 127.0.0.1:9092 --most 5000
  kwire fuzz tcp 127.0.0.1:9092 --cmd './server --port 9092' --api Fetch,Produce --json out.json

It carries out what it asks, such as CreateTopics and DeleteTopics: give it a server that holds nothing of value.
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
    _add_bounds(feed, 5.0, "for each frame")
    _add_memory(feed)
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
    _add_reports(feed)
    _add_choice(feed)
    feed.set_defaults(run=run_parser, parser=feed)
    _add_server(commands)
    _add_tcp(commands)


def _add_server(commands: Any) -> None:
    server: argparse.ArgumentParser = commands.add_parser(
        "server",
        help="give damaged responses to a client, and report what goes wrong",
        description="Runs a client against a mock broker, again and again, each time with one response that is\n"
        "damaged. Reports crashes, hangs, too much memory, and that the client fails where it must\n"
        "accept what came. The exit code is 1 if anything is wrong. Without --cmd it is a broker\n"
        "that damages a share of its responses.",
        epilog=SERVER_EPILOG,
    )
    server.add_argument("--cmd", metavar="COMMAND", help="the client; {} is where the bootstrap servers go")
    server.add_argument("--release", help="the Kafka release of the broker, such as 2.8 (default: the newest)")
    server.add_argument(
        "--topic", action="append", default=[], metavar="NAME:N", help="a topic with N partitions; several"
    )
    server.add_argument(
        "--refused",
        action=Names,
        default=None,
        metavar="CODES",
        help="exit codes with which the client says that it failed (default: 1); any other but 0 is a crash",
    )
    _add_bounds(server, 60.0, "for each run of the client")
    _add_memory(server)
    server.add_argument(
        "--most", type=int, default=100, metavar="N", help="damage at most so many responses (default: 100)"
    )
    server.add_argument(
        "--share", type=float, default=0.1, metavar="N", help="without --cmd: of the responses (default: 0.1)"
    )
    server.add_argument("--host", default="127.0.0.1", help="without --cmd: the address to listen on")
    server.add_argument("--port", type=int, default=0, help="without --cmd: the port (default: a free one)")
    _add_anywhere(server)
    server.add_argument(
        "--out", metavar="FOLDER", help="write each damaged response into a new folder, with a manifest"
    )
    _add_reports(server)
    _add_kinds(server)
    server.set_defaults(run=run_server, parser=server)


def _add_tcp(commands: Any) -> None:
    tcp: argparse.ArgumentParser = commands.add_parser(
        "tcp",
        help="send damaged requests to a port, and report what goes wrong",
        description="Sends valid and damaged requests to a server. Reports that it crashes, hangs, answers with\n"
        "bytes that are no answer, refuses what it must accept, or accepts what it must refuse. The\n"
        "exit code is 1 if anything is wrong.",
        epilog=TCP_EPILOG,
    )
    tcp.add_argument("address", metavar="HOST:PORT", help="where the server listens")
    tcp.add_argument("--cmd", metavar="COMMAND", help="starts the server, and again where it has ended")
    _add_bounds(tcp, 5.0, "for each request")
    tcp.add_argument(
        "--most", type=int, default=2000, metavar="N", help="send at most so many requests (default: 2000)"
    )
    tcp.add_argument("--rate", type=float, default=200.0, metavar="N", help="requests a second (default: 200)")
    _add_anywhere(tcp)
    _add_reports(tcp)
    _add_choice(tcp)
    tcp.set_defaults(run=run_tcp, parser=tcp)


def _add_anywhere(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--anywhere", action="store_true", help="allow addresses that are not of this machine")


def _add_bounds(parser: argparse.ArgumentParser, timeout: float, what: str) -> None:
    parser.add_argument(
        "--timeout", type=float, default=timeout, metavar="SECONDS", help=f"{what} (default: {timeout:g})"
    )
    parser.add_argument("--seconds", type=float, default=0, metavar="N", help="end after so long (default: never)")


def _add_memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--memory", type=int, default=1024, metavar="MIB", help="it may take (default: 1024)")


def _add_reports(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--junit", metavar="FILE", help="write what came out as JUnit's XML")
    parser.add_argument("--json", metavar="FILE", help="write what came out as JSON")


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--version",
        action=Names,
        dest="versions",
        default=[],
        metavar="N",
        help="only these versions of each API (default: all)",
    )
    _add_kinds(parser)


def _add_kinds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--api", action=Names, default=[], metavar="NAMES", help="only of these APIs (default: all)")
    parser.add_argument(
        "--kind",
        action=Names,
        dest="kinds",
        default=[],
        metavar="NAMES",
        help="only these shapes and kinds of damage (default: all)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="what chance is made of (default: 0)")


def _chosen(args: argparse.Namespace, kinds: list[str] | None = None) -> Any:
    """The cases that the arguments ask for. ``kinds``: in place of those that they name."""
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
    return corpus.cases(args.api, args.kinds if kinds is None else kinds, versions=versions, seed=args.seed)


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

    from kwire.errors import KwireError
    from kwire.testing import corpus, feeding

    if not hasattr(os, "killpg"):
        raise KwireError("kwire fuzz run needs Linux or macOS; kwire fuzz corpus writes the same cases anywhere")
    bounds = feeding.Bounds(args.timeout, args.memory << 20)
    codes = _codes(args.refused)
    parser = feeding.Lines(args.cmd, bounds) if args.lines else feeding.Once(args.cmd, bounds, codes)
    asked = [one for one in _chosen(args) if args.role in (None, one.role)]
    some = corpus.spread(asked, args.most or (0 if args.lines else 2000))
    try:
        feeding.check_command(parser, some, _chosen(args, ["one"]))
        with _bar(len(some), "asking") as progress:
            outcome = feeding.run(parser, some, progress, args.seconds)
            feeding.shrink(parser, outcome)
    finally:
        parser.close()
    return _report(args, outcome, "the parser was asked nothing, or skipped all: see --api, --role and --kind")


def _codes(names: list[str] | None) -> list[int]:
    from kwire.errors import KwireError

    codes = names or ["1"]
    if not all(one.lstrip("-").isdecimal() for one in codes):
        raise KwireError(f"--refused takes exit codes such as 1,3, not {','.join(codes)!r}")
    return [int(one) for one in codes]


def _report(args: argparse.Namespace, outcome: Any, nothing: str) -> int:
    """Prints and writes what came out. Returns the exit code."""
    from kwire.errors import KwireError
    from kwire.tables.showing import readable
    from kwire.testing import fuzz_reports

    for line in fuzz_reports.text(outcome):
        print(readable(line, None))
    for wanted, form in ((args.junit, fuzz_reports.junit), (args.json, fuzz_reports.as_json)):
        if wanted is not None:
            fuzz_reports.write(wanted, form(outcome))
    if not outcome.asked:
        raise KwireError(nothing)
    return int(bool(outcome.groups))


def run_tcp(args: argparse.Namespace) -> int:
    """Asks a server, and prints what is wrong. Returns 1 if anything is."""
    from itertools import chain

    from kwire.errors import KwireError
    from kwire.testing import corpus, feeding, listening

    sizes = listening.SIZES in args.api
    args.api = [one for one in args.api if one != listening.SIZES]
    try:
        parser = listening.Listening(
            args.address,
            feeding.Bounds(args.timeout),
            command=args.cmd,
            rate=args.rate,
            anywhere=args.anywhere,
            control=bool(args.api),
        )
    except ValueError as error:
        raise KwireError(str(error)) from None
    try:
        # By default, all of them.
        some = _chosen(args) if args.api or not sizes else ()
        if sizes or not (args.api or args.kinds or args.versions):
            some = chain(listening.size_cases(), some)
        asked = corpus.spread([one for one in some if parser.serves(one)], args.most)
        with _bar(len(asked), "asking") as progress:
            outcome = feeding.run(parser, asked, progress, args.seconds)
        feeding.shrink(parser, outcome)
    finally:
        parser.close()
    return _report(args, outcome, "the server was asked nothing: it serves none of these, or may wait with all")


def run_server(args: argparse.Namespace) -> int:
    """Gives damaged responses to a client, and prints what is wrong. Returns 1 if anything is."""
    from kwire.cli.broker import topics
    from kwire.errors import KwireError
    from kwire.testing import corpus, feeding, hostile
    from kwire.testing.broker.faults import DAMAGES

    try:
        corpus.check(args.api, [one for one in args.kinds if one not in DAMAGES])
        if args.cmd is None:
            return _serve(args)
        clients = hostile.Clients(
            args.cmd,
            feeding.Bounds(args.timeout, args.memory << 20),
            _codes(args.refused),
            release=args.release,
            topics=topics(args.topic),
        )
    except ValueError as error:
        raise KwireError(str(error)) from None
    plans = clients.plans(args.api, args.kinds, args.seed)
    made: list[corpus.Case] = []
    with _bar(min(args.most, len(plans)) if args.most else len(plans), "running the client") as progress:
        outcome = hostile.run(clients, plans, most=args.most, seconds=args.seconds, progress=progress, keep=made.append)
    _write_cases(args.out, made)
    return _report(args, outcome, "no response was damaged: see --api and --kind")


def _write_cases(out: str | None, made: list[Any]) -> None:
    """Writes cases, numbered: two may be alike."""
    from dataclasses import replace

    from kwire.testing import corpus

    if out is not None:
        corpus.write(Path(out), (replace(one, name=f"{number:04}-{one.name}") for number, one in enumerate(made)))


def _bar(total: int, what: str) -> Any:
    """A bar of progress on a terminal: gives the function to which the number is said."""
    import sys
    from collections.abc import Callable, Iterator
    from contextlib import contextmanager

    from rich.console import Console
    from rich.progress import Progress

    @contextmanager
    def shown() -> Iterator[Callable[[int], None]]:
        with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.update(task, completed=done)

    return shown()


def _serve(args: argparse.Namespace) -> int:
    """A broker that damages a share of its responses, until a signal comes. Returns 0."""
    import asyncio
    from collections import Counter

    from kwire.cli.broker import topics
    from kwire.cli.hosting import serve
    from kwire.tables.showing import readable
    from kwire.testing.broker import Broker, Settings
    from kwire.testing.hostile import REACTIONS, kinds, reactions
    from kwire.testing.listening import is_local

    if not args.anywhere and not is_local(args.host):
        raise ValueError(f"{args.host} is not this machine; --anywhere lets others connect")
    ports = (args.port,) if args.port else ()
    broker = Broker(
        release=args.release,
        topics=topics(args.topic),
        host=args.host,
        ports=ports,
        settings=Settings(seed=args.seed),
    )
    for api in args.api or [None]:
        some = args.kinds or kinds("" if api is None else api)
        broker.on(api, share=args.share, times=args.most or None).damage(*some)
    code = asyncio.run(serve(broker, None, args.seconds))
    made = broker.cases()
    count: Counter[str] = Counter()
    for exchange, word in reactions(broker.exchanges()):
        one = exchange.damage
        assert one is not None
        where = f" at {one.path}" if one.path else ""
        who = exchange.client_id or "a client without a name"
        print(readable(f"{one.api} v{one.version} {one.damage}{where}: {one.verdict}, {who}: {word}", None))
        count[word] += 1
    said = ", ".join(f"{count[word]:,} {word}" for word in REACTIONS if count[word])
    print(f"{len(made):,} responses damaged{': ' if said else ''}{said}")
    _write_cases(args.out, made)
    return code
