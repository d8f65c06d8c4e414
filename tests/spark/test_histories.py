"""Histories in Spark: of files that are read at once, one after the other, and in a stream."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
from group_histories import simulated
from made_captures import read
from pyspark.sql import DataFrame, SparkSession
from streams_truth import bench, in_rows, lived

import kwire.spark
from kwire import tables
from kwire.spark.checkpoint import StateFolder
from kwire.testing import packets

pytestmark = pytest.mark.wide

COUNT = 3


def told(rows: list[Any]) -> list[str]:
    """Rows without what depends on how files were cut, in an order of their own."""
    found = [row.asDict(recursive=True) if hasattr(row, "asDict") else dict(row) for row in rows]
    for row in found:
        row["timestamp"] = None if row["timestamp"] is None else round(row["timestamp"].timestamp(), 6)
    names = ("capture", "connection", "frame", "cause_capture", "cause_connection", "cause_frame")
    return sorted(str({name: value for name, value in row.items() if name not in names}) for row in found)


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A capture of two groups in pieces, and its rows."""
    folder = tmp_path_factory.mktemp("cut")
    data, _, _ = simulated(5, "consumer", seconds=60)
    listed = packets.read(data)
    places = [len(listed) * number // COUNT for number in range(COUNT + 1)]
    for number, (a, b) in enumerate(itertools.pairwise(places)):
        (folder / f"{number}.pcap").write_bytes(packets.write_pcap(listed[a:b], nano=True))
    return folder, told(read(packets.write_pcap(listed, nano=True), "group_events"))


def test_files_read_at_once_or_one_by_one_have_the_rows_of_the_whole(
    spark: SparkSession, cut: tuple[Path, list[str]]
) -> None:
    folder, wanted = cut
    at_once = kwire.spark.read(str(folder), table="group_events", part_bytes=0)
    assert at_once.schema == kwire.spark.table_schema("group_events")
    assert at_once.columns == tables.table("group_events").schema.names
    assert told(at_once.collect()) == wanted
    by_name = kwire.spark.group_events(str(folder), part_bytes=0)
    events = by_name.groupBy("event").count()
    assert {row.event for row in events.collect()} >= {"joined", "assigned", "revoked", "rebalance_ended"}
    one_by_one = spark.read.format("kwire").options(table="group_events", across="true").load(str(folder))
    assert told(one_by_one.collect()) == wanted


def test_rows_are_chosen_once_they_are_made(spark: SparkSession, cut: tuple[Path, list[str]]) -> None:
    folder, wanted = cut
    mine = [row for row in wanted if "'client_id': 'c1'" in row]
    assert 0 < len(mine) < len(wanted)
    chosen = kwire.spark.read(str(folder), table="group_events", part_bytes=0, client_ids="c1")
    assert told(chosen.collect()) == mine
    one_by_one = spark.read.format("kwire").options(table="group_events", across="true", client_ids="c1")
    assert told(one_by_one.load(str(folder)).collect()) == mine


def test_a_file_that_is_none_is_a_row_and_the_rest_is_read(
    spark: SparkSession, cut: tuple[Path, list[str]], tmp_path: Path
) -> None:
    folder, wanted = cut
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "f.pcap").write_bytes(b"nothing")
    found: DataFrame = kwire.spark.read(str(tmp_path), table="group_events", part_bytes=0)
    rows = found.collect()
    assert [Path(row.capture).name for row in rows if row.status == "bad_file"] == ["f.pcap"]
    assert told([row for row in rows if row.status != "bad_file"]) == wanted


def test_what_members_had_in_one_batch_of_a_stream_is_known_in_the_next(
    cut: tuple[Path, list[str]], tmp_path: Path
) -> None:
    from test_checkpoint import rows

    folder, wanted = cut
    states = StateFolder(str(tmp_path / "state"), 10**15)
    found = []
    for number in range(COUNT):
        found += rows(states, number, [folder / f"{number}.pcap"], "group_events")
    assert told(found) == wanted


def test_streams_tasks_of_pieces_of_a_capture_are_what_the_broker_knows(spark: SparkSession, tmp_path: Path) -> None:
    of = bench(5, standby="1", warmup="2")
    truth = lived(of, random.Random(7))
    listed = packets.read(of.core.recording.pcapng())
    for number in range(COUNT):
        some = listed[len(listed) * number // COUNT : len(listed) * (number + 1) // COUNT]
        (tmp_path / f"{number}.pcap").write_bytes(packets.write_pcap(some, nano=True))
    truth.over()
    assert in_rows(kwire.spark.read(str(tmp_path), table="streams_tasks", part_bytes=0).collect()) == truth.ended
