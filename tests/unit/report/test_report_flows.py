"""Transactions and the way of records on a report: the sums are those of the rows."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire import capture
from kwire.report.flows import ENDS, TABLES, Flows
from kwire.report.members import TABLES as OF_MEMBERS
from kwire.report.members import Members
from kwire.report.overview import TABLES as ALL
from kwire.report.overview import of_tables
from kwire.report.page import Source, _rising, render
from kwire.report.sums import Clock
from kwire.report.tallies import rows_of
from kwire.tables.group_events import SCHEMA as GROUP_EVENTS

CAPTURE = Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-java" / "clients.pcap"
GROUPS = Path(__file__).parents[2] / "golden" / "groups" / "java.gz"


@pytest.fixture(scope="module")
def made() -> tuple[Flows, dict[str, list[dict[str, Any]]]]:
    flows, rows = Flows(Clock()), {}
    for name, columns in TABLES.items():
        batches = list(capture.read(CAPTURE, name, columns=list(columns), dictionaries=True))
        for batch in batches:
            for first in range(0, batch.num_rows, 13):
                getattr(flows, name)(rows_of(name, [batch.slice(first, 13)]))
        rows[name] = [row for batch in batches for row in batch.to_pylist()]
    return flows, rows


def test_transactions_are_counted_by_their_ends(made: tuple[Flows, dict[str, list[dict[str, Any]]]]) -> None:
    flows, rows = made
    ((name, (count, *ends)),) = flows.ends.largest(5)
    assert name == "java-id"
    assert count == len(rows["transactions"])
    words = Counter(row["end"] for row in rows["transactions"])
    assert dict(zip(ENDS, ends, strict=True)) == {word: words[word] for word in ENDS}
    assert flows.wrote.sums["java-id"][:2] == [
        sum(row[one] for row in rows["transactions"]) for one in ("records", "record_bytes")
    ]
    assert flows.durations["java-id"].most == max(row["duration_ms"] for row in rows["transactions"])


def test_records_are_counted_by_topic_and_reader(made: tuple[Flows, dict[str, list[dict[str, Any]]]]) -> None:
    flows, rows = made
    got: Counter[tuple[str, str]] = Counter()
    again: Counter[tuple[str, str]] = Counter()
    for row in rows["journeys"]:
        if row["status"] in ("committed", "delivered"):
            key = row["topic"], row["group_id"] or row["client_id"]
            got[key] += row["records"]
            again[key] += row["records"] if row["deliveries"] > 1 else 0
    assert {key: sums[0] for key, sums in flows.ways.sums.items()} == got
    assert {key: sums[1] for key, sums in flows.ways.sums.items()} == again
    known = Counter[tuple[str, str]]()
    for row in rows["journeys"]:
        if row["fetch_ms"] is not None:
            known[row["topic"], row["group_id"] or row["client_id"]] += row["records"]
    assert {key: one.count for key, one in flows.fetched.items()} == known
    nobody = sum(row["records"] for row in rows["journeys"] if row["status"] == "undelivered")
    assert sum(flows.nobody.values()) == nobody
    over_time = sum(count for line in flows.waits.of.values() for (count,) in line.values())
    assert over_time == known.total()


def test_the_page_has_sections_for_both() -> None:
    columns = {name: list(one) for name, one in ALL.items()}
    page = render(of_tables(capture.read(CAPTURE, tables=list(ALL), columns=columns)), [Source("x.pcap")])
    for name in ("transactions", "journeys"):
        assert f'<section id="{name}">' in page
    assert "java-id" in page
    assert "java-classic" in page


def test_members_are_there_from_their_join_to_their_leave() -> None:
    made = Members()
    for batch in capture.read(CAPTURE, "group_events", columns=list(OF_MEMBERS["group_events"])):
        for first in range(0, batch.num_rows, 5):
            made.add(rows_of("group_events", [batch.slice(first, 5)]))
    rebalances, one, other = made.courses("java-classic")
    group = made.groups["java-classic"]
    assert len(rebalances.spans) == 2
    assert [end for _, end in one.spans] == [group.last]
    assert other.name == "second"
    assert other.partitions == 5
    assert group.first is not None
    assert group.first <= one.spans[0][0] < other.spans[0][0] < group.last


def members_of(*events: dict[str, Any]) -> Members:
    """Events of the group ``g``, at ``at`` microseconds."""
    columns = list(OF_MEMBERS["group_events"])
    schema = pa.schema([GROUP_EVENTS.field(name) for name in columns])
    some = [{"group_id": "g", "client_id": "c", "status": "ok", "timestamp": one["at"], **one} for one in events]
    made = Members()
    made.add(rows_of("group_events", [pa.RecordBatch.from_pylist(some, schema)]))
    return made


def test_a_member_may_come_again() -> None:
    made = members_of(
        {"at": 1, "event": "joined", "member_id": "a"},
        {"at": 2, "event": "left", "member_id": "a"},
        {"at": 5, "event": "joined", "member_id": "a", "partitions": 3},
        {"at": 7, "event": "rebalance_began"},
        {"at": 8, "event": "joined", "member_id": "b", "partitions": 1},
    )
    rebalances, a, b = made.courses("g")
    assert (rebalances.spans, a.spans, b.spans) == ([[7, 8]], [[1, 2], [5, 8]], [[8, 8]])
    assert (a.partitions, b.partitions) == (3, 1)


def test_of_a_member_that_has_left_what_it_had_is_shown() -> None:
    made = members_of(
        {"at": 1, "event": "joined", "member_id": "a", "partitions": 6},
        {"at": 2, "event": "assigned", "member_id": "b", "partitions": 2},
        {"at": 3, "event": "left", "member_id": "a", "partitions": 0},
        {"at": 4, "event": "fenced", "member_id": "b", "partitions": 0},
    )
    assert [one.partitions for one in made.courses("g")[1:]] == [6, 2]


def parts(topic: str | None, *numbers: int, topic_id: str | None = None) -> list[dict[str, Any]]:
    return [{"topic": topic, "topic_id": topic_id, "partition": one} for one in numbers]


def test_who_had_which_partitions_when_is_known() -> None:
    made = members_of(
        {"at": 1, "event": "joined", "member_id": "a", "client_host": "h", "client_id": "app"},
        {"at": 2, "event": "assigned", "member_id": "a", "partitions": 3, "gained": parts(None, 0, 1, 2, topic_id="i")},
        {"at": 3, "event": "heartbeat_late", "member_id": "a", "partitions": 3},
        {"at": 4, "event": "revoked", "member_id": "a", "partitions": 2, "lost": parts("orders", 1, topic_id="i")},
        # It is removed by somebody else.
        {"at": 6, "event": "left", "member_id": "a", "client_id": "admin", "partitions": 0,
         "lost": parts("orders", 0, 2, topic_id="i")},
        {"at": 7, "event": "assigned", "member_id": "b", "partitions": 1, "gained": parts("orders", 1)},
        {"at": 9, "event": "rebalance_began"},
    )  # fmt: skip
    _, a, b = made.courses("g")
    held = [[(one.begin, one.end, one.count, made.text(one)) for one in each.held] for each in (a, b)]
    # The name of the topic comes after its id.
    assert held == [[(2, 4, 3, "orders[0-2]"), (4, 6, 2, "orders[0,2]"), (6, 6, 0, "")], [(7, 9, 1, "orders[1]")]]
    assert (a.client_id, a.host) == ("app", "h")


def test_why_a_group_rebalanced_and_who_made_it_is_known() -> None:
    cause = {"cause": "join", "cause_member_id": "b", "cause_frame": 7}
    made = members_of(
        {"at": 1, "event": "rebalance_began", **cause},
        {"at": 2, "event": "joined", "member_id": "b", "client_id": "app", "client_host": "h"},
        {"at": 3, "event": "rebalance_ended", "duration_ms": 1.5, **cause},
        {"at": 4, "event": "rebalance_began", "cause": "leave", "cause_member_id": "gone"},
        {"at": 5, "event": "rebalance_began"},
    )
    (_, one), (_, two) = made.rebalances()
    assert (one.time, one.cause, one.frame, one.took_ms, made.who("g", one.member)) == (1, "join", 7, 1.5, "app on h")
    # The next one began before this one ended.
    assert (two.time, two.cause, two.took_ms, made.who("g", two.member)) == (4, "leave", None, "gone")


def test_what_is_kept_of_members_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.report.members.MOST_SPANS", 2)
    monkeypatch.setattr("kwire.report.members.MOST_PARTITIONS", 3)
    made = members_of(
        *(
            {"at": k, "event": "assigned", "member_id": "a", "partitions": k, "gained": parts("t", k)}
            for k in range(1, 7)
        )
    )
    (a,) = made.courses("g")[1:]
    # The last one ends where a third one would begin.
    assert [(one.begin, one.end, one.count, made.text(one)) for one in a.held] == [
        (1, 2, 1, "t[1]"), (2, 3, 2, "t[1-2]"), (3, 3, 0, "t[1-3]"),
    ]  # fmt: skip
    assert a.has == {"t": {1, 2, 3}}
    assert a.partitions == 6


def test_of_many_topics_the_first_are_said() -> None:
    some = [one for k in range(50) for one in parts(f"t{k}", *range(0, 100, 2 if k else 1))]
    made = members_of(
        {"at": 1, "event": "assigned", "member_id": "a", "partitions": 2550, "gained": some},
        {"at": 2, "event": "revoked", "member_id": "a", "partitions": 100, "lost": some[100:]},
        {"at": 3, "event": "left", "member_id": "a", "lost": some[:100]},
    )
    (a,) = made.courses("g")[1:]
    many, few, none = a.held
    assert (many.count, many.topics, few.count, few.topics, none.topics) == (2550, 50, 100, 1, 0)
    assert made.text(many).startswith("t0[0-99] t1[0,2,4,")
    assert made.text(many).endswith("…] …")
    assert made.text(few) == "t0[0-99]"
    # Of what is given back nothing is remembered.
    assert a.has == {}
    assert made._named == 0


def test_the_page_says_who_had_what_and_who_waited() -> None:
    golden = Path(__file__).parents[2] / "golden"

    def page(name: str) -> str:
        with gzip.open(golden / name) as file:
            columns = {name: list(one) for name, one in ALL.items()}
            return render(of_tables(capture.read(file, tables=list(ALL), columns=columns)), [Source("x.pcap")])

    said = page("groups/java.gz")
    assert "<td>second-consumer on 127.0.0.1</td><td>ZmsakCseSQ6rui9zqVx0yQ</td>" in said
    assert "<title>join of second-consumer on 127.0.0.1, 18:38:43.310 to 18:38:44.388</title>" in said
    assert "<title>3 partitions: orders[3-5], 18:38:44.371 to 18:38:54.981</title>" in said
    assert ">orders[3-5]</text>" in said
    assert "<small>ZmsakCseSQ6rui9zqVx0yQ</small>" in said
    assert "<td>3 times</td>" in said
    assert "reader on 127.0.0.1</td>" in page("transactions/transactions.gz")


def test_epochs_over_time_do_not_fall_when_a_member_joins() -> None:
    assert list(_rising([None, 2, 0, None, 3, 1])) == [None, 2, 2, None, 3, 3]


def test_groups_of_all_protocols_have_joins_and_leaves_and_share_groups_are_readers() -> None:
    columns = {name: list(one) for name, one in ALL.items()}
    over = of_tables(capture.read(GROUPS, tables=list(ALL), columns=columns))
    joined = {group: (joins, leaves) for group, (_, joins, leaves, *_) in over.groups.sums.items()}
    events: Counter[tuple[str, str]] = Counter()
    for batch in capture.read(GROUPS, "group_events", columns=["group_id", "event"]):
        events.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    for group in ("consumer", "share", "streams"):
        assert joined[group] == (events[group, "joined"], events[group, "left"]) == (2, 2)
    page = render(over, [Source("x.pcap")])
    nobody = page.split("Records that nobody got in the capture", 1)[1].split("</table>")[0]
    assert "paid" in nobody
    assert "shared" not in nobody
    assert "Topics that share groups read are left out." in nobody
