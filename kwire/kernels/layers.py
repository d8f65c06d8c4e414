"""The headers of a packet, from the link to the TCP segment that it carries. Nothing here remembers anything.

Strategy: ``innermost`` follows the headers of one packet, layer by layer, until it has read a TCP header. Each layer is
a kernel that looks at one header and says which layer comes next and where it begins::

    Ethernet, tags | cooked | loopback | PPP | Wi-Fi ... -> IP -> IPv4 | IPv6, extension headers -> TCP
         ^            ^                     ^               ^          |
         |            |                     |               |          v
         +------------+-- MPLS, PPPoE ------+---------------+--- GRE, ERSPAN | UDP -> VXLAN, Geneve, GTP-U ...

A new header is a member of ``Layer``, a kernel that reads it, and a branch of ``_seldom`` that calls the kernel. Only
headers that most captures have are branches of ``innermost``, which stays short. A line of a table says where a header
is met: ``LINKS`` by the link type, ``_ETHER_LAYERS``, ``_IP_LAYERS`` and ``_UDP_TUNNELS`` in other packets. A tunnel
leads back to a layer of the packet inside. ``TUNNELS`` has the word for it.

Rules kept here:

- Every length comes from the input and is checked against the end of the packet before it is used. A packet that is
  not understood (another protocol, a header that does not fit) is counted, as a ``Count``, and left out.
- A segment's length is what the innermost IP header says, whatever the capture has of it (snaplen). What stands after
  the end of an outer IP packet is padding, and nothing of the packet inside.
- At most ``MOST_LAYERS`` are followed: eight tunnels of the longest kind.
- Addresses are those of the innermost IP packet. The number of a tunnel or VLAN is no part of a connection's key. Both
  directions of a connection, and the copies of it that a mirror sends, may travel under different ones.

Formats: link types as in the registry of tcpdump.org. IPv4 RFC 791, IPv6 RFC 8200, TCP RFC 9293. VLAN tags IEEE 802.1Q,
802.1ad, 802.1ah, 802.1BR and VN-tag. PPP RFC 1661 and 1662, PPPoE RFC 2516. MPLS RFC 3032, 4023 and 7510, pseudowires
RFC 4385 and 4448. GRE RFC 2784, 2890, 1701 and 2637, ERSPAN draft-foschiano-erspan. VXLAN RFC 7348, VXLAN-GPE
draft-ietf-nvo3-vxlan-gpe, Geneve RFC 8926. EtherIP RFC 3378. GTP-U 3GPP TS 29.281. IEEE 802.11, radiotap.org, PPI as
CACE specified it. NFLOG as in Linux's ``nfnetlink_log.h``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np

from kwire.kernels.engine import inlined, kernel
from kwire.kernels.layouts import Row, Wide, table_type
from kwire.kernels.numbers import i64, int64, little_u16, little_u32, plain, u16, u32
from kwire.kernels.packets import Count

__all__ = [
    "HEADER",
    "JOINED",
    "LINKS",
    "PART",
    "TUNNELS",
    "Flag",
    "Header",
    "Layer",
    "innermost",
]

Array = Any
"""A numpy array: numba, not mypy, checks what is in it."""

MOST_LAYERS: Final = 48
"""Headers of one packet that are followed: Ethernet, IP, its version, UDP and VXLAN eight times, and those inside."""


class Layer(IntEnum):
    """What stands at some place of a packet. The numbers begin after those of ``Count``.

    ``innermost`` goes on while a number is at least ``ETHERNET``. Keep 16 to 63 free: they are in neither of both.
    """

    ETHERNET = 64
    IP = 65
    """Either version; the header says which."""
    IPV4 = 66
    IPV6 = 67
    TCP = 68
    COOKED = 69
    """Linux cooked capture v1."""
    COOKED_2 = 70
    LOOPBACK = 71
    """Of BSD and OpenBSD: an address family and no more."""
    LLC = 72
    """What follows a length in place of an EtherType, and what Wi-Fi has."""
    PPP = 73
    HDLC = 74
    """PPP, or what Cisco routers have in its place."""
    PPPOE = 75
    NFLOG = 76
    RADIOTAP = 77
    WIFI = 78
    WIFI_PADDED = 79
    """The header is padded to a multiple of four bytes."""
    PPI = 80
    MPLS = 81
    MACSEC = 82
    BACKBONE = 83
    """802.1ah: an Ethernet frame after the number of a service."""
    UDP = 84
    GRE = 85
    ERSPAN_2 = 86
    ERSPAN_3 = 87
    ETHER_IP = 88
    VXLAN = 89
    VXLAN_GPE = 90
    GENEVE = 91
    GTP = 92


LINKS: Final = {
    0: Layer.LOOPBACK,
    1: Layer.ETHERNET,
    9: Layer.PPP,
    12: Layer.IP,
    14: Layer.IP,
    50: Layer.HDLC,
    51: Layer.PPPOE,
    101: Layer.IP,
    104: Layer.HDLC,
    105: Layer.WIFI,
    108: Layer.LOOPBACK,
    113: Layer.COOKED,
    127: Layer.RADIOTAP,
    192: Layer.PPI,
    228: Layer.IP,
    229: Layer.IP,
    239: Layer.NFLOG,
    276: Layer.COOKED_2,
}
"""The link types that are supported, and what a packet of each begins with."""

_FIRST_LAYERS: Final = np.array([LINKS.get(link, Count.LINK) for link in range(max(LINKS) + 1)], np.int64)

PART: Final = -1
"""In place of a link type: a fragment that has been looked at."""
JOINED: Final = 101
"""The link type of what fragments were joined to: an IP packet."""


class Flag(IntEnum):
    """Control bits of a TCP header."""

    FIN = 1
    SYN = 2
    RST = 4
    ACK = 16


class Header(Row):
    """What the headers of a packet say: the addresses of the innermost IP header, and the TCP header."""

    family: int
    """4 or 6."""
    src_high: Wide
    src_low: Wide
    dst_high: Wide
    dst_low: Wide
    """Addresses as two halves of 64 bits; of IPv4 the lower half."""
    wire_end: int
    """Where the packet ends as the IP header says: after what was captured if the capture cut it off."""
    tunnel: int
    """The innermost tunnel or VLAN: its ``Layer`` in the upper half, its number in the lower; 0 for none."""
    src_port: int
    dst_port: int
    seq: int
    ack: int
    control: int
    """The control bits: those of ``Flag``, among others."""
    begin: int
    """Where the TCP header begins."""
    off: int
    """Where the bytes of the segment begin; of a fragment its IP header."""
    captured: int
    """How many of them the capture has."""
    length: int
    """How many there were."""


HEADER: Final = table_type(Header)


# --- links ------------------------------------------------------------------------------------------------------------
# Each of these kernels reads the header at ``at`` of a packet of which the capture has the bytes before ``end``. It
# returns (next layer, where it begins), or a ``Count`` in place of the layer.

_ETHER_IPV4: Final = 0x0800
_ETHER_IPV6: Final = 0x86DD
_ETHER_LEAST: Final = 0x0600
"""A smaller number is a length, after which an LLC header stands."""
_VLAN: Final = 0x8100
_VLAN_OUTER: Final = 0x88A8
_VLAN_OLD: Final = 0x9100
_VLAN_OLDER: Final = 0x9200
"""802.1Q, 802.1ad (QinQ) and the numbers that were used for it before."""
_VN_TAG: Final = 0x8926
_E_TAG: Final = 0x893F
"""Of the ports of a switch that are elsewhere: Cisco's, and that of 802.1BR."""
_ETHER_MPLS: Final = 0x8847
_ETHER_MPLS_UPSTREAM: Final = 0x8848
_ETHER_PPPOE: Final = 0x8864
_ETHER_PPP: Final = 0x880B
_ETHER_ERSPAN: Final = 0x88BE
_ETHER_ERSPAN_3: Final = 0x22EB

_ETHER_LAYERS: Final = np.array(
    [
        (_ETHER_MPLS, Layer.MPLS),
        (_ETHER_MPLS_UPSTREAM, Layer.MPLS),
        (_ETHER_PPPOE, Layer.PPPOE),
        (_ETHER_PPP, Layer.PPP),
        (0x6558, Layer.ETHERNET),
        (0x88E5, Layer.MACSEC),
        (0x88E7, Layer.BACKBONE),
    ],
    np.int64,
)
"""EtherTypes besides those of IP, and what is in them. 0x6558 is met in tunnels."""

TUNNELS: Final[dict[int, str]] = {
    _VLAN: "vlan",
    Layer.PPPOE: "pppoe",
    Layer.GRE: "gre",
    Layer.ERSPAN_2: "erspan",
    Layer.ERSPAN_3: "erspan",
    Layer.VXLAN: "vxlan",
    Layer.VXLAN_GPE: "vxlan-gpe",
    Layer.GENEVE: "geneve",
    Layer.GTP: "gtp",
}
"""The word for each number that stands in the upper half of ``Header.tunnel``."""

_ETHERNET_SIZE: Final = 14
_COOKED_SIZE: Final = 16
_COOKED_2_SIZE: Final = 20
_LOOPBACK_SIZE: Final = 4
_LLC_SIZE: Final = 8
_SNAP: Final = 0xAAAA
_BRIDGE_SNAP: Final = 0xF8
"""Organisation of what an Ethernet frame became on another network, 802.1H; that of EtherTypes is 0."""


@kernel
def _listed(layers: Array, number: int, other: int) -> int:
    """What a table of numbers and layers says of ``number``; ``other`` if it is not there."""
    for k in range(layers.shape[0]):
        if layers[k, 0] == number:
            return plain(layers[k, 1])
    return other


@inlined
def _ether_type(buf: Array, at: int, end: int, kind: int, header: Any) -> tuple[int, int]:
    """What an EtherType stands for, after tags if there are any.

    The IP version is taken from the IP header itself. What the link layer says only has to be one of IPv4 and IPv6.
    """
    while kind != _ETHER_IPV4 and kind != _ETHER_IPV6:
        if kind in (_VLAN, _VLAN_OUTER, _VLAN_OLD, _VLAN_OLDER):
            size = int64(4)
        elif kind == _VN_TAG:
            size = int64(6)
        elif kind == _E_TAG:
            size = int64(8)
        else:
            break
        if at + size > end:
            return plain(Count.DAMAGED), at
        if size == 4:
            header.tunnel = int64(_VLAN) << 32 | (u16(buf, at) & 0xFFF)
        kind = u16(buf, at + size - 2)
        at += size
    if kind in (_ETHER_IPV4, _ETHER_IPV6):
        return plain(Layer.IP), at
    if kind < _ETHER_LEAST:
        return plain(Layer.LLC), at
    return _listed(_ETHER_LAYERS, kind, plain(Count.NOT_IP)), at


@inlined
def _ethernet(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    """Two addresses, EtherType."""
    if at + _ETHERNET_SIZE > end:
        return plain(Count.DAMAGED), at
    return _ether_type(buf, at + _ETHERNET_SIZE, end, u16(buf, at + 12), header)


@kernel
def _cooked(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    """Linux cooked v1: type, ARPHRD, length, address, protocol."""
    if at + _COOKED_SIZE > end:
        return plain(Count.DAMAGED), at
    return _ether_type(buf, at + _COOKED_SIZE, end, u16(buf, at + 14), header)


@kernel
def _cooked_2(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    """Linux cooked v2: protocol first."""
    if at + _COOKED_2_SIZE > end:
        return plain(Count.DAMAGED), at
    return _ether_type(buf, at + _COOKED_2_SIZE, end, u16(buf, at), header)


@kernel
def _loopback(buf: Array, at: int, end: int) -> tuple[int, int]:
    """BSD loopback: address family in the byte order of the host, or big-endian."""
    if at + _LOOPBACK_SIZE > end:
        return plain(Count.DAMAGED), at
    family = u32(buf, at)
    if family > 0xFFFF:
        family = little_u32(buf, at)
    # AF_INET is 2 everywhere; AF_INET6 is 10 (Linux), 24, 28 or 30 (the BSDs, macOS), 23 (Windows).
    if family in (2, 10, 23, 24, 28, 30):
        return plain(Layer.IP), at + _LOOPBACK_SIZE
    return plain(Count.NOT_IP), at


@kernel
def _llc(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    """LLC with SNAP: two access points and a control byte, organisation, EtherType."""
    if at + 2 > end:
        return plain(Count.DAMAGED), at
    if u16(buf, at) != _SNAP:
        return plain(Count.NOT_IP), at
    if at + _LLC_SIZE > end:
        return plain(Count.DAMAGED), at
    organisation = u32(buf, at + 2) & 0xFFFFFF
    kind = u16(buf, at + 6)
    if (organisation != 0 and organisation != _BRIDGE_SNAP) or kind < _ETHER_LEAST:
        return plain(Count.NOT_IP), at
    return _ether_type(buf, at + _LLC_SIZE, end, kind, header)


_PPP_ADDRESS: Final = 0xFF03
_CISCO_UNICAST: Final = 0x0F
_CISCO_BROADCAST: Final = 0x8F
_PPP_IPV4: Final = 0x0021
_PPP_IPV6: Final = 0x0057
_PPP_MPLS: Final = 0x0281
_PPP_MPLS_MULTICAST: Final = 0x0283
_PPP_LINKS: Final = 0x003D
"""A part of a packet: several links are used as one."""
_PPP_ENCRYPTED: Final = (0x0053, 0x0055, 0x00FB, 0x00FD)
"""Encrypted, or compressed, which is how Microsoft's encryption is called."""
_PPPOE_SIZE: Final = 6


@kernel
def _ppp(buf: Array, at: int, end: int) -> tuple[int, int]:
    """PPP: address and control where they are not left out; a protocol of two bytes, or of one, which is odd."""
    if at + 2 <= end and u16(buf, at) == _PPP_ADDRESS:
        at += 2
    if at >= end:
        return plain(Count.DAMAGED), at
    protocol = int64(buf[at])
    at += 1
    if not protocol & 1:
        if at >= end:
            return plain(Count.DAMAGED), at
        protocol = protocol << 8 | int64(buf[at])
        at += 1
    layer = plain(Count.NOT_IP)
    if protocol in (_PPP_IPV4, _PPP_IPV6):
        layer = plain(Layer.IP)
    elif protocol in (_PPP_MPLS, _PPP_MPLS_MULTICAST):
        layer = plain(Layer.MPLS)
    elif protocol in _PPP_ENCRYPTED:
        layer = plain(Count.PROTECTED)
    elif protocol == _PPP_LINKS:
        layer = plain(Count.TUNNEL)
    return layer, at


@kernel
def _hdlc(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    """The address says whether this is Cisco's: then control and an EtherType follow."""
    if at >= end:
        return plain(Count.DAMAGED), at
    if buf[at] != _CISCO_UNICAST and buf[at] != _CISCO_BROADCAST:
        return plain(Layer.PPP), at
    if at + 4 > end:
        return plain(Count.DAMAGED), at
    return _ether_type(buf, at + 4, end, u16(buf, at + 2), header)


@kernel
def _pppoe(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    """Version and type, code, session, length; then PPP. Codes other than 0 are of its discovery."""
    if at + _PPPOE_SIZE > end:
        return plain(Count.DAMAGED), at
    if u16(buf, at) != 0x1100:
        return plain(Count.NOT_IP), at
    header.tunnel = plain(Layer.PPPOE) << 32 | u16(buf, at + 2)
    return plain(Layer.PPP), at + _PPPOE_SIZE


_NFLOG_PAYLOAD: Final = 9


@kernel
def _nflog(buf: Array, at: int, end: int) -> tuple[int, int]:
    """Address family, version, group; then length, type and value, in the byte order of the host, padded to 4 bytes.

    Types are small numbers, of which the order can be seen; the highest bit marks those that hold others.
    """
    if at + 4 > end:
        return plain(Count.DAMAGED), at
    family = int64(buf[at])
    at += 4
    while at + 4 <= end:
        if int64(buf[at + 3]) & 0x7F:
            size = u16(buf, at)
            kind = u16(buf, at + 2)
        else:
            size = little_u16(buf, at)
            kind = little_u16(buf, at + 2)
        if size < 4:
            return plain(Count.DAMAGED), at
        if kind == _NFLOG_PAYLOAD:
            if family == 2 or family == 10:  # AF_INET, AF_INET6
                return plain(Layer.IP), at + 4
            return plain(Count.NOT_IP), at
        at += (size + 3) & ~3
    return plain(Count.DAMAGED), at


# --- Wi-Fi ------------------------------------------------------------------------------------------------------------

_RADIOTAP_SIZE: Final = 8
_RADIOTAP_PADDED: Final = 0x20
_WIFI_SIZE: Final = 24
_PPI_SIZE: Final = 8


@kernel
def _radiotap(buf: Array, at: int, end: int) -> tuple[int, int]:
    """Version, length, which fields there are (words, the highest bit says that there is another), the fields.

    Only one is looked at, the flags: whether the header of the frame is padded. A clock of eight bytes may stand in
    front of it.
    """
    if at + _RADIOTAP_SIZE > end:
        return plain(Count.DAMAGED), at
    size = little_u16(buf, at + 2)
    present = little_u32(buf, at + 4)
    if size < _RADIOTAP_SIZE or at + size > end:
        return plain(Count.DAMAGED), at
    field = at + _RADIOTAP_SIZE
    word = present
    while word & 0x80000000:
        if field + 4 > at + size:
            return plain(Count.DAMAGED), at
        word = little_u32(buf, field)
        field += 4
    if present & 1:
        field = at + ((field - at + 7) & ~7) + 8
    padded = bool(present & 2) and field < at + size and bool(int64(buf[field]) & _RADIOTAP_PADDED)
    return int64(Layer.WIFI_PADDED if padded else Layer.WIFI), at + size


@kernel
def _wifi(buf: Array, at: int, end: int, padded: bool) -> tuple[int, int]:
    """A data frame of 802.11: control, duration, three addresses, sequence; a fourth one, quality of service,
    more of it."""
    if at + 2 > end:
        return plain(Count.DAMAGED), at
    kind = int64(buf[at])
    control = int64(buf[at + 1])
    if kind & 3 or kind & 0x0C != 0x08 or kind & 0x40:
        return plain(Count.NOT_IP), at  # another version, management and control, or no data
    if control & 0x40:
        return plain(Count.PROTECTED), at
    size = int64(_WIFI_SIZE)
    if control & 3 == 3:
        size += 6  # between two access points
    aggregated = False
    if kind & 0x80:
        if at + size + 2 > end:
            return plain(Count.DAMAGED), at
        aggregated = bool(int64(buf[at + size]) & 0x80)
        size += 2
        if control & 0x80:
            size += 4
    if at + size > end:
        return plain(Count.DAMAGED), at
    if aggregated or control & 4 or int64(buf[at + 22]) & 15:
        return plain(Count.RADIO), at
    if padded:
        size = (size + 3) & ~3
    return plain(Layer.LLC), at + size


@kernel
def _ppi(buf: Array, at: int, end: int) -> tuple[int, int]:
    """Version, flags, length, the link type of what follows."""
    if at + _PPI_SIZE > end:
        return plain(Count.DAMAGED), at
    size = little_u16(buf, at + 2)
    if size < _PPI_SIZE or at + size > end:
        return plain(Count.DAMAGED), at
    link = little_u32(buf, at + 4)
    layer: int = plain(Count.LINK)
    if link < _FIRST_LAYERS.shape[0]:
        layer = plain(_FIRST_LAYERS[link])
    return layer, at + size


# --- IP ---------------------------------------------------------------------------------------------------------------

_IPV4_SIZE: Final = 20
_IPV6_SIZE: Final = 40
_EXTENSION_SIZE: Final = 8
_TCP_SIZE: Final = 20

_HOP_BY_HOP: Final = 0
_TCP_PROTOCOL: Final = 6
_ROUTING: Final = 43
_FRAGMENT: Final = 44
_AUTHENTICATION: Final = 51
_DESTINATION: Final = 60

_IP_LAYERS: Final = np.array(
    [
        (17, Layer.UDP),
        (4, Layer.IPV4),
        (41, Layer.IPV6),
        (47, Layer.GRE),
        (97, Layer.ETHER_IP),
        (137, Layer.MPLS),
        (50, Count.PROTECTED),
        (_AUTHENTICATION, Count.TUNNEL),
        (55, Count.TUNNEL),
        (94, Count.TUNNEL),
        (98, Count.TUNNEL),
        (108, Count.TUNNEL),
        (115, Count.TUNNEL),
    ],
    np.int64,
)
"""IP protocols besides TCP, and what is in them. 50 is ESP. The last five: Mobile IP, KA9Q's, ENCAP, IPComp, L2TP."""


@inlined
def _ip(buf: Array, at: int, end: int) -> tuple[int, int]:
    """The version."""
    if at >= end:
        return plain(Count.DAMAGED), at
    version = int64(buf[at]) >> 4
    if version == 4:
        return plain(Layer.IPV4), at
    if version == 6:
        return plain(Layer.IPV6), at
    return plain(Count.NOT_IP), at


@inlined
def _transport(protocol: int, at: int) -> tuple[int, int]:
    """What an IP protocol number stands for."""
    if protocol == _TCP_PROTOCOL:
        return plain(Layer.TCP), at
    return _listed(_IP_LAYERS, protocol, plain(Count.NOT_TCP)), at


@kernel
def _fragment(at: int, end: int, header: Any) -> tuple[int, int]:
    """Notes where the IP packet begins of which this is a fragment."""
    header.off = at
    header.captured = end - at
    return plain(Count.FRAGMENT), at


@inlined
def _ipv4(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    if at + _IPV4_SIZE > end:
        return plain(Count.DAMAGED), at
    size = (int64(buf[at]) & 15) * 4
    total = u16(buf, at + 2)
    if total == 0:
        total = end - at  # left to the network card (segmentation offload): all that was captured
    if size < _IPV4_SIZE or total < size or at + size > end or int64(buf[at]) >> 4 != 4:
        return plain(Count.DAMAGED), at
    if u16(buf, at + 6) & 0x3FFF:  # more fragments, or a fragment offset
        return _fragment(at, end, header)
    header.family = 4
    header.src_high = 0
    header.src_low = u32(buf, at + 12)
    header.dst_high = 0
    header.dst_low = u32(buf, at + 16)
    header.wire_end = at + total
    return _transport(int64(buf[at + 9]), at + size)


@inlined
def _ipv6(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    if at + _IPV6_SIZE > end or int64(buf[at]) >> 4 != 6:
        return plain(Count.DAMAGED), at
    start = at
    length = u16(buf, at + 4)
    header.family = 6
    header.src_high = i64(buf, at + 8)
    header.src_low = i64(buf, at + 16)
    header.dst_high = i64(buf, at + 24)
    header.dst_low = i64(buf, at + 32)
    header.wire_end = at + _IPV6_SIZE + length if length else end  # 0: a jumbogram, or segmentation offload
    protocol = int64(buf[at + 6])
    at += _IPV6_SIZE
    # RFC 8200, 4.1.
    while protocol in (_HOP_BY_HOP, _ROUTING, _FRAGMENT, _AUTHENTICATION, _DESTINATION):
        if at + _EXTENSION_SIZE > end:
            return plain(Count.DAMAGED), at
        if protocol == _FRAGMENT:
            if u16(buf, at + 2) & 0xFFF9:  # a fragment offset, or more fragments
                return _fragment(start, end, header)
            size = int64(_EXTENSION_SIZE)
        elif protocol == _AUTHENTICATION:
            size = (int64(buf[at + 1]) + 2) * 4
        else:
            size = (int64(buf[at + 1]) + 1) * 8
        protocol = int64(buf[at])
        at += size
    return _transport(protocol, at)


@inlined
def _tcp(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    wire_end = header.wire_end
    if at + _TCP_SIZE > end or at + _TCP_SIZE > wire_end:
        return plain(Count.DAMAGED), at
    size = (int64(buf[at + 12]) >> 4) * 4
    if size < _TCP_SIZE or at + size > wire_end:
        return plain(Count.DAMAGED), at
    header.src_port = u16(buf, at)
    header.dst_port = u16(buf, at + 2)
    header.seq = u32(buf, at + 4)
    header.ack = u32(buf, at + 8)
    header.control = int64(buf[at + 13])
    header.begin = at
    at += size
    header.off = at
    header.length = wire_end - at
    header.captured = max(0, min(end, wire_end) - at)  # nothing where the snapshot ends within the TCP options
    return plain(Count.PACKETS), at


# --- tunnels ----------------------------------------------------------------------------------------------------------

_BOTTOM: Final = 0x100
"""Of an MPLS label: the last one."""
_MACSEC_ENCRYPTED: Final = 0x0C
_MACSEC_NUMBERED: Final = 0x20


@kernel
def _frame_here(buf: Array, at: int, end: int) -> bool:
    """Whether an Ethernet frame seems to begin here: its EtherType is known, and what follows is what it says."""
    if at + _ETHERNET_SIZE >= end:
        return False
    kind = u16(buf, at + 12)
    version = int64(buf[at + 14]) >> 4
    if kind == _ETHER_IPV4:
        return bool(version == 4)
    if kind == _ETHER_IPV6:
        return bool(version == 6)
    return kind in (_VLAN, _VLAN_OUTER, _ETHER_MPLS, _ETHER_PPPOE)


@kernel
def _mpls(buf: Array, at: int, end: int) -> tuple[int, int]:
    """Labels, up to the last one. No label says what comes after it. An IP packet begins with its version. A pseudowire
    may have a control word, which begins with 0, before its Ethernet frame (RFC 4928, RFC 4448)."""
    label = int64(0)
    while not label & _BOTTOM:
        if at + 4 > end:
            return plain(Count.DAMAGED), at
        label = u32(buf, at)
        at += 4
    if at >= end:
        return plain(Count.DAMAGED), at
    first = int64(buf[at])
    frame = _frame_here(buf, at, end)
    layer = plain(Layer.ETHERNET) if frame else plain(Count.TUNNEL)
    if first == 0x45 or (first >> 4 == 4 and not frame):
        layer = plain(Layer.IPV4)
    elif first >> 4 == 6 and not frame:
        layer = plain(Layer.IPV6)
    elif first >> 4 == 0 and _frame_here(buf, at + 4, end):
        layer = plain(Layer.ETHERNET)
        at += 4
    return layer, at


@kernel
def _macsec(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    """Flags, length, number, who sent it; then, where it is signed but not encrypted, the frame's EtherType."""
    if at + 8 > end:
        return plain(Count.DAMAGED), at
    flags = int64(buf[at])
    if flags & _MACSEC_ENCRYPTED:
        return plain(Count.PROTECTED), at
    size = int64(14 if flags & _MACSEC_NUMBERED else 6)
    if at + size + 2 > end:
        return plain(Count.DAMAGED), at
    return _ether_type(buf, at + size + 2, end, u16(buf, at + size), header)


_GRE_CHECKSUM: Final = 0x8000
_GRE_ROUTING: Final = 0x4000
_GRE_KEY: Final = 0x2000
_GRE_SEQUENCE: Final = 0x1000
_GRE_ACKNOWLEDGED: Final = 0x0080
_ERSPAN_FRAME: Final = 0
_ERSPAN_IP: Final = 2


@kernel
def _gre(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    """Flags, protocol, and what the flags say: checksum with offset, key, sequence number, source routes.

    Version 1 is that of PPTP: a key of length and call, and PPP, if there is a sequence number.
    """
    if at + 4 > end:
        return plain(Count.DAMAGED), at
    flags = u16(buf, at)
    kind = u16(buf, at + 2)
    at += 4
    version = flags & 7
    if version > 1:
        return plain(Count.TUNNEL), at
    if version == 0 and flags & (_GRE_CHECKSUM | _GRE_ROUTING):
        at += 4
    header.tunnel = plain(Layer.GRE) << 32
    if flags & _GRE_KEY:
        if at + 4 > end:
            return plain(Count.DAMAGED), at
        header.tunnel |= u32(buf, at) if version == 0 else u16(buf, at + 2)
        at += 4
    if flags & _GRE_SEQUENCE:
        at += 4
    if version == 1:
        if flags & _GRE_ACKNOWLEDGED:
            at += 4
        layer = plain(Count.NOT_IP)  # an acknowledgement and no more
        if kind != _ETHER_PPP:
            layer = plain(Count.TUNNEL)
        elif flags & _GRE_SEQUENCE:
            layer = plain(Layer.PPP)
        return layer, at
    if flags & _GRE_ROUTING:
        # Family, offset and length of each route; the last one has neither family nor length.
        while at + 4 <= end and u32(buf, at) & 0xFFFF00FF:
            at += 4 + int64(buf[at + 3])
        at += 4
    if kind == _ETHER_ERSPAN:
        # Type I has no header of its own, and no sequence number.
        return int64(Layer.ERSPAN_2 if flags & _GRE_SEQUENCE else Layer.ETHERNET), at
    if kind == _ETHER_ERSPAN_3:
        return plain(Layer.ERSPAN_3), at
    if kind < _ETHER_LEAST:
        return plain(Count.NOT_IP), at  # a sign of life
    return _ether_type(buf, at, end, kind, header)


@kernel
def _erspan_2(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    """Version 1, VLAN, session; index."""
    if at + 8 > end:
        return plain(Count.DAMAGED), at
    if int64(buf[at]) >> 4 != 1:
        return plain(Count.TUNNEL), at
    header.tunnel = plain(Layer.ERSPAN_2) << 32 | (u16(buf, at + 2) & 0x3FF)
    return plain(Layer.ETHERNET), at + 8


@kernel
def _erspan_3(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    """Version 2, VLAN, session; time; security group, type of the frame; 8 more bytes where the last bit says so."""
    if at + 12 > end:
        return plain(Count.DAMAGED), at
    if int64(buf[at]) >> 4 != 2:
        return plain(Count.TUNNEL), at
    header.tunnel = plain(Layer.ERSPAN_3) << 32 | (u16(buf, at + 2) & 0x3FF)
    rest = u16(buf, at + 10)
    kind = rest >> 10 & 31
    layer = plain(Count.TUNNEL)
    if kind == _ERSPAN_FRAME:
        layer = plain(Layer.ETHERNET)
    elif kind == _ERSPAN_IP:
        layer = plain(Layer.IP)
    return layer, at + int64(20 if rest & 1 else 12)


_UDP_SIZE: Final = 8
_TUNNEL_SIZE: Final = 8
"""Of VXLAN and Geneve without options, and of GTP without them."""

_UDP_TUNNELS: Final = np.array(
    [
        (2152, Layer.GTP),
        (4789, Layer.VXLAN),
        (8472, Layer.VXLAN),
        (4790, Layer.VXLAN_GPE),
        (6081, Layer.GENEVE),
        (6635, Layer.MPLS),
        (1701, Count.TUNNEL),
        (3544, Count.TUNNEL),
        (6080, Count.TUNNEL),
        (4500, Count.PROTECTED),
    ],
    np.int64,
)
"""Ports of tunnels, and what is in them. 8472 is Linux's for VXLAN, and so flannel's and Cilium's; then those of L2TP,
Teredo and GUE, and of IPsec."""

_VXLAN_NUMBERED: Final = 0x08
_VXLAN_PROTOCOL: Final = 0x04
_GTP_PACKET: Final = 0xFF


@kernel
def _udp(buf: Array, at: int, end: int, vxlan: Array) -> tuple[int, int]:
    """The port says whether this is a tunnel."""
    if at + _UDP_SIZE > end:
        return plain(Count.DAMAGED), at
    port = u16(buf, at + 2)
    at += _UDP_SIZE
    for k in range(vxlan.shape[0]):
        if vxlan[k] == port:
            return plain(Layer.VXLAN), at
    return _listed(_UDP_TUNNELS, port, plain(Count.UDP)), at


@kernel
def _vxlan(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    """Flags, of which one must be there, network identifier."""
    if at + _TUNNEL_SIZE > end:
        return plain(Count.DAMAGED), at
    if not int64(buf[at]) & _VXLAN_NUMBERED:
        return plain(Count.TUNNEL), at
    header.tunnel = plain(Layer.VXLAN) << 32 | u32(buf, at + 4) >> 8
    return plain(Layer.ETHERNET), at + _TUNNEL_SIZE


@kernel
def _vxlan_gpe(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    """The same, and a number for the protocol where a flag says so."""
    if at + _TUNNEL_SIZE > end:
        return plain(Count.DAMAGED), at
    flags = int64(buf[at])
    kind = int64(buf[at + 3])
    header.tunnel = plain(Layer.VXLAN_GPE) << 32 | u32(buf, at + 4) >> 8
    layer = plain(Count.TUNNEL)
    if not flags & _VXLAN_PROTOCOL or kind == 3:
        layer = plain(Layer.ETHERNET)
    elif kind == 1:
        layer = plain(Layer.IPV4)
    elif kind == 2:
        layer = plain(Layer.IPV6)
    elif kind == 5:
        layer = plain(Layer.MPLS)
    return layer, at + _TUNNEL_SIZE


@kernel
def _geneve(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    """Version and length of options, flags, an EtherType, network identifier, options."""
    if at + _TUNNEL_SIZE > end:
        return plain(Count.DAMAGED), at
    first = int64(buf[at])
    if first >> 6 or u16(buf, at + 2) < _ETHER_LEAST:
        return plain(Count.TUNNEL), at
    header.tunnel = plain(Layer.GENEVE) << 32 | u32(buf, at + 4) >> 8
    return _ether_type(buf, at + _TUNNEL_SIZE + (first & 63) * 4, end, u16(buf, at + 2), header)


@kernel
def _gtp(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    """Flags, type, length, tunnel; sequence and extension headers where the flags say so; then IP."""
    if at + _TUNNEL_SIZE > end:
        return plain(Count.DAMAGED), at
    flags = int64(buf[at])
    if flags & 0xF0 != 0x30:
        return plain(Count.TUNNEL), at
    if buf[at + 1] != _GTP_PACKET:
        return plain(Count.UDP), at
    header.tunnel = plain(Layer.GTP) << 32 | u32(buf, at + 4)
    at += _TUNNEL_SIZE
    if flags & 7:
        if at + 4 > end:
            return plain(Count.DAMAGED), at
        following = int64(buf[at + 3]) if flags & 4 else int64(0)
        at += 4
        while following:
            size = int64(buf[at]) * 4 if at < end else int64(0)
            if size == 0 or at + size > end:
                return plain(Count.DAMAGED), at
            at += size
            following = int64(buf[at - 1])
    return plain(Layer.IP), at


@kernel
def _ether_ip(buf: Array, at: int, end: int) -> tuple[int, int]:
    """Version 3, and no more."""
    if at + 2 > end:
        return plain(Count.DAMAGED), at
    layer = plain(Layer.ETHERNET) if u16(buf, at) == 0x3000 else plain(Count.TUNNEL)
    return layer, at + 2


# --- all of them ------------------------------------------------------------------------------------------------------


@kernel
def _seldom(buf: Array, at: int, end: int, layer: int, vxlan: Array, header: Any) -> tuple[int, int]:
    """Reads the header of any layer that ordinary captures do not have."""
    found = plain(Count.DAMAGED), at
    if layer == Layer.UDP:
        found = _udp(buf, at, end, vxlan)
    elif layer == Layer.VXLAN:
        found = _vxlan(buf, at, end, header)
    elif layer == Layer.GENEVE:
        found = _geneve(buf, at, end, header)
    elif layer == Layer.GRE:
        found = _gre(buf, at, end, header)
    elif layer == Layer.ERSPAN_2:
        found = _erspan_2(buf, at, end, header)
    elif layer == Layer.ERSPAN_3:
        found = _erspan_3(buf, at, end, header)
    elif layer == Layer.MPLS:
        found = _mpls(buf, at, end)
    elif layer == Layer.VXLAN_GPE:
        found = _vxlan_gpe(buf, at, end, header)
    elif layer == Layer.GTP:
        found = _gtp(buf, at, end, header)
    elif layer == Layer.ETHER_IP:
        found = _ether_ip(buf, at, end)
    elif layer == Layer.BACKBONE:
        found = plain(Layer.ETHERNET), at + 4
    elif layer == Layer.MACSEC:
        found = _macsec(buf, at, end, header)
    elif layer == Layer.PPPOE:
        found = _pppoe(buf, at, end, header)
    elif layer == Layer.PPP:
        found = _ppp(buf, at, end)
    elif layer == Layer.HDLC:
        found = _hdlc(buf, at, end, header)
    elif layer == Layer.LLC:
        found = _llc(buf, at, end, header)
    elif layer == Layer.RADIOTAP:
        found = _radiotap(buf, at, end)
    elif layer == Layer.WIFI or layer == Layer.WIFI_PADDED:
        found = _wifi(buf, at, end, layer == Layer.WIFI_PADDED)
    elif layer == Layer.PPI:
        found = _ppi(buf, at, end)
    elif layer == Layer.NFLOG:
        found = _nflog(buf, at, end)
    return found


@inlined
def innermost(buf: Array, packet: Any, vxlan: Array, header: Any) -> int:
    """Reads the headers of a packet, from the outermost to that of TCP, into ``header``, a row of ``HEADER``.

    ``vxlan``: ports of UDP that are VXLAN's, besides its own. Returns ``Count.PACKETS``, or as what else the packet is
    to be counted. In that case ``header`` means nothing, except that ``off``, ``captured`` and ``tunnel`` are those of
    a ``Count.FRAGMENT``.
    """
    at = packet.off
    end = at + packet.captured
    link = packet.link
    header.tunnel = 0
    layer: int = plain(Count.LINK)
    if 0 <= link < _FIRST_LAYERS.shape[0]:
        layer = plain(_FIRST_LAYERS[link])
    elif link == PART:
        layer = plain(Count.PART)
    left = int64(MOST_LAYERS)
    while layer >= Layer.ETHERNET and left > 0:
        left -= 1
        if layer == Layer.ETHERNET:
            layer, at = _ethernet(buf, at, end, header)
        elif layer == Layer.IP:
            layer, at = _ip(buf, at, end)
        elif layer == Layer.IPV4:
            layer, at = _ipv4(buf, at, end, header)
            # An outer packet bounds what is inside. A segment's length is still that of the innermost header, because
            # mirrors cut packets off.
            end = min(end, header.wire_end)
        elif layer == Layer.IPV6:
            layer, at = _ipv6(buf, at, end, header)
            end = min(end, header.wire_end)
        elif layer == Layer.TCP:
            layer, at = _tcp(buf, at, end, header)
        elif layer == Layer.COOKED:
            layer, at = _cooked(buf, at, end, header)
        elif layer == Layer.COOKED_2:
            layer, at = _cooked_2(buf, at, end, header)
        elif layer == Layer.LOOPBACK:
            layer, at = _loopback(buf, at, end)
        else:
            layer, at = _seldom(buf, at, end, layer, vxlan, header)
    return plain(Count.DEEP) if layer >= Layer.ETHERNET else layer
