"""Kinds of impairment after which something is missing, wrong, there once more, or another content."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from math import log2
from typing import Final

from kwire.testing.kinds import SECOND, SEQUENCES, Grade, Work, kind, made_up
from kwire.testing.packets import (
    ACK,
    ETHERNET,
    FIN,
    RST,
    SYN,
    End,
    Flow,
    Packet,
    Segment,
    Side,
    rebuilt,
    wrap,
)

__all__ = ["VALUES"]

# --- ports used again -------------------------------------------------------------------------------------------------


_PAUSES: Final = (SECOND, 60 * SECOND, 3600 * SECOND)
_WINDOW: Final = 1 << 24
"""Bytes by which both directions of a connection do not jump."""


def _jumps(rng: random.Random, flow: Flow, parts: Sequence[Segment], closed: bool) -> dict[End, int]:
    """By how much the sequence numbers of a connection differ that comes again without a SYN. Where the earlier one was
    ``closed``, it is any number with which nothing stands where it stood before. Else both differ by more than a
    window."""
    jumps = {}
    for end, start in zip(flow.ends, flow.starts, strict=True):
        ends = [(part.seq + part.length - (start or 0)) % SEQUENCES for part in parts if part.source == end]
        held = max((one for one in ends if one < SEQUENCES // 2), default=0)
        least = held + (4 if closed else _WINDOW + 4)
        jumps[end] = round(2 ** rng.uniform(log2(least), 31)) * rng.choice((-1, 1))
    return jumps


def _again(work: Work, ended_by: str, opened: bool) -> None:
    """Some connections happen again at the end of the capture, on the same ports with other sequence numbers."""
    parsed = work.parsed
    whole = [flow for flow in parsed.flows if flow.opened and None not in flow.starts and len(flow.packets) > 4]
    if not whole:
        return
    chosen = work.rng.sample(whole, min(len(whole), work.rng.randint(1, 2)))
    # One on the same ports as another one would be there a third time.
    ends = [flow.ends for flow in parsed.flows]
    chosen = [flow for flow in chosen if ends.count(flow.ends) + ends.count(flow.ends[::-1]) == 1]
    begin = max(packet.time for packet in work.packets) + (SECOND if opened else work.rng.choice(_PAUSES))
    dropped: set[int] = set()
    closing: list[Packet] = []
    copies: list[tuple[int, Packet]] = []
    for flow in chosen:
        parts = [(index, part) for index in flow.packets if (part := parsed.segments[index]) is not None]
        shifts = {end: work.rng.randrange(1 << 30 | 1 << 28, 3 << 30) for end in flow.ends}
        acknowledgements = False
        if not opened:
            reset = any(part.flags & RST for _, part in parts) and not any(part.flags & FIN for _, part in parts)
            shifts = _jumps(work.rng, flow, [part for _, part in parts], ended_by == "fin" and not reset)
            acknowledgements = work.rng.random() < 0.5
        if not all(len(part.payload) == part.length for _, part in parts):
            continue
        last = {end: part for _, part in parts for end in (part.source,)}
        if ended_by != "fin":
            dropped |= {index for index, part in parts if part.flags & (FIN | RST) and not part.length}
        if ended_by == "rst" or (ended_by == "fin" and not any(part.flags & (FIN | RST) for _, part in parts)):
            final = last[flow.ends[0]]
            flags = RST if ended_by == "rst" else FIN | ACK
            seq = max(
                (part.seq + part.length for _, part in parts if part.source == flow.ends[0]),
                key=lambda one: (one - (flow.starts[0] or 0)) % SEQUENCES,
            )
            closing.append(made_up(final, seq=seq, flags=flags, payload=b"", time=begin - SECOND // 2))
        start = parts[0][1].packet.time
        for _, part in parts:
            if not opened and (part.flags & SYN or not (acknowledgements or part.length or part.flags & (FIN | RST))):
                continue  # neither the handshake nor, perhaps, what has no data
            copy = rebuilt(
                part,
                seq=part.seq + shifts[part.source],
                ack=part.ack + shifts[part.target] if part.flags & ACK else 0,
                time=begin + part.packet.time - start,
                sources=(),
            )
            copies.append((copy.time, copy))
        work.repeated.append(flow.ends)
    kept = [packet for index, packet in enumerate(work.packets) if index not in dropped]
    copies.sort(key=lambda one: one[0])
    work.packets = kept + closing + [copy for _, copy in copies]


@kind("ports-again-after-fin", Grade.REPEATED)
def _again_after_fin(work: Work) -> None:
    """Connections happen again, on the same ports, after they were closed."""
    _again(work, "fin", opened=True)


@kind("ports-again-after-rst", Grade.REPEATED)
def _again_after_rst(work: Work) -> None:
    """Connections happen again, on the same ports, after they were reset."""
    _again(work, "rst", opened=True)


@kind("ports-again-without-syn", Grade.REPEATED)
def _again_without_syn(work: Work) -> None:
    """Connections happen again at any time and by any numbers, and the capture lacks the second handshake."""
    _again(work, "fin", opened=False)


@kind("ports-again-without-fin-and-syn", Grade.REPEATED)
def _again_without_fin_and_syn(work: Work) -> None:
    """The same, where the capture lacks the ends of the first ones too: numbers jump by more than a window."""
    _again(work, "nothing", opened=False)


# --- what is missing --------------------------------------------------------------------------------------------------


@kind("lost-one", Grade.LOSSY)
def _lost_one(work: Work) -> None:
    """One segment with data is missing."""
    work.drop([index for index, _, _, _ in work.some(0)])


@kind("lost-some", Grade.LOSSY)
def _lost_some(work: Work) -> None:
    """Two packets in a hundred are missing."""
    work.drop([index for index in range(len(work.packets)) if work.rng.random() < 0.02])


@kind("lost-many", Grade.LOSSY)
def _lost_many(work: Work) -> None:
    """One packet in five is missing."""
    work.drop([index for index in range(len(work.packets)) if work.rng.random() < 0.2])


@kind("lost-bursts", Grade.LOSSY)
def _lost_bursts(work: Work) -> None:
    """Stretches of packets are missing, of 5 to 100, as when a buffer overflows."""
    gone: set[int] = set()
    for _ in range(work.rng.randint(1, 5)):
        if work.packets:
            first = work.rng.randrange(len(work.packets))
            gone.update(range(first, first + work.rng.randint(5, 100)))
    work.drop(gone)


@kind("lost-one-way", Grade.LOSSY)
def _lost_one_way(work: Work) -> None:
    """One segment in ten is missing, of one direction of each connection."""
    ways: dict[int, int] = {}
    work.drop(
        [
            index
            for index, _, _, side in work.data()
            if side.end == ways.setdefault(side.flow, work.rng.randrange(2)) and work.rng.random() < 0.1
        ]
    )


@kind("lost-first", Grade.LOSSY)
def _lost_first(work: Work) -> None:
    """The first packets of each connection are missing, 1 to 20 of them."""
    gone = [index for flow in work.parsed.flows for index in flow.packets[: work.rng.randint(1, 20)]]
    work.drop(gone)


@kind("lost-syns", Grade.LOSSY)
def _lost_syns(work: Work) -> None:
    """All SYNs are missing."""
    work.drop([index for index, part, _, _ in work.found() if part.flags & SYN])


@kind("lost-stretches", Grade.LOSSY)
def _lost_stretches(work: Work) -> None:
    """Sequence numbers of a direction jump ahead by any number, once or twice in each connection."""
    parsed = work.parsed
    if not all(len(part.payload) == part.length for _, part, _, _ in work.found()):
        return
    jumps: dict[Side, list[tuple[int, int]]] = {}
    for number, flow in enumerate(parsed.flows):
        for _ in range(work.rng.randint(1, 2)):
            side = Side(number, work.rng.randrange(2))
            at = work.rng.choice(flow.packets)
            jumps.setdefault(side, []).append((at, round(2 ** work.rng.uniform(2, 31))))
    changed = {}
    for index, part, _, side in work.found():
        ahead = sum(by for at, by in jumps.get(side, ()) if at <= index)
        heard = sum(by for at, by in jumps.get(Side(side.flow, 1 - side.end), ()) if at <= index)
        if ahead or (heard and part.flags & ACK):
            ack = part.ack + heard if part.flags & ACK else part.ack
            changed[index] = (rebuilt(part, seq=part.seq + ahead, ack=ack),)
            work.jumped[index] = ahead
    work.change(changed)


@kind("lost-tail", Grade.LOSSY)
def _lost_tail(work: Work) -> None:
    """The last packets of each connection are missing, 1 to 20 of them."""
    work.drop([index for flow in work.parsed.flows for index in flow.packets[-work.rng.randint(1, 20) :]])


@kind("mid-stream", Grade.LOSSY)
def _mid_stream(work: Work) -> None:
    """The capture begins in the middle of all connections."""
    work.packets = work.packets[round(len(work.packets) * work.rng.uniform(0.1, 0.8)) :]


@kind("rotated", Grade.LOSSY)
def _rotated(work: Work) -> None:
    """One file of a capture that was rotated: a stretch from its middle."""
    first = round(len(work.packets) * work.rng.uniform(0, 0.7))
    work.packets = work.packets[first : first + round(len(work.packets) * work.rng.uniform(0.05, 0.4))]


@kind("one-sided-requests", Grade.LOSSY)
def _one_sided_requests(work: Work) -> None:
    """Only packets of the end that opened a connection were captured."""
    work.drop([index for index, _, _, side in work.found() if side.end == 1])


@kind("one-sided-responses", Grade.LOSSY)
def _one_sided_responses(work: Work) -> None:
    """Only packets to the end that opened a connection were captured."""
    work.drop([index for index, _, _, side in work.found() if side.end == 0])


def _snapped(size: int) -> Callable[[Work], None]:
    def apply(work: Work) -> None:
        for packet in work.packets:
            if len(packet.data) > size:
                work.cut.update(dict.fromkeys(packet.sources, size))
        work.packets = [packet._replace(data=packet.data[:size]) for packet in work.packets]

    apply.__doc__ = f"""The capture has the first {size} bytes of each packet."""
    return apply


for _size in (96, 128, 256, 1024):
    kind(f"snaplen-{_size}", Grade.LOSSY)(_snapped(_size))


@kind("file-cut", Grade.LOSSY)
def _file_cut(work: Work) -> None:
    """The file ends at any byte."""
    size = len(work.write(work.packets))
    work.keep = work.rng.randrange(min(24, size), size + 1)


# --- what is wrong ----------------------------------------------------------------------------------------------------


@kind("corrupted", Grade.LOSSY)
def _corrupted(work: Work) -> None:
    """Bytes of some segments are wrong, with checksums that are right."""
    changed = {}
    for index, part, _, _ in work.some(0.03):
        body = bytearray(part.payload)
        for _ in range(work.rng.randint(1, 4)):
            body[work.rng.randrange(len(body))] ^= work.rng.randrange(1, 256)
        changed[index] = (rebuilt(part, payload=bytes(body)),)
        work.altered.update(part.packet.sources)
    work.change(changed)


@kind("false-sizes", Grade.LOSSY)
def _false_sizes(work: Work) -> None:
    """The first four bytes of some segments, mostly the size of a frame, are another number."""
    changed = {}
    for index, part, _, _ in work.some(0.02):
        absurd = (-1, 0, 3, 8, 11, 4096, 1 << 16, 1 << 24, 100 << 20, 0x7FFFFFFF)
        size = work.rng.choice((*absurd, part.length, part.length - 1))
        changed[index] = (rebuilt(part, payload=(struct.pack(">i", size) + part.payload[4:])[: part.length]),)
        work.altered.update(part.packet.sources)
    work.change(changed)


@kind("blanked", Grade.LOSSY)
def _blanked(work: Work) -> None:
    """Some segments have zeros in the place of their bytes."""
    changed = {}
    for index, part, _, _ in work.some(0.03):
        changed[index] = (rebuilt(part, payload=bytes(part.length)),)
        work.altered.update(part.packet.sources)
    work.change(changed)


# --- other content ----------------------------------------------------------------------------------------------------


def _with_values(level: str, about: str) -> Callable[[Work], None]:
    def apply(work: Work) -> None:
        # Reads the capture: that needs an extra of its own, which other kinds do not.
        from kwire.testing.values import Level, frames_as_values

        work.packets = [
            packet._replace(data=wrap(packet.data, ETHERNET), size=packet.size + 14, link=ETHERNET)
            for packet in frames_as_values(work.write(work.packets), work.rng, Level(level))
        ]
        work.renewed = True

    apply.__doc__ = about
    return apply


VALUES: Final = {
    "values-are-frames": ("other-ids", "Record values are frames of the same capture."),
    "values-same-client": ("same-client", "Record values are chains of frames of the same connection."),
    "values-go-on": ("ids-go-on", "The same, with correlation ids that go on from that of the frame around them."),
    "values-at-borders": ("at-borders", "The same, in segments that begin with those frames."),
    "values-epochs": ("epochs", "Ids that go on, in batches whose leader epoch looks like one."),
    "values-partial": ("partial", "Ids that go on, in chains that begin and end within a frame."),
    "values-acknowledged": (
        "acknowledged",
        "Like `values-at-borders`; both ends acknowledge within frames and send while the other one does.",
    ),
}
"""Kinds with other record values: the ``kwire.testing.values.Level`` of each, and the sentence about it."""

for _name, (_level, _about) in VALUES.items():
    kind(_name, Grade.PAYLOAD)(_with_values(_level, _about))
