"""What the tables ``transactions`` and ``journeys`` cost beside ``frames`` and ``partitions``, and what they remember.

    python benchmarks/flows.py [--records 1000000] [--batch 100] [--size 100] [--rounds 3] [--memory 4]

The capture has a producer of transactions, a consumer that reads what was committed, and its commits: ``--records``
records in Produce requests of ``--batch`` records of ``--size`` bytes each. Rounds are interleaved; figures are medians
of CPU time. ``--memory N`` reads the same capture N times as long without keeping it, and prints the
largest memory of the process after each part.
"""

from __future__ import annotations

import argparse
import io
import resource
import statistics
import struct
import time
from collections.abc import Iterator
from typing import Any

import kwire
from kwire import capture, messages
from kwire.records import Record, encode
from kwire.testing.packets import ETHERNET, Packet, write_pcap

CASES: tuple[tuple[str, ...], ...] = (
    ("frames",),
    ("partitions",),
    ("transactions",),
    ("journeys",),
    ("frames", "transactions"),
)
PARTITIONS = 8
EVERY = 20
"""Produce requests of a transaction."""
START = 1_700_000_000_000_000_000


class Talk:
    """A connection whose frames become packets, one each."""

    def __init__(self, port: int, client: str) -> None:
        self.port, self.client, self.at, self.id = port, client, [1, 1], 0

    def _packet(self, clock: int, side: int, data: bytes) -> Iterator[Packet]:
        for begin in range(0, len(data), 32_000):
            part = data[begin : begin + 32_000]
            ports = (self.port, 9092) if side == 0 else (9092, self.port)
            tcp = struct.pack(
                ">HHIIBBHHH",
                *ports,
                self.at[side] & 0xFFFFFFFF,
                self.at[1 - side] & 0xFFFFFFFF,
                0x50,
                0x18,
                65535,
                0,
                0,
            )
            ends = (b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x02")
            source, target = ends if side == 0 else ends[::-1]
            ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(part), 0, 0, 64, 6, 0, source, target)
            whole = bytes(12) + b"\x08\x00" + ip + tcp + part
            self.at[side] += len(part)
            yield Packet(clock, whole, len(whole), ETHERNET)

    def ask(self, clock: int, took: int, version: int, asked: Any, answered: Any) -> Iterator[Packet]:
        """A request and its response."""
        self.id += 1
        data = kwire.encode_request(asked, api_version=version, correlation_id=self.id, client_id=self.client)
        yield from self._packet(clock, 0, len(data).to_bytes(4, "big") + data)
        data = kwire.encode_response(answered, api_version=version, correlation_id=self.id)
        yield from self._packet(clock + took, 1, len(data).to_bytes(4, "big") + data)


class World:
    """A producer, a consumer and their broker; ``packets`` goes on where it stopped."""

    def __init__(self, batch: int, size: int) -> None:
        self.producer, self.reader, self.coordinator = Talk(50_001, "p"), Talk(50_002, "c"), Talk(50_003, "c")
        self.records = [Record(None, b"x" * size, timestamp=1_700_000_000_000) for _ in range(batch)]
        self.batch, self.ends, self.n = batch, [0] * PARTITIONS, 0
        self.whole = encode(self.records, producer_id=7, producer_epoch=0, is_transactional=True)

    def packets(self, requests: int) -> Iterator[Packet]:
        """So many Produce requests, and what follows from them."""
        ids = {"transactional_id": "t"}
        asked: Any
        answered: Any
        done: Any
        who = {"producer_id": 7, "producer_epoch": 0}
        for _ in range(requests):
            n, clock = self.n, START + self.n * 1_000_000
            self.n += 1
            part = n % PARTITIONS
            if n % EVERY == 0:
                old = {f"v3_and_below_{name}": value for name, value in {**ids, **who}.items()}
                topics = [{"name": "t", "partitions": list(range(PARTITIONS))}]
                results = [{"name": "t", "results_by_partition": [{"partition_index": k} for k in range(PARTITIONS)]}]
                asked = messages.AddPartitionsToTxnRequest.from_dict({**old, "v3_and_below_topics": topics})
                answered = messages.AddPartitionsToTxnResponse.from_dict({"results_by_topic_v3_and_below": results})
                yield from self.producer.ask(clock, 1000, 3, asked, answered)
            topic = {"name": "t", "partition_data": [{"index": part, "records": self.whole}]}
            asked = messages.ProduceRequest.from_dict({**ids, "acks": -1, "timeout_ms": 1000, "topic_data": [topic]})
            done = {"name": "t", "partition_responses": [{"index": part, "base_offset": self.ends[part]}]}
            answered = messages.ProduceResponse.from_dict({"responses": [done]})
            yield from self.producer.ask(clock + 2000, 300_000, 9, asked, answered)
            base = self.ends[part]
            self.ends[part] += self.batch
            if n % EVERY == EVERY - 1:
                end = messages.EndTxnRequest.from_dict({**ids, **who, "committed": True})
                yield from self.producer.ask(clock + 400_000, 1000, 3, end, messages.EndTxnResponse())
            fetched = struct.pack(">q", base) + self.whole[8:]
            topic = {"topic": "t", "partitions": [{"partition": part, "fetch_offset": base}]}
            asked = messages.FetchRequest.from_dict({"isolation_level": 1, "topics": [topic]})
            said = {"partition_index": part, "high_watermark": self.ends[part], "last_stable_offset": self.ends[part],
                    "records": fetched}  # fmt: skip
            answered = messages.FetchResponse.from_dict({"responses": [{"topic": "t", "partitions": [said]}]})
            yield from self.reader.ask(clock + 500_000, 1000, 12, asked, answered)
            if n % 50 == 49:
                parts = [{"partition_index": k, "committed_offset": end} for k, end in enumerate(self.ends)]
                asked = messages.OffsetCommitRequest.from_dict(
                    {"group_id": "g", "topics": [{"name": "t", "partitions": parts}]}
                )
                done = [{"name": "t", "partitions": [{"partition_index": k} for k in range(PARTITIONS)]}]
                answered = messages.OffsetCommitResponse.from_dict({"topics": done})
                yield from self.coordinator.ask(clock + 600_000, 1000, 8, asked, answered)


class Stream:
    """A capture that is made while it is read."""

    def __init__(self, world: World, requests: int) -> None:
        self.left, self.world = requests, world
        self.data = io.BytesIO(write_pcap([]))
        self.head = len(self.data.getvalue())

    def read(self, size: int) -> bytes:
        """Some more of it."""
        found = self.data.read(size)
        while not found and self.left:
            count = min(200, self.left)
            self.left -= count
            self.data = io.BytesIO(write_pcap(list(self.world.packets(count)))[self.head :])
            found = self.data.read(size)
        return found


def spent(data: bytes, tables: tuple[str, ...]) -> tuple[float, int]:
    """CPU seconds, and rows."""
    begin = time.process_time()
    rows = sum(batch.num_rows for _, batch in capture.read(io.BytesIO(data), tables=tables))
    return time.process_time() - begin, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", type=int, default=0)
    args = parser.parse_args()
    requests = args.records // args.batch
    if args.memory:
        for table in ("partitions", "transactions", "journeys"):
            for many in (1, args.memory):
                stream = Stream(World(args.batch, args.size), requests * many)
                rows = sum(batch.num_rows for batch in capture.read(stream, table))
                most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                print(f"{table}: {requests * many * args.batch:,} records, {rows:,} rows, at most {most} MiB so far")
        return
    data = write_pcap(list(World(args.batch, args.size).packets(requests)))
    print(f"{len(data) / 1e6:.0f} MB, {requests * args.batch:,} records")
    times: dict[tuple[str, ...], list[float]] = {case: [] for case in CASES}
    count: dict[tuple[str, ...], int] = {}
    for _ in range(args.rounds + 1):
        for case in CASES:
            seconds, count[case] = spent(data, case)
            times[case].append(seconds)
    # The first round compiles, or loads what was compiled.
    medians = {case: statistics.median(some[1:]) for case, some in times.items()}
    for case, seconds in medians.items():
        of = [f"{seconds / medians[(one,)]:.2f}x of {one}" for one in ("frames", "partitions")]
        speed = f"{seconds:.3f} s, {len(data) / 1e6 / seconds:,.0f} MB/s"
        print(f"{' + '.join(case)}: {speed}, {count[case]:,} rows, {', '.join(of)}")


if __name__ == "__main__":
    main()
