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
    monkeypatch.setattr(helpers, "cores", lambda: 2)
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
    first = [*helpers.FIRST, *helpers.SOON, *ahead.LATER]
    assert list(ahead.kernels())[: len(first)] == first


@pytest.mark.parametrize("cores", [1, 2, 3, 64])
def test_each_kernel_is_compiled_by_one_process_whatever_it_has_in_common_with_others(cores: int) -> None:
    groups = ahead.groups(cores)
    assert sorted(one for some in groups for one in some) == sorted(ahead.kernels())
    # Those that take longest begin at once.
    assert groups[0][0] == helpers.FIRST[0]
    assert (len(groups[0]) > 1) == (cores == 2)


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
    assert said.count("compiling its kernels in the background, once for this environment") == 1
    assert said.count("its kernels are compiled, after 0 s") == 1


def test_one_core_has_no_helpers_and_complete_machine_code_needs_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helpers, "_run", lambda number: pytest.fail("a helper was started"))
    monkeypatch.setattr(helpers, "cores", lambda: 1)
    helpers.begin()
    assert not helpers.at_work()
    monkeypatch.setattr(helpers, "_state", helpers._State())
    monkeypatch.setattr(helpers, "cores", lambda: 8)
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
    for name in ("compile_for", "compile_quickly"):
        monkeypatch.setattr(compiling, name, lambda *args, **options: pytest.fail("it compiles"))
    ahead.help_out(os.getppid(), str(folder / "elsewhere"))
    ahead.help_out(os.getppid() + 1, str(folder))
    assert not cache.complete()


def test_a_helper_leaves_what_others_compile_and_notes_that_all_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def made(name: str) -> None:
        asked.append(name)
        (folder / f"{name}-1.nbi").write_bytes(b"")

    def compile_for(kernel, args, *, wait):  # type: ignore[no-untyped-def]
        assert not wait
        made(compiling.name_of(kernel))

    def compile_quickly(kernel, args):  # type: ignore[no-untyped-def]
        name = compiling.name_of(kernel)
        if name == "tracking._take":
            return None
        made(cache.QUICK + name)
        return lambda: made(name)

    monkeypatch.setattr(compiling, "compile_for", compile_for)
    monkeypatch.setattr(compiling, "compile_quickly", compile_quickly)
    (folder / "streams._place-1.nbi").write_bytes(b"")
    ahead.help_out(os.getppid(), str(folder))
    first = [one for one in (*helpers.FIRST, *helpers.SOON) if one not in ("streams._place", "tracking._take")]
    quick = [cache.QUICK + one for one in first]
    assert asked[: 2 * len(first)] == quick + first, "what a reader waits for is there before anything is optimised"
    assert sorted({*asked, "streams._place"} - set(quick)) == sorted(ahead.kernels())
    assert cache.complete()
    assert not list(folder.glob(f"{cache.QUICK}*")), "nobody needs these any more"


def test_a_kernel_that_another_process_compiles_is_left_or_waited_for(folder: Path) -> None:
    kernel, args = ahead.kernels()["names.fill_lookup"]
    compiling._entries.pop(kernel, None)
    with cache.claimed("names.fill_lookup"):
        assert not compiling.compile_for(kernel, args, wait=False)
        assert not list(folder.glob("*.nbi"))
    assert compiling.compile_for(kernel, args, wait=True)
    assert helpers.made(kernel)


@pytest.mark.wide(keep=1)
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


# --- Quick machine code ---------------------------------------------------------------------------------------------


def looked_up(*kernels) -> list[list[int]]:  # type: ignore[no-untyped-def]
    """What a table of three names is filled with by each of these in place of ``names.fill_lookup``."""
    from kwire.kernels.names import NameTable

    names, data = NameTable(), np.frombuffer(b"abcdefghi" + bytes(64), np.uint8).copy()
    places, lengths = np.array([0, 3, 6]), np.array([3, 3, 3])
    assert names.numbers(data, places, lengths, PYTHON).tolist() == [0, 1, 2]
    found = []
    for kernel in kernels:
        lookup = np.full_like(names.lookup, -1)
        kernel(names.names, names.pool, lookup, names.used[0])
        assert set(lookup.tolist()) == {-1, 0, 1, 2}
        found.append(lookup.tolist())
    return found


def test_quick_machine_code_does_the_same_until_the_optimised_is_there(folder: Path) -> None:
    kernel, args = ahead.kernels()["names.fill_lookup"]
    compiling._entries.pop(kernel, None)
    compiling._quick.pop(kernel, None)
    finish = compiling.compile_quickly(kernel, args)
    assert finish is not None
    assert cache.kernels() == {"quick.names.fill_lookup"}
    assert helpers.made_quickly(kernel)
    assert not helpers.made(kernel)
    # Others leave it to this process, which has not done all.
    assert compiling.compile_quickly(kernel, args) is None
    assert not compiling.compile_for(kernel, args, wait=False)
    quick = compiling.quick(kernel)
    assert quick is not None
    assert MIXED(kernel) is quick
    assert (PYTHON.compiles(kernel), MIXED.compiles(kernel), MACHINE.compiles(kernel)) == (False, True, True)
    wanted, found = looked_up(PYTHON(kernel), quick)
    assert found == wanted

    finish()
    assert cache.kernels() == {"quick.names.fill_lookup", "names.fill_lookup"}
    assert not compiling.compile_for(kernel, args, wait=True), "it is loaded"
    twin = compiling.compiled(kernel)
    wanted, *found = looked_up(PYTHON(kernel), quick, twin)
    assert found == [wanted, wanted]
    helpers._state.looked = 0.0
    assert MIXED(kernel) is MACHINE(kernel)
    # Each runs its own code, though one process has both.
    places = [
        one.library.get_pointer_to_function(one.fndesc.llvm_func_name)
        for made in (quick, twin)
        for one in made.overloads.values()  # type: ignore[attr-defined]
    ]
    assert len(set(places)) == 2
    assert 0 not in places
    compiling._quick.pop(kernel)
    compiling._entries.pop(kernel)


@pytest.mark.parametrize("damage", ["none", "index", "data"])
def test_python_runs_where_quick_machine_code_is_not_there_any_more(damage: str, folder: Path) -> None:
    kernel, args = ahead.kernels()["names.fill_lookup"]
    compiling._quick.pop(kernel, None)
    if damage != "none":
        assert compiling.compile_quickly(kernel, args) is not None
        for one in folder.glob("*.nbi" if damage == "index" else "*.nbc"):
            one.write_bytes(b"not a pickle")
    helpers._state.kept, helpers._state.looked = {"quick.names.fill_lookup"}, float("inf")
    assert MIXED(kernel) is PYTHON(kernel)
    assert not MIXED.compiles(kernel)


def test_without_the_private_parts_of_numba_there_is_no_quick_machine_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fence._stages, "open", False)
    kernel, args = ahead.kernels()["names.fill_lookup"]
    compiling._entries.pop(kernel, None)
    compiling._quick.pop(kernel, None)
    assert compiling.compile_quickly(kernel, args) is None
    assert compiling.quick(kernel) is None
    assert list(folder.glob("*.nb?")) == []
    assert compiling.compile_for(kernel, args, wait=False), "it is not claimed"
    compiling._entries.pop(kernel)


def test_who_waits_has_another_helper_and_goes_on_when_there_is_machine_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    program = "import sys; sys.stdin.read()"

    def starts() -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE))
        if len(started) == 2:
            for number, name in enumerate(helpers.FIRST):
                (folder / f"{cache.QUICK * (number % 2)}{name}-1.nbi").write_bytes(b"")
        return started[-1]

    monkeypatch.setattr(helpers, "_started", starts)
    monkeypatch.setattr(helpers, "PATIENCE", 60.0)
    helpers.begin()
    helpers.wait()
    assert helpers.at_work(), "it waits for the machine code, not for the end of helpers"
    assert len(started) == 2
    monkeypatch.setattr(helpers.time, "sleep", lambda seconds: pytest.fail("it waits twice"))
    helpers.wait()
    monkeypatch.undo()
    for one in started:
        assert one.stdin is not None
        one.stdin.close()
    for thread in threading.enumerate():
        if thread.name == "kwire-helpers":
            thread.join(60)
    assert [one.returncode for one in started] == [0, 0]


def test_nobody_waits_for_helpers_that_have_ended_or_for_ever(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helpers.wait()
    helpers._state.waited.clear()
    helpers._state.at_work, helpers._state.process = True, os.getpid()
    monkeypatch.setattr(helpers, "PATIENCE", 0.0)
    helpers.wait()
    assert helpers.at_work()


@pytest.mark.parametrize("packets", [0, engine.MANY, engine.MANY + 1])
def test_only_a_window_of_many_packets_waits(packets: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[bool] = []
    monkeypatch.setattr(helpers, "wait", lambda: waited.append(True))
    monkeypatch.setattr(engine, "_DISABLED", False)
    helpers._state.at_work, helpers._state.process = True, os.getpid()
    assert engine.choose(10_000_000, packets=packets) is MIXED
    assert len(waited) == (packets > engine.MANY)


@pytest.mark.parametrize("sets", [engine.MANY_SETS, engine.MANY_SETS + 1])
def test_only_a_call_for_many_record_sets_waits(sets: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kwire.records import Record, encode
    from kwire.records.columnar import decode_sets

    waited: list[tuple[str, ...]] = []
    monkeypatch.setattr(helpers, "wait", waited.append)
    monkeypatch.setattr(engine, "_DISABLED", False)
    helpers._state.at_work, helpers._state.process = True, os.getpid()
    one = encode([Record(b"k", b"v")])
    starts = np.arange(sets) * len(one)
    found = decode_sets(np.frombuffer(one * sets, np.uint8), starts, np.full(sets, len(one)))
    assert found.batch.num_rows == sets
    assert waited == [helpers.OF_RECORDS] * (sets > engine.MANY_SETS)


def test_who_waits_for_records_waited_for_packets_before(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(helpers, "at_work", lambda: True)

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        for name in helpers.OF_RECORDS:
            (folder / f"{cache.QUICK}{name}-1.nbi").write_bytes(b"")

    monkeypatch.setattr(helpers.time, "sleep", sleep)
    for name in helpers.FIRST:
        (folder / f"{name}-1.nbi").write_bytes(b"")
    helpers.wait()
    assert slept == []
    helpers.wait(helpers.OF_RECORDS)
    helpers.wait(helpers.OF_RECORDS)
    assert len(slept) == 1
