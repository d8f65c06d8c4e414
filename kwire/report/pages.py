"""Answers as a page of HTML: one file, nothing to fetch, no script.

Rules kept here:

- Everything from a capture is hostile text. It is made readable as on a terminal (``tables.showing.readable``), then
  escaped, and it only ever stands between tags.
- The Content-Security-Policy allows the one style sheet by its digest and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kwire.tables.showing import Column, readable

__all__ = ["page"]

_STYLE: Final = """
:root{color-scheme:light dark;--line:#8884;--dim:#888;--bad:#c62828;--maybe:#b26a00;--good:#2e7d32}
@media(prefers-color-scheme:dark){:root{--bad:#ff8a80;--maybe:#ffcc80;--good:#a5d6a7}}
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:90rem;padding:0 1rem}
h1{font-size:1.5rem}p.sum{color:var(--dim)}
div.t{overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid var(--line)}
td{overflow-wrap:anywhere}
th{white-space:nowrap}td.r{text-align:right;font-variant-numeric:tabular-nums}
.breaks,.high{color:var(--bad);font-weight:600}.unknown,.medium{color:var(--maybe);font-weight:600}
.works,.low{color:var(--good)}
@media print{body{margin:0}}
"""
_WORDS: Final = frozenset(("breaks", "unknown", "works", "broker", "high", "medium", "low"))
"""Texts of kwire's own that have a colour."""


def page(title: str, summary: Sequence[str], columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]) -> str:
    """A page with a title, some sentences and a table. ``rows`` are by the names that the ``columns`` read."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{digest}'\">\n"
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{_safe(title)}</title>\n<style>{_STYLE}</style></head><body>\n<h1>{_safe(title)}</h1>\n",
        *(f'<p class="sum">{_safe(one)}</p>\n' for one in summary),
        '<div class="t"><table><thead><tr>',
        *(f"<th>{_safe(column.title)}</th>" for column in columns),
        "</tr></thead><tbody>\n",
    ]
    for row in rows:
        parts.append("<tr>" + "".join(_cell(column, dict(row)) for column in columns) + "</tr>\n")
    parts.append("</tbody></table></div>\n</body></html>\n")
    return "".join(parts)


def _cell(column: Column, row: dict[str, Any]) -> str:
    text = column.text(row)
    words = " ".join(([text] if text in _WORDS else []) + (["r"] if column.right else []))
    return f'<td class="{words}">{_safe(text)}</td>' if words else f"<td>{_safe(text)}</td>"


def _safe(text: str) -> str:
    return html.escape(readable(text, None), quote=True)
