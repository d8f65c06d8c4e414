"""Makes the pictures of the docs from golden captures: ``make pictures``.

    python docs/pictures.py [--check] [NAME ...]

``docs/pictures`` then has, and nothing is drawn by hand:

- diagrams, drawn by ``docs/diagrams.py``: of each ``.txt`` there, and the states of a connection from the transition
  table of ``kwire.protocol.connection``;
- terminals: what a command prints, as SVG (``rich``);
- screenshots of ``kwire report`` by a headless Chromium, light, dark and on a phone. Without a Chromium they stay as
  they are, and a line says so.

With ``--check`` it only says which SVGs are not current. Those of terminals are compared by their text: another
``rich`` may draw them otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gzip
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

DOCS: Final = Path(__file__).parent
ROOT: Final = DOCS.parent
GOLDEN: Final = ROOT / "tests" / "golden"
FOLDER: Final = DOCS / "pictures"
LARGEST: Final = 150_000
"""Bytes of a screenshot."""

sys.path[:0] = [str(DOCS), str(GOLDEN)]

import browser  # noqa: E402
from diagrams import draw  # noqa: E402

from kwire import cli  # noqa: E402
from kwire.protocol.connection import TRANSITIONS, State, Step  # noqa: E402


@dataclass(frozen=True)
class Terminal:
    """A picture of a command. ``captures``: names in the command, and the golden captures that they are.

    ``lines``: how many of them are shown, from the first that begins with ``begin``."""

    command: str
    captures: dict[str, str]
    width: int
    lines: int
    begin: str = ""


TERMINALS: Final = {
    "top": Terminal("kwire top --seconds 60 broker.pcap", {"broker.pcap": "findings/findings.gz"}, width=112, lines=60),
    "explain": Terminal(
        "kwire explain broker.pcap --frame 141",
        {"broker.pcap": "kafka-4.3-kraft-java/clients.pcap"},
        width=112,
        lines=30,
    ),
}


@dataclass(frozen=True)
class Shot:
    """A screenshot of a section of a report."""

    section: str
    width: int
    height: int
    dark: bool = False
    phone: bool = False


REPORT: Final = "findings/findings.gz"
SHOTS: Final = {
    "report-light": Shot("traffic", 1180, 820),
    "report-dark": Shot("traffic", 1180, 820, dark=True),
    "findings-light": Shot("findings", 1180, 700),
    "findings-dark": Shot("findings", 1180, 700, dark=True),
    "report-phone": Shot("traffic", 390, 800, phone=True),
}


# --- diagrams


PLACES: Final = {
    State.START: "1,0 source: START / begins here / with SASL",
    State.HANDSHAKE: "0,1 step: HANDSHAKE",
    State.AUTHENTICATING: "1,1 step: AUTHENTICATING",
    State.CHALLENGED: "2,1 step: CHALLENGED",
    State.OPEN: "1,2.1 end: OPEN / begins here / without SASL",
    State.FAILED: "1,3.2 bad: FAILED",
    State.CLOSED: "2.1,3.2: CLOSED",
}


def states() -> str:
    """The text of the diagram of the states of a connection."""
    lines = ["title The states of a connection, and what leads from one to the next", "size 270 124"]
    lines += [f"{state.name} @ {place}" for state, place in PLACES.items()]
    lines.append("any @ 2.1,2.3: any state")
    lines.append(f"any -> CLOSED: {Step.END.value}")
    for state, steps in TRANSITIONS.items():
        for step, after in steps.items():
            if step is not Step.END:
                said = step.value.replace(", ", " / ").replace("mechanism ", "mechanism / ")
                lines.append(f"{state.name} -> {after.name}: {said}")
    return "\n".join(lines)


def diagrams() -> Iterator[tuple[str, str]]:
    """Name and SVG of each diagram."""
    yield "states", draw(states())
    for file in sorted(FOLDER.glob("*.txt")):
        yield file.stem, draw(file.read_text("utf-8"))


# --- terminals


@contextlib.contextmanager
def captures(names: dict[str, str]) -> Iterator[None]:
    """A new working directory with golden captures under other names."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for name, golden in names.items():
            source = GOLDEN / golden
            if source.suffix == ".gz":
                (Path(folder) / name).write_bytes(gzip.decompress(source.read_bytes()))
            else:
                shutil.copy(source, Path(folder) / name)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def printed(command: str, width: int) -> str:
    """What a command prints, in colours, on a terminal of that width."""
    import rich.console

    console = functools.partial(rich.console.Console, color_system="truecolor", width=width)
    with (
        patch("rich.console.Console", console),
        patch.dict(os.environ, COLUMNS=str(width)),
        contextlib.redirect_stdout(io.StringIO()) as out,
    ):
        program, *arguments = command.split()
        assert program == "kwire"
        cli.main(arguments)
    return out.getvalue()


def terminal(one: Terminal) -> str:
    """The SVG of a terminal."""
    from rich.console import Console
    from rich.terminal_theme import SVG_EXPORT_THEME
    from rich.text import Text

    with captures(one.captures):
        lines = [line.rstrip() for line in printed(one.command, one.width).splitlines()]
    first = next(at for at, line in enumerate(lines) if Text.from_ansi(line).plain.startswith(one.begin))
    shown = lines[first : first + one.lines]
    console = Console(record=True, width=one.width, file=io.StringIO(), color_system="truecolor")
    # The last line of a picture would lose what is below its letters.
    shown.append("")
    console.print(Text.assemble(("$ ", "green"), (one.command, "bold")))
    console.print()
    for line in shown:
        console.print(Text.from_ansi(line), no_wrap=True, overflow="crop", crop=True)
    made = console.export_svg(title="kwire", theme=SVG_EXPORT_THEME, unique_id="kwire")
    # The page has a font of its own: nothing is fetched.
    made = re.sub(r"\s*@font-face \{.*?\}", "", made, flags=re.DOTALL)
    return made.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace")


def shown(svg: str) -> list[str]:
    """The texts of an SVG, in order."""
    return re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL)


# --- screenshots


def screenshots(names: list[str]) -> None:
    """Makes the screenshots, if there is a browser. Raises ``ValueError`` if one is too large."""
    path = browser.found()
    if path is None:
        print("NO HEADLESS CHROMIUM: the screenshots stay as they are", file=sys.stderr)
        return
    with captures({"broker.pcap": REPORT}), tempfile.TemporaryDirectory() as profile:
        with contextlib.redirect_stdout(io.StringIO()):
            cli.main(["report", "broker.pcap", "-o", "report.html"])
        with browser.Browser.run(path, Path(profile)) as one:
            for name in names:
                taken(one, Path("report.html"), SHOTS[name], FOLDER / f"{name}.png")


def taken(one: Any, page: Path, shot: Shot, file: Path) -> None:
    """Takes a screenshot."""
    one.open(page, shot.width, shot.height, dark=shot.dark, phone=shot.phone)
    one.of("document.fonts.ready.then(() => 1)")
    one.of(f"document.getElementById('{shot.section}').scrollIntoView()")
    # What is drawn when it comes into view has two frames to do so.
    one.of("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
    one.picture(file)
    if file.stat().st_size > LARGEST:
        raise ValueError(f"{file.name} has {file.stat().st_size:,} bytes, more than {LARGEST:,}")


# ---


def drawn() -> Iterator[tuple[str, Callable[[], str], bool]]:
    """Name, SVG and whether only its text counts, of all but screenshots."""
    for name, svg in diagrams():
        yield name, lambda svg=svg: svg, False
    for name, one in TERMINALS.items():
        yield name, functools.partial(terminal, one), True


def old(names: list[str]) -> list[str]:
    """The SVGs that are not what is made now."""
    found = []
    for name, make, by_text in drawn():
        file = FOLDER / f"{name}.svg"
        if name in names:
            new, kept = make(), file.read_text("utf-8") if file.exists() else ""
            if (shown(new) != shown(kept)) if by_text else (new != kept):
                found.append(name)
    return found


def main(arguments: list[str]) -> int:
    """Makes the pictures, or checks them. Returns 1 if one is not current."""
    every = [name for name, _, _ in drawn()] + list(SHOTS)
    parser = argparse.ArgumentParser(description="Makes the pictures of the docs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(every)}")
    parser.add_argument("--check", action="store_true", help="say which SVGs are not current")
    asked = parser.parse_args(arguments)
    names = asked.names or every
    if unknown := set(names) - set(every):
        parser.error(f"no picture {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    if asked.check:
        for name in (stale := old(names)):
            print(f"docs/pictures/{name}.svg is not current: run make pictures", file=sys.stderr)
        return int(bool(stale))
    for name, make, _ in drawn():
        if name in names:
            (FOLDER / f"{name}.svg").write_text(make(), "utf-8")
            print(f"made {name}.svg")
    if shots := [name for name in names if name in SHOTS]:
        screenshots(shots)
        print(f"made {', '.join(f'{name}.png' for name in shots)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
