"""The recipes of CONTRIBUTING.md that have diffs, carried out as they stand in a copy of the tree."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kwire import capture

ROOT = Path(__file__).resolve().parents[3]
RECIPES = dict(
    re.findall(r"^### (.*?)\n(.*?)(?=^### |\Z)", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL | re.MULTILINE)
)
BRIEF = ("--table", "messages", "--brief")
DIFF = re.compile(r"^( *)```diff\n\1# (\S+)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
CLIENTS = ROOT / "tests" / "golden" / "kafka-4.3-kraft-java" / "clients.pcap"
GOLDEN = ROOT / "tests" / "golden" / "kafka-3.9-kraft-raw" / "every-version.pcap"


spec = importlib.util.spec_from_file_location("gates", Path(__file__).with_name("test_gates.py"))
assert spec is not None
assert spec.loader is not None
gates: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gates)


def changed(text: str, lines: list[str]) -> str:
    """``text`` after a diff: a line with ``-`` becomes the ``+`` lines after it; other lines are found and kept."""
    at = 0
    for line in lines:
        mark, content = line[:1], line[1:] + "\n"
        if mark == "+":
            text = text[:at] + content + text[at:]
            at += len(content)
            continue
        found = re.search("^" + re.escape(content), text[at:], re.MULTILINE)
        assert found, f"there is no line {content!r} from {at} on"
        begin, at = at + found.start(), at + found.end()
        if mark == "-":
            text, at = text[:begin] + text[at:], begin
    return text


def carried_out(recipe: str, tree: Path) -> list[str]:
    """Applies the diffs of a recipe to a copy of the package, and gives the files that they change."""
    for folder in ("kwire", "schemas"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    files = []
    for indent, name, body in DIFF.findall(RECIPES[recipe]):
        file = tree / name
        file.write_text(
            changed(file.read_text() if file.exists() else "", [one.removeprefix(indent) for one in body.splitlines()])
        )
        files.append(name)
    gates.PACKAGE = tree / "kwire"
    for name, holds in vars(gates).items():
        if name.startswith("test_") and name != "test_the_gates_see_what_goes_around_them":
            holds()
    return files


def python(tree: Path, *arguments: str) -> str:
    """What Python prints in the copy."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env={"PYTHONPATH": str(tree)}, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_version_with_a_tagged_field(tmp_path: Path) -> None:
    assert carried_out("A version with a tagged field", tmp_path) == ["schemas/12_heartbeat.kwire"]
    python(tmp_path, "-m", "kwire.codec.stubs")
    assert "rack" in (tmp_path / "kwire/messages.pyi").read_text()
    said = python(
        tmp_path,
        "-c",
        "import kwire.messages as m, kwire\n"
        "sent = m.HeartbeatRequest(group_id='g', rack='east')\n"
        "body = kwire.encode_body(sent, 5)\n"
        "print(kwire.decode_body(body, m.HeartbeatRequest, 5).rack, b'east' in body)",
    )
    assert said == "east True\n"


def test_a_secret_field(tmp_path: Path) -> None:
    assert carried_out("A secret field", tmp_path) == ["schemas/12_heartbeat.kwire"]
    said = python(
        tmp_path, "-c", "import kwire.messages as m\nprint(m.HeartbeatRequest(group_id='shown', member_id='hidden'))"
    )
    assert "shown" in said
    assert "hidden" not in said
    # Nor does a table: requests have it, responses of other APIs still do.
    rows = python(tmp_path, "-m", "kwire.cli", "decode", str(CLIENTS), "--table", "calls", "--format", "jsonl")
    members = {(row["api_name"], row["direction"]) for row in map(json.loads, rows.splitlines()) if row["member_id"]}
    assert ("JoinGroup", "response") in members
    assert ("Heartbeat", "request") not in members
    plain = [row for batch in capture.read(CLIENTS, "calls", apis=["Heartbeat"]) for row in batch.to_pylist()]
    assert any(row["member_id"] for row in plain if row["direction"] == "request")


def test_a_table_over_connections(tmp_path: Path) -> None:
    files = carried_out("A table over connections", tmp_path)
    assert files == ["kwire/tables/ports.py", "kwire/tables/__init__.py"]
    said = python(tmp_path, "-m", "kwire.cli", "decode", str(GOLDEN), "--table", "ports", "--format", "jsonl")
    ports = [json.loads(line)["port"] for line in said.splitlines()]
    assert ports == [row["broker_port"] for batch in capture.read(GOLDEN, "connections") for row in batch.to_pylist()]


def test_a_command(tmp_path: Path) -> None:
    assert carried_out("A command", tmp_path) == ["kwire/cli/count.py", "kwire/cli/__init__.py"]
    assert int(python(tmp_path, "-m", "kwire.cli", "count", str(GOLDEN))) > 0


def test_a_reading_option(tmp_path: Path) -> None:
    assert carried_out("A reading option", tmp_path) == ["kwire/options.py"]
    assert "--brief" in python(tmp_path, "-m", "kwire.cli", "decode", "--help")
    assert int(python(tmp_path, "-m", "kwire.cli", "decode", str(GOLDEN), *BRIEF, "--format", "jsonl").count("\n"))
    assert "| `brief` | `--brief` | an example (of `messages`) | false |" in python(tmp_path, "-m", "kwire.options")
    said = python(
        tmp_path,
        "-c",
        "from kwire import capture, options\n"
        f"print(sum(one.num_rows for one in capture.read({str(GOLDEN)!r}, 'messages', brief=True)))\n"
        "print(options.values({'brief': 'true'})['brief'], options.settled({})['brief'])",
    )
    assert said.endswith("True False\n")
    refused = subprocess.run(
        [sys.executable, "-m", "kwire.cli", "decode", str(GOLDEN), "--brief"],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, text=True, capture_output=True,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "--brief is for the table messages, not frames" in refused.stderr


def test_a_diff_that_does_not_fit_is_found() -> None:
    assert changed("a\nb\nc\n", ["-b", "+x", "+y", " c", "+z"]) == "a\nx\ny\nc\nz\n"
    with pytest.raises(AssertionError, match="there is no line 'd"):
        changed("a\n", ["-d", "+e"])
