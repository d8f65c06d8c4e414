"""Random histories of groups against what their broker knows: 1,000 by default, whole, with losses, and cut in two.

    PYTHONPATH=. python benchmarks/histories.py [--histories 1000] [--first 0]
    PYTHONPATH=. python benchmarks/histories.py --speed       # CPU of the tables of histories beside frames

Each is made without sockets (``tests/support/group_histories.py``): a mock broker, members that join, leave, crash and
change their topics, and a clock that jumps. What the table says has to be what the broker knows, or a part of it.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from group_histories import check, exchanges, lossy, simulated, told
from made_captures import read
from packets import Connection, Packet, pcap

import kwire
from kwire import capture, messages
from kwire.records import Record, encode
from kwire.tables.reading import read_in_order
from kwire.testing import packets


def one(seed: int, protocol: str) -> int:
    """Checks a history. Returns how many rows it had."""
    data, truth, bench = simulated(seed, protocol)
    rows = read(data, "group_events")
    told(rows, truth, exchanges(data, bench))
    some = lossy(data, seed)
    check(read(some, "group_events"), truth, exchanges(some, bench), whole=False)
    listed = packets.read(data)
    at = seed * 7919 % len(listed)
    files = [io.BytesIO(packets.write_pcapng(part)) for part in (listed[:at], listed[at:])]
    parts = [row for _, batch in read_in_order(files, {"group_events": None}, ["", ""]) for row in batch.to_pylist()]
    assert [row["event"] for row in parts] == [row["event"] for row in rows]
    return len(rows)


def busy(megabytes: int) -> bytes:
    """A capture of producers, a share group and members that send heartbeats: 1,000 heartbeats for 100 MB."""
    data = encode([Record(b"key", bytes(1000), timestamp=number) for number in range(100)])
    topic, kinds = UUID(int=7), messages
    produced = kinds.ProduceRequest(acks=-1, timeout_ms=1000)
    part = kinds.ProduceRequest.PartitionProduceData(index=0, records=data)
    produced.topic_data = [kinds.ProduceRequest.TopicProduceData(name="orders", partition_data=[part])]
    acquired = kinds.ShareFetchResponse.AcquiredRecords(delivery_count=1, first_offset=0, last_offset=99)
    fetched = kinds.ShareFetchResponse.PartitionData(partition_index=0, records=data, acquired_records=[acquired])
    shared = kinds.ShareFetchResponse(acquisition_lock_timeout_ms=30_000)
    shared.responses = [kinds.ShareFetchResponse.ShareFetchableTopicResponse(topic_id=topic, partitions=[fetched])]
    made: list[Packet] = []
    for number in range(10):
        connection = Connection(client=("10.0.0.1", 40_000 + number)).open()
        for k in range(megabytes):
            asked: list[tuple[Any, Any, int]] = [
                (produced, kinds.ProduceResponse(), 9)
                if number % 2
                else (kinds.ShareFetchRequest(group_id="s", member_id=f"m{number}", share_session_epoch=k), shared, 1)
            ]
            beat = kinds.ConsumerGroupHeartbeatRequest(group_id="g", member_id=f"m{number}", member_epoch=int(k > 0))
            told = kinds.ConsumerGroupHeartbeatResponse(member_id=f"m{number}", member_epoch=1)
            asked.append((beat, told, 0))
            for place, (request, response, version) in enumerate(asked):
                id_ = 2 * k + place
                connection.send(kwire.encode_request(request, api_version=version, correlation_id=id_, client_id="c"))
                connection.answer(kwire.encode_response(response, api_version=version, correlation_id=id_))
        made += connection.packets
    return pcap(sorted(made, key=lambda one: one.time))


def spent(data: bytes, tables: list[str]) -> float:
    """CPU seconds that reading some tables takes."""
    begin = time.process_time()
    for _ in capture.read(io.BytesIO(data), tables=tables):
        pass
    return time.process_time() - begin


def speed(megabytes: int = 100) -> None:
    """Prints what the tables cost beside ``frames``: medians of runs in turn."""
    data = busy(megabytes)
    cases = [["frames"], ["frames", "group_events"], ["frames", "group_events", "share_deliveries", "streams_tasks"]]
    for case in cases:
        spent(data, case)
    runs = [[spent(data, case) for case in cases] for _ in range(5)]
    plain, *others = (median(one) for one in zip(*runs, strict=True))
    print(f"{len(data) / 1e6:.0f} MB; frames: {plain:.2f} s of CPU, {len(data) / 1e6 / plain:.0f} MB/s")
    for case, took in zip(cases[1:], others, strict=True):
        print(f"{' + '.join(case)}: {took / plain:.2f} times, {len(data) / 1e6 / took:.0f} MB/s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--speed", action="store_true")
    args = parser.parse_args()
    if args.speed:
        speed()
        return 0
    begin, wrong, rows = time.perf_counter(), Counter[str](), 0
    for number in range(args.first, args.first + args.histories):
        protocol = ("classic", "consumer")[number % 2]
        try:
            rows += one(number // 2, protocol)
        except AssertionError as error:
            wrong[protocol] += 1
            print(f"{protocol}, seed {number // 2}: {str(error).splitlines()[:1]}")
    took = time.perf_counter() - begin
    print(f"{args.histories} histories, {rows:,} rows, {sum(wrong.values())} wrong, {took:.0f} s")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
