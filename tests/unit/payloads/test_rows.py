"""Records and partitions in columns of payloads: those that the tables of a capture have of the same frames."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import kwire
import kwire.messages
from kwire.capture import read
from kwire.capture.reading import Reading
from kwire.errors import KwireError
from kwire.kernels.layouts import Status
from kwire.payloads import (
    decode_records,
    request_partitions,
    request_records,
    response_partitions,
    response_records,
)
from kwire.records import Record, encode

pytestmark = pytest.mark.usefixtures("engine")

CAPTURE = Path(__file__).parents[2] / "golden/kafka-4.3-kraft-java/clients.pcap"
METADATA = kwire.encode_request(kwire.messages.MetadataRequest(), api_version=1, correlation_id=7)


def frames_of(path: Path) -> tuple[pa.Array, tuple[pa.Array, pa.Array, pa.Array]]:
    requests: list[bytes] = []
    responses: list[tuple[bytes, int, int]] = []
    with path.open("rb") as file:
        for frames in Reading(file):
            for row in range(len(frames)):
                if frames["status"][row] != Status.OK:
                    continue
                data = frames.bytes_of(row)
                if frames["response"][row]:
                    responses.append((data, int(frames["api"][row]), int(frames["version"][row])))
                else:
                    requests.append(data)
    data, keys, versions = zip(*responses, strict=True)
    return pa.array(requests), (pa.array(data), pa.array(keys), pa.array(versions))


def rows_in(*lists: pa.ChunkedArray) -> Counter[str]:
    return Counter(repr(row) for one in lists for each in one.to_pylist() for row in each or ())


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("table", ["records", "partitions"])
def test_rows_are_those_of_a_capture_with_the_same_frames(table: str) -> None:
    found = pa.Table.from_batches(list(read(CAPTURE, table)))
    named = zip(*(found[name].to_pylist() for name in ("topic_id", "topic")), strict=True)
    topic_ids = {id_: name for id_, name in named if id_}
    requests, responses = frames_of(CAPTURE)
    if table == "records":
        made = request_records(requests, topic_ids=topic_ids), response_records(*responses, topic_ids=topic_ids)
    else:
        made = request_partitions(requests, topic_ids=topic_ids), response_partitions(*responses, topic_ids=topic_ids)
    names = [one.name for one in made[0].type.value_type]
    assert rows_in(*made) == Counter(map(repr, found.select(names).to_pylist()))
    assert len(found) > 500


def produce(*sets: bytes, version: int = 9) -> bytes:
    topic = kwire.messages.ProduceRequest.TopicProduceData(
        name="orders",
        partition_data=[
            kwire.messages.ProduceRequest.PartitionProduceData(index=number, records=one)
            for number, one in enumerate(sets)
        ],
    )
    return kwire.encode_request(
        kwire.messages.ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic]), api_version=version, correlation_id=1
    )


BATCH = encode([Record(b"k", b"v" * number, offset=number) for number in range(5)])


def test_each_payload_has_its_rows_at_its_place() -> None:
    payloads = [None, METADATA, produce(BATCH, BATCH), b"", produce(b"\0" * 40), produce(BATCH)[:-9], produce(BATCH)]
    made = request_records(pa.array(payloads, pa.binary())).to_pylist()
    assert made[:2] == [None, []]
    assert [(one["topic"], one["partition"], one["offset"], one["status"]) for one in made[2]] == [
        ("orders", partition, offset, "ok") for partition in range(2) for offset in range(5)
    ]
    assert [one["status"] for one in made[3]] == ["malformed"]
    assert "RequestHeader" in made[3][0]["error"]
    assert [one["status"] for one in made[4]] == ["malformed"]
    assert [one["status"] for one in made[5]][-1] == "malformed"
    assert [one["value"] for one in made[6]] == [b"v" * number for number in range(5)]


def test_a_response_without_its_request_says_so() -> None:
    made = response_records(pa.array([b"\0\0\0\1\0"] * 2), pa.array([None, 1], pa.int32()), 400).to_pylist()
    assert [[one["status"] for one in rows] for rows in made] == [["unsupported"], ["unsupported"]]
    with pytest.raises(KwireError, match="one for each payload"):
        response_records(pa.array([b"", b""]), pa.array([1]), 4)


def test_rows_are_cut_into_arrays_at_payloads(monkeypatch: pytest.MonkeyPatch) -> None:
    payloads = pa.array([None, produce(BATCH), b"", produce(BATCH, BATCH), METADATA, produce(BATCH)] * 3, pa.binary())
    whole = request_records(payloads)
    monkeypatch.setattr("kwire.payloads.frames.MOST_PAYLOADS", 4)
    monkeypatch.setattr("kwire.payloads.rows._ENOUGH", 200)
    cut = request_records(payloads)
    assert cut.num_chunks > whole.num_chunks
    assert cut.to_pylist() == whole.to_pylist()


@pytest.mark.wide(keep=1)
def test_a_payload_that_becomes_more_than_a_list_can_hold_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.payloads.rows._ENOUGH", 1 << 20)
    monkeypatch.setattr("kwire.payloads.rows._MOST", 20 << 20)
    many = encode([Record(b"k", bytes(1 << 20), offset=number) for number in range(60)])
    column = pa.array([produce(BATCH), produce(many, BATCH), produce(BATCH)], pa.binary())
    made = request_records(column).to_pylist()
    assert [len(one) for one in made] == [5, 1, 5]
    assert made[1][0]["status"] == "too_large"
    assert made[1][0]["topic"] is None


def test_names_of_topics_are_given_and_not_learnt() -> None:
    topic_id = UUID(bytes=b"\1" * 16)
    kind = kwire.messages.ProduceRequest
    data = kind.TopicProduceData(topic_id=topic_id, partition_data=[kind.PartitionProduceData(index=0, records=BATCH)])
    frame = kwire.encode_request(kind(acks=1, topic_data=[data]), api_version=13, correlation_id=1)
    text = request_records(pa.array([frame])).to_pylist()[0][0]["topic_id"]
    for given, name in (({}, None), ({topic_id.bytes: "orders"}, "orders"), ({text: "orders"}, "orders")):
        made = request_records(pa.array([frame]), topic_ids=given).to_pylist()
        assert {one["topic"] for one in made[0]} == {name}
    created = kwire.encode_response(
        kwire.messages.CreateTopicsResponse(
            topics=[kwire.messages.CreateTopicsResponse.CreatableTopicResult(name="orders", topic_id=topic_id)]
        ),
        api_version=7,
        correlation_id=1,
    )
    made = response_partitions(pa.array([created]), 19, 7)
    assert made.to_pylist() == [[]]


def test_options_are_checked() -> None:
    wrong: Any = {"topics": {}}
    with pytest.raises(TypeError, match="unexpected keyword argument 'topics': there are sized, topic_ids, "):
        request_records(pa.array([METADATA]), **wrong)
    sized = len(METADATA).to_bytes(4, "big") + METADATA
    made = request_partitions(pa.array([sized, METADATA]), sized=True).to_pylist()
    assert [[one["status"] for one in rows] for rows in made] == [[], ["cut_off"]]


def test_rows_have_the_fields_that_are_asked_for() -> None:
    column = pa.array([produce(BATCH), None, b"no"], pa.binary())
    made = request_records(column, fields=["partition", "offset", "error"]).to_pylist()
    assert made[0] == [{"partition": 0, "offset": offset, "error": None} for offset in range(5)]
    assert made[1] is None
    assert [list(one) for one in made[2]] == [["partition", "offset", "error"]]
    assert made[2][0]["error"]
    with pytest.raises(KwireError, match="no field 'frame': there are topic, topic_id, "):
        request_records(column, fields=["frame"])
    with pytest.raises(KwireError, match="fields names none"):
        request_records(column, fields=[])


def test_record_sets_of_any_array() -> None:
    sets = [BATCH, None, b"", BATCH + b"\0" * 5, b"\xff" * 30]
    made = decode_records(pa.array(sets, pa.binary())).to_pylist()
    assert [None if one is None else len(one) for one in made] == [5, None, 0, 6, 1]
    assert [made[3][-1]["status"], made[4][-1]["status"]] == ["cut_off", "malformed"]
    chunked = pa.chunked_array([pa.array([b"x", one], pa.large_binary()).slice(1) for one in sets])
    assert decode_records(chunked).to_pylist() == made
    assert decode_records(pa.array(sets, pa.binary()), strict=True).to_pylist()[3][-1]["status"] == "malformed"


@pytest.mark.parametrize("metadata", [False, True])
def test_record_sets_have_the_fields_that_are_asked_for(metadata: bool) -> None:
    sets = pa.array([BATCH, None, b"\0" * 40, BATCH + BATCH[:-3], BATCH[:20] + b"\7" + BATCH[21:]], pa.binary())
    hides = pa.array([metadata] * 4 + [None])
    whole = decode_records(sets, metadata=hides)
    names = [one.name for one in whole.type.value_type]
    some = [[name] for name in names] + [["error", "value", "offset"], ["headers", "status"], names[::-1]]
    assert any(one["status"] == "corrupt" for one in whole[4].as_py())
    for fields in some:
        made = decode_records(sets, metadata=hides, fields=fields)
        assert [one.name for one in made.type.value_type] == fields
        assert made.to_pylist() == [
            one and [{name: record[name] for name in fields} for record in one] for one in whole.to_pylist()
        ]
    with pytest.raises(KwireError, match="no field 'topic': there are offset, timestamp, "):
        decode_records(sets, fields=["topic"])
