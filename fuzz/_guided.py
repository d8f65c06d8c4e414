"""Coverage-guided fuzzing: atheris (libFuzzer for Python) chooses the inputs of every harness that has ``check``.

kwire is imported with counters, once for all harnesses: a branch that was not reached before makes an input worth
keeping. Each harness then runs in a fork. Kernels run as Python, whose branches are counted too, or as machine code,
which is faster (``--kernels``). Generated codecs are counted as well.

A folder (``build/fuzz``) keeps what was learnt, so that the next run goes on:

    NAME/corpus     inputs that reached something new
    NAME/found      inputs that break the invariant, the smallest of each kind, with the traceback
    NAME/log        what libFuzzer said last
    guided.json     executions, seconds and coverage of each harness

Half of all mutations are those of libFuzzer, with a dictionary (``words``). The others are those of
``fuzz.damaged``, which know lengths and varints. After half of them, checksums are put right (``mended``).
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import io
import itertools
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent
FOLDER = HERE.parent / "build" / "fuzz"
KERNELS = ("python", "machine")
BOTH = "both"
"""Python where a run goes once through the harnesses, and one after the other with turns."""

SECONDS_EACH = 120
"""On the clock, after which an input hangs. Kernels as Python, with counters, are some 100 times slower than machine
code, and a busy machine may be ten times slower than an idle one."""
MEGABYTES = 4096
"""Memory of a process, after which it has taken too much."""
SLOWER = 10
"""Seconds on the clock that a second of processor time may take, on a busy machine or where a harness waits."""
SEEDS_A_SECOND = 10
"""Seeds that a short run begins with. All of them would take longer than it has."""
LONG = 20
"""Seconds of a harness from which on a run has all seeds."""


@dataclass
class Told:
    """What was done with a harness, in all runs."""

    executions: int = 0
    seconds: float = 0.0
    coverage: int = 0
    corpus: int = 0
    by_kernels: dict[str, int] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)


def used() -> float:
    """Seconds of processor time, with those of processes that have ended."""
    return sum(os.times()[:4])


def missing() -> str | None:
    """Why coverage cannot guide; None where it can."""
    if importlib.util.find_spec("atheris") is None:
        return "atheris is not installed: pip install 'kwire[guided]'"
    return None


def harnesses(names: Sequence[str]) -> list[str]:
    """Those of these modules whose inputs are bytes."""
    return [name for name in names if "\ndef check(data" in (HERE / f"{name}.py").read_text()]


# --- The process in which kwire is counted ----------------------------------------------------------------------------


def imported(names: Sequence[str], kernels: str, *, long: bool = False) -> dict[str, ModuleType]:
    """The harnesses, with kwire counted. Modules that are imported when they are used are there too.

    ``long``: so are the codecs of all seeds. To count one takes longer than hundreds of executions."""
    import atheris

    exclude = []
    if kernels == "machine":
        folder = HERE.parent / "kwire" / "kernels"
        exclude = ["kwire.kernels", *(f"kwire.kernels.{one.stem}" for one in folder.glob("*.py"))]
    found = {}
    # It names each module that it counts.
    with contextlib.redirect_stderr(io.StringIO()), atheris.instrument_imports(include=["kwire"], exclude=exclude):
        for name in names:
            found[name] = import_module(f"fuzz.{name}")
        from kwire import schema
        from kwire.codec import registry

        _used(found, 20)
    compile_, names_ = registry.CompiledCodec._compile, frozenset(schema.names())

    def counted(self: Any, *args: Any, **options: Any) -> Any:
        made = compile_(self, *args, **options)
        # A counter is for ever: what is made of each input has none.
        kept = schema.message(self.message.name) is self.message if self.message.name in names_ else False
        return atheris.instrument_func(made) if kept else made

    registry.CompiledCodec._compile = counted  # type: ignore[method-assign]
    registry._CODECS.clear()
    if long:
        _used(found, 1)
    return found


def _used(found: Mapping[str, ModuleType], every: int) -> None:
    for harness in found.values():
        for data in itertools.islice(harness.seeds(), 0, None if every == 1 else 200, every):
            # What breaks an invariant is found again, in the fork that notes it.
            with contextlib.suppress(Exception):
                harness.check(data)


def _mutator(harness: ModuleType) -> Callable[[bytes, int, int], bytes]:
    import atheris

    from fuzz import damaged

    mended: Callable[[bytes], bytes] | None = getattr(harness, "mended", None)

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.5:
            data = damaged(bytes(data), rng, rng.choice((1, 1, 2)))
        else:
            data = atheris.Mutate(bytes(data), most)
        if mended is not None and rng.random() < 0.5:
            data = mended(bytes(data))
        return bytes(data)[:most]

    return mutated


def _kind(error: BaseException) -> str:
    """Errors of the same kind have the same type and place."""
    ours = [one for one in traceback.extract_tb(error.__traceback__) if f"{os.sep}kwire{os.sep}" in one.filename]
    last = (ours or traceback.extract_tb(error.__traceback__))[-1]
    return f"{type(error).__name__}-{Path(last.filename).stem.strip('<>').replace(' ', '_')}-{last.lineno}"


def _note(folder: Path, data: bytes, error: BaseException) -> None:
    file = folder / _kind(error)
    if not file.exists() or file.stat().st_size > len(data):
        file.write_bytes(data)
        text = "".join(traceback.format_exception(error))
        file.with_name(file.name + ".txt").write_text(f"{text}\n{data.hex()}\n")


def _fuzz(harness: ModuleType, found: Path | None, flags: Sequence[str], seconds: float = math.inf) -> None:
    """Fuzzes a harness as libFuzzer's ``flags`` say, for so much processor time; it ends the process.

    ``found``: violations are noted there, and it goes on. Without it the first one ends it."""
    import atheris

    end = used() + seconds

    def one(data: bytes) -> None:
        if used() > end:
            # libFuzzer knows the clock only. At this signal it says what it has done, and ends.
            os.kill(os.getpid(), signal.SIGUSR1)
        try:
            harness.check(data)
        except Exception as error:
            if found is None:
                raise
            _note(found, data, error)

    atheris.Setup([sys.argv[0], *flags], one, custom_mutator=_mutator(harness))
    atheris.Fuzz()


def target(name: str, flags: Sequence[str] = ()) -> None:
    """A fuzz target of one harness: ``flags`` are those of libFuzzer."""
    from kwire.kernels.engine import PYTHON, using

    with using(PYTHON):
        _fuzz(imported([name], "python")[name], None, flags)


def write_seeds(name: str, folder: Path, most: int | None = None, seed: int = 0) -> None:
    """Writes seeds of a harness, ``most`` of them drawn, and its dictionary (``words``)."""
    harness = import_module(f"fuzz.{name}")
    seeds = folder / "seeds"
    seeds.mkdir(parents=True, exist_ok=True)
    for one in seeds.iterdir():
        one.unlink()
    every = list(dict.fromkeys(harness.seeds()))
    if most is not None and len(every) > most:
        every = random.Random(seed).sample(every, most)
    for data in every:
        (seeds / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)
    words = dict.fromkeys(getattr(harness, "words", tuple)())
    lines = ('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"' for word in words if word)
    (folder / "words").write_text("\n".join(lines) + "\n")


# --- All of them ------------------------------------------------------------------------------------------------------


def run(names: Sequence[str], seconds: float, *, kernels: str, seed: int, turn: float | None, folder: Path) -> bool:
    """Fuzzes the harnesses one after the other, each for its share of the processor time; with ``turn``, for so many
    seconds each, again and again, until the seconds are over on the clock. Returns whether something was found."""
    end = time.monotonic() + seconds
    ways = itertools.cycle(KERNELS if kernels == BOTH else (kernels,))
    failed = False
    while True:
        way, left = next(ways), end - time.monotonic()
        share = min(turn or left / len(names), left / len(names))
        if turn is not None and share < 1:
            return failed
        command = [sys.executable, "-m", "fuzz._guided", *names, "--kernels", way, "--folder", str(folder)]
        command += ["--seconds", str(max(1, round(share))), "--seed", str(seed)]
        environment = dict(os.environ)
        if way == "python":
            environment["NUMBA_DISABLE_JIT"] = "1"
        failed |= subprocess.run(command, cwd=HERE.parent, env=environment).returncode != 0
        seed += 1
        if turn is None:
            return failed


def main() -> int:
    """One turn of each harness."""
    parser = argparse.ArgumentParser(prog="python -m fuzz._guided", description=main.__doc__)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--kernels", choices=KERNELS, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seconds", type=int, required=True, help="processor time of each harness")
    parser.add_argument("--seed", type=int, required=True)
    args = parser.parse_args()
    most = None if args.seconds >= LONG else SEEDS_A_SECOND * args.seconds

    def seeds() -> None:
        for name in args.names:
            write_seeds(name, args.folder / name, most, args.seed)

    # In a process of its own: what it imports would not be counted.
    if _forked(seeds, None):
        return 1
    from kwire.kernels.engine import MACHINE, PYTHON, using

    failed = False
    with using(PYTHON if args.kernels == "python" else MACHINE):
        found = imported(args.names, args.kernels, long=args.seconds >= LONG)
        for name, harness in found.items():
            failed |= _turn(name, harness, args)
    return int(failed)


def _forked(what: Callable[[], None], log: Path | None) -> int:
    """The exit code of a fork that does something; what it prints goes into ``log``."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    try:
        if log is not None:
            with log.open("wb") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
        what()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _turn(name: str, harness: ModuleType, args: argparse.Namespace) -> bool:
    place = args.folder / name
    corpus, found, log = place / "corpus", place / "found", place / "log"
    for one in (corpus, found):
        one.mkdir(parents=True, exist_ok=True)
    known = _found(found)
    longest = max((one.stat().st_size for one in (place / "seeds").iterdir()), default=0)
    flags = [
        f"-max_total_time={args.seconds * SLOWER}",
        f"-max_len={max(4096, longest + 64)}",
        f"-timeout={SECONDS_EACH}",
        f"-rss_limit_mb={MEGABYTES}",
        f"-seed={args.seed % (1 << 31) + 1}",
        f"-dict={place / 'words'}",
        f"-artifact_prefix={found}{os.sep}",
        "-print_final_stats=1",
        "-reload=0",
        str(corpus),
        str(place / "seeds"),
    ]
    began = time.monotonic()
    code = _forked(lambda: _fuzz(harness, found, flags, args.seconds), log)
    said = log.read_text(errors="replace")
    done = re.findall(r"number_of_executed_units:\s+(\d+)", said) or re.findall(r"^#(\d+)\s", said, re.MULTILINE)
    reached = re.findall(r"\bcov: (\d+)", said)
    count = int(done[-1]) if done else 0
    told = _told(args.folder)
    one = told.setdefault(name, Told())
    one.executions += count
    one.by_kernels[args.kernels] = one.by_kernels.get(args.kernels, 0) + count
    one.seconds = round(one.seconds + time.monotonic() - began, 1)
    one.coverage = max(one.coverage, int(reached[-1]) if reached else 0)
    one.corpus = len(list(corpus.iterdir()))
    new = sorted(_found(found) - known)
    one.found = sorted({*one.found, *new})
    kept = {each: asdict(of) for each, of in sorted(told.items())}
    (args.folder / "guided.json").write_text(json.dumps(kept, indent=1) + "\n")
    reach = f"{one.coverage} branches reached, {one.corpus} inputs kept"
    ended = f", exit code {code}" if code else ""
    print(f"{name}, kernels as {args.kernels}: {count} executions, {reach}{ended}", flush=True)
    for each in new:
        file = found / each
        print(f"  broken: {file}\n  repeat it with: python -m fuzz --only {name} --input {file}", flush=True)
    if code and not new:
        print("\n".join(said.splitlines()[-30:]), file=sys.stderr)
    return bool(code or new)


def _told(folder: Path) -> dict[str, Told]:
    file = folder / "guided.json"
    return {name: Told(**one) for name, one in json.loads(file.read_text()).items()} if file.exists() else {}


def _found(folder: Path) -> set[str]:
    """What breaks an invariant; a unit that was slow does not."""
    every = folder.iterdir() if folder.exists() else ()
    return {one.name for one in every if one.suffix != ".txt" and not one.name.startswith("slow-unit-")}


if __name__ == "__main__":
    sys.exit(main())
