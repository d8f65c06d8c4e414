"""Segments as Arrow batches: records (``read``) and batches (``batches``).

A segment is a record set of any length. It is read window by window into one buffer; what is left of a window (an entry
that goes on in the next one) is moved to the front of the buffer. The buffer grows only as bytes arrive, so a length
that promises gigabytes costs nothing.

Rules kept here:

- A last entry that is cut off is what a broker leaves when it dies: a note, not a row. Zeros at the end are a
  preallocated file (``log.preallocate``).
- Where a length is wrong, the next entry is found by its checksum (``resync``), and a row says how many bytes were
  skipped: Kafka's own tools stop there.
- Values that hold secrets are replaced where the segment is one of ``__cluster_metadata``.
- Rows come in the order of the file; what could not be read is a row with ``status`` ``malformed`` at its place.

Source: Kafka's documentation, "Log"; the formats of entries stand in ``kwire.records``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from kwire.errors import MissingExtraError

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as _missing:  # pragma: no cover - depends on the installation
    raise MissingExtraError("log segments", "capture") from _missing

from kwire.kernels.engine import PYTHON, choose
from kwire.kernels.layouts import HEADER, joined
from kwire.kernels.segments import EFFORT, framed, read_headers, resync
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.log.files import Segment, find, named
from kwire.log.internal import MAY_HIDE, may_hold_secrets, redacted_columns
from kwire.naming import public
from kwire.opening import open_file
from kwire.records.arrow_types import POSITION, RECORD_FIELDS, SCHEMA, TIMESTAMP
from kwire.records.budget import Budget
from kwire.records.columnar import decode_pieces
from kwire.records.compression import CODECS
from kwire.records.objects import TIMESTAMP_TYPES
from kwire.records.portions import text_size
from kwire.records.verdicts import Waiting, placed, problem_rows, shared_out, verdict, words_of
from kwire.wire import CODEC, CONTROL, DELETE_HORIZON, FIRST_MS, LAST_MS, LOG_APPEND_TIME, TRANSACTIONAL, printable

__all__ = [
    "BATCHES",
    "RECORDS",
    "STATUSES",
    "Region",
    "batches",
    "header_columns",
    "headers",
    "headers_of",
    "read",
    "regions",
    "shown_time",
]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

STATUSES: Final = {
    "ok": "a record (or batch), its checksum verified",
    "corrupt": "a record (or batch) whose checksum does not match",
    "malformed": "bytes that are no entry, or a batch that cannot be decompressed or read to its end",
    "too_large": "a batch that would become more than a limit allows, or how many more problems there were",
}
"""``status`` of both tables, and what each means. ``error`` says more, in a sentence, unless it is ``ok``."""

_WHERE: Final = [
    pa.field("segment", pa.string(), nullable=False),
    POSITION,
    pa.field("topic", pa.string()),
    pa.field("topic_id", pa.string()),
    pa.field("partition", pa.int32()),
]
_STATUS: Final = [pa.field("status", pa.string(), nullable=False), pa.field("error", pa.string())]

RECORDS: Final = pa.schema([*_WHERE, *RECORD_FIELDS, *_STATUS])
"""One row per record. ``segment`` is the file, ``position`` the byte of the file at which the record's batch starts.

The columns between are those of ``kwire.records.SCHEMA``, null in rows that are not records.
"""

BATCHES: Final = pa.schema(
    [
        *_WHERE,
        pa.field("size", pa.int64(), nullable=False),
        pa.field("magic", pa.int8()),
        pa.field("base_offset", pa.int64()),
        pa.field("last_offset", pa.int64()),
        pa.field("count", pa.int32()),
        pa.field("max_timestamp", TIMESTAMP),
        pa.field("timestamp_type", pa.string()),
        pa.field("compression", pa.string()),
        pa.field("crc", pa.int64()),
        pa.field("crc_ok", pa.bool_()),
        pa.field("producer_id", pa.int64()),
        pa.field("producer_epoch", pa.int16()),
        pa.field("base_sequence", pa.int32()),
        pa.field("partition_leader_epoch", pa.int32()),
        pa.field("is_transactional", pa.bool_()),
        pa.field("is_control", pa.bool_()),
        pa.field("delete_horizon", TIMESTAMP),
        *_STATUS,
    ]
)
"""One row per batch of magic 2 or message of magic 0 and 1, from the headers alone: nothing is decompressed.

``size`` counts all bytes of the entry. ``base_offset`` and ``count`` are null in messages; ``max_timestamp`` is that of
the message there.
"""

WINDOW: Final = 8 << 20

_OTHER_TEXT: Final = 48
"""Bytes of a row's text that is counted in one: words of ``status``, ``compression``, ``timestamp_type`` and so on."""


@dataclass(slots=True)
class Region:
    """Whole entries of a segment: in ``data`` (uint8 array), which begins at byte ``position`` of the file.

    ``starts`` and ``lengths``: the runs of entries in ``data``, at least one, which may be empty. ``skipped``: what is
    no entry, before and between them, as (position in the file, bytes, sentence).
    """

    data: Bytes
    position: int
    starts: Ints
    lengths: Ints
    skipped: list[tuple[int, int, str]]


def regions(
    stream: BinaryIO,
    *,
    size: int = WINDOW,
    progress: Callable[[int], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Iterator[Region]:
    """``stream`` in regions of about ``size`` bytes. A region's data is valid until the next one is asked for.

    A file that is damaged in many places has as many regions as any: what is made for each costs more than its bytes.
    """
    # The buffer is larger than a window, so that what is left in it is moved once for each window, and not once for
    # each damaged place.
    buffer: Bytes = np.empty(2 * size, np.uint8)
    begin = filled = position = 0
    ended = False
    engine = PYTHON
    lost: int | None = None
    ahead: int | None = None
    effort = EFFORT
    zeros = True
    runs: list[tuple[int, int]] = []
    gathered = 0
    skipped: list[tuple[int, int, str]] = []

    def region() -> Region:
        nonlocal gathered
        low, high = (runs[0][0], sum(runs[-1])) if runs else (position, position)
        starts, lengths = np.array(runs or [(low, 0)], np.int64).T.copy()
        made = Region(buffer[low - position + begin : high - position + begin], low, starts - low, lengths, skipped[:])
        gathered = 0
        runs.clear()
        skipped.clear()
        return made

    while True:
        if not ended and filled - begin < size:
            if runs or skipped:
                yield region()
            filled -= begin
            buffer[:filled] = buffer[begin : begin + filled].copy()
            begin, before = 0, filled
            while filled < buffer.size and not ended:
                got = stream.readinto(memoryview(buffer.data)[filled:])  # type: ignore[attr-defined]
                ended = not got
                filled += got or 0
            engine = choose(filled - before)
            if progress is not None:
                progress(position + filled)
        data = buffer[begin : min(filled, begin + size)]
        last = ended and begin + data.size == filled
        used = 0
        if lost is not None:
            # Between entries: a length was wrong at byte ``lost``.
            if ahead is None:
                found, keep, effort = engine(resync)(data, min(max(lost + 1 - position, 0), data.size), effort)
                used = found if found >= 0 else data.size if last else keep
            else:
                found = used = ahead - position
                ahead = None
            zeros = zeros and not data[:used].any()
            if found >= 0 or (last and not zeros):
                skipped.append((lost, position + used - lost, f"{position + used - lost} bytes that are no entry"))
            if found >= 0:
                lost = None
        start = used
        if lost is None:
            used, wrong = engine(framed)(data, start)
            if wrong:
                lost, zeros = position + used, True
            elif last and used < data.size:
                found, _, effort = engine(resync)(data, used + 1, effort)
                if found >= 0:
                    # The last entry goes on behind the end of the file, but there are entries in it: its length is
                    # wrong.
                    lost, ahead, zeros = position + used, position + found, False
        if used > start:
            runs.append((position + start, used - start))
            gathered += used - start
        if 2 * gathered >= size:
            yield region()
        left = data.size - used
        if last and (lost is None or not left):
            if runs or skipped:
                yield region()
            if left and on_note is not None:
                on_note(f"{left} bytes at the end belong to an entry that was not written to its end")
            return
        if not used and not last:
            # The entry is longer than the window. It grows as bytes arrive, not as lengths promise.
            size *= 2
            if buffer.size < 2 * size:
                buffer = np.concatenate([buffer, np.empty(buffer.size, np.uint8)])
        begin += used
        position += used


def read(
    source: Segment | str | Path | BinaryIO,
    *,
    columns: Sequence[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    secrets: bool = False,
    name: str | None = None,
    metadata: str | None = None,
    progress: Callable[[int], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The records of one segment as Arrow batches that are not empty.

    ``source``: a segment, the path of one, or a stream of bytes. ``name`` is then the path or URI of the stream, and
    ``metadata`` the text of the ``partition.metadata`` beside it. ``columns`` chooses columns of ``RECORDS``.
    ``limits`` bounds what reading may use. ``secrets``: passwords, tokens and the like are shown as they are, and not
    left out: in place of a value with some stands text, ``{"redacted": 212}``. ``progress`` is called with the number
    of bytes read so far, ``on_note`` with sentences about what is no row. Raises ``OSError`` where the file cannot be
    read; what is in it never raises.
    """
    facts, opened = _opened(source, name, metadata)
    schema = _chosen(RECORDS, columns)
    inner = [*dict.fromkeys([*(one for one in schema.names if one in SCHEMA.names), "crc_ok"]), POSITION.name]
    hidden = [one for one in MAY_HIDE if one in inner]
    redacts = not secrets and hidden and may_hold_secrets(facts["topic"], facts["topic_id"])
    if redacts and "is_control" not in inner:
        inner.append("is_control")
    budget = Budget(limits)
    with opened as stream:
        for region in regions(stream, progress=progress, on_note=on_note):
            starts = region.position + region.starts
            waiting = Waiting()
            for at, _, text in region.skipped:
                waiting.tell((at,), text)
            pieces = decode_pieces(
                region.data, region.starts, region.lengths, limits=limits, columns=inner, budget=budget
            )
            for found, after in pieces:
                for run, at, text in found.problems:
                    waiting.tell((int(starts[run]) + at,), text)
                rows = found.batch
                values = {one: rows.column(one) for one in inner}
                before = pa.scalar(starts[0]) if len(starts) == 1 else pa.array(starts[found.set_index])
                values["position"] = pc.add(values["position"], before)
                values["status"], values["error"] = verdict(rows.column("crc_ok"))
                if redacts:
                    some = {one: values[one] for one in hidden}
                    values |= redacted_columns(some, values["is_control"], facts["topic"], facts["topic_id"])
                problems = waiting.before(None if after is None else (int(starts[after[0]]) + after[1],))
                told = [(at, text) for (at,), text in problems]
                yield from _filled(values, rows.num_rows, told, facts, schema)


def batches(
    source: Segment | str | Path | BinaryIO,
    *,
    columns: Sequence[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    secrets: bool = False,
    name: str | None = None,
    metadata: str | None = None,
    progress: Callable[[int], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The batches of one segment, from their headers alone. Arguments as for ``read``; the schema is ``BATCHES``."""
    facts, opened = _opened(source, name, metadata)
    schema = _chosen(BATCHES, columns)
    with opened as stream:
        for region in regions(stream, progress=progress, on_note=on_note):
            table = headers_of(region)
            problems = [(at, text) for at, _, text in region.skipped]
            unknown = table["crc_ok"] < 0
            problems += [
                (region.position + at, f"an entry of {size} bytes with magic {magic}")
                for at, size, magic in table[["position", "size", "magic"]][unknown].tolist()
            ]
            table = table.take(np.flatnonzero(~unknown))
            problems.sort(key=lambda one: one[0])
            yield from _filled(header_columns(table, region.position), len(table), problems, facts, schema)


def headers_of(region: Region) -> Any:
    """``headers`` of all runs of a region; positions count in its ``data``."""
    tables = []
    for start, length in zip(region.starts.tolist(), region.lengths.tolist(), strict=True):
        table = headers(region.data[start : start + length])
        table["position"] += start
        tables.append(table)
    return tables[0] if len(tables) == 1 else joined(tables)


def headers(data: Bytes) -> Any:
    """What the headers of the entries in ``data`` (a uint8 array) say: a table of ``kwire.kernels.layouts.HEADER``."""
    read_all = choose(data.size)(read_headers)
    table = np.empty(data.size // 512 + 16, HEADER)
    rows = read_all(data, table)
    if rows > len(table):
        table = np.empty(rows, HEADER)
        rows = read_all(data, table)
    return table[:rows]


def _opened(
    source: Segment | str | Path | BinaryIO, name: str | None, metadata: str | None
) -> tuple[dict[str, Any], Any]:
    """The columns that are the same for the whole file, and the file."""
    if isinstance(source, str | Path):
        found = find(source)
        if len(found) != 1:
            raise ValueError(f"{public(source)} holds {len(found)} segments: read them one by one")
        source = found[0]
    if isinstance(source, Segment):
        segment, name = source, str(source.path)
        opened: Any = open_file(source.path, buffering=0)
    else:
        name = name or "segment"
        segment, opened = named(Path(name), metadata), nullcontext(source)
    # A path would not keep a URI as it is: the name does.
    # It is any bytes, of which a column has what is UTF-8.
    topic = None if segment.topic is None else printable(segment.topic)
    facts = {"segment": printable(name), "topic": topic, "topic_id": segment.topic_id, "partition": segment.partition}
    return facts, opened


def _chosen(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    if columns is None:
        return schema
    for one in columns:
        if one not in schema.names:
            raise ValueError(f"there is no column {one!r}; there are {', '.join(schema.names)}")
    return pa.schema([schema.field(one) for one in columns])


def _filled(
    values: dict[str, pa.Array], rows: int, problems: list[tuple[int, str]], facts: dict[str, Any], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """``values`` and the columns that are the same for the file, with a row for each problem at its place.

    Problems are in order. Batches are not empty.
    """
    at = np.array([at for at, _ in problems], np.int64)
    texts = [text for _, text in problems]
    costs = np.full(rows + len(at), _OTHER_TEXT, np.int64)
    costs += sum(text_size(value) for name, value in facts.items() if isinstance(value, str) and name in schema.names)
    costs[rows:] += np.array([text_size(text) for text in texts], np.int64)
    places = np.concatenate([values["position"].to_numpy(), at])
    for part in shared_out(costs, rows, places):
        count = part.rows.stop - part.rows.start
        columns = [
            pa.repeat(pa.scalar(facts[one.name], one.type), count)
            if one.name in facts
            else values[one.name].slice(part.rows.start, count).cast(one.type)
            for one in schema
        ]
        made = pa.RecordBatch.from_arrays(columns, schema=schema)
        if part.problems.stop > part.problems.start:
            wrong = at[part.problems]
            said = texts[part.problems]
            own = {**facts, "position": wrong, "status": words_of(said), "error": said, "size": 0}
            made = placed(made, problem_rows(schema, len(wrong), own), part.order)
        yield made


def shown_time(values: Any, present: Any) -> pa.Array:
    """Milliseconds as a column, null for "none" and outside of the years 1 to 9999, as in the records table."""
    shown = present & (values != -1) & (values >= FIRST_MS) & (values <= LAST_MS)
    return pa.array(np.where(shown, values, 0) * 1000, mask=~shown).cast(TIMESTAMP)


def header_columns(table: Any, position: int = 0) -> dict[str, pa.Array]:
    """The columns of BATCHES that a table of HEADER says; ``position`` is that of byte 0 of what was read."""
    magic, attributes = table["magic"], table["attributes"]
    batch = magic == 2
    status, error = verdict(pa.array(table["crc_ok"] == 1))
    named = pa.array([*CODECS, None, None, None], pa.string())
    kinds = pa.array([*TIMESTAMP_TYPES, None], pa.string())

    def number(column: str, present: Any) -> pa.Array:
        return pa.array(table[column], mask=~present)

    def time(column: str, present: Any) -> pa.Array:
        return shown_time(table[column], present)

    every = np.ones(len(table), bool)
    return {
        "position": pa.array(table["position"] + position),
        "size": pa.array(table["size"]),
        "magic": pa.array(magic),
        "base_offset": number("base", batch),
        "last_offset": number("last", every),
        "count": number("count", batch),
        "max_timestamp": time("max_timestamp", magic > 0),
        "timestamp_type": kinds.take(pa.array(np.where(magic == 0, 2, attributes & LOG_APPEND_TIME != 0))),
        "compression": named.take(pa.array(attributes & CODEC)),
        "crc": pa.array(table["crc"]),
        "crc_ok": pa.array(table["crc_ok"] == 1),
        "producer_id": number("producer", batch & (table["producer"] != -1)),
        "producer_epoch": number("epoch", batch & (table["epoch"] != -1)),
        "base_sequence": number("sequence", batch & (table["sequence"] != -1)),
        "partition_leader_epoch": number("leader", batch & (table["leader"] != -1)),
        "is_transactional": pa.array(batch & (attributes & TRANSACTIONAL != 0)),
        "is_control": pa.array(batch & (attributes & CONTROL != 0)),
        "delete_horizon": time("base_timestamp", batch & (attributes & DELETE_HORIZON != 0)),
        "status": status,
        "error": error,
    }
