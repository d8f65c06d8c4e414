"""Traffic that other dissectors get wrong: kwire shows all of it, in any segments.

What users of other tools reported: frames of newer versions that are dropped, headers in a segment of their own,
responses of a few bytes that are not seen, only the first topic of a request, and other protocols taken for Kafka.
"""

from __future__ import annotations

import json
import struct

import pytest
from made_captures import ONE, brief, exchange, read
from packets import Connection, metadata, metadata_answer, pcap, request, response, sized

import kwire
from kwire import messages, schema
from kwire.testing.corpus.shapes import value


@pytest.mark.parametrize("api", ["Produce", "Fetch", "Metadata"])
def test_the_newest_version_is_decoded_and_one_above_it_is_a_row(api: str) -> None:
    """Version ceilings: what a tool does not know must not be gone."""
    key = {name: key for key, name in schema.api_keys().items()}[api]
    known = schema.request(key)
    assert known is not None
    newest = known.versions.high
    body = value(known, newest, "one")
    frames = [
        kwire.encode_request(body, api_version=newest, correlation_id=3, client_id="test"),
        request(key, newest + 1, 4, b"\0" * 40),
    ]
    connection = exchange(count=2).send(*frames)
    rows = [(row["api_version"], row["status"]) for row in read(pcap(connection.packets)) if row["api_name"] == api]
    assert rows[-2:] == [(newest, "ok"), (newest + 1, "unsupported")]


@pytest.mark.parametrize("first", [1, 3, 4, 5, 8, 12])
def test_a_header_in_a_segment_of_its_own(first: int) -> None:
    """Size, header and body come in segments of their own: clients write them one after the other."""
    asked, answered = sized(metadata(1)), sized(metadata_answer(1))
    connection = Connection().open()
    for send, data in ((connection.send_raw, asked), (connection.answer_raw, answered)):
        send(data[:first])
        send(data[first:])
    assert brief(read(pcap(connection.packets))) == ONE


def test_a_response_of_six_bytes() -> None:
    """A Heartbeat response v0 is 4 bytes of header and 2 of body: less than the 12 that some tools ask for."""
    connection = exchange()
    connection.send(
        kwire.encode_request(
            messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m"),
            api_version=0,
            correlation_id=2,
            client_id="test",
        )
    )
    connection.answer(response(2, struct.pack(">h", 27)))
    rows = [row for row in read(pcap(connection.packets), "messages") if row["api_name"] == "Heartbeat"]
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert json.loads(rows[1]["body"])["error_code"] == "REBALANCE_IN_PROGRESS"


def test_all_topics_of_a_request_are_there() -> None:
    topic = messages.MetadataRequest.MetadataRequestTopic
    body = messages.MetadataRequest(topics=[topic(name=name) for name in ("a", "b", "c")])
    connection = exchange().send(kwire.encode_request(body, api_version=1, correlation_id=2, client_id="test"))
    rows = read(pcap(connection.packets), "messages")
    (shown,) = [json.loads(row["body"]) for row in rows if row["correlation_id"] == 2]
    assert [one["name"] for one in shown["topics"]] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "talk",
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", b"SSH-2.0-OpenSSH_9.6\r\n"),
        (b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"),
        (sized(b"\0\0\0\0" + bytes(40)), sized(b"\0\0\0\0" + bytes(33))),
    ],
    ids=["http", "ssh", "redis", "zookeeper"],
)
def test_another_protocol_is_not_taken_for_kafka(talk: tuple[bytes, bytes]) -> None:
    connection = Connection(broker=("10.0.0.2", 2181)).open()
    for _ in range(5):
        connection.send_raw(talk[0]).answer_raw(talk[1])
    assert [row for row in read(pcap(connection.packets)) if row["status"] == "ok"] == []


def test_a_field_is_read_by_its_version() -> None:
    """Metadata v0: an empty array asks for all topics. From v1 on it asks for none, and null for all."""
    empty, null = bytes(4), b"\xff\xff\xff\xff"
    assert kwire.decode_request(request(3, 0, 1, empty)).body.topics == []
    assert kwire.decode_request(request(3, 1, 1, null)).body.topics is None
    with pytest.raises(kwire.DecodeError, match="null in a field that cannot be null"):
        kwire.decode_request(request(3, 0, 1, null))
    # The last field of v4 is not there in v3: its byte is one too many.
    with pytest.raises(kwire.DecodeError, match="1 bytes after the end"):
        kwire.decode_request(request(3, 3, 1, null + b"\x01"))
    assert kwire.decode_request(request(3, 4, 1, null + b"\x01")).body.allow_auto_topic_creation is True
