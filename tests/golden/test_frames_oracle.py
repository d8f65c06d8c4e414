"""Frames against what tshark finds in the same captures (``frames_oracle.py`` wrote it down)."""

from __future__ import annotations

import collections
import json
from pathlib import Path

import pytest
from frames_oracle import HERE, TARGET, UNKNOWN

from kwire.capture.reading import Reading
from kwire.kernels.layouts import Status

TOLD: dict[str, dict[str, list[str]]] = json.loads(TARGET.read_text())
TOKEN = -1
"""In place of the numbers of a raw token, which has none."""
Row = tuple[str, str, str, str, str]


def ours(path: Path) -> dict[tuple[int, int], list[Row]]:
    """By the ports of sender and receiver, one connection after the other: size, id, API, version, client_id."""
    of_connection = collections.defaultdict(list)
    with path.open("rb") as file:
        for frames in Reading(file):
            for frame in frames:
                if frame.status is Status.ENCRYPTED:
                    continue
                ends = (frame.client.port, frame.broker.port)
                key = (frame.connection, *(reversed(ends) if frame.is_response else ends))
                numbers = (frame.size, frame.correlation_id, frame.api_key, frame.api_version)
                if frame.status is Status.SASL:
                    numbers = (frame.size, TOKEN, TOKEN, TOKEN)
                client = UNKNOWN if frame.is_response or not frame.client_id else frame.client_id
                row = (*(UNKNOWN if n is None else str(n) for n in numbers), client)
                of_connection[key].append((frame.number, row))
    found = collections.defaultdict(list)
    for (_, source, target), rows in sorted(of_connection.items()):
        found[source, target] += [row for _, row in sorted(rows)]
    return found


@pytest.mark.parametrize("name", TOLD)
def test_tshark_finds_the_same_frames(name: str) -> None:
    found = ours(HERE / name)
    told = collections.defaultdict(list)
    for way, lines in TOLD[name].items():
        _, source, target = map(int, way.split())
        told[source, target] += [line.rstrip("*").split(" ", 4) for line in lines]
    for way, lines in told.items():
        rows = found[way]
        assert len(rows) == len(lines), way
        for row, line in zip(rows, lines, strict=True):
            alike = [said in (mine, UNKNOWN) or mine == str(TOKEN) for mine, said in zip(row, line, strict=True)]
            assert all(alike), (way, row, line)
    assert not {way for way, rows in found.items() if rows} - told.keys()
