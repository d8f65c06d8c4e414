"""The slow and obvious codec: ``construct`` declarations made from the layout.

``construct`` reads and writes the numbers. It has no declaration for a few things of the Kafka protocol:

- unsigned varints as Kafka reads them
- nullable lengths
- counts that are checked before they are believed
- tagged sections

These are small ``Construct`` classes here, each with a parser and a builder. A layout becomes a tree of them, one node
per field. The tree is all there is: no fast paths, no caches of values. That makes it the oracle of the tests and
fuzzers: they compare the compiled codec with it. ``kwire explain`` draws its tree from it. Importing kwire, or
decoding, does not import this module.

Rules kept here (the compiled codec keeps the same ones, by other means):

- Reads never go past the end of the data or of the tagged field around them. A count is compared with the least size of
  that many elements before the first is read.
- The stream knows which field it is in (``Node``). So an error has its path and the offset of that field's first byte,
  length prefix included.
- What is read leniently (a bool of 2, an overlong varint, tags in any order or given twice) is written canonically.

Source: Kafka protocol guide; KIP-482 (compact lengths, tagged fields), KIP-893 (nullable structs).
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn
from uuid import UUID

import construct

from kwire.codec import costs, registry
from kwire.codec.objects import WireStruct, same
from kwire.codec.redacting import hides_tags, quoted
from kwire.errors import DecodeError, EncodeError
from kwire.limits import DEFAULT_LIMITS, Limits, check_limits
from kwire.schema import model

__all__ = ["EnoughError", "Node", "decode", "decode_prefix", "encode", "trace"]


@dataclass(slots=True)
class Node:
    """One field as it stands in the bytes: ``kwire explain`` draws these.

    ``step`` is its part of the path (``.topics``, ``[0]``), ``type`` what the schema calls it. ``start`` and ``end``
    are its bytes, length prefix included. ``end`` is -1 where reading failed inside. ``value`` is set for fields
    without children. ``secret`` is what the schema says of the field.
    """

    step: str
    type: str
    start: int
    end: int = -1
    value: Any = None
    children: list[Node] = field(default_factory=list)
    secret: model.Secret = ""
    cut: bool = False
    """Whether no more was asked for within it."""


class EnoughError(Exception):
    """As many fields were traced as were asked for."""


class _Input(io.BytesIO):
    """The bytes and the state of reading them.

    The state has three parts:

    - ``limit``: the end that reads must keep
    - ``open``: the field that is being read
    - ``budget``: how much more its objects may take
    """

    def __init__(self, data: bytes, pos: int, label: str, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(data)
        self.seek(pos)
        self.limits = limits
        self.size = len(data)
        self.budget = limits.for_objects(len(data))
        self.limit = len(data)
        self.label = label
        self.open: list[Node] = [Node("$", label, pos)]
        self.nodes = -1  # how many more there may be; any number

    def left(self) -> int:
        return self.limit - self.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        # construct asks for what it needs, and makes a StreamError of an answer that is too short.
        assert size is not None
        return super().read(min(size, self.left()))

    def enter(self, step: str, type_: str, secret: model.Secret = "") -> None:
        if not self.nodes:
            raise EnoughError
        self.nodes -= 1
        made = Node(step, type_, self.tell(), secret=secret)
        self.open[-1].children.append(made)
        self.open.append(made)

    def leave(self, value: Any = None) -> None:
        # Not called when reading fails: what is open then is the path of the failure.
        done = self.open.pop()
        done.end = self.tell()
        if not done.children:
            done.value = value

    def charge(self, cost: int) -> None:
        self.budget -= cost
        if self.budget < 0:
            path = "".join(node.step for node in self.open)
            raise costs.exceeded(self.limits, self.size, self.label, path, self.tell())

    def fail(self, message: str, offset: int | None = None) -> NoReturn:
        path = "".join(node.step for node in self.open)
        start = self.open[-1].start if offset is None else offset
        raise DecodeError(message, layout=self.label, path=path, offset=start)


class _Output(io.BytesIO):
    """The bytes written so far, and the path of the field that is being written."""

    def __init__(self, label: str, path: list[str] | None = None) -> None:
        super().__init__()
        self.label = label
        self.path = ["$"] if path is None else path

    def fail(self, message: str) -> NoReturn:
        raise EncodeError(message, layout=self.label, path="".join(self.path))


# mypy sees construct's classes as Any, hence the ignores: the package has no type information of its own.


class _UVarint(construct.Construct):  # type: ignore[misc]
    """Seven bits a byte, least first; at most five bytes, of whose 35 bits the low 32 count."""

    def _parse(self, stream: _Input, context: Any, path: str) -> int:
        value = 0
        for position in range(5):
            byte = int(construct.stream_read(stream, 1, path)[0])
            value |= (byte & 0x7F) << (7 * position)
            if not byte & 0x80:
                return value & 0xFFFF_FFFF
        return stream.fail("unsigned varint of more than 5 bytes")

    def _build(self, obj: int, stream: _Output, context: Any, path: str) -> int:
        rest = obj
        while rest > 0x7F:
            stream.write(bytes([rest & 0x7F | 0x80]))
            rest >>= 7
        stream.write(bytes([rest]))
        return obj


_uvarint: Final = _UVarint()


class _Length(construct.Construct):  # type: ignore[misc]
    """A length or count, null as any negative one: a plain signed number, or one more than the length as a varint."""

    def __init__(self, number: construct.Construct, limit: int, nullable: bool) -> None:
        super().__init__()
        self.number = number
        self.limit = limit
        self.nullable = nullable
        self.added = 1 if number is _uvarint else 0

    def _parse(self, stream: _Input, context: Any, path: str) -> int:
        length = int(self.number._parse(stream, context, path)) - self.added
        if length >= 1 << 31:
            length -= 1 << 32  # an int of Java, of a varint too
        if length < 0 and not self.nullable:
            stream.fail("null in a field that cannot be null")
        return length

    def _build(self, obj: int, stream: _Output, context: Any, path: str) -> int:
        if obj > self.limit:
            stream.fail(f"length {obj} is above {self.limit}")
        self.number._build(obj + self.added, stream, context, path)
        return obj


class _Content(construct.Construct):  # type: ignore[misc]
    """``string``, ``bytes`` and ``records``: a length and as many bytes."""

    def __init__(self, length: _Length, text: bool, secret: str) -> None:
        super().__init__()
        self.length = length
        self.text = text
        self.secret = secret

    def _parse(self, stream: _Input, context: Any, path: str) -> Any:
        length = self.length._parse(stream, context, path)
        if length < 0:
            return None
        if length > stream.left():
            stream.fail(f"length {length}, {stream.left()} bytes left")
        content = stream.read(length)
        return content.decode("utf-8", "surrogateescape") if self.text else content

    def _build(self, obj: Any, stream: _Output, context: Any, path: str) -> Any:
        if obj is None and self.length.nullable:
            self.length._build(-1, stream, context, path)
            return obj
        content = self._content(obj, stream)
        self.length._build(len(content), stream, context, path)
        stream.write(content)
        return obj

    def _content(self, obj: Any, stream: _Output) -> bytes:
        if not self.text:
            if not isinstance(obj, (bytes, bytearray, memoryview)):
                stream.fail(f"expected bytes, not {quoted(obj, self.secret)}")
            return bytes(obj)
        if not isinstance(obj, str):
            stream.fail(f"expected a string, not {quoted(obj, self.secret)}")
        try:
            return obj.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return stream.fail(f"{quoted(obj, self.secret)} cannot be written as UTF-8")


class _Array(construct.Construct):  # type: ignore[misc]
    """A count and as many elements."""

    def __init__(self, length: _Length, element: construct.Construct, of: model.PrimitiveLayout | model.StructLayout):
        super().__init__()
        self.length = length
        self.element = element
        self.of = of

    def _parse(self, stream: _Input, context: Any, path: str) -> Any:
        count = self.length._parse(stream, context, path)
        if count < 0:
            return None
        if count * self.of.min_size > stream.left():
            stream.fail(f"{count} elements of at least {self.of.min_size} bytes, {stream.left()} bytes left")
        stream.charge(costs.elements(self.of, count))
        out = []
        for index in range(count):
            stream.enter(f"[{index}]", self.of.name)
            value = self.element._parse(stream, context, path)
            stream.leave(value)
            out.append(value)
        return out

    def _build(self, obj: Any, stream: _Output, context: Any, path: str) -> Any:
        if obj is None and self.length.nullable:
            self.length._build(-1, stream, context, path)
            return obj
        if not isinstance(obj, (list, tuple)):
            stream.fail(f"expected a list, not {quoted(obj, 'inside')}")
        self.length._build(len(obj), stream, context, path)
        for index, one in enumerate(obj):
            stream.path.append(f"[{index}]")
            self.element._build(one, stream, context, path)
            stream.path.pop()
        return obj


class _Nullable(construct.Construct):  # type: ignore[misc]
    """A struct after one signed byte.

    Negative is null; anything else says that the struct follows (KIP-893).
    """

    def __init__(self, struct: construct.Construct) -> None:
        super().__init__()
        self.struct = struct

    def _parse(self, stream: _Input, context: Any, path: str) -> Any:
        present = construct.Int8sb._parse(stream, context, path) >= 0
        return self.struct._parse(stream, context, path) if present else None

    def _build(self, obj: Any, stream: _Output, context: Any, path: str) -> Any:
        construct.Int8sb._build(-1 if obj is None else 1, stream, context, path)
        if obj is not None:
            self.struct._build(obj, stream, context, path)
        return obj


class _NullableTagged(_Nullable):
    """The same in a tagged section, where an unsigned varint stands instead of the byte: null if not above 0."""

    def _parse(self, stream: _Input, context: Any, path: str) -> Any:
        present = 0 < _uvarint._parse(stream, context, path) < 1 << 31
        return self.struct._parse(stream, context, path) if present else None

    def _build(self, obj: Any, stream: _Output, context: Any, path: str) -> Any:
        _uvarint._build(0 if obj is None else 1, stream, context, path)
        if obj is not None:
            self.struct._build(obj, stream, context, path)
        return obj


class _Struct(construct.Construct):  # type: ignore[misc]
    """Fields one after the other; in a flexible version a tagged section closes them."""

    def __init__(
        self,
        layout: model.StructLayout,
        cls: type[WireStruct],
        fields: list[tuple[model.FieldLayout, construct.Construct]],
        tagged: list[tuple[model.FieldLayout, construct.Construct]],
    ) -> None:
        super().__init__()
        self.layout = layout
        self.cls = cls
        self.fields = fields
        self.tagged = tagged

    def _parse(self, stream: _Input, context: Any, path: str) -> WireStruct:
        values: dict[str, Any] = {}
        for one, declared in self.fields:
            stream.enter("." + one.name, _type_text(one), one.secret)
            values[one.name] = declared._parse(stream, context, path)
            stream.leave(values[one.name])
        if self.layout.flexible:
            stream.enter(".unknown_tagged_fields", "tagged section")
            values["unknown_tagged_fields"] = self._parse_tagged(values, stream, context, path)
            stream.leave(values["unknown_tagged_fields"])
        return self.cls(**values)

    def _parse_tagged(self, values: dict[str, Any], stream: _Input, context: Any, path: str) -> dict[int, bytes] | None:
        known = {one.tag: (one, declared) for one, declared in self.tagged}
        unknown: dict[int, bytes] = {}
        section = stream.open[-1]
        first = section.start
        for _ in range(_uvarint._parse(stream, context, path)):
            section.start = stream.tell()  # what fails from here on fails in this varint
            tag = _uvarint._parse(stream, context, path)
            section.start = stream.tell()
            size = _uvarint._parse(stream, context, path)
            if size > stream.left():
                stream.fail(f"tagged field {tag} of {size} bytes, {stream.left()} bytes left")
            if tag not in known:
                stream.charge(costs.UNKNOWN_TAG)
                stream.enter(f"[{tag}]", f"{size} bytes, tag not known", "always" if hides_tags(self.cls) else "")
                unknown[tag] = stream.read(size)
                stream.leave(unknown[tag])
                continue
            one, declared = known[tag]
            stream.open.pop()  # the path of a tagged field is that of any field, without the section
            stream.enter("." + one.name, f"{_type_text(one)}, tag {tag}", one.secret)
            content = stream.tell()
            outer = stream.limit
            stream.limit = content + size
            values[one.name] = declared._parse(stream, context, path)
            if stream.left():
                stream.fail(f"{size - stream.left()} of {size} bytes of the tagged field used", content)
            stream.limit = outer
            stream.leave(values[one.name])
            stream.open.append(section)
        section.start = first
        return unknown or None

    def _build(self, obj: Any, stream: _Output, context: Any, path: str) -> Any:
        if not isinstance(obj, self.cls):
            stream.fail(f"expected {self.cls.__qualname__}, not {quoted(obj, 'inside')}")
        default = self.cls()
        for absent in self.layout.absent:
            value = getattr(obj, absent.name)
            if not absent.ignorable and not same(value, getattr(default, absent.name)):
                stream.path.append("." + absent.name)
                shown = quoted(value, absent.secret)
                stream.fail(f"only versions {absent.versions} have this field, and it is {shown}")
        for one, declared in self.fields:
            stream.path.append("." + one.name)
            declared._build(getattr(obj, one.name), stream, context, path)
            stream.path.pop()
        unknown = obj.unknown_tagged_fields or {}
        if self.layout.flexible:
            self._build_tagged(obj, default, unknown, stream, context, path)
        elif unknown:
            stream.path.append(".unknown_tagged_fields")
            stream.fail("this version has no tagged fields")
        return obj

    def _build_tagged(
        self, obj: Any, default: WireStruct, unknown: Any, stream: _Output, context: Any, path: str
    ) -> None:
        contents: dict[int, bytes] = {}
        for one, declared in self.tagged:
            value = getattr(obj, one.name)
            if same(value, getattr(default, one.name)):
                continue
            stream.path.append("." + one.name)
            inner = _Output(stream.label, stream.path)
            declared._build(value, inner, context, path)
            stream.path.pop()
            assert one.tag is not None
            contents[one.tag] = inner.getvalue()
        stream.path.append(".unknown_tagged_fields")
        if not isinstance(unknown, Mapping):
            stream.fail(f"expected a mapping of tag to bytes, not {quoted(unknown, 'inside')}")
        for tag, content in unknown.items():
            if not isinstance(tag, int) or not 0 <= tag <= 0xFFFF_FFFF:
                stream.fail(f"{quoted(tag)} is not a tag")
            if tag in {one.tag for one, _ in self.tagged}:
                stream.fail(f"tag {tag} is a known field of this version")
            if not isinstance(content, (bytes, bytearray, memoryview)):
                stream.fail(f"content of tag {tag}: expected bytes, not {quoted(content)}")
            contents[tag] = bytes(content)
        _uvarint._build(len(contents), stream, context, path)
        for tag, content in sorted(contents.items()):
            _uvarint._build(tag, stream, context, path)
            _uvarint._build(len(content), stream, context, path)
            stream.write(content)
        stream.path.pop()


def _pack_uuid(obj: Any, context: Any) -> bytes:
    if not isinstance(obj, UUID):
        raise construct.ConstructError(f"expected a uuid.UUID, not {quoted(obj)}")
    return obj.bytes


_FIXED: Final[dict[str, construct.Construct]] = {
    "bool": construct.ExprAdapter(construct.Int8ub, lambda obj, context: obj != 0, lambda obj, context: bool(obj)),
    "int8": construct.Int8sb,
    "int16": construct.Int16sb,
    "uint16": construct.Int16ub,
    "int32": construct.Int32sb,
    "uint32": construct.Int32ub,
    "int64": construct.Int64sb,
    "float64": construct.Float64b,
    "uuid": construct.ExprAdapter(construct.Bytes(16), lambda obj, context: UUID(bytes=obj), _pack_uuid),
}


def _length(compact: bool, short: bool, nullable: bool) -> _Length:
    if compact:
        return _Length(_uvarint, 0x7FFF_FFFF, nullable)
    if short:
        return _Length(construct.Int16sb, 0x7FFF, nullable)
    return _Length(construct.Int32sb, 0x7FFF_FFFF, nullable)


def _declare_struct(layout: model.StructLayout, message: model.Message) -> _Struct:
    top = layout.name == message.name
    return _Struct(
        layout,
        registry.message_class(message) if top else registry.struct_class(message, layout.name),
        [(one, _declare_field(one, message)) for one in layout.fields],
        [(one, _declare_field(one, message)) for one in layout.tagged],
    )


def _declare_field(one: model.FieldLayout, message: model.Message) -> construct.Construct:
    declared = _declare_type(one.type, one.nullable, message, one.secret)
    if not one.nullable or not isinstance(one.type, model.StructLayout):
        return declared
    return _Nullable(declared) if one.tag is None else _NullableTagged(declared)


def _declare_type(
    type_: model.TypeLayout, nullable: bool, message: model.Message, secret: str = ""
) -> construct.Construct:
    if isinstance(type_, model.StructLayout):
        return _declare_struct(type_, message)
    if isinstance(type_, model.ArrayLayout):
        element = _declare_type(type_.element, False, message)
        return _Array(_length(type_.compact, False, nullable), element, type_.element)
    if type_.name in _FIXED:
        return _FIXED[type_.name]
    text = type_.name == "string"
    return _Content(_length(type_.compact, text, nullable), text, secret)


def _type_text(one: model.FieldLayout) -> str:
    type_ = one.type
    if isinstance(type_, model.ArrayLayout):
        text, compact = f"[{type_.element.name}]", type_.compact
    else:
        text, compact = type_.name, isinstance(type_, model.PrimitiveLayout) and type_.compact
    return f"{'compact ' if compact else ''}{text}{'?' if one.nullable else ''}"


# The Message is kept in the value, so that its id stays its own.
_DECLARED: dict[tuple[int, int], tuple[model.Message, _Struct]] = {}


def _declared(message: model.Message, version: int) -> _Struct:
    found = _DECLARED.get((id(message), version))
    if found is None:
        found = (message, _declare_struct(model.layout(message, version), message))
        _DECLARED[id(message), version] = found
    return found[1]


def decode(
    message: model.Message, version: int, data: bytes, pos: int = 0, limits: Limits = DEFAULT_LIMITS
) -> WireStruct:
    """The message that ``data`` holds from ``pos`` to its end. Raises ``DecodeError``."""
    made, stream = _decode(message, version, data, pos, limits)
    _all_used(stream)
    return made


def decode_prefix(
    message: model.Message, version: int, data: bytes, pos: int = 0, limits: Limits = DEFAULT_LIMITS
) -> tuple[WireStruct, int]:
    """The message that begins at ``pos``, and the position after it. Raises ``DecodeError``."""
    made, stream = _decode(message, version, data, pos, limits)
    return made, stream.tell()


def trace(
    message: model.Message, version: int, data: bytes, pos: int = 0, *, whole: bool = True, most: int = -1
) -> tuple[Node, DecodeError | EnoughError | None]:
    """Where each field stands in ``data``, as far as it can be read, and what stopped the reading.

    With ``whole``, bytes after the message are an error too. ``most``: at most this many fields and elements (-1: all).
    At the bound reading stops too.
    """
    stream = _Input(data, pos, f"{message.name} v{version}")
    stream.nodes = most
    top = stream.open[0]
    try:
        _parse(message, version, stream)
        top.end = stream.tell()
        if whole:
            _all_used(stream)
    except DecodeError as error:
        return top, error
    except EnoughError as enough:
        for one in stream.open:
            one.end, one.cut = stream.tell(), True
        return top, enough
    return top, None


def _decode(message: model.Message, version: int, data: bytes, pos: int, limits: Limits) -> tuple[WireStruct, _Input]:
    check_limits(limits)
    stream = _Input(data, pos, f"{message.name} v{version}", limits)
    return _parse(message, version, stream), stream


def _parse(message: model.Message, version: int, stream: _Input) -> WireStruct:
    try:
        made: WireStruct = _declared(message, version)._parse(stream, {}, "")
    except construct.ConstructError as error:
        stream.fail(_words(error))
    return made


def _words(error: construct.ConstructError) -> str:
    # The first line is construct's own path, which is not ours.
    said = str(error).rpartition("\n")[2]
    short = _SHORT.fullmatch(said)
    return f"{short[1]} bytes needed, {short[2]} left" if short else said


_SHORT: Final = re.compile(r"stream read less than specified amount, expected (\d+), found (\d+)")
"""construct's words where the bytes end."""


def _all_used(stream: _Input) -> None:
    if stream.left():
        stream.fail(f"{stream.left()} bytes after the end of the message", stream.tell())


def encode(message: model.Message, version: int, obj: object) -> bytes:
    """The canonical bytes of ``obj``. Raises ``EncodeError``."""
    stream = _Output(f"{message.name} v{version}")
    try:
        _declared(message, version)._build(obj, stream, {}, "")
    except construct.ConstructError as error:
        raise EncodeError(_words(error), layout=stream.label, path="".join(stream.path)) from None
    return stream.getvalue()
