"""Protocols that nobody has designed: frames with a size of four bytes, and fields as such protocols have them.

Each seed is one: which fields its requests and answers consist of, what is in them, how much is sent at once, and
whether the beginning was captured.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from packets import Connection, sized

Field = Callable[[int], bytes]
"""The bytes of a field in the message with this number."""

_NAMES = (b"node", b"ok", b"get", b"/brokers/ids", b"users", b"a", b"", b"worker-7", b"select 1", b"2.10.0")
_NUMBERS = {1: ">b", 2: ">h", 4: ">i", 8: ">q"}


def _number(some: random.Random, width: int) -> Field:
    value = some.choice([0, 0, 0, 1, 1, 2, 3, 4, 5, 11, 18, 50, 100, -1, -2])
    made = struct.pack(_NUMBERS[width], value)
    return lambda _: made


def _one_of_some(some: random.Random, width: int) -> Field:
    values = [struct.pack(_NUMBERS[width], some.randrange(12)) for _ in range(some.randint(2, 4))]
    return lambda number: values[number * 7 % len(values)]


def _text(some: random.Random) -> Field:
    names = some.sample(_NAMES, some.choice([1, 1, 3]))
    width = some.choice([0, 1, 2, 2, 4, 4])

    def made(number: int) -> bytes:
        name = names[number % len(names)]
        return (struct.pack(_NUMBERS[width], len(name)) if width else b"") + name

    return made


def _noise(some: random.Random) -> Field:
    seed, most = some.random(), some.choice([4, 30, 300])

    def made(number: int) -> bytes:
        own = random.Random(f"{seed} {number}")
        data = own.randbytes(own.randint(0, most))
        return struct.pack(">i", len(data)) + data

    return made


def _field(some: random.Random) -> Field:
    kind = some.choice(["number", "number", "zeros", "some", "text", "text", "noise"])
    if kind == "number":
        return _number(some, some.choice([1, 2, 4, 4, 8]))
    if kind == "zeros":
        zeros = bytes(some.choice([1, 2, 4, 8, 16]))
        return lambda _: zeros
    if kind == "some":
        return _one_of_some(some, some.choice([1, 2, 4]))
    return _text(some) if kind == "text" else _noise(some)


def _id(some: random.Random) -> Field:
    width = some.choice([2, 4, 4, 8, 8, 8])
    first = some.choice([0, 1, 1, some.randrange(1000), some.randrange(1 << 14), some.randrange(1 << 31) << 20])
    step = some.choice([1, 1, 1, 2])
    mask = (1 << 8 * width - 1) - 1
    return lambda number: struct.pack(_NUMBERS[width], first + step * number & mask)


def _message(some: random.Random, number: Field) -> list[Field]:
    fields = [_field(some) for _ in range(some.randint(0, 5))]
    fields.insert(some.choice([0, 0, 0, 1]), number)
    return fields


def designed(seed: int, client: str = "10.0.0.1", broker: str = "10.0.0.9") -> Connection:
    """A connection between these hosts that speaks the protocol ``seed``."""
    some = random.Random(seed)
    number = _id(some)
    asks = [_message(some, number) for _ in range(some.choice([1, 1, 2]))]
    answers = [_message(some, number) for _ in asks]
    at_once = some.choice([1, 1, 1, 2, 5])
    talk = Connection((client, some.choice([40_000, 1_000])), (broker, 7000), mss=some.choice([1460] * 4 + [7]))
    if some.random() < 0.6:
        talk.open()
    if some.random() < 0.2:
        talk.send(some.randbytes(some.randint(1, 20)))
    for first in range(0, some.choice([3, 12, 30]), at_once):
        numbers = range(first, first + at_once)
        for message, way in ((asks, talk.send_raw), (answers, talk.answer_raw)):
            way(b"".join(sized(b"".join(one(k) for one in message[k % len(message)])) for k in numbers))
    return talk.close() if some.random() < 0.5 else talk
