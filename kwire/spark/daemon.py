"""A daemon for Spark's Python workers that has loaded kwire before it forks any: a worker then begins at once.

    spark-submit --conf spark.python.daemon.module=kwire.spark.daemon ...

Spark starts one daemon on each executor, which forks the workers. Its usual one, ``pyspark.daemon``, loads nothing: a
worker imports PySpark, Arrow and kwire and loads machine code by itself. Where a task ends before its rows do
(``limit``, ``take``, ``show``), or fails, its worker ends too. So a query over many files may need a worker for each.
The driver plans queries in workers of its own, of ``pyspark.daemon`` whatever is set.

Rules kept here:

- Whatever goes wrong while kwire is loaded is said on standard error, and workers are forked all the same. Nothing but
  the daemon's port goes to standard output: Spark reads it there.
- Nothing is compiled: where machine code is not on disk, a worker does what it does without this module.
- Only the thread that forks lives on in a worker. So no thread may run when workers are forked, but for those of
  libraries that know how to fork (``_KNOWN``, and those which end their threads for it). Where there is another, this
  process becomes ``pyspark.daemon``.
- Where Spark limits the memory of workers, the limit holds here first: Arrow reserves address space as far as it may.
- What is loaded is left out of garbage collection (``gc.freeze``), which would write to the pages that workers share.
- Workers share no random numbers: Python seeds its own in each, numpy's are seeded here.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["main", "preload"]

_KNOWN: Final = frozenset({"jemalloc_bg_thd"})
"""Names of threads that may run while a process is forked: jemalloc, in Arrow, begins its own anew in both."""

_THREADS: Final = Path("/proc/self/task")


def preload(worker: str) -> None:
    """Loads all that a worker needs to read with kwire. ``worker``: the module that is the worker."""
    from pyspark.worker_util import setup_memory_limits

    setup_memory_limits(int(os.environ.get("PYSPARK_EXECUTOR_MEMORY_MB", "-1")))

    from kwire import tables
    from kwire.kernels import cache
    from kwire.protocol.api_table import api_table

    for name in (
        worker,
        "kwire.spark.source",
        "kwire.spark.reader",
        "kwire.spark.across",
        "kwire.spark.functions",
        "kwire.tables.reading",
    ):
        importlib.import_module(name)
    kinds: tuple[tables.Kind, ...] = ("capture", "log")
    for kind in kinds:
        for name in tables.names(kind):
            tables.table(name, kind)
    api_table()
    if cache.filled():
        from kwire.kernels import compiling

        compiling.load()


def main() -> None:
    """What Spark runs: loads kwire, then is ``pyspark.daemon``. Its arguments are that module's."""
    # Only Linux says which threads there are; elsewhere, nobody knows whether it is safe to fork.
    if _THREADS.is_dir():
        with _output_to_errors():
            try:
                preload(next((one for one in sys.argv[1:2] if one.startswith("pyspark")), "pyspark.worker"))
                _seed_in_workers()
            except Exception as error:
                _say(f"this failed: {type(error).__name__}: {error}")
            threads = _threads_of_workers()
        if threads:
            _say(f"threads run here: {', '.join(threads)}")
            os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])
        gc.collect()
        gc.freeze()
    from pyspark import daemon

    daemon.manager()


def _say(why: str) -> None:
    said = " ".join(why.split())
    print(f"kwire.spark.daemon: each worker loads kwire by itself, since {said}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _output_to_errors() -> Iterator[None]:
    """Within the block, what is written to standard output goes to standard error, whoever writes it."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _seed_in_workers() -> None:
    random = sys.modules.get("numpy.random")
    if random is not None:
        os.register_at_fork(after_in_child=random.seed)


def _threads_of_workers() -> list[str]:
    """The names of the threads, other than this one, that still run once a process was forked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, where there are threads
        child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    own = str(os.getpid())
    names = [(one / "comm").read_text().strip() for one in _THREADS.iterdir() if one.name != own]
    return sorted(name for name in names if name not in _KNOWN)


if __name__ == "__main__":
    main()
