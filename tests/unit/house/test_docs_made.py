"""What docs take from the code (``docs/fill.py``) is current."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

FILL = Path(__file__).parents[3] / "docs" / "fill.py"


@pytest.fixture(scope="module")
def fill() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fill", FILL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_what_the_code_says(fill: ModuleType) -> None:
    assert [page.name for page, text in fill.pages() if page.read_text() != text] == [], "make docs"


def test_each_part_is_on_a_page(fill: ModuleType) -> None:
    marked = {found[1] for page, _ in fill.pages() for found in fill.MARKED.findall(page.read_text())}
    assert marked == set(fill.PARTS)


def test_an_old_page_is_reported_and_written(
    fill: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "some.md"
    page.write_text("before <!-- made: tunnels -->old<!-- end --> after\n")
    monkeypatch.setattr(fill, "WHOLE", {"made.md": lambda: "made\n"})
    monkeypatch.setattr(fill, "DOCS", tmp_path)
    assert fill.main(["--check"]) == 1
    assert "docs/some.md is not what the code says" in capsys.readouterr().err
    assert fill.main([]) == 0
    assert page.read_text() == f"before <!-- made: tunnels -->{fill.tunnels('')}<!-- end --> after\n"
    assert fill.main(["--check"]) == 0
