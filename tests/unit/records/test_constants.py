"""Arrays of one value: right whatever was asked before, and bounded."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kwire.records import constants
from kwire.records.arrow_types import HEADERS
from kwire.records.constants import Constants


@pytest.mark.parametrize(
    ("kind", "value", "row"),
    [
        (pa.string(), "orders", "orders"),
        (pa.string(), None, None),
        (pa.bool_(), True, True),
        (pa.int8(), 2, 2),
        (HEADERS, (), []),
    ],
)
def test_every_row_has_the_value_whatever_was_asked_before(kind: Any, value: Any, row: Any) -> None:
    some = Constants()
    for rows in (3, 5000, 0, 1, 2000, 5000):
        made = some.get(kind, value, rows)
        made.validate(full=True)
        assert made.type == kind
        assert made.to_pylist() == [row] * rows


def test_keeping_one_more_looks_at_none_of_the_others() -> None:
    class Counted:
        """An array whose bytes are asked for."""

        nbytes, asked = 1000, 0

        def __getattribute__(self, name: str) -> Any:
            Counted.asked += name == "nbytes"
            return object.__getattribute__(self, name)

    some = Constants()
    for n in range(1000):
        some._keep((n, n), Counted())
    assert Counted.asked == 1000


def test_what_is_kept_is_bounded_and_the_oldest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "KEPT", 30_000)
    monkeypatch.setattr(constants, "LARGEST", 20_000)
    some = Constants()
    for n in range(50):
        assert some.get(pa.string(), f"topic-{n}", 10)[9].as_py() == f"topic-{n}"
        assert sum(array.nbytes for array in some._made.values()) <= 30_000
    kept = {value for _, value in some._made}
    assert "topic-49" in kept
    assert "topic-0" not in kept
    before = set(some._made)
    long = "x" * 1000
    assert some.get(pa.string(), long, 2).to_pylist() == [long, long]
    assert len(some.get(pa.string(), "topic-49", 100_000)) == 100_000
    assert set(some._made) == before
