"""What decoding a column of payloads costs, without Spark and in it.

    python benchmarks/payloads.py [--count 400000] [--rounds 5] [--spark] [--only TEXT] [--tree FOLDER ...]

Without ``--spark``: ``kwire.payloads`` beside the table of a capture that has the same frames, on one core, in
microseconds of CPU for each payload. With it: the column functions of ``kwire.spark`` into Spark's ``noop`` sink, on
two cores, in microseconds of the clock and of CPU. Beside them are

- ``identity``, a function that gives back its column,
- ``made before``, a function that gives back the arrays that kwire made of this column, as Spark's own share,
- ``by hand``, written on kafka-python's decoder of records, with three fields of each record,
- ``capture``, the table ``records`` of captures that have the same record sets.

Each ``--tree`` is a folder with another kwire, which runs the cases that it has in processes of its own. Rounds are
interleaved, figures are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import kwire
import kwire.messages as m
from kwire.records import Record, encode

CLIENTS = 20


def _heartbeats(count: int) -> list[bytes]:
    beat = [
        kwire.encode_request(
            m.HeartbeatRequest(group_id="billing", generation_id=7, member_id=f"member-{number}"),
            api_version=4,
            correlation_id=number,
            client_id=f"client-{number}",
        )
        for number in range(CLIENTS)
    ]
    kind = m.OffsetCommitRequest
    commits = [
        kwire.encode_request(
            kind(
                group_id="billing",
                topics=[
                    kind.OffsetCommitRequestTopic(
                        name="orders",
                        partitions=[
                            kind.OffsetCommitRequestPartition(
                                partition_index=1, committed_offset=number, committed_metadata=""
                            )
                        ],
                    )
                ],
            ),
            api_version=8,
            correlation_id=number,
            client_id=f"client-{number}",
        )
        for number in range(CLIENTS)
    ]
    both = beat + commits
    return (both * (count // len(both) + 1))[:count]


def _metadata(count: int) -> list[bytes]:
    kind = m.MetadataResponse
    topics = [
        kind.MetadataResponseTopic(
            name=f"topic-{topic}",
            partitions=[
                kind.MetadataResponsePartition(
                    partition_index=number, leader_id=1, replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3]
                )
                for number in range(20)
            ],
        )
        for topic in range(10)
    ]
    frame = kwire.encode_response(kind(topics=topics), api_version=12, correlation_id=7)
    return [frame] * count


def _records(number: int) -> bytes:
    return encode([Record(b"key-%d" % one, b"value of a record %d" % one, offset=one) for one in range(number)])


def _produces(count: int) -> list[bytes]:
    kind = m.ProduceRequest
    data = kind.PartitionProduceData(index=1, records=_records(100))
    body = kind(acks=1, topic_data=[kind.TopicProduceData(name="orders", partition_data=[data])])
    return [kwire.encode_request(body, api_version=9, correlation_id=1, client_id="client")] * count


CASES: dict[str, tuple[Callable[[int], list[bytes]], int]] = {
    "requests": (_heartbeats, 1),
    "headers": (_heartbeats, 1),
    "typed": (_heartbeats, 1),
    "metadata responses": (_metadata, 20),
    "produce requests": (_produces, 20),
    "records in requests": (_produces, 20),
    "record sets": (lambda count: [_records(1000)] * count, 100),
}
"""What payloads there are, and for how many of ``--count`` there is one of it: so many that a query's start, 0.3 s, is
little of what it takes."""
FEW: Final = ["offset", "key", "value"]
"""The fields that are made by hand."""


def columns(name: str, data: Any) -> Any:
    """The column function of a case."""
    import kwire.spark as k

    if name == "requests" or name == "produce requests":
        return k.decode_request(data)
    if name == "headers":
        return k.decode_request(data, body=False)
    if name == "typed":
        return k.decode_request(data, api="Heartbeat")
    if name == "metadata responses":
        return k.decode_response(data, 3, 12)
    if name == "records in requests":
        return k.request_records(data)
    return k.decode_records(data)


def alone(name: str, column: pa.Array) -> Any:
    """The same without Spark."""
    import kwire.payloads as p

    if name == "requests" or name == "produce requests":
        return p.decode_requests(column)
    if name == "headers":
        return p.decode_requests(column, body=False)
    if name == "typed":
        return p.decode_requests(column, api="Heartbeat")
    if name == "metadata responses":
        return p.decode_responses(column, 3, 12)
    if name == "records in requests":
        return p.request_records(column)
    return p.decode_records(column)


def by_hand(column: pa.Array) -> pa.Array:
    """Record sets with kafka-python's decoder, as somebody would write it."""
    from kafka.record.memory_records import MemoryRecords

    rows = []
    for data in column.to_pylist():
        found, batches = [], MemoryRecords(data)
        while batches.has_next():
            found += [{"offset": one.offset, "key": one.key, "value": one.value} for one in batches.next_batch()]
        rows.append(found)
    return pa.array(rows, pa.list_(pa.struct([("offset", pa.int64()), ("key", pa.binary()), ("value", pa.binary())])))


def a_capture(name: str, payloads: list[bytes]) -> bytes:
    """A capture that has the same frames, as chunks without packets."""
    from kwire.capture.chunks import Chunk, Chunks

    side = "request"
    if name == "record sets":
        kind = m.ProduceRequest
        data = kind.PartitionProduceData(index=1, records=payloads[0])
        body = kind(acks=1, topic_data=[kind.TopicProduceData(name="orders", partition_data=[data])])
        payloads = [kwire.encode_request(body, api_version=9, correlation_id=1)] * len(payloads)
    if name == "metadata responses":
        asked = kwire.encode_request(m.MetadataRequest(), api_version=12, correlation_id=7)
        both = [("request", asked), ("response", payloads[0])]
    else:
        both = []

    def chunks() -> Iterator[Any]:
        for number, one in enumerate(payloads):
            for which, data in both or [(side, one)]:
                yield Chunk("c", which, number * 1000, len(data).to_bytes(4, "big") + data, None)

    made: bytes = Chunks(chunks(), "request").read()
    return made


def captured(name: str, payloads: list[bytes]) -> Callable[[], int]:
    """Reads a capture that has the same frames: the rows of ``messages``, ``frames`` or ``records``."""
    from kwire import capture

    table = {"headers": "frames", "record sets": "records", "records in requests": "records"}.get(name, "messages")
    # As a file, so that what Python does for each chunk does not count.
    data = a_capture(name, payloads)
    # Text has record sets in columns of payloads, and in captures if they are asked for.
    options = {"payloads": True} if table == "messages" else {}
    return lambda: sum(batch.num_rows for batch in capture.read(BytesIO(data), table, ports=[9092], **options))


def without_spark(count: int, rounds: int, only: str) -> None:
    from kwire.kernels.engine import MACHINE, using

    with using(MACHINE):
        for name, (make, each) in CASES.items():
            if only not in name:
                continue
            payloads = make(count // each)
            # In parts, as captures are read: what nobody keeps takes no new memory.
            size = max(1, (16 << 20) // len(payloads[0]))
            parts = [pa.array(payloads[at : at + size], pa.binary()) for at in range(0, len(payloads), size)]
            runs = {"payloads": lambda name=name, parts=parts: sum(len(alone(name, part)) for part in parts)}
            runs["capture"] = captured(name, payloads)
            times: dict[str, list[float]] = {one: [] for one in runs}
            for number in range(rounds + 1):
                for one, run in runs.items():
                    begin = time.process_time()
                    run()
                    if number:
                        times[one].append(time.process_time() - begin)
            found = {one: statistics.median(spent) / len(payloads) * 1e6 for one, spent in times.items()}
            ratio = found["payloads"] / found["capture"]
            print(f"{name:20} {found['payloads']:9.3f} us   capture {found['capture']:9.3f} us   ratio {ratio:.2f}")


def in_spark(count: int, rounds: int, only: str, folder: str) -> dict[str, list[tuple[float, float]]]:
    """Seconds of the clock and of CPU for each round of each case."""
    from pyspark.sql import SparkSession

    import kwire.spark

    sys.path.insert(0, str(Path(__file__).parent))
    from _spent import spent_by_all

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    kwire.spark.register(spark)
    found: dict[str, list[tuple[float, float]]] = {}
    for name, (make, each) in CASES.items():
        # A kwire of another folder may have fewer functions.
        if only not in name or (name == "records in requests" and not hasattr(kwire.spark, "request_records")):
            continue
        payloads = make(count // each)
        table = pa.table({"payload": pa.array(payloads, pa.binary())})
        spark.createDataFrame(table).repartition(2).write.mode("overwrite").parquet(f"{folder}/payloads")
        frame = spark.read.parquet(f"{folder}/payloads").cache()
        frame.count()
        queries = queries_of(name, frame, payloads, folder)
        for number in range(rounds + 2):
            for one, query in queries.items():
                if number < 2 and one.endswith("by hand"):
                    continue  # it is slow, and no warmer after a minute
                begin, before = time.perf_counter(), spent_by_all()
                query.write.format("noop").mode("overwrite").save()
                if number > 1:
                    found.setdefault(one, []).append((time.perf_counter() - begin, spent_by_all() - before))
        frame.unpersist()
    spark.stop()
    return found


def queries_of(name: str, frame: Any, payloads: list[bytes], folder: str) -> dict[str, Any]:
    """The queries of a case that this kwire has."""
    from pyspark.sql.pandas.functions import arrow_udf

    import kwire.spark as k

    functions = {name: columns(name, "payload"), f"{name}: identity": arrow_udf(lambda one: one, "binary")("payload")}
    if find_spec("kwire.payloads"):
        functions[f"{name}: made before"] = made_before(name, frame, functions[name], payloads, folder)
    if name == "record sets":
        functions[f"{name}: by hand"] = arrow_udf(by_hand, "array<struct<offset bigint, key binary, value binary>>")(
            "payload"
        )
        if hasattr(k, "record_sets_of"):
            functions[f"{name}: 3 fields"] = k.decode_records("payload", fields=FEW)
    queries = {one: frame.select(column.alias("made")) for one, column in functions.items()}
    if name != "record sets":
        return queries
    if hasattr(k, "record_sets_of"):
        queries[f"{name}: as a table"] = k.record_sets_of(frame, "payload")
        queries[f"{name}: as a table, 3 fields"] = k.record_sets_of(frame, "payload", fields=FEW)
    halves = payloads[: len(payloads) // 2], payloads[len(payloads) // 2 :]
    paths = [f"{folder}/{number}.capture" for number in range(len(halves))]
    for path, half in zip(paths, halves, strict=True):
        Path(path).write_bytes(a_capture(name, half))
    reader = frame.sparkSession.read.format("kwire").option("table", "records").option("ports", "9092")
    queries[f"{name}: capture"] = reader.load(paths)
    queries[f"{name}: capture, 3 fields"] = reader.option("columns", ",".join(FEW)).load(paths)
    return queries


def made_before(name: str, frame: Any, column: Any, payloads: list[bytes], folder: str) -> Any:
    """A column function that gives back what kwire has made of such payloads."""
    from pyspark.sql.pandas.functions import arrow_udf

    path = f"{folder}/{name}.arrow"
    made = alone(name, pa.array(payloads[: min(len(payloads), 10_000)], pa.binary()))
    with pa.ipc.new_file(path, pa.schema([("made", made.type)])) as out:
        out.write_table(pa.table({"made": made}))

    def given_back(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
        with pa.memory_map(path) as file:
            kept = pa.ipc.open_file(file).read_all().column(0)
            for one in columns:
                yield from kept.slice(0, len(one)).chunks

    given_back.__annotations__ = {"columns": Iterator[pa.Array], "return": Iterator[pa.Array]}
    return arrow_udf(given_back, frame.select(column).schema[0].dataType)("payload")


def compared(count: int, rounds: int, only: str, others: list[Path]) -> None:
    """Prints what each case takes in Spark, with this kwire and with those of other folders."""
    trees = [Path(__file__).parent.parent, *others]
    results: list[dict[str, list[tuple[float, float]]]] = [{} for _ in trees]
    for _ in range(rounds):
        for tree, result in zip(trees, results, strict=True):
            command = [sys.executable, __file__, "--spark", "--json", "--rounds", "1", "--count", str(count)]
            made = subprocess.run(
                [*command, "--only", only],
                env=os.environ | {"PYTHONPATH": str(tree)},
                cwd=tree,  # workers import from the folder that they are in
                stdout=subprocess.PIPE,
                check=True,
            )
            for name, rows in json.loads(made.stdout.splitlines()[-1]).items():
                result.setdefault(name, []).extend(rows)
    for name in results[0]:
        each = CASES[name.partition(":")[0]][1]
        for tree, result in zip(trees, results, strict=True):
            if name not in result:
                continue
            clock, cpu = (statistics.median(one[k] for one in result[name]) for k in (0, 1))
            scale = 1e6 / (count // each)
            print(f"{name:30} {clock * scale:10.2f} us clock {cpu * scale:10.2f} us CPU   {tree.name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=400_000, help="payloads, or records in them")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--tree", type=Path, action="append", default=[], help="a folder with another kwire")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.spark:
        without_spark(arguments.count, arguments.rounds, arguments.only)
        return
    if arguments.json:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(in_spark(arguments.count, arguments.rounds, arguments.only, folder)))
        return
    compared(arguments.count, arguments.rounds, arguments.only, arguments.tree)


if __name__ == "__main__":
    main()
