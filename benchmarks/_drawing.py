"""Charts of measurements as SVG: for each case a panel, with a point and a line for each contestant.

The point is the median, the line the middle half of the rounds. The scale is logarithmic: a contestant that is two
steps away takes a hundred times as long. Colours follow the reader's scheme.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Final

from _measuring import Spread

__all__ = ["STYLE", "alone", "sheet", "time_text"]

WIDTH: Final = 360
_ROW: Final = 18
_TOP: Final = 26
_LEFT: Final = 134
_RIGHT: Final = 292

STYLE: Final = """
svg.chart{font:12px system-ui,sans-serif;fill:#222}
svg.chart .line{stroke:#bbb;stroke-width:1}
svg.chart .title{font-weight:600}
svg.chart .dim{fill:#666}
svg.chart .kwire{fill:#0b62c4;stroke:#0b62c4}
svg.chart .python{fill:#8a5a00;stroke:#8a5a00}
svg.chart .outside{fill:#6b2fa0;stroke:#6b2fa0}
svg.chart .floor{fill:#666;stroke:#666}
svg.chart .range{stroke-width:5;stroke-opacity:.35}
@media(prefers-color-scheme:dark){
svg.chart{fill:#e6e6e6}
svg.chart .line{stroke:#555}
svg.chart .dim{fill:#aaa}
svg.chart .kwire{fill:#6db3ff;stroke:#6db3ff}
svg.chart .python{fill:#f0b95a;stroke:#f0b95a}
svg.chart .outside{fill:#cf9bff;stroke:#cf9bff}
svg.chart .floor{fill:#aaa;stroke:#aaa}
}
"""

_BACKGROUND: Final = "svg.chart{background:#fff}@media(prefers-color-scheme:dark){svg.chart{background:#0d1117}}"


def kind(name: str) -> str:
    """Whose contestant it is: ``kwire``, ``python``, ``outside`` or ``floor``."""
    if name.startswith("kwire"):
        return "kwire"
    if name == "floor":
        return "floor"
    return "outside" if name.endswith(")") or name == "tshark" else "python"


def time_text(seconds: float) -> str:
    """With three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{_three(seconds / size)} {unit}"
    return f"{_three(seconds * 1e9)} ns"


def _three(number: float) -> str:
    return f"{number:.{max(0, 2 - math.floor(math.log10(number)))}f}" if number > 0 else "0"


def panel(title: str, rows: Mapping[str, Spread]) -> tuple[str, int]:
    """What is in a panel, and its height. The quickest stands first."""
    ordered = sorted(rows.items(), key=lambda one: one[1].median)
    low = math.floor(math.log10(min(one.low for one in rows.values())) * 2) / 2
    high = math.ceil(math.log10(max(one.high for one in rows.values())) * 2) / 2
    if high <= low:
        high = low + 0.5
    bottom = _TOP + _ROW * len(ordered)

    def x(seconds: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (math.log10(seconds) - low) / (high - low)

    parts = [f'<text class="title" x="4" y="15">{html.escape(title)}</text>']
    for power in range(math.ceil(low), math.floor(high) + 1):
        at = x(10.0**power)
        parts.append(f'<path class="line" d="M{at:.1f} {_TOP}V{bottom}"/>')
        label = time_text(10.0**power).replace(".00", "").replace(".0", "")
        parts.append(f'<text class="dim" x="{at:.1f}" y="{bottom + 13}" text-anchor="middle">{label}</text>')
    for number, (name, spread) in enumerate(ordered):
        y = _TOP + _ROW * number + _ROW / 2
        of = kind(name)
        shown = f"{html.escape(name)}: {time_text(spread.median)} ({time_text(spread.low)} to {time_text(spread.high)})"
        parts.append(
            f'<g><title>{shown}</title><text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{html.escape(name)}</text>'
            f'<path class="{of} range" d="M{x(spread.low):.1f} {y}H{x(spread.high) + 0.1:.1f}"/>'
            f'<circle class="{of}" cx="{x(spread.median):.1f}" cy="{y}" r="3.5"/>'
            f'<text class="dim" x="{WIDTH - 4}" y="{y + 4}" text-anchor="end">{time_text(spread.median)}</text></g>'
        )
    return "".join(parts), bottom + 20


def alone(title: str, rows: Mapping[str, Spread]) -> str:
    """A panel for a page, whose style sheets have ``STYLE``."""
    content, height = panel(title, rows)
    return f'<svg class="chart" role="img" viewBox="0 0 {WIDTH} {height}">{content}</svg>'


def sheet(panels: Sequence[tuple[str, Mapping[str, Spread]]], wide: int = 2) -> str:
    """A file with all panels, so many beside each other."""
    made = [panel(title, rows) for title, rows in panels]
    parts, top = [], 0
    for at in range(0, len(made), wide):
        row = made[at : at + wide]
        parts += [
            f'<g transform="translate({(WIDTH + 16) * number} {top})">{one}</g>' for number, (one, _) in enumerate(row)
        ]
        top += max(height for _, height in row) + 8
    width = (WIDTH + 16) * min(wide, len(made))
    box = f'viewBox="-8 -8 {width + 16} {top + 16}" width="{width}"'
    head = f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" {box}>'
    return f"{head}<style>{STYLE}{_BACKGROUND}</style>{''.join(parts)}</svg>\n"
