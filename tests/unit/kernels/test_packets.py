"""Packets out of capture bytes, and the headers of one packet, on both engines."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from packets import (
    ACK,
    ETHERNET,
    LOOP,
    NULL,
    RAW,
    SLL,
    SLL2,
    SYN,
    Connection,
    Packet,
    block,
    buffer,
    link,
    pcap,
)

from kwire.capture.containers import Container
from kwire.kernels.engine import Engine
from kwire.kernels.layouts import PACKET
from kwire.kernels.packets import (
    BINARY_UNITS,
    EARLIEST,
    FINE_UNITS,
    HEADER,
    LATEST,
    LINKS,
    Count,
    Stopped,
    innermost,
    nanoseconds,
    pcap_packets,
    pcapng_packets,
)

FOUR = Packet(("10.0.0.1", 40000), ("10.0.0.2", 9092), 7, b"abcde", flags=ACK | SYN, ack=9)
SIX = Packet(("fe80::1", 40000), ("2001:db8::2", 9092), 7, b"abcde", flags=ACK | SYN, ack=9)


def headers(engine: Engine, data: bytes, kind: int = ETHERNET, captured: int | None = None) -> tuple[Count, Any]:
    """What ``innermost`` returns for a packet, and what it has read."""
    packet, header = np.zeros(1, PACKET), np.zeros(1, HEADER)
    packet["captured"], packet["link"] = len(data) if captured is None else captured, kind
    found = engine(innermost)(buffer(data), packet[0], header[0])
    return Count(int(found)), header[0]


def payload(data: bytes, header: Any) -> bytes:
    return data[int(header["off"]) : int(header["off"]) + int(header["captured"])]


# Headers


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
    for kind in (2, 100, 105, 277, 1 << 16, -1):
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
    assert headers(engine, bytes(udp))[0] == Count.NOT_TCP
    assert headers(engine, link(replace(SIX, first_extension=17)))[0] == Count.NOT_TCP
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


# Files


def rows(result: tuple[Any, ...]) -> list[tuple[int, ...]]:
    return [tuple(row) for row in result[0].tolist()]


@pytest.mark.parametrize("little", [True, False])
@pytest.mark.parametrize("nano", [True, False])
def test_pcap_records_are_found_up_to_the_first_that_is_not_complete(engine: Engine, little: bool, nano: bool) -> None:
    packets = Connection().open().packets
    data = pcap(packets, little=little, nano=nano)
    size = len(link(packets[0]))
    wanted = [(24 + k * (16 + size) + 16, size, one.time, 1) for k, one in enumerate(packets)]
    for end in range(24, len(data) + 1):
        found = pcap_packets(buffer(data), 24, end, little, nano, 16, 262144, 1, engine)
        complete = (end - 24) // (16 + size)
        assert rows(found) == wanted[:complete]
        assert found[1:] == (24 + complete * (16 + size), Stopped.MORE)


def test_a_pcap_record_that_is_longer_than_any_stops_with_what_came_before(engine: Engine) -> None:
    packets = Connection().open().packets
    data = bytearray(pcap(packets))
    at = 24 + 16 + len(link(packets[0]))
    data[at + 8 : at + 12] = struct.pack("<I", 262145)
    found = pcap_packets(buffer(data), 24, len(data), True, False, 16, 262144, 1, engine)
    assert len(rows(found)) == 1
    assert found[1:] == (at, Stopped.BAD)


def test_tables_of_packets_grow(engine: Engine) -> None:
    small = struct.pack("<IIII", 1, 2, 1, 1) + b"x"
    found = pcap_packets(buffer(small * 100), 0, 1700, True, True, 16, 262144, 113, engine)
    assert rows(found) == [(17 * k + 16, 1, 1_000_000_002, 113) for k in range(100)]
    counts = np.zeros(len(Count), np.int64)
    data = buffer(block(3, struct.pack("<I", 1) + b"x") * 100)
    table = Container(counts)
    table.restore(table.state() | {"interfaces": [[1, 0, 6, 0]]})
    found = pcapng_packets(data, 0, len(data), True, table._interfaces, 5, counts, engine)
    assert rows(found) == [(20 * k + 12, 1, 5, 1) for k in range(100)]


@pytest.mark.parametrize(
    ("resolution", "units", "wanted"),
    [
        (0, 3, 3_000_000_000),
        (6, 1_700_000_000_123_456, 1_700_000_000_123_456_000),
        (9, (1 << 62) + 1, (1 << 62) + 1),
        (FINE_UNITS + 12, 1_700_000_000_123_456_789_012 % (1 << 64), 1_700_000_000_123_456_789_012 % (1 << 64) // 1000),
        (FINE_UNITS + 20, (1 << 64) - 1, ((1 << 64) - 1) // 10**11),
        (BINARY_UNITS + 0, 7, 7_000_000_000),
        (BINARY_UNITS + 20, 5 << 20 | 1 << 19, 5_500_000_000),
        (BINARY_UNITS + 33, (1 << 64) - 1, ((1 << 64) - 1) * 10**9 >> 33),
        (BINARY_UNITS + 62, (1 << 64) - 1, 3_999_999_999),
    ],
)
def test_timestamps_of_any_resolution(engine: Engine, resolution: int, units: int, wanted: int) -> None:
    assert engine(nanoseconds)(units >> 32, units & 0xFFFFFFFF, resolution, 0) == wanted
    assert engine(nanoseconds)(units >> 32, units & 0xFFFFFFFF, resolution, -2) == wanted - 2_000_000_000


@pytest.mark.parametrize("resolution", [0, 3, 6, 9, BINARY_UNITS, BINARY_UNITS + 1, BINARY_UNITS + 20])
@pytest.mark.parametrize("high", [0xFFFFFFFF, 0x7FFFFFFF, 1 << 31])
def test_timestamps_that_do_not_fit_are_the_last_and_the_first(engine: Engine, resolution: int, high: int) -> None:
    second = 1_000_000_000
    made = int(engine(nanoseconds)(high, 1, resolution, 0))
    assert LATEST <= made < LATEST + second
    assert EARLIEST <= int(engine(nanoseconds)(0, 5, resolution, -(1 << 38))) < EARLIEST + second
    shown = np.array([EARLIEST, LATEST]).astype("datetime64[ns]").astype("datetime64[s]")
    assert [str(one) for one in shown] == ["1677-09-22T00:00:01", "2262-04-10T23:59:59"]


def test_packets_of_times_that_no_clock_has_are_counted(engine: Engine) -> None:
    counts = np.zeros(len(Count), np.int64)
    table = Container(counts)
    table.restore(table.state() | {"interfaces": [[1, 0, 6, 0]]})
    times = (0x7FFFFFFF << 32, 1_700_000_000_000_000, (1 << 64) - 1)
    packets = [struct.pack("<IIIII", 0, one >> 32, one & 0xFFFFFFFF, 1, 1) + b"x" for one in times]
    data = buffer(b"".join(block(6, one) for one in packets))
    found = pcapng_packets(data, 0, len(data), True, table._interfaces, 0, counts, engine)
    made = [time for _, _, time, _ in rows(found)]
    assert made[1] == 1_700_000_000_000_000_000
    assert made[0] // 1_000_000_000 == made[2] // 1_000_000_000 == LATEST // 1_000_000_000
    assert counts[Count.TIME] == 2
