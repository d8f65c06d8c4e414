"""The table ``journeys``: the rows of captures of real clients do not depend on windows, engines or files."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from made_captures import read as rows_of
from packets import Connection, pcap

import kwire
from kwire import capture, messages
from kwire.kernels.engine import MACHINE, using
from kwire.records import Record, encode
from kwire.tables.reading import read
from kwire.testing import packets

GOLDEN = Path(__file__).parents[2] / "golden"
CAPTURES = ("kafka-4.3-kraft-java/clients.pcap", "kafka-4.3-kraft-librdkafka/current.pcap")
_FREE = ("capture", "connection", "frame")
_NUMBERS = ("_frame", "_connection")


def _rows(data: bytes, table: str, window: int | None = None) -> list[dict[str, Any]]:
    return [row for _, batch in read(BytesIO(data), {table: None}, window=window) for row in batch.to_pylist()]


@pytest.mark.parametrize("table", ["journeys", "transactions"])
@pytest.mark.parametrize("name", CAPTURES)
def test_rows_are_the_same_in_any_window(name: str, table: str) -> None:
    data = (GOLDEN / name).read_bytes()
    whole = _rows(data, table)
    assert whole
    assert _rows(data, table, 20_000) == whole
    with using(MACHINE):
        assert _rows(data, table, 60_000) == whole


def test_rows_go_on_from_file_to_file() -> None:
    whole = packets.read((GOLDEN / CAPTURES[0]).read_bytes())
    cuts = [0, *sorted(Random(1).sample(range(1, len(whole)), 3)), len(whole)]
    files = [BytesIO(packets.write_pcapng(whole[begin:end])) for begin, end in pairwise(cuts)]

    def plain(batches: Any) -> list[dict[str, Any]]:
        rows = (row for batch in batches for row in batch.to_pylist())
        return [
            {name: value for name, value in row.items() if name not in _FREE and not name.endswith(_NUMBERS)}
            for row in rows
        ]

    one = capture.read(BytesIO(packets.write_pcapng(whole)), "journeys")
    assert plain(capture.read(files, "journeys")) == plain(one)


def test_what_a_group_read_is_committed() -> None:
    rows = _rows((GOLDEN / CAPTURES[0]).read_bytes(), "journeys")
    mine = [row for row in rows if row["group_id"] == "java-classic"]
    assert {row["status"] for row in mine} == {"committed"}
    assert all(row["produced"] <= row["acknowledged"] <= row["fetched"] <= row["committed"] for row in mine
               if row["produced"] is not None)  # fmt: skip


def _in_a_transaction(*, committed: bool, refused: bool = False, gap: bool = False) -> list[dict[str, Any]]:
    """The rows of records that were produced, fetched, and whose offset was committed in a transaction."""
    one = Connection().open()
    numbers = iter(range(100))

    def ask(asked: Any, answered: Any, version: int) -> None:
        number = next(numbers)
        one.send(kwire.encode_request(asked, api_version=version, correlation_id=number, client_id="c"))
        one.answer(kwire.encode_response(answered, api_version=version, correlation_id=number))

    data = encode([Record(None, b"x", timestamp=1)] * 5)
    part = {"name": "t", "partition_data": [{"index": 0, "records": data}]}
    asked: Any = messages.ProduceRequest.from_dict({"acks": -1, "timeout_ms": 9, "topic_data": [part]})
    done = {"name": "t", "partition_responses": [{"index": 0, "base_offset": 0}]}
    ask(asked, messages.ProduceResponse.from_dict({"responses": [done]}), 9)
    wants = {"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 0}]}
    asked = messages.FetchRequest.from_dict({"isolation_level": 1, "topics": [wants]})
    said = {"partition_index": 0, "high_watermark": 5, "last_stable_offset": 5, "records": data}
    ask(asked, messages.FetchResponse.from_dict({"responses": [{"topic": "t", "partitions": [said]}]}), 12)
    ids = {"transactional_id": "tx", "producer_id": 7, "producer_epoch": 0}
    topics = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 5}]}]
    asked = messages.TxnOffsetCommitRequest.from_dict({**ids, "group_id": "g", "topics": topics})
    topics = [{"name": "t", "partitions": [{"partition_index": 0, "error_code": 22 if refused else 0}]}]
    ask(asked, messages.TxnOffsetCommitResponse.from_dict({"topics": topics}), 3)
    if gap:
        one.send(b"x" * 40)
        del one.packets[-1]
    ask(messages.EndTxnRequest.from_dict({**ids, "committed": committed}), messages.EndTxnResponse(), 3)
    return rows_of(pcap(one.packets), "journeys")


def test_a_commit_that_was_asked_for_before_the_records_came_does_not_cover_them() -> None:
    one, other = Connection().open(), Connection(client=("10.0.0.1", 40_001)).open()
    data = encode([Record(None, b"x", timestamp=1)] * 5)
    wants = {"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 0}]}
    asked = messages.FetchRequest.from_dict({"topics": [wants]})
    said = {"partition_index": 0, "high_watermark": 5, "records": data}
    answered = messages.FetchResponse.from_dict({"responses": [{"topic": "t", "partitions": [said]}]})
    topics = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 5}]}]
    commit = messages.OffsetCommitRequest.from_dict({"group_id": "g", "topics": topics})
    done = messages.OffsetCommitResponse.from_dict({"topics": [{"name": "t", "partitions": [{"partition_index": 0}]}]})
    one.send(kwire.encode_request(asked, api_version=12, correlation_id=1, client_id="c"))
    for number in (1, 2):
        other.send(kwire.encode_request(commit, api_version=8, correlation_id=number, client_id="c"))
        if number == 1:
            one.time = other.time = other.time + 1_000_000
            one.answer(kwire.encode_response(answered, api_version=12, correlation_id=1))
            other.time = one.time + 1_000_000
        other.answer(kwire.encode_response(done, api_version=8, correlation_id=number))
    listed = sorted(one.packets + other.packets, key=lambda each: each.time)
    (row,) = rows_of(pcap(listed), "journeys")
    assert (row["status"], row["frame"], row["commit_frame"]) == ("committed", 2, 4)


@pytest.mark.parametrize("data", [bytes(90), b"\xff" * 61, bytes(8) + b"\x7f\xff\xff\xff" + bytes(60)])
def test_record_sets_without_a_batch_make_no_row(data: bytes) -> None:
    one = Connection().open()
    wants = {"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 0}]}
    asked = messages.FetchRequest.from_dict({"topics": [wants]})
    one.send(kwire.encode_request(asked, api_version=12, correlation_id=1, client_id="c"))
    said = {"partition_index": 0, "high_watermark": 5, "records": data}
    answered = messages.FetchResponse.from_dict({"responses": [{"topic": "t", "partitions": [said]}]})
    one.answer(kwire.encode_response(answered, api_version=12, correlation_id=1))
    assert rows_of(pcap(one.packets), "journeys") == []


def test_offsets_of_a_transaction_are_a_commit_once_it_is_committed() -> None:
    (row,) = _in_a_transaction(committed=True)
    assert (row["status"], row["group_id"], row["records"]) == ("committed", "g", 5)
    # The request with the offsets, at the time at which the transaction ended.
    assert row["commit_frame"] == 4
    assert row["commit_ms"] == pytest.approx(4, abs=1)


@pytest.mark.parametrize("how", [{"committed": False}, {"committed": True, "refused": True}])
def test_offsets_of_a_transaction_that_is_aborted_or_refused_are_none(how: dict[str, bool]) -> None:
    (row,) = _in_a_transaction(**how)
    assert row["status"] == "delivered"


def test_where_packets_are_missing_it_is_not_known_how_a_transaction_ended() -> None:
    rows = _in_a_transaction(committed=True, gap=True)
    assert {row["status"] for row in rows} == {"delivered"}


def test_an_acknowledgement_in_the_next_file_counts_as_in_the_same() -> None:
    """A consumer may have records before the producer has its acknowledgement. Files are cut anywhere."""
    one, other = Connection().open(), Connection(client=("10.0.0.1", 40_001)).open()
    data = encode([Record(None, b"x", timestamp=1)] * 5)
    part = {"name": "t", "partition_data": [{"index": 0, "records": data}]}
    asked = messages.ProduceRequest.from_dict({"acks": -1, "timeout_ms": 9, "topic_data": [part]})
    done = {"name": "t", "partition_responses": [{"index": 0, "base_offset": 0}]}
    answered = messages.ProduceResponse.from_dict({"responses": [done]})
    wants = {"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 0}]}
    fetch = messages.FetchRequest.from_dict({"topics": [wants]})
    said = {"partition_index": 0, "high_watermark": 5, "records": data}
    got = messages.FetchResponse.from_dict({"responses": [{"topic": "t", "partitions": [said]}]})
    one.send(kwire.encode_request(asked, api_version=9, correlation_id=1, client_id="p"))
    other.time = one.time
    other.send(kwire.encode_request(fetch, api_version=12, correlation_id=1, client_id="c"))
    other.answer(kwire.encode_response(got, api_version=12, correlation_id=1))
    one.time = other.time
    one.answer(kwire.encode_response(answered, api_version=9, correlation_id=1))
    listed = sorted(one.packets + other.packets, key=lambda each: each.time)
    names = ("first_offset", "last_offset", "status", "ack_ms", "fetch_ms")
    (whole,) = rows_of(pcap(listed), "journeys")
    for cut in range(1, len(listed)):
        files = [pcap(some) for some in (listed[:cut], listed[cut:])]
        (row,) = (row for batch in capture.read([*map(BytesIO, files)], "journeys") for row in batch.to_pylist())
        assert [row[name] for name in names] == [whole[name] for name in names]
        frames = [each for batch in capture.read([*map(BytesIO, files)], "frames") for each in batch.to_pylist()]
        (produced,) = (each for each in frames if (each["api_name"], each["direction"]) == ("Produce", "request"))
        (fetched,) = (each for each in frames if (each["api_name"], each["direction"]) == ("Fetch", "response"))
        assert (row["produce_frame"], row["frame"]) == (produced["frame"], fetched["frame"])
