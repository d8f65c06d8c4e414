"""Modules above 800 lines and functions above 80 have a reason in the design notes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
NOTE = ROOT / "docs" / "design" / "2026-11-26-sizes.md"
MOST_LINES = {"module": 800, "function": 80}


def functions(node: ast.AST, within: str = "") -> list[tuple[str, int]]:
    """All functions below a node, with their lines; those of a class as ``Class.method``."""
    found: list[tuple[str, int]] = []
    for one in ast.iter_child_nodes(node):
        name = within
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{within}.{one.name}" if within else one.name
            if not isinstance(one, ast.ClassDef):
                assert one.end_lineno is not None
                found.append((name, one.end_lineno - one.lineno + 1))
        found += functions(one, name)
    return found


def sizes() -> dict[tuple[str, ...], int]:
    """Lines by module, and by module and function."""
    made: dict[tuple[str, ...], int] = {}
    for path in (ROOT / "kwire").rglob("*.py"):
        text = path.read_text()
        module = path.relative_to(ROOT / "kwire").as_posix()
        made[module,] = text.count("\n")
        made.update(((module, name), lines) for name, lines in functions(ast.parse(text)))
    return made


def listed() -> set[tuple[str, ...]]:
    rows = re.findall(r"^\| `([\w/]+\.py)`(?: `([\w.]+)`)? \| [\d,]+ \| \S", NOTE.read_text(), re.MULTILINE)
    return {(module, function) if function else (module,) for module, function in rows}


def test_what_is_large_has_its_reason() -> None:
    large = {name for name, lines in sizes().items() if lines > MOST_LINES["module" if len(name) == 1 else "function"]}
    assert len(large) > 10
    assert large <= listed()


def test_the_reasons_are_of_what_there_is() -> None:
    assert listed() <= sizes().keys()
