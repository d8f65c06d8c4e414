"""Names of topics from elsewhere: tables, folders of brokers, KRaft metadata; and what rows they give names to."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from uuid import UUID

import pytest
from packets import Connection, pcap, request
from record_sets import message

import kwire
from kwire import capture, messages
from kwire.errors import KwireError
from kwire.tables.topic_names import topic_names
from kwire.wire import ZERO_UUID

SEGMENTS = Path(__file__).parents[2] / "golden" / "segments"
TOPIC_ID = bytes(range(16))
NAMED = "AAECAwQFBgcICQoLDA0ODw"
OTHER = "0102030405060708090a0b0c0d0e0f10"


def by_id(correlation_id: int) -> bytes:
    """A Produce request (v13), which names its topic by id."""
    set_ = message(b"k", b"v")
    body = b"\0" + struct.pack(">hi", 1, 1000) + b"\x02" + TOPIC_ID + b"\x02" + struct.pack(">i", 0)
    return request(0, 13, correlation_id, b"\0" + body + bytes([len(set_) + 1]) + set_ + b"\0\0\0")


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_tables_of_ids_and_names(tmp_path: Path) -> None:
    other = str(UUID(OTHER))
    expected = {NAMED: "orders", "AQIDBAUGBwgJCgsMDQ4PEA": "payments"}
    for name, text in (
        ("a.csv", f"name,partitions,topic_id\norders,3,{NAMED}\npayments,1,{other}\n"),
        ("b.json", json.dumps([{"topic_id": NAMED, "name": "orders"}, {"id": other, "topic": "payments"}])),
        ("c.json", json.dumps({NAMED: "orders", other: "payments"})),
        ("d.jsonl", f'{{"TopicId": "{NAMED}", "Topic": "orders"}}\n\n{{"uuid": "{other}", "name": "payments"}}\n'),
    ):
        assert topic_names([write(tmp_path, name, text)]) == expected
    for name, text, said in (
        ("e.csv", "a,b\n1,2\n", "no columns topic_id and name"),
        ("f.json", "[1, 2]", "no objects with an id and a name"),
        ("g.json", "{", "neither JSON nor lines of it"),
        ("h.json", '{"x": "orders"}', "'x' is no id of a topic"),
        ("i.txt", "", "names of topics are in"),
        ("partition.metadata", "version: 0\n", "no topic and id in it"),
    ):
        with pytest.raises(KwireError, match=said):
            topic_names([write(tmp_path / "odd", name, text)])


def test_folders_of_brokers_and_the_metadata_log() -> None:
    node = topic_names([SEGMENTS / "3.9-zk-folder" / "node-2"])
    assert {"folder-plain", "folder-compacted"} <= set(node.values())
    kraft = topic_names([SEGMENTS / "3.9-kraft"])
    assert len(kraft) > 3
    assert all(len(id_) == 22 and name for id_, name in kraft.items())


def test_the_zero_id_has_no_name() -> None:
    named = messages.MetadataResponse.MetadataResponseTopic
    nosuch, other = named(error_code=3, name="nosuch"), named(name="orders", topic_id=UUID(bytes=TOPIC_ID))
    said = messages.MetadataResponse(topics=[nosuch, other])
    asked = messages.FetchRequest.FetchTopic
    topics = [
        asked(topic_id=one, partitions=[messages.FetchRequest.FetchPartition(partition=0)])
        for one in (ZERO_UUID, UUID(bytes=TOPIC_ID))
    ]
    made = Connection().open().send(kwire.encode_request(messages.MetadataRequest(), api_version=12, correlation_id=0))
    made.answer(kwire.encode_response(said, api_version=12, correlation_id=0))
    fetch = messages.FetchRequest(topics=topics)
    made.send(kwire.encode_request(fetch, api_version=13, correlation_id=1))
    data = pcap(made.packets)
    for given in ({}, {str(ZERO_UUID): "zero"}):
        found = [
            (row["topic"], row["topic_id"])
            for batch in capture.read(io.BytesIO(data), "partitions", apis=["Fetch"], topic_ids=given)
            for row in batch.to_pylist()
        ]
        assert found == [(None, None), ("orders", NAMED)]


def test_rows_before_a_capture_names_a_topic_have_the_name_that_was_given() -> None:
    asked = Connection().open().send(by_id(0)).send(by_id(1))
    data = pcap(asked.packets)

    def topics(**given: object) -> list[tuple[str | None, str | None]]:
        found = capture.read(io.BytesIO(data), "records", columns=["topic", "topic_id"], **given)  # type: ignore[call-overload]
        return [(row["topic"], row["topic_id"]) for batch in found for row in batch.to_pylist()]

    assert topics() == [(None, NAMED)] * 2
    assert topics(topic_ids={str(UUID(bytes=TOPIC_ID)): "orders", OTHER: "x"}) == [("orders", NAMED)] * 2
    assert topics(topic_ids={NAMED: "orders"}, topics=["orders"]) == [("orders", NAMED)] * 2
    with pytest.raises(ValueError, match="badly formed"):
        topics(topic_ids={"x": "orders"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.json", "[" * 100_000),
        ("x.json", "{}\n" + "[" * 100_000),
        ("x.json", f'[{{"id": "{NAMED}", "name": {{"a": [1]}}}}]'),
        ("x.json", f'{{"{NAMED}": true}}'),
        ("x.json", f'{{"{NAMED}": 1e999}}'),
        ("x.json", '{"id": ' + "1" * 5_000 + ', "name": "x"}'),
        ("x.csv", f"topic_id,name\n{NAMED},{'x' * 200_000}\n"),
        ("x.csv", f"topic_id,name\r\n{NAMED},a\rb\0c\n"),
    ],
)
def test_tables_that_are_damaged_are_errors(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(KwireError, match=r"x\.(json|csv): ") as caught:
        topic_names([write(tmp_path, name, text)])
    assert len(str(caught.value)) < len(str(tmp_path)) + 200


def test_half_of_a_surrogate_pair_is_shown_as_none(tmp_path: Path) -> None:
    names = topic_names([write(tmp_path, "x.json", f'{{"{NAMED}": "\\ud800x"}}')])
    assert names == {NAMED: "\ufffdx"}
