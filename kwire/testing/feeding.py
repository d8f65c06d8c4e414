"""Gives cases of the corpus to a parser of any language, and judges what it says of them.

A ``Parser`` is a command. It is started once for each case (``Once``), or once for many of them (``Lines``). ``judge``
holds an answer against the verdict of a case. ``run`` does that for many cases, and groups what is wrong.

The protocol of ``Lines``: for each case one line comes on standard input, and one line of JSON goes to standard output,
which must be flushed. The line is five words: role, API key, version, where the body begins (``-`` where the header is
damaged), and the frame in hex. The answer has ``verdict``, which is ``accept``, ``refuse``, or ``skip`` for a version
that the parser does not know. ``error`` may say why. ``crash`` in place of it says that the parser failed in a way that
it does not mean to. ``canonical`` may be the body in hex as the parser writes it again: kwire then compares values.

Rules kept here:

- A command that ends alike for each valid frame is not judged: it fails itself (``check_command``).
- A parser that does not answer in time, or takes more memory than it may, is ended with all its processes.
- Memory is the largest resident size of the process (``VmHWM`` of proc(5)). Only Linux has it: elsewhere nobody counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, Protocol

from kwire.codec import registry
from kwire.codec.objects import WireStruct
from kwire.errors import KwireError
from kwire.opening import create_file
from kwire.testing.corpus.case import Case
from kwire.testing.corpus.damage import ACCEPT
from kwire.testing.shrinking import shrunk

__all__ = [
    "Answer",
    "Bounds",
    "Group",
    "Lines",
    "Once",
    "Outcome",
    "Parser",
    "Process",
    "Wrong",
    "check_command",
    "count",
    "judge",
    "ran",
    "run",
    "shrink",
    "words_of",
]

Said = Literal["accept", "refuse", "skip", "crash", "hang", "memory", "garbled"]
Wrong = Literal["crash", "hang", "memory", "garbled", "accepts", "refuses", "value"]
"""What is wrong with an answer.

- ``crash``: the parser failed in a way that it does not mean to
- ``hang``: it did not answer in time
- ``memory``: it took more than it may
- ``garbled``: it answers with bytes that are no answer
- ``accepts``: it reads what it must refuse
- ``refuses``: it refuses what it must accept
- ``value``: it reads another value than the one that the bytes have
"""

_STEP: Final = 0.05
"""Seconds between two looks at the memory of a process."""
_SAID: Final = 300
"""Characters of what a parser says that are kept."""
_VERDICTS: Final[dict[str, Said]] = {"accept": "accept", "refuse": "refuse", "skip": "skip"}
_ERRORS: Final = 4 << 10
"""Bytes of standard error that are kept."""
_LINE: Final = 64 << 20
"""Bytes of an answer at most."""
_FEW: Final = 5
_MANY: Final = 50
"""Valid frames after which a command that ends alike for each of them is taken to fail itself. Many, where it ends as
one that refuses them: a parser may know few APIs."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a parser may use for one case."""

    seconds: float = 5.0
    memory: int = 1 << 30
    """Bytes."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a parser says of a case."""

    said: Said
    detail: str = ""
    canonical: bytes | None = None
    code: int | None = field(default=None, compare=False)
    """The exit code of the program, if it ended in place of an answer, or refused the case by it."""


class Process:
    """A running command, in a session of its own, so that it ends with all that it has started."""

    def __init__(self, words: Sequence[str], *, take: bool) -> None:
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            words,
            stdin=subprocess.PIPE if take else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stderr is not None
        os.set_blocking(self.process.stderr.fileno(), False)
        self._errors = b""
        self._status = Path(f"/proc/{self.process.pid}/status")

    def peak(self) -> int:
        """The largest resident size so far, in bytes. 0 where it is not known."""
        with contextlib.suppress(OSError):
            found = re.search(rb"VmHWM:\s+(\d+) kB", self._status.read_bytes())
            return int(found[1]) << 10 if found else 0
        return 0

    def last_words(self) -> str:
        """The last line that it wrote to standard error."""
        assert self.process.stderr is not None
        with contextlib.suppress(BlockingIOError, ValueError):
            while part := os.read(self.process.stderr.fileno(), 1 << 16):
                self._errors = (self._errors + part)[-_ERRORS:]
        return self._errors.decode("utf-8", "replace").strip().rpartition("\n")[2][-_SAID:]

    def end(self) -> int:
        """Ends it if it still runs. Returns its exit code."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.last_words()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        return self.process.wait()

    def read(self, bounds: Bounds, *, line: bool, data: bytes = b"") -> tuple[bytes, Said | None]:
        """Gives it ``data``, and takes what it says: a line, or all of it. What went beyond its bounds, if anything."""
        process = self.process
        assert process.stdout is not None
        out = process.stdout.fileno()
        into = process.stdin.fileno() if process.stdin is not None else -1
        if into >= 0:
            os.set_blocking(into, False)
        said = bytearray()
        until = time.monotonic() + bounds.seconds
        while True:
            left = until - time.monotonic()
            if left <= 0:
                return bytes(said), "hang"
            readable, writable, _ = select.select([out], [into] if data else [], [], min(left, _STEP))
            self.last_words()
            if writable:
                with contextlib.suppress(BlockingIOError):
                    try:
                        data = data[os.write(into, data) :]
                    except BrokenPipeError:
                        data = b""
                if not data and not line and process.stdin is not None:
                    process.stdin.close()
            if self.peak() > bounds.memory:
                return bytes(said), "memory"
            if readable:
                part = os.read(out, 1 << 16)
                said += part
                if not part or (line and part.endswith(b"\n")) or len(said) > _LINE:
                    return bytes(said), None


class Parser(Protocol):
    """Whatever can be asked about cases."""

    def ask(self, case: Case) -> Answer:
        """What it makes of a case."""
        ...

    def close(self) -> None:
        """Ends it."""
        ...


def ran(words: Sequence[str], bounds: Bounds, refused: Collection[int], data: bytes | None = None) -> Answer:
    """Runs a command to its end, with ``data`` on standard input. ``refused``: the exit codes that refuse it."""
    process = Process(words, take=data is not None)
    try:
        said, beyond = process.read(bounds, line=False, data=data or b"")
        if beyond is None:
            try:
                process.process.wait(bounds.seconds)
            except subprocess.TimeoutExpired:
                beyond = "hang"  # it has closed its output, and goes on
    finally:
        code = process.end()
    detail = said.decode("utf-8", "replace").strip()[-_SAID:]
    if beyond is not None:
        return Answer(beyond, detail)
    if code == 0:
        return Answer("accept", detail)
    words = f"exit code {code} {detail or process.last_words()}".strip()
    return Answer("refuse" if code in refused else "crash", words, code=code)


def words_of(command: str) -> list[str]:
    """The words of a command, as a shell has them. Raises ``KwireError`` if there is none, or a quote has no end."""
    try:
        found = shlex.split(command)
    except ValueError as error:
        raise KwireError(f"{command!r} is no command: {error}") from None
    if not found or not found[0]:
        raise KwireError(f"{command!r} is no command: it names no program")
    return found


class Once:
    """A command that is started for each case.

    ``{}`` is the name of a file. Without it the bytes are on standard input. ``{role}``, ``{api_key}``, ``{version}``
    and ``{body_at}`` are what the case is. Exit code 0 accepts the bytes, those in ``refused`` refuse them. Any other,
    and the end by a signal, is a crash.
    """

    def __init__(self, command: str, bounds: Bounds, refused: Sequence[int] = (1,)) -> None:
        self._words = words_of(command)
        self._bounds = bounds
        self._refused = frozenset(refused)
        self._folder = TemporaryDirectory(prefix="kwire-fuzz-")
        self._count = 0

    def ask(self, case: Case) -> Answer:
        """What the command makes of a case."""
        self._count += 1
        file = Path(self._folder.name, f"{self._count}.bin")
        named = any("{}" in one for one in self._words)
        if named:
            with create_file(file) as out:
                out.write(case.data)
        known = {"{}": str(file), "{role}": case.role, "{api_key}": case.api_key, "{version}": case.version}
        known["{body_at}"] = "-" if case.body_at is None else case.body_at
        words = list(self._words)
        for name, value in known.items():
            words = [one.replace(name, str(value)) for one in words]
        try:
            return ran(words, self._bounds, self._refused, None if named else case.data)
        finally:
            file.unlink(missing_ok=True)

    def close(self) -> None:
        """Removes its files."""
        self._folder.cleanup()


class Lines:
    """A command that is started once, and answers lines (see the head of this module)."""

    def __init__(self, command: str, bounds: Bounds) -> None:
        self._words = words_of(command)
        self._bounds = bounds
        self._process: Process | None = None

    def ask(self, case: Case) -> Answer:
        """What the command makes of a case. It is started anew if it has ended."""
        if self._process is None:
            self._process = Process(self._words, take=True)
        at = "-" if case.body_at is None else case.body_at
        line = f"{case.role} {case.api_key} {case.version} {at} {case.data.hex()}\n"
        said, beyond = self._process.read(self._bounds, line=True, data=line.encode())
        if beyond is not None:
            self.close()
            return Answer(beyond)
        if not said.endswith(b"\n"):
            code = self._process.end()
            detail = said.decode("utf-8", "replace")[-_SAID:] or self._process.last_words()
            self._process = None
            return Answer("crash", f"ended with exit code {code} {detail}".strip(), code=code)
        return _answer(said)

    def close(self) -> None:
        """Ends the command."""
        if self._process is not None:
            self._process.end()
            self._process = None


def _answer(line: bytes) -> Answer:
    lines = line.count(b"\n")
    if lines > 1:
        raise KwireError(f"the parser answered {lines} lines to one frame, and has to answer one")
    try:
        said: Any = json.loads(line)
        verdict: Said = "crash" if "crash" in said else _VERDICTS[said["verdict"]]
        written = said.get("canonical")
        detail = str(said.get("crash", said.get("error", "")))
        return Answer(verdict, detail[:_SAID], None if written is None else bytes.fromhex(written))
    except (ValueError, KeyError, TypeError, AttributeError):
        text = line.decode("utf-8", "replace").strip()[:_SAID]
        raise KwireError(f"the parser answered {text!r}; an answer is JSON with a verdict: see its protocol") from None


def judge(case: Case, answer: Answer) -> Wrong | None:
    """What is wrong with an answer, None if nothing is."""
    if answer.said == "crash" or answer.said == "hang" or answer.said == "memory" or answer.said == "garbled":
        return answer.said
    if answer.said == "accept":
        if case.verdict == "must-refuse":
            return "accepts"
        return None if _same(case, answer.canonical) else "value"
    return "refuses" if answer.said == "refuse" and case.verdict == "must-accept" else None


def _same(case: Case, written: bytes | None) -> bool:
    """Whether a parser that wrote this has read the value of the case. It may leave out tags that no schema knows."""
    canonical = case.canonical()
    if written is None or canonical is None or written == canonical or case.recipe is None:
        return True
    codec = registry.codec(case.recipe.message, case.version)
    try:
        theirs = codec.decode(written)
    except KwireError:
        return False
    return bool(_plain(theirs) == _plain(codec.decode(canonical)))


def _plain(value: WireStruct) -> Any:
    return _without_tags(value.to_dict())


def _without_tags(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_tags(one) for name, one in value.items() if name != "unknown_tagged_fields"}
    return [_without_tags(one) for one in value] if isinstance(value, list | tuple) else value


@dataclass(slots=True)
class Group:
    """Answers that are wrong in the same way."""

    wrong: Wrong
    kind: str
    """The damage, or the shape of a valid case."""
    detail: str
    """What the parser said of the first one."""
    count: int = 0
    example: Case | None = None
    """The smallest one."""
    apis: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class Outcome:
    """What came out of many cases."""

    asked: int = 0
    skipped: int = 0
    groups: dict[tuple[str, str, str], Group] = field(default_factory=dict)
    suites: dict[tuple[str, str, str], list[int]] = field(default_factory=dict)
    """By API, role and kind: how many cases were asked, and how many answers are wrong."""
    seconds: float = 0.0


def check_command(parser: Parser, cases: Sequence[Case], others: Iterable[Case] = ()) -> None:
    """Asks a parser about some valid ``cases``. Raises ``KwireError`` for a command that fails whatever it is asked.

    Such a command ends with the same exit code and the same last words each time: a file is missing, or a module.
    ``others`` are asked where none of the cases is valid.
    """
    valid = [one for one in cases if one.verdict == ACCEPT] or list(others) * bool(cases)
    some = [valid[number * len(valid) // _MANY] for number in range(_MANY)] if len(valid) > _MANY else valid
    first = None
    for number, one in enumerate(some, 1):
        answer = parser.ask(one)
        # A signal ends a parser that has begun.
        if answer.code is None or answer.code < 0:
            return
        ended = answer.said, answer.code, _alike(answer.detail)
        if first is not None and ended != first:
            return
        first = ended
        if number >= (_FEW if answer.said == "crash" else _MANY):
            raise KwireError(f"the command itself fails: {answer.detail}; so it did for {number} valid frames")


def run(
    parser: Parser, cases: Iterable[Case], progress: Callable[[int], None] | None = None, seconds: float = 0
) -> Outcome:
    """Asks a parser about cases, one after the other. ``seconds``: ends after so many, 0: never."""
    outcome = Outcome()
    began = time.monotonic()
    for case in _until(cases, began + seconds if seconds else 0):
        answer = parser.ask(case)
        if answer.said == "skip":
            outcome.skipped += 1
        else:
            outcome.asked += 1
            count(outcome, case, answer)
        if progress is not None:
            progress(outcome.asked + outcome.skipped)
    outcome.seconds = time.monotonic() - began
    return outcome


def shrink(parser: Parser, outcome: Outcome, seconds: float = 10.0) -> None:
    """Makes the example of each group smaller, as long as the parser gets it wrong in the same way.

    ``seconds``: the most that one example may take.
    """
    for group in outcome.groups.values():
        # Each try of a hang takes as long as the parser may.
        if group.example is not None and group.wrong != "hang":
            fails = partial(_fails, parser, group.wrong, time.monotonic() + seconds)
            group.example = shrunk(group.example, fails, bytes_too=group.wrong in ("crash", "memory"))


def _fails(parser: Parser, wrong: Wrong, end: float, case: Case) -> bool:
    return time.monotonic() < end and judge(case, parser.ask(case)) == wrong


def _alike(words: str) -> str:
    """What a parser says, without the numbers and names that differ from case to case."""
    return re.sub(r"['\"].*?['\"]|\d+", "_", words)


def _until(cases: Iterable[Case], end: float) -> Iterator[Case]:
    for case in cases:
        if end and time.monotonic() > end:
            return
        yield case


def count(outcome: Outcome, case: Case, answer: Answer) -> None:
    """Enters an answer: judged, and with others that are wrong in the same way."""
    kind = case.damage or case.shape
    suite = outcome.suites.setdefault((case.api, case.role, kind), [0, 0])
    suite[0] += 1
    wrong = judge(case, answer)
    if wrong is None:
        return
    suite[1] += 1
    alike = _alike(answer.detail)[:60] if wrong in ("crash", "refuses") else ""
    group = outcome.groups.setdefault((wrong, kind, alike), Group(wrong, kind, answer.detail))
    group.count += 1
    group.apis[case.api] = None
    if group.example is None or len(case.data) < len(group.example.data):
        group.example, group.detail = case, answer.detail
