"""Where a broker has put the records of a Produce request: the column ``committed_offset`` of ``records`` and
``batches``.

A producer counts from 0. The response says which offset the first record of each record set got. It comes later than
the request, so a row that has this column waits for it. Rows are made when their request arrives, as always. They are
held back until its response arrives, or until it is certain that there is none.

Rules kept here:

- A response belongs to the request on the same connection with its correlation id and its time. Ids repeat, so the time
  is needed: that of the response less its latency. If one of the two has no time, the response belongs to no request.
- A broker answers the requests of a connection in order: rows of a request before one that was answered wait no longer.
  A response to it that comes all the same counts for nothing, also in the same window (``in_turn``). Rows of requests
  with acks=0 do not wait.
- Waiting rows have ``MOST_HELD`` bytes at most, with what is known of their record sets. Beyond that the older half of
  the record sets is given up.
- What is not known is null: no response, an error, an offset of -1.
- If a capture is a part of a whole, rows wait for the next part that is read after it. Or the answers in later parts
  are known before: ``Answered`` finds them, ``Run.answers`` has them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kwire import schema
from kwire.capture.frames import Frames
from kwire.kernels.engine import choose
from kwire.kernels.layouts import ABSENT, NO_TIME
from kwire.kernels.names import NameTable
from kwire.kernels.programs import Program, compile_program, job_column, value_column
from kwire.records.constants import CONSTANTS
from kwire.schema.keys import ApiKey
from kwire.schema.model import ByIdentity
from kwire.tables.locating import Programs, layouts
from kwire.tables.topics import R_TOPIC, R_TOPIC_ID, numbers_of

if TYPE_CHECKING:
    from kwire.capture.across import Link
    from kwire.records import RecordColumns
    from kwire.records.columnar import Batches

__all__ = ["ANSWERS", "COMMITTED", "NOTHING", "R_ACKS", "SET_NUMBER", "Answered", "Committed", "Within", "first_within"]

Array = Any

COMMITTED: Final = pa.field("committed_offset", pa.int64())
"""The column, there where it is asked for by name. Before the response is known: which record of its set it is."""
SET_NUMBER: Final = pa.field("set", pa.int64())
"""A column beside it that no table has: the number of the record set, ``NOTHING`` where nothing is waited for."""
NOTHING: Final = -1
"""The number (int) of a record set of which nothing is waited for."""

MOST_HELD: Final = 64 << 20
"""Bytes of rows that wait, with what is known of their record sets."""
MOST_BATCHES: Final = 32
"""Batches of them: more are put together."""
MOST_TURNS: Final = 256
"""Parts that a window is read in, at most, because responses are not in the order of their requests."""

_KEY: Final = ("connection", "id", "asked", "topic", "partition")
"""What a record set and what a response says of it have in common. ``asked``: the time of the request; ``topic``: a
number of its name or id."""
_OF_REQUEST: Final = 3
"""How many of these, from the first on, are of the request."""
_SET: Final = np.dtype([(one, np.int64) for one in (*_KEY, "frame", "number", "base", "here")])
"""A record set that is waited for. ``base``: the offset that its first record got; ``_WAITS``, ``_NONE``. ``here``: 1
if this part of the capture has the answer to its request."""
_ANSWER: Final = np.dtype([(one, np.int64) for one in (*_KEY, "base")])
_WAITS, _NONE = -2, -1
_FACTORS: Final = np.array([secrets.randbits(62) | 1 for _ in _KEY])

ANSWERS: Final = pa.schema(
    [
        pa.field("connection", pa.int64(), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("asked", pa.int64(), nullable=False),
        pa.field("topic", pa.binary()),
        pa.field("by_id", pa.bool_(), nullable=False),
        pa.field("partition", pa.int64(), nullable=False),
        pa.field("base", pa.int64(), nullable=False),
    ]
)
"""What Produce responses say of record sets whose requests stand elsewhere; ``base`` is -1 if there is no offset."""

_KINDS: Final = np.zeros(2, np.uint8)
_KINDS[2 * ApiKey.PRODUCE + 1] = 1
_RESPONSE: Final = (
    "responses.name",
    "responses.topic_id",
    "responses.partition_responses.index",
    "responses.partition_responses.error_code",
    "responses.partition_responses.base_offset",
)
R_PARTITION, R_ERROR, R_BASE = range(2, 5)
R_ACKS: Final = 4
"""After the registers of record sets: ``acks`` of the request."""


class _Responses:
    """Finds what Produce responses say: rows of _ANSWER."""

    def __init__(self) -> None:
        self._programs = Programs(_response_program, len(_RESPONSE))
        self._names = NameTable()
        self._ids = NameTable()

    def topics(self, data: Array, rows: Array) -> Array:
        """A number for the topic of each row, by its name or by its id. -1 for none."""
        names = numbers_of(self._names, data, rows, R_TOPIC)
        ids = numbers_of(self._ids, data, rows, R_TOPIC_ID)
        return np.where(names >= 0, 2 * names, np.where(ids >= 0, 2 * ids + 1, -1))

    def topic(self, number: int) -> tuple[bytes | None, bool]:
        """The name or id that has this number, and whether it is an id."""
        if number < 0:
            return None, False
        return (self._ids if number & 1 else self._names).values()[number >> 1], bool(number & 1)

    def numbered(self, topic: bytes | None, by_id: bool) -> int:
        """The number of a name or id."""
        if topic is None:
            return -1
        return 2 * (self._ids if by_id else self._names).add(topic, choose(0)) + by_id

    def found(self, frames: Frames) -> Array:
        """What the responses among some frames say, as far as the capture has them."""
        # A response that is known to be of Produce has its request.
        rows, said, _ = self._programs.run(frames, frames.once(_answering, partial(_answering, frames)))
        of_frame = rows[job_column(said)]
        made = np.empty(len(said), _ANSWER)
        made["connection"] = frames.of_connections("number", frames["slot"][of_frame])
        made["id"] = frames["id"][of_frame]
        made["asked"] = frames["time"][of_frame] - frames["latency"][of_frame]
        made["topic"] = self.topics(frames.data, said)
        made["partition"] = value_column(said, R_PARTITION)
        base = value_column(said, R_BASE)
        made["base"] = np.where((value_column(said, R_ERROR) == 0) & (base >= 0), base, _NONE)
        return made


def _answering(frames: Frames) -> Array:
    """The responses that say something, and have their request."""
    return np.flatnonzero(frames.with_body(_KINDS) & (frames["latency"] != ABSENT))


@lru_cache(maxsize=64)
def _program_of(_message: ByIdentity, version: int) -> Program | None:
    found = layouts(ApiKey.PRODUCE, 1, version)
    return None if found is None else compile_program(found, _RESPONSE, emit_after=_RESPONSE[R_BASE])


def _response_program(api: int, response: int, version: int) -> Program | None:
    message = schema.response(ApiKey.PRODUCE)
    assert (api, response) == (ApiKey.PRODUCE, 1)
    return None if message is None else _program_of(ByIdentity(message), version)


def _looked_up(wanted: Array, known: Array, names: tuple[str, ...]) -> Array:
    """For each row of ``wanted`` the first of ``known`` that has the same in the fields ``names``. -1 for none."""
    if not len(known) or not len(wanted):
        return np.full(len(wanted), -1, np.int64)
    both = [np.concatenate([known[one], wanted[one]]) for one in names]
    # What sorts them is one number, which tells them apart unless somebody knows the factors: that is looked at.
    mixed = sum(one * factor for one, factor in zip(both, _FACTORS, strict=False))
    order = np.argsort(mixed, kind="stable")
    differs = _changes(mixed[order])
    each = np.zeros(len(order), bool)
    for one in both:
        each |= _changes(one[order])
    if (each & ~differs).any():
        order = np.lexsort(both[::-1])
        differs = np.logical_or.reduce([_changes(one[order]) for one in both])
    # Sorting is stable: known rows come first.
    first = order[np.flatnonzero(differs)][np.cumsum(differs) - 1]
    found = np.empty(len(order), np.int64)
    found[order] = np.where(first < len(known), first, -1)
    return found[len(known) :]


def _changes(values: Array) -> Array:
    """Which values differ from those before them. The first does."""
    made = np.empty(len(values), bool)
    made[:1] = True
    np.not_equal(values[1:], values[:-1], out=made[1:])
    return made


class Committed:
    """The rows of a table that wait for responses, from window to window of a capture.

    ``schema_`` is that of the rows given out. Rows put in have ``COMMITTED`` and, after all, ``SET_NUMBER``.
    """

    def __init__(self, schema_: pa.Schema) -> None:
        self._schema = schema_
        self._place = schema_.get_field_index(COMMITTED.name)
        self._responses = _Responses()
        self._sets = np.zeros(0, _SET)
        """Those that wait, and those that the window added, in order of their numbers."""
        self._next = 0
        self._held: list[tuple[pa.RecordBatch, Array]] = []
        """Rows that wait, and the number of the record set of each."""
        self._size = 0
        """Bytes of these."""
        self._elsewhere = np.zeros(0, _ANSWER)
        self._said = self._elsewhere
        """What the responses of this window say, and those of later parts."""

    def begin(self, answers: pa.Table | None) -> None:
        """Begins a capture, or a part. ``answers``: what later parts answer to it, a table of ``ANSWERS``."""
        answers = ANSWERS.empty_table() if answers is None else answers
        self._elsewhere = np.empty(answers.num_rows, _ANSWER)
        for name in ("connection", "id", "asked", "partition", "base"):
            self._elsewhere[name] = answers.column(name).to_numpy()
        topics = zip(answers.column("topic").to_pylist(), answers.column("by_id").to_pylist(), strict=True)
        self._elsewhere["topic"] = [self._responses.numbered(*one) for one in topics]

    def in_turn(self, frames: Frames) -> list[Frames]:
        """The frames of a window, in parts whose responses are in the order of their requests."""
        rows = frames.once(_answering, partial(_answering, frames))
        asks = np.flatnonzero((frames["api"] == ApiKey.PRODUCE) & (frames["response"] == 0))
        answers, new = np.zeros(len(rows), _SET), np.zeros(len(asks), _SET)
        for made, of in ((answers, rows), (new, asks)):
            made["connection"] = frames.of_connections("number", frames["slot"][of])
            made["id"], made["asked"], made["frame"] = frames["id"][of], frames["time"][of], frames.numbers[of]
        answers["asked"] -= frames["latency"][rows]
        known = np.concatenate([self._sets, new])
        found = _looked_up(answers, known, _KEY[:_OF_REQUEST])
        requests = np.append(known["frame"], -1)[found]
        begins: list[int] = []
        latest: dict[int, int] = {}
        if _goes_back(answers["connection"], requests):
            of_rows = (rows.tolist(), answers["connection"].tolist(), requests.tolist())
            for row, connection, request in zip(*of_rows, strict=True):
                if 0 <= request < latest.get(connection, -1) and len(begins) < MOST_TURNS:
                    begins.append(row)
                    latest = {}
                latest[connection] = max(request, latest.get(connection, -1))
        if not begins:
            return [frames]
        return [frames.chosen(np.arange(*one)) for one in pairwise((0, *begins, len(frames)))]

    def hear(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        """Takes the responses of a window: the rows that wait no longer."""
        # What was asked and answered in the window before.
        self._pass_over()
        said = self._responses.found(frames)
        self._said = np.concatenate([self._elsewhere, said]) if len(self._elsewhere) else said
        self._look_up(np.flatnonzero(self._sets["base"] == _WAITS))
        self._pass_over()
        yield from self._given()
        self._sets = self._sets[self._sets["base"] == _WAITS]

    def enter(self, frames: Frames, sets: Array, of_job: Array) -> Array:
        """Takes record sets of the frames ``of_job``. Gives their numbers, ``NOTHING`` for those of responses."""
        numbers = np.full(len(sets), NOTHING)
        asks = (frames["response"][of_job] == 0) & (value_column(sets, R_ACKS) != 0)
        asks = np.flatnonzero(asks & (frames["time"][of_job] != NO_TIME))
        if not len(asks):
            return numbers
        sets, of_frame = sets[asks], of_job[asks]
        new = np.empty(len(asks), _SET)
        new["connection"] = frames.of_connections("number", frames["slot"][of_frame])
        new["id"], new["asked"] = frames["id"][of_frame], frames["time"][of_frame]
        new["topic"] = self._responses.topics(frames.data, sets)
        new["partition"] = value_column(sets, R_PARTITION)
        new["frame"] = frames.numbers[of_frame]
        new["number"] = numbers[asks] = np.arange(self._next, self._next + len(asks))
        new["base"], new["here"] = _WAITS, 0
        self._next += len(asks)
        before = len(self._sets)
        self._sets = np.concatenate([self._sets, new])
        self._look_up(np.arange(before, len(self._sets)))
        return numbers

    def _look_up(self, rows: Array) -> None:
        """Looks for the answers to some of the record sets."""
        wanted = self._sets[rows]
        found = _looked_up(wanted, self._said, _KEY)
        base = np.append(self._said["base"], _WAITS)[found]
        left = np.flatnonzero(found < 0)
        # A response may not speak of all that it was asked.
        found[left] = _looked_up(wanted[left], self._said, _KEY[:_OF_REQUEST])
        base[left[found[left] >= 0]] = _NONE
        self._sets["base"][rows] = base
        self._sets["here"][rows] = found >= len(self._elsewhere)

    def _pass_over(self) -> None:
        """Expects nothing for requests before one that was answered. What a later part answers comes later."""
        waits, here = self._sets["base"] == _WAITS, self._sets["here"] == 1
        if not waits.any() or not here.any():
            return
        connections, of = np.unique(self._sets["connection"], return_inverse=True)
        latest = np.full(len(connections), -1)
        np.maximum.at(latest, of[here], self._sets["frame"][here])
        self._sets["base"][waits & (self._sets["frame"] < latest[of])] = _NONE

    def _given(self) -> Iterator[pa.RecordBatch]:
        """The rows that wait no longer, after what is known has changed."""
        held, self._held, self._size = self._held, [], 0
        for batch, numbers in held:
            yield from self._put(batch, numbers)
        if len(self._held) > MOST_BATCHES:
            batches, of_rows = zip(*self._held, strict=True)
            self._held = [(pa.concat_batches(batches), np.concatenate(of_rows))]

    def put(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Rows of the table: those that need not wait."""
        numbers = batch.column(batch.num_columns - 1).to_numpy()
        yield from self._put(batch.select(self._schema.names), numbers)
        if self._size + self._sets.nbytes > MOST_HELD:
            waits = np.flatnonzero(self._sets["base"] == _WAITS)
            self._sets["base"][waits[: len(waits) // 2 + 1]] = _NONE
            yield from self._given()

    def _put(self, batch: pa.RecordBatch, numbers: Array) -> Iterator[pa.RecordBatch]:
        """Rows and the numbers of their record sets: those that need not wait. The others are held."""
        begins = np.flatnonzero(_changes(numbers))
        counts = np.diff(begins, append=len(numbers))
        of_set = numbers[begins]
        base = np.append(self._sets["base"], _NONE)[np.searchsorted(self._sets["number"], of_set)]
        base[of_set < 0] = _NONE
        waits = base == _WAITS
        if waits.any():
            held, given = _split(batch, waits, counts)
            of_rows = np.repeat(of_set[waits], counts[waits])
            self._held.append((held, of_rows))
            self._size += held.nbytes + of_rows.nbytes
            batch, base, counts = given, base[~waits], counts[~waits]
        if batch.num_rows:
            yield self._with(batch, _offsets(batch.column(self._place), base, counts))

    def _with(self, batch: pa.RecordBatch, column: pa.Array) -> pa.RecordBatch:
        columns = batch.columns
        columns[self._place] = column
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """All rows that still wait: there will be no response."""
        self._sets["base"][self._sets["base"] == _WAITS] = _NONE
        yield from self._given()


def _goes_back(connections: Array, requests: Array) -> bool:
    """Whether a response answers a request before one of its connection that was answered already. -1: not known."""
    connections, requests = connections[requests >= 0], requests[requests >= 0]
    order = np.argsort(connections, kind="stable")
    connections, requests = connections[order], requests[order]
    return bool(((connections[1:] == connections[:-1]) & (requests[1:] < requests[:-1])).any())


def _split(batch: pa.RecordBatch, waits: Array, counts: Array) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The rows of a batch that wait and those that do not, by runs of ``counts`` rows."""
    if waits.all():
        return batch, batch.slice(0, 0)
    rows = np.repeat(waits, counts)
    first = int(counts[: int(np.argmax(waits))].sum())
    # Copied, since a part of the batch would keep all of it. Rows that are given out are not copied, if they come
    # first.
    held = batch.filter(pa.array(rows))
    return held, batch.slice(0, first) if rows[first:].all() else batch.filter(pa.array(~rows))


def _offsets(within: pa.Array, base: Array, counts: Array) -> pa.Array:
    """The column, of runs of rows in record sets whose first records have the offsets ``base``; _NONE: not known."""
    if (base < 0).all():
        return CONSTANTS.get(COMMITTED.type, None, len(within))
    of_rows = np.repeat(base, counts)
    if not within.null_count and (base >= 0).all():
        return pa.array(of_rows + within.to_numpy())
    unknown = (of_rows < 0) | within.is_null().to_numpy(zero_copy_only=False)
    return pa.array(np.where(unknown, 0, of_rows + within.fill_null(0).to_numpy()), mask=unknown)


class Within:
    """Which record of its set each record is, from piece to piece of what is read of some sets.

    The records of a batch are numbered. Messages are counted, as the broker does. The count ends at bytes that could
    not be read: nobody knows how many messages there were.
    """

    COLUMNS: Final = ("offset", "base_offset", "magic", "position")
    """What has to be known of records."""

    def __init__(self, sets: int) -> None:
        self._counted = np.zeros(sets, np.int64)
        self._broken = np.full(sets, np.iinfo(np.int64).max)
        """The byte from which on something could not be read."""

    def column(self, found: RecordColumns) -> pa.Array:
        """The number of each record of a piece, null if it is not known."""
        for one, offset, _ in found.problems:
            self._broken[one] = min(self._broken[one], offset)
        offset, base, magic, position = (found.batch.column(name).to_numpy() for name in self.COLUMNS)
        index, known = offset - base, position == 0
        old = magic < 2
        if old.any():
            of_set = found.set_index
            begins = np.flatnonzero(_changes(of_set))
            counts = np.diff(begins, append=len(of_set))
            before = self._counted[of_set[begins]] - begins
            self._counted[of_set[begins]] += counts
            index = np.where(old, np.arange(len(of_set)) + np.repeat(before, counts), index)
            known = np.where(old, position <= self._broken[of_set], known)
        return pa.array(index) if known.all() else pa.array(index, mask=~known)


def first_within(found: Batches) -> pa.Array:
    """Which record of its set the first of each batch, or message, is. Null if it is not known."""
    count, of_set = found.records, found.set_index
    magic, unknown = found.headers["magic"], count < 0
    begins = np.flatnonzero(_changes(of_set))
    counts = np.diff(begins, append=len(of_set))

    def before(values: Array) -> Array:
        """The sum of what stands before each in its set."""
        sums = np.cumsum(values) - values
        return sums - np.repeat(sums[begins], counts)

    index = before(np.where(unknown, 0, count))
    known = (found.headers["crc_ok"] >= 0) & (before(unknown) == 0) & ((magic < 2) | (index == 0))
    return pa.array(index, mask=~known)


class Answered:
    """What parts answer that earlier parts have asked, while a ``Chain`` goes from part to part.

    The chain gives it the frames that it comes upon (``hear``). Then ``of`` says what they answer.
    """

    def __init__(self) -> None:
        self._responses = _Responses()
        self._heard: list[Array] = []
        self._asked: dict[int, dict[tuple[int, int], tuple[int, int | None]]] = {}
        """By connection, the requests that wait: by id and time, which of them each is, and the place of the part that
        has it. None if a later one was answered."""

    def hear(self, frames: Frames) -> None:
        """Takes some frames of a part."""
        said = self._responses.found(frames)
        if len(said):
            self._heard.append(said)

    def of(self, link: Link) -> Mapping[int, pa.Table]:
        """What was heard of the part of this link: tables of ``ANSWERS`` by the place of the part that asked."""
        numbers = link.state.column("connection").combine_chunks().field("number").to_pylist()
        waiting = link.state.column("waiting").to_pylist()
        for number, last, requests in zip(numbers, link.gone_on.values(), waiting, strict=True):
            before = self._asked.get(number, {})
            produced = {(one["id"], one["time"]): one for one in requests if one["api"] == ApiKey.PRODUCE}
            # To those that were overtaken, no answer counts any more.
            self._asked[number] = {
                key: (turn, None if one["overtaken"] else before.get(key, (turn, last))[1])
                for turn, (key, one) in enumerate(produced.items())
            }
        heard, self._heard = self._heard, []
        rows: dict[int, dict[tuple[Any, ...], dict[str, Any]]] = {}
        latest: dict[int, int] = {}
        for some in heard:
            # The head of a part may be heard, and then all of it.
            for connection, id_, asked, topic, partition, base in some.tolist():
                turn, place = self._asked.get(connection, {}).get((id_, asked), (0, None))
                before_it = latest.get(connection, 0)
                latest[connection] = max(turn, before_it)
                if place is not None and turn >= before_it:
                    key = (connection, id_, asked, topic, partition)
                    name, by_id = self._responses.topic(topic)
                    values = (connection, id_, asked, name, by_id, partition, base)
                    rows.setdefault(place, {}).setdefault(key, dict(zip(ANSWERS.names, values, strict=True)))
        return {place: pa.Table.from_pylist(list(some.values()), ANSWERS) for place, some in rows.items()}
