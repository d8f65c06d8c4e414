"""Every test is run by ``make test``, ``make test-wide`` or a target of its own; ``.ci/run`` runs all of these."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from pathlib import Path

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
    assert re.search(r"^test-all: test test-wide ", MAKEFILE, re.MULTILINE)
    for part, target in ("quick", "test"), ("wide", "test-wide"):
        assert re.search(rf"--part {part} .*\$\(TESTS\)", _recipe(target))
        assert re.search(rf"^step make {target}$", CI, re.MULTILINE)
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


def test_ci_builds_the_site_where_nothing_is_installed_meanwhile() -> None:
    assert re.search(r"^    step make site$", CI, re.MULTILINE)
    assert "docs/make_site.py" in _recipe("site")
    # Its packages are there before two lanes share the environment.
    setup = re.search(r"\.ci/setup (.+)", _recipe("site"))
    assert setup is not None
    assert CI.index(f"step .ci/setup {setup[1]}\n") < CI.index("step make check")
