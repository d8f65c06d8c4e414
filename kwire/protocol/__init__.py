"""Streams to frames, frames to headers and bodies, requests paired with their responses.

``Connection`` is one connection of a client or a broker without its sockets (``kwire.protocol.connection``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kwire.protocol.connection import Connection

__all__ = ["Connection"]


def __getattr__(name: str) -> Any:
    # Imported when first used (PEP 562): reading captures needs other modules of this package.
    if name != "Connection":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kwire.protocol.connection import Connection

    return Connection
