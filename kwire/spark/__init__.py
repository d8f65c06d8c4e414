"""Kafka traffic in Spark: the data source ``kwire`` and the column functions.

    import kwire.spark                                   # best before the session is made
    frames = spark.read.format("kwire").option("table", "frames").load("captures/*.pcap")
    df.select(kwire.spark.decode_request("payload"))

Spark finds the data source by itself (``pyspark_kwire``) where kwire is installed beside PySpark. ``register(spark)``
does the same by hand: for a session that has used a Python data source before kwire could be found. Importing this
package makes Spark's workers run the same Python as the driver (``kwire.spark.workers``).

This is the only package that imports pyspark. Its modules:

- ``source``, ``options``, ``reader``: the data source; ``streaming``, ``discovery``, ``checkpoint``: streams;
- ``files``, ``stores``, ``prefetch``: what a path stands for; ``sensors``, ``across``: many captures as one;
- ``histories``: what happened to groups and the like, in all of them;
- ``functions``, ``events``: column functions; ``payloads``, ``chunks``, ``pairing``: tables of frames and of streams;
- ``answers``: audit, findings, lineage; ``flows``: transactions, journeys; ``sessions``: those of Fetch;
- ``exports``: files of tables;
- ``workers``: their Python; ``daemon``: what forks them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from kwire.errors import MissingExtraError

try:
    import pyspark
except ImportError as _missing:
    raise MissingExtraError("kwire.spark", "spark") from _missing

from kwire.spark.workers import context_of, prefer_drivers_python, use_drivers_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kwire.spark.across import group_events, read
    from kwire.spark.answers import audit, findings, lineage
    from kwire.spark.chunks import decode_frames
    from kwire.spark.events import (
        cloudevent,
        cloudevents,
        hono_message,
        hono_messages,
        hono_producers,
        hono_violations,
        telemetry_violations,
    )
    from kwire.spark.exports import export
    from kwire.spark.flows import journeys, transactions
    from kwire.spark.functions import (
        api_name,
        decode_records,
        decode_request,
        decode_response,
        request_partitions,
        request_records,
        response_partitions,
        response_records,
        sql_functions,
    )
    from kwire.spark.options import schema_of, table_schema
    from kwire.spark.payloads import exchanges, partitions_of, record_sets_of, records_of
    from kwire.spark.sessions import fetch_sessions, share_sessions
    from kwire.spark.source import KwireDataSource
    from kwire.spark.values import from_registry, register_from_registry

__all__ = [
    "KwireDataSource",
    "api_name",
    "audit",
    "cloudevent",
    "cloudevents",
    "decode_frames",
    "decode_records",
    "decode_request",
    "decode_response",
    "exchanges",
    "export",
    "fetch_sessions",
    "findings",
    "from_registry",
    "group_events",
    "hono_message",
    "hono_messages",
    "hono_producers",
    "hono_violations",
    "journeys",
    "lineage",
    "partitions_of",
    "read",
    "record_sets_of",
    "records_of",
    "register",
    "register_from_registry",
    "request_partitions",
    "request_records",
    "response_partitions",
    "response_records",
    "schema_of",
    "share_sessions",
    "sql_functions",
    "table_schema",
    "telemetry_violations",
    "transactions",
]

# Imported when first used (PEP 562): each read starts workers that need the data source, and nothing else.
_LAZY = {
    "KwireDataSource": "kwire.spark.source",
    "audit": "kwire.spark.answers",
    "cloudevent": "kwire.spark.events",
    "cloudevents": "kwire.spark.events",
    "decode_frames": "kwire.spark.chunks",
    "decode_records": "kwire.spark.functions",
    "decode_request": "kwire.spark.functions",
    "decode_response": "kwire.spark.functions",
    "exchanges": "kwire.spark.payloads",
    "export": "kwire.spark.exports",
    "api_name": "kwire.spark.functions",
    "fetch_sessions": "kwire.spark.sessions",
    "share_sessions": "kwire.spark.sessions",
    "findings": "kwire.spark.answers",
    "group_events": "kwire.spark.across",
    "from_registry": "kwire.spark.values",
    "register_from_registry": "kwire.spark.values",
    "journeys": "kwire.spark.flows",
    "hono_message": "kwire.spark.events",
    "hono_messages": "kwire.spark.events",
    "hono_producers": "kwire.spark.events",
    "hono_violations": "kwire.spark.events",
    "lineage": "kwire.spark.answers",
    "partitions_of": "kwire.spark.payloads",
    "read": "kwire.spark.across",
    "record_sets_of": "kwire.spark.payloads",
    "records_of": "kwire.spark.payloads",
    "request_partitions": "kwire.spark.functions",
    "request_records": "kwire.spark.functions",
    "response_partitions": "kwire.spark.functions",
    "response_records": "kwire.spark.functions",
    "schema_of": "kwire.spark.options",
    "sql_functions": "kwire.spark.functions",
    "table_schema": "kwire.spark.options",
    "telemetry_violations": "kwire.spark.events",
    "transactions": "kwire.spark.flows",
}

del pyspark


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


def register(spark: SparkSession) -> None:
    """Makes ``format("kwire")`` and the functions of SQL known to ``spark``, and its workers run the driver's Python.

    Harmless to repeat. ``sql_functions`` says which functions there are, such as ``kwire_decode_request(payload)``.
    """
    from kwire.spark.functions import sql_functions
    from kwire.spark.source import KwireDataSource

    use_drivers_python(spark)
    spark.dataSource.register(KwireDataSource)
    for name, function in sql_functions().items():
        spark.udf.register(name, function)


def _register_late() -> None:
    """Registers kwire with a session that was made before this import, which cannot find it by itself."""
    from pyspark.sql import SparkSession as Session

    active = Session.getActiveSession()
    # With Spark Connect the server has its own kwire.
    if active is not None and context_of(active) is not None:
        register(active)


if prefer_drivers_python() and "pyspark.sql.session" in sys.modules:
    _register_late()
