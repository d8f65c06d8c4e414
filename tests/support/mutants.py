"""Mutation testing with cosmic-ray: ``python tests/support/mutants.py``, which is ``make mutants``.

A sample of each package is drawn from all mutants that cosmic-ray knows: another operator, another number, a condition
turned around, a loop left out. The tests that reach its line judge a mutant: those that reach the least first. A mutant
that all of them pass has survived. What is no code is left out: annotations, ``__all__``, caches that only save time.
Nor does a mutant count that does not compile.

To judge a mutant takes a second, because little is done twice. A process imports what the mutant cannot change: other
packages, and the modules of kwire that do not import the one that is changed. Each mutant is judged in a fork of it,
which gets the changed source in place of the file. Kernels run as Python where the mutants are kernels, or work on few
bytes; as machine code elsewhere.

``build/mutants`` keeps of each package a copy of the checkout, which tests reach which line, and the session of
cosmic-ray: a run goes on where it was. Where a test file has changed since, it is measured again, and mutants that had
survived are judged again. Where a package itself has changed, it begins anew, as with ``--again``.
``make mutants ARGS="--package wire --sample 1000000"`` makes all mutants of a package.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import filecmp
import importlib
import importlib.abc
import importlib.machinery
import itertools
import json
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
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

SECONDS: Final = 20
"""Of processor time, for a test above five times of what it took without a mutant. To run for ever is to fail."""
ON_THE_CLOCK: Final = 1800
"""Seconds for all tests of a mutant. A test that waits for ever uses no processor."""
MEMORY: Final = 6 << 30
"""Bytes of address space of the tests of a mutant."""
FEW: Final = 30
"""Tests that have to pass without a mutant before those of a module are judged."""
_SAVING: Final = frozenset({"cache", "lru_cache", "kernel", "inlined", "primitive", "contextmanager", "overload"})
"""Decorators that save time, or without which nothing can be imported."""
_OTHERS: Final = ("numpy", "numba", "pyarrow", "pyarrow.compute", "pytest", "_pytest.assertion.rewrite", "hypothesis")
"""What is imported before any mutant."""


class Package(NamedTuple):
    """``sources`` below ``kwire``, the tests that concern them, below ``tests``, and how kernels run. ``session``: a
    fixture that takes long. Tests that want it do not judge, and of all others those that are wide do too."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]
    kernels: str = "python"
    session: str = ""

    @property
    def without(self) -> str:
        """Names of the tests that are left out: those of the other way."""
        return "machine" if self.kernels == "python" else "python"


PACKAGES: Final = {
    "wire": Package(("wire.py",), ("unit/test_wire.py", "unit/codec/test_edges.py", "unit/codec/test_codec.py")),
    "codec": Package(
        ("codec",),
        (
            *("unit/codec", "regressions/test_bodies.py", "unit/protocol/test_describe.py"),
            *("unit/protocol/test_headers.py", "property/test_layouts.py", "property/test_bodies.py"),
        ),
    ),
    "records": Package(
        ("records", "kernels/records.py"),
        (
            *("unit/records", "regressions/test_record_sets.py", "unit/kernels/test_records.py"),
            *("unit/tables/test_read_committed.py", "unit/tables/test_batches.py"),
        ),
    ),
    "protocol": Package(
        ("protocol",),
        (
            *("unit/protocol", "property/test_connection.py", "regressions/test_bodies.py", "unit/payloads"),
            *("property/test_bodies.py", "unit/tables/test_bodies.py", "unit/kernels/test_programs.py"),
        ),
    ),
    "capture": Package(
        ("capture",),
        (
            *("unit/capture", "regressions/test_captures.py", "unit/kernels/test_tracking.py"),
            "unit/tables/test_connections.py",
        ),
        "machine",
    ),
    "log": Package(("log",), ("unit/log",)),
    "history": Package(("history",), ("unit/history", "unit/tables/test_journeys_of_captures.py"), "machine"),
    "values": Package(
        ("values",),
        ("unit/values", "unit/tables/test_values.py", "unit/tables/test_typed.py", "property/test_values.py"),
        "machine",
    ),
    "tables": Package(("tables",), ("unit/tables",), "machine"),
    "report": Package(("report",), ("unit/report", "unit/cli/test_findings.py", "unit/cli/test_audit.py"), "machine"),
    "testing": Package(
        ("testing",),
        (
            *("unit/testing", "property/test_broker.py", "property/test_proxy.py", "property/test_conversations.py"),
            "property/test_impair.py",
        ),
        "machine",
    ),
    # A JVM cannot be forked: only what is tested without one.
    "spark": Package(
        ("spark",),
        tuple(
            f"spark/test_{one}.py"
            for one in (
                *("checkpoint", "files", "object_stores", "pairing", "partitioned", "pushed", "streaming"),
                "topic_ids",
            )
        ),
        "machine",
        "spark",
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--package", action="append", choices=PACKAGES, help="only this one (several times)")
    parser.add_argument("--sample", type=int, default=60, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--seconds", type=float, default=math.inf, help="most for those of a package")
    parser.add_argument("--again", action="store_true", help="forget what earlier runs have found")
    parser.add_argument("--json", type=Path, help="write what was found into a file")
    args = parser.parse_args()
    said = {}
    for name in args.package or PACKAGES:
        _copy(name, again=args.again)
        # In a process of its own: the way of kernels is settled when numba is imported.
        if _forked(lambda name=name: _session(name, args)):
            return 1
        said[name] = one = _told(name, args)
        print(
            f"{name}: {one['killed']} of {one['judged']} killed, {one['score']}, of {one['mutants']} in all", flush=True
        )
        for survivor in one["survived"]:
            print(f"  SURVIVED {survivor['place']} {survivor['operator']}\n{survivor['diff']}")
    if args.json:
        args.json.write_text(json.dumps(said, indent=1) + "\n")
    return 0


def _forked(what: Callable[[], int | None], output: Path | None = None, *, alone: bool = False) -> int:
    """The exit code of a fork that does something, negative for a signal. What it prints goes into ``output``.
    ``alone``: what it has started ends with it, after ``ON_THE_CLOCK`` at the latest."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            if alone:
                os.setpgid(0, 0)
            if output is not None:
                with output.open("wb") as file:
                    os.dup2(file.fileno(), 1)
                    os.dup2(file.fileno(), 2)
            code = what() or 0
        except SystemExit as error:
            print(error, file=sys.stderr)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    if not alone:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    end = time.monotonic() + ON_THE_CLOCK
    while not (done := os.waitpid(pid, os.WNOHANG))[0]:
        time.sleep(0.02)
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(done[1])


def _checkout(name: str) -> Path:
    """The copy whose tests judge the mutants of a package."""
    return FOLDER / name / "checkout"


def _copy(name: str, *, again: bool) -> None:
    """Makes the copy, or brings its tests up to date."""
    copy = _checkout(name)
    if again or (copy.exists() and not _same(sources(name), copy)):
        shutil.rmtree(FOLDER / name, ignore_errors=True)
    copy.mkdir(parents=True, exist_ok=True)
    for one in _COPIED:
        source, target = CHECKOUT / one, copy / one
        if source.is_dir():
            left_out = shutil.ignore_patterns("__pycache__", "golden")
            shutil.copytree(source, target, ignore=left_out, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)
    golden = copy / "tests" / "golden"
    if not golden.exists():
        golden.symlink_to(CHECKOUT / "tests" / "golden")


def _same(modules: list[Path], copy: Path) -> bool:
    return all((copy / one).exists() and filecmp.cmp(CHECKOUT / one, copy / one, shallow=False) for one in modules)


def sources(name: str) -> list[Path]:
    """The modules of a package, below the checkout."""
    found: list[Path] = []
    for one in PACKAGES[name].sources:
        path = CHECKOUT / "kwire" / one
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [one.relative_to(CHECKOUT) for one in found]


# --- Tests in a fork --------------------------------------------------------------------------------------------------


def _prepare(name: str) -> None:
    """Makes this process one whose forks run tests in the copy."""
    os.environ.pop("NUMBA_DISABLE_JIT", None)
    if PACKAGES[name].kernels == "python":
        os.environ["NUMBA_DISABLE_JIT"] = "1"
    # Whatever this shell says: nothing is compiled again for each mutant.
    sys.dont_write_bytecode = False
    os.chdir(_checkout(name))
    sys.path[:0] = [str(_checkout(name)), str(_checkout(name) / "tests" / "support")]
    for one in _OTHERS:
        importlib.import_module(one)
    from hypothesis import Phase, settings

    # The same examples each time. What fails need not be small.
    settings.register_profile(
        "mutants", max_examples=50, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate]
    )


def _pytest(name: str, tests: list[str], plugin: object, *options: str) -> int:
    import pytest

    session = PACKAGES[name].session
    arguments = ["-q", "-p", "no:cacheprovider", "--hypothesis-profile=mutants"]
    arguments += [] if session else ["--part", "quick"]
    plugins = [plugin, _LeftOut(session)]
    return int(pytest.main([*arguments, "-k", f"not {PACKAGES[name].without}", *options, *tests], plugins=plugins))


class _LeftOut:
    """Leaves out the tests that want a fixture."""

    def __init__(self, fixture: str) -> None:
        self.fixture = fixture

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [one for one in items if self.fixture not in one.fixturenames]


class _Reach:
    """Notes what each test reaches, what it takes, and whether it fails without any mutant."""

    def __init__(self, measured: Any) -> None:
        self.measured = measured
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.measured.switch_context(nodeid.partition("[")[0])

    def pytest_runtest_logreport(self, report: Any) -> None:
        test = report.nodeid.partition("[")[0]
        self.seconds[test] = max(self.seconds.get(test, 0.0), report.duration)
        if report.failed:
            self.failed.add(test)

    def pytest_runtest_logfinish(self) -> None:
        self.measured.switch_context("")


class _Limit:
    """Ends the process whose test takes much longer than it did."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        self._allow(3 * SECONDS)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._allow(SECONDS + 5 * self.seconds.get(nodeid.partition("[")[0], 0.0))

    def pytest_runtest_logfinish(self) -> None:
        self._allow(3 * SECONDS)

    def _allow(self, seconds: float) -> None:
        # What this signal does, if nobody takes it, is to end the process.
        signal.setitimer(signal.ITIMER_PROF, seconds)


# --- Which tests reach a line -----------------------------------------------------------------------------------------


class Reach(NamedTuple):
    """``lines``: by module and line, the tests that reach it. ``seconds``: by test."""

    lines: dict[str, dict[str, list[str]]]
    seconds: dict[str, float]


def _test_files(name: str) -> list[str]:
    found: list[Path] = []
    for one in PACKAGES[name].tests:
        path = _checkout(name) / "tests" / one
        found += sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
    return [str(one.relative_to(_checkout(name))) for one in found]


def _reach(name: str) -> tuple[Reach, bool]:
    """What the tests of a package reach, and whether any of them was measured now."""
    all_of_it, news = Reach({}, {}), False
    for test in _test_files(name):
        kept = FOLDER / name / "reach" / f"{test.replace(os.sep, '.')}.json"
        text = (_checkout(name) / test).read_text()
        if not kept.exists() or json.loads(kept.read_text())["text"] != text:
            news = True
            kept.parent.mkdir(exist_ok=True)
            said = kept.with_suffix(".txt")
            if _forked(lambda test=test, text=text, kept=kept: _measure(name, test, text, kept), said):
                raise SystemExit(f"{said.read_text()[-3000:]}\n{test} cannot be run")
        found = json.loads(kept.read_text())
        all_of_it.seconds.update(found["seconds"])
        for module, lines in found["lines"].items():
            of = all_of_it.lines.setdefault(module, {})
            for line, by in lines.items():
                of.setdefault(line, []).extend(by)
    return all_of_it, news


def _measure(name: str, test: str, text: str, kept: Path) -> None:
    import coverage

    modules = [str(one) for one in sources(name)]
    with tempfile.TemporaryDirectory() as folder:
        measured = coverage.Coverage(data_file=f"{folder}/data", include=modules, config_file=False)
        plugin = _Reach(measured)
        measured.start()
        code = _pytest(name, [test], plugin)
        measured.stop()
        if code not in (0, 1, 5):
            raise SystemExit(code)
        data, lines = measured.get_data(), {}
        for module in modules:
            by_line = data.contexts_by_lineno(str(_checkout(name) / module))
            # Some want the other way of kernels, and fail without any mutant.
            lines[module] = {line: sorted(set(by) - plugin.failed - {""}) for line, by in by_line.items()}
    seconds = {one: round(took, 3) for one, took in plugin.seconds.items() if one not in plugin.failed}
    kept.write_text(json.dumps({"text": text, "seconds": seconds, "lines": lines}))


class _Source:
    """What the source of a module says of its lines."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text()
        self._statements: list[tuple[int, int]] = []
        self._functions: list[tuple[int, int]] = []
        for node in ast.walk(ast.parse(self.text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._functions.append((node.body[0].lineno, node.end_lineno or node.lineno))
            if isinstance(node, ast.stmt):
                body = getattr(node, "body", None)
                last = body[0].lineno - 1 if body else node.end_lineno
                self._statements.append((node.lineno, max(node.lineno, last or node.lineno)))

    def statement(self, line: int) -> range:
        """The lines of the smallest statement that has this one; of an ``if`` those of its condition."""
        holding = [one for one in self._statements if one[0] <= line <= one[1]]
        first, last = min(holding, key=lambda one: one[1] - one[0], default=(line, line))
        return range(first, last + 1)

    def at_import(self, line: int) -> bool:
        """Whether it runs when the module is imported."""
        return not any(first <= line <= last for first, last in self._functions)


def _judges(name: str, module: str, line: int, source: _Source, reach: Reach) -> list[str]:
    """The tests of a line and those beside them, in the order in which they judge."""
    lines = reach.lines.get(module, {})
    every: dict[str, int] = {}
    for by in lines.values():
        for one in by:
            every[one] = every.get(one, 0) + 1
    tests = {one for at in source.statement(line) for one in lines.get(str(at), ())}
    named: list[str] = []
    if source.at_import(line) or not tests:
        # It runs where the module is imported, or where no test is. A test that only looks at what came of it reaches
        # no line: it stands in the file that has the name of the module.
        tests = set(every)
        stem = Path(module).stem
        files = (_checkout(name) / "tests" / "unit").rglob(f"test_{stem}.py")
        # Those of the house look at the whole tree.
        named = sorted(str(one.relative_to(_checkout(name))) for one in files if one.parent.name != "house")
    # What a process makes once, such as a codec, is reached by the first test of a file, and all others use it.
    files = {one.partition("::")[0] for one in tests}
    others = {one for one in every if one.partition("::")[0] in files} - tests
    # First those that reach little, and take little time: hardly any mutant survives those.
    costs = {one: count * (0.1 + reach.seconds.get(one, 0.0)) for one, count in every.items()}
    return [*named, *(one for some in (tests, others) for one in sorted(some, key=lambda one: (costs[one], one)))]


# --- What a mutant cannot change --------------------------------------------------------------------------------------

_LAYERS: Final = (
    *("naming", "errors", "limits", "opening", "stored", "wire", "schema", "tls", "options", "kernels", "codec"),
    *("messages", "records", "versions", "protocol", "capture", "log", "payloads", "events", "values", "history"),
    *("tables", "report"),
)
"""Modules and packages of kwire that tests of the packages above need."""


def _unchanged(checkout: Path, changed: str) -> list[str]:
    """The modules of ``_LAYERS`` that do not import ``changed``, whether at once, by others or when they are called."""
    imports: dict[str, set[str]] = {}
    for file in sorted((checkout / "kwire").rglob("*.py")):
        name = _dotted(file.relative_to(checkout))
        found = imports[name] = {".".join(name.split(".")[:at]) for at in range(1, name.count(".") + 1)}
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found.update(one.name for one in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.update([node.module, *(f"{node.module}.{one.name}" for one in node.names)])
        found |= {".".join(one.split(".")[:at]) for one in list(found) for at in range(1, one.count(".") + 1)}
    reached, new = {changed}, [changed]
    while new:
        now = new.pop()
        for name, found in imports.items():
            if now in found and name not in reached:
                reached.add(name)
                new.append(name)
    return [one for one in imports if one not in reached and f"{one}.".split(".")[1] in _LAYERS]


def _dotted(file: Path) -> str:
    parts = file.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Gives a module another source than its file has."""

    def __init__(self, module: str, file: Path, text: str) -> None:
        self._module, self._file, self._text = module, file, text

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self._module:
            return None
        package = [str(self._file.parent)] if self._file.stem == "__init__" else None
        spec = importlib.machinery.ModuleSpec(name, self, origin=str(self._file), is_package=package is not None)
        spec.submodule_search_locations = package
        spec.has_location = True
        return spec

    def get_source(self, name: str) -> str:
        return self._text

    def is_package(self, name: str) -> bool:
        return self._file.stem == "__init__"

    def get_code(self, name: str) -> Any:
        return compile(self._text, str(self._file), "exec", dont_inherit=True)


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


def _database(name: str, args: argparse.Namespace) -> Path:
    return FOLDER / name / f"{args.sample}-{args.seed}.sqlite"


def _drawn(work: Any, args: argparse.Namespace) -> tuple[list[Any], int]:
    """The mutants that are judged, and how many there are."""
    known: dict[Path, list[Place]] = {}
    items = [one for one in work.work_items if _means_something(one.mutations[0], known)]
    return random.Random(args.seed).sample(items, min(args.sample, len(items))), len(items)


def _session(name: str, args: argparse.Namespace) -> None:
    """Judges the mutants that were drawn, those of a module after those of another."""
    config, database = FOLDER / name / "cosmic-ray.toml", _database(name, args)
    if not database.exists():
        modules = ", ".join(f'"{one}"' for one in sources(name))
        config.write_text(
            f"[cosmic-ray]\nmodule-path = [{modules}]\ntimeout = {ON_THE_CLOCK}.0\nexcluded-modules = []\n"
            'test-command = "mutants.py judges them"\n\n[cosmic-ray.distributor]\nname = "local"\n'
        )
        tool = str(Path(sys.executable).with_name("cosmic-ray"))
        subprocess.run([tool, "init", str(config), str(database)], cwd=_checkout(name), check=True)
    from cosmic_ray.work_db import WorkDB, use_db

    _prepare(name)
    reach, news = _reach(name)
    with use_db(str(database), WorkDB.Mode.open) as work:
        drawn, _ = _drawn(work, args)
        # A survivor gets another trial where there are new tests.
        done = {job for job, one in work.results if one.is_killed or not news}
    todo = sorted((str(one.mutations[0].module_path), one.job_id) for one in drawn if one.job_id not in done)
    by_id = {one.job_id: one for one in drawn}
    end = time.monotonic() + args.seconds
    for module, same in itertools.groupby(todo, key=lambda one: one[0]):
        some = [by_id[job] for _, job in same]
        if time.monotonic() < end and _forked(lambda m=module, s=some: _judge(name, m, s, (reach, end, str(database)))):
            raise SystemExit(f"the mutants of {module} cannot be judged")


def _judge(name: str, module: str, items: list[Any], about: tuple[Reach, float, str]) -> None:
    """Judges mutants of one module."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator
    from cosmic_ray.work_db import WorkDB, use_db
    from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult

    reach, end, database = about
    source = _Source(_checkout(name) / module)
    for one in _unchanged(_checkout(name), _dotted(Path(module))):
        importlib.import_module(one)
    if _dotted(Path(module)) in sys.modules:
        raise SystemExit(f"{module} is imported by a module that does not say so")
    output = FOLDER / name / "output.txt"

    def judged(tests: list[str], text: str) -> int:
        def run() -> int:
            sys.meta_path.insert(0, _Changed(_dotted(Path(module)), _checkout(name) / module, text))
            # What is kept on disk was made by the source of the file, and is that of others too.
            kept = importlib.import_module("kwire.kernels.cache")
            kept.read, kept.write = (lambda _: None), (lambda *_: None)  # type: ignore[attr-defined]
            return _pytest(name, tests, _Limit(reach.seconds), "-x", "--tb=short")

        return _forked(run, output, alone=True)

    sound = False
    for item in items:
        if time.monotonic() > end:
            return
        mutation = item.mutations[0]
        operator = get_operator(mutation.operator_name)(**mutation.operator_args)
        text = mutate_code(source.text, operator, mutation.occurrence)
        if not _compiles(text):
            with use_db(database, WorkDB.Mode.open) as work:
                work.set_result(item.job_id, WorkResult(WorkerOutcome.SKIPPED, "", TestOutcome.INCOMPETENT, ""))
            continue
        tests = _judges(name, module, mutation.start_pos[0], source, reach)
        if tests and not sound and judged(tests[:FEW], source.text) not in (0, 5):
            raise SystemExit(f"{output.read_text()[-3000:]}\nthese tests fail without any mutant")
        sound = sound or bool(tests)
        began = time.monotonic()
        code = judged(tests, text) if tests else 5
        lines = difflib.unified_diff(
            source.text.splitlines(), text.splitlines(), f"a/{module}", f"b/{module}", "", "", 3, ""
        )
        outcome = TestOutcome.SURVIVED if code in (0, 5) else TestOutcome.KILLED
        said = output.read_text(errors="replace")[-2000:] if tests else ""
        result = WorkResult(WorkerOutcome.NORMAL, said, outcome, "\n".join(lines))
        with use_db(database, WorkDB.Mode.open) as work:
            work.set_result(item.job_id, result)
        print(
            f"{outcome.value} {module}:{mutation.start_pos[0]} {mutation.operator_name.rpartition('/')[2]} "
            f"by {len(tests)} tests in {time.monotonic() - began:.1f} s",
            flush=True,
        )


def _compiles(text: str) -> bool:
    """Whether it is a program. To cosmic-ray, the ``*`` before keywords is an operator that another can replace."""
    try:
        compile(text, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def _told(name: str, args: argparse.Namespace) -> dict[str, Any]:
    from cosmic_ray.work_db import WorkDB, use_db
    from cosmic_ray.work_item import TestOutcome

    with use_db(str(_database(name, args)), WorkDB.Mode.open) as work:
        drawn, every = _drawn(work, args)
        results = {job: one for job, one in work.results if one.test_outcome != TestOutcome.INCOMPETENT}
    judged = [(one.mutations[0], results[one.job_id]) for one in drawn if one.job_id in results]
    killed = sum(one.is_killed for _, one in judged)
    survived = [
        {"place": f"{one.module_path}:{one.start_pos[0]}", "operator": one.operator_name, "diff": result.diff}
        for one, result in judged
        if not result.is_killed
    ]
    return {
        "mutants": every,
        "judged": len(judged),
        "killed": killed,
        "score": _score(killed, len(judged)),
        "survived": sorted(survived, key=lambda one: one["place"]),
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
