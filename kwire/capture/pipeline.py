"""Capture bytes to frames, window by window: what calls the kernels, and the state between their calls.

Strategy: everything is arrays. A window is one buffer::

    kept from before | bytes of the file that were left over | bytes read now
    segment bytes    | the beginning of a packet             | 4-16 MB

``packets`` finds the segments in it, ``streams.place`` joins them, ``framing.frames_and_pairs`` cuts and pairs
frames, and ``streams.keep`` collects what the next window needs. Between windows live the connection and stream
tables, the lists of requests that wait for a response, and the names (client ids).

Rules kept here:

- The source is read, never sought; nothing is written.
- After the last byte, or at damage that cannot be passed, everything that is left is dealt with as if the capture ended
  there; only then a ``CaptureError`` is raised. Good data before bad is not lost.
- Memory is bounded by the window and by what is unfinished (``MOST_HELD``); beyond that it grows by some 300 bytes
  for each connection, and with the number of different client ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from kwire import schema
from kwire.capture import packets, streams
from kwire.capture.formats import Container
from kwire.codec.locate import ProgramSet, compile_program
from kwire.errors import CaptureError
from kwire.protocol import framing
from kwire.protocol.headers import request_header_version
from kwire.protocol.state import (
    CONN_COLUMNS,
    F_TIME,
    SEG_STREAM,
    SEGMENT_COLUMNS,
    STREAM_COLUMNS,
    WAITING_COLUMNS,
)
from kwire.schema.model import layout

__all__ = ["WINDOW", "Pipeline", "Source", "Window"]

WINDOW: Final = 8 << 20
"""Bytes read at once. Less costs calls, more costs cache misses and memory."""

COMPRESSED_PIECE: Final = 64 << 10
"""Bytes read at once from a source that decompresses: at most so many are lost where it is damaged."""

MOST_HELD: Final = 256 << 20
"""Bytes of unfinished frames and of segments behind holes, of all streams together, up to which none is given up."""
LEAST_RATION: Final = 64 << 10
"""Bytes that each stream may hold all the same."""

MOST_API_KEYS: Final = 128

Array = Any


class Source(Protocol):
    """A binary file object, or anything with its ``read``."""

    def read(self, size: int, /) -> bytes | None:
        """Up to ``size`` bytes; none at the end."""


@dataclass(slots=True)
class Window:
    """The frames that became complete in one window.

    ``frames`` has the columns F_* of ``kwire.protocol.state`` in order of time, ``data`` the bytes that F_OFF
    points into. ``first`` is the number of the first frame within the capture.
    """

    frames: Array
    data: Array
    first: int


@cache
def api_facts() -> Array:
    """Latest version, first flexible version and least size of a response by API key, for the framing kernel."""
    facts = np.full((MOST_API_KEYS, framing.FACT_COLUMNS), -1, np.int64)
    for key in schema.api_keys():
        message = schema.request(key)
        if message is not None and 0 <= key < MOST_API_KEYS:
            facts[key, framing.FACT_LATEST] = message.versions.high
            facts[key, framing.FACT_FLEXIBLE] = message.flexible.low if message.flexible else 0x7FFF
        response = schema.response(key)
        if response is not None and 0 <= key < MOST_API_KEYS:
            # 4 for the correlation id, 1 for the tagged section of a flexible header (that of ApiVersions has none).
            facts[key, framing.FACT_LEAST_RESPONSE] = 4 + min(
                layout(response, version).min_size + (version in response.flexible and key != framing.API_VERSIONS)
                for version in response.versions
            )
    return facts


@cache
def acks_programs() -> tuple[Array, Array]:
    """The programs that read acks of a Produce request: code, and the first instruction by version."""
    produce = schema.request(framing.PRODUCE)
    header = schema.message("RequestHeader")
    assert produce is not None
    programs = {
        (framing.PRODUCE, version): compile_program(
            [layout(header, request_header_version(framing.PRODUCE, version)), layout(produce, version)],
            ["acks"],
            stop_after="acks",
        )
        for version in produce.versions
    }
    made = ProgramSet(programs, 1)
    return made.code, made.starts(framing.PRODUCE, produce.versions.high + 1)


class Pipeline:
    """One capture on its way from bytes to frames.

    ``source`` is read window by window of ``window`` bytes; ``ports`` are the broker ports to look at (none:
    connections are recognised by content); ``progress`` is called with the number of bytes read so far.
    """

    def __init__(
        self,
        source: Source,
        *,
        ports: Iterable[int] | None = None,
        window: int = WINDOW,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.counts = np.zeros(len(packets.COUNT_NAMES), np.int64)
        self.conns = np.zeros((64, CONN_COLUMNS), np.int64)
        self.streams = np.zeros((128, STREAM_COLUMNS), np.int64)
        self.n_conns = 0
        self.pool = np.zeros(1024, np.uint8)
        self.names = np.zeros((64, 2), np.int64)
        self.names_used = np.zeros(2, np.int64)
        self._name_table = np.full(256, -1, np.int64)
        self._table = np.full(1024, -1, np.int64)
        self._waiting = np.zeros((64, WAITING_COLUMNS), np.int64)
        self._free = np.array([-1, 0], np.int64)
        self._source = source
        self._ports = np.array(sorted(set(ports or ())), np.int64)
        self._window = max(window, 1)
        self._progress = progress
        self._frames = 0
        self._bytes_read = 0
        self._broken: str | None = None
        # A decompressor gives nothing of a read in which it fails. Other sources are read a window at a time.
        self._piece = COMPRESSED_PIECE if isinstance(source, pa.CompressedInputStream) else WINDOW
        self._now = 0
        self._container = Container(self.counts)

    def windows(self) -> Iterator[Window]:
        """The frames of the capture. Raises ``CaptureError``, after the last window where there was any good data."""
        head = self._read(Container.HEADER)
        taken = self._container.begin(head)
        rest = np.frombuffer(head, np.uint8)[taken:]
        base = taken
        held = np.empty(0, np.uint8)
        segs = np.empty((0, SEGMENT_COLUMNS), np.int64)
        error: CaptureError | None = None
        while True:
            fresh = self._read(self._window)
            final = len(fresh) < self._window
            buf = np.concatenate([held, rest, np.frombuffer(fresh, np.uint8)])
            start = held.shape[0]
            table, pos, error = self._container.packets(buf, start, buf.shape[0], base - start)
            base += pos - start
            if error is None and self._broken is not None:
                error = CaptureError(f"cannot be read any further: {self._broken}", offset=base)
            if error is None and final and pos < buf.shape[0]:
                left = buf.shape[0] - pos
                error = CaptureError(
                    f"the file is truncated: it ends within a packet, {left} bytes after its beginning", offset=base
                )
            final = final or error is not None
            rest = buf[pos:].copy()
            if table.shape[0]:
                self._now = max(self._now, int(table[:, packets.PKT_TIME].max()))
            found, held, segs = self._through(buf, start, segs, table, final)
            yield found
            if final:
                break
        if error is not None:
            raise error

    def _through(self, buf: Array, held: int, segs: Array, table: Array, final: bool) -> tuple[Window, Array, Array]:
        # What is unfinished is copied from window to window. Where it is too much, each stream gets an equal share.
        ration = framing.LARGEST_FRAME + 4
        if held > MOST_HELD:
            ration = max(LEAST_RATION, MOST_HELD // max(1, len(np.unique(segs[:, SEG_STREAM]))))
        n_segs = segs.shape[0]
        room = np.empty((n_segs + table.shape[0] + 2, SEGMENT_COLUMNS), np.int64)
        room[:n_segs] = segs
        segs, n_segs, self.conns, self.streams, self.n_conns, self._table = packets.tcp_segments(
            buf,
            table,
            table.shape[0],
            self._ports,
            self.conns,
            self.streams,
            self.n_conns,
            self._table,
            self.counts,
            room,
            n_segs,
        )
        data, pieces, active, order = streams.place(
            buf, segs, n_segs, self.conns, self.streams, 2 * self.n_conns, self._now, ration, final
        )
        acks_code, acks_starts = acks_programs()
        frames, self._waiting, self.pool, self.names, self._name_table = framing.frames_and_pairs(
            data,
            pieces,
            active,
            self.conns,
            self.streams,
            self._waiting,
            self._free,
            self.pool,
            self.names,
            self._name_table,
            self.names_used,
            api_facts(),
            acks_code,
            acks_starts,
            self._ports.shape[0] > 0,
            self._now,
            ration,
            final,
        )
        left, kept = streams.keep(buf, segs, order, active, self.conns, self.streams, final)
        frames = frames[np.argsort(frames[:, F_TIME], kind="stable")]
        made = Window(frames, data, self._frames)
        self._frames += frames.shape[0]
        return made, left, kept

    def notes(self) -> list[str]:
        """Sentences about what was left out, most important first; empty if nothing was."""
        counts = self.counts.tolist()
        notes = []
        if self._container.unsupported:
            links = ", ".join(map(str, sorted(self._container.unsupported)))
            notes.append(f"{counts[packets.N_LINK]} packets have a link type that is not supported: {links}")
        if counts[packets.N_FRAGMENT]:
            notes.append(f"{counts[packets.N_FRAGMENT]} packets are fragments of IP packets and were left out")
        if counts[packets.N_SNAPPED]:
            notes.append(f"{counts[packets.N_SNAPPED]} packets were cut off by the snapshot length of the capture")
        if counts[packets.N_DAMAGED]:
            notes.append(f"{counts[packets.N_DAMAGED]} packets have damaged or incomplete headers")
        if counts[packets.N_INTERFACE]:
            notes.append(f"{counts[packets.N_INTERFACE]} packets belong to an interface that is not described")
        if not self._frames:
            notes.append(
                f"no Kafka traffic among {counts[packets.N_PACKETS]} packets and {self.n_conns} TCP connections"
            )
        return notes

    def _read(self, size: int) -> bytes:
        """``size`` bytes, fewer only at the end of the source, or where it cannot be read any further.

        A source that fails after it has given bytes (damaged compression, a disk, a connection to an object store) is
        treated as a capture that is damaged there: what came before is not lost.
        """
        parts: list[bytes] = []
        while size > 0 and self._broken is None:
            try:
                part = self._source.read(min(size, self._piece))
            except (OSError, EOFError) as error:
                if not parts and not self._bytes_read:
                    raise
                self._broken = " ".join(str(error).split()) or type(error).__name__
                break
            if not part:
                break
            parts.append(part)
            size -= len(part)
            self._bytes_read += len(part)
            if self._progress is not None:
                self._progress(self._bytes_read)
        return parts[0] if len(parts) == 1 else b"".join(parts)
