"""What the command writes of hostile input: nothing that a terminal would obey, and JSON lines that are always JSON."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from packets import Connection, pcap
from terminal import on_terminal

import kwire
from kwire import cli, messages
from kwire.capture import read
from kwire.cli.output import JsonLinesOutput
from kwire.records import Record, encode

EVIL = "a\x1b[31m\x9b2J\x07\x7f\u202eb\u2066\u061c\u05d0é世"
"""A sequence in seven bits and one in eight, a bell, DEL, three controls of direction, a Hebrew letter; others."""
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\u05d0]")
SHOWN = "a\\x1b[31m\\x9b2J\\x07\\x7f\\u202eb\\u2066\\u061c\\u05d0é世"

DEFINITION = {
    "apiKey": 0,
    "type": "request",
    "name": "ProduceRequest",
    "validVersions": "0-13",
    "flexibleVersions": "9+",
    "fields": [{"name": "Acks", "type": "int16", "versions": "0+", "about": EVIL}],
}


def frame(client_id: str = EVIL) -> bytes:
    body = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name=EVIL)])
    return kwire.encode_request(body, api_version=1, correlation_id=1, client_id=client_id)


def capture(path: Path) -> str:
    path.write_bytes(pcap(Connection().open().send(frame()).send(frame()).packets))
    return str(path)


def terminal(*args: str) -> str:
    """All that the command gives to a terminal, on both of its streams; without rich's own colours."""
    env = {"TERM": "dumb", "COLUMNS": "500", "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    _, seen = on_terminal([sys.executable, "-m", "kwire.cli", *args], env)
    return seen.decode().replace("\r\n", "\n")


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("form", ["table", "jsonl"])
@pytest.mark.parametrize("table", ["frames", "messages"])
def test_a_terminal_gets_no_control_characters_of_a_capture(tmp_path: Path, table: str, form: str) -> None:
    seen = terminal("decode", capture(tmp_path / f"{EVIL}.pcap"), "--table", table, "--format", form, "--port", "9092")
    assert "é世" in seen
    # In JSON a Hebrew letter is a character as any: people read tables.
    assert set(OBEYED.findall(seen)) <= ({"\u05d0"} if form == "jsonl" else set())


@pytest.mark.parametrize("form", ["table", "jsonl", "csv", "arrow", "parquet"])
def test_names_that_are_not_utf_8_are_those_of_files(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "t\udcff-0"
    folder.mkdir()
    written = encode([Record(b"k", b"v")])
    (folder / f"{0:020}.log").write_bytes(written)
    odd = capture(tmp_path / "od\udcffd.pcap")
    for source in ([odd, "--port", "9092"], [str(folder)], [str(folder / f"{0:020}.log")]):
        out = tmp_path / "out"
        assert cli.main(["decode", *source, "--format", form, "-o", str(out)]) == 0
        assert out.stat().st_size > 0
        out.unlink()
    (batch, *_) = read(io.BytesIO(Path(odd).read_bytes()), "frames", ports=[9092], name=odd)
    assert batch.column("capture")[0].as_py() == odd.replace("\udcff", "\ufffd")
    for command in ("audit", "findings", "lineage", "top"):
        assert cli.main([command, odd, "--port", "9092"]) in (0, 1)


def test_explain_gives_a_terminal_no_control_characters() -> None:
    seen = terminal("explain", frame().hex())
    assert SHOWN in seen
    assert not OBEYED.search(seen)


@pytest.mark.wide
def test_notes_and_errors_give_a_terminal_no_control_characters_of_file_names(tmp_path: Path) -> None:
    cut = Path(capture(tmp_path / f"{EVIL}.pcap"))
    cut.write_bytes(cut.read_bytes()[:-3])
    bad = tmp_path / f"bad{EVIL}"
    bad.write_bytes(b"no capture")
    for args in (
        ("decode", str(cut)),
        ("decode", str(bad)),
        ("decode", str(bad), "--format", EVIL),
        ("decode", str(tmp_path / EVIL / "none")),
        ("explain", str(cut)),
        ("explain", str(bad), "--frame", EVIL),
        ("schema", EVIL),
        ("schema", "import", str(bad)),
    ):
        seen = terminal(*args)
        assert SHOWN in seen, args
        assert not OBEYED.search(seen), args


def test_imported_definitions_give_a_terminal_no_control_characters(tmp_path: Path) -> None:
    path = tmp_path / "ProduceRequest.json"
    path.write_text(json.dumps(DEFINITION | {"name": f"Produce{EVIL}Request"}))
    for command in ("import", "compare"):
        seen = terminal("schema", command, str(path))
        assert SHOWN in seen
        assert not OBEYED.search(seen)


def test_texts_of_schemas_give_a_terminal_no_control_characters(tmp_path: Path) -> None:
    text = f"# {EVIL}\n# v0  {EVIL}\ndata Invented versions 0 flexible 0+\n  number   int32\n"
    (tmp_path / "invented.kwire").write_text(text, encoding="utf-8")
    for options in ((), ("--source",), ("--json",)):
        seen = terminal("schema", "Invented", "--schemas", str(tmp_path), *options)
        assert "invented.kwire:1: U+001B" in seen, "a schema has no such characters at all"
        assert not OBEYED.search(seen)


@pytest.mark.parametrize("column", ["text", "body"])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_json_lines_are_lines_and_json_whatever_is_in_them(column: str, encoding: str) -> None:
    values = ["".join(map(chr, range(at, at + 256))) for at in (0, 0x600, 0x2000)] + [
        EVIL,
        "\U0001f600é世",
        "plain",
        "",
    ]
    texts = [json.dumps(one, ensure_ascii=False) for one in values] if column == "body" else values
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding, errors="backslashreplace", newline="")
    output = JsonLinesOutput(file)
    output.write(pa.record_batch({"n": list(range(len(values))), column: texts}))
    output.flush()
    written = raw.getvalue().decode(encoding)
    assert [json.loads(line)[column] for line in written.splitlines()] == values
    assert set(OBEYED.findall(written)) <= {"\u05d0"}
    assert ("世" in written) == (encoding == "utf-8")


def test_an_error_is_shown_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    name = "x" * 150
    assert cli.main(["decode", f"/{name}/{name}"]) == 2
    assert f"/{name}/{name}: No such file" in capsys.readouterr().err
