"""Runs the notebooks of ``docs/notebooks`` as plain Python, without Jupyter.

    python tests/golden/notebooks.py --write

keeps what their cells print as their outputs, which the test compares. The captures are golden ones.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent
FOLDER = GOLDEN.parents[1] / "docs" / "notebooks"
CAPTURES = {
    "slow-cluster": "kafka-4.3-kraft-java/clients.pcap",
    "upgrade": "kafka-3.9-zk-kafka-python/pinned-0.9.pcap",
}


def ran(path: Path) -> list[str]:
    """What each cell with code prints."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    before = os.environ.get("KWIRE_CAPTURE")
    os.environ["KWIRE_CAPTURE"] = str(GOLDEN / CAPTURES[path.stem])
    space: dict[str, Any] = {"__name__": "notebook"}
    printed = []
    try:
        for number, cell in enumerate(cells):
            if cell["cell_type"] == "code":
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), space)
                printed.append(said.getvalue())
    finally:
        if before is None:
            del os.environ["KWIRE_CAPTURE"]
        else:
            os.environ["KWIRE_CAPTURE"] = before
    return printed


def outputs(path: Path) -> list[str]:
    """What the notebook says that its cells print."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return [
        "".join(line for output in cell["outputs"] for line in output["text"])
        for cell in cells
        if cell["cell_type"] == "code"
    ]


def write(path: Path) -> None:
    """Keeps what the cells print."""
    book = json.loads(path.read_text("utf-8"))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    for number, (cell, text) in enumerate(zip(code, ran(path), strict=True), 1):
        cell["execution_count"] = number
        stream = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
        cell["outputs"] = [stream] if text else []
    path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", required=True)
    parser.parse_args()
    for one in CAPTURES:
        write(FOLDER / f"{one}.ipynb")
        print(one, file=sys.stderr)
