"""Processes that compile kernels beside the one that reads, where there are none yet.

Strategy: the first large input on a machine starts a process for each core but one, three at most. Each goes through
all kernels, in the order of ``kwire.cli.compile``, and compiles what nobody has claimed. The reader goes on in Python
meanwhile. It asks for each kernel whether its machine code is there by now, and runs that (``made``). When the helpers
have ended, all is machine code: what they left is compiled when it is needed.

A helper compiles those kernels first that Python takes longest for (``FIRST``, ``SOON``). It makes *quick* machine code
of them, which LLVM does not optimise: that is there in two thirds of the time, and runs 100 times as fast as Python.
Then it optimises them, and later processes take that. A window with so many packets that Python would take longer than
that waits for the quick machine code (``wait``). So does a call for many record sets. Meanwhile another helper has the
core of the reader.

Rules kept here:

- Helpers are a help only. Where they cannot be started, or fail, the reader compiles what it needs by itself.
- One process of a machine has helpers at a time (a claim in the folder of the machine code). Others wait for the end of
  these in the same way: they read on in Python.
- A helper ends with its parent: it finishes the kernels in hand, so that this work is not lost.
- A helper has the module path of its parent and not the current folder. It uses the same folder of machine code, or
  does nothing. So what it may load and who may write it are the same.
- A thread waits for helpers, so that none is left as a zombie. It is a daemon: nobody waits for it. A process that was
  forked has no such thread, so it has no helpers either.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from kwire.kernels import cache

__all__ = ["FIRST", "SOON", "at_work", "begin", "cores", "made", "made_quickly", "wait"]

FIRST: Final = (
    "framing.frames_and_pairs",
    "tracking._take",
    "judging.left_over",
    "streams._place",
    "bodies._write",
    "columns.frame_columns",
    "ordering.by_order",
    "packets._fill_pcap",
    "streams._count",
    "streams._by_stream",
    "roles.begin_hellos",
)
"""Kernels that Python takes longest for, in the order in which they are compiled. A window waits for these."""
OF_RECORDS: Final = ("records.scan", "records.read_records")
"""The same for records: a call for many record sets waits for these."""
SOON: Final = (*OF_RECORDS, "framing.settle_all")
"""Kernels that are compiled quickly after the first ones."""

MOST: Final = 3
"""Helpers at most: beyond it the kernel that takes longest decides."""
LOOK: Final = 0.25
"""Seconds after which it is looked again which kernels there are."""
LONGEST: Final = 600.0
"""Seconds to wait for the helpers of another process."""
LOOK_AGAIN: Final = 0.05
"""The same for who waits."""
NICE: Final = 10
"""How nice a helper is that has the core of the reader: it gets a tenth of the core when the reader needs it."""
PATIENCE: Final = 60.0
"""Seconds that a window waits for quick machine code, before Python reads it all the same."""

PROGRAM: Final = (
    "import sys; sys.path[:] = sys.argv[3:]; from kwire.cli import compile; "
    "compile.help_out(int(sys.argv[1]), sys.argv[2])"
)


class _State:
    """The helpers of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: int | None = None
        self.at_work = False
        self.kept: set[str] = set()
        self.looked = 0.0
        self.waited: set[tuple[str, ...]] = set()
        self.waiting = threading.Event()
        """Set when the reader waits, or when there is nothing to wait for."""


_state: Final = _State()


def begin() -> None:
    """Has all kernels compiled that are not there, once in a process, where another core is there for it."""
    with _state.lock:
        if _state.process == os.getpid() or cache.complete():
            return
        _state.process = os.getpid()
        count = min(cores() - 1, MOST)
        _state.at_work = count > 0 and _can_help()
    if _state.at_work or not cache.filled():
        cache.announce(_state.at_work)
    if _state.at_work:
        threading.Thread(target=_help, args=(count,), name="kwire-helpers", daemon=True).start()


def at_work() -> bool:
    """Whether other processes compile for this one."""
    return _state.at_work and _state.process == os.getpid()


def made(kernel: Callable[..., Any]) -> bool:
    """Whether there is optimised machine code of a kernel by now."""
    return _name(kernel) in _there()


def made_quickly(kernel: Callable[..., Any]) -> bool:
    """Whether there is quick machine code of a kernel by now."""
    return cache.QUICK + _name(kernel) in _there()


def wait(kernels: tuple[str, ...] = FIRST) -> None:
    """Waits for machine code of these kernels, once in a process.

    It ends where helpers end, and after ``PATIENCE`` seconds."""
    if kernels in _state.waited:
        return
    _state.waited.add(kernels)
    _state.waiting.set()
    # What loads machine code: it takes half a second, which is there now.
    importlib.import_module("kwire.kernels.compiling")
    until = time.monotonic() + PATIENCE
    while at_work() and time.monotonic() < until:
        there = cache.kernels()
        if all(one in there or cache.QUICK + one in there for one in kernels):
            break
        time.sleep(LOOK_AGAIN)
    _state.looked = 0.0


def _name(kernel: Callable[..., Any]) -> str:
    return f"{kernel.__module__.rpartition('.')[2]}.{kernel.__qualname__}"


def _there() -> set[str]:
    now = time.monotonic()
    if now - _state.looked > LOOK:
        _state.kept, _state.looked = cache.kernels(), now
    return _state.kept


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _can_help() -> bool:
    # A program that Python is embedded in would be started a second time.
    is_python = Path(sys.executable or "").name.startswith("python") and not getattr(sys, "frozen", False)
    return is_python and os.access(cache.folder(), os.W_OK)


def _help(count: int) -> None:
    began = time.monotonic()
    try:
        with cache.claimed("helpers", LONGEST) as ours:
            if ours and not cache.complete():
                _run(count)
        if cache.complete():
            cache.say(f"its kernels are compiled, after {time.monotonic() - began:.0f} s")
    finally:
        _state.at_work = False


def _run(count: int) -> None:
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.extend(_started() for _ in range(count))
        while not _state.waiting.wait(LOOK):
            if all(one.poll() is not None for one in started):
                break
        else:
            # The reader does not need its core.
            started.append(_started())
            if hasattr(os, "setpriority"):
                # Nor does this one, as soon as the reader goes on.
                os.setpriority(os.PRIO_PROCESS, started[-1].pid, NICE)
    except OSError as error:
        cache.say(f"a process that compiles could not be started: {error.strerror}")
    codes = {one.wait() for one in started} - {0, -signal.SIGINT, -signal.SIGTERM}
    if codes:
        cache.say(f"a process that compiles ended with {max(codes)}; what it left is compiled when it is needed")


def _started() -> subprocess.Popen[bytes]:
    nothing = subprocess.DEVNULL
    here = [str(os.getpid()), str(cache.folder())]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *here, *(one for one in sys.path if one)],
        stdin=nothing,
        stdout=nothing,
        stderr=nothing,
    )
