"""Cases that are captures: a short conversation, after each kind of impairment.

What loses nothing must be read as the conversation is. What loses something may be read in many ways: a parser must not
crash, and must not make up frames.

Sources: RFC 9293 (TCP); ``kwire.testing.impair`` says what each kind does.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final

from kwire import schema
from kwire.testing.corpus.case import Case
from kwire.testing.corpus.damage import ACCEPT, MAY
from kwire.testing.corpus.messages import CORRELATION_ID, frame_cases
from kwire.testing.impair import KINDS, Grade, impair
from kwire.testing.packets import ACK, RAW, SYN, End, Packet, ip_packet, rebuilt, segment, write_pcap

__all__ = ["BROKER", "CLIENT", "capture_cases", "connection"]

CLIENT: Final = End("10.0.0.1", 40_000)
"""The end that sends requests."""
BROKER: Final = End("10.0.0.2", 9092)
"""The end that answers."""
_BEGIN: Final = 1_700_000_000_000_000_000
_STEP: Final = 1_000_000
_TALK: Final = (("ApiVersions", 2), ("Metadata", 8), ("Produce", 7), ("Fetch", 11), ("Heartbeat", 4))
"""What the conversation is made of: APIs and versions."""


def connection(parts: Sequence[tuple[End, End, bytes]]) -> bytes:
    """A connection as a pcap file. Each part is a frame: from whom, to whom, and its bytes without its size.

    The first one is a request: who sends it has opened the connection.
    """
    packets: list[Packet] = []
    client, broker, _ = parts[0]
    numbers = {client: 1000, broker: 5000}
    sized = [(source, target, struct.pack(">i", len(frame)) + frame) for source, target, frame in parts]
    for number, (source, target, data) in enumerate([(client, broker, b""), (broker, client, b""), *sized]):
        flags = (SYN if number < 2 else 0) | (ACK if number else 0)
        head = struct.pack(
            *(">HHIIBBHHH", source.port, target.port, numbers[source], numbers[target] if number else 0),
            *(0x50, flags, 65535, 0, 0),
        )
        ip = ip_packet(source, target, 6, head + data)
        part = segment(Packet(_BEGIN + number * _STEP, ip, len(ip), RAW))
        assert part is not None
        packets.append(rebuilt(part))
        numbers[source] += len(data) + (number < 2)
    return write_pcap(packets)


def _talk(seed: int) -> tuple[list[tuple[End, End, bytes]], list[tuple[str, str, int, int]]]:
    parts: list[tuple[End, End, bytes]] = []
    frames: list[tuple[str, str, int, int]] = []
    keys = {name: key for key, name in schema.api_keys().items()}
    for round_number in range(3):
        for step, (api, version) in enumerate(_TALK):
            correlation_id = CORRELATION_ID + round_number * len(_TALK) + step
            for message in (schema.request(keys[api]), schema.response(keys[api])):
                assert message is not None
                (one,) = frame_cases(message, version, ["many"], [], seed)
                at = 4 if message.kind == "request" else 0
                data = one.data[:at] + struct.pack(">i", correlation_id) + one.data[at + 4 :]
                parts.append((CLIENT, BROKER, data) if at else (BROKER, CLIENT, data))
                frames.append((message.kind, api, version, correlation_id))
    return parts, frames


def capture_cases(kinds: Sequence[str], seed: int) -> Iterator[Case]:
    """The conversation after each of these kinds of ``kwire.testing.KINDS``."""
    parts, frames = _talk(seed)
    whole = connection(parts)
    for name in kinds:
        kind = KINDS[name]
        if kind.grade in (Grade.PAYLOAD, Grade.REPEATED):
            continue  # other frames than those of the conversation
        lossless = kind.grade is Grade.LOSSLESS
        yield Case(
            name=f"captures/{name}",
            role="capture",
            data=impair(whole, name, seed=seed).data,
            verdict=ACCEPT if lossless else MAY,
            source="RFC 9293: each byte is there once or more"
            if lossless
            else "bytes are missing, or others are there",
            kafka=None,
            api="captures",
            body_at=None,
            damage=name,
            frames=tuple(frames) if lossless else (),
        )
