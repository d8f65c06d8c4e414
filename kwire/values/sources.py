"""Where schemas come from: a folder, the topic ``_schemas``, a registry that the user names, or texts by topic.

    schemas = Schemas.of("schemas/")                              # a folder
    schemas = Schemas.of("https://registry.example:8081")         # a registry over REST
    schemas = Schemas.of({"orders": Path("order.avsc").read_text()})
    schemas = Schemas.of("data/_schemas-0")                       # the registry's own topic, in a broker's data folder
    schemas = Schemas.of("registry.pcap")                         # or in a capture
    schemas = Schemas.of({"orders": "msgpack"})                   # a format that needs no schema; also "orders=msgpack"
    schemas = Schemas.of("cbor")                                  # of all topics that have no schema
    schemas = Schemas.of([..., ...])                              # several of them, the first asked first

In a folder, the name of a file says what it is:

- ``17.avsc``: the schema with the id 17; ``4f1c...-....avsc``: that with this GUID (AWS Glue and Azure have such, too)
- ``orders-value/3.avsc``: version 3 of the subject ``orders-value``
- ``orders-value.avsc``, ``orders.proto``: of this subject, or of the values of this topic
- ``schemas.json``: what a registry answers to ``GET /schemas``, with all names that schemas have

``.avsc`` is Avro, ``.proto`` Protobuf, ``.desc`` and ``.binpb`` a descriptor set of Protobuf, ``.json`` JSON Schema.

Rules kept here:

- A registry is asked for what values name, and for nothing else. What it has answered is not asked again. Nothing
  follows a redirect: credentials would go with it.
- Credentials are shown nowhere: names and errors go through ``kwire.naming``.
- Schemas are input like any other: their size, their number and what they refer to have limits.
"""

from __future__ import annotations

import base64
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kwire import stored
from kwire.errors import CaptureError, KwireError, SchemaError
from kwire.naming import public
from kwire.opening import below, open_file
from kwire.values.catalog import Catalog, Source
from kwire.values.framing import KEY, VALUE, Named, Space
from kwire.values.written import AVRO, BARE, JSON, LONGEST, PROTOBUF, Reference, Written, closure, format_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ANY", "Catalog", "Schemas", "Source", "of_folder", "of_log", "of_records"]

MOST_FILES: Final = 100_000
"""Files of a folder of schemas that are looked at."""
TOPIC: Final = "_schemas"
"""The topic in which Confluent's registry keeps its schemas, if nobody has called it otherwise."""


ANY: Final = "*"
"""In place of a topic: all that have no schema."""


class Schemas:
    """Several sources as one, the first asked first, and what topics have.

    ``topics``: the schemas of topics whose values name none, by topic (or ``ANY``) and part (``key`` or ``value``).
    """

    validates: bool = False
    """Whether values in JSON must hold to their JSON Schema (``validated``)."""

    def __init__(self, sources: Sequence[Source] = (), topics: Mapping[tuple[str, str], Written] | None = None) -> None:
        self.sources: tuple[Source, ...] = tuple(sources)
        self.topics: dict[tuple[str, str], Written] = dict(topics or {})
        self._names: dict[tuple[Space, int | str], list[Written]] = {}
        self._closures: dict[tuple[Any, ...], Mapping[str, str] | KwireError] = {}

    @classmethod
    def of(cls, where: Any, **options: Any) -> Schemas:
        """Schemas from what a user names: a path, a URL, a table of ``_schemas``, texts by topic, or several of these.

        ``options`` are those of ``kwire.values.registry.Registry``. Raises ``KwireError`` for what has no schemas.
        """
        if isinstance(where, Schemas):
            return where
        if where is None:
            return cls()
        if isinstance(where, Mapping):
            return cls(topics=dict(_of_topics(where)))
        if isinstance(where, str) and (bare := _BARE.fullmatch(where)):
            return cls(topics={(bare[1] or ANY, VALUE): Written(bare[2], "")})
        if isinstance(where, str | os.PathLike):
            return cls([_source(os.fspath(where), options)])
        if hasattr(where, "column_names") or hasattr(where, "schema"):
            return cls([of_records(where.column("key"), where.column("value"))])
        if isinstance(where, Written):
            return cls([Catalog([where])])
        if isinstance(where, Iterable):
            parts = [cls.of(one, **options) for one in where]
            topics = {name: one for part in reversed(parts) for name, one in part.topics.items()}
            return cls([source for part in parts for source in part.sources], topics)
        if hasattr(where, "named"):
            return cls([where])
        raise KwireError(
            f"schemas come from a folder, a URL, a table or a dict by topics, not from {type(where).__name__}"
        )

    def __bool__(self) -> bool:
        return bool(self.sources or self.topics)

    def __getstate__(self) -> dict[str, Any]:
        return {"sources": self.sources, "topics": self.topics, "validates": self.validates}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Schemas.__init__(self, state["sources"], state["topics"])
        self.validates = state["validates"]

    def find(self, named: Named) -> list[Written]:
        """The different schemas that are called so: several, where sources do not agree."""
        key = (named.space, named.name)
        if key not in self._names:
            found = [one for source in self.sources for one in source.named(*key)]
            # The one with a name of its own says more: of which subject it is.
            self._names[key] = found
        return self._names[key]

    def of_topic(self, topic: str, part: str) -> list[Written]:
        """The schemas that values of a topic may have which name none, the likeliest first."""
        given = self.topics.get((topic, part))
        if given is not None:
            return [given]
        subjects = (f"{topic}-{part}", topic) if part == VALUE else (f"{topic}-{part}",)
        for subject in subjects:
            if found := self.versions(subject):
                return found[::-1]
        every = self.topics.get((ANY, part))
        return [] if every is None else [every]

    def validated(self) -> Schemas:
        """The same schemas, to which values in JSON must hold: those that do not are ``invalid``.

        Raises ``MissingExtraError`` without the extra ``values``.
        """
        from kwire.values import validity

        validity.library()
        made = Schemas(self.sources, self.topics)
        made.validates = True
        return made

    def versions(self, subject: str) -> list[Written]:
        """The versions of a subject, the oldest first: those of the first source that has some."""
        return next((list(found) for source in self.sources if (found := source.versions(subject))), [])

    def newest(self, subject: str) -> Written | None:
        """The newest version of a subject."""
        for source in self.sources:
            found = source.version(subject, -1)
            if found is not None:
                return found
        return None

    def references(self, written: Written) -> Mapping[str, str]:
        """The texts of the schemas that one refers to (``closure``). Raises ``SchemaError``."""
        key = written.content
        if key not in self._closures:
            try:
                made = dict(closure(written, self._referred))
            except SchemaError as error:
                self._closures[key] = error
            else:
                if written.format == PROTOBUF:
                    for source in self.sources:
                        made = {**getattr(source, "files", {}), **made}
                self._closures[key] = made
        found = self._closures[key]
        if isinstance(found, KwireError):
            raise found
        return found

    def _referred(self, reference: Reference) -> Written | None:
        for source in self.sources:
            found = source.version(reference.subject, reference.version)
            if found is not None:
                return found
        return None

    def fetched(self, topics: Iterable[str] | None = None, subjects: Iterable[str] | None = None) -> Schemas:
        """The same schemas without a registry: for processes that shall ask none.

        ``topics``, ``subjects``: only those of their keys and values, and of these subjects (both None: all).
        """
        wanted = None
        if topics is not None or subjects is not None:
            wanted = [*(subjects or ()), *(f"{one}-{part}" for one in topics or () for part in (KEY, VALUE))]
        made = Schemas([source.fetched(wanted) for source in self.sources], self.topics)
        made.validates = self.validates
        return made


def _of_topics(where: Mapping[Any, Any]) -> Iterator[tuple[tuple[str, str], Written]]:
    for name, given in where.items():
        topic, part = (name, VALUE) if isinstance(name, str) else name
        if isinstance(given, Written):
            yield (topic, part), given
            continue
        if isinstance(given, str) and given in BARE:
            yield (topic, part), Written(given, "")
            continue
        if isinstance(given, os.PathLike) or (isinstance(given, str) and _LIKE_A_FILE.fullmatch(given)):
            path, _, message = os.fspath(given).partition("#")
            with open_file(path, named=True) as file:
                yield (topic, part), replace(_of_file(path, file.read(LONGEST + 1)), message=message or None)
            continue
        if not isinstance(given, str):
            raise KwireError(f"the schema of the topic {topic!r} is a text or a path, not {type(given).__name__}")
        try:
            yield (topic, part), Written(format_of(given), given, subject=f"{topic}-{part}")
        except SchemaError as error:
            raise SchemaError(error.message, f"the schema of the topic {topic}") from None


_LIKE_A_FILE: Final = re.compile(r"[^\n{}\[\]\"]+\.(?:avsc|json|proto|desc|binpb|protoset)(?:#[\w.]+)?")


_WITH_PASSWORD: Final = re.compile(r"(?:\w*:?/{1,2})?[^/:@]*:[^/@]*@")
"""What a URL is without its scheme, or with half of it."""


_BARE: Final = re.compile(rf"(?:([\w.-]+)=)?({'|'.join(BARE)})", re.ASCII)
"""What says the format of a topic, or of all: no path, unless that has a folder before it."""


def _source(where: str, options: Mapping[str, Any]) -> Source:
    if where[:8].lower().startswith(("http://", "https://")):
        from kwire.values.registry import Registry

        return Registry(where, **options)
    path = Path(where)
    if _WITH_PASSWORD.match(where) and not path.exists():
        raise KwireError("a path of schemas that is not there, and no URL of a registry, such as https://registry:8081")
    if where.endswith(".parquet"):
        return _of_parquet(where)
    if path.is_dir() and not _has_segments(path):
        return of_folder(where)
    if path.is_dir() or where.endswith(".log"):
        return of_log(where)
    if _is_capture(where):
        return of_records(*_of_capture(where))
    with open_file(path, named=True) as file:
        return Catalog(_of_index(where, file.read(64 * LONGEST + 1)))


def _is_capture(path: str) -> bool:
    from kwire.capture.compressed import decompressed
    from kwire.capture.magics import is_capture

    with open_file(path, named=True) as file, decompressed(file) as stream:
        return is_capture(stream.read(4))


def _of_capture(path: str) -> tuple[list[Any], list[Any]]:
    """Keys and values of the topic ``_schemas`` in a capture, in the order in which they were captured."""
    from kwire import capture

    keys: list[Any] = []
    values: list[Any] = []
    for batch in capture.read(path, "records", columns=["key", "value"], topics=[TOPIC]):
        keys += batch.column("key").to_pylist()
        values += batch.column("value").to_pylist()
    if not keys:
        raise KwireError(f"{public(path)}: no record of the topic {TOPIC} was captured")
    return keys, values


def _has_segments(path: Path) -> bool:
    from kwire.log import has_segment_name

    try:
        return any(has_segment_name(Path(one).name) for one in below(path))
    except OSError as error:
        raise CaptureError(error.strerror or str(error), file=os.fspath(path)) from None


# --- a folder ---------------------------------------------------------------------------------------------------------

_ENDINGS: Final = {
    ".avsc": AVRO,
    ".proto": PROTOBUF,
    ".desc": PROTOBUF,
    ".binpb": PROTOBUF,
    ".protoset": PROTOBUF,
    ".json": JSON,
}
_BINARY: Final = (".desc", ".binpb", ".protoset")
_GUID: Final = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")


def of_folder(folder: str | os.PathLike[str]) -> Catalog:
    """The schemas of a folder and its folders.

    Raises ``SchemaError`` for a file that is none, ``KwireError`` for a folder without one, ``OSError``.
    """
    made = Catalog()
    root = os.fspath(folder)
    for number, path in enumerate(sorted(below(root))):
        if number >= MOST_FILES:
            raise KwireError(f"{public(root)}: more than {MOST_FILES} files are no folder of schemas")
        ending = Path(path).suffix.lower()
        if ending not in _ENDINGS:
            continue
        with open_file(path) as file:
            content = file.read(64 * LONGEST + 1)
        relative = Path(os.path.relpath(path, root))
        if ending == ".json" and content.lstrip()[:1] == b"[" and b'"schema"' in content:
            for one in _of_index(path, content):
                made.add(one)
            continue
        one = _of_file(path, content)
        if ending == ".proto":
            made.files[relative.as_posix()] = one.text
        made.add(replace(one, **_called(relative)))
    if not len(made):
        raise KwireError(f"{public(root)}: no file in this folder is a schema: these end in {', '.join(_ENDINGS)}")
    return made


def _called(path: Path) -> dict[str, Any]:
    """What the name of a file in a folder says of its schema."""
    # A name of a file may have bytes that are no UTF-8.
    path = Path(os.fspath(path).encode(errors="backslashreplace").decode())
    stem = path.name.partition(".")[0] if path.name.endswith(".schema.json") else path.stem
    parent = path.parent.name
    if stem.isascii() and stem.isdecimal() and len(stem) < 19:
        if parent and parent != "ids":
            return {"subject": parent, "version": int(stem)}
        return {"id": int(stem)}
    if _GUID.fullmatch(stem):
        return {"guid": str(uuid.UUID(stem))}
    return {"subject": stem}


def _of_file(path: str, content: bytes) -> Written:
    ending = Path(path).suffix.lower()
    if len(content) > LONGEST:
        raise SchemaError(f"a schema is up to {LONGEST} bytes", public(path))
    if ending in _BINARY:
        return Written(PROTOBUF, base64.b64encode(content).decode())
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SchemaError("a schema is text in UTF-8", public(path)) from None
    if ending == ".proto":
        return Written(PROTOBUF, text)
    if ending == ".avsc":
        return Written(AVRO, text)
    try:
        return Written(format_of(text), text)
    except SchemaError as error:
        raise SchemaError(error.message, public(path)) from None


def _of_index(path: str, content: bytes) -> Iterator[Written]:
    """The schemas of an answer to ``GET /schemas``."""
    try:
        if len(content) > 64 * LONGEST:
            raise ValueError(f"more than {64 * LONGEST} bytes")
        found = stored.parsed(content)
        if not isinstance(found, list):
            raise ValueError("no list of schemas")
        yield from [Written.of(one) for one in found]
    except stored.UNFIT as wrong:
        raise SchemaError(f"this is no list of schemas as a registry gives it: {wrong}", public(path)) from None


# --- the topic of a registry ------------------------------------------------------------------------------------------


def of_records(keys: Any, values: Any) -> Catalog:
    """The schemas in records of the topic ``_schemas``, in their order: arrays or lists of keys and of values.

    Records that say nothing of schemas are passed over. Those that cannot be read are counted (``Catalog.damaged``).
    """
    made = Catalog()
    for key, value in zip(_listed(keys), _listed(values), strict=True):
        if key is None:
            continue
        try:
            _learn(made, stored.parsed(key), None if value is None else stored.parsed(value))
        except stored.UNFIT:
            made.damaged += 1
    return made


def _listed(column: Any) -> list[Any]:
    found: list[Any] = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    return found


def _learn(made: Catalog, key: Any, value: Any) -> None:
    kind = key["keytype"]
    if kind == "SCHEMA":
        subject, version = stored.text(key["subject"]), stored.number(key["version"], 0)
        if value is None:
            made.remove(subject, version)
        else:
            made.add(Written.of(value, subject=subject, version=version))
    elif kind == "DELETE_SUBJECT" and value is not None:
        subject = stored.text(value["subject"])
        for one in made.versions(subject):
            if one.version is not None and one.version <= stored.number(value["version"], 0):
                made.remove(subject, one.version)


def of_log(path: str | os.PathLike[str], topic: str = TOPIC) -> Catalog:
    """The schemas of the topic ``_schemas`` in a broker's data folder, in the folder of its partition, or a segment.

    Raises ``KwireError`` where there is no such topic, ``CaptureError``, ``OSError``.
    """
    from kwire import log

    segments = [one for one in log.find(os.fspath(path)) if one.topic in (topic, None)]
    if not segments:
        raise KwireError(f"{public(path)}: there is no segment of the topic {topic}")
    keys: list[Any] = []
    values: list[Any] = []
    for segment in segments:
        for batch in log.read(segment, columns=["key", "value", "is_control"]):
            rows = batch.filter(_plain(batch))
            keys += rows.column("key").to_pylist()
            values += rows.column("value").to_pylist()
    return of_records(keys, values)


def _plain(batch: pa.RecordBatch) -> pa.Array:
    import pyarrow.compute as pc

    return pc.invert(pc.fill_null(batch.column("is_control"), True))


def _of_parquet(path: str) -> Catalog:
    from pyarrow import parquet

    with open_file(path, named=True) as file:
        table = parquet.read_table(file)
    order = [(one, "ascending") for one in ("partition", "offset") if one in table.column_names]
    table = table.sort_by(order) if order else table
    if "topic" in table.column_names:
        import pyarrow.compute as pc

        table = table.filter(pc.equal(table.column("topic"), TOPIC))
    return of_records(table.column("key"), table.column("value"))
