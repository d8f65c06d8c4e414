"""The workflow files: what they name is there, and they may do no more than they need."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / ".github" / "workflows").iterdir())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TARGETS = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
MATRIX = re.compile(r"\$\{\{ matrix\.(\w+) \}\}")


def workflow(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def jobs() -> list[tuple[str, dict[str, Any]]]:
    return [(f"{path.stem}/{name}", job) for path in FILES for name, job in workflow(path)["jobs"].items()]


def steps() -> list[tuple[str, dict[str, Any]]]:
    return [(name, step) for name, job in jobs() for step in job["steps"]]


def spelled(text: str, job: dict[str, Any]) -> list[str]:
    """A text for each value of the matrix of its job."""
    found = MATRIX.search(text)
    if not found:
        return [text]
    return [text.replace(found[0], value) for value in job["strategy"]["matrix"][found[1]]]


def test_there_are_three_workflows() -> None:
    assert [path.name for path in FILES] == ["release.yml", "site.yml", "tests.yml"]
    for path in FILES:
        found = workflow(path)
        # YAML 1.1 reads the key `on` as true.
        assert set(found) - {"concurrency"} == {"name", True, "permissions", "jobs"}
        assert found["name"] == path.stem
        assert all(job["runs-on"] == "ubuntu-latest" for job in found["jobs"].values())


def test_a_step_runs_a_command_or_an_action() -> None:
    for name, step in steps():
        assert ("run" in step) != ("uses" in step), name
        assert set(step) <= {"name", "id", "run", "uses", "with", "env"}, name


def test_each_target_that_a_step_makes_is_in_the_makefile() -> None:
    made = set()
    for name, job in jobs():
        for step in job["steps"]:
            for text in spelled(step.get("run", ""), job):
                found = re.findall(r"^(?:- )?make (\S+)", text, re.MULTILINE)
                assert set(found) <= TARGETS, name
                made.update(found)
    assert {"check", "test", "test-wide", "test-oldest", "test-connect", "site", "dist", "sbom"} <= made
    # What .ci/run does on one machine; test-all is test and test-wide.
    local = re.findall(r"\bmake ([a-z-]+)\b", (ROOT / ".ci" / "run").read_text("utf-8"))
    assert set(local) - {"test-unit", "test-", "test-all"} <= made


def test_each_script_and_file_that_a_step_names_is_there() -> None:
    named = 0
    for name, step in steps():
        for one in re.findall(r"(?<![\w/])(?:\.ci/\w+|tests/golden|kafka-[\w./-]+)", step.get("run", "")):
            path = ROOT / "tests" / "golden" / one if one.startswith("kafka-") else ROOT / one
            assert path.exists(), (name, one)
            named += 1
    assert named >= 3


def test_the_tests_run_with_each_python_that_the_package_names() -> None:
    tests = workflow(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]
    listed = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)]
    assert tests["newest"]["strategy"]["matrix"]["python"] == listed
    assert PROJECT["requires-python"] == f">={listed[0]}"
    used = {
        (name, text)
        for name, job in jobs()
        for step in job["steps"]
        for text in spelled((step.get("with") or {}).get("python-version", ""), job)
        if text
    }
    assert {text for _, text in used} <= set(listed)
    assert ("tests/oldest", listed[0]) in used


def test_nothing_may_write_that_need_not() -> None:
    for path in FILES:
        assert workflow(path)["permissions"] == {"contents": "read"}
    more = {name: job["permissions"] for name, job in jobs() if "permissions" in job}
    assert more == {
        "release/build": {"contents": "read", "id-token": "write", "attestations": "write"},
        "release/publish": {"id-token": "write"},
        "release/announce": {"contents": "write"},
        "site/publish": {"pages": "write", "id-token": "write"},
    }
    for name, step in steps():
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False, name


def test_actions_have_a_version() -> None:
    used = {step["uses"] for _, step in steps() if "uses" in step}
    assert len({one.partition("@")[0] for one in used}) == len(used)
    for one in used:
        assert re.fullmatch(r"(actions/[\w-]+@v\d+|pypa/gh-action-pypi-publish@release/v1|[\w./-]+@[0-9a-f]{40})", one)


def test_a_release_is_trusted_and_needs_no_secret() -> None:
    for path in FILES:
        assert "secrets." not in path.read_text("utf-8")
    release = workflow(ROOT / ".github" / "workflows" / "release.yml")
    assert release[True] == {"push": {"tags": ["v*"]}}
    publish = release["jobs"]["publish"]
    assert publish["environment"] == "pypi"
    assert publish["needs"] == "build"
    # What it publishes is what was built: it checks nothing out, and runs nothing.
    assert [step["uses"].partition("@")[0] for step in publish["steps"]] == [
        "actions/download-artifact",
        "pypa/gh-action-pypi-publish",
    ]


def test_a_text_of_an_event_is_no_part_of_a_command() -> None:
    for name, step in steps():
        assert set(re.findall(r"\$\{\{ *(\w+)", step.get("run", ""))) <= {"matrix"}, name


@pytest.mark.parametrize("name", ["diff --recursive first dist", "GITHUB_REF_NAME"])
def test_a_release_is_checked_before_it_is_attested(name: str) -> None:
    build = workflow(ROOT / ".github" / "workflows" / "release.yml")["jobs"]["build"]["steps"]
    checks = [at for at, step in enumerate(build) if name in step.get("run", "")]
    attested = [at for at, step in enumerate(build) if "attest" in step.get("uses", "")]
    assert checks
    assert max(checks) < min(attested)


def test_the_version_that_a_tag_must_have_is_found() -> None:
    build = workflow(ROOT / ".github" / "workflows" / "release.yml")["jobs"]["build"]["steps"]
    (run,) = (step["run"] for step in build if "GITHUB_REF_NAME" in step.get("run", ""))
    pattern = re.search(r"s/\^__version__ = \"\\\(\.\*\\\)\"\$/\\1/p", run)
    assert pattern
    from kwire import __version__

    assert re.findall(r'^__version__ = "(.*)"$', (ROOT / "kwire" / "__init__.py").read_text("utf-8"), re.MULTILINE) == [
        __version__
    ]
