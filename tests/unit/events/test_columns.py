"""Events by the column are what they are by the row, whatever stands beside them in a batch."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from counted_work import lines
from event_samples import BINARY, SAMPLES
from hono_samples import MESSAGES, seeded_tenant

from kwire import tables
from kwire.events import cloudevents, columns, hono
from kwire.tables.meanings import PLACE_FIELDS
from kwire.tables.records import SCHEMA as RECORDS

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
NOW = 1_763_700_000_500


@pytest.mark.parametrize("name", ["cloudevents", "hono"])
def test_the_columns_of_a_record_s_place_stand_first_and_are_of_the_records_types(name: str) -> None:
    schema = tables.table(name, "events").schema
    first = list(schema)[: len(columns.PLACE)]
    assert first == list(PLACE_FIELDS)
    assert [field.name for field in first] == [columns.RENAMED.get(own, own) for own in columns.PLACE]
    assert [(field.type, field.nullable) for field in first] == [
        (RECORDS.field(own).type, RECORDS.field(own).nullable) for own in columns.PLACE
    ]
    assert len(set(schema.names)) == len(schema.names)


def events(samples: list[Any], *, with_magic: bool = True) -> list[Any]:
    made = columns.cloudevents(
        pa.array([[{"key": k, "value": v} for k, v in headers] for _, headers, _, _ in samples], HEADERS),
        pa.array([value for _, _, value, _ in samples], pa.binary()),
        pa.array([magic for *_, magic in samples], pa.int8()) if with_magic else None,
    )
    assert made.type == columns.CLOUDEVENT
    made.validate(full=True)
    rows = made.to_pylist()
    for row in rows:
        if row is not None:
            row["extensions"] = dict(row["extensions"])
    return rows


def messages(samples: list[Any]) -> list[Any]:
    made = columns.hono_messages(
        pa.array([topic for _, topic, *_ in samples], pa.string()),
        pa.array([key for _, _, key, *_ in samples], pa.binary()),
        pa.array([[{"key": k, "value": v} for k, v in one[3]] for one in samples], HEADERS),
        pa.array([one[4] for one in samples], pa.binary()),
        pa.array([NOW] * len(samples), pa.int64()),
    )
    assert made.type == columns.HONO_MESSAGE
    made.validate(full=True)
    fields = dict(zip((field.name for field in made.type), made.flatten(), strict=True))
    times = [fields[name].cast(pa.int64()).to_pylist() for name in ("creation_time", "connected_until")]
    rows = pa.StructArray.from_arrays(
        [one for i, one in enumerate(made.flatten()) if not pa.types.is_timestamp(made.type[i].type)],
        names=[field.name for field in made.type if not pa.types.is_timestamp(field.type)],
    ).to_pylist()
    for row, created, until, there in zip(rows, *times, made.is_valid().to_pylist(), strict=True):
        row |= {"there": there, "creation_time": created, "connected_until": until}
    return rows


@pytest.mark.parametrize("sample", SAMPLES, ids=[name for name, *_ in SAMPLES])
def test_one_record_is_the_same_event(sample: Any) -> None:
    _, headers, value, magic = sample
    assert events([sample]) == [cloudevents.row(headers, value, magic=magic)]


@pytest.mark.parametrize("seed", range(5))
def test_any_mixture_of_records_is_the_same_events(seed: int) -> None:
    mixed = [("", BINARY, b"x", 2), *SAMPLES] * 2
    random.Random(seed).shuffle(mixed)
    assert events(mixed) == [cloudevents.row(headers, value, magic=magic) for _, headers, value, magic in mixed]
    assert events(mixed, with_magic=False) == [cloudevents.row(headers, value) for _, headers, value, _ in mixed]


def test_slices_and_nulls_are_read_as_what_they_are() -> None:
    event = [{"key": k, "value": v} for k, v in BINARY]
    headers = pa.array([event, None, [], event[:2], event], HEADERS)
    value = pa.array([b"a", b"b", b"c", b"d", None], pa.binary())
    for first in range(5):
        made = columns.cloudevents(headers.slice(first), value.slice(first)).to_pylist()
        assert [row and (row["data"], row["error"]) for row in made] == [
            (b"a", None),
            None,
            None,
            (b"d", "id is missing; source is missing"),
            (None, None),
        ][first:]
    assert columns.cloudevents(headers.slice(5), value.slice(5)).to_pylist() == []


class Compared(str):
    """A header name that counts how often one is compared with another."""

    count = 0

    def __eq__(self, other: object) -> bool:
        Compared.count += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_ten_thousand_headers_cost_four_times_as_much_as_a_quarter_of_them() -> None:
    """Each name twice: what is wrong with a header is found without going through all the others."""

    def hostile(count: int) -> tuple[list[tuple[str, bytes]], int]:
        headers: list[tuple[str, bytes]] = [(f"ce_a{i % (count // 2)}", b"x") for i in range(count)]
        found: list[Any] = []
        ran = lines(lambda: found.extend(events([("", headers, b"", 2)])), 100 * count)
        assert len(found[0]["extensions"]) == count // 2
        assert found[0]["error"].count("appears more than once") == count // 2
        return headers, ran

    (_, few), (headers, many) = hostile(2_500), hostile(10_000)
    assert 2_500 < few < many < 4.4 * few
    Compared.count = 0
    assert cloudevents.row([(Compared(name), value) for name, value in headers], b"", magic=2) is not None
    assert 10_000 <= Compared.count < 100_000


def hono_rows(samples: list[Any]) -> list[Any]:
    rows = []
    for _, topic, key, headers, value, *_ in samples:
        message = hono.read(topic, key, headers, value)
        names = [field.name for field in columns.HONO_MESSAGE if field.name != "expired"]
        row: dict[str, Any] = {name: message and getattr(message, name) for name in names}
        row |= {"there": message is not None, "expired": None}
        if message is not None:
            row["expired"] = hono.expired(message.creation_time, message.ttl, NOW)
            row["violations"] = [one._asdict() for one in message.violations]
            for name in ("creation_time", "connected_until"):
                row[name] = None if row[name] is None else row[name] * 1000
        rows.append(row)
    return rows


@pytest.mark.parametrize("sample", MESSAGES, ids=[name for name, *_ in MESSAGES])
def test_one_record_is_the_same_message(sample: Any) -> None:
    assert messages([sample]) == hono_rows([sample])


@pytest.mark.parametrize("seed", range(5))
def test_any_mixture_of_records_is_the_same_messages(seed: int) -> None:
    mixed = [*MESSAGES, *MESSAGES]
    random.Random(seed).shuffle(mixed)
    assert messages(mixed) == hono_rows(mixed)


def test_a_tenant_is_the_same_messages() -> None:
    records, _ = seeded_tenant(1000)
    samples = [("", topic, key, headers, value) for topic, _, key, value, headers, _ in records]
    assert messages(samples) == hono_rows(samples)
