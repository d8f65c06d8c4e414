"""Which rows are wanted: every filter gives the rows of the whole table that it describes, and decodes no others."""

from __future__ import annotations

import datetime
import io
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from made_captures import Row, exchange
from made_captures import read as rows_of
from packets import pcap

from kwire import capture, tables
from kwire.kernels.engine import PYTHON, using
from kwire.records import columnar
from kwire.tables import messages as bodies
from kwire.tables.filters import Filter

GOLDEN = Path(__file__).parents[2] / "golden"
CAPTURE = (GOLDEN / "kafka-4.3-kraft-events" / "events.pcap").read_bytes()
TABLES = ("frames", "messages", "partitions", "records", "calls", "cloudevents")
WHOLE: dict[str, list[Row]] = {}


def whole(table: str) -> list[Row]:
    """All rows of the capture."""
    if not WHOLE:
        with using(PYTHON):
            WHOLE.update((name, []) for name in TABLES)
            for name, batch in capture.read(io.BytesIO(CAPTURE), tables=TABLES):
                WHOLE[name] += batch.to_pylist()
    return WHOLE[table]


def chosen(table: str, **filters: Any) -> list[Row]:
    with using(PYTHON):
        return rows_of(CAPTURE, table, **filters)


def of_frames(wanted: Any) -> set[int]:
    """The numbers of the frames that a condition holds for."""
    return {row["frame"] for row in whole("frames") if wanted(row)}


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("table", ["frames", "messages", "partitions", "records"])
def test_by_api_and_by_client(table: str) -> None:
    frames = of_frames(lambda row: row["api_name"] in ("Fetch", "Produce"))
    expected = [row for row in whole(table) if row["frame"] in frames]
    assert 0 < len(expected) < len(whole(table)) or table == "records"
    assert chosen(table, apis=["fetch", 0]) == expected
    client = next(row["client_id"] for row in whole("frames") if row["client_id"])
    frames = of_frames(lambda row: row["client_id"] == client)
    assert chosen(table, client_ids=[client, "nobody"]) == [row for row in whole(table) if row["frame"] in frames]
    assert chosen(table, client_ids=["nobody"]) == []


@pytest.mark.parametrize("table", ["frames", "messages", "partitions", "records"])
def test_by_time(table: str) -> None:
    times = sorted(row["timestamp"] for row in whole("frames"))
    start, end = times[len(times) // 4], times[len(times) // 2]
    frames = of_frames(lambda row: start <= row["timestamp"] < end)
    expected = [row for row in whole(table) if row["frame"] in frames]
    assert chosen(table, start=start, end=end.isoformat()) == expected
    assert len(expected) < len(whole(table))


def test_by_topic() -> None:
    topic = whole("records")[0]["topic"]
    for table in ("records", "partitions"):
        expected = [row for row in whole(table) if row["topic"] == topic]
        assert 0 < len(expected) < len(whole(table))
        assert chosen(table, topics=[topic]) == expected
        # Without the column as well.
        assert chosen(table, topics=[topic], columns=["frame"]) == [{"frame": row["frame"]} for row in expected]
    speaking = {row["frame"] for row in whole("partitions") if row["topic"] == topic}
    for table in ("frames", "messages"):
        assert chosen(table, topics=[topic]) == [row for row in whole(table) if row["frame"] in speaking]


def test_by_status() -> None:
    words = {row["status"] for row in whole("messages")}
    for word in words:
        expected = [row for row in whole("messages") if row["status"] == word]
        assert chosen("messages", status=[word]) == expected
        assert chosen("messages", status=[word], columns=["frame"]) == [{"frame": row["frame"]} for row in expected]


def test_several_filters_are_all_to_hold() -> None:
    found = chosen("partitions", apis=["Fetch"], status=["ok"], topics=[whole("records")[0]["topic"]])
    assert found
    assert all(row["api_name"] == "Fetch" and row["topic"] == whole("records")[0]["topic"] for row in found)


def test_tables_of_one_pass_are_filtered_as_each_alone() -> None:
    found: dict[str, list[Row]] = {name: [] for name in TABLES}
    with using(PYTHON):
        for name, batch in capture.read(io.BytesIO(CAPTURE), tables=TABLES, apis=["Produce", "Fetch"]):
            found[name] += batch.to_pylist()
    assert found["frames"] == chosen("frames", apis=["Produce", "Fetch"])
    assert found["records"] == whole("records")
    assert {row["api_name"] for row in found["calls"]} == {"Produce", "Fetch"}


def afterwards(rows: list[Row], frames: dict[int, Row], spoken: dict[int, set[str]], one: Filter) -> list[Row]:
    """The rows that a filter leaves, chosen when all are there."""

    def wanted(row: Row) -> bool:
        frame = frames[row["frame"]]
        time = int(frame["timestamp"].timestamp() * 1_000_000) * 1000
        topics = {row["topic"]} if "topic" in row else spoken.get(row["frame"], set())
        return (
            (one.apis is None or frame["api_key"] in one.apis)
            and (one.client_ids is None or frame["client_id"] in one.client_ids)
            and (one.start is None or time >= one.start)
            and (one.end is None or time < one.end)
            and (one.topics is None or not one.topics.isdisjoint(topics))
            and (one.status is None or row["status"] in one.status)
        )

    return [row for row in rows if wanted(row)]


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize(
    "file",
    [
        "kafka-4-telemetry/refusals.pcap",
        "kafka-4-telemetry/zstd.pcap",
        "kafka-4.3-kraft-events/events.pcap",
        "tunnels/vxlan/fragments.pcap",
    ],
)
def test_no_filter_changes_a_row_of_any_table(file: str) -> None:
    data = (GOLDEN / file).read_bytes()
    kinds = (tables.CAPTURE, tables.EVENTS)
    known = {name: tables.table(name, kind) for kind in kinds for name in tables.names(kind)}
    names = [name for name, one in known.items() if one.filters and getattr(one, "by_row", None) is None]
    assert "connections" not in names
    assert len(names) > 1

    def read(those: list[str], **filters: Any) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {name: [] for name in those}
        for name, batch in capture.read(io.BytesIO(data), tables=those, window=1 << 14, **filters):
            found[name] += batch.to_pylist()
        return found

    every = read(names)
    frames = {row["frame"]: row for row in every["frames"]}
    spoken: dict[int, set[str]] = {}
    for row in every["partitions"]:
        spoken.setdefault(row["frame"], set()).add(row["topic"])
    times = sorted(row["timestamp"] for row in frames.values())
    clients = sorted({row["client_id"] for row in frames.values()} - {None})
    topics = sorted({row["topic"] for row in every["partitions"]} - {None})
    filters: list[dict[str, Any]] = [
        {"apis": ["PushTelemetry", "Fetch"]},
        {"apis": ["GetTelemetrySubscriptions", "Produce"]},
        {"client_ids": clients[: len(clients) // 2 + 1]},
        {"start": times[len(times) // 2]},
        {"end": times[len(times) * 3 // 4]},
        {"topics": topics[::2] or ["no-such-topic"]},
    ]
    for one in filters:
        found, chosen = read(names, **one), Filter.of(**one)
        for name in names:
            assert found[name] == afterwards(every[name], frames, spoken, chosen), (name, one)
    for name in names:
        for word in {row["status"] for row in every[name]} if known[name].statuses else ():
            one = {"status": [word], "start": times[len(times) // 4]}
            found, chosen = read([name], **one), Filter.of(**one)
            assert found[name] == afterwards(every[name], frames, spoken, chosen), (name, one)


def test_what_is_left_out_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []
    original = bodies._Maker._body
    monkeypatch.setattr(
        bodies._Maker, "_body", lambda maker, *about: (looked_at.append(about[2]), original(maker, *about))[1]
    )
    sets: list[int] = []
    decode = columnar.decode_pieces

    def counted(data: Any, starts: Any, *rest: Any, **options: Any) -> Any:
        sets.append(len(starts))
        return decode(data, starts, *rest, **options)

    monkeypatch.setattr(columnar, "decode_pieces", counted)
    chosen("messages", apis=["Heartbeat"])
    assert set(looked_at) <= {12}
    chosen("records", topics=["no-such-topic"])
    assert sum(sets) == 0


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"apis": ["Produse"]}, "no API 'Produse'"),
        ({"apis": "Produce"}, r"apis are several: a list such as \['Produce'\], not a text"),
        ({"start": "yesterday"}, "no time 'yesterday'"),
        ({"status": ["fine"]}, "no status 'fine' in the table frames: there are ok"),
    ],
)
def test_a_filter_that_makes_no_sense_is_a_value_error(filters: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        rows_of(pcap(exchange().packets), **filters)


def test_tables_that_cannot_be_filtered_say_so() -> None:
    with pytest.raises(ValueError, match="the table connections has no filters"):
        rows_of(pcap(exchange().packets), "connections", apis=["Produce"])
    with pytest.raises(ValueError, match="the table cloudevents has no status"):
        rows_of(pcap(exchange().packets), "cloudevents", status=["ok"])


HISTORIES = {
    "group_events": "kafka-4.3-kraft-java/clients.pcap",
    "share_deliveries": "kafka-4.3-kraft-java/share.pcap",
    "streams_tasks": "kafka-4.3-kraft-java/streams.pcap",
    "transactions": "kafka-4.3-kraft-java/clients.pcap",
    "journeys": "kafka-4.3-kraft-java/clients.pcap",
}


def _topics(row: Row) -> set[str | None]:
    listed = [one for name in ("gained", "lost", "partitions") if isinstance(row.get(name), list) for one in row[name]]
    return {row.get("topic"), *(one["topic"] for one in listed)}


@pytest.mark.parametrize("table", HISTORIES)
def test_rows_of_histories_are_chosen_once_they_are_made(table: str) -> None:
    data = (GOLDEN / HISTORIES[table]).read_bytes()
    whole = rows_of(data, table)
    assert whole

    def time(row: Row) -> datetime.datetime | None:
        return next(
            (row[name] for name in ("timestamp", "fetched", "began", "produced", "ended") if row.get(name)), None
        )

    clients = Counter(row["client_id"] for row in whole if row["client_id"])
    client = clients.most_common()[-1][0]
    mine = [row for row in whole if client in (row["client_id"], row.get("producer_client_id"))]
    assert rows_of(data, table, client_ids=[client]) == mine
    times = sorted(one for one in map(time, whole) if one is not None)
    middle = times[len(times) // 2]
    since = [row for row in whole if (when := time(row)) is not None and when >= middle]
    assert rows_of(data, table, start=middle) == since
    if table == "streams_tasks":
        # Its rows belong to no topic.
        assert not rows_of(data, table, topics=["orders"])
    else:
        topic = next(one for row in whole for one in _topics(row) if one is not None)
        assert rows_of(data, table, topics=[topic]) == [row for row in whole if topic in _topics(row)]
    by_api = [rows_of(data, table, apis=keys) for keys in (range(14), range(14, 70), range(70, 100))]
    assert sum(map(len, by_api)) == len(whole)
    status = whole[0]["status"]
    assert rows_of(data, table, status=[status]) == [row for row in whole if row["status"] == status]
    # Other columns are not shown.
    assert {tuple(row) for row in rows_of(data, table, client_ids=[client], columns=["frame"])} == {("frame",)}


def test_times_are_utc_unless_they_say() -> None:
    utc = datetime.datetime(2026, 11, 22, 10, 30, tzinfo=datetime.UTC)
    asked = [Filter.of(start=one).start for one in (utc, "2026-11-22T10:30", "2026-11-22T11:30+01:00")]
    assert asked == [int(utc.timestamp()) * 10**9] * 3
    again = Filter.of(start=utc, apis=["Produce"], status=["ok"])
    assert Filter.of(**again.arguments()) == again
    assert not Filter.of()
