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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kwire.errors import KwireError, MissingExtraError
from kwire.options import OF_SEGMENTS
from kwire.spark.files import FolderOf, find, in_groups
from kwire.spark.pushed import narrowed
from kwire.spark.sensors import one_by_one, wholes
from kwire.spark.workers import LackError, begin_task, of_file
from kwire.tables.definition import LogTable, Table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter as Condition
    from pyspark.sql.types import StructType

    from kwire.capture.parts import Part
    from kwire.capture.tracker import Tracker
    from kwire.spark.files import File
    from kwire.spark.options import Options
    from kwire.spark.sensors import Whole

__all__ = ["BAD_FILE", "FilePartition", "FileReader", "PushingReader", "SensorPartition"]

BAD_FILE: Final = "bad_file"
"""``status`` of the row that stands for a file that could not be read, or not to its end."""

OPENING: Final = 64 << 10
"""Bytes that each file counts more than it has, since it has to be opened."""


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

    whole: Whole


class FileReader(DataSourceReader):
    """Reads captures or segments, one partition for each file, or for small ones that follow each other; with
    ``across`` one for the captures of each sensor."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self._beside: dict[str, Any] | None = None
        """The key log and the names of topics, read once by a task."""

    def grouped(self, files: Iterable[File]) -> list[FilePartition]:
        """``files`` as partitions, in order."""
        return [FilePartition(group) for group in in_groups(files, self.options.values["maxPartitionBytes"], OPENING)]

    def partitions(self) -> list[FilePartition | SensorPartition]:
        """The files. Raises ``CaptureError`` where there are none."""
        files = find(self.options.paths, self.options.wanted, self.options.choice, stores=self.options.stores)
        self.options.beside()
        if not self.options.values["across"]:
            return [*self.grouped(files)]
        return [SensorPartition(whole) for whole in wholes(files, self.options.values["sensor"])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Batches of the rows of some files, or of the captures of a sensor. Where there is no partition, Spark gives
        one of its own."""
        if isinstance(partition, FilePartition):
            for file in partition.files:
                yield from self.rows_of(file)
        elif isinstance(partition, SensorPartition):
            yield from one_by_one(partition.whole, self.rows_of)

    def rows_of(
        self, file: File, part: Part | None = None, ended: Callable[[Tracker], None] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Batches of the rows of one file. ``part``: of which whole it is a part; ``ended`` gets the tracker then."""
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        from kwire.capture.compressed import DamagedError

        begin_task()
        options, table = self.options, self.options.definition
        schema = to_arrow_schema(self.schema, timezone="UTC")
        names = schema.names

        def shown(batch: pa.RecordBatch) -> pa.RecordBatch:
            columns = batch.columns if batch.schema.names == names else [batch.column(name) for name in names]
            return pa.RecordBatch.from_arrays(columns, schema=schema)

        with of_file(file.name, options.stores.hidden):
            terms = self._terms(table, file)
        try:
            with of_file(file.name, options.stores.hidden):
                if not options.is_of_log and file.is_foreign():
                    return
                with file.open() as stream:
                    own = terms if ended is None else terms | {"on_end": ended}
                    for batch in _read(stream, table, names, part, own):
                        yield shown(batch)
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
                        yield shown(batch)
            row = {table.file: file.name, "status": BAD_FILE, "error": said}
            yield pa.RecordBatch.from_pylist([{name: row.get(name) for name in names}], schema=schema)

    def _terms(self, table: Table, file: File) -> dict[str, Any]:
        """How ``file`` is read."""
        one = self.options
        if isinstance(table, LogTable):
            metadata = (file.beside("partition.metadata") or b"").decode("ascii", "replace")
            terms = {name: one.values[name] for name in OF_SEGMENTS} | {"name": file.name, "metadata": metadata}
            return terms | ({"beside": FolderOf(file)} if one.values["read_committed"] else {})
        if self._beside is None:
            self._beside = one.beside()
        return {"name": file.name, **one.traffic, **one.content, **self._beside}


class PushingReader(FileReader):
    """Spark asks a reader that has ``pushFilters`` what it can do of WHERE. It fails where its configuration forbids to
    ask, so this is a class of its own, for those who want it."""

    def pushFilters(self, filters: list[Condition]) -> Iterable[Condition]:  # noqa: N802 - Spark calls it so
        """Reads less by them. All are left to Spark as well."""
        options = self.options
        self.options: Options = dataclasses.replace(options, only=narrowed(filters, options.only, options.definition))
        return filters
