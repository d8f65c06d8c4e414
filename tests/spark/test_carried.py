"""With ``across``, a stream has the rows of the capture that was never cut, whichever files its batches have."""

from __future__ import annotations

import io
import itertools
import os
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from telemetry_seeds import seeded, too_many_bytes

from kwire import capture
from kwire.errors import KwireError
from kwire.spark.across import wholes
from kwire.spark.carried import Carried, batch_of
from kwire.spark.files import File
from kwire.spark.source import FileReader, Options, table_schema
from kwire.testing import packets

SHARE = Path(__file__).parents[1] / "golden" / "kafka-4.3-kraft-java" / "share.pcap"
COLUMNS = ["topic", "topic_id", "partition", "offset", "key", "value", "status", "error"]
HOUR = 3600 * 10**9


def plain(rows: Iterable[dict[str, Any]]) -> Counter[str]:
    return Counter(repr({name: str(row[name]) for name in COLUMNS}) for row in rows)


def uncut() -> Counter[str]:
    found = capture.read(io.BytesIO(SHARE.read_bytes()), "records")
    return plain(row for batch in found for row in batch.to_pylist())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("carried")
    whole = packets.read(SHARE.read_bytes())
    for n, (a, b) in enumerate(itertools.pairwise([0, 90, 200, 330, len(whole)])):
        path = made / f"{n}.pcap"
        path.write_bytes(packets.write_pcap(whole[a:b], nano=True))
        os.utime(path, (1_800_000_000 + n, 1_800_000_000 + n))
    return made


def file(path: Path) -> File:
    return File(fs.LocalFileSystem(), str(path), str(path), path.stat().st_size, True)


def rows(carried: Carried, batch: int, paths: list[Path], table: str = "records") -> list[dict[str, Any]]:
    (whole,) = wholes([file(path) for path in paths], None)
    options = Options.of({"path": "x", "table": table})
    reader = FileReader(options, table_schema(table))
    found = batch_of(whole, "", batch, carried, reader.rows_of)
    return [row for part in found for row in part.to_pylist()]


def test_connections_go_on_in_later_batches_and_batches_can_be_read_again(folder: Path, tmp_path: Path) -> None:
    files = [folder / f"{n}.pcap" for n in range(4)]
    (tmp_path / "0.json").write_text("{}")
    carried = Carried(str(tmp_path / "state"), HOUR)
    first = rows(carried, 1, files[:2])
    second = rows(carried, 2, [files[2], tmp_path / "0.json"])
    third = rows(carried, 3, files[3:])
    # Killed behind the state, before the batch was committed; again, from an older checkpoint.
    assert rows(carried, 3, files[3:]) == third
    assert rows(carried, 2, [files[2], tmp_path / "0.json"]) == second
    found = [row for row in (*first, *second, *third) if row["status"] != "bad_file"]
    assert plain(found) == uncut()
    assert plain(row for n in range(4) for row in rows(Carried(str(tmp_path / f"{n}"), HOUR), 1, [files[n]])) != uncut()
    assert len({(row["connection"], row["frame"]) for row in found}) == len({row["frame"] for row in found})
    states = sorted((tmp_path / "state" / "sensor=").iterdir())
    assert [path.name for path in states] == [f"{n:012d}.state" for n in (1, 2, 3)]
    for n in range(4, 16):
        rows(carried, n, [tmp_path / "0.json"])
        carried.forget(n - 1)
    assert len(list((tmp_path / "state" / "sensor=").iterdir())) == 11
    states[-1].parent.joinpath("000000000100.state").write_bytes(b"nothing")
    with pytest.raises(KwireError, match="is no state of a stream"):
        rows(carried, 101, files[3:])


def test_late_captures_are_decoded_alone_and_idle_connections_given_up(folder: Path, tmp_path: Path) -> None:
    files = [folder / f"{n}.pcap" for n in range(4)]
    carried = Carried(str(tmp_path / "state"), HOUR)
    on_time = rows(carried, 1, [files[0], files[2]])
    late = rows(carried, 2, [files[1]])
    alone = rows(Carried(str(tmp_path / "alone"), HOUR), 1, [files[1]])
    # But for names, which are known from the others.
    assert [row["value"] for row in late] == [row["value"] for row in alone]
    assert {row["topic"] for row in alone} != {row["topic"] for row in late}
    rest = rows(carried, 3, [files[3]])
    both = Carried(str(tmp_path / "both"), HOUR)
    assert plain(on_time + rest) == plain(rows(both, 1, [files[0], files[2], files[3]]))
    # With no time at all, nothing goes on but what was seen with the last packet.
    short = Carried(str(tmp_path / "short"), 0)
    state = [rows(short, n + 1, [files[n]]) for n in range(4)]
    assert sum(map(len, state)) > 0
    connections = short.load("", 5).connections
    assert connections is not None
    assert connections.num_rows <= 1


def test_a_stream_across_its_batches(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    options = {"table": "records", "across": "true", "stateLocation": str(tmp_path / "state"), "idle": "0s"}
    frame = spark.readStream.format("kwire").options(**options, maxFilesPerTrigger="2").load(str(folder))
    found: dict[int, list[dict[str, Any]]] = {}

    def keep(batch: Any, number: int) -> None:
        found[number] = batch.toArrow().to_pylist()

    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert sorted(found) == [0, 1]
    assert plain(row for some in found.values() for row in some) == uncut()


def test_a_stream_whose_state_is_gone_is_told(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    growing, state = tmp_path / "growing", tmp_path / "state"
    growing.mkdir()

    def run(name: str) -> None:
        shutil.copy2(folder / name, growing / name)
        options = {"table": "records", "across": "true", "stateLocation": str(state), "idle": "0s"}
        frame = spark.readStream.format("kwire").options(**options).load(str(growing))
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    run("0.pcap")
    run("1.pcap")
    shutil.rmtree(state)
    with pytest.raises(StreamingQueryException, match="has no state of this stream any more"):
        run("2.pcap")


def test_what_clients_were_told_in_one_batch_is_known_in_the_next(tmp_path: Path) -> None:
    data, expected = seeded("zstd", too_many_bytes)
    whole = packets.read(data)
    carried = Carried(str(tmp_path / "state"), HOUR)
    found = []
    places = [n * len(whole) // 4 for n in range(5)]
    for n, (a, b) in enumerate(itertools.pairwise(places)):
        path = tmp_path / f"{n}.pcap"
        path.write_bytes(packets.write_pcap(whole[a:b], nano=True))
        found += rows(carried, n, [path], "client_metrics")
    reported = [(row["client_id"], one["rule"], None) for row in found for one in row["violations"]]
    assert reported == expected
    assert {row["requested"] for row in found if row["status"] == "ok"} == {True}
    damaged = tmp_path / "state" / "sensor=" / f"{2:012d}.state"
    damaged.write_bytes(damaged.read_bytes().replace(b'"subscriptions": [[', b'"subscriptions": [[7, '))
    with pytest.raises(KwireError, match="is no state of a stream"):
        rows(carried, 3, [tmp_path / "3.pcap"], "client_metrics")
