"""Which captures a command reads, and in which order.

A folder stands for the captures in it and in its folders. Captures that ``tcpdump`` has rotated continue each other,
and a shell does not name them in that order (x1, x10, x2). So captures are read in order of their first packets.

Rules kept here:

- What a folder has is a capture if its first bytes say so, also where it is compressed. One line counts the others.
- A file that is named is always read, whatever its bytes are: the reader says what is wrong with it.
- A folder without captures stays in the list. Opening it says so.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from kwire.cli.reading import opened
from kwire.errors import KwireError, needed
from kwire.opening import below, is_regular

__all__ = ["captures", "in_order"]


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
