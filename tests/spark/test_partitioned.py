"""Folders named ``date=2026-11-22`` give partition columns, as Spark's own file sources have them."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, types
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    In,
    IsNotNull,
    IsNull,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

import kwire.spark
from kwire.errors import CaptureError, KwireError
from kwire.spark.files import Pairs, find, pairs_of
from kwire.spark.options import Options
from kwire.spark.partitioned import NULL, Folders, may_hold
from kwire.spark.source import KwireDataSource

CAPTURE = "first-light.pcap"
ROWS = 208
DAY = datetime.date(2026, 11, 22)


@pytest.fixture
def tree(captures: Path, tmp_path: Path) -> Path:
    """Two days, two sensors; one file is damaged from its beginning on, one lies in no such folder."""
    for folder in ("date=2026-11-22/sensor=east", "date=2026-11-22/sensor=w%3A1", f"date=2026-11-23/sensor={NULL}"):
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(captures / CAPTURE, tmp_path / folder / "a.pcap")
    (tmp_path / "date=2026-11-24" / "sensor=east").mkdir(parents=True)
    (tmp_path / "date=2026-11-24" / "sensor=east" / "bad.pcap").write_bytes(b"half a file")
    shutil.copy(captures / CAPTURE, tmp_path / "beside.pcap")
    return tmp_path


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def load(spark: SparkSession, path: object, **options: object) -> DataFrame:
    return spark.read.format("kwire").options(**options).load(str(path))


def counted(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.groupBy(*columns).count().collect()), key=str)


# --- names of folders -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "base", "pairs"),
    [
        ("/c/date=1/sensor=b/x.pcap", "/c", (("date", "1"), ("sensor", "b"))),
        ("/c/date=1/sensor=b/x.pcap", "/c/date=1", (("sensor", "b"),)),
        ("/c/date=1/x=y.pcap", "/c/date=1", ()),
        ("/c/a=1/other/b=2/x.pcap", "/c", (("b", "2"),)),
        ("/c/a=1/other/x.pcap", "/c", (("a", "1"),)),
        ("/c/=1/b=/x.pcap", "/c", ()),
        ("/c/a%20b=%41=/x.pcap", "/c", (("a b", "%41="),)),
        ("/c/date=1/x.pcap", None, (("date", "1"),)),
        ("x.pcap", None, ()),
    ],
)
def test_the_lowest_run_of_folders_with_a_value_counts(name: str, base: str | None, pairs: Pairs) -> None:
    assert pairs_of(name, base) == pairs


VALUES = [
    *(("1", "2"), ("1", "3000000000"), ("1", "1.5"), ("3000000000", "1.5"), ("1", "a"), ("07", "08"), ("+5", "-5")),
    *(("2026-11-22", "0001-01-01"), ("2026-11-22", "2026-11-22 10%3A00%3A00.5"), ("2026-11-22", NULL), ("1", NULL)),
    *(("2026-11-22T10%3A00%3A00", "2026-11-22T10"), ("2026-11-22 10:00:00", "2026-02-28"), ("2026-02-30", "2026-1-2")),
    *(("1e5", "100"), ("1.0", "1d"), ("NaN", "Infinity"), ("0x10", "1_000"), ("99999999999999999999", "1")),
    *(("99999999999999999999", "1.5"), ("true", "false"), ("a%20b", "%zz"), ("2026-11", "20261122"), (" 1", "2")),
    *(("1", "2026-11-22"), ("1e-2", "1E2"), ("9" * 38, "3000000000"), ("9" * 39, "1.5"), ("10000-01-01", "٣")),
    *(("2026-11-22 24:00:00", "2026-11-22 10:00"), ("2026-11-22 10:00:00Z", NULL), ("a=b", ".5"), ("a", NULL)),
]
"""Of two folders what stands behind each ``=``."""


@pytest.mark.wide
def test_types_and_values_are_those_that_sparks_own_sources_find(spark: SparkSession, tmp_path: Path) -> None:
    for k in (0, 1):
        folder = tmp_path.joinpath(f"folder={k}", *(f"p{n:02}={values[k]}" for n, values in enumerate(VALUES)))
        folder.mkdir(parents=True)
        (folder / "x.txt").write_text("x\n")
    theirs = spark.read.format("text").option("timeZone", "Europe/Berlin").load(str(tmp_path))
    folders, files = Folders(zone="Europe/Berlin"), find([str(tmp_path)])
    columns = folders.columns(files, ())
    assert [(one.name, one.dataType) for one in columns] == [
        (one.name, one.dataType) for one in theirs.schema.fields[1:]
    ]
    assert len({type(one.dataType) for one in columns}) == 7
    rows = theirs.orderBy("folder").toArrow().to_pylist()
    for file, row in zip(files, rows, strict=True):
        for one in columns:
            value = folders.value(file.pairs, one)
            # NaN is not equal to itself.
            assert value == row[one.name] or repr(value) == repr(row[one.name]) == "nan", one.name


def test_without_inference_values_are_strings(tmp_path: Path) -> None:
    (tmp_path / "hour=07").mkdir()
    (tmp_path / "hour=07" / "a.pcap").touch()
    (file,) = find([str(tmp_path)])
    for options, kind, value in (
        ({}, types.IntegerType(), 7),
        ({"partitionColumnTypeInference": "false"}, types.StringType(), "07"),
    ):
        folders = Options.of({"path": str(tmp_path), **options}).folders
        (column,) = folders.columns([file], ())
        assert (column.dataType, folders.value(file.pairs, column)) == (kind, value)


def test_where_all_values_are_null_the_column_is_a_string(tmp_path: Path) -> None:
    (tmp_path / f"a={NULL}").mkdir()
    (tmp_path / f"a={NULL}" / "a.pcap").touch()
    assert [one.dataType for one in Folders().columns(find([str(tmp_path)]), ())] == [types.StringType()]


@pytest.mark.parametrize(
    ("folders", "said"),
    [
        (("a=1", "b=2"), "folders disagree about partition columns: .*a=1/x.pcap has a=, .*b=2/x.pcap has b=; "),
        (("a=1", "a=1/b=2"), "folders disagree about partition columns"),
        (("a=1/A=1",), "two of its folders say the same partition column"),
    ],
)
def test_folders_that_disagree_are_an_error_that_says_the_way_out(
    tmp_path: Path, folders: tuple[str, ...], said: str
) -> None:
    for one in folders:
        (tmp_path / one).mkdir(parents=True, exist_ok=True)
        (tmp_path / one / "x.pcap").touch()
    with pytest.raises(KwireError, match=said):
        KwireDataSource({"path": str(tmp_path)}).schema()
    plain = KwireDataSource({"path": str(tmp_path), "recursiveFileLookup": "true"})
    assert plain.schema() == kwire.spark.table_schema("frames")


def test_a_column_of_the_table_goes_before_a_folder_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "Topic=a" / "hour=1").mkdir(parents=True)
    (tmp_path / "Topic=a" / "hour=1" / "x.pcap").touch()
    source = KwireDataSource({"path": str(tmp_path), "table": "records"})
    assert [*source.schema()][-1].name == "hour"
    assert source.schema()["topic"].dataType == types.StringType()
    assert "Topic" not in source.schema().names


@pytest.mark.parametrize(
    ("path", "base", "columns"),
    [
        ("date=*", None, ["sensor"]),
        ("date=*", "", ["date", "sensor"]),
        ("date=2026-11-22/sensor=east/a.pcap", None, []),
        ("date=2026-11-22/sensor=east/a.pcap", "", ["date", "sensor"]),
        ("date=2026-11-22/sensor=east/a.pcap", "date=2026-11-22", ["sensor"]),
        ("**/*.pcap", None, []),
    ],
)
def test_the_base_is_what_was_named_or_the_option(tree: Path, path: str, base: str | None, columns: list[str]) -> None:
    options = {"path": str(tree / path)} | ({} if base is None else {"basePath": f"file://{tree}/{base}"})
    source = KwireDataSource(options)
    assert source.schema().names[len(kwire.spark.table_schema("frames").names) :] == columns
    source.reader(source.schema()).partitions()


def test_a_base_that_is_not_above_is_an_error(tree: Path) -> None:
    source = KwireDataSource({"path": str(tree / "date=2026-11-22"), "basePath": str(tree / "date=2026-11-2")})
    with pytest.raises(CaptureError, match="which the option 'basePath' says"):
        source.reader(source.schema()).partitions()


@pytest.mark.parametrize("options", [{"timeZone": "Mars/Olympus"}, {"partitionColumnTypeInference": "maybe"}])
def test_options_that_are_none_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(KwireError, match=f"the option '{next(iter(options))}'"):
        KwireDataSource({"path": "x", **options}).schema()


# --- queries ----------------------------------------------------------------------------------------------------------


def test_rows_have_the_values_of_their_folders(spark: SparkSession, tree: Path) -> None:
    frame = load(spark, tree, columns="frame,status")
    assert frame.columns == ["frame", "status", "date", "sensor"]
    assert counted(frame, "date", "sensor") == [
        (None, None, ROWS),
        (DAY, "east", ROWS),
        (DAY, "w:1", ROWS),
        (DAY + datetime.timedelta(1), None, ROWS),
        (DAY + datetime.timedelta(2), "east", 1),
    ]
    assert frame.where("date = '2026-11-24'").first().status == "bad_file"


@pytest.mark.wide
def test_a_schema_names_columns_in_any_case_and_types_of_partition_columns(spark: SparkSession, tree: Path) -> None:
    read = spark.read.format("kwire")
    frame = read.schema("Sensor string, API_Name string, DATE string").load(str(tree))
    assert frame.columns == ["Sensor", "API_Name", "DATE"]
    assert counted(frame.where("api_name = 'Produce'"), "date", "sensor")[0][:2] == ("2026-11-22", "east")
    assert read.schema("date date").load(str(tree)).where("date = '2026-11-22'").count() == 2 * ROWS
    with pytest.raises(PySparkException, match="has no column 'host', and no folder is named host="):
        read.schema("host string").load(str(tree)).count()
    with pytest.raises(PySparkException, match=r"the folder date=2026-11-22 is no int, .*a schema in which"):
        read.schema("date int").load(str(tree)).count()
    with pytest.raises(PySparkException, match="the partition column 'date' is not binary"):
        read.schema("date binary").load(str(tree)).count()


@pytest.mark.wide
def test_the_option_columns_may_name_partition_columns_which_are_there_in_any_case(
    spark: SparkSession, tree: Path
) -> None:
    for columns in ("api_name", "date,api_name", "SENSOR,api_name,date"):
        assert load(spark, tree, columns=columns).columns == ["api_name", "date", "sensor"]
    read = kwire.spark.read(str(tree), columns=["date", "api_name"], spark=spark)
    assert read.columns == ["api_name", "date", "sensor"]
    for wrong in ("api_name,day", "day"):
        with pytest.raises(PySparkException, match="the option 'columns': no column 'day' in the table frames"):
            load(spark, tree, columns=wrong)
        with pytest.raises(PySparkException, match="the option 'columns': no column 'day' in the table frames"):
            spark.read.format("kwire").schema("api_name string").option("columns", wrong).load(str(tree)).count()
    with pytest.raises(ValueError, match="no column 'day' in the table frames"):
        kwire.spark.read(str(tree), columns=["date", "day"], spark=spark)
    with pytest.raises(PySparkException, match="the option 'columns': no column of the table frames was chosen"):
        load(spark, tree, columns="date")
    with pytest.raises(PySparkException, match="the option 'columns': no column 'date' in the table frames"):
        load(spark, tree, columns="date,api_name", recursiveFileLookup=True)


@pytest.mark.wide
@pytest.mark.usefixtures("pushing")
def test_conditions_choose_files_before_any_is_opened(spark: SparkSession, tree: Path) -> None:
    frame = load(spark, tree, pushFilters=True, badFiles="fail", maxPartitionBytes=0)
    # The file of the 24th fails a query that opens it.
    with pytest.raises(PySparkException, match="not a capture"):
        frame.count()
    assert frame.where("date < '2026-11-24'").count() == 3 * ROWS
    assert frame.where("date IN ('2026-11-22', '2026-11-25') AND sensor LIKE 'w%'").count() == ROWS
    assert frame.where("date = '2026-11-23' AND api_name = 'Produce'").count() > 0
    assert frame.where("date IS NULL").count() == ROWS
    assert frame.where("date = '2027-01-01'").count() == 0


@pytest.mark.wide
@pytest.mark.usefixtures("pushing")
def test_the_plan_shows_the_conditions_that_chose_files(
    spark: SparkSession, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = load(spark, tree, pushFilters=True).where("date = '2026-11-22' AND size > 100")
    capsys.readouterr()
    frame.explain("formatted")
    shown = capsys.readouterr().out
    assert "PushedFilters: [IsNotNull(date), EqualTo(date,2026-11-22)]" in shown
    assert "size" in shown.partition("Condition :")[2]
    assert "date" not in shown.partition("Condition :")[2].partition("\n")[0]


def test_a_condition_that_folders_do_not_decide_is_left_to_spark(tree: Path) -> None:
    source = KwireDataSource({"path": str(tree), "pushFilters": "true"})
    reader: Any = source.reader(source.schema())
    left = [EqualTo(("date",), "2026-11-22"), EqualTo(("size",), 5)]
    assert list(reader.pushFilters([EqualTo(("date",), DAY), *left])) == left


def test_a_reader_plans_only_the_files_that_are_wanted(tree: Path) -> None:
    def planned(*conditions: Any, **options: str) -> list[str]:
        source = KwireDataSource({"path": str(tree), "pushFilters": "true", **options})
        reader: Any = source.reader(source.schema())
        assert list(reader.pushFilters(list(conditions))) == (list(conditions) if options else [])
        files = [file for one in reader.partitions() for file in (one.captures.files if options else one.files)]
        return sorted(str(Path(file.name).parent.name) for file in files)

    assert planned(EqualTo(("date",), DAY)) == ["sensor=east", "sensor=w%3A1"]
    assert planned(EqualTo(("sensor",), "w:1")) == ["sensor=w%3A1"]
    assert len(planned(EqualTo(("sensor",), "w:1"), across="true")) == 5  # connections go on from the others


@pytest.mark.parametrize(
    ("condition", "value", "holds"),
    [
        (EqualTo(("p",), 1), 1, True),
        (EqualTo(("P",), 1), 2, False),
        (EqualTo(("q",), 1), 2, True),
        (EqualTo(("p", "q"), 1), 2, True),
        (EqualTo(("p",), 1), None, False),
        (EqualTo(("p",), "1"), 2, True),
        (EqualTo(("p",), Decimal(2)), 2, True),
        (EqualTo(("p",), float("nan")), float("nan"), True),
        (EqualNullSafe(("p",), None), None, True),
        (EqualNullSafe(("p",), None), 1, False),
        (In(("p",), (1, None)), 2, False),
        (In(("p",), (1, None)), 1, True),
        (Not(In(("p",), (1, None))), 2, False),
        (Not(In(("p",), (1, 3))), 2, True),
        (Not(In(("p",), (1, 3))), 3, False),
        (Not(EqualTo(("p",), 1)), None, False),
        (Not(EqualNullSafe(("p",), 1)), None, True),
        (GreaterThan(("p",), 1), 2, True),
        (GreaterThan(("p",), DAY), DAY, False),
        (LessThanOrEqual(("p",), DAY), DAY, True),
        (
            LessThanOrEqual(("p",), datetime.datetime(2026, 1, 1)),
            datetime.datetime(2027, 1, 1, tzinfo=datetime.UTC),
            True,
        ),
        (StringStartsWith(("p",), "a"), "ab", True),
        (StringEndsWith(("p",), "a"), "ab", False),
        (Not(StringContains(("p",), "a")), "ab", False),
        (IsNull(("p",)), 1, False),
        (IsNull(("p",)), None, True),
        (Not(IsNull(("p",))), None, False),
        (IsNotNull(("p",)), None, False),
    ],
)
def test_a_file_is_left_out_only_where_no_row_of_it_can_be_wanted(condition: Any, value: Any, holds: bool) -> None:
    assert may_hold([condition], {"p": value}) is holds


@pytest.mark.wide
def test_files_that_are_read_as_one_have_the_values_of_their_folders(spark: SparkSession, tree: Path) -> None:
    alone = counted(load(spark, tree), "date", "sensor", "status")
    across = kwire.spark.read(str(tree), sensor=1, columns=["status"], spark=spark)
    assert across.columns == ["status", "date", "sensor"]
    assert [one[:2] for one in counted(across, "date", "sensor", "status")] == [one[:2] for one in alone]
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    try:
        strings = kwire.spark.read(str(tree), columns=["status"], spark=spark)
    finally:
        spark.conf.unset("spark.sql.sources.partitionColumnTypeInference.enabled")
    assert strings.schema["date"].dataType == types.StringType()
    metrics = kwire.spark.read(str(tree), table="client_metrics", columns=["status"], spark=spark)
    assert [one[1:] for one in counted(metrics, "status", "date", "sensor")] == [
        (DAY + datetime.timedelta(2), "east", 1)
    ]


def test_a_stream_has_the_values_of_folders(spark: SparkSession, tree: Path, tmp_path: Path) -> None:
    frame = spark.readStream.format("kwire").options(idle="0s", columns="status").load(str(tree / "date=2026-11-22"))
    assert frame.columns == ["status", "sensor"]
    query = frame.writeStream.format("memory").queryName("folders").trigger(availableNow=True).start()
    query.awaitTermination()
    assert counted(spark.table("folders"), "sensor") == [("east", ROWS), ("w:1", ROWS)]


@pytest.mark.wide
def test_an_export_has_partition_columns(spark: SparkSession, tree: Path, tmp_path: Path) -> None:
    output = tmp_path / "_out"
    kwire.spark.export(spark, str(tree), str(output), columns=["frame", "sensor"], partition_by=["sensor"])
    back = spark.read.parquet(str(output))
    assert counted(back, "sensor") == [("east", ROWS + 1), ("w:1", ROWS), (None, 2 * ROWS)]


@pytest.mark.wide
def test_a_table_of_the_catalog_keeps_partition_columns(spark: SparkSession, tree: Path) -> None:
    spark.sql(f"CREATE TABLE kept_folders USING kwire OPTIONS (path '{tree}', columns 'frame')")
    try:
        assert counted(spark.table("kept_folders").where("sensor = 'w:1'"), "date") == [(DAY, ROWS)]
    finally:
        spark.sql("DROP TABLE kept_folders")


@pytest.mark.wide
def test_the_name_of_a_file_is_a_column_and_spark_has_no_other(spark: SparkSession, tree: Path) -> None:
    frame = load(spark, tree / "date=2026-11-23")
    assert {row.capture for row in frame.select("capture").collect()} == {
        str(tree / "date=2026-11-23" / f"sensor={NULL}" / "a.pcap")
    }
    assert frame.selectExpr("input_file_name() AS name").first().name == ""
    with pytest.raises(PySparkException, match="UNRESOLVED_COLUMN"):
        frame.select("_metadata.file_path")
