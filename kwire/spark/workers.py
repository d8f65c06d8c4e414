"""Which Python Spark's workers run: the driver's, unless the user has decided otherwise.

Left alone, PySpark starts ``python3`` from the PATH for its workers, which in a virtual environment that was not
activated is another Python, without kwire. PySpark takes the name from ``PYSPARK_PYTHON`` when the context starts, and
the JVM takes it from its own environment, which it inherits when it is launched; so both are set when ``kwire.spark``
is imported, and what is set already (by the user, ``spark-submit`` or a platform) is left alone.

The one case in which that is too late, a context that was started before the import, is repaired by
``use_drivers_python`` for a local master. On a cluster, the executors' Python is the cluster's affair.

What a worker has loaded is left out of the collection that PySpark does after each task (``begin_task``).
"""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["begin_task", "prefer_drivers_python", "use_drivers_python"]

VARIABLES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")


def prefer_drivers_python() -> None:
    """Sets the environment variables that are not set."""
    # PYSPARK_DRIVER_PYTHON alone means that somebody chose; PySpark then falls back from one to the other itself.
    if not any(os.environ.get(name) for name in VARIABLES):
        for name in VARIABLES:
            os.environ[name] = sys.executable


def use_drivers_python(spark: SparkSession) -> None:
    """Makes a local context that runs already start its workers with the driver's Python."""
    context = spark.sparkContext
    if (context.master or "").startswith("local") and os.environ.get("PYSPARK_PYTHON") == sys.executable:
        context.pythonExec = sys.executable


_modules = 0
"""Modules that were loaded when a task last found new ones."""


def begin_task() -> None:
    """To be called where a task of a worker begins; does nothing elsewhere.

    PySpark collects garbage after each task. What is loaded by then (numba, Arrow, schemas: 150,000 objects, which live
    as long as the process) takes 70 ms of that each time, more than reading a capture of 50 MB. So it is frozen, as
    often as more was loaded: at the beginning of a task, when nothing of another one is alive.
    """
    global _modules
    from pyspark import TaskContext

    if len(sys.modules) != _modules and TaskContext.get() is not None:
        _modules = len(sys.modules)
        gc.freeze()
