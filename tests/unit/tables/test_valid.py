"""Little input that is much text in columns: Arrow arrays stay valid, rows all come, and memory is bounded.

What one name of a topic in many rows, or a few kilobytes of compressed records, would be in columns is counted before
it is written. Each input is read in a process of its own, whose memory is limited: one that asked for gigabytes would
end with ``MemoryError``, and the most that it had is compared with what its input justifies.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from packets import Connection, pcap, produce, request
from record_sets import batch, gzipped, message
from valid_batches import valid

from kwire import capture, encode_request, encode_response, log, messages
from kwire.errors import LimitError
from kwire.events.hono import KINDS, TELEMETRY
from kwire.records import batching, columns, to_arrow
from kwire.records.batching import MOST_BYTES, MOST_ROWS
from kwire.records.columnar import decode_groups, decode_pieces, decode_sets
from kwire.tables import client_metrics

READ = """
import json, resource, sys
import pyarrow as pa
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
kind, path = sys.argv[1:3]
from kwire import capture, log
from kwire.records import to_arrow
def batches(of, path):
    if kind == "columns":
        yield to_arrow(open(of, "rb").read())
    elif kind == "segment":
        yield from log.read(open(of, "rb"), name=path)
    else:
        yield from capture.read(open(of, "rb"), kind, name=path)
list(batches(path + ".plain", "plain"))  # so that the kernels are there
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows, most, last = 0, 0, None
for batch in batches(path, sys.argv[3]):
    batch.validate(full=True)
    rows += batch.num_rows
    most = max(most, batch.num_rows)
    last = {name: str(batch.column(name)[-1])[:40] for name in batch.schema.names}
    del batch
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
print(json.dumps({"rows": rows, "most": most, "megabytes": grown, "last": last}))
"""
SMALL = b"\x0c\0\0\0\1\1\0"
"""A record of seven bytes: no key, no value, no headers."""


def read(folder: Path, kind: str, data: bytes, plain: bytes, name: str = "n") -> dict[str, object]:
    """What a process that reads ``data`` had."""
    path = folder / "hostile"
    path.write_bytes(data)
    (folder / "hostile.plain").write_bytes(plain)
    done = subprocess.run(
        [sys.executable, "-c", READ, kind, str(path), name],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, object] = json.loads(done.stdout)
    print(found)
    return found


def produced(*records: bytes, topic: str = "t") -> bytes:
    """A capture of Produce requests."""
    connection = Connection(mss=60_000).open()
    for number, one in enumerate(records):
        connection.send(produce(number, 1, one, topic))
    return pcap(connection.packets)


def packed(count: int) -> bytes:
    """A batch of records of seven bytes, compressed."""
    return batch(zstandard.ZstdCompressor().compress(SMALL * count), count, attributes=4)


@pytest.mark.wide
@pytest.mark.parametrize("table", ["records", "hono"])
def test_a_topic_of_32_kb_with_140000_records_of_seven_bytes_is_read_in_small_batches(
    table: str, tmp_path: Path
) -> None:
    topic = KINDS[TELEMETRY] + "t" * 32_000
    count = 140_000 if table == "records" else 9_000
    data = produced(batch(SMALL * count, count), topic=topic)
    found = read(tmp_path, table, data, produced(batch(SMALL, 1)))
    assert found["rows"] == count
    if table == "records":
        assert len(data) < 1_100_000
        # Beyond the limit of text the name is not repeated: what is left of a row has some 400 bytes.
        assert int(str(found["most"])) <= MOST_BYTES // 400
    assert float(str(found["megabytes"])) < 700


@pytest.mark.wide
def test_a_topic_of_32_kb_with_20000_problems_is_read_in_small_batches(tmp_path: Path) -> None:
    broken = message(magic=0) * 2 + bytes(8) + b"\0\0\0\1\0"
    parts = b"".join(b"\0\0\0\7" + len(broken).to_bytes(4, "big") + broken for _ in range(20_000))
    name = b"t" * 32_000
    body = b"\0\1\0\0\3\xe8\0\0\0\1" + len(name).to_bytes(2, "big") + name + (20_000).to_bytes(4, "big") + parts
    data = pcap(Connection(mss=60_000).open().send(request(0, 2, 1, body)).packets)
    found = read(tmp_path, "records", data, produced(batch(SMALL, 1)))
    assert found["rows"] == 60_000
    # Beyond the limit of text.
    assert found["last"]["status"] == "too_large"  # type: ignore[index]
    assert float(str(found["megabytes"])) < 900


@pytest.mark.wide
def test_the_name_of_a_capture_or_segment_counts_in_every_row(tmp_path: Path) -> None:
    name = "d/" * 2_000 + "t-0/00000000000000000000.log"
    count = 700_000
    for kind, data, plain in (
        ("records", produced(batch(SMALL * count, count)), produced(batch(SMALL, 1))),
        ("segment", batch(SMALL * count, count), batch(SMALL, 1)),
    ):
        found = read(tmp_path, kind, data, plain, name)
        assert found["rows"] == count
        assert int(str(found["most"])) <= MOST_BYTES // len(name)
        assert float(str(found["megabytes"])) < 700


@pytest.mark.wide
@pytest.mark.parametrize("kind", ["columns", "segment", "records"])
def test_three_kilobytes_of_record_set_with_4_million_records_take_little_more_than_they_hold(
    kind: str, tmp_path: Path
) -> None:
    count = (32 << 20) // 7
    data, plain = packed(count), batch(SMALL, 1)
    assert len(data) < 5_000
    if kind == "records":
        data, plain = produced(data), produced(plain)
    found = read(tmp_path, kind, data, plain)
    assert found["rows"] == count
    assert float(str(found["megabytes"])) < 64 + 20 * 32
    if kind != "columns":
        assert int(str(found["most"])) <= MOST_ROWS


@pytest.mark.wide
def test_eight_record_sets_of_three_kilobytes_take_no_more_than_one(tmp_path: Path) -> None:
    count = (32 << 20) // 7
    found = read(tmp_path, "records", produced(packed(count) * 8), produced(batch(SMALL, 1)))
    assert found["rows"] == 8 * count
    # What all of them decompress to, and the columns of one.
    assert float(str(found["megabytes"])) < 8 * 32 + 64 + 20 * 32


def test_more_records_than_one_batch_can_hold_are_a_limit_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MOST_ROWS_TOGETHER", 10)
    assert to_arrow(batch(SMALL * 10, 10)).num_rows == 10
    with pytest.raises(LimitError, match="11 records are beyond the limit of one Arrow batch"):
        to_arrow(batch(SMALL * 11, 11))


def test_a_subscription_of_64_kb_in_thousands_of_pushes_is_read_in_small_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pushes without a data point too: each has a row, and that has the metrics that were asked for."""
    wanted = tuple(f"{number:07}" for number in range(4_000))
    subscribed = messages.GetTelemetrySubscriptionsResponse(
        client_instance_id=UUID(int=1), subscription_id=7, push_interval_ms=1000, requested_metrics=list(wanted)
    )
    asks = messages.GetTelemetrySubscriptionsRequest(client_instance_id=UUID(int=1))
    push = messages.PushTelemetryRequest(client_instance_id=UUID(int=1), subscription_id=7)
    connection = Connection(mss=60_000).open()
    connection.send(encode_request(asks, api_version=0, correlation_id=1))
    connection.answer(encode_response(subscribed, api_version=0, correlation_id=1))
    connection.send(*(encode_request(push, api_version=0, correlation_id=number) for number in range(2, 1_002)))
    batches = list(valid(capture.read(io.BytesIO(pcap(connection.packets)), "client_metrics")))
    assert sum(one.num_rows for one in batches) == 1_002
    assert all(one.num_rows <= 2 + client_metrics.BATCH_TEXT // (15 * len(wanted)) for one in batches)


def cut(monkeypatch: pytest.MonkeyPatch, most: int, rows: int) -> None:
    """Batches of at most so many bytes and rows, wherever batches are cut."""

    def smaller(costs: batching.Ints, counts: batching.Ints | None = None, **_: int) -> object:
        return whole(costs, counts, most=most, most_rows=rows)

    whole = batching.batch_ranges
    for name in [one for one in sys.modules if one.startswith("kwire.")]:
        if getattr(sys.modules[name], "batch_ranges", None) is whole:
            monkeypatch.setattr(sys.modules[name], "batch_ranges", smaller)
    monkeypatch.setattr(columns, "MOST_ROWS", rows)
    monkeypatch.setattr(columns, "MOST_BYTES", most)


GOLDEN = Path(__file__).parents[2] / "golden"
CAPTURES = sorted(GOLDEN.glob("odd/*.pcap*")) + sorted(GOLDEN.glob("kafka-4.3-kraft-events/*.pcap*"))
SEGMENTS = sorted(GOLDEN.glob("segments/**/*.log"))


def rows_of(batches: list[pa.RecordBatch]) -> pa.Table | None:
    return pa.Table.from_batches(valid(batches)).combine_chunks() if batches else None


def tables_of() -> dict[str, pa.Table | None]:
    """The rows of some captures and segments in all tables."""
    found = {}
    for path in CAPTURES:
        if path.stat().st_size < 300_000:
            for table in (
                "frames",
                "messages",
                "records",
                "client_metrics",
                "calls",
                "connections",
                "cloudevents",
                "hono",
            ):
                found[f"{path} {table}"] = rows_of(
                    list(capture.read(io.BytesIO(path.read_bytes()), table, name="c" * 50))
                )  # type: ignore[call-overload]
    for path in SEGMENTS:
        damaged = bytearray(path.read_bytes())
        damaged[len(damaged) // 2 : len(damaged) // 2 + 8] = b"\xff" * 8
        for name, data in (("whole", bytes(damaged)), ("twice", bytes(damaged) * 2)):
            found[f"{path} {name}"] = rows_of(list(log.read(io.BytesIO(data), name=str(path))))
            found[f"{path} {name} batches"] = rows_of(list(log.batches(io.BytesIO(data), name=str(path))))
    return found


@pytest.mark.wide
@pytest.mark.parametrize(("most", "rows"), [(1, 1), (1000, 7), (1 << 20, 3)])
def test_rows_and_their_order_do_not_depend_on_where_batches_are_cut(
    most: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = tables_of()
    assert sum(one is not None for one in expected.values()) > 20
    cut(monkeypatch, most, rows)
    found = tables_of()
    assert found.keys() == expected.keys()
    for name, table in expected.items():
        assert (found[name] is None) == (table is None), name
        assert table is None or found[name].equals(table), name  # type: ignore[union-attr]


def mixture() -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Record sets of all kinds, two of them empty, as one buffer with starts and lengths."""
    wrapper = message(None, gzipped(message() + message(offset=1)), attributes=1, offset=1)
    sets = [
        batch(SMALL * 5, 5) + wrapper,
        b"",
        batch(b"\xff" * 20, 3) + batch(SMALL * 2, 3) + message(magic=0) * 3,
        b"",
        packed(9) + batch(SMALL * 2, 2),
    ]
    lengths = np.array([len(one) for one in sets], np.int64)
    return np.frombuffer(b"".join(sets), np.uint8), np.cumsum(lengths) - lengths, lengths


@pytest.mark.parametrize("rows", [1, 2, 4, 1000])
def test_pieces_and_groups_are_the_records_of_all_sets(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    together = decode_sets(*mixture())
    assert together.problems
    cut(monkeypatch, 1 << 20, rows)
    pieces = list(decode_pieces(*mixture()))
    groups = list(decode_groups(*mixture()))
    for found in ([one.found for one in pieces], [one.found for one in groups]):
        for one in found:
            one.batch.validate(full=True)
        assert pa.Table.from_batches([one.batch for one in found]).equals(pa.Table.from_batches([together.batch]))
    assert all(one.found.batch.num_rows <= rows for one in pieces)
    index = np.concatenate([one.found.set_index for one in pieces])
    assert index.tolist() == together.set_index.tolist()
    assert sorted(told for one in pieces for told in one.found.problems) == sorted(together.problems)
    assert [one.first for one in groups] == np.cumsum([0, *(one.sets for one in groups)]).tolist()[:-1]
    assert sum(one.sets for one in groups) == 5
    index = np.concatenate([one.found.set_index + one.first for one in groups])
    assert index.tolist() == together.set_index.tolist()
    told = [(number + one.first, at, text) for one in groups for number, at, text in one.found.problems]
    assert told == together.problems


def test_pieces_that_are_read_in_turn_do_not_disturb_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MOST_ROWS", 4)
    data = packed(3) + batch(zstandard.ZstdCompressor().compress(b"\x0e\0\0\0\1\2x\0" * 3), 3, attributes=4)
    buffer = np.frombuffer(data, np.uint8)
    sets = (buffer, np.zeros(1, np.int64), np.array([len(data)], np.int64))
    cut(monkeypatch, 1 << 20, 3)
    expected = decode_sets(*sets).batch.column("value").to_pylist()
    one, other = decode_pieces(*sets), decode_pieces(*sets)
    found: tuple[list[object], list[object]] = ([], [])
    for pair in zip(one, other, strict=True):
        for values, piece in zip(found, pair, strict=True):
            values += piece.found.batch.column("value").to_pylist()
    assert found == (expected, expected)
