"""Many captures as one, in Spark: connections go on from file to file, names of topics hold everywhere.

``read`` is the parallel way, in three stages of tasks (``kwire.capture.across`` says why they give the rows of the one
capture that was never cut):

    scan      a task for each part       its edges, without rows; a small row for each bucket of connections
    chain     a task for each bucket     the parts in order of time: the true states of the bucket's connections
    decode    a task for each part       its rows, with the true states of its connections

A part is as many small files of a sensor that follow each other as make a task worth while (``parts_of``), a file, or a
split of a large one. Between the stages Spark shuffles the edges: of each connection what is unfinished at the end of a
part and its packets up to where its frames are certain, and once more its state. Packets and rows stay where they are,
and the driver gets nothing but names, sizes and first times of files.

The option ``across`` of the data source is the other way, for one query without a shuffle: a task for each sensor reads
its files one after the other (``one_by_one``).

Rules kept here:

- What is no capture, or damaged, is a row with ``status`` ``bad_file``; the connections of the others go on as if its
  packets had been lost. ``kwire.spark.sensors`` says which files belong together, and puts them in order.
- Where a file was found damaged is the same in all stages (``File.broken``): the others go on from what was known of
  it. What cannot be read for another reason fails the task, or the query.
- Every task gives the same again when it is run again: nothing depends on which comes first, or on how many there are.
"""

from __future__ import annotations

import json
import pickle
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kwire.errors import KwireError
from kwire.options import READ
from kwire.spark.arrow import mapped, packed, unpacked
from kwire.spark.histories import NUMBER, SENSOR
from kwire.spark.options import PATHS, Options, check_across, columns_of, spark_schema, texts
from kwire.spark.partitioned import INFER
from kwire.spark.reader import BAD_FILE, FileReader
from kwire.spark.sensors import Sensor, by_sensor, parts_of
from kwire.spark.workers import context_of, of_file
from kwire.tables.definition import CaptureTable

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from kwire.capture.parts import Part
    from kwire.capture.splits import Split
    from kwire.limits import Limits
    from kwire.spark.files import File

__all__ = ["group_events", "read"]

LEAST_PART: Final = 4 << 20
"""Bytes of small files that are read by one task, at least: what a task costs besides is more than reading them."""
PARTS_AT_ONCE: Final = 2
"""Parts for each task that runs at once, at least, if there are so many files: not all take the same time."""

LEAST_SPLIT: Final = 256 << 20
"""Bytes of the splits of a large file, at least: a smaller one costs more than it saves."""
LARGEST_SPLIT: Final = 1 << 30
"""Bytes of such splits, at most: so much is read again where a task fails."""

BUCKETS: Final = 64
"""Tasks of the chain, of each sensor, at most: connections are shared out between them. More than run at once would
cost and bring nothing: each has its own row of every file."""
ACCOUNT: Final = "account"
"""A table that has this column by name is filled in by what comes before (``kwire.tables.subscribed``)."""
COMMITTED: Final = "committed_offset"
"""A column that needs the answers of later files (``kwire.tables.committed``)."""
NAMES: Final = -1
"""In place of a sensor: names of topics, which hold for all."""

_EDGES = pa.schema(
    [
        pa.field("task", pa.int32(), nullable=False),
        pa.field("sensor", pa.int64(), nullable=False),
        pa.field("place", pa.int32(), nullable=False),
        pa.field("edges", pa.binary()),
        pa.field("common", pa.string(), nullable=False),
    ]
)
_STATES = pa.schema(
    [
        pa.field("place", pa.int32(), nullable=False),
        pa.field("state", pa.binary()),
        pa.field("left", pa.list_(pa.field("element", pa.binary(), nullable=False))),
        pa.field("common", pa.string()),
        pa.field("answers", pa.binary()),
    ]
)


# --- all at once ------------------------------------------------------------------------------------------------------


def read(
    paths: str | Sequence[str],
    *,
    table: str = "frames",
    columns: Sequence[str] | None = None,
    sensor: Sensor = None,
    buckets: int | None = None,
    part_bytes: int | None = None,
    spark: SparkSession | None = None,
    **options: Any,
) -> DataFrame:
    """The rows of a table of many captures, as if all of one sensor were one file, however they were cut.

    ``paths``: files, folders and patterns as for ``load``; ``options`` those of the data source (``ports``, ``limits``,
    ``keylog``, ``pathGlobFilter`` and so on). ``columns`` chooses columns. ``sensor`` says which captures belong
    together: a level of folders, a pattern or a function (``Sensor``). ``buckets``: tasks among which the connections
    of a sensor are shared out to be followed from file to file. ``part_bytes``: small files are read together by one
    task up to so many bytes; 0: each alone. Without it, by the bytes that there are and the tasks that run at once.

    ``capture`` is the file that has the last packet of a frame; ``connection`` and ``frame`` are numbers that no other
    connection and frame of the sensor have, and ``frame`` grows in the order of time.

    Raises ``KwireError`` for an option or table that there is not, ``CaptureError`` for a path that stands for no file.
    """
    from pyspark.sql import SparkSession as Session
    from pyspark.sql.pandas.types import from_arrow_schema

    spark = spark or Session.active()
    named = [paths] if isinstance(paths, str) else list(paths)
    given = texts({INFER: spark.conf.get(f"spark.sql.sources.{INFER}.enabled", None), **options}, READ)
    checked = Options.of({**given, "table": table, PATHS: json.dumps(named)})
    definition = checked.definition
    check_across(definition)
    if isinstance(definition, CaptureTable) and definition.in_order:
        raise KwireError(f"the table {table} is made of files one after the other: kwire.spark.{table} reads it")
    schema = spark_schema(definition, asked=True)
    files = checked.files()
    beside = checked.folder_columns(files)
    names = definition.chosen(columns_of(definition, columns, beside)).names
    schema = type(schema)([*(schema[name] for name in names), *beside])
    checked.beside()
    if not files:
        return spark.createDataFrame([], schema)
    total, first = sum(file.size or 0 for file in files), _at_once(spark, _first_parallelism)
    most = checked.values["maxSplitBytes"] or _split_bytes(total, first)
    some = by_sensor(files, sensor, most)
    if part_bytes is None:
        part_bytes = max(LEAST_PART, min(most, total // (PARTS_AT_ONCE * first)))
    parts = parts_of(some, part_bytes)
    count = len(parts)
    shares = buckets or max(1, min(BUCKETS, count, _at_once(spark)))
    work = _Work(checked, _Files.of(parts), shares, COMMITTED in schema.names)
    edges = mapped(spark.range(0, count, 1, count), work.scanned, from_arrow_schema(_EDGES))
    # By their numbers: of a few tasks, hashing would often leave one to do the work of two.
    shared = edges.repartitionById(shares * len(some), edges["task"])
    chained = shared.sortWithinPartitions(edges["sensor"], edges["place"])
    states = mapped(chained, work.chained, from_arrow_schema(_STATES))
    placed = states.repartitionById(count, states["place"])
    assert isinstance(definition, CaptureTable)
    if definition.history is not None:
        return _histories(placed, work, definition, beside).select(*schema.names)
    if ACCOUNT not in [one.name for one in definition.asked]:
        return mapped(placed, _Decoding(work, schema).rows, schema)
    return _in_order(placed, work, definition, beside).select(*schema.names)


def group_events(paths: str | Sequence[str], **options: Any) -> DataFrame:
    """What happened to groups, and why: ``read`` of the table ``group_events``, with the options and errors of it."""
    return read(paths, table="group_events", **options)


def _split_bytes(total: int, at_once: int) -> int:
    """Bytes of a file above which it is read as several, where ``maxSplitBytes`` does not say it: as many splits as
    tasks that run at once, twice as many, and so on. Each costs a link of the chain, for which all others wait."""
    rounds = max(1, -(-total // (at_once * LARGEST_SPLIT)))
    return max(LEAST_SPLIT, -(-total // (at_once * rounds)))


def _parallelism(context: SparkContext) -> int:
    return context.defaultParallelism


_first_parallelism = lru_cache(maxsize=1)(_parallelism)
"""As it was when an application first asked. It changes where executors come and go, and the parts of two reads have to
be the same, or the same frame has not the same number."""


def _at_once(spark: SparkSession, asked: Callable[[SparkContext], int] = _parallelism) -> int:
    """Tasks that run at once, where Spark says it; with Spark Connect it does not."""
    context = context_of(spark)
    return BUCKETS if context is None else asked(context)


def _histories(placed: DataFrame, work: _Work, definition: CaptureTable, folders: Sequence[StructField]) -> DataFrame:
    """The rows of a history: the steps of all files come together by connection, and then by owner."""
    from pyspark.sql.types import LongType, StructField, StructType

    from kwire.spark.histories import NEEDED, folded

    assert definition.history is not None
    only = work.options.only
    # What led to a row may be of other clients, and earlier: rows are chosen once they are there.
    work = replace(work, options=replace(work.options, only=None))
    whole = spark_schema(definition, asked=True)
    shown = StructType([*(whole[name] for name in NEEDED), *folders])
    beside = [StructField(name, LongType()) for name in (SENSOR, NUMBER)]
    steps = mapped(placed, _Accounting(work, shown).rows, StructType([*shown.fields, *beside]))
    made = StructType([*spark_schema(definition).fields, *folders])
    shares = max(1, min(BUCKETS, _at_once(placed.sparkSession)))
    several = work.files.sensors > 1
    return folded(steps, definition.history, made, folders, by_time=several, shares=shares, only=only)


def _in_order(placed: DataFrame, work: _Work, definition: CaptureTable, folders: Sequence[StructField]) -> DataFrame:
    """The rows of a table that need those before them, of all files: they are filled in by a task for each sensor.

    Only the few frames that such a table is made of come together there; all are decoded where the others are.
    """
    from pyspark.sql.types import LongType, StructField, StructType

    only = work.options.only
    status = None if only is None else only.status
    if only is not None:
        # The status of a row is known when it is filled in.
        work = replace(work, options=replace(work.options, only=replace(only, status=None)))
    whole = StructType([*spark_schema(definition, asked=True).fields, *folders])
    beside = [StructField(name, LongType()) for name in (SENSOR, NUMBER)]
    rows = mapped(placed, _Accounting(work, whole).rows, StructType([*whole.fields, *beside]))
    sensors = work.files.sensors
    ordered = rows.repartitionById(sensors, rows[SENSOR].cast("int")).sortWithinPartitions(SENSOR, "frame", NUMBER)
    made = StructType([*spark_schema(definition).fields, *folders])
    names = tuple(one.name for one in folders)
    return mapped(ordered, _Filling(work.options.values["limits"], made, status, names).rows, made)


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of parts, by their places, as they are sent to each task: a worker unpacks them once, since what each
    task does anew with all files is done as often as there are tasks. ``sensors``: how many sensors there are."""

    packed: bytes = field(repr=False)
    sensors: int

    @classmethod
    def of(cls, parts: Sequence[tuple[tuple[File, ...], int]]) -> _Files:
        """``parts``: the files of each, and the number of its sensor."""
        return cls(zlib.compress(pickle.dumps(parts)), len({sensor for _, sensor in parts}))

    def __getitem__(self, place: int) -> tuple[File, ...]:
        return _unpickled(self.packed)[place][0]

    def split(self, place: int) -> Split | None:
        """The split that a place is, where it is one."""
        return self[place][0].split

    def broken(self, place: int, said: Sequence[Sequence[Any]]) -> list[File]:
        """The files of a place, as those who read them before found them (``Scan.broken``, as JSON has it)."""
        from kwire.spark.files import Broken

        files = list(self[place])
        for number, *broken in said:
            files[number] = replace(files[number], broken=Broken(*broken))
        return files

    def opened(self, place: int, said: Sequence[Sequence[Any]] = ()) -> Iterator[Any]:
        """``broken``, open one after the other. Reading one that is damaged at its beginning raises so."""
        from kwire.capture.compressed import DamagedError

        for file in self.broken(place, said):
            try:
                stream = file.open()
            except DamagedError as error:
                yield _Unopened(error)
                continue
            with stream:
                yield stream

    def sensor(self, place: int) -> int:
        """The number of the sensor that a place is of."""
        return _unpickled(self.packed)[place][1]


class _Unopened:
    """In place of a stream that could not be opened."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def read(self, size: int, /) -> bytes:
        """Raises the error."""
        raise self._error


@lru_cache(maxsize=4)
def _unpickled(data: bytes) -> list[tuple[tuple[File, ...], int]]:
    found: list[tuple[tuple[File, ...], int]] = pickle.loads(zlib.decompress(data))
    return found


@dataclass(frozen=True, slots=True)
class _Work:
    """What the tasks of all stages need. It is sent to the workers."""

    options: Options
    files: _Files
    shares: int
    answers: bool
    """Whether parts are to know what later ones answer to their Produce requests."""

    def _how(self) -> dict[str, Any]:
        return {**self.options.traffic, "keys": self.options.beside()["keylog"]}

    def scanned(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The edges of each part, in buckets."""
        how = self._how()
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield self._scanned(place, how)

    def _scanned(self, place: int, how: Mapping[str, Any]) -> pa.RecordBatch:
        from kwire.capture.across import scan
        from kwire.tables.topics import Topics

        topics = Topics()
        names: list[tuple[str, str]] = []

        def seen(frames: Any) -> None:
            names.extend((id_.hex(), name) for id_, name in topics.learn(frames))

        with of_file(self.files[place][0].name, self.options.stores.hidden):
            found = scan(self.files.opened(place), seen=seen, split=self.files.split(place), **how)
        of = [zlib.crc32(key) % self.shares for key in found.edges.column("ends").to_pylist()]
        in_buckets = found.edges.take(pa.array(sorted(range(len(of)), key=of.__getitem__), pa.int64()))
        broken = [(number, *one) for number, one in found.broken.items()]
        common = json.dumps({"common": found.common, "over": found.over, "broken": broken})
        said = json.dumps({"names": names, "over": found.over, "broken": broken})
        rows: list[dict[str, Any]] = [{"task": 0, "sensor": NAMES, "place": place, "edges": None, "common": said}]
        counts, begin, sensor = Counter(of), 0, self.files.sensor(place)
        for bucket in range(self.shares):
            count = counts[bucket]
            data = packed(in_buckets.slice(begin, count)) if count else None
            begin += count
            task = sensor * self.shares + bucket
            rows.append({"task": task, "sensor": sensor, "place": place, "edges": data, "common": common})
        return pa.RecordBatch.from_pylist(rows, schema=_EDGES)

    def chained(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What each part is to know of those before it, from edges of a bucket, in order of place; the names of all
        topics before them."""
        rows = (row for batch in batches for row in batch.to_pylist())
        for (sensor, task), some in groupby(rows, lambda row: (row["sensor"], row["task"])):
            if sensor == NAMES:
                yield from self._all_names(some)
            else:
                yield from self._chain(task % self.shares, some)

    def _chain(self, bucket: int, rows: Iterable[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
        from kwire.capture.across import EDGES, Chain, together
        from kwire.tables.committed import Answered

        answered = Answered() if self.answers else None
        chain = Chain(**self._how(), heard=None if answered is None else answered.hear)
        common: dict[str, Any] = {}
        for row, said in self._without_none(rows):
            place = row["place"]
            edges = EDGES.empty_table() if row["edges"] is None else unpacked(row["edges"])
            again = partial(self.files.opened, place, said["broken"])
            with of_file(self.files[place][0].name, self.options.stores.hidden):
                link = chain.add(place, edges, common, again, self.files.split(place))
            left: dict[int, list[bytes]] = {}
            for key, one in link.gone_on.items():
                left.setdefault(one, []).append(key)
            made: list[dict[str, Any]] = [{"place": one, "left": ends} for one, ends in left.items()]
            if link.state.num_rows:
                made.append({"place": place, "state": packed(link.state)})
            if answered is not None:
                made += [{"place": one, "answers": packed(some)} for one, some in answered.of(link).items()]
            if bucket == 0:
                made.append({"place": place, "common": json.dumps({"common": common})})
            if made:
                yield pa.RecordBatch.from_pylist(made, schema=_STATES)
            common = together(common, said["common"])

    def _without_none(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], dict[str, Any]]]:
        """The rows of the scan, and what they say; without splits that are none, because one before took them in."""
        over = None
        for row in rows:
            file, said = self.files[row["place"]][0], json.loads(row["common"])
            if file.split is not None and file.name == over:
                continue
            if said["over"]:
                over = file.name
            yield row, said

    def _all_names(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
        """For each part the names of topics (what was said last before it, and else what is said first behind that),
        and what of its files could not be read."""
        of = [(row["place"], said["names"], said["broken"]) for row, said in self._without_none(rows)]
        later: dict[str, str] = {}
        for _, names, _ in of:
            for id_, name in names:
                later.setdefault(id_, name)
        known: dict[str, str] = {}
        for place, names, broken in of:
            said = json.dumps({"topics": {**later, **known}, "broken": broken})
            yield pa.RecordBatch.from_pylist([{"place": place, "common": said}], schema=_STATES)
            known.update(names)


@dataclass(frozen=True, slots=True)
class _Decoding:
    """The last stage: what was found out for a part comes together, and it is decoded."""

    work: _Work
    schema: Any

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        of: dict[int, list[dict[str, Any]]] = {}
        for batch in batches:
            for row in batch.to_pylist():
                of.setdefault(row["place"], []).append(row)
        for place, rows in sorted(of.items()):
            yield from self._decoded(place, rows)

    def _decoded(self, place: int, rows: Iterable[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
        found = _part(place, rows, self.work.files.split(place))
        if found is None:
            return
        part, broken = found
        reader, files = FileReader(self.work.options, self.schema), self.work.files.broken(place, broken)
        for file, (one, ended) in zip(files, part.of_files(len(files)), strict=True):
            yield from reader.rows_of(file, one, ended)


@dataclass(frozen=True, slots=True)
class _Accounting(_Decoding):
    """The last stage of a table that needs all rows before: it says of each row whose it is, and which."""

    def _decoded(self, place: int, rows: Iterable[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
        n = 0
        # Without ``super()``: a class with slots is made anew, and that one does not know which it is.
        for batch in _Decoding._decoded(self, place, rows):
            count = batch.num_rows
            sensor = pa.repeat(pa.scalar(self.work.files.sensor(place), pa.int64()), count)
            numbers = pa.array(range(n, n + count), pa.int64())
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, sensor, numbers], names=[*batch.schema.names, SENSOR, NUMBER]
            )
            n += count


@dataclass(frozen=True, slots=True)
class _Filling:
    """Goes over the rows of sensors in order of time, and fills in what the rows before them say."""

    limits: Limits
    schema: Any
    status: frozenset[str] | None
    """The words of ``status`` that are wanted."""
    folders: tuple[str, ...] = ()
    """Partition columns."""

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import to_arrow_schema

        from kwire.tables.client_metrics import in_batches

        schema = to_arrow_schema(self.schema, timezone="UTC")
        for batch in in_batches(self._filled(batches), schema):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    def _filled(self, batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
        from kwire.tables.client_metrics import rows_of
        from kwire.tables.subscribed import Judge

        judge, sensor = Judge(self.limits), None
        for batch in batches:
            for row in rows_of(batch):
                if row[SENSOR] != sensor:
                    judge, sensor = Judge(self.limits), row[SENSOR]
                account = row.pop(ACCOUNT)
                values = {name: row[name] for name in self.folders}
                found = judge.filled(row, None if account is None else json.loads(account))
                if found is not None:
                    found.update(values)
                if found is not None and (self.status is None or found["status"] in (*self.status, BAD_FILE)):
                    yield found


def _part(
    place: int, rows: Iterable[Mapping[str, Any]], split: Split | None
) -> tuple[Part, Sequence[Sequence[Any]]] | None:
    """What the task that decodes a part is to know, also of files that could not be read; None for a split that is
    none: nothing is said of its topics."""
    from kwire.capture.parts import Part

    states: list[pa.Table] = []
    answers: list[pa.Table] = []
    left: set[bytes] = set()
    said: dict[str, Any] = {}
    for row in rows:
        if row["state"] is not None:
            states.append(unpacked(row["state"]))
        if row["answers"] is not None:
            answers.append(unpacked(row["answers"]))
        left.update(row["left"] or ())
        if row["common"] is not None:
            said |= json.loads(row["common"])
    if "topics" not in said:
        return None
    # In the order in which connections were seen first: a later one takes over the ports of an earlier.
    state = None
    if states:
        state = pa.concat_tables(states).combine_chunks().replace_schema_metadata(states[0].schema.metadata)
    part = Part(
        place=place,
        state=state,
        left=frozenset(left),
        common=said.get("common", {}),
        topics={bytes.fromhex(id_): name for id_, name in said["topics"].items()},
        split=split,
        answers=pa.concat_tables(answers) if answers else None,
    )
    return part, said["broken"]
