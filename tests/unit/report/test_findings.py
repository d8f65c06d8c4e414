"""What goes wrong: each rule with rows that are a finding and rows that nearly are; captures of current clients."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire import capture
from kwire.protocol.error_codes import ErrorCode
from kwire.report import findings
from kwire.report.findings import COLUMNS, RULES, Finder, Finding, Thresholds, errors, needed
from kwire.tables import table
from kwire.tables.columns import with_dictionaries
from kwire.values import Schemas, Written
from kwire.values.catalog import Catalog
from kwire.values.written import AVRO

GOLDEN = Path(__file__).parents[2] / "golden"
BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
Row = dict[str, Any]


def rows(name: str, made: Iterable[Row]) -> tuple[str, pa.RecordBatch]:
    """Rows of a table as a batch with the columns that the rules read."""
    base: Row = {
        "capture": "x",
        "connection": 3,
        "client_host": "10.0.0.1",
        "client_port": 50_000,
        "broker_host": "10.0.0.9",
        "broker_port": 9092,
        "out_of_order": 0,
        "opened_by": "client",
        "ended": "open",
        "unanswered": 0,
        "requests": 0,
        "broker_bytes": 0,
        "tls": False,
        "client_id": "one",
        "direction": "request",
        "status": "ok",
        "source": "produce",
        "partition": 0,
        "topic": "t",
    }
    columns = (*findings.COLUMNS[name], *(findings.OF_VALUES if name == "records" else ()))
    schema = table(name).chosen(columns)
    whole = []
    for number, row in enumerate(made):
        at = BEGIN + timedelta(seconds=row.get("at", 0))
        times = dict.fromkeys(("timestamp", "frame_timestamp", "first_seen", "last_seen"), at)
        lists: Row = {"errors": [], "apis": [], "client_ids": ["one"], "size": 0}
        values = base | times | lists | {"frame": number} | row
        whole.append({one: values.get(one) for one in schema.names})
    return name, pa.RecordBatch.from_pylist(whole, schema=schema)


def parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch in parts: of 7 rows, and each of twice as many as the one before."""
    first, size = 0, 7
    while first < batch.num_rows:
        yield batch.slice(first, size)
        first, size = first + size, 2 * size


def found(rule: str, *batches: tuple[str, pa.RecordBatch], **changes: Any) -> list[Finding]:
    finder, other = (Finder([rule], Thresholds(**changes), SCHEMAS) for _ in range(2))
    for name, batch in batches:
        # As reading gives them: in parts, and as commands read them, with dictionaries.
        for part in parts(batch):
            finder.add(name, part)
            other.add(name, part.cast(with_dictionaries(batch.schema)))
    made = finder.result()
    assert other.result() == made
    findings.batch_of(made).validate(full=True)
    assert {one.rule for one in made} <= {rule}
    assert all(one.evidence for one in made)
    return made


def wrote(connection: int, epoch: int, **more: Any) -> Row:
    return {"connection": connection, "producer_id": 7, "producer_epoch": epoch, "sequence": 0} | more


def held(seconds: int, at: int = 0) -> list[Row]:
    """Responses to a reader of committed records, one each second, that bring nothing."""
    return [{"api_name": "Fetch", "direction": "response", "last_stable_offset": 5, "high_watermark": 9,
             "record_bytes": 0, "at": at + k} for k in range(seconds + 1)]  # fmt: skip


def read(seconds: int, at: int = 0) -> list[Row]:
    return [row | {"last_stable_offset": 9, "record_bytes": 50} for row in held(seconds, at)]


def produce(count: int, **more: Any) -> list[Row]:
    return [{"api_name": "Produce", "batches": 1, "records": 1, "record_bytes": 100, "at": k / count * 50} | more
            for k in range(count)]  # fmt: skip


def answers(count: int, api: str, errors: list[str] | None = None, **more: Any) -> list[Row]:
    return [{"api_name": api, "direction": "response", "errors": errors or [], "at": k / count * 50} | more
            for k in range(count)]  # fmt: skip


def joins(generations: int) -> list[Row]:
    made: list[Row] = []
    for k in range(generations):
        made.append({"api_name": "JoinGroup", "correlation_id": k, "group_id": "g", "member_id": "m", "at": k})
        made.append(
            {"api_name": "JoinGroup", "direction": "response", "correlation_id": k, "generation": k + 1, "at": k + 0.5}
        )
    return made


def beats(*times: float) -> list[Row]:
    joined: Row = {"api_name": "JoinGroup", "group_id": "g", "member_id": "", "session_timeout_ms": 10_000}
    return [joined, *({"api_name": "Heartbeat", "group_id": "g", "member_id": "m", "at": at} for at in times)]


def of_group(api: str, **more: Any) -> Row:
    return {"api_name": api, "group_id": "g", "member_id": "m", **more}


def happened(event: str, *times: float, **more: Any) -> list[Row]:
    """Events of a group of the consumer protocol."""
    return [{"event": event, "kind": "consumer", "group_id": "g", "at": at, **more} for at in times]


def delivered(outcome: str, count: int, delivery: int, **more: Any) -> list[Row]:
    """Ranges of records that a member of a share group had."""
    base: Row = {"group_id": "s", "member_id": "m", "outcome": outcome, "delivery_count": delivery}
    places = ({"first_offset": k, "last_offset": k + more.get("last_offset", 0), "at": k} for k in range(count))
    return [{**base, "lock_timeout_ms": 30_000, **more, **place} for place in places]


def taken(*times: float, partition: int = 0, **more: Any) -> list[Row]:
    """Events by which a partition is taken from a member of a classic group."""
    lost = [{"topic": "t", "partition": partition}]
    base: Row = {"kind": "classic", "assignor": "cooperative-sticky", "lost": lost}
    return happened("revoked", *times, **{**base, **more})


def pipelined(times: int, each: int, **more: Any) -> list[Row]:
    """So many times: so many Produce requests, and then their responses."""
    ways = ["request"] * each + ["response"] * each
    return [{"api_name": "Produce", "direction": way, "at": k, **more} for k in range(times) for way in ways]


def spoken(count: int, version: int, *, begin: float = 0, **more: Any) -> list[Row]:
    """Fetch requests of a version, one each second."""
    return [{"api_name": "Fetch", "api_version": version, "at": begin + k, **more} for k in range(count)]


def single(count: int, requests: int = 1) -> list[Row]:
    """Connections with so many Produce requests."""
    return [{"at": 60 * k, "apis": [{"api_name": "Produce", "requests": requests}]} for k in range(count)]


def told(*errors: str, begin: float = 0, every: float = 0.1, **more: Any) -> list[Row]:
    """Produce requests for a partition, each after the response to the one before, and what these say."""
    base: Row = {"api_name": "Produce", **more}
    ways: list[Row] = [row for error in errors for row in ({}, {"direction": "response", "error": error})]
    return [base | row | {"at": begin + k // 2 * every} for k, row in enumerate(ways)]


STALE = "NOT_LEADER_OR_FOLLOWER"


def committing(*offsets: int, fetches: int = 1, records: int = 100, **more: Any) -> Case:
    """Commits of these offsets, five a second, of a consumer to which so many Fetch responses bring records."""
    base: Row = {"api_name": "OffsetCommit", "group_id": "g", **more}
    sent = [base | {"at": k / 10, "frame": 9_000 + k, "offset": one} for k, one in enumerate(offsets)]
    got: Row = {"api_name": "Fetch", "direction": "response", "record_bytes": 90 * records, "records": records}
    return [("calls", sent), ("partitions", [*(got | {"at": k / 10} for k in range(fetches)), *sent])]


def commits(*offsets: int, api: str = "OffsetCommit") -> list[Row]:
    return [{"api_name": api, "group_id": "g", "offset": one, "at": k} for k, one in enumerate(offsets)]


def exchange(*commits_: tuple[int, str | None], same_id: bool = False) -> list[Row]:
    """Commits, each with its response: what is committed, and the error, if it is refused."""
    made: list[Row] = []
    for k, (offset, error) in enumerate(commits_):
        row: Row = {"api_name": "OffsetCommit", "correlation_id": 0 if same_id else k, "at": k}
        made += [row | {"group_id": "g", "offset": offset}, row | {"direction": "response", "error": error or "NONE"}]
    return made


def sent(*sequences: int) -> list[Row]:
    return [{"producer_id": 7, "producer_epoch": 0, "sequence": one} for one in sequences]


def watermark(newest: int) -> Row:
    return {"api_name": "Fetch", "direction": "response", "high_watermark": newest, "record_bytes": 0}


def spread(*sizes: int) -> list[Row]:
    return [produce(1, partition=k, record_bytes=size)[0] for k, size in enumerate(sizes)]


def fetching(*times: float) -> tuple[str, list[Row]]:
    return "frames", [{"api_name": "Fetch", "at": at} for at in times]


def beating(*generations: tuple[int, range]) -> tuple[str, list[Row]]:
    return "calls", [
        of_group("Heartbeat", at=float(at), generation=generation) for generation, times in generations for at in times
    ]


def cut(count: int, api: str = "Produce", version: int = 2, **more: Any) -> list[Row]:
    """Connections that the broker closed without an answer."""
    use = {"api_name": api, "api_version": version, "requests": 1}
    return [
        {"at": k, "apis": [use], "ended": "fin", "ended_by": "broker", "unanswered": 1} | more for k in range(count)
    ]


def waited(*requests: tuple[float, float, int], api: str = "Produce") -> list[Row]:
    """Responses of a broker: when each was asked for, when it came, and on which connection."""
    made = [
        {"api_name": api, "direction": "response", "at": then, "latency_ms": (then - asked) * 1000, "connection": of}
        for asked, then, of in requests
    ]
    return sorted(made, key=lambda row: row["at"])


def quick(*times: float, connection: int = 9) -> list[tuple[float, float, int]]:
    return [(at - 0.001, at, connection) for at in times]


def out_of_range(*asked: Row) -> list[Row]:
    """Fetch of an offset that the log does not have, and what is asked for then."""
    first = [fetch_from(5), {**fetch_from(None), "direction": "response", "error": "OFFSET_OUT_OF_RANGE"}]
    return [{**row, "at": k} for k, row in enumerate([*first, *asked])]


def fetch_from(offset: int | None, **more: Any) -> Row:
    return {"api_name": "Fetch", "offset": offset, **more}


def stable(*told: tuple[float, int, int], **more: Any) -> list[Row]:
    """What Fetch responses say of a partition: when, its last stable offset and its high watermark."""
    return [
        {"api_name": "Fetch", "direction": "response", "at": at, "last_stable_offset": last, "high_watermark": high}
        | more
        for at, last, high in told
    ]


def started(
    *offsets: int, client_id: str = "one", join: str = "JoinGroup", record_bytes: int = 9, every: float = 10
) -> Case:
    """A member of a group that is started over and over: at which offset it begins."""
    members, parts = [], []
    for k, offset in enumerate(offsets):
        own: Row = {"client_id": client_id, "connection": 100 * len(client_id) + k, "at": every * k}
        members.append({"api_name": join, "group_id": "g", **own})
        told = {"direction": "response", "error": "NONE", **own}
        parts.append({"api_name": "OffsetFetch", "offset": offset, **told})
        parts.append({"api_name": "Fetch", "offset": offset, "record_bytes": record_bytes, **told})
    return [("partitions", parts), ("calls", members)]


def crumbs(count: int, *, ahead: int, size: int = 100, beside: int = 0, **more: Any) -> list[Row]:
    """Fetches of one record each, with so many behind it, in 50 seconds."""
    made: list[Row] = []
    for k in range(count):
        own: Row = {"api_name": "Fetch", "at": k / count * 50, "frame": 2 * k, **more}
        made.append({"offset": k, **own})
        told: Row = {**own, "direction": "response", "frame": 2 * k + 1}
        made.append({**told, "record_bytes": size, "records": 1, "high_watermark": k + 1 + ahead})
        if beside:
            made.append({**told, "partition": 7, "record_bytes": beside, "records": 9, "high_watermark": 0})
    return made


def leaders(*told: tuple[float, int | None], **more: Any) -> list[Row]:
    """Metadata responses: when, and which broker leads the partition, if one does."""
    made: Row = {"api_name": "Metadata", "direction": "response"}
    return [
        {**made, "at": at, "error": "LEADER_NOT_AVAILABLE" if leader is None else "NONE"} | more for at, leader in told
    ]


def refused(at: float, **more: Any) -> Row:
    """A connection that is refused."""
    return {"at": at, "status": "unknown", "client_ids": [], "ended": "rst", "ended_by": "broker"} | more


def reached(at: float, **more: Any) -> Row:
    return {"at": at, "handshake_ms": 0.1, "requests": 3, "broker_bytes": 99} | more


def asks_where_the_log_begins(count: int, **more: Any) -> list[Row]:
    """A client that does so on many connections, and gets records."""
    made: list[Row] = []
    for k in range(count):
        own: Row = {"connection": k, "at": 10 * k, **more}
        made.append({"api_name": "ListOffsets", "offset_spec": "earliest", **own})
        made.append({"api_name": "Fetch", "direction": "response", "record_bytes": 9, **own})
    return made


def dated(at: float, *, hours: float, **more: Any) -> list[Row]:
    """A record that is ahead of the capture by so many hours."""
    return [{"at": at, "timestamp": BEGIN + timedelta(seconds=at, hours=hours)} | more]


def ended(client_id: str, aborted: int, committed: int) -> list[Row]:
    return [{"api_name": "EndTxn", "committed": k >= aborted, "at": k, "client_id": client_id}
            for k in range(aborted + committed)]  # fmt: skip


def resent(*sends: tuple[float, float, int], answered: float | None = None) -> Case:
    """Batches without a producer id: when each was sent, the time of its first record, on which connection; the first
    connection ends without answers to what was sent after ``answered``."""
    batches = [
        {"at": at, "connection": of, "frame": k, "timestamp": BEGIN + timedelta(seconds=made)}
        for k, (at, made, of) in enumerate(sends)
    ]
    told = [{"api_name": "Produce", "direction": "response", "at": answered + 0.1, "connection": 1, "latency_ms": 100.0}
            for _ in range(answered is not None)]  # fmt: skip
    ends = [{"connection": 1, "unanswered": 1}, {"connection": 2, "unanswered": 0}]
    return [("records", batches), ("frames", told or answers(1, "Metadata")), ("connections", ends)]


HELLO: Row = {"status": "encrypted", "tls": True, "ended": "fin", "ended_by": "broker", "broker_bytes": 0}
"""A connection that a client began with TLS, and that the broker closed."""
ALERT: Row = {"status": "ok", "tls": False, "broker_bytes": 7, "requests": 1, "unanswered": 1}
Case = list[tuple[str, list[Row]]]


def version(number: int, *fields: Row) -> Written:
    text = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}, *fields]})
    return Written(AVRO, text, id=number, subject="t-value", version=number)


WHO: Row = {"name": "who", "type": "string"}
SCHEMAS = Schemas(
    [
        Catalog(
            [
                version(1), version(2, WHO), version(3, {**WHO, "default": ""}), version(4), version(5, WHO),
                version(6), replace(version(7), text=version(7).text.replace('"int"', '"string"')),
            ]
        )
    ]
)  # fmt: skip
"""Of the topic t: 2 cannot read 1, nor 5 what 4 and 6 write, nor 6 and 7 each other."""


def valued(count: int, schema: int | None = 1, status: str = "ok", **more: Any) -> list[Row]:
    """Records whose values have a schema of Confluent's."""
    error = None if status == "ok" else "t-value: $.who at byte 5: the value ends within it"
    called = None if schema is None or status == "unknown_schema" else f"t-value v{schema}"
    of: Row = {"value_framing": "confluent", "value_format": "avro", "value_schema_id": schema, "value_schema": called}
    return [{**of, "value_status": status, "value_error": error, "at": k, **more} for k in range(count)]


CASES: dict[str, tuple[Callable[[], Case], Callable[[], Case]]] = {
    "tiny-batches": (
        lambda: [("partitions", produce(1200))],
        lambda: [("partitions", [*produce(990), *produce(1200, records=2, client_id="two")])],
    ),
    "no-compression": (
        lambda: [("partitions", produce(10, record_bytes=1_000_000, compression="none"))],
        lambda: [("partitions", [*produce(10, record_bytes=999_999, compression="none"),
                                 *produce(99, record_bytes=1_000_000, compression="lz4")])],
    ),
    "mixed-acks": (
        lambda: [("calls", [*produce(2, acks=0), *produce(2, acks=-1)])],
        lambda: [("calls", [*produce(2, acks=0), *produce(2, acks=1), *produce(2, acks=-1, client_id="two")])],
    ),
    "no-acks": (
        lambda: [("calls", produce(200, acks=0))],
        # Fewer; with some that are acknowledged by all.
        lambda: [("calls", [*produce(199, acks=0), *produce(200, acks=0, client_id="two"),
                            *produce(1, acks=-1, client_id="two"), *produce(300, acks=1, client_id="three")])],
    ),
    "unordered-retries": (
        lambda: [("frames", pipelined(50, 3)), ("records", [{"producer_id": -1}])],
        # One after the other, and few; with a producer id; without an answer; nobody knows what was in them.
        lambda: [("frames", [*pipelined(150, 1), *pipelined(49, 3, connection=4), *pipelined(50, 3, connection=5),
                             *(row for row in pipelined(50, 3, connection=6) if row["direction"] == "request"),
                             *pipelined(50, 3, connection=7)]),
                 ("records", [*({"producer_id": -1, "connection": k} for k in (3, 4, 6)),
                              {"producer_id": 9, "connection": 5}])],
    ),
    "metadata-storm": (
        lambda: [("frames", [{"api_name": "Metadata", "at": k * 0.9} for k in range(61)])],
        lambda: [("frames", [{"api_name": "Metadata", "at": k * 1.1} for k in range(600)])],
    ),
    "lookup-storm": (
        lambda: [("frames", [{"api_name": "ListOffsets", "at": k * 0.09} for k in range(600)])],
        # Slower than that; by two processes; and what is one thing in a program's turn, of each kind.
        lambda: [("frames", [*({"api_name": "ListOffsets", "at": k * 0.11} for k in range(2000)),
                             *({"api_name": "OffsetFetch", "at": k * 0.06, "connection": 4 + k % 2,
                                "client_port": 4 + k % 2} for k in range(999)),
                             *({"api_name": api, "client_id": "two", "at": k * 0.11} for k in range(540)
                               for api in ("FindCoordinator", "Fetch", "Heartbeat", "Produce"))])],
    ),
    "connection-churn": (
        lambda: [("connections", [{"at": k * 0.5} for k in range(100)])],
        lambda: [("connections", [*({"at": k * 0.7} for k in range(1000)),
                                  # Whose beginning is not in the capture.
                                  *({"at": k, "opened_by": None} for k in range(60))])],
    ),
    "producer-per-message": (
        lambda: [("connections", single(30))],
        lambda: [("connections", [*single(29), *single(50, requests=2), *cut(50),
                                  *({**one, "opened_by": None} for one in single(50))])],
    ),
    "rebalance-loop": (
        lambda: [("calls", joins(10))],
        lambda: [("calls", joins(9))],
    ),
    "late-heartbeats": (
        lambda: [("calls", beats(0, 3, 13.5, 16))],
        lambda: [("calls", beats(0, 3, 12.5, 16))],
    ),
    "stuck-reconciliation": (
        lambda: [("group_events", [*happened("rebalance_began", 0), *happened("revoked", 1, member_id="m")]),
                 ("calls", [of_group("ConsumerGroupHeartbeat", at=at, generation=1) for at in range(0, 65, 5)])],
        # It ended in time; and another one is on for less.
        lambda: [("group_events", [*happened("rebalance_began", 0), *happened("synced", 50, member_id="m"),
                                   *happened("rebalance_ended", 59), *happened("rebalance_began", 70)]),
                 ("calls", [of_group("ConsumerGroupHeartbeat", at=at, generation=1) for at in range(0, 129, 5)])],
    ),
    "classic-group": (
        lambda: [("group_events", [*happened("joined", 0), *happened("joined", 1, kind="classic", assignor="range",
                                                                     group_id="old")])],
        # Connect has no other protocol; and another broker.
        lambda: [("group_events", [*happened("joined", 0), *happened("joined", 1, kind="classic", assignor="sessioned"),
                                   *happened("joined", 1, kind="classic", assignor="range", broker_port=9093)])],
    ),
    "cooperative-churn": (
        lambda: [("group_events", taken(*range(0, 40, 10)))],
        # Three times; slower; other partitions; another assignor; KIP-848 does it by itself.
        lambda: [("group_events", [*taken(0, 10, 20), *taken(*range(0, 300, 30), partition=1),
                                   *(row for k in range(9) for row in taken(k, partition=10 + k)),
                                   *taken(*range(9), partition=2, assignor="range"),
                                   *taken(*range(9), partition=3, kind="consumer")])],
    ),
    "coordinator-churn": (
        lambda: [("group_events", happened("coordinator_moved", 0, 10, 20, 30))],
        lambda: [("group_events", [*happened("coordinator_moved", *range(0, 900, 30)),
                                   *happened("coordinator_moved", 0, 1, 2, group_id="h")])],
    ),
    "commits-in-rebalance": (
        lambda: [("group_events", happened("commit_refused", *range(5), error_name="STALE_MEMBER_EPOCH"))],
        lambda: [("group_events", [*happened("commit_refused", *range(4), error_name="STALE_MEMBER_EPOCH"),
                                   *happened("commit_refused", *range(9), error_name="OFFSET_METADATA_TOO_LARGE")])],
    ),
    "poison-records": (
        lambda: [("share_deliveries", delivered("released", 1, 4))],
        lambda: [("share_deliveries", [*delivered("released", 50, 3), *delivered("accepted", 50, 5)])],
    ),
    "lock-timeouts": (
        lambda: [("share_deliveries", delivered("expired", 5, 1))],
        lambda: [("share_deliveries", [*delivered("expired", 4, 1), *delivered("released", 50, 1),
                                       *delivered("expired", 4, 1, member_id="other")])],
    ),
    "released-records": (
        lambda: [("share_deliveries", [*delivered("released", 10, 1, last_offset=9), *delivered("accepted", 50, 1)])],
        # Fewer; less than half; two members together.
        lambda: [("share_deliveries", [*delivered("released", 99, 1), *delivered("released", 200, 1, member_id="b"),
                                       *delivered("accepted", 201, 1, member_id="b"),
                                       *delivered("released", 60, 1, member_id="c"),
                                       *delivered("released", 60, 1, member_id="d")])],
    ),
    "dead-letters": (
        lambda: [("share_deliveries", delivered("rejected", 2, 1, last_offset=9))],
        lambda: [("share_deliveries", [*delivered("rejected", 19, 1), *delivered("released", 50, 3),
                                       *delivered("rejected", 19, 1, partition=1), *delivered("accepted", 50, 5)]),
                 ("partitions", produce(30))],
    ),
    "late-polls": (
        lambda: [("calls", [of_group("JoinGroup"), of_group("LeaveGroup"), of_group("JoinGroup"),
                            of_group("ConsumerGroupHeartbeat", generation=-1)])],
        lambda: [("calls", [of_group("JoinGroup"), of_group("JoinGroup"), of_group("LeaveGroup"),
                            of_group("JoinGroup", connection=4), of_group("JoinGroup", group_id="other"),
                            of_group("ConsumerGroupHeartbeat", generation=5)])],
    ),
    "no-progress": (
        lambda: started(*(5,) * 5),
        # Four times; in less time; it commits; it gets nothing; a tool that looks at the group is no member.
        lambda: [*started(5, 5, 5, 5), *started(*(5,) * 5, client_id="five", every=4.9),
                 *started(1, 2, 3, 4, 5, 6, client_id="two"),
                 *started(*(5,) * 9, client_id="three", record_bytes=0),
                 *started(*(5,) * 9, client_id="a-tool", join="DescribeGroups"),
                 ("partitions", asks_where_the_log_begins(9, client_id="console"))],
    ),
    "empty-fetches": (
        lambda: [("frames", answers(300, "Fetch")), ("partitions", answers(30, "Fetch", record_bytes=5))],
        lambda: [("frames", answers(300, "Fetch")), ("partitions", answers(31, "Fetch", record_bytes=5))],
    ),
    "small-fetches": (
        lambda: [("partitions", crumbs(700, ahead=1000))],
        # The reader is near the end; there is much in each; it is slower; another partition fills the response.
        lambda: [("partitions", [*crumbs(2000, ahead=999), *crumbs(700, ahead=9000, size=16_384, partition=1),
                                 *crumbs(590, ahead=9000, client_id="two", connection=4),
                                 *crumbs(700, ahead=9000, beside=20_000, client_id="three", connection=5)])],
    ),
    "over-committing": (
        lambda: committing(*range(300)),
        # As many as it gets from brokers: it commits after each poll.
        lambda: committing(*range(300), fetches=150),
    ),
    "offsets-back": (
        lambda: [("partitions", commits(5, 9, 7))],
        lambda: [("partitions", [*commits(5, 9, 9), *({**row, "partition": 1} for row in commits(2, 3))])],
    ),
    "offset-resets": (
        lambda: [("partitions", out_of_range({"api_name": "ListOffsets", "offset_spec": "earliest"}, fetch_from(90)))],
        # A follower that does not have it yet: the leader does. And a follower itself.
        lambda: [("partitions", [*out_of_range(fetch_from(5, broker_port=9093)),
                                 *({**row, "client_id": "broker-1-fetcher-0"} for row in out_of_range())])],
    ),
    "hanging-transactions": (
        lambda: [("partitions", stable(*((at, 5, 10 + at) for at in range(0, 61, 5))))],
        # The log goes on in time; there is nothing behind it; it is another reader's isolation, or partition.
        lambda: [("partitions", [*stable(*((at, 5 if at < 55 else 60, 10 + at) for at in range(0, 90, 5))),
                                 *stable(*((at, 5, 5) for at in range(0, 90, 5)), partition=1),
                                 *stable(*((at, -1, 10) for at in range(0, 90, 5)), partition=2),
                                 *stable((0, 5, 9), partition=3), *stable((70, 5, 9), partition=4)])],
    ),
    "stalled-brokers": (
        lambda: [("frames", waited(*quick(0, 5), (0.1, 4, 1), (0.5, 4.1, 2)))],
        lambda: [("frames", [
            # One client alone; somebody gets an answer meanwhile; two wait for what takes long on purpose.
            *waited(*quick(0, 5), (0.1, 4, 1), (0.2, 4.1, 1)),
            *waited(*quick(10, 11.5, 12.5, 13, 15), (10.1, 14, 1), (10.5, 14.1, 2)),
            *waited(*quick(20, 25), (20.1, 24, 1), (20.2, 24.1, 2), api="Fetch"),
        ])],
    ),
    "offline-partitions": (
        lambda: [("partitions", leaders(*((at, None) for at in range(0, 31, 5))))],
        # In time there is one; for less time; new topics have none yet; another error.
        lambda: [("partitions", [*leaders(*((at, 1 if at == 15 else None) for at in range(0, 41, 5))),
                                 *leaders(*((at, None) for at in range(0, 20, 5)), topic="short"),
                                 *leaders(*((at, None) for at in range(0, 90, 5)), topic="new", partition=None),
                                 *({**row, "error": "UNKNOWN_TOPIC_OR_PARTITION"}
                                   for row in leaders(*((at, None) for at in range(0, 90, 5)), topic="none"))])],
    ),
    "unreachable-brokers": (
        lambda: [("connections", [reached(-5), *(refused(at) for at in range(0, 61, 5))])],
        # For a minute, but somebody gets through; for less time; it is no broker.
        lambda: [("connections", [reached(-5), reached(32), *(refused(at) for at in range(0, 70, 5)),
                                  *(refused(at, broker_port=9093) for at in range(0, 50, 5)),
                                  reached(60, broker_port=9093),
                                  *(refused(at, broker_port=443) for at in range(0, 90, 5))])],
    ),
    "late-acks": (
        lambda: [("frames", waited((0, 5.1, 1), (0, 6, 1), (1, 9, 1)))],
        # Two; not so late; of two brokers; and what may wait.
        lambda: [("frames", [*waited((0, 5.1, 1), (0, 6, 1), *((0, 4.9, 1) for _ in range(9))),
                             *({**row, "broker_port": 9093} for row in waited((0, 6, 1), (0, 6, 1))),
                             *waited(*((0, 9, 1) for _ in range(9)), api="Fetch"),
                             # Of a client that is beyond its quota.
                             *({**row, "client_id": "two"} for row in waited(*((0, 9, 1) for _ in range(9))))]),
                 ("calls", [{**row, "client_id": "two"} for row in answers(1, "Produce", throttle_ms=20)])],
    ),
    "aborted-transactions": (
        lambda: [("calls", ended("one", 10, 10))],
        lambda: [("calls", [*ended("one", 10, 11), *ended("two", 9, 0)])],
    ),
    "zombie-producers": (
        lambda: [("records", [wrote(3, 1, at=1), wrote(4, 2, at=2), wrote(3, 1, at=3)])],
        # One client goes on to a newer epoch; another producer; two that write with the same epoch.
        lambda: [("records", [wrote(3, 1, at=1), wrote(3, 2, at=2), wrote(3, 1, at=3), wrote(4, 1, producer_id=8),
                              wrote(5, 2, producer_id=9), wrote(6, 2, producer_id=9)])],
    ),
    "held-back-readers": (
        lambda: [("partitions", [*held(40), *read(20, at=40)])],
        lambda: [("partitions", [*held(29), *({**row, "topic": "half"} for row in (*held(40), *read(50, at=40))),
                                 *({**row, "topic": "all", "last_stable_offset": -1} for row in held(40)),
                                 *({**row, "topic": "got", "record_bytes": 5} for row in held(40))])],
    ),
    "throttled": (
        lambda: [("calls", answers(3, "Produce", throttle_ms=20))],
        lambda: [("calls", answers(300, "Produce", throttle_ms=0))],
    ),
    "duplicate-produces": (
        lambda: resent((0, 0, 1), (1, 1, 1), (4, 1, 2), answered=0),
        # The first was answered; others with the same id send at once; another record; it has a producer id.
        lambda: [*resent((0, 0, 1), (1, 1, 1), (4, 1, 2), answered=1),
                 *resent((20, 20, 1), (20.015, 20, 2), (24, 23, 2))[:1],
                 ("records", [{**row, "producer_id": 5} for row in resent((30, 30, 1), (33, 30, 2))[0][1]])],
    ),
    "retried-batches": (
        lambda: [("records", sent(0, 1, 2, 1))],
        lambda: [("records", [*sent(0, 1, 2), *({**row, "producer_epoch": 1} for row in sent(0, 1)),
                              *({**row, "producer_id": -1} for row in sent(-1, -1))])],
    ),
    "stale-leaders": (
        lambda: [("partitions", told(*[STALE] * 20))],
        # A rolling restart: each of many partitions moves, and back again.
        lambda: [("partitions", [*(row for p in range(30) for row in told(*[STALE] * 9, "NONE", STALE, partition=p)),
                                 *told(*[STALE] * 30, client_id="raft-client-3")])],
    ),
    "wrong-times": (
        lambda: [("records", dated(0, hours=1.01))],
        lambda: [("records", [*dated(0, hours=0.99), *dated(0, hours=-24 * 365 * 30, topic="old"),
                              *dated(0, hours=5, topic="read", source="fetch"),
                              *dated(0, hours=5, topic="refused"), *({"topic": "none"} for _ in range(3))]),
                 ("partitions", [{"api_name": "Produce", "direction": "response", "topic": "refused",
                                  "error": "INVALID_TIMESTAMP"}])],
    ),
    "skewed-partitions": (
        lambda: [("partitions", spread(900_000, 40_000, 40_000, 40_000))],
        lambda: [("partitions", [*spread(400_000, 200_000, 200_000, 210_000),
                                 *({**row, "topic": "small"} for row in spread(900, 1, 1, 1)),
                                 *({**row, "topic": "few"} for row in spread(9_000_000, 1, 1))])],
    ),
    "large-messages": (
        lambda: [("frames", [{"api_name": "Produce", "size": 950_000}])],
        lambda: [("frames", [{"api_name": "Produce", "size": 949_999}, {"api_name": "Fetch", "size": 9_000_000}])],
    ),
    "fenced-producers": (
        lambda: [("frames", answers(1, "EndTxn", ["PRODUCER_FENCED"]))],
        lambda: [("frames", answers(9, "EndTxn", ["CONCURRENT_TRANSACTIONS"]))],
    ),
    "unknown-topics": (
        lambda: [("frames", answers(20, "Metadata", ["UNKNOWN_TOPIC_OR_PARTITION"]))],
        lambda: [("frames", [*answers(19, "Metadata", ["UNKNOWN_TOPIC_OR_PARTITION"]),
                             *answers(99, "Metadata", ["INVALID_TOPIC_EXCEPTION"])])],
    ),
    "fetch-sessions": (
        lambda: [("frames", answers(20, "Fetch", ["FETCH_SESSION_ID_NOT_FOUND"]))],
        # Fewer; by many processes, as after the restart of a broker.
        lambda: [("frames", [*answers(19, "Fetch", ["FETCH_SESSION_ID_NOT_FOUND"]),
                             *({**row, "client_id": "two", "connection": k, "client_port": k} for k, row in
                               enumerate(answers(99, "Fetch", ["FETCH_SESSION_ID_NOT_FOUND"])))])],
    ),
    "short-sasl-sessions": (
        lambda: [("frames", [{"api_name": "SaslHandshake", "at": at} for at in (0, 15, 30, 45)])],
        # Each minute; and once on each connection.
        lambda: [("frames", [*({"api_name": "SaslHandshake", "at": 60 * k} for k in range(9)),
                             *({"api_name": "SaslHandshake", "connection": 9 + k} for k in range(99))])],
    ),
    "mixed-versions": (
        lambda: [("frames", [*spoken(10, 12), *spoken(10, 16, connection=4)])],
        # Few of one; on one connection; one after the other; other ids; another broker.
        lambda: [("frames", [*spoken(10, 12), *spoken(10, 16), *spoken(9, 11, connection=4),
                             *spoken(10, 12, connection=5, begin=100), *spoken(10, 11, connection=6, client_id="two"),
                             *spoken(10, 11, connection=7, broker_port=9093)])],
    ),
    "denials": (
        lambda: [("frames", answers(1, "Fetch", ["TOPIC_AUTHORIZATION_FAILED"]))],
        lambda: [("frames", answers(9, "Fetch", ["UNKNOWN_TOPIC_OR_PARTITION"]))],
    ),
    "sasl-failures": (
        lambda: [("connections", [{"sasl_outcome": "failed", "sasl_mechanism": "PLAIN", "sasl_error": "SASL…: no"}])],
        lambda: [("connections", [{"sasl_outcome": "unfinished", "sasl_mechanism": "PLAIN"}, {"sasl_outcome": "ok"}])],
    ),
    "cut-off-clients": (
        lambda: [("connections", cut(3)), ("frames", answers(9, "ApiVersions", api_version=2))],
        lambda: [("connections", [*cut(2), *cut(9, version=9), *cut(9, version=5, ended_by="client"),
                                  *cut(9, version=6, unanswered=0)]),
                 ("frames", answers(1, "Produce", api_version=9))],
    ),
    "tls-mismatch": (
        lambda: [("connections", [HELLO, {**HELLO, "at": 5}])],
        # It answers with a ServerHello, or an alert; it is the client that goes; whose beginning was not captured.
        lambda: [("connections", [{**HELLO, "broker_bytes": 1500, "tls_version": "1.3"}, {**HELLO, "broker_bytes": 7},
                                  {**HELLO, "ended_by": "client"}, {**HELLO, "opened_by": None},
                                  # A request that is answered, or that is not.
                                  {**HELLO, **ALERT, "unanswered": 0}, {**HELLO, **ALERT, "broker_bytes": 0},
                                  {**HELLO, **ALERT, "requests": 2}, {**HELLO, **ALERT, "broker_bytes": 8}])],
    ),
    "out-of-order-responses": (
        lambda: [("connections", [{"broker_host": "b", "broker_port": 9092, "out_of_order": n} for n in (0, 2, 1)])],
        lambda: [("connections", [{"broker_host": "b", "broker_port": 9092, "out_of_order": 0},
                                  {"broker_host": "b", "broker_port": 9092, "out_of_order": 3, "status": "other"}])],
    ),
    "stopped-consumers": (
        lambda: [fetching(0, 50, 130), beating((4, range(0, 200, 3)))],
        lambda: [fetching(0, 50, 140), beating((4, range(0, 200, 3)))],
    ),
    "lag": (
        lambda: [("partitions", [*commits(5, 100), watermark(10_100)])],
        lambda: [("partitions", [*commits(5, 101), watermark(10_100), {**watermark(99_999), "topic": "other"}])],
    ),
    "fatal-errors": (
        lambda: [("frames", answers(1, "Produce", ["NOT_ENOUGH_REPLICAS"]))],
        lambda: [("frames", answers(9, "Produce", ["REQUEST_TIMED_OUT"]))],
    ),
    "repeated-errors": (
        lambda: [("frames", answers(20, "OffsetCommit", ["ILLEGAL_GENERATION"]))],
        lambda: [("frames", [*answers(19, "OffsetCommit", ["ILLEGAL_GENERATION"]),
                             *answers(30, "Fetch", ["TOPIC_AUTHORIZATION_FAILED"]),
                             # For less than a minute.
                             *answers(500, "EndTxn", ["CONCURRENT_TRANSACTIONS"])])],
    ),
    "unknown-schemas": (
        lambda: [("records", [*valued(5), *valued(2, 7, "unknown_schema")]), ("connections", [{}])],
        # What only looks like a name of a schema is another one each time.
        lambda: [("records", [*valued(5), *(row for k in range(9) for row in valued(1, 7 + k, "unknown_schema")),
                              *valued(9, None, "no_schema", value_framing=None)])],
    ),
    "mixed-framings": (
        lambda: [("records", [*valued(5), *valued(1, value_framing="confluent_header")])],
        # Two versions of a schema, another topic, keys, and what no schema fits.
        lambda: [("records", [*valued(5), *valued(5, 2), *valued(1, value_framing="glue", topic="other"),
                              *valued(1, value_framing="glue", value_status="malformed"),
                              *({"key_framing": "glue", "key_status": "ok"} for _ in range(3))])],
    ),
    "no-longer-decodes": (
        lambda: [("records", [*valued(5), *valued(5, 2, "malformed", at=9)]), ("connections", [{}])],
        # Of the same schema; from the beginning; and with one that the registry does not know.
        lambda: [("records", [*valued(5, at=5), *valued(2, 1, "malformed", at=9), *valued(5, 2, "malformed", at=1),
                              *valued(5, 7, "unknown_schema", at=9),
                              # Texts beside JSON.
                              *valued(5, None, "ok", value_framing="none", topic="u"),
                              *valued(5, None, "no_schema", value_framing=None, topic="u", at=9)])],
    ),
    "invalid-values": (
        lambda: [("records", [*valued(5), *valued(2, 1, "invalid", at=9)]), ("connections", [{}])],
        lambda: [("records", [*valued(5), *valued(2, 1, "malformed", at=9), *valued(2, 7, "unknown_schema")])],
    ),
    "breaking-versions": (
        lambda: [("records", [*valued(5), *valued(5, 2, at=9)])],
        # A default; the version before that one; a version that is not written; and another topic.
        lambda: [("records", [*valued(5, 3), *valued(5, 4, at=9), *valued(5, 3, topic="other", value_schema=None)])],
    ),
}  # fmt: skip
"""For each rule: rows that are one finding, and rows that nearly are one."""


def test_every_rule_has_its_cases() -> None:
    missing = set(RULES) - set(CASES)
    assert not missing, f"add two cases to CASES: traffic that is {', '.join(sorted(missing))}, and what nearly is"
    assert set(CASES) == set(RULES)


def test_every_threshold_is_that_of_one_rule_which_says_what_it_finds() -> None:
    named = [one for rule in RULES.values() for one in rule.thresholds]
    assert sorted(named) == sorted(one.name for one in fields(Thresholds))
    assert all(rule.finds for rule in RULES.values())


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_finds_what_it_is_about_and_not_what_is_nearly_so(rule: str) -> None:
    wrong, nearly = CASES[rule]
    (one,) = found(rule, *(rows(*each) for each in wrong()))
    assert one.severity in findings.SEVERITIES
    assert one.advice
    assert one.first_seen is not None
    assert one.last_seen is not None
    assert one.first_seen <= one.last_seen
    assert found(rule, *(rows(*each) for each in nearly())) == []


def test_a_group_of_any_protocol_that_rebalances_over_and_over_is_found_with_the_causes() -> None:
    events = happened("rebalance_began", *range(0, 50, 5), cause="session_timeout")
    (one,) = found("rebalance-loop", rows("group_events", events))
    assert one.summary == "10 rebalances, 10 in a minute; causes: session timeout (10)"
    assert found("rebalance-loop", rows("group_events", events[:9])) == []
    classic = [row | {"kind": "classic"} for row in events]
    (one,) = found("rebalance-loop", rows("group_events", classic), rows("calls", joins(10)))
    assert one.summary.endswith("0 members left; joined: one (10); causes: session timeout (10)")


def test_heartbeats_of_the_newer_protocols_are_late_after_the_session_timeout_of_brokers() -> None:
    (one,) = found("late-heartbeats", rows("group_events", happened("heartbeat_late", 9, duration_ms=46_000.0)))
    assert one.summary == "up to 46.0 s between heartbeats, with a session timeout of 45 s"
    assert found("late-heartbeats", rows("group_events", happened("heartbeat_late", 9, duration_ms=44_000.0))) == []


def test_groups_of_both_kinds_may_be_late_in_one_capture() -> None:
    late = happened("heartbeat_late", 9, duration_ms=46_000.0)
    made = found("late-heartbeats", rows("group_events", late), rows("calls", beats(0, 3, 13.5, 16)))
    assert len(made) == 2


def test_a_finding_says_who_how_often_and_where() -> None:
    (one,) = found("offsets-back", rows("partitions", commits(5, 9, 7, 3)))
    assert (one.client_host, one.client_id, one.group_id, one.topic, one.partition) == ("10.0.0.1", "one", "g", "t", 0)
    assert (one.count, one.evidence) == (2, [("x", 3, 2), ("x", 3, 3)])
    (one,) = found("rebalance-loop", rows("calls", joins(11)))
    assert "one (11)" in one.summary
    (one,) = found("lag", rows("partitions", [*commits(5), watermark(20_005)]))
    assert (one.count, one.group_id) == (20_000, "g")


@pytest.mark.parametrize("same_id", [False, True])
def test_what_a_broker_refuses_was_not_committed(same_id: bool) -> None:
    refused = "ILLEGAL_GENERATION"
    # However many commits stand before it, and so wherever batches of seven rows end.
    for before in range(9):
        begin = [(k, None) for k in range(before)]
        wrong = exchange(*begin, (90, None), (20, refused), (30, refused), (91, None), same_id=same_id)
        assert found("offsets-back", rows("partitions", wrong)) == []
        wrong = exchange(*begin, (90, None), (20_000, refused), same_id=same_id)
        (one,) = found("lag", rows("partitions", [*wrong, watermark(20_090)]))
        assert (one.count, one.evidence) == (20_000, [("x", 3, 2 * before)])
        right = exchange(*begin, (90, None), (20, None), (30, refused), same_id=same_id)
        (one,) = found("offsets-back", rows("partitions", right))
        assert (one.count, one.evidence) == (1, [("x", 3, 2 * before + 2)])
        (one,) = found("lag", rows("partitions", [*right, watermark(20_020)]))
        assert one.count == 20_000


def test_commits_without_responses_count() -> None:
    for before in range(9):
        asked = [row for row in exchange(*((k, None) for k in range(before)), (90, None), (20, None))
                 if row.get("direction") != "response"]  # fmt: skip
        finder = Finder(["offsets-back", "lag"])
        name, batch = rows("partitions", [*asked, watermark(20_020)])
        for first in range(0, batch.num_rows, 7):
            finder.add(name, batch.slice(first, 7))
        # Asking before the end changes nothing.
        assert [(one.rule, one.count) for one in finder.result()] == [("offsets-back", 1), ("lag", 20_000)]
        assert [(one.rule, one.count) for one in finder.result()] == [("offsets-back", 1), ("lag", 20_000)]
    # The response to the first is lost: it is not later than the one that followed it in another connection.
    lost = [exchange((20, None))[0], *({**row, "connection": 4, "at": 1} for row in exchange((90, None)))]
    assert found("offsets-back", rows("partitions", lost)) == []
    (one,) = found("lag", rows("partitions", [*lost, watermark(20_090)]))
    assert one.count == 20_000


def test_what_a_transaction_commits_counts_when_it_is_committed() -> None:
    def of_transaction(api: str, frame: int, **more: Any) -> Row:
        return {"api_name": api, "frame": frame, "at": frame, "transactional_id": "t1", **more}

    def read(*ends: Row, first: int = 30, second: int = 20, calls_first: bool = False) -> list[tuple[str, int]]:
        asked = [
            {**row, "api_name": "TxnOffsetCommit", "frame": 10 * k + 10, "at": 10 * k + 10}
            for k, row in enumerate(commits(first, second))
        ]
        finder = Finder(["offsets-back", "lag"])
        partitions = rows("partitions", [*commits(5), *asked, watermark(20_000)])
        calls = rows("calls", [*(of_transaction("TxnOffsetCommit", frame) for frame in (10, 20)), *ends])
        for name, batch in (calls, partitions) if calls_first else (partitions, calls):
            for at in range(batch.num_rows):
                finder.add(name, batch.slice(at, 1))
        # Whatever comes then, the next batch of the other table knows it.
        finder.add(*rows("partitions", [{**watermark(20_000), "at": 90}]))
        return [(one.rule, one.count) for one in finder.result()]

    def end(frame: int, committed: bool) -> Row:
        return of_transaction("EndTxn", frame, committed=committed)

    for calls_first in (False, True):
        both = read(end(15, True), end(25, True), calls_first=calls_first)
        assert both == [("offsets-back", 1), ("lag", 19_980)]
        # The first was aborted, then the second, then none has ended.
        assert read(end(15, False), end(25, True), calls_first=calls_first) == [("lag", 19_980)]
        assert read(end(15, True), end(25, False), calls_first=calls_first) == [("lag", 19_970)]
        assert read(end(15, True), calls_first=calls_first) == [("lag", 19_970)]
        # A producer that begins anew ends what was open.
        assert read(end(15, True), of_transaction("InitProducerId", 25), end(26, True)) == [("lag", 19_970)]
        # Another's end is none of theirs, and then nobody knows.
        alien = {**end(25, False), "transactional_id": "t2"}
        assert read(alien, calls_first=calls_first) == [("offsets-back", 1), ("lag", 19_980)]

    # However many wait for the end of a transaction.
    asked = commits(*range(900, 0, -1), api="TxnOffsetCommit")
    finder = Finder(["offsets-back"])
    finder.add(*rows("calls", [of_transaction("TxnOffsetCommit", k) for k in range(len(asked))]))
    finder.add(*rows("partitions", asked))
    finder.add(*rows("calls", [{**end(1000, False), "frame": 1000}]))
    finder.add(*rows("partitions", [{**watermark(20_000), "at": 2000}]))
    assert finder.result() == []


def test_the_end_of_a_log_is_known_from_what_is_written() -> None:
    def written(offset: int | None, records: int | None, **more: Any) -> Row:
        answer = {"direction": "response", "offset": offset} if offset is not None else {"records": records}
        return {"api_name": "Produce", **answer, **more}

    def end(*rows_: Row) -> dict[tuple[str | None, int | None], int]:
        finder = Finder(["lag"])
        name, batch = rows("partitions", rows_)
        for first in range(batch.num_rows):
            finder.add(name, batch.slice(first, 1))
        whole = Finder(["lag"])
        whole.add(name, batch)
        assert finder.newest() == whole.newest()
        return whole.newest()

    assert end(written(None, 5), written(None, 7), written(100, None), written(105, None)) == {("t", 0): 112}
    assert end(written(None, 5), written(None, 7), written(100, None)) == {("t", 0): 105}
    # Without a response to the first, nobody knows which of the two the last response is for.
    assert end(written(None, 9), written(None, 2), written(100, None)) == {("t", 0): 102}
    assert end(written(None, 5), written(-1, None)) == {}
    assert end(written(None, None), written(8, None)) == {("t", 0): 9}
    latest = {"api_name": "ListOffsets", "direction": "response", "offset": 50}
    unnamed = {"topic": None, "topic_id": "id"}
    assert end(latest, {**latest, "offset": -1}, {**watermark(40), **unnamed}) == {("t", 0): 50, ("id", 0): 40}


def behind(*lags: int, partition: int = 0, every: float = 10, **more: Any) -> list[Row]:
    """A group that commits every ten seconds, so many records behind the end of the log, which grows by 5,000."""
    made: list[Row] = []
    for k, lag in enumerate(lags):
        end, at = 5000 * (k + 1), every * k
        made.append({**watermark(end), "at": at, "partition": partition, **more})
        made.append({**commits(end - lag)[0], "at": at + 1, "partition": partition, **more})
    return made


def in_time(*parts: list[Row]) -> list[Row]:
    return sorted((row for part in parts for row in part), key=lambda row: row["at"])


def test_a_group_is_behind_in_all_partitions_together() -> None:
    parts = [behind(3000, partition=k, client_id=f"c{k % 2}") for k in range(4)]
    (one,) = found("lag", rows("partitions", in_time(*parts)))
    assert (one.count, one.group_id, one.topic, one.partition) == (12_000, "g", "t", None)
    assert (one.client_host, one.client_id) == (None, None)
    assert one.summary == "12000 records behind in 4 partitions, 3000 at most in one"
    assert len(one.evidence) == 4
    assert found("lag", rows("partitions", in_time(*parts[:3]))) == []


def test_lag_that_only_grows_is_found_before_it_is_large() -> None:
    (one,) = found("lag", rows("partitions", behind(100, 500, 900, 1300)))
    assert one.summary.endswith("that grew by 1200 in 30 s, although the group works")
    # Now the one partition, now the other is read: both together fall behind.
    turns = in_time(behind(0, 600, 300, 900, 600, 1200), behind(600, 300, 900, 600, 1200, 900, partition=1))
    (one,) = found("lag", rows("partitions", turns))
    assert (one.count, one.partition) == (2100, None)
    assert "grew by 1500 in 50 s" in one.summary
    for nearly in (
        # By less; in less time; it fell; it grew at once and stays; nobody has committed for long.
        behind(100, 400, 700, 1000),
        behind(0, 900, 1800),
        behind(0, 1000, 2000, 400, 1400, 2400),
        behind(100, 2100, 2100, 2100, 2100),
        [*behind(100), *({**watermark(5000 * k), "at": 10.0 * k} for k in range(2, 3)), {**watermark(9000), "at": 90}],
        # One more partition is known.
        in_time(
            behind(100, 100, 100, 100, 100), [{**row, "at": row["at"] + 30} for row in behind(4000, 4000, partition=1)]
        ),
    ):
        assert found("lag", rows("partitions", nearly)) == []
    # A small fall is none.
    (one,) = found("lag", rows("partitions", behind(0, 500, 450, 1000, 1500)))
    assert "grew by 1500 in 40 s" in one.summary
    # However long it takes.
    (one,) = found("lag", rows("partitions", behind(*range(0, 9000, 10), every=10)))
    assert "in 8960 s" in one.summary or "in 89" in one.summary


def test_a_group_is_compared_with_logs_of_its_own_cluster() -> None:
    other = {"broker_port": 9093}
    both = in_time(behind(10, 10), behind(10, 10, **other), [{**watermark(90_000), "at": 30, **other}])
    told = [
        {"api_name": "Metadata", "direction": "response", "cluster_id": name, "broker_port": port}
        for name, port in (("A", 9092), ("B", 9093))
    ]
    (one,) = found("lag", rows("partitions", both), rows("calls", told))
    assert one.count == 90_000 - 9_990
    assert found("lag", rows("partitions", both[:-1]), rows("calls", told)) == []
    # Nobody says that there are two; and both brokers are of the same one.
    for calls in ([], [told[0]], [{**one, "cluster_id": "A"} for one in told]):
        assert [each.count for each in found("lag", rows("partitions", both), rows("calls", calls))] == [80_010]
    # A group of the same name commits less in the other cluster.
    back = in_time(commits(50, 60, 70), [{**row, **other} for row in commits(20, 30, 40)])
    assert found("offsets-back", rows("partitions", back), rows("calls", told)) == []


def test_members_that_come_back_by_heartbeats_were_late_too() -> None:
    beats_ = [of_group("ConsumerGroupHeartbeat", generation=one) for one in (0, 1, 1, -1, 0, 2, -1, 0, -2, 0)]
    (one,) = found("late-polls", rows("calls", beats_))
    assert (one.count, one.group_id, one.summary) == (2, "g", "it left the group and joined it again 2 times")


def test_partitions_that_get_nothing_count() -> None:
    def known(partition: int) -> Row:
        return {"api_name": "Metadata", "direction": "response", "partition": partition}

    sent_ = produce(1, record_bytes=1_000_000)
    assert found("skewed-partitions", rows("partitions", [*map(known, range(3)), *sent_])) == []
    (one,) = found("skewed-partitions", rows("partitions", [*map(known, range(6)), *sent_]))
    assert "one of 6 partitions" in one.summary


def test_a_member_that_has_no_partition_left_is_not_stuck() -> None:
    # Fetched in one generation, and no more when the next one gave its partitions to others.
    last = fetching(0, 50, 130)
    for beats_ in (beating((4, range(0, 131, 3)), (5, range(132, 200, 3))), beating((4, range(133, 200, 3)))):
        assert found("stopped-consumers", *(rows(*one) for one in (last, beats_))) == []
    # Another process with the same id is closed.
    closed = rows("connections", [{"at": 131, "ended": "fin", "ended_by": "client"}])
    beats_ = beating((4, range(0, 200, 3)))
    assert found("stopped-consumers", rows(*last), rows(*beats_), closed) == []
    much_later = rows("connections", [{"at": 191, "ended": "fin", "ended_by": "client"}])
    (one,) = found("stopped-consumers", rows(*last), rows(*beats_), much_later)
    assert (one.client_id, one.group_id) == ("one", "g")
    # By epochs, as the newer protocol has them.
    newer = ("calls", [{**row, "api_name": "ConsumerGroupHeartbeat"} for row in beats_[1]])
    assert len(found("stopped-consumers", rows(*last), rows(*newer))) == 1


def test_what_clients_retry_in_ordinary_life_is_wrong_when_it_goes_on() -> None:
    busy = answers(500, "AddPartitionsToTxn", ["CONCURRENT_TRANSACTIONS"])
    late = [{**row, "at": row["at"] * 4} for row in busy]
    (one,) = found("repeated-errors", rows("frames", late))
    assert one.summary == "CONCURRENT_TRANSACTIONS in 500 AddPartitionsToTxn responses, and no other answer in 200 s"
    fine = answers(1, "AddPartitionsToTxn")[0]
    for last, count in ((130, 1), (150, 0)):
        mixed = sorted([*late, *({**fine, "at": at} for at in range(0, last + 1, 10))], key=lambda row: row["at"])
        assert len(found("repeated-errors", rows("frames", mixed))) == count


def test_each_fatal_error_has_a_severity_and_an_advice_of_its_own() -> None:
    told = [*answers(3, "Produce", ["NOT_ENOUGH_REPLICAS"]), *answers(1, "EndTxn", ["INVALID_TXN_STATE"])]
    replicas, state = found("fatal-errors", rows("frames", told))
    assert (replicas.severity, replicas.count, state.severity) == ("high", 3, "medium")
    assert "min.insync.replicas" in replicas.advice
    assert "too few replicas are in sync" in replicas.summary
    assert found("repeated-errors", rows("frames", answers(99, "Produce", ["NOT_ENOUGH_REPLICAS"]))) == []
    for error in errors._FATAL:
        assert error in ErrorCode.__members__


def test_errors_that_another_rule_is_about_are_no_repeated_errors() -> None:
    others = {error: rule.name for rule in RULES.values() for error in rule.errors}
    assert {"stale-leaders", "offset-resets", "large-messages", "sasl-failures"} <= set(others.values())
    for error in others:
        assert error in ErrorCode.__members__
        assert found("repeated-errors", rows("frames", answers(99, "Fetch", [error]))) == []
    assert len(found("repeated-errors", rows("frames", answers(99, "Fetch", ["UNKNOWN_SERVER_ERROR"])))) == 1


def test_errors_that_clients_retry_are_errors() -> None:
    assert set(errors._RETRIED) <= set(ErrorCode.__members__)


def test_who_a_finding_is_about_says_what_each_name_is() -> None:
    about = {"client_id": "app", "client_host": "h", "group_id": "billing", "topic": "orders", "partition": 3}
    one = findings.Finding("lag", "high", "s", "a", 1, **about)
    assert findings.who(one.row()) == "app on h, group billing, partition orders-3"
    one.client_id, one.partition, one.principal = None, None, "alice"
    assert findings.who(one.row()) == "h, as alice, group billing, topic orders"
    assert findings.who(findings.Finding("lag", "high", "s", "a", 1).row()) == "-"


def test_evidence_is_said_once_and_of_several_captures_with_the_capture() -> None:
    one = findings.Finding("lag", "high", "s", "a", 1)
    one.evidence = [("s3://key:secret@bucket/x/a.pcap", 1, 7), ("b.pcap", 1, 7), ("b.pcap", 1, 7), ("b.pcap", 2, None)]

    def said(captures: int) -> str:
        (column,) = (each for each in findings.shown(captures) if each.title == "evidence")
        return column.text(one.row())

    assert said(1) == "frame 7, connection 2"
    assert said(2) == "frame 7 of a.pcap, frame 7 of b.pcap, connection 2 of b.pcap"
    one.evidence += [("b.pcap", 1, 8), ("b.pcap", 1, 9)]
    assert said(1) == "frame 7, connection 2, frame 8, …"


def test_one_cause_is_one_finding() -> None:
    fenced = [*answers(2, "Produce", ["INVALID_PRODUCER_EPOCH"]), *answers(1, "EndTxn", ["PRODUCER_FENCED"])]
    (one,) = found("fenced-producers", rows("frames", fenced))
    assert (one.count, one.summary) == (
        3, "INVALID_PRODUCER_EPOCH in 2 Produce responses, PRODUCER_FENCED in 1 EndTxn response",
    )  # fmt: skip
    large = [{"api_name": "Produce", "size": 1_200_000}, *answers(1, "Produce", ["MESSAGE_TOO_LARGE"])]
    (one,) = found("large-messages", rows("frames", large))
    assert one.summary.endswith("1 request refused as too large")
    (one,) = found(
        "retried-batches", rows("records", [{**row, "partition": k} for k in range(3) for row in sent(0, 1, 1)])
    )
    assert (one.count, one.topic, one.partition) == (3, "t", None)


def one_of_many(k: int, **more: Any) -> Row:
    """A row of a process, of several with the same client_id."""
    return {"connection": k, "client_port": 50_000 + k, **more}


def named(k: int) -> Row:
    return one_of_many(k, software_name="librdkafka", software_version=f"2.{k}")


@pytest.mark.wide
def test_many_slow_processes_with_the_same_id_are_not_one_that_is_fast() -> None:
    slow: dict[str, list[Case]] = {
        "tiny-batches": [[("partitions", [row for k in range(20) for row in produce(100, **one_of_many(k))])]],
        "metadata-storm": [
            [("frames", [one_of_many(k, api_name="Metadata", at=at) for at in range(10) for k in range(9)])]
        ],
        "over-committing": [
            [
                (name, [row | one_of_many(k, at=row["at"] * 5) for k in range(9) for row in made])
                for name, made in committing(*[5] * 99)
            ]
        ],
        "empty-fetches": [[("frames", [row for k in range(9) for row in answers(120, "Fetch", **one_of_many(k))])]],
    }
    for rule, (case,) in slow.items():
        assert found(rule, *(rows(name, sorted(made, key=lambda row: row["at"])) for name, made in case)) == []


@pytest.mark.wide
def test_an_id_that_many_share_is_told_by_host_port_and_software() -> None:
    made = [row for k in range(5) for row in produce(1200 if k == 3 else 100, **one_of_many(k))]
    batches = rows("partitions", sorted(made, key=lambda row: row["at"]))
    (one,) = found("tiny-batches", batches, rows("connections", map(named, range(5))))
    assert (one.client_host, one.client_port, one.software, one.count) == ("10.0.0.1", 50_003, "librdkafka 2.3", 1200)
    assert findings.who(one.row()) == "one on 10.0.0.1:50003, librdkafka 2.3, topic t"
    # On several brokers it is one process.
    of_brokers = [row for k in range(3) for row in produce(400, **one_of_many(k, broker_port=9092 + k))]
    (one,) = found("tiny-batches", rows("partitions", sorted(of_brokers, key=lambda row: row["at"])))
    assert (one.count, one.client_port, one.software) == (1200, None, None)
    # An idle consumer asks each of several brokers for itself.
    idle = [row for k in range(5) for row in answers(100, "Fetch", **one_of_many(k, broker_port=9092 + k))]
    assert found("empty-fetches", rows("frames", sorted(idle, key=lambda row: row["at"]))) == []


def test_what_may_have_been_written_and_comes_again_is_a_duplicate() -> None:
    def of(error: str, *sends: tuple[float, float, int]) -> list[Finding]:
        told = [{**answers(1, "Produce", [error])[0], "connection": 2, "at": 3, "latency_ms": 2000.0}]
        return found("duplicate-produces", rows(*resent(*sends)[0]), rows("frames", told))

    again = ((1, 1, 2), (4, 1, 2))
    (one,) = of("REQUEST_TIMED_OUT", *again)
    assert (one.count, one.client_id, one.topic, one.evidence) == (1, "one", "t", [("x", 2, 1)])
    assert of("NOT_LEADER_OR_FOLLOWER", *again) == []
    assert of("REQUEST_TIMED_OUT", (1, 1, 2), (2, 1, 2)) == []
    # Whoever sends it again is another client.
    for other in ("a", "two"):
        told = {**answers(1, "Produce")[0], "connection": 2, "at": 9, "latency_ms": 1.0, "client_id": other}
        batches, _, ends = resent((1, 1, 1), (4, 1, 2))
        assert found("duplicate-produces", rows(*batches), rows("frames", [told]), rows(*ends)) == []
    (one,) = found("duplicate-produces", *(rows(*each) for each in resent((1, 1, 1), (4, 1, 2))))
    assert one.count == 1
    # However far apart they are in batches: each is found once.
    many = [(k / 10, k / 10, 1) for k in range(30)]
    (one,) = found("duplicate-produces", *(rows(*each) for each in resent(*many, (9, 2, 2), (9, 2.5, 2), answered=1.9)))
    assert one.count == 2


def test_what_a_broker_refused_is_sent_again_in_ordinary_life() -> None:
    again = [{**row, "at": at} for row, at in zip(sent(0, 1, 1, 1), (0, 1, 3, 5), strict=True)]

    def left(error: str, at: float, **more: Any) -> list[int]:
        told = {"api_name": "Produce", "direction": "response", "error": error, "at": at, **more}
        made = found("retried-batches", rows("records", again), rows("partitions", [told]))
        assert [one.count for one in found("retried-batches", rows("partitions", [told]), rows("records", again))] == [
            one.count for one in made
        ]
        return [one.count for one in made]

    # The leader has moved; of the second time nothing is known.
    assert left("NOT_LEADER_OR_FOLLOWER", 1.1) == [1]
    # It says nothing of this batch, or it may be written.
    for nothing in (("NONE", 1.1), ("NOT_LEADER_OR_FOLLOWER", 0.5), ("REQUEST_TIMED_OUT", 1.1)):
        assert left(*nothing) == [2]
    assert left("NOT_LEADER_OR_FOLLOWER", 1.1, partition=1) == [2]
    assert left("NOT_LEADER_OR_FOLLOWER", 1.1, connection=4) == [2]


def test_batches_are_tiny_where_waiting_would_fill_them() -> None:
    def spread_over(partitions: int, each: int) -> Case:
        return [("partitions", in_time(*(produce(each, partition=k) for k in range(partitions))))]

    # To each partition too seldom for a producer to wait; to one of them often; so many that it does not matter.
    assert found("tiny-batches", *(rows(*one) for one in spread_over(4, 400))) == []
    (name, some), (_, often) = spread_over(4, 200)[0], spread_over(1, 1100)[0]
    (one,) = found("tiny-batches", rows(name, in_time(some, often)))
    assert (one.count, one.topic, one.partition) == (1900, "t", None)
    (one,) = found("tiny-batches", *(rows(*one) for one in spread_over(5, 400)), tiny_batches=200)
    assert one.summary == "2000 batches with 1.0 records each, 2000 in a minute"


def test_a_reset_says_where_the_consumer_goes_on() -> None:
    both = [
        {**row, "partition": k} for k in range(2)
        for row in out_of_range({"api_name": "ListOffsets", "offset_spec": "earliest"}, fetch_from(90))
    ]  # fmt: skip
    (one,) = found("offset-resets", rows("partitions", both))
    assert (one.count, one.client_id, one.topic, one.partition) == (2, "one", "t", None)
    assert one.summary == (
        "2 Fetch responses said that the log does not have the offset, of 2 partitions; then it asked for the earliest "
        "one"
    )
    # Without a policy it does not go on.
    (one,) = found("offset-resets", rows("partitions", out_of_range()))
    assert one.partition == 0


def test_a_producer_that_begins_to_write_what_does_not_decode_is_named_with_the_time() -> None:
    mine = {"connection": 4, "at": 60}
    written = [*valued(5), *valued(3, 2, "malformed", **mine), *valued(9, 1, "ok", at=70)]
    connections = [{"connection": 3, "client_ids": ["old"]},
                   {"connection": 4, "client_ids": ["new"], "client_host": "10.0.0.2"}]  # fmt: skip
    (one,) = found("no-longer-decodes", rows("records", written), rows("connections", connections))
    assert (one.client_host, one.client_id, one.topic, one.count) == ("10.0.0.2", "new", "t", 3)
    assert one.first_seen == int((BEGIN + timedelta(seconds=60)).timestamp() * 1e6)
    assert one.summary == (
        "3 values of t-value v2 that cannot be decoded: t-value: $.who at byte 5: the value ends within it; "
        "14 of t-value v1 can"
    )
    # Who reads them did not write them.
    (one,) = found("no-longer-decodes", rows("records", [row | {"source": "fetch"} for row in written]))
    assert (one.client_host, one.client_id, one.count) == (None, None, 3)


def test_the_producer_of_values_that_break_their_schema_is_named() -> None:
    written = [*valued(5), *valued(3, 1, "invalid", connection=4, at=60), *valued(2, 1, "invalid", connection=5, at=60)]
    connections = [{"connection": k, "client_ids": [f"app-{k}"], "client_host": "10.0.0.2"} for k in (3, 4, 5)]
    made = found("invalid-values", rows("records", written), rows("connections", connections))
    assert [(one.client_id, one.topic, one.count) for one in made] == [("app-4", "t", 3), ("app-5", "t", 2)]
    assert made[0].summary.startswith("3 values that break the schema: t-value: $.who")
    # Who reads them did not write them.
    (one,) = found("invalid-values", rows("records", [row | {"source": "fetch"} for row in written]))
    assert (one.client_host, one.client_id, one.count) == (None, None, 5)


@pytest.mark.parametrize(
    ("schemas", "expected"),
    [
        ((1, 2), ["medium: t-value v2 cannot read values of t-value v1: $.who: the writer does not have the field"]),
        ((2,), ["medium: t-value v2 cannot read values of t-value v1"]),
        ((3, 4), []),
        # Who reads with 5 cannot read what is written with 6, if it still does.
        ((5, 6), ["medium: t-value v5 cannot read values of t-value v4",
                  "low: t-value v5 cannot read values of t-value v6"]),
        ((6,), []),
        ((7,), ["high: t-value v7 cannot read values of t-value v6: $.id: an int cannot be read as a string"]),
    ],
)  # fmt: skip
def test_a_version_that_breaks_readers_is_compared_with_those_before(
    schemas: tuple[int, ...], expected: list[str]
) -> None:
    written = [row for at, one in enumerate(schemas) for row in valued(2, one, at=10 * at)]
    made = [f"{one.severity}: {one.summary}" for one in found("breaking-versions", rows("records", written))]
    assert len(made) == len(expected)
    assert all(one.startswith(said) for one, said in zip(made, expected, strict=True))


def test_values_of_any_names_take_no_memory_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings.values, "_MOST", 5)
    many = [row for k in range(50) for row in valued(2, k, "unknown_schema")]
    (one,) = found("unknown-schemas", rows("records", many))
    assert one.count < 12
    assert one.summary.startswith(f"{one.count} values of a schema that no source has: id 0 (2), id 1 (2), id 2 (2)")


def test_rules_about_values_need_schemas() -> None:
    assert set(findings.OF_VALUES).isdisjoint(needed()["records"])
    assert set(findings.OF_VALUES) < set(needed(schemas=True)["records"])
    with pytest.raises(ValueError, match="the rule mixed-framings needs the schemas of values"):
        needed(["mixed-framings"])


@pytest.mark.wide
def test_what_rules_remember_is_counted() -> None:
    finder = Finder(["lag", "stalled-brokers"])
    few = finder.kept()
    for k in range(40):
        finder.add(*rows("partitions", behind(10, every=0.0)))
        finder.add(*rows("partitions", [{**watermark(k), "at": 10.0 * k}]))
        finder.add(*rows("frames", waited(*quick(10.0 * k))))
    # A value in each step of ten seconds, and a time in which the broker answered.
    assert finder.kept() - few >= 80
    for k in range(400):
        finder.add(*rows("partitions", [{**watermark(k), "at": 10.0 * k}]))
    assert finder.kept() - few <= 200


def test_what_is_kept_is_counted_four_deep() -> None:
    for one, kept in (({}, 0), ({"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}, 4), ([[[[[[1, 2]]]]]], 4), (["text"], 1)):
        assert findings._kept(one) == kept


def test_each_stall_of_a_broker_counts_once_however_many_wait() -> None:
    made = [*quick(0, 20, 40), *((0.1 + k / 10, 6.0, k) for k in range(5)), *((21.0, 25.0, k) for k in range(2))]
    (one,) = found("stalled-brokers", rows("frames", waited(*made)))
    assert (one.count, one.client_host, one.first_seen) == (2, None, int((BEGIN.timestamp() + 0.1) * 1e6))
    assert one.summary == (
        "10.0.0.9:9092: 2 times it answered nobody, for 5.8 s at most, while 5 connections waited: Produce (7)"
    )
    # Another broker answers all the while, and it is another one that does not.
    other = [{**row, "broker_port": 9093} for row in waited(*quick(*range(40)))]
    mixed = sorted([*waited(*made), *other], key=lambda row: row["at"])
    assert [each.count for each in found("stalled-brokers", rows("frames", mixed))] == [2]


def test_a_transaction_that_ends_now_and_then_does_not_hang() -> None:
    # Open most of the time, but never the same one for long; then one that stays open, in two partitions.
    short = [row for k in range(20) for row in stable((10 * k, 7 * k, 7 * k + 5), (10 * k + 9, 7 * k, 7 * k + 6))]
    assert not found("hanging-transactions", rows("partitions", short))
    long = [row for at in range(200, 275) for p in (0, 1) for row in stable((at, 140, at), partition=p)]
    between = stable((230, 140, 140), partition=1)
    (one,) = found("hanging-transactions", rows("partitions", [*short, *long]))
    assert (one.topic, one.partition) == ("t", None)
    assert "waited for 74 s" in one.summary
    assert "2 partitions" in one.summary
    (one,) = found("hanging-transactions", rows("partitions", sorted([*long, *between], key=lambda row: row["at"])))
    assert one.partition == 0


def test_readers_that_a_hanging_transaction_holds_back_are_told_once() -> None:
    both = Finder(["hanging-transactions", "held-back-readers"], Thresholds())
    # Of another topic each transaction ends in time: that is a finding of its own, though at the same time.
    others = [{**row, "topic": "slow", "last_stable_offset": row["at"] // 20, "high_watermark": 99} for row in held(70)]
    for row in sorted([*held(70), *others], key=lambda one: one["at"]):
        both.add(*rows("partitions", [row]))
    assert [(one.rule, one.topic) for one in both.result()] == [
        ("hanging-transactions", "t"),
        ("held-back-readers", "slow"),
    ]


def test_records_of_1970_have_another_unit_of_time() -> None:
    seconds = {"timestamp": datetime(1970, 1, 21, tzinfo=UTC)}
    (one,) = found("wrong-times", rows("records", [seconds, seconds | {"topic": None, "topic_id": "i"}][:1]))
    assert (one.topic, one.count) == ("t", 1)
    assert "before 1980" in one.summary
    later, by_id = dated(0, hours=500)[0], {"topic": None, "topic_id": "i"}
    both = found("wrong-times", rows("records", [seconds | by_id, later | by_id, dated(1, hours=2)[0] | by_id]))
    assert {(one.topic, one.count) for one in both} == {("i", 1), ("i", 2)}
    assert any("500.0 hours ahead" in one.summary for one in both)


def test_a_client_without_tls_at_a_listener_with_tls_is_not_an_old_client() -> None:
    use = {"api_name": "ApiVersions", "api_version": 3, "requests": 1}
    made = [{**HELLO, **ALERT, "apis": [use], "at": k} for k in range(4)]
    assert [one.rule for one in found("cut-off-clients", rows("connections", made))] == ["cut-off-clients"]
    finder = Finder(["cut-off-clients", "tls-mismatch", "connection-churn"], Thresholds(connections=1))
    finder.add(*rows("connections", made))
    (one,) = finder.result()
    assert (one.rule, one.count, one.client_id) == ("tls-mismatch", 4, "one")
    assert "without TLS" in one.summary


def test_members_that_ask_for_no_commit_make_no_progress_either() -> None:
    asks = rows("partitions", asks_where_the_log_begins(6))

    def joined(*groups: str) -> tuple[str, pa.RecordBatch]:
        return rows("calls", [of_group("JoinGroup", connection=50 + k, group_id=one) for k, one in enumerate(groups)])

    (one,) = found("no-progress", asks, joined(*["g"] * 6))
    assert (one.group_id, one.topic, one.partition, one.count) == ("g", "t", 0, 6)
    assert "where nothing was committed" in one.summary
    # A group of its own for each start, as those of console consumers, reads all on purpose.
    assert not found("no-progress", asks, joined(*"abcdef"))
    # What is committed moves on: it asks for another reason.
    offsets = [row for row in started(*range(6))[0][1] if row["api_name"] == "OffsetFetch"]
    own = rows("calls", [of_group("JoinGroup", connection=row["connection"]) for row in offsets])
    assert not found("no-progress", asks, rows("partitions", offsets), own)


@pytest.mark.parametrize("api", ["Metadata", "FindCoordinator"])
@pytest.mark.parametrize(
    ("error", "cause"), [("UNKNOWN_SERVER_ERROR", "repeated-errors"), ("UNKNOWN_TOPIC_ID", "unknown-topics")]
)
def test_what_is_asked_over_and_over_after_errors_has_one_cause(api: str, error: str, cause: str) -> None:
    asked = [{"api_name": api, "at": k * 0.05} for k in range(700)]
    wrong = answers(30, api, [error])

    def rules(*made: list[Row]) -> set[str]:
        finder = Finder(["metadata-storm", "lookup-storm", cause])
        finder.add(*rows("frames", sorted((row for part in made for row in part), key=lambda row: row["at"])))
        return {one.rule for one in finder.result()}

    storm = {"metadata-storm" if api == "Metadata" else "lookup-storm"}
    assert rules(asked, wrong) == {cause}
    assert rules(asked) == storm
    # Errors of something else are not why it asks.
    assert rules(asked, answers(30, "OffsetCommit", ["UNKNOWN_SERVER_ERROR"])) >= storm


def test_a_request_and_its_response_need_not_come_in_the_same_batch() -> None:
    finder = Finder(["small-fetches"])
    name, batch = rows("partitions", crumbs(700, ahead=1000))
    for first in range(0, batch.num_rows, 3):
        finder.add(name, batch.slice(first, 3))
    (one,) = finder.result()
    assert one.count == 700
    # Of many partitions, all requests come before all responses.
    made = [{**row, "partition": k // 2} for k, row in enumerate(crumbs(700, ahead=1000))]
    finder = Finder(["small-fetches"])
    for half in (made[::2], made[1::2]):
        finder.add(*rows("partitions", half))
    (one,) = finder.result()
    assert one.count == 700


def test_who_asks_the_same_broker_again_is_told_by_what_it_knew() -> None:
    def count(*parts: list[Row]) -> list[int]:
        made = sorted((row for part in parts for row in part), key=lambda row: row["at"])
        return [one.count for one in found("stale-leaders", rows("partitions", made))]

    assert count(told(*[STALE] * 25)) == [25]
    # Another leader epoch is the same fault, and what is fine ends it.
    assert count(told(*[STALE, "FENCED_LEADER_EPOCH"] * 10)) == [20]
    assert count(told(*[*[STALE] * 15, "NONE"] * 9)) == []
    # Five at a time were sent without knowing.
    at_once = told(*[STALE] * 60)
    ways = [at_once[k + way : k + 10 : 2] for k in range(0, 120, 10) for way in (0, 1)]
    assert count([row | {"at": k} for k, part in enumerate(ways) for row in part]) == []
    # Many processes with one client_id, all of which are told some times.
    assert count(*(told(*[STALE] * 5, connection=k) for k in range(14))) == []
    assert count(*(told(*[STALE] * 20, partition=p) for p in range(3))) == [60]


def test_a_leader_that_moves_all_the_time_is_found() -> None:
    def moves(every: float) -> list[Finding]:
        made = [told(STALE, STALE, "NONE", begin=k * every, connection=k % 3) for k in range(6)]
        return found("stale-leaders", rows("partitions", [row for part in made for row in part]))

    (one,) = moves(10)
    assert (one.topic, one.partition) == ("t", 0)
    assert one.summary == "the leader moved in 6 steps of ten seconds, 6 of them in a minute"
    # Brokers that are restarted one after the other.
    assert moves(20) == []


def test_commits_without_need_are_those_of_no_news() -> None:
    def needless(*offsets: int, **more: Any) -> list[str]:
        return [
            one.summary for one in found("over-committing", *(rows(*part) for part in committing(*offsets, **more)))
        ]

    assert needless(*[7] * 300) == ["300 commits, 300 in a minute; 299 of 300 without need"]
    assert needless(*range(300), fetches=3) == ["300 commits, 300 in a minute; 296 of 300 without need"]
    # Of batches of ten records, each of 500 that came together.
    assert needless(*range(0, 3000, 10), fetches=6, records=500) == []
    # Nobody knows what its Fetch responses brought: other brokers lead.
    assert needless(*range(300), fetches=0) == []
    assert needless(*range(299)) == []


def test_a_group_that_a_tool_sets_back_is_no_fault() -> None:
    def back(*generations: int) -> list[Finding]:
        sent = [{"api_name": "OffsetCommit", "group_id": "g", "offset": 20 - k, "generation": one, "at": k, "frame": k}
                for k, one in enumerate(generations)]  # fmt: skip
        return found("offsets-back", rows("calls", sent), rows("partitions", sent))

    assert back(3, -1) == []
    assert [one.count for one in back(3, 3, -1)] == [1]
    # A consumer that is assigned its partitions by its program has no generation.
    assert [one.count for one in back(-1, -1)] == [1]


def test_what_came_between_two_captures_is_not_known() -> None:
    later = [row | {"capture": "y"} for row in beats(3603, 3606)[1:]]
    assert not found("late-heartbeats", rows("calls", [*beats(3, 6), *later]))
    assert len(found("late-heartbeats", rows("calls", beats(3, 6, 3603)))) == 1


def test_clients_that_wait_for_a_leader_do_not_ask_stale_ones() -> None:
    wrong = told(*["LEADER_NOT_AVAILABLE"] * 60, api_name="Metadata")
    assert not found("stale-leaders", rows("partitions", wrong))
    asked = [{"api_name": "Metadata", "at": k * 0.6} for k in range(80)]
    finder = Finder(["offline-partitions", "metadata-storm"])
    finder.add(*rows("frames", asked))
    parts = [row for p in (0, 1) for row in leaders(*((at, None) for at in range(0, 50, 5)), partition=p)]
    finder.add(*rows("partitions", parts))
    (one,) = finder.result()
    assert (one.rule, one.client_id, one.topic, one.partition) == ("offline-partitions", "one", "t", None)
    assert "for 45 s that 2 partitions had no leader" in one.summary


def test_a_storm_is_explained_by_what_happened_while_it_was_one() -> None:
    def storm(at: float) -> list[str]:
        finder = Finder(["offline-partitions", "metadata-storm"])
        often = [{"api_name": "Metadata", "at": at + k * 0.3} for k in range(100)]
        # Some requests of ordinary life, long before.
        finder.add(*rows("frames", [*({"api_name": "Metadata", "at": k} for k in range(3)), *often]))
        led = leaders((0, 1), *((400 + k * 0.5, None) for k in range(61)), (430.5, 1))
        for part in parts(rows("partitions", led)[1]):
            finder.add("partitions", part)
        return [one.rule for one in finder.result()]

    assert storm(400) == ["offline-partitions"]
    assert storm(200) == ["offline-partitions", "metadata-storm"]


def test_the_time_without_a_leader_is_that_of_responses() -> None:
    def seconds(*told_: tuple[float, int | None]) -> list[str]:
        return [
            one.summary.split(" that")[0] for one in found("offline-partitions", rows("partitions", leaders(*told_)))
        ]

    without = [(at / 2, None) for at in range(2, 64)]
    assert seconds((0, 1), *without, (32, 1)) == ["Metadata responses said for 30 s"]
    # A topic that is made, and a leader between.
    assert seconds((0, 1), *without[:50], (32, 1)) == []
    assert seconds((0, None), (0.5, 1), (31, None), (32, 1)) == []


def test_a_script_that_writes_to_several_leaders_is_one_producer() -> None:
    def scripts(count: int, brokers: Iterable[int], every: float = 60) -> list[Row]:
        """Scripts that have a connection to each of these brokers for ten seconds."""
        one = single(1)[0]
        last = {"last_seen": BEGIN}
        return [
            {**one, "at": every * k + n / 10, "broker_port": port}
            | {name: BEGIN + timedelta(seconds=every * k + 10) for name in last}
            for k in range(count) for n, port in enumerate(brokers)
        ]  # fmt: skip

    assert not found("producer-per-message", rows("connections", scripts(29, (1, 2, 3))))
    (one,) = found("producer-per-message", rows("connections", scripts(30, (1, 2, 3))))
    assert (one.count, "30 connections" in one.summary) == (30, True)
    # Many at once that write to the same leader are many; of one client or of each.
    (one,) = found("producer-per-message", rows("connections", scripts(10, (1, 1, 1, 2))))
    assert one.count == 30
    (one,) = found("producer-per-message", rows("connections", scripts(40, (1,), every=0.1)))
    assert one.count == 40
    others = [{**row, "client_ids": ["two"]} for row in scripts(9, (1, 2))]
    assert not found("producer-per-message", rows("connections", [*scripts(29, (1, 2)), *others]))


@pytest.mark.parametrize("between", [0, 9], ids=["same batch", "later batch"])
def test_a_member_that_forgets_its_id_was_late_too(between: int) -> None:
    """librdkafka forgets its member id once its own clock says that the session has ended."""

    def late(at: float, *, named: str = "", connection: int = 3) -> list[Finding]:
        others = [of_group("Heartbeat", at=3 + k / 10, group_id="other") for k in range(between)]
        after = [of_group("Heartbeat", at=at, member_id=named, connection=connection)]
        rejoins = of_group("JoinGroup", at=at + 0.1, member_id="", session_timeout_ms=10_000)
        last = of_group("Heartbeat", at=at + 1, member_id="new")
        return found("late-heartbeats", rows("calls", [*beats(0, 3), *others, *after, rejoins, last]))

    (one,) = late(13.5)
    assert "10.5 s between heartbeats" in one.summary
    assert not late(12.9)
    # Another member on another connection, or after it has joined.
    assert not late(13.5, connection=4)
    assert not late(13.5, named="another")


def gave_up(connection: int, asked: float, closed: float, *, api: str = "Produce", **more: Any) -> Case:
    """A client that closes its connection without an answer to what it asked."""
    end = {"connection": connection, "at": closed, "unanswered": 1, "ended": "fin", "ended_by": "client"}
    return [("frames", [{"api_name": api, "at": asked, "connection": connection}]), ("connections", [end | more])]


def test_a_broker_stands_still_for_clients_that_give_up_too() -> None:
    before, after = ("frames", waited(*quick(0))), ("frames", waited(*quick(40)))

    def stalled(*cases: Case) -> list[str]:
        return [one.summary for one in found("stalled-brokers", *(rows(*part) for case in cases for part in case))]

    two = [*gave_up(1, 0.5, 5.5), *gave_up(2, 1, 6)]
    (one,) = stalled([before], two, [after])
    assert "it answered nobody for 5.5 s, while 2 connections waited: Produce (2)" in one
    # It may never answer again. New connections wait too, one after the other.
    (one,) = stalled([before], two, gave_up(3, 6, 11, api="ApiVersions"), gave_up(4, 11.5, 16.5, api="ApiVersions"))
    assert "it answered nobody for 16.0 s, while 4 connections waited: Produce (2), ApiVersions (2)" in one
    # One client alone; the broker closed it; something else was answered; long polls; nobody waited for long.
    assert not stalled([before], two[:2], [after])
    assert not stalled([before], gave_up(1, 0.5, 5.5, ended_by="broker"), gave_up(2, 1, 6, ended_by="broker"), [after])
    assert not stalled([before], [("frames", waited(*quick(2, 4)))], two, [after])
    assert not stalled([before], gave_up(1, 0.5, 5.5, api="Fetch"), gave_up(2, 1, 6, api="Fetch"), [after])
    assert not stalled([before], gave_up(1, 0.5, 2, api="Produce"), gave_up(2, 1, 2.5), [after])
    # Whether a broker answers is not known if no response of it was captured.
    assert not stalled(two)


def test_late_acks_of_a_broker_that_stood_still_are_not_found_again() -> None:
    late = waited((0.1, 8, 1), (0.2, 8.1, 2), (0.3, 8.2, 2))

    def rules(*more: tuple[float, float, int]) -> set[str]:
        finder = Finder(["stalled-brokers", "late-acks"])
        finder.add(*rows("frames", sorted([*late, *waited(*more)], key=lambda row: row["at"])))
        return {one.rule for one in finder.result()}

    assert rules(*quick(0, 9)) == {"stalled-brokers"}
    assert rules(*quick(*range(9))) == {"late-acks"}


def test_what_follows_from_one_cause_is_not_found_again() -> None:
    churn = [{**one, "at": one["at"] / 3} for one in cut(300)]
    asks = [{"api_name": "Metadata", "at": k * 0.5} for k in range(150)]
    more = [*churn, *({"at": k / 3} for k in range(300))]
    batches = [rows("connections", sorted(more, key=lambda row: row["at"])), rows("frames", asks)]
    for rules, kept in (
        (["metadata-storm", "connection-churn"], ["connection-churn", "metadata-storm"]),
        (list(RULES), ["cut-off-clients"]),
    ):
        finder = Finder(rules)
        for name, batch in batches:
            finder.add(name, batch)
        assert sorted(one.rule for one in finder.result()) == kept
    # What goes on for long after it has another cause.
    finder.add(*rows("frames", [{**row, "at": row["at"] + 600} for row in asks]))
    assert sorted(one.rule for one in finder.result()) == ["cut-off-clients", "metadata-storm"]


def test_denials_have_principals_where_connections_do() -> None:
    told = ["TOPIC_AUTHORIZATION_FAILED"]
    denied = rows("frames", [*answers(2, "Fetch", told), *answers(3, "Fetch", told, connection=4)])
    who = rows("connections", [{"connection": 3, "principal": "bob"}, {"connection": 4, "principal": None}])
    for order in ([denied, who], [who, denied]):
        assert {one.principal: one.count for one in found("denials", *order)} == {"bob": 2, None: 3}
    assert [one.count for one in found("denials", denied)] == [5]


def test_nobody_waits_for_longer_than_the_capture_goes_on() -> None:
    # On two connections, and each time for longer than until the next response.
    told = [one for k in range(10) for one in answers(1, "Produce", throttle_ms=9000, connection=k % 2, at=k)]
    told += [{"api_name": "Fetch", "direction": "response", "throttle_ms": 5, "at": 2.0}]
    told += [{"api_name": "Metadata", "direction": "response", "throttle_ms": 0, "at": 12.0}]
    told.sort(key=lambda row: row["at"])
    (one,) = found("throttled", rows("calls", told))
    assert one.count == 11
    assert one.summary == ("11 responses told it to wait, for 12000 ms of the capture: Produce (10), Fetch (1)")


def test_thresholds_can_be_changed_one_by_one() -> None:
    cases = rows("partitions", [*commits(5), watermark(105)])
    assert found("lag", cases) == []
    assert len(found("lag", cases, lag=100)) == 1
    assert Thresholds.of(["lag=7", "skew=2.5"]) == Thresholds(lag=7, skew=2.5)
    # One that no rule looks at would have no effect.
    assert {name for rule in RULES.values() for name in rule.thresholds} == {one.name for one in fields(Thresholds)}
    assert Thresholds.of(["lag=7"], ["lag"]).lag == 7
    with pytest.raises(ValueError, match="'stalled_seconds' is for stalled-brokers, which is not looked for"):
        Thresholds.of(["stalled_seconds=5"], ["lag"])
    for wrong, said in (("lags=7", "no threshold 'lags'"), ("lag=x", "'x' is no number"), ("lag=-1", "less than 0")):
        with pytest.raises(ValueError, match=said):
            Thresholds.of([wrong])
    with pytest.raises(ValueError, match="'nan' is no number"):
        Thresholds.of(["skew=nan"])


def test_rules_can_be_chosen_and_read_what_they_need_only() -> None:
    assert set(needed(["sasl-failures"])) == {"connections"}
    assert set(needed(["poison-records"])) == {"share_deliveries"}
    assert set(needed(["rebalance-loop"], also=False)) == {"calls"}
    assert set(needed()) == set(COLUMNS)
    histories = {"group_events", "share_deliveries"}
    assert set(COLUMNS) == {"frames", "partitions", "calls", "connections", "records", *histories}
    with pytest.raises(ValueError, match="no rule 'none': there are tiny-batches"):
        Finder(["none"])


def test_the_worst_come_first() -> None:
    finder = Finder()
    finder.add(*rows("frames", [*answers(1, "Fetch", ["TOPIC_AUTHORIZATION_FAILED"]), *answers(20, "X", ["NETWORK"])]))
    assert [one.severity for one in finder.result()] == ["high", "medium"]


def of_capture(name: str) -> list[Finding]:
    finder = Finder()
    columns = needed()
    with (GOLDEN / name).open("rb") as file:
        for one, batch in capture.read(file, tables=list(columns), columns=columns, name=name):
            finder.add(one, batch)
    return finder.result()


@pytest.mark.parametrize(
    "name",
    [
        "kafka-4.3-kraft-aiokafka/current.pcapng",
        "kafka-4.3-kraft-franz-go/current.pcap",
        "kafka-4.3-kraft-java/share.pcap",
        "kafka-3.9-kraft-kafkajs/current.pcap",
    ],
)
def test_clients_that_behave_give_no_finding_but_the_acks_that_were_asked_of_them(name: str) -> None:
    # The recorder has each client send with acks=0, 1 and all.
    assert {one.rule for one in of_capture(name)} <= {"mixed-acks"}


def test_failures_of_a_real_broker_are_found() -> None:
    found_ = {one.rule: one for one in of_capture("kafka-4.3-kraft-auth/mechanisms.pcap")}
    failed = found_["sasl-failures"]
    assert (failed.count, failed.client_id) == (3, "kafka-python-producer")
    assert failed.evidence[0][2] is None
