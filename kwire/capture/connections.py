"""All connections of a capture as columns: what ``Tracker.known`` gives when the capture has ended.

A connection is a row, whatever it carries. ``kwire.kernels.layouts`` says what its columns are: ``Connection`` those of
``rows``, ``Stream`` those of ``sent``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.capture.encrypted import Tls
from kwire.capture.frames import host
from kwire.kernels.tracking import MOST_WINDOW

__all__ = ["Connections"]

Array = Any


class Connections:
    """The connections of a capture, in the order of their numbers.

    ``rows`` is the table of connections, ``sent[0]`` and ``sent[1]`` the streams that A and B sent. ``client_id(n)`` is
    the client_id with the number ``n`` (None for -1), ``tls(row)`` what is known of TLS.
    """

    def __init__(
        self, rows: Array, streams: Array, client_id: Callable[[int], str | None], tls: Callable[[int], Tls | None]
    ) -> None:
        self.rows = rows
        self.sent: tuple[Array, Array] = (streams[0::2], streams[1::2])
        self.client_id = client_id
        self.tls = tls

    def __len__(self) -> int:
        return len(self.rows)

    def hosts(self, first: int, last: int) -> tuple[list[str], list[str]]:
        """The addresses of the ends A and B of the connections from ``first`` on and before ``last``."""
        rows = self.rows[first:last]
        family = rows["family"].tolist()
        a, b = (
            list(map(host, family, rows[f"{end}_high"].tolist(), rows[f"{end}_low"].tolist())) for end in ("a", "b")
        )
        return a, b

    def missing(self, side: int) -> Array:
        """How many bytes of the stream that A (0) or B (1) sent the capture has not: it lacks their packets, or they
        were cut off. The other end may have acknowledged some that come after all that was captured."""
        sent = self.sent[side]
        lost = sent["lost"].copy()
        for hole in (1, 2, 3, 4):
            lost += sent[f"hole_{hole}_end"] - sent[f"hole_{hole}"]
        # As `ordering._lost_at_the_end` has it: one alone may be a FIN, which takes a sequence number too.
        after = sent["acked"] - sent["reference"]
        counts = (sent["reference"] >= 0) & (sent["end"] < 0) & (after > 1) & (after <= MOST_WINDOW)
        return lost + after * counts
