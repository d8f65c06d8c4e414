"""The table ``transactions``: one row for each transaction that producers, brokers and readers speak of.

Strategy: few frames are about transactions. These become objects (``Step``). A state machine takes them in the order of
the capture (``kwire.history.transactions``). What is frequent is looked at by programs (``kwire.kernels.programs``):

- of a Produce request its transactional id, and the record sets
- of a Produce response the offsets, if its request had an id
- of a Fetch response the last stable offset, if it is before the high watermark

Rules kept here:

- A row comes when the next transaction of its producer begins, or at the end of the capture: until then markers and
  readers that are held back may be seen.
- Rows are those of the state machine. They depend on the order of frames, and not on windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kwire import stored
from kwire.capture.frames import GATHERED_BYTES, Frame, Frames
from kwire.errors import KwireError
from kwire.history.transactions import STATUSES, Step, Transactions, Write
from kwire.kernels.engine import choose
from kwire.kernels.gathering import (
    HELD,
    R_ERROR,
    R_INDEX,
    R_OFFSET,
    R_RECORDS,
    R_TOPIC,
    R_TOPIC_ID,
    R_TXN,
    R_WATERMARK,
    REGISTERS,
    TOLD,
    WRITES,
    mark_of,
    of_transactions,
    sort_out,
)  # fmt: skip
from kwire.kernels.layouts import ABSENT, NO_TIME, Status
from kwire.kernels.programs import Program, compile_program, job_column, length_column, value_column
from kwire.protocol.error_codes import error_name
from kwire.records.arrow_types import TIMESTAMP
from kwire.schema.keys import ApiKey
from kwire.tables import showing
from kwire.tables.definition import ByRow, CaptureTable, Maker, Run
from kwire.tables.frames import MOST_ROWS, OF_BROKERS
from kwire.tables.histories import Held, as_array
from kwire.tables.locating import Copies, Programs, layouts, remembered
from kwire.tables.showing import Column
from kwire.tables.topics import Spelled, Topics

__all__ = ["SCHEMA", "TABLE", "Steps"]

Array = Any

_PARTITION: Final = pa.struct(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("first_offset", pa.int64()),
        pa.field("records", pa.int64()),
        pa.field("record_bytes", pa.int64()),
        pa.field("marked", TIMESTAMP),
    ]
)
_EVENT: Final = pa.struct(
    [
        pa.field("time", TIMESTAMP),
        pa.field("event", pa.string()),
        pa.field("capture", pa.string()),
        pa.field("connection", pa.int64()),
        pa.field("frame", pa.int64()),
    ]
)
_TEXTS: Final = pa.list_(pa.field("element", pa.string()))

SCHEMA: Final = pa.schema(
    [
        pa.field("capture", pa.string(), nullable=False),
        pa.field("connection", pa.int64(), nullable=False),
        pa.field("frame", pa.int64(), nullable=False),
        pa.field("transactional_id", pa.string()),
        pa.field("producer_id", pa.int64()),
        pa.field("producer_epoch", pa.int16()),
        pa.field("protocol", pa.string()),
        pa.field("client_host", pa.string()),
        pa.field("client_port", pa.int32()),
        pa.field("client_id", pa.string()),
        pa.field("began", TIMESTAMP),
        pa.field("timeout_ms", pa.int32()),
        pa.field("partitions", pa.list_(pa.field("element", _PARTITION)), nullable=False),
        pa.field("records", pa.int64(), nullable=False),
        pa.field("record_bytes", pa.int64(), nullable=False),
        pa.field("unacknowledged", pa.int64(), nullable=False),
        pa.field("groups", _TEXTS, nullable=False),
        pa.field("offsets", pa.int64(), nullable=False),
        pa.field("end", pa.string(), nullable=False),
        pa.field("ended", TIMESTAMP),
        pa.field("end_connection", pa.int64()),
        pa.field("end_frame", pa.int64()),
        pa.field("duration_ms", pa.float64()),
        pa.field("cause", pa.string()),
        pa.field("held_records", pa.int64(), nullable=False),
        pa.field("held_ms", pa.float64(), nullable=False),
        pa.field("held_readers", _TEXTS, nullable=False),
        pa.field("errors", _TEXTS, nullable=False),
        pa.field("events", pa.list_(pa.field("element", _EVENT)), nullable=False),
        pa.field("status", pa.string(), nullable=False),
    ]
)
"""One row for each transaction.

``capture``, ``connection`` and ``frame``: its first request in the capture. ``ended``: when the capture first shows
that it had ended. ``events``: what happened, in order, with the frames that say so.
"""

_CONTROL: Final = (
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.TXN_OFFSET_COMMIT,
)
"""APIs whose bodies are decoded: there are a few for each transaction."""
_LOST: Final = np.zeros(len(Status), bool)
_LOST[[Status.GAP, Status.CUT_OFF, Status.UNPAIRED]] = True
_MOST_SAID: Final = 1 << 12
"""Bodies that are remembered,"""
_LARGEST: Final = 512
"""and bytes of the largest of them."""
_BATCHED: Final = 4
"""The version of AddPartitionsToTxn from which brokers send it, for several transactions."""
_KNOWN: Final = 1 << 10
"""Connections that are known at once to be remembered."""
_MARKS: Final = 1 << 16
"""Places of marks."""
_MOST_ASKED: Final = 1 << 14
"""Produce requests that wait for their response."""
_MOST_READERS: Final = 1 << 16
"""Connections whose isolation is remembered."""

_PRODUCED: Final = "topic_data.partition_data."
_ANSWERED: Final = "responses.partition_responses."
_FETCHED: Final = "responses.partitions."
_PATHS: Final[dict[tuple[int, int], dict[str, int]]] = {
    (ApiKey.PRODUCE, 0): {
        "transactional_id": R_TXN,
        "topic_data.name": R_TOPIC,
        "topic_data.topic_id": R_TOPIC_ID,
        _PRODUCED + "index": R_INDEX,
        _PRODUCED + "records": R_RECORDS,
    },
    (ApiKey.PRODUCE, 1): {
        "responses.name": R_TOPIC,
        "responses.topic_id": R_TOPIC_ID,
        _ANSWERED + "index": R_INDEX,
        _ANSWERED + "error_code": R_ERROR,
        _ANSWERED + "base_offset": R_OFFSET,
    },
    (ApiKey.FETCH, 1): {
        "responses.topic": R_TOPIC,
        "responses.topic_id": R_TOPIC_ID,
        _FETCHED + "partition_index": R_INDEX,
        _FETCHED + "error_code": R_ERROR,
        _FETCHED + "high_watermark": R_WATERMARK,
        _FETCHED + "last_stable_offset": R_OFFSET,
        _FETCHED + "records": R_RECORDS,
    },
}
"""What is captured of Produce and Fetch. A row is written after the last of them."""
_FIRST: Final[dict[tuple[int, int], int]] = {(ApiKey.PRODUCE, 0): 3, (ApiKey.FETCH, 1): 4}
"""The first versions that know transactions."""


@remembered
def _program(secrets: bool, api: int, response: int, version: int) -> Program | None:
    both, paths = layouts(api, response, version, secrets=secrets), _PATHS[api, response]
    if both is None or version < _FIRST.get((api, response), 0):
        return None
    return compile_program(both, paths, emit_after=list(paths)[-1])


@remembered
def _isolation_program(secrets: bool, api: int, response: int, version: int) -> Program | None:
    both = layouts(api, response, version, secrets=secrets)
    last = "isolation_level"
    return None if both is None else compile_program(both, [last], emit_after=last, stop_after=last)


def _kinds(*some: tuple[int, int]) -> Array:
    made = np.zeros(2 * max(some)[0] + 2, np.uint8)
    made[[2 * api + response for api, response in some]] = 1
    return made


class _Told(NamedTuple):
    """What a Produce response says of a partition."""

    key: tuple[int, int]
    """Connection and correlation id."""
    frame: int
    number: int
    """Which of those of its frame it is, or more."""
    place: tuple[tuple[int, int], str | None, int]
    """What a request and its response have in common: key, topic and partition."""
    error: str
    offset: int
    step: Callable[[], Step]


def _place(one: tuple[int, int, Step | Write]) -> tuple[int, int]:
    return one[:2]


def _often(some: Iterable[Write | _Told]) -> set[Any]:
    """Places that are named more than once, and keys of more than one frame."""
    often: set[Any] = set()
    places: set[Any] = set()
    frame_of: dict[tuple[int, int], int] = {}
    for one in some:
        if one.place in places:
            often.add(one.place)
        places.add(one.place)
        if frame_of.setdefault(one.key, one.frame) != one.frame:
            often.add(one.key)
    return often


_About = tuple[int, int, int, int, int, int, int, int, int, int]
"""Type: row, number, connection, time, response, id, version, slot, side and client of a frame."""


def _key(about: _About) -> tuple[int, int]:
    """Connection and correlation id."""
    return about[2], 0 if about[5] == ABSENT else about[5]


def _keys(frames: Frames, rows: Array) -> list[tuple[int, int]]:
    """Connections and correlation ids of some rows."""
    numbers, ids = frames.of_connections("number", frames["slot"][rows]), frames["id"][rows]
    return list(zip(numbers.tolist(), np.where(ids == ABSENT, 0, ids).tolist(), strict=True))


def _time(about: _About) -> int | None:
    """Microseconds since 1970, None where the capture states none."""
    return None if about[3] == NO_TIME else about[3] // 1000


def _about(frames: Frames, rows: Array) -> list[_About]:
    """What is known of some rows of ``frames``."""
    names = ("time", "response", "id", "version", "slot", "client_side", "client")
    connections = frames.of_connections("number", frames["slot"][rows]).tolist()
    columns_ = (frames[name][rows].tolist() for name in names)
    return list(zip(rows.tolist(), frames.numbers[rows].tolist(), connections, *columns_, strict=True))


class Left:
    """What one capture leaves to the next: the state machine, and what its steps are found by."""

    def __init__(self) -> None:
        self.fold: Transactions = Transactions()
        self.asked: dict[tuple[int, int], None] = {}
        """Produce requests of transactions that wait, by connection and correlation id."""
        self.readers: dict[int, int] = {}
        """The isolation of readers, by connection."""

    def save(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        readers = [[connection, level] for connection, level in self.readers.items()]
        return {"fold": self.fold.save(), "asked": [list(key) for key in self.asked], "readers": readers}

    def restore(self, state: Any) -> None:
        """Takes over what ``save`` gave. Raises one of ``stored.UNFIT``."""
        self.fold.restore(state["fold"])
        for connection, id_ in state["asked"]:
            self.asked[stored.number(connection, 0), stored.number(id_, -(1 << 31))] = None
        for connection, level in state["readers"]:
            self.readers[stored.number(connection, 0)] = stored.number(level, -128, 127)


class Steps:
    """Finds the steps of transactions in the frames of a capture, in order."""

    def __init__(self, run: Run, left: Left) -> None:
        secrets = run.options["secrets"]
        self._name = run.name
        self._topics = Topics(run.topics, secrets=secrets, learns=run.learns)
        self._spelled = Spelled()

        self._programs = Programs(partial(_program, secrets), REGISTERS)
        self._isolation = Programs(partial(_isolation_program, secrets), 1)
        self._asked, self._readers = left.asked, left.readers
        self._clients: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._said: dict[tuple[int, int, int, bytes], list[_Said]] = {}
        """What bodies say that were read before."""
        self._copies = Copies(_TEXTS_OF)
        self._waiting: list[tuple[Array, Array]] = []
        """Numbers of frames, and what was found in them: ``_KIND`` in place of a job."""
        self._n_waiting = 0
        """How much that is."""
        self._known = np.full(_KNOWN, -1)
        """Connections whose isolation is remembered, by their lower bits: some of them."""
        self._marks = np.zeros(_MARKS, np.uint8)
        """1 for requests of transactions that wait or are among them, and for some others (``mark_of``)."""
        self._mark_again()

    def look(self, frames: Frames, rows: Array, there: Array, copied: Array) -> None:
        """Looks at a window: see ``kwire.capture.frames.Looker``."""
        speaking = self._topics.speaking(frames)
        there[speaking] = copied[speaking] = True
        if not frames.all_whole:
            there |= _LOST[frames["status"]]
        parts = np.empty(len(rows), np.int64)
        first, second, new = choose(0)(sort_out)(frames.table, rows, _PART_OF, frames.connections, self._known, parts)
        there[parts[second:]] = copied[parts[second:]] = True
        if new:
            self._learn_isolation(frames, parts[first:second])
        # A large request has many partitions without a batch.
        for of_job, said, _ in self._programs.parts(frames, parts[:first], MOST_ROWS):
            if len(said):
                there[self._keep(frames, said, of_job)] = True

    def _mark_again(self) -> None:
        """Marks the requests that wait, and no others."""
        self._n_marked = 0
        self._marks[:] = 0
        self._marks[[mark_of(*key, _MARKS) for key in self._asked]] = 1

    def _keep(self, frames: Frames, said: Array, of_job: Array) -> Array:
        """Keeps what is wanted of what programs found. Gives the frames that say it."""
        kept, places = np.empty_like(said), np.empty(len(said), np.int64)
        count, writes = choose(0)(of_transactions)(
            frames.data, said, of_job, frames.table, frames.connections, self._marks, kept, places
        )
        if count:
            # Of the memory that is not used, nothing is kept.
            kept = kept[:count].copy()
            self._copies.copy(frames.data, kept)
            self._waiting.append((frames.numbers[places[:count]], kept))
            self._n_waiting += count
            self._n_marked += writes
        return places[:count]

    @property
    def full(self) -> bool:
        """Whether what waits takes much memory."""
        return self._n_waiting > MOST_ROWS or self._copies.size > GATHERED_BYTES

    def of(self, frames: Frames) -> list[tuple[int, int, Step | Write]]:
        """The steps of frames that were looked at, each with its frame and its place there. A ``Write`` is there twice:
        as request and as response."""
        self._topics.learn(frames)
        return sorted(self._all(frames), key=_place)

    def _all(self, frames: Frames) -> Iterator[tuple[int, int, Step | Write]]:
        yield from ((step.frame, 0, step) for step in self._gaps(frames))
        yield from ((step.frame, 0, step) for step in self._controls(frames))
        numbers = frames.numbers
        ready = [one for one in self._waiting if one[0].max() <= numbers.max(initial=-1)]
        if ready:
            of_frame = np.searchsorted(numbers, np.concatenate([one[0] for one in ready]))
            said = np.concatenate([one[1] for one in ready])
            self._n_waiting -= len(said)
            kind = job_column(said)
            asks, told, held = (np.flatnonzero(kind == one) for one in (WRITES, TOLD, HELD))
            yield from self._produced_in(frames, (said[asks], of_frame[asks]), (said[told], of_frame[told]))
            if len(held):
                yield from ((step.frame, 0, step) for step in self._held(frames, said[held], of_frame[held]))
        self._waiting = self._waiting[len(ready) :]
        if not self._waiting:
            if self._n_marked > _MARKS >> 4:
                self._mark_again()
            if self._copies.size > GATHERED_BYTES:
                self._copies = Copies(_TEXTS_OF)

    def _heads(self, frames: Frames, rows: Array) -> dict[int, _Head]:
        """What is known of each row of ``frames``, as steps have it."""
        return {one[0]: self._head(frames, one) for one in _about(frames, rows)}

    def _head(self, frames: Frames, about: _About) -> _Head:
        _, number, connection, _, response, id_, version, slot, side, client = about
        who = self._clients.get((connection, client))
        if who is None:
            name = frames.client_id(client)
            end = frames.ends(slot)[side & 1]
            broker = name is not None and OF_BROKERS.fullmatch(name) is not None
            if len(self._clients) >= _MOST_READERS:
                self._clients.clear()
            who = self._clients[connection, client] = (end.host, end.port, name, broker)
        return (
            response == 1, self._name, connection, number, _time(about), None if id_ == ABSENT else id_,
            -1 if version == ABSENT else version, *who,
        )  # fmt: skip

    # -- what is rare

    def _gaps(self, frames: Frames) -> Iterator[Step]:
        if not frames.all_whole:
            for head in self._heads(frames, np.flatnonzero(_LOST[frames["status"]])).values():
                yield _step(head, _said("gap"))

    def _controls(self, frames: Frames) -> Iterator[Step]:
        rows = np.flatnonzero(frames.with_body(_CONTROLS) & (frames["status"] == Status.OK))
        if not len(rows):
            return
        bodies = zip(*(frames[one][rows].tolist() for one in ("api", "off", "seen")), strict=True)
        data = memoryview(frames.data)
        for about, (api, off, seen) in zip(_about(frames, rows), bodies, strict=True):
            response, version = about[4], about[6]
            # Most are like one before them, but for the correlation id.
            key = (api, response, version, bytes(data[off + (4 if response else 8) : off + seen]))
            found = self._said.get(key)
            if found is None:
                frame = frames[about[0]]
                try:
                    body = frame.body
                except KwireError:
                    continue
                found = list(_control(_said, frame, body))
                if len(self._said) >= _MOST_SAID:
                    self._said.clear()
                if seen <= _LARGEST:
                    self._said[key] = found
            head = self._head(frames, about)
            for said in found:
                yield _step(head, said)

    # -- what is frequent

    def _topic(self, frames: Frames, rows: Array, of_frame: Array) -> list[str | None]:
        made: list[str | None] = []
        data = self._copies.data
        names, ids = (value_column(rows, R_TOPIC), length_column(rows, R_TOPIC)), value_column(rows, R_TOPIC_ID)
        columns = (*names, ids, frames.numbers[of_frame])
        for at, length, id_at, frame in zip(*(one.tolist() for one in columns), strict=True):
            name = self._spelled.text(data, at, length)
            found = None if name else self._spelled.id(data, id_at)
            made.append(name if found is None else self._topics.name(found[0], frame) or found[1])
        return made

    def _produced_in(
        self, frames: Frames, asks: tuple[Array, Array], tells: tuple[Array, Array]
    ) -> Iterator[tuple[int, int, Step | Write]]:
        """What Produce requests of transactions say, and their responses: rows of what was found, with their frames."""
        writes = self._writes(frames, *asks)
        told = self._acknowledged(frames, *tells, {one.key for one in writes})
        # In pairs, where one request and one response of a connection have this correlation id and name it once.
        often = _often(writes) | _often(told)
        answers = {one.place: one for one in told if one.error == _NO_ERROR}
        for number, one in enumerate(writes):
            answer = answers.get(one.place)
            if answer is None or one.place in often or one.key in often or answer.frame < one.frame:
                self._asked.pop(one.key, None)
                self._asked[one.key] = None
                if len(self._asked) > _MOST_ASKED:
                    del self._asked[next(iter(self._asked))]
                yield one.frame, number, one.request()
                continue
            one.offset, one.response = answer.offset, answer.step
            yield one.frame, number, one
            yield answer.frame, answer.number, one
        paired = {one.place for one in writes if one.response is not None}
        yield from ((one.frame, one.number, one.step()) for one in told if one.place not in paired)

    def _writes(self, frames: Frames, rows: Array, of_frame: Array) -> list[Write]:
        data, made = self._copies.data, []
        registers = (R_INDEX, R_ERROR, R_OFFSET, R_WATERMARK, R_TXN)
        columns = (value_column(rows, one) for one in registers)
        lengths = (length_column(rows, one) for one in (R_TXN, R_RECORDS))
        said_ = zip(
            _about(frames, of_frame), self._topic(frames, rows, of_frame),
            *(one.tolist() for one in (*columns, *lengths)), strict=True,
        )  # fmt: skip
        for about, topic, partition, producer, epoch, count, at, length, size in said_:
            name, key = self._spelled.text(data, at, length), _key(about)
            who = (None if producer == ABSENT else producer, None if epoch == ABSENT else epoch)
            step = partial(self._produce, frames, about, name, topic, partition, (*who, count, size))
            place = (key, topic, partition)
            made.append(Write(name or "", self._name, _time(about), key, about[1], place, who, count, size, step))
        return made

    def _produce(
        self, frames: Frames, about: _About, name: str | None, topic: str | None, partition: int, said: tuple[Any, ...]
    ) -> Step:
        producer, epoch, count, size = said
        return _step(
            self._head(frames, about),
            _said(
                "produce", transactional_id=name, topic=topic, partition=partition, producer_id=producer,
                producer_epoch=epoch, records=count, record_bytes=size,
            ),
        )  # fmt: skip

    def _produced(
        self, frames: Frames, about: _About, topic: str | None, partition: int, said: tuple[Any, ...]
    ) -> Step:
        error, base = said
        what = _said("produce", topic=topic, partition=partition, error=error, offset=base)
        return _step(self._head(frames, about), what)

    def _acknowledged(self, frames: Frames, said: Array, of_frame: Array, asked: set[tuple[int, int]]) -> list[_Told]:
        if not self._asked and not asked:
            return []
        mine = [key in asked or key in self._asked for key in _keys(frames, of_frame)]
        said, of_frame, made = said[mine], of_frame[mine], []
        found = zip(
            _about(frames, of_frame), self._topic(frames, said, of_frame), value_column(said, R_INDEX).tolist(),
            value_column(said, R_ERROR).tolist(), value_column(said, R_OFFSET).tolist(), strict=True,
        )  # fmt: skip
        for number, (about, topic, partition, code, base) in enumerate(found):
            key, error = _key(about), _error(code)
            step = partial(self._produced, frames, about, topic, partition, (error, base))
            made.append(_Told(key, about[1], number, (key, topic, partition), error, base, step))
        return made

    def _learn_isolation(self, frames: Frames, asked: Array) -> None:
        """All that a client fetches on a connection it fetches with one isolation."""
        numbers = frames.of_connections("number", frames["slot"][asked])
        new = set(numbers.tolist()).difference(self._readers)
        known = numbers[[one not in new for one in numbers.tolist()]]
        self._known[known & (_KNOWN - 1)] = known
        if not new or len(self._readers) >= _MOST_READERS:
            return
        knows = frames["version"][asked] >= _FIRST[ApiKey.FETCH, 1]
        rows, said, _ = self._isolation.run(frames, asked[knows & np.isin(numbers, list(new))])
        numbers = frames.of_connections("number", frames["slot"][rows[job_column(said)]])
        for connection, level in zip(numbers.tolist(), value_column(said, 0).tolist(), strict=True):
            if len(self._readers) < _MOST_READERS:
                self._readers.setdefault(connection, level)

    def _held(self, frames: Frames, said: Array, of_frame: Array) -> Iterator[Step]:
        stable, watermark = value_column(said, R_OFFSET), value_column(said, R_WATERMARK)
        about = zip(
            of_frame.tolist(), self._topic(frames, said, of_frame), value_column(said, R_INDEX).tolist(),
            stable.tolist(), (watermark - stable).tolist(), length_column(said, R_RECORDS).tolist(), strict=True,
        )  # fmt: skip
        heads = self._heads(frames, np.unique(of_frame))
        for row, topic, partition, offset, records, size in about:
            waited = size <= 0 and self._readers.get(heads[row][2]) == 1
            said_ = _said("held", topic=topic, partition=partition, offset=offset, records=records, waited=waited)
            yield _step(heads[row], said_)


_Head = tuple[Any, ...]
"""Type: what a ``Step`` has from ``response`` to ``broker``."""
_Said = tuple[str, tuple[Any, ...], bool]
"""Type: the ``kind`` of a ``Step``, all after ``broker``, and whether a broker says it, whatever its client id is."""
_SAID: Final = {name: Step._field_defaults[name] for name in Step._fields[Step._fields.index("broker") + 1 :]}


def _said(kind: str, *, broker: bool = False, **values: Any) -> _Said:
    return kind, tuple((_SAID | values).values()), broker


def _step(head: _Head, said: _Said) -> Step:
    kind, what, broker = said
    return tuple.__new__(Step, (kind, *head[:-1], broker or head[-1], *what))


_TEXTS_OF: Final = (R_TOPIC, R_TOPIC_ID, R_TXN)
_CONTROLS: Final = _kinds(*((api, response) for api in _CONTROL for response in (0, 1)))
_IS_DATA, _IS_FETCH, _IS_CONTROL = range(1, 4)  # in the order of ``sort_out``
_PART_OF: Final = np.zeros(len(_CONTROLS), np.uint8)
"""By kind of message: what it is here."""
_PART_OF[_CONTROLS == 1] = _IS_CONTROL
_PART_OF[[2 * api + response for api, response in _PATHS]] = _IS_DATA
_PART_OF[2 * ApiKey.FETCH] = _IS_FETCH
_LOOKED: Final = (_PART_OF > 0).astype(np.uint8)


def _control(step: Any, frame: Frame, body: Any) -> Iterator[Any]:
    """The steps of a frame with this body."""
    api, response = frame.api_key, frame.is_response
    if api == ApiKey.ADD_PARTITIONS_TO_TXN:
        yield from (_added if response else _adding)(step, frame.api_version or 0, body)
    elif api == ApiKey.WRITE_TXN_MARKERS:
        if not response:
            for marker in body.markers:
                # Between brokers, whatever they call themselves.
                made = partial(
                    step,
                    kind="marker",
                    producer_id=marker.producer_id,
                    producer_epoch=marker.producer_epoch,
                    committed=bool(marker.transaction_result),
                )
                for topic in marker.topics:
                    for partition in topic.partition_indexes:
                        yield made(topic=topic.name, partition=partition)
    elif response:
        yield _answer(step, frame, body)
    else:
        yield _request(step, frame, body)


def _answer(step: Any, frame: Frame, body: Any) -> Any:
    api = frame.api_key
    if api == ApiKey.TXN_OFFSET_COMMIT:
        codes = [one.error_code for topic in body.topics for one in topic.partitions]
        return step(kind="offsets", error=_error(next((one for one in codes if one), 0)))
    error = _error(body.error_code)
    if api == ApiKey.ADD_OFFSETS_TO_TXN:
        return step(kind="group", error=error)
    kind = "init" if api == ApiKey.INIT_PRODUCER_ID else "end"
    # Before EndTxn v5 there is no id in the answer.
    kept = kind == "init" and body.ongoing_txn_producer_id >= 0
    return step(kind=kind, error=error, producer_id=body.producer_id, producer_epoch=body.producer_epoch, goes_on=kept)


def _request(step: Any, frame: Frame, body: Any) -> Any:
    api = frame.api_key
    made = partial(
        step,
        transactional_id=body.transactional_id,
        producer_id=body.producer_id,
        producer_epoch=body.producer_epoch,
    )
    if api == ApiKey.INIT_PRODUCER_ID:
        return made(kind="init", timeout=body.transaction_timeout_ms * 1000)
    if api == ApiKey.END_TXN:
        return made(kind="end", committed=bool(body.committed))
    if api == ApiKey.ADD_OFFSETS_TO_TXN:
        return made(kind="group", group_id=body.group_id)
    count = sum(len(topic.partitions) for topic in body.topics)
    return made(kind="offsets", group_id=body.group_id, records=count)


@lru_cache(256)
def _error(code: int) -> str:
    return error_name(code) or str(code)


_NO_ERROR: Final = _error(0)


def _adding(step: Any, version: int, body: Any) -> Iterator[Step]:
    """The partitions of an AddPartitionsToTxn request."""
    if version < _BATCHED:
        said: Iterable[tuple[dict[str, Any], Any]] = [
            (
                {
                    "transactional_id": body.v3_and_below_transactional_id,
                    "producer_id": body.v3_and_below_producer_id,
                    "producer_epoch": body.v3_and_below_producer_epoch,
                },
                body.v3_and_below_topics,
            )
        ]
    else:
        said = (
            (
                {
                    "transactional_id": one.transactional_id,
                    "producer_id": one.producer_id,
                    "producer_epoch": one.producer_epoch,
                    "verify": bool(one.verify_only),
                    "broker": True,
                },
                one.topics,
            )
            for one in body.transactions
        )
    for values, topics in said:
        for topic in topics:
            for partition in topic.partitions:
                yield step(kind="add", topic=topic.name, partition=partition, **values)


def _added(step: Any, version: int, body: Any) -> Iterator[Step]:
    """What an AddPartitionsToTxn response says of each partition."""
    if version < _BATCHED:
        said: Iterable[tuple[str | None, Any]] = [(None, body.results_by_topic_v3_and_below)]
    else:
        said = ((one.transactional_id, one.topic_results) for one in body.results_by_transaction)
    for name, topics in said:
        for topic in topics:
            for one in topic.results_by_partition:
                yield step(
                    kind="add",
                    topic=topic.name,
                    partition=one.partition_index,
                    transactional_id=name,
                    error=_error(one.partition_error_code),
                )


class _Maker(Maker):
    def __init__(self, schema: pa.Schema, run: Run) -> None:
        self._schema = schema
        self._later = run.later or run.carried
        # A part of a whole goes on with what the part before it left.
        left: Left = run.memory.setdefault("transactions", Left()) if run.goes_on else Left()
        self._fold = left.fold
        self._fold.events = "events" in schema.names
        self._steps = Steps(run, left)
        self._held = Held(self._made)
        self.kinds, self.look = _LOOKED, self._steps.look  # type: ignore[method-assign]

    @property
    def full(self) -> bool:
        return self._steps.full

    def _made(self, rows: list[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
        if rows:
            yield batch_of(rows, self._schema)

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        yield from self._held.put(self._rows(frames), frames)

    def _rows(self, frames: Frames) -> Iterator[dict[str, Any]]:
        fold = self._fold
        for frame, _, one in self._steps.of(frames):
            if isinstance(one, Step):
                yield from fold.add(one)
            else:
                yield from (fold.asks if frame == one.frame else fold.answers)(one)

    def rest(self, tracker: Any) -> Iterator[pa.RecordBatch]:
        yield from self._held.rest(() if self._later else self._fold.rest())


def batch_of(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows of the state machine as a batch."""
    return pa.RecordBatch.from_arrays(
        [as_array([row[one.name] for row in rows], one.type) for one in schema], schema=schema
    )


def _where(row: showing.Row) -> str:
    parts = [showing.partition(one) for one in row["partitions"][:3]]
    return ", ".join(parts) + (", …" if len(row["partitions"]) > 3 else "") or "-"


def _held(row: showing.Row) -> str:
    if not row["held_records"]:
        return "-"
    who = ", ".join(map(showing.readable, row["held_readers"]))
    return f"{row['held_records']} for {row['held_ms']:.0f} ms" + (f": {who}" if who else "")


def _duration(row: showing.Row) -> str:
    return "-" if row["duration_ms"] is None else f"{row['duration_ms']:.1f}"


TABLE: Final = CaptureTable(
    name="transactions",
    schema=SCHEMA,
    file="capture",
    statuses=STATUSES,
    maker=_Maker,
    by_row=ByRow(times=("began", "ended"), topics=("partitions",)),
    in_order=True,
    remembers=Left,
    shown=(
        Column("began", showing.time("began")),
        Column("transaction", showing.plain("transactional_id"), shrink=10),
        Column("producer", showing.plain("producer_id"), right=True),
        Column("epoch", showing.plain("producer_epoch"), right=True),
        Column("client_id", showing.plain("client_id"), shrink=8),
        Column("partitions", _where, shrink=12),
        Column("records", showing.plain("records"), right=True),
        Column("bytes", showing.plain("record_bytes"), right=True),
        Column("end", showing.plain("end")),
        Column("ms", _duration, right=True),
        Column("held back", _held, shrink=18),
        Column("cause", showing.said("cause"), shrink=12),
        Column("status", showing.status, empty="ok"),
    ),
)
"""The table ``transactions`` of captures (``CaptureTable``): one row for each transaction."""
