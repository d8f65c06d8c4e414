"""The table ``records`` of captures made here: its columns, and a row for whatever cannot be read."""

from __future__ import annotations

import datetime
import struct
from functools import partial
from pathlib import Path

import pytest
import record_sets
from made_captures import exchange, read
from packets import (
    Connection,
    pcap,
    produce,
    produce_answer,
    request,
    response,
)

from kwire.tables import records

GOLDEN = Path(__file__).parents[2] / "golden"

message = partial(record_sets.message, time=1_700_000_000_000)
"""A message set entry of magic 1."""


def test_records_have_their_columns() -> None:
    connection = (
        Connection().open().send(produce(1, 1, message(b"k", b"v", offset=3), "orders")).answer(produce_answer(1))
    )
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
        "batch": 44,
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


TOPIC_ID = bytes(range(16))
NAMED = "AAECAwQFBgcICQoLDA0ODw"


def named(correlation_id: int, name: bytes, topic_id: bytes = TOPIC_ID) -> bytes:
    """A Metadata response (v12) that says what a topic is called."""
    answer = response(correlation_id, b"\0" + struct.pack(">i", 0) + b"\x01" + b"\0" + struct.pack(">i", -1))
    answer += b"\x02" + struct.pack(">h", 0) + bytes([len(name) + 1]) + name + topic_id
    return answer + b"\0" + b"\x01" + struct.pack(">i", 0) + b"\0\0"


def by_id(correlation_id: int, topic_id: bytes = TOPIC_ID) -> bytes:
    """A Produce request (v13), which names its topic by id."""
    set_ = message(b"k", b"v")
    body = b"\0" + struct.pack(">hi", 1, 1000) + b"\x02" + topic_id + b"\x02" + struct.pack(">i", 0)
    return request(0, 13, correlation_id, b"\0" + body + bytes([len(set_) + 1]) + set_ + b"\0\0\0")


def asked(correlation_id: int) -> bytes:
    return request(3, 12, correlation_id, b"\0\0\x01\0\0")


def test_topic_names_are_learnt_from_metadata() -> None:
    connection = Connection().open().send(by_id(0)).send(asked(1)).answer(named(1, b"orders")).send(by_id(2))
    data = pcap(connection.packets)
    # Whatever is read at once: a name is known from the message on that says it.
    for window in (None, 120):
        found = read(data, "records", window=window)
        assert [(row["topic"], row["topic_id"], row["status"]) for row in found] == [
            (None, NAMED, "ok"),
            ("orders", NAMED, "ok"),
        ]


def test_a_topic_has_the_name_that_came_last_before_its_records() -> None:
    other = bytes(16 * [7])
    connection = Connection().open().send(by_id(0))
    for k, name in enumerate([b"one", b"two", b"two", b"three"]):
        connection.send(asked(2 * k + 1)).answer(named(2 * k + 1, name)).send(by_id(2 * k + 2))
        connection.send(by_id(100 + k, other))
    connection.send(asked(50)).answer(named(50, b"another", other)).send(by_id(51, other)).send(by_id(52))
    data = pcap(connection.packets)
    for window in (None, 120, 300, 1000):
        found = [row["topic"] for row in read(data, "records", window=window)]
        assert found == [None, "one", None, "two", None, "two", None, "three", None, "another", "three"]


def test_the_topic_of_the_cluster_metadata_is_known_and_cannot_be_renamed() -> None:
    fixed = bytes(15) + b"\x01"
    connection = Connection().open().send(by_id(0, fixed))
    connection.send(asked(1)).answer(named(1, b"harmless", fixed)).send(by_id(2, fixed))
    found = read(pcap(connection.packets), "records")
    assert [row["topic"] for row in found] == ["__cluster_metadata"] * 2
    assert {row["topic_id"] for row in found} == {"AAAAAAAAAAAAAAAAAAAAAQ"}


def test_records_of_share_fetch_responses_are_read() -> None:
    import uuid

    import kwire
    from kwire import messages
    from kwire.records import Record, encode

    records = encode([Record(b"k", b"v", timestamp=1_700_000_000_000)])
    asked = kwire.encode_request(messages.ShareFetchRequest(), api_version=1, correlation_id=2, client_id="test")
    acquired = [{"first_offset": 0, "last_offset": 0, "delivery_count": 1}]
    part = {"partition_index": 3, "records": records, "acquired_records": acquired}
    topic = {"topic_id": uuid.UUID(int=7), "partitions": [part]}
    body = messages.ShareFetchResponse.from_dict({"responses": [topic]})
    answered = kwire.encode_response(body, api_version=1, correlation_id=2)
    connection = exchange().send(asked).answer(answered)
    (row,) = read(pcap(connection.packets), "records")
    assert (row["source"], row["partition"], row["key"], row["status"]) == ("fetch", 3, b"k", "ok")
    assert row["topic_id"] == "AAAAAAAAAAAAAAAAAAAABw"


@pytest.mark.parametrize("table", ["records", "batches"])
@pytest.mark.parametrize("capture", ["kafka-4.3-kraft-java/clients.pcap", "kafka-4.4-kraft-raw/every-version.pcap"])
def test_how_many_sets_are_looked_at_together_changes_nothing(
    table: str, capture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytearray((GOLDEN / capture).read_bytes())
    # Some of it damaged: what is wrong with a frame stands behind all of its sets.
    for at in range(5_000, len(data), 9_001):
        data[at] ^= 0xFF
    whole = read(bytes(data), table)
    monkeypatch.setattr(records, "_SETS_AT_ONCE", 3)
    assert read(bytes(data), table) == whole
    assert {row["status"] for row in whole} > {"ok"}
