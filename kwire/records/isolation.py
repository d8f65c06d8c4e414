"""What a consumer with ``isolation.level=read_committed`` does not get, by producers and offsets.

A transaction is the batches of a producer up to its next marker (KIP-98). A marker is a control record: it says that
the transaction is committed or aborted. A log has all markers. A consumer gets the aborted transactions of what it
fetches, each by its producer and first offset. It forgets one at its marker.

Source: ``CompletedFetch`` of Kafka's consumer, ``ProducerStateManager`` and ``TransactionIndex`` of its broker.
"""

from __future__ import annotations

from typing import Any, Final

from kwire.errors import MissingExtraError

try:
    import numpy as np
except ImportError as _missing:  # pragma: no cover - depends on the installation
    raise MissingExtraError("records as columns", "capture") from _missing

from kwire.records.control import CONTROL_TYPES

__all__ = ["ABORT", "COMMIT", "NEEDED", "Points", "aborted"]

Ints = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

ABORT: Final = CONTROL_TYPES[0]
"""Control record (str) that ends a transaction without effect (KIP-98)."""
COMMIT: Final = CONTROL_TYPES[1]
"""Control record (str) that commits a transaction (KIP-98)."""

NEEDED: Final = ("offset", "producer_id", "is_transactional", "is_control")
"""The columns that distinguish records."""

NONE: Final = -1


class Points:
    """Offsets at which something happens to a producer, to be looked up for many records at once.

    ``producers`` are any numbers, ``offsets`` are not negative. ``order`` sorts both by producer, then by offset;
    what the methods return counts in this order.
    """

    def __init__(self, producers: Ints, offsets: Ints) -> None:
        self.order: Ints = np.lexsort((offsets, producers))
        self.offsets: Ints = offsets[self.order]
        self._producers = producers[self.order]
        self._known = np.unique(producers)
        self._at = np.unique(offsets)
        self._keys = self._keyed(self._producers, self.offsets)

    def __len__(self) -> int:
        return len(self.offsets)

    def before(self, producers: Ints, offsets: Ints) -> Ints:
        """The last point of each producer that is not after its offset; -1 if it has none."""
        return self._of(producers, np.searchsorted(self._keys, self._keyed(producers, offsets), "right") - 1)

    def after(self, producers: Ints, offsets: Ints) -> Ints:
        """The first point of each producer that is after its offset; -1 if it has none."""
        return self._of(producers, np.searchsorted(self._keys, self._keyed(producers, offsets), "right"))

    def _keyed(self, producers: Ints, offsets: Ints) -> Ints:
        """One number for both, in the same order."""
        rank = np.searchsorted(self._at, offsets, "right")
        keyed: Ints = np.searchsorted(self._known, producers) * (len(self._at) + 1) + rank
        return keyed

    def _of(self, producers: Ints, found: Ints) -> Ints:
        if not len(self):
            return np.full(len(found), NONE)
        within = (found >= 0) & (found < len(self))
        found = np.where(within, found, 0)
        made: Ints = np.where(within & (self._producers[found] == producers), found, NONE)
        return made


def aborted(producers: Ints, offsets: Ints, begun: Points, markers: Points) -> Flags:
    """Which transactional records belong to aborted transactions, as a consumer finds it out.

    ``begun``: the first offsets of the aborted transactions that a response lists; ``markers``: the abort markers
    among its records. A record is one of a transaction that began at or before it and has no marker in between.
    """
    begins, ends = begun.before(producers, offsets), markers.before(producers, offsets)
    last = np.append(markers.offsets, NONE)[ends]
    made: Flags = np.append(begun.offsets, NONE)[begins] > last
    return made
