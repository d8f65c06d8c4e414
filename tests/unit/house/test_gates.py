"""Three gates: files of a user are opened by ``kwire.opening`` alone, and named without credentials wherever it is
said; and what only a session with a JVM has is asked for where Spark Connect, which has none, goes another way.

The lists of exceptions are exact: a new place fails here, and so does one that is gone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import kwire

PACKAGE = Path(kwire.__file__).parent

OPENING = {
    *("open", "read_bytes", "read_text", "write_bytes", "write_text", "touch", "fdopen", "OSFile", "memory_map"),
    *("ZipFile", "TarFile", "mkstemp", "NamedTemporaryFile", "TemporaryFile"),
    *("open_input_file", "open_input_stream", "open_output_stream", "open_append_stream"),
    *("rglob", "glob", "walk", "scandir", "FileSelector"),
}
"""How files are opened, and folders listed with all that is in them."""

NOT_OF_A_USER = {
    "cli/__init__.py": {"open": "the null device", "os.open": "the null device"},
    "cli/compile.py": {"folder.glob": "machine code, in a folder that was looked at"},
    "cli/hosting.py": {"target.open": "what replaced() gave"},
    "cli/output.py": {"target.open": "what replaced() gave", "path.open": "what replaced() gave"},
    "cli/parallel.py": {"pa.OSFile": "what a process of its own wrote, in a folder of its own"},
    "cli/reading.py": {"KeyLog.open": "opens files by open_file"},
    "codec/stubs.py": {"path.read_text": "its own source", "path.write_text": "its own source"},
    "kernels/cache.py": {
        "one.read_bytes": "its own source",
        "Path('/proc/cpuinfo').read_bytes": "the system's",
        "probe.open": "exclusive",
        "part.open": "exclusive",
        "os.open": "a claim, which follows no link",
        "(folder() / name).read_bytes": "kept beside machine code",
        "folder().glob": "machine code",
        "path.glob": "machine code",
        "current.parent.glob": "machine code",
        "os.scandir": "machine code",
    },
    "log/decided.py": {"beside.open": "opens files by open_file, or by File.open"},
    "protocol/api_table.py": {"one.read_bytes": "its own source"},
    "protocol/names.py": {"builtin_root().joinpath('names.txt').read_bytes": "its own"},
    "report/page.py": {"(_ASSETS / name).read_text": "its own"},
    "schema/kafka.py": {"zipfile.ZipFile": "a file that open_file has opened", "jar.open": "a part of it"},
    "schema/loader.py": {"file.read_bytes": "its own, in a zip"},
    "spark/across.py": {"file.open": "File.open"},
    "spark/checkpoint.py": {
        "filesystem.open_output_stream": "a name that nobody can guess",
        "fs.FileSelector": "one folder, without those in it",
    },
    "spark/daemon.py": {"(one / 'comm').read_text": "the system's"},
    "spark/exports.py": {
        "filesystem.open_output_stream": "an object store",
        "fs.FileSelector": "one folder, without those in it",
    },
    "spark/files.py": {
        "self.open": "File.open",
        "file.open": "File.open",
        "self.filesystem.open_input_file": "an object store, and where to cut a file that was listed",
        "filesystem.open_input_stream": "an object store",
        "fs.FileSelector": "an object store",
    },
    "spark/options.py": {"file.open": "File.open"},
    "spark/reader.py": {"file.open": "File.open"},
    "spark/sensors.py": {"file.open": "File.open"},
    "tls/decryptor.py": {"opener.open": "a record of TLS"},
    "tls/handshake.py": {"opener.open": "a record of TLS"},
    "tls/keylog.py": {"cls.open": "opens files by open_file"},
    "tls/protection.py": {"_Tls13.open": "a record of TLS"},
    "values/protobuf.py": {
        "path.write_text": "a folder of its own, under names that were looked at",
        "out.read_bytes": "what protoc has written there",
    },
    "versions.py": {"builtin_root().joinpath(_FILE).read_bytes": "its own"},
}
"""By module what opens something else than a user's file."""

PATHS = frozenset(
    ("path", "paths", "file", "files", "folder", "source", "output", "input", "against", "keylog", "location", "top")
)
"""What paths and URIs are called."""
SHOWING = frozenset(("print", "write", "print_exactly", "Text", "escape", "readable"))
"""What puts texts on a screen or a page, without ``kwire.cli.stderr.say``."""
OF_PYTHON = frozenset(("ValueError", "TypeError", "RuntimeError", "KeyError", "LookupError", "NotImplementedError"))
"""Errors that quote what they are given; those of kwire name files without credentials."""
LOCAL = {
    "cli/folders.py: readable": "folders that were read on this machine",
    "cli/compile.py: print": "names of kernels, the folder of machine code",
    "cli/report.py: write": "figures",
    "kernels/programs.py: ValueError": "the path of a field",
}
"""Where what is shown is a path of this machine for certain."""

OF_A_JVM = frozenset(
    ("sparkContext", "_sc", "_jsc", "_jvm", "_jdf", "_jc", "_jsparkSession", "rdd", "toJSON", "_active_spark_context")
)
"""Attributes of sessions, frames and columns that Spark Connect does not have."""
WITH_A_JVM = {
    "spark/arrow.py: _jdf": "mapInArrow without pandas, which Spark Connect needs",
    "spark/arrow.py: _jc": "mapInArrow without pandas, which Spark Connect needs",
    "spark/arrow.py: _jsparkSession": "transformWithState without pandas, which Spark Connect needs",
    "spark/workers.py: sparkContext": "context_of, which gives None with Spark Connect",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name != "opening.py" and not name.startswith("testing/"):
            yield name, ast.parse(path.read_text())


def openings(tree: ast.AST) -> set[str]:
    """The calls that open something, as they stand there."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _last(node.func)
            if name in OPENING:
                found.add(ast.unparse(node.func))
    return found


def shown_paths(tree: ast.AST) -> set[str]:
    """What shows, or raises with, the name of a path that has not gone through ``public`` or ``hidden``."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _last(node.func) in SHOWING and any(map(_has_path, node.args)):
            found.add(_last(node.func))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            error = _last(node.exc.func)
            if error in OF_PYTHON and any(map(_has_path, node.exc.args)):
                found.add(error)
    return found


def of_a_jvm(tree: ast.AST) -> set[str]:
    """The attributes that Spark Connect does not have."""
    return {one.attr for one in ast.walk(tree) if isinstance(one, ast.Attribute) and one.attr in OF_A_JVM}


def _last(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _has_path(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        if _last(node.func) in ("public", "hidden", "len", "_text", "_lines"):
            return False
        return any(map(_has_path, (*node.args, *(one.value for one in node.keywords))))
    if isinstance(node, ast.Name):
        return node.id in PATHS
    if isinstance(node, ast.Attribute):
        return node.attr in PATHS
    return any(map(_has_path, ast.iter_child_nodes(node)))


def test_a_users_file_is_opened_in_one_place() -> None:
    found = {name: calls for name, tree in modules() if (calls := openings(tree))}
    assert found == {name: set(calls) for name, calls in NOT_OF_A_USER.items()}


def test_paths_are_named_in_one_place() -> None:
    found = {f"{name}: {what}" for name, tree in modules() for what in shown_paths(tree)}
    assert found == set(LOCAL)


def test_what_spark_connect_does_not_have_is_asked_for_in_one_place() -> None:
    found = {f"{name}: {what}" for name, tree in modules() for what in of_a_jvm(tree)}
    assert found == set(WITH_A_JVM)


def test_the_gates_see_what_goes_around_them() -> None:
    for code in ("open(x)", "Path(x).open('rb')", "os.open(x, 0)", "one.read_text()", "pa.OSFile(x)", "top.rglob('*')"):
        assert openings(ast.parse(code)), code
    for code in (
        "print(f'{path}: no')",
        "sys.stdout.write(args.file)",
        "raise ValueError(f'{one.source} holds nothing')",
        "Text(readable(self.file))",
    ):
        assert shown_paths(ast.parse(code)), code
    assert of_a_jvm(ast.parse("spark.sparkContext.defaultParallelism")) == {"sparkContext"}
    for code in (
        "print(public(path))",
        "raise KwireError(f'{path}: no')",
        "say(path)",
        "raise ValueError(public(file))",
    ):
        assert not shown_paths(ast.parse(code)), code
