"""Captures that are written: pcapng, packet by packet, and which packets belong to which connection.

``packets_of`` goes through a capture and gives the packets of some connections, by the numbers that a first pass over
the same capture has given (``tables.reading.read`` with ``part=Part()``); ``PcapngWriter`` writes them.

Rules kept here:

- Packets are written as they were: bytes, link type, time to the nanosecond, size on the wire. Only fragments of IP
  packets are joined to what they are parts of.
- A packet without a time is written as a Simple Packet Block, which has none. Such a block belongs to the first
  interface of its section. Where this is another one, a new section begins.
- What goes on with damage gives the packets before it.

Format: pcapng as in draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from kwire.capture.parts import Part
from kwire.capture.reading import Reading, Source

if TYPE_CHECKING:
    from kwire.tls import KeyLog

__all__ = ["PcapngWriter", "Raw", "packets_of"]

_SECTION: Final = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
_RESOLUTION: Final = 9
"""Times are nanoseconds."""
_MOST: Final = (1 << 64) - 1


class Raw(NamedTuple):
    """A packet: time in nanoseconds since 1970 (None: the capture does not state it), what the capture has of it, its
    size on the wire, its link type."""

    time: int | None
    data: bytes
    size: int
    link: int


def packets_of(
    source: Source,
    connections: Collection[int],
    *,
    ports: Iterable[int] | None = None,
    vxlan_ports: Iterable[int] | None = None,
    keys: KeyLog | None = None,
    name: str = "",
    progress: Callable[[int], None] | None = None,
) -> Iterator[Raw]:
    """The packets of some connections, in the order of the capture. Raises what ``Reading`` does."""
    import numpy as np

    from kwire.kernels.layouts import NO_TIME

    reading = Reading(
        source, ports=ports, vxlan_ports=vxlan_ports, keys=keys, name=name, progress=progress, part=Part()
    )
    wanted = np.array(sorted(connections), np.int64)
    last = None
    for _ in reading:
        tracker = reading.tracker
        window = tracker.window
        if window is None or window is last:
            continue
        last = window
        rows, _ = tracker.rows()
        chosen = np.isin(rows["number"], wanted)
        mine = (window.slots >= 0) & chosen[np.maximum(window.slots, 0)] if len(chosen) else window.slots >= 0
        for k in np.flatnonzero(mine).tolist():
            row = window.packets[k]
            begin, size = int(row["off"]), int(row["captured"])
            time = None if row["time"] == NO_TIME else int(row["time"])
            yield Raw(time, window.data[begin : begin + size].tobytes(), int(row["size"]), int(row["link"]))


class PcapngWriter:
    """Writes packets to a binary file, with an interface for each link type."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._interfaces: dict[tuple[int, int], int] = {}
        """The numbers of those of this section, by link type and by the bytes up to which packets are captured (0: all
        of them)."""
        self.packets: int = 0
        file.write(_SECTION)

    def write(self, packet: Raw) -> None:
        """Writes a packet."""
        self.packets += 1
        if packet.time is None:
            self._write_simple(packet)
            return
        number = self._interface(packet.link, 0)
        time = min(max(packet.time, 0), _MOST)
        head = struct.pack("<5I", number, time >> 32, time & 0xFFFFFFFF, len(packet.data), packet.size)
        self._block(6, head + packet.data)

    def _write_simple(self, packet: Raw) -> None:
        """Writes a packet without a time. How much of it was captured is said by its interface alone."""
        size = max(packet.size, len(packet.data))
        of = packet.link, 0 if size == len(packet.data) else len(packet.data)
        if self._interfaces and self._interfaces.get(of) != 0:
            self._interfaces.clear()
            self._file.write(_SECTION)
        self._interface(*of)
        self._block(3, struct.pack("<I", size) + packet.data)

    def _interface(self, link: int, most: int) -> int:
        """The number of an interface of this section, which is described where it is new."""
        number = self._interfaces.get((link, most))
        if number is None:
            number = self._interfaces[link, most] = len(self._interfaces)
            resolution = struct.pack("<HHB3xHH", 9, 1, _RESOLUTION, 0, 0)
            self._block(1, struct.pack("<HHI", link, 0, most) + resolution)
        return number

    def _block(self, kind: int, body: bytes) -> None:
        body += bytes(-len(body) % 4)
        length = len(body) + 12
        self._file.write(struct.pack("<II", kind, length) + body + struct.pack("<I", length))
