"""What became of every byte of the Kafka connections of a capture: ``Account``.

Each byte that the capture has belongs to a row: to a frame, or to bytes in which no frame can be seen. A byte that was
captured before belongs to no row, since it was seen twice. This balance is added up beside the code that makes the
rows, so that a difference shows. Its sources are the segments of the packets and the positions of the rows
(``Frame.begin``, ``Frame.end``).

Rules kept here:

- Positions of a direction are sets of stretches, merged as they come. A connection without losses has one stretch. So
  memory grows with holes and with changes of status, not with bytes.
- Connections that are not Kafka are no part of the balance. Bytes of TLS count as ``encrypted``. Where they are
  decrypted, positions are of plaintext, and only repeated bytes are counted in ciphertext.
- A balance is whole when the capture has been read to its end: before that, unfinished frames are in no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from kwire.capture.connections import Connections
from kwire.capture.frames import Endpoint, Frames
from kwire.kernels.layouts import ABSENT, Role, Status

__all__ = ["Account", "Balance", "Line", "left_out", "total"]

Array = Any

_NONE: Final[Array] = np.zeros((2, 0), np.int64)
_KAFKA: Final = (Role.A_REQUESTS, Role.B_REQUESTS, Role.ENCRYPTED)


@dataclass(slots=True)
class Balance:
    """What became of the bytes of a direction of a connection, of a connection, or of all.

    ``captured`` are the bytes that the capture has, each counted once. ``rows`` says how many of them belong to rows,
    by the ``status`` of the rows. ``nowhere`` are in no row, and ``twice`` in more than one: both are 0, or kwire is
    wrong. ``repeated`` were captured again, or stand before the SYN, where the stream has no bytes. ``missing`` are
    known to have been sent and are not in the capture.
    """

    captured: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    nowhere: int = 0
    twice: int = 0
    repeated: int = 0
    missing: int = 0

    def add(self, other: Balance) -> None:
        """Add what became of others."""
        for name in ("captured", "nowhere", "twice", "repeated", "missing"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for status, count in other.rows.items():
            self.rows[status] = self.rows.get(status, 0) + count

    def __str__(self) -> str:
        said = [f"{count:,} {status}" for status, count in sorted(self.rows.items(), key=lambda one: -one[1])]
        text = f"{self.captured:,} bytes captured: {', '.join(said) or 'none in rows'}; {self.nowhere:,} in no row"
        if self.twice:
            text += f"; {self.twice:,} in several rows"
        return f"{text}; {self.repeated:,} captured again; {self.missing:,} missing"


@dataclass(frozen=True, slots=True)
class Line:
    """The balance of a direction.

    ``source`` sends. ``direction`` is ``request`` or ``response``, or ``encrypted`` if the connection is TLS that is
    not decrypted.
    """

    connection: int
    direction: str
    source: Endpoint
    target: Endpoint
    balance: Balance

    def __str__(self) -> str:
        ends = (f"{one.host}:{one.port}" for one in (self.source, self.target))
        return f"connection {self.connection}, {self.direction}s, {' > '.join(ends)}: {self.balance}".replace(
            "encrypteds", "encrypted"
        )


class Account:
    """Adds up while a capture is read; ``lines`` and ``total`` are what came of it."""

    def __init__(self) -> None:
        self._captured: dict[int, Array] = {}
        """Stretches that the capture has, by stream."""
        self._rows: dict[int, dict[int, Array]] = {}
        """Stretches of rows, by stream and status."""
        self._twice: dict[int, int] = {}
        self._brought: dict[int, int] = {}
        """Bytes of all segments."""
        self._sent: dict[int, Array] = {}
        """Stretches of these, by stream: of ciphertext, where it is one of TLS."""
        self._sealed: set[int] = set()
        """Slots of connections in whose segments plaintext takes the place of ciphertext."""

    def packets(self, segments: Array, roles: Array) -> None:
        """Take the segments that the packets of a window brought; ``roles`` of all connections."""
        for stream, rows in _by_stream(segments, roles):
            self._brought[stream] = self._brought.get(stream, 0) + int(rows["len"].sum())
            fresh = np.stack([rows["pos"], rows["pos"] + rows["len"]])
            self._sent[stream] = _union(self._sent.get(stream, _NONE), fresh)

    def sealed(self, slots: Sequence[int]) -> None:
        """Take the connections whose segments carry plaintext in place of ciphertext from now on.

        They are all connections so far, in the order in which they were found.
        """
        for slot in slots[len(self._sealed) :]:
            self._sealed.add(slot)
            # What was held before its hello was known is ciphertext, and nothing of it was read.
            for stream in (2 * slot, 2 * slot + 1):
                self._captured.pop(stream, None)

    def streams(self, segments: Array, roles: Array) -> None:
        """Take the segments that are read in a window: decrypted, and those that are held as well."""
        for stream, rows in _by_stream(segments, roles):
            fresh = np.stack([rows["pos"], rows["pos"] + rows["len"]])
            self._captured[stream] = _union(self._captured.get(stream, _NONE), fresh)

    def frames(self, frames: Frames) -> None:
        """Take the rows of a window."""
        rows = np.flatnonzero((frames["begin"] != ABSENT) & (frames["end"] > frames["begin"]))
        begin, end = frames["begin"][rows], frames["end"][rows]
        stream = 2 * frames["slot"][rows] + (frames["client_side"][rows] ^ frames["response"][rows])
        kind = stream * len(Status) + frames.statuses[rows]
        for one in np.unique(kind).tolist():
            mine = kind == one
            of_status = self._rows.setdefault(one // len(Status), {})
            before, fresh = of_status.get(one % len(Status), _NONE), np.stack([begin[mine], end[mine]])
            after = _union(before, fresh)
            doubled = _size(before) + _size(fresh) - _size(after)
            if doubled:
                self._twice[one // len(Status)] = self._twice.get(one // len(Status), 0) + doubled
            of_status[one % len(Status)] = after

    def lines(self, frames: Frames, roles: Array, numbers: Array, starts: Array) -> list[Line]:
        """The balance of each direction of the connections that are Kafka or encrypted, in their order.

        ``frames`` knows the ends of connections. ``roles`` and ``numbers`` are those of all connections. ``starts`` is
        where their streams begin as SYNs say, or -1.
        """
        made = []
        of_encrypted = {stream for stream in self._sent if int(roles[stream >> 1]) == Role.ENCRYPTED}
        for stream in sorted({*self._captured, *self._rows, *of_encrypted}):
            slot, side = divmod(stream, 2)
            role = int(roles[slot])
            if role not in _KAFKA:
                continue
            ends = frames.ends(slot)
            direction = "encrypted"
            if role != Role.ENCRYPTED:
                direction = "request" if side == role - Role.A_REQUESTS else "response"
            balance = self._balance(stream, role == Role.ENCRYPTED, int(starts[stream]))
            made.append(Line(int(numbers[slot]), direction, ends[side], ends[1 - side], balance))
        return made

    def _balance(self, stream: int, encrypted: bool, start: int) -> Balance:
        of_status = self._rows.get(stream, {})
        sent: Array = self._sent.get(stream, _NONE)
        sealed = stream >> 1 in self._sealed
        # Of one that cannot be decrypted, its first bytes stand for all.
        captured: Array = sent if sealed and encrypted else self._captured.get(stream, _NONE)
        everything = _union(_NONE, np.concatenate([_NONE, *of_status.values()], axis=1))
        outside = np.minimum(captured, start)
        if not (sealed and encrypted) and _size(outside) and not _common(_union(_NONE, outside), everything):
            # In front of its SYN there is nothing: a receiver passes over such bytes, as those of a keep-alive.
            captured = _union(_NONE, np.maximum(captured, start))
        rows = {Status(status).name.lower(): _common(captured, one) for status, one in of_status.items()}
        nowhere = _size(captured) - _common(captured, everything)
        if encrypted and nowhere:
            rows["encrypted"] = rows.get("encrypted", 0) + nowhere
            nowhere = 0
        known = np.concatenate([captured, everything], axis=1)
        # A size may promise more than the stream has in the end. Only holes and rows of lost bytes say what is missing.
        gaps: Array = of_status.get(int(Status.GAP), _NONE)
        last = max([int(one[1].max()) for one in (captured, gaps) if one.shape[1]], default=0)
        missing = 0
        if known.shape[1]:
            first = int(known[0].min())
            missing = max(0, last - first) - _size(captured)
        several = sum(_size(one) for one in of_status.values()) - _size(everything) + self._twice.get(stream, 0)
        repeated = self._brought.get(stream, 0) - _size(sent if sealed else captured)
        return Balance(_size(captured), {name: n for name, n in rows.items() if n}, nowhere, several, repeated, missing)


def total(lines: Iterable[Line]) -> Balance:
    """The balance of all lines together."""
    made = Balance()
    for line in lines:
        made.add(line.balance)
    return made


_NAMED_PORTS: Final = 8
"""How many ports are named of connections that were left out; those with the most connections."""


def left_out(known: Connections, ports: Sequence[int]) -> list[str]:
    """Sentences about the connections of a capture that are no part of the balance.

    They say why, how many, how many bytes their segments had, and to which ports. ``ports`` are those of the brokers,
    if they were named.

    The port is that of the end that did not open the connection; where that was not captured, the lower one.
    """
    rows = known.rows
    role, opener = rows["role"], rows["opener"]
    sent = known.sent[0]["payload"] + known.sent[1]["payload"]
    lower = np.minimum(rows["a_port"], rows["b_port"])
    server = np.where(opener < 0, lower, np.where(opener == 0, rows["b_port"], rows["a_port"]))
    readable = (role == Role.A_REQUESTS) | (role == Role.B_REQUESTS)
    other = "to ports that were not named" if ports else "that are not Kafka"
    reasons = (
        (~readable & (sent == 0), "without a byte"),
        ((role == Role.OTHER) & (sent > 0), other),
        ((role == Role.UNKNOWN) & (sent > 0), "of which nothing tells that they are Kafka"),
        ((role == Role.ENCRYPTED) & (sent > 0), "over TLS, which are not decrypted"),
    )
    made = []
    for which, text in reasons:
        if which.any():
            count = int(which.sum())
            many = f"1 connection {text.replace('they are', 'it is').replace('are', 'is')}" if count == 1 else ""
            found, counts = np.unique(server[which], return_counts=True)
            first = np.argsort(-counts, kind="stable")[:_NAMED_PORTS]
            named = [f"port {found[one]}: {counts[one]:,}" for one in first.tolist()]
            if len(found) > len(first):
                named.append(f"{len(found) - len(first):,} other ports: {int(counts.sum() - counts[first].sum()):,}")
            bytes_ = int(sent[which].sum())
            held = f", {bytes_:,} bytes" if bytes_ else ""
            made.append(f"left out: {many or f'{count:,} connections {text}'}{held} ({', '.join(named)})")
    return made


def _by_stream(segments: Array, roles: Array) -> Iterable[tuple[int, Array]]:
    """The segments that have bytes, by stream, without those of connections that are not Kafka."""
    rows = segments.take(np.flatnonzero(segments["off"] >= 0))
    rows = rows.take(np.flatnonzero(roles[rows["stream"] >> 1] != Role.OTHER))
    rows = rows.take(np.argsort(rows["stream"], kind="stable"))
    streams, begins = np.unique(rows["stream"], return_index=True)
    ends = np.append(begins, len(rows))[1:]
    for stream, begin, end in zip(streams.tolist(), begins.tolist(), ends.tolist(), strict=True):
        yield stream, rows[begin:end]


def _union(one: Array, other: Array) -> Array:
    """Two sets of stretches (begins, ends), in any order, as one: in order, and none touching the next."""
    begin, end = np.concatenate([one, other], axis=1)
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    first = np.ones(len(begin), bool)
    first[1:] = begin[1:] > reach[:-1]
    last = np.append(first[1:], np.ones(min(1, len(begin)), bool))
    return np.stack([begin[first], reach[last]])


def _size(stretches: Array) -> int:
    return int((stretches[1] - stretches[0]).sum())


def _common(one: Array, other: Array) -> int:
    """How many positions are in both of two sets whose stretches do not overlap."""
    return _size(one) + _size(other) - _size(_union(one, other))
