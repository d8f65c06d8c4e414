"""Writes what the docs take from the code, and schemas in their canonical form: ``make docs``.

With ``--check`` it only says which files are not current.

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
from kwire.kernels.layers import _UDP_TUNNELS, TUNNELS, Layer
from kwire.report.findings import RULES, SEVERITIES, Thresholds
from kwire.schema.format import to_text
from kwire.schema.parser import parse

DOCS: Final = Path(__file__).parent
SCHEMAS: Final = DOCS.parent / "schemas"
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


def udp_tunnels() -> str:
    """The tunnels that are met in UDP, with their ports. Other lines of ``_UDP_TUNNELS`` are counts."""
    found: dict[str, list[str]] = {}
    names = {int(one): one.name for one in Layer}
    for port, layer in _UDP_TUNNELS.tolist():
        if layer in names:
            found.setdefault(names[layer].replace("_", "-"), []).append(str(port))
    return ", ".join(f"{name} ({', '.join(ports)})" for name, ports in found.items())


PARTS: Final[dict[str, Callable[[], str]]] = {"rules": rules, "tunnels": tunnels, "udp_tunnels": udp_tunnels}


def pages() -> Iterator[tuple[Path, str]]:
    """The pages that are made or have made parts, and the schemas, with the text of each."""
    yield DOCS / "options.md", options.page()
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text("utf-8")
        made = MARKED.sub(lambda found: found[1] + PARTS[found[2]]() + found[4], text)
        if MARKED.search(text):
            yield page, made
    for file in sorted(SCHEMAS.rglob("*.kwire")):
        yield file, to_text(parse(file.read_text("utf-8"), file.name))


def main(arguments: list[str]) -> int:
    """Writes the pages, or checks them. Returns 1 if one is not current."""
    old = [(page, text) for page, text in pages() if page.read_text("utf-8") != text]
    for page, text in old:
        name = f"docs/{page.name}" if page.suffix == ".md" else f"schemas/{page.relative_to(SCHEMAS).as_posix()}"
        if "--check" in arguments:
            said = "what the code says" if page.suffix == ".md" else "in its canonical form"
            print(f"{name} is not {said}: run make docs", file=sys.stderr)
        else:
            page.write_text(text, "utf-8")
            print(f"wrote {name}")
    return int("--check" in arguments and bool(old))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
