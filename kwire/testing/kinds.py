"""Kinds of impairment: what one is, and a capture while kinds work on it.

``kind`` enters a function into ``KINDS``. The kinds themselves stand by their grade in ``kwire.testing.lossless`` and
``kwire.testing.lossy``.

Rule kept here: a kind gets its random numbers from ``Work.rng`` alone, so the same seed gives the same bytes.
"""

from __future__ import annotations

import ipaddress
import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from kwire.testing.packets import (
    RST,
    SYN,
    End,
    Flow,
    Flows,
    Packet,
    Segment,
    Side,
    rebuilt,
    write_pcap,
    write_pcapng,
)

__all__ = [
    "KINDS",
    "LARGEST_SEGMENT",
    "MICROSECOND",
    "MILLISECOND",
    "NAT64",
    "SECOND",
    "SEQUENCES",
    "Grade",
    "Kind",
    "Work",
    "kind",
    "made_up",
    "plain",
]

MICROSECOND: Final = 1_000
"""A microsecond (int, nanoseconds)."""
MILLISECOND: Final = 1_000_000
"""A millisecond (int, nanoseconds)."""
SECOND: Final = 1_000_000_000
"""A second (int, nanoseconds)."""
SEQUENCES: Final = 1 << 32
"""How many TCP sequence numbers there are (int). Source: RFC 9293, 3.4."""
LARGEST_SEGMENT: Final = 65_000
"""The largest payload of a segment that is made (int, bytes): it fits an IPv4 packet of 65,535 with options."""
NAT64: Final = ipaddress.IPv6Address("64:ff9b::").packed[:12]
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
    apply: Callable[[Work], None] = field(repr=False)


class Work:
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
        """The packets as they are now. Assigning them forgets what was known of their flows."""
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
        return [one for one in self.found() if one[1].length and plain(one[1])]

    def some(self, share: float) -> list[tuple[int, Segment, Flow, Side]]:
        """A share of the segments with data, one at least if there are any, in order."""
        every = self.data()
        count = min(len(every), max(1, round(share * len(every))))
        return [every[k] for k in sorted(self.rng.sample(range(len(every)), count))]

    def change(self, changed: Mapping[int, Iterable[Packet]]) -> None:
        """Puts others in the place of packets."""
        self.packets = [made for index, packet in enumerate(self.packets) for made in changed.get(index, (packet,))]

    def drop(self, which: Iterable[int]) -> None:
        """Leaves packets out."""
        self.change(dict.fromkeys(which, ()))

    def add(self, extra: Iterable[tuple[int, Packet]]) -> None:
        """Adds packets, each after the one with its index and where its time belongs."""
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


def plain(part: Segment) -> bool:
    """Whether a segment neither opens nor ends a connection by force, and was captured whole."""
    return not part.flags & (SYN | RST) and len(part.payload) == part.length


def made_up(part: Segment, **changed: int | bytes | None) -> Packet:
    """A packet like that of a segment, of which nothing is in the original."""
    return rebuilt(part, sources=(), **changed)  # type: ignore[arg-type]


KINDS: Final[dict[str, Kind]] = {}
"""Every kind by its name."""


def kind(
    name: str, grade: Grade, *, times: bool = True, order: bool = True
) -> Callable[[Callable[[Work], None]], Callable[[Work], None]]:
    """Enters a function, whose docstring is the sentence about it, into ``KINDS``."""

    def enter(apply: Callable[[Work], None]) -> Callable[[Work], None]:
        KINDS[name] = Kind(name, grade, " ".join((apply.__doc__ or "").split()), times, order, apply)
        return apply

    return enter
