"""``kwire.history.transactions``: what requests, answers, markers and readers say becomes one row each."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.history import transactions
from kwire.history.transactions import Step, Transactions

SECOND = 1_000_000
Row = dict[str, Any]


class World:
    """One producer, ``t``, and what is said of it. Each exchange has frames of its own."""

    def __init__(self) -> None:
        self.made = Transactions()
        self.rows: list[Row] = []
        self.frame = 0
        self.time = 0
        self.who: dict[str, Any] = {"transactional_id": "t", "producer_id": 5, "producer_epoch": 0}

    def put(self, kind: str, **values: Any) -> None:
        self.frame += 1
        self.time += SECOND
        base: Row = {"connection": 1, "frame": self.frame, "time": self.time, "client_id": "me", "client_host": "h"}
        self.rows += self.made.add(Step(kind=kind, **base | values))

    def ask(self, kind: str, *, error: str = "NONE", answer: dict[str, Any] | None = None, **values: Any) -> None:
        """A request, and its answer."""
        number = self.frame
        self.put(kind, correlation_id=number, **self.who | values)
        place: Row = {name: values[name] for name in ("topic", "partition", "connection", "broker") if name in values}
        self.put(kind, response=True, correlation_id=number, error=error, **place | (answer or {}))

    def init(self, epoch: int = 0, **more: Any) -> None:
        answer: Row = {"producer_id": 5, "producer_epoch": epoch}
        self.ask("init", answer=answer, **{"producer_id": -1, "timeout": 10 * SECOND, **more})
        self.who |= answer

    def write(self, offset: int = 0, records: int = 3, **more: Any) -> None:
        place: Row = {"topic": "a", "partition": 0}
        said: Row = {"records": records, "record_bytes": 10, "version": 9, **place, **more}
        self.ask("produce", answer={"offset": offset}, **said)

    def add(self, **more: Any) -> None:
        self.ask("add", **{"topic": "a", "partition": 0, "version": 3, **more})

    def all(self) -> list[Row]:
        self.rows += self.made.rest()
        return self.rows


def one(world: World) -> Row:
    (row,) = world.all()
    return row


def test_a_transaction_has_what_was_accepted() -> None:
    world = World()
    world.init()
    world.add()
    world.write()
    world.write(3, error="NOT_LEADER_OR_FOLLOWER")
    world.ask("group", group_id="g")
    world.ask("offsets", group_id="g", records=2, version=3)
    world.ask("end", committed=True, version=3)
    row = one(world)
    assert (row["end"], row["status"], row["records"], row["unacknowledged"]) == ("committed", "ok", 3, 0)
    assert row["partitions"] == [
        {"topic": "a", "partition": 0, "first_offset": 0, "records": 3, "record_bytes": 10, "marked": None}
    ]
    assert (row["groups"], row["offsets"], row["protocol"]) == (["g"], 2, "v1")
    assert row["errors"] == ["Produce: NOT_LEADER_OR_FOLLOWER"]
    assert row["events"][0]["event"] == "began"
    assert row["events"][-1]["event"] == "committed"


def test_the_first_offset_of_a_partition_is_the_least_that_is_known() -> None:
    for offsets, first in (((3, 6), 3), ((6, 3), 3), ((-1, 6), 6), ((6, -1), 6), ((6, None), 6), ((None, 6), 6)):
        world = World()
        world.init()
        world.add()
        for offset in offsets:
            world.ask("produce", topic="a", partition=0, records=1, version=9, answer={"offset": offset})
        world.ask("end", committed=True, version=3)
        (found,) = one(world)["partitions"]
        assert (found["first_offset"], found["records"]) == (first, 2)


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize(
    ("kind", "version", "known"),
    [
        *(("add", 3, "always"), ("group", 3, "always"), ("produce", 12, "after"), ("offsets", 5, "after")),
        *(("produce", 11, "never"), ("offsets", 4, "never")),
    ],
)
def test_a_beginning_is_known_by_the_request_that_makes_it(kind: str, version: int, known: str, seen: bool) -> None:
    """Others begin a transaction by themselves from a version on (KIP-890). If nothing was seen of the producer before,
    that may have been in front of the capture."""
    world = World()
    if seen:
        world.init()
    place = {"topic": "a", "partition": 0} if kind in ("add", "produce") else {"group_id": "g"}
    world.ask(kind, version=version, records=1, **place)
    world.ask("end", committed=True, version=5)
    row = one(world)
    assert (row["status"] == "ok") == (known == "always" or (known == "after" and seen))
    assert row["protocol"] == ("v2" if known == "after" else "v1")


def test_who_takes_over_is_named_if_the_coordinator_had_to_abort() -> None:
    for contended, end in ((True, "fenced"), (False, "unknown")):
        world = World()
        world.init()
        world.add()
        if contended:
            world.ask("init", error="CONCURRENT_TRANSACTIONS", producer_id=-1, client_id="other", connection=2)
        world.init(1, client_id="other", connection=2)
        assert one(world)["end"] == end


def test_a_producer_that_begins_anew_aborts() -> None:
    world = World()
    world.init()
    world.add()
    world.ask("init", error="CONCURRENT_TRANSACTIONS")
    world.init(1, producer_id=5)
    row = one(world)
    assert (row["end"], row["cause"]) == ("aborted", "its producer began anew (InitProducerId)")


def test_a_refusal_after_the_time_out_is_one() -> None:
    for seconds, end in ((20, "timed_out"), (1, "fenced")):
        world = World()
        world.init()
        world.add()
        world.time += seconds * SECOND
        world.ask("end", committed=True, version=3, error="PRODUCER_FENCED")
        assert one(world)["end"] == end


def test_missing_packets_leave_the_end_open() -> None:
    world = World()
    world.init()
    world.add()
    world.put("gap")
    world.ask("end", committed=True, version=3, error="PRODUCER_FENCED")
    row = one(world)
    assert (row["end"], row["status"]) == ("unknown", "gap")


def test_an_end_without_an_answer_is_not_known() -> None:
    world = World()
    world.init()
    world.add()
    world.put("end", correlation_id=99, committed=True, version=3, **world.who)
    row = one(world)
    assert row["end"] == "unknown"
    assert "its answer is not in the capture" in row["cause"]


def test_markers_end_a_transaction_and_are_dated() -> None:
    world = World()
    world.init()
    world.add()
    marker: Row = {"producer_id": 5, "producer_epoch": 0, "topic": "a", "partition": 0, "connection": 7}
    world.put("marker", committed=True, **marker)
    row = one(world)
    assert (row["end"], row["cause"]) == ("committed", "WriteTxnMarkers")
    assert row["partitions"][0]["marked"] == world.time


def test_the_leader_of_a_partition_may_say_first_that_it_began() -> None:
    world = World()
    world.init()
    place: Row = {"topic": "a", "partition": 0}
    world.put("produce", correlation_id=50, records=2, record_bytes=9, version=12, **world.who, **place)
    began = world.time
    world.ask("add", version=5, broker=True, connection=9, client_id="broker-1-txn-marker-sender", **place)
    world.put("produce", response=True, correlation_id=50, error="NONE", offset=4, **place)
    row = one(world)
    assert (row["protocol"], row["began"], row["client_id"], row["records"]) == ("v2", began, "me", 2)


def test_readers_that_wait_are_named() -> None:
    world = World()
    world.init()
    world.add()
    world.write(7)
    held: Row = {"topic": "a", "partition": 0, "offset": 7, "client_id": "reader"}
    world.put("held", records=3, waited=True, **held)
    world.put("held", records=9, waited=True, **held)
    world.put("held", records=50, waited=True, **held | {"offset": 8})
    row = one(world)
    assert (row["held_records"], row["held_ms"], row["held_readers"]) == (9, 1000.0, ["reader on h"])


def test_what_is_given_up_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "MOST_PRODUCERS", 50)
    world = World()
    for number in range(51):
        world.who = {"transactional_id": f"t{number}", "producer_id": number, "producer_epoch": 0}
        world.add()
    (row,) = world.rows
    assert (row["transactional_id"], row["status"], row["end"]) == ("t0", "given_up", "unknown")


def test_a_batch_that_was_sent_again_counts_once() -> None:
    # A leader knows the last five batches again, and answers with the offset that they have.
    world = World()
    world.init()
    world.add()
    for offset in (0, 3, 6, 9, 12, 3, 12):
        world.write(offset)
    row = one(world)
    assert (row["records"], row["record_bytes"], row["unacknowledged"]) == (15, 50, 0)


@pytest.mark.parametrize(("passed", "end"), [(20, "timed_out"), (1, "fenced")])
@pytest.mark.parametrize("again", [False, True])
def test_a_leader_that_knows_a_newer_epoch_says_that_it_is_over(passed: int, end: str, again: bool) -> None:
    # The marker that aborts it has a newer epoch.
    world = World()
    world.init()
    world.add()
    world.write()
    world.time += passed * SECOND
    world.write(3, error="INVALID_PRODUCER_EPOCH")
    refused = world.frame
    if again:
        world.init(2, producer_id=5)
    row = one(world)
    assert (row["end"], row["end_frame"], row["records"]) == (end, refused, 3)


def test_with_two_phase_commit_a_prepared_transaction_goes_on() -> None:
    world = World()
    world.init()
    world.add()
    world.write()
    kept = {"producer_id": 5, "producer_epoch": 1, "goes_on": True}
    world.ask("init", producer_id=-1, timeout=10 * SECOND, answer=kept, client_id="another", connection=2)
    world.who |= {"producer_epoch": 1}
    world.ask("end", committed=True, version=5)
    row = one(world)
    assert (row["end"], row["records"], row["producer_epoch"]) == ("committed", 3, 1)
    assert "kept by InitProducerId of another" in [event["event"] for event in row["events"]]


def test_a_name_that_no_topic_can_have_is_not_repeated_for_each_partition() -> None:
    world = World()
    world.init()
    for partition in range(100):
        world.write(topic="a" * 1_000_000, partition=partition)
    row = one(world)
    assert {len(part["topic"]) for part in row["partitions"]} == {249}
    assert max(len(event["event"]) for event in row["events"]) < 300


def test_a_gap_is_one_of_the_transactions_of_its_connection() -> None:
    made = Transactions()
    for number in range(3):
        said = {"transactional_id": f"t{number}", "producer_id": number, "producer_epoch": 0, "connection": number}
        asked = Step("group", group_id="g", frame=2 * number, correlation_id=1, version=3, **said)
        answer = Step("group", response=True, connection=number, frame=2 * number + 1, correlation_id=1, error="NONE")
        assert not [*made.add(asked), *made.add(answer)]
    for frame in range(10, 14):
        assert not list(made.add(Step("gap", connection=1, frame=frame)))
        # Each is looked at once, however many gaps there are.
        assert 1 not in made._on
    assert [row["status"] for row in made.rest()] == ["ok", "gap", "ok"]
    assert not made._on


def test_what_came_before_a_gap_is_no_sign_of_what_came_after_it() -> None:
    world = World()
    world.init()
    world.put("gap", connection=9)
    world.write(version=12)
    assert one(world)["status"] == "begun_before"
    world = World()
    world.init()
    world.write(version=12)
    world.put("gap", connection=9)
    world.ask("end", committed=True, version=5)
    world.write(9, version=12)
    assert [row["status"] for row in world.all()] == ["ok", "ok"]
