"""Segments as Arrow batches: records (``read``) and batches (``batches``).

A segment is a record set of any length. It is read region by region (``kwire.log.regions``).

Rules kept here:

- A last entry that is cut off remains if a broker dies: a note, not a row. Zeros at the end are a preallocated file
  (``log.preallocate``).
- If a length is wrong, the next entry is found by its checksum (``resync``). A row says how many bytes were skipped.
  Kafka's own tools stop there.
- Values that hold secrets are replaced if the segment is one of ``__cluster_metadata``.
- Rows come in the order of the file. Bytes that could not be read are a row with ``status`` ``malformed`` at their
  place.

Source: Kafka's documentation, "Log". ``kwire.records`` has the formats of entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO, Final, Unpack

from kwire.errors import MissingExtraError

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as _missing:  # pragma: no cover - depends on the installation
    raise MissingExtraError("reading captures and log segments", "capture") from _missing

from kwire.limits import DEFAULT_LIMITS, Limits, check_limits
from kwire.log.decided import Beside, Decided, InFolder, decided
from kwire.log.files import Segment, find, named
from kwire.log.internal import MAY_HIDE, may_hold_secrets, redacted_columns
from kwire.log.regions import headers_of, regions
from kwire.naming import no_such, public
from kwire.opening import check_file, open_file
from kwire.options import SegmentOptions, check_called, of_segments
from kwire.records.arrow_types import BATCH_FIELDS, POSITION, RECORD_FIELDS, SCHEMA, STATUS_FIELDS, TIMESTAMP
from kwire.records.batching import text_size
from kwire.records.budget import Budget
from kwire.records.columnar import decode_pieces
from kwire.records.compression import CODECS
from kwire.records.isolation import NEEDED
from kwire.records.objects import TIMESTAMP_TYPES
from kwire.records.verdicts import Waiting, placed, problem_rows, shared_out, verdict, words_of
from kwire.wire import CODEC, CONTROL, DELETE_HORIZON, FIRST_MS, LAST_MS, LOG_APPEND_TIME, TRANSACTIONAL, printable

__all__ = [
    "BATCHES",
    "RECORDS",
    "STATUSES",
    "batches",
    "header_columns",
    "read",
    "shown_time",
]

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

RECORDS: Final = pa.schema([*_WHERE, *RECORD_FIELDS, *STATUS_FIELDS])
"""One row per record. ``segment`` is the file, ``position`` the byte of the file at which the record's batch starts.

The columns between are those of ``kwire.records.SCHEMA``, null in rows that are not records.
"""

BATCHES: Final = pa.schema(
    [
        *_WHERE,
        pa.field("size", pa.int64(), nullable=False),
        *(one for one in BATCH_FIELDS if one.name != "base_timestamp"),
        *STATUS_FIELDS,
    ]
)
"""One row per batch of magic 2 or message of magic 0 and 1, from the headers alone: nothing is decompressed.

``size`` counts all bytes of the entry. ``base_offset`` and ``count`` are null in messages. ``max_timestamp`` is there
that of the message.
"""

_OTHER_TEXT: Final = 48
"""Bytes of a row's text that is counted in one: words of ``status``, ``compression``, ``timestamp_type`` and so on."""


def read(
    source: Segment | str | Path | BinaryIO,
    *,
    columns: Sequence[str] | None = None,
    name: str | Segment | None = None,
    metadata: str | None = None,
    progress: Callable[[int], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    beside: Beside | None = None,
    **options: Unpack[SegmentOptions],
) -> Iterator[pa.RecordBatch]:
    """The records of one segment as Arrow batches that are not empty.

    - ``source``: a segment, the path of one, or a stream of bytes.
    - ``name``: of a stream, its path or URI, or the segment that it is.
    - ``metadata``: of a stream, the text of the ``partition.metadata`` beside it.
    - ``beside``: the folder of a stream.
    - ``columns`` chooses columns of ``RECORDS``.
    - ``progress`` is called with the number of bytes read so far.
    - ``on_note`` is called with sentences about what is no row.
    - ``options`` are the keywords of ``kwire.options.SegmentOptions``.

    A value with secrets is replaced by text, ``{"redacted": 212}``. With ``read_committed`` (``kwire.log.decided``) the
    segment is read twice. Then a stream without ``beside`` must be seekable, and only its own markers count.

    Raises ``OSError`` if the file cannot be read, ``ValueError`` for a stream that would have to be seekable. Raises
    ``CaptureError`` for a file that cannot be read to its end, after the rows before that place. The content of entries
    never raises.
    """
    check_called(progress=progress, on_note=on_note)
    how = of_segments(options)
    limits, secrets = how["limits"], how["secrets"]
    constants, opened, segment = _opened(source, name, metadata)
    schema = _chosen(RECORDS, columns)
    inner = [*dict.fromkeys([*(one for one in schema.names if one in SCHEMA.names), "crc_ok"]), POSITION.name]
    hidden = [one for one in MAY_HIDE if one in inner]
    of_topic = None if segment.has_given_topic else constants["topic"]
    redacts = not secrets and hidden and may_hold_secrets(of_topic, constants["topic_id"])
    if redacts and "is_control" not in inner:
        inner.append("is_control")
    budget = Budget(limits)
    with opened as stream:
        verdicts = None
        decoded = inner
        if how["read_committed"]:
            verdicts = _decided(source, stream, segment, beside)
            decoded = list(dict.fromkeys([*inner, *NEEDED]))
        for region in regions(stream, progress=progress, on_note=on_note, name=constants["segment"]):
            starts = region.position + region.starts
            waiting = Waiting()
            for at, text in region.skipped:
                waiting.add((at,), text)
            pieces = decode_pieces(
                region.data, region.starts, region.lengths, limits=limits, columns=decoded, budget=budget
            )
            for found, after in pieces:
                for run, at, text in found.problems:
                    waiting.add((int(starts[run]) + at,), text)
                rows, of_set = found.batch, found.set_index
                if verdicts is not None and (kept := verdicts.kept(rows)) is not None:
                    rows, of_set = rows.select(inner).filter(pa.array(kept)), of_set[kept]
                values = {one: rows.column(one) for one in inner}
                before = pa.scalar(starts[0]) if len(starts) == 1 else pa.array(starts[of_set])
                values["position"] = pc.add(values["position"], before)
                values["status"], values["error"] = verdict(rows.column("crc_ok"))
                if redacts:
                    some = {one: values[one] for one in hidden}
                    values |= redacted_columns(some, values["is_control"], of_topic, constants["topic_id"])
                problems = waiting.before(None if after is None else (int(starts[after[0]]) + after[1],))
                placed = [(at, text) for (at,), text in problems]
                yield from _filled(values, rows.num_rows, placed, constants, schema)
    if on_note is not None and verdicts is not None:
        for note in verdicts.notes():
            on_note(note)


def batches(
    source: Segment | str | Path | BinaryIO,
    *,
    columns: Sequence[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    secrets: bool = False,
    name: str | Segment | None = None,
    metadata: str | None = None,
    progress: Callable[[int], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The batches of one segment, from their headers alone. Arguments as for ``read``. The schema is ``BATCHES``."""
    check_called(progress=progress, on_note=on_note)
    check_limits(limits)
    constants, opened, _ = _opened(source, name, metadata)
    schema = _chosen(BATCHES, columns)
    with opened as stream:
        for region in regions(stream, progress=progress, on_note=on_note, name=constants["segment"]):
            table = headers_of(region)
            problems = [*region.skipped]
            unknown = table["crc_ok"] < 0
            problems += [
                (region.position + at, f"an entry of {size} bytes with magic {magic}")
                for at, size, magic in table[["position", "size", "magic"]][unknown].tolist()
            ]
            table = table.take(np.flatnonzero(~unknown))
            problems.sort(key=lambda one: one[0])
            yield from _filled(header_columns(table, region.position), len(table), problems, constants, schema)


def _opened(
    source: Segment | str | Path | BinaryIO, name: str | Segment | None, metadata: str | None
) -> tuple[dict[str, Any], Any, Segment]:
    """The columns that are the same for the whole file, the file, and what its name says."""
    if isinstance(source, str | Path):
        found = find(source)
        if len(found) != 1:
            raise ValueError(f"{public(source)} holds {len(found)} segments: read them one by one")
        source = found[0]
    if isinstance(source, Segment):
        segment, name = source, str(source.path)
        opened: Any = open_file(source.path, buffering=0)
    else:
        check_file(source, "a segment")
        segment = name if isinstance(name, Segment) else named(Path(name or "segment"), metadata)
        name, opened = name if isinstance(name, str) else str(segment.path), nullcontext(source)
    # A path would not keep a URI as it is: the name does.
    # It is any bytes. A column has those that are UTF-8.
    topic = None if segment.topic is None else printable(segment.topic)
    constants = {
        "segment": printable(name),
        "topic": topic,
        "topic_id": segment.topic_id,
        "partition": segment.partition,
    }
    return constants, opened, segment


def _decided(
    source: Segment | str | Path | BinaryIO, stream: BinaryIO, segment: Segment, beside: Beside | None
) -> Decided:
    """What is decided of the records of a segment. ``stream`` is where it was then."""
    if beside is None and isinstance(source, Segment | str | Path):
        beside = InFolder(segment.path)
    if beside is not None:
        return decided(beside, None, segment.base_offset)
    if not stream.seekable():
        raise ValueError("read_committed reads a segment twice: a stream has to be seekable")
    begin = stream.tell()
    found = decided(None, stream, segment.base_offset)
    stream.seek(begin)
    return found


def _chosen(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    if columns is None:
        return schema
    for one in columns:
        if one not in schema.names:
            raise ValueError(no_such("column", one, schema.names))
    return pa.schema([schema.field(one) for one in columns])


def _filled(
    values: dict[str, pa.Array],
    rows: int,
    problems: list[tuple[int, str]],
    constants: dict[str, Any],
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """``values`` and the columns that are the same for the file. Each problem is a row at its place.

    Problems are in order. Batches are not empty.
    """
    at = np.array([at for at, _ in problems], np.int64)
    texts = [text for _, text in problems]
    costs = np.full(rows + len(at), _OTHER_TEXT, np.int64)
    costs += sum(
        text_size(value) for name, value in constants.items() if isinstance(value, str) and name in schema.names
    )
    costs[rows:] += np.array([text_size(text) for text in texts], np.int64)
    places = np.concatenate([values["position"].to_numpy(), at])
    for part in shared_out(costs, rows, places):
        count = part.rows.stop - part.rows.start
        columns = [
            pa.repeat(pa.scalar(constants[one.name], one.type), count)
            if one.name in constants
            else values[one.name].slice(part.rows.start, count).cast(one.type)
            for one in schema
        ]
        made = pa.RecordBatch.from_arrays(columns, schema=schema)
        if part.problems.stop > part.problems.start:
            wrong = at[part.problems]
            said = texts[part.problems]
            own = {**constants, "position": wrong, "status": words_of(said), "error": said, "size": 0}
            made = placed(made, problem_rows(schema, len(wrong), own), part.order)
        yield made


def shown_time(values: Any, present: Any) -> pa.Array:
    """Milliseconds as a column. Null for "none" and outside of the years 1 to 9999, as in the records table."""
    shown = present & (values != -1) & (values >= FIRST_MS) & (values <= LAST_MS)
    return pa.array(np.where(shown, values, 0) * 1000, mask=~shown).cast(TIMESTAMP)


def header_columns(table: Any, position: int = 0) -> dict[str, pa.Array]:
    """The columns of BATCHES that a table of HEADER says. ``position`` is that of byte 0 of what was read."""
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
