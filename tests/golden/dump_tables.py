"""Every table of every golden capture and segment as Arrow data, so that two versions of kwire can be compared.

    python tests/golden/dump_tables.py OUT [--window N] [--only TEXT]
    python tests/golden/dump_tables.py --compare A B [--renumbered]

``OUT/<file>/<table>.arrow`` is one Arrow IPC file with all rows of a table. Captures have ``frames``, ``messages``,
``records``, ``client_metrics``, ``cloudevents`` and ``hono``; segments ``records``, ``deep`` (records with those of
Kafka's own topics decoded), ``batches`` and ``index_problems``, and where there is such a file ``index`` and
``time_index``. A table without a row has no columns either. What was raised at the end and the notes stand in the
metadata of the schema. ``--window`` is how many bytes of a capture are read at once, ``--only`` chooses files by a text
in their path. Files are those beside this script and are named relative to it, so that the same files are read
whichever version of kwire ``PYTHONPATH`` names; only what all versions have is imported.

``--compare`` prints, for each table that is not the same in two such folders, where it differs first, and then exits
with 1. Schemas, rows, their order, errors and notes must be the same. With ``--renumbered``, frames may have other
numbers, and rows the other order that follows from that: each number is replaced by the place that its frame has when
the table ``frames`` of the capture is sorted by all other columns, and rows are brought into that order (those of one
frame stay as they are) before they are compared.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from kwire import capture, log
from kwire.errors import KwireError, MissingExtraError
from kwire.events import telemetry
from kwire.log import internal

try:
    from kwire.cli import events  # as it was in 0.1.0
except ImportError:
    events = None

HERE = Path(__file__).parent.resolve()
CAPTURES = (".pcap", ".pcapng")
CAPTURE_TABLES = ("frames", "messages", "records")
MEANINGS = ("cloudevents", "hono")

Batches = Iterator[pa.RecordBatch]
Reader = Callable[[list[str]], Batches]
"""Reads one table; what is no row is appended to the list of notes."""


# --- Writing ----------------------------------------------------------------------------------------------------------


def dump(out: Path, window: int | None, only: str, largest: int | None = None) -> tuple[int, int, int]:
    """Writes all tables, or those of files of ``largest`` bytes or fewer; returns how many there are, their rows, and
    how many ended with an error."""
    tables = rows = errors = 0
    with contextlib.chdir(HERE):
        for path in sorted(Path().rglob("*")):
            if only not in path.as_posix() or (largest is not None and path.stat().st_size > largest):
                continue
            if path.suffix in CAPTURES:
                readers = of_capture(path, window)
            elif log.has_segment_name(path.name):
                readers = of_segment(path)
            else:
                continue
            for name, reader in readers.items():
                table, failed = read(reader)
                target = out / path / f"{name}.arrow"
                target.parent.mkdir(parents=True, exist_ok=True)
                with pa.OSFile(str(target), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                    writer.write_table(table)
                tables, rows, errors = tables + 1, rows + table.num_rows, errors + failed
    return tables, rows, errors


def of_capture(path: Path, window: int | None) -> dict[str, Reader]:
    def reader(read: Callable[..., Batches], *args: Any) -> Reader:
        def batches(notes: list[str]) -> Batches:
            with path.open("rb") as source:
                yield from read(source, *args, name=path.as_posix(), window=window, on_note=notes.append)

        return batches

    made = {table: reader(capture.read, table) for table in CAPTURE_TABLES}
    made["client_metrics"] = reader(telemetry.read)
    for name in MEANINGS:
        made[name] = reader(capture.read, name) if events is None else reader(events.reader(name))
    return made


def of_segment(path: Path) -> dict[str, Reader]:
    (segment,) = log.find(path)

    def entries(read: Callable[[log.Segment], Iterable[Any]], *names: str) -> Reader:
        def batches(notes: list[str]) -> Batches:
            rows = [{name: getattr(one, name) for name in names} for one in read(segment)]
            if rows:
                yield pa.RecordBatch.from_pylist(rows)

        return batches

    made: dict[str, Reader] = {
        "records": lambda notes: log.read(segment, secrets=True, on_note=notes.append),
        "deep": lambda notes: map(internal.decoded, log.read(segment, secrets=True, on_note=notes.append)),
        "batches": lambda notes: log.batches(segment, on_note=notes.append),
        "index_problems": entries(log.check_indexes, "file", "entry", "message"),
    }
    if segment.index.exists():
        made["index"] = entries(log.read_index, "offset", "position")
    if segment.time_index.exists():
        made["time_index"] = entries(log.read_time_index, "timestamp", "offset")
    return made


def read(reader: Reader) -> tuple[pa.Table, bool]:
    """The rows up to the end or an error, with error and notes in the metadata; and whether there was an error."""
    notes: list[str] = []
    error = None
    batches: list[pa.RecordBatch] = []
    try:
        batches.extend(reader(notes))
    except MissingExtraError:
        raise
    except (KwireError, OSError, ValueError) as raised:
        error = f"{type(raised).__name__}: {raised}"
    # Without a row there is no schema to be seen from outside.
    table = pa.Table.from_batches(batches) if batches else pa.table({})
    said = {"error": json.dumps(error), "notes": json.dumps(notes)}
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **said}).combine_chunks(), error is not None


# --- Comparing --------------------------------------------------------------------------------------------------------


def compare(one: Path, other: Path, renumbered: bool) -> list[str]:
    """What differs between two folders, a few lines for each table that is not the same."""
    names = [{path.relative_to(folder) for path in folder.rglob("*.arrow")} for folder in (one, other)]
    for folder, found in zip((one, other), names, strict=True):
        if not found:
            raise SystemExit(f"{folder} holds no tables")
    found = [f"{name}: only in {one}" for name in sorted(names[0] - names[1])]
    found += [f"{name}: only in {other}" for name in sorted(names[1] - names[0])]
    for name in sorted(names[0] & names[1]):
        tables = [load(folder / name) for folder in (one, other)]
        said = None
        if renumbered and all("frame" in table.schema.names for table in tables):
            try:
                tables = [
                    in_order(table, places(load((folder / name).with_name("frames.arrow"))))
                    for folder, table in zip((one, other), tables, strict=True)
                ]
            except LookupError as wrong:
                said = str(wrong.args[0])
        said = said or difference(*tables)
        if said is not None:
            found.append(f"{name}: {said}")
    return found


def load(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(io.BytesIO(file.read())).read_all()


def places(frames: pa.Table) -> dict[tuple[int, int], int]:
    """Where a frame, named by its connection and its number, stands when ``frames`` is sorted by all else."""
    keys = [(row["connection"], row["frame"]) for row in rows(frames.select(["connection", "frame"]))]
    if len(set(keys)) != len(keys):
        raise LookupError("two rows of frames have the same number")
    first = ["connection", "direction", "timestamp"]
    names = first + [name for name in frames.schema.names if name not in ("frame", *first)]
    contents = [tuple((value is not None, value) for value in row.values()) for row in rows(frames.select(names))]
    # Frames that are the same in everything else stand as they are numbered.
    order = sorted(range(len(keys)), key=lambda at: (contents[at], keys[at]))
    return {keys[at]: place for place, at in enumerate(order)}


def in_order(table: pa.Table, places: dict[tuple[int, int], int]) -> pa.Table:
    """``table`` with places instead of numbers of frames, and its rows by place; those of one frame stay in order."""
    named = [(row["connection"], row["frame"]) for row in rows(table.select(["connection", "frame"]))]
    for connection, frame in named:
        if (connection, frame) not in places:
            raise LookupError(f"frame {frame} of connection {connection} is not in frames")
    found = [places[one] for one in named]
    order = sorted(range(len(found)), key=found.__getitem__)
    at = table.schema.get_field_index("frame")
    return table.set_column(at, table.schema.field(at), pa.array(found, table.schema.field(at).type)).take(order)


def difference(one: pa.Table, other: pa.Table) -> str | None:
    """Where two tables differ first; None where they do not."""
    if not one.schema.equals(other.schema):
        return f"the schemas differ\n  {fields(one.schema)}\n  {fields(other.schema)}"
    if one.schema.metadata != other.schema.metadata:
        return f"errors or notes differ\n  {one.schema.metadata}\n  {other.schema.metadata}"
    if one.equals(other):
        return None
    for at, (left, right) in enumerate(zip(rows(one), rows(other), strict=False)):
        # As text, in which a number that is none is equal to itself.
        wrong = [name for name in left if repr(left[name]) != repr(right[name])]
        if wrong:
            return f"row {at} differs\n  {cells(left, wrong)}\n  {cells(right, wrong)}"
    if one.num_rows != other.num_rows:
        return f"{one.num_rows} rows and {other.num_rows} rows, the same up to there"
    return None


def fields(schema: pa.Schema) -> str:
    return ", ".join(str(field) for field in schema)


def cells(row: dict[str, Any], wrong: list[str]) -> str:
    """The cells that differ, behind those that say which row it is."""
    names = [name for name in ("connection", "frame", "partition", "offset") if name in row and name not in wrong]
    return ", ".join(f"{name}={row[name]!r:.200}" for name in (*names, *wrong))


def rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows with times as integers: a record may be of a year that Python's own type lacks."""
    columns = [column.cast(plain(column.type)).to_pylist() for column in table.columns]
    for values in zip(*columns, strict=True):
        yield dict(zip(table.schema.names, values, strict=True))


def plain(kind: pa.DataType) -> pa.DataType:
    """``kind`` with integers for times."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(plain(field.type)) for field in kind])
    return kind


def main(args: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Writes the tables of all golden files, or compares two such folders.")
    parser.add_argument("out", type=Path, nargs="?", metavar="OUT", help="folder for the tables")
    parser.add_argument("--window", type=int, metavar="N", help="bytes of a capture that are read at once")
    parser.add_argument("--only", default="", metavar="TEXT", help="files with this in their path")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("A", "B"), help="compare two folders of tables")
    parser.add_argument("--renumbered", action="store_true", help="frames may have other numbers")
    chosen = parser.parse_args(args)
    if (chosen.out is None) == (chosen.compare is None):
        parser.error("either a folder to write or two folders to compare")
    if chosen.compare:
        found = compare(*chosen.compare, chosen.renumbered)
        print("\n".join([*found, f"{len(found)} tables differ"] if found else ["the same"]))
        return 1 if found else 0
    tables, count, errors = dump(chosen.out.resolve(), chosen.window, chosen.only)
    print(f"{tables} tables, {count} rows, {errors} ended with an error")
    return 0 if tables else 1


if __name__ == "__main__":
    sys.exit(main())
