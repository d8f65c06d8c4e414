"""What a connection is and which end asks, told by what it carries, on both engines."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from packets import buffer, metadata, metadata_answer, request, response, sized
from placed_streams import Run, connection, directions, scratch, window

from kwire.kernels.engine import Engine
from kwire.kernels.layouts import Role
from kwire.kernels.roles import (
    LARGEST_FRAME,
    LEFT,
    LONGEST_CLIENT_ID,
    NEED_MORE,
    NO,
    UNDECIDED,
    YES,
    is_kerberos,
    is_not_readable,
    let_go,
    plausible_request,
    settle,
)
from kwire.protocol.api_table import api_table
from kwire.schema.keys import ApiKey

STRONG = sized(metadata(7))
WEAK = sized(metadata(7, None))
TWICE = WEAK + sized(metadata(8, None))
ANSWER = sized(metadata_answer(7))
HELLO = b"\x16\x03\x01\x00\x2e" + bytes(46)
GSSAPI = sized(b"\x60\x82\x02\x58\x06\x09" + bytes(40))
TEXT = b"GET / HTTP/1.1\r\n\r\n"


def settled(engine: Engine, known: Any, a: Run = (), b: Run = (), streams: Any = None, **fields: Any) -> Role:
    """The role of ``known``, a table of one connection, after these pieces."""
    streams = directions() if streams is None else streams
    made = window(a, b, **fields)
    engine(settle)(made, api_table(), scratch(), streams, known[0], 0, len(made.active))
    if known["role"][0] == Role.UNKNOWN:
        engine(let_go)(made, streams, known[0], 0, len(made.active))
    return Role(int(known["role"][0]))


def readable(engine: Engine, known: Any, a: Run = (), b: Run = (), **streams: int) -> bool:
    """Whether the first bytes of a connection whose role is known can be read."""
    made, table = window(a, b), directions(**streams)
    return not any(
        engine(is_not_readable)(made, known[0], table[one["stream"]], int(one["stream"]), int(one["first"]),
                                int(made.pieces["off"][one["first"]] + made.pieces["len"][one["first"]]), 10)
        for one in made.active
    )  # fmt: skip


# Which end asks


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("opener", [0, 1])
def test_the_end_that_opened_the_connection_asks_even_if_the_other_looks_more_like_it(
    engine: Engine, opener: int
) -> None:
    asks = (Role.A_REQUESTS, Role.B_REQUESTS)[opener]
    sides = ([(0, STRONG)], [(0, STRONG + sized(metadata(8)))])
    assert settled(engine, connection(opener=opener), *(sides if opener == 0 else sides[::-1])) == asks


def test_a_client_id_counts_more_than_none(engine: Engine) -> None:
    for ports in ((40000, 9092), (9092, 40000)):
        assert settled(engine, connection(ports=ports), [(0, WEAK)], [(0, STRONG)]) == Role.B_REQUESTS
        assert settled(engine, connection(ports=ports), [(0, STRONG)], [(0, WEAK)]) == Role.A_REQUESTS


def test_where_both_look_alike_the_lower_port_is_the_brokers(engine: Engine) -> None:
    both = [(0, STRONG)], [(0, STRONG)]
    assert settled(engine, connection(ports=(40000, 9092)), *both) == Role.A_REQUESTS
    assert settled(engine, connection(ports=(9092, 40000)), *both, orders=(5, 5)) == Role.B_REQUESTS
    # Requests without a client_id that are not answered tell nothing where the other end says something.
    assert settled(engine, connection(), [(0, TWICE)], [(0, TWICE)], final=True) == Role.UNKNOWN


@pytest.mark.parametrize("ports", [(40000, 9092), (9092, 40000)])
def test_a_request_without_a_client_id_needs_another_or_its_answer(engine: Engine, ports: tuple[int, int]) -> None:
    assert settled(engine, connection(ports=ports), [(0, WEAK)], final=True) == Role.UNKNOWN
    # Another one counts where there will be no answers.
    assert settled(engine, connection(ports=ports), [(0, TWICE)]) == Role.UNKNOWN
    assert settled(engine, connection(ports=ports), [(0, TWICE)], final=True) == Role.A_REQUESTS
    # Across two segments as well, and with what follows cut off: that may be anything.
    parts = [(0, TWICE[:20]), (20, TWICE[20:])]
    assert settled(engine, connection(ports=ports), parts, final=True) == Role.A_REQUESTS
    assert settled(engine, connection(ports=ports), [(0, TWICE[:-1])], final=True) == Role.UNKNOWN
    assert settled(engine, connection(ports=ports), [(0, WEAK)], [(0, ANSWER)]) == Role.A_REQUESTS
    assert settled(engine, connection(ports=ports), [(0, WEAK)], [(0, TEXT), (18, ANSWER)]) == Role.A_REQUESTS
    for other in (sized(metadata_answer(8)), sized(metadata_answer(7) + b"\0"), ANSWER[:-1], TEXT):
        assert settled(engine, connection(ports=ports), [(0, WEAK)], [(0, other)], final=True) == Role.UNKNOWN
    assert settled(engine, connection(ports=ports), [(0, STRONG)]) == Role.A_REQUESTS


def test_an_empty_client_id_is_none(engine: Engine) -> None:
    empty = sized(metadata(7, ""))
    assert settled(engine, connection(), [(0, empty)], final=True) == Role.UNKNOWN
    assert settled(engine, connection(), [(0, empty)], [(0, ANSWER)]) == Role.A_REQUESTS
    twice = [(0, empty + sized(metadata(8, "")))]
    assert settled(engine, connection(), twice) == Role.UNKNOWN
    assert settled(engine, connection(), twice, final=True) == Role.A_REQUESTS


def test_the_answer_settles_the_role_where_that_is_what_tells_it(engine: Engine) -> None:
    known = connection()
    b = [(0, ANSWER[:9]), (9, ANSWER[9:]), (len(ANSWER), ANSWER)]
    assert settled(engine, known, [(0, WEAK)], b, orders=[3, 5, 8, 9]) == Role.A_REQUESTS
    assert known["settled_order"][0] == 8


def test_responses_alone_are_told_by_three_in_a_row(engine: Engine) -> None:
    answers = [sized(metadata_answer(number)) for number in range(7, 11)]
    for side, role in ((0, Role.B_REQUESTS), (1, Role.A_REQUESTS)):
        for opener in (-1, 1 - side):
            for count in range(4):
                both: list[Run] = [[], []]
                both[side] = [(0, b"".join(answers[:count]))]
                found = settled(engine, connection(opener=opener), *both, final=True)
                assert found == (role if count >= 3 else Role.UNKNOWN)
        # He who opened the connection sends no responses.
        both[side] = [(0, b"".join(answers))]
        assert settled(engine, connection(opener=side), *both, final=True) == Role.UNKNOWN
    # Ids that do not go on, a size that is wrong, and the other direction is there.
    assert settled(engine, connection(), [], [(0, answers[0] * 3)], final=True) == Role.UNKNOWN
    assert settled(engine, connection(), [], [(0, b"".join(answers[2::-1]))], final=True) == Role.UNKNOWN
    assert settled(engine, connection(), [], [(0, answers[0] + answers[1][:-1] + answers[2])]) == Role.UNKNOWN
    assert settled(engine, connection(), [(0, TEXT)], [(0, b"".join(answers))]) == Role.UNKNOWN


def test_a_response_tells_by_itself_at_the_end_if_it_is_of_one_api_only(engine: Engine) -> None:
    entries = b"".join(struct.pack(">hhh", api, 0, 7) for api in range(12))
    versions = sized(response(7, struct.pack(">hi", 0, 12) + entries))
    for opener in (-1, 0):
        assert settled(engine, connection(opener=opener), [], [(0, versions)]) == Role.UNKNOWN
        assert settled(engine, connection(opener=opener), [], [(0, versions)], final=True) == Role.A_REQUESTS
    # One that is short, that has an id below 0, or that is not whole.
    for answer in (ANSWER, sized(response(-7, versions[8:])), versions[:-1]):
        assert settled(engine, connection(), [], [(0, answer)], final=True) == Role.UNKNOWN
    # A client that began with something damaged, but not with text.
    begins = directions(start=0)
    assert settled(engine, connection(opener=0), [(0, bytes(20))], [(0, versions)], streams=begins) == Role.A_REQUESTS
    # Zeros may stand for any bytes that were lost: then the answer does not decide it either.
    assert settled(engine, connection(opener=0), [(0, bytes(20))], [(0, TEXT)], streams=begins) == Role.UNKNOWN
    assert settled(engine, connection(opener=0), [(0, b"\xff" * 20)], [(0, TEXT)], streams=begins) == Role.OTHER
    assert settled(engine, connection(opener=0), [(0, TEXT)], [(0, versions)], streams=begins) == Role.OTHER


def test_a_client_id_that_the_snapshot_length_cut_off_is_enough(engine: Engine) -> None:
    long = sized(metadata(7, "n" * 37))
    for end in range(15, len(long)):
        # Lost bytes behind it, or the end of the capture.
        assert settled(engine, connection(), [(0, long[:end]), (end, len(long) - end)]) == Role.A_REQUESTS
        assert settled(engine, connection(), [(0, long[:end])], final=True) == Role.A_REQUESTS
        assert settled(engine, connection(), [(0, long[:end])]) == Role.UNKNOWN
    assert settled(engine, connection(), [(0, long[:14])], final=True) == Role.UNKNOWN


def test_a_whole_body_tells_and_not_a_header(engine: Engine) -> None:
    for body in (bytes(3), bytes(5), b"\0\0\0\x01", b"\x7f\0\0\0", b"\xff\xff\xff\xfe"):
        wrong = sized(request(3, 0, 7, body))
        assert settled(engine, connection(), [(0, wrong)], final=True) == Role.UNKNOWN
        # A client that begins with it is one of Kafka if its next request is right; and librdkafka leaves bytes over,
        # which an answer tells.
        begins = {"streams": directions(start=0), "final": True}
        assert settled(engine, connection(opener=0), [(0, wrong)], **begins) == Role.UNKNOWN
        if body == bytes(5):
            assert settled(engine, connection(opener=0), [(0, wrong)], [(0, ANSWER)], **begins) == Role.A_REQUESTS
        assert settled(engine, connection(opener=0), [(0, wrong), (len(wrong), STRONG)], **begins) == Role.A_REQUESTS
        # Without a client_id nothing tells it either, unless another request follows: it was damaged then.
        nameless = sized(request(3, 0, 7, body, None))
        assert settled(engine, connection(opener=0), [(0, nameless)], **begins) == Role.UNKNOWN
        # It may be as large as its bytes are many. What is no header of a request is no damaged one.
        for first, role in ((nameless, Role.UNKNOWN), (b"\xff" * len(nameless), Role.OTHER)):
            much = [(0, first), (len(first), bytes(5000))]
            assert settled(engine, connection(opener=0), much, **begins) == role
        a = [(0, nameless), (len(nameless), STRONG)]
        assert settled(engine, connection(opener=0), a, **begins) == Role.A_REQUESTS


@pytest.mark.wide
def test_what_is_held_is_looked_at_again_only_with_something_new(engine: Engine) -> None:
    for first_order, role in ((6, Role.UNKNOWN), (5, Role.A_REQUESTS)):
        found = settled(engine, connection(), [(0, STRONG)], orders=[5], first_order=first_order)
        assert found == role
    assert settled(engine, connection(), [(0, STRONG)], orders=[5], first_order=6, final=True) == Role.A_REQUESTS
    closed = connection(closed=1, closed_order=6)
    assert settled(engine, closed, [(0, STRONG)], orders=[5], first_order=6, now=6) == Role.A_REQUESTS


def test_a_role_is_settled_by_the_piece_that_told_it(engine: Engine) -> None:
    known = connection(settled_order=-1)
    cut = STRONG[:12], STRONG[12:]
    assert settled(engine, known, [(0, b"no request")], orders=[3]) == Role.UNKNOWN
    a = [(0, b"no request"), (10, cut[0]), (22, cut[1]), (10 + len(STRONG), STRONG)]
    assert settled(engine, known, a, orders=[3, 5, 8, 9]) == Role.A_REQUESTS
    assert known["settled_order"][0] == 8


def test_a_header_that_a_segment_cuts_is_put_together_unless_something_is_missing(engine: Engine) -> None:
    whole = [(k, STRONG[k : k + 1]) for k in range(len(STRONG))]
    assert settled(engine, connection(), whole, streams=directions(start=0)) == Role.A_REQUESTS
    assert settled(engine, connection(), whole, final=True) == Role.A_REQUESTS
    assert settled(engine, connection(), whole[:13]) == Role.UNKNOWN
    assert settled(engine, connection(), [*whole[:8], *whole[9:]]) == Role.UNKNOWN
    assert settled(engine, connection(), [*whole[:8], (8, 1), *whole[9:]]) == Role.UNKNOWN


def test_a_role_that_is_known_does_not_change(engine: Engine) -> None:
    for role in (Role.B_REQUESTS, Role.OTHER, Role.ENCRYPTED):
        known = connection(role=role, first_id=7)
        assert settled(engine, known, [(0, STRONG)], [(0, TEXT)]) == role


# What is not Kafka


def test_a_client_that_does_not_begin_with_a_request_is_something_else(engine: Engine) -> None:
    from_start = directions(start=0)
    assert settled(engine, connection(opener=0), [(0, TEXT)], streams=from_start) == Role.OTHER
    # Without the beginning of the stream, or without knowing who opened it, it may become Kafka yet.
    assert settled(engine, connection(opener=0), [(50, TEXT)], streams=directions(start=0)) == Role.UNKNOWN
    assert settled(engine, connection(), [(0, TEXT)], streams=directions(start=0)) == Role.UNKNOWN


@pytest.mark.parametrize("side", [0, 1])
def test_tls_is_seen_at_the_beginning_of_a_stream_or_segment(engine: Engine, side: int) -> None:
    both: list[Run] = [[], []]
    both[side] = [(0, HELLO)]
    assert settled(engine, connection(), *both) == Role.ENCRYPTED
    both[side] = [(0, TEXT), (len(TEXT), HELLO)]
    assert settled(engine, connection(), *both) == Role.UNKNOWN


@pytest.mark.parametrize(
    ("head", "is_tls"),
    [
        (b"\x14\x03\x00\x00\x01", True),
        (b"\x17\x03\x04\x48\x00", True),
        (b"\x13\x03\x01\x00\x10", False),
        (b"\x18\x03\x01\x00\x10", False),
        (b"\x16\x02\x01\x00\x10", False),
        (b"\x16\x03\x05\x00\x10", False),
        (b"\x16\x03\x01\x00\x00", False),
        (b"\x16\x03\x01\x48\x01", False),
        (b"\x16\x03\x01\x00", False),
    ],
)
def test_the_header_of_a_tls_record_has_a_type_a_version_and_a_length(
    engine: Engine, head: bytes, is_tls: bool
) -> None:
    assert settled(engine, connection(), [(0, head)]) == (Role.ENCRYPTED if is_tls else Role.UNKNOWN)


def test_tls_is_seen_on_ports_that_were_asked_for_too(engine: Engine) -> None:
    assert not readable(engine, connection(role=Role.A_REQUESTS), [], [(0, HELLO)])
    assert not readable(engine, connection(role=Role.A_REQUESTS), [(0, HELLO)])
    assert readable(engine, connection(role=Role.A_REQUESTS), [(0, STRONG)], [(0, ANSWER)])


# GSSAPI


def test_a_gssapi_token_in_front_makes_tokens_of_what_follows(engine: Engine) -> None:
    for known in (connection(), connection(opener=0)):
        assert settled(engine, known, [(0, GSSAPI)], [(0, ANSWER)], streams=directions(start=0)) == Role.A_REQUESTS
        assert readable(engine, known, [(0, GSSAPI)], start=0)
        assert known["raw_tokens"][0] == 1
    # The token of an end that asks tells the role wherever the capture begins.
    assert settled(engine, connection(), [(100, GSSAPI)], streams=directions(start=0)) == Role.A_REQUESTS


KERBEROS = bytes.fromhex("06092a864886f712010202")


def test_a_token_of_kerberos_tells_itself_where_no_boundary_is_known(engine: Engine) -> None:
    def said(data: bytes) -> int:
        return int(engine(is_kerberos)(np.frombuffer(data, np.uint8), 0, len(data)))

    for body in (b"", bytes(40), bytes(200), bytes(600), bytes(70_000)):
        rest = KERBEROS + body
        size = len(rest).to_bytes(3, "big").lstrip(b"\0")
        length = size if len(rest) < 128 else bytes([0x80 | len(size)]) + size
        token = sized(b"\x60" + length + rest)
        assert said(token) == YES
        assert said(token + b"more") == YES
        head = len(token) - len(body)
        assert [said(token[:n]) for n in range(head)] == [NEED_MORE] * head
        for at in range(head):
            damaged = bytearray(token)
            damaged[at] ^= 1
            assert said(bytes(damaged)) == NO, at
    assert said(GSSAPI) == NO
    assert said(b"\0\0\0\x0d\x60\x84\0\0\0\x0b" + KERBEROS) == NO


def test_a_token_of_the_broker_is_none_where_ports_were_given(engine: Engine) -> None:
    known = connection(role=Role.A_REQUESTS)
    assert readable(engine, known, [], [(0, GSSAPI)], start=0)
    assert known["raw_tokens"][0] == 0


@pytest.mark.parametrize(
    ("token", "found"),
    [
        (b"\x60\x20\x06\x09" + bytes(40), True),
        (b"\x60\x81\x90\x06\x09" + bytes(40), True),
        (b"\x60\x82\x02\x58\x06\x09" + bytes(40), True),
        (b"\x60\x83\x00\x02\x58\x06\x09" + bytes(40), True),
        (b"\x60\x84\x00\x00\x02\x58\x06\x09" + bytes(40), False),
        (b"\x60\x20\x07\x09" + bytes(40), False),
        (b"\x61\x20\x06\x09" + bytes(40), False),
        (b"\x60\x05\x06\x00\x00\x00\x00", False),
    ],
)
def test_a_gssapi_token_is_a_der_length_and_an_oid(engine: Engine, token: bytes, found: bool) -> None:
    assert settled(engine, connection(), [(0, sized(token))]) == (Role.A_REQUESTS if found else Role.UNKNOWN)


# What is let go


def test_a_little_is_held_of_a_connection_of_unknown_kind_and_the_rest_let_go(engine: Engine) -> None:
    noise = [(at, b"\xff" * 1000) for at in range(0, 3 * UNDECIDED, 1000)]
    streams = directions()
    assert settled(engine, connection(), noise[: UNDECIDED // 1000], streams=streams) == Role.UNKNOWN
    assert (streams["next"][0], streams["skipped"][0]) == (0, 0)
    # The latest of it are left, up to where a piece begins; whether in one window or in many.
    wanted = 2 * (UNDECIDED - LEFT) // 1000 * 1000
    settled(engine, connection(), noise[:130], [(0, b"y")], streams=streams)
    assert streams["next"].tolist() == streams["skipped"].tolist() == [wanted, 0]
    assert streams["synced"].tolist() == [0, -1]
    streams, known = directions(), connection()
    for k in range(130):
        held = [one for one in noise[: k + 1] if one[0] + 1000 > streams["next"][0]]
        orders = range(k + 1 - len(held), k + 1)
        settled(engine, known, held, streams=streams, orders=orders, first_order=k)
    assert (streams["next"][0], streams["skipped"][0]) == (wanted, wanted)
    assert known["looks"][0] == 130


# The header of a request


def plausible(engine: Engine, data: bytes, end: int | None = None) -> int:
    return int(
        engine(plausible_request)(
            buffer(b"before" + data), 6, 6 + (len(data) if end is None else end), api_table().apis
        )
    )


def header(api: int = 3, version: int = 0, *, size: int = 18, client: int = 4, name: bytes = b"test") -> bytes:
    return struct.pack(">ihhih", size, api, version, 7, client) + name + bytes(4)


def test_a_request_is_told_as_soon_as_its_client_id_is_there(engine: Engine) -> None:
    data = header()
    said = [plausible(engine, data, end) for end in range(len(data) + 1)]
    assert said == [NEED_MORE] * 18 + [YES] * 5


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (header(size=LARGEST_FRAME), YES),
        (header(size=LARGEST_FRAME + 1), NO),
        (header(size=-1), NO),
        (header(size=7), NO),
        (header(size=9, client=-1), NO),
        (header(size=10, client=-1), YES),
        (header(size=10, client=0), YES),
        (header(size=10, client=1), NO),
        (header(size=13, client=4), NO),
        (header(size=14, client=4), YES),
        (header(client=-2), NO),
        (header(size=LONGEST_CLIENT_ID + 10, client=LONGEST_CLIENT_ID, name=b"n" * 50)[:-4], NEED_MORE),
        (header(size=LONGEST_CLIENT_ID + 11, client=LONGEST_CLIENT_ID + 1, name=b"n" * 50)[:-4], NO),
        (header(name=b"te\x1ft"), NO),
        (header(name=b"te\x7ft"), NO),
        (header(name="té".encode() + b" "), YES),
        (header(api=-1), NO),
        (header(api=3, version=-1), NO),
        (header(api=3, version=14), NO),
        (header(api=ApiKey.API_VERSIONS, version=63), YES),
        (header(api=ApiKey.API_VERSIONS, version=64), NO),
        (header(api=ApiKey.CONTROLLED_SHUTDOWN, size=12), YES),
        (header(api=ApiKey.CONTROLLED_SHUTDOWN, size=13), NO),
        (header(api=ApiKey.CONTROLLED_SHUTDOWN, size=12)[:12], YES),
        (header(api=ApiKey.CONTROLLED_SHUTDOWN, size=12)[:11], NEED_MORE),
    ],
)
def test_the_bounds_of_a_plausible_request(engine: Engine, data: bytes, said: int) -> None:
    assert plausible(engine, data) == said


def test_every_version_of_every_api_is_plausible_and_the_next_is_not(engine: Engine) -> None:
    apis = api_table().apis
    known = np.flatnonzero(apis["latest"] >= 0).tolist()
    assert len(known) > 70
    for api in known:
        for version in range(int(apis["latest"][api]) + 1):
            if (api, version) != (ApiKey.CONTROLLED_SHUTDOWN, 0):
                assert plausible(engine, sized(request(api, version, 1))) == YES
        newer = sized(request(api, int(apis["latest"][api]) + 1, 1))
        assert plausible(engine, newer) == (YES if api == ApiKey.API_VERSIONS else NO)
    for api in (len(apis), 32767, *(set(range(len(apis))) - set(known))):
        assert plausible(engine, sized(request(api, 0, 1))) == NO


def test_controlled_shutdown_has_a_client_id_from_version_1_on(engine: Engine) -> None:
    for version in (1, 2, 3):
        made = sized(request(7, version, 5, bytes(12)))
        assert engine(plausible_request)(buffer(made), 0, len(made), api_table().apis) == YES
    # Version 0 has none, and 12 bytes in all.
    for size, verdict in ((12, YES), (13, NO), (11, NO)):
        made = sized(struct.pack(">hhi", 7, 0, 5) + bytes(size - 8))
        assert engine(plausible_request)(buffer(made), 0, len(made), api_table().apis) == verdict
