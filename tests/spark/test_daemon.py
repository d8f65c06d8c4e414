"""``kwire.spark.daemon``: workers that begin with kwire loaded read the same, and nothing stops the daemon."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

LISTENS = """
import os, sys
from kwire.spark import daemon
{change}
sys.argv = ["daemon", "pyspark.worker"]
daemon.main()
"""


def started(change: str) -> tuple[bytes, str]:
    """What the daemon writes before it is told to end: to standard output, of which Spark reads the first four bytes as
    its port, and to standard error."""
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENS.format(change=change)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHON_WORKER_FACTORY_SECRET": "x"},
    )
    try:
        out, errors = process.communicate(timeout=120)  # at the end of its input it ends
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
    return out, errors.decode()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param("daemon.preload = lambda worker: print('loaded')", "loaded", id="what-is-printed"),
        pytest.param("daemon.preload = lambda worker: 1 / 0", "this failed: ZeroDivisionError", id="fails"),
        pytest.param(
            "import threading, time\n"
            "daemon.preload = lambda worker: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
            "threads run here: ",
            id="leaves-a-thread",
        ),
        pytest.param("os.environ['PYSPARK_EXECUTOR_MEMORY_MB'] = '200'", "this failed: ", id="lacks-memory"),
    ],
)
def test_the_daemon_serves_whatever_happens_while_kwire_is_loaded(change: str, said: str) -> None:
    out, errors = started(change)
    assert len(out) == 4
    assert 0 < struct.unpack(">i", out)[0] < 65536
    assert said in errors
    assert "Traceback" not in errors


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux says which threads there are")
def test_no_thread_runs_when_a_loaded_daemon_forks() -> None:
    code = "from kwire.spark import daemon; daemon.preload('pyspark.worker'); print(daemon._threads_of_workers())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split("\n")[-2] == "[]"


@pytest.mark.wide
def test_workers_do_not_share_random_numbers() -> None:
    code = """
import os, sys
import numpy.random
from kwire.spark import daemon
daemon._seed_in_workers()
for _ in range(2):
    if not os.fork():
        print(numpy.random.random(), flush=True)
        os._exit(0)
    os.wait()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    first, second = done.stdout.split()
    assert first != second


READS = """
import sys
import kwire.spark
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for name, value in {{
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.log.level": "OFF",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.daemon.module": "kwire.spark.daemon",
    "spark.executor.pyspark.memory": "2g",
}}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
kwire.spark.register(spark)

# Each task is that of a new worker: the one before it ended with its task.
frames = spark.read.format("kwire").option("maxPartitionBytes", "0").load({files!r})
print(frames.limit(3).count(), frames.count())


@udf("string")
def of_worker(number):
    import os, sys
    import numpy
    return f"{{os.getppid()}} {{'kwire.tables.reading' in sys.modules}} {{numpy.arange(number).sum()}}"


print(sorted(row[0].split(" ", 1)[1] for row in spark.range(4).select(of_worker("id")).collect()))
spark.stop()
"""


@pytest.mark.wide
def test_a_session_whose_daemon_has_loaded_kwire_reads_the_same_and_has_udfs(captures: Path, tmp_path: Path) -> None:
    from kwire import capture

    files = []
    for number in range(4):
        file = tmp_path / f"{number}.pcap"
        file.write_bytes((captures / "first-light.pcap").read_bytes())
        files.append(str(file))
    rows = 4 * sum(batch.num_rows for batch in capture.read(files[0], "frames"))
    done = subprocess.run(
        [sys.executable, "-c", READS.format(files=files)], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.splitlines() == [f"3 {rows}", "['True 0', 'True 0', 'True 1', 'True 3']"]
    assert "each worker loads kwire by itself" not in done.stderr
