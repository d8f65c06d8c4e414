"""The README shows what is: its commands and blocks run, and their output is the real one.

The block that needs Spark is run by ``tests/spark/test_readme.py``.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from shown_output import ROOT, same, steps
from shown_output import run as ran

README = (ROOT / "README.md").read_text(encoding="utf-8")
GOLDEN = ROOT / "tests" / "golden"
CAPTURE = GOLDEN / "kafka-3.9-zk-kafka-python" / "first-light.pcap"


def test_its_blocks_print_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(CAPTURE, tmp_path / "broker.pcap")
    monkeypatch.chdir(tmp_path)
    asked: list[bytes] = []

    def my_parser(data: bytes) -> SimpleNamespace:
        asked.append(data)
        return SimpleNamespace(correlation_id=int.from_bytes(data[4:8], "big", signed=True))

    space: dict[str, Any] = {"my_parser": my_parser}
    some = [step for step in steps("README.md") if "spark" not in step.code]
    assert [step.kind for step in some] == ["command", "python", "python"]
    for step in some:
        printed = ran(step, space)
        assert step.shown is None or same(step.shown, printed), step.code
    table = some[0].shown
    assert table is not None
    assert len(table.splitlines()) == 2 + 10
    space["test_my_parser"]()
    assert len(asked) >= 50


def test_what_it_says_of_other_tools_is_what_was_recorded() -> None:
    said = json.loads((GOLDEN / "frames.tshark.json").read_text())
    frames = [one for connections in said.values() for several in connections.values() for one in several]
    bad = sum(one.endswith("*") for one in frames)
    segments = [*(GOLDEN / "segments").glob("*/*/*.log"), *(GOLDEN / "segments").glob("*/*/*.checkpoint")]
    assert f"calls {bad:,} of our {len(frames):,} frames malformed" in README
    assert f"of {len(segments)} segments of {len({one.parent.parent for one in segments})} log folders" in README


def test_it_is_read_in_a_few_minutes() -> None:
    assert len(README.split()) <= 900


def test_the_two_commands_stand_first() -> None:
    assert re.findall(r"^ {4}make (\w+)", README, re.MULTILINE)[:2] == ["demo", "test"]
    assert README.index("    make demo") < README.index("\n## ")
