"""Kafka of which a capture has little: what is recognised, what is not invented, and that windows do not matter."""

from __future__ import annotations

import io
import operator
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from counted_work import lines
from fed_in_parts import Seen, fed, packet_ends
from packets import (
    Connection,
    Packet,
    metadata,
    metadata_answer,
    pcap,
    produce,
    produce_answer,
    request,
    response,
    sized,
)

from kwire import capture
from kwire.capture.tracker import Tracker
from kwire.kernels.engine import PYTHON, using
from kwire.kernels.judging import MOST_JUDGED
from kwire.kernels.layouts import ABSENT, Status
from kwire.kernels.roles import UNDECIDED
from kwire.kernels.searching import LARGEST_ID, MOST_AWAITED, MOST_FOLLOWED
from kwire.kernels.streams import LINGERS
from kwire.testing.impair import impair


def windows(packets: Sequence[Packet], **options: Any) -> list[Seen]:
    """The frames, which are the same whether a packet, 1 kB or all is read at once."""
    snaplen = options.pop("snaplen", 262144)
    data = pcap(packets, snaplen=snaplen)
    whole = fed(data, **options)
    ends = packet_ends(data)
    assert fed(data, ends, **options) == whole
    assert fed(data, ends, handed_on=True, **options) == whole
    assert fed(data, range(1000, len(data), 1000), **options) == whole
    return whole


def brief(found: list[Seen]) -> list[tuple[int, int, Status]]:
    return [(one.response, one.id, Status(one.status)) for one in sorted(found, key=lambda one: (one.time, one.order))]


def talk(count: int, client: str | None = "test", connection: Connection | None = None) -> Connection:
    connection = connection or Connection().open()
    for number in range(1, count + 1):
        connection.send(metadata(number, client)).answer(metadata_answer(number))
    return connection


FOUND = (Status.OK, Status.UNCONFIRMED)
"""The statuses of what was recognised. What tells them apart is in ``test_unconfirmed``."""


def several(first: int, last: int) -> list[tuple[int, int, Status]]:
    return [(way, number, Status.OK) for number in range(first, last + 1) for way in (0, 1)]


@pytest.mark.parametrize("client", [None, "", "test"])
@pytest.mark.parametrize("mss", [1460, 5])
def test_a_session_whatever_its_client_id(client: str | None, mss: int) -> None:
    assert brief(windows(talk(3, client, Connection(mss=mss).open()).packets)) == several(1, 3)
    # Without the SYN.
    assert brief(windows(talk(3, client, Connection(mss=mss)).packets)) == several(1, 3)


def test_responses_alone() -> None:
    packets = [one for one in talk(5).packets if one.src[1] == 9092 and one.payload]
    assert brief(windows(packets)) == [(1, number, Status.UNPAIRED) for number in range(1, 6)]
    assert windows(packets[:2]) == []


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("answered", [True, False])
def test_the_first_request_of_old_librdkafka_ends_in_an_empty_array(opened: bool, answered: bool) -> None:
    """Its versions 0.9 to 1.3 send one behind ApiVersions v0; a broker before 0.10 closes the connection then."""
    connection = Connection().open() if opened else Connection()
    connection.send(request(18, 0, 1, bytes(4), "rdkafka"))
    if answered:
        connection.answer(response(1, struct.pack(">hihhh", 0, 1, 18, 0, 2)))
        connection.send(metadata(2)).answer(metadata_answer(2))
    found = brief(windows(connection.close().packets))
    # Nothing confirms what was not answered, if the capture may have begun within another frame.
    first = Status.OK if opened or answered else Status.UNCONFIRMED
    assert found == [(0, 1, first), *([(1, 1, Status.OK), *several(2, 2)] if answered else [])]


@pytest.mark.parametrize("rest", [b"\0\0\0\1", bytes(3), bytes(5), bytes(8)])
def test_a_first_request_with_other_bytes_behind_it_tells_nothing(rest: bytes) -> None:
    assert windows(Connection().send(request(18, 0, 1, rest, "rdkafka")).packets) == []


def test_the_first_request_was_lost() -> None:
    packets = talk(4).packets
    first = next(k for k, one in enumerate(packets) if one.payload)
    found = brief(windows([*packets[:first], *packets[first + 1 :]]))
    assert [one for one in found if one[2] == Status.OK] == several(2, 4)
    assert {one[1] for one in found if one[2] == Status.UNPAIRED} <= {1}


@pytest.mark.parametrize("length", [37, 60])
def test_a_snapshot_length_that_cuts_the_client_id(length: int) -> None:
    connection = Connection().open()
    names = struct.pack(">i", 30) + b"\0\5topic" * 30
    for number in range(1, 4):
        connection.send(request(3, 0, number, names, "n" * length)).answer(metadata_answer(number))
    found = windows(connection.packets, snaplen=96)
    assert [(one.id, one.api) for one in found if not one.response] == [(1, 3), (2, 3), (3, 3)]
    assert {Status(one.status) for one in found if not one.response} == {Status.GAP}
    assert [one.id for one in found if one.response and one.status == Status.OK] == [1, 2, 3]


def test_values_that_are_frames_are_not_frames_behind_a_hole() -> None:
    """The hole has the size of the request, so that its records are searched."""
    values = b"".join(sized(metadata(number, "inner")) for number in range(500, 540))
    connection = talk(2, connection=Connection(mss=200).open())
    begin = len(connection.packets)
    connection.send(produce(3, 1, b"\0" * 100 + values)).answer(produce_answer(3))
    for number in range(4, 7):
        connection.send(metadata(number)).answer(metadata_answer(number))
    found = windows([*connection.packets[:begin], *connection.packets[begin + 1 :]])
    assert not [one for one in found if one.id >= 500]
    assert [one.id for one in found if not one.response and one.status == Status.OK] == [1, 2, 4, 5, 6]


@pytest.mark.parametrize("known", [False, True])
def test_values_of_several_frames_are_not_frames_behind_a_hole(known: bool) -> None:
    """Side by side they look like what a client sends at once, but are of several clients, or of other times."""
    for inner in (
        [metadata(8, "one"), metadata(9, "two")],
        [metadata(9, "test"), metadata(8, "test"), metadata(7, "test")],
        [metadata(9, "test"), metadata(10, "tests")],
    ):
        value = b"".join(map(sized, inner))
        connection = Connection(mss=100)
        if known:
            talk(3, connection=connection.open())
        before = len(connection.packets)
        connection.send(produce(11, 1, b"\xff" * 150 + value + b"\xff" * 50)).answer(produce_answer(11))
        for number in range(12, 15):
            connection.send(metadata(number)).answer(metadata_answer(number))
        found = brief(windows([*connection.packets[:before], *connection.packets[before + 1 :]]))
        told = several(1, 3) if known else []
        assert [one for one in found if one[2] == Status.OK] == [*told, *several(12, 14)], inner


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    ("inner", "behind"),
    [([4], 50), ([4, 5], 50), ([3], 50), ([1, 2], 50), ([4, 5, 6, 5], 0), ([4, 5, 6, 5], 50), ([9], 0)],
)
def test_values_that_look_like_what_was_lost_are_none(inner: list[int], behind: int, known: bool) -> None:
    """Of the same client, with the ids that would come next: but they lead to no segment that begins with a request.
    A message set ends with a value."""
    value = b"".join(sized(metadata(number)) for number in inner)
    connection = Connection(mss=100)
    if known:
        talk(3, connection=connection.open())
    before = len(connection.packets)
    connection.send(produce(4, 1, b"\xff" * 150 + value + b"\xff" * behind)).answer(produce_answer(4))
    for number in range(5, 8):
        connection.send(metadata(number)).answer(metadata_answer(number))
    found = brief(windows([*connection.packets[:before], *connection.packets[before + 1 :]]))
    told = several(1, 3) if known else []
    assert [one for one in found if one[2] == Status.OK] == [*told, *several(5, 7)]


def behind_a_loss(frame: bytes, cut: int, *, mss: int = 1460, more: int = 4) -> list[Packet]:
    """A talk of three requests, then a frame whose first ``cut`` bytes are not captured, and ``more`` requests."""
    connection = talk(3)
    begin = len(connection.packets)
    connection.mss = cut
    connection.send_raw(frame[:cut])
    connection.mss = mss
    connection.send_raw(frame[cut:])
    for number in range(5, 5 + more):
        connection.send(metadata(number)).answer(metadata_answer(number))
    return [*connection.packets[:begin], *connection.packets[begin + 1 :]]


CHAINED = {
    "heartbeat": lambda number: request(12, 0, number, b"\0\1g\0\0\0\1\0\1m"),
    "metadata": metadata,
    "acks=0": lambda number: produce(number, 0, b"\xff" * 9),
    "acks=1": lambda number: produce(number, 1, b"\xff" * 9),
}


def chained(kind: str, first: int, count: int, behind: bytes = b"") -> tuple[bytes, bytes]:
    """A Produce request whose value is a chain of requests, in front of ``behind``; and the chain with that."""
    rest = b"".join(sized(CHAINED[kind](number)) for number in range(first, first + count)) + behind
    return sized(produce(4, 1, rest)), rest


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("behind", [b"", b"\0", b"\xff" * 50])
@pytest.mark.parametrize(
    ("kind", "count"),
    [("heartbeat", MOST_FOLLOWED + 1), ("heartbeat", 300), ("metadata", 30), ("acks=0", 30), ("acks=1", 30)],
)
def test_a_value_that_is_a_chain_of_requests_of_the_same_client_has_none_behind_a_loss(
    kind: str, count: int, behind: bytes
) -> None:
    """The packet that begins the frame is missing, and the next one begins with a request of the chain. Its ids may be
    those that come next. What follows it says that the client did not send it: the rest of the frame, or what has an
    earlier id."""
    for first, lost in ((5, 0), (50, 10)):
        frame, rest = chained(kind, first, count + lost, behind)
        inner = (len(rest) - len(behind)) // (count + lost)
        mss = 7 * inner if lost else 1460
        packets = behind_a_loss(frame, len(frame) - len(rest) + lost * inner, mss=mss)
        told = [*several(1, 3), *several(5, 8)]
        assert [one for one in brief(windows(packets)) if one[2] == Status.OK] == told
        asked = [one for one in packets if one.dst[1] == 9092]
        alone = [(0, number, Status.OK if number < 4 else Status.UNCONFIRMED) for way, number, _ in told if way == 0]
        assert [one for one in brief(windows(asked)) if one[2] in FOUND] == alone


def test_nothing_is_read_behind_a_chain_with_which_a_capture_ends() -> None:
    frame, rest = chained("heartbeat", 50, 30, b"\xff" * 50)
    found = brief(windows(behind_a_loss(frame, len(frame) - len(rest), more=0)))
    assert found == [*several(1, 3), (0, ABSENT, Status.GAP)]


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("version", [0, 99])
def test_requests_that_do_not_wait_for_answers_are_found_behind_a_loss(
    version: int, together: bool, sides: int
) -> None:
    """Forty side by side, the last of which is of a version that is not known."""
    connection = talk(3)
    begin = len(connection.packets)
    connection.send(produce(4, 1, b"\xff" * 1700))
    many = [*map(metadata, range(5, 44)), request(3, version, 44, b"\0\0\0\0")]
    for frames in [many] if together else [[one] for one in many]:
        connection.send(*frames)
    connection.answer(produce_answer(4), *map(metadata_answer, range(5, 45)))
    packets = connection.send(metadata(45)).answer(metadata_answer(45)).packets
    kept = [one for k, one in enumerate(packets) if k != begin and (sides == 2 or one.dst[1] == 9092)]
    found = brief(windows(kept))
    good = [number for number in (1, 2, 3, *range(5, 46)) if number != 44 or version == 0]
    assert [one[1] for one in found if one[0] == 0 and one[2] in FOUND] == good
    assert [one[1] for one in found if one[0] == 1 and one[2] in FOUND] == (good if sides == 2 else [])
    assert (0, 44, Status.UNSUPPORTED) in found or version == 0


@pytest.mark.parametrize("sides", [1, 2])
def test_requests_that_do_not_wait_for_answers_may_have_the_largest_id_among_them(sides: int) -> None:
    """Behind it ids begin again: those go on."""
    ids = [(LARGEST_ID - 23 + k) & LARGEST_ID for k in range(44)]
    connection = Connection().open()
    for number in ids[:3]:
        connection.send(metadata(number)).answer(metadata_answer(number))
    begin = len(connection.packets)
    connection.send(produce(ids[3], 1, b"\xff" * 1700)).send(*map(metadata, ids[4:]))
    packets = connection.answer(produce_answer(ids[3]), *map(metadata_answer, ids[4:])).packets
    kept = [one for k, one in enumerate(packets) if k != begin and (sides == 2 or one.dst[1] == 9092)]
    found = brief(windows(kept))
    assert [one[1] for one in found if one[0] == 0 and one[2] in FOUND] == [*ids[:3], *ids[4:]]


@pytest.mark.parametrize("count", [MOST_FOLLOWED, MOST_FOLLOWED + 1])
def test_few_requests_are_believed_whatever_follows_them(count: int) -> None:
    """Bytes behind them may be damaged. A chain has more."""
    connection = talk(3)
    begin = len(connection.packets)
    connection.send(produce(4, 0, b"\xff" * 9))
    for number in range(5, 5 + count):
        connection.send(metadata(number))
    connection.send_raw(b"\xff" * 50)
    packets = connection.send(metadata(50)).answer(metadata_answer(50)).packets
    found = brief(windows([*packets[:begin], *packets[begin + 1 :]]))
    told = range(5, 5 + count) if count == MOST_FOLLOWED else ()
    assert [one[1] for one in found if one[0] == 0 and one[2] == Status.OK] == [1, 2, 3, *told, 50]


def test_requests_of_one_segment_are_found_where_they_lead_to_the_next() -> None:
    connection = talk(3)
    before = len(connection.packets)
    connection.send(produce(4, 0, b"\xff" * 2000), metadata(5), metadata(6))
    for number in (5, 6):
        connection.answer(metadata_answer(number))
    talked = connection.send(metadata(7)).answer(metadata_answer(7)).packets
    found = brief(windows([*talked[:before], *talked[before + 1 :]]))
    assert [one for one in found if one[0] == 0 and one[2] == Status.OK and one[1] > 3] == [
        (0, number, Status.OK) for number in (5, 6, 7)
    ]


def test_nothing_far_away_is_waited_for_and_no_segment_behind_many_requests() -> None:
    """What a client has in its buffer goes out in large segments, which begin anywhere."""
    many = [metadata(number) for number in range(5, 5 + 2 * MOST_FOLLOWED + 2, 2)]
    for frames in ([produce(5, 1, b"\xff" * MOST_AWAITED)], many, many[:-1]):
        connection = talk(3, connection=Connection(mss=3000).open())
        before = len(connection.packets)
        packets = connection.send(produce(4, 0, b"\xff" * 5000), *frames).packets
        found = brief(windows([*packets[:before], *packets[before + 1 :]]))
        told = [one[1] for one in found if one[0] == 0 and one[2] == Status.UNCONFIRMED]
        assert told == ([] if frames == many[:-1] else [int.from_bytes(one[4:8]) for one in frames])


def test_ids_that_begin_anew_behind_a_hole_count_where_two_segments_begin_with_them() -> None:
    connection = Connection().open()
    for number in (5000, 5001, 5002, 10, 11, 12):
        connection.send(metadata(number)).answer(metadata_answer(number))
    lost = [k for k, one in enumerate(connection.packets) if one.payload and one.src[1] != 9092][2]
    found = brief(windows([*connection.packets[:lost], *connection.packets[lost + 1 :]]))
    assert [one[1] for one in found if one[0] == 0 and one[2] == Status.OK] == [5000, 5001, 10, 11, 12]


@pytest.mark.parametrize("further", [5, 1001, 3000])
def test_as_many_ids_may_be_missing_as_the_hole_has_requests(further: int) -> None:
    connection = talk(3)
    before = len(connection.packets)
    connection.send_raw(sized(metadata(4)) * further)
    lost = len(connection.packets)
    number = 3 + further
    connection.send(metadata(number)).answer(metadata_answer(number))
    found = brief(windows([*connection.packets[:before], *connection.packets[lost:]]))
    assert [one for one in found if one[2] == Status.OK] == [*several(1, 3), *several(number, number)]


@pytest.mark.parametrize("behind", [b"\xff" * 50, sized(metadata_answer(9)), sized(metadata_answer(4)) + b"\xff"])
def test_values_that_look_like_the_answer_that_was_lost_are_none(behind: bytes) -> None:
    connection = talk(3, connection=Connection(mss=100).open())
    connection.send(metadata(4))
    before = len(connection.packets)
    connection.answer(response(4, b"\xff" * 150 + sized(metadata_answer(4)) + behind))
    for number in range(5, 8):
        connection.send(metadata(number)).answer(metadata_answer(number))
    found = brief(windows([*connection.packets[:before], *connection.packets[before + 1 :]]))
    assert (1, 4, Status.OK) not in found
    assert [one for one in found if one[2] == Status.OK] == [*several(1, 3), (0, 4, Status.OK), *several(5, 7)]


def test_a_false_size_costs_what_is_behind_it_and_nothing_is_lost_unseen() -> None:
    connection = talk(2)
    connection.send_raw(struct.pack(">i", -5) + b"\xff" * 20)
    for number in range(3, 6):
        connection.send(metadata(number)).answer(metadata_answer(number))
    found = brief(windows(connection.packets))
    assert [one for one in found if one[2] == Status.OK] == [*several(1, 2), *several(3, 5)]
    assert [one[2] for one in found if one[2] != Status.OK] == [Status.MALFORMED, Status.GAP]


@pytest.mark.parametrize("by", [-3, 1, 3])
def test_a_handshake_before_tokens_is_no_frame_where_its_size_is_false(by: int) -> None:
    """What follows it looks like nothing: so it has to be what its layout says."""
    handshake = request(17, 0, 1, b"\0\5PLAIN")
    connection = Connection().open().send_raw(struct.pack(">i", len(handshake) + by) + handshake)
    connection.answer(response(1, b"\0\0" + bytes(4))).send(b"\0user\0secret").answer(b"")
    for number in (2, 3):
        connection.send(metadata(number)).answer(metadata_answer(number))
    found = brief(windows(connection.packets))
    assert [one[:2] for one in found if one[2] in (*FOUND, Status.TRAILING)] == [one[:2] for one in several(2, 3)]


@pytest.mark.parametrize("step", [3_000_000, 60_000_000])
def test_responses_behind_a_hole_are_looked_for_when_the_requests_are_there(step: int) -> None:
    """Of both directions the same is missing, and of requests it is given up later."""
    packets = talk(12, connection=Connection(step=step).open()).packets
    lost = [k for k, one in enumerate(packets) if one.payload][2:5]
    left = [one for k, one in enumerate(packets) if k not in lost]
    # A client acknowledges nothing by itself before it asks again; the broker acknowledges requests late.
    acked = [replace(one, ack=min(one.ack, packets[lost[0]].seq)) if one.src[1] == 9092 else one for one in left]
    for packets in (left, acked):
        found = brief(windows(packets))
        gaps = [one for one in found if one[2] != Status.OK]
        assert [one[2] for one in gaps if one[0] == 0] == [Status.GAP]
        assert [one for one in found if one[2] == Status.OK] == [*several(1, 1), *several(4, 12)]


WRITE_TXN_MARKERS = request(27, 1, 5, b"\0\1\0")
"""Version 1: no markers."""


def tagged(data: bytes) -> bytes:
    """The response: no markers, and one tagged field with ``data``, which has more than 127 bytes."""
    return response(5, b"\0\1\1\5" + bytes([len(data) & 0x7F | 0x80, len(data) >> 7]) + data)


def test_a_response_in_which_others_begin_has_a_false_size() -> None:
    for count in range(1, 8):
        connection = Connection(step=1_000_000).open().send(WRITE_TXN_MARKERS)
        connection.answer_raw(struct.pack(">i", 40_000) + tagged(bytes(10_000))[:10])
        for number in range(6, 6 + count):
            connection.send(metadata(number)).answer(metadata_answer(number))
        found = brief(windows(connection.packets))
        assert [one for one in found if one[0] == 0] == [(0, number, Status.OK) for number in range(5, 6 + count)]
        answers = [one[1:] for one in found if one[0] == 1]
        if count < 3:
            assert answers == [(5, Status.CUT_OFF)]
        else:
            assert [number for number, status in answers if status in FOUND] == list(range(6, 6 + count))
            assert [status for _, status in answers if status not in FOUND] == [Status.MALFORMED, Status.GAP]


def test_responses_to_what_was_sent_before_are_no_sign_of_a_false_size() -> None:
    """What a body holds may look like responses, and clients do not wait for one before they send the next request."""
    answers = [metadata_answer(number) for number in range(6, 16)]
    whole = sized(tagged(b"??" + b"".join(map(sized, answers))))
    assert whole.index(sized(answers[0])) == len(sized(answers[0]))
    connection = Connection(step=1_000_000, mss=len(sized(answers[0]))).open().send(WRITE_TXN_MARKERS)
    connection.send(*(metadata(number) for number in range(6, 16))).answer_raw(whole).answer(*answers)
    found = brief(windows(connection.packets))
    assert sorted(found) == [(way, number, Status.OK) for way in (0, 1) for number in range(5, 16)]


def test_a_connection_to_a_known_broker_is_one_whatever_was_captured_of_it() -> None:
    known = talk(2)
    lonely = Connection(client=("10.0.0.1", 40001), time=known.time).answer(metadata_answer(9))
    elsewhere = Connection(client=("10.0.0.1", 40002), broker=("10.0.0.2", 2181), time=lonely.time)
    elsewhere.answer(metadata_answer(9))
    assert windows(lonely.packets) == []
    found = windows([*known.packets, *lonely.packets, *elsewhere.packets])
    assert [(one.client[1], one.id) for one in found if one.client[1] != 40000] == [(40001, 9)]


def test_a_broker_is_known_to_the_connections_of_its_own_window_in_the_order_of_time() -> None:
    """Two connections on the same ports, of which the broker's side looks like requests. The first must not make a
    broker of their client for the second, where the true broker was known before."""
    streams = Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-java" / "streams.pcap"
    values = impair(streams.read_bytes(), "values-acknowledged", seed=9620).data
    data = impair(values, "lost-stretches", seed=9624).data
    places = []
    for window in (None, 1000):
        found = pa.Table.from_batches(list(capture.read(io.BytesIO(data), "frames", window=window)))
        places.append(found.select(["client_port", "broker_port", "direction", "correlation_id", "status"]).to_pylist())
        assert {row["direction"] for row in places[-1] if row["client_port"] == 9092} == set()
    key = operator.itemgetter("client_port", "direction")
    assert sorted(places[0], key=key) == sorted(places[1], key=key)


def at_a_known_broker(connection: Connection, packets: Sequence[Packet], step: int = 1_000_000) -> list[Seen]:
    """The frames of ``packets``, of this connection, to the address of a broker that another has shown."""
    known = talk(2, connection=Connection(client=("10.0.0.9", 41_000), time=connection.time - 3600 * 10**9).open())
    return [one for one in windows([*known.packets, *packets]) if one.client == connection.client]


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("client", [None, ""])
@pytest.mark.parametrize("mss", [1460, 40, 5])
@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("at_once", [1, 3])
def test_a_client_without_a_name_at_the_address_of_a_broker(
    client: str | None, mss: int, opened: bool, at_once: int
) -> None:
    connection = Connection(mss=mss)
    if opened:
        connection.open()
    for first in range(1, 13, at_once):
        numbers = range(first, first + at_once)
        for number in numbers:
            connection.send(metadata(number, client))
        connection.answer(*map(metadata_answer, numbers))
    found = at_a_known_broker(connection, connection.packets)
    assert sorted(brief(found)) == sorted(several(1, 12))
    # Requests alone, and answers alone.
    for way in (0, 1):
        alone = [one for one in connection.packets if (one.src[1] == 9092) == way]
        for few in (alone, alone[: len(alone) // 2]):
            found = at_a_known_broker(connection, few)
            assert {one.response for one in found} == {way}
            good = [one for one in found if one.status == Status.UNPAIRED or (way == 0 and one.status in FOUND)]
            assert opened or way or {one.status for one in good} == {Status.UNCONFIRMED}
            assert [one.id for one in good] == list(range(1, len(good) + 1))
            assert len(good) == 12 or few is not alone


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("lost", [1, 2])
def test_a_client_without_a_name_whose_first_response_lost_its_first_packets(opened: bool, lost: int) -> None:
    """What is left of it says nothing: the next answer does, or the hole."""
    connection = Connection(mss=6)
    if opened:
        connection.open()
    talk(4, None, connection)
    answers = [one for one in connection.packets if one.payload and one.src[1] == 9092]
    assert lost < len(answers) // 4
    found = at_a_known_broker(connection, [one for one in connection.packets if one not in answers[:lost]])
    # Nothing is left that could answer the first request.
    first = Status.OK if opened else Status.UNCONFIRMED
    assert [one for one in brief(found) if one[2] in FOUND and one[0] == 0] == [(0, 1, first), *several(2, 4)[::2]]
    assert [one[1] for one in brief(found) if one[2] == Status.OK and one[0] == 1] == [2, 3, 4]


def test_an_answer_is_not_passed_over_while_its_request_is_unsure() -> None:
    """It begins in the middle of a segment, behind what is left of another: only its request tells where."""
    connection = Connection().send(metadata(7, None))
    answer = sized(metadata_answer(7))
    connection.answer_raw(b"\xff" * 30 + answer[:10]).answer_raw(answer[10:])
    for number in (8, 9):
        connection.send(metadata(number, None)).answer(metadata_answer(number))
    found = brief(at_a_known_broker(connection, connection.packets))
    doubted = [(way, 7, Status.UNCONFIRMED) for way in (0, 1)]
    assert [one for one in found if one[2] in FOUND] == [*doubted, *several(8, 9)]


def test_a_request_without_a_name_is_shown_with_its_answer_or_when_none_has_come_for_a_while() -> None:
    tracker = Tracker()
    connection = Connection().open().send(metadata(1, None))
    known = talk(2, connection=Connection(client=("10.0.0.9", 41_000), time=connection.time - 10**10).open())
    tracker.feed(pcap([*known.packets, *connection.packets]))
    answer = connection.answer(metadata_answer(1)).packets[-1:]
    assert len(tracker.feed(pcap(answer)[24:])) == 2
    for wait, shown in ((100_000_000, 0), (199_000_000, 0), (201_000_000, 1)):
        tracker = Tracker()
        asked = Connection().open().send(metadata(1, None)).packets
        tracker.feed(pcap([*known.packets, *asked]))
        # Of another connection.
        later = replace(known.packets[0], src=("10.0.0.8", 4), time=asked[-1].time + wait)
        assert len(tracker.feed(pcap([later])[24:])) == shown


def test_what_was_produced_without_a_name_and_an_answer() -> None:
    connection = Connection().open()
    for number in range(1, 4):
        connection.send(request(0, 2, number, produce(number, 0, b"records")[14:], None))
    connection.send(metadata(4, None)).answer(metadata_answer(4))
    found = brief(at_a_known_broker(connection, connection.packets))
    assert found == [(0, 1, Status.OK), (0, 2, Status.OK), (0, 3, Status.OK), *several(4, 4)]


@pytest.mark.parametrize("others", [10, 4000, 5000])
def test_a_connection_that_is_over_may_be_told_by_a_later_one(others: int) -> None:
    one = Connection(client=("10.0.0.7", 41_000), step=1_000_000)
    # One short answer: alone it may be anything.
    one.answer(metadata_answer(9)).reset()
    foreign = Connection(
        client=("10.0.0.6", 42_000), broker=("10.0.0.5", 80), time=one.time + 20_000_000_000, step=1000
    )
    foreign.open()
    for _ in range(others):
        foreign.send_raw(b"GET / HTTP/1.1\r\n")
    told = talk(2, connection=Connection(time=foreign.time + 1000).open())
    packets = [*one.packets, *foreign.packets, *told.packets]
    data = pcap(packets)
    whole = fed(data)
    for cut in (700, 40_000):
        assert fed(data, range(cut, len(data), cut)) == whole
    found = brief(whole)
    assert found[-4:] == several(1, 2)
    assert found[:-4] == ([(1, 9, Status.UNPAIRED)] if others < LINGERS else [])


def test_what_differs_in_overlaps_is_what_was_captured_first() -> None:
    connection = talk(1).send(metadata(2, "first"))
    last = connection.packets[-1]
    other = replace(last, payload=last.payload.replace(b"first", b"other"))
    connection.answer(metadata_answer(2))
    for packets in ([*connection.packets[:-1], other, connection.packets[-1]],):
        assert [one.client_id for one in windows(packets) if one.id == 2] == ["first", "first"]


# Work


def fed_lines(data: bytes, cut: int | None = None) -> int:
    def run() -> None:
        with using(PYTHON):
            tracker = Tracker()
            if cut is not None:
                tracker.feed(data[:cut])
                data_left = data[cut:]
            else:
                data_left = data
            tracker.feed(data_left, final=True)

    return lines(run, 60_000_000)


def almost(count: int) -> bytes:
    """Plausible headers of requests, one in the other, whose bodies fit but for their end."""
    body = struct.pack(">i", 60) + b"\0\x0e" + bytes(12)
    return (struct.pack(">ihhih", 400, 3, 0, 7, -1) + body) * count


@pytest.mark.wide
def test_the_work_on_what_almost_fits_grows_with_the_input() -> None:
    def spent(count: int, opened: bool) -> int:
        connection = Connection(mss=64)
        if opened:
            talk(1, connection=connection.open())
            connection.send_raw(struct.pack(">i", -5))
        return fed_lines(pcap(connection.send_raw(almost(count)).packets))

    for opened in (True, False):
        few, many = spent(40, opened), spent(160, opened)
        assert many < 6 * few


@pytest.mark.wide
@pytest.mark.parametrize("count", [MOST_FOLLOWED + 1, 60])
def test_the_work_on_chains_of_requests_that_are_none_grows_with_the_input(count: int) -> None:
    chain = b"".join(sized(metadata(number)) for number in range(5, 5 + count)) + b"\xff" * 8

    def spent(chains: int) -> int:
        connection = talk(1, connection=Connection(mss=1000).open()).send_raw(struct.pack(">i", -5))
        return fed_lines(pcap(connection.send_raw(chain * chains).packets))

    few, many = spent(600 // count), spent(2400 // count)
    assert many < 6 * few


@pytest.mark.wide
def test_connections_of_unknown_kind_cost_what_they_bring() -> None:
    """What is held of them is not judged again for every window of others."""
    held = [
        one
        for port in range(40000, 40040)
        for one in Connection(client=("10.0.0.1", port)).send_raw(sized(metadata(7, None)) * 1 + almost(20)).packets
    ]
    other = Connection(broker=("10.0.0.9", 2181), mss=8)
    rest = other.send_raw(b"\xff" * 320).packets
    data = pcap([*held, *rest])
    ends = packet_ends(data)[len(held) - 1 :]

    def run(cuts: list[int]) -> int:
        def feed() -> None:
            with using(PYTHON):
                tracker = Tracker()
                for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
                    tracker.feed(data[begin:end], final=end == len(data))

        return lines(feed, 60_000_000)

    once, often = run(ends[:1]), run(ends)
    assert len(ends) > 30
    assert often < 10 * once


def test_a_known_broker_has_any_number_of_connections() -> None:
    def spent(count: int) -> int:
        packets = talk(1).packets
        for port in range(count):
            packets += Connection(client=("10.0.1.1", 1000 + port)).answer(metadata_answer(9)).packets
        return fed_lines(pcap(packets))

    few, many = spent(50), spent(200)
    assert many < 6 * few


@pytest.mark.wide
def test_pieces_that_may_be_responses_are_looked_at_a_few_times_only() -> None:
    def spent(count: int) -> int:
        connection = Connection(mss=64)
        for number in range(count):
            connection.answer_raw(sized(response(number, b"\0" * 56)))
        return fed_lines(pcap(connection.packets))

    few, many = spent(20), spent(80)
    assert many < 6 * few
    assert UNDECIDED > 80 * 64


@pytest.mark.parametrize("damage", [bytes(1460), b"\xff\xff\xff\xff"])
def test_a_large_first_request_that_is_damaged_costs_no_other(damage: bytes) -> None:
    """Its first bytes are zeros, or its size is false. It is larger than all that is looked at of one that is none."""
    connection = Connection(mss=1460).open().send(produce(1, 1, bytes(3 * MOST_JUDGED))).answer(produce_answer(1))
    first = connection.packets[3]
    connection.packets[3] = replace(first, payload=damage + first.payload[len(damage) :])
    packets = talk(4, connection=connection).packets
    found = brief(windows(packets))
    assert [one for one in found if one[2] == Status.OK][-4:] == several(3, 4)
