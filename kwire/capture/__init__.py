"""Captures (pcap, pcapng): the frames in them, and the tables that are made from those.

``read`` takes a path or a binary file object and yields ``pyarrow.RecordBatch`` with the columns of ``kwire.tables``.
``Reading`` (``kwire.capture.reading``) gives the frames themselves.

Importing this package imports neither numpy, pyarrow nor numba: ``read`` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from kwire.errors import CaptureError, needed
from kwire.naming import public
from kwire.opening import check_file, open_file
from kwire.options import PYTHON, CaptureOptions, documented, settled

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.capture.reading import Source

__all__ = ["read", "schema_of"]


@overload
def read(
    source: Source | str | PathLike[str] | Sequence[Source | str | PathLike[str]],
    table: str = ...,
    *,
    tables: None = ...,
    columns: Sequence[str] | None = ...,
    name: str | Sequence[str] = ...,
    **options: Unpack[CaptureOptions],
) -> Iterator[pa.RecordBatch]: ...
@overload
def read(
    source: Source | str | PathLike[str] | Sequence[Source | str | PathLike[str]],
    *,
    tables: Iterable[str],
    columns: Mapping[str, Sequence[str]] | None = ...,
    name: str | Sequence[str] = ...,
    **options: Unpack[CaptureOptions],
) -> Iterator[tuple[str, pa.RecordBatch]]: ...
def read(
    source: Source | str | PathLike[str] | Sequence[Source | str | PathLike[str]],
    table: str = "frames",
    *,
    tables: Iterable[str] | None = None,
    columns: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    name: str | Sequence[str] = "",
    **options: Unpack[CaptureOptions],
) -> Iterator[pa.RecordBatch] | Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of a table of one capture, as Arrow batches that are not empty.

    ``source`` is the path of a capture, or a binary file object that is read once from its current position. A file
    that is compressed is decompressed, a file object is not. A path is also the ``name``, unless ``name`` is given. A
    list of sources is one capture that was cut in several files, in order of time. Connections and clients go on from
    one file to the next. The tables ``connections`` and ``hono`` do not take a list. ``name`` is then a list as well,
    or one name for all. ``name`` fills the column ``capture`` and stands in errors. ``table`` is a name that
    ``kwire.tables.names`` gives for ``"capture"`` (``frames``, ``messages``, ``records`` and so on) or ``"events"``.
    ``tables`` takes several names instead: one pass makes them all and yields pairs of a table's name and a batch.
    ``columns`` chooses columns, in the order given. With ``tables`` it does so by the name of the table. What no chosen
    column needs is not computed.

    ``options`` are the keywords of ``kwire.options.CaptureOptions``. ``help(kwire.capture.read)`` and
    docs/reference/options.md list them with their meaning and defaults.

    Raises:

    - ``CaptureError`` for what is no capture. A capture that is truncated or damaged raises it too, after all batches
      that stand before the damage.
    - ``TypeError`` for an unknown option.
    - ``ValueError`` for an unknown table, column, API or status.
    - ``MissingExtraError`` without the extra ``capture``. For ``client_metrics`` the extra ``events`` is needed too,
      with ``keylog`` the extra ``tls``.
    - ``OSError`` for a capture or key log that cannot be opened.
    """
    options = settled(options)
    with needed("reading captures", "capture"):
        from kwire.capture.compressed import decompressed
        from kwire.tables import reading
        from kwire.tls import KeyLog
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
    # Before anything is read: what is wrong with them is no fault of a capture.
    options["keylog"] = KeyLog.of(options["keylog"])
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
            # Closed with the file, if it is another object.
            sources[index] = decompressed(opened.enter_context(open_file(one, named=True)))
            names[index] = names[index] or public(one)
        else:
            check_file(one, "a capture")
    if several:
        found = reading.read_in_order(sources, wanted, names, **options)
    else:
        found = reading.read(sources[0], wanted, name=names[0], **options)
    found = _and_closed(found, opened, names[0] if len(names) == 1 else None)
    return found if tables is not None else _without_name(found)


read.__doc__ = f"{read.__doc__}\n    Options:\n\n{documented(PYTHON)}\n    "


def _and_closed(
    found: Iterator[tuple[str, pa.RecordBatch]], opened: ExitStack, name: str | None
) -> Iterator[tuple[str, pa.RecordBatch]]:
    from kwire.capture.compressed import DamagedError

    with opened:
        try:
            yield from found
        except DamagedError as error:
            # Compressed, and damaged before anything came out of it.
            raise CaptureError(str(error), file=name or None) from error


def _without_name(found: Iterator[tuple[str, pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    for _, batch in found:
        yield batch


def schema_of(api: str, direction: str, *, payloads: bool = False) -> pa.Schema:
    """The fields of a body, as the columns of a struct that all versions of an API share.

    ``api`` is a name (``"OffsetCommit"``) or a key, ``direction`` ``"request"`` or ``"response"``. A field that a
    version lacks is null there. Integers have the type that holds them, bytes are binary, and uuids have Kafka's text
    form. An ``error_code`` is its name. A record set is its size (``struct<bytes: bigint>``), or with ``payloads``
    binary. Raises ``ValueError`` for an API or direction that does not exist.
    """
    with needed("schemas of bodies", "capture"):
        from kwire.tables import reading
    return reading.schema_of(api, direction, payloads=payloads)
