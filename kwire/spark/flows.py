"""Transactions and the way of records, of many captures as one: ``transactions`` and ``journeys``.

A row of these tables needs what came before it, of all connections. So the captures of a sensor are read one after the
other, by one task (the option ``across`` of the data source). Sensors are read at the same time. Nothing is shuffled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kwire.errors import KwireError
from kwire.spark.options import PATHS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["journeys", "transactions"]


def transactions(paths: str | Sequence[str], *, spark: SparkSession | None = None, **options: Any) -> DataFrame:
    """What became of each transaction: the table ``transactions`` of captures that continue each other.

    ``paths``: files, folders and patterns. ``options``: those of the data source, such as ``sensor``, ``ports``,
    ``keylog``. All captures of a sensor are read by one task, in order of time. Raises ``KwireError`` for an option
    that does not act here.
    """
    return _read("transactions", paths, spark, options)


def journeys(paths: str | Sequence[str], *, spark: SparkSession | None = None, **options: Any) -> DataFrame:
    """The way of records from Produce to commit: the table ``journeys`` of captures that continue each other.

    ``paths`` and ``options``: as for ``transactions``. A row is a range of records; ``explode(sequence(first_offset,
    last_offset))`` makes rows of single ones. Raises ``KwireError`` for an option that does not act here.
    """
    return _read("journeys", paths, spark, options)


def _read(table: str, paths: str | Sequence[str], spark: SparkSession | None, options: Mapping[str, Any]) -> DataFrame:
    from pyspark.sql import SparkSession as Session

    spark = spark or Session.active()
    for name in ("table", "across", PATHS):
        if name in options:
            raise KwireError(f"the option {name!r} is not for kwire.spark.{table}: it chooses it itself")
    reader = spark.read.format("kwire").option("table", table).option("across", True)
    for name, value in options.items():
        reader = reader.option(name, json.dumps(value) if isinstance(value, (dict, list)) else value)
    return reader.load([paths] if isinstance(paths, str) else list(paths))
