"""What the comparison of two dumps finds: everything, and with ``--renumbered`` everything but numbers of frames."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from dump_tables import load, main

CAPTURE = "kafka-4.3-kraft-events/events.pcap"
SEGMENT = "segments/3.9-kraft-indexes/index-transactions-0"
Change = Callable[[pa.Table], pa.Table]


@pytest.fixture(scope="module")
def dumped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dumped")
    for only in (CAPTURE, SEGMENT):
        assert main([str(folder), "--only", only]) == 0
    return folder


@pytest.fixture
def copied(dumped: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(dumped, tmp_path / "copied"))


def change(path: Path, to: Change) -> None:
    table = to(load(path))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def with_column(table: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), values)


def same(one: Path, other: Path, *options: str) -> bool:
    return main(["--compare", str(one), str(other), *options]) == 0


def test_a_dump_is_the_same_as_itself_and_as_one_of_other_windows(dumped: Path, tmp_path: Path) -> None:
    assert same(dumped, dumped)
    assert same(dumped, dumped, "--renumbered")
    for only in (CAPTURE, SEGMENT):
        assert main([str(tmp_path), "--only", only, "--window", "100000"]) == 0
    assert same(dumped, tmp_path)


def test_every_kind_of_table_has_rows(dumped: Path) -> None:
    names = {path.stem for path in dumped.rglob("*.arrow") if load(path).num_rows}
    of_captures = {"frames", "messages", "records", "cloudevents", "hono"}
    assert names == of_captures | {"records", "deep", "batches", "index", "time_index"}


def test_other_numbers_of_frames_differ_unless_they_may(
    dumped: Path, copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count = load(dumped / CAPTURE / "frames.arrow").num_rows
    numbers = random.Random(0).sample(range(count), count)
    for path in (copied / CAPTURE).iterdir():
        if "frame" in load(path).schema.names:
            change(
                path,
                lambda table: with_column(
                    table, "frame", pa.array([numbers[one] for one in table.column("frame").to_pylist()], pa.int64())
                ).sort_by("frame"),
            )
    assert not same(dumped, copied)
    assert "messages.arrow: row 0 differs" in capsys.readouterr().out
    assert same(dumped, copied, "--renumbered")


@pytest.mark.parametrize(
    ("name", "to", "said"),
    [
        (
            f"{CAPTURE}/messages.arrow",
            lambda table: with_column(table, "body", pa.array([None] * table.num_rows, pa.string())),
            "row 0 differs",
        ),
        (f"{CAPTURE}/records.arrow", lambda table: table.slice(0, table.num_rows - 1), "rows, the same up to there"),
        (f"{CAPTURE}/frames.arrow", lambda table: table.drop_columns(["error"]), "the schemas differ"),
        (f"{CAPTURE}/frames.arrow", lambda table: table.slice(1), "frame 0 of connection 0 is not in frames"),
        (
            f"{CAPTURE}/records.arrow",
            lambda table: table.replace_schema_metadata({"error": '"cut"', "notes": "[]"}),
            "errors or notes differ",
        ),
        (
            f"{SEGMENT}/00000000000000000024.log/time_index.arrow",
            lambda table: with_column(table, "offset", pa.array(range(table.num_rows), pa.int64())),
            "row 0 differs",
        ),
    ],
)
def test_any_other_change_is_found_and_shown(
    name: str, to: Change, said: str, dumped: Path, copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(copied / name, to)
    assert not same(dumped, copied)
    assert f"{name}: " in capsys.readouterr().out
    assert not same(dumped, copied, "--renumbered")
    assert said in capsys.readouterr().out


def test_a_table_that_is_missing_is_found(dumped: Path, copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copied / CAPTURE / "hono.arrow").unlink()
    assert not same(dumped, copied)
    assert not same(copied, dumped)
    assert capsys.readouterr().out.count(f"hono.arrow: only in {dumped}") == 2
