"""How commands read files: opened, decompressed while they are read, with a bar that shows how far they are; and the
options of reading that several commands have."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

from kwire.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from kwire.cli.output import Output
    from kwire.tls import KeyLog

__all__ = ["COMPRESSED", "add_keylog", "add_limits", "add_secrets", "opened", "opened_keylog", "progress_bar"]

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
"""File name endings of captures that are decompressed while they are read, and Arrow's name for the codec."""


class Secrets(argparse.Action):
    """``--secrets redact`` or ``--secrets show``: whether they are shown."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Sets a bool."""
        setattr(namespace, self.dest, values == "show")


def add_secrets(parser: argparse.ArgumentParser) -> None:
    """Adds ``--secrets``; ``secrets`` is then a bool."""
    parser.add_argument(
        "--secrets",
        action=Secrets,
        choices=("redact", "show"),
        default=False,
        help="passwords, tokens and the like: their size alone, or as they are (default: redact)",
    )


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Adds ``--limits``; ``limits`` is then ``Limits``."""
    parser.add_argument(
        "--limits",
        type=_limits,
        default=DEFAULT_LIMITS,
        metavar="NAME=N,...",
        help="what reading may use, such as decompressed=64MiB (see docs/cli.md)",
    )


def _limits(text: str) -> Limits:
    try:
        return Limits.parse(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None


def add_keylog(parser: argparse.ArgumentParser) -> None:
    """Adds ``--keylog``; ``keylog`` is then a list of paths, or None."""
    parser.add_argument(
        "--keylog",
        action="append",
        metavar="FILE",
        help="a key log (SSLKEYLOGFILE) with the secrets of connections that speak TLS; several are possible",
    )


def opened_keylog(paths: Sequence[str] | None, *, growing: bool = False) -> KeyLog | None:
    """The secrets of ``--keylog``, and a line on standard error where there are none. ``growing``: more may come, as
    from programs that run. Raises ``OSError``."""
    if not paths:
        return None
    from kwire.cli import say
    from kwire.tls import KeyLog

    keys = KeyLog.open(*paths, growing=growing)
    if not len(keys) and not growing:
        wrong = f": none of {keys.damaged} lines can be read" if keys.damaged else ""
        say(f"{', '.join(paths)}: note: there is no secret in the key log{wrong}")
    return keys


@contextlib.contextmanager
def opened(file: str) -> Iterator[tuple[IO[bytes], int | None]]:
    """The bytes of ``file`` (``-``: standard input), and how many there are where that is known. Raises ``OSError``."""
    if file == "-":
        yield sys.stdin.buffer, None
        return
    import os

    with open(file, "rb") as raw:  # noqa: PTH123
        codec = next((codec for ending, codec in COMPRESSED.items() if file.endswith(ending)), None)
        if codec is None:
            yield raw, os.fstat(raw.fileno()).st_size
        else:
            import pyarrow as pa

            yield pa.CompressedInputStream(raw, codec), None


@contextlib.contextmanager
def progress_bar(name: str, size: int | None, *outputs: Output) -> Iterator[Callable[[int], None] | None]:
    """Shows a bar while the block runs, where there is a terminal to show it on and no rows appear there.

    Gives what to call with the number of bytes read so far, or ``None``.
    """
    if any(output.to_terminal for output in outputs) or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from kwire.tables.showing import readable

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(readable(name)), total=size)
        yield lambda done: bar.update(task, completed=done)
