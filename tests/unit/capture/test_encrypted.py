"""Connections over TLS in captures, with a key log: losses, ends, and what stands beside them.

The connections are made (``tls_talks.made13``), so that each record is known; ``plain`` is the same without TLS.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from fed_in_parts import fed, packet_ends
from made_captures import Row, brief, read
from packets import ACK, Connection, Packet, metadata, metadata_answer, pcap, sized
from tls_connections import Talk, made13

from kwire.capture.encrypted import Encrypted
from kwire.capture.reading import Reading
from kwire.capture.state import STATE
from kwire.capture.tracker import Tracker
from kwire.errors import CaptureError
from kwire.kernels.engine import MACHINE, PYTHON, using
from kwire.kernels.layouts import Status
from kwire.tls import KeyLog

LINES = [(side, sized(made(number))) for number in range(1, 31) for side, made in ((0, metadata), (1, metadata_answer))]
COUNT = 30


def talk(lines: list[tuple[int, bytes]] = LINES, **options: Any) -> Talk:
    return made13(lines, **options)


def over_tls(one: Talk, connection: Connection | None = None) -> Connection:
    connection = connection or Connection().open()
    for side, data in one.wire:
        (connection.send_raw if side == 0 else connection.answer_raw)(data)
    return connection


def plain(lines: list[tuple[int, bytes]] = LINES) -> Connection:
    connection = Connection().open()
    for side, data in lines:
        (connection.send_raw if side == 0 else connection.answer_raw)(data)
    return connection


def without_times(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name not in ("timestamp", "latency_ms")} for row in rows]


def test_rows_are_those_of_the_same_without_tls() -> None:
    one = talk()
    for ports in (None, [9092]):
        found = read(pcap(over_tls(one).packets), keylog=KeyLog(one.keys), ports=ports)
        expected = read(pcap(plain().packets), ports=ports)
        assert without_times(found) == without_times(expected)
        assert len(found) == 2 * COUNT


@pytest.mark.parametrize("engine", [PYTHON, MACHINE])
def test_both_engines_give_the_same(engine: Any) -> None:
    one = talk()
    data, keys = pcap(over_tls(one).packets), KeyLog(one.keys)
    with using(engine):
        assert len(read(data, keylog=keys)) == 2 * COUNT


def test_the_time_of_a_frame_is_that_of_the_packet_with_the_end_of_its_record() -> None:
    one = talk([(0, sized(metadata(1))), (1, sized(metadata_answer(1)))])
    connection = Connection(mss=40).open()
    over_tls(one, connection)
    (asked, answered) = read(pcap(connection.packets, nano=True), keylog=KeyLog(one.keys))
    sizes = [0, 0]
    last = [0, 0]
    # The alerts at the end come after the frames: a record of 24 bytes each, a packet of its own.
    for packet in connection.packets[:-2]:
        side = int(packet.src == connection.broker)
        sizes[side] += len(packet.payload)
        last[side] = packet.time if packet.payload else last[side]
    assert asked["timestamp"].timestamp() == pytest.approx(last[0] / 1e9)
    assert answered["timestamp"].timestamp() == pytest.approx(last[1] / 1e9)


def test_connections_of_both_kinds_stand_beside_each_other() -> None:
    one = talk()
    sealed = over_tls(one, Connection(client=("10.0.0.3", 1234)).open())
    both = sorted([*plain().packets, *sealed.packets], key=lambda packet: packet.time)
    found = read(pcap(both), keylog=KeyLog(one.keys))
    assert sorted(row["connection"] for row in found) == [0] * 2 * COUNT + [1] * 2 * COUNT
    assert {row["status"] for row in found} == {"ok"}


@pytest.mark.parametrize("window", [100, 3000, None])
def test_a_packet_that_is_missing_costs_what_was_in_it(window: int | None) -> None:
    one = talk()
    connection = over_tls(one)
    packets = connection.packets
    # The answer to request 10, which is a packet of its own.
    data = [packet for packet in packets if packet.payload]
    (gone,) = [data[4 + 2 * 9 + 1]]
    found = read(pcap([packet for packet in packets if packet is not gone]), keylog=KeyLog(one.keys), window=window)
    assert [row["correlation_id"] for row in found if row["direction"] == "request"] == list(range(1, COUNT + 1))
    answered = [row["correlation_id"] for row in found if row["direction"] == "response" and row["status"] == "ok"]
    assert answered == [*range(1, 10), *range(11, COUNT + 1)]
    assert {row["status"] for row in found} <= {"ok", "gap"}


def test_what_follows_a_damaged_record_is_missing() -> None:
    one = talk(LINES[:8])
    packets = over_tls(one).packets
    k = [number for number, packet in enumerate(packets) if packet.payload][-3]
    damaged = replace(packets[k], payload=packets[k].payload[:-5] + bytes(5))
    reading = Reading(io.BytesIO(pcap([*packets[:k], damaged, *packets[k + 1 :]])), keys=KeyLog(one.keys), account=True)
    statuses = [frame.status for frames in reading for frame in frames]
    assert statuses == [Status.OK] * 7 + [Status.GAP]
    lost = sum(len(packet.payload) for packet in packets[k:] if packet.src == damaged.src)
    assert [line.balance.missing for line in reading.tracker.account()] == [0, lost]


@pytest.mark.parametrize("window", [100, None])
def test_packets_out_of_order_and_twice_change_nothing(window: int | None) -> None:
    one = talk()
    packets = over_tls(one).packets
    expected = without_times(read(pcap(packets), keylog=KeyLog(one.keys)))
    shuffled = list(packets)
    for k in range(8, len(packets) - 4, 4):
        shuffled[k], shuffled[k + 2] = shuffled[k + 2], shuffled[k]
        shuffled[k + 1 : k + 1] = []
    shuffled[20:20] = shuffled[10:14]
    found = without_times(read(pcap(shuffled), keylog=KeyLog(one.keys), window=window))
    assert sorted(brief(found)) == sorted(brief(expected))


@pytest.mark.wide
@pytest.mark.parametrize("window", [100, None])
@pytest.mark.parametrize("back", [50_000_000, 2_000_000_000])
def test_a_clock_that_is_set_back_changes_no_frame(window: int | None, back: int) -> None:
    one = talk()
    packets, keys = over_tls(one).packets, KeyLog(one.keys)
    wanted = without_times(read(pcap(packets), keylog=keys))
    for since in range(len(packets)):
        late = [*packets[:since], *(replace(packet, time=packet.time - back) for packet in packets[since:])]
        assert without_times(read(pcap(late, nano=True), keylog=keys, window=window)) == wanted


@pytest.mark.parametrize("window", [100, None])
def test_a_server_may_be_captured_before_its_client(window: int | None) -> None:
    one = talk()
    packets, keys = over_tls(one).packets, KeyLog(one.keys)
    wanted = without_times(read(pcap(packets), keylog=keys))
    hello, answer = [k for k, packet in enumerate(packets) if packet.payload][:2]
    late = [*packets[:hello], *packets[hello + 1 : answer + 1], packets[hello], *packets[answer + 1 :]]
    assert without_times(read(pcap(late), keylog=keys, window=window)) == wanted


@pytest.mark.parametrize("window", [100, None])
def test_a_hello_whose_first_bytes_are_missing_is_one_of_tls_with_a_key_log_too(window: int | None) -> None:
    # Its broker is known from another connection, so what there is of the hello could be a part of a request.
    one = talk()
    packets = over_tls(one, Connection(client=("10.0.0.3", 1234), mss=40).open()).packets
    first = next(packet for packet in packets if packet.payload)
    known = Connection().open().send(metadata(1)).answer(metadata_answer(1)).packets
    data = pcap([*known, *(packet for packet in packets if packet is not first)])
    for keys in (None, KeyLog(one.keys)):
        (row,) = (row for row in read(data, keylog=keys, window=window) if row["connection"] == 1)
        assert (row["status"], row["client_port"]) == ("encrypted", 1234)


def test_a_frame_that_the_end_cuts_off_is_told() -> None:
    whole = sized(metadata(2))
    one = talk([(0, sized(metadata(1))), (1, sized(metadata_answer(1))), (0, whole[:10])])
    for end in ("close", "reset", ""):
        connection = over_tls(one)
        if end:
            getattr(connection, end)()
        # What comes later keeps the capture going.
        later = Connection(client=("10.0.0.9", 999), time=connection.time + 60_000_000_000).open()
        later.send(metadata(7)).answer(metadata_answer(7))
        found = read(pcap([*connection.packets, *later.packets]), keylog=KeyLog(one.keys), window=500)
        states = [row["status"] for row in found if row["client_port"] == 40000]
        assert states == ["ok", "ok", "cut_off"]
        assert len(found) == 5


def test_tls_that_is_not_kafka_is_left_out() -> None:
    one = talk([(0, b"GET / HTTP/1.1\r\nHost: example\r\n\r\n"), (1, b"HTTP/1.1 200 OK\r\n\r\n")])
    assert read(pcap(over_tls(one).packets), keylog=KeyLog(one.keys)) == []


@pytest.mark.parametrize(("kept", "rows"), [(1, 1), (2, 0), (3, 0)])
def test_a_connection_that_says_nothing_has_no_frames(kept: int, rows: int) -> None:
    one = talk()
    found = read(pcap(over_tls(Talk(one.wire[:kept], one.keys)).packets), keylog=KeyLog(one.keys))
    assert [(row["status"], row["error"]) for row in found] == rows * [
        ("encrypted", "the handshake of this connection was not captured")
    ]


def test_the_middle_of_a_connection_says_what_is_missing() -> None:
    one = talk()
    found = read(pcap(over_tls(one).packets[8:]), keylog=KeyLog(one.keys))
    assert [(row["status"], row["error"]) for row in found] == [
        ("encrypted", "the handshake of this connection was not captured")
    ]


def test_one_direction_alone() -> None:
    one = talk()
    connection = over_tls(one)
    found = read(
        pcap([packet for packet in connection.packets if packet.src == connection.client]), keylog=KeyLog(one.keys)
    )
    assert [row["correlation_id"] for row in found] == list(range(1, COUNT + 1))
    assert {row["direction"] for row in found} == {"request"}


def test_ports_that_are_used_again() -> None:
    one = talk()
    first = over_tls(one)
    second = over_tls(one, Connection(time=first.time + 1_000_000_000, client_isn=900_000, broker_isn=77).open())
    found = read(pcap([*first.packets, *second.packets]), keylog=KeyLog(one.keys), window=2000)
    assert len(found) == 4 * COUNT
    assert {(row["connection"], row["status"]) for row in found} == {(0, "ok"), (1, "ok")}


@pytest.mark.wide
def test_a_record_that_spans_windows_is_held_in_the_state() -> None:
    big = sized(metadata(1)) * 1
    one = talk([(0, big), (1, sized(metadata_answer(1)))], certificate=9000)
    data = pcap(over_tls(one, Connection(mss=50).open()).packets)
    keys = KeyLog(one.keys)
    tracker, found = Tracker(keys=keys), []
    for at in range(0, len(data), 61):
        found += list(tracker.feed(data[at : at + 61], final=at + 61 >= len(data)))
        saved = tracker.save()
        tracker = Tracker(keys=keys)
        if at + 61 < len(data):
            tracker.restore(saved)
    assert [(frame.correlation_id, frame.status.name) for frame in found] == [(1, "OK"), (1, "OK")]


def test_a_state_behind_a_hole_has_the_clock_that_was_set_back() -> None:
    # What is waited for is over by the clock, which goes on from where it was before it was set back.
    one = talk()
    packets = over_tls(one).packets
    gone = packets[30]
    late = [replace(packet, time=packet.time - 2_000_000_000) for packet in packets[20:] if packet is not gone]
    slow = [*packets[:20], *late[:20], *(replace(packet, time=packet.time + 2_500_000_000) for packet in late[20:])]
    data, keys = pcap(slow, nano=True), KeyLog(one.keys)
    wanted = fed(data, keys=keys)
    assert {row.status for row in wanted} == {Status.OK, Status.GAP}
    for cut in packet_ends(data):
        assert fed(data, [cut], handed_on=True, keys=keys) == wanted


def test_a_state_that_was_changed_is_refused() -> None:
    one = talk()
    tracker = Tracker(keys=KeyLog(one.keys))
    data = pcap(over_tls(one).packets)
    tracker.feed(data[: len(data) // 2])
    saved = tracker.save()
    state = json.loads(saved.column("tls")[0].as_py())
    assert state["given"]
    rest = {"clock": 0, "doubt": 0}
    changes: list[dict[str, Any]] = [
        {"decryptor": 5},
        {"decryptor": {**state["decryptor"], "verdict": "HAPPY"}},
        {"decryptor": {**state["decryptor"], "ways": []}},
        {"rows": []},
        {"rows": [state["rows"][0], [*state["rows"][1][:-1], "x"]]},
        {"plain": [1]},
        {"begun": ["AA==", 1]},
        {"begun": ["AA==", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"]},
        {"told": ["TLS 1.3"]},
        {"plain": [-2, 0]},
        {"first": [7, 0]},
        {"times": None},
        {"order": "1"},
        {"given": 1},
        {"segments": None},
        {"segments": [{"side": 0, "pos": 1, "len": 2, "time": 0, "order": 0, **rest, "bytes": "AA=="}]},
        {"segments": [{"side": 0, "pos": 1, "len": 1, "time": 0, "order": 0, **rest, "bytes": "!"}]},
        {"segments": [{"side": 0, "pos": 1, "len": 1, "time": 0, "order": 0, "doubt": 0, "bytes": "AA=="}]},
    ]
    for change in changes:
        texts = [json.dumps({**state, **change})]
        other = saved.set_column(saved.schema.get_field_index("tls"), STATE.field("tls"), [texts])
        with pytest.raises(CaptureError, match="state"):
            Tracker(keys=KeyLog(one.keys)).restore(other.replace_schema_metadata(saved.schema.metadata))


def test_a_state_without_the_keys_goes_on_and_says_so() -> None:
    one = talk()
    data = pcap(over_tls(one).packets)
    first = Tracker(keys=KeyLog(one.keys))
    before = list(first.feed(data[: len(data) // 2]))
    second = Tracker()
    second.restore(first.save())
    after = list(second.feed(data[len(data) // 2 :], final=True))
    assert {frame.status.name for frame in before} == {"OK"}
    # Both directions end in bytes that could not be read.
    assert [(frame.status.name, frame.correlation_id) for frame in after] == [("GAP", None), ("GAP", None)]
    (note,) = second.notes()
    assert note.endswith("bytes of 1 connection over TLS could not be decrypted, with packets missing or keys")


def test_captures_without_tls_cost_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self: Encrypted, *arguments: Any) -> None:
        raise AssertionError("nothing is to be read here")

    monkeypatch.setattr(Encrypted, "_read", never)
    packets: list[Packet] = plain().packets
    assert len(read(pcap(packets), keylog=KeyLog(b"# none\n"))) == 2 * COUNT


def test_a_key_that_comes_while_the_capture_goes_on() -> None:
    one = talk()
    data = pcap(over_tls(one).packets)
    keys = KeyLog(growing=True)
    tracker, found = Tracker(keys=keys), []
    for at in range(0, len(data), 500):
        if at > len(data) // 3:
            keys.add(one.keys)
        found += list(tracker.feed(data[at : at + 500], final=at + 500 >= len(data)))
    assert sorted((frame.correlation_id, frame.is_response) for frame in found) == [
        (number, response) for number in range(1, COUNT + 1) for response in (False, True)
    ]
    never = Tracker(keys=KeyLog(growing=True)).feed(data, final=True)
    assert [frame.error for frame in never] == ["no key for this connection in the key log"]


@pytest.mark.parametrize("mss", [1, 2, 5, 6, 13])
def test_a_hello_in_pieces_of_any_size_is_known(mss: int) -> None:
    one = talk(LINES[:6])
    data = pcap(over_tls(one, Connection(mss=mss).open()).packets)
    assert brief(read(data, keylog=KeyLog(one.keys))) == brief(read(pcap(plain(LINES[:6]).packets)))
    assert [row["error"] for row in read(data, keylog=KeyLog(b"# none"))] == [
        "no key for this connection in the key log"
    ]


def test_what_begins_like_tls_and_is_none_is_left_out() -> None:
    connection = Connection(mss=1).open()
    connection.send_raw(b"\x16 is no hello, and goes on").answer_raw(b"\x16 nor is this")
    assert read(pcap(connection.packets), keylog=KeyLog(b"# none")) == read(pcap(connection.packets)) == []


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("window", [1, 100, None])
def test_a_hello_that_comes_late_is_known(window: int | None) -> None:
    one = talk(LINES[:6])
    connection = over_tls(one, Connection(mss=60).open())
    packets = list(connection.packets)
    # The second packet of the client's hello before the first.
    packets[3], packets[4] = packets[4], packets[3]
    found = read(pcap(packets), keylog=KeyLog(one.keys), window=window)
    assert brief(found) == brief(read(pcap(plain(LINES[:6]).packets)))


@pytest.mark.parametrize("window", [1, None])
def test_what_is_captured_behind_a_reset_is_read(window: int | None) -> None:
    one = talk(LINES[:6])
    packets = list(over_tls(one).reset().packets)
    packets.insert(12, packets.pop())
    expected = list(plain(LINES[:6]).packets)
    assert brief(read(pcap(packets), keylog=KeyLog(one.keys), window=window)) == brief(read(pcap(expected)))


def _said(packets: list[Packet], one: Talk, window: int | None) -> list[tuple[Any, ...]]:
    """The rows of a capture, with their times and numbers, and what is known of its connections."""
    reading = Reading(io.BytesIO(pcap(packets)), keys=KeyLog(one.keys), window=window)
    rows = [
        (frame.number, frame.is_response, frame.correlation_id, frame.status.name, frame.error, frame.size, frame.time)
        for frames in reading
        for frame in frames
    ]
    return [*sorted(rows), *((each.role, each.tls) for each in reading.tracker.connections())]


def _alike(packets: list[Packet], one: Talk) -> list[Any]:
    """The statuses of the rows, which are the same in any window."""
    expected = _said(packets, one, None)
    for window in (70, 200, 1000):
        assert _said(packets, one, window) == expected
    return [row[3] for row in expected if len(row) > 2]


def test_a_hole_is_given_up_by_what_was_acknowledged_meanwhile() -> None:
    half, rest = sized(metadata(2))[:10], sized(metadata(2))[10:]
    lines = [(0, metadata(1)), (1, metadata_answer(1)), (0, metadata(3)), (1, metadata_answer(3))]
    first, answer, third, last = ((side, sized(line)) for side, line in lines)
    one = talk([first, answer, (0, half), (0, rest), third, last])
    connection = over_tls(Talk(one.wire[:9], one.keys))
    gone = connection.packets[-2]
    connection.step = 40_000_000
    for _ in range(8):
        connection._add(1, b"", ACK)
    over_tls(Talk(one.wire[9:], one.keys), connection)
    # Without the second half, the third request is known when the hole is given up, before its answer comes.
    said = _alike([packet for packet in connection.packets if packet is not gone], one)
    # The last exchange ends with the capture. What acknowledgements say of encrypted bytes does not confirm it.
    assert sorted(said) == ["GAP"] * 2 + ["OK"] * 2 + ["UNCONFIRMED"] * 2


@pytest.mark.parametrize("gone", [[0], [1], [0, 1], [0, 1, 2]])
def test_streams_whose_syn_is_missing_begin_with_their_first_bytes(gone: list[int]) -> None:
    one = talk(LINES[:6])
    packets = over_tls(one).packets
    assert _alike([packet for k, packet in enumerate(packets) if k not in gone], one) == ["OK"] * 6


@pytest.mark.parametrize("early", [False, True])
def test_what_cannot_be_read_in_front_of_an_end_is_a_gap(early: bool) -> None:
    whole = sized(metadata(2))
    one = talk([(0, sized(metadata(1))), (1, sized(metadata_answer(1))), (0, whole[:10]), (0, whole[10:])])
    connection = over_tls(one).close()
    packets = list(connection.packets)
    # What the client said last, its alert included.
    broken = [k for k, packet in enumerate(packets) if packet.payload and packet.src == connection.client][-2:]
    for k in broken:
        packets[k] = replace(packets[k], payload=bytes(len(packets[k].payload)))
    if early:
        # The FIN of the client is captured in front of that.
        packets.insert(broken[0], packets.pop(-2))
    later = over_tls(one, Connection(client=("10.0.0.9", 999), time=connection.time + 60_000_000_000).open())
    assert _alike([*packets, *later.packets], one)[:3] == ["OK", "OK", "GAP"]


@pytest.mark.parametrize("end", ["close", "reset", ""])
def test_a_frame_is_cut_off_with_the_same_packet_in_any_window(end: str) -> None:
    one = talk([(0, sized(metadata(1))), (1, sized(metadata_answer(1))), (0, sized(metadata(2))[:10])])
    connection = over_tls(one)
    if end:
        getattr(connection, end)()
    later = over_tls(one, Connection(client=("10.0.0.9", 999), time=connection.time + 60_000_000_000).open())
    assert sorted(_alike([*connection.packets, *later.packets], one)) == ["CUT_OFF"] * 2 + ["OK"] * 4


@pytest.mark.parametrize("window", [100, 300, None])
@pytest.mark.parametrize("said", [1, None])
def test_how_a_connection_ended_is_known_with_keys_too(window: int | None, said: int | None) -> None:
    one = talk(LINES[:2])
    # The hello of the client alone: a broker that sends nothing ends without a byte.
    connection = over_tls(Talk(one.wire[:said], one.keys)).close()
    acknowledged = [Packet(connection.broker, connection.client, connection._next[1], b"", ACK, connection._next[0])]
    later = over_tls(one, Connection(client=("10.0.0.9", 999), time=connection.time + 60_000_000_000).open())
    packets = [*connection.packets, *later.packets, *(replace(packet, time=later.time) for packet in acknowledged)]
    rows = read(pcap(packets), "connections", keylog=KeyLog(one.keys), window=window)
    assert [(row["ended"], row["ended_by"]) for row in rows] == [("fin", "client"), ("open", None)]
    assert {(row["client_missing_bytes"], row["broker_missing_bytes"]) for row in rows} == {(0, 0)}


def test_what_waits_for_a_hello_is_told_when_its_connection_is_reset() -> None:
    one = talk(LINES[:2])
    # The hello of the broker is missing, and what follows cannot be read without it.
    connection = over_tls(Talk([one.wire[0], *one.wire[2:]], one.keys)).reset()
    later = over_tls(one, Connection(client=("10.0.0.9", 999), time=connection.time + 60_000_000_000).open())
    _alike([*connection.packets, *later.packets], one)


def test_bytes_in_front_of_a_hello_are_looked_at_as_what_they_are() -> None:
    one = talk(LINES[:6])
    connection = over_tls(one)
    packets = list(connection.packets)
    packets[3] = replace(packets[3], payload=b"\0\0\x10\0" + packets[3].payload[4:])
    # The broker is known by another connection.
    before = over_tls(one, Connection(client=("10.0.0.9", 999), time=connection.time - 1_000_000_000).open())
    _alike([*before.packets, *packets], one)


def test_the_broker_of_the_middle_of_a_connection_is_known_by_another() -> None:
    one = talk(LINES[:6])
    connection = over_tls(one)
    before = over_tls(one, Connection(client=("10.0.0.9", 999), time=connection.time - 1_000_000_000).open())
    for first in range(4, len(connection.packets) - 2, 3):
        said = _alike([*before.packets, *connection.packets[first:]], one)
        assert said == ["OK"] * 6 + ["ENCRYPTED"]
