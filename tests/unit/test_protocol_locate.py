"""The locator: fields of bodies found by programs made from layouts, held against the codec that builds objects."""

from __future__ import annotations

import struct
import uuid
from typing import Any

import numpy as np
import pytest

from kwire import messages, schema
from kwire.codec import registry
from kwire.codec.locate import (
    ABSENT,
    FAIL_CODE,
    FAIL_OFFSET,
    FAIL_WHY,
    Program,
    ProgramSet,
    compile_program,
    locate,
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


def run(program: Program, data: bytes, registers: int) -> tuple[list[list[int]], list[list[int]], ProgramSet]:
    joined = ProgramSet({(0, 0): program}, registers)
    buffer = np.frombuffer(data, np.uint8).copy()
    jobs = np.array([[0, len(data), joined.start(0, 0)]], np.int64)
    rows, failures = locate(buffer, jobs, joined.code, registers)
    return rows.tolist(), failures.tolist(), joined


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
def test_every_record_set_of_every_fetch_response_version_is_found(version: int) -> None:
    data = encoded(fetch_response(version), version)
    program = compile_program([layout(known("FetchResponse"), version)], FETCH, emit_after=FETCH[3])
    rows, failures, _ = run(program, data, len(FETCH))
    assert failures == []
    found = []
    for _, topic, topic_size, topic_id, _, partition, _, records, size in rows:
        if version < 13:
            assert data[topic : topic + topic_size].decode() == "töpic"
            assert topic_id == ABSENT
        else:
            assert data[topic_id : topic_id + 16] == bytes(range(16))
            assert topic == ABSENT
        found.append((partition, data[records : records + size] if size >= 0 else None))
    assert found == [(0, None), (1, b"r" * 100), (2, b"r" * 200)] * 2


@pytest.mark.parametrize("version", list(known("ProduceRequest").versions))
def test_acks_and_record_sets_of_every_produce_request_version_are_found(version: int) -> None:
    topic: dict[str, Any] = {"partition_data": [{"index": 4, "records": b"abc"}]}
    if version < 13:
        topic["name"] = "t"
    data = encoded(messages.ProduceRequest.from_dict({"acks": -1, "timeout_ms": 5, "topic_data": [topic]}), version)
    program = compile_program([layout(known("ProduceRequest"), version)], PRODUCE, emit_after=PRODUCE[3])
    rows, failures, _ = run(program, data, len(PRODUCE))
    assert failures == []
    ((_, acks, _, name, size, partition, _, records, length),) = rows
    assert (acks, partition, data[records : records + length]) == (-1, 4, b"abc")
    assert name == ABSENT if version >= 13 else data[name : name + size] == b"t"


def test_programs_agree_with_the_codec_about_every_message_and_damage() -> None:
    """A program without captures walks exactly the bytes that the codec reads, and fails where the codec fails."""
    for name in ("FetchResponse", "ProduceRequest", "MetadataResponse", "ApiVersionsResponse"):
        message = known(name)
        for version in message.versions:
            made = registry.message_class(message)()
            whole = encoded(fetch_response(version) if name == "FetchResponse" else made, version)
            program = compile_program([layout(message, version)], ())
            assert run(program, whole, 0)[1] == []
            for end in range(len(whole)):
                assert run(program, whole[:end], 0)[1] != [], (name, version, end)
            assert run(program, whole + b"\0", 0)[1] != []


def test_a_failure_names_the_field_and_where_it_stands() -> None:
    program = compile_program([layout(known("ProduceRequest"), 2)], PRODUCE, emit_after=PRODUCE[3])
    data = struct.pack(">hii", 1, 100, 1) + b"\0\x01t" + struct.pack(">iii", 1, 0, 500) + b"abc"
    rows, (failure,), joined = run(program, data, len(PRODUCE))
    assert rows == []
    assert failure[FAIL_OFFSET] == 21
    assert joined.explain(failure[FAIL_CODE], failure[FAIL_WHY]) == (
        "$.topic_data.partition_data.records: its length is more than the bytes left"
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (struct.pack(">hii", 1, 100, 1 << 30), "count is more than the bytes left can hold"),
        (struct.pack(">hii", 1, 100, -2), "its length is negative"),
        (struct.pack(">hiih", 1, 100, 1, -1) + bytes(30), "it may not be null"),
        (struct.pack(">hi", 1, 100), "the frame ends within it"),
        (struct.pack(">hii", 1, 100, 0) + b"x", "bytes are left after the end of the message"),
    ],
)
def test_what_can_be_wrong(data: bytes, why: str) -> None:
    program = compile_program([layout(known("ProduceRequest"), 2)], PRODUCE, emit_after=PRODUCE[3])
    _, failures, joined = run(program, data, len(PRODUCE))
    assert why in joined.explain(failures[0][FAIL_CODE], failures[0][FAIL_WHY])


def test_a_program_may_stop_early_and_not_look_at_the_rest() -> None:
    program = compile_program([layout(known("ProduceRequest"), 2)], ("acks",), emit_after="acks", stop_after="acks")
    rows, failures, _ = run(program, struct.pack(">h", 1) + b"whatever", 1)
    assert (rows, failures) == ([[0, 1, 0]], [])


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


def test_nullable_structs_nested_arrays_and_tagged_fields_of_an_invented_message() -> None:
    message = invented()
    program = compile_program([layout(message, 1)], ("maybe.deep.wanted", "after"), emit_after="maybe.deep.wanted")
    null = b"\0" + b"\xff" + bytes(16) + b"\0"
    assert run(program, null, 2)[:2] == ([], [])
    deep = b"".join(struct.pack(">q", k) + b"\x01\x05\x02ab" for k in (-7, 1 << 40))
    some = b"\x03ab" + b"\x01" + b"\x03" + bytes(8) + b"\x03" + deep + b"\0" + bytes(range(16)) + b"\x01\x03\x04\x03xyz"
    rows, failures, _ = run(program, some, 2)
    assert failures == []
    assert [row[1] for row in rows] == [-7, 1 << 40]


def test_overlong_varints_are_read_and_longer_ones_are_not() -> None:
    program = compile_program([layout(invented(), 1)], ())
    assert run(program, b"\x80\x80\x80\x80\x00" + b"\xff" + bytes(17), 0)[1] == []
    _, failures, joined = run(program, b"\x80\x80\x80\x80\x80\x00" + b"\xff" + bytes(17), 0)
    assert "unsigned varint" in joined.explain(failures[0][FAIL_CODE], failures[0][FAIL_WHY])
