"""Every table of every golden capture and segment: by machine code that ``kwire compile`` makes, and by Python.

Both read with the code of ``dump_tables.py``. Python reads what is small, and with the exhaustive profile of Hypothesis
everything: it takes minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from dump_tables import HERE, compare, dump
from hypothesis import settings

from kwire.kernels.engine import PYTHON, using

SMALL = 60_000
"""Bytes of a file that Python reads with any profile."""

DUMP = """
import sys
from pathlib import Path
from dump_tables import dump
from kwire.cli.compile import PARTS, compile_part
from kwire.kernels import compiling
from kwire.kernels.engine import MACHINE, using

def compiled():
    return {(kernel.__module__, kernel.__qualname__, str(one))
            for kernel, made in compiling._entries.items() for one in made.signatures}

for part in PARTS:
    compile_part(part)
before = compiled()
with using(MACHINE):
    counts = dump(Path(sys.argv[1]), None, "")
print(*counts, len(before), "".join(f"\\n{one}" for one in sorted(compiled() - before)))
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The tables that a new process read, and what it printed: how many there are, their rows, errors, and kernels that
    ``kwire compile`` makes; and each that was compiled besides, with its types."""
    tables = tmp_path_factory.mktemp("tables")
    path = os.pathsep.join([str(HERE), *(one for one in sys.path if one)])
    done = subprocess.run(
        [sys.executable, "-c", DUMP, str(tables)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return tables, done.stdout


@pytest.mark.wide
def test_after_kwire_compile_reading_everything_compiles_nothing_more(machine: tuple[Path, str]) -> None:
    counts, *more = machine[1].splitlines()
    tables, rows, _, kernels = map(int, counts.split())
    assert tables > 300
    assert rows > 30_000
    assert kernels > 20
    assert more == []


@pytest.mark.wide
def test_python_reads_every_table_as_machine_code_does(machine: tuple[Path, str], tmp_path: Path) -> None:
    everything = settings.get_current_profile_name() == "exhaustive"
    with using(PYTHON):
        counts = dump(tmp_path, None, "", None if everything else SMALL)
    assert counts[0] > 300
    if everything:
        assert list(counts) == [int(one) for one in machine[1].split()[:3]]
    found = compare(machine[0], tmp_path, False)
    if not everything:
        left_out = f": only in {machine[0]}"
        assert any("quorum" in one for one in found)
        found = [one for one in found if not one.endswith(left_out)]
    assert found == []
