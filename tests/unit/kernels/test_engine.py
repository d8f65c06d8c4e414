"""Which way kernels run: as Python for small input and before anything is compiled, as machine code from then on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from packets import Connection, pcap, request

from kwire.capture import tracker
from kwire.capture.tracker import Tracker
from kwire.kernels import engine
from kwire.kernels.columns import spread_texts
from kwire.kernels.engine import MACHINE, PYTHON, Engine, choose, using

SIZES = """
import sys
from kwire.kernels import cache, engine, helpers
helpers.cores = lambda: 1
if sys.argv[1] == "filled":
    (cache.folder() / "one.nbi").write_bytes(b"")
    cache.write(cache.COMPLETE, b"")
for size in sys.argv[2:]:
    print(engine.choose(int(size)).name)
print("numba" in sys.modules)
"""


def chosen(tmp_path: Path, state: str, *sizes: int, made: str = SIZES, **environment: str) -> tuple[list[str], str]:
    """The names of the engines for input of these sizes, one after the other in a new process, and what it said."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    done = subprocess.run(
        [sys.executable, "-c", made, state, *map(str, sizes)],
        env={**inherited, "NUMBA_CACHE_DIR": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    *names, numba = done.stdout.splitlines()
    assert numba == "False", "choosing alone loads nothing"
    return names, done.stderr


def test_small_input_is_read_by_python_until_machine_code_would_have_been_worth_it(tmp_path: Path) -> None:
    small = engine.SMALL_WARM // 2
    names, said = chosen(tmp_path, "filled", small, small, 1)
    assert names == [PYTHON.name, PYTHON.name, MACHINE.name]
    assert said == ""


def test_more_is_read_by_python_where_nothing_is_compiled_yet(tmp_path: Path) -> None:
    names, said = chosen(tmp_path, "empty", engine.SMALL_COLD)
    assert names == [PYTHON.name]
    assert said == ""
    assert chosen(tmp_path, "filled", engine.SMALL_COLD)[0] == [MACHINE.name]


def test_compiling_is_announced_once(tmp_path: Path) -> None:
    large = engine.SMALL_COLD + 1
    names, said = chosen(tmp_path, "empty", large, large)
    assert names == [MACHINE.name, MACHINE.name]
    assert said.count("compiling its kernels") == 1
    assert chosen(tmp_path, "empty", large)[1] == "", "the next command goes on with it, and says nothing"
    assert chosen(tmp_path, "filled", large)[1] == ""


def test_numbas_own_switch_makes_everything_python(tmp_path: Path) -> None:
    names, said = chosen(tmp_path, "empty", 1 << 40, NUMBA_DISABLE_JIT="1")
    assert names == [PYTHON.name]
    assert said == ""


@pytest.mark.parametrize("wanted", [PYTHON, MACHINE], ids=["python", "machine"])
def test_an_engine_can_be_asked_for(wanted: Engine) -> None:
    with using(wanted):
        assert choose(0) is choose(1 << 40) is wanted


@pytest.mark.parametrize("number", [-1, -3, 2, 1 << 40, -(1 << 63)])
def test_an_index_outside_of_an_array_is_an_error_in_machine_code_a_negative_one_too(number: int) -> None:
    ends, texts = np.array([0, 1, 2], np.int32), np.zeros(64 + 2, np.uint8)
    out = np.zeros(64 + 2, np.uint8)
    with pytest.raises(IndexError):
        MACHINE(spread_texts)(np.array([number]), ends, texts, np.zeros(2, np.int32), out)


def test_what_others_compile_counts_from_the_end_all_the_same() -> None:
    numba = pytest.importorskip("numba")
    with pytest.raises(IndexError):
        MACHINE(spread_texts)(
            np.array([-1]), *(np.zeros(66, kind) for kind in (np.int32, np.uint8, np.int32, np.uint8))
        )
    last = numba.njit(boundscheck=True)(lambda values, at: values[at])
    assert last(np.arange(5), -1) == 4
    with pytest.raises(IndexError):
        last(np.arange(5), -6)


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize(("count", "mss", "after"), [(500, 1 << 15, None), (5000, 1 << 15, 4096), (2000, 18, 0)])
def test_work_decides_and_not_bytes(count: int, mss: int, after: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small packets and small frames are worth machine code, in far fewer bytes than large ones are. ``after``: at
    most so many frames are read by Python."""
    one = Connection(mss=mss).open().send(*(request(18, 0, number, client=None) for number in range(count)))
    data = pcap(one.packets)
    assert len(data) < engine.SMALL_WARM
    done = {"size": 0, "packets": 0, "frames": 0}
    asked: list[tuple[int, bool]] = []

    def counted(size: int, **work: int) -> Engine:
        for name, value in {"size": size, **work}.items():
            done[name] += value
        total = done["size"] + engine.OF_A_PACKET * done["packets"] + engine.OF_A_FRAME * done["frames"]
        asked.append((done["frames"], total > engine.SMALL_WARM))
        return PYTHON

    monkeypatch.setattr(tracker, "choose", counted)
    assert len(list(Tracker().feed(data, final=True))) == count
    assert (done["packets"], done["frames"]) == (len(one.packets), count)
    first = next((frames for frames, machine in asked if machine), None)
    assert first is None if after is None else first is not None and first <= after


def test_bytes_that_may_be_sizes_and_counts_count_more(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def counted(size: int, **work: int) -> Engine:
        sizes.append(size)
        return PYTHON

    monkeypatch.setattr(tracker, "choose", counted)
    for payload, more in ((b"\0\0\1\0" * 2000, True), (b"abcd" * 2000, False)):
        sizes.clear()
        one = Connection(mss=1 << 14).open().send(request(18, 0, 1))
        one._next[0] += 1000
        data = pcap(one.send_raw(payload).packets)
        list(Tracker().feed(data, final=True))
        assert (sum(sizes) > 3 * len(data)) is more


def test_packets_and_frames_count_as_many_bytes(tmp_path: Path) -> None:
    few = engine.SMALL_WARM // engine.OF_A_PACKET // 2
    made = SIZES.replace("engine.choose(int(size))", f"engine.choose(int(size), packets={few}, frames={few})")
    assert chosen(tmp_path, "filled", 0, 0, made=made)[0] == [PYTHON.name, MACHINE.name]
