"""The Spark data source ``kwire``: captures and broker log segments as tables.

The tables of captures, and those of log segments where the option ``format`` is ``log``, are in ``kwire.tables``.

Spark asks in three places. On the driver, ``schema`` names the columns and ``partitions`` lists the files, one
partition each, or one for small ones that follow each other; both run again for every action. On a worker, ``read``
opens its files and yields what ``kwire.capture.read`` or ``kwire.log.read`` yields, as Arrow batches
(``kwire.spark.reader``).

Rules kept here:

- The tables are those of the registry (``kwire.tables``), with every column but the file's name (``capture`` or
  ``segment``) and ``status`` nullable, because a bad file is a row with nothing else.
- A schema that the user gives chooses columns by name, and what no chosen column needs is not worked out. It is the
  only way to leave columns out: Spark does not prune the columns of a Python data source.
- A table of Spark's catalog (``CREATE TABLE t USING kwire OPTIONS (...)``) reads with no options: Spark keeps them as
  properties of the table, which a Python data source does not get back. It gets the schema back, so the options are in
  the metadata of its first column (``CATALOG``).
- What differs between tables is said by the registry: nothing here asks which one it is, only what it is made from.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructField, StructType

from kwire import stored
from kwire.errors import CaptureError, KwireError
from kwire.naming import secrets_of
from kwire.options import LOAD, STREAM, check_place
from kwire.spark import stores as object_stores
from kwire.spark.options import PATH, PATHS, Options, spark_schema
from kwire.spark.partitioned import check_type
from kwire.spark.reader import FileReader, PushingReader
from kwire.spark.workers import plainly, prefer_drivers_python

if TYPE_CHECKING:
    from kwire.spark.files import File

__all__ = ["KwireDataSource"]

CATALOG: Final = "kwire.options"
"""The key of a column's metadata under which the options of a table in Spark's catalog are kept, as JSON."""
COPY: Final = "option."
"""What Spark's catalog puts in front of its copies of the options of CREATE TABLE. Beside them stand ``path`` and
properties of the table that are no options: owner, provider, location."""

prefer_drivers_python()


class KwireDataSource(DataSource):
    """``spark.read.format("kwire").option("table", "frames").option("ports", "9092,9093").load(path)``.

    With ``option("format", "log")`` log segments; ``option("deep", True)`` decodes the records of Kafka's own topics.
    ``option("secrets", "show")`` shows passwords and the like, ``option("limits", "total=256MiB")`` bounds the work.
    ``option("payloads", True)`` keeps the record sets in bodies. ``option("api", "OffsetCommit")`` makes structs of the
    bodies of one message: requests, or with ``option("direction", "response")`` responses. For rows of both there is
    ``option("apis", "OffsetCommit")``.
    ``option("pushFilters", True)`` reads no more than WHERE wants of APIs, topics, clients, times and status.
    ``option("across", True)`` reads all captures of a sensor as one, one after the other (``option("sensor", ...)``);
    ``kwire.spark.read`` does it for many at once.
    Options of Spark's file sources: ``pathGlobFilter``, ``recursiveFileLookup``, ``modifiedAfter``, ``modifiedBefore``.
    ``spark.readStream.format("kwire").load(folder)`` goes on with files that are written later: ``maxFilesPerTrigger``,
    ``maxBytesPerTrigger``, ``idle``, ``remember``.
    ``option("keylog", path)`` names the key logs of connections that speak TLS, as a path or pattern,
    ``option("topic_ids", path)`` what says names of topics by their ids. ``option("s3.access_key", ...)`` and the like
    are for object stores (``kwire.spark.stores``).
    """

    @classmethod
    def name(cls) -> str:
        """The word for ``format``."""
        return "kwire"

    @plainly
    def schema(self) -> StructType:
        """The columns of the table that was asked for."""
        options, of_catalog = _given(self.options)
        checked = Options.of(options)
        beside: list[StructField] = []
        if checked.folders.on:
            # A path that is not there is said where it is read: it may come to be.
            with contextlib.suppress(CaptureError):
                beside = checked.folder_columns(checked.files(growing=True))
        schema = spark_schema(checked.definition, columns=checked.check_columns(beside))
        schema = StructType([*schema.fields, *beside])
        if of_catalog:
            for name in object_stores.SECRETS & options.keys():
                raise KwireError(
                    f"the option {name!r} is no option of a table, of which everybody sees the options: "
                    f"SELECT ... FROM t WITH (`{name}` '...') gives it for a query"
                )
            for name, value in options.items():
                if secrets_of(value):
                    raise KwireError(
                        f"the option {name!r} has credentials, and everybody sees the options of a table: give them in "
                        "the environment, or for a query: SELECT ... FROM t WITH (`s3.secret_key` '...')"
                    )
            first, *others = schema.fields
            kept = StructField(first.name, first.dataType, first.nullable, {CATALOG: json.dumps(options)})
            return StructType([kept, *others])
        return schema

    @plainly
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark calls it so
        """The reader of a stream over a growing folder. Raises ``KwireError`` where there is none."""
        options, schema, _ = self._checked(schema, STREAM)
        if options.values["across"] and options.stream.state is None:
            raise KwireError(
                "the option 'across' is for spark.read, and for streams with the option 'stateLocation': a folder "
                "for the connections that go on in later batches, beside the checkpoint"
            )
        try:
            from kwire.spark.streaming import StreamReader
        except ModuleNotFoundError:
            raise KwireError(
                "streams need PySpark 4.2 or later, which asks a source how much to read at once"
            ) from None
        return StreamReader(options, schema)

    @plainly
    def reader(self, schema: StructType) -> FileReader:
        """The reader for ``schema``: the table's own, or the part of it that the user chose."""
        options, schema, files = self._checked(schema, LOAD)
        return (PushingReader if options.values["pushFilters"] else FileReader)(options, schema, files)

    def _checked(self, schema: StructType, at: str) -> tuple[Options, StructType, list[File] | None]:
        """The options, the columns that are wanted, and the files where they had to be listed. Raises ``KwireError``,
        for options that do not act ``at`` this place too."""
        kept = next((one.metadata[CATALOG] for one in schema.fields if CATALOG in one.metadata), "{}")
        given = {**_kept(kept), **_given(self.options)[0]}
        check_place((one for one in given if one != PATHS), at, object_stores.NAMES)
        options = Options.of(given)
        schema = StructType([StructField(one.name, one.dataType, one.nullable) for one in schema.fields])
        whole = spark_schema(options.definition, asked=True)
        known = {one.name: one for one in whole.fields}
        beside = [one for one in schema.fields if one.name.lower() not in known]
        files = None
        if beside or options.beyond_table:
            files = _with_folders(options, beside, known, growing=at == STREAM)
            options.check_columns(options.folder_columns(files))
        for one in schema.fields:
            theirs = known.get(one.name.lower())
            if theirs is None:
                continue
            if one.dataType != theirs.dataType:
                raise KwireError(
                    f"column {one.name!r} is {theirs.dataType.simpleString()}, not {one.dataType.simpleString()}"
                )
            if theirs.nullable and not one.nullable:
                raise KwireError(f"column {one.name!r} can be null")
        return options, schema, files


def _with_folders(
    options: Options, columns: Sequence[StructField], known: Iterable[str], *, growing: bool
) -> list[File]:
    """The files, of which some say something of each of these ``columns``. Raises ``KwireError`` where none does, or a
    partition column has no such type."""
    files = options.files(growing=growing) if options.folders.on else []
    names = {name.lower() for file in files for name, _ in file.pairs}
    for one in columns:
        if one.name.lower() not in names and (files or not options.folders.on):
            listed, table = ", ".join(known), options.definition.name
            raise KwireError(
                f"the table {table} has no column {one.name!r}, and no folder is named {one.name}=...: {listed}"
            )
        check_type(one)
    return files


def _given(options: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    """The options that the user gave, in small letters, and whether they are those of a table of Spark's catalog."""
    given = {name.lower(): value for name, value in options.items()}
    copies = {name.removeprefix(COPY): value for name, value in given.items() if name.startswith(COPY)}
    if not copies and "provider" not in given:
        return given, False
    # The catalog makes a URI of the path.
    return {**copies, **{name: given[name] for name in (PATH,) if name in given}}, True


def _kept(text: Any) -> dict[str, str]:
    """The options that a table of the catalog was created with."""
    try:
        return {name: stored.text(value) for name, value in stored.parsed(text).items()}
    except stored.UNFIT:
        raise KwireError("the table has options that kwire has not written: create it again") from None
