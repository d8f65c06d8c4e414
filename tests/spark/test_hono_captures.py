"""Producers of Hono telemetry, and what they send again, as captures show it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hono_captures import rejected, restarted, two_clients, two_of_a_client
from pyspark.sql import SparkSession

import kwire.spark

TABLES = ("records", "frames", "partitions")


@pytest.mark.wide
def test_restarts_and_messages_that_are_sent_again_are_told_from_captures(spark: SparkSession, tmp_path: Path) -> None:
    said = "the device has the producers producer id 1, producer id 2"
    again = "the message was rejected with INVALID_RECORD and is sent again"
    for make in (restarted, two_of_a_client, two_clients, rejected):
        (tmp_path / f"{make.__name__}.pcap").write_bytes(make(make.__name__))
    reader = spark.read.format("kwire")
    tables = [reader.option("table", one).load(str(tmp_path)).cache() for one in TABLES]
    found = kwire.spark.hono_violations(*tables).collect()
    assert sorted((row.rule, row.device_id, row.detail) for row in found) == [
        ("sent_again", "rejected", again),
        ("two_producers", "two_clients", said),
        ("two_producers", "two_of_a_client", said),
    ]
    assert [row.frame for row in found if row.rule == "sent_again"] == [10]
