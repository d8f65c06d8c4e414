"""The table ``records``: one row for each record in a Produce request, or in a Fetch or ShareFetch response.

Programs find record sets (one program for each API and version that appears), all of a window in one call.
``kwire.records`` decodes them in one more. Some frames know a topic by its id only. Its name is learnt from every
message that has both (Metadata, CreateTopics and so on), by such programs too.

Rules kept here:

- Names of topics, of up to 32 kB each, stand in every row. Their bytes are counted before they are written, and batches
  are cut by them.
- Of names that are longer than Kafka allows, a capture has as much text as ``Limits.text``. Rows after that have no
  name, and say so.
- Rows for errors come after the records of the same set. Those for a whole frame come after all of its sets.
- Values that hold secrets are replaced if the topic is ``__cluster_metadata``, by its name or its id.
- Work that no chosen column needs is not done:
    - keys, values and headers are not copied
    - checksums are not looked at
    - names of topics are not learnt
    - rows do not wait for responses to Produce requests
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire import schema
from kwire.capture.frames import Frames
from kwire.kernels.engine import choose
from kwire.kernels.layouts import ABSENT, Status
from kwire.kernels.partitions import NOT_ACQUIRED, deliveries
from kwire.kernels.programs import Program, compile_program, job_column, length_column, value_column
from kwire.limits import BEYOND
from kwire.log.internal import MAY_HIDE, of_metadata
from kwire.protocol.secrets import METADATA_TOPIC, METADATA_TOPIC_ID
from kwire.records.arrow_types import RECORD_FIELDS, STATUS_FIELDS, TIMESTAMP
from kwire.records.batching import MOST_BYTES
from kwire.records.budget import Budget
from kwire.schema.keys import ApiKey
from kwire.schema.model import FIXED_SIZES, ArrayLayout, ByIdentity, StructLayout
from kwire.tables import columns, showing, values
from kwire.tables.aborted import COLUMNS, LISTS, Isolation, Listed
from kwire.tables.committed import COMMITTED, NOTHING, R_ACKS, SET_NUMBER, Committed, Within
from kwire.tables.definition import CaptureTable, Maker, Run, words
from kwire.tables.frames import KEY
from kwire.tables.locating import Failure, Programs, layouts
from kwire.tables.showing import Column
from kwire.tables.topics import R_TOPIC, R_TOPIC_ID, Topics

if TYPE_CHECKING:
    from kwire.capture.tracker import Tracker
    from kwire.records import RecordColumns

__all__ = [
    "ASKED",
    "R_RECORDS",
    "SCHEMA",
    "SET",
    "SHOWN",
    "STATUSES",
    "TABLE",
    "WORDS",
    "Place",
    "RecordStatus",
    "Records",
]

Array = Any

SET: Final = (
    *KEY,
    pa.field("frame_timestamp", TIMESTAMP),
    pa.field("source", pa.string(), nullable=False),
    pa.field("topic", pa.string()),
    pa.field("topic_id", pa.string()),
    pa.field("partition", pa.int32()),
)
"""The columns of a record set, with which ``batches`` begins too: its frame, and which partition it belongs to."""

SCHEMA: Final = pa.schema(
    [
        *SET,
        *RECORD_FIELDS,
        pa.field("batch", pa.int64()),
        *STATUS_FIELDS,
    ]
)
"""One row per record of a Produce request (``source`` is ``produce``), a Fetch or ShareFetch response (``fetch``).

``frame_timestamp`` is the ``timestamp`` of the table ``frames``, ``timestamp`` the record's own. ``topic_id`` is the
uuid in Kafka's URL-safe base64 form if the frame has one. ``topic`` is then the name that the last message before this
frame gave to it, or null. ``batch`` is the byte of the frame at which the record's batch begins. With the key of the
frame it is the key of the table ``batches``. Bytes that are no record become one row with a status other than ``ok``.
Its record columns are null.
"""


class RecordStatus(IntEnum):
    """What became of a record."""

    OK = 0
    CORRUPT = 1
    MALFORMED = 2
    UNREADABLE = 3
    TOO_LARGE = 4
    NOT_ACQUIRED = 5


STATUSES: Final = {
    RecordStatus.OK: "a record, its checksum verified",
    RecordStatus.CORRUPT: "a record whose checksum does not match: read, but not to be trusted",
    RecordStatus.MALFORMED: "bytes that are no record, or a batch that cannot be decompressed; only the columns of the "
    "frame, topic and partition are there",
    RecordStatus.UNREADABLE: "the frame is incomplete: what follows the record sets that are whole is not there",
    RecordStatus.TOO_LARGE: "a batch that would become more than a limit allows, how many more problems there were, or "
    "a record without the name of its topic, which is longer than any and repeated too often",
    RecordStatus.NOT_ACQUIRED: "a record that a ShareFetch response has, because others of its batch are acquired, and "
    "that is not for this client",
}
"""What each ``status`` means. ``error`` says more, in a sentence, unless it is ``ok``."""

WORDS: Final = columns.status_words(RecordStatus)
"""Words of the column ``status``, by its number (tuple of str)."""
_NOT_ACQUIRED: Final = "the batch is in the response for others of its records: the client did not acquire this one"
SOURCES: Final = ("produce", "fetch")

OF_PLACE: Final = tuple(SCHEMA.names[: SCHEMA.get_field_index("offset")])
"""Columns that say where a record stands: of its frame, or of its record set. Rows that are no record have them too."""
OF_RECORD: Final = tuple(one for one in SCHEMA.names if one not in (*OF_PLACE, "batch", "status", "error"))
"""Columns that the record decoder makes, under the same names."""

_FETCHED: Final = (
    "responses.topic",
    "responses.topic_id",
    "responses.partitions.partition_index",
    "responses.partitions.records",
)
_SET_FIELDS: Final = {
    ApiKey.PRODUCE: (
        "topic_data.name",
        "topic_data.topic_id",
        "topic_data.partition_data.index",
        "topic_data.partition_data.records",
    ),
    ApiKey.FETCH: _FETCHED,
    ApiKey.SHARE_FETCH: _FETCHED,
}
"""Where the topic, its id, the partition and the record set stand: registers 0 to 3."""
R_PARTITION: Final = 2
"""Register of the partition's number."""
R_RECORDS: Final = 3
"""Register of the record set."""
assert (R_TOPIC, R_TOPIC_ID) == (0, 1)
R_ABORTED: Final = R_ACKS + 1
"""The list of aborted transactions, where it is asked for."""
SET_REGISTERS: Final = R_ABORTED + 1
assert R_ACKS == 4
_LAST: Final = int(np.iinfo(np.int64).max)
"""After all record sets of a frame."""

LONGEST_NAME: Final = 249
"""Bytes of the longest name that a topic can have (``org.apache.kafka.common.internals.Topic``)."""

_OTHER_TEXT: Final = 48
"""Bytes of a row's text that is counted in one: words of ``status``, ``compression``, ``timestamp_type`` and so on."""


_SETS_AT_ONCE: Final = 1 << 15
"""Record sets that are looked at together: one frame may have millions of empty ones."""


ASKED: Final = (COMMITTED,)
"""Columns that are there by name only, here and in the table ``batches``."""
DELIVERY: Final = pa.field("delivery_count", pa.int16())
"""Of ShareFetch responses: how often the record was delivered, with this response. There by name only."""


class Records(Maker):
    """Makes the rows. ``schema_`` has the columns that are wanted, ``most`` is about how many bytes of text a batch
    has. ``names``: all names of topics are wanted, whatever they cost."""

    def __init__(self, schema_: pa.Schema, run: Run, most: int = MOST_BYTES, *, names: bool = False) -> None:
        self._most = most
        self._long_names = _LAST if names else run.options["limits"].text
        self._parts = 2 if names else 4
        self._name = run.name
        self._limits = run.options["limits"]
        self._budget = Budget(run.options["limits"])
        self._redacts = not run.options["secrets"] and not set(MAY_HIDE).isdisjoint(schema_.names)
        self._schema = schema_
        self._wanted = frozenset(schema_.names)
        self._decoded = [one for one in OF_RECORD if one in self._wanted]
        if "crc_ok" not in self._decoded and not self._wanted.isdisjoint(("status", "error")):
            self._decoded.append("crc_ok")
        if "batch" in self._wanted:
            self._decoded.append("position")
        self._asks_acquired = not self._wanted.isdisjoint((DELIVERY.name, "status", "error"))
        self._committed: Committed | None = None
        if COMMITTED.name in self._wanted:
            self._schema = schema_.append(SET_NUMBER)
            self._decoded += [one for one in Within.COLUMNS if one not in self._decoded]
            # A table of its own: two that are read together both wait.
            key = f"{COMMITTED.name} of {type(self).__name__}"
            self._committed = run.memory.pop(key, None) or Committed(schema_)
            self._committed.begin(run.answers)
            if run.later:
                run.memory[key] = self._committed
        self._later = run.later
        self._isolation = Isolation() if run.options["read_committed"] else None
        self._sets = Programs(partial(_set_program, self._isolation is not None, run.options["secrets"]), SET_REGISTERS)
        self._topics = Topics(run.topics, secrets=run.options["secrets"], learns=run.learns)
        self._only = run.only

    sees_all = True

    @property
    def short(self) -> bool:
        return self._budget.short

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        if self._committed is None:
            yield from self._batches(frames)
            return
        for some in self._committed.in_turn(frames):
            yield from self._committed.hear(some)
            for batch in self._batches(some):
                yield from self._committed.put(batch)

    def _batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        for sets, of_job, failures in self._found(frames):
            yield from self._of_sets(frames, sets, of_job, failures)

    def rest(self, tracker: Tracker) -> Iterator[pa.RecordBatch]:
        # Those of a part wait for the next.
        return iter(()) if self._committed is None or self._later else self._committed.rest()

    def notes(self) -> list[str]:
        return [] if self._isolation is None else self._isolation.notes()

    def _of_sets(self, frames: Frames, sets: Array, of_job: Array, failures: list[Failure]) -> Iterator[pa.RecordBatch]:
        from kwire.records.columnar import decode_pieces
        from kwire.records.verdicts import Waiting

        starts = value_column(sets, R_RECORDS).copy()
        lengths = np.maximum(length_column(sets, R_RECORDS), 0)
        place = Place(self._name, self._topics, frames, sets, of_job, self._wanted, self._committed)
        hides = _metadata_sets(frames.data, sets) if self._redacts else np.zeros(0, bool)
        listed = None
        if self._isolation is not None:
            others = _metadata_sets(frames.data, sets)
            listed = Listed(self._isolation, frames, sets, of_job, at=R_ABORTED, others=others)
        more = [*(() if listed is None else COLUMNS), *(["is_control"] if hides.any() else [])]
        if self._asks_acquired and place.find_ranges():
            more.append("offset")
        decoded = list(dict.fromkeys([*self._decoded, *more]))
        waiting = Waiting()
        for failure in failures:
            waiting.add((failure.row, _LAST), failure)
        pieces = decode_pieces(frames.data, starts, lengths, limits=self._limits, columns=decoded, budget=self._budget)
        for found, after in pieces:
            for one, offset, text in found.problems:
                waiting.add((int(of_job[one]), one), f"at byte {offset} of the record set: {text}")
            problems = waiting.before(None if after is None else (int(of_job[after[0]]), after[0]))
            found = found if listed is None else listed.kept(found)
            yield from self._made(frames, place, found, problems, hides)

    def _found(self, frames: Frames) -> Iterator[tuple[Array, Array, list[Failure]]]:
        """Some of the record sets, the frame of each, and the frames that could not be read to their end."""
        topics = None if self._only is None else self._only.topics
        if "topic" in self._wanted or topics is not None:
            self._topics.learn(frames)
        candidates = frames.with_body(_KINDS)
        if self._only is not None:
            candidates &= self._only.frames(frames)
        for rows, sets, failures in self._sets.parts(frames, np.flatnonzero(candidates), _SETS_AT_ONCE):
            of_job = rows[job_column(sets)]
            if topics is not None:
                kept = self._topics.names(frames.data, sets, frames.numbers[of_job]).among(topics)
                # An error of a frame is not of one of its topics.
                sets, of_job, failures = sets[kept], of_job[kept], []
            # ``frames`` reports bytes after the body: nothing of the records is missing.
            yield sets, of_job, [one for one in failures if not one.is_trailing]

    def _made(
        self,
        frames: Frames,
        place: Place,
        found: RecordColumns,
        problems: list[tuple[tuple[int, ...], Any]],
        hides: Array,
    ) -> Iterator[pa.RecordBatch]:
        """The batches of some records and of the problems among them. ``hides``: sets whose records may be hidden."""
        from kwire.records.batching import text_size
        from kwire.records.verdicts import placed, problem_rows, shared_out, verdict

        of_set, counts = _runs(found.set_index)
        own = {name: found.batch.column(name) for name in self._decoded}
        if "position" in own:
            position = own.pop("position").to_numpy()
            own["batch"] = pa.array(position + columns.over(place.begins[of_set], counts))
        if hides.any():
            control = found.batch.column("is_control").to_numpy(False)
            some = {one: own[one] for one in MAY_HIDE if one in own}
            own |= of_metadata(some, hides[found.set_index], control)
        if "crc_ok" in own:
            own["status"], own["error"] = verdict(own["crc_ok"])
        if place.ranges is not None:
            own |= place.deliveries(found, own)
        elif DELIVERY.name in self._wanted:
            own[DELIVERY.name] = pa.nulls(len(found.set_index), DELIVERY.type)
        if self._committed is not None:
            own[COMMITTED.name] = place.within.column(found)
            own[SET_NUMBER.name] = place.numbered(found.set_index)
        n_rows = len(found.set_index)
        if not problems and n_rows * place.most <= self._most and not place.has_long_names:
            # As good as always.
            made = place.columns(of_set, place.of_job[of_set], counts=counts)
            yield columns.filled(self._schema, (made | own).__getitem__)
            return
        errors = [one.sentence(frames) if isinstance(one, Failure) else one for _, one in problems]
        bad_frames, bad_sets = np.array([at for at, _ in problems], np.int64).reshape(-1, 2).T
        row = np.concatenate([place.of_job[found.set_index], bad_frames])
        order = np.concatenate([found.set_index, bad_sets])
        index = np.where(order == _LAST, -1, order)
        costs = place.costs(index)
        unnamed = self._unnamed(place, index)
        costs[unnamed] -= place.long_names[index[unnamed]]
        if unnamed.any():
            # The sentence is there four times on the way to its column.
            costs[unnamed] += 4 * len(self._nameless(0))
            of_bad = zip(errors, unnamed[n_rows:].tolist(), place.long_names[index[n_rows:]].tolist(), strict=True)
            errors = [f"{text}; {self._nameless(size)}" if one else text for text, one, size in of_bad]
        costs[n_rows:] += np.array([text_size(text) for text in errors], np.int64)
        # A batch is there three times while the next is made: once in Arrow's builders.
        most = self._most // self._parts if place.has_long_names else self._most
        for part in shared_out(costs, n_rows, row, order, most=most):
            good, bad = part.rows, slice(n_rows + part.problems.start, n_rows + part.problems.stop)
            made = place.columns(index[good], row[good], unnamed[good])
            made |= {name: column.slice(good.start, good.stop - good.start) for name, column in own.items()}
            if "status" in made and unnamed[good].any():
                made |= self._counted(made, unnamed[good], place.long_names[index[good]])
            batch = columns.filled(self._schema, made.__getitem__)
            if bad.stop > bad.start:
                values: dict[str, Any] = place.columns(index[bad], row[bad], unnamed[bad])
                said = errors[part.problems]
                values["status"] = columns.pick(WORDS, self._statuses(frames, index[bad], row[bad], said))
                values["error"] = said
                values[SET_NUMBER.name] = NOTHING
                batch = placed(batch, problem_rows(self._schema, bad.stop - bad.start, values), part.order)
            yield batch

    def _nameless(self, size: int) -> str:
        return f"the name of the topic, {size} bytes: {self._limits.said('text')}"

    def _counted(self, made: dict[str, pa.Array], unnamed: Array, sizes: Array) -> dict[str, pa.Array]:
        """The status and error of records. Some of them lack the name of their topic."""
        different, which = np.unique(sizes, return_inverse=True)
        of_name = pa.array(list(map(self._nameless, different.tolist())), pa.string()).take(pa.array(which))
        hidden, error = pa.array(unnamed), made["error"]
        both = pc.if_else(error.is_valid(), pc.binary_join_element_wise(error, of_name, "; "), of_name)
        return {
            "status": pc.if_else(hidden, WORDS[RecordStatus.TOO_LARGE], made["status"]),
            "error": pc.if_else(hidden, both, error),
        }

    def _unnamed(self, place: Place, of_set: Array) -> Array:
        """Which rows get no name of their topic: those after the limit of long names in all."""
        if not place.has_long_names:
            return np.zeros(len(of_set), bool)
        sizes = place.long_names[of_set]
        made: Array = (np.cumsum(sizes) > self._long_names) & (sizes > 0)
        self._long_names -= int(sizes[~made].sum())
        return made

    def _statuses(self, frames: Frames, of_set: Array, of_frame: Array, said: list[str]) -> Array:
        whole = (of_set >= 0) | (frames["status"][of_frame] == Status.OK)
        made = np.where(whole, int(RecordStatus.MALFORMED), int(RecordStatus.UNREADABLE))
        return np.where([BEYOND in text for text in said], int(RecordStatus.TOO_LARGE), made)


def _runs(set_index: Array) -> tuple[Array, Array | None]:
    """The sets of neighbouring records, and how many records each has. None if each has one."""
    ends = np.flatnonzero(np.append(set_index[1:] != set_index[:-1], len(set_index) > 0))
    of_set = set_index[ends].astype(np.int64)
    return of_set, None if len(ends) == len(set_index) else np.diff(ends, prepend=-1)


_KINDS: Final = np.zeros(2 * ApiKey.SHARE_FETCH + 2, np.uint8)
"""1 for the kinds of frames that hold records, as ``Frames.with_body`` takes them."""
_KINDS[[2 * ApiKey.PRODUCE, 2 * ApiKey.FETCH + 1, 2 * ApiKey.SHARE_FETCH + 1]] = 1


_NAME: Final = np.frombuffer(METADATA_TOPIC.encode(), np.uint8)
_ID: Final = np.frombuffer(METADATA_TOPIC_ID.bytes, np.uint8)


def _metadata_sets(data: Array, sets: Array) -> Array:
    """Which record sets are of ``__cluster_metadata``."""
    made: Array = np.zeros(len(sets), bool)
    for register, wanted in ((R_TOPIC, _NAME), (R_TOPIC_ID, _ID)):
        starts = value_column(sets, register)
        rows = np.flatnonzero(length_column(sets, register) == len(wanted))
        # The last byte alone tells most others apart.
        rows = rows[data[starts[rows] + len(wanted) - 1] == wanted[-1]]
        made[rows] |= (data[starts[rows, None] + np.arange(len(wanted))] == wanted).all(axis=1)
    return made


class Place:
    """Where records stand: the columns of their frame and of their record set."""

    def __init__(
        self,
        name: str,
        topics: Topics,
        frames: Frames,
        sets: Array,
        of_job: Array,
        wanted: frozenset[str],
        committed: Committed | None,
    ) -> None:
        from kwire.records.batching import text_size

        self._name = name
        self._frames = frames
        self._sets = sets
        self._wanted = wanted
        self.of_job = of_job
        """The frame of each record set."""
        self.begins: Array = value_column(sets, R_RECORDS) - frames["off"][of_job]
        """The byte of its frame at which each record set begins."""
        self.ranges: Array | None = None
        """Of each record set where its ranges of acquired offsets begin (-1: it has none), and where its frame ends."""
        if committed is not None:
            self.within: Within = Within(len(sets))
            self._numbers = committed.enter(frames, sets, of_job)
        self._texts: dict[str, columns.Texts] = {}
        if "topic" in wanted:
            self._texts["topic"] = topics.names(frames.data, sets, frames.numbers[of_job])
        if "topic_id" in wanted:
            self._texts["topic_id"] = topics.ids(frames.data, sets)

        self._costs = np.full(len(sets) + 1, _OTHER_TEXT + (text_size(name) if "capture" in wanted else 0))
        for one in self._texts.values():
            self._costs += one.sizes()
        named = self._texts["topic"].sizes() if "topic" in wanted else np.zeros(len(sets) + 1, np.int64)
        self.long_names: Array = np.where(named > LONGEST_NAME, named, 0)
        """Bytes of the name of each set's topic, if it is too long to be one. 0 at the end, for no set."""
        self.has_long_names: bool = bool(self.long_names.any())
        self.most: int = int(self._costs.max())
        """The most bytes of text that a row has."""

    def find_ranges(self) -> bool:
        """Looks for acquired offsets. Returns whether there are any."""
        frames, of_job = self._frames, self.of_job
        shared = frames["api"][of_job] == ApiKey.SHARE_FETCH
        if not shared.any():
            return False
        made = np.full((len(self._sets), 2), -1, np.int64)
        versions = frames["version"][of_job]
        ends = value_column(self._sets, R_RECORDS) + np.maximum(length_column(self._sets, R_RECORDS), 0)
        for version in np.unique(versions[shared]).tolist():
            between = _before_ranges(schema.generation(), version)
            if between is not None:
                mine = shared & (versions == version)
                made[mine, 0] = ends[mine] + between
                made[mine, 1] = (frames["off"] + frames["seen"])[of_job[mine]]
        self.ranges = made
        return True

    def deliveries(self, found: RecordColumns, own: dict[str, pa.Array]) -> dict[str, pa.Array]:
        """The column ``delivery_count`` of some records, and what becomes of the columns ``status`` and ``error``."""
        # A copy, whether Arrow's memory may be written to or not: kernels are compiled for each.
        offsets = np.array(pc.fill_null(found.batch.column("offset"), -1))
        counts = np.empty(len(offsets), np.int64)
        sets = found.set_index.astype(np.int64)
        choose(8 * len(offsets))(deliveries)(self._frames.data, self.ranges, sets, offsets, counts)
        made = {DELIVERY.name: columns.nullable(np.where(counts < 0, ABSENT, counts), DELIVERY.type)}
        if "status" in own:
            others = pa.array(counts == NOT_ACQUIRED)
            # The error of a checksum says more.
            others = pc.and_(others, pc.equal(own["status"], WORDS[RecordStatus.OK]))
            made["status"] = pc.if_else(others, WORDS[RecordStatus.NOT_ACQUIRED], own["status"])
            made["error"] = pc.if_else(others, _NOT_ACQUIRED, own["error"])
        return made

    def numbered(self, of_set: Array) -> pa.Array:
        """The column ``SET_NUMBER`` of things in the sets ``of_set`` (-1: in none)."""
        return pa.array(np.append(self._numbers, NOTHING)[of_set])

    def costs(self, of_set: Array) -> Array:
        """The bytes of text in the rows of things in the sets ``of_set`` (-1: in none)."""
        made: Array = self._costs[of_set]
        return made

    def columns(
        self, of_set: Array, row: Array, unnamed: Array | None = None, counts: Array | None = None
    ) -> dict[str, pa.Array]:
        """Those that are wanted, of things in the sets ``of_set`` (-1: in none) of the frames ``row``. ``unnamed``:
        those without the name of their topic. ``counts``: how many rows each thing is (None: one)."""
        named = of_set if unnamed is None else np.where(unnamed, -1, of_set)
        frames, texts = self._frames, self._texts
        make: dict[str, Callable[[], pa.Array]] = {
            "capture": lambda: columns.constant(self._name, len(row) if counts is None else int(counts.sum())),
            "connection": lambda: pa.array(columns.over(frames.of_connections("number", frames["slot"][row]), counts)),
            "frame": lambda: pa.array(columns.over(frames.numbers[row], counts)),
            "frame_timestamp": lambda: columns.timestamps(frames["time"][row], counts),
            "source": lambda: columns.pick(SOURCES, frames["response"][row], counts),
            "topic": lambda: texts["topic"].column(named, counts),
            "topic_id": lambda: texts["topic_id"].column(of_set, counts),
            "partition": lambda: columns.spread(value_column(self._sets, R_PARTITION), pa.int32(), of_set, counts),
        }
        assert tuple(make) == OF_PLACE
        return {name: one() for name, one in make.items() if name in self._wanted}


@lru_cache(maxsize=64)
def _before_ranges(generation: int, version: int) -> int | None:
    """Bytes between a record set and its ranges of acquired offsets in a ShareFetch response. None if this version has
    no such array, or another form of it."""
    both = layouts(ApiKey.SHARE_FETCH, 1, version)
    found = None if both is None else _struct(both[-1], ("responses", "partitions"))
    if found is None:
        return None
    names = [one.name for one in found.fields]
    if not {"records", "acquired_records"} <= set(names):
        return None
    first, last = names.index("records"), names.index("acquired_records")
    widths = [FIXED_SIZES.get(getattr(one.type, "name", ""), 0) for one in found.fields[first + 1 : last]]
    ranges = found.fields[last].type
    if last < first or not all(widths) or not isinstance(ranges, ArrayLayout) or not ranges.compact:
        return None
    element = ranges.element
    if not isinstance(element, StructLayout) or not element.flexible or element.tagged:
        return None
    form = [(one.name, getattr(one.type, "name", "")) for one in element.fields]
    return sum(widths) if form == _RANGE_FIELDS else None


_RANGE_FIELDS: Final = [("first_offset", "int64"), ("last_offset", "int64"), ("delivery_count", "int16")]


def _struct(layout: StructLayout, path: tuple[str, ...]) -> StructLayout | None:
    """The struct that the elements of an array within arrays are."""
    for name in path:
        one = next((one.type for one in layout.fields if one.name == name), None)
        if not isinstance(one, ArrayLayout) or not isinstance(one.element, StructLayout):
            return None
        layout = one.element
    return layout


def _set_program(isolated: bool, secrets: bool, api: int, response: int, version: int) -> Program | None:
    message = schema.response(api) if response else schema.request(api)
    return None if message is None else _program_of(ByIdentity(message), isolated, secrets, api, response, version)


@lru_cache(maxsize=256)
def _program_of(
    _message: ByIdentity, isolated: bool, secrets: bool, api: int, response: int, version: int
) -> Program | None:
    found = layouts(api, response, version, secrets=secrets)
    if found is None:
        return None
    fields = _SET_FIELDS[ApiKey(api)]
    *around, name = fields[R_RECORDS].split(".")
    inside = _struct(found[-1], tuple(around))
    if inside is None or (
        not secrets and any(one.name == name and one.secret not in ("", "topic") for one in inside.fields)
    ):
        return None
    # A response has no acks. They are always found: where a damaged frame ends must not depend on the caller.
    lists = {LISTS: R_ABORTED} if isolated else {}
    return compile_program(found, (*fields, "acks"), lists=lists, emit_after=fields[R_RECORDS])


SHOWN: Final = (
    Column("source", showing.plain("source"), least=len("produce")),
    Column("partition", showing.partition, shrink=12),
    Column("offset", showing.plain("offset"), right=True, least=8),
    Column("timestamp", showing.time("timestamp")),
    Column("key", showing.plain("key", "null"), shrink=8, empty="null"),
    Column("value", showing.plain("value", "null"), shrink=16),
    Column("headers", showing.headers, shrink=12),
    Column("format", showing.record_format, least=len("v1 snappy")),
    Column("control", showing.plain("control_type")),
    Column("status", showing.status, empty="ok"),
)
"""What a terminal shows of a record (tuple of ``Column``)."""

TABLE: Final = CaptureTable(
    name="records",
    schema=SCHEMA,
    file="capture",
    statuses=words(STATUSES),
    maker=values.maker(Records, pa.schema([*SCHEMA, *ASKED, DELIVERY])),
    shown=SHOWN,
    asked=(*ASKED, DELIVERY, *values.FIELDS),
)
"""The table ``records`` of captures (``CaptureTable``): records."""
