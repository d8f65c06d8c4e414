"""The table ``journeys``: the way of records from Produce through each Fetch to the commit that covers them.

One row for each range of offsets that one Produce request wrote and one Fetch response delivered. Strategy: programs
(``kwire.kernels.programs``) find what frames say of partitions. It becomes a table of events, all numbers, which
``kwire.history.journeys`` joins. Texts are looked up only for the rows that come out.

Rules kept here:

- Ranges of a Fetch response are those of its batches, by their headers. Nothing is decompressed. Batches that follow
  each other are one range. Control batches are none.
- Followers and share consumers are no readers here.
- Offsets of a transaction (TxnOffsetCommit) are a commit once a broker has accepted EndTxn with a commit. Where packets
  are missing in between, of whatever connection, they are none: another EndTxn may be among these.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire import stored
from kwire.capture.frames import Frames
from kwire.errors import KwireError
from kwire.history.journeys import EVENT, NONE, Journeys, Kind, Way, check, chosen, joined
from kwire.history.steps import shown
from kwire.kernels.engine import choose
from kwire.kernels.layouts import ABSENT, NO_TIME, Status
from kwire.kernels.partitions import count_records
from kwire.kernels.programs import Program, compile_program, job_column, length_column, value_column
from kwire.records.arrow_types import TIMESTAMP
from kwire.schema.keys import ApiKey
from kwire.tables import columns, showing
from kwire.tables.definition import ByRow, CaptureTable, Maker, Run, words
from kwire.tables.filters import API
from kwire.tables.frames import MOST_ROWS, OF_BROKERS
from kwire.tables.locating import Programs, layouts
from kwire.tables.showing import Column
from kwire.tables.topics import Names, Topics
from kwire.wire import CODEC, CONTROL, uuid_text

__all__ = ["SCHEMA", "STATUSES", "TABLE"]

Array = Any

SCHEMA: Final = pa.schema(
    [
        pa.field("capture", pa.string(), nullable=False),
        pa.field("connection", pa.int64(), nullable=False),
        pa.field("frame", pa.int64(), nullable=False),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("first_offset", pa.int64(), nullable=False),
        pa.field("last_offset", pa.int64(), nullable=False),
        pa.field("records", pa.int64(), nullable=False),
        pa.field("producer_host", pa.string()),
        pa.field("producer_client_id", pa.string()),
        pa.field("produced", TIMESTAMP),
        pa.field("produce_connection", pa.int64()),
        pa.field("produce_frame", pa.int64()),
        pa.field("acknowledged", TIMESTAMP),
        pa.field("appended", TIMESTAMP),
        pa.field("client_host", pa.string()),
        pa.field("client_id", pa.string()),
        pa.field("group_id", pa.string()),
        pa.field("fetched", TIMESTAMP),
        pa.field("deliveries", pa.int64(), nullable=False),
        pa.field("lag", pa.int64()),
        pa.field("committed", TIMESTAMP),
        pa.field("commit_connection", pa.int64()),
        pa.field("commit_frame", pa.int64()),
        pa.field("ack_ms", pa.float64()),
        pa.field("fetch_ms", pa.float64()),
        pa.field("commit_ms", pa.float64()),
        pa.field("total_ms", pa.float64()),
        pa.field("status", pa.string(), nullable=False),
    ]
)
"""One row for each range of offsets and each delivery of it.

``capture``, ``connection`` and ``frame``: the Fetch response that delivered it, the Fetch request that passed it, or
the Produce request of what nobody got.
"""

STATUSES: Final = {
    Way.COMMITTED: "delivered, and covered by a commit of its group",
    Way.DELIVERED: "delivered; no commit in the capture covers it",
    Way.UNDELIVERED: "no consumer in the capture got it; what share groups got stands in `share_deliveries`",
    Way.SKIPPED: "a reader went on after it without having got it",
    Way.MISSING: "the same, where packets of the reader are missing: these may have brought it",
}
"""What each ``status`` means."""

_WORDS: Final = columns.status_words(Way)


def _paths(*names: str) -> dict[str, int]:
    """Registers by path."""
    return {name: place for place, name in enumerate(names)}


_OF: Final[dict[tuple[int, int], dict[str, int]]] = {
    (ApiKey.PRODUCE, 0): _paths(
        "topic_data.name", "topic_data.topic_id", "topic_data.partition_data.index", "topic_data.partition_data.records"
    ),
    (ApiKey.PRODUCE, 1): _paths(
        "responses.name",
        "responses.topic_id",
        "responses.partition_responses.index",
        "responses.partition_responses.error_code",
        "responses.partition_responses.base_offset",
        "responses.partition_responses.log_append_time_ms",
    ),
    (ApiKey.FETCH, 0): _paths(
        "topics.topic", "topics.topic_id", "topics.partitions.partition", "topics.partitions.fetch_offset"
    ),
    (ApiKey.FETCH, 1): _paths(
        "responses.topic",
        "responses.topic_id",
        "responses.partitions.partition_index",
        "responses.partitions.high_watermark",
        "responses.partitions.records",
    ),
    (ApiKey.OFFSET_COMMIT, 0): _paths(
        "topics.name",
        "topics.topic_id",
        "topics.partitions.partition_index",
        "topics.partitions.committed_offset",
        "group_id",
    ),
    (ApiKey.OFFSET_COMMIT, 1): _paths(
        "topics.name", "topics.topic_id", "topics.partitions.partition_index", "topics.partitions.error_code"
    ),
    (ApiKey.TXN_OFFSET_COMMIT, 0): _paths(
        "topics.name",
        "topics.topic_id",
        "topics.partitions.partition_index",
        "topics.partitions.committed_offset",
        "group_id",
    ),
}
"""What is read of each kind of message, in registers from 0 on: topic, id, partition first."""
_LAST: Final = {
    (ApiKey.PRODUCE, 1): ("log_append_time_ms", "base_offset"),
    (ApiKey.OFFSET_COMMIT, 0): ("committed_offset",),
    (ApiKey.TXN_OFFSET_COMMIT, 0): ("committed_offset",),
}
"""After which field there is a row, where that is not the last: the first that the version has."""
_REGISTERS: Final = 6
R_PARTITION: Final = 2
_KINDS: Final = np.zeros(2 * max(ApiKey) + 2, np.uint8)
for _api, _response in _OF:
    _KINDS[2 * _api + _response] = 1
_KINDS[[2 * ApiKey.OFFSET_FETCH, 2 * ApiKey.TXN_OFFSET_COMMIT + 1, 2 * ApiKey.END_TXN, 2 * ApiKey.END_TXN + 1]] = 1
_EVENT_OF: Final = np.full(len(_KINDS), NONE, np.int8)
for _place, _event in zip(
    _OF,
    (Kind.PRODUCE, Kind.ACKNOWLEDGED, Kind.ASK, Kind.FETCH, Kind.COMMIT, Kind.COMMITTED, Kind.GROUP),
    strict=True,
):
    _EVENT_OF[2 * _place[0] + _place[1]] = _event
_BLANK: Final = np.array((NONE,) * len(EVENT.names or ()), EVENT)


def _program(secrets: bool, api: int, response: int, version: int) -> Program | None:
    both = layouts(api, response, version, secrets=secrets)
    paths = _OF.get((ApiKey(api), response))
    if both is None or paths is None:
        return None
    last = list(paths)[-1]
    if (api, response) in _LAST:
        name = _LAST[ApiKey(api), response]
        # Before version 2 a broker does not say when it appended.
        short = name[-1] if api == ApiKey.PRODUCE and version < 2 else name[0]
        last = next(path for path in paths if path.endswith(f".{short}"))
    return compile_program(both, paths, emit_after=last)


class _Texts:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self.known: list[Any] = []
        self._of: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        found = self._of.get(value)
        if found is None:
            found = self._of[value] = len(self.known)
            self.known.append(value)
        return found


_Producer = tuple[str | None, int, int]
"""Type: transactional id, producer id and epoch."""


class _Transactions:
    """Offsets that wait for the end of their transaction."""

    def __init__(self) -> None:
        self.asked: dict[tuple[int, int], tuple[_Producer, Array | bool]] = {}
        """By connection and correlation id: commits (``EVENT``), or whether EndTxn asks for a commit."""
        self.accepted: dict[_Producer, Array] = {}

    def ask(self, key: tuple[int, int], producer: _Producer, what: Array | bool) -> None:
        """A request."""
        self.asked.pop(key, None)
        self.asked[key] = producer, what
        if len(self.asked) > _MOST_TRANSACTIONS:
            del self.asked[next(iter(self.asked))]

    def accept(self, producer: _Producer, commits: Array) -> None:
        """A broker has accepted offsets."""
        known = self.accepted.pop(producer, np.zeros(0, EVENT))
        self.accepted[producer] = np.concatenate([known, commits])[-_MOST_TRANSACTIONS:]
        if len(self.accepted) > _MOST_TRANSACTIONS:
            del self.accepted[next(iter(self.accepted))]

    def lose(self) -> None:
        """Packets are missing: an EndTxn may be among them, of whatever connection. Then the next one is not theirs."""
        self.asked.clear()
        self.accepted.clear()

    def rename(self, numbers: Callable[[Array], Array]) -> None:
        """Partitions have other numbers."""
        for one in (*(what for _, what in self.asked.values()), *self.accepted.values()):
            if isinstance(one, np.ndarray):
                one["part"] = numbers(one["part"])

    def save(self) -> list[Any]:
        """What was accepted, as JSON has it."""
        return [[list(producer), one.tolist()] for producer, one in self.accepted.items()]

    def restore(self, state: Any, sizes: tuple[int, int, int]) -> None:
        """Takes over what ``save`` gave. Raises one of ``stored.UNFIT``."""
        for (name, number, epoch), some in state:
            key = (
                None if name is None else stored.text(name),
                stored.number(number, -1),
                stored.number(epoch, -(1 << 15)),
            )
            made = np.array([tuple(stored.number(value, -(1 << 63)) for value in one) for one in some], EVENT)
            check(made, sizes)
            self.accepted[key] = made


class _State:
    """What one part of a capture leaves to the next."""

    def __init__(self) -> None:
        self.journeys = Journeys()
        self.transactions = _Transactions()
        self.topics = _Texts()
        self.whos = _Texts()
        self.brokers: list[bool] = []
        """Which of them are brokers."""
        self.groups = _Texts()
        self.captures: list[tuple[int, str, int]] = []
        """From which order on the capture has which name, and how much larger numbers of frames are there. Orders go on
        from one capture to the next, so that what is near its end waits for what comes."""
        self.until = 0
        """The order of the first frame that was not seen yet."""

    def save(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {
            "journeys": self.journeys.save(),
            "transactions": self.transactions.save(),
            "topics": self.topics.known,
            "whos": [list(one) for one in self.whos.known],
            "groups": self.groups.known,
            "captures": [list(one) for one in self.captures],
            "until": self.until,
        }

    def restore(self, state: Any) -> None:
        """Takes over what ``save`` gave. Raises one of ``stored.UNFIT``."""
        for name in state["topics"]:
            self.topics.number(stored.text(name))
        for host, client in state["whos"]:
            self.whos.number((stored.text(host), None if client is None else stored.text(client)))
        for name in state["groups"]:
            self.groups.number(None if name is None else stored.text(name))
        self.captures = [
            (stored.number(first, 0), stored.text(name), stored.number(more, -(1 << 62), 1 << 62))
            for first, name, more in state["captures"]
        ]
        self.until = stored.number(state["until"], 0)
        if not self.captures:
            raise ValueError("no captures")
        sizes = len(self.topics.known), len(self.whos.known), len(self.groups.known)
        self.journeys.restore(state["journeys"], sizes)
        self.transactions.restore(state["transactions"], sizes)


class _Maker(Maker):
    def __init__(self, schema: pa.Schema, run: Run) -> None:
        self._schema = schema
        secrets = run.options["secrets"]
        self._name, self._later = run.name, run.later or run.carried
        self._topics = Topics(run.topics, secrets=secrets, learns=run.learns)
        self._programs = Programs(partial(_program, secrets), _REGISTERS)
        self._names = Names()
        self._state: _State = run.memory.setdefault("journeys", _State()) if run.goes_on else _State()
        self._begun = False
        self._more = 0
        """How much larger the number of a frame is than its order."""
        self._clients: dict[tuple[int, int], int] = {}

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        state = self._state
        self._topics.learn(frames)
        if not len(frames):
            return
        numbers = frames.numbers
        if not self._begun:
            self._begun = True
            self._more = int(numbers.min()) - state.until if state.captures else 0
            state.captures.append((int(numbers.min()) - self._more, self._name, self._more))
        state.until = int(numbers.max()) + 1 - self._more
        events = self._events(frames)
        # From the frame on that gives an id its name, both are one topic.
        for cut, id_, name in self._topics.learnt:
            old = state.topics.number(uuid_text(_uuid(id_)))
            new = state.topics.number(name)
            before = events["order"] <= cut - self._more
            yield from self._rows(state.journeys.add(events[before], cut + 1 - self._more, now=True))
            state.journeys.rename(partial(_renamed, old, new))
            state.transactions.rename(partial(_renamed, old, new))
            events = events[~before]
        yield from self._rows(state.journeys.add(events, state.until))

    def rest(self, tracker: Any) -> Iterator[pa.RecordBatch]:
        journeys = self._state.journeys
        # What goes on gives now what is known.
        yield from self._rows(
            journeys.add(np.zeros(0, EVENT), self._state.until, now=True) if self._later else journeys.rest()
        )

    # -- events

    def _events(self, frames: Frames) -> Array:
        there = np.flatnonzero(frames.with_body(_KINDS) & (frames["version"] >= 0))
        gaps = np.flatnonzero(np.isin(frames["status"], (Status.GAP, Status.CUT_OFF, Status.UNPAIRED)))
        lost = self._of_frames(frames, gaps, np.full(len(gaps), Kind.GAP))
        parts = [
            self._of_bodies(frames, rows[job_column(found)], found)
            for rows, found, _ in self._programs.parts(frames, there, MOST_ROWS)
        ]
        made = joined(
            [lost, *parts, *self._offsets_fetched(frames, there), *self._in_transactions(frames, there, lost)]
        )
        reads = np.isin(made["kind"], (Kind.ASK, Kind.FETCH))
        known, brokers = self._state.whos.known, self._state.brokers
        brokers += [_is_broker(client) for _, client in known[len(brokers) :]]
        return chosen(made, ~(reads & np.array([*brokers, False], bool)[made["who"]]))

    def _of_bodies(self, frames: Frames, of: Array, found: Array) -> Array:
        """The events of what was found in bodies. ``of``: the frame of each."""
        api, response = frames["api"][of], frames["response"][of]
        kinds = _EVENT_OF[2 * api + response].astype(np.int64)
        size, records = self._produced(frames, found, kinds == Kind.PRODUCE)
        # Nobody reads what has no record.
        some = (kinds != Kind.PRODUCE) | (records > 0)
        found, of, kinds, size, records = (chosen(one, some) for one in (found, of, kinds, size, records))
        made = self._of_frames(frames, of, kinds)
        made["part"] = self._parts(frames, found, of)
        at = kinds == Kind.PRODUCE
        made["size"][at], made["records"][at] = size[at], records[at]
        values = [value_column(found, register) for register in range(_REGISTERS)]
        at = kinds == Kind.ACKNOWLEDGED
        made["first"][at] = np.where((values[3][at] == 0) & (values[4][at] >= 0), values[4][at], NONE)
        append = values[5][at]
        made["more"][at] = np.where((append > 0) & (append < _LATEST_MS), append * 1_000_000, NONE)
        at = (kinds == Kind.ASK) | (kinds == Kind.COMMIT)
        made["first"][at] = values[3][at]
        at = kinds == Kind.COMMITTED
        made["first"][at] = np.where(values[3][at] == 0, 0, NONE)
        at = (kinds == Kind.COMMIT) | (kinds == Kind.GROUP)
        numbers = self._names.numbers(frames.data, found[at], 4)
        named = np.array([self._state.groups.number(one) for one in self._names.known] + [NONE], np.int64)
        made["group"][at] = named[numbers]
        made = chosen(made, (kinds != Kind.FETCH) & ((kinds != Kind.ASK) | (made["first"] >= 0)))
        return joined([made, self._fetched(frames, found, of, kinds == Kind.FETCH)])

    def _of_frames(self, frames: Frames, of: Array, kinds: Array) -> Array:
        """Events with what is known of their frames."""
        made = np.empty(len(of), EVENT)
        made[:] = _BLANK
        made["kind"], made["order"] = kinds, frames.numbers[of] - self._more
        time, latency = frames["time"][of], frames["latency"][of]
        made["time"] = np.where(time == NO_TIME, NONE, time)
        made["asked"] = np.where((time == NO_TIME) | (latency == ABSENT), NONE, time - latency)
        made["connection"] = frames.of_connections("number", frames["slot"][of])
        made["id"], made["who"] = frames["id"][of], self._who(frames, of)
        return made

    def _who(self, frames: Frames, of: Array) -> Array:
        slots, sides, clients = frames["slot"][of], frames["client_side"][of], frames["client"][of]
        numbers = frames.of_connections("number", slots)
        width = int(clients.max(initial=0)) + 2
        distinct, which = columns.distinct(slots.astype(np.int64) * width + clients + 1)
        first = np.empty(len(distinct), np.int64)
        first[which[::-1]] = np.arange(len(of) - 1, -1, -1)
        found = np.empty(len(distinct), np.int64)
        for place, row in enumerate(first.tolist()):
            number, client = int(numbers[row]), int(clients[row])
            known = self._clients.get((number, client))
            if known is None:
                host = frames.ends(int(slots[row]))[int(sides[row]) & 1].host
                known = self._state.whos.number((host, frames.client_id(client)))
                if len(self._clients) >= _MOST_CLIENTS:
                    self._clients.clear()
                self._clients[number, client] = known
            found[place] = known
        return found[which]

    def _parts(self, frames: Frames, found: Array, of: Array) -> Array:
        """A number for topic and partition: that of the topic in its upper half."""
        number = self._topics.names(frames.data, found, frames.numbers[of]).numbered(self._state.topics.number)
        if (number < 0).any():
            by_id = self._topics.ids(frames.data, found).numbered(self._state.topics.number)
            number = np.where(number < 0, by_id, number)
        return _part(number, value_column(found, R_PARTITION))

    def _produced(self, frames: Frames, found: Array, at: Array) -> tuple[Array, Array]:
        """Of each row the bytes and records that a Produce request has there, else 0."""
        size, count = np.zeros(len(found), np.int64), np.zeros(len(found), np.int64)
        if not at.any():
            return size, count
        some = chosen(found, at)
        sets = np.full((len(some), 4), -1)
        sets[:, 0], sets[:, 1] = value_column(some, 3), length_column(some, 3)
        batches, records, codecs = (np.empty(len(some), np.int64) for _ in range(3))
        choose(8 * len(some))(count_records)(frames.data, sets, batches, records, codecs)
        size[at], count[at] = np.maximum(sets[:, 1], 0), records
        return size, count

    def _fetched(self, frames: Frames, found: Array, of: Array, at: Array) -> Array:
        """An event for each run of batches of Fetch responses."""
        some, of = found[at], of[at]
        starts, lengths = value_column(some, 4), length_column(some, 4)
        sets, first, last, data = _runs(frames.data, starts, lengths)
        made = self._of_frames(frames, of[sets], np.full(len(sets), Kind.FETCH))
        made["part"] = self._parts(frames, some, of)[sets]
        made["first"], made["last"], made["records"] = first, last, data
        made["more"] = value_column(some, 3)[sets]
        return made

    def _offsets_fetched(self, frames: Frames, there: Array) -> Iterator[Array]:
        """Who asks for the offsets of a group: few frames."""
        wanted = (frames["api"][there] == ApiKey.OFFSET_FETCH) & (frames["response"][there] == 0)
        for row in there[wanted & (frames["status"][there] == Status.OK)].tolist():
            try:
                body = frames[row].body
            except KwireError:
                continue
            places = []
            for group in body.groups or [body]:
                for topic in group.topics or ():
                    name = topic.name or uuid_text(topic.topic_id)
                    number = self._state.topics.number(name)
                    places += [
                        (self._state.groups.number(group.group_id), number, one) for one in topic.partition_indexes
                    ]
            if places:
                made = self._of_frames(frames, np.full(len(places), row), np.full(len(places), Kind.GROUP))
                groups, topics, partitions = np.array(places, np.int64).T
                made["group"], made["part"] = groups, _part(topics, partitions)
                yield made

    def _in_transactions(self, frames: Frames, there: Array, lost: Array) -> Iterator[Array]:
        """Commits of offsets in transactions, with the end of these: few frames."""
        known = self._state.transactions
        api = frames["api"][there]
        rows = there[
            ((api == ApiKey.TXN_OFFSET_COMMIT) | (api == ApiKey.END_TXN)) & (frames["status"][there] == Status.OK)
        ]
        gaps = sorted(lost["order"].tolist(), reverse=True)
        connections = frames.of_connections("number", frames["slot"][rows]).tolist()
        for row, connection, id_ in zip(rows.tolist(), connections, frames["id"][rows].tolist(), strict=True):
            frame = frames[row]
            while gaps and gaps[-1] < frame.number - self._more:
                gaps.pop()
                known.lose()
            try:
                body = frame.body
            except KwireError:
                continue
            key = connection, id_
            if not frame.is_response:
                producer = body.transactional_id, body.producer_id, body.producer_epoch
                ends = frame.api_key == ApiKey.END_TXN
                known.ask(key, producer, bool(body.committed) if ends else self._committing(frames, row, body))
                continue
            waiting = known.asked.pop(key, None)
            if waiting is None:
                continue
            producer, what = waiting
            if isinstance(what, np.ndarray):
                good = {
                    (self._topic(topic, frame.number) << 32) | (one.partition_index & 0xFFFFFFFF)
                    for topic in body.topics
                    for one in topic.partitions
                    if not one.error_code
                }
                known.accept(producer, what[np.isin(what["part"], list(good))])
            elif not body.error_code:
                commits = known.accepted.pop(producer, np.zeros(0, EVENT))
                if what and len(commits):
                    yield from (commits, _committed(commits, self._of_frames(frames, np.array([row]), Kind.COMMITTED)))
        if gaps:
            known.lose()

    def _topic(self, topic: Any, frame: int) -> int:
        name = topic.name or self._topics.name(topic.topic_id, frame) or uuid_text(topic.topic_id)
        return self._state.topics.number(name)

    def _committing(self, frames: Frames, row: int, body: Any) -> Array:
        """The commits of a TxnOffsetCommit request."""
        places = [
            (self._topic(topic, int(frames.numbers[row])), one.partition_index, one.committed_offset)
            for topic in body.topics
            for one in topic.partitions
        ]
        topics, partitions, offsets = np.array(places, np.int64).reshape(-1, 3).T
        made = self._of_frames(frames, np.full(len(places), row), np.full(len(places), Kind.COMMIT))
        made["part"], made["first"] = _part(topics, partitions), offsets
        made["group"] = self._state.groups.number(body.group_id)
        return made

    # -- rows

    def _rows(self, rows: Array) -> Iterator[pa.RecordBatch]:
        for first in range(0, len(rows), _ROWS):
            some = rows[first : first + _ROWS]
            yield columns.filled(self._schema, partial(self._column, some, {}))

    def _column(self, rows: Array, made: dict[str, Any], name: str) -> Any:
        """A column of the table."""
        way = rows["way"]
        if name in ("connection", "frame", "capture"):
            none = way == Way.UNDELIVERED
            if name == "connection":
                return pa.array(np.where(none, rows["produce_connection"], rows["fetch_connection"]))
            order = np.where(none, rows["produce_order"], rows["fetch_order"])
            if name == "frame":
                return pa.array(self._numbers(order))
            return columns.pick([text for _, text, _ in self._state.captures], self._captures(order))
        if name == API:
            return pa.array(np.where(way == Way.UNDELIVERED, ApiKey.PRODUCE, ApiKey.FETCH).astype(np.int16))
        if name == "topic":
            return _texts(self._state.topics.known, rows["part"] >> 32, shown)
        if name == "partition":
            return pa.array((rows["part"] & 0xFFFFFFFF).astype(np.uint32).view(np.int32))
        if name in ("first_offset", "last_offset"):
            return pa.array(rows[name.removesuffix("_offset")])
        if name == "records":
            return pa.array(rows["last"] - rows["first"] + 1)
        if name in _WHO:
            column, place = _WHO[name]
            return _texts([one[place] for one in self._state.whos.known], rows[column])
        if name == "group_id":
            return _texts(self._state.groups.known, rows["group"])
        if name in ("produced", "acknowledged", "appended", "fetched", "committed"):
            return pa.array(rows[name] // 1000, mask=rows[name] < 0).cast(pa.timestamp("us")).cast(TIMESTAMP)
        if name in _LATENCIES:
            begin, end = (rows[one] for one in _LATENCIES[name])
            return pa.array((end - begin) / 1e6, mask=(begin < 0) | (end < 0))
        if name == "deliveries":
            return pa.array(rows["deliveries"])
        if name == "status":
            return columns.pick(_WORDS, way)
        values = rows[_NUMBERS[name]]
        given = self._numbers(values) if name.endswith("_frame") else values
        return pa.array(given, mask=values < 0)

    def _captures(self, orders: Array) -> Array:
        """Which of the captures frames are in."""
        begins = np.array([first for first, *_ in self._state.captures])
        return np.maximum(np.searchsorted(begins, orders, "right") - 1, 0)

    def _numbers(self, orders: Array) -> Array:
        """The numbers of frames."""
        return orders + np.array([more for *_, more in self._state.captures])[self._captures(orders)]


_NUMBERS: Final = {
    "produce_connection": "produce_connection",
    "produce_frame": "produce_order",
    "commit_connection": "commit_connection",
    "commit_frame": "commit_order",
    "lag": "lag",
}
_WHO: Final = {
    "producer_host": ("producer", 0),
    "producer_client_id": ("producer", 1),
    "client_host": ("reader", 0),
    "client_id": ("reader", 1),
}
_LATENCIES: Final = {
    "ack_ms": ("produced", "acknowledged"),
    "fetch_ms": ("produced", "fetched"),
    "commit_ms": ("fetched", "committed"),
    "total_ms": ("produced", "committed"),
}
_ROWS: Final = 1 << 14
_MOST_CLIENTS: Final = 1 << 16
_MOST_TRANSACTIONS: Final = 1 << 12
"""Requests, transactions, and offsets of one of them that wait."""
_LATEST_MS: Final = 1 << 43
"""Milliseconds that nanoseconds can hold."""


def _is_broker(client: str | None) -> bool:
    return client is not None and OF_BROKERS.fullmatch(client) is not None


def _uuid(data: bytes) -> Any:
    from uuid import UUID

    return UUID(bytes=data)


def _committed(commits: Array, end: Array) -> Array:
    """Answers to commits, at the end of their transaction."""
    made = commits.copy()
    made["kind"], made["asked"], made["first"] = Kind.COMMITTED, commits["time"], 0
    made["order"], made["time"] = end["order"][0], end["time"][0]
    return made


def _part(topics: Array, partitions: Array) -> Array:
    return (topics << 32) | (partitions & 0xFFFFFFFF)


def _renamed(old: int, new: int, parts: Array) -> Array:
    return np.where(parts >> 32 == old, parts + ((new - old) << 32), parts)


def _texts(known: Sequence[str | None], numbers: Array, said: Callable[[str], str] = str) -> Any:
    distinct, which = np.unique(numbers, return_inverse=True)
    texts = [None if one < 0 else known[one] for one in distinct.tolist()]
    return columns.pick([None if one is None else said(one) for one in texts], which)


# --- batches ----------------------------------------------------------------------------------------------------------

_HEAD: Final = 61
_HEADS: Final = np.dtype(
    {
        "names": ["base", "size", "magic", "old", "attributes", "delta"],
        "formats": [">i8", ">i4", "u1", "u1", ">i2", ">i4"],
        "offsets": [0, 8, 16, 17, 21, 23],
        "itemsize": _HEAD,
    }
)
_ONE: Final = struct.Struct(">qi4xBB3xhi")
"""The same of one batch."""
_STEPS: Final = 32
"""Batches of a set that are looked at for all sets at once: more are looked at one by one."""


def _runs(data: Array, starts: Array, lengths: Array) -> tuple[Array, Array, Array, Array]:
    """The runs of batches in some record sets: of which set, first and last offset, and how many batches (0: they are
    control batches). A first offset that is not known is -1."""
    at = starts.copy()
    end = starts + lengths
    active = np.flatnonzero(lengths >= _HEAD)
    sets: list[Array] = []
    found: list[Array] = []
    for _ in range(_STEPS):
        if not len(active):
            break
        heads = data[at[active, None] + np.arange(_HEAD)].view(_HEADS)[:, 0]
        size = heads["size"].astype(np.int64)
        fits = (heads["magic"] <= 2) & (size >= 14) & (size <= end[active] - at[active] - 12)
        active, heads = active[fits], heads[fits]
        sets.append(active)
        found.append(heads)
        at[active] += heads["size"].astype(np.int64) + 12
        active = active[end[active] - at[active] >= _HEAD]
    for one in active.tolist():
        rest = list(_walked(data, int(at[one]), int(end[one])))
        sets.append(np.full(len(rest), one))
        found.append(np.array(rest, _HEADS))
    if not any(map(len, sets)):
        none = np.zeros(0, np.int64)
        return none, none, none, none
    of, heads = np.concatenate(sets), np.concatenate(found)
    order = np.argsort(of, kind="stable")
    of, heads = of[order], heads[order]
    batch = heads["magic"] == 2
    base = heads["base"].astype(np.int64)
    last = np.where(batch, base + heads["delta"], base)
    packed = ~batch & (heads["old"] & CODEC != 0)
    records = np.where(batch & (heads["attributes"] & CONTROL != 0), 0, 1)
    first = np.where(packed, -1, base)
    begins = np.append(True, (of[1:] != of[:-1]) | (first[1:] != last[:-1] + 1) | (records[1:] != records[:-1]))
    begins = np.flatnonzero(begins[: len(of)])
    ends = np.append(begins[1:], len(of)) - 1
    return of[begins], first[begins], last[ends], records[begins] * (ends - begins + 1)


def _walked(data: Array, at: int, end: int) -> Iterator[tuple[int, ...]]:
    while end - at >= _HEAD:
        one = _ONE.unpack_from(data, at)
        if one[2] > 2 or not 14 <= one[1] <= end - at - 12:
            return
        yield one
        at += one[1] + 12


def _ms(name: str) -> Any:
    return lambda row: "-" if row[name] is None else f"{row[name]:.1f}"


def _range(row: showing.Row) -> str:
    first, last = row["first_offset"], row["last_offset"]
    return str(first) if first == last else f"{first}…{last}"


TABLE: Final = CaptureTable(
    name="journeys",
    schema=SCHEMA,
    file="capture",
    statuses=words(STATUSES),
    maker=_Maker,
    by_row=ByRow(times=("fetched", "produced"), clients=("client_id", "producer_client_id"), topics=("topic",)),
    in_order=True,
    remembers=_State,
    dictionaries=True,
    shown=(
        Column("produced", showing.time("produced")),
        Column("producer", showing.plain("producer_client_id"), shrink=8),
        Column("partition", showing.partition, shrink=12),
        Column("offsets", _range, right=True),
        Column("acked ms", _ms("ack_ms"), right=True),
        Column("group", showing.plain("group_id"), shrink=8),
        Column("reader", showing.plain("client_id"), shrink=8),
        Column("fetched ms", _ms("fetch_ms"), right=True),
        Column("times", showing.plain("deliveries"), right=True),
        Column("lag", showing.plain("lag"), right=True),
        Column("committed ms", _ms("commit_ms"), right=True),
        Column("status", showing.status),
    ),
)
"""The table ``journeys`` of captures (``CaptureTable``): ranges of records and their deliveries."""
