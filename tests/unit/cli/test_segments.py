"""``kwire decode`` on log segments: made here with the record writer, read as a user would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transactions import PLAIN, log_of, write

from kwire import cli, records


@pytest.fixture
def topic(tmp_path: Path) -> Path:
    folder = tmp_path / "orders-3"
    folder.mkdir()
    first = records.encode([records.Record(b"k1", b"v1", timestamp=1_700_000_000_000)], base_offset=0)
    second = records.encode(
        [records.Record(b"k2", b"v2"), records.Record(None, None)], base_offset=1, compression="lz4"
    )
    (folder / "00000000000000000000.log").write_bytes(first + second)
    return folder


def test_a_segment_is_recognised_and_its_records_are_the_default_table(
    topic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["decode", str(topic / "00000000000000000000.log"), "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["topic"], row["partition"], row["offset"], row["key"]) for row in rows] == [
        ("orders", 3, 0, "azE="),
        ("orders", 3, 1, "azI="),
        ("orders", 3, 2, None),
    ]


def test_a_folder_is_read_as_its_segments_and_batches_are_a_table(
    topic: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["decode", str(topic), "--table", "batches"]) == 0
    out = capsys.readouterr().out
    assert "orders-3" in out
    assert "v2 lz4" in out


def test_columns_of_segments_are_those_that_were_asked_for(topic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for args, names in (
        (["--columns", "offset,key"], ["offset", "key"]),
        (["--deep", "--columns", "record_type,offset"], ["record_type", "offset"]),
        (["--table", "batches", "--columns", "crc,count"], ["crc", "count"]),
    ):
        assert cli.main(["decode", str(topic), *args]) == 0
        assert capsys.readouterr().out.splitlines()[0].split() == names
    assert cli.main(["decode", str(topic), "--columns", "capture"]) == 2
    assert "the table records has no column 'capture'" in capsys.readouterr().err


def test_read_committed_leaves_out_what_was_aborted_and_counts_what_is_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = log_of((7, "data", 2), (7, "abort"), (PLAIN, "data"), (7, "data", 2), (PLAIN, "data"))
    for name in ("orders-0", "orders-1"):
        write(tmp_path / name, entries, [3])
    args = ["decode", str(tmp_path), "--read-committed", "--columns", "partition,offset", "--format", "jsonl"]
    for more in ([], ["-j", "2"]):
        assert cli.main([*args, *more]) == 0
        said = capsys.readouterr()
        rows = [json.loads(line) for line in said.out.splitlines()]
        assert rows == [{"partition": one, "offset": 3} for one in (0, 1)]
        assert said.err.count("3 records are left out from offset 4 on: the transaction of producer 7") == 2


def test_read_committed_is_refused_where_rows_are_no_records(topic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-java" / "share.pcap"
    for args in (
        [str(topic), "--table", "batches"],
        [str(capture)],
        [str(capture), "--table", "records,frames", "-o", "{table}"],
    ):
        with pytest.raises(SystemExit) as stopped:
            cli.main(["decode", *args, "--read-committed"])
        assert stopped.value.code == 2
        assert "read_committed is for the tables whose rows are records" in capsys.readouterr().err


def test_segments_are_one_table_at_a_time(topic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["decode", str(topic), "--table", "records,batches", "-o", "{table}"])
    assert stopped.value.code == 2
    assert "one table at a time" in capsys.readouterr().err


def test_a_wrong_checksum_is_a_row_and_not_a_failure(topic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = topic / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[70] ^= 1  # in the value
    path.write_bytes(data)
    assert cli.main(["decode", str(path), "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["crc_ok"] for row in rows] == [False, True, True]


def test_a_wrong_index_is_said_and_is_exit_code_2(topic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (topic / "00000000000000000000.index").write_bytes(bytes.fromhex("00000001 00000007"))
    assert cli.main(["decode", str(topic), "--check-indexes", "--format", "jsonl"]) == 2
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 3
    assert "00000000000000000000.index" in captured.err


def test_captures_and_segments_are_not_decoded_together(topic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["decode", str(topic), str(Path(__file__))])
    assert stopped.value.code == 2
    assert "one after the other" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--deep"], ["--check-indexes"]])
def test_options_of_segments_are_refused_for_captures(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    golden = Path(__file__).parents[2] / "golden" / "kafka-3.9-zk-kafka-python" / "first-light.pcap"
    with pytest.raises(SystemExit) as stopped:
        cli.main(["decode", str(golden), *option])
    assert stopped.value.code == 2
    assert "for log segments" in capsys.readouterr().err


def test_a_folder_without_segments_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["decode", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
