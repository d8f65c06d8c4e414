"""Draws diagrams as SVG from text: boxes on a grid, and arrows between them.

The text has one line for each box and each arrow:

    title What the picture shows
    size 190 96
    pcap @ 0,0 source: pcap, pcapng / also compressed
    rows @ 0,1 wide=2: rows
    pcap -> rows: by the window

- ``NAME @ COLUMN,ROW wide=N KIND: TEXT``: a box. Column and row are numbers, also fractions. ``KIND`` is its colour
  (``KINDS``), ``wide=N`` lets it reach over N columns. A ``/`` in the text begins a new line.
- ``A -> B: TEXT``: an arrow, with a text in its middle. ``A --> B`` is a dashed one.
- ``size WIDTH HEIGHT``: pixels of a cell of the grid.

The picture follows the dark mode of whoever looks at it, and fetches nothing. Raises ``ValueError`` for a line that is
none of these.
"""

from __future__ import annotations

import html
import math
import re
from dataclasses import dataclass, field
from typing import Final

__all__ = ["KINDS", "draw"]

KINDS: Final = ("plain", "source", "step", "end", "bad")

_BOX: Final = re.compile(r"(\w+) @ (-?[\d.]+),(-?[\d.]+)(?: wide=([\d.]+))?(?: (\w+))?: (.+)")
_ARROW: Final = re.compile(r"(\w+) (--?>) (\w+)(?:: (.+))?")
_LETTER: Final = 7.3
_CAPITAL: Final = 10.2
"""Pixels of a letter of a box, in the widest of the usual fonts."""
_LINE: Final = 18
_PAD: Final = 14
_MARGIN: Final = 16

_STYLE: Final = """\
svg { background: #fff }
text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328; text-anchor: middle }
.first { font-weight: 600 }
.on { font-size: 12px; fill: #57606a; stroke: #fff; stroke-width: 4px; paint-order: stroke }
rect { stroke: #8c959f; fill: #f6f8fa }
.source rect { stroke: #0969da; fill: #ddf4ff }
.step rect { stroke: #8250df; fill: #fbefff }
.end rect { stroke: #1a7f37; fill: #dafbe1 }
.bad rect { stroke: #cf222e; fill: #ffebe9 }
.arrow { stroke: #57606a; stroke-width: 1.5; fill: none }
.dashed { stroke-dasharray: 5 4 }
#tip path { fill: #57606a }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117 }
text { fill: #e6edf3 }
.on { fill: #9198a1; stroke: #0d1117 }
rect { stroke: #6e7681; fill: #161b22 }
.source rect { stroke: #4493f8; fill: #121d2f }
.step rect { stroke: #a371f7; fill: #1e1730 }
.end rect { stroke: #3fb950; fill: #12261e }
.bad rect { stroke: #f85149; fill: #2a1517 }
.arrow { stroke: #9198a1 }
#tip path { fill: #9198a1 }
}
"""


@dataclass
class _Box:
    """A box, by its centre; sizes are those of the whole."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    lines: list[str]

    def border(self, dx: float, dy: float, aside: tuple[float, float]) -> tuple[float, float]:
        """Where a line from the centre, moved aside, in the direction of (dx, dy) leaves the box."""
        across = (self.width / 2 - math.copysign(aside[0], dx) * (aside[0] * dx > 0)) / abs(dx) if dx else math.inf
        along = (self.height / 2 - math.copysign(aside[1], dy) * (aside[1] * dy > 0)) / abs(dy) if dy else math.inf
        part = min(across, along)
        return self.x + aside[0] + dx * part, self.y + aside[1] + dy * part


@dataclass
class _Diagram:
    title: str = ""
    cell: tuple[float, float] = (190, 96)
    boxes: dict[str, _Box] = field(default_factory=dict)
    arrows: list[tuple[str, str, str, bool]] = field(default_factory=list)


def _read(text: str) -> _Diagram:
    found = _Diagram()
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("title "):
            found.title = line.removeprefix("title ")
        elif line.startswith("size "):
            width, height = map(float, line.split()[1:])
            found.cell = (width, height)
        elif box := _BOX.fullmatch(line):
            name, column, row, wide, kind, said = box.groups()
            lines = [one.strip() for one in said.split("/")]
            width = max(max(map(_width, lines)) + 2 * _PAD, float(wide or 0) * found.cell[0] - 2 * _PAD)
            x, y = float(column) * found.cell[0], float(row) * found.cell[1]
            if (kind or "plain") not in KINDS:
                raise ValueError(f"no kind of box: {line!r}")
            found.boxes[name] = _Box(x, y, width, _LINE * len(lines) + 2 * _PAD, kind or "plain", lines)
        elif (arrow := _ARROW.fullmatch(line)) and {arrow[1], arrow[3]} <= found.boxes.keys():
            found.arrows.append((arrow[1], arrow[3], arrow[4] or "", arrow[2] == "-->"))
        else:
            raise ValueError(f"no box and no arrow: {line!r}")
    return found


def _width(text: str) -> float:
    # A plain sum of floats differs in its last digits from Python 3.12 on.
    return math.fsum(_CAPITAL if letter.isupper() else _LETTER for letter in text)


def draw(text: str) -> str:
    """The SVG of a diagram."""
    diagram = _read(text)
    boxes = diagram.boxes.values()
    left = min(one.x - one.width / 2 for one in boxes) - _MARGIN
    top = min(one.y - one.height / 2 for one in boxes) - _MARGIN
    width = max(one.x + one.width / 2 for one in boxes) + _MARGIN - left
    height = max(one.y + one.height / 2 for one in boxes) + _MARGIN - top
    title = html.escape(diagram.title)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.0f} {top:.0f} {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{title}">',
        f"<title>{title}</title>",
        f"<style>\n{_STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L10 5L0 10z"/></marker></defs>',
    ]
    pairs = {(one, other) for one, other, _, _ in diagram.arrows}
    labels = []
    for one, other, said, dashed in diagram.arrows:
        line, label = _arrow(diagram.boxes[one], diagram.boxes[other], said, both=(other, one) in pairs)
        parts.append(f'<path class="arrow{" dashed" * dashed}" d="{line}" marker-end="url(#tip)"/>')
        labels += label
    parts += [part for box in boxes for part in _box(box)]
    return "\n".join([*parts, *labels, "</svg>", ""])


def _box(box: _Box) -> list[str]:
    top = box.y - box.height / 2
    return [
        f'<g class="{box.kind}"><rect x="{box.x - box.width / 2:.1f}" y="{top:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="8"/>',
        *_text(box.lines, box.x, top + _PAD + _LINE * 0.72),
        "</g>",
    ]


def _text(lines: list[str], x: float, y: float, kind: str = "") -> list[str]:
    classes = [kind or ("first" if not at else "") for at in range(len(lines))]
    return [
        f'<text{f""" class="{one}" """.rstrip() if one else ""} x="{x:.1f}" y="{y + _LINE * at:.1f}">'
        f"{html.escape(line)}</text>"
        for at, (line, one) in enumerate(zip(lines, classes, strict=True))
    ]


def _arrow(one: _Box, other: _Box, said: str, *, both: bool) -> tuple[str, list[str]]:
    """The line from one box to another, and its text; of two that lead both ways each goes a little aside."""
    # A wide box is met where the other one stands.
    start, end = [one.x, one.y], [other.x, other.y]
    for near, far, box in ((start, other, one), (end, one, other)):
        reach = max(0.0, box.width / 2 - 40)
        if abs(far.x - near[0]) <= reach + 40 and box.width > far.width:
            near[0] = min(max(far.x, box.x - reach), box.x + reach)
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy)
    aside = (-dy / length * 9, dx / length * 9) if both else (0.0, 0.0)
    first = _Box(start[0], start[1], one.width, one.height, "", [])
    last = _Box(end[0], end[1], other.width, other.height, "", [])
    if start[0] != one.x:
        first.width = 1e6
    if end[0] != other.x:
        last.width = 1e6
    x1, y1 = first.border(dx, dy, aside)
    x2, y2 = last.border(-dx, -dy, aside)
    lines = [part.strip() for part in said.split("/")] if said else []
    x, y = (x1 + x2) / 2, (y1 + y2) / 2 - _LINE * (len(lines) - 1) / 2 + 4
    if both and lines:
        # Each text on its own side.
        x, y = x + aside[0] * 1.6, y + aside[1] * (1.6 if abs(dx) > abs(dy) else 1)
    return f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}", _text(lines, x, y, "on")
