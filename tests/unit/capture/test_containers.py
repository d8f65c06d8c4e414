"""Files of captures and the links in them: every format in every order, and what is no capture, or not a whole one."""

from __future__ import annotations

import datetime
import io
import json
import struct
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tunnels
from made_captures import ONE, Row, brief, by_time, exchange, read, several
from packets import (
    ETHERNET,
    LOOP,
    NULL,
    RAW,
    SLL,
    SLL2,
    Connection,
    Packet,
    block,
    buffer,
    enhanced,
    interface,
    link,
    metadata,
    option,
    pcap,
    pcapng,
    section,
    sized,
)

from kwire import capture
from kwire.capture.containers import Container
from kwire.capture.links import named
from kwire.errors import CaptureError
from kwire.kernels.engine import Engine
from kwire.kernels.layouts import PACKET
from kwire.kernels.packets import (
    Count,
)

# File formats


@pytest.mark.parametrize("little", [True, False])
@pytest.mark.parametrize("nano", [True, False])
def test_pcap_in_both_byte_orders_and_resolutions(little: bool, nano: bool) -> None:
    assert brief(read(pcap(exchange().packets, little=little, nano=nano))) == ONE


def test_pcap_with_the_longer_packet_headers_of_patched_linux_kernels() -> None:
    whole = pcap(exchange().packets)
    at, out = 24, [b"\x34\xcd\xb2\xa1", whole[4:24]]
    while at < len(whole):
        (size,) = struct.unpack_from("<I", whole, at + 8)
        out.append(whole[at : at + 16] + bytes(8) + whole[at + 16 : at + 16 + size])
        at += 16 + size
    assert brief(read(b"".join(out))) == ONE


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("resolution", [3, 6, 9, 10, 0x80 | 20, 0x80 | 33])
def test_pcapng_in_both_byte_orders_and_any_resolution(order: str, resolution: int) -> None:
    asked, answered = read(pcapng(exchange().packets, order=order, resolution=resolution))
    assert brief([asked, answered]) == ONE
    wanted = datetime.datetime(2023, 11, 14, 22, 13, 20, 3000, datetime.UTC)
    # 2**-20 s is a little less than a microsecond, so the time in these units is just below.
    assert wanted - datetime.timedelta(microseconds=1) <= asked["timestamp"] <= wanted
    assert answered["latency_ms"] == pytest.approx(1, abs=0.01)


def test_pcapng_timestamps_can_have_an_offset() -> None:
    head = section() + block(1, struct.pack("<HHI", ETHERNET, 0, 0) + option(14, struct.pack("<q", 3600)))
    data = head + b"".join(enhanced(one) for one in exchange().packets)
    assert read(data)[0]["timestamp"].hour == 23


def test_pcapng_with_several_sections_and_interfaces() -> None:
    packets = exchange(count=3).packets
    first = section() + interface(ETHERNET) + interface(RAW)
    first += b"".join(enhanced(one, k % 2, (ETHERNET, RAW)[k % 2]) for k, one in enumerate(packets[:5]))
    second = section(">") + interface(SLL, ">", 9)
    second += b"".join(enhanced(one, 0, SLL, ">", 9) for one in packets[5:])
    assert brief(read(first + second)) == several(3)


def test_pcapng_with_very_many_interfaces_costs_no_memory_for_each() -> None:
    packets = exchange(count=3).packets
    many = 3000
    data = section() + interface(RAW) * many + interface(ETHERNET)
    data += b"".join(enhanced(one, many, ETHERNET) + interface(RAW) for one in packets)
    read(data)  # kernels and imports are not what is measured
    tracemalloc.start()
    found = brief(read(data))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == several(3)
    assert peak < 30 << 20


def test_pcapng_simple_and_obsolete_packet_blocks() -> None:
    packets = exchange().packets
    data = section() + interface()
    for one in packets:
        raw = link(one)
        if one.payload:
            data += block(3, struct.pack("<I", len(raw)) + raw)
        else:
            body = struct.pack("<HHIIII", 0, 0, *divmod(one.time // 1000, 1 << 32), len(raw), len(raw)) + raw
            data += block(2, body)
    found = read(data)
    assert brief(found) == ONE
    # Both frames stand in simple packet blocks, which have no time.
    assert [row["timestamp"] for row in found] == [None, None]


def test_pcapng_blocks_of_other_kinds_are_passed_over() -> None:
    data = section() + interface() + block(5, bytes(20)) + block(0x0BAD, b"anything")
    assert brief(read(data + b"".join(enhanced(one) for one in exchange().packets))) == ONE


def test_pcapng_packets_of_an_interface_that_is_not_described_are_told() -> None:
    notes: list[str] = []
    data = section() + interface() + enhanced(Connection().open().packets[0], 7)
    data += b"".join(enhanced(one) for one in exchange().packets)
    assert brief(read(data, on_note=notes.append)) == ONE
    assert notes == ["1 packet left out: of an interface that is not described"]


def test_packets_of_link_types_that_are_not_supported_are_counted_and_named() -> None:
    notes: list[str] = []
    data = section() + interface() + interface(147) + interface(999) + interface(147)
    data += b"".join(enhanced(one, number) for one in exchange().packets[:2] for number in (0, 1, 2, 3))
    data += b"".join(enhanced(one) for one in exchange().packets[2:])
    for window in (None, 100):
        notes.clear()
        assert brief(read(data, on_note=notes.append, window=window)) == ONE
        assert notes == [
            "4 packets have link type 147 (USER0), which is not supported",
            "2 packets have link type 999, which is not supported",
        ]


def test_what_was_left_out_is_said_where_nothing_else_was_found() -> None:
    one = Connection().open().packets[0]
    other = [
        tunnels.ethernet(tunnels.ipv4(17, tunnels.udp(53, bytes(30)))),
        tunnels.ethernet(tunnels.ipv4(1, bytes(30))),
        tunnels.MAC + b"\x08\x06" + bytes(28),
        tunnels.ethernet(tunnels.ipv4(50, bytes(30))),
        tunnels.ethernet(tunnels.ipv4(115, bytes(30))),
        tunnels.ethernet(tunnels.ipv4(17, bytes(4))),
        tunnels.ethernet(one.ip()),
    ]
    notes: list[str] = []
    assert read(tunnels.written([(1, data) for data in other]), on_note=notes.append) == []
    assert notes == [
        "1 packet left out: in tunnels that are not read",
        "1 packet left out: encrypted below TCP (Wi-Fi, IPsec, MACsec or PPP)",
        "1 packet left out: damaged or incomplete headers",
        "no Kafka traffic among 7 packets and 1 TCP connections "
        "(other packets: 1 UDP, 1 other protocols of IP, 1 not IP)",
        "left out: 1 connection without a byte (port 9092: 1)",
    ]


# Links and IP


@pytest.mark.parametrize("kind", [ETHERNET, RAW, SLL, SLL2, NULL, LOOP])
@pytest.mark.parametrize("hosts", [("10.0.0.1", "10.0.0.2"), ("fe80::1", "2001:db8::2")])
def test_link_types_with_both_ip_versions(kind: int, hosts: tuple[str, str]) -> None:
    connection = exchange(Connection(client=(hosts[0], 40000), broker=(hosts[1], 9092)).open())
    for data in (pcap(connection.packets, kind), pcapng(connection.packets, kind)):
        found = read(data)
        assert brief(found) == ONE
        assert (found[0]["client_host"], found[0]["broker_host"]) == hosts


def test_bsd_loopback_in_big_endian() -> None:
    packets = exchange().packets
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, NULL)
    raw = [link(one, NULL, little=False) for one in packets]
    assert brief(read(head + b"".join(struct.pack("<IIII", 1, 0, len(one), len(one)) + one for one in raw))) == ONE


@pytest.mark.parametrize("vlans", [[(0x8100, 5)], [(0x88A8, 5), (0x8100, 6)], [(0x9100, 1), (0x8100, 2), (0x8100, 3)]])
def test_vlan_tags(vlans: list[tuple[int, int]]) -> None:
    head = pcap([])
    raw = [link(one, vlans=vlans) for one in exchange().packets]
    assert brief(read(head + b"".join(struct.pack("<IIII", 1, 0, len(one), len(one)) + one for one in raw))) == ONE


def test_padding_of_short_ethernet_frames_is_no_data() -> None:
    raw = [link(one) + bytes(40) for one in exchange().packets]
    assert brief(read(pcap([]) + b"".join(struct.pack("<IIII", 1, 0, len(one), len(one)) + one for one in raw))) == ONE


def test_ip_and_tcp_options_and_ipv6_extension_headers() -> None:
    packets = [replace(one, options=b"\x01" * 12, ip_options=b"\x01" * 8) for one in exchange().packets]
    assert brief(read(pcap(packets))) == ONE
    connection = exchange(Connection(client=("::1", 40000), broker=("::1", 9092)).open())
    hop_by_hop = bytes([60, 0, 1, 4, 0, 0, 0, 0])
    destination = bytes([44, 1, 1, 12]) + bytes(12)
    atomic_fragment = bytes([6, 0, 0, 0, 0, 0, 0, 9])
    packets = [
        replace(one, extensions=hop_by_hop + destination + atomic_fragment, first_extension=0)
        for one in connection.packets
    ]
    assert brief(read(pcap(packets))) == ONE


def test_length_left_to_the_network_card_is_taken_from_the_capture() -> None:
    raw = []
    for one in exchange().packets:
        data = bytearray(link(one))
        data[16:18] = b"\0\0"
        raw.append(bytes(data))
    assert brief(read(pcap([]) + b"".join(struct.pack("<IIII", 1, 0, len(one), len(one)) + one for one in raw))) == ONE


def test_fragments_are_told_and_become_a_gap() -> None:
    connection = exchange(count=3)
    packets = [
        replace(one, fragment=0x2000) if one.payload == sized(metadata(2)) else one for one in connection.packets
    ]
    notes: list[str] = []
    found = by_time(read(pcap(packets), on_note=notes.append))
    assert notes == [
        "1 packet left out: fragments of IP packets that could not be joined, because others are missing or cut off"
    ]
    assert ("response", None, 2, "unpaired") in brief(found)
    assert brief(found)[-2:] == [("request", "Metadata", 3, "ok"), ("response", "Metadata", 3, "ok")]


def test_ipv4_mapped_addresses_are_shown_as_ipv4() -> None:
    connection = exchange(Connection(client=("::ffff:10.1.2.3", 40000), broker=("::1", 9092)).open())
    assert read(pcap(connection.packets))[0]["client_host"] == "10.1.2.3"


def test_other_traffic_is_passed_over() -> None:
    other = [
        Connection(client=("10.0.0.9", 40001), broker=("10.0.0.8", 80))
        .open()
        .send_raw(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .answer_raw(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000)
    ]
    udp = bytearray(link(Packet(("10.0.0.1", 1), ("10.0.0.2", 2), 0)))
    udp[23] = 17
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    head = pcap(other[0].packets) + b"".join(
        struct.pack("<IIII", 1, 0, len(one), len(one)) + one for one in (bytes(udp), arp, b"\0" * 5)
    )
    assert brief(read(head + pcap(exchange().packets)[24:])) == ONE


# Files that are not whole, or no captures


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "the file is empty"),
        (b"ab", "not a capture: only 2 bytes"),
        (b"hello world, this is text and no capture", "not a capture: neither pcap nor pcapng begins with"),
        (b"\x1f\x8b\x08" + bytes(50), "compressed with gzip"),
        (b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00", "the pcap header is truncated: 8 of 24 bytes"),
        (b"\x0a\x0d\x0d\x0a\x1c\x00", "the pcapng header is truncated"),
        (b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00abcdefghijklmnopqrstuvwx", "no byte order"),
        (
            struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 147),
            "link type 147 (USER0) is not supported; supported are NULL, ETHERNET, PPP, RAW,",
        ),
        (struct.pack("<IHHiIII", 0xA1B2C3D4, 3, 4, 0, 0, 65535, 1), "pcap version 3 is not supported"),
    ],
)
def test_what_is_no_capture_is_an_error(data: bytes, sentence: str) -> None:
    with pytest.raises(CaptureError, match=r"x\.pcap") as caught:
        read(data, name="x.pcap")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("make", [pcap, pcapng])
def test_a_truncated_file_is_an_error_after_its_good_data(make: Any) -> None:
    data = make(exchange(count=3).packets)[:-5]
    found: list[Row] = []
    with pytest.raises(CaptureError, match="truncated"):
        found.extend(row for batch in capture.read(io.BytesIO(data)) for row in batch.to_pylist())
    assert brief(found) == several(3)[:-1]


@pytest.mark.parametrize("make", [pcap, pcapng])
def test_damage_in_the_middle_is_an_error_after_what_is_before(make: Any) -> None:
    good = make(exchange(count=2).packets)
    found: list[Row] = []
    batches = capture.read(io.BytesIO(good + b"\xff" * 100), window=512)
    with pytest.raises(CaptureError, match="damaged") as caught:
        found.extend(row for batch in batches for row in batch.to_pylist())
    assert brief(found) == several(2)
    assert caught.value.offset == len(good)


def of_length(kind: int, total: int, body: bytes = b"") -> bytes:
    """A pcapng block that says it is ``total`` bytes long."""
    made = struct.pack("<II", kind, total) + body
    return made + bytes(max(0, min(total, 200) - len(made)))


def packet_body(captured: int, size: int) -> bytes:
    """Of an enhanced packet block of the first interface, with ``size`` bytes of packet."""
    return struct.pack("<IIIII", 0, 0, 0, captured, captured) + bytes(size)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (of_length(5, 8), "a block cannot be as long"),
        (of_length(5, 0), "a block cannot be as long"),
        (of_length(5, 14), "a block cannot be as long"),
        (of_length(5, 0xFFFFFFFC), "a block cannot be as long"),
        (of_length(6, 28), "cannot be as long"),
        (of_length(6, 52, packet_body(21, 20)), "cannot be as long"),
        (of_length(6, 52, packet_body(0xFFFFFFFF, 20)), "cannot be as long"),
        (of_length(2, 52, packet_body(21, 20)), "cannot be as long"),
        (of_length(3, 12), "cannot be as long"),
        (of_length(1, 16), "cannot be as long"),
        (of_length(0x0A0D0D0A, 28, b"\0\0\0\0"), "a section without a byte order"),
    ],
)
def test_a_damaged_pcapng_block_is_an_error_after_what_is_before(engine: Engine, bad: bytes, sentence: str) -> None:
    good = pcapng(exchange(count=2).packets)
    found: list[Row] = []
    with pytest.raises(CaptureError, match=f"damaged.*{sentence}") as caught:
        found.extend(row for one in capture.read(io.BytesIO(good + bad + bytes(400))) for row in one.to_pylist())
    assert brief(found) == several(2)
    assert caught.value.offset == len(good)


def test_a_pcapng_block_that_is_just_long_enough_is_none_of_these(engine: Engine) -> None:
    fits = struct.pack("<II", 6, 52) + packet_body(20, 20) + struct.pack("<I", 52)
    least = struct.pack("<II", 5, 12) + struct.pack("<I", 12)
    assert len(fits) == 52
    table, _ = whole(engine, pcapng([]) + least + fits)
    assert len(table) == 1
    # Packets of which nothing was captured.
    empty = struct.pack("<II", 6, 32) + packet_body(0, 0) + struct.pack("<I", 32)
    simple = struct.pack("<IIII", 3, 16, 60, 16)
    table, _ = whole(engine, pcapng([]) + empty + simple + empty)
    assert len(table) == 3


@pytest.mark.parametrize("kind", [2, 3, 6])
def test_a_pcapng_block_that_is_too_short_may_stand_at_the_end(engine: Engine, kind: int) -> None:
    with pytest.raises(CaptureError, match=r"damaged.*cannot be as long"):
        list(capture.read(io.BytesIO(pcapng([]) + of_length(kind, 12))))


# The state of a container


def whole(engine: Engine, data: bytes) -> tuple[list[list[int]], Container]:
    """The packets of a file read at once: their time, link and first bytes."""
    container = Container(np.zeros(len(Count), np.int64))
    start = container.begin(data[: Container.HEADER])
    table, _, error = container.packets(buffer(data), start, len(data), 0, engine)
    assert error is None
    return seen(data, table), container


def seen(data: bytes, table: Any) -> list[list[int]]:
    assert table.dtype == PACKET
    return [
        [int(row["time"]), int(row["link"]), int.from_bytes(data[int(row["off"]) :][: int(row["captured"])], "big")]
        for row in table
    ]


def mixed_sections() -> bytes:
    packets = Connection().open().send(b"x" * 30).packets
    data = section() + interface(ETHERNET) + interface(RAW) + interface(147)
    data += b"".join(enhanced(one, k % 2, (ETHERNET, RAW)[k % 2]) for k, one in enumerate(packets))
    data += section(">") + interface(SLL, ">", 9) + enhanced(packets[0], 9, SLL, ">", 9)
    data += b"".join(enhanced(one, 0, SLL, ">", 9) for one in packets)
    raw = link(packets[0])
    return data + section() + interface(snaplen=20) + block(3, struct.pack("<I", len(raw)) + raw)


@pytest.mark.parametrize(
    "data",
    [
        pcap(Connection().open().packets, SLL, little=False, nano=True),
        pcapng(Connection().open().packets),
        mixed_sections(),
        section()
        + block(1, struct.pack("<HHI", ETHERNET, 0, 0) + option(14, struct.pack("<q", 3600)))
        + b"".join(map(enhanced, Connection().open().packets)),
    ],
    ids=["pcap", "pcapng", "sections", "offset"],
)
def test_reading_goes_on_in_another_container_wherever_the_file_is_cut(engine: Engine, data: bytes) -> None:
    wanted, last = whole(engine, data)
    assert wanted
    for cut in range(Container.HEADER, len(data)):
        first = Container(np.zeros(len(Count), np.int64))
        start = first.begin(data[: Container.HEADER])
        table, pos, error = first.packets(buffer(data[:cut]), start, cut, 0, engine)
        assert error is None
        second = Container(first.counts)
        second.restore(json.loads(json.dumps(first.state())))
        rest = data[pos:]
        more, _, error = second.packets(buffer(rest), 0, len(rest), pos, engine)
        assert error is None
        assert seen(data, table) + seen(rest, more) == wanted
        assert second.state() == last.state()
        assert second.counts.tolist() == last.counts.tolist()


def test_what_a_container_knows_is_told_by_its_state(engine: Engine) -> None:
    _, container = whole(engine, mixed_sections())
    assert container.unsupported == {147: 0}
    assert container.counts[Count.INTERFACE] == 1
    state = container.state()
    assert state["interfaces"] == [[ETHERNET, 20, 6, 0]]
    assert (state["kind"], state["little"], state["unsupported"]) == ("pcapng", True, [[147, 0]])


def test_each_link_type_of_the_registry_has_its_own_name() -> None:
    # Those of serial links and X.25 stand between others without a gap.
    numbers = (201, 202, 203, 204, 205, 206)
    names = "BLUETOOTH_HCI_H4_WITH_PHDR", "AX25_KISS", "LAPD", "PPP_WITH_DIR", "C_HDLC_WITH_DIR", "FRELAY_WITH_DIR"
    assert [named(one) for one in numbers] == [f"{one} ({name})" for one, name in zip(numbers, names, strict=True)]
    assert named(200) == "200"
