"""Captures as networks, hosts and disks leave them: damaged in many known ways, by a seed, with an account of it.

``impair(capture, "lost-some", "reordered", seed=7)`` takes the bytes of a pcap or pcapng file and returns those of
another one, and an ``Account``. The account says what was done, and which packets of the original are no longer there,
or not all of them. It also says what a parser may be held to. ``KINDS`` lists the kinds (``lossless``, ``lossy``),
which are of four grades:

- ``Grade.LOSSLESS``: every byte that was there is there. A parser must say the same as of the original. That includes
  times where the kind ``keeps_times``, and the order where it ``keeps_order``.
- ``Grade.REPEATED``: nothing is missing, and some connections are there once more, on the same ports
  (``Account.repeated``).
- ``Grade.LOSSY``: something is missing or wrong. A parser must invent nothing, and say where something is missing.
- ``Grade.PAYLOAD``: another capture, as good as the original, with other content.

Rules kept here:

- The same capture, kinds and seed give the same bytes, on every machine.
- Only captures that exist somewhere are made. What a host sends more than once it sends with the same bytes.
  Retransmissions come after what they repeat. No packet leaves its connection.
- Packets that are not TCP over IPv4 or IPv6 are left as they are.

Sources: RFC 9293 (TCP), RFC 1122, 4.2.3.6 (keep-alives), RFC 5961 (RST outside of the window). RFC 1191 and 791
(fragments). Linux packet(7) (the device ``any``, offload), tcpdump(1) (snapshot length, rotation).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from kwire.testing import lossless  # noqa: F401 - enters its kinds
from kwire.testing.kinds import KINDS, Grade, Kind, Work
from kwire.testing.lossy import VALUES
from kwire.testing.packets import End, read

__all__ = ["KINDS", "VALUES", "Account", "Grade", "Impaired", "Kind", "impair"]


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

        Not of several kinds, if one of them does not keep the order. Of two copies, the one that stands first in the
        file may then be the younger one.
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
    work = Work(packets, random.Random(f"{seed} {' '.join(kinds)}"))
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
