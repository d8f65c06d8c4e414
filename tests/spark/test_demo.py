"""``make demo`` shows what it promises and writes its Parquet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.mark.wide
def test_demo_shows_every_table_and_writes_parquet(captures: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(DEMO), "--output", str(tmp_path / "out"), str(captures / "first-light.pcap")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for title in (
        "Frames per API and version",
        "Topics by bytes and records",
        "Latency per API, in milliseconds",
        "Some records",
        "The same from a table of raw payloads",
        "Written",
    ):
        assert f"\n{title}\n" in done.stdout
    rows = {name: pq.read_table(tmp_path / "out" / f"{name}.parquet").num_rows for name in ("frames", "records")}
    assert rows == {"frames": 208, "records": 516}
