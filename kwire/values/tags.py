"""Which fields of a schema have tags, as Confluent's registry keeps them: ``PII`` and the like.

- a member ``confluent:tags`` of a field of Avro, or of a property of JSON Schema
- the option ``(confluent.field_meta).tags`` of a field of Protobuf
- ``metadata`` of the schema, where ``tags`` has patterns of paths: ``**.email``, ``Order.customer.*``

Rules kept here:

- A path is that of the values: records inside each other with dots, elements of lists and values of maps with the path
  of their field, a branch of a union of several types with its name.
- A schema is input: types inside each other and fields are bounded. Beyond the bounds a schema is refused, so that
  nothing is shown because it was not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kwire import stored
from kwire.errors import SchemaError
from kwire.values.written import AVRO, JSON, PROTOBUF, Written

__all__ = ["tagged"]

_TAGS: Final = "confluent:tags"
DEEPEST: Final = 64
"""Types inside each other."""
MOST: Final = 100_000
"""Types that are looked at."""


def tagged(written: Written, references: Mapping[str, str]) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Tags of a schema, each with what the paths of its fields match, in small letters. Raises ``SchemaError``."""
    for pattern, given in written.tags:
        for tag in given:
            yield tag, _pattern(pattern)
    if written.format == PROTOBUF:
        yield from _of_protobuf(written, references)
        return
    if written.format not in (AVRO, JSON) or not any(_TAGS in text for text in (written.text, *references.values())):
        return
    kind = _OfAvro if written.format == AVRO else _OfJson
    try:
        root = stored.parsed(written.text)
        others = {name: stored.parsed(text) for name, text in references.items()}
        looked = kind(root, others)
        found = list(looked.fields(root, (), 0))
    except stored.UNFIT as error:
        raise SchemaError(f"its tags cannot be read: {error}") from None
    for path, tags in found:
        # Where a type has itself inside, its fields stand at any depth.
        anywhere = r"(?:.*\.)?" + re.escape(path[-1].lower())
        for tag in tags:
            yield stored.text(tag), re.compile(anywhere if looked.circle else re.escape(".".join(path).lower()))


def _pattern(text: str) -> re.Pattern[str]:
    """``**`` is any path, ``*`` a name. It may begin with the name of a record, of which any part may be left out: more
    fields are masked rather than fewer."""
    names = text.lower().split(".")
    several = []
    for first in range(len(names)):
        rest = ".".join(names[first:])
        parts = re.split(r"(\*\*\.|\*\*|\*)", rest)
        known = {"**.": r"(?:.*\.)?", "**": r".*", "*": r"[^.]*"}
        # The last name alone is that of any field of this name.
        several.append(("(?:.*\\.)?" if first else "") + "".join(known.get(one, re.escape(one)) for one in parts))
    return re.compile("|".join(several))


_META: Final = 1088
_META_TAGS: Final = 3
"""Confluent's option ``field_meta`` of a field, and its member ``tags``."""


def _of_protobuf(written: Written, references: Mapping[str, str]) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Of messages: any field of this name is masked, in whichever message it is."""
    from kwire.values import protobuf

    waiting = [one for file in protobuf.compiled(written.text, references).files for one in file.message_type]
    while waiting:
        message = waiting.pop()
        waiting += message.nested_type
        for one in message.field:
            for tag in _options(one.options, (_META, _META_TAGS)):
                yield tag.decode("utf-8", "replace"), re.compile(r"(?:.*\.)?" + re.escape(one.name.lower()))


def _options(message: Any, numbers: tuple[int, ...]) -> Iterator[bytes]:
    """The values of a field that the runtime does not know, inside of others by their numbers."""
    from google.protobuf.empty_pb2 import Empty
    from google.protobuf.unknown_fields import UnknownFieldSet

    for one in UnknownFieldSet(message):
        if one.field_number == numbers[0] and isinstance(one.data, bytes):
            if len(numbers) == 1:
                yield one.data
            else:
                yield from _options(Empty.FromString(one.data), numbers[1:])


_Fields = Iterator[tuple[tuple[str, ...], Sequence[Any]]]


class _Walk:
    def __init__(self, root: Any, others: Mapping[str, Any]) -> None:
        self._root, self._others = root, others
        self._left = MOST
        self._open: list[Any] = []
        self.circle: bool = False
        """Whether a type has itself inside."""

    def fields(self, type_: Any, path: tuple[str, ...], depth: int) -> _Fields:
        """The fields with tags."""
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            raise ValueError("more types than are looked at")
        yield from self.of(type_, path, depth)

    def of(self, type_: Any, path: tuple[str, ...], depth: int) -> _Fields:
        raise NotImplementedError


class _OfAvro(_Walk):
    def __init__(self, root: Any, others: Mapping[str, Any]) -> None:
        super().__init__(root, others)
        self._records: dict[str, Any] = {}
        waiting = [root, *others.values()]
        while waiting:
            one = waiting.pop()
            if isinstance(one, list):
                waiting += one
            elif isinstance(one, dict):
                if one.get("type") in ("record", "error"):
                    self._records.setdefault(stored.text(one["name"]).rpartition(".")[2], one)
                waiting += [value for value in one.values() if isinstance(value, dict | list)]

    def of(self, type_: Any, path: tuple[str, ...], depth: int) -> _Fields:
        if isinstance(type_, str):
            type_ = self._records.get(type_.rpartition(".")[2])
        if isinstance(type_, list):
            several = [one for one in type_ if one != "null"]
            for one in several:
                name = one if isinstance(one, str) else one.get("name") or one.get("type")
                inner = path if len(several) < 2 else (*path, stored.text(name).rpartition(".")[2])
                yield from self.fields(one, inner, depth + 1)
        elif isinstance(type_, dict) and "fields" in type_:
            if any(one is type_ for one in self._open):
                self.circle = True
                return
            self._open.append(type_)
            for one in type_["fields"]:
                own = (*path, stored.text(one["name"]))
                if one.get(_TAGS):
                    yield own, one[_TAGS]
                yield from self.fields(one["type"], own, depth + 1)
            self._open.pop()
        elif isinstance(type_, dict):
            for name in ("items", "values", "type"):
                if isinstance(type_.get(name), dict | list) or (name != "type" and name in type_):
                    yield from self.fields(type_[name], path, depth + 1)


class _OfJson(_Walk):
    def of(self, type_: Any, path: tuple[str, ...], depth: int) -> _Fields:
        if not isinstance(type_, dict):
            return
        if "$ref" in type_:
            document, _, pointer = stored.text(type_["$ref"]).partition("#")
            found = self._others.get(document) if document else self._root
            for step in pointer.strip("/").split("/") if pointer.strip("/") else ():
                found = found[step.replace("~1", "/").replace("~0", "~")] if isinstance(found, dict) else None
            if any(one is found for one in self._open):
                self.circle = True
                return
            self._open.append(found)
            yield from self.fields(found, path, depth + 1)
            self._open.pop()
        for name, one in (type_.get("properties") or {}).items():
            own = (*path, name)
            if isinstance(one, dict) and one.get(_TAGS):
                yield own, one[_TAGS]
            yield from self.fields(one, own, depth + 1)
        for word in ("items", "additionalProperties"):
            yield from self.fields(type_.get(word), path, depth + 1)
        for word in ("oneOf", "anyOf", "allOf"):
            for one in type_.get(word) or ():
                yield from self.fields(one, path, depth + 1)
