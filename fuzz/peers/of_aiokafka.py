"""aiokafka: ``kwire fuzz run --lines --cmd 'python -m fuzz.peers.of_aiokafka'``. It reads responses and record sets."""

from __future__ import annotations

import importlib
import io
import pkgutil
from typing import Any

import aiokafka.protocol
from aiokafka.protocol.api import Response
from aiokafka.record.memory_records import MemoryRecords

from fuzz.peers import SkipError, serve


def _known() -> dict[tuple[int, int], Any]:
    for one in pkgutil.iter_modules(aiokafka.protocol.__path__):
        importlib.import_module(f"aiokafka.protocol.{one.name}")
    found: dict[tuple[int, int], Any] = {}
    left: list[Any] = [Response]
    while left:
        one = left.pop()
        left += one.__subclasses__()
        if isinstance(getattr(one, "API_VERSION", None), int):
            found.setdefault((one.API_KEY, one.API_VERSION), one)
    return found


CLASSES = _known()


def read(role: str, api_key: int, version: int, at: int | None, frame: bytes) -> bytes | None:
    """The body of a response, or a record set."""
    if role == "records":
        sets = MemoryRecords(frame)
        while (batch := sets.next_batch()) is not None:
            list(batch)
        return None
    cls = CLASSES.get((api_key, version))
    if role != "response" or cls is None or at is None:
        raise SkipError
    made = cls.decode(io.BytesIO(frame[at:]))
    try:
        written: bytes = made.encode()
    except Exception:
        return None
    return written


if __name__ == "__main__":
    serve(read)
