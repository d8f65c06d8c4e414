"""The first bytes of a file: which format a capture has, how its numbers are written, and whether it is compressed.

Imports nothing else, so that whoever only asks whether a file is a capture loads no array library.

Sources:

- pcap and pcapng: IETF drafts draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng
- the patched form of pcap: libpcap's ``sf-pcap.c``
- gzip: RFC 1952; zstd: RFC 8878
- bzip2, xz and zip: as their tools have them
- lz4: LZ4 Frame Format
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["COMPRESSED", "PCAP", "PCAPNG", "PcapForm", "compression", "is_capture"]


class PcapForm(NamedTuple):
    """How a pcap file is written."""

    little: bool
    """Little-endian; else big-endian."""
    nano: bool
    """Times have nanoseconds; else microseconds."""
    packet_header: int
    """Bytes before each packet."""


PCAP: Final = {
    b"\xa1\xb2\xc3\xd4": PcapForm(little=False, nano=False, packet_header=16),
    b"\xd4\xc3\xb2\xa1": PcapForm(little=True, nano=False, packet_header=16),
    b"\xa1\xb2\x3c\x4d": PcapForm(little=False, nano=True, packet_header=16),
    b"\x4d\x3c\xb2\xa1": PcapForm(little=True, nano=True, packet_header=16),
    # Linux 2.x kernels with Alexey Kuznetsov's patch: 8 more bytes per packet.
    b"\xa1\xb2\xcd\x34": PcapForm(little=False, nano=False, packet_header=24),
    b"\x34\xcd\xb2\xa1": PcapForm(little=True, nano=False, packet_header=24),
}
"""Form of a pcap file by its first four bytes."""

PCAPNG: Final = b"\x0a\x0d\x0d\x0a"
"""First four bytes of a pcapng file, and of each section of one; the same in both byte orders."""


COMPRESSED: Final = {
    b"\x1f\x8b\x08": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xfd7zX": "xz",
    b"PK\x03\x04": "zip",
}
"""First bytes of a compressed file, none more than four, and what Arrow calls the codec. It has no xz and no zip."""


def compression(head: bytes) -> str | None:
    """How a file is compressed that begins with ``head`` (four bytes are enough); None if it is not."""
    return next((codec for magic, codec in COMPRESSED.items() if head.startswith(magic)), None)


def is_capture(head: bytes) -> bool:
    """Whether a file that begins with ``head`` (four bytes are enough) says that it is a capture."""
    return head[:4] == PCAPNG or head[:4] in PCAP
