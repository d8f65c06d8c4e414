"""Texts as dictionaries are the texts: the same tables either way, whole and filtered, at any window."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwire import capture
from kwire.kernels.engine import Engine, using
from kwire.records.arrow_types import DICTIONARY
from kwire.tables import CAPTURE, names, table
from kwire.tables.columns import Texts, Words, filled, in_type, pick, picked, with_dictionaries

GOLDEN = Path(__file__).parents[2] / "golden"
CAPTURES = ("kafka-4.3-kraft-librdkafka/current.pcap", "kafka-3.9-zk-brokers/protocol-0.10.0.pcap")
TABLES = [one for one in names(CAPTURE) if one != "client_metrics"]
FILTERED = [one for one in TABLES if table(one).filters and "ok" in table(one).statuses]
CHOSEN: list[dict[str, Any]] = [
    {},
    {"status": ["ok"]},
    {"topics": ["new-gzip", "gone"]},
    {"apis": ["Produce", "Fetch"]},
]


def rows(data: bytes, **how: Any) -> dict[str, pa.Table]:
    made: dict[str, list[pa.RecordBatch]] = {}
    for name, batch in capture.read(
        io.BytesIO(data), tables=FILTERED if set(how) & {"status", "topics", "apis"} else TABLES, name="x", **how
    ):
        batch.validate(full=True)
        made.setdefault(name, []).append(batch)
    return {name: pa.Table.from_batches(batches) for name, batches in made.items()}


@pytest.mark.wide
@pytest.mark.parametrize("path", CAPTURES)
@pytest.mark.parametrize("window", [1 << 12, None])
@pytest.mark.parametrize("chosen", CHOSEN)
def test_they_are_the_same_texts(path: str, window: int | None, chosen: dict[str, Any]) -> None:
    data = (GOLDEN / path).read_bytes()
    plain = rows(data, window=window, **chosen)
    coded = rows(data, window=window, dictionaries=True, **chosen)
    assert plain.keys() == coded.keys()
    assert plain
    for name, one in plain.items():
        of = coded[name]
        texts = [field.name for field in one.schema if field.type == pa.string()]
        kinds = {of.schema.field(text).type for text in texts}
        assert kinds == ({DICTIONARY} if table(name).dictionaries else {pa.string()})
        assert of.cast(one.schema).equals(one), name


@pytest.mark.parametrize("values", [["a", "b", None, "a"], ["a"], [None], [None, "b"]])
@pytest.mark.parametrize("counts", [None, [2, 0, 3, 1, 1]])
def test_picked_texts_are_those_of_their_numbers(values: list[str | None], counts: list[int] | None) -> None:
    number = np.array([0, len(values) - 1, 0, len(values) // 2, 0])
    each = counts or [1] * 5
    wanted = [values[one] for one, many in zip(number, each, strict=True) for _ in range(many)]
    of = None if counts is None else np.array(counts)
    made = [
        pick(values, number, of),
        Texts(values, [len(one or "") for one in values], number).column(np.arange(5), of),
    ]
    if counts is None:
        made.append(picked(Words(values), number))
    for one in made:
        coded, plain = in_type(one, DICTIONARY), in_type(one, pa.string())
        assert (coded.type, plain.type, len(one)) == (DICTIONARY, pa.string(), len(wanted))
        assert not coded.dictionary.null_count
        coded.validate(full=True)
        plain.validate(full=True)
        assert coded.to_pylist() == plain.to_pylist() == pa.array(one).to_pylist() == wanted
        assert in_type(plain, DICTIONARY).to_pylist() == in_type(coded, pa.string()).to_pylist() == wanted


@pytest.mark.parametrize("long", [40, 20_000])
def test_texts_are_spread_with_room_that_is_counted_or_estimated(engine: Engine, long: int) -> None:
    texts = ["", "request", "ü" * long]
    numbers = np.array([1, 0, 1, 2] * 30)
    with using(engine):
        made = in_type(picked(Words(texts), numbers), pa.string())
    made.validate(full=True)
    assert made.to_pylist() == [texts[one] for one in numbers]


def test_of_many_texts_those_that_occur_are_there() -> None:
    values = [f"topic {k}" for k in range(5000)]
    number = np.array([7, -1, 4999, 7])
    made = Texts(values, [10] * 5000, np.arange(5000)).column(number)
    assert pa.array(made).to_pylist() == ["topic 7", None, "topic 4999", "topic 7"]
    assert len(made.coded().dictionary) == 2


def test_a_batch_is_filled_by_its_schema() -> None:
    schema = pa.schema([("a", pa.string()), ("n", pa.int64())])
    values = {"a": pick(["x", "y"], np.array([1, 0, 1])), "n": pa.array([1, 2, 3])}
    plain = filled(schema, values.__getitem__)
    coded = filled(with_dictionaries(schema), values.__getitem__)
    assert plain.schema == schema
    assert coded.schema.types == [DICTIONARY, pa.int64()]
    assert plain.to_pylist() == coded.to_pylist()
