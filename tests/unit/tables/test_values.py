"""What values mean stands in the tables of records: of captures, of segments, and on the command line."""

from __future__ import annotations

import io
import json
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from mock_registry import serving
from packets import Connection, pcap, produce, produce_answer
from pyarrow import parquet
from record_sets import batch, record

from kwire import capture, log, tables
from kwire.cli import main
from kwire.errors import KwireError
from kwire.kernels import helpers
from kwire.tables import values
from kwire.tables.values import FIELDS
from kwire.values import Mask, Schemas

FIRST = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": "string"}],
}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
SCHEMAS: list[dict[str, Any]] = [
    {"subject": "orders-value", "version": 1, "id": 1, "schema": json.dumps(FIRST)},
    {"subject": "orders-value", "version": 2, "id": 2, "schema": json.dumps(SECOND)},
]


def avro(schema: dict[str, Any], value: dict[str, Any], id_: int) -> bytes:
    made = io.BytesIO(b"\0" + struct.pack(">I", id_))
    made.seek(5)
    fastavro.schemaless_writer(made, fastavro.parse_schema(schema), value)
    return made.getvalue()


VALUES = [
    avro(FIRST, {"id": 1, "who": "a"}, 1),
    avro(SECOND, {"id": 2, "who": "b", "note": "n"}, 2),
    avro(FIRST, {"id": 3, "who": "c"}, 99),
    b"\0\0\0\0\1\2",
]
TYPED = [{"id": 1, "who": "a", "note": None}, {"id": 2, "who": "b", "note": "n"}, None, None]
STATUSES = ["ok", "ok", "unknown_schema", "malformed"]


def records(values: list[bytes], keys: list[bytes] | None = None) -> bytes:
    pairs = zip(keys or [b"k"] * len(values), values, strict=True)
    made = [record(offset=n, key=key, value=value) for n, (key, value) in enumerate(pairs)]
    return batch(b"".join(made), len(made))


def topic() -> bytes:
    keys = [
        json.dumps({"keytype": "SCHEMA", "subject": one["subject"], "version": one["version"], "magic": 1}).encode()
        for one in SCHEMAS
    ]
    return records([json.dumps(one).encode() for one in SCHEMAS], keys)


@pytest.fixture
def captured(tmp_path: Path) -> Path:
    connection = Connection().open()
    connection.send(produce(1, 1, topic(), "_schemas")).answer(produce_answer(1, "_schemas"))
    connection.send(produce(2, 1, records(VALUES), "orders")).answer(produce_answer(2, "orders"))
    path = tmp_path / "broker.pcap"
    path.write_bytes(pcap(connection.packets))
    return path


def read(path: Path, **options: Any) -> pa.Table:
    return pa.Table.from_batches(capture.read(path, "records", topics=["orders"], **options))


def test_sources_give_equal_tables(captured: Path, tmp_path: Path) -> None:
    folder = tmp_path / "schemas"
    folder.mkdir()
    (folder / "schemas.json").write_text(json.dumps(SCHEMAS))
    segment = tmp_path / "_schemas-0" / "00000000000000000000.log"
    segment.parent.mkdir()
    segment.write_bytes(topic())
    with serving(SCHEMAS) as registry:
        found = [
            read(captured, schemas=one, values="json").drop_columns(["capture"])
            for one in (folder, captured, segment.parent, registry.url, [str(folder), str(captured)])
        ]
    first = found[0]
    assert first.column("value_status").to_pylist() == STATUSES
    assert [one and json.loads(one) for one in first.column("value_json").to_pylist()] == [
        {"id": 1, "who": "a"},
        {"id": 2, "who": "b", "note": "n"},
        None,
        None,
    ]
    assert first.column("value").to_pylist() == VALUES
    for other in found[1:]:
        assert other.equals(first)


def test_columns_about_values_are_there_by_name(captured: Path) -> None:
    names = [one.name for one in FIELDS]
    assert set(names).isdisjoint(tables.table("records").schema.names)
    made = read(captured, schemas=captured, columns=["offset", *names])
    assert made.column_names == ["offset", *names]
    assert made.column("value_schema_id").to_pylist() == [1, 2, 99, 1]
    assert made.column("value_framing").to_pylist() == ["confluent"] * 4
    assert made.column("value_format").to_pylist() == ["avro", "avro", None, "avro"]
    assert made.column("value_message").to_pylist() == ["Order", "Order", None, "Order"]
    assert made.column("key_status").to_pylist() == ["no_schema"] * 4
    errors = made.column("value_error").to_pylist()
    assert errors[:3] == [None, None, "no source has the id 99"]
    assert errors[3].startswith("orders-value v1: $.who at byte ")
    # Without schemas a value still says which it has.
    assert read(captured, columns=["value_schema_id"]).column("value_schema_id").to_pylist() == [1, 2, 99, 1]


def test_values_become_the_type_of_the_newest_schema(captured: Path) -> None:
    made = read(captured, schemas=captured, values="typed")
    assert made.column("value").to_pylist() == TYPED
    assert made.schema.field("value").type == pa.struct(
        [("id", pa.int64()), ("who", pa.string()), ("note", pa.string())]
    )
    assert made.column("value_status").to_pylist() == STATUSES


@pytest.mark.parametrize("mask", [["who"], Mask("who")])
def test_masked_fields_are_in_no_column(captured: Path, mask: Any) -> None:
    made = read(captured, schemas=captured, values="json", mask=mask, columns=["value_json"])
    assert json.loads(made.column("value_json")[0].as_py()) == {"id": 1, "who": None}


def test_a_mask_leaves_no_bytes_that_say_what_it_hides(captured: Path, tmp_path: Path) -> None:
    segment = tmp_path / "orders-0" / "00000000000000000000.log"
    segment.parent.mkdir()
    segment.write_bytes(records(VALUES))
    schemas = Schemas.of(captured)
    masked = {"schemas": schemas, "mask": Mask("who"), "columns": ["key", "value"]}
    (one,) = log.find(segment.parent)
    (of_segment,) = tables.table("records", "log").read(one, **masked)
    for made in (read(captured, **masked), read(captured, **masked, values="json"), of_segment):
        # A key that has no fields is as it was.
        assert made.column("key").to_pylist() == [b"k"] * 4
        assert made.column("value").to_pylist() == [None] * 4
    plain = read(captured, schemas=schemas, columns=["value"])
    assert plain.column("value").to_pylist() == VALUES


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"values": "json"}, "goes with schemas"),
        ({"values": "typed", "schemas": {}}, "goes with schemas"),
        ({"values": "typed", "schemas": {"orders": '"string"'}, "topics": ["a", "b"]}, "one topic"),
        ({"values": "typed", "schemas": {"orders": '"string"'}, "topics": ["a"]}, "no source has a schema"),
        ({"values": "xml"}, "json or typed"),
        ({"validate": True}, "goes with schemas"),
        ({"mask": ["who"]}, "goes with schemas"),
    ],
)
def test_options_that_make_no_sense_are_refused(captured: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        next(capture.read(captured, "records", **options))
    with pytest.raises(ValueError, match="schemas is for the table records"):
        next(capture.read(captured, "frames", schemas={"orders": '"string"'}))


def test_segments_have_the_same_columns(captured: Path, tmp_path: Path) -> None:
    segment = tmp_path / "orders-0" / "00000000000000000000.log"
    segment.parent.mkdir()
    segment.write_bytes(records(VALUES))
    table = tables.table("records", "log")
    (one,) = log.find(segment.parent)
    (made,) = table.read(one, columns=["value_json", "value_status"], schemas=Schemas.of(captured))
    assert made.column("value_status").to_pylist() == STATUSES
    assert json.loads(made.column("value_json")[1].as_py())["note"] == "n"


def test_segments_have_typed_values_of_one_topic(captured: Path, tmp_path: Path) -> None:
    for partition in range(2):
        segment = tmp_path / "data" / f"orders-{partition}" / "00000000000000000000.log"
        segment.parent.mkdir(parents=True)
        segment.write_bytes(records(VALUES))
    out = tmp_path / "out.parquet"
    line = ["decode", str(tmp_path / "data"), "--table", "records", "--values", str(captured), "--values-as", "typed"]
    with pytest.raises(SystemExit):
        main([*line, "--format", "parquet", "-o", str(out)])
    assert main([*line, "--topic", "orders", "--format", "parquet", "-o", str(out)]) == 0
    made = parquet.read_table(out)
    assert made.column("value").to_pylist() == TYPED * 2
    assert made.column("value_status").to_pylist() == STATUSES * 2
    assert set(made.column("topic").to_pylist()) == {"orders"}
    assert main([*line, "--topic", "orders", "--format", "parquet", "-o", str(out), "--jobs", "2"]) == 0
    assert parquet.read_table(out).equals(made)
    (segment, _) = log.find(tmp_path / "data")
    schemas = Schemas.of(captured)
    of_orders = values.typed(tables.table("records", "log"), "orders", schemas)
    assert sum(one.num_rows for one in of_orders.read(segment, schemas=schemas)) == len(VALUES)
    # Records of another topic have another type.
    assert list(of_orders.read(replace(segment, topic="others"), schemas=schemas)) == []


DOCUMENT = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
DOCUMENTS = [b'{"id":1}', b'{"id":"secret"}', b"{}", b"\xa1bid\x05"]


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A folder: a capture and a segment of the topic ``docs``, and its JSON Schema in ``schemas``."""
    connection = Connection().open()
    connection.send(produce(1, 1, records(DOCUMENTS), "docs")).answer(produce_answer(1, "docs"))
    (tmp_path / "docs.pcap").write_bytes(pcap(connection.packets))
    segment = tmp_path / "data" / "docs-0" / "00000000000000000000.log"
    segment.parent.mkdir(parents=True)
    segment.write_bytes(records(DOCUMENTS))
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "docs-value.json").write_text(json.dumps(DOCUMENT))
    return tmp_path


def test_values_are_validated_where_asked(documents: Path) -> None:
    read = {"schemas": str(documents / "schemas"), "columns": ["value_json", "value_status", "value_error"]}
    (plain,) = capture.read(documents / "docs.pcap", "records", **read)
    assert plain.column("value_status").to_pylist() == ["ok", "ok", "ok", "malformed"]
    for way in ({}, {"values": "json"}):
        (made,) = capture.read(documents / "docs.pcap", "records", **read, **way, validate=True)
        assert made.column("value_status").to_pylist() == ["ok", "invalid", "invalid", "malformed"]
        assert made.column("value_json").to_pylist() == ['{"id":1}', None, None, None]
        assert made.column("value_error")[1].as_py() == 'docs-value: $.id: the value is not of type "integer"'


def test_the_command_line_validates_and_reads_formats_without_a_schema(
    documents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["--format", "jsonl", "--columns", "value_json,value_status"]
    for file in ("docs.pcap", "data"):
        line = ["decode", str(documents / file), "--table", "records", *names]
        for values_, validate, expected in (
            (str(documents / "schemas"), ["--validate"], ["ok", "invalid", "invalid", "malformed"]),
            ("cbor", [], ["ok", "ok", "ok", "ok"]),
            ("docs=cbor", [], ["ok", "ok", "ok", "ok"]),
            ("others=cbor", [], ["ok", "ok", "ok", "no_schema"]),
        ):
            assert main([*line, "--values", values_, *validate]) == 0
            made = [json.loads(one) for one in capsys.readouterr().out.splitlines()]
            assert [one["value_status"] for one in made] == expected
            assert made[3]["value_json"] == ('{"id":5}' if expected[3] == "ok" else None)
        with pytest.raises(SystemExit):
            main([*line, "--validate"])
        assert "--validate goes with --values" in capsys.readouterr().err


def test_the_command_line_shows_values(captured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segment = tmp_path / "orders-0" / "00000000000000000000.log"
    segment.parent.mkdir()
    segment.write_bytes(records(VALUES))
    for file, more in ((captured, ["--topic", "orders"]), (segment.parent, [])):
        assert main(["decode", str(file), "--table", "records", "--values", str(captured), *more]) == 0
        shown = capsys.readouterr().out
        assert '{"id":1,"who":"a"}' in shown
        assert "unknown_schema" in shown
        line = ["decode", str(file), "--table", "records", "--values", str(captured), *more, "--format", "jsonl"]
        assert main([*line, "--columns", "value_json,value_status", "--mask", "who"]) == 0
        rows = [json.loads(one) for one in capsys.readouterr().out.splitlines()]
        assert [one["value_status"] for one in rows] == STATUSES
        assert json.loads(rows[0]["value_json"]) == {"id": 1, "who": None}


class TestBeside:
    """Values are decoded while the next records are read."""

    @pytest.fixture(autouse=True)
    def any_batch_is_worth_a_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(values, "FEW", 1)
        monkeypatch.setattr(helpers, "cores", lambda: 2)

    def test_batches_keep_their_order_and_few_wait(self) -> None:
        pulled, threads = [], set()

        def several() -> Iterator[pa.RecordBatch]:
            for number in range(9):
                pulled.append(number)
                # One without rows needs no thread.
                yield pa.record_batch({"n": [number] * (number != 4)})

        def make(batch: pa.RecordBatch) -> pa.RecordBatch:
            threads.add(threading.get_ident() if batch.num_rows else None)
            return batch

        beside = values._Beside(make, live=False)
        handed = []
        for one in beside.each(several()):
            handed += one.column("n").to_pylist()
            assert len(pulled) - len(handed) <= 3
        assert handed == [0, 1, 2, 3, 5, 6, 7]
        assert [one.column("n").to_pylist() for one in beside.rest()] == [[8]]
        assert list(beside.rest()) == []
        assert threading.get_ident() not in threads
        assert len(threads) == 2

    @pytest.mark.parametrize(("live", "cores"), [(True, 2), (False, 1)])
    def test_rows_that_must_not_wait_are_made_at_once(
        self, monkeypatch: pytest.MonkeyPatch, live: bool, cores: int
    ) -> None:
        monkeypatch.setattr(helpers, "cores", lambda: cores)
        threads = []

        def make(batch: pa.RecordBatch) -> pa.RecordBatch:
            threads.append(threading.get_ident())
            return batch

        beside = values._Beside(make, live=live)
        one = pa.record_batch({"n": [1]})
        assert list(beside.each([one, one])) == [one, one]
        assert threads == [threading.get_ident()] * 2

    def test_an_error_is_raised_where_its_batch_would_be(self) -> None:
        def make(batch: pa.RecordBatch) -> pa.RecordBatch:
            if batch.column("n")[0].as_py() == 1:
                raise KwireError("the registry does not answer")
            return batch

        each = values._Beside(make, live=False).each(pa.record_batch({"n": [number]}) for number in range(3))
        assert next(each).column("n").to_pylist() == [0]
        with pytest.raises(KwireError, match="does not answer"):
            next(each)

    def test_a_capture_in_windows_has_the_same_rows(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        connection = Connection().open()
        connection.send(produce(1, 1, topic(), "_schemas")).answer(produce_answer(1, "_schemas"))
        for number in range(2, 30):
            some = [avro(FIRST, {"id": number, "who": "x" * 400}, 1)] * 3
            connection.send(produce(number, 1, records(some), "orders")).answer(produce_answer(number, "orders"))
        path = tmp_path / "long.pcap"
        path.write_bytes(pcap(connection.packets))
        found = {}
        for live in (False, True):
            options: dict[str, Any] = {"schemas": path, "values": "typed", "window": 4096, "live": live}
            found[live] = list(capture.read(path, "records", topics=["orders"], **options))
        assert len(found[False]) > 3
        assert found[False] == found[True]
        ids = [one["id"] for batch in found[False] for one in batch.column("value").to_pylist()]
        assert ids == [number for number in range(2, 30) for _ in range(3)]


def test_the_command_line_shows_typed_values_as_json_with_what_became_of_them(
    captured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["decode", str(captured), "--table", "records", "--values", str(captured), "--values-as", "typed"]
    assert main([*line, "--topic", "orders"]) == 0
    shown = capsys.readouterr().out
    assert '{"id":1,"who":"a","note":null}' in shown
    assert "unknown_schema" in shown
    with pytest.raises(SystemExit):
        main(line)
    assert "--values-as typed needs one topic, whose schema is the type: give --topic" in capsys.readouterr().err


def test_a_folder_without_schemas_is_none(captured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["decode", str(captured), "--table", "records", "--values", str(tmp_path / "empty")]) == 2
    assert "no file in this folder is a schema: these end in .avsc, .proto" in capsys.readouterr().err
