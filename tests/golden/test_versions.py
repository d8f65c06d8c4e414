"""What the brokers of the captures announced, against the table of releases, and what is chosen of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire import versions
from kwire.capture.reading import Reading
from kwire.kernels.layouts import Status
from kwire.schema.keys import ApiKey
from kwire.schema.model import Versions

HERE = Path(__file__).parent
CAPTURES = sorted(one for one in HERE.glob("kafka-[34].[0-9]-*/*.pcap") if one.stat().st_size < 400_000)

# A broker with an old inter.broker.protocol.version does not have transactions, and one without a receiver of metrics
# (KIP-714) no telemetry: neither announces what it cannot do.
TRANSACTIONS = {24, 25, 26, 27, 28}
TELEMETRY = {71, 72}


def answers(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        for frames in Reading(file):
            for frame in frames:
                if frame.is_response and frame.api_key == ApiKey.API_VERSIONS and frame.status == Status.OK:
                    body = frame.body
                    if body.error_code == 0:
                        yield body


@pytest.mark.parametrize("path", CAPTURES, ids=lambda one: f"{one.parent.name}/{one.stem}")
def test_brokers_announce_what_the_table_says(path: Path) -> None:
    release = path.parent.name.split("-")[1]
    tables = [versions.announced(release, one) for one in ("zookeeper", "broker", "controller")]  # type: ignore[arg-type]
    for one in answers(path):
        said = {row.api_key: Versions(row.min_version, row.max_version) for row in one.api_keys}
        table = next(table for table in tables if said.items() <= table.items())
        assert table.keys() - said.keys() in (set(), TELEMETRY, TRANSACTIONS)
        # What is chosen is served, and the newest that is announced as far as kwire has it.
        for key, version in versions.choose(one).items():
            assert (
                version
                in versions.accepted(release, None if key in tables[1] or key in tables[0] else "controller")[key]
            )
            assert version == said[key].high


def test_there_are_brokers_of_every_kind() -> None:
    found = {one.parent.name.rpartition("-")[0] for one in CAPTURES if any(True for _ in answers(one))}
    assert {"kafka-3.9-zk", "kafka-3.9-kraft", "kafka-4.3-kraft"} <= found
