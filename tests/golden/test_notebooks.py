"""The notebooks run, show what they say that they show, and are made for people who read each once."""

from __future__ import annotations

import base64
import json
import re
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import notebooks
import pytest
from docs_site import site

PATHS = sorted(notebooks.FOLDER.glob("*.ipynb"))
each = pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])


def book(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cells"]
    return found


def charts(path: Path) -> list[str]:
    outputs = [one for cell in notebooks.cells(path) for one in cell["outputs"]]
    return ["".join(one["data"]["image/svg+xml"]) for one in outputs if "image/svg+xml" in one.get("data", {})]


@each
@pytest.mark.wide
def test_a_notebook_shows_its_outputs(path: Path) -> None:
    pytest.importorskip("IPython")
    pytest.importorskip("matplotlib")
    ran = notebooks.ran(path)
    kept = [cell["outputs"] for cell in notebooks.cells(path)]
    assert any(ran)
    for number, (now, before) in enumerate(zip(ran, kept, strict=True), 1):
        assert notebooks.texts(now) == notebooks.texts(before), f"cell {number}: python tests/golden/notebooks.py"
        kinds = [[sorted(one.get("data", ())) for one in outputs] for outputs in (now, before)]
        assert kinds[0] == kinds[1]


def test_every_notebook_is_run() -> None:
    assert {path.stem for path in PATHS} == set(notebooks.CAPTURES)
    extras = tomllib.loads((notebooks.GOLDEN.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    needed = extras["optional-dependencies"]["notebooks"]
    assert [re.split(r"\W", one)[0] for one in needed] == ["ipython", "matplotlib"]
    assert any("notebooks" in one for one in extras["optional-dependencies"]["dev"])


@each
def test_it_begins_with_a_question_and_ends_with_the_answer(path: Path) -> None:
    cells = book(path)
    assert 8 <= len(cells) <= 15
    first, last = ("".join(cells[at]["source"]) for at in (0, -1))
    assert re.match(r"# [^\n]+\?\n\n\*\*The question:\*\* ", first)
    assert re.match(r"## The answer\n\n\*\*[^\n]+\*\*\n\n- ", last)
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code"] * (len(cells) // 2) + ["markdown"]


@each
def test_its_charts_are_small_and_fetch_nothing(path: Path) -> None:
    found = charts(path)
    assert found
    assert path.stat().st_size < 150_000
    for one in found:
        ET.fromstring(one)
        assert not re.search(r"<script|<image|href=\"(?!#)|url\((?!#)|@import", one)


@each
def test_its_charts_can_be_read_on_white_and_on_black(path: Path) -> None:
    def light(colour: str) -> float:
        parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        return sum(
            weight * (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)
            for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True)
        )

    colours = {one for chart in charts(path) for one in re.findall(r"#[0-9a-f]{6}\b", chart)}
    assert notebooks.GREY in colours
    for one in colours:
        # Of pages: #ffffff and #131416.
        contrasts = 1.05 / (light(one) + 0.05), (light(one) + 0.05) / (light("#131416") + 0.05)
        assert min(contrasts) >= 3, one


@each
def test_the_site_shows_its_charts_and_tables(path: Path) -> None:
    page = site.notebook(path)
    pictures = re.findall(r'^<img alt="Chart: ([^"]+)" src="data:image/svg\+xml;base64,([^"]+)">$', page, re.MULTILINE)
    assert [base64.b64decode(data).decode() for _, data in pictures] == charts(path)
    assert all(f"## {name}\n" in page for name, _ in pictures)
    tables = [one for one in page.split("\n\n") if one.startswith("<style>")]
    outputs = [one.get("data", {}) for cell in notebooks.cells(path) for one in cell["outputs"]]
    assert [one.rstrip("\n") for one in tables] == ["".join(one["text/html"]) for one in outputs if "text/html" in one]


def test_what_a_cell_raises_is_no_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("IPython")
    pytest.importorskip("matplotlib")
    cells = [{"cell_type": "code", "source": ["print(1)\n", "1 / 0"], "outputs": []}]
    path = tmp_path / "parser.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    with pytest.raises(ZeroDivisionError):
        notebooks.ran(path)


@pytest.mark.wide
def test_a_second_run_keeps_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("IPython")
    pytest.importorskip("matplotlib")
    text = "import matplotlib.pyplot as plt\nprint('a')\nplt.plot([1, 2])\nplt.show()\n[1]"
    path = tmp_path / "parser.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": [text], "outputs": []}]}))
    notebooks.write(path)
    first = path.read_bytes()
    outputs = json.loads(first)["cells"][0]["outputs"]
    assert [one["output_type"] for one in outputs] == ["stream", "execute_result", "display_data"]
    assert outputs[0]["text"] == ["a\n"]
    assert outputs[1]["data"] == {"text/plain": ["[1]"]}
    notebooks.write(path)
    assert path.read_bytes() == first
