"""The tutorials run as they stand, and print what they show; ``tests/spark/test_tutorial.py`` runs that of Spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from shown_output import ROOT, Step, record, run, same, steps

PAGES = sorted(file.relative_to(ROOT).as_posix() for file in (ROOT / "docs" / "tutorial").glob("[a-z]*.md"))
SPARK = "docs/tutorial/data-engineer.md"


@pytest.mark.wide
@pytest.mark.parametrize("page", [page for page in PAGES if page != SPARK])
def test_a_tutorial_prints_what_it_shows(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    found = steps(page)
    assert len([step for step in found if step.shown]) >= 2
    for step in found:
        printed = run(step, space)
        assert step.shown is None or same(step.shown, printed), step.code


def test_the_first_page_names_each_of_them() -> None:
    text = (ROOT / "docs" / "tutorial" / "README.md").read_text("utf-8")
    assert sorted(re.findall(r"\]\(([\w-]+\.md)\)", text)) == [Path(page).name for page in PAGES]


@pytest.mark.parametrize("page", ["README.md", *PAGES, "docs/tutorial/README.md"])
def test_each_link_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)|(?:src|srcset)=\"([^\"]+)\"", text):
        for one in filter(None, target):
            assert one.startswith("https://") or ((ROOT / page).parent / one).exists(), one


# --- what the tests above hold


@pytest.mark.parametrize(
    ("shown", "printed", "right"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\n", "a\n", True),
        ("a\nb\n", "a\nb\nc\n", False),
        ("a.\n", "ab\n", False),
        ("...\nd\n", "a\n", False),
    ],
)
def test_what_is_shown_is_compared(shown: str, printed: str, right: bool) -> None:
    assert same(shown, printed) is right


def test_outputs_are_recorded_where_a_page_shows_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ kwire schema Heartbeat \\\n    --version 4 | head -1\nold\n"
        "$ kwire schema 12 | head -1\n...\n```\n"
        "```python\nprint(1)\n```\n\n```text\nold\n```\n"
    )
    name = page.as_posix()
    assert [step.kind for step in steps(name)] == ["command", "command", "python"]
    record(name, tmp_path)
    first, second, third = steps(name)
    assert first.shown == run(first, {}) != "old\n"
    assert second == Step("command", "kwire schema 12 | head -1", "...\n")
    assert third.shown == "1\n"


def test_a_block_that_nothing_runs_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```sh\nls\n```\n")
    with pytest.raises(ValueError, match="a block of sh"):
        steps(page.as_posix())
