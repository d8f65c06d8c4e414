"""The column ``errors``: against a walk over the bodies of golden captures, and what a response may say is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_captures import exchange
from made_captures import read as rows_of
from packets import pcap, request, response
from valid_batches import valid

import kwire
from kwire import capture, messages
from kwire.kernels.engine import Engine, using
from kwire.protocol.error_codes import error_name

GOLDEN = Path(__file__).parents[2] / "golden"


def codes(value: Any) -> set[str]:
    """What stands in the error codes of a body, at any depth."""
    if isinstance(value, list):
        return set().union(*map(codes, value))
    if not isinstance(value, dict):
        return set()
    told = {one for name, one in value.items() if name.endswith("error_code")}
    # Only what is named ``error_code`` is a name in bodies.
    found = {one if isinstance(one, str) else error_name(one) or str(one) for one in told}
    return found.union(*map(codes, value.values())) - {"NONE"}


@pytest.mark.parametrize("name", ["4.3-kraft-kafka-python/unpinned.pcap", "4.3-kraft-java/admin.pcap"])
def test_they_are_those_of_the_body(engine: Engine, name: str) -> None:
    with (GOLDEN / f"kafka-{name}").open("rb") as stream:
        rows = [row for batch in valid(capture.read(stream, "messages")) for row in batch.to_pylist()]
    assert any(row["errors"] for row in rows)
    for row in rows:
        if row["direction"] == "request" or row["body"] is None:
            assert row["errors"] is None
        else:
            assert set(row["errors"]) == codes(json.loads(row["body"]))


def answered(api: int, version: int, body: bytes) -> list[str] | None:
    connection = exchange().send(request(api, version, 2, b"")).answer(response(2, body))
    *_, row = rows_of(pcap(connection.packets), "frames")
    assert row["direction"] == "response"
    found: list[str] | None = row["errors"]
    return found


def test_each_is_named_once_in_the_order_of_the_response() -> None:
    partitions = [{"error_code": code} for code in (6, 0, 3, 6, 12_345)]
    made = messages.OffsetCommitResponse.from_dict({"topics": [{"name": "t", "partitions": partitions}]})
    body = kwire.encode_response(made, api_version=2, correlation_id=2)[4:]
    assert answered(8, 2, body) == ["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "12345"]
    assert answered(8, 2, body + b"\0") == ["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "12345"]
    assert answered(8, 2, body[:-1]) is None


def test_an_answer_in_version_0_says_that_the_version_is_not_supported() -> None:
    assert answered(18, 3, b"\0\x23\0\0\0\0") == ["UNSUPPORTED_VERSION"]
    assert answered(18, 3, b"\0\x23\0\0\0\1") is None


@pytest.mark.parametrize("version", [3, 4, 500, 32_767])
@pytest.mark.parametrize(
    "body",
    [b"", b"\0\x23", b"\0\x23\0\0\0\1\0", b"\0\0\0\0\0\0", b"\0\3\0\0\0\0", b"\0\x23\0\0\0\0", b"\0\x23\0\0\0\0xx"],
)
def test_an_answer_to_api_versions_has_one_status_in_all_tables(engine: Engine, version: int, body: bytes) -> None:
    connection = exchange().send(request(18, version, 2, b"\0\0\0")).answer(response(2, body))
    with using(engine):
        frames, bodies, alone = (
            rows_of(pcap(connection.packets), table, columns=columns)[-1]
            for table, columns in (("frames", None), ("messages", None), ("messages", ["errors"]))
        )
    wanted = "malformed" if version < 5 else "unsupported"
    if body.startswith(b"\0\x23\0\0\0\0"):
        wanted = "trailing" if body.endswith(b"x") else "ok"
    assert (frames["status"], bodies["status"]) == (wanted, wanted)
    assert frames["errors"] == bodies["errors"] == alone["errors"]
    assert (frames["errors"] is None) is (wanted in ("malformed", "unsupported"))
    if wanted == "unsupported":
        assert frames["error"] == f"version {version} of this API is unknown"


def test_messages_read_tagged_fields_whichever_columns_are_wanted(engine: Engine) -> None:
    # BeginQuorumEpoch 1 with node_endpoints, of which a host says that it is longer than the frame.
    body = bytes.fromhex("0007 01 01 00 1002344d408fff2271756f5c7465711f 00".replace(" ", ""))
    connection = exchange().send(request(53, 1, 2, bytes(12))).answer(response(2, b"\0" + body))
    with using(engine):
        whole, alone, beside = (
            [row["errors"] for row in rows_of(pcap(connection.packets), "messages", columns=columns)]
            for columns in (None, ["errors"], ["errors", "status"])
        )
        (frame,) = rows_of(pcap(connection.packets), "frames")[-1:]
    assert whole == alone == beside
    assert whole[-1] is None
    # ``frames`` passes over them.
    assert (frame["status"], frame["errors"]) == ("ok", ["REQUEST_TIMED_OUT"])
