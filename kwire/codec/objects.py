"""Message objects: one class per message and per nested struct, for all versions.

The classes are generated from the schema model: slots, keyword arguments with the schema's defaults, ``==``,
``repr``, ``to_dict``/``from_dict``, ``to_json``. A nested struct is an attribute of its message's class
(``ProduceRequest.TopicProduceData``). The rules:

- An object holds every field of every version. A version that lacks a field leaves it at its default.
- An array of numbers is a tuple, any other array a list; either is taken, and they compare as sequences. (Tuples cost
  the garbage collector next to nothing, and a Metadata response has thousands of replica lists.)
- A struct field that was not on the wire holds the one default of its class. All objects share it, so it is read-only.
  To change it, assign a struct of your own, or a copy (``copy.copy``) of the default.
- ``unknown_tagged_fields`` is ``None`` or a dict of tag to content, as read, and is written back.
- ``to_dict`` gives plain Python values (``bytes``, ``uuid.UUID``). ``to_json`` follows Kafka's own JSON converters.
  Bytes are base64, uuids are Kafka's text form. NaN and the infinities are ``"NaN"``, ``"Infinity"`` and
  ``"-Infinity"``. ``from_dict`` takes back all of these.
- ``repr`` and ``to_json`` do not show what the schema calls secret (``kwire.codec.redacting``), nor do errors.
- Objects compare by value; they are mutable and therefore not hashable.
"""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Mapping
from types import NoneType
from typing import Any, ClassVar, Final, Self
from uuid import UUID

from kwire import wire
from kwire.codec.redacting import (
    Secrets,
    by_topic,
    hides_tags,
    is_left_out,
    is_redacted,
    is_secret,
    quoted,
    redact,
    redacted,
    secrets_of,
)
from kwire.errors import EncodeError
from kwire.schema import model
from kwire.schema.checks import check_generated

__all__ = ["WireMessage", "WireStruct", "default_expression", "dump_json", "holds_numbers", "make_classes", "same"]


class WireStruct:
    """Base of all message and struct classes.

    ``FIELDS`` are the schema's fields. ``STRUCTS`` has the class of each struct-typed field by field name.
    ``SECRET_FIELDS`` are the fields that are secret or have secrets inside. ``SECRET_BY_TOPIC`` says whether that
    depends only on the topic that the struct names.
    """

    __slots__ = ("unknown_tagged_fields",)

    FIELDS: ClassVar[tuple[model.Field, ...]] = ()
    STRUCTS: ClassVar[dict[str, type[WireStruct]]] = {}
    SECRET_FIELDS: ClassVar[Secrets] = ()
    SECRET_BY_TOPIC: ClassVar[bool] = False

    unknown_tagged_fields: dict[int, bytes] | None

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        for field in self.FIELDS:
            if not same(getattr(self, field.name), getattr(other, field.name)):
                return False
        return (self.unknown_tagged_fields or None) == (other.unknown_tagged_fields or None)

    def __repr__(self) -> str:
        return _text(self, ())

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
        kind: Any = type(self)  # whose objects cannot be hashed, while it can
        for name, is_struct in _shown(kind, version):
            value = getattr(self, name)
            if is_struct and value is not None:
                if isinstance(value, WireStruct):
                    value = value.to_dict(version)
                else:
                    value = [one.to_dict(version) for one in value]
            elif type(value) not in _SCALARS:
                value = _plain(value)
            out[name] = value
        if self.unknown_tagged_fields:
            out["unknown_tagged_fields"] = dict(self.unknown_tagged_fields)
        return out

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The reverse of ``to_dict``, and of what ``to_json`` wrote: base64 text for bytes, text for uuids.

        Fields that ``values`` does not have get their defaults. Raises ``EncodeError`` with the path for a name that
        the schema does not have. The same holds for text that is neither base64 nor a uuid.
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
                    raise EncodeError(f"expected a list, not {quoted(value)}", layout=cls.__qualname__, path=where)
                if struct is not None:
                    value = [struct._from_dict(one, f"{where}[{i}]") for i, one in enumerate(value)]
                else:
                    assert isinstance(field.type.element, model.Primitive)
                    element = field.type.element.name
                    value = [_from_plain(element, one, cls, f"{where}[{i}]", "") for i, one in enumerate(value)]
                    if holds_numbers(field):
                        value = tuple(value)
            elif struct is not None:
                value = struct._from_dict(value, where)
            else:
                assert isinstance(field.type, model.Primitive)
                value = _from_plain(field.type.name, value, cls, where, field.secret)
            setattr(made, field.name, value)
        unknown = left.pop("unknown_tagged_fields", None)
        if unknown:
            if not isinstance(unknown, Mapping):
                raise EncodeError("expected a mapping of tag to bytes", layout=cls.__qualname__, path=path)
            try:
                made.unknown_tagged_fields = {
                    int(tag): _from_plain("bytes", content, cls, f"{path}.unknown_tagged_fields[{tag}]", "")
                    for tag, content in unknown.items()
                }
            except (ValueError, TypeError):
                raise EncodeError("a tag is not a number", layout=cls.__qualname__, path=path) from None
        if left:
            raise EncodeError(f"no field named {next(iter(left))!r}", layout=cls.__qualname__, path=path)
        return made

    def to_json(self, version: int | None = None, *, indent: int | None = None, secrets: bool = False) -> str:
        """JSON text: bytes as base64, uuids in Kafka's text form, what is not UTF-8 as U+FFFD.

        In place of a password, token and the like stands its size, ``{"redacted": 26}``; with ``secrets`` it is shown.
        """
        values = self.to_dict(version)
        if not secrets:
            redact(type(self), values)
        return dump_json(values, indent=indent)


class WireMessage(WireStruct):
    """Base of the classes of whole messages. ``SCHEMA`` is the model that the class was made from."""

    __slots__ = ()

    SCHEMA: ClassVar[model.Message]


def dump_json(values: object, *, indent: int | None = None) -> str:
    """What ``to_dict`` gives as JSON text, by the rules of ``to_json``."""
    separators = (",", ":") if indent is None else None
    how: dict[str, Any] = {"default": _json_default, "ensure_ascii": False, "separators": separators, "indent": indent}
    try:
        text = json.dumps(values, allow_nan=False, **how)
    except ValueError:
        text = json.dumps(wire.finite(values), **how)
    return wire.printable(text)


def _text(one: WireStruct, around: tuple[object, ...]) -> str:
    """``repr`` of a struct that stands inside of others: they can say what in it is secret."""
    inside = (*around, one)
    secret = {name: (kind, struct) for name, kind, struct in one.SECRET_FIELDS}
    parts = []
    for field in one.FIELDS:
        value = getattr(one, field.name)
        kind, struct = secret.get(field.name, ("", None))
        if struct is not None:
            shown = _inner(value, inside)
        elif kind and value is not None and not isinstance(value, (str, bytes, memoryview, bytearray)):
            shown = f"<{type(value).__name__}>"  # assigned by mistake; it may be the secret all the same
        elif kind and value and is_secret(kind, value, inside):
            shown = repr(redacted(value if isinstance(value, str) else len(value)))
        else:
            shown = _show(value)
        parts.append(f"{field.name}={shown}")
    if one.unknown_tagged_fields:
        parts.append(f"unknown_tagged_fields={_tags(one)}")
    return f"{type(one).__qualname__}({', '.join(parts)})"


def _tags(one: WireStruct) -> str:
    unknown: object = one.unknown_tagged_fields
    if not hides_tags(type(one)):
        return repr(unknown)
    if not isinstance(unknown, dict) or not all(isinstance(content, bytes) for content in unknown.values()):
        return f"<{type(unknown).__name__}>"  # assigned by mistake
    return repr({tag: redacted(content) for tag, content in unknown.items()})


def _inner(value: object, around: tuple[object, ...]) -> str:
    if isinstance(value, WireStruct):
        return _text(value, around)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_inner(one, around) for one in value)}]" if value else repr(value)
    return "None" if value is None else f"<{type(value).__name__}>"


def _show(value: object) -> str:
    if isinstance(value, (bytes, memoryview)) and len(value) > 64:
        return f"{bytes(value[:48])!r}...({len(value)} bytes)"
    return repr(bytes(value)) if isinstance(value, memoryview) else repr(value)


_SCALARS: Final = frozenset((NoneType, bool, int, float, str, bytes, UUID))
"""Types of values that ``to_dict`` hands on as they are."""


@functools.lru_cache(maxsize=1 << 12)
def _shown(kind: type[WireStruct], version: int | None) -> tuple[tuple[str, bool], ...]:
    """The names of the fields that a ``kind`` has in a version, and whether they are structs."""
    return tuple(
        (field.name, field.name in kind.STRUCTS)
        for field in kind.FIELDS
        if version is None or version in field.versions
    )


def _plain(value: Any) -> Any:
    if isinstance(value, memoryview):
        return bytes(value)
    return list(value) if isinstance(value, tuple) else value


def _json_default(value: object) -> str:
    if isinstance(value, (bytes, memoryview)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, UUID):
        return wire.uuid_text(value)
    raise TypeError(f"{type(value).__name__} in a message")


def _from_plain(type_: str, value: Any, cls: type, path: str, secret: str) -> Any:
    if is_redacted(value):
        raise EncodeError("the value was left out as a secret", layout=cls.__qualname__, path=path)
    if type_ == "records" and is_left_out(value):
        raise EncodeError("the record set was left out", layout=cls.__qualname__, path=path)
    try:
        if type_ == "uuid" and isinstance(value, str):
            return wire.parse_uuid(value)
        if type_ in ("bytes", "records") and isinstance(value, str):
            return base64.b64decode(value, validate=True)
        if type_ == "float64" and isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
            return float(value)
    except ValueError:
        kind = "a uuid" if type_ == "uuid" else "base64"
        raise EncodeError(f"{quoted(value, secret)} is not {kind}", layout=cls.__qualname__, path=path) from None
    return value


def same(one: Any, other: Any) -> bool:
    """Whether two values of a field are equal: a list and a tuple of equal elements are."""
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)) and one.__class__ is not other.__class__:
        return len(one) == len(other) and all(map(same, one, other))
    try:
        return bool(one == other)
    except Exception:  # whatever was assigned to the attribute compares itself; an array of numpy has no truth
        return False


def holds_numbers(field: model.Field | model.FieldLayout) -> bool:
    """Whether the field is an array of numbers (or truth values), which is a tuple."""
    type_ = field.type
    if not isinstance(type_, (model.Array, model.ArrayLayout)):
        return False
    element = type_.element
    fixed = isinstance(element, (model.Primitive, model.PrimitiveLayout)) and element.name in model.FIXED_SIZES
    return fixed and element.name != "uuid"


def default_expression(field: model.Field | model.FieldLayout, namespace: dict[str, Any], struct: type | None) -> str:
    """Source text of an expression for what the field holds by default: a fresh list, or what can be shared.

    ``struct`` is the class of a struct-typed field. Names that the expression needs are put into ``namespace``, and so
    is text of the schema. The source holds the name of a constant, never the text.
    """
    default = field.default
    if default == () and isinstance(default, tuple):
        if isinstance(field.type, (model.Array, model.ArrayLayout)):
            return "()" if holds_numbers(field) else "[]"
        assert struct is not None
        name = f"DEFAULT_{struct.__name__}"
        namespace[name] = _shared_default(struct)
        return name
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
        if isinstance(default, str) and default:
            number = 0
            while namespace.setdefault(f"TEXT_{number}", default) != default:
                number += 1
            return f"TEXT_{number}"
    return repr(default)


def make_classes(message: model.Message) -> tuple[type[WireMessage], dict[str, type[WireStruct]]]:
    """The class of ``message`` and those of its structs by name.

    Raises ``SchemaError`` before source is made of names that the schema language does not have (a model can be made by
    hand).
    """
    check_generated(message)
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


class _Documentation:
    """``__doc__`` of a class: what ``help`` shows. It is made when it is asked for."""

    def __init__(self, message: model.Message, title: str, fields: tuple[model.Field, ...]) -> None:
        self._message = message
        self._title = title
        self._fields = fields

    def __get__(self, instance: object, owner: type | None = None) -> str:
        from kwire.schema.format import fields_to_text

        message = self._message
        parts = [self._title]
        if self._fields is message.fields:
            notes = "".join(f"    v{version}: {note}\n" for version, note in sorted(message.notes.items()))
            parts += [one for one in (message.doc, notes and f"What versions brought:\n\n{notes}") if one]
        found = fields_to_text(message, self._fields)
        if found:
            parts.append("Fields, with type, default and versions (0+ where none stand):\n\n" + found)
        return "\n\n".join(one.rstrip("\n") for one in parts) + "\n"


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
    # Capitals, because a field may be called ``list``.
    namespace: dict[str, Any] = {"LIST": list, "TUPLE": tuple}
    own: dict[str, type[WireStruct]] = {}
    parameters: list[str] = []
    body: list[str] = []
    for field in fields:
        inner = field.type.element if isinstance(field.type, model.Array) else field.type
        if isinstance(inner, model.StructRef):
            own[field.name] = structs[inner.name]
        expression = default_expression(field, namespace, own.get(field.name))
        if expression == "[]":
            # A fresh list for each object: () could not be distinguished from an empty list on the wire.
            parameters.append(f"{field.name}=()")
            body.append(f"self.{field.name} = [] if {field.name} == () else {field.name}")
        else:
            parameters.append(f"{field.name}={expression}")
            body.append(f"self.{field.name} = {field.name}")
            if holds_numbers(field):
                body[-1] = (
                    f"self.{field.name} = TUPLE({field.name}) if {field.name}.__class__ is LIST else {field.name}"
                )
    parameters.append("unknown_tagged_fields=None")
    body.append("self.unknown_tagged_fields = unknown_tagged_fields")
    source = f"def __init__(self, *, {', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in body)
    exec(compile(source, f"<kwire {qualname}.__init__>", "exec"), namespace)
    secret = secrets_of(fields, own)
    label = "" if message.api_key is None else f" (API key {message.api_key})"
    members: dict[str, Any] = {
        "__slots__": tuple(field.name for field in fields),
        "__init__": namespace["__init__"],
        "__qualname__": qualname,
        "__module__": "kwire.messages",
        "__doc__": _Documentation(message, f"{qualname}{label}, versions {message.versions}.", fields),
        "__hash__": None,
        "FIELDS": fields,
        "STRUCTS": own,
        "SECRET_FIELDS": secret,
        "SECRET_BY_TOPIC": by_topic(fields, secret),
    }
    return type(name, (base,), members)


_SHARED: dict[type[WireStruct], WireStruct] = {}


def _shared_default(struct: type[WireStruct]) -> WireStruct:
    """The read-only ``struct`` that fields at their default hold.

    It has a class of its own, so that assigning to the attributes of all others costs nothing. But it says that its
    class is ``struct``, equals a ``struct``, and a copy of it is one.
    """
    found = _SHARED.get(struct)
    if found is None:

        def refuse(self: object, name: str, value: object = None) -> None:
            raise AttributeError(
                f"{struct.__qualname__}.{name}: this is the shared default of a field; assign a struct of your own to "
                f"the field, {struct.__qualname__}({name}=...)"
            )

        members = {
            "__slots__": (),
            "__qualname__": struct.__qualname__,
            "__module__": struct.__module__,
            "__doc__": struct.__dict__["__doc__"],
            "__class__": property(lambda self: struct),
            "__hash__": None,
            "__reduce__": lambda self: (struct, ()),
        }
        kind = type(struct.__name__, (struct,), members)
        found = struct()
        for field in struct.FIELDS:
            if isinstance(getattr(found, field.name), list):
                setattr(found, field.name, ())  # a list could be added to
        object.__setattr__(found, "__class__", kind)
        # Only now: an object of a class with a __setattr__ of its own is not the fast kind to fill.
        kind.__setattr__ = refuse  # type: ignore[method-assign]
        kind.__delattr__ = refuse  # type: ignore[method-assign,assignment]
        _SHARED[struct] = found
    return found
