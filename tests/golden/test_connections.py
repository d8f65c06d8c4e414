"""The table ``connections`` of all golden captures, against tshark's account of them (``conversations_oracle.py``)."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from conversations_oracle import COLUMNS, HERE, TARGET, captures
from valid_batches import valid

from kwire import capture
from kwire.kernels.engine import MACHINE, using

ACCOUNTS: dict[str, list[list[Any]]] = json.loads(TARGET.read_text())
WANTED = (
    "client_host", "client_port", "broker_host", "broker_port", "first_seen", "last_seen", "handshake_ms",
    *(f"{side}_{name}" for side in ("client", "broker") for name in (
        "packets", "wire_bytes", "bytes", "repeats", "late", "missing_bytes",
    )),
)  # fmt: skip
MICROSECOND = 1000


def test_there_is_an_account_of_every_capture() -> None:
    assert list(ACCOUNTS) == [path.relative_to(HERE).as_posix() for path in captures()]


@pytest.mark.parametrize("name", ACCOUNTS)
def test_connections_are_what_tshark_says(name: str) -> None:
    data = (HERE / name).read_bytes()
    with using(MACHINE):
        batches = list(valid(capture.read(io.BytesIO(data), "connections", columns=WANTED)))
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert len(rows) == len(ACCOUNTS[name])
    for row, account in zip(rows, ACCOUNTS[name], strict=True):
        theirs = dict(zip(COLUMNS, account, strict=True))
        ends = [[row[f"{side}_host"], row[f"{side}_port"]] for side in ("client", "broker")]
        assert ends in (theirs["ends"], theirs["ends"][::-1])
        sides = [("client", "broker")[ends.index(end)] for end in theirs["ends"]]
        for column, word in (
            ("packets", "packets"),
            ("wire_bytes", "wire_bytes"),
            ("bytes", "bytes"),
            ("repeats", "retransmissions"),
            ("late", "out_of_order"),
        ):
            assert [row[f"{side}_{column}"] for side in sides] == theirs[word], column
        for side, times in zip(sides, theirs["not_captured"], strict=True):
            assert (row[f"{side}_missing_bytes"] > 0) == (times > 0)
        for column in ("first", "last"):
            seen = row[f"{column}_seen"]
            micros = int(seen.timestamp()) * 10**6 + seen.microsecond
            assert micros == theirs[column] // MICROSECOND
        handshake = row["handshake_ms"]
        assert (None if handshake is None else round(handshake * 1e6)) == theirs["handshake"]
