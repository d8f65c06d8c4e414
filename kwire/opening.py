"""Opens every file of a user: to read what is there, to write what is new.

Whoever else may write to a folder can put a pipe, a device or a link where a file was expected. Rules kept here:

- A file that was found in a folder is read only if it is a regular file, perhaps through a link. A pipe would never
  end, or wait for somebody who writes to it. That is asked of the open file, so nobody can change it in between. What a
  user has named (``named``) may be a pipe.
- Output is a new file under a name that nobody can guess. When it is whole, it takes the place of the file that has its
  name. A link there is replaced, not followed; so is a pipe. Only files in the system's own folders (``/dev/stdout``,
  ``/dev/fd/63``, ``/dev/null``) are written to as they are.
- On the way from a folder to a place below it no link is followed (``place``). Each folder is listed once, however many
  links lead to it (``below``).
- Errors are ``OSError`` with the public name of the file (``kwire.naming``).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from kwire.naming import public

__all__ = ["below", "check_file", "create_file", "is_regular", "open_file", "place", "replaced"]

_SYSTEM: Final = ("/dev/", "/proc/")
_MISSING: Final = 0
"""A flag that this system has not."""
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", _MISSING) | getattr(os, "O_NOCTTY", _MISSING)
_FOLDER: Final = getattr(os, "O_DIRECTORY", _MISSING)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", _MISSING)


def open_file(path: str | os.PathLike[str], *, named: bool = False, buffering: int = -1) -> BinaryIO:
    """A file that is there, open for reading. ``named``: the user gave its name, so that it may be a pipe.

    Raises ``OSError``.
    """
    with _public_errors():
        if named:
            return open(path, "rb", buffering)  # noqa: PTH123
        # A device may do something when it is opened.
        _check(os.stat(path), path)  # noqa: PTH116
        file: BinaryIO = open(path, "rb", buffering, opener=_at_once)  # noqa: SIM115 - whoever asked closes it
        try:
            _check(os.fstat(file.fileno()), path)
        except BaseException:
            file.close()
            raise
        return file


def check_file(source: object, what: str) -> None:
    """Raises ``TypeError`` for what cannot be read: it is neither a path nor an open file. ``what``: for the error."""
    if not (hasattr(source, "read") or hasattr(source, "readinto")):
        way = "io.BytesIO(data) makes a file of bytes" if isinstance(source, bytes | bytearray | memoryview) else ""
        said = f"{what} is a path or a file that is open in binary mode, not {type(source).__name__}"
        raise TypeError(f"{said}: {way}" if way else said)


def is_regular(path: str | os.PathLike[str]) -> bool:
    """Whether ``open_file`` would read this, which was found in a folder. False for what is not there."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116
    except (OSError, ValueError):
        return False


def create_file(path: str | os.PathLike[str]) -> BinaryIO:
    """A new file, open for writing.

    Raises ``FileExistsError`` where anything has its name, even a link to nothing; ``OSError``.
    """
    with _public_errors():
        return open(path, "xb")  # noqa: PTH123


@contextlib.contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[tuple[Path, str]]:
    """What to open in place of ``path``, and in which mode.

    It is a new file, which takes its name when the block has ended well. Raises ``OSError``.
    """
    final = Path(path)
    if _is_of_the_system(final):
        yield final, "w"
        return
    if not final.name or final.is_dir():
        raise OSError(errno.EINVAL, "a folder: the output is a file, which needs a name", public(path))
    import secrets  # and hmac, and OpenSSL

    partial = final.with_name(f".{secrets.token_hex(16)}.partial")
    try:
        # "x" is O_CREAT and O_EXCL: what is there already is neither opened nor followed.
        yield partial, "x"
        partial.replace(final)
    except BaseException as error:
        ours = isinstance(error, OSError) and error.filename is not None and os.fspath(error.filename) == str(partial)
        if not (ours and isinstance(error, FileExistsError)):
            partial.unlink(missing_ok=True)
        if ours and isinstance(error, OSError):
            error.filename, error.filename2 = public(path), None
        raise


def place(source: str, root: str, below: str) -> None:
    """Move the file ``source`` to ``below``, a path in the folder ``root``. Makes the folders on the way.

    Raises ``OSError``, also for a link on the way.
    """
    *folders, name = below.split("/")
    if os.open not in os.supports_dir_fd or not _FOLDER:
        Path(root, *folders).mkdir(parents=True, exist_ok=True)
        Path(source).replace(Path(root, below))
        return
    with _public_errors():
        Path(root).mkdir(parents=True, exist_ok=True)
        folder = os.open(root, os.O_RDONLY | _FOLDER)
        try:
            for number, one in enumerate(folders, 1):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(one, dir_fd=folder)
                try:
                    inner = os.open(one, os.O_RDONLY | _FOLDER | _NO_LINK, dir_fd=folder)
                except OSError as error:
                    if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                        raise
                    wrong = "/".join((root, *folders[:number]))
                    raise OSError(errno.ENOTDIR, "a link, or no folder: nothing is written there", wrong) from None
                os.close(folder)
                folder = inner
            os.replace(source, name, dst_dir_fd=folder)
        finally:
            os.close(folder)


def below(folder: str | os.PathLike[str], *, links: bool = False, recursive: bool = True) -> Iterator[str]:
    """The paths of the files in ``folder`` and its folders, in no order.

    ``links``: links to folders are followed too, each folder once. Raises ``OSError`` for ``folder`` itself.
    """
    with _public_errors():
        first = os.stat(folder)  # noqa: PTH116
        known = {(first.st_dev, first.st_ino)}
        waiting, linked = [os.fspath(folder)], list[str]()
        with os.scandir(folder):
            pass
    while waiting or linked:
        # Where a link and a folder are the same, the folder gives the names.
        one = waiting.pop() if waiting else linked.pop()
        with contextlib.suppress(OSError), os.scandir(one) as entries:
            if one != os.fspath(folder):
                found = os.stat(one)  # noqa: PTH116
                if (found.st_dev, found.st_ino) in known:
                    continue
                known.add((found.st_dev, found.st_ino))
            inside = sorted(entries, key=lambda entry: entry.name, reverse=True)
            for entry in inside:
                if not entry.is_dir():
                    yield entry.path
                elif recursive and not entry.is_symlink():
                    waiting.append(entry.path)
                elif recursive and links:
                    linked.append(entry.path)


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | _NO_WAIT)


def _check(found: os.stat_result, path: str | os.PathLike[str]) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "this is not a file", os.fspath(path))


def _is_of_the_system(path: Path) -> bool:
    """Whether this stands where only the system puts something: standard output, a descriptor, a terminal."""
    absolute = os.path.abspath(path)  # noqa: PTH100 - links are what names are here
    if not absolute.startswith(_SYSTEM) or not path.exists() or path.is_dir():
        return False
    return not os.stat(os.path.dirname(absolute)).st_mode & 0o022  # noqa: PTH116, PTH120


@contextlib.contextmanager
def _public_errors() -> Iterator[None]:
    """Let errors name a file without credentials."""
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, str | os.PathLike):
            error.filename = public(error.filename)
        raise
