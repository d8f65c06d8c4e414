"""``messages`` with bodies as structs.

That their values are those of ``to_dict`` is shown in ``tests/property/test_bodies.py``.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from made_captures import exchange
from packets import pcap, request
from valid_batches import valid

import kwire
from kwire import capture, messages, schema
from kwire.kernels.engine import MACHINE, PYTHON, Engine, using
from kwire.tables.typed import body_type

CAPTURE = Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-java" / "clients.pcap"


def read(data: bytes, engine: Engine, **options: Any) -> list[dict[str, Any]]:
    with using(engine):
        found = valid(capture.read(io.BytesIO(data), "messages", **options))
        return [row for batch in found for row in batch.to_pylist()]


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("api", ["Fetch", "JoinGroup", "OffsetCommit", "Metadata"])
@pytest.mark.parametrize("direction", ["request", "response"])
def test_rows_are_those_of_one_kind_by_kernel_and_by_objects(api: str, direction: str) -> None:
    data = CAPTURE.read_bytes()
    found = read(data, MACHINE, api=api, direction=direction)
    assert found == read(data, PYTHON, api=api, direction=direction)
    texts = [row for row in read(data, MACHINE) if (row["api_name"], row["direction"]) == (api, direction)]
    assert [row["frame"] for row in found] == [row["frame"] for row in texts]
    assert found
    assert all(set(row["body"]) == {one.name for one in capture.schema_of(api, direction)} for row in found)


def test_every_message_has_a_type_that_spark_can_have() -> None:
    for key, name in schema.api_keys().items():
        for direction, message in (("request", schema.request(key)), ("response", schema.response(key))):
            assert message is not None
            made = capture.schema_of(name, direction)
            assert made == pa.schema(list(body_type(message)))
            assert made.names == [one.name for one in message.fields]
            assert "uint" not in str(made)
    assert capture.schema_of("produce", "request") == capture.schema_of("0", "request")
    records = capture.schema_of("Produce", "request", payloads=True).field("topic_data").type.value_type
    assert records.field("partition_data").type.value_type.field("records").type == pa.binary()


@pytest.mark.parametrize("engine", [PYTHON, MACHINE], ids=["python", "machine"])
def test_secrets_are_text_in_their_place_and_what_is_wrong_is_null(engine: Engine) -> None:
    token = kwire.encode_request(
        messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0wonderland"),
        api_version=1,
        correlation_id=2,
        client_id="c",
    )
    data = pcap(exchange().send(token).send(request(36, 1, 3, b"\0\0\0\x09")).packets)
    options = {"api": "SaslAuthenticate", "direction": "request"}
    good, bad = read(data, engine, **options)
    assert good["body"] == {"auth_bytes": b'{"redacted": 17}'}
    assert (bad["body"], bad["status"]) == (None, "malformed")
    assert read(data, engine, secrets=True, **options)[0]["body"] == {"auth_bytes": b"\0alice\0wonderland"}


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        ("messages", {"api": "nope", "direction": "request"}, "no API 'nope'"),
        ("messages", {"api": "Fetch", "direction": "up"}, "not 'up': the option 'direction' is request or response"),
        ("messages", {"direction": "response"}, r"direction goes with api.*\(apis have rows of both\)"),
        ("messages", {"api": "Ftch"}, "no API 'Ftch': did you mean 'Fetch'"),
        ("frames", {"api": "Fetch", "direction": "request"}, "to choose its rows by API, take apis"),
    ],
)
def test_mistakes_are_said(table: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        list(capture.read(io.BytesIO(b""), table, **options))  # type: ignore[call-overload]
