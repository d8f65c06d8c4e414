"""The four bytes that a capture file begins with: which format it has, and how its numbers are written.

Imports nothing else, so that whoever only asks whether a file is a capture loads no array library.

Source: pcap and pcapng, IETF drafts draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng; libpcap's ``sf-pcap.c`` for
the patched form.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["PCAP", "PCAPNG", "PcapForm", "is_capture"]


class PcapForm(NamedTuple):
    """How a pcap file is written."""

    little: bool
    """Little-endian; else big-endian."""
    nano: bool
    """Times have nanoseconds; else microseconds."""
    packet_header: int
    """Bytes in front of each packet."""


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


def is_capture(head: bytes) -> bool:
    """Whether a file that begins with ``head`` (four bytes are enough) says that it is a capture."""
    return head[:4] == PCAPNG or head[:4] in PCAP
