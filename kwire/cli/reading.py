"""How commands read files: opened, decompressed while they are read, with a bar that shows how far they are; and the
options of reading that several commands have."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

from kwire.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from kwire.cli.output import Output

__all__ = ["add_limits", "add_secrets", "opened", "progress_bar"]


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


@contextlib.contextmanager
def opened(file: str) -> Iterator[tuple[IO[bytes], int | None]]:
    """The bytes of ``file`` (``-``: standard input), decompressed if they are compressed, and how many there are where
    that is known. Raises ``OSError``."""
    from kwire.capture.compressed import decompressed

    if file == "-":
        yield decompressed(sys.stdin.buffer), None
        return
    import os

    with open(file, "rb") as raw:  # noqa: PTH123
        stream = decompressed(raw)
        yield stream, os.fstat(raw.fileno()).st_size if stream is raw else None


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
