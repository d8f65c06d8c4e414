"""Partition columns: what the names of folders say, ``date=2026-11-22/sensor=east/``, as columns of a table.

The driver finds them where it lists files (``kwire.spark.files``), and opens none. The rules are those of Spark's own
file sources:

- Folders between the *base* and the file count: the folder that was named or that a pattern matches, or the option
  ``basePath``. Of these it is the lowest run of names with ``=``.
- A value is an int, bigint, decimal, double, timestamp or date if all folders have one that reads so, else a string;
  ``%3A`` stands for ``:``. ``__HIVE_DEFAULT_PARTITION__`` is null.
- All folders have the same columns, or the query fails.

Four rules are kwire's own:

- A file in no such folder has null, where Spark leaves the file out.
- A column of the table goes before a folder of its name: Spark would show the folder's value in its place.
- Where all values are null the column is a string, and so is a time of day. Spark says void, and time.
- ``recursiveFileLookup=true`` turns partition columns off, as in Spark; without it folders are searched all the same.

Spark does not tell a Python data source its configuration: types and time zone are options.
"""

from __future__ import annotations

import datetime
import math
import re
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import types
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from kwire.errors import KwireError
from kwire.spark.files import unescaped

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter as Condition

    from kwire.spark.files import File, Pairs

__all__ = ["INFER", "NULL", "Folders", "check_type", "is_decided", "may_hold", "on_columns"]

INFER: Final = "partitionColumnTypeInference"
"""An option, and the last word of Spark's setting ``spark.sql.sources.partitionColumnTypeInference.enabled``."""
NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""The value of a folder that stands for null."""

_WHOLE: Final = re.compile(r"[+-]?\d+")
_EXACT: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?")
_FLOAT: Final = re.compile(
    r"[\x00-\x20]*([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[dDfF]?[\x00-\x20]*"
)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?")
_CAST_TIME: Final = re.compile(_TIME.pattern.replace(" ", "[ T]", 1) + r"(?:Z|[+-][0-9]{2}:[0-9]{2})?")
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_DIGITS: Final = 38
"""Of a decimal, at most."""
_EXACTLY: Final = Context(prec=2 * _DIGITS, rounding=ROUND_HALF_UP)

_RANGES: Final[Mapping[type[types.DataType], int]] = {
    types.ByteType: 8,
    types.ShortType: 16,
    types.IntegerType: 32,
    types.LongType: 64,
}
"""Bits of whole numbers."""


@dataclass(frozen=True, slots=True)
class Folders:
    """The options of partition columns."""

    on: bool = True
    base: str | None = field(default=None, repr=False)
    """The folder above all folders that count; None: those that are named."""
    infer: bool = True
    """Whether values have types; else they are strings."""
    zone: str = "UTC"
    """The time zone of timestamps that do not say it."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Folders:
        """From values of options (``kwire.options``). Raises ``KwireError`` for a time zone that is none."""
        zone = values["timeZone"].strip()
        _zone(zone)
        on = values["recursiveFileLookup"] is not True
        return cls(on=on, base=values["basePath"], infer=values[INFER], zone=zone)

    def columns(self, files: Iterable[File], taken: Iterable[str]) -> list[types.StructField]:
        """The partition columns of ``files``, but for those that the table has: ``taken``.

        Raises ``KwireError`` where folders do not agree."""
        if not self.on:
            return []
        some = {file.pairs: file.name for file in files if file.pairs}
        names: dict[tuple[str, ...], str] = {}
        for pairs, name in some.items():
            names.setdefault(tuple(column.lower() for column, _ in pairs), name)
        if not names:
            return []
        (columns, first), *others = names.items()
        for other, name in others:
            raise KwireError(
                f"folders disagree about partition columns: {first} has {_listed(columns)}, {name} has "
                f"{_listed(other)}; name one of them, or read them without such columns: recursiveFileLookup=true"
            )
        if len(set(columns)) < len(columns):
            raise KwireError(
                f"{first}: two of its folders say the same partition column; recursiveFileLookup=true reads it without"
            )
        own = {one.lower() for one in taken}
        found = []
        for k, (name, _) in enumerate(next(iter(some))):
            if name.lower() not in own:
                kinds = [_kind(pairs[k][1]) if self.infer else _text(pairs[k][1]) for pairs in some]
                found.append(types.StructField(name, _common(kinds)))
        return found

    def value(self, pairs: Pairs, column: types.StructField) -> Any:
        """What folders say of a column: a Python value of its type, or None. Raises ``KwireError`` where it has no such
        value."""
        raw = next((value for name, value in reversed(pairs) if name.lower() == column.name.lower()), NULL)
        try:
            return _cast(raw, column.dataType, self.zone)
        except (ValueError, OverflowError, InvalidOperation):
            raise KwireError(
                f"the folder {column.name}={raw} is no {column.dataType.simpleString()}, as the partition column "
                f"{column.name!r} is: rename it, or give a schema in which the column is a string"
            ) from None


def check_type(column: types.StructField) -> None:
    """Raises ``KwireError`` for a type that no partition column has."""
    kind = column.dataType
    if type(kind) not in _CASTS or (isinstance(kind, types.StringType) and kind != types.StringType()):
        raise KwireError(
            f"the partition column {column.name!r} is not {kind.simpleString()}: it is a string, a whole number, a "
            "decimal, a double, a boolean, a date or a timestamp"
        )


def _listed(columns: Iterable[str]) -> str:
    return "/".join(f"{one}=" for one in columns)


# --- types ------------------------------------------------------------------------------------------------------------


def _text(raw: str) -> types.DataType:
    return types.NullType() if raw == NULL else types.StringType()


@lru_cache(maxsize=1 << 16)
def _kind(raw: str) -> types.DataType:
    """The type of one value; null for none (``PartitioningUtils.inferPartitionColumnValue``)."""
    if _WHOLE.fullmatch(raw):
        for whole in (types.IntegerType(), types.LongType()):
            if _fits(int(raw), whole):
                return whole
    if _EXACT.fullmatch(raw):
        number = Decimal(raw)
        exponent = number.as_tuple().exponent
        digits = len(number.as_tuple().digits) + (exponent if isinstance(exponent, int) else 0)
        if isinstance(exponent, int) and exponent >= 0 and digits <= _DIGITS:
            return types.DecimalType(digits, 0)
    if _FLOAT.fullmatch(raw):
        return types.DoubleType()
    dated: tuple[tuple[types.DataType, re.Pattern[str], str], ...] = (
        (types.TimestampType(), _TIME, unescaped(raw)),
        (types.DateType(), _DATE, raw),
    )
    for kind, form, text in dated:
        if form.fullmatch(text):
            try:
                _cast(raw, kind, "UTC")
            except (ValueError, OverflowError):
                continue
            return kind
    return _text(raw)


def _fits(number: int, kind: types.DataType) -> bool:
    half = 1 << (_RANGES[type(kind)] - 1)
    return -half <= number < half


def _common(kinds: Iterable[types.DataType]) -> types.DataType:
    """The type that all values have (``PartitioningUtils.findWiderTypeForPartitionColumn``)."""
    found: types.DataType = types.NullType()
    for kind in dict.fromkeys(kinds):
        found = _wider(found, kind)
    return types.StringType() if isinstance(found, types.NullType) else found


def _wider(a: types.DataType, b: types.DataType) -> types.DataType:
    if a == b or isinstance(b, types.NullType):
        return a
    if isinstance(a, types.NullType):
        return b
    pair = {type(a), type(b)}
    if pair == {types.IntegerType, types.LongType}:
        return types.LongType()
    if pair == {types.IntegerType, types.DoubleType}:
        return types.DoubleType()
    if pair == {types.DateType, types.TimestampType}:
        return types.TimestampType()
    if pair <= {types.IntegerType, types.LongType, types.DecimalType}:
        digits = max(_digits(a), _digits(b))
        return types.DecimalType(digits, 0)
    return types.StringType()


def _digits(kind: types.DataType) -> int:
    if isinstance(kind, types.DecimalType):
        return kind.precision
    return 10 if isinstance(kind, types.IntegerType) else 20


# --- values -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 16)
def _cast(raw: str, kind: types.DataType, zone: str) -> Any:
    """The value of a folder as a Python value. Raises ``ValueError`` or one of its kind."""
    return None if raw == NULL else _CASTS[type(kind)](raw, kind, zone)


def _number(raw: str, kind: Any, zone: str) -> int:
    if not _WHOLE.fullmatch(raw) or not _fits(int(raw), kind):
        raise ValueError(raw)
    return int(raw)


def _float(raw: str, kind: Any, zone: str) -> float:
    found = _FLOAT.fullmatch(raw)
    if found is None:
        raise ValueError(raw)
    return float(found[1])


def _decimal(raw: str, kind: Any, zone: str) -> Decimal:
    number = Decimal(raw)
    if not number.is_finite() or number.adjusted() >= kind.precision - kind.scale:
        raise ValueError(raw)
    return number.quantize(Decimal(1).scaleb(-kind.scale), context=_EXACTLY)


def _date(raw: str, kind: Any, zone: str) -> datetime.date:
    if not _DATE.fullmatch(raw):
        raise ValueError(raw)
    return datetime.date.fromisoformat(raw)


def _instant(raw: str, kind: Any, zone: str) -> datetime.datetime:
    text = unescaped(raw)
    if not _DATE.fullmatch(text) and not _CAST_TIME.fullmatch(text):
        raise ValueError(raw)
    found = datetime.datetime.fromisoformat(text)
    return (found.replace(tzinfo=_zone(zone)) if found.tzinfo is None else found).astimezone(datetime.UTC)


def _truth(raw: str, kind: Any, zone: str) -> bool:
    if raw.lower() not in ("true", "false"):
        raise ValueError(raw)
    return raw.lower() == "true"


_CASTS: Final[Mapping[type[types.DataType], Callable[[str, Any, str], Any]]] = {
    types.StringType: lambda raw, kind, zone: unescaped(raw),
    **dict.fromkeys(_RANGES, _number),
    types.DoubleType: _float,
    types.DecimalType: _decimal,
    types.DateType: _date,
    types.TimestampType: _instant,
    types.BooleanType: _truth,
}


@lru_cache(maxsize=64)
def _zone(name: str) -> datetime.tzinfo:
    """A time zone as Spark names them. Raises ``KwireError``."""
    found = _OFFSET.fullmatch(name)
    if found is not None and int(found[2]) <= 18 and int(found[3] or 0) < 60:
        offset = datetime.timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
        return datetime.timezone(-offset if found[1] == "-" else offset)
    if name in ("Z", "UTC", "GMT", "UT"):
        return datetime.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise KwireError(
            f"no time zone {name!r}: the option 'timeZone' is one such as Europe/Berlin or +02:00"
        ) from None


# --- conditions -------------------------------------------------------------------------------------------------------


def may_hold(conditions: Iterable[Condition], values: Mapping[str, Any]) -> bool:
    """Whether rows with these ``values`` of partition columns, by names in small letters, can be in a query that wants
    all ``conditions``. What is not about them, or cannot be told, can hold."""
    return all(_holds(one, values) is not False for one in conditions)


def is_decided(condition: Condition, values: Iterable[Mapping[str, Any]]) -> bool:
    """Whether folders say of each file, by its ``values``, if the condition holds."""
    return all(_holds(condition, one) is not None for one in values)


def on_columns(conditions: Iterable[Condition], names: Iterable[str]) -> Iterator[Condition]:
    """Those of ``conditions`` that are about columns of these ``names`` in small letters."""
    known = set(names)
    for one in conditions:
        path = _attribute(one)
        if len(path) == 1 and path[0].lower() in known:
            yield one


def _attribute(condition: Condition) -> tuple[str, ...]:
    inner = condition.child if isinstance(condition, Not) else condition
    return getattr(inner, "attribute", ())


def _holds(condition: Condition, values: Mapping[str, Any]) -> bool | None:
    """Whether it holds; None where nobody knows. Of null, what SQL calls unknown is a row that is left out: False."""
    path = _attribute(condition)
    if len(path) != 1 or path[0].lower() not in values:
        return None
    value = values[path[0].lower()]
    negated = isinstance(condition, Not)
    inner: Any = condition.child if isinstance(condition, Not) else condition
    if isinstance(inner, IsNull | IsNotNull):
        return (value is None) == (isinstance(inner, IsNull) != negated)
    of = _COMPARED.get(type(inner))
    if of is None:
        return None
    others = list(inner.value) if isinstance(inner, In) else [inner.value]
    # The order of Spark has a place for NaN, and that of Python none.
    if any(isinstance(one, float) and math.isnan(one) for one in (value, *others)):
        return None
    if isinstance(inner, EqualNullSafe):
        return ((value == inner.value) if _alike(value, inner.value) else None) if not negated else None
    if value is None:
        return False
    if negated and None in others:
        return False
    others = [one for one in others if one is not None]
    if not all(_alike(value, one) for one in others):
        return None
    return any(of(value, one) for one in others) != negated


def _alike(a: Any, b: Any) -> bool:
    """Whether two values can be compared as Spark compares them: it casts neither before it asks."""
    if a is None or b is None:
        return True
    numbers = int, float, Decimal
    if isinstance(a, datetime.datetime) and isinstance(b, datetime.datetime):
        return (a.tzinfo is None) == (b.tzinfo is None)
    plain = isinstance(a, numbers) and isinstance(b, numbers) and isinstance(a, bool) == isinstance(b, bool)
    return type(a) is type(b) or plain


_COMPARED: Final[Mapping[type[Any], Callable[[Any, Any], bool]]] = {
    EqualTo: lambda value, other: value == other,
    EqualNullSafe: lambda value, other: value == other,
    In: lambda value, other: value == other,
    GreaterThan: lambda value, other: value > other,
    GreaterThanOrEqual: lambda value, other: value >= other,
    LessThan: lambda value, other: value < other,
    LessThanOrEqual: lambda value, other: value <= other,
    StringStartsWith: lambda value, other: value.startswith(other),
    StringEndsWith: lambda value, other: value.endswith(other),
    StringContains: lambda value, other: other in value,
}
