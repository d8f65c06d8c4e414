"""Which Python Spark's workers run: the driver's, unless the user has decided otherwise.

Without this module, PySpark starts ``python3`` from the PATH for its workers. In a virtual environment that was not
activated that is another Python, without kwire.

PySpark takes the name from ``PYSPARK_PYTHON`` when the context starts. The JVM takes it from its own environment, which
it inherits when it is launched. So both are set when ``kwire.spark`` is imported. A value that is set already (by the
user, ``spark-submit`` or a platform) is left alone.

That is too late only for a context that was started before the import: it looks for data sources with that other
Python. A session that is there then gets kwire by ``kwire.spark.register``. ``use_drivers_python`` makes the workers of
a local master run the driver's. On a cluster, the executors' Python is the cluster's affair. With Spark Connect, the
workers' Python is the server's.

What a worker has loaded is left out of the collection that PySpark does after each task (``begin_task``).

A failure is reported in one line (``plainly``): PySpark puts the stack of a worker before an error, and only the last
of its lines says what to do.

A worker may lack memory, a library, room on a disk, a store that answers, or permission. That is no fault of the files
that it reads: ``lack`` makes the sentence with which its task fails.
"""

from __future__ import annotations

import errno
import functools
import gc
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kwire.errors import CaptureError, KwireError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = [
    "LACKS",
    "LEAST_MEMORY",
    "LackError",
    "begin_task",
    "context_of",
    "lack",
    "of_file",
    "plainly",
    "prefer_drivers_python",
    "use_drivers_python",
]

VARIABLES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")

LEAST_MEMORY: Final = 1 << 30
"""Bytes of address space that a worker takes at least: numba and Arrow reserve more than they use."""
LACKS: Final = (OSError, MemoryError, ImportError)
"""Raised if a machine or a store lacks something."""


def prefer_drivers_python() -> bool:
    """Sets the environment variables, and says whether it did: not where one of them is set."""
    # PYSPARK_DRIVER_PYTHON alone means that somebody chose. PySpark then falls back from one to the other itself.
    if any(os.environ.get(name) for name in VARIABLES):
        return False
    for name in VARIABLES:
        os.environ[name] = sys.executable
    return True


def context_of(spark: SparkSession) -> SparkContext | None:
    """The context of a session. None with Spark Connect, where the server has it."""
    from pyspark.errors import PySparkException

    try:
        return spark.sparkContext
    except PySparkException:
        return None


def use_drivers_python(spark: SparkSession) -> None:
    """Makes a local context that runs already start its workers with the driver's Python."""
    context = context_of(spark)
    if context is None:
        return
    if (context.master or "").startswith("local") and os.environ.get("PYSPARK_PYTHON") == sys.executable:
        context.pythonExec = sys.executable


class LackError(KwireError):
    """A file could not be read, and its bytes are not to blame."""


# --- how it is reported -----------------------------------------------------------------------------------------------

_HIDES: Final = "SPARK_HIDE_TRACEBACK"
"""A variable of the environment by which PySpark leaves out the stack: it looks where it writes an error down."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


def plainly(function: _Function) -> _Function:
    """``function``, which Spark calls in one of its Python processes, with errors of kwire that Spark shows as a line.

    The line is the error's own. Another one says where it was raised. The process ends with the error, so that nothing
    else is reported without its stack. An error that is no ``KwireError`` is a bug, and keeps its stack.
    """
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generating(*args: Any, **named: Any) -> Iterator[Any]:
            try:
                yield from function(*args, **named)
            except KwireError as error:
                _without_stack(error)
                raise

        return generating  # type: ignore[return-value]

    @functools.wraps(function)
    def calling(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except KwireError as error:
            _without_stack(error)
            raise

    return calling  # type: ignore[return-value]


def _without_stack(error: KwireError) -> None:
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is None or not main.name.startswith("pyspark.") or getattr(error, "__notes__", None):
        return
    os.environ[_HIDES] = "1"
    last = traceback.extract_tb(error.__traceback__)[-1]
    error.add_note(f"raised in {'/'.join(last.filename.rsplit('/', 3)[-3:])}, line {last.lineno}, {last.name}")


# --- what a worker lacks ----------------------------------------------------------------------------------------------

_ENOUGH: Final = (
    "give each Python worker 1 GiB at least: spark.executor.pyspark.memory is shared by the tasks that run at once"
)


def lack(error: BaseException, name: str, hidden: Callable[[str], str] = str) -> KwireError:
    """What the machine, or the store, lacks to read the file ``name``: a sentence. ``error`` is one of ``LACKS``.

    ``hidden`` leaves out of a text what nobody is to be shown."""
    if isinstance(error, KwireError):
        return error
    said = hidden(" ".join(str(error).split())) or type(error).__name__
    number = getattr(error, "errno", None)
    if isinstance(error, MemoryError) or number == errno.ENOMEM:
        return LackError(f"memory is not enough to read {name}: {_ENOUGH} ({said})")
    if isinstance(error, ImportError) or (type(error) is OSError and number is None):
        return LackError(
            f"a library could not be loaded to read {name}; is it there, is memory enough? {_ENOUGH} ({said})"
        )
    if isinstance(error, PermissionError):
        return LackError(f"{name} may not be read by the user that runs Spark's Python workers: allow it ({said})")
    if isinstance(error, FileNotFoundError):
        return LackError(f"{name} is gone: it was there when the query began, so run it again ({said})")
    if number in (errno.ENOSPC, errno.EDQUOT):
        return LackError(f"the disk is full where {name} is read: make room ({said})")
    return LackError(f"{name} could not be read, and its bytes are not to blame: try again ({said})")


@contextmanager
def of_file(name: str, hidden: Callable[[str], str] = str) -> Iterator[None]:
    """Errors of a lack that are raised within, as ``lack`` says them. Errors of the bytes stay as they are."""
    from kwire.capture.reading import is_damage

    try:
        yield
    except (KwireError, *LACKS) as error:
        if is_damage(error):
            raise
        cause = error.__cause__ if isinstance(error, CaptureError) and error.__cause__ else error
        raise lack(cause, name, hidden) from error


def _check_memory() -> None:
    """Raises ``KwireError`` where this process may not have ``LEAST_MEMORY``."""
    try:
        import resource
    except ImportError:  # Windows, where there is no such limit
        return
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY and most < LEAST_MEMORY:
        raise KwireError(f"{most >> 20} MiB of memory are too few for a Python worker of kwire: {_ENOUGH}")


# --- what is loaded ---------------------------------------------------------------------------------------------------

_modules = 0
"""Modules that were loaded when a task last found new ones."""


def begin_task() -> None:
    """To be called where a task of a worker begins. Does nothing elsewhere.

    PySpark collects garbage after each task. The objects that are loaded by then (numba, Arrow, schemas) are 150,000,
    and live as long as the process. They take 70 ms of each collection, more than reading a capture of 50 MB. So they
    are frozen, again whenever more was loaded: at the beginning of a task, when nothing of another one is alive.

    Raises ``KwireError`` if the worker may not have enough memory.
    """
    global _modules
    from pyspark import TaskContext

    if len(sys.modules) != _modules and TaskContext.get() is not None:
        _check_memory()
        _modules = len(sys.modules)
        gc.freeze()
