"""Random histories of groups, tasks and deliveries against what their broker knows: 1,000 of each of classic, consumer,
share and streams groups, of deliveries, and of tasks, by default, whole, with losses, and cut.

    PYTHONPATH=. python benchmarks/histories.py [--histories 6000] [--first 0] [--only streams]
    PYTHONPATH=. python benchmarks/histories.py --speed       # CPU of the tables of histories beside frames
    PYTHONPATH=. python benchmarks/histories.py --memory      # of 100 MB and of 1 GB

Each is made without sockets (``tests/support/group_histories.py``): a mock broker, members that join, leave, crash and
change their topics, and a clock that jumps. What the table says has to be what the broker knows, or a part of it.
"""

from __future__ import annotations

import argparse
import io
import random
import resource
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import share_histories
import streams_truth
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


def share(seed: int) -> int:
    """Checks a history of deliveries. Returns how many rows it had."""
    broker = share_histories.simulated(seed)
    listed = broker.packets()
    rows = read(pcap(listed), "share_deliveries")
    share_histories.check_whole(rows, broker)
    chance = random.Random(seed)
    for loss in (0.02, 0.1, 0.3):
        some = [one for one in listed if chance.random() >= loss]
        share_histories.check_part(read(pcap(some), "share_deliveries"), broker)
    cuts = [0, *sorted(chance.sample(range(1, len(listed)), 3)), len(listed)]
    files = [io.BytesIO(pcap(listed[begin:end])) for begin, end in pairwise(cuts)]
    parts = read_in_order(files, {"share_deliveries": None}, [""] * 4)
    share_histories.check_whole([row for _, batch in parts for row in batch.to_pylist()], broker)
    return len(rows)


def tasks(seed: int) -> int:
    """Checks the tasks of a streams group. Returns how many rows it had."""
    chance = random.Random(seed)
    bench = streams_truth.bench(4, standby=str(seed % 2), warmup=str(seed % 3))
    truth = streams_truth.lived(bench, chance)
    truth.over()
    data = bench.core.recording.pcapng()
    assert streams_truth.in_capture(data) == truth.ended
    listed = packets.read(data)
    cuts = [0, *sorted(chance.sample(range(1, len(listed)), 3)), len(listed)]
    files = [io.BytesIO(packets.write_pcapng(listed[begin:end])) for begin, end in pairwise(cuts)]
    parts = read_in_order(files, {"streams_tasks": None}, [""] * 4)
    rows = [row for _, batch in parts for row in batch.to_pylist()]
    assert streams_truth.in_rows(rows) == truth.ended
    return len(rows)


PROTOCOLS = ("classic", "consumer", "share", "streams", "deliveries", "tasks")
CHECKS = {"deliveries": share, "tasks": tasks}


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


class Mixed:
    """A capture as brokers have it: with each megabyte 12 Fetch, 6 Produce and 2 ShareFetch exchanges of 50 KB, 9
    heartbeats of three protocols, a commit, and half a transaction of one of the producers.

    The shares are those of the golden captures of clients against 4.3: on 383 Fetch and Produce exchanges they have 181
    heartbeats, 47 ShareFetch, 29 AddPartitionsToTxn and EndTxn, and 14 OffsetCommit. Their bodies are small, so here
    they have an ordinary size.
    """

    def __init__(self) -> None:
        records = [Record(b"key", bytes(1000), timestamp=number) for number in range(48)]
        self.data = encode(records)
        self.sent = encode(records, producer_id=7, producer_epoch=0, is_transactional=True)
        self.connections: dict[str, Connection] = {}
        self.ids: Counter[str] = Counter()
        self.clock = 1_700_000_000_000_000_000

    def say(self, who: str, asked: Any, answered: Any, version: int) -> None:
        """An exchange of a client."""
        one = self.connections.get(who)
        if one is None:
            one = self.connections[who] = Connection(client=("10.0.0.1", 40_000 + len(self.connections))).open()
        self.ids[who] += 1
        self.clock += 250_000
        one.time = max(one.time, self.clock)
        one.step = 1000
        one.send(kwire.encode_request(asked, api_version=version, correlation_id=self.ids[who], client_id=who))
        one.answer(kwire.encode_response(answered, api_version=version, correlation_id=self.ids[who]))

    def megabyte(self, number: int) -> None:
        """One more megabyte."""
        made = messages
        for k in range(12):
            part = {"partition_index": k, "high_watermark": 9, "last_stable_offset": 9, "records": self.data}
            told = made.FetchResponse.from_dict({"responses": [{"topic": "orders", "partitions": [part]}]})
            asked = {"partition": k, "fetch_offset": 48 * number}
            wants = made.FetchRequest.from_dict({"topics": [{"topic": "orders", "partitions": [asked]}]})
            self.say(f"fetcher {k % 6}", wants, told, 12)
        ids = {"transactional_id": "t"}
        who = {f"v3_and_below_{name}": value for name, value in {**ids, "producer_id": 7, "producer_epoch": 0}.items()}
        if number % 2 == 0:
            adds = made.AddPartitionsToTxnRequest.from_dict(
                {**who, "v3_and_below_topics": [{"name": "orders", "partitions": [0]}]}
            )
            done = [{"name": "orders", "results_by_partition": [{"partition_index": 0}]}]
            added = made.AddPartitionsToTxnResponse.from_dict({"results_by_topic_v3_and_below": done})
            self.say("producer 0", adds, added, 3)
        for k in range(6):
            mine = ids if k == 0 else {}
            part = {"index": k, "records": self.sent if k == 0 else self.data}
            topics = [{"name": "orders", "partition_data": [part]}]
            asks = made.ProduceRequest.from_dict({**mine, "acks": -1, "timeout_ms": 1000, "topic_data": topics})
            done = [{"name": "orders", "partition_responses": [{"index": k, "base_offset": 48 * number}]}]
            self.say(f"producer {k % 4 if k else 0}", asks, made.ProduceResponse.from_dict({"responses": done}), 9)
        if number % 2:
            ends = made.EndTxnRequest.from_dict({**ids, "producer_id": 7, "producer_epoch": 0, "committed": True})
            self.say("producer 0", ends, made.EndTxnResponse(), 3)
        for k in range(2):
            first, last = 48 * number, 48 * number + 47
            told = made.ShareFetchResponse.PartitionData(partition_index=k, records=self.data)
            told.acquired_records = [
                made.ShareFetchResponse.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=1)
            ]
            kind = made.ShareFetchResponse
            answer = kind(acquisition_lock_timeout_ms=30_000)
            answer.responses = [kind.ShareFetchableTopicResponse(topic_id=UUID(int=7), partitions=[told])]
            wants = made.ShareFetchRequest(group_id="s", member_id=f"s{k}", share_session_epoch=number)
            if number:
                acks = {"first_offset": first - 48, "last_offset": last - 48, "acknowledge_types": [1]}
                part = {"partition_index": k, "acknowledgement_batches": [acks]}
                topic = {"topic_id": str(UUID(int=7)), "partitions": [part]}
                wants = made.ShareFetchRequest.from_dict({**wants.to_dict(), "topics": [topic]})
            self.say(f"sharer {k}", wants, answer, 1)
        for k in range(4):
            beat = made.HeartbeatRequest(group_id=f"classic {k % 2}", generation_id=3, member_id=f"c{k}")
            self.say(f"classic {k}", beat, made.HeartbeatResponse(), 4)
        for k in range(3):
            beats = made.ConsumerGroupHeartbeatRequest(group_id="new", member_id=f"n{k}", member_epoch=5)
            told = made.ConsumerGroupHeartbeatResponse(member_id=f"n{k}", member_epoch=5, heartbeat_interval_ms=5000)
            self.say(f"new {k}", beats, told, 1)
        for k in range(2):
            beats = made.ShareGroupHeartbeatRequest(group_id="s", member_id=f"s{k}", member_epoch=2)
            told = made.ShareGroupHeartbeatResponse(member_id=f"s{k}", member_epoch=2, heartbeat_interval_ms=5000)
            self.say(f"share {k}", beats, told, 1)
        parts = [{"partition_index": k, "committed_offset": 48 * number} for k in range(6)]
        said = {"group_id": "classic 0", "generation_id_or_member_epoch": 3, "member_id": "c0"}
        commit = made.OffsetCommitRequest.from_dict({**said, "topics": [{"name": "orders", "partitions": parts}]})
        done = [{"name": "orders", "partitions": [{"partition_index": k} for k in range(6)]}]
        self.say("classic 0", commit, made.OffsetCommitResponse.from_dict({"topics": done}), 8)

    def capture(self) -> bytes:
        """What was said so far."""
        some = [packet for one in self.connections.values() for packet in one.packets]
        return pcap(sorted(some, key=lambda one: one.time))


class Stream:
    """A capture of ``Mixed`` that is made while it is read."""

    def __init__(self, megabytes: int) -> None:
        self.made, self.number, self.last = Mixed(), 0, megabytes
        whole = pcap([])
        self.head, self.data = len(whole), io.BytesIO(whole)

    def read(self, size: int) -> bytes:
        """Some more of it."""
        found = self.data.read(size)
        while not found and self.number < self.last:
            self.made.megabyte(self.number)
            self.number += 1
            self.data = io.BytesIO(self.made.capture()[self.head :])
            for one in self.made.connections.values():
                one.packets.clear()
            found = self.data.read(size)
        return found


def memory() -> None:
    """Prints the most memory that the process has had, after 100 MB and after 1 GB."""
    for megabytes in (100, 1000):
        rows = sum(batch.num_rows for _, batch in capture.read(Stream(megabytes), tables=CASES[-1]))
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{megabytes} MB, {' + '.join(CASES[-1])}: {rows:,} rows, at most {most} MiB so far")


def mixed(megabytes: int) -> bytes:
    """A capture of so many megabytes, as ``Mixed`` has it."""
    made = Mixed()
    for number in range(megabytes):
        made.megabyte(number)
    return made.capture()


def spent(data: bytes, tables: list[str]) -> float:
    """CPU seconds that reading some tables takes."""
    begin = time.process_time()
    for _ in capture.read(io.BytesIO(data), tables=tables):
        pass
    return time.process_time() - begin


CASES = (
    ["frames"],
    ["frames", "group_events"],
    ["frames", "share_deliveries"],
    ["frames", "transactions"],
    ["frames", "group_events", "transactions", "share_deliveries"],
)


def speed(megabytes: int = 100) -> None:
    """Prints what the tables cost beside ``frames`` in the same round: medians of rounds."""
    for name, make in (("a mix", mixed), ("half of it to share groups", busy)):
        data = make(megabytes)
        for case in CASES:
            spent(data, case)
        runs = [[spent(data, case) for case in CASES] for _ in range(21)]
        size = len(data) / 1e6
        plain = median(one[0] for one in runs)
        print(f"{name}, {size:.0f} MB; frames: {plain:.3f} s of CPU, {size / plain:.0f} MB/s")
        for number, case in enumerate(CASES[1:], 1):
            took = median(one[number] for one in runs)
            beside = median(one[number] / one[0] for one in runs)
            print(f"  {' + '.join(case)}: {beside:.2f} times, {took:.3f} s, {size / took:.0f} MB/s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=6000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", choices=PROTOCOLS, help="a kind of history, instead of all in turn")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--memory", action="store_true")
    args = parser.parse_args()
    if args.speed:
        speed()
        return 0
    if args.memory:
        memory()
        return 0
    begin, wrong, rows = time.perf_counter(), Counter[str](), 0
    for number in range(args.first, args.first + args.histories):
        seed, kind = (number, 0) if args.only else divmod(number, len(PROTOCOLS))
        protocol = args.only or PROTOCOLS[kind]
        try:
            check_one = CHECKS.get(protocol)
            rows += one(seed, protocol) if check_one is None else check_one(seed)
        except AssertionError as error:
            wrong[protocol] += 1
            print(f"{protocol}, seed {seed}: {str(error).splitlines()[:1]}")
    took = time.perf_counter() - begin
    print(f"{args.histories} histories, {rows:,} rows, {sum(wrong.values())} wrong, {took:.0f} s")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
