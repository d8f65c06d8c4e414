"""Runs the notebooks of ``docs/notebooks`` on golden captures, as Jupyter does: in IPython, which its kernel is.

    python tests/golden/notebooks.py [NAME...]

keeps what their cells show as their outputs, which a test compares. IPython runs in this process: a kernel of its own
for each notebook would take longer than all of them. Charts are SVG without a background, in colours that can be read
on white and on black. So a notebook itself says nothing about how it looks.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

GOLDEN = Path(__file__).parent
FOLDER = GOLDEN.parents[1] / "docs" / "notebooks"
CAPTURES = {
    "forensics": "findings/denials.gz",
    "parser": "kafka-4.4-kraft-raw/every-version.pcap",
    "slow-cluster": "findings/faults.gz",
    "upgrade": "kafka-3.9-zk-kafka-python/pinned-0.9.pcap",
}

GREY = "#777777"
"""4.5 times as dark as white, and 4.6 times as light as black."""
CHARTS = {
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor"), "none"),
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), GREY),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "legend.frameon": False,
    # The same chart is the same text. Letters stay letters: the reader's fonts draw them.
    "svg.fonttype": "none",
    "svg.hashsalt": "kwire",
}

INLINE = "module://matplotlib_inline.backend_inline"
"""What Jupyter draws with."""
NO_PICTURE = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>", re.DOTALL)

Output = dict[str, Any]


def cells(path: Path) -> list[dict[str, Any]]:
    """The cells with code of a notebook."""
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cells"]
    return [cell for cell in found if cell["cell_type"] == "code"]


def ran(path: Path) -> list[list[Output]]:
    """The outputs of each cell with code, as notebooks keep them. Raises what a cell raises."""
    from IPython.core.interactiveshell import InteractiveShell
    from matplotlib import pyplot, rc_context
    from matplotlib_inline.backend_inline import configure_inline_support, set_matplotlib_formats
    from traitlets.config import Config

    with tempfile.TemporaryDirectory() as home, rc_context():
        named = {"KWIRE_CAPTURE": str(GOLDEN / CAPTURES[path.stem]), "IPYTHONDIR": home, "MPLCONFIGDIR": home}
        main = sys.modules["__main__"]
        with patch.dict(os.environ, named):
            shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
            try:
                pyplot.switch_backend(INLINE)
                configure_inline_support(shell, INLINE)
                set_matplotlib_formats("svg", metadata={"Date": None})
                pyplot.rcParams.update(CHARTS)
                return [outputs_of(shell, number, cell) for number, cell in enumerate(cells(path), 1)]
            finally:
                pyplot.close("all")
                shell.reset()
                InteractiveShell.clear_instance()
                # The shell has put a module of its own in its place.
                sys.modules["__main__"] = main


def outputs_of(shell: Any, number: int, cell: dict[str, Any]) -> list[Output]:
    """What a cell shows."""
    from IPython.utils.capture import capture_output

    shown: list[Output] = []

    def result(value: Any) -> None:
        if value is not None:
            data, metadata = shell.display_formatter.format(value)
            shown.append(
                {"output_type": "execute_result", "execution_count": number, "data": data, "metadata": metadata}
            )

    shell.display_trap.hook = result
    with capture_output() as said:
        shell.run_cell("".join(cell["source"]), store_history=False).raise_error()
    text = [{"name": "stdout", "output_type": "stream", "text": said.stdout}] if said.stdout else []
    charts = [{"output_type": "display_data", "data": one.data, "metadata": one.metadata} for one in said.outputs]
    return [{**one, "data": kept(one["data"])} if "data" in one else one for one in (*text, *shown, *charts)]


def kept(data: dict[str, str]) -> dict[str, str]:
    """The data of an output without what differs from run to run, and SVG without its comments and ends of lines."""
    made = {kind: text for kind, text in data.items() if kind in ("text/plain", "text/html", "image/svg+xml")}
    if "image/svg+xml" in made:
        text = NO_PICTURE.sub("", made["image/svg+xml"])
        made["image/svg+xml"] = re.sub(r"\s*\n\s*", "\n", text).strip() + "\n"
    return made


def texts(outputs: list[Output]) -> list[str]:
    """The texts of a cell's outputs. A chart depends on the version of matplotlib, so it is not one of them."""
    found = []
    for one in outputs:
        data = one.get("data", {"text/plain": one.get("text", "")})
        found += ["".join(text) for kind, text in data.items() if kind != "image/svg+xml"]
    return found


def write(path: Path) -> None:
    """Keeps what the cells show."""
    book = json.loads(path.read_text("utf-8"))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    for number, (cell, outputs) in enumerate(zip(code, ran(path), strict=True), 1):
        cell["execution_count"] = number
        cell["outputs"] = json.loads(json.dumps(outputs), object_hook=_in_lines)
    path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _in_lines(found: dict[str, Any]) -> dict[str, Any]:
    # As Jupyter writes them.
    return {
        name: text.splitlines(keepends=True) if "/" in name or name == "text" else text for name, text in found.items()
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: {' '.join(CAPTURES)}")
    for one in parser.parse_args().names or CAPTURES:
        write(FOLDER / f"{one}.ipynb")
        print(one, file=sys.stderr)
