"""Where machine code is kept: never code of other sources, never where somebody else could put his."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from kwire.kernels import cache, compiling, fence

PACKAGE = Path(cache.__file__).parent.parent

PROBE = """
from kwire.kernels.engine import kernel
from kwire.kernels.numbers import u16

@kernel
def twice(buf):
    return 2 * u16(buf, 0)
"""
CALL = """
import numpy as np
from kwire.kernels import cache, probe
from kwire.kernels.engine import MACHINE
print(MACHINE(probe.twice)(np.array([1, 2], np.uint8)), cache.folder())
"""

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="about POSIX permissions")


def copied(tmp_path: Path) -> Path:
    """A copy of the package with one kernel more, whose callee stands in another file."""
    package = tmp_path / "kwire"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "kernels" / "probe.py").write_text(PROBE)
    return package


def call(tmp_path: Path, **environment: str) -> tuple[int, Path]:
    """What the copy's kernel gives, and the folder of its machine code."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    done = subprocess.run(
        [sys.executable, "-c", CALL],
        cwd=tmp_path,
        env={**inherited, "PYTHONPATH": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    result, folder = done.stdout.split()
    return int(result), Path(folder)


@pytest.mark.wide
def test_a_change_of_a_callee_in_another_file_takes_effect_at_once(tmp_path: Path) -> None:
    package = copied(tmp_path)
    result, folder = call(tmp_path)
    assert result == 2 * 0x0102
    assert folder.parent == package / "kernels" / "__pycache__"
    code = [*folder.glob("*twice*.nbc")]
    assert code
    compiled = [one.stat().st_mtime_ns for one in code]
    assert call(tmp_path) == (result, folder)
    assert [one.stat().st_mtime_ns for one in code] == compiled, "compiled once"

    numbers = package / "kernels" / "numbers.py"
    before = numbers.stat()
    numbers.write_text(numbers.read_text().replace("return big16(buf, at)", "return big16(buf, at) + 1"))
    os.utime(numbers, ns=(before.st_atime_ns, before.st_mtime_ns))  # a package manager sets times as it likes
    result, other = call(tmp_path)
    assert result == 2 * 0x0103
    assert other != folder


@pytest.mark.wide
def test_the_digest_covers_what_kernels_import_from_elsewhere(tmp_path: Path) -> None:
    package = copied(tmp_path)
    _, folder = call(tmp_path)
    keys = package / "schema" / "keys.py"
    keys.write_text(keys.read_text() + "\n")
    assert call(tmp_path)[1] != folder
    imported = set()
    for path in (PACKAGE / "kernels").glob("*.py"):
        for line in path.read_text().splitlines():
            words = line.split()
            if line.startswith(("from kwire", "import kwire")) and not words[1].startswith("kwire.kernels"):
                imported.add(words[1])
    # errors and the model of schemas give kernels no number; what does, is part of the digest.
    known = {"kwire." + one.removesuffix(".py").replace("/", ".") for one in cache.ELSEWHERE}
    assert imported - known <= {"kwire.errors", "kwire.schema.model"}


@pytest.mark.wide
def test_an_installation_that_cannot_be_written_uses_what_it_was_filled_with(tmp_path: Path) -> None:
    package = copied(tmp_path)
    result, folder = call(tmp_path)
    names = {one.name for one in folder.iterdir()}
    # Permissions do not bind root: what stands in the way of a file does.
    home = tmp_path / "home"
    home.write_text("")
    assert call(tmp_path, XDG_CACHE_HOME=str(home)) == (result, folder)
    shutil.move(folder, tmp_path / "moved")
    cached = package / "kernels" / "__pycache__"
    shutil.rmtree(cached)
    cached.write_text("")
    result, elsewhere = call(tmp_path, XDG_CACHE_HOME=str(home), TMPDIR=str(tmp_path))
    assert result == 2 * 0x0102
    assert elsewhere.parent == tmp_path
    assert elsewhere.name.startswith(f"kwire-kernels-{os.getuid()}-")
    assert {one.name for one in elsewhere.iterdir()} == names
    user = tmp_path / "user"
    assert call(tmp_path, XDG_CACHE_HOME=str(user))[1].parent == user / "kwire"


def test_numbas_own_setting_of_a_folder_holds(tmp_path: Path) -> None:
    copied(tmp_path)
    assert call(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "set"))[1].parent == tmp_path / "set"


@pytest.mark.wide
def test_numbas_folder_is_not_used_where_others_may_write(tmp_path: Path) -> None:
    copied(tmp_path)
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        (tmp_path / "kwire" / "kernels" / "__pycache__").unlink(missing_ok=True)
        (tmp_path / "kwire" / "kernels" / "__pycache__").write_text("")
        result, folder = call(tmp_path, TMPDIR=str(tmp_path), **{name: str(open_to_all)})
        assert result == 2 * 0x0102
        assert folder.name.startswith(f"kwire-kernels-{os.getuid()}-")


def _owned(uid: int, gid: int, mode: int) -> os.stat_result:
    return os.stat_result((stat.S_IFDIR | mode, 0, 0, 0, uid, gid, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("uid", "gid", "mode", "others"),
    [
        (1000, 1000, 0o755, False),
        (0, 0, 0o755, False),
        (1000, 1000, 0o775, False),  # a group of this user alone
        (0, 0, 0o775, False),
        (1000, 50, 0o775, True),
        (1000, 1000, 0o757, True),
        (1001, 1000, 0o755, True),
        (65534, 0, 0o700, True),
    ],
)
def test_who_can_put_code_into_a_folder(
    uid: int, gid: int, mode: int, others: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(os, "getgid", lambda: 1000)
    assert cache._of_others(_owned(uid, gid, mode)) == others
    # Beside the kernels, whoever may change them may put code there.
    assert cache._of_others(_owned(1001, 50, 0o775), _owned(1001, 50, 0o775)) is False
    assert cache._of_others(_owned(1001, 50, 0o775), _owned(1001, 50, 0o755)) is True
    assert cache._of_others(_owned(1002, 50, 0o755), _owned(1001, 50, 0o755)) is True


def test_each_part_of_the_way_to_machine_code_is_looked_at(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True, mode=0o755)
    (folder / "x.nbi").write_bytes(b"")
    for one, safe, loose in ((folder, 0o755, 0o777), (folder.parent, 0o755, 0o777), (folder / "x.nbi", 0o644, 0o666)):
        one.chmod(safe)
        assert cache._is_safe(folder)
        one.chmod(loose)
        assert not cache._is_safe(folder)
        one.chmod(safe)
    # Nobody else renames what is this user's there; and nobody else reaches a file in a folder that is his alone.
    folder.parent.chmod(0o1777)
    assert cache._is_safe(folder)
    folder.chmod(0o700)
    (folder / "x.nbi").chmod(0o666)
    assert cache._is_safe(folder)


def test_a_loose_umask_lets_nobody_write_machine_code(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert cache._writable(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert cache._is_safe(tmp_path / "a" / "b")


def test_the_folder_of_last_resort_belongs_to_the_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = cache.private_folder()
    assert folder.parent == tmp_path
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert cache.private_folder() == folder


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    planted = cache.private_folder()
    planted.chmod(0o777)
    assert cache.private_folder() != planted


def test_a_link_to_a_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    planted = cache.private_folder()
    planted.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    planted.symlink_to(tmp_path / "elsewhere")
    assert cache.private_folder() != planted


@pytest.mark.parametrize("damaged", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("content", [b"", b"garbage\n"])
def test_a_damaged_file_of_machine_code_is_as_good_as_none(
    damaged: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)

    def one(value: int) -> int:
        return value + 1

    def made() -> Any:
        found = compiling.njit(one)
        fence.keep(found)
        return found

    assert made()(1) == 2
    (path,) = tmp_path.glob(damaged)
    path.write_bytes(content)
    assert made()(1) == 2
    again = made()
    assert again(1) == 2
    assert sum(again.stats.cache_hits.values()) == 1
