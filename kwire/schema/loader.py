"""Where the schema files are, and which of them to parse for a name or an API key.

The built-in files are in one of two places. These are the ``schemas`` folder beside the package (a checkout, an
editable install), and ``kwire/_schemas`` (a wheel, a zip on ``PYTHONPATH``). The first wins: an editable install may
leave an old copy of the second.

Strategy: parse as little as possible. A request or response is found by its key, which file names start with. Any other
message is found by an index of the head lines of all files. One regular expression over each text makes it once. Files
are parsed whole, when the first of their messages is asked for.

Rules kept here: a message has one definition. A folder that the user loads may add messages and may replace built-in
ones; the folder loaded last wins. Replacing is by message name, so a folder that redefines ``FetchRequest`` leaves
``FetchResponse`` alone. All of it is thread-safe: a lock guards the tables.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from kwire.errors import SchemaError
from kwire.opening import below, open_file
from kwire.schema.model import Message
from kwire.schema.parser import parse

__all__ = ["Catalog", "builtin_root"]

_HEAD: Final = re.compile(r"^(request|response|header|data) ([A-Z][A-Za-z0-9]*)((?: [a-z0-9]+ \S+)*)", re.MULTILINE)
LARGEST_FILE: Final = 16 << 20
"""Bytes of a schema file; Kafka's largest has 20 kB."""
_KEY: Final = re.compile(r" key (\d+)")
_SUFFIXES: Final = {"request": "Request", "response": "Response"}
_NUMBERED: Final = re.compile(r"(\d+)_[a-z0-9_]+\.kwire$")


class Folder(Protocol):
    """What the loader needs of a folder or file: ``pathlib.Path`` has it, and so has a path inside a zip."""

    @property
    def name(self) -> str: ...
    def is_dir(self) -> bool: ...
    def is_file(self) -> bool: ...
    def iterdir(self) -> Iterator[Folder]: ...
    def joinpath(self, child: str, /) -> Folder: ...
    def read_bytes(self) -> bytes: ...


def builtin_root() -> Folder:
    """The folder of the schemas that kwire comes with; ``SchemaError`` when the installation has none."""
    package = Path(__file__).parent.parent
    on_disk: tuple[Path, ...] = (package.parent / "schemas", package / "_schemas")
    for found in on_disk:
        # Any project may have a folder of this name beside its packages: ours has headers.kwire.
        if (found / "headers.kwire").is_file():
            return found
    import importlib.resources
    import zipfile

    inside = importlib.resources.files("kwire")
    candidates: list[Folder] = [inside.joinpath("_schemas")]
    if isinstance(inside, zipfile.Path):
        candidates.append(zipfile.Path(inside.root, inside.at.removesuffix("kwire/") + "schemas/"))
    for candidate in candidates:
        if candidate.joinpath("headers.kwire").is_file():
            return candidate
    raise SchemaError("the schema files are missing from this installation of kwire", file=str(package))


class Catalog:
    """All messages that can be asked for: the built-in ones and those of loaded folders."""

    def __init__(self) -> None:
        self._root: Folder | None = None
        self._lock = threading.RLock()
        self._messages: dict[str, Message] = {}
        self._parsed: set[str] = set()
        self._files_by_key: dict[int, tuple[str, Folder]] | None = None
        self._index: dict[str, tuple[str, Folder]] | None = None
        self._api_names: dict[int, str] = {}
        self._loaded: dict[str, Message] = {}
        self._by_key: dict[tuple[str, int], Message | None] = {}
        self.generation: int = 0
        """How many folders were loaded: what was made of all messages is out of date when it has changed."""

    # -- questions

    def by_key(self, kind: str, api_key: int) -> Message | None:
        """The request or response of an API key; ``None`` when there is none."""
        try:
            return self._by_key[kind, api_key]
        except KeyError:
            pass
        with self._lock:
            found = self._find_by_key(kind, api_key)
            self._by_key[kind, api_key] = found
            return found

    def by_name(self, name: str) -> Message:
        """The message of that name; ``SchemaError`` when there is none."""
        found = self._messages.get(name)
        if found is not None:
            return found
        with self._lock:
            place = self._heads().get(name)
            if place is None:
                raise SchemaError(f"no message is called {name!r}", file="schemas")
            self._parse(*place)
            return self._messages[name]

    def names(self, folder: str = "") -> tuple[str, ...]:
        """Names of all messages, sorted; of one folder (``groups``, ``kraft``, ...) when it is given."""
        with self._lock:
            heads = self._heads()
            if folder:
                return tuple(sorted(name for name, place in heads.items() if place[0].startswith(folder + "/")))
            return tuple(sorted({*heads, *self._loaded}))

    def api_keys(self) -> dict[int, str]:
        """API key -> API name (``{0: "Produce", ...}``), in order of key."""
        with self._lock:
            self._heads()
            loaded = {
                one.api_key: one.api_name
                for one in self._loaded.values()
                if one.kind == "request" and one.api_key is not None
            }
            return dict(sorted({**self._api_names, **loaded}.items()))

    # -- loading

    def load_folder(self, path: str | Path) -> list[Message]:
        """Parse every ``*.kwire`` file below ``path`` and add its messages; nothing is added when one is wrong.

        Raises ``SchemaError``, also when the folder or a message in it does not exist or exists twice.
        """
        top = Path(path)
        if not top.is_dir():
            raise SchemaError("not a folder", file=str(path))
        found: dict[str, Message] = {}
        keys: dict[tuple[str, int], Message] = {}
        for file in sorted(Path(one) for one in below(top) if one.endswith(".kwire")):
            for one in parse(_text(file, str(file)), str(file)):
                other = found.get(one.name)
                if one.kind in _SUFFIXES and one.api_key is not None:
                    other = keys.setdefault((one.kind, one.api_key), one) if other is None else other
                if other is not None and other is not one:
                    what = f"{one.name} or its key stands in {other.file}:{other.line} already"
                    raise SchemaError(what, one.file, one.line)
                found[one.name] = one
        if not found:
            raise SchemaError("no .kwire files in this folder", file=str(path))
        with self._lock:
            self._loaded.update(found)
            self._messages.update(found)
            self._by_key.clear()
            self.generation += 1
        return list(found.values())

    def texts(self) -> list[tuple[str, bytes]]:
        """The files of the built-in schemas: names and contents."""
        return [(name, file.read_bytes()) for name, file in _walk(self._open_root(), "")]

    # -- inside

    def _find_by_key(self, kind: str, api_key: int) -> Message | None:
        for one in reversed(self._loaded.values()):
            if one.kind == kind and one.api_key == api_key:
                return one
        if self._files_by_key is None:
            self._files_by_key = {}
            for file in self._open_root().iterdir():
                match = _NUMBERED.match(file.name)
                if match:
                    self._files_by_key[int(match[1])] = (file.name, file)
        place = self._files_by_key.get(api_key)
        if place is None:
            return None
        self._parse(*place)
        for one in self._messages.values():
            if one.kind == kind and one.api_key == api_key:
                return one
        return None

    def _open_root(self) -> Folder:
        if self._root is None:
            self._root = builtin_root()
        return self._root

    def _heads(self) -> dict[str, tuple[str, Folder]]:
        if self._index is None:
            index: dict[str, tuple[str, Folder]] = {}
            for name, file in _walk(self._open_root(), ""):
                for kind, stem, attributes in _HEAD.findall(_text(file, name)):
                    index[stem + _SUFFIXES.get(kind, "")] = (name, file)
                    key = _KEY.match(attributes)
                    if kind == "request" and key:
                        self._api_names[int(key[1])] = stem
            self._index = index
        return self._index

    def _parse(self, name: str, file: Folder) -> None:
        if name in self._parsed:
            return
        for one in parse(_text(file, name), f"schemas/{name}"):
            self._messages.setdefault(one.name, one)  # a loaded folder may have replaced it
        self._parsed.add(name)


def _walk(folder: Folder, prefix: str) -> Iterator[tuple[str, Folder]]:
    for one in sorted(folder.iterdir(), key=_name):
        if one.name.endswith(".kwire"):
            yield prefix + one.name, one
        elif "." not in one.name and one.is_dir():
            yield from _walk(one, f"{prefix}{one.name}/")


def _name(file: Folder) -> str:
    return file.name


def _content(file: Folder) -> bytes:
    if not isinstance(file, Path):
        # In a zip: it is one of our own.
        return file.read_bytes()
    with open_file(file) as stream:
        return stream.read(LARGEST_FILE + 1)


def _text(file: Folder, name: str) -> str:
    try:
        content = _content(file)
        if len(content) > LARGEST_FILE:
            raise SchemaError(f"more than {LARGEST_FILE} bytes", file=name)
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SchemaError(f"not UTF-8 (byte {error.start})", file=name) from None
    except OSError as error:
        raise SchemaError(f"cannot be read: {error.strerror or error}", file=name) from None
