"""CloudEvents and Hono telemetry in Spark: record columns in, typed columns out, without Python for any row.

    records = spark.read.format("kwire").option("table", "records").load("captures/")
    kwire.spark.cloudevents(records).groupBy("type").count()
    kwire.spark.hono_violations(records, frames)

Everything here is an expression of Spark's own functions. The rules are those of ``kwire.events.cloudevents`` and
``kwire.events.hono``, whose patterns and wording it uses; ``tests/spark/test_events.py`` holds the two against each
other. Rules kept here:

- No input fails a job: casts and parsers are the ``try_`` ones or guarded, under ANSI mode as well.
- Patterns repeat no groups: Java's regular expressions would overflow the stack on a long value. They stand between
  ``\\A`` and ``\\z``, because ``$`` also matches before a last line break.
- Work per record is linear in its headers (or sorts them): a record with many headers is not a way to stop a job. What
  is used more than once in an expression is bound by ``_let``, since Spark evaluates the body of a lambda anew for
  every element, with everything that it refers to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kwire.events import cloudevents as ce
from kwire.events import hono

if TYPE_CHECKING:
    from pyspark.sql._typing import ColumnOrName

__all__ = ["cloudevent", "cloudevents", "hono_message", "hono_messages", "hono_producers", "hono_violations"]

HEADERS: Final = "array<struct<key:string,value:binary>>"
VIOLATIONS: Final = "array<struct<rule:string,detail:string>>"

PLACE: Final = (
    "capture",
    "connection",
    "frame",
    "frame_timestamp",
    "source",
    "topic",
    "partition",
    "offset",
    "timestamp",
)
"""Columns of a table of records that say which one it is; kept, where they are there, in front of the new columns."""

RENAMED: Final = {"source": "record_source", "timestamp": "record_timestamp"}
"""``source`` is an attribute of events; the records' own (``produce``, ``fetch``) gives way."""

BLANKS: Final = " \t"

JSON_OPTIONS: Final = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}

PRODUCE: Final = 0
IN_FLIGHT: Final = 5
"""Requests in flight with which an idempotent producer keeps the order."""


# --- expressions ------------------------------------------------------------------------------------------------


def _let(value: Column, body: Callable[[Column], Column]) -> Column:
    """``body(value)``, with ``value`` evaluated once."""
    return sql.get(sql.transform(sql.array(value), body), 0)


def _column(value: ColumnOrName) -> Column:
    return sql.col(value) if isinstance(value, str) else value


def _matches(text: Column, pattern: str) -> Column:
    return text.rlike(rf"\A(?:{pattern})\z")


def _utf8(value: Column) -> Column:
    """Bytes as text; null where they are not UTF-8."""
    return sql.try_validate_utf8(value.cast("string"))


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(lambda one, other: one | other, conditions)


def _texts(*texts: Column) -> Column:
    """An array of those texts that are not null."""
    return sql.array_compact(sql.array(*texts))


def _said(what: str | Column, words: str) -> Column:
    return sql.concat(sql.lit(what) if isinstance(what, str) else what, sql.lit(f" {words}"))


def _bare(content_type: Column) -> Column:
    return sql.lower(sql.trim(sql.substring_index(content_type, ";", 1), sql.lit(BLANKS)))


# --- CloudEvents ------------------------------------------------------------------------------------------------


def cloudevent(
    headers: ColumnOrName = "headers", value: ColumnOrName = "value", magic: ColumnOrName | None = "magic"
) -> Column:
    """The CloudEvent in a record, as a struct; null for what is no CloudEvent.

    ``headers`` is ``array<struct<key string, value binary>>``, as Spark's Kafka source has them, ``value`` binary,
    ``magic`` the message format (None: all records can have headers). Returns ``struct<id string, source string,
    type string, specversion string, subject string, time timestamp, datacontenttype string, dataschema string,
    data binary, extensions map<string,string>, mode string, error string>``: ``kwire.events.cloudevents.row`` in
    columns. JSON data are JSON text with sorted names.
    """
    given = sql.coalesce(_column(headers), sql.array().cast(HEADERS))
    content = _column(value)
    old = sql.lit(False) if magic is None else sql.coalesce(_column(magic) < 2, sql.lit(False))
    start = sql.struct(
        sql.transform(sql.filter(given, lambda one: one["key"] == ce.CONTENT_TYPE), lambda one: one["value"]).alias(
            "types"
        ),
        sql.filter(given, lambda one: one["key"].startswith(ce.PREFIX)).alias("own"),
        content.alias("value"),
        _mode(given, content, old).alias("mode"),
    )
    return _let(start, lambda one: sql.when(one["mode"].isNotNull(), _let(_typed(one), _event))).alias("cloudevent")


def _mode(headers: Column, value: Column, old: Column) -> Column:
    """``kwire.events.cloudevents.content_mode``."""
    first = sql.get(sql.filter(headers, lambda one: one["key"] == ce.CONTENT_TYPE), 0)["value"].cast("string")
    text = value.cast("string")
    return (
        sql.when(sql.lower(sql.ltrim(first, sql.lit(BLANKS))).startswith(ce.MEDIA), "structured")
        .when(sql.exists(headers, lambda one: one["key"].startswith(ce.PREFIX)), "binary")
        .when(
            old & sql.ltrim(text, sql.lit(" \t\r\n")).startswith("{") & text.contains('"specversion"'),
            "structured",
        )
    )


def _typed(record: Column) -> Column:
    """The record with its content type as text, and with the first header of each name."""
    entries = sql.array_sort(
        sql.transform(record["own"], lambda one, i: sql.struct(one["key"].alias("key"), i, one["value"].alias("value")))
    )
    firsts = _let(
        entries,
        lambda all_: sql.struct(
            sql.filter(all_, lambda one, i: (i == 0) | (sql.get(all_, i - 1)["key"] != one["key"])).alias("first"),
            sql.array_distinct(
                sql.transform(
                    sql.filter(all_, lambda one, i: (i > 0) & (sql.get(all_, i - 1)["key"] == one["key"])),
                    lambda one: _said(sql.concat(sql.lit("header "), one["key"]), ce.TWICE),
                )
            ).alias("twice"),
        ),
    )
    types = record["types"]
    first = sql.get(types, 0)
    text = _utf8(first)
    problems = _texts(
        sql.when(sql.size(types) > 1, f"header {ce.CONTENT_TYPE} {ce.TWICE}"),
        sql.when((sql.size(types) > 0) & first.isNull(), f"header {ce.CONTENT_TYPE} {ce.NULL}"),
        sql.when(first.isNotNull() & text.isNull(), f"header {ce.CONTENT_TYPE} {ce.NOT_UTF8}"),
    )
    return sql.struct(
        record["mode"].alias("mode"),
        record["value"].alias("value"),
        text.alias("content_type"),
        _bare(text).alias("bare"),
        problems.alias("problems"),
        firsts.alias("headers"),
    )


def _event(record: Column) -> Column:
    """The event from what ``_typed`` made; each way gives attributes, data and problems, which are then judged."""
    is_json = (record["mode"] == "structured") & sql.coalesce(record["bare"] == ce.JSON, sql.lit(True))
    parts = (
        sql.when(record["mode"] == "binary", _binary(record)).when(is_json, _json(record)).otherwise(_forwarded(record))
    )
    return _let(parts, lambda one: _judged(one, record["mode"]))


def _parts(attributes: Column, data: Column, problems: Column, judge: bool = True) -> Column:
    return sql.struct(
        attributes.alias("attributes"), data.alias("data"), problems.alias("problems"), sql.lit(judge).alias("judge")
    )


def _of_headers(record: Column) -> tuple[Column, Column]:
    """The attributes in ``ce_`` headers, as a map, and the problems of those headers."""
    entries = sql.transform(
        record["headers"]["first"],
        lambda one: sql.struct(
            sql.substring(one["key"], len(ce.PREFIX) + 1, 1 << 30).alias("name"),
            _utf8(one["value"]).alias("text"),
            one["value"].isNull().alias("missing"),
        ),
    )

    def problem(one: Column) -> Column:
        words = (
            sql.when(one["name"] == "datacontenttype", ce.IN_CONTENT_TYPE)
            .when(one["name"] == "data", ce.RESERVED)
            .when(~_matches(one["name"], ce.NAME), ce.NO_NAME)
            .when(one["missing"], ce.NULL)
            .when(one["text"].isNull(), ce.NOT_UTF8)
        )
        return sql.concat(sql.lit(f"header {ce.PREFIX}"), one["name"], sql.lit(" "), words)

    def good(one: Column) -> Column:
        name = one["name"]
        return one["text"].isNotNull() & _matches(name, ce.NAME) & ~name.isin("data", "datacontenttype")

    attributes = sql.map_from_entries(
        sql.transform(sql.filter(entries, good), lambda one: sql.struct(one["name"], one["text"]))
    )
    return attributes, sql.concat(record["headers"]["twice"], sql.array_compact(sql.transform(entries, problem)))


def _with_content_type(attributes: Column, record: Column) -> Column:
    content_type = record["content_type"]
    return sql.when(
        content_type.isNotNull(), sql.map_concat(attributes, sql.create_map(sql.lit("datacontenttype"), content_type))
    ).otherwise(attributes)


def _binary(record: Column) -> Column:
    attributes, problems = _of_headers(record)
    return _parts(_with_content_type(attributes, record), record["value"], sql.concat(record["problems"], problems))


def _forwarded(record: Column) -> Column:
    """An event format that is not known, or a batch: headers and value as they are."""
    attributes, _ = _of_headers(record)
    words = sql.when(record["bare"].startswith(ce.BATCH), ce.NO_BATCH).otherwise(ce.UNKNOWN_FORMAT)
    said = sql.concat(sql.lit(f"{ce.CONTENT_TYPE} "), words)
    return _parts(
        _with_content_type(attributes, record),
        record["value"],
        sql.concat(record["problems"], sql.array(said)),
        judge=False,
    )


def _json(record: Column) -> Column:
    # In brackets, because the parser stops behind the first value, whatever follows.
    text = sql.concat(sql.lit("["), _utf8(record["value"]), sql.lit("]"))
    values = sql.from_json(text, "array<map<string,variant>>", JSON_OPTIONS)
    members = _let(values, lambda all_: sql.when(sql.size(all_) == 1, sql.get(all_, 0)))
    members = _let(
        members,
        lambda one: sql.when(sql.size(sql.array_distinct(sql.map_keys(one))) == sql.size(sql.map_keys(one)), one),
    )
    nothing = sql.map_from_entries(sql.array().cast("array<struct<key:string,value:string>>"))
    said = sql.when(record["value"].isNull(), f"value {ce.NO_VALUE}").otherwise(f"value {ce.NOT_JSON}")
    bad = _parts(nothing, sql.lit(None).cast("binary"), sql.concat(record["problems"], sql.array(said)))
    return _let(members, lambda one: sql.when(one.isNull(), bad).otherwise(_of_members(one, record)))


def _of_members(members: Column, record: Column) -> Column:
    entries = sql.transform(
        sql.filter(sql.map_entries(members), lambda one: ~one["key"].isin("data", "data_base64")),
        lambda one: sql.struct(
            one["key"].alias("name"),
            sql.schema_of_variant(one["value"]).alias("kind"),
            sql.try_variant_get(one["value"], "$", "string").alias("text"),
        ),
    )
    entries = sql.filter(entries, lambda one: one["kind"] != "VOID")

    def words(one: Column) -> Column:
        whole = sql.when(one["kind"] == "BIGINT", one["text"].try_cast("int").isNotNull()).otherwise(
            one["kind"].isin("STRING", "BOOLEAN")
        )
        return (
            sql.when(~_matches(one["name"], ce.NAME), ce.NO_NAME)
            .when(one["name"].isin(*ce.CORE) & (one["kind"] != "STRING"), ce.NOT_STRING)
            .when(~one["name"].isin(*ce.CORE) & ~whole, ce.NOT_VALUE)
        )

    def problem(one: Column) -> Column:
        what = sql.when(_matches(one["name"], ce.NAME), one["name"]).otherwise(
            sql.concat(sql.lit("member "), one["name"])
        )
        return sql.concat(what, sql.lit(" "), words(one))

    def finished(entry: Column) -> Column:
        attributes = sql.map_from_entries(
            sql.transform(
                sql.filter(entry, lambda one: words(one).isNull()), lambda one: sql.struct(one["name"], one["text"])
            )
        )
        problems = sql.array_compact(sql.transform(entry, problem))
        return _let(attributes, lambda one: _with_data(one, members, sql.concat(record["problems"], problems)))

    return _let(entries, finished)


def _with_data(attributes: Column, members: Column, problems: Column) -> Column:
    """Sections 3.1.1 and 3.1.2 of the JSON format."""
    has_data = sql.map_contains_key(members, "data")
    data = sql.try_element_at(members, sql.lit("data"))
    encoded = sql.try_element_at(members, sql.lit("data_base64"))
    has_encoded = encoded.isNotNull() & (sql.schema_of_variant(encoded) != "VOID")
    encoded = sql.when(sql.schema_of_variant(encoded) == "STRING", sql.try_variant_get(encoded, "$", "string"))
    good = sql.coalesce((sql.length(encoded) % 4 == 0) & _matches(encoded, ce.BASE64), sql.lit(False))
    declared = sql.try_element_at(attributes, sql.lit("datacontenttype"))
    as_json = declared.isNull() | _bare(declared).rlike(r"\A[^/]*/(?:json|.*\+json)\z")
    kind = sql.schema_of_variant(data)
    made = (
        sql.when(has_encoded, sql.when(good, sql.try_to_binary(encoded, sql.lit("base64"))))
        .when(has_data & as_json, sql.to_json(data).cast("binary"))
        .when(has_data & (kind == "STRING"), sql.try_variant_get(data, "$", "string").cast("binary"))
        .when(has_data & (kind != "VOID"), sql.to_json(data).cast("binary"))
    )
    found = _texts(
        sql.when(has_encoded & has_data, f"value {ce.BOTH}"),
        sql.when(has_encoded & ~good, f"data_base64 {ce.NOT_BASE64}"),
        sql.when(~has_encoded & has_data & ~as_json & ~kind.isin("STRING", "VOID"), f"data {ce.NOT_DATA_STRING}"),
    )
    return _parts(attributes, made, sql.concat(problems, found))


def _instant(text: Column) -> Column:
    """``kwire.events.cloudevents.instant`` of a text that matches its pattern."""
    field = [text.substr(at, 4 if at == 1 else 2) for at in (1, 6, 9, 12, 15, 18)]
    rest = sql.upper(sql.substring(text, 20, 1 << 30))
    fraction = sql.rpad(sql.regexp_extract(rest, r"\A\.([0-9]*)", 1), 6, "0")
    leap = field[5] == "60"
    second = sql.concat(sql.when(leap, "59").otherwise(field[5]), sql.lit("."), fraction).try_cast("decimal(8,6)")
    whole = [one.try_cast("int") for one in field[:5]]
    made = sql.try_make_timestamp_ltz(whole[0], whole[1], whole[2], whole[3], whole[4], second, sql.lit("UTC"))
    hours = sql.when(rest.endswith("Z"), 0).otherwise(sql.substring(rest, -5, 2).try_cast("int"))
    minutes = sql.when(rest.endswith("Z"), 0).otherwise(sql.substring(rest, -2, 2).try_cast("int"))
    sign = sql.when(sql.substring(rest, -6, 1) == "-", -1).otherwise(1)
    seconds = sign * (hours * 3600 + minutes * 60)
    micros = sql.unix_micros(made) + (sql.when(leap, 1).otherwise(0) - seconds).cast("bigint") * 1_000_000
    fits = micros.between(hono.FIRST * 1000, hono.LAST * 1000 + 999)
    return sql.when((whole[0] > 0) & (hours < 24) & (minutes < 60) & fits, sql.timestamp_micros(micros))


def _named(problems: Column, name: str) -> Column:
    """Whether there is a problem that explains why the attribute is not there."""
    reasons = (f"header {ce.PREFIX}{name} ", f"{name} ", "value ")
    return sql.exists(problems, lambda one: _any(one.startswith(reason) for reason in reasons))


def _judged(parts: Column, mode: Column) -> Column:
    """The row: the rules of the attributes, as ``kwire.events.cloudevents._check`` has them."""
    attributes = parts["attributes"]
    got = {name: sql.try_element_at(attributes, sql.lit(name)) for name in ce.CORE}
    extensions = sql.map_filter(attributes, lambda name, _: ~name.isin(*ce.CORE))
    time = sql.when(_matches(got["time"], ce.TIMESTAMP), _instant(got["time"]))

    def finished(known: Column) -> Column:
        found = []
        for name in ce.CORE:
            text = got[name]
            words = sql.when(text == "", f"{name} {ce.EMPTY}")
            if name in ce.PATTERNS:
                pattern, said = ce.PATTERNS[name]
                bad = ~_matches(text, pattern)
                if name in ce.URIS:
                    bad = bad | text.rlike(ce.BAD_PERCENT)
                if name == "time":
                    bad = bad | (text.isNotNull() & known["time"].isNull())
                words = words.when(bad, f"{name} {said}")
            else:
                words = words.when(text.rlike(ce.CONTROL), f"{name} {ce.NOT_TEXT}")
            if name in ce.REQUIRED:
                named = _named(parts["problems"], name)
                words = sql.when(text.isNull() & ~named, f"{name} {ce.MISSING}").otherwise(words)
            found.append(words)
        bad_extensions = sql.transform(
            sql.array_sort(sql.map_keys(sql.map_filter(extensions, lambda _, text: text.rlike(ce.CONTROL)))),
            lambda name: _said(name, ce.NOT_TEXT),
        )
        problems = sql.when(parts["judge"], sql.concat(parts["problems"], _texts(*found), bad_extensions)).otherwise(
            parts["problems"]
        )
        error = sql.nullif(sql.array_join(problems, "; "), sql.lit(""))
        columns = {
            **got,
            "time": known["time"],
            "data": parts["data"],
            "extensions": extensions,
            "mode": mode,
            "error": error,
        }
        return sql.struct(*(columns[name].alias(name) for name in ce.COLUMNS))

    return _let(sql.struct(time.alias("time")), finished)


def cloudevents(records: DataFrame) -> DataFrame:
    """The CloudEvents among records: one row for each record that is one, valid or not.

    ``records`` has ``headers`` and ``value`` with the types of the table ``records``, and may have its other columns.
    Those that say which record it is come first (its ``source`` and ``timestamp`` as ``record_source`` and
    ``record_timestamp``), with ``key``; then those of ``cloudevent``. ``error`` also says what ``status`` and ``error``
    of the record said.
    """
    has = set(records.columns)
    magic = "magic" if "magic" in has else None
    old = sql.lit(False) if magic is None else sql.coalesce(sql.col("magic") < 2, sql.lit(False))
    given = sql.coalesce(sql.col("headers"), sql.array().cast(HEADERS))
    # Filtered by the mode, which is cheap: a filter on the event would compute it twice.
    found = records.where(_mode(given, sql.col("value"), old).isNotNull())
    columns = _place(has)
    if "key" in has:
        columns.append(sql.col("key"))
    found = found.select(*columns, cloudevent("headers", "value", magic).alias("event"), _unsound(has).alias("unsound"))
    event = [sql.col("event")[name].alias(name) for name in ce.COLUMNS if name != "error"]
    error = sql.nullif(sql.concat_ws("; ", sql.col("event")["error"], "unsound"), sql.lit("")).alias("error")
    return found.select(*(name for name in found.columns if name not in ("event", "unsound")), *event, error)


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
    """The Hono telemetry message in a record, as a struct; null where the topic is no telemetry topic.

    Returns ``struct<tenant string, device_id string, content_type string, content_encoding string, creation_time
    timestamp, qos int, ttd int, ttl bigint, expired boolean, connected_until timestamp, violations array<struct<rule
    string, detail string>>>``. ``ttl`` is in milliseconds, ``ttd`` in seconds. ``expired`` is judged at ``now``
    (a timestamp column or a time; default the time of the query) and null where the message has no creation time or
    no time-to-live; ``connected_until`` is creation time plus ``ttd``, null where that is -1 (until further notice).
    """
    topic, key, value = _column(topic), _column(key), _column(value)
    given = sql.filter(
        sql.coalesce(_column(headers), sql.array().cast(HEADERS)), lambda one: one["key"].isin(*hono.HEADERS)
    )
    at = sql.current_timestamp() if now is None else sql.lit(now) if isinstance(now, datetime) else _column(now)
    start = sql.struct(
        sql.substring(topic, len(hono.TOPIC_PREFIX) + 1, 1 << 30).alias("tenant"),
        key.alias("key"),
        value.isNull().alias("no_value"),
        sql.unix_millis(at).alias("now"),
        sql.struct(*(_given(given, name).alias(name) for name in hono.HEADERS)).alias("headers"),
    )
    return sql.when(topic.startswith(hono.TOPIC_PREFIX), _let(start, _message)).alias("hono_message")


def _given(headers: Column, name: str) -> Column:
    """A header: how often it is there, its first value, and that as its type (null where it is not of it)."""
    return _let(
        sql.filter(headers, lambda one: one["key"] == name),
        lambda all_: _let(
            sql.get(all_, 0)["value"],
            lambda value: sql.struct(
                sql.size(all_).alias("count"),
                value.isNull().alias("null"),
                (_number(value, hono.NUMBERS[name]) if name in hono.NUMBERS else _utf8(value)).alias("typed"),
            ),
        ),
    )


def _number(value: Column, size: int) -> Column:
    text = value.cast("string")
    decimal = sql.when(_matches(text, hono.DECIMAL), text.try_cast("bigint"))
    if size == hono.INT:
        decimal = sql.when(decimal.between(-(1 << 31), (1 << 31) - 1), decimal)
        unsigned = sql.conv(sql.hex(value), 16, 10).try_cast("bigint")
        big_endian = sql.when(unsigned >= 1 << 31, unsigned - (1 << 32)).otherwise(unsigned)
    else:
        big_endian = sql.conv(sql.hex(value), 16, -10).try_cast("bigint")
    return sql.when(_matches(text, hono.PRINTABLE), decimal).when(sql.octet_length(value) == size, big_endian)


def _wrong(name: str, header: Column) -> Column:
    """What is wrong with a header that is there; null where nothing is."""
    typed = header["typed"]
    words = sql.when(header["null"], f"{name} {hono.NULL}")
    if name in hono.NUMBERS:
        low, high = hono.RANGES[name]
        return words.when(typed.isNull(), f"{name} {hono.NOT_NUMBER[hono.NUMBERS[name]]}").when(
            ~typed.between(low, high), f"{name} {hono.OUT_OF_RANGE}"
        )
    words = words.when(typed.isNull(), f"{name} {hono.NOT_UTF8}").when(typed == "", f"{name} {hono.EMPTY}")
    if name in hono.PATTERNS:
        said = hono.NOT_MEDIA if name == "content-type" else hono.NOT_CODING
        words = words.when(~_matches(typed, hono.PATTERNS[name]), f"{name} {said}")
    return words


def _violation(condition: Column, rule: str, detail: str | Column) -> Column:
    said = sql.lit(detail) if isinstance(detail, str) else detail
    return sql.when(condition, sql.struct(sql.lit(rule).alias("rule"), said.alias("detail")))


def _message(record: Column) -> Column:
    headers = record["headers"]
    wrong = sql.struct(
        *(sql.when(headers[name]["count"] > 0, _wrong(name, headers[name])).alias(name) for name in hono.HEADERS)
    )

    def finished(wrong: Column) -> Column:
        typed = {name: sql.when(wrong[name].isNull(), headers[name]["typed"]) for name in hono.HEADERS}
        there = {name: headers[name]["count"] > 0 for name in hono.HEADERS}
        found = [_violation(record["tenant"] == "", "bad_topic", hono.NO_TENANT)]
        for name in hono.HEADERS:
            found.append(_violation(headers[name]["count"] > 1, "repeated_header", f"{name} {hono.TWICE}"))
            if name in hono.MANDATORY:
                found.append(_violation(~there[name], "missing_header", f"{name} {hono.MISSING}"))
            found.append(_violation(wrong[name].isNotNull(), "bad_header", wrong[name]))
        found.append(
            _violation(
                ~there["creation-time"] & (there["ttd"] | there["ttl"]), "creation_time_missing", hono.NO_CREATION_TIME
            )
        )
        rule = "key_is_not_device_id"
        other = typed["device_id"].isNotNull() & (record["key"] != typed["device_id"].cast("binary"))
        found.append(_violation(record["key"].isNull(), rule, hono.NO_KEY))
        found.append(_violation(sql.coalesce(other, sql.lit(False)), rule, hono.OTHER_KEY))
        found.append(_violation(record["no_value"], "no_value", hono.NO_VALUE))
        created, ttd, ttl = typed["creation-time"], typed["ttd"], typed["ttl"]
        until = created + ttd * 1000
        return sql.struct(
            record["tenant"].alias("tenant"),
            typed["device_id"].alias("device_id"),
            typed["content-type"].alias("content_type"),
            typed["content-encoding"].alias("content_encoding"),
            sql.timestamp_millis(created).alias("creation_time"),
            typed["qos"].cast("int").alias("qos"),
            ttd.cast("int").alias("ttd"),
            ttl.alias("ttl"),
            # As a difference, because the sum may not fit.
            (ttl < record["now"] - created).alias("expired"),
            sql.when((ttd >= 0) & (until <= hono.LAST), sql.timestamp_millis(until)).alias("connected_until"),
            sql.array_compact(sql.array(*found)).cast(VIOLATIONS).alias("violations"),
        )

    return _let(wrong, finished)


def hono_messages(records: DataFrame, now: ColumnOrName | datetime | None = None) -> DataFrame:
    """The Hono telemetry messages among records: one row for each record of a telemetry topic.

    ``records`` is the table ``records``, or has its ``topic``, ``key``, ``headers`` and ``value``. First come its
    columns that say which record it is (``record_source`` and ``record_timestamp`` as in ``cloudevents``) and
    ``producer_id``, then those of ``hono_message``, and ``error``: the violations as a sentence, and what the record's
    own status says.
    Control records are left out; a record that is not ``ok`` is not judged. ``now`` is when ``expired`` is judged: by
    default ``frame_timestamp``, when the capture saw the message on its way, or the time of the query where there is no
    such column.
    """
    has = set(records.columns)
    found = records.where(sql.col("topic").startswith(hono.TOPIC_PREFIX))
    if "is_control" in has:
        found = found.where(~sql.coalesce("is_control", sql.lit(False)))
    columns = _place(has)
    if "producer_id" in has:
        columns.append(sql.col("producer_id"))
    if now is None and "frame_timestamp" in has:
        now = "frame_timestamp"
    message = hono_message(now=now).alias("message")
    found = found.select(*columns, message, _unsound(has).alias("unsound"))
    kept = [name for name in found.columns if name not in ("message", "unsound")]
    inside = "tenant device_id content_type content_encoding creation_time qos ttd ttl expired connected_until"
    violations = sql.when(sql.col("unsound").isNull(), sql.col("message")["violations"]).otherwise(
        sql.array().cast(VIOLATIONS)
    )
    found = found.select(
        *kept,
        *(sql.col("message")[name].alias(name) for name in inside.split()),
        violations.alias("violations"),
        "unsound",
    )
    details = sql.array_join(sql.col("violations")["detail"], "; ")
    error = sql.nullif(sql.concat_ws("; ", sql.nullif(details, sql.lit("")), "unsound"), sql.lit(""))
    return found.withColumn("error", error).drop("unsound")


def hono_violations(records: DataFrame, frames: DataFrame | None = None) -> DataFrame:
    """What in the records of telemetry topics goes against the document: one row per violation.

    Columns: ``tenant``, ``device_id``, ``rule`` (``kwire.events.hono.RULES`` explains them), ``detail``, and those
    columns of ``records`` that say which record it is, null for ``two_partitions`` and ``two_producers``, which are one
    row per device.

    A producer is known by its producer id where it is idempotent. Others are told apart by client id and host, which
    the table ``frames`` of the same captures has: without it, only idempotent producers are compared.
    """
    messages = hono_messages(records)
    place = [RENAMED.get(name, name) for name in PLACE if name in records.columns]
    each = messages.select("tenant", "device_id", sql.explode("violations").alias("violation"), *place).select(
        "tenant", "device_id", "violation.rule", "violation.detail", *place
    )
    known = messages.where("device_id is not null")
    producer: Column = sql.lit(None).cast("string")
    if "producer_id" in messages.columns:
        producer = sql.when(sql.col("producer_id") >= 0, sql.concat(sql.lit("producer id "), "producer_id"))
    if frames is not None:
        clients = (
            frames.where((sql.col("api_key") == PRODUCE) & (sql.col("direction") == "request"))
            .groupBy("capture", "connection")
            .agg(sql.first("client_id").alias("client_id"), sql.first("client_host").alias("client_host"))
        )
        known = known.join(clients, ["capture", "connection"], "left")
        client = sql.concat(
            sql.lit("client "), sql.coalesce("client_id", sql.lit("without id")), sql.lit(" on "), "client_host"
        )
        producer = sql.coalesce(producer, sql.when(sql.col("record_source") == "produce", client))
    partition = sql.col("partition") if "partition" in messages.columns else sql.lit(None).cast("int")
    devices = known.groupBy("tenant", "device_id").agg(
        sql.array_sort(sql.collect_set(partition)).alias("partitions"),
        sql.array_sort(sql.collect_set(producer)).alias("producers"),
    )
    found = sql.array_compact(
        sql.array(
            _violation(
                sql.size("partitions") > 1,
                "two_partitions",
                sql.concat(
                    sql.lit(hono.on_partitions([])), sql.array_join(sql.col("partitions").cast("array<string>"), ", ")
                ),
            ),
            _violation(
                sql.size("producers") > 1,
                "two_producers",
                sql.concat(sql.lit(hono.from_producers([])), sql.array_join("producers", ", ")),
            ),
        )
    )
    across = devices.select("tenant", "device_id", sql.explode(found).alias("violation")).select(
        "tenant", "device_id", "violation.rule", "violation.detail"
    )
    return each.unionByName(across, allowMissingColumns=True)


def hono_producers(messages: DataFrame, records: DataFrame) -> DataFrame:
    """How each producer of telemetry produces, from the wire, and what in that goes against the document.

    ``messages`` and ``records`` are those tables of the same captures. One row per connection that wrote to a telemetry
    topic, which belongs to one producer: ``capture``, ``connection``, ``client_id``, ``client_host``, ``tenants``,
    ``producer_ids``, ``requests`` (Produce requests), ``acks`` (those asked for), ``idempotent``, ``max_in_flight``
    (requests that waited for an answer at the same time), ``qos_1`` (messages with that quality of service),
    ``semantics`` and ``violations``.

    ``semantics`` is ``at_least_once`` where every request asked for the acknowledgement of all replicas, else
    ``at_most_once``; null where the requests cannot be read. Whether the producer considers the answers before it
    acknowledges to a device does not show on the wire, nor does its setting ``retries``: ``order_not_kept`` names
    producers that keep the order only if that is 0.
    """
    connection = ("capture", "connection")
    telemetry = hono_messages(records).where("record_source = 'produce'")
    wrote = telemetry.groupBy(*connection).agg(
        sql.array_sort(sql.collect_set("tenant")).alias("tenants"),
        sql.array_sort(sql.collect_set(sql.when(sql.col("producer_id") >= 0, sql.col("producer_id")))).alias(
            "producer_ids"
        ),
        sql.coalesce(sql.every(sql.coalesce(sql.col("producer_id") >= 0, sql.lit(False))), sql.lit(False)).alias(
            "idempotent"
        ),
        sql.count_if(sql.col("qos") == 1).alias("qos_1"),
    )
    produce = messages.where(sql.col("api_key") == PRODUCE)
    frames = produce.select(
        *connection,
        "frame",
        "direction",
        "client_id",
        "client_host",
        sql.get_json_object("body", "$.acks").try_cast("int").alias("acks"),
        sql.count_if(sql.col("direction") == "response")
        .over(Window.partitionBy(*connection, "correlation_id"))
        .alias("answers"),
    )
    step = sql.when(sql.col("direction") == "response", -1).when(sql.col("answers") > 0, 1).otherwise(0)
    in_flight = frames.withColumn("in_flight", sql.sum(step).over(Window.partitionBy(*connection).orderBy("frame")))
    requests = in_flight.groupBy(*connection).agg(
        sql.first(sql.when(sql.col("direction") == "request", sql.col("client_id")), True).alias("client_id"),
        sql.first("client_host").alias("client_host"),
        sql.count_if(sql.col("direction") == "request").alias("requests"),
        sql.array_sort(sql.collect_set("acks")).alias("acks"),
        sql.max("in_flight").cast("int").alias("max_in_flight"),
    )
    all_ = sql.size("acks") > 0, sql.forall("acks", lambda one: one == -1)
    semantics = sql.when(all_[0], sql.when(all_[1], "at_least_once").otherwise("at_most_once"))
    waiting = sql.concat(sql.col("max_in_flight").cast("string"), sql.lit(" requests in flight"))
    idempotent, most = sql.col("idempotent"), sql.col("max_in_flight")
    found = sql.array_compact(
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
        )
    ).cast(VIOLATIONS)
    return (
        wrote.join(requests, list(connection))
        .withColumn("semantics", semantics)
        .withColumn("violations", found)
        .select(
            *connection, "client_id", "client_host", "tenants", "producer_ids", "requests", "acks", "idempotent",
            "max_in_flight", "qos_1", "semantics", "violations",
        )
    )  # fmt: skip
