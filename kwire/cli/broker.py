"""``kwire broker``: a mock broker for tests in any language."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from kwire.cli.hosting import add_arguments, check_files, read_script, serve
from kwire.cli.stderr import BAD_INPUT, print_error, say

if TYPE_CHECKING:
    from kwire.testing.broker import Broker

__all__ = ["register", "topics"]

_DIGITS: Final = 9
EPILOG = """\
examples:
  kwire broker --release 3.9 --topic orders:3
  kwire broker --port 9092 --nodes 3 --script faults.toml --pcapng said.pcapng

It prints the addresses of its nodes when clients can connect, in one line. Ctrl-C or SIGTERM ends it.
"""


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "broker",
        help="a mock broker, for tests of clients",
        description="Runs a Kafka broker in memory: any release, faults on demand, and everything that is said "
        "recorded.",
        epilog=EPILOG,
    )
    parser.add_argument("--release", help="the Kafka release, such as 2.8 (default: the newest)")
    parser.add_argument("--nodes", type=int, default=1, metavar="N", help="how many brokers there are (default: 1)")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, default=0, help="the port of the first broker, the others follow (default: free ones)"
    )
    parser.add_argument(
        "--topic", action="append", default=[], metavar="NAME:N", help="a topic with N partitions; several"
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the broker until a signal comes. Returns 0, or 2 for arguments that cannot be used."""
    try:
        check_files(args)
        broker = _made(args)
    except ValueError as error:
        say(str(error))
        return BAD_INPUT
    except OSError as error:
        print_error(error, args.script)
        return BAD_INPUT
    import asyncio

    return asyncio.run(serve(broker, args.pcapng))


def topics(named: list[str]) -> dict[str, int]:
    """What ``--topic`` says: names and numbers of partitions. Raises ``ValueError``."""
    found = {}
    for one in named:
        name, _, count = one.rpartition(":")
        if not name or not count.isdecimal() or len(count) > _DIGITS:
            raise ValueError(f"--topic {one}: a name and a number of partitions, such as orders:3")
        found[name] = int(count)
    return found


def _made(args: argparse.Namespace) -> Broker:
    """Raises ``ValueError``, ``OSError`` and ``KwireError``."""
    from kwire.testing.broker import Broker

    script = read_script(args.script)
    wanted = {**script.topics, **topics(args.topic)}
    if not 1 <= args.nodes <= 1000:
        raise ValueError(f"--nodes {args.nodes}: 1 to 1000 are possible")
    ports = range(args.port, args.port + args.nodes) if args.port else ()
    if not args.port >= 0 or (ports and ports[-1] > 65535):
        raise ValueError(f"--port {args.port}: ports are 1 to 65535")
    broker = Broker(release=args.release, nodes=args.nodes, host=args.host, ports=ports)
    for name, count in wanted.items():
        broker.create_topic(name, count)
    broker.add_rules(script.rules)
    return broker
