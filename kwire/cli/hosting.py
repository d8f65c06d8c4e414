"""What ``kwire broker`` and ``kwire proxy`` share: they run until a signal comes, and read scripts of faults."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING, Final

from kwire.cli.stderr import BAD_INPUT, print_error
from kwire.naming import public
from kwire.opening import open_file, replaced

if TYPE_CHECKING:
    from kwire.testing.broker import Broker
    from kwire.testing.broker.script import Script
    from kwire.testing.proxy import Proxy

__all__ = ["add_arguments", "read_script", "serve"]

_MOST_SCRIPT: Final = 1 << 20


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


async def serve(hosted: Broker | Proxy, pcapng: str | None, seconds: float = 0) -> int:
    """Runs until SIGINT or SIGTERM comes, or for ``seconds``, and writes the capture then. Returns the exit code."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    try:
        await hosted.start()
    except OSError as error:
        print_error(error)
        return BAD_INPUT
    print(hosted.bootstrap, flush=True)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(ended.wait(), seconds or None)
    await hosted.stop()
    if pcapng:
        with replaced(pcapng) as (target, mode), target.open(mode + "b") as file:
            file.write(hosted.pcapng())
    return 0
