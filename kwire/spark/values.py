"""Values of records as columns in Spark: Avro, Protobuf and JSON behind any registry's framing.

Rules kept here:

- Schemas are read on the driver, when the function is called, and travel with the query. No worker asks a registry.
- What is one type is a struct. What may be many is JSON text, and ``parse_json`` makes a VARIANT of it.
- A value that cannot be decoded is null, or fails the query (``FAILFAST``).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sql

from kwire.errors import KwireError
from kwire.naming import no_such
from kwire.spark.functions import column, udf
from kwire.spark.workers import plainly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql._typing import ColumnOrName

    from kwire.values import Mask, Reader, Schemas

__all__ = ["MODES", "RegistryOptions", "from_registry", "register_from_registry"]

MODES: Final = ("PERMISSIVE", "FAILFAST")
"""What becomes of a value that cannot be decoded: null, or an error of the query (tuple of str)."""
_HEADERS: Final = "array<struct<key: string, value: binary>>"


class RegistryOptions(TypedDict, total=False):
    """How ``from_registry`` decodes.

    ``part``: ``"value"``, or ``"key"`` for keys. ``mode``: ``"PERMISSIVE"``, or ``"FAILFAST"``, which fails the query
    at a value that cannot be decoded. ``mask``: fields that are left out. ``validate``: values in JSON that break
    their JSON Schema cannot be decoded either.
    """

    part: str
    mode: str
    validate: bool
    mask: Mask | Sequence[str] | None


def from_registry(
    value: ColumnOrName,
    headers: ColumnOrName | None = None,
    topic: ColumnOrName | None = None,
    *,
    schemas: Any,
    subject: str | None = None,
    schema: str | None = None,
    **options: Unpack[RegistryOptions],
) -> Column:
    """Decodes a binary column of values whose schemas a registry has.

    - ``headers``: those of the records, as Spark's Kafka source gives them. ``topic``: of which topic a value is.
      ``sql.lit("orders")`` says it of all.
    - ``schemas``: a folder, the URL of a registry, a broker's data folder with ``_schemas``, a dict of schemas by
      topic, ``kwire.values.Schemas``, or several of these in a list.
    - ``subject``: values become a struct, that of the newest version of this subject. ``schema``: that of this text.
      With neither they become JSON text.
    - ``options``: those of ``RegistryOptions``.

    Raises ``KwireError`` where there is no such subject, and for a registry that cannot be asked.

    >>> df.select(kwire.spark.from_registry("value", "headers", schemas=url, subject="orders-value"))  # doctest: +SKIP
    """
    function = _registry_function(schemas, subject, schema, options)
    # What is not needed is left out. A column of arrays that are null takes the JVM longer than all else here: 12
    # microseconds a row, where an empty array takes none.
    given = [column(value)]
    if headers is not None or topic is not None:
        given.append(sql.array().cast(_HEADERS) if headers is None else column(headers))
    if topic is not None:
        given.append(column(topic))
    made: Column = function(*given).alias("from_registry")
    return made


def register_from_registry(
    spark: SparkSession,
    schemas: Any,
    *,
    subject: str | None = None,
    schema: str | None = None,
    name: str = "kwire_from_registry",
    **options: Unpack[RegistryOptions],
) -> None:
    """Registers ``from_registry`` as a function of SQL: ``kwire_from_registry(value, headers, topic)``.

    It takes one, two or three columns. ``name`` is what SQL calls it: a function has one source of schemas and one
    type. All else, and what it raises, is that of ``from_registry``.

    >>> kwire.spark.register_from_registry(spark, url)  # doctest: +SKIP
    >>> spark.sql("SELECT parse_json(kwire_from_registry(value, headers)) FROM records")  # doctest: +SKIP
    """
    spark.udf.register(name, _registry_function(schemas, subject, schema, options))


def _registry_function(schemas: Any, subject: str | None, schema: str | None, options: RegistryOptions) -> Any:
    from kwire.tables.values import mask_of
    from kwire.values import Schemas
    from kwire.values.framing import PARTS

    if wrong := options.keys() - RegistryOptions.__annotations__.keys():
        raise TypeError(f"from_registry() got an unexpected keyword argument {min(wrong)!r}")
    mode = options.get("mode", MODES[0])
    if mode not in MODES:
        raise KwireError(no_such("mode", mode, MODES))
    part = options.get("part", PARTS[0])
    if part not in PARTS:
        raise KwireError(no_such("part", part, PARTS))
    found = Schemas.of(schemas)
    if options.get("validate", False):
        found = found.validated()
    if subject is not None and schema is not None:
        raise KwireError("subject and schema both say which type values become: give one of them")
    fetched = found.fetched(subjects=None if subject is None else [subject])
    reader = _reader(fetched, subject, schema)
    state = pickle.dumps(
        (
            fetched,
            None if reader is None else reader.written,
            part,
            mode,
            mask_of(options.get("mask")),
        )
    )
    return udf(_function(state), pa.string() if reader is None else reader.type)


def _reader(schemas: Schemas, subject: str | None, schema: str | None) -> Reader | None:
    from kwire.values import Reader, Written
    from kwire.values.written import format_of

    if subject is not None:
        written = schemas.newest(subject)
        if written is None:
            raise KwireError(f"no source has the subject {subject}")
    elif schema is not None:
        written = Written(format_of(schema), schema)
    else:
        return None
    return Reader.of(written, schemas)


def _function(state: bytes) -> Callable[..., Any]:
    # Not at the module's top level: it carries the schemas, and what it calls travels by name.
    def decoded(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return _decoded(state, columns)

    return plainly(decoded)


@lru_cache(maxsize=8)
def _opened(state: bytes) -> tuple[Any, Any, str, str, Any]:
    """What the driver has sent, made ready once in a worker."""
    from kwire.values import Reader

    schemas, written, part, mode, mask = pickle.loads(state)
    return schemas, None if written is None else Reader.of(written, schemas), part, mode, mask


def _decoded(state: bytes, columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    from kwire.values import decode

    schemas, reader, part, mode, mask = _opened(state)
    for given in columns:
        # SQL may give fewer columns, and a single one is no tuple.
        several = given if isinstance(given, tuple) else (given,)
        value, headers, topic = (*several, None, None)[:3]
        found = decode(
            value,
            schemas,
            # Of SQL's array() nobody knows what it would hold.
            headers=None if headers is None or not len(headers.flatten()) else headers,
            topics=None if topic is None or topic.null_count == len(topic) else topic,
            part=part,
            reader=reader,
            mask=mask,
        )
        if mode == "FAILFAST":
            _check(found.status, found.error)
        yield found.values


def _check(status: pa.Array, error: pa.Array) -> None:
    """Raises ``KwireError`` for the first value that could not be decoded."""
    import pyarrow.compute as pc

    wrong = pc.fill_null(pc.not_equal(status, "ok"), False)
    if wrong.true_count:
        at = pc.index(wrong, True).as_py()
        said = error[at].as_py() or "it names no schema, and is no JSON"
        raise KwireError(
            f"a value cannot be decoded, which the mode FAILFAST lets fail the query: {status[at]}: {said}"
        )
