"""Limits as a text: what the command line and Spark take."""

from __future__ import annotations

import pytest

from kwire.limits import DEFAULT_LIMITS, Limits


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("", DEFAULT_LIMITS),
        ("nesting=2", Limits(nesting=2)),
        (" decompressed = 64MiB , total=1k ", Limits(decompressed=64 << 20, total=1000)),
        ("decompressed=3 GB", Limits(decompressed=3 * 10**9)),
        ("decompressed=7Ki,", Limits(decompressed=7 << 10)),
    ],
)
def test_limits_have_units(text: str, limits: Limits) -> None:
    assert Limits.parse(text) == limits


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("depth=1", "no limit 'depth'"),
        ("nesting", "not ''"),
        ("nesting=-1", "not '-1'"),
        ("nesting=1.5", "not '1.5'"),
        ("nesting=٣", "not"),
        ("nesting=1BB", "not '1BB'"),
        ("nesting=" + "9" * 5000, "not"),
        ("nesting=1,nesting=1", "given twice"),
        ("total=2GiB", "1 GiB"),
    ],
)
def test_what_is_no_limit_is_said(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Limits.parse(text)
