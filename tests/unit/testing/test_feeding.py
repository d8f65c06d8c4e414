"""``kwire fuzz run``: each thing that is wrong with a parser is found, bounded, made smaller and reported."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kwire import cli
from kwire.errors import KwireError
from kwire.testing import corpus, feeding
from kwire.testing.corpus import Case
from kwire.testing.feeding import Answer, Bounds, Lines, Once, judge

LINES = """
import os, sys, time
for line in sys.stdin:
    role, key, version, at, *data = line.split()
    {}
    print('{{"verdict": "accept"}}', flush=True)
"""

ONCE = """
import os, sys
data = open(sys.argv[1], 'rb').read() if len(sys.argv) > 1 else sys.stdin.buffer.read()
{}
"""


def command(folder: Path, text: str, what: str) -> str:
    file = folder / "parser.py"
    file.write_text(text.format(what))
    return f"{shlex.quote(sys.executable)} {file}"


def case(kind: str = "one", version: int = 4) -> Case:
    return next(corpus.cases(["Heartbeat"], [kind], versions=[version]))


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[feeding.Lines]:
    parser = Lines(command(tmp_path, LINES, "exec(open(sys.argv[0] + '.do').read())"), Bounds(20.0, 100 << 20))
    (tmp_path / "parser.py.do").write_text("pass")
    yield parser
    parser.close()


def does(folder: Path, what: str) -> None:
    (folder / "parser.py.do").write_text(what)


def test_a_parser_that_answers_lines_goes_on_after_what_ended_it(lines: Lines, tmp_path: Path) -> None:
    assert lines.ask(case()) == Answer("accept")
    does(tmp_path, "os._exit(3)")
    answer = lines.ask(case())
    assert (answer.said, answer.detail) == ("crash", "ended with exit code 3")
    does(tmp_path, "os.abort()")
    assert lines.ask(case()).detail == "ended with exit code -6"
    lines.close()
    does(tmp_path, "pass")
    assert lines.ask(case()) == Answer("accept")


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted on Linux")
def test_what_a_parser_said_at_last_is_told(lines: Lines, tmp_path: Path) -> None:
    does(tmp_path, "sys.stderr.write('x' * 99_999 + chr(10)); raise ImportError('no such module')")
    answer = lines.ask(case())
    assert (answer.said, answer.detail) == ("crash", "ended with exit code 1 ImportError: no such module")
    once = Once(command(tmp_path, ONCE, "sys.exit('cannot begin')") + " {}", Bounds(20.0), refused=[3])
    assert once.ask(case()) == Answer("crash", "exit code 1 cannot begin")
    once.close()


def test_a_parser_of_requests_is_asked_about_requests_only(tmp_path: Path) -> None:
    # It ends at a response.
    parser = command(tmp_path, LINES, "role == 'request' or os._exit(1)")
    made = tmp_path / "out.json"
    words = ["fuzz", "run", "--lines", "--cmd", parser, "--api", "Heartbeat", "--kind", "one", "--json", str(made)]
    assert cli.main([*words, "--role", "request"]) == 0
    assert json.loads(made.read_text())["asked"] == 5
    assert cli.main(words) == 1


def test_a_parser_that_takes_too_much_memory_is_ended(lines: Lines, tmp_path: Path) -> None:
    does(tmp_path, "much = b'x' * (300 << 20); time.sleep(20)")
    assert lines.ask(case()).said == "memory"
    does(tmp_path, "pass")
    assert lines.ask(case()).said == "accept"


def test_a_parser_that_does_not_answer_is_ended(tmp_path: Path) -> None:
    parser = Lines(command(tmp_path, LINES, "time.sleep(600)"), Bounds(0.2))
    assert parser.ask(case()).said == "hang"
    once = Once(command(tmp_path, ONCE, "import time; time.sleep(600)") + " {}", Bounds(0.2))
    assert once.ask(case()).said == "hang"
    once.close()
    quiet = Once(command(tmp_path, ONCE, "import time; os.close(1); time.sleep(600)") + " {}", Bounds(0.3))
    assert quiet.ask(case()).said == "hang"
    quiet.close()


def test_a_parser_may_say_that_it_has_failed(tmp_path: Path) -> None:
    said = 'print(\'{"crash": "IndexError"}\', flush=True); continue'
    parser = Lines(command(tmp_path, LINES, said), Bounds())
    assert parser.ask(case()) == Answer("crash", "IndexError")
    parser.close()


def test_an_answer_that_is_none_is_an_error_of_whoever_wrote_the_adapter(tmp_path: Path) -> None:
    parser = Lines(command(tmp_path, LINES, "print('hello', flush=True); continue"), Bounds())
    with pytest.raises(KwireError, match="the parser answered 'hello'; an answer is JSON with a verdict"):
        parser.ask(case())
    parser.close()


def test_two_answers_to_one_frame_are_a_mistake_too(tmp_path: Path) -> None:
    parser = Lines(command(tmp_path, LINES, "os.write(1, b'{}\\n{}\\n'); continue"), Bounds())
    with pytest.raises(KwireError, match="answered 2 lines"):
        parser.ask(case())
    parser.close()


@pytest.mark.parametrize("words", [" {}", ""])
def test_a_parser_that_is_started_for_each_frame(tmp_path: Path, words: str) -> None:
    refuse = command(tmp_path, ONCE, "sys.exit(0 if len(data) > 40 else 1 if len(data) > 30 else os.abort())") + words
    parser = Once(refuse, Bounds(), [1])
    said = [parser.ask(one) for one in (case("many"), case("one"), case("empty"))]
    sizes = [len(one.data) for one in (case("many"), case("one"), case("empty"))]
    expected = ["accept" if size > 40 else "refuse" if size > 30 else "crash" for size in sizes]
    assert [one.said for one in said] == expected
    assert "crash" in expected
    parser.close()


def test_verdicts() -> None:
    assert judge(case("one"), Answer("accept")) is None
    assert judge(case("one"), Answer("refuse")) == "refuses"
    assert judge(case("null"), Answer("accept")) == "accepts"
    assert judge(case("null"), Answer("refuse")) is None
    assert judge(case("null"), Answer("crash")) == "crash"
    for said in ("accept", "refuse"):
        assert judge(case("negative-null"), Answer(said)) is None


def test_values_are_compared_but_for_tags_that_no_schema_knows() -> None:
    one = case("unknown-tags")
    canonical = one.canonical()
    assert canonical is not None
    assert one.recipe is not None
    assert judge(one, Answer("accept", canonical=canonical)) is None
    plain = corpus.cases(["Heartbeat"], ["one"], versions=[4])
    other = next(plain).canonical()
    assert judge(one, Answer("accept", canonical=other)) == "value"
    assert judge(one, Answer("accept", canonical=b"\xff")) == "value"
    without = canonical.replace(canonical[canonical.index(b"\x02\x90\x4e") :], b"\x00")
    assert judge(one, Answer("accept", canonical=without)) is None


def test_an_example_gets_smaller_and_keeps_its_damage(tmp_path: Path) -> None:
    parser = Lines(command(tmp_path, LINES, "pass"), Bounds())
    outcome = feeding.run(parser, corpus.cases(["Metadata"], ["null"], versions=[9]))
    (before,) = [one.example for one in outcome.groups.values()]
    feeding.shrink(parser, outcome)
    (group,) = outcome.groups.values()
    assert group.wrong == "accepts"
    assert before is not None
    assert group.example is not None
    assert group.example.damage == "null"
    assert len(group.example.data) <= len(before.data)
    assert judge(group.example, Answer("accept")) == "accepts"
    parser.close()


def test_a_crash_gets_smaller_by_bytes(tmp_path: Path) -> None:
    parser = Lines(command(tmp_path, LINES, "'6e616d65' in data[0] and os._exit(1)"), Bounds())
    outcome = feeding.run(parser, corpus.cases(["Heartbeat"], ["one"], versions=[0]))
    feeding.shrink(parser, outcome)
    (group,) = outcome.groups.values()
    assert group.wrong == "crash"
    assert group.example is not None
    assert group.example.data[group.example.body_at :] == b"name"
    parser.close()


def test_kwire_gets_nothing_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(__file__).parents[3]
    adapter = f"{shlex.quote(sys.executable)} {root / 'fuzz' / 'peers' / 'of_kwire.py'}"
    assert cli.main(["fuzz", "run", "--lines", "--cmd", adapter, "--api", "Heartbeat,FindCoordinator"]) == 0
    assert ", 0 answers wrong, in " in capsys.readouterr().out


def test_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    accepts_all = command(tmp_path, LINES, "pass")
    junit, made = tmp_path / "out.xml", tmp_path / "out.json"
    args = ["--api", "Heartbeat", "--kind", "one,null", "--junit", str(junit), "--json", str(made)]
    assert cli.main(["fuzz", "run", "--lines", "--cmd", accepts_all, *args]) == 1
    said = capsys.readouterr().out
    assert "accepts what it must refuse: null, " in said
    assert "  why: protocol guide, Protocol Primitive Types: only nullable types have a null" in said
    found = json.loads(made.read_text())
    assert [one["kind"] for one in found["wrong"]] == ["null"]
    assert bytes.fromhex(found["wrong"][0]["example"]["hex"]).hex() in said
    (suite,) = ElementTree.parse(junit).getroot()
    failed = {(one.get("classname"), one.get("name")) for one in suite if len(one)}
    assert failed == {("Heartbeat.request", "null")}
    assert suite.get("failures") == "1"


@pytest.mark.parametrize(
    "fails",
    [
        "echo $2 >&2; exit $(( $2 + 3 ))",  # its words are the same but for numbers, its exit codes are not
        "test $2 = 0; exit $(( $? * 3 ))",  # it reads a version
        "kill -9 $$",  # a signal: it has begun
    ],
)
def test_a_parser_that_fails_in_several_ways_or_has_begun_is_judged(
    fails: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--api", "Heartbeat", "--kind", "one", "--cmd", f"sh -c '{fails}' sh {{role}} {{version}}"]
    assert cli.main(["fuzz", "run", *words]) == 1
    assert "10 frames asked" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--cmd", "nothing-of-this-name"], "nothing-of-this-name: No such file or directory"),
        (["--cmd", "true", "--refused", "x"], "--refused takes exit codes such as 1,3, not 'x'"),
        (["--lines", "--cmd", "sh nosuch.sh"], "the command itself fails: ended with exit code "),
        (["--cmd", "sh -c 'echo no module >&2; exit 7'"], "fails: exit code 7 no module; so it did for 5 valid frames"),
        (["--cmd", "sh -c 'echo no module >&2; exit 7'", "--kind", "cut"], "the command itself fails: exit code 7"),
        (["--cmd", "sh -c 'echo no jar >&2; exit 1'"], "fails: exit code 1 no jar; so it did for 50 valid frames"),
        (["--cmd", "true", "--version", "99"], "the parser was asked nothing"),
        (["--cmd", "true", "--api", "Heartbeet"], "did you mean 'Heartbeat'"),
    ],
)
def test_a_mistake_is_one_line(args: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fuzz", "run", "--api", "Heartbeat", *args]) == 2
    assert said in capsys.readouterr().err
