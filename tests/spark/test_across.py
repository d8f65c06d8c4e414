"""Captures that were cut into files are read as one: the rows are those of the one that was not cut."""

from __future__ import annotations

import io
import itertools
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import kwire.spark
from kwire import capture
from kwire.errors import KwireError
from kwire.spark.files import find
from kwire.testing import packets

SHARE = Path(__file__).parents[1] / "golden" / "kafka-4.3-kraft-java" / "share.pcap"
COLUMNS = {
    "frames": ["timestamp", "client_port", "broker_port", "api_name", "correlation_id", "size", "latency_ms", "status"],
    "records": ["topic", "topic_id", "partition", "offset", "key", "value", "status", "error"],
}

Rows = Iterable[dict[str, Any]]


def plain(rows: Rows) -> Counter[str]:
    return Counter(repr({name: str(value) for name, value in row.items()}) for row in rows)


def uncut(table: str) -> Counter[str]:
    data = io.BytesIO(SHARE.read_bytes())
    return plain(row for batch in capture.read(data, table, columns=COLUMNS[table]) for row in batch.to_pylist())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The capture in four files; the order of their names is not that of their times."""
    made = tmp_path_factory.mktemp("across")
    whole = packets.read(SHARE.read_bytes())
    places = [0, 90, 200, 330, len(whole)]
    for name, (a, b) in zip("dbca", itertools.pairwise(places), strict=True):
        (made / f"{name}.pcap").write_bytes(packets.write_pcap(whole[a:b], nano=True))
    return made


def test_all_at_once(spark: SparkSession, folder: Path) -> None:
    (folder / "e.pcap").write_bytes(b"nothing")
    frame = kwire.spark.read(str(folder), table="records", columns=["capture", *COLUMNS["records"]], buckets=2)
    rows = frame.toArrow().to_pylist()
    (folder / "e.pcap").unlink()
    assert [row["status"] for row in rows if row["capture"].endswith("e.pcap")] == ["bad_file"]
    assert {Path(row["capture"]).name for row in rows} > {"b.pcap", "c.pcap"}
    found = plain({name: row[name] for name in COLUMNS["records"]} for row in rows if row["status"] != "bad_file")
    assert found == uncut("records")


def test_one_after_the_other(spark: SparkSession, folder: Path) -> None:
    for table, columns in COLUMNS.items():
        frame = spark.read.format("kwire").option("table", table).option("across", "true").load(str(folder))
        assert plain(frame.select(*columns).toArrow().to_pylist()) == uncut(table)


def test_a_large_file_is_read_in_splits(spark: SparkSession, tmp_path: Path) -> None:
    whole = packets.read(SHARE.read_bytes())
    # Packets that are not IP make it large.
    more = [[one, *(one._replace(data=bytes(12) + b"\x08\x06" + bytes(1400)) for _ in range(8))] for one in whole]
    file = tmp_path / "large.pcap"
    file.write_bytes(packets.write_pcap([one for some in more for one in some], nano=True))
    assert file.stat().st_size > 4 << 20
    frame = kwire.spark.read(str(file), table="frames", maxSplitBytes="1MiB")
    rows = frame.select("capture", "frame", "connection", *COLUMNS["frames"]).toArrow().to_pylist()
    assert {row["capture"] for row in rows} == {str(file)}
    assert len({row["frame"] >> 32 for row in rows}) == len(find([str(file)])[0].splits(1 << 20)) > 2
    assert len({row["frame"] for row in rows}) == len(rows)
    assert plain({name: row[name] for name in COLUMNS["frames"]} for row in rows) == uncut("frames")
    with pytest.raises(KwireError, match="not '10': the option 'maxSplitBytes' is a number of bytes"):
        kwire.spark.read(str(file), maxSplitBytes=10)
    with pytest.raises(PySparkException, match="'maxSplitBytes' is for kwire"):
        spark.read.format("kwire").option("maxSplitBytes", "1MiB").load(str(file)).count()


def test_sensors_are_kept_apart(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    for sensor in ("one", "two"):
        (tmp_path / sensor).mkdir()
        for file in folder.iterdir():
            (tmp_path / sensor / file.name).write_bytes(file.read_bytes())
    frame = spark.read.format("kwire").options(across="true", sensor="1").load(str(tmp_path))
    found = plain(frame.select(*COLUMNS["frames"]).toArrow().to_pylist())
    assert found == Counter({row: 2 * count for row, count in uncut("frames").items()})
    with pytest.raises(KwireError, match=r"nothing in .* matches 'broker-'"):
        kwire.spark.read(str(tmp_path), sensor="broker-")


def test_what_cannot_be_put_together_is_refused(spark: SparkSession, folder: Path) -> None:
    with pytest.raises(KwireError, match="the table connections has rows of whole files"):
        kwire.spark.read(str(folder), table="connections")
    with pytest.raises(PySparkException, match="the option 'sensor' goes with 'across'"):
        spark.read.format("kwire").option("sensor", "1").load(str(folder)).schema  # noqa: B018
