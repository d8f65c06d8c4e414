"""Builds the site: ``make site``, or ``python docs/make_site.py [OUT]``. It needs ``pip install 'kwire[docs]'``.

The pages are laid out below ``build/site/source`` as they lie in the tree, so that links between them hold. Pages that
git does not have are added: one for each API, KIP and module, the notebooks as pages, and the protocol explorer, which
is one file of HTML. Sphinx treats every warning as an error. Links of what it made are checked then. A page is kept if
its source did not change since the last build.
"""

from __future__ import annotations

import base64
import functools
import importlib
import json
import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import apis  # noqa: E402

import kwire  # noqa: E402

BUILD: Final = ROOT / "build" / "site"
COPIED: Final = (
    "*.md",
    "docs/**/*.md",
    "docs/**/*.svg",
    "docs/**/*.png",
    "schemas/README.md",
    "schemas/*.txt",
    "tests/regressions/*.txt",
    "examples/*.py",
)
LINK: Final = re.compile(r"\]\(([\w./-]+\.md)")
FOLDERS: Final = {
    "docs/design/README.md": "2026*",
    "docs/reference/tables/README.md": "[a-z]*",
    "docs/how-to/sql/README.md": "[a-z]*",
}
"""Pages whose folders' other pages are below them."""
INTERNAL: Final = ("kwire.cli", "kwire.kernels", "kwire.report.assets")
"""Packages that nobody imports to use kwire."""
AGAIN: Final = ("kwire.records.columnar", "kwire.records.columns", "kwire.testing.impair", "kwire.testing.kinds")
"""Modules whose names their package has too: they are shown there."""


def modules() -> Iterator[tuple[str, Any]]:
    """The modules that say what of them is public, by their names."""
    for one in pkgutil.walk_packages(kwire.__path__, "kwire."):
        if (
            one.name not in AGAIN
            and not one.name.startswith(INTERNAL)
            and not any(part.startswith("_") for part in one.name.split("."))
        ):
            module = importlib.import_module(one.name)
            if getattr(module, "__all__", None):
                yield one.name, module


def python_pages() -> Iterator[tuple[str, str]]:
    """A page for each public module, made of docstrings."""
    names = ["kwire"]
    about = ["| [`kwire`](kwire.md) | the codec: decode and encode frames and messages |"]
    yield "docs/reference/python/kwire.md", _module("kwire", kwire)
    for name, module in modules():
        names.append(name)
        first = (
            " ".join((module.__doc__ or "").strip().partition("\n\n")[0].split()).replace("``", "`").replace("|", "\\|")
        )
        about.append(f"| [`{name}`]({name}.md) | {first} |")
        yield f"docs/reference/python/{name}.md", _module(name, module)
    listed = "\n".join(about)
    toc = "\n".join(names)
    yield (
        "docs/reference/python/index.md",
        f"# Python API\n\n| module | what is there |\n|---|---|\n{listed}\n\n```{{toctree}}\n:hidden:\n\n{toc}\n```\n",
    )


def _module(name: str, module: Any) -> str:
    # A name is shown where it is defined, and by packages that offer it.
    names = [] if hasattr(module, "__path__") else [one for one in module.__all__ if _from_elsewhere(module, one)]
    left = f"   :exclude-members: {', '.join(names)}\n" if names else ""
    return f"# {name}\n\n```{{eval-rst}}\n.. automodule:: {name}\n{left}```\n"


def _from_elsewhere(module: Any, name: str) -> bool:
    return getattr(getattr(module, name), "__module__", module.__name__) != module.__name__


def notebook(path: Path) -> str:
    """A notebook as a page: text, code, and what it printed."""
    parts = []
    heading = ""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            heading = text.partition("\n")[0].lstrip("# ")
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            shown = "".join(output.get("text", data.get("text/plain", "")))
            if "image/svg+xml" in data:
                # Not as it stands: two charts on a page may use the same ids.
                picture = base64.b64encode("".join(data["image/svg+xml"]).encode()).decode()
                parts.append(f'<img alt="Chart: {heading}" src="data:image/svg+xml;base64,{picture}">')
            elif "text/html" in data:
                parts.append("".join(data["text/html"]))
            elif shown:
                parts.append(f"```text\n{shown.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def sections() -> Iterator[tuple[str, list[str]]]:
    """The parts of docs/README.md with the pages that each names, in order."""
    text = (ROOT / "docs" / "README.md").read_text("utf-8")
    seen: set[str] = set()
    for title, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE):
        found = [one for one in LINK.findall(body) if one not in seen and not one.startswith("..")]
        seen.update(found)
        yield title, [f"docs/{one.removesuffix('.md')}" for one in dict.fromkeys(found)]


def home() -> str:
    """The first page of the site."""
    readme = (ROOT / "docs" / "index.md").read_text("utf-8").replace("](", "](docs/")
    tutorials = sorted(one.relative_to(ROOT).as_posix() for one in (ROOT / "docs" / "tutorial").glob("*.md"))
    books = sorted(one.relative_to(ROOT).as_posix() for one in (ROOT / "docs" / "notebooks").glob("*.ipynb"))
    trees = [
        (title, [one.rpartition(".")[0] for one in some])
        for title, some in (("Tutorial", tutorials), ("Notebooks", books))
    ]
    for title, pages in sections():
        more = [
            "docs/reference/kips/index",
            "docs/reference/python/index",
            "schemas/README",
        ]
        trees.append((title, [*pages, *more] if title == "Reference" else pages))
    trees.append(("Project", ["README", "docs/README", "ARCHITECTURE", "CONTRIBUTING", "SECURITY", "CHANGELOG"]))
    for title, pages in trees:
        readme += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(pages) + "\n```\n"
    return readme


def lay_out(source: Path, extra: Path) -> None:
    """Writes the sources of the site, and the explorer."""
    for pattern in COPIED:
        for one in sorted(ROOT.glob(pattern)):
            place = source / one.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(one, place)
    made = [*python_pages(), *((f"docs/{name}", text) for name, text in apis.site_pages()), ("index.md", home())]
    made += [(f"docs/notebooks/{one.stem}.md", notebook(one)) for one in (ROOT / "docs" / "notebooks").glob("*.ipynb")]
    for name, text in made:
        place = source / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
    (source / "docs" / "index.md").unlink()
    for name, pattern in FOLDERS.items():
        place = source / name
        place.write_text(f"{place.read_text('utf-8')}\n```{{toctree}}\n:hidden:\n:glob:\n\n{pattern}\n```\n", "utf-8")
    for page in source.rglob("*.md"):
        text = page.read_text("utf-8")
        changed = re.sub(r"(\]\([\w./-]+)\.ipynb\)", r"\1.md)", text)
        if changed != text:
            page.write_text(changed, "utf-8")
    (extra / "explorer").mkdir(parents=True)
    (extra / "explorer" / "index.html").write_text(explorer(), "utf-8")
    pictures = ROOT / "docs" / "pictures"
    if pictures.exists():
        shutil.copytree(pictures, extra / "docs" / "pictures")


def explorer() -> str:
    """The protocol explorer, with its data in it."""
    text = (ROOT / "docs" / "explorer.html").read_text("utf-8")
    return text.replace(">DATA<", ">" + apis.explorer_data().replace("</", "<\\/") + "<", 1)


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.ids.add(value)
            if name in ("href", "src") and value and (tag, name) != ("link", "href"):
                self.links.append(value)


def broken(folder: Path) -> list[str]:
    """The links between pages of a site that lead nowhere."""
    pages = {page: _Page(page.read_text("utf-8")) for page in folder.rglob("*.html")}

    @functools.cache
    def meant(base: Path, path: str) -> tuple[Path, bool]:
        # Pages of a folder list the same pages: a hundred thousand links lead to a thousand files.
        target = (base / unquote(path)).resolve()
        target = target / "index.html" if target.is_dir() else target
        return target, target.exists()

    wrong = []
    for page, found in pages.items():
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target, there = meant(page.parent, parts.path) if parts.path else (page, True)
            named = target in pages and target.parent.name != "explorer" and parts.fragment
            if not there or (named and unquote(parts.fragment) not in pages[target].ids):
                wrong.append(f"{page.relative_to(folder)}: {link}")
    return wrong


def laid_out_before(new: Path, source: Path) -> bool:
    """Moves a layout to the place of the last one. Returns whether pages that did not change are still right.

    Then only files that differ are written, and Sphinx builds only their pages. Every page lists others by their
    titles: when one comes, goes or gets another title, all are built.
    """
    titles = [f"{one.relative_to(new)} {one.read_text('utf-8').partition(chr(10))[0]}" for one in new.rglob("*.md")]
    settings = [(ROOT / "docs" / one).read_text("utf-8") for one in ("conf.py", "navigation.py")]
    listed = "\n".join([kwire.__version__, *sorted(titles), *settings])
    known = source.parent / "listed.txt"
    if not source.exists() or not known.exists() or known.read_text("utf-8") != listed:
        shutil.rmtree(source, ignore_errors=True)
        new.rename(source)
        known.write_text(listed, "utf-8")
        return False
    there = {one.relative_to(new) for one in new.rglob("*") if one.is_file()}
    for one in [one for one in source.rglob("*") if one.is_file() and one.relative_to(source) not in there]:
        one.unlink()
    for one in there:
        place = source / one
        if not place.exists() or place.read_bytes() != (new / one).read_bytes():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(new / one, place)
    shutil.rmtree(new)
    return True


def main(arguments: list[str]) -> int:
    """Builds the site into ``OUT`` (build/site/html). Returns 1 where a page or a link is wrong."""
    out = Path(arguments[0]) if arguments else BUILD / "html"
    new, trees = BUILD / "new", BUILD / "doctrees"
    for one in (new, BUILD / "extra"):
        shutil.rmtree(one, ignore_errors=True)
    lay_out(new, BUILD / "extra")
    if not (laid_out_before(new, BUILD / "source") and (out / "index.html").exists()):
        for one in (trees, out):
            shutil.rmtree(one, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", str(ROOT / "docs")]
    if subprocess.run([*command, "-b", "html", "-d", str(trees), str(BUILD / "source"), str(out)]).returncode:
        # Sphinx warns about a page only while it reads it.
        shutil.rmtree(trees, ignore_errors=True)
        return 1
    wrong = broken(out)
    for one in wrong:
        print(one, file=sys.stderr)
    print(f"{len(list(out.rglob('*.html')))} pages in {out}, {len(wrong)} broken links")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
