"""The table ``messages``: the frames, with the decoded body as JSON text.

Bodies are decoded one by one, in Python, and only where a column needs it: ``body``, and ``status`` and ``error``,
which say so where a body is not what its version says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.capture.frames import Frames
from kwire.errors import KwireError, UnsupportedVersionError
from kwire.kernels.layouts import Status
from kwire.protocol.describe import to_json
from kwire.protocol.headers import decode_request, decode_response
from kwire.tables import columns, showing
from kwire.tables.definition import CaptureTable, Maker, words
from kwire.tables.frames import SCHEMA as FRAMES
from kwire.tables.frames import STATUSES, Capture, FrameColumns
from kwire.tables.showing import Column

__all__ = ["SCHEMA", "TABLE"]

SCHEMA: Final = pa.schema([*FRAMES, pa.field("body", pa.string())])
"""The columns of ``frames``, and ``body``: the decoded body as JSON text (bytes are base64); null unless ``status`` is
ok."""

_DECODED: Final = frozenset(("body", "status", "error"))


class _Maker(Maker):
    def __init__(self, name: str, schema: pa.Schema, memory: dict[str, Any]) -> None:
        self._capture = Capture(name)
        self._schema = schema
        self._decodes = not _DECODED.isdisjoint(schema.names)
        self._writes = "body" in schema.names

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        if not self._decodes:
            yield columns.filled(self._schema, FrameColumns(self._capture, frames).column)
            return
        statuses = frames["status"].copy()
        bodies: list[str | None] = [None] * len(frames)
        errors: dict[int, str] = {}
        rows = np.flatnonzero(statuses == Status.OK)
        about = (frames[name][rows].tolist() for name in ("response", "api", "version"))
        for row, *of_frame in zip(rows.tolist(), *about, strict=True):
            try:
                bodies[row] = self._body(frames.bytes_of(row), *of_frame)
            except UnsupportedVersionError as error:
                errors[row] = str(error)
                statuses[row] = Status.UNSUPPORTED
            except KwireError as error:
                errors[row] = str(error)
                statuses[row] = Status.MALFORMED
        made = FrameColumns(self._capture, frames, statuses, errors)
        yield columns.filled(
            self._schema, lambda name: pa.array(bodies, pa.string()) if name == "body" else made.column(name)
        )

    def _body(self, data: bytes, response: int, api: int, version: int) -> str | None:
        """The body of a frame as JSON, where that is wanted. Raises ``KwireError`` for one that cannot be decoded."""
        if response:
            answer = decode_response(data, api_key=api, api_version=version)
            return to_json(answer.body, answer.api_version) if self._writes else None
        body = decode_request(data).body
        return to_json(body, version) if self._writes else None


TABLE: Final = CaptureTable(
    name="messages",
    schema=SCHEMA,
    file="capture",
    statuses=words(STATUSES),
    maker=_Maker,
    shown=(
        Column("time", showing.time("timestamp"), shrink=15),
        Column("client", showing.host("client"), shrink=15),
        Column("", showing.way),
        Column("api", showing.api, shrink=12),
        Column("corr", showing.plain("correlation_id"), right=True),
        Column("status", showing.status, shrink=8, empty="ok"),
        Column("body", showing.plain("body"), shrink=30),
    ),
)
