"""Kafka's own message definitions (JSON with ``//`` comments) -> ``model.Message``, and what differs from ours.

Apache Kafka generates its protocol classes from one JSON file per message, and its jars carry these files. Requests,
responses and headers are in ``kafka-clients`` (``common/message/``). Embedded schemas are in the coordinator,
``kafka-metadata``, ``kafka-raft`` and ``kafka-storage`` jars. So each release can be compared with the schema files
mechanically.

Strategy: a definition becomes an ordinary ``Message``. Two messages are compared version by version through their
layouts, because definitions may say the same thing in different ways. For example, a range may be cut by the range of
the struct around it. Versions that Kafka's definition no longer has are no difference: kwire keeps what Kafka has
dropped.

Rules kept here:

- A definition that cannot be understood is a ``SchemaError`` that names the file. An unknown key of a definition is one
  too, because ignoring it could change the wire format silently.
- A definition is read in time that is linear in its length, within limits that have names (``LONGEST_DEFINITION``,
  ``MOST_BRACKETS``, those of ``checks``). What it becomes can be written as schema text that reads the same.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

from kwire.errors import SchemaError
from kwire.opening import below, open_file
from kwire.schema import model
from kwire.schema.checks import MOST_FIELDS, MOST_LEVELS, MOST_TAG, allowed_name, check, is_class_name, is_field_name
from kwire.schema.format import message_to_text
from kwire.schema.model import (
    NO_VERSIONS,
    OPEN,
    Array,
    Default,
    Field,
    Kind,
    Message,
    Primitive,
    Struct,
    StructRef,
    Type,
    Versions,
)
from kwire.schema.parser import EVERY_VERSION, camel_case, parse, zero

__all__ = [
    "LONGEST_DEFINITION",
    "MOST_BRACKETS",
    "Difference",
    "compare",
    "definitions",
    "marked",
    "read_definition",
    "snake_case",
]

LONGEST_DEFINITION: Final = 1_000_000
"""Bytes of a definition; Kafka's longest have 20,000."""
MOST_OF_A_JAR: Final = 64_000_000
"""Bytes of all definitions in a jar, whose entries may all stand for the same bytes; Kafka's have 2 MB."""
MOST_BRACKETS: Final = 64
"""Brackets of a definition that are open at once. A level of structs takes two."""

_KINDS: Final[dict[str, Kind]] = {
    "request": "request",
    "response": "response",
    "header": "header",
    "data": "data",
    "metadata": "data",
    "coordinator-key": "data",
    "coordinator-value": "data",
}
_MESSAGE_KEYS: Final = frozenset(
    {
        "apiKey",
        "type",
        "name",
        "validVersions",
        "flexibleVersions",
        "fields",
        "commonStructs",
        # These say nothing about bytes.
        "listeners",
        "deprecatedVersions",
        "latestVersionUnstable",
        "about",
    }
)
_FIELD_KEYS: Final = frozenset(
    {
        "name",
        "type",
        "versions",
        "nullableVersions",
        "taggedVersions",
        "tag",
        "default",
        "ignorable",
        "flexibleVersions",
        "fields",
        # These say nothing about bytes.
        "about",
        "entityType",
        "mapKey",
        "zeroCopy",
    }
)
# What does not end is taken to the end of the text. So it is not looked at again from each of its characters.
_PART: Final = re.compile(r'("(?:[^"\\]|\\.)*+"?)|([\[{])|([\]}])|//[^\n]*|/\*.*?(?:\*/|(\Z))', re.DOTALL)
_RANGE: Final = re.compile(r"([0-9]{1,5})(?:(\+)|-([0-9]{1,5}))?")
_NUMBER: Final = re.compile(r"[0-9]{1,10}")
_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """``TopicId`` -> ``topic_id``, the name of a field in kwire."""
    return _WORDS.sub("_", name).lower()


def definitions(path: str | Path) -> Iterator[Message]:
    """The messages defined by a JSON file, by those of a folder (recursively), or by those inside a jar.

    JSON files without ``validVersions`` are something else and are passed over. Raises ``SchemaError`` for a definition
    that cannot be read, and when there is none at all.
    """
    top = Path(path)
    found = False
    for name, text in _texts(top):
        if '"validVersions"' in text:
            found = True
            yield read_definition(text, name)
    if not found:
        raise SchemaError("no Kafka message definitions in it", file=str(path))


# zipfile lets RuntimeError through for what is encrypted, and the others for what is damaged.
_DAMAGE: Final = (OSError, ValueError, OverflowError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error)


def _texts(top: Path) -> Iterator[tuple[str, str]]:
    try:
        if top.is_dir():
            for file in sorted(one for one in below(top) if one.endswith(".json")):
                with open_file(file) as stream:
                    yield file, _text(stream, file)
            return
        with open_file(top) as stream:
            if zipfile.is_zipfile(stream):
                yield from _of_jar(stream, top.name)
            else:
                stream.seek(0)
                yield str(top), _text(stream, str(top))
    except _DAMAGE as error:
        said = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        raise SchemaError(f"cannot be read: {said}", file=str(top)) from None


def _of_jar(stream: BinaryIO, name: str) -> Iterator[tuple[str, str]]:
    left = MOST_OF_A_JAR
    with zipfile.ZipFile(stream) as jar:
        for one in sorted(jar.infolist(), key=lambda each: each.filename):
            if not one.filename.endswith(".json"):
                continue
            place = f"{name}!{one.filename}"
            if one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise SchemaError(f"compressed with method {one.compress_type}, as no jar is", file=place)
            with jar.open(one) as inside:
                text = _text(inside, place)
            left -= len(text)
            if left < 0:
                raise SchemaError(f"definitions of more than {MOST_OF_A_JAR} bytes", file=name)
            yield place, text


def _text(stream: IO[bytes], name: str) -> str:
    """The text of a file; nothing, as of any file that is no definition, where a longer one is not a definition."""
    content = stream.read(LONGEST_DEFINITION + 1)
    if len(content) <= LONGEST_DEFINITION:
        return content.decode("utf-8")
    if b'"validVersions"' in content:
        raise SchemaError(f"a definition of more than {LONGEST_DEFINITION} bytes", file=name)
    return ""


def read_definition(text: str, file: str = "<definition>") -> Message:
    """One of Kafka's JSON message definitions. Raises ``SchemaError``.

    Names that Python or kwire's classes use get a ``_`` at their end: the field ``Class`` is ``class_``. A message that
    Kafka has dropped (``"validVersions": "none"``) has no versions here either, and no schema text.
    """
    if len(text) > LONGEST_DEFINITION:
        raise SchemaError(f"a definition of more than {LONGEST_DEFINITION} bytes", file=file)
    try:
        values = json.loads(_without_comments(text, file))
    except ValueError as error:
        raise SchemaError(f"not JSON: {error}", file=file) from None
    made = _Definition(file).read(values)
    if not made.versions:
        return made  # Kafka keeps definitions of messages that it has dropped: nothing to write, nothing to compare
    try:
        again = parse(message_to_text(made), file)
    except SchemaError as error:
        raise SchemaError(f"kwire's schemas cannot say this: {error.message}", file=file) from None
    if again != [made]:
        raise SchemaError(f"kwire's schemas cannot say this: {made.name} reads differently as schema text", file=file)
    return made


def _without_comments(text: str, file: str) -> str:
    """``text`` with as many blanks as each comment has characters: a position in an error of json is the file's."""
    depth = 0

    def plain(match: re.Match[str]) -> str:
        nonlocal depth
        string, opens, closes, unended = match.groups()
        if opens:
            depth += 1
            if depth > MOST_BRACKETS:
                raise SchemaError(f"more than {MOST_BRACKETS} brackets inside of each other", file=file)
        elif closes:
            depth -= 1
        elif string is None and unended is None:
            return " " * len(match[0])
        return match[0]

    return _PART.sub(plain, text)


class _Definition:
    """Reads one definition; keeps what is known of its structs on the way."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.bodies: dict[str, list[Any]] = {}
        self.reach: dict[str, Versions] = {}
        self.structs: dict[str, Struct] = {}
        self.count = 0

    def fail(self, what: str) -> SchemaError:
        return SchemaError(what, file=self.file)

    def read(self, values: Any) -> Message:
        if not isinstance(values, dict):
            raise self.fail("not a message definition: no JSON object")
        self.known(values, _MESSAGE_KEYS, "the definition")
        name = self.class_name(self.text(values, "name"), "$.name")
        type_ = values.get("type", "data")
        kind = _KINDS.get(type_) if isinstance(type_, str) else None
        if kind is None:
            raise self.fail(f"unknown type {type_!r} of message")
        api_key = values.get("apiKey")
        if api_key is not None and not (type(api_key) is int and 0 <= api_key <= OPEN):
            raise self.fail(f"apiKey {api_key!r} is not a number from 0 to {OPEN}")
        versions = self.range(values.get("validVersions"), "validVersions")
        flexible = self.range(values.get("flexibleVersions"), "flexibleVersions")
        fields = self.items(values, "fields")
        for index, one in enumerate(self.items(values, "commonStructs")):
            path = f"$.commonStructs[{index}]"
            body = self.items(one, "fields")
            self.bodies[self.class_name(self.text(one, "name"), f"{path}.name")] = body
            self.gather(body, path, 1)
        self.gather(fields, "$", 0)
        self.collect(fields, versions, ())
        made = Message(
            name=name,
            kind=kind,
            versions=versions,
            flexible=Versions(max(flexible.low, versions.low), flexible.high) if flexible & versions else NO_VERSIONS,
            fields=self.fields(fields, versions, versions),
            structs=self.structs,
            api_key=api_key,
            file=self.file,
        )
        check(made)
        return made

    def known(self, values: Any, keys: frozenset[str], where: str) -> None:
        if not isinstance(values, dict):
            raise self.fail(f"{where} is not an object")
        unknown = sorted(values.keys() - keys)
        if unknown:
            raise self.fail(f"{where} has a key that kwire does not know: {unknown[0]!r}")

    def text(self, values: Any, key: str) -> str:
        value = values.get(key) if isinstance(values, dict) else None
        if not isinstance(value, str):
            raise self.fail(f"{key} is missing")
        return value

    def class_name(self, name: str, path: str) -> str:
        if not is_class_name(name):
            raise self.fail(f"{path}: {name[:100]!r} is not a name that a message or struct can have")
        return name

    def items(self, values: Any, key: str) -> list[Any]:
        value = values.get(key, []) if isinstance(values, dict) else None
        if not isinstance(value, list):
            raise self.fail(f"{key} is not a list")
        return value

    def range(self, text: Any, what: str) -> Versions:
        if text is None or text == "none":
            return NO_VERSIONS
        match = _RANGE.fullmatch(text) if isinstance(text, str) else None
        low, high = (int(match[1]), OPEN if match[2] else int(match[3] or match[1])) if match else (0, OPEN + 1)
        if max(low, high) > OPEN:
            raise self.fail(f"{what} {text!r} is not a range of versions")
        return Versions(low, high)

    def versions(self, one: dict[str, Any]) -> Versions:
        # A field that is tagged wherever it exists may leave out its versions.
        return self.range(one.get("versions", one.get("taggedVersions")), f"versions of {one.get('name')}")

    def gather(self, fields: list[Any], path: str, depth: int) -> None:
        """Note the fields of each struct that is defined where it is used, and check all names."""
        for index, one in enumerate(fields):
            here = f"{path}.fields[{index}]"
            self.known(one, _FIELD_KEYS, "a field")
            name = self.text(one, "name")
            if not is_field_name(snake_case(name[:200])):
                raise self.fail(f"{here}.name: {name[:100]!r} is not a name that a field can have")
            struct = self.text(one, "type").removeprefix("[]")
            body = self.items(one, "fields")
            if body:
                if depth == MOST_LEVELS:
                    raise self.fail(f"{here}: more than {MOST_LEVELS} structs inside of each other")
                self.bodies.setdefault(self.class_name(struct, f"{here}.type"), body)
                self.gather(body, here, depth + 1)

    def collect(self, fields: list[Any], within: Versions, inside: tuple[str, ...]) -> None:
        """Note the versions in which anything refers to a struct."""
        for one in fields:
            self.count += 1
            if self.count > MOST_FIELDS:
                raise self.fail(f"more than {MOST_FIELDS} fields, those of a struct counted wherever it is used")
            struct = self.text(one, "type").removeprefix("[]")
            if struct in model.PRIMITIVES:
                continue
            if struct in inside:
                raise self.fail(f"struct {struct} contains itself")
            if struct not in self.bodies:
                raise self.fail(f"unknown type {struct!r}")
            if len(inside) == MOST_LEVELS:
                raise self.fail(f"{struct}: more than {MOST_LEVELS} structs inside of each other")
            here = self.versions(one) & within
            before = self.reach.get(struct)
            if here:
                low, high = here.low, here.high
                self.reach[struct] = Versions(min(before.low, low), max(before.high, high)) if before else here
            self.collect(self.bodies[struct], here, (*inside, struct))

    def fields(self, fields: list[Any], within: Versions, whole: Versions) -> tuple[Field, ...]:
        made = []
        for one in fields:
            name = self.text(one, "name")
            written = self.versions(one)
            if not written & whole:
                continue  # Kafka keeps definitions of fields that only dropped versions had
            versions = EVERY_VERSION if written & within == within else written
            if versions.high >= whole.high:
                versions = Versions(versions.low, OPEN)
            made.append(self.field(one, name, versions, within))
            struct = self.text(one, "type").removeprefix("[]")
            if struct in self.reach and struct not in self.structs:
                self.structs[struct] = Struct(struct, ())  # keeps the order of first use
                self.structs[struct] = Struct(struct, self.fields(self.bodies[struct], self.reach[struct], whole))
        return tuple(made)

    def field(self, one: dict[str, Any], name: str, versions: Versions, within: Versions) -> Field:
        snake = allowed_name(snake_case(name))
        type_ = self.type(one)
        nullable = self.range(one.get("nullableVersions"), "nullableVersions")
        tagged = self.range(one.get("taggedVersions"), "taggedVersions")
        present = versions & within
        plain = "flexibleVersions" in one
        if plain and self.range(one["flexibleVersions"], "flexibleVersions"):
            raise self.fail(f"{name}: flexibleVersions of a field can only be none")
        tag = one.get("tag")
        if tag is not None and not self.is_tag(tag):
            raise self.fail(f"{name}: tag {tag!r} is not a number")
        ignorable = one.get("ignorable", False)
        if ignorable not in (True, False, "true", "false"):
            raise self.fail(f"{name}: ignorable is {ignorable!r}")
        return Field(
            name=snake,
            type=type_,
            versions=versions,
            nullable=_cut(nullable, versions, present),
            tag=None if tag is None else int(tag),
            tagged=_cut(tagged, versions, present),
            default=self.default(type_, name, one.get("default")),
            ignorable=ignorable in (True, "true"),
            plain=plain,
            kafka_name="" if camel_case(snake) == name else name,
        )

    def is_tag(self, tag: Any) -> bool:
        written = str(tag) if type(tag) is int else tag  # 0 or "0"
        return isinstance(written, str) and _NUMBER.fullmatch(written) is not None and int(written) <= MOST_TAG

    def type(self, one: dict[str, Any]) -> Type:
        text = self.text(one, "type")
        name = text.removeprefix("[]")
        base: Primitive | StructRef = Primitive(name) if name in model.PRIMITIVES else StructRef(name)
        return Array(base) if name != text else base

    def default(self, type_: Type, name: str, written: Any) -> Default | tuple[()]:
        if written is None:
            return zero(type_)
        if written == "null":
            return None
        zero_value = zero(type_)
        text = str(written) if isinstance(written, (str, int, float)) else ""
        try:
            if text == "" and written != "":
                raise ValueError
            if isinstance(zero_value, bool):
                return {"true": True, "false": False}[text.lower()]
            if isinstance(zero_value, int):
                return int(text, 0)
            if isinstance(zero_value, float):
                return float(text)
            if isinstance(zero_value, str):
                return text
        except (ValueError, KeyError):
            pass
        raise self.fail(f"{name}: {written!r} is no default for its type")


def _cut(range_: Versions, versions: Versions, present: Versions) -> Versions:
    """``range_`` within ``versions``: all of them where the ``present`` ones, which the struct around allows, are."""
    if not range_ & present:
        return NO_VERSIONS
    return versions if range_ & present == present else range_ & versions


# -- comparison


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs: ``message`` in ``versions``, at ``path``; ``what`` in words (Kafka's side first)."""

    message: str
    versions: tuple[int, ...]
    path: str
    what: str

    def __str__(self) -> str:
        versions = ", ".join(str(one) for one in _ranges(self.versions))
        return f"{self.message} v{versions} {self.path}: {self.what}"


def compare(theirs: Message, ours: Message | None) -> list[Difference]:
    """What differs between Kafka's definition and ours, in the versions that Kafka's has."""
    if ours is None:
        return [Difference(theirs.name, tuple(theirs.versions), "$", "not in schemas/")]
    found: dict[tuple[str, str], list[int]] = {}

    def report(versions: range) -> Callable[[str, str], None]:
        return lambda path, what: found.setdefault((path, what), []).extend(versions)

    for alike in _stretches(theirs, ours):
        version, say = alike.start, report(alike)
        if theirs.api_key != ours.api_key:
            say("$", f"key {theirs.api_key}, ours {ours.api_key}")
        if version not in ours.versions:
            say("$", "version not in schemas/")
            continue
        _compare(model.layout(theirs, version), model.layout(ours, version), "$", say)
        _compare_words(theirs, ours, version, say)
    return [Difference(theirs.name, tuple(versions), path, what) for (path, what), versions in found.items()]


def marked(theirs: Message, ours: Message) -> Message:
    """``theirs`` with those fields secret that are so in ``ours``, the schema of that name: definitions do not say."""
    assert theirs.name == ours.name
    secret = {(where, one.name): one for where, fields in _structs(ours) for one in fields if one.secret}

    def of(where: str, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        pairs = ((one, secret.get((where, one.name))) for one in fields)
        return tuple(
            replace(one, secret=known.secret) if known is not None and known.type == one.type else one
            for one, known in pairs
        )

    structs = {name: replace(one, fields=of(name, one.fields)) for name, one in theirs.structs.items()}
    return replace(theirs, fields=of("", theirs.fields), structs=structs)


def _structs(message: Message) -> Iterator[tuple[str, tuple[Field, ...]]]:
    yield "", message.fields
    for name, struct in message.structs.items():
        yield name, struct.fields


def _stretches(theirs: Message, ours: Message) -> Iterator[range]:
    """The versions of ``theirs``, those together that nothing in the two messages tells from each other."""
    begins = {theirs.versions.low}
    for message in (theirs, ours):
        fields = [*message.fields, *(field for one in message.structs.values() for field in one.fields)]
        ranges = [message.versions, message.flexible]
        ranges += [each for field in fields for each in (field.versions, field.nullable, field.tagged)]
        begins.update(one for each in ranges for one in (each.low, each.high + 1) if one in theirs.versions)
    for low, high in pairwise((*sorted(begins), theirs.versions.high + 1)):
        # A definition that is only history has no versions left.
        if low < high:
            yield range(low, high)


def _compare(one: model.StructLayout, two: model.StructLayout, path: str, say: Callable[[str, str], None]) -> None:
    if one.flexible != two.flexible:
        say(path, f"{_yes(one.flexible)}flexible, ours {_yes(two.flexible)}flexible")
    for what, theirs, ours in (("fields", one.fields, two.fields), ("tagged fields", one.tagged, two.tagged)):
        names, own = [field.name for field in theirs], [field.name for field in ours]
        by_name, of_theirs = {field.name: field for field in ours}, set(names)
        for name in names:
            if name not in by_name:
                say(f"{path}.{name}", f"not among our {what}")
        for name in own:
            if name not in of_theirs:
                say(f"{path}.{name}", f"only among our {what}")
        if sorted(names) == sorted(own) and names != own:
            say(path, f"{what} in another order")
        for field in theirs:
            if field.name in by_name:
                _compare_field(field, by_name[field.name], f"{path}.{field.name}", say)


def _compare_field(one: model.FieldLayout, two: model.FieldLayout, path: str, say: Callable[[str, str], None]) -> None:
    if one.nullable != two.nullable:
        say(path, f"{_yes(one.nullable)}nullable, ours {_yes(two.nullable)}nullable")
    if one.tag != two.tag:
        say(path, f"tag {one.tag}, ours {two.tag}")
    if one.default != two.default or type(one.default) is not type(two.default):
        say(path, f"default {one.default!r}, ours {two.default!r}")
    _compare_types(one.type, two.type, path, say)


def _compare_types(one: model.TypeLayout, two: model.TypeLayout, path: str, say: Callable[[str, str], None]) -> None:
    if isinstance(one, model.ArrayLayout) and isinstance(two, model.ArrayLayout):
        _compare_types(one.element, two.element, path + "[]", say)
    elif type(one) is not type(two) or one.name != two.name:  # type: ignore[union-attr]
        say(path, f"{_type_name(one)}, ours {_type_name(two)}")
    elif isinstance(one, model.StructLayout) and isinstance(two, model.StructLayout):
        _compare(one, two, path, say)
    elif one != two:
        say(path, "another length encoding")


def _compare_words(theirs: Message, ours: Message, version: int, say: Callable[[str, str], None]) -> None:
    """What is not in layouts: whether a field is ignorable, and how Kafka spells it."""
    own = dict(_walk(ours, ours.fields, "$", ours.versions))
    for path, (field, versions) in _walk(theirs, theirs.fields, "$", theirs.versions):
        other = own.get(path)
        if other is None or version not in versions or version not in other[1]:
            continue
        # In a definition whose every version has the field, nothing can be ignored.
        if field.ignorable != other[0].ignorable and versions != theirs.versions:
            say(path, f"{_yes(field.ignorable)}ignorable, ours {_yes(other[0].ignorable)}ignorable")
        if field.kafka_name != other[0].kafka_name:
            say(path, f"spelt {field.kafka_name or 'in CamelCase'}, ours {other[0].kafka_name or 'in CamelCase'}")


def _walk(
    message: Message, fields: tuple[Field, ...], path: str, within: Versions
) -> Iterator[tuple[str, tuple[Field, Versions]]]:
    for one in fields:
        here = f"{path}.{one.name}"
        yield here, (one, one.versions & within)
        base = one.type.element if isinstance(one.type, Array) else one.type
        if isinstance(base, StructRef):
            inner = here + ("[]" if isinstance(one.type, Array) else "")
            yield from _walk(message, message.structs[base.name].fields, inner, one.versions & within)


def _type_name(type_: model.TypeLayout) -> str:
    return f"[{type_.element.name}]" if isinstance(type_, model.ArrayLayout) else type_.name


def _yes(value: bool) -> str:
    return "" if value else "not "


def _ranges(versions: tuple[int, ...]) -> list[Versions]:
    out: list[Versions] = []
    for one in versions:
        if out and out[-1].high == one - 1:
            out[-1] = Versions(out[-1].low, one)
        else:
            out.append(Versions(one, one))
    return out
