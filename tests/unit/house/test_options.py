"""Options of reading are declared once: what is made of the declarations is whole and current."""

from __future__ import annotations

import argparse
import ast
import inspect
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kwire import capture, log, options
from kwire.cli import main, reading
from kwire.errors import KwireError
from kwire.limits import Limits
from kwire.options import ACTS, CAPTURE, LOG, OPTIONS, PLACES, PYTHON, CaptureOptions

ROOT = Path(__file__).resolve().parents[3]
MOST_ARGUMENTS = 8
FIELDS = {
    "kwire/protocol/bodies.py:add": "the columns of an instruction",
    "kwire/records/objects.py:__init__": "the fields of a record batch",
    "kwire/records/writer.py:encode": "the fields of a record batch",
    "kwire/spark/chunks.py:decode_frames": "a column for each role",
    "kwire/spark/exports.py:export": "where from, where to, and how it is laid out",
}
"""Functions whose arguments are the fields of one thing, each with a name that its users know."""


def test_the_page_is_made_of_the_declarations() -> None:
    assert (ROOT / "docs" / "reference" / "options.md").read_text() == options.page(), (
        "python -m kwire.options > docs/reference/options.md"
    )
    for name in OPTIONS:
        assert f"| `{name}` |" in options.page()


def test_each_option_acts_somewhere_and_says_what_it_does() -> None:
    for name, option in OPTIONS.items():
        assert ACTS[name], name
        assert option.help, name
        assert len(option.help.split()) <= 30, name
        assert option.form in ("", CAPTURE, LOG), name
        # What is text anywhere has a kind; what has a flag can be read from it.
        assert option.kind is not None or ACTS[name] == (PYTHON,), name


def test_help_lists_every_option() -> None:
    said = inspect.getdoc(capture.read) or ""
    for name in CaptureOptions.__annotations__:
        assert f"{name}: {OPTIONS[name].help}" in said


@pytest.mark.parametrize("name", CaptureOptions.__annotations__)
def test_a_value_of_another_type_is_refused_with_the_name_of_its_option(name: str) -> None:
    with pytest.raises(ValueError, match=f"the option '{name}' is "):
        next(capture.read("x.pcap", **{name: object()}))  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["progress", "on_note"])
def test_functions_of_segments_are_functions(name: str) -> None:
    for read in (log.read, log.batches):
        with pytest.raises(ValueError, match=f"the option '{name}' is a function"):
            next(read("x.log", **{name: 3}))


def test_an_empty_text_is_no_list() -> None:
    for name in ("topics", "apis", "client_ids", "ports", "columns"):
        for text in ("", " ", ","):
            with pytest.raises(KwireError, match=f"the option '{name}': it is empty"):
                options.values({name: text})


@pytest.mark.parametrize("place", PLACES)
def test_an_unknown_option_is_refused_with_what_was_meant(place: str) -> None:
    if place == PYTHON:
        with pytest.raises(TypeError, match="unexpected keyword argument 'port': did you mean 'ports'"):
            next(capture.read("x.pcap", port=[9092]))  # type: ignore[call-overload]
        return
    with pytest.raises(KwireError, match="no option 'prots'"):
        options.texts({"prots": "1"}, place)


@pytest.mark.parametrize(
    ("name", "text", "value"), [("secrets", "redact", False), ("secrets", "show", True), ("payloads", "false", False)]
)
def test_a_text_means_in_python_what_it_means_elsewhere(name: str, text: str, value: bool) -> None:
    assert options.settled({name: text})[name] is value  # type: ignore[literal-required]


@pytest.mark.parametrize(
    "wrong",
    [{"secrets": "no"}, {"secrets": 1}, {"read_committed": "perhaps"}, {"limits": 5}, {"limits": "much=1"},
     {"start": 5}, {"ports": ["x"]}, {"ports": 9092}, {"ports": "0"}, {"live": "yes"}],
)  # fmt: skip
def test_a_value_that_is_none_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"the option '{next(iter(wrong))}'"):
        capture.read("x.pcap", **wrong)


def test_a_flag_is_not_taken_for_another_that_begins_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["audit", "x.pcap", "--topic", "orders"])
    assert "unrecognized arguments: --topic" in capsys.readouterr().err


def test_a_flag_for_each_option_that_has_one() -> None:
    parser = argparse.ArgumentParser()
    reading.add_options(parser)
    flags = {one.dest: one.option_strings for one in parser._actions if one.dest != "help"}
    assert flags == {name: [option.flag] for name, option in OPTIONS.items() if option.flag}
    given = reading.given(parser.parse_args(["--port", "1", "2", "--topic", "a,b", "--secrets", "show", "--payloads"]))
    assert given["ports"] == [1, 2]
    assert given["topics"] == ["a", "b"]
    assert given["secrets"]
    assert given["payloads"]


OF_KINDS: dict[str, tuple[str, Any, str]] = {
    "PORTS": ("9092,9093", (9092, 9093), "0"),
    "NAMES": ("a,b", ("a", "b"), ","),
    "TEXTS": ("a,b\\,c", ("a", "b,c"), ""),
    "PATH": ("here", "here", " "),
    "TEXT": ("word", "word", ""),
    "TIME": ("2026-11-22", "2026-11-22", ""),
    "INSTANT": ("2026-11-22", datetime(2026, 11, 22, tzinfo=UTC), "then"),
    "LIMITS": ("objects=5", Limits(objects=5), "much=1"),
    "DIRECTION": ("request", "request", "both"),
    "FILES": ("5", 5, "0"),
    "DURATION": ("1.5m", 90.0, "-1"),
    "LEVEL": ("2", 2, "("),
}
"""By kind: a text, its value, and a text that is none ("": any is one)."""


def test_each_kind_of_option_is_tested() -> None:
    kinds = {name for name, one in vars(options).items() if isinstance(one, options.Kind)}
    # Switches and secrets have forms of their own on the command line; paths have one, and are read by who opens them.
    assert kinds - set(OF_KINDS) == {"SWITCH", "SECRETS", "PATHS"}, "add the kind to OF_KINDS"


@pytest.mark.parametrize("kind", OF_KINDS)
def test_an_option_of_any_kind_has_one_value_everywhere(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, value, wrong = OF_KINDS[kind]
    example = options.Option(help="an example", kind=getattr(options, kind), flag="--example")
    monkeypatch.setitem(OPTIONS, "example", example)  # type: ignore[arg-type]
    parser = argparse.ArgumentParser()
    reading.add_options(parser, "example")
    parsed = parser.parse_args(["--example", text]).example
    assert (tuple(parsed) if isinstance(parsed, list) else parsed) == value
    assert options.values({"example": text})["example"] == value
    assert options._checked("example", value) == value
    with pytest.raises(ValueError, match="the option 'example' is "):
        options._checked("example", object())
    if not wrong:
        return
    with pytest.raises(KwireError, match="the option 'example'"):
        options.values({"example": wrong})
    if kind not in ("NAMES", "TEXTS"):
        with pytest.raises(ValueError, match="the option 'example'"):
            options._checked("example", wrong)
    with pytest.raises(SystemExit):
        parser.parse_args(["--example", wrong])
    assert "argument --example: " in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "wrong"), [("FILES", 0), ("FILES", True), ("DURATION", -1.0), ("DURATION", math.inf)])
def test_a_number_has_the_bounds_of_its_text(kind: str, wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    example = options.Option(help="an example", kind=getattr(options, kind))
    monkeypatch.setitem(OPTIONS, "example", example)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the option 'example' is "):
        options._checked("example", wrong)


@pytest.mark.wide
def test_no_function_takes_more_than_eight_arguments() -> None:
    """Kernels apart: their arrays are arguments, since a compiled function has no objects."""
    found = []
    for file in sorted((ROOT / "kwire").rglob("*.py")):
        if "kernels" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = len([one for one in named if one.arg not in ("self", "cls")])
                if count > MOST_ARGUMENTS:
                    found.append(f"{file.relative_to(ROOT)}:{node.name}")
    assert sorted(found) == sorted(FIELDS)
