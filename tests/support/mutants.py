"""Mutation testing with cosmic-ray: ``python tests/support/mutants.py``, which is ``make mutants``.

A sample of each package is drawn from all mutants that cosmic-ray knows: another operator, another number, a condition
turned around, a loop left out. Each is made in a copy of the checkout, alone. The tests that reach its line judge it:
those that reach the least first, and kernels as Python, since it is the source that is changed. A mutant that all of
them pass has survived. What is no code is left out: annotations, ``__all__``, caches that only save time.

``build/mutants`` keeps of each package the copy, which tests reach which line, and the session of cosmic-ray: a run
goes on where it was. ``--again`` begins anew. ``make mutants ARGS="--package wire --sample 1000000"`` makes all of a
package.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

CHECKOUT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = CHECKOUT / "build" / "mutants"
_COPIED: Final = (
    "kwire",
    "schemas",
    "tests",
    "fuzz",
    "docs",
    "benchmarks",
    "examples",
    "pyproject.toml",
    "README.md",
    "SECURITY.md",
)

SECONDS: Final = 300
"""For the tests of a mutant. To run for ever is to fail."""
AT_FIRST: Final = 30
"""Tests that judge first. Hardly any mutant survives those, and they take a second."""
_SAVING: Final = frozenset({"cache", "lru_cache", "kernel", "inlined", "primitive", "contextmanager", "overload"})
"""Decorators that save time, or without which nothing can be imported."""


class Package(NamedTuple):
    """``sources`` below ``kwire``, and the tests that concern them, below ``tests``."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]


PACKAGES: Final = {
    "wire": Package(("wire.py",), ("unit/test_wire.py", "unit/codec/test_edges.py", "unit/codec/test_codec.py")),
    "codec": Package(
        ("codec",),
        ("unit/codec", "regressions/test_bodies.py", "unit/protocol/test_describe.py", "unit/protocol/test_headers.py"),
    ),
    "records": Package(
        ("records", "kernels/records.py"),
        ("unit/records", "regressions/test_record_sets.py", "unit/kernels/test_records.py"),
    ),
    "protocol": Package(("protocol",), ("unit/protocol", "property/test_connection.py", "regressions/test_bodies.py")),
    "capture": Package(("capture",), ("unit/capture", "regressions/test_captures.py", "unit/kernels/test_tracking.py")),
    "log": Package(("log",), ("unit/log",)),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--package", action="append", choices=PACKAGES, help="only this one (several times)")
    parser.add_argument("--sample", type=int, default=60, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--seconds", type=float, default=math.inf, help="most for those of a package")
    parser.add_argument("--again", action="store_true", help="forget what earlier runs have found")
    parser.add_argument("--json", type=Path, help="write what was found into a file")
    parser.add_argument("--judge", choices=PACKAGES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.judge:
        return judge(args.judge)
    if args.again:
        shutil.rmtree(FOLDER, ignore_errors=True)
    said = {}
    for name in args.package or PACKAGES:
        _copy(name)
        _reach(name)
        said[name] = _session(name, args)
        one = said[name]
        print(
            f"{name}: {one['killed']} of {one['judged']} killed, {one['score']}, of {one['mutants']} in all", flush=True
        )
        for survivor in one["survived"]:
            print(f"  SURVIVED {survivor['place']} {survivor['operator']}\n{survivor['diff']}")
    if args.json:
        args.json.write_text(json.dumps(said, indent=1) + "\n")
    return 0


def _checkout(name: str) -> Path:
    """The copy in which mutants of a package are made; beside it ``kwire`` as it was."""
    return FOLDER / name / "checkout"


def _environment(name: str) -> dict[str, str]:
    path = os.pathsep.join([str(_checkout(name)), str(_checkout(name) / "tests" / "support")])
    return {**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def _copy(name: str) -> None:
    copy = _checkout(name)
    if copy.exists():
        return
    copy.mkdir(parents=True)
    for one in _COPIED:
        source, target = CHECKOUT / one, copy / one
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "golden"))
        else:
            shutil.copy(source, target)
    (copy / "tests" / "golden").symlink_to(CHECKOUT / "tests" / "golden")
    # What it was before cosmic-ray changed it.
    shutil.copytree(copy / "kwire", copy.parent / "kwire")


def sources(name: str) -> list[Path]:
    """The modules of a package, below the checkout."""
    found: list[Path] = []
    for one in PACKAGES[name].sources:
        path = CHECKOUT / "kwire" / one
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [one.relative_to(CHECKOUT) for one in found]


# --- Which tests reach a line -----------------------------------------------------------------------------------------


def _reach(name: str) -> None:
    """Writes, for each line, the tests of a package that reach it."""
    file = FOLDER / name / "reach.json"
    if file.exists():
        return
    data = FOLDER / name / "coverage"
    options = ["--data-file", str(data), "--source=kwire"]
    tests = [f"tests/{one}" for one in PACKAGES[name].tests]
    pytest = ["-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", "-p", "reaching", "--part", "quick"]
    pytest += ["-k", "not machine"]
    command = [sys.executable, "-m", "coverage", "run", *options, *pytest, *tests]
    done = subprocess.run(command, cwd=_checkout(name), env=_environment(name), capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{done.stdout[-3000:]}\nthe tests of {name} cannot be run")
    # Some want machine code, and fail without any mutant.
    failed = {one.partition("[")[0] for one in re.findall(r"^FAILED (\S+)", done.stdout, re.MULTILINE)}
    from coverage import CoverageData

    found = CoverageData(str(data))
    found.read()
    reach: dict[str, dict[int, list[str]]] = {}
    for module in sources(name):
        lines = found.contexts_by_lineno(str(_checkout(name) / module))
        reach[str(module)] = {
            line: sorted({one for one in by if one and one not in failed}) for line, by in lines.items()
        }
    file.write_text(json.dumps(reach))


def judge(name: str) -> int:
    """The tests of the line that is not as it was: 0 if they pass."""
    reach = json.loads((FOLDER / name / "reach.json").read_text())
    every: dict[str, int] = {}
    tests: set[str] = set()
    named: list[str] = []
    for module, lines in reach.items():
        for by in lines.values():
            for one in by:
                every[one] = every.get(one, 0) + 1
        now, before = ((place / module).read_text().splitlines() for place in (_checkout(name), FOLDER / name))
        if now == before:
            continue
        first = next((k for k, (a, b) in enumerate(zip(now, before, strict=False)) if a != b), 0)
        changed = max(1, len(before) - len(now) + 1)
        for line in range(first + 1, first + 1 + changed):
            tests.update(lines.get(str(line), ()))
        if not tests:
            # It is run where the module is imported, or where no test is. A test that only looks at what came of it
            # reaches no line: it stands in the file that has the name of the module.
            tests.update(one for by in lines.values() for one in by)
            named += _tests_of(name, Path(module).stem)
    ordered = sorted(tests, key=lambda one: (every[one], one))
    for some in (named, ordered[:AT_FIRST], ordered[AT_FIRST:]):
        if some:
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", "not machine", *some]
            if subprocess.run(
                command, cwd=_checkout(name), env=_environment(name), stdout=subprocess.DEVNULL
            ).returncode:
                return 1
    return 0


def _tests_of(name: str, module: str) -> list[str]:
    """The files of tests that have the name of a module, below the checkout."""
    checkout = _checkout(name)
    return sorted(str(one.relative_to(checkout)) for one in (checkout / "tests" / "unit").rglob(f"test_{module}.py"))


# --- A session of cosmic-ray ------------------------------------------------------------------------------------------


Place = tuple[tuple[int, int], tuple[int, int]]
"""Line and column where something begins and ends."""


def _no_code(path: Path) -> Iterator[Place]:
    """Where a mutant says nothing: annotations, which are not evaluated, types by a name, ``__all__``, decorators that
    save time."""
    for node in ast.walk(ast.parse(path.read_text())):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            parts = [node]
        elif isinstance(node, ast.FunctionDef):
            names = ((one, ast.unparse(one).partition("(")[0].rpartition(".")[2]) for one in node.decorator_list)
            parts = [node.returns, *(one for one, name in names if name in _SAVING)]
        elif isinstance(node, ast.arg | ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.Assign) and (ast.unparse(node.targets[0]) == "__all__" or _names_a_type(node.value)):
            parts = [node]
        for one in parts:
            if isinstance(one, ast.expr | ast.stmt):
                yield (one.lineno, one.col_offset), (one.end_lineno or 0, one.end_col_offset or 0)


def _names_a_type(value: ast.expr) -> bool:
    """Whether it is a union, such as ``str | None``: names of classes, which are not all capitals."""
    names = [one.id for one in ast.walk(value) if isinstance(one, ast.Name)]
    union = isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr)
    return union and not any(one.isupper() or one.startswith("_") for one in names)


def _means_something(mutation: Any, known: dict[Path, list[Place]]) -> bool:
    if mutation.operator_name.endswith(("_Is", "_IsNot")):
        # Whether equal numbers are one object is nobody's business.
        return False
    path = CHECKOUT / mutation.module_path
    if path not in known:
        known[path] = list(_no_code(path))
    line, column = mutation.start_pos
    # That of a decorator begins at its @.
    return not any(first <= one < last for first, last in known[path] for one in ((line, column), (line, column + 1)))


def _session(name: str, args: argparse.Namespace) -> dict[str, Any]:
    config, session = FOLDER / name / "cosmic-ray.toml", FOLDER / name / f"{args.sample}-{args.seed}.sqlite"
    modules = ", ".join(f'"{one}"' for one in sources(name))
    judging = f"{sys.executable} {Path(__file__).resolve()} --judge {name}"
    config.write_text(
        f"[cosmic-ray]\nmodule-path = [{modules}]\ntimeout = {SECONDS}.0\nexcluded-modules = []\n"
        f'test-command = "{judging}"\n\n[cosmic-ray.distributor]\nname = "local"\n'
    )
    tool = [str(Path(sys.executable).with_name("cosmic-ray"))]
    environment, checkout = _environment(name), _checkout(name)
    if not session.exists():
        subprocess.run([*tool, "init", str(config), str(session)], cwd=checkout, env=environment, check=True)
    from cosmic_ray.work_db import WorkDB, use_db
    from cosmic_ray.work_item import WorkerOutcome, WorkResult

    known: dict[Path, list[Place]] = {}
    with use_db(str(session), WorkDB.Mode.open) as work:
        items = [one for one in work.work_items if _means_something(one.mutations[0], known)]
        drawn = {one.job_id for one in random.Random(args.seed).sample(items, min(args.sample, len(items)))}
        done = {job for job, _ in work.results}
        # What was not drawn is skipped, as the filters of cosmic-ray do it.
        skipped = [one.job_id for one in work.work_items if one.job_id not in drawn | done]
        work.set_multiple_results(skipped, WorkResult(WorkerOutcome.SKIPPED))
    if args.seconds > 0:
        command = [*tool, "exec", str(config), str(session)]
        most = None if math.isinf(args.seconds) else args.seconds
        try:
            subprocess.run(command, cwd=checkout, env=environment, timeout=most)
        except subprocess.TimeoutExpired:
            # The one that was under way is made again.
            shutil.rmtree(checkout / "kwire")
            shutil.copytree(FOLDER / name / "kwire", checkout / "kwire")
    with use_db(str(session), WorkDB.Mode.open) as work:
        completed = [(item, one) for item, one in work.completed_work_items if one.test_outcome is not None]
    killed = sum(one.is_killed for _, one in completed)
    survived = [
        {
            "place": f"{item.mutations[0].module_path}:{item.mutations[0].start_pos[0]}",
            "operator": item.mutations[0].operator_name,
            "diff": one.diff,
        }
        for item, one in completed
        if not one.is_killed
    ]
    return {
        "mutants": len(items),
        "judged": len(completed),
        "killed": killed,
        "score": _score(killed, len(completed)),
        "survived": survived,
    }


def _score(killed: int, judged: int) -> str:
    """A share and its interval of 95 % (Wilson)."""
    if not judged:
        return "none judged"
    z = 1.96
    share = killed / judged
    middle = (share + z * z / (2 * judged)) / (1 + z * z / judged)
    half = z * math.sqrt(share * (1 - share) / judged + z * z / (4 * judged * judged)) / (1 + z * z / judged)
    return f"{share:.0%} ({middle - half:.0%} to {middle + half:.0%})"


if __name__ == "__main__":
    sys.exit(main())
