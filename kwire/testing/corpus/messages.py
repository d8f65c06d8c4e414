"""Cases that are frames: every layout by several shapes, and each kind of damage at every border of a field."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from kwire import schema
from kwire.codec import registry
from kwire.codec.objects import WireStruct
from kwire.protocol.headers import decode_response, request_header_version, response_header_version
from kwire.schema import model
from kwire.testing.corpus.case import Case, Recipe, Role
from kwire.testing.corpus.damage import ACCEPT, KINDS, Damaged, damaged
from kwire.testing.corpus.fields import Piece, joined, pieces, starts
from kwire.testing.corpus.record_sets import RECORD_KINDS, record_cases
from kwire.testing.corpus.shapes import SHAPES, UNKNOWN, value

__all__ = ["CLIENT_ID", "CORRELATION_ID", "frame_cases", "hurt", "remade"]

CORRELATION_ID: Final = 7
"""The correlation id (int) that the headers of all frames have."""
CLIENT_ID: Final = "kwire"
"""The client id (str) that the headers of requests have. It is null in the shape ``nulls``."""

_HEADERS_OF: Final = "Metadata"
"""The API whose frames also have damaged headers: it has each header that there is, but for one."""
_SOURCE: Final = "Kafka's message definitions"


def frame_cases(
    message: model.Message, version: int, shapes: Sequence[str], kinds: Sequence[str], seed: int
) -> Iterator[Case]:
    """The cases of a layout: each shape as it is, and each kind of damage to the shape ``one``."""
    for shape in SHAPES:
        if shape in shapes:
            made = _Frame(message, version, value(message, version, shape, seed), shape)
            yield made.case(shape)
    if kinds:
        made = _Frame(message, version, value(message, version, "one", seed))
        for one in damaged(made.parts, kinds, made.border()):
            yield made.damaged(one)


def remade(case: Case, body: WireStruct) -> Case | None:
    """A frame like that of ``case`` with another body, and the same damage. None where there is no such field."""
    recipe = case.recipe
    if recipe is None:
        return None
    frame = _Frame(recipe.message, case.version, body, case.shape)
    if not recipe.damage:
        return frame.case(case.shape)
    if not recipe.path:
        return None
    for at in range(frame.first, len(frame.parts)):
        piece = frame.parts[at]
        if (piece.path, piece.part) == (recipe.path, recipe.part):
            for one in damaged(frame.parts, [recipe.damage], range(at, at + 1)):
                if one.variant == recipe.variant:
                    return frame.damaged(one)
    return None


def hurt(frame: bytes, api_key: int, version: int, kind: str, chance: random.Random) -> Case | None:
    """The response ``frame`` of some broker, damaged in a place that ``chance`` takes.

    ``kind`` is one of ``KINDS``, or of ``RECORD_KINDS``, whose record sets take the place of one that is there. None
    where the response has no place for it. Raises ``KwireError`` for a frame that is no such response.
    """
    made = decode_response(frame, api_key=api_key, api_version=version)
    message, body, version = made.body.SCHEMA, made.body, made.api_version
    layout = model.layout(message, version)
    case = Case(
        name=f"{message.api_name}/response-v{version}/{kind}",
        role="response",
        data=frame,
        verdict=ACCEPT,
        source=_SOURCE,
        kafka=None,
        api=message.api_name,
        api_key=api_key,
        version=version,
        damage=kind,
    )
    size = len(frame) - sum(len(one.data) for one in pieces(layout, body))
    if kind in RECORD_KINDS:
        sets = [one for one in _holders(body) if one.records]
        some = list(record_cases([kind]))
        if not sets or not some:
            return None
        chosen = chance.choice(some)
        chance.choice(sets).records = chosen.data
        data = frame[:size] + registry.codec(message, version).encode(body)
        return replace(case, data=data, verdict=chosen.verdict, source=chosen.source, body_at=size)
    parts = [Piece("number", "header", frame[:size], until=1), *pieces(layout, body)]
    for one in parts[1:]:
        one.until += 1
    for at in chance.sample(range(1, len(parts)), len(parts) - 1):
        found = [one for one in KINDS[kind].apply(parts, at) if one != frame]
        if found:
            known = KINDS[kind]
            return replace(
                case,
                data=chance.choice(found),
                verdict=known.verdict,
                source=known.source,
                kafka=known.kafka,
                body_at=size,
                path=parts[at].path,
                offset=starts(parts)[at],
            )
    return None


def _holders(body: WireStruct) -> Iterator[Any]:
    """The structs that hold a record set."""
    for field in body.FIELDS:
        value = getattr(body, field.name)
        if field.name == "records":
            yield body
        elif isinstance(value, list):
            for one in value:
                if isinstance(one, WireStruct):
                    yield from _holders(one)


class _Frame:
    """A valid frame in pieces."""

    def __init__(self, message: model.Message, version: int, body: WireStruct, shape: str = "one") -> None:
        self.message, self.version, self.body = message, version, body
        header = _header(message, version, shape)
        self.first = len(header)
        """The index of the first piece of the body."""
        inner = pieces(model.layout(message, version), body)
        for one in inner:
            one.until += self.first
        self.parts: list[Piece] = [*header, *inner]
        self.begins = starts(self.parts)

    def border(self) -> range:
        """The pieces that are damaged."""
        return range(0 if self.message.api_name == _HEADERS_OF else self.first, len(self.parts))

    def case(self, shape: str = "one") -> Case:
        """The frame as it is."""
        message = self.message
        assert message.api_key is not None
        role: Role = "request" if message.kind == "request" else "response"
        return Case(
            name=f"{message.api_name}/{role}-v{self.version}/{shape}",
            role=role,
            data=joined(self.parts, {}),
            verdict=ACCEPT,
            source=_SOURCE,
            kafka=True,
            api=message.api_name,
            api_key=message.api_key,
            version=self.version,
            body_at=self.begins[self.first],
            shape=shape,
            recipe=Recipe(message, self.body),
        )

    def damaged(self, one: Damaged) -> Case:
        """The frame after damage."""
        kind, case = one.kind, self.case()
        inside = one.at >= self.first
        return replace(
            case,
            name=f"{case.name.rpartition('/')[0]}/{kind.name}-{one.at:03}{'abc'[one.variant]}",
            data=one.data,
            verdict=kind.verdict,
            source=kind.source,
            kafka=kind.kafka,
            body_at=case.body_at if inside else None,
            damage=kind.name,
            path=self.parts[one.at].path if inside else f"header{self.parts[one.at].path[1:]}",
            offset=self.begins[one.at],
            recipe=Recipe(
                self.message,
                self.body,
                kind.name,
                self.parts[one.at].path if inside else "",
                self.parts[one.at].part,
                one.variant,
            ),
        )


def _header(message: model.Message, version: int, shape: str) -> list[Piece]:
    """The pieces of a header. It has nulls, and tagged fields that no schema knows, where the body has them."""
    assert message.api_key is not None
    if message.kind == "request":
        header = schema.message("RequestHeader")
        number = request_header_version(message.api_key, version)
        made = registry.message_class(header).from_dict(
            {
                "request_api_key": message.api_key,
                "request_api_version": version,
                "correlation_id": CORRELATION_ID,
                "client_id": None if shape == "nulls" else CLIENT_ID,
            }
        )
    else:
        header = schema.message("ResponseHeader")
        number = response_header_version(message.api_key, version)
        made = registry.message_class(header).from_dict({"correlation_id": CORRELATION_ID})
    layout = model.layout(header, number)
    if layout.flexible and shape == "unknown-tags":
        made.unknown_tagged_fields = dict.fromkeys(UNKNOWN, b"new")
    return pieces(layout, made)
