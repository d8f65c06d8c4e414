"""With the format log, the data source gives what ``kwire.log`` gives."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from transactions import PLAIN, committed, drawn, log_of, write

from kwire import log
from kwire.log.internal import DECODED, decoded
from kwire.spark import table_schema
from kwire.spark.source import KwireDataSource

SEGMENTS = Path(__file__).parents[1] / "golden" / "segments"
NAME = f"{0:020}.log"
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A broker's data directory: partitions, and files beside the segments that are none."""
    folder = tmp_path / "data"
    for topic in ("log-gzip-0", "log-none-0", "__consumer_offsets-0"):
        shutil.copytree(SEGMENTS / "4.3-kraft" / topic, folder / topic)
    (folder / "log-gzip-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
    (folder / "log-gzip-0" / NAME).rename(folder / "log-gzip-0" / f"{NAME}.deleted")
    (folder / "log-gzip-0" / "server.log").write_text("INFO started")
    (folder / "meta.properties").write_text("version=1")
    return folder


def load(spark: SparkSession, path: object, **options: object) -> DataFrame:
    return spark.read.format("kwire").option("format", "log").options(**options).load(path)


def expected(folder: Path, table: str = "records", *, deep: bool = False) -> list[dict[str, object]]:
    read = log.batches if table == "batches" else log.read
    batches = [one for segment in log.find(folder) for one in read(segment)]
    return [row for one in batches for row in (decoded(one) if deep else one).to_pylist()]


def found(frame: DataFrame) -> list[dict[str, object]]:
    return sorted(frame.toArrow().to_pylist(), key=lambda row: str(row["segment"]))


def by_segment(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(rows, key=lambda row: str(row["segment"]))


BROKERS = sorted({path.parents[1].relative_to(SEGMENTS).as_posix() for path in SEGMENTS.rglob("*.log")})


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize(
    ("broker", "table"),
    [*((one, "records") for one in BROKERS), ("3.9-zk-format-0.9", "batches"), ("4.3-kraft", "batches")],
)
def test_tables_of_a_data_directory_equal_what_the_log_reader_gives(
    spark: SparkSession, broker: str, table: str
) -> None:
    frame = load(spark, str(SEGMENTS / broker), table=table, maxPartitionBytes=0)
    assert frame.rdd.getNumPartitions() == len(log.find(SEGMENTS / broker))
    rows = found(frame)
    assert rows == by_segment(expected(SEGMENTS / broker, table))
    assert len(rows) > 5


@pytest.mark.parametrize(("table", "schema"), [("records", log.RECORDS), ("batches", log.BATCHES)])
def test_columns_and_types_are_those_of_the_log_reader(table: str, schema: pa.Schema) -> None:
    arrow = to_arrow_schema(table_schema(table, "log"), timezone="UTC")
    assert [(field.name, field.type) for field in arrow] == [(field.name, field.type) for field in schema]
    assert [field.name for field in arrow if not field.nullable] == ["segment", "status"]


def test_the_table_is_records_where_nothing_else_is_said(spark: SparkSession, data: Path) -> None:
    assert load(spark, str(data)).columns == log.RECORDS.names


def test_a_folder_gives_its_segments_and_nothing_else(spark: SparkSession, data: Path) -> None:
    rows = {(row.segment, row.topic, row.partition, row.topic_id) for row in load(spark, str(data)).collect()}
    assert rows == {
        (str(data / "log-gzip-0" / f"{NAME}.deleted"), "log-gzip", 0, TOPIC_ID),
        (str(data / "log-none-0" / NAME), "log-none", 0, None),
        (str(data / "__consumer_offsets-0" / NAME), "__consumer_offsets", 0, None),
    }


def test_files_patterns_and_uris_are_read(spark: SparkSession, data: Path) -> None:
    frame = load(
        spark, [str(data / "log-none-0" / NAME), f"file://{data}/log-gzip-*/*.deleted", f"{data}/__*/{NAME[:3]}*.log"]
    )
    assert {(row.segment, row.topic) for row in frame.select("segment", "topic").collect()} == {
        (str(data / "log-none-0" / NAME), "log-none"),
        (f"file://{data}/log-gzip-0/{NAME}.deleted", "log-gzip"),
        (str(data / "__consumer_offsets-0" / NAME), "__consumer_offsets"),
    }


def test_deep_adds_the_decoded_records_of_kafkas_own_topics(spark: SparkSession, data: Path) -> None:
    rows = found(load(spark, str(data), deep=True))
    assert rows == by_segment(expected(data, deep=True))
    assert {row["record_type"] for row in rows} >= {None, "OffsetCommit", "GroupMetadata"}
    chosen = spark.read.format("kwire").option("format", "log").option("deep", "true")
    some = chosen.schema("segment string, record_type string, decoded_value string").load(str(data))
    assert found(some) == [{name: row[name] for name in some.columns} for row in rows]
    assert set(DECODED).isdisjoint(load(spark, str(data), deep="false").columns)


def test_a_schema_of_the_user_chooses_columns_by_name(spark: SparkSession, data: Path) -> None:
    frame = spark.read.format("kwire").option("format", "log").schema("value binary, segment string, offset bigint")
    rows = found(frame.load(str(data)))
    assert rows == [{name: row[name] for name in ("value", "segment", "offset")} for row in by_segment(expected(data))]


@pytest.mark.parametrize("table", ["records", "batches"])
def test_a_bad_file_is_a_row_and_not_a_failed_job(spark: SparkSession, data: Path, table: str) -> None:
    whole = (data / "log-none-0" / NAME).read_bytes()
    broken = data / "broken.gz"
    broken.write_bytes(gzip.compress(whole * 1000)[:-2000])
    rows = load(spark, [str(data / "log-none-0"), str(broken)], table=table).toArrow().to_pylist()
    assert rows[: len(expected(data / "log-none-0", table))] == expected(data / "log-none-0", table)
    bad = [row for row in rows if row["status"] == "bad_file"]
    assert bad == rows[-1:]
    assert bad[0]["segment"] == str(broken)
    assert {name for name, value in bad[0].items() if value is not None} == {"segment", "status", "error"}


def test_damage_in_a_segment_is_a_row_among_the_others(spark: SparkSession, data: Path) -> None:
    path = data / "log-none-0" / NAME
    whole = path.read_bytes()
    path.write_bytes(whole + b"\xff" * 300 + whole)
    rows = load(spark, str(path)).toArrow().to_pylist()
    assert [row["status"] for row in rows] == ["ok"] * 16 + ["malformed"] + ["ok"] * 16
    assert rows[16]["position"] == len(whole)


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"format": "pcap"}, "no format 'pcap': the option 'format' is one of capture, log"),
        (
            {"table": "frames"},
            "the option 'table', where the format is log: no table 'frames': there are records, batches",
        ),
        ({"ports": "9092"}, "the option 'ports' is for captures"),
        ({"vxlan_ports": "4789"}, "the option 'vxlan_ports' is for captures"),
        ({"deep": "yes"}, "not 'yes': the option 'deep' is true or false"),
        ({"deep": "true", "table": "batches"}, "the option 'deep' is for the table records of the format log"),
        ({"deep": "true", "format": "capture"}, "the option 'deep' is for the table records of the format log"),
    ],
)
def test_a_wrong_option_is_one_clear_error(spark: SparkSession, data: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(PySparkException, match=said):
        load(spark, str(data), **options).count()


def test_a_folder_without_segments_is_one_clear_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("INFO started")
    with pytest.raises(PySparkException, match=r"CaptureError: .*: a folder without log segments"):
        load(spark, str(tmp_path)).count()


def test_read_committed_gives_what_a_consumer_of_the_log_gets(spark: SparkSession, tmp_path: Path) -> None:
    entries = drawn(5)
    write(tmp_path / "orders-0", entries, [10, 20, 40])
    frame = load(spark, str(tmp_path), read_committed=True)
    assert sorted(row.offset for row in frame.select("offset").collect()) == committed(entries)
    with pytest.raises(PySparkException, match=r"read_committed.*not batches"):
        load(spark, str(tmp_path), read_committed=True, table="batches").schema  # noqa: B018


@pytest.mark.wide
def test_what_read_committed_leaves_out_undecided_is_counted_in_the_log_of_workers(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entries = log_of((1, "data", 2), (PLAIN, "data", 3), (1, "commit"), (2, "data"), (PLAIN, "data", 4))
    write(tmp_path / "orders-0", entries, [])
    source = KwireDataSource({"path": str(tmp_path), "format": "log", "read_committed": "true"})
    reader = source.reader(source.schema())
    (partition,) = reader.partitions()
    assert sum(batch.num_rows for batch in reader.read(partition)) == 5
    (said,) = caplog.messages
    assert said.startswith(str(tmp_path / "orders-0" / NAME))
    assert "5 records are left out from offset 6 on" in said
    # With a view, Spark shows what Python workers log.
    logs = "spark.sql.pyspark.worker.logging.enabled"
    spark.conf.set(logs, "true")
    try:
        assert load(spark, str(tmp_path), read_committed=True).count() == 5
        rows = spark.tvf.python_worker_logs().where("logger = 'kwire.spark'").collect()
    finally:
        spark.conf.unset(logs)
    assert [row.msg for row in rows] == [said]


def test_what_read_committed_cannot_know_of_captures_is_in_the_log_of_workers(
    captures: Path, caplog: pytest.LogCaptureFixture
) -> None:
    golden = captures.parent / "kafka-3.9-kraft-java" / "clients.pcap"
    for wanted in ("false", "true"):
        source = KwireDataSource({"path": str(golden), "table": "records", "read_committed": wanted})
        reader = source.reader(source.schema())
        for partition in reader.partitions():
            list(reader.read(partition))
        assert bool(caplog.messages) == (wanted == "true"), caplog.messages
    assert any("in Produce requests: whether they are committed is decided later" in one for one in caplog.messages)
