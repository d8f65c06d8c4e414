"""The recipes of CONTRIBUTING.md, and the diffs in them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECIPES: dict[str, str] = dict(
    re.findall(r"^### (.*?)\n(.*?)(?=^### |\Z)", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL | re.MULTILINE)
)
_DIFF = re.compile(r"^( *)```diff\n\1# (\S+)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)


def diffs(recipe: str) -> list[tuple[str, list[str]]]:
    """The files that a recipe changes, each with the lines of its diff."""
    return [
        (name, [one.removeprefix(indent) for one in body.splitlines()])
        for indent, name, body in _DIFF.findall(RECIPES[recipe])
    ]


def changed(text: str, lines: list[str]) -> str:
    """``text`` after a diff: a line with ``-`` becomes the ``+`` lines after it; other lines are found and kept."""
    at = 0
    for line in lines:
        mark, content = line[:1], line[1:] + "\n"
        if mark == "+":
            text = text[:at] + content + text[at:]
            at += len(content)
            continue
        found = re.search("^" + re.escape(content), text[at:], re.MULTILINE)
        assert found, f"there is no line {content!r} from {at} on"
        begin, at = at + found.start(), at + found.end()
        if mark == "-":
            text, at = text[:begin] + text[at:], begin
    return text
