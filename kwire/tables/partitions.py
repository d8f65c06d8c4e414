"""The table ``partitions``: one row for each topic and partition that a message speaks of.

Strategy: programs (``kwire.kernels.programs``) find what a message says of a partition. They are made from its layout
by the names of fields. So every API with such arrays is there, in every version, also those of schemas that a user has
loaded. ``_found`` says what counts: an array whose elements say a partition, within (or with) a topic's name or id.
There are no message objects.

Rules kept here:

- A row has what the message says of this partition. Fields around the array (the group) are in each of its rows.
- Numbers are those of the wire: an offset or epoch of -1 is -1.
- Times that are no time are null: -1 means none. ListOffsets asks for the latest offset with -1, which is a word in
  ``offset_spec``.
- Record sets are counted by the headers of their batches: nothing is decompressed, no checksum computed. Of a
  ShareFetch response ``records`` are those that were acquired. The batches are there whole.
- A frame that cannot be read to its end has the rows before that, and after them a row that says why.
- Rows are made some 30,000 at a time, within a frame too: four bytes of a frame may be a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire import schema
from kwire.capture.frames import Frames
from kwire.kernels.engine import choose
from kwire.kernels.layouts import ABSENT, Status
from kwire.kernels.partitions import MIXED, RANGE, count_records, int_lists
from kwire.kernels.programs import Each, Program, compile_program, job_column, length_column, value_column
from kwire.protocol.error_codes import error_name
from kwire.records.arrow_types import STATUS_FIELDS, TIMESTAMP
from kwire.records.batching import text_size
from kwire.records.compression import CODECS
from kwire.records.constants import CONSTANTS
from kwire.records.verdicts import placed, problem_rows, shared_out
from kwire.schema.keys import ApiKey
from kwire.schema.model import FIXED_SIZES, ArrayLayout, FieldLayout, PrimitiveLayout, StructLayout
from kwire.tables import columns, showing
from kwire.tables.definition import CaptureTable, Maker, Run, words
from kwire.tables.frames import BROKER, KEY, OF_FRAME, Capture, FrameColumns, text_sizes
from kwire.tables.locating import Failure, Programs, layouts
from kwire.tables.showing import Column
from kwire.tables.topics import R_TOPIC, R_TOPIC_ID, Names, Topics
from kwire.wire import LAST_MS

__all__ = ["SCHEMA", "STATUSES", "TABLE", "PartitionStatus"]

Array = Any

SCHEMA: Final = pa.schema(
    [
        *OF_FRAME,
        pa.field("correlation_id", pa.int32()),
        pa.field("path", pa.string()),
        pa.field("group_id", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("offset_spec", pa.string()),
        pa.field("timestamp", TIMESTAMP),
        pa.field("leader_epoch", pa.int32()),
        pa.field("high_watermark", pa.int64()),
        pa.field("last_stable_offset", pa.int64()),
        pa.field("log_start_offset", pa.int64()),
        pa.field("leader", pa.int32()),
        pa.field("isr", pa.list_(pa.field("element", pa.int32(), nullable=True))),
        pa.field("record_bytes", pa.int64()),
        pa.field("batches", pa.int64()),
        pa.field("records", pa.int64()),
        pa.field("compression", pa.string()),
        *STATUS_FIELDS,
    ]
)
"""One row for each topic and partition in a frame. A column is null if the API, or this version of it, does not say it.

``frame_timestamp`` is the ``timestamp`` of the table ``frames``, ``timestamp`` what the message says. ``path`` is the
array of the message that the row stands for. ``error`` is the name of the error code of the partition. A topic that
lists no partition (Metadata) is a row with its own error code. If ``status`` is not ``ok``, ``error`` is a sentence.
"""


class PartitionStatus(IntEnum):
    """What became of a frame's partitions."""

    OK = 0
    MALFORMED = 1
    UNREADABLE = 2


STATUSES: Final = {
    PartitionStatus.OK: "what a message says of a partition",
    PartitionStatus.MALFORMED: "the body is not what its version says: what stands before the damage is there",
    PartitionStatus.UNREADABLE: "the frame is incomplete: what it says of further partitions is not there",
}
"""What each ``status`` means."""

WORDS: Final = columns.status_words(PartitionStatus)

MOST_ROWS: Final = 1 << 14
"""Rows that are found at once: each has some 750 bytes while it is looked at."""

# Registers of the programs, after R_TOPIC and R_TOPIC_ID.
(
    R_PARTITION,
    R_RECORDS,
    R_ERROR,
    R_OFFSET,
    R_OFFSETS,
    R_TIMESTAMP,
    R_LEADER_EPOCH,
    R_HIGH_WATERMARK,
    R_LAST_STABLE_OFFSET,
    R_LOG_START_OFFSET,
    R_LEADER,
    R_ISR,
    R_ACQUIRED,
    R_ARRAY,
    R_GROUP,
) = range(R_TOPIC_ID + 1, R_TOPIC_ID + 16)
REGISTERS: Final = R_GROUP + 1
KEPT: Final = R_GROUP
"""The registers before it are cleared where a topic begins."""

_TOPIC_NAMES: Final = ("topic", "topic_name", "name")
_PARTITION_NAMES: Final = ("partition_index", "partition", "partition_id", "index")
_PARTITION_LISTS: Final = ("partitions", "partition_indexes")

_FIELDS: Final[dict[int, tuple[tuple[str, str], ...]]] = {
    R_RECORDS: (("records", "records"), ("unaligned_records", "records")),
    R_ERROR: (("error_code", "int16"), ("partition_error_code", "int16")),
    R_OFFSET: (
        ("offset", "int64"),
        ("base_offset", "int64"),
        ("fetch_offset", "int64"),
        ("committed_offset", "int64"),
        ("end_offset", "int64"),
        ("start_offset", "int64"),
        ("last_offset", "int64"),
        ("snapshot_id.end_offset", "int64"),
    ),
    R_TIMESTAMP: (("timestamp", "int64"), ("log_append_time_ms", "int64"), ("commit_timestamp", "int64")),
    R_LEADER_EPOCH: (
        ("leader_epoch", "int32"),
        ("committed_leader_epoch", "int32"),
        ("current_leader_epoch", "int32"),
        ("replica_epoch", "int32"),
        ("current_leader.leader_epoch", "int32"),
    ),
    R_HIGH_WATERMARK: (("high_watermark", "int64"),),
    R_LAST_STABLE_OFFSET: (("last_stable_offset", "int64"),),
    R_LOG_START_OFFSET: (("log_start_offset", "int64"), ("low_watermark", "int64")),
    R_LEADER: (("leader_id", "int32"), ("leader", "int32"), ("current_leader.leader_id", "int32")),
}
"""The fields of a partition that go into a register, with their types: the first that the version has."""

_LISTS: Final[dict[int, tuple[tuple[str, str], ...]]] = {
    R_OFFSETS: (("old_style_offsets", "int64"),),
    R_ISR: (("isr_nodes", "int32"), ("isr", "int32"), ("new_isr", "int32"), ("new_isr_with_epochs", "int32")),
    R_ACQUIRED: (("acquired_records", "int64"),),
}
"""Arrays of a partition, with the type of their elements, or of the first field of these."""

_SPECS: Final = {
    -1: "latest",
    -2: "earliest",
    -3: "max_timestamp",
    -4: "earliest_local",
    -5: "latest_tiered",
    -6: "earliest_pending_upload",
}
"""What a ListOffsets request asks for in place of a time (KIP-79, KIP-734, KIP-405, KIP-1005, KIP-1023)."""

_NUMBERS: Final[dict[str, tuple[int, pa.DataType]]] = {
    "partition": (R_PARTITION, pa.int32()),
    "leader_epoch": (R_LEADER_EPOCH, pa.int32()),
    "high_watermark": (R_HIGH_WATERMARK, pa.int64()),
    "last_stable_offset": (R_LAST_STABLE_OFFSET, pa.int64()),
    "log_start_offset": (R_LOG_START_OFFSET, pa.int64()),
    "leader": (R_LEADER, pa.int32()),
}
"""Columns that are a register."""

_MADE_OF: Final[dict[str, tuple[int, ...]]] = {
    "group_id": (R_GROUP,),
    "topic": (R_TOPIC, R_TOPIC_ID),
    "topic_id": (R_TOPIC_ID,),
    "offset": (R_OFFSET, R_OFFSETS),
    "offset_spec": (R_TIMESTAMP,),
    "timestamp": (R_TIMESTAMP,),
    "isr": (R_ISR,),
    "record_bytes": (R_RECORDS,),
    "batches": (R_RECORDS,),
    "records": (R_RECORDS,),
    "compression": (R_RECORDS,),
    "error": (R_ERROR,),
    **{name: (register,) for name, (register, _) in _NUMBERS.items()},
}
"""The registers that columns are made of: where none of them is set, the column is null."""

_OF_FRAME: Final = (
    *(one.name for one in KEY),
    "direction",
    "client_host",
    "client_port",
    "client_id",
    "api_key",
    "api_name",
    "api_version",
    "correlation_id",
    *(one.name for one in BROKER),
)
"""Columns that ``FrameColumns`` makes, under the same names."""

_OTHER_TEXT: Final = 64
"""Bytes of a row's text that is counted in one: a path, the name of an error, words."""


# --- which arrays there are -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    """An array of partitions in a layout.

    ``values`` and ``lists`` are the paths that are captured, by register. ``clear``: the struct that its topic begins
    with. ``empty``: whether the array gives a row where it has no element. ``isr_step``: of an element of ``isr``.
    """

    path: str
    values: Mapping[str, int]
    lists: Mapping[str, int]
    clear: str
    empty: bool
    isr_step: int

    @property
    def registers(self) -> Iterable[int]:
        """Those that are captured."""
        return chain(self.values.values(), self.lists.values())


def _type_name(one: FieldLayout) -> str:
    return one.type.name if isinstance(one.type, PrimitiveLayout) else ""


def _of_name(struct: StructLayout, names: tuple[str, ...], type_: str) -> str | None:
    """The first of ``names`` that is a field of this type."""
    there = {one.name for one in struct.fields if _type_name(one) == type_}
    return next((name for name in names if name in there), None)


def _topic(struct: StructLayout, path: str) -> dict[str, int]:
    """The paths of a topic's name and id, by register. Empty if the struct names no topic."""
    found = {R_TOPIC: _of_name(struct, _TOPIC_NAMES, "string"), R_TOPIC_ID: _of_name(struct, ("topic_id",), "uuid")}
    return {f"{path}{name}": register for register, name in found.items() if name is not None}


def _types(fields: Iterable[FieldLayout], path: str = "") -> dict[str, str]:
    """The types of the primitive fields by their paths, also of those in structs within. Fields in arrays and in a
    struct that may be null do not count."""
    found: dict[str, str] = {}
    for one in fields:
        if isinstance(one.type, StructLayout):
            if not one.nullable:
                found |= _types(one.type.fields, f"{path}{one.name}.")
        else:
            found[path + one.name] = _type_name(one)
    return found


def _values(struct: StructLayout, path: str) -> dict[str, int]:
    """What is captured of the struct of a partition."""
    plain, tagged = _types(struct.fields), _types(struct.tagged)
    found: dict[str, int] = {}
    for register, wanted in _FIELDS.items():
        # A Fetch response may name a snapshot in a tagged field, which is not where it reads.
        there = plain if register == R_OFFSET else plain | tagged
        name = next((name for name, type_ in wanted if there.get(name) == type_), None)
        if name is not None:
            found[f"{path}{name}"] = register
    return found


def _lists(struct: StructLayout, path: str) -> tuple[dict[str, int], int]:
    """The arrays that are captured of the struct of a partition, and the step of ``isr`` (``int_lists``)."""
    there = {one.name: one.type for one in struct.fields}
    found: dict[str, int] = {}
    step = 0
    for register, wanted in _LISTS.items():
        for name, type_ in wanted:
            array = there.get(name)
            if not isinstance(array, ArrayLayout):
                continue
            element, tagged, size = array.element, False, 0
            if isinstance(element, StructLayout):
                widths = [FIXED_SIZES.get(_type_name(one), 0) for one in element.fields]
                if not all(widths) or _type_name(element.fields[0]) != type_:
                    continue
                if register == R_ACQUIRED and (sum(widths) != RANGE or not element.flexible):
                    continue
                tagged, size = element.flexible, sum(widths)
            elif element.name == type_:
                size = FIXED_SIZES[type_]
            else:
                continue
            found[f"{path}{name}"] = register
            step = (-size if tagged else size) if register == R_ISR else step
            break
    return found, step


def _found(struct: StructLayout, path: str = "", group: str | None = None) -> Iterator[_Found]:
    """The arrays of partitions in a layout. ``path``: of the struct. ``group``: of the group's id around it."""
    begin = f"{path}." if path else ""
    if _of_name(struct, ("group_id",), "string"):
        group = f"{begin}group_id"
    around = {} if group is None else {group: R_GROUP}
    topic = _topic(struct, begin)
    own_error = {f"{begin}error_code": R_ERROR} if topic and _of_name(struct, ("error_code",), "int16") else {}
    for one in struct.fields:
        name = begin + one.name
        element = one.type.element if isinstance(one.type, ArrayLayout) else one.type
        if isinstance(element, PrimitiveLayout):
            if isinstance(one.type, ArrayLayout) and topic and one.name in _PARTITION_LISTS and element.name == "int32":
                yield _Found(name, {**around, **topic, name: R_PARTITION}, {}, path, False, 0)
            continue
        inside = _topic(element, f"{name}.")
        partition = _of_name(element, _PARTITION_NAMES, "int32")
        if isinstance(one.type, ArrayLayout) and partition is not None and (inside or topic):
            lists, step = _lists(element, f"{name}.")
            values = {**around, **(inside or {**topic, **own_error}), **_values(element, f"{name}.")}
            values[f"{name}.{partition}"] = R_PARTITION
            yield _Found(name, values, lists, name if inside else path, not inside and bool(own_error), step)
        else:
            yield from _found(element, name, group)


@lru_cache(maxsize=1)
def _kinds(generation: int) -> Array:
    """1 for the kinds of frames that have partitions in some version, as ``Frames.with_body`` takes them."""
    kinds = np.zeros(2 * max(schema.api_keys()) + 2, np.uint8)
    for api in schema.api_keys():
        for response, message in enumerate((schema.request(api), schema.response(api))):
            if message is not None and any(
                next(_found(layouts_[-1]), None)
                for version in message.versions
                if (layouts_ := layouts(api, response, version, secrets=True)) is not None
            ):
                kinds[2 * api + response] = 1
    return kinds


# --- rows -------------------------------------------------------------------------------------------------------------


class _Maker(Maker):
    def __init__(self, schema_: pa.Schema, run: Run) -> None:
        self._capture = Capture(run.name)
        self._schema = schema_
        self.wanted = frozenset(schema_.names)
        self._programs = Programs(self._program, REGISTERS)
        self._secrets = run.options["secrets"]
        self.topics = Topics(run.topics, secrets=self._secrets, learns=run.learns)
        self.arrays: list[_Found] = []
        """By the number that stands in R_ARRAY."""
        self._registers: list[frozenset[int]] = []
        """By the same number: what the layout of the array sets."""
        self.groups = Names()
        self._only = run.only

    def _program(self, api: int, response: int, version: int) -> Program | None:
        both = layouts(api, response, version, secrets=self._secrets)
        if both is None:
            return None
        found = list(_found(both[-1]))
        if not found:
            return None
        numbers = {one.path: len(self.arrays) + k for k, one in enumerate(found)}
        self.arrays += found
        self._registers += [frozenset(one for each in found for one in each.registers)] * len(found)
        values: dict[str, int] = {}
        lists: dict[str, int] = {}
        for one in found:
            values |= one.values
            lists |= one.lists
        each = Each(
            numbers,
            R_ARRAY,
            empty=frozenset(one.path for one in found if one.empty),
            clear=frozenset(one.clear for one in found),
            kept=KEPT,
        )
        return compile_program(both, values, lists=lists, emit_each=each)

    sees_all = True

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        topics = None if self._only is None else self._only.topics
        if "topic" in self.wanted or topics is not None:
            self.topics.learn(frames)
        candidates = frames.with_body(_kinds(schema.generation())) & (frames["version"] >= 0)
        if self._only is not None:
            candidates &= self._only.frames(frames)
        for rows, found, failures in self._programs.parts(frames, np.flatnonzero(candidates), MOST_ROWS):
            # ``frames`` reports bytes after the body: nothing of the partitions is missing.
            wrong = [one for one in failures if not one.is_trailing]
            of_frame, rows_found = rows[job_column(found)], found
            if topics is not None:
                kept = self.topics.names(frames.data, found, frames.numbers[of_frame]).among(topics)
                # An error of a frame is not of one of its topics.
                of_frame, rows_found, wrong = of_frame[kept], found[kept], []
            yield from self._made(frames, _Part(self, frames, of_frame, rows_found), wrong)

    def _made(self, frames: Frames, part: _Part, failures: list[Failure]) -> Iterator[pa.RecordBatch]:
        n_rows = len(part.frame)
        sentences = [one.sentence(frames) for one in failures]
        bad = np.array([one.row for one in failures], np.int64)
        row = np.concatenate([part.frame, bad])
        costs = text_sizes(self._capture, frames)[row] + _OTHER_TEXT
        costs[:n_rows] += part.sizes()
        costs[n_rows:] += np.array([text_size(text) for text in sentences], np.int64)
        for mixed in shared_out(costs, n_rows, row):
            good = mixed.rows
            batch = columns.filled(self._schema, part.columns(good.start, good.stop).__getitem__)
            if mixed.problems.stop > mixed.problems.start:
                which = bad[mixed.problems]
                values: dict[str, Any] = self.of_frames(frames, which)
                whole = frames["status"][which] == Status.OK
                numbers = np.where(whole, int(PartitionStatus.MALFORMED), int(PartitionStatus.UNREADABLE))
                values["status"] = columns.pick(WORDS, numbers)
                values["error"] = sentences[mixed.problems]
                batch = placed(batch, problem_rows(self._schema, len(which), values), mixed.order)
            yield batch

    def set_in(self, numbers: Array) -> frozenset[int]:
        """The registers that may be set where R_ARRAY has these numbers: what no layout has is nowhere looked for."""
        return frozenset().union(*(self._registers[one] for one in columns.distinct(numbers)[0].tolist()))

    def of_frames(self, frames: Frames, rows: Array) -> dict[str, pa.Array]:
        """The columns of frames that are wanted."""
        # Large frames are many rows each.
        one = len(rows) > 1 and bool((rows == rows[0]).all())
        made = FrameColumns.of(self._capture, frames, rows[:1] if one else rows)
        found = {name: made.column(name) for name in _OF_FRAME if name in self.wanted}
        if "frame_timestamp" in self.wanted:
            found["frame_timestamp"] = made.timestamp()
        return {name: columns.repeated(of_one, len(rows)) for name, of_one in found.items()} if one else found


class _Part:
    """Some rows of a window: the columns that they have. ``frame``: of each row."""

    def __init__(self, maker: _Maker, frames: Frames, frame: Array, found: Array) -> None:
        self._maker = maker
        self._frames = frames
        self.frame = frame
        self._rows = found
        self._texts: dict[str, columns.Texts] = {}
        there = maker.set_in(value_column(found, R_ARRAY))
        self._null = frozenset(name for name, registers in _MADE_OF.items() if there.isdisjoint(registers))
        self._wanted = wanted = maker.wanted - self._null
        if "topic" in wanted:
            self._texts["topic"] = maker.topics.names(frames.data, found, frames.numbers[frame])
        if "topic_id" in wanted:
            self._texts["topic_id"] = maker.topics.ids(frames.data, found)
        if "group_id" in wanted:
            self._texts["group_id"] = maker.groups.texts(frames.data, found, R_GROUP)
        self._counted: dict[str, Array] = {}
        if not wanted.isdisjoint(("batches", "records", "compression")):
            self._count_records()

    def _count_records(self) -> None:
        sets = np.stack([get(self._rows, of) for of in (R_RECORDS, R_ACQUIRED) for get in _BOTH], axis=1)
        # A snapshot is sent in pieces of any size: they do not begin with a batch.
        sets[self._frames["api"][self.frame] == ApiKey.FETCH_SNAPSHOT, 1] = -1
        names = ("batches", "records", "compression")
        self._counted = {name: np.empty(len(sets), np.int64) for name in names}
        engine = choose(8 * len(sets))
        engine(count_records)(self._frames.data, sets, *(self._counted[name] for name in names))

    def sizes(self) -> Array:
        """About the bytes of text of each row that are not those of its frame."""
        made = np.zeros(len(self.frame), np.int64)
        for one in self._texts.values():
            made += one.sizes()[:-1]
        return made

    def columns(self, first: int, last: int) -> dict[str, pa.Array]:
        """Those that are wanted, of the rows from ``first`` on and before ``last``."""
        rows = self._rows[first:last]
        which = np.arange(first, last)
        make: dict[str, Callable[[], pa.Array]] = {
            "path": lambda: columns.pick([one.path for one in self._maker.arrays], value_column(rows, R_ARRAY)),
            "offset": lambda: self._offsets(rows),
            "offset_spec": lambda: self._specs(rows, first, last),
            "timestamp": lambda: _times(value_column(rows, R_TIMESTAMP)),
            "isr": lambda: self._isr(rows),
            "record_bytes": lambda: _not_negative(length_column(rows, R_RECORDS)),
            "batches": lambda: _not_negative(self._counted["batches"][first:last]),
            "records": lambda: _not_negative(self._counted["records"][first:last]),
            "compression": lambda: _codecs(self._counted["compression"][first:last]),
            "status": lambda: columns.constant(WORDS[PartitionStatus.OK], last - first),
            "error": lambda: _error_names(value_column(rows, R_ERROR)),
        }
        for name, texts in self._texts.items():
            make[name] = partial(texts.column, which)
        for name, (register, type_) in _NUMBERS.items():
            make[name] = partial(_number, rows, register, type_)
        made = {name: one() for name, one in make.items() if name in self._wanted}
        for name in self._null & self._maker.wanted:
            made[name] = CONSTANTS.get(SCHEMA.field(name).type, None, last - first)
        return made | self._maker.of_frames(self._frames, self.frame[first:last])

    def _offsets(self, rows: Array) -> pa.Array:
        """The offset, or the first of a list of them (ListOffsets 0, which gives the latest first)."""
        values, lists = value_column(rows, R_OFFSET), length_column(rows, R_OFFSETS)
        listed = np.flatnonzero(lists > 0)
        if len(listed):
            values = values.copy()
            first = value_column(rows, R_OFFSETS)[listed, None] + np.arange(8)
            values[listed] = self._frames.data[first].view(">i8")[:, 0]
        return columns.nullable(values, pa.int64())

    def _specs(self, rows: Array, first: int, last: int) -> pa.Array:
        of_frame = self.frame[first:last]
        asks = (self._frames["api"][of_frame] == ApiKey.LIST_OFFSETS) & (self._frames["response"][of_frame] == 0)
        values = value_column(rows, R_TIMESTAMP)
        number = np.where(asks & (values < 0) & (values >= -len(_SPECS)), -1 - values, len(_SPECS))
        return columns.pick([*_SPECS.values(), None], number)

    def _isr(self, rows: Array) -> pa.Array:
        starts, counts = value_column(rows, R_ISR), length_column(rows, R_ISR)
        type_ = SCHEMA.field("isr").type
        present = counts >= 0
        if not present.any():
            return pa.nulls(len(rows), type_)
        counts = np.where(present, counts, 0)
        steps = np.array([one.isr_step for one in self._maker.arrays], np.int64)[value_column(rows, R_ARRAY)]
        ends, found = np.zeros(len(rows) + 1, np.int64), np.empty(int(counts.sum()), np.int32)
        engine = choose(8 * len(rows))
        engine(int_lists)(self._frames.data, starts.copy(), counts, steps, ends[1:], found)
        return pa.ListArray.from_arrays(
            pa.array(ends.astype(np.int32)), pa.array(found), type=type_, mask=pa.array(~present)
        )


_BOTH: Final = (value_column, length_column)


def _number(rows: Array, register: int, type_: pa.DataType) -> pa.Array:
    return columns.nullable(value_column(rows, register), type_)


def _times(values: Array) -> pa.Array:
    """Milliseconds as times. Null if they are none, or beyond what can be shown."""
    shown = (values >= 0) & (values <= LAST_MS)
    return pa.array(np.where(shown, values, 0) * 1000, mask=~shown).cast(pa.timestamp("us")).cast(TIMESTAMP)


def _not_negative(values: Array) -> pa.Array:
    values = np.ascontiguousarray(values)
    if not len(values) or values.min() >= 0:
        return pa.array(values)
    return pa.array(np.where(values < 0, 0, values), mask=values < 0)


def _codecs(numbers: Array) -> pa.Array:
    known: list[str | None] = [*CODECS, *[None] * (MIXED - len(CODECS)), "mixed", None]
    return columns.pick(known, np.where(numbers < 0, len(known) - 1, numbers))


def _error_names(codes: Array) -> pa.Array:
    """Error codes by name. A code without a name is its number."""
    used, index = np.unique(codes, return_inverse=True)
    names = [None if code == ABSENT else error_name(code) or str(code) for code in used.tolist()]
    return columns.pick(names, index)


TABLE: Final = CaptureTable(
    name="partitions",
    schema=SCHEMA,
    file="capture",
    statuses=words(STATUSES),
    maker=_Maker,
    dictionaries=True,
    asked=BROKER,
    shown=(
        Column("time", showing.time("frame_timestamp")),
        Column("client_id", showing.plain("client_id"), shrink=8),
        Column("", showing.direction),
        Column("api", showing.api, shrink=12),
        Column("group", showing.plain("group_id"), shrink=8),
        Column("partition", showing.partition, shrink=12),
        Column("offset", showing.offset, right=True, least=8),
        Column("epoch", showing.plain("leader_epoch"), right=True),
        Column("leader", showing.plain("leader"), right=True),
        Column("high watermark", showing.plain("high_watermark"), right=True),
        Column("bytes", showing.plain("record_bytes"), right=True),
        Column("records", showing.plain("records"), right=True),
        Column("status", showing.outcome, empty="ok"),
    ),
)
"""The table ``partitions`` of captures (``CaptureTable``): partitions that a body names."""
