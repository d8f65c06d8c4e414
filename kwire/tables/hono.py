"""The table ``hono``: the records of a capture that are messages of Eclipse Hono, one row per message.

Messages are read by the column (``kwire.events.columns``). Where a device is, is checked once for each device that a
batch shows for the first time. ``kwire.spark.hono_messages`` has the same columns. Records that are no message are left
out.

Rules kept here:

- A message that violates the document is a row with ``violations`` and ``error``. A message in a record whose
  ``status`` is not ``ok`` has ``error`` alone.
- Messages are judged expired at the time of capture.
- A device on a second partition or from a second producer is a violation. The message that shows it first has it, over
  all captures of one run.
- Producers are distinguished by their producer ids. So those that are not idempotent are not compared
  (``kwire.spark.hono_violations`` with the table ``frames`` does that). A restarted producer has another id: its client
  id and host identify it.
- A filter chooses among the rows: devices are remembered of all records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.capture.frames import Frames
from kwire.events import hono
from kwire.events.columns import HONO_MESSAGE, VIOLATIONS, hono_messages, kinds_of
from kwire.schema.keys import ApiKey
from kwire.tables import columns, showing
from kwire.tables.definition import CaptureTable, Run
from kwire.tables.filters import Filter
from kwire.tables.frames import Capture, FrameColumns
from kwire.tables.meanings import PLACE_FIELDS, OfRecords, renamed, said
from kwire.tables.showing import Column

__all__ = ["SCHEMA", "TABLE"]

SCHEMA: Final = pa.schema(
    [*PLACE_FIELDS, pa.field("producer_id", pa.int64()), *HONO_MESSAGE, pa.field("error", pa.string())]
)
"""The columns of ``kwire.spark.hono_messages``."""

_NEEDED: Final = (
    "connection",
    "frame",
    "frame_timestamp",
    "source",
    "topic",
    "partition",
    "key",
    "value",
    "headers",
    "is_control",
    "producer_id",
    "status",
    "error",
)
"""What a message is read from: the devices are remembered whichever columns are chosen."""


class _Maker(OfRecords):
    def __init__(self, schema: pa.Schema, run: Run) -> None:
        super().__init__(schema, replace(run, only=None), _NEEDED)
        self._only = run.only
        self._unwanted: Any = None
        """The numbers of those among the present frames that a filter leaves out."""
        self._devices: hono.Devices = run.memory.setdefault("hono", hono.Devices())
        self._capture = Capture(run.name)
        self._clients: dict[int, str] = {}

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        self._learn(frames)
        if self._only is not None:
            self._unwanted = pa.array(frames.numbers[~self._only.frames(frames)])
        yield from super().batches(frames)

    def _learn(self, frames: Frames) -> None:
        """Who sends, by the connections of requests to produce."""
        produce = np.flatnonzero((frames["api"] == ApiKey.PRODUCE) & (frames["response"] == 0))
        if not len(produce):
            return
        slots, first = np.unique(frames["slot"][produce], return_index=True)
        connections = frames.of_connections("number", slots)
        new = [at for at, one in enumerate(connections.tolist()) if one not in self._clients]
        if not new:
            return
        rows = FrameColumns.of(self._capture, frames, produce[first[new]])
        names = zip(*(pa.array(one).to_pylist() for one in (rows.client_id(), rows.client_host())), strict=True)
        for at, (client_id, host) in zip(new, names, strict=True):
            self._clients[int(connections[at])] = f"{client_id or 'without id'} on {host}"

    def of_records(self, records: pa.RecordBatch) -> pa.RecordBatch:
        controls = pc.fill_null(records.column("is_control"), False)
        kept = pc.and_not(pa.array(kinds_of(records.column("topic")) >= 0), controls)
        if not pc.all(kept).as_py():
            records = records.filter(kept)
        each = {renamed(name): records.column(name) for name in records.schema.names}
        captured = records.column("frame_timestamp").cast(pa.int64())
        # Whether a message is expired is not known where nobody knows when it was seen.
        now = pa.array(pc.fill_null(captured, 0).to_numpy() // 1000, mask=captured.is_null().to_numpy(False))
        found = hono_messages(each["topic"], each["key"], each["headers"], each["value"], now)
        messages = dict(zip(HONO_MESSAGE.names, found.flatten(), strict=True))
        sound = pc.equal(records.column("status"), "ok")
        violations = messages["violations"]
        if not pc.all(sound).as_py():
            # Records that may be damaged are not judged.
            violations = pc.if_else(sound, violations, pa.scalar([], VIOLATIONS))
        violations = self._with_devices(violations, messages, each, sound)
        error = _sentences(violations)
        if not pc.all(sound).as_py():
            texts = zip(error.to_pylist(), *(each[one].to_pylist() for one in ("status", "error")), strict=True)
            error = pa.array([said(*one) for one in texts], pa.string())
        made = each | messages | {"violations": violations, "error": error}
        rows = columns.filled(self.schema, made.__getitem__)
        return rows if self._only is None else rows.filter(self._chosen(each, self._only))

    def _chosen(self, each: dict[str, pa.Array], only: Filter) -> pa.Array:
        """Which messages are wanted."""
        wanted = pc.invert(pc.is_in(each["frame"], self._unwanted))
        if only.topics is None:
            return wanted
        return pc.and_(wanted, pc.is_in(each["topic"], pa.array(sorted(only.topics), pa.string())))

    def _with_devices(
        self, violations: pa.Array, messages: dict[str, pa.Array], each: dict[str, pa.Array], sound: pa.Array
    ) -> pa.Array:
        """``violations`` and those of messages whose device was seen elsewhere."""
        known = np.flatnonzero(pc.and_(sound, messages["device_id"].is_valid()).to_numpy(False))
        if not len(known):
            return violations
        rows = pa.array(known)
        kind, tenant, device = (messages[one].take(rows).dictionary_encode() for one in ("kind", "tenant", "device_id"))
        partition = each["partition"].take(rows)
        producer = each["producer_id"].take(rows)
        keys = np.stack(
            [
                tenant.indices.to_numpy() * len(hono.KINDS) + kind.indices.to_numpy(),
                device.indices.to_numpy(),
                pc.fill_null(partition.cast(pa.int64()), -1).to_numpy(),
                pc.fill_null(producer, -1).to_numpy(),
            ]
        )
        # Each combination at its first message, and each message where the producer of a device changes. The others add
        # nothing.
        _, first = np.unique(keys, axis=1, return_index=True)
        order = np.lexsort((keys[1], keys[0]))
        ordered = keys[:, order]
        other = (ordered[:2, 1:] == ordered[:2, :-1]).all(axis=0) & (ordered[3, 1:] != ordered[3, :-1])
        first = np.union1d(first, order[1:][other])
        sent = pc.equal(each["record_source"].take(rows), "produce").to_numpy(False)
        connections = each["connection"].take(rows).to_numpy()
        more: dict[int, list[hono.Violation]] = {}
        for at in first.tolist():
            sender = producer[at].as_py()
            wrong = self._devices.saw(
                tenant[at].as_py(),
                device[at].as_py(),
                partition[at].as_py(),
                f"producer id {sender}" if sender is not None and sender >= 0 else None,
                self._clients.get(int(connections[at])) if sent[at] else None,
                kind[at].as_py(),
            )
            if wrong:
                more[int(known[at])] = wrong
        return _joined(violations, more) if more else violations


def _joined(violations: pa.Array, more: dict[int, list[hono.Violation]]) -> pa.Array:
    """``violations`` with those of ``more``, by row, at the ends of their lists."""
    added = [wrong for row in sorted(more) for wrong in more[row]]
    after = np.repeat(sorted(more), [len(more[row]) for row in sorted(more)])
    lengths = pc.list_value_length(violations).to_numpy()
    of_row = np.concatenate([np.repeat(np.arange(len(violations)), lengths), after])
    texts = pa.array([one._asdict() for one in added], VIOLATIONS.value_type)
    values = pa.concat_arrays([violations.flatten(), texts]).take(pa.array(np.argsort(of_row, kind="stable")))
    ends = np.concatenate([[0], np.cumsum(np.bincount(of_row, minlength=len(violations)))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), values, type=VIOLATIONS)


def _sentences(violations: pa.Array) -> pa.Array:
    """What the violations of each row say, separated by semicolons. Null if there are none."""
    lengths: Any = pc.list_value_length(violations).to_numpy()
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    details = pa.ListArray.from_arrays(pa.array(ends), violations.flatten().field("detail"))
    return pc.if_else(pa.array(lengths > 0), pc.binary_join(details, "; "), pa.scalar(None, pa.string()))


TABLE: Final = CaptureTable(
    name="hono",
    schema=SCHEMA,
    file="capture",
    maker=_Maker,
    of_one_file=True,
    shown=(
        Column("source", showing.plain("record_source")),
        Column("kind", showing.plain("kind")),
        Column("tenant", showing.plain("tenant"), shrink=8),
        Column("device", showing.plain("device_id"), shrink=8),
        Column("partition", showing.plain("partition"), right=True),
        Column("offset", showing.plain("offset"), right=True),
        Column("created", showing.time("creation_time")),
        Column("qos", showing.plain("qos"), right=True),
        Column("ttd", showing.plain("ttd"), right=True),
        Column("ttl", showing.plain("ttl"), right=True),
        Column("expired", showing.plain("expired")),
        Column("content type", showing.plain("content_type"), shrink=12),
        Column("encoding", showing.plain("content_encoding"), shrink=8),
        Column("error", showing.plain("error"), shrink=24),
    ),
)
"""The table ``hono`` of captures (``CaptureTable``): messages of Eclipse Hono."""
