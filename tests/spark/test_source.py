"""The data source gives what ``kwire.capture.read`` gives, and a row for what cannot be read."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import tunnels
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

import kwire.capture
import kwire.spark
from kwire import tables
from kwire.capture.compressed import Around
from kwire.errors import CaptureError, KwireError
from kwire.options import ACTS, CHUNKS, EXPORT, LOAD, OPTIONS, READ, STREAM
from kwire.spark import table_schema
from kwire.spark.files import File, in_groups
from kwire.spark.options import Options
from kwire.spark.source import KwireDataSource

CAPTURE = "first-light.pcap"
SCHEMAS = {name: tables.table(name).schema for name in ("frames", "messages", "records")}


def expected(path: Path, table: str) -> list[dict[str, object]]:
    """The rows of a capture, as the capture engine gives them."""
    with path.open("rb") as file:
        return pa.Table.from_batches(kwire.capture.read(file, table, name=str(path)), SCHEMAS[table]).to_pylist()


def found(frame: DataFrame) -> list[dict[str, object]]:
    """The rows that Spark has, in the same form."""
    return frame.toArrow().to_pylist()


def load(spark: SparkSession, path: object, table: str = "frames", **options: object) -> DataFrame:
    return spark.read.format("kwire").option("table", table).options(**options).load(path)


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("table", SCHEMAS)
@pytest.mark.parametrize("name", [CAPTURE, "first-light-ng.pcapng"])
def test_every_table_equals_what_the_capture_engine_reads(
    spark: SparkSession, captures: Path, table: str, name: str
) -> None:
    rows = found(load(spark, str(captures / name), table))
    assert rows == expected(captures / name, table)
    assert len(rows) > 100


@pytest.mark.parametrize("table", SCHEMAS)
def test_columns_and_types_are_those_of_the_tables(table: str) -> None:
    arrow = to_arrow_schema(table_schema(table), timezone="UTC")
    assert [(field.name, field.type) for field in arrow] == [(field.name, field.type) for field in SCHEMAS[table]]


def test_table_is_frames_where_nothing_else_is_said(spark: SparkSession, captures: Path) -> None:
    frame = spark.read.format("kwire").load(str(captures / CAPTURE))
    assert frame.columns == SCHEMAS["frames"].names


@pytest.fixture
def folder(captures: Path, tmp_path: Path) -> Path:
    """Captures in a tree, among files that are none of a reader's business."""
    (tmp_path / "host=a").mkdir()
    (tmp_path / "host=b").mkdir()
    (tmp_path / "_temporary").mkdir()
    shutil.copy(captures / CAPTURE, tmp_path / "host=a" / "1.pcap")
    shutil.copy(captures / CAPTURE, tmp_path / "host=b" / "2.pcap")
    (tmp_path / "host=b" / "_SUCCESS").touch()
    (tmp_path / "_temporary" / "x.pcap").write_bytes(b"half a fi")
    (tmp_path / "host=a" / "3.pcap.gz").write_bytes(gzip.compress((captures / CAPTURE).read_bytes()))
    (tmp_path / "_named").mkdir()
    (tmp_path / "_named" / "4.pcap").write_bytes(gzip.compress((captures / CAPTURE).read_bytes()))
    shutil.copy(captures / CAPTURE, tmp_path / "_named" / "5.zst")
    return tmp_path


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("", ["1.pcap", "3.pcap.gz", "2.pcap"]),
        ("host=a", ["1.pcap", "3.pcap.gz"]),
        ("host=*/*.pcap", ["1.pcap", "2.pcap"]),
        ("**/*.gz", ["3.pcap.gz"]),
        ("host={a,b}/[12].pcap", ["1.pcap", "2.pcap"]),
        ("host=a/?.pcap", ["1.pcap"]),
        ("host=a/1.pcap", ["1.pcap"]),
        ("_named/*", ["4.pcap", "5.zst"]),  # what is compressed is told by its first bytes
    ],
)
def test_paths_are_files_folders_or_patterns(spark: SparkSession, folder: Path, path: str, names: list[str]) -> None:
    assert load(spark, str(folder / path)).rdd.getNumPartitions() == 1
    frame = load(spark, str(folder / path), maxPartitionBytes=0)
    assert frame.rdd.getNumPartitions() == len(names)
    counts = {row["capture"]: row["count"] for row in frame.groupBy("capture").count().collect()}
    assert sorted(Path(name).name for name in counts) == sorted(names)
    assert set(counts.values()) == {208}


def test_several_paths_and_uris_are_read_once_each(spark: SparkSession, folder: Path) -> None:
    one = str(folder / "host=a" / "1.pcap")
    frame = load(spark, [one, str(folder / "host=a" / "?.pcap"), f"file://{folder}/host=b/*.pcap"])
    names = {row.capture for row in frame.select("capture").distinct().collect()}
    assert names == {one, f"file://{folder}/host=b/2.pcap"}
    assert frame.count() == 2 * 208


@pytest.mark.wide
def test_a_file_whose_name_looks_like_a_pattern_is_that_file(
    spark: SparkSession, captures: Path, tmp_path: Path
) -> None:
    shutil.copy(captures / CAPTURE, tmp_path / "a[1].pcap")
    (tmp_path / "a1.pcap").write_bytes(b"not this one")
    assert load(spark, str(tmp_path / "a[1].pcap")).count() == 208


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("table", SCHEMAS)
def test_a_bad_file_is_a_row_and_not_a_failed_job(
    spark: SparkSession, captures: Path, tmp_path: Path, table: str
) -> None:
    whole = (captures / CAPTURE).read_bytes()
    good, truncated, other, empty = (tmp_path / name for name in ("1-good", "2-truncated", "3-other", "4-empty"))
    good.write_bytes(whole)
    truncated.write_bytes(whole[:-7])
    other.write_bytes(b"These are not packets." * 10)
    empty.write_bytes(b"")
    broken = tmp_path / "5-broken.gz"
    broken.write_bytes(gzip.compress(whole)[:-2000])
    rows = found(load(spark, str(tmp_path / "*"), table))
    bad = [row for row in rows if row["status"] == "bad_file"]
    assert [row["capture"] for row in bad] == [str(truncated), str(other), str(empty), str(broken)]
    for row in bad:
        assert {name for name, value in row.items() if value is not None} == {"capture", "status", "error"}
        assert "\n" not in row["error"]
    assert str(truncated) in bad[0]["error"]
    assert "truncated" in bad[0]["error"]
    # What stands before the damage is there.
    assert [row for row in rows if row["capture"] == str(good)] == expected(good, table)
    before = [row for row in rows if row["capture"] == str(truncated) and row["status"] != "bad_file"]
    assert len(before) >= len(expected(good, table)) - 60
    assert len(before) > 100


@pytest.mark.wide
def test_what_lies_beside_captures_has_no_row_unless_it_is_asked_for(
    spark: SparkSession, captures: Path, tmp_path: Path
) -> None:
    whole = (captures / CAPTURE).read_bytes()
    files = {
        "README": b"Captures of Monday.",
        "first-light.jsonl": b'{"a": 1}\n',
        "notes.gz": gzip.compress(b"nothing"),
        "not-even.gz": b"\x1f\x8b\x08\0",
        "empty": b"",
        "no-name-at-all": whole,
        "no-name.gz": gzip.compress(whole),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    bad = {"a.pcap": b"", "b.pcap3": b"These are not packets.", "c.PCAPNG.2.gz": b"\x1f\x8b\x08\0", "d.cap": whole[:-7]}
    for name, data in bad.items():
        (tmp_path / name).write_bytes(data)
    counts = load(spark, str(tmp_path)).groupBy("capture", "status").count().collect()
    assert {Path(row.capture).name for row in counts if row.status == "bad_file"} == set(bad)
    assert {Path(row.capture).name for row in counts if row.status == "ok"} == {"no-name-at-all", "no-name.gz", "d.cap"}
    named = load(spark, [str(tmp_path / "README"), str(tmp_path / "*.jsonl")]).select("status").collect()
    assert [row.status for row in named] == ["bad_file", "bad_file"]


@pytest.mark.wide
def test_options_of_sparks_own_sources_choose_files(spark: SparkSession, folder: Path) -> None:
    def names(**options: object) -> set[str]:
        return {Path(row.capture).name for row in load(spark, str(folder), **options).select("capture").collect()}

    os.utime(folder / "host=b" / "2.pcap", (1e9, 1e9))
    shutil.copy(folder / "host=b" / "2.pcap", folder / "0.pcap")
    every = {"0.pcap", "1.pcap", "2.pcap", "3.pcap.gz"}
    assert names() == names(recursiveFileLookup="TRUE") == every
    assert names(recursiveFileLookup=False) == {"0.pcap"}
    assert names(pathGlobFilter="[02]*") == {"0.pcap", "2.pcap"}
    assert names(pathglobfilter="*.{gz,zst}") == {"3.pcap.gz"}
    assert names(modifiedBefore="2002-01-01T00:00:00") == {"2.pcap"}
    assert names(modifiedAfter="2002-01-01T00:00:00+02:00") == every - {"2.pcap"}
    assert names(modifiedAfter="2001-01-01T00:00:00", modifiedBefore="2002-01-01") == {"2.pcap"}


@pytest.mark.wide
@pytest.mark.filterwarnings("ignore")
def test_a_table_of_the_catalog_reads_with_its_options(spark: SparkSession, folder: Path) -> None:
    shutil.copy(folder / "host=b" / "2.pcap", folder / "0.pcap")
    spark.sql(
        "CREATE TABLE kwire_records USING kwire "
        f"OPTIONS (path '{folder}', table 'records', recursiveFileLookup 'false')"
    )
    try:
        rows = found(spark.sql("SELECT * FROM kwire_records"))
        assert [{**row, "capture": None} for row in rows] == [
            {**row, "capture": None} for row in expected(folder / "0.pcap", "records")
        ]
        assert {row["capture"] for row in rows} == {f"file://{folder}/0.pcap"}
        more = spark.sql("SELECT DISTINCT capture FROM kwire_records WITH (recursiveFileLookup 'true')")
        assert more.count() == 4
        assert spark.table("kwire_records").columns == SCHEMAS["records"].names
        with pytest.raises(PySparkException, match="no option 'tables'"):
            spark.sql(f"CREATE TABLE kwire_wrong USING kwire OPTIONS (path '{folder}', tables 'records')")
        # Everybody sees the options of a table.
        for option in ("path 's3://KEY:CANARY@bucket/x'", f"path '{folder}', keylog 's3://bucket/x?secret_key=CANARY'"):
            with pytest.raises(PySparkException, match="has credentials") as caught:
                spark.sql(f"CREATE TABLE kwire_wrong USING kwire OPTIONS ({option})")
            assert "CANARY" not in str(caught.value)
    finally:
        spark.sql("DROP TABLE kwire_records")
    spark.sql(f"CREATE TEMPORARY VIEW kwire_view USING kwire OPTIONS (path '{folder}/0.pcap')")
    assert found(spark.table("kwire_view")) == expected(folder / "0.pcap", "frames")
    spark.catalog.dropTempView("kwire_view")


@pytest.mark.wide
def test_a_folder_without_files_or_a_missing_file_is_one_clear_error(spark: SparkSession, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no.pcap", tmp_path / "*.pcap"):
        said = "a folder without captures" if path == tmp_path else "no such file"
        with pytest.raises(PySparkException, match=rf"CaptureError: .*: {said}"):
            load(spark, str(path)).count()


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"table": "packets"},
            "the option 'table', where the format is capture: no table 'packets': there are frames, messages, ",
        ),
        ({"ports": "kafka"}, "no port 'kafka'"),
        ({"maxPartitionBytes": "much"}, "not 'much': the option 'maxPartitionBytes' is a number of bytes"),
        ({"maxPartitionBytes": "1MiB", "across": "true"}, "'maxPartitionBytes' goes without 'across'"),
        ({"ports": "9092,65536"}, "no port '65536'"),
        ({"vxlan_ports": "0"}, "the option 'vxlan_ports': no port '0'"),
        ({"tabel": "frames"}, "no option 'tabel': did you mean 'table'. the page on options of reading lists all"),
    ],
)
def test_a_wrong_option_is_one_clear_error(
    spark: SparkSession, captures: Path, options: dict[str, str], said: str
) -> None:
    with pytest.raises(PySparkException, match=said):
        spark.read.format("kwire").options(**options).load(str(captures / CAPTURE)).count()


@pytest.mark.wide
def test_ports_of_vxlan_may_be_named(spark: SparkSession, captures: Path, tmp_path: Path) -> None:
    packets = tunnels.taken_from((captures / CAPTURE).read_bytes())
    around = [
        (time, tunnels.ethernet(tunnels.ipv4(17, tunnels.udp(12345, tunnels.vxlan(one))))) for time, one in packets
    ]
    (tmp_path / "mirror.pcap").write_bytes(tunnels.written(around))
    assert load(spark, str(tmp_path)).count() == 0
    assert load(spark, str(tmp_path), vxlan_ports="1,12345").count() == 208


@pytest.mark.wide
def test_ports_choose_the_brokers_to_look_at(spark: SparkSession, captures: Path) -> None:
    path = str(captures / CAPTURE)
    assert load(spark, path, ports="9092").count() == 208
    assert load(spark, path, ports="9093, 9092").count() == 208
    assert load(spark, path, ports="9093").count() == 0


def test_a_schema_of_the_user_chooses_columns_by_name(spark: SparkSession, captures: Path) -> None:
    path = captures / CAPTURE
    frame = spark.read.format("kwire").schema("status string, size bigint, api_name string").load(str(path))
    assert found(frame) == [
        {name: row[name] for name in ("status", "size", "api_name")} for row in expected(path, "frames")
    ]


def test_columns_that_a_schema_leaves_out_are_not_made(captures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kwire.spark.source import KwireDataSource
    from kwire.tables.bodies import Bodies

    decoded: list[object] = []
    inner = Bodies.text
    monkeypatch.setattr(Bodies, "text", lambda self, *terms: decoded.append(self) or inner(self, *terms))
    source = KwireDataSource({"table": "messages", "path": str(captures / CAPTURE)})
    for name, decodes in (("size", False), ("body", True)):
        decoded.clear()
        reader = source.reader(StructType([one for one in source.schema().fields if one.name == name]))
        (partition,) = reader.partitions()
        found = pa.Table.from_batches(list(reader.read(partition)))
        assert bool(decoded) == decodes
        assert found.column(name).to_pylist() == [row[name] for row in expected(captures / CAPTURE, "messages")]


def test_small_files_are_read_by_one_task(spark: SparkSession, captures: Path, tmp_path: Path) -> None:
    """In order, with the rows that each has alone; files that cannot be read among them."""
    data = (captures / CAPTURE).read_bytes()
    files = {"a": data, "b": b"", "c": data[:-9], "d": b"nothing", "e": data, "f": data[: len(data) // 2]}
    for name, some in files.items():
        (tmp_path / f"{name}.pcap").write_bytes(some)
    most = 2 * (len(data) + (16 << 10)) + 10
    alone, together = (load(spark, str(tmp_path), maxPartitionBytes=one) for one in (0, most))
    assert (alone.rdd.getNumPartitions(), together.rdd.getNumPartitions()) == (6, 3)
    rows = together.toArrow().to_pylist()
    assert rows == alone.toArrow().to_pylist()
    bad = [Path(row["capture"]).stem for row in rows if row["status"] == "bad_file"]
    assert bad == ["b", "c", "d", "f"]
    assert load(spark, str(tmp_path), maxPartitionBytes="1MiB").rdd.getNumPartitions() == 1


def test_files_are_put_together_by_bytes_and_number() -> None:
    def groups(sizes: list[int], most: int, opening: int) -> list[list[int]]:
        some = [File(None, str(k), str(k), size, False) for k, size in enumerate(sizes)]
        return [[one.size for one in group] for group in in_groups(some, most, opening)]

    assert groups([], 100, 0) == []
    assert groups([50, 50, 1, 300, 1, 1], 100, 0) == [[50, 50], [1], [300], [1, 1]]
    assert groups([1] * 7, 100, 32) == [[1] * 3, [1] * 3, [1]]
    assert groups([1, 1], 0, 0) == [[1], [1]]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("packet string", "the table frames has no column 'packet'"),
        ("size string", "column 'size' is bigint, not string"),
    ],
)
def test_a_schema_that_does_not_fit_is_one_clear_error(
    spark: SparkSession, captures: Path, schema: str, said: str
) -> None:
    with pytest.raises(PySparkException, match=said):
        spark.read.format("kwire").schema(schema).load(str(captures / CAPTURE)).count()


@pytest.mark.wide
def test_spark_finds_the_data_source_without_registration(captures: Path, tmp_path: Path) -> None:
    # Another process: this one's session has registered it by hand.
    code = (
        "import sys\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        "print(spark.read.format('kwire').load(sys.argv[1]).count())\n"
        "spark.stop()\n"
    )
    env = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", code, str(captures / CAPTURE)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "208"


@pytest.mark.wide
def test_connections_over_tls_are_read_with_a_key_log(spark: SparkSession, tmp_path: Path) -> None:
    folder = Path(__file__).parents[1] / "golden" / "tls" / "kafka-4.3-kraft-java"
    capture = str(folder / "agent.pcap")
    lines = (folder / "agent.keys").read_bytes().splitlines(keepends=True)
    for k in range(2):
        (tmp_path / f"{k}.keys").write_bytes(b"".join(lines[k::2]))
    sealed = load(spark, capture)
    assert {row["status"] for row in found(sealed)} == {"encrypted"}
    opened = found(load(spark, capture, keylog=f"{tmp_path}/*.keys"))
    assert {row["status"] for row in opened} == {"ok"}
    assert len(opened) == 76
    # What is wrong with the key log is no fault of the captures: the query fails, in one sentence.
    missing, sentence = f"{tmp_path}/none", r"none: no such file \(the option 'keylog'\)"
    with pytest.raises(PySparkException, match=sentence):
        load(spark, capture, keylog=missing).collect()
    with pytest.raises(CaptureError, match=sentence):
        kwire.spark.read(capture, keylog=missing, spark=spark)
    chunks = spark.createDataFrame([], "connection string, direction string, time timestamp, payload binary")
    with pytest.raises(CaptureError, match=sentence):
        kwire.spark.decode_frames(chunks, keylog=missing)
    with pytest.raises(PySparkException, match="the option 'keylog' is for captures"):
        spark.read.format("kwire").options(format="log", keylog="x").load(capture).collect()


def test_filters_that_leave_no_file_give_no_rows(spark: SparkSession, captures: Path, tmp_path: Path) -> None:
    later = {"modifiedAfter": "2100-01-01T00:00:00"}
    assert load(spark, str(captures), **later).count() == 0
    assert load(spark, str(captures), across=True, **later).count() == 0
    frame = kwire.spark.read(str(captures), spark=spark, columns="frame", **later)
    assert (frame.columns, frame.count()) == (["frame"], 0)
    written = kwire.spark.export(spark, str(captures), str(tmp_path / "out"), options=later)
    assert written.rows == 0


@pytest.mark.parametrize("options", [{}, {"keylog": ""}, {"topic_ids": " "}])
def test_an_empty_path_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(KwireError, match="empty"):
        Options.of({"path": "x" if options else "", **options})


def test_an_option_is_refused_where_it_does_not_act(spark: SparkSession, captures: Path) -> None:
    """Each option of the table, at each place that it is not for."""
    chunks = spark.createDataFrame([], "connection string, direction string, time timestamp, payload binary")
    source = KwireDataSource({"path": str(captures)})

    def asked(name: str, at: str) -> object:
        options = {name: "1"}
        if at == CHUNKS:
            return kwire.spark.decode_frames(chunks, **options)
        if at == READ:
            return kwire.spark.read(str(captures), spark=spark, **options)
        if at == EXPORT:
            return kwire.spark.export(spark, str(captures), "out", options=options)
        made = KwireDataSource({"path": str(captures), **options})
        return made.streamReader(source.schema()) if at == STREAM else made.reader(source.schema())

    for name, where in ACTS.items():
        if OPTIONS[name].kind is None:
            continue  # for Python alone
        for at in {LOAD, STREAM, READ, EXPORT, CHUNKS}.difference(where):
            if name in ("table", "columns", "sensor") and at in (READ, CHUNKS):
                continue  # a parameter there
            with pytest.raises((KwireError, TypeError), match=f"the option '{name}' is for"):
                asked(name, at)


def test_a_bad_file_may_fail_the_query(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(b"nothing")
    assert load(spark, str(tmp_path)).collect()[0].status == "bad_file"
    with pytest.raises(PySparkException, match="a bad file, which the option 'badFiles' lets fail the query"):
        load(spark, str(tmp_path), badFiles="fail").collect()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "denied"), "may not be read by the user"),
        (OSError(28, "No space left on device"), "the disk is full"),
        (MemoryError(), "memory is not enough to read .*1 GiB"),
        (pa.ArrowMemoryError("malloc"), "memory is not enough"),
        (OSError("could not load shared object file libllvmlite.so"), "a library could not be loaded"),
        (FileNotFoundError(2, "gone"), "is gone"),
        (OSError(5, "Input/output error"), "its bytes are not to blame"),
    ],
)
@pytest.mark.parametrize("at", [0, 5000])
def test_what_the_machine_lacks_is_no_bad_file(
    captures: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, said: str, at: int
) -> None:
    class Lacking(Around):
        def read(self, size: int | None = -1, /) -> bytes:
            if self._source.tell() >= at:
                raise error
            return bytes(self._source.read(min(size or 0, 4096)))

    source = KwireDataSource({"path": str(captures / CAPTURE)})
    reader = source.reader(source.schema())
    (partition,) = reader.partitions()
    raw = File.raw
    monkeypatch.setattr(File, "raw", lambda self, begin=0: Lacking(raw(self, begin)))
    with pytest.raises(KwireError, match=said):
        list(reader.read(partition))


@pytest.mark.wide
def test_a_worker_with_too_little_memory_fails_with_a_sentence(captures: Path) -> None:
    code = (
        "import sys, kwire.spark\n"
        "from pyspark.sql import SparkSession\n"
        "builder = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')\n"
        "spark = builder.config('spark.executor.pyspark.memory', '512m').getOrCreate()\n"
        "spark.read.format('kwire').load(sys.argv[1]).count()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(captures / CAPTURE)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "512 MiB of memory are too few for a Python worker of kwire: give each Python worker 1 GiB" in done.stderr
