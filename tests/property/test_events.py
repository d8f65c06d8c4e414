"""Events of any content survive both content modes; records of any content never raise, by the row or by the column."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st

from kwire.errors import DecodeError
from kwire.events import cloudevents, columns, hono
from kwire.records import Record

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

# Cs: surrogates; Cc: control characters; Cn has the non-characters.
TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn")), min_size=1, max_size=20)
URI = st.text("abcXYZ019-._~:/?#[]@!$&'()*+,;=", min_size=1, max_size=20)
ZONES = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=st.one_of(st.just(UTC), ZONES))
VALUES = st.one_of(TEXT, st.booleans(), st.integers(-(1 << 31), (1 << 31) - 1))
NAMES = st.from_regex(r"\Ax[a-z0-9]{0,10}\Z")
JSON = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXT),
    lambda one: st.one_of(st.lists(one, max_size=3), st.dictionaries(TEXT, one, max_size=3)),
    max_leaves=8,
)


@st.composite
def events(draw: st.DrawFn) -> CloudEvent:
    attributes: dict[str, Any] = {"id": draw(TEXT), "source": draw(URI), "type": draw(TEXT), "specversion": "1.0"}
    attributes["time"] = draw(TIMES)
    for name, values in (("subject", TEXT), ("dataschema", URI.map(lambda uri: f"urn:{uri}"))):
        if draw(st.booleans()):
            attributes[name] = draw(values)
    attributes |= draw(st.dictionaries(NAMES, VALUES, max_size=3))
    kind = draw(st.sampled_from(["none", "bytes", "text", "json"]))
    data: Any = None
    if kind != "none":
        attributes["datacontenttype"] = {"bytes": "application/x", "text": "text/plain"}.get(kind, "application/json")
        data = draw({"bytes": st.binary(max_size=20), "text": TEXT, "json": JSON}[kind])
    return CloudEvent(attributes, data)


@given(events(), st.sampled_from(["binary", "structured"]))
def test_an_event_is_the_same_when_it_comes_back(event: CloudEvent, mode: Any) -> None:
    record = cloudevents.to_record(event, mode=mode)
    back = cloudevents.from_record(record)
    want = event.get_attributes()
    if mode == "binary":
        # Headers are text.
        want = {name: one if name == "time" else cloudevents.canonical(name, one) for name, one in want.items()}
    assert back.get_attributes() == want
    data, got = event.get_data(), back.get_data()
    if mode == "binary" and data is not None:
        assert got == cloudevents.data_bytes(data, event.get_datacontenttype())
    else:
        assert got == data
    # What came back is written as the same record again.
    assert cloudevents.to_record(back, mode=mode) == record


@given(events())
def test_both_modes_mean_the_same(event: CloudEvent) -> None:
    rows = []
    for mode in ("binary", "structured"):
        record = cloudevents.to_record(event, mode=mode)
        row = cloudevents.row(record.headers, record.value)
        assert row is not None
        assert row.pop("mode") == mode
        if row["datacontenttype"] == "application/json":
            row["data"] = json.loads(row["data"])
        rows.append(row)
    assert rows[0] == rows[1]


HEADER_NAMES = st.one_of(
    st.sampled_from(
        ["content-type", "ce_id", "ce_source", "ce_type", "ce_specversion", "ce_time", "ce_x", "ce_X", "x"]
    ),
    st.sampled_from(hono.HEADERS),
    st.text(max_size=5),
)
HEADER_VALUES = st.one_of(
    st.none(),
    st.binary(max_size=10),
    st.sampled_from([b"1.0", b"1", b"a/b", b"2020-01-01T00:00:00Z", b"application/cloudevents+json"]),
)
MANY = st.lists(st.tuples(HEADER_NAMES, HEADER_VALUES), max_size=8)
MEMBERS = st.dictionaries(
    st.sampled_from(
        ["id", "source", "type", "specversion", "time", "data", "data_base64", "datacontenttype", "x", "X"]
    ),
    st.one_of(st.none(), JSON, st.sampled_from(["1.0", "a/b", "2020-01-01T00:00:00Z"])),
)
PAYLOADS = st.one_of(st.none(), st.binary(max_size=20), MEMBERS.map(lambda one: json.dumps(one).encode()))
RECORDS = st.lists(st.tuples(MANY, PAYLOADS, st.integers(0, 2)), min_size=1, max_size=6)


def utf8(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


@given(RECORDS)
def test_any_records_are_rows_and_the_same_by_the_column(records: list[Any]) -> None:
    records = [([(utf8(name), one) for name, one in headers], value, magic) for headers, value, magic in records]
    rows = [cloudevents.row(headers, value, magic=magic) for headers, value, magic in records]
    made = columns.cloudevents(
        pa.array([[{"key": k, "value": v} for k, v in headers] for headers, _, _ in records], HEADERS),
        pa.array([value for _, value, _ in records], pa.binary()),
        pa.array([magic for *_, magic in records], pa.int8()),
    )
    made.validate(full=True)
    found = [row and {**row, "extensions": dict(row["extensions"])} for row in made.to_pylist()]
    assert found == rows
    for (headers, value, magic), row in zip(records, rows, strict=True):
        record = Record(None, value, headers=headers)
        try:
            event = cloudevents.from_record(record, magic=magic)
        except DecodeError:
            assert row is None or row["error"]
        else:
            assert row is not None
            assert (row["error"], row["id"]) == (None, event.get_id())


@given(st.lists(st.tuples(st.one_of(st.none(), st.binary(max_size=4)), MANY, PAYLOADS), min_size=1, max_size=6))
def test_any_records_are_messages_and_the_same_by_the_column(records: list[Any]) -> None:
    records = [(key, [(utf8(name), one) for name, one in headers], value) for key, headers, value in records]
    made = columns.hono_messages(
        pa.array(["hono.telemetry.t"] * len(records)),
        pa.array([key for key, _, _ in records], pa.binary()),
        pa.array([[{"key": k, "value": v} for k, v in headers] for _, headers, _ in records], HEADERS),
        pa.array([value for *_, value in records], pa.binary()),
        pa.array([0] * len(records), pa.int64()),
    )
    made.validate(full=True)
    for row, (key, headers, value) in zip(made.to_pylist(), records, strict=True):
        message = hono.read("hono.telemetry.t", key, headers, value)
        assert message is not None
        assert row["violations"] == [one._asdict() for one in message.violations]
        for name in ("device_id", "content_type", "content_encoding", "qos", "ttd", "ttl"):
            assert row[name] == getattr(message, name)


@given(st.integers(), st.sampled_from([4, 8]))
def test_a_number_is_read_from_text_and_from_its_bytes(value: int, size: int) -> None:
    fits = -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1
    assert hono.number(str(value).encode(), size) == (value if fits else None)
    if fits:
        data = value.to_bytes(size, "big", signed=True)
        printable = all(32 <= byte < 127 for byte in data)
        assert hono.number(data, size) == (value if not printable else int(data) if data.isdigit() else None)


@given(st.binary(max_size=30))
def test_any_bytes_are_a_number_or_not(value: bytes) -> None:
    for size in (4, 8):
        found = hono.number(value, size)
        assert found is None or -(1 << 8 * size - 1) <= found < 1 << 8 * size - 1
