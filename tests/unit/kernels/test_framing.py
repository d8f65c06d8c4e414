"""Frames in streams: where they begin when that is not known, and tables that are full, on both engines."""

from __future__ import annotations

import itertools
import random
import struct
from typing import Any

import numpy as np
import pytest
from packets import metadata, metadata_answer, request, response, sized
from placed_streams import Run, connection, directions, scratch, state, window

from kwire.kernels.directions import Capture
from kwire.kernels.engine import Engine
from kwire.kernels.framing import _is_answered, frames_and_pairs, is_settled
from kwire.kernels.layouts import ABSENT, ACTIVE, AT_THE_END, FRAME, Reason, Role, Status
from kwire.kernels.names import LONGEST_NAME, NameTable
from kwire.kernels.numbers import grown
from kwire.kernels.ordering import by_order, tell_the_rest, with_body_of
from kwire.kernels.pairing import DISORDER, MOST_OVERTAKEN, move_lookup
from kwire.protocol.api_table import api_table

Brief = tuple[int, Status, int]
"""0 for a request and 1 for a response, what became of it, and its correlation id; of a gap the bytes skipped."""


def known(**fields: Any) -> Capture:
    """A connection whose end A asks, and of neither direction is known where a frame begins.

    Requests were certain before, and too little is missing for a frame around what is found.
    """
    streams = directions(synced=0)
    streams["certain"][0] = 1
    for name, value in fields.items():
        streams[name] = value
    return state(connection(role=Role.A_REQUESTS), streams)


def read(engine: Engine, capture: Capture, a: Run = (), b: Run = (), **options: Any) -> list[Brief]:
    """The frames of one window; everything fits."""
    capture.room["frames"] = capture.room["active"] = capture.room["begun"] = 0
    rows = np.empty(200, FRAME)
    assert engine(frames_and_pairs)(window(a, b, **options), capture, api_table(), scratch(), rows)
    if options.get("final"):
        capture.room["active"] = 0
        assert engine(tell_the_rest)(capture, 2, 0, rows)
    return [
        (
            int(row["response"]),
            # What confirms a frame that was found is in ``test_unconfirmed``.
            Status.OK if row["status"] == Status.UNCONFIRMED else Status(int(row["status"])),
            int(row["size" if row["reason"] == Reason.SKIPPED else "id"]),
        )
        for row in rows[: int(capture.room["frames"][0])]
    ]


def ok(side: int, *numbers: int) -> list[Brief]:
    return [(side, Status.OK, number) for number in numbers]


def gap(side: int, size: int) -> Brief:
    return (side, Status.GAP, size)


# Numbers of which none is near 0: a body of zeros would do for one that is.
ASKED = [sized(metadata(number)) for number in range(5100, 5110)]
ANSWERED = [sized(metadata_answer(number)) for number in range(5100, 5110)]


# Responses in another order


def test_responses_in_any_order_are_paired_by_their_ids(engine: Engine) -> None:
    for order in itertools.permutations(range(4)):
        capture = state(connection(role=Role.A_REQUESTS), directions(synced=1))
        answers = b"".join(ANSWERED[k] for k in order)
        found = read(engine, capture, [(0, b"".join(ASKED[:4]))], [(0, answers)], final=True)
        assert found == ok(0, 5100, 5101, 5102, 5103) + ok(1, *(5100 + k for k in order))
        conn = capture.connections[0]
        assert (conn["waiting"], conn["unanswered"], conn["overtaken"]) == (0, 0, 0)
        # Those that came behind the response to a later request.
        late = sum(any(other > k for other in order[:at]) for at, k in enumerate(order))
        assert conn["disordered"] == late


def test_a_response_that_is_missing_is_not_waited_for(engine: Engine) -> None:
    capture = state(connection(role=Role.A_REQUESTS), directions(synced=1))
    behind = len(ANSWERED[0])
    pieces = [(0, ANSWERED[0]), (2 * behind, ANSWERED[2])]
    found = read(engine, capture, [(0, b"".join(ASKED[:3]))], pieces)
    assert found == [*ok(0, 5100, 5101, 5102), *ok(1, 5100), gap(1, behind), *ok(1, 5102)]
    assert (capture.connections["waiting"][0], capture.connections["unanswered"][0]) == (0, 1)


def test_a_request_that_is_read_after_its_response_was_given_up_does_not_wait(engine: Engine) -> None:
    capture = state(connection(role=Role.A_REQUESTS), directions(synced=1))
    sizes = [len(one) for one in ASKED]
    assert read(engine, capture, [(0, ASKED[0])], [(0, ANSWERED[0])], orders=[0, 1]) == [*ok(0, 5100), *ok(1, 5100)]
    # The response comes first, as behind a hole in the requests, and nothing else for longer than DISORDER.
    at, late = len(ANSWERED[0]), 2 + DISORDER + 1
    found = read(engine, capture, [], [(at, ANSWERED[1])], orders=[2], first_order=2, now=late)
    assert found == [(1, Status.UNPAIRED, 5101)]
    rest = [(sizes[0], ASKED[1] + ASKED[2])], [(at + len(ANSWERED[1]), ANSWERED[2])]
    assert read(engine, capture, *rest, orders=[4, 5], first_order=4) == [*ok(0, 5101, 5102), *ok(1, 5102)]
    conn = capture.connections[0]
    assert (conn["waiting"], conn["overtaken"], conn["unanswered"]) == (0, 0, 1)


# Where the capture begins within a frame


def test_the_first_request_is_found_wherever_the_capture_begins(engine: Engine) -> None:
    whole = b"".join(ASKED[:3])
    for begin in range(len(ASKED[0]) + 1):
        found = read(engine, known(), [(0, whole[begin:])], final=True)
        if begin == 0:
            assert found == ok(0, 5100, 5101, 5102)
        else:
            left = len(ASKED[0]) - begin
            assert found == [gap(0, left)] * bool(left) + ok(0, 5101, 5102)


def test_the_first_response_that_is_waited_for_is_found_wherever_the_capture_begins(engine: Engine) -> None:
    whole = b"".join(ANSWERED[:3])
    for begin in range(1, len(ANSWERED[0]) + 1):
        found = read(engine, known(), [(0, b"".join(ASKED[:3]))], [(0, whole[begin:])], final=True)
        left = len(ANSWERED[0]) - begin
        assert found == ok(0, 5100, 5101, 5102) + [gap(1, left)] * bool(left) + ok(1, 5101, 5102)


def test_a_request_in_the_middle_of_a_segment_needs_others_behind_it_up_to_another_segment_or_the_end(
    engine: Engine,
) -> None:
    noise = b"\xff" * 10
    assert read(engine, known(), [(0, noise + ASKED[0])], final=True) == [gap(0, 10 + len(ASKED[0]))]
    assert read(engine, known(), [(0, noise + ASKED[0] + ASKED[1])]) == []
    assert read(engine, known(), [(0, noise + ASKED[0] + ASKED[1])], final=True) == [gap(0, 10), *ok(0, 5100, 5101)]
    following = 10 + len(ASKED[0])
    assert read(engine, known(), [(0, noise + ASKED[0]), (following, ASKED[1])]) == [gap(0, 10), *ok(0, 5100, 5101)]
    lonely = noise + ASKED[0] + b"\xff" * 20
    assert read(engine, known(), [(0, lonely)], final=True) == [gap(0, len(lonely))]
    # At the beginning of a segment, one is enough, unless something else follows it.
    assert read(engine, known(), [(0, noise), (10, ASKED[0])]) == [gap(0, 10), *ok(0, 5100)]
    assert read(engine, known(), [(0, noise), (10, ASKED[0] + b"\xff" * 20)], final=True) == [gap(0, len(lonely))]


def test_a_request_that_goes_on_in_the_next_segment_is_waited_for(engine: Engine) -> None:
    long = sized(request(3, 0, 5, struct.pack(">ih", 1, 300) + b"t" * 300))
    for end in range(10, len(long)):
        assert read(engine, known(), [(0, b"\xff" * 10 + long[:end])]) == []
    behind = (10 + len(long), sized(request(3, 0, 6, bytes(4))))
    assert read(engine, known(), [(0, b"\xff" * 10 + long), behind]) == [gap(0, 10), *ok(0, 5, 6)]
    # What will never be seen whole is none in the middle of a segment.
    assert read(engine, known(), [(0, b"\xff" * 10 + long[:-1])], final=True) == [gap(0, 9 + len(long))]


def test_a_frame_whose_body_is_not_what_its_layout_says_is_passed_over(engine: Engine) -> None:
    wrong = sized(request(3, 0, 5, bytes(5)))
    there = wrong + ASKED[0] + ASKED[1]
    for a in ([(0, b"\xff" * 10 + there)], [(0, b"\xff" * 10), (10, there)]):
        assert read(engine, known(), a, final=True) == [gap(0, 10 + len(wrong)), *ok(0, 5100, 5101)]


def test_sizes_that_only_look_like_one_are_passed_over(engine: Engine) -> None:
    chance = random.Random(3)
    for _ in range(50):
        # No byte of it is the first of a size that a frame can have.
        noise = bytes(chance.randrange(9, 256) for _ in range(chance.randrange(1, 40)))
        # A size with an API that there is not; one that is too small; one that is followed by nothing that fits.
        false = [struct.pack(">ihh", 100, 999, 0), struct.pack(">i", 3), sized(request(3, 0, 1))[:-1] + b"\xff"]
        chance.shuffle(false)
        data = noise + b"".join(part + b"\xff" for part in false)
        found = read(engine, known(), [(0, data), (len(data), b"".join(ASKED))], final=True)
        assert found == [gap(0, len(data)), *ok(0, *range(5100, 5110))]


# Sizes that are wrong where a frame begins


@pytest.mark.parametrize("side", [0, 1])
def test_a_size_is_not_believed_if_the_body_is_another_and_no_frame_follows(engine: Engine, side: int) -> None:
    frames = (ASKED, ANSWERED)[side][:6]
    right = len(frames[2]) - 4
    for size in (9, 11, right - 1, right + 1, right + 7, 4096, 16 << 20, 100 << 20):
        wrong = struct.pack(">i", size) + frames[2][4:]
        together = [(0, b"".join([*frames[:2], wrong, *frames[3:]]))]
        one_by_one: Run = []
        at = 0
        for frame in [*frames[:2], wrong, *frames[3:]]:
            one_by_one.append((at, frame))
            at += len(frame)
        for way in (together, one_by_one):
            if size > at and way is together:
                continue  # nothing begins inside of it: it is cut off
            both: list[Run] = [[(0, b"".join(ASKED[:6]))], way] if side else [way, []]
            found = [one for one in read(engine, known(synced=1), *both, final=True) if one[0] == side]
            assert found == [
                *ok(side, 5100, 5101),
                (side, Status.MALFORMED, ABSENT),
                gap(side, len(frames[2])),
                *ok(side, 5103, 5104, 5105),
            ], (size, way)


def test_a_body_that_is_not_right_is_believed_as_long_as_frames_follow(engine: Engine) -> None:
    odd = sized(request(3, 0, 5102, bytes(5)))
    new = sized(request(3, 99, 5102, bytes(5)))
    for one, status in ((odd, Status.OK), (new, Status.UNSUPPORTED)):
        a = [(0, b"".join([*ASKED[:2], one, *ASKED[3:5]]))]
        found = read(engine, known(synced=1), a, final=True)
        assert found == [*ok(0, 5100, 5101), (0, status, 5102), *ok(0, 5103, 5104)]


# Where packets are missing


@pytest.mark.parametrize("lost", [0, 1])
def test_what_is_missing_within_a_frame_costs_this_frame_only(engine: Engine, lost: int) -> None:
    long = sized(request(3, 0, 50, bytes(100)))
    for begin in range(4, len(long)):
        hole = [(begin, min(20, len(long) - begin))] if lost else []
        end = min(begin + 20, len(long))
        a = [(0, long[:begin]), *hole, (end, long[end:] + ASKED[0])]
        found = read(engine, known(synced=1), a, final=True)
        assert [one for one in found if one[1] != Status.GAP] == ok(0, 5100)
        assert [one[1] for one in found] == [Status.GAP, Status.OK]


def test_a_size_that_is_missing_is_searched_for(engine: Engine) -> None:
    for kept in range(4):
        a = [(0, ASKED[0] + ASKED[1][:kept]), (len(ASKED[0]) + 8, ASKED[1][8:] + b"".join(ASKED[2:4]))]
        found = read(engine, known(synced=1), a, final=True)
        assert [one for one in found if one[1] == Status.OK] == ok(0, 5100, 5102, 5103)
        assert {one[1] for one in found} == {Status.OK, Status.GAP}


def test_responses_go_on_behind_a_hole(engine: Engine) -> None:
    whole = b"".join(ANSWERED[:6])
    size = len(ANSWERED[0])
    for begin, end in ((size - 5, 2 * size + 7), (size, 2 * size), (2, 3), (size, 3 * size + 1)):
        b = [(0, whole[:begin]), (end, whole[end:])]
        found = read(engine, known(synced=1), [(0, b"".join(ASKED[:6]))], b, final=True)
        assert found[:6] == ok(0, *range(5100, 5106))
        touched = range(begin // size, (end - 1) // size + 1)
        wanted = [5100 + k for k in range(6) if k not in touched]
        assert [one[2] for one in found[6:] if one[1] == Status.OK] == wanted
        assert Status.UNPAIRED not in {one[1] for one in found}


def test_a_segment_that_begins_with_a_response_is_believed_without_another(engine: Engine) -> None:
    noise = b"\xff" * 10
    body = struct.pack(">iih", 1, 0, 500) + b"h" * 500 + struct.pack(">ii", 9092, 0)
    alone = sized(response(5103, body))[:100]
    asked = [(0, b"".join(ASKED[:5]))]
    for pieces, found in (
        ([(0, noise + alone)], [gap(1, 110)]),
        ([(0, noise), (10, alone)], [gap(1, 10), (1, Status.CUT_OFF, 5103)]),
    ):
        capture = known()
        assert not [one for one in read(engine, capture, asked, pieces) if one[0] == 1]
        assert capture.streams["synced"][1] == 0
        capture = known()
        assert read(engine, capture, asked, pieces, final=True)[5:] == found


def test_bytes_that_were_searched_in_vain_are_told_at_the_end_once(engine: Engine) -> None:
    capture = known()
    assert read(engine, capture, [(0, b"\xff" * 50)]) == []
    capture.streams["next"][0] = 50
    assert read(engine, capture, [(50, b"\xff" * 30)], final=True) == [gap(0, 80)]
    assert read(engine, capture, final=True) == []


# Tables that are full


def test_a_table_that_is_full_stops_the_kernel_which_goes_on_where_it_was(engine: Engine) -> None:
    names = [b"client %d" % k + b"x" * (k * 37 % 500) for k in range(300)]
    asked = b"".join(sized(request(3, 0, k, bytes(4), name.decode())) for k, name in enumerate(names))
    answered = b"".join(sized(metadata_answer(k)) for k in range(0, 300, 3))
    table = NameTable()
    table.pool = np.zeros(LONGEST_NAME + 100, np.uint8)
    capture = state(connection(role=Role.A_REQUESTS), directions(synced=1), waiting=1)
    rows = np.empty(1, FRAME)
    made = window([(0, asked)], [(0, answered)])
    stops, state_of_ways = 0, scratch()
    while not engine(frames_and_pairs)(
        made,
        capture := capture._replace(names=table.names, pool=table.pool, lookup=table.lookup, names_used=table.used),
        api_table(),
        state_of_ways,
        rows,
    ):
        stops += 1
        assert stops < 1000
        before = capture
        if capture.room["frames"][0] == len(rows):
            rows = grown(rows)
        elif capture.room["waiting"][0] == len(capture.waiting) and capture.room["free"][0] < 0:
            capture = capture._replace(waiting=grown(capture.waiting), ids=np.full(2 * len(capture.ids), -1, np.int64))
            engine(move_lookup)(capture.waiting, before.ids, capture.room[0], capture.ids)
        else:
            table.make_room(LONGEST_NAME, engine)
    assert stops > 10
    found = rows[: int(capture.room["frames"][0])]
    assert found["id"].tolist() == [*range(300), *range(0, 300, 3)]
    assert [table.values()[number] for number in found["client"].tolist()] == [*names, *names[::3]]
    assert set(found["status"].tolist()) == {Status.OK}
    assert capture.connections["waiting"][0] == 2 + MOST_OVERTAKEN


def test_the_rest_is_told_in_a_table_that_grows(engine: Engine) -> None:
    connections = np.concatenate([connection(role=Role.A_REQUESTS) for _ in range(20)]).view(connection().dtype)
    streams = np.concatenate([directions(synced=0) for _ in range(20)]).view(directions().dtype)
    streams["skipped"] = range(40)
    capture = state(connections, streams)
    rows = np.empty(1, FRAME)
    while not engine(tell_the_rest)(capture, 40, 0, rows):
        rows = grown(rows)
    found = rows[: int(capture.room["frames"][0])]
    assert found["size"].tolist() == list(range(1, 40))
    assert found["response"].tolist() == [k & 1 for k in range(1, 40)]


def test_rows_are_put_in_the_order_in_which_they_were_settled(engine: Engine) -> None:
    rows = np.zeros(6, FRAME)
    rows["order"] = [104, 100, 104, AT_THE_END, 7, 101]
    # Times go back, and do not count.
    rows["time"] = [40, 10, 40, 50, 5, 41]
    rows["status"][[1, 3]] = Status.UNCONFIRMED
    rows["slot"] = [7, 7, 7, 2, 2, 7]
    rows["response"] = [1, 1, 0, 1, 0, 0]
    room, place, found = np.empty((3, 6), np.int64)
    copied = np.empty(6, FRAME)
    for into in (copied[:0], copied):
        ends = np.empty(5 + 2, np.int64)
        assert engine(by_order)(rows, 6, 100, 1000, ends, room, place, found, into) == 2
        assert place.tolist() == [2, 0, 1, 4, 3, 5]
        assert found.tolist() == [4, 1, 5, 2, 0, 3]
    # The last rows are of nothing that was read.
    assert engine(by_order)(rows, 2, 100, 1000, ends, room, place, found, copied[:0]) == 2
    assert place.tolist() == [0, 1, 2, 3, 4, 5]
    assert copied["order"].tolist() == [7, 100, 101, 104, 104, AT_THE_END]
    assert copied["response"].tolist() == [0, 1, 0, 0, 1, 1]
    assert copied["number"].tolist() == list(range(1000, 1006))


@pytest.mark.parametrize(
    ("role", "by_broker", "noted", "settled"),
    [
        (Role.UNKNOWN, 0, 1, False),
        (Role.OTHER, 0, 0, True),
        (Role.ENCRYPTED, 0, 0, True),
        (Role.A_REQUESTS, 0, 0, False),
        (Role.B_REQUESTS, 0, 0, False),
        (Role.A_REQUESTS, 0, 1, True),
        (Role.B_REQUESTS, 1, 0, True),
    ],
)
def test_connections_are_settled_where_nothing_is_to_be_asked_of_them(
    engine: Engine, role: Role, by_broker: int, noted: int, settled: bool
) -> None:
    rows = np.concatenate([connection(role=Role.OTHER), connection(role=role, by_broker=by_broker)])
    rows = rows.view(connection().dtype)
    active = np.zeros(3, ACTIVE)
    active["stream"] = [0, 2, 3]
    asked = np.array([0, noted], np.uint8)
    assert engine(is_settled)(active, rows, asked) is settled
    assert engine(is_settled)(active[:1], rows, asked)


def test_frames_of_a_kind_that_the_capture_has_a_body_of(engine: Engine) -> None:
    rows = np.zeros(7, FRAME)
    rows["api"] = [0, 0, 1, 1, ABSENT, 9, 1]
    rows["response"] = [0, 1, 1, 1, 0, 0, 1]
    rows["status"] = [Status.OK, Status.OK, Status.GAP, Status.CUT_OFF, Status.OK, Status.OK, Status.MALFORMED]
    rows["off"] = [4, 4, -1, 4, 4, 4, 4]
    there = np.full(7, 9, np.uint8)
    engine(with_body_of)(rows, np.array([1, 0, 0, 1], np.uint8), there)
    assert there.tolist() == [1, 0, 0, 1, 0, 0, 0]


@pytest.mark.wide(keep=4)
@pytest.mark.parametrize("version", [0, 2, 3, 8, 9, 13])
@pytest.mark.parametrize("transaction", [None, "", "payments"])
@pytest.mark.parametrize("client", [None, "", "p"])
def test_acks_where_it_usually_is_is_what_its_program_reads(
    version: int, transaction: str | None, client: str | None
) -> None:
    """Each request whole, cut at each byte, and with each byte changed."""
    flexible = version >= 9
    size = (lambda text: bytes([len(text) + 1])) if flexible else (lambda text: struct.pack(">h", len(text)))
    empty = b"\0" if flexible else b"\xff\xff"
    id_ = b"" if version < 3 else empty if transaction is None else size(transaction) + transaction.encode()
    name = b"\xff\xff" if client is None else struct.pack(">h", len(client)) + client.encode()
    tags = (b"\0", b"\1\5\2hi") if flexible else (b"",)
    by_program = api_table()._replace(acks_after=np.full_like(api_table().acks_after, -1))
    seen = set()
    for acks, tag in itertools.product((-1, 0, 1, 0x100), tags):
        whole = struct.pack(">hhi", 0, version, 7) + name + tag + id_ + struct.pack(">hi", acks, 1000)
        changed = [
            whole[:at] + bytes([byte]) + whole[at + 1 :] for at in range(8, len(whole)) for byte in (0, 1, 0x7F, 0xFF)
        ]
        for body in [whole, *changed, *(whole[:end] for end in range(8, len(whole)))]:
            length = int.from_bytes(body[8:10], "big", signed=True)
            if len(body) >= 10 and (length < -1 or 10 + length > len(body)):
                continue  # no header
            # What stands behind the frame is not looked at.
            place = window([(0, body + bytes(40))])
            row = np.zeros(1, FRAME)[0]
            row.version, row.seen = version, len(body)
            said = [_is_answered(place, one, scratch(), row) for one in (api_table(), by_program)]
            assert said[0] == said[1], body
            seen.add(said[0])
    assert seen == {True, False}


def test_acks_of_every_version_is_where_a_constant_says() -> None:
    assert (api_table().acks_after[:, 0] >= 0).all()
