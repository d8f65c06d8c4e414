"""File headers of pcap and pcapng: which format, which byte order, which interfaces.

Only what stands once per file, section or interface is read here, in Python. The packets between are found by the
kernels of ``kwire.kernels.packets``. A ``Container`` takes a capture window by window and says how far it got; it does
no I/O. What it must remember between two windows can be taken out of it (``state``) and put into another one
(``restore``). So reading can go on in another process.

Bad input is a ``CaptureError`` with the offset in the file. It is returned, not raised, once packets have been read.
Those come first; the error comes when they have been processed.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from kwire.capture.compressed import UNREAD, DamagedError
from kwire.capture.links import named, supported
from kwire.capture.magics import PCAP, PCAPNG, compression
from kwire.errors import CaptureError
from kwire.kernels.engine import PYTHON, Engine
from kwire.kernels.layers import LINKS
from kwire.kernels.layouts import INTERFACE, NO_TIME, PACKET, joined
from kwire.kernels.packets import (
    BINARY_UNITS,
    DECRYPTION_SECRETS,
    FINE_UNITS,
    MAX_PACKET,
    Count,
    Stopped,
    pcap_packets,
    pcapng_packets,
)
from kwire.tls import KeyLog

__all__ = ["Container", "first_time", "first_time_in"]

_HEAD: Final = 64 << 10
"""Bytes of a capture in which its first packet is looked for."""

_LARGEST_SNAPLEN: Final = 262_144
"""libpcap's MAXIMUM_SNAPLEN; files say 0, 65535 or 2**31 - 1 and mean "everything"."""

_NATIVE: Final = b"\x1a\x2b\x3c\x4d"
_SWAPPED: Final = _NATIVE[::-1]
"""The byte order of a section, as it stands in a big-endian and in a little-endian one."""

_PACKETS: Final = (2, 3, 6)
"""Types of blocks with a packet: obsolete, simple and enhanced."""
_DESCRIPTIONS: Final = (0x0A0D0D0A, 1, DECRYPTION_SECRETS)
"""Types of the blocks that later packets depend on: sections, interfaces and secrets."""
_DESCRIPTION: Final = b"\1\0\0\0"
"""The type of a block that describes an interface, little-endian."""
_LEAST_HEAD: Final = 12
_LEAST_SECTION: Final = 28
_LEAST_INTERFACE: Final = 20
"""Bytes that must be there to read the length, and those that blocks of each kind have at least."""

_TLS_SECRETS: Final = 0x544C534B
"""The type of secrets in a Decryption Secrets Block that are a key log of TLS."""

_END_OF_OPTIONS: Final = 0
_TIME_RESOLUTION: Final = 9
_TIME_OFFSET: Final = 14
_MICROSECONDS: Final = 6
_NANOSECONDS: Final = 9
_FINEST_BINARY: Final = 62
_FINEST_DECIMAL: Final = 28
_LONGEST_OFFSET: Final = 1 << 33
"""Seconds: 272 years. Anything beyond is no time."""

Array = Any


class Container:
    """The packets of one capture, window by window.

    ``begin`` reads the file header and must be called first, with at least ``HEADER`` bytes or the whole file. After
    it, ``packets`` may be called any number of times. ``counts`` is the array that the kernels count in, one place for
    each member of ``kwire.kernels.packets.Count``. ``keys`` gets the secrets of TLS that stand in the capture; they are
    part of the state.
    """

    HEADER: Final = 24

    def __init__(self, counts: Any, keys: KeyLog | None = None) -> None:
        self.counts = counts
        self.keys: KeyLog = KeyLog() if keys is None else keys
        self.kind: str = ""
        self.unsupported: dict[int, int] = {}
        """Link types that are not supported, and how many packets have them."""
        self._little = False
        self._nano = False
        self._packet_header = 16
        self._limit = 0
        self._link = 0
        self._interfaces = np.zeros(0, INTERFACE)
        self._interface_room = self._interfaces
        self.reported: int = 0
        """Sections, interfaces and secrets that were read: later packets depend on these."""

    def begin(self, head: bytes) -> int:
        """Read the file header and return how many bytes it takes. Raises ``CaptureError``."""
        if not head:
            raise CaptureError("the file is empty: no packet is in it yet (tcpdump -U writes each one at once)")
        magic = head[:4]
        if magic == PCAPNG:
            self.kind = "pcapng"
            if len(head) < _LEAST_HEAD:
                raise CaptureError(f"the pcapng header is truncated: {len(head)} bytes", offset=0)
            if head[8:12] not in (_NATIVE, _SWAPPED):
                raise CaptureError("not a capture: a pcapng magic number, but no byte order after it", offset=8)
            return 0
        if magic not in PCAP:
            if codec := compression(head):
                way = "" if codec in UNREAD else ", or give kwire its path"
                raise CaptureError(
                    f"not a capture but a file compressed with {codec}: decompress it first{way}", offset=0
                )
            if len(head) < 4:
                raise CaptureError(f"not a capture: only {len(head)} bytes", offset=0)
            begins = magic.hex(" ") + (", which are text" if all(32 <= one < 127 for one in magic) else "")
            raise CaptureError(
                f"not a capture: neither pcap nor pcapng begins with the bytes {begins}; `tcpdump -w FILE` writes one",
                offset=0,
            )
        self.kind = "pcap"
        self._little, self._nano, self._packet_header = PCAP[magic]
        if len(head) < self.HEADER:
            raise CaptureError(f"the pcap header is truncated: {len(head)} of {self.HEADER} bytes", offset=0)
        order = "<" if self._little else ">"
        # Version (2 x u16), time zone and accuracy (always 0), snapshot length, link type.
        major, _minor, _zone, _accuracy, snaplen, network = struct.unpack_from(order + "HHiIII", head, 4)
        if major != 2:
            raise CaptureError(f"pcap version {major} is not supported, only 2", offset=4)
        # The upper half holds the length of a frame check sequence, in some files.
        self._link = network & 0xFFFF
        self._limit = min(max(snaplen, _LARGEST_SNAPLEN), MAX_PACKET)
        if self._link not in LINKS:
            raise CaptureError(
                f"link type {named(self._link)} is not supported; supported are {supported()}", offset=20
            )
        return self.HEADER

    def packets(
        self, buf: Array, start: int, end: int, base: int, engine: Engine
    ) -> tuple[Array, int, CaptureError | None]:
        """The packets in ``buf[start:end]``: (table of PACKET, position reached, error).

        ``base`` is the offset in the file of ``buf[0]``, ``engine`` is what runs the kernels. Bytes after the position
        reached are the beginning of a packet. They must be given again, with more bytes after them. After an error
        nothing is given again.
        """
        if self.kind == "pcap":
            return self._of_pcap(buf, start, end, base, engine)
        tables: list[Array] = []
        pos = start
        error = None
        while True:
            room, pos, stopped = pcapng_packets(buf, pos, end, self._little, self._interfaces, self.counts, engine)
            if len(room):
                # A table is made for all that may come; a few packets must not hold on to the whole of it.
                tables.append(joined([room]) if len(room) < len(room.base) // 4 else room)
            if stopped == Stopped.BAD:
                error = CaptureError(
                    "the file is damaged: a block cannot be as long as it says here", offset=base + pos
                )
            if stopped != Stopped.SECTION:
                break
            try:
                pos, whole = self._blocks(buf, pos, end, base)
            except CaptureError as problem:
                error = problem
                break
            if not whole:
                break
        packets = joined(tables or [np.empty(0, PACKET)]) if len(tables) != 1 else tables[0]
        for link in self.unsupported:
            self.unsupported[link] += int(np.count_nonzero(packets["link"] == link))
        return packets, pos, error

    def _of_pcap(
        self, buf: Array, start: int, end: int, base: int, engine: Engine
    ) -> tuple[Array, int, CaptureError | None]:
        table, pos, stopped = pcap_packets(
            buf, start, end, self._little, self._nano, self._packet_header, self._limit, self._link, engine
        )
        error = None
        if stopped == Stopped.BAD:
            error = CaptureError("the file is damaged: a packet cannot be as long as it says here", offset=base + pos)
        return table, pos, error

    def described(self, head: bytes) -> int | None:
        """Read what stands before the first packet, and return where that packet begins.

        None where ``head``, the beginning of a file, does not reach so far. In place of ``begin``. Raises
        ``CaptureError``.
        """
        pos = self.begin(head[: self.HEADER])
        while self.kind == "pcapng":
            if pos + _LEAST_HEAD > len(head):
                return None
            kind, size = struct.unpack_from("<II" if self._little else ">II", head, pos)
            if kind in _PACKETS:
                break
            if kind in _DESCRIPTIONS:
                size = self._block(head, pos, len(head), 0)
                if not size:
                    return None
            elif size < _LEAST_HEAD or size & 3:
                raise CaptureError("the file is damaged: a block cannot be as long as it says here", offset=pos)
            pos += size
        return pos

    def state(self) -> dict[str, Any]:
        """What has been read of the capture so far, as JSON can hold it. ``counts`` is not part of it."""
        return {
            "kind": self.kind,
            "little": self._little,
            "nano": self._nano,
            "packet_header": self._packet_header,
            "limit": self._limit,
            "link": self._link,
            "unsupported": sorted(map(list, self.unsupported.items())),
            "interfaces": [list(row) for row in self._interfaces.tolist()],
            # Not for secrecy: what prints a state must not print them.
            "secrets": base64.b64encode(self.keys.text()).decode(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where the container that gave ``state`` was; ``begin`` must not be called then."""
        self.kind = state["kind"]
        self._little = state["little"]
        self._nano = state["nano"]
        self._packet_header = state["packet_header"]
        self._limit = state["limit"]
        self._link = state["link"]
        self.unsupported = dict(state["unsupported"])
        self._interfaces = np.array([tuple(row) for row in state["interfaces"]], INTERFACE)
        self._interface_room = self._interfaces
        self.keys.add(base64.b64decode(state["secrets"]))

    def _blocks(self, buf: Any, pos: int, end: int, base: int) -> tuple[int, bool]:
        """Read the block at ``pos`` that is no packet, and the interfaces after it.

        Returns where they end, and whether the last one was complete.
        """
        first = pos
        # A section may change the byte order.
        while pos == first or bytes(buf[pos : pos + 4]) == _DESCRIPTION[:: 1 if self._little else -1]:
            size = self._block(buf, pos, end, base)
            if size == 0:
                break
            pos += size
        return pos, pos > first

    def _block(self, buf: Any, pos: int, end: int, base: int) -> int:
        """Read a section header, interface description or block of secrets; its length, 0 if it is not complete."""
        head = bytes(buf[pos : min(end, pos + _LEAST_SECTION)])
        if len(head) < _LEAST_HEAD:
            return 0
        if head[:4] == PCAPNG:
            order = head[8:12]
            if order not in (_NATIVE, _SWAPPED):
                raise CaptureError("the file is damaged: a section without a byte order", offset=base + pos)
            self._little = order == _SWAPPED
            least = _LEAST_SECTION
        else:
            least = _LEAST_INTERFACE
        prefix = "<" if self._little else ">"
        kind, size = struct.unpack_from(prefix + "II", head)
        if size < least or size & 3 or size > MAX_PACKET:
            raise CaptureError("the file is damaged: a block cannot be as long as it says here", offset=base + pos)
        if size > end - pos:
            return 0
        block = bytes(buf[pos : pos + size])
        self.reported += 1
        if head[:4] == PCAPNG:
            major, _minor = struct.unpack_from(prefix + "HH", block, 12)
            if major != 1:
                raise CaptureError(f"pcapng version {major} is not supported, only 1", offset=base + pos)
            self._interfaces = np.zeros(0, INTERFACE)
            self._interface_room = self._interfaces
            return int(size)
        if kind == DECRYPTION_SECRETS:
            secrets, length = struct.unpack_from(prefix + "II", block, 8)
            if secrets == _TLS_SECRETS and length <= size - _LEAST_INTERFACE:
                self.keys.add(block[16 : 16 + length])
            return int(size)
        link, _reserved, snaplen = struct.unpack_from(prefix + "HHI", block, 8)
        resolution, offset = _interface_options(block[16 : size - 4], prefix)
        known = len(self._interfaces)
        if known == len(self._interface_room):
            self._interface_room = np.zeros(2 * known + 4, INTERFACE)
            self._interface_room[:known] = self._interfaces
        self._interface_room[known] = link, snaplen, resolution, offset
        self._interfaces = self._interface_room[: known + 1]
        if link not in LINKS:
            self.unsupported.setdefault(link, 0)
        return int(size)


def first_time(head: bytes) -> int | None:
    """When the first packet with a time was captured, in nanoseconds since 1970.

    None where ``head``, the first bytes of the capture, does not say.
    """
    container = Container(np.zeros(len(Count), np.int64))
    data = np.frombuffer(head, np.uint8).copy()
    try:
        start = container.begin(head[: Container.HEADER])
    except CaptureError:
        return None
    packets, _, _ = container.packets(data, start, len(data), 0, PYTHON)
    times = packets["time"][packets["time"] != NO_TIME]
    return int(times[0]) if len(times) else None


def first_time_in(stream: Any) -> tuple[int | None, DamagedError | None]:
    """What ``first_time`` says of a stream, and the damage if not even its first byte could be read."""
    head, damage = b"", None
    try:
        # A stream may give less than it is asked for.
        while len(head) < _HEAD and (more := stream.read(_HEAD - len(head))):
            head += more
    except DamagedError as error:
        damage = None if head else error
    return first_time(head), damage


def _interface_options(options: bytes, prefix: str) -> tuple[int, int]:
    """Resolution (as ``Interface.resolution`` has it) and offset in seconds of an interface's timestamps.

    ``if_tsresol`` is option 9 (one byte: a power of ten, or of two with the highest bit set), ``if_tsoffset`` is 14.
    Options that do not fit end the list.
    """
    resolution, offset = _MICROSECONDS, 0
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from(prefix + "HH", options, at)
        if code == _END_OF_OPTIONS or at + 4 + length > len(options):
            break
        value = options[at + 4 : at + 4 + length]
        if code == _TIME_RESOLUTION and length == 1:
            power = value[0] & 0x7F
            if value[0] & 0x80:
                resolution = BINARY_UNITS + min(power, _FINEST_BINARY)
            elif power > _NANOSECONDS:
                resolution = FINE_UNITS + min(power, _FINEST_DECIMAL)
            else:
                resolution = power
        elif code == _TIME_OFFSET and length == 8:
            offset = struct.unpack(prefix + "q", value)[0]
        at += 4 + (length + 3 & ~3)
    return resolution, offset if abs(offset) < _LONGEST_OFFSET else 0
