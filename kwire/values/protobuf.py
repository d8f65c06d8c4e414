"""Values in Protocol Buffers: a schema as Arrow types, and a column of messages as an Arrow array.

``compiled(text, references)`` makes a ``Compiled`` of a ``.proto`` text (by protoc, in a process of its own) or of a
descriptor in base64. Messages are parsed by the protobuf runtime, and read from it column by column.

- Numbers without a sign become the next wider type: ``uint32`` is int64, ``uint64`` decimal128(20, 0).
- An enum is the name of its value. A number without a name is its digits.
- ``Timestamp``, ``Duration``, ``google.type.Date`` and the wrappers are what they mean. ``Struct``, ``Value`` and
  ``ListValue`` are JSON text. So is a message inside of itself.
- A field that has presence and is not there is null. A member of a oneof has presence.

Rules kept here:

- Protobuf's runtime decides what is a message. Two other libraries were measured: one is faster and takes broken
  messages for whole ones, one is five times as slow (docs/design/2026-11-26-values.md).
- A schema is input: imports are read from what was given and never from files, and types inside each other are bounded.
- Maps are in the order of their keys: the runtime's order is not the same in each process.
"""

from __future__ import annotations

import base64
import binascii
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.errors import SchemaError, needed
from kwire.records.arrow_types import TIMESTAMP

__all__ = ["Compiled", "Message", "compiled"]

Failures = list[tuple[int, str]]
"""Rows that are no such message, and what is wrong with them."""

ROOT: Final = "schema.proto"
"""What a schema without a name is called among those that it imports."""
MOST_FIELDS: Final = 20_000
"""Fields of a message, with those of messages inside."""
DEEPEST: Final = 64
"""Messages inside each other in a type."""
PATIENCE: Final = 60
"""Seconds that protoc may take."""

_SAFE: Final = re.compile(r"(?!/)(?!.*(?:^|/)\.{1,2}(?:/|$))[A-Za-z0-9_.+/-]{1,200}\.proto")
"""Names of imports that may become files of a folder."""
_BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")

_KNOWN: Final = {
    "confluent/meta.proto": """\
syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; repeated Rule rules = 4; }
message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
""",
    "confluent/type/decimal.proto": """\
syntax = "proto3";
package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
""",
}
"""What schemas of Confluent's registry may import without a reference."""


@lru_cache(maxsize=256)
def _compiled(text: str, references: tuple[tuple[str, str], ...]) -> Compiled:
    return Compiled(_files(text, dict(references)))


def compiled(text: str, references: Mapping[str, str]) -> Compiled:
    """A schema, ready to decode with. ``references``: the texts of what it may import, by their paths.

    Raises ``SchemaError`` for what protoc refuses, ``MissingExtraError`` without the extra ``values``.
    """
    return _compiled(text, tuple(sorted(references.items())))


def _files(text: str, references: Mapping[str, str]) -> list[Any]:
    """The descriptors of a schema and of what it imports, each after those that it needs. The schema is the last."""
    with needed("values in Protobuf", "values"):
        from google.protobuf import descriptor_pb2
    data = _descriptor(text)
    if data is None:
        data = _protoc(text, references)
    for kind in (descriptor_pb2.FileDescriptorSet, descriptor_pb2.FileDescriptorProto):
        try:
            found = kind.FromString(data)
        except Exception:  # the runtime's DecodeError; what it is called depends on the version
            continue
        files = list(found.file) if hasattr(found, "file") else [found]
        if files and all(one.name and (one.message_type or one.enum_type or one.dependency) for one in files):
            return _ordered(files, references)
    raise SchemaError("this is no descriptor of Protobuf")


def _descriptor(text: str) -> bytes | None:
    """The bytes of a descriptor that was written in base64. None for a text of ``.proto``."""
    if _BASE64.fullmatch(text) is None:
        return None
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error:
        return None


def _ordered(files: Sequence[Any], references: Mapping[str, str]) -> list[Any]:
    from google.protobuf import descriptor_pb2, descriptor_pool

    known = {one.name: one for one in files}
    made: dict[str, Any] = {}

    def add(name: str, open_: tuple[str, ...]) -> None:
        if name in made:
            return
        if name in open_ or len(open_) > DEEPEST:
            raise SchemaError(f"{name} imports itself")
        one = known.get(name)
        if one is None and name in references:
            others = _files(references[name], references)
            one = others[-1]
            one.name = name
        if one is None:
            one = descriptor_pb2.FileDescriptorProto()
            try:
                _well_known(name)
                descriptor_pool.Default().FindFileByName(name).CopyToProto(one)
            except KeyError:
                raise SchemaError(f"imports {name}, which no source has") from None
        for other in one.dependency:
            add(other, (*open_, name))
        made[name] = one

    for one in files:
        add(one.name, ())
    root = files[-1].name
    return [*(one for name, one in made.items() if name != root), made[root]]


def _well_known(name: str) -> None:
    """Loads a descriptor that the runtime itself has."""
    import importlib

    if re.fullmatch(r"google/protobuf/[a-z_]+\.proto", name):
        try:
            importlib.import_module(f"google.protobuf.{name[16:-6]}_pb2")
        except ImportError:
            return


def _protoc(text: str, references: Mapping[str, str]) -> bytes:
    """A descriptor set of a ``.proto`` text. protoc runs in a process of its own: what it is given may be anything."""
    with needed("Protobuf schemas as text", "values"):
        import grpc_tools
    for name in references:
        if _SAFE.fullmatch(name) is None:
            raise SchemaError(f"{name[:200]!r} is no path of an import")
    with tempfile.TemporaryDirectory() as folder:
        root = ROOT
        while root in references:
            root = f"_{root}"
        for name, content in {**_KNOWN, **references, root: text}.items():
            path = Path(folder, "in", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_ENTRY.sub(f'reserved "{_MARK}";', content), encoding="utf-8")
        out = Path(folder, "out")
        included = Path(grpc_tools.__file__).parent / "_proto"
        command = [sys.executable, "-P", "-m", "grpc_tools.protoc", f"-I{Path(folder, 'in')}", f"-I{included}"]
        command += ["--include_imports", f"--descriptor_set_out={out}", root]
        try:
            ran = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            raise SchemaError(f"protoc took more than {PATIENCE} seconds") from None
        if ran.returncode or not out.is_file():
            said = ran.stderr.decode("utf-8", "replace").replace(f"{folder}/in/", "")
            lines = [one for one in said.splitlines() if one and "warning" not in one]
            raise SchemaError(" ".join(lines)[:500] or "protoc refuses it")
        made = out.read_bytes()
    return _with_entries(made) if _MARK.encode() in made else made


_ENTRY: Final = re.compile(r"\boption\s+map_entry\s*=\s*true\s*;")
"""What AWS Glue's serializer writes into the entries of maps when it registers a schema, and protoc refuses."""
_MARK: Final = "kwire_map_entry"


def _with_entries(data: bytes) -> bytes:
    """The same descriptor set, where the messages that are marked are entries of maps."""
    from google.protobuf import descriptor_pb2

    found = descriptor_pb2.FileDescriptorSet.FromString(data)
    open_ = [message for file in found.file for message in file.message_type]
    while open_:
        one = open_.pop()
        open_.extend(one.nested_type)
        if _MARK in one.reserved_name:
            one.reserved_name.remove(_MARK)
            one.options.map_entry = True
    made: bytes = found.SerializeToString()
    return made


class Compiled:
    """A schema of Protobuf. ``files``: its descriptors, it is the last of them."""

    def __init__(self, files: Sequence[Any]) -> None:
        from google.protobuf import descriptor_pool

        self.files: tuple[Any, ...] = tuple(files)
        """The descriptors (``FileDescriptorProto``), each after those that it needs."""
        self._pool = descriptor_pool.DescriptorPool()
        self._root = files[-1]
        self._messages: dict[str, Message] = {}
        for one in files:
            try:
                self._pool.AddSerializedFile(one.SerializeToString())
            except TypeError as error:
                raise SchemaError(" ".join(str(error).split())[:500]) from None

    @property
    def root(self) -> Any:
        """The descriptor of the schema itself (``FileDescriptorProto``)."""
        return self._root

    @property
    def first(self) -> str:
        """The full name of the first message. Raises ``SchemaError`` where there is none."""
        found = self.at((0,))
        if not found:
            raise SchemaError("the schema has no message")
        return found[0]

    def at(self, path: Sequence[int]) -> list[str]:
        """The full names of the messages that numbers may mean: none, one, or two.

        Serializers do not agree whether the entries of maps, which are messages to protoc, are counted. Most do not
        count them, so that reading comes first.
        """
        made = []
        for counts in (False, True):
            name, messages = self._root.package, self._root.message_type
            for number in path:
                own = [one for one in messages if counts or not one.options.map_entry]
                if number >= len(own):
                    break
                name, messages = f"{name}.{own[number].name}".lstrip("."), own[number].nested_type
            else:
                made.append(name)
        return list(dict.fromkeys(made)) if path else []

    @cached_property
    def by_name(self) -> tuple[str, ...]:
        """The full names of all messages of the schema itself, sorted. Those inside of others and entries of maps are
        among them. AWS Glue counts messages so (``MessageIndexFinder`` of its Java library)."""
        made, open_ = [], [(self._root.package, self._root.message_type)]
        while open_:
            prefix, messages = open_.pop()
            for one in messages:
                name = f"{prefix}.{one.name}".lstrip(".")
                made.append(name)
                open_.append((name, one.nested_type))
        return tuple(sorted(made))

    def has(self, name: str) -> bool:
        """Whether there is a message of this full name."""
        try:
            self._pool.FindMessageTypeByName(name)
        except KeyError:
            return False
        return True

    def message(self, name: str) -> Message:
        """A message by its full name. Raises ``SchemaError`` for one that there is not."""
        if name not in self._messages:
            try:
                found = self._pool.FindMessageTypeByName(name)
            except KeyError:
                raise SchemaError(f"there is no message {name} in the schema") from None
            self._messages[name] = Message(found)
        return self._messages[name]


class Message:
    """A message of a schema, as an Arrow type."""

    def __init__(self, descriptor: Any) -> None:
        from google.protobuf import message_factory

        self._descriptor = descriptor
        self._class = message_factory.GetMessageClass(descriptor)
        self.name: str = descriptor.full_name

    @cached_property
    def _shape(self) -> _Shape:
        return _Shapes().struct(self._descriptor, ())

    @property
    def type(self) -> pa.DataType:
        """The type of its values (``struct``). Raises ``SchemaError`` for more fields than a type may have."""
        return self._shape.type

    def decode(self, array: pa.Array) -> tuple[pa.Array, Failures]:
        """Values (binary, none of them null) as an array of ``type``, null where they are no such message."""
        messages, failures = self._parsed(array)
        return self._columns(messages, failures)

    def unknown(self, array: pa.Array) -> Any:
        """How many fields of each value the schema does not know, those of messages inside not counted.

        -1: it is no such message.
        """
        from google.protobuf.unknown_fields import UnknownFieldSet

        messages, failures = self._parsed(array)
        made = np.fromiter((len(UnknownFieldSet(one)) for one in messages), np.int64, len(messages))
        made[[row for row, _ in failures]] = -1
        return made

    def _parsed(self, array: pa.Array) -> tuple[list[Any], Failures]:
        from google.protobuf.message import DecodeError

        data = array.to_pylist()
        read = self._class.FromString
        try:
            return list(map(read, data)), []
        except DecodeError:
            pass
        made, failures = [], []
        for row, one in enumerate(data):
            try:
                made.append(read(one))
            except DecodeError:
                made.append(self._class())
                failures.append((row, _place(one, self._descriptor)))
        return made, failures

    def _columns(self, messages: list[Any], failures: Failures) -> tuple[pa.Array, Failures]:
        failed = {row for row, _ in failures}
        try:
            made = self._shape.read(messages)
        except (ValueError, pa.ArrowException) as error:
            if len(messages) == 1:
                text = " ".join(str(error).split())[:200]
                return pa.nulls(1, self.type), failures or [(0, text)]
            half = len(messages) // 2
            left, of_left = self._columns(messages[:half], [one for one in failures if one[0] < half])
            rest = [(row - half, text) for row, text in failures if row >= half]
            right, of_right = self._columns(messages[half:], rest)
            return pa.concat_arrays([left, right]), [*of_left, *((row + half, text) for row, text in of_right)]
        if failed:
            mask = np.zeros(len(messages), bool)
            mask[list(failed)] = True
            made = pa.StructArray.from_arrays(made.flatten(), fields=list(made.type), mask=pa.array(mask))
        return made, failures


@dataclass(frozen=True, slots=True)
class _Shape:
    """A type, and what makes an array of it from the values of a field, which Python has as a list."""

    type: pa.DataType
    read: Callable[[list[Any]], pa.Array]
    is_message: bool = False


def _scalar(type_: pa.DataType) -> _Shape:
    return _Shape(type_, lambda values: pa.array(values, type_))


def _unsigned(values: list[Any]) -> pa.Array:
    return pa.array(values, pa.uint64()).cast(pa.decimal128(20, 0))


_SIGNED: Final = _scalar(pa.int32())
_LONG: Final = _scalar(pa.int64())
_OF_TYPE: Final = {
    1: _scalar(pa.float64()),
    2: _scalar(pa.float32()),
    3: _LONG,
    4: _Shape(pa.decimal128(20, 0), _unsigned),
    5: _SIGNED,
    6: _Shape(pa.decimal128(20, 0), _unsigned),
    7: _LONG,
    8: _scalar(pa.bool_()),
    9: _scalar(pa.string()),
    12: _scalar(pa.binary()),
    13: _LONG,
    15: _SIGNED,
    16: _LONG,
    17: _SIGNED,
    18: _LONG,
}
"""Shapes by the number of a type in ``FieldDescriptorProto.Type``."""
_ENUM: Final = 14
_MESSAGES: Final = (10, 11)

_LEAST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
"""0001-01-01 and 9999-12-31."""
_LONGEST_SECONDS: Final = 315_576_000_000
"""Of a Duration: 10,000 years."""


def _micros(values: list[Any], least: int, most: int, type_: pa.DataType) -> pa.Array:
    seconds = np.fromiter(map(attrgetter("seconds"), values), np.int64, len(values))
    nanos = np.fromiter(map(attrgetter("nanos"), values), np.int64, len(values))
    good = (seconds >= least) & (seconds <= most)
    made = np.where(good, seconds, 0) * 1_000_000 + np.floor_divide(nanos, 1000)
    return pa.array(made, pa.int64(), mask=~good).cast(type_)


def _timestamps(values: list[Any]) -> pa.Array:
    return _micros(values, _LEAST_SECOND, _LAST_SECOND, TIMESTAMP)


def _durations(values: list[Any]) -> pa.Array:
    return _micros(values, -_LONGEST_SECONDS, _LONGEST_SECONDS, pa.duration("us"))


def _dates(values: list[Any]) -> pa.Array:
    from datetime import date

    def of(one: Any) -> date | None:
        try:
            return date(one.year, one.month, one.day)
        except (ValueError, OverflowError):
            return None

    return pa.array(map(of, values), pa.date32())


def _json(values: list[Any]) -> pa.Array:
    from google.protobuf.json_format import Error, MessageToJson

    def of(one: Any) -> str:
        try:
            return str(MessageToJson(one, indent=None, preserving_proto_field_name=True))
        except (Error, TypeError, RecursionError) as error:
            raise ValueError(str(error)) from None

    return pa.array(map(of, values), pa.string())


_WRAPPERS: Final = {
    "DoubleValue": 1,
    "FloatValue": 2,
    "Int64Value": 3,
    "UInt64Value": 4,
    "Int32Value": 5,
    "UInt32Value": 13,
    "BoolValue": 8,
    "StringValue": 9,
    "BytesValue": 12,
}


def _wrapper(inner: _Shape) -> _Shape:
    return _Shape(inner.type, lambda values: inner.read(list(map(attrgetter("value"), values))), True)


_OF_NAME: Final = {
    "google.protobuf.Timestamp": _Shape(TIMESTAMP, _timestamps, True),
    "google.protobuf.Duration": _Shape(pa.duration("us"), _durations, True),
    "google.type.Date": _Shape(pa.date32(), _dates, True),
    "google.protobuf.Struct": _Shape(pa.string(), _json, True),
    "google.protobuf.Value": _Shape(pa.string(), _json, True),
    "google.protobuf.ListValue": _Shape(pa.string(), _json, True),
    **{f"google.protobuf.{name}": _wrapper(_OF_TYPE[number]) for name, number in _WRAPPERS.items()},
}


class _Shapes:
    """Makes the shapes of a message, of which there are not too many."""

    def __init__(self) -> None:
        self._fields = 0

    def struct(self, descriptor: Any, open_: tuple[str, ...]) -> _Shape:
        self._fields += len(descriptor.fields)
        if self._fields > MOST_FIELDS:
            raise SchemaError(f"{descriptor.full_name} has more than {MOST_FIELDS} fields with those inside")
        inside = (*open_, descriptor.full_name)
        columns = [(one.name, self._field(one, inside)) for one in descriptor.fields]
        type_ = pa.struct([pa.field(name, shape.type) for name, shape in columns])

        def read(values: list[Any]) -> pa.Array:
            if not columns:
                return pa.array([{}] * len(values), type_)
            return pa.StructArray.from_arrays([shape.read(values) for _, shape in columns], fields=list(type_))

        return _Shape(type_, read, True)

    def _field(self, field: Any, inside: tuple[str, ...]) -> _Shape:
        get = attrgetter(field.name)
        if _is_map(field):
            return self._map(field, get, inside)
        shape = self._single(field, inside)
        if _is_repeated(field):
            return _repeated(shape, get)
        if field.has_presence:
            return _present(shape, get, field.name)
        return _Shape(shape.type, lambda values: shape.read(list(map(get, values))))

    def _single(self, field: Any, inside: tuple[str, ...]) -> _Shape:
        if field.type == _ENUM:
            return _enum(field.enum_type)
        if field.type not in _MESSAGES:
            return _OF_TYPE[field.type]
        message = field.message_type
        if message.full_name in _OF_NAME:
            return _OF_NAME[message.full_name]
        if message.full_name in inside or len(inside) > DEEPEST:
            return _Shape(pa.string(), _json, True)
        return self.struct(message, inside)

    def _map(self, field: Any, get: Callable[[Any], Any], inside: tuple[str, ...]) -> _Shape:
        entry = field.message_type.fields_by_name
        key, item = _OF_TYPE[entry["key"].type], self._single(entry["value"], inside)
        type_ = pa.map_(key.type, item.type)

        def read(values: list[Any]) -> pa.Array:
            found = list(map(get, values))
            names = list(map(sorted, found))
            flat = [one[name] for one, own in zip(found, names, strict=True) for name in own]
            keys = key.read(list(chain.from_iterable(names)))
            return pa.MapArray.from_arrays(_offsets(names), keys, item.read(flat), type=type_)

        return _Shape(type_, read)


def _is_map(field: Any) -> bool:
    return bool(field.type in _MESSAGES and field.message_type.GetOptions().map_entry)


def _is_repeated(field: Any) -> bool:
    repeated = getattr(field, "is_repeated", None)
    # Before protobuf 6 there is the label alone.
    return bool(field.label == field.LABEL_REPEATED) if repeated is None else bool(repeated)


def _offsets(lists: Sequence[Any]) -> pa.Array:
    ends = np.cumsum(np.fromiter(map(len, lists), np.int64, len(lists)))
    return pa.array(np.concatenate([np.zeros(1, np.int64), ends]), pa.int32())


def _repeated(shape: _Shape, get: Callable[[Any], Any]) -> _Shape:
    type_ = pa.list_(pa.field("element", shape.type))

    def read(values: list[Any]) -> pa.Array:
        found = list(map(get, values))
        return pa.ListArray.from_arrays(_offsets(found), shape.read(list(chain.from_iterable(found))), type=type_)

    return _Shape(type_, read)


def _present(shape: _Shape, get: Callable[[Any], Any], name: str) -> _Shape:
    def read(values: list[Any]) -> pa.Array:
        there = np.fromiter((one.HasField(name) for one in values), bool, len(values))
        if there.all():
            return shape.read(list(map(get, values)))
        # Only what is there is read: what is not has no end, where a message is inside of itself.
        found = shape.read([get(one) for one, is_there in zip(values, there.tolist(), strict=True) if is_there])
        return found.take(pa.array(np.cumsum(there) - 1, mask=~there))

    return _Shape(shape.type, read)


def _enum(descriptor: Any) -> _Shape:
    names = {number: one.name for number, one in descriptor.values_by_number.items()}

    def read(values: list[Any]) -> pa.Array:
        return pa.array([names.get(one) or str(one) for one in values], pa.string())

    return _Shape(pa.string(), read)


# --- where a value is broken ------------------------------------------------------------------------------------------

_NESTED: Final = 100
"""Messages inside each other that the runtime reads."""


def _place(data: bytes, descriptor: Any) -> str:
    """What is wrong with bytes that are no message: the first place that no message can have."""
    waiting = [(0, len(data), descriptor, "$", 0)]
    while waiting:
        at, end, message, path, depth = waiting.pop()
        if depth > _NESTED:
            return f"{path} at byte {at}: more than {_NESTED} messages inside each other"
        groups: list[int] = []
        while at < end:
            begin = at
            tag, at = _varint(data, at, end)
            if tag is None or not tag >> 3:
                return f"{path} at byte {begin}: no tag of a field"
            field = None if message is None or groups else message.fields_by_number.get(tag >> 3)
            name = f"{path}.{field.name if field is not None else tag >> 3}"
            kind = tag & 7
            if kind == 0:
                number, at = _varint(data, at, end)
                if number is None:
                    return f"{name} at byte {begin}: a number that does not end"
            elif kind in (1, 5):
                at += 8 if kind == 1 else 4
            elif kind == 2:
                size, at = _varint(data, at, end)
                if size is None or size > end - at:
                    return f"{name} at byte {begin}: a length of {size}, {end - at} bytes left"
                if field is not None and field.type == 11:
                    waiting.append((at, at + size, field.message_type, name, depth + 1))
                elif field is not None and field.type == 9:
                    try:
                        data[at : at + size].decode()
                    except UnicodeDecodeError:
                        return f"{name} at byte {begin}: not UTF-8"
                at += size
            elif kind == 3:
                groups.append(tag >> 3)
            elif kind == 4 and groups and groups[-1] == tag >> 3:
                groups.pop()
            else:
                return f"{name} at byte {begin}: the wire type {kind} cannot stand here"
            if at > end:
                return f"{name} at byte {begin}: goes on behind the end"
        if groups:
            return f"{path} at byte {end}: a group that does not end"
    return "$: no such message"


def _varint(data: bytes, at: int, end: int) -> tuple[int | None, int]:
    number = 0
    for place in range(min(10, end - at)):
        byte = data[at + place]
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return number, at + place + 1
    return None, end
