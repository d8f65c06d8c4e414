"""Random histories of groups with known truth: clients without sockets, a broker without sockets, a clock of the test.

``simulated(seed, protocol)`` gives a capture and what the broker itself knows: who was in which generation, which
request or time-out began a rebalance, and who had what at the end.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import streams_truth
from broker_talk import Bench, Client
from made_captures import Row, read

from kwire import messages
from kwire.history.groups import CAUSES, EVENTS
from kwire.protocol.embedded import ASSIGNMENT, SUBSCRIPTION, decode_embedded, encode_embedded
from kwire.testing import packets
from kwire.testing.broker import consumers, conversation, groups, sharing, streams

TOPICS = {"orders": 4, "bills": 3}
GROUP = "g"
STEP = 1.0
SESSION = 10.0
BEGINS = {"join", "rejoin", "leave", "subscription"}


@dataclass
class Truth:
    """What the broker knows."""

    generations: dict[int, frozenset[str]] = field(default_factory=dict)
    """Members by generation (classic)."""
    epochs: set[tuple[str, int]] = field(default_factory=set)
    """Members and epochs that they had."""
    began: list[tuple[str, Any]] = field(default_factory=list)
    """Of each rebalance: ``request`` and the exchange, or ``silence`` and the member."""
    takes_part: set[int] = field(default_factory=set)
    """Exchanges by which somebody joined or left."""
    silent: set[str] = field(default_factory=set)
    """Members that were dropped, since nothing was heard of them."""
    left: set[str] = field(default_factory=set)
    had: dict[str, set[frozenset[tuple[str, int]]]] = field(default_factory=dict)
    """What each member was told to have, at any time."""
    at_end: dict[str, frozenset[tuple[str, int]]] = field(default_factory=dict)


class _Driver:
    """A client that is a member, or wants to be one."""

    def __init__(self, bench: Bench, name: str, truth: Truth, chance: random.Random) -> None:
        self.bench, self.truth, self.chance = bench, truth, chance
        self.client = Client(bench, 0, name, 50_000 + bench.core.connections)
        self.id = ""
        self.waits: str | None = None
        self.alive = True
        self.topics = [one for one in TOPICS if chance.random() < 0.8] or ["orders"]

    def send(self, message: Any, version: int, waits: str) -> None:
        self.client.send(message, version)
        self.waits = waits

    def tick(self) -> None:
        """What it does in a second."""
        for answer in self.client.answers():
            self.waits = None
            self.got(answer)
        if self.waits is None and self.alive:
            self.goes_on()

    def got(self, answer: Any) -> None:
        raise NotImplementedError

    def goes_on(self) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        raise NotImplementedError

    def crash(self) -> None:
        self.alive = False


class Classic(_Driver):
    """A member of a classic group."""

    state, generation, leads = "out", -1, False
    members: Any = ()

    def goes_on(self) -> None:
        if self.state == "out":
            data = encode_embedded(SUBSCRIPTION, {"version": 0, "topics": self.topics, "user_data": None})
            protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=data)
            self.send(
                messages.JoinGroupRequest(
                    group_id=GROUP,
                    session_timeout_ms=int(SESSION * 1000),
                    rebalance_timeout_ms=15_000,
                    member_id=self.id,
                    protocol_type="consumer",
                    protocols=[protocol],
                ),
                7,
                "join",
            )
        elif self.state == "joined":
            kind = messages.SyncGroupRequest
            given = []
            if self.leads:
                given = [
                    kind.SyncGroupRequestAssignment(
                        member_id=number, assignment=encode_embedded(ASSIGNMENT, {
                            "version": 0,
                            "assigned_partitions": [{"topic": t, "partitions": p} for t, p in has.items()],
                            "user_data": None,
                        }),
                    )
                    for number, has in self._shares().items()
                ]  # fmt: skip
            self.send(
                kind(
                    group_id=GROUP,
                    generation_id=self.generation,
                    member_id=self.id,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=given,
                ),
                5,
                "sync",
            )
        elif self.chance.random() < 0.4:
            self.send(
                messages.HeartbeatRequest(group_id=GROUP, generation_id=self.generation, member_id=self.id), 4, "beat"
            )

    def _shares(self) -> dict[str, dict[str, list[int]]]:
        names = sorted(number for number, _ in self.members)
        found: dict[str, dict[str, list[int]]] = {one: {} for one in names}
        for topic, count in TOPICS.items():
            takers = [one for one in names if topic in dict(self.members)[one]]
            for part in range(count if takers else 0):
                found[takers[part % len(takers)]].setdefault(topic, []).append(part)
        return found

    def got(self, answer: Any) -> None:
        if isinstance(answer, messages.JoinGroupResponse):
            if answer.error_code == 79:
                self.id = answer.member_id
            elif answer.error_code == 25:
                self.id = ""
            elif not answer.error_code:
                self.id, self.generation, self.state = answer.member_id, answer.generation_id, "joined"
                self.leads = answer.leader == self.id
                self.members = [
                    (one.member_id, decode_embedded(SUBSCRIPTION, bytes(one.metadata))["topics"])
                    for one in answer.members
                ]
            return
        code = answer.error_code
        if isinstance(answer, messages.SyncGroupResponse) and not code:
            self.state = "stable"
            has = (
                decode_embedded(ASSIGNMENT, bytes(answer.assignment))["assigned_partitions"]
                if answer.assignment
                else []
            )
            parts = frozenset((one["topic"], part) for one in has for part in one["partitions"])
            self.truth.had.setdefault(self.id, set()).add(parts)
        elif code == 27:
            self.state = "out"
        elif code:
            self.state, self.id = "out", ""

    def leave(self) -> None:
        self.alive = False
        if self.id and self.waits is None:
            kind = messages.LeaveGroupRequest
            self.send(kind(group_id=GROUP, members=[kind.MemberIdentity(member_id=self.id)]), 4, "leave")


class _Beating(_Driver):
    """A member of a group whose members reconcile by heartbeats."""

    kind: Any
    epoch = 0
    owns: frozenset[Any] = frozenset()
    says = False

    def goes_on(self) -> None:
        if self.epoch and self.chance.random() < 0.5:
            return
        self.id = self.id or self.named()
        request = self.kind(group_id=GROUP, member_id=self.id, member_epoch=self.epoch)
        if not self.epoch:
            self.joins(request)
        elif self.says:
            self.confirms(request)
            self.says = False
        elif self.chance.random() < 0.05:
            self.changes(request)
        self.send(request, 1, "beat")

    def named(self) -> str:
        """The id that it gives itself."""
        return f"m-{self.chance.getrandbits(32):x}"

    def joins(self, request: Any) -> None:
        request.subscribed_topic_names = self.topics

    def confirms(self, request: Any) -> None:
        """Says what it has."""

    def changes(self, request: Any) -> None:
        """Wants something else."""
        self.topics = [one for one in TOPICS if self.chance.random() < 0.8] or ["orders"]
        request.subscribed_topic_names = self.topics

    def told(self, answer: Any) -> frozenset[Any] | None:
        """What it is to have, if the answer says it."""
        if answer.assignment is None:
            return None
        return frozenset((one.topic_id, part) for one in answer.assignment.topic_partitions for part in one.partitions)

    def parts(self) -> frozenset[tuple[str, int]]:
        """What it has, by name."""
        return frozenset((self.bench.cluster.by_id[topic].name, part) for topic, part in self.owns)

    def got(self, answer: Any) -> None:
        if answer.error_code:
            self.epoch, self.owns = 0, frozenset()
            return
        if answer.member_epoch < 0:
            return
        self.id, self.epoch = answer.member_id or self.id, answer.member_epoch
        self.truth.epochs.add((self.id, self.epoch))
        has = self.told(answer)
        if has is not None:
            self.owns, self.says = has, True
            self.truth.had.setdefault(self.id, set()).add(self.parts())

    def leave(self) -> None:
        self.alive = False
        if self.epoch and self.waits is None:
            self.send(self.kind(group_id=GROUP, member_id=self.id, member_epoch=-1), 1, "leave")


class Consumer(_Beating):
    """A member of the consumer protocol."""

    kind = messages.ConsumerGroupHeartbeatRequest

    def named(self) -> str:
        return ""

    def joins(self, request: Any) -> None:
        super().joins(request)
        request.rebalance_timeout_ms, request.topic_partitions = 15_000, []

    def confirms(self, request: Any) -> None:
        by: dict[Any, list[int]] = {}
        for topic, part in sorted(self.owns, key=str):
            by.setdefault(topic, []).append(part)
        request.topic_partitions = [self.kind.TopicPartitions(topic_id=t, partitions=p) for t, p in by.items()]


class Share(_Beating):
    """A member of a share group. It confirms nothing."""

    kind = messages.ShareGroupHeartbeatRequest


class Streams(_Beating):
    """A member of a streams group. Some bring a newer topology."""

    kind = messages.StreamsGroupHeartbeatRequest

    def joins(self, request: Any) -> None:
        request.topology = streams_truth.topology(epoch=int(self.chance.random() < 0.2))
        request.rebalance_timeout_ms, request.process_id = 15_000, self.id
        request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []

    def confirms(self, request: Any) -> None:
        request.active_tasks = streams_truth.given(set(self.owns))
        request.standby_tasks, request.warmup_tasks = [], []

    def changes(self, request: Any) -> None:
        """It wants something else with another topology only."""

    def told(self, answer: Any) -> frozenset[Any] | None:
        if answer.active_tasks is None:
            return None
        return frozenset((one.subtopology_id, part) for one in answer.active_tasks for part in one.partitions)

    def parts(self) -> frozenset[tuple[str, int]]:
        return self.owns


KINDS: dict[str, type[_Driver]] = {"classic": Classic, "consumer": Consumer, "share": Share, "streams": Streams}


@contextmanager
def _observed(truth: Truth) -> Iterator[None]:
    """Lets the broker say what it does."""
    now: list[Any] = [None]
    handled, prepare, complete, drop = (
        conversation.Conversation._handled,
        groups.Group._prepare,
        groups.Group._complete,
        groups.Group._drop,
    )
    silent: list[str] = []

    def on_handled(self: Any, pending: Any) -> Any:
        now[0] = pending.exchange
        try:
            return handled(self, pending)
        finally:
            now[0] = None

    def on_prepare(self: Any, at: float) -> None:
        if silent:
            truth.began.append(("silence", silent[-1]))
        elif now[0] is not None:
            truth.began.append(("request", now[0].number))
        prepare(self, at)

    def on_complete(self: Any, at: float) -> None:
        before = set(self.members)
        complete(self, at)
        truth.generations[self.generation] = frozenset(self.members)
        truth.left |= before - set(self.members)

    def on_drop(self: Any, member: Any, at: float) -> None:
        of_silence = now[0] is None or now[0].api_key != 13
        if of_silence:
            truth.silent.add(member.id)
            silent.append(member.id)
        truth.left.add(member.id)
        drop(self, member, at)
        if of_silence:
            silent.pop()

    def advancing(plain: Any) -> Any:
        def on_advance(self: Any, at: float) -> None:
            before = set(self.members)
            plain(self, at)
            truth.silent |= before - set(self.members)
            truth.left |= before - set(self.members)

        return on_advance

    def leaving(plain: Any) -> Any:
        def on_leave(self: Any, number: str, for_a_while: bool) -> int:
            truth.left.add(number)
            code: int = plain(self, number, for_a_while)
            return code

        return on_leave

    def assigning(plain: Any) -> Any:
        def on_assign(self: Any, *args: Any) -> None:
            before = self.epoch
            plain(self, *args)
            if self.epoch != before and now[0] is not None:
                truth.began.append(("request", now[0].number))

        return on_assign

    share_leave, share_beat = sharing.Share.leave, sharing.Share.heartbeat

    def on_share_leave(self: Any, number: str) -> int:
        known = number in self.members
        made = share_leave(self, number)
        if known:
            truth.left.add(number)
            truth.began.append(("silence", number) if now[0] is None else ("request", now[0].number))
            truth.silent |= {number} if now[0] is None or now[0].api_key != 76 else set()
        return made

    def on_share_beat(self: Any, *args: Any) -> Any:
        before = self.epoch
        made = share_beat(self, *args)
        if self.epoch != before and now[0] is not None:
            truth.began.append(("request", now[0].number))
        return made

    patches: list[tuple[Any, str, Any]] = [
        (sharing.Share, "leave", on_share_leave),
        (sharing.Share, "heartbeat", on_share_beat),
        (conversation.Conversation, "_handled", on_handled),
        (groups.Group, "_prepare", on_prepare),
        (groups.Group, "_complete", on_complete),
        (groups.Group, "_drop", on_drop),
    ]
    for one in (consumers.Consumers, streams.Streams):
        for name, made in (("advance", advancing), ("leave", leaving), ("_assign", assigning)):
            patches.append((one, name, made(getattr(one, name))))
    with ExitStack() as stack:
        for of, name, instead in patches:
            stack.enter_context(mock.patch.object(of, name, instead))
        yield


def simulated(seed: int, protocol: str, seconds: int = 120) -> tuple[bytes, Truth, Bench]:
    """A capture of a group that lived for some time, what the broker knows of it, and the broker."""
    chance, truth = random.Random(seed), Truth()
    bench = Bench(seed=seed, consumer_session=SESSION, consumer_heartbeat=SESSION / 9, partitions=1)
    for topic, count in TOPICS.items():
        bench.cluster.create_topic(topic, count)
    names = Client(bench, 0, "admin")
    kind = KINDS[protocol]
    drivers: list[_Driver] = []
    with _observed(truth):
        names.ask(messages.MetadataRequest(topics=None), 12)
        for second in range(seconds):
            if second % 10 == 0 and (len(drivers) < 2 or chance.random() < 0.5) and len(drivers) < 40:
                drivers.append(kind(bench, f"c{len(drivers)}", truth, chance))
            for one in drivers:
                bench.clock.now += 0.001 + chance.random() / 1000
                bench.core.settle()
                one.tick()
                if one.alive and chance.random() < 0.01:
                    chance.choice([one.leave, one.crash])()
            bench.wait(STEP)
    for one in drivers:
        for answer in one.client.answers():
            one.got(answer)
        if one.alive and isinstance(one, _Beating):
            truth.at_end[one.id] = one.parts()
    return bench.core.recording.pcapng(), truth, bench


# --- what rows have to say --------------------------------------------------------------------------------------------


def exchanges(data: bytes, bench: Any) -> dict[tuple[int, int], int]:
    """The number of the exchange of each request, by connection and frame."""
    numbers = {(one.client_id, one.correlation_id): one.number for one in bench.core.recording.exchanges}
    return {
        (row["connection"], row["frame"]): numbers[row["client_id"], row["correlation_id"]]
        for row in read(data)
        if row["direction"] == "request" and row["status"] == "ok"
    }


def causes(rows: list[Row], of: dict[tuple[int, int], int]) -> list[tuple[str, Any]]:
    """Why rebalances began, as ``Truth.began`` says it."""
    found: list[tuple[str, Any]] = []
    for row in rows:
        if row["event"] != "rebalance_began":
            continue
        if row["cause"] in BEGINS:
            found.append(("request", of[row["cause_connection"], row["cause_frame"]]))
        else:
            found.append(
                ("silence", row["cause_member_id"]) if row["cause"] == "session_timeout" else ("unknown", None)
            )
    return found


def holdings(rows: Iterable[Row]) -> Iterator[tuple[str, frozenset[tuple[str, int]] | None]]:
    """What members had, one after the other, by what they gained and lost; None: they are members no longer."""
    has: dict[str, set[tuple[str, int]]] = {}
    for row in rows:
        if row["event"] in ("fenced", "left"):
            has.pop(row["member_id"], None)
            yield row["member_id"], None
        if row["event"] not in ("assigned", "revoked"):
            continue
        mine = has.setdefault(row["member_id"], set())
        if row["gained"] is None and row["lost"] is None:
            has.pop(row["member_id"])
            continue
        for one in row["lost"] or ():
            mine.discard((one["topic"] or one["subtopology"], one["partition"]))
        for one in row["gained"] or ():
            mine.add((one["topic"] or one["subtopology"], one["partition"]))
        if len(mine) == row["partitions"]:
            yield row["member_id"], frozenset(mine)


def check(rows: list[Row], truth: Truth, of: dict[tuple[int, int], int], *, whole: bool = True) -> None:
    """Nothing is invented: each row says what the broker knows, or that it is not known. ``whole``: nothing is lost, so
    a time-out that fits was one."""
    for row in rows:
        member, epoch, event = row["member_id"], row["epoch"], row["event"]
        assert event in EVENTS
        assert row["cause"] is None or row["cause"] in CAUSES
        if row["kind"] == "classic" and event in ("joined", "rejoined", "synced", "assigned", "revoked"):
            assert member in truth.generations[epoch]
        elif event in ("joined", "epoch_bumped") and member is not None:
            assert (member, epoch) in truth.epochs
        elif event == "left":
            assert member in truth.left
        if whole and event == "left" and row["cause"] == "session_timeout":
            assert member in truth.silent
        if row["cause"] in BEGINS:
            assert (row["cause_connection"], row["cause_frame"]) in of
    for member, parts in holdings(rows):
        # Without Metadata, names are not known.
        assert parts is None or parts in truth.had[member] or any(topic is None for topic, _ in parts)


def told(rows: list[Row], truth: Truth, of: dict[tuple[int, int], int]) -> None:
    """A capture without losses says what there is to say: each rebalance that a member heard of, and its cause."""
    assert {row["status"] for row in rows} == {"ok"}
    check(rows, truth, of)
    classic = any(row["kind"] == "classic" for row in rows)
    found = causes(rows, of)
    if classic:
        # In this order. What nobody was told of has no row.
        began = iter(truth.began)
        assert all(one == ("unknown", None) or one in began for one in found)
        members: dict[int, set[str]] = {}
        for row in rows:
            if row["event"] in ("joined", "rejoined"):
                members.setdefault(row["epoch"], set()).add(row["member_id"])
        # A member whose client had gone has no answer in the capture.
        assert all(members[one] <= truth.generations[one] for one in members)
        assert set(members) == {one for one, some in truth.generations.items() if some}
    else:
        assert all(kind == "request" or (kind == "silence" and what in truth.silent) for kind, what in found)
        last = dict(holdings(rows))
        assert all((last.get(member) or frozenset()) == parts for member, parts in truth.at_end.items())
    assert 0 < sum(row["event"] == "rebalance_ended" for row in rows) <= len(truth.began)


def lossy(data: bytes, seed: int, share: float = 0.03) -> bytes:
    """The capture without some of its packets."""
    chance = random.Random(seed)
    return packets.write_pcapng([one for one in packets.read(data) if chance.random() >= share])
