"""Spark's workers run the Python that the driver runs, without the user setting anything."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from kwire.spark.arrow import mapped
from kwire.spark.workers import begin_task


def frozen(_: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """How many objects the garbage collector leaves alone."""
    yield pa.RecordBatch.from_pydict({"id": [gc.get_freeze_count()]})


def test_what_a_worker_has_loaded_is_left_out_of_the_collection_after_each_task(spark: SparkSession) -> None:
    rows = mapped(spark.range(0, 4, 1, 4), frozen, "id long").collect()
    assert min(row["id"] for row in rows) > 10_000
    before = gc.get_freeze_count()
    begin_task()
    assert gc.get_freeze_count() == before


def test_workers_run_the_same_python_as_the_driver(spark: SparkSession) -> None:
    worker = sql.udf(lambda _: __import__("sys").executable, useArrow=False)
    assert {row[0] for row in spark.range(4).select(worker("id")).collect()} == {sys.executable}


def environment(**given: str) -> str:
    """What ``kwire.spark`` leaves in the two variables, given an environment without or with them."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")} | given
    code = "import os, kwire.spark\nprint(os.environ.get('PYSPARK_PYTHON'), os.environ.get('PYSPARK_DRIVER_PYTHON'))"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_kwire_spark_sets_the_python_of_the_workers() -> None:
    assert environment() == f"{sys.executable} {sys.executable}"


def test_a_python_that_the_user_chose_is_kept() -> None:
    assert environment(PYSPARK_PYTHON="/opt/python") == "/opt/python None"
    assert environment(PYSPARK_DRIVER_PYTHON="ipython") == "None ipython"


def test_the_data_source_imports_neither_codec_nor_columns_and_the_package_has_every_name() -> None:
    code = (
        "import sys, kwire.spark.source\n"
        "heavy = ('kwire.codec', 'kwire.events', 'kwire.records', 'kwire.kernels', 'numba')\n"
        "print([name for name in heavy if name in sys.modules])\n"
        "from kwire.spark import *\n"
        "print(set(kwire.spark.__all__) - set(globals()) - set(dir(kwire.spark)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "set()"]
