"""From a source of bytes to the frames in it: what reads captures for the tables and for everybody else.

``Reading`` asks a binary file object for a window of bytes at a time and yields ``Frames``.

Rules kept here:

- The source is read, never sought; nothing is written.
- After the last byte, or at damage that cannot be passed, everything that is left is dealt with as if the capture ended
  there; only then a ``CaptureError`` is raised. Good data before bad is not lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from kwire.capture.frames import Frames
from kwire.capture.pipeline import WINDOW, Pipeline, Source, Window
from kwire.kernels.layouts import CONNECTION, FRAME, NAME

__all__ = ["WINDOW", "Reading", "Source"]


class Reading:
    """One capture, read from ``source``: iterate over it, once, for its ``Frames``.

    ``ports`` are the broker ports to look at (none: connections are recognised by content). ``window`` is how many
    bytes are read at once. ``progress`` is called with the number of bytes read so far. ``name`` is what errors call
    the capture.

    Iterating raises ``CaptureError`` for what is no capture, and for one that is truncated or damaged, but then after
    the frames of what stands before the damage.
    """

    def __init__(
        self,
        source: Source,
        *,
        ports: Iterable[int] | None = None,
        window: int | None = None,
        progress: Callable[[int], None] | None = None,
        name: str = "",
    ) -> None:
        self._pipeline = Pipeline(source, ports=ports, window=window or WINDOW, progress=progress)

    def __iter__(self) -> Iterator[Frames]:
        for window in self._pipeline.windows():
            yield self._frames(window)

    def _frames(self, window: Window) -> Frames:
        from kwire.protocol import state as s

        p = self._pipeline
        t = np.zeros(len(window.frames), FRAME)
        for name, column in {
            "slot": s.F_SLOT, "response": s.F_RESPONSE, "client_side": s.F_CLIENT_SIDE, "time": s.F_TIME, "off": s.F_OFF,
            "seen": s.F_SEEN, "size": s.F_SIZE, "api": s.F_API, "version": s.F_VERSION, "id": s.F_ID, "client": s.F_CLIENT,
            "latency": s.F_LATENCY, "status": s.F_STATUS, "reason": s.F_WHY, "detail": s.F_DETAIL,
        }.items():  # fmt: skip
            t[name] = window.frames[:, column]
        c = np.zeros(len(p.conns), CONNECTION)
        c["number"] = np.arange(len(c))
        for name, column in {
            "family": s.C_FAMILY, "a_high": s.C_A_HIGH, "a_low": s.C_A_LOW, "b_high": s.C_B_HIGH, "b_low": s.C_B_LOW,
            "a_port": s.C_A_PORT, "b_port": s.C_B_PORT,
        }.items():  # fmt: skip
            c[name] = p.conns[:, column]
        names = np.zeros(len(p.names), NAME)
        names["off"], names["len"] = p.names[:, 0], p.names[:, 1]
        return Frames(t, window.data, window.first, c, names, p.pool)

    def notes(self) -> list[str]:
        """Sentences about what was left out, most important first; empty if nothing was. Complete at the end only."""
        return self._pipeline.notes()
