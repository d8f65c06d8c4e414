"""Kernels as machine code: for each kernel a twin that numba compiles on its first call.

Strategy: kernels are plain functions, which call each other by the names in their modules. A twin has the same code
object but other globals: a copy of the module's in which every kernel is its twin, and every primitive its
implementation in ``kwire.kernels.intrinsics``. So the Python and the machine code of a kernel cannot differ in their
source, and both can be used in one process.

Rules kept here, for all kernels:

- ``boundscheck=True``: input is hostile, and a read outside of an array is an ``IndexError``, not a crash. Kernels
  check lengths themselves; the bounds check is what makes a mistake in one of them harmless. A negative index is
  outside as well: no kernel counts from the end (``kwire.kernels.fence``).
- ``nogil=True``: two captures can be read by two threads.
- ``error_model="numpy"``: no kernel divides by a value from the input without a check.
- ``_nrt=False``: no reference is counted, nothing can be allocated.
- Only what is needed is compiled: no entry for callers in C, and none for Python where a kernel is a part of others.
- A name that a kernel uses stands in its module when the twin is made. Globals are copied then, so machine code does
  not see a function that is patched later.
- What numba keeps private is used in ``kwire.kernels.fence`` only, and not needed: without it compiling takes longer.
- Machine code is kept where ``kwire.kernels.cache`` says. A folder that cannot be written (any more) is no error: the
  code that was compiled is used all the same. A file that is damaged is as good as none.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from kwire.errors import MissingExtraError
from kwire.kernels.engine import INLINED, KERNELS, PRIMITIVES

try:
    from numba import njit as _njit

    from kwire.kernels import fence
except ImportError as _missing:  # pragma: no cover - depends on the installation
    raise MissingExtraError("reading captures and columns", "capture") from _missing

from kwire.kernels import intrinsics

__all__ = ["compiled"]

njit: Any = _njit

F = TypeVar("F", bound=Callable[..., Any])


_entries: dict[Callable[..., Any], Any] = {}
_inner: dict[Callable[..., Any], Any] = {}
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
    }


def compiled(kernel: F) -> F:
    """The twin of a kernel in machine code, to be called from Python."""
    found = _entries.get(kernel)
    if found is None:
        with _lock:
            if kernel not in _inner:
                _make(kernel.__module__)
            if kernel not in _entries:
                # What kernels call has no way in from Python: that takes longer to compile than many a kernel itself.
                _entries[kernel] = fence.entry(njit(**_options(kernel))(_inner[kernel].py_func))
            found = _entries[kernel]
    return found


def _make(module: str) -> None:
    """Makes the inner twins of all kernels of a module, and of those that they call."""
    names = dict(vars(sys.modules[module]))
    for value in list(names.values()):
        if _marked(value, KERNELS) and value.__module__ == module and value not in _inner:
            twin = FunctionType(value.__code__, names, value.__name__, value.__defaults__, value.__closure__)
            twin.__module__, twin.__qualname__ = value.__module__, value.__qualname__
            _inner[value] = fence.part(njit(no_cpython_wrapper=True, **_options(value))(twin))
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
