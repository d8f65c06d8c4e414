"""One local Spark session for all tests of ``kwire.spark``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kwire.spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two workers, no user interface, and a session time zone that is not UTC: results must not depend on it."""
    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("kwire tests")
        .config("spark.ui.enabled", "false")
        # Short jobs: what the second compiler of the JVM makes of them comes too late.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.log.level", "ERROR")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.python.authenticate.socketTimeout", "120s")  # of workers that start on a busy machine
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.sql.warehouse.dir", str(folder))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        # Few rows: Java that is written and compiled for each query would take a third of the time. Sessions of other
        # tests have it: those of programs, notebooks, brokers and Spark Connect.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .getOrCreate()
    )
    kwire.spark.register(session)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def captures() -> Path:
    """The golden captures of first light."""
    return Path(__file__).parents[1] / "golden" / "kafka-3.9-zk-kafka-python"
