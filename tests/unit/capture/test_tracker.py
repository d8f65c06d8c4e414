"""What a tracker makes of packets: what TCP and Kafka can do to a reader, and what it holds of it."""

from __future__ import annotations

import io
import struct
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from fed_in_parts import Seen, fed, packet_ends
from made_captures import ONE, brief, by_time, exchange, read, several
from packets import (
    SYN,
    Connection,
    Packet,
    link,
    metadata,
    metadata_answer,
    moved,
    pcap,
    pcapng,
    produce,
    produce_answer,
    request,
    response,
    sized,
)

from kwire import capture
from kwire.capture import tracker
from kwire.capture.reading import Reading
from kwire.capture.tracker import Tracker
from kwire.kernels import pairing
from kwire.kernels.engine import MACHINE, Engine, using
from kwire.kernels.layouts import Status
from kwire.kernels.pairing import DISORDER
from kwire.kernels.roles import UNDECIDED

# TCP


@pytest.mark.parametrize("mss", [1, 3, 7, 1460])
def test_frames_are_joined_from_segments_of_any_size(mss: int) -> None:
    assert brief(read(pcap(exchange(Connection(mss=mss).open(), 4).packets))) == several(4)


def test_many_frames_in_one_segment() -> None:
    connection = Connection(mss=1 << 15).open()
    connection.send(*(metadata(k) for k in range(1, 101))).answer(*(metadata_answer(k) for k in range(1, 101)))
    found = read(pcap(connection.packets))
    assert sorted(brief(found)) == sorted(several(100))


def test_many_frames_of_a_window_are_put_in_order_in_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (Connection(client=("10.0.0.1", port)).open() for port in (40001, 40002))
    for _ in range(20):
        exchange(one, 1)
        exchange(other, 1)
    packets = sorted((*one.packets, *other.packets), key=lambda packet: packet.time)
    expected = read(pcap(packets))
    assert len({row["connection"] for row in expected}) == 2
    monkeypatch.setattr(tracker, "MANY_FRAMES", 0)
    assert read(pcap(packets)) == expected


def test_a_window_of_small_frames_has_room_for_all_from_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pcap(exchange(Connection().open(), 150).packets)
    sizes: list[int] = []
    grown: Any = vars(tracker)["grown"]

    def noted(table: Any, least: int = 0) -> Any:
        sizes.append(len(table))
        return grown(table, least)

    monkeypatch.setattr(tracker, "grown", noted)
    with using(MACHINE):
        assert len(read(data)) == 300
        assert sizes == []
        connection = Connection(mss=1 << 15).open()
        connection.send(*(metadata(k) for k in range(1, 151))).answer(*(metadata_answer(k) for k in range(1, 151)))
        # Where many stand in one segment, it grows.
        assert len(read(pcap(connection.packets))) == 300
        assert sizes != []


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
    assert brief(by_time(read(pcap(packets)))) == several(3)[2:]


def test_a_capture_that_begins_within_a_frame() -> None:
    packets = exchange(Connection(mss=6).open(), 4).packets[4:]
    found = by_time(read(pcap(packets)))
    ok = [one for one in brief(found) if one[3] == "ok"]
    assert ok[-6:] == several(4)[-6:]
    skipped = [row for row in found if row["status"] == "gap"]
    assert [row["direction"] for row in skipped] == ["request"]
    assert "bytes skipped" in skipped[0]["error"]


def test_a_missing_packet_costs_only_its_frame() -> None:
    connection = exchange(Connection(mss=16).open(), 4)
    missing = sized(metadata(2))[16:]
    (lost,) = [one for one in connection.packets if one.payload == missing and one.dst[1] == 9092 and one.seq == 1039]
    found = by_time(read(pcap([one for one in connection.packets if one is not lost])))
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
    connection.send(request(3, 0, 1, struct.pack(">ih", 1, 20_000) + b"t" * 20_000))
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
    assert read(pcap(connection.packets)) == []  # Alone, it may be anything.
    asked, answered = read(pcap(connection.answer(response(3, bytes(6))).packets))
    assert brief([asked]) == [("request", "ControlledShutdown", 3, "ok")]
    assert brief([answered]) == [("response", "ControlledShutdown", 3, "ok")]
    assert asked["client_id"] is None


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


def test_an_empty_token_is_no_response_to_a_request_whose_id_is_the_size_of_what_follows() -> None:
    mechanisms = struct.pack(">hih", 0, 1, 5) + b"PLAIN"
    connection = Connection(step=1000).open().send(request(17, 0, 1, b"\0\x05PLAIN")).answer(response(1, mechanisms))
    connection.send(b"\0u\0p").answer(b"")
    number = len(metadata_answer(0))
    connection.send(metadata(number)).answer(metadata_answer(number))
    found = read(pcap(connection.packets))
    assert [row["status"] for row in found] == ["ok"] * 2 + ["sasl"] * 2 + ["ok"] * 2


def test_a_repeated_segment_does_not_make_a_later_request_late() -> None:
    connection = exchange(Connection(step=1000).open(), 2)
    packets = connection.packets
    first, second = packets[3], packets[5]
    later = packets[6].time + 10
    # Behind the first exchange a window begins, in which the first request is there once more, after the second answer.
    data = pcap([*packets[:5], second, packets[6], replace(first, time=later), *packets[7:]])
    begin = 24 + sum(16 + len(link(one)) for one in packets[:5])
    assert [row["latency_ms"] for row in read(data, window=begin)] == [row["latency_ms"] for row in read(data)]
    assert [row["latency_ms"] for row in read(data, window=begin)][1::2] == [0.001, 0.001]


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


def idle_ones(count: int) -> list[Packet]:
    """Connections an hour apart that are never closed: what is left of them is nothing, a request, a part of one, a
    hole, or no Kafka. Each fifth goes on a day later."""
    packets, later = [], []
    for k in range(count):
        made = Connection(
            client=("10.0.0.9", 41_000 + k), time=1_700_000_000_000_000_000 + k * 3_600_000_000_000
        ).open()
        made.send(metadata(1)).answer(metadata_answer(1))
        if k % 5 == 1:
            made.send(metadata(2))
        elif k % 5 == 2:
            made.send_raw(sized(metadata(2))[:15])
        elif k % 5 == 3:
            made.send(metadata(2)).send(metadata(3))
            del made.packets[-2]
        elif k % 5 == 4:
            made = Connection(client=("10.0.0.9", 41_000 + k), broker=("10.0.0.8", 80), time=made.time)
            made.send_raw(b"\xff" * 100)
        packets += made.packets
        if k % 5 == 0:
            made.time += 24 * 3_600_000_000_000
            before = len(made.packets)
            made.send(metadata(4)).answer(metadata_answer(4))
            later += made.packets[before:]
    return sorted(packets + later, key=lambda packet: packet.time)


@pytest.mark.parametrize("window", [300, 1000, 7000])
def test_idle_connections_are_forgotten_where_the_input_has_no_end(
    window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kwire.capture.tracker.LEAST_IDLE", 4)
    data = pcap(idle_ones(60))

    def rows(**options: Any) -> tuple[list[Any], Reading]:
        reading = Reading(io.BytesIO(data), window=window, **options)
        found = []
        most = 0
        for frames in reading:
            for frame in frames:
                ends = frame.client.port, frame.is_response
                about = frame.status, frame.correlation_id, frame.size, frame.error, frame.time, frame.latency
                found.append((frame.number, frame.connection, *ends, *about))
            most = max(most, len(reading.tracker.connections()))
        assert len({row[0] for row in found}) == len(found)
        return [most, *found], reading

    (_, *whole), _ = rows()
    (most, *found), reading = rows(forgets=True)
    # Of 72 in all: those of three hours, and what two windows bring.
    assert most <= 16 + window // 250
    (note,) = [note for note in reading.notes() if "given up" in note]
    gone = int(note.split()[0])
    assert note == f"{gone} connections were given up: nothing of them was captured for 3 hours"
    # Numbers go on: those that were given up and go on later are other connections.
    numbers = [one.number for one in reading.tracker.connections()]
    assert numbers == sorted(set(numbers))
    again = [row[1] for row in found if row[5] == 4 and not row[3]]
    before = {row[1] for row in found if row[5] == 1}
    others = len(set(again) - before)
    assert others >= (10 if window <= 1000 else 1)
    assert gone + len(numbers) == 60 + others
    assert max(row[1] for row in found) < 60 + others
    # All rows are there, of what was unfinished too. What goes on after it was given up begins in doubt.
    ids = ([repr(row[2:4] + row[5:7]) for row in some] for some in (found, whole))
    assert len({tuple(sorted(one)) for one in ids}) == 1
    assert {row[4] for row in found} <= {Status.OK, Status.UNCONFIRMED, Status.CUT_OFF, Status.GAP}
    assert {row[4] for row in whole} == {Status.OK, Status.CUT_OFF, Status.GAP}
    with pytest.raises(ValueError, match="forgotten"):
        reading.tracker.save()


def busy(count: int, *, at_once: bool) -> Connection:
    """So many small requests and their responses: each as soon as it can be, or all requests in front."""
    connection = Connection(mss=1 << 15, step=128_000).open()
    asked = [request(12, 0, k, b"\0\1g\0\0\0\1\0\1m") for k in range(count)]
    answered = [response(k, b"\0\0") for k in range(count)]
    if at_once:
        return connection.send(*asked).answer(*answered)
    for one, other in zip(asked, answered, strict=True):
        connection.send(one).answer(other)
    return connection


def test_a_hundred_thousand_requests_in_flight_in_one_window_are_all_paired() -> None:
    count = 100_000
    data = pcap(busy(count, at_once=True).packets)
    with using(MACHINE):
        frames = Tracker().feed(data, final=True)
    assert Counter(frames["status"].tolist()) == {Status.OK: 2 * count}
    answered = frames["response"] == 1
    assert frames["id"][answered].tolist() == frames["id"][~answered].tolist() == list(range(count))
    assert set(frames["api"].tolist()) == {12}
    assert (frames["latency"][answered] > 0).all()


def test_of_a_busy_connection_only_what_is_in_flight_is_remembered() -> None:
    data = pcap(busy(20_000, at_once=False).packets)
    with using(MACHINE):
        tracker = Tracker()
        frames = tracker.feed(data, final=True)
    assert Counter(frames["status"].tolist()) == {Status.OK: 40_000}
    assert set(frames["latency"][frames["response"] == 1].tolist()) == {128_000}
    # What is read ahead: twice the disorder that a capture may have, at 256 microseconds for each request.
    assert len(tracker._waiting) <= 256
    assert tracker._room["waiting"][0] <= 2 * DISORDER // 256_000 + 2


@pytest.mark.parametrize("parts", [1, 40])
def test_requests_that_were_given_up_are_told_by_the_responses_to_them(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    monkeypatch.setattr(pairing, "MOST_WAITING", 64)
    data = pcap(busy(100, at_once=True).packets)
    tracker = Tracker()
    step = -(-len(data) // parts)
    found = [one for at in range(0, len(data), step) for one in tracker.feed(data[at : at + step])]
    found += list(tracker.feed(b"", final=True))
    assert len(found) == 200
    assert {one.status for one in found if not one.is_response} == {Status.OK}
    answers = [one for one in found if one.is_response]
    lost = [one for one in answers if one.status == Status.UNPAIRED]
    # Half of 64 at a time, and as many as share a time with those.
    assert len(lost) == 64
    assert [one.correlation_id for one in lost] == list(range(64))
    said = "no request with this correlation id is known: 64 requests of this connection had been given up"
    assert {one.error for one in lost} == {said}
    assert {one.status for one in answers[64:]} == {Status.OK}
    assert len(tracker._waiting) == 64


def test_times_at_the_end_of_all_times_end(engine: Engine) -> None:
    packets = exchange(count=3).packets
    for shift in ((1 << 63) - 1 - packets[-1].time, -packets[0].time):
        found = Tracker().feed(pcapng([replace(one, time=one.time + shift) for one in packets]), final=True)
        assert len(found) == 6


def test_a_connection_without_syn_far_from_what_was_on_its_ports_is_a_new_one() -> None:
    first = exchange(Connection(client_isn=2_000_000_000, broker_isn=10).open(), 2)
    for isn in (1_000_000, 3_900_000_000):
        second = exchange(Connection(client_isn=isn, broker_isn=3_000_000_000, time=first.time).open(), 2)
        found = by_time(read(pcap(first.packets + second.packets[3:])))
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
    assert held[-1] <= UNDECIDED
    tracker.feed(b"", final=True)
    assert tracker.save().column("segments").to_pylist() == [[]]


def test_bytes_that_the_capture_cut_off_may_be_there_in_part_from_retransmissions() -> None:
    connection = Connection().open().send(request(3, 0, 1, bytes(3000))).answer(metadata_answer(1))
    first = connection.packets[3]
    # The second packet is cut to 40 bytes of payload, but small parts of the rest were sent again.
    parts = [replace(first, seq=first.seq + at, payload=first.payload[at : at + 20]) for at in range(100, 900, 60)]
    found = read(pcap([*connection.packets[:4], *parts, *connection.packets[4:]], snaplen=94))
    assert brief(found) == [("request", "Metadata", 1, "gap"), ("response", "Metadata", 1, "ok")]


def test_a_syn_alone_is_a_connection_without_frames() -> None:
    packet = Packet(("10.0.0.1", 1), ("10.0.0.2", 9092), 5, flags=SYN)
    assert read(pcap([packet]), ports=[9092]) == []


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
    # Behind an RST what was sent before it may be captured.
    assert [status for _, _, _, status in whole].index(Status.CUT_OFF) == (4 if end == "close" else 6)
    for cut in range(1, len(packets)):
        assert in_parts(packets, cut) == whole


@pytest.mark.wide(keep=1)
def test_one_window_may_hold_more_than_any_table_does_at_first(engine: Engine) -> None:
    connections = [Connection(client=("10.0.0.1", 20_000 + k), mss=1 << 15).open() for k in range(100)]
    for k, connection in enumerate(connections):
        connection.send(*(metadata(number, f"client {k} {number // 5} " + "x" * 50) for number in range(1, 31)))
        connection.answer(*(metadata_answer(number) for number in range(1, 31)))
    packets = [one for together in zip(*(each.packets for each in connections), strict=True) for one in together]
    tracker = Tracker()
    found = Counter(
        (frame.connection, frame.is_response, frame.client_id, frame.correlation_id, frame.status)
        for frame in tracker.feed(pcap(packets), final=True)
    )
    wanted = Counter(
        (k, is_response, f"client {k} {number // 5} " + "x" * 50, number, Status.OK)
        for k in range(100)
        for number in range(1, 31)
        for is_response in (False, True)
    )
    assert found == wanted


# The clock of the host


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("back", [50_000_000, 2_000_000_000, 3_600_000_000_000])
@pytest.mark.parametrize("mss", [1460, 11])
def test_a_clock_that_is_set_back_changes_times_and_nothing_else(back: int, mss: int) -> None:
    """Requests look younger than their responses then, and everything as if it had waited for long."""
    connection = exchange(Connection(mss=mss).open(), 6)
    connection.send(*(metadata(number) for number in range(7, 10)))
    connection.answer(*(metadata_answer(number) for number in range(7, 10)))
    packets = connection.packets

    def known(found: list[Seen]) -> list[tuple[object, ...]]:
        return [(one.number, one.order, one.response, one.id, one.status, one.size, one.data) for one in found]

    plain = fed(pcap(packets, nano=True))
    assert {one.status for one in plain} == {Status.OK}
    for first in range(len(packets)):
        changed = pcap([*packets[:first], *(moved(one, -back) for one in packets[first:])], nano=True)
        assert known(fed(changed)) == known(plain)
        if first % 5 == 0:
            assert fed(changed, packet_ends(changed)) == fed(changed)
            assert fed(changed, packet_ends(changed), handed_on=True) == fed(changed)


def test_a_hole_is_waited_for_although_the_clock_was_set_back() -> None:
    """What stands behind it seemed to have waited for as long as the clock was set back."""
    back = 20_000_000_000
    packets = exchange(Connection(mss=11).open(), 6).packets
    late = [*packets[:8], *packets[9:12], packets[8], *packets[12:]]
    data = pcap([*late[:8], *(moved(one, -back) for one in late[8:])], nano=True)
    for cuts in ((), packet_ends(data)):
        found = fed(data, cuts)
        assert [one.status for one in found] == [Status.OK] * 12
