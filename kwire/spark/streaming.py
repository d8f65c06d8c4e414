"""``spark.readStream.format("kwire")``: the tables of a folder that keeps growing.

Which files a batch has, and what the checkpoint keeps, is in ``kwire.spark.growing``. Here is what Spark asks for: the
driver lists the folder (``latestOffset``, once a second at most) and names the files of a batch (``partitions``), the
workers read them as they read those of ``spark.read``, each alone.

Rules kept here:

- A batch has the same rows whenever it is read, so what Spark promises of its sinks holds: rows are there once after
  any number of restarts from a checkpoint.
- With ``Trigger.AvailableNow`` the files are those that were closed when the query began.
- It needs PySpark 4.2, which says how much is to be taken (``ReadLimit``); ``kwire.spark.source`` imports it late.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from kwire.spark.files import find
from kwire.spark.growing import Memory, Waiting, files_of, first_offset
from kwire.spark.source import FilePartition, FileReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kwire.spark.files import File
    from kwire.spark.source import Options

__all__ = ["StreamReader"]

EVERY: Final = 1.0
"""Seconds between two listings of the folder, at least."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads captures or segments as they are closed, one partition for each file."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.files = FileReader(options, schema)
        self._waiting = Waiting(options.stream)
        self._listed: list[File] = []
        self._closed: list[File] = []
        self._when: float | None = None
        self._now_only = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark calls it so
        """Nothing was taken. Raises ``CaptureError`` for a path that is not there."""
        self._list()
        return first_offset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """What ``latestOffset`` is given, unless the trigger asks for everything."""
        return ReadMaxFiles(self.options.stream.files)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The files of the query are those that are closed now."""
        self._list()
        self._now_only = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The offset after one more batch; ``start`` where there is nothing to take."""
        self._list()
        everything = isinstance(limit, ReadAllAvailable)
        return Memory.of(start).next(self._listed, self._closed, self.options.stream, everything=everything) or start

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The files of a batch."""
        there = {one.name for one in self._listed}
        if not there.issuperset([*(name for name, _ in _pairs(end)), *end.get("changed", ())]):
            # After a restart the batch is read again, before anything was listed.
            self._listed = self._found()
        return [FilePartition(file) for file in files_of(start, end, self._listed)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Batches of the rows of one file."""
        assert isinstance(partition, FilePartition)
        return self.files.read(partition)

    def _list(self) -> None:
        if self._now_only or (self._when is not None and time.monotonic() - self._when < EVERY):
            return
        self._listed = self._found()
        self._closed = self._waiting.closed(self._listed, time.time())
        self._when = time.monotonic()

    def _found(self) -> list[File]:
        return find(self.options.paths, self.options.wanted, self.options.choice, growing=True)


def _pairs(end: Mapping[str, Any]) -> list[Any]:
    return [one for one in end.get("files", ()) if len(one) == 2]
