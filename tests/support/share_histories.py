"""Random histories of a share group with known truth: a broker of one partition, offset by offset.

``Broker.turn`` is a request of some member and its response: as steps, and as packets of a capture. ``check`` compares
rows with what the broker knows.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from packets import Connection, Packet

import kwire
from kwire import messages
from kwire.history.shares import DELIVERIES
from kwire.history.steps import Step, kind_of
from kwire.schema.keys import ApiKey

TOPIC = UUID(int=7)
LOCK_MS = 30_000
BEGIN = 1_700_000_000_000_000_000

Row = dict[str, Any]


def simulated(seed: int, turns: int = 300) -> Broker:
    """A broker after some turns."""
    broker = Broker(seed)
    for number in range(turns):
        broker.turn(number)
    return broker


class Broker:
    """A partition of a share group, offset by offset, and the steps of what was said."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now = 0
        self.frame = 0
        self.counts: dict[int, int] = {}
        self.holders: dict[int, tuple[str, int]] = {}
        self.done: set[int] = set()
        self.truth: set[tuple[int, str, int, str]] = set()
        """Offset, member, delivery count, outcome."""
        self.steps: list[Step] = []
        self.epochs: dict[str, int] = {}
        self.connections: dict[str, Connection] = {}

    def step(self, member: str, api: int, body: Any, response: bool, id_: int) -> None:
        self.frame += 1
        one = self.connections.get(member)
        if one is None:
            one = Connection(client=("10.0.0.1", 40_000 + int(member[1:])), step=0, time=BEGIN + self.now).open()
            self.connections[member] = one
        one.time = BEGIN + self.now
        if response:
            one.answer(kwire.encode_response(body, api_version=1, correlation_id=id_))
        else:
            one.send(kwire.encode_request(body, api_version=1, correlation_id=id_, client_id=member))
        for owner, place, said in DELIVERIES.reads[kind_of(api, response)](body, lambda _: "orders"):
            who = int(member[1:])
            of_frame = ("x", who, self.frame, self.now, ("h", 1, member), ("b", 2), response, api, 1, id_, 99)
            self.steps.append(Step(*of_frame, owner, place, said))

    def packets(self) -> list[Packet]:
        """What was said, as a capture has it."""
        return sorted((one for each in self.connections.values() for one in each.packets), key=lambda one: one.time)

    def expire(self) -> None:
        for offset, (member, until) in list(self.holders.items()):
            if until <= self.now:
                del self.holders[offset]
                self.truth.add((offset, member, self.counts[offset], "expired"))

    def acknowledge(self, member: str) -> list[list[int]]:
        mine = sorted(one for one, (whose, _) in self.holders.items() if whose == member)
        acks = []
        for offset in mine:
            if self.chance.random() < 0.6:
                type_ = self.chance.choices((1, 2, 3, 4), (6, 2, 1, 1))[0]
                acks.append([offset, type_])
        return acks

    def apply(self, member: str, acks: list[list[int]]) -> None:
        for offset, type_ in acks:
            outcome = ("gap", "accepted", "released", "rejected", "renewed")[type_]
            self.truth.add((offset, member, self.counts[offset], outcome))
            if type_ == 4:
                self.holders[offset] = (member, self.now + LOCK_MS * 1_000_000)
                continue
            del self.holders[offset]
            if type_ != 2:
                self.done.add(offset)

    def acquire(self, member: str) -> list[tuple[int, int, int]]:
        found: list[tuple[int, int, int]] = []
        left = self.chance.randrange(1, 20)
        for offset in range(200):
            if left and offset not in self.holders and offset not in self.done:
                count = self.counts[offset] = self.counts.get(offset, 0) + 1
                self.holders[offset] = (member, self.now + LOCK_MS * 1_000_000)
                left -= 1
                if found and found[-1][1] == offset - 1 and found[-1][2] == count:
                    found[-1] = (found[-1][0], offset, count)
                else:
                    found.append((offset, offset, count))
        return found

    def turn(self, number: int) -> None:
        """A request of some member, and its response."""
        # A capture has microseconds.
        self.now += (int(self.chance.expovariate(1 / 4e6)) + 1) * 1000
        self.expire()
        member = f"m{self.chance.randrange(3)}"
        acks = self.acknowledge(member)
        kind = messages.ShareFetchRequest
        batches = [
            kind.AcknowledgementBatch(first_offset=one, last_offset=one, acknowledge_types=[type_])
            for one, type_ in acks
        ]
        asked = [kind.FetchTopic(
            topic_id=TOPIC, partitions=[kind.FetchPartition(partition_index=0, acknowledgement_batches=batches)]
        )]  # fmt: skip
        epoch = self.epochs[member] = self.epochs.get(member, -1) + 1
        request = kind(group_id="g", member_id=member, share_session_epoch=epoch, topics=asked)
        self.step(member, ApiKey.SHARE_FETCH, request, False, number)
        self.apply(member, acks)
        answer = messages.ShareFetchResponse
        acquired = [
            answer.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in self.acquire(member)
        ]
        part = answer.PartitionData(partition_index=0, acquired_records=acquired)
        told = [answer.ShareFetchableTopicResponse(topic_id=TOPIC, partitions=[part])]
        body = answer(acquisition_lock_timeout_ms=LOCK_MS, responses=told)
        self.step(member, ApiKey.SHARE_FETCH, body, True, number)


def offsets(rows: list[Row]) -> Iterator[tuple[int, str, int, str]]:
    for row in rows:
        for offset in range(row["first_offset"], row["last_offset"] + 1):
            yield offset, row["member_id"], row["delivery_count"], row["outcome"]


def check_whole(rows: Iterable[Row], broker: Broker) -> None:
    """Rows of all that was said, but for what is held at the end, are the truth."""
    found = [row for row in rows if row["outcome"] != "held"]
    assert {row["status"] for row in found} <= {"ok"}
    assert set(offsets(found)) == broker.truth
    held = {offset for offset, *_ in offsets([row for row in rows if row["outcome"] == "held"])}
    assert held == broker.holders.keys()
    for row in found:
        if row.get("previous_outcome"):
            assert (row["first_offset"], row["delivery_count"] - 1, row["previous_outcome"]) in {
                (offset, count, outcome) for offset, _, count, outcome in broker.truth
            }


def check_part(rows: Iterable[Row], broker: Broker) -> None:
    """Rows of a part of what was said invent nothing."""
    taken = {(offset, member, outcome) for offset, member, _, outcome in broker.truth}
    known = [row | {"delivery_count": row.get("delivery_count")} for row in rows if row["status"] == "ok"]
    for offset, member, count, outcome in offsets(known):
        if outcome in ("taken_back", "expired", "unknown", "held"):
            # That an acknowledgement was lost is not known: its time was over, or somebody else got the record.
            continue
        assert (offset, member, outcome) in taken
        assert count is None or (offset, member, count, outcome) in broker.truth
