"""The headers of one packet, layer by layer, on both engines."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tunnels
from packets import ACK, ETHERNET, LOOP, NULL, RAW, SLL, SLL2, SYN, Packet, buffer, link

from kwire.kernels import layers
from kwire.kernels.engine import Engine
from kwire.kernels.layers import HEADER, LINKS, Layer, innermost
from kwire.kernels.layouts import PACKET
from kwire.kernels.packets import Count

FOUR = Packet(("10.0.0.1", 40000), ("10.0.0.2", 9092), 7, b"abcde", flags=ACK | SYN, ack=9)
SIX = Packet(("fe80::1", 40000), ("2001:db8::2", 9092), 7, b"abcde", flags=ACK | SYN, ack=9)


def headers(
    engine: Engine, data: bytes, kind: int = ETHERNET, captured: int | None = None, vxlan: Sequence[int] = ()
) -> tuple[Count, Any]:
    """What ``innermost`` returns for a packet, and what it has read."""
    packet, header = np.zeros(1, PACKET), np.zeros(1, HEADER)
    packet["captured"], packet["link"] = len(data) if captured is None else captured, kind
    found = engine(innermost)(buffer(data), packet[0], np.array(vxlan, np.int64), header[0])
    return Count(int(found)), header[0]


def payload(data: bytes, header: Any) -> bytes:
    return data[int(header["off"]) : int(header["off"]) + int(header["captured"])]


# Headers


@pytest.mark.wide(keep=16)
@pytest.mark.parametrize("kind", [ETHERNET, RAW, SLL, SLL2, NULL, LOOP, 12, 14])
@pytest.mark.parametrize("packet", [FOUR, SIX], ids=["IPv4", "IPv6"])
def test_every_link_type_leads_to_the_tcp_header(engine: Engine, kind: int, packet: Packet) -> None:
    data = link(packet, kind)
    found, header = headers(engine, data, kind)
    assert found == Count.PACKETS
    assert payload(data, header) == b"abcde"
    assert {name: int(header[name]) for name in ("src_port", "dst_port", "seq", "ack", "control", "length")} == {
        "src_port": 40000,
        "dst_port": 9092,
        "seq": 7,
        "ack": 9,
        "control": ACK | SYN,
        "length": 5,
    }
    if packet is FOUR:
        assert [int(header[name]) for name in ("family", "src_high", "src_low", "dst_low")] == [
            4,
            0,
            10 << 24 | 1,
            10 << 24 | 2,
        ]
    else:
        assert [int(header[name]) for name in ("family", "src_high", "src_low")] == [6, (0xFE80 << 48) - (1 << 64), 1]


def test_links_that_are_not_supported_are_counted(engine: Engine) -> None:
    for kind in (2, 100, 147, 277, 1 << 16, -2):
        assert kind not in LINKS
        assert headers(engine, link(FOUR), kind)[0] == Count.LINK


@pytest.mark.parametrize("kind", [ETHERNET, SLL, SLL2])
@pytest.mark.parametrize("tags", [[0x8100], [0x88A8, 0x8100], [0x9100, 0x8100, 0x8100]])
def test_vlan_tags_are_passed_over_on_each_link_that_has_an_ether_type(
    engine: Engine, kind: int, tags: list[int]
) -> None:
    plain = link(FOUR, kind)
    size, at = {ETHERNET: (14, 12), SLL: (16, 14), SLL2: (20, 0)}[kind]
    inner = [*tags[1:], 0x0800]
    head = plain[:at] + struct.pack(">H", tags[0]) + plain[at + 2 : size]
    data = head + b"".join(struct.pack(">HH", 5, following) for following in inner) + plain[size:]
    found, header = headers(engine, data, kind)
    assert (found, payload(data, header)) == (Count.PACKETS, b"abcde")
    assert headers(engine, data, kind, captured=size + 3)[0] == Count.DAMAGED


def test_extension_headers_of_ipv6_are_passed_over(engine: Engine) -> None:
    hop_by_hop = bytes([60, 0, 1, 4, 0, 0, 0, 0])
    destination = bytes([43, 1, 1, 12]) + bytes(12)
    routing = bytes([51, 0, 0, 0, 0, 0, 0, 0])
    authentication = bytes([44, 1]) + bytes(10)
    atomic_fragment = bytes([6, 0, 0, 0, 0, 0, 0, 9])
    chain = hop_by_hop + destination + routing + authentication + atomic_fragment
    data = link(replace(SIX, extensions=chain, first_extension=0))
    found, header = headers(engine, data)
    assert (found, payload(data, header)) == (Count.PACKETS, b"abcde")
    # Wherever it is cut off.
    for captured in range(14 + 40, 14 + 40 + len(chain) + 20):
        assert headers(engine, data, captured=captured)[0] == Count.DAMAGED


def test_fragments_are_counted(engine: Engine) -> None:
    for fragment in (0x2000, 0x0001, 0x3FFF):
        assert headers(engine, link(replace(FOUR, fragment=fragment)))[0] == Count.FRAGMENT
    assert headers(engine, link(replace(FOUR, fragment=0x4000)))[0] == Count.PACKETS  # don't fragment
    more = bytes([6, 0, 0, 1, 0, 0, 0, 9])
    assert headers(engine, link(replace(SIX, extensions=more, first_extension=44)))[0] == Count.FRAGMENT


def test_other_protocols_are_counted(engine: Engine) -> None:
    udp = bytearray(link(FOUR))
    udp[14 + 9] = 17
    assert headers(engine, bytes(udp))[0] == Count.UDP
    udp[14 + 9] = 1
    assert headers(engine, bytes(udp))[0] == Count.NOT_TCP
    assert headers(engine, link(replace(SIX, first_extension=17)))[0] == Count.UDP
    assert headers(engine, bytes(12) + b"\x08\x06" + bytes(28))[0] == Count.NOT_IP  # ARP
    assert headers(engine, struct.pack("<I", 7) + FOUR.ip(), NULL)[0] == Count.NOT_IP
    assert headers(engine, bytes([0x50]) + FOUR.ip()[1:], RAW)[0] == Count.NOT_IP


@pytest.mark.parametrize("packet", [FOUR, SIX], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("kind", [ETHERNET, RAW, SLL, SLL2, NULL, LOOP])
def test_headers_that_are_cut_off_are_damaged_and_payload_is_not_needed(
    engine: Engine, kind: int, packet: Packet
) -> None:
    data = link(packet, kind)
    whole = len(data) - len(packet.payload)
    for captured in range(whole):
        assert headers(engine, data, kind, captured)[0] == Count.DAMAGED
    for captured in range(whole, len(data)):
        found, header = headers(engine, data, kind, captured)
        assert (found, int(header["captured"]), int(header["length"])) == (Count.PACKETS, captured - whole, 5)


def test_a_snapshot_that_ends_within_the_tcp_options_has_no_payload(engine: Engine) -> None:
    data = link(replace(FOUR, options=b"\x01" * 12))
    found, header = headers(engine, data, captured=14 + 20 + 20 + 4)
    assert (found, int(header["captured"]), int(header["length"])) == (Count.PACKETS, 0, 5)


def test_lengths_that_contradict_each_other_are_damage(engine: Engine) -> None:
    def with_byte(at: int, value: int) -> Count:
        data = bytearray(link(FOUR))
        data[at] = value
        return headers(engine, bytes(data))[0]

    assert with_byte(14, 0x44) == Count.DAMAGED  # IP header of 16 bytes
    assert with_byte(17, 19) == Count.DAMAGED  # total length below that of the header
    assert with_byte(17, 30) == Count.DAMAGED  # or too short for TCP
    assert with_byte(14 + 20 + 12, 0x40) == Count.DAMAGED  # TCP header of 16 bytes
    assert with_byte(14 + 20 + 12, 0xF0) == Count.DAMAGED  # or longer than the packet


def test_padding_is_no_payload_and_a_length_of_0_means_all_that_was_captured(engine: Engine) -> None:
    for packet, at in ((FOUR, 16), (SIX, 18)):
        data = link(packet) + b"xx"
        assert payload(data, headers(engine, data)[1]) == b"abcde"
        unset = data[:at] + b"\0\0" + data[at + 2 :]
        assert payload(unset, headers(engine, unset)[1]) == b"abcdexx"


# Tunnels, and links that are seldom met. Each combination must give what the packet inside gives.


def ends(header: Any) -> tuple[int, ...]:
    names = ("family", "src_high", "src_low", "dst_high", "dst_low", "src_port", "dst_port", "seq", "ack", "length")
    return tuple(int(header[name]) for name in names)


def same_inside(engine: Engine, packet: Packet, data: bytes, kind: int) -> None:
    """``data`` gives what the packet gives, and cut off anywhere the same with less payload, or nothing."""
    _, plain = headers(engine, packet.ip(), RAW)
    found, header = headers(engine, data, kind)
    assert (found, payload(data, header), ends(header)) == (Count.PACKETS, b"abcde", ends(plain))
    whole = int(header["off"])
    for captured in range(len(data)):
        found, header = headers(engine, data, kind, captured)
        assert (found == Count.PACKETS) == (captured >= whole), captured
        if found == Count.PACKETS:
            assert (ends(header), int(header["captured"])) == (ends(plain), min(5, captured - whole))


@pytest.mark.parametrize("packet", [FOUR, SIX], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("name", tunnels.TUNNELS)
def test_a_tunnel_leads_to_the_packet_inside(engine: Engine, name: str, packet: Packet) -> None:
    same_inside(engine, packet, tunnels.ethernet(tunnels.TUNNELS[name](packet.ip())), ETHERNET)


@pytest.mark.parametrize("packet", [FOUR, SIX], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("name", tunnels.FRAMES)
def test_a_frame_leads_to_the_packet_inside(engine: Engine, name: str, packet: Packet) -> None:
    same_inside(engine, packet, tunnels.FRAMES[name](packet.ip()), ETHERNET)


@pytest.mark.parametrize("packet", [FOUR, SIX], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("name", tunnels.LINKS)
def test_a_link_that_is_seldom_met_leads_to_the_packet(engine: Engine, name: str, packet: Packet) -> None:
    kind, wrap = tunnels.LINKS[name]
    same_inside(engine, packet, wrap(packet.ip()), kind)


def test_every_pair_of_tunnels_leads_to_the_packet_inside(engine: Engine) -> None:
    plain = ends(headers(engine, FOUR.ip(), RAW)[1])
    for outer, around in tunnels.TUNNELS.items():
        for inner, wrap in tunnels.TUNNELS.items():
            found, header = headers(engine, around(wrap(FOUR.ip())), RAW)
            assert (found, ends(header)) == (Count.PACKETS, plain), (outer, inner)


@pytest.mark.parametrize("name", ["vxlan", "gre with ethernet", "ip in ipv4", "gtp with options"])
def test_tunnels_are_followed_up_to_a_depth(engine: Engine, name: str) -> None:
    data = FOUR.ip()
    found = []
    for _ in range(60):
        data = tunnels.TUNNELS[name](data)
        found.append(headers(engine, tunnels.ethernet(data))[0])
    assert found[:8] == [Count.PACKETS] * 8
    assert found[-1] == Count.DEEP
    assert sorted(set(found)) == [Count.PACKETS, Count.DEEP]


def test_what_stands_behind_an_outer_packet_is_no_data(engine: Engine) -> None:
    # The inner packet leaves its length to the network card; the frame around is padded.
    inner = FOUR.ip()
    inner = inner[:2] + b"\0\0" + inner[4:]
    data = tunnels.ethernet(tunnels.TUNNELS["vxlan"](inner)) + b"padding"
    found, header = headers(engine, data)
    assert (found, payload(data, header)) == (Count.PACKETS, b"abcde")


def test_an_inner_packet_that_a_mirror_has_cut_keeps_its_length(engine: Engine) -> None:
    data = tunnels.ethernet(tunnels.ipv4(47, tunnels.erspan_2(FOUR.ip())[:-3]))
    found, header = headers(engine, data)
    assert (found, payload(data, header), int(header["length"])) == (Count.PACKETS, b"ab", 5)


def test_vxlan_is_found_on_the_ports_that_are_named(engine: Engine) -> None:
    data = tunnels.ethernet(tunnels.ipv4(17, tunnels.udp(12345, tunnels.vxlan(FOUR.ip()))))
    assert headers(engine, data)[0] == Count.UDP
    assert headers(engine, data, vxlan=[1, 12345])[0] == Count.PACKETS


def tunnel(engine: Engine, data: bytes) -> tuple[Layer, int]:
    found, header = headers(engine, tunnels.ethernet(data))
    assert found == Count.PACKETS
    return Layer(int(header["tunnel"]) >> 32), int(header["tunnel"]) & 0xFFFFFFFF


def test_the_number_of_the_innermost_tunnel_is_known(engine: Engine) -> None:
    packet = FOUR.ip()
    assert tunnel(engine, tunnels.TUNNELS["vxlan"](packet)) == (Layer.VXLAN, 4242)
    assert tunnel(engine, tunnels.TUNNELS["geneve"](packet)) == (Layer.GENEVE, 4242)
    assert tunnel(engine, tunnels.TUNNELS["erspan 2"](packet)) == (Layer.ERSPAN_2, 123)
    assert tunnel(engine, tunnels.TUNNELS["erspan 3"](packet)) == (Layer.ERSPAN_3, 123)
    assert tunnel(engine, tunnels.TUNNELS["gre with all options"](packet)) == (Layer.GRE, 1)
    assert tunnel(engine, tunnels.TUNNELS["gtp"](tunnels.TUNNELS["gre in ipv6"](packet))) == (Layer.GRE, 5)
    found, header = headers(engine, tunnels.ethernet(packet))
    assert (found, int(header["tunnel"])) == (Count.PACKETS, 0)


PACKET_4 = FOUR.ip()


@pytest.mark.parametrize(
    ("wanted", "data"),
    [
        (Count.PROTECTED, tunnels.ipv4(50, bytes(60))),
        (Count.PROTECTED, tunnels.ipv4(17, tunnels.udp(4500, bytes(60)))),
        (
            Count.PROTECTED,
            tunnels.ipv4(47, struct.pack(">HHII", 0x3001, 0x880B, 0, 5) + b"\xff\x03\0\xfd" + bytes(9)),
        ),
        (Count.TUNNEL, tunnels.ipv4(115, bytes(60))),
        (Count.TUNNEL, tunnels.ipv4(17, tunnels.udp(1701, bytes(60)))),
        (Count.TUNNEL, tunnels.ipv4(17, tunnels.udp(4789, bytes(8) + tunnels.ethernet(PACKET_4)))),
        (Count.TUNNEL, tunnels.ipv4(47, struct.pack(">HH", 2, 0x0800) + PACKET_4)),
        (Count.TUNNEL, tunnels.ipv4(47, struct.pack(">HHII", 0x3001, 0x0800, 0, 0) + PACKET_4)),
        (Count.TUNNEL, tunnels.ipv4(47, tunnels.gre(0x88BE, bytes(8) + tunnels.ethernet(PACKET_4), sequence=1))),
        (Count.TUNNEL, tunnels.ipv4(47, tunnels.gre(0x22EB, bytes(12) + tunnels.ethernet(PACKET_4), sequence=1))),
        (Count.TUNNEL, tunnels.ipv4(17, tunnels.udp(6081, b"\x40" + tunnels.geneve(PACKET_4)[1:]))),
        (Count.TUNNEL, tunnels.ipv4(17, tunnels.udp(4790, struct.pack(">II", 0x0C000004, 0) + PACKET_4))),
        (Count.TUNNEL, tunnels.ipv4(97, b"\x20\0" + tunnels.ethernet(PACKET_4))),
        (Count.TUNNEL, tunnels.ipv4(137, tunnels.mpls(b"\x10" + PACKET_4[1:]))),
        (Count.UDP, tunnels.ipv4(17, tunnels.udp(2152, b"\x30\1" + bytes(30)))),  # an echo of GTP
        (Count.UDP, tunnels.ipv4(17, tunnels.udp(53, bytes(40)))),
        (
            Count.NOT_IP,
            tunnels.ipv4(47, struct.pack(">HHI", 0x2001, 0x880B, 0) + bytes(30)),
        ),  # no more than an answer
        (Count.NOT_IP, tunnels.ipv4(47, tunnels.gre(0, b""))),
        (Count.DAMAGED, tunnels.ipv4(4, b"\x60" + PACKET_4[1:])),
        (Count.DAMAGED, tunnels.ipv6(41, PACKET_4 + bytes(20))),
    ],
)
def test_tunnels_that_are_not_read_are_counted(engine: Engine, wanted: Count, data: bytes) -> None:
    assert headers(engine, tunnels.ethernet(data))[0] == wanted


@pytest.mark.parametrize(
    ("wanted", "kind", "data"),
    [
        (Count.PROTECTED, 105, tunnels.wifi(PACKET_4, control=0x41)),
        (Count.PROTECTED, 127, tunnels.radiotap(tunnels.wifi(PACKET_4, control=0x41))),
        (Count.RADIO, 105, tunnels.wifi(PACKET_4, kind=0x88, quality=b"\x80\0")),
        (Count.RADIO, 105, tunnels.wifi(PACKET_4, control=0x05)),
        (Count.NOT_IP, 105, tunnels.wifi(PACKET_4, kind=0x48)),  # no data
        (Count.NOT_IP, 105, b"\x80\0" + bytes(60)),  # a beacon
        (Count.NOT_IP, 105, tunnels.wifi(PACKET_4).replace(b"\xaa\xaa\x03", b"\x42\x42\x03")),
        (Count.LINK, 192, tunnels.ppi(PACKET_4, 147)),
        (Count.LINK, 192, tunnels.ppi(PACKET_4, 0xFFFFFFFF)),
        (Count.NOT_IP, 239, b"\x07" + tunnels.nflog(PACKET_4, "<")[1:]),
        (Count.NOT_IP, 9, b"\xff\x03\xc0\x21" + bytes(20)),
        (Count.TUNNEL, 9, b"\xff\x03\x00\x3d" + bytes(20)),
        (Count.NOT_IP, 51, b"\x11\x09\0\0\0\0" + bytes(20)),
        (Count.PROTECTED, ETHERNET, tunnels.MAC + struct.pack(">HBBI", 0x88E5, 0x0C, 0, 1) + bytes(60)),
    ],
)
def test_frames_that_hold_no_packet_are_counted(engine: Engine, wanted: Count, kind: int, data: bytes) -> None:
    assert headers(engine, data, kind)[0] == wanted


def test_behind_labels_an_ip_packet_and_an_ethernet_frame_are_told_apart(engine: Engine) -> None:
    frame = tunnels.ethernet(PACKET_4)
    # Addresses of cards that begin like an IP packet, or like a control word.
    for first in (0x60, 0x48, 0x00, 0x4C, 0x6C, 0xA0):
        data = tunnels.MAC + b"\x88\x47" + tunnels.mpls(bytes((first,)) + frame[1:])
        found, header = headers(engine, data)
        assert (found, payload(data, header)) == (Count.PACKETS, b"abcde"), first
    # And an address of a host that looks like an EtherType with what follows.
    like = replace(FOUR, src=("8.0.69.1", 40000)).ip()
    assert headers(engine, tunnels.MAC + b"\x88\x47" + tunnels.mpls(like))[0] == Count.PACKETS


def test_any_bytes_behind_any_header_are_counted_as_something(engine: Engine) -> None:
    some = random.Random(5)
    starts = [tunnels.ethernet(wrap(PACKET_4)) for wrap in tunnels.TUNNELS.values()]
    starts += [wrap(PACKET_4) for wrap in tunnels.FRAMES.values()]
    for kind, data in [(ETHERNET, one) for one in starts] + [(n, wrap(PACKET_4)) for n, wrap in tunnels.LINKS.values()]:
        for _ in range(20):
            changed = bytearray(data)
            for _ in range(some.randrange(1, 6)):
                changed[some.randrange(len(data))] = some.choice((0, 255, some.randrange(256)))
            headers(engine, bytes(changed), kind, some.randrange(len(data) + 1))


def test_every_tunnel_has_a_word() -> None:
    source = Path(layers.__file__).read_text()
    named = {source_of(one) for one in layers.TUNNELS}
    assert set(re.findall(r"header\.tunnel = (?:int64|plain)\((\S+)\) <<", source)) == named


def source_of(number: int) -> str:
    """How the source spells what stands in the upper half of ``Header.tunnel``."""
    return f"Layer.{number.name}" if isinstance(number, layers.Layer) else "_VLAN"
