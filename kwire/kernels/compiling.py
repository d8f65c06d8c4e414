"""Kernels as machine code: for each kernel a twin that numba compiles on its first call.

Strategy: kernels are plain functions, which call each other by the names in their modules. A twin has the same code
object but other globals. They are a copy of the module's in which every kernel is its twin. Every primitive is its
implementation in ``kwire.kernels.intrinsics``. So the Python and the machine code of a kernel cannot differ in their
source. Both can be used in one process.

Rules kept here, for all kernels:

- ``boundscheck=True``: input is hostile, and a read outside of an array is an ``IndexError``, not a crash. Kernels
  check lengths themselves; the bounds check is what makes a mistake in one of them harmless. A negative index is
  outside as well: no kernel counts from the end (``kwire.kernels.fence``).
- ``nogil=True``: two captures can be read by two threads.
- ``error_model="numpy"``: no kernel divides by a value from the input without a check.
- ``_nrt=False``: no reference is counted, nothing can be allocated.
- Only what is needed is compiled. There is no entry for callers in C, and none for Python where a kernel is a part of
  others.
- A name that a kernel uses stands in its module when the twin is made. Globals are copied then, so machine code does
  not see a function that is patched later.
- To load machine code takes a twin of the kernel that Python calls. Those of its parts are made where it is compiled.
  There are 270 of them, which take longer than the loading.
- What numba keeps private is used in ``kwire.kernels.fence`` only, and not needed: without it compiling takes longer.
- Machine code is kept where ``kwire.kernels.cache`` says. A folder that cannot be written (any more) is no error. The
  code that was compiled is used all the same. A file that is damaged is as good as none.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, Final, TypeVar

from kwire.errors import MissingExtraError
from kwire.kernels import cache
from kwire.kernels.engine import INLINED, KERNELS, PRIMITIVES

try:
    from numba import njit as _njit

    from kwire.kernels import fence
except ImportError as _missing:  # pragma: no cover - depends on the installation
    raise MissingExtraError("reading captures and columns", "capture") from _missing

__all__ = ["compile_for", "compile_quickly", "compiled", "load", "name_of", "quick"]

njit: Any = _njit

F = TypeVar("F", bound=Callable[..., Any])


WORTH_SAYING: Final = 2.0
"""Seconds from which on it is said how long a kernel took."""

_entries: dict[Callable[..., Any], Any] = {}
_quick: dict[Callable[..., Any], Any] = {}
_inner: dict[Callable[..., Any], Any] = {}
_names: dict[str, dict[str, Any]] = {}
"""The globals of the twins of each module: a copy of the module's, until ``_make`` puts twins in."""
_lock = threading.RLock()


def _options(kernel: Callable[..., Any]) -> dict[str, Any]:
    """What numba is told about a kernel."""
    return {
        "boundscheck": True,
        "nogil": True,
        "error_model": "numpy",
        "forceinline": kernel in INLINED,
        "_nrt": False,
        "no_cfunc_wrapper": True,
        **fence.options(),
    }


def compiled(kernel: F) -> F:
    """The twin of a kernel in machine code, to be called from Python."""
    found = _entries.get(kernel)
    if found is None:
        with _lock:
            if kernel not in _entries:
                # What kernels call has no way in from Python: that takes longer to compile than many a kernel itself.
                twin, module = _twin(kernel), kernel.__module__
                _entries[kernel] = fence.entry(
                    njit(**_options(kernel))(twin), lambda: _complete(module), lambda: _claimed(kernel)
                )
            found = _entries[kernel]
    return found


class _BusyError(Exception):
    """Another process compiles this kernel."""


_patience: Final = [cache.PATIENCE]
"""Seconds to wait for another process, the innermost last."""


@contextlib.contextmanager
def _claimed(kernel: Callable[..., Any]) -> Iterator[None]:
    """Around what makes the machine code of a kernel: one process does it. Says how long it took."""
    began = time.monotonic()
    with cache.claimed(name_of(kernel), _patience[-1]) as ours:
        if not ours and _patience[-1] == 0:
            raise _BusyError
        yield
    if (took := time.monotonic() - began) >= WORTH_SAYING:
        cache.say(f"{name_of(kernel)} is compiled, after {took:.1f} s")


def compile_for(kernel: Callable[..., Any], args: tuple[Any, ...], *, wait: bool) -> bool:
    """Compiles a kernel for arguments of these types, unless its machine code is kept.

    Where another process compiles it, this waits for that if it should. Returns whether this process compiled it."""
    twin: Any = compiled(kernel)
    with _lock:
        _patience.append(cache.PATIENCE if wait else 0)
        try:
            twin.compile(fence.types_of(args))
        except _BusyError:
            return False
        finally:
            _patience.pop()
    return bool(twin.stats.cache_misses)


def compile_quickly(kernel: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], None] | None:
    """Makes the quick machine code of a kernel for other processes, and returns what makes the optimised one.

    The kernel is claimed until that has been called. Returns ``None`` where another process compiles it, or where there
    is no quick machine code (``kwire.kernels.fence``)."""
    with _lock, contextlib.ExitStack() as held:
        if not held.enter_context(cache.claimed(name_of(kernel), 0)):
            return None
        module = kernel.__module__
        dispatcher = njit(**_options(kernel))(_twin(kernel))
        optimise = fence.in_stages(dispatcher, lambda: _complete(module), fence.types_of(args))
        if optimise is None:
            return None
        claim = held.pop_all()

    def finish() -> None:
        with claim:
            optimise()

    return finish


def quick(kernel: F) -> F | None:
    """The twin of a kernel with its quick machine code. ``None`` where there is none (any more)."""
    with _lock:
        found: F | None = _quick.get(kernel)
        if found is None:
            loading = True

            @contextlib.contextmanager
            def claimed() -> Iterator[None]:
                if loading:
                    raise _BusyError
                with _claimed(kernel):
                    yield

            with contextlib.suppress(_BusyError):
                found = fence.quick_entry(njit(**_options(kernel))(_twin(kernel)), claimed)
            loading = False
            if found is not None:
                _quick[kernel] = found
        return found


def load() -> int:
    """Loads the machine code of all kernels that is on disk, and compiles none. It is for a process that others are
    forked from. Returns how many kernels it has loaded."""
    modules()
    kept = cache.kernels()
    found = sorted((one for one in KERNELS if name_of(one) in kept), key=name_of)
    return sum(fence.load(compiled(one)) > 0 for one in found)


def name_of(kernel: Callable[..., Any]) -> str:
    """``module.function``, as files of machine code are called."""
    return f"{kernel.__module__.rpartition('.')[2]}.{kernel.__qualname__}"


def _twin(kernel: Callable[..., Any]) -> FunctionType:
    names = _globals(kernel.__module__)
    twin = FunctionType(kernel.__code__, names, kernel.__name__, kernel.__defaults__, kernel.__closure__)
    twin.__module__, twin.__qualname__ = kernel.__module__, kernel.__qualname__
    return twin


def _globals(module: str) -> dict[str, Any]:
    if module not in _names:
        _names[module] = dict(vars(sys.modules[module]))
    return _names[module]


def _complete(module: str) -> None:
    """Makes the inner twins of a module, if they are not made."""
    with _lock:
        if any(_marked(value, KERNELS) for value in _globals(module).values()):
            _make(module)


def _make(module: str) -> None:
    """Makes the inner twins of all kernels of a module, and of those that they call."""
    from kwire.kernels import intrinsics

    names = _globals(module)
    for value in list(names.values()):
        if _marked(value, KERNELS) and value.__module__ == module and value not in _inner:
            _inner[value] = fence.part(njit(no_cpython_wrapper=True, **_options(value))(_twin(value)))
    for name, value in names.items():
        if _marked(value, KERNELS):
            if value not in _inner:
                _make(value.__module__)
            names[name] = _inner[value]
        elif _marked(value, PRIMITIVES):
            names[name] = getattr(intrinsics, value.__name__)


def _marked(value: Any, marks: set[Callable[..., Any]]) -> bool:
    return isinstance(value, FunctionType) and value in marks


def modules() -> list[str]:
    """Imports every module of kernels, so that all of them are marked; their names."""
    package = importlib.import_module("kwire.kernels")
    names = [f"kwire.kernels.{one.name}" for one in pkgutil.iter_modules(package.__path__)]
    for name in names:
        importlib.import_module(name)
    return names
