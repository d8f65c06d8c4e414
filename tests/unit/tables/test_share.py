"""Records of ShareFetch responses: which of a batch the client acquired, how often they were delivered, and sums."""

from __future__ import annotations

import io
import json
import random
import struct
import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made_captures import exchange, read
from packets import Connection, pcap

import kwire
from kwire import capture, messages
from kwire.kernels.engine import MACHINE, PYTHON, Engine, using
from kwire.records import Batch, Record, encode, encode_batch
from kwire.report.lineage import TABLES, Lineage
from kwire.report.overview import TABLES as OF_OVERVIEW
from kwire.report.overview import Overview
from kwire.report.spans import TABLES as OF_SPANS
from kwire.report.spans import Spans
from kwire.tables import records

SHARE = Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-java" / "share.pcap"
COLUMNS = ["frame", "topic", "partition", "offset", "status", "error", "delivery_count"]
Row = dict[str, Any]
Range = tuple[int, int, int]
Set = tuple[bytes, Sequence[Range]]
NOT = "not_acquired"


def answer(number: int, sets: Sequence[Set], version: int = 1) -> bytes:
    """A ShareFetch response with record sets and the ranges that were acquired of each, as partitions 0, 1, ..."""
    names = ("first_offset", "last_offset", "delivery_count")
    parts = [
        {
            "partition_index": partition,
            "records": data,
            "acquired_records": [dict(zip(names, one, strict=True)) for one in ranges],
        }
        for partition, (data, ranges) in enumerate(sets)
    ]
    body = messages.ShareFetchResponse.from_dict({"responses": [{"topic_id": uuid.UUID(int=7), "partitions": parts}]})
    return kwire.encode_response(body, api_version=version, correlation_id=number)


def captured(*answers: bytes, version: int = 1) -> Connection:
    connection = exchange()
    for number, one in enumerate(answers, 2):
        asked = messages.ShareFetchRequest()
        connection.send(
            kwire.encode_request(asked, api_version=version, correlation_id=number, client_id="c")
        ).answer(one)  # fmt: skip
    return connection


def batch(offsets: Sequence[int], last: int | None = None, compression: int = 0) -> bytes:
    made = Batch([Record(b"k", b"%d" % one, offset=one, timestamp=1) for one in offsets], attributes=compression)
    made.base_offset, made.last_offset = offsets[0], offsets[-1] if last is None else last
    made.base_timestamp = made.max_timestamp = 1
    return encode_batch(made)


def found(connection: Connection, **options: Any) -> list[Row]:
    return read(pcap(connection.packets), "records", columns=COLUMNS, **options)


def counted(connection: Connection, **options: Any) -> list[int | None]:
    rows = read(pcap(connection.packets), "partitions", **options)
    return [row["records"] for row in rows if row["api_name"] == "ShareFetch" and row["direction"] == "response"]


@pytest.fixture(params=[PYTHON, MACHINE], ids=repr)
def engine(request: pytest.FixtureRequest) -> Any:
    with using(request.param):
        yield request.param


def test_only_what_a_member_got_is_ok(engine: Engine) -> None:
    told = [json.loads(line) for line in SHARE.with_suffix(".told.jsonl").read_text().splitlines()]
    places = [(one["topic"], one["partition"], one["offset"]) for one in told if one["direction"] == "fetch"]
    for window in (None, 700):
        rows = read(SHARE.read_bytes(), "records", columns=[*COLUMNS, "source"], window=window)
        fetched = [row for row in rows if row["source"] == "fetch"]
        got = [row for row in fetched if row["status"] == "ok"]
        assert Counter((row["topic"], row["partition"], row["offset"]) for row in got) == Counter(places)
        seen: Counter[Any] = Counter()
        for row in got:
            place = (row["topic"], row["partition"], row["offset"])
            seen[place] += 1
            assert row["delivery_count"] == seen[place]
        others = [row for row in fetched if row not in got]
        assert {(row["status"], row["delivery_count"]) for row in others} == {(NOT, None)}
        assert all("did not acquire" in row["error"] for row in others)
        assert {row["delivery_count"] for row in rows if row["source"] == "produce"} <= {None}


def test_sums_are_of_what_was_acquired(engine: Engine) -> None:
    told = [json.loads(line) for line in SHARE.with_suffix(".told.jsonl").read_text().splitlines()]
    wanted = Counter(one["topic"] for one in told if one["direction"] == "fetch")
    lineage, overview, spans = Lineage(), Overview(), Spans()
    with SHARE.open("rb") as file:
        for name, one in capture.read(file, tables=list(TABLES), columns=TABLES):
            lineage.add(name, one)
    read_ = Counter({one.topic: one.records for one in lineage.result() if one.role == "reads"})
    assert read_ == wanted
    with SHARE.open("rb") as file:
        for name, one in capture.read(file, tables=list(OF_OVERVIEW), columns=OF_OVERVIEW):
            overview.add(name, one)
    overview.finish()
    assert overview.totals["read_records"] == wanted.total()
    rows = read(SHARE.read_bytes(), "records", columns=["status", "source"])
    assert overview.totals["records"] == sum(row["status"] == "ok" for row in rows)
    # How full batches are, nobody knows who sees a part of them.
    assert not [way for way, _ in overview.fills if way == "read"]
    exchanges = []
    with SHARE.open("rb") as file:
        for name, one in capture.read(file, tables=list(OF_SPANS), columns=OF_SPANS):
            exchanges += spans.add(name, one)
    assert sum(one.records for one in exchanges if one.request.api_name == "ShareFetch") == wanted.total()


def test_every_record_and_every_batch_stays_a_row(engine: Engine) -> None:
    one = batch(range(10)) + batch(range(10, 15))
    connection = captured(answer(2, [(one, [(2, 3, 1), (9, 11, 4)]), (one, []), (b"", [])]))
    rows = found(connection)
    acquired = {(0, 2): 1, (0, 3): 1, (0, 9): 4, (0, 10): 4, (0, 11): 4}
    assert len(rows) == 30
    for row in rows:
        count = acquired.get((row["partition"], row["offset"]))
        assert (row["delivery_count"], row["status"]) == (count, "ok" if count else NOT)
    assert counted(connection) == [5, 0, 0]
    batches = read(pcap(connection.packets), "batches")
    assert [(row["count"], row["status"]) for row in batches] == [(10, "ok"), (5, "ok")] * 2


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("version", [0, 1, 2])
def test_any_ranges_of_any_batches(engine: Engine, version: int) -> None:
    chance = random.Random(version)
    for _ in range(20):
        sets: list[Set] = []
        expected: list[tuple[int, int, int | None]] = []
        least, most = [], []
        for partition in range(chance.randrange(1, 4)):
            data, offset, low, high = b"", chance.randrange(100), 0, 0
            ranges: list[Range] = []
            at = max(0, offset - 5)
            for _ in range(chance.randrange(6)):
                first = at + chance.randrange(4)
                at = first + chance.randrange(6) + 1
                ranges.append((first, at - 1, chance.randrange(5)))
            of = {one: count for first, last, count in ranges for one in range(first, last + 1)}
            for _ in range(chance.randrange(1, 4)):
                # Of some, compaction has removed records.
                span = range(offset, offset + chance.randrange(1, 12))
                kept = sorted(chance.sample(span, chance.randrange(1, len(span) + 1)))
                data += batch([span[0], *kept[1:]], span[-1], compression=chance.choice([0, 4]))
                expected += [(partition, one, of.get(one)) for one in (span[0], *kept[1:])]
                there = sum(one in of for one in (span[0], *kept[1:]))
                low, high = low + there, high + (there if len(kept) == len(span) else len(kept))
                offset = span[-1] + 1 + chance.randrange(3)
            sets.append((data, ranges))
            least.append(low)
            most.append(high)
        connection = captured(answer(2, sets, version), version=version)
        rows = found(connection)
        assert [(row["partition"], row["offset"], row["delivery_count"]) for row in rows] == expected
        assert [row["status"] for row in rows] == ["ok" if count is not None else NOT for *_, count in expected]
        for low, count, high in zip(least, counted(connection), most, strict=True):
            assert count is not None
            assert low <= count <= high


STRANGE: dict[str, Sequence[Range]] = {
    "overlap": [(0, 3, 1), (3, 5, 1)],
    "another order": [(5, 6, 1), (0, 3, 1)],
    "last before first": [(3, 0, 1)],
    "negative": [(-5, 3, 1)],
}


@pytest.mark.parametrize("name", STRANGE)
def test_of_ranges_that_make_no_sense_nothing_is_said(engine: Engine, name: str) -> None:
    connection = captured(answer(2, [(batch(range(10)), STRANGE[name]), (batch(range(4)), [(1, 2, -7)])]))
    rows = found(connection)
    assert {(row["status"], row["delivery_count"]) for row in rows[:10]} == {("ok", None)}
    assert [(row["status"], row["delivery_count"]) for row in rows[10:]] == [
        (NOT, None), ("ok", None), ("ok", None), (NOT, None),
    ]  # fmt: skip
    assert counted(connection) == [None, 2]


def test_the_largest_numbers_do_no_harm(engine: Engine) -> None:
    largest = (1 << 63) - 1
    data = struct.pack(">q", largest - 3) + batch(range(8))[8:]
    connection = captured(answer(2, [(data, [(0, largest, 1)]), (batch(range(3)), [(0, largest, 2)])]))
    assert [row["delivery_count"] for row in found(connection) if row["partition"] == 1] == [2] * 3
    assert counted(connection)[1] == 3


def test_what_was_acquired_is_not_known_where_the_frame_ends_before(engine: Engine) -> None:
    data = batch(range(4))
    whole = answer(2, [(data, [(1, 1, 1)]), (data, [(1, 2, 1)])])
    begin = whole.rindex(data) + len(data)
    for end in range(begin, len(whole)):
        connection = exchange().send(
            kwire.encode_request(messages.ShareFetchRequest(), api_version=1, correlation_id=2, client_id="c")
        )
        rows = found(connection.answer_raw(struct.pack(">i", len(whole)) + whole[:end]))
        of = [(row["status"], row["delivery_count"]) for row in rows]
        assert of[:4] == [(NOT, None), ("ok", 1), (NOT, None), (NOT, None)]
        # The array of the second set is whole behind its 19 bytes and its count.
        assert of[4:8] == (
            [(NOT, None), ("ok", 1), ("ok", 1), (NOT, None)] if end >= begin + 20 else [("ok", None)] * 4
        )
        assert of[8:] == [("unreadable", None)]


def test_a_checksum_that_is_wrong_is_said_first(engine: Engine) -> None:
    data = bytearray(batch(range(2)))
    data[17] ^= 1
    rows = found(captured(answer(2, [(bytes(data), [(0, 0, 1)])])))
    assert [(row["status"], row["delivery_count"]) for row in rows] == [("corrupt", 1), ("corrupt", None)]


def test_the_count_of_deliveries_is_a_column_by_name() -> None:
    assert records.DELIVERY.name not in records.SCHEMA.names
    connection = captured(answer(2, [(batch(range(2)), [(0, 0, 3)])]))
    for names in (["delivery_count"], ["status"], ["value", "status"], ["delivery_count", "key"]):
        rows = read(pcap(connection.packets), "records", columns=names)
        assert [row.get("delivery_count", 3) for row in rows] == [3, None if "delivery_count" in names else 3]
        assert [row.get("status", "ok") for row in rows] == ["ok", NOT if "status" in names else "ok"]
    fetched = exchange().send(
        kwire.encode_request(messages.FetchRequest(), api_version=4, correlation_id=2, client_id="c")
    )
    body = {"responses": [{"topic": "t", "partitions": [{"records": encode([Record(b"k", b"v")])}]}]}
    fetched.answer(kwire.encode_response(messages.FetchResponse.from_dict(body), api_version=4, correlation_id=2))
    (row,) = found(fetched)
    assert (row["status"], row["delivery_count"]) == ("ok", None)


def test_rows_do_not_depend_on_the_window() -> None:
    sets = [(batch(range(n, n + 9)), [(n + 1, n + 4, 2)]) for n in range(0, 50, 9)]
    connection = captured(*(answer(number, sets) for number in range(2, 9)))
    whole = found(connection)
    assert {row["status"] for row in whole} == {"ok", NOT}
    for window in (100, 999, 5000):
        assert found(connection, window=window) == whole
    stream = io.BytesIO(pcap(connection.packets))
    assert sum(one.num_rows for one in capture.read(stream, "records", columns=COLUMNS)) == len(whole)
