"""``kwire decode``: what it writes, and one clear line and exit code 2 for whatever cannot be read."""

from __future__ import annotations

import base64
import errno
import gzip
import io
import json
import lzma
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tunnels
from terminal import on_terminal

import kwire.capture
from kwire import cli, tables
from kwire.tables.terminal import texts_of_times

SCHEMAS = {name: tables.table(name).schema for name in ("frames", "messages", "records")}
CAPTURE = Path(__file__).parents[2] / "golden" / "kafka-3.9-zk-kafka-python" / "first-light.pcap"


def expected(table: str) -> pa.Table:
    """What the capture engine reads."""
    with CAPTURE.open("rb") as file:
        return pa.Table.from_batches(kwire.capture.read(file, table, name=str(CAPTURE)), SCHEMAS[table])


@pytest.mark.parametrize("table", SCHEMAS)
def test_jsonl_has_every_column_of_every_row(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", str(CAPTURE), "--table", table, "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    want = expected(table)
    assert len(rows) == want.num_rows > 100
    for row, one in zip(rows, want.to_pylist(), strict=True):
        assert sorted(row) == sorted(want.schema.names)
        for name, value in one.items():
            if isinstance(value, bytes):
                assert base64.b64decode(row[name]) == value
            elif name == "body" and value is not None:
                assert row[name] == json.loads(value)
            elif pa.types.is_timestamp(want.schema.field(name).type) and value is not None:
                assert row[name] == value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            elif name != "headers":
                assert row[name] == value


@pytest.mark.parametrize("table", SCHEMAS)
def test_parquet_holds_the_table(table: str, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    out.write_text("what was there before")
    assert cli.main(["decode", str(CAPTURE), "--table", table, "--format", "parquet", "-o", str(out)]) == 0
    assert pq.read_table(out).equals(expected(table))
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("table", SCHEMAS)
def test_table_has_a_line_for_every_row(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", str(CAPTURE), "--table", table]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == expected(table).num_rows + 2


def test_several_files_compressed_ones_and_standard_input_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compressed = tmp_path / "first.pcap.gz"
    compressed.write_bytes(gzip.compress(CAPTURE.read_bytes()))
    zstd = tmp_path / "first.pcap.zst"
    with pa.CompressedOutputStream(str(zstd), "zstd") as file:
        file.write(CAPTURE.read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CAPTURE.read_bytes())))
    assert cli.main(["decode", str(CAPTURE), str(compressed), str(zstd), "-", "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    names = [str(CAPTURE), str(compressed), str(zstd), "standard input"]
    assert [row["capture"] for row in rows] == [name for name in names for _ in range(208)]


def with_arrow(data: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as file:
        file.write(data)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("codec", [None, "gzip", "bz2", "zstd", "lz4"])
@pytest.mark.parametrize("name", ["capture", "capture.pcap", "capture.gz", "capture.zst"])
def test_what_is_compressed_is_told_by_its_first_bytes_and_not_by_its_name(
    codec: str | None, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = CAPTURE.read_bytes()
    data = data if codec is None else with_arrow(data, codec)
    (tmp_path / name).write_bytes(data)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))  # type: ignore[arg-type]
    assert cli.main(["decode", str(tmp_path / name), "-", "--format", "jsonl"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 * 208


class Pipe(io.RawIOBase):
    """Gives a byte at a time."""

    def __init__(self, data: bytes) -> None:
        self._rest = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._rest.readinto(memoryview(buffer)[:1])


@pytest.mark.parametrize("codec", [None, "gzip", "zstd"])
def test_standard_input_that_comes_byte_by_byte_is_decompressed(
    codec: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = CAPTURE.read_bytes()
    data = data if codec is None else with_arrow(data, codec)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Pipe(data))))
    assert cli.main(["decode", "-", "--format", "jsonl"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 208


@pytest.mark.parametrize(
    ("args", "rows"),
    [
        (["--port", "9092"], 208),
        (["--port", "9093", "9092"], 208),
        (["--port", "9093,9092"], 208),
        (["--port", "9093", "--port", "9092"], 208),
    ],
)
def test_ports_may_be_given_in_any_way(args: list[str], rows: int, capsys: pytest.CaptureFixture[str]) -> None:
    for line in (["decode", str(CAPTURE), *args], ["decode", *args, str(CAPTURE)]):
        assert cli.main([*line, "--format", "jsonl"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == rows


def test_a_port_of_vxlan_may_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packets = tunnels.taken_from(CAPTURE.read_bytes())
    around = [
        (time, tunnels.ethernet(tunnels.ipv4(17, tunnels.udp(12345, tunnels.vxlan(one))))) for time, one in packets
    ]
    path = tmp_path / "mirror.pcap"
    path.write_bytes(tunnels.written(around))
    for args in (["--vxlan-port", "12345"], ["--vxlan-port", "1,12345"], ["--vxlan-port", "1", "12345"]):
        assert cli.main(["decode", *args, str(path), "--format", "jsonl"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 208
        assert cli.main(["decode", str(path), *args, "--port", "9092", "--table", "client_metrics"]) == 0
        capsys.readouterr()
    assert cli.main(["decode", str(path)]) == 2
    assert f"(other packets: {len(packets)} UDP)" in capsys.readouterr().err


# --- Columns and several tables ---------------------------------------------------------------------------------


def test_columns_are_those_that_were_asked_for_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["decode", str(CAPTURE), "--table", "messages", "--columns", "size,body", "--columns", "timestamp"]
    want = expected("messages").select(["size", "body", "timestamp"])

    out = tmp_path / "out.parquet"
    assert cli.main([*args, "--format", "parquet", "-o", str(out)]) == 0
    assert pq.read_table(out).equals(want)

    assert cli.main([*args, "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["body"] for row in rows] == [json.loads(text) for text in want.column("body").to_pylist()]
    assert all(set(row) == {"size", "body", "timestamp"} for row in rows)

    assert cli.main(args) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["size", "body", "timestamp"]
    assert len(lines) == want.num_rows + 2
    assert lines[2].endswith(want.column("timestamp")[0].as_py().strftime("%Y-%m-%d %H:%M:%S.%f"))


def test_a_body_alone_is_an_object_of_one_member(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", str(CAPTURE), "--table", "messages", "--columns", "body", "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(list(row) == ["body"] for row in rows)
    assert len(rows) == 208


@pytest.mark.parametrize("column", tables.table("records").schema.names)
def test_every_column_can_be_shown_alone(column: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", str(CAPTURE), "--table", "records", "--columns", column]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [column]
    assert len(lines) == expected("records").num_rows + 2


@pytest.mark.parametrize("tables_", [["frames,records"], ["frames", "--table", "records"]])
def test_several_tables_are_made_in_one_pass(
    tables_: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CAPTURE.read_bytes())))
    out = str(tmp_path / "{table}.parquet")
    assert cli.main(["decode", "-", "--table", *tables_, "--format", "parquet", "-o", out]) == 0
    for name in ("frames", "records"):
        found = pq.read_table(tmp_path / f"{name}.parquet")
        assert found.drop_columns(["capture"]).equals(expected(name).drop_columns(["capture"]))
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--columns", "packet"], "kwire: no column 'packet' in the table frames: there are capture, connection"),
        (["--columns", "size,"], "kwire: no column '' in the table frames"),
        (["--columns", "size, size"], "kwire: column 'size' of the table frames was chosen twice"),
    ],
)
def test_a_column_that_there_is_not_is_one_line_and_exit_code_2(
    args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["decode", str(CAPTURE), *args]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(said)
    assert len(captured.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--table", "packets"], "argument --table: no choice 'packets': there are frames, "),
        (["--table", "frames,records"], "several tables need -o OUT with {table} in its name"),
        (["--table", "frames,records", "-o", "x.jsonl"], "several tables need -o OUT with {table} in its name"),
        (["--table", "frames,records", "-o", "{table}", "--columns", "frame"], "--columns is for one table"),
        (["--check-indexes"], "--deep and --check-indexes are for log segments"),
    ],
)
def test_a_mistake_in_the_choice_of_tables_is_said(
    args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["decode", str(CAPTURE), *args])
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


# --- Bad input --------------------------------------------------------------------------------------------------


def web_traffic() -> bytes:
    """A capture of one TCP connection that has nothing to do with Kafka."""
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    seqs = {True: 1000, False: 5000}
    said = [(True, b"GET / HTTP/1.1\r\nHost: example\r\n\r\n"), (False, b"HTTP/1.1 200 OK\r\n\r\nHello, world")] * 3
    for second, (asks, payload) in enumerate(said):
        ports = (40000, 80) if asks else (80, 40000)
        tcp = struct.pack(">HHIIBBHHH", *ports, seqs[asks], seqs[not asks], 5 << 4, 0x18, 1024, 0, 0)
        seqs[asks] += len(payload)
        ends = (bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
        source, target = ends if asks else ends[::-1]
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(payload), 0, 0, 64, 6, 0, source, target)
        frame = bytes(12) + b"\x08\x00" + ip + tcp + payload
        out += struct.pack("<IIII", second, 0, len(frame), len(frame)) + frame
    return out


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """A folder of captures that are none, or not whole."""
    whole = CAPTURE.read_bytes()
    (tmp_path / "truncated.pcap").write_bytes(whole[: len(whole) // 2 + 3])
    (tmp_path / "web.pcap").write_bytes(web_traffic())
    (tmp_path / "notes.txt").write_text("These are not packets.\n" * 20)
    (tmp_path / "empty.pcap").touch()
    (tmp_path / "truncated.pcap.gz").write_bytes(gzip.compress(whole)[:-5000])
    (tmp_path / "wrong.pcap.gz").write_bytes(b"\x1f\x8b\x08" + whole)
    (tmp_path / "text.pcap").write_bytes(gzip.compress(b"These are not packets."))
    (tmp_path / "capture.pcap.xz").write_bytes(lzma.compress(whole))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "said", "table"),
    [
        *(("truncated.pcap", "truncated", table) for table in SCHEMAS),
        ("web.pcap", "no Kafka traffic", "frames"),
        ("notes.txt", "not a capture", "frames"),
        ("empty.pcap", "empty", "frames"),
        ("missing.pcap", "No such file or directory", "frames"),
        ("truncated.pcap.gz", "", "frames"),
        ("wrong.pcap.gz", "", "frames"),
        ("text.pcap", "not a capture", "frames"),
        ("capture.pcap.xz", "compressed with xz: decompress it first", "frames"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    bad: Path, name: str, said: str, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = bad / name
    assert cli.main(["decode", str(path), "--table", table]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kwire: {path}")
    assert said in line


def test_what_stands_before_the_damage_and_the_other_files_are_written(
    bad: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [bad / "truncated.pcap", bad / "notes.txt", CAPTURE]
    assert cli.main(["decode", *map(str, files), "--format", "jsonl"]) == 2
    captured = capsys.readouterr()
    names = [json.loads(line)["capture"] for line in captured.out.splitlines()]
    assert names.count(str(CAPTURE)) == 208
    assert 50 < names.count(str(bad / "truncated.pcap")) < 208
    assert len(captured.err.splitlines()) == 2


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["decode"],
        ["decode", "x.pcap", "--table", "packets"],
        ["decode", "x.pcap", "--port", "70000"],
        ["decode", "x.pcap", "--format", "parquet"],
        ["nothing"],
    ],
)
def test_a_mistake_in_the_arguments_is_exit_code_2(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(args)
    assert caught.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("kwire")


def test_an_output_that_cannot_be_written_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for format_ in ("parquet", "jsonl", "table"):
        out = tmp_path / "no" / "out"
        assert cli.main(["decode", str(CAPTURE), "--format", format_, "-o", str(out)]) == 2
        assert capsys.readouterr().err == f"kwire: {out}: No such file or directory: its folder is missing too\n"


def test_an_existing_file_is_kept_when_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("before")

    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kwire.tables.reading.read", interrupted)
    assert cli.main(["decode", str(CAPTURE), "--format", "jsonl", "-o", str(out)]) == 128 + signal.SIGINT
    assert out.read_text() == "before"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("format_", ["table", "jsonl", "parquet"])
def test_a_link_planted_beside_the_output_is_not_followed(tmp_path: Path, format_: str) -> None:
    treasure, out = tmp_path / "treasure", tmp_path / "out"
    treasure.write_text("kept")
    (tmp_path / f".out.{os.getpid()}.partial").symlink_to(treasure)
    assert cli.main(["decode", str(CAPTURE), "--format", format_, "-o", str(out)]) == 0
    assert treasure.read_text() == "kept"
    assert out.stat().st_size
    assert not out.is_symlink()
    assert len(list(tmp_path.iterdir())) == 3


def test_a_link_whose_name_was_guessed_is_an_error_and_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    treasure, out, link = tmp_path / "treasure", tmp_path / "out", tmp_path / ".guessed.partial"
    monkeypatch.setattr("secrets.token_hex", lambda size: "guessed")
    for content in ("kept", None):  # a link to a file, and one to nothing, which would be made
        treasure.write_text(content) if content else treasure.unlink()
        link.unlink(missing_ok=True)
        link.symlink_to(treasure)
        assert cli.main(["decode", str(CAPTURE), "--format", "jsonl", "-o", str(out)]) == 2
        assert capsys.readouterr().err == f"kwire: {out}: File exists\n"
        assert treasure.exists() == bool(content)
        assert link.is_symlink()
        assert not out.exists()


def test_a_pipe_with_the_name_of_an_output_is_not_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    planted = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert cli.main(["decode", str(CAPTURE), "--format", "jsonl", "-o", str(pipe)]) == 0
    assert os.read(planted, 1) == b""
    os.close(planted)
    assert pipe.is_file()
    assert len(pipe.read_text().splitlines()) == 208
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.wide
@pytest.mark.parametrize("form", ["jsonl", "arrow"])
def test_a_pipe_that_the_shell_has_made_is_written_to(form: str) -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as pipe:
        with subprocess.Popen(
            [sys.executable, "-m", "kwire.cli", "decode", str(CAPTURE), "--format", form, "-o", f"/dev/fd/{write}"],
            pass_fds=[write],
        ) as process:
            os.close(write)
            data = pipe.read()
        assert process.returncode == 0
    assert data.count(b"\n") == 208 if form == "jsonl" else data.startswith(b"ARROW1")


def test_an_output_that_cannot_take_its_name_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(self: Path, target: Path) -> None:
        raise OSError(errno.EACCES, "Permission denied", str(self), None, str(target))

    monkeypatch.setattr(Path, "replace", refused)
    out = tmp_path / "out.jsonl"
    assert cli.main(["decode", str(CAPTURE), "--format", "jsonl", "-o", str(out)]) == 2
    assert capsys.readouterr().err == f"kwire: {out}: Permission denied\n"
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_ends_the_command_silently() -> None:
    command = [sys.executable, "-m", "kwire.cli", "decode", *[str(CAPTURE)] * 20, "--format", "jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 128 + signal.SIGPIPE


def test_a_terminal_gets_a_progress_bar_on_standard_error(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "kwire.cli", "decode", str(CAPTURE), "--format", "jsonl", "-o", str(out)]
    code, seen = on_terminal(command, {"TERM": "xterm", "COLUMNS": "100"})
    assert code == 0
    assert b"first-light.pcap" in seen
    assert b"kB" in seen
    assert len(out.read_text().splitlines()) == 208


def test_times_outside_of_the_calendar_are_seconds() -> None:
    times = [0, 1_763_691_084_123_456, None, -1, 2**62, -(2**63)]
    assert texts_of_times(pa.array(times, pa.timestamp("us", tz="UTC"))) == [
        "1970-01-01T00:00:00.000000Z",
        "2025-11-21T02:11:24.123456Z",
        None,
        "1969-12-31T23:59:59.999999Z",
        "@4611686018427.387904",
        "@-9223372036855.224192",
    ]


def parts_of(data: bytes) -> list[bytes]:
    """The header of a pcap file with its first packet, and each packet after it."""
    at, ends = 24, []
    while at < len(data):
        at += 16 + struct.unpack_from("<I", data, at + 8)[0]
        ends.append(at)
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def with_a_frame_soon(program: subprocess.Popen[bytes], packets: list[bytes], write: Callable[[bytes], None]) -> bytes:
    """Writes packets until the program has printed something. The rest is not written."""
    assert program.stdout is not None
    while packets:
        write(packets.pop(0))
        if select.select([program.stdout], [], [], 0.5)[0]:
            return program.stdout.readline()
    raise AssertionError("nothing was printed before the end")


@pytest.mark.wide
@pytest.mark.parametrize("format_", ["table", "jsonl"])
def test_a_pipe_is_decoded_while_it_is_written(format_: str) -> None:
    command = [sys.executable, "-m", "kwire.cli", "decode", "-", "--format", format_]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        packets = parts_of(CAPTURE.read_bytes())[:100]
        # The start of the program may take longer than one packet is waited for: so there are enough of them.
        line = with_a_frame_soon(program, packets, lambda part: os.write(program.stdin.fileno(), part))  # type: ignore[union-attr]
        assert b"time" in line or json.loads(line)["capture"] == "standard input"
        assert packets
        program.stdin.close()
        assert b"ApiVersions" in line + program.stdout.read()
        assert program.wait(timeout=60) == 0


def test_a_file_is_followed_while_it_grows(tmp_path: Path) -> None:
    growing = tmp_path / "growing.pcap"
    packets = parts_of(CAPTURE.read_bytes())[:100]
    growing.write_bytes(packets.pop(0))
    command = [sys.executable, "-m", "kwire.cli", "decode", "--follow", str(growing), "--format", "jsonl"]
    with growing.open("ab", buffering=0) as file, subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        line = with_a_frame_soon(program, packets, file.write)
        assert json.loads(line)["api_name"] == "ApiVersions"
        assert packets
        program.send_signal(signal.SIGINT)
        assert program.wait(timeout=60) == 0


def wait_for_rows(folder: Path) -> None:
    """Until rows are in the temporary file there, into which they come as they are decoded."""
    for _ in range(600):
        if any(one.stat().st_size for one in folder.glob("*.partial")):
            return
        time.sleep(0.1)
    raise AssertionError("no rows")


@pytest.mark.wide
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_what_was_followed_is_written_whole_when_that_is_ended(tmp_path: Path, how: signal.Signals) -> None:
    growing, out = tmp_path / "growing.pcap", tmp_path / "frames.jsonl"
    packets = parts_of(CAPTURE.read_bytes())[:100]
    growing.write_bytes(b"".join(packets))
    command = [sys.executable, "-m", "kwire.cli", "decode", "--follow", str(growing), "--format", "jsonl", "-o", out]
    with subprocess.Popen([*map(str, command)]) as program:
        wait_for_rows(tmp_path)
        assert program.poll() is None
        program.send_signal(how)
        assert program.wait(timeout=60) == 0
    with io.BytesIO(b"".join(packets)) as whole:
        assert len(out.read_text().splitlines()) == sum(one.num_rows for one in kwire.capture.read(whole)) > 0


def with_ctrl_c() -> None:
    """Whoever runs these tests in the background may ignore it, and so would what they start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.wide
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_ended_leaves_no_unfinished_file(tmp_path: Path, how: signal.Signals) -> None:
    out = tmp_path / "frames.jsonl"
    command = [sys.executable, "-m", "kwire.cli", "decode", "-", "--format", "jsonl", "-o", str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=with_ctrl_c) as program:
        assert program.stdin is not None
        assert program.stderr is not None
        os.write(program.stdin.fileno(), b"".join(parts_of(CAPTURE.read_bytes())[:100]))
        wait_for_rows(tmp_path)
        assert program.poll() is None
        program.send_signal(how)
        assert program.wait(timeout=60) == 128 + how
        assert program.stderr.read() == b""
    assert list(tmp_path.iterdir()) == []


def test_messages_of_one_api_have_bodies_as_structs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["decode", str(CAPTURE), "--api", "Produce", "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows
    assert {(row["api_name"], row["direction"]) for row in rows} == {("Produce", "request")}
    assert rows[0]["body"]["topic_data"][0]["partition_data"][0]["records"]["bytes"] > 0
    out = tmp_path / "produced.parquet"
    assert cli.main(["decode", str(CAPTURE), "--api", "Produce", "--format", "parquet", "-o", str(out)]) == 0
    fields = pq.read_schema(out).field("body").type
    assert [one.name for one in fields] == kwire.capture.schema_of("Produce", "request").names
    with pytest.raises(SystemExit):
        cli.main(["decode", str(CAPTURE), "--api", "Nope"])
    assert "no API 'Nope'" in capsys.readouterr().err
