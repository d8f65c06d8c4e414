"""Schemas: every message that kwire knows, as ``kwire.schema.model`` objects.

The functions here ask one catalog of the process. It has the built-in schema files, parsed file by file when first
needed, and the folders that ``load_folder`` added. The format is described in ``schemas/README.md``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kwire.schema.loader import Catalog
from kwire.schema.model import Message
from kwire.schema.parser import parse

__all__ = ["api_keys", "generation", "kept", "load_folder", "message", "names", "parse", "request", "response", "texts"]

_catalog = Catalog()
_kept: list[dict[Any, Any]] = []


def request(api_key: int) -> Message | None:
    """The request of an API key (``request(0)`` is ``ProduceRequest``); ``None`` when no schema has the key."""
    return _catalog.by_key("request", api_key)


def response(api_key: int) -> Message | None:
    """The response of an API key; ``None`` when no schema has the key."""
    return _catalog.by_key("response", api_key)


def message(name: str) -> Message:
    """The message that Kafka calls ``name`` (``FetchResponse``, ``RequestHeader``, ``OffsetCommitValue``).

    Raises ``SchemaError`` when there is none.
    """
    return _catalog.by_name(name)


def names(folder: str = "") -> tuple[str, ...]:
    """Names of all messages, sorted; with ``folder`` those of one folder of ``schemas/``, such as ``kraft``.

    No file is parsed for it.
    """
    return _catalog.names(folder)


def api_keys() -> dict[int, str]:
    """API key -> API name, ``{0: "Produce", 1: "Fetch", ...}``, in order of key. No file is parsed for it."""
    return _catalog.api_keys()


def generation() -> int:
    """How many folders were loaded so far: what was made of all messages is out of date when it has changed."""
    return _catalog.generation


def texts() -> list[tuple[str, bytes]]:
    """The names and contents of the built-in schema files, in order."""
    return _catalog.texts()


def kept() -> dict[Any, Any]:
    """An empty dictionary for what is made of messages found by key or name; loading a folder empties it."""
    made: dict[Any, Any] = {}
    _kept.append(made)
    return made


def load_folder(path: str | Path) -> list[Message]:
    """Load every ``*.kwire`` file below ``path`` in addition to the built-in schemas, and return its messages.

    A message or API key that the built-in schemas have as well is replaced. Load folders before the first message
    of theirs is decoded: codecs that were compiled already stay as they are. Raises ``SchemaError``; then nothing was
    added.
    """
    found = _catalog.load_folder(path)
    for one in _kept:
        one.clear()
    return found
