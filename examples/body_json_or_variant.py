"""Should the body of a message be JSON text or a VARIANT? The measurement for docs/explanation/body-as-json.md.

    python examples/body_json_or_variant.py [CAPTURE] [--rows 40000]

Takes the messages of a capture and measures, for both forms: what they cost to write in Python, how large they are in
memory and in Parquet, and what Spark takes to read them back and to query them. Python times are the best of five runs,
Spark times of three, to a sink that drops the rows. The VARIANT encoder here is a plain one that follows the Parquet
project's specification of the encoding; kwire itself does not need it.
"""

from __future__ import annotations

import argparse
import json
import struct
import tempfile
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import kwire.spark

# isort: split
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StructField, StructType, VariantType

import kwire.capture
from kwire import schema
from kwire.protocol.describe import undescribe

CAPTURE = Path(__file__).parents[1] / "tests/golden/kafka-3.9-zk-kafka-python/first-light.pcap"
VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)


def variant(value: Any) -> tuple[bytes, bytes]:
    """Value and metadata of a VARIANT."""
    names: set[str] = set()
    _names(value, names)
    known = sorted(name.encode() for name in names)
    ids = {name.decode(): number for number, name in enumerate(known)}
    ends = list(accumulate(map(len, known), initial=0))
    size = _bytes_for(max(ends[-1], len(known)))
    head = bytes([1 | 0x10 | (size - 1) << 6]) + len(known).to_bytes(size, "little")
    return _value(value, ids), head + _numbers(ends, size) + b"".join(known)


def _names(value: Any, names: set[str]) -> None:
    if isinstance(value, dict):
        names.update(value)
        for one in value.values():
            _names(one, names)
    elif isinstance(value, list):
        for one in value:
            _names(one, names)


def _bytes_for(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


def _numbers(numbers: list[int], size: int) -> bytes:
    return b"".join([number.to_bytes(size, "little") for number in numbers])


def _value(value: Any, ids: dict[str, int]) -> bytes:
    kind = type(value)
    if value is None:
        return b"\x00"
    if kind is bool:
        return b"\x04" if value else b"\x08"
    if kind is int:
        for code, size in ((3, 1), (4, 2), (5, 4), (6, 8)):
            if -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1:
                return bytes([code << 2]) + value.to_bytes(size, "little", signed=True)
    if kind is float:
        return b"\x1c" + struct.pack("<d", value)
    if kind is bytes:
        return b"\x3c" + len(value).to_bytes(4, "little") + value
    if kind is dict or kind is list:
        keys = sorted(value) if kind is dict else []
        parts = [_value(value[key], ids) for key in keys] if kind is dict else [_value(one, ids) for one in value]
        ends = list(accumulate(map(len, parts), initial=0))
        size = _bytes_for(ends[-1])
        large = len(parts) > 255
        count = len(parts).to_bytes(4 if large else 1, "little")
        if kind is list:
            return bytes([3 | (size - 1 | large << 2) << 2]) + count + _numbers(ends, size) + b"".join(parts)
        id_size = _bytes_for(len(ids))
        head = bytes([2 | (size - 1 | (id_size - 1) << 2 | large << 4) << 2]) + count
        return head + _numbers([ids[key] for key in keys], id_size) + _numbers(ends, size) + b"".join(parts)
    text = str(value).encode()
    return bytes([1 | len(text) << 2]) + text if len(text) < 64 else b"\x40" + len(text).to_bytes(4, "little") + text


def best(run: Callable[[], object], times: int) -> float:
    """Seconds of the fastest run."""
    found = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        run()
        found = min(found, time.perf_counter() - began)
    return found


def python(capture: Path) -> tuple[list[str], list[tuple[bytes, bytes]]]:
    """Prints what each form costs in Python. Returns the bodies in both."""
    objects: dict[str, list[tuple[Any, int]]] = {}
    with capture.open("rb") as file:
        for batch in kwire.capture.read(file, "messages", secrets=True):
            for row in batch.to_pylist():
                if row["body"] is not None:
                    known = schema.request if row["direction"] == "request" else schema.response
                    made = undescribe(known(row["api_key"]).name, json.loads(row["body"]))
                    objects.setdefault(f"{row['api_name']} {row['direction']}", []).append((made, row["api_version"]))
    print(f"{'message':24}{'count':>6}{'json us':>10}{'bytes':>8}{'variant us':>12}{'bytes':>8}")
    texts, variants = [], []
    for name, found in sorted(objects.items()):
        json_time = best(lambda f=found: [one.to_json(version) for one, version in f], 5)  # type: ignore[misc]
        made = [one.to_json(version) for one, version in found]

        def encode(f: list[tuple[Any, int]] = found) -> list[tuple[bytes, bytes]]:
            return [variant(one.to_dict(version)) for one, version in f]

        variant_time = best(encode, 5)
        also = encode()
        count = len(found)
        print(
            f"{name:24}{count:6}{json_time / count * 1e6:10.1f}{sum(map(len, made)) / count:8.0f}"
            f"{variant_time / count * 1e6:12.1f}{sum(len(a) + len(b) for a, b in also) / count:8.0f}"
        )
        texts += made
        variants += also
    return texts, variants


def in_spark(texts: list[str], variants: list[tuple[bytes, bytes]], rows: int, folder: Path) -> None:
    """Prints what each form costs in Spark."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )

    def bodies(ids: pa.Array) -> pa.Array:
        numbers = [number % len(texts) for number in ids.to_pylist()]
        made = pa.array([dict(zip(("value", "metadata"), variants[one], strict=True)) for one in numbers], VARIANT)
        return pa.StructArray.from_arrays(
            [pa.array([texts[one] for one in numbers], pa.string()), made],
            fields=[pa.field("j", pa.string()), pa.field("v", VARIANT)],
        )

    bodies.__annotations__ = {"ids": pa.Array, "return": pa.Array}
    returns = StructType.fromDDL("j string").add(StructField("v", VariantType()))
    made = arrow_udf(bodies, returns)  # type: ignore[call-overload]

    def both(count: int, partitions: int) -> DataFrame:
        return spark.range(count, numPartitions=partitions).select(made("id").alias("b")).select("b.*")

    frames: dict[str, DataFrame] = {}
    for name in ("j", "v"):
        # For the size each message once: repeated ones cost Parquet next to nothing.
        once = folder / f"{name}-once"
        both(len(texts), 1).select(name).write.parquet(str(once))
        size = sum(part.stat().st_size for part in once.glob("*.parquet"))
        print(f"{'JSON' if name == 'j' else 'VARIANT'} in Parquet: {size:,} bytes for {len(texts)} messages")
        path = folder / name
        both(rows, 2).select(name).write.parquet(str(path))
        frames[name] = spark.read.parquet(str(path))
        frames[name].createOrReplaceTempView(name)
    queries = {
        "JSON: read": "SELECT j FROM j",
        "VARIANT: read": "SELECT v FROM v",
        "JSON: parse_json": "SELECT parse_json(j) FROM j",
        "JSON: one path, get_json_object": "SELECT get_json_object(j, '$.topics[0].name') FROM j",
        "JSON: one path, parse_json(j):...": "SELECT parse_json(j):topics[0].name::string FROM j",
        "VARIANT: one path, v:...": "SELECT v:topics[0].name::string FROM v",
        "JSON: arrays, from_json": "SELECT inline(from_json(j, 'topics array<struct<name string>>').topics) FROM j",
        "VARIANT: arrays, variant_explode": "SELECT t.value:name::string FROM v, LATERAL variant_explode(v:topics) t",
    }
    print(f"\nSpark, {rows:,} rows, microseconds a row")
    for name, query in queries.items():
        frame = spark.sql(query)
        taken = best(lambda f=frame: f.write.format("noop").mode("overwrite").save(), 3)  # type: ignore[misc]
        print(f"{name:36}{taken / rows * 1e6:8.2f}")
    spark.stop()


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description="JSON text or VARIANT for the body of a message?")
    parser.add_argument("capture", nargs="?", type=Path, default=CAPTURE)
    parser.add_argument("--rows", type=int, default=40_000)
    args = parser.parse_args()
    texts, variants = python(args.capture)
    print()
    with tempfile.TemporaryDirectory() as folder:
        in_spark(texts, variants, args.rows, Path(folder))


if __name__ == "__main__":
    main()
