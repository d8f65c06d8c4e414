"""Packets put into tunnels, cut into fragments and moved to other links: whole captures too.

A packet is an IP packet, as bytes. ``TUNNELS`` puts one into another IP packet, ``LINKS`` in front of a link's header;
``fragmented`` cuts one. ``taken_from`` takes a capture apart, ``written`` makes one of what was done. Addresses of
tunnels are from networks that the captures do not have. Checksums are right where a reader of packets may look at them.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Iterable
from typing import Final

MAC: Final = bytes.fromhex("02aabbccdd0102aabbccdd02")
"""Two addresses of Ethernet, as a frame begins."""

Wrapping = Callable[[bytes], bytes]


def checksum(data: bytes) -> int:
    """That of the Internet protocols."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ethernet(packet: bytes, tags: bytes = b"") -> bytes:
    """In an Ethernet frame; ``tags`` are whole tags, each with its EtherType in front."""
    return MAC + tags + struct.pack(">H", 0x86DD if packet[0] >> 4 == 6 else 0x0800) + packet


def ipv4(protocol: int, body: bytes, *, number: int = 0, place: int = 0) -> bytes:
    """An IPv4 packet of a tunnel."""
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), number, place, 64, protocol, 0)
    head += bytes((192, 0, 2, 1, 192, 0, 2, 2))
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + body


def ipv6(protocol: int, body: bytes) -> bytes:
    """An IPv6 packet of a tunnel."""
    ends = ipaddress.ip_address("2001:db8:1::1").packed + ipaddress.ip_address("2001:db8:2::2").packed
    return struct.pack(">IHBB", 6 << 28, len(body), protocol, 64) + ends + body


def udp(port: int, body: bytes) -> bytes:
    """A datagram without checksum, from a port like those that tunnels use."""
    return struct.pack(">HHHH", 51234, port, 8 + len(body), 0) + body


def gre(kind: int, body: bytes, *, key: int | None = None, sequence: int | None = None, check: bool = False) -> bytes:
    """GRE, version 0."""
    flags = 0x8000 * check | 0x2000 * (key is not None) | 0x1000 * (sequence is not None)
    rest = b"" if key is None else struct.pack(">I", key)
    rest += b"" if sequence is None else struct.pack(">I", sequence)
    made = struct.pack(">HH", flags, kind) + bytes(4 * check) + rest + body
    return made[:4] + struct.pack(">H", checksum(made)) + made[6:] if check else made


def gre_with_routes(packet: bytes) -> bytes:
    """GRE with a checksum field and two source routes, of RFC 1701."""
    routes = struct.pack(">HBB", 0x0800, 0, 4) + bytes(4) + struct.pack(">HBB", 0x0800, 4, 8) + bytes(8) + bytes(4)
    return struct.pack(">HHI", 0x4000, kind_of(packet), 0) + routes + packet


def kind_of(packet: bytes) -> int:
    """The EtherType of an IP packet."""
    return 0x86DD if packet[0] >> 4 == 6 else 0x0800


def ppp(packet: bytes) -> bytes:
    """PPP, without address and control."""
    return struct.pack(">H", 0x0057 if packet[0] >> 4 == 6 else 0x0021) + packet


def pptp(packet: bytes) -> bytes:
    """GRE, version 1."""
    body = b"\xff\x03" + ppp(packet)
    return struct.pack(">HHHHII", 0x3081, 0x880B, len(body), 77, 5, 4) + body


def erspan_2(packet: bytes) -> bytes:
    """ERSPAN type II, with the sequence number that it comes with."""
    return gre(0x88BE, struct.pack(">HHI", 0x1000 | 30, 0x0000 | 123, 7) + ethernet(packet), sequence=9)


def erspan_3(packet: bytes, more: bool = False) -> bytes:
    """ERSPAN type III; ``more``: with the optional 8 bytes."""
    head = struct.pack(">HHIHH", 0x2000 | 30, 123, 1_000_000, 0, 1 if more else 0) + bytes(8 if more else 0)
    return gre(0x22EB, head + ethernet(packet), sequence=9)


def vxlan(packet: bytes, number: int = 4242) -> bytes:
    """VXLAN."""
    return struct.pack(">II", 0x08000000, number << 8) + ethernet(packet)


def vxlan_gpe(packet: bytes) -> bytes:
    """VXLAN-GPE with an IP packet."""
    return struct.pack(">II", 0x0C000000 | (2 if packet[0] >> 4 == 6 else 1), 4242 << 8) + packet


def geneve(packet: bytes, options: bytes = b"") -> bytes:
    """Geneve with an Ethernet frame."""
    return struct.pack(">BBHI", len(options) // 4, 0, 0x6558, 4242 << 8) + options + ethernet(packet)


def gtp(packet: bytes, more: bool = False) -> bytes:
    """GTP-U; ``more``: with a sequence number and an extension header."""
    options = struct.pack(">HBB", 5, 0, 0x85) + bytes((1, 0, 9, 0)) if more else b""
    return struct.pack(">BBHI", 0x36 if more else 0x30, 0xFF, len(options) + len(packet), 99) + options + packet


def mpls(body: bytes, labels: int = 2) -> bytes:
    """Labels, of which the last says so."""
    stack = [struct.pack(">I", (100 + k) << 12 | (k == labels - 1) << 8 | 64) for k in range(labels)]
    return b"".join(stack) + body


OPTION: Final = struct.pack(">HBBI", 0x0102, 0x80, 1, 0xDEADBEEF)
"""An option of Geneve."""

TUNNELS: Final[dict[str, Wrapping]] = {
    "gre": lambda one: ipv4(47, gre(kind_of(one), one)),
    "gre with all options": lambda one: ipv4(47, gre(kind_of(one), one, key=1, sequence=2, check=True)),
    "gre with routes": lambda one: ipv4(47, gre_with_routes(one)),
    "gre with ethernet": lambda one: ipv4(47, gre(0x6558, ethernet(one), key=0x123401)),
    "gre with mpls": lambda one: ipv4(47, gre(0x8847, mpls(one))),
    "gre in ipv6": lambda one: ipv6(47, gre(kind_of(one), one, key=5)),
    "pptp": lambda one: ipv4(47, pptp(one)),
    "erspan 1": lambda one: ipv4(47, gre(0x88BE, ethernet(one))),
    "erspan 2": lambda one: ipv4(47, erspan_2(one)),
    "erspan 3": lambda one: ipv4(47, erspan_3(one)),
    "erspan 3 with 8 bytes more": lambda one: ipv6(47, erspan_3(one, more=True)),
    "vxlan": lambda one: ipv4(17, udp(4789, vxlan(one))),
    "vxlan of linux": lambda one: ipv6(17, udp(8472, vxlan(one))),
    "vxlan-gpe": lambda one: ipv4(17, udp(4790, vxlan_gpe(one))),
    "vxlan-gpe with ethernet": lambda one: ipv4(
        17, udp(4790, struct.pack(">II", 0x0C000003, 4242 << 8) + ethernet(one))
    ),
    "geneve": lambda one: ipv4(17, udp(6081, geneve(one))),
    "geneve with options": lambda one: ipv6(17, udp(6081, geneve(one, OPTION * 3))),
    "geneve with ip": lambda one: ipv4(17, udp(6081, struct.pack(">BBHI", 0, 0, kind_of(one), 4242 << 8) + one)),
    "ip in ipv4": lambda one: ipv4(41 if one[0] >> 4 == 6 else 4, one),
    "ip in ipv6": lambda one: ipv6(41 if one[0] >> 4 == 6 else 4, one),
    "mpls in ip": lambda one: ipv4(137, mpls(one, 1)),
    "mpls in udp": lambda one: ipv4(17, udp(6635, mpls(one, 1))),
    "etherip": lambda one: ipv4(97, b"\x30\x00" + ethernet(one)),
    "gtp": lambda one: ipv4(17, udp(2152, gtp(one))),
    "gtp with options": lambda one: ipv4(17, udp(2152, gtp(one, more=True))),
}
"""What IP carries: each makes an IP packet of one."""


def _tagged(*tags: tuple[int, bytes]) -> Wrapping:
    made = b"".join(struct.pack(">H", kind) + rest for kind, rest in tags)
    return lambda one: ethernet(one, made)


FRAMES: Final[dict[str, Wrapping]] = {
    "vlan": _tagged((0x8100, b"\0\7")),
    "qinq": _tagged((0x88A8, b"\0\5"), (0x8100, b"\0\7")),
    "old qinq": _tagged((0x9100, b"\0\5"), (0x9200, b"\0\6"), (0x8100, b"\0\7")),
    "vn-tag": _tagged((0x8926, b"\x80\1\0\2")),
    "vn-tag and vlan": _tagged((0x8926, b"\0\1\0\2"), (0x8100, b"\0\7")),
    "e-tag": _tagged((0x893F, b"\0\1\0\2\0\3")),
    "802.1ah": lambda one: MAC + struct.pack(">HHHI", 0x88A8, 9, 0x88E7, 0x00123456) + ethernet(one),
    "snap": lambda one: (
        MAC + struct.pack(">H", 8 + len(one) & 0x3FF) + bytes.fromhex("aaaa03000000") + ethernet(one)[12:14] + one
    ),
    "mpls": lambda one: MAC + b"\x88\x47" + mpls(one, 3),
    "pseudowire": lambda one: MAC + b"\x88\x47" + mpls(bytes(4) + ethernet(one)),
    "pseudowire without control word": lambda one: MAC + b"\x88\x48" + mpls(ethernet(one), 1),
    "pppoe": lambda one: MAC + struct.pack(">HBBHH", 0x8864, 0x11, 0, 12, 2 + len(one)) + ppp(one),
    "signed": lambda one: MAC + struct.pack(">HBBI", 0x88E5, 0, 0, 1) + ethernet(one)[12:] + bytes(16),
}
"""What Ethernet has besides IP: each makes a frame of an IP packet."""


def snap(packet: bytes) -> bytes:
    """LLC and SNAP."""
    return bytes.fromhex("aaaa03000000") + struct.pack(">H", kind_of(packet)) + packet


def wifi(packet: bytes, *, control: int = 1, kind: int = 0x08, quality: bytes = b"", gap: bytes = b"") -> bytes:
    """A data frame of 802.11; ``gap`` stands behind its header."""
    fourth = bytes(6) if control & 3 == 3 else b""
    return bytes((kind, control)) + bytes(2) + MAC + bytes(6) + b"\x10\0" + fourth + quality + gap + snap(packet)


def radiotap(frame: bytes, *, padded: bool = False, clock: bool = True) -> bytes:
    """Radiotap with two words of fields, of which the first has flags and perhaps a clock in front of them."""
    fields = bytes(8) if clock else b""
    fields += bytes((0x30 if padded else 0x10, 12))
    head = struct.pack("<II", 0x80000006 | clock, 0)
    if clock:
        fields = bytes(-(4 + len(head)) % 8) + fields
    return struct.pack("<BBH", 0, 0, 4 + len(head) + len(fields)) + head + fields + frame + b"\xfc\xc5\xfc\xc5"


def nflog(packet: bytes, order: str) -> bytes:
    """NFLOG: a prefix, the time, the packet."""

    def value(kind: int, data: bytes) -> bytes:
        return struct.pack(order + "HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)

    family = 10 if packet[0] >> 4 == 6 else 2
    return bytes((family, 0, 0, 5)) + value(1, bytes(4)) + value(10, b"prefix\0") + value(9, packet)


def ppi(packet: bytes, link: int) -> bytes:
    """PPI with one field of 4 bytes."""
    return struct.pack("<BBHI", 0, 0, 16, link) + struct.pack("<HHI", 30000, 4, 0) + packet


LINKS: Final[dict[str, tuple[int, Wrapping]]] = {
    "ppp": (9, lambda one: b"\xff\x03" + ppp(one)),
    "ppp without address": (9, ppp),
    "ppp with a short protocol": (9, lambda one: ppp(one)[1:]),
    "ppp hdlc": (50, lambda one: b"\xff\x03" + ppp(one)),
    "cisco hdlc": (50, lambda one: b"\x0f\0" + struct.pack(">H", kind_of(one)) + one),
    "cisco hdlc, broadcast": (104, lambda one: b"\x8f\0" + struct.pack(">H", kind_of(one)) + one),
    "pppoe": (51, lambda one: struct.pack(">BBHH", 0x11, 0, 12, 2 + len(one)) + ppp(one)),
    "wifi": (105, wifi),
    "wifi with quality of service": (105, lambda one: wifi(one, kind=0x88, quality=b"\5\0")),
    "wifi with high throughput": (105, lambda one: wifi(one, kind=0x88, control=0x81, quality=b"\5\0\1\2\3\4")),
    "wifi between access points": (105, lambda one: wifi(one, kind=0x88, control=3, quality=b"\5\0")),
    "radiotap": (127, lambda one: radiotap(wifi(one))),
    "radiotap with padding": (
        127,
        lambda one: radiotap(wifi(one, kind=0x88, quality=b"\5\0", gap=b"\0\0"), padded=True, clock=False),
    ),
    "nflog": (239, lambda one: nflog(one, "<")),
    "nflog of a big-endian host": (239, lambda one: nflog(one, ">")),
    "ppi with wifi": (192, lambda one: ppi(wifi(one), 105)),
    "ppi with ethernet": (192, lambda one: ppi(ethernet(one), 1)),
}
"""Link types: the number, and what makes a packet of an IP packet."""


def fragmented(packet: bytes, size: int, number: int) -> list[bytes]:
    """An IP packet in fragments with up to ``size`` bytes behind the header, a multiple of 8."""
    if packet[0] >> 4 == 4:
        head, body = packet[: (packet[0] & 15) * 4], packet[(packet[0] & 15) * 4 :]
        made = []
        for at in range(0, len(body), size):
            part = body[at : at + size]
            place = at // 8 | 0x2000 * (at + size < len(body))
            top = head[:2] + struct.pack(">HHH", len(head) + len(part), number & 0xFFFF, place) + head[8:10] + b"\0\0"
            top += head[12:]
            made.append(top[:10] + struct.pack(">H", checksum(top)) + top[12:] + part)
        return made
    head, body = packet[:40], packet[40:]
    made = []
    for at in range(0, len(body), size):
        part = body[at : at + size]
        extension = struct.pack(">BBHI", head[6], 0, at | (at + size < len(body)), number)
        made.append(head[:4] + struct.pack(">HB", 8 + len(part), 44) + head[7:] + extension + part)
    return made


def taken_from(capture: bytes) -> list[tuple[int, bytes]]:
    """The IP packets of a little-endian pcap or pcapng file of Ethernet or Linux cooked packets, with times in
    nanoseconds. Ethernet's padding is cut off."""
    found: list[tuple[int, int, bytes]] = []
    if capture.startswith(b"\x0a\x0d\x0d\x0a"):
        at, links = 0, []
        units = 6
        while at < len(capture):
            kind, size = struct.unpack_from("<II", capture, at)
            if kind == 1:
                links.append(struct.unpack_from("<H", capture, at + 8)[0])
                if (option := capture.find(b"\x09\x00\x01\x00", at, at + size)) > 0:
                    units = capture[option + 4]
            elif kind == 6:
                number, high, low, held = struct.unpack_from("<IIII", capture, at + 8)
                time = (high << 32 | low) * 10 ** (9 - units)
                found.append((time, links[number], capture[at + 28 : at + 28 + held]))
            at += size
    else:
        (link,) = struct.unpack_from("<I", capture, 20)
        at = 24
        while at < len(capture):
            seconds, rest, held = struct.unpack_from("<III", capture, at)
            found.append((seconds * 10**9 + rest * 1000, link, capture[at + 16 : at + 16 + held]))
            at += 16 + held
    packets = [(time, data[{1: 14, 113: 16, 276: 20}[link] :]) for time, link, data in found]
    return [(time, one[: struct.unpack_from(">H", one, 2)[0]] if one[0] >> 4 == 4 else one) for time, one in packets]


def written(packets: Iterable[tuple[int, bytes]], link: int = 1) -> bytes:
    """A pcap file, with nanoseconds."""
    out = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, link)]
    out += [struct.pack("<IIII", *divmod(time, 10**9), len(one), len(one)) + one for time, one in packets]
    return b"".join(out)
