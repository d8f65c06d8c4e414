"""How fast a capture becomes a table: bytes per second and nanoseconds per row, for each table and kind of traffic.

    python benchmarks/capture.py [--size 64] [--rounds 5] [--window MB] [--only TEXT] [--stages] [--threads 2]
    [--json OUT]

The captures are made here, in memory: Produce requests over several connections and their responses, on Ethernet, in
segments of 1,448 bytes; and small requests, heartbeats, offset commits and metadata, also over one connection, with
100,000 of them sent before the first is answered. A row is a record in
``records`` and a frame in ``frames`` and ``messages``. ``objects`` is ``messages`` with bodies as Python objects, as
small captures are read, of eight megabytes. Rounds of all cases are interleaved; figures are medians. ``--stages`` says
where the time goes, ``--threads`` reads several captures at once (kernels run without the GIL). ``script`` is what one
would write without kwire: a loop over packets with ``struct``, and kafka-python for the records; it gets one frame
order, no lost packets, and the port.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import statistics
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from kafka.record.memory_records import MemoryRecords

import kwire
from kwire import capture, messages
from kwire.kernels import framing, packets, programs, streams, tracking
from kwire.kernels.engine import MACHINE, PYTHON, Engine, using
from kwire.kernels.records import read_records, scan
from kwire.records import Codec, Record, encode
from kwire.tables import messages as table_of_messages

MSS = 1448
PORT = 9092
CONNECTIONS = 8
PAIRS = 64
"""Different requests of a capture."""


@dataclass
class Case:
    """A capture in memory. ``records`` and ``frames``: how many it has."""

    name: str
    data: bytes
    records: int
    frames: int


def record_set(some: random.Random, count: int, size: int, magic: int, codec: Codec) -> bytes:
    words = [f"{some.randrange(1 << 24):x}" for _ in range(200)]
    made = [
        Record(
            b"key-%06d" % some.randrange(10**6),
            " ".join(some.choices(words, k=size // 6 + 1)).encode()[:size],
            timestamp=1_700_000_000_000 + k,
        )
        for k in range(count)
    ]
    return encode(made, magic=magic, compression=codec)


def produced(
    some: random.Random, per_batch: int, size: int, magic: int, codec: Codec
) -> tuple[list[bytes], list[bytes]]:
    """Produce requests and their responses, with ``per_batch`` records of ``size`` bytes."""
    version = 9 if magic == 2 else 2
    requests, answers = [], []
    for k in range(PAIRS):
        records = record_set(some, per_batch, size, magic, codec)
        topic = {"name": "orders", "partition_data": [{"index": k % 4, "records": records}]}
        body = messages.ProduceRequest.from_dict({"acks": -1, "timeout_ms": 1000, "topic_data": [topic]})
        requests.append(kwire.encode_request(body, api_version=version, correlation_id=0, client_id="producer-1"))
        done = {"name": "orders", "partition_responses": [{"index": k % 4}]}
        answers.append(
            kwire.encode_response(
                messages.ProduceResponse.from_dict({"responses": [done]}), api_version=version, correlation_id=0
            )
        )
    return requests, answers


def small(some: random.Random) -> tuple[list[bytes], list[bytes]]:
    """What consumers ask all day, and the answers: heartbeats, offset commits of 16 partitions, metadata of 6."""
    requests, answers = [], []
    topics = [f"shop.orders.{some.randrange(1 << 16):x}" for _ in range(4)]
    for k in range(PAIRS):
        member = {"group_id": "billing", "generation_id": 7, "member_id": f"consumer-{k}-{some.randrange(1 << 64):x}"}
        topic = topics[k % 4]
        if k % 8 == 7:
            asked: Any = messages.MetadataRequest.from_dict({"topics": [{"name": topic}]})
            partitions = [
                {"partition_index": n, "leader_id": n % 3, "replica_nodes": [0, 1, 2], "isr_nodes": [0, 1, 2]}
                for n in range(6)
            ]
            brokers = [{"node_id": n, "host": f"broker-{n}.example.com", "port": PORT} for n in range(3)]
            told = {"brokers": brokers, "topics": [{"name": topic, "partitions": partitions}]}
            answered: Any = messages.MetadataResponse.from_dict(told)
            version = 9
        elif k % 2:
            offsets = [{"partition_index": n, "committed_offset": some.randrange(1 << 40)} for n in range(16)]
            asked = messages.OffsetCommitRequest.from_dict(
                {
                    "group_id": "billing",
                    "generation_id_or_member_epoch": 7,
                    "member_id": member["member_id"],
                    "topics": [{"name": topic, "partitions": offsets}],
                }
            )
            done = [{"partition_index": n} for n in range(16)]
            answered = messages.OffsetCommitResponse.from_dict({"topics": [{"name": topic, "partitions": done}]})
            version = 8
        else:
            asked, answered, version = messages.HeartbeatRequest.from_dict(member), messages.HeartbeatResponse(), 4
        requests.append(kwire.encode_request(asked, api_version=version, correlation_id=0, client_id="billing-1"))
        answers.append(kwire.encode_response(answered, api_version=version, correlation_id=0))
    return requests, answers


def case(
    name: str,
    megabytes: int,
    *,
    per_batch: int = 0,
    size: int = 100,
    magic: int = 2,
    codec: Codec = "none",
    disorder: bool = False,
    connections: int = CONNECTIONS,
    in_flight: int = 1,
    traffic: tuple[list[bytes], list[bytes]] | None = None,
) -> Case:
    """A capture of about so many megabytes: Produce requests (``produced``), or without records what is ``small``.

    ``in_flight``: requests that each connection sends before the first of them is answered. ``traffic``: other
    requests and their responses, ``PAIRS`` of each."""
    some = random.Random(1)
    requests, answers = traffic or (produced(some, per_batch, size, magic, codec) if per_batch else small(some))
    ends = [[1000, 1000] for _ in range(connections)]
    now = [1_700_000_000_000_000]
    packets: list[bytes] = []
    total = 0

    def send(connection: int, side: int, data: bytes) -> None:
        nonlocal total
        for at in range(0, len(data), MSS):
            part = data[at : at + MSS]
            hosts = [bytes([10, 0, 0, 1 + connection]), bytes([10, 0, 1, 1])]
            ports = [40000 + connection, PORT]
            header = struct.pack(
                ">12xHBBHHHBBH4s4sHHIIBBHHH",
                0x0800, 0x45, 0, 40 + len(part), 0, 0, 64, 6, 0, hosts[side], hosts[1 - side],
                ports[side], ports[1 - side], ends[connection][side] & 0xFFFFFFFF,
                ends[connection][1 - side] & 0xFFFFFFFF, 0x50, 16, 65535, 0, 0,
            )  # fmt: skip
            now[0] += 5
            length = len(header) + len(part)
            packets.append(struct.pack("<IIII", *divmod(now[0], 1_000_000), length, length) + header + part)
            total += 16 + length
            ends[connection][side] += len(part)

    frames = 0
    number = 0
    begun = 0  # packets up to which each connection has had a request and its response
    while total < megabytes << 20:
        picks = [[some.randrange(PAIRS) for _ in range(in_flight)] for _ in range(connections)]
        for connection in range(connections):
            for k, pick in enumerate(picks[connection]):
                asked = bytearray(requests[pick])
                asked[4:8] = struct.pack(">i", number + k)
                send(connection, 0, struct.pack(">i", len(asked)) + asked)
            for k, pick in enumerate(picks[connection]):
                answered = struct.pack(">i", number + k) + answers[pick][4:]
                send(connection, 1, struct.pack(">i", len(answered)) + answered)
            frames += 2 * in_flight
        number += in_flight
        begun = begun or len(packets)
    if disorder:
        # There are no SYNs: where a connection begins is said by its first packet, which has to be the first.
        for at in range(begun, len(packets) - 8, 8):
            if some.random() < 0.5:
                part = packets[at : at + 8]
                some.shuffle(part)
                packets[at : at + 8] = part
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
    return Case(name, head + b"".join(packets), frames // 2 * per_batch, frames)


CASES: dict[str, dict[str, Any]] = {
    "100 records/batch": {"per_batch": 100},
    "100 records/batch, out of order": {"per_batch": 100, "disorder": True},
    "1 record/batch": {"per_batch": 1},
    "magic 1, 20 messages/set": {"per_batch": 20, "magic": 1},
    "100 records/batch, lz4": {"per_batch": 100, "codec": "lz4"},
    "100 records/batch, zstd": {"per_batch": 100, "codec": "zstd"},
    "small requests": {},
    "small requests, one connection": {"connections": 1},
    "small requests, 100,000 in flight": {"connections": 1, "in_flight": 100_000},
}


def table(one: Case, name: Any, window: int | None) -> int:
    return sum(batch.num_rows for batch in capture.read(io.BytesIO(one.data), name, window=window))


def messages_of(one: Case, window: int | None) -> int:
    """Rows of ``messages`` of a capture that may be cut off."""
    rows = 0
    with contextlib.suppress(kwire.CaptureError):
        for batch in capture.read(io.BytesIO(one.data), "messages", window=window):
            rows += batch.num_rows
    return rows


def by_objects(one: Case, window: int | None) -> int:
    """The same with bodies as objects."""
    with mock.patch.object(table_of_messages, "choose", return_value=PYTHON):
        return messages_of(one, window)


def script(one: Case) -> int:
    """Records of a capture as a plain script reads them."""
    data = one.data
    at = 24
    streams: dict[tuple[bytes, bytes], bytearray] = {}
    asked: dict[tuple[bytes, bytes, int], tuple[int, int]] = {}
    count = 0
    while at < len(data):
        seconds, micros, size, _ = struct.unpack_from("<IIII", data, at)
        packet = data[at + 16 : at + 16 + size]
        at += 16 + size
        ends, ports = packet[26:34], packet[34:38]
        stream = streams.setdefault((ends, ports), bytearray())
        stream += packet[54:]
        while len(stream) >= 4 and len(stream) >= 4 + (length := int.from_bytes(stream[:4], "big")):
            frame = bytes(stream[4 : 4 + length])
            del stream[: 4 + length]
            if ports[2:4] == PORT.to_bytes(2, "big"):
                (number,) = struct.unpack_from(">i", frame, 4)
                asked[ends, ports, number] = (seconds, micros)
                for topic in kwire.decode_request(frame).body.topic_data:
                    for partition in topic.partition_data:
                        records = MemoryRecords(bytes(partition.records))
                        while (batch := records.next_batch()) is not None:
                            batch.validate_crc()
                            for record in batch:
                                _ = record.offset, record.timestamp, record.key, record.value, record.headers
                                count += 1
            else:
                other = ends[4:] + ends[:4], ports[2:] + ports[:2], int.from_bytes(frame[:4], "big")
                asked.pop(other)
    return count


STAGES = {
    packets.pcap_packets: "packets",
    tracking.tcp_segments: "segments",
    streams.place: "streams",
    framing.frames_and_pairs: "frames and pairs",
    streams.keep: "keep",
    programs.locate: "locate",
    scan: "scan",
    read_records: "records",
}


class Timed(Engine):
    """Machine code that says how long each kernel takes."""

    def __init__(self) -> None:
        super().__init__("timed")
        self.spent: dict[str, float] = {}

    def __call__(self, kernel: Any) -> Any:
        inner, label = MACHINE(kernel), STAGES.get(kernel, "other kernels")

        def outer(*args: Any) -> Any:
            begin = time.perf_counter()
            try:
                return inner(*args)
            finally:
                self.spent[label] = self.spent.get(label, 0) + time.perf_counter() - begin

        return outer


def stages(one: Case, window: int | None) -> dict[str, float]:
    """Seconds by kernel of reading ``records``; the rest is Python, Arrow and decompression."""
    timed = Timed()
    begin = time.perf_counter()
    with using(timed):
        table(one, "records", window)
    whole = time.perf_counter() - begin
    return {**timed.spent, "the rest": whole - sum(timed.spent.values())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64, help="megabytes of each capture")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--window", type=float, help="megabytes (by default what reading chooses)")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--stages", action="store_true")
    parser.add_argument("--script", action="store_true", help="compare with a plain script (a part of the capture)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    window = args.window and int(args.window * (1 << 20))

    small = case("warm-up", 1, per_batch=3)
    begin = time.perf_counter()
    for name in ("frames", "messages", "records"):
        table(small, name, window)
    print(f"first batches of the three tables in this process: {time.perf_counter() - begin:.2f} s\n")

    results: dict[str, Any] = {}
    for title, options in CASES.items():
        if args.only not in title:
            continue
        one = case(title, args.size, **options)
        times: dict[str, list[float]] = {}
        for _ in range(args.rounds):
            for name in ("frames", "messages", "records"):
                if name == "records" and not one.records:
                    continue
                begin = time.perf_counter()
                rows = table(one, name, window)
                times.setdefault(name, []).append(time.perf_counter() - begin)
                assert rows == (one.records if name == "records" else one.frames), (one.name, name, rows)
            if args.threads > 1 and one.records:
                begin = time.perf_counter()
                with ThreadPoolExecutor(args.threads) as pool:
                    list(pool.map(table, [one] * args.threads, ["records"] * args.threads, [window] * args.threads))
                times.setdefault("threads", []).append((time.perf_counter() - begin) / args.threads)
        few = Case(one.name, one.data[: 8 << 20], 0, 0)
        begin = time.perf_counter()
        rows = by_objects(few, window)
        spent = time.perf_counter() - begin
        found: dict[str, Any] = {}
        for name, taken in times.items():
            median = statistics.median(taken)
            count = one.frames if name in ("frames", "messages") else one.records
            found[name] = {"MB/s": len(one.data) / 1e6 / median, "ns/row": median / count * 1e9}
        found["objects"] = {"MB/s": len(few.data) / 1e6 / spent, "ns/row": spent / rows * 1e9}
        print(f"{one.name} ({len(one.data) / 1e6:.0f} MB, {one.frames:,} frames, {one.records:,} records)")
        for name, figures in found.items():
            print(f"  {name:10} {figures['MB/s']:8.0f} MB/s {figures['ns/row']:10.0f} ns/row")
        if args.script and one.records:
            part = case(title, 3, **{**options, "disorder": False})
            begin = time.perf_counter()
            assert script(part) == part.records
            spent = time.perf_counter() - begin
            rate = len(part.data) / 1e6 / spent
            found["script"] = {"MB/s": rate, "ns/row": spent / part.records * 1e9}
            print(f"  {'script':10} {rate:8.1f} MB/s {spent / part.records * 1e9:10.0f} ns/row")
        if args.stages and one.records:
            found["stages"] = stages(one, window)
            whole = sum(found["stages"].values())
            for name, seconds in found["stages"].items():
                print(f"    {name:18} {seconds / whole * 100:5.1f} % {seconds / one.records * 1e9:8.1f} ns/record")
        results[one.name] = found
        print()
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
