"""Fetch: record sets from an offset on, now or as soon as there are enough of them.

Rules kept here, as Kafka's brokers have them:

- The answer waits for ``min_bytes``, up to ``max_wait_ms``. It comes at once where a partition has an error.
- Batches are given whole. The first one is given whatever its size (v3 and later, KIP-74); before, it is cut off.
- A client that reads an older format than the log has gets it converted (v0-3). Batches of zstd cannot be converted,
  nor given to a client that may not know zstd (before v10).
- With ``read_committed`` nothing after the last stable offset is given, and aborted transactions are listed (v4).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from kwire import messages, records
from kwire.codec.objects import WireMessage
from kwire.protocol.error_codes import ErrorCode
from kwire.records import Record
from kwire.testing.broker.apis.leading import current_leader, leader_error, newer_leaders
from kwire.testing.broker.apis.naming import topic_of
from kwire.testing.broker.asking import Ask, Wait
from kwire.testing.broker.logs import Aborted, Entry, Log, RefusedError
from kwire.testing.broker.sessions import Cached, Session

__all__ = ["fetch"]

_IDS_SINCE: Final = 13
_ALWAYS_ONE_SINCE: Final = 3
_ZSTD_SINCE: Final = 10
_ENDPOINTS_SINCE: Final = 16
_COMMITTED: Final = 1
"""The isolation level ``read_committed``."""


@dataclass(slots=True)
class _Read:
    """What there is for a client of one partition."""

    wanted: Cached
    log: Log | None
    code: int = 0
    data: bytes = b""
    until: int = 0
    """The offset after what was read."""
    aborted: list[Aborted] | None = None

    @property
    def state(self) -> tuple[int, ...]:
        """What is answered besides records."""
        log = self.log
        return (self.code, -1, -1, -1) if log is None else (self.code, log.end, log.stable, log.start)


@dataclass(slots=True)
class _Fetch:
    """A request that is under way."""

    ask: Ask
    session: Session | None
    partitions: list[Cached] = field(default_factory=list)
    incremental: bool = False

    def poll(self, now: float, due: float) -> WireMessage | None:
        """The answer, if there is enough or it is time."""
        found = list(self._reads())
        size = sum(len(one.data) for one in found)
        failed = any(one.code for one in found)
        if now < due and found and not failed and size < self.ask.body.min_bytes:
            return None
        return self._response(found)

    def _reads(self) -> Iterator[_Read]:
        body = self.ask.body
        left = body.max_bytes if self.ask.version >= _ALWAYS_ONE_SINCE else 0x7FFFFFFF
        given = False
        for one in self.partitions:
            read = self._read(one, left, given)
            left -= len(read.data)
            given = given or bool(read.data)
            yield read

    def _read(self, cached: Cached, left: int, given: bool) -> _Read:
        ask, wanted = self.ask, cached.wanted
        by_id = ask.version >= _IDS_SINCE
        topic = topic_of(ask.cluster, cached.topic, cached.topic, by_id)
        log = ask.cluster.log(topic, wanted.partition)
        name = topic.name if topic is not None else cached.topic if not by_id else ""
        read = _Read(cached, log, ask.refused(name, wanted.partition))
        if read.code:
            return read
        if log is None:
            missing = by_id and topic is None
            read.code = ErrorCode.UNKNOWN_TOPIC_ID if missing else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return read
        read.code = leader_error(log, ask.node, wanted.current_leader_epoch)
        committed = ask.body.isolation_level == _COMMITTED
        end = log.stable if committed else log.end
        if not read.code and not log.start <= wanted.fetch_offset <= log.end:
            read.code = ErrorCode.OFFSET_OUT_OF_RANGE
        if read.code:
            return read
        try:
            read.data, read.until = _data(log, wanted, end, left, ask.version, given)
        except RefusedError as error:
            read.code = error.code
        if committed:
            read.aborted = log.aborted_between(wanted.fetch_offset, read.until)
        return read

    def _response(self, found: list[_Read]) -> WireMessage:
        kind = messages.FetchResponse
        topics: dict[Any, messages.FetchResponse.FetchableTopicResponse] = {}
        by_id = self.ask.version >= _IDS_SINCE
        leaders = []
        for one in found:
            cached = one.wanted
            news = bool(one.data) or one.code or cached.told != one.state
            cached.told = one.state
            if self.session is not None and one.data:
                # Whoever had records stands last next time, so that all have their turn.
                key = cached.topic, cached.wanted.partition
                if key in self.session.partitions:
                    self.session.partitions[key] = self.session.partitions.pop(key)
            if self.incremental and not news:
                continue
            if cached.topic not in topics:
                named = {"topic_id": cached.topic} if by_id else {"topic": cached.topic}
                topics[cached.topic] = kind.FetchableTopicResponse(**named)
            part = self._partition(one)
            topics[cached.topic].partitions.append(part)
            if part.current_leader.leader_id >= 0:
                leaders.append(part.current_leader.leader_id)
        made = kind(session_id=0 if self.session is None else self.session.id, responses=list(topics.values()))
        if self.ask.version >= _ENDPOINTS_SINCE:
            made.node_endpoints = newer_leaders(self.ask.cluster, leaders, kind.NodeEndpoint)
        return made

    def _partition(self, one: _Read) -> messages.FetchResponse.PartitionData:
        kind = messages.FetchResponse
        code, end, stable, start = one.state
        made = kind.PartitionData(
            partition_index=one.wanted.wanted.partition,
            error_code=code,
            high_watermark=-1 if code else end,
            last_stable_offset=-1 if code else stable,
            log_start_offset=-1 if code else start,
            records=one.data,
        )
        if one.aborted is None:
            made.aborted_transactions = None
        else:
            made.aborted_transactions = [
                kind.AbortedTransaction(producer_id=lost.producer_id, first_offset=lost.first) for lost in one.aborted
            ]
        if self.ask.version >= _ENDPOINTS_SINCE and one.log is not None:
            leader = current_leader(one.log, code, kind.LeaderIdAndEpoch)
            if leader is not None:
                made.current_leader = leader
        return made


def fetch(ask: Ask) -> WireMessage | Wait:
    """The records of some partitions."""
    body = ask.body
    by_id = ask.version >= _IDS_SINCE
    wanted = [(one.topic_id if by_id else one.topic, part) for one in body.topics for part in one.partitions]
    under_way = _Fetch(ask, None)
    sessions = ask.cluster.sessions
    if body.session_epoch > 0:
        forgotten = [
            (one.topic_id if by_id else one.topic, number)
            for one in body.forgotten_topics_data
            for number in one.partitions
        ]
        session = sessions.next(body.session_id, body.session_epoch, by_id)
        if isinstance(session, ErrorCode):
            return messages.FetchResponse(error_code=session)
        session.take(wanted, forgotten)
        under_way.incremental = True
        under_way.session = session
        under_way.partitions = list(session.partitions.values())
    else:
        if body.session_id:
            sessions.close(body.session_id)
        # Epoch 0 asks for a session, which an empty request does not need.
        if body.session_epoch == 0 and wanted and ask.version >= 7:
            under_way.session = sessions.open(by_id)
            under_way.session.take(wanted, ())
            under_way.partitions = list(under_way.session.partitions.values())
        else:
            under_way.partitions = [Cached(topic, part) for topic, part in wanted]
    due = ask.now + max(body.max_wait_ms, 0) / 1000
    answer = under_way.poll(ask.now, due)
    return Wait(due, lambda now: under_way.poll(now, due)) if answer is None else answer


def _data(log: Log, wanted: Any, end: int, left: int, version: int, given: bool) -> tuple[bytes, int]:
    """Entries from an offset on, and the offset after them. Raises ``RefusedError``."""
    most = min(wanted.partition_max_bytes, left)
    newest = 0 if version < 2 else 1 if version < 4 else 2
    parts: list[bytes] = []
    size, until = 0, wanted.fetch_offset
    for entry in log.after(wanted.fetch_offset):
        if entry.last >= end:
            break
        data = _converted(entry, newest, version)
        if size + len(data) > most:
            if version < _ALWAYS_ONE_SINCE:
                parts.append(data[: max(0, most - size)])
            elif not given and not size:
                parts.append(data)
                until = entry.last + 1
            break
        parts.append(data)
        size += len(data)
        until = entry.last + 1
    return b"".join(parts), until


def _converted(entry: Entry, newest: int, version: int) -> bytes:
    """An entry in a format that the client reads. Raises ``RefusedError``."""
    if entry.magic == 2 and version < _ZSTD_SINCE and entry.zstd:
        raise RefusedError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd is read from Fetch v10 on")
    if entry.magic <= newest:
        return entry.data
    if entry.control:
        return b""
    made = []
    for batch in entry.batches():
        plain = [
            Record(one.key, one.value, timestamp=one.timestamp if newest else None, offset=one.offset)
            for one in batch.records
        ]
        if plain:
            made.append(records.encode(plain, magic=newest, compression=batch.compression or "none"))
    return b"".join(made)
