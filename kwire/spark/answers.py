"""Answers out of tables that Spark has, for any number of captures: ``audit``, ``findings`` and ``lineage``.

They are the commands of these names. Strategy:

- An audit counts by connection what records say, and joins the counts to the connection. The connections of a client
  come together in one place, where ``kwire.report.audit`` judges them.
- Rules of findings add up by client, by topic, by group or by broker. Rows come together by one of these, in order of
  time. There the rules of ``kwire.report.findings`` go through them.
- Lineage is sums alone.

Nothing is collected on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kwire import versions
from kwire.errors import KwireError
from kwire.report import DEFAULT_TARGET
from kwire.spark.workers import use_drivers_python

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kwire.report.findings import Thresholds
    from kwire.values import Schemas

__all__ = ["audit", "findings", "lineage"]

_FORMAT = "source:string,magic:tinyint,compression:string,records:bigint"
_CLIENT = ("client_host", "client_ids", "software_name", "software_version")


def audit(tables: Mapping[str, DataFrame], target: str = DEFAULT_TARGET) -> DataFrame:
    """Which clients would break if the brokers were upgraded to ``target``: a row for each client.

    ``tables``: ``connections``, and ``records`` if record formats are to be judged as well, as the data source
    ``kwire`` gives them::

        read = spark.read.format("kwire").option("table", ...).load
        kwire.spark.audit({"connections": connections, "records": records}, "4.3").where("verdict = 'breaks'")

    The columns are those of ``kwire.report.audit.SCHEMA`` (docs/how-to/upgrade-audit.md). What else old clients can do
    is known more exactly if ``connections`` has the column ``broker_apis``, which is there only by name.

    Raises ``UnsupportedVersionError`` for an unknown release, ``KwireError`` without ``connections``.
    """
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.pandas.types import from_arrow_schema

    from kwire.report.audit import CONNECTIONS, SCHEMA

    release = versions.release_name(target)
    if "connections" not in tables:
        raise KwireError("an audit needs the table connections")
    connections = tables["connections"]
    use_drivers_python(connections.sparkSession)
    if "broker_apis" not in connections.columns:
        empty = "CAST(NULL AS array<struct<api_key:smallint,min_version:smallint,max_version:smallint>>)"
        connections = connections.withColumn("broker_apis", F.expr(empty))
    connections = connections.select(*CONNECTIONS).where("status IN ('ok', 'encrypted')")
    if "records" in tables:
        forms = (
            tables["records"]
            .where("status = 'ok' AND magic IS NOT NULL")
            .groupBy("capture", "connection", "source", "magic", "compression")
            .agg(F.count("*").alias("records"))
            .groupBy("capture", "connection")
            .agg(F.collect_list(F.struct("source", "magic", "compression", "records")).alias("formats"))
        )
        connections = connections.join(forms, ["capture", "connection"], "left")
    else:
        connections = connections.withColumn(
            "formats",
            F.expr(f"CAST(NULL AS array<struct<{_FORMAT}>>)"),
        )
    rest = [name for name in (*CONNECTIONS, "formats") if name not in _CLIENT]
    clients = connections.groupBy(*_CLIENT).agg(F.collect_list(F.struct(*rest)).alias("rows"))
    # PySpark's annotations leave out the types that it does accept: structs.
    judged = arrow_udf(_judging(release), from_arrow_schema(SCHEMA))  # type: ignore[call-overload]
    return clients.select(judged(F.struct(*_CLIENT, "rows")).alias("client")).select("client.*")


def _judging(target: str) -> Callable[[pa.Array], pa.Array]:
    """What judges clients, on a worker: from the connections of each to its row."""

    def judge(clients: pa.Array) -> pa.Array:
        from kwire.report.audit import CONNECTIONS, SCHEMA, Auditor
        from kwire.tables import table

        schema = table("connections").chosen(CONNECTIONS)
        made = []
        for client in clients.to_pylist():
            rows = [client | row for row in client.pop("rows")]
            auditor = Auditor(target)
            auditor.add_connections(pa.RecordBatch.from_pylist(rows, schema=schema))
            for row in rows:
                for one in row["formats"] or ():
                    auditor.add_format((row["capture"], row["connection"]), **one)
            made += auditor.result().rows()
        return pa.array(made, pa.struct(list(SCHEMA)))

    return judge


# --- findings ---------------------------------------------------------------------------------------------------------

_TIMES: Final = {
    "frames": "timestamp",
    "partitions": "frame_timestamp",
    "calls": "frame_timestamp",
    "connections": "first_seen",
    "records": "frame_timestamp",
    "group_events": "timestamp",
    "share_deliveries": "timestamp",
}


def findings(
    tables: Mapping[str, DataFrame],
    rules: Iterable[str] | None = None,
    thresholds: Thresholds | None = None,
    schemas: Any = None,
) -> DataFrame:
    """What goes wrong, with evidence: a row for each finding.

    ``tables``: any of ``frames``, ``partitions``, ``calls``, ``connections``, ``records``, ``group_events`` and
    ``share_deliveries``, as the data source ``kwire`` gives them. Rules that need another one are left out, unless
    ``rules`` names them. The columns are those of ``kwire.report.findings.SCHEMA`` (docs/reference/findings.md). Rows
    of all captures are looked at in order of time, as if they were one.

    Rules about values need the columns ``kwire.report.findings.OF_VALUES`` of ``records``; ``schemas`` are the sources
    with which they were made.

    Raises ``KwireError`` for an unknown rule, for one whose tables are missing, and if no rule is left.
    """
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.pandas.types import from_arrow_schema

    from kwire.report.findings import COLUMNS, OF_VALUES, RULES, SCHEMA, needed
    from kwire.report.findings import Thresholds as Usual
    from kwire.spark.arrow import mapped
    from kwire.values import Schemas

    names = list(RULES) if rules is None else list(rules)
    try:
        needed(names, schemas=True)
    except ValueError as wrong:
        raise KwireError(str(wrong)) from None
    # With Spark Connect, each look at the columns of a table asks the server.
    known = {name: frozenset(one.columns) for name, one in tables.items()}
    without_values = [one for one in OF_VALUES if one not in known.get("records", ())]
    missing = {name: [table for table in RULES[name].tables if table not in tables] for name in names}
    for name in names:
        if RULES[name].of_values and without_values and not missing[name]:
            missing[name] = [f"records with the column {without_values[0]}"]
    if rules is not None:
        for name, without in missing.items():
            if without:
                raise KwireError(f"the rule {name} needs the table {without[0]}")
    names = [name for name in names if not missing[name]]
    if not names:
        raise KwireError(f"no rule has its tables: they are {', '.join(COLUMNS)}")
    use_drivers_python(next(iter(tables.values())).sparkSession)
    found_schemas = None if schemas is None else Schemas.of(schemas).fetched()
    made: DataFrame | None = None
    for together, key in _TOGETHER.items():
        chosen = [name for name in names if RULES[name].together == together]
        columns = (
            {name: wanted for name, wanted in needed(chosen, schemas=True).items() if name in tables} if chosen else {}
        )
        rows: DataFrame | None = None
        for table, wanted in columns.items():
            one = _with_all(tables, table, known).select(*wanted)
            if key is _by_topic and table == "calls":
                commits = tables["partitions"].where("api_name IN ('OffsetCommit', 'TxnOffsetCommit')")
                commits = _by_topic(commits, known["partitions"])
                others = _of_clusters(one, commits).unionByName(_of_members(one, commits))
                one = _of_transactions(one, commits).unionByName(others)
            elif key is _by_client and "client_host" not in wanted:
                one = one.join(_clients(tables), ["capture", "connection"])
            elif key is _by_topic and table == "connections":
                one = _of_writers(one, _by_topic(tables["records"], known["records"]))
            elif key is _by_producer and table == "frames":
                one = _of_producers(one, tables["records"])
            else:
                one = key(one, wanted)
            parts = [F.struct(*wanted).alias(name) if name == table else F.lit(None).alias(name) for name in columns]
            place = F.col("frame") if "frame" in wanted else F.col("connection")
            one = one.select(
                "key", F.lit(table).alias("table"), F.col(_TIMES[table]).alias("at"), place.alias("place"), *parts
            )
            rows = one if rows is None else rows.unionByName(one)
        if rows is None:
            continue
        ordered = rows.repartition("key").sortWithinPartitions("table", "at", "place")
        found = mapped(ordered, _finding(chosen, thresholds or Usual(), found_schemas), from_arrow_schema(SCHEMA))
        made = found if made is None else made.unionByName(found)
    assert made is not None
    return made


def _with_all(tables: Mapping[str, DataFrame], name: str, known: Mapping[str, Collection[str]]) -> DataFrame:
    """A table with the columns that exist only if they are asked for by name. They are brokers as other tables say
    them, and no clusters. ``known``: the columns of each table."""
    from pyspark.sql import functions as F  # noqa: N812

    rows = tables[name]
    of = ["capture", "connection"]
    brokers = [one for one in ("broker_host", "broker_port") if one not in known[name]]
    others = [tables[one] for one in ("connections", "frames") if one in tables]
    if brokers and others:
        rows = rows.join(others[0].select(*of, *brokers).dropDuplicates(of), of, "left")
    elif brokers:
        rows = rows.withColumns({"broker_host": F.lit(None).cast("string"), "broker_port": F.lit(None).cast("int")})
    if name == "calls" and "cluster_id" not in known[name]:
        rows = rows.withColumn("cluster_id", F.lit(None).cast("string"))
    return rows


def _clients(tables: Mapping[str, DataFrame]) -> DataFrame:
    """Whose connections are, for tables that do not say so."""
    of = ["capture", "connection"]
    return tables["connections"].select(*of, _column("client_host").alias("key")).dropDuplicates(of)


def _by_client(rows: DataFrame, columns: Collection[str]) -> DataFrame:
    return rows.withColumnRenamed("client_host", "key").withColumn("client_host", _column("key"))


def _by_topic(rows: DataFrame, columns: Collection[str]) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    known = [_column(name) for name in ("topic", "topic_id") if name in columns]
    return rows.withColumn("key", F.coalesce(*known))


def _of_transactions(calls: DataFrame, commits: DataFrame) -> DataFrame:
    """The rows that say how transactions end, for each topic whose offsets they commit."""
    calls = calls.where(
        "direction = 'request' AND transactional_id IS NOT NULL "
        "AND api_name IN ('TxnOffsetCommit', 'EndTxn', 'InitProducerId')"
    )
    commits = commits.where("api_name = 'TxnOffsetCommit'")
    frame = ["capture", "connection", "frame"]
    names = calls.select(*frame, "transactional_id").join(commits.select(*frame, "key"), frame)
    return calls.join(names.select("transactional_id", "key").distinct(), "transactional_id")


def _of_members(calls: DataFrame, commits: DataFrame) -> DataFrame:
    """A commit of a member of each group, and all of nobody, for each topic whose offsets they commit."""
    calls = calls.where("api_name = 'OffsetCommit' AND direction = 'request' AND status = 'ok'")
    frame = ["capture", "connection", "frame"]
    calls = calls.join(commits.where("api_name = 'OffsetCommit'").select(*frame, "key").distinct(), frame)
    members = calls.where("generation >= 0").dropDuplicates(["key", "group_id"])
    return members.unionByName(calls.where("generation IS NULL OR generation < 0"))


def _of_clusters(calls: DataFrame, commits: DataFrame) -> DataFrame:
    """The rows that say to which cluster a broker belongs, for each topic whose offsets are committed."""
    told = calls.where("direction = 'response' AND cluster_id IS NOT NULL")
    told = told.dropDuplicates(["cluster_id", "broker_host", "broker_port"])
    return told.crossJoin(commits.select("key").distinct())


def _by_group(rows: DataFrame, columns: Collection[str]) -> DataFrame:
    """Responses do not name their group: they belong where their requests do. Rows of histories do."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    if "api_name" not in columns:
        return rows.withColumn("key", _column("group_id"))
    same = Window.partitionBy("capture", "connection", "correlation_id")
    rows = rows.where(
        "api_name IN ('JoinGroup', 'LeaveGroup') OR direction = 'request' "
        "AND api_name IN ('ConsumerGroupHeartbeat', 'StreamsGroupHeartbeat')"
    )
    return rows.withColumn("key", F.max("group_id").over(same))


def _by_broker(rows: DataFrame, columns: Collection[str]) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    return rows.withColumn("key", F.concat_ws(":", "broker_host", "broker_port"))


def _by_producer(rows: DataFrame, columns: Collection[str]) -> DataFrame:
    return rows.where("producer_id >= 0").withColumn("key", _column("producer_id").cast("string"))


def _of_producers(frames: DataFrame, records: DataFrame) -> DataFrame:
    """The rows that say whose connections are, for each producer that writes on them."""
    of = ["capture", "connection"]
    asked = frames.where("api_name = 'Produce' AND direction = 'request'")
    names = _by_producer(records, ()).select(*of, "key").distinct()
    return asked.dropDuplicates([*of, "client_host", "client_id"]).join(names, of)


def _of_writers(connections: DataFrame, records: DataFrame) -> DataFrame:
    """The connections, for each topic that is written or read on them."""
    of = ["capture", "connection"]
    return connections.join(records.select(*of, "key").distinct(), of)


_TOGETHER: Final = {
    "client": _by_client, "topic": _by_topic, "group": _by_group, "broker": _by_broker, "producer": _by_producer,
}  # fmt: skip
"""What rows of rules come together by: it gets these rows and the names of their columns."""


def _column(name: str) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.col(name)


def _finding(
    rules: Sequence[str], thresholds: Thresholds, schemas: Schemas | None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What looks at the rows of a partition, on a worker."""

    def find(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow.compute as pc

        from kwire.report.findings import Finder, batch_of

        finder = Finder(rules, thresholds, schemas)
        for batch in batches:
            of = batch.column("table")
            for name in pc.unique(of).to_pylist():
                rows = batch.column(name).filter(pc.equal(of, name))
                finder.add(name, pa.RecordBatch.from_struct_array(rows))
        yield batch_of(finder.result())

    return find


# --- lineage ----------------------------------------------------------------------------------------------------------


def lineage(tables: Mapping[str, DataFrame]) -> DataFrame:
    """Who writes and who reads each topic: a row for each topic, role and client.

    ``tables``: ``partitions``, and ``calls`` for the best knowledge of the readers' groups, as the data source
    ``kwire`` gives them. With ``records``, read with ``schemas`` and the columns
    ``kwire.report.lineage.OF_VALUES``, the column ``schemas`` is filled. The columns are those of
    ``kwire.report.lineage.SCHEMA`` (docs/how-to/lineage.md). Raises ``KwireError`` without ``partitions``, and for
    ``records`` that have some of these columns about values, and not all.
    """
    from pyspark.sql import functions as F  # noqa: N812

    from kwire.report.audit import OF_BROKERS
    from kwire.report.lineage import OF_VALUES, SCHEMA

    if "partitions" not in tables:
        raise KwireError("lineage needs the table partitions")
    has_values = False
    if "records" in tables:
        known_columns = frozenset(tables["records"].columns)
        without = [one for one in OF_VALUES if one not in known_columns]
        # Records for other answers say nothing of values.
        has_values = any(one in known_columns for one in OF_VALUES if one.startswith("value_"))
        if has_values and without:
            raise KwireError(
                f"lineage needs the column {without[0]} of records: read them with schemas, and the columns "
                f"{', '.join(OF_VALUES)} (kwire.report.lineage.OF_VALUES)"
            )
    client = ("client_host", "client_id")
    named = tables["partitions"].select(*client, "group_id")
    if "calls" in tables:
        named = named.unionByName(tables["calls"].select(*client, "group_id"))
    groups = (
        named.where("group_id IS NOT NULL")
        .groupBy(F.col("client_host").alias("host"), F.col("client_id").alias("id"))
        .agg(F.sort_array(F.collect_set("group_id")).alias("of"))
    )
    role = (
        F.when(F.expr("direction = 'request'"), "writes")
        .when(F.col("client_id").rlike(f"^(?:{OF_BROKERS.pattern})$"), "replicates")
        .otherwise("reads")
    )
    parts = tables["partitions"].where("status = 'ok' AND coalesce(topic, topic_id) IS NOT NULL")
    edges = (
        _accepted(parts)
        .where(
            "direction = 'request' AND api_name = 'Produce' OR direction = 'response' AND "
            "api_name IN ('Fetch', 'ShareFetch') AND record_bytes > 0"
        )
        .groupBy(F.coalesce("topic", "topic_id").alias("topic"), role.alias("role"), *client)
        .agg(
            F.count_distinct("capture", "connection", "frame").alias("messages"),
            F.coalesce(F.sum("records"), F.lit(0)).alias("records"),
            F.coalesce(F.sum("record_bytes"), F.lit(0)).alias("bytes"),
            F.min("frame_timestamp").alias("first_seen"),
            F.max("frame_timestamp").alias("last_seen"),
        )
    )
    same = (F.col("client_host") == F.col("host")) & F.col("client_id").eqNullSafe(F.col("id"))
    known = F.when(F.col("role") == "reads", F.coalesce("of", F.expr("array()"))).otherwise(F.expr("array()"))
    joined = edges.join(groups, same, "left").withColumn("groups", known.cast("array<string>"))
    none = F.expr("array()").cast("array<string>")
    if not has_values:
        return joined.withColumn("schemas", none).select(*SCHEMA.names)
    of_values = _schemas_of_values(tables)
    here = (F.col("topic") == F.col("of_topic")) & ((F.col("role") == "writes") == F.col("of_writer"))
    here &= (F.col("client_host") == F.col("of_host")) & F.col("client_id").eqNullSafe(F.col("of_client"))
    with_schemas = joined.join(of_values, here, "left")
    return with_schemas.withColumn("schemas", F.coalesce("of_schemas", none)).select(*SCHEMA.names)


def _schemas_of_values(tables: Mapping[str, DataFrame]) -> DataFrame:
    """The schemas of the values that a client writes to a topic, or gets of it."""
    from pyspark.sql import functions as F  # noqa: N812

    from kwire.report.lineage import MOST_SCHEMAS

    connection = ["capture", "connection"]
    # A connection is that of the client that it names first.
    first = F.min_by(F.struct("client_host", "client_id"), F.col("frame"))
    clients = tables["partitions"].groupBy(*connection).agg(first.alias("client"))
    number = F.coalesce(F.col("value_schema_id").cast("string"), "value_schema_guid")
    called = F.coalesce("value_schema", F.concat_ws(" ", "value_framing", number))
    fine = "status = 'ok' AND topic IS NOT NULL AND value_framing IS NOT NULL"
    names = (
        tables["records"]
        .where(fine)
        .where("coalesce(value_schema, cast(value_schema_id AS string), value_schema_guid) IS NOT NULL")
        .groupBy(*connection, F.col("topic").alias("of_topic"), F.expr("source = 'produce'").alias("of_writer"))
        .agg(F.collect_set(called).alias("names"))
    )
    return (
        names.join(clients, connection)
        .groupBy(
            "of_topic",
            "of_writer",
            F.col("client.client_host").alias("of_host"),
            F.col("client.client_id").alias("of_client"),
        )
        .agg(
            F.slice(F.sort_array(F.array_distinct(F.flatten(F.collect_list("names")))), 1, MOST_SCHEMAS).alias(
                "of_schemas"
            )
        )
    )


def _accepted(parts: DataFrame) -> DataFrame:
    """Rows without those that a response refuses. Ids repeat on long connections. Of several requests the last before
    the response counts, by numbers of frames, since a time may be null."""
    from pyspark.sql import functions as F  # noqa: N812

    of = ["capture", "connection", "correlation_id", "of_topic", "partition"]
    parts = parts.withColumn("of_topic", F.coalesce("topic", "topic_id"))
    told = parts.where("api_name = 'Produce' AND direction = 'response' AND error <> 'NONE'")
    refused = told.select(*of, F.col("frame").alias("refused_in"))
    asked = parts.where("api_name = 'Produce' AND direction = 'request'").select(*of, "frame")
    before = asked.join(refused, of).where("frame < refused_in")
    gone = before.groupBy(*of, "refused_in").agg(F.max("frame").alias("frame"))
    return parts.join(gone.select(*of, "frame"), [*of, "frame"], "left_anti")
