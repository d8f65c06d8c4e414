"""Control records: what the broker writes into a partition in addition to the producers' records.

A control batch (attributes bit 5) holds records whose key starts with two int16, version and type. Transaction markers
(KIP-98) end a transaction; the others belong to KRaft's metadata log (KIP-595, KIP-630, KIP-853). A type that is not
known is kept as a number: a newer broker's log must stay readable.
"""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["CONTROL_TYPES", "KRAFT_TYPES", "control_key", "control_type", "control_type_name"]

CONTROL_TYPES: Final = (
    "abort",
    "commit",
    "leader_change",
    "snapshot_header",
    "snapshot_footer",
    "kraft_version",
    "kraft_voters",
)
"""Names of the control types, by number."""

KRAFT_TYPES: Final = frozenset(CONTROL_TYPES[2:])
"""Those that only the log of ``__cluster_metadata`` and its snapshots have."""

_KEY: Final = struct.Struct(">hh")


def control_type_name(number: int) -> str:
    """The name of control type ``number``; ``unknown(7)`` for one that has none."""
    return CONTROL_TYPES[number] if 0 <= number < len(CONTROL_TYPES) else f"unknown({number})"


def control_type(key: bytes | None) -> str | None:
    """The name of the control type in the ``key`` of a control record.

    None when the key is too short to have one.
    """
    if key is None or len(key) < _KEY.size:
        return None
    return control_type_name(_KEY.unpack_from(key)[1])


def control_key(name: str, *, version: int = 0) -> bytes:
    """The key of a control record of type ``name`` (one of ``CONTROL_TYPES``)."""
    return _KEY.pack(version, CONTROL_TYPES.index(name))
