"""Captures of real brokers and clients, against what the clients said that they sent and read.

Beside each capture stand ``NAME.json`` (what was recorded, and which ports are the broker's) and ``NAME.jsonl``
(one line per record: what a client sent with which acks, offset as acknowledged, or read from where). Nothing here
knows the content of a particular capture.
"""

from __future__ import annotations

import base64
import collections
import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from valid_batches import valid

import kwire
from kwire import capture, schema, tables
from kwire.capture.frames import Frame
from kwire.capture.reading import Reading
from kwire.kernels.layouts import Status

HERE = Path(__file__).parent
CAPTURES = sorted(HERE.glob("*/*.pcap*"))
BACK = HERE / "paths" / "multipath" / "two-paths.pcap"
"""Times go back."""
WINDOWED = [BACK, *(path for path in sorted(HERE.rglob("*.pcap*")) if path != BACK)]
TABLES = [*tables.names("capture"), *tables.names("events")]
TOLD = [one for one in CAPTURES if one.with_suffix(".json").exists() and one.with_suffix(".jsonl").exists()]
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


every_capture = pytest.mark.parametrize("path", CAPTURES, ids=name_of)
told_capture = pytest.mark.parametrize("path", TOLD, ids=name_of)


def test_there_are_captures() -> None:
    assert TOLD


def rows(path: Path, table: Any, **options: Any) -> list[dict[str, Any]]:
    with path.open("rb") as file:
        return [row for batch in valid(capture.read(file, table, **options)) for row in batch.to_pylist()]


def about(path: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(path.with_suffix(".json").read_text())
    return made


def expected(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.with_suffix(".jsonl").read_text().splitlines()]


EXPECTED: dict[tuple[str, str, int, str], str] = {
    (
        "trailing",
        "AlterUserScramCredentials",
        0,
        "request",
    ): "librdkafka writes one byte too many, brokers do not mind",
    ("unsupported", "ApiVersions", 6, "request"): "asked on purpose for a version that does not exist",
}
"""Frames of real clients that are not what the schemas say, and why."""


@every_capture
def test_there_are_frames_and_each_is_decoded(path: Path) -> None:
    found = rows(path, "messages")
    assert found
    last = {(row["connection"], row["direction"]): row["frame"] for row in found}
    for row in found:
        if row["status"] in ("ok", "trailing"):
            json.loads(row["body"])
        if row["status"] == "cut_off":
            # A client that closes while it waits resets the connection in the middle of what the broker still sends.
            assert row["direction"] == "response"
            assert row["frame"] == last[row["connection"], "response"]
        elif row["status"] not in ("ok", "sasl", "encrypted"):
            assert (row["status"], row["api_name"], row["api_version"], row["direction"]) in EXPECTED, row


@told_capture
def test_connections_are_recognised_without_naming_ports(path: Path) -> None:
    assert rows(path, "frames") == rows(path, "frames", ports=about(path)["ports"])


@every_capture
def test_every_request_is_answered_except_produce_with_acks_0(path: Path) -> None:
    waiting: dict[int, list[dict[str, Any]]] = collections.defaultdict(list)
    answered = 0
    for row in rows(path, "messages"):
        if row["api_key"] is None:
            continue
        if row["direction"] == "request":
            assert row["latency_ms"] is None
            if row["body"] is None or json.loads(row["body"]).get("acks") != 0:
                waiting[row["connection"]].append(row)
            continue
        # A broker answers in order, so what is answered is the oldest request: its columns are the response's. What is
        # left at the end was asked just before one of the two closed the connection.
        asked = waiting[row["connection"]].pop(0)
        for column in ("correlation_id", "api_key", "api_version", "client_id", "client_port"):
            assert row[column] == asked[column]
        spent = (row["timestamp"] - asked["timestamp"]).total_seconds() * 1e3
        assert row["latency_ms"] == pytest.approx(spent, abs=2e-3)
        answered += 1
    assert answered


@pytest.mark.wide(keep=5)
@pytest.mark.parametrize("path", WINDOWED, ids=name_of)
def test_windows_of_any_size_give_the_same_tables(path: Path) -> None:
    """The same rows in the same order."""

    def read(window: int | None) -> dict[str, list[dict[str, Any]]]:
        made: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
        with path.open("rb") as file:
            for name, batch in capture.read(file, tables=TABLES, window=window):
                batch.validate(full=True)
                made[name] += batch.to_pylist()
        return made

    whole = read(None)
    for name in ("frames", "messages"):
        assert [row["frame"] for row in whole[name]] == list(range(len(whole[name])))
    # Small ones, but not so many that a large capture takes long.
    for window in (max(1000, path.stat().st_size // 50), 20_000):
        assert read(window) == whole


def frames(path: Path) -> Iterator[tuple[Frame, str]]:
    """Each whole frame that is as its schema says, and the name of its API."""
    names = schema.api_keys()
    with path.open("rb") as file:
        for found in Reading(file):
            for frame in found:
                name = names.get(-1 if frame.api_key is None else frame.api_key, "")
                if frame.status == Status.OK:
                    yield frame, name


@pytest.mark.wide(keep=12)
@every_capture
@pytest.mark.parametrize("implementation", ["compiled", "reference"])
def test_decoding_and_encoding_gives_the_same_bytes(path: Path, implementation: Any) -> None:
    seen = 0
    for frame, name in frames(path):
        seen += 1
        api, version, number = frame.api_key, frame.api_version, frame.correlation_id
        assert api is not None
        assert version is not None
        assert number is not None
        if frame.is_response:
            answer = kwire.decode_response(frame.data, api_key=api, api_version=version, implementation=implementation)
            body = type(answer.body).from_dict(answer.body.to_dict())
            assert body == answer.body
            again = kwire.encode_response(
                body, api_version=answer.api_version, correlation_id=number, implementation=implementation
            )
        else:
            asked = kwire.decode_request(frame.data, implementation=implementation)
            if (api, version) != (7, 0):  # ControlledShutdown v0 has no client_id
                assert asked.header.client_id == frame.client_id
            body = type(asked.body).from_dict(asked.body.to_dict())
            assert body == asked.body
            again = kwire.encode_request(
                body,
                api_version=version,
                correlation_id=number,
                client_id=asked.header.client_id,
                implementation=implementation,
            )
        assert again == frame.data, (name, version, frame.is_response)
    assert seen


def plain(value: str | None) -> bytes | None:
    return None if value is None else base64.b64decode(value)


@told_capture
def test_records_are_those_that_the_clients_sent_and_read(path: Path) -> None:
    found: dict[str, list[dict[str, Any]]] = {"produce": [], "fetch": []}
    for row in rows(path, "records"):
        if row["status"] == "unreadable":
            continue  # the client reset the connection in the middle of a response
        assert (row["status"], row["crc_ok"], row["error"]) == ("ok", True, None)
        if not row["is_control"]:
            found[row["source"]].append(row)

    # A client is not always told all: what is null in its line (partition or timestamp after acks=0) is not compared.
    def told(line: dict[str, Any]) -> tuple[Any, ...]:
        when = None if line["timestamp"] is None else EPOCH + datetime.timedelta(milliseconds=line["timestamp"])
        headers = str([{"key": key, "value": plain(value)} for key, value in line["headers"]])
        return line["topic"], line["partition"], when, plain(line["key"]), plain(line["value"]), headers

    def content(row: dict[str, Any], like: tuple[Any, ...]) -> tuple[Any, ...]:
        whole = (
            row["topic"],
            row["partition"],
            row["timestamp"],
            row["key"],
            row["value"],
            str(row["headers"]),
        )
        return tuple(None if like[k] is None and k in (1, 2) else one for k, one in enumerate(whole))

    def counted(source: str, shape: tuple[bool, bool]) -> collections.Counter[tuple[Any, ...]]:
        like = (0, None if shape[0] else 0, None if shape[1] else 0)
        return collections.Counter(content(row, (*like, 0, 0, 0)) for row in found[source])

    lines = expected(path)
    sent = [line for line in lines if line["direction"] == "produce" and "error" not in line]
    if all(row["magic"] == 0 for row in found["produce"]):
        # The client was told a timestamp, but the format that it had to write has none.
        sent = [{**line, "timestamp": None} for line in sent]
    read = [line for line in lines if line["direction"] == "fetch"]
    assert all(line["direction"] in ("produce", "fetch") for line in lines)

    # What was sent is in Produce requests. It may be there more than once: a client that is not answered sends again.
    if not about(path)["encrypted_ports"]:
        for shape in {(line["partition"] is None, line["timestamp"] is None) for line in sent}:
            mine = [told(line) for line in sent if (line["partition"] is None, line["timestamp"] is None) == shape]
            assert not collections.Counter(mine) - counted("produce", shape)

        # What a client read was in a Fetch response, at the same offset.
        fetched = collections.Counter((row["offset"], *content(row, (0,) * 6)) for row in found["fetch"])
        wanted = collections.Counter((line["offset"], *told(line)) for line in read)
        assert not wanted - fetched

        # And nothing else was in either, where clients read all that there is and close when they have it.
        if path.name.startswith("first-light"):
            assert sent
            assert read
            assert set(fetched) == set(wanted)
            assert len(found["produce"]) == len(sent)
