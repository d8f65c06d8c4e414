"""Which files a path stands for, and how they are opened: through ``pyarrow.fs``, on any file system that it knows.

A path is a local path or a URI (``s3://bucket/dir``, ``gs://``, ``hdfs://``, ``abfs://``, ``file:///``). It names

- a file;
- a folder: the files below it that are wanted (links to folders are followed, each folder once). For captures these are
  all but the ones whose name, or whose folder's name, begins with ``_`` or ``.`` (what Spark and others leave behind,
  such as ``_SUCCESS``), for log segments the ones that are named like one. What lies beside captures and is none, by
  its name and by its first bytes, is passed over: a worker looks at these (``File.is_foreign``), the driver opens no
  file;
- a pattern: ``*`` and ``?`` match within one name, ``**`` any number of folders, ``[abc]`` one character and
  ``{a,b}`` either. A path that exists is taken literally, whatever characters it has.

``Choice`` narrows what was found, by name and time, as the options of Spark's own file sources do.

The driver lists, the workers open. A ``File`` carries its file system, which pickles as its options; so the workers
need no settings of their own, and credentials come from where the worker's environment has them, or from options
(``kwire.spark.stores``).

Some give credentials in a URI all the same. They are used, and are in no name of a file and in no error: names have no
user information and no options, and what a library says is left out where it quotes from them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyarrow import fs

from kwire.capture.compressed import Around, DamagedError, decompressed
from kwire.capture.magics import is_capture
from kwire.errors import CaptureError
from kwire.naming import OPTIONS, public, secrets_of
from kwire.opening import below, is_regular, open_file, place
from kwire.spark.prefetch import Prefetched, StoreError
from kwire.spark.stores import NONE, Stores

if TYPE_CHECKING:
    from kwire.capture.splits import Split

__all__ = [
    "EVERY",
    "Broken",
    "Choice",
    "File",
    "FolderOf",
    "filesystem_of",
    "find",
    "in_groups",
    "opened",
    "pairs_of",
    "put",
    "unescaped",
    "visible",
]

_BESIDE = 64 << 10
"""Bytes of a file that stands beside a segment."""

CAPTURE_NAME = re.compile(
    r".*\.(?:pcap|pcapng|cap|dmp|ntar)(?:[._-]?\d+)*(?:\.(?:gz|zst|zstd|bz2|lz4|xz))?", re.IGNORECASE | re.DOTALL
)
"""How captures are named, rotated and compressed ones too: ``broker.pcap``, ``trace.pcap12``, ``trace.pcap.3.gz``."""


Pairs = tuple[tuple[str, str], ...]
"""Names of columns and what stands behind their ``=``, as the folders of a file have it, from the uppermost on."""

_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")


class Broken(NamedTuple):
    """How a file is damaged: behind so many of its bytes, decompressed, and why."""

    at: int
    why: str


class UpTo(Around):
    """A stream that ends in ``DamagedError`` where ``broken`` says, though there may be more now."""

    def __init__(self, source: Any, broken: Broken) -> None:
        super().__init__(source)
        self._broken = broken
        self._left = broken.at

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to ``size`` bytes (-1 or None: all). Raises ``DamagedError`` behind the last."""
        wanted = self._left if size is None or size < 0 else min(size, self._left)
        data = bytes(self._source.read(wanted) or b"") if self._left else b""
        if not data and size != 0:
            raise DamagedError(self._broken.why)
        self._left -= len(data)
        return data


@dataclass(frozen=True, slots=True)
class File:
    """A file that was found. ``name`` is what the user knows it as: a local path, or a URI (without credentials).

    ``asked``: it was named, or matches a pattern; else it is one of a folder's. ``split``: so much of the file.
    """

    filesystem: Any
    path: str
    name: str
    size: int | None
    asked: bool
    changed: datetime | None = None
    """When it was last written, UTC; None where the file system does not say."""
    pairs: Pairs = field(default=(), kw_only=True, repr=False)
    """What its folders say of partition columns."""
    split: Split | None = field(default=None, kw_only=True, repr=False)
    broken: Broken | None = field(default=None, kw_only=True)
    """It is damaged. Others go on from there, so it is not tried again."""

    def open(self) -> Any:
        """A stream of the file's bytes, from where its split begins on. Raises ``OSError``, of bytes that are to blame
        ``DamagedError``.

        What is compressed with gzip, zstd, bzip2 or lz4 is decompressed while it is read, whatever its name is.
        """
        if self.broken is not None and not self.broken.at:
            raise DamagedError(self.broken.why)
        stream = self.raw(self.split.begin) if self.split is not None else decompressed(self.raw())
        return stream if self.broken is None else UpTo(stream, self.broken)

    def raw(self, begin: int = 0) -> Any:
        """A stream of the bytes that are stored, from ``begin`` on. Raises ``OSError``, which says nothing of them."""
        if not isinstance(self.filesystem, fs.LocalFileSystem):
            try:
                return Prefetched(self.filesystem.open_input_file(self.path), begin)
            except (OSError, pa.ArrowException) as error:
                raise StoreError(str(error)) from error
        # Python's own: captures are read from it to where they are worked on, without a copy.
        stream = open_file(self.path)
        if begin:
            stream.seek(begin)
        return stream

    def is_foreign(self) -> bool:
        """Whether this is no capture, but something that lies in a folder of captures: it has neither their names nor
        their first bytes, decompressed. Raises ``OSError``."""
        if self.asked or self.split is not None or CAPTURE_NAME.fullmatch(self.path.rpartition("/")[2]):
            return False
        try:
            with self.open() as stream:
                return not is_capture(stream.read(4))
        except DamagedError:
            return True  # what cannot be decompressed is no capture; what cannot be opened may be one

    def splits(self, most: int) -> list[File]:
        """The parts of some ``most`` bytes in which the capture can be read; itself where that is one. Reads no more of
        it than ``kwire.capture.splits.find`` says. What is compressed, or cannot be read, is one."""
        from kwire.capture.splits import find

        if self.size is None or self.size <= most:
            return [self]
        try:
            with self.filesystem.open_input_file(self.path) as stream:
                found = find(lambda offset, count: bytes(stream.read_at(count, offset)), self.size, most)
        except (OSError, pa.ArrowException):
            return [self]
        return [replace(self, split=one) for one in found] or [self]

    def beside(self, name: str) -> bytes | None:
        """What the file ``name`` in the same folder holds; None where there is none. Raises ``OSError``."""
        path = f"{self.path.rpartition('/')[0]}/{name}"
        if isinstance(self.filesystem, fs.LocalFileSystem) and not is_regular(path):
            return None
        try:
            with opened(self.filesystem, path) as stream:
                return bytes(stream.read(_BESIDE))
        except FileNotFoundError:
            return None


@dataclass(frozen=True, slots=True)
class FolderOf:
    """The folder of a log segment: ``kwire.log.decided.Beside``."""

    file: File

    @property
    def name(self) -> str:
        """The name of the segment."""
        return self.file.path.rpartition("/")[2]

    def names(self) -> list[str]:
        """The files in the folder. Raises ``OSError``."""
        infos = _listed(self.file.filesystem, self.file.path.rpartition("/")[0], False)
        return [one.path.rpartition("/")[2] for one in infos if one.type == fs.FileType.File]

    def open(self, name: str) -> Any:
        """One of them, decompressed. Raises ``OSError``."""
        path = f"{self.file.path.rpartition('/')[0]}/{name}"
        file = replace(self.file, path=path, split=None, broken=None)
        return file.open()


def opened(filesystem: Any, path: str) -> Any:
    """A stream of the bytes of a file that was found in a folder. Raises ``OSError``."""
    if isinstance(filesystem, fs.LocalFileSystem):
        return open_file(path)
    return filesystem.open_input_stream(path, compression=None)


def put(filesystem: Any, file: str, root: str, below: str, made: set[str]) -> None:
    """Moves a file to ``below``, a path in the folder ``root``, and makes the folders on the way; ``made``: those that
    were. Raises ``OSError``, on this machine also for a link on the way."""
    if isinstance(filesystem, fs.LocalFileSystem):
        place(file, root, below)
        return
    folder = f"{root}/{below}".rpartition("/")[0]
    if folder not in made:
        filesystem.create_dir(folder, recursive=True)
        made.add(folder)
    filesystem.move(file, f"{root}/{below}")


def pairs_of(name: str, base: str | None = None) -> Pairs:
    """What the folders of a file below ``base`` (None: all of its folders) say; the lowest run of names with ``=``."""
    found: list[tuple[str, str]] = []
    below = name if base is None else name[len(base) :]
    for one in reversed(below.split("/")[:-1]):
        column, equals, value = one.partition("=")
        if column and equals and value:
            found.append((unescaped(column), value))
        elif found:
            break
    return tuple(reversed(found))


def unescaped(text: str) -> str:
    """``text`` without the escapes that Spark writes in names of folders: ``%3A`` is ``:``."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def in_groups(files: Iterable[File], most: int, opening: int = 0) -> list[tuple[File, ...]]:
    """``files`` in groups of about ``most`` bytes, in order; each counts ``opening`` bytes more than it has.

    A larger file is one, as is each split, and a file whose size is not known."""
    most = max(1, most)
    groups: list[tuple[File, ...]] = []
    some: list[File] = []
    size = 0
    for file in files:
        more = most if file.split is not None or file.size is None else file.size + opening
        if some and size + more > most:
            groups.append(tuple(some))
            some, size = [], 0
        some.append(file)
        size += more
    return [*groups, tuple(some)] if some else groups


def visible(below: str) -> bool:
    """Whether no part of ``below``, a path in a folder, begins with ``_`` or ``.``."""
    return not any(part.startswith(("_", ".")) for part in below.split("/"))


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of the files that paths stand for are taken; as the options of Spark's file sources of these names."""

    glob: str | None = None
    """``pathGlobFilter``: a pattern of the file's name, without folders."""
    recursive: bool = True
    """``recursiveFileLookup``: a folder's folders as well. Here it is so unless it is said otherwise."""
    after: datetime | None = None
    """``modifiedAfter``: files that were written later than this, in UTC."""
    before: datetime | None = None
    """``modifiedBefore``: files that were written earlier than this, in UTC."""

    def takes(self, name: str, changed: datetime | None) -> bool:
        """Whether a file of this name is taken. Raises ``CaptureError`` for a ``glob`` that is none."""
        if self.glob is not None and _pattern("", self.glob).fullmatch("/" + name) is None:
            return False
        if self.after is None and self.before is None:
            return True
        # Of a file system that has no times nothing is left out.
        return changed is None or not (
            (self.after is not None and changed <= self.after) or (self.before is not None and changed >= self.before)
        )


EVERY = Choice()
"""The choice of every file (``Choice``)."""


def find(
    paths: Iterable[str],
    wanted: Callable[[str], bool] = visible,
    choice: Choice = EVERY,
    *,
    growing: bool = False,
    stores: Stores = NONE,
    base: str | None = None,
    what: str = "files",
) -> list[File]:
    """The files that ``paths`` stand for, each once, sorted within each path.

    ``wanted`` is asked about the files of folders: it gets the path below the folder. Files that are named, or that
    match a pattern, are taken without asking. ``choice`` holds for all of them. ``growing``: a folder that is there,
    and a pattern, may stand for no file yet. ``stores``: the options of object stores. ``base``: the folder below which
    names of folders are partition columns (``File.pairs``), by itself the one that is named or matched. ``what``: how
    errors call what is wanted. Raises ``CaptureError`` for a path that stands for no file, or whose file system cannot
    be reached.
    """
    found: dict[str, File] = {}
    above = None if base is None else _name_of(base, stores)
    for path in paths:
        try:
            files = _find(path, wanted, choice.recursive, stores, above)
            empty = not files and not (growing and _may_be_empty(path, stores))
        except (OSError, pa.ArrowException, ValueError) as error:
            name, secrets = public(path), secrets_of(path)
            said = stores.hidden(" ".join(str(error).split()))
            if isinstance(error, UnicodeError):
                said = "a name in it is not UTF-8, which Arrow does not read"
            if any(one in said for one in secrets):
                said = f"the file system cannot be reached ({type(error).__name__})"
            raise CaptureError(said, file=name) from None
        if empty:
            raise CaptureError(_nothing(path, what, choice.recursive, stores), file=public(path))
        for file in files:
            if choice.takes(file.path.rpartition("/")[2], file.changed):
                found.setdefault(file.name, file)
    return list(found.values())


def _find(path: str, wanted: Callable[[str], bool], recursive: bool, stores: Stores, above: str | None) -> list[File]:
    filesystem, root, prefix = filesystem_of(path, stores)
    info = filesystem.get_file_info(root)
    files: list[File] = []

    def take(infos: Iterable[Any], taken: Callable[[str], Any], asked: bool, base: str | None = None) -> None:
        known: dict[str, Pairs] = {}
        for one in infos:
            if one.type == fs.FileType.File and taken(one.path):
                name = prefix + one.path
                folder = name.rpartition("/")[0]
                pairs = known.get(folder)
                if pairs is None:
                    pairs = known[folder] = _pairs(name, folder if base is None else prefix + base, above)
                files.append(File(filesystem, one.path, name, one.size, asked, one.mtime, pairs=pairs))

    if info.type == fs.FileType.File:
        take([info], lambda path: True, True)
        return files

    folders = [root]
    if info.type == fs.FileType.NotFound:
        root, wild = _split(root)
        if not wild:
            return []
        pattern = _pattern(root, wild)
        take(_listed(filesystem, root, "/" in wild or "**" in wild), pattern.fullmatch, True)
        folders = _folders(filesystem, root, wild, pattern)
    for folder in folders:
        start = len(folder)
        take(_listed(filesystem, folder, recursive), lambda path: wanted(path[start:].lstrip("/")), False, folder)  # noqa: B023
    return sorted(files, key=lambda file: file.name)


def _pairs(name: str, folder: str, above: str | None) -> Pairs:
    """What the folders of a file below ``folder``, or ``above``, say. Raises ``CaptureError`` for one that is not."""
    if above is None:
        return pairs_of(name, folder)
    plain = name.removeprefix("file://")
    if not plain.startswith(above.rstrip("/") + "/"):
        raise CaptureError(f"it is not in {above}, which the option 'basePath' says", file=name)
    return pairs_of(plain, above)


def _name_of(path: str, stores: Stores) -> str:
    """A folder as the names of files in it begin, without ``file://``."""
    try:
        _, root, prefix = filesystem_of(path, stores)
    except (OSError, pa.ArrowException, ValueError) as error:
        said = stores.hidden(" ".join(str(error).split()))
        if any(one in said for one in secrets_of(path)):
            said = type(error).__name__
        raise CaptureError(f"the option 'basePath': {said}", file=public(path)) from None
    return (prefix + root).removeprefix("file://")


def _folders(filesystem: Any, root: str, wild: str, pattern: re.Pattern[str]) -> list[str]:
    """The folders that a pattern matches, hidden ones where its last name begins as theirs do. With ``**`` it matches
    what is in them itself."""
    if "**" in wild:
        return []
    if not isinstance(filesystem, fs.LocalFileSystem):
        infos = filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True, recursive="/" in wild))
        found = [one.path for one in infos if one.type == fs.FileType.Directory]
    else:
        found, level = [], [Path(root)]
        for _ in range(wild.count("/") + 1):
            level = [one for folder in level for one in _children(folder)]
            found += map(str, level)
    hidden = wild.rpartition("/")[2][:1] in "._"
    return sorted(one for one in found if pattern.fullmatch(one) and (hidden or visible(one.rpartition("/")[2])))


def _children(folder: Path) -> list[Path]:
    try:
        return [one for one in folder.iterdir() if one.is_dir()]
    except OSError:
        return []


def _listed(filesystem: Any, root: str, recursive: bool) -> list[Any]:
    """What stands in a folder, and in its folders; nothing where there is none."""
    if not isinstance(filesystem, fs.LocalFileSystem):
        found: list[Any] = filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True, recursive=recursive))
        return found
    # Arrow follows a link to its own folder for as long as a path can be.
    try:
        names = list(below(root, links=True, recursive=recursive))
    except FileNotFoundError:
        return []
    infos: list[Any] = filesystem.get_file_info(names)
    return infos


def _nothing(path: str, what: str, recursive: bool, stores: Stores) -> str:
    """Why ``path`` stands for no file."""
    filesystem, root, _ = filesystem_of(path, stores)
    if filesystem.get_file_info(root).type != fs.FileType.Directory:
        return "no such file"
    return f"a folder without {what}" + ("" if recursive else "; recursiveFileLookup=false leaves out its folders")


def _may_be_empty(path: str, stores: Stores) -> bool:
    filesystem, root, _ = filesystem_of(path, stores)
    return bool(_split(root)[1]) or filesystem.get_file_info(root).type == fs.FileType.Directory


def filesystem_of(path: str, stores: Stores = NONE) -> tuple[Any, str, str]:
    """The file system of ``path``, the path in it, and what stands before such a path in a file's name."""
    if path.startswith("file:/") and not path.startswith("file://"):
        path = "file://" + path[5:]  # as Spark's catalog writes it
    scheme, colon, rest = path.partition("://")
    if not colon:
        return fs.LocalFileSystem(), os.path.abspath(path), ""  # noqa: PTH100 - a pattern is no Path
    if scheme == "file":
        return fs.LocalFileSystem(), os.path.abspath(rest), "file://"  # noqa: PTH100
    # s3a and s3n are what Hadoop calls s3.
    scheme = {"s3a": "s3", "s3n": "s3"}.get(scheme, scheme)
    found = OPTIONS.search(rest)
    options, rest = (found.group(), rest[: found.start()]) if found else ("", rest)
    authority, _, below = rest.partition("/")
    # Only the authority is given to the parser of URIs: a pattern is none.
    made = stores.filesystem(scheme, authority, options)
    filesystem, base = made or fs.FileSystem.from_uri(f"{scheme}://{authority}/{options}")
    base = base.strip("/")
    if base:  # the bucket or container is the first part of a path in it
        return filesystem, f"{base}/{below}".rstrip("/"), f"{scheme}://"
    host = public(f"{scheme}://{authority}")
    return filesystem, f"/{below}".rstrip("/") or "/", host


WILD = re.compile(r"[*?\[{]")


def _split(path: str) -> tuple[str, str]:
    """``path`` in two: folders without wildcards, and the rest from the first name with one on."""
    found = WILD.search(path)
    if not found:
        return path, ""
    cut = path.rfind("/", 0, found.start()) + 1
    return path[:cut].rstrip("/") or path[:cut][:1], path[cut:]


def _pattern(literal: str, wild: str) -> re.Pattern[str]:
    """The expression that a path matches as a whole."""
    out = []
    pos = 0
    depth = 0
    while pos < len(wild):
        char = wild[pos]
        pos += 1
        if char == "*" and wild.startswith("*/", pos):
            out.append("(?:[^/]+/)*")
            pos += 2
        elif char == "*" and wild.startswith("*", pos):
            out.append(".*")
            pos += 1
        elif char == "*":
            out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[" and (end := wild.find("]", pos + 1)) > 0:
            inside = wild[pos:end].replace("\\", "\\\\").replace("[", "\\[")
            out.append("[^" + inside[1:] if inside[0] in "!^" else "[" + inside)
            out.append("]")
            pos = end + 1
        elif char == "{" and "}" in wild[pos:]:
            depth += 1
            out.append("(?:")
        elif char == "}" and depth:
            depth -= 1
            out.append(")")
        elif char == "," and depth:
            out.append("|")
        else:
            out.append(re.escape(char))
    try:
        return re.compile(re.escape(literal.rstrip("/") + "/") + "".join(out), re.DOTALL)
    except re.error as error:
        raise CaptureError(f"not a pattern: {error}", file=f"{literal}/{wild}") from None
