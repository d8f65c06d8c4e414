"""What hostile input costs: time and memory of every attack in ``_attacks.py``, and whether they are within a budget.

    python benchmarks/hostile.py [--only TEXT] [--reader NAME] [--rounds 3] [--seconds 60] [--gigabytes 6]
    [--engine machine] [--cold] [--section 1/4] [--list] [--json OUT]

Each attack goes through each reader of its kind: record sets as ``objects`` (``kwire.records.decode``), ``columns``
(``to_arrow``), the tables of a capture that holds them, and as log segments; frames as a ``request`` or ``response``
object, through ``explain`` and in tables; schema text and Kafka's JSON definitions as classes and codecs; and so on. A
line says

- ``input``: bytes that were read, and ``unpacked``: bytes that decompression gave (nothing, where it was refused);
- ``time``: CPU seconds of the process, all of its threads together, the least of the rounds (those that are within
  their budget at once are measured once). No clock on the wall is looked at, so a busy machine gives the same verdict,
  but for what caches that are shared with others cost;
- ``memory``: by how much the most memory that the process had (``ru_maxrss``) exceeds what it had after reading a small
  good input of the same kind, so that imports and compiled kernels do not count;
- ``of budget``: both as parts of what is allowed, and how it ended: with a value, or with which ``KwireError``.

The budget: 50 ms and 2 us for each byte of input and of what decompression gave; 64 MB and 20 times those bytes for
columns and tables, 40 times for objects. A command that makes its answer of several tables has the time of all of them
(``Reader.tables``). Frames of 128 MiB: 5 s and 1 GiB. Any exception that is no ``KwireError``, an
Arrow array that is not valid, and a process that dies or has to be stopped (``--seconds`` of CPU time and the budget of
what was decompressed so far, ``--gigabytes`` of address space above what it had) are beyond every budget. If anything
is, the exit status is 1.

Each measurement has a process of its own: the fork of one that has read a good input with the same reader. Inputs are
made in others. ``--engine python`` reads with kernels as Python, which kwire does for small input, ``chosen`` as kwire
does.

``--cold`` gives each measurement a fresh process that has read nothing, with the engine that kwire chooses. Inputs are
made of fewer parts, so that they have 200,000 bytes or less. Nothing is cut off: each frame is whole, and an input
whose single part is larger keeps it. Its bytes count for its budget. Giants are inputs like others there. The CPU time
of the process counts from its beginning. 2 s are allowed besides the budget: half a second for imports, most of a
second for machine code that is on disk, and as much again for what Python does until it is loaded. Memory is not
looked at there.

A reader of captures that ends with ``CaptureError`` has not come to what the attack is about. Nor have ``frames`` and
``messages`` without a row. This is a fault of the attack (``NOT READ``, exit status 1), unless the attack says that the
file is damaged (``Attack.damaged``) or has no frames (``Attack.framed``).
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve()


# --- Readers: in a process of their own -------------------------------------------------------------------------------


@dataclass(frozen=True)
class What:
    """What a file holds: a response to ``api`` in ``version`` (-1: it is none), or records of ``topic``."""

    api: int = -1
    version: int = 0
    topic: str = "__consumer_offsets"


@dataclass(frozen=True)
class Reader:
    """A way of reading. ``run`` takes a path and what it is, and yields Arrow batches, if there are any.

    ``benign`` names the small input, ``captured`` says that the attack is put into a capture, ``factor`` how many times
    its bytes it may need. ``tables``: of how many tables it makes its answer; each has its time. ``command``: its
    memory is that of the system, as commands have it.
    """

    run: Callable[[Path, What], Iterator[Any]]
    benign: str
    factor: int
    captured: bool = False
    tables: int = 1
    command: bool = False


def _objects(path: Path, _: What) -> Iterator[Any]:
    from kwire import records

    list(records.decode(path.read_bytes(), problems=[]))
    yield from ()


def _columns(path: Path, _: What) -> Iterator[Any]:
    from kwire import records

    yield records.to_arrow(path.read_bytes(), problems=[])


def _table(name: str) -> Callable[[Path, What], Iterator[Any]]:
    def run(path: Path, _: What) -> Iterator[Any]:
        from kwire import capture

        with path.open("rb") as source:
            yield from capture.read(source, name)

    return run


def _log(what: str) -> Callable[[Path, What], Iterator[Any]]:
    def run(path: Path, of: What) -> Iterator[Any]:
        from kwire import log, tables

        deep = tables.table("records", "log").deep
        assert deep is not None
        read = {"records": log.read, "batches": log.batches, "deep": deep.read}[what]
        with path.open("rb") as source:
            yield from read(source, name=f"{of.topic}-0/00000000000000000000.log")

    return run


def _request(path: Path, _: What) -> Iterator[Any]:
    import kwire

    kwire.decode_request(path.read_bytes())
    yield from ()


def _response(path: Path, of: What) -> Iterator[Any]:
    import kwire

    kwire.decode_response(path.read_bytes(), api_key=of.api, api_version=of.version)
    yield from ()


CAPTURES: Final = frozenset(("decode", "report", "findings", "lineage", "audit"))
"""Commands that read a capture."""


def _command(*arguments: str) -> None:
    """Runs ``kwire``; what it says goes nowhere. Raises ``KwireError`` where it says that its input is bad:
    ``CaptureError`` for commands that read whole captures, which take damage in frames as rows."""
    from kwire import cli
    from kwire.errors import CaptureError, KwireError

    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        code = cli.main([*arguments])
    if code == cli.BAD_INPUT:
        error = CaptureError if arguments[0] in CAPTURES else KwireError
        raise error(f"{arguments[0]} ends with an error")


def _explain(path: Path, of: What) -> Iterator[Any]:
    response = ["--response", str(of.api), "--version", str(of.version)] if of.api >= 0 else []
    _command("explain", str(path), *response)
    yield from ()


def _answer(*command: str) -> Callable[[Path, What], Iterator[Any]]:
    def run(path: Path, _: What) -> Iterator[Any]:
        _command(command[0], str(path), *command[1:])
        yield from ()

    return run


def _top(path: Path, _: What) -> Iterator[Any]:
    from kwire.report.live import TABLES, Live
    from kwire.tables.reading import read

    live = Live()
    with path.open("rb") as source:
        for name, batch in read(source, TABLES, dictionaries=True):
            live.add(name, batch)
            live.look()
            for kind in ("api", "topic", "client"):
                live.rates(kind)
    yield from ()


def _spans(path: Path, _: What) -> Iterator[Any]:
    from kwire.report.spans import TABLES, Spans, json_line
    from kwire.tables.reading import read

    spans = Spans()

    def exchanges() -> Iterator[Any]:
        with path.open("rb") as source:
            for name, batch in read(source, TABLES):
                yield from spans.add(name, batch)
        yield from spans.rest()

    # As the command line writes them.
    found = exchanges()
    while some := list(itertools.islice(found, 1000)):
        json_line(some)
    yield from ()


def _packets(path: Path, _: What) -> Iterator[Any]:
    from kwire.capture.writing import PcapngWriter, packets_of

    with path.open("rb") as source, Path(os.devnull).open("wb") as nowhere:
        writer = PcapngWriter(nowhere)
        for packet in packets_of(source, set(range(1000))):
            writer.write(packet)
    yield from ()


def _splits(path: Path, _: What) -> Iterator[Any]:
    from kwire.capture import splits

    with path.open("rb") as source:

        def read(offset: int, count: int) -> bytes:
            source.seek(offset)
            return source.read(count)

        size = path.stat().st_size
        splits.find(read, size, max(splits.LOOKED_AT, size // 8))
    yield from ()


def _chunks(path: Path, _: What) -> Iterator[Any]:
    from kwire import capture
    from kwire.capture.chunks import BROKER_PORT, Chunk, Chunks

    data = path.read_bytes()
    pieces = (Chunk(0, "request", at, data[at : at + 1000]) for at in range(0, len(data), 1000))
    yield from capture.read(Chunks(pieces, "request"), "frames", ports=(BROKER_PORT,))


def _folder(path: Path, of: What) -> Iterator[Any]:
    """A broker's data folder in which every file is the attack."""
    import shutil

    from kwire import log

    with tempfile.TemporaryDirectory() as name:
        partition = Path(name, f"{of.topic}-0")
        partition.mkdir()
        for suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
            shutil.copy(path, partition / f"{'0' * 20}{suffix}")
        for beside in ("leader-epoch-checkpoint", "partition.metadata"):
            shutil.copy(path, partition / beside)
        for beside in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "meta.properties"):
            shutil.copy(path, Path(name, beside))
        log.describe(name)
        _command("segments", name)
    yield from ()


def _splitter(path: Path, _: What) -> Iterator[Any]:
    import kwire

    splitter, data = kwire.FrameSplitter(), path.read_bytes()
    for at in range(0, len(data), 100):
        for _frame in splitter.feed(data[at : at + 100]):
            pass
    splitter.close()
    yield from ()


def _indexes(path: Path, _: What) -> Iterator[Any]:
    import shutil

    from kwire import log

    with tempfile.TemporaryDirectory() as name:
        base = Path(name, "t-0", "0" * 20)
        base.parent.mkdir()
        base.with_suffix(".log").write_bytes(b"")
        for suffix in (".index", ".timeindex"):
            shutil.copy(path, base.with_suffix(suffix))
        (segment,) = log.find(base.parent)
        log.read_index(segment)
        log.read_time_index(segment)
        log.check_indexes(segment)
    yield from ()


def _state(path: Path, _: What) -> Iterator[Any]:
    """A stream that goes on from the state of another batch."""
    import shutil

    from kwire.spark.checkpoint import StateFolder

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "sensor=")
        folder.mkdir()
        shutil.copy(path, folder / f"{1:012d}.state")
        StateFolder(name, 0).load("", 2)
    yield from ()


def _events(path: Path, _: What) -> Iterator[Any]:
    from kwire import records
    from kwire.events import cloudevents

    for batch in records.decode(path.read_bytes(), problems=[]):
        for one in batch.records:
            cloudevents.row(one.headers, one.value)
    yield from ()


def _points(path: Path, _: What) -> Iterator[Any]:
    from kwire.events import telemetry

    list(telemetry.points(telemetry.unpack(0, path.read_bytes())))
    yield from ()


USED: Final = 20
"""Messages of an input of which classes and codecs are made."""


def _use(messages: list[Any]) -> None:
    """Makes classes and codecs of messages, and reads with them."""
    from kwire.codec import registry
    from kwire.errors import KwireError
    from kwire.schema.format import to_text

    to_text(messages)
    for message in messages[:USED]:
        made = registry.message_class(message)()
        for version in sorted({message.versions.low, message.versions.high}):
            codec = registry.codec(message, version)
            codec.decode(codec.encode(made))
            with contextlib.suppress(KwireError):
                codec.decode(b"\x7f\xff\xff\xff")


def _schema(path: Path, _: What) -> Iterator[Any]:
    from kwire.schema import parser

    _use(parser.parse(path.read_text()))
    yield from ()


def _definition(path: Path, _: What) -> Iterator[Any]:
    from kwire.schema import kafka

    # Classes and codecs are made of the first ones alone, as of schemas: they are made for whoever uses a message.
    for number, message in enumerate(kafka.definitions(path)):
        kafka.compare(message, message)
        if number < USED:
            _use([message])
    yield from ()


READERS: Final[dict[str, Reader]] = {
    "objects": Reader(_objects, "records", 40),
    "columns": Reader(_columns, "records", 20),
    "log records": Reader(_log("records"), "segment", 20),
    "log batches": Reader(_log("batches"), "segment", 20),
    "deep": Reader(_log("deep"), "segment", 20),
    "request": Reader(_request, "request", 40),
    "response": Reader(_response, "response", 40),
    "explain": Reader(_explain, "request", 40),
    "splitter": Reader(_splitter, "stream", 40),
    "indexes": Reader(_indexes, "segment", 40),
    "events": Reader(_events, "records", 40),
    "points": Reader(_points, "metrics", 40),
    "schema": Reader(_schema, "schema", 40),
    "definition": Reader(_definition, "definition", 40),
    "folder": Reader(_folder, "segment", 40, tables=4),
    "state": Reader(_state, "state", 40),
    "chunks": Reader(_chunks, "stream", 20),
    "splits": Reader(_splits, "capture", 20, captured=True),
    "packets": Reader(_packets, "capture", 20, captured=True),
    "top": Reader(_top, "capture", 20, captured=True, tables=3, command=True),
    "spans": Reader(_spans, "capture", 40, captured=True, tables=2),
    "lines": Reader(_answer("decode", "--table", "records", "--format", "jsonl"), "capture", 20, True, 1, True),
    **{
        name: Reader(_answer(name, *more), "capture", 20, captured=True, tables=tables, command=True)
        for name, more, tables in (
            ("report", (), 6),
            ("findings", ("--format", "json"), 5),
            ("lineage", ("--format", "json"), 2),
            ("audit", ("--format", "json"), 3),
        )
    },
    **{
        name: Reader(_table(name), "capture", 20, captured=True)
        for name in (
            *("frames", "messages", "partitions", "records", "batches", "calls", "connections"),
            *("cloudevents", "hono", "client_metrics"),
        )
    },
}
"""Every way in which kwire reads what others wrote. Those of Spark are these: a task reads as ``capture.read``,
``log.read`` and ``Chunks`` do, and what it returns is what they return."""

OF_KIND: Final[dict[str, tuple[str, ...]]] = {
    "records": ("objects", "columns", "records", "batches", "log records", "log batches"),
    "topics": ("records", "batches", "partitions", "lines", "report"),
    "request": ("request", "explain", "frames", "messages", "partitions", "report"),
    "response": ("response", "explain", "messages", "partitions", "calls"),
    "giant": ("request", "explain", "messages", "frames", "partitions", "batches", "calls", "findings"),
    "capture": (
        *("frames", "messages", "partitions", "calls", "connections", "splits", "packets"),
        *("top", "spans", "report", "findings", "lineage", "audit"),
    ),
    "events": ("cloudevents",),
    "segment": ("log records", "log batches", "folder"),
    "stream": ("splitter", "chunks"),
    "index": ("indexes", "folder"),
    "metrics": ("points", "client_metrics"),
    "schema": ("schema",),
    "definition": ("definition",),
    "state": ("state",),
}
"""What an attack of each kind goes through, where it does not say otherwise."""


COLD: Final = 2.0
"""Seconds that a fresh process may take besides."""
COLD_BYTES: Final = 200_000
"""Bytes of an input for it: half of what kwire reads by Python if there is little in it."""


# --- One measurement --------------------------------------------------------------------------------------------------


@dataclass
class Result:
    """What one attack did to one reader. Bytes, and CPU seconds; ``outcome`` begins with ``!`` for what must not be."""

    attack: str
    reader: str
    input: int = 0
    unpacked: int = 0
    seconds: float = 0.0
    memory: int = 0
    rows: int = 0
    outcome: str = ""
    giant: bool = False
    cold: bool = False
    damaged: bool = False
    framed: bool = True

    @property
    def seconds_allowed(self) -> float:
        one = 5.0 if self.giant and not self.cold else 0.05 + 2e-6 * (self.input + self.unpacked)
        return one * READERS[self.reader].tables + (COLD if self.cold else 0)

    @property
    def memory_allowed(self) -> int:
        if self.giant:
            return 1 << 30
        return 64_000_000 + READERS[self.reader].factor * (self.input + self.unpacked)

    @property
    def was_read(self) -> bool:
        """Whether the reader came to what the attack is about."""
        if self.damaged or not READERS[self.reader].captured:
            return True
        has_frames = self.rows > 0 or not self.framed or self.reader not in ("frames", "messages")
        return has_frames and self.outcome != "CaptureError"

    @property
    def within(self) -> bool:
        ended = not self.outcome.startswith("!")
        return ended and self.seconds <= self.seconds_allowed and self.memory <= self.memory_allowed

    def line(self) -> str:
        parts = f"{self.seconds / self.seconds_allowed:6.2f} {self.memory / self.memory_allowed:6.2f}"
        sizes = f"{self.input:>11,} {self.unpacked:>13,}"
        verdict = "  BEYOND" if not self.within else "" if self.was_read else "  NOT READ"
        return (
            f"{self.attack:58} {self.reader:14} {sizes} {self.seconds:8.2f} s {self.memory / 1e6:7.0f} MB  {parts}  "
            f"{self.outcome}{verdict}"
        )


class StoppedError(BaseException):
    """Time is up. No ``Exception``: nothing takes it for bad input."""


def _counted(count: list[int]) -> None:
    """Adds to ``count`` what decompression gives from now on, that of zip files included."""
    from kwire.records import compression

    def counting(inner: Callable[..., bytes]) -> Callable[..., bytes]:
        def outer(*args: Any, **options: Any) -> bytes:
            made = inner(*args, **options)
            count[0] += len(made)
            return made

        return outer

    inner, counted = compression.decompress, counting(compression.decompress)
    for module in list(sys.modules.values()):
        # That of its own module, too: what is imported later takes it from there.
        if getattr(module, "decompress", None) is inner:
            module.decompress = counted  # type: ignore[attr-defined]
    zipfile.ZipExtFile.read = counting(zipfile.ZipExtFile.read)  # type: ignore[method-assign]


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _address_space() -> int:
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return 1 << 30


def _warmed(reader: str, benign: Path, engine: str) -> None:
    """Reads ``benign``, so that what comes next finds all modules imported and all kernels compiled."""
    from kwire.cli import compile as ahead

    if engine == "machine":
        for part in ahead.PARTS:
            ahead.compile_part(part)
    import kwire.events.telemetry
    import kwire.records.columnar
    import kwire.records.reader  # noqa: F401  (so that they are there to be counted)
    from kwire.errors import KwireError

    with _engine(engine):
        for _ in range(2):
            with contextlib.suppress(KwireError):
                for batch in READERS[reader].run(benign, What(3, 12) if reader == "response" else What()):
                    batch.to_pylist()


def _engine(name: str) -> contextlib.AbstractContextManager[Any]:
    from kwire.kernels.engine import MACHINE, PYTHON, using

    fixed = {"machine": MACHINE, "python": PYTHON}.get(name)
    return contextlib.nullcontext() if fixed is None else using(fixed)


def measure(reader: str, attack: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Reads ``attack`` in a process that is used for nothing else. The fields of a ``Result``."""
    from kwire.errors import KwireError

    one = READERS[reader]
    of = What(*(options[key] for key in ("api", "version", "topic")))
    import kwire.records.columnar
    import kwire.records.reader  # noqa: F401  (so that they are there to be counted)

    count = [0]
    _counted(count)
    most = _address_space() + int(options["gigabytes"] * (1 << 30))
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    rows = 0
    outcome = "value"
    begin = time.process_time()

    def stop(*_: object) -> None:
        # What decompression gives is not known before: it has its time.
        left = begin + options["seconds"] + 2e-6 * count[0] - time.process_time()
        if left <= 0:
            raise StoppedError(f"after {time.process_time() - begin:.0f} s")
        signal.setitimer(signal.ITIMER_PROF, left)

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, options["seconds"])
    # A kernel that does not return lets no signal through to Python: that ends the process. 2,200 s are the time for
    # all that may be decompressed in one call.
    used = int(time.process_time() + 1.5 * options["seconds"]) + (2200 if options["unpacks"] else 0)
    resource.setrlimit(resource.RLIMIT_CPU, (used, used + 5))
    before = _peak()
    with _engine(options["engine"]):
        try:
            for batch in one.run(attack, of):
                rows += batch.num_rows
                del batch
        except KwireError as error:
            outcome = type(error).__name__
        except BaseException as error:
            outcome = f"!{type(error).__name__}: {str(error)[:60]}"
        signal.setitimer(signal.ITIMER_PROF, 0)
        found = {"seconds": time.process_time() - begin, "memory": _peak() - before, "unpacked": count[0]}
        if options["cold"]:
            found |= {"seconds": time.process_time(), "memory": 0}
        if not outcome.startswith("!") and rows and found["seconds"] < 5:
            # Values of an array that is not valid may be anywhere in memory.
            try:
                for batch in one.run(attack, of):
                    batch.validate(full=True)
            except KwireError:
                pass
            except BaseException as error:
                outcome = f"!not valid: {type(error).__name__}: {str(error)[:60]}"
    return {**found, "rows": rows, "outcome": outcome}


def serve(reader: str, benign: Path, engine: str) -> None:
    """Reads ``benign``, then for each line of standard input (JSON: a path and options) one attack in a fork, and says
    in a line what came of it."""
    if READERS[reader].command:
        from kwire.cli import use_memory_of_the_system

        use_memory_of_the_system()
    _warmed(reader, benign, engine)
    # A collection in a fork would write to every page that it shares with this process.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        task = json.loads(line)
        path, options = Path(task["attack"]), task["options"]
        told, tell = os.pipe()
        before = _peak()
        child = os.fork()
        if not child:
            os.close(told)
            # What is read may print.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = 1
            try:
                os.write(tell, json.dumps(measure(reader, path, options)).encode())
                code = 0
            finally:
                os._exit(code)
        os.close(tell)
        with os.fdopen(told) as answers:
            answer = answers.read()
        _, status, used = os.wait4(child, 0)
        code = os.waitstatus_to_exitcode(status)
        found: dict[str, Any] = {"seconds": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss * 1024 - before}
        if code == -signal.SIGXCPU:
            found["outcome"] = "!does not return"
        elif code < 0:
            found["outcome"] = f"!died: {signal.Signals(-code).name}"
        elif code:
            found["outcome"] = f"!ended with {code}"
        else:
            found = json.loads(answer)
        print(json.dumps(found), flush=True)


def alone(reader: str) -> None:
    """Reads one attack, which a line of standard input names, in a process that has done nothing before."""
    if READERS[reader].command:
        from kwire.cli import use_memory_of_the_system

        use_memory_of_the_system()
    task = json.loads(sys.stdin.readline())
    told = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    found = measure(reader, Path(task["attack"]), task["options"])
    os.write(told, json.dumps(found).encode() + b"\n")


# --- All of them ------------------------------------------------------------------------------------------------------


def _child(*arguments: str) -> subprocess.Popen[str]:
    """This file in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent.parent)}
    return subprocess.Popen(
        [sys.executable, str(HERE), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def _said(process: subprocess.Popen[str], **task: Any) -> str:
    """The answer to one line."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(task) + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise SystemExit(f"{task} was not answered: {process.args} ended with {process.wait()}")
    return answer


def make(name: str, captured: bool, path: Path, cold: bool) -> None:
    """Writes the input of an attack, or a benign one (its name begins with ``=``). ``cold``: a small one."""
    import _attacks

    if name.startswith("="):
        path.write_bytes(_attacks.BENIGN[name[1:]]())
        return
    (attack,) = (one for one in _attacks.ATTACKS if one.name == name)
    path.write_bytes(_attacks.made(attack, captured, COLD_BYTES if cold else None))


def _file(name: str, captured: bool, folder: Path) -> Path:
    plain = "".join(letter if letter.isalnum() else "_" for letter in name)
    return folder / f"{plain}{'.pcap' if captured else '.bin'}"


def make_all() -> None:
    """For each line of standard input (JSON: what ``make`` takes) writes one input, in a fork, and says so."""
    import _attacks  # noqa: F401  (once for all of them)

    for line in sys.stdin:
        task = json.loads(line)
        child = os.fork()
        if not child:
            code = 1
            try:
                make(task["name"], task["captured"], Path(task["path"]), task["cold"])
                code = 0
            finally:
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        print(json.dumps(status), flush=True)


def _section(text: str) -> tuple[int, int]:
    """``2/4`` as the numbers that it has."""
    which, slash, of = text.partition("/")
    if not slash or not which.isdecimal() or not of.isdecimal() or not 0 < int(which) <= int(of):
        raise argparse.ArgumentTypeError(f"{text} is no section, such as 2/4")
    return int(which), int(of)


class Bench:
    """The processes that make inputs and read them."""

    def __init__(self, folder: Path, engine: str, cold: bool) -> None:
        self._folder = folder
        self._cold = cold
        self._engine = engine
        self._maker = _child("--make")
        self._readers: dict[str, subprocess.Popen[str]] = {}

    def made(self, name: str, captured: bool) -> Path:
        """The input of an attack, or a benign one."""
        path = _file(name, captured, self._folder)
        task = {"name": name, "captured": captured, "path": str(path), "cold": self._cold}
        if not path.exists() and json.loads(_said(self._maker, **task)):
            raise SystemExit(f"{name} cannot be made")
        return path

    def measured(self, name: str, reader: str, options: dict[str, Any], rounds: int) -> Result:
        """Measures one attack with one reader, up to ``rounds`` times."""
        attack = self.made(name, READERS[reader].captured)
        if reader not in self._readers and not self._cold:
            benign = self.made("=" + READERS[reader].benign, False)
            self._readers[reader] = _child("--serve", reader, str(benign), self._engine)
        best: Result | None = None
        for _ in range(rounds):
            result = Result(name, reader, attack.stat().st_size, giant=options["giant"], cold=self._cold)
            result.damaged, result.framed = options["damaged"], options["framed"]
            process = _child("--alone", reader) if self._cold else self._readers[reader]
            for key, value in json.loads(_said(process, attack=str(attack), options=options)).items():
                setattr(result, key, value)
            if self._cold:
                process.communicate()
            if best is None or result.seconds < best.seconds:
                best = result
            # What is far beyond, or beyond for another reason than time, is so in the next round too.
            if best.within or best.outcome.startswith("!") or best.seconds > 3 * best.seconds_allowed:
                break
            if best.memory > best.memory_allowed:
                break
        assert best is not None
        return best

    def forget(self, name: str) -> None:
        """Deletes the inputs of an attack."""
        for captured in (False, True):
            _file(name, captured, self._folder).unlink(missing_ok=True)

    def keep(self, readers: set[str]) -> None:
        """Ends the processes of all other readers."""
        for reader in [one for one in self._readers if one not in readers]:
            self._readers.pop(reader).communicate()

    def close(self) -> None:
        """Ends all processes."""
        self.keep(set())
        self._maker.communicate()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="attacks in whose name this pattern is found")
    parser.add_argument("--reader", default="", help="only these readers, with commas between")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30, help="of CPU, after which a process is stopped")
    parser.add_argument("--gigabytes", type=float, default=6, help="address space that a process may add")
    parser.add_argument("--engine", choices=("machine", "python", "chosen"), default="machine")
    parser.add_argument("--cold", action="store_true", help="each in a fresh process that has read nothing")
    parser.add_argument(
        "--section", type=_section, default=(1, 1), metavar="K/N", help="every Nth attack only, from the Kth on"
    )
    parser.add_argument("--list", action="store_true", help="names of attacks and their readers")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.alone:
        alone(args.alone)
        return 0
    if args.make:
        make_all()
        return 0
    if args.serve:
        reader, benign, engine = args.serve
        serve(reader, Path(benign), engine)
        return 0

    import _attacks

    chosen = [
        (one, reader)
        for one in _attacks.ATTACKS[args.section[0] - 1 :: args.section[1]]
        if re.search(args.only, one.name)
        for reader in one.readers or OF_KIND[one.kind]
        if not args.reader or reader in args.reader.split(",")
    ]
    if args.list:
        for one, reader in chosen:
            print(f"{one.name:58} {reader}")
        return 0
    results: list[Result] = []
    sizes = f"{'input':>11} {'unpacked':>13} {'time':>10} {'memory':>10}"
    print(f"{'attack':58} {'reader':14} {sizes}  of budget: time, memory")
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        bench = Bench(Path(name), args.engine, args.cold)
        for at, (attack, reader) in enumerate(chosen):
            is_response = attack.kind == "response"
            options = {
                "api": attack.api if is_response else -1,
                "version": attack.version,
                "topic": attack.topic.decode(),
                "gigabytes": args.gigabytes,
                "seconds": args.seconds,
                "engine": "chosen" if args.cold else args.engine,
                "cold": args.cold,
                "giant": attack.kind == "giant",
                "damaged": attack.damaged,
                "framed": attack.framed,
                "unpacks": "zstd" in attack.name or "bomb" in attack.name,
            }
            results.append(bench.measured(attack.name, reader, options, args.rounds))
            print(results[-1].line(), flush=True)
            following = chosen[at + 1 :]
            if not following or following[0][0] is not attack:
                bench.forget(attack.name)
                bench.keep({one for _, one in following})
        bench.close()
    beyond = [one for one in results if not one.within]
    unread = [one for one in results if not one.was_read]
    print(f"\n{len(results)} measured, {len(beyond)} beyond their budget, {len(unread)} not read")
    if args.json:
        rows = [
            asdict(one)
            | {"seconds_allowed": one.seconds_allowed, "memory_allowed": one.memory_allowed, "within": one.within}
            for one in results
        ]
        args.json.write_text(json.dumps(rows, indent=1))
    return 1 if beyond or unread else 0


if __name__ == "__main__":
    sys.exit(main())
