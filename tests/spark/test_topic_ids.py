"""The option ``topic_ids``: rows have names of topics that the capture itself does not say before them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kwire.errors import CaptureError, KwireError
from kwire.spark.files import find
from kwire.spark.options import Options, table_schema
from kwire.spark.reader import FileReader
from kwire.testing import packets

SHARE = Path(__file__).parents[1] / "golden" / "kafka-4.3-kraft-java" / "share.pcap"


def topics(path: Path, **options: str) -> set[tuple[str | None, str]]:
    checked = Options.of({"path": str(path), "table": "records", **options})
    reader = FileReader(checked, table_schema("records"))
    rows = [row for batch in reader.rows_of(find([str(path)])[0]) for row in batch.to_pylist()]
    assert rows
    return {(row["topic"], row["topic_id"]) for row in rows}


def test_names_come_from_a_table_or_the_folder_of_a_broker(tmp_path: Path) -> None:
    # What is between two messages that have the names.
    whole = packets.read(SHARE.read_bytes())
    path = tmp_path / "late.pcap"
    path.write_bytes(packets.write_pcap(whole[90:200], nano=True))
    unnamed = {id_ for name, id_ in topics(path) if name is None}
    assert unnamed
    table = tmp_path / "topics.json"
    table.write_text(json.dumps(dict.fromkeys(unnamed, "given")))
    assert {name for name, id_ in topics(path, topic_ids=str(table)) if id_ in unnamed} == {"given"}
    folder = tmp_path / "data"
    for number, id_ in enumerate(unnamed):
        (folder / f"of-{number}-0").mkdir(parents=True)
        (folder / f"of-{number}-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {id_}")
    (folder / "other.json").write_text("{")
    assert {name for name, id_ in topics(path, topic_ids=str(folder)) if id_ in unnamed} == {
        f"of-{number}" for number in range(len(unnamed))
    }


def test_what_says_no_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KwireError, match="the option 'topic_ids' is for captures"):
        Options.of({"path": "x", "format": "log", "topic_ids": "y"})
    checked = Options.of({"path": str(SHARE), "topic_ids": str(tmp_path / "nowhere.csv")})
    reader = FileReader(checked, table_schema("frames"))
    with pytest.raises(CaptureError, match="no such file"):
        reader.partitions()
