# Invariant: for every layout and any bytes, the compiled and the reference codec give the same verdict: either both
# decode to equal messages, which encode to the same bytes (and those decode to an equal message again), or both raise a
# DecodeError with the same path and offset, a LimitError too. Nothing else is ever raised, and no decoding takes memory
# that its input does not justify. Of an object with wrong values, both write the same bytes or refuse the same field.
"""Messages of all layouts, made at random and then damaged, through both implementations of the codec."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from fuzz import damaged, golden_frames
from kwire import schema
from kwire.codec import registry
from kwire.codec.objects import WireStruct
from kwire.errors import DecodeError, EncodeError
from kwire.limits import Limits
from kwire.protocol.headers import decode_request, decode_response
from kwire.schema import model
from kwire.testing.corpus.shapes import SHAPES, value

MEMORY_PER_BYTE = 600
"""Most that decoding may allocate per byte of input: a struct of a few bytes becomes an object with a dozen slots."""

_all_layouts: list[tuple[model.Message, int]] = []


def _layouts() -> list[tuple[model.Message, int]]:
    if not _all_layouts:
        for name in schema.names():
            message = schema.message(name)
            _all_layouts.extend((message, version) for version in message.versions)
    return _all_layouts


def _primitive(name: str, rng: random.Random) -> Any:
    if name == "bool":
        return rng.random() < 0.5
    if name == "float64":
        return rng.uniform(-1e9, 1e9)
    if name == "uuid":
        return UUID(int=rng.choice((0, rng.getrandbits(128))))
    if name == "string":
        return rng.choice(("", "a", "topic-é", "x\udcff", "n" * rng.randrange(300)))
    if name in ("bytes", "records"):
        return rng.randbytes(rng.choice((0, 1, 60, 130, 1500)))
    signed = name.startswith("int")
    bits = int(name.lstrip("uint"))
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return rng.choice((0, 1, low, high, rng.randint(low, high)))


def random_message(message: model.Message, version: int, rng: random.Random) -> Any:
    """A valid message of a layout: nulls, empty and long values, tagged fields and unknown ones included."""
    structs = {**{name: registry.struct_class(message, name) for name in message.structs}}
    structs[message.name] = registry.message_class(message)

    def value(type_: model.TypeLayout, nullable: bool, depth: int) -> Any:
        if nullable and rng.random() < 0.2:
            return None
        if isinstance(type_, model.StructLayout):
            return struct(type_, depth + 1)
        if isinstance(type_, model.ArrayLayout):
            inner = type_.element
            count = (
                rng.choice((0, 1, 2, 3)) if isinstance(inner, model.StructLayout) else rng.choice((0, 1, 3, 40, 140))
            )
            return [value(inner, False, depth) for _ in range(count if depth < 4 else min(count, 1))]
        return _primitive(type_.name, rng)

    def struct(layout: model.StructLayout, depth: int) -> WireStruct:
        made = structs[layout.name]()
        for field in layout.fields:
            setattr(made, field.name, value(field.type, field.nullable, depth))
        for field in layout.tagged:
            if rng.random() < 0.5:
                setattr(made, field.name, value(field.type, field.nullable, depth))
        if layout.flexible and rng.random() < 0.1:
            # In any order, before and after those that are known.
            tags = {*rng.sample(range(12), 2), rng.randrange(400)} - {field.tag for field in layout.tagged}
            made.unknown_tagged_fields = {tag: rng.randbytes(rng.choice((0, 3, 200))) for tag in tags}
        return made

    return struct(model.layout(message, version), 0)


def verdict(codec: registry.Codec, data: bytes, limits: Limits | None = None) -> tuple[Any, Any]:
    """What a codec says of ``data``: (message, None), or (None, (path, offset, kind)) of its error."""
    try:
        return codec.decode(data, 0, limits), None
    except DecodeError as error:
        return None, (error.path, error.offset, type(error))


def same(left: Any, right: Any) -> bool:
    """Equal, or equal but for a float64 of NaN, which is not equal to itself."""
    return left == right or repr(left) == repr(right)


def agree(message: model.Message, version: int, data: bytes, limits: Limits | None = None) -> None:
    """Asserts the invariant for one body."""
    compiled = registry.codec(message, version, "compiled")
    reference = registry.codec(message, version, "reference")
    found, error = verdict(compiled, data, limits)
    expected, expected_error = verdict(reference, data, limits)
    assert error == expected_error, f"{compiled.label}: {error} and {expected_error}"
    if error is not None:
        return
    assert same(found, expected), compiled.label
    again = compiled.encode(found)
    assert again == reference.encode(expected), compiled.label
    assert same(compiled.decode(again), found), compiled.label


def check_memory(message: model.Message, version: int, data: bytes) -> None:
    """Asserts that decoding does not allocate more than its input justifies."""
    codec = registry.codec(message, version, "compiled")
    peaks = []
    for _ in range(3):  # one of them may compile the decoder anew, after a guess at the lengths of arrays
        tracemalloc.start()
        verdict(codec, data)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    peak = min(peaks)
    assert peak < 100_000 + MEMORY_PER_BYTE * len(data), f"{codec.label}: {peak} bytes for {len(data)}"


def one(rng: random.Random) -> tuple[str, bytes]:
    """One round: a message, damaged or not. What to print when an assertion fails."""
    message, version = rng.choice(_layouts())
    data = registry.codec(message, version).encode(random_message(message, version, rng))
    if rng.random() < 0.9:
        data = damaged(data, rng, rng.choice((1, 1, 2, 5)))
    return f"{message.name} v{version}", data


def _structs(value: Any) -> Iterator[WireStruct]:
    """A struct, and those inside."""
    if isinstance(value, WireStruct):
        yield value
        for field in type(value).FIELDS:
            yield from _structs(getattr(value, field.name))
    elif isinstance(value, list):
        for one in value:
            yield from _structs(one)


WRONG = (
    None,
    -1,
    1 << 80,
    1.5,
    "text",
    "\ud800",
    b"bytes",
    (),
    [None],
    [1 << 40],
    {0: b""},
    {-1: b""},
    {"a": 1},
    object(),
)
"""Values that fit some fields and no others."""


def check_encoding(rng: random.Random) -> None:
    """Asserts that both codecs write the same of a message that may hold wrong values, or refuse the same field."""
    message, version = rng.choice(_layouts())
    made = random_message(message, version, rng)
    spoilt = rng.choice(list(_structs(made)))
    names = [*(field.name for field in type(spoilt).FIELDS), "unknown_tagged_fields"]
    name = rng.choice(names)
    wrong = {rng.randrange(4): b"x"} if name == "unknown_tagged_fields" and rng.random() < 0.5 else rng.choice(WRONG)
    try:
        setattr(spoilt, name, wrong)
    except AttributeError:
        # The default that all messages share cannot be changed.
        return
    said: list[Any] = []
    for implementation in registry.IMPLEMENTATIONS:
        try:
            said.append(registry.codec(message, version, implementation).encode(made))
        except EncodeError as error:
            said.append(error.path)
    assert said[0] == said[1], f"{message.name} v{version}, {type(spoilt).__qualname__}.{name} = {wrong!r}: {said}"


def run(rng: random.Random) -> None:
    """One round."""
    if rng.random() < 0.1:
        check_encoding(rng)
        return
    label, data = one(rng)
    name, _, version = label.rpartition(" v")
    try:
        agree(schema.message(name), int(version), data)
        agree(schema.message(name), int(version), data, Limits(objects=rng.randrange(64 * len(data) + 1)))
        if rng.random() < 0.02:
            check_memory(schema.message(name), int(version), data)
    except Exception as error:
        error.add_note(f"{label}: {data.hex()}")
        raise


_HEAD = 4
"""Bytes before a body: the number of its layout, and what its objects may take."""


def _input(number: int, body: bytes, objects: int = 0) -> bytes:
    return number.to_bytes(2, "big") + objects.to_bytes(2, "big") + body


def seeds() -> Iterator[bytes]:
    """Bodies of real brokers, and one of each layout and shape."""
    numbers = {(message.name, version): number for number, (message, version) in enumerate(_layouts())}
    for response, api, version, data in golden_frames():
        made: Any = decode_response(data, api_key=api, api_version=version) if response else decode_request(data)
        name = made.body.SCHEMA.name
        if (name, version) in numbers:
            body = registry.codec(schema.message(name), version).encode(made.body)
            yield _input(numbers[name, version], body)
    for number, (message, version) in enumerate(_layouts()):
        for shape in SHAPES:
            body = registry.codec(message, version).encode(value(message, version, shape))
            if len(body) <= 1000:
                yield _input(number, body)


def words() -> Iterator[bytes]:
    """Lengths at the edges, and the texts that a schema gives a meaning."""
    for number in (-1, -2, 0, 1, 127, 128, 2**15 - 1, 2**31 - 1, -(2**31)):
        yield number.to_bytes(4, "big", signed=True)
    for number in (-1, -2, 2**15 - 1, -(2**15)):
        yield number.to_bytes(2, "big", signed=True)
    yield from (b"\x80\x00", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x80\x00")
    for message, version in _layouts():
        layout = model.layout(message, version)
        for one in (*layout.fields, *layout.tagged):
            if isinstance(one.default, str) and one.default:
                yield one.default.encode()
            if one.tag is not None:
                yield bytes([1, one.tag])


def check(data: bytes) -> None:
    """Asserts the invariant for one input: a layout, a limit and a body."""
    if len(data) < _HEAD:
        return
    every = _layouts()
    message, version = every[int.from_bytes(data[:2], "big") % len(every)]
    objects, body = int.from_bytes(data[2:4], "big"), data[_HEAD:]
    agree(message, version, body, Limits(objects=objects) if objects else None)
