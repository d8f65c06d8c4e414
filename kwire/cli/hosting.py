"""What ``kwire broker`` and ``kwire proxy`` share: they run until a signal comes, and read scripts of faults."""

from __future__ import annotations

import argparse
import contextlib
import signal
from typing import TYPE_CHECKING, Final

from kwire.cli.reading import check_outputs
from kwire.cli.stderr import say
from kwire.naming import public
from kwire.opening import open_file, replaced

if TYPE_CHECKING:
    from kwire.testing.broker import Broker
    from kwire.testing.broker.script import Script
    from kwire.testing.proxy import Proxy

__all__ = ["add_arguments", "check_files", "read_script", "serve"]

_MOST_SCRIPT: Final = 1 << 20
_MOST_SAID: Final = 10
"""Errors of connections that are printed at the end."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that both commands have."""
    parser.add_argument("--script", metavar="FILE", help="topics and faults, as TOML")
    parser.add_argument("--pcapng", metavar="FILE", help="where to write what was said, as a capture")


def read_script(name: str | None) -> Script:
    """The script of a file; an empty one for None. Raises ``ValueError`` and ``OSError``."""
    from kwire.testing.broker.script import Script, read

    if name is None:
        return Script()
    with open_file(name) as file:
        data = file.read(_MOST_SCRIPT + 1)
    if len(data) > _MOST_SCRIPT:
        raise ValueError(f"{public(name)}: a script has at most {_MOST_SCRIPT} bytes")
    try:
        return read(data.decode())
    except ValueError as error:
        raise ValueError(f"{public(name)}: {error}") from None


def check_files(args: argparse.Namespace, *read: str | None) -> None:
    """Raises ``KwireError`` if the capture would replace a file that is read: the script, or one of ``read``."""
    check_outputs([one for one in (args.script, *read) if one], args.pcapng)


async def serve(hosted: Broker | Proxy, pcapng: str | None, seconds: float = 0) -> int:
    """Runs until SIGINT or SIGTERM comes, or for ``seconds``, and writes the capture then. Returns the exit code.

    Raises ``OSError`` where it cannot listen, or write.
    """
    # All commands import this module, and hardly any needs it.
    import asyncio

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    with contextlib.ExitStack() as stack:
        # Before anybody connects: what was said cannot be said again.
        target, mode = stack.enter_context(replaced(pcapng)) if pcapng else (None, "")
        file = stack.enter_context(target.open(mode + "b")) if target else None
        await hosted.start()
        print(hosted.bootstrap, flush=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), seconds or None)
        await hosted.stop()
        for error in dict.fromkeys(map(str, hosted.errors()[-_MOST_SAID:])):
            say(f"closed a connection: {error}")
        if file is not None:
            file.write(hosted.pcapng())
    return 0
