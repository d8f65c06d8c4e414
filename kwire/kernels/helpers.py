"""Processes that compile kernels beside the one that reads, where there are none yet.

Strategy: the first kernel that has to be compiled for large input starts a process for each core, four at most. Each
goes through all kernels, in the order of ``kwire.cli.compile``, and compiles what nobody has claimed. The reader does
the same for the kernel that it is to call next. Where a helper has that one in hand, it waits, and loads it then.

Rules kept here:

- Helpers are a help only. Without them, or when they fail, the reader compiles what it needs by itself.
- One process of a machine has helpers at a time (a claim in the folder of the machine code).
- A helper ends with its parent: it finishes the kernel in hand, so that this work is not lost.
- A helper has the module path of its parent and not the current folder. It uses the same folder of machine code, or
  does nothing. So what it may load and who may write it are the same.
- A thread waits for helpers, so that none is left as a zombie. It is a daemon: nobody waits for it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

from kwire.kernels import cache, engine

__all__ = ["begin"]

MOST: Final = 4
"""Helpers at most: beyond it the kernel that takes longest decides."""

PROGRAM: Final = (
    "import sys; sys.path[:] = sys.argv[3:]; from kwire.cli import compile; "
    "compile.help_out(int(sys.argv[1]), sys.argv[2])"
)

_begun: list[int] = []
_lock = threading.Lock()


def begin() -> None:
    """Starts helpers, once in a process, if its input is large, there is more than one core, and nobody has any."""
    if not engine.chosen():
        return
    with _lock:
        if _begun:
            return
        _begun.append(_cores())
    if _begun[0] > 1 and _can_help():
        threading.Thread(target=_help, args=(min(_begun[0], MOST),), name="kwire-helpers", daemon=True).start()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _can_help() -> bool:
    # A program that Python is embedded in would be started a second time.
    is_python = Path(sys.executable or "").name.startswith("python") and not getattr(sys, "frozen", False)
    return is_python and os.access(cache.folder(), os.W_OK)


def _help(count: int) -> None:
    with cache.claimed("helpers", 0) as ours:
        if not ours:
            return
        started: list[subprocess.Popen[bytes]] = []
        try:
            started.extend(_started() for _ in range(count))
        except OSError as error:
            cache.say(f"no process to help compiling could be started: {error.strerror}")
        codes = {one.wait() for one in started} - {0, -signal.SIGINT, -signal.SIGTERM}
        if codes:
            cache.say(f"a process that helped compiling ended with {max(codes)}; what it left is compiled when needed")


def _started() -> subprocess.Popen[bytes]:
    nothing = subprocess.DEVNULL
    here = [str(os.getpid()), str(cache.folder())]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *here, *(one for one in sys.path if one)],
        stdin=nothing,
        stdout=nothing,
        stderr=nothing,
    )
