"""Which versions of a schema can read each other's values, by the rules of Avro and of Confluent's registry.

    from kwire.values import Schemas, compatible

    schemas = Schemas.of("schemas/")
    for one in compatible.check(schemas.versions("orders-value"), schemas, "FULL"):
        print(one)              # orders-value v3 cannot read values of orders-value v2: $.amount: ...

``level`` is one of Confluent's, with ``_TRANSITIVE`` for all earlier versions and not only the one before:

- ``BACKWARD``: a reader with a version reads what was written with the one before.
- ``FORWARD``: a reader with the version before reads what is written with this one.
- ``FULL``: both. ``NONE``: nothing is compared.

Rules kept here:

- Avro is decided by the programs that read values (``kwire.values.avro``): what these cannot read is a break.
- Protobuf and JSON Schema are decided by the rules of Confluent's registry for changes of a field or a keyword.
- What no rule decides is ``undecided``. It is neither a break nor none.
- Types inside each other are bounded. No loop follows a reference twice.

Sources: https://avro.apache.org/docs/1.12.0/specification/#schema-resolution,
https://docs.confluent.io/platform/current/schema-registry/fundamentals/schema-evolution.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kwire import stored
from kwire.errors import KwireError, SchemaError
from kwire.values.sources import Schemas
from kwire.values.written import AVRO, JSON, PROTOBUF, Written

__all__ = ["LEVELS", "Break", "Pair", "Verdict", "check", "reads"]

LEVELS: Final = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
"""The levels of Confluent's registry (tuple of str)."""
MOST: Final = 100
"""Breaks of a pair that are named."""
DEEPEST: Final = 64
"""Types inside each other that are compared."""


class Break(NamedTuple):
    """A place of a schema at which a reader cannot read all values of a writer."""

    path: str
    said: str

    def __str__(self) -> str:
        return f"{self.path}: {self.said}"


class Verdict(NamedTuple):
    """What a reader cannot read, and the places that no rule decides."""

    breaks: tuple[Break, ...]
    undecided: tuple[Break, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two versions, of which the reader cannot read what was written with the other, or nobody can say."""

    reader: Written
    writer: Written
    verdict: Verdict

    def __str__(self) -> str:
        if self.verdict.breaks:
            return f"{self.reader} cannot read values of {self.writer}: {self.verdict.breaks[0]}"
        return f"no rule says whether {self.reader} reads values of {self.writer}: {self.verdict.undecided[0]}"


def check(versions: Sequence[Written], schemas: Schemas, level: str = "BACKWARD") -> list[Pair]:
    """The pairs of versions that a level compares and that break, or that no rule decides.

    ``versions``: of a subject, the oldest first. ``schemas``: where what they refer to comes from. Raises
    ``KwireError`` for a level that there is not.
    """
    if level not in LEVELS:
        raise KwireError(f"no level {level!r}: there are {', '.join(LEVELS)}")
    made = []
    way, _, rest = level.partition("_")
    for at, later in enumerate(versions):
        earlier = versions[:at] if rest else versions[max(at - 1, 0) : at]
        for one in reversed(earlier):
            if way in ("BACKWARD", "FULL"):
                made.append(Pair(later, one, reads(later, one, schemas)))
            if way in ("FORWARD", "FULL"):
                made.append(Pair(one, later, reads(one, later, schemas)))
    return [one for one in made if one.verdict.breaks or one.verdict.undecided]


def reads(reader: Written, writer: Written, schemas: Schemas) -> Verdict:
    """What a reader's schema cannot read of values that were written with another one."""
    if reader.format != writer.format:
        said = f"{writer.format.capitalize()} cannot be read as {reader.format.capitalize()}"
        return Verdict((Break("$", said),), ())
    if reader.content == writer.content:
        return Verdict((), ())
    breaks, undecided = [], []
    try:
        for one, known in _RULES[reader.format](reader, writer, schemas):
            (breaks if known else undecided).append(one)
            if len(breaks) + len(undecided) >= MOST:
                break
    except KwireError as error:
        undecided.append(Break("$", " ".join(str(error).split())[:300]))
    return Verdict(tuple(dict.fromkeys(breaks)), tuple(dict.fromkeys(undecided)))


_Found = Iterator[tuple[Break, bool]]
"""Breaks, and whether a rule says that they are."""


def _avro(reader: Written, writer: Written, schemas: Schemas) -> _Found:
    from kwire.values import avro
    from kwire.values.avro.programs import programs_of

    one, other = (avro.parse(each.text, schemas.references(each)) for each in (reader, writer))
    for refusal in programs_of((other,), one, True, "json").refused:
        yield Break(refusal.path, refusal.said), refusal.known


# --- Protobuf ---------------------------------------------------------------------------------------------------------

_KINDS: Final = {
    **dict.fromkeys(("INT32", "INT64", "UINT32", "UINT64", "BOOL", "ENUM"), "a varint"),
    **dict.fromkeys(("SINT32", "SINT64"), "a zigzag varint"),
    **dict.fromkeys(("FIXED32", "SFIXED32"), "4 bytes"),
    **dict.fromkeys(("FIXED64", "SFIXED64"), "8 bytes"),
    **dict.fromkeys(("STRING", "BYTES"), "text or bytes"),
    "FLOAT": "a float",
    "DOUBLE": "a double",
    "MESSAGE": "a message",
    "GROUP": "a group",
}
"""Types of fields that are read as each other."""


def _protobuf(reader: Written, writer: Written, schemas: Schemas) -> _Found:
    from kwire.values import protobuf

    one, other = (protobuf.compiled(each.text, schemas.references(each)).root for each in (reader, writer))
    own = dict(_messages(one.message_type))
    others = dict(_messages(other.message_type))
    for name, message in others.items():
        if name in own:
            yield from _fields(name, own[name], message, (one.package, other.package))
        elif not message.options.map_entry:
            yield Break(name, "the reader's schema has no such message"), True


def _messages(several: Any, around: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Messages by their names without the package, which may change."""
    for one in several:
        if len(around) < DEEPEST:
            names = (*around, one.name)
            yield ".".join(names), one
            yield from _messages(one.nested_type, names)


def _fields(name: str, reader: Any, writer: Any, packages: tuple[str, str]) -> _Found:
    own = {one.number: one for one in reader.field}
    written = {one.number: one for one in writer.field}
    for number, one in written.items():
        path = f"{name}.{one.name}"
        other = own.get(number)
        if other is not None:
            yield from _field(path, other, one, packages)
        elif _is_required(one):
            yield Break(path, "the writer's field is required, and the reader does not have it"), True
        elif _oneof(writer, one) is not None:
            yield Break(path, "a field of a oneof is not there any more"), True
    for number, one in own.items():
        if _is_required(one) and (number not in written or not _is_required(written[number])):
            yield Break(f"{name}.{one.name}", "the reader's field is required, and may not be there"), True
    yield from _oneofs(name, reader, writer)


def _field(path: str, reader: Any, writer: Any, packages: tuple[str, str]) -> _Found:
    kinds = [one.Type.Name(one.type).removeprefix("TYPE_") for one in (reader, writer)]
    own, other = (_KINDS.get(one, one) for one in kinds)
    if own != other:
        yield Break(path, f"{kinds[1].lower()} cannot be read as {kinds[0].lower()}"), True
        return
    names = [
        one.type_name.removeprefix(".").removeprefix(package).removeprefix(".")
        for one, package in zip((reader, writer), packages, strict=True)
    ]
    if kinds[0] in ("MESSAGE", "GROUP") and names[0] != names[1]:
        yield Break(path, f"the message {names[1]} is read as {names[0]}"), True
    several = [one.label == one.LABEL_REPEATED for one in (reader, writer)]
    if several[0] != several[1] and own not in ("text or bytes", "a message"):
        yield Break(path, "a number is single in one and repeated in the other"), True
    elif several[0] != several[1]:
        # The last one is taken, or a list has one: nothing is lost only in one of the ways.
        yield Break(path, "it is single in one and repeated in the other"), False


def _oneofs(name: str, reader: Any, writer: Any) -> _Found:
    written = {one.number: _oneof(writer, one) for one in writer.field}
    moved: dict[str, list[int]] = {}
    for one in reader.field:
        of = _oneof(reader, one)
        if of is not None:
            moved.setdefault(of, []).append(one.number)
    for of, numbers in moved.items():
        free = [number for number in numbers if number in written and written[number] is None]
        held = {written[number] for number in numbers if written.get(number) is not None}
        if len(free) > 1 or (free and held) or len(held) > 1:
            yield Break(f"{name}.{of}", "fields that may all be there are one oneof for the reader"), True


def _oneof(message: Any, field: Any) -> str | None:
    """The oneof of a field. One that protoc has made for ``optional`` is none."""
    if not field.HasField("oneof_index") or field.proto3_optional:
        return None
    name: str = message.oneof_decl[field.oneof_index].name
    return name


def _is_required(field: Any) -> bool:
    features = field.options.features if field.options.HasField("features") else None
    required = features is not None and features.field_presence == features.LEGACY_REQUIRED
    return bool(field.label == field.LABEL_REQUIRED or required)


# --- JSON Schema ------------------------------------------------------------------------------------------------------

_LEAST: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_MOST: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_SAID: Final = (
    "title",
    "description",
    "default",
    "examples",
    "$comment",
    "$schema",
    "$id",
    "id",
    "definitions",
    "$defs",
)
"""Keywords that decide nothing."""
_DECIDED: Final = frozenset(
    (*_LEAST, *_MOST, *_SAID, "type", "properties", "required", "additionalProperties", "items", "enum", "const")
)
_TYPES: Final = frozenset(("null", "boolean", "object", "array", "number", "string", "integer"))


def _json(reader: Written, writer: Written, schemas: Schemas) -> _Found:
    try:
        found = []
        for one in (reader, writer):
            root = stored.parsed(one.text)
            others = {name: stored.parsed(text) for name, text in schemas.references(one).items()}
            found.append(_Document(root, others))
        yield from _Schemas(*found).compared(found[0].root, found[1].root, "$", 0)
    except stored.UNFIT as error:
        raise SchemaError(f"this is no JSON Schema: {error}") from None


class _Document(NamedTuple):
    root: Any
    others: Mapping[str, Any]

    def referred(self, schema: Any, depth: int = 0) -> Any:
        """A schema, or the one that it refers to. None: it is not there, or refers to itself."""
        if not isinstance(schema, dict) or "$ref" not in schema:
            return schema
        document, _, pointer = stored.text(schema["$ref"]).partition("#")
        found = self.root if not document else self.others.get(document)
        for step in pointer.strip("/").split("/") if pointer.strip("/") else ():
            step = step.replace("~1", "/").replace("~0", "~")
            found = found.get(step) if isinstance(found, dict) else None
        return None if depth >= DEEPEST else self.referred(found, depth + 1)


class _Schemas:
    """Two JSON Schemas, compared keyword by keyword."""

    def __init__(self, reader: _Document, writer: _Document) -> None:
        self._reader, self._writer = reader, writer
        self._done: set[tuple[int, int]] = set()
        """Pairs that were compared: what refers to them again, or they to themselves, has nothing to add."""

    def compared(self, own: Any, other: Any, path: str, depth: int) -> _Found:
        own, other = self._reader.referred(own), self._writer.referred(other)
        pair = (id(own), id(other))
        if pair in self._done:
            return
        self._done.add(pair)
        if depth > DEEPEST or own is None or other is None:
            yield Break(path, "a reference is not there, or it is nested too deep"), False
            return
        own, other = (({} if one else None) if isinstance(one, bool) else one for one in (own, other))
        if other is None or own == {}:
            return
        if own is None:
            yield Break(path, "the reader takes no value"), True
            return
        yield from self._schema(own, other, path, depth)

    def _schema(self, own: Any, other: Any, path: str, depth: int) -> _Found:
        differ = sorted(one for one in {*own, *other} - _DECIDED if own.get(one) != other.get(one))
        if differ:
            yield Break(path, f"no rule compares {', '.join(differ[:3])}"), False
        types, others = _types(own), _types(other)
        if missing := others - types:
            yield Break(path, f"{', '.join(sorted(missing))} is no type of the reader's"), True
            return
        for words, worse in ((_LEAST, max), (_MOST, min)):
            for word in words:
                if word in own and (word not in other or worse(own[word], other[word]) != other[word]):
                    yield (
                        Break(path, f"{word} is {own[word]} for the reader, and {other.get(word, 'open')} before"),
                        True,
                    )
        yield from self._chosen(own, other, path)
        if "object" in types & others:
            yield from self._object(own, other, path, depth)
        if "array" in types & others:
            items, before = own.get("items", True), other.get("items", True)
            if isinstance(items, list) or isinstance(before, list):
                if items != before:
                    yield Break(path, "no rule compares tuples"), False
            else:
                yield from self.compared(items, before, f"{path}[]", depth + 1)

    def _chosen(self, own: Any, other: Any, path: str) -> _Found:
        allowed, before = (_values(one) for one in (own, other))
        if allowed is None:
            return
        if before is None:
            yield Break(path, "the reader takes only some values"), True
        elif missing := [one for one in before if one not in allowed]:
            yield Break(path, f"the reader does not take the value {str(missing[0])[:40]!r}"), True

    def _object(self, own: Any, other: Any, path: str, depth: int) -> _Found:
        members, before = own.get("properties") or {}, other.get("properties") or {}
        for name in own.get("required") or ():
            if name not in (other.get("required") or ()) and "default" not in (members.get(name) or {}):
                yield Break(f"{path}.{name}", "it is required, and may not be there"), True
        closed, open_ = own.get("additionalProperties", True), other.get("additionalProperties", True)
        for name, one in members.items():
            if name in before:
                yield from self.compared(one, before[name], f"{path}.{name}", depth + 1)
            elif open_ is True:
                if one not in (True, {}):
                    yield Break(f"{path}.{name}", "the writer may have written anything of this name"), True
            elif open_ is not False:
                yield from self.compared(one, open_, f"{path}.{name}", depth + 1)
        for name, one in before.items():
            if name not in members and closed is False:
                yield Break(f"{path}.{name}", "the reader takes no member of this name"), True
            elif name not in members and closed is not True:
                yield from self.compared(closed, one, f"{path}.{name}", depth + 1)
        if closed is False and open_ is not False:
            yield Break(path, "the reader takes no members of other names"), True
        elif closed is not True and open_ is True:
            yield Break(path, "members of other names may be anything before"), True
        elif closed not in (True, False) and open_ is not False:
            yield from self.compared(closed, open_, f"{path}.*", depth + 1)


def _types(schema: Any) -> frozenset[str]:
    found = schema.get("type")
    if found is None:
        return _TYPES
    several = frozenset(found if isinstance(found, list) else [stored.text(found)])
    return several | {"integer"} if "number" in several else several


def _values(schema: Any) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    found: list[Any] | None = schema.get("enum")
    return found


_RULES: Final = {AVRO: _avro, PROTOBUF: _protobuf, JSON: _json}
