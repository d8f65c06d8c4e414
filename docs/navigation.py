"""The list of pages at the side of the site: an extension of Sphinx.

Sphinx makes the list of all pages for each page, and so 583 times 583 entries. That is most of the time that a build
takes. On a phone nobody finds anything in such a list either. So the pages of a long part are in it only while one
looks at that part. Rules:

- A page has all pages of the parts that the first page names, as far as they are not long.
- A part is long if it has more than ``LONG`` pages: APIs, KIPs, modules.
"""

from __future__ import annotations

from functools import cache
from html import escape
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
        """The list at the side of a page, as HTML."""
        path = [page]
        while path[-1] in self._above:
            path.append(self._above[path[-1]])
        parts = []
        for caption, pages in self._parts:
            parts.append(f'<p class="caption" role="heading"><span class="caption-text">{escape(caption)}</span></p>')
            listed = [self._entry(one, 1, page, frozenset(path)) for one in pages]
            if caption in BESIDE:
                title, place = BESIDE[caption]
                link = "../" * page.count("/") + place
                listed.insert(0, f'<li class="toctree-l1"><a class="reference external" href="{link}">{title}</a></li>')
            parts.append(f"<ul>{''.join(listed)}</ul>")
        return "\n".join(parts)

    def _entry(self, one: str, depth: int, page: str, path: frozenset[str]) -> str:
        current = " current" if one in path else ""
        kinds = "reference internal" + (" current" if one == page else "")
        link = "#" if one == page else self._app.builder.get_relative_uri(page, one)
        below = self._env.toctree_includes.get(one, [])
        listed = ""
        if below and (len(below) <= LONG or current):
            listed = f"<ul>{''.join(self._entry(each, depth + 1, page, path) for each in below)}</ul>"
        entry = f'<a class="{kinds}" href="{link}">{self._titles[one]}</a>{listed}'
        return f'<li class="toctree-l{depth}{current}">{entry}</li>'


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    pages = cache(lambda: _Pages(app))

    def about(_: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
        context["toctree"] = lambda **options: pages().tree(page)

    # Before the theme asks for the list.
    app.connect("html-page-context", about, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
