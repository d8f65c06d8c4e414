# Invariant: any record as a CloudEvent and as a message of Hono is a row, the same by itself and in a column; any bytes
# as metrics of a client give points or a DecodeError; any bytes as a record of Kafka's own topics give what it says,
# None or a DecodeError. Nothing else is raised.
"""What is inside of records: events, metrics, and the records of Kafka's own topics."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa

from fuzz import GOLDEN
from kwire import log
from kwire.errors import DecodeError
from kwire.events import cloudevents, columns, hono, telemetry
from kwire.log.internal import decode_control, decode_record

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TOPICS = (
    "__consumer_offsets",
    "__transaction_state",
    "__cluster_metadata",
    "__share_group_state",
    "__remote_log_metadata",
)
_CLOUDEVENT, _HONO, _METRICS, _INTERNAL = range(4)

Parts = list[bytes]


def _parts(data: bytes) -> Parts:
    """Texts and values, each with a byte of its length before it; the rest is the last one."""
    found, at = [], 0
    while at < len(data):
        size = data[at]
        if size == 255:
            found.append(data[at + 1 :])
            break
        found.append(data[at + 1 : at + 1 + size])
        at += 1 + size
    return found


def _joined(parts: Parts) -> bytes:
    return b"".join(bytes([min(len(one), 254)]) + one[:254] for one in parts[:-1]) + b"\xff" + parts[-1]


def seeds() -> Iterator[bytes]:
    """An event in each form, a message of Hono, metrics, and records of segments."""
    event = {"specversion": "1.0", "id": "1", "source": "urn:a", "type": "t", "data": {"a": [1, None, "x"]}}
    event["time"] = "2020-01-01T00:00:00.5Z"
    yield bytes([_CLOUDEVENT, 2]) + _joined(
        [b"content-type", b"application/cloudevents+json", json.dumps(event).encode()]
    )
    binary = [b"ce_id", b"1", b"ce_source", b"urn:a", b"ce_type", b"t", b"ce_specversion", b"1.0", b"ce_x", b"y"]
    yield bytes([_CLOUDEVENT, 2]) + _joined([*binary, b"ce_time", b"2020-01-01T00:00:00Z", b"data"])
    yield bytes([_CLOUDEVENT, 2]) + _joined([*binary, b"content-type", b"application/json; charset=utf-8", b"{}"])
    headers = [b"device_id", b"4711", b"content-type", b"text/plain", b"creation-time", b"1577836800000", b"qos", b"1"]
    for kind in hono.KINDS.values():
        topic = f"{kind}tenant".encode()
        yield bytes([_HONO, 0]) + _joined([topic, b"4711", *headers, b"ttd", b"-1", b"ttl", b"60000", b"hello"])
    yield bytes([_METRICS, 0]) + bytes.fromhex("0a2a12281226 0a01 6d 3a21 0a1d".replace(" ", "")) + bytes(29)
    for path in sorted((GOLDEN / "segments").glob("*/__*/*.log")):
        for batch in log.read(path, columns=["key", "value"], secrets=True):
            for row in batch.slice(0, 12).to_pylist():
                if len(row["value"] or b"") < 1000:
                    number = next((n for n, one in enumerate(TOPICS) if one in path.parent.name), 0)
                    yield bytes([_INTERNAL, number]) + _joined([row["key"] or b"", row["value"] or b""])


def words() -> Iterator[bytes]:
    """Names of attributes and headers."""
    for name in (
        *hono.HEADERS,
        "content-type",
        "specversion",
        "datacontenttype",
        "data_base64",
        "dataschema",
        "subject",
    ):
        yield bytes([len(name)]) + name.encode()
    for name in ("id", "source", "type", "specversion", "time", "subject"):
        yield bytes([len(name) + 3]) + b"ce_" + name.encode()
    yield from (b"application/cloudevents+json", b"application/json", b"2020-01-01T00:00:00Z", b"1.0", b'"data":')


def check(data: bytes) -> None:
    """Asserts the invariant for one input."""
    if len(data) < 2:
        return
    kind, rest = data[0] % 4, data[2:]
    if kind == _METRICS:
        try:
            list(telemetry.points(telemetry.unpack(data[1] % 8, rest, 1 << 20)))
        except DecodeError:
            return
    elif kind == _INTERNAL:
        parts = [*_parts(rest), b"", b""]
        try:
            decode_control(parts[0] or None, parts[1] or None)
            decode_record(TOPICS[data[1] % len(TOPICS)], parts[0] or None, parts[1] or None)
        except DecodeError:
            return
    elif kind == _CLOUDEVENT:
        _cloudevent(_parts(rest), data[1] % 3)
    else:
        _hono(_parts(rest))


def _of(parts: Parts) -> tuple[list[tuple[str, bytes | None]], bytes | None]:
    value = parts[-1] if parts else None
    texts = [one.decode("utf-8", "replace") for one in parts[:-1:2]]
    return list(zip(texts, parts[1:-1:2], strict=False)), value


def _cloudevent(parts: Parts, magic: int) -> None:
    headers, value = _of(parts)
    row = cloudevents.row(headers, value, magic=magic)
    made = columns.cloudevents(
        pa.array([[{"key": key, "value": one} for key, one in headers]], HEADERS),
        pa.array([value], pa.binary()),
        pa.array([magic], pa.int8()),
    )
    made.validate(full=True)
    (found,) = made.to_pylist()
    assert (found and {**found, "extensions": dict(found["extensions"])}) == row


def _hono(parts: Parts) -> None:
    topic, key, *rest = [*parts, b"", b""]
    headers, value = _of(rest[:-2] if len(parts) > 2 else [])
    name = topic.decode("utf-8", "replace")
    message = hono.read(name, key, headers, value)
    made = columns.hono_messages(
        pa.array([name]),
        pa.array([key], pa.binary()),
        pa.array([[{"key": one, "value": content} for one, content in headers]], HEADERS),
        pa.array([value], pa.binary()),
        pa.array([1_577_836_800_000]),
    )
    made.validate(full=True)
    (found,) = made.to_pylist()
    assert (found is None) == (message is None)
    if message is not None:
        assert (found["tenant"], found["device_id"], found["qos"]) == (message.tenant, message.device_id, message.qos)
        assert [one["rule"] for one in found["violations"]] == [one.rule for one in message.violations]
