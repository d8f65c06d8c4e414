"""The state of a capture, and what turns its bytes into frames, part by part: ``Tracker``.

Strategy: everything is arrays. What is fed becomes one buffer::

    kept from before | bytes of the file that were left over | bytes fed now | packets joined of fragments
    segment bytes    | the beginning of a packet             |               | where there are any

A ``Container`` finds the packets in it, and ``tracking`` the TCP segments and their connections. ``streams.place``
joins the segments, ``framing`` cuts and pairs frames. ``streams.keep`` collects what the next part needs. All that
lives between two calls of ``feed`` belongs to the tracker, as tables of the record types of ``kwire.kernels.layouts``.

``save`` gives this state as an Arrow table. ``restore`` takes it into another tracker: in the next file, in another
process, on another machine. A row is one connection with all that is known of it, including its unfinished bytes. So
connections can be chosen, sent around and brought together like any other rows.

Rules kept here:

- ``feed`` takes any number of bytes. It gives the same frames with the same numbers however a capture is cut, also
  where packets are missing. Only what is given up to bound memory (``MOST_HELD``, ``pairing.MOST_UNANSWERED``) may
  depend on it.
- Good data before bad is not lost: damage ends the capture, but what came before it is given first (``error``).
- Memory is bounded by the bytes fed at once, by unfinished data (``MOST_HELD``) and by requests that wait for a
  response (``pairing.MOST_UNANSWERED``). Beyond that it grows by some 900 bytes for each connection. Where the input is
  endless (``forgets``), a connection is kept up to ``IDLE`` after its last packet. Memory also grows with the number of
  different client ids.
- No I/O, and no clock: time is that of the packets.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.capture.account import Account, Line, left_out
from kwire.capture.connections import Connections
from kwire.capture.containers import Container
from kwire.capture.encrypted import Encrypted, Tls, Window
from kwire.capture.fragments import Fragments
from kwire.capture.frames import Endpoint, Frames, text_of
from kwire.capture.hellos import Hellos
from kwire.capture.notes import notes_of_packets, nothing_found
from kwire.capture.saved import check_common, check_connections, what_is_stated
from kwire.capture.splits import Split
from kwire.capture.state import (
    COUNTED,
    LISTED,
    STATE,
    STATE_VERSION,
    fill,
    segments_column,
    segments_from,
    structs,
    waiting_column,
)
from kwire.errors import CaptureError, MissingExtraError
from kwire.kernels import directions, framing, ordering, pairing, roles, streams, tracking
from kwire.kernels.engine import MACHINE, MIXED, PYTHON, Engine, choose
from kwire.kernels.hashing import fresh_key
from kwire.kernels.layouts import (
    ABSENT,
    AT_THE_END,
    CONNECTION,
    FRAME,
    NO_TIME,
    PACKET,
    PACKETS_BEFORE,
    ROOM,
    SEGMENT,
    STREAM,
    WAITING,
    Role,
    joined,
    moved,
    taken,
)
from kwire.kernels.names import LONGEST_NAME, NameTable
from kwire.kernels.numbers import grown
from kwire.kernels.packets import Count
from kwire.kernels.programs import MAX_DEPTH, registers_of
from kwire.protocol.api_table import api_table
from kwire.records.buffers import BUFFERS
from kwire.tls import KeyLog

__all__ = ["PART_BITS", "STATE", "Connection", "Packets", "Tracker"]

MOST_HELD: Final = 256 << 20
"""Bytes of unfinished frames and of segments after holes, in all streams, that are kept.

Above this some are given up.
"""
LEAST_RATION: Final = 64 << 10
"""Bytes that each stream may hold all the same."""
IDLE: Final = 3 * 3600 * 1_000_000_000
"""Nanoseconds of capture time without a packet after which a connection is given up in an endless capture.

Brokers and clients close what is idle for ten minutes, and a host's keep-alives come every two hours.
"""
LEAST_IDLE: Final = 1024
"""Connections that are given up at once, at least, and a quarter of all: the tables are written anew then."""
PART_BITS: Final = 32
"""Bits of the numbers of connections and frames that are counted within a part; those above it say which part."""
_FIRST_WAITING: Final = 64
"""Requests for which the table has rows at first; a power of 2, as all sizes of that table are."""

Array = Any


class Packets(NamedTuple):
    """Packets of a capture."""

    data: Array
    packets: Array
    """Table of PACKET: they stand in ``data``."""
    clock: Array
    """For each packet the latest time that was seen up to it, NO_TIME where none was."""
    slots: Array
    """For each packet the slot of its connection, -1 for none."""
    first_order: int
    """The number of the first."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection of the capture so far. ``opener`` is the end that opened it, where that was seen."""

    number: int
    a: Endpoint
    b: Endpoint
    role: Role
    opener: Endpoint | None
    closed: bool
    tls: Tls | None = None
    """Version, cipher suite and server name of a connection.

    It began with a hello of TLS, and there is a key log.
    """


LEAST_BYTES: Final = 8
"""Of a frame."""
_SLOTS_AT_ONCE: Final = 1 << 12
"""How many connections Python has the numbers of at a time."""
FRAMES_BY_PYTHON: Final = 512
"""Frames that Python reads before it is asked whether machine code reads on."""
SMALL_BYTE: Final = 8
"""Bytes below it stand in sizes, counts and ids, and each may have to be looked at by itself."""
OF_A_SMALL_BYTE: Final = 8
"""Bytes that each of them counts for, in addition."""
SMALL_BYTES_OF_A_PACKET: Final = 40
"""This many are counted with the packet."""
MANY_FRAMES: Final = 1 << 16
"""Frames of a window: a usual one has fewer. Tables of this size are 8 MiB."""


class Tracker:
    """One capture on its way from bytes to frames, and all that is remembered of it.

    ``ports`` are the broker ports to look at; without them, connections are recognised by what they carry.
    ``vxlan_ports`` are ports of UDP where VXLAN is spoken, in addition to 4789 and 8472. ``keys`` are the secrets of
    connections that speak TLS, in addition to those that the capture itself holds. ``account``: what becomes of each
    byte is added up, for ``account()``.

    ``part``: what is fed is this one of several that follow each other (``kwire.capture.across``). Numbers are then
    those of the whole: they begin at ``part << PART_BITS``. The number of a connection has its first packet in the
    lower bits. What is unfinished at the end is left, until ``finish``. ``split``: what is fed is that part of a file.

    ``forgets``: the input has no end. So a connection without a packet for ``IDLE`` is given up, as if the capture
    ended for it, and forgotten. ``connections()`` and ``known()`` have the others. Later packets of a forgotten one are
    another connection. When that is depends on what is fed at once. Not with ``account``, ``part`` and ``keys``; and
    such a tracker cannot be saved any more.

    Raises ``ValueError`` for a number that is no port, ``MissingExtraError`` for ``keys`` without the extra ``tls``.

    ``error`` is set when the capture is damaged or truncated: the frames before that have been given, and nothing
    more will come.
    """

    def __init__(
        self,
        *,
        ports: Iterable[int] | None = None,
        vxlan_ports: Iterable[int] | None = None,
        keys: KeyLog | None = None,
        part: int | None = None,
        split: Split | None = None,
        account: bool = False,
        forgets: bool = False,
    ) -> None:
        self._forgets = forgets and not account and part is None and keys is None
        self._idle_from: int | None = None
        """No connection is idle before this time of the packets."""
        self._ending: Array = np.zeros(0, np.int64)
        """Slots that end with the next window, and are forgotten then."""
        self._forgotten = 0
        self._account = Account() if account else None
        self.error: CaptureError | None = None
        self.goes_on: bool = part is not None
        """Whether the end of what is fed is not that of the capture: what is unfinished is left, until ``finish``."""
        self.window: Packets | None = None
        """What the latest window had, until the next is fed. Of a part only."""
        self._part = part
        self._ports = _ports(ports)
        self._vxlan = _ports(vxlan_ports)
        self._counts: Array = np.zeros(len(Count), np.int64)
        self._keys = KeyLog(also=keys)
        """Those that the capture itself holds, and those that were given."""
        self._encrypted = None if keys is None else Encrypted(self._keys)
        self._hellos = Hellos()
        """Of connections over TLS, where nothing is decrypted."""
        self._keys_unused = ""
        """Why the secrets in the capture are not used."""
        self._container = Container(self._counts, self._keys)
        self._fragments = Fragments(self._counts)
        self._known = tracking.nothing_known()
        self._client_ids = NameTable()
        self._waiting: Array = np.zeros(_FIRST_WAITING, WAITING)
        self._ids: Array = np.full(_FIRST_WAITING, -1, np.int64)
        self._room: Array = np.zeros(1, ROOM)
        self._room["free"] = -1
        self._room["key_a"], self._room["key_b"] = fresh_key()
        self._scratch = directions.Scratch(
            np.zeros(2, directions.DIRECTION),
            registers_of(1),
            np.zeros(MAX_DEPTH, np.int64),
            np.zeros((0, 3), np.int64),
        )
        self._buffer: Array = np.empty(0, np.uint8)
        self._held: Array = np.empty(0, np.uint8)
        self._segments: Array = np.empty(0, SEGMENT)
        self._rest: Array = np.empty(0, np.uint8)
        self._base = 0
        """Offset in the file of the first byte of ``_rest``."""
        self._begun = False
        self._begin = 0
        if split is not None:
            self._container.restore(split.container)
            self._begun = True
            self._begin = self._base = split.begin
        self._ended = False
        self._now = NO_TIME
        self._packets = 0
        self._first_frame = self._frames = 0 if part is None else part << PART_BITS
        self._unconfirmed = 0
        self._most_frames = 0
        """In a window, so far."""
        self._brokers: dict[tuple[int, ...], int] = {}
        """Hosts and ports of brokers, and the packet that showed it."""
        self._noted: Array = np.zeros(0, np.uint8)
        """By slot: 1 if its broker is among them."""

    # -- bytes in, frames out

    def room(self, size: int) -> memoryview:
        """Where the next ``size`` bytes of the capture may be written.

        If they are given to ``feed`` from there, as many of them as there are, they need not be copied.
        """
        before = len(self._held) + len(self._rest)
        if len(self._buffer) < before + size:
            # More may be left over by the next window.
            self._buffer = BUFFERS.take(before + size + (before + size) // 8)
        return memoryview(self._buffer)[before : before + size]

    def feed(self, data: bytes | bytearray | memoryview, *, final: bool = False, broken: str | None = None) -> Frames:
        """The frames that become complete with the next bytes of the capture.

        ``final`` says that these are the last ones. Everything that is left is processed as if the capture ended here.
        ``broken`` does the same and says why the capture could not be read any further.

        Raises ``CaptureError`` for what does not begin like a capture. A later problem is in ``error``, and is final
        too. Raises ``ValueError`` after the end.
        """
        if self._ended:
            raise ValueError("the capture has ended")
        self.window = None
        engine = choose(len(data))
        final = final or broken is not None
        fresh = np.frombuffer(data, np.uint8)
        described = 0
        if not self._begun:
            head = np.concatenate([self._rest, fresh[: Container.HEADER]])
            if len(head) < Container.HEADER and not final:
                self._rest = head
                return self._nothing()
            described = self._container.begin(head[: Container.HEADER].tobytes())
            self._begun = True
        start = len(self._held)
        size = start + len(self._rest) + len(fresh)
        if len(self._buffer) < size:
            self._buffer = BUFFERS.take(size)
        # The same memory for each window: nothing of it is kept, and new memory would cost as much as reading packets.
        buf = self._buffer[:size]
        behind = size - len(fresh)
        np.concatenate([self._held, self._rest], out=buf[:behind])
        if not np.may_share_memory(fresh, buf):
            buf[behind:] = fresh
        packets, pos, error = self._container.packets(buf, start + described, size, self._base - start, engine)
        self._base += int(pos) - start
        if error is None and broken is not None:
            error = CaptureError(f"cannot be read any further: {broken}", offset=self._base)
        if error is None and final and pos < len(buf):
            left = len(buf) - pos
            error = CaptureError(
                f"the file is truncated: it ends within a packet, {left} bytes after its beginning", offset=self._base
            )
        self.error = error
        self._ended = final or error is not None
        self._rest = buf[pos:].copy()
        engine = choose(0, packets=len(packets))
        return self._through(buf, packets, engine, self._ended and not self.goes_on)

    def _nothing(self) -> Frames:
        return self._given(np.empty(0, FRAME), 0, np.empty(0, np.uint8))

    def _given(self, rows: Array, read: int, data: Array, first_order: int = 0, packets: int = 0) -> Frames:
        """The frames of a part, numbered by when they were settled, and in that order.

        Where that is the same, the first ``read`` frames are in the order of streams. ``first_order`` and ``packets``:
        the number of the first packet, and how many there were.
        """
        names = self._client_ids
        number, count = self._frames, len(rows)
        self._frames += count
        at, place, in_order = np.empty((3, count), np.int64)
        ends = np.empty(packets + 2, np.int64)
        # Of many, a second table would take as much again: they are sorted where they are.
        copied = BUFFERS.take(rows.nbytes if count < MANY_FRAMES else 0).view(FRAME)
        self._unconfirmed += choose(0)(ordering.by_order)(
            rows, read, first_order, number, ends, at, place, in_order, copied
        )
        if len(copied) < count:
            for name in FRAME.names:
                rows[name] = rows[name][in_order]
            rows["number"] = np.arange(number, number + count)
        else:
            rows = copied
        frames = Frames(rows, data, self._known.connections, names.names, names.pool)
        if self._account is not None:
            self._account.frames(frames)
        return frames

    def feed_packets(self, window: Packets) -> Frames:
        """The frames that become complete with some packets of a capture, which were taken out of it (``window``).

        Between two calls of ``feed``, or in place of them all: this capture has no file of its own then.
        """
        data = np.concatenate([self._held, np.frombuffer(window.data, np.uint8)])
        packets = joined([window.packets])
        packets["off"] += len(self._held)
        return self._through(data, packets, choose(len(data), packets=len(packets)), False, window.clock)

    def finish(self, left: Iterable[int] = ()) -> Frames:
        """Process everything that is unfinished as if the capture ended here.

        The connections ``left``, by their numbers, are left alone: these go on in a later part.
        """
        left = np.fromiter(left, np.int64)
        known = self._known
        slots = np.flatnonzero(np.isin(known.connections["number"][: known.n_connections], left))
        known.connections["role"][slots] = Role.OTHER
        self._segments = joined([self._segments[~np.isin(self._segments["stream"] >> 1, slots)]])
        self._ended = True
        return self._through(self._held.copy(), np.empty(0, PACKET), choose(len(self._held)), True)

    def _through(self, buf: Array, packets: Array, engine: Engine, final: bool, shown: Array | None = None) -> Frames:
        """From the packets of ``buf`` to frames; what is left becomes the new ``_held`` and ``_segments``.

        ``shown``: what the clock showed at each packet, where that is known from elsewhere."""
        # What is unfinished is copied from part to part. Where it is too much, each stream gets an equal share.
        ration = roles.LARGEST_FRAME + 4
        if len(self._held) > MOST_HELD:
            ration = max(LEAST_RATION, MOST_HELD // max(1, len(np.unique(self._segments["stream"]))))
        clock = np.empty(len(packets), np.int64)
        if shown is None:
            engine(tracking.clock_of)(packets, self._now, clock)
        else:
            np.maximum(np.maximum.accumulate(shown), self._now, out=clock)
        first_order = self._packets
        self._packets += len(packets)
        if len(clock):
            self._now = int(clock[-1])
        room = np.empty(len(self._segments) + len(packets) + tracking.MOST_ROWS, SEGMENT)
        moved(self._segments, room)
        n_segments, used, k = len(self._segments), len(buf), 0
        known_before = self._known.n_connections
        slots = np.full(len(packets), -1, np.int64)
        while True:
            segments, self._known, read, fragment = tracking.tcp_segments(
                buf, packets[k:], clock[k:], self._ports, self._vxlan, self._known, self._counts, room, n_segments,
                first_order + k, slots[k:], engine,
            )  # fmt: skip
            k += read
            if fragment is None:
                break
            buf, used = self._fragments.put(buf, used, packets, k, fragment, int(clock[k]))
            n_segments = len(segments)
            room = segments if segments.base is None else segments.base
        fresh = segments[len(self._segments) :]
        connections, table = self._known.connections, self._known.streams
        began = slice(known_before, self._known.n_connections)
        if self._forgotten:
            connections["number"][began] += self._forgotten
        if self._part is not None:
            connections["number"][began] = connections["first_order"][began] + (self._part << PART_BITS)
            self.window = Packets(buf, packets, clock, slots, first_order)
        engine(tracking.note_closed)(connections, self._known.n_connections, clock, first_order)
        n_held = len(self._segments)
        if self._account is not None:
            self._account.packets(fresh, connections["role"])
        if len(self._keys) and self._encrypted is None and not self._keys_unused:
            self._use_secrets()
        if self._encrypted is None:
            self._hellos.look(buf, fresh, self._known, engine)
        else:
            tls = Window(buf, segments, self._known, clock, first_order, self._now, ration, final, engine)
            buf, segments, n_held = self._encrypted.opened(tls, n_held)
            if self._account is not None:
                self._account.sealed(self._encrypted.slots)
        if self._account is not None:
            self._account.streams(segments, connections["role"])
        data, pieces, active, order = streams.place(
            buf,
            segments,
            n_held,
            connections,
            table,
            2 * self._known.n_connections,
            clock,
            first_order,
            ration,
            final,
            engine,
            BUFFERS.take,
        )
        if self._encrypted is not None:
            self._encrypted.note_holes(self._known)
        window = roles.Window(data, pieces, active, clock, first_order, ration, bool(len(self._ports)), final)
        if engine is PYTHON:
            small = int(np.count_nonzero(data < SMALL_BYTE))
            engine = choose(OF_A_SMALL_BYTE * max(0, small - SMALL_BYTES_OF_A_PACKET * len(packets)))
        rows, read = self._read(window, engine)
        engine = choose(0)
        if self._encrypted is not None:
            self._encrypted.explain(rows)
        self._held, self._segments = streams.keep(
            buf, segments, data, pieces, order, active, connections, table, final, engine, self._held, self._packets
        )
        frames = self._given(rows, read, data, first_order, len(clock))
        if self._forgets and len(packets):
            self._forget(engine)
            times = packets["time"][packets["time"] != NO_TIME]
            if len(times):
                self._end_idle(int(times.min()) - IDLE)
        return frames

    def _end_idle(self, until: int) -> None:
        """Ends connections whose last packet is older than ``until``, with the next packet, where they are many."""
        if self._idle_from is not None and until < self._idle_from:
            return
        self._idle_from = until + IDLE // 16
        rows, count = self._known.connections, self._known.n_connections
        latest = self._known.streams["last_time"][: 2 * count]
        latest = np.maximum(latest[0::2], latest[1::2])
        # How long ago a packet without a time was is not known.
        slots = np.flatnonzero((latest < until) & (latest > ABSENT))
        if len(slots) >= max(LEAST_IDLE, count // 4):
            rows["closed"][slots] = 1
            rows["closed_clock"][slots] = ABSENT
            rows["closed_order"][slots] = np.minimum(rows["closed_order"][slots], self._packets)
            self._ending = slots

    def _forget(self, engine: Engine) -> None:
        """Forget the connections that have ended with this window.

        All their unfinished data has been reported.
        """
        gone = self._ending
        if not len(gone):
            return
        known, room = self._known, self._room[0]
        ended = known.connections.take(gone)
        engine(pairing.give_up)(ended, len(ended), self._waiting, self._ids, room, roles.NEVER)
        there = np.ones(known.n_connections, bool)
        there[gone] = False
        slots = np.flatnonzero(there)
        streams_left = np.flatnonzero(np.repeat(there, 2))
        connections = np.zeros(max(64, len(slots)), CONNECTION)
        table = np.zeros(2 * len(connections), STREAM)
        moved(taken(known.connections, slots), connections)
        moved(taken(known.streams, streams_left), table)
        self._known = tracking.restored(connections, table, len(slots), engine)
        # What is kept of those of unknown kind, in case that their broker becomes known, goes with them.
        self._segments = joined([self._segments[there[self._segments["stream"] >> 1]]])
        place = np.cumsum(there) - 1
        side = self._segments["stream"] & 1
        self._segments["stream"] = 2 * place[self._segments["stream"] >> 1] + side
        self._noted = self._noted[: len(there)][there[: len(self._noted)]]
        self._hellos.forget(there)
        self._forgotten += len(gone)
        self._ending = np.zeros(0, np.int64)

    def _use_secrets(self) -> None:
        """Use the secrets that stand in the capture, where that can be done."""
        try:
            self._encrypted = Encrypted(self._keys)
            # It knows connections by their slots.
            self._forgets = False
        except MissingExtraError as missing:
            self._keys_unused = str(missing)

    def _read(self, window: roles.Window, engine: Engine) -> tuple[Array, int]:
        """The frames of a window, and how many of them are in the order of connections.

        The others belong to connections that are over.
        """
        room = self._room[0]
        room["frames"] = room["active"] = room["begun"] = 0
        # What nothing is written to takes no memory. Where frames are small, each segment has one.
        count = max(64, len(window.data) // 512, len(window.pieces) + 64, 2 * self._most_frames)
        count = max(64, min(count, len(window.data) // LEAST_BYTES))
        if engine is PYTHON or engine is MIXED:
            count = min(count, FRAMES_BY_PYTHON)
        rows = BUFFERS.take(count * FRAME.itemsize).view(FRAME)
        known, scratch = api_table(), self._scratch
        connections = self._known.connections
        if len(self._noted) < len(connections):
            self._noted = np.append(self._noted, np.zeros(len(connections) - len(self._noted), np.uint8))
        if not engine(framing.is_settled)(window.active, connections, self._noted):
            slots = _distinct(window.active["stream"] >> 1)
            unknown = connections["role"][slots] == Role.UNKNOWN
            self._note_brokers(slots[~unknown])
            if unknown.any():
                engine(framing.settle_all)(window, self._capture(), known, scratch)
                self._by_brokers(slots[unknown])
        counted = 0
        while not engine(framing.frames_and_pairs)(window, self._capture(), known, scratch, rows):
            # Where frames are small, as much as there may be of those without bytes. What is not used costs nothing.
            rows = self._make_room(rows, engine, len(window.data) // 4 if engine is MACHINE else 0)
            if engine is PYTHON or engine is MIXED:
                engine = choose(0, frames=int(room["frames"]) - counted)
                counted = int(room["frames"])
        read = int(room["frames"])
        choose(0, frames=read - counted)
        self._most_frames = max(self._most_frames, read)
        if self._forgets and len(self._ending) and len(window.clock) and not window.final:
            # Copies: nothing else is kept of them.
            slots = self._ending
            both = np.stack([2 * slots, 2 * slots + 1], axis=1).ravel()
            ended = self._capture()._replace(
                connections=taken(self._known.connections, slots), streams=taken(self._known.streams, both)
            )
            room["active"] = 0
            first = read
            while not engine(ordering.tell_the_rest)(ended, 2 * len(slots), self._now, rows):
                rows = self._make_room(rows, engine)
            told = rows[first : room["frames"]]
            told["slot"] = slots[told["slot"]]
            told["order"] = window.first_order
        if window.final:
            room["active"] = 0
            if self._encrypted is not None:
                self._encrypted.forget_positions(self._known)
            while not engine(ordering.tell_the_rest)(self._capture(), 2 * self._known.n_connections, self._now, rows):
                rows = self._make_room(rows, engine)
        return rows[: room["frames"]], read

    def _by_brokers(self, slots: Array) -> None:
        """Take what is known of brokers to those connections of ``slots`` that are to the same host and port.

        What they are was not known before this window.

        Of the one too little was captured to tell. Another did not begin as it should, and the broker was known then. A
        third has shown it itself, but later than the broker was known. Whether that was in one window must not count.
        So they are taken in the order in which they showed it: what is known of one is known of the next.
        """
        rows = self._known.connections
        orders = rows["settled_order"][slots]
        for slot in slots[np.argsort(np.where(orders < 0, roles.NEVER, orders), kind="stable")].tolist():
            ends = [tuple(int(rows[slot][f"{one}_{name}"]) for name in ("high", "low", "port")) for one in "ab"]
            self._by_broker(rows[slot : slot + 1], ends)
            role = int(rows["role"][slot])
            if role in (Role.A_REQUESTS, Role.B_REQUESTS) and rows["by_broker"][slot] == 0:
                end, order = ends[role == Role.A_REQUESTS], int(rows["settled_order"][slot])
                self._noted[slot] = 1
                self._brokers[end] = min(order, self._brokers.get(end, order))

    def _by_broker(self, row: Array, ends: list[tuple[int, ...]]) -> None:
        """Take what is known of the two ends of one connection to it."""
        role, begun = int(row["role"][0]), int(row["begun_order"][0])
        told = [max(begun, self._brokers.get(end, roles.NEVER)) for end in ends]
        order = min(told)
        if begun < 0 or told[0] == told[1] or order - int(row["closed_order"][0]) > streams.LINGERS:
            return  # neither is a broker, or both are; or its bytes may be gone
        a_is_broker = told[0] < told[1]
        known = self._brokers[ends[0] if a_is_broker else ends[1]]
        if role == Role.UNKNOWN or order < row["settled_order"][0] or (role == Role.OTHER and known < order):
            row["role"] = Role.B_REQUESTS if a_is_broker else Role.A_REQUESTS
            row["by_broker"] = 1
            row["settled_order"] = order

    def _note_brokers(self, slots: Array) -> None:
        """Remember the brokers of those connections that showed their role themselves."""
        rows = self._known.connections
        if len(self._noted) < len(rows):
            self._noted = np.append(self._noted, np.zeros(len(rows) - len(self._noted), np.uint8))
        slots = slots[self._noted[slots] == 0]
        for begin in range(0, len(slots), _SLOTS_AT_ONCE):
            some = slots[begin : begin + _SLOTS_AT_ONCE]
            roles_, itself = rows["role"][some], rows["by_broker"][some] == 0
            for role, broker in ((Role.A_REQUESTS, "b"), (Role.B_REQUESTS, "a")):
                told = some[(roles_ == role) & itself]
                self._noted[told] = 1
                ends = zip(*(rows[f"{broker}_{name}"][told].tolist() for name in ("high", "low", "port")), strict=True)
                for end, order in zip(ends, rows["settled_order"][told].tolist(), strict=True):
                    self._brokers[end] = min(order, self._brokers.get(end, order))

    def _capture(self) -> directions.Capture:
        names = self._client_ids
        return directions.Capture(
            self._known.connections,
            self._known.streams,
            self._waiting,
            self._ids,
            names.names,
            names.pool,
            names.lookup,
            names.used,
            self._room,
        )

    def _make_room(self, rows: Array, engine: Engine, least: int = 0) -> Array:
        room = self._room[0]
        if room["free"] < 0 and room["waiting"] >= len(self._waiting):
            self._let_wait(engine)
        self._client_ids.make_room(LONGEST_NAME, engine)
        return grown(rows, least) if room["frames"] >= len(rows) else rows

    def _let_wait(self, engine: Engine) -> None:
        """Make a row free for another waiting request, where all rows are taken.

        Gives up half of the requests at the bound.
        """
        room, count = self._room[0], len(self._waiting)
        if count < pairing.MOST_WAITING:
            self._waiting, ids = grown(self._waiting), np.full(2 * count, -1, np.int64)
            engine(pairing.move_lookup)(self._waiting, self._ids, room, ids)
            self._ids = ids
        else:
            until = int(np.partition(self._waiting["clock"], count // 2)[count // 2])
            known = self._known
            engine(pairing.give_up)(known.connections, known.n_connections, self._waiting, self._ids, room, until)

    # -- what is known

    def connections(self) -> list[Connection]:
        """The connections so far, in the order in which they appeared."""
        found = []
        known = self._known
        view = Frames(np.empty(0, FRAME), np.empty(0, np.uint8), known.connections, None, None)
        for slot in range(known.n_connections):
            row = known.connections[slot]
            ends = view.ends(slot)
            opener = int(row["opener"])
            found.append(
                Connection(
                    int(row["number"]),
                    *ends,
                    Role(int(row["role"])),
                    ends[opener] if opener >= 0 else None,
                    bool(row["closed"]),
                    None if self._encrypted is None else self._encrypted.of(slot),
                )
            )
        return found

    def known(self) -> Connections:
        """The connections so far, as columns. They are those of this moment as long as nothing is fed."""
        count = self._known.n_connections
        return Connections(
            self._known.connections[:count], self._known.streams[: 2 * count], self._client_id, self._tls
        )

    def _client_id(self, number: int) -> str | None:
        if number < 0:
            return None
        names = self._client_ids
        off, length = names.names[number].tolist()
        return text_of(names.pool[off : off + length].tobytes())

    def _tls(self, slot: int) -> Tls | None:
        known = None if self._encrypted is None else self._encrypted.of(slot)
        said = self._hellos.of(slot)
        if known is not None or said is None:
            return known
        return Tls(*said, "")

    def account(self) -> list[Line]:
        """What became of the bytes of each direction of the Kafka connections, so far.

        ``ValueError`` where this was not asked for.
        """
        if self._account is None:
            raise ValueError("an account is kept where it is asked for from the beginning")
        known = self._known
        view = Frames(np.empty(0, FRAME), np.empty(0, np.uint8), known.connections, None, None)
        starts = known.streams["start"]
        return self._account.lines(view, known.connections["role"], known.connections["number"], starts)

    @property
    def n_frames(self) -> int:
        """How many frames there were so far."""
        return self._frames - self._first_frame

    def left_out(self) -> list[str]:
        """Sentences about the connections so far that have no frames: why, how many, and to which ports."""
        return left_out(self.known(), self._ports.tolist())

    def notes(self) -> list[str]:
        """Sentences about what was left out, most important first; empty if nothing was."""
        counts = self._counts.tolist()
        counts[Count.FRAGMENT] += self._fragments.waiting
        links = {link: number for link, number in sorted(self._container.unsupported.items()) if number}
        notes = notes_of_packets(counts, links)
        notes += [] if self._encrypted is None else self._encrypted.notes()
        if self._keys_unused:
            notes.append(f"the capture has secrets of TLS: {self._keys_unused}")
        if self._forgotten:
            notes.append(f"{self._forgotten} connections were given up: nothing of them was captured for 3 hours")
        if self._unconfirmed:
            notes.append(
                f"unconfirmed frames: {self._unconfirmed} (packets before them are missing, and they may be values of"
                " records)"
            )
        if not self._frames:
            notes.append(nothing_found(counts, self._known.n_connections + self._forgotten))
            notes += self.left_out()
        return notes

    # -- parts of a whole

    @property
    def now(self) -> int | None:
        """What the clock shows after all that was fed, in nanoseconds since 1970. None: no packet had a time."""
        return None if self._now == NO_TIME else self._now

    def begin_file(self) -> None:
        """What is fed from here on are the bytes of another capture file, which goes on where the one before ended.

        Only where the end of a file is not processed as if the capture ended there (``goes_on``).
        """
        self._container = Container(self._counts, self._keys)
        self._begun = self._ended = False
        self._begin = self._base = 0
        self._rest = np.empty(0, np.uint8)
        self.error = None

    def stands_alone(self) -> bool:
        """Whether the fed bytes end with a packet, and have nothing that later packets depend on."""
        return not len(self._rest) and not self._container.reported

    def take_over(self, common: Mapping[str, Any]) -> None:
        """Take over what earlier parts knew in addition to connections, as ``common`` gave it there.

        Raises ``CaptureError`` for what is none of it.
        """
        check_common(common)
        self._now = max(self._now, common["now"])
        for end in common["brokers"]:
            self._brokers.setdefault(tuple(end), -1)
        if common.get("fragments") is not None:
            self._fragments.restore(common["fragments"])

    def let_resets_begin(self) -> None:
        """A connection may begin with an RST here, before anything is fed.

        It may belong to an earlier part, of which nothing is known yet.
        """
        self._known.finder["resets_begin"] = 1

    def common(self) -> dict[str, Any]:
        """What is known in addition to connections, as JSON can hold it: ``now``, ``brokers`` and ``fragments``."""
        return {
            "now": self._now,
            "brokers": sorted(map(list, self._brokers)),
            "fragments": self._fragments.state(),
        }

    def rows(self) -> tuple[Array, Array]:
        """The rows of CONNECTION so far, and those of STREAM, two for each; they are the tracker's own."""
        count = self._known.n_connections
        return self._known.connections[:count], self._known.streams[: 2 * count]

    # -- state out and in

    def save(self, connections: Iterable[int] | None = None) -> pa.Table:
        """The state, as a table with the columns of ``STATE``.

        ``connections`` chooses connections by their numbers. Then the state of the capture itself is left out: its
        format, the beginning of a packet, fragments, the counters. What is saved can be restored into the tracker of
        another capture, perhaps of the next file. Raises ``ValueError`` for a number that does not exist, and where
        connections were forgotten.
        """
        known = self._known
        numbers = known.connections["number"][: known.n_connections]
        if connections is None:
            slots = np.arange(known.n_connections)
        else:
            wanted = np.array(sorted(set(connections)), np.int64)
            slots = np.flatnonzero(np.isin(numbers, wanted))
            if len(slots) < len(wanted):
                raise ValueError(f"no connection {np.setdiff1d(wanted, numbers)[0]}")
        client_ids = self._client_ids.values()
        rows = known.connections.take(slots)
        clients = rows["client"].tolist()
        # Rows of tables that are not part of the state: whoever restores it makes his own.
        for name in ("before", "client", *LISTED):
            rows[name] = -1
        columns = [
            structs(rows),
            structs(known.streams.take(2 * slots)),
            structs(known.streams.take(2 * slots + 1)),
            pa.array([None if one < 0 else client_ids[one] for one in clients], pa.binary()),
            waiting_column(known.connections, self._waiting, slots, client_ids),
            segments_column(self._segments, self._held, slots),
            pa.array([self._tls_of(slot) for slot in slots.tolist()], pa.string()),
            pa.array(
                [None if said is None else json.dumps(said) for said in map(self._hellos.state, slots.tolist())],
                pa.string(),
            ),
        ]
        if self._forgotten:
            raise ValueError("connections were forgotten")
        whole: dict[str, Any] = {"version": STATE_VERSION, "now": self._now}
        if connections is None:
            whole |= {
                "container": self._container.state() if self._begun else None,
                "rest": base64.b64encode(self._rest.tobytes()).decode(),
                "base": self._base,
                "ended": self._ended,
                "packets": self._packets,
                "frames": self._frames,
                "counts": self._counts.tolist(),
                "ports": self._ports.tolist(),
                "vxlan_ports": self._vxlan.tolist(),
                "fragments": self._fragments.state(),
            }
        return pa.Table.from_arrays(columns, schema=STATE.with_metadata({"kwire": json.dumps(whole)}))

    def _tls_of(self, slot: int) -> str | None:
        state = None if self._encrypted is None else self._encrypted.state(slot)
        return None if state is None else json.dumps(state)

    def restore(self, saved: pa.Table) -> None:
        """Take over the state that ``save`` gave, before anything is fed.

        A state of a whole capture makes this tracker go on where the other was. The chosen connections of one are known
        from the beginning. They come before the connections that this capture begins with, and are numbered anew.

        Raises ``CaptureError`` for a table that is no such state, ``ValueError`` if something was fed or restored
        before.
        """
        fed = self._base != self._begin or self._begun != (self._begin > 0)
        if fed or len(self._rest) or self._known.n_connections:
            raise ValueError("a state is restored before anything else")
        if not saved.schema.equals(STATE):
            raise CaptureError("not the state of a capture")
        stated = what_is_stated(saved.schema.metadata, STATE_VERSION)
        whole = "container" in stated
        check_connections(saved, whole)
        self._now = stated["now"]
        if whole:
            self._base, self._ended = stated["base"], stated["ended"]
            self._packets, self._frames = stated["packets"], stated["frames"]
            self._counts[:] = stated["counts"]
            self._ports = np.array(stated["ports"], np.int64)
            self._vxlan = np.array(stated["vxlan_ports"], np.int64)
            self._fragments.restore(stated["fragments"])
            self._rest = np.frombuffer(stated["rest"], np.uint8)
            if stated["container"] is not None:
                self._container.restore(stated["container"])
                self._begun = True
            # A later connection takes over the ports of an earlier, whatever was done to the rows.
            saved = saved.take(np.argsort(pc.struct_field(saved.column("connection"), "number").to_numpy()))
        self._restore_connections(saved.combine_chunks(), whole)

    def _restore_connections(self, saved: pa.Table, whole: bool) -> None:
        count = saved.num_rows
        engine = choose(saved.nbytes)
        connections = np.zeros(max(64, count), CONNECTION)
        table = np.zeros(2 * len(connections), STREAM)
        fill(connections[:count], saved.column("connection"))
        fill(table[0 : 2 * count : 2], saved.column("a_to_b"))
        fill(table[1 : 2 * count : 2], saved.column("b_to_a"))
        if not whole:
            # Packets are counted anew: what there was came before all of them.
            if self._part is None:
                connections["number"][:count] = np.arange(count)
            for kind, name in COUNTED:
                rows = connections if kind is CONNECTION else table
                rows[name] = np.where(rows[name] == AT_THE_END, AT_THE_END, -1)
            table["began"] -= PACKETS_BEFORE
        self._known = tracking.restored(connections, table, count, engine)
        self._note_brokers(np.arange(count))
        connections["client"][:count] = [
            -1 if one is None else self._client_ids.add(one, engine) for one in saved.column("client_id").to_pylist()
        ]
        self._restore_waiting(saved.column("waiting"), whole, engine)
        self._segments, self._held = segments_from(saved.column("segments").to_pylist(), whole)
        for slot, one in enumerate(saved.column("hello").to_pylist()):
            if one is not None:
                self._hellos.restore(slot, json.loads(one))
        states = {slot: one for slot, one in enumerate(saved.column("tls").to_pylist()) if one is not None}
        if len(self._keys) and self._encrypted is None:
            self._use_secrets()
        if states:
            self._encrypted = self._encrypted or Encrypted(self._keys)
            self._encrypted.restore(states, self._known, whole)

    def _restore_waiting(self, lists: pa.ChunkedArray, whole: bool, engine: Engine) -> None:
        connections = self._known.connections
        for name in LISTED:
            connections[name] = -1
        connections["waiting"] = connections["overtaken"] = 0
        entries = pc.list_flatten(lists).combine_chunks()
        slots = np.repeat(np.arange(len(lists)), pc.list_value_length(lists).to_numpy())
        places = _FIRST_WAITING
        while places < len(slots):
            places *= 2
        self._waiting, self._ids = np.zeros(places, WAITING), np.full(places, -1, np.int64)
        rows = self._waiting[: len(slots)]
        for name in ("id", "api", "version", "time", "order", "clock", "overtaken", "doubted", "ack", "end"):
            rows[name] = entries.field(name).to_numpy()
        if not whole:
            rows["order"] = -1
        names = entries.field("client_id").dictionary_encode()
        numbers = np.array([self._client_ids.add(one, engine) for one in names.dictionary.to_pylist()], np.int64)
        rows["client"] = -1
        named = names.is_valid().to_numpy(zero_copy_only=False)
        rows["client"][named] = numbers[names.indices.drop_null().to_numpy()]
        self._room["waiting"], self._room["free"] = len(slots), -1
        engine(pairing.append_all)(connections, slots, self._waiting)


def _distinct(numbers: Array) -> Array:
    """``numbers``, which are in order, each once."""
    first = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=first[1:])
    return numbers[first]


def _ports(ports: Iterable[int] | None) -> Array:
    wanted = sorted(set(ports or ()))
    if wanted and not 0 <= wanted[0] <= wanted[-1] <= 0xFFFF:
        raise ValueError(f"{wanted[0] if wanted[0] < 0 else wanted[-1]} is no port")
    return np.array(wanted, np.int64)
