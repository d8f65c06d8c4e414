"""What a stream carries from batch to batch with ``option("across", "true")``: the connections that are still open.

A Python data source has no state store, and an offset is no place for megabytes of unfinished frames. So the state of
each sensor stands in a folder of the user, ``stateLocation``. It has a file for each batch in which the sensor had
captures. The task that reads a sensor's captures of a batch begins with the newest file of an earlier batch, and writes
one.

Rules kept here:

- The rows of a batch and the state after it depend only on the state before it and its captures. A batch that is read
  again begins with the same file, and writes the same again in one step. So rows are there once.
- A connection without a packet for ``stateTimeout``, by the clock of the captures, is given up at the end of a batch.
  Its unfinished bytes become rows, as at the end of a capture.
- A capture that begins before one that was read in an earlier batch came too late to be joined. It is decoded alone.
- Of committed batches the last ``KEPT`` files of a sensor stay.
- A file is checked as a whole before anything of it is used. A file that is no state is a ``KwireError`` that names it.
  It never becomes a row of a capture that continues from it.
"""

from __future__ import annotations

import json
import re
import struct
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from kwire import stored, tables
from kwire.capture.across import still_open
from kwire.capture.parts import Part
from kwire.capture.state import STATE
from kwire.errors import CaptureError, KwireError, MissingExtraError
from kwire.history.fold import Story
from kwire.naming import public
from kwire.spark.arrow import packed
from kwire.spark.files import filesystem_of, opened, put
from kwire.spark.sensors import Decode, SensorFiles, begin_of
from kwire.spark.stores import NONE, Stores
from kwire.spark.workers import LackError
from kwire.tables.subscribed import Judge

if TYPE_CHECKING:
    from kwire.capture.tracker import Tracker
    from kwire.tables.definition import Remembered

__all__ = ["StateFolder", "batch_of"]

KEPT: Final = 10
"""States of a sensor that are kept: as many batches can be read again."""
MOST_STATE: Final = 1 << 30
"""Bytes of a state, as it is stored and as it is in memory."""
MOST_HEAD: Final = 128 << 20
"""Bytes of what a state says besides connections."""
GROWTH: Final = 1024
"""How many times its stored size the table of connections may have, besides ``MOST_SMALL``. Idle connections are much
alike: those of Kafka have up to 150 times."""
MOST_SMALL: Final = 4 << 20
_MARGIN: Final = 1 << 20
"""Bytes that a table may have as a stream of messages, more than its columns have."""
_PIECE: Final = 1 << 20
_LAST_PLACE: Final = (1 << 29) - 1
_SUFFIX: Final = ".state"
_NUMBER: Final = re.compile(r"\d{12}", re.ASCII)
_NONE: Final = -(1 << 63)


@dataclass(slots=True)
class _State:
    """What is known of a sensor after a batch."""

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
class StateFolder:
    """The folder with the states. ``idle``: nanoseconds after which a connection is given up."""

    location: str = field(repr=False)
    idle: int
    stores: Stores = NONE

    def folder(self, sensor: str) -> tuple[Any, str]:
        """The file system, and the folder of a sensor's states in it."""
        filesystem, root, _ = filesystem_of(self.location, self.stores)
        return filesystem, f"{root.rstrip('/')}/sensor={quote(sensor, safe='')}"

    def check(self) -> None:
        """Raises ``KwireError`` if there is no state at all, although batches have written some."""
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
        if (filesystem.get_file_info(path).size or 0) > MOST_STATE:
            raise _no_state(path, f"a file of more than {MOST_STATE >> 20} MiB")
        with opened(filesystem, path) as stream:
            data = bytes(stream.read())
        try:
            return _read(data)
        except (LackError, MissingExtraError):
            raise
        except (*stored.UNFIT, KwireError, pa.ArrowException, struct.error) as error:
            raise _no_state(path, "" if not isinstance(error, CaptureError) else str(error)) from None

    def save(self, sensor: str, batch: int, state: _State) -> None:
        """Writes the state after a batch, in one step."""
        filesystem, folder = self.folder(sensor)
        root, _, name = folder.rpartition("/")
        filesystem.create_dir(root, recursive=True)
        said = {
            "common": state.common,
            "topics": {id_.hex(): name for id_, name in state.topics.items()},
            "memory": {name: one.save() for name, one in state.memory.items() if _remembered(name) is not None},
            "place": state.place,
            "begun": state.begun,
        }
        half = f"{root}/.{uuid.uuid4().hex}"
        head, rest, size = json.dumps(said).encode(), b"", 0
        if state.connections is not None:
            rest, size = packed(state.connections), state.connections.nbytes
        if len(head) > MOST_HEAD or len(rest) > MOST_STATE - MOST_HEAD or size > _most(len(rest)) - _MARGIN:
            raise KwireError(
                "the connections that are open at the end of this batch are too many for a state: the option "
                "'stateTimeout' gives them up sooner"
            )
        with filesystem.open_output_stream(half, compression=None) as stream:
            stream.write(head + b"\n")
            stream.write(rest)
        put(filesystem, half, root, _path(name, batch), set())

    def forget(self, batch: int) -> None:
        """Removes states that no batch begins with any more. ``batch`` and those before it are committed."""
        filesystem, root, _ = filesystem_of(self.location, self.stores)
        for info in filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True)):
            if info.type == fs.FileType.Directory and info.base_name.startswith("sensor="):
                old = sorted(number for number in _batches(filesystem, info.path) if number <= batch)
                for number in old[:-KEPT]:
                    filesystem.delete_file(_path(info.path, number))


def _read(data: bytes) -> _State:
    """The state that a file holds. Raises ``KwireError``, one of ``stored.UNFIT``, ``struct.error`` or
    ``pyarrow.ArrowException`` for what is none."""
    end = data.find(b"\n", 0, MOST_HEAD + 1)
    if end < 0:
        raise CaptureError("not the state of a stream")
    said = stored.parsed(data[:end])
    topics = {bytes.fromhex(id_): stored.text(name) for id_, name in said["topics"].items()}
    common, memory = said["common"], dict[str, Any]()
    if not isinstance(common, dict) or any(len(id_) != _ID for id_ in topics):
        raise CaptureError("not the state of a stream")
    for name, one in said.get("memory", {}).items():
        kept = _remembered(name)
        if kept is None:
            raise CaptureError("not the state of a stream")
        kept.restore(one)
        memory[name] = kept
    connections = _connections(memoryview(data)[end + 1 :]) if len(data) > end + 1 else None
    place, begun = stored.number(said["place"], 0, _LAST_PLACE), stored.number(said["begun"], _NONE, (1 << 63) - 1)
    # Find here what cannot be restored. If the next capture found it, it would be reported as a bad file.
    Part(place=place, state=connections, common=common).tracker()
    return _State(connections, common, topics, memory, place, begun)


def _remembered(name: str) -> Remembered | None:
    """The memory of a table that goes on from batch to batch, empty. None if the table has no such."""
    if name == "client_metrics":
        return Judge()
    if name not in tables.names():
        return None
    table = tables.table(name)
    if table.remembers is not None:
        return table.remembers()
    return None if table.history is None else Story(table.history)


def _most(size: int) -> int:
    """The most bytes that ``size`` bytes of a stored table may have when they are decompressed."""
    return min(MOST_STATE, MOST_SMALL + GROWTH * size)


def _connections(data: memoryview) -> pa.Table:
    """The table that ``packed`` made bytes of, without room for what it does not have."""
    most, parts, size = _most(len(data)), list[bytes](), 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            while piece := stream.read(_PIECE):
                size += len(piece)
                if size > most:
                    raise CaptureError(f"not the state of a stream: more than {most >> 20} MiB, decompressed")
                parts.append(piece)
    except OSError:
        raise CaptureError("not the state of a stream: what is compressed is damaged") from None
    messages = pa.ipc.MessageReader.open_stream(pa.py_buffer(b"".join(parts)))
    schema = pa.ipc.read_schema(messages.read_next_message())
    if not schema.equals(STATE):
        raise CaptureError("not the state of a stream: connections of another form")
    batches = []
    for message in messages:
        if message.type != "record batch" or _is_compressed(message.metadata.to_pybytes()):
            raise CaptureError("not the state of a stream: connections of another form")
        batches.append(pa.ipc.read_record_batch(message, schema))
    return pa.Table.from_batches(batches, schema)


def _is_compressed(metadata: bytes) -> bool:
    """Whether the buffers of a record batch are compressed: Arrow makes room for what they say that they have.

    ``metadata``: a flatbuffer of the type ``Message`` of Arrow's ``Message.fbs``."""

    def field(table: int, number: int) -> int:
        names = table - struct.unpack_from("<i", metadata, table)[0]
        (size,) = struct.unpack_from("<H", metadata, names)
        place = 4 + 2 * number
        at = struct.unpack_from("<H", metadata, names + place)[0] if place < size else 0
        return table + at if at else 0

    header = field(struct.unpack_from("<I", metadata, 0)[0], _HEADER)
    batch = header + struct.unpack_from("<I", metadata, header)[0]
    return field(batch, _COMPRESSION) != 0


_ID: Final = 16
_HEADER: Final = 2
"""Of ``Message``: what it is about."""
_COMPRESSION: Final = 3
"""Of ``RecordBatch``."""


def _no_state(path: str, why: str) -> KwireError:
    said = f" ({why})" if why else ""
    return KwireError(f"{public(path)} is no state of a stream{said}: begin it anew, with new folders for both")


def _path(folder: str, batch: int) -> str:
    return f"{folder}/{batch:012d}{_SUFFIX}"


def _batches(filesystem: Any, folder: str) -> list[int]:
    names = [info.base_name for info in filesystem.get_file_info(fs.FileSelector(folder, allow_not_found=True))]
    found = [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]
    # Others are named otherwise, and would not be found again by their number.
    return [int(name) for name in found if _NUMBER.fullmatch(name)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Last(Part):
    """The last capture of a batch: connections that were idle for too long end."""

    idle: int
    kept: list[tuple[pa.Table, dict[str, Any]]]
    """Becomes what is known after it."""

    @property
    def carried(self) -> bool:
        """The next batch goes on with what tables remember: what is open then has no row yet."""
        return True

    def going_on(self, tracker: Tracker) -> Iterator[int]:
        common = tracker.common()
        # Before anything is dealt with as if the capture ended here.
        state = still_open(tracker, since=common["now"] - self.idle)
        self.kept.append((state, common))
        yield from state.column("connection").combine_chunks().field("number").to_pylist()


def batch_of(
    captures: SensorFiles, sensor: str, batch: int, states: StateFolder, decode: Decode
) -> Iterator[pa.RecordBatch]:
    """The rows of the captures of a sensor in a batch. They continue the batch before it. Writes the state after it.

    ``decode(file, part, ended)`` gives those of one file and calls ``ended`` with the tracker that has read it."""
    state = states.load(sensor, batch)
    began = state.begun
    begins = [begin_of(file)[0] for file in captures.files]
    # A file that is no capture, or cannot be read, has no first time. It says what is wrong. No capture continues in
    # it.
    alone = [begin < began for begin in begins]
    last = max((k for k, one in enumerate(alone) if not one), default=-1)
    kept: list[tuple[pa.Table, dict[str, Any]]] = []

    def ended(tracker: Tracker) -> None:
        if not kept:
            state.connections, state.common = still_open(tracker), tracker.common()

    for k, (file, begin) in enumerate(zip(captures.files, begins, strict=True)):
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
            yield from decode(file, _Last(**known, idle=states.idle, kept=kept), ended)
        else:
            yield from decode(file, Part(**known, left=None), ended)
        state.begun = max(state.begun, begin)
    if kept:
        state.connections, state.common = kept[0]
    states.save(sensor, batch, state)
