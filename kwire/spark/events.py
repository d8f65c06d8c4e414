"""CloudEvents, Hono's messages and client telemetry in Spark: record columns in, typed columns out.

    records = spark.read.format("kwire").option("table", "records").load("captures/")
    kwire.spark.cloudevents(records).groupBy("type").count()
    kwire.spark.hono_violations(records, frames)

Records are taken apart by Arrow UDFs over ``kwire.events.columns``, column by column; Spark's own expressions leave out
what is no event before it gets there, and do everything that concerns several records. The same rules as expressions
(``filter`` and ``transform`` over the headers, ``from_json`` with variants) were written and measured first. Spark
generates one method for such a tree, too large for the JVM to compile: 102 µs a record of CPU for binary events, 128
for JSON ones, 96 for Hono messages, and 27 to 64 without code generation, against 1.1, 28 and 0.6 here (Spark 4.3, one
core, records with six to eight headers).

Rules kept here: no input fails a job; nothing is collected on the driver.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type

from kwire.events import cloudevents as ce
from kwire.events import columns, hono, telemetry
from kwire.events.columns import PLACE, RENAMED
from kwire.protocol.error_codes import ErrorCode
from kwire.schema.keys import ApiKey

if TYPE_CHECKING:
    from pyspark.sql._typing import ColumnOrName

__all__ = [
    "cloudevent",
    "cloudevents",
    "hono_message",
    "hono_messages",
    "hono_producers",
    "hono_violations",
    "telemetry_violations",
]

_DEVICE: Final = ["kind", "tenant", "device_id"]

HEADERS: Final = "array<struct<key:string,value:binary>>"
VIOLATIONS: Final = "array<struct<rule:string,detail:string>>"

IN_FLIGHT: Final = 5
"""Requests in flight with which an idempotent producer keeps the order."""


def _column(value: ColumnOrName) -> Column:
    return sql.col(value) if isinstance(value, str) else value


def _given(headers: ColumnOrName) -> Column:
    return sql.coalesce(_column(headers), sql.array().cast(HEADERS))


def _udf(function: Callable[..., pa.Array], returns: pa.DataType) -> Callable[..., Column]:
    """An Arrow UDF that runs once for a record.

    Spark moves a filter on the result below the projection, and then computes it for both. What it takes for not
    deterministic stays where it is.
    """
    made = arrow_udf(function, from_arrow_type(returns))  # type: ignore[call-overload]
    once: Callable[..., Column] = made.asNondeterministic()
    return once


# --- CloudEvents ------------------------------------------------------------------------------------------------


def cloudevent(
    headers: ColumnOrName = "headers", value: ColumnOrName = "value", magic: ColumnOrName | None = "magic"
) -> Column:
    """The CloudEvent in a record, as a struct; null for what is no CloudEvent.

    ``headers`` is ``array<struct<key string, value binary>>``, as Spark's Kafka source has them, ``value`` binary,
    ``magic`` the message format (None: all records can have headers). Returns ``struct<id string, source string,
    type string, specversion string, subject string, time timestamp, datacontenttype string, dataschema string,
    data binary, extensions map<string,string>, mode string, error string>``: ``kwire.events.cloudevents.row`` in
    columns.
    """
    form = sql.lit(2) if magic is None else _column(magic).cast("int")
    return _udf(_cloudevents, columns.CLOUDEVENT)(_given(headers), _column(value), form).alias("cloudevent")


def _cloudevents(headers: pa.Array, value: pa.Array, magic: pa.Array) -> pa.Array:
    return columns.cloudevents(headers, value, magic)


def _may_be(headers: Column, value: Column, magic: Column | None) -> Column:
    """Whether a record says that it is a CloudEvent, cheaply: nothing that is one is left out."""
    told = sql.exists(headers, lambda one: one["key"].startswith(ce.PREFIX) | (one["key"] == ce.CONTENT_TYPE))
    return told if magic is None else told | (sql.coalesce(magic < 2, sql.lit(False)) & value.isNotNull())


def cloudevents(records: DataFrame) -> DataFrame:
    """The CloudEvents among records: one row for each record that is one, valid or not.

    ``records`` has ``headers`` and ``value`` with the types of the table ``records``, and may have its other columns.
    Those that say which record it is come first (its ``source`` and ``timestamp`` as ``record_source`` and
    ``record_timestamp``), with ``key``; then those of ``cloudevent``. ``error`` also says what ``status`` and ``error``
    of the record said.
    """
    has = set(records.columns)
    magic = "magic" if "magic" in has else None
    found = records.where(_may_be(_given("headers"), sql.col("value"), sql.col("magic") if magic else None))
    kept = _place(has)
    if "key" in has:
        kept.append(sql.col("key"))
    event = cloudevent("headers", "value", magic).alias("event")
    found = found.select(*kept, event, _unsound(has).alias("unsound"))
    error = sql.nullif(sql.concat_ws("; ", sql.col("event")["error"], "unsound"), sql.lit("")).alias("error")
    inside = [sql.col("event")[name].alias(name) for name in ce.COLUMNS if name != "error"]
    # Every event has a mode.
    return found.select(*(name for name in found.columns if name not in ("event", "unsound")), *inside, error).where(
        "mode is not null"
    )


def _place(has: set[str]) -> list[Column]:
    return [sql.col(name).alias(RENAMED.get(name, name)) for name in PLACE if name in has]


def _unsound(has: set[str]) -> Column:
    """What the record's own status says, where it is not ok."""
    if "status" not in has:
        return sql.lit(None).cast("string")
    why = sql.col("error") if "error" in has else sql.lit(None).cast("string")
    return sql.when(sql.col("status") != "ok", sql.concat_ws(": ", sql.concat(sql.lit("record "), "status"), why))


# --- Hono -------------------------------------------------------------------------------------------------------


def hono_message(
    topic: ColumnOrName = "topic",
    key: ColumnOrName = "key",
    headers: ColumnOrName = "headers",
    value: ColumnOrName = "value",
    now: ColumnOrName | datetime | None = None,
) -> Column:
    """The Hono message in a record, as a struct; null where the topic is none of Hono's.

    Returns ``struct<kind string, tenant string, device_id string, content_type string, content_encoding string,
    creation_time timestamp, qos int, ttd int, ttl bigint, correlation_id string, response_status int, expired boolean,
    connected_until timestamp, violations array<struct<rule string, detail string>>>``. ``kind`` is ``telemetry``,
    ``event`` or ``command_response``. ``ttl`` is in milliseconds, ``ttd`` in seconds. ``expired`` is judged at ``now``
    (a timestamp column or a time; default the time of the query) and null where the message has no creation time or
    no time-to-live; ``connected_until`` is creation time plus ``ttd``, null where that is -1 (until further notice).
    """
    at = sql.current_timestamp() if now is None else sql.lit(now) if isinstance(now, datetime) else _column(now)
    function = _udf(_hono_messages, columns.HONO_MESSAGE)
    return function(_column(topic), _column(key), _given(headers), _column(value), sql.unix_millis(at)).alias(
        "hono_message"
    )


def _hono_messages(topic: pa.Array, key: pa.Array, headers: pa.Array, value: pa.Array, now: pa.Array) -> pa.Array:
    return columns.hono_messages(topic, key, headers, value, now)


def _violation(condition: Column, rule: str, detail: str | Column) -> Column:
    said = sql.lit(detail) if isinstance(detail, str) else detail
    return sql.when(condition, sql.struct(sql.lit(rule).alias("rule"), said.alias("detail")))


def _named(names: Column) -> Column:
    """Names with commas between them, as ``kwire.events.hono`` writes them."""
    more = sql.when(sql.size(names) > hono.MOST_PLACES, sql.array(sql.lit("..."))).otherwise(
        sql.array().cast("array<string>")
    )
    return sql.array_join(sql.concat(sql.slice(names, 1, hono.MOST_PLACES), more), ", ")


def _of_hono(*kinds: str) -> Column:
    """Whether a topic is one of Hono's, of these kinds of messages."""
    return functools.reduce(Column.__or__, (sql.col("topic").startswith(hono.KINDS[kind]) for kind in kinds))


def hono_messages(records: DataFrame, now: ColumnOrName | datetime | None = None) -> DataFrame:
    """The Hono messages among records: one row for each record of a topic of telemetry, events or command responses.

    ``records`` is the table ``records``, or has its ``topic``, ``key``, ``headers`` and ``value``. First come its
    columns that say which record it is (``record_source`` and ``record_timestamp`` as in ``cloudevents``) and
    ``producer_id``, then those of ``hono_message``, and ``error``: the violations as a sentence, and what the record's
    own status says.
    Control records are left out; a record that is not ``ok`` is not judged. ``now`` is when ``expired`` is judged: by
    default ``frame_timestamp``, when the capture saw the message on its way, or the time of the query where there is no
    such column.
    """
    has = set(records.columns)
    found = records.where(_of_hono(*hono.KINDS))
    if "is_control" in has:
        found = found.where(~sql.coalesce("is_control", sql.lit(False)))
    kept = _place(has)
    if "producer_id" in has:
        kept.append(sql.col("producer_id"))
    if now is None and "frame_timestamp" in has:
        now = "frame_timestamp"
    message = hono_message(now=now).alias("message")
    found = found.select(*kept, message, _unsound(has).alias("unsound"))
    inside = [name for name in columns.HONO_MESSAGE.names if name != "violations"]
    violations = sql.when(sql.col("unsound").isNull(), sql.col("message")["violations"]).otherwise(
        sql.array().cast(VIOLATIONS)
    )
    found = found.select(
        *(name for name in found.columns if name not in ("message", "unsound")),
        *(sql.col("message")[name].alias(name) for name in inside),
        violations.alias("violations"),
        "unsound",
    )
    details = sql.array_join(sql.col("violations")["detail"], "; ")
    error = sql.nullif(sql.concat_ws("; ", sql.nullif(details, sql.lit("")), "unsound"), sql.lit(""))
    return found.withColumn("error", error).drop("unsound")


def hono_violations(
    records: DataFrame, frames: DataFrame | None = None, partitions: DataFrame | None = None
) -> DataFrame:
    """What in the records of Hono's topics goes against their APIs: one row per violation.

    Columns: ``kind``, ``tenant``, ``device_id``, ``rule`` (``kwire.events.hono.RULES`` explains them), ``detail``, and
    those columns of ``records`` that say which record it is, null for ``two_partitions`` and ``two_producers``, which
    are one row per device.

    A producer is known by its producer id where it is idempotent. Others are told apart by client id and host, which
    the table ``frames`` of the same captures has: without it, only idempotent producers are compared. With it, an
    idempotent producer that was started again, and so has another id, is told from a second one: it is of the same
    client, and what had the id before sends no more.

    With ``frames`` and ``partitions``, the table of the same captures, a message that a broker rejected for good
    (``kwire.events.hono.rejects``) and that is sent again is a violation of ``sent_again``: the same topic, key,
    headers and value, of messages with a creation time. ``records`` then have all their columns.
    """
    messages = hono_messages(records)
    place = [RENAMED.get(name, name) for name in PLACE if name in records.columns]
    each = messages.select(*_DEVICE, sql.explode("violations").alias("violation"), *place).select(
        *_DEVICE, "violation.rule", "violation.detail", *place
    )
    known = messages.where("device_id is not null")
    producer: Column = sql.lit(None).cast("string")
    if "producer_id" in messages.columns:
        producer = sql.when(sql.col("producer_id") >= 0, sql.concat(sql.lit("producer id "), "producer_id"))
    if frames is not None:
        clients = (
            frames.where((sql.col("api_key") == ApiKey.PRODUCE) & (sql.col("direction") == "request"))
            .groupBy("capture", "connection")
            .agg(sql.first("client_id").alias("client_id"), sql.first("client_host").alias("client_host"))
        )
        known = known.join(clients, ["capture", "connection"], "left")
        client = sql.concat(
            sql.lit("client "), sql.coalesce("client_id", sql.lit("without id")), sql.lit(" on "), "client_host"
        )
        producer = sql.coalesce(producer, sql.when(sql.col("record_source") == "produce", client))
    partition = sql.col("partition") if "partition" in messages.columns else sql.lit(None).cast("int")
    devices = known.groupBy(*_DEVICE).agg(sql.array_sort(sql.collect_set(partition)).alias("partitions"))
    known = known.withColumn("producer", producer)
    if frames is not None and "frame_timestamp" in known.columns:
        known = _without_replaced(known, client)
    producers = known.groupBy(*_DEVICE).agg(
        sql.array_sort(sql.collect_set("producer")).alias("producers"),
    )
    devices = devices.join(producers, _DEVICE)
    found = sql.array_compact(
        sql.array(
            _violation(
                sql.size("partitions") > 1,
                "two_partitions",
                sql.concat(sql.lit(hono.on_partitions([])), _named(sql.col("partitions").cast("array<string>"))),
            ),
            _violation(
                (sql.size("producers") > 1) & (sql.col("kind") != hono.RESPONSE),
                "two_producers",
                sql.concat(sql.lit(hono.from_producers([])), _named(sql.col("producers"))),
            ),
        )
    )
    across = devices.select(*_DEVICE, sql.explode(found).alias("violation")).select(
        *_DEVICE, "violation.rule", "violation.detail"
    )
    every = each.unionByName(across, allowMissingColumns=True)
    if frames is not None and partitions is not None:
        every = every.unionByName(_sent_again(records, frames, partitions, place), allowMissingColumns=True)
    return every


def _without_replaced(known: DataFrame, client: Column) -> DataFrame:
    """The producers of each device, without those whose place another one of the same client took."""
    sent = sql.when(sql.col("record_source") == "produce", sql.col("frame_timestamp"))
    senders = (
        known.withColumn("client", sql.when(sql.col("record_source") == "produce", client))
        .where("producer is not null")
        .groupBy(*_DEVICE, "producer")
        .agg(sql.max("client").alias("client"), sql.min(sent).alias("first"), sql.max(sent).alias("last"))
    )
    of_client = Window.partitionBy(*_DEVICE, "client").orderBy("first", "producer")
    replaced = sql.col("client").isNotNull() & (sql.lead("first").over(of_client) > sql.col("last"))
    kept = senders.withColumn("replaced", sql.coalesce(replaced, sql.lit(False))).where("not replaced")
    return known.select(*_DEVICE).distinct().join(kept, _DEVICE, "left")


def _sent_again(records: DataFrame, frames: DataFrame, partitions: DataFrame, place: list[str]) -> DataFrame:
    """Messages that were rejected for good, and are sent again after that."""
    of_frame = ["capture", "connection", "frame"]
    produce = frames.where(sql.col("api_key") == ApiKey.PRODUCE)
    answers = produce.where("direction = 'response'").select(
        *of_frame, "correlation_id", sql.col("timestamp").alias("answered")
    )
    requests = produce.where("direction = 'request'").select(
        "capture", "connection", sql.col("frame").alias("request"), "correlation_id"
    )
    names = [code.name for code in ErrorCode if hono.rejects(code)]
    errors = partitions.where((sql.col("api_key") == ApiKey.PRODUCE) & sql.col("error").isin(names)).select(
        *of_frame, "topic", "partition", sql.col("error").alias("rejection")
    )
    rejected = (
        errors.join(answers, of_frame)
        .join(requests, ["capture", "connection", "correlation_id"])
        .where("request < frame")
        .groupBy(*of_frame, "topic", "partition", "rejection", "answered")
        .agg(sql.max("request").alias("request"))
        .select(
            "capture", "connection", sql.col("request").alias("frame"), "topic", "partition", "rejection", "answered"
        )
    )
    sent = records.where((sql.col("source") == "produce") & _of_hono(hono.TELEMETRY, hono.EVENT)).where(
        "status = 'ok' and not coalesce(is_control, false)"
    )
    # Headers in any order and values of any size are compared by what they are made of.
    same = sql.struct(
        "topic", "key", "value", sql.transform("headers", lambda one: sql.struct(one["key"], one["value"]))
    )
    sent = sent.withColumn("same", sql.sha2(sql.to_json(same).cast("binary"), 256))
    first = sent.select(*of_frame, "topic", "partition", "same").join(
        sql.broadcast(rejected), [*of_frame, "topic", "partition"]
    )
    first = first.groupBy("same").agg(
        sql.min("answered").alias("answered"), sql.min_by("rejection", "answered").alias("rejection")
    )
    again = sent.join(first, "same").where("frame_timestamp > answered")
    message = hono_message(now="frame_timestamp").alias("message")
    again = again.withColumn("message", message).where("message.creation_time is not null")
    detail = sql.concat(
        *(sql.col("rejection") if part == "\0" else sql.lit(part) for part in re.split("(\0)", hono.again("\0")))
    )
    kept = [sql.col(name).alias(RENAMED.get(name, name)) for name in PLACE if RENAMED.get(name, name) in place]
    return again.select(
        *(f"message.{name}" for name in _DEVICE), sql.lit("sent_again").alias("rule"), detail.alias("detail"), *kept
    )


def hono_producers(messages: DataFrame, records: DataFrame) -> DataFrame:
    """How each producer of telemetry and events produces, from the wire, and what in that goes against their APIs.

    ``messages`` and ``records`` are those tables of the same captures. One row per connection that wrote to such a
    topic, which belongs to one producer: ``capture``, ``connection``, ``client_id``, ``client_host``, ``tenants``,
    ``producer_ids``, ``requests`` (Produce requests), ``acks`` (those asked for), ``idempotent``, ``max_in_flight``
    (requests that waited for an answer at the same time), ``qos_1`` (messages with that quality of service),
    ``events`` (messages that are events), ``semantics`` and ``violations``.

    ``semantics`` is ``at_least_once`` where every request asked for the acknowledgement of all replicas, else
    ``at_most_once``; null where the requests cannot be read. Whether the producer considers the answers before it
    acknowledges to a device does not show on the wire, nor does its setting ``retries``: ``order_not_kept`` names
    producers that keep the order only if that is 0.
    """
    all_ = sql.size("acks") > 0, sql.forall("acks", lambda one: one == -1)
    semantics = sql.when(all_[0], sql.when(all_[1], "at_least_once").otherwise("at_most_once"))
    return (
        _written(records)
        .join(_produce_requests(messages), list(_CONNECTION))
        .withColumn("semantics", semantics)
        .withColumn("violations", _producer_violations())
        .select(
            *_CONNECTION, "client_id", "client_host", "tenants", "producer_ids", "requests", "acks", "idempotent",
            "max_in_flight", "qos_1", "events", "semantics", "violations",
        )
    )  # fmt: skip


_CONNECTION: Final = ("capture", "connection")


def _written(records: DataFrame) -> DataFrame:
    """What each connection wrote to topics of telemetry and events."""
    sent = hono_messages(records.where(_of_hono(hono.TELEMETRY, hono.EVENT))).where("record_source = 'produce'")
    return sent.groupBy(*_CONNECTION).agg(
        sql.array_sort(sql.collect_set("tenant")).alias("tenants"),
        sql.array_sort(sql.collect_set(sql.when(sql.col("producer_id") >= 0, sql.col("producer_id")))).alias(
            "producer_ids"
        ),
        sql.coalesce(sql.every(sql.coalesce(sql.col("producer_id") >= 0, sql.lit(False))), sql.lit(False)).alias(
            "idempotent"
        ),
        sql.count_if(sql.col("qos") == 1).alias("qos_1"),
        sql.count_if(sql.col("kind") == hono.EVENT).alias("events"),
    )


def _produce_requests(messages: DataFrame) -> DataFrame:
    """The Produce requests of each connection: how many, what they asked for, how many waited at the same time."""
    produce = messages.where(sql.col("api_key") == ApiKey.PRODUCE)
    frames = produce.select(
        *_CONNECTION,
        "frame",
        "direction",
        "client_id",
        "client_host",
        sql.get_json_object("body", "$.acks").try_cast("int").alias("acks"),
        sql.count_if(sql.col("direction") == "response")
        .over(Window.partitionBy(*_CONNECTION, "correlation_id"))
        .alias("answers"),
    )
    step = sql.when(sql.col("direction") == "response", -1).when(sql.col("answers") > 0, 1).otherwise(0)
    in_flight = frames.withColumn("in_flight", sql.sum(step).over(Window.partitionBy(*_CONNECTION).orderBy("frame")))
    return in_flight.groupBy(*_CONNECTION).agg(
        sql.first(sql.when(sql.col("direction") == "request", sql.col("client_id")), True).alias("client_id"),
        sql.first("client_host").alias("client_host"),
        sql.count_if(sql.col("direction") == "request").alias("requests"),
        sql.array_sort(sql.collect_set("acks")).alias("acks"),
        sql.max("in_flight").cast("int").alias("max_in_flight"),
    )


def _producer_violations() -> Column:
    """What goes against the APIs of telemetry and events, by the columns of ``hono_producers``."""
    waiting = sql.concat(sql.col("max_in_flight").cast("string"), sql.lit(" requests in flight"))
    idempotent, most = sql.col("idempotent"), sql.col("max_in_flight")
    return sql.array_compact(
        sql.array(
            _violation(
                idempotent & (most > IN_FLIGHT),
                "order_not_kept",
                sql.concat(waiting, sql.lit(f": an idempotent producer keeps the order with up to {IN_FLIGHT}")),
            ),
            _violation(
                ~idempotent & (most > 1),
                "order_not_kept",
                sql.concat(waiting, sql.lit(", not idempotent: the order is kept only if retries is 0")),
            ),
            _violation(
                (sql.col("semantics") == "at_most_once") & (sql.col("qos_1") > 0),
                "qos_1_at_most_once",
                sql.concat(
                    sql.col("qos_1").cast("string"),
                    sql.lit(" messages with qos 1, acks "),
                    sql.array_join(sql.col("acks").cast("array<string>"), ", "),
                ),
            ),
            _violation(
                (sql.col("semantics") == "at_most_once") & (sql.col("events") > 0),
                "event_at_most_once",
                sql.concat(
                    sql.col("events").cast("string"),
                    sql.lit(" events, acks "),
                    sql.array_join(sql.col("acks").cast("array<string>"), ", "),
                ),
            ),
        )
    ).cast(VIOLATIONS)


# --- Client telemetry -------------------------------------------------------------------------------------------


def telemetry_violations(metrics: DataFrame) -> DataFrame:
    """What clients did against KIP-714: one row for each violation in ``metrics``, the table ``client_metrics``.

    Columns: those of ``metrics`` that say which request of which client it is, ``metric`` (null where a request as a
    whole is meant), ``rule`` (``kwire.events.telemetry.RULES`` explains them) and ``detail``.
    """
    place = [name for name in telemetry.PLACE if name in metrics.columns]
    each = metrics.select(*place, "metric", sql.explode("violations").alias("violation"))
    rule = sql.col("violation.rule")
    metric = sql.when(rule.isin(*telemetry.OF_METRICS), sql.col("metric")).alias("metric")
    return each.select(*place, metric, rule.alias("rule"), sql.col("violation.detail").alias("detail"))
