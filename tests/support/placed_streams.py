"""What ``streams.place`` would hand on of one connection, made by hand: what roles, pairing and framing read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kwire.kernels.directions import DIRECTION, Capture, Scratch
from kwire.kernels.layouts import ABSENT, ACTIVE, AT_THE_END, CONNECTION, NAME, NAMES_USED, PIECE, ROOM, STREAM, WAITING
from kwire.kernels.numbers import SLACK
from kwire.kernels.programs import MAX_DEPTH, registers_of
from kwire.kernels.roles import Window

Run = Sequence[tuple[int, bytes | int]]
"""Pieces of one direction: position and bytes, or the number of bytes that the capture does not have."""


def connection(*, ports: tuple[int, int] = (40000, 9092), opener: int = -1, **fields: int) -> Any:
    """A table of one connection, nothing of which is known."""
    table = np.zeros(1, CONNECTION)
    table["a_port"], table["b_port"] = ports
    table["opener"] = opener
    for name in ("waiting_head", "waiting_tail", "waiting_front", "waiting_new", "first_id", "latest_id", "client"):
        table[name] = -1
    table["begun_order"], table["settled_order"] = -1, -1
    table["opener_order"], table["closed_order"], table["closed_clock"] = -1, AT_THE_END, ABSENT
    for name, value in fields.items():
        table[name] = value
    return table


def directions(*, start: int = -1, next: int = 0, synced: int = -1) -> Any:  # noqa: A002 - as the column is called
    """A table of the two streams of a connection."""
    table = np.full(2, -1, STREAM)
    table["start"], table["next"], table["synced"], table["skipped"] = start, next, synced, 0
    table["since"], table["holed"] = AT_THE_END, 0
    return table


def window(a: Run = (), b: Run = (), *, orders: Sequence[int] = (), now: int = 0, **fields: Any) -> Window:
    """The pieces of both directions; ``orders``: of each piece in turn, which is its time as well. The last packet is
    that of ``now``, if that is later."""
    data = b""
    pieces: list[tuple[int, ...]] = []
    active = []
    for side, run in enumerate((a, b)):
        first = len(pieces)
        for pos, content in run:
            order = orders[len(pieces)] if orders else len(pieces)
            lost = isinstance(content, int)
            off = -1 if lost else len(data)
            head = 0 if lost or len(content) < 4 else int.from_bytes(content[:4], "big", signed=True)
            pieces.append(
                (pos, content if lost else len(content), off, order, order, order, AT_THE_END, order, -1, head)
            )
            data += b"" if lost else content
        if run:
            active.append((side, first, len(pieces), *[0] * (len(ACTIVE.names) - 3)))
    first_order = int(fields.get("first_order", 0))
    last = max((piece[4] for piece in pieces), default=first_order - 1)
    made = {
        "clock": np.array([*range(first_order, last + 1), *[now] * (now > last)], np.int64),
        "first_order": first_order,
        "ration": 1 << 30,
        "forced": False,
        "final": False,
    }
    buf = np.frombuffer(bytearray(data + bytes(SLACK)), np.uint8)
    return Window(buf, np.array(pieces, PIECE), np.array(active, ACTIVE), **(made | fields))


def state(connections: Any, streams: Any, waiting: int = 64, names: int = 64, pool: int = 1 << 16) -> Capture:
    """Empty tables around those of the connection."""
    room = np.zeros(1, ROOM)
    room["free"] = -1
    return Capture(
        connections,
        streams,
        np.zeros(waiting, WAITING),
        np.full(1 << max(1, waiting).bit_length(), -1, np.int64),
        np.zeros(names, NAME),
        np.zeros(pool, np.uint8),
        np.full(4 * max(1, names), -1, np.int64),
        np.zeros(1, NAMES_USED),
        room,
    )


def scratch() -> Scratch:
    return Scratch(np.zeros(2, DIRECTION), registers_of(1), np.zeros(MAX_DEPTH, np.int64), np.zeros((0, 3), np.int64))
