"""The column ``committed_offset`` of ``records`` and ``batches``: what responses say of records that were produced."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
import record_sets
from made_captures import Row, exchange, read
from packets import Connection, metadata, metadata_answer, pcap
from split_captures import rows_of

import kwire
from kwire import capture, messages
from kwire.capture.parts import Part
from kwire.records import Codec, Record, encode
from kwire.records.batching import MOST_BYTES
from kwire.tables import committed, table
from kwire.tables.reading import read as read_tables
from kwire.testing import packets

COLUMNS = {name: [*table(name).schema.names, "committed_offset"] for name in ("records", "batches")}
Answer = tuple[str | bytes, int, int, int]
"""Topic, partition, error code, base offset."""


def of_topic(topic: str | bytes) -> dict[str, Any]:
    return {"name": topic} if isinstance(topic, str) else {"topic_id": UUID(bytes=topic)}


def asks(number: int, *sets: tuple[str | bytes, int, bytes], acks: int = -1, version: int = 9) -> bytes:
    topics = [{**of_topic(one), "partition_data": [{"index": k, "records": data}]} for one, k, data in sets]
    body = messages.ProduceRequest.from_dict({"acks": acks, "timeout_ms": 1000, "topic_data": topics})
    return kwire.encode_request(body, api_version=version, correlation_id=number, client_id="c")


def answers(number: int, *said: Answer, version: int = 9) -> bytes:
    topics = [
        {**of_topic(one), "partition_responses": [{"index": k, "error_code": code, "base_offset": base}]}
        for one, k, code, base in said
    ]
    body = messages.ProduceResponse.from_dict({"responses": topics})
    return kwire.encode_response(body, api_version=version, correlation_id=number)


def batch(count: int = 1, compression: Codec = "none", magic: int = 2) -> bytes:
    return encode([Record(b"k", b"%d" % k) for k in range(count)], compression=compression, magic=magic)


def written(*connections: Connection) -> bytes:
    return pcap(sorted((one for each in connections for one in each.packets), key=lambda one: one.time))


def offsets(data: bytes, name: str = "records", **options: Any) -> list[tuple[int, Any]]:
    """Frame and offset of each row, in order of frames."""
    found = read(data, name, columns=["frame", "committed_offset"], **options)
    return sorted(
        ((row["frame"], row["committed_offset"]) for row in found), key=lambda one: (one[0], one[1] is None, one[1])
    )


def test_the_offset_is_that_of_the_response_and_what_stands_before_in_the_batch() -> None:
    talk = Connection().open().send(asks(1, ("t", 3, batch(3)))).answer(answers(1, ("t", 3, 0, 100)))
    assert offsets(written(talk)) == [(0, 100), (0, 101), (0, 102)]
    assert offsets(written(talk), "batches") == [(0, 100)]


def test_the_column_is_there_by_name_only_and_changes_no_other() -> None:
    talk = Connection().open().send(asks(1, ("t", 3, batch(3))), asks(2, ("t", 3, batch(3))))
    data = written(exchange(talk.answer(answers(1, ("t", 3, 0, 100)))))
    for name, columns in COLUMNS.items():
        plain, more = read(data, name), read(data, name, columns=columns)
        assert "committed_offset" not in plain[0]
        assert [one | {"committed_offset": None} for one in plain] == [one | {"committed_offset": None} for one in more]


def test_the_column_changes_no_sentence() -> None:
    """Of a frame that ends between the fields that are found for it."""
    whole = asks(1, ("t", 3, batch()))
    sentences = set()
    for size in range(10, len(whole), 3):
        talk = Connection().open().send_raw(len(whole).to_bytes(4, "big") + whole[:size])
        for name, columns in COLUMNS.items():
            said = {row["error"] for row in read(written(talk), name, columns=columns)}
            assert said == {row["error"] for row in read(written(talk), name)}
            sentences |= said
    assert any("$.timeout_ms at byte" in str(one) for one in sentences)


def test_what_is_not_known_is_null() -> None:
    talk = Connection().open()
    talk.send(asks(1, ("t", 0, batch()))).answer(answers(1, ("t", 0, 6, 7)))  # an error
    talk.send(asks(2, ("t", 0, batch()))).answer(answers(2, ("t", 0, 0, -1)))
    talk.send(asks(3, ("t", 0, batch()), ("u", 0, batch()))).answer(answers(3, ("u", 0, 0, 5)))  # of one of two
    talk.send(asks(4, ("t", 0, batch())), metadata(5)).answer(metadata_answer(5))  # no response
    talk.send(asks(6, ("t", 0, batch()), acks=0))
    found = read(written(talk), "records", columns=["topic", "committed_offset"])
    assert sorted((one["topic"], one["committed_offset"]) for one in found if one["committed_offset"] is not None) == [
        ("u", 5)
    ]
    assert len(found) == 6


def test_fetched_records_have_none() -> None:
    topics = [{"topic": "t", "partitions": [{"partition_index": 0, "records": batch()}]}]
    asked = messages.FetchRequest.from_dict({"replica_id": -1, "max_wait_ms": 0, "min_bytes": 0, "topics": []})
    answered = messages.FetchResponse.from_dict({"responses": topics})
    talk = Connection().open()
    talk.send(kwire.encode_request(asked, api_version=4, correlation_id=1, client_id="c"))
    talk.answer(kwire.encode_response(answered, api_version=4, correlation_id=1))
    assert offsets(written(talk)) == [(1, None)]


@pytest.mark.parametrize("version", [2, 9, 13])
def test_topics_are_found_by_name_or_by_id_whatever_their_order(version: int) -> None:
    one, other = (b"1" * 16, b"2" * 16) if version == 13 else ("one", "other")
    sets = [(topic, k, batch(magic=1 if version == 2 else 2)) for topic in (one, other) for k in (0, 1)]
    said: list[Answer] = [(topic, k, 0, 10 * n) for n, (topic, k, _) in enumerate(sets)]
    talk = Connection().open().send(asks(1, *sets, version=version))
    talk.answer(answers(1, *reversed(said), version=version))
    found = read(written(talk), "records", columns=["topic", "topic_id", "partition", "committed_offset"])
    assert [row["committed_offset"] for row in found] == [0, 10, 20, 30]


def test_correlation_ids_may_repeat() -> None:
    talk = Connection().open()
    for k in range(5):
        talk.send(asks(1, ("t", 0, batch()))).answer(answers(1, ("t", 0, 0, k)))
    # Two that wait at once, and were captured in one packet.
    talk.send(asks(1, ("t", 0, batch())), asks(2, ("t", 0, batch())))
    talk.answer(answers(1, ("t", 0, 0, 7)), answers(2, ("t", 0, 0, 8)))
    assert [offset for _, offset in offsets(written(talk))] == [0, 1, 2, 3, 4, 7, 8]


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_messages_of_old_formats_are_counted(codec: Codec) -> None:
    """Brokers number the messages of a set, whatever the producer wrote; a set may have several wrappers."""
    some = [batch(3, codec if codec != "zstd" else "none", magic=1), batch(2, magic=1), batch(2, magic=0)]
    talk = Connection().open().send(asks(1, ("t", 0, b"".join(some)), version=2))
    talk.answer(answers(1, ("t", 0, 0, 50), version=2))
    assert [offset for _, offset in offsets(written(talk))] == list(range(50, 57))
    first = [50, 53, 54, 55, 56] if codec == "gzip" else list(range(50, 57))
    assert [offset for _, offset in offsets(written(talk), "batches")] == first


def test_messages_are_counted_over_all_that_is_read_of_a_set() -> None:
    """A set is read in pieces where it becomes large."""
    some = [encode([Record(None, bytes(MOST_BYTES // 2))] * 2, compression="gzip", magic=1) for _ in range(3)]
    talk = Connection(mss=60_000).open().send(asks(1, ("t", 0, b"".join(some)), version=2))
    talk.answer(answers(1, ("t", 0, 0, 50), version=2))
    made = list(capture.read(io.BytesIO(written(talk)), "records", columns=["value", "committed_offset"]))
    assert len(made) > 1
    assert [row for one in made for row in one.column("committed_offset").to_pylist()] == list(range(50, 56))


def test_messages_behind_what_cannot_be_read_are_not_counted() -> None:
    good = record_sets.message()
    broken = record_sets.message(value=b"no gzip", attributes=record_sets.GZIP)
    talk = Connection().open().send(asks(1, ("t", 0, good + good + broken + good), version=2))
    talk.answer(answers(1, ("t", 0, 0, 50), version=2))
    for name in COLUMNS:
        found = read(written(talk), name, columns=["committed_offset", "status"])
        whole = [row["committed_offset"] for row in found if row["status"] == "ok"]
        assert whole == [50, 51, None]


def test_a_batch_behind_another_has_none() -> None:
    """Brokers refuse such sets; where one does not, nobody knows how it counted."""
    talk = Connection().open().send(asks(1, ("t", 0, batch(2) + batch(2)))).answer(answers(1, ("t", 0, 0, 50)))
    assert [offset for _, offset in offsets(written(talk))] == [50, 51, None, None]
    assert [offset for _, offset in offsets(written(talk), "batches")] == [50, None]


def pipelined() -> bytes:
    """Several connections, requests that are answered much later, one that is not, another that ends before."""
    some = []
    for port in range(40_000, 40_006):
        talk = Connection(client=("10.0.0.1", port), mss=100, step=1_000_000).open()
        number = 0
        for round_ in range(6):
            numbers = list(range(number, number + round_ + 1))
            number = numbers[-1] + 1
            talk.send(*(asks(k, ("t", port % 4, batch(k % 3 + 1))) for k in numbers))
            left = [k for k in numbers if k % 5]
            talk.answer(*(answers(k, ("t", port % 4, 0, 1000 * k)) for k in left))
        if port % 2:
            talk.send(asks(number, ("t", 0, batch(2)))).close()
        some.append(talk)
    return written(*some)


@pytest.mark.wide(keep=3)
@pytest.mark.parametrize("name", list(COLUMNS))
@pytest.mark.parametrize("window", [150, 1000, 5000])
def test_rows_do_not_depend_on_windows(name: str, window: int) -> None:
    data = pipelined()
    whole = read(data, name, columns=COLUMNS[name])
    given = [row["committed_offset"] for row in whole]
    assert None in given
    assert sum(one is not None for one in given) > len(given) / 2
    # Their order does: a row waits for its response, or not where both are in one window.
    assert sorted(map(repr, read(data, name, columns=COLUMNS[name], window=window))) == sorted(map(repr, whole))


@pytest.mark.parametrize("window", [None, 400, 150, 60])
@pytest.mark.parametrize(
    ("answered", "wanted"),
    [
        ((1, 2, 3), [100, 200, 300]),
        ((2, 1, 3), [None, 200, 300]),
        ((2, 3, 1), [None, 200, 300]),
        ((1, 3, 2), [100, None, 300]),
        ((3, 1, 2), [None, None, 300]),
        ((2, 1), [None, 200, None]),
    ],
)
def test_a_response_out_of_turn_says_nothing_in_any_window(
    answered: tuple[int, ...], wanted: list[int | None], window: int | None
) -> None:
    talk = Connection(mss=100, step=1_000_000).open().send(*(asks(k, ("t", 0, batch())) for k in (1, 2, 3)))
    talk.answer(*(answers(k, ("t", 0, 0, 100 * k)) for k in answered)).close()
    data = written(talk)
    for name in COLUMNS:
        assert [offset for _, offset in offsets(data, name, window=window)] == wanted
    for places in ([7], [8], [9], [7, 8], [8, 9]):
        found = rows_of(cut(data, places), "records", ["frame", "committed_offset"])
        assert [offset for _, offset in sorted(tuple(row.values()) for row in found)] == wanted


def test_windows_of_many_responses_out_of_turn_are_not_cut_at_each(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Connection(mss=60_000).open().send(*(asks(k, ("t", 0, batch())) for k in range(20)))
    data = written(talk.answer(*(answers(k, ("t", 0, 0, k)) for k in reversed(range(20)))))
    assert offsets(data) == [(k, None) for k in range(19)] + [(19, 19)]
    monkeypatch.setattr(committed, "MOST_TURNS", 0)
    assert offsets(data) == [(k, k) for k in range(20)]


NOTHING_TO_WAIT_FOR = {
    "a later request is answered": (
        [asks(1, ("t", 0, batch())), asks(2, ("t", 0, batch()))],
        [answers(2, ("t", 0, 0, 9))],
        [None, 9],
    ),
    "acks are 0": ([asks(1, ("t", 0, batch()), acks=0)], [], [None]),
    "an offset that is none": ([asks(1, ("t", 0, batch()))], [answers(1, ("t", 0, 0, -2))], [None]),
    "nothing is said of the partition": ([asks(1, ("t", 0, batch()))], [answers(1, ("u", 0, 0, 5))], [None]),
}


@pytest.mark.parametrize("name", list(NOTHING_TO_WAIT_FOR))
def test_rows_wait_no_longer_than_something_is_to_come(name: str) -> None:
    sent, answered, expected = NOTHING_TO_WAIT_FOR[name]
    talk = Connection().open().send(*sent)
    if answered:
        talk.answer(*answered)
    before = len(talk.packets)
    talk.time += 1_000_000_000
    exchange(talk, 30)
    source = Counted(pcap(talk.packets))
    rows = []
    for one in capture.read(source, "records", columns=["frame", "committed_offset"], window=200):
        rows += one.to_pylist()
        given_at = source.count
    assert rows == [{"frame": k, "committed_offset": offset} for k, offset in enumerate(expected)]
    assert given_at < len(pcap(talk.packets[: before + 10]))


class Counted(io.BytesIO):
    """Says how many bytes were read."""

    count = 0

    def readinto(self, room: Any) -> int:
        got = super().readinto(room)
        self.count += got
        return got

    def read(self, size: int | None = -1) -> bytes:
        got = super().read(size)
        self.count += len(got)
        return got


def test_rows_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture of one direction: nothing is answered, and nothing is kept but what the bound allows."""
    talk = Connection().open()
    for k in range(300):
        talk.send(asks(k, ("t", 0, encode([Record(None, bytes(1000))]))))
    data = pcap([one for one in talk.packets if one.src[1] != 9092])
    monkeypatch.setattr(committed, "MOST_HELD", 20_000)
    most = 0
    put = committed.Committed.put

    def watched(self: Any, rows: Any) -> Any:
        nonlocal most
        yield from put(self, rows)
        most = max(most, self._size + self._sets.nbytes)

    monkeypatch.setattr(committed.Committed, "put", watched)
    assert offsets(data, window=4000) == [(k, None) for k in range(300)]
    assert 10_000 < most <= 20_000


def test_many_batches_that_wait_become_one() -> None:
    """Each window adds some rows: looking through all of what waits each time would be quadratic."""
    talks = []
    for k in range(100):
        talks.append(Connection(client=("10.0.0.2", 30_000 + k), time=10**18 + k * 10**9).open())
        talks[-1].send(asks(k, ("t", 0, batch())))
    data = written(*talks)
    held = []
    given = committed.Committed._given

    def watched(self: Any) -> Any:
        yield from given(self)
        held.append(len(self._held))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(committed.Committed, "_given", watched)
        assert len(offsets(data, window=200)) == 100
    assert 1 < max(held) <= committed.MOST_BATCHES


def test_keys_that_look_alike_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What sorts them may be the same for two of them, for whoever knows how it is made."""
    whole = offsets(pipelined())
    monkeypatch.setattr(committed, "_FACTORS", committed._FACTORS * 0)
    assert offsets(pipelined()) == whole


def test_filters_leave_the_answers() -> None:
    data = pipelined()
    whole = read(data, "records", columns=COLUMNS["records"])
    for filter_, kept in (
        ({"topics": ["t"]}, len(whole)),
        ({"topics": ["other"]}, 0),
        ({"status": ["ok"]}, len(whole)),
        ({"apis": ["Produce"]}, len(whole)),
    ):
        found = read(data, "records", columns=COLUMNS["records"], **filter_)
        assert sorted(map(repr, found)) == (sorted(map(repr, whole)) if kept else [])


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    every = packets.read(data)
    return [packets.write_pcap(every[a:b], nano=True) for a, b in itertools.pairwise([0, *places, len(every)])]


def taken(batches: Iterable[Any], rows: list[Row]) -> None:
    for one in batches:
        rows += one.to_pylist()


def numberless(rows: Sequence[Row]) -> list[str]:
    return sorted(repr({**row, "frame": 0, "connection": 0, "capture": 0}) for row in rows)


@pytest.mark.parametrize("name", list(COLUMNS))
def test_captures_that_are_read_in_order_answer_those_before(name: str) -> None:
    data = pipelined()
    files = cut(data, range(5, len(packets.read(data)), 9))
    found = capture.read([io.BytesIO(one) for one in files], name, columns=COLUMNS[name])
    rows = [row for one in found for row in one.to_pylist()]
    assert numberless(rows) == numberless(read(data, name, columns=COLUMNS[name]))


def test_a_damaged_last_capture_loses_no_rows() -> None:
    files = [*cut(pipelined(), [100]), b"no capture at all"]
    whole = read(pipelined(), "records", columns=COLUMNS["records"])
    rows: list[Row] = []
    with pytest.raises(kwire.CaptureError):
        taken(capture.read([io.BytesIO(one) for one in files], "records", columns=COLUMNS["records"]), rows)
    assert numberless(rows) == numberless(whole)


class Failing(io.BytesIO):
    """A file system that fails in the middle."""

    def readinto(self, room: Any) -> int:
        return super().readinto(room) or self._fail()

    def read(self, size: int | None = -1) -> bytes:
        return super().read(size) or self._fail()

    def _fail(self) -> Any:
        raise OSError("the connection was reset")


def test_rows_that_wait_are_given_where_reading_fails() -> None:
    talk = Connection().open().send(asks(1, ("t", 0, batch()))).answer(answers(1, ("t", 0, 0, 4)))
    exchange(talk.send(asks(2, ("t", 0, batch()))), 1)
    rows: list[Row] = []
    with pytest.raises(kwire.CaptureError, match="was reset"):
        taken(capture.read(Failing(pcap(talk.packets)), "records", columns=["committed_offset"], window=300), rows)
    assert [row["committed_offset"] for row in rows] == [4, None]


def test_a_part_is_told_what_later_parts_answer() -> None:
    talk = Connection().open().send(asks(7, ("t", 2, batch(2)))).send(asks(8, (b"1" * 16, 0, batch()), version=13))
    data = pcap(talk.packets)
    times = {row["correlation_id"]: row["timestamp"].timestamp() for row in read(data, "frames")}
    said = [(7, b"t", False, 2, 100), (8, b"1" * 16, True, 0, 5), (9, b"t", False, 2, 3)]
    rows = [
        {
            "connection": 0,
            "id": number,
            "asked": round(times.get(number, 0) * 1_000_000) * 1000,
            "topic": topic,
            "by_id": by_id,
            "partition": partition,
            "base": base,
        }
        for number, topic, by_id, partition, base in said
    ]
    answers_ = committed.ANSWERS.empty_table().from_pylist(rows, committed.ANSWERS)
    part = Part(answers=answers_)
    found = read_tables(io.BytesIO(data), {"records": ["committed_offset"]}, part=part)
    assert [row["committed_offset"] for _, one in found for row in one.to_pylist()] == [100, 101, 5]


@pytest.mark.parametrize("window", [None, 150, 60])
def test_what_a_later_part_answers_comes_later(window: int | None) -> None:
    """The first request is answered in this part, windows behind the second one, which a later part answers."""
    talk = Connection(mss=100).open().send(asks(7, ("t", 0, batch())), asks(8, ("t", 0, batch()))).send(asks(9))
    data = pcap(talk.answer(answers(7, ("t", 0, 0, 70))).packets)
    asked = {row["correlation_id"]: row["timestamp"].timestamp() for row in read(data, "frames")}[8]
    said = {"connection": 0, "id": 8, "asked": round(asked * 1_000_000) * 1000, "topic": b"t", "by_id": False}
    told = pa.Table.from_pylist([{**said, "partition": 0, "base": 80}], committed.ANSWERS)
    columns = {"records": ["frame", "committed_offset"]}
    found = read_tables(io.BytesIO(data), columns, part=Part(answers=told), window=window)
    rows = [tuple(row.values()) for _, one in found for row in one.to_pylist()]
    assert sorted(rows) == [(0, 70), (1, 80)]
