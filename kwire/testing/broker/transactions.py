"""Transactions: which producer has one open, in which partitions and groups, and how it ends.

Rules kept here, as Kafka's TransactionCoordinator has them:

- A transactional id belongs to one producer. Whoever initialises it next gets the next epoch, and what was open is
  aborted. Older epochs are fenced.
- A transaction ends with a marker in each of its partitions: a control batch. Offsets of groups count from then on.
- One that is open for longer than its timeout is aborted, and its producer is fenced.

In Kafka markers are written by other brokers, later. Here they are there when EndTxn is answered.

Sources: KIP-98, KIP-360, KIP-447, KIP-890.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kwire import records
from kwire.protocol.error_codes import ErrorCode
from kwire.records import Record, control_key
from kwire.testing.broker.asking import NEVER
from kwire.testing.broker.logs import Aborted, Entry, Log
from kwire.wire import CONTROL, TRANSACTIONAL

if TYPE_CHECKING:
    from kwire.testing.broker.cluster import Cluster

__all__ = ["STATES", "Transaction", "Transactions"]

STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""States (str) of a transactional id in Kafka. Here markers are written at once, so nothing is prepared or dead."""
_LAST_EPOCH: Final = 0x7FFE
_MARKER: Final = struct.Struct(">hi")
"""The value of a marker: its version, and the epoch of the coordinator."""


@dataclass(eq=False, slots=True)
class Transaction:
    """What is known of a transactional id."""

    id: str
    producer_id: int
    epoch: int
    timeout: float
    begun: float | None = None
    """When the transaction that is open began; None while none is."""
    committed: bool | None = None
    """How the last one ended."""
    logs: dict[Log, None] = field(default_factory=dict)
    """Its partitions, in the order in which they joined."""
    groups: set[str] = field(default_factory=set)

    @property
    def state(self) -> str:
        """One of ``STATES``."""
        if self.begun is not None:
            return "Ongoing"
        return {None: "Empty", True: "CompleteCommit", False: "CompleteAbort"}[self.committed]


class Transactions:
    """All transactional ids of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[str, Transaction] = {}

    def begin(self, name: str, timeout: float, producer_id: int, epoch: int) -> Transaction | ErrorCode:
        """InitProducerId: the producer of ``name`` from here on. It may say what it has; -1 for nothing."""
        known = self._known.get(name)
        if known is None:
            if len(self._known) >= self._cluster.settings.max_producers:
                return ErrorCode.COORDINATOR_NOT_AVAILABLE
            known = self._known[name] = Transaction(name, *self._cluster.new_producer(), timeout)
            return known
        if producer_id >= 0 and (producer_id, epoch) != (known.producer_id, known.epoch):
            return ErrorCode.PRODUCER_FENCED
        known.timeout = timeout
        self._bump(known)
        if known.begun is not None:
            self._end(known, False)
        return known

    def known(self, name: str) -> Transaction | None:
        """What is known of ``name``, if anything is."""
        return self._known.get(name)

    def all(self) -> list[Transaction]:
        """Every transactional id."""
        return list(self._known.values())

    def _bump(self, known: Transaction) -> None:
        if known.epoch < _LAST_EPOCH:
            known.epoch += 1
        elif known.begun is None:
            known.producer_id, known.epoch = self._cluster.new_producer()

    def check(self, name: str, producer_id: int, epoch: int) -> Transaction | ErrorCode:
        """What is known of ``name``, if this is its producer; or the error that it gets."""
        known = self._known.get(name)
        if known is None or known.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return known if known.epoch == epoch else ErrorCode.PRODUCER_FENCED

    def ended(self, name: str, producer_id: int, epoch: int, committed: bool) -> Transaction | None:
        """What is known of ``name``, if its last transaction ended in this epoch, in this way.

        A client that has not heard of the answer to EndTxn v5 asks again with the epoch that it had.
        """
        known = self._known.get(name)
        if known is None or known.begun is not None or known.committed is not committed:
            return None
        return known if (known.producer_id, known.epoch) == (producer_id, epoch + 1) else None

    def add(self, known: Transaction, logs: Iterable[Log], groups: Iterable[str], now: float) -> None:
        """Partitions and groups of the open transaction. The first ones open it."""
        if known.begun is None:
            known.begun = now
        known.logs.update(dict.fromkeys(logs))
        known.groups.update(groups)

    def may_write(self, name: str | None, producer_id: int, epoch: int, log: Log) -> int:
        """The error that a transactional batch gets, or 0."""
        known = self.check(name or "", producer_id, epoch)
        if isinstance(known, ErrorCode):
            stale = known is ErrorCode.PRODUCER_FENCED
            return ErrorCode.INVALID_PRODUCER_EPOCH if stale else ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return ErrorCode.NONE if known.begun is not None and log in known.logs else ErrorCode.INVALID_TXN_STATE

    def end(self, known: Transaction, committed: bool, bump: bool) -> int:
        """EndTxn. With ``bump`` the producer gets the next epoch (v5, KIP-890). Gives an error code.

        There, a producer aborts also what it has sent nothing of.
        """
        if known.begun is None and bump:
            if committed:
                return ErrorCode.INVALID_TXN_STATE
            known.committed = False
            self._bump(known)
            return ErrorCode.NONE
        if known.begun is None:
            # A client that has not heard of the answer asks again.
            return ErrorCode.NONE if known.committed is committed else ErrorCode.INVALID_TXN_STATE
        self._end(known, committed)
        if bump:
            self._bump(known)
        return ErrorCode.NONE

    def _end(self, known: Transaction, committed: bool) -> None:
        for log in known.logs:
            before = log.size
            _mark(log, known, committed, int(self._cluster.wall() * 1000))
            self._cluster.size += log.size - before
        for name in known.groups:
            group = self._cluster.groups.get(name)
            offsets = {} if group is None else group.unsettled.pop(known.producer_id, {})
            if group is not None and committed:
                group.offsets.update(offsets)
        known.logs, known.groups = {}, set()
        known.begun, known.committed = None, committed

    # -- time

    def advance(self, now: float) -> None:
        """Abort what has been open for too long."""
        for known in self._known.values():
            if known.begun is not None and known.begun + known.timeout <= now:
                self._bump(known)
                self._end(known, False)

    def due(self) -> float:
        """When ``advance`` has something to do."""
        times = (one.begun + one.timeout for one in self._known.values() if one.begun is not None)
        return min(times, default=NEVER)


def _mark(log: Log, known: Transaction, committed: bool, time: int) -> None:
    """Write the marker that ends a transaction in a partition."""
    marker = Record(control_key("commit" if committed else "abort"), _MARKER.pack(0, 0), timestamp=time)
    data = records.encode(
        [marker],
        base_offset=log.end,
        partition_leader_epoch=log.epoch,
        producer_id=known.producer_id,
        producer_epoch=known.epoch,
        is_transactional=True,
        is_control=True,
    )
    first = log.open_transactions.pop(known.producer_id, None)
    if first is not None and not committed:
        log.aborted.append(Aborted(known.producer_id, first, log.end))
    log.put(Entry(data, log.end, log.end, 2, TRANSACTIONAL | CONTROL, time, known.producer_id))
    log.fence(known.producer_id, known.epoch)
