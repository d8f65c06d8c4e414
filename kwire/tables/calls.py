"""The table ``calls``: what each message says of itself, beside topics and partitions, one row for each frame.

Strategy: ``_FIELDS`` lists the names of the fields. Each kind of message has a program (``kwire.kernels.programs``). It
finds the listed fields that its version has at the top of its body, and stops after the last of them. There are no
message objects. ``Frames.left_over`` looks at the rest of the body, once for all tables.

Rules kept here:

- A message without any of these fields has no row. A field that a version does not have is null.
- A body that does not match its version to the last byte has no fields: in every table it is ``malformed``.
- Numbers are those of the wire. Tagged fields are not looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.capture.frames import Frames
from kwire.kernels.judging import UNREADABLE
from kwire.kernels.layouts import Status
from kwire.kernels.programs import Program, compile_program, job_column, value_column
from kwire.records.arrow_types import STATUS_FIELDS
from kwire.records.batching import batch_ranges
from kwire.schema.model import PrimitiveLayout, StructLayout
from kwire.tables import columns, showing
from kwire.tables.definition import CaptureTable, Maker, Run, words
from kwire.tables.frames import BROKER, OF_FRAME, Capture, FrameColumns, text_sizes
from kwire.tables.locating import Programs, layouts
from kwire.tables.showing import Column
from kwire.tables.topics import Names

__all__ = ["SCHEMA", "STATUSES", "TABLE", "CallStatus"]

Array = Any

_TEXT: Final = pa.string()
_BELOW_4: Final = "v3_and_below_"
"""So begin the fields that AddPartitionsToTxn has up to version 3: later ones have them for each transaction."""

_FIELDS: Final[dict[str, tuple[pa.DataType, tuple[tuple[str, str], ...]]]] = {
    "group_id": (_TEXT, (("group_id", "string"),)),
    "member_id": (_TEXT, (("member_id", "string"),)),
    "group_instance_id": (_TEXT, (("group_instance_id", "string"), ("instance_id", "string"))),
    "generation": (
        pa.int32(),
        (("generation_id", "int32"), ("member_epoch", "int32"), ("generation_id_or_member_epoch", "int32")),
    ),
    "leader": (_TEXT, (("leader", "string"),)),
    "session_timeout_ms": (pa.int32(), (("session_timeout_ms", "int32"),)),
    "rebalance_timeout_ms": (pa.int32(), (("rebalance_timeout_ms", "int32"),)),
    "heartbeat_interval_ms": (pa.int32(), (("heartbeat_interval_ms", "int32"),)),
    "transactional_id": (_TEXT, (("transactional_id", "string"), (f"{_BELOW_4}transactional_id", "string"))),
    "producer_id": (pa.int64(), (("producer_id", "int64"), (f"{_BELOW_4}producer_id", "int64"))),
    "producer_epoch": (pa.int16(), (("producer_epoch", "int16"), (f"{_BELOW_4}producer_epoch", "int16"))),
    "committed": (pa.bool_(), (("committed", "bool"),)),
    "acks": (pa.int16(), (("acks", "int16"),)),
    "max_wait_ms": (pa.int32(), (("max_wait_ms", "int32"),)),
    "min_bytes": (pa.int32(), (("min_bytes", "int32"),)),
    "throttle_ms": (pa.int32(), (("throttle_time_ms", "int32"),)),
    "session_id": (pa.int32(), (("session_id", "int32"),)),
    "session_epoch": (pa.int32(), (("session_epoch", "int32"), ("share_session_epoch", "int32"))),
}
"""The columns that are fields of a body, with their names in the schemas: the first that the version has."""

CLUSTER: Final = "cluster_id"
_ASKED: Final[dict[str, tuple[pa.DataType, tuple[tuple[str, str], ...]]]] = {CLUSTER: (_TEXT, ((CLUSTER, "string"),))}
"""The same, of columns that exist only if they are asked for by name. Frames that have nothing else are rows then."""

_ALL: Final = _FIELDS | _ASKED
_REGISTERS: Final = {name: number for number, name in enumerate(_ALL)}

SCHEMA: Final = pa.schema(
    [
        *OF_FRAME,
        pa.field("correlation_id", pa.int32()),
        *(pa.field(name, type_) for name, (type_, _) in _FIELDS.items()),
        *STATUS_FIELDS,
    ]
)
"""One row for each request and response that has such a field. Null if its version does not have one."""


class CallStatus(IntEnum):
    """What became of a frame's fields."""

    OK = 0
    MALFORMED = 1


STATUSES: Final = {
    CallStatus.OK: "what a message says of itself",
    CallStatus.MALFORMED: "the body is not what its version says; `error` says where, if that is before the last of "
    "these fields",
}
"""What each ``status`` means."""

_WORDS: Final = columns.status_words(CallStatus)
_OF_FRAME: Final = tuple(one.name for one in SCHEMA if one.name not in (*_FIELDS, "frame_timestamp", "status", "error"))


def _paths(body: StructLayout, wanted: Iterable[str]) -> dict[str, int]:
    """The fields at the top of a body that are captured, in their order, with their registers."""
    types = {one.name: one.type.name for one in body.fields if isinstance(one.type, PrimitiveLayout)}
    found: dict[str, int] = {}
    for column in wanted:
        name = next((name for name, type_ in _ALL[column][1] if types.get(name) == type_), None)
        if name is not None:
            found[name] = _REGISTERS[column]
    return {name: found[name] for name in types if name in found}


def _program(wanted: Iterable[str], secrets: bool, api: int, response: int, version: int) -> Program | None:
    both = layouts(api, response, version, secrets=secrets)
    paths = {} if both is None else _paths(both[-1], wanted)
    if both is None or not paths:
        return None
    last = list(paths)[-1]
    return compile_program(both, paths, emit_after=last, stop_after=last)


class _Maker(Maker):
    def __init__(self, schema_: pa.Schema, run: Run) -> None:
        self._capture = Capture(run.name)
        self._schema = schema_
        wanted = [*_FIELDS, *(name for name in _ASKED if name in schema_.names)]
        self._programs = Programs(partial(_program, wanted, run.options["secrets"]), len(_REGISTERS))
        self._names = {name: Names() for name, (type_, _) in _ALL.items() if type_ == _TEXT}

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        readable = np.flatnonzero(
            np.isin(frames["status"], (Status.OK, Status.TRAILING)) & (frames["api"] >= 0) & (frames["version"] >= 0)
        )
        rows, found, failures = self._programs.run(frames, readable)
        texts = {
            name: names.texts(frames.data, found, _REGISTERS[name])
            for name, names in self._names.items()
            if name in self._schema.names
        }
        frame = rows[job_column(found)]
        bad = {one.row: one.sentence(frames) for one in failures}
        # Where the rest of a body is not what its version says, these fields may be something else too.
        whole = ~np.isin(frame, frames.odd[frames.left_over[frames.odd] == UNREADABLE])
        bad |= dict(frames.errors(frame[~whole]))
        # A failed frame has no other row: rows come in the order of frames.
        all_rows = np.concatenate([frame[whole], np.array(list(bad), np.int64)])
        which = np.concatenate([np.flatnonzero(whole), np.full(len(bad), -1)])
        order = np.argsort(all_rows, kind="stable")
        all_rows, which = all_rows[order], which[order]
        costs = text_sizes(self._capture, frames)[all_rows]
        for one in texts.values():
            costs += one.sizes()[which]
        for first, last in batch_ranges(costs):
            mine, of = all_rows[first:last], which[first:last]
            made = FrameColumns.of(self._capture, frames, mine)
            values: dict[str, pa.Array] = {}
            for name in self._schema.names:
                if name in texts:
                    values[name] = texts[name].column(of)
                elif name in _ALL:
                    values[name] = _numbers(found, _REGISTERS[name], _ALL[name][0], of)
                elif name == "status":
                    values[name] = columns.pick(_WORDS, (of < 0).astype(np.int64))
                elif name == "error":
                    values[name] = pa.array([bad.get(row) for row in mine.tolist()], pa.string())
                else:
                    values[name] = made.column("timestamp" if name == "frame_timestamp" else name)
            yield columns.filled(self._schema, values.__getitem__)


def _numbers(found: Array, register: int, type_: pa.DataType, which: Array) -> pa.Array:
    if not len(found):
        return pa.nulls(len(which), type_)
    made = columns.nullable(value_column(found, register), pa.int64())
    return made.take(pa.array(np.maximum(which, 0), mask=which < 0)).cast(type_)


TABLE: Final = CaptureTable(
    name="calls",
    schema=SCHEMA,
    file="capture",
    statuses=words(STATUSES),
    maker=_Maker,
    dictionaries=True,
    asked=(*BROKER, *(pa.field(name, type_) for name, (type_, _) in _ASKED.items())),
    shown=(
        Column("time", showing.time("frame_timestamp")),
        Column("client_id", showing.plain("client_id"), shrink=8),
        Column("", showing.direction),
        Column("api", showing.api, shrink=12),
        Column("group", showing.plain("group_id"), shrink=8),
        Column("member", showing.plain("member_id"), shrink=8),
        Column("generation", showing.plain("generation"), right=True),
        Column("transaction", showing.plain("transactional_id"), shrink=8),
        Column("producer", showing.plain("producer_id"), right=True),
        Column("epoch", showing.plain("producer_epoch"), right=True),
        Column("acks", showing.plain("acks"), right=True),
        Column("throttle", showing.plain("throttle_ms"), right=True),
        Column("status", showing.status, empty="ok"),
    ),
)
"""The table ``calls`` of captures (``CaptureTable``): requests and their responses."""
