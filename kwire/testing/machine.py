"""A state machine of Hypothesis that drives a client against the mock broker, with faults, and holds it to promises.

    from kwire.testing.machine import Adapter, ClientMachine

    class Mine(Adapter):
        def __init__(self, bootstrap: str) -> None: ...
        def produce(self, topic: str, partition: int, values: list[bytes]) -> list[bytes]: ...
        def fetch(self, topic: str, partition: int, offset: int, count: int) -> list[tuple[int, bytes]]: ...

    class Machine(ClientMachine):
        adapter = Mine

    TestMine = Machine.TestCase

What a client promises, and the machine asks after each step that touches it:

- What it says is written is in the log. With ``idempotent``, it is there once, and in order.
- It reads what is in the log: each record with its offset, nothing else.
- An offset that it says is committed is read back.
- Members of a group share all partitions: none has two owners, none is left over.
- It sends nothing that a broker closes the connection for.

A client must get over ``FAULTS``: errors that say so, closed connections, delays.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kwire.testing.broker import Broker, Rule
from kwire.testing.recipes import Recipe

__all__ = ["FAULTS", "Adapter", "ClientMachine", "Fault"]


class Adapter(ABC):
    """A client under test: one producer, one reader, and members of one group.

    It is made with the bootstrap servers. ``produce`` and ``fetch`` are needed. The machine leaves out what an adapter
    does not override. An exception of any method fails the test.
    """

    idempotent: ClassVar[bool] = False
    """Whether the producer writes each record once."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @abstractmethod
    def produce(self, topic: str, partition: int, values: list[bytes]) -> list[bytes]:
        """Write records, wait for all answers (acks=all), and give the values that were acknowledged."""

    @abstractmethod
    def fetch(self, topic: str, partition: int, offset: int, count: int) -> list[tuple[int, bytes]]:
        """Read ``count`` records from ``offset`` on. Gives their offsets and values."""

    def commit(self, topic: str, partition: int, offset: int) -> bool:
        """Commit an offset of a group without members. Says whether that was acknowledged."""
        raise NotImplementedError

    def committed(self, topic: str, partition: int) -> int | None:
        """The committed offset of that group; None for none."""
        raise NotImplementedError

    def join(self, member: int, topics: list[str]) -> None:
        """Let a member, by its number, subscribe to topics in a second group."""
        raise NotImplementedError

    def assigned(self, member: int) -> set[tuple[str, int]]:
        """Poll once, briefly, and give the partitions that the member has now."""
        raise NotImplementedError

    def leave(self, member: int) -> None:
        """Let a member leave."""
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027 - not each has any
        """Give back all resources."""


@dataclass(frozen=True, repr=False, kw_only=True)
class Fault(Recipe):
    """A fault of the broker that happens to the next request of an API. ``Rule`` says what each one does."""

    api: str
    error: str | None = None
    close: bool = False
    handled: bool = True
    delay: float = 0.0
    throttle: float = 0.0

    def on(self, broker: Broker) -> Rule:
        """Make the rule."""
        made = broker.on(self.api, times=1)
        if self.error is not None:
            made.error(self.error)
        if self.delay:
            made.delay(self.delay)
        if self.throttle:
            made.throttle(self.throttle)
        if self.close:
            made.close(handled=self.handled)
        return made


FAULTS: Final = (
    Fault(api="Produce", error="NOT_LEADER_OR_FOLLOWER"),
    Fault(api="Produce", close=True, handled=False),
    Fault(api="Produce", close=True),
    Fault(api="Produce", delay=0.1),
    Fault(api="Produce", throttle=0.1),
    Fault(api="Fetch", error="NOT_LEADER_OR_FOLLOWER"),
    Fault(api="Fetch", close=True),
    Fault(api="Metadata", error="LEADER_NOT_AVAILABLE"),
    Fault(api="ListOffsets", error="NOT_LEADER_OR_FOLLOWER"),
    Fault(api="FindCoordinator", error="COORDINATOR_NOT_AVAILABLE"),
    Fault(api="OffsetCommit", error="COORDINATOR_LOAD_IN_PROGRESS"),
    Fault(api="OffsetFetch", error="COORDINATOR_LOAD_IN_PROGRESS"),
    Fault(api="JoinGroup", error="COORDINATOR_LOAD_IN_PROGRESS"),
    Fault(api="SyncGroup", error="REBALANCE_IN_PROGRESS"),
)
"""What a client gets over by itself (``Fault``)."""

Place = tuple[str, int]
F = TypeVar("F", bound=Callable[..., Any])


def _has(name: str) -> Callable[[F], F]:
    """A precondition: the adapter has this method."""
    made: Callable[[F], F] = precondition(lambda self: getattr(self.adapter, name) is not getattr(Adapter, name))
    return made


class ClientMachine(RuleBasedStateMachine):
    """The state machine. A subclass says which ``adapter`` it drives, and may change the rest."""

    adapter: ClassVar[type[Adapter]]
    release: ClassVar[str | None] = None
    """The Kafka release of the broker; None is the newest."""
    nodes: ClassVar[int] = 2
    topics: ClassVar[dict[str, int]] = {"a": 2, "b": 1}
    """Topics and their number of partitions."""
    members: ClassVar[int] = 2
    """Members that the group can have."""
    faults: ClassVar[tuple[Fault, ...]] = FAULTS
    patience: ClassVar[float] = 20.0
    """Seconds in which members must have shared out all partitions."""

    def __init__(self) -> None:
        super().__init__()
        self.broker: Broker = Broker(release=self.release, nodes=self.nodes, topics=self.topics)
        self.broker.__enter__()
        self.client: Adapter = self.adapter(self.broker.bootstrap)
        self._places = [(name, number) for name, count in self.topics.items() for number in range(count)]
        self._sent: dict[Place, set[bytes]] = {place: set() for place in self._places}
        self._acknowledged: dict[Place, list[bytes]] = {place: [] for place in self._places}
        self._committed: dict[Place, set[int | None]] = {place: {None} for place in self._places}
        self._joined: set[int] = set()
        self._count = 0

    def teardown(self) -> None:
        """Look at everything once more without faults, and end."""
        try:
            self.broker.forget_rules()
            for place in range(len(self._places)):
                self.read(place=place, skip=0)
                self.read(place=place, skip=1)
            if self._joined:
                self._shared()
            self.nothing_is_refused()
        finally:
            self.client.close()
            self.broker.__exit__()

    def _log(self, place: Place) -> list[tuple[int, bytes]]:
        return [(one.offset or 0, one.value or b"") for one in self.broker.records(*place)]

    # -- what happens

    @rule(data=st.data())
    def fault(self, data: st.DataObject) -> None:
        """The next request of an API fails."""
        data.draw(st.sampled_from(self.faults)).on(self.broker)

    @rule(place=st.integers(0, 99), node=st.integers(0, 99))
    def move_leader(self, place: int, node: int) -> None:
        """Another node leads a partition."""
        self.broker.move_leader(*self._places[place % len(self._places)], 1 + node % self.nodes)

    @rule(place=st.integers(0, 99), count=st.integers(1, 3))
    def write(self, place: int, count: int) -> None:
        """The client writes records."""
        where = self._places[place % len(self._places)]
        values = [b"%d" % (self._count + number) for number in range(count)]
        self._count += count
        self._sent[where].update(values)
        said = self.client.produce(*where, values)
        assert set(said) <= set(values), f"acknowledged what was not sent: {set(said) - set(values)}"
        self._acknowledged[where] += said
        log = [value for _, value in self._log(where)]
        known = self._acknowledged[where]
        assert set(known) <= set(log), f"acknowledged, and not in {where}: {set(known) - set(log)}"
        if self.adapter.idempotent:
            assert len(set(log)) == len(log), f"written twice to {where}: {log}"
            assert [one for one in log if one in set(known)] == known, f"another order in {where}: {log}"

    @rule(place=st.integers(0, 99), skip=st.integers(0, 2))
    def read(self, place: int, skip: int) -> None:
        """The client reads a partition, from its begin or a little later."""
        where = self._places[place % len(self._places)]
        there = self._log(where)
        wanted = there[min(skip, len(there)) :]
        if wanted:
            got = self.client.fetch(*where, wanted[0][0], len(wanted))
            assert got == wanted, f"{where} has {wanted}, the client read {got}"

    @_has("commit")
    @rule(place=st.integers(0, 99), offset=st.integers(0, 5))
    def commit(self, place: int, offset: int) -> None:
        """The client commits an offset."""
        where = self._places[place % len(self._places)]
        if self.client.commit(*where, offset):
            self._committed[where] = {offset}
        else:
            self._committed[where].add(offset)

    @_has("committed")
    @rule(place=st.integers(0, 99))
    def committed(self, place: int) -> None:
        """The client asks what is committed."""
        where = self._places[place % len(self._places)]
        got = self.client.committed(*where)
        assert got in self._committed[where], f"{where}: {got} is committed, not {self._committed[where]}"

    @_has("join")
    @rule(member=st.integers(0, 99))
    def join(self, member: int) -> None:
        """A member joins, or leaves if it is there."""
        number = member % self.members
        if number in self._joined:
            self.client.leave(number)
            self._joined.discard(number)
        else:
            self.client.join(number, list(self.topics))
            self._joined.add(number)

    @precondition(lambda self: self._joined)
    @rule()
    def share(self) -> None:
        """The members poll until they have shared out all partitions."""
        self._shared()

    def _shared(self) -> None:
        until = time.monotonic() + self.patience
        while True:
            has = [self.client.assigned(number) for number in sorted(self._joined)]
            owned = [place for one in has for place in one]
            if sorted(owned) == self._places:
                return
            assert time.monotonic() < until, f"after {self.patience} s members have {has}"

    @invariant()
    def nothing_is_refused(self) -> None:
        """The broker has closed no connection because of what the client sent."""
        errors = self.broker.errors()
        assert not errors, errors[0]
