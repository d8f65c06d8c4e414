"""Bodies as text: what the kernel writes and what it leaves to objects, and ``messages`` with either.

That the two agree on any bytes is shown in ``tests/property/test_bodies.py``.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from body_texts import texts
from valid_batches import valid

from kwire import capture, messages
from kwire.kernels.engine import MACHINE, PYTHON, Engine, using
from kwire.limits import Limits
from kwire.protocol.describe import to_json
from kwire.tables import bodies

CAPTURE = Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-kafka-python" / "unpinned.pcap"


def fetched(topic: str, records: bytes | None, **more: Any) -> messages.FetchResponse:
    partition = {"partition_index": 3, "error_code": 6, "high_watermark": -(2**63), "records": records, **more}
    return messages.FetchResponse.from_dict({"responses": [{"topic": topic, "partitions": [partition]}]})


def test_numbers_names_escapes_and_what_is_not_utf8(engine: Engine) -> None:
    words = [
        *["0", "9", "10", "99", "100", "-1"],
        'a"b\\c\n\x01\x7f',
        "é€😀",
        "\udcff\udce2\udc82x",
        "\udced\udca0\udc80",
        "ab" * 9,
    ]
    made = [(messages.MetadataRequest.from_dict({"topics": [{"name": word} for word in words]}), 1)]
    numbers = [0, 9, 10, 99, 100, 101, -1, 2**31 - 1, -(2**31), 12345, 999_999, 1_000_000]
    broker = {"name": "t", "partitions": [{"replica_nodes": numbers, "error_code": 7}, {"error_code": 12_345}]}
    made.append((messages.MetadataResponse.from_dict({"topics": [broker]}), 12))
    lists = {"name": "t", "partitions": [{"eligible_leader_replicas": None, "last_known_elr": [1]}]}
    made.append((messages.DescribeTopicPartitionsResponse.from_dict({"topics": [lists]}), 0))
    made.append((messages.MetadataRequest(topics=None), 12))
    assert texts(engine, *made) == [to_json(*one) for one in made]


def test_tagged_fields_stand_where_the_schema_has_them(engine: Engine) -> None:
    leader, end = {"leader_id": 1, "leader_epoch": 22}, {"end_offset": 5, "epoch": 6}
    made = [
        (fetched("t", b"abc"), 12),
        (fetched("t", b"abc", current_leader=leader), 12),
        (fetched("t", b"abc", current_leader=leader, snapshot_id=end, diverging_epoch={"epoch": 1234567}), 12),
    ]
    assert texts(engine, *made) == [to_json(*one) for one in made]
    made[1][0].responses[0].partitions[0].unknown_tagged_fields = {99: b"x"}
    assert texts(engine, *made)[1] is None


def test_record_sets_are_left_out_unless_they_are_wanted(engine: Engine) -> None:
    made = [(fetched("t", b"abcd"), 11), (fetched("t", b""), 11), (fetched("t", None), 11)]
    assert texts(engine, *made) == [to_json(*one) for one in made]
    found = [json.loads(text or "") for text in texts(engine, *made, payloads=False)]
    sets = [one["responses"][0]["partitions"][0]["records"] for one in found]
    assert sets == [{"bytes": 4}, {"bytes": 0}, None]


def test_what_may_be_a_secret_is_left_to_the_objects(engine: Engine) -> None:
    token = messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0wonderland")
    entry = {"name": "sasl.jaas.config", "value": "x"}
    configs = messages.CreateTopicsRequest.from_dict({"topics": [{"name": "t", "configs": [entry]}]})
    made = [(token, 2), (configs, 5), (fetched("__cluster_metadata", b"abcd"), 11)]
    assert texts(engine, *made) == ['{"auth_bytes":{"redacted":17}}', None, None]
    assert texts(engine, *made, secrets=True) == [to_json(*one, secrets=True) for one in made]


def test_the_group_protocol_is_decoded(engine: Engine) -> None:
    topics = b"\0\x01\0\0\0\x01\0\x01t\xff\xff\xff\xff\0\0\0\0"
    later = b"\0\x09" + topics[2:] + b"\0\0\0\x05" + b"\xff\xff" + b"more"

    def join(kind: str, metadata: bytes) -> tuple[Any, int]:
        protocol = {"name": "range", "metadata": metadata}
        return messages.JoinGroupRequest.from_dict({"protocol_type": kind, "protocols": [protocol]}), 4

    made = [join("consumer", topics), join("consumer", later), join("other", topics), join("consumer", b"")]
    assert texts(engine, *made) == [to_json(*one) for one in made]
    assert "version" in (texts(engine, *made)[1] or "")
    assert texts(engine, join("consumer", topics[:-1])) == [None]


def test_what_is_beyond_a_limit_is_left_to_the_objects(engine: Engine) -> None:
    made = (messages.MetadataRequest.from_dict({"topics": [{"name": "t"}] * 100}), 1)
    whole = to_json(*made)
    assert texts(engine, made, limits=Limits(text=6 * 1000)) == [whole]
    assert texts(engine, made, limits=Limits(text=len(whole) - 1)) == [None]
    assert texts(engine, made, limits=Limits(objects=1000)) == [None]


def test_much_text_comes_in_parts(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MOST_BYTES", 1000)
    made = [(messages.MetadataRequest.from_dict({"topics": [{"name": "t" * size}]}), 1) for size in range(200)]
    made[50] = (messages.EnvelopeRequest(request_data=b"x"), 0)
    expected = [to_json(*one) for one in made]
    expected[50] = None  # type: ignore[call-overload]
    assert texts(engine, *made) == expected


def read(engine: Engine, **options: Any) -> list[dict[str, Any]]:
    with using(engine), CAPTURE.open("rb") as stream:
        return [row for batch in valid(capture.read(stream, "messages", **options)) for row in batch.to_pylist()]


def test_messages_are_the_same_by_kernel_and_by_objects() -> None:
    found = read(MACHINE)
    assert len(found) > 100
    assert found == read(PYTHON)


def test_payloads_are_an_option_of_messages() -> None:
    assert read(MACHINE, payloads=True) == read(PYTHON, payloads=True)
    (plain, *_), (whole, *_) = (
        [
            json.loads(row["body"])["topic_data"][0]["partition_data"][0]["records"]
            for row in read(MACHINE, payloads=payloads)
            if row["api_name"] == "Produce" and row["direction"] == "request"
        ]
        for payloads in (False, True)
    )
    assert plain == {"bytes": len(base64.b64decode(whole))}
