"""What is not Kafka gives no rows unless its ports were named, and never a message that is ``ok``.

The protocols are written from their specifications, as far as sessions look on the wire: many of them frame their
messages as Kafka does, by a size of four bytes.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest
from fed_in_parts import fed, packet_ends
from invented_protocols import designed
from made_captures import brief, exchange, read
from packets import Connection, Packet, metadata, metadata_answer, pcap, produce, request, sized

from kwire.kernels.layouts import Status

Talk = list[tuple[int, bytes]]
"""Who speaks (0 he who opened the connection), and what."""


def _text(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def zookeeper() -> Talk:
    """ConnectRequest: protocol version 0, zxid, timeout, session, password of 16 bytes, read-only; then requests with a
    header of xid and type. All with a size of four bytes in front."""
    talk = [
        (0, sized(struct.pack(">iqiq", 0, 0, 18000, 0) + _text(bytes(16)) + b"\0")),
        (1, sized(struct.pack(">iiq", 0, 18000, 0x100003A5C7D0000) + _text(bytes(range(16))) + b"\0")),
    ]
    for xid in range(1, 20):
        talk.append((0, sized(struct.pack(">ii", xid, 4) + _text(b"/brokers/ids/%d" % xid) + b"\0")))
        talk.append((1, sized(struct.pack(">iqi", xid, 50 + xid, 0) + _text(b"{}") + bytes(68))))
        talk.append((0, sized(struct.pack(">ii", -2, 11))))
        talk.append((1, sized(struct.pack(">iqi", -2, 50 + xid, 0))))
    return talk


def http1() -> Talk:
    get = b"GET /v1/x HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n"
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nContent-Type: application/octet-stream\r\n\r\n" + bytes(12)
    return [(0, get), (1, answer)] * 5


def http2() -> Talk:
    """RFC 9113: the preface; frames with a length of three bytes, a type, flags and a stream."""

    def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
        return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body

    head = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, struct.pack(">HI", 3, 100))
    talk = [(0, head), (1, frame(4, 0, 0) + frame(4, 1, 0))]
    for stream in range(1, 20, 2):
        talk.append((0, frame(1, 5, stream, b"\x82\x86\x84\x41\x8a" + bytes(20)) + frame(8, 0, 0, b"\0\0\x10\0")))
        talk.append((1, frame(1, 4, stream, b"\x88") + frame(0, 1, stream, bytes(30)) + frame(6, 0, 0, bytes(8))))
    return talk


def redis() -> Talk:
    return [
        (0, b"*2\r\n$3\r\nGET\r\n$5\r\nhello\r\n"),
        (1, b"$5\r\nworld\r\n"),
        (0, b"PING\r\n"),
        (1, b"+PONG\r\n"),
    ] * 5


def postgres() -> Talk:
    """Startup and SSLRequest have a size of four bytes that counts itself; later messages a type in front of it."""
    startup = struct.pack(">i", 196608) + b"user\0kwire\0database\0x\0\0"

    def message(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack(">i", len(body) + 4) + body

    talk = [(0, struct.pack(">ii", 8, 80877103)), (1, b"N"), (0, struct.pack(">i", len(startup) + 4) + startup)]
    talk.append((1, message(b"R", bytes(4)) + message(b"K", struct.pack(">ii", 7, 9)) + message(b"Z", b"I")))
    for _ in range(5):
        talk.append((0, message(b"Q", b"select 1\0")))
        talk.append((1, message(b"D", struct.pack(">hi", 1, 1) + b"1") + message(b"Z", b"I")))
    return talk


def nats() -> Talk:
    return [
        (1, b'INFO {"server_id":"x","version":"2.10","max_payload":1048576}\r\n'),
        (0, b'CONNECT {"verbose":false}\r\nPING\r\n'),
        (1, b"PONG\r\n"),
        *[(0, b"PUB a 11\r\nHello NATS!\r\n"), (1, b"MSG a 1 11\r\nHello NATS!\r\n")] * 5,
    ]


def pulsar() -> Talk:
    """A size of the whole, a size of the command, a protobuf BaseCommand (field 1: its type)."""

    def command(kind: int, body: bytes) -> bytes:
        made = bytes([8, kind, 8 * kind + 2 & 0x7F, len(body)]) + body
        return sized(struct.pack(">i", len(made)) + made)

    talk = [(0, command(2, b"\x0a\x052.1.0\x20\x13")), (1, command(3, b"\x0a\x062.10.0\x10\x13"))]
    for number in range(8):
        talk.append((0, command(18, b"") + command(6, bytes([8, 1, 16, number]))))
        talk.append((1, command(19, b"") + command(7, bytes([8, 1, 16, number, 26, 4, 8, 1, 16, 2]))))
    return talk


def dns() -> Talk:
    """RFC 1035, 4.2.2: a size of two bytes. An answer to a question of five names or so begins like a small size."""
    talk: Talk = []
    for number in range(20):
        question = b"\7example\3com\0" + struct.pack(">HH", 1, 1)
        head = struct.pack(">HHHHHH", number, 0x0100, 1, 0, 0, 0)
        answer = struct.pack(">HHHHHH", number, 0x8180, 1, 1, 0, 0) + question
        answer += struct.pack(">HHHIH", 0xC00C, 1, 1, 60, 4) + bytes(4)
        talk.append((0, struct.pack(">H", len(head + question)) + head + question))
        talk.append((1, struct.pack(">H", len(answer)) + answer))
    return talk


def rsocket() -> Talk:
    """A size of three bytes, a stream, and six bits of type with ten of flags; the SETUP frame first."""

    def frame(stream: int, kind: int, flags: int, body: bytes = b"") -> bytes:
        made = struct.pack(">IH", stream, kind << 10 | flags) + body
        return struct.pack(">I", len(made))[1:] + made

    kinds = b"\x18application/octet-stream"
    talk = [(0, frame(0, 1, 0, struct.pack(">HHII", 1, 0, 20000, 90000) + kinds + kinds))]
    for stream in range(1, 20, 2):
        talk.append((0, frame(stream, 4, 0, b"hello") + frame(0, 3, 0x80, bytes(8))))
        talk.append((1, frame(stream, 10, 0x60, b"world") + frame(0, 3, 0, bytes(8))))
    return talk


def sized_noise(seed: int) -> Talk:
    """A protocol with a size of four bytes and small numbers behind it, which may look like API, version and id."""
    chance = random.Random(seed)
    return [
        (
            k % 2,
            b"".join(
                sized(bytes(chance.choice([0, 0, 0, 1, 2, 3, 18, 255]) for _ in range(chance.randint(1, 40))))
                for _ in range(chance.randint(1, 4))
            ),
        )
        for k in range(20)
    ]


OTHERS = [zookeeper, http1, http2, redis, postgres, nats, pulsar, dns, rsocket]


def spoken(talk: Talk, *, opened: bool = True, first: int = 0, port: int = 40000, mss: int = 1460) -> Connection:
    """A connection that carries this from message ``first`` on."""
    connection = Connection(client=("10.0.0.1", port), broker=("10.0.0.9", 2181), mss=mss)
    if opened:
        connection.open()
    for who, data in talk[first:]:
        _ = connection.send_raw(data) if who == 0 else connection.answer_raw(data)
    return connection


@pytest.mark.parametrize("protocol", OTHERS)
@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("mss", [1460, 9])
def test_another_protocol_gives_no_rows(protocol: Callable[[], Talk], opened: bool, mss: int) -> None:
    talk = protocol()
    for first in (0,) if opened else (0, 1, 2, 3):
        packets = spoken(talk, opened=opened, first=first, mss=mss).packets
        assert read(pcap(packets)) == []
    # One direction alone.
    packets = spoken(talk, opened=opened, mss=mss).packets
    for side in (40000, 2181):
        assert read(pcap([one for one in packets if one.src[1] == side])) == []


@pytest.mark.parametrize("protocol", OTHERS)
def test_another_protocol_on_a_port_that_was_named_has_no_good_message(protocol: Callable[[], Talk]) -> None:
    """Its headers may be those of requests: then a body says that it is none."""
    found = read(pcap(spoken(protocol()).packets), "messages", ports=[2181])
    assert "ok" not in {row["status"] for row in found}


@pytest.mark.parametrize("protocol", OTHERS)
def test_kafka_beside_another_protocol_is_read(protocol: Callable[[], Talk]) -> None:
    other = spoken(protocol(), opened=False, first=1).packets
    kafka = exchange(Connection(client=("10.0.0.1", 40001)).open(), 3).packets
    mixed = sorted([*other, *kafka], key=lambda one: one.time)
    alone = brief(read(pcap(kafka)))
    assert len(alone) == 6
    assert brief(read(pcap(mixed))) == alone


@pytest.mark.parametrize("opened", [True, False])
def test_small_numbers_with_a_size_in_front_are_no_kafka(opened: bool) -> None:
    for seed in range(150):
        assert read(pcap(spoken(sized_noise(seed), opened=opened).packets)) == [], seed


def good_rows(packets: list[Packet], client: str = "10.0.0.1") -> list[tuple[object, ...]]:
    rows = read(pcap(sorted(packets, key=lambda one: one.time)))
    return [
        (row["broker_host"], row["api_name"], row["status"])
        for row in rows
        if row["status"] in ("ok", "trailing") and client in (row["client_host"], row["broker_host"])
    ]


def known_broker(host: str) -> list[Packet]:
    """What says, earlier, that there is a broker."""
    return exchange(Connection(("10.9.9.9", 50_000), (host, 7000), time=1_600_000_000_000_000_000).open(), 3).packets


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("behind", [struct.pack(">i", 4) + b"node", b"\0\0\0\1\0\0\0\7", b"\0\4node\0\1\0\0\0\7"])
def test_an_id_of_8_bytes_and_zeros_are_no_produce_request(known: bool, opened: bool, behind: bytes) -> None:
    """Produce v0 begins so: acks that there are not, or no topics."""
    connection = Connection(broker=("10.0.0.9", 7000))
    if opened:
        connection.open()
    for number in range(12):
        connection.send(struct.pack(">q", number) + behind + bytes(4))
        connection.answer(struct.pack(">qi", number, 2) + b"ok" + bytes(4))
    before = known_broker("10.0.0.9") if known else []
    assert good_rows([*before, *connection.packets]) == []


@pytest.mark.parametrize("protocol", OTHERS)
@pytest.mark.parametrize("opened", [True, False])
def test_another_protocol_at_the_address_of_a_broker_has_no_good_frame(
    protocol: Callable[[], Talk], opened: bool
) -> None:
    connection = Connection(broker=("10.0.0.9", 7000))
    if opened:
        connection.open()
    for who, data in protocol():
        _ = connection.send_raw(data) if who == 0 else connection.answer_raw(data)
    assert good_rows([*known_broker("10.0.0.9"), *connection.packets]) == []


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("mss", [1460, 7])
@pytest.mark.parametrize("opened", [True, False])
def test_a_protocol_that_spells_a_request_at_the_address_of_a_broker(opened: bool, mss: int) -> None:
    """A type of 2 bytes, a number of 6 and an empty name are ListGroups v0; its answers are none of that."""
    known = known_broker("10.0.0.9")
    other = Connection(broker=("10.0.0.9", 7000), mss=mss)
    if opened:
        other.open()
    for number in range(4):
        other.send_raw(sized(struct.pack(">hqh", 16, number, 0)[:10])).answer_raw(sized(struct.pack(">hq", 16, number)))
    # The end of one direction, of both, or of nothing.
    for packets in (other.packets, other.close().packets, other.packets[:-1]):
        assert good_rows([*known, *packets]) == []
        data = pcap([*known, *packets])
        whole = fed(data)
        assert fed(data, packet_ends(data)) == whole
        assert fed(data, packet_ends(data), handed_on=True) == whole


@pytest.mark.parametrize("answer", [b"", b"\0\0", b"\0\0\0\0\0\1", b"\0\0\0\0\0\0\0"])
def test_an_answer_with_the_id_of_a_request_has_to_be_one(answer: bytes) -> None:
    """Of ListGroups v0, without a client_id, whose response is an error and how many groups there are."""
    other = Connection(broker=("10.0.0.9", 7000)).open().send(request(16, 0, 7, client=None))
    other.answer(struct.pack(">i", 7) + answer).close()
    assert good_rows([*known_broker("10.0.0.9"), *other.packets]) == []


def test_protocols_at_the_address_of_a_broker_have_no_good_frame() -> None:
    """Those of these seeds spell requests without a client_id, and had some."""
    found = (1247, 2226, 2972, 4355, 4864, 5485, 5985, 8088, 8552, 10377, 10472, 10537, 13024, 14266, 15373, 16199,
             16584, 17875, 18463, 19807)  # fmt: skip
    packets = []
    for k, seed in enumerate(found):
        packets += [*known_broker(f"10.2.{k}.1"), *designed(seed, f"10.1.{k}.1", f"10.2.{k}.1").packets]
    rows = read(pcap(sorted(packets, key=lambda one: one.time)))
    good = {row["client_host"] for row in rows if row["status"] in ("ok", "trailing")}
    assert good == {"10.9.9.9"}


def test_protocols_that_nobody_has_designed_have_no_good_frame() -> None:
    """Those of the seeds in front had some."""
    found = (
        33,
        340,
        797,
        1027,
        1166,
        1985,
        3247,
        3330,
        3755,
        4729,
        5190,
        6226,
        7157,
        10117,
        12916,
        13771,
        15373,
        15949,
    )
    packets = []
    for k, seed in enumerate([*found, *range(20_000, 20_230)]):
        packets += designed(seed, f"10.1.{k}.1", f"10.2.{k}.1").packets
    rows = read(pcap(sorted(packets, key=lambda one: one.time)))
    assert [row["client_host"] for row in rows if row["status"] in ("ok", "trailing")] == []


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("seed", [33, 1985, 3755, 12916, 15373, 1247, 4864, 10537, 13024, 5, 68, 106, 167, 221])
def test_protocols_that_nobody_has_designed_look_the_same_in_any_window(seed: int) -> None:
    for before in ([], known_broker("10.0.0.9")):
        data = pcap([*before, *designed(seed).packets])
        whole = fed(data)
        assert fed(data, packet_ends(data)) == whole
        assert fed(data, range(700, len(data), 700), handed_on=True) == whole


@pytest.mark.parametrize("client", [None, "", "test"])
@pytest.mark.parametrize("acks", [-1, 0, 1])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_producers_of_old_clients_are_recognised(client: str | None, acks: int, version: int) -> None:
    """Where they get no answer, at the end."""
    connection = Connection().open()
    for number in range(1, 4):
        body = produce(number, acks, b"records")[14:]
        connection.send(request(0, version, number, body, client))
        if acks:
            answer = struct.pack(">iih1siihq", number, 1, 1, b"t", 1, 0, 0, -1)
            connection.answer(answer + {0: b"", 1: bytes(4), 2: bytes(12)}[version])
    data = pcap(connection.packets)
    whole = fed(data)
    assert {Status(one.status) for one in whole} == {Status.OK}
    assert len(whole) == (6 if acks else 3)
    assert fed(data, packet_ends(data)) == whole


@pytest.mark.parametrize("acks", [2, -2, 30])
def test_acks_that_brokers_refuse_do_not_tell_and_are_rows_where_something_else_does(acks: int) -> None:
    """Brokers before 0.9 took any number above 1."""
    alone = Connection().open().send(produce(1, acks), produce(2, acks))
    assert read(pcap(alone.packets)) == []
    told = Connection().open().send(metadata(1)).answer(metadata_answer(1)).send(produce(2, acks))
    assert brief(read(pcap(told.packets)))[2:] == [("request", "Produce", 2, "ok")]
    at_once = Connection().open().send(produce(1, acks), metadata(2)).answer(metadata_answer(2))
    later = Connection().open().send(produce(1, acks)).send(metadata(2)).answer(metadata_answer(2))
    for connection in (at_once, later):
        assert ("request", "Produce", 1, "ok") in brief(read(pcap(connection.packets)))


@pytest.mark.parametrize("mss", [1460, 16, 9, 1])
def test_what_begins_a_connection_to_a_known_broker_is_read_in_segments_of_any_size(mss: int) -> None:
    known = exchange(count=3)
    times = known.time, known.time + 1000
    short = Connection(("10.0.0.1", 40_001), time=times[0], mss=mss, step=1000).open()
    short.send(request(18, 0, 1, client=None)).answer(struct.pack(">ihi", 1, 0, 0))
    kerberos = Connection(("10.0.0.1", 40_002), time=times[1], mss=mss, step=1000).open()
    token = bytes.fromhex("60820010 06092a864886f712010202") + b"token" * 6
    kerberos.send(token).answer(b"answer").send(request(18, 0, 1, client=None)).answer(struct.pack(">ihi", 1, 0, 0))
    data = pcap(sorted([*known.packets, *short.packets, *kerberos.packets], key=lambda one: one.time))
    whole = fed(data)
    assert fed(data, packet_ends(data)) == whole
    found = [Status(one.status) for one in whole if one.client[1] == 40_001]
    assert found == [Status.OK] * 2
    found = [Status(one.status) for one in whole if one.client[1] == 40_002]
    assert sorted(found) == [Status.OK] * 2 + [Status.SASL] * 2
