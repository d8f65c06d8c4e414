"""Telemetry sessions over several captures: what was told in one is known in the next."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from telemetry_seeds import SEEDS, before_interval, nothing, seeded, too_many_bytes

from kwire import capture
from kwire.errors import CaptureError
from kwire.events import telemetry
from kwire.limits import DEFAULT_LIMITS
from kwire.tables import reading
from kwire.tables.client_metrics import SCHEMA, in_batches, rows_of
from kwire.tables.subscribed import FILLED, Judge
from kwire.testing import packets

Rows = list[dict[str, Any]]


def cut(data: bytes, *places: int) -> list[io.BytesIO]:
    """The capture in several, before the packets with these numbers."""
    whole = packets.read(data)
    return [
        io.BytesIO(packets.write_pcap(whole[a:b], nano=True)) for a, b in itertools.pairwise([0, *places, len(whole)])
    ]


def rows(batches: Any) -> Rows:
    return [row for batch in batches for row in batch.to_pylist()]


def without_place(some: Rows) -> list[str]:
    """Frames and connections are numbered by the capture that they begin in."""
    return [str({name: one for name, one in row.items() if name not in ("frame", "connection")}) for row in some]


@pytest.mark.wide(keep=4)
@pytest.mark.parametrize("seed", SEEDS, ids=lambda one: one.__name__)
def test_what_is_seeded_is_what_is_reported_however_the_capture_is_cut(seed: Callable[[Any], Any]) -> None:
    data, expected = seeded("zstd", seed)
    whole = rows(capture.read(io.BytesIO(data), "client_metrics"))
    count = len(packets.read(data))
    found = rows(telemetry.violations(cut(data, count // 2)))
    assert sorted(map(str, expected)) == sorted(str((row["client_id"], row["rule"], row["metric"])) for row in found)
    # Not only the violations: subscription, interval, `requested` are those of the capture that was never cut.
    places = [n * count // 9 for n in range(1, 9)]
    assert without_place(rows(capture.read(cut(data, *places), "client_metrics"))) == without_place(whole)
    # Alone, the later files do not know what was asked for.
    apart = [row for one in cut(data, *places) for row in rows(capture.read(one, "client_metrics"))]
    assert without_place(apart) != without_place(whole)


def test_rows_with_their_account_are_filled_in_later_and_a_judge_goes_on_elsewhere() -> None:
    for seed in (before_interval, too_many_bytes):
        data, _ = seeded("lz4", seed)
        judge = Judge()
        made: Rows = []
        sources = cut(data, 14, 28)
        columns = [*SCHEMA.names, "account"]
        for batch in capture.read(sources, "client_metrics", columns=columns):
            for row in rows_of(batch):
                account = row.pop("account")
                filled = judge.filled(row, None if account is None else json.loads(account))
                if filled is not None:
                    made.append(filled)
                if len(made) % 50 == 0:
                    state = json.loads(json.dumps(judge.save()))
                    # Within a push it cannot be handed on.
                    if filled is None:
                        judge = Judge()
                        judge.restore(state)
                        assert judge.save() == state
        found = rows(in_batches(iter(made), SCHEMA))
        assert without_place(found) == without_place(rows(capture.read(io.BytesIO(data), "client_metrics")))


def test_with_the_account_nothing_is_filled_in() -> None:
    data, _ = seeded("none", nothing)
    found = rows(capture.read(io.BytesIO(data), "client_metrics", columns=["frame", *FILLED[7:], "account"]))
    assert {row["status"] for row in found} == {"ok", "asked", "subscribed", "answered"}
    assert not any(row["requested"] or row["violations"] for row in found)
    kinds = [json.loads(row["account"])[0] for row in found if row["account"] is not None]
    assert set(kinds) == {"asks", "told", "pushes", "answered"}
    assert kinds.count("answered") == sum(row["status"] == "answered" for row in found)


def test_clients_go_on_in_another_capture_and_their_connections_do_not() -> None:
    data, _ = seeded("gzip", nothing)
    half = len(packets.read(data)) // 2
    first, second = cut(data, half)
    memory: dict[str, Any] = {}
    told = rows(batch for _, batch in reading.read(first, {"client_metrics": None}, memory=memory))
    then = rows(batch for _, batch in reading.read(second, {"client_metrics": None}, memory=memory))
    assert told
    assert any(row["requested"] for row in then if row["status"] == "ok")
    assert not [row for row in then if row["violations"]]


def test_the_rows_of_a_push_are_cut_where_the_subscription_makes_them_too_many() -> None:
    judge = Judge(DEFAULT_LIMITS)
    instance, long = "0" * 31 + "1", ["m" * 60_000]
    place = {"capture": "", "connection": 1, "timestamp": 0, "client_id": "c"}
    told = ["told", 0, 7, 0, instance, 5, 1000, long, [4], 1 << 20, True]
    assert judge.filled({**place, "frame": 1, "status": "asked"}, ["asks", 0, 7, "0" * 32])
    assert judge.filled({**place, "frame": 2, "status": "subscribed"}, told)
    push = ["pushes", 10**9, 8, instance, 5, False, 0, 100]
    point = {**place, "frame": 3, "status": "ok", "metric": "m", "temporality": None, "type": "gauge"}
    made = [judge.filled(dict(point), push if n == 0 else None) for n in range(1000)]
    kept = [row for row in made if row is not None]
    assert 500 < len(kept) < 600
    assert {row["status"] for row in kept[:-1]} == {"ok"}
    assert kept[-1]["status"] == "too_large"
    assert "metric" not in kept[-1]
    assert judge.is_over
    # The next frame is another one.
    assert judge.filled({**point, "frame": 4}, ["pushes", 3 * 10**9, 9, instance, 5, False, 0, 100]) is not None


def test_several_captures_have_their_errors_behind_all_rows() -> None:
    data, _ = seeded("none", nothing)
    sources = cut(data, 14, 28)
    sources[1] = io.BytesIO(b"this is no capture")
    found: Rows = []
    batches = capture.read(sources, "client_metrics", name=["a", "b", "c"])
    with pytest.raises(CaptureError, match="b at byte 0: not a capture"):
        found.extend(row for batch in batches for row in batch.to_pylist())
    assert {row["capture"] for row in found} == {"a", "c"}
    with pytest.raises(ValueError, match="2 names for 3 captures"):
        capture.read(sources, name=["a", "b"])
    with pytest.raises(ValueError, match="one capture has one name"):
        capture.read(sources[0], name=["a"])  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="the table connections has rows of whole files"):
        capture.read(sources, "connections")
