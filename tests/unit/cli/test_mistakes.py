"""A mistake in the arguments is one line that says what was meant; what a filter leaves out is said."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from kwire import capture, cli, options, schema, tables
from kwire.naming import counted, joined, meant, no_such
from kwire.protocol.error_codes import ErrorCode
from kwire.report.findings import RULES, Thresholds

CAPTURE = str(Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-java" / "clients.pcap")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["decod", CAPTURE], "no choice 'decod': (there are decode, .*; )?did you mean 'decode'"),
        (["decode", CAPTURE, "--tabel", "frames"], "unrecognized arguments: --tabel frames; did you mean --table"),
        (["decode", CAPTURE, "--table", "frmes"], "did you mean 'frames'"),
        (["decode", CAPTURE, "--format", "jsn"], "did you mean 'jsonl'"),
        (["decode", CAPTURE, "--format", "parquet"], "--format parquet needs -o OUT"),
        (["decode", CAPTURE, "--api", "Prodce"], "no API 'Prodce': did you mean 'Produce'"),
        (["decode", CAPTURE, "--api", "Prodce,Fetch"], "no API 'Prodce': did you mean 'Produce'"),
        (["decode", CAPTURE, "--status", "okk"], "did you mean 'ok'"),
        (["decode", CAPTURE, "--since", "yesterday"], "no time 'yesterday'"),
        (["decode", CAPTURE, "--columns", "siz"], "no column 'siz' in the table frames: did you mean 'size'"),
        (["decode", CAPTURE, "--limits", "txt=1"], "no limit 'txt': (there are .*; )?did you mean 'text'"),
        (["decode", CAPTURE, "--payloads"], "--payloads is for the table messages, not frames"),
        (["decode", "there is none", "--deep"], "there is none: No such file or directory"),
        (["decode"], "the following arguments are required: FILE"),
        (["findings", CAPTURE, "--rule", "lagg"], "no rule 'lagg': did you mean 'lag'"),
        (["findings", CAPTURE, "--set", "comits=1"], "no threshold 'comits': did you mean 'commits'"),
        (["schema", "Ftch"], "no API or message 'Ftch': did you mean 'Fetch'"),
        (["spark", "exprt"], "did you mean 'export'"),
    ],
)
def test_a_mistake_is_one_line(args: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: Any = cli.main(args)
    except SystemExit as stopped:
        code = stopped.code
    assert code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert re.search(said, line)


@pytest.mark.parametrize(
    ("options_", "said"),
    [
        ({"table": "framse"}, "did you mean 'frames'"),
        ({"table": "messages", "api": "Prodce"}, "no API 'Prodce': did you mean 'Produce'"),
        ({"apis": ["Prodce"]}, "no API 'Prodce': did you mean 'Produce'"),
        ({"ports": 9092}, r"not 9092: the option 'ports' is numbers from 1 to 65535, such as \[9092\]"),
        ({"limits": "nope=1"}, "the option 'limits': no limit 'nope'"),
        ({"columns": ["siz"]}, "did you mean 'size'"),
        ({"status": ["malfrmed"]}, "did you mean 'malformed'"),
        ({"payloads": True}, "payloads is for the table messages, not frames"),
        ({"tables": ["messages", "frames"], "payloads": True}, "payloads is for the table messages, not frames"),
    ],
)
def test_a_mistake_in_python_says_what_was_meant(options_: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        list(capture.read(CAPTURE, **options_))


@pytest.mark.wide
def test_each_set_of_names_gives_the_nearest() -> None:
    for known in (
        schema.api_keys().values(),
        schema.names(),
        tables.names(tables.CAPTURE),
        options.OPTIONS,
        RULES,
        vars(Thresholds()),
        ErrorCode.__members__,
    ):
        for name in known:
            if len(name) > 4:
                assert meant(f"{name[:2]}{name[3:]}", known), name
                assert meant(name.swapcase(), known) == name


def test_long_lists_are_left_out_where_a_name_is_near() -> None:
    few, many = ["frames", "calls"], [f"name{k}" for k in range(100)]
    assert no_such("table", "frmes", few) == "no table 'frmes': there are frames, calls; did you mean 'frames'?"
    assert no_such("table", "x", few, "of captures") == "no table 'x' of captures: there are frames, calls"
    assert no_such("rule", "name7x", [*many[:20], "other"]) == "no rule 'name7x': did you mean 'name7'?"
    assert no_such("rule", "x", many) == "no rule 'x'"


def test_what_is_counted_is_one_or_several() -> None:
    assert [counted(k, "member") for k in (0, 1, 2)] == ["0 members", "1 member", "2 members"]
    assert counted(2, "batch", "batches") == "2 batches"
    assert [joined("abc"[:k]) for k in range(4)] == ["", "a", "a and b", "a, b and c"]


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_filter_that_matches_nothing_says_so(jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = [CAPTURE] if jobs == "1" else [CAPTURE, CAPTURE]
    assert cli.main(["decode", *files, "-j", jobs, "--client-id", "nobody"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    count = sum(batch.num_rows for batch in capture.read(CAPTURE, "frames"))
    said = f"kwire: {CAPTURE}: note: no row of frames matches the filters; {count} frames were looked at"
    assert printed.err.splitlines() == [said] * len(files)
    assert cli.main(["decode", CAPTURE, "--api", "AlterConfigs"]) == 0
    assert "note: no row of messages matches --api AlterConfigs; " in capsys.readouterr().err
    assert cli.main(["decode", CAPTURE, "--client-id", "nobody,java-java", "--format", "jsonl"]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("\n") == sum(
        batch.num_rows for batch in capture.read(CAPTURE, "frames", client_ids=["java-java"])
    )
    assert printed.err == ""


def test_client_ids_are_separated_by_commas_and_may_hold_some() -> None:
    assert options.TEXTS.read("a, b") == ("a", "b")
    assert options.TEXTS.read(r"a\,b,c\d") == ("a,b", r"c\d")
    with pytest.raises(ValueError, match="it is empty"):
        options.TEXTS.read("")
    told = options.texts({"client_ids": ["a,b", "c"], "topics": ["x", "y"]}, options.LOAD)
    assert told == {"client_ids": r"a\,b,c", "topics": "x,y"}
    assert options.values(told)["client_ids"] == ("a,b", "c")


# --- a newcomer's mistakes: each says what to do


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files that are no captures, or not whole ones."""
    monkeypatch.chdir(tmp_path)
    whole = gzip.compress(Path(CAPTURE).read_bytes())
    Path("empty").touch()
    Path("notes.txt").write_text("02:18:32 IP 127.0.0.1.43872 > 127.0.0.1.9092: Flags [P.]")
    Path("bytes").write_bytes(b"\xca\xfe\xba\xbe" * 9)
    Path("cut.pcap.gz").write_bytes(whole[:40])
    Path("later.pcap.gz").write_bytes(whole[: len(whole) // 2])
    Path("captures.zip").write_bytes(b"PK\x03\x04" + bytes(40))
    Path("folder").mkdir()
    return tmp_path


COMMANDS = {
    "decode": (),
    "report": ("-o", "page.html"),
    "audit": (),
    "findings": (),
    "lineage": (),
    "top": (),
    "export": ("--otlp", "spans.jsonl"),
    "explain": ("--frame", "1000000"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_says_what_to_do_with_a_wrong_file(
    command: str, wrong: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {
        "missing.pcap": "No such file or directory",
        "folder/of/missing.pcap": "No such file or directory: its folder is missing too",
        "folder": "a folder, not a file: commands that take several captures read those in a folder",
        "empty": "the file is empty: no packet is in it yet (tcpdump -U writes each one at once)",
        "notes.txt": "begins with the bytes 30 32 3a 31, which are text; `tcpdump -w FILE` writes one",
        "bytes": "begins with the bytes ca fe ba be; `tcpdump -w FILE` writes one",
        "captures.zip": "compressed with zip: decompress it first",
        "cut.pcap.gz": "the compressed data is truncated: copy the file again, or wait until it is written",
        "later.pcap.gz": "the compressed data is truncated: copy the file again, or wait until it is written",
    }
    for file, sentence in said.items():
        assert cli.main([command, file, *COMMANDS[command]]) == 2
        lines = capsys.readouterr().err.splitlines()
        line = next(one for one in lines if "its kernels" not in one)
        assert line.startswith(f"kwire: {file}"), line
        assert sentence in line, line


@pytest.mark.parametrize("words", [["--topic", "orders"], ["--topic=orders"]])
def test_an_option_of_another_command_is_said_to_be_there(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["report", CAPTURE, *words])
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert "unrecognized arguments: --topic" in said
    assert "; kwire decode, findings, export and broker have it (see kwire report --help)" in said


def test_only_filters_are_said_to_be_what_jq_can_do(capsys: pytest.CaptureFixture[str]) -> None:
    for flag, said in (
        ("--since=10:00", "; kwire decode and export have it, and here jq can filter --format jsonl (see"),
        ("--values=schemas/", "; kwire decode, report, findings, lineage and explain have it (see"),
    ):
        with pytest.raises(SystemExit):
            cli.main(["audit", CAPTURE, flag])
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("command", [(), *((name,) for name in (*COMMANDS, "segments", "schema", "compile", "spark"))])
def test_an_unknown_option_is_named_before_what_is_missing(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main([*command, "--hlep"] if command else ["--verison"])
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    wrong, right = ("--hlep", "--help") if command else ("--verison", "--version")
    assert f"unrecognized arguments: {wrong}; did you mean {right}?" in line
    assert line.endswith("--help)")


def test_a_mistyped_option_is_named_before_one_of_several_that_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["why", "--groups", "billing", CAPTURE])
    assert "unrecognized arguments: --groups; did you mean --group?" in capsys.readouterr().err


def test_names_that_are_too_many_to_list_are_listed_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["decode", CAPTURE, "--api", "Nothing"])
    assert "no API 'Nothing': `kwire schema` lists them" in capsys.readouterr().err
    assert cli.main(["schema", "Nothing"]) == 2
    assert "no API or message 'Nothing': `kwire schema` lists them" in capsys.readouterr().err
    assert cli.main(["schema"]) == 0


def test_an_output_in_no_folder_says_so(wrong: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", CAPTURE, "-o", "not/here.csv", "--format", "csv"]) == 2
    said = "No such file or directory: its folder is missing too"
    assert capsys.readouterr().err == f"kwire: {Path('not/here.csv')}: {said}\n"


# --- one API has one direction


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_requests_of_one_api_say_where_its_responses_are(jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    many = [CAPTURE, CAPTURE] if jobs == "2" else [CAPTURE]

    def ran(*words: str) -> tuple[set[str], str]:
        assert cli.main(["decode", *many, "-j", jobs, "--format", "jsonl", "--columns", "direction", *words]) == 0
        printed = capsys.readouterr()
        return {json.loads(line)["direction"] for line in printed.out.splitlines()}, printed.err

    rows, note = ran("--api", "Produce")
    assert rows == {"request"}
    assert note == (
        "kwire: note: these are the requests of Produce; --direction response gives its responses, "
        "--table frames both without their bodies\n"
    )
    if jobs == "2":
        return
    # What it says is so.
    assert ran("--api", "Produce", "--direction", "response") == ({"response"}, "")
    assert ran("--api", "Produce", "--direction", "request") == ({"request"}, "")
    assert ran("--api", "Produce", "--table", "frames") == ({"request", "response"}, "")
    assert ran("--api", "Produce,Fetch") == ({"request", "response"}, "")


# --- help


def helped(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The help of a command, on a terminal of 80 columns."""
    with patch.dict(os.environ, COLUMNS="80"), pytest.raises(SystemExit) as end:
        cli.main([*words, "--help"])
    assert end.value.code == 0
    return capsys.readouterr().out


def test_help_shows_how_to_begin(capsys: pytest.CaptureFixture[str]) -> None:
    text = helped(capsys)
    below = text.partition("begin with:\n")[2]
    for line in re.findall(r"^  (kwire [a-z].*?)  ", below, re.MULTILINE):
        assert line.split()[1] in cli.make_parser()[1]
    assert "tcpdump" in below
    assert "kwire COMMAND --help" in below


def test_the_help_of_each_command_says_what_it_does_and_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    waiting: list[tuple[str, argparse.ArgumentParser]] = list(cli.make_parser()[1].items())
    for name, parser in waiting:
        text = helped(capsys, *name.split())
        assert parser.description, name
        # Who has installed kwire from an index has no folder docs.
        assert "docs/" not in text, name
        # Only examples and lists of words may be wider than the terminal.
        lines = text.partition("examples:\n")[0].splitlines()
        assert max(len(line) for line in lines if "{" not in line) <= 80, name
        below = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
        waiting += [(f"{name} {one}", child) for action in below for one, child in action.choices.items()]
        assert below or f"  kwire {name}" in text.partition("examples:\n")[2], name
        # Each argument has a sentence.
        for action in parser._actions:
            assert action.help or action in below, (name, action.dest)
    assert {"spark export", "fuzz corpus"} <= {name for name, _ in waiting}


# --- packages that are not there


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        *(
            ((name, CAPTURE), "numpy", "capture")
            for name in ("decode", "report", "audit", "findings", "lineage", "top")
        ),
        (("export", CAPTURE, "--otlp", "spans.jsonl"), "numpy", "capture"),
        (("export", CAPTURE, "--otlp", "spans.jsonl"), "opentelemetry", "events"),
        (("explain", CAPTURE, "--frame", "1"), "numpy", "capture"),
        (("segments", "."), "numpy", "capture"),
        (("compile",), "numpy", "capture"),
        (("spark", "export", CAPTURE, "out"), "pyspark", "spark"),
        (("decode", CAPTURE, "--keylog", "keys"), "cryptography", "tls"),
        (("decode", CAPTURE, "--table", "client_metrics"), "opentelemetry", "events"),
    ],
)
def test_an_extra_that_is_missing_is_named(words: tuple[str, ...], package: str, extra: str, tmp_path: Path) -> None:
    (tmp_path / "keys").touch()
    code = f"import sys; sys.modules[{package!r}] = None; from kwire import cli; sys.exit(cli.main({list(words)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]
    assert re.fullmatch(r"kwire: (reading|writing|decrypting|kwire)[\w .]* needs an optional part of kwire: .*", line)
    assert line.endswith(f": pip install 'kwire[{extra}]'")
