"""What typed values cost where records are read: ``records`` of a capture, and a column in Spark.

    python benchmarks/values_in_tables.py [--size 200] [--rows 1000000] [--rounds 3] [--spark SPARK_AVRO.jar]

The values are those of ``benchmarks/values.py`` (``flat``, 12 fields), behind Confluent's prefix. A capture of about
``--size`` megabytes has them in Produce requests of 1,000 records, without compression. Its table ``records`` with the
columns topic, partition, offset, timestamp and value is read with values as bytes, and typed, in turn. The figures are
medians of CPU time (threads included) and of the clock.

With ``--spark``, a Parquet file of ``--rows`` such values is decoded by ``kwire.spark.from_registry``, and, without the
prefix, by ``from_avro`` of spark-avro, whose jar is given. Both are written to Spark's ``noop`` sink, in turn, with two
tasks. CPU time is that of all processes (Linux). Two more show what no decoder in Python can save: reading the file
alone, and an Arrow UDF that does nothing but return a column of the same type, which it has ready.

Then two files of the capture are read by kwire's source, in two tasks, with the five columns: with typed values, and
with values as bytes, of which ``from_avro`` decodes what follows the prefix. What both say of all values is compared
before.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

import kwire
from kwire import capture, messages
from kwire.kernels.engine import MACHINE, using
from kwire.records import Record, encode
from kwire.values import Reader, Schemas, Written, decode
from kwire.values.catalog import Catalog

sys.path.insert(0, str(Path(__file__).parent))

from _spent import spent_by_all
from capture import PAIRS
from capture import case as capture_of
from values import FLAT, case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ["topic", "partition", "offset", "timestamp", "value"]
PER_BATCH = 1000
MOST = 10_000
"""Rows of an Arrow batch of Spark, unless it is told another number."""
OF_SPARK = 30
"""Megabytes of each of two captures that Spark reads."""
SCHEMA = Written("avro", json.dumps(FLAT), id=1, subject="orders-value", version=1)


def captured(megabytes: int) -> bytes:
    """A capture with the values."""
    values = case("flat", FLAT, PER_BATCH * PAIRS).values.to_pylist()
    requests = []
    for k in range(PAIRS):
        records = [
            Record(b"%d" % n, b"\0\0\0\0\1" + one, timestamp=1_700_000_000_000 + n)
            for n, one in enumerate(values[k * PER_BATCH : (k + 1) * PER_BATCH])
        ]
        partition = {"index": k % 8, "records": encode(records)}
        request = messages.ProduceRequest.from_dict(
            {"acks": 1, "timeout_ms": 1000, "topic_data": [{"name": "orders", "partition_data": [partition]}]}
        )
        requests.append(kwire.encode_request(request, api_version=9, correlation_id=0, client_id="shop"))
    answer = messages.ProduceResponse.from_dict(
        {"responses": [{"name": "orders", "partition_responses": [{"index": 0, "base_offset": 0}]}]}
    )
    answers = [kwire.encode_response(answer, api_version=9, correlation_id=0)] * PAIRS
    return capture_of("values", megabytes, traffic=(requests, answers)).data


def read(data: bytes, how: dict[str, Any]) -> int:
    """Reads all records. Returns how many values there are."""
    rows = 0
    for batch in capture.read(io.BytesIO(data), "records", topics=["orders"], columns=COLUMNS, **how):
        rows += batch.num_rows - batch.column("value").null_count
    return rows


def in_turn(cases: dict[str, Callable[[], Any]], rounds: int, clock: Callable[[], float]) -> None:
    """Runs cases in turn, and says the medians."""
    cpu: dict[str, list[float]] = {name: [] for name in cases}
    wall: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds + 1):
        for name, run in cases.items():
            before, began = clock(), time.perf_counter()
            run()
            if number:  # the first round is for what is made once
                cpu[name].append(clock() - before)
                wall[name].append(time.perf_counter() - began)
    first = next(iter(cases))
    for name in cases:
        spent, waited = statistics.median(cpu[name]), statistics.median(wall[name])
        ratio = (spent / statistics.median(cpu[first]), waited / statistics.median(wall[first]))
        print(f"  {name:32} CPU {spent:7.2f} s (x{ratio[0]:.2f})   clock {waited:7.2f} s (x{ratio[1]:.2f})", flush=True)


def in_records(megabytes: int, rounds: int) -> None:
    """``records`` of a capture, with bytes and typed."""
    data = captured(megabytes)
    schemas = Schemas([Catalog([SCHEMA])])
    typed = {"schemas": schemas, "values": "typed"}
    count = read(data, {})
    assert read(data, typed) == count
    print(f"records of a capture of {len(data) / 1e6:.0f} MB, {count:,} values")
    in_turn(
        {"values as bytes": lambda: read(data, {}), "values typed": lambda: read(data, typed)},
        rounds,
        time.process_time,
    )


def in_spark(jar: str, rows: int, rounds: int) -> None:
    """A column of values, by kwire and by spark-avro."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as sql
    from pyspark.sql.avro.functions import from_avro

    import kwire.spark

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jar)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.pandas.types import from_arrow_type

    values = case("flat", FLAT, rows).values
    framed = pc.binary_join_element_wise(pa.scalar(b"\0\0\0\0\1"), values, b"")
    with tempfile.TemporaryDirectory() as folder:
        for part in range(2):
            some = slice(part * rows // 2, (part + 1) * rows // 2)
            table = pa.table({"value": framed[some], "bare": values[some]})
            pa.parquet.write_table(table, f"{folder}/{part}.parquet", compression="none")
        frame = spark.read.parquet(folder).repartition(2).cache()
        frame.count()
        schemas = Schemas([Catalog([SCHEMA])])
        by_kwire = kwire.spark.from_registry("value", schemas=schemas, subject="orders-value")
        by_avro = from_avro("bare", json.dumps(FLAT))
        print(f"Spark {spark.version}, {rows:,} values", flush=True)
        few = frame.limit(1000)
        ours = few.select(by_kwire.alias("v")).select("v.id", "v.customer", "v.note").toArrow()
        theirs = few.select(by_avro.alias("v")).select("v.id", "v.customer", "v.note").toArrow()
        assert ours.equals(theirs)

        reader = Reader.of(SCHEMA, schemas)
        ready = decode(framed[:MOST], schemas, reader=reader).values
        type_ = from_arrow_type(reader.type)

        def of_column(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
            for column in columns:
                yield ready.slice(0, len(column))

        # Spark looks at them, and this module has its annotations as text.
        of_column.__annotations__ = {"columns": Iterator[pa.Array], "return": Iterator[pa.Array]}
        by_ready = arrow_udf(of_column, type_)("value")

        def noop(found: Any) -> Callable[[], None]:
            return lambda: found.write.format("noop").mode("overwrite").save()

        cases = {
            "from_avro (spark-avro)": noop(frame.select(by_avro)),
            "from_registry (kwire)": noop(frame.select(by_kwire)),
            "a UDF that has the column": noop(frame.select(by_ready)),
            "the column alone": noop(frame.select(sql.length("value"))),
        }
        in_turn(cases, rounds, spent_by_all)
        captures_in_spark(spark, folder, rounds)
    spark.stop()


def captures_in_spark(spark: SparkSession, folder: str, rounds: int) -> None:
    """Captures with values, by kwire's source: typed, and as bytes for spark-avro."""
    from pyspark.sql import functions as sql
    from pyspark.sql.avro.functions import from_avro

    import kwire.spark

    kwire.spark.register(spark)
    data = captured(OF_SPARK)
    for place in ("captures", "schemas"):
        Path(folder, place).mkdir()
    for number in range(2):
        Path(folder, "captures", f"{number}.pcap").write_bytes(data)
    for name in ("1", "orders-value"):
        Path(folder, "schemas", f"{name}.avsc").write_text(json.dumps(FLAT))
    source = spark.read.format("kwire").options(table="records", topics="orders", columns=",".join(COLUMNS))
    as_bytes = source.load(f"{folder}/captures")
    typed = source.options(values="typed", schemas=f"{folder}/schemas").load(f"{folder}/captures")
    value = from_avro(sql.expr("substring(value, 6)"), json.dumps(FLAT)).alias("value")
    decoded = as_bytes.select(*COLUMNS[:-1], value)
    checked = [sql.count("value.id"), sql.sum("value.id"), sql.sum("value.items"), sql.max("value.customer")]
    said = typed.agg(*checked).collect()
    assert said == decoded.agg(*checked).collect()
    assert said[0][0] == as_bytes.count() > 0
    print(f"captures of {2 * len(data) / 1e6:.0f} MB, {said[0][0]:,} values")

    def noop(found: Any) -> Callable[[], None]:
        return lambda: found.write.format("noop").mode("overwrite").save()

    cases = {
        "bytes, from_avro (spark-avro)": noop(decoded),
        "typed values (kwire)": noop(typed),
        "bytes": noop(as_bytes),
    }
    in_turn(cases, rounds, spent_by_all)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--spark", metavar="JAR")
    args = parser.parse_args()
    if args.size:
        with using(MACHINE):
            in_records(args.size, args.rounds)
    if args.spark:
        in_spark(args.spark, args.rows, args.rounds)


if __name__ == "__main__":
    main()
