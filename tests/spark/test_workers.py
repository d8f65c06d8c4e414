"""Spark's workers run the Python that the driver runs, without the user setting anything, and tell errors in a line."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

import kwire.spark
from kwire.errors import KwireError
from kwire.spark.arrow import mapped
from kwire.spark.workers import VARIABLES, begin_task, plainly


def frozen(_: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """How many objects the garbage collector leaves alone."""
    yield pa.RecordBatch.from_pydict({"id": [gc.get_freeze_count()]})


@pytest.mark.wide
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


@pytest.mark.wide
def test_a_session_that_was_there_before_the_import_finds_the_data_source(captures: Path, tmp_path: Path) -> None:
    # A Python of that name without kwire, as on the path of whoever has not activated an environment.
    (tmp_path / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    code = (
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        "import kwire.spark\n"
        f"print(spark.read.format('kwire').load({str(captures)!r}).limit(3).count())\n"
    )
    env = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    env["PATH"] = f"{tmp_path}:{env['PATH']}"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "3"


def _streamed(spark: SparkSession, path: Path, **options: str) -> None:
    frame = spark.readStream.format("kwire").options(**options).load(str(path))
    query = frame.writeStream.format("memory").queryName("told").trigger(availableNow=True).start()
    query.awaitTermination()


FAILURES: dict[str, tuple[Callable[[SparkSession, Path], Any], str]] = {
    "an option": (
        lambda spark, path: spark.read.format("kwire").option("table", "x").load(str(path)),
        "KwireError: the option 'table', where the format is capture: no table 'x': there are frames, ",
    ),
    "a path": (
        lambda spark, path: spark.read.format("kwire").load(f"{path}/none").collect(),
        "CaptureError: .*/none: no such file",
    ),
    "a task": (
        lambda spark, path: spark.read.format("kwire").option("badFiles", "fail").load(str(path)).collect(),
        "KwireError: a bad file, which the option 'badFiles' lets fail the query: .*x.pcap at byte 0: not a capture",
    ),
    "a stream": (
        lambda spark, path: _streamed(spark, path / "none"),
        "CaptureError: .*/none: no such file",
    ),
    "a task of a stream": (
        lambda spark, path: _streamed(spark, path, badFiles="fail", idle="0s"),
        "KwireError: a bad file, which the option 'badFiles'",
    ),
    "a function": (
        lambda spark, path: spark.range(1).select(kwire.spark.decode_request("id")).collect(),
        r"KwireError: the payload is a column of bytes \(BINARY\), not of the type int64",
    ),
    "a read across files": (
        lambda spark, path: kwire.spark.read(str(path), badFiles="fail", spark=spark).collect(),
        "KwireError: a bad file, which the option 'badFiles'",
    ),
}


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("where", FAILURES)
def test_an_error_is_told_in_its_first_line_and_without_the_stack_of_a_worker(
    spark: SparkSession, tmp_path: Path, where: str
) -> None:
    (tmp_path / "x.pcap").write_bytes(b"half a file")
    fail, said = FAILURES[where]
    with pytest.raises(PySparkException) as caught:
        fail(spark, tmp_path)
    first, *rest = str(caught.value).splitlines()
    shown = first + (rest[0] if first.endswith("worker:") else "")  # which Spark says in front of what a task raised
    assert re.search(rf"kwire\.errors\.{said}", shown), caught.value
    assert "Traceback" not in str(caught.value)
    assert "site-packages" not in str(caught.value)


def test_a_bug_keeps_its_stack_and_a_process_of_ones_own_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    @plainly
    def bug() -> None:
        raise IndexError("of kwire")

    @plainly
    def mistake() -> None:
        raise KwireError("of a user")

    for spec, function, hidden in (
        ("pyspark.daemon", bug, False),
        ("pytest", mistake, False),
        ("pyspark.daemon", mistake, True),
    ):
        monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")
        monkeypatch.setattr(sys.modules["__main__"], "__spec__", SimpleNamespace(name=spec))
        with pytest.raises((IndexError, KwireError)) as caught:
            function()
        assert (os.environ["SPARK_HIDE_TRACEBACK"] == "1") is hidden
        assert hasattr(caught.value, "__notes__") is hidden
