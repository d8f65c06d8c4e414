"""One header of each record, by its name."""

from __future__ import annotations

import pyarrow as pa

from kwire.records.arrow_types import HEADERS
from kwire.records.headers import Headers

ROWS = [[("a", b"1"), ("b", b"2"), ("a", b"3")], [], None, [("b", None), ("a", b"4")]]


def test_the_first_or_the_last_of_equal_names_is_given_and_counted() -> None:
    rows = [None if row is None else [{"key": key, "value": value} for key, value in row] for row in ROWS]
    headers = Headers(pa.array(rows, HEADERS))
    for name, last, values, counts in (
        ("a", False, [b"1", None, None, b"4"], [2, 0, 0, 1]),
        ("a", True, [b"3", None, None, b"4"], [2, 0, 0, 1]),
        ("b", False, [b"2", None, None, None], [1, 0, 0, 1]),
        ("c", False, [None] * 4, [0] * 4),
    ):
        column, often = headers.column(name, last=last)
        assert (column.to_pylist(), often.tolist()) == (values, counts)
    assert headers.column("a")[0].to_pylist() == headers.column("a", last=False)[0].to_pylist()
