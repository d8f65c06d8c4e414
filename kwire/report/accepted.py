"""Which requests were not refused, out of rows of ``partitions``: what a response refuses was not done.

A request without a response yet waits for it: for those of the next batch at least. One whose response was not captured
counts, since most are accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from kwire.report.tallies import Array, Rows, WithEarlier

__all__ = ["NEEDED", "Accepted"]

_REQUEST: Final = ("capture", "connection", "correlation_id")
_PART: Final = (*_REQUEST, "topic", "topic_id", "partition")
NEEDED: Final = (*_PART, "direction", "error")
"""The columns that it looks at."""


class Accepted:
    """Takes rows of requests and responses, batch by batch.

    ``columns``: those of the waiting rows, ``NEEDED`` among them.

    ``patience``: how many rows may wait for longer than the next batch, the oldest of more count.
    """

    def __init__(self, columns: Sequence[str], patience: int = 0) -> None:
        self._columns = columns
        self._patience = patience
        self.waiting: pa.Table | None = None
        """Requests without a response, those of the batch before or of earlier ones."""

    def take(self, rows: Rows, at: Array) -> tuple[Rows, Array, int]:
        """Take the rows ``at`` of a batch.

        Returns rows, which of them are accepted requests, and how many of these have waited; they come first.
        """
        asked = rows.mask("direction", "request")
        at = at[np.where(asked, rows.valid("partition"), rows.valid("correlation_id"))[at]]
        old = 0
        if self.waiting is not None:
            old = self.waiting.num_rows
            rows = WithEarlier(Rows(self.waiting), rows, self._columns)
            at = np.append(np.arange(old), at + old)
            asked = rows.mask("direction", "request")
            self.waiting = None
        if not len(at):
            return rows, at, 0
        asked = asked[at]
        order = np.arange(len(at))
        requests = rows.numbers(_REQUEST, at)
        # An id is used again after its answer: the rows after its last response wait.
        answered = np.full(int(requests.max()) + 1, -1)
        answered[requests[~asked]] = order[~asked]
        waits = asked & (answered[requests] < order) & rows.valid("correlation_id")[at]
        again = np.flatnonzero(waits[:old])
        waits[again[: max(0, len(again) - self._patience)]] = False
        kept = asked & ~waits & ~_refused(rows, at, requests, asked)
        if waits.any():
            self.waiting = rows.part(self._columns, at[waits])
        return rows, at[kept], int(kept[:old].sum())


def _refused(rows: Rows, at: Array, requests: Array, asked: Array) -> Array:
    """Which rows are followed by a response that says that what they ask was not done.

    Mostly nothing of a request was refused. Then its parts are not looked at.
    """
    refused = np.zeros(len(at), bool)
    wrong = ~asked & (rows.valid("error") & ~rows.mask("error", "NONE"))[at]
    if wrong.any():
        some = np.zeros(int(requests.max()) + 1, bool)
        some[requests[wrong]] = True
        there = np.flatnonzero(some[requests])
        # Rows of one part of a request stand in the order of time.
        parts = rows.numbers(_PART, at[there])
        order = np.argsort(parts, kind="stable")
        same = np.diff(parts[order]) == 0
        there = there[order]
        refused[there[:-1]] = same & wrong[there[1:]]
    return refused
