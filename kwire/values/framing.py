"""What stands in front of a value, and which schema it names: for whole columns at once.

A serializer says by a few bytes, or by a header of the record, which schema a value has. ``of_headers`` and
``of_prefix`` look for that in a column::

    | origin | bytes |
    |---|---|
    | Confluent, Apicurio 3 | ``00``, the schema's id as uint32, the payload |
    | Confluent, with a GUID | ``01``, 16 bytes, the payload |
    | Apicurio, legacy | ``00``, the id as uint64, the payload |
    | AWS Glue | ``03``, ``00`` or ``05`` (zlib), 16 bytes: UUID of the schema's version, the payload |
    | Avro single object | ``C3 01``, the schema's fingerprint (8 bytes, little-endian), the payload |
    | Confluent, header | ``__value_schema_id``: ``01`` and 16 bytes, or ``00`` and uint32; the value is the payload |
    | Apicurio, headers | ``apicurio.value.globalId``, ``.contentId`` (8 bytes), ``.contentHash`` (text) |
    | Azure, header | ``content-type``: ``avro/binary+`` and the schema's id |

All numbers are big-endian but for the fingerprint. Confluent's Protobuf has the numbers of the message after the id
(``indexes``): a count and so many numbers, all zigzag varints. A single ``00`` is the first message. Glue's Protobuf
has one number there (``index``), a plain varint: the place of the message among all of the schema, sorted by name.

Rules kept here:

- What is found is a claim. Any value can begin with these bytes. ``kwire.values.decoding`` believes it when the schema
  consumes the value to its last byte.
- No loop runs over rows: each distinct name of a schema is looked at once.
- Of a header that is there twice, the last one counts, as in Kafka's ``lastHeader``.
"""

from __future__ import annotations

import re
import uuid
from enum import IntEnum, StrEnum
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kwire.kernels.columns import begin_alike
from kwire.kernels.engine import choose
from kwire.records.headers import Headers
from kwire.records.window import writable

__all__ = [
    "KEY",
    "PARTS",
    "PREFIX",
    "VALUE",
    "Buffer",
    "Found",
    "Framing",
    "Named",
    "Space",
    "guid_text",
    "index",
    "indexes",
    "of_all",
    "of_headers",
    "of_prefix",
    "payloads",
    "size_of",
    "taken",
]

Array = Any

KEY: Final = "key"
"""A part of a record (str)."""
VALUE: Final = "value"
"""A part of a record (str)."""


PARTS: Final = (VALUE, KEY)
"""The parts of a record (tuple of str)."""


class Framing(IntEnum):
    """How a value names its schema. The words of the column ``value_framing`` are these in small letters."""

    NONE = 0
    CONFLUENT = 1
    CONFLUENT_GUID = 2
    APICURIO_LEGACY = 3
    GLUE = 4
    SINGLE_OBJECT = 5
    CONFLUENT_HEADER = 6
    APICURIO_HEADER = 7
    AZURE_HEADER = 8


class Space(StrEnum):
    """What kind of name a schema has. An id of one kind says nothing of another kind."""

    ID = "id"
    GUID = "guid"
    GLOBAL_ID = "global_id"
    CONTENT_ID = "content_id"
    CONTENT_HASH = "content_hash"
    FINGERPRINT = "fingerprint"
    TOPIC = "topic"


class Named(NamedTuple):
    """A schema as a value names it.

    ``name``: a number or a text, by ``space``. ``indexes``: which message of a Protobuf schema, where a header says it.
    """

    framing: Framing
    space: Space
    name: int | str
    indexes: tuple[int, ...] | None = None

    def __str__(self) -> str:
        if self.space is Space.FINGERPRINT:
            return f"the fingerprint {int(self.name) & 0xFFFFFFFFFFFFFFFF:016x}"
        return f"the {self.space.value.replace('_', ' ')} {self.name}"


class Found(NamedTuple):
    """What the values of a column say: ``which`` of ``named`` (int32, -1: none), and where the payload begins (int64).

    ``packed``: which payloads are compressed by zlib.
    """

    which: Array
    named: list[Named]
    starts: Array
    packed: Array


class Buffer(NamedTuple):
    """The bytes of an array: value ``k`` is ``data[begins[k] : begins[k] + sizes[k]]``. Null has no bytes."""

    data: Array
    begins: Array
    sizes: Array
    valid: Array

    @classmethod
    def of(cls, array: pa.Array) -> Buffer:
        """``array``: of ``binary`` or ``large_binary``. Nothing is copied."""
        count, data = len(array), array.buffers()[2]
        places = _ends(array).astype(np.int64)
        made = np.zeros(1, np.uint8) if data is None or not data.size else np.frombuffer(data, np.uint8)
        sizes = np.diff(places)
        if not array.null_count:
            return cls(made, places[:-1], sizes, np.ones(count, bool))
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        return cls(made, places[:-1], np.where(valid, sizes, 0), valid)

    def heads(self) -> Array:
        """The first 5 bytes of each value as a little-endian number (uint64): byte 0 is the lowest. A shorter value has
        bytes of the next ones there, or 0."""
        data = self.data if len(self.data) >= 8 else np.concatenate([self.data, np.zeros(8, np.uint8)])
        last = len(data) - 8
        words = np.ndarray((last + 1,), "<u8", data, strides=(1,))
        places = np.minimum(self.begins, last)
        found = words[places]
        if len(places) and self.begins[-1] > last:
            found >>= (8 * (self.begins - places)).astype(np.uint64)
        found &= _FIVE_BYTES
        return found

    def at(self, rows: Array, place: int | Array) -> Array:
        """A byte of each of some values, as int64. What is behind the end of all values is 0 or any other byte."""
        made: Array = self.data[np.minimum(self.begins[rows] + place, len(self.data) - 1)].astype(np.int64)
        return made

    def number(self, rows: Array, place: int, width: int, *, little: bool = False) -> Array:
        """A number of ``width`` bytes (8 at most) of each of some values, as int64, which may wrap around."""
        made = np.zeros(len(rows), np.int64)
        if not len(rows):
            return made
        places = (self.begins if len(rows) == len(self.begins) else self.begins[rows]) + place
        if places.max() + 8 <= len(self.data):
            # All 8 bytes of each place at once.
            words = np.ndarray((len(self.data) - 7,), "<u8" if little else ">u8", self.data, strides=(1,))
            found = words[places].astype(np.uint64)
            short = np.uint64(64 - 8 * width)
            return ((found << short) >> short if little else found >> short).view(np.int64)
        for one in reversed(range(width)) if little else range(width):
            made = (made << 8) | self.at(rows, place + one)
        return made

    def sixteen(self, rows: Array, place: int) -> pa.Array:
        """16 bytes of each of some values."""
        places = self.begins[rows, None] + place + np.arange(16)
        return pa.Array.from_buffers(pa.binary(16), len(rows), [None, pa.py_buffer(self.data[places].tobytes())])


class _Gathering:
    """Puts together what is found in a column."""

    def __init__(self, rows: int) -> None:
        self.which = np.full(rows, -1, np.int32)
        self.named: list[Named] = []
        self.starts = np.zeros(rows, np.int64)
        self.packed = np.zeros(rows, bool)

    def add(self, rows: Array, names: pa.Array, start: int, named: Any) -> None:
        """``names`` of some rows. ``named`` makes a ``Named`` of a different one, or None where it is none."""
        numbered = names.dictionary_encode()
        table = np.full(len(numbered.dictionary) + 1, -1, np.int32)
        for at, name in enumerate(numbered.dictionary.to_pylist()):
            made = named(name)
            if made is not None:
                table[at] = len(self.named)
                self.named.append(made)
        found = table[numbered.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        self.which[rows] = found
        self.starts[rows] = start

    def done(self) -> Found:
        return Found(self.which, self.named, self.starts, self.packed)


def _ends(array: pa.Array) -> Array:
    """Where the values of an array begin, and where the last one ends."""
    _, ends, _ = array.buffers()
    if ends is None or not len(array):
        return np.zeros(1, np.int64)
    kind = np.int64 if pa.types.is_large_binary(array.type) else np.int32
    return np.frombuffer(ends, kind)[array.offset : array.offset + len(array) + 1]


def size_of(array: pa.Array) -> int:
    """The bytes of all values of an array."""
    ends = _ends(array)
    return int(ends[-1]) - int(ends[0])


def of_all(array: pa.Array) -> Named | None:
    """The schema that all values of an array name by an id of ``PREFIX`` bytes. None: they name several or none, one is
    null, or ``of_prefix`` has to look."""
    data = array.buffers()[2]
    if not len(array) or array.null_count or data is None:
        return None
    ends, found = _ends(array).astype(np.int64), writable(np.frombuffer(data, np.uint8))
    head = found[ends[0] :][:PREFIX].tobytes()
    if len(head) < PREFIX or head[0] or not any(head):
        return None
    alike = choose(size_of(array))(begin_alike)(found, ends, PREFIX)
    return _confluent(int.from_bytes(head, "big")) if alike else None


def of_prefix(values: Buffer) -> Found:
    """What the first bytes of values say."""
    heads = values.heads()
    count = len(heads)
    if count and values.sizes.min() >= PREFIX and heads.min() == heads.max() and _is_id(heads[0]):
        # As good as always: nothing is made for each value.
        which, starts, packed = (np.broadcast_to(one, count) for one in (np.int32(0), np.int64(PREFIX), np.False_))
        return Found(which, [_confluent(int(_ids(heads[0])))], starts, packed)
    made = _Gathering(count)
    long = values.sizes >= PREFIX
    by_id = long & _is_id(heads)
    rows = np.flatnonzero(by_id)
    if len(rows):
        made.add(rows, pa.array(_ids(heads[rows])), PREFIX, _confluent)
    rows = np.flatnonzero(long & ~by_id)
    first = heads[rows] & _FIRST_BYTE
    for byte, add in _BY_FIRST.items():
        some = rows[first == byte]
        if len(some):
            add(values, some, made)
    return made.done()


PREFIX: Final = 5
"""Bytes of the shortest prefix, which has an id."""
_FIVE_BYTES: Final = np.uint64(0xFFFFFFFFFF)
_FIRST_BYTE: Final = np.uint64(0xFF)


def _is_id(heads: Any) -> Any:
    """Whether values begin with an id. No registry gives the id 0: five zeros are followed by eight bytes of one."""
    return (heads & _FIRST_BYTE == 0) & (heads != 0)


def _ids(heads: Any) -> Any:
    return (heads.byteswap() >> np.uint64(24)).astype(np.int64)


def _confluent(id_: int) -> Named:
    return Named(Framing.CONFLUENT, Space.ID, id_)


def _legacy(values: Buffer, rows: Array, made: _Gathering) -> None:
    rows = rows[values.sizes[rows] >= 9]
    ids = values.number(rows, 5, 4)
    rows, ids = rows[ids > 0], ids[ids > 0]
    made.add(rows, pa.array(ids), 9, lambda one: Named(Framing.APICURIO_LEGACY, Space.ID, one))


def _guids(values: Buffer, rows: Array, made: _Gathering) -> None:
    rows = rows[values.sizes[rows] >= 17]
    guids = values.sixteen(rows, 1)
    made.add(rows, guids, 17, lambda one: Named(Framing.CONFLUENT_GUID, Space.GUID, str(uuid.UUID(bytes=one))))


def _glue(values: Buffer, rows: Array, made: _Gathering) -> None:
    rows = rows[values.sizes[rows] >= 18]
    compression = values.at(rows, 1)
    known = (compression == 0) | (compression == _ZLIB)
    rows, compression = rows[known], compression[known]
    guids = values.sixteen(rows, 2)
    made.add(rows, guids, 18, lambda one: Named(Framing.GLUE, Space.GUID, str(uuid.UUID(bytes=one))))
    made.packed[rows] = compression == _ZLIB


def _single_objects(values: Buffer, rows: Array, made: _Gathering) -> None:
    rows = rows[values.sizes[rows] >= 10]
    rows = rows[values.at(rows, 1) == 1]
    prints = values.number(rows, 2, 8, little=True)
    made.add(rows, pa.array(prints), 10, lambda one: Named(Framing.SINGLE_OBJECT, Space.FINGERPRINT, one))


_ZLIB: Final = 5
_BY_FIRST: Final = {0x00: _legacy, 0x01: _guids, 0x03: _glue, 0xC3: _single_objects}


def of_headers(headers: Headers, part: str) -> list[Found]:
    """What headers say of the ``part`` (``key`` or ``value``) of their records, the surest first."""
    found = []
    every = np.arange(headers.rows)
    for name, named in _NAMES[part].items():
        if name not in headers.names:
            continue
        made = _Gathering(headers.rows)
        made.add(every, headers.column(name, last=True)[0], 0, named)
        if made.named:
            found.append(made.done())
    return found


def _of_confluent(value: bytes | None) -> Named | None:
    if value is None:
        return None
    if value[:1] == b"\x01" and len(value) >= 17:
        guid = str(uuid.UUID(bytes=value[1:17]))
        return Named(Framing.CONFLUENT_HEADER, Space.GUID, guid, _path(value[17:]))
    if value[:1] == b"\x00" and len(value) >= 5:
        return Named(Framing.CONFLUENT_HEADER, Space.ID, int.from_bytes(value[1:5], "big"), _path(value[5:]))
    return None


def _path(data: bytes) -> tuple[int, ...] | None:
    """The numbers of a message in a header. None where there are none."""
    if not data:
        return None
    one = Buffer(np.frombuffer(data, np.uint8), np.zeros(1, np.int64), np.array([len(data)]), np.ones(1, bool))
    paths, which, starts = indexes(one, np.zeros(1, np.int64), np.zeros(1, np.int64))
    return paths[0] if which[0] == 0 and starts[0] == len(data) else None


def _number(space: Space) -> Any:
    def named(value: bytes | None) -> Named | None:
        if value is None or len(value) not in (4, 8):
            return None
        # A long of Java: no registry counts below 0.
        number = int.from_bytes(value, "big", signed=True)
        return None if number < 0 else Named(Framing.APICURIO_HEADER, space, number)

    return named


_HASH: Final = re.compile(rb"[0-9a-fA-F]{32,128}")
_AZURE: Final = re.compile(rb"avro/binary\+([0-9A-Za-z_-]{1,64})")


def _of_hash(value: bytes | None) -> Named | None:
    if value is None or _HASH.fullmatch(value) is None:
        return None
    return Named(Framing.APICURIO_HEADER, Space.CONTENT_HASH, value.decode().lower())


def _of_azure(value: bytes | None) -> Named | None:
    found = None if value is None else _AZURE.fullmatch(value.strip(b'"'))
    return None if found is None else Named(Framing.AZURE_HEADER, Space.GUID, guid_text(found[1].decode()))


def guid_text(text: str) -> str:
    """A GUID as it is written most: in small letters, with hyphens. What is none stays."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return text


def _names(part: str) -> dict[str, Any]:
    of_apicurio = f"apicurio.{part}."
    return {
        f"__{part}_schema_id": _of_confluent,
        f"{of_apicurio}globalId": _number(Space.GLOBAL_ID),
        f"{of_apicurio}contentId": _number(Space.CONTENT_ID),
        f"{of_apicurio}contentHash": _of_hash,
    }


_NAMES: Final[dict[str, dict[str, Any]]] = {
    KEY: _names(KEY),
    VALUE: _names(VALUE) | {"content-type": _of_azure},
}
"""Of each part of a record, the headers that may name its schema, and what makes a ``Named`` of their values."""

DEEPEST: Final = 32
"""Messages of Protobuf inside each other that indexes may name."""
_VARINT: Final = 5
"""Bytes of a varint of 32 bits, at most."""


def indexes(values: Buffer, rows: Array, starts: Array) -> tuple[list[tuple[int, ...]], Array, Array]:
    """The messages that Confluent's Protobuf names: the different paths, which of them each of ``rows`` has (-1: what
    stands there are no indexes), and where the payload begins.

    ``starts``: the byte of each value at which its indexes begin.
    """
    count, after = _zigzag(values, rows, starts)
    first = np.flatnonzero(count == 0)
    which = np.full(len(rows), -1, np.int32)
    paths: list[tuple[int, ...]] = []
    if len(first):
        which[first] = 0
        paths.append((0,))
    for length in np.unique(count[(count > 0) & (count <= DEEPEST)]).tolist():
        mine = np.flatnonzero(count == length)
        numbers = np.zeros((len(mine), length), np.int64)
        at = after[mine]
        for level in range(length):
            numbers[:, level], at = _zigzag(values, rows[mine], at)
        good = (numbers >= 0).all(axis=1)
        mine, numbers = mine[good], numbers[good]
        after[mine] = at[good]
        different, found = np.unique(numbers, axis=0, return_inverse=True)
        which[mine] = found.reshape(-1) + len(paths)
        paths += [tuple(one) for one in different.tolist()]
    return paths, which, np.where(which >= 0, after, starts)


def index(values: Buffer, rows: Array, starts: Array) -> tuple[Array, Array]:
    """The number of a message that AWS Glue names, a varint of 32 bits (-1: there is none), and where the payload
    begins."""
    found, after = _varints(values, rows, starts)
    return found, np.where(found >= 0, after, starts)


def _zigzag(values: Buffer, rows: Array, at: Array) -> tuple[Array, Array]:
    """A zigzag varint of 32 bits of each value, and where it ends. -1: there is none, or it is negative."""
    found, after = _varints(values, rows, at)
    return np.where((found < 0) | (found & 1 == 1), -1, found >> 1), after


def _varints(values: Buffer, rows: Array, at: Array) -> tuple[Array, Array]:
    """A varint of 32 bits of each value, and where it ends. -1: there is none."""
    made = np.zeros(len(rows), np.int64)
    at, going = at.copy(), np.ones(len(rows), bool)
    done = np.zeros(len(rows), bool)
    sizes = values.sizes[rows]
    for place in range(_VARINT):
        going &= at < sizes
        byte = values.at(rows, at)
        made[going] |= (byte[going] & 0x7F) << (7 * place)
        at += going
        done |= going & (byte < 0x80)
        going &= byte >= 0x80
    return np.where(done, made & 0xFFFFFFFF, -1), at


def taken(array: pa.Array, rows: Array) -> pa.Array:
    """Some rows of an array in their order; the array itself where they are all of it."""
    return array if len(rows) == len(array) else array.take(pa.array(rows))


def payloads(array: pa.Array, starts: Array) -> pa.Array:
    """The values of an array, of which none is null, from the byte on at which each payload begins."""
    if not starts.any():
        return array
    data, begins, sizes, _ = Buffer.of(array)
    cut = np.minimum(starts, sizes)
    ends = np.cumsum(cut)
    first, last = (int(begins[0]), int(begins[-1] + sizes[-1])) if len(begins) else (0, 0)
    kept = np.ones(last - first, bool)
    kept[np.arange(int(cut.sum())) + np.repeat(begins - first - (ends - cut), cut)] = False
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes - cut)])
    content = pa.py_buffer(data[first:last][kept])
    wide = pa.types.is_large_binary(array.type)
    places = pa.py_buffer(offsets if wide else offsets.astype(np.int32))
    return pa.Array.from_buffers(array.type, len(array), [None, places, content])
