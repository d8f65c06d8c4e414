"""kio: ``kwire fuzz run --lines --cmd 'python -m fuzz.peers.of_kio'``."""

from __future__ import annotations

import io
from typing import Any

from kio import index
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType
from kio.static.primitive import i16

from fuzz.peers import SkipError, serve


def read(role: str, api_key: int, version: int, at: int | None, frame: bytes) -> bytes | None:
    """Header and body of a frame."""
    if role in ("records", "capture"):
        raise SkipError
    kind = EntityType.request if role == "request" else EntityType.response
    load: Any = index.load_request_schema if kind is EntityType.request else index.load_response_schema
    try:
        cls = load(i16(api_key), i16(version))
    except Exception as error:
        raise SkipError from error
    if at is None:
        at = entity_reader(cls.__header_schema__)(frame, 0)[1]
        entity_reader(cls)(frame[at:], 0)
        return None
    made, _ = entity_reader(cls)(frame[at:], 0)
    out = io.BytesIO()
    try:
        entity_writer(cls)(out, made)
    except Exception:
        return None
    return out.getvalue()


if __name__ == "__main__":
    serve(read)
