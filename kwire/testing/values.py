"""Captures whose record values are themselves Kafka frames: what a parser must not take for traffic.

Topics hold such values wherever Kafka is mirrored, recorded or debugged through Kafka. Where a parser has to look for
the next frame, each of them looks like one: with a size, a known API, a printable client_id.

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
from typing import Any, Final

from kwire import records
from kwire.capture.frames import Frame
from kwire.capture.reading import Reading
from kwire.errors import CaptureError, KwireError
from kwire.kernels.layouts import Status
from kwire.protocol.headers import Request, encode_request, encode_response
from kwire.schema.keys import ApiKey
from kwire.testing.packets import ACK, FIN, RAW, SYN, End, Packet, ip_packet, rebuilt, segment

__all__ = ["frames_as_values"]

_MSS: Final = 1460
_MICROSECOND: Final = 1_000


def frames_as_values(capture: bytes, rng: random.Random) -> list[Packet]:
    """The packets of a capture in which every record's value is one of the frames of ``capture``, or several."""
    frames: list[Frame] = []
    try:
        for part in Reading(io.BytesIO(capture)):
            frames += [frame for frame in part if frame.status in (Status.OK, Status.UNSUPPORTED)]
    except CaptureError:
        pass  # what stands before the damage was read
    frames.sort(key=lambda frame: frame.number)
    values = [_sized(frame.data) for frame in frames if 0 < len(frame.data) <= 2000] or [_sized(bytes(8))]
    by_connection: dict[int, list[tuple[Frame, bytes]]] = defaultdict(list)
    for frame in frames:
        by_connection[frame.connection].append((frame, _sized(_changed(frame, values, rng))))
    packets: list[Packet] = []
    for own in by_connection.values():
        packets += _connection(own, rng)
    return sorted(packets, key=lambda packet: packet.time)


def _sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _changed(frame: Frame, values: Sequence[bytes], rng: random.Random) -> bytes:
    """A frame with other values in its records, if it has any."""
    if frame.api_key not in (ApiKey.PRODUCE, ApiKey.FETCH) or (frame.api_key == ApiKey.PRODUCE) == frame.is_response:
        return frame.data
    try:
        message = frame.message
        body: Any = message.body
        topics = body.responses if frame.is_response else body.topic_data
        for topic in topics:
            for partition in topic.partitions if frame.is_response else topic.partition_data:
                if partition.records:
                    partition.records = _records(bytes(partition.records), values, rng)
        version = frame.api_version or 0
        if isinstance(message, Request):
            header: Any = message.header
            return encode_request(
                body, api_version=version, correlation_id=header.correlation_id, client_id=header.client_id
            )
        return encode_response(body, api_version=version, correlation_id=frame.correlation_id or 0)
    except KwireError:
        return frame.data


def _records(data: bytes, values: Sequence[bytes], rng: random.Random) -> bytes:
    """A record set with other values, not compressed."""
    out = []
    for batch in records.decode(data):
        if batch.is_control or not batch.records:
            return data
        for record in batch.records:
            record.value = b"".join(rng.choice(values) for _ in range(rng.choice((1, 1, 1, 2, 5))))
        more: dict[str, Any] = {}
        if batch.magic == 2:
            more = {
                "producer_id": batch.producer_id,
                "producer_epoch": batch.producer_epoch,
                "base_sequence": batch.base_sequence,
                "partition_leader_epoch": batch.partition_leader_epoch,
                "is_transactional": batch.is_transactional,
            }
        out.append(records.encode(batch.records, magic=batch.magic, base_offset=batch.base_offset, **more))
    return b"".join(out)


def _times(frames: Sequence[Frame]) -> list[int]:
    """When each was captured: one whose capture does not state it, with the one before."""
    times: list[int] = []
    for frame in frames:
        times.append(frame.time if frame.time is not None else times[-1] if times else 0)
    return times


def _connection(frames: Sequence[tuple[Frame, bytes]], rng: random.Random) -> list[Packet]:
    """The packets of a connection that carries these frames."""
    first = frames[0][0]
    ends = [End(end.host, end.port) for end in (first.client, first.broker)]
    seqs = [rng.getrandbits(32), rng.getrandbits(32)]
    packets: list[Packet] = []

    def send(side: int, flags: int, payload: bytes, time: int) -> None:
        tcp = struct.pack(
            ">HHIIBBHHH", ends[side].port, ends[1 - side].port, seqs[side], seqs[1 - side], 0x50, flags, 65535, 0, 0
        )
        data = ip_packet(ends[side], ends[1 - side], 6, tcp + payload)
        part = segment(Packet(time, data, len(data), RAW))
        assert part is not None
        packets.append(rebuilt(part))
        seqs[side] = seqs[side] + len(payload) + (1 if flags & (SYN | FIN) else 0) & 0xFFFFFFFF

    times = _times([frame for frame, _ in frames])
    begin = min(times) - 10 * _MICROSECOND
    send(0, SYN, b"", begin)
    send(1, SYN | ACK, b"", begin)
    send(0, ACK, b"", begin)
    # Frames of one segment stay together: a client that pipelines writes several at once.
    held: list[bytes] = []
    for number, (frame, data) in enumerate(frames):
        held.append(data)
        following = frames[number + 1][0] if number + 1 < len(frames) else None
        if following and (following.is_response, times[number + 1]) == (frame.is_response, times[number]):
            continue
        body, held = b"".join(held), []
        for at in range(0, len(body), _MSS):
            send(int(frame.is_response), ACK, body[at : at + _MSS], times[number])
        send(int(not frame.is_response), ACK, b"", times[number])
    end = max(times) + 10 * _MICROSECOND
    send(0, FIN | ACK, b"", end)
    send(1, FIN | ACK, b"", end)
    return packets
