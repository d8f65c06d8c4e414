"""Captures that tests make with ``packets``, and what is read out of them, in short."""

from __future__ import annotations

import io
from typing import Any

from packets import (
    Connection,
    metadata,
    metadata_answer,
)
from valid_batches import valid

from kwire import capture

Row = dict[str, Any]


def read(data: bytes, table: Any = "frames", **options: Any) -> list[Row]:
    return [row for batch in valid(capture.read(io.BytesIO(data), table, **options)) for row in batch.to_pylist()]


def brief(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(row["direction"], row["api_name"], row["correlation_id"], row["status"]) for row in rows]


def by_time(rows: list[Row]) -> list[Row]:
    """Rows as they were sent. Otherwise, of what one packet settled, requests come before responses."""
    return sorted(rows, key=lambda row: row["timestamp"])


def exchange(connection: Connection | None = None, count: int = 1) -> Connection:
    connection = connection or Connection().open()
    for number in range(1, count + 1):
        connection.send(metadata(number)).answer(metadata_answer(number))
    return connection


ONE = [("request", "Metadata", 1, "ok"), ("response", "Metadata", 1, "ok")]


def several(count: int) -> list[tuple[Any, ...]]:
    return [(way, "Metadata", number, "ok") for number in range(1, count + 1) for way in ("request", "response")]
