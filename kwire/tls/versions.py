"""Versions of TLS: their numbers on the wire, and their names."""

from __future__ import annotations

from typing import Final

__all__ = ["TLS11", "TLS13", "version_name"]

TLS11: Final = 0x0302
"""TLS 1.1 on the wire (int). Source: RFC 4346."""
TLS13: Final = 0x0304
"""TLS 1.3 on the wire (int). Source: RFC 8446, 4.2.1."""
_NAMES: Final = {0x0300: "SSL 3.0", 0x0301: "TLS 1.0", TLS11: "TLS 1.1", 0x0303: "TLS 1.2", TLS13: "TLS 1.3"}


def version_name(number: int) -> str:
    """``TLS 1.3`` and so on."""
    return _NAMES.get(number, f"TLS 0x{number:04X}")
