"""``read_committed=True`` of captures gives what Kafka's consumer hands on of each Fetch response."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from made_captures import exchange, read
from packets import Connection, pcap, produce, produce_answer
from transactions import PLAIN, Entry, consumed, drawn, listed, log_of, stable

import kwire
from kwire import messages, tables
from kwire.kernels.engine import MACHINE, PYTHON, Engine, using
from kwire.records import columnar
from kwire.records.batching import batch_ranges

GOLDEN = Path(__file__).parents[2] / "golden"
Lists = Sequence[tuple[int, int]] | None
COLUMNS = ["frame", "partition", "offset", "status"]


def answer(number: int, sets: Sequence[tuple[Sequence[Entry], Lists]], version: int) -> bytes:
    """A Fetch response with record sets and the aborted transactions of each, as partitions 0, 1, ..."""
    parts = []
    for partition, (entries, aborted) in enumerate(sets):
        part: dict[str, Any] = {
            "partition_index": partition,
            "records": b"".join(one.encoded() for one in entries),
        }
        if version >= 4:
            names = ("producer_id", "first_offset")
            part["aborted_transactions"] = (
                None if aborted is None else [dict(zip(names, one, strict=True)) for one in aborted]
            )
        parts.append(part)
    topic = {"topic_id": uuid.UUID(int=7)} if version >= 13 else {"topic": "t"}
    body = messages.FetchResponse.from_dict({"responses": [topic | {"partitions": parts}]})
    return kwire.encode_response(body, api_version=version, correlation_id=number)


def captured(*answers: bytes, version: int) -> bytes:
    connection = exchange()
    for number, one in enumerate(answers, 2):
        asked = kwire.encode_request(messages.FetchRequest(), api_version=version, correlation_id=number, client_id="c")
        connection.send(asked).answer(one)
    return pcap(connection.packets)


def offsets(data: bytes, notes: list[str] | None = None, **options: Any) -> list[tuple[int, int]]:
    on_note = None if notes is None else notes.append
    found = read(data, "records", read_committed=True, on_note=on_note, **{"columns": COLUMNS, **options})
    assert {row["status"] for row in found} <= {"ok"}
    return [(row["partition"], row["offset"]) for row in found]


@pytest.fixture(params=[PYTHON, MACHINE], ids=repr)
def engine(request: pytest.FixtureRequest) -> Any:
    with using(request.param):
        yield request.param


@pytest.mark.parametrize("version", [4, 11, 12, 17])
def test_each_response_gives_what_a_consumer_hands_on(engine: Engine, version: int) -> None:
    some = random.Random(version)
    answers, expected = [], []
    for number in range(2, 8):
        sets: list[tuple[Sequence[Entry], Lists]] = []
        for partition in range(3):
            entries = drawn(number * 10 + partition)
            below = [one for one in entries if one.last < stable(entries)]
            begin = some.randint(0, len(below) - 1)
            fetched = below[begin : some.randint(begin, len(below))]
            sets.append((fetched, listed(entries, fetched)))
            expected += [(partition, one) for one in consumed(fetched, sets[-1][1] or ())]
        answers.append(answer(number, sets, version))
    notes: list[str] = []
    assert offsets(captured(*answers, version=version), notes) == expected
    assert notes == []


def test_without_a_list_all_rows_stay_and_a_note_counts_the_transactional_ones() -> None:
    entries = log_of((7, "data", 3), (7, "abort"), (PLAIN, "data", 2))
    data = captured(answer(2, [(entries, None)], 12), version=12)
    notes: list[str] = []
    assert offsets(data, notes) == [(0, one) for one in range(6)]
    assert notes == [
        "3 transactional records are in responses without a list of aborted transactions: the client reads "
        "uncommitted ones too, so they are all rows"
    ]
    # An empty list is one: nothing was aborted. Markers are left out then.
    assert offsets(captured(answer(2, [(entries, [])], 12), version=12)) == [(0, 0), (0, 1), (0, 2), (0, 4), (0, 5)]
    assert offsets(captured(answer(2, [(entries, [])], 4), version=4)) == [(0, 0), (0, 1), (0, 2), (0, 4), (0, 5)]
    # Before version 4 there are no lists.
    assert len(offsets(captured(answer(2, [(entries, None)], 3), version=3))) == 6


def test_records_of_produce_requests_stay_and_a_note_counts_the_transactional_ones() -> None:
    entries = log_of((7, "data", 2))
    connection = Connection().open().send(produce(1, 1, entries[0].encoded())).answer(produce_answer(1))
    notes: list[str] = []
    assert offsets(pcap(connection.packets), notes) == [(0, 0), (0, 1)]
    assert notes == ["2 transactional records are in Produce requests: whether they are committed is decided later"]


def test_lists_with_tagged_fields_are_read(engine: Engine) -> None:
    entries = log_of((7, "data"), (PLAIN, "data"), (8, "data"), (7, "abort"), (8, "abort"))
    whole = answer(2, [(entries, [(7, 0), (8, 2)])], 12)
    entry = (7).to_bytes(8, "big") + bytes(8) + b"\0"
    assert whole.count(entry) == 1
    tagged = whole.replace(entry, entry[:-1] + b"\1\5\2hi")
    assert offsets(captured(tagged, version=12)) == [(0, 1)]


def test_a_list_says_nothing_of_other_partitions_and_frames() -> None:
    entries = log_of((7, "data"), (7, "commit"))
    aborted = log_of((7, "data"), (7, "abort"))
    data = captured(
        answer(2, [(aborted, [(7, 0)]), (entries, []), (aborted, [(7, 0)])], 12),
        answer(3, [(entries, [])], 12),
        version=12,
    )
    assert offsets(data) == [(1, 0), (0, 0)]


def test_a_marker_in_an_earlier_piece_of_a_set_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columnar, "batch_ranges", partial(batch_ranges, most_rows=2))
    entries = log_of((7, "data", 5), (7, "abort"), (7, "data", 5), (7, "commit"))
    data = captured(answer(2, [(entries, [(7, 0)])], 12), version=12)
    assert offsets(data) == [(0, one) for one in range(6, 11)]


def test_rows_do_not_depend_on_columns_and_windows() -> None:
    entries = drawn(3)
    below = [one for one in entries if one.last < stable(entries)]
    data = captured(*(answer(one, [(below, listed(entries, below))], 12) for one in range(2, 6)), version=12)
    expected = offsets(data)
    assert offsets(data, window=1000) == expected
    found = read(data, "records", read_committed=True)
    assert [(row["partition"], row["offset"]) for row in found] == expected
    assert [row["value"] for row in read(data, "records", read_committed=True, columns=["value"])] == [
        row["value"] for row in found
    ]


@pytest.mark.parametrize("name", [one for one in tables.names("capture") if one != "records"])
def test_a_table_of_other_rows_refuses_the_option_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"read_committed is for the tables .* not {name}"):
        read(pcap(exchange().packets), name, read_committed=True)


@pytest.mark.parametrize("broker", ["3.9", "4.3"])
def test_clients_and_followers_of_real_clusters_are_told_apart(broker: str) -> None:
    data = (GOLDEN / f"kafka-{broker}-kraft-brokers" / "quorum.pcap").read_bytes()
    columns = ["frame", "topic", "partition", "offset", "control_type"]
    every = read(data, "records", columns=columns)
    # The brokers replicate only: nothing is left out.
    assert read(data, "records", columns=columns, read_committed=True) == every
    assert {"leader_change", "commit", "abort"} <= {row["control_type"] for row in every}


@pytest.mark.parametrize("file", ["kafka-4.3-kraft-librdkafka/current.pcap", "kafka-4.3-kraft-aiokafka/current.pcapng"])
def test_clients_that_read_committed_got_lists_from_their_broker(file: str) -> None:
    data = (GOLDEN / file).read_bytes()
    columns = ["topic", "partition", "offset", "source", "is_control", "is_transactional"]
    fetched = [row for row in read(data, "records", columns=columns) if row["source"] == "fetch"]
    kept = [row for row in read(data, "records", columns=columns, read_committed=True) if row["source"] == "fetch"]
    gone = [row for row in fetched if row not in kept]
    assert any(row["is_control"] for row in gone)
    assert any(not row["is_control"] for row in gone)
    assert all(row["is_transactional"] for row in gone)
    assert any(row["is_transactional"] for row in kept)


def test_events_are_those_of_records_that_are_left() -> None:
    entries = log_of((7, "data"), (7, "abort"), (PLAIN, "data"))
    data = captured(answer(2, [(entries, [(7, 0)])], 12), version=12)
    assert read(data, "cloudevents", read_committed=True) == []
    notes: list[str] = []
    data = captured(answer(2, [(entries, None)], 12), version=12)
    read(data, "cloudevents", read_committed=True, on_note=notes.append)
    assert len(notes) == 1
