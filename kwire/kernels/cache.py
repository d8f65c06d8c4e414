"""Where machine code is kept, and how anyone can tell that it belongs to the sources that are there.

Machine code stands in a folder that is named by a digest of everything it was made of. That is the text of all modules
of ``kwire.kernels`` and of what they import from elsewhere. It is also the versions of numba, llvmlite and numpy, and
the processor. What changes, in whichever file, leads to another folder. Code that is out of date cannot be found.
(numba adds the version of Python and the types of the arguments to the names in it.)

Rules kept here:

- The folders that are tried, in this order: ``__pycache__`` beside the kernels; the user's cache folder. Where neither
  can be written, a folder in the temporary directory that belongs to this user alone. Where ``NUMBA_CACHE_DIR`` is set,
  it takes the place of the first two. A folder that holds this machine code already is taken even if it cannot be
  written. An example is an image that was filled by ``kwire compile``.
- The files are pickles, so whoever can write one of them runs code here. A folder is used only if it belongs to this
  user, root, or (beside the kernels) whoever can change kwire itself. Its owner, its mode, and those of the folders
  that it is in are looked at (``_is_safe``). So is each file in a folder that others can reach.
- Folders of other sources beside the kernels are removed when they are ``OLD``: nobody else would.
- One process compiles a kernel, and others wait for it (``claimed``). A claim is a lock of the system on a file in the
  folder, so it ends with its process. Where there are no such locks, each process compiles for itself.
- Nothing here imports numba.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import os
import platform
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["announce", "claimed", "complete", "digest", "filled", "folder", "kernels", "read", "say", "write"]

HERE: Final = Path(__file__).parent
ELSEWHERE: Final = ("schema/keys.py", "wire.py")
"""What kernels import of kwire from outside of this package. A change of it is a change of theirs."""

OLD: Final = 30 * 24 * 3600
"""Seconds after which the machine code of sources that are not these is given up."""

PATIENCE: Final = 120.0
"""Seconds to wait for a kernel that another process compiles. A process that was stopped keeps its claims."""


@functools.cache
def digest() -> str:
    """What the machine code is made of, as 16 hexadecimal digits."""
    made = hashlib.sha256()
    for name in ("numba", "llvmlite", "numpy"):
        try:
            made.update(f"{name} {version(name)}\n".encode())
        except PackageNotFoundError:
            made.update(f"{name}\n".encode())
    # Not by path: the package may stand in a zip.
    package = files("kwire")
    modules = [one for one in package.joinpath("kernels").iterdir() if one.name.endswith(".py")]
    for one in (*sorted(modules, key=lambda one: one.name), *map(package.joinpath, ELSEWHERE)):
        text = one.read_bytes()
        made.update(f"{one.name} {len(text)}\n".encode() + text)
    made.update(_processor())
    return made.hexdigest()[:16]


def _processor() -> bytes:
    """What numba compiles for: the processor of this machine, unless somebody has told numba another one."""
    told = [os.environ.get(name, "") for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    if any(told):
        return " ".join(told).encode()
    try:
        lines = Path("/proc/cpuinfo").read_bytes().split(b"\n\n")[0].splitlines()
    except OSError:
        lines = []
    kept = [line for line in lines if line.split(b"\t")[0] in (b"model name", b"flags", b"Features", b"CPU part")]
    return b"\n".join([platform.machine().encode(), *kept])


def _candidates() -> Iterator[Path]:
    own = os.environ.get("NUMBA_CACHE_DIR")
    if own:
        # Nobody can change where a link led when it was looked at.
        yield Path(own).resolve()
        return
    yield HERE / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - keeps ~ where there is no home
    if not home.startswith("~"):
        yield Path(home).resolve() / "kwire"


@functools.cache
def folder() -> Path:
    """The folder of the machine code, which exists."""
    candidates = [base / f"kernels-{digest()}" for base in _candidates()]
    for one in candidates:
        if _holds_code(one) and _is_safe(one):
            return one
    for one in candidates:
        if _writable(one) and _is_safe(one):
            if one.parent == HERE / "__pycache__":
                _remove_old(one)
            return one
    return private_folder()


def _remove_old(current: Path) -> None:
    """Removes the folders beside ``current`` that nothing was written to for long."""
    for one in current.parent.glob("kernels-*"):
        with contextlib.suppress(OSError):
            if one != current and time.time() - one.stat().st_mtime > OLD:
                shutil.rmtree(one)


COMPLETE: Final = "complete"
"""The name of the file that says that there is machine code of every kernel."""


def complete() -> bool:
    """Whether there is machine code of every kernel, as who compiled it has noted."""
    return (folder() / COMPLETE).exists()


def filled() -> bool:
    """Whether there is machine code of these sources already (not necessarily of every kernel)."""
    return _holds_code(folder())


QUICK: Final = "quick."
"""What the names of files begin with that hold quick machine code: what LLVM has not optimised."""


def kernels() -> set[str]:
    """Of which kernels there is machine code, as ``module.name``. ``QUICK`` is before it where it is quick."""
    return {one.name.partition("-")[0] for one in folder().glob("*.nbi")}


def remove_quick() -> None:
    """Removes the quick machine code, which nobody needs where all is optimised."""
    for one in folder().glob(f"{QUICK}*"):
        with contextlib.suppress(OSError):
            one.unlink()


def read(name: str) -> bytes | None:
    """What was kept beside the machine code under this name; ``None`` where nothing was."""
    try:
        return (folder() / name).read_bytes()
    except OSError:
        return None


def write(name: str, data: bytes) -> None:
    """Keeps something beside the machine code, as a whole. A folder that cannot be written is no error."""
    part = folder() / f".{secrets.token_hex(8)}"
    with contextlib.suppress(OSError):
        try:
            with part.open("xb") as file:
                file.write(data)
            part.replace(folder() / name)
        finally:
            part.unlink(missing_ok=True)


@contextlib.contextmanager
def claimed(name: str, patience: float = PATIENCE) -> Iterator[bool]:
    """Within the block, nobody else has claimed ``name`` for this folder. Waits ``patience`` seconds for that.

    False where another process keeps it for longer, or where nothing can be claimed."""
    file = _claim(folder() / f".{name}.claim", patience)
    try:
        yield file is not None
    finally:
        if file is not None:
            # Whoever waits for this file finds that it is not there any more, and makes another one.
            with contextlib.suppress(OSError):
                (folder() / f".{name}.claim").unlink()
            os.close(file)


def _claim(path: Path, patience: float) -> int | None:
    if fcntl is None:
        return None
    until = time.monotonic() + patience
    while True:
        file = None
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), path.stat()):
                return file
        except FileNotFoundError:
            # It was given up between two of these calls.
            if not path.parent.is_dir():
                return None
        except BlockingIOError:
            if time.monotonic() >= until:
                os.close(file)  # type: ignore[arg-type]
                return None
            time.sleep(0.02)
        except OSError:
            if file is not None:
                os.close(file)
            return None
        if file is not None:
            os.close(file)


def _holds_code(path: Path) -> bool:
    try:
        return os.access(path, os.R_OK | os.X_OK) and any(path.glob("*.nbi"))
    except OSError:
        return False


def _writable(path: Path) -> bool:
    probe = path / f".{secrets.token_hex(8)}"
    try:
        for one in (*reversed(path.parents), path):
            if not one.exists():
                one.mkdir(mode=0o755, exist_ok=True)
        with probe.open("x") as file:
            probe.unlink()
            if _of_others(os.fstat(file.fileno())) and not _of_others(path.stat()):
                # The user lets others write to his files.
                path.chmod(0o700)
        return True
    except OSError:
        return False


def _is_safe(path: Path) -> bool:
    """Whether nobody else can put code into this folder, or could before."""
    if not hasattr(os, "getuid"):
        return True
    kernels = HERE.stat() if path.parent == HERE / "__pycache__" else None
    try:
        found = path.stat()
        if _of_others(found, kernels):
            return False
        # Whoever can change the folder that the kernels are in can change them.
        for one in [path.parent] if kernels is not None else path.parents:
            around = one.stat()
            # In a folder with the sticky bit, nobody but its owner renames what is another's.
            mode = around.st_mode & ~0o022 if around.st_mode & stat.S_ISVTX else around.st_mode
            if _of_others(around, kernels, mode):
                return False
        if not found.st_mode & 0o011:
            return True
        with os.scandir(path) as entries:
            return not any(_of_others(one.stat(), kernels) for one in entries)
    except OSError:
        return False


def _of_others(found: os.stat_result, kernels: os.stat_result | None = None, mode: int | None = None) -> bool:
    """Whether somebody else owns this or may write to it, who may not write to the ``kernels`` themselves."""
    mode = found.st_mode if mode is None else mode
    user, group = os.getuid(), os.getgid()
    owners, groups, loose = {0, user}, {0}, 0
    if user == group:
        # A group of the user alone, as systems make them.
        groups.add(group)
    if kernels is not None:
        owners.add(kernels.st_uid)
        loose = kernels.st_mode & 0o002
        if kernels.st_mode & 0o020:
            groups.add(kernels.st_gid)
    by_group = mode & 0o020 and found.st_gid not in groups
    return found.st_uid not in owners or bool(by_group or mode & 0o002 & ~loose)


def private_folder() -> Path:
    """A folder in the temporary directory that only this user can write to. It is the same for all processes if
    possible."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    path = Path(tempfile.gettempdir()) / f"kwire-kernels-{user}-{digest()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077:
            return path
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="kwire-kernels-"))


_told: list[str] = []
_ANNOUNCED: Final = "announced"
"""The name of the file that says when it was said last that kernels are compiled: short commands go on one after
another, and each would say it again."""
_AGAIN: Final = 600.0
"""After so many seconds somebody may have forgotten."""


def announce(helped: bool) -> None:
    """Says on standard error that kernels are compiled: once in a process, and not in each that goes on with it.

    ``helped``: by other processes."""
    if _told or _lately():
        return
    _told.append("compiling")
    own = os.environ.get("NUMBA_CACHE_DIR")
    if own and folder().parent != Path(own).resolve():
        say("NUMBA_CACHE_DIR is not used: it cannot be written, or others may write there")
    by = " in the background" if helped else ""
    say(f"compiling its kernels{by}, once for this environment ('kwire compile' does it ahead)")


def _lately() -> bool:
    now = time.time()
    try:
        found = (folder() / _ANNOUNCED).stat().st_mtime
    except OSError:
        found = -math.inf
    if abs(now - found) < _AGAIN:
        return True
    write(_ANNOUNCED, b"")
    return False


def say(sentence: str) -> None:
    """Says something about machine code on standard error, in a process that has announced that it compiles."""
    if _told:
        print(f"kwire: {sentence}", file=sys.stderr, flush=True)
