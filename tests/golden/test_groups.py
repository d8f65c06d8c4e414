"""Groups of real clients on real brokers: the tables say what the tools of the broker, its own topics, and clients say.

``record_groups.py`` made the recordings. At the moments at which tools were asked, the groups were at rest.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from kwire import capture
from kwire.tables.log_records import DEEP

HERE = Path(__file__).parent / "groups"
TOPIC = "orders"
SCENES = ("librdkafka", "java", "old")
Row = dict[str, Any]
Parts = frozenset[tuple[str, int]]


@cache
def rows(scene: str, table: str) -> list[Row]:
    return [row for batch in capture.read(HERE / f"{scene}.gz", table) for row in batch.to_pylist()]


@cache
def told(scene: str) -> list[Row]:
    found: list[Row] = json.loads((HERE / f"{scene}.told.json").read_text())
    return found


@cache
def log_of(scene: str, topic: str) -> list[tuple[str, Row, Row | None]]:
    """What a topic of the broker says: type, key and value of each record."""
    place = HERE / scene / f"{topic}-0" / "00000000000000000000.log"
    found = [row for batch in DEEP.read(place) for row in batch.to_pylist()]
    assert {row["status"] for row in found} == {"ok"}
    return [
        (row["record_type"], json.loads(row["decoded_key"]), row["decoded_value"] and json.loads(row["decoded_value"]))
        for row in found
        if not row["is_control"]
    ]


def asked(scene: str, tool: str, option: str) -> Iterator[tuple[float, str, list[Row]]]:
    """When a tool was asked, of which group, and what it said: a row for each line, by the heads of its columns."""
    for one in told(scene):
        if one.get("tool") == tool and option in one["words"]:
            lines = [line for line in one["says"] if not line.endswith("has no active members.")]
            heads = [] if not lines else lines[0].split()
            # "COORDINATOR (ID)" is one column, and the last one may have blanks.
            heads = [head for head in heads if head != "(ID)"]
            group = one["words"][one["words"].index("--group") + 1]
            said = [line.replace("  (", "(").replace(" (", "(").split(None, len(heads) - 1) for line in lines[1:]]
            # Where the column of the assignor is empty, the group is too.
            said = [words if len(words) == len(heads) else [*words[:2], "-", *words[2:]] for words in said]
            yield one["time"], group, [dict(zip(heads, words, strict=True)) for words in said]


class State:
    """Members of a group, and what they have, after each event."""

    def __init__(self, scene: str, group: str, until: float | None = None) -> None:
        self.members: dict[str, tuple[int, Parts]] = {}
        self.seen: dict[str, list[tuple[int, Parts] | None]] = {}
        """By member: its epochs with what it had, None where it left."""
        self.assignor: str | None = None
        mine = (row for row in rows(scene, "group_events") if row["group_id"] == group)
        # All that one frame says is one step.
        for _, step in groupby(mine, lambda row: row["frame"]):
            for row in step:
                if until is not None and row["timestamp"].timestamp() > until:
                    return
                self._take(row)
            for member in {*self.members, *self.seen}:
                now, before = self.members.get(member), self.seen.setdefault(member, [])
                if not before or before[-1] != now:
                    before.append(now)

    def _take(self, row: Row) -> None:
        assert row["status"] == "ok"
        member, epoch = row["member_id"], row["epoch"]
        self.assignor = row["assignor"] or self.assignor
        if row["event"] in ("left", "fenced"):
            self.members.pop(member, None)
            return
        if row["event"] == "rebalance_began" and row["cause"] == "session_timeout":
            self.members.pop(row["cause_member_id"], None)
        if member is None or (row["event"] == "epoch_bumped" and row["kind"] == "classic"):
            return
        had = self.members.get(member, (epoch, frozenset()))[1]
        gained, lost = (frozenset(map(part_of, row[name] or ())) for name in ("gained", "lost"))
        self.members[member] = epoch, (had | gained) - lost


def part_of(one: Row) -> tuple[str, int]:
    return one["topic"] or one["subtopology"], one["partition"]


def parts_of(said: str) -> Parts:
    """Such as ``orders:0,1,2;other:5``; the tool of 3.9 names no topic: ``(0,1,2)``."""
    if said.startswith("("):
        said = f"{TOPIC}:{said.strip('()')}"
    pairs = (one.rsplit(":", 1) for one in said.split(";") if one.strip() not in ("", "-"))
    return frozenset((topic.strip(), int(part)) for topic, parts in pairs for part in parts.split(","))


@pytest.mark.parametrize("scene", SCENES)
def test_members_have_what_the_tool_for_consumer_groups_says(scene: str) -> None:
    compared = 0
    for time, group, said in asked(scene, "consumer-groups", "--members"):
        wanted = {one["CONSUMER-ID"]: parts_of(one.get("CURRENT-ASSIGNMENT") or one["ASSIGNMENT"]) for one in said}
        state = State(scene, group, time)
        assert {name: parts for name, (_, parts) in state.members.items()} == wanted, (group, time)
        for one in said:
            if one.get("CURRENT-EPOCH", "-") != "-":
                assert state.members[one["CONSUMER-ID"]][0] == int(one["CURRENT-EPOCH"])
        compared += len(said)
    assert compared >= 8


@pytest.mark.parametrize("scene", SCENES)
def test_states_and_assignors_are_those_that_the_tool_says(scene: str) -> None:
    for time, group, said in asked(scene, "consumer-groups", "--state"):
        (one,) = said
        state = State(scene, group, time)
        assert int(one["#MEMBERS"]) == len(state.members)
        assert one["STATE"] == ("Stable" if state.members else "Empty")
        if state.assignor is not None and state.members:
            assert one["ASSIGNMENT-STRATEGY"] == state.assignor


def test_share_and_streams_groups_are_what_their_tools_say() -> None:
    compared = 0
    for tool in ("share-groups", "streams-groups"):
        for time, group, said in asked("java", tool, "--members"):
            state = State("java", group, time)
            assert len(state.members) == len(said)
            for one in said:
                epoch, parts = state.members[one.get("CONSUMER-ID") or one["MEMBER"]]
                assert epoch == int(one["MEMBER-EPOCH"])
                if tool == "share-groups":
                    assert parts == parts_of(one["ASSIGNMENT"])
                else:
                    assert parts == tasks_of(one["ASSIGNMENTS"], "ACTIVE: ")
                    assert parts == spans_at(time, one["MEMBER"])
                compared += 1
    assert compared == 8


def tasks_of(said: str, what: str) -> Parts:
    """Such as ``ACTIVE: 0:[0,1]; TARGET-ACTIVE: ...``."""
    active = said.split(what, 1)[1].split(";")[0]
    return frozenset(
        (topic, int(part)) for topic, parts in [active.split(":")] for part in parts.strip("[] ").split(",")
    )


def spans_at(time: float, member: str) -> Parts:
    """The active tasks of a member at a time, by ``streams_tasks``."""
    return frozenset(
        (row["subtopology"], row["partition"])
        for row in rows("java", "streams_tasks")
        if row["member_id"] == member and row["assigned_at"].timestamp() <= time < row["timestamp"].timestamp()
    )


def names_of(scene: str) -> dict[str, str]:
    """Topics by their ids, as other records of the log have both."""
    found = {
        value["topic_id"]: key["topic"]
        for kind, key, value in log_of(scene, "__consumer_offsets")
        if kind == "OffsetCommit" and value is not None and "topic_id" in value
    }
    for kind, _, value in log_of(scene, "__consumer_offsets"):
        if kind == "ShareGroupStatePartitionMetadata" and value is not None:
            found |= {one["topic_id"]: one["topic_name"] for one in value["initializing_topics"]}
    return found


@pytest.mark.parametrize("scene", ["librdkafka", "java"])
def test_members_go_through_the_epochs_and_assignments_of_the_brokers_log(scene: str) -> None:
    names = names_of(scene)
    logged: dict[tuple[str, str], list[tuple[int, Parts] | None]] = {}
    for kind, key, value in log_of(scene, "__consumer_offsets"):
        if not kind.endswith("GroupCurrentMemberAssignment"):
            continue
        now = None
        if value is not None:
            tasks = ((one["subtopology_id"], one) for one in value.get("active_tasks", ()))
            topics = ((names[one["topic_id"]], one) for one in value.get("assigned_partitions", ()))
            parts = frozenset((name, part) for name, one in (*tasks, *topics) for part in one["partitions"])
            now = value["member_epoch"], parts
        mine = logged.setdefault((key["group_id"], key["member_id"]), [])
        if not mine or mine[-1] != now:
            mine.append(now)
    groups = {group for group, _ in logged}
    assert groups == ({"consumer-group"} if scene == "librdkafka" else {"consumer", "share", "streams"})
    found = {(group, member): seen for group in groups for member, seen in State(scene, group).seen.items()}
    assert found == logged


@pytest.mark.parametrize("scene", SCENES)
def test_generations_of_classic_groups_are_those_of_the_brokers_log(scene: str) -> None:
    logged: dict[str, list[Any]] = {}
    for kind, key, value in log_of(scene, "__consumer_offsets"):
        if kind == "GroupMetadata" and value is not None and value["members"]:
            members = {
                one["member_id"]: frozenset(
                    (topic["topic"], part)
                    for topic in one["assignment"]["assigned_partitions"]
                    for part in topic["partitions"]
                )
                for one in value["members"]
            }
            said = value["generation"], value["protocol"], value["leader"], members
            logged.setdefault(key["group"], []).append(said)
    assert logged
    for group, said in logged.items():
        mine = [row for row in rows(scene, "group_events") if row["group_id"] == group]
        found = []
        for row in mine:
            if row["event"] != "rebalance_ended":
                continue
            of = [one for one in mine if one["epoch"] == row["epoch"]]
            (leader,) = (one["member_id"] for one in of if one["detail"] == "leader")
            last = max(one["timestamp"].timestamp() for one in of if one["event"] in ("synced", "assigned", "revoked"))
            members = {name: parts for name, (_, parts) in State(scene, group, last).members.items()}
            found.append((row["epoch"], row["assignor"], leader, members))
        assert found == said


@pytest.mark.parametrize("scene", SCENES)
def test_offsets_are_committed_as_the_brokers_log_has_them(scene: str) -> None:
    logged: dict[Any, list[int]] = {}
    for kind, key, value in log_of(scene, "__consumer_offsets"):
        if kind == "OffsetCommit" and value is not None:
            logged.setdefault((key["group"], key["topic"], key["partition"]), []).append(value["offset"])
    refused = {
        (row["connection"], row["correlation_id"], row["partition"])
        for row in rows(scene, "partitions")
        if row["api_name"] == "OffsetCommit" and row["direction"] == "response" and row["error"] != "NONE"
    }
    found: dict[Any, list[int]] = {}
    for row in rows(scene, "partitions"):
        place = row["connection"], row["correlation_id"], row["partition"]
        if row["api_name"] == "OffsetCommit" and row["direction"] == "request" and place not in refused:
            found.setdefault((row["group_id"], row["topic"], row["partition"]), []).append(row["offset"])
    assert found == logged


def test_rebalances_have_the_causes_of_what_was_done() -> None:
    def causes(scene: str, group: str) -> list[str]:
        mine = (row for row in rows(scene, "group_events") if row["group_id"] == group)
        return [row["cause"] for row in mine if row["event"] == "rebalance_began"]

    for scene, group in (("librdkafka", "classic-group"), ("librdkafka", "consumer-group")):
        assert causes(scene, group) == ["join", "join", "leave", "join", "session_timeout"]
    assert causes("old", "aiokafka-group") == ["join", "join", "leave"]
    # A cooperative member that gave up partitions joins again.
    assert causes("old", "franz-group") == ["join", "join", "rejoin", "leave", "join", "rejoin", "session_timeout"]
    assert causes("java", "cooperative") == ["join", "join", "rejoin", "leave"]
    assert causes("java", "consumer") == ["join", "join", "leave"]
    # The broker raises the epoch once more by itself, when it has states of partitions, or topics of the application.
    for group in ("share", "streams"):
        assert causes("java", group) == ["join", "not_in_capture", "join", "leave"]


def test_partitions_come_and_go_as_the_listeners_of_java_consumers_were_told() -> None:
    for group in ("cooperative", "consumer"):
        for name in (f"first-{group}", f"second-{group}"):
            said = [(what, one[what]) for one in told("java") if one.get("member") == name
                    for what in ("assigned", "revoked") if one.get(what)]  # fmt: skip
            found = [
                ("assigned" if row["gained"] else "revoked",
                 sorted(f"{one['topic']}-{one['partition']}" for one in row["gained"] or row["lost"]))
                for row in rows("java", "group_events")
                if row["client_id"] == name and (row["gained"] or row["lost"])
            ]  # fmt: skip
            assert found == said


STATES = {"accepted": 2, "rejected": 4, "released": 0, "expired": 0}
"""The state of records after each outcome, as the share coordinator writes it."""


def test_deliveries_are_those_of_the_share_coordinators_log() -> None:
    logged: Counter[tuple[int, int, int, int]] = Counter()
    for kind, key, value in log_of("java", "__share_group_state"):
        assert value is not None
        assert kind in ("ShareSnapshot", "ShareUpdate")
        for one in value["state_batches"]:
            for offset in range(one["first_offset"], one["last_offset"] + 1):
                logged[key["partition"], offset, one["delivery_count"], one["delivery_state"]] += 1
    found: Counter[tuple[int, int, int, int]] = Counter()
    for row in rows("java", "share_deliveries"):
        assert row["status"] == "ok"
        for offset in range(row["first_offset"], row["last_offset"] + 1):
            if row["outcome"] in STATES:
                found[row["partition"], offset, row["delivery_count"], STATES[row["outcome"]]] += 1
    # The last lock ran out when the broker had stopped, or nobody asked any more.
    assert not logged - found
    assert sum((found - logged).values()) <= 1


def test_deliveries_are_those_that_members_of_the_share_group_had() -> None:
    words = {"accept": "accepted", "release": "released", "reject": "rejected"}
    for name in ("first-share", "second-share"):
        said = [(one["partition"], one["offset"], one["count"], words[one["acknowledged"]])
                for one in told("java") if one.get("member") == name and "count" in one]  # fmt: skip
        found = [
            (row["partition"], offset, row["delivery_count"], row["outcome"])
            for row in rows("java", "share_deliveries")
            for offset in range(row["first_offset"], row["last_offset"] + 1)
            if row["client_id"] == name and row["outcome"] != "refused"
        ]
        if name == "second-share":
            # It acknowledged after its locks had run out.
            said = [(*one[:3], "expired") for one in said]
        assert sorted(found) == sorted(said)


def test_transactions_are_those_of_the_coordinators_log_and_of_the_tool() -> None:
    ends = {2: "committed", 3: "aborted"}
    logged = [
        (value["producer_id"], ends[value["transaction_status"]], value["transaction_timeout_ms"],
         sorted((one["topic"], part) for one in value["transaction_partitions"] for part in one["partition_ids"]),
         value["transaction_start_timestamp_ms"])
        for _, _, value in log_of("java", "__transaction_state")
        if value is not None and value["transaction_status"] in ends
    ]  # fmt: skip
    mine = rows("java", "transactions")
    assert len(mine) == len(logged) == 3
    for row, (producer, end, timeout, partitions, began) in zip(mine, logged, strict=True):
        assert (row["producer_id"], row["end"], row["timeout_ms"], row["protocol"]) == (producer, end, timeout, "v2")
        assert [(one["topic"], one["partition"]) for one in row["partitions"]] == partitions
        # With the second protocol a transaction begins when its first records are there.
        assert 0 <= began / 1000 - row["began"].timestamp() < 1
    (said,) = (one["says"] for one in told("java") if one.get("tool") == "transactions" and "describe" in one["words"])
    head, values = (line.split("\t") for line in said if line.count("\t") > 4)
    tool = {name.strip(): value.strip() for name, value in zip(head, values, strict=False)}
    assert tool["TransactionState"] == "CompleteCommit"
    assert int(tool["ProducerId"]) == mine[-1]["producer_id"]
    assert int(tool["ProducerEpoch"]) == mine[-1]["producer_epoch"] + 1
    assert int(tool["CurrentTransactionStartTimeMs"]) == logged[-1][-1]


@pytest.mark.parametrize("scene", ["librdkafka", "java"])
def test_kinds_of_groups_are_those_that_the_broker_lists(scene: str) -> None:
    (said,) = (one["says"] for one in told(scene) if one.get("tool") == "groups")
    kinds = {line.split()[0]: line.split()[1].lower() for line in said[1:]}
    assert {row["group_id"]: row["kind"] for row in rows(scene, "group_events")} == kinds


def test_dead_letters_are_the_deliveries_that_the_group_gave_up() -> None:
    """A broker of 4.4 writes them, with headers that say where they come from (KIP-1191)."""
    written = {}
    for row in rows("letters", "records"):
        if row["source"] == "produce" and row["topic"] == "dlq.shared":
            said = {one["key"].removeprefix("__dlq.errors."): one["value"].decode() for one in row["headers"]}
            place = said["group"], said["topic"], int(said["partition"]), int(said["offset"])
            written[place] = int(said["delivery.count"]), said["message"]
    given_up = {}
    for row in rows("letters", "share_deliveries"):
        if row["outcome"] == "rejected" or (row["outcome"] == "released" and row["delivery_count"] == 3):
            why = "rejected by client" if row["outcome"] == "rejected" else "delivery count exceeded the threshold"
            for offset in range(row["first_offset"], row["last_offset"] + 1):
                place = row["group_id"], row["topic"], row["partition"], offset
                given_up[place] = row["delivery_count"], f"Offset {why}."
    assert written == given_up
    assert len(written) == 4


@pytest.mark.parametrize("scene", SCENES)
def test_offsets_that_the_tool_says_are_those_that_were_committed_by_then(scene: str) -> None:
    compared = 0
    for one in told(scene):
        if (
            one.get("tool") != "consumer-groups"
            or one["words"][:2] != ["--describe", "--group"]
            or len(one["words"]) > 3
        ):
            continue
        group = one["words"][2]
        committed = {
            (row["topic"], row["partition"]): row["offset"]
            for row in rows(scene, "partitions")
            if row["api_name"] == "OffsetCommit" and row["direction"] == "request" and row["group_id"] == group
            and row["frame_timestamp"].timestamp() < one["time"]
        }  # fmt: skip
        said = [line.split() for line in one["says"] if line.startswith(f"{group} ")]
        assert {(words[1], int(words[2])): int(words[3]) for words in said} == committed
        compared += len(said)
    assert compared >= 6


def test_records_that_the_tool_counts_as_lag_of_the_share_group_are_those_that_nobody_has_done_with() -> None:
    compared = 0
    for time, _, said in asked("java", "share-groups", "--offsets"):
        written: Counter[int] = Counter()
        for row in rows("java", "partitions"):
            mine = row["api_name"] == "Produce" and row["direction"] == "request" and row["topic"] == "shared"
            if mine and row["frame_timestamp"].timestamp() < time:
                written[row["partition"]] += row["records"]
        for row in rows("java", "share_deliveries"):
            if row["outcome"] in ("accepted", "rejected") and row["timestamp"].timestamp() < time:
                written[row["partition"]] -= row["last_offset"] - row["first_offset"] + 1
        assert {int(one["PARTITION"]): int(one["LAG"]) for one in said} == {part: written[part] for part in (0, 1)}
        compared += len(said)
    assert compared == 8
