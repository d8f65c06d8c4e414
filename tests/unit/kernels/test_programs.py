"""Programs made from layouts: fields of bodies, held against the codec that builds objects, on both engines."""

from __future__ import annotations

import struct
import uuid
from typing import Any

import numpy as np
import pytest

from kwire import messages, schema
from kwire.codec import registry
from kwire.kernels.engine import Engine
from kwire.kernels.layouts import ABSENT, FRAME
from kwire.kernels.programs import (
    COMPACT,
    INSTRUCTION,
    JOB,
    MAX_DEPTH,
    UNKNOWN,
    Op,
    Program,
    ProgramSet,
    Trouble,
    compile_program,
    job_column,
    jobs_of,
    length_column,
    locate,
    value_column,
)
from kwire.schema import model, parse
from kwire.schema.model import layout

FETCH = (
    "responses.topic",
    "responses.topic_id",
    "responses.partitions.partition_index",
    "responses.partitions.records",
)
PRODUCE = ("acks", "topic_data.name", "topic_data.partition_data.index", "topic_data.partition_data.records")


def run(engine: Engine, program: Program, data: bytes, registers: int) -> tuple[Any, list[dict[str, int]], ProgramSet]:
    """The rows and failures of one frame, which stands behind others."""
    joined = ProgramSet({(1, 0): program, (0, 0): program}, registers)
    buffer = np.frombuffer(b"before" + data + b"behind", np.uint8).copy()
    jobs = np.array([(6, 6 + len(data), joined.start(0, 0))], JOB)
    rows, failures = locate(buffer, jobs, joined.code, registers, engine)
    for number in range(registers):
        values, lengths = value_column(rows, number), length_column(rows, number)
        values[(lengths != 0) & (lengths != ABSENT)] -= 6
    assert not job_column(rows).any()
    failed = [dict(zip(failures.dtype.names, row, strict=True)) for row in failures.tolist()]
    for one in failed:
        one["offset"] -= 6
    return rows, failed, joined


def known(name: str) -> model.Message:
    return schema.message(name)


def encoded(message: Any, version: int) -> bytes:
    return bytes(registry.codec(message.SCHEMA, version).encode(message))


def fetch_response(version: int) -> Any:
    """Two topics with three partitions each."""
    topic: dict[str, Any] = {"topic": "töpic"} if version < 13 else {"topic_id": uuid.UUID(bytes=bytes(range(16)))}
    topic["partitions"] = [
        {"partition_index": k, "high_watermark": 9, "records": b"r" * k * 100 if k else None} for k in range(3)
    ]
    return messages.FetchResponse.from_dict({"responses": [topic] * 2})


@pytest.mark.parametrize("version", list(known("FetchResponse").versions))
def test_every_record_set_of_every_fetch_response_version_is_found(engine: Engine, version: int) -> None:
    data = encoded(fetch_response(version), version)
    program = compile_program([layout(known("FetchResponse"), version)], FETCH, emit_after=FETCH[3])
    rows, failures, _ = run(engine, program, data, len(FETCH))
    assert failures == []
    found = []
    for _, topic, topic_size, topic_id, _, partition, _, records, size in rows.tolist():
        if version < 13:
            assert data[topic : topic + topic_size].decode() == "töpic"
            assert topic_id == ABSENT
        else:
            assert data[topic_id : topic_id + 16] == bytes(range(16))
            assert topic == ABSENT
        found.append((partition, data[records : records + size] if size >= 0 else None))
    assert found == [(0, None), (1, b"r" * 100), (2, b"r" * 200)] * 2


@pytest.mark.parametrize("version", list(known("ProduceRequest").versions))
def test_acks_and_record_sets_of_every_produce_request_version_are_found(engine: Engine, version: int) -> None:
    topic: dict[str, Any] = {"partition_data": [{"index": 4, "records": b"abc"}]}
    if version < 13:
        topic["name"] = "t"
    data = encoded(messages.ProduceRequest.from_dict({"acks": -1, "timeout_ms": 5, "topic_data": [topic]}), version)
    program = compile_program([layout(known("ProduceRequest"), version)], PRODUCE, emit_after=PRODUCE[3])
    rows, failures, _ = run(engine, program, data, len(PRODUCE))
    assert failures == []
    ((_, acks, _, name, size, partition, _, records, length),) = rows.tolist()
    assert (acks, partition, data[records : records + length]) == (-1, 4, b"abc")
    assert name == ABSENT if version >= 13 else data[name : name + size] == b"t"


@pytest.mark.wide
def test_programs_agree_with_the_codec_about_every_message_and_damage(engine: Engine) -> None:
    """A program without captures walks exactly the bytes that the codec reads, and fails where the codec fails."""
    for name in ("FetchResponse", "ProduceRequest", "MetadataResponse", "ApiVersionsResponse"):
        message = known(name)
        for version in message.versions:
            made = registry.message_class(message)()
            whole = encoded(fetch_response(version) if name == "FetchResponse" else made, version)
            program = compile_program([layout(message, version)], ())
            assert run(engine, program, whole, 0)[1] == []
            for end in range(len(whole)):
                assert run(engine, program, whole[:end], 0)[1] != [], (name, version, end)
            assert run(engine, program, whole + b"\0", 0)[1] != []


def test_a_failure_names_the_field_and_where_it_stands(engine: Engine) -> None:
    program = compile_program([layout(known("ProduceRequest"), 2)], PRODUCE, emit_after=PRODUCE[3])
    data = struct.pack(">hii", 1, 100, 1) + b"\0\x01t" + struct.pack(">iii", 1, 0, 500) + b"abc"
    rows, (failure,), joined = run(engine, program, data, len(PRODUCE))
    assert len(rows) == 0
    assert failure["offset"] == 21
    assert joined.explain(failure["instruction"], failure["trouble"]) == (
        "$.topic_data.partition_data.records: its length is more than the bytes left"
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (struct.pack(">hii", 1, 100, 1 << 30), "count is more than the bytes left can hold"),
        (struct.pack(">hii", 1, 100, -2), "it may not be null"),
        (struct.pack(">hiih", 1, 100, 1, -1) + bytes(30), "it may not be null"),
        (struct.pack(">hi", 1, 100), "the frame ends within it"),
        (struct.pack(">hii", 1, 100, 0) + b"x", "bytes are left after the end of the message"),
    ],
)
def test_what_can_be_wrong(engine: Engine, data: bytes, why: str) -> None:
    program = compile_program([layout(known("ProduceRequest"), 2)], PRODUCE, emit_after=PRODUCE[3])
    _, failures, joined = run(engine, program, data, len(PRODUCE))
    assert why in joined.explain(failures[0]["instruction"], failures[0]["trouble"])


def test_a_program_may_stop_early_and_not_look_at_the_rest(engine: Engine) -> None:
    program = compile_program([layout(known("ProduceRequest"), 2)], ("acks",), emit_after="acks", stop_after="acks")
    rows, failures, _ = run(engine, program, struct.pack(">h", 1) + b"whatever", 1)
    assert (rows.tolist(), failures) == ([[0, 1, 0]], [])


INVENTED = """
request Invented key 999 versions 0-1 flexible 1+
  before      string?
  maybe       Maybe? = null
    inner     [int32]
    deep      [Deep]
      wanted  int64
  tagged      string     1+  tag 3
  after       uuid
"""


def invented() -> model.Message:
    (made,) = parse(INVENTED, "invented.kwire")
    return made


def test_nullable_structs_nested_arrays_and_tagged_fields_of_an_invented_message(engine: Engine) -> None:
    message = invented()
    program = compile_program([layout(message, 1)], ("maybe.deep.wanted", "after"), emit_after="maybe.deep.wanted")
    null = b"\0" + b"\xff" + bytes(16) + b"\0"
    rows, failures, _ = run(engine, program, null, 2)
    assert (len(rows), failures) == (0, [])
    deep = b"".join(struct.pack(">q", k) + b"\x01\x05\x02ab" for k in (-7, 1 << 40))
    some = b"\x03ab" + b"\x01" + b"\x03" + bytes(8) + b"\x03" + deep + b"\0" + bytes(range(16)) + b"\x01\x03\x04\x03xyz"
    rows, failures, _ = run(engine, program, some, 2)
    assert failures == []
    assert value_column(rows, 0).tolist() == [-7, 1 << 40]


def test_overlong_varints_are_read_and_longer_ones_are_not(engine: Engine) -> None:
    program = compile_program([layout(invented(), 1)], ())
    assert run(engine, program, b"\x80\x80\x80\x80\x00" + b"\xff" + bytes(17), 0)[1] == []
    _, failures, joined = run(engine, program, b"\x80\x80\x80\x80\x80\x00" + b"\xff" + bytes(17), 0)
    assert "unsigned varint" in joined.explain(failures[0]["instruction"], failures[0]["trouble"])


def test_rows_of_many_frames_are_told_apart_and_their_table_grows(engine: Engine) -> None:
    data = [encoded(fetch_response(4), 4)] * 30
    data[7] = data[7][:-1]
    program = compile_program([layout(known("FetchResponse"), 4)], FETCH, emit_after=FETCH[3])
    joined = ProgramSet({(0, 0): program}, len(FETCH))
    ends = np.cumsum([len(one) for one in data])
    jobs = np.zeros(len(data), JOB)
    jobs["start"], jobs["end"] = [0, *ends[:-1]], ends
    buffer = np.frombuffer(b"".join(data), np.uint8).copy()
    rows, failures = locate(buffer, jobs, joined.code, len(FETCH), engine)
    counts = [6] * 30
    counts[7] = 5
    assert np.bincount(job_column(rows)).tolist() == counts
    assert value_column(rows, 2).tolist() == [0, 1, 2] * 15 + [0, 1] + [0, 1, 2] * 44
    assert [(int(row["job"]), int(row["trouble"])) for row in failures] == [(7, Trouble.LONG)]


def test_jobs_are_the_frames_of_a_kind_that_has_a_program(engine: Engine) -> None:
    rows = np.zeros(5, FRAME)
    rows["api"], rows["response"], rows["version"] = [0, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 1, 1, 1, 0]
    rows["off"], rows["seen"] = [10, 20, 30, 40, 50], [1, 2, 3, 4, 5]
    begins = np.array([[7, 8], [-1, 9], [6, -1], [5, UNKNOWN]])
    jobs, kept = np.zeros(5, JOB), np.zeros(5, np.int64)
    wanted = np.arange(1, 5)
    assert engine(jobs_of)(rows, wanted, begins, jobs, kept) == (3, 11)
    assert jobs[:3].tolist() == [(20, 22, 9), (40, 44, 8), (50, 55, 7)]
    assert kept[:3].tolist() == [1, 3, 4]
    for kind in [(1, 1, 1), (2, 0, 0), (0, 0, 2), (0, 0, ABSENT), (ABSENT, 0, 0)]:
        rows["api"][2], rows["response"][2], rows["version"][2] = kind
        assert engine(jobs_of)(rows, wanted, begins, jobs, kept)[0] == UNKNOWN


def test_arrays_that_are_nested_too_deeply_stop_the_program(engine: Engine) -> None:
    for depth in (MAX_DEPTH, MAX_DEPTH + 1):
        # Each array has one element: no jump is taken.
        operations = [*[Op.ARRAY] * depth, Op.SKIP, *[Op.NEXT] * depth, Op.STOP]
        code = np.zeros(len(operations), INSTRUCTION)
        code["op"], code["width"], code["least"], code["register"] = operations, COMPACT, 1, -1
        _, failures, _ = run(engine, Program(code, ("",) * len(code)), b"\x02" * depth + b"x", 0)
        assert [one["trouble"] for one in failures] == ([Trouble.DEPTH] if depth > MAX_DEPTH else [])


def test_every_trouble_of_the_input_has_words() -> None:
    joined = ProgramSet({(0, 0): compile_program([layout(known("ProduceRequest"), 2)], ())}, 0)
    texts = {joined.explain(0, trouble) for trouble in Trouble if trouble not in (Trouble.NONE, Trouble.FULL)}
    assert len(texts) == len(Trouble) - 2
