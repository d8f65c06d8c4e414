"""The options of a read in Spark, checked, and the table that they ask for.

Options are texts here, as Spark gives them. What each is, and where it acts, is declared in ``kwire.options``.

Rules kept here:

- Options that contradict each other are refused by name, on the driver, before anything is read.
- ``Options`` is sent to the workers. Its ``repr`` shows no path, since paths may hold credentials.
- A key log and names of topics stand beside the captures: the driver reads them before any task does, since what is
  wrong with them is no fault of a capture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from warnings import warn

from pyspark.sql.types import StructField, StructType

from kwire import stored, tables
from kwire.errors import CaptureError, KwireError
from kwire.naming import no_such
from kwire.options import (
    CAPTURE,
    FILTERS,
    LOG,
    WITH_ACROSS,
    ContentOptions,
    TrafficOptions,
    check_form,
    check_place,
    check_tables,
    chosen,
    values,
)
from kwire.options import texts as options_as_texts
from kwire.spark import stores as object_stores
from kwire.spark.discovery import Terms
from kwire.spark.partitioned import Folders
from kwire.tables.definition import CaptureTable, LogTable, Table

if TYPE_CHECKING:
    from kwire.spark.files import Choice, File
    from kwire.spark.stores import Stores
    from kwire.tables.filters import Filter
    from kwire.tls import KeyLog
    from kwire.values import Schemas

__all__ = ["PATHS", "Options", "check_across", "columns_of", "schema_of", "spark_schema", "table_schema", "texts"]

FORMATS: Final[dict[str, tables.Kind]] = {CAPTURE: "capture", LOG: "log"}
"""The values of the option ``format``: what tables are made from."""

KEYLOG, TOPIC_IDS = "keylog", "topic_ids"
PATH: Final = "path"
PATHS: Final = "paths"
"""The option (str) in which Spark hands over the list that ``load`` was given, as JSON. One path is in ``path``."""

KEYLOG_PIECE: Final = 1 << 20
"""Bytes of a key log that are read at once."""


def texts(options: Mapping[str, Any], place: str) -> dict[str, str]:
    """``kwire.options.texts`` with the options of object stores, which act everywhere in Spark."""
    return options_as_texts(options, place, object_stores.NAMES)


def table_schema(table: str, form: str = CAPTURE, *, deep: bool = False) -> StructType:
    """The Spark schema of a table; ``form`` and ``deep`` are the options ``format`` and ``deep``.

    Raises ``KwireError`` for a table or format that there is not.
    """
    return spark_schema(_table(table, form, deep=deep))


def schema_of(api: str, direction: str, *, payloads: bool = False) -> StructType:
    """The struct that holds a body of one message, in all its versions: ``kwire.capture.schema_of`` for Spark.

    For ``from_json(body, schema_of("OffsetCommit", "request"))`` of texts that ``messages`` or ``decode_request`` gave,
    and for tables of one's own. Raises ``ValueError`` for an API or direction that there is not.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    from kwire import capture

    return from_arrow_schema(capture.schema_of(api, direction, payloads=payloads))


def spark_schema(table: Table, *, asked: bool = False, columns: tuple[str, ...] | None = None) -> StructType:
    """The columns of a table, or some of them; with ``asked``, those as well that are only there by name."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    always = (table.file, "status")
    schema = from_arrow_schema(pa.schema([*table.schema, *table.asked]) if asked else table.chosen(columns))
    return StructType([StructField(one.name, one.dataType, one.name not in always) for one in schema.fields])


def columns_of(table: Table, wanted: Iterable[str] | None, beside: Iterable[StructField]) -> tuple[str, ...] | None:
    """The columns of the table among those that are ``wanted``; None: all.

    Partition columns (``beside``) may be named too. They are there in any case, after the others. Raises ``ValueError``
    for what is neither, and where no column of the table is left."""
    if wanted is None:
        return None
    own = {one.name for one in (*table.schema, *table.asked)}
    there = {one.name.lower() for one in beside}
    named = [wanted] if isinstance(wanted, str) else list(wanted)
    chosen = tuple(name for name in named if name in own or name.lower() not in there)
    table.chosen(chosen)
    return chosen


def _table(name: str, form: str, *, deep: bool) -> Table:
    if form not in FORMATS:
        raise KwireError(f"no format {form!r}: the option 'format' is one of {', '.join(FORMATS)}")
    kind = FORMATS[form]
    known = tables.names(kind)
    if name not in known:
        raise KwireError(f"the option 'table', where the format is {form}: {no_such('table', name, known)}")
    found: Table = tables.table(name, kind)
    if not deep:
        return found
    if not isinstance(found, LogTable) or found.deep is None:
        raise KwireError("the option 'deep' is for the table records of the format log")
    return found.deep


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a read, checked.

    ``values``: each option of ``kwire.options`` by its name. ``paths``: what to read. ``choice``: which files of it.
    ``only``: which rows. ``stores``: the options of object stores. ``folders``: those of partition columns.
    """

    values: Mapping[str, Any] = field(repr=False)
    paths: tuple[str, ...] = field(repr=False)
    choice: Choice
    only: Filter | None
    stores: Stores
    folders: Folders

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Options:
        """Raises ``KwireError`` for an option that is not known or has no such value."""
        given = {name.lower(): value for name, value in options.items()}
        check_place((one for one in given if one != PATHS), None, object_stores.NAMES)
        found = values(given)
        found["table"] = found["table"] or (
            tables.names(FORMATS[found["format"]])[0] if found["format"] in FORMATS else ""
        )
        paths = _paths(given[PATHS]) if PATHS in given else [found[PATH]] if found[PATH] else []
        if not paths or not all(one.strip() for one in paths):
            raise KwireError(
                "nothing to read: give load() a file, a folder, a pattern, or a list of them, none of which is empty; "
                "and CREATE TABLE no columns and OPTIONS (path '...')"
            )
        _table(found["table"], found["format"], deep=found["deep"])
        # Which topic typed values are of is said where segments are read, too.
        typed = found["values"] == "typed"
        check_form({name: value for name, value in given.items() if not (typed and name == "topics")}, found["format"])
        if found["api"] is not None:
            found["direction"] = found["direction"] or "request"
        if found["schemas"] is not None:
            found["schemas"] = _schemas(found["schemas"], found["topics"])
            if found["validate"]:
                found["schemas"] = found["schemas"].validated()
        else:
            for name in ("validate", "mask"):
                if found[name]:
                    raise KwireError(f"the option {name!r} goes with 'schemas'")
        made = cls(
            values=found,
            paths=tuple(paths),
            choice=_choice(found),
            only=_only(found),
            stores=object_stores.Stores.of(given),
            folders=Folders.of(found),
        )
        if found["across"]:
            check_across(made.definition)
            if "maxpartitionbytes" in given:
                raise KwireError(
                    "the option 'maxPartitionBytes' goes without 'across', which has a task for each sensor"
                )
        else:
            for name in WITH_ACROSS:
                if name.lower() in given:
                    raise KwireError(f"the option {name!r} goes with 'across'")
        if not (made.folders.on and made.beyond_table):
            made.check_columns([])
        try:
            check_tables(found, [made.definition.name])
        except ValueError as wrong:
            raise KwireError(f"the option {wrong}") from None
        return made

    @property
    def beyond_table(self) -> list[str]:
        """What the option ``columns`` names and the table does not have: partition columns, or mistakes."""
        own = {one.name for one in (*self.definition.schema, *self.definition.asked)}
        return [name for name in self.values["columns"] or () if name not in own]

    def check_columns(self, beside: Iterable[StructField]) -> tuple[str, ...] | None:
        """``columns_of`` for the option ``columns``. Raises ``KwireError``."""
        try:
            return columns_of(self.definition, self.values["columns"], beside)
        except ValueError as wrong:
            raise KwireError(f"the option 'columns': {wrong}") from None

    @property
    def is_of_log(self) -> bool:
        """Whether log segments are read, and not captures."""
        return bool(self.values["format"] == LOG)

    @property
    def definition(self) -> Table:
        """The table that was asked for."""
        one = self.values
        if one["format"] == CAPTURE:
            from kwire.tables.reading import chosen_table

            try:
                return chosen_table(one["table"], one["api"], one["direction"], payloads=one["payloads"], how=one)
            except ValueError as wrong:
                raise KwireError(str(wrong)) from None
        found = _table(one["table"], one["format"], deep=one["deep"])
        if one["values"] is None or found.name != "records":
            return found
        from kwire.tables.values import as_json, typed

        assert isinstance(found, LogTable)
        of_values: Table
        if one["values"] == "typed":
            topics = list(one["topics"] or ())
            if len(topics) != 1 or not one["schemas"]:
                raise KwireError("the option 'values' is typed: it needs 'schemas', and one topic ('topics')")
            of_values = typed(found, topics[0], one["schemas"])
        else:
            of_values = as_json(found)
        return of_values

    @property
    def content(self) -> dict[str, Any]:
        """What is made of frames, for ``kwire.tables.reading.read``; without what stands beside the captures."""
        found = chosen(self.values, ContentOptions) | ({} if self.only is None else self.only.arguments())
        return {name: value for name, value in found.items() if name not in (KEYLOG, TOPIC_IDS)}

    @property
    def stream(self) -> Terms:
        """How a stream takes files."""
        return Terms.of(self.values)

    @property
    def traffic(self) -> dict[str, Any]:
        """How packets are read."""
        return chosen(self.values, TrafficOptions)

    def beside(self) -> dict[str, Any]:
        """What stands beside the captures: ``keylog`` and ``topic_ids``. The driver reads it as well, before any task
        does: what is wrong with it is no fault of a capture.

        Raises ``CaptureError`` for a path that stands for no file, or whose file cannot be read; ``KwireError``.
        """
        import pyarrow as pa

        found: dict[str, Any] = {}
        for option, read in ((KEYLOG, keys_of), (TOPIC_IDS, names_of)):
            try:
                found[option] = read(self.values[option], self.stores)
            except CaptureError as error:
                said = f"{error.message} (the option {option!r})"
                raise CaptureError(said, file=error.file, offset=error.offset) from None
            except (OSError, EOFError, pa.ArrowException) as error:
                said = self.stores.hidden(" ".join(str(error).split()))
                raise CaptureError(f"the option {option!r}: {said}") from None
        return found

    def files(self, *, growing: bool = False) -> list[File]:
        """The files that there are, sorted (``files.find``). Raises ``CaptureError``."""
        from kwire.spark.files import find

        what = _SEGMENTS if self.is_of_log else "captures"
        where: dict[str, Any] = {"stores": self.stores, "base": self.folders.base, "what": what}
        found = find(self.paths, self.wanted, self.choice, growing=growing, **where)
        if not self.is_of_log:
            _warn_of_segments(found)
        return found

    def folder_columns(self, files: Iterable[File]) -> list[StructField]:
        """The partition columns of ``files``. Raises ``KwireError`` where their folders do not agree."""
        table = self.definition
        return self.folders.columns(files, (one.name for one in (*table.schema, *table.asked)))

    @property
    def wanted(self) -> Callable[[str], bool]:
        """Which files of a folder to take, by their path in it."""
        from kwire import log
        from kwire.spark.files import visible

        # Of segments a folder's name says nothing: those of Kafka's own topics begin with "_".
        return (lambda below: log.has_segment_name(below.rpartition("/")[2])) if self.is_of_log else visible


_SEGMENTS: Final = "log segments, which are named like 00000000000000000042.log"


def _warn_of_segments(files: Iterable[File]) -> None:
    """Warns where there are log segments, and nothing that is named like a capture: they have no rows."""
    from kwire import log
    from kwire.spark.files import CAPTURE_NAME

    segment = None
    for file in files:
        name = file.path.rpartition("/")[2]
        if file.asked or CAPTURE_NAME.fullmatch(name):
            return
        if segment is None and log.has_segment_name(name):
            segment = file.name
    if segment is not None:
        warn(f"no file is named like a capture, and {segment} like a log segment: format=log reads those", stacklevel=3)


@lru_cache(maxsize=8)
def _schemas(text: str, topics: tuple[str, ...] | None) -> Schemas:
    """The schemas that an option names, which need no registry any more: workers ask none. Several have commas between.

    Raises ``KwireError``.
    """
    from kwire.values import Schemas

    try:
        return Schemas.of([one.strip() for one in text.split(",")]).fetched(topics)
    except OSError as error:
        raise KwireError(f"the option 'schemas': {' '.join(str(error).split())}") from None


def _choice(found: Mapping[str, Any]) -> Choice:
    from kwire.spark.files import Choice

    return Choice(
        glob=found["pathGlobFilter"],
        recursive=found["recursiveFileLookup"] is not False,
        after=found["modifiedAfter"],
        before=found["modifiedBefore"],
    )


def _only(found: Mapping[str, Any]) -> Filter | None:
    """Which rows the options want. Raises ``KwireError``."""
    from kwire.tables.filters import Filter

    wanted = {name: found[name] for name in FILTERS if found[name] is not None}
    if not wanted:
        return None
    try:
        only = Filter.of(**wanted)
        only.check(tables.table(found["table"]))
    except ValueError as wrong:
        raise KwireError(str(wrong)) from None
    return only


def check_across(table: Table) -> None:
    """Raises ``KwireError`` for a table that cannot be read across files."""
    if not isinstance(table, CaptureTable) or table.of_one_file:
        raise KwireError(
            f"the table {table.name} has rows of whole files, which cannot be put together yet: read each file alone"
        )


def _paths(text: str) -> list[str]:
    """Those that ``load`` was given as a list, which Spark hands over as JSON."""
    try:
        found = stored.parsed(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise KwireError(f"the option {PATHS!r} is Spark's own: give load() a list of paths")
    return found


def names_of(path: str | None, stores: Stores = object_stores.NONE) -> dict[bytes, str]:
    """Names of topics by their ids. Raises ``CaptureError`` for a path that stands for none, ``KwireError``."""
    if path is None:
        return {}
    from kwire.spark.files import find
    from kwire.tables import topic_names

    found: dict[bytes, str] = {}
    for file in find([path], topic_names.has_names, stores=stores):
        with file.open() as stream:
            found.update(topic_names.names_of(file.name, stream))
    return found


def keys_of(path: str | None, stores: Stores = object_stores.NONE) -> KeyLog | None:
    """The secrets of key logs. Raises ``CaptureError`` for a path that stands for none."""
    if path is None:
        return None
    from kwire.spark.files import find
    from kwire.tls import KeyLog

    keys = KeyLog()
    for file in find([path], stores=stores):
        with file.open() as stream:
            # Piece by piece: the lines of a piece are whole but for the last one.
            rest = b""
            while piece := stream.read(KEYLOG_PIECE):
                lines, end, rest = (rest + piece).rpartition(b"\n")
                keys.add(lines + end)
            keys.add(rest)
    return keys
