"""Where a large capture may be cut, so that its parts are read in parallel: ``find``.

A split begins at a packet. It is read as a file of its own that goes on from the one before it (``Part.split``). Where
packets begin is written nowhere but in the packet before. So wherever a cut is wanted, every position is taken for the
header of a packet. Each is followed from length to length for ``LOOKED_AT`` bytes. Chains that come together are one;
those that come to something that can be no header end. A cut is made where all that are left lead to one and the same
position. Where two are left, perhaps because of a value that holds a capture, the next megabyte is tried.

Rules kept here:

- What is read is bounded: ``LOOKED_AT`` bytes at each place, ``TRIES`` places for a cut. No cut costs parallel work,
  never a packet.
- Whoever reads the split before a cut checks the cut (``Reading.over``). That split must end with a packet just there.
  It must have nothing in it that later packets depend on (in pcapng a section, an interface, secrets of TLS). So no row
  rests on what is only likely. If the check fails, that split is read to the end of the file, and the later splits have
  no rows.
- A cut is made before a packet with a time of its own. A simple packet of pcapng has the time of the packet before it.

Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from kwire.capture.containers import Container
from kwire.errors import CaptureError
from kwire.kernels.packets import Count

__all__ = ["HEAD", "Split", "find"]

HEAD: Final = 1 << 20
"""Bytes of the beginning of a file.

What describes its packets must be there, before the first packet.
"""
LOOKED_AT: Final = 1 << 20
"""Bytes in which chains are followed."""
TRIES: Final = 16
"""Places at which a cut is tried, each ``LOOKED_AT`` bytes after the one before."""
LARGEST: Final = 1 << 18
"""Bytes of a packet that is believed here: libpcap's largest snapshot length."""

LONGEST: Final = 1 << 26
"""Seconds between the packets of a file, two years."""

_TIMED: Final = (2, 6)
"""Types of pcapng blocks with packets: the simple one, and those with a time."""
_LEAST_BLOCK: Final = 12
_NOWHERE: Final = -1

Array = Any


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a capture file.

    It goes from the packet at the byte ``begin`` up to the byte ``end``; None: to the end of the file. ``container`` is
    what the file says of its packets (``Container.state``).
    """

    begin: int
    end: int | None
    container: Mapping[str, Any] = field(repr=False)


def find(read: Callable[[int, int], bytes], size: int, most: int) -> list[Split]:
    """The splits of a capture of ``size`` bytes, each of some ``most`` bytes.

    There are none where the capture must be read as a whole.

    ``read(offset, count)`` gives bytes of the file. The first split begins with the file's first packet. Raises what
    ``read`` raises, and ``ValueError`` for a ``most`` below ``LOOKED_AT``.
    """
    if most < LOOKED_AT:
        raise ValueError(f"splits of {most} bytes: they have at least {LOOKED_AT}")
    if size <= most:
        return []
    container = Container(np.zeros(len(Count), np.int64))
    head = read(0, HEAD)
    try:
        first = container.described(head)
    except CaptureError:
        return []
    if first is None or first + 4 > len(head):
        return []
    state = container.state()
    began = int.from_bytes(head[first : first + 4], "little" if state["little"] else "big")
    cuts = [first]
    # Parts of about equal size: a last one of a few bytes would be a task of its own.
    count = -(-size // most)
    for k in range(1, count):
        wanted = size * k // count
        for place in range(wanted, min(size - LOOKED_AT, wanted + TRIES * LOOKED_AT), LOOKED_AT):
            if place <= cuts[-1]:
                continue
            cut = _landing(read, place, state, began)
            if cut is not None and cuts[-1] < cut < size:
                cuts.append(cut)
                break
    if len(cuts) == 1:
        return []
    return [Split(begin, end, state) for begin, end in zip(cuts, [*cuts[1:], None], strict=True)]


def _landing(read: Callable[[int, int], bytes], place: int, state: Mapping[str, Any], began: int) -> int | None:
    """The one position after ``place`` to which all chains of headers lead.

    None where there are several, or none.
    """
    pcapng = state["kind"] == "pcapng"
    if pcapng:
        place += -place & 3
    data = read(place, LOOKED_AT)
    if len(data) < LARGEST:
        return None  # the file has become shorter
    headers, nexts, count = _blocks(data, state) if pcapng else _packets(data, state, began)
    reach = _followed(headers, nexts, count)[headers < LARGEST + int(state["packet_header"])]
    found = reach[reach != _NOWHERE]
    if not len(found) or (found != found[0]).any():
        return None
    landed = place + int(found[0])
    return _timed(read, landed, state) if pcapng else landed


def _packets(data: bytes, state: Mapping[str, Any], began: int) -> tuple[Array, Array, int]:
    """The positions of a pcap file that can be headers of packets.

    Also: where the next header of each is, and how many positions were looked at.

    ``began``: the second of the file's first packet. Without it, a position four bytes after each header would often do
    as well: a length, and a length again.
    """
    header, unit = int(state["packet_header"]), 10**9 if state["nano"] else 10**6
    number, most = "<u4" if state["little"] else ">u4", min(int(state["limit"]), LARGEST)
    found = []
    for k in range(4):
        word = np.frombuffer(data, number, (len(data) - k) // 4, k)
        captured = word[2:]
        # Few positions are left by this, so it is all that is asked of each. No bytes are 2**32 less one here.
        at = np.flatnonzero(captured - np.uint32(1) < most)
        at = at[(word[at + 1] < unit) & (abs(word[at].astype(np.int64) - began) < LONGEST)]
        found.append((4 * at + k, 4 * at + k + header + captured[at]))
    headers, nexts = map(np.concatenate, zip(*found, strict=True))
    order = np.argsort(headers)
    return headers[order], nexts[order], len(data) - 11


def _blocks(data: bytes, state: Mapping[str, Any]) -> tuple[Array, Array, int]:
    """The same for blocks of pcapng, whose lengths stand at both ends, and which begin at multiples of four bytes."""
    word = np.frombuffer(data, "<u4" if state["little"] else ">u4", len(data) // 4)
    size = word[1:]
    at = np.flatnonzero((size >= _LEAST_BLOCK) & (size & 3 == 0) & (size <= LARGEST))
    after = at + size[at] // 4
    at = at[(after > len(word)) | (word[np.minimum(after, len(word)) - 1] == size[at])]
    return 4 * at, 4 * at + size[at], 4 * len(size)


def _followed(headers: Array, nexts: Array, count: int) -> Array:
    """Where the chain that begins at each of ``headers`` leaves the first ``count`` positions; -1 where it comes to
    nothing.

    ``nexts``: where the next header of each must be.

    Each step follows twice as many links as the one before. What is cut off at the end is not looked at: the chain has
    come as far as that.
    """
    reach, own = nexts.copy(), np.arange(len(headers))
    # By the number of a header that of the next, its own where the chain has ended.
    following = np.minimum(np.searchsorted(headers, nexts), len(headers) - 1)
    broken = (nexts < count) & (headers[following] != nexts)
    reach[broken] = _NOWHERE
    following = np.where(broken | (nexts >= count), own, following)
    while True:
        further = following[following]
        if np.array_equal(further, following):
            return reach[following]
        following = further


def _timed(read: Callable[[int, int], bytes], at: int, state: Mapping[str, Any]) -> int | None:
    """The first block from ``at`` on that is a packet with a time; None where none follows soon."""
    order = "<" if state["little"] else ">"
    data = read(at, LARGEST)
    pos = 0
    while pos + _LEAST_BLOCK <= len(data):
        kind, size = struct.unpack_from(order + "II", data, pos)
        if kind in _TIMED:
            return at + pos
        if size < _LEAST_BLOCK or size & 3:
            return None
        pos += size
    return None
