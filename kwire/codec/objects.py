"""Message objects: one class per message and per nested struct, for all versions.

The classes are generated from the schema model: slots, keyword arguments with the schema's defaults, ``==``,
``repr``, ``to_dict``/``from_dict``, ``to_json``. A nested struct is an attribute of its message's class
(``ProduceRequest.TopicProduceData``). The rules:

- An object holds every field of every version. A version that lacks a field leaves it at its default.
- ``unknown_tagged_fields`` is ``None`` or a dict of tag to content, as read, and is written back.
- ``to_dict`` gives plain Python values (``bytes``, ``uuid.UUID``); ``to_json`` follows Kafka's own JSON
  converters: bytes are base64, uuids are Kafka's text form.
- Objects compare by value; they are mutable and therefore not hashable.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, ClassVar, Self
from uuid import UUID

from kwire import wire
from kwire.errors import EncodeError
from kwire.schema import model

__all__ = ["WireMessage", "WireStruct", "default_expression", "dump_json", "make_classes", "slot_of"]


class WireStruct:
    """Base of all message and struct classes.

    ``FIELDS`` are the schema's fields, ``STRUCTS`` the class of each struct-typed field by field name.
    """

    __slots__ = ("unknown_tagged_fields",)
    __hash__ = None  # type: ignore[assignment]

    FIELDS: ClassVar[tuple[model.Field, ...]] = ()
    STRUCTS: ClassVar[dict[str, type[WireStruct]]] = {}

    unknown_tagged_fields: dict[int, bytes] | None

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        for field in self.FIELDS:
            if getattr(self, field.name) != getattr(other, field.name):
                return False
        return (self.unknown_tagged_fields or None) == (other.unknown_tagged_fields or None)

    def __repr__(self) -> str:
        parts = [f"{field.name}={_show(getattr(self, field.name))}" for field in self.FIELDS]
        if self.unknown_tagged_fields:
            parts.append(f"unknown_tagged_fields={self.unknown_tagged_fields!r}")
        return f"{type(self).__qualname__}({', '.join(parts)})"

    def __getstate__(self) -> dict[str, Any]:
        # A memoryview (long record sets are views of the frame) can be neither pickled nor copied.
        state = {field.name: _plain(getattr(self, field.name)) for field in self.FIELDS}
        state["unknown_tagged_fields"] = self.unknown_tagged_fields
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def to_dict(self, version: int | None = None) -> dict[str, Any]:
        """Plain dicts, lists, ``bytes`` and ``uuid.UUID``; with ``version``, only the fields that it has."""
        out: dict[str, Any] = {}
        structs = self.STRUCTS
        for field in self.FIELDS:
            if version is not None and version not in field.versions:
                continue
            value = getattr(self, field.name)
            if field.name in structs and value is not None:
                if isinstance(value, WireStruct):
                    value = value.to_dict(version)
                else:
                    value = [one.to_dict(version) for one in value]
            else:
                value = _plain(value)
            out[field.name] = value
        if self.unknown_tagged_fields:
            out["unknown_tagged_fields"] = dict(self.unknown_tagged_fields)
        return out

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The reverse of ``to_dict``, and of what ``to_json`` wrote: base64 text for bytes, text for uuids.

        Fields that ``values`` does not have get their defaults. Raises ``EncodeError`` with the path for a name that
        the schema does not have or text that is neither base64 nor a uuid.
        """
        return cls._from_dict(values, "$")

    @classmethod
    def _from_dict(cls, values: Mapping[str, Any], path: str) -> Self:
        if not isinstance(values, Mapping):
            raise EncodeError(f"expected a mapping, not {type(values).__name__}", layout=cls.__qualname__, path=path)
        made = cls()
        left = dict(values)
        for field in cls.FIELDS:
            if field.name not in left:
                continue
            value = left.pop(field.name)
            where = f"{path}.{field.name}"
            struct = cls.STRUCTS.get(field.name)
            if value is None:
                pass
            elif isinstance(field.type, model.Array):
                if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
                    raise EncodeError(f"expected a list, not {value!r}", layout=cls.__qualname__, path=where)
                if struct is not None:
                    value = [struct._from_dict(one, f"{where}[{i}]") for i, one in enumerate(value)]
                else:
                    assert isinstance(field.type.element, model.Primitive)
                    element = field.type.element.name
                    value = [_from_plain(element, one, cls, f"{where}[{i}]") for i, one in enumerate(value)]
            elif struct is not None:
                value = struct._from_dict(value, where)
            else:
                assert isinstance(field.type, model.Primitive)
                value = _from_plain(field.type.name, value, cls, where)
            setattr(made, field.name, value)
        unknown = left.pop("unknown_tagged_fields", None)
        if unknown:
            if not isinstance(unknown, Mapping):
                raise EncodeError("expected a mapping of tag to bytes", layout=cls.__qualname__, path=path)
            try:
                made.unknown_tagged_fields = {
                    int(tag): _from_plain("bytes", content, cls, f"{path}.unknown_tagged_fields[{tag}]")
                    for tag, content in unknown.items()
                }
            except (ValueError, TypeError):
                raise EncodeError("a tag is not a number", layout=cls.__qualname__, path=path) from None
        if left:
            raise EncodeError(f"no field named {next(iter(left))!r}", layout=cls.__qualname__, path=path)
        return made

    def to_json(self, version: int | None = None, *, indent: int | None = None) -> str:
        """JSON text: bytes as base64, uuids in Kafka's text form, what is not UTF-8 as U+FFFD."""
        return dump_json(self.to_dict(version), indent=indent)


class WireMessage(WireStruct):
    """Base of the classes of whole messages. ``SCHEMA`` is the model that the class was made from."""

    __slots__ = ()

    SCHEMA: ClassVar[model.Message]


def dump_json(values: object, *, indent: int | None = None) -> str:
    """What ``to_dict`` gives as JSON text, by the rules of ``to_json``."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(values, default=_json_default, ensure_ascii=False, separators=separators, indent=indent)
    return wire.printable(text)


def _show(value: object) -> str:
    if isinstance(value, (bytes, memoryview)) and len(value) > 64:
        return f"{bytes(value[:48])!r}...({len(value)} bytes)"
    return repr(bytes(value)) if isinstance(value, memoryview) else repr(value)


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


def _json_default(value: object) -> str:
    if isinstance(value, (bytes, memoryview)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, UUID):
        return wire.uuid_text(value)
    raise TypeError(f"{type(value).__name__} in a message")


def _from_plain(type_: str, value: Any, cls: type, path: str) -> Any:
    try:
        if type_ == "uuid" and isinstance(value, str):
            return wire.parse_uuid(value)
        if type_ in ("bytes", "records") and isinstance(value, str):
            return base64.b64decode(value, validate=True)
    except ValueError:
        kind = "a uuid" if type_ == "uuid" else "base64"
        raise EncodeError(f"{value[:40]!r} is not {kind}", layout=cls.__qualname__, path=path) from None
    return value


def slot_of(field: model.Field | model.FieldLayout) -> str:
    """Name of the slot behind a field: the field's own, but ``_name`` where the default is a struct of defaults.

    Such a slot holds ``None`` until the field is read. Most of these fields are tagged, and rarely on the wire or of
    interest; making their structs for every object would take a third of the time of decoding a Fetch response.
    """
    if field.default == () and isinstance(field.type, (model.StructRef, model.StructLayout)):
        return "_" + field.name
    return field.name


def default_expression(field: model.Field | model.FieldLayout, namespace: dict[str, Any], struct: type | None) -> str:
    """Source text of an expression for what the field's slot (``slot_of``) holds by default; fresh where mutable.

    Names that it needs are put into ``namespace``.
    """
    default = field.default
    if default == () and isinstance(default, tuple):
        return "None" if slot_of(field) != field.name else "[]"
    if default is not None and isinstance(field.type, (model.Primitive, model.PrimitiveLayout)):
        if field.type.name == "uuid":
            namespace["ZERO_UUID"] = wire.ZERO_UUID
            if default in (b"", bytes(16), 0):
                return "ZERO_UUID"
            assert isinstance(default, bytes)
            name = f"UUID_{default.hex()}"
            namespace[name] = UUID(bytes=default)
            return name
        if field.type.name == "float64":
            assert isinstance(default, (int, float))
            return repr(float(default))
    return repr(default)


def make_classes(message: model.Message) -> tuple[type[WireMessage], dict[str, type[WireStruct]]]:
    """The class of ``message`` and those of its structs by name."""
    structs: dict[str, type[WireStruct]] = {}
    pending = dict(message.structs)
    while pending:
        # Inner structs first, so that a default of a struct field can call its class.
        ready = [name for name, one in pending.items() if not _references(one.fields) & pending.keys() - {name}]
        if not ready:  # a cycle cannot be encoded; kwire.schema.checks refuses it
            raise AssertionError(f"{message.name}: structs contain each other: {sorted(pending)}")
        for name in ready:
            made = _make_class(message, name, f"{message.name}.{name}", pending.pop(name).fields, structs, WireStruct)
            structs[name] = made
    whole = _make_class(message, message.name, message.name, message.fields, structs, WireMessage)
    for name, one in structs.items():
        setattr(whole, name, one)
    assert issubclass(whole, WireMessage)
    whole.SCHEMA = message
    return whole, structs


def _references(fields: tuple[model.Field, ...]) -> set[str]:
    out = set()
    for field in fields:
        inner = field.type.element if isinstance(field.type, model.Array) else field.type
        if isinstance(inner, model.StructRef):
            out.add(inner.name)
    return out


def _make_class(
    message: model.Message,
    name: str,
    qualname: str,
    fields: tuple[model.Field, ...],
    structs: dict[str, type[WireStruct]],
    base: type[WireStruct],
) -> type[WireStruct]:
    namespace: dict[str, Any] = {}
    own: dict[str, type[WireStruct]] = {}
    parameters: list[str] = []
    body: list[str] = []
    for field in fields:
        inner = field.type.element if isinstance(field.type, model.Array) else field.type
        if isinstance(inner, model.StructRef):
            own[field.name] = structs[inner.name]
        expression = default_expression(field, namespace, own.get(field.name))
        if expression == "[]":
            # A fresh list for each object; () cannot be told from an empty list on the wire.
            parameters.append(f"{field.name}=()")
            body.append(f"self.{field.name} = [] if {field.name} == () else {field.name}")
        else:
            parameters.append(f"{field.name}={expression}")
            body.append(f"self.{slot_of(field)} = {field.name}")
    parameters.append("unknown_tagged_fields=None")
    body.append("self.unknown_tagged_fields = unknown_tagged_fields")
    source = f"def __init__(self, *, {', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in body)
    exec(compile(source, f"<kwire {qualname}.__init__>", "exec"), namespace)
    label = "" if message.api_key is None else f" (API key {message.api_key})"
    members: dict[str, Any] = {
        "__slots__": tuple(slot_of(field) for field in fields),
        "__init__": namespace["__init__"],
        "__qualname__": qualname,
        "__module__": "kwire.messages",
        "__doc__": f"{qualname}{label}, versions {message.versions}.",
        "__hash__": None,
        "FIELDS": fields,
        "STRUCTS": own,
    }
    for field in fields:
        if slot_of(field) != field.name:
            members[field.name] = _made_when_read(slot_of(field), own[field.name])
    return type(name, (base,), members)


def _made_when_read(slot: str, struct: type[WireStruct]) -> property:
    """The property over ``slot``. Generated: whoever reads all fields of a Fetch response comes by here often."""
    namespace: dict[str, Any] = {"new": object.__new__, "struct": struct}
    lines = ["def read(self):", f"    value = self.{slot}", "    if value is None:"]
    lines.append(f"        self.{slot} = value = new(struct)")
    for field in struct.FIELDS:
        expression = default_expression(field, namespace, struct.STRUCTS.get(field.name))
        lines.append(f"        value.{slot_of(field)} = {expression}")
    lines += ["        value.unknown_tagged_fields = None", "    return value"]
    lines += ["def write(self, value):", f"    self.{slot} = value"]
    exec(compile("\n".join(lines), f"<kwire {struct.__qualname__} in {slot}>", "exec"), namespace)
    doc = f"A ``{struct.__qualname__}``; ``None`` stands for one that holds the defaults."
    return property(namespace["read"], namespace["write"], doc=doc)
