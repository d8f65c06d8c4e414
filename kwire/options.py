"""Options of reading: each is declared once, here, with its type, its text form, its default and its help.

An option is a key of a ``TypedDict`` whose annotation carries an ``Option``. Everything else is made from that:

- ``kwire.capture.read(source, **options: Unpack[CaptureOptions])`` and what it calls: ``settled`` checks the names and
  fills in the defaults;
- Spark: ``texts`` turns keywords into texts, ``values`` turns texts into values;
- the command line: ``kwire.cli.reading.add_options`` makes a flag of each option that has one;
- docs/reference/options.md (``make docs``).

Rules kept here:

- ``PLACES`` says which options an entry point takes. At any other entry point the option is refused by name. An option
  that is accepted and does nothing is a wrong answer.
- An option for captures alone is refused where ``format`` is ``log``, and the other way round (``Option.form``). So is
  one that none of the tables has a use for (``Option.tables``).
- Nothing here imports numpy, pyarrow, numba or pyspark.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict, cast

from kwire.errors import KwireError
from kwire.limits import DEFAULT_LIMITS, Limits, size_of
from kwire.naming import meant

if TYPE_CHECKING:
    from kwire.tls import KeyLog

__all__ = [
    "CHUNKS",
    "EXPORT",
    "LOAD",
    "OPTIONS",
    "PLACES",
    "PYTHON",
    "READ",
    "STREAM",
    "CaptureOptions",
    "ContentOptions",
    "FilterOptions",
    "Kind",
    "Option",
    "SegmentOptions",
    "TrafficOptions",
    "check_called",
    "check_form",
    "check_place",
    "check_tables",
    "chosen",
    "documented",
    "of_segments",
    "settled",
    "texts",
    "values",
]

CAPTURE, LOG = "capture", "log"
"""The values of the option ``format``: what tables are made from."""


# --- kinds: how text becomes a value ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What text an option takes, and what value in Python.

    ``read`` makes the value of a text and raises ``ValueError``. ``such`` says what the text must be, for errors; where
    it is empty, the ``ValueError`` says it. ``metavar`` stands for the value in the help of the command line. ``types``
    are those of a value in Python besides text; ``value`` says what that must be, where ``such`` does not.
    """

    read: Callable[[str], Any]
    such: str = ""
    metavar: str = ""
    words: Sequence[str] = ()
    types: tuple[type, ...] = ()
    value: str = ""


def _ports(text: str) -> tuple[int, ...]:
    ports = []
    for part in text.replace(",", " ").split():
        if not part.isdecimal() or len(part) > 5 or not 0 < int(part) < 65536:
            raise ValueError(f"no port {part!r}: ports are numbers from 1 to 65535, separated by commas")
        ports.append(int(part))
    if not ports:
        raise ValueError("it is empty: leave it out for all ports")
    return tuple(ports)


def _some(parts: Iterable[str]) -> tuple[str, ...]:
    found = tuple(one.strip() for one in parts if one.strip())
    if not found:
        raise ValueError("it is empty: leave it out for all")
    return found


def _names(text: str) -> tuple[str, ...]:
    return _some(text.split(","))


def _texts(text: str) -> tuple[str, ...]:
    return tuple(one.replace("\\,", ",") for one in _some(re.split(r"(?<!\\),", text)))


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _path(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty, and a path must not be: an empty one stands for nothing")
    return text


def _instant(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    try:
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except OverflowError as beyond:
        raise ValueError(f"{text} is no time in UTC: {beyond}") from None


def _word(*words: str) -> Kind:
    def read(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(text)
        return text.lower()

    return Kind(read=read, such=" or ".join(words), words=words)


def _bytes(such: str, least: int = 0) -> Kind:
    def read(text: str) -> int:
        found = size_of(text)
        if found < least:
            raise ValueError(text)
        return found

    return Kind(read=read, such=f"a number of bytes, such as {such}", metavar="BYTES", types=(int,))


_SIZE: Final = re.compile(r"(\d{1,18})\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_TIME: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(ms|s|m|min|h|d|)", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d{1,10}")
_SECONDS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def _spark_bytes(text: str) -> int:
    read = _SIZE.fullmatch(text.strip())
    if read is None or not int(read[1]):
        raise ValueError(text)
    return int(read[1]) << 10 * " kmgt".index(read[2].lower() or " ")


def _files(text: str) -> int:
    if _NUMBER.fullmatch(text.strip()) is None or not 0 < int(text) < 1 << 31:
        raise ValueError(text)
    return int(text)


def _seconds(text: str) -> float:
    read = _TIME.fullmatch(text.strip())
    if read is None:
        raise ValueError(text)
    return float(read[1]) * _SECONDS[read[2].lower()]


def _level(text: str) -> int | str:
    if _NUMBER.fullmatch(text):
        return int(text)
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"it is no pattern: {error}") from None
    return text


PORTS: Final = Kind(read=_ports, metavar="N")
NAMES: Final = Kind(read=_names, metavar="NAMES")
SWITCH: Final = Kind(read=_flag, such="true or false")
PATH: Final = Kind(read=_path, metavar="PATH", types=(os.PathLike,), value="a path")
PATHS: Final = Kind(read=_path, metavar="FILE")
"""Several paths on the command line; in Spark one path or pattern."""
TEXT: Final = Kind(read=str, metavar="TEXT", value="a text")
TEXTS: Final = Kind(read=_texts, metavar="IDS")
"""Texts that may hold commas: such a comma has a backslash before it."""
TIME: Final = Kind(
    read=str, metavar="TIME", types=(datetime,), value="a datetime, or a text such as 2026-11-22T10:30:00Z"
)
"""A time in ISO 8601, which ``kwire.tables.filters`` reads."""
INSTANT: Final = Kind(read=_instant, such="a time such as 2026-11-22T09:30:00 (UTC)", metavar="TIME", types=(datetime,))
LIMITS: Final = Kind(read=Limits.parse, metavar="NAME=N,...", types=(Limits,), value="kwire.limits.Limits")
SECRETS: Final = Kind(
    read=lambda text: _word("redact", "show").read(text) == "show", such="redact or show", words=("redact", "show")
)
DIRECTION: Final = _word("request", "response")
FILES: Final = Kind(read=_files, such="a number of files", metavar="N", types=(int,))
DURATION: Final = Kind(read=_seconds, such="a time, such as 90s, 5m or 1h", metavar="DURATION", types=(int, float))
LEVEL: Final = Kind(read=_level, metavar="LEVEL", types=(int,), value="a number, or a pattern")
"""A level of folders (1: the folder that a file is in), or a pattern."""


# --- the declarations -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option.

    ``help``: one sentence, for docs and the command line. ``kind``: how text becomes its value; None for what is
    given in Python alone. ``default``: the value where it is not given; ``unset`` says in words what happens then.
    ``flag``: its name on the command line. ``form``: the ``format`` that it is for; empty: for both. ``tables``: the
    tables that have a use for it; empty: all.
    """

    help: str
    kind: Kind | None = None
    default: Any = None
    unset: str = ""
    flag: str = ""
    form: str = ""
    tables: tuple[str, ...] = ()


class FilterOptions(TypedDict, total=False):
    """Which rows are wanted (``kwire.tables.filters``). What they leave out is not decoded."""

    apis: Annotated[
        Iterable[str | int] | None,
        Option(
            help="only what belongs to these APIs (names or keys)",
            kind=NAMES,
            unset="all",
            flag="--api",
            form=CAPTURE,
        ),
    ]
    topics: Annotated[
        Iterable[str] | None,
        Option(
            help="only what speaks of these topics (with kwire decode SEGMENT: the topic of a lone segment)",
            kind=NAMES,
            unset="all",
            flag="--topic",
            form=CAPTURE,
        ),
    ]
    client_ids: Annotated[
        Iterable[str] | None,
        Option(
            help="only of these clients (their client ids, separated by commas; a comma in an id is `\\,`)",
            kind=TEXTS,
            unset="all",
            flag="--client-id",
            form=CAPTURE,
        ),
    ]
    start: Annotated[
        datetime | str | None,
        Option(
            help="only frames from this time on, such as 2026-11-22T10:30:00Z (UTC unless it says)",
            kind=TIME,
            unset="all",
            flag="--since",
            form=CAPTURE,
        ),
    ]
    end: Annotated[
        datetime | str | None,
        Option(help="only frames before this time", kind=TIME, unset="all", flag="--until", form=CAPTURE),
    ]
    status: Annotated[
        Iterable[str] | None,
        Option(help="only rows with these words of status", kind=NAMES, unset="all", flag="--status", form=CAPTURE),
    ]


class SegmentOptions(TypedDict, total=False):
    """What holds for log segments too: the options of ``kwire.log.read``."""

    limits: Annotated[
        Limits,
        Option(
            help="what reading may use, such as decompressed=64MiB",
            kind=LIMITS,
            default=DEFAULT_LIMITS,
            unset="the usual limits",
            flag="--limits",
        ),
    ]
    secrets: Annotated[
        bool,
        Option(
            help="passwords, tokens and keys: their size alone, or as they are (redact or show)",
            kind=SECRETS,
            default=False,
            unset="redact",
            flag="--secrets",
        ),
    ]
    read_committed: Annotated[
        bool,
        Option(
            help="of tables of records: leave out what a consumer with isolation.level=read_committed does not get",
            kind=SWITCH,
            default=False,
            unset="false",
            flag="--read-committed",
            tables=("records", "cloudevents", "hono"),
        ),
    ]


class ValueOptions(TypedDict, total=False):
    """What the values of records mean (``kwire.values``)."""

    schemas: Annotated[
        Any,
        Option(
            help="where schemas of values come from: a folder, a registry's URL, or what has the topic _schemas (a "
            "capture, a segment, a broker's folder); msgpack, cbor and TOPIC=cbor need none",
            kind=PATHS,
            unset="values are bytes",
            flag="--values",
            tables=("records",),
        ),
    ]
    values: Annotated[
        str | None,
        Option(
            help="with schemas: json adds JSON text of values, typed makes value a struct (with one topic)",
            kind=_word("json", "typed"),
            unset="the columns of the table; json on the command line",
            flag="--values-as",
            tables=("records",),
        ),
    ]
    validate: Annotated[
        bool,
        Option(
            help="with schemas: values in JSON that break their JSON Schema are null, and their status is invalid",
            kind=SWITCH,
            default=False,
            unset="false",
            flag="--validate",
            tables=("records",),
        ),
    ]
    mask: Annotated[
        Any,
        Option(
            help="fields of values that become null, such as email or customer.*; in Python also a kwire.values.Mask",
            kind=NAMES,
            unset="none",
            flag="--mask",
            tables=("records",),
        ),
    ]


class ContentOptions(FilterOptions, SegmentOptions, ValueOptions, total=False):
    """What is made of frames, wherever they come from."""

    payloads: Annotated[
        bool,
        Option(
            help="keep the record sets in bodies of messages, in base64; otherwise their size stands there",
            kind=SWITCH,
            default=False,
            unset="false",
            flag="--payloads",
            form=CAPTURE,
            tables=("messages",),
        ),
    ]
    api: Annotated[
        str | None,
        Option(
            help="messages of one API and direction, whose bodies are structs (on the command line: `--api` with one "
            "name); for both directions take apis (`--table frames --api NAME`)",
            kind=TEXT,
            unset="all, as text",
            form=CAPTURE,
        ),
    ]
    direction: Annotated[
        str | None,
        Option(
            help="with api: which of the two, request or response",
            kind=DIRECTION,
            unset="request, where api is given",
            flag="--direction",
            form=CAPTURE,
        ),
    ]
    keylog: Annotated[
        "KeyLog | str | Path | Sequence[str | Path] | None",
        Option(
            help="key logs (SSLKEYLOGFILE) with the secrets of connections that speak TLS",
            kind=PATHS,
            unset="such connections are encrypted",
            flag="--keylog",
            form=CAPTURE,
        ),
    ]
    topic_ids: Annotated[
        "Mapping[str, str] | Mapping[bytes, str] | None",
        Option(
            help="names of topics by their ids: a table (.csv, .json with topic_id and name), or the data folder of a "
            "broker (partition.metadata, __cluster_metadata)",
            kind=PATHS,
            unset="the capture alone",
            flag="--topic-ids",
            form=CAPTURE,
        ),
    ]


class TrafficOptions(TypedDict, total=False):
    """How packets are read."""

    ports: Annotated[
        Iterable[int] | None,
        Option(
            help="ports of the brokers", kind=PORTS, unset="found out from the traffic", flag="--port", form=CAPTURE
        ),
    ]
    vxlan_ports: Annotated[
        Iterable[int] | None,
        Option(
            help="ports of UDP where VXLAN is spoken, besides 4789 and 8472",
            kind=PORTS,
            unset="none",
            flag="--vxlan-port",
            form=CAPTURE,
        ),
    ]


class StreamedOptions(TrafficOptions, total=False):
    """How a source of bytes is read, in Python."""

    window: Annotated[
        int | None, Option(help="bytes that are read at once", unset="2 to 8 MiB, as is fastest for what was read")
    ]
    live: Annotated[
        bool,
        Option(
            help="what each read of the source gives is dealt with at once, and only no bytes are its end",
            default=False,
            unset="False",
        ),
    ]
    progress: Annotated[
        Callable[[int], None] | None, Option(help="is called with the number of bytes read so far", unset="nothing")
    ]


class CaptureOptions(StreamedOptions, ContentOptions, total=False):
    """The options of ``kwire.capture.read``."""

    on_note: Annotated[
        Callable[[str], None] | None,
        Option(help="is called after the last batch with sentences about what was left out", unset="nothing"),
    ]
    dictionaries: Annotated[
        bool,
        Option(
            help="texts of frames, partitions and calls are Arrow dictionaries, which each batch has of its own",
            default=False,
            unset="False",
        ),
    ]


LEAST_SPLIT: Final = 1 << 20
"""Bytes of splits (``maxSplitBytes``), at least."""
PARTITION: Final = 4 << 20
"""Bytes of small files that are read by one task (``maxPartitionBytes``).

Reading this many takes as long as a task costs.
"""


class FileOptions(TypedDict, total=False):
    """Which files Spark reads."""

    badFiles: Annotated[
        str,
        Option(
            help="fail makes a damaged file fail the query; else it is a row",
            kind=_word("row", "fail"),
            default="row",
            unset="row",
        ),
    ]
    pathGlobFilter: Annotated[
        str, Option(help="a pattern of the files' names, as of Spark's own sources", kind=TEXT, unset="every name")
    ]
    recursiveFileLookup: Annotated[
        bool | None,
        Option(
            help="false: a folder's own files only; true: also those in its folders, without partition columns",
            kind=SWITCH,
            unset="those in its folders too",
        ),
    ]
    basePath: Annotated[
        str,
        Option(
            help="the folder below which names of folders are partition columns",
            kind=PATH,
            unset="the folder that is named, or that a pattern matches",
        ),
    ]
    partitionColumnTypeInference: Annotated[
        bool, Option(help="false: partition columns are strings", kind=SWITCH, default=True, unset="true")
    ]
    timeZone: Annotated[
        str,
        Option(
            help="the time zone of timestamps in names of folders, such as Europe/Berlin",
            kind=TEXT,
            default="UTC",
            unset="UTC",
        ),
    ]
    modifiedAfter: Annotated[
        datetime,
        Option(
            help="files that were written later, such as 2026-11-22T09:30:00 (UTC)", kind=INSTANT, unset="every time"
        ),
    ]
    modifiedBefore: Annotated[
        datetime,
        Option(
            help="files that were written earlier, such as 2026-11-22T09:30:00 (UTC)", kind=INSTANT, unset="every time"
        ),
    ]


class TableOptions(TypedDict, total=False):
    """Which table Spark makes, and by how many tasks."""

    format: Annotated[str, Option(help="capture, or log for log segments", kind=TEXT, default=CAPTURE, unset="capture")]
    deep: Annotated[
        bool, Option(help="decode the records of Kafka's own topics", kind=SWITCH, default=False, unset="false")
    ]
    columns: Annotated[
        tuple[str, ...],
        Option(
            help="only these columns, separated by commas; what they do not need is not worked out",
            kind=NAMES,
            unset="all",
        ),
    ]
    across: Annotated[
        bool,
        Option(
            help="read all captures of a sensor as one, one after the other", kind=SWITCH, default=False, unset="false"
        ),
    ]
    sensor: Annotated[
        int | str,
        Option(
            help="with across: which captures are of one sensor, by a level of folders or a pattern",
            kind=LEVEL,
            unset="all are",
        ),
    ]
    maxPartitionBytes: Annotated[
        int,
        Option(
            help="up to how many bytes small files that follow each other are read by one task, where each counts "
            "16 KiB more than it has; 0: each by its own",
            kind=_bytes("4MiB; 0 reads each file alone"),
            default=PARTITION,
            unset="4MiB",
        ),
    ]


class LoadOptions(TypedDict, total=False):
    """What is read by which table, where that is no argument of its own."""

    table: Annotated[str, Option(help="the table (a wrong name lists them)", kind=TEXT, unset="frames; records")]
    path: Annotated[str, Option(help="a file, a folder or a pattern, which load() takes too", kind=PATH)]


class PushOptions(TypedDict, total=False):
    """What a batch query alone can do."""

    pushFilters: Annotated[
        bool,
        Option(
            help="WHERE leaves rows out before they are decoded; needs spark.sql.python.filterPushdown.enabled",
            kind=SWITCH,
            default=False,
            unset="false",
            form=CAPTURE,
        ),
    ]


class SplitOptions(TypedDict, total=False):
    """What reading across all files at once can do."""

    maxSplitBytes: Annotated[
        int,
        Option(
            help="up to how many bytes of a large file are read by one task",
            kind=_bytes("256MiB, and at least 1MiB", LEAST_SPLIT),
            unset="by the size of all and the tasks that run at once",
        ),
    ]


class StreamOptions(TypedDict, total=False):
    """How a stream takes files (``kwire.spark.discovery``)."""

    maxFilesPerTrigger: Annotated[
        int, Option(help="files of one batch, at most", kind=FILES, default=1000, unset="1000")
    ]
    maxBytesPerTrigger: Annotated[
        int,
        Option(
            help="bytes of the files of one batch, as they are stored; a batch has one file at least",
            kind=Kind(read=_spark_bytes, such="bytes, such as 1000000 or 2g"),
            unset="any number",
        ),
    ]
    idle: Annotated[
        float,
        Option(
            help="after how long without a write a file is closed, and taken", kind=DURATION, default=60.0, unset="60s"
        ),
    ]
    series: Annotated[
        int | str,
        Option(
            help="which files one writer has written, one after the other, by a level of folders or a pattern",
            kind=LEVEL,
            unset="none",
        ),
    ]
    remember: Annotated[
        int, Option(help="files of which the names are remembered", kind=FILES, default=10000, unset="10000")
    ]
    stateLocation: Annotated[
        str,
        Option(
            help="with across: the folder in which connections are kept from batch to batch", kind=PATH, unset="none"
        ),
    ]
    stateTimeout: Annotated[
        float,
        Option(
            help="with across: after how long without a packet a connection is not kept any more",
            kind=DURATION,
            default=900.0,
            unset="15m",
        ),
    ]


WITH_ACROSS: Final = ("sensor", "stateLocation", "stateTimeout")
"""Options that act with ``across`` alone."""


# --- where each acts --------------------------------------------------------------------------------------------------

PYTHON = "kwire.capture.read"
"""Name of an entry point (str): ``kwire.capture.read``."""
LOAD = "spark.read"
"""Name of an entry point (str): ``spark.read``."""
STREAM = "streams: spark.readStream"
"""Name of an entry point (str): ``spark.readStream``."""
READ = "kwire.spark.read"
"""Name of an entry point (str): ``kwire.spark.read``."""
EXPORT = "kwire.spark.export"
"""Name of an entry point (str): ``kwire.spark.export``."""
CHUNKS = "kwire.spark.decode_frames"
"""Name of an entry point (str): ``kwire.spark.decode_frames``."""

_FILES: Final = (ContentOptions, TrafficOptions, FileOptions)
PLACES: Final[Mapping[str, tuple[Any, ...]]] = {
    PYTHON: (CaptureOptions,),
    LOAD: (*_FILES, TableOptions, LoadOptions, PushOptions),
    STREAM: (*_FILES, TableOptions, LoadOptions, StreamOptions),
    READ: (*_FILES, SplitOptions),
    EXPORT: (*_FILES, TableOptions),
    CHUNKS: (ContentOptions,),
}
"""The entry points, and the groups of options that each takes.

In Spark, the options of object stores (``kwire.spark.stores.NAMES``) act everywhere too.
"""


def _declared(group: Any) -> dict[str, Option]:
    return {name: hint.__metadata__[0] for name, hint in group.__annotations__.items()}


OPTIONS: Final[Mapping[str, Option]] = {
    name: option
    for group in (TableOptions, LoadOptions, *_FILES, PushOptions, SplitOptions, StreamOptions, CaptureOptions)
    for name, option in _declared(group).items()
}
"""All options by name, in the order of the docs."""
ACTS: Final[Mapping[str, tuple[str, ...]]] = {
    name: tuple(place for place, groups in PLACES.items() if any(name in one.__annotations__ for one in groups))
    for name in OPTIONS
}
"""Each option, and the entry points where it acts."""
_NAMED: Final = {name.lower(): name for name in OPTIONS}
FILTERS: Final = tuple(FilterOptions.__annotations__)
OF_VALUES: Final = ("schemas", "mask")
"""Options of what values mean that tables of records take beside those of what they are read from."""
OF_SEGMENTS: Final = tuple(SegmentOptions.__annotations__)
"""Options of what is made of frames that hold for log segments too (``kwire.log.read``)."""


# --- keywords ---------------------------------------------------------------------------------------------------------


def settled(options: Mapping[str, Any], place: str = PYTHON) -> CaptureOptions:
    """Options given as keywords, with the defaults of those that were not given.

    Raises ``TypeError`` for a name that the entry point ``place`` does not have, as Python does.
    """
    names = [name for group in PLACES[place] for name in group.__annotations__]
    return cast(CaptureOptions, _settled(options, names, place))


def of_segments(options: Mapping[str, Any]) -> SegmentOptions:
    """Options of ``kwire.log.read`` given as keywords, with the defaults of those that were not given.

    Raises ``TypeError`` for a name that it does not have, as Python does.
    """
    return cast(SegmentOptions, _settled(options, OF_SEGMENTS, "kwire.log.read"))


def _settled(options: Mapping[str, Any], names: Sequence[str], place: str) -> dict[str, Any]:
    for name in options:
        if name not in names:
            near = meant(name, names)
            hint = f": did you mean {near!r}?" if near else ""
            raise TypeError(f"{place}() got an unexpected keyword argument {name!r}{hint}")
    return {name: OPTIONS[name].default for name in names} | {name: _checked(name, options[name]) for name in options}


def _checked(name: str, value: Any) -> Any:
    """The value of a keyword. A text is read as Spark and the command line read it where the option is no text: so
    ``secrets="redact"`` and ``payloads="false"`` mean what they say. Raises ``ValueError``."""
    kind, default = OPTIONS[name].kind, OPTIONS[name].default
    if isinstance(default, bool):
        if isinstance(value, str) and kind is not None:
            return _read(name, kind, value, ValueError)
        if not isinstance(value, bool):
            raise ValueError(f"not {value!r}: the option {name!r} is True or False")
        return value
    if name in _CALLED:
        check_called(**{name: value})
    # A KeyLog has a way to open others; its module is no part of this layer.
    if name == "keylog" and not isinstance(value, str | Iterable | os.PathLike | None) and not hasattr(value, "open"):
        raise ValueError(f"not {value!r}: the option {name!r} is a path, several, or a kwire.tls.KeyLog")
    if name == "topic_ids" and not isinstance(value, Mapping | None):
        raise ValueError(f"not {value!r}: the option {name!r} is a dict of names by topic ids")
    if name == "schemas" and not (
        isinstance(value, str | os.PathLike | Iterable | None)
        or any(hasattr(value, one) for one in ("named", "find", "column"))
    ):
        raise ValueError(f"not {value!r}: the option {name!r} is a path, a URL, a dict by topics, or several of them")
    if name == "window" and value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"not {value!r}: the option {name!r} is a number of bytes")
    if (
        kind is None
        or kind is PATHS
        or (value is None and default is None)
        or (name == "mask" and hasattr(value, "hides"))
    ):
        return value
    if isinstance(value, str):
        return value if kind in (NAMES, TEXTS) else _read(name, kind, value, ValueError)
    if kind in (NAMES, TEXTS, PORTS):
        several = tuple(value) if isinstance(value, Iterable) else (None,)
        if not all(isinstance(one, int if kind is PORTS else str | int if name == "apis" else str) for one in several):
            said = "numbers from 1 to 65535, such as [9092]" if kind is PORTS else "a list of texts"
            raise ValueError(f"not {value!r}: the option {name!r} is {said}")
        return several
    if isinstance(value, bool) or not isinstance(value, kind.types):
        raise ValueError(f"not {value!r}: the option {name!r} is {kind.value or kind.such}")
    if isinstance(value, int | float):
        # The bounds of a number are those of its text.
        _read(name, kind, f"{value:.9f}" if isinstance(value, float) else str(value), ValueError)
    return value


_CALLED: Final = ("progress", "on_note")


def check_called(**functions: object) -> None:
    """Raise ``ValueError`` for a keyword that has to be a function, or None, and is neither."""
    for name, value in functions.items():
        if value is not None and not callable(value):
            raise ValueError(f"not {value!r}: the option {name!r} is a function that is called")


def _read(name: str, kind: Kind, text: str, error: type[Exception]) -> Any:
    """The value that a text says. Raises ``error``."""
    try:
        return kind.read(text)
    except ValueError as wrong:
        said = f"not {text!r}: the option {name!r} is {kind.such}" if kind.such else f"the option {name!r}: {wrong}"
        raise error(said) from None


def chosen(options: Mapping[str, Any], group: Any) -> dict[str, Any]:
    """Those of ``options`` that a group declares."""
    return {name: options[name] for name in group.__annotations__ if name in options}


def check_tables(options: Mapping[str, Any], tables: Iterable[str], called: Callable[[str], str] = str) -> None:
    """Raise ``ValueError`` for an option with another value than its default that one of these tables has no use for.

    ``called`` gives the name that the error says.
    """
    wanted = list(tables)
    for name, value in options.items():
        option = OPTIONS.get(name)
        if option is None or not option.tables or value == option.default:
            continue
        if name in (*OF_VALUES, "validate") and any(table in option.tables for table in wanted):
            continue  # other tables that are read along have no values
        for table in wanted:
            if table not in option.tables:
                said = f"table{'s' * (len(option.tables) > 1)} {', '.join(option.tables)}"
                raise ValueError(f"{called(name)} is for the {said}, not {table}")


def documented(place: str) -> str:
    """The options of an entry point as lines of a docstring, for ``help()``."""
    lines = []
    for group in PLACES[place]:
        for name, option in _declared(group).items():
            lines.append(f"    {name}: {option.help} (default: {option.unset})")
    return "\n".join(lines)


# --- texts ------------------------------------------------------------------------------------------------------------


def texts(options: Mapping[str, Any], place: str, more: Iterable[str] = ()) -> dict[str, str]:
    """Options as texts, as Spark gives them to a data source. None is an option that was not given.

    Raises ``KwireError`` for one that does not act at the entry point ``place``; ``more`` act there too.
    """
    found = {}
    for name, value in options.items():
        if value is None:
            continue
        several = isinstance(value, list | tuple | set | frozenset)
        parts: Iterable[str] = map(str, value if several else (value,))
        if several and name in OPTIONS and OPTIONS[name].kind is TEXTS:
            parts = (one.replace(",", "\\,") for one in parts)
        text = ",".join(parts)
        found[name] = text.lower() if isinstance(value, bool) else text
    check_place(found, place, more)
    return found


def check_place(names: Iterable[str], place: str | None, more: Iterable[str] = ()) -> None:
    """Raise ``KwireError`` for an option that is not known, or does not act at the entry point ``place`` (None: any).

    ``more`` are options that act there and are not declared here: those of object stores.
    """
    beside = {one.lower() for one in more}
    for one in names:
        if one.lower() in beside:
            continue
        name = _NAMED.get(one.lower())
        # Options for Python alone have no text.
        if name is None or OPTIONS[name].kind is None:
            near = meant(one, [name for name, option in OPTIONS.items() if option.kind is not None])
            hint = f"did you mean {near!r}? " if near else ""
            raise KwireError(
                f"no option {one!r}: {hint}the page on options of reading lists all, "
                "the guide on object stores those of stores"
            )
        where = [entry for entry in ACTS[name] if entry != PYTHON]
        if place is not None and place not in where:
            raise KwireError(f"the option {name!r} is for {', '.join(where)}: {place} has no use for it")


def check_form(names: Iterable[str], form: str) -> None:
    """Raise ``KwireError`` for an option, whose name may be in small letters, that is for another ``format``."""
    for one in names:
        name = _NAMED.get(one.lower(), one)
        option = OPTIONS.get(name)
        if option is not None and option.form not in ("", form):
            raise KwireError(f"the option {name!r} is for {'captures' if option.form == CAPTURE else 'log segments'}")


def values(given: Mapping[str, str]) -> dict[str, Any]:
    """The values of options given as texts, by their names in small letters; defaults for the rest.

    Raises ``KwireError`` for a text that is no value.
    """
    found = {}
    for name, option in OPTIONS.items():
        if option.kind is None:
            continue
        text = given.get(name.lower())
        found[name] = option.default if text is None else _read(name, option.kind, text, KwireError)
    return found


# --- docs -------------------------------------------------------------------------------------------------------------

_HEAD: Final = """\
# Options of reading

Each option is declared in `kwire/options.py`; this page is made of that (`make docs`).
In Python it is a keyword, in Spark an option, on the command line a flag:

```python
kwire.capture.read("broker.pcap", "messages", ports=[9092], topics=["orders"])
spark.read.format("kwire").options(table="messages", ports="9092", topics="orders").load("broker.pcap")
```

```sh
kwire decode broker.pcap --table messages --port 9092 --topic orders
```

In Spark, several values are separated by commas. An option is refused by name at an entry point that cannot honour it.
Options of object stores (`s3.access_key` and others, [how to](../how-to/object-stores.md)) act everywhere in Spark.
"""

_TITLES: Final = {
    ContentOptions: "What is made of frames",
    FilterOptions: "Which rows",
    TrafficOptions: "How packets are read",
    CaptureOptions: "In Python alone",
    TableOptions: "Spark: which table",
    LoadOptions: "Spark: what is read",
    FileOptions: "Spark: which files",
    PushOptions: "Spark: conditions",
    SplitOptions: "Spark: large files",
    StreamOptions: "Spark: streams",
}
_COLUMNS: Final = {
    PYTHON: "`capture.read`",
    LOAD: "`spark.read`",
    STREAM: "`readStream`",
    READ: "`kwire.spark.read`",
    EXPORT: "`export`",
    CHUNKS: "`decode_frames`",
}


def page() -> str:
    """docs/reference/options.md."""
    parts = [_HEAD]
    shown: set[str] = set()
    for group in (FilterOptions, ContentOptions, TrafficOptions, CaptureOptions, TableOptions, LoadOptions, FileOptions,
                  PushOptions, SplitOptions, StreamOptions):  # fmt: skip
        rows = {name: option for name, option in _declared(group).items() if name not in shown}
        shown.update(rows)
        places = [
            place for place, groups in PLACES.items() if any(set(rows) <= set(one.__annotations__) for one in groups)
        ]
        acts = ", ".join(_COLUMNS[place] for place in places)
        with_flags = any(option.flag for option in rows.values())
        parts.append(f"\n## {_TITLES[group]}\n\nFor {acts}.\n")
        parts.append(f"| option |{' flag |' if with_flags else ''} meaning | default |")
        parts.append(f"|---|{'---|' if with_flags else ''}---|---|")
        for name, option in rows.items():
            flag = f" `{option.flag}` |" if option.flag else " |" if with_flags else ""
            only = " (segments)" if option.form == LOG else ""
            only += f" (of {', '.join(f'`{one}`' for one in option.tables)})" if option.tables else ""
            parts.append(f"| `{name}` |{flag} {option.help}{only} | {option.unset} |")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(page(), end="")
