"""How much a record set may ask for: one object, the same for objects and columns.

Every length and count in a record set is checked against the bytes that are there before anything is allocated, so only
compression can make little input ask for much memory. ``Limits`` bounds that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["DEFAULT_LIMITS", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What decoding may use. All sizes are in bytes.

    ``decompressed``: the most that one compressed batch or wrapper message may decompress to. The default, 32 MiB, is
    what a producer with default settings may hold in memory for all its batches together (``buffer.memory``).
    ``total``: the most that all of them in one call may decompress to together, 1 GiB.
    ``nesting``: how many wrapper messages may stand inside each other in message sets (magic 0 and 1); Kafka itself has
    not written more than one since 0.11. A batch of magic 2 cannot be nested.
    """

    decompressed: int = 32 << 20
    total: int = 1 << 30
    nesting: int = 4

    def __post_init__(self) -> None:
        if min(self.decompressed, self.total, self.nesting) < 0:
            raise ValueError("limits cannot be negative")
        if self.total > 1 << 30:
            # Arrow's binary columns count bytes with an int32; input and decompressed data together must stay below.
            raise ValueError("the limit for one call cannot be above 1 GiB")


DEFAULT_LIMITS: Final = Limits()
"""What ``decode``, ``to_arrow`` and ``decode_sets`` use unless they are told otherwise."""
