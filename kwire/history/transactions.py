"""The history of transactions: from what producers, coordinators and readers say to one row for each transaction.

``Transactions`` is a state machine. It takes ``Step`` objects in the order of the capture, of all connections, and
gives a row (a dict) for each transaction, once nothing more can be said of it. It knows nothing of bytes.

Rules kept here:

- Only what a broker accepted counts: a partition belongs to a transaction, and records are written, once the response
  says so. Records whose response is not in the capture are counted apart (``unacknowledged``).
- A transaction begins with the first request that a broker accepted for it: AddPartitionsToTxn, AddOffsetsToTxn, or
  with transactions v2 Produce (v12) and TxnOffsetCommit (v5).
- How it ended is said by an answer to EndTxn, by a marker, or by a producer that took over. If none of these is in the
  capture, the end is ``open`` at the end of the capture, and else ``unknown``.
- A coordinator answers InitProducerId with CONCURRENT_TRANSACTIONS while it aborts what is open. Without this answer
  the transaction was over before, and its end is ``unknown``.
- What another producer or a time-out did looks the same to a client that is refused. The end is ``timed_out`` if the
  time-out is known and has passed, and else ``fenced``. If packets of the capture were missing before, it is
  ``aborted``, and ``unknown`` if they were of its own connections.
- A leader that refuses records for their epoch knows a newer one: the transaction is over. If nobody else says how it
  ended, it ended as if its coordinator had refused then.
- A batch that is sent again gets the offset that it had: leaders remember the last ``_SENT_AGAIN``. It counts once.
- With two-phase commit, a producer that takes over may keep what was prepared: the answer names it, and it goes on.
- An EndTxn alone is no transaction: who ends one twice gets the same answer again.
- If packets are missing on a connection of an open transaction, the row says so (``gap``): its end, and the begin of
  the next, may be among them.
- A transaction holds the last stable offset of a partition back if this offset is its first offset there. Nothing else
  is compared.
- State is bounded by producers, partitions of a transaction and offsets that are held back. What is given up is a row.

Sources: KIP-98, KIP-360, KIP-447, KIP-890, KIP-939.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import Field, dataclass, field, fields
from functools import cache
from typing import Any, Final, NamedTuple, get_type_hints

from kwire import stored
from kwire.history.steps import shown
from kwire.schema.keys import ApiKey

__all__ = ["ENDS", "MOST_EVENTS", "MOST_PARTITIONS", "MOST_PRODUCERS", "STATUSES", "Step", "Transactions", "Write"]

MOST_PRODUCERS: Final = 1 << 14
"""Transactional ids that are remembered (int)."""
MOST_PARTITIONS: Final = 1 << 10
"""Partitions of one transaction that are listed (int). Records of further ones are counted all the same."""
MOST_EVENTS: Final = 64
"""Events of one transaction that are listed (int)."""
_MOST_ASKED: Final = 1 << 14
"""Requests that wait for their response."""
_MOST_HELD: Final = 1 << 13
"""Partitions and offsets at which readers were held back."""
_MOST_READERS: Final = 32
_MOST_ERRORS: Final = 16
_MOST_CONNECTIONS: Final = 64
_SENT_AGAIN: Final = 5
"""Batches of a producer in a partition that a leader knows again."""

ENDS: Final = {
    "committed": "a broker accepted EndTxn with a commit, or a commit marker was written",
    "aborted": "a broker accepted EndTxn with an abort, an abort marker was written, or the producer began anew",
    "timed_out": "it was open for longer than its time-out, and its coordinator refused it or aborted it",
    "fenced": "another producer with the same transactional id took over, which aborts it",
    "open": "it was open at the end of the capture",
    "unknown": "its end is not in the capture",
}
"""The words of ``end``, and what each means (dict)."""

STATUSES: Final = {
    "ok": "a transaction, from its begin to its end or to the end of the capture",
    "begun_before": "it had begun before its first request in the capture: partitions and records are those since",
    "gap": "packets are missing on its connections while it was open: it may be several transactions",
    "given_up": "it was given up to bound memory, while it was open",
}
"""The words of ``status``, and what each means (dict)."""

_OF_PARTITION: Final = ("first", "records", "record_bytes", "marked", "offsets")


def _is_plain(one: Field[Any]) -> bool:
    """Whether a field has a text, a number or a truth."""
    return one.name == "begin" or all(word in ("str", "int", "bool", "None") for word in str(one.type).split(" | "))


def _fit(value: Any, type_: Any) -> Any:
    """The value of a plain field with this type. Raises one of ``stored.UNFIT``."""
    words = getattr(type_, "__name__", str(type_)).split(" | ")
    if value is None and "None" in words:
        return None
    if "bool" in words:
        return stored.truth(value)
    if "int" in words:
        return stored.number(value, -(1 << 63), (1 << 63) - 1)
    return stored.text(value) if "str" in words else value


_OVER: Final = ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "INVALID_PRODUCER_ID_MAPPING")
"""Errors that say that the coordinator has ended the transaction."""
_NONE: Final = "NONE"


class Step(NamedTuple):
    """What one frame says of one transaction, or of one partition of it.

    ``time`` and ``timeout``: microseconds. ``kind`` is one of:

    - ``init``: InitProducerId. ``timeout``, ``producer_id`` (-1: a producer that is new); of the response
      ``goes_on``: whether the transaction that was prepared goes on
    - ``add``: AddPartitionsToTxn, a partition; of the response with an ``error``. ``verify``: it is only asked about
    - ``group``: AddOffsetsToTxn
    - ``offsets``: TxnOffsetCommit. ``records``: how many offsets
    - ``produce``: of a partition. ``offset`` of the response is that of the first record
    - ``end``: EndTxn. ``committed``
    - ``marker``: WriteTxnMarkers, a partition. ``committed``
    - ``held``: a Fetch response whose last stable offset (``offset``) is before the high watermark. ``records``: by how
      much, ``waited``: whether a reader of committed records got none
    - ``gap``: packets are missing on the connection
    """

    kind: str
    response: bool = False
    capture: str = ""
    connection: int = -1
    frame: int = -1
    time: int | None = None
    correlation_id: int | None = None
    version: int = -1
    client_host: str = ""
    client_port: int = 0
    client_id: str | None = None
    broker: bool = False
    transactional_id: str | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    timeout: int | None = None
    committed: bool | None = None
    verify: bool = False
    group_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    records: int | None = None
    record_bytes: int | None = None
    waited: bool = False
    error: str | None = None
    goes_on: bool = False

    def save(self) -> list[Any]:
        """Its values, as JSON has them."""
        return list(self)

    @classmethod
    def restored(cls, values: Any) -> Step:
        """What ``save`` gave. Raises one of ``stored.UNFIT``."""
        return cls(*(_fit(value, type_) for value, type_ in zip(values, _step_types(), strict=True)))


@cache
def _step_types() -> tuple[Any, ...]:
    return tuple(get_type_hints(Step).values())


@dataclass(slots=True, eq=False)
class Write:
    """What a Produce request says of a partition, and its response if it is in the same window, before anybody needs
    steps.

    ``time``: of the request, in microseconds. ``key``: connection and correlation id. ``place``: key, topic and
    partition. ``producer``: id and epoch. ``request`` and ``response`` make the steps. ``taken``: the request was taken
    without its step.
    """

    name: str
    capture: str
    time: int | None
    key: tuple[int, int]
    frame: int
    place: tuple[tuple[int, int], str | None, int]
    producer: tuple[int | None, int | None]
    records: int
    record_bytes: int
    request: Callable[[], Step]
    offset: int = -1
    response: Callable[[], Step] | None = None
    taken: bool = False

    @property
    def connection(self) -> int:
        """That of its frames."""
        return self.key[0]


@dataclass(slots=True)
class _Held:
    """Where the last stable offset of a partition stood still."""

    first: int | None
    last: int | None
    records: int
    readers: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Partition:
    first: int | None = None
    records: int = 0
    record_bytes: int = 0
    marked: int | None = None
    offsets: tuple[int, ...] = ()
    """Those of the last batches."""


@dataclass(slots=True)
class _Open:
    """A transaction: open, or ended and not given out yet."""

    begin: Step
    known_begin: bool
    protocol: str | None
    producer_id: int | None
    epoch: int | None
    client: Step | None = None
    timeout: int | None = None
    partitions: dict[tuple[str | None, int | None], _Partition] = field(default_factory=dict)
    more: int = 0
    """Partitions that are not listed."""
    records: int = 0
    record_bytes: int = 0
    sent: int = 0
    """Records of requests, with and without a response."""
    groups: dict[str, None] = field(default_factory=dict)
    offsets: int = 0
    errors: dict[str, None] = field(default_factory=dict)
    connections: dict[int, None] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    gap: bool = False
    contended: bool = False
    """Whether another InitProducerId has to wait for its end."""
    asked: Step | None = None
    """The last EndTxn, as long as it has no answer."""
    refused: Step | None = None
    """The answer of the first leader that knows a newer epoch."""
    end: str | None = None
    ended: Step | None = None
    cause: str | None = None
    given_up: bool = False
    gaps: int = 0
    """How many gaps of the capture there were when it ended."""

    def save(self) -> dict[str, Any]:
        """Its values, as JSON has them."""
        made: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, Step):
                value = value.save()
            elif one.name == "partitions":
                value = [[*key, *(getattr(part, name) for name in _OF_PARTITION)] for key, part in value.items()]
            elif isinstance(value, dict):
                value = list(value)
            made[one.name] = value
        return made

    @classmethod
    def restored(cls, state: Any) -> _Open:
        """What ``save`` gave. Raises one of ``stored.UNFIT``."""
        made = cls(**{one.name: _fit(state[one.name], one.type) for one in fields(cls) if _is_plain(one)})
        made.begin = Step.restored(state["begin"])
        for name in ("client", "asked", "refused", "ended"):
            setattr(made, name, None if state[name] is None else Step.restored(state[name]))
        if made.end is not None and made.end not in ENDS:
            raise ValueError("no such end")
        for topic, partition, *values in state["partitions"]:
            first, records, size, marked, offsets = values
            key = (None if topic is None else stored.text(topic), stored.optional(partition, -(1 << 31)))
            made.partitions[key] = _Partition(
                stored.optional(first, -(1 << 63)), stored.number(records, 0), stored.number(size, 0),
                stored.optional(marked, -(1 << 63)),
                tuple(stored.number(one, 0, (1 << 63) - 1) for one in offsets)[:_SENT_AGAIN],
            )  # fmt: skip
        made.groups = dict.fromkeys(map(stored.text, state["groups"]))
        made.errors = dict.fromkeys(map(stored.text, state["errors"]))
        made.connections = dict.fromkeys(stored.number(one, 0) for one in state["connections"])
        made.events = [
            {
                "time": stored.optional(one["time"], -(1 << 63)),
                "event": stored.text(one["event"]),
                "capture": stored.text(one["capture"]),
                "connection": stored.number(one["connection"], -1),
                "frame": stored.number(one["frame"], -1),
            }
            for one in state["events"]
        ]
        return made


@dataclass(slots=True)
class _Producer:
    """What is known of a transactional id."""

    name: str
    producer_id: int | None = None
    epoch: int | None = None
    timeout: int | None = None
    seen: bool = False
    """Whether the capture had what came before: its InitProducerId, or the end of a transaction,"""
    gaps: int = 0
    """and how many gaps there were until then. In one of them its next transaction may have begun."""
    now: _Open | None = None


class Transactions:
    """Takes steps in order, and gives rows of transactions. ``add`` gives those that are complete, ``rest`` the others.

    ``events``: whether rows list what happened, one after the other.
    """

    def __init__(self, *, events: bool = True) -> None:
        self.events = events
        self._known: dict[str, _Producer] = {}
        self._names: dict[int, str] = {}
        """By producer id: the transactional id."""
        self._asked: dict[tuple[int, int | None], list[Step]] = {}
        """By connection and correlation id: what a request says."""
        self._held: dict[tuple[str | None, int | None, int | None], _Held] = {}
        self._given_up: list[dict[str, Any]] = []
        self._gaps = 0
        """How often packets were missing so far."""
        self._on: dict[int, dict[str, None]] = {}
        """Whose transactions have used a connection since its last gap."""

    def add(self, step: Step) -> Iterator[dict[str, Any]]:
        """Takes a step. Yields rows of transactions that are complete."""
        if step.kind == "held":
            self._hold(step)
        elif step.kind == "gap":
            self._gap(step)
        elif step.kind == "marker":
            if not step.response:
                yield from self._mark(step)
        elif not step.response:
            yield from self._ask(step)
        else:
            yield from self._answered(step)
        if self._given_up:
            rows, self._given_up = self._given_up, []
            yield from rows

    def asks(self, write: Write) -> Iterator[dict[str, Any]]:
        """Takes the request of a write: as a number, if its transaction is open and known."""
        now = self._open(write) if len(self._asked) < _MOST_ASKED else None
        if now is None:
            return self.add(write.request())
        now.sent += write.records
        write.taken = True
        waiting = self._asked.get(write.key)
        if waiting is not None and waiting[0].frame != write.frame:
            del self._asked[write.key]
        return iter(())

    def answers(self, write: Write) -> Iterator[dict[str, Any]]:
        """Takes the response."""
        assert write.response is not None
        if not write.taken:
            return self.add(write.response())
        now = self._open(write)
        if now is None:
            return self._told(write.request(), write.response())
        self._known[write.name] = self._known.pop(write.name)
        self._wrote(now, write.place[1:], write.offset, (write.records, write.record_bytes), write)
        return iter(())

    def _open(self, write: Write) -> _Open | None:
        """The transaction that a write is part of, if it is open and the write says nothing new of it."""
        one = self._known.get(write.name)
        now = None if one is None else one.now
        if one is None or now is None or now.end is not None or now.client is None:
            return None
        if (now.producer_id, now.epoch) != write.producer or (one.producer_id, one.epoch) != write.producer:
            return None
        if now.producer_id is None or self._names.get(now.producer_id) != write.name:
            return None
        return now if write.connection in now.connections else None

    def rest(self) -> Iterator[dict[str, Any]]:
        """Rows of all others, at the end of the capture."""
        for one in self._known.values():
            yield from self._give(one)

    # -- state

    def save(self) -> dict[str, Any]:
        """What is known, as JSON has it."""
        return {
            "known": [
                [
                    one.name,
                    one.producer_id,
                    one.epoch,
                    one.timeout,
                    one.seen,
                    one.gaps,
                    None if one.now is None else one.now.save(),
                ]
                for one in self._known.values()
            ],
            "names": [[number, name] for number, name in self._names.items()],
            "asked": [[step.save() for step in steps] for steps in self._asked.values()],
            "held": [[*key, one.first, one.last, one.records, list(one.readers)] for key, one in self._held.items()],
            "gaps": self._gaps,
        }

    def restore(self, state: Any) -> None:
        """Takes over what ``save`` gave. Raises one of ``stored.UNFIT``."""
        wide = -(1 << 63)
        for name, number, epoch, timeout, seen, gaps, now in state["known"]:
            self._known[stored.text(name)] = _Producer(
                name, stored.optional(number, wide), stored.optional(epoch, wide), stored.optional(timeout, wide),
                stored.truth(seen), stored.number(gaps, 0), None if now is None else _Open.restored(now),
            )  # fmt: skip
        for one in self._known.values():
            for connection in () if one.now is None else one.now.connections:
                self._on.setdefault(connection, {})[one.name] = None
        for number, name in state["names"]:
            self._names[stored.number(number, wide)] = stored.text(name)
        for some in state["asked"]:
            steps = [Step.restored(one) for one in some]
            self._asked[steps[0].connection, steps[0].correlation_id] = steps
        for topic, partition, offset, first, last, records, readers in state["held"]:
            key = (
                None if topic is None else stored.text(topic), stored.optional(partition, wide),
                stored.optional(offset, wide),
            )  # fmt: skip
            self._held[key] = _Held(
                stored.optional(first, wide), stored.optional(last, wide), stored.number(records, wide),
                dict.fromkeys(map(stored.text, readers)),
            )  # fmt: skip
        self._gaps = stored.number(state["gaps"], 0)

    # -- requests and responses

    def _ask(self, step: Step) -> Iterator[dict[str, Any]]:
        key = (step.connection, step.correlation_id)
        waiting = self._asked.get(key)
        if waiting is not None and waiting[0].frame == step.frame:
            waiting.append(step)
        else:
            self._asked.pop(key, None)
            self._asked[key] = [step]
            if len(self._asked) > _MOST_ASKED:
                del self._asked[next(iter(self._asked))]
        if step.kind == "end":
            one = self._of(step)
            if one is not None and one.now is not None and one.now.end is None and self._same(one.now, step):
                one.now.asked = step
                self._event(one.now, step, "commit asked" if step.committed else "abort asked")
        elif step.kind == "produce":
            one = self._of(step)
            if one is not None and one.now is not None and one.now.end is None and self._same(one.now, step):
                one.now.sent += step.records or 0
        return iter(())

    def _answered(self, answer: Step) -> Iterator[dict[str, Any]]:
        asked = self._asked.get((answer.connection, answer.correlation_id))
        if asked is None:
            return
        step = next(
            (
                one
                for one in asked
                if one.kind == answer.kind
                and (one.topic, one.partition) == (answer.topic, answer.partition)
                and answer.transactional_id in (None, one.transactional_id)
            ),
            None,
        )
        if step is None or step.transactional_id is None:
            return
        asked.remove(step)
        if not asked:
            del self._asked[answer.connection, answer.correlation_id]
        yield from self._told(step, answer)

    def _told(self, step: Step, answer: Step) -> Iterator[dict[str, Any]]:
        """Takes a response with its request."""
        assert step.transactional_id is not None
        one = self._producer(step.transactional_id)
        if answer.error not in (None, _NONE):
            yield from self._refused(one, step, answer)
        elif step.kind == "init":
            yield from self._initialised(one, step, answer)
        elif step.kind == "end":
            yield from self._ended(one, step, answer)
        elif step.kind == "add" and step.verify:
            return
        else:
            yield from self._accepted(one, step, answer)

    def _producer(self, name: str) -> _Producer:
        one = self._known.pop(name, None) or _Producer(name)
        self._known[name] = one  # the one that was used last stands last
        if len(self._known) > MOST_PRODUCERS:
            old = self._known.pop(next(iter(self._known)))
            if old.now is not None:
                old.now.given_up = old.now.end is None
                self._given_up += self._give(old)
            if old.producer_id is not None and self._names.get(old.producer_id) == old.name:
                del self._names[old.producer_id]
        return one

    def _of(self, step: Step) -> _Producer | None:
        return None if step.transactional_id is None else self._known.get(step.transactional_id)

    @staticmethod
    def _same(now: _Open, step: Step) -> bool:
        return (now.producer_id, now.epoch) == (step.producer_id, step.producer_epoch)

    @staticmethod
    def _late(now: _Open, step: Step) -> bool:
        """Whether its time-out has passed."""
        if now.timeout is None or step.time is None or now.begin.time is None or not now.known_begin:
            return False
        return step.time - now.begin.time >= now.timeout

    def _name(self, one: _Producer, producer_id: int | None, epoch: int | None) -> None:
        if one.producer_id is not None and one.producer_id != producer_id:
            self._names.pop(one.producer_id, None)
        one.producer_id, one.epoch = producer_id, epoch
        if producer_id is not None:
            self._names[producer_id] = one.name

    def _initialised(self, one: _Producer, step: Step, answer: Step) -> Iterator[dict[str, Any]]:
        now = one.now
        if now is not None and now.end is None and answer.goes_on:
            now.producer_id, now.epoch = answer.producer_id, answer.producer_epoch
            self._event(now, answer, f"kept by InitProducerId of {step.client_id or '-'}")
        elif now is not None and now.end is None:
            if now.refused is not None and not now.contended:
                self._over(now, now.refused)
            elif not now.contended:
                # A coordinator aborts what is open, and lets the producer ask once more: this one was over.
                said = f"over before InitProducerId in frame {step.frame}"
                if self._late(now, step):
                    said += ": its time-out had passed"
                self._close(now, "unknown", None, said)
            elif step.producer_id is not None and step.producer_id >= 0:
                self._close(now, "aborted", answer, "its producer began anew (InitProducerId)")
            else:
                who = step.client_id or "-"
                self._close(now, "fenced", answer, f"InitProducerId of {who} on {step.client_host}:{step.client_port}")
        if now is None or now.end is not None:
            yield from self._give(one)
        self._name(one, answer.producer_id, answer.producer_epoch)
        one.timeout, one.seen, one.gaps = step.timeout, True, self._gaps

    def _accepted(self, one: _Producer, step: Step, answer: Step) -> Iterator[dict[str, Any]]:
        """A broker accepted a partition, records, a group or offsets."""
        now = one.now
        begins = step.kind in ("add", "group") or _protocol(step) == "v2"
        if now is not None and now.end is None and not self._same(now, step):
            if step.producer_id == now.producer_id and (step.producer_epoch or 0) < (now.epoch or 0):
                return  # an answer to an older producer, which came late
            self._close(now, "unknown", None, "its end is not in the capture")
        if now is None or now.end is not None:
            if now is not None and self._same(now, step) and not begins:
                return  # it was asked before the end
            yield from self._give(one)
            one.seen = one.seen and one.gaps == self._gaps
            known = begins and (one.seen or step.kind in ("add", "group"))
            protocol = None if step.broker else _protocol(step)
            now = one.now = _Open(step, known, protocol, step.producer_id, step.producer_epoch, timeout=one.timeout)
            self._event(now, step, "began")
            if step.kind == "produce":
                now.sent = step.records or 0
        if step.kind == "add" and not step.broker and (step.topic, step.partition) in now.partitions and now.gap:
            # Clients add a partition once: packets with the end and the next begin are missing.
            self._close(now, "unknown", None, "its end is not in the capture")
            yield from self._give(one)
            now = one.now = _Open(step, True, "v1", step.producer_id, step.producer_epoch, timeout=one.timeout)
            self._event(now, step, "began")
        self._name(one, step.producer_id, step.producer_epoch)
        if not step.broker and now.client is None:
            now.client, now.protocol = step, now.protocol or _protocol(step)
            if now.begin.broker and begins:
                # The leader of a partition tells the coordinator before it answers.
                now.begin = step
                self._event(now, step, "began")
        if len(now.connections) < _MOST_CONNECTIONS:
            now.connections[step.connection] = None
            self._on.setdefault(step.connection, {})[one.name] = None
        if step.kind in ("add", "produce"):
            self._partition(now, step, answer)
        elif step.group_id is not None:
            if step.group_id not in now.groups:
                now.groups[step.group_id] = None
                self._event(now, step, f"offsets of group {step.group_id}")
            now.offsets += (step.records or 0) if step.kind == "offsets" else 0

    def _partition(self, now: _Open, step: Step, answer: Step) -> None:
        key = (step.topic, step.partition)
        if step.kind == "produce":
            self._wrote(now, key, answer.offset, (step.records or 0, step.record_bytes or 0), step)
        elif key not in now.partitions:
            if len(now.partitions) >= MOST_PARTITIONS:
                now.more += 1
                return
            now.partitions[key] = _Partition()
            self._event(now, step, f"added {shown(step.topic or '-')}:{step.partition}")

    def _wrote(self, now: _Open, key: Any, offset: int | None, sizes: tuple[int, int], step: Step | Write) -> None:
        """A broker has written. ``sizes``: records and their bytes, ``step``: the request."""
        mine = now.partitions.get(key)
        if mine is None:
            mine = _Partition()
            if len(now.partitions) < MOST_PARTITIONS:
                now.partitions[key] = mine
        if mine.first is None or (offset is not None and 0 <= offset < mine.first):
            mine.first = offset if offset is not None and offset >= 0 else mine.first
            topic, partition = key
            self._event(now, step, f"wrote {shown(topic or '-')}:{partition} from offset {offset}")
        if offset is not None and offset >= 0:
            if offset in mine.offsets:
                now.sent -= sizes[0]
                return
            mine.offsets = (*mine.offsets[1 - _SENT_AGAIN :], offset)
        for sums in (mine, now):
            sums.records += sizes[0]
            sums.record_bytes += sizes[1]

    def _ended(self, one: _Producer, step: Step, answer: Step) -> Iterator[dict[str, Any]]:
        now = one.now
        if now is not None and now.end is None:
            if self._same(now, step):
                self._close(now, "committed" if step.committed else "aborted", answer, "EndTxn")
            else:
                self._close(now, "unknown", None, "its end is not in the capture")
                yield from self._give(one)
        one.seen, one.gaps = True, self._gaps
        if answer.producer_id is not None and answer.producer_id >= 0:
            self._name(one, answer.producer_id, answer.producer_epoch)
        else:
            self._name(one, step.producer_id, step.producer_epoch)

    def _refused(self, one: _Producer, step: Step, answer: Step) -> Iterator[dict[str, Any]]:
        now = one.now
        if step.kind == "init" and answer.error == "CONCURRENT_TRANSACTIONS" and now is not None and now.end is None:
            now.contended = True
            self._event(now, step, f"InitProducerId of {step.client_id or '-'}: it has to wait")
        if now is None or now.end is not None or not self._same(now, step):
            return
        if step.kind == "produce":
            now.sent -= step.records or 0
        if len(now.errors) < _MOST_ERRORS:
            now.errors[f"{_API[step.kind]}: {answer.error}"] = None
        self._event(now, answer, f"{_API[step.kind]} refused: {answer.error}")
        if answer.error in _OVER and step.kind == "produce":
            now.refused = now.refused or answer
        elif answer.error in _OVER and step.kind != "init":
            self._over(now, answer)
        yield from ()

    def _over(self, now: _Open, answer: Step) -> None:
        """A coordinator, or a leader that knows a newer epoch, says that a transaction is over."""
        who = "the leader of a partition" if answer.kind == "produce" else "its coordinator"
        if now.gap:
            self._close(now, "unknown", None, f"its end may be among missing packets: {answer.error}")
        elif not now.known_begin or now.timeout is None or answer.error == "INVALID_PRODUCER_ID_MAPPING":
            self._close(now, "aborted", answer, f"by {who}: {answer.error}")
        elif self._gaps:
            # Another InitProducerId may be among missing packets.
            passed = "its time-out had passed" if self._late(now, answer) else "a producer took over"
            self._close(now, "aborted", answer, f"by its coordinator, perhaps because {passed}: {answer.error}")
        elif self._late(now, answer):
            self._close(now, "timed_out", answer, f"open for longer than {now.timeout / 1e6:g} s: {answer.error}")
        else:
            self._close(now, "fenced", answer, f"by a producer that is not in the capture: {answer.error}")

    def _mark(self, step: Step) -> Iterator[dict[str, Any]]:
        """A coordinator has a marker written."""
        name = self._names.get(step.producer_id if step.producer_id is not None else -1)
        one = None if name is None else self._known.get(name)
        now = None if one is None else one.now
        if one is None or now is None or now.producer_id != step.producer_id:
            return
        mine = now.partitions.get((step.topic, step.partition))
        # With v2 a marker has the next epoch, and so it has after a time-out.
        newer = (step.producer_epoch or 0) - (now.epoch or 0)
        if newer not in (0, 1):
            return
        if now.end is None:
            if step.committed:
                self._close(now, "committed", step, "WriteTxnMarkers")
            elif now.asked is None and self._late(now, step) and newer == 1 and not (self._gaps or now.contended):
                self._close(now, "timed_out", step, "WriteTxnMarkers, after its time-out")
            else:
                self._close(now, "aborted", step, "WriteTxnMarkers")
        if mine is not None and mine.marked is None:
            mine.marked = step.time
            self._event(now, step, f"marker for {shown(step.topic or '-')}:{step.partition}")
        yield from ()

    def _gap(self, step: Step) -> None:
        self._gaps += 1
        for name in self._on.pop(step.connection, ()):
            now = self._known[name].now
            if now is not None and now.end is None:
                now.gap = True

    def _hold(self, step: Step) -> None:
        key = (step.topic, step.partition, step.offset)
        one = self._held.get(key)
        if one is None:
            one = self._held[key] = _Held(step.time, step.time, 0)
            if len(self._held) > _MOST_HELD:
                del self._held[next(iter(self._held))]
        if step.time is not None:
            one.first = step.time if one.first is None else min(one.first, step.time)
            one.last = step.time if one.last is None else max(one.last, step.time)
        one.records = max(one.records, step.records or 0)
        if step.waited and len(one.readers) < _MOST_READERS:
            one.readers[f"{step.client_id or '-'} on {step.client_host}"] = None

    # -- rows

    def _event(self, now: _Open, step: Step | Write, what: str) -> None:
        if self.events and len(now.events) < MOST_EVENTS:
            now.events.append(
                {
                    "time": step.time,
                    "event": what,
                    "capture": step.capture,
                    "connection": step.connection,
                    "frame": step.frame,
                }
            )

    def _close(self, now: _Open, end: str, step: Step | None, cause: str) -> None:
        now.end, now.ended, now.cause, now.gaps = end, step, cause, self._gaps
        if step is not None:
            self._event(now, step, {"timed_out": "timed out"}.get(end, end))

    def _give(self, one: _Producer) -> Iterator[dict[str, Any]]:
        """The row of the transaction before, now that the next begins."""
        now, one.now = one.now, None
        if now is None:
            return
        for connection in now.connections:
            some = self._on.get(connection, {})
            some.pop(one.name, None)
            if not some:
                self._on.pop(connection, None)
        if now.end is not None and one.gaps < now.gaps:
            # It was open meanwhile.
            one.gaps = now.gaps
        yield self._row(one, now)

    def _row(self, one: _Producer, now: _Open) -> dict[str, Any]:
        if now.end is None and now.asked is None and now.refused is not None:
            self._over(now, now.refused)
        client = now.client or now.begin
        held = [
            self._held.pop((topic, partition, each.first), None)
            for (topic, partition), each in now.partitions.items()
            if each.first is not None
        ]
        some = [each for each in held if each is not None]
        spans = [each.last - each.first for each in some if each.first is not None and each.last is not None]
        end, cause = now.end, now.cause
        if end is None:
            end = "unknown" if now.given_up or now.asked is not None else "open"
            if now.asked is not None:
                word = "commit" if now.asked.committed else "abort"
                cause = f"EndTxn ({word}) was asked in frame {now.asked.frame}: its answer is not in the capture"
            elif now.given_up:
                cause = "given up to bound memory"
        began = now.begin.time if now.known_begin else None
        ended = None if now.ended is None else now.ended.time
        status = "given_up" if now.given_up else "gap" if now.gap else "ok" if now.known_begin else "begun_before"
        return {
            "capture": now.begin.capture,
            "connection": now.begin.connection,
            "frame": now.begin.frame,
            "transactional_id": one.name,
            "producer_id": now.producer_id,
            "producer_epoch": now.epoch,
            "protocol": now.protocol,
            "client_host": None if client.broker else client.client_host,
            "client_port": None if client.broker else client.client_port,
            "client_id": None if client.broker else client.client_id,
            "began": began,
            "timeout_ms": None if now.timeout is None else now.timeout // 1000,
            "partitions": [
                {
                    "topic": None if topic is None else shown(topic),
                    "partition": partition,
                    "first_offset": each.first,
                    "records": each.records,
                    "record_bytes": each.record_bytes,
                    "marked": each.marked,
                }
                for (topic, partition), each in now.partitions.items()
            ],
            "records": now.records,
            "record_bytes": now.record_bytes,
            "unacknowledged": max(0, now.sent - now.records),
            "groups": list(now.groups),
            "offsets": now.offsets,
            "end": end,
            "ended": ended,
            "end_connection": None if now.ended is None else now.ended.connection,
            "end_frame": None if now.ended is None else now.ended.frame,
            "duration_ms": None if began is None or ended is None else (ended - began) / 1000,
            "cause": cause,
            "held_records": max((each.records for each in some), default=0),
            "held_ms": max(spans, default=0) / 1000,
            "held_readers": list(dict.fromkeys(name for each in some for name in each.readers)),
            "errors": list(now.errors),
            "events": now.events,
            "status": status,
            "api_key": _KEY[now.begin.kind],
        }


def _protocol(step: Step) -> str:
    """Whether a client speaks transactions v2 (KIP-890)."""
    return "v2" if step.version >= _V2.get(step.kind, 1 << 15) else "v1"


_V2: Final = {"produce": 12, "offsets": 5}
"""The versions from which requests begin a transaction by themselves."""
_KEY: Final = {
    "init": ApiKey.INIT_PRODUCER_ID,
    "add": ApiKey.ADD_PARTITIONS_TO_TXN,
    "group": ApiKey.ADD_OFFSETS_TO_TXN,
    "offsets": ApiKey.TXN_OFFSET_COMMIT,
    "produce": ApiKey.PRODUCE,
    "end": ApiKey.END_TXN,
}
_API: Final = {
    "init": "InitProducerId",
    "add": "AddPartitionsToTxn",
    "group": "AddOffsetsToTxn",
    "offsets": "TxnOffsetCommit",
    "produce": "Produce",
    "end": "EndTxn",
    "marker": "WriteTxnMarkers",
}
