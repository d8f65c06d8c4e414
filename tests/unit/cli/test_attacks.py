"""What an attacker with the docs has found of the command line, with the smallest input of each."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from counted_work import lines
from made_captures import exchange
from packets import pcap

import kwire
from kwire import cli, messages
from kwire.protocol.describe import to_json
from kwire.records import Record, encode

SECRET = b"Wq7zHUNTER2pwXk9"
SCRAM = b"\1\x0b\0\6alice\1" + (b"\x11" + SECRET) * 3 + b"\0\0\x10\0\0"
"""A UserScramCredential record of ``__cluster_metadata``."""
LOG = "00000000000000000000.log"
METADATA_ID = "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n"


def run(*args: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kwire.cli", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,  # type: ignore[call-overload]
    )


def code_of(*args: str) -> object:
    """What the command ends with, in this process: what would be a traceback is raised."""
    try:
        return cli.main(list(args))
    except SystemExit as ended:
        return ended.code


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("__cluster_metadata-0", LOG),
        ("__cluster_metadata-0", "00000000000000000000-0000000000.checkpoint.part"),
        ("__cluster_metadata-0", "00000000000000000000.log.swap"),
        ("__cluster_metadata-0", "bootstrap.checkpoint"),
        ("__cluster_metadata-0.bak", LOG),
        ("saved", LOG),
        ("other-0", LOG),
    ],
)
@pytest.mark.parametrize("deep", [False, True])
def test_secrets_of_the_metadata_are_hidden_wherever_its_segments_are(
    folder: str, name: str, deep: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / folder).mkdir()
    path = tmp_path / folder / name
    path.write_bytes(encode([Record(value=SCRAM), Record(value=b"\1\x0b\0 no such record")]))
    if folder in ("saved", "other-0"):
        (tmp_path / folder / "partition.metadata").write_text(METADATA_ID)
    more = ["--deep"] if deep else []
    assert cli.main(["decode", str(path), *more]) == 0
    shown = capsys.readouterr().out
    assert "HUNTER" not in shown
    assert deep or '{"redacted": ' in shown
    # What only begins like one is shown where it is not known to be of that topic.
    known = name == LOG and folder == "__cluster_metadata-0"
    assert deep or ("no such record" in shown) != known
    assert cli.main(["decode", str(path), "--secrets", "show"]) == 0
    assert "HUNTER" in capsys.readouterr().out


def test_the_bit_of_control_records_shows_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray(encode([Record(value=SCRAM)]))
    data[22] |= 0x20
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "__cluster_metadata-0" / LOG).write_bytes(data)
    assert cli.main(["decode", str(tmp_path / "__cluster_metadata-0")]) == 0
    shown = capsys.readouterr().out
    assert "corrupt" in shown
    assert "HUNTER" not in shown


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("planted", ["partition.metadata", "00000000000000000000.index"])
def test_a_pipe_beside_a_segment_is_not_waited_for(planted: str, tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(encode([Record(value=b"v")]))
    os.mkfifo(tmp_path / planted)
    assert "v" in run("decode", tmp_path, "--check-indexes").stdout


@pytest.mark.wide
def test_what_beside_a_segment_never_ends_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(encode([Record(value=b"v")]))
    (tmp_path / "partition.metadata").symlink_to("/dev/zero")
    assert run("decode", tmp_path).returncode == 0
    (tmp_path / "00000000000000000000.index").touch()
    os.truncate(tmp_path / "00000000000000000000.index", 3 << 30)
    found = run("decode", tmp_path, "--check-indexes")
    assert (found.returncode, "Traceback" in found.stderr) == (2, False)
    assert "more than" in found.stderr


def test_a_pipe_among_schemas_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.kwire")
    with pytest.raises(kwire.SchemaError, match="is not a file"):
        kwire.schema.load_folder(tmp_path)


def test_synonyms_of_a_long_name_cost_what_they_are_long() -> None:
    response = messages.DescribeConfigsResponse
    synonyms = [response.DescribeConfigsSynonym(name="", value="x") for _ in range(1000)]
    entry = response.DescribeConfigsResourceResult(name="." * 30_000, value="x", synonyms=synonyms)
    result = response.DescribeConfigsResult(resource_type=4, resource_name="", configs=[entry])
    made = response(results=[result])
    assert '"redacted"' in to_json(made, 4)
    assert lines(lambda: to_json(made, 4), 400_000) > 1000


@pytest.mark.parametrize(
    "args",
    [
        ["decode", "x", "--port", "9" * 5000],
        ["decode", "x", "--vxlan-port", "9" * 5000],
        ["decode", "x", "--port", "٣"],
        ["schema", "9" * 5000],
        ["explain", "0012000000000001ffff", "--response", "9" * 5000, "--version", "1"],
        ["explain", "0012000000000001ffff", "--message", ""],
        ["why", "x", "--record", "a:0:" + "9" * 5000],
        ["why", "x", "--record", f"a:0:{1 << 63}"],
        ["why", "x", "--record", f"a:{1 << 31}:0"],
        ["fuzz", "run", "--cmd", ""],
        ["fuzz", "run", "--cmd", "'"],
        ["fuzz", "run", "--lines", "--cmd", "''"],
        ["fuzz", "server", "--cmd", ""],
        ["fuzz", "tcp", "127.0.0.1:9", "--cmd", ""],
    ],
)
def test_what_is_no_number_or_name_is_one_line(args: list[str]) -> None:
    assert code_of(*args) == 2


def test_two_hyphens_are_the_value_of_an_option_where_an_equals_sign_says_so() -> None:
    parser, commands = cli.make_parser()
    tried = 0
    for name, command in commands.items():
        for action in command._actions:
            flag = next((one for one in action.option_strings if one.startswith("--")), None)
            if flag is None or action.nargs == 0:
                continue
            tried += 1
            try:
                args, _ = parser.parse_known_args([name, f"{flag}=--"])
            except SystemExit:  # it takes numbers, or some names
                continue
            # A port that is no number is a file.
            assert getattr(args, action.dest) != [] or args.more == ["--"], flag
    assert tried > 100


def test_closed_standard_streams_are_no_traceback() -> None:
    for closed, args in (("<&-", "decode -"), (">&-", "explain 0012000000000001ffff"), (">&-", "schema")):
        command = f"{sys.executable} -m kwire.cli {args} {closed}"
        found = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
        assert "Traceback" not in found.stderr, command


@pytest.mark.parametrize("command", [["decode"], ["explain"], ["decode", "--keylog"]])
def test_credentials_of_a_uri_are_in_no_complaint(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(*command, "s3://user:HUNTER@bucket/x.pcap") == 2
    said = capsys.readouterr()
    assert said.err
    assert "HUNTER" not in said.out + said.err


@pytest.mark.parametrize(
    "command",
    [
        "decode {0} -o {0}",
        "decode {0} --table frames,calls -o x.{{table}}",
        "decode {1} -o {0}",
        "audit {0} --format json -o ./{0}",
        "findings {1} {0} -o {0}",
        "lineage {0} --format dot -o {1}",
        "report {0} -o {0}",
        "report {2} -o {0} --against {0}",
        "export {0} --otlp {0}",
        "export {0} --pcapng {1}",
        "export {0} --otlp y --pcapng ./y",
    ],
)
def test_no_output_takes_the_place_of_a_capture(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    data = pcap(exchange().packets)
    names = ("x.frames", "linked", "other")
    for name in (names[0], names[2]):
        Path(name).write_bytes(data)
    Path(names[1]).symlink_to(names[0])
    assert cli.main(command.format(*names).split()) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert all(Path(name).read_bytes() == data for name in names)
    assert Path(names[1]).is_symlink()


URIS = {
    "slash": "s3://AKIAX:CANARY/CANARY@bucket/x.pcap",
    "options": "s3://bucket/x.pcap?access_key=AKIAX&secret_key=CANARY&region=x",
    "space": "s3://AKIAX:CANARY CANARY@bucket/x.pcap",
    "tab": "s3://AKIAX:CANARY\tCANARY@bucket/x.pcap",
    "account": "abfs://cont:CANARY/CANARY==@acc.dfs.core.windows.net/x",
}


@pytest.mark.parametrize(
    "command",
    [
        *("decode", "findings", "audit", "lineage", "top", "segments", "explain", "explain --frame 0", "schema import"),
        *(
            "schema compare",
            "schema --schemas",
            "decode x.pcap --keylog",
            "decode x.pcap --topic-ids",
            "decode --port x",
        ),
        *("report x.pcap -o x.html --against", "report x.pcap -o x.html", "decode x.pcap --format jsonl -o"),
        *("export --otlp y.jsonl", "export x.pcap --otlp", "decode x.pcap --columns"),
    ],
)
def test_no_command_says_or_writes_the_credentials_of_a_uri(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.pcap").write_bytes(pcap(exchange().packets))
    for uri in URIS.values():
        with contextlib.suppress(SystemExit):
            assert cli.main([*command.split(), uri]) in (0, 2)
        said = capsys.readouterr()
        shown = said.out + said.err + "".join(one.read_text("utf-8", "replace") for one in tmp_path.glob("*.html"))
        assert "CANARY" not in shown
        assert "Traceback" not in said.err


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("planted", ["pipe", "device"])
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("t-0/00000000000000000000.log", "segments {root}"),
        ("t-0/00000000000000000000.log", "decode {root}"),
        ("t-0/partition.metadata", "decode {capture} --topic-ids {root}"),
        ("x.json", "schema import {root}"),
        ("x.jar", "schema import {root}/x.jar"),
        ("ids.csv", "decode {capture} --topic-ids {root}/ids.csv"),
        ("x.kwire", "schema --schemas {root}"),
    ],
)
def test_what_is_no_file_is_neither_waited_for_nor_read(planted: str, name: str, command: str, tmp_path: Path) -> None:
    captured = tmp_path / "c.pcap"
    captured.write_bytes(pcap(exchange().packets))
    path = tmp_path / "root" / name
    path.parent.mkdir(parents=True)
    if planted == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    found = run(*command.format(root=tmp_path / "root", capture=captured).split())
    assert found.returncode in (1, 2)
    assert "not a file" in found.stdout + found.stderr
    assert "Traceback" not in found.stderr
