"""Where the machine code of kernels is kept, and that nobody else can put his there."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kwire import jit

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="about POSIX permissions")


def test_the_folder_of_last_resort_belongs_to_the_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = Path(jit._private_folder())
    assert folder.parent == tmp_path
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert jit._private_folder() == str(folder)


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    planted = tmp_path / f"kwire-kernels-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    assert jit._private_folder() != str(planted)


def test_a_link_to_a_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    planted = tmp_path / f"kwire-kernels-{os.getuid()}"
    planted.symlink_to(tmp_path / "elsewhere")
    assert jit._private_folder() != str(planted)


def test_a_kernel_compiles_where_numba_finds_no_folder_for_its_cache(tmp_path: Path) -> None:
    program = """
import tempfile
from numba.core import caching, config
for one in list(caching.CacheImpl._locator_classes):
    if "UserProvided" not in one.__name__:
        caching.CacheImpl._locator_classes.remove(one)
from kwire.jit import be16
import numpy as np
assert be16(np.array([1, 2], np.uint8), 0) == 258
assert config.CACHE_DIR == "", config.CACHE_DIR
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=120)
    assert list(tmp_path.glob("kwire-kernels-*/**/*.nbi"))
