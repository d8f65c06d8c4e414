"""What ``docs/make_site.py`` does besides Sphinx: which pages a build keeps, and which links are broken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from docs_site import site

OLD = 1_000_000_000


def pages(folder: Path, **texts: str) -> Path:
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)
    return folder


def built(tmp_path: Path) -> Path:
    """The sources of a build some time ago."""
    source = tmp_path / "source"
    assert not site.laid_out_before(pages(tmp_path / "new", one="# One\n", two="# Two\n\nText.\n"), source)
    for page in source.iterdir():
        os.utime(page, (OLD, OLD))
    return source


def test_pages_that_did_not_change_are_kept(tmp_path: Path) -> None:
    source = built(tmp_path)
    assert site.laid_out_before(pages(tmp_path / "new", one="# One\n", two="# Two\n\nMore.\n"), source)
    assert (source / "one.md").stat().st_mtime == OLD
    assert (source / "two.md").stat().st_mtime > OLD
    assert (source / "two.md").read_text() == "# Two\n\nMore.\n"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "texts",
    [
        {"one": "# One\n"},
        {"one": "# One\n", "two": "# Two\n\nText.\n", "three": "# Three\n"},
        {"one": "# One of two\n", "two": "# Two\n\nText.\n"},
    ],
    ids=["one goes", "one comes", "another title"],
)
def test_all_are_built_when_the_list_of_pages_changes(texts: dict[str, str], tmp_path: Path) -> None:
    source = built(tmp_path)
    assert not site.laid_out_before(pages(tmp_path / "new", **texts), source)
    assert {one.stem: one.read_text() for one in source.glob("*.md")} == texts


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "index.html").write_text('<a href="below/two.html#here">x</a><a href="https://example.org/">y</a>')
    (tmp_path / "below" / "two.html").write_text('<h1 id="here"></h1><a href="../index.html">x</a>')
    assert site.broken(tmp_path) == []
    (tmp_path / "below" / "two.html").write_text('<h1 id="there"></h1><a href="gone.html">x</a><img src="no.png">')
    assert sorted(site.broken(tmp_path)) == [
        "below/two.html: gone.html", "below/two.html: no.png", "index.html: below/two.html#here",
    ]  # fmt: skip
