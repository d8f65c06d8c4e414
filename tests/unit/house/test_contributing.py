"""The recipes of CONTRIBUTING.md that have diffs, carried out as they stand in a copy of the tree."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import tunnels
from recipe_diffs import RECIPES, changed, diffs

from kwire import capture, log
from kwire.kernels import cache

ROOT = Path(__file__).resolve().parents[3]
WITH_DIFFS = [one for one in RECIPES if diffs(one)]
BRIEF = ("--table", "messages", "--brief")
BROKEN_BY_RECIPES = (
    "schema/test_parser.py::test_the_schema_files_are_in_canonical_form",
    "schema/test_loader.py",
    "cli/test_schema.py",
    "protocol/test_secrets.py",
    *(f"tables/test_{name}.py" for name in ("tables", "filters", "frames", "messages", "typed")),
    "house/test_docs_tables.py",
    "house/test_docstrings.py",
    "cli/test_mistakes.py::test_a_mistake_is_one_line",
    "cli/test_mistakes.py::test_the_help_of_each_command_says_what_it_does_and_has_examples",
    "records/test_compression.py::test_a_codec_that_is_not_defined_is_refused",
    "records/test_decoding.py",
)
"""Tests of ``tests/unit`` that a recipe which is not complete would break."""
GATES_OF_ITSELF = "test_the_gates_see_what_goes_around_them"
CLIENTS = ROOT / "tests" / "golden" / "kafka-4.3-kraft-java" / "clients.pcap"
SEGMENT = ROOT / "tests" / "golden" / "segments" / "4.3-kraft" / "__consumer_offsets-0" / "00000000000000000000.log"
GOLDEN = ROOT / "tests" / "golden" / "kafka-3.9-kraft-raw" / "every-version.pcap"
ENVIRONMENT = {"NUMBA_CACHE_DIR": str(cache.folder().parent)}
"""Machine code of this tree is that of a copy with the same kernels. Else each copy would compile all of it again."""

# Each of them copies the tree, and starts Python in it several times.
pytestmark = pytest.mark.wide

spec = importlib.util.spec_from_file_location("gates", Path(__file__).with_name("test_gates.py"))
assert spec is not None
assert spec.loader is not None
gates: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gates)


def carried_out(recipe: str, tree: Path) -> list[str]:
    """Applies the diffs of a recipe to a copy of the package, and gives the files that they change."""
    return all_carried_out([recipe], tree)


def all_carried_out(recipes: Iterable[str], tree: Path) -> list[str]:
    """Applies the diffs of several recipes, one after the other."""
    for folder in ("kwire", "schemas", "docs"):
        # What Python compiled is copied too: it holds for files that do not change. Machine code is found without.
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("kernels-*"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    files = []
    for recipe in recipes:
        for name, lines in diffs(recipe):
            file = tree / name
            file.write_text(changed(file.read_text() if file.exists() else "", lines))
            files.append(name)
    return files


def python(tree: Path, *arguments: str) -> str:
    """What Python prints in the copy."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env=os.environ | ENVIRONMENT | {"PYTHONPATH": str(tree)},
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
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


def test_a_schema_gets_its_canonical_form_with_the_docs(tmp_path: Path) -> None:
    carried_out("A version with a tagged field", tmp_path)
    file = tmp_path / "schemas/12_heartbeat.kwire"
    good = file.read_text()
    file.write_text(good.replace("null  5+  tag 0\n", "null 5+ tag 0 5+\n"))
    assert file.read_text() != good
    assert "wrote schemas/12_heartbeat.kwire" in python(tmp_path, "docs/fill.py")
    assert file.read_text() == good


def test_a_secret_field(tmp_path: Path) -> None:
    assert carried_out("A secret field", tmp_path) == ["schemas/11_join_group.kwire"]
    said = python(
        tmp_path, "-c", "import kwire.messages as m\nprint(m.JoinGroupRequest(group_id='shown', reason='hidden'))"
    )
    assert "shown" in said
    assert "hidden" not in said


def test_a_column_that_is_filled_from_a_secret_field_is_null(tmp_path: Path) -> None:
    carried_out("A secret field", tmp_path)
    file = tmp_path / "schemas/12_heartbeat.kwire"
    lines = ["-  member_id          string", "+  member_id          string              secret"]
    file.write_text(changed(file.read_text(), lines))
    # It is null in requests; responses of other APIs still have theirs.
    rows = python(tmp_path, "-m", "kwire.cli", "decode", str(CLIENTS), "--table", "calls", "--format", "jsonl")
    members = {(row["api_name"], row["direction"]) for row in map(json.loads, rows.splitlines()) if row["member_id"]}
    assert ("JoinGroup", "response") in members
    assert ("Heartbeat", "request") not in members
    plain = [row for batch in capture.read(CLIENTS, "calls", apis=["Heartbeat"]) for row in batch.to_pylist()]
    assert any(row["member_id"] for row in plain if row["direction"] == "request")


def test_a_table_over_connections(tmp_path: Path) -> None:
    files = carried_out("A table over connections", tmp_path)
    assert files == ["kwire/tables/ports.py", "kwire/tables/__init__.py", "docs/reference/tables/ports.md"]
    said = python(tmp_path, "-m", "kwire.cli", "decode", str(GOLDEN), "--table", "ports", "--format", "jsonl")
    ports = [json.loads(line)["port"] for line in said.splitlines()]
    python(tmp_path, "docs/fill.py")
    assert "[`ports`](ports.md)" in (tmp_path / "docs" / "reference" / "tables" / "README.md").read_text()
    assert ports == [row["broker_port"] for batch in capture.read(GOLDEN, "connections") for row in batch.to_pylist()]


def test_a_table_over_segments(tmp_path: Path) -> None:
    files = carried_out("A table over segments", tmp_path)
    assert files == ["kwire/tables/log_epochs.py", "kwire/tables/__init__.py", "docs/reference/tables/log-epochs.md"]
    command = ("-m", "kwire.cli", "decode", str(SEGMENT), "--table", "epochs")
    rows = [json.loads(line) for line in python(tmp_path, *command, "--format", "jsonl").splitlines()]
    batches = [row for batch in log.batches(SEGMENT) for row in batch.to_pylist()]
    assert [row["epoch"] for row in rows] == [*dict.fromkeys(row["partition_leader_epoch"] for row in batches)]
    assert rows[0]["first_offset"] == batches[0]["base_offset"]
    assert {row["status"] for row in rows} == {"ok"}
    assert "epoch" in python(tmp_path, *command)
    one = python(tmp_path, *command, "--columns", "epoch", "--format", "jsonl")
    assert [json.loads(line) for line in one.splitlines()] == [{"epoch": row["epoch"]} for row in rows]


def test_a_record_codec(tmp_path: Path) -> None:
    assert carried_out("A record codec", tmp_path) == ["kwire/records/compression.py"]
    said = python(
        tmp_path,
        "-c",
        "from kwire import records\n"
        "from kwire.errors import EncodeError\n"
        "data = records.encode([records.Record(b'k', b'v')], compression='bzip2', level=3)\n"
        "print(b'BZh3' in data, [one.value for each in records.decode(data) for one in each.records])\n"
        "try:\n"
        "    records.encode([records.Record(b'k', b'v')], compression='bzip2', level=10)\n"
        "except EncodeError as wrong:\n"
        "    print(wrong)\n",
    )
    assert said == "True [b'v']\n$: bzip2 has no level 10 (levels: 1 to 9)\n"


def test_a_column(tmp_path: Path) -> None:
    assert carried_out("A column", tmp_path) == ["kwire/tables/frames.py", "kwire/tables/messages.py"]
    for more in ([], ["--api", "ApiVersions"]):
        said = python(
            tmp_path, "-m", "kwire.cli", "decode", str(GOLDEN), "--table", "messages", *more, "--format", "jsonl"
        )  # fmt: skip
        rows = [json.loads(line) for line in said.splitlines()]
        assert rows
        assert all(row["size_kb"] == row["size"] / 1024 for row in rows)
        assert all(row["has_body"] == (row["body"] is not None) for row in rows)


def test_a_tunnel(tmp_path: Path) -> None:
    assert carried_out("A tunnel", tmp_path) == ["kwire/kernels/layers.py"]
    packets = tunnels.taken_from(CLIENTS.read_bytes())[:40]
    inside = [(time, tunnels.ipv4(17, tunnels.udp(4341, struct.pack(">II", 0, 7 << 8) + one))) for time, one in packets]
    (tmp_path / "inside.pcap").write_bytes(tunnels.written(inside, 101))
    (tmp_path / "plain.pcap").write_bytes(tunnels.written(packets, 101))
    rows = {}
    for name in ("plain", "inside"):
        said = python(
            tmp_path, "-m", "kwire.cli", "decode", f"{name}.pcap", "--table", "connections", "--format", "jsonl"
        )  # fmt: skip
        rows[name] = [json.loads(line) | {"capture": None} for line in said.splitlines()]
    assert [row.pop("tunnels") for row in rows["inside"]] == [["lisp:7"]] * len(rows["plain"])
    assert [row.pop("tunnels") for row in rows["plain"]] == [[]] * len(rows["plain"])
    same = ("client_host", "client_port", "broker_host", "broker_port", "requests", "responses", "status")
    assert [[row[name] for name in same] for row in rows["inside"]] == [
        [row[name] for name in same] for row in rows["plain"]
    ]
    assert sum(row["responses"] for row in rows["plain"]) > 1
    python(tmp_path, "docs/fill.py")
    assert "`lisp:`" in (tmp_path / "docs" / "reference" / "tables" / "connections.md").read_text()


def test_a_finding_rule(tmp_path: Path) -> None:
    assert carried_out("A finding rule", tmp_path) == ["kwire/report/findings/clients.py"]
    for limit, count in (("5", 1), ("600", 0)):
        said = python(
            tmp_path, "-m", "kwire.cli", "findings", str(CLIENTS), "--rule", "heartbeat-storm", "--format", "jsonl",
            "--set", f"heartbeats={limit}",
        )  # fmt: skip
        assert [json.loads(line)["rule"] for line in said.splitlines()] == ["heartbeat-storm"] * count
    python(tmp_path, "docs/fill.py")
    line = (
        "| `heartbeat-storm` | medium | a client that sends heartbeats all the time | `heartbeats` (600 in a minute) |"
    )
    assert line in (tmp_path / "docs" / "reference" / "findings.md").read_text()


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
        cwd=tmp_path, env=os.environ | ENVIRONMENT | {"PYTHONPATH": str(tmp_path)}, text=True, capture_output=True,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "--brief is for the table messages, not frames" in refused.stderr


def test_what_recipes_write_is_as_ruff_and_the_gates_want_it(tmp_path: Path) -> None:
    sources = {name for name in all_carried_out(WITH_DIFFS, tmp_path) if name.endswith(".py")}
    assert len(sources) > 5
    if importlib.util.find_spec("ruff"):
        python(tmp_path, "-m", "ruff", "format", "--check", *sources)
        python(tmp_path, "-m", "ruff", "check", "--no-cache", *sources)
    gates.PACKAGE = tmp_path / "kwire"
    held = [holds for name, holds in vars(gates).items() if name.startswith("test_") and name != GATES_OF_ITSELF]
    assert len(held) > 2
    for one in held:
        one()


def test_recipes_break_no_test(tmp_path: Path) -> None:
    # Other kernels would have to be compiled.
    all_carried_out([one for one in WITH_DIFFS if one != "A tunnel"], tmp_path)
    python(tmp_path, "docs/fill.py")
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("golden"))
    (tmp_path / "tests" / "golden").symlink_to(ROOT / "tests" / "golden")
    of_unit = [f"tests/unit/{one}" for one in BROKEN_BY_RECIPES]
    # What the columns of the recipe mean, and where in the page that stands, is written by hand.
    by_hand = [
        f"--deselect=tests/unit/house/test_docs_tables.py::test_every_column_is_explained_in_its_order[{one}]"
        for one in ("frames", "messages")
    ]
    python(tmp_path, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *by_hand, *of_unit)
