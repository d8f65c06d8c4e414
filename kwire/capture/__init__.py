"""Captures (pcap, pcapng): the frames in them, and the tables that are made from those.

``read`` takes a path or a binary file object and yields ``pyarrow.RecordBatch`` with the columns of ``kwire.tables``.
``Reading`` (``kwire.capture.reading``) gives the frames themselves.

Importing this package imports neither numpy, pyarrow nor numba: ``read`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from typing import TYPE_CHECKING, Any, cast, overload

from kwire.errors import MissingExtraError
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.naming import public
from kwire.opening import open_file

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    import pyarrow as pa

    from kwire.capture.reading import Source
    from kwire.tls import KeyLog

__all__ = ["read", "schema_of"]


@overload
def read(
    source: Source | str | PathLike[str] | Sequence[Source | str | PathLike[str]],
    table: str = ...,
    *,
    tables: None = ...,
    columns: Sequence[str] | None = ...,
    ports: Iterable[int] | None = ...,
    vxlan_ports: Iterable[int] | None = ...,
    name: str | Sequence[str] = ...,
    progress: Callable[[int], None] | None = ...,
    window: int | None = ...,
    live: bool = ...,
    on_note: Callable[[str], None] | None = ...,
    limits: Limits = ...,
    secrets: bool = ...,
    payloads: bool = ...,
    read_committed: bool = ...,
    api: str | None = ...,
    direction: str | None = ...,
    apis: Iterable[str | int] | None = ...,
    topics: Iterable[str] | None = ...,
    client_ids: Iterable[str] | None = ...,
    start: datetime | str | None = ...,
    end: datetime | str | None = ...,
    status: Iterable[str] | None = ...,
    keylog: KeyLog | str | Path | Sequence[str | Path] | None = ...,
    topic_ids: Mapping[str, str] | None = ...,
    dictionaries: bool = ...,
) -> Iterator[pa.RecordBatch]: ...
@overload
def read(
    source: Source | str | PathLike[str] | Sequence[Source | str | PathLike[str]],
    *,
    tables: Iterable[str],
    columns: Mapping[str, Sequence[str]] | None = ...,
    ports: Iterable[int] | None = ...,
    vxlan_ports: Iterable[int] | None = ...,
    name: str | Sequence[str] = ...,
    progress: Callable[[int], None] | None = ...,
    window: int | None = ...,
    live: bool = ...,
    on_note: Callable[[str], None] | None = ...,
    limits: Limits = ...,
    secrets: bool = ...,
    payloads: bool = ...,
    read_committed: bool = ...,
    api: str | None = ...,
    direction: str | None = ...,
    apis: Iterable[str | int] | None = ...,
    topics: Iterable[str] | None = ...,
    client_ids: Iterable[str] | None = ...,
    start: datetime | str | None = ...,
    end: datetime | str | None = ...,
    status: Iterable[str] | None = ...,
    keylog: KeyLog | str | Path | Sequence[str | Path] | None = ...,
    topic_ids: Mapping[str, str] | None = ...,
    dictionaries: bool = ...,
) -> Iterator[tuple[str, pa.RecordBatch]]: ...
def read(
    source: Source | str | PathLike[str] | Sequence[Source | str | PathLike[str]],
    table: str = "frames",
    *,
    tables: Iterable[str] | None = None,
    columns: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    ports: Iterable[int] | None = None,
    vxlan_ports: Iterable[int] | None = None,
    name: str | Sequence[str] = "",
    progress: Callable[[int], None] | None = None,
    window: int | None = None,
    live: bool = False,
    on_note: Callable[[str], None] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    secrets: bool = False,
    payloads: bool = False,
    read_committed: bool = False,
    api: str | None = None,
    direction: str | None = None,
    apis: Iterable[str | int] | None = None,
    topics: Iterable[str] | None = None,
    client_ids: Iterable[str] | None = None,
    start: datetime | str | None = None,
    end: datetime | str | None = None,
    status: Iterable[str] | None = None,
    keylog: KeyLog | str | Path | Sequence[str | Path] | None = None,
    topic_ids: Mapping[str, str] | None = None,
    dictionaries: bool = False,
) -> Iterator[pa.RecordBatch] | Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of a table of one capture, as Arrow batches that are not empty.

    ``source`` is the path of a capture, or a binary file object, read once from where it stands; a path is the ``name``
    too, unless there is one. A list of them is one capture that was cut in several, in order of time: connections and
    clients go on from one to the next (not with the tables ``connections`` and ``hono``); ``name`` is then a list as
    well, or the same for all. ``table`` is a name that ``kwire.tables.names`` gives for ``"capture"`` (``frames``,
    ``messages``, ``records`` and so on) or ``"events"``. ``tables`` takes several names instead: one pass makes them
    all and yields pairs of a table's name and a batch. ``columns`` chooses columns, in the order given (with
    ``tables``: by the name of the table); what no chosen column needs is not worked out.

    ``ports`` names the broker ports to look at; without it, connections are recognised by what they carry.
    ``vxlan_ports`` are ports of UDP where VXLAN is spoken, besides 4789 and 8472. ``name`` fills the column ``capture``
    and stands in errors. ``progress`` is called with the bytes read so far. ``window`` is how many bytes are read at
    once (by default 2 to 8 MiB, as is fastest for what was read). ``live``: what each read of the source gives is dealt
    with at once, and only no bytes are its end. ``on_note`` is called after the last batch with sentences about what
    was left out (fragments without the others, tunnels and link types that are not read). ``limits`` bounds what
    reading may use. ``secrets``: passwords, tokens and the like are shown as they are, and not left out
    (``kwire.protocol.secrets``). ``payloads``: in the table ``messages`` a ``body`` has its record sets, in base64, and
    not only their size. ``read_committed``: of tables of records, those that a consumer with this isolation does not
    get are left out (``kwire.tables.aborted``). ``api`` and ``direction`` (``"request"`` or ``"response"``): the table
    ``messages`` has these only, and ``body`` is a struct (``schema_of``). ``apis`` (names or keys), ``topics``,
    ``client_ids``, ``start`` and ``end`` (times; not ``end`` itself) and ``status`` say which rows are wanted, of all
    tables (``kwire.tables.filters``); what they leave out is not decoded. ``keylog``: the secrets of connections that
    speak TLS, as a ``kwire.tls.KeyLog`` or as one or several files that ``SSLKEYLOGFILE`` named; such connections are
    decrypted. ``topic_ids``: names of topics by their ids (as text), for frames before the capture names them itself;
    ``kwire.tables.topic_names`` reads them out of files. ``dictionaries``: texts of the tables ``frames``,
    ``partitions`` and ``calls`` are dictionaries of Arrow (pandas makes categories of them), which is less to make, to
    hold and to group by; those of each batch have their own.

    Raises ``CaptureError`` for what is no capture, and for one that is truncated or damaged, but then after all
    batches of what stands before the damage; ``ValueError`` for an unknown table, column, API or status;
    ``MissingExtraError`` without the extra ``capture`` (for ``client_metrics`` also ``events``, with ``keylog`` also
    ``tls``); ``OSError`` for a capture or key log that cannot be opened.
    """
    from kwire.tls import KeyLog
    from kwire.wire import parse_uuid

    try:
        from kwire.tables import reading
    except ModuleNotFoundError as missing:
        if missing.name in ("numba", "numpy", "pyarrow"):
            raise MissingExtraError("reading captures", "capture") from None
        raise
    wanted: dict[str, Sequence[str] | None]
    if tables is None:
        if isinstance(columns, Mapping):
            raise ValueError("columns by table go with tables: of one table they are a list of names")
        wanted = {table: columns}
    else:
        if columns is not None and not isinstance(columns, Mapping):
            raise ValueError("with tables, columns are a dict from the name of a table to its columns")
        wanted = dict.fromkeys(tables)
        for one, chosen in (columns or {}).items():
            if one not in wanted:
                raise ValueError(f"columns of the table {one!r}, which is not among the tables: {', '.join(wanted)}")
            wanted[one] = chosen
    how: dict[str, Any] = {
        "ports": ports,
        "vxlan_ports": vxlan_ports,
        "progress": progress,
        "window": window,
        "live": live,
        "on_note": on_note,
        "limits": limits,
        "secrets": secrets,
        "payloads": payloads,
        "read_committed": read_committed,
        "api": api,
        "direction": direction,
        "only": reading.Filter.of(apis=apis, topics=topics, client_ids=client_ids, start=start, end=end, status=status),
        "keys": KeyLog.of(keylog),
        "dictionaries": dictionaries,
        "topic_ids": {} if topic_ids is None else {parse_uuid(id_).bytes: one for id_, one in topic_ids.items()},
    }
    several = isinstance(source, (list, tuple))
    sources: list[Any] = list(cast("Any", source)) if several else [source]
    names = [name] * len(sources) if isinstance(name, str) else list(name)
    if not several and not isinstance(name, str):
        raise ValueError("one capture has one name")
    if len(names) != len(sources):
        raise ValueError(f"{len(names)} names for {len(sources)} captures")
    opened = ExitStack()
    for index, one in enumerate(sources):
        if isinstance(one, (str, PathLike)):
            sources[index] = opened.enter_context(open_file(one, named=True))
            names[index] = names[index] or public(one)
    if several:
        found = reading.read_in_order(sources, wanted, names, **how)
    else:
        found = reading.read(sources[0], wanted, name=names[0], **how)
    found = _and_closed(found, opened)
    return found if tables is not None else _without_name(found)


def _and_closed(found: Iterator[tuple[str, pa.RecordBatch]], opened: ExitStack) -> Iterator[tuple[str, pa.RecordBatch]]:
    with opened:
        yield from found


def _without_name(found: Iterator[tuple[str, pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    for _, batch in found:
        yield batch


def schema_of(api: str, direction: str, *, payloads: bool = False) -> pa.Schema:
    """The fields of a body, as the columns of a struct that all versions of an API share.

    ``api`` is a name (``"OffsetCommit"``) or a key, ``direction`` ``"request"`` or ``"response"``. A field that a
    version lacks is null there. Integers have the type that holds them, bytes are binary, uuids Kafka's text form, an
    ``error_code`` is its name, and a record set its size (``struct<bytes: bigint>``), or with ``payloads`` binary.
    Raises ``ValueError`` for an API or direction that there is not.
    """
    try:
        from kwire.tables import reading
    except ModuleNotFoundError as missing:
        if missing.name in ("numba", "numpy", "pyarrow"):
            raise MissingExtraError("schemas of bodies", "capture") from None
        raise
    return reading.schema_of(api, direction, payloads=payloads)
