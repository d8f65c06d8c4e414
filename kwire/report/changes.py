"""What is different from before: two reports compared (``kwire report --against``).

A report carries its figures as JSON in its page, so that a later one needs the page alone. That page may come from
anybody, so it is read like any other input. What is no number of a report is an error.

Rules kept here:

- What grows with the time that is captured is compared by the second; latencies as they are.
- Something is new or gone only where the list it is missing from is whole.
- Verdicts of an audit are compared where both are about the same release.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kwire.errors import KwireError

__all__ = ["DATA", "FORMAT", "VERSION", "changes", "figures_of_page"]

FORMAT: Final = "kwire-report"
"""What figures of a report name as their format (str)."""
VERSION: Final = 1
"""The version of the figures' format (int). Figures of a later version are refused."""
DATA: Final = '<script type="application/json" id="figures">'
"""What stands before the figures in a page."""
_MOST_BYTES: Final = 64 << 20
_MOST_ROWS: Final = 1_000
_LONGEST_TARGET: Final = 32

PARTS: Final = ("findings", "verdicts", "apis", "errors", "clients", "topics", "versions")
"""What is compared by name, in the order in which it is reported."""
_AS_THEY_ARE: Final = frozenset(("p50", "p99", "count"))
"""Measures that do not grow with the time."""
_LEAST: Final = 0.1
"""A change of less than a tenth is none."""

Figures = Mapping[str, Any]


def figures_of_page(page: str, name: str) -> Figures:
    """The figures in a page that ``kwire report`` wrote. Raises ``KwireError`` for one that is none."""
    begin = page.find(DATA)
    end = page.find("</script>", begin)
    if begin < 0 or end < 0:
        raise KwireError(f"{name}: no report of kwire")
    if end - begin > _MOST_BYTES:
        raise KwireError(f"{name}: the figures of a report are not so large: {end - begin} bytes")
    try:
        found = json.loads(page[begin + len(DATA) : end])
    except (ValueError, RecursionError):
        raise KwireError(f"{name}: the figures of the report are no JSON") from None
    _check(found, name)
    checked: Figures = found
    return checked


def _check(found: Any, name: str) -> None:
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise KwireError(f"{name}: no figures of a report")
    if found.get("version") != VERSION:
        raise KwireError(f"{name}: figures of another version of kwire: make that report again")
    wrong = KwireError(f"{name}: the figures of the report are damaged")
    totals, parts = found.get("totals"), found.get("parts")
    if not _number(found.get("seconds")) or not isinstance(totals, dict) or not isinstance(parts, dict):
        raise wrong
    target = found.get("target", "")
    if not all(map(_number, totals.values())) or not isinstance(target, str) or len(target) > _LONGEST_TARGET:
        raise wrong
    for part in PARTS:
        one = parts.get(part)
        if not isinstance(one, dict) or not isinstance(one.get("whole"), bool) or not isinstance(one.get("rows"), dict):
            raise wrong
        for row in one["rows"].values():
            if not isinstance(row, dict) or not all(value is None or _number(value) for value in row.values()):
                raise wrong


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1e300 < value < 1e300


def changes(before: Figures, now: Figures) -> list[dict[str, Any]]:
    """What changed from one report to another, as rows.

    Columns: ``what``, ``name``, ``measure``, ``before``, ``now``, ``change`` and ``word``. ``change`` is a part of what
    was before (None: there was nothing). ``word`` is ``new``, ``gone`` or none.
    """
    made: list[dict[str, Any]] = []
    seconds = (float(before["seconds"]), float(now["seconds"]))
    for name in dict.fromkeys((*before["totals"], *now["totals"])):
        made += _changed("total", "all", name, before["totals"].get(name, 0), now["totals"].get(name, 0), seconds)
    # Reports of before name no target.
    other_target = before.get("target", now.get("target")) != now.get("target")
    for part in PARTS:
        if part == "verdicts" and other_target:
            continue
        old, new = before["parts"][part], now["parts"][part]
        for name in dict.fromkeys((*old["rows"], *new["rows"])):
            mine, other = old["rows"].get(name), new["rows"].get(name)
            if mine is None or other is None:
                if (old if mine is None else new)["whole"]:
                    word = "new" if mine is None else "gone"
                    made.append(_row(part, name, "", None, None, None, word))
                continue
            for measure in dict.fromkeys((*mine, *other)):
                made += _changed(part, name, measure, mine.get(measure), other.get(measure), seconds)
    order = {"new": 0, "gone": 1, "": 2}
    places = {part: k for k, part in enumerate((*PARTS[:2], "total", *PARTS[2:]))}
    made.sort(key=lambda row: (places[row["what"]], order[row["word"]], -abs(row["change"] or 0)))
    return made[:_MOST_ROWS]


def _changed(
    what: str, name: str, measure: str, before: float | None, now: float | None, seconds: tuple[float, float]
) -> Iterator[dict[str, Any]]:
    if before is None or now is None:
        return
    said = measure.replace("_", " ")
    if measure not in _AS_THEY_ARE and min(seconds) > 0:
        before, now = before / seconds[0], now / seconds[1]
        said += " a second"
    if before == now or (before and abs(now - before) < _LEAST * abs(before)):
        return
    change = (now - before) / before if before else None
    if change is not None and not math.isfinite(change):
        change = None
    yield _row(what, name, said, before, now, change, "")


def _row(
    what: str, name: str, measure: str, before: float | None, now: float | None, change: float | None, word: str
) -> dict[str, Any]:
    return {
        "what": what, "name": name, "measure": measure, "before": before, "now": now, "change": change, "word": word,
    }  # fmt: skip
