"""What a schema says, as plain immutable objects, and what it says of one version.

The parser (``kwire.schema.parser``) makes a ``Message`` from text. ``layout(message, version)`` resolves it for one
version: which fields exist, in wire order, with which encoding. Both codec implementations, the record locator, the
stubs and the printed grammar are made from layouts. So a question such as "is this length compact here?" is answered in
one place.

Rules kept here:

- A ``Message`` holds everything that every version needs. A ``StructLayout`` holds nothing about other versions but
  ``absent``: the fields that this version does not have. Decoding fills them with defaults, and encoding checks them.
- ``min_size`` is the least number of bytes that a valid encoding takes. Both codecs use it to reject counts that the
  remaining bytes cannot hold, before anything is allocated. So they reject the same inputs.
- Names are Kafka's, in snake_case. Type names are those of the schema files.

Layouts follow Kafka's message definitions: KIP-482 (flexible versions, tagged fields), KIP-893 (nullable structs).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

__all__ = [
    "FIXED_SIZES",
    "NO_VERSIONS",
    "OPEN",
    "PRIMITIVES",
    "Array",
    "ArrayLayout",
    "ByIdentity",
    "Field",
    "FieldLayout",
    "Kind",
    "Message",
    "Primitive",
    "PrimitiveLayout",
    "Secret",
    "Struct",
    "StructLayout",
    "StructRef",
    "Type",
    "TypeLayout",
    "Versions",
    "layout",
]

OPEN: Final = 0x7FFF
"""Upper end of an open range such as ``3+`` (a version is an int16 on the wire)."""

FIXED_SIZES: Final = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
"""Primitive types of fixed width, with their width in bytes."""

PRIMITIVES: Final = frozenset({*FIXED_SIZES, "string", "bytes", "records"})
"""All primitive type names of the schema language."""

Kind = Literal["request", "response", "header", "data"]
"""Type: what a schema describes: a body, a header, or data that is stored or embedded."""

Secret = Literal["", "always", "config", "frame", "topic"]
"""Whether what a field holds is not to be shown: passwords, tokens, keys.

Decoding and encoding do not ask.

Which kind of secret a field is:

- ``always``
- ``config``: the value of a configuration entry, by what the fields beside it say of the entry
  (``kwire.schema.configs``)
- ``frame``: a request or response with its header, in which there may be secrets
- ``topic``: a record set, of a topic whose records hold secrets
"""


@dataclass(frozen=True, slots=True)
class Versions:
    """An inclusive range of versions; ``NO_VERSIONS`` (low > high) holds none."""

    low: int
    high: int

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __bool__(self) -> bool:
        return self.low <= self.high

    def __and__(self, other: Versions) -> Versions:
        low = self.low if self.low >= other.low else other.low
        high = self.high if self.high <= other.high else other.high
        return self if low == self.low and high == self.high else Versions(low, high)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.low, self.high + 1))

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.high == OPEN:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


NO_VERSIONS: Final = Versions(1, 0)
"""The empty range of versions (``Versions``)."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """One of ``PRIMITIVES``."""

    name: str


@dataclass(frozen=True, slots=True)
class StructRef:
    """A struct of the same message, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Array:
    """``[T]``: any number of one type."""

    element: Primitive | StructRef


Type = Primitive | StructRef | Array
"""Type: the type of a field in a schema, for all versions."""
Default = None | bool | int | float | str | bytes
"""Scalar default as written.

Struct defaults are ``None`` or all-defaults; array defaults are ``None`` or empty.
"""


@dataclass(frozen=True, slots=True)
class Field:
    """One line of a schema.

    ``default`` is resolved: a field without ``= x`` has the zero of its type. The zeros are 0, False, "", b"", an empty
    list shown as ``()``, and the zero uuid as 16 zero bytes. A struct field that is not null by default has ``()`` as
    well and means a struct of defaults. ``null`` is ``None``.
    """

    name: str
    type: Type
    versions: Versions
    nullable: Versions = NO_VERSIONS
    tag: int | None = None
    tagged: Versions = NO_VERSIONS
    default: Default | tuple[()] = None
    ignorable: bool = False
    """Kafka drops it silently in versions that do not have it; otherwise a non-default value is an EncodeError."""
    plain: bool = False
    """Keeps the plain int16 length in flexible versions (only client_id of the request header does)."""
    secret: Secret = ""
    kafka_name: str = ""
    """As Kafka spells it, where that is not the CamelCase of ``name``; else empty."""
    comment: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Struct:
    """A named list of fields, in wire order."""

    name: str
    fields: tuple[Field, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Message:
    """A request, response, header or embedded schema, in all its versions.

    ``name`` is Kafka's class name (``ProduceRequest``); ``api_name`` is ``Produce``. ``structs`` holds every nested
    struct by name. ``kafka4`` is the range that Kafka 4 brokers accept (empty: they do not know the API).
    """

    name: str
    kind: Kind
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]
    structs: dict[str, Struct] = field(default_factory=dict, hash=False)
    api_key: int | None = None
    kafka4: Versions = NO_VERSIONS
    notes: dict[int, str] = field(default_factory=dict, hash=False)
    """What changed in a version, from the comments ``# v3 ...`` above the message."""
    doc: str = ""
    """What the message is for: the other comment lines above it."""
    file: str = field(default="<schema>", compare=False)
    line: int = field(default=0, compare=False)

    @property
    def api_name(self) -> str:
        """``Produce`` of ``ProduceRequest``."""
        for suffix in ("Request", "Response"):
            if self.kind in ("request", "response") and self.name.endswith(suffix):
                return self.name[: -len(suffix)]
        return self.name


@dataclass(frozen=True, slots=True)
class PrimitiveLayout:
    """A primitive as it is encoded in one version.

    ``compact``: length + 1 as an unsigned varint (KIP-482).
    """

    name: str
    compact: bool
    min_size: int


@dataclass(frozen=True, slots=True)
class ArrayLayout:
    """An array as it is encoded in one version."""

    element: PrimitiveLayout | StructLayout
    compact: bool
    min_size: int


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """A field that exists in this version."""

    name: str
    type: TypeLayout
    nullable: bool
    tag: int | None
    default: Default | tuple[()]
    secret: Secret = ""

    @property
    def min_size(self) -> int:
        """Least number of bytes of the field's encoding, outside of a tagged section."""
        # A nullable struct is one signed byte, -1 for null (KIP-893); other types have their own null length.
        if isinstance(self.type, StructLayout) and self.nullable:
            return 1
        return self.type.min_size


@dataclass(frozen=True, slots=True)
class StructLayout:
    """A struct (or a whole message) as it is encoded in one version.

    ``fields`` are in wire order, ``tagged`` in ascending tag order; ``absent`` are the schema's other fields.
    ``flexible``: a tagged section ends the struct.
    """

    name: str
    fields: tuple[FieldLayout, ...]
    tagged: tuple[FieldLayout, ...]
    absent: tuple[Field, ...]
    flexible: bool
    min_size: int

    def __hash__(self) -> int:
        # Layouts are keys of caches, and what they hold would be hashed anew each time, down to the last field.
        return hash((self.name, self.min_size, len(self.fields), len(self.absent)))


TypeLayout = PrimitiveLayout | ArrayLayout | StructLayout
"""Type: the type of a field in one version."""


@lru_cache(maxsize=4096)
def _layout(key: ByIdentity, version: int) -> StructLayout:
    message = key.message
    return _struct(message, message.name, message.fields, version, version in message.flexible)


@dataclass(frozen=True, slots=True, eq=False)
class ByIdentity:
    """A message as the key of a cache: one that replaces another of its name is another key.

    The cache holds the message, so that no other can get its identity.
    """

    message: Message

    def __hash__(self) -> int:
        return id(self.message)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and other.message is self.message


def layout(message: Message, version: int) -> StructLayout:
    """The layout of ``message`` in ``version``.

    Raises ``ValueError`` for a version that the message does not have. Callers check ``message.versions`` first and
    report it in their own words.
    """
    if version not in message.versions:
        raise ValueError(f"{message.name} has versions {message.versions}, not {version}")
    return _layout(ByIdentity(message), version)


def _struct(message: Message, name: str, fields: tuple[Field, ...], version: int, flexible: bool) -> StructLayout:
    present: list[FieldLayout] = []
    tagged: list[FieldLayout] = []
    absent: list[Field] = []
    for one in fields:
        if version not in one.versions:
            absent.append(one)
            continue
        is_tagged = one.tag is not None and version in one.tagged
        made = FieldLayout(
            name=one.name,
            type=_type(message, one, one.type, version, flexible),
            nullable=version in one.nullable,
            tag=one.tag if is_tagged else None,
            default=one.default,
            secret=one.secret,
        )
        (tagged if is_tagged else present).append(made)
    tagged.sort(key=lambda one: one.tag or 0)
    return StructLayout(
        name=name,
        fields=tuple(present),
        tagged=tuple(tagged),
        absent=tuple(absent),
        flexible=flexible,
        min_size=sum(one.min_size for one in present) + flexible,
    )


def _type(message: Message, owner: Field, type_: Type, version: int, flexible: bool) -> TypeLayout:
    if isinstance(type_, Primitive):
        compact = flexible and not owner.plain and type_.name not in FIXED_SIZES
        size = FIXED_SIZES.get(type_.name)
        if size is None:
            size = 1 if compact else 2 if type_.name == "string" else 4
        return PrimitiveLayout(type_.name, compact, size)
    if isinstance(type_, Array):
        element = _type(message, owner, type_.element, version, flexible)
        assert not isinstance(element, ArrayLayout)
        return ArrayLayout(element, flexible, 1 if flexible else 4)
    struct = message.structs[type_.name]
    return _struct(message, struct.name, struct.fields, version, flexible)
