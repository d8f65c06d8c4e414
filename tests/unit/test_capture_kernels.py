"""Where the machine code of kernels is kept, and that nobody else can put his there."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
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


def test_numbers_are_read_in_both_orders_and_never_outside_of_the_array() -> None:
    data = np.array([0x81, 0x02, 0x03, 0x84, 0x05], np.uint8)
    assert (jit.be16(data, 0), jit.le16(data, 0), jit.int16(data, 0)) == (0x8102, 0x0281, 0x8102 - 0x10000)
    assert (jit.be32(data, 0), jit.le32(data, 0)) == (0x81020384, 0x84030281)
    assert jit.int32(data, 0) == 0x81020384 - 0x100000000
    assert jit.be32(data, 1) == 0x02038405
    for read, width in ((jit.be16, 2), (jit.le16, 2), (jit.be32, 4), (jit.le32, 4)):
        assert read(data, 5 - width) >= 0
        for outside in (5 - width + 1, -1, 5, 1 << 40):
            with pytest.raises(IndexError):
                read(data, outside)


def test_kernels_give_the_same_without_numba() -> None:
    golden = Path(__file__).parent.parent / "golden"
    program = f"""
import contextlib, hashlib, io, pathlib
from kwire import CaptureError, capture
for path in sorted(pathlib.Path({str(golden)!r}).glob("*/first-light.pcap")):
    for table in ("frames", "messages"):
        with contextlib.suppress(CaptureError):
            for batch in capture.read(io.BytesIO(path.read_bytes()[:30_000]), table, window=5000):
                print(hashlib.sha256(str(batch.to_pylist()).encode()).hexdigest())
"""
    made = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            check=True,
            env={**os.environ, "NUMBA_DISABLE_JIT": off},
            timeout=300,
            capture_output=True,
        ).stdout
        for off in ("0", "1")
    ]
    assert made[0]
    assert made[0] == made[1]
