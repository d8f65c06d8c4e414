"""The table ``streams_tasks``: spans of tasks, of a real client and of what a broker may say."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from made_captures import read

from kwire import messages, stored
from kwire.history.fold import Story
from kwire.history.steps import Step, kind_of
from kwire.history.tasks import TASKS
from kwire.schema.keys import ApiKey

STREAMS = Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-java" / "streams.pcap"
SECOND = 1_000_000_000

Row = dict[str, Any]


class Talk:
    """Heartbeats of a streams group, and their answers."""

    def __init__(self) -> None:
        self.story = Story(TASKS)
        self.now = 0

    def _take(self, member: str, body: Any, response: bool) -> list[Row]:
        rows: list[Row] = []
        self.now += 1
        for owner, place, said in TASKS.reads[kind_of(ApiKey.STREAMS_GROUP_HEARTBEAT, response)](body, lambda _: None):
            of_frame = ("x", 1, self.now, self.now * SECOND, ("h", 1, member), ("b", 2), response)
            step = Step(*of_frame, int(ApiKey.STREAMS_GROUP_HEARTBEAT), 0, self.now - response, 99, owner, place, said)
            rows += self.story.take(step)
        return rows

    def beat(self, member: str, epoch: int, answer: int | None = None, code: int = 0, **tasks: Any) -> list[Row]:
        """A heartbeat of a member, and the rows of its answer. ``tasks``: partitions of subtopology 0 by role."""
        ask, kind = messages.StreamsGroupHeartbeatRequest, messages.StreamsGroupHeartbeatResponse
        end = ask.Endpoint(host="here", port=7) if epoch == 0 else None
        body = ask(group_id="g", member_id=member, member_epoch=epoch, process_id="p", user_endpoint=end)
        rows = self._take(member, body, False)
        told = kind(member_id=member, member_epoch=epoch if answer is None else answer, error_code=code)
        for role in ("active", "standby", "warmup"):
            some = tasks.get(role)
            if some is not None:
                setattr(told, f"{role}_tasks", [kind.TaskIds(subtopology_id="0", partitions=some)] if some else [])
        return rows + self._take(member, told, True)


def brief(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(row["member_id"], row["role"], row["partition"], row["ended"]) for row in rows]


def test_tasks_of_a_java_client_are_spans() -> None:
    rows = read(STREAMS.read_bytes(), "streams_tasks")
    assert {(row["subtopology"], row["partition"]) for row in rows} == {(a, b) for a in "01" for b in (0, 1)}
    assert {(row["role"], row["ended"], row["status"]) for row in rows} == {("active", "left", "ok")}
    assert all(row["duration_ms"] > 0 and row["assigned_frame"] < row["frame"] for row in rows)
    assert {row["topology_epoch"] for row in rows} == {0}


def test_a_task_that_moves_ends_with_one_member_and_begins_with_another() -> None:
    talk = Talk()
    assert talk.beat("a", 0, 1, active=[0, 1], standby=[], warmup=[]) == []
    assert talk.beat("b", 0, 2, active=[], standby=[], warmup=[1]) == []
    # Nothing is said: nothing changes.
    assert talk.beat("a", 1, 1) == []
    (moved,) = talk.beat("a", 1, 2, active=[0], standby=[1])
    assert (moved["partition"], moved["ended"], moved["epoch"], moved["end_epoch"]) == (1, "revoked", 1, 2)
    assert moved["duration_ms"] == 6000.0
    (warm,) = talk.beat("b", 2, 2, active=[1], warmup=[])
    assert (warm["role"], warm["ended"], warm["endpoint"], warm["process_id"]) == ("warmup", "revoked", "here:7", "p")
    assert brief(list(talk.story.over())) == [
        ("a", "active", 0, "open"),
        ("a", "standby", 1, "open"),
        ("b", "active", 1, "open"),
    ]


def test_a_member_that_leaves_is_fenced_or_joins_anew_has_nothing() -> None:
    for epoch, code, ended in ((-1, 0, "left"), (1, 110, "fenced"), (0, 0, "rejoined")):
        talk = Talk()
        talk.beat("a", 0, 1, active=[0, 1])
        assert brief(talk.beat("a", epoch, code=code)) == [("a", "active", 0, ended), ("a", "active", 1, ended)]
        assert list(talk.story.over()) == []
    talk = Talk()
    talk.beat("a", 0, 1, active=[0])
    # An error that says nothing of its membership.
    assert talk.beat("a", 1, code=16) == []
    assert len(list(talk.story.over())) == 1


def test_a_state_goes_on_where_it_was_left_and_what_is_given_up_says_so() -> None:
    talk = Talk()
    talk.beat("a", 0, 1, active=[0, 1], standby=[2])
    state = json.loads(json.dumps(talk.story.save()))
    story = Story(TASKS)
    story.restore(state)
    assert json.loads(json.dumps(story.save())) == state
    assert list(story.over()) == list(talk.story.over())
    state["folds"][0][2]["members"][0][2][0][0] = "owner"
    with pytest.raises(stored.UNFIT):
        Story(TASKS).restore(state)
    talk = Talk()
    talk.story = Story(dataclasses.replace(TASKS, most=1))
    talk.beat("a", 0, 1, active=[0, 1])
    step = Step("x", 1, 9, 9, ("h", 1, "c"), ("b", 2), False, 88, 0, 9, 9, "h", "", {
        "member": "z", "instance": None, "process": None, "endpoint": None, "topology": None
    })  # fmt: skip
    (gone,) = list(talk.story.take(step))
    assert (gone["group_id"], gone["status"]) == ("g", "given_up")
