"""The mutants of ``tests/support/mutants.py`` fit the sources, and name tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from mutants import MUTANTS

ROOT = Path(__file__).parents[3]


def test_each_mutant_changes_one_place_and_names_a_test() -> None:
    for one in MUTANTS:
        assert (ROOT / "kwire" / one.file).read_text().count(one.old) == 1, one
        assert one.old != one.new
        file, _, name = one.test.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / "tests" / "unit" / file).read_text(), re.MULTILINE), one.test
