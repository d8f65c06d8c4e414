"""The table ``partitions`` of the golden captures, against a walk over their message objects."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import pytest
from partition_walk import NOTHING, partitions
from valid_batches import valid

from kwire import capture
from kwire.capture.reading import Reading
from kwire.errors import KwireError
from kwire.kernels.layouts import Status

CAPTURES = sorted(path for path in Path(__file__).parent.rglob("*.pcap*") if path.suffix in (".pcap", ".pcapng"))


@pytest.mark.wide(keep=27)
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_rows_are_what_a_walk_over_the_messages_finds(path: Path) -> None:
    rows: dict[int, list[dict[str, Any]]] = collections.defaultdict(list)
    wrong, incomplete = set(), set()
    with path.open("rb") as file:
        for batch in valid(capture.read(file, "partitions")):
            for row in batch.to_pylist():
                if row["status"] == "ok":
                    rows[row["frame"]].append(row)
                else:
                    wrong.add(row["frame"])
    with path.open("rb") as file:
        for frames in Reading(file):
            for frame in frames:
                if frame.status not in (Status.OK, Status.TRAILING):
                    incomplete.add(frame.number)
                    continue
                found = rows.pop(frame.number, [])
                try:
                    message = frame.message
                except KwireError:
                    continue
                assert frame.number not in wrong
                assert frame.api_version is not None
                version = getattr(message, "api_version", frame.api_version)
                expected = partitions(message.body, version)
                for row, one in zip(found, expected, strict=True):
                    told = {name: row[name] for name in NOTHING}
                    if "topic" not in one or one["topic"] is None:
                        # By its id, from another frame.
                        told["topic"] = None
                    assert told == one
                    assert row["direction"] == ("response" if frame.is_response else "request")
                    assert (row["connection"], row["client_id"]) == (frame.connection, frame.client_id)
                    assert (row["api_key"], row["api_version"]) == (frame.api_key, frame.api_version)
    # What is left is of frames that the capture does not have to their end.
    assert incomplete.issuperset(rows)
