"""What docs/how-to/test-a-parser.md says that it found in other parsers is found, in the versions that it names."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kwire import cli

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "test-a-parser.md").read_text(encoding="utf-8")
ROWS = sorted(re.findall(r"^\| ((?:kio|kafka-python|aiokafka|tshark)[^|]*) \| `(--api [^`]+)` \|", PAGE, re.MULTILINE))
SAID = re.compile(r"^(crashes|accepts what|refuses what|reads another|does not answer|takes too)", re.MULTILINE)


CLIENTS = re.findall(
    r"^\| ([\w-]+) ([\d.]+) \| `(--api [^`]+)` \|",
    (ROOT / "docs" / "how-to" / "test-a-client.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def installed(name: str) -> str | None:
    """The version of a parser on this machine."""
    if name != "tshark":
        return importlib.metadata.version(name)
    if shutil.which(name) is None:
        return None
    said = subprocess.run([name, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"TShark \(Wireshark\) ([\d.]+)", said)
    return found[1].rstrip(".") if found else None


@pytest.mark.wide(keep=3)
@pytest.mark.parametrize(("parsers", "options"), ROWS, ids=[f"{parser} {options}" for parser, options in ROWS])
def test_each_finding_is_found(
    parsers: str, options: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for one in parsers.split(", "):
        name, _, version = one.partition(" ")
        if version and installed(name) != version:
            pytest.skip(f"{name} {version} is not installed")
        adapter = f"{shlex.quote(sys.executable)} -m fuzz.peers.of_{name.replace('-', '_')}"
        assert cli.main(["fuzz", "run", "--lines", "--cmd", adapter, *shlex.split(options)]) == 1
        assert SAID.search(capsys.readouterr().out)


def test_the_page_has_findings_of_four_parsers() -> None:
    assert len(ROWS) >= 19
    assert {parser.split()[0].rstrip(",") for parser, _ in ROWS} == {"kio", "kafka-python", "aiokafka", "tshark"}


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize(("client", "version", "options"), CLIENTS, ids=[f"{one[0]} {one[2]}" for one in CLIENTS])
def test_what_damaged_responses_find_is_found(
    client: str, version: str, options: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    if installed(client) != version:
        pytest.skip(f"{client} {version} is not installed")
    command = f"{shlex.quote(sys.executable)} -m fuzz.peers.clients {client} {{}}"
    words = ["fuzz", "server", "--topic", "orders:1", "--refused", "3", "--cmd", command, *shlex.split(options)]
    assert cli.main(words) == 1
    assert SAID.search(capsys.readouterr().out)


def test_the_page_on_clients_has_findings() -> None:
    assert len(CLIENTS) >= 5
