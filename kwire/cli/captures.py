"""Which captures a command reads, and in which order.

A folder stands for the captures in it and in its folders. Captures that ``tcpdump`` has rotated continue each other,
and a shell does not name them in that order (x1, x10, x2). So captures are read in order of their first packets.

Rules kept here:

- What a folder has is a capture if its first bytes say so, also where it is compressed. One line counts the others.
- A file that is named is always read, whatever its bytes are: the reader says what is wrong with it.
- A folder without captures stays in the list. Opening it says so.
- A capture goes on with the one before it if its first packet came after the last one there, and soon. Two captures of
  the same time, of two brokers perhaps, are two.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from kwire.cli.reading import opened, progress_bar
from kwire.errors import KwireError, needed
from kwire.opening import below, is_regular

if TYPE_CHECKING:
    from kwire.capture.reading import Rotated, Source
    from kwire.capture.tracker import Tracker

__all__ = ["Files", "captures", "in_order", "shown_name"]


_BACK: Final = 1_000_000_000
"""Nanoseconds by which packets may be out of order: each CPU writes its own."""
_SOON: Final = 60_000_000_000
"""Nanoseconds without a packet. Clients that are connected send heartbeats each 3 s, and fetch each 0.5 s."""


def captures(files: Sequence[str]) -> list[str]:
    """The captures that ``files`` name, each folder by those in it, in order of time."""
    from kwire.cli.stderr import say

    found: list[str] = []
    for file in files:
        inside = _inside(file)
        mine = [one for one in inside if _is_capture(one)]
        if mine and len(mine) < len(inside):
            say(f"{file}: note: files that are no captures: {len(inside) - len(mine):,}")
        found += [one for one in mine if one not in found] or [file]
    return list(in_order(found))


def _inside(file: str) -> list[str]:
    """The regular files in a folder, without hidden ones. None of what is no folder, or cannot be listed."""
    if file == "-" or not os.path.isdir(file):  # noqa: PTH112
        return []
    try:
        paths = sorted(below(file))
    except OSError:
        return []
    hidden = f"{os.sep}."
    seen = (one for one in paths if hidden not in one.removeprefix(file.rstrip(os.sep)))
    # A pipe would be waited for.
    return [one for one in seen if is_regular(one)]


def _is_capture(file: str) -> bool:
    with needed("reading captures", "capture"):
        from kwire.capture.magics import is_capture
    head = b""
    try:
        with opened(file) as (stream, _):
            while len(head) < 4 and (more := stream.read(4 - len(head))):
                head += more
    except (KwireError, OSError):
        return False
    return is_capture(head)


def in_order(files: Sequence[str]) -> Sequence[str]:
    """Files in order of their first packets. A file that does not say when that was stays after the one before it."""
    if len(files) < 2:
        return files
    latest = -(1 << 63)
    keys = []
    for file in files:
        begin = _begin(file)
        latest = latest if begin is None else begin
        keys.append(latest)
    return [file for _, file in sorted(zip(keys, files, strict=True), key=lambda one: one[0])]


def _goes_on(file: str, now: int | None) -> bool:
    """Whether a capture goes on with one whose last packet came at ``now``, in nanoseconds since 1970."""
    begin = _begin(file)
    return begin is not None and now is not None and now - _BACK <= begin <= now + _SOON


def _begin(file: str) -> int | None:
    """The time of the first packet of a file, in nanoseconds since 1970."""
    if not os.path.isfile(file):  # noqa: PTH113 - a pipe is read once
        return None
    with needed("reading captures", "capture"):
        from kwire.capture.containers import first_time_in
    try:
        with opened(file) as (stream, _):
            return first_time_in(stream)[0]
    except (KwireError, OSError):
        return None


def shown_name(file: str) -> str:
    """What a capture is called."""
    return "standard input" if file == "-" else file


class Files:
    """The files of one capture, one open at a time: ``file``, and those of ``more`` that go on with it.

    ``say`` is told what is wrong with one of them.
    """

    def __init__(self, say: Callable[[KwireError | OSError, str], None], file: str, more: deque[str]) -> None:
        self._say = say
        self.more: deque[str] = more
        """Those that are left, at the end: they do not go on with it."""
        self.name: str = shown_name(file)
        self._file = file
        self._open = contextlib.ExitStack()
        self._bar: Callable[[int], None] | None = None
        self._opened: Source
        self.later: list[str] = []
        """Those after the first."""
        self.wrong: bool = False
        """Whether something was wrong with one of them."""

    def __enter__(self) -> Files:
        self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _begin(self) -> None:
        self._open.close()
        self._opened, size = self._open.enter_context(opened(self._file))
        self._bar = self._open.enter_context(progress_bar(shown_name(self._file), size))

    def progress(self, done: int) -> None:
        """Takes how many bytes of the open file were read."""
        if self._bar is not None:
            self._bar(done)

    @property
    def source(self) -> Source | Rotated:
        """What is read: each file is opened if it goes on with what was read."""
        from kwire.capture.reading import Rotated

        return Rotated(self._opened, self._then) if self.more else self._opened

    def _then(self, tracker: Tracker, wrong: KwireError | OSError | None) -> tuple[Source, str] | None:
        while True:
            if wrong is not None:
                self.wrong = True
                self._say(wrong, self._file)
            if not self.more or not _goes_on(self.more[0], tracker.now):
                return None
            self._file = self.more.popleft()
            self.later.append(self._file)
            try:
                self._begin()
            except (KwireError, OSError) as error:
                wrong = error
                continue
            return self._opened, shown_name(self._file)
