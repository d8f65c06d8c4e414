"""Settings of Sphinx for the site (``make site``). ``docs/make_site.py`` lays the sources out."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import kwire

sys.path.insert(0, str(Path(__file__).parent))
# Trees of documents are full of circles. Python would go over all of them again and again: half of the time.
gc.freeze()
gc.set_threshold(100_000, 50, 1_000)

project = "kwire"
author = "The kwire authors"
version = release = kwire.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "navigation"]
root_doc = "index"
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = f"kwire {release}"
html_extra_path = [str(Path(__file__).parents[1] / "build" / "site" / "extra")]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_copyright = False
html_theme_options = {"sidebar_hide_name": False, "top_of_page_buttons": []}
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block"]
# Headings that repeat on a page (in CHANGELOG) get numbers, as on GitHub.
# Names of types that several modules have (Source, Limits) are no links.
suppress_warnings = ["myst.header", "ref.python"]
autodoc_typehints = "description"
autodoc_member_order = "groupwise"
autodoc_default_options = {"members": True, "show-inheritance": True}
add_module_names = False
# What reads captures is imported for its docstrings. These packages need not be there.
autodoc_mock_imports = ["deltalake", "pyiceberg"]


def _examples(app: Any, what: str, name: str, object_: Any, options: Any, lines: list[str]) -> None:
    """Docstrings have examples indented by four after an empty line: they are code."""
    at, last = 0, ""
    while at < len(lines):
        line = lines[at]
        begins = line.startswith("    ") and at > 0 and not lines[at - 1] and not last.startswith((" ", "-", "."))
        if begins and not last.endswith("::"):
            lines[at:at] = ["::", ""]
            at += 2
        last = line or last
        at += 1


def _says_nothing(app: Any, what: str, name: str, object_: Any, skip: bool, options: Any) -> bool | None:
    """Fields of a named tuple without a text: their class lists them."""
    return True if str(getattr(object_, "__doc__", "")).startswith("Alias for field number ") else None


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", _says_nothing)
    app.connect("autodoc-process-docstring", _examples)
