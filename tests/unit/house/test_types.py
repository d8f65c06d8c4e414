"""``make verify-types``: what of pyright's answer fails it. The answer itself takes pyright, which CI installs."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
faults = runpy.run_path(str(ROOT / ".ci" / "verify-types"))["faults"]


def _symbol(name: str, *, known: bool = True, ambiguous: bool = False, exported: bool = True) -> dict[str, Any]:
    place = {"start": {"line": 9, "character": 0}}
    why = [
        {"file": "a.py", "severity": "warning", "message": "No docstring found", "range": place},
        {"file": "a.py", "severity": "error", "message": "Type is missing\n  Inferred is int", "range": place},
        {"file": "", "severity": "error", "message": "Type of base class unknown"},
    ]
    return {
        "name": name, "isExported": exported, "isTypeKnown": known, "isTypeAmbiguous": ambiguous, "diagnostics": why
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "what"),
    [({"known": False}, "no known type"), ({"ambiguous": True}, "a type that has to be guessed")],
)
def test_a_public_name_without_a_known_type_is_said_with_its_place(given: dict[str, bool], what: str) -> None:
    good, private = _symbol("kwire.good"), _symbol("kwire.private", exported=False, **given)
    assert faults({"symbols": [good, private]}) == []
    assert faults({"symbols": [good, _symbol("kwire.bad", **given)]}) == [
        f"kwire.bad: {what}",
        "    a.py:10: Type is missing Inferred is int",
        "    Type of base class unknown",
    ]


def test_ci_verifies_types() -> None:
    assert "\nstep make verify-types\n" in (ROOT / ".ci" / "run").read_text()
    assert "$(PY) .ci/verify-types\n" in (ROOT / "Makefile").read_text()
