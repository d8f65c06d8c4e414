"""Frames to Arrow: the rows of the three tables, one batch for each window.

Strategy: numbers become columns without a loop. What is the same for many rows (addresses, API names, client ids,
topics) is made into text once and spread over the rows with ``take``. Python looks at single frames only where
something is wrong with them, and in ``messages``, which decodes every body.

Record sets are found by programs of ``kwire.codec.locate`` (one for each API and version that turns up), all of a
window in one call, and decoded by ``kwire.records.columnar`` in one more. Names of topics that a frame knows by id only
are learnt from every message that has both (Metadata, CreateTopics and so on), by the same programs.

Rules kept here: every batch has exactly the schema of ``kwire.capture.tables``; bad input becomes rows with a
status, and never an exception.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire import schema
from kwire.capture.pipeline import Pipeline, Window
from kwire.capture.tables import FRAMES, MESSAGES, RECORDS, Table
from kwire.codec.locate import (
    ABSENT,
    FAIL_CODE,
    FAIL_JOB,
    FAIL_OFFSET,
    FAIL_WHY,
    JOB_CODE,
    JOB_COLUMNS,
    JOB_END,
    JOB_START,
    Program,
    ProgramSet,
    compile_program,
    locate,
)
from kwire.errors import KwireError, LimitError, UnsupportedVersionError
from kwire.protocol.describe import to_json
from kwire.protocol.framing import WHY, intern_all
from kwire.protocol.headers import (
    API_VERSIONS,
    decode_request,
    decode_response,
    request_header_version,
    response_header_version,
)
from kwire.protocol.state import (
    C_A_HIGH,
    C_A_LOW,
    C_A_PORT,
    C_B_HIGH,
    C_B_LOW,
    C_B_PORT,
    C_FAMILY,
    C_NUMBER,
    F_API,
    F_CLIENT,
    F_CLIENT_SIDE,
    F_DETAIL,
    F_ID,
    F_LATENCY,
    F_OFF,
    F_RESPONSE,
    F_SEEN,
    F_SIZE,
    F_SLOT,
    F_STATUS,
    F_TIME,
    F_VERSION,
    F_WHY,
    ST_CUT_OFF,
    ST_GAP,
    ST_OK,
)
from kwire.records.arrow_types import TIMESTAMP
from kwire.records.columnar import RecordColumns, decode_sets
from kwire.schema.model import ArrayLayout, PrimitiveLayout, StructLayout, layout

__all__ = ["Builder"]

Array = Any

STATUS_NAMES: Final = ("ok", "unpaired", "malformed", "unsupported", "cut_off", "gap", "encrypted", "sasl")
"""By ST_*."""
RECORD_STATUS_NAMES: Final = ("ok", "corrupt", "malformed", "unreadable")

PRODUCE: Final = 0
FETCH: Final = 1
SHARE_FETCH: Final = 78
SOURCES: Final = ("produce", "fetch")

_SET_FIELDS: Final = {
    PRODUCE: (
        "topic_data.name",
        "topic_data.topic_id",
        "topic_data.partition_data.index",
        "topic_data.partition_data.records",
    ),
    FETCH: (
        "responses.topic",
        "responses.topic_id",
        "responses.partitions.partition_index",
        "responses.partitions.records",
    ),
    SHARE_FETCH: (
        "responses.topic",
        "responses.topic_id",
        "responses.partitions.partition_index",
        "responses.partitions.records",
    ),
}
"""Where the topic, its id, the partition and the record set stand: registers 0 to 3."""
R_TOPIC, R_TOPIC_ID, R_PARTITION, R_RECORDS = range(4)
SET_REGISTERS: Final = 4

_BATCH_COLUMNS: Final = (
    "offset",
    "timestamp",
    "timestamp_type",
    "key",
    "value",
    "headers",
    "magic",
    "compression",
    "crc_ok",
    "producer_id",
    "producer_epoch",
    "sequence",
    "partition_leader_epoch",
    "is_transactional",
    "is_control",
    "control_type",
)
"""Columns of RECORDS that the record decoder makes, under the same names."""

_NO_TOPIC_ID: Final = bytes(16)


class Builder:
    """Makes the batches of one table of one capture.

    ``name`` goes into the column ``capture``. ``batch`` takes the windows of ``pipeline`` in order.
    """

    def __init__(self, pipeline: Pipeline, table: Table, name: str) -> None:
        self._pipeline = pipeline
        self._name = name
        self._hosts: dict[int, tuple[str, str]] = {}
        self._make: Callable[[Window], pa.RecordBatch] = {
            "frames": self._frames,
            "messages": self._messages,
            "records": self._records,
        }[table]
        self._topics = Names()
        self._topic_ids = Names()
        self._topic_of: dict[bytes, str] = {}
        self._sets = Programs(_set_program, SET_REGISTERS)
        self._pairs = Programs(_pair_program, 2)

    def batch(self, window: Window) -> pa.RecordBatch:
        """The rows of a window; there may be none."""
        return self._make(window)

    def _frames(self, window: Window) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(self._frame_columns(window.frames, window.first), schema=FRAMES)

    def _messages(self, window: Window) -> pa.RecordBatch:
        frames = window.frames.copy()
        bodies: list[str | None] = [None] * frames.shape[0]
        errors: dict[int, str] = {}
        for row in np.flatnonzero(frames[:, F_STATUS] == ST_OK).tolist():
            response, off, size, api, version = frames[row, [F_RESPONSE, F_OFF, F_SIZE, F_API, F_VERSION]].tolist()
            frame = window.data[off : off + size].tobytes()
            try:
                if response:
                    answer = decode_response(frame, api_key=api, api_version=version)
                    bodies[row] = to_json(answer.body, answer.api_version)
                else:
                    bodies[row] = to_json(decode_request(frame).body, version)
            except UnsupportedVersionError as error:
                errors[row] = str(error)
                frames[row, F_STATUS] = STATUS_NAMES.index("unsupported")
            except KwireError as error:
                errors[row] = str(error)
                frames[row, F_STATUS] = STATUS_NAMES.index("malformed")
        columns = self._frame_columns(frames, window.first, errors)
        return pa.RecordBatch.from_arrays([*columns, pa.array(bodies, pa.string())], schema=MESSAGES)

    def _frame_columns(self, frames: Array, first: int, errors: dict[int, str] | None = None) -> list[pa.Array]:
        n = frames.shape[0]
        conns = self._pipeline.conns
        slots = frames[:, F_SLOT]
        by_a = frames[:, F_CLIENT_SIDE] == 0
        used, index = np.unique(slots, return_inverse=True)
        hosts = [self._both_hosts(slot) for slot in used.tolist()]
        flat = pa.array([host for both in hosts for host in both], pa.string())
        a_port, b_port = conns[slots, C_A_PORT], conns[slots, C_B_PORT]
        api = frames[:, F_API]
        return [
            constant(self._name, n),
            pa.array(conns[slots, C_NUMBER]),
            pa.array(np.arange(first, first + n, dtype=np.int64)),
            timestamps(frames[:, F_TIME]),
            pick(("request", "response"), frames[:, F_RESPONSE]),
            flat.take(pa.array(index * 2 + ~by_a)),
            pa.array(np.where(by_a, a_port, b_port).astype(np.int32)),
            flat.take(pa.array(index * 2 + by_a)),
            pa.array(np.where(by_a, b_port, a_port).astype(np.int32)),
            numbers(api, pa.int16(), -0x8000, 0x7FFF),
            _api_names().take(pa.array(np.clip(api, -1, len(_api_names()) - 1), mask=_unknown_api(api))),
            numbers(frames[:, F_VERSION], pa.int16(), -0x8000, 0x7FFF),
            numbers(frames[:, F_ID], pa.int32(), -0x80000000, 0x7FFFFFFF),
            self._client_ids(frames[:, F_CLIENT]),
            pa.array(np.ascontiguousarray(frames[:, F_SIZE])),
            milliseconds(frames[:, F_LATENCY]),
            pick(STATUS_NAMES, frames[:, F_STATUS]),
            self._errors(frames, errors or {}),
        ]

    def _errors(self, frames: Array, more: dict[int, str]) -> pa.Array:
        wrong = np.flatnonzero(frames[:, F_WHY]).tolist()
        if not wrong and not more:
            return pa.nulls(frames.shape[0], pa.string())
        texts: list[str | None] = [None] * frames.shape[0]
        for row in wrong:
            text = WHY[frames[row, F_WHY]]
            texts[row] = text % frames[row, F_DETAIL] if "%d" in text else text
        for row, text in more.items():
            texts[row] = text
        return pa.array(texts, pa.string())

    def _both_hosts(self, slot: int) -> tuple[str, str]:
        found = self._hosts.get(slot)
        if found is None:
            row = self._pipeline.conns[slot].tolist()
            found = self._hosts[slot] = (
                host(row[C_FAMILY], row[C_A_HIGH], row[C_A_LOW]),
                host(row[C_FAMILY], row[C_B_HIGH], row[C_B_LOW]),
            )
        return found

    def _client_ids(self, numbers_: Array) -> pa.Array:
        pipeline = self._pipeline
        used, index = np.unique(numbers_, return_inverse=True)
        texts: list[str | None] = []
        for number in used.tolist():
            if number < 0:
                texts.append(None)
            else:
                off, length = pipeline.names[number].tolist()
                texts.append(text_of(pipeline.pool[off : off + length].tobytes()))
        return pa.array(texts, pa.string()).take(pa.array(index))

    def _records(self, window: Window) -> pa.RecordBatch:
        frames = window.frames
        self._learn_topics(window)
        api, response, status = frames[:, F_API], frames[:, F_RESPONSE], frames[:, F_STATUS]
        wanted = ((api == PRODUCE) & (response == 0)) | (((api == FETCH) | (api == SHARE_FETCH)) & (response == 1))
        wanted &= (status == ST_OK) | (((status == ST_CUT_OFF) | (status == ST_GAP)) & (frames[:, F_OFF] >= 0))
        rows, sets, failures = self._sets.run(window, np.flatnonzero(wanted))

        owner = rows[sets[:, 0]]
        starts = sets[:, 1 + 2 * R_RECORDS].copy()
        lengths = sets[:, 2 + 2 * R_RECORDS].copy()
        lengths[lengths < 0] = 0
        found = _decode(window.data, starts, lengths)
        index = found.set_index.astype(np.int64)

        # Rows for what is wrong come behind the records of the same set, those for a whole frame behind all of its
        # sets.
        bad_sets = [one for one, _, _ in found.problems]
        problems = [f"at byte {offset} of the record set: {text}" for _, offset, text in found.problems]
        of_frame = [int(rows[failure[FAIL_JOB]]) for failure in failures]
        n, n_sets, n_frames = len(index), len(bad_sets), len(of_frame)
        set_of_row = np.concatenate([index, np.array(bad_sets, np.int64), np.full(n_frames, -1, np.int64)])
        frame_of_row = np.concatenate([owner[set_of_row[: n + n_sets]], np.array(of_frame, np.int64)])

        crc_ok = found.batch.column("crc_ok")
        statuses: Array = np.zeros(len(set_of_row), np.int64)
        statuses[:n] = ~np.asarray(crc_ok.to_numpy(zero_copy_only=False), bool)
        statuses[n : n + n_sets] = 2
        texts: pa.Array = pa.nulls(n, pa.string())
        if statuses[:n].any():
            texts = pa.array(["the checksum does not match", None]).take(pa.array(1 - statuses[:n]))
        statuses[n + n_sets :] = np.where(status[np.array(of_frame, np.int64)] == ST_OK, 2, 3)
        problems += [self._what_failed(frames[row], failure) for row, failure in zip(of_frame, failures, strict=True)]
        texts = pa.concat_arrays([texts, pa.array(problems, pa.string())])

        order = None
        if n_sets or n_frames:
            late = np.where(set_of_row < 0, np.iinfo(np.int64).max, set_of_row)
            order = np.lexsort((np.arange(len(late)), late, frame_of_row))
            set_of_row, frame_of_row, statuses = set_of_row[order], frame_of_row[order], statuses[order]
            texts = texts.take(pa.array(order))

        def column(name: str) -> pa.Array:
            values = found.batch.column(name)
            if order is None:
                return values
            return pa.concat_arrays([values, pa.nulls(n_sets + n_frames, values.type)]).take(pa.array(order))

        of_set = Spread(sets, set_of_row)
        topic, topic_id = self._topic_columns(window.data, sets)
        conns = self._pipeline.conns
        made: dict[str, pa.Array] = {name: column(name) for name in _BATCH_COLUMNS}
        made |= {
            "capture": constant(self._name, len(set_of_row)),
            "connection": pa.array(conns[frames[frame_of_row, F_SLOT], C_NUMBER]),
            "frame": pa.array(window.first + frame_of_row),
            "frame_timestamp": timestamps(frames[frame_of_row, F_TIME]),
            "source": pick(SOURCES, response[frame_of_row]),
            "topic": of_set.text(topic),
            "topic_id": of_set.text(topic_id),
            "partition": of_set.number(1 + 2 * R_PARTITION, pa.int32()),
            "status": pick(RECORD_STATUS_NAMES, statuses),
            "error": texts,
        }
        return pa.RecordBatch.from_arrays([made[field.name] for field in RECORDS], schema=RECORDS)

    def _what_failed(self, frame: Array, failure: list[int]) -> str:
        """Which field of a frame could not be read while record sets were looked for, and why."""
        path, _, what = self._sets.joined.explain(failure[FAIL_CODE], failure[FAIL_WHY]).partition(": ")
        kind = "Response" if frame[F_RESPONSE] else "Request"
        at = failure[FAIL_OFFSET] - int(frame[F_OFF])
        return f"{_api_names()[int(frame[F_API])]}{kind} v{frame[F_VERSION]} {path} at byte {at}: {what}"

    def _topic_columns(self, data: Array, sets: Array) -> tuple[pa.Array, pa.Array]:
        """Name and id of the topic of each record set; a name that is not in the frame is looked up by the id."""
        by_name = self._topics.numbers(data, sets[:, 1 + 2 * R_TOPIC], sets[:, 2 + 2 * R_TOPIC])
        by_id = self._topic_ids.numbers(data, sets[:, 1 + 2 * R_TOPIC_ID], sets[:, 2 + 2 * R_TOPIC_ID])
        topics = pa.array([text_of(one) for one in self._topics.values()], pa.string())
        raw_ids = self._topic_ids.values()
        # A version that has names and ids may send the zero id: no id.
        ids = pa.array([None if one == _NO_TOPIC_ID else uuid_text(one) for one in raw_ids], pa.string())
        learnt = pa.array([self._topic_of.get(one) for one in raw_ids], pa.string())
        named = topics.take(pa.array(by_name, mask=by_name < 0))
        if (by_name < 0).any():
            looked_up = learnt.take(pa.array(by_id, mask=by_id < 0))
            named = pc.coalesce(named, looked_up)
        return named, ids.take(pa.array(by_id, mask=by_id < 0))

    def _learn_topics(self, window: Window) -> None:
        frames = window.frames
        rows = np.flatnonzero((frames[:, F_STATUS] == ST_OK) & _names_topics(frames[:, F_API], frames[:, F_RESPONSE]))
        _, pairs, _ = self._pairs.run(window, rows)
        data = window.data
        for _, name_off, name_length, id_off, _ in pairs.tolist():
            if name_length > 0:
                self._topic_of[data[id_off : id_off + 16].tobytes()] = text_of(
                    data[name_off : name_off + name_length].tobytes()
                )


class Programs:
    """Programs of ``kwire.codec.locate`` by (API key and direction, version), made when a version first turns up."""

    def __init__(self, make: Callable[[int, int, int], Program | None], registers: int) -> None:
        self._make = make
        self._registers = registers
        self._programs: dict[tuple[int, int], Program] = {}
        self._none: set[tuple[int, int]] = set()
        self.joined = ProgramSet({}, registers)

    def run(self, window: Window, rows: Array) -> tuple[Array, Array, list[list[int]]]:
        """Runs them over frames: (the frames that have a program, what was emitted, failures)."""
        frames = window.frames
        # One number for each kind of message: API key, direction, version.
        kinds = (frames[rows, F_API] * 2 + frames[rows, F_RESPONSE]) << 16 | frames[rows, F_VERSION]
        new = False
        used, index = np.unique(kinds, return_inverse=True)
        for kind in used.tolist():
            key = (kind >> 16, kind & 0xFFFF)
            if key not in self._programs and key not in self._none:
                made = self._make(key[0] >> 1, key[0] & 1, key[1])
                if made is None:
                    self._none.add(key)
                else:
                    self._programs[key] = made
                    new = True
        if new:
            self.joined = ProgramSet(self._programs, self._registers)
        begins = np.array([self.joined.start(kind >> 16, kind & 0xFFFF) for kind in used.tolist()], np.int64)
        code = begins[index] if len(used) else np.zeros(0, np.int64)
        rows, code = rows[code >= 0], code[code >= 0]
        jobs = np.empty((len(rows), JOB_COLUMNS), np.int64)
        jobs[:, JOB_START] = frames[rows, F_OFF]
        jobs[:, JOB_END] = frames[rows, F_OFF] + frames[rows, F_SEEN]
        jobs[:, JOB_CODE] = code
        found, failures = locate(window.data, jobs, self.joined.code, self._registers)
        return rows, found, failures.tolist()


def _set_program(api: int, response: int, version: int) -> Program | None:
    layouts = _layouts(api, response, version)
    if layouts is None:
        return None
    fields = _SET_FIELDS[api]
    return compile_program(layouts, fields, emit_after=fields[R_RECORDS])


def _pair_program(api: int, response: int, version: int) -> Program | None:
    layouts = _layouts(api, response, version)
    if layouts is None:
        return None
    pair = _topic_pair(layouts[-1], "")
    if pair is None:
        return None
    name, topic_id, last = pair
    return compile_program(layouts, (name, topic_id), emit_after=last)


def _topic_pair(struct: StructLayout, path: str) -> tuple[str, str, str] | None:
    """Paths of a topic's name, its id, and the later one of the two, in the first struct that has both."""
    names = [one.name for one in struct.fields if isinstance(one.type, PrimitiveLayout)]
    named = next((one for one in ("name", "topic_name", "topic") if one in names), None)
    if named is not None and "topic_id" in names:
        last = max(named, "topic_id", key=names.index)
        return path + named, path + "topic_id", path + last
    for one in struct.fields:
        inner = one.type.element if isinstance(one.type, ArrayLayout) else one.type
        if isinstance(inner, StructLayout):
            found = _topic_pair(inner, f"{path}{one.name}.")
            if found is not None:
                return found
    return None


def _layouts(api: int, response: int, version: int) -> list[StructLayout] | None:
    message = schema.response(api) if response else schema.request(api)
    if message is None or version not in message.versions:
        return None
    if response:
        header = layout(schema.message("ResponseHeader"), response_header_version(api, version))
    else:
        header = layout(schema.message("RequestHeader"), request_header_version(api, version))
    return [header, layout(message, version)]


def _names_topics(api: Array, response: Array) -> Array:
    """Which frames may name topics by name and id; ``_pair_program`` then decides by the layout."""
    # Not Produce and Fetch, the bulk of the traffic, which never have both; nor what has no layout.
    return (api > FETCH) & (api < len(_api_names())) & (api != API_VERSIONS) & (response >= 0)


def _decode(data: Array, starts: Array, lengths: Array) -> RecordColumns:
    """``decode_sets``, in smaller parts where the columns of all sets together would be too large for Arrow."""
    try:
        return decode_sets(data, starts, lengths)
    except LimitError as error:
        if len(starts) <= 1:
            empty = decode_sets(data, starts, np.zeros_like(lengths))
            return RecordColumns(empty.batch, empty.set_index, [(0, 0, error.message)], empty.consumed)
    middle = len(starts) // 2
    parts = [_decode(data, starts[:middle], lengths[:middle]), _decode(data, starts[middle:], lengths[middle:])]
    batches = pa.Table.from_batches([one.batch for one in parts]).combine_chunks().to_batches()
    return RecordColumns(
        batches[0] if batches else parts[0].batch,
        np.concatenate([parts[0].set_index, parts[1].set_index + middle]),
        [*parts[0].problems, *((one + middle, offset, text) for one, offset, text in parts[1].problems)],
        np.concatenate([parts[0].consumed, parts[1].consumed]),
    )


class Spread:
    """Values of record sets as columns of records: ``which`` is the set of each row, -1 for none."""

    def __init__(self, sets: Array, which: Array) -> None:
        self._sets = sets
        self._which = which
        self._index = pa.array(np.maximum(which, 0), mask=which < 0)

    def text(self, values: pa.Array) -> pa.Array:
        """A column of text."""
        # Often all sets of a window have the same value, and none is missing.
        if len(values) and self._index.null_count == 0 and values.null_count in (0, len(values)):
            only = values[0]
            if pc.all(pc.equal(values, only), skip_nulls=False).as_py() is not False:
                return pa.repeat(only, len(self._index))
        return values.take(self._index)

    def number(self, column: int, type_: pa.DataType) -> pa.Array:
        """A column of numbers, null where ABSENT."""
        values = self._sets[:, column]
        return pa.array(values, mask=values == ABSENT).cast(type_).take(self._index)


class Names:
    """Numbers for byte strings that occur over and over."""

    def __init__(self) -> None:
        self._pool = np.zeros(1024, np.uint8)
        self._names = np.zeros((64, 2), np.int64)
        self._table = np.full(256, -1, np.int64)
        self._used = np.zeros(2, np.int64)
        self._values: list[bytes] = []

    def numbers(self, data: Array, offsets: Array, lengths: Array) -> Array:
        """The number of each ``data[offset : offset + length]``, -1 where there is none (ABSENT, or length -1)."""
        found, self._pool, self._names, self._table = intern_all(
            data,
            np.ascontiguousarray(offsets),
            np.ascontiguousarray(lengths),
            self._pool,
            self._names,
            self._table,
            self._used,
        )
        return found

    def values(self) -> list[bytes]:
        """All byte strings, by number."""
        for number in range(len(self._values), int(self._used[0])):
            off, length = self._names[number].tolist()
            self._values.append(self._pool[off : off + length].tobytes())
        return self._values


@cache
def _api_names() -> pa.Array:
    keys = schema.api_keys()
    return pa.array([keys.get(key) for key in range(max(keys) + 1)], pa.string())


def _unknown_api(api: Array) -> Array:
    return (api < 0) | (api >= len(_api_names()))


def text_of(raw: bytes) -> str:
    """UTF-8; what is not valid becomes U+FFFD, as in Kafka's own string decoding."""
    return raw.decode("utf-8", "replace")


def uuid_text(raw: bytes) -> str:
    """A uuid in Kafka's text form: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def host(family: int, high: int, low: int) -> str:
    """An address as text."""
    if family == 4:
        return str(ipaddress.IPv4Address(low & 0xFFFFFFFF))
    address = ipaddress.IPv6Address((high & (1 << 64) - 1) << 64 | low & (1 << 64) - 1)
    # A dual-stack socket shows IPv4 peers as ::ffff:a.b.c.d.
    return str(address.ipv4_mapped or address)


def constant(value: str, n: int) -> pa.Array:
    """The same text in every row."""
    return pa.repeat(pa.scalar(value, pa.string()), n)


def pick(values: Sequence[str], numbers_: Array) -> pa.Array:
    """``values[number]`` for each row."""
    if len(numbers_) and numbers_.min() == numbers_.max():
        return constant(values[int(numbers_[0])], len(numbers_))
    return pa.array(values, pa.string()).take(pa.array(np.ascontiguousarray(numbers_)))


def numbers(values: Array, type_: pa.DataType, low: int, high: int) -> pa.Array:
    """A column of a smaller type, null where a value is ABSENT."""
    absent = values == ABSENT
    assert values[~absent].size == 0 or (values[~absent].min() >= low and values[~absent].max() <= high)
    return pa.array(np.where(absent, 0, values), mask=absent).cast(type_)


def timestamps(nanoseconds: Array) -> pa.Array:
    """Nanoseconds since 1970 as microseconds with the time zone UTC."""
    return pa.array(nanoseconds // 1000).cast(pa.timestamp("us")).cast(TIMESTAMP)


def milliseconds(nanoseconds: Array) -> pa.Array:
    """A latency in milliseconds, null where ABSENT; not less than 0, whatever the order of capture."""
    absent = nanoseconds == ABSENT
    return pa.array(np.maximum(np.where(absent, 0, nanoseconds), 0) / 1e6, mask=absent)
