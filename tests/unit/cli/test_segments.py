"""``kwire decode`` on log segments: made here with the record writer, read as a user would."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pyarrow as pa
import pytest
from transactions import PLAIN, log_of, write

from kwire import cli, records

GOLDEN = Path(__file__).parents[2] / "golden"


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
    for table, args in (
        ("batches", [str(topic), "--table", "batches"]),
        ("frames", [str(capture)]),
        ("frames", [str(capture), "--table", "records,frames", "-o", "{table}"]),
    ):
        with pytest.raises(SystemExit) as stopped:
            cli.main(["decode", *args, "--read-committed"])
        assert stopped.value.code == 2
        assert f"--read-committed is for the tables records, cloudevents, hono, not {table}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("__consumer_offsets", {"GroupMetadata", "OffsetCommit"}),
        ("__transaction_state", {"TransactionLog"}),
        ("__share_group_state", {"ShareSnapshot"}),
    ],
)
def test_a_segment_outside_of_its_folder_is_decoded_as_the_topic_that_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], topic: str, expected: set[str]
) -> None:
    source = GOLDEN / "segments" / "4.3-kraft" / f"{topic}-0" / "00000000000000000000.log"
    columns = ["--deep", "--columns", "record_type,topic,partition", "--format", "jsonl"]
    assert cli.main(["decode", str(source), *columns]) == 0
    plain = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    file = tmp_path / "copy.log"
    file.write_bytes(source.read_bytes())
    assert cli.main(["decode", str(file), *columns]) == 0
    before = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert not expected & {row["record_type"] for row in before}
    for more in ([], ["--table", "records"]):
        assert cli.main(["decode", str(file), "--topic", topic, "--partition", "0", *columns, *more]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert rows == plain
        assert expected <= {row["record_type"] for row in rows}


def test_a_topic_that_contradicts_the_folder_is_refused(topic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more, said in (
        (["--topic", "other"], "the segment is one of orders-3, not of other"),
        (["--topic", "orders", "--partition", "4"], "the segment is one of orders-3, not of orders-4"),
    ):
        assert cli.main(["decode", str(topic), *more]) == 2
        assert said in capsys.readouterr().err
    assert cli.main(["decode", str(topic), "--topic", "orders", "--partition", "3", "--format", "jsonl"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    capture = str(GOLDEN / "kafka-4.3-kraft-java" / "share.pcap")
    for args in ([str(topic), "--topic", "a,b"], [str(topic), "--partition", "3"], [capture, "--partition", "3"]):
        with pytest.raises(SystemExit):
            cli.main(["decode", *args])
    capsys.readouterr()


def test_a_topic_that_is_told_does_not_show_secrets_of_the_metadata_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = b"\x01\x0b\x00" + b"\x05name" + b"\x01" + b"\x05salt" + b"\x07stored" + b"\x07server" + bytes(4) + b"\x00"
    file = tmp_path / "00000000000000000007.log"
    file.write_bytes(records.encode([records.Record(None, value)], base_offset=7))
    for more in ([], ["--deep"]):
        for topic in ([], ["--topic", "orders"], ["--topic", "__consumer_offsets"], ["--topic", "__cluster_metadata"]):
            assert cli.main(["decode", str(file), *topic, *more, "--format", "jsonl"]) == 0
            (row,) = map(json.loads, capsys.readouterr().out.splitlines())
            assert base64.b64decode(row["value"]).startswith(b'{"redacted"'), (topic, more)


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_compressed_segments_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str], codec: str) -> None:
    entries = log_of((7, "data", 2), (7, "abort"), (PLAIN, "data"), (7, "data"), (7, "commit"))
    first, second = write(tmp_path / "orders-3", entries, [3])
    args = ["--columns", "topic,partition,offset", "--format", "jsonl"]
    assert cli.main(["decode", str(first), *args]) == 0
    plain = capsys.readouterr().out
    packed = first.with_name(f"{first.name}.{'gz' if codec == 'gzip' else 'zst'}")
    packed.write_bytes(pa.Codec(codec).compress(first.read_bytes(), asbytes=True))
    first.unlink()
    assert cli.main(["decode", str(packed), *args]) == 0
    assert capsys.readouterr().out == plain
    assert cli.main(["decode", "-j", "2", str(packed), str(second), *args]) == 0
    assert capsys.readouterr().out.startswith(plain)
    assert cli.main(["decode", str(packed), "--read-committed", *args]) == 0
    assert [json.loads(line)["offset"] for line in capsys.readouterr().out.splitlines()] == [3]
    # The transaction of another goes on in a later segment, compressed or not.
    more = tmp_path / "other-0"
    entries = log_of((7, "data", 2), (8, "data"), (7, "commit"), (8, "abort"))
    for name in write(more, entries, [2, 3])[1:]:
        packed_too = name.with_name(f"{name.name}{packed.suffix}")
        packed_too.write_bytes(pa.Codec(codec).compress(name.read_bytes(), asbytes=True))
        name.unlink()
    assert cli.main(["decode", str(more / f"{0:020}.log"), "--read-committed", *args]) == 0
    said = capsys.readouterr()
    assert [json.loads(line)["offset"] for line in said.out.splitlines()] == [0, 1]
    assert "left out" not in said.err
    assert cli.main(["decode", str(packed), "--check-indexes"]) == 2
    assert "decompress it" in capsys.readouterr().err


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
