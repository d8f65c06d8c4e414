"""kwire finds its schemas however it was installed: wheel, zip, editable, bare clone.

The schemas are the top-level ``schemas/`` of a checkout and ``kwire/_schemas`` of a wheel. Each test copies the
sources, or builds from them, in a new directory and asks a new interpreter that sees only those.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]

# Prints where kwire comes from and decodes one request, which needs a header schema and a message schema.
PROBE = """
import kwire
frame = kwire.decode_request(bytes.fromhex("0012" "0000" "00000007" "0001" "78"))
assert frame.header.client_id == "x", frame
print(kwire.__file__)
"""


def probe(place: Path, cwd: Path) -> str:
    """Where kwire is found when ``place`` is first on the path; ``-P`` keeps the working directory off it."""
    env = {**os.environ, "PYTHONPATH": f"{place}{os.pathsep}{sysconfig.get_path('purelib')}"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROBE], env=env, cwd=cwd, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def ignore(_directory: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this checkout, built without a network."""
    tree = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "README.md", "LICENSE", "pyspark_kwire.py"):
        shutil.copy(CHECKOUT / name, tree)
    for name in ("kwire", "schemas"):
        shutil.copytree(CHECKOUT / name, tree / name, ignore=ignore)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=tree, check=True, timeout=120)
    (built,) = (tree / "dist").glob("*.whl")
    return built


def test_wheel_holds_every_schema_and_the_typing_marker(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    schemas = [path.relative_to(CHECKOUT / "schemas") for path in (CHECKOUT / "schemas").rglob("*.kwire")]
    assert schemas
    assert {f"kwire/_schemas/{path.as_posix()}" for path in schemas} <= names
    assert "kwire/py.typed" in names


def test_kwire_works_from_an_unpacked_wheel(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    assert probe(tmp_path / "site", tmp_path).startswith(str(tmp_path / "site"))


def test_kwire_works_from_a_zip_on_the_path(wheel: Path, tmp_path: Path) -> None:
    # A wheel is a zip; this is also how SparkContext.addPyFile ships it to executors.
    archive = tmp_path / "kwire.zip"
    shutil.copy(wheel, archive)
    assert probe(archive, tmp_path).startswith(str(archive))


def test_kwire_works_from_a_bare_clone(tmp_path: Path) -> None:
    for name in ("kwire", "schemas"):
        shutil.copytree(CHECKOUT / name, tmp_path / "clone" / name, ignore=ignore)
    assert probe(tmp_path / "clone", tmp_path).startswith(str(tmp_path / "clone"))


def build(tree: Path, when: int) -> dict[str, bytes]:
    """The archives that are built in a copy of the checkout whose files all have one time, by their names."""
    shutil.copytree(CHECKOUT, tree, ignore=ignored)
    # Left over by somebody who ran it, and of no use to others.
    (tree / "kwire" / "__pycache__").mkdir()
    (tree / "kwire" / "__pycache__" / f"wire.cpython-3{when % 10}.pyc").write_bytes(bytes([when % 256]))
    for one in tree.rglob("*"):
        os.utime(one, (when, when))
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000"}
    subprocess.run([sys.executable, "-m", "hatchling", "build"], cwd=tree, env=env, check=True, timeout=120)
    return {one.name: one.read_bytes() for one in (tree / "dist").iterdir()}


def ignored(_directory: str, names: list[str]) -> list[str]:
    out = ("__pycache__", "build", "dist", "node_modules", "spark-warehouse")
    return [name for name in names if name in out or (name.startswith((".git", ".venv")) and name != ".github")]


@pytest.mark.wide
def test_two_builds_have_the_same_bytes(tmp_path: Path) -> None:
    first = build(tmp_path / "here", 1_600_000_001)
    umask = os.umask(0o077)
    try:
        second = build(tmp_path / "somewhere" / "else", 1_700_000_002)
    finally:
        os.umask(umask)
    assert sorted(name.rpartition(".")[2] for name in first) == ["gz", "whl"]
    assert first == second
    (source,) = (one for one in first if one.endswith(".gz"))
    shutil.unpack_archive(tmp_path / "here" / "dist" / source, tmp_path / "unpacked", filter="data")
    (tree,) = (tmp_path / "unpacked").iterdir()
    # A source distribution has all that tests and builds need, and its wheel is the same.
    names = {one.relative_to(tree).as_posix() for one in tree.rglob("*")}
    assert {".ci/run", ".github/workflows/tests.yml", "Dockerfile", "Makefile", "tests/oldest.txt"} <= names
    assert not any(one.endswith((".pyc", "__pycache__")) for one in names)
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000"}
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=tree, env=env, check=True)
    (wheel,) = (tree / "dist").iterdir()
    assert wheel.read_bytes() == first[wheel.name]


def test_the_oldest_versions_that_are_tested_are_those_that_are_allowed() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    allowed = {}
    tested_extras = ("capture", "events", "fuzz", "tls", "values")
    for one in (*project["dependencies"], *(one for name in tested_extras for one in extras[name])):
        name, _, least = one.partition(">=")
        if not name.startswith("kwire["):
            allowed[name] = least.partition(",")[0]
    lines = [one for one in (CHECKOUT / "tests" / "oldest.txt").read_text("utf-8").splitlines() if one[0] != "#"]
    tested = dict(one.split("==") for one in lines)
    assert tested.keys() == allowed.keys()
    for name, version in tested.items():
        assert version.removesuffix(".0").removesuffix(".0") == allowed[name].removesuffix(".0"), name


def test_the_page_says_of_each_extra_what_it_is_for() -> None:
    page = (CHECKOUT / "docs" / "how-to" / "install.md").read_text("utf-8")
    extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for name in extras:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        assert row.rstrip("|").rpartition("|")[2].strip(), name
