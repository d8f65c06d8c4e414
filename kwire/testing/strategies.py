"""Hypothesis strategies: any message of any layout, and whole frames.

A layout (``kwire.schema.model``) says exactly which values a version can carry. So the strategies are made from layouts
and never from knowledge of single APIs. ``messages(message, version)`` draws objects that encode in that version.
Nulls, empty arrays, set and unset tagged fields and unknown tags are included. What only other versions have stays at
its default.

Rules kept here:

- Every drawn message encodes, and decodes to an equal one. So there are no NaNs, and strings are what decoding can
  give. That is Unicode text, or the lone surrogates that stand for bytes that are not UTF-8.
- Draws are small (a few elements, short strings): a parser's mistakes show at the edges, not in bulk.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from kwire import schema
from kwire.codec import registry
from kwire.codec.objects import WireMessage, WireStruct
from kwire.protocol import names
from kwire.protocol.headers import request_header_version, response_header_version
from kwire.schema import model

__all__ = ["Frame", "frames", "layouts", "messages"]

MAX_ELEMENTS: Final = 3
MAX_TAG: Final = 0xFFFF_FFFF

_INTEGERS: Final = {
    name: (0, 2 ** (8 * size) - 1) if name.startswith("u") else (-(2 ** (8 * size - 1)), 2 ** (8 * size - 1) - 1)
    for name, size in model.FIXED_SIZES.items()
    if "int" in name
}


def _primitive(name: str) -> SearchStrategy[Any]:
    if name == "bool":
        return st.booleans()
    if name == "float64":
        return st.floats(allow_nan=False, width=64)
    if name == "uuid":
        return st.one_of(st.just(UUID(int=0)), st.binary(min_size=16, max_size=16).map(lambda b: UUID(bytes=b)))
    if name == "string":
        # Decoded bytes rather than drawn surrogates: two of those side by side may stand for one valid character.
        undecodable = st.binary(max_size=8).map(lambda b: b.decode("utf-8", "surrogateescape"))
        # Longer than 127 bytes, so that a compact length takes a second byte.
        return st.one_of(st.text(max_size=12), undecodable, st.integers(120, 140).map(lambda n: "x" * n))
    if name in ("bytes", "records"):
        return st.one_of(st.binary(max_size=24), st.integers(120, 140).map(bytes))
    low, high = _INTEGERS[name]
    return st.one_of(st.integers(low, high), st.sampled_from([low, 0, 1, high]))


_PRIMITIVES: Final = {name: _primitive(name) for name in sorted(model.PRIMITIVES)}

# The Message is kept in the value, so that its id stays its own.
_MESSAGES: Final[dict[tuple[int, int, bool], tuple[model.Message, Any]]] = {}


def messages(message: model.Message, version: int, *, unknown_tags: bool = True) -> SearchStrategy[WireMessage]:
    """Objects of ``message`` that can be encoded in ``version``.

    With ``unknown_tags``, flexible structs carry tagged fields that the schema does not know now and then. Raises
    ``ValueError`` for a version that the message does not have.
    """
    key = (id(message), version, unknown_tags)
    if key not in _MESSAGES:
        _MESSAGES[key] = (message, _struct(model.layout(message, version), message, unknown_tags))
    strategy: SearchStrategy[WireMessage] = _MESSAGES[key][1]
    return strategy


def _struct(layout: model.StructLayout, message: model.Message, unknown_tags: bool) -> SearchStrategy[WireStruct]:
    cls: type[WireStruct]
    if layout.name == message.name:
        cls = registry.message_class(message)
    else:
        cls = registry.struct_class(message, layout.name)
    fields = {one.name: _field(one, message, unknown_tags) for one in layout.fields}
    # A tagged field with its default is not written.
    default = cls()
    for one in layout.tagged:
        same = getattr(default, one.name)
        fields[one.name] = st.one_of(st.just(() if same == [] else same), _field(one, message, unknown_tags))
    if layout.flexible and unknown_tags:
        fields["unknown_tagged_fields"] = st.one_of(st.none(), _unknown({one.tag for one in layout.tagged}))

    def made(**values: Any) -> WireStruct:
        return cls(**values)

    # Hypothesis prints what was drawn as a call of this name: that of a struct has its message in front.
    made.__name__ = cls.__qualname__
    return st.builds(made, **fields)


def _unknown(known: Container[int | None]) -> SearchStrategy[dict[int, bytes]]:
    """Tagged fields that are not among ``known``."""
    tags = st.one_of(st.integers(0, 200), st.integers(0, MAX_TAG)).filter(lambda tag: tag not in known)
    return st.dictionaries(tags, st.binary(max_size=12), min_size=1, max_size=3)


def _field(one: model.FieldLayout, message: model.Message, unknown_tags: bool) -> SearchStrategy[Any]:
    made = _type(one.type, message, unknown_tags)
    return st.one_of(st.none(), made) if one.nullable else made


def _type(type_: model.TypeLayout, message: model.Message, unknown_tags: bool) -> SearchStrategy[Any]:
    if isinstance(type_, model.StructLayout):
        return _struct(type_, message, unknown_tags)
    if isinstance(type_, model.ArrayLayout):
        return st.lists(_type(type_.element, message, unknown_tags), max_size=MAX_ELEMENTS)
    return _PRIMITIVES[type_.name]


def layouts(*, kinds: tuple[model.Kind, ...] = ("request", "response")) -> SearchStrategy[tuple[model.Message, int]]:
    """Any (message, version) of the given kinds that the built-in schemas and the loaded folders have."""
    return st.sampled_from(_layouts(kinds, None))


def _layouts(kinds: tuple[model.Kind, ...], api_key: int | None) -> list[tuple[model.Message, int]]:
    known = [schema.message(name) for name in schema.names()]
    wanted = [one for one in known if one.kind in kinds and api_key in (None, one.api_key)]
    return [(one, version) for one in wanted for version in one.versions]


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame (the bytes after the 4-byte size), and what it was made from."""

    kind: str
    api_key: int
    api_version: int
    correlation_id: int
    body: WireMessage
    data: bytes


def frames(
    *, api_key: int | str | None = None, kinds: tuple[model.Kind, ...] = ("request", "response")
) -> SearchStrategy[Frame]:
    """Requests and responses with their headers, of all APIs or of one: its key or its name.

    Strings may have lone surrogates, which stand for bytes that are no UTF-8: ``text.encode("utf-8",
    "surrogateescape")`` is what the frame has. Raises ``UnsupportedVersionError`` for a name that no API has, and
    ``ValueError`` for a key.
    """
    if isinstance(api_key, str):
        api_key = names.api_key(api_key)
    known = _layouts(kinds, api_key)
    if not known:
        raise ValueError(f"no {' or '.join(kinds)} has the API key {api_key}")
    layout = st.sampled_from(known)

    @st.composite
    def draw_frame(draw: DrawFn) -> Frame:
        message, version = draw(layout)
        body = draw(messages(message, version))
        correlation_id = draw(st.integers(*_INTEGERS["int32"]))
        assert message.api_key is not None
        values: dict[str, Any] = {"correlation_id": correlation_id}
        if message.kind == "request":
            header, number = schema.message("RequestHeader"), request_header_version(message.api_key, version)
            values |= {"request_api_key": message.api_key, "request_api_version": version}
            if number > 0:
                values["client_id"] = draw(st.one_of(st.none(), st.text(max_size=12)))
        else:
            header, number = schema.message("ResponseHeader"), response_header_version(message.api_key, version)
        if model.layout(header, number).flexible:
            values["unknown_tagged_fields"] = draw(st.one_of(st.none(), _unknown(set())))
        head = registry.codec(header, number).encode(registry.message_class(header)(**values))
        data = head + registry.codec(message, version).encode(body)
        return Frame(message.kind, message.api_key, version, correlation_id, body, data)

    return draw_frame()
