"""docs/how-to/fuzz-a-parser.md: its Python runs."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from kwire import cli
from kwire.testing import corpus

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


HEADERS = """
import kwire
from kwire.protocol.headers import decode_request_header

ParseError = kwire.KwireError

def header(frame):
    found, end = decode_request_header(frame)
    {}
    return end
"""


@pytest.mark.parametrize(("mistake", "code"), [("pass", 0), ("end += found.client_id is None", 1)])
def test_the_adapter_for_headers_judges_headers_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mistake: str, code: int
) -> None:
    section = PAGE.partition("## A parser of headers only")[2]
    adapter = re.search(r"^```text\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert adapter is not None
    (tmp_path / "adapter.py").write_text(adapter[1])
    (tmp_path / "my_parser.py").write_text(HEADERS.format(mistake))
    command = f"{shlex.quote(sys.executable)} {tmp_path / 'adapter.py'}"
    words = ["fuzz", "run", "--lines", "--cmd", command, "--role", "request", "--api", "Metadata", "--version", "1,9"]
    assert cli.main(words) == code
    assert ("the header ends at 10, not at 11" in capsys.readouterr().out) == bool(code)


def test_damaged_headers_of_requests_are_those_of_metadata() -> None:
    kinds = ["null", "cut", "too-large", "tag-unknown"]
    some = [one for one in corpus.cases(["Heartbeat", "Produce", "Metadata"], kinds) if one.role == "request"]
    assert {one.api for one in some if one.body_at is None} == {"Metadata"}
