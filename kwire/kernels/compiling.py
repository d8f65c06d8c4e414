"""Kernels as machine code: for each kernel a twin that numba compiles on its first call.

Strategy: kernels are plain functions, which call each other by the names in their modules. A twin has the same code
object but other globals: a copy of the module's in which every kernel is its twin, and every primitive its
implementation in ``kwire.kernels.intrinsics``. So the Python and the machine code of a kernel cannot differ in their
source, and both can be used in one process.

Rules kept here, for all kernels:

- ``boundscheck=True``: input is hostile, and a read outside of an array is an ``IndexError``, not a crash. Kernels
  check lengths themselves; the bounds check is what makes a mistake in one of them harmless. A negative index is
  outside as well: no kernel counts from the end, which costs more than the access itself (``_checked_once``).
- ``nogil=True``: two captures can be read by two threads.
- ``error_model="numpy"``: no kernel divides by a value from the input without a check.
- ``_nrt=False``: no reference is counted, nothing can be allocated.
- Only what is needed is compiled: no entry for callers in C, and none for Python where a kernel is a part of others.
- Machine code is kept where ``kwire.kernels.cache`` says. A folder that cannot be written (any more) is no error: the
  code that was compiled is used all the same. A file that is damaged is as good as none.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TypeVar

from kwire.errors import MissingExtraError
from kwire.kernels import cache
from kwire.kernels.engine import INLINED, KERNELS, PRIMITIVES

try:
    from numba import njit as _njit
    from numba.core import caching as _caching
    from numba.core import cgutils as _cgutils
    from numba.core.compiler_lock import global_compiler_lock as _compiler_lock
    from numba.np import arrayobj as _arrayobj
except ImportError as missing:  # pragma: no cover - depends on the installation
    raise MissingExtraError("reading captures and columns", "capture") from missing

from kwire.kernels import intrinsics

__all__ = ["compiled"]

# numba's own annotations do not have all of what is used here.
njit: Any = _njit
caching: Any = _caching
cgutils: Any = _cgutils
compiler_lock: Any = _compiler_lock
arrayobj: Any = _arrayobj

F = TypeVar("F", bound=Callable[..., Any])


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    """Tells numba the folder; the name of the folder says all that a stamp could."""

    def __init__(self, function: Any) -> None:
        self._function = function

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator:
        return cls(py_func)

    def get_cache_path(self) -> str:
        return str(cache.folder())

    def get_source_stamp(self) -> str:
        return cache.digest()

    def get_disambiguator(self) -> None:
        return None

    def ensure_cache_path(self) -> None:
        pass


class _Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _Implementation

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # what unpickling of damaged bytes raises may be anything
            with contextlib.suppress(OSError):
                self.flush()
            return None

    @contextlib.contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        with contextlib.suppress(OSError):
            yield


def _index(context: Any, builder: Any, kind: Any, value: Any, size: Any) -> Any:
    """In place of ``arrayobj.fix_integer_index``: an index as it is."""
    return context.cast(builder, value, kind, arrayobj.types.intp)


def _check(context: Any, builder: Any, index: Any, size: Any, axis: Any = None) -> None:
    """In place of ``cgutils.do_boundscheck``: a negative index is larger than any, as a number without a sign."""
    with cgutils.if_unlikely(builder, builder.icmp_unsigned(">=", index, size)):
        context.call_conv.return_user_exc(builder, IndexError, ("index is out of bounds",))


@contextlib.contextmanager
def _checked_once() -> Iterator[None]:
    """What is compiled meanwhile takes indices as they are, and compares each with the size of its array once.

    What numba makes of ``array[i]`` adds the size to an index below zero and then compares it twice, in seven
    instructions where two do: kernels take a sixth less time so. Nobody else compiles meanwhile: numba has a lock for
    that. A numba that does it otherwise compiles what it always has.
    """
    with compiler_lock:
        if not (hasattr(arrayobj, "fix_integer_index") and hasattr(cgutils, "do_boundscheck")):
            yield
            return
        before = arrayobj.fix_integer_index, cgutils.do_boundscheck
        arrayobj.fix_integer_index, cgutils.do_boundscheck = _index, _check
        try:
            yield
        finally:
            arrayobj.fix_integer_index, cgutils.do_boundscheck = before


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
                made: Any = njit(**_options(kernel))(_inner[kernel].py_func)
                made._cache = _Cache(made.py_func)
                made.compile = _checked(made.compile)
                _entries[kernel] = made
            found = _entries[kernel]
    return found


def _checked(compile_: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def compile_so(signature: Any) -> Any:
        with _checked_once():
            return compile_(signature)

    return compile_so


def _make(module: str) -> None:
    """Makes the inner twins of all kernels of a module, and of those that they call."""
    names = dict(vars(sys.modules[module]))
    for value in list(names.values()):
        if _marked(value, KERNELS) and value.__module__ == module and value not in _inner:
            twin = FunctionType(value.__code__, names, value.__name__, value.__defaults__, value.__closure__)
            twin.__module__, twin.__qualname__ = value.__module__, value.__qualname__
            made: Any = njit(no_cpython_wrapper=True, **_options(value))(twin)
            _inner[value] = made
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
