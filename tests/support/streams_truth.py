"""What the broker of ``kwire.testing`` knows of the tasks of a streams group: the truth for ``streams_tasks``.

``Member`` talks to it as the Java client does, and ``lived`` lets some of them live.

with observed() as truth:
    ...                                  # clients talk to the broker
truth.over()
assert in_capture(data) == truth.ended
"""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from broker_talk import Bench

from kwire import capture, messages
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.streams import ROLES, Streams, StreamsMember, Tasks

BEAT = messages.StreamsGroupHeartbeatRequest
GROUP = "app"
SESSION = 10.0
Held = dict[str, set[tuple[str, int]]]


def topology(*, stateful: bool = True, epoch: int = 0, sources: tuple[str, ...] = ("orders",), **other: Any) -> Any:
    """Subtopology 0 reads topics and writes to a repartition topic, 1 reads that and may have state."""
    counts = BEAT.Subtopology(subtopology_id="1", **other)
    counts.repartition_source_topics = [BEAT.TopicInfo(name="app-by-length", partitions=0, replication_factor=0)]
    if stateful:
        keep = BEAT.KeyValue(key="cleanup.policy", value="compact")
        counts.state_changelog_topics = [
            BEAT.TopicInfo(name="app-counts-changelog", partitions=0, replication_factor=0, topic_configs=[keep])
        ]
    reads = BEAT.Subtopology(subtopology_id="0", source_topics=list(sources), repartition_sink_topics=["app-by-length"])
    return BEAT.Topology(epoch=epoch, subtopologies=[reads, counts])


def given(tasks: set[tuple[str, int]]) -> list[Any]:
    names = sorted({name for name, _ in tasks})
    return [BEAT.TaskIds(subtopology_id=one, partitions=sorted(p for n, p in tasks if n == one)) for one in names]


class Member:
    """A member, as the Java client is one."""

    def __init__(self, bench: Bench, number: str, process: str | None = None, **other: Any) -> None:
        port = 50_000 + bench.core.connections
        self.client, self.id = bench.client(client_id=number, port=port), number
        self.process = process or f"p-{number}"
        self.other = other
        self.epoch, self.known = 0, -1
        self.has: Held = {role: set() for role in ROLES}
        self.endpoints: dict[int, Any] = {}

    def request(self) -> Any:
        made = BEAT(group_id=GROUP, member_id=self.id, member_epoch=self.epoch, endpoint_information_epoch=self.known)
        if self.epoch == 0:
            made.topology = self.other.get("topology") or topology()
            made.rebalance_timeout_ms, made.process_id = 60_000, self.process
            made.active_tasks, made.standby_tasks, made.warmup_tasks = [], [], []
            if "port" in self.other:
                made.user_endpoint = BEAT.Endpoint(host="here", port=self.other["port"])
        return made

    def beat(self, *, says: bool = False, **other: Any) -> Any:
        """One heartbeat, and its answer; ``says`` what it has."""
        request = self.request()
        if says:
            request.active_tasks, request.standby_tasks, request.warmup_tasks = (given(self.has[r]) for r in ROLES)
        for name, value in other.items():
            setattr(request, name, value)
        answer = self.client.ask(request, 1)
        self.take(answer)
        return answer

    def take(self, answer: Any) -> None:
        if answer.error_code or answer.member_epoch < 0:
            return
        self.epoch, self.known = answer.member_epoch, answer.endpoint_information_epoch
        if answer.partitions_by_user_endpoint is not None:
            self.endpoints = {one.user_endpoint.port: one for one in answer.partitions_by_user_endpoint}
        if answer.active_tasks is not None:
            listed = answer.active_tasks, answer.standby_tasks, answer.warmup_tasks
            self.has = {
                role: {(one.subtopology_id, number) for one in some for number in one.partitions}
                for role, some in zip(ROLES, listed, strict=True)
            }


def bench(partitions: int = 4, release: str = "4.4", **configs: str) -> Bench:
    made = Bench(release, consumer_session=SESSION)
    made.cluster.create_topic("orders", partitions)
    made.cluster.group_configs[GROUP] = {f"streams.num.{name}.replicas": value for name, value in configs.items()}
    return made


def settle(*members: Member) -> None:
    """Heartbeats, until nothing changes."""
    for _ in range(6):
        for one in members:
            one.beat(says=True)


def group(of: Bench) -> Streams:
    found = of.cluster.groups[GROUP].streams
    assert found is not None
    return found


Span = tuple[str, str, str, int, int]


class Truth:
    """The spans that the broker gave: member, role, subtopology, partition, and the epoch in which they began."""

    def __init__(self) -> None:
        self.has: dict[str, dict[tuple[str, str, int], Span]] = {}
        self.ended: Counter[tuple[Span, str]] = Counter()

    def told(self, member: StreamsMember, joined: bool, tasks: Tasks | None) -> None:
        """The broker answers a heartbeat."""
        if joined:
            self.ends(member.id, "rejoined")
        has = self.has.setdefault(member.id, {})
        if tasks is None:
            return
        now = [(role, *task) for role in ROLES for task in tasks[role]]
        for task in [one for one in has if one not in now]:
            self.ended[has.pop(task), "revoked"] += 1
        for task in now:
            has.setdefault(task, (member.id, *task, member.epoch))

    def ends(self, member: str, how: str) -> None:
        """A member is none any more."""
        for span in self.has.pop(member, {}).values():
            self.ended[span, how] += 1

    def over(self) -> None:
        """The capture ends."""
        for name in list(self.has):
            self.ends(name, "open")


@contextmanager
def observed() -> Iterator[Truth]:
    """Lets all streams groups say what they tell their members, and who leaves."""
    truth, told, leave = Truth(), Streams.told, Streams.leave

    def on_told(self: Streams, member: StreamsMember, everything: bool) -> Tasks | None:
        made = told(self, member, everything)
        truth.told(member, everything, made)
        return made

    def on_leave(self: Streams, member_id: str, for_a_while: bool) -> int:
        code = leave(self, member_id, for_a_while)
        if not code:
            truth.ends(member_id, "left")
        return code

    with mock.patch.object(Streams, "told", on_told), mock.patch.object(Streams, "leave", on_leave):
        yield truth


def in_capture(data: bytes) -> Counter[tuple[Span, str]]:
    """The same of the rows of ``streams_tasks``."""
    return in_rows(row for batch in capture.read(io.BytesIO(data), "streams_tasks") for row in batch.to_pylist())


def in_rows(rows: Iterable[Any]) -> Counter[tuple[Span, str]]:
    """The same of rows, from wherever they come."""
    found: Counter[tuple[Span, str]] = Counter()
    for row in rows:
        assert row["status"] == "ok"
        span = row["member_id"], row["role"], row["subtopology"], row["partition"], row["epoch"]
        found[span, row["ended"]] += 1
    return found


def lived(of: Bench, chance: random.Random) -> Truth:
    """Members come, go, crash and are fenced, for a minute. What holds at any time is asserted."""
    members = [Member(of, "m0", "p0")]
    gone: set[str] = set()
    with observed() as truth:
        members[0].beat()
        for _ in range(60):
            if len(members) - len(gone) < 4 and chance.random() < 0.2:
                members.append(Member(of, f"m{len(members)}", f"p{chance.randrange(3)}"))
            for one in members:
                fate = chance.random()
                if one.id in gone:
                    continue
                if fate < 0.02 and one.epoch:
                    one.beat(member_epoch=-1)
                    gone.add(one.id)
                elif fate < 0.04:
                    gone.add(one.id)  # nothing is heard of it again
                elif fate < 0.06 and one.epoch:
                    assert one.beat(member_epoch=one.epoch + 9).error_code == ErrorCode.FENCED_MEMBER_EPOCH
                    truth.ends(one.id, "fenced")
                    one.epoch, one.has = 0, {role: set() for role in ROLES}
                else:
                    one.beat(says=one.epoch > 0 and chance.random() < 0.7)
            of.wait(1)
            check(group(of))
    return truth


def check(streams: Streams) -> None:
    """A task has one active member, and no two members of a process have the same task."""
    active = [task for one in streams.members.values() for task in one.owned["active"]]
    assert len(active) == len(set(active))
    for process in {one.process for one in streams.members.values()}:
        some = [one for one in streams.members.values() if one.process == process]
        held = [task for one in some for role in ROLES for task in one.owned[role]]
        assert len(held) == len(set(held))
