"""The table ``hono``: who sent for a device, over the messages of a capture."""

from __future__ import annotations

import io

import pytest
from hono_captures import restarted, two_clients, two_of_a_client

from kwire import capture


def violations(data: bytes, window: int | None = None) -> list[tuple[bytes | str, str]]:
    batches = capture.read(io.BytesIO(data), "hono", window=window)
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert rows
    return [(row["device_id"], one["detail"]) for row in rows for one in row["violations"]]


@pytest.mark.parametrize("window", [None, 300])
def test_a_producer_that_was_started_again_is_told_from_a_second_one(window: int | None) -> None:
    said = [("d", "the device has the producers producer id 1, producer id 2")]
    assert violations(restarted(), window) == []
    assert violations(two_of_a_client(), window) == said
    assert violations(two_clients(), window) == said
