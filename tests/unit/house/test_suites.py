"""Every test is run by ``make test`` or ``make test-wide``, or by a target of its own; ``.ci/run`` runs all of them."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TESTS = ROOT / "tests"
MAKEFILE = (ROOT / "Makefile").read_text()
CI = (ROOT / ".ci" / "run").read_text()


def _recipe(target: str) -> str:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert found is not None, target
    return found[1]


def _folders() -> set[str]:
    found = re.search(r"^TESTS := (.+)$", MAKEFILE, re.MULTILINE)
    assert found is not None
    return {one.removeprefix("tests/") for one in found[1].split()}


def _stays(module: Path) -> bool:
    """Whether ``make test`` runs a test of a module: one that is not ``wide``, or some of its parameters."""
    tree = ast.parse(module.read_text())
    if any(ast.unparse(one) == "pytestmark = pytest.mark.wide" for one in tree.body):
        return False
    tests = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")]
    return any("pytest.mark.wide" not in map(ast.unparse, one.decorator_list) for one in tests)


def test_each_file_of_tests_is_run_by_a_target_that_ci_runs() -> None:
    modules = {one.relative_to(TESTS).parts[0] for one in TESTS.rglob("test_*.py")}
    assert _folders() < modules
    for part, target in (" --part quick", "test"), (" --part wide", "test-wide"), ("", "test-all"):
        assert re.search(rf"\$\(PYTEST\){part} \$\(SIDE_BY_SIDE\) \$\(TESTS\)", _recipe(target))
    assert re.search(r"^step make test\nstep make test-wide$", CI, re.MULTILINE)
    # The others have a target of their own name.
    others = re.search(r"for suite in (.*); do", CI)
    assert others is not None
    assert set(others[1].split()) == modules - _folders()
    for one in others[1].split():
        assert f"tests/{one} " in _recipe(f"test-{one}")


def test_make_test_runs_something_of_each_family() -> None:
    for folder in _folders():
        families: dict[Path, bool] = {}
        for module in (TESTS / folder).rglob("test_*.py"):
            families[module.parent] = families.get(module.parent, False) or _stays(module)
        assert families
        assert all(families.values()), families


MODULE = """
import pytest

def test_plain() -> None: ...

@pytest.mark.wide
def test_long() -> None: ...

@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("one", range(5))
def test_of_many(one: int) -> None: ...

@pytest.mark.wide(keep=9)
@pytest.mark.parametrize("one", range(2))
def test_of_few(one: int) -> None: ...
"""


@pytest.mark.wide
def test_each_test_is_in_one_of_the_two_parts(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (tmp_path / "test_some.py").write_text(MODULE)
    (tmp_path / "test_wide.py").write_text("import pytest\npytestmark = pytest.mark.wide\n" + MODULE)
    found = {}
    for part in ("quick", "wide"):
        words = ["-c", ROOT / "pyproject.toml", "--rootdir", tmp_path, "-p", "no:cacheprovider", "--part", part]
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *words, tmp_path]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        found[part] = [one for one in done.stdout.splitlines() if "::" in one]
    names = ("plain", "of_many[0]", "of_many[2]", "of_few[0]", "of_few[1]")
    assert found["quick"] == [f"test_some.py::test_{one}" for one in names]
    assert not set(found["quick"]) & set(found["wide"])
    assert len(found["quick"]) + len(found["wide"]) == 2 * (1 + 1 + 5 + 2)


def test_a_target_with_an_environment_of_its_own_runs_in_it() -> None:
    own = re.findall(r"^(test-[a-z]+): VENV := (\S+)$", MAKEFILE, re.MULTILINE)
    assert own
    for target, environment in own:
        # Without the caller's: a variable of the command line would go before that of the target.
        plain = {
            name: value for name, value in os.environ.items() if name not in ("VENV", "MAKEFLAGS", "MAKEOVERRIDES")
        }
        done = subprocess.run(["make", "-n", target], cwd=ROOT, env=plain, capture_output=True, text=True, check=True)
        assert f"{environment}/bin/python -m pytest" in done.stdout


def test_ci_installs_what_targets_share_before_they_run_beside_each_other() -> None:
    assert "docs/make_site.py" in _recipe("site")
    there = re.search(r"^step \.ci/setup (--.+)\ntouch \"\$beside/ready\"$", CI, re.MULTILINE)
    assert there is not None
    assert there.end() < CI.index("step make check")
    for target in ("check", "verify-types", "audit", "test", "test-wide", "site", "test-kafka", "test-broker"):
        needed = re.search(r"\.ci/setup (.+)", _recipe(target))
        assert needed is not None
        assert set(needed[1].split()) - {"--jdk"} <= set(there[1].split()), target
    # The other lane waits for it before its first target that shares the environment.
    waits = CI.index('[ ! -e "$beside/ready" ]')
    assert CI.index("step make test-oldest") < waits < CI.index("step make test-unit") < CI.index("step make site")


def test_what_the_newest_python_leaves_out_is_there() -> None:
    left_out = re.search(r"for one in (unit/.*?); do", CI, re.DOTALL)
    assert left_out is not None
    done = subprocess.run(["bash", "-c", f"echo {left_out[1]}"], capture_output=True, text=True, check=True)
    names = done.stdout.split()
    assert len(names) > 20
    assert [one for one in names if not (TESTS / one).exists()] == []
