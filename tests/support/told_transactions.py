"""Random histories of transactions on the broker of ``kwire.testing``, with what is true of them.

The broker knows when a transaction began and how it ended. Clients of both protocols write, commit, abort, begin anew,
are fenced, wait for too long, and go on with an old epoch. The capture of it may lose packets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from random import Random
from typing import Any

from broker_talk import Bench, Client, fetch_request, produce

from kwire import capture, messages, records
from kwire.records import Record
from kwire.testing import packets
from kwire.testing.broker.logs import Log
from kwire.testing.packets import Packet

TIMEOUT = 10.0
_ABORTS = ("aborted", "timed_out", "fenced")


@dataclass
class Truth:
    """A transaction. Times are seconds of the broker's clock."""

    name: str
    producer_id: int
    epoch: int
    begun: float
    partitions: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    """By topic and partition: the first offset, and how many records."""
    groups: set[str] = field(default_factory=set)
    offsets: int = 0
    end: str = "open"
    ended: float = float("inf")
    unseen: bool = False
    """Whether a partition joined with a request that was refused then: no client is told."""


class Told:
    """A history."""

    def __init__(self, seed: int, steps: int = 60) -> None:
        self.random = Random(seed)
        self.bench = Bench("4.4", partitions=2)
        self.topics = [self.bench.cluster.create_topic(name) for name in ("a", "b")]
        self.truths: list[Truth] = []
        self.open: dict[str, Truth] = {}
        self.why = "committed"
        self._watch()
        self.producers: list[Producer] = []
        self.reader: Client | None = None
        for _ in range(steps):
            self.bench.wait(0.001)
            self._step()

    def _watch(self) -> None:
        of = self.bench.cluster.transactions
        add, end = of.add, of._end

        def adding(known: Any, logs: Any, groups: Any, now: float) -> None:
            logs, groups = list(logs), list(groups)
            if known.begun is None:
                made = self.open[known.id] = Truth(known.id, known.producer_id, known.epoch, now)
                self.truths.append(made)
            truth = self.open[known.id]
            for log in logs:
                truth.partitions.setdefault(self._place(log), [-1, 0])
            truth.groups.update(groups)
            add(known, logs, groups, now)

        def ending(known: Any, committed: bool) -> None:
            truth = self.open.pop(known.id)
            truth.ended = self.bench.clock.now
            truth.end = "committed" if committed else self.why
            end(known, committed)

        of.add, of._end = adding, ending  # type: ignore[method-assign]

    def _place(self, log: Log) -> tuple[str, int]:
        for topic in self.topics:
            for number, one in enumerate(topic.logs):
                if one is log:
                    return topic.name, number
        raise AssertionError

    def _step(self) -> None:
        chance = self.random.random()
        if not self.producers or chance < 0.08:
            self.why = "fenced"
            name = f"id-{self.random.randrange(3)}"
            self.producers.append(Producer(self, name, self.random.random() < 0.5))
            return
        # Old ones go on, too.
        one = self.random.choice(self.producers[-4:])
        if chance < 0.5:
            one.write(self.random.choice(self.topics), self.random.randrange(2))
        elif chance < 0.58:
            one.offsets()
        elif chance < 0.78:
            one.end(self.random.random() < 0.7)
        elif chance < 0.82:
            self.why = "aborted"
            one.again()
        elif chance < 0.85:
            self.why = "timed_out"
            self.bench.wait(self.random.choice((1.0, TIMEOUT + 1)))
        else:
            self.reader = self.reader or self.bench.client(client_id="reader")
            offset = self.random.randrange(4)
            self.reader.ask(fetch_request(self.random.choice(self.topics), offset, 12, isolation_level=1,
                                          max_wait_ms=0), 12)  # fmt: skip

    def packets(self) -> list[Packet]:
        """The capture, whole."""
        return packets.read(self.bench.core.recording.pcapng())

    def lossy(self, part: float) -> list[Packet]:
        """The capture without some of its packets."""
        return [one for one in self.packets() if self.random.random() >= part]


class Producer:
    """A transactional client: of the protocol before KIP-890, or of the one since."""

    def __init__(self, world: Told, name: str, new: bool) -> None:
        self.world, self.name, self.new = world, name, new
        number = len(world.producers)
        self.client = world.bench.client(client_id=f"client-{number}", port=40_000 + number)
        self.id, self.epoch, self.added = -1, -1, set[tuple[str, int]]()
        self.sequences: dict[tuple[str, int], int] = {}
        self.dirty = False
        """Whether something of it is in a transaction."""
        self.failed = False
        self._init()

    def _init(self) -> None:
        request = messages.InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=int(TIMEOUT * 1000),
            producer_id=self.id,
            producer_epoch=self.epoch,
        )
        answer = self.client.ask(request, 4)
        if answer.error_code == 0:
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
            self.added, self.sequences, self.dirty, self.failed = set(), {}, False, False

    def again(self) -> None:
        """Begins anew with what it has (KIP-360)."""
        self._init()

    def _ids(self) -> dict[str, Any]:
        return {"producer_id": self.id, "producer_epoch": self.epoch}

    def write(self, topic: Any, partition: int) -> None:
        if self.failed:
            return
        if not self.new and (topic.name, partition) not in self.added:
            kind = messages.AddPartitionsToTxnRequest
            request = kind(
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=self.id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=[kind.AddPartitionsToTxnTopic(name=topic.name, partitions=(partition,))],
            )
            answer = self.client.ask(request, 3)
            if answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code:
                return
            self.added.add((topic.name, partition))
        count = self.world.random.randint(1, 4)
        sequence = self.sequences.get((topic.name, partition), 0)
        data = records.encode(
            [Record(None, b"v", timestamp=0) for _ in range(count)],
            base_sequence=sequence,
            is_transactional=True,
            **self._ids(),
        )
        version = 12 if self.new else 9
        answer = produce(
            self.client, topic, data, version, partition=partition, transactional_id=self.name
        )  # fmt: skip
        if answer.error_code:
            # Whether it was written is not known to a client: it goes on with another epoch only.
            self.failed = True
            if self.new and self.name in self.world.open:
                self.world.open[self.name].unseen = True
        if answer.error_code == 0:
            self.dirty = True
            self.sequences[topic.name, partition] = sequence + count
            mine = self.world.open[self.name].partitions[topic.name, partition]
            mine[:] = [answer.base_offset if mine[0] < 0 else mine[0], mine[1] + count]

    def offsets(self) -> None:
        if not self.new and ("group", 0) not in self.added:
            added = messages.AddOffsetsToTxnRequest(transactional_id=self.name, group_id="g", **self._ids())
            if self.client.ask(added, 3).error_code:
                return
            self.added.add(("group", 0))
        kind = messages.TxnOffsetCommitRequest
        part = kind.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        request = kind(
            transactional_id=self.name,
            group_id="g",
            topics=[kind.TxnOffsetCommitRequestTopic(name="a", partitions=[part])],
            **self._ids(),
        )
        answer = self.client.ask(request, 5 if self.new else 3)
        if not answer.topics[0].partitions[0].error_code:
            self.dirty = True
            self.world.open[self.name].offsets += 1

    def end(self, committed: bool) -> None:
        if not self.dirty:
            return  # clients know that there is nothing to end
        self.dirty = False
        self.world.why = "aborted"
        request = messages.EndTxnRequest(transactional_id=self.name, committed=committed, **self._ids())
        known = self.world.bench.cluster.transactions._known[self.name]
        # Who was fenced would be told the epoch of the other one, as if it had not heard of its own end.
        fenced = (known.producer_id, known.epoch) != (self.id, self.epoch)
        answer = self.client.ask(request, 5 if self.new and not fenced else 3)
        self.added = set()
        if self.new and answer.error_code == 0 and answer.producer_id >= 0:
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences = {}


def rows_of(parts: Sequence[Sequence[Packet]], **options: Any) -> list[dict[str, Any]]:
    """The rows of a capture, or of files that it was cut into."""
    files = [BytesIO(packets.write_pcapng(part)) for part in parts]
    found = capture.read(files if len(files) > 1 else files[0], "transactions", **options)
    return [row for batch in found for row in batch.to_pylist()]


def seconds(time: Any) -> float:
    """A time of a row on the clock of the broker."""
    return float(time.timestamp()) - 1_700_000_000


def check_whole(told: Told, rows: Sequence[dict[str, Any]]) -> None:
    """Of a whole capture each transaction is a row, and nothing else is."""

    def key(one: Truth) -> tuple[Any, ...]:
        parts = {place: tuple(said) for place, said in one.partitions.items()}
        return one.name, one.producer_id, one.epoch, round(one.begun, 3), sorted(parts.items()), sorted(one.groups)

    unseen = {(one.name, one.producer_id, one.epoch) for one in told.truths if one.unseen}
    rows = [row for row in rows if tuple(row[name] for name in _NAMED) not in unseen]
    truths = [one for one in told.truths if (one.name, one.producer_id, one.epoch) not in unseen]
    true = sorted(key(one) for one in truths)
    said = []
    for row in rows:
        parts = {
            (one["topic"], one["partition"]): (
                -1 if one["first_offset"] is None else one["first_offset"],
                one["records"],
            )
            for one in row["partitions"]
        }
        said.append((row["transactional_id"], row["producer_id"], row["producer_epoch"],
                     round(seconds(row["began"]), 3), sorted(parts.items()), sorted(row["groups"])))  # fmt: skip
        assert row["status"] == "ok", row
        assert row["unacknowledged"] == 0, row
    assert sorted(said) == true, set(map(str, said)) ^ set(map(str, true))
    by = {(one.name, one.producer_id, one.epoch, round(one.begun, 3)): one for one in truths}
    for row in rows:
        truth = by[row["transactional_id"], row["producer_id"], row["producer_epoch"], round(seconds(row["began"]), 3)]
        assert row["offsets"] == truth.offsets
        # What ends by itself is seen when its producer asks for something. This broker lets nobody wait for it.
        assert row["end"] in _SEEN[truth.end], (row, truth)


_NAMED = ("transactional_id", "producer_id", "producer_epoch")
_SEEN = {
    "committed": ("committed",),
    "aborted": ("aborted", "unknown"),
    "open": ("open",),
    "timed_out": ("timed_out", "unknown", "open", "aborted"),
    "fenced": ("fenced", "unknown", "open"),
}


def check_part(told: Told, rows: Sequence[dict[str, Any]]) -> None:
    """Of a capture with holes: what rows say is true, or part of what is true, or said to be unknown."""
    for row in rows:
        begin = min((seconds(one["time"]) for one in row["events"]), default=0.0)
        mine = [
            one
            for one in told.truths
            if (one.name, one.producer_id, one.epoch)
            == (row["transactional_id"], row["producer_id"], row["producer_epoch"])
            and one.ended + 0.0005 >= begin
        ]
        assert mine, row
        # Where packets are missing it may be several.
        mine = mine if row["status"] == "gap" else mine[:1]
        parts: dict[tuple[str, int], list[int]] = {}
        for one in mine:
            for place, (first, count) in one.partitions.items():
                had = parts.setdefault(place, [first, 0])
                had[1] += count
        for one in row["partitions"]:
            first, count = parts[one["topic"], one["partition"]]
            assert one["records"] <= count, (row, mine)
            assert one["first_offset"] is None or one["first_offset"] >= first >= 0
        assert set(row["groups"]) <= set().union(*(one.groups for one in mine))
        assert row["offsets"] <= sum(one.offsets for one in mine)
        if row["began"] is not None:
            assert seconds(row["began"]) >= mine[0].begun - 0.0005
        ends = {one.end for one in mine}
        if row["end"] == "aborted":
            assert ends & {*_ABORTS}, (row, mine)
        elif row["end"] in ("fenced", "timed_out"):
            # They look the same if the other producer is not in the capture.
            assert ends & {"fenced", "timed_out"}, (row, mine)
        elif row["end"] not in ("open", "unknown"):
            assert row["end"] in ends, (row, mine)
