"""Captures as networks, hosts and disks leave them: damaged in many known ways, by a seed, with an account of it.

``impair(capture, "lost-some", "reordered", seed=7)`` takes the bytes of a pcap or pcapng file and gives those of
another one, and an ``Account``: what was done, which packets of the original are no longer there, or not all of them,
and what a parser may be held to. Kinds are listed by ``KINDS``, and are of four grades:

- ``Grade.LOSSLESS``: every byte that was there is there. A parser must say the same as of the original, times included
  where the kind ``keeps_times``, and in the same order where it ``keeps_order``.
- ``Grade.REPEATED``: nothing is missing, and some connections are there once more, on the same ports
  (``Account.repeated``).
- ``Grade.LOSSY``: something is missing or wrong. A parser must invent nothing, and say where something is missing.
- ``Grade.PAYLOAD``: another capture, as good as the original, with other content.

Rules kept here:

- The same capture, kinds and seed give the same bytes, on every machine.
- Only captures that exist somewhere are made: what a host sends more than once it sends with the same bytes,
  retransmissions come after what they repeat, and no packet leaves its connection.
- Packets that are not TCP over IPv4 or IPv6 are left as they are.

Sources: RFC 9293 (TCP), RFC 1122, 4.2.3.6 (keep-alives), RFC 5961 (RST outside of the window), RFC 1191 and 791
(fragments), packet(7) of Linux (the device ``any``, offload), tcpdump(1) (snapshot length, rotation).
"""

from __future__ import annotations

import ipaddress
import random
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import log2
from typing import Final

from kwire.testing.packets import (
    ACK,
    COOKED,
    ETHERNET,
    FIN,
    RAW,
    RST,
    SYN,
    End,
    Flow,
    Flows,
    Packet,
    Segment,
    Side,
    ip_packet,
    read,
    rebuilt,
    wrap,
    write_pcap,
    write_pcapng,
)

__all__ = ["KINDS", "VALUES", "Account", "Grade", "Impaired", "Kind", "impair"]

_MICROSECOND: Final = 1_000
_MILLISECOND: Final = 1_000_000
_SECOND: Final = 1_000_000_000
_SEQUENCES: Final = 1 << 32
_LARGEST_SEGMENT: Final = 65_000
_NAT64: Final = ipaddress.IPv6Address("64:ff9b::").packed[:12]
"""RFC 6052: IPv4 addresses within IPv6."""


class Grade(Enum):
    """What a kind does to a capture."""

    LOSSLESS = "lossless"
    REPEATED = "repeated"
    LOSSY = "lossy"
    PAYLOAD = "payload"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of impairment."""

    name: str
    grade: Grade
    about: str
    """A sentence."""
    keeps_times: bool
    """Whether each byte is first captured when it was before."""
    keeps_order: bool
    """Whether bytes come in the same order, those of all connections together, and connections too."""
    apply: Callable[[_Work], None] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Account:
    """What was done to a capture. Packets of the original are named by their index, from 0."""

    kinds: tuple[Kind, ...]
    seed: int
    sources: tuple[tuple[int, ...], ...]
    """Of each packet that was written: the packets of the original that it has bytes of; none if it was made up."""
    dropped: frozenset[int]
    """Packets of the original of which nothing is left."""
    altered: frozenset[int]
    """Packets of the original that have other bytes now."""
    cut: Mapping[int, int]
    """How many bytes are left of each packet of the original that was cut short."""
    jumped: Mapping[int, int]
    """Packets of the original with other numbers: how far its sequence number is ahead."""
    repeated: tuple[tuple[End, End], ...]
    """The ends of connections that are there once more."""
    hosts: Mapping[str, str]
    """New addresses, and what they were before."""

    @property
    def lossless(self) -> bool:
        """Whether every byte of the original is there, unchanged."""
        return all(kind.grade is Grade.LOSSLESS for kind in self.kinds)

    @property
    def keeps_times(self) -> bool:
        """Whether each byte is first captured when it was before.

        Not of several kinds, if one of them does not keep the order: of two copies, the one that stands first in the
        file may be the younger one then.
        """
        return all(kind.keeps_times for kind in self.kinds) and (len(self.kinds) < 2 or self.keeps_order)

    @property
    def keeps_order(self) -> bool:
        """Whether bytes are captured in the same order."""
        return all(kind.keeps_order for kind in self.kinds)


@dataclass(frozen=True, slots=True)
class Impaired:
    """A capture that was impaired, and how."""

    data: bytes
    account: Account


def impair(capture: bytes, *kinds: str, seed: int = 0) -> Impaired:
    """A capture (pcap or pcapng) with impairments, applied one after the other.

    ``kinds`` are names of ``KINDS``. Raises ``ValueError`` for another name, and for bytes that are no capture.
    """
    unknown = [name for name in kinds if name not in KINDS]
    if unknown:
        raise ValueError(f"no kind {unknown[0]!r}: see KINDS")
    packets = read(capture)
    work = _Work(packets, random.Random(f"{seed} {' '.join(kinds)}"))
    for name in kinds:
        KINDS[name].apply(work)
    data = work.write(work.packets)[: work.keep]
    written = work.packets
    if work.keep is not None:
        written = read(data) if len(data) >= 24 else []
        written = work.packets[: len(written)]
    there = {source for packet in written for source in packet.sources}
    account = Account(
        kinds=tuple(KINDS[name] for name in kinds),
        seed=seed,
        sources=tuple(packet.sources for packet in written),
        dropped=frozenset(range(len(packets))) - there if not work.renewed else frozenset(),
        altered=frozenset(work.altered),
        cut={source: size for source, size in work.cut.items() if source in there},
        jumped=dict(work.jumped),
        repeated=tuple(work.repeated),
        hosts=dict(work.hosts),
    )
    return Impaired(data, account)


# --- how kinds work ---------------------------------------------------------------------------------------------------


class _Work:
    """A capture while it is impaired."""

    def __init__(self, packets: list[Packet], rng: random.Random) -> None:
        self.rng = rng
        self.write: Callable[[Sequence[Packet]], bytes] = _written
        self.keep: int | None = None
        """Bytes of the file that are left."""
        self.altered: set[int] = set()
        self.cut: dict[int, int] = {}
        self.jumped: dict[int, int] = {}
        self.repeated: list[tuple[End, End]] = []
        self.hosts: dict[str, str] = {}
        self.renewed = False
        """The packets are no longer those of the original."""
        self._packets = packets
        self._flows: Flows | None = None

    @property
    def packets(self) -> list[Packet]:
        return self._packets

    @packets.setter
    def packets(self, packets: list[Packet]) -> None:
        self._packets = packets
        self._flows = None

    @property
    def parsed(self) -> Flows:
        """The connections of the packets."""
        if self._flows is None:
            self._flows = Flows(self._packets)
        return self._flows

    def found(self) -> list[tuple[int, Segment, Flow, Side]]:
        """Each TCP segment with its index and connection."""
        parsed = self.parsed
        return [
            (index, part, parsed.flows[side.flow], side)
            for index, (part, side) in enumerate(zip(parsed.segments, parsed.sides, strict=True))
            if part is not None and side is not None
        ]

    def data(self) -> list[tuple[int, Segment, Flow, Side]]:
        """The same of segments that carry data, all of which was captured."""
        return [one for one in self.found() if one[1].length and _plain(one[1])]

    def some(self, share: float, least: int = 1) -> list[tuple[int, Segment, Flow, Side]]:
        """A share of the segments with data, at least so many if there are, in order."""
        every = self.data()
        count = min(len(every), max(least, round(share * len(every))))
        return [every[k] for k in sorted(self.rng.sample(range(len(every)), count))]

    def change(self, changed: Mapping[int, Iterable[Packet]]) -> None:
        """Puts others in the place of packets."""
        self.packets = [made for index, packet in enumerate(self.packets) for made in changed.get(index, (packet,))]

    def drop(self, which: Iterable[int]) -> None:
        """Leaves packets out."""
        self.change(dict.fromkeys(which, ()))

    def add(self, extra: Iterable[tuple[int, Packet]]) -> None:
        """Adds packets, each behind the one with its index and where its time belongs."""
        latest: list[int] = []
        for packet in self.packets:
            latest.append(max(packet.time, latest[-1]) if latest else packet.time)
        placed: dict[int, list[Packet]] = {}
        for index, packet in sorted(extra, key=lambda one: one[1].time):
            at = max(index, bisect_right(latest, packet.time) - 1)
            placed.setdefault(at, []).append(packet)
        self.packets = [made for index, packet in enumerate(self.packets) for made in (packet, *placed.get(index, ()))]

    def until(self, flow: Flow) -> int:
        """The time of the last packet of a connection."""
        return self.packets[flow.packets[-1]].time


def _written(packets: Sequence[Packet]) -> bytes:
    """A pcap file, where one can hold the packets."""
    return write_pcap(packets) if len({packet.link for packet in packets}) < 2 else write_pcapng(packets)


def _plain(part: Segment) -> bool:
    """Whether a segment neither opens nor ends a connection by force, and was captured whole."""
    return not part.flags & (SYN | RST) and len(part.payload) == part.length


def _made_up(part: Segment, **changed: int | bytes | None) -> Packet:
    """A packet like that of a segment, of which nothing is in the original."""
    return rebuilt(part, sources=(), **changed)  # type: ignore[arg-type]


KINDS: Final[dict[str, Kind]] = {}
"""Every kind by its name."""


def _kind(
    name: str, grade: Grade, *, times: bool = True, order: bool = True
) -> Callable[[Callable[[_Work], None]], Callable[[_Work], None]]:
    """Enters a function, whose docstring is the sentence about it, into ``KINDS``."""

    def enter(apply: Callable[[_Work], None]) -> Callable[[_Work], None]:
        KINDS[name] = Kind(name, grade, " ".join((apply.__doc__ or "").split()), times, order, apply)
        return apply

    return enter


# --- what is sent more than once --------------------------------------------------------------------------------------


@_kind("retransmitted", Grade.LOSSLESS)
def _retransmitted(work: _Work) -> None:
    """One segment in five is sent again, up to 300 ms later."""
    extra = []
    for index, part, flow, _ in work.some(0.2):
        time = min(part.packet.time + work.rng.randrange(_MILLISECOND, 300 * _MILLISECOND), work.until(flow))
        extra.append((index, part.packet._replace(time=time)))
    work.add(extra)


@_kind("retransmitted-other-borders", Grade.LOSSLESS)
def _other_borders(work: _Work) -> None:
    """Parts of two neighbouring segments are sent again as one."""
    extra = []
    before: dict[Side, tuple[int, Segment]] = {}
    for index, part, flow, side in work.data():
        former = before.get(side)
        before[side] = index, part
        if former is None or work.rng.random() > 0.3:
            continue
        first = former[1]
        if first.seq + first.length & _SEQUENCES - 1 != part.seq:
            continue
        begin = work.rng.randrange(first.length)
        end = work.rng.randrange(1, part.length + 1)
        body = (first.payload[begin:] + part.payload[:end])[:_LARGEST_SEGMENT]
        time = min(part.packet.time + work.rng.randrange(50_000, 200 * _MILLISECOND), work.until(flow))
        sources = first.packet.sources + part.packet.sources
        extra.append((index, rebuilt(part, seq=first.seq + begin, payload=body, time=time, sources=sources)))
    work.add(extra)


@_kind("overlapping", Grade.LOSSLESS)
def _overlapping(work: _Work) -> None:
    """Segments begin with the last bytes of the one before."""
    changed = {}
    before: dict[Side, Segment] = {}
    for index, part, _, side in work.data():
        former = before.get(side)
        before[side] = part
        if former is None or former.seq + former.length & _SEQUENCES - 1 != part.seq or work.rng.random() > 0.4:
            continue
        count = work.rng.randint(1, former.length)
        body = former.payload[-count:] + part.payload
        changed[index] = (rebuilt(part, seq=part.seq - count, payload=body),)
    work.change(changed)


@_kind("late-duplicates", Grade.LOSSLESS)
def _late_duplicates(work: _Work) -> None:
    """Segments arrive a second time, at any time until their connection ends."""
    extra = []
    for index, part, flow, _ in work.some(0.05):
        last = work.until(flow)
        if last > part.packet.time:
            extra.append((index, part.packet._replace(time=work.rng.randint(part.packet.time, last))))
    work.add(extra)


@_kind("duplicates-of-any", Grade.LOSSLESS)
def _duplicates_of_any(work: _Work) -> None:
    """Every packet is there twice, as the device ``any`` shows those that pass two devices."""
    work.packets = [
        made
        for packet in work.packets
        for made in (packet, packet._replace(time=packet.time + work.rng.randrange(50) * _MICROSECOND))
    ]


@_kind("keep-alives", Grade.LOSSLESS)
def _keep_alives(work: _Work) -> None:
    """Keep-alives: segments of one byte that was sent already, or of none, and answers to them."""
    extra = []
    last = {side: part for _, part, _, side in work.found()}
    for index, part, flow, side in work.some(0.1):
        body = work.rng.choice((b"", b"\0"))
        time = min(part.packet.time + work.rng.randrange(10_000, 30 * _MILLISECOND), work.until(flow))
        following = part.seq + part.length
        extra.append((index, _made_up(part, seq=following - 1, payload=body, flags=ACK, time=time)))
        answer = last.get(Side(side.flow, 1 - side.end))
        if answer is not None:
            extra.append((index, _made_up(answer, seq=part.ack, ack=following, flags=ACK, payload=b"", time=time)))
    work.add(extra)


@_kind("window-probes", Grade.LOSSLESS)
def _window_probes(work: _Work) -> None:
    """Probes of a closed window: the first byte of a segment is sent alone, then all of it."""
    changed = {}
    for index, part, _, _ in work.some(0.1):
        if part.length > 1:
            probe = rebuilt(part, payload=part.payload[:1], flags=ACK)
            changed[index] = (probe, part.packet)
    work.change(changed)


@_kind("corrupt-copies", Grade.LOSSLESS)
def _corrupt_copies(work: _Work) -> None:
    """In front of some segments stands a copy with wrong bytes, and so a wrong checksum; all others are right."""
    chosen = {index for index, _, _, _ in work.some(0.1)}
    changed: dict[int, Sequence[Packet]] = {}
    for index, part, _, _ in work.found():
        if len(part.payload) != part.length:
            continue
        # That of a SYN too: it says that checksums mean something, before anything else can.
        good = rebuilt(part)
        changed[index] = (good,)
        if index in chosen:
            bad = bytearray(good.data)
            for _ in range(3):
                bad[part.begin + work.rng.randrange(part.length)] ^= work.rng.randrange(1, 256)
            # Changes may cancel each other out in a sum that wraps around at 65535.
            if (int.from_bytes(bad) - int.from_bytes(good.data)) % 0xFFFF:
                changed[index] = (good._replace(data=bytes(bad), sources=()), good)
    work.change(changed)


# --- order ------------------------------------------------------------------------------------------------------------


def _moved(work: _Work, chosen: Iterable[int], distance: int, nearest: int) -> None:
    """Moves packets up to so many places back; times stay.

    Never behind the end of their connection, or one that was captured more than ``nearest`` nanoseconds later.
    """
    places = {float(index): packet for index, packet in enumerate(work.packets)}
    parsed = work.parsed
    for index in chosen:
        side = parsed.sides[index]
        if side is None:
            continue
        last = parsed.flows[side.flow].packets[-1]
        to = index + work.rng.randint(1, distance)
        while to >= last or (to > index and work.packets[to].time > work.packets[index].time + nearest):
            to -= 1
        if to > index:
            places[to + 0.1 + 0.8 * work.rng.random()] = places.pop(float(index))
    work.packets = [places[place] for place in sorted(places)]


@_kind("reordered", Grade.LOSSLESS, times=False, order=False)
def _reordered(work: _Work) -> None:
    """Segments arrive up to 5 ms late, behind others."""
    extra = []
    late = []
    for index, part, flow, _ in work.some(0.2):
        time = part.packet.time + work.rng.randrange(1000, 5 * _MILLISECOND)
        if time < work.until(flow):
            late.append(index)
            extra.append((index, part.packet._replace(time=time)))
    kept = work.packets
    work.add(extra)
    gone = {id(kept[index]) for index in late}
    work.packets = [packet for packet in work.packets if id(packet) not in gone]


@_kind("reordered-in-the-file", Grade.LOSSLESS, order=False)
def _reordered_in_the_file(work: _Work) -> None:
    """Packets stand up to eight places and 1 ms later in the file than their times say, as with several queues."""
    chosen = [index for index, part, _, _ in work.found() if _plain(part) and work.rng.random() < 0.2]
    _moved(work, chosen, 8, _MILLISECOND)


@_kind("syn-late", Grade.LOSSLESS, order=False)
def _syn_late(work: _Work) -> None:
    """The first SYN of connections stands behind its answer, or behind the first data."""
    chosen = [index for index, part, _, _ in work.found() if part.flags & (SYN | ACK) == SYN]
    moves = {}
    parsed = work.parsed
    for index in chosen:
        side = parsed.sides[index]
        assert side is not None
        own = [k for k in parsed.flows[side.flow].packets if k > index]
        if len(own) > 4:
            moves[index] = work.rng.choice(own[:3])
    out: list[Packet] = []
    late: dict[int, list[Packet]] = {}
    for index, packet in enumerate(work.packets):
        if index in moves:
            late.setdefault(moves[index], []).append(packet)
        else:
            out.append(packet)
            out += [one._replace(time=packet.time) for one in late.get(index, ())]
    work.packets = out


@_kind("syn-repeated", Grade.LOSSLESS)
def _syn_repeated(work: _Work) -> None:
    """SYNs and their answers are there again, up to a second later."""
    extra = []
    for index, part, flow, _ in work.found():
        if part.flags & SYN and work.rng.random() < 0.7:
            time = min(part.packet.time + work.rng.randrange(_SECOND), work.until(flow))
            extra.append((index, part.packet._replace(time=time)))
    work.add(extra)


@_kind("fin-repeated", Grade.LOSSLESS)
def _fin_repeated(work: _Work) -> None:
    """FINs are sent up to three times."""
    extra = []
    for index, part, flow, _ in work.found():
        if part.flags & FIN:
            for _ in range(work.rng.randint(1, 2)):
                time = min(part.packet.time + work.rng.randrange(200 * _MILLISECOND), work.until(flow))
                extra.append((index, part.packet._replace(time=time)))
    work.add(extra)


def _early(work: _Work, flag: int) -> None:
    """Moves packets with this flag and no data in front of the last data of their side, up to four segments of it."""
    before: dict[int, int] = {}
    last: dict[Side, list[int]] = {}
    for index, part, _, side in work.found():
        if part.length:
            last.setdefault(side, []).append(index)
        elif part.flags & flag and side in last:
            before.setdefault(last[side][-min(len(last[side]), work.rng.randint(1, 4))], index)
    early = set(before.values())
    work.packets = [
        made
        for index, packet in enumerate(work.packets)
        if index not in early
        for made in ((work.packets[before[index]]._replace(time=packet.time), packet) if index in before else (packet,))
    ]


@_kind("fin-early", Grade.LOSSLESS)
def _fin_early(work: _Work) -> None:
    """FINs without data overtake the last data of their side, up to four segments."""
    _early(work, FIN)


@_kind("rst-early", Grade.LOSSLESS)
def _rst_early(work: _Work) -> None:
    """RSTs overtake the last data of their side, up to four segments."""
    _early(work, RST)


@_kind("acks-repeated", Grade.LOSSLESS)
def _acks_repeated(work: _Work) -> None:
    """Acknowledgements without data are there up to five times, later ones too."""
    extra = []
    for index, part, flow, _ in work.found():
        if not part.length and part.flags == ACK and work.rng.random() < 0.3:
            for _ in range(work.rng.randint(1, 4)):
                time = min(part.packet.time + work.rng.randrange(100 * _MILLISECOND), work.until(flow))
                extra.append((index, part.packet._replace(time=time)))
    work.add(extra)


@_kind("acks-early", Grade.LOSSLESS)
def _acks_early(work: _Work) -> None:
    """Acknowledgements stand in front of the data that they acknowledge."""
    parsed = work.parsed
    ahead: dict[int, list[int]] = {}
    latest: dict[Side, int] = {}
    moved = set()
    for index, part, _, side in work.found():
        other = Side(side.flow, 1 - side.end)
        if part.length:
            latest[side] = index
        elif part.flags == ACK and other in latest and work.rng.random() < 0.5:
            ahead.setdefault(latest[other], []).append(index)
            moved.add(index)
    assert len(parsed.segments) == len(work.packets)
    work.packets = [
        made
        for index, packet in enumerate(work.packets)
        if index not in moved
        for made in (*(work.packets[k]._replace(time=packet.time) for k in ahead.get(index, ())), packet)
    ]


@_kind("acks-missing", Grade.LOSSLESS)
def _acks_missing(work: _Work) -> None:
    """There are no acknowledgements without data."""
    first: set[Side] = set()
    dropped = []
    for index, part, _, side in work.found():
        if not part.length and part.flags == ACK and side in first:
            dropped.append(index)
        first.add(side)
    work.drop(dropped)


@_kind("rst-outside", Grade.LOSSLESS)
def _rst_outside(work: _Work) -> None:
    """RSTs whose sequence number is far outside of the window, which a receiver ignores."""
    extra = []
    for index, part, flow, _ in work.some(0.03):
        if index != flow.packets[-1]:
            far = work.rng.choice((1 << 27, 1 << 28, 1 << 30, 1 << 31, -(1 << 20), -(1 << 27)))
            extra.append((index, _made_up(part, seq=part.seq + far, flags=RST, payload=b"")))
    work.add(extra)


# --- segments ---------------------------------------------------------------------------------------------------------


def _cut_up(work: _Work, size: Callable[[], int]) -> None:
    changed = {}
    for index, part, _, _ in work.data():
        body = part.payload
        parts = []
        at = 0
        while at < len(body):
            end = min(len(body), at + size())
            # What ends the connection is the last of them.
            flags = part.flags if end == len(body) else part.flags & ~FIN
            parts.append(rebuilt(part, seq=part.seq + at, payload=body[at:end], flags=flags))
            at = end
        changed[index] = parts
    work.change(changed)


@_kind("resegmented", Grade.LOSSLESS)
def _resegmented(work: _Work) -> None:
    """Segments are cut to another size, the same for all: 536, 100 or 48 bytes."""
    mss = work.rng.choice((536, 100, 48))
    _cut_up(work, lambda: mss)


@_kind("resegmented-at-random", Grade.LOSSLESS)
def _resegmented_at_random(work: _Work) -> None:
    """Segments are cut anywhere."""
    _cut_up(work, lambda: work.rng.choice((1, 3, 4, 5, 17, 100, 700, 5000)))


@_kind("one-byte-segments", Grade.LOSSLESS)
def _one_byte_segments(work: _Work) -> None:
    """Some segments are sent byte by byte."""
    chosen = {index for index, _, _, _ in work.some(0.1)}
    changed = {}
    for index, part, _, _ in work.data():
        if index in chosen and part.length <= 3000:
            body = part.payload
            changed[index] = [
                rebuilt(
                    part,
                    seq=part.seq + at,
                    payload=body[at : at + 1],
                    flags=part.flags if at + 1 == len(body) else part.flags & ~FIN,
                )
                for at in range(len(body))
            ]
    work.change(changed)


@_kind("coalesced", Grade.LOSSLESS, times=False, order=False)
def _coalesced(work: _Work) -> None:
    """Neighbouring segments of 1 ms are one packet of up to 64 kB, captured with the last of them, as after GRO."""
    changed: dict[int, list[Packet]] = {}
    open_: dict[int, tuple[Side, int, Packet, Segment, bytes]] = {}
    for index, part, _, side in work.found():
        held = open_.pop(side.flow, None)
        if not part.length or not _plain(part):
            if held is not None and part.flags == ACK and side != held[0]:
                open_[side.flow] = held
            continue
        if held is not None:
            same, number, _, first, body = held
            follows = same == side and first.seq + len(body) & _SEQUENCES - 1 == part.seq
            soon = part.packet.time - first.packet.time <= _MILLISECOND
            if follows and soon and len(body) + part.length < _LARGEST_SEGMENT:
                body += part.payload
                sources = changed[number][0].sources if changed.get(number) else first.packet.sources
                changed[number] = []
                merged = rebuilt(part, seq=first.seq, payload=body, sources=sources + part.packet.sources)
                changed[index] = [merged]
                if not part.flags & FIN:
                    open_[side.flow] = side, index, merged, first, body
                continue
        open_[side.flow] = side, index, part.packet, part, part.payload
    work.change(changed)


@_kind("wrapped", Grade.LOSSLESS)
def _wrapped(work: _Work) -> None:
    """Sequence numbers are others, and begin again at 0 within each direction."""
    shifts: dict[Side, int] = {}
    first: dict[Side, int] = {}
    total: dict[Side, int] = {}
    for _, part, _, side in work.found():
        first.setdefault(side, part.seq)
        total[side] = max(total.get(side, 0), (part.seq + part.length - first[side]) % _SEQUENCES)
    for side, begin in first.items():
        length = total[side] if total[side] < 1 << 31 else 1000
        shifts[side] = (-begin - work.rng.randint(0, length)) % _SEQUENCES
    if not all(len(part.payload) == part.length for _, part, _, _ in work.found()):
        return
    changed = {}
    for index, part, _, side in work.found():
        back = shifts.get(Side(side.flow, 1 - side.end), 0) if part.flags & ACK else 0
        changed[index] = (rebuilt(part, seq=part.seq + shifts[side], ack=part.ack + back),)
    work.change(changed)


# --- clocks and files -------------------------------------------------------------------------------------------------


def _retimed(work: _Work, times: Iterable[int]) -> None:
    work.packets = [packet._replace(time=time) for packet, time in zip(work.packets, times, strict=True)]


@_kind("clock-jitter", Grade.LOSSLESS, times=False)
def _clock_jitter(work: _Work) -> None:
    """The time of every packet is up to 5 ms wrong."""
    spread = 5_000
    _retimed(work, [one.time + work.rng.randint(-spread, spread) * _MICROSECOND for one in work.packets])


def _stepped(work: _Work, step: int) -> None:
    steps = sorted(work.rng.randrange(len(work.packets)) for _ in range(work.rng.randint(1, 3))) if work.packets else []
    _retimed(work, [one.time - step * bisect_right(steps, k) for k, one in enumerate(work.packets)])


@_kind("clock-back-50ms", Grade.LOSSLESS, times=False)
def _clock_back_50ms(work: _Work) -> None:
    """The clock steps back by 50 ms, up to three times."""
    _stepped(work, 50 * _MILLISECOND)


@_kind("clock-back-2s", Grade.LOSSLESS, times=False)
def _clock_back_2s(work: _Work) -> None:
    """The clock steps back by 2 s, up to three times."""
    _stepped(work, 2 * _SECOND)


@_kind("nanoseconds", Grade.LOSSLESS)
def _nanoseconds(work: _Work) -> None:
    """A pcap file with nanoseconds."""
    work.write = lambda packets: write_pcap(packets, nano=True)


@_kind("big-endian", Grade.LOSSLESS)
def _big_endian(work: _Work) -> None:
    """A file in the other byte order."""
    work.write = lambda packets: write_pcap(packets, little=False)


@_kind("pcapng", Grade.LOSSLESS)
def _pcapng(work: _Work) -> None:
    """A pcapng file."""
    little = work.rng.random() < 0.5
    work.write = lambda packets: write_pcapng(packets, little=little)


@_kind("pcapng-clock", Grade.LOSSLESS)
def _pcapng_clock(work: _Work) -> None:
    """A pcapng file whose times have another unit, and an offset."""
    fine = any(packet.time % 1000 for packet in work.packets)
    resolution = work.rng.choice((9, 10) if fine else (6, 7, 9, 10))
    offset = work.rng.choice((0, 3600, 1_000_000_000))
    work.write = lambda packets: write_pcapng(packets, resolution=resolution, offset=offset)


@_kind("interfaces", Grade.LOSSLESS)
def _interfaces(work: _Work) -> None:
    """A pcapng file with packets of several interfaces."""
    work.write = lambda packets: write_pcapng(packets, interfaces=3)


# --- packets ----------------------------------------------------------------------------------------------------------


def _relinked(work: _Work, link: int, tags: Sequence[tuple[int, int]] = ()) -> None:
    changed = {}
    for index, part, _, _ in work.found():
        packet = part.packet
        data = wrap(packet.data[part.network :], link, tags)
        size = packet.size + len(data) - len(packet.data)
        changed[index] = (packet._replace(data=data, size=size, link=link),)
    others = [index for index, part in enumerate(work.parsed.segments) if part is None]
    # What is no TCP segment goes: its link type would be another one.
    work.change({**changed, **dict.fromkeys(others, ())} if link != ETHERNET else changed)


@_kind("vlan", Grade.LOSSLESS)
def _vlan(work: _Work) -> None:
    """Ethernet frames with a VLAN tag."""
    _relinked(work, ETHERNET, [(0x8100, work.rng.randrange(1, 4095))])


@_kind("vlan-twice", Grade.LOSSLESS)
def _vlan_twice(work: _Work) -> None:
    """Ethernet frames with two VLAN tags (802.1ad)."""
    _relinked(work, ETHERNET, [(0x88A8, work.rng.randrange(1, 4095)), (0x8100, work.rng.randrange(1, 4095))])


@_kind("cooked", Grade.LOSSLESS)
def _cooked(work: _Work) -> None:
    """Packets with Linux's cooked header, as of the device ``any``."""
    _relinked(work, COOKED)


@_kind("raw", Grade.LOSSLESS)
def _raw(work: _Work) -> None:
    """Packets that begin with the IP header."""
    _relinked(work, RAW)


@_kind("padded", Grade.LOSSLESS)
def _padded(work: _Work) -> None:
    """Bytes behind the IP packet: short Ethernet frames are filled up to 60, and some have a checksum behind them."""
    made = []
    parsed = work.parsed
    for packet, part in zip(work.packets, parsed.segments, strict=True):
        if (
            part is not None
            and len(packet.data) == packet.size
            and int.from_bytes(
                packet.data[part.network + 2 : part.network + 4] if packet.data[part.network] >> 4 == 4 else b"\1"
            )
        ):
            data = packet.data + work.rng.randbytes(max(0, 60 - len(packet.data)))
            data += work.rng.randbytes(work.rng.choice((0, 4)))
            packet = packet._replace(data=data, size=len(data))
        made.append(packet)
    work.packets = made


@_kind("ipv6", Grade.LOSSLESS)
def _ipv6(work: _Work) -> None:
    """IPv4 packets are IPv6 packets, their addresses within 64:ff9b::/96."""
    changed = {}
    for index, part, _, _ in work.found():
        packet = part.packet
        if packet.data[part.network] >> 4 != 4:
            continue
        addresses = packet.data[part.network + 12 : part.network + 20]
        source, target = addresses[:4], addresses[4:]
        for old in (source, target):
            work.hosts[str(ipaddress.ip_address(_NAT64 + old))] = str(ipaddress.ip_address(old))
        tcp = packet.data[part.transport :]
        length = part.begin - part.transport + part.length
        head = struct.pack(">IHBB", 6 << 28, length if length < 65536 else 0, 6, 64)
        link = packet.link if packet.link in (ETHERNET, COOKED, RAW) else ETHERNET
        data = wrap(head + _NAT64 + source + _NAT64 + target + tcp, link)
        changed[index] = (packet._replace(data=data, size=packet.size + len(data) - len(packet.data), link=link),)
    work.change(changed)


@_kind("checksums-wrong", Grade.LOSSLESS)
def _checksums_wrong(work: _Work) -> None:
    """Checksums of TCP that the network card would have computed."""
    changed = {}
    for index, part, _, _ in work.found():
        data = bytearray(part.packet.data)
        data[part.transport + 16 : part.transport + 18] = work.rng.randbytes(2)
        changed[index] = (part.packet._replace(data=bytes(data)),)
    work.change(changed)


@_kind("lengths-zero", Grade.LOSSLESS)
def _lengths_zero(work: _Work) -> None:
    """IP headers whose length is 0, as segmentation offload leaves it."""
    changed = {}
    for index, part, _, _ in work.found():
        packet = part.packet
        if packet.data[part.network] >> 4 == 4 and part.begin + part.length == packet.size == len(packet.data):
            data = bytearray(packet.data)
            data[part.network + 2 : part.network + 4] = bytes(2)
            changed[index] = (packet._replace(data=bytes(data)),)
    work.change(changed)


@_kind("fragmented", Grade.LOSSLESS)
def _fragmented(work: _Work) -> None:
    """Large IPv4 packets are fragmented, some of them with the last fragment first."""
    changed = {}
    for index, part, _, _ in work.some(0.1):
        packet = part.packet
        head = bytearray(packet.data[part.network : part.transport])
        body = packet.data[part.transport : part.begin + part.length]
        if head[0] >> 4 != 4 or len(body) < 64:
            continue
        step = work.rng.choice((32, 576, 1480)) & ~7
        step = min(step, len(body) // 2 & ~7)
        head[4:6] = work.rng.randbytes(2)
        pieces = []
        for at in range(0, len(body), step):
            more = 0x2000 if at + step < len(body) else 0
            head[2:4] = (len(head) + len(body[at : at + step])).to_bytes(2)
            head[6:8] = (more | at // 8).to_bytes(2)
            data = packet.data[: part.network] + bytes(head) + body[at : at + step]
            pieces.append(packet._replace(data=data, size=len(data)))
        if work.rng.random() < 0.3:
            pieces.reverse()
        changed[index] = pieces
    work.change(changed)


# --- other traffic ----------------------------------------------------------------------------------------------------

_OTHERS: Final = (
    (80, b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    (6379, b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"),
    (5432, bytes.fromhex("0000000804d2162f"), b"N"),
    (4222, b"PING\r\n", b"PONG\r\n"),
    (22, b"SSH-2.0-OpenSSH_9.6\r\n", b"SSH-2.0-OpenSSH_9.6\r\n"),
    (443, bytes.fromhex("1603010020") + bytes(32), bytes.fromhex("1603030020") + bytes(32)),
)
"""Port, and what client and server begin with."""


@_kind("foreign-traffic", Grade.LOSSLESS, order=False)
def _foreign_traffic(work: _Work) -> None:
    """Packets that are not Kafka between the others: ARP, ICMP, UDP, and connections of other protocols."""
    if not work.packets:
        return
    link = work.packets[0].link
    if link not in (ETHERNET, COOKED, RAW):
        return
    extra: list[tuple[int, Packet]] = []
    count = len(work.packets)

    def put(index: int, ip: bytes) -> None:
        data = wrap(ip, link)
        extra.append((index, Packet(work.packets[index].time, data, len(data), link)))

    for number in range(4):
        port, asked, answered = work.rng.choice(_OTHERS)
        client, server = End("198.51.100.7", 50_000 + number), End("203.0.113.9", port)
        places = sorted(work.rng.randrange(count) for _ in range(9))
        seqs = [work.rng.randrange(_SEQUENCES), work.rng.randrange(_SEQUENCES)]
        plan = [(0, SYN, b""), (1, SYN | ACK, b""), (0, ACK, b"")]
        plan += [(0, ACK, asked), (1, ACK, answered)] * 2 + [(0, FIN | ACK, b""), (1, FIN | ACK, b"")]
        for index, (side, flags, body) in zip(places, plan, strict=True):
            ends = (client, server) if side == 0 else (server, client)
            tcp = struct.pack(
                ">HHIIBBHHH", ends[0].port, ends[1].port, seqs[side], seqs[1 - side], 0x50, flags, 65535, 0, 0
            )
            put(index, ip_packet(*ends, 6, tcp + body))
            seqs[side] = (seqs[side] + len(body) + (1 if flags & (SYN | FIN) else 0)) % _SEQUENCES
    for _ in range(max(3, count // 20)):
        index = work.rng.randrange(count)
        ends = End("198.51.100.7", 53), End("203.0.113.9", 53)
        body = work.rng.randbytes(work.rng.randrange(8, 200))
        put(index, ip_packet(*ends, work.rng.choice((1, 17, 47, 132)), body))
        if link == ETHERNET:
            arp = bytes(12) + b"\x08\x06" + work.rng.randbytes(28)
            extra.append((index, Packet(work.packets[index].time, arp, len(arp), link)))
    work.add(extra)


# --- ports used again -------------------------------------------------------------------------------------------------


_PAUSES: Final = (_SECOND, 60 * _SECOND, 3600 * _SECOND)
_WINDOW: Final = 1 << 24
"""Bytes by which both directions of a connection do not jump."""


def _jumps(rng: random.Random, flow: Flow, parts: Sequence[Segment], closed: bool) -> dict[End, int]:
    """By how much the sequence numbers of a connection differ that comes again without a SYN: by any number with which
    nothing stands where it stood before, where that one was ``closed``; else both by more than a window."""
    jumps = {}
    for end, start in zip(flow.ends, flow.starts, strict=True):
        ends = [(part.seq + part.length - (start or 0)) % _SEQUENCES for part in parts if part.source == end]
        held = max((one for one in ends if one < _SEQUENCES // 2), default=0)
        least = held + (4 if closed else _WINDOW + 4)
        jumps[end] = round(2 ** rng.uniform(log2(least), 31)) * rng.choice((-1, 1))
    return jumps


def _again(work: _Work, ended_by: str, opened: bool) -> None:
    """Some connections happen again at the end of the capture, on the same ports with other sequence numbers."""
    parsed = work.parsed
    whole = [flow for flow in parsed.flows if flow.opened and None not in flow.starts and len(flow.packets) > 4]
    if not whole:
        return
    chosen = work.rng.sample(whole, min(len(whole), work.rng.randint(1, 2)))
    # One on the same ports as another one would be there a third time.
    ends = [flow.ends for flow in parsed.flows]
    chosen = [flow for flow in chosen if ends.count(flow.ends) + ends.count(flow.ends[::-1]) == 1]
    begin = max(packet.time for packet in work.packets) + (_SECOND if opened else work.rng.choice(_PAUSES))
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
                key=lambda one: (one - (flow.starts[0] or 0)) % _SEQUENCES,
            )
            closing.append(_made_up(final, seq=seq, flags=flags, payload=b"", time=begin - _SECOND // 2))
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


@_kind("ports-again-after-fin", Grade.REPEATED)
def _again_after_fin(work: _Work) -> None:
    """Connections happen again, on the same ports, after they were closed."""
    _again(work, "fin", opened=True)


@_kind("ports-again-after-rst", Grade.REPEATED)
def _again_after_rst(work: _Work) -> None:
    """Connections happen again, on the same ports, after they were reset."""
    _again(work, "rst", opened=True)


@_kind("ports-again-without-syn", Grade.REPEATED)
def _again_without_syn(work: _Work) -> None:
    """Connections happen again at any time and by any numbers, and the capture lacks the second handshake."""
    _again(work, "fin", opened=False)


@_kind("ports-again-without-fin-and-syn", Grade.REPEATED)
def _again_without_fin_and_syn(work: _Work) -> None:
    """The same, where the capture lacks the ends of the first ones too: numbers jump by more than a window."""
    _again(work, "nothing", opened=False)


# --- what is missing --------------------------------------------------------------------------------------------------


@_kind("lost-one", Grade.LOSSY)
def _lost_one(work: _Work) -> None:
    """One segment with data is missing."""
    work.drop([index for index, _, _, _ in work.some(0)])


@_kind("lost-some", Grade.LOSSY)
def _lost_some(work: _Work) -> None:
    """Two packets in a hundred are missing."""
    work.drop([index for index in range(len(work.packets)) if work.rng.random() < 0.02])


@_kind("lost-many", Grade.LOSSY)
def _lost_many(work: _Work) -> None:
    """One packet in five is missing."""
    work.drop([index for index in range(len(work.packets)) if work.rng.random() < 0.2])


@_kind("lost-bursts", Grade.LOSSY)
def _lost_bursts(work: _Work) -> None:
    """Stretches of packets are missing, of 5 to 100, as when a buffer overflows."""
    gone: set[int] = set()
    for _ in range(work.rng.randint(1, 5)):
        if work.packets:
            first = work.rng.randrange(len(work.packets))
            gone.update(range(first, first + work.rng.randint(5, 100)))
    work.drop(gone)


@_kind("lost-one-way", Grade.LOSSY)
def _lost_one_way(work: _Work) -> None:
    """One segment in ten is missing, of one direction of each connection."""
    ways: dict[int, int] = {}
    work.drop(
        [
            index
            for index, _, _, side in work.data()
            if side.end == ways.setdefault(side.flow, work.rng.randrange(2)) and work.rng.random() < 0.1
        ]
    )


@_kind("lost-first", Grade.LOSSY)
def _lost_first(work: _Work) -> None:
    """The first packets of each connection are missing, 1 to 20 of them."""
    gone = [index for flow in work.parsed.flows for index in flow.packets[: work.rng.randint(1, 20)]]
    work.drop(gone)


@_kind("lost-syns", Grade.LOSSY)
def _lost_syns(work: _Work) -> None:
    """All SYNs are missing."""
    work.drop([index for index, part, _, _ in work.found() if part.flags & SYN])


@_kind("lost-stretches", Grade.LOSSY)
def _lost_stretches(work: _Work) -> None:
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


@_kind("lost-tail", Grade.LOSSY)
def _lost_tail(work: _Work) -> None:
    """The last packets of each connection are missing, 1 to 20 of them."""
    work.drop([index for flow in work.parsed.flows for index in flow.packets[-work.rng.randint(1, 20) :]])


@_kind("mid-stream", Grade.LOSSY)
def _mid_stream(work: _Work) -> None:
    """The capture begins in the middle of all connections."""
    work.packets = work.packets[round(len(work.packets) * work.rng.uniform(0.1, 0.8)) :]


@_kind("rotated", Grade.LOSSY)
def _rotated(work: _Work) -> None:
    """One file of a capture that was rotated: a stretch from its middle."""
    first = round(len(work.packets) * work.rng.uniform(0, 0.7))
    work.packets = work.packets[first : first + round(len(work.packets) * work.rng.uniform(0.05, 0.4))]


@_kind("one-sided-requests", Grade.LOSSY)
def _one_sided_requests(work: _Work) -> None:
    """Only packets of the end that opened a connection were captured."""
    work.drop([index for index, _, _, side in work.found() if side.end == 1])


@_kind("one-sided-responses", Grade.LOSSY)
def _one_sided_responses(work: _Work) -> None:
    """Only packets to the end that opened a connection were captured."""
    work.drop([index for index, _, _, side in work.found() if side.end == 0])


def _snapped(size: int) -> Callable[[_Work], None]:
    def apply(work: _Work) -> None:
        for packet in work.packets:
            if len(packet.data) > size:
                work.cut.update(dict.fromkeys(packet.sources, size))
        work.packets = [packet._replace(data=packet.data[:size]) for packet in work.packets]

    apply.__doc__ = f"""The capture has the first {size} bytes of each packet."""
    return apply


for _size in (96, 128, 256, 1024):
    _kind(f"snaplen-{_size}", Grade.LOSSY)(_snapped(_size))


@_kind("file-cut", Grade.LOSSY)
def _file_cut(work: _Work) -> None:
    """The file ends at any byte."""
    size = len(work.write(work.packets))
    work.keep = work.rng.randrange(min(24, size), size + 1)


# --- what is wrong ----------------------------------------------------------------------------------------------------


@_kind("corrupted", Grade.LOSSY)
def _corrupted(work: _Work) -> None:
    """Bytes of some segments are wrong, with checksums that are right."""
    changed = {}
    for index, part, _, _ in work.some(0.03):
        body = bytearray(part.payload)
        for _ in range(work.rng.randint(1, 4)):
            body[work.rng.randrange(len(body))] ^= work.rng.randrange(1, 256)
        changed[index] = (rebuilt(part, payload=bytes(body)),)
        work.altered.update(part.packet.sources)
    work.change(changed)


@_kind("false-sizes", Grade.LOSSY)
def _false_sizes(work: _Work) -> None:
    """The first four bytes of some segments, mostly the size of a frame, are another number."""
    changed = {}
    for index, part, _, _ in work.some(0.02):
        absurd = (-1, 0, 3, 8, 11, 4096, 1 << 16, 1 << 24, 100 << 20, 0x7FFFFFFF)
        size = work.rng.choice((*absurd, part.length, part.length - 1))
        changed[index] = (rebuilt(part, payload=(struct.pack(">i", size) + part.payload[4:])[: part.length]),)
        work.altered.update(part.packet.sources)
    work.change(changed)


@_kind("blanked", Grade.LOSSY)
def _blanked(work: _Work) -> None:
    """Some segments have zeros in the place of their bytes."""
    changed = {}
    for index, part, _, _ in work.some(0.03):
        changed[index] = (rebuilt(part, payload=bytes(part.length)),)
        work.altered.update(part.packet.sources)
    work.change(changed)


# --- other content ----------------------------------------------------------------------------------------------------


def _with_values(level: str, about: str) -> Callable[[_Work], None]:
    def apply(work: _Work) -> None:
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
    _kind(_name, Grade.PAYLOAD)(_with_values(_level, _about))
