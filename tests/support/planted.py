"""Defects that were planted: ``python tests/support/planted.py [words]``, which is ``make planted``.

Each file of ``tests/planted`` is a patch of one defect. Before the patch it says what the defect is, of which kind, and
what finds it. That is a harness, which gets the seconds that ``make fuzz`` has for it in ``SECONDS``, or tests of
``make test``. The patch is applied to a copy of the checkout, and what should find it runs there, with kernels as
Python: it is the source that is changed. A defect that is not found within ``SECONDS`` is printed, and the exit status
is 1. Seconds are processor time: what else a machine does must not decide.

``words`` choose the defects in whose name there is one of them. ``tests/unit/house/test_planted.py`` holds the patches
against the sources.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

CHECKOUT: Final = Path(__file__).resolve().parents[2]
PATCHES: Final = CHECKOUT / "tests" / "planted"
KINDS: Final = ("bounds", "sign", "version", "order", "state")

SECONDS: Final = 300
"""Of processor time, in which a defect has to be found."""
ON_THE_CLOCK: Final = 6 * SECONDS
"""After which nobody waits any longer."""

_COPIED: Final = ("kwire", "schemas", "tests", "fuzz", "pyproject.toml", "docs", "benchmarks")
_HEAD: Final = re.compile(r"\A(?P<about>.+)\nKind: (?P<kind>\w+)\nFound by: (?P<way>fuzz|test) (?P<what>\S+)\n\n--- a/")


class Defect(NamedTuple):
    """``way`` and ``what``: a harness (``fuzz``), or a file or folder of tests (``test``)."""

    patch: Path
    about: str
    kind: str
    way: str
    what: str

    @property
    def name(self) -> str:
        return self.patch.stem


def defects() -> list[Defect]:
    """All of them. Raises ``ValueError`` for a file that does not say what it has to."""
    found = []
    for patch in sorted(PATCHES.glob("*.patch")):
        head = _HEAD.match(patch.read_text())
        if head is None:
            raise ValueError(f"{patch.name} does not begin with what it is, its kind, and what finds it")
        found.append(Defect(patch, **head.groupdict()))
    return found


def apply(patch: Path, checkout: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Applies a patch, or says with ``--check`` whether it can be."""
    # Outside of any repository, whatever the folder stands in: paths count from it.
    environment = {**os.environ, "GIT_DIR": os.devnull}
    command = ["git", "apply", *options, str(patch)]
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)


def copied(folder: Path) -> Path:
    """A copy of what defects are planted in, and of what finds them."""
    for name in _COPIED:
        source, target = CHECKOUT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "golden"))
        else:
            shutil.copy(source, target)
    (folder / "tests" / "golden").symlink_to(CHECKOUT / "tests" / "golden")
    return folder


def _command(one: Defect, folder: Path) -> list[str]:
    if one.way == "test":
        options = ["--part", "quick", "-q", "-x", "-p", "no:cacheprovider", "-k", "not machine"]
        return [sys.executable, "-m", "pytest", *options, one.what]
    # All of the seconds of ``make fuzz``, over all harnesses; each has two ways.
    sys.path.insert(0, str(CHECKOUT))
    from fuzz.__main__ import HARNESSES

    share = str(max(4, SECONDS // len(HARNESSES)))
    return [sys.executable, "-m", "fuzz", "--only", one.what, "--seconds", share, "--folder", str(folder / "found")]


def _found(one: Defect) -> tuple[bool, float]:
    with tempfile.TemporaryDirectory() as place:
        folder = copied(Path(place))
        done = apply(one.patch, folder)
        if done.returncode:
            raise RuntimeError(f"{one.name}: {done.stderr}")
        environment = {**os.environ, "PYTHONPATH": place, "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        began = _used()
        try:
            done = subprocess.run(
                _command(one, folder), cwd=folder, env=environment, capture_output=True, timeout=ON_THE_CLOCK
            )
        except subprocess.TimeoutExpired:
            return False, _used() - began
        seconds = _used() - began
        # 1: tests failed, or a harness has found something. Anything else says that they could not be run.
        return done.returncode == 1 and seconds < SECONDS, seconds


def _used() -> float:
    """Seconds of processor time of all processes that were started here and have ended."""
    took = os.times()
    return took.children_user + took.children_system


def main(words: list[str]) -> int:
    chosen = [one for one in defects() if not words or any(word in one.name for word in words)]
    missed = 0
    for one in chosen:
        found, seconds = _found(one)
        missed += not found
        verdict = "found " if found else "MISSED"
        print(f"{verdict} {one.name} by {one.way} {one.what} in {seconds:.0f} s of processor time", flush=True)
    print(f"{len(chosen)} planted, {missed} missed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
