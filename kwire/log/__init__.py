"""Broker log segments: what stands in a broker's data directory, as tables.

- ``find(path)`` lists the segments of a file, a partition's directory or a whole data directory.
- ``read(segment)`` gives the records of one as Arrow batches with the schema ``RECORDS``.
- ``batches(segment)`` gives one row per batch (``BATCHES``), as Kafka's dump-log tool prints them.
- ``read_index(segment)`` and ``read_time_index(segment)`` give the entries of ``.index`` and ``.timeindex``.
- ``check_indexes(segment)`` compares both with the segment.
- ``describe(path)`` says what else a broker keeps there (``kwire.log.folders``).
- ``overlaps(path)`` says which segments have the same offsets.
- ``kwire.log.internal`` decodes the records of Kafka's own topics.

Needs ``kwire[capture]``. Importing this package alone does not import the array libraries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kwire.log.files import Segment, find, has_segment_name, is_segment

if TYPE_CHECKING:
    from kwire.log.folders import (
        CHECKPOINTS,
        Epoch,
        Folder,
        Overlap,
        Partition,
        PartitionMetadata,
        Producer,
        describe,
        overlaps,
        read_epochs,
        read_offsets,
        read_partition_metadata,
        read_producers,
        read_properties,
    )
    from kwire.log.indexes import (
        IndexProblem,
        OffsetEntry,
        TimeEntry,
        check_indexes,
        read_index,
        read_time_index,
    )
    from kwire.log.reading import BATCHES, RECORDS, batches, read
    from kwire.log.transaction_index import Aborted, read_aborted

__all__ = [
    "BATCHES",
    "CHECKPOINTS",
    "RECORDS",
    "Aborted",
    "Epoch",
    "Folder",
    "IndexProblem",
    "OffsetEntry",
    "Overlap",
    "Partition",
    "PartitionMetadata",
    "Producer",
    "Segment",
    "TimeEntry",
    "batches",
    "check_indexes",
    "describe",
    "find",
    "has_segment_name",
    "is_segment",
    "overlaps",
    "read",
    "read_aborted",
    "read_epochs",
    "read_index",
    "read_offsets",
    "read_partition_metadata",
    "read_producers",
    "read_properties",
    "read_time_index",
]

_MODULES = {
    "Aborted": "transaction_index",
    "Epoch": "folders",
    "Folder": "folders",
    "Overlap": "folders",
    "Partition": "folders",
    "PartitionMetadata": "folders",
    "Producer": "folders",
    "describe": "folders",
    "overlaps": "folders",
    "read_aborted": "transaction_index",
    "read_epochs": "folders",
    "read_offsets": "folders",
    "read_partition_metadata": "folders",
    "read_producers": "folders",
    "read_properties": "folders",
    "BATCHES": "reading",
    "CHECKPOINTS": "folders",
    "RECORDS": "reading",
    "IndexProblem": "indexes",
    "OffsetEntry": "indexes",
    "TimeEntry": "indexes",
    "batches": "reading",
    "check_indexes": "indexes",
    "read": "reading",
    "read_index": "indexes",
    "read_time_index": "indexes",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        import importlib

        return getattr(importlib.import_module(f"kwire.log.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
