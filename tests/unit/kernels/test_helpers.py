"""Processes that compile beside the one that reads: each kernel once, the same rows, and no harm where they fail."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kwire import capture
from kwire.cli import compile as ahead
from kwire.kernels import cache, compiling, engine, fence, helpers
from kwire.kernels.engine import MACHINE, MIXED, PYTHON, using

GOLDEN = Path(__file__).parents[2] / "golden"
CAPTURE = GOLDEN / "kafka-3.9-zk-kafka-python/first-light.pcap"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of machine code, in a process that has not read anything."""
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)
    monkeypatch.setattr(cache, "_told", [])
    monkeypatch.setattr(helpers, "_state", helpers._State())
    monkeypatch.setattr(helpers, "_cores", lambda: 2)
    return tmp_path


def ended() -> None:
    """Waits until there are no helpers any more."""
    for one in threading.enumerate():
        if one.name == "kwire-helpers":
            one.join(60)
    assert not helpers.at_work()


# --- Claims ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(cache.fcntl is None, reason="about POSIX locks")
def test_one_at_a_time_has_a_claim(folder: Path) -> None:
    with cache.claimed("one") as first, cache.claimed("one", 0) as second, cache.claimed("two", 0) as other:
        assert (first, second, other) == (True, False, True)
        assert (folder / ".one.claim").stat().st_mode & 0o077 == 0
    with cache.claimed("one", 0) as again:
        assert again
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(cache.fcntl is None, reason="about POSIX locks")
def test_a_claim_ends_with_its_process(folder: Path) -> None:
    code = (
        f"import fcntl, os; fcntl.flock(os.open({str(folder / '.one.claim')!r}, os.O_RDWR | os.O_CREAT), 2); print(1)"
    )
    with subprocess.Popen([sys.executable, "-c", code + "; input()"], stdin=-1, stdout=-1) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"1\n"
        with cache.claimed("one", 0) as ours:
            assert not ours
        other.kill()
        other.wait()
        with cache.claimed("one", 0) as ours:
            assert ours


def test_nothing_is_claimed_where_nothing_can_be_written_and_no_link_is_followed(folder: Path) -> None:
    (folder / ".one.claim").symlink_to(folder / "elsewhere")
    with cache.claimed("one", 0) as ours:
        assert not ours
    assert not (folder / "elsewhere").exists()
    with cache.claimed("none/one") as ours:
        assert not ours


def test_what_another_process_made_meanwhile_is_loaded(folder: Path) -> None:
    from numba import njit

    def second(values):  # type: ignore[no-untyped-def]
        return values[1]

    @contextlib.contextmanager
    def claimed() -> Iterator[None]:
        assert fence.entry(njit(boundscheck=True)(second))(np.array([3, 7])) == 7
        yield

    made = fence.entry(njit(boundscheck=True)(second), claimed=claimed)
    assert made(np.array([3, 7])) == 7
    assert sum(made.stats.cache_hits.values()) == 1
    assert not made.stats.cache_misses


# --- Each kernel is compiled once -----------------------------------------------------------------------------------


def test_a_kernel_has_one_set_of_types_whatever_is_read_and_kwire_compile_knows_it() -> None:
    """So the second read compiles nothing: neither another table, nor another size, nor another source."""
    data = CAPTURE.read_bytes()
    # Other tests of this process may have called kernels with arrays of their own.
    before = {compiling.name_of(kernel): set(twin.overloads) for kernel, twin in compiling._entries.items()}
    with using(MACHINE):
        for table in ("messages", "frames", "records", "connections", "calls", "partitions"):
            for source in (lambda: CAPTURE, lambda: io.BytesIO(data), lambda: pa.BufferReader(data)):
                for window in (None, 4096):
                    assert sum(batch.num_rows for batch in capture.read(source(), table, window=window))
    known = {name: fence.types_of(args) for name, (_, args) in ahead.kernels().items()}
    used = {compiling.name_of(kernel): set(twin.overloads) for kernel, twin in compiling._entries.items()}
    assert {"framing.frames_and_pairs", "records.read_records", "bodies._write"} <= set(used)
    for name in used.keys() & known:
        assert used[name] - before.get(name, set()) <= {known[name]}, name
        assert known[name] in used[name] or not used[name], name


def test_the_kernels_that_are_compiled_first_are_kernels() -> None:
    assert list(ahead.kernels())[: len(ahead.FIRST)] == list(ahead.FIRST)


def test_recording_runs_no_machine_code_and_ends() -> None:
    with engine.recording() as calls:
        assert engine.choose(0) is MACHINE
        ahead.PARTS["lines"]()
    assert [compiling.name_of(one) for one in calls] == ["lines.write_lines"]
    assert engine._state.recorded is None


# --- Reading on meanwhile -------------------------------------------------------------------------------------------


def test_python_reads_until_the_helpers_have_ended(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:  # type: ignore[no-untyped-def]
    go_on = threading.Event()

    def run(number: int) -> None:
        assert number == 1, "a helper for each core but one"
        go_on.wait(60)
        cache.write(cache.COMPLETE, b"")

    monkeypatch.setattr(helpers, "_run", run)
    helpers.begin()
    helpers.begin()
    assert helpers.at_work()
    assert engine._helped() is MIXED
    go_on.set()
    ended()
    assert engine._helped() is MACHINE
    said = capsys.readouterr().err
    assert said.count("compiling its kernels in the background, once on this machine") == 1
    assert said.count("its kernels are compiled, after 0 s") == 1


def test_one_core_has_no_helpers_and_complete_machine_code_needs_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helpers, "_run", lambda number: pytest.fail("a helper was started"))
    monkeypatch.setattr(helpers, "_cores", lambda: 1)
    helpers.begin()
    assert not helpers.at_work()
    monkeypatch.setattr(helpers, "_state", helpers._State())
    monkeypatch.setattr(helpers, "_cores", lambda: 8)
    cache.write(cache.COMPLETE, b"")
    helpers.begin()
    assert not helpers.at_work()


def test_a_process_that_was_forked_has_no_helpers(folder: Path) -> None:
    helpers._state.at_work, helpers._state.process = True, os.getpid() + 1
    assert not helpers.at_work()


@pytest.mark.parametrize("program", ["raise SystemExit(3)", "import os; os.kill(os.getpid(), 9)", None])
def test_a_helper_that_fails_is_said_and_leaves_nothing(
    program: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:  # type: ignore[no-untyped-def]
    started, start = [], helpers._started

    def starts() -> subprocess.Popen[bytes]:
        if program is None:
            raise OSError(11, "no more processes")
        started.append(start())
        return started[-1]

    monkeypatch.setattr(helpers, "_started", starts)
    monkeypatch.setattr(helpers, "PROGRAM", program)
    helpers.begin()
    ended()
    said = capsys.readouterr().err
    assert ("could not be started: no more processes" if program is None else "a process that compiles ended") in said
    assert engine._helped() is MACHINE
    assert len(started) > 0 or program is None
    assert all(one.returncode is not None for one in started)


def test_a_helper_compiles_for_its_parent_and_its_folder_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compile_for", lambda *args, **options: pytest.fail("it compiles"))
    ahead.help_out(os.getppid(), str(folder / "elsewhere"))
    ahead.help_out(os.getppid() + 1, str(folder))
    assert not cache.complete()


def test_a_helper_leaves_what_others_compile_and_notes_that_all_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def compile_for(kernel, args, *, wait):  # type: ignore[no-untyped-def]
        assert not wait
        asked.append(compiling.name_of(kernel))
        (folder / f"{asked[-1]}-1.nbi").write_bytes(b"")

    monkeypatch.setattr(compiling, "compile_for", compile_for)
    (folder / "streams._place-1.nbi").write_bytes(b"")
    ahead.help_out(os.getppid(), str(folder))
    assert sorted([*asked, "streams._place"]) == sorted(ahead.kernels())
    assert cache.complete()


def test_a_kernel_that_another_process_compiles_is_left_or_waited_for(folder: Path) -> None:
    kernel, args = ahead.kernels()["names.fill_lookup"]
    compiling._entries.pop(kernel, None)
    with cache.claimed("names.fill_lookup"):
        assert not compiling.compile_for(kernel, args, wait=False)
        assert not list(folder.glob("*.nbi"))
    assert compiling.compile_for(kernel, args, wait=True)
    assert helpers.made(kernel)


@pytest.mark.parametrize("table", ["messages", "records", "connections"])
def test_rows_are_the_same_while_machine_code_is_being_made(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count()

    def rows() -> pa.Table:
        return pa.Table.from_batches(capture.read(CAPTURE, table, window=20_000))

    with using(PYTHON):
        wanted = rows()
    monkeypatch.setattr(helpers, "made", lambda kernel: next(calls) % 3 == 0)
    with using(MIXED):
        assert rows().equals(wanted)
    assert next(calls) > 10
