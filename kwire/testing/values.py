"""Captures whose record values are themselves Kafka frames: what a parser must not take for traffic.

Topics hold such values wherever Kafka is mirrored, recorded or debugged through Kafka. Where a parser has to look for
the next frame, each of them looks like one: with a size, a known API, a printable client_id.

How hard it is to tell such values from traffic is their ``Level``: from frames of anybody to chains of frames whose ids
go on from that of the frame around them, in segments that begin with them, with acknowledgements inside of them.

Rules kept here:

- The new capture is as good as the old one: connections are opened and closed, frames have the times of the old ones,
  checksums are right, and record sets decode.
- Connections without a frame that was understood are left out.
"""

from __future__ import annotations

import io
import random
import struct
from collections import defaultdict
from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise, zip_longest
from typing import Any, Final, NamedTuple

from kwire import records
from kwire.capture.frames import Frame
from kwire.capture.reading import Reading
from kwire.errors import CaptureError, KwireError
from kwire.kernels.layouts import Status
from kwire.protocol.headers import Request, encode_request, encode_response
from kwire.schema.keys import ApiKey
from kwire.testing.packets import ACK, FIN, RAW, SYN, End, Packet, ip_packet, rebuilt, segment

__all__ = ["Level", "frames_as_values"]

_MSS: Final = 1460
_MICROSECOND: Final = 1_000
_LARGEST_VALUE: Final = 2000
"""Bytes of a frame that becomes a value, at most."""
_LONGEST_CHAIN: Final = 12
_MOST_AHEAD: Final = 4
"""Requests that are sent before an earlier response has ended, at most."""


class Level(StrEnum):
    """What record values are."""

    OTHER_IDS = "other-ids"
    """Frames of any connection of the capture."""
    SAME_CLIENT = "same-client"
    """Chains of frames of the same connection."""
    GOES_ON = "ids-go-on"
    """The same, with correlation ids that go on from that of the frame around them, or from one near it."""
    AT_BORDERS = "at-borders"
    """The same, in TCP segments that begin where those frames do."""
    EPOCHS = "epochs"
    """Ids that go on, in batches whose size and leader epoch look like the size and id of a response."""
    PARTIAL = "partial"
    """Ids that go on, in chains that begin and end within a frame."""
    ACKNOWLEDGED = "acknowledged"
    """Like ``AT_BORDERS``; besides, both ends acknowledge at such borders, and send while the other one does."""


class _Sent(NamedTuple):
    """A frame of a new connection."""

    frame: Frame
    data: bytes
    """With its size."""
    borders: Sequence[int]
    """Where in it frames begin or end that are values."""

    @property
    def time(self) -> int:
        """When it was captured, 0 where the capture does not state it."""
        return self.frame.time or 0


def frames_as_values(capture: bytes, rng: random.Random, level: Level = Level.OTHER_IDS) -> list[Packet]:
    """The packets of a capture in which every record's value is one of the frames of ``capture``, or several."""
    frames: list[Frame] = []
    try:
        for part in Reading(io.BytesIO(capture)):
            frames += [frame for frame in part if frame.status in (Status.OK, Status.UNSUPPORTED)]
    except CaptureError:
        pass  # what stands before the damage was read
    frames.sort(key=lambda frame: frame.number)
    everybody = _Values(frames, rng, level)
    of: dict[int, list[Frame]] = defaultdict(list)
    for frame in frames:
        of[frame.connection].append(frame)
    own = everybody if level is Level.OTHER_IDS else None
    values = {number: own or _Values(some, rng, level) for number, some in of.items()}
    sent: dict[int, list[_Sent]] = defaultdict(list)
    for frame in frames:
        sent[frame.connection].append(values[frame.connection].changed(frame))
    packets: list[Packet] = []
    for some in sent.values():
        packets += _Connection(some, rng, level).packets()
    return sorted(packets, key=lambda packet: packet.time)


def _sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


class _Values:
    """What values are made of."""

    def __init__(self, frames: Sequence[Frame], rng: random.Random, level: Level) -> None:
        small = [frame for frame in frames if 0 < len(frame.data) <= _LARGEST_VALUE]
        self._any = [_sized(frame.data) for frame in small] or [_sized(bytes(8))]
        with_id = [frame for frame in small if frame.correlation_id is not None]
        self._asked = [_sized(frame.data) for frame in with_id if not frame.is_response]
        self._answered = [_sized(frame.data) for frame in with_id if frame.is_response]
        self._rng = rng
        self._level = level
        self._made: list[list[bytes]] = []

    def changed(self, frame: Frame) -> _Sent:
        """A frame with other values in its records, if it has any."""
        self._made = []
        data = _sized(self._encoded(frame))
        borders = []
        at = 0
        for chain in self._made:
            at = max(0, data.find(b"".join(chain), at))
            for one in chain:
                borders.append(at)
                at += len(one)
            borders.append(at)
        return _Sent(frame, data, borders)

    def _encoded(self, frame: Frame) -> bytes:
        produce, fetch = frame.api_key == ApiKey.PRODUCE, frame.api_key == ApiKey.FETCH
        if not (produce or fetch) or produce == frame.is_response:
            return frame.data
        try:
            message = frame.message
            body: Any = message.body
            topics = body.responses if frame.is_response else body.topic_data
            for topic in topics:
                for partition in topic.partitions if frame.is_response else topic.partition_data:
                    if partition.records:
                        partition.records = self.record_set(bytes(partition.records), frame)
            version = frame.api_version or 0
            if isinstance(message, Request):
                header: Any = message.header
                return encode_request(
                    body, api_version=version, correlation_id=header.correlation_id, client_id=header.client_id
                )
            return encode_response(body, api_version=version, correlation_id=frame.correlation_id or 0)
        except KwireError:
            return frame.data

    def record_set(self, data: bytes, frame: Frame | None = None) -> bytes:
        """A record set with other values, not compressed."""
        out = []
        for batch in records.decode(data):
            if batch.is_control or not batch.records:
                return data
            for record in batch.records:
                record.value = self._value(frame)
            more: dict[str, Any] = {}
            if batch.magic == 2:
                more = {
                    "producer_id": batch.producer_id,
                    "producer_epoch": batch.producer_epoch,
                    "base_sequence": batch.base_sequence,
                    "partition_leader_epoch": batch.partition_leader_epoch,
                    "is_transactional": batch.is_transactional,
                }
                if self._level is Level.EPOCHS and frame is not None:
                    more["partition_leader_epoch"] = self._near(frame)
            out.append(records.encode(batch.records, magic=batch.magic, base_offset=batch.base_offset, **more))
        return b"".join(out)

    def _value(self, frame: Frame | None) -> bytes:
        rng = self._rng
        if self._level is Level.OTHER_IDS or frame is None or not (self._asked or self._answered):
            return b"".join(rng.choice(self._any) for _ in range(rng.choice((1, 1, 1, 2, 5))))
        chain = self._chain(frame)
        if self._level is Level.PARTIAL:
            chain[0] = chain[0][rng.randrange(len(chain[0])) :]
            chain[-1] = chain[-1][: rng.randint(1, len(chain[-1]))] if chain[-1] else b""
        self._made.append(chain)
        return b"".join(chain)

    def _chain(self, frame: Frame) -> list[bytes]:
        """Frames that look like what may follow: requests within a request, mostly."""
        rng = self._rng
        same, others = (self._answered, self._asked) if frame.is_response else (self._asked, self._answered)
        pool = rng.choice((same, same, same, others, same + others)) or same or others
        chain = [rng.choice(pool) for _ in range(rng.randint(1, _LONGEST_CHAIN))]
        if self._level is Level.SAME_CLIENT:
            return chain
        first = self._near(frame)
        asked = set(self._asked)
        for k, one in enumerate(chain):
            at = 8 if one in asked else 4
            chain[k] = one[:at] + struct.pack(">i", first + k & 0x7FFFFFFF) + one[at + 4 :]
        return chain

    def _near(self, frame: Frame) -> int:
        """An id near that of a frame, that of the next one mostly."""
        return max(0, (frame.correlation_id or 0) + self._rng.choice((-2, -1, 0, 0, 1, 1, 1, 2, 3)))


class _Connection:
    """A connection that carries frames."""

    def __init__(self, sent: Sequence[_Sent], rng: random.Random, level: Level) -> None:
        first = sent[0].frame
        self._ends = [End(end.host, end.port) for end in (first.client, first.broker)]
        self._seqs = [rng.getrandbits(32), rng.getrandbits(32)]
        self._sent = sent
        self._rng = rng
        self._level = level
        self._packets: list[Packet] = []

    def packets(self) -> list[Packet]:
        """Its packets, from SYN to FIN."""
        times = [one.time for one in self._sent]
        begin = min(times) - 10 * _MICROSECOND
        self._send(0, SYN, b"", begin)
        self._send(1, SYN | ACK, b"", begin)
        self._send(0, ACK, b"", begin)
        if self._level is Level.ACKNOWLEDGED:
            end = self._at_once()
        else:
            self._in_turn()
            end = max(times)
        end += 10 * _MICROSECOND
        self._send(0, FIN | ACK, b"", end)
        self._send(1, FIN | ACK, b"", end)
        return self._packets

    def _send(self, side: int, flags: int, payload: bytes, time: int) -> None:
        ends, seqs = self._ends, self._seqs
        tcp = struct.pack(
            ">HHIIBBHHH", ends[side].port, ends[1 - side].port, seqs[side], seqs[1 - side], 0x50, flags, 65535, 0, 0
        )
        data = ip_packet(ends[side], ends[1 - side], 6, tcp + payload)
        part = segment(Packet(time, data, len(data), RAW))
        assert part is not None
        self._packets.append(rebuilt(part))
        seqs[side] = seqs[side] + len(payload) + (1 if flags & (SYN | FIN) else 0) & 0xFFFFFFFF

    def _cut(self, data: bytes, borders: Sequence[int]) -> list[bytes]:
        """Data as segments."""
        cuts = {0}
        if self._level in (Level.AT_BORDERS, Level.ACKNOWLEDGED):
            cuts |= {at for at in borders if at < len(data) and self._rng.random() < 0.7}
        ordered = [*sorted(cuts), len(data)]
        return [data[at : min(at + _MSS, end)] for begin, end in pairwise(ordered) for at in range(begin, end, _MSS)]

    def _in_turn(self) -> None:
        """Sends a frame after the other one."""
        # Frames of one segment stay together: a client that pipelines writes several at once.
        held, borders = b"", list[int]()
        for one, following in zip_longest(self._sent, self._sent[1:]):
            frame = one.frame
            borders += [len(held) + at for at in one.borders]
            held += one.data
            if following is not None:
                other = following.frame
                if (other.is_response, following.time) == (frame.is_response, one.time):
                    continue
            for part in self._cut(held, borders):
                self._send(int(frame.is_response), ACK, part, one.time)
            held, borders = b"", []
            self._send(int(not frame.is_response), ACK, b"", one.time)

    def _at_once(self) -> int:
        """Sends requests before earlier responses have ended, and acknowledges within frames. Returns the time."""
        rng = self._rng
        order = list(range(len(self._sent)))
        place = {(one.frame.is_response, one.frame.correlation_id): k for k, one in enumerate(self._sent)}
        queues = [[k for k in order if self._sent[k].frame.is_response == (side == 1)] for side in (0, 1)]
        parts: list[list[bytes]] = [[], []]
        done: set[int] = set()
        under_way: list[int] = [-1, -1]
        time = 0
        while queues[0] or queues[1] or parts[0] or parts[1]:
            allowed = []
            for side in (0, 1):
                if parts[side]:
                    allowed.append(side)
                elif queues[side]:
                    k = queues[side][0]
                    other = queues[1 - side][0] if queues[1 - side] else under_way[1 - side]
                    if side == 1:
                        asked = place.get((False, self._sent[k].frame.correlation_id))
                        # Its request has been sent, or is not known.
                        ready = asked in done or (asked is None and (other > k or not queues[0]))
                    else:
                        ready = sum(one < k for one in queues[1]) + bool(parts[1]) <= _MOST_AHEAD
                    if ready:
                        allowed.append(side)
            side = rng.choice(allowed or [0 if queues[0] else 1])
            if len(allowed) == 2 and not (parts[0] or parts[1]) and rng.random() < 0.7:
                side = min((0, 1), key=lambda one: queues[one][0])
            if not parts[side]:
                k = under_way[side] = queues[side].pop(0)
                time = max(time, self._sent[k].time)
                parts[side] = self._cut(self._sent[k].data, self._sent[k].borders)
            time += _MICROSECOND
            self._send(side, ACK, parts[side].pop(0), time)
            if not parts[side]:
                done.add(under_way[side])
                under_way[side] = -1
            if rng.random() < 0.4:
                self._send(1 - side, ACK, b"", time)
        return time
