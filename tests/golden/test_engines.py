"""Every table of every golden capture and segment: by kernels as Python, as machine code, and after ``kwire compile``.

Both read everything once, with the reading code of ``dump_tables.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from dump_tables import HERE, compare, dump

from kwire.kernels.engine import PYTHON, using

DUMP = """
import sys
from pathlib import Path
from dump_tables import dump
from kwire.kernels import cache
from kwire.kernels.engine import MACHINE, using
with using(MACHINE):
    print(*dump(Path(sys.argv[1]), None, ""), cache.folder())
"""


@pytest.fixture(scope="module")
def compiled_ahead(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], str, Path]:
    """After ``kwire compile`` into an empty folder: the tables that a new process read, the files that were in the
    folder before that, what it printed, and the folder."""
    code, tables = tmp_path_factory.mktemp("code"), tmp_path_factory.mktemp("tables")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    path = os.pathsep.join([str(HERE), *(one for one in sys.path if one)])
    environment = {**inherited, "NUMBA_CACHE_DIR": str(code), "PYTHONPATH": path}

    def run(*args: str) -> str:
        done = subprocess.run([sys.executable, *args], env=environment, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("-m", "kwire.cli", "compile")
    files = files_of(code)
    return tables, files, run("-c", DUMP, str(tables)), code


def files_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_after_kwire_compile_reading_everything_compiles_nothing_more(
    compiled_ahead: tuple[Path, list[str], str, Path],
) -> None:
    _, files, printed, code = compiled_ahead
    tables, rows, _, folder = printed.split()
    assert int(tables) > 300
    assert int(rows) > 30_000
    assert Path(folder).parent == code
    assert any(name.endswith(".nbc") for name in files)
    assert sorted(set(files_of(code)) - set(files)) == []


def test_python_reads_every_table_as_machine_code_does(
    compiled_ahead: tuple[Path, list[str], str, Path], tmp_path: Path
) -> None:
    machine, _, printed, _ = compiled_ahead
    with using(PYTHON):
        assert list(dump(tmp_path, None, "")) == [int(one) for one in printed.split()[:3]]
    assert compare(machine, tmp_path, False) == []
