"""``kwire.spark.transactions`` and ``journeys``: captures that continue each other give the rows of the whole."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from told_transactions import Told, rows_of

import kwire.spark
from kwire import capture
from kwire.errors import KwireError
from kwire.testing import packets

GOLDEN = Path(__file__).parents[1] / "golden" / "kafka-4.3-kraft-java" / "clients.pcap"
_FREE = ("capture", "connection", "frame", "end_connection", "end_frame", "events", "cause")


def _cut(whole: list[packets.Packet], folder: Path) -> str:
    cuts = [0, *sorted(Random(1).sample(range(1, len(whole)), 3)), len(whole)]
    for number, (begin, end) in enumerate(pairwise(cuts)):
        (folder / f"{number}.pcapng").write_bytes(packets.write_pcapng(whole[begin:end]))
    return str(folder)


def _plain(row: Any, free: tuple[str, ...]) -> str:
    return repr({name: value for name, value in row.items() if name not in free and not name.endswith("_connection")})


@pytest.mark.wide
def test_transactions_go_on_from_file_to_file(spark: Any, tmp_path: Path) -> None:
    told = Told(7)
    found = kwire.spark.transactions(_cut(told.packets(), tmp_path), spark=spark).drop(*_FREE).collect()
    names = [(one["transactional_id"], one["producer_epoch"], one["end"], one["records"]) for one in found]
    assert names == [
        (one["transactional_id"], one["producer_epoch"], one["end"], one["records"])
        for one in rows_of([told.packets()])
    ]


@pytest.mark.wide
def test_journeys_go_on_from_file_to_file(spark: Any, tmp_path: Path) -> None:
    names = ("topic", "partition", "first_offset", "last_offset", "group_id", "deliveries", "lag", "status")
    found = kwire.spark.journeys(_cut(packets.read(GOLDEN.read_bytes()), tmp_path), spark=spark)
    whole = [row for batch in capture.read(GOLDEN, "journeys") for row in batch.to_pylist()]
    assert [tuple(one[name] for name in names) for one in found.select(*names).collect()] == [
        tuple(one[name] for name in names) for one in whole
    ]


def test_what_reads_parts_by_themselves_says_who_does_it(spark: Any) -> None:
    with pytest.raises(KwireError, match=r"kwire\.spark\.journeys reads it"):
        kwire.spark.read(str(GOLDEN), table="journeys", spark=spark)
    with pytest.raises(KwireError, match="chooses it itself"):
        kwire.spark.transactions(str(GOLDEN), table="frames", spark=spark)
