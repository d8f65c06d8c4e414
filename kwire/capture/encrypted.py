"""TLS in a capture: between the TCP segments of a window and its streams, plaintext takes the place of ciphertext.

Strategy: a connection that begins with a hello of TLS is taken out of the table of segments. Its segments are put in
order as those of any other (``streams.place``). They have tables of their own, because their positions count
ciphertext. The pieces go through a ``Decryptor`` in the order of packets. What it gives comes back as segments of the
same streams, whose positions count plaintext from where the stream began. So framing sees what was said and when it
could be known. No later stage knows of TLS.

Rules kept here:

- A segment of plaintext has the time and the order of the packet that completed its record, so windows do not matter.
- What could not be read is a segment without bytes. The capture has such segments too, where packets are longer than
  its snapshot length. Framing reports a gap, and finds the next frame.
- If nothing of a connection can be read, it comes out as the first bytes that it had. Framing sees what they are: they
  give it its one row, with a ``Reason``.
- Positions of plaintext are never after those of the ciphertext. So positions from tracking (acknowledgements, the end
  of a stream) never cut off what was read. The end of a stream is moved once its last byte has been processed.
- Once a stream was read to its end, ``end`` is that of the plaintext, and ``end_order`` the packet that completed it.
- A hello marks a connection as TLS only if nothing of it was put in order before. Framing has seen that, and it cannot
  be taken back.
- The state of a connection can be given out and taken back; there is no key in it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from kwire.kernels import streams
from kwire.kernels.engine import Engine
from kwire.kernels.layouts import (
    ABSENT,
    AT_THE_END,
    NO_TIME,
    PACKETS_BEFORE,
    SEGMENT,
    STREAM,
    Reason,
    Role,
    Status,
    joined,
    moved,
)
from kwire.kernels.tracking import Known
from kwire.naming import counted
from kwire.tls import Decryptor, KeyLog, Verdict
from kwire.tls.allowance import Allowance

__all__ = ["Encrypted", "Tls", "Window"]

_HELLO_BYTES: Final = 7
"""Bytes of a segment that show a hello.

These are a record's header, the type of a message and a byte of its size.
"""
_RECORD: Final = ((0, 22, 22), (1, 3, 3), (2, 0, 4))
"""A record of a handshake begins so: where a byte stands, and which values it may have."""
_HELLO: Final = (*_RECORD, (5, 1, 2), (6, 0, 0))
"""And with a hello of less than 64 kB."""
_FIRST_BYTES: Final = 16
"""How many of a connection are remembered, for framing to recognise it by if it cannot be read."""
_PIECE: Final = ("order", "pos", "len", "off", "time", "clock")
_CONN: Final = ("opener", "opener_order", "closed_order")
_NOTHING: Final = (NO_TIME, ABSENT)
"""Clock and time of what came with no bytes: before all clocks."""
_ACTIVE: Final = ("stream", "first", "end")

_REASONS: Final = {
    Verdict.NO_KEY: Reason.NO_KEY,
    Verdict.WRONG_KEY: Reason.WRONG_KEY,
    Verdict.VERSION: Reason.TLS_VERSION,
    Verdict.SUITE: Reason.TLS_SUITE,
    Verdict.COMPRESSED: Reason.TLS_COMPRESSED,
    Verdict.NO_HANDSHAKE: Reason.NO_HANDSHAKE,
    Verdict.NOT_TLS: Reason.NOT_TLS,
}

Array = Any
_Why = tuple[Reason, int]
"""Why nothing can be read, and the number of the version or of the cipher suite."""


class Window(NamedTuple):
    """What a window has: see ``streams.place`` for the meaning of each.

    ``known`` is as tracking leaves it.
    """

    buf: Array
    segments: Array
    known: Known
    clock: Array
    first_order: int
    now: int
    ration: int
    final: bool
    engine: Engine


@dataclass(frozen=True, slots=True)
class Tls:
    """What is known of the TLS of a connection.

    This is ``TLS 1.3``, the name of the cipher suite and the host that the client asked for. None where the handshake
    does not say it. ``why``: what became of it, ``decrypted`` or a sentence.
    """

    version: str | None
    cipher: str | None
    server_name: str | None
    why: str


class _Plaintext:
    """The segments that take the place of others. ``base``: where their bytes will stand."""

    def __init__(self, base: int) -> None:
        self._at = base
        self._rows: list[tuple[int, ...]] = []
        self._parts: list[bytes] = []

    def add(self, stream: int, pos: int, length: int, data: bytes | None, when: tuple[int, int], order: int) -> None:
        """A segment of ``length`` bytes; ``data`` None: they could not be read.

        ``when``: clock and time of the bytes that made it readable.
        """
        clock, time = when
        time = NO_TIME if time == ABSENT else time
        self._rows.append((stream, pos, length, -1 if data is None else self._at, time, order, clock, 0, order, -1))
        if data is not None:
            self._parts.append(data)
            self._at += length

    def appended_to(self, buf: Array, segments: Array) -> tuple[Array, Array]:
        """The bytes and the segments, after others."""
        if not self._rows:
            return buf, segments
        data = np.frombuffer(b"".join(self._parts), np.uint8)
        return np.concatenate([buf, data]), joined([segments, np.array(self._rows, SEGMENT)])


def _later(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """The later clock of both, and the later time.

    Where a clock was set back, or packets stand in the wrong order, these are not of the same packet. ``b`` came after
    ``a``: where it has no time, that of both is not known.
    """
    time = a[1] if b[1] == ABSENT else b[1] if b[1] == NO_TIME or a[1] == ABSENT else max(a[1], b[1])
    return max(a[0], b[0]), time


def _begins_record(data: bytes) -> bool:
    """Whether bytes begin like a record of a handshake."""
    return len(data) >= len(_RECORD) and all(least <= data[at] <= most for at, least, most in _RECORD)


class _Connection:
    """A connection of TLS, in a slot of the table of connections."""

    def __init__(self, slot: int, decryptor: Decryptor, rows: Array) -> None:
        self.slot = slot
        self.decryptor: Decryptor | None = decryptor
        """None once it is over."""
        self.rows: Array = np.zeros(2, STREAM)
        """Its two streams as ciphertext."""
        moved(rows, self.rows)
        self.plain = [-1, -1]
        """Up to where each of them has plaintext; -1 before the first byte."""
        self.read = self.rows["next"].tolist()
        """Up to where each of them was given to the decryptor, as ciphertext."""
        self.begun = [b"", b""]
        """The first bytes of both."""
        self.first = (-1, 0, 0)
        """Side, clock and time of the first bytes: of the end that opened it, where that is known."""
        self.times = [_NOTHING, _NOTHING]
        """When the latest of each was known: clock and time, as a piece has them."""
        self.order = -1
        """When the latest of both was, as the number of a packet."""
        self.given = False
        """Whether there was plaintext."""
        self.reported: Tls | None = None
        """What was known of it when it was over."""
        self._ends: list[tuple[int, int, int]] = []
        """Side, position and packet of the ends of its streams, as ciphertext, that are still to be reached."""
        self.lost = 0
        """How many bytes of a connection with plaintext could not be read."""

    def follow(self, table: Array) -> None:
        """Take over what tracking has found out about its streams."""
        fresh = table[2 * self.slot : 2 * self.slot + 2]
        for name in ("reference", "start", "start_order"):
            self.rows[name] = fresh[name]
        # Tracking notes an end once, and may find that of the plaintext there afterwards.
        ends = self.rows["end"] < 0
        for name in ("end", "end_order"):
            self.rows[name][ends] = fresh[name][ends]

    def take(
        self, piece: tuple[int, ...], conn: tuple[int, ...], pair: Array, view: memoryview, out: _Plaintext
    ) -> _Why | None:
        """Give a piece to the decryptor, in the order of packets: why nothing can be read, where that has come out now.

        - ``piece``: its order, its side and the other columns of ``_PIECE``.
        - ``conn``: ``_CONN`` of the row of the connection.
        - ``pair``: the rows of its two streams as framing has them. They get where plaintext begins and ends.
        """
        order, side, pos, length, off, time, clock = piece
        opener, opened, over = conn
        reason = None
        when = clock, time
        if order > over:
            reason = self.finish(pair, over, out)
        if self._ends:
            self.set_ends(pair, order, out)
        if self.plain[side] < 0:
            self.plain[side] = pos
            if pair["next"][side] < 0:
                # Where it begins is known: plaintext does not wait for that once more.
                pair["next"][side], pair["synced"][side] = pos, 0
        if self.first[0] < 0 or (side == opener != self.first[0] and opened <= order):
            self.first = side, *when
        self.times[side] = _later(self.times[side], when)
        self.order, self.read[side] = order, pos + length
        if off >= 0 and len(self.begun[side]) < _FIRST_BYTES:
            self.begun[side] += view[off : off + min(length, _FIRST_BYTES - len(self.begun[side]))].tobytes()
        decryptor = self.decryptor
        if decryptor is not None and not decryptor.has_failed:
            if off >= 0:
                found = decryptor.feed(side, view[off : off + length], pos)
            else:
                found = decryptor.feed(side, b"", pos + length)
            self._give(found, when, out)
            if not decryptor.has_failed:
                return reason
            reason = self._fail(decryptor, out)
        if self.given:
            # It could be read so far.
            self._write(side, length, None, out)
        return reason

    def finish(self, pair: Array, order: int, out: _Plaintext) -> _Why | None:
        """Nothing more will come, as was known with packet ``order``: as ``take``."""
        self.set_ends(pair, order, out)
        decryptor = self.decryptor
        if decryptor is None:
            return None
        had_failed = decryptor.has_failed
        self.order = max(self.order, order)
        self._give(decryptor.finish(), _NOTHING, out)
        self.reported = self.tls
        self.decryptor = None
        return self._fail(decryptor, out) if decryptor.has_failed and not had_failed else None

    def note_ends(self, pair: Array) -> None:
        """Note the known ends of its streams that framing does not have yet."""
        rows = zip(*(self.rows[name].tolist() for name in ("end", "end_order")), strict=True)
        ends = [(side, *row) for side, row in enumerate(rows)]
        self._ends = [one for one in ends if one[1] >= 0 and pair["end"][one[0]] == one[1]]

    def set_ends(self, pair: Array, before: int, out: _Plaintext) -> None:
        """Where a stream was over before that packet, and read to its end: puts the end of the plaintext there.

        That it ends counts from the packet with which both were known. Until then the end that tracking noted stands,
        which plaintext does not reach.
        """
        for one in tuple(self._ends):
            side, end, order = one
            if end <= self.read[side] and order < before:
                self._ends.remove(one)
                self.order = max(order, self.order)
                if self.decryptor is not None:
                    self._give(self.decryptor.end(side), _NOTHING, out)
                # One without a byte ends where it begins.
                pair["end"][side] = self.plain[side] if self.plain[side] >= 0 else end
                pair["end_order"][side] = self.order

    @property
    def tls(self) -> Tls | None:
        """What is known of it."""
        one = self.decryptor
        return self.reported if one is None else Tls(one.version, one.cipher, one.server_name, one.why)

    def _give(self, found: list[Any], when: tuple[int, int], out: _Plaintext) -> None:
        for plain in found:
            # What one says may let the other be read.
            self.times[plain.side] = _later(self.times[plain.side], when)
            if plain.lost:
                self._write(plain.side, plain.lost, None, out)
            if plain.data:
                self.given = True
                self._write(plain.side, len(plain.data), plain.data, out)

    def _fail(self, decryptor: Decryptor, out: _Plaintext) -> _Why | None:
        if self.given:
            return None
        side = max(0, self.first[0])
        if not _begins_record(self.begun[side]) and _begins_record(self.begun[1 - side]):
            # The first bytes of the client are missing: what there is of its hello tells nothing.
            side = 1 - side
        self._write(side, len(self.begun[side]), self.begun[side], out, self.first[1:])
        reason, (version, suite) = _REASONS[decryptor.verdict], decryptor.numbers
        return reason, version if reason == Reason.TLS_VERSION else suite

    def _write(
        self, side: int, length: int, data: bytes | None, out: _Plaintext, when: tuple[int, int] | None = None
    ) -> None:
        if data is None:
            self.lost += length
        pos = max(0, self.plain[side])
        out.add(2 * self.slot + side, pos, length, data, when or self.times[side], self.order)
        self.plain[side] = pos + length


class _Placed(NamedTuple):
    """What some connections have, in order; their streams are numbered from 0. See ``streams.place``."""

    segments: Array
    connections: Array
    data: Array
    pieces: Array
    active: Array
    order: Array


def _placed(window: Window, n_held: int, slots: Array, table: Array) -> _Placed:
    """Put in order what a window has of the connections in ``slots``, with ``table`` for their streams."""
    connections = window.known.connections.take(slots)
    # Here they are wanted, whatever they are to framing.
    connections["role"] = Role.UNKNOWN
    wanted = np.isin(window.segments["stream"] >> 1, slots)
    n_held = int(np.count_nonzero(wanted[:n_held]))
    segments = window.segments.take(np.flatnonzero(wanted))
    segments["stream"] = 2 * np.searchsorted(slots, segments["stream"] >> 1) + (segments["stream"] & 1)
    data, pieces, active, order = streams.place(
        window.buf, segments, n_held, connections, table, len(table), window.clock, window.first_order,
        window.ration, window.final, window.engine,
    )  # fmt: skip
    return _Placed(segments, connections, data, pieces, active, order)


class Encrypted:
    """The connections of a capture that speak TLS, and their keys.

    Raises ``MissingExtraError`` without the extra ``tls``.
    """

    def __init__(self, keys: KeyLog) -> None:
        Decryptor(keys)
        self._keys = keys
        self._allowance = Allowance()
        """What all connections together may try."""
        self._of: dict[int, _Connection] = {}
        """By slot; those that are over as well, since segments may still come."""
        self.slots: list[int] = []
        """The same, in the order in which they were found."""
        self._is_tls: Array = np.zeros(64, bool)
        """The same by slot, for whole columns."""
        self._is_open: Array = np.zeros(64, bool)
        """Of those, which have a decryptor."""
        self._holed: set[int] = set()
        """Slots of those that have a hole."""
        self._held: Array = np.empty(0, np.uint8)
        self._segments: Array = np.empty(0, SEGMENT)
        """Ciphertext after holes."""
        self._reasons: dict[int, _Why] = {}

    def _make_room(self, count: int) -> None:
        while len(self._is_tls) < count:
            self._is_tls, self._is_open = (np.append(one, np.zeros_like(one)) for one in (self._is_tls, self._is_open))

    # -- a window

    def opened(self, window: Window, n_held: int) -> tuple[Array, Array, int]:
        """The bytes and segments of a window with plaintext in place of TLS, and how many of them streams held.

        The first ``n_held`` segments are what they held before: plaintext, where they are of TLS.
        """
        buf, segments, known = window.buf, window.segments, window.known
        self._make_room(known.n_connections)
        found = self._find(window, n_held)
        if not self._of:
            return buf, segments, n_held
        mine = self._is_tls[segments["stream"] >> 1]
        # What came before its hello was held as it was.
        mine[:n_held] = np.isin(segments["stream"][:n_held] >> 1, found)
        sealed = segments.take(np.flatnonzero(mine))
        rest = segments.take(np.flatnonzero(~mine))
        still_held = n_held - int(np.count_nonzero(mine[:n_held]))
        if len(self._held):
            sealed["off"] += np.where(sealed["off"] >= 0, len(self._held), 0)
            buf = np.concatenate([self._held, buf])
        n_sealed = len(self._segments)
        sealed = joined([self._segments, sealed])
        active = np.zeros(known.n_connections, bool)
        active[sealed["stream"] >> 1] = True
        # What ends without a byte: a FIN, a RST, a capture.
        active |= self._is_open[: len(active)] & (
            window.final
            | (known.connections["closed_order"][: len(active)] < AT_THE_END)
            | (known.streams["end_order"][: 2 * len(active)] >= window.first_order).reshape(-1, 2).any(1)
        )
        slots = np.flatnonzero(active)
        out = _Plaintext(len(window.buf))
        if len(slots):
            self._read(window._replace(buf=buf, segments=sealed), n_sealed, slots, out)
        return *out.appended_to(window.buf, rest), still_held

    def _find(self, window: Window, n_held: int) -> Array:
        """Note the connections that begin with a hello among the segments after ``n_held``: their slots.

        Nothing of such a connection was put in order before the packet with the hello. Otherwise framing has looked at
        it, and has decided what it is.
        """
        buf, known, fresh = window.buf, window.known, window.segments[n_held:]
        able = np.flatnonzero((fresh["len"] > 0) & (fresh["off"] >= 0))
        stream, off, length = fresh["stream"][able], fresh["off"][able], fresh["len"][able]
        table, slot, order = known.streams, stream >> 1, fresh["order"][able]
        # A segment that begins a stream for certain may be short: no frame of Kafka has a size that begins like TLS.
        starts = (table["start"][stream] >= 0) & (table["start_order"][stream] <= order)
        hello = np.where(starts, fresh["pos"][able] == table["start"][stream], length >= _HELLO_BYTES)
        hello &= (table["latest"][stream] == ABSENT) & (table["latest"][stream ^ 1] == ABSENT) & ~self._is_tls[slot]
        for at, least, most in _HELLO:
            value = buf[np.minimum(off + at, len(buf) - 1)]
            hello &= (length <= at) | ((least <= value) & (value <= most))
        found, first = np.unique(slot[hello], return_index=True)
        if not len(found):
            return found
        hello_order = order[hello][first]
        seen = np.full(known.n_connections, AT_THE_END)
        some = window.segments["len"] > 0
        np.minimum.at(seen, window.segments["stream"][some] >> 1, window.segments["order"][some])
        other = np.flatnonzero(hello_order > seen[found])
        if len(other):
            # Something was captured before. It is not known yet whether it had to wait for missing bytes.
            seen[found] = AT_THE_END
            own_streams = known.streams.take(np.stack([2 * found[other], 2 * found[other] + 1], 1).ravel())
            placed = _placed(window, n_held, found[other], joined([own_streams]))
            for of_stream, begin, end in zip(*(placed.active[name].tolist() for name in _ACTIVE), strict=True):
                if end > begin:
                    at = found[other[of_stream >> 1]]
                    seen[at] = min(seen[at], placed.pieces["order"][begin])
            found = found[hello_order <= seen[found]]
        for one in found.tolist():
            own = table[2 * one : 2 * one + 2]
            self._of[one] = _Connection(one, Decryptor(self._keys, self._allowance), own)
            self.slots.append(one)
            self._is_tls[one] = self._is_open[one] = True
            # As plaintext, it has no holes.
            own["since"] = AT_THE_END
        return found

    def _read(self, window: Window, n_held: int, slots: Array, out: _Plaintext) -> None:
        """Read what there is of the connections in ``slots``; ``window`` has the segments of connections of TLS."""
        known = window.known
        of = [self._of[slot] for slot in slots.tolist()]
        next_order = window.first_order + len(window.clock)
        for one in of:
            one.follow(known.streams)
        table = joined([one.rows for one in of])
        segments, connections, data, pieces, active, order = _placed(window, n_held, slots, table)
        of_stream = dict.fromkeys(range(len(table)), pieces[:0])
        for stream, first, end in zip(*(active[name].tolist() for name in _ACTIVE), strict=True):
            of_stream[stream] = pieces[first:end]
            if end > first:
                table["next"][stream] = pieces["pos"][end - 1] + pieces["len"][end - 1]
        rows, given = [], []
        for k, one in enumerate(of):
            moved(table[2 * k : 2 * k + 2], one.rows)
            known.streams["holed"][2 * one.slot : 2 * one.slot + 2] = one.rows["holed"]
            (self._holed.add if one.rows["holed"].any() else self._holed.discard)(one.slot)
            pair = known.streams[2 * one.slot : 2 * one.slot + 2]
            one.note_ends(pair)
            conn = tuple(int(connections[name][k]) for name in _CONN)
            rows.append((one, conn, pair))
            for side in (0, 1):
                own = of_stream[2 * k + side]
                columns = zip(*(own[name].tolist() for name in _PIECE), strict=True)
                given += [(piece[0], k, (piece[0], side, *piece[1:])) for piece in columns]
            if conn[-1] < next_order:
                # After all pieces that came up to then.
                given.append((conn[-1], len(of), (k,)))
        # What they may try they have together: the order in which they try must not depend on windows.
        given.sort()
        view = memoryview(data)
        for at, k, piece in given:
            if k < len(of):
                one, conn, pair = rows[k]
                why = one.take(piece, conn, pair, view, out)
            else:
                one, _, pair = rows[piece[0]]
                why = one.finish(pair, at, out)
            if why is not None:
                self._reasons[one.slot] = why
        for one, conn, pair in rows:
            one.set_ends(pair, next_order, out)
            if window.final:
                why = one.finish(pair, conn[-1], out)
                if why is not None:
                    self._reasons[one.slot] = why
            self._is_open[one.slot] = one.decryptor is not None
        self._held, kept = streams.keep(
            window.buf, segments, data, pieces, order, active, connections, table, window.final, window.engine
        )
        kept["stream"] = 2 * slots[kept["stream"] >> 1] + (kept["stream"] & 1)
        self._segments = kept

    def note_holes(self, known: Known) -> None:
        """Say where the ciphertext has holes, after ``streams.place``, which sees none in plaintext.

        Tracking needs to know whether acknowledgements matter.
        """
        for slot in self._holed:
            known.streams["holed"][2 * slot : 2 * slot + 2] = self._of[slot].rows["holed"]

    def forget_positions(self, known: Known) -> None:
        """At the end of a capture, drop the positions that packets stated.

        They count ciphertext, so they do not say how much plaintext is missing.
        """
        own = np.flatnonzero(np.repeat(self._is_tls[: known.n_connections], 2))
        known.streams["reference"][own] = known.streams["next"][own]
        known.streams["acked"][own] = -1

    def explain(self, rows: Array) -> None:
        """Say in the frames of encrypted connections why they are."""
        for k in np.flatnonzero(rows["status"] == Status.ENCRYPTED).tolist():
            # What did not begin with a hello was not looked at here.
            rows["reason"][k], rows["detail"][k] = self._reasons.get(int(rows["slot"][k]), (Reason.NO_HANDSHAKE, 0))

    def notes(self) -> list[str]:
        """Sentences about what could not be read of connections that were."""
        lost = [one.lost for one in self._of.values() if one.lost]
        if not lost:
            return []
        said = f"{counted(sum(lost), 'byte')} of {counted(len(lost), 'connection')} over TLS could not be decrypted"
        return [f"{said}, with packets missing or keys"]

    def of(self, slot: int) -> Tls | None:
        """What is known of the TLS of a connection; None of any other."""
        one = self._of.get(slot)
        return None if one is None else one.tls

    # -- state out and in

    def state(self, slot: int) -> dict[str, Any] | None:
        """What is remembered of a connection that speaks TLS, as JSON can hold it; None of any other."""
        one = self._of.get(slot)
        if one is None:
            return None
        held = self._segments.take(np.flatnonzero(self._segments["stream"] >> 1 == slot))
        segments = []
        for stream, pos, length, off, time, order, clock, doubt, packet, ack in held.tolist():
            data = None if off < 0 else base64.b64encode(self._held[off : off + length].tobytes()).decode()
            one_held = {"side": stream & 1, "pos": pos, "len": length, "time": time, "order": order, "clock": clock}
            segments.append(one_held | {"doubt": doubt, "packet": packet, "ack": ack, "bytes": data})
        return {
            "decryptor": None if one.decryptor is None else one.decryptor.state(),
            "rows": [list(row) for row in one.rows.tolist()],
            "plain": one.plain,
            "begun": [base64.b64encode(some).decode() for some in one.begun],
            "first": list(one.first),
            "times": [*one.times[0], *one.times[1]],
            "order": one.order,
            "given": one.given,
            "lost": one.lost,
            "told": None if one.reported is None else list(astuple(one.reported)),
            "segments": segments,
        }

    def restore(self, states: Mapping[int, str], known: Known, whole: bool) -> None:
        """Take over what ``state`` gave, as JSON by slot, before there was a window. Raises ``CaptureError``.

        What ``kwire.capture.saved`` looks at is not looked at again. Not ``whole``: packets are counted anew.
        """
        rows: list[tuple[int, ...]] = []
        parts: list[bytes] = []
        held = 0
        self._make_room(known.n_connections)
        for slot, text in states.items():
            state = json.loads(text)
            # A state is bytes that were read: keys are derived again.
            self._allowance.earn(len(text))
            saved = state.get("decryptor")
            if saved is None:
                decryptor = Decryptor(self._keys, self._allowance)
            else:
                decryptor = Decryptor.restored(saved, self._keys, self._allowance)
            one = _Connection(slot, decryptor, np.array([tuple(row) for row in state["rows"]], STREAM))
            if saved is None:
                one.decryptor = None
            if state["told"] is not None:
                one.reported = Tls(*state["told"])
            one.plain, one.given, one.lost = state["plain"], state["given"], state["lost"]
            one.begun = [base64.b64decode(some) for some in state["begun"]]
            one.first, one.order = tuple(state["first"]), state["order"]
            one.times = [tuple(state["times"][:2]), tuple(state["times"][2:])]
            if not whole:
                for name in ("start_order", "end_order", "placed_order", "since"):
                    one.rows[name] = np.where(one.rows[name] == AT_THE_END, AT_THE_END, -1)
                one.order = -1
            self._of[slot] = one
            self.slots.append(slot)
            self._is_tls[slot], self._is_open[slot] = True, one.decryptor is not None
            if one.rows["holed"].any():
                self._holed.add(slot)
            for segment in state["segments"]:
                data = segment["bytes"]
                order = segment["order"] if whole else -1
                at = -1 if data is None else held
                times = segment["time"], order, segment["clock"]
                stream = 2 * slot + segment["side"]
                rows.append(
                    (
                        stream,
                        segment["pos"],
                        segment["len"],
                        at,
                        *times,
                        segment["doubt"],
                        segment["packet"] - (0 if whole else PACKETS_BEFORE),
                        segment["ack"],
                    )
                )
                if data is not None:
                    parts.append(base64.b64decode(data))
                    held += len(parts[-1])
        self._segments = np.array(rows, SEGMENT) if rows else np.empty(0, SEGMENT)
        self._held = np.frombuffer(b"".join(parts), np.uint8)
