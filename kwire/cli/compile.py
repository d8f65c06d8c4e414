"""``kwire compile``: makes the machine code of all kernels ahead of time, for container images and clusters.

What a kernel is called with does not depend on the input. So each part of kwire that has kernels reads nothing, once,
in Python, and the types of all arguments are noted. Then kernels are compiled for them side by side, in a process for
each core, those first that take longest.

Python's byte code of kwire's modules is made too. Not every installer makes it, and a process without takes 0.2 s more.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from kwire.errors import needed

__all__ = ["register"]


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "compile",
        help="compile what reads captures and columns, ahead of its first use",
        description="Compiles the loops that read captures, records and log segments to machine code for this kind of "
        "processor, once. Without it that happens when the first large capture is read. Run it while a container "
        "image is built, so that its containers need not.",
        epilog="examples:\n"
        "  kwire compile\n"
        "  NUMBA_CACHE_DIR=/opt/kwire-kernels kwire compile     where containers find it\n",
    )
    parser.set_defaults(run=run)


def _captures() -> None:
    import numpy as np

    from kwire.capture.tracker import Tracker
    from kwire.kernels.columns import Seen
    from kwire.kernels.engine import MACHINE
    from kwire.kernels.judging import left_over
    from kwire.kernels.layouts import CONNECTION, FRAME, ROOM, WAITING
    from kwire.kernels.pairing import give_up, move_lookup
    from kwire.kernels.programs import MAX_DEPTH, registers_of
    from kwire.kernels.shapes import memory_for
    from kwire.protocol.api_table import api_table
    from kwire.tables.columns import Words, picked

    # A header, and two packets of raw IP, of a connection of unknown kind: the first fragment of one without a byte of
    # data, and one with a byte.
    tracker = Tracker()
    tracker.feed(bytes.fromhex("d4c3b2a1 0200 0400 00000000 00000000 00000400 65000000"))
    packet = bytes.fromhex("45000014 00002000 40060000 00000000 00000000")
    tracker.feed(bytes.fromhex("00000000 00000000 14000000 14000000") + packet)
    packet = bytes.fromhex(
        "45000029 00000000 40060000 0a000001 0a000002 9c402384 00000001 00000001 50100000 00000000 00"
    )
    frames = tracker.feed(bytes.fromhex("00000000 00000000 29000000 29000000") + packet, final=True)
    # What makes columns of them.
    none = np.zeros(0, np.int64)
    frames.columns(0, none, 0, np.zeros(1, np.uint8), Seen(np.zeros(0, np.int32), np.zeros(0, np.int32)))
    picked(Words(["", "a"]), np.zeros(1, np.int32)).plain()
    Tracker().restore(tracker.save())
    # What happens where many requests wait.
    waiting, places, room = np.zeros(1, WAITING), np.full(2, -1, np.int64), np.zeros(1, ROOM)
    MACHINE(move_lookup)(waiting, places, room[0], places.copy())
    MACHINE(give_up)(np.zeros(1, CONNECTION), 0, waiting, places, room[0], 0)
    # Whether bytes follow bodies.
    registers, left, known = registers_of(1), np.empty(MAX_DEPTH, np.int64), api_table()
    MACHINE(left_over)(
        np.zeros(64, np.uint8),
        np.zeros(0, FRAME),
        0,
        known,
        registers,
        left,
        np.zeros((0, 3), np.int64),
        0,
        np.zeros(0, np.int64),
        memory_for(known.layout_starts),
    )
    # pcapng: a section header.
    Tracker().feed(bytes.fromhex("0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000"), final=True)


def _records() -> None:
    import numpy as np

    from kwire import log
    from kwire.kernels.engine import MACHINE
    from kwire.kernels.gathering import REGISTERS, gather, of_transactions, rows_of, sort_out, weigh
    from kwire.kernels.layouts import CONNECTION, FRAME
    from kwire.kernels.names import NameTable, fill_lookup
    from kwire.kernels.ordering import with_body_of
    from kwire.kernels.partitions import count_records, deliveries, int_lists
    from kwire.kernels.programs import JOB, ProgramSet, jobs_of, locate
    from kwire.kernels.records import uniform
    from kwire.log.regions import headers
    from kwire.records.columnar import decode_batches, decode_sets

    nothing, none = np.zeros(64, np.uint8), np.zeros(0, np.int64)
    decode_sets(nothing, none, none)
    decode_batches(nothing, none, none)
    names = NameTable()
    names.numbers(nothing, none, none, MACHINE)
    names.copy(nothing, np.zeros((1, 2), np.int64), none, MACHINE)
    MACHINE(fill_lookup)(names.names, names.pool, names.lookup, names.used[0])
    # A job that is at its end at once.
    locate(nothing, np.zeros(1, JOB), np.zeros(1, ProgramSet({}, 1).code.dtype), 1, MACHINE)
    MACHINE(jobs_of)(np.zeros(0, FRAME), none, np.zeros((1, 1), np.int64), np.zeros(0, JOB), none.copy())
    MACHINE(count_records)(nothing, np.zeros((0, 4), np.int64), none, none.copy(), none.copy())
    MACHINE(deliveries)(nothing, np.zeros((0, 2), np.int64), none, none.copy(), none.copy())
    MACHINE(int_lists)(nothing, none, none, none, none.copy(), np.zeros(0, np.int32))
    frames, found = np.zeros(0, FRAME), np.zeros((0, 1 + 2 * REGISTERS), np.int64)
    marks = np.zeros(1, np.uint8)
    MACHINE(gather)(frames, nothing, marks.view(bool)[:0], marks.view(bool)[:0], 0, frames, nothing)
    MACHINE(rows_of)(frames, marks, np.zeros((0, 0), np.int64), none.copy())
    MACHINE(weigh)(frames, marks.view(bool)[:0], marks.view(bool)[:0])
    MACHINE(sort_out)(frames, none, marks, np.zeros(0, CONNECTION), none.copy(), none.copy())
    MACHINE(of_transactions)(nothing, found, none, frames, np.zeros(0, CONNECTION), marks, found.copy(), none.copy())
    MACHINE(with_body_of)(np.zeros(0, FRAME), np.zeros(1, np.uint8), np.zeros(0, np.uint8))
    MACHINE(uniform)(np.zeros((1, 1), np.int64), np.zeros(1, np.uint8))
    headers(nothing)
    for _ in log.read(io.BytesIO(bytes(64)), name="0/00000000000000000000.log"):
        pass


def _bodies() -> None:
    import numpy as np

    from kwire.kernels.bodies import CODE, TEXT_JOB, Pool, Scratch, write
    from kwire.kernels.engine import MACHINE
    from kwire.protocol.bodies import error_texts

    pool, nothing = Pool(), np.zeros(64, np.uint8)
    names = error_texts(pool)
    write(nothing, np.zeros(0, TEXT_JOB), 0, np.zeros(1, CODE), 0, pool.data, names, Scratch(), 0, 0, MACHINE)


def _payloads() -> None:
    import pyarrow as pa

    from kwire.payloads import decode_requests

    decode_requests(pa.array([b""]), body=False)


def _avro() -> None:
    import pyarrow as pa

    from kwire.values.avro import decode, parse

    decode(pa.array([b""]), [parse('"null"')])


def _lines() -> None:
    import pyarrow as pa

    from kwire.cli.lines import json_lines

    for _ in json_lines(pa.record_batch({"text": ["text"]})):
        pass


PARTS: Final[dict[str, Callable[[], None]]] = {
    "captures": _captures,
    "records": _records,
    "bodies": _bodies,
    "lines": _lines,
    "payloads": _payloads,
    "avro": _avro,
}
"""By what they read. Each takes a processor for some ten seconds."""


LATER: Final = ("lines.write_lines", "packets._fill_pcapng")
"""Kernels that are compiled after those that save Python most (``helpers.FIRST``, ``SOON``): others that take long."""


TOGETHER: Final = ("framing.frames_and_pairs", "framing.settle_all", "judging.left_over", "programs._run")
"""Kernels with parts that are the same. A process that has compiled one of them needs less for the next."""


@functools.cache
def kernels() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """All kernels that Python calls, each with arguments of the types that it is called with, in this order."""
    from kwire.kernels import compiling, helpers
    from kwire.kernels.engine import recording

    with recording() as calls:
        for part in PARTS.values():
            part()
    found = {compiling.name_of(kernel): (kernel, args) for kernel, args in calls.items()}
    first = dict.fromkeys((*helpers.FIRST, *helpers.SOON, *LATER))
    return {name: found[name] for name in (*first, *(one for one in found if one not in first))}


def compile_one(name: str) -> float | None:
    """Compiles one of ``kernels()``, or waits for who does. Returns the seconds, None where it was there already."""
    from kwire.kernels import compiling

    kernel, args = kernels()[name]
    began = time.monotonic()
    return time.monotonic() - began if compiling.compile_for(kernel, args, wait=True) else None


def compile_all(names: list[str]) -> list[tuple[str, float | None]]:
    """``compile_one`` for each of these: their names, with what it returns."""
    found = []
    for one in names:
        with nothing_collected():
            found.append((one, compile_one(one)))
    return found


@contextlib.contextmanager
def nothing_collected() -> Iterator[None]:
    """Collects no garbage in the block, and never what it leaves behind: 16 MB for the largest kernels. To look for
    it takes a twentieth of the time of compiling. The process ends when it has compiled."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def groups(cores: int) -> list[list[str]]:
    """The kernels, in groups that one process compiles. With more than two cores, what kernels have in common is there
    sooner where each process compiles it for itself."""
    alone = [[one] for one in kernels() if cores != 2 or one not in TOGETHER]
    return [list(TOGETHER), *alone] if cores == 2 else alone


def help_out(parent: int, folder: str) -> None:
    """Compiles what nobody else does, for as long as the process ``parent`` lives. ``folder``: where it keeps them.

    Those that a reader waits for have quick machine code first."""
    from kwire.kernels import cache, compiling, helpers

    if str(cache.folder()) != folder:
        return
    every = kernels()
    unfinished: list[Callable[[], None]] = []
    for name in (*helpers.FIRST, *helpers.SOON):
        if os.getppid() != parent:
            break
        with nothing_collected():
            if name not in cache.kernels() and (finish := compiling.compile_quickly(*every[name])) is not None:
                unfinished.append(finish)
    # Also without the parent: these are in hand, and nobody else has them.
    for finish in unfinished:
        finish()
    for name, (kernel, args) in every.items():
        if os.getppid() != parent:
            return
        if name not in cache.kernels():
            with nothing_collected():
                compiling.compile_for(kernel, args, wait=False)
    _note_complete()


def _note_complete() -> None:
    from kwire.kernels import cache

    if cache.kernels() >= set(kernels()):
        cache.write(cache.COMPLETE, b"")
        cache.remove_quick()


def compile_part(name: str) -> None:
    """Compiles the kernels of one of ``PARTS``, in this process."""
    from kwire.kernels.engine import MACHINE, using

    with using(MACHINE):
        PARTS[name]()


def _byte_code() -> None:
    """Compiles the modules of kwire to byte code, where there is none and their folders can be written."""
    import compileall

    compileall.compile_dir(Path(__file__).parent.parent, quiet=2)


def run(args: argparse.Namespace) -> int:
    """Compiles what is not there yet, and says what it did. Returns 0."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    with needed("kwire compile", "capture"):
        from kwire.kernels import cache, compiling  # noqa: F401 - to say at once what is missing
    from rich.console import Console
    from rich.progress import Progress

    _byte_code()
    folder = cache.folder()
    before = {one.name for one in folder.glob("*.nbc")}
    began = time.monotonic()
    kernels()
    # A fork has what this process imported and recorded. It is made before there are other threads.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    cores = os.cpu_count() or 1
    with ProcessPoolExecutor(cores, mp_context=context) as pool:
        jobs = [pool.submit(compile_all, some) for some in groups(cores)]
        with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
            task = bar.add_task("compiling kernels", total=len(kernels()))
            for done in as_completed(jobs):
                for name, seconds in done.result():
                    if seconds is not None:
                        print(f"{seconds:6.1f} s  {name}", flush=True)
                    bar.advance(task)
    _note_complete()
    made = {one.name for one in folder.glob("*.nbc")}
    size = sum((folder / name).stat().st_size for name in made) / 1e6
    took = time.monotonic() - began
    if made - before:
        print(f"compiled {len(made - before)} kernels in {took:.0f} s: {len(made)} in {folder} ({size:.1f} MB)")
    elif made:
        print(f"all {len(made)} kernels are in {folder} already ({size:.1f} MB)")
    else:
        print(f"kernels were compiled in {took:.0f} s, but {folder} cannot be written", file=sys.stderr)
    return 0
