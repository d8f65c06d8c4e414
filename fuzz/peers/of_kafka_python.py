"""kafka-python 3: ``kwire fuzz run --lines --cmd 'python -m fuzz.peers.of_kafka_python'``."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from kafka.protocol.api_message import ApiMessage
from kafka.record.memory_records import MemoryRecords

from fuzz.peers import SkipError, serve

_FOLDERS = ("admin", "consumer", "metadata", "producer", "sasl")


def _known() -> dict[tuple[str, int], Any]:
    for one in _FOLDERS:
        module = importlib.import_module(f"kafka.protocol.{one}")
        for inner in pkgutil.iter_modules(getattr(module, "__path__", ())):
            importlib.import_module(f"{module.__name__}.{inner.name}")
    found: dict[tuple[str, int], Any] = {}
    left = [ApiMessage]
    while left:
        one = left.pop()
        left += one.__subclasses__()
        if getattr(one, "_json", None) and one._class_version is None:
            found.setdefault((one.type, one.API_KEY), one)
    return found


CLASSES = _known()


def read(role: str, api_key: int, version: int, at: int | None, frame: bytes) -> bytes | None:
    """Header and body of a frame, or a record set."""
    if role == "records":
        sets = MemoryRecords(frame)
        while (batch := sets.next_batch()) is not None:
            list(batch)
        return None
    cls = CLASSES.get((role, api_key))
    if cls is None or cls.max_version is None or version > cls.max_version:
        raise SkipError
    if at is None:
        cls.decode(frame, version=version, header=True)
        return None
    made = cls.decode(frame[at:], version=version)
    if not hasattr(made, "_header"):
        made._header = None  # else it cannot be written again
    try:
        written: bytes = made.encode(version=version)
    except Exception:
        return None
    return written


if __name__ == "__main__":
    serve(read)
