"""``spark.readStream.format("kwire")``: the tables of a folder that keeps growing.

Which files a batch has, and what the checkpoint keeps, is in ``kwire.spark.discovery``. Here is what Spark asks for:

- The driver lists the folder (``latestOffset``, once a second at most) and names the files of a batch (``partitions``).
- The workers read them as they read those of ``spark.read``, each alone. With ``across`` they read those of each sensor
  one after the other, from where the batch before it was (``kwire.spark.checkpoint``).

Rules kept here:

- A batch has the same rows whenever it is read, so what Spark promises of its sinks holds: rows are there once after
  any number of restarts from a checkpoint.
- With ``Trigger.AvailableNow`` the files are those that were closed when the query began.
- It needs PySpark 4.2, which says how much is to be taken (``ReadLimit``); ``kwire.spark.source`` imports it late.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from kwire.spark.checkpoint import StateFolder, batch_of
from kwire.spark.discovery import Memory, Waiting, files_of, first_offset, names_of
from kwire.spark.reader import FilePartition, FileReader
from kwire.spark.sensors import SensorFiles, by_sensor, sensor_of
from kwire.spark.workers import plainly

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kwire.spark.files import File
    from kwire.spark.options import Options

__all__ = ["StreamReader"]

EVERY: Final = 1.0
"""Seconds between two listings of the folder, at least."""
CARRIES: Final = "carries"
"""Of an offset: whether a batch up to it has written what later ones begin with."""


@dataclass
class BatchPartition(InputPartition):
    """The captures of a sensor in one batch."""

    captures: SensorFiles
    sensor: str
    batch: int


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads captures or segments as they are closed, in partitions as ``FileReader`` has them."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.files: FileReader = FileReader(options, schema)
        stream = options.stream
        self._states = None
        if options.values["across"] and stream.state is not None:
            self._states = StateFolder(stream.state, int(stream.timeout * 1e9), options.stores)
        self._waiting = Waiting(options.stream)
        self._listed: list[File] = []
        self._closed: list[File] = []
        self._when: float | None = None
        self._now_only = False

    @plainly
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark calls it so
        """Nothing was taken. Raises ``CaptureError`` for a path that is not there."""
        self._list()
        return first_offset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """What ``latestOffset`` is given, unless the trigger asks for everything."""
        return ReadMaxFiles(self.options.stream.files)

    @plainly
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The files of the query are those that are closed now."""
        self._list()
        self._now_only = True

    @plainly
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The offset after one more batch; ``start`` where there is nothing to take."""
        self._list()
        everything = isinstance(limit, ReadAllAvailable)
        end = Memory.of(start).next(self._listed, self._closed, self.options.stream, everything=everything)
        if end is None:
            return start
        if self._states is not None:
            end[CARRIES] = bool(end["files"]) or bool(start.get(CARRIES))
        return end

    @plainly
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The files of a batch."""
        there = {one.name for one in self._listed}
        taken, changed = names_of(end)
        if not there.issuperset([*(name for name, _ in taken), *changed]):
            # After a restart the batch is read again, before anything was listed.
            self._listed = self._found()
        files = files_of(start, end, self._listed)
        self.files.check_folders(files)
        self.options.beside()
        if self._states is None:
            return self.files.grouped(files)
        if start.get(CARRIES):
            self._states.check()
        made: list[InputPartition] = [FilePartition((one,)) for one in files if one.trouble is not None]
        for captures in by_sensor([one for one in files if one.trouble is None], self.options.values["sensor"]):
            sensor = sensor_of(captures.files[0].name, self.options.values["sensor"])
            made.append(BatchPartition(captures, sensor, Memory.of(end).batch))
        return made

    @plainly
    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Batches of the rows of some files, or of the captures of a sensor."""
        if not isinstance(partition, BatchPartition):
            yield from self.files.read(partition)
            return
        assert self._states is not None
        yield from batch_of(partition.captures, partition.sensor, partition.batch, self._states, self.files.rows_of)

    @plainly
    def commit(self, end: dict[str, Any]) -> None:
        """States that no batch begins with any more are removed."""
        if self._states is not None:
            self._states.forget(Memory.of(end).batch)

    def _list(self) -> None:
        if self._now_only or (self._when is not None and time.monotonic() - self._when < EVERY):
            return
        self._listed = self._found()
        self._closed = self._waiting.closed(self._listed, time.time())
        self._when = time.monotonic()

    def _found(self) -> list[File]:
        return self.options.files(growing=True)
