"""Captures made here, packet by packet: what formats, links, IP, TCP and Kafka can do to a reader."""

from __future__ import annotations

import datetime
import gzip
import io
import random
import struct
import tracemalloc
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from packets import (
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
    enhanced,
    interface,
    link,
    metadata,
    metadata_answer,
    option,
    pcap,
    pcapng,
    produce,
    produce_answer,
    request,
    response,
    section,
    sized,
)
from valid import valid

from kwire import capture, tables
from kwire.capture.tracker import Tracker
from kwire.errors import CaptureError
from kwire.kernels.layouts import Status

Row = dict[str, Any]


def read(data: bytes, table: Any = "frames", **options: Any) -> list[Row]:
    return [row for batch in valid(capture.read(io.BytesIO(data), table, **options)) for row in batch.to_pylist()]


def brief(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(row["direction"], row["api_name"], row["correlation_id"], row["status"]) for row in rows]


def exchange(connection: Connection | None = None, count: int = 1) -> Connection:
    connection = connection or Connection().open()
    for number in range(1, count + 1):
        connection.send(metadata(number)).answer(metadata_answer(number))
    return connection


ONE = [("request", "Metadata", 1, "ok"), ("response", "Metadata", 1, "ok")]


def several(count: int) -> list[tuple[Any, ...]]:
    return [(way, "Metadata", number, "ok") for number in range(1, count + 1) for way in ("request", "response")]


# Columns


def test_a_frame_has_its_columns() -> None:
    asked, answered = read(pcap(exchange().packets, nano=True), name="x.pcap")
    assert asked == {
        "capture": "x.pcap",
        "connection": 0,
        "frame": 0,
        "timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 3000, datetime.UTC),
        "direction": "request",
        "client_host": "10.0.0.1",
        "client_port": 40000,
        "broker_host": "10.0.0.2",
        "broker_port": 9092,
        "api_key": 3,
        "api_name": "Metadata",
        "api_version": 0,
        "correlation_id": 1,
        "client_id": "test",
        "size": 18,
        "latency_ms": None,
        "status": "ok",
        "error": None,
    }
    assert answered == asked | {
        "frame": 1,
        "timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 4000, datetime.UTC),
        "direction": "response",
        "size": 12,
        "latency_ms": 1.0,
    }


@pytest.mark.parametrize("table", ["frames", "messages", "records"])
def test_batches_have_exactly_the_schema_of_their_table(table: Any) -> None:
    connection = exchange()
    connection.send(produce(2, 1, b"\x00" * 8 + b"\x00\x00\x00\x10" + bytes(16))).answer(produce_answer(2))
    batches = list(capture.read(io.BytesIO(pcap(connection.packets)), table))
    assert batches
    for batch in batches:
        assert batch.schema.equals(tables.table(table).schema, check_metadata=True)
        batch.validate(full=True)
        for field in batch.schema:
            assert field.nullable or batch.column(field.name).null_count == 0


def test_an_unknown_table_is_a_mistake_of_the_program() -> None:
    with pytest.raises(ValueError, match="frames, messages, records"):
        capture.read(io.BytesIO(b""), "packets")  # type: ignore[arg-type]


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
    # A simple packet block has no time: that of the packet before it is taken.
    assert found[0]["timestamp"] == datetime.datetime(2023, 11, 14, 22, 13, 20, 2000, datetime.UTC)


def test_pcapng_blocks_of_other_kinds_are_passed_over() -> None:
    data = section() + interface() + block(5, bytes(20)) + block(0x0BAD, b"anything")
    assert brief(read(data + b"".join(enhanced(one) for one in exchange().packets))) == ONE


def test_pcapng_packets_of_an_interface_that_is_not_described_are_told() -> None:
    notes: list[str] = []
    data = section() + interface() + enhanced(Connection().open().packets[0], 7)
    data += b"".join(enhanced(one) for one in exchange().packets)
    assert brief(read(data, on_note=notes.append)) == ONE
    assert notes == ["1 packets belong to an interface that is not described"]


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
    found = read(pcap(packets), on_note=notes.append)
    assert notes == ["1 packets are fragments of IP packets and were left out"]
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


# TCP


@pytest.mark.parametrize("mss", [1, 3, 7, 1460])
def test_frames_are_joined_from_segments_of_any_size(mss: int) -> None:
    assert brief(read(pcap(exchange(Connection(mss=mss).open(), 4).packets))) == several(4)


def test_many_frames_in_one_segment() -> None:
    connection = Connection(mss=1 << 15).open()
    connection.send(*(metadata(k) for k in range(1, 101))).answer(*(metadata_answer(k) for k in range(1, 101)))
    found = read(pcap(connection.packets))
    assert sorted(brief(found)) == sorted(several(100))


def test_segments_out_of_order_and_repeated() -> None:
    packets = exchange(Connection(mss=5).open(), 3).packets
    shuffled = packets[:3] + [one for pair in zip(packets[4::2], packets[3::2], strict=False) for one in pair * 2]
    shuffled += [one for one in packets if one not in shuffled]
    assert sorted(brief(read(pcap(shuffled)))) == sorted(several(3))


def test_overlapping_retransmission_with_more_bytes() -> None:
    connection = Connection(mss=10).open().send(metadata(1))
    first = connection.packets[3]
    longer = replace(first, payload=sized(metadata(1)))
    packets = [*connection.packets[:4], longer, *connection.packets[4:]]
    assert brief(read(pcap(packets))) == ONE[:1]


def test_sequence_numbers_wrap_around() -> None:
    connection = Connection(client_isn=0xFFFFFFF0, broker_isn=0xFFFFFFFF, mss=9).open()
    assert brief(read(pcap(exchange(connection, 5).packets))) == several(5)


def test_a_capture_that_begins_between_two_frames() -> None:
    packets = exchange(count=3).packets[5:]
    assert brief(read(pcap(packets))) == several(3)[2:]


def test_a_capture_that_begins_within_a_frame() -> None:
    packets = exchange(Connection(mss=6).open(), 4).packets[4:]
    found = read(pcap(packets))
    ok = [one for one in brief(found) if one[3] == "ok"]
    assert ok[-6:] == several(4)[-6:]
    skipped = [row for row in found if row["status"] == "gap"]
    assert [row["direction"] for row in skipped] == ["request"]
    assert "bytes skipped" in skipped[0]["error"]


def test_a_missing_packet_costs_only_its_frame() -> None:
    connection = exchange(Connection(mss=16).open(), 4)
    missing = sized(metadata(2))[16:]
    (lost,) = [one for one in connection.packets if one.payload == missing and one.dst[1] == 9092 and one.seq == 1039]
    found = read(pcap([one for one in connection.packets if one is not lost]))
    wanted = several(4)
    wanted[2] = ("request", "Metadata", 2, "gap")
    assert brief(found) == wanted
    assert found[2]["error"] == "packets are missing from the capture after 16 bytes of this frame"


def test_a_snapshot_length_leaves_headers_and_latencies() -> None:
    connection = Connection().open()
    for number in range(1, 4):
        connection.send(request(3, 0, number, bytes(3000))).answer(response(number, bytes(5000)))
    notes: list[str] = []
    found = read(pcap(connection.packets, snaplen=54 + 40), on_note=notes.append)
    assert brief(found) == [
        (way, "Metadata", number, "gap") for _, _, number, _ in several(3)[::2] for way in ("request", "response")
    ]
    assert all(row["latency_ms"] == 4.0 for row in found if row["direction"] == "response")
    assert [row["size"] for row in found] == [3014, 5004] * 3
    assert "cut off by the snapshot length" in notes[0]


def test_a_hole_is_waited_for_across_windows() -> None:
    connection = Connection(mss=100).open()
    connection.send(request(3, 0, 1, bytes(20_000)))
    late = connection.packets.pop(10)
    packets = [*connection.packets, late]
    connection.packets = packets
    connection.answer(metadata_answer(1))
    assert brief(read(pcap(connection.packets), window=1000)) == ONE


def test_a_hole_that_never_closes_is_given_up_when_the_receiver_acknowledged_what_is_behind() -> None:
    connection = Connection(mss=100, step=10_000_000).open()
    exchange(connection, 40)
    packets = [one for one in connection.packets if one.payload != sized(metadata(3))]
    notes: list[str] = []
    first_window = 24 + sum(16 + len(link(one)) for one in packets[:60])
    batches = capture.read(io.BytesIO(pcap(packets)), window=first_window, on_note=notes.append)
    # The first window already has frames from behind the hole: they do not wait for the end of the capture.
    first = next(batches).to_pylist()
    assert any(row["direction"] == "request" and row["correlation_id"] == 20 for row in first)


def test_a_connection_on_the_same_ports_is_a_new_one() -> None:
    first = exchange(Connection().open(), 2).close()
    second = Connection(client_isn=777_000, broker_isn=888_000, time=first.time).open()
    exchange(second, 2)
    found = read(pcap(first.packets + second.packets))
    assert brief(found) == several(2) * 2
    assert [row["connection"] for row in found] == [0] * 4 + [1] * 4


def test_a_repeated_syn_is_no_new_connection() -> None:
    packets = exchange().packets
    found = read(pcap([packets[0], packets[0], packets[1], packets[1], *packets[2:]]))
    assert brief(found) == ONE
    assert {row["connection"] for row in found} == {0}


def test_a_reset_ends_what_is_unfinished() -> None:
    connection = exchange()
    connection.send(metadata(2)[:-2] + b"ab")
    connection.packets[-1] = replace(connection.packets[-1], payload=connection.packets[-1].payload[:-1])
    connection.reset()
    found = read(pcap(connection.packets))
    assert brief(found) == [*ONE, ("request", "Metadata", 2, "cut_off")]
    assert found[-1]["error"] == "the connection or the capture ends after 21 bytes of this frame"


def test_a_frame_that_the_capture_ends_in_is_cut_off() -> None:
    packets = exchange(Connection(mss=8).open()).packets[:-1]
    assert brief(read(pcap(packets))) == [ONE[0], ("response", "Metadata", 1, "cut_off")]


# Kafka


def test_a_produce_request_with_acks_0_does_not_wait_for_a_response() -> None:
    connection = Connection().open()
    connection.send(produce(7, 0)).send(produce(7, 1)).answer(produce_answer(7))
    found = read(pcap(connection.packets))
    assert brief(found) == [("request", "Produce", 7, "ok")] * 2 + [("response", "Produce", 7, "ok")]
    # Paired with the second: one step of time later, not two.
    assert found[2]["latency_ms"] == 1.0


def test_correlation_ids_repeat() -> None:
    connection = Connection().open()
    for _ in range(3):
        exchange(connection)
    found = read(pcap(connection.packets))
    assert brief(found) == ONE * 3
    assert [row["latency_ms"] for row in found[1::2]] == [1.0] * 3


def test_pipelined_requests_of_different_apis() -> None:
    connection = Connection().open()
    connection.send(metadata(1)).send(produce(2, 1)).send(metadata(3))
    connection.answer(metadata_answer(1)).answer(produce_answer(2), metadata_answer(3))
    found = read(pcap(connection.packets), "messages")
    assert [row["api_name"] for row in found if row["direction"] == "response"] == ["Metadata", "Produce", "Metadata"]
    assert {row["status"] for row in found} == {"ok"}


def test_a_response_captured_before_its_request_is_paired() -> None:
    packets = exchange().packets
    asked, answered = packets[3], packets[4]
    early = replace(answered, time=asked.time - 5000)
    found = read(pcap([*packets[:3], early, asked]))
    assert sorted(brief(found)) == ONE
    assert [row["latency_ms"] for row in found if row["direction"] == "response"] == [0.0]


def test_a_response_without_a_request_is_unpaired() -> None:
    connection = exchange().answer(response(99, b"abc"))
    found = read(pcap(connection.packets))
    assert brief(found)[2] == ("response", None, 99, "unpaired")
    assert found[2]["error"] == "no request with this correlation id"


def test_find_coordinator_v0_may_be_answered_with_correlation_id_0() -> None:
    connection = exchange().send(request(10, 0, 5, b"\0\x01g"))
    connection.answer(response(0, struct.pack(">hih", 0, 1, 1) + b"h" + struct.pack(">i", 9092)))
    assert brief(read(pcap(connection.packets)))[3] == ("response", "FindCoordinator", 0, "ok")


def test_controlled_shutdown_v0_has_no_client_id() -> None:
    frame = struct.pack(">hhii", 7, 0, 3, 1)
    connection = Connection().open().send(frame)
    (row,) = read(pcap(connection.packets))
    assert brief([row]) == [("request", "ControlledShutdown", 3, "ok")]
    assert row["client_id"] is None


def test_a_null_client_id_is_null() -> None:
    connection = Connection().open().send(metadata(1, None)).answer(metadata_answer(1)).send(metadata(2, ""))
    assert [row["client_id"] for row in read(pcap(connection.packets))] == [None, None, ""]


def test_unknown_apis_and_versions_are_told_and_passed() -> None:
    connection = exchange().send(request(120, 0, 2)).answer(response(2)).send(request(3, 99, 3)).answer(response(3))
    exchange(connection)
    found = read(pcap(connection.packets))
    assert [(row["api_key"], row["api_version"], row["status"]) for row in found[2:6]] == [
        (120, 0, "unsupported"),
        (120, 0, "unsupported"),
        (3, 99, "unsupported"),
        (3, 99, "unsupported"),
    ]
    assert found[2]["error"] == "API key 120 is unknown"
    assert found[4]["error"] == "version 99 of this API is unknown"
    assert brief(found)[-2:] == ONE


def test_a_malformed_size_costs_what_follows_up_to_the_next_request() -> None:
    connection = exchange().send_raw(struct.pack(">i", -5) + b"garbage!")
    connection.send(metadata(2)).answer(metadata_answer(2))
    found = read(pcap(connection.packets))
    assert brief(found)[2][3] == "malformed"
    assert found[2]["error"] == "a frame cannot have a size of -5"
    assert [one for one in brief(found) if one[3] == "ok"] == several(2)


def test_a_body_that_is_not_what_its_version_says_is_malformed_in_messages() -> None:
    connection = Connection().open().send(request(3, 0, 1, b"\0\0\0\x09"))
    (row,) = read(pcap(connection.packets), "messages")
    assert (row["status"], row["body"]) == ("malformed", None)
    assert "MetadataRequest v0" in row["error"]
    (row,) = read(pcap(connection.packets), "frames")
    assert row["status"] == "ok"


def test_an_unknown_api_versions_version_is_answered_in_v0() -> None:
    body = struct.pack(">hihhh", 35, 1, 18, 0, 3)
    connection = Connection().open().send(request(18, 40, 1)).answer(response(1, body))
    asked, answered = read(pcap(connection.packets), "messages")
    assert asked["status"] == "unsupported"
    assert (answered["status"], answered["api_version"]) == ("ok", 40)
    assert '"error_code":"UNSUPPORTED_VERSION"' in answered["body"]


def test_tls_is_told_once_for_a_connection() -> None:
    hello = b"\x16\x03\x01\x00\x2e" + bytes(46)
    connection = Connection(broker=("10.0.0.2", 9093)).open().send_raw(hello).answer_raw(hello).send_raw(hello)
    (row,) = read(pcap(connection.packets))
    assert (row["status"], row["client_host"], row["broker_port"]) == ("encrypted", "10.0.0.1", 9093)
    assert brief(read(pcap(connection.packets), ports=[9093])) == [("request", None, None, "encrypted")]
    https = Connection(broker=("10.0.0.2", 443)).open().send_raw(hello).answer_raw(hello)
    assert read(pcap(https.packets)) == []


def test_raw_sasl_tokens_after_a_handshake_v0() -> None:
    handshake = request(17, 0, 1, b"\0\x0dSCRAM-SHA-256")
    mechanisms = response(1, struct.pack(">hih", 0, 1, 13) + b"SCRAM-SHA-256")
    connection = Connection().open().send(handshake).answer(mechanisms)
    connection.send(b"n,,n=u,r=a").answer(b"r=ab,s=c,i=1").send(b"c=biws,r=ab,p=").answer(b"v=d").send(b"")
    connection.answer(b"")
    connection.send(metadata(2)).answer(metadata_answer(2))
    found = read(pcap(connection.packets), "messages")
    assert [row["status"] for row in found] == ["ok"] * 2 + ["sasl"] * 6 + ["ok"] * 2
    assert [row["direction"] for row in found] == ["request", "response"] * 5
    assert brief(found)[-2:] == [("request", "Metadata", 2, "ok"), ("response", "Metadata", 2, "ok")]


def test_a_connection_that_opens_with_a_gssapi_token() -> None:
    token = b"\x60\x82\x02\x58\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02" + bytes(30)
    connection = Connection().open().send(token).answer(b"\x60" + bytes(20)).send(b"abcd").answer(b"")
    exchange(connection)
    for options in ({}, {"ports": [9092]}):
        found = read(pcap(connection.packets), **options)
        assert [row["status"] for row in found] == ["sasl"] * 4 + ["ok"] * 2


def test_ports_choose_connections() -> None:
    one, two = exchange(), exchange(Connection(client=("10.0.0.5", 5), broker=("10.0.0.6", 19092)).open())
    data = pcap(one.packets + two.packets)
    assert [row["broker_port"] for row in read(data, ports=[19092])] == [19092] * 2
    assert len(read(data, ports=[9092, 19092])) == 4
    assert read(data, ports=[1]) == []
    # Numbers of connections do not depend on what was chosen.
    assert [row["connection"] for row in read(data, ports=[19092])] == [1] * 2


# Records


def message(key: bytes, value: bytes, offset: int = 0) -> bytes:
    """A message set entry of magic 1."""
    import zlib

    body = struct.pack(">bbqi", 1, 0, 1_700_000_000_000, len(key)) + key + struct.pack(">i", len(value)) + value
    body = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(body)) + body


def test_records_have_their_columns() -> None:
    connection = Connection().open().send(produce(1, 1, message(b"k", b"v", 3), "orders")).answer(produce_answer(1))
    (row,) = read(pcap(connection.packets), "records", name="x.pcap")
    assert row == {
        "capture": "x.pcap",
        "connection": 0,
        "frame": 0,
        "frame_timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 3000, datetime.UTC),
        "source": "produce",
        "topic": "orders",
        "topic_id": None,
        "partition": 0,
        "offset": 3,
        "timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 0, datetime.UTC),
        "timestamp_type": "CreateTime",
        "key": b"k",
        "value": b"v",
        "headers": [],
        "magic": 1,
        "compression": "none",
        "crc_ok": True,
        "producer_id": None,
        "producer_epoch": None,
        "sequence": None,
        "partition_leader_epoch": None,
        "is_transactional": False,
        "is_control": False,
        "control_type": None,
        "status": "ok",
        "error": None,
    }


def test_bad_records_become_rows_between_good_ones() -> None:
    good = message(b"k", b"v")
    damaged = bytearray(message(b"k", b"w"))
    damaged[15] ^= 1
    unknown = bytearray(good)
    unknown[16] = 9
    connection = Connection().open()
    connection.send(produce(1, 1, good + bytes(damaged) + good))
    connection.send(produce(2, 1, good + bytes(unknown) + good))
    connection.send(produce(3, 1, good))
    found = read(pcap(connection.packets), "records")
    assert [(row["frame"], row["status"], row["value"]) for row in found] == [
        (0, "ok", b"v"),
        (0, "corrupt", b"w"),
        (0, "ok", b"v"),
        (1, "ok", b"v"),
        (1, "ok", b"v"),
        (1, "malformed", None),
        (2, "ok", b"v"),
    ]
    assert found[1]["error"] == "the checksum does not match"
    assert "magic 9 is not known" in found[5]["error"]
    assert found[5]["topic"] == "t"


def test_a_request_with_records_that_cannot_be_located_is_one_row() -> None:
    broken = produce(1, 1, message(b"k", b"v"))[:-3]
    connection = Connection().open().send(broken).send(produce(2, 1, message(b"k", b"v")))
    found = read(pcap(connection.packets), "records")
    assert [(row["frame"], row["status"]) for row in found] == [(0, "malformed"), (1, "ok")]
    assert found[0]["error"].startswith("ProduceRequest v2 $.topic_data.partition_data.records at byte ")


def test_the_records_of_a_frame_that_is_cut_off_are_not_lost_where_a_set_is_whole() -> None:
    name = b"\0\x01t"
    sets = [struct.pack(">ii", k, len(message(b"k", b"v"))) + message(b"k", b"v") for k in range(2)]
    body = struct.pack(">hii", 1, 1000, 1) + name + struct.pack(">i", 2) + b"".join(sets)
    connection = Connection(mss=10).open().send(request(0, 2, 1, body))
    found = read(pcap(connection.packets[:-1]), "records")
    assert [(row["partition"], row["status"]) for row in found] == [(0, "ok"), (None, "unreadable")]


def test_topic_names_are_learnt_from_metadata() -> None:
    topic_id = bytes(range(16))
    answer = response(1, b"\0" + struct.pack(">i", 0) + b"\x01" + b"\0" + struct.pack(">i", -1))
    answer += (
        b"\x02" + struct.pack(">h", 0) + b"\x07orders" + topic_id + b"\0" + b"\x01" + struct.pack(">i", 0) + b"\0\0"
    )
    set_ = message(b"k", b"v")
    body = b"\0" + struct.pack(">hi", 1, 1000) + b"\x02" + topic_id + b"\x02" + struct.pack(">i", 0)
    body += bytes([len(set_) + 1]) + set_ + b"\0\0\0"
    connection = Connection().open().send(request(0, 13, 0, b"\0" + body))
    connection.send(request(3, 12, 1, b"\0\0\x01\0\0")).answer(answer).send(request(0, 13, 2, b"\0" + body))
    data = pcap(connection.packets)
    found = read(data, "records")
    assert [(row["topic"], row["topic_id"], row["status"]) for row in found] == [
        ("orders", "AAECAwQFBgcICQoLDA0ODw", "ok")
    ] * 2
    # In small windows the first one comes before its name is known.
    assert [row["topic"] for row in read(data, "records", window=120)] == [None, "orders"]


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
        (struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 105), "link type 105 is not supported"),
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


def test_a_capture_without_kafka_is_no_error_but_told() -> None:
    notes: list[str] = []
    assert read(pcap(Connection().open().packets), on_note=notes.append) == []
    assert notes == ["no Kafka traffic among 3 packets and 1 TCP connections"]


def test_progress_counts_the_bytes_read() -> None:
    told: list[int] = []
    data = pcap(exchange().packets)
    read(data, progress=told.append, window=100)
    assert told == sorted(told)
    assert told[-1] == len(data)


def test_a_source_may_give_less_than_it_is_asked_for() -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 1, 7))

    source = Slow(pcap(exchange(count=2).packets))
    assert brief([row for batch in capture.read(source) for row in batch.to_pylist()]) == several(2)


def test_a_syn_alone_is_a_connection_without_frames() -> None:
    packet = Packet(("10.0.0.1", 1), ("10.0.0.2", 9092), 5, flags=SYN)
    assert read(pcap([packet]), ports=[9092]) == []


# Bounds


def test_unfinished_frames_are_given_up_when_all_together_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.capture.tracker.MOST_HELD", 20_000)
    monkeypatch.setattr("kwire.capture.tracker.LEAST_RATION", 2_000)
    every = []
    for k in range(10):
        connection = Connection(client=("10.0.0.1", 41000 + k)).open()
        connection.send(metadata(1)).answer(metadata_answer(1))
        connection.send(request(3, 0, 2, bytes(30_000))).answer(metadata_answer(2))
        every.append(connection.packets)
    packets = [one for together in zip(*every, strict=True) for one in together]
    found = read(pcap(packets), window=10_000)
    given_up = [row for row in found if row["status"] != "ok"]
    assert given_up
    for row in given_up:
        assert (row["status"], row["api_name"], row["correlation_id"]) == ("cut_off", "Metadata", 2)
        assert "too many frames were unfinished" in row["error"]
    # What follows is read and paired as if nothing had happened.
    assert sum(row["direction"] == "response" and row["status"] == "ok" for row in found) == 20


def test_a_connection_without_syn_far_from_what_was_on_its_ports_is_a_new_one() -> None:
    first = exchange(Connection(client_isn=2_000_000_000, broker_isn=10).open(), 2)
    for isn in (1_000_000, 3_900_000_000):
        second = exchange(Connection(client_isn=isn, broker_isn=3_000_000_000, time=first.time).open(), 2)
        found = read(pcap(first.packets + second.packets[3:]))
        assert brief(found) == several(2) * 2
        assert [row["connection"] for row in found] == [0] * 4 + [1] * 4


def test_other_traffic_in_the_middle_of_its_connections_is_not_held() -> None:
    other = Connection(client=("10.0.0.1", 50000), broker=("10.0.0.2", 5432)).answer_raw(bytes(300_000))
    data = pcap(other.packets)
    tracker = Tracker()
    held: list[int] = []
    for at in range(0, len(data), 20_000):
        assert len(tracker.feed(data[at : at + 20_000])) == 0
        segments = tracker.save().column("segments").to_pylist()
        held.append(sum(len(one["bytes"]) for of_connection in segments for one in of_connection))
    assert max(held) < 90_000
    assert held[-1] == 0


def test_bytes_that_the_capture_cut_off_may_be_there_in_part_from_retransmissions() -> None:
    connection = Connection().open().send(request(3, 0, 1, bytes(3000))).answer(metadata_answer(1))
    first = connection.packets[3]
    # The second packet is cut to 40 bytes of payload, but small parts of the rest were sent again.
    parts = [replace(first, seq=first.seq + at, payload=first.payload[at : at + 20]) for at in range(100, 900, 60)]
    found = read(pcap([*connection.packets[:4], *parts, *connection.packets[4:]], snaplen=94))
    assert brief(found) == [("request", "Metadata", 1, "gap"), ("response", "Metadata", 1, "ok")]


def test_notes_are_told_at_the_end_only_and_before_an_error() -> None:
    packets = exchange(count=20).packets
    notes: list[str] = []
    batches = capture.read(io.BytesIO(pcap(packets, snaplen=75)), window=200, on_note=notes.append)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert notes == []
    with pytest.raises(CaptureError, match="truncated"):
        read(pcap(packets, snaplen=75)[:-1], on_note=notes.append)
    assert "cut off by the snapshot length" in notes[0]


def test_records_of_share_fetch_responses_are_read() -> None:
    import uuid

    import kwire
    from kwire import messages
    from kwire.records import Record, encode

    records = encode([Record(b"k", b"v", timestamp=1_700_000_000_000)])
    asked = kwire.encode_request(messages.ShareFetchRequest(), api_version=1, correlation_id=2, client_id="test")
    topic = {"topic_id": uuid.UUID(int=7), "partitions": [{"partition_index": 3, "records": records}]}
    body = messages.ShareFetchResponse.from_dict({"responses": [topic]})
    answered = kwire.encode_response(body, api_version=1, correlation_id=2)
    connection = exchange().send(asked).answer(answered)
    (row,) = read(pcap(connection.packets), "records")
    assert (row["source"], row["partition"], row["key"], row["status"]) == ("fetch", 3, b"k", "ok")
    assert row["topic_id"] == "AAAAAAAAAAAAAAAAAAAABw"


def test_a_compressed_capture_that_is_cut_off_costs_only_what_is_behind_the_cut() -> None:
    chance = random.Random(5)
    connection = Connection().open()
    for number in range(2000):
        connection.send(request(3, 1, number, chance.randbytes(300))).answer(response(number, bytes(8)))
    plain = pcap(connection.packets)
    whole = len(list(read(plain)))
    packed = gzip.compress(plain)
    source = pa.CompressedInputStream(io.BytesIO(packed[: len(packed) * 2 // 3]), "gzip")
    rows = 0

    def count() -> None:
        nonlocal rows
        for batch in capture.read(source):
            rows += batch.num_rows

    with pytest.raises(CaptureError, match="cannot be read any further"):
        count()
    assert whole // 2 < rows < whole


# Parts


def in_parts(packets: list[Packet], *cuts: int) -> list[tuple[Any, ...]]:
    """Number, time and correlation id of each frame, of a capture that is fed in parts, cut between these packets."""
    tracker, data = Tracker(), pcap(packets, nano=True)
    ends = [len(pcap(packets[:cut], nano=True)) for cut in (*cuts, len(packets))]
    found = []
    for begin, end in zip((0, *ends), ends, strict=False):
        frames = tracker.feed(data[begin:end], final=end == len(data))
        found += [(one.number, one.time, one.correlation_id, one.status) for one in frames]
    return sorted(found)


def test_what_repeats_an_earlier_part_delays_nothing_in_front_of_it() -> None:
    connection = exchange(count=1)
    repeated = connection.packets[3]
    other = exchange(Connection(client=("10.0.0.3", 50000)), 1).packets
    packets = [*exchange(connection, 1).packets]
    now = packets[-1].time
    packets += [replace(one, time=now + 1000 + k) for k, one in enumerate((*other, repeated))]
    whole = in_parts(packets)
    assert whole == in_parts(packets, 5)
    assert [time for _, time, _, _ in whole] == sorted(time for _, time, _, _ in whole)
    assert whole[2][1] == packets[5].time


def test_times_that_go_back_are_the_same_in_parts() -> None:
    packets = exchange(count=3).packets
    packets[3] = replace(packets[3], time=packets[3].time + 15_000_000)
    whole = in_parts(packets)
    assert [time for _, time, _, _ in whole].count(packets[3].time) > 1
    for cut in range(1, len(packets)):
        assert in_parts(packets, cut) == whole


@pytest.mark.parametrize("end", ["reset", "close", "capture"])
def test_a_frame_that_is_cut_off_has_the_number_of_when_that_was_known(end: str) -> None:
    first = exchange(count=1).send_raw(sized(metadata(2))[:9])
    before = len(first.packets)
    if end == "reset":
        first.reset()
    elif end == "close":
        first.close()
    second = exchange(Connection(client=("10.0.0.3", 50000), time=first.time).open(), 2)
    packets = [*first.packets[:before], *second.packets[:5], *first.packets[before:], *second.packets[5:]]
    whole = in_parts(packets)
    assert [status for _, _, _, status in whole].index(Status.CUT_OFF) == (6 if end == "capture" else 4)
    for cut in range(1, len(packets)):
        assert in_parts(packets, cut) == whole
