"""What kwire makes of a capture of a real Kafka broker, in Spark.

    make demo                                     # the capture that comes with kwire
    make demo ARGS="/captures/*.pcap"             # your own: files, folders, patterns, s3:// and so on
    python examples/demo.py --output DIR PATH...  # the same in an environment that has kwire[spark]

Reads the captures with the data source ``kwire`` and prints which clients speak which versions of which API, what is
in the topics, how long requests take, and some records. Then it takes the other way in: it makes a table of raw
payloads, as a proxy or an archive would keep them, and decodes them with the column functions, which must give the same
again. Both tables are written as Parquet.

Everything is computed by Spark; only the rows that are printed come to the driver.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import kwire.spark  # before the session is made: its workers then run this Python

# isort: split
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf

from kwire import schema
from kwire.protocol.describe import undescribe
from kwire.tables.showing import Column, readable
from kwire.tables.terminal import render

CHECKOUT = Path(__file__).parents[1]
GOLDEN = CHECKOUT / "tests" / "golden"
CAPTURES = [
    GOLDEN / "kafka-3.9-zk-kafka-python" / "first-light.pcap",
    GOLDEN / "kafka-4.3-kraft-kafka-python" / "unpinned.pcap",
]
"""A broker that stores the 0.10 message format, and a current one: old and new requests, records of magic 1 and 2."""
WIDTH = 118


@contextlib.contextmanager
def logs_in(file: Path) -> Iterator[None]:
    """What is written to standard error while the block runs, by the JVM that it starts too, goes to ``file``."""
    sys.stderr.flush()
    before = os.dup(2)
    with file.open("w") as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)


def session(folder: Path) -> SparkSession:
    """A local session whose logs go to a file."""
    log = folder / "spark.log"
    try:
        with logs_in(log):
            return (
                SparkSession.builder.master("local[*]")
                .appName("kwire demo")
                .config("spark.ui.enabled", "false")
                .config("spark.ui.showConsoleProgress", "false")
                .config("spark.sql.shuffle.partitions", "4")
                .config("spark.sql.session.timeZone", "UTC")
                .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
                .config("spark.driver.host", "127.0.0.1")
                .config("spark.driver.bindAddress", "127.0.0.1")
                .getOrCreate()
            )
    except Exception:
        sys.stderr.write(log.read_text(errors="replace"))
        raise


def title(text: str) -> None:
    """A heading."""
    print(f"\n{text}\n{'═' * len(text)}")


def bar(value: float, most: float, width: int = 24) -> str:
    """A bar of at most ``width`` characters, in eighths of one."""
    eighths = round(8 * width * value / most) if most else 0
    full, rest = divmod(eighths, 8)
    return "█" * full + (chr(0x2590 - rest) if rest else "")


def show(frame: DataFrame, *columns: Column) -> None:
    """The rows of a small result."""
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    print("\n".join(render(columns, rows, WIDTH)) if rows else "(none)")


def text(name: str, head: str | None = None, **layout: Any) -> Column:
    """A column of texts or bytes."""
    return Column(name if head is None else head, lambda row: cell(row[name]), **layout)


def cell(value: object) -> str:
    """A value for people."""
    if value is None:
        return "null"
    return readable(bytes(value) if isinstance(value, (bytes, bytearray)) else str(value))


def number(name: str, head: str | None = None, digits: int = 0) -> Column:
    """A column of numbers."""
    return Column(
        name if head is None else head,
        lambda row: "-" if row[name] is None else f"{row[name]:,.{digits}f}",
        right=True,
    )


def chart(name: str, most: float) -> Column:
    """A column of bars."""
    return Column("", lambda row: bar(row[name] or 0, most))


def largest(frame: DataFrame, name: str) -> float:
    """The largest value of a column."""
    return float(frame.agg(sql.max(name)).collect()[0][0] or 0)


def is_(direction: str) -> SparkColumn:
    """Whether a frame goes that way."""
    return sql.col("direction") == direction


def frames_by_api(frames: DataFrame) -> None:
    """Frames per API and version."""
    title("Frames per API and version")
    found = (
        frames.where("api_key is not null")
        .groupBy("api_key", "api_name", "api_version")
        .agg(
            sql.count_if(is_("request")).alias("requests"),
            sql.count_if(is_("response")).alias("responses"),
            sql.sum("size").alias("bytes"),
            sql.array_join(sql.array_sort(sql.collect_set("client_id")), ", ").alias("clients"),
        )
        .orderBy("api_key", "api_version")
        .cache()
    )
    show(
        found,
        text("api_name", "api"),
        number("api_version", "version"),
        number("requests"),
        number("responses"),
        number("bytes"),
        chart("bytes", largest(found, "bytes")),
        text("clients", shrink=20),
    )
    others = frames.where("status <> 'ok'").groupBy("status").count().orderBy("status").collect()
    said = ", ".join(f"{row['count']:,} {row['status']}" for row in others)
    print(f"\n{frames.count():,} frames" + (f"; not ok: {said}" if said else ", every one of them ok"))


def topics(records: DataFrame) -> None:
    """Topics by bytes and records."""
    title("Topics by bytes and records")
    size = sql.coalesce(sql.length("key"), sql.lit(0)) + sql.coalesce(sql.length("value"), sql.lit(0))
    found = (
        records.groupBy("topic")
        .agg(
            sql.count_if(sql.col("source") == "produce").alias("produced"),
            sql.count_if(sql.col("source") == "fetch").alias("fetched"),
            sql.sum(size).alias("bytes"),
            sql.array_join(sql.array_sort(sql.collect_set("magic")), ", ").alias("magic"),
            sql.array_join(sql.array_sort(sql.collect_set("compression")), ", ").alias("compression"),
            sql.count_if(sql.col("status") != "ok").alias("bad"),
        )
        .orderBy(sql.desc("bytes"))
        .cache()
    )
    show(
        found,
        text("topic", shrink=20),
        number("produced"),
        number("fetched"),
        number("bytes"),
        chart("bytes", largest(found, "bytes")),
        text("magic"),
        text("compression"),
        number("bad"),
    )
    print("\nbytes are those of keys and values; fetched are records that a broker sent, produced those that it got")


def latencies(frames: DataFrame) -> None:
    """A latency table per API."""
    title("Latency per API, in milliseconds")
    percentile = "percentile(latency_ms, {})"
    found = (
        frames.where("latency_ms is not null")
        .groupBy("api_name")
        .agg(
            sql.count("*").alias("count"),
            sql.expr(percentile.format(0.5)).alias("median"),
            sql.expr(percentile.format(0.95)).alias("p95"),
            sql.max("latency_ms").alias("max"),
        )
        .orderBy(sql.desc("p95"))
        .cache()
    )
    show(
        found,
        text("api_name", "api"),
        number("count"),
        number("median", digits=3),
        number("p95", digits=3),
        number("max", digits=3),
        chart("p95", largest(found, "p95")),
    )
    print("\nfrom the last byte of a request to the last byte of its response; bars are the 95th percentile")


def sample(records: DataFrame) -> None:
    """One record of each kind, with headers where there are any."""
    title("Some records")
    by_kind = (
        "partition by topic, magic, source order by size(headers) desc, xxhash64(topic, magic, source, key, offset)"
    )
    found = (
        records.where("status = 'ok' and not is_control")
        .selectExpr("*", f"row_number() over ({by_kind}) as n")
        .where("n = 1")
        .orderBy(sql.desc(sql.size("headers")), "topic", "magic", "source")
        .limit(16)
        .orderBy("topic", "magic", "source")
        .withColumn("at", sql.date_format("timestamp", "yyyy-MM-dd HH:mm:ss.SSS"))
    )
    show(
        found,
        text("topic", shrink=16),
        number("partition"),
        number("offset"),
        text("at", "timestamp"),
        text("key", shrink=9),
        text("value", shrink=20),
        Column("headers", headers, shrink=14),
        Column("format", lambda row: f"v{row['magic']} {row['compression']}"),
    )


def headers(row: dict[str, Any]) -> str:
    """Record headers in one line."""
    return ", ".join(f"{one['key']}={cell(one['value'])}" for one in row["headers"] or ()) or "-"


def encode(
    direction: pa.Array,
    api_key: pa.Array,
    api_version: pa.Array,
    correlation_id: pa.Array,
    client_id: pa.Array,
    body: pa.Array,
) -> pa.Array:
    """Frames from decoded messages: what went over the wire, without its 4-byte size."""
    payloads = []
    columns = (direction, api_key, api_version, correlation_id, client_id, body)
    for way, key, version, correlation, client, text_ in zip(*(column.to_pylist() for column in columns), strict=True):
        known = schema.request(key) if way == "request" else schema.response(key)
        message = undescribe(known.name, json.loads(text_))
        if way == "request":
            frame = kwire.encode_request(message, api_version=version, correlation_id=correlation, client_id=client)
        else:
            frame = kwire.encode_response(message, api_version=version, correlation_id=correlation)
        payloads.append(frame)
    return pa.array(payloads, pa.binary())


def column_functions(messages: DataFrame) -> None:
    """Raw payloads, decoded by the column functions."""
    title("The same from a table of raw payloads")
    # Arrow UDFs need no pandas; mapInArrow does.
    frame = arrow_udf(encode, "binary")
    payloads = (
        messages.where("body is not null")
        .withColumn("payload", frame("direction", "api_key", "api_version", "correlation_id", "client_id", "body"))
        .select("direction", "api_key", "api_version", "size", "body", "payload")
        .cache()
    )
    decoded = payloads.withColumn(
        "made",
        sql.when(is_("request"), kwire.spark.decode_request("payload", secrets=True).dropFields("client_id")).otherwise(
            kwire.spark.decode_response("payload", "api_key", "api_version", secrets=True)
        ),
    )
    found = (
        decoded.groupBy("direction")
        .agg(
            sql.count("*").alias("payloads"),
            sql.sum(sql.length("payload")).alias("bytes"),
            sql.count_if(sql.expr("made.status = 'ok'")).alias("decoded"),
            sql.count_if(sql.length("payload") == sql.col("size")).alias("sizes"),
            sql.count_if(sql.expr("made.body = body")).alias("bodies"),
        )
        .orderBy("direction")
        .cache()
    )
    show(
        found,
        text("direction"),
        number("payloads"),
        number("bytes"),
        number("decoded"),
        number("sizes", "size as captured"),
        number("bodies", "body as in messages"),
    )
    wrong = [row for row in found.collect() if len({row.payloads, row.decoded, row.sizes, row.bodies}) != 1]
    if wrong:
        raise SystemExit("the column functions and the data source do not agree")

    produced = (
        decoded.where("direction = 'request' and api_key = 0")
        .select(sql.inline(sql.from_json("made.body", PRODUCED).getField("topic_data")))
        .select("name", sql.inline("partition_data"))
        .select("name", sql.inline(kwire.spark.decode_records(sql.unbase64("records"))))
    )
    count, ok = produced.agg(sql.count("*"), sql.count_if(sql.expr("status = 'ok' and crc_ok"))).collect()[0]
    print(f"\ndecode_records over the Produce requests among them: {count:,} records, {ok:,} with a right checksum")


PRODUCED = "topic_data array<struct<name string, partition_data array<struct<index int, records string>>>>"
"""What is wanted of the body of a Produce request."""


def write(frame: DataFrame, path: Path) -> str:
    """Writes a table as Parquet and reads it back. Returns a line about it."""
    frame.write.mode("overwrite").parquet(str(path))
    spark = frame.sparkSession
    rows = spark.read.parquet(str(path)).count()
    parts = sorted(path.glob("*.parquet"))
    size = sum(part.stat().st_size for part in parts)
    with contextlib.suppress(ValueError):
        path = path.relative_to(Path.cwd())
    files = f"{len(parts)} {'file' if len(parts) == 1 else 'files'}"
    return f"{path}/  {rows:,} rows, {len(frame.columns)} columns, {files}, {size:,} bytes"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the demo. Returns its exit code."""
    parser = argparse.ArgumentParser(description="What kwire makes of a capture, in Spark.")
    parser.add_argument("paths", nargs="*", default=[str(path) for path in CAPTURES], metavar="PATH", help="captures")
    parser.add_argument("--output", type=Path, default=CHECKOUT / "demo-output", help="where Parquet is written")
    args = parser.parse_args(argv)
    began = time.monotonic()
    args.output.mkdir(parents=True, exist_ok=True)

    print("Starting Spark ...", flush=True)
    spark = session(args.output)

    def table(name: str, **options: str) -> DataFrame:
        return spark.read.format("kwire").options(table=name, **options).load(args.paths)

    frames = table("frames").cache()
    print("Reading captures (the first time on a machine, kernels are compiled beside it) ...", flush=True)
    bad = frames.where("status = 'bad_file'").select("error").collect()
    for row in bad:
        print(f"kwire: {row.error}", file=sys.stderr)
    frames = frames.where("status <> 'bad_file'")
    for name in sorted(row.capture for row in frames.select("capture").distinct().collect()):
        print(f"  {name}")
    records = table("records").where("status <> 'bad_file'").cache()
    messages = table("messages").where("status <> 'bad_file'").cache()

    frames_by_api(frames)
    topics(records)
    latencies(frames)
    sample(records)
    # What was left out cannot be written again.
    column_functions(table("messages", secrets="show", payloads="true").where("status <> 'bad_file'"))

    title("Written")
    for name, frame in (("frames", frames), ("messages", messages), ("records", records)):
        print(write(frame, args.output / f"{name}.parquet"))
    print(f"\n{time.monotonic() - began:.0f} s. Try: kwire decode {args.paths[0]} --table records", flush=True)
    spark.stop()
    return 2 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
