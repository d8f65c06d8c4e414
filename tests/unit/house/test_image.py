"""The Dockerfile: what it says, and its steps carried out in a folder, since docker need not be there."""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwire.kernels import cache

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "Dockerfile").read_text("utf-8")
CAPTURE = ROOT / "tests" / "golden" / "kafka-3.9-zk-kafka-python" / "first-light.pcap"
IGNORED = (ROOT / ".dockerignore").read_text("utf-8").split()


def instructions() -> list[tuple[str, str]]:
    """The instructions with their arguments, in order."""
    lines = re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines.splitlines() if line]


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage; what stands before the first one belongs to none."""
    found: list[list[tuple[str, str]]] = []
    for one in instructions():
        if one[0] == "FROM":
            found.append([])
        if found:
            found[-1].append(one)
    return found


def variables(stage: list[tuple[str, str]]) -> dict[str, str]:
    """What ARG and ENV of a stage set."""
    found = [word.split("=", 1) for kind, rest in stage if kind in ("ARG", "ENV") for word in shlex.split(rest)]
    return dict(found)


def sent(name: str) -> bool:
    """Whether docker is given a file of the checkout: the last line of .dockerignore that is about it decides."""
    given = True
    for line in IGNORED:
        pattern = line.removeprefix("!")
        if any(fnmatch.fnmatch(one, pattern) for one in (name, name.split("/")[0])) or name.endswith(
            pattern.removeprefix("**/")
        ):
            given = line.startswith("!")
    return given


def test_the_image_has_two_stages_and_the_second_runs_nothing() -> None:
    build, last = stages()
    assert build[0] == ("FROM", "python:${PYTHON}-slim AS build")
    assert last[0] == ("FROM", "python:${PYTHON}-slim")
    assert {kind for kind, _ in build} == {"FROM", "ARG", "ENV", "WORKDIR", "COPY", "RUN"}
    # No compiler, no cache of pip and no source: only what was installed is taken.
    assert [rest for kind, rest in last if kind == "COPY"] == ["--from=build /opt/kwire /opt/kwire"]
    assert "RUN" not in {kind for kind, _ in last}


def test_the_image_runs_as_nobody() -> None:
    last = stages()[-1]
    (user,) = (rest for kind, rest in last if kind == "USER")
    assert user == "65534:65534"
    assert last.index(("USER", user)) < last.index(("ENTRYPOINT", '["kwire"]'))


def test_machine_code_is_made_for_what_runs_it() -> None:
    build, last = map(variables, stages())
    for name in ("NUMBA_CACHE_DIR", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
        assert build[name] == last[name]
    assert build["NUMBA_CACHE_DIR"].startswith("/opt/kwire/")


def test_docker_is_given_what_is_copied_and_nothing_else() -> None:
    copied = [word for kind, rest in stages()[0] if kind == "COPY" for word in rest.split()[:-1]]
    assert sorted(copied) == sorted(line[1:] for line in IGNORED if line[0] == "!")
    for name in copied:
        assert sent(name)
        assert (ROOT / name).exists()
    for name in ("tests", ".git", ".venv", "docs", "kwire/cli/__pycache__"):
        assert not sent(name)


def test_what_the_wheel_needs_is_copied() -> None:
    copied = {word for kind, rest in stages()[0] if kind == "COPY" for word in rest.split()[:-1]}
    # Those of the fixture `wheel` of test_packaging.py, which builds from them.
    assert copied == {"pyproject.toml", "README.md", "LICENSE", "pyspark_kwire.py", "kwire", "schemas"}


@pytest.fixture(scope="module")
def image() -> Iterator[Path]:
    """The folder that the image would have as ``/``, after the steps of the first stage."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        build = stages()[0]
        env = {
            **os.environ,
            **variables(build),
            "NUMBA_CACHE_DIR": str(root / "opt" / "kwire" / "kernels"),
            # No network: what it needs is here, and so is what builds it.
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "0",
            "PYTHONPATH": "",
        }
        # For this processor, so that the machine code that tests have is taken.
        for one in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
            del env[one]
        kept = cache.folder()
        shutil.copytree(kept, root / "opt" / "kwire" / "kernels" / kept.name)
        here = root
        for kind, rest in build:
            if kind == "WORKDIR":
                here = root / rest.lstrip("/")
                here.mkdir(parents=True, exist_ok=True)
            elif kind == "COPY":
                *sources, target = rest.split()
                for source in sources:
                    copy(ROOT / source, here / target / ("" if (ROOT / source).is_dir() else source))
            elif kind == "RUN":
                command = rest.replace("/opt/", f"{root}/opt/")
                command = re.sub(r"^python\b", shlex.quote(sys.executable), command)
                done = subprocess.run(["sh", "-c", command], cwd=here, env=env, capture_output=True, text=True)
                assert done.returncode == 0, (command, done.stdout, done.stderr)
                if "-m venv" in command:
                    (site,) = (root / "opt" / "kwire" / "venv" / "lib").glob("python*/site-packages")
                    (site / "of_the_tests.pth").write_text(sysconfig.get_path("purelib"))
        shutil.rmtree(root / "src")
        yield root


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def run(image: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command as the image would, in a folder with captures."""
    env = {
        "PATH": f"{image}/opt/kwire/venv/bin:{os.environ['PATH']}",
        "NUMBA_CACHE_DIR": f"{image}/opt/kwire/kernels",
        "PYTHONDONTWRITEBYTECODE": variables(stages()[-1])["PYTHONDONTWRITEBYTECODE"],
        "HOME": "/nonexistent",
    }
    return subprocess.run(words, cwd=CAPTURE.parent, env=env, capture_output=True, text=True, timeout=120)


@pytest.mark.wide
def test_the_steps_make_a_command_with_machine_code_that_writes_nothing(image: Path) -> None:
    compiled = run(image, "kwire", "compile")
    assert re.match(r"all \d+ kernels are in .*/opt/kwire/kernels/\S+ already", compiled.stdout), compiled
    before = {one: one.stat().st_mtime_ns for one in image.rglob("*")}
    assert all(not one.stat().st_mode & 0o022 for one in before if not one.is_symlink())
    decoded = run(image, "kwire", "decode", CAPTURE.name, "--format", "csv")
    assert decoded.returncode == 0, decoded.stderr
    assert decoded.stderr == ""
    assert decoded.stdout.count("\n") > 50
    assert run(image, "kwire", "--help").stdout.startswith("usage: kwire")
    found = run(image, "python", "-c", "import kwire; print(kwire.__file__)").stdout
    assert found.startswith(str(image))
    assert {one: one.stat().st_mtime_ns for one in image.rglob("*")} == before
