"""The reader of the data source: on the driver it lists files, on a worker it yields Arrow batches of their rows.

Rules kept here:

- ``partitions`` runs for every action, so it opens no file and compiles no kernel.
- A file that is damaged, or none that kwire reads, is a last row with ``status`` ``bad_file``, ``error`` that says why,
  and nothing else but the file's name. What was read before it stays. With ``badFiles=fail`` it fails the job.
- What the machine lacks fails the job always (``workers.lack``), as a bug does: neither is bad input, and what could
  not be read must not count as read.
- Batches have exactly the Arrow schema that Spark derives from its own (order, nullability, ``timestamp[us, UTC]``),
  since Spark compares.
- A file in a folder that is no capture, by its name and by its first bytes, has no row. One that was named, or that
  matches a pattern, has: it was asked for.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from kwire.errors import KwireError, MissingExtraError
from kwire.options import OF_SEGMENTS, OF_VALUES
from kwire.spark import partitioned
from kwire.spark.files import FolderOf, in_groups
from kwire.spark.pushed import narrowed
from kwire.spark.sensors import by_sensor, one_by_one
from kwire.spark.workers import LackError, begin_task, of_file, plainly
from kwire.tables.definition import LogTable, Table

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter as Condition
    from pyspark.sql.types import StructField, StructType

    from kwire.capture.parts import Part
    from kwire.capture.tracker import Tracker
    from kwire.spark.files import File, Pairs
    from kwire.spark.options import Options
    from kwire.spark.sensors import SensorFiles

__all__ = ["BAD_FILE", "FilePartition", "FileReader", "PushingReader", "SensorPartition"]

BAD_FILE: Final = "bad_file"
"""``status`` of the row that stands for a file that could not be read, or not to its end."""

LOG: Final = logging.getLogger("kwire.spark")
"""A source has no place for what it says of a whole file. A warning is in the executor's log, and in Spark's
``python_worker_logs()`` where workers log."""

OPENING: Final = 16 << 10
"""Bytes that each file counts more than it has, since it has to be opened. So a task reads 140 files of 12 kB at most,
which takes ten times as long as a task takes to begin."""


def _read(
    stream: Any, table: Table, columns: list[str], part: Part | None, terms: Mapping[str, Any]
) -> Iterator[pa.RecordBatch]:
    if isinstance(table, LogTable):
        yield from table.read(stream, columns=columns, **terms)
        return
    from kwire.tables.reading import read

    for _, batch in read(stream, {table.name: columns}, part=part, **terms):
        yield batch


@dataclass
class FilePartition(InputPartition):
    """A file, or small ones that follow each other."""

    files: tuple[File, ...]


@dataclass
class SensorPartition(InputPartition):
    """The captures of one sensor."""

    captures: SensorFiles


@dataclass(frozen=True, slots=True)
class _Shape:
    """A table, and what its columns become: those that the schema of a query has, and partition columns."""

    table: Table
    columns: list[str]
    """Those of the table that are needed, each once."""
    beside: tuple[StructField, ...]
    """Partition columns."""
    schema: pa.Schema
    """What Spark gets."""

    @classmethod
    def of(cls, table: Table, schema: StructType) -> _Shape:
        """For the columns of ``schema``, whose names may be in any case."""
        known = {one.name for one in (*table.schema, *table.asked)}
        columns = dict.fromkeys(name.lower() for name in schema.names if name.lower() in known)
        beside = tuple(one for one in schema.fields if one.name.lower() not in known)
        return cls(table, [*columns] or [table.file], beside, to_arrow_schema(schema, timezone="UTC"))

    def shown(self, batch: pa.RecordBatch, values: Mapping[str, Any]) -> pa.RecordBatch:
        """Rows of the table with these ``values`` of partition columns."""
        if not values and batch.schema.names == self.schema.names:
            return pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)
        count = batch.num_rows
        made = []
        for one in self.schema:
            name = one.name.lower()
            if name in values:
                made.append(pa.repeat(pa.scalar(values[name], one.type), count))
            else:
                made.append(batch.column(name))
        return pa.RecordBatch.from_arrays(made, schema=self.schema)

    def row(self, values: Mapping[str, Any]) -> pa.RecordBatch:
        """One row with these values of columns, and null in all others."""
        return pa.RecordBatch.from_pylist([{one: values.get(one.lower()) for one in self.schema.names}], self.schema)


class FileReader(DataSourceReader):
    """Reads captures or segments, one partition for each file, or for small ones that follow each other; with
    ``across`` one for the captures of each sensor."""

    def __init__(self, options: Options, schema: StructType, files: list[File] | None = None) -> None:
        self.options = options
        self.schema = schema
        self.conditions: list[Condition] = []
        """Conditions on partition columns, which choose files."""
        self._files = files
        """Those that there are, where they were listed already."""
        self._beside: dict[str, Any] | None = None
        """The key log and the names of topics, read once by a task."""
        self._shape: _Shape | None = None

    def __getstate__(self) -> dict[str, Any]:
        # A worker gets the files of its partition, and makes the rest itself.
        return self.__dict__ | {"_files": None, "_beside": None, "_shape": None}

    @property
    def shape(self) -> _Shape:
        """The table, and what becomes of its columns. Made once."""
        if self._shape is None:
            self._shape = _Shape.of(self.options.definition, self.schema)
        return self._shape

    def grouped(self, files: Iterable[File]) -> list[FilePartition]:
        """``files`` as partitions, in order."""
        return [FilePartition(group) for group in in_groups(files, self.options.values["maxPartitionBytes"], OPENING)]

    @plainly
    def partitions(self) -> list[FilePartition | SensorPartition]:
        """The files. Raises ``CaptureError`` where there are none, ``KwireError`` for a folder whose value is none."""
        files, self._files = self.options.files() if self._files is None else self._files, None
        self.check_folders(files)
        self.options.beside()
        if not self.options.values["across"]:
            return [*self.grouped(filter(self.may_have, files))]
        # Connections go on from files that nobody asks for.
        return [SensorPartition(captures) for captures in by_sensor(files, self.options.values["sensor"])]

    def check_folders(self, files: Iterable[File]) -> None:
        """Raises ``KwireError`` for a folder whose value is none of its column."""
        for pairs in dict.fromkeys(file.pairs for file in files):
            self.values(pairs)

    def values(self, pairs: Pairs) -> dict[str, Any]:
        """What folders say of the partition columns, by their names in small letters."""
        return {one.name.lower(): self.options.folders.value(pairs, one) for one in self.shape.beside}

    def may_have(self, file: File) -> bool:
        """Whether the query may want rows of this file, by what its folders say."""
        return not self.conditions or partitioned.may_hold(self.conditions, self.values(file.pairs))

    @plainly
    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Batches of the rows of some files, or of the captures of a sensor. Where there is no partition, Spark gives
        one of its own."""
        if isinstance(partition, FilePartition):
            for file in partition.files:
                yield from self.rows_of(file)
        elif isinstance(partition, SensorPartition):
            yield from one_by_one(partition.captures, self.rows_of)

    def rows_of(
        self, file: File, part: Part | None = None, ended: Callable[[Tracker], None] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Batches of the rows of one file. ``part``: of which whole it is a part; ``ended`` gets the tracker then."""
        from kwire.capture.compressed import DamagedError

        begin_task()
        options, shape = self.options, self.shape
        table, names = shape.table, shape.columns
        values = self.values(file.pairs)
        with of_file(file.name, options.stores.hidden):
            terms = self._terms(table, file)
        try:
            with of_file(file.name, options.stores.hidden):
                if not options.is_of_log and file.is_foreign():
                    return
                with file.open() as stream:
                    own = terms if ended is None else terms | {"on_end": ended}
                    for batch in _read(stream, table, names, part, own):
                        yield shape.shown(batch, values)
        except (KwireError, DamagedError, EOFError) as error:
            if isinstance(error, LackError | MissingExtraError):
                raise
            said = options.stores.hidden(" ".join(str(error).split()))
            if options.values["badFiles"] == "fail":
                raise KwireError(f"a bad file, which the option 'badFiles' lets fail the query: {said}") from None
            if part is not None and part.left is not None:
                # Rows of the files before it may wait for what it says.
                with contextlib.suppress(KwireError):
                    for batch in _read(io.BytesIO(), table, names, part, terms):
                        yield shape.shown(batch, values)
            yield shape.row({table.file: file.name, "status": BAD_FILE, "error": said, **values})

    def _terms(self, table: Table, file: File) -> dict[str, Any]:
        """How ``file`` is read."""
        one = self.options
        committed = one.values["read_committed"]

        def log(note: str) -> None:
            LOG.warning("%s", one.stores.hidden(f"{file.name}: {note}"))

        if isinstance(table, LogTable):
            metadata = (file.beside("partition.metadata") or b"").decode("ascii", "replace")
            terms = {name: one.values[name] for name in OF_SEGMENTS} | {"name": file.name, "metadata": metadata}
            if table.name == "records":
                terms |= {name: one.values[name] for name in OF_VALUES}
            return terms | {"on_note": log} | ({"beside": FolderOf(file)} if committed else {})
        if self._beside is None:
            self._beside = one.beside()
        # Of a capture without it, nearly every small file would say something.
        return {"name": file.name, **one.traffic, **one.content, **self._beside, "on_note": log if committed else None}


class PushingReader(FileReader):
    """Spark asks a reader that has ``pushFilters`` what it can do of WHERE. It fails where its configuration forbids to
    ask, so this is a class of its own, for those who want it."""

    @plainly
    def pushFilters(self, filters: list[Condition]) -> Iterable[Condition]:  # noqa: N802 - Spark calls it so
        """Reads less by them. Conditions by which files were chosen are done with; ``explain("formatted")`` shows them.
        All others are left to Spark as well."""
        options = self.options
        self.options: Options = dataclasses.replace(options, only=narrowed(filters, options.only, options.definition))
        names = [one.name.lower() for one in self.shape.beside]
        if not names or options.values["across"]:
            return filters
        self.conditions: list[Condition] = [*partitioned.on_columns(filters, names)]
        if self._files is None:
            self._files = options.files()
        values = [self.values(pairs) for pairs in dict.fromkeys(file.pairs for file in self._files)]
        return [one for one in filters if not partitioned.is_decided(one, values)]
