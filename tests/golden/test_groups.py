"""Groups that were recorded on a real broker: the table says what the broker said at the same moments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_captures import read

HERE = Path(__file__).parent / "kafka-4.3-groups"
TOLD = json.loads((HERE / "groups.told.json").read_text())


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return read((HERE / "groups.pcap").read_bytes(), "group_events")


def at(rows: list[dict[str, Any]], group: str, time: float) -> dict[str, set[tuple[str, int]]]:
    """The members of a group at a time, and what they have, by what happened up to then."""
    has: dict[str, set[tuple[str, int]]] = {}
    for row in rows:
        if row["group_id"] != group or row["timestamp"].timestamp() > time:
            continue
        member = row["member_id"]
        if row["event"] == "joined":
            has[member] = set()
        elif row["event"] in ("left", "fenced"):
            has.pop(member, None)
        elif row["event"] == "rebalance_began" and row["cause"] == "session_timeout":
            has.pop(row["cause_member_id"], None)
        for one in row["lost"] or ():
            has.get(member, set()).discard((one["topic"], one["partition"]))
        for one in row["gained"] or ():
            has[member].add((one["topic"], one["partition"]))
    return has


@pytest.mark.parametrize("moment", TOLD, ids=lambda one: f"{one['group_id']}, {one['what']}")
def test_members_have_what_the_broker_says(rows: list[dict[str, Any]], moment: dict[str, Any]) -> None:
    wanted = {one["member_id"]: set(map(tuple, one["partitions"])) for one in moment["members"]}
    assert at(rows, moment["group_id"], moment["time"]) == wanted


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_causes_are_what_was_done(rows: list[dict[str, Any]], protocol: str) -> None:
    mine = [row for row in rows if row["kind"] == protocol and row["status"] == "ok"]
    began = [row["cause"] for row in mine if row["event"] == "rebalance_began"]
    assert began == ["join", "join", "leave", "join", "session_timeout"]
    ends = [row["duration_ms"] for row in mine if row["event"] == "rebalance_ended"]
    assert len(ends) == len(began)
    assert all(one > 0 for one in ends)
    (killed,) = {row["cause_member_id"] for row in mine if row["cause"] == "session_timeout"}
    assert {row["client_id"] for row in mine if row["member_id"] == killed and row["event"] == "joined"} == {"third"}
