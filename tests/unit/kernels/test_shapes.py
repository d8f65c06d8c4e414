"""Shapes of bodies say what programs would have said, of every layout, whatever is changed in a body."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from kwire.kernels.engine import MACHINE, PYTHON, Engine
from kwire.kernels.judging import UNREADABLE, left_over
from kwire.kernels.layouts import FRAME
from kwire.kernels.programs import INSTRUCTION, MAX_DEPTH, Op, registers_of
from kwire.kernels.roles import Apis
from kwire.kernels.shapes import KIND, NOWHERE, WAYS, Memory, memory_for
from kwire.protocol.api_table import api_table
from kwire.schema.keys import ApiKey

STARTS = api_table().layout_starts
LAYOUTS = [(int(kind), int(version)) for kind, version in np.argwhere(STARTS >= 0)]
FETCH, PRODUCE, METADATA = (2 * int(key) for key in (ApiKey.FETCH, ApiKey.PRODUCE, ApiKey.METADATA))
_NEVER_LEARN = 15
"""A credit with which a body that is like no shape is not learnt."""


def _number(width: int, value: int) -> bytes:
    """A length or count as programs read it; -1 is null."""
    if width > 1:
        return value.to_bytes(width, "big", signed=True)
    value += 1
    made = b""
    while value > 127:
        made += bytes([value & 127 | 128])
        value >>= 7
    return made + bytes([value])


class Drawn:
    """A body that a program reads to its end, drawn instruction by instruction.

    ``form`` decides counts, nulls and all of the tagged fields, ``rng`` everything else.
    """

    def __init__(
        self, pc: int, form: random.Random, rng: random.Random, *, most: int = 2, errors: bool = False
    ) -> None:
        self.bytes = b""
        self._form, self._rng, self._most, self._errors = form, rng, most, errors
        pc = self._run(pc)
        assert api_table().layouts[pc]["op"] == Op.STOP

    def _run(self, pc: int) -> int:
        """Draws until the end of the program or of an element."""
        while True:
            one: Any = api_table().layouts[pc]
            op, width, least = int(one["op"]), int(one["width"]), int(one["least"])
            if op in (Op.STOP, Op.NEXT):
                return pc
            pc += 1
            if op == Op.SKIP:
                self.bytes += self._rng.randbytes(width)
            elif op == Op.BYTES:
                null = one["nullable"] and self._form.random() < 0.4
                size = -1 if null else self._rng.choice((0, 1, 2, 5, 40, 126, 127, 128, 300))
                self.bytes += _number(width, size) + self._rng.randbytes(max(0, size))
            elif op == Op.INTS:
                count = self._form.randint(-1 if one["nullable"] else 0, self._most)
                self.bytes += _number(width, count) + self._rng.randbytes(max(0, count) * least)
            elif op == Op.ARRAY:
                count = self._form.randint(-1 if one["nullable"] else 0, self._most)
                self.bytes += _number(width, count)
                for _ in range(count):
                    self._run(pc)
                pc = int(one["target"])
            elif op == Op.TAGS:
                count = self._form.choice((0, 0, 0, 1, 2))
                sizes = [self._form.randint(0, 40) for _ in range(count)]
                self.bytes += bytes([count])
                for tag, size in enumerate(sizes):
                    self.bytes += bytes([tag, size]) + self._form.randbytes(size)
            elif op == Op.IF_PRESENT:
                null = self._form.random() < 0.5
                self.bytes += b"\xff" if null else b"\1"
                if null:
                    pc = int(one["target"])
            else:
                assert op == Op.ERROR
                some = self._errors and self._form.random() < 0.3
                self.bytes += self._form.randint(1, 90).to_bytes(2, "big") if some else b"\0\0"


def drawn(kind: int, version: int, form: int, rng: int, **more: Any) -> bytes:
    """A body of a layout."""
    return Drawn(int(STARTS[kind, version]), random.Random(form), random.Random(rng), **more).bytes


def without_shapes() -> Memory:
    """A memory in which there is no room for any."""
    return memory_for(STARTS)._replace(kinds=np.empty(0, KIND))


def said(
    engine: Engine,
    kind: int,
    version: int,
    bodies: list[bytes],
    memory: Memory,
    known: Apis | None = None,
    room: int = 4096,
) -> tuple[Any, list[list[int]]]:
    """What is left over behind bodies of one kind, and the errors in them, if there is ``room``."""
    rows = np.zeros(len(bodies), FRAME)
    ends = np.cumsum([len(one) for one in bodies])
    rows["size"] = [len(one) for one in bodies]
    rows["off"] = ends - rows["size"]
    rows["api"], rows["response"], rows["version"] = kind // 2, kind % 2, version
    data = np.frombuffer(b"".join(bodies) + b"\xee" * 64, np.uint8).copy()
    found, errors, left = np.zeros(len(bodies), np.int64), np.empty((room, 3), np.int64), np.empty(MAX_DEPTH, np.int64)
    run, known = engine(left_over), known or api_table()
    done, count, odd = run(data, rows, 0, known, registers_of(1), left, errors, 0, found, memory)
    assert (done, odd) == (len(bodies), np.count_nonzero(found))
    return found.tolist(), errors[:count, :2].tolist()


def _changed(body: bytes, rng: random.Random) -> list[bytes]:
    """A body with one thing changed, in every place."""
    made = []
    for at, byte in enumerate(body):
        for other in {0, 1, 0xFF, byte ^ 1, byte ^ 0x80, (byte + 1) & 0xFF, rng.randrange(256)} - {byte}:
            made.append(body[:at] + bytes([other]) + body[at + 1 :])
    made += [body[:at] for at in range(len(body))]
    made += [body + b"\0", body + b"\1\2", body + body]
    made += [body[:at] + b"\0" + body[at:] for at in range(len(body))]
    made += [body[:at] + body[at + 1 :] for at in range(len(body))]
    return made


@pytest.mark.wide(keep=3)
@pytest.mark.parametrize("part", range(8))
def test_a_changed_body_is_judged_as_by_its_program(part: int) -> None:
    """Each change of each byte, of a body that was learnt; of every layout."""
    rng, learnt = random.Random(part), 0
    for kind, version in LAYOUTS[part::8]:
        body = drawn(kind, version, rng.randrange(1 << 30), rng.randrange(1 << 30), most=1)
        memory = memory_for(STARTS)
        assert said(MACHINE, kind, version, [body], memory) == ([0], [])
        if not memory.counts[:WAYS].any():
            continue
        learnt += 1
        changed = _changed(body, rng)
        changed = rng.sample(changed, min(len(changed), 400))
        expected = said(MACHINE, kind, version, changed, without_shapes())
        # As many at a time as there is credit for, so that this one shape is what each is compared with.
        found, errors = [], []
        for begin in range(0, len(changed), _NEVER_LEARN - 1):
            memory.kinds["credit"] = _NEVER_LEARN
            some = said(MACHINE, kind, version, changed[begin : begin + _NEVER_LEARN - 1], memory)
            found += some[0]
            errors += [[row + begin, code] for row, code in some[1]]
        assert (found, errors) == expected, (kind, version)
    assert learnt > len(LAYOUTS[part::8]) * 0.9


@pytest.mark.wide
@pytest.mark.parametrize("engine", [MACHINE, PYTHON], ids=str)
def test_bodies_one_after_another_are_judged_as_alone(engine: Engine) -> None:
    """Of changing shapes and lengths, some damaged, some with errors: through one memory, which learns and forgets."""
    rng = random.Random(11)
    for kind, version in LAYOUTS[:: 1 if engine is MACHINE else 40]:
        forms = [rng.randrange(1 << 30) for _ in range(3)]
        bodies = []
        for _ in range(120 if engine is MACHINE else 40):
            errors = rng.random() < 0.2
            body = drawn(kind, version, rng.choice(forms), rng.randrange(1 << 30), errors=errors)
            if rng.random() < 0.2:
                at = rng.randrange(len(body))
                body = body[:at] + rng.randbytes(1) + body[at + rng.randint(0, 1) :]
            bodies.append(body)
        expected = said(engine, kind, version, bodies, without_shapes())
        assert said(engine, kind, version, bodies, memory_for(STARTS)) == expected, (kind, version)


def test_both_engines_remember_the_same() -> None:
    for kind, version in ((PRODUCE, 9), (FETCH + 1, 12), (METADATA + 1, 9)):
        bodies = [drawn(kind, version, form % 3, rng) for rng, form in enumerate(range(20))]
        memories = [memory_for(STARTS) for _ in range(2)]
        both = [
            said(*one, kind, version, bodies, of) for one, of in zip(((MACHINE,), (PYTHON,)), memories, strict=True)
        ]
        assert both[0] == both[1]
        for one, other in zip(*memories, strict=True):
            if one.dtype == KIND:
                assert one[:1].tolist() == other[:1].tolist()
        shapes = np.flatnonzero(memories[0].counts)
        assert len(shapes)
        assert memories[0].counts.tolist() == memories[1].counts.tolist()


def test_values_and_lengths_may_differ_and_need_no_program() -> None:
    """Each of these bodies is like the one before."""
    for kind in (PRODUCE, FETCH, FETCH + 1, METADATA):
        version = 9
        bodies = [drawn(kind, version, 5, rng) for rng in range(20)]
        memory = memory_for(STARTS)
        said(MACHINE, kind, version, bodies[:1], memory)
        before = int(memory.kinds["credit"][0])
        said(MACHINE, kind, version, bodies[1:15], memory)
        assert memory.kinds["credit"][0] == before + 14, kind


def test_a_length_may_be_any_number(engine: Engine) -> None:
    """One that points far behind the buffer is no place to read from."""
    for kind, version in ((FETCH + 1, 4), (FETCH + 1, 11), (PRODUCE, 3), (METADATA + 1, 8)):
        body = drawn(kind, version, 7, 1)
        memory = memory_for(STARTS)
        assert said(engine, kind, version, [body], memory) == ([0], [])
        assert memory.counts[:WAYS].any()
        changed = [body[:at] + b"\x7f\xff\xff\xff" + body[at + 4 :] for at in range(len(body) - 4)]
        changed = random.Random(3).sample(changed, min(len(changed), 60))
        expected = said(engine, kind, version, changed, without_shapes())
        for one, left in zip(changed, expected[0], strict=True):
            memory.kinds["credit"] = _NEVER_LEARN
            assert said(engine, kind, version, [one], memory)[0] == [left]


def test_a_kind_whose_bodies_are_never_alike_is_given_up() -> None:
    bodies = [drawn(METADATA + 1, 9, form, form, most=3) for form in range(400)]
    memory = memory_for(STARTS)
    expected = said(MACHINE, METADATA + 1, 9, bodies, without_shapes())
    assert said(MACHINE, METADATA + 1, 9, bodies, memory) == expected
    assert memory.kinds["credit"][0] <= 0
    assert memory.places[METADATA + 1, 9] == 0


def test_what_is_learnt_is_no_error() -> None:
    """An error is a row each time."""
    body = drawn(METADATA + 1, 9, 3, 3, most=3, errors=True)
    found, errors = said(MACHINE, METADATA + 1, 9, [body] * 5, memory_for(STARTS))
    assert found == [0] * 5
    assert len(errors) >= 5
    assert [row for row, _ in errors] == sorted(list(range(5)) * (len(errors) // 5))


def test_errors_that_nobody_asked_for_are_not_learnt(engine: Engine) -> None:
    body, memory = drawn(METADATA + 1, 9, 3, 3, most=3, errors=True), memory_for(STARTS)
    assert said(engine, METADATA + 1, 9, [body] * 3, memory, room=0) == ([0] * 3, [])
    assert said(engine, METADATA + 1, 9, [body], memory) == said(engine, METADATA + 1, 9, [body], without_shapes())
    assert len(said(engine, METADATA + 1, 9, [body], memory)[1]) > 0


def test_elements_without_bytes(engine: Engine) -> None:
    """Of an array of them a program asks for room all the same, which a shorter body may not have behind it."""
    code = np.zeros(4, INSTRUCTION)
    code["op"] = [Op.ARRAY, Op.NEXT, Op.BYTES, Op.STOP]
    code["width"], code["register"], code["least"], code["target"] = [4, 0, 2, 0], -1, [1, 0, 0, 0], [2, 1, 0, 0]
    known = api_table()._replace(layouts=code, layout_starts=np.array([[0]]))
    memory = memory_for(known.layout_starts)
    long, short = bytes([0, 0, 0, 3, 0, 5]) + b"value", bytes([0, 0, 0, 3, 0, 0])
    assert said(engine, 0, 0, [long, short, long], memory, known) == ([0, UNREADABLE, 0], [])


def test_a_shape_that_is_too_large_is_not_learnt(engine: Engine) -> None:
    """What decides in it would not fit into its blocks: those of other shapes stand behind them."""
    kind, version = 2 * int(ApiKey.HEARTBEAT) + 1, 4
    memory = memory_for(STARTS)
    body = bytes(4) + b"\1\0" + _number(1, 2000 - 1) + b"t" * 2000 + bytes(7)
    assert said(engine, kind, version, [bytes(12)], memory) == ([0], [])
    before = memory.counts.tolist()
    assert said(engine, kind, version, [body] * 3 + [bytes(12)], memory) == ([0] * 4, [])
    assert memory.counts.tolist() == before
    assert memory.kinds["credit"][0] > 0


def test_more_kinds_than_there_is_room_for() -> None:
    memory = memory_for(STARTS)
    for kind, version in LAYOUTS:
        assert said(MACHINE, kind, version, [drawn(kind, version, 1, 2)], memory) == ([0], [])
    assert memory.used[0] == len(memory.kinds)
    assert (memory.places == NOWHERE).sum() == memory.places.size - len(memory.kinds)


def test_a_body_at_the_end_of_the_buffer_is_left_to_its_program(engine: Engine) -> None:
    kind, version = PRODUCE, 9
    body = drawn(kind, version, 1, 2)
    rows = np.zeros(2, FRAME)
    rows["size"], rows["off"], rows["api"], rows["version"] = len(body), [0, len(body)], kind // 2, version
    data, found = np.frombuffer(body + body, np.uint8).copy(), np.full(2, UNREADABLE)
    left, memory = np.empty(MAX_DEPTH, np.int64), memory_for(STARTS)
    run = engine(left_over)
    assert run(data, rows, 0, api_table(), registers_of(1), left, np.empty((4, 3), np.int64), 0, found, memory) == (
        2,
        0,
        0,
    )
    assert found.tolist() == [0, 0]
