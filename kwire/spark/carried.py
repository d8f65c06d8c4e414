"""What a stream carries from batch to batch with ``option("across", "true")``: the connections that are still open.

A Python data source has no state store, and an offset is no place for megabytes of unfinished frames. So the state of
each sensor stands in a folder of the user's, ``stateLocation``, a file for each batch that the sensor had captures in.
The task that reads a sensor's captures of a batch begins with the newest file of an earlier batch, and writes one.

Rules kept here:

- What a batch gives and the state behind it depend on the state before it and its captures alone. A batch that is read
  again begins with the same file, and writes the same again in one step: rows are there once.
- A connection without a packet for ``stateTimeout``, by the clock of the captures, is given up at the end of a batch:
  what is unfinished of it becomes rows, as at the end of a capture.
- A capture that begins before one that was read in an earlier batch came too late to be joined. It is decoded alone.
- Of committed batches the last ``KEPT`` files of a sensor stay.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from kwire.capture.across import still_open
from kwire.capture.parts import Part
from kwire.errors import KwireError
from kwire.naming import public
from kwire.spark.across import Whole, begin_of, packed, unpacked
from kwire.spark.files import filesystem_of, opened, put
from kwire.spark.stores import NONE, Stores
from kwire.tables.subscribed import Judge

if TYPE_CHECKING:
    from kwire.capture.tracker import Tracker
    from kwire.spark.files import File

__all__ = ["Carried", "batch_of"]

KEPT: Final = 10
"""States of a sensor that are kept: as many batches can be read again."""
REMEMBERED: Final = {"client_metrics": Judge}
"""What has the memory of a table, by its name: has ``save`` and ``restore``."""
_SUFFIX: Final = ".state"
_NONE: Final = -(1 << 63)

Decode = Callable[["File", Part | None, Callable[["Tracker"], None] | None], Iterator[pa.RecordBatch]]


@dataclass(slots=True)
class _State:
    """What is known of a sensor behind a batch."""

    connections: pa.Table | None = None
    common: Mapping[str, Any] = field(default_factory=dict)
    topics: dict[bytes, str] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    """What tables remember."""
    place: int = 0
    """The place of the next capture."""
    begun: int = _NONE
    """When the latest capture began, in nanoseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Carried:
    """The folder with the states. ``idle``: nanoseconds after which a connection is given up."""

    location: str = field(repr=False)
    idle: int
    stores: Stores = NONE

    def folder(self, sensor: str) -> tuple[Any, str]:
        """The file system, and the folder of a sensor's states in it."""
        filesystem, root, _ = filesystem_of(self.location, self.stores)
        return filesystem, f"{root.rstrip('/')}/sensor={quote(sensor, safe='')}"

    def check(self) -> None:
        """Raises ``KwireError`` where there is no state at all, although batches have written some."""
        filesystem, root, _ = filesystem_of(self.location, self.stores)
        for info in filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True)):
            if info.type == fs.FileType.Directory and _batches(filesystem, info.path):
                return
        raise KwireError(
            f"{public(self.location)} has no state of this stream any more: bring it back, or begin with new folders "
            "for both"
        )

    def load(self, sensor: str, batch: int) -> _State:
        """The state before a batch. Raises ``KwireError`` for a file that is none."""
        filesystem, folder = self.folder(sensor)
        before = [number for number in _batches(filesystem, folder) if number < batch]
        if not before:
            return _State()
        path = _path(folder, max(before))
        with opened(filesystem, path) as stream:
            head, _, rest = bytes(stream.read()).partition(b"\n")
        try:
            said = json.loads(head)
            topics = {bytes.fromhex(id_): name for id_, name in said["topics"].items()}
            connections = unpacked(rest) if rest else None
            memory: dict[str, Any] = {}
            for name, state in said.get("memory", {}).items():
                memory[name] = REMEMBERED[name]()
                memory[name].restore(state)
            return _State(connections, said["common"], topics, memory, int(said["place"]), int(said["begun"]))
        except (ValueError, KeyError, TypeError, AttributeError, pa.ArrowException):
            raise KwireError(f"{path} is no state of a stream: begin it anew, with new folders for both") from None

    def save(self, sensor: str, batch: int, state: _State) -> None:
        """Writes the state behind a batch, in one step."""
        filesystem, folder = self.folder(sensor)
        root, _, name = folder.rpartition("/")
        filesystem.create_dir(root, recursive=True)
        said = {
            "common": state.common,
            "topics": {id_.hex(): name for id_, name in state.topics.items()},
            "memory": {name: one.save() for name, one in state.memory.items() if name in REMEMBERED},
            "place": state.place,
            "begun": state.begun,
        }
        half = f"{root}/.{uuid.uuid4().hex}"
        with filesystem.open_output_stream(half, compression=None) as stream:
            stream.write(json.dumps(said).encode() + b"\n")
            stream.write(b"" if state.connections is None else packed(state.connections))
        put(filesystem, half, root, _path(name, batch), set())

    def forget(self, batch: int) -> None:
        """Removes states that no batch begins with any more; ``batch`` and those before it are committed."""
        filesystem, root, _ = filesystem_of(self.location, self.stores)
        for info in filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True)):
            if info.type == fs.FileType.Directory and info.base_name.startswith("sensor="):
                old = sorted(number for number in _batches(filesystem, info.path) if number <= batch)
                for number in old[:-KEPT]:
                    filesystem.delete_file(_path(info.path, number))


def _path(folder: str, batch: int) -> str:
    return f"{folder}/{batch:012d}{_SUFFIX}"


def _batches(filesystem: Any, folder: str) -> list[int]:
    names = [info.base_name for info in filesystem.get_file_info(fs.FileSelector(folder, allow_not_found=True))]
    found = [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]
    return [int(name) for name in found if name.isdecimal()]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Last(Part):
    """The last capture of a batch: connections that were idle for too long do not go on."""

    idle: int
    kept: list[tuple[pa.Table, dict[str, Any]]]
    """Becomes what is known behind it."""

    def going_on(self, tracker: Tracker) -> Iterator[int]:
        common = tracker.common()
        # Before anything is dealt with as if the capture ended here.
        state = still_open(tracker, since=common["now"] - self.idle)
        self.kept.append((state, common))
        yield from state.column("connection").combine_chunks().field("number").to_pylist()


def batch_of(whole: Whole, sensor: str, batch: int, carried: Carried, decode: Decode) -> Iterator[pa.RecordBatch]:
    """The rows of the captures of a sensor in a batch, from where the batch before it was. Writes the state behind it.

    ``decode(file, part, ended)`` gives those of one file and calls ``ended`` with the tracker that has read it."""
    state = carried.load(sensor, batch)
    began = state.begun
    begins = [begin_of(file)[0] for file in whole.files]
    # What is no capture, or cannot be read, begins at no time; it says what is wrong, and nothing goes on in it.
    alone = [begin < began for begin in begins]
    last = max((k for k, one in enumerate(alone) if not one), default=-1)
    kept: list[tuple[pa.Table, dict[str, Any]]] = []

    def ended(tracker: Tracker) -> None:
        if not kept:
            state.connections, state.common = still_open(tracker), tracker.common()

    for k, (file, begin) in enumerate(zip(whole.files, begins, strict=True)):
        place, state.place = state.place, state.place + 1
        if alone[k]:
            yield from decode(file, Part(place=place, topics=state.topics), None)
            continue
        known: dict[str, Any] = {
            "place": place,
            "state": state.connections,
            "common": state.common,
            "topics": state.topics,
            "memory": state.memory,
        }
        if k == last:
            yield from decode(file, _Last(**known, idle=carried.idle, kept=kept), ended)
        else:
            yield from decode(file, Part(**known, left=None), ended)
        state.begun = max(state.begun, begin)
    if kept:
        state.connections, state.common = kept[0]
    carried.save(sensor, batch, state)
