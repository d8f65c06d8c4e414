"""Writes what the docs take from the code: ``make docs``. With ``--check`` it only says which pages are not current.

docs/options.md is made as a whole. In other pages, what stands between ``<!-- made: NAME -->`` and ``<!-- end -->`` is
made by the function ``NAME`` of ``PARTS``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from kwire import options
from kwire.kernels.layers import TUNNELS
from kwire.report.findings import RULES, SEVERITIES, Thresholds

DOCS: Final = Path(__file__).parent
MARKED: Final = re.compile(r"(<!-- made: (\w+) -->)(.*?)(<!-- end -->)", re.DOTALL)


def rules() -> str:
    """The table of the rules of ``kwire findings``."""
    lines = ["| rule | severity | what it finds | thresholds (defaults) |", "|---|---|---|---|"]
    for name, rule in sorted(RULES.items(), key=lambda one: SEVERITIES.index(one[1].severity)):
        thresholds = ", ".join(
            f"`{one}` ({said.format(_number(getattr(Thresholds, one)))})" for one, said in rule.thresholds.items()
        )
        lines.append(f"| `{name}` | {rule.severities or rule.severity} | {rule.finds} | {thresholds} |")
    return "\n".join(["", *lines, ""])


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else repr(value)


def tunnels() -> str:
    """The words of tunnels, as the column ``tunnels`` has them."""
    return ", ".join(f"`{word}:`" for word in dict.fromkeys(TUNNELS.values()))


PARTS: Final[dict[str, Callable[[], str]]] = {"rules": rules, "tunnels": tunnels}


def pages() -> Iterator[tuple[Path, str]]:
    """The pages that are made, or have made parts, and the text of each."""
    yield DOCS / "options.md", options.page()
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text("utf-8")
        made = MARKED.sub(lambda found: found[1] + PARTS[found[2]]() + found[4], text)
        if MARKED.search(text):
            yield page, made


def main(arguments: list[str]) -> int:
    """Writes the pages, or checks them. Returns 1 if one is not current."""
    old = [(page, text) for page, text in pages() if page.read_text("utf-8") != text]
    for page, text in old:
        if "--check" in arguments:
            print(f"docs/{page.name} is not what the code says: run make docs", file=sys.stderr)
        else:
            page.write_text(text, "utf-8")
            print(f"wrote docs/{page.name}")
    return int("--check" in arguments and bool(old))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
