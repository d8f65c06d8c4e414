"""Values in container files of Avro's own tests are what their writers put in (``avro/README.md``).

fastavro reads the blocks. The values in them are decoded by kwire, as JSON text and as one type.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from kwire.values import Reader, Schemas, Written, decode
from kwire.values.framing import VALUE

FOLDER = Path(__file__).parent / "avro"
FILES = sorted(FOLDER.glob("*.avro"))
WEATHER = [
    {"station": "011990-99999", "time": -619524000000, "temp": 0},
    {"station": "011990-99999", "time": -619506000000, "temp": 22},
    {"station": "011990-99999", "time": -619484400000, "temp": -11},
    {"station": "012650-99999", "time": -655531200000, "temp": 111},
    {"station": "012650-99999", "time": -655509600000, "temp": 78},
]
FRUITS = [{"name": "apple", "count": 3}, {"name": "banana", "count": 2}, {"name": "carrot", "count": 1}]
KNOWN: dict[str, list[Any]] = {
    "weather.avro": WEATHER,
    "weather-snappy.avro": WEATHER,
    "weather-sorted.avro": sorted(WEATHER, key=lambda one: one["time"]),
    "part-r-00000.avro": FRUITS,
    "TestDataFileTools.testWrite.plain.avro": list(range(10)),
    "TestDataFileTools.testWrite.deflate.avro": list(range(10)),
}


def content(path: Path) -> tuple[str, list[bytes], list[Any]]:
    """The schema of a file, its values as bytes, and as fastavro reads them."""
    values, expected = [], []
    with path.open("rb") as file:
        blocks = fastavro.block_reader(file)
        schema = blocks.writer_schema
        for block in blocks:
            for _ in range(block.num_records):
                at = block.bytes_.tell()
                expected.append(fastavro.schemaless_reader(block.bytes_, schema, None))
                values.append(block.bytes_.getvalue()[at : block.bytes_.tell()])
            assert not block.bytes_.read()
        return blocks.metadata["avro.schema"], values, expected


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_values_of_a_container_file_are_what_was_put_in(path: Path) -> None:
    text, values, expected = content(path)
    assert expected == KNOWN.get(path.name, expected)
    written = Written("avro", text)
    schemas = Schemas(topics={("t", VALUE): written})
    column = pa.array(values, pa.binary())
    made = decode(column, schemas, topics="t")
    assert made.status.to_pylist() == ["ok"] * len(values)
    assert [json.loads(one) for one in made.values.to_pylist()] == expected
    if "recursive" in path.name:
        return  # what has itself inside is JSON text in any case
    reader = Reader.of(written, schemas)
    assert decode(column, schemas, topics="t", reader=reader).values.to_pylist() == expected
    # A byte less or more is no value.
    for data in [one[:-1] for one in values if one] + [one + b"\0" for one in values]:
        assert decode(pa.array([data]), schemas, topics="t").status.to_pylist() != ["ok"]


def test_there_are_files_of_avro_itself() -> None:
    assert {*KNOWN} <= {path.name for path in FILES}
