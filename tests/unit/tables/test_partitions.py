"""The table ``partitions``: every API and version that has such arrays, and what hostile frames become."""

from __future__ import annotations

import io
import itertools
import struct
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from made_captures import Row
from made_captures import read as rows_of
from packets import Connection, pcap
from partition_walk import NOTHING, partitions
from valid_batches import valid

import kwire
from kwire import capture, messages, schema
from kwire.records import Record, encode
from kwire.schema.model import Array, Field, Message, Primitive, StructRef
from kwire.tables import partitions as module

RECORDS = encode([Record(b"k", b"v"), Record(None, b"w")], compression="gzip") + encode([Record(b"x", b"y")])


class Filler:
    """Messages in which every field that a version has differs from its default and from its neighbours."""

    def __init__(self, message: Message, version: int) -> None:
        self._message = message
        self._version = version
        self._numbers = itertools.count(3)

    def message(self) -> Any:
        return getattr(messages, self._message.name).from_dict(self._struct(self._message.fields))

    def _struct(self, fields: tuple[Field, ...]) -> dict[str, Any]:
        return {one.name: self._value(one) for one in fields if self._version in one.versions}

    def _value(self, one: Field) -> Any:
        if isinstance(one.type, Array):
            return [self._of(one.type.element) for _ in range(2)]
        return self._of(one.type)

    def _of(self, type_: Primitive | StructRef) -> Any:
        if isinstance(type_, StructRef):
            return self._struct(self._message.structs[type_.name].fields)
        number = next(self._numbers)
        if type_.name == "string":
            return f"text-{number}"
        if type_.name == "records":
            return RECORDS
        if type_.name == "bytes":
            return b"bytes"
        if type_.name == "uuid":
            return uuid.UUID(int=number)
        if type_.name == "bool":
            return True
        if type_.name == "float64":
            return 0.5
        return number % 100 if type_.name == "int8" else number


def kinds() -> Iterator[tuple[int, int]]:
    """Every API and version of it."""
    for api in schema.api_keys():
        request = schema.request(api)
        assert request is not None
        for version in request.versions:
            yield api, version


@pytest.mark.wide
@pytest.mark.parametrize("most", [1, 2, module.MOST_ROWS])
def test_every_version_of_every_api_says_what_a_walk_over_its_messages_finds(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Parts of a few rows have few kinds of messages each, and columns that none of these has.
    monkeypatch.setattr(module, "MOST_ROWS", most)
    connection = Connection().open()
    expected: list[tuple[int, str, list[Row]]] = []
    for number, (api, version) in enumerate(kinds()):
        request, response = schema.request(api), schema.response(api)
        assert request is not None
        assert response is not None
        asked = Filler(request, version).message()
        connection.send(kwire.encode_request(asked, api_version=version, correlation_id=number, client_id="c"))
        expected.append((number, "request", partitions(asked, version)))
        if version not in response.versions or (api, version) == (0, 0):
            continue
        answer = Filler(response, version).message()
        connection.answer(kwire.encode_response(answer, api_version=version, correlation_id=number))
        expected.append((number, "response", partitions(answer, version)))
    wanted = [one for _, _, rows in expected for one in rows]
    found = rows_of(pcap(connection.packets), "partitions", ports=[9092])
    assert {row["status"] for row in found} == {"ok"}
    # Where a frame has no name, the id may have been named before.
    for row, one in zip(found, wanted, strict=True):
        told = {name: row[name] for name in NOTHING}
        if one["topic"] is None:
            told["topic"] = None
        assert told == one, (row["api_name"], row["api_version"], row["direction"])
    assert len({(row["api_name"], row["direction"]) for row in found}) > 80
    assert all(any(row[name] is not None for row in found) for name in NOTHING if name != "offset_spec")


def commit(count: int, group: str = "billing", name: str = "orders", metadata: str = "") -> bytes:
    """An OffsetCommit request for so many partitions."""
    parts = [{"partition_index": k, "committed_offset": 100 + k, "committed_metadata": metadata} for k in range(count)]
    body = messages.OffsetCommitRequest.from_dict({"group_id": group, "topics": [{"name": name, "partitions": parts}]})
    return kwire.encode_request(body, api_version=8, correlation_id=1, client_id="app")


def captured(*frames: bytes) -> bytes:
    """A segment for each: what follows a damaged frame within its segment is in doubt."""
    connection = Connection().open()
    for frame in frames:
        connection.send(frame)
    return pcap(connection.packets)


def test_a_row_has_its_frame_its_group_and_its_topic() -> None:
    first, second = rows_of(captured(commit(2)), "partitions", name="x.pcap")
    assert (first["capture"], first["client_id"], first["api_name"]) == ("x.pcap", "app", "OffsetCommit")
    assert (first["group_id"], first["topic"], first["error"]) == ("billing", "orders", None)
    assert [(one["partition"], one["offset"]) for one in (first, second)] == [(0, 100), (1, 101)]
    (frame,) = rows_of(captured(commit(2)), "frames")
    assert first["correlation_id"] == second["correlation_id"] == frame["correlation_id"]


def list_offsets(*times: int) -> bytes:
    parts = [{"partition_index": k, "timestamp": when} for k, when in enumerate(times)]
    body = messages.ListOffsetsRequest.from_dict({"topics": [{"name": "t", "partitions": parts}]})
    return kwire.encode_request(body, api_version=8, correlation_id=1, client_id="app")


def test_offsets_are_asked_for_by_time_or_by_a_word() -> None:
    found = rows_of(captured(list_offsets(-1, -2, -3, -4, -5, -6, 5000, -7, 1 << 62)), "partitions")
    assert [one["offset_spec"] for one in found] == [
        "latest",
        "earliest",
        "max_timestamp",
        "earliest_local",
        "latest_tiered",
        "earliest_pending_upload",
        None,
        None,
        None,
    ]
    assert [None if one["timestamp"] is None else one["timestamp"].timestamp() for one in found] == [
        *[None] * 6,
        5.0,
        None,
        None,
    ]


def test_a_topic_without_partitions_has_the_error_that_it_tells() -> None:
    topic = {"error_code": 3, "name": "gone", "partitions": []}
    body = messages.MetadataResponse.from_dict({"topics": [topic]})
    asked = kwire.encode_request(messages.MetadataRequest(), api_version=9, correlation_id=1, client_id="app")
    connection = Connection().open().send(asked)
    connection.answer(kwire.encode_response(body, api_version=9, correlation_id=1))
    (row,) = rows_of(pcap(connection.packets), "partitions")
    assert (row["topic"], row["partition"], row["error"]) == ("gone", None, "UNKNOWN_TOPIC_OR_PARTITION")


def produce(data: bytes | None) -> bytes:
    topic = {"name": "t", "partition_data": [{"index": 0, "records": data}]}
    body = messages.ProduceRequest.from_dict({"acks": 1, "topic_data": [topic]})
    return kwire.encode_request(body, api_version=8 if data is None else 2, correlation_id=1, client_id="app")


OLD = encode([Record(b"k", b"v")] * 3, magic=1)
WRAPPED = encode([Record(b"k", b"v")] * 3, magic=1, compression="gzip")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, (None, None, None, None)),
        (b"", (0, 0, 0, None)),
        (RECORDS, (len(RECORDS), 2, 3, "mixed")),
        (RECORDS[:-1], (len(RECORDS) - 1, 1, 2, "gzip")),
        (OLD, (len(OLD), 3, 3, "none")),
        (WRAPPED, (len(WRAPPED), 1, None, "gzip")),
        (bytes(60), (60, 0, 0, None)),
        (b"\xff" * 60, (60, 0, 0, None)),
        (RECORDS[:57] + b"\xff" * 4 + RECORDS[61:], (len(RECORDS), 2, None, "mixed")),
    ],
)
def test_record_sets_are_counted_by_their_headers(data: bytes | None, expected: tuple[Any, ...]) -> None:
    (row,) = rows_of(captured(produce(data)), "partitions", ports=[9092])
    assert tuple(row[name] for name in ("record_bytes", "batches", "records", "compression")) == expected


def test_a_frame_that_is_not_what_it_says_has_the_rows_before_the_damage() -> None:
    good = commit(3)
    # The last partition's metadata is longer than the frame.
    bad = good[:-4] + b"\x7f" + good[-3:]
    found = rows_of(captured(good, bad, good), "partitions", ports=[9092])
    assert [one["status"] for one in found] == ["ok"] * 5 + ["malformed"] + ["ok"] * 3
    assert found[5]["frame"] == 1
    assert "OffsetCommitRequest v8 $.topics.partitions" in found[5]["error"]


def test_a_frame_that_is_cut_off_has_the_partitions_that_are_there() -> None:
    whole = commit(20, metadata="m" * 50)
    data = captured(commit(1))
    connection = Connection().open().send(commit(1)).send_raw(struct.pack(">i", len(whole)) + whole[:-150])
    found = rows_of(pcap(connection.packets), "partitions")
    assert len(rows_of(data, "partitions")) == 1
    assert [one["status"] for one in found] == ["ok"] * (len(found) - 1) + ["unreadable"]
    assert [one["partition"] for one in found[1:-1]] == list(range(len(found) - 2))
    assert 5 < len(found) < 20


def test_a_frame_of_many_partitions_is_cut_into_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 100)
    data = captured(commit(950), commit(30))
    batches = list(valid(capture.read(io.BytesIO(data), "partitions")))
    assert max(batch.num_rows for batch in batches) <= 100
    table = pa.Table.from_batches(batches)
    assert table.column("partition").to_pylist() == [*range(950), *range(30)]
    assert set(table.column("group_id").to_pylist()) == {"billing"}


def test_columns_of_one_large_frame_are_those_of_many_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 10)
    of_frame = [name for name in module.SCHEMA.names if name in (*module._OF_FRAME, "frame_timestamp")]
    found = rows_of(captured(commit(35), commit(1, "other"), commit(20)), "partitions")
    frames = rows_of(captured(commit(35), commit(1, "other"), commit(20)), "frames")
    expected = [frames[0]] * 35 + [frames[1]] + [frames[2]] * 20
    for row, frame in zip(found, expected, strict=True):
        told = {name: frame["timestamp" if name == "frame_timestamp" else name] for name in of_frame}
        assert {name: row[name] for name in of_frame} == told


def test_long_names_cut_batches_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    data = captured(commit(2000, name="t" * 30_000))
    batches = list(valid(capture.read(io.BytesIO(data), "partitions")))
    assert sum(batch.num_rows for batch in batches) == 2000
    assert max(batch.nbytes for batch in batches) < 20 << 20


def test_what_is_not_wanted_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    original = module._Part._count_records
    monkeypatch.setattr(module._Part, "_count_records", lambda part: (counted.append(1), original(part)))
    data = captured(produce(RECORDS))
    rows_of(data, "partitions", columns=["topic", "record_bytes", "error"])
    assert not counted
    (row,) = rows_of(data, "partitions", columns=["records", "frame"])
    assert counted
    assert row == {"records": 3, "frame": 0}
