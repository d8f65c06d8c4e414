"""The diffs of CONTRIBUTING.md fit the files that they name. ``test_contributing.py`` carries them out."""

from __future__ import annotations

import pytest
from recipe_diffs import RECIPES, ROOT, changed, diffs


@pytest.mark.parametrize("recipe", [one for one in RECIPES if diffs(one)])
def test_its_diffs_fit_what_is_there(recipe: str) -> None:
    for name, lines in diffs(recipe):
        before = (ROOT / name).read_text() if (ROOT / name).exists() else ""
        assert changed(before, lines) != before, name


def test_a_diff_that_does_not_fit_is_found() -> None:
    assert changed("a\nb\nc\n", ["-b", "+x", "+y", " c", "+z"]) == "a\nx\ny\nc\nz\n"
    with pytest.raises(AssertionError, match="there is no line 'd"):
        changed("a\n", ["-d", "+e"])


def test_most_recipes_have_diffs() -> None:
    assert len([one for one in RECIPES if diffs(one)]) >= 10
