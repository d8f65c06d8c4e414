"""A table of captures or log segments as files of Parquet, written by Spark's workers without rows of the JVM.

``df.write.parquet`` takes every batch from Python into the JVM, makes rows of it and columns again. Here a task reads
its part of the input as the data source does and writes what comes, as Arrow has it; Spark only says which task does
what.

Rules kept here:

- A task writes below ``OUTPUT/_temporary-RUN``, in a folder of its attempt. When all are done the driver moves the
  files of the attempts that Spark took into place, and writes ``_SUCCESS``: a task that is repeated, or runs twice,
  counts once, and a run that fails leaves nothing. The driver gets the names of files and numbers, no rows.
- A task holds no more than ``CHUNK`` bytes of columns, besides what reading takes; what has more becomes several files.
- Values that become names of folders come from the wire: they are escaped as Spark does it, which reads them back. What
  can be no name (empty, or longer than file systems take) is in the folder of null.
- The rows are those of the data source, ``bad_file`` among them.
- Nothing is written through a link in ``OUTPUT`` that others have put there (``kwire.opening``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema

from kwire.errors import KwireError, MissingExtraError
from kwire.naming import no_such, public
from kwire.opening import create_file, replaced
from kwire.options import EXPORT
from kwire.spark.files import filesystem_of, put
from kwire.spark.options import PATHS, texts
from kwire.spark.partitioned import NULL
from kwire.spark.reader import BAD_FILE, FileReader
from kwire.spark.source import KwireDataSource
from kwire.spark.workers import plainly

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

__all__ = ["CHUNK", "FORMATS", "MODES", "Exported", "export", "session_for"]

Format = Literal["parquet", "delta", "iceberg"]
Mode = Literal["error", "append", "overwrite"]
FORMATS: Final[tuple[Format, ...]] = ("parquet", "delta", "iceberg")
"""Formats that ``export`` writes (tuple of str)."""
MODES: Final[tuple[Mode, ...]] = ("error", "append", "overwrite")
"""What ``export`` does with a table that exists (tuple of str), as modes of Spark's writers."""

CHUNK: Final = 256 << 20
"""Bytes of columns that become a file of one partition, or one of each."""
_WRITTEN: Final = pa.list_(
    pa.struct(
        [
            ("file", pa.string()),
            ("folders", pa.list_(pa.string())),
            ("rows", pa.int64()),
            ("bytes", pa.int64()),
            ("bad_files", pa.int64()),
        ]
    )
)
"""What a task says of each of its files. ``folders``: those in which it is to be, which say the values of columns."""
TIME, DATE = "timestamp", "date"
_TEMPORARY: Final = "_temporary"
_LOG: Final = "_delta_log"
_ESCAPED: Final = {ord(one): f"%{ord(one):02X}" for one in (*map(chr, range(0x20)), *"\"#%'*/:=?\\\x7f{[]^")}
"""What Spark escapes in names of folders (``ExternalCatalogUtils.escapePathName``), and NUL, which no name can have."""
_LONGEST: Final = 255
"""Bytes of the name of a folder."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: files, rows, bytes, and how many of the rows stand for files that could not be read."""

    files: int
    rows: int
    bytes: int
    bad_files: int


def export(
    spark: SparkSession,
    paths: str | Sequence[str],
    output: str,
    *,
    table: str = "frames",
    partition_by: Sequence[str] = (),
    form: Format = "parquet",
    mode: Mode = "error",
    columns: Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Exported:
    """Writes the ``table`` of what ``paths`` stand for into the folder ``output``, a path or a URI.

    ``partition_by``: columns whose values become folders, ``topic=orders`` (Hive's form). ``date`` is the day of
    ``timestamp``, UTC. Null is ``__HIVE_DEFAULT_PARTITION__``, and so is what can be no name: an empty text, or one of
    more than 255 bytes with the column's name, as no topic of Kafka has. ``columns``: those that are
    wanted, all by default. ``options`` are those of the data source. ``mode``: where ``output`` has files already,
    ``error`` refuses, ``append`` adds to them, ``overwrite`` takes their place once everything is written. The ``form``
    ``delta`` makes a table of Delta Lake of the files, with the package ``deltalake``. ``iceberg`` adds them to a table
    of Iceberg, with the package ``pyiceberg``: ``output`` is ``CATALOG.NAMESPACE.TABLE``, where the catalog is one of
    pyiceberg's settings. There, ``error`` refuses a table that exists, and ``partition_by`` is not possible.

    Raises ``KwireError`` for what cannot be asked for, and for an ``output`` that is not empty.
    """
    if not output.strip() and form != "iceberg":
        raise KwireError("no output: give export() a folder")
    source = KwireDataSource({**texts(options or {}, EXPORT), "table": table, PATHS: _as_json(paths)})
    schema = source.schema()
    partition_by = [partition_by] if isinstance(partition_by, str) else partition_by
    if columns is not None:
        columns = [columns] if isinstance(columns, str) else columns
        missing = [name for name in columns if name not in schema.names]
        if missing:
            raise KwireError(no_such("column", missing[0], schema.names, f"in the table {table}"))
        needed = (TIME if name == DATE and DATE not in schema.names else name for name in partition_by)
        schema = type(schema)([schema[name] for name in dict.fromkeys((*columns, *needed)) if name in schema.names])
    reader = source.reader(schema)
    _check(reader, table, partition_by, form, mode)
    iceberg = _Iceberg.of(output, to_arrow_schema(reader.schema, timezone="UTC"), mode) if form == "iceberg" else None
    filesystem, root, _ = filesystem_of(output if iceberg is None else iceberg.folder, reader.options.stores)
    before = _contents(filesystem, root) if iceberg is None else []
    if isinstance(filesystem, fs.LocalFileSystem) and os.path.islink(f"{root}/{_LOG}"):  # noqa: PTH114
        raise KwireError(f"{public(output)}: its {_LOG} is a link, and nothing is written there")
    if before and mode == "error":
        raise KwireError(f"{public(output)} is not empty: mode append adds to what is there, overwrite takes its place")
    run = uuid4().hex[:12]
    # A name that nobody can guess: whoever else may write there could put a link in its place.
    temporary = f"{root}/{_TEMPORARY}-{uuid4().hex}"
    plan = _Plan(reader, tuple(reader.partitions()), tuple(partition_by), filesystem, temporary, run)
    filesystem.create_dir(temporary, recursive=True)
    try:
        count = len(plan.parts)
        tasks = spark.range(0, count, 1, max(1, count)).select(sql.explode(_udf(plan.write)("id")).alias("made"))
        written: list[Any] = tasks.select("made.*").collect()
        if not written:
            written = list(plan.write_empty())
        if mode == "overwrite" and form == "parquet":
            for info in before:
                (filesystem.delete_dir if info.type == fs.FileType.Directory else filesystem.delete_file)(info.path)
        moved = _move(filesystem, written, root, flat=form != "parquet")
    finally:
        with suppress(OSError):
            filesystem.delete_dir(temporary)
    if form == "delta":
        _commit_delta(output, plan, mode, list(zip(moved, (row["bytes"] for row in written), strict=True)))
    elif iceberg is not None:
        iceberg.commit([below for (below, _), row in zip(moved, written, strict=True) if row["rows"]])
    else:
        _succeeded(filesystem, root)
    return Exported(
        files=len(written),
        rows=sum(row["rows"] for row in written),
        bytes=sum(row["bytes"] for row in written),
        bad_files=sum(row["bad_files"] for row in written),
    )


def session_for(name: str, master: str | None) -> SparkSession:
    """The session that there is, or one of this name, on ``master`` where Spark's settings are not to say.

    A ``master`` that begins with ``sc://`` is a server of Spark Connect, whose settings are its own."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    if master is not None and master.startswith("sc://"):
        return builder.remote(master).getOrCreate()
    builder = builder.config("spark.log.level", "ERROR")
    return (builder if master is None else builder.master(master)).getOrCreate()


def _udf(write: Callable[[pa.Array], pa.Array]) -> Callable[..., Column]:
    # The functions of whole partitions (mapInArrow) need pandas.
    made: Callable[..., Column] = arrow_udf(write, from_arrow_type(_WRITTEN))  # type: ignore[call-overload]
    return made


def _as_json(paths: str | Sequence[str]) -> str:
    import json

    return json.dumps([paths] if isinstance(paths, str) else list(paths))


def _check(reader: FileReader, table: str, partition_by: Sequence[str], form: str, mode: str) -> None:
    if form not in FORMATS:
        raise KwireError(f"no format {form!r}: {' or '.join(FORMATS)}")
    if mode not in MODES:
        raise KwireError(f"no mode {mode!r}: {', '.join(MODES)}")
    if form == "delta":
        try:
            import deltalake  # noqa: F401
        except ImportError as missing:
            raise MissingExtraError("the format delta", "delta") from missing
    if form == "iceberg":
        try:
            import pyiceberg  # noqa: F401
        except ImportError as missing:
            raise MissingExtraError("the format iceberg", "iceberg") from missing
        if partition_by:
            raise KwireError("the format iceberg has no folders of values: its tables are partitioned in their catalog")
    for name in partition_by:
        if name == DATE and TIME in reader.schema.names:
            continue
        if name not in reader.schema.names:
            raise KwireError(no_such("column", name, reader.schema.names, f"in the table {table}"))
        if reader.schema[name].dataType.simpleString() not in (
            "string",
            "int",
            "bigint",
            "smallint",
            "tinyint",
            "boolean",
        ):
            raise KwireError(f"the column {name!r} cannot be the name of a folder: it is neither text nor a number")
    if len(partition_by) >= len(reader.schema.names):
        raise KwireError("every column would be the name of a folder: one at least has to be left for the files")


def _contents(filesystem: Any, root: str) -> list[Any]:
    found = filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True))
    return [info for info in found if not info.base_name.startswith(_TEMPORARY)]


def _succeeded(filesystem: Any, root: str) -> None:
    """Writes ``_SUCCESS``."""
    if not isinstance(filesystem, fs.LocalFileSystem):
        with filesystem.open_output_stream(f"{root}/_SUCCESS"):
            return
    with replaced(f"{root}/_SUCCESS") as (new, _), create_file(new):
        return


@dataclass(frozen=True)
class _Plan:
    """What a task needs to know."""

    reader: FileReader
    parts: tuple[Any, ...]
    partition_by: tuple[str, ...]
    filesystem: Any
    temporary: str
    run: str

    @property
    def schema(self) -> pa.Schema:
        """The columns that are read, and ``date`` where it is a folder."""
        schema = to_arrow_schema(self.reader.schema, timezone="UTC")
        dated = DATE in self.partition_by and DATE not in schema.names
        return schema.append(pa.field(DATE, pa.date32())) if dated else schema

    @plainly
    def write(self, numbers: pa.Array) -> pa.Array:
        """Writes the parts of these ``numbers``; gives what was written for each."""
        return pa.array([list(self._write(number)) for number in numbers.to_pylist()], _WRITTEN)

    def _write(self, number: int) -> Iterator[dict[str, Any]]:
        attempt = f"{self.temporary}/{number:05}-{uuid4().hex[:8]}"
        for chunk, batches in enumerate(_chunks(self.reader.read(self.parts[number]))):
            yield from self._write_chunk(batches, attempt, f"part-{number:05}-{chunk:03}-{self.run}")

    def _write_chunk(self, batches: list[pa.RecordBatch], attempt: str, name: str) -> Iterator[dict[str, Any]]:
        from pyarrow import dataset

        made: list[dict[str, Any]] = []
        # Arrow escapes names of folders as in URIs, some of them to nine times their size: it gets numbers in place of
        # texts.
        texts = {one: _Texts(one) for one in self.partition_by if pa.types.is_string(self.schema.field(one).type)}
        schema = self.schema
        for one in texts:
            schema = schema.set(schema.get_field_index(one), pa.field(one, pa.int32()))

        def visit(file: Any) -> None:
            *folders, _ = file.path[len(attempt) + 1 :].split("/")
            named = [texts[name].folder(one) if name in texts else one for name, one in _of_columns(folders)]
            about = {"rows": file.metadata.num_rows, "bytes": file.size, "bad_files": 0}
            made.append({"file": file.path, "folders": named, **about})

        parquet = dataset.ParquetFileFormat()
        folders = None
        if self.partition_by:
            folders = dataset.partitioning(pa.schema([schema.field(one) for one in self.partition_by]), flavor="hive")
        dataset.write_dataset(
            [self._numbered(self._dated(batch), texts, schema) for batch in batches],
            attempt,
            schema=schema,
            filesystem=self.filesystem,
            format=parquet,
            file_options=parquet.make_write_options(compression="zstd"),
            partitioning=folders,
            # One file of a chunk may be several, where there are more folders than can be open.
            basename_template=f"{name}-{{i}}.parquet",
            existing_data_behavior="overwrite_or_ignore",
            max_partitions=1 << 20,
            file_visitor=visit,
            use_threads=False,
        )
        if made:
            made[0]["bad_files"] = sum(_bad_files(batch) for batch in batches)
        yield from made

    def _dated(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.num_columns == len(self.schema):
            return batch
        return pa.RecordBatch.from_arrays([*batch.columns, batch.column(TIME).cast(pa.date32())], schema=self.schema)

    @staticmethod
    def _numbered(batch: pa.RecordBatch, texts: Mapping[str, _Texts], schema: pa.Schema) -> pa.RecordBatch:
        """With numbers in place of the texts that become names of folders."""
        columns = [
            texts[field.name].numbers(column) if field.name in texts else column
            for field, column in zip(schema, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def write_empty(self) -> Iterator[dict[str, Any]]:
        """A file without rows, so that there is one to read the columns from."""
        from pyarrow import parquet

        left = [field for field in self.schema if field.name not in self.partition_by]
        path = f"{self.temporary}/empty/part-00000-{self.run}.parquet"
        self.filesystem.create_dir(path.rpartition("/")[0], recursive=True)
        parquet.write_table(pa.schema(left).empty_table(), path, filesystem=self.filesystem)
        yield {
            "file": path,
            "folders": [],
            "rows": 0,
            "bytes": self.filesystem.get_file_info(path).size,
            "bad_files": 0,
        }


class _Texts:
    """The texts of a column whose values become names of folders, by number."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._number_of: dict[str, int] = {}
        self._texts: list[str] = []

    def numbers(self, values: pa.Array) -> pa.Array:
        """Null for what can be no name."""
        each = values.dictionary_encode()
        known = [self._number(one) for one in each.dictionary.to_pylist()]
        return pa.array(known, pa.int32()).take(each.indices)

    def _number(self, text: str) -> int | None:
        if text in ("", NULL) or len(self._named(text).encode()) > _LONGEST:
            return None
        if text not in self._number_of:
            self._number_of[text] = len(self._texts)
            self._texts.append(text)
        return self._number_of[text]

    def _named(self, text: str) -> str:
        return f"{self._column}={text.translate(_ESCAPED)}"

    def folder(self, numbered: str) -> str:
        """The name of the folder of one that has the number of its text."""
        number = numbered.partition("=")[2]
        return numbered if number == NULL else self._named(self._texts[int(number)])


def _of_columns(folders: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((one.partition("=")[0], one) for one in folders)


def _bad_files(batch: pa.RecordBatch) -> int:
    import pyarrow.compute as pc

    if "status" not in batch.schema.names:
        return 0
    return pc.sum(pc.equal(batch.column("status"), BAD_FILE)).as_py() or 0


def _chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        size += batch.nbytes
        if size >= CHUNK:
            yield held
            held, size = [], 0
    if held:
        yield held


def _move(filesystem: Any, written: Sequence[Any], root: str, *, flat: bool) -> list[tuple[str, list[str]]]:
    """Moves files into ``root``: where each is below it, and the folders that say the values of columns.

    ``flat``: not into these folders.
    """
    moved = []
    made: set[str] = set()
    for number, row in enumerate(written):
        file, folders = row["file"], row["folders"]
        name = file.rpartition("/")[2]
        below = f"{number:06}-{name}" if flat else "/".join((*folders, name))
        moved.append((below, folders))
        put(filesystem, file, root, below, made)
    return moved


def _commit_delta(output: str, plan: _Plan, mode: Mode, files: Sequence[tuple[tuple[str, list[str]], int]]) -> None:
    """Makes the files part of a table of Delta Lake. Its log names them, and the values that their rows have in common:
    so no folder has a name that was made of a value, which not every reader of the log takes back to what it was."""
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import AddAction, RemoveAction

    schema = Schema.from_arrow(plan.schema)
    by = list(plan.partition_by)
    actions: list[AddAction | RemoveAction] = [
        AddAction(
            path=below,
            size=size,
            partition_values={name: _value(one) for name, one in (folder.split("=", 1) for folder in folders)},
            modification_time=0,
            data_change=True,
            stats="{}",
        )
        for (below, folders), size in files
    ]
    table = (
        DeltaTable(output)
        if DeltaTable.is_deltatable(output)
        else DeltaTable.create(output, schema=schema, partition_by=by)
    )
    table.create_write_transaction(
        actions, mode="overwrite" if mode == "overwrite" else "append", schema=schema, partition_by=by
    )


@dataclass(frozen=True)
class _Iceberg:
    """A table of Iceberg to which files are added, all at once: nothing is in its catalog before ``commit``."""

    name: str
    folder: str
    """Where its files are."""
    transaction: Any
    replaces: bool

    @classmethod
    def of(cls, name: str, schema: pa.Schema, mode: Mode) -> _Iceberg:
        """Raises ``KwireError`` for a name that is none, and where its catalog cannot be reached."""
        from pyiceberg.catalog import load_catalog

        catalog_name, *identifier = name.split(".")
        if len(identifier) < 2 or not all((catalog_name, *identifier)):
            raise KwireError(f"{public(name)} is no table of Iceberg: its name is CATALOG.NAMESPACE.TABLE")
        with _said(name):
            catalog = load_catalog(catalog_name)
            catalog.create_namespace_if_not_exists(tuple(identifier[:-1]))
            there = catalog.table_exists(tuple(identifier))
            if there and mode == "error":
                raise KwireError(
                    f"{name} is there already: mode append adds to what is there, overwrite takes its place"
                )
            if there:
                transaction = catalog.load_table(tuple(identifier)).transaction()
            else:
                transaction = catalog.create_table_transaction(tuple(identifier), schema)
        folder = f"{transaction.table_metadata.location.rstrip('/')}/data"
        return cls(name, folder, transaction, there and mode == "overwrite")

    def commit(self, files: Sequence[str]) -> None:
        """Adds files, by their names in ``folder``; takes the place of all that was there before, if that is wanted."""
        from pyiceberg.expressions import AlwaysTrue

        with _said(self.name):
            if self.replaces:
                self.transaction.delete(AlwaysTrue())
            if files:
                self.transaction.add_files([f"{self.folder}/{file}" for file in files])
            self.transaction.commit_transaction()


@contextmanager
def _said(name: str) -> Iterator[None]:
    """What pyiceberg and its catalogs raise, as a sentence: they have many kinds of errors, without a common one."""
    try:
        yield
    except KwireError:
        raise
    except Exception as error:
        raise KwireError(f"{name}: {' '.join(str(error).split()) or type(error).__name__}") from error


def _value(folder: str) -> str | None:
    return None if folder == NULL else unquote(folder)
