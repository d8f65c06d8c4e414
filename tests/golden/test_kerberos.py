"""Captures of GSSAPI with a real KDC: tokens are told, what follows them decodes, and no token is shown."""

from __future__ import annotations

import collections
import io
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from packets import Connection, pcap

from kwire import capture
from kwire.capture.reading import Reading
from kwire.kernels.layouts import Status
from kwire.schema.keys import ApiKey

HERE = Path(__file__).parent
OLD = HERE / "kafka-3.9-zk-kerberos" / "gssapi.pcap"
NEW = HERE / "kafka-4.3-kraft-kerberos" / "gssapi.pcap"


def rows(path: Path, table: str, **options: Any) -> list[dict[str, Any]]:
    with path.open("rb") as file:
        return [row for batch in capture.read(file, table, **options) for row in batch.to_pylist()]


def test_each_way_to_bring_tokens_is_told() -> None:
    ways: dict[str, collections.Counter[tuple[int, ...]]] = collections.defaultdict(collections.Counter)
    for path in (OLD, NEW):
        found: dict[int, list[dict[str, Any]]] = collections.defaultdict(list)
        for row in rows(path, "frames"):
            found[row["connection"]].append(row)
        for frames in found.values():
            assert {row["status"] for row in frames} <= {"ok", "sasl"}
            raw = sum(row["status"] == "sasl" for row in frames)
            names = [(row["api_name"], row["api_version"]) for row in frames if row["direction"] == "request"]
            handshakes = [version for name, version in names if name == "SaslHandshake"]
            client = next((row["client_id"] for row in frames if row["client_id"]), None)
            if client is not None:
                ways[client][*handshakes, raw] += 1
    # 0.9: tokens open the connection. 0.10.1: behind SaslHandshake v0. Later: in SaslAuthenticate, none is raw.
    assert set(ways) == {"java-0.9.0.1", "java-0.10.1.1", "java-3.9.2"}
    assert set(ways["java-0.9.0.1"]) == {(3,)}
    assert set(ways["java-0.10.1.1"]) == {(0, 3)}
    assert set(ways["java-3.9.2"]) == {(1, 0)}
    for path in (OLD, NEW):
        assert {row["sasl_mechanism"] for row in rows(path, "connections")} == {"GSSAPI"}


@pytest.mark.parametrize("path", [OLD, NEW], ids=["3.9", "4.3"])
def test_no_security_layer_is_negotiated(path: Path) -> None:
    """So that nothing behind the exchange is wrapped: the last token of each end has the layers, of which 1 is none, as
    its first octet (RFC 4752, 3.1 and 3.2), behind 16 octets of a wrap token's header (RFC 4121, 4.2.6.2)."""
    layers: collections.Counter[tuple[bool, int]] = collections.Counter()
    for frame in (frame for frames in Reading(io.BytesIO(path.read_bytes())) for frame in frames):
        raw = frame.status == Status.SASL
        if raw or frame.api_key == ApiKey.SASL_AUTHENTICATE:
            token = frame.data if raw else bytes(frame.body.auth_bytes)
            if token[:2] == b"\5\4":
                assert token[2] & 2 == 0  # not sealed: it can be read
                layers[frame.is_response, token[16]] += 1
    assert set(layers) == {(False, 1), (True, 1)}
    assert layers[False, 1] == layers[True, 1] >= 4


@pytest.mark.parametrize("path", [OLD, NEW], ids=["3.9", "4.3"])
def test_what_follows_the_tokens_is_what_clients_say(path: Path) -> None:
    told = [json.loads(line) for line in path.with_name("gssapi.told.jsonl").read_text().splitlines()]
    for direction in ("produce", "fetch"):
        wanted = {line["value"] for line in told if line["direction"] == direction}
        found = {b64encode(row["value"]).decode() for row in rows(path, "records") if row["source"] == direction}
        assert wanted
        assert wanted <= found


@pytest.mark.parametrize("path", [OLD, NEW], ids=["3.9", "4.3"])
def test_no_token_is_shown(path: Path) -> None:
    tokens = []
    with path.open("rb") as file:
        for frames in Reading(file):
            for frame in frames:
                if frame.status == Status.SASL:
                    tokens.append(frame.data)
                elif frame.api_key == ApiKey.SASL_AUTHENTICATE:
                    tokens.append(bytes(frame.message.body.auth_bytes))
    tokens = [one for one in tokens if one]
    assert len(tokens) > 10
    shown = "".join(json.dumps(row, default=repr) for name in ("frames", "messages") for row in rows(path, name))
    for one in tokens:
        for text in (
            b64encode(one).decode(),
            b64encode(one[8:32]).decode()[:24],
            one[8:24].hex(),
            repr(one[8:24])[2:-1],
        ):
            assert text not in shown


def test_frames_that_gssapi_wraps_are_tokens_and_nothing_else() -> None:
    # No Kafka does it (QOP auth-int and auth-conf are never negotiated); another speaker of SASL might.
    with OLD.open("rb") as file:
        tokens = [frame.data for frames in Reading(file) for frame in frames if frame.status == Status.SASL][:3]
    talk = Connection().open()
    talk.send(tokens[0]).answer(tokens[1]).send(tokens[2])
    for number in range(20):
        # RFC 4121, 4.2.6.2: a wrap token that is sealed, and what nobody can read.
        wrapped = b"\x05\x04\x06\xff\0\0\0\x1c" + number.to_bytes(8, "big") + bytes(range(number, number + 60))
        talk.send(wrapped).answer(wrapped)
    found = [row for batch in capture.read(io.BytesIO(pcap(talk.packets))) for row in batch.to_pylist()]
    assert {row["status"] for row in found} == {"sasl"}
    assert sum(row["size"] for row in found) == sum(map(len, tokens)) + 40 * 76
