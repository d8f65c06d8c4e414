"""What is found behind a loss says ``unconfirmed`` until the connection shows that it was sent."""

from __future__ import annotations

import struct
from dataclasses import replace

import pyarrow as pa
import pytest
from fed_in_parts import fed, packet_ends
from made_captures import brief, by_time, exchange, read
from packets import Connection, metadata, metadata_answer, pcap, request, sized
from packets import produce as produce_v2

import kwire
from kwire import messages, records
from kwire.capture.tracker import Tracker
from kwire.kernels.doubting import ENOUGH_ANSWERS, LARGEST_BATCH
from kwire.kernels.engine import MACHINE, PYTHON, Engine, using
from kwire.report.tallies import rows_of

engines = pytest.mark.parametrize("engine", [PYTHON, MACHINE])
LARGE = "t" * 200
"""A client_id: a request with it has more bytes than stand in front of a value."""


def produce(number: int, value: bytes) -> bytes:
    """A Produce request v3 with acks=1 and one record."""
    batch = records.encode([records.Record(None, value)])
    head = b"\xff\xff\0\1" + struct.pack(">ii", 1000, 1) + b"\0\1t" + struct.pack(">iii", 1, 0, len(batch))
    return request(0, 3, number, head + batch, LARGE)


def produce_answer(number: int) -> bytes:
    return struct.pack(">ii3siihqqi", number, 1, b"\0\1t", 1, 0, 0, 0, -1, 0)


def statuses(data: bytes) -> list[tuple[str, str | None, int | None, str]]:
    return brief(by_time(read(data)))


def without(talk: Connection, *which: int) -> bytes:
    """The capture of a connection without some of its packets, by index."""
    gone = {index % len(talk.packets) for index in which}
    return pcap([packet for index, packet in enumerate(talk.packets) if index not in gone])


def in_turn(count: int) -> Connection:
    """Exchanges of requests with more bytes than stand in front of a value, each acknowledged by the next one."""
    talk = Connection().open()
    for number in range(1, count + 1):
        talk.send(metadata(number, LARGE)).answer(metadata_answer(number))
    return talk


@engines
def test_an_exchange_confirms_a_request_and_its_answer(engine: Engine) -> None:
    talk = in_turn(5)
    with using(engine):
        # The third request is missing: its answer has none, all others are certain.
        found = statuses(without(talk, 7))
    assert [row for row in found if row[3] == "ok"] == [
        (way, "Metadata", number, "ok") for number in (1, 2, 4, 5) for way in ("request", "response")
    ]
    assert "unconfirmed" not in {row[3] for row in found}


@engines
def test_a_request_behind_a_loss_without_an_answer_is_unconfirmed(engine: Engine) -> None:
    talk = in_turn(4)
    with using(engine):
        found = read(without(talk, 7, 10))
    of = {(row["direction"], row["correlation_id"]): row for row in found}
    assert of["request", 2]["status"] == "ok"
    (alone,) = (row for row in found if row["status"] == "unconfirmed")
    assert (alone["direction"], alone["api_name"], alone["correlation_id"]) == ("request", "Metadata", 4)
    assert "packets before it are missing" in alone["error"]


@engines
def test_a_chain_in_a_value_is_never_ok(engine: Engine) -> None:
    """Requests of the same client whose ids go on stand in a value, in segments that begin with them; the one that
    begins the frame around them is missing."""
    for cut in (0, 3, 5):
        chain = [sized(metadata(number, LARGE)) for number in range(5, 13)]
        talk = in_turn(3)
        frame = sized(produce(4, b"".join(chain)))
        at = frame.index(chain[0])
        begin = len(talk.packets)
        talk.send_raw(frame[:at])
        for one in chain:
            talk.send_raw(one)
        talk.send_raw(frame[at + sum(map(len, chain)) :])
        talk.answer(produce_answer(4))
        for number in range(5, 9):
            talk.send(metadata(number, LARGE)).answer(metadata_answer(number))
        gone = [begin, *range(begin + 1 + 8 - cut, begin + 10)]
        with using(engine):
            found = statuses(without(talk, *gone))
        sent = [row for row in found if row[0] == "request" and row[3] == "ok"]
        assert len(sent) == len(set(sent)) <= 3 + 4, cut
        # Those behind the chain are certain again.
        assert ("request", "Metadata", 8, "ok") in found
        assert ("response", "Metadata", 8, "ok") in found


@engines
@pytest.mark.parametrize("magic", [0, 1])
def test_a_chain_with_which_a_request_and_what_was_captured_end_is_never_ok(engine: Engine, magic: int) -> None:
    """A message set ends with a value. The segment that begins the frame is missing, the next one begins the chain."""
    chain = b"".join(sized(request(12, 0, 50 + k, b"\0\1g\0\0\0\1\0\1m")) for k in range(300))
    talk = exchange(count=3)
    frame = sized(produce_v2(4, 1, records.encode([records.Record(None, chain)], magic=magic)))
    assert frame.endswith(chain)
    begin = len(talk.packets)
    talk.send_raw(frame[: -len(chain)]).send_raw(chain)
    with using(engine):
        found = statuses(without(talk, begin))
    assert {row[3] for row in found if row[1] == "Heartbeat"} <= {"unconfirmed"}
    assert [row[2] for row in found if row[3] == "ok"] == [1, 1, 2, 2, 3, 3]


def fetch(number: int) -> bytes:
    """A Fetch request v4 of one partition."""
    body = struct.pack(">iiiibi", -1, 500, 1, 1 << 20, 0, 1) + b"\0\1t" + struct.pack(">iiqi", 1, 0, 0, 1 << 20)
    return request(1, 4, number, body, LARGE)


def fetch_answer(number: int, value: bytes) -> bytes:
    batch = records.encode([records.Record(None, value)])
    return struct.pack(">iii3siihqqii", number, 0, 1, b"\0\1t", 1, 0, 0, 1, 1, -1, len(batch)) + batch


def torn(frame: bytes, chain: list[bytes], k: int) -> tuple[bytes, bytes, int]:
    """The bytes of a frame before and behind a jump of its numbers; and how far these jump, so that by its size frame
    ``k`` of the chain in its value begins where it ends."""
    at = frame.index(chain[0])
    return frame[:at], frame[at:], len(frame) - at - sum(map(len, chain[:k]))


@engines
@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("goes_on", [True, False])
def test_numbers_that_jump_within_a_request_make_no_frame_of_its_value(engine: Engine, k: int, goes_on: bool) -> None:
    chain = [sized(metadata(number, LARGE)) for number in range(3, 11)]
    before, behind, jump = torn(sized(produce(3, b"".join(chain))), chain, k)
    talk = in_turn(2).send_raw(before)
    talk._next[0] += jump
    talk.send_raw(behind).answer(produce_answer(3))
    for number in range(40, 44) if goes_on else ():
        talk.send(metadata(number, LARGE)).answer(metadata_answer(number))
    data = pcap(talk.packets)
    with using(engine):
        found = read(data)
        assert read(data, window=300) == found
    asked = [(row["correlation_id"], row["status"]) for row in found if row["direction"] == "request"]
    assert (3, "gap") in asked
    certain = {number for number, status in asked if status == "ok"}
    # The size of the frame around may be read where the chain ends: that may cost the request behind it.
    assert {1, 2, *(range(41, 44) if goes_on else ())} <= certain <= {1, 2, *range(40, 44)}


@engines
def test_numbers_that_jump_within_a_response_make_no_frame_of_its_value(engine: Engine) -> None:
    chain = [sized(fetch_answer(number, bytes(100))) for number in range(3, 11)]
    before, behind, jump = torn(sized(fetch_answer(3, b"".join(chain))), chain, 5)
    talk = in_turn(2).send(fetch(3)).answer_raw(before)
    talk._next[1] += jump
    talk.send(fetch(8)).answer_raw(behind)
    talk.answer(fetch_answer(8, b"v"))
    talk.step = 300_000_000  # by then the hole is given up: exchanges behind it confirm again
    for number in range(40, 44):
        talk.send(metadata(number, LARGE)).answer(metadata_answer(number))
    with using(engine):
        found = statuses(pcap(talk.packets))
    answers = [(row[2], row[3]) for row in found if row[0] == "response"]
    certain = {number for number, status in answers if status == "ok"}
    assert {1, 2, *range(41, 44)} <= certain <= {1, 2, *range(40, 44)}


@engines
@pytest.mark.parametrize("known", [False, True])
def test_what_was_captured_before_a_request_is_no_answer_to_it(engine: Engine, known: bool) -> None:
    """A Fetch response, the beginning of which is missing, has copies of the answers that come later as its value."""
    chain = [sized(metadata_answer(number)) for number in range(4, 8)]
    frame = sized(fetch_answer(3, b"".join(chain)))
    at = frame.index(chain[0])
    talk = in_turn(2)
    begin = len(talk.packets)
    talk.send(fetch(3)).answer_raw(frame[:at])
    for one in chain:
        talk.answer_raw(one)
    talk.answer_raw(frame[at + sum(map(len, chain)) :])
    for number in range(4, 8):
        talk.send(metadata(number, LARGE)).answer(metadata_answer(number))
    with using(engine):
        found = read(without(talk, *((begin + 1,) if known else (begin, begin + 1))))
    certain = [row for row in found if row["status"] == "ok" and row["api_name"] == "Metadata"]
    sent = {row["correlation_id"]: row["timestamp"] for row in certain if row["direction"] == "request"}
    answers = [row for row in certain if row["direction"] == "response"]
    assert len({row["correlation_id"] for row in answers}) == len(answers)
    assert all(row["timestamp"] > sent[row["correlation_id"]] for row in answers)


@engines
def test_a_request_whose_api_is_not_known_may_have_asked_for_records(engine: Engine) -> None:
    """Bytes of the request are wrong, and those of the size of its response: the value is no response."""
    chain = [sized(metadata_answer(number)) for number in (4, 5)]
    frame = sized(fetch_answer(3, b"".join(chain)))
    at = frame.index(chain[0])
    talk = in_turn(2)
    asked = fetch(3)
    talk.send(b"\0\x43" + asked[2:]).send(metadata(4, LARGE)).send(metadata(5, LARGE))
    talk.answer_raw(b"\0\0\0\0" + frame[4:at])
    for one in chain:
        talk.answer_raw(one)
    talk.answer_raw(frame[at + sum(map(len, chain)) :])
    talk.answer(metadata_answer(4)).answer(metadata_answer(5))
    with using(engine):
        found = read(pcap(talk.packets))
    made_up = [row for row in found if row["direction"] == "response" and row["correlation_id"] in (4, 5)]
    assert "ok" not in {row["status"] for row in made_up[:2]}


def before_its_time(talk: Connection, first: int, count: int, asked: int = 2) -> None:
    """A Fetch response that the client does not wait for. Its values are copies of the answers to the next requests,
    each in a segment that is sent just behind its request, of which there are ``asked``. Then the true answers, and
    exchanges."""
    chain = [sized(metadata_answer(number)) for number in range(first + 1, first + 1 + count)]
    frame = sized(fetch_answer(first, b"".join(chain)))
    at = frame.index(chain[0])
    talk.send(fetch(first)).answer_raw(frame[:at])
    for number, one in enumerate(chain[:asked], first + 1):
        talk.send(metadata(number, LARGE)).answer_raw(one)
    for one in chain[asked:]:
        talk.answer_raw(one)
    talk.answer_raw(frame[at + sum(map(len, chain)) :])
    for number in range(first + 1, first + 1 + asked):
        talk.answer(metadata_answer(number))
    for number in range(first + 1 + asked, first + 7):
        talk.send(metadata(number, LARGE)).answer(metadata_answer(number))


def certain_answers_are_true(talk: Connection, data: bytes) -> None:
    """Whether each row of an answer that says ``ok`` is of one that was sent as one, by when that was."""
    ends = {}
    for number in range(1, 9):
        answer = sized(metadata_answer(number))
        ends[number] = max((one.time for one in talk.packets if one.payload == answer), default=0)
    found = read(data)
    answers = [row for row in found if row["direction"] == "response" and row["status"] == "ok"]
    for row in answers:
        assert round(row["timestamp"].timestamp() * 1000) == ends[row["correlation_id"]] // 1_000_000
    assert {6, 7} <= {row["correlation_id"] for row in answers}


@engines
def test_an_exchange_is_none_where_an_answer_follows_that_nobody_asked_for(engine: Engine) -> None:
    """The beginning of the Fetch response is missing, and its request with it."""
    talk = Connection()
    before_its_time(talk, 1, 3)
    with using(engine):
        certain_answers_are_true(talk, pcap(talk.packets[2:]))


@engines
def test_such_an_answer_is_found_behind_a_hole_too(engine: Engine) -> None:
    """The first answer that nobody asked for is missing, the second is there."""
    talk = Connection()
    before_its_time(talk, 1, 4)
    with using(engine):
        certain_answers_are_true(talk, pcap(talk.packets[2:6] + talk.packets[7:]))


@engines
def test_a_request_that_is_missing_has_not_asked_for_several_answers(engine: Engine) -> None:
    talk = Connection()
    before_its_time(talk, 1, 4, asked=3)
    with using(engine):
        certain_answers_are_true(talk, pcap(talk.packets[2:6] + talk.packets[7:]))


@engines
def test_a_response_under_way_speaks_against_an_exchange_if_its_request_is_missing_too(engine: Engine) -> None:
    talk = Connection()
    before_its_time(talk, 1, 2)
    with using(engine):
        certain_answers_are_true(talk, pcap(talk.packets[1:]))


@engines
def test_the_answer_behind_a_hole_in_the_answers_acknowledges_its_request(engine: Engine) -> None:
    talk = in_turn(1).send(metadata(2, LARGE)).answer(metadata_answer(2)).send(metadata(3, LARGE))
    talk.send(metadata(4, LARGE)).answer(metadata_answer(3)).answer(metadata_answer(4))
    with using(engine):
        found = statuses(without(talk, 6, 7))
    assert ("request", "Metadata", 4, "ok") in found


@engines
@pytest.mark.parametrize(
    ("ends", "old", "heard", "certain"),
    [
        (True, False, False, True),
        (True, False, True, False),
        (False, False, False, False),
        (True, True, False, False),
    ],
)
def test_requests_up_to_the_end_of_the_stream_are_certain(
    engine: Engine, ends: bool, old: bool, heard: bool, certain: bool
) -> None:
    """Not where a value may be the last of a frame: in message sets, and where the last byte is a zero, with which a
    frame around may end. Then there is no answer up to the FIN of the broker."""
    talk = Connection().open().send(produce(1, b"v")).answer(produce_answer(1))
    if old:
        batch = records.encode([records.Record(None, bytes(200))], magic=1)
        talk.send(request(0, 2, 2, produce_v2(2, 1, batch)[14:], LARGE)).answer(
            struct.pack(">ii3siihqqi", 2, 1, b"\0\1t", 1, 0, 0, 0, -1, 0)
        )
    gone = len(talk.packets)
    for number in range(3, 7):
        talk.send(metadata(number, LARGE))
    talk = talk.close() if ends else talk
    with using(engine):
        found = statuses(without(talk, gone, *((len(talk.packets) - 1,) if ends and not heard else ())))
    assert [row[3] for row in found if row[2] in (4, 5, 6)] == ["ok" if certain else "unconfirmed"] * 3


@engines
@pytest.mark.parametrize(("version", "certain"), [(12, True), (11, False)])
def test_answers_up_to_a_certain_one_are_certain(engine: Engine, version: int, certain: bool) -> None:
    """Where records are not the last field of a Fetch response. Of two exchanges one is missing, and a request."""
    answer = messages.FetchResponse(responses=[messages.FetchResponse.FetchableTopicResponse(topic="t" * 100)])
    talk = in_turn(2)
    for number in (3, 4):
        asked = messages.FetchRequest(max_wait_ms=500)
        talk.send(kwire.encode_request(asked, api_version=version, correlation_id=number, client_id=LARGE))
        talk.answer(kwire.encode_response(answer, api_version=version, correlation_id=number))
    gone = len(talk.packets)
    for number in range(5, 11):
        talk.send(metadata(number, LARGE)).answer(metadata_answer(number))
    with using(engine):
        found = statuses(without(talk, gone - 2, gone - 1, gone + 2))
    answers = {row[2]: row[3] for row in found if row[0] == "response"}
    assert answers[5] == ("ok" if certain else "unconfirmed")
    assert {answers[number] for number in (7, 8, 9, 10)} == {"ok"}


def old_fetch(number: int) -> bytes:
    """A Fetch request v3 of one partition."""
    head = struct.pack(">iiiii", -1, 500, 1, 1 << 20, 1)
    return request(1, 3, number, head + b"\0\1t" + struct.pack(">iiqi", 1, 0, 0, 1 << 20), LARGE)


def old_fetch_answer(number: int, value: bytes) -> bytes:
    """Its response, which ends with the value."""
    batch = records.encode([records.Record(None, value)], magic=1)
    return struct.pack(">iii3siihqi", number, 0, 1, b"\0\1t", 1, 0, 0, 1, len(batch)) + batch


@engines
def test_a_response_of_an_old_version_is_certain_where_the_client_had_received_all_before_it(engine: Engine) -> None:
    talk = Connection().send(old_fetch(7)).answer(old_fetch_answer(7, bytes(100))).close()
    with using(engine):
        assert statuses(pcap(talk.packets)) == [("request", "Fetch", 7, "ok"), ("response", "Fetch", 7, "ok")]
    # The value with which a response ends is one with its id, and what is before that is missing.
    inner = sized(old_fetch_answer(7, bytes(100)))
    frame = sized(old_fetch_answer(7, inner))
    assert frame.endswith(inner)
    talk = Connection().send(old_fetch(7)).answer_raw(frame[: -len(inner)]).answer_raw(inner).close()
    with using(engine):
        found = statuses(without(talk, 1))
    assert {row[3] for row in found if row[0] == "response"} == {"unconfirmed"}


WRAPPED = bytes.fromhex("050401ff000c0000") + bytes(24)
"""What a broker offers without proving itself first."""


@engines
@pytest.mark.parametrize("wraps", [True, False])
@pytest.mark.parametrize("heard", [True, False])
def test_a_connection_begins_with_a_token_of_kerberos_and_its_answer(engine: Engine, heard: bool, wraps: bool) -> None:
    """No SYN, and no ids before the first request: an old version, the frame around which may end with it."""
    token = b"\x60\x28" + bytes.fromhex("06092a864886f712010202") + bytes(29)
    batch = records.encode([records.Record(None, bytes(100))], magic=1)
    talk = Connection().send(token).answer(WRAPPED if wraps else token).send(b"abcd")
    talk.send(produce_v2(1, 1, batch)).answer(produce_answer(1)).send(produce_v2(2, 1, batch)).answer(produce_answer(2))
    if not heard:
        talk.packets[1] = replace(talk.packets[1], ack=talk.packets[1].ack + 8)
    with using(engine):
        found = [(row[2], row[3]) for row in statuses(pcap(talk.packets))]
        first = "ok" if heard else "unconfirmed"
        # What answers it answers the frame around it otherwise.
        assert found == [*[(None, "sasl")] * 3, (1, first), (1, "ok"), (2, "ok"), (2, "ok")]


@engines
@pytest.mark.parametrize("flight", [1, 5])
def test_behind_a_frame_with_a_hole_that_is_as_large_as_it_seems_nothing_is_in_doubt(
    engine: Engine, flight: int
) -> None:
    talk = Connection().open()
    sent = 0
    gone = -1
    for answered in range(1, 13):
        while sent < min(12, answered + flight - 1):
            sent += 1
            gone = len(talk.packets) + 1 if sent == 6 else gone
            talk.send(produce(sent, bytes(5000)))
        talk.answer(produce_answer(answered))
    for number in range(13, 17):
        talk.send(fetch(number))
        gone_answer = len(talk.packets) + 1
        talk.answer(fetch_answer(number, bytes(5000)))
        if number == 14:
            gone_too = gone_answer
    with using(engine):
        found = statuses(without(talk, gone, gone_too))
    assert [row for row in found if row[3] != "ok"] == [
        ("request", "Produce", 6, "gap"),
        ("response", "Fetch", 14, "gap"),
    ]


@engines
def test_a_hole_with_no_room_for_a_frame_around_leaves_no_doubt(engine: Engine) -> None:
    talk = exchange(count=6)
    assert len(sized(metadata(3))) < 60
    with using(engine):
        found = statuses(without(talk, 7))
    assert {row[3] for row in found} <= {"ok", "gap", "unpaired"}
    assert ("request", "Metadata", 4, "ok") in found


@engines
def test_where_nothing_asks_for_records_a_response_is_certain(engine: Engine) -> None:
    talk = in_turn(5)
    with using(engine):
        found = statuses(without(talk, 8))
    assert [row for row in found if row[0] == "response" and row[3] == "ok"] == [
        ("response", "Metadata", number, "ok") for number in (1, 2, 4, 5)
    ]


@pytest.mark.wide(keep=4)
@engines
@pytest.mark.parametrize("gone", [(7,), (8,), (7, 8), (7, 9, 10), (9, 10, 12)])
def test_windows_and_saved_states_do_not_matter(engine: Engine, gone: tuple[int, ...]) -> None:
    data = without(in_turn(8), *gone)
    with using(engine):
        whole = read(data)
        for window in (100, 300, 1000):
            assert read(data, window=window) == whole
        tracker, found = Tracker(), []
        for at in range(0, len(data), 97):
            found += list(tracker.feed(data[at : at + 97], final=at + 97 >= len(data)))
            if at + 97 < len(data):
                saved = tracker.save()
                tracker = Tracker()
                tracker.restore(saved)
        found += list(tracker.finish())
    assert [(one.number, one.status.name.lower()) for one in sorted(found, key=lambda one: one.number)] == [
        (row["frame"], row["status"]) for row in whole
    ]


def test_what_is_unconfirmed_has_a_row_in_messages_without_a_body() -> None:
    data = without(in_turn(4), 7, 10)
    rows = [row for row in read(data, "messages") if row["status"] == "unconfirmed"]
    assert rows
    assert all(row["body"] is None and row["error"] for row in rows)


def pipelined(count: int, size: int, flight: int = 5) -> Connection:
    """A producer that has five requests under way, whose connection was there before: it never waits."""
    talk = Connection()
    sent = 0
    for answered in range(1, count + 1):
        while sent < min(count, answered + flight - 1):
            sent += 1
            talk.send(produce(sent, bytes(size)))
        talk.answer(produce_answer(answered))
    return talk


@engines
@pytest.mark.parametrize("size", [100, 3000])
@pytest.mark.parametrize("first", [0, 8, 21])
def test_a_producer_that_never_waits_is_confirmed_by_acknowledgements(engine: Engine, size: int, first: int) -> None:
    """Its responses are certain once so many have followed one another that none is a value of a record."""
    with using(engine):
        found = statuses(pcap(pipelined(40, size).packets[first:]))
    asked = [row[3] for row in found if row[0] == "request" and row[3] != "gap"]
    answers = [row[3] for row in found if row[0] == "response" and row[3] != "unpaired"]
    assert set(asked) == {"ok"}
    assert answers == ["unconfirmed"] * (ENOUGH_ANSWERS - 1) + ["ok"] * (len(answers) - ENOUGH_ANSWERS + 1)


@engines
def test_requests_alone_are_certain_after_more_bytes_than_a_value_has(engine: Engine) -> None:
    size = 64 << 10
    requests = [one for one in pipelined(24, size).packets if one.dst[1] == 9092]
    with using(engine):
        found = [row[3] for row in statuses(pcap(requests))]
    doubted = LARGEST_BATCH // len(sized(produce(1, bytes(size)))) + 1
    assert found == ["unconfirmed"] * doubted + ["ok"] * (24 - doubted)
    opened = Connection().open()
    for number in range(1, 4):
        opened.send(produce(number, b"v"))
    with using(engine):
        assert {row[3] for row in statuses(pcap([one for one in opened.packets if one.dst[1] == 9092]))} == {"ok"}


def test_what_is_unconfirmed_is_counted_and_in_no_answer() -> None:
    data = without(in_turn(4), 7, 10)
    notes: list[str] = []
    frames = pa.Table.from_pylist(read(data, on_note=notes.append))
    assert any(note.startswith("unconfirmed frames: 1 ") for note in notes)
    rows = rows_of("frames", frames.to_batches())
    assert (rows.unconfirmed, rows.table.num_rows) == (1, frames.num_rows - 1)
    assert [row for row in read(data, "calls") if row["correlation_id"] == 4] == []
    (connection,) = read(data, "connections")
    assert sum(one["requests"] for one in connection["apis"]) == 2


def with_a_hole_in_the_answers(version: int, count: int = 4) -> Connection:
    """Requests of which the first asks for records, sent without a pause; then exchanges. Packet 5 is its response."""
    answer = messages.FetchResponse(responses=[messages.FetchResponse.FetchableTopicResponse(topic="t" * 100)])
    talk = Connection().open()
    talk.send(kwire.encode_request(messages.FetchRequest(max_wait_ms=500), api_version=version, correlation_id=1))
    talk.send(metadata(2, LARGE))
    talk.answer(kwire.encode_response(answer, api_version=version, correlation_id=1)).answer(metadata_answer(2))
    for number in range(3, 3 + count):
        talk.send(metadata(number, LARGE)).answer(metadata_answer(number))
    return talk.close()


@engines
@pytest.mark.parametrize("version", [4, 12])
def test_answers_in_turn_up_to_a_certain_one_are_certain(engine: Engine, version: int) -> None:
    """The response to a Fetch is missing. What is behind it may be a value of that, but for what leads up to an
    exchange: each request is answered once."""
    talk = with_a_hole_in_the_answers(version)
    with using(engine):
        data = without(talk, 5)
        found = read(data)
        assert read(data, window=100) == found
    answers = {row["correlation_id"]: row["status"] for row in found if row["direction"] == "response"}
    assert [answers[number] for number in range(2, 7)] == ["ok"] * 5


@engines
@pytest.mark.parametrize("asked", [1, 2, 3])
def test_answers_that_come_twice_lead_to_no_certain_one(engine: Engine, asked: int) -> None:
    """The beginning of a Fetch response is missing. Copies of the next answers are its values, and come again."""
    talk = in_turn(1)
    begin = len(talk.packets)
    before_its_time(talk, 2, 4, asked)
    with using(engine):
        found = read(without(talk, begin + 1))
    answers = [row for row in found if row["direction"] == "response" and row["status"] == "ok"]
    for row in answers:
        sent = [one for one in talk.packets if one.payload == sized(metadata_answer(row["correlation_id"]))]
        assert round(row["timestamp"].timestamp() * 1000) == max(one.time for one in sent) // 1_000_000
    assert {7} <= {row["correlation_id"] for row in answers}


@engines
@pytest.mark.parametrize("heard", [True, False])
def test_a_value_with_the_id_of_the_response_that_it_ends_leads_to_no_certain_one(engine: Engine, heard: bool) -> None:
    """Up to version 3, a value may end a response. If the client had received all before the answer, none is around."""
    inner = sized(old_fetch_answer(3, bytes(100)))
    frame = sized(old_fetch_answer(3, inner)) if not heard else inner
    talk = in_turn(1).send(old_fetch(2), old_fetch(3))
    gone = len(talk.packets)
    talk.answer(old_fetch_answer(2, bytes(200)))
    if heard:
        talk = in_turn(1).send(old_fetch(2))
        gone = len(talk.packets)
        talk.answer(old_fetch_answer(2, bytes(200))).send(old_fetch(3))
    if len(frame) > len(inner):
        talk.answer_raw(frame[: -len(inner)])
    talk.answer_raw(inner)
    for number in range(4, 8):
        talk.send(metadata(number, LARGE)).answer(metadata_answer(number))
    with using(engine):
        found = read(without(talk, *((gone,) if heard else (gone, gone + 1))))
    answers = {row["correlation_id"]: row["status"] for row in found if row["direction"] == "response"}
    assert answers[3] == ("ok" if heard else "unconfirmed")
    assert [answers[number] for number in range(4, 8)] == ["ok"] * 4


@engines
@pytest.mark.parametrize("gone", [(0,), (1,), (0, 2), (1, 2)])
def test_a_syn_that_is_missing_is_told_by_what_acknowledges_it(engine: Engine, gone: tuple[int, ...]) -> None:
    """Of two requests that are sent at once, the first asks for records. The first packet of the client, or the SYN of
    the broker, acknowledges where the other direction begins."""
    talk = Connection().open().send(fetch(1)).send(produce_v1(2)).answer(fetch_answer(1, b"v"), produce_v1_answer(2))
    with using(engine):
        found = statuses(without(talk.close(), *gone))
    assert found == [
        ("request", "Fetch", 1, "ok"),
        ("request", "Produce", 2, "ok"),
        ("response", "Fetch", 1, "ok"),
        ("response", "Produce", 2, "ok"),
    ]


@engines
def test_a_syn_that_comes_late_ends_the_doubt_of_a_request_that_waits_for_what_follows(engine: Engine) -> None:
    """The last request is damaged and was captured first, the SYN nearly last, and an answer is missing. That a table
    grows, for the client_id, does not matter: in small windows that happens with the other connection."""
    frame = sized(metadata(4, LARGE))
    talk = in_turn(3).send_raw(frame[:12] + b"\x7f" + frame[13:]).answer(metadata_answer(4)).close()
    syn, *packets = talk.packets
    last = packets.pop(8)
    del packets[7]
    other = Connection(client=("10.0.0.3", 40001)).open().send(metadata(1, LARGE))
    data = pcap([last, *packets[:5], *other.packets, *packets[5:8], syn, *packets[8:]])
    with using(engine):
        found = read(data)
        for window in (100, 300, 1000):
            assert read(data, window=window) == found
    asked = [row["status"] for row in found if row["direction"] == "request" and row["connection"] == 0]
    assert asked == ["ok", "ok", "ok", "malformed"]


@engines
@pytest.mark.parametrize("late", [1, 2])
def test_a_request_that_is_found_where_the_syn_says_is_read_with_its_packet_in_any_window(
    engine: Engine, late: int
) -> None:
    """Bytes of an earlier connection stand before it, captured before the SYN. Another connection goes on meanwhile."""
    talk = Connection().open().send(metadata(1)).send(metadata(2)).answer(metadata_answer(1), metadata_answer(2))
    syn, answer, _, first, *rest = talk.packets
    stray = replace(first, seq=first.seq - 50, payload=bytes(50))
    early = [stray, first]
    early[late:late] = [syn, answer]
    other = Connection(client=("10.0.0.3", 40001)).open().send(metadata(1))
    data = pcap([*early, *other.packets, *rest])
    with using(engine):
        whole = fed(data)
        for cut in packet_ends(data):
            assert fed(data, [cut]) == whole, cut
    assert next((frame.id, frame.order) for frame in whole if frame.connection == 0 and frame.api == 3) == (1, 3)


def produce_v1(number: int) -> bytes:
    """A Produce request v2, which may be the end of one."""
    return request(
        0, 2, number, produce_v2(number, 1, records.encode([records.Record(None, b"v")], magic=1))[14:], LARGE
    )


def produce_v1_answer(number: int) -> bytes:
    return struct.pack(">ii3siihqqi", number, 1, b"\0\1t", 1, 0, 0, 0, -1, 0)


@engines
@pytest.mark.parametrize("options", [b"", bytes.fromhex("1e080011") + bytes(4)])
def test_only_the_first_byte_of_a_client_tells_where_the_answers_begin(engine: Engine, options: bytes) -> None:
    """What a client acknowledges later is within a response, where a value begins. The same holds for a path of
    Multipath TCP: its requests may go on another one."""
    inner = sized(metadata_answer(2))
    frame = sized(fetch_answer(1, inner * 3))
    at = frame.index(inner)
    talk = Connection().open().send(fetch(1)).answer_raw(frame[:at])
    talk.send(metadata(2, LARGE)).answer_raw(frame[at:]).answer(metadata_answer(2))
    if options:
        # The packet with the second request stands at the first byte of this path.
        talk.packets[5] = replace(talk.packets[5], seq=talk.packets[3].seq, options=options)
    with using(engine):
        found = statuses(without(talk, 1, 2, 3, 4))
    assert ("response", "Metadata", 2, "ok") not in found


@engines
def test_each_exchange_makes_the_answers_behind_its_hole_certain(engine: Engine) -> None:
    """Several are seen before an answer is read, since those behind the first hole wait."""
    talk = in_turn(12)
    with using(engine):
        # The handshake; a request and its answer, three times.
        found = statuses(without(talk, 0, 1, 2, 5, 6, 13, 14, 21, 22))
    answers = {row[2]: row[3] for row in found if row[0] == "response" and row[3] != "gap"}
    assert [number for number, status in answers.items() if status == "ok"] == [3, 4, 5, 7, 8, 9, 11, 12]


@engines
def test_behind_a_first_answer_whose_size_is_wrong_answers_are_certain(engine: Engine) -> None:
    talk = in_turn(4)
    talk.packets[4] = replace(talk.packets[4], payload=b"\1\0\0\0" + talk.packets[4].payload[4:])
    with using(engine):
        found = statuses(pcap(talk.packets))
    assert [row[3] for row in found if row[0] == "response" and row[2] in (2, 3, 4)] == ["ok"] * 3


@engines
@pytest.mark.parametrize("around", [False, True])
def test_the_answer_to_a_request_or_to_the_one_that_ends_with_it_is_certain(engine: Engine, around: bool) -> None:
    """Both have the same id and version. The client_id of the one around is not known."""
    batch = records.encode([records.Record(None, bytes(100))], magic=1)
    inner = sized(request(0, 2, 7, produce_v2(7, 1, batch)[14:], LARGE))
    frame = sized(produce_v2(7, 1, records.encode([records.Record(None, inner)], magic=1)))
    assert frame.endswith(inner)
    talk = Connection()
    if around:
        talk.send_raw(frame[: -len(inner)])
    talk.send_raw(inner).answer(produce_v1_answer(7)).send(metadata(8, LARGE)).answer(metadata_answer(8)).close()
    with using(engine):
        found = by_time(read(without(talk, 0) if around else pcap(talk.packets)))
    assert [(row["correlation_id"], row["status"], row["client_id"]) for row in found] == [
        (7, "unconfirmed", LARGE),
        (7, "ok", None),
        (8, "ok", LARGE),
        (8, "ok", LARGE),
    ]


@engines
def test_a_copy_of_a_request_is_none_though_the_answer_acknowledges_no_more(engine: Engine) -> None:
    """A request is missing, and the beginning of the next one, which has its copy as a value. The answer acknowledges
    no more than the copy. What follows there is no request, as the answer to the frame around shows."""
    copy = sized(metadata(1, LARGE))
    frame = sized(produce(2, copy))
    at = frame.index(copy)
    talk = Connection().send(metadata(1, LARGE)).send_raw(frame[:at])
    gone = len(talk.packets)
    talk.send_raw(copy).send_raw(frame[at + len(copy) :]).answer(metadata_answer(1))
    talk.packets[-1] = replace(talk.packets[-1], ack=talk.packets[-2].seq)
    talk.answer(produce_answer(2))
    for number in range(3, 9):
        talk.send(metadata(number, LARGE)).answer(metadata_answer(number))
    data = pcap(talk.packets[gone:])
    with using(engine):
        found = read(data)
        assert read(data, window=300) == found
    asked = {row["correlation_id"]: row["status"] for row in found if row["direction"] == "request"}
    assert asked.get(1) != "ok"
    assert [asked[number] for number in range(4, 9)] == ["ok"] * 5


def with_size(frame: bytes, end: int) -> bytes:
    """A frame that says that it ends at byte ``end`` of it."""
    return struct.pack(">i", end - 4) + frame[4:]


@engines
def test_requests_behind_a_false_size_are_in_doubt(engine: Engine) -> None:
    """It ends where a value begins, in the middle of a segment. What follows looks like requests."""
    chain = b"".join(sized(metadata(number, LARGE)) for number in (4, 5, 6))
    frame = sized(produce(3, chain))
    talk = in_turn(2).send_raw(with_size(frame, frame.index(chain))).answer(produce_answer(3))
    for number in range(7, 10):
        talk.send(metadata(number, LARGE)).answer(metadata_answer(number))
    data = pcap(talk.packets)
    with using(engine):
        found = read(data)
        assert read(data, window=300) == found
    asked = {row["correlation_id"]: row["status"] for row in found if row["direction"] == "request"}
    assert {asked.get(number) for number in (4, 5, 6)} == {"unconfirmed"}
    assert [asked[number] for number in (1, 2, 3, 8, 9)] == ["ok", "ok", "malformed", "ok", "ok"]


@engines
def test_answers_behind_a_false_size_are_in_doubt(engine: Engine) -> None:
    """The values of a response are the next answers, and its size ends where they begin."""
    chain = sized(metadata_answer(3)) + sized(metadata_answer(4))
    frame = sized(old_fetch_answer(2, chain + bytes(9)))
    talk = in_turn(1).send(old_fetch(2), metadata(3, LARGE), metadata(4, LARGE))
    talk.answer_raw(with_size(frame, frame.index(chain))).answer(metadata_answer(3), metadata_answer(4))
    with using(engine):
        found = statuses(pcap(talk.packets))
    answers = [row[2:] for row in found if row[0] == "response" and row[2] in (3, 4)]
    assert answers[:2] == [(3, "unconfirmed"), (4, "unconfirmed")]


@engines
def test_a_false_size_that_has_room_for_another_frame_is_no_good_frame(engine: Engine) -> None:
    """It ends within the next request, in front of a value. Both are in one segment."""
    chain = b"".join(sized(metadata(number, LARGE)) for number in (4, 5, 6))
    first, second = sized(metadata(2, LARGE)), sized(produce(3, chain))
    talk = in_turn(1).send_raw(with_size(first, len(first) + second.index(chain)) + second).answer(metadata_answer(2))
    with using(engine):
        found = read(pcap(talk.packets))
    asked = {row["correlation_id"]: row for row in found if row["direction"] == "request"}
    assert asked[2]["error"] == "the body is not what version 0 says"
    assert {asked[number]["status"] for number in (4, 5, 6)} == {"unconfirmed"}


@engines
def test_few_bytes_behind_a_body_leave_no_doubt(engine: Engine) -> None:
    """Some clients send them. They have no room for a frame."""
    talk = in_turn(1).send(metadata(2, LARGE) + bytes(9), metadata(3, LARGE)).answer(metadata_answer(2))
    with using(engine):
        found = statuses(pcap(talk.packets))
    assert [row[2:] for row in found if row[0] == "request"] == [(1, "ok"), (2, "trailing"), (3, "ok")]


@engines
def test_no_value_leads_to_a_certain_request_with_a_size_that_goes_on_behind_it(engine: Engine) -> None:
    """The last frame of a value goes on behind it, up to the next request. Its body is not what its layout says."""
    cut = sized(metadata(4, LARGE) + b"\xff" * 9)
    frame = sized(produce(2, sized(metadata(3, LARGE)) + cut[:-1]))
    at = frame.index(sized(metadata(3, LARGE)))
    # The count of headers stands in the place of the byte that is cut off.
    assert len(frame) == at + len(sized(metadata(3, LARGE))) + len(cut)
    talk = Connection().open().send(produce(1, b"v")).answer(produce_answer(1)).send_raw(frame[:at])
    gone = len(talk.packets) - 1
    talk.send_raw(frame[at:])
    for number in range(5, 8):
        talk.send(metadata(number, LARGE))
    with using(engine):
        found = statuses(without(talk.close(), gone))
    asked = {row[2]: row[3] for row in found if row[0] == "request"}
    assert "ok" not in {asked.get(3), asked.get(4)}


@engines
def test_no_value_leads_to_a_certain_answer_with_a_size_that_goes_on_behind_it(engine: Engine) -> None:
    """The same in a Fetch response: the count of headers and tagged fields stand in the place of what is cut off."""
    inner = sized(metadata_answer(4))
    cut = sized(metadata_answer(5) + b"\xff" * 9)
    batch = records.encode([records.Record(None, bytes(100)), records.Record(None, inner + cut[:-4])])
    partition = messages.FetchResponse.PartitionData(records=batch)
    body = messages.FetchResponse(
        responses=[messages.FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])]
    )
    talk = in_turn(2)
    asked = messages.FetchRequest(max_wait_ms=500)
    talk.send(kwire.encode_request(asked, api_version=12, correlation_id=3, client_id=LARGE))
    talk.send(metadata(4, LARGE), metadata(5, LARGE))
    frame = sized(kwire.encode_response(body, api_version=12, correlation_id=3))
    at = frame.index(inner)
    assert len(frame) == at + len(inner) + len(cut)
    talk.answer_raw(frame[:at])
    gone = len(talk.packets) - 1
    talk.answer_raw(frame[at:] + sized(metadata_answer(4)) + sized(metadata_answer(5)))
    for number in range(6, 11):
        talk.send(metadata(number, LARGE)).answer(metadata_answer(number))
    with using(engine):
        found = read(without(talk.close(), gone))
    answers = [(row["correlation_id"], row["size"], row["status"]) for row in found if row["direction"] == "response"]
    value, whole = len(cut) - 4, len(inner) - 4
    assert (4, whole, "unconfirmed") in answers
    assert (5, value) not in {(number, size) for number, size, _ in answers}
    assert answers[-6:] == [(number, whole, "ok") for number in range(5, 11)]


@engines
def test_the_last_request_in_a_value_may_borrow_a_byte_from_the_frame_around(engine: Engine) -> None:
    """It is cut by its last byte, a zero. The count of headers behind the value is one, and the FIN comes next."""
    chain = [sized(metadata(number, LARGE)) for number in range(5, 8)] + [sized(produce(8, b"v"))]
    value = b"".join(chain)[:-1]
    frame = sized(produce(4, value))
    assert frame.endswith(b"".join(chain))
    talk = in_turn(3)
    gone = len(talk.packets)
    talk.send_raw(frame[: frame.index(chain[0])])
    for one in chain:
        talk.send_raw(one)
    talk.answer(produce_answer(4)).close()
    with using(engine):
        found = statuses(without(talk, gone))
    assert {row[2] for row in found if row[0] == "request" and row[3] == "ok"} == {1, 2, 3}
