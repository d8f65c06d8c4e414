"""Pages of HTML: one file, nothing to fetch.

Rules kept here:

- Everything from a capture is hostile text. It is made readable as on a terminal (``tables.showing.readable``), then
  escaped. It only ever stands between tags. Data for scripts stand in JSON that cannot end its element.
- The Content-Security-Policy allows the style sheets and scripts of the page by their digests and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kwire.tables.showing import Column, readable

__all__ = ["document", "json_text", "page", "safe", "table"]

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
@media(max-width:40rem){body{padding:0 .6rem}.a thead{display:none}.a table,.a tbody,.a tr,.a td{display:block}
.a tr{border:1px solid var(--line);border-radius:.4rem;padding:.3rem .6rem;margin:.6rem 0}
.a td,.a td.r{border:0;padding:.15rem 0;text-align:left}
.a td::before{content:attr(data-t) ": ";color:var(--dim);font-weight:400}}
@media print{body{margin:0}}
"""
_WORDS: Final = frozenset(("breaks", "unknown", "works", "broker", "high", "medium", "low", "new", "gone"))
"""Texts of kwire's own that have a colour."""


def document(
    title: str, body: Iterable[str], *, styles: Sequence[str], scripts: Sequence[str] = (), notice: str = ""
) -> str:
    """A whole page. ``body`` is HTML, and so safe already; ``notice`` stands in a comment (licences)."""
    policy = ["default-src 'none'", "style-src " + " ".join(map(_digest, styles)), "base-uri 'none'"]
    policy.append("form-action 'none'")
    if scripts:
        policy.append("script-src " + " ".join(map(_digest, scripts)))
    assert not any("</script" in one.lower() for one in scripts)
    assert "--" not in notice
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(policy)}">\n',
            '<meta name="viewport" content="width=device-width,initial-scale=1">\n',
            '<meta name="referrer" content="no-referrer">\n',
            f"<title>{safe(title)}</title>\n",
            f"<!--\n{notice}\n-->\n" if notice else "",
            *(f"<style>{one}</style>\n" for one in styles),
            "</head><body>\n",
            *body,
            *(f"<script>{one}</script>\n" for one in scripts),
            "</body></html>\n",
        ]
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def page(title: str, summary: Sequence[str], columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]) -> str:
    """A page with a title, some sentences and a table.

    ``rows`` are by the names that the ``columns`` read.
    """
    body = [f"<h1>{safe(title)}</h1>\n", *(f'<p class="sum">{safe(one)}</p>\n' for one in summary)]
    return document(title, [*body, *table(columns, rows)], styles=[_STYLE])


def table(columns: Sequence[Column], rows: Iterable[Mapping[str, Any]], name: str = "") -> Iterable[str]:
    """A table in HTML.

    Where a column stands right and has a number of its own to be sorted by (``values``), cells have it. ``name``: what
    is in it, for readers who do not see it.
    """
    label = f' tabindex="0" role="region" aria-label="{safe(name)}"' if name else ""
    # On a phone each row of an answer is a card, whose parts have their titles.
    cards = any(column.wrap for column in columns)
    yield f'<div class="t{" a" if cards else ""}"{label}><table><thead><tr>'
    for column in columns:
        yield f'<th{_class("r" if column.right else "")} scope="col">{safe(column.title)}</th>'
    yield "</tr></thead><tbody>\n"
    for row in rows:
        mine = dict(row)
        yield "<tr>" + "".join(_cell(column, mine, cards) for column in columns) + "</tr>\n"
    yield "</tbody></table></div>\n"


def _cell(column: Column, row: dict[str, Any], titled: bool) -> str:
    text = column.text(row)
    value = column.value(row) if column.value is not None else None
    order = f' data-v="{value:.12g}"' if isinstance(value, (int, float)) and math.isfinite(value) else ""
    words = _class(*([text] if text in _WORDS else []), *(["r"] if column.right else []))
    title = f' data-t="{safe(column.title)}"' if titled else ""
    return f"<td{words}{order}{title}>{safe(text)}</td>"


def _class(*words: str) -> str:
    said = " ".join(filter(None, words))
    return f' class="{said}"' if said else ""


def safe(text: str) -> str:
    """A text of a capture as HTML, between tags or in quotes."""
    return html.escape(readable(text, None), quote=True)


def json_text(value: Any) -> str:
    """JSON for an element ``script``: nothing in it ends the element or begins a comment, and texts are readable.

    NaN and the infinities are errors (``ValueError``): no sum is one.
    """
    said = json.dumps(_readable(value), separators=(",", ":"), allow_nan=False)
    return said.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return readable(value, None)
    if isinstance(value, Mapping):
        return {readable(str(key), None): _readable(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_readable(one) for one in value]
    return value
