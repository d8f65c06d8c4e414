"""Answers out of tables that Spark has: ``audit``, which is ``kwire audit`` for any number of captures.

Strategy: what records say is counted by connection and joined to it, and the connections of a client come together in
one place, where ``kwire.report.audit`` judges them. Only sums are moved; nothing is collected on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from kwire import versions
from kwire.errors import KwireError
from kwire.spark.workers import use_drivers_python

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["audit"]

_FORMAT = "source:string,magic:tinyint,compression:string,records:bigint"
_CLIENT = ("client_host", "client_ids", "software_name", "software_version")


def audit(tables: Mapping[str, DataFrame], target: str = "4.0") -> DataFrame:
    """Which clients would break if the brokers were upgraded to ``target``: a row for each client.

    ``tables``: ``connections`` and, where record formats are to be judged as well, ``records``, as the data source
    ``kwire`` gives them::

        read = spark.read.format("kwire").option("table", ...).load
        kwire.spark.audit({"connections": connections, "records": records}, "4.3").where("verdict = 'breaks'")

    The columns are those of ``kwire.report.audit.SCHEMA`` (docs/answers.md). What old clients can do besides is told
    more exactly where ``connections`` has the column ``broker_apis``, which is there only by name.

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
