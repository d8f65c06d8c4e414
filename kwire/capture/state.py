"""The saved form of a tracker: an Arrow table with a row for each connection, and what makes and reads its columns.

``Tracker.save`` and ``Tracker.restore`` say what such a table is for. ``kwire.capture.saved`` checks one that comes
from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.kernels import pairing
from kwire.kernels.engine import choose
from kwire.kernels.layouts import CONNECTION, PACKETS_BEFORE, SEGMENT, STREAM

__all__ = [
    "COUNTED",
    "LISTED",
    "STATE",
    "STATE_VERSION",
    "fill",
    "segments_column",
    "segments_from",
    "structs",
    "waiting_column",
]

Array = Any

STATE_VERSION: Final = 13
"""The version of a saved state (int). A state of another version is refused."""

_NUMBER: Final = pa.int64()

COUNTED: Final = (
    (CONNECTION, "first_order"),
    (CONNECTION, "opener_order"),
    (CONNECTION, "closed_order"),
    (CONNECTION, "settled_order"),
    (CONNECTION, "begun_order"),
    (STREAM, "start_order"),
    (STREAM, "end_order"),
    (STREAM, "placed_order"),
    (STREAM, "since"),
)
"""Columns that hold numbers of packets, or AT_THE_END."""
LISTED: Final = ("waiting_head", "waiting_tail", "waiting_front", "waiting_new")
"""Columns of connections that are rows of the table of requests that wait."""


def _struct(names: Iterable[str], *more: pa.Field) -> pa.DataType:
    return pa.struct([*(pa.field(name, _NUMBER, nullable=False) for name in names), *more])


def _rows_with(names: Iterable[str], last: str) -> pa.DataType:
    """A list of structs of numbers and, last, bytes."""
    return pa.list_(pa.field("element", _struct(names, pa.field(last, pa.binary())), nullable=False))


WAITS: Final = _rows_with(
    ("id", "api", "version", "time", "order", "clock", "overtaken", "doubted", "ack", "end"), "client_id"
)
HELD: Final = _rows_with(("side", "pos", "len", "time", "order", "clock", "doubt", "packet", "ack"), "bytes")

STATE: Final = pa.schema(
    [
        pa.field("connection", _struct(CONNECTION.names), nullable=False),
        pa.field("a_to_b", _struct(STREAM.names), nullable=False),
        pa.field("b_to_a", _struct(STREAM.names), nullable=False),
        pa.field("client_id", pa.binary()),
        pa.field("waiting", WAITS, nullable=False),
        pa.field("segments", HELD, nullable=False),
        pa.field("tls", pa.string()),
        pa.field("hello", pa.string()),
    ]
)
"""What ``Tracker.save`` gives: one row for each connection.

Columns:

- ``connection``, ``a_to_b`` and ``b_to_a`` are rows of ``kwire.kernels.layouts``.
- ``client_id`` is that of the latest request.
- ``waiting`` are the requests without a response so far.
- ``segments`` are the bytes that are not processed yet (null: the capture does not have them).
- ``tls`` is what is known of a TLS connection that is decrypted, as JSON without any secret.
- ``hello`` is what the hellos of a connection that is not decrypted say (version, cipher suite, server name).

What is known of the capture as a whole is JSON in the metadata, under ``kwire``.
"""


def structs(rows: Array) -> pa.Array:
    """Rows of a record type as an array of structs."""
    names = rows.dtype.names
    fields = [pa.field(name, _NUMBER, nullable=False) for name in names]
    return pa.StructArray.from_arrays([pa.array(np.ascontiguousarray(rows[name])) for name in names], fields=fields)


def fill(rows: Array, column: pa.ChunkedArray) -> None:
    """Writes a column that ``structs`` made into rows."""
    structs = column.combine_chunks()
    for name in rows.dtype.names:
        rows[name] = structs.field(name).to_numpy()


def waiting_column(connections: Array, waiting: Array, slots: Array, client_ids: Sequence[bytes]) -> pa.Array:
    """The column ``waiting`` of the connections in some ``slots``. ``waiting``: the table of requests that wait."""
    counts = connections["waiting"][slots]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    rows = np.empty(offsets[-1], np.int64)
    choose(rows.nbytes)(pairing.list_all)(connections, slots, waiting, rows)
    entries = waiting.take(rows)
    client = entries["client"]
    named = pa.array(client, mask=client < 0)
    columns = [
        pa.array(client_ids, pa.binary()).take(named)
        if name == "client_id"
        else pa.array(entries[name].astype(np.int64))
        for name in WAITS.value_type.names
    ]
    structs = pa.StructArray.from_arrays(columns, fields=list(WAITS.value_type))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, type=WAITS)


def segments_column(segments: Array, held: Array, slots: Array) -> pa.Array:
    """The column ``segments`` of the connections in some ``slots``. ``held``: the bytes of segments that wait."""
    found: dict[int, list[dict[str, Any]]] = {}
    for stream, pos, length, off, time, order, clock, doubt, packet, ack in segments.tolist():
        data = held[off : off + length].tobytes() if off >= 0 else None
        one = {
            "side": stream & 1,
            "pos": pos,
            "len": length,
            "time": time,
            "order": order,
            "clock": clock,
            "doubt": doubt,
            "packet": packet,
            "ack": ack,
            "bytes": data,
        }
        found.setdefault(stream >> 1, []).append(one)
    return pa.array([found.get(slot, []) for slot in slots.tolist()], HELD)


def segments_from(of_connections: list[list[dict[str, Any]]], whole: bool) -> tuple[Array, Array]:
    """The segments and their bytes that ``segments_column`` made a column of."""
    rows: list[tuple[int, ...]] = []
    parts: list[bytes] = []
    held = 0
    for slot, segments in enumerate(of_connections):
        for one in segments:
            data, order = one["bytes"], one["order"] if whole else -1
            at = -1 if data is None else held
            times = one["time"], order, one["clock"]
            packet = one["packet"] - (0 if whole else PACKETS_BEFORE)
            rows.append((2 * slot + one["side"], one["pos"], one["len"], at, *times, one["doubt"], packet, one["ack"]))
            if data is not None:
                parts.append(data)
                held += len(data)
    found = np.array(rows, SEGMENT) if rows else np.empty(0, SEGMENT)
    # A copy: its memory is written to when it is used again.
    return found, np.frombuffer(b"".join(parts), np.uint8).copy()
