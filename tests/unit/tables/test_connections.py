"""The table ``connections``: who, what was said, what is missing, how it ended; the same in windows of any size."""

from __future__ import annotations

import io
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_captures import exchange
from packets import (
    ACK,
    Connection,
    Packet,
    link,
    metadata,
    metadata_answer,
    pcap,
    produce,
    produce_answer,
)
from valid_batches import valid

from kwire import capture
from kwire.capture.tracker import Tracker
from kwire.tables import connections, table
from kwire.tables.connections import MOST_CLIENT_IDS

GOLDEN = Path(__file__).parents[2] / "golden"
Row = dict[str, Any]


def rows(data: bytes, **options: Any) -> list[Row]:
    found = valid(capture.read(io.BytesIO(data), "connections", **options))
    return [row for batch in found for row in batch.to_pylist()]


def one(packets: list[Packet], **options: Any) -> Row:
    (row,) = rows(pcap(packets), **options)
    return row


# Packets


def test_what_each_end_sent_and_when() -> None:
    packets = exchange(Connection().open(), 2).close().packets
    row = one(packets)
    assert (row["client_host"], row["client_port"], row["broker_host"], row["broker_port"]) == (
        "10.0.0.1", 40000, "10.0.0.2", 9092,
    )  # fmt: skip
    by_client = [each for each in packets if each.src[1] == 40000]
    assert row["client_packets"] == len(by_client)
    assert row["broker_packets"] == len(packets) - len(by_client)
    assert row["client_bytes"] == sum(len(each.payload) for each in by_client)
    assert row["client_wire_bytes"] == sum(len(link(each)) for each in by_client)
    assert row["first_seen"].timestamp() * 1e9 == pytest.approx(packets[0].time, abs=1000)
    assert row["last_seen"].timestamp() * 1e9 == pytest.approx(packets[-1].time, abs=1000)
    assert row["handshake_ms"] == 2.0
    assert (row["opened_by"], row["status"], row["error"]) == ("client", "ok", None)
    assert (row["requests"], row["responses"], row["unanswered"]) == (2, 2, 0)


def data_packets(count: int = 8) -> list[Packet]:
    connection = Connection(mss=10).open()
    for number in range(count):
        connection.send(metadata(number)).answer(metadata_answer(number))
    return connection.packets


def counted(row: Row) -> tuple[int, ...]:
    names = ("repeats", "repeated_bytes", "late", "missing_bytes")
    return tuple(row[f"client_{name}"] for name in names)


def test_repeated_segments_are_counted_wherever_they_come() -> None:
    packets = data_packets()
    mine = [k for k, each in enumerate(packets) if each.src[1] == 40000 and each.payload]
    again = replace(packets[mine[3]], time=packets[-1].time)
    assert counted(one([*packets, again])) == (1, len(again.payload), 0, 0)
    assert counted(one([*packets, again, again])) == (2, 2 * len(again.payload), 0, 0)


def test_a_segment_that_comes_late_fills_its_hole() -> None:
    packets = data_packets()
    mine = [k for k, each in enumerate(packets) if each.src[1] == 40000 and each.payload]
    late = packets.pop(mine[3])
    assert counted(one(packets)) == (0, 0, 0, len(late.payload))
    assert counted(one([*packets, late])) == (0, 0, 1, 0)
    assert counted(one([*packets, late, late])) == (1, len(late.payload), 1, 0)
    # A part of it: the rest stays missing, the part that overlaps what was there is repeated.
    middle = replace(late, payload=late.payload[2:5], seq=late.seq + 2)
    assert counted(one([*packets, middle])) == (0, 0, 1, len(late.payload) - 3)


def test_of_many_holes_the_latest_are_remembered() -> None:
    connection = Connection(mss=10).open().send_raw(bytes(400))
    first, sent = connection.packets[:3], connection.packets[3:]
    # Every other segment is missing: 20 holes.
    assert counted(one([*first, *sent[1::2]])) == (0, 0, 0, 200)
    for late, expected in ((sent[38], (0, 0, 1, 190)), (sent[0], (1, 10, 0, 200))):
        assert counted(one([*first, *sent[1::2], late])) == expected


def test_what_the_capture_cuts_off_is_missing_and_so_is_what_was_only_acknowledged() -> None:
    connection = Connection(mss=1000).open().send_raw(bytes(500))
    cut = [replace(each) for each in connection.packets]
    data = pcap(cut, snaplen=100)
    (row,) = rows(data)
    captured = 100 - 54
    assert (row["client_bytes"], row["client_missing_bytes"]) == (500, 500 - captured)
    last = connection.packets[-1]
    answer = Packet(connection.broker, connection.client, 5001, b"", ACK, last.seq + 700, last.time)
    assert one([*connection.packets, answer])["client_missing_bytes"] == 200


@pytest.mark.parametrize(("further", "missing"), [(0, 0), (1, 0), (2, 2), (71, 71), (1 << 24, 1 << 24), (2 << 24, 0)])
def test_what_is_missing_at_the_end_is_that_of_the_gap_in_frames(further: int, missing: int) -> None:
    connection = exchange(Connection().open(), 1)
    last = connection.packets[-1]
    end = last.seq + len(last.payload)
    answer = Packet(connection.client, connection.broker, last.ack, b"", ACK, end + further, last.time)
    data = pcap([*connection.packets, answer])
    (row,) = rows(data)
    frames = [each for batch in capture.read(io.BytesIO(data), "frames") for each in batch.to_pylist()]
    gaps = [each["size"] for each in frames if each["status"] == "gap"]
    assert (row["broker_missing_bytes"], sum(gaps)) == (missing, missing)


def test_keep_alives_a_fin_and_what_follows_it_are_nothing_missing_or_repeated() -> None:
    connection = exchange(Connection().open(), 2)
    end = connection.packets[-2].seq + len(connection.packets[-2].payload)
    alive = Packet(connection.client, connection.broker, end - 1, b"\0", ACK, 0, connection.time)
    row = one([*connection.packets, alive])
    assert counted(row) == (0, 0, 0, 0)
    closed = connection.close().packets
    assert counted(one(closed)) == (0, 0, 0, 0)
    assert one(closed)["broker_missing_bytes"] == 0


# How it ended


def test_how_a_connection_ended_and_who_ended_it() -> None:
    def ended(packets: list[Packet]) -> tuple[str, str | None]:
        row = one(packets)
        return row["ended"], row["ended_by"]

    opened = exchange(Connection().open()).packets
    assert ended(opened) == ("open", None)
    closed = exchange(Connection().open()).close().packets
    assert ended(closed) == ("fin", "client")
    fins = [k for k, each in enumerate(closed) if each.flags & 1]
    assert ended(closed[: fins[0] + 1]) == ("half_closed", "client")
    assert ended(exchange(Connection().open()).reset().packets)[0] == "rst"
    again = exchange(Connection(client_isn=77_000_000, time=1_800_000_000_000_000_000).open()).packets
    first, second = rows(pcap([*opened, *again]))
    assert (first["ended"], second["ended"]) == ("reused", "open")


def test_a_refused_connection_has_no_round_trip() -> None:
    opened = Connection().open().packets[:1]
    refused = Packet(("10.0.0.2", 9092), ("10.0.0.1", 40000), 0, b"", 4 | ACK, opened[0].seq + 1, opened[0].time + 5)
    row = one([*opened, refused])
    assert (row["handshake_ms"], row["ended"], row["ended_by"], row["status"]) == (None, "rst", "broker", "unknown")


# What was said


def test_client_ids_and_apis_are_those_of_the_requests() -> None:
    connection = Connection().open()
    connection.send(metadata(1, "first")).answer(metadata_answer(1))
    connection.send(metadata(2, "second")).answer(metadata_answer(2))
    connection.send(produce(3, 1)).answer(produce_answer(3))
    row = one(connection.packets)
    assert row["client_ids"] == ["first", "second", "test"]
    assert [(api["api_name"], api["requests"]) for api in row["apis"]] == [("Produce", 1), ("Metadata", 2)]


def test_client_ids_are_in_the_order_of_their_first_use_whatever_other_connections_have() -> None:
    other = exchange(Connection(client=("10.0.0.9", 50000), time=1_700_000_000_000_000_000).open(), 1)
    other.send(metadata(2, "later")).answer(metadata_answer(2))
    both = Connection(time=1_700_000_010_000_000_000).open()
    for number, name in enumerate(("early", "later", "test", "early"), 1):
        both.send(metadata(number, name)).answer(metadata_answer(number))
    for window in (None, 333):
        found = rows(pcap([*other.packets, *both.packets]), window=window)
        assert [row["client_ids"] for row in found] == [["test", "later"], ["early", "later", "test"]]


def test_many_client_ids_are_cut_to_a_number() -> None:
    connection = Connection().open()
    for number in range(MOST_CLIENT_IDS + 5):
        connection.send(metadata(number, f"id-{number}")).answer(metadata_answer(number))
    row = one(connection.packets)
    assert len(row["client_ids"]) == MOST_CLIENT_IDS
    assert row["requests"] == MOST_CLIENT_IDS + 5


def test_requests_in_flight_and_unanswered_ones() -> None:
    connection = Connection().open()
    connection.send(metadata(1)).answer(metadata_answer(1))
    connection.send(metadata(2)).send(metadata(3)).send(metadata(4))
    connection.answer(metadata_answer(2), metadata_answer(3), metadata_answer(4))
    connection.send(metadata(5)).send(metadata(6)).answer(metadata_answer(6))
    connection.send(produce(7, 0)).send(metadata(8))
    for window in (None, 100, 333):
        row = one(connection.packets, window=window)
        # 5 was passed over, 8 waits; acks=0 has no answer.
        assert (row["most_in_flight"], row["unanswered"], row["requests"], row["responses"]) == (3, 2, 8, 5)


def test_sasl_is_told_and_who_it_was_only_where_secrets_are_shown() -> None:
    data = (GOLDEN / "kafka-4.3-kraft-auth" / "mechanisms.pcap").read_bytes()
    hidden, shown = rows(data), rows(data, secrets=True)
    assert {row["principal"] for row in hidden} == {None}
    said = {(row["sasl_mechanism"], row["sasl_outcome"], row["principal"]) for row in shown if row["sasl_mechanism"]}
    mechanisms = {mechanism for mechanism, _, _ in said}
    assert {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} <= mechanisms
    assert any(outcome == "ok" and principal for _, outcome, principal in said)
    failed = [row for row in hidden if row["sasl_outcome"] == "failed"]
    assert failed
    assert all(row["sasl_error"] for row in failed)


# Refusals: (version, what follows the correlation id, what is said)
REFUSED = struct.pack(">h", 58)
SAID = struct.pack(">h", 2) + b"no"
NULL = struct.pack(">i", -1)
REFUSALS = {
    "null token": (0, REFUSED + SAID + NULL, "SASL_AUTHENTICATION_FAILED: no"),
    "null token, lifetime": (1, REFUSED + SAID + NULL + bytes(8), "SASL_AUTHENTICATION_FAILED: no"),
    "null token, flexible": (2, b"\0" + REFUSED + b"\3no" + b"\0" + bytes(9), "SASL_AUTHENTICATION_FAILED: no"),
    "null token, null message": (0, REFUSED + struct.pack(">h", -1) + NULL, "SASL_AUTHENTICATION_FAILED"),
    "no token": (0, REFUSED + SAID, "SASL_AUTHENTICATION_FAILED: no"),
    "nothing behind the code": (1, REFUSED, "SASL_AUTHENTICATION_FAILED"),
    "damaged message": (0, REFUSED + struct.pack(">h", 999) + b"no", "SASL_AUTHENTICATION_FAILED"),
    "empty token": (0, REFUSED + SAID + bytes(4), "SASL_AUTHENTICATION_FAILED: no"),
    "unknown code": (0, struct.pack(">h", 9999) + SAID + bytes(4), "9999: no"),
    "bytes behind it": (0, REFUSED + SAID + bytes(7), "SASL_AUTHENTICATION_FAILED: no"),
}
"""How brokers refuse a client: what its version allows, and what it does not."""


def handshake(version: int, mechanism: bytes = b"PLAIN", said: bytes | None = None) -> Connection:
    connection = Connection().open()
    name = struct.pack(">h", len(mechanism)) + mechanism
    connection.send(struct.pack(">hhih", 17, version, 1, 1) + b"c" + name)
    return connection.answer(struct.pack(">i", 1) + (struct.pack(">hi", 0, 1) + name if said is None else said))


def authenticate(version: int, token: bytes | None) -> bytes:
    if version < 2:
        sized = NULL if token is None else struct.pack(">i", len(token)) + token
        return struct.pack(">hhih", 36, version, 2, 1) + b"c" + sized
    return struct.pack(">hhih", 36, version, 2, 1) + b"c\0" + bytes([0 if token is None else len(token) + 1]) + (
        token or b""
    ) + b"\0"  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("token", [b"\0alice\0pw", b"", None], ids=["token", "empty", "null"])
def test_a_refusal_counts_whatever_stands_behind_the_error(name: str, token: bytes | None) -> None:
    version, body, said = REFUSALS[name]
    connection = handshake(1).send(authenticate(version, token)).answer(struct.pack(">i", 2) + body).close()
    row = one(connection.packets)
    assert (row["sasl_mechanism"], row["sasl_outcome"], row["sasl_error"]) == ("PLAIN", "failed", said)


def test_the_beginning_of_a_refusal_is_enough() -> None:
    connection = handshake(1).send(authenticate(1, b"\0alice\0pw"))
    connection.answer(struct.pack(">i", 2) + REFUSED + struct.pack(">h", 500) + b"x" * 500 + bytes(12))
    # The capture has the first bytes of the packet, or of the frame in two packets.
    for size in (18, 30):
        cut = replace(connection.packets[-1], payload=connection.packets[-1].payload[:size])
        row = one([*connection.packets[:-1], cut])
        assert (row["sasl_outcome"], row["sasl_error"]) == ("failed", "SASL_AUTHENTICATION_FAILED")


@pytest.mark.parametrize(
    "body",
    [struct.pack(">h", 0) + SAID + NULL, struct.pack(">h", 999) + SAID + NULL, b"", b"\0"],
    ids=["no error", "no name", "empty", "half a code"],
)
def test_what_cannot_be_read_and_names_no_error_is_no_refusal(body: bytes) -> None:
    connection = handshake(1).send(authenticate(0, b"\0alice\0pw")).answer(struct.pack(">i", 2) + body)
    row = one(connection.packets)
    assert (row["sasl_outcome"], row["sasl_error"]) == ("unfinished", None)


def test_a_handshake_is_refused_without_a_list_of_mechanisms() -> None:
    for version in (0, 1):
        for said in (struct.pack(">h", 33) + NULL, struct.pack(">h", 33), struct.pack(">hi", 33, 0)):
            row = one(handshake(version, said=said).packets)
            assert (row["sasl_outcome"], row["sasl_error"]) == ("failed", "UNSUPPORTED_SASL_MECHANISM")


@pytest.mark.parametrize(
    ("mechanism", "token", "error"),
    [
        (b"SCRAM-SHA-256", b"e=invalid-proof", "invalid-proof"),
        (b"OAUTHBEARER", b'{"status":"invalid_token","scope":"x"}', "invalid_token"),
        (b"PLAIN", b"e=invalid-proof", None),
        (b"SCRAM-SHA-256", b"v=e=invalid-proof", None),
        (b"OAUTHBEARER", b"", None),
        (b"GSSAPI", b"", None),
    ],
)
def test_a_token_that_says_an_error_is_a_refusal(mechanism: bytes, token: bytes, error: str | None) -> None:
    raw = handshake(0, mechanism).send(b"token of a client").answer(token)
    framed = handshake(1, mechanism).send(authenticate(0, b"token of a client"))
    framed.answer(struct.pack(">ihhi", 2, 0, -1, len(token)) + token)
    for connection in (raw, framed):
        row = one(connection.packets)
        assert (row["sasl_outcome"], row["sasl_error"]) == ("failed" if error else "unfinished", error)


def test_what_a_broker_announced_is_there_by_name() -> None:
    data = (GOLDEN / "kafka-4.3-kraft-java" / "share.pcap").read_bytes()
    assert "broker_apis" not in rows(data)[0]
    for row in rows(data, columns=["apis", "broker_apis"]):
        said = {one["api_key"]: one["max_version"] for one in row["broker_apis"]}
        assert all(use["api_version"] <= said[use["api_key"]] for use in row["apis"])


def test_software_is_what_the_client_says() -> None:
    data = (GOLDEN / "kafka-4.3-kraft-java" / "share.pcap").read_bytes()
    assert {row["software_name"] for row in rows(data)} == {"apache-kafka-java"}


def test_hellos_are_read_without_a_key_log_in_windows_of_any_size() -> None:
    for path in sorted((GOLDEN / "tls").glob("kafka*/*.pcap"))[:3]:
        whole = rows(path.read_bytes())
        assert all(row["tls_version"] and row["tls_cipher"] for row in whole if row["tls"])
        assert any(row["tls"] for row in whole)
        assert rows(path.read_bytes(), window=1000) == whole
    keys = path.with_suffix(".keys")
    opened = rows(path.read_bytes(), keylog=keys)
    for with_keys, without in zip(opened, whole, strict=True):
        names = ("tls", "tls_version", "tls_cipher", "tls_server_name", "client_bytes", "broker_bytes", "ended")
        assert [with_keys[name] for name in names] == [without[name] for name in names]
    assert {row["status"] for row in opened if row["tls"]} == {"ok"}
    assert {row["status"] for row in whole if row["tls"]} == {"encrypted"}


def test_other_protocols_are_rows_too() -> None:
    other = Connection(client=("10.0.0.9", 1234), broker=("10.0.0.8", 80)).open().send_raw(b"GET / HTTP/1.1\r\n\r\n")
    other.answer_raw(b"HTTP/1.1 200 OK\r\n\r\n")
    kafka = exchange(Connection().open()).packets
    found = rows(pcap([*other.packets, *kafka]))
    assert [row["status"] for row in found] == ["other", "ok"]
    assert [row["status"] for row in rows(pcap([*other.packets, *kafka]), ports=[9093])] == ["other", "other"]
    assert (found[0]["client_bytes"], found[0]["requests"], found[0]["apis"]) == (18, 0, [])


def test_tunnels_are_told() -> None:
    data = (GOLDEN / "tunnels" / "vxlan" / "plain.pcap").read_bytes()
    told = {tuple(row["tunnels"]) for row in rows(data) if row["tunnels"]}
    assert told
    assert all(tunnel.startswith("vxlan:") for tunnels in told for tunnel in tunnels)
    # A key of GRE may have any 32 bits.
    assert [connections._tunnel(key) for key in (0, 0xFFFFFFFF)] == ["tunnel:0", "tunnel:4294967295"]


# The rest


@pytest.mark.parametrize("name", ["kafka-4.3-kraft-java/share.pcap", "kafka-3.9-kraft-kafka-python/conversions.pcap"])
def test_rows_do_not_depend_on_the_windows(name: str) -> None:
    data = (GOLDEN / name).read_bytes()
    assert rows(data, window=4096) == rows(data)


def test_what_is_counted_is_part_of_the_state() -> None:
    packets = data_packets()
    packets.insert(9, packets[7])
    data = pcap(packets)
    first = Tracker()
    first.feed(data[: len(data) // 2])
    second = Tracker()
    second.restore(first.save())
    second.feed(data[len(data) // 2 :], final=True)
    whole = Tracker()
    whole.feed(data, final=True)
    assert second.known().rows.tolist() != []
    for side in (0, 1):
        assert second.known().sent[side].tolist() == whole.known().sent[side].tolist()


def test_columns_can_be_chosen_one_by_one() -> None:
    other = exchange(Connection(client=("10.0.0.9", 1234)), 2).packets[1:]
    data = pcap([*exchange(Connection().open(), 2).close().packets, *other])
    whole = rows(data)
    for name in table("connections").schema.names:
        assert [row[name] for row in rows(data, columns=[name])] == [row[name] for row in whole]
