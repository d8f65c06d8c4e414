"""Sentences about packets that were left out or changed, and about captures without Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kwire.capture.links import named
from kwire.kernels.packets import Count

__all__ = ["notes_of_packets", "nothing_found"]

_LEFT_OUT: Final = {
    Count.LINK: "left out: in PPI, with a link type that is not supported",
    Count.FRAGMENT: "left out: fragments of IP packets that could not be joined, because others are missing or cut off",
    Count.TUNNEL: "left out: in tunnels that are not read",
    Count.DEEP: "left out: in more tunnels, one inside of the other, than are followed",
    Count.PROTECTED: "left out: encrypted below TCP (Wi-Fi, IPsec, MACsec or PPP)",
    Count.RADIO: "left out: Wi-Fi frames that hold a part of a packet, or several",
    Count.SNAPPED: "cut off by the snapshot length of the capture",
    Count.WRONG: "with a wrong TCP checksum: their bytes are read where no other copy was captured",
    Count.PATH: "behind bytes that went on other paths of Multipath TCP: each path is read by itself",
    Count.DAMAGED: "left out: damaged or incomplete headers",
    Count.INTERFACE: "left out: of an interface that is not described",
    Count.TIME: "with times before 1677-09-23 or after 2262-04-10, which are shown at these",
}
"""What is reported of packets that were left out or changed, most important first."""

_OTHER: Final = {Count.UDP: "UDP", Count.NOT_TCP: "other protocols of IP", Count.NOT_IP: "not IP"}
"""What every capture has, and what is reported where nothing else was found."""


def notes_of_packets(counts: Sequence[int], unsupported: Mapping[int, int]) -> list[str]:
    """Sentences, most important first. ``counts``: packets by ``Count``; ``unsupported``: packets by link type."""
    notes = [
        f"{_packets(number)} {'has' if number == 1 else 'have'} link type {named(link)}, which is not supported"
        for link, number in unsupported.items()
    ]
    others = {**dict(enumerate(counts)), Count.LINK: counts[Count.LINK] - sum(unsupported.values())}
    return notes + [f"{_packets(others[one])} {text}" for one, text in _LEFT_OUT.items() if others[one]]


def nothing_found(counts: Sequence[int], connections: int) -> str:
    """What a capture without Kafka has instead."""
    said = [f"{counts[one]} {text}" for one, text in _OTHER.items() if counts[one]]
    return (
        f"no Kafka traffic among {_packets(counts[Count.PACKETS])} and {connections} TCP connections"
        f"{' (other packets: ' if said else ''}{', '.join(said)}{')' if said else ''}"
    )


def _packets(number: int) -> str:
    return "1 packet" if number == 1 else f"{number} packets"
