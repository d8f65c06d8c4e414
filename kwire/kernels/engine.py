"""Which way a kernel runs: as Python, or as machine code that numba compiles.

A kernel is a plain Python loop over numpy arrays that it is given, marked with ``kernel``. The mark changes nothing.
The function stays the Python that it is, and calls other kernels as Python. Where a table is full it returns, and
Python makes a larger one and calls it again. An ``Engine`` gives the function that does the same work in its way. For
``PYTHON`` that is the kernel itself, for ``MACHINE`` its compiled twin (``kwire.kernels.compiling``). Only that module
and ``kwire.kernels.intrinsics`` import numba, and not before it is needed.

``choose`` picks the engine for so much work. Loading the machine code takes about as long as Python needs for half a
megabyte of large frames, or for two thousand small ones. Compiling it (once for each version of kwire on a machine)
takes many times as long. So Python reads small input, until a process has done so much that the machine code would have
been worth it. Packets and frames count as they are found. Where nothing is compiled yet, other processes compile
(``kwire.kernels.helpers``). Python reads on meanwhile (``MIXED``).

Both engines take and give the same tables, so a reader may change from one to the other between any two calls.

With ``NUMBA_DISABLE_JIT=1`` everything is Python: slow, but good for a debugger.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import numpy as np

__all__ = [
    "INLINED",
    "KERNELS",
    "MACHINE",
    "MIXED",
    "PRIMITIVES",
    "PYTHON",
    "Engine",
    "choose",
    "inlined",
    "kernel",
    "loaded",
    "primitive",
    "recording",
    "using",
]

SMALL_WARM: Final = 400_000
"""Bytes up to which Python is faster than loading machine code that is there."""
SMALL_COLD: Final = 1_000_000
"""Bytes up to which Python is bearable where machine code is not there yet."""

OF_A_PACKET: Final = 300
"""Bytes that a packet counts for. Python needs 0.3 ms for it, and more for one that begins a connection."""
OF_A_FRAME: Final = 150
"""And a frame."""

MANY: Final = 8_000
"""Packets of one window for which Python needs longer than it takes to compile what they need."""

MANY_SETS: Final = 2_000
"""Record sets of one call for which Python needs longer than it takes to compile what they need after packets."""

F = TypeVar("F", bound=Callable[..., Any])

KERNELS: Final[set[Callable[..., Any]]] = set()
"""Every function that ``kernel`` marked."""
INLINED: Final[set[Callable[..., Any]]] = set()
"""Those of them that ``inlined`` marked."""
PRIMITIVES: Final[set[Callable[..., Any]]] = set()
"""Every function that ``primitive`` marked."""


def kernel(function: F) -> F:
    """Marks a function that numba can compile. Of our functions it may call kernels and primitives only.

    It only uses the arrays of its caller: it makes none, and returns none. So its machine code needs not count
    references to them. Counting costs more than many a loop does, and keeps LLVM from seeing through it.
    """
    KERNELS.add(function)
    return function


def inlined(function: F) -> F:
    """Marks a kernel whose machine code becomes part of the kernels that call it, whatever its size. It is a step of an
    inner loop, whose arguments and results then cost nothing."""
    INLINED.add(function)
    return kernel(function)


def primitive(function: F) -> F:
    """Marks a function that kernels call and numba cannot compile. Its twin in machine code has the same name in
    ``kwire.kernels.intrinsics``."""
    PRIMITIVES.add(function)
    return function


class Engine:
    """A way to run kernels: ``engine(kernel)`` is the function to call in place of ``kernel``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<kernels as {self.name}>"

    def __call__(self, kernel: F) -> F:
        """``kernel`` as this engine runs it."""
        raise NotImplementedError

    def compiles(self, kernel: Callable[..., Any]) -> bool:
        """Whether ``kernel`` runs as machine code with this engine, by now."""
        return False


class _Python(Engine):
    def __call__(self, kernel: F) -> F:
        return _quiet(kernel)  # type: ignore[return-value]


@functools.cache
def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    # Sums of hostile numbers wrap around in machine code and say nothing; so they do here.
    @functools.wraps(function)
    def call(*args: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            return function(*args)

    return call


class _Machine(Engine):
    def compiles(self, kernel: Callable[..., Any]) -> bool:
        return True

    def __call__(self, kernel: F) -> F:
        calls = _state.recorded
        if calls is None:
            return _twin(kernel)  # type: ignore[return-value]

        def call(*args: Any) -> Any:
            calls[kernel] = args
            return _quiet(kernel)(*args)

        return call  # type: ignore[return-value]


@functools.cache
def _twin(function: Callable[..., Any]) -> Callable[..., Any]:
    from kwire.kernels import compiling

    return compiling.compiled(function)


class _Mixed(Engine):
    def __call__(self, kernel: F) -> F:
        from kwire.kernels import helpers

        if helpers.made(kernel):
            return MACHINE(kernel)
        return (helpers.made_quickly(kernel) and _quick_twin(kernel)) or PYTHON(kernel)

    def compiles(self, kernel: Callable[..., Any]) -> bool:
        return self(kernel) is not PYTHON(kernel)


def _quick_twin(kernel: F) -> F | None:
    from kwire.kernels import compiling

    return compiling.quick(kernel)


PYTHON: Final[Engine] = _Python("python")
MACHINE: Final[Engine] = _Machine("machine code")
MIXED: Final[Engine] = _Mixed("machine code as it is made")
"""While other processes compile: each kernel is Python until its machine code is there."""


_DISABLED: Final = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
"""As numba does, it is asked once: that takes longer than all else here."""


class _State:
    """What this process has done so far."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.read_by_python = 0
        self.fixed: Engine | None = None
        self.recorded: dict[Callable[..., Any], tuple[Any, ...]] | None = None


_state: Final = _State()


def choose(size: int, *, packets: int = 0, frames: int = 0, sets: int = 0) -> Engine:
    """The engine for ``size`` more bytes of input. ``packets`` and ``frames`` in it count besides, once they are known.
    ``sets``: the record sets in it.

    Says on standard error, once, when this is where kernels will be compiled. Ask for each piece of work. What Python
    has read adds up over the process, whoever read it.
    """
    if _state.fixed is not None:
        return _state.fixed
    if _DISABLED:
        return PYTHON
    if loaded():
        return _helped(packets, sets)
    with _state.lock:
        total = _state.read_by_python + size + OF_A_PACKET * packets + OF_A_FRAME * frames
        if total <= SMALL_WARM:
            _state.read_by_python = total
            return PYTHON
        from kwire.kernels import cache

        if total <= SMALL_COLD and not cache.filled():
            _state.read_by_python = total
            return PYTHON
    from kwire.kernels import helpers

    helpers.begin()
    return _helped(packets, sets)


def _helped(packets: int = 0, sets: int = 0) -> Engine:
    helpers = sys.modules.get("kwire.kernels.helpers")
    if helpers is None or not helpers.at_work():
        return MACHINE
    if packets > MANY:
        helpers.wait()
    if sets > MANY_SETS:
        helpers.wait(helpers.OF_RECORDS)
    return MIXED


def loaded() -> bool:
    """Whether this process has machine code to call, or begun to make it."""
    return "kwire.kernels.compiling" in sys.modules


@contextmanager
def using(engine: Engine) -> Iterator[None]:
    """Within the block, ``choose`` gives ``engine`` whatever the size of the input (in all threads)."""
    before = _state.fixed
    _state.fixed = engine
    try:
        yield
    finally:
        _state.fixed = before


@contextmanager
def recording() -> Iterator[dict[Callable[..., Any], tuple[Any, ...]]]:
    """Within the block all is ``MACHINE``, which runs kernels as Python and notes what each was called with last."""
    with using(MACHINE):
        calls: dict[Callable[..., Any], tuple[Any, ...]] = {}
        _state.recorded = calls
        try:
            yield calls
        finally:
            _state.recorded = None
