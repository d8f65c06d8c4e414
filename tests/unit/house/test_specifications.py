"""docs/reference/specifications.md names tests that exist, and every row names one or says why there is none."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
TESTS = ROOT / "tests"
TEXT = (ROOT / "docs" / "reference" / "specifications.md").read_text(encoding="utf-8")
ROWS = [line for line in TEXT.splitlines() if line.startswith("| ") and "shown by |" not in line]
NAMED = re.findall(r"`([a-z_/0-9]+\.py)(?:::(\w+))?`", TEXT)


def test_every_statement_has_a_test_or_a_reason() -> None:
    assert len(ROWS) > 45
    for row in ROWS:
        assert re.search(r"`[a-z_/0-9]+\.py", row) or "| out of scope" in row or "| not yet: " in row, row


def test_the_tests_that_are_named_exist() -> None:
    assert len(NAMED) > 45
    for file, name in NAMED:
        found = [path for path in (TESTS / "unit" / file, TESTS / file) if path.is_file()]
        assert len(found) == 1, file
        if name:
            assert re.search(rf"^(async )?def {name}\(", found[0].read_text(encoding="utf-8"), re.MULTILINE), name
