"""The pictures of the docs are current, as far as that shows without a browser; they are small, and pages show them."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pictures
import pytest

from kwire.protocol.connection import TRANSITIONS, Step

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "pictures"
SVGS = sorted(FOLDER.glob("*.svg"))


def test_they_are_those_that_are_made() -> None:
    made = {name for name, _, _ in pictures.drawn()}
    assert {file.stem for file in SVGS} == made
    assert {file.stem for file in FOLDER.glob("*.png")} == set(pictures.SHOTS)


@pytest.mark.wide
def test_svgs_are_current() -> None:
    assert pictures.old([name for name, _, _ in pictures.drawn()]) == [], "make pictures"


def test_an_old_svg_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    assert pictures.main(["--check", "states"]) == 1
    assert "docs/pictures/states.svg is not current" in capsys.readouterr().err
    assert pictures.main(["states"]) == 0
    assert pictures.main(["--check", "states"]) == 0


def test_without_a_browser_screenshots_stay_and_a_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file: file.stat().st_mtime_ns for file in FOLDER.glob("*.png")}
    monkeypatch.setattr(pictures.browser, "found", lambda: None)
    assert pictures.main(["report-light"]) == 0
    assert "NO HEADLESS CHROMIUM" in capsys.readouterr().err
    assert {file: file.stat().st_mtime_ns for file in FOLDER.glob("*.png")} == before


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.png")), ids=lambda file: file.stem)
def test_a_screenshot_is_small_and_has_its_size(file: Path) -> None:
    data = file.read_bytes()
    assert len(data) <= 150_000
    shot = pictures.SHOTS[file.stem]
    assert struct.unpack(">II", data[16:24]) == (shot.width, shot.height)


@pytest.mark.parametrize("file", SVGS, ids=lambda file: file.stem)
def test_an_svg_is_one_that_fetches_nothing(file: Path) -> None:
    text = file.read_text("utf-8")
    ElementTree.fromstring(text)
    assert len(text) < 150_000
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    assert re.findall(r"(?:https?:|url\((?!#)|@import|<image|<script)", text.replace("http://www.w3.org/", "")) == []


def test_every_picture_is_on_a_page() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    shown = {
        Path(one).name
        for page in pages
        for pair in re.findall(r"!\[[^\]]*\]\(([^)]+)\)|(?:src|srcset)=\"([^\"]+)\"", page.read_text("utf-8"))
        for one in pair
    }
    assert {file.name for file in FOLDER.iterdir() if file.suffix != ".txt"} <= shown


def test_the_states_have_an_arrow_for_each_step() -> None:
    text = pictures.states()
    for state, steps in TRANSITIONS.items():
        for step, after in steps.items():
            assert step is Step.END or f"{state.name} -> {after.name}: " in text


@pytest.mark.parametrize("line", ["a -> b", "a @ 1: text", "a @ 0,0 strange: text", "anything"])
def test_a_line_that_is_no_diagram_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=line.split(" ")[0]):
        pictures.draw(f"title A picture\n{line}")
