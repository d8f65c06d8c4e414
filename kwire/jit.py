"""How the kernels of kwire are compiled: one decorator, ``kernel``; and the readers of numbers that they share.

A kernel is a plain Python loop over numpy arrays that numba compiles on its first call. The rules that hold for all
of them are kept here, so that no module decides them again:

- ``boundscheck=True``: input is hostile, and a read outside of an array is an ``IndexError``, not a crash. Kernels
  check lengths themselves; the bounds check is what makes a mistake in one of them harmless.
- ``nogil=True``: two captures can be read by two threads.
- ``cache=True``: machine code is kept beside the source, or in the user's cache folder where the package is
  read-only. Where that cannot be written either, it goes to a folder in the temporary directory that belongs to
  this user alone: the cache holds pickles, so a folder that somebody else may write to would let him run code here.
- ``error_model="numpy"``: no kernel divides by a value from the input without a check.

numba is imported when this module is, never by ``import kwire``. With ``NUMBA_DISABLE_JIT=1`` the kernels run as
Python: useless in production, good for a debugger.

A cached kernel is compiled again when its own file changes, not when a kernel that it calls from another file does:
after such a change, remove the ``*.nbi`` files in ``__pycache__``.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

from kwire.errors import MissingExtraError

try:
    import numba
    import numpy as np
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types
    from numba.core import config as _config
    from numba.extending import intrinsic
except ImportError as missing:  # pragma: no cover - depends on the installation
    raise MissingExtraError("reading captures and columns", "capture") from missing

__all__ = ["be16", "be32", "int16", "int32", "int64", "kernel", "le16", "le32"]

config: Any = _config

int64: Any = np.int64
"""``numpy.int64`` for use in kernels: what a kernel computes is an int to mypy, and numba checks the rest."""

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """``function``, compiled by numba on its first call for the types that it is called with."""
    try:
        return _compiled(function)
    except RuntimeError:
        # numba found no folder for its cache. It looks for one when it decorates, so setting another just for that
        # leaves the setting of the program that imports kwire alone.
        before = config.CACHE_DIR
        config.CACHE_DIR = _private_folder()
        try:
            return _compiled(function)
        finally:
            config.CACHE_DIR = before


def _compiled(function: F) -> F:
    compiled: Any = numba.njit(cache=True, boundscheck=True, nogil=True, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]


def _private_folder() -> str:
    """A folder in the temporary directory that only this user can write to, the same for all processes if possible."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"kwire-kernels-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077:
            return str(folder)
    except OSError:
        pass
    return tempfile.mkdtemp(prefix="kwire-kernels-")


if config.DISABLE_JIT:

    def _load(bits: int, order: Literal["big", "little"]) -> Any:
        def load(buf: Any, at: int) -> Any:
            return int64(int.from_bytes(buf[at : at + bits // 8].tobytes(), order))

        return load

else:

    def _load(bits: int, order: Literal["big", "little"]) -> Any:
        """An intrinsic that loads an unsigned number from a contiguous uint8 array. It checks nothing."""

        @intrinsic
        def load(typing_context: Any, array: Any, at: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                data = context.make_array(signature.args[0])(context, builder, args[0]).data
                place = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(bits).as_pointer())
                value = builder.load(place, align=1)
                if sys.byteorder != order:
                    value = builder.bswap(value)
                return builder.zext(value, ir.IntType(64))

            return types.int64(array, types.int64), generate

        return load


_big16 = _load(16, "big")
_big32 = _load(32, "big")
_little16 = _load(16, "little")
_little32 = _load(32, "little")

# One check of a whole number, in place of one for each of its bytes, makes these small enough to become part of the
# kernels that call them.


@kernel
def be16(buf: Any, at: int) -> int:
    """Two bytes of a contiguous uint8 array, big-endian, unsigned."""
    if at < 0 or at + 2 > buf.shape[0]:
        raise IndexError("index is out of bounds")
    value: int = _big16(buf, at)
    return value


@kernel
def be32(buf: Any, at: int) -> int:
    """Four bytes of a contiguous uint8 array, big-endian, unsigned."""
    if at < 0 or at + 4 > buf.shape[0]:
        raise IndexError("index is out of bounds")
    value: int = _big32(buf, at)
    return value


@kernel
def le16(buf: Any, at: int) -> int:
    """Two bytes of a contiguous uint8 array, little-endian, unsigned."""
    if at < 0 or at + 2 > buf.shape[0]:
        raise IndexError("index is out of bounds")
    value: int = _little16(buf, at)
    return value


@kernel
def le32(buf: Any, at: int) -> int:
    """Four bytes of a contiguous uint8 array, little-endian, unsigned."""
    if at < 0 or at + 4 > buf.shape[0]:
        raise IndexError("index is out of bounds")
    value: int = _little32(buf, at)
    return value


@kernel
def int16(buf: Any, at: int) -> int:
    """Two bytes, big-endian, signed."""
    value = be16(buf, at)
    return value - 0x10000 if value >= 0x8000 else value


@kernel
def int32(buf: Any, at: int) -> int:
    """Four bytes, big-endian, signed."""
    value = be32(buf, at)
    return value - 0x100000000 if value >= 0x80000000 else value
