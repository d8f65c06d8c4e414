"""What one call, or one capture or segment, may still decompress: ``Limits`` as they are used up.

Every length and count in a record set is checked against the bytes that are there before anything is allocated. So only
compression can make little input ask for much memory.
"""

from __future__ import annotations

from typing import Final

from kwire.errors import DecodeError, LimitError
from kwire.limits import Limits, check_limits
from kwire.records.compression import Data, decompress, most_of

__all__ = ["Budget"]

GROWTH: Final = 32
"""How many times its own size the compressed data of a long capture may become in total.

JSON becomes 5 to 20 times as large.
"""


class Budget:
    """What may still be decompressed: in one call, or in the windows of one capture or segment.

    What came out is charged to ``Limits.total``. What fails to decompress costs as much, and would cost it again and
    again. A kilobyte of nested wrappers can hold thousands of bombs. So failures have something to themselves: twice
    ``Limits.decompressed``, but no more than a quarter of the total. When that is spent, later data may only grow to a
    usual size: 64 times its own, and a MiB. Failures are then charged to the total too.

    ``short``: something was refused that might have been decompressed, had others not taken so much.
    """

    __slots__ = ("_left", "_limits", "_most_patience", "_patience", "short")

    def __init__(self, limits: Limits) -> None:
        check_limits(limits)
        self.short: bool = False
        self._limits = limits
        self._left = limits.total
        self._patience = self._most_patience = min(limits.total // 4, 2 * limits.decompressed)

    def more(self, size: int) -> None:
        """The next window of the same capture or segment has ``size`` bytes of record sets.

        A long input may become more than ``Limits.total``, which is the limit of a single window. When nothing is left
        of that, it may become ``GROWTH`` times what is read.
        """
        self._left = min(self._left + GROWTH * size, self._limits.total)
        self._patience = min(self._patience + GROWTH // 4 * size, self._most_patience)

    def limit(self, size: int) -> int:
        """The most that ``size`` compressed bytes may become now."""
        limit = min(self._limits.decompressed, self._left)
        return limit if self._patience > 0 else min(limit, 64 * size + (1 << 20))

    def made(self, size: int) -> None:
        """``size`` bytes came out."""
        self._left -= size

    def refused(self, wrong: DecodeError, limit: int) -> str:
        """The sentence for data that was allowed to become ``limit`` bytes and was refused."""
        if not isinstance(wrong, LimitError):
            return wrong.message
        name = "decompressed" if limit == self._limits.decompressed else "total"
        self.short |= name == "total"
        return f"{wrong.message}: {self._limits.said(name)}"

    def decompress(self, codec: int, data: Data, *, magic: int = 2, most: int | None = None) -> bytes:
        """What ``data`` decompresses to, at most ``most`` bytes. It is charged, and so is a failure.

        Raises what ``compression.decompress`` raises. The message says which of ``Limits`` it was, if one was.
        """
        limit = self.limit(len(data)) if most is None else min(most, self.limit(len(data)))
        try:
            made = decompress(codec, data, limit, magic=magic)
        except DecodeError as wrong:
            self.failed(limit, most_of(codec, data, limit))
            if limit != most:
                wrong.message = self.refused(wrong, limit)
            raise
        self.made(len(made))
        return made

    def failed(self, limit: int, most: int) -> None:
        """Data that was allowed to become ``limit`` bytes gave an error. ``most``: what it may have become."""
        cost = min(limit, most + 4096)
        if self._patience > 0:
            self._patience -= cost
        else:
            self._left = max(self._left - cost, 0)
