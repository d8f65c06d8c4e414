"""Pages are short, and every link between them leads somewhere: to a file, and to a heading of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("schemas/*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
HEADS = ("docs/README.md", "docs/index.md")
MAKE_PAGES = ("test_contributing.py", "test_docs_made.py")
MOST_WORDS = 1500
MADE = re.compile(r"<!-- made: .*?<!-- end -->|\A.*?made from\s+the code\s+\(`make docs`\)\..*\Z", re.DOTALL)
"""What nobody reads as a whole: parts and pages that are made."""
LONG = {"docs/results/real-brokers.md": "made by tests/broker/every_api.py"}
"""Pages that may be longer, and why."""


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    """What a link may name after ``#``, as GitHub makes it of headings."""
    text = CODE.sub("", page.read_text("utf-8"))
    found: set[str] = set(re.findall(r'<a id="([\w-]+)">', text))
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 1
        while slug in found:
            slug, number = f"{slug.removesuffix(f'-{number - 1}')}-{number}", number + 1
        found.add(slug)
    return found


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    wrong = []
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", CODE.sub("", page.read_text("utf-8")))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_broken_link_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("# A `b` c\n\n[x](#a-b-c) [y](#d) [z](no.md) [u](https://x.org/no.md) `[v](no.md)`\n")
    assert broken(page) == ["#d", "no.md"]


@pytest.mark.parametrize("folder", ["kwire", "tests", "fuzz", "benchmarks", "examples"])
def test_pages_that_sources_name_are_there(folder: str) -> None:
    for source in (ROOT / folder).rglob("*.py"):
        for page in re.findall(r"\bdocs/[\w/-]+\.md\b", source.read_text("utf-8")):
            assert (ROOT / page).exists() or source.name in MAKE_PAGES, (source, page)


@pytest.mark.parametrize("page", [one for one in PAGES if name(one).startswith("docs/")], ids=name)
def test_a_page_is_read_at_once(page: Path) -> None:
    assert len(MADE.sub("", page.read_text("utf-8")).split()) <= MOST_WORDS or name(page) in LONG


def test_every_page_is_in_the_list() -> None:
    listed = LINK.findall((ROOT / "docs" / "README.md").read_text("utf-8"))
    reached = {(ROOT / "docs" / one.partition("#")[0]).resolve() for one in listed}
    folders = {page.parent for page in reached if page.name == "README.md"}
    missing = [name(one) for one in PAGES if one not in reached and one.parent not in folders]
    assert [one for one in missing if one.startswith("docs/") and one not in HEADS] == []
