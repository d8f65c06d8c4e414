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


class Budget:
    """What one call may still decompress.

    What came out is charged to ``Limits.total``. What was tried in vain costs as much, and would cost it again and
    again: a kilobyte of wrappers in each other can hold thousands of bombs. So failures have a quarter of the total to
    themselves; when that is spent, whatever follows may only grow to a usual size (64 times its own, and a MiB), and
    failures are charged to the total too.
    """

    __slots__ = ("_decompressed", "_left", "_patience")

    def __init__(self, limits: Limits) -> None:
        self._decompressed = limits.decompressed
        self._left = limits.total
        self._patience = limits.total // 4

    def limit(self, size: int) -> int:
        """The most that ``size`` compressed bytes may become now."""
        limit = min(self._decompressed, self._left)
        return limit if self._patience > 0 else min(limit, 64 * size + (1 << 20))

    def made(self, size: int) -> None:
        """``size`` bytes came out."""
        self._left -= size

    def failed(self, limit: int, size: int) -> None:
        """``size`` compressed bytes that were allowed to become ``limit`` bytes gave an error."""
        cost = min(limit, 1024 * size + 4096)
        if self._patience > 0:
            self._patience -= cost
        else:
            self._left = max(self._left - cost, 0)


DEFAULT_LIMITS: Final = Limits()
"""What ``decode``, ``to_arrow`` and ``decode_sets`` use unless they are told otherwise."""
