"""The list of pages at the side of the site: an extension of Sphinx.

Sphinx makes the list of all pages for each page, and so 583 times 583 entries. That is most of the time that a build
takes. On a phone nobody finds anything in such a list either. So the pages of a long part are in it only while one
looks at that part. The theme, Furo, reads a list as HTML and puts boxes into it, with which parts are opened. That was
a third of the rest. Here the list has them at once. Rules:

- A page has all pages of the parts that the first page names, as far as they are not long.
- A part is long if it has more than ``LONG`` pages: APIs, KIPs, modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from html import escape
from itertools import count
from typing import Any, Final

from sphinx import addnodes

__all__ = ["LONG", "setup"]

LONG: Final = 60
"""The most pages of a part that all pages list (int)."""
BESIDE: Final = {"Reference": ("Protocol explorer", "explorer/index.html")}
"""Pages that Sphinx does not make, by the part that lists them first: their title, and where they are."""


class _Pages:
    """The pages of a site, as their toctrees join them."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._env = app.env
        self._titles = {name: escape(title.astext()) for name, title in app.env.titles.items()}
        root = app.env.get_doctree(app.config.root_doc)
        self._parts = [(one["caption"], [ref for _, ref in one["entries"]]) for one in root.findall(addnodes.toctree)]
        self._above = {below: page for page, some in app.env.toctree_includes.items() for below in some}

    def tree(self, page: str) -> str:
        """The list at the side of a page, as the HTML that Furo would make of Sphinx's."""
        path = [page]
        while path[-1] in self._above:
            path.append(self._above[path[-1]])
        boxes = count(1)
        parts = []
        for caption, pages in self._parts:
            parts.append(f'<p class="caption" role="heading"><span class="caption-text">{escape(caption)}</span></p>')
            listed = [self._entry(one, 1, page, path, boxes) for one in pages]
            if caption in BESIDE:
                title, place = BESIDE[caption]
                link = "../" * page.count("/") + place
                listed.insert(0, f'<li class="toctree-l1"><a class="reference external" href="{link}">{title}</a></li>')
            parts.append(f"<ul>{''.join(listed)}</ul>")
        return "\n".join(parts)

    def _entry(self, one: str, depth: int, page: str, path: list[str], boxes: Iterator[int]) -> str:
        current = " current" if one in path else ""
        kinds = "reference internal" + (" current" if one == page else "")
        link = "#" if one == page else self._app.builder.get_relative_uri(page, one)
        below = self._env.toctree_includes.get(one, [])
        opens = listed = ""
        if below and (len(below) <= LONG or current):
            opens = " has-children"
            box = f"toctree-checkbox-{next(boxes)}"
            listed = (
                f'<input type="checkbox" class="toctree-checkbox" id="{box}" name="{box}" role="switch" '
                f'aria-label="Toggle navigation of {self._titles[one]}"{" checked" if current else ""}/>'
                f'<label for="{box}"><span class="icon"><svg><use href="#svg-arrow-right"></use></svg></span></label>'
                f"<ul>{''.join(self._entry(each, depth + 1, page, path, boxes) for each in below)}</ul>"
            )
        kind = f"toctree-l{depth}{current}{opens}{' current-page' if one == page else ''}"
        return f'<li class="{kind}"><a class="{kinds}" href="{link}">{self._titles[one]}</a>{listed}</li>'


def _look_up_once(_: Any, env: Any) -> None:
    """Names of types stand on every page of a module, and for each, Sphinx goes over the names of all objects."""
    python = env.get_domain("py")
    python.find_obj = cache(python.find_obj)


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    pages = cache(lambda: _Pages(app))

    def before(_: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
        context["toctree"] = lambda **options: ""

    def after(_: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
        context["furo_navigation_tree"] = pages().tree(page)

    # Before the theme asks for the list, and after it.
    app.connect("html-page-context", before, priority=400)
    app.connect("html-page-context", after, priority=600)
    # All objects are known then.
    app.connect("env-check-consistency", _look_up_once)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
