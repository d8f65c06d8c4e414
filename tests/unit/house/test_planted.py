"""The defects of ``tests/planted`` can be planted in the sources as they are. ``make planted`` shows that all are
found."""

from __future__ import annotations

from collections import Counter

import planted
import pytest

from fuzz import __main__ as harnesses

DEFECTS = planted.defects()


@pytest.mark.parametrize("one", DEFECTS, ids=lambda one: one.name)
def test_a_planted_defect_fits_the_sources(one: planted.Defect) -> None:
    done = planted.apply(one.patch, planted.CHECKOUT, "--check")
    assert done.returncode == 0, done.stderr
    place = f"fuzz/{one.what}.py" if one.way == "fuzz" else one.what
    assert (planted.CHECKOUT / place).exists(), place
    assert one.name.startswith(f"{one.kind}-")


def test_a_harness_has_rounds_or_takes_bytes() -> None:
    # One that has neither is never run, and nobody notices.
    assert set(harnesses.HARNESSES) == {*harnesses.AT_RANDOM, *harnesses.GUIDED}


def test_there_are_twenty_of_all_kinds() -> None:
    kinds = Counter(one.kind for one in DEFECTS)
    assert kinds.keys() == set(planted.KINDS)
    assert kinds.total() >= 20
    assert min(kinds.values()) >= 3
