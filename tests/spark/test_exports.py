"""Tables written by the workers are those that the data source gives."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow import dataset
from pyspark.sql import SparkSession

from kwire import cli
from kwire.errors import KwireError
from kwire.spark import exports as exporting
from kwire.spark.exports import export

pytestmark = pytest.mark.wide


def rows(table: pa.Table, columns: list[str]) -> Counter[str]:
    return Counter(repr(row) for row in table.select(columns).to_pylist())


def source(spark: SparkSession, path: object, table: str) -> pa.Table:
    return spark.read.format("kwire").option("table", table).load(str(path)).toArrow()


def test_rows_are_those_of_the_data_source(
    spark: SparkSession, captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    shutil.copy(captures / "first-light.pcap", folder)
    (folder / "broken.pcap").write_bytes((captures / "first-light.pcap").read_bytes()[:-9])
    expected = source(spark, folder, "records")
    made = export(spark, str(folder), str(output), table="records", options={"maxPartitionBytes": 0})
    assert (made.rows, made.bad_files) == (expected.num_rows, 1)
    found = dataset.dataset(output).to_table()
    assert found.schema.names == expected.schema.names
    assert rows(found, found.schema.names) == rows(expected, found.schema.names)
    assert (output / "_SUCCESS").exists()
    assert not (output / "_temporary").exists()
    assert made.files == len(list(output.rglob("*.parquet"))) == 2
    # There is something now.
    with pytest.raises(KwireError, match="is not empty"):
        export(spark, str(folder), str(output), table="records")
    # Small captures that one task reads are one file.
    made = export(spark, str(folder), str(output), table="records", mode="append")
    assert (made.rows, made.bad_files, made.files) == (expected.num_rows, 1, 1)
    assert dataset.dataset(output).count_rows() == 2 * expected.num_rows
    export(spark, str(folder / "first-light.pcap"), str(output), table="records", mode="overwrite", columns=["offset"])
    assert dataset.dataset(output).schema.names == ["offset"]


def test_values_of_columns_become_folders(
    spark: SparkSession, captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = source(spark, captures / "first-light.pcap", "records")
    export(spark, str(captures / "first-light.pcap"), str(tmp_path / "out"), table="records", partition_by=["topic"])
    topics = {f"topic={one}" for one in expected.column("topic").unique().to_pylist()}
    assert {one.name for one in (tmp_path / "out").iterdir()} == topics | {"_SUCCESS"}
    found = spark.read.parquet(str(tmp_path / "out")).toArrow()
    columns = ["topic", "partition", "offset", "key", "value", "status"]
    assert rows(found, columns) == rows(expected, columns)


def test_days_become_folders(spark: SparkSession, captures: Path, tmp_path: Path) -> None:
    expected = source(spark, captures / "first-light.pcap", "frames")
    path = str(captures / "first-light.pcap")
    export(spark, path, str(tmp_path / "out"), partition_by=["date"], columns=["api_name"])
    days = {f"date={one.date()}" for one in expected.column("timestamp").to_pylist()}
    assert {one.name for one in (tmp_path / "out").iterdir()} == days | {"_SUCCESS"}
    assert dataset.dataset(tmp_path / "out", partitioning="hive").count_rows() == expected.num_rows


def test_tables_of_delta_lake(spark: SparkSession, captures: Path, tmp_path: Path) -> None:
    path, output = str(captures / "first-light.pcap"), str(tmp_path / "out")
    expected = source(spark, path, "records")
    for mode, times in (("error", 1), ("append", 2), ("overwrite", 1)):
        export(spark, path, output, table="records", partition_by=["topic", "date"], form="delta", mode=mode)
        found = DeltaTable(output).to_pyarrow_table()
        columns = ["topic", "partition", "offset", "key", "value", "timestamp"]
        assert rows(found, columns) == Counter({row: times * n for row, n in rows(expected, columns).items()})
    with pytest.raises(KwireError, match="is not empty"):
        export(spark, path, output, table="records", form="delta")


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A catalog of Iceberg in a file, as pyiceberg's settings have one."""
    pytest.importorskip("pyiceberg", reason="the catalog of this test, of the extra dev")
    pytest.importorskip("sqlalchemy", reason="the catalog of this test, of the extra dev")
    from pyiceberg.catalog.sql import SqlCatalog

    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/tables"}
    monkeypatch.setattr("pyiceberg.catalog.load_catalog", lambda name: SqlCatalog(name, **settings))
    return SqlCatalog("local", **settings)


@pytest.mark.parametrize("table", ["records", "frames", "partitions"])
def test_tables_of_iceberg(spark: SparkSession, captures: Path, tmp_path: Path, catalog: Any, table: str) -> None:
    path, output = str(captures / "first-light.pcap"), "local.kafka.seen"
    expected = source(spark, path, table)
    # Maps have no repr of their own; times are in UTC there.
    columns = [one.name for one in expected.schema if not pa.types.is_timestamp(one.type)]
    for mode, times in (("error", 1), ("append", 2), ("overwrite", 1)):
        made = export(spark, path, output, table=table, form="iceberg", mode=mode)
        assert made.rows == expected.num_rows
        seen = catalog.load_table("kafka.seen")
        found = seen.scan().to_arrow()
        assert found.schema.names == expected.schema.names
        assert rows(found, columns) == Counter({row: times * n for row, n in rows(expected, columns).items()})
    assert len(seen.history()) >= 3
    with pytest.raises(KwireError, match=r"local\.kafka\.seen is there already"):
        export(spark, path, output, table=table, form="iceberg")
    # Another table's rows do not fit, and nothing changes.
    before = seen.metadata_location
    with pytest.raises(KwireError, match=r"local\.kafka\.seen: .*(columns|fields)"):
        export(spark, path, output, table="messages", form="iceberg", mode="append")
    assert catalog.load_table("kafka.seen").metadata_location == before
    assert not list(tmp_path.rglob("_temporary"))


def test_a_run_that_fails_leaves_no_table_of_iceberg(
    spark: SparkSession, captures: Path, catalog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(exporting, "_move", refused)
    with pytest.raises(OSError, match="the disk is full"):
        export(spark, str(captures / "first-light.pcap"), "local.kafka.none", form="iceberg")
    assert not catalog.table_exists("kafka.none")
    for name in ("kafka", "local.kafka", "local..kafka", ""):
        with pytest.raises(KwireError, match=r"is no table of Iceberg: its name is CATALOG\.NAMESPACE\.TABLE"):
            export(spark, str(captures / "first-light.pcap"), name, form="iceberg")
    with pytest.raises(KwireError, match="has no folders of values"):
        export(spark, str(captures / "first-light.pcap"), "a.b.c", form="iceberg", partition_by=["api_name"])


def test_values_of_columns_in_a_table_of_delta_lake(tmp_path: Path) -> None:
    plan = _plan(tmp_path / "out" / "_temporary", ["topic"])
    names = ["../../x", "..", "a/b", "a%2Fb", None, "a=b", "\N{SNOWMAN}", "1 2'+"]
    batch = pa.RecordBatch.from_pydict({"topic": names, "offset": list(range(len(names)))}, schema=plan.schema)
    made = list(plan._write_chunk([batch], f"{plan.temporary}/attempt", "part"))
    moved = exporting._move(plan.filesystem, made, str(tmp_path / "out"), flat=True)
    exporting._commit_delta(
        str(tmp_path / "out"), plan, "error", list(zip(moved, (one["bytes"] for one in made), strict=True))
    )
    found = DeltaTable(str(tmp_path / "out")).to_pyarrow_table().sort_by("offset")
    assert found.column("topic").to_pylist() == names


def test_what_stands_in_a_value_leads_to_no_other_folder(tmp_path: Path) -> None:
    plan = _plan(tmp_path, ["topic"])
    names = ["../../x", "..", "a/b", "a%2Fb", "", None, "a=b", "\N{SNOWMAN}\n"]
    batch = pa.RecordBatch.from_pydict({"topic": names, "offset": list(range(len(names)))}, schema=plan.schema)
    made = list(plan._write_chunk([batch], str(tmp_path / "attempt"), "part"))
    assert sum(one["rows"] for one in made) == len(names)
    exporting._move(plan.filesystem, made, str(tmp_path / "out"), flat=False)
    found = [one.relative_to(tmp_path) for one in tmp_path.rglob("*.parquet")]
    assert len(found) == len(made)
    assert {(one.parts[0], len(one.parts)) for one in found} == {("out", 3)}
    assert {one.name for one in tmp_path.iterdir()} == {"attempt", "out"}


def test_spark_reads_back_the_values_of_folders(spark: SparkSession, tmp_path: Path) -> None:
    plan = _plan(tmp_path, ["topic"])
    odd = [
        "\u65e5" * 83,
        "\u00e9",
        "\N{SNOWMAN}",
        "a\nb",
        "x\0y",
        "\x1b[31m",
        " ",
        "t\t",
        "a/b",
        "..",
        "a%3Db",
        "%41",
        "a=b",
    ]
    odd += ["\"q'`", "back\\slash", ":*?<>|#&{}[]^\x7f", "007", "A", "a", "_x", ".hidden", "x" * 249]
    without = ["", None, "y" * 250, "\u65e5" * 84, "?" * 84, "__HIVE_DEFAULT_PARTITION__"]
    names = odd + without
    batch = pa.RecordBatch.from_pydict({"topic": names, "offset": list(range(len(names)))}, schema=plan.schema)
    made = list(plan._write_chunk([batch], str(tmp_path / "attempt"), "part"))
    assert sum(one["rows"] for one in made) == len(names)
    exporting._move(plan.filesystem, made, str(tmp_path / "out"), flat=False)
    found = spark.read.schema("topic string, offset bigint").parquet(str(tmp_path / "out")).orderBy("offset").collect()
    assert [row.topic for row in found] == odd + [None] * len(without)


def test_large_parts_become_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.RecordBatch.from_pydict({"a": pa.array(range(1000), pa.int64())})
    monkeypatch.setattr(exporting, "CHUNK", batch.nbytes * 2)
    assert [len(one) for one in exporting._chunks(iter([batch] * 5))] == [2, 2, 1]
    assert list(exporting._chunks(iter([batch.slice(0, 0)]))) == []


def _plan(folder: Path, partition_by: list[str]) -> Any:
    from pyarrow import fs

    class Plan(exporting._Plan):
        schema = pa.schema([("topic", pa.string()), ("offset", pa.int64())])  # type: ignore[assignment]

    return Plan(None, (), tuple(partition_by), fs.LocalFileSystem(), str(folder), "run")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"table": "packets"}, "no table 'packets'"),
        ({"columns": ["packet"]}, "no column 'packet' in the table frames"),
        ({"partition_by": ["packet"]}, "no column 'packet'"),
        ({"partition_by": ["timestamp"]}, "the column 'timestamp' cannot be the name of a folder"),
        ({"partition_by": ["api_name"], "columns": ["api_name"]}, "every column"),
        ({"form": "orc"}, "no format 'orc'"),
        ({"mode": "ignore"}, "no mode 'ignore'"),
        ({"options": {"colour": "red"}}, "no option 'colour'"),
    ],
)
def test_what_cannot_be_asked_for_is_an_error(
    spark: SparkSession, captures: Path, tmp_path: Path, terms: dict[str, Any], said: str
) -> None:
    with pytest.raises(KwireError, match=said):
        export(spark, str(captures / "first-light.pcap"), str(tmp_path / "out"), **terms)
    assert not (tmp_path / "out").exists()


def test_the_command(spark: SparkSession, captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b.pcap").write_bytes(b"These are not packets.")
    output = tmp_path / "out"
    inputs = [str(captures / "first-light.pcap"), str(tmp_path / "b.pcap")]
    options = ["--option", "ports=9092", "--columns", "status,api_name"]
    code = cli.main(["spark", "export", *inputs, str(output), *options])
    assert code == 1
    said = capsys.readouterr().err
    assert "209 rows, of which 1 stand for files that could not be read, in 1 file, " in said
    assert dataset.dataset(output).to_table().column_names == ["status", "api_name"]
    assert cli.main(["spark", "export", str(tmp_path / "nothing"), str(output) + "2"]) == 2
    assert "no such file" in capsys.readouterr().err


def test_nothing_is_written_through_a_link_in_the_output(
    spark: SparkSession, captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, theirs, treasure = str(captures / "first-light.pcap"), tmp_path / "theirs", tmp_path / "treasure"
    theirs.mkdir()
    treasure.write_text("gold")
    output = tmp_path / "out"
    output.mkdir()
    (output / "_SUCCESS").symlink_to(treasure)
    (output / "_temporary").symlink_to(theirs)
    move, moved = exporting.put, []

    def seen(filesystem: Any, file: str, *more: Any) -> None:
        moved.append(Path(file).resolve())
        move(filesystem, file, *more)

    monkeypatch.setattr(exporting, "put", seen)
    export(spark, read, str(output), mode="append")
    assert moved
    assert all(one.is_relative_to(output) for one in moved)
    assert (output / "_SUCCESS").read_bytes() == b""
    assert not (output / "_SUCCESS").is_symlink()
    (output / "api_name=Metadata").symlink_to(theirs)
    with pytest.raises(OSError, match="a link, or no folder"):
        export(spark, read, str(output), mode="append", partition_by=["api_name"])
    assert not [one.name for one in output.iterdir() if one.name.startswith("_temporary-")]
    # What is replaced is the link.
    export(spark, read, str(output), mode="overwrite")
    assert (treasure.read_text(), list(theirs.iterdir())) == ("gold", [])
    (output / "_delta_log").symlink_to(theirs)
    with pytest.raises(KwireError, match="_delta_log is a link"):
        export(spark, read, str(output), mode="append", form="delta")


def test_errors_of_an_export_name_no_credentials(spark: SparkSession, captures: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    local = exporting.filesystem_of(str(tmp_path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporting, "filesystem_of", lambda *_: local)
        with pytest.raises(KwireError, match="s3://bucket/out is not empty"):
            export(spark, str(captures / "first-light.pcap"), "s3://KEY:CANARY/CANARY@bucket/out")
