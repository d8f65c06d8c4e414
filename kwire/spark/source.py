"""The Spark data source ``kwire``: captures and broker log segments as tables.

The tables of captures, and those of log segments where the option ``format`` is ``log``, are in ``kwire.tables``.

Spark asks in three places. On the driver, ``schema`` names the columns and ``partitions`` lists the files, one
partition each, or one for small ones that follow each other; both run again for every action, so they touch no file's
content and compile no kernel. On a worker, ``read`` opens its files and yields what ``kwire.capture.read`` or
``kwire.log.read`` yields, as Arrow batches.

Rules kept here:

- The tables are those of the registry (``kwire.tables``), with every column but the file's name (``capture`` or
  ``segment``) and ``status`` nullable, because of the next rule.
- A file that is damaged, or none that kwire reads, is a last row with ``status`` ``bad_file``, ``error`` that says why,
  and nothing else but the file's name. What was read before it stays. With ``badFiles=fail`` it fails the job.
- What the machine lacks fails the job always (``workers.lack``), as a bug does: neither is bad input, and what could
  not be read must not count as read.
- Batches have exactly the Arrow schema that Spark derives from its own (order, nullability, ``timestamp[us, UTC]``),
  since Spark compares. A schema that the user gives chooses columns by name, and what no chosen column needs is not
  worked out; it is the only way to leave columns out, because Spark does not prune the columns of a Python data source.
- A table of Spark's catalog (``CREATE TABLE t USING kwire OPTIONS (...)``) reads with no options: Spark keeps them as
  properties of the table, which a Python data source does not get back. It gets the schema back, so the options are in
  the metadata of its first column (``CATALOG``).
- A file in a folder that is no capture, by its name and by its first bytes, has no row. One that was named, or that
  matches a pattern, has: it was asked for.
- What differs between tables is said by the registry: nothing here asks which one it is, only what it is made from.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from warnings import warn

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructField, StructType

from kwire import stored, tables
from kwire.errors import CaptureError, KwireError, MissingExtraError
from kwire.limits import Limits, size_of
from kwire.naming import secrets_of
from kwire.spark import growing, partitioned
from kwire.spark import stores as object_stores
from kwire.spark.workers import LackError, begin_task, of_file, plainly, prefer_drivers_python
from kwire.tables.definition import LogTable, Table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter as Condition

    from kwire.capture.parts import Part
    from kwire.capture.tracker import Tracker
    from kwire.spark.across import Whole
    from kwire.spark.files import Choice, File, Pairs
    from kwire.spark.stores import Stores
    from kwire.tables.filters import Filter
    from kwire.tls import KeyLog

__all__ = ["BAD_FILE", "KwireDataSource", "schema_of", "spark_schema", "table_schema"]

BAD_FILE = "bad_file"
"""``status`` of the row that stands for a file that could not be read, or not to its end."""

CAPTURE, LOG = tables.CAPTURE, tables.LOG
FORMATS: Final[dict[str, tables.Kind]] = {CAPTURE: "capture", LOG: "log"}
"""The values of the option ``format``: what tables are made from."""

CATALOG: Final = "kwire.options"
"""The key of a column's metadata under which the options of a table in Spark's catalog are kept, as JSON."""
COPY: Final = "option."
"""What Spark's catalog puts in front of its copies of the options of CREATE TABLE. Beside them stand ``path`` and
properties of the table that are no options: owner, provider, location."""

TABLE, PORTS, FORMAT, DEEP, LIMITS, SECRETS = "table", "ports", "format", "deep", "limits", "secrets"
VXLAN_PORTS = "vxlan_ports"
PAYLOADS, API, DIRECTION = "payloads", "api", "direction"
APIS, TOPICS, CLIENT_IDS, START, END, STATUS = FILTERS = ("apis", "topics", "client_ids", "start", "end", "status")
"""Which rows of captures are wanted: see ``kwire.tables.filters``."""
COLUMNS: Final = "columns"
ACROSS, SENSOR, MOST = "across", "sensor", "maxSplitBytes"
TOGETHER: Final = "maxPartitionBytes"
PUSH: Final = "pushFilters"
PATH, PATHS, KEYLOG, TOPIC_IDS = "path", "paths", "keylog", "topic_ids"
BAD_FILES, ROW, FAIL = "badFiles", "row", "fail"
GLOB, RECURSIVE, AFTER, BEFORE = "pathGlobFilter", "recursiveFileLookup", "modifiedAfter", "modifiedBefore"

LEAST_SPLIT: Final = 1 << 20
"""Bytes of splits (``maxSplitBytes``), at least."""
PARTITION: Final = 4 << 20
"""Bytes of small files that are read by one task (``maxPartitionBytes``): so many take as long as a task costs."""
OPENING: Final = 64 << 10
"""Bytes that each file counts more than it has, since it has to be opened."""

KEYLOG_PIECE: Final = 1 << 20
"""Bytes of a key log that are read at once."""

LOAD, STREAM, READ = "spark.read", "streams: spark.readStream", "kwire.spark.read"
EXPORT, CHUNKS = "kwire.spark.export", "kwire.spark.decode_frames"

_BY_LOAD: Final = (LOAD, STREAM)
_OF_FILES: Final = (LOAD, STREAM, READ, EXPORT)
ACTS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys((TABLE, PATH), _BY_LOAD),
    **dict.fromkeys((FORMAT, DEEP, COLUMNS, ACROSS, SENSOR, TOGETHER), (*_BY_LOAD, EXPORT)),
    **dict.fromkeys((PORTS, VXLAN_PORTS, BAD_FILES, GLOB, RECURSIVE, AFTER, BEFORE), _OF_FILES),
    **dict.fromkeys((LIMITS, SECRETS, PAYLOADS, API, DIRECTION, KEYLOG, TOPIC_IDS, *FILTERS), (*_OF_FILES, CHUNKS)),
    PUSH: (LOAD,),
    MOST: (READ,),
    **dict.fromkeys(growing.OPTIONS, (STREAM,)),
    **dict.fromkeys(partitioned.OPTIONS, _OF_FILES),
}
"""Each option, and where it acts; those of object stores (``stores.NAMES``) act everywhere. The rest are refused there:
an option that is accepted and does nothing is a wrong answer. docs/spark.md has this table too."""
_NAMED: Final = {name.lower(): name for name in (*ACTS, *object_stores.NAMES)}

prefer_drivers_python()


def texts(options: Mapping[str, Any], at: str) -> dict[str, str]:
    """Options as texts, as Spark gives them to a data source. None is an option that was not given.

    Raises ``KwireError`` for one that does not act ``at`` that place, one of those in ``ACTS``.
    """
    found = {}
    for name, value in options.items():
        if value is None:
            continue
        several = isinstance(value, list | tuple | set | frozenset)
        text = ",".join(map(str, value)) if several else str(value)
        found[name] = text.lower() if isinstance(value, bool) else text
    check_place(found, at)
    return found


def check_place(names: Iterable[str], at: str) -> None:
    """Raises ``KwireError`` for an option that is not known, or does not act ``at`` that place."""
    for one in names:
        name = _NAMED.get(one.lower())
        if name is None:
            first = (FORMAT, TABLE, PORTS)
            known = [*first, *(one for one in ACTS if one not in (*first, PATH)), PATH]
            raise KwireError(
                f"no option {one!r}: the data source kwire has {', '.join(map(repr, known[:-1]))} and {known[-1]!r}; "
                "of object stores those of docs/spark.md"
            )
        where = ACTS.get(name, (at,))
        if at not in where:
            raise KwireError(f"the option {name!r} is for {', '.join(where)}: {at} has no use for it")


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


def _table(name: str, form: str, *, deep: bool) -> Table:
    if form not in FORMATS:
        raise KwireError(f"no format {form!r}: the option 'format' is one of {', '.join(FORMATS)}")
    kind = FORMATS[form]
    known = tables.names(kind)
    if name not in known:
        raise KwireError(
            f"no table {name!r}: the option 'table' is one of {', '.join(known)} where the format is {form}"
        )
    found: Table = tables.table(name, kind)
    if not deep:
        return found
    if not isinstance(found, LogTable) or found.deep is None:
        raise KwireError("the option 'deep' is for the table records of the format log")
    return found.deep


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a read, checked. ``ports``: the broker ports to look at; none means to find out. ``vxlan_ports``:
    those of VXLAN, besides the usual ones."""

    form: str
    table: str
    ports: tuple[int, ...] | None
    vxlan_ports: tuple[int, ...] | None
    deep: bool
    limits: Limits
    secrets: bool
    payloads: bool
    api: str | None
    direction: str | None
    keylog: str | None = field(repr=False)
    topic_ids: str | None = field(repr=False)
    paths: tuple[str, ...] = field(repr=False)
    choice: Choice
    columns: tuple[str, ...] | None
    only: Filter | None
    push: bool
    across: bool
    sensor: int | str | None
    stream: growing.Terms
    most: int | None
    together: int
    stores: Stores
    bad_files: str
    folders: partitioned.Folders

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Options:
        """Raises ``KwireError`` for an option that is not known or has no such value."""
        options = {name.lower(): value for name, value in options.items()}
        for one in options:
            if one != PATHS and one not in _NAMED:
                check_place((one,), LOAD)
        for one in (PATH, KEYLOG, TOPIC_IDS, growing.STATE):
            if one.lower() in options and not options[one.lower()].strip():
                raise KwireError(f"the option {one!r} is empty: it is a path, and an empty one stands for nothing")
        paths = _paths(options[PATHS]) if PATHS in options else [options[PATH]] if PATH in options else []
        if not paths or not all(one.strip() for one in paths):
            raise KwireError(
                "nothing to read: give load() a file, a folder, a pattern, or a list of them, none of which is empty; "
                "and CREATE TABLE no columns and OPTIONS (path '...')"
            )
        form, deep = options.get(FORMAT, CAPTURE), _flag(options.get(DEEP, "false"), DEEP)
        table = options.get(TABLE, tables.names(FORMATS[form])[0] if form in FORMATS else "")
        ports, vxlan_ports = _ports(options.get(PORTS), PORTS), _ports(options.get(VXLAN_PORTS), VXLAN_PORTS)
        _table(table, form, deep=deep)
        if form == LOG and (ports or vxlan_ports):
            raise KwireError(f"the option '{PORTS if ports else VXLAN_PORTS}' is for captures")
        for one in (KEYLOG, TOPIC_IDS):
            if form == LOG and one in options:
                raise KwireError(f"the option {one!r} is for captures")
        payloads = _flag(options.get(PAYLOADS, "false"), PAYLOADS)
        if form == LOG and payloads:
            raise KwireError("the option 'payloads' is for captures")
        push = _flag(options.get(PUSH.lower(), "false"), PUSH)
        if form == LOG and push:
            raise KwireError(f"the option {PUSH!r} is for captures")
        api, direction = options.get(API), options.get(DIRECTION)
        if form == LOG and (api is not None or direction is not None):
            raise KwireError(f"the option '{API if api is not None else DIRECTION}' is for captures")
        if api is not None and direction is None:
            direction = "request"
        if form == CAPTURE:
            _of_capture(table, api, direction, payloads)
        across, sensor = _flag(options.get(ACROSS, "false"), ACROSS), options.get(SENSOR)
        if across:
            from kwire.spark.across import check

            check(_table(table, form, deep=deep))
            if TOGETHER.lower() in options:
                raise KwireError(f"the option {TOGETHER!r} goes without 'across', which has a task for each sensor")
        else:
            for name in (SENSOR, growing.STATE, growing.TIMEOUT):
                if name.lower() in options:
                    raise KwireError(f"the option {name!r} goes with 'across'")
        limits, secrets = _limits(options.get(LIMITS, "")), _secrets(options.get(SECRETS, "redact"))
        from kwire.spark.files import Choice

        choice = Choice(
            glob=options.get(GLOB.lower()),
            recursive=_flag(options.get(RECURSIVE.lower(), "true"), RECURSIVE),
            after=_instant(options.get(AFTER.lower()), AFTER),
            before=_instant(options.get(BEFORE.lower()), BEFORE),
        )
        found = cls(
            form=form,
            table=table,
            ports=ports,
            vxlan_ports=vxlan_ports,
            deep=deep,
            limits=limits,
            secrets=secrets,
            payloads=payloads,
            api=api,
            direction=direction,
            keylog=options.get(KEYLOG),
            topic_ids=options.get(TOPIC_IDS),
            paths=tuple(paths),
            choice=choice,
            columns=_names(options.get(COLUMNS)),
            only=_only(options, form, table),
            push=push,
            across=across,
            most=_bytes(options[MOST.lower()], MOST, 0, LEAST_SPLIT, "256MiB, and at least 1MiB")
            if MOST.lower() in options
            else None,
            together=_bytes(options.get(TOGETHER.lower()), TOGETHER, PARTITION, 0, "4MiB; 0 reads each file alone"),
            sensor=None if sensor is None else growing.level_or_pattern(sensor),
            stream=growing.Terms.of(options),
            stores=object_stores.Stores.of(options),
            bad_files=_word(options.get(BAD_FILES.lower(), ROW), BAD_FILES, (ROW, FAIL)),
            folders=partitioned.Folders.of(options),
        )
        try:
            found.definition.chosen(found.columns)
        except ValueError as wrong:
            raise KwireError(f"the option 'columns': {wrong}") from None
        return found

    @property
    def definition(self) -> Table:
        """The table that was asked for."""
        if self.api is not None:
            return _of_capture(self.table, self.api, self.direction, self.payloads)
        return _table(self.table, self.form, deep=self.deep)

    def beside(self) -> dict[str, Any]:
        """What stands beside the captures: ``keys`` and ``topic_ids``. The driver reads it as well, before any task
        does: what is wrong with it is no fault of a capture.

        Raises ``CaptureError`` for a path that stands for no file, or whose file cannot be read; ``KwireError``.
        """
        import pyarrow as pa

        found: dict[str, Any] = {}
        for option, path, read in (("keys", self.keylog, keys_of), (TOPIC_IDS, self.topic_ids, names_of)):
            try:
                found[option] = read(path, self.stores)
            except CaptureError as error:
                said = f"{error.message} (the option {KEYLOG if option == 'keys' else option!r})"
                raise CaptureError(said, file=error.file, offset=error.offset) from None
            except (OSError, EOFError, pa.ArrowException) as error:
                said = self.stores.hidden(" ".join(str(error).split()))
                raise CaptureError(f"the option {KEYLOG if option == 'keys' else option!r}: {said}") from None
        return found

    def files(self, *, growing: bool = False) -> list[File]:
        """The files that there are, sorted (``files.find``). Raises ``CaptureError``."""
        from kwire.spark.files import find

        what = _SEGMENTS if self.form == LOG else "captures"
        where: dict[str, Any] = {"stores": self.stores, "base": self.folders.base, "what": what}
        found = find(self.paths, self.wanted, self.choice, growing=growing, **where)
        if self.form == CAPTURE:
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
        return (lambda below: log.has_segment_name(below.rpartition("/")[2])) if self.form == LOG else visible


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


def _kept(text: Any) -> dict[str, str]:
    """The options that a table of the catalog was created with."""
    try:
        return {name: stored.text(value) for name, value in stored.parsed(text).items()}
    except stored.UNFIT:
        raise KwireError("the table has options that kwire has not written: create it again") from None


def _paths(text: str) -> list[str]:
    """Those that ``load`` was given as a list, which Spark hands over as JSON."""
    try:
        found = stored.parsed(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise KwireError(f"the option {PATHS!r} is Spark's own: give load() a list of paths")
    return found


def _of_capture(table: str, api: str | None, direction: str | None, payloads: bool) -> Table:
    from kwire.tables.reading import chosen_table

    try:
        return chosen_table(table, api, direction, payloads=payloads)
    except ValueError as wrong:
        raise KwireError(str(wrong)) from None


def _flag(text: str, option: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise KwireError(f"not {text!r}: the option {option!r} is true or false")
    return text.lower() == "true"


def _word(text: str, option: str, words: Sequence[str]) -> str:
    if text.lower() not in words:
        raise KwireError(f"not {text!r}: the option {option!r} is {' or '.join(words)}")
    return text.lower()


def _bytes(text: str | None, option: str, usual: int, least: int, such: str) -> int:
    try:
        found = usual if text is None else size_of(text)
    except ValueError:
        found = -1
    if found < least:
        raise KwireError(f"not {text!r}: the option {option!r} is a number of bytes, such as {such}")
    return found


def _instant(text: str | None, option: str) -> datetime | None:
    from kwire.spark.files import instant

    try:
        return None if text is None else instant(text)
    except ValueError:
        raise KwireError(f"not {text!r}: the option {option!r} is a time such as 2026-11-22T09:30:00 (UTC)") from None


def _limits(text: str) -> Limits:
    try:
        return Limits.parse(text)
    except ValueError as wrong:
        raise KwireError(f"the option 'limits': {wrong}") from None


def _secrets(text: str) -> bool:
    if text.lower() not in ("redact", "show"):
        raise KwireError(f"not {text!r}: the option 'secrets' is redact or show")
    return text.lower() == "show"


def _names(text: str | None) -> tuple[str, ...] | None:
    """Names that are separated by commas; None for none."""
    names = tuple(one.strip() for one in (text or "").split(",") if one.strip())
    return names or None


def _only(options: Mapping[str, str], form: str, table: str) -> Filter | None:
    """Which rows the options want. Raises ``KwireError``."""
    from kwire.tables.filters import Filter

    given = [name for name in FILTERS if name in options]
    if not given:
        return None
    if form == LOG:
        raise KwireError(f"the option {given[0]!r} is for captures")
    try:
        found = Filter.of(
            apis=_names(options.get(APIS)),
            topics=_names(options.get(TOPICS)),
            client_ids=_names(options.get(CLIENT_IDS)),
            start=options.get(START),
            end=options.get(END),
            status=_names(options.get(STATUS)),
        )
        found.check(tables.table(table))
    except ValueError as wrong:
        raise KwireError(str(wrong)) from None
    return found


def _ports(text: str | None, option: str) -> tuple[int, ...] | None:
    if text is None or not text.strip():
        return None
    ports = []
    for part in text.replace(",", " ").split():
        if not part.isdecimal() or len(part) > 5 or not 0 < int(part) < 65536:
            raise KwireError(f"no port {part!r}: the option {option!r} is numbers from 1 to 65535, separated by commas")
        ports.append(int(part))
    return tuple(ports)


class KwireDataSource(DataSource):
    """``spark.read.format("kwire").option("table", "frames").option("ports", "9092,9093").load(path)``.

    With ``option("format", "log")`` log segments; ``option("deep", True)`` decodes the records of Kafka's own topics.
    ``option("secrets", "show")`` shows passwords and the like, ``option("limits", "total=256MiB")`` bounds the work.
    ``option("payloads", True)`` keeps the record sets in bodies, ``option("api", "OffsetCommit")`` with
    ``option("direction", "request")`` makes structs of those of one message.
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
        schema = spark_schema(checked.definition, columns=checked.columns)
        if checked.folders.on:
            # A path that is not there is said where it is read: it may come to be.
            with contextlib.suppress(CaptureError):
                files = checked.files(growing=True)
                schema = StructType([*schema.fields, *checked.folder_columns(files)])
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
        if options.across and options.stream.state is None:
            raise KwireError(
                f"the option 'across' is for spark.read, and for streams with the option {growing.STATE!r}: a folder "
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
        return (PushingReader if options.push else FileReader)(options, schema, files)

    def _checked(self, schema: StructType, at: str) -> tuple[Options, StructType, list[File] | None]:
        """The options, the columns that are wanted, and the files where they had to be listed. Raises ``KwireError``,
        for options that do not act ``at`` this place too."""
        kept = next((one.metadata[CATALOG] for one in schema.fields if CATALOG in one.metadata), "{}")
        given = {**_kept(kept), **_given(self.options)[0]}
        check_place((one for one in given if one != PATHS), at)
        options = Options.of(given)
        schema = StructType([StructField(one.name, one.dataType, one.nullable) for one in schema.fields])
        whole = spark_schema(options.definition, asked=True)
        known = {one.name: one for one in whole.fields}
        beside = [one for one in schema.fields if one.name.lower() not in known]
        files = _with_folders(options, beside, known, growing=at == STREAM) if beside else None
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
            listed = ", ".join(known)
            raise KwireError(
                f"the table {options.table} has no column {one.name!r}, and no folder is named {one.name}=...: {listed}"
            )
        partitioned.check_type(one)
    return files


def _given(options: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    """The options that the user gave, in small letters, and whether they are those of a table of Spark's catalog."""
    given = {name.lower(): value for name, value in options.items()}
    copies = {name.removeprefix(COPY): value for name, value in given.items() if name.startswith(COPY)}
    if not copies and "provider" not in given:
        return given, False
    # The catalog makes a URI of the path.
    return {**copies, **{name: given[name] for name in (PATH,) if name in given}}, True


def _read(
    stream: Any, table: Table, columns: list[str], part: Part | None, terms: Mapping[str, Any]
) -> Iterator[pa.RecordBatch]:
    if isinstance(table, LogTable):
        yield from table.read(stream, columns=columns, **terms)
        return
    from kwire.tables.reading import read

    for _, batch in read(stream, {table.name: columns}, part=part, **terms):
        yield batch


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


@dataclass
class FilePartition(InputPartition):
    """A file, or small ones that follow each other."""

    files: tuple[File, ...]


@dataclass
class SensorPartition(InputPartition):
    """The captures of one sensor."""

    whole: Whole


@dataclass(frozen=True, slots=True)
class _Shape:
    """A table, and what its columns become: those that the schema of a query has, and partition columns."""

    table: Table
    columns: list[str]
    """Those of the table that are needed, each once."""
    beside: tuple[StructField, ...]
    """Partition columns."""
    schema: pa.Schema
    """What Spark gets."""

    @classmethod
    def of(cls, table: Table, schema: StructType) -> _Shape:
        """For the columns of ``schema``, whose names may be in any case."""
        from pyspark.sql.pandas.types import to_arrow_schema

        known = {one.name for one in (*table.schema, *table.asked)}
        columns = dict.fromkeys(name.lower() for name in schema.names if name.lower() in known)
        beside = tuple(one for one in schema.fields if one.name.lower() not in known)
        return cls(table, [*columns] or [table.file], beside, to_arrow_schema(schema, timezone="UTC"))

    def shown(self, batch: pa.RecordBatch, values: Mapping[str, Any]) -> pa.RecordBatch:
        """Rows of the table with these ``values`` of partition columns."""
        import pyarrow as pa

        if not values and batch.schema.names == self.schema.names:
            return pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)
        count = batch.num_rows
        made = []
        for one in self.schema:
            name = one.name.lower()
            if name in values:
                made.append(pa.repeat(pa.scalar(values[name], one.type), count))
            else:
                made.append(batch.column(name))
        return pa.RecordBatch.from_arrays(made, schema=self.schema)

    def row(self, values: Mapping[str, Any]) -> pa.RecordBatch:
        """One row with these values of columns, and null in all others."""
        import pyarrow as pa

        return pa.RecordBatch.from_pylist([{one: values.get(one.lower()) for one in self.schema.names}], self.schema)


class FileReader(DataSourceReader):
    """Reads captures or segments, one partition for each file, or for small ones that follow each other; with
    ``across`` one for the captures of each sensor."""

    def __init__(self, options: Options, schema: StructType, files: list[File] | None = None) -> None:
        self.options = options
        self.schema = schema
        self.conditions: list[Condition] = []
        """Conditions on partition columns, which choose files."""
        self._files = files
        """Those that there are, where they were listed already."""
        self._beside: dict[str, Any] | None = None
        """The key log and the names of topics, read once by a task."""
        self._shape: _Shape | None = None

    def __getstate__(self) -> dict[str, Any]:
        # A worker gets the files of its partition, and makes the rest itself.
        return self.__dict__ | {"_files": None, "_beside": None, "_shape": None}

    @property
    def shape(self) -> _Shape:
        """The table, and what becomes of its columns. Made once."""
        if self._shape is None:
            self._shape = _Shape.of(self.options.definition, self.schema)
        return self._shape

    def grouped(self, files: Iterable[File]) -> list[FilePartition]:
        """``files`` as partitions, in order."""
        from kwire.spark.files import in_groups

        return [FilePartition(group) for group in in_groups(files, self.options.together, OPENING)]

    @plainly
    def partitions(self) -> list[FilePartition | SensorPartition]:
        """The files. Raises ``CaptureError`` where there are none, ``KwireError`` for a folder whose value is none."""
        files, self._files = self.options.files() if self._files is None else self._files, None
        self.check_folders(files)
        self.options.beside()
        if not self.options.across:
            return [*self.grouped(filter(self.may_have, files))]
        # Connections go on from files that nobody asks for.
        from kwire.spark.across import wholes

        return [SensorPartition(whole) for whole in wholes(files, self.options.sensor)]

    def check_folders(self, files: Iterable[File]) -> None:
        """Raises ``KwireError`` for a folder whose value is none of its column."""
        for pairs in dict.fromkeys(file.pairs for file in files):
            self.values(pairs)

    def values(self, pairs: Pairs) -> dict[str, Any]:
        """What folders say of the partition columns, by their names in small letters."""
        return {one.name.lower(): self.options.folders.value(pairs, one) for one in self.shape.beside}

    def may_have(self, file: File) -> bool:
        """Whether the query may want rows of this file, by what its folders say."""
        return not self.conditions or partitioned.may_hold(self.conditions, self.values(file.pairs))

    @plainly
    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Batches of the rows of some files, or of the captures of a sensor. Where there is no partition, Spark gives
        one of its own."""
        if isinstance(partition, FilePartition):
            for file in partition.files:
                yield from self.rows_of(file)
        elif isinstance(partition, SensorPartition):
            from kwire.spark.across import one_by_one

            yield from one_by_one(partition.whole, self.rows_of)

    def rows_of(
        self, file: File, part: Part | None = None, ended: Callable[[Tracker], None] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Batches of the rows of one file. ``part``: of which whole it is a part; ``ended`` gets the tracker then."""
        from kwire.capture.compressed import DamagedError

        begin_task()
        options, shape = self.options, self.shape
        table, names = shape.table, shape.columns
        values = self.values(file.pairs)
        with of_file(file.name, options.stores.hidden):
            terms = self._terms(table, file)
        try:
            with of_file(file.name, options.stores.hidden):
                if options.form == CAPTURE and file.is_foreign():
                    return
                with file.open() as stream:
                    own = terms if ended is None else terms | {"on_end": ended}
                    for batch in _read(stream, table, names, part, own):
                        yield shape.shown(batch, values)
        except (KwireError, DamagedError, EOFError) as error:
            if isinstance(error, LackError | MissingExtraError):
                raise
            said = options.stores.hidden(" ".join(str(error).split()))
            if options.bad_files == FAIL:
                raise KwireError(f"a bad file, which the option {BAD_FILES!r} lets fail the query: {said}") from None
            if part is not None and part.left is not None:
                # Rows of the files before it may wait for what it says.
                with contextlib.suppress(KwireError):
                    for batch in _read(io.BytesIO(), table, names, part, terms):
                        yield shape.shown(batch, values)
            yield shape.row({table.file: file.name, "status": BAD_FILE, "error": said, **values})

    def _terms(self, table: Table, file: File) -> dict[str, Any]:
        """How ``file`` is read."""
        one = self.options
        terms: dict[str, Any] = {"limits": one.limits, "secrets": one.secrets, "name": file.name}
        if isinstance(table, LogTable):
            return terms | {"metadata": (file.beside("partition.metadata") or b"").decode("ascii", "replace")}
        if self._beside is None:
            self._beside = one.beside()
        terms |= {"ports": one.ports, "vxlan_ports": one.vxlan_ports, "payloads": one.payloads, "only": one.only}
        return terms | {"api": one.api, "direction": one.direction, **self._beside}


class PushingReader(FileReader):
    """Spark asks a reader that has ``pushFilters`` what it can do of WHERE. It fails where its configuration forbids to
    ask, so this is a class of its own, for those who want it."""

    @plainly
    def pushFilters(self, filters: list[Condition]) -> Iterable[Condition]:  # noqa: N802 - Spark calls it so
        """Reads less by them. Conditions by which files were chosen are done with; ``explain("formatted")`` shows them.
        All others are left to Spark as well."""
        from kwire.spark.pushed import narrowed

        options = self.options
        self.options = dataclasses.replace(options, only=narrowed(filters, options.only, options.definition))
        names = [one.name.lower() for one in self.shape.beside]
        if not names or options.across:
            return filters
        self.conditions = [*partitioned.on_columns(filters, names)]
        if self._files is None:
            self._files = options.files()
        values = [self.values(pairs) for pairs in dict.fromkeys(file.pairs for file in self._files)]
        return [one for one in filters if not partitioned.is_decided(one, values)]
