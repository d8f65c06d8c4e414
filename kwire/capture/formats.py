"""File headers of pcap and pcapng: which format, which byte order, which interfaces.

Only what stands once per file, section or interface is read here, in Python. The packets between are found by the
kernels of ``kwire.capture.packets``. A ``Container`` takes a capture window by window and says how far it got; it
does no I/O.

Bad input is a ``CaptureError`` with the offset in the file. It is returned, not raised, once packets have been
read: those come first, the error when they have been dealt with.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np

from kwire.capture import packets
from kwire.capture.magics import PCAP, PCAPNG
from kwire.errors import CaptureError

__all__ = ["Container"]

_LARGEST_SNAPLEN: Final = 262_144
"""libpcap's MAXIMUM_SNAPLEN; files say 0, 65535 or 2**31 - 1 and mean "everything"."""

_COMPRESSED: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}

SUPPORTED_LINKS: Final = frozenset({0, 1, 12, 14, 101, 108, 113, 228, 229, 276})
"""BSD loopback, Ethernet, raw IP (three numbers), OpenBSD loopback, Linux cooked v1, IPv4, IPv6, Linux cooked v2."""


class Container:
    """The packets of one capture, window by window.

    ``begin`` reads the file header and must be called first, with at least ``HEADER`` bytes or the whole file; then
    ``packets`` any number of times. ``counts`` is the array that the kernels count in.
    """

    HEADER: Final = 24

    def __init__(self, counts: Any) -> None:
        self.counts = counts
        self.kind = ""
        self.last_time = 0
        self.unsupported: set[int] = set()
        """Link types that were met and are not supported."""
        self._little = False
        self._nano = False
        self._packet_header = 16
        self._limit = 0
        self._link = 0
        self._interfaces = np.zeros((0, packets.INTERFACE_COLUMNS), np.int64)
        self._interface_room = self._interfaces

    def begin(self, head: bytes) -> int:
        """Reads the file header and returns how many bytes it takes. Raises ``CaptureError``."""
        if not head:
            raise CaptureError("the file is empty")
        magic = head[:4]
        if magic == PCAPNG:
            self.kind = "pcapng"
            if len(head) < 12:
                raise CaptureError(f"the pcapng header is truncated: {len(head)} bytes", offset=0)
            if head[8:12] not in (b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a"):
                raise CaptureError("not a capture: a pcapng magic number, but no byte order after it", offset=8)
            return 0
        if magic not in PCAP:
            for start, name in _COMPRESSED.items():
                if head.startswith(start):
                    raise CaptureError(
                        f"not a capture but a file compressed with {name}: decompress it first", offset=0
                    )
            if len(head) < 4:
                raise CaptureError(f"not a capture: only {len(head)} bytes", offset=0)
            raise CaptureError(
                f"not a capture: neither pcap nor pcapng begins with the bytes {magic.hex(' ')}", offset=0
            )
        self.kind = "pcap"
        self._little, self._nano, self._packet_header = PCAP[magic]
        if len(head) < 24:
            raise CaptureError(f"the pcap header is truncated: {len(head)} of 24 bytes", offset=0)
        order = "<" if self._little else ">"
        # Version (2 x u16), time zone and accuracy (always 0), snapshot length, link type.
        major, _minor, _zone, _accuracy, snaplen, network = struct.unpack_from(order + "HHiIII", head, 4)
        if major != 2:
            raise CaptureError(f"pcap version {major} is not supported, only 2", offset=4)
        # The upper half holds the length of a frame check sequence, in some files.
        self._link = network & 0xFFFF
        self._limit = min(max(snaplen, _LARGEST_SNAPLEN), packets.MAX_PACKET)
        self._note_link(self._link)
        if self._link not in SUPPORTED_LINKS:
            raise CaptureError(f"link type {self._link} is not supported", offset=20)
        return 24

    def packets(self, buf: Any, start: int, end: int, base: int) -> tuple[Any, int, CaptureError | None]:
        """The packets in ``buf[start:end]``: (table, position reached, error).

        ``base`` is the offset in the file of ``buf[0]``. Bytes after the position reached are the beginning of a packet
        and come again, with more behind them; after an error nothing does.
        """
        if self.kind == "pcap":
            table, rows, pos, why = packets.pcap_packets(
                buf, start, end, self._little, self._nano, self._packet_header, self._limit, self._link
            )
            error = None
            if why == packets.BAD:
                error = CaptureError(
                    "the file is damaged: a packet cannot be as long as it says here", offset=base + pos
                )
            if rows:
                self.last_time = int(table[rows - 1, packets.PKT_TIME])
            return table[:rows], pos, error
        tables = []
        pos = start
        error = None
        while True:
            table, rows, pos, why, last = packets.pcapng_packets(
                buf, pos, end, self._little, self._interfaces, self.last_time, self.counts
            )
            self.last_time = int(last)
            if rows:
                # The kernel makes each table for all that may come; a few packets must not hold on to the whole of it.
                tables.append(table[:rows].copy() if rows < len(table) // 4 else table[:rows])
            if why == packets.BAD:
                error = CaptureError(
                    "the file is damaged: a block cannot be as long as it says here", offset=base + pos
                )
            if why != packets.SECTION:
                break
            try:
                size = self._block(buf, pos, end, base)
            except CaptureError as problem:
                error = problem
                break
            if size == 0:
                break
            pos += size
        if not tables:
            return table[:0], pos, error
        return (np.concatenate(tables) if len(tables) > 1 else tables[0]), pos, error

    def _block(self, buf: Any, pos: int, end: int, base: int) -> int:
        """Reads a section header or interface description; returns its length, 0 if it is not complete."""
        head = bytes(buf[pos : min(end, pos + 28)])
        if len(head) < 12:
            return 0
        if head[:4] == PCAPNG:
            order = head[8:12]
            if order not in (b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a"):
                raise CaptureError("the file is damaged: a section without a byte order", offset=base + pos)
            self._little = order == b"\x4d\x3c\x2b\x1a"
            least = 28
        else:
            least = 20
        prefix = "<" if self._little else ">"
        (size,) = struct.unpack_from(prefix + "I", head, 4)
        if size < least or size & 3 or size > packets.MAX_PACKET:
            raise CaptureError("the file is damaged: a block cannot be as long as it says here", offset=base + pos)
        if size > end - pos:
            return 0
        block = bytes(buf[pos : pos + size])
        if head[:4] == PCAPNG:
            major, _minor = struct.unpack_from(prefix + "HH", block, 12)
            if major != 1:
                raise CaptureError(f"pcapng version {major} is not supported, only 1", offset=base + pos)
            self._interfaces = np.zeros((0, packets.INTERFACE_COLUMNS), np.int64)
            self._interface_room = self._interfaces
            return int(size)
        link, _reserved, snaplen = struct.unpack_from(prefix + "HHI", block, 8)
        resolution, offset = _interface_options(block[16 : size - 4], prefix)
        known = len(self._interfaces)
        if known == len(self._interface_room):
            self._interface_room = np.zeros((2 * known + 4, packets.INTERFACE_COLUMNS), np.int64)
            self._interface_room[:known] = self._interfaces
        self._interface_room[known] = link, snaplen, resolution, offset
        self._interfaces = self._interface_room[: known + 1]
        self._note_link(link)
        return int(size)

    def _note_link(self, link: int) -> None:
        if link not in SUPPORTED_LINKS:
            self.unsupported.add(link)


def _interface_options(options: bytes, prefix: str) -> tuple[int, int]:
    """Resolution (as ``packets.I_RESOLUTION`` has it) and offset in seconds of an interface's timestamps.

    ``if_tsresol`` is option 9 (one byte: a power of ten, or of two with the highest bit set), ``if_tsoffset`` is 14.
    Options that do not fit end the list.
    """
    resolution, offset = 6, 0
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from(prefix + "HH", options, at)
        if code == 0 or at + 4 + length > len(options):
            break
        value = options[at + 4 : at + 4 + length]
        if code == 9 and length == 1:
            power = value[0] & 0x7F
            if value[0] & 0x80:
                resolution = packets.BINARY_UNITS + min(power, 62)
            elif power > 9:
                resolution = packets.FINE_UNITS + min(power, 28)
            else:
                resolution = power
        elif code == 14 and length == 8:
            offset = struct.unpack(prefix + "q", value)[0]
        at += 4 + (length + 3 & ~3)
    # 2**33 seconds are 272 years: anything beyond is no time.
    return resolution, offset if abs(offset) < 1 << 33 else 0
