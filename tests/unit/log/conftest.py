"""What tests of log segments share."""

from __future__ import annotations

from pathlib import Path

import pytest
from segments_made import segment_bytes

from kwire.records import Record, encode


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    folder = tmp_path / "my-topic-7"
    folder.mkdir()
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    (folder / f"{0:020}.log").write_bytes(segment_bytes())
    (folder / f"{1000:020}.log").write_bytes(
        encode([Record(b"k", b"v", timestamp=5)], base_offset=1000, compression="gzip")
    )
    return folder
