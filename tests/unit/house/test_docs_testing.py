"""docs/how-to/fuzz-a-parser.md: its Python runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[3]
PAGE = (CHECKOUT / "docs" / "how-to" / "fuzz-a-parser.md").read_text(encoding="utf-8")
CAPTURE = CHECKOUT / "tests" / "golden" / "kafka-4-telemetry" / "refusals.pcap"


def test_python_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(CAPTURE, tmp_path / "broker.pcap")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        exec(compile(block, "fuzz-a-parser.md", "exec"), namespace)
    assert (tmp_path / "impaired.pcap").read_bytes() == namespace["impaired"].data
    said = capsys.readouterr().out
    assert said.startswith(f"{namespace['account'].dropped}\n")
    assert "lost-some lossy" in said
