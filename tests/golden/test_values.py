"""Bytes of real serialisers become the values that were put in, wherever their schemas are from.

``record_values.py`` and ``JavaValues.java`` have made them; each file says with what.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from mock_registry import serving

from kwire.records.arrow_types import HEADERS
from kwire.values import Decoded, Reader, Schemas, decode
from kwire.values.sources import of_records

FILES = sorted((Path(__file__).parent / "values").glob("*.json"))


def sources(schemas: list[dict[str, Any]], folder: Path) -> Iterator[Schemas]:
    """The same schemas in a folder, in the topic of a registry, and in a registry."""
    (folder / "schemas.json").write_text(json.dumps(schemas))
    yield Schemas.of(folder)
    keys = [{"keytype": "SCHEMA", "subject": one["subject"], "version": one["version"], "magic": 1} for one in schemas]
    yield Schemas(
        [of_records([json.dumps(one).encode() for one in keys], [json.dumps(one).encode() for one in schemas])]
    )
    with serving(schemas) as registry:
        yield Schemas.of(registry.url)


def decoded(found: dict[str, Any], schemas: Schemas, **more: Any) -> Decoded:
    rows = found["values"]
    headers = [[{"key": key, "value": bytes.fromhex(value)} for key, value in one["headers"]] for one in rows]
    return decode(
        pa.array([bytes.fromhex(one["value"]) for one in rows], pa.binary()),
        schemas,
        headers=pa.array(headers, HEADERS),
        topics=pa.array([one["topic"] for one in rows], pa.string()),
        **more,
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_values_of_real_serialisers_are_what_was_put_in(path: Path, tmp_path: Path) -> None:
    found = json.loads(path.read_text())
    expected = {one["name"] + str(n): one["expected"] for n, one in enumerate(found["values"])}
    tables = []
    for schemas in sources(found["schemas"], tmp_path):
        if path.stem == "fastavro" and len(tables) == 2:
            # No registry knows schemas by their fingerprints.
            continue
        made = decoded(found, schemas)
        assert made.error.to_pylist() == [None] * len(expected)
        assert made.status.to_pylist() == ["ok"] * len(expected)
        texts = zip(expected, made.values.to_pylist(), strict=True)
        assert {name: json.loads(text) for name, text in texts} == expected
        tables.append(pa.table(list(made), names=list(Decoded._fields)))
    assert len(tables) >= 2
    assert all(one.equals(tables[0]) for one in tables)
    # Nothing is claimed of a value whose schema nobody has, but for text that is JSON.
    alone = decoded(found, Schemas())
    of_json = [one["value"][:2] == "7b" for one in found["values"]]
    assert [one == "ok" for one in alone.status.to_pylist()] == of_json


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_byte_less_or_more_is_no_value(path: Path, tmp_path: Path) -> None:
    found = json.loads(path.read_text())
    schemas = next(sources(found["schemas"], tmp_path))
    avro = [one for one in found["values"] if "lines" in one["expected"]]
    for change in (lambda data: data[:-2], lambda data: data + "00"):
        rows = [{**one, "value": change(one["value"])} for one in avro]
        assert set(decoded({"values": rows}, schemas).status.to_pylist()) <= {"malformed", "unknown_schema"}


def test_values_become_the_type_of_a_schema(tmp_path: Path) -> None:
    found = json.loads((Path(__file__).parent / "values" / "confluent.json").read_text())
    schemas = next(sources(found["schemas"], tmp_path))
    for subject, topic in (("orders-value", "orders"), ("outer-value", "outer"), ("documents-value", "documents")):
        rows = [one for one in found["values"] if one["topic"] == topic]
        written = schemas.newest(subject)
        assert written is not None
        reader = Reader.of(written, schemas)
        if topic == "outer":
            from dataclasses import replace

            reader = Reader.of(replace(written, message="shop.Outer"), schemas)
        made = decoded({"values": rows}, schemas, reader=reader)
        plain = [{**one, "tags": dict(one["tags"])} if "tags" in one else one for one in made.values.to_pylist()]
        assert plain == [one["expected"] for one in rows]
