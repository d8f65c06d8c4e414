"""Captures of real brokers and clients over TLS, with the key logs of the clients.

Beside each capture stand ``NAME.keys`` (the key log), ``NAME.tshark.json`` (what tshark decrypts with it) and, where
the client tells, ``NAME.told.jsonl``.
"""

from __future__ import annotations

import base64
import collections
import hashlib
import io
import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from valid_batches import valid

from kwire import capture
from kwire.capture.frames import Frame
from kwire.capture.reading import Reading
from kwire.capture.tracker import Tracker
from kwire.kernels.layouts import Status
from kwire.tls import KeyLog

HERE = Path(__file__).parent
CAPTURES = sorted((HERE / "tls").glob("kafka*/*.pcap*"))

every_capture = pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.name}")


def beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name.rsplit(".", 1)[0] + ending)


def frames_of(path: Path, keys: KeyLog | None, **options: Any) -> list[Frame]:
    with path.open("rb") as file:
        return [frame for frames in Reading(file, keys=keys, **options) for frame in frames]


def rows(path: Path, table: str, **options: Any) -> list[dict[str, Any]]:
    with path.open("rb") as file:
        return [row for batch in valid(capture.read(file, table, **options)) for row in batch.to_pylist()]


def test_there_are_captures() -> None:
    assert [path.name for path in CAPTURES] == ["tour.pcap", "agent.pcap", "tls-1.2.pcap", "tls-1.3.pcapng"]


@every_capture
def test_every_frame_is_decoded(path: Path) -> None:
    found = rows(path, "messages", keylog=beside(path, ".keys"))
    words = collections.Counter(row["status"] for row in found)
    # franz-go hangs up while a broker answers.
    assert words.pop("cut_off", 0) == (path.name == "tour.pcap")
    assert set(words) == {"ok"}
    assert words["ok"] > 50
    asked = sum(row["direction"] == "request" for row in found)
    assert asked > len(found) / 2 - 10


@every_capture
def test_tshark_decrypts_the_same_bytes(path: Path) -> None:
    said: dict[int, list[bytes]] = collections.defaultdict(lambda: [b"", b""])
    for frame in frames_of(path, KeyLog.open(beside(path, ".keys"))):
        size = struct.pack(">i", frame.size)
        said[frame.client.port][frame.is_response] += size + frame.data
    found = {port: sorted([len(one), hashlib.sha256(one).hexdigest()] for one in ways) for port, ways in said.items()}
    told = json.loads(beside(path, ".tshark.json").read_text())
    assert found == {one["client_port"]: one["bytes"] for one in told}


@every_capture
def test_without_its_key_a_connection_is_one_row(path: Path) -> None:
    plain = frames_of(path, None)
    assert {frame.status for frame in plain} == {Status.ENCRYPTED}
    assert {frame.error for frame in plain} == {None}
    keyless = frames_of(path, KeyLog())
    assert {frame.error for frame in keyless} == {"no key for this connection in the key log"}
    for one, other in zip(plain, keyless, strict=True):
        assert (one.number, one.time, one.client, one.is_response) == (
            other.number,
            other.time,
            other.client,
            other.is_response,
        )


@every_capture
def test_a_wrong_key_is_said(path: Path) -> None:
    text = beside(path, ".keys").read_text()
    zeros = re.sub(r"[0-9A-Fa-f]{64,}$", lambda found: "00" * (len(found[0]) // 2), text, flags=re.MULTILINE)
    keys = KeyLog(zeros.encode())
    assert {frame.error for frame in frames_of(path, keys)} == {"the key in the key log does not fit this connection"}


@pytest.mark.wide(keep=4)
@every_capture
@pytest.mark.parametrize("window", [64, 1000, 20_000])
def test_windows_of_any_size_give_the_same_frames(path: Path, window: int) -> None:
    keys = KeyLog.open(beside(path, ".keys"))
    whole, parts = frames_of(path, keys), frames_of(path, keys, window=window)
    assert sorted((one._values["number"], one.time, one.data) for one in parts) == sorted(
        (one._values["number"], one.time, one.data) for one in whole
    )


@every_capture
def test_ports_that_are_named_change_nothing(path: Path) -> None:
    about = json.loads(beside(path, ".json").read_text())
    keys = beside(path, ".keys")
    assert rows(path, "frames", keylog=keys) == rows(path, "frames", keylog=keys, ports=about["ports"])


@pytest.mark.wide
@every_capture
def test_a_state_in_between_changes_nothing(path: Path) -> None:
    keys = KeyLog.open(beside(path, ".keys"))
    data = path.read_bytes()
    tracker = Tracker(keys=keys)
    found = []
    secrets = [
        line.split()[2] for line in beside(path, ".keys").read_text().splitlines() if " " in line and line[0] != "#"
    ]
    for at in range(0, len(data), 3001):
        found += list(tracker.feed(data[at : at + 3001], final=at + 3001 >= len(data)))
        saved = tracker.save()
        assert not any(secret in str(saved.to_pydict()) + str(saved.schema.metadata) for secret in secrets)
        if at + 3001 < len(data):
            tracker = Tracker(keys=keys)
            tracker.restore(saved)
    whole = frames_of(path, keys)
    assert sorted((one.number, one.time, one.data) for one in found) == sorted(
        (one.number, one.time, one.data) for one in whole
    )


@every_capture
def test_connections_that_go_on_in_the_next_file(path: Path) -> None:
    keys = KeyLog.open(beside(path, ".keys"))
    data = path.read_bytes()
    if path.suffix == ".pcapng":
        # Sections and interfaces stand at the beginning of a file.
        return
    at, half = 24, len(data) // 2
    while at < half:
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    first, second = Tracker(keys=keys), Tracker(keys=keys)
    found = list(first.feed(data[:at]))
    second.restore(first.save([one.number for one in first.connections()]))
    found += list(second.feed(data[:24] + data[at:], final=True))
    whole = frames_of(path, keys)
    assert sorted(one.data for one in found) == sorted(one.data for one in whole)
    assert {one.status for one in found} == {one.status for one in whole}


@every_capture
def test_what_clients_tell_is_there(path: Path) -> None:
    told = beside(path, ".told.jsonl")
    if not told.exists():
        assert path.name == "agent.pcap"
        values = [row["value"] for row in rows(path, "records", keylog=beside(path, ".keys"))]
        assert {b"line number %d" % n for n in range(20)} <= set(values)
        return
    lines = [json.loads(line) for line in told.read_text().splitlines()]
    sent = collections.Counter(
        (line["topic"], line["key"], line["value"]) for line in lines if line["direction"] == "produce"
    )
    assert sent
    found = collections.Counter(
        (row["topic"], text(row["key"]), text(row["value"]))
        for row in rows(path, "records", keylog=beside(path, ".keys"))
        if row["source"] == "produce"
    )
    assert sent <= found


def text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def with_secrets(data: bytes, keys: bytes, kind: int = 0x544C534B) -> bytes:
    """A pcapng capture with a block of secrets behind its section header."""
    size = int.from_bytes(data[4:8], "little")
    padded = keys + bytes(-len(keys) % 4)
    total = 20 + len(padded)
    block = struct.pack("<IIII", 10, total, kind, len(keys)) + padded + struct.pack("<I", total)
    return data[:size] + block + data[size:]


def test_secrets_in_the_capture_itself_will_do() -> None:
    (path,) = [path for path in CAPTURES if path.suffix == ".pcapng"]
    keys, data = beside(path, ".keys").read_bytes(), path.read_bytes()
    expected = [frame.data for frame in frames_of(path, KeyLog(keys))]
    for window in (None, 100, 10_000):
        reading = Reading(io.BytesIO(with_secrets(data, keys)), window=window)
        assert [frame.data for frames in reading for frame in frames] == expected
    for other in (with_secrets(data, keys, 0x57474B4C), with_secrets(data, b"")):
        found = [frame for frames in Reading(io.BytesIO(other)) for frame in frames]
        assert {frame.status for frame in found} == {Status.ENCRYPTED}
    half = keys.splitlines(True)
    both = with_secrets(data, b"".join(half[::2]))
    found = [frame.data for frames in Reading(io.BytesIO(both), keys=KeyLog(b"".join(half[1::2]))) for frame in frames]
    assert found == expected


def test_secrets_in_the_capture_are_part_of_its_state() -> None:
    (path,) = [path for path in CAPTURES if path.suffix == ".pcapng"]
    keys = beside(path, ".keys").read_bytes()
    data = with_secrets(path.read_bytes(), keys)
    found, tracker = [], Tracker()
    for at in range(0, len(data), 9000):
        found += [frame.data for frame in tracker.feed(data[at : at + 9000], final=at + 9000 >= len(data))]
        saved = tracker.save()
        if at + 9000 < len(data):
            tracker = Tracker()
            tracker.restore(saved)
    assert found == [frame.data for frame in frames_of(path, KeyLog(keys))]


@every_capture
def test_what_is_known_of_tls_is_known_of_connections(path: Path) -> None:
    about = {"tls-1.2.pcap": {"TLS 1.2"}, "agent.pcap": {"TLS 1.2", "TLS 1.3"}}.get(path.name, {"TLS 1.3"})
    for keys, why in ((KeyLog.open(beside(path, ".keys")), "decrypted"), (KeyLog(), "no key")):
        with path.open("rb") as file:
            reading = Reading(file, keys=keys)
            for _ in reading:
                pass
        found = [one.tls for one in reading.tracker.connections()]
        assert {one.version for one in found if one} == about
        assert all(one and one.cipher and one.cipher.startswith("TLS_") and one.why.startswith(why) for one in found)
