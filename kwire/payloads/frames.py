"""A column of payloads as ``Frames``: what captures are decoded by, over the column's own bytes.

``windows`` cuts a column into parts that are decoded at once. ``Reader.frames`` makes the table of frames of a part.
Rules kept here:

- No byte of a payload is copied, unless the column is of a type that kernels do not read (views, fixed size).
- A payload whose header is not usual has no frame (``Status.MALFORMED``): it is decoded by itself.
- Whether a payload begins with a size is a number of each (``sized``); ``kwire.payloads.sizes`` finds it out.
- Names of clients are made into text once for many payloads. They are forgotten where there are too many.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire import schema, wire
from kwire.capture.frames import Frames
from kwire.kernels.engine import OF_A_FRAME, choose
from kwire.kernels.layouts import ABSENT, CONNECTION, FRAME
from kwire.kernels.names import NameTable
from kwire.kernels.payloads import payload_headers
from kwire.protocol.headers import request_header_version
from kwire.protocol.secrets import is_doubtful
from kwire.records.window import writable

__all__ = ["Buffer", "Reader", "buffer_of", "forms", "windows"]

Array = Any

WINDOW: Final = 4 << 20
"""Bytes of payloads that are decoded at once."""
MOST_PAYLOADS: Final = 1 << 14
"""Payloads that are decoded at once: each has some 200 bytes in its columns while it is looked at."""
_MOST_NAMES: Final = 1 << 16


class Buffer(NamedTuple):
    """The payloads of an array: ``data[ends[k] : ends[k + 1]]``, of those that are ``valid`` (0: null)."""

    data: Array
    ends: Array
    valid: Array


def sizes_of(column: pa.Array) -> Array:
    """The bytes of each payload. 0 for null."""
    return pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)


def windows(column: pa.Array) -> Iterator[tuple[int, pa.Array]]:
    """Parts of a column that are decoded at once, each with the number of its first payload."""
    ends = np.cumsum(sizes_of(column))
    first = 0
    while first < len(column):
        begin = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, begin + WINDOW, "right")), first + 1)
        last = min(last, first + MOST_PAYLOADS, len(column))
        yield first, column.slice(first, last - first)
        first = last


def buffer_of(column: pa.Array) -> Buffer:
    """The bytes of an array of ``binary`` or ``large_binary``."""
    wide = pa.types.is_large_binary(column.type)
    valid, ends, data = column.buffers()
    n, offset = len(column), column.offset
    places = np.zeros(1, np.int64)
    if ends is not None and n:
        places = np.frombuffer(ends, np.int64 if wide else np.int32)[offset : offset + n + 1].astype(np.int64)
    bytes_ = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    there = np.ones(n, np.uint8) if valid is None else column.is_valid().to_numpy(False).astype(np.uint8)
    return Buffer(writable(bytes_[places[0] : places[-1]]), places - places[0], there)


def forms() -> Array:
    """The version of a request's header by API key and version. -1: not known."""
    return _forms(schema.generation())


@lru_cache(maxsize=1)
def _forms(generation: int) -> Array:
    keys = [key for key in schema.api_keys() if schema.request(key) is not None]
    found = {key: message for key in keys if (message := schema.request(key)) is not None}
    most = max(message.versions.high for message in found.values())
    made = np.full((max(keys) + 1, most + 1), -1, np.int8)
    for key, message in found.items():
        for version in message.versions:
            made[key, version] = request_header_version(key, version)
    return made


_NO_NAMES: Final = pa.array([], pa.string())


class Reader:
    """Makes frames of payloads, and knows the names of their clients by number."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._table = NameTable()
        self._names: list[str] = []
        self._doubtful: list[bool] = []
        self._texts = _NO_NAMES

    def frames(
        self, column: pa.Array, sized: Array, *, keys: Array | None = None, versions: Array | None = None
    ) -> Frames:
        """The frames of an array of bytes: requests, or with ``keys`` and ``versions`` (int64, ABSENT: not known) the
        responses to such. One that is not usual has the status ``MALFORMED``.

        ``sized``: of each whether it begins with its size (``kwire.kernels.payloads``)."""
        if len(self._table) > _MOST_NAMES:
            self._forget()
        buffer = buffer_of(column)
        n = len(column)
        rows = np.empty(n, FRAME)
        response = int(keys is not None)
        if keys is not None and versions is not None:
            rows["api"], rows["version"] = keys, versions
        client_ids = np.empty((2, n), np.int64)
        engine = choose(OF_A_FRAME * n)
        engine(payload_headers)(buffer.data, buffer.ends, buffer.valid, sized, response, forms(), rows, client_ids)
        if not response:
            rows["client"] = self._table.numbers(buffer.data, client_ids[0], client_ids[1], engine)
        return Frames(rows, buffer.data, np.zeros(1, CONNECTION), self._table.names, self._table.pool)

    def _learn(self) -> None:
        new = self._table.values()[len(self._names) :]
        if new:
            texts = [one.decode("utf-8", "surrogateescape") for one in new]
            self._doubtful += map(is_doubtful, texts)
            self._names += map(wire.printable, texts)
            self._texts = pa.array(self._names, pa.string())

    def client_ids(self, numbers: Array) -> pa.Array:
        """The column ``client_id`` of frames, by the number of their client (-1: null)."""
        self._learn()
        none = numbers < 0
        if none.all():
            return pa.nulls(len(numbers), pa.string())
        return self._texts.take(pa.array(numbers, mask=none if none.any() else None))

    def doubtful(self, numbers: Array) -> Array:
        """Which frames have a client_id that may be no such thing (``is_doubtful``)."""
        self._learn()
        made: Array = np.array([*self._doubtful, False], bool)[numbers]
        return made


def known(column: pa.Array) -> Array:
    """API keys or versions as int64. ABSENT: null, or a number that is none of 16 bits."""
    values = pc.fill_null(column.cast(pa.int64(), safe=False), ABSENT).to_numpy(zero_copy_only=False)
    made: Array = np.where((values >= -32768) & (values <= 32767), values, ABSENT)
    return made
