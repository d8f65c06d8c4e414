"""Responses to their requests: the requests of a connection that wait, as a linked list of rows.

Rules kept here (numbers in brackets: the protocol notes that they answer):

- A response names neither its API nor its version: both are its request's. A broker answers the requests of one
  connection in order, so entries before the one that matches will never be answered and are dropped. Correlation
  ids repeat [31], so an entry must not be younger than the response.
- A broker of 0.8.2 may answer FindCoordinator v0 with correlation id 0 [29].
- Each raw SASL token leaves an entry, so that the answer is known to be a token too [11].
- Nothing here grows a table: its caller has looked whether there is a row left.
"""

from __future__ import annotations

from typing import Any, Final

from kwire.kernels.engine import kernel
from kwire.kernels.numbers import i32, int64
from kwire.kernels.roles import LARGEST_FRAME, NEED_MORE, NO, YES, Window
from kwire.kernels.streams import first_from
from kwire.schema.keys import ApiKey

__all__ = ["DISORDER", "SASL_TOKEN", "find", "forget", "given_up", "plausible_response", "wait_for"]

SASL_TOKEN: Final = -2
"""In place of the API key of a request that waits: a raw token."""
MOST_UNANSWERED: Final = 10_000
"""Entries that one connection keeps. Clients have 5 requests in flight, or a few hundred."""
DISORDER: Final = 20_000_000
"""Nanoseconds by which a capture may show a response before its request."""
NEAR: Final = 1000
"""How far a correlation id may be from a known one to be believed where a frame boundary is searched."""

Array = Any


@kernel
def find(waiting: Array, head: int, wanted: int, until: int) -> tuple[int, int]:
    """The first entry with this correlation id that is not younger than ``until``: (row, how many stand before it), row
    -1 if there is none."""
    row = head
    before = 0
    while row >= 0:
        entry = waiting[row]
        if entry.id == wanted and entry.api != SASL_TOKEN and entry.time <= until:
            return row, before
        row = entry.next
        before += 1
    return int64(-1), before


@kernel
def find_request(waiting: Array, head: int, wanted: int, until: int) -> tuple[int, int]:
    """``find``, and for the answer of an old broker with correlation id 0 the FindCoordinator request that is first."""
    row, before = find(waiting, head, wanted, until)
    if row < 0 and wanted == 0 and head >= 0:
        entry = waiting[head]
        if entry.api == ApiKey.FIND_COORDINATOR and entry.version == 0:
            return head, 0
    return row, before


@kernel
def forget(conn: Any, waiting: Array, room: Any, count: int) -> None:
    """Takes the first ``count`` entries off a connection's list."""
    for _ in range(count):
        row = conn.waiting_head
        if row < 0:
            break
        conn.waiting_head = waiting[row].next
        waiting[row].next = room.free
        room.free = row
        conn.waiting -= 1
    if conn.waiting_head < 0:
        conn.waiting_tail = -1
        conn.waiting = 0


@kernel
def wait_for(
    conn: Any, waiting: Array, room: Any, wanted: int, api: int, version: int, client: int, time: int, order: int
) -> None:
    """Appends an entry to a connection's list."""
    if conn.waiting >= MOST_UNANSWERED:
        forget(conn, waiting, room, 1)
    row = room.free
    if row >= 0:
        room.free = waiting[row].next
    else:
        row = room.waiting
        room.waiting += 1
    entry = waiting[row]
    entry.id = wanted
    entry.api = api
    entry.version = version
    entry.client = client
    entry.time = time
    entry.order = order
    entry.next = -1
    if conn.waiting_tail >= 0:
        waiting[conn.waiting_tail].next = row
    else:
        conn.waiting_head = row
    conn.waiting_tail = row
    conn.waiting += 1


@kernel
def given_up(window: Window, conn: Any, time: int) -> int:
    """When a response of this time that has no request was given up, as the number of a packet: with the first packet
    that is ``DISORDER`` younger, or the end of the connection or capture."""
    order = first_from(window.clock, window.first_order, time + DISORDER)
    return min(order, conn.closed_order) if conn.closed == 1 else order


@kernel
def plausible_response(
    window: Window, conn: Any, waiting: Array, apis: Array, at: int, end: int, touching: bool, until: int
) -> int:
    """Whether a response (size first) can begin at ``at``, where the boundary is not known.

    Only a size and a correlation id are there to judge by. An id that is waited for is believed if the size is enough
    for a response of its API (small numbers are common: a 4 and a 1 look like the whole of a response) and if what
    follows fits as well; at the beginning of a segment (``touching``) so is one shortly before the first request that
    was seen, and any small one if no request was seen at all.
    """
    buf = window.data
    if end - at < 4:
        return NEED_MORE
    size = i32(buf, at)
    if size < 4 or size > LARGEST_FRAME:
        return NO
    if end - at < 8:
        return NEED_MORE
    wanted = i32(buf, at + 4)
    row, _ = find(waiting, conn.waiting_head, wanted, until)
    first = conn.first_id
    if row < 0:
        if not touching:
            return NO
        if first >= 0 and not 0 < first - wanted <= NEAR:
            return NO
        if first < 0 and wanted < 0:
            return NO
    else:
        api = waiting[row].api
        if 0 <= api < apis.shape[0] and size < apis[api].least_response:
            return NO
    following = at + 4 + size
    if following == end:
        return YES
    if following + 8 <= end:
        size = i32(buf, following)
        next_id = i32(buf, following + 4)
        if size < 4 or size > LARGEST_FRAME or not 0 < next_id - wanted <= NEAR:
            return NO
        return YES
    return YES if touching else NO
