"""With ``across``, a stream has the rows of the capture that was never cut, whichever files its batches have."""

from __future__ import annotations

import copy
import io
import itertools
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from telemetry_seeds import seeded, too_many_bytes

import kwire.spark
from kwire import capture
from kwire.capture.parts import Part
from kwire.errors import KwireError
from kwire.spark import checkpoint as carried_
from kwire.spark.arrow import packed
from kwire.spark.checkpoint import StateFolder, batch_of
from kwire.spark.files import File
from kwire.spark.options import Options, table_schema
from kwire.spark.reader import FileReader
from kwire.spark.sensors import by_sensor
from kwire.tables.reading import read_in_order
from kwire.testing import packets

pytestmark = pytest.mark.wide

SHARE = Path(__file__).parents[1] / "golden" / "kafka-4.3-kraft-java" / "share.pcap"
COLUMNS = ["topic", "topic_id", "partition", "offset", "key", "value", "status", "error"]
GOLDEN = Path(__file__).parents[1] / "golden"
HOUR = 3600 * 10**9


def plain(rows: Iterable[dict[str, Any]]) -> Counter[str]:
    return Counter(repr({name: str(row[name]) for name in COLUMNS}) for row in rows)


def uncut() -> Counter[str]:
    found = capture.read(io.BytesIO(SHARE.read_bytes()), "records")
    return plain(row for batch in found for row in batch.to_pylist())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("carried")
    captures = packets.read(SHARE.read_bytes())
    for n, (a, b) in enumerate(itertools.pairwise([0, 90, 200, 330, len(captures)])):
        path = made / f"{n}.pcap"
        path.write_bytes(packets.write_pcap(captures[a:b], nano=True))
        os.utime(path, (1_800_000_000 + n, 1_800_000_000 + n))
    return made


def file(path: Path) -> File:
    return File(fs.LocalFileSystem(), str(path), str(path), path.stat().st_size, True)


def rows(states: StateFolder, batch: int, paths: list[Path], table: str = "records") -> list[dict[str, Any]]:
    (captures,) = by_sensor([file(path) for path in paths], None)
    options = Options.of({"path": "x", "table": table})
    reader = FileReader(options, table_schema(table))
    found = batch_of(captures, "", batch, states, reader.rows_of)
    return [row for part in found for row in part.to_pylist()]


def test_connections_go_on_in_later_batches_and_batches_can_be_read_again(folder: Path, tmp_path: Path) -> None:
    files = [folder / f"{n}.pcap" for n in range(4)]
    (tmp_path / "0.json").write_text("{}")
    states = StateFolder(str(tmp_path / "state"), HOUR)
    first = rows(states, 1, files[:2])
    second = rows(states, 2, [files[2], tmp_path / "0.json"])
    third = rows(states, 3, files[3:])
    # Killed behind the state, before the batch was committed; again, from an older checkpoint.
    assert rows(states, 3, files[3:]) == third
    assert rows(states, 2, [files[2], tmp_path / "0.json"]) == second
    found = [row for row in (*first, *second, *third) if row["status"] != "bad_file"]
    assert plain(found) == uncut()
    assert (
        plain(row for n in range(4) for row in rows(StateFolder(str(tmp_path / f"{n}"), HOUR), 1, [files[n]]))
        != uncut()
    )
    assert len({(row["connection"], row["frame"]) for row in found}) == len({row["frame"] for row in found})
    written = sorted((tmp_path / "state" / "sensor=").iterdir())
    assert [path.name for path in written] == [f"{n:012d}.state" for n in (1, 2, 3)]
    for n in range(4, 16):
        rows(states, n, [tmp_path / "0.json"])
        states.forget(n - 1)
    assert len(list((tmp_path / "state" / "sensor=").iterdir())) == 11
    written[-1].parent.joinpath("000000000100.state").write_bytes(b"nothing")
    with pytest.raises(KwireError, match="is no state of a stream"):
        rows(states, 101, files[3:])


def test_late_captures_are_decoded_alone_and_idle_connections_given_up(folder: Path, tmp_path: Path) -> None:
    files = [folder / f"{n}.pcap" for n in range(4)]
    states = StateFolder(str(tmp_path / "state"), HOUR)
    on_time = rows(states, 1, [files[0], files[2]])
    late = rows(states, 2, [files[1]])
    alone = rows(StateFolder(str(tmp_path / "alone"), HOUR), 1, [files[1]])
    # But for names, which are known from the others.
    assert [row["value"] for row in late] == [row["value"] for row in alone]
    assert {row["topic"] for row in alone} != {row["topic"] for row in late}
    rest = rows(states, 3, [files[3]])
    both = StateFolder(str(tmp_path / "both"), HOUR)
    assert plain(on_time + rest) == plain(rows(both, 1, [files[0], files[2], files[3]]))
    # With no time at all, nothing goes on but what was seen with the last packet.
    short = StateFolder(str(tmp_path / "short"), 0)
    state = [rows(short, n + 1, [files[n]]) for n in range(4)]
    assert sum(map(len, state)) > 0
    connections = short.load("", 5).connections
    assert connections is not None
    assert connections.num_rows <= 1


@pytest.mark.parametrize("table", ["transactions", "journeys", "share_deliveries"])
def test_what_tables_remember_goes_on_in_later_batches(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "share.pcap" if table == "share_deliveries" else "clients.pcap"
    whole = packets.read((GOLDEN / "kafka-4.3-kraft-java" / name).read_bytes())
    cuts = [0, len(whole) // 3, len(whole) // 2, len(whole)]
    files = [tmp_path / f"{n}.pcap" for n in range(3)]
    for path, (begin, end) in zip(files, itertools.pairwise(cuts), strict=True):
        path.write_bytes(packets.write_pcap(whole[begin:end]))
    states = StateFolder(str(tmp_path / "state"), HOUR)
    found = [row for n, path in enumerate(files) for row in rows(states, n + 1, [path], table)]
    # What is open after the last batch has no row yet.
    monkeypatch.setattr(Part, "carried", property(lambda self: True))
    sources = [io.BytesIO(path.read_bytes()) for path in files]
    names = [str(one) for one in files]
    at_once = [row for _, batch in read_in_order(sources, {table: None}, names) for row in batch.to_pylist()]
    assert found == at_once
    # Journeys wait for frames that may belong before them.
    assert found or table == "journeys"


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
    captures = packets.read(data)
    states = StateFolder(str(tmp_path / "state"), HOUR)
    found = []
    places = [n * len(captures) // 4 for n in range(5)]
    for n, (a, b) in enumerate(itertools.pairwise(places)):
        path = tmp_path / f"{n}.pcap"
        path.write_bytes(packets.write_pcap(captures[a:b], nano=True))
        found += rows(states, n, [path], "client_metrics")
    reported = [(row["client_id"], one["rule"], None) for row in found for one in row["violations"]]
    assert reported == expected
    assert {row["requested"] for row in found if row["status"] == "ok"} == {True}
    damaged = tmp_path / "state" / "sensor=" / f"{2:012d}.state"
    damaged.write_bytes(damaged.read_bytes().replace(b'"subscriptions": [[', b'"subscriptions": [[7, '))
    with pytest.raises(KwireError, match="is no state of a stream"):
        rows(states, 3, [tmp_path / "3.pcap"], "client_metrics")


def test_deliveries_of_share_groups_are_those_that_the_member_was_told(spark: SparkSession, folder: Path) -> None:
    told = [json.loads(line) for line in SHARE.with_suffix(".told.jsonl").read_text().splitlines()]
    places = Counter((one["topic"], one["partition"], one["offset"]) for one in told if one["direction"] == "fetch")
    names = ["topic", "partition", "offset", "delivery_count", "status", "source"]
    captures = spark.read.format("kwire").option("table", "records").schema(
        "topic string, partition int, offset bigint, delivery_count smallint, status string, source string"
    )  # fmt: skip
    parts = kwire.spark.read(str(folder), table="records", columns=names)
    for frame in (captures.load(str(SHARE)), parts):
        got = [row for row in frame.collect() if row.source == "fetch"]
        fetched = Counter((row.topic, row.partition, row.offset) for row in got if row.status == "ok")
        assert fetched == places
        most = {place: count for place, count in fetched.items() if count > 1}
        found = {(row.topic, row.partition, row.offset) for row in got if (row.delivery_count or 0) > 1}
        assert found == set(most)
        assert {row.delivery_count for row in got if row.status == "not_acquired"} == {None}
    tables = {
        name: spark.read.format("kwire").option("table", name).load(str(SHARE)) for name in ("partitions", "calls")
    }
    reads = kwire.spark.lineage(tables).where("role = 'reads'").groupBy("topic").sum("records").collect()
    wanted = Counter(topic for topic, *_ in places.elements())
    assert {row[0]: row[1] for row in reads} == wanted


# --- states that somebody else has written


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[StateFolder, Path, bytes]:
    """A folder of states, the file of one that has something of everything, and what it holds."""
    made = tmp_path_factory.mktemp("states")
    data, _ = seeded("zstd", too_many_bytes)
    captures = packets.read(data)
    (made / "0.pcap").write_bytes(packets.write_pcap(captures[: len(captures) // 2], nano=True))
    states = StateFolder(str(made / "state"), HOUR)
    rows(states, 1, [made / "0.pcap"], "client_metrics")
    path = made / "state" / "sensor=" / f"{1:012d}.state"
    stored = path.read_bytes()
    head, _, rest = stored.partition(b"\n")
    said = json.loads(head)
    said["topics"] = {"00" * 16: "orders"}
    said["common"]["fragments"] = {
        "seen": 1,
        "waiting": [["AAAA", 5, 1, 16, "RQ" + "A" * 26, [0, 8], ["AAAAAAAAAAA=", "AAA="]]],
        "joined": [["AAAA", 5, [[0, 8, 7]]]],
    }
    assert all(said["memory"]["client_metrics"][name] for name in ("asked", "links", "instances", "subscriptions"))
    return states, path, json.dumps(said).encode() + b"\n" + rest


def ipc(batch: pa.RecordBatch, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    how = pa.ipc.IpcWriteOptions(**options)
    with (
        pa.CompressedOutputStream(sink, "zstd") as outer,
        pa.ipc.new_stream(outer, batch.schema, options=how) as writer,
    ):
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from places(one, (*at, key))


def test_a_state_that_can_be_one_is_taken(written: tuple[StateFolder, Path, bytes]) -> None:
    states, path, good = written
    path.write_bytes(good)
    state = states.load("", 2)
    assert state.connections is not None
    assert (state.place, state.topics, set(state.memory)) == (1, {bytes(16): "orders"}, {"client_metrics"})
    path.with_name("7.state").write_bytes(b"")
    path.with_name("\u0661" * 12 + ".state").write_bytes(b"")
    assert states.load("", 99).place == 1


@pytest.mark.parametrize(
    "value", [None, -1, 1 << 61, 1 << 70, "x", "AAAA", "", True, [], {}, [[]], 1.5, [["AAAA", "x", []]]], ids=repr
)
def test_a_state_with_any_other_value_is_one_or_none(written: tuple[StateFolder, Path, bytes], value: Any) -> None:
    states, path, good = written
    head, _, rest = good.partition(b"\n")
    said = json.loads(head)
    refused = []
    for at in places(said):
        changed = copy.deepcopy(said)
        if not at:
            changed = value
        else:
            inside = changed
            for key in at[:-1]:
                inside = inside[key]
            inside[at[-1]] = value
        path.write_bytes(json.dumps(changed).encode() + b"\n" + rest)
        try:
            # What was taken must not fail later: neither as a bad file, nor otherwise.
            found = rows(states, 2, [path.parents[2] / "0.pcap"], "client_metrics")
            assert not [row for row in found if row["status"] == "bad_file"]
        except KwireError as error:
            refused.append(str(error))
    assert len(refused) > 20
    assert not [said for said in refused if "is no state of a stream" not in said]


def test_a_damaged_state_is_an_error_and_no_bad_file(written: tuple[StateFolder, Path, bytes]) -> None:
    states, path, good = written
    path.write_bytes(good)
    path.with_name(f"{2:012d}.state").unlink(missing_ok=True)
    connections = states.load("", 2).connections
    assert connections is not None
    (batch,) = connections.to_batches()
    head = good.partition(b"\n")[0] + b"\n"
    wrong = {
        "nothing": b"",
        "no end": head[:-1],
        "nested": b"[" * 200_000 + b"\n",
        "not zstd": head + b"nothing" * 9,
        "cut": good[:-9],
        "no table": head + packed(pa.table({"a": [1]}))[:40],
        "another table": head + packed(pa.table({"a": [1]})),
        "compressed twice": head + ipc(batch, compression="zstd"),
        "a role": head + packed(with_role(connections, 99)),
        "another version": head + packed(connections.replace_schema_metadata({"kwire": '{"version": 1, "now": 0}'})),
        "no metadata": head + packed(connections.replace_schema_metadata(None)),
    }
    for name, data in wrong.items():
        path.write_bytes(data)
        with pytest.raises(KwireError, match="is no state of a stream"):
            rows(states, 2, [path.parents[2] / "0.pcap"], "client_metrics")
        assert not path.with_name(f"{2:012d}.state").exists(), name


def with_role(connections: pa.Table, role: int) -> pa.Table:
    changed = connections.to_pylist()
    changed[0]["connection"]["role"] = role
    return pa.Table.from_pylist(changed, connections.schema)


def test_a_small_state_does_not_become_a_large_one(
    written: tuple[StateFolder, Path, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    states, path, good = written
    head = good.partition(b"\n")[0] + b"\n"
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        for _ in range(64):
            stream.write(bytes(1 << 20))
    bomb = sink.getvalue().to_pybytes()
    path.write_bytes(head + bomb)
    pieces: list[int] = []
    inner = pa.CompressedInputStream

    class Counted:
        def __init__(self, *of: Any) -> None:
            self.stream = inner(*of)

        def __enter__(self) -> Counted:
            return self

        def __exit__(self, *_: object) -> None:
            self.stream.close()

        def read(self, size: int) -> bytes:
            pieces.append(size)
            return bytes(self.stream.read(size))

    monkeypatch.setattr(carried_, "GROWTH", 2)
    with monkeypatch.context() as patch:
        patch.setattr(carried_.pa, "CompressedInputStream", Counted)
        with pytest.raises(KwireError, match="more than 4 MiB, decompressed"):
            states.load("", 2)
    assert sum(pieces) <= (4 << 20) + 2 * len(bomb) + (2 << 20)
    monkeypatch.setattr(carried_, "MOST_STATE", len(good) - 1)
    path.write_bytes(good)
    monkeypatch.setattr(carried_, "opened", None)
    with pytest.raises(KwireError, match="a file of more than 0 MiB"):
        states.load("", 2)


def test_what_could_not_be_read_again_is_not_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = StateFolder(str(tmp_path / "state"), HOUR)
    monkeypatch.setattr(carried_, "MOST_HEAD", 10)
    with pytest.raises(KwireError, match="'stateTimeout' gives them up sooner"):
        rows(states, 1, [folder / "0.pcap"])
    assert not list((tmp_path / "state").rglob("*.state"))
