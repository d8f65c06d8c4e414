"""What of a query's WHERE saves work: the conditions that a filter of kwire can stand for (option ``pushFilters``).

Rules kept here:

- Spark checks every condition itself as well. So a filter may leave too many rows, never too few.
- Spark alone checks a condition that does not fit exactly: of another column, or of a value that a table may show for
  other bytes.
- Filters choose by columns that a row for a bad file does not have, except ``status``. ``status`` is used only for the
  words of the table. So such a row is there whenever the query wants it.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from kwire import schema
from kwire.tables.filters import EPOCH, Filter

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter as Condition

    from kwire.tables.definition import Table

__all__ = ["narrowed"]

_MICROSECOND: Final = datetime.timedelta(microseconds=1)
_YEARS: Final = range(1971, 2262)
"""Those that nanoseconds since 1970 can say, whatever the zone."""


def narrowed(conditions: Iterable[Condition], only: Filter | None, table: Table) -> Filter | None:
    """``only``, the filter of the options, narrowed by ``conditions``. All of them must hold."""
    found = only or Filter()
    if not getattr(table, "filters", False):
        return only
    names = {one.name for one in table.schema}
    clock = "frame_timestamp" if "frame_timestamp" in names else "timestamp"
    for one in conditions:
        path: tuple[Any, ...] = getattr(one, "attribute", ())
        column = path[0].lower() if len(path) == 1 else None
        if column not in names:
            continue
        if isinstance(one, EqualTo | In):
            values = [one.value] if isinstance(one, EqualTo) else list(one.value)
            found = _among(found, str(column), values, table)
        elif column == clock and isinstance(getattr(one, "value", None), datetime.datetime):
            found = _since(found, one)
    return found or None


def _among(found: Filter, column: str, values: list[Any], table: Table) -> Filter:
    """With a column being one of some values; null is none of them."""
    values = [one for one in values if one is not None]
    if column == "api_key" and all(type(one) is int for one in values):
        return dataclasses.replace(found, apis=_both(found.apis, values))
    if not all(isinstance(one, str) for one in values):
        return found
    if column == "api_name":
        keys = {name: key for key, name in schema.api_keys().items()}
        if all(one in keys for one in values):
            return dataclasses.replace(found, apis=_both(found.apis, [keys[one] for one in values]))
    elif column == "status":
        if all(one in table.statuses for one in values):
            return dataclasses.replace(found, status=_both(found.status, values))
    elif all(map(_is_shown_as_it_is, values)):
        if column == "topic":
            return dataclasses.replace(found, topics=_both(found.topics, values))
        if column == "client_id":
            return dataclasses.replace(found, client_ids=_both(found.client_ids, values))
    return found


def _is_shown_as_it_is(name: str) -> bool:
    """Whether a column shows this text for these bytes alone."""
    return name.isascii() and name.isprintable() and "\\" not in name and 0 < len(name) < 200


def _both(before: frozenset[Any] | None, values: list[Any]) -> frozenset[Any]:
    return frozenset(values) if before is None else before & frozenset(values)


def _since(found: Filter, one: Any) -> Filter:
    """With the time of a frame before or after one that Spark gives, in UTC or with its zone."""
    when = one.value if one.value.tzinfo is not None else one.value.replace(tzinfo=datetime.UTC)
    if when.year not in _YEARS:
        return found
    time = (when - EPOCH) // _MICROSECOND * 1000
    if isinstance(one, GreaterThan | GreaterThanOrEqual):
        return dataclasses.replace(found, start=time if found.start is None else max(found.start, time))
    if isinstance(one, LessThan | LessThanOrEqual):
        # Digits after the microsecond are in no column: "<=" means all of them.
        end = time + 1000
        return dataclasses.replace(found, end=end if found.end is None else min(found.end, end))
    return found
