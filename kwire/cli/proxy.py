"""``kwire proxy``: a proxy in front of a Kafka cluster, with faults and a recorder."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kwire.cli.hosting import add_arguments, check_files, read_script, serve
from kwire.cli.stderr import BAD_INPUT, print_error, say
from kwire.naming import joined, public

if TYPE_CHECKING:
    from kwire.testing.proxy import Proxy

__all__ = ["register"]

EPILOG = """\
examples:
  kwire proxy --listen :19092 --upstream kafka:9092 --pcapng said.pcapng
  kwire proxy --upstream kafka:9093 --upstream-tls --script faults.toml

It prints its address when clients can connect. Ctrl-C or SIGTERM ends it.
"""


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "proxy",
        help="a proxy in front of a cluster: faults, and a recorder",
        description="Passes on what clients and a Kafka cluster say, with faults on demand. Addresses in responses are "
        "changed, so that clients stay behind it. Records plain bytes, also where both sides speak TLS.",
        epilog=EPILOG,
    )
    parser.add_argument("--upstream", required=True, metavar="HOST:PORT", help="a node of the cluster")
    parser.add_argument(
        "--listen",
        default=":0",
        metavar="[HOST]:PORT",
        help="where clients connect (default: a free port of 127.0.0.1)",
    )
    parser.add_argument("--certificate", metavar="FILE", help="speak TLS to clients, with this certificate")
    parser.add_argument("--key", metavar="FILE", help="its key, if that is in another file")
    parser.add_argument("--upstream-tls", action="store_true", help="speak TLS to the cluster")
    parser.add_argument("--upstream-ca", metavar="FILE", help="who has signed the certificate of the cluster")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="what chance is made of (default: 0)")
    add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the proxy until a signal comes. Returns 0, or 2 for arguments that cannot be used."""
    try:
        proxy = _made(args)
    except OSError as error:
        print_error(error, args.script)
        return BAD_INPUT
    except ValueError as error:
        say(str(error))
        return BAD_INPUT
    import asyncio

    return asyncio.run(serve(proxy, args.pcapng))


def _made(args: argparse.Namespace) -> Proxy:
    """Raises ``ValueError`` and ``OSError``."""
    import ssl

    from kwire.testing.proxy import Proxy

    check_files(args, args.certificate, args.key, args.upstream_ca)
    if args.key and not args.certificate:
        raise ValueError("--key needs --certificate: without one, the proxy speaks no TLS to clients")
    script = read_script(args.script)
    if script.topics:
        raise ValueError("a proxy makes no topics: those of the script are for kwire broker")
    host, _, port = args.listen.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"--listen {args.listen}: an address such as :19092")
    theirs, upstream = None, None
    if args.certificate:
        theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with _named(args.certificate, args.key):
            # A key with a password would ask for it on the terminal.
            theirs.load_cert_chain(args.certificate, args.key, lambda: "")
    if args.upstream_tls or args.upstream_ca:
        with _named(args.upstream_ca):
            upstream = ssl.create_default_context(cafile=args.upstream_ca)
    proxy = Proxy(
        args.upstream,
        host=host.strip("[]") or "127.0.0.1",
        port=int(port),
        tls=theirs,
        upstream_tls=upstream,
        seed=args.seed,
    )
    proxy.add_rules(script.rules)
    return proxy


@contextlib.contextmanager
def _named(*files: str | None) -> Iterator[None]:
    """Lets errors name the files, which those of ``ssl`` do not. Raises ``ValueError``."""
    import ssl

    names = joined(public(one) for one in files if one)
    try:
        yield
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).replace("_", " ").lower()
        raise ValueError(
            f"{names}: no certificate in PEM with its key, or one that cannot be used ({reason})"
        ) from None
    except OSError as error:
        raise ValueError(f"{names}: {error.strerror}") from None
