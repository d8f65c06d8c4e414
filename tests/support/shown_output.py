"""The blocks of a page, run in order, beside the output that the page shows.

- ``console``: lines that begin with ``$ `` are commands, the lines after one are what it prints on a terminal of 100
  columns. ``kwire`` runs in this process; ``cp`` takes from the checkout. With ``| head -N`` it prints to a pipe.
- ``python``: code; a ``text`` block after it is what it prints.

A line ``...`` in shown output stands for any number of lines.

    PYTHONPATH=. python tests/support/shown_output.py README.md docs/tutorial/parser.md

writes what is printed into these pages, where they show an output without such a line.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kwire import cli

ROOT = Path(__file__).parents[2]
REST = "..."

# A command may go on in further lines.
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A command, or a block of Python, and the output that the page shows, if it shows any."""

    kind: str
    code: str
    shown: str | None


def steps(page: str) -> list[Step]:
    """The steps of a page, in order."""
    found: list[Step] = []
    for language, text in _FENCED.findall((ROOT / page).read_text("utf-8")):
        if language == "console":
            for command, shown in _COMMAND.findall(text):
                found.append(Step("command", command.replace("\\\n", " "), shown or None))
        elif language == "python":
            found.append(Step("python", text, None))
        elif language == "text":
            found[-1] = Step(found[-1].kind, found[-1].code, text)
        else:
            raise ValueError(f"{page} has a block of {language}, which nothing runs")
    return found


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(step: Step, space: dict[str, Any]) -> str:
    """What a step prints on standard output. The working directory is where its files are."""
    command, _, first = step.code.partition(" | head -")
    out = io.StringIO() if first or step.kind == "python" else _Terminal()
    # A terminal without colours.
    with contextlib.redirect_stdout(out) as said, patch.dict(os.environ, COLUMNS="100", TERM="dumb"):
        if step.kind == "python":
            exec(compile(step.code, "a block of a page", "exec"), space)
            # Spark closes a table with an empty line.
            return said.getvalue().rstrip("\n") + "\n" if said.getvalue() else ""
        program, *words = shlex.split(command)
        if program == "cp":
            *sources, target = words
            for source in sources:
                shutil.copy(ROOT / source, target)
        else:
            assert program == "kwire", step.code
            assert cli.main(words) in (0, 1), step.code
    lines = [line.rstrip() for line in said.getvalue().splitlines()]
    return "".join(f"{line}\n" for line in (lines[: int(first)] if first else lines))


def same(shown: str, printed: str) -> bool:
    """Whether what a page shows is what was printed."""
    parts = [re.escape(part) for part in re.split(rf"^{re.escape(REST)}\n", shown, flags=re.MULTILINE)]
    return re.fullmatch("(?:.*\n)*?".join(parts), printed) is not None


def written(page: str, outputs: dict[int, str]) -> None:
    """Writes outputs of steps into a page, by the number of the step."""
    number = -1
    text = (ROOT / page).read_text("utf-8")

    def block(found: re.Match[str]) -> str:
        nonlocal number
        language, inner = found.groups()
        if language == "console":
            made = ""
            for command, shown in _COMMAND.findall(inner):
                number += 1
                made += f"$ {command}\n" + (outputs.get(number, shown) if REST not in shown.splitlines() else shown)
            return f"```console\n{made}```"
        if language == "python":
            number += 1
        elif language == "text" and REST not in inner.splitlines():
            return f"```text\n{outputs.get(number, inner)}```"
        return found[0]

    (ROOT / page).write_text(_FENCED.sub(block, text), "utf-8")


def record(page: str, folder: Path, space: dict[str, Any] | None = None) -> None:
    """Runs the steps of a page in a folder, and writes what they print where the page shows an output."""
    space = {} if space is None else space
    with contextlib.chdir(folder):
        made = {number: run(step, space) for number, step in enumerate(steps(page))}
    written(page, {number: text for number, text in made.items() if text})


def main(pages: list[str]) -> None:
    """Writes the outputs of pages. ``broker.pcap`` and ``captures/`` are there, as the README has them."""
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            capture = ROOT / "tests" / "golden" / "kafka-3.9-zk-kafka-python" / "first-light.pcap"
            (Path(folder) / "captures").mkdir()
            for place in ("broker.pcap", "captures"):
                shutil.copy(capture, Path(folder) / place)
            record(page, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
