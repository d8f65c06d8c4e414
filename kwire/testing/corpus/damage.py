"""Kinds of damage to a message, at the border of each field, and the verdict of the protocol on each.

A verdict follows from what was done to a field of a known type, and never from what a decoder of kwire says. Each names
its source. Where the protocol leaves it open, or Kafka reads what the protocol has no word for, the verdict is ``may``:
a parser may accept or refuse the bytes. If it accepts them, it has to give the value that is stated.

What Kafka's own classes do is in ``Kind.kafka``. ``tests/kafka/test_corpus.py`` has them read every case.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from kwire.testing.corpus.fields import Form, Piece, joined, starts
from kwire.wire import pack_uvarint

__all__ = ["ACCEPT", "KINDS", "MAY", "REFUSE", "Damaged", "Kind", "Verdict", "damaged"]

Verdict = Literal["must-accept", "must-refuse", "may"]
"""Type: what the protocol demands of a parser that gets a damaged message."""
ACCEPT: Final[Verdict] = "must-accept"
"""Verdict (str): a parser has to read the message."""
REFUSE: Final[Verdict] = "must-refuse"
"""Verdict (str): a parser has to refuse the message."""
MAY: Final[Verdict] = "may"
"""Verdict (str): the protocol leaves it open."""

_GUIDE: Final = "protocol guide, Protocol Primitive Types"
_READERS: Final = "Kafka's generated readers"
_TAGS: Final = "KIP-482"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of damage."""

    name: str
    about: str
    verdict: Verdict
    source: str
    """Where the verdict comes from."""
    kafka: bool
    """Whether Kafka's own classes read it."""
    apply: Callable[[Sequence[Piece], int], Iterator[bytes]]
    """The damaged bodies, at the piece with this index: none where the kind does not apply."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A frame that was damaged."""

    kind: Kind
    at: int
    """The piece at which it was damaged, by its index."""
    variant: int
    """The number of this damage, of those of its kind at this piece."""
    data: bytes


KINDS: Final[dict[str, Kind]] = {}
"""Every kind of damage by its name."""

_Apply = Callable[[Sequence[Piece], int], Iterator[bytes]]


def _kind(name: str, verdict: Verdict, source: str, *, kafka: bool) -> Callable[[_Apply], _Apply]:
    """Enters a function, whose docstring says what the damage is, into ``KINDS``."""

    def enter(apply: _Apply) -> _Apply:
        KINDS[name] = Kind(name, " ".join((apply.__doc__ or "").split()), verdict, source, kafka, apply)
        return apply

    return enter


def damaged(parts: Sequence[Piece], kinds: Sequence[str], border: range) -> Iterator[Damaged]:
    """Every damage of these kinds at the pieces of ``border``, by their indices."""
    whole = joined(parts, {})
    for name in kinds:
        kind = KINDS[name]
        seen = {whole}
        for at in border:
            for variant, data in enumerate(kind.apply(parts, at)):
                if data not in seen:
                    seen.add(data)
                    yield Damaged(kind, at, variant, data)


# -- lengths and counts


_WIDTHS: Final = {"int8": ">b", "int16": ">h", "int32": ">i"}
_LEAST: Final = {"int16": -0x8000, "int32": -0x8000_0000, "varint": -0x8000_0000}
_MOST: Final = {"int16": 0x7FFF, "int32": 0x7FFF_FFFF, "varint": 0x7FFF_FFFE}


def _number(form: Form, value: int) -> bytes:
    """A length as a number of its form; compact ones are one more, of which a negative one is that of Java."""
    if form == "varint":
        return pack_uvarint(value + 1 & 0xFFFF_FFFF)
    return struct.pack(_WIDTHS[form], value)


def _announces(one: Piece) -> bool:
    return one.part in ("length", "count")


def _without(parts: Sequence[Piece], at: int, head: bytes) -> bytes:
    """The message with other bytes in place of a piece and without what that announces."""
    gone = dict.fromkeys(range(at + 1, parts[at].until), b"")
    return joined(parts, {**gone, at: head})


@_kind("null", REFUSE, f"{_GUIDE}: only nullable types have a null", kafka=False)
def _null(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A null (length -1, or 0 in compact form) in a field that cannot be null."""
    one = parts[at]
    if _announces(one) and not one.nullable:
        yield _without(parts, at, _number(one.form, -1))


@_kind("negative-length", REFUSE, f"{_GUIDE}: a length is not negative", kafka=False)
def _negative(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A length or count of -2, and the least one there is, in a field that cannot be null."""
    one = parts[at]
    if _announces(one) and not one.nullable:
        for value in (-2, _LEAST[one.form]):
            yield _without(parts, at, _number(one.form, value))


@_kind("negative-null", MAY, f"{_READERS} take any negative length for null; the guide knows -1 only", kafka=True)
def _negative_null(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A length or count of -2, and the least one there is, in a field that may be null."""
    one = parts[at]
    if _announces(one) and one.nullable:
        for value in (-2, _LEAST[one.form]):
            yield _without(parts, at, _number(one.form, value))


@_kind("too-large", REFUSE, f"{_GUIDE}: as many bytes or elements follow", kafka=False)
def _too_large(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A length or count of one more than what is left can hold."""
    one = parts[at]
    if not _announces(one) or (one.part == "count" and not one.least):
        return
    body = joined(parts, {at: b""})
    left = len(body) - starts(parts)[at]
    value = left // (one.least or 1) + 1
    if value <= _MOST[one.form]:
        yield joined(parts, {at: _number(one.form, value)})


@_kind("largest-length", REFUSE, f"{_GUIDE}: as many bytes or elements follow", kafka=False)
def _largest(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """The largest length or count there is: a parser must not take memory for it."""
    one = parts[at]
    if _announces(one) and (one.part != "count" or one.least):
        yield joined(parts, {at: _number(one.form, _MOST[one.form])})


# -- unsigned varints


def _varints(one: Piece) -> bool:
    varint = one.part in ("tags", "tag", "size")
    return varint or (one.part in ("length", "count", "presence") and one.form == "varint")


def _padded(data: bytes, size: int, last: int = 0) -> bytes:
    """The varint in more bytes than it needs."""
    return data[:-1] + bytes([data[-1] | 0x80]) + b"\x80" * (size - len(data) - 1) + bytes([last])


@_kind("varint-overlong", MAY, f"{_READERS} accept it; KIP-482 does not say whether a varint may be longer", kafka=True)
def _overlong(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A varint of one byte more than it needs, and of five bytes."""
    one = parts[at]
    if _varints(one):
        for size in sorted({len(one.data) + 1, 5}):
            yield joined(parts, {at: _padded(one.data, size)})


@_kind("varint-overflow", MAY, f"{_READERS} drop bits above the 32nd; KIP-482 does not mention them", kafka=True)
def _overflow(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A varint of five bytes with bits above the 32nd."""
    one = parts[at]
    if _varints(one):
        yield joined(parts, {at: _padded(one.data, 5, 0x70)})


@_kind("varint-too-long", REFUSE, f"{_READERS}: at most five bytes", kafka=False)
def _too_long(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A varint of six bytes, and one that goes on to the end."""
    one = parts[at]
    if _varints(one):
        yield joined(parts, {at: _padded(one.data, 6)})
        yield joined(parts, {at: b"\xff" * 11})


# -- values


@_kind("bool-not-1", ACCEPT, f"{_GUIDE}: any value that is not zero is true", kafka=True)
def _bool(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A boolean of 2, and of 255, for true."""
    if parts[at].part == "bool" and parts[at].data == b"\x01":
        yield joined(parts, {at: b"\x02"})
        yield joined(parts, {at: b"\xff"})


@_kind("not-utf-8", MAY, f"{_READERS} put U+FFFD there; the guide says that strings are UTF-8", kafka=True)
def _not_utf_8(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A string with a byte that is not UTF-8."""
    one = parts[at]
    if one.part == "content" and one.type == "string" and one.data:
        yield joined(parts, {at: b"\xff" + one.data[1:]})


@_kind("presence-other", MAY, f"{_READERS} take what is not negative for present; KIP-893 knows 1 and -1", kafka=True)
def _presence(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A nullable struct after a byte other than 1 that is not negative."""
    one = parts[at]
    if one.part == "presence" and one.data == b"\x01":
        yield joined(parts, {at: b"\x7f"})
        if one.form == "int8":
            yield joined(parts, {at: b"\x00"})


@_kind("absence-other", MAY, f"{_READERS} take any negative byte for null; KIP-893 knows 1 and -1", kafka=True)
def _absence(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A null struct by a byte of -2, or of -128."""
    one = parts[at]
    if one.part == "presence" and one.form == "int8":
        yield _without(parts, at, b"\xfe")
        yield _without(parts, at, b"\x80")


# -- tagged fields


def _with_tags(parts: Sequence[Piece], at: int, count: int, more: bytes) -> bytes:
    """The message with a count of tagged fields, and bytes behind those that are there."""
    last = parts[at].until - 1
    changed = {at: pack_uvarint(count)}
    changed[last] = (pack_uvarint(count) if last == at else parts[last].data) + more
    return joined(parts, changed)


def _count(parts: Sequence[Piece], at: int) -> int:
    count, shift = 0, 0
    for byte in parts[at].data:
        count |= (byte & 0x7F) << shift
        shift += 7
    return count


def _field(tag: int, content: bytes) -> bytes:
    return pack_uvarint(tag) + pack_uvarint(len(content)) + content


def _spans(parts: Sequence[Piece], at: int) -> list[bytes]:
    """Of the section at a piece: the bytes of each of its fields."""
    out = []
    inner = at + 1
    while inner < parts[at].until:
        until = parts[inner + 1].until
        out.append(b"".join(one.data for one in parts[inner:until]))
        inner = until
    return out


def _section(parts: Sequence[Piece], at: int, fields: Sequence[bytes]) -> bytes:
    """The message with these fields in the section."""
    return _without(parts, at, pack_uvarint(len(fields)) + b"".join(fields))


@_kind("tag-unknown", ACCEPT, f"{_TAGS}: a reader skips tags that it does not know", kafka=True)
def _tag_unknown(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A tagged field that no schema knows, behind the others."""
    if parts[at].part == "tags":
        yield _section(parts, at, [*_spans(parts, at), _field(20_000, b"new")])


@_kind("tag-unknown-empty", ACCEPT, f"{_TAGS}: a reader skips tags that it does not know", kafka=True)
def _tag_unknown_empty(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A tagged field that no schema knows, of no bytes."""
    if parts[at].part == "tags":
        yield _section(parts, at, [*_spans(parts, at), _field(20_000, b"")])


@_kind("tag-repeated", MAY, f"{_READERS} let the last one count; KIP-482 wants ascending tags", kafka=True)
def _tag_repeated(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A tagged field twice."""
    if parts[at].part == "tags":
        fields = _spans(parts, at) or [_field(20_000, b"one")]
        yield _section(parts, at, [*fields, fields[-1]])


@_kind("tag-order", MAY, f"{_READERS} do not look at the order; KIP-482 wants ascending tags", kafka=True)
def _tag_order(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """Tagged fields in descending order."""
    if parts[at].part == "tags":
        fields = [*_spans(parts, at), _field(20_000, b"new"), _field(20_001, b"newer")]
        yield _section(parts, at, fields[::-1])


@_kind("tags-largest", REFUSE, f"{_TAGS}: as many fields follow", kafka=False)
def _tags_largest(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A section that announces 2**31 - 1 fields, and ends behind those that it has."""
    if parts[at].part == "tags" and parts[at].until == len(parts):
        yield joined(parts, {at: pack_uvarint(0x7FFF_FFFF)})


@_kind("tags-negative", MAY, f"{_READERS} took it for no fields up to 3.9, and refuse it in 4.4", kafka=False)
def _tags_negative(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A section that announces 2**32 - 1 fields, which is -1 in Java, and has none."""
    if parts[at].part == "tags" and parts[at].until == len(parts):
        yield _without(parts, at, pack_uvarint(0xFFFF_FFFF))


@_kind("tag-size-too-large", REFUSE, f"{_TAGS}: as many bytes follow", kafka=False)
def _size_too_large(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """An unknown tagged field of more bytes than are left, and of 2**31 - 1."""
    if parts[at].part == "tags" and parts[at].until == len(parts):
        head = b"".join(_spans(parts, at))
        count = pack_uvarint(len(_spans(parts, at)) + 1)
        for size in (4, 0x7FFF_FFFF):
            yield _without(parts, at, count + head + pack_uvarint(20_000) + pack_uvarint(size) + b"new")


@_kind("tag-size-wrong", MAY, f"{_READERS} do not hold a known field against its size; KIP-482 states it", kafka=True)
def _size_wrong(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A known tagged field whose size is one too small."""
    one = parts[at]
    if one.part == "size" and parts[at + 1].part != "unknown" and one.until > at + 1:
        size = sum(len(inner.data) for inner in parts[at + 1 : one.until])
        yield joined(parts, {at: pack_uvarint(size - 1)})


# -- the end


@_kind("cut", REFUSE, f"{_GUIDE}: each field is there", kafka=False)
def _cut(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """The message ends where a field begins, or a byte later, within it."""
    begin = starts(parts)[at]
    whole = joined(parts, {})
    yield whole[:begin]
    if len(parts[at].data) > 1:
        yield whole[: begin + 1]


@_kind("trailing", MAY, "the protocol has no word for it; Kafka's classes leave such bytes unread", kafka=True)
def _trailing(parts: Sequence[Piece], at: int) -> Iterator[bytes]:
    """A byte behind the message."""
    if at == len(parts) - 1:
        yield joined(parts, {}) + b"\x00"
