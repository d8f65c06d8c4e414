"""Private parts of numba: all are there with this version, and kernels compile and give the same without them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from kwire.kernels import cache, fence

CALL = """
import numpy as np
from numba.core import {module}
{change}
from kwire.kernels import fence
from kwire.kernels.engine import MACHINE
from kwire.kernels.names import NameTable
print(*fence.closed())
names = NameTable()
data = np.frombuffer(b"abcabd" + bytes(64), np.uint8).copy()
print(*names.numbers(data, np.array([0, 3, 0]), np.array([3, 3, 3]), MACHINE))
"""


def called(tmp_path: Path, change: str, module: str = "codegen") -> list[str]:
    """The closed fences, and what a kernel of many parts gives, where numba was changed before kwire is imported."""
    done = subprocess.run(
        [sys.executable, "-c", CALL.format(change=change, module=module)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout.splitlines()


def test_every_private_part_is_there_with_this_numba() -> None:
    assert fence.closed() == []


@pytest.mark.wide
@pytest.mark.parametrize(
    ("part", "closed"),
    [
        ("codegen.JITCPUCodegen.set_env", "libraries"),
        ("codegen.JITCodeLibrary.get_pointer_to_function", "libraries"),
        ("cgutils.do_boundscheck", "indices"),
        ("caching.FunctionCache.load_overload", "cache"),
        ("caching._CacheLocator.get_source_stamp", "cache"),
        ("compiler_machinery.PassManager.add_pass", "passes"),
        ("types.functions.BaseFunction.get_call_type", "calls"),
        ("ir.Inst._rec_list_vars", "variables"),
        ("callconv.CPUCallConv.call_function", "lowering"),
        ("typeinfer.ConstraintNetwork.propagate", "inference"),
        ("caching.CompileResultCacheImpl.get_filename_base", "stages"),
        ("itanium_mangler.mangle", "names"),
    ],
)
def test_a_part_whose_parameters_have_changed_is_not_used_and_kernels_compile_without_it(
    part: str, closed: str, tmp_path: Path
) -> None:
    change = f"import inspect; {part}.__signature__ = inspect.Signature([])"
    assert called(tmp_path, change, part.partition(".")[0]) == [closed, "0 1 0"]
    kept = bool(list(tmp_path.rglob("*.nbc")))
    assert kept == (closed != "cache"), "machine code is kept unless that fence is closed"


@pytest.mark.parametrize("references", [True, False])
def test_what_is_loaded_raises_as_what_was_compiled(
    references: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from numba import njit

    monkeypatch.setattr(cache, "folder", lambda: tmp_path)

    def second(values):  # type: ignore[no-untyped-def]
        return values[1]

    for loaded in (0, 1):
        made = fence.entry(njit(boundscheck=True, _nrt=references)(second))
        assert made(np.array([3, 7])) == 7
        assert sum(made.stats.cache_hits.values()) == loaded
        with pytest.raises(IndexError):
            made(np.zeros(1, np.int64))


def test_a_kernel_has_the_same_instructions_with_and_without_the_passes_that_are_left_out() -> None:
    """What numba makes of a loop with a record, a constant, a branch and a call: LLVM's text, without its names."""
    import re

    from numba import njit

    kind = np.dtype([("a", np.int64), ("b", np.uint8)])

    def total(rows, wanted):  # type: ignore[no-untyped-def]
        if rows.ndim != 1:
            raise ValueError("rows")
        found = 0
        for k in range(len(rows)):
            row = rows[k]
            if row["b"] == wanted:
                found += min(row["a"], 5) * int(found < 100)
            row["b"] = 0
        return found

    def text(**options) -> str:  # type: ignore[no-untyped-def]
        made = njit(boundscheck=True, error_model="numpy", _nrt=False, **options)(total)
        assert made(np.array([(3, 1), (7, 1), (8, 2)], kind), 1) == 8
        (found,) = made.inspect_llvm().values()
        return re.sub(r"v\d+|_ZN\S+|0x[0-9a-f]+|i64 \d{9,}|B\d+\w*|\d{9,}|B[0-9a-z]+_", "", found).partition("\n!")[0]

    assert fence.options()
    assert len(text().splitlines()) == len(text(**fence.options()).splitlines()) > 100


def test_variables_have_the_types_that_numba_gives_them() -> None:
    """Types that become wider in a loop, tuples, records, branches that join, and a name that has none on one way."""
    from numba import njit, typeof
    from numba.core import typed_passes

    kind = np.dtype([("a", np.int64), ("b", np.uint8)])

    def mixed(rows, wanted):  # type: ignore[no-untyped-def]
        found, last, pair = 0, 1, (1, 2.5)
        for k in range(len(rows)):
            if rows[k]["b"] == wanted:
                last = last * 0.5
                step = rows[k]["a"]
            elif k > 3:
                step = k
                pair = (pair[0] + k, last)
            found += min(step, 5) + int(last < 100)
            rows[k]["a"] = found
        return found + pair[1], last

    args = (typeof(np.zeros(3, kind)), typeof(1))
    stage = typed_passes.type_inference_stage
    seen: list[tuple[object, ...]] = []

    def noted(*words, **more):  # type: ignore[no-untyped-def]
        made = stage(*words, **more)
        seen.append((made.typemap, made.return_type, [str(one) for one in made.calltypes.values()]))
        return made

    typed_passes.type_inference_stage = noted
    try:
        njit(mixed).compile(args)
        fence.part(njit(mixed)).compile(args)
    finally:
        typed_passes.type_inference_stage = stage
    theirs, ours = (one for one in seen if len(one[0]) > 30)  # type: ignore[arg-type]
    assert ours == theirs


def test_a_statement_is_not_asked_again_where_nothing_changed() -> None:
    from numba import njit, typeof
    from numba.core import typeinfer

    asked: dict[int, int] = {}
    ask = typeinfer.IntrinsicCallConstraint.__call__

    def counted(self, inferer):  # type: ignore[no-untyped-def]
        asked[id(self)] = asked.get(id(self), 0) + 1
        return ask(self, inferer)

    def total(values):  # type: ignore[no-untyped-def]
        found = 0
        for k in range(len(values)):
            found += values[k] * 2 - k
        return found

    typeinfer.IntrinsicCallConstraint.__call__ = counted
    try:
        fence.part(njit(total)).compile((typeof(np.zeros(3, np.int64)),))
    finally:
        typeinfer.IntrinsicCallConstraint.__call__ = ask
    # numba asks each twice at least.
    assert len(asked) >= 4
    assert min(asked.values()) == 1


def test_what_is_replaced_is_put_back() -> None:
    from numba import njit
    from numba.core import cgutils, codegen, ir
    from numba.core.registry import cpu_target
    from numba.core.types import functions
    from numba.np import arrayobj

    replaced = [ir.Inst._rec_list_vars, functions.BaseFunction.get_call_type]
    made = fence.entry(njit(boundscheck=True, **fence.options())(lambda values: values[1]))
    assert made(np.array([3, 7])) == 7
    assert [ir.Inst._rec_list_vars, functions.BaseFunction.get_call_type] == replaced
    with pytest.raises(IndexError):
        made(np.zeros(1, np.int64))
    assert arrayobj.fix_integer_index.__module__ == arrayobj.__name__
    assert cgutils.do_boundscheck.__module__ == cgutils.__name__
    assert cpu_target.target_context.codegen().create_library.__func__ is codegen.JITCPUCodegen.create_library
    assert cpu_target.target_context.codegen().set_env.__func__ is codegen.JITCPUCodegen.set_env


LOADED = """
import numpy as np
from numba.core.registry import cpu_target
from kwire.kernels import compiling
from kwire.kernels.engine import MACHINE
from kwire.kernels.names import NameTable
refreshed, refresh = [], cpu_target.target_context.refresh
cpu_target.target_context.refresh = lambda: (refreshed.append(1), refresh())
names = NameTable()
data = np.frombuffer(b"abcabd" + bytes(64), np.uint8).copy()
print(*names.numbers(data, np.array([0, 3, 0]), np.array([3, 3, 3]), MACHINE), bool(refreshed), bool(compiling._inner))
import numba
print(numba.njit(lambda values: values.sum())(np.arange(4)))
"""


AHEAD = """
from kwire.kernels import compiling
from kwire.kernels.names import intern_all
print(compiling.load(), bool(compiling._inner))
print(len(compiling.compiled(intern_all).signatures))
"""


@pytest.mark.wide
def test_machine_code_is_loaded_ahead_where_it_is_kept_and_none_is_compiled(tmp_path: Path) -> None:
    def said(code: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        return done.stdout.splitlines()

    assert said(AHEAD) == ["0 False", "0"]
    said(LOADED)
    kept = {one: one.read_bytes() for one in tmp_path.rglob("*.nb?")}
    assert said(AHEAD) == ["1 False", "1"]
    assert {one: one.read_bytes() for one in tmp_path.rglob("*.nb?")} == kept
    for one in tmp_path.rglob("*.nbi"):
        one.write_bytes(b"damaged")
    assert said(AHEAD) == ["0 False", "0"]


@pytest.mark.wide
def test_code_that_is_loaded_needs_nothing_of_what_numba_can_compile(tmp_path: Path) -> None:
    for compiling in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", LOADED],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        assert done.stdout.splitlines() == [f"0 1 0 {compiling} {compiling}", "6"]
        # The names of an entry are kept with its code, not all that was linked into it.
        code = sum(one.stat().st_size for one in tmp_path.rglob("*.nbc"))
        assert 0 < code < 100_000


class Inner(NamedTuple):
    rows: Any
    factor: int


class Tables(NamedTuple):
    data: Any
    grid: Any
    inner: Inner
    doubled: bool
    least: int


def tables() -> Tables:
    rows = np.array([(5, 1), (7, 2)], np.dtype([("a", np.int64), ("b", np.uint8)]))
    return Tables(np.arange(6, dtype=np.uint8), np.arange(6).reshape(2, 3), Inner(rows, 10), True, 4)


def test_a_kernel_gets_tables_by_their_place_and_arrays_by_what_is_not_known() -> None:
    numba_njit: Any = numba.njit

    def inner(one, grid, more):  # type: ignore[no-untyped-def]
        grid[1, 2] += 1
        return one.rows[1]["a"] * one.factor + one.rows.shape[0] + grid.shape[0] * 100 + grid.size * 1000 + more

    def outer(all_, k):  # type: ignore[no-untyped-def]
        found = 0
        for _ in range(2):
            if all_.doubled:
                found += all_.data[k] + all_.least
            found += part(all_.inner, all_.grid, k)
        return found + all_.grid[1, 2] + all_.grid.strides[0] * 10**6 + all_.grid.itemsize * 10**8

    python = tables()
    part: Any = inner
    expected: Any = outer(python, 3)  # type: ignore[no-untyped-call]
    options = {"boundscheck": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True, **fence.options()}
    part = fence.part(numba_njit(no_cpython_wrapper=True, **options)(inner))
    made = fence.entry(numba_njit(**options)(outer))
    machine = tables()
    assert made(machine, 3) == expected
    assert machine.grid.tolist() == python.grid.tolist()
    with pytest.raises(IndexError):
        made(machine, 6)
    (text,) = part.inspect_llvm().values()
    (head,) = (one for one in text.splitlines() if one.startswith("define") and "inner" in one)
    # Where the result goes, where errors go; the tuple; the bytes of the array and its shape; a number.
    assert head.count(" %") == 2 + 1 + 3 + 1, head


def test_nothing_but_a_kernels_own_argument_leads_to_its_tables() -> None:
    # Or LLVM would load members again in each round of a loop that writes to some array.
    numba_njit: Any = numba.njit

    def inner(one, grid, k):  # type: ignore[no-untyped-def]
        for j in range(grid.shape[1]):
            grid[k, j] += one.factor + one.rows[0]["a"]

    def outer(all_, rounds):  # type: ignore[no-untyped-def]
        for _ in range(rounds):
            for k in range(2):
                part(all_.inner, all_.grid, k)
        return all_.grid[1, 2]

    options = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True, **fence.options()}
    part: Any = fence.part(numba_njit(no_cpython_wrapper=True, forceinline=True, **options)(inner))
    made = fence.entry(numba_njit(**options)(outer))
    assert made(tables(), 3) == 5 + 3 * (10 + 5)

    def apart(kernel: Any, name: str) -> list[bool]:
        (text,) = kernel.inspect_llvm().values()
        (head,) = (
            one for one in text.splitlines() if one.startswith("define") and name in one and "cpython" not in one
        )
        return ["noalias" in one for one in head.split("(", 1)[1].split(",") if "dereferenceable" in one]

    assert apart(made, "outer") == [True]
    # Where a part stands within another kernel, that one says it. Saying it twice costs a mark on each instruction.
    assert apart(part, "inner") == [False]


def test_a_kernel_that_makes_a_tuple_of_tables_for_another_one_does_not_compile() -> None:
    numba_njit: Any = numba.njit

    def inner(one):  # type: ignore[no-untyped-def]
        return one.rows[1]["a"] * one.factor

    def outer(rows):  # type: ignore[no-untyped-def]
        return part(Inner(rows, 3))

    options = {"_nrt": False, **fence.options()}
    part: Any = fence.part(numba_njit(no_cpython_wrapper=True, **options)(inner))
    with pytest.raises(NotImplementedError, match="makes a named tuple"):
        fence.entry(numba_njit(**options)(outer))(tables().inner.rows)
