"""Whether payloads begin with a size, and how many frames are in them: each shows it by itself, or its row says so."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest
from payload_frames import GIVE, check_told, check_told_responses, golden, size_in_front, with_damage

import kwire
import kwire.messages
from kwire.errors import KwireError
from kwire.kernels.engine import MACHINE, using
from kwire.payloads import (
    decode_requests,
    decode_responses,
    request_partitions,
    request_records,
    response_partitions,
    singly,
)
from kwire.records import Record, encode

pytestmark = pytest.mark.usefixtures("engine")

BEAT = kwire.encode_request(
    kwire.messages.HeartbeatRequest(group_id="orders", member_id="m"), api_version=4, correlation_id=7, client_id="x"
)
BEATEN = kwire.encode_response(kwire.messages.HeartbeatResponse(throttle_time_ms=3), api_version=3, correlation_id=7)


def test_real_requests_show_whether_they_have_a_size() -> None:
    requests = golden()[0]
    wanted = decode_requests(pa.array(requests)).to_pylist()
    mixed = [one for each in requests for one in (each, size_in_front(each))]
    made = decode_requests(pa.array(mixed), sized="auto").to_pylist()
    assert made[::2] == wanted
    assert made[1::2] == wanted
    # What is made of them does not matter.
    heads = decode_requests(pa.array(mixed), sized="auto", body=False).to_pylist()
    assert heads[::2] == heads[1::2] == decode_requests(pa.array(requests), body=False).to_pylist()


def test_real_responses_show_whether_they_have_a_size() -> None:
    responses = golden()[1]
    data, keys, versions = zip(*responses, strict=True)
    wanted = decode_responses(pa.array(data), pa.array(keys), pa.array(versions)).to_pylist()
    mixed = [one for each in data for one in (each, size_in_front(each))]
    about = (pa.array([one for one in each for _ in range(2)]) for each in (keys, versions))
    made = decode_responses(pa.array(mixed), *about, sized="auto").to_pylist()
    untold = [one for one, each in zip(made, mixed, strict=True) if one["error"] and GIVE in one["error"]]
    assert len(untold) <= len(mixed) // 100
    for number, row in enumerate(made):
        assert row == wanted[number // 2] or row in untold
        assert row not in untold or row["correlation_id"] is row["body"] is None


@pytest.mark.wide(keep=1)
def test_damaged_requests_are_read_as_the_rule_says() -> None:
    requests = list(with_damage(golden()[0], 400, 5))
    check_told([None, b"", b"\0\0\0", *requests, *map(size_in_front, requests), *with_damage(
        [size_in_front(one) for one in golden()[0]], 400, 6)])  # fmt: skip


@pytest.mark.wide(keep=1)
def test_damaged_responses_are_read_as_the_rule_says() -> None:
    sized = [(size_in_front(one), *of) for one, *of in golden()[1]]
    check_told_responses([*with_damage(golden()[1], 300, 7), *with_damage(sized, 300, 8)])


@pytest.mark.parametrize("sized", [True, "auto"])
def test_frames_that_stand_together_are_an_array(sized: Any) -> None:
    requests = golden()[0][::5]
    each = decode_requests(pa.array(requests)).to_pylist()
    payloads, wanted = [None], [None]
    for number in range(0, len(requests) - 3, 3):
        count = number % 3 + 1
        payloads.append(b"".join(map(size_in_front, requests[number : number + count])))
        wanted.append(each[number : number + count])
    made = decode_requests(pa.array(payloads, pa.binary()), sized=sized, several=True)
    assert made.to_pylist() == wanted
    made.validate(full=True)
    # Without an array there is no place for more than one.
    alone = decode_requests(pa.array(payloads, pa.binary()), sized=sized).to_pylist()
    for one, rows in zip(alone, wanted, strict=True):
        if rows is None or len(rows) == 1:
            assert one == (rows and rows[0])
        else:
            assert (one["status"], one["api_name"]) == ("malformed", None)
            assert one["error"].endswith("several=True makes an array of more frames")


def test_frames_without_a_size_are_arrays_of_one() -> None:
    column = pa.array([BEAT, None, b""], pa.binary())
    each = decode_requests(column).to_pylist()
    assert decode_requests(column, several=True).to_pylist() == [[each[0]], None, [each[2]]]
    assert decode_requests(column.slice(0, 2), several=True, sized="auto").to_pylist() == [[each[0]], None]
    assert decode_requests(pa.array([], pa.binary()), several=True).type == pa.list_(
        pa.field("element", decode_requests(column).type, nullable=False)
    )


@pytest.mark.parametrize("sized", [True, "auto"])
def test_a_last_frame_that_is_cut_says_so_and_keeps_its_header(sized: Any) -> None:
    both = size_in_front(BEAT) * 2
    for length in range(len(both)):
        made = decode_requests(pa.array([both[:length]], pa.binary()), sized=sized, several=True).to_pylist()[0]
        last = made[-1]
        rest = length % (len(both) // 2)
        if rest == 0 and length:
            assert [one["status"] for one in made] == ["ok"]
        elif length > len(both) // 2:
            assert [one["status"] for one in made] == ["ok", "malformed" if rest < 4 else "cut_off"]
            assert rest < 4 or f"the size says {len(BEAT)} bytes, {rest - 4} follow" in last["error"]
            # Its header is there as soon as it is whole: a byte for tagged fields is its end.
            assert last["api_name"] == (None if rest < 4 + 12 else "Heartbeat")
            assert last["correlation_id"] == (None if rest < 4 + 12 else 7)
            assert last["client_id"] == (None if rest < 4 + 12 else "x")
            assert last["body"] is None
    answers = size_in_front(BEATEN) * 2
    made = decode_responses(pa.array([answers[:-1]]), 12, 3, sized=sized, several=True).to_pylist()[0]
    assert [(one["status"], one["correlation_id"]) for one in made] == [("ok", 7), ("cut_off", 7)]


def test_what_can_be_read_both_ways_is_not_read() -> None:
    # SaslAuthenticate: an error, a message and bytes. With a size all are empty, without one the message has 4 bytes.
    api_key, version = 36, 0
    column = pa.array([struct.pack(">iiq", 12, 4, 0)], pa.binary())
    for sized in (False, True):
        assert decode_responses(column, api_key, version, sized=sized).to_pylist()[0]["status"] == "ok"
    (row,) = decode_responses(column, api_key, version, sized="auto").to_pylist()
    assert (row["status"], row["correlation_id"], row["body"]) == ("malformed", None, None)
    assert row["error"] == f"it can be read with a size in front, and without one: {GIVE}"


def test_what_can_be_read_in_no_way_says_what_is_wrong_with_both() -> None:
    (row,) = decode_requests(pa.array([b"\x7f\0\0\0no frame"]), sized="auto").to_pylist()
    assert row["status"] == "unsupported"
    assert row["api_key"] is None
    assert "without a size: " in row["error"]
    assert "; with a size: " in row["error"]
    assert row["error"].endswith(GIVE)
    # Where only its body shows where a response begins, a body that cannot be read leaves it open.
    (row,) = decode_responses(pa.array([BEATEN[:-1]]), 12, 3, sized="auto").to_pylist()
    assert (row["api_name"], row["status"], row["correlation_id"]) == ("Heartbeat", "malformed", None)
    (row,) = decode_responses(
        pa.array([BEATEN[:-1]]), 12, 3, sized="auto", fields=["correlation_id"]
    ).to_pylist()  # fmt: skip
    assert row == {"correlation_id": None}


def test_rows_of_what_is_in_payloads_are_those_of_all_frames() -> None:
    kind = kwire.messages.ProduceRequest
    batch = encode([Record(b"k", b"v", offset=number) for number in range(3)])
    data = kind.TopicProduceData(name="orders", partition_data=[kind.PartitionProduceData(index=1, records=batch)])
    frame = kwire.encode_request(kind(acks=1, topic_data=[data]), api_version=9, correlation_id=1)
    alone = request_records(pa.array([frame])).to_pylist()[0]
    assert len(alone) == 3
    sized = size_in_front(frame)
    column = pa.array([sized * 2, None, frame, BEAT, sized + sized[:-1], b"\x7f\0\0\0no frame"], pa.binary())
    made = request_records(column, sized="auto").to_pylist()
    assert made[:4] == [alone * 2, None, alone, []]
    assert made[4][:3] == alone
    assert [one["status"] for one in made[4][3:]] == ["cut_off"]
    assert [one["status"] for one in made[5]] == ["unsupported"]
    known = [one for number, one in enumerate(column) if number not in (2, 3, 5)]
    assert request_records(pa.array(known), sized=True).to_pylist() == [made[0], None, made[4]]
    once = request_partitions(pa.array([frame])).to_pylist()[0]
    assert request_partitions(column.slice(0, 1), sized="auto").to_pylist() == [once * 2]
    answer = kwire.encode_response(kwire.messages.ProduceResponse(), api_version=9, correlation_id=1)
    column = pa.array([size_in_front(answer) * 2, answer])
    assert response_partitions(column, 0, 9, sized="auto").to_pylist() == [[], []]


def test_a_row_depends_on_its_payload_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sized = size_in_front(BEAT)
    payloads = [sized * 3, BEAT, None, sized[:-1], sized * 2 + sized[:9], b"", b"\0" * 30, BEAT[:-1], sized]
    column = pa.array(payloads, pa.binary())
    whole = decode_requests(column, sized="auto", several=True).to_pylist()
    monkeypatch.setattr("kwire.payloads.frames.MOST_PAYLOADS", 2)
    monkeypatch.setattr("kwire.payloads.frames.WINDOW", 2 * len(sized))
    assert decode_requests(column, sized="auto", several=True).to_pylist() == whole
    monkeypatch.undo()
    apart = pa.chunked_array([column.slice(number, 1) for number in range(len(column))])
    assert decode_requests(apart, sized="auto", several=True).to_pylist() == whole


def test_a_payload_that_becomes_more_than_a_list_can_hold_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.payloads.messages._MOST", 1000)
    monkeypatch.setattr("kwire.payloads.frames.MOST_PAYLOADS", 1)
    column = pa.array([size_in_front(BEAT), size_in_front(BEAT) * 20], pa.binary())
    made = decode_requests(column, sized=True, several=True).to_pylist()
    assert [len(one) for one in made] == [1, 1]
    assert [made[0][0]["status"], made[1][0]["status"]] == ["ok", "too_large"]


def test_zeros_are_not_as_many_frames_as_there_are_sizes() -> None:
    made = decode_requests(pa.array([bytes(4000)]), sized=True, several=True).to_pylist()
    assert [one["status"] for one in made[0]] == ["malformed"]


def test_what_sized_cannot_be_is_said() -> None:
    wrong: Any = "yes"
    with pytest.raises(KwireError, match="sized is True, False or \"auto\", not 'yes'"):
        decode_requests(pa.array([BEAT]), sized=wrong)
    with pytest.raises(KwireError, match="sized is True"):
        request_records(pa.array([BEAT]), sized=wrong)


def test_real_responses_with_sizes_are_decided_without_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    decide = singly.sized_as

    def counted(data: bytes, of: Any, limits: Any) -> int:
        asked.append(of[0])
        return decide(data, of, limits)

    monkeypatch.setattr(singly, "sized_as", counted)
    responses = golden()[1]
    data, keys, versions = zip(*responses, strict=True)
    for count, several in ((1, False), (1, True), (2, True)):
        asked.clear()
        column = pa.array([size_in_front(one) * count for one in data])
        with using(MACHINE):
            made = decode_responses(column, pa.array(keys), pa.array(versions), sized="auto", several=several)
        assert len(made) == len(responses)
        # A broker may answer ApiVersions in another version. Tagged fields that no schema knows are left to objects.
        assert len([key for key in asked if key != 18]) < len(responses) // 20
