"""Responses to their requests: the requests of a connection that wait, as a list, and all of a capture by their ids.

Strategy: a request that waits is a row. The rows of a connection are a linked list in the order in which they were
sent. Mostly the first is the one that is answered. Where it is not, those that are not there yet are entered into a
hash table (``kwire.kernels.hashing``). It finds the first one of a connection with some correlation id. Those with the
same id follow it. So a response finds its request at once, whatever waits, and whoever chose the ids. Requests that
were overtaken by the response to a later one stay at the front of the list.

Rules kept here (numbers in brackets: the protocol notes that they answer):

- A response names neither its API nor its version: both are its request's. A broker of Apache Kafka answers the
  requests of one connection in order. Proxies and other brokers may not. So the entries before the one that matches are
  overtaken. They go on waiting, at most ``MOST_OVERTAKEN`` of a connection. Where responses may be missing from the
  capture, theirs is: they are dropped. So is one whose correlation id is used for another request.
- Correlation ids repeat [31], so an entry must not be younger than the response.
- ``clock`` says what is older and younger. It never goes back (``layouts.Segment``), while the clock of a host may be
  set.
- A broker of 0.8.2 may answer FindCoordinator v0 with correlation id 0 [29].
- Each raw SASL token leaves an entry, so that the answer is known to be a token too [11]. It has no correlation id,
  and stands in the list only.
- Nothing here grows a table: its caller has looked whether there is a row left. All that wait may have
  ``MOST_UNANSWERED`` bytes. Beyond that, those of the older half are given up (``give_up``). A response to one of them
  says so.
"""

from __future__ import annotations

from typing import Any, Final

from kwire.kernels.engine import inlined, kernel
from kwire.kernels.hashing import hash_two
from kwire.kernels.judging import FITS, SO_FAR, TRAILS, UNFIT, fits
from kwire.kernels.layouts import FOLLOWS, LEADS, NOT_ENTERED, WAITING
from kwire.kernels.numbers import i32, int64
from kwire.kernels.roles import LARGEST_FRAME, NEAR, NEED_MORE, NO, YES, Apis, Window
from kwire.schema.keys import ApiKey

__all__ = [
    "DISORDER",
    "MOST_OVERTAKEN",
    "MOST_UNANSWERED",
    "MOST_WAITING",
    "SASL_TOKEN",
    "answered",
    "append_all",
    "drop",
    "find",
    "find_request",
    "give_up",
    "list_all",
    "move_lookup",
    "plausible_response",
    "wait_for",
]

SASL_TOKEN: Final = -2
"""In place of the API key of a request that waits: a raw token."""
MOST_UNANSWERED: Final = 128 << 20
"""Bytes of the tables of requests that wait, of a whole capture."""
MOST_WAITING: Final = 1 << (MOST_UNANSWERED // (WAITING.itemsize + 8)).bit_length() - 1
"""Rows that this is, with a place in the hash table for each: 1,048,576."""
MOST_OVERTAKEN: Final = 64
"""Requests of a connection that were overtaken and still wait, at most."""
DISORDER: Final = 20_000_000
"""Nanoseconds by which a capture may show a response before its request."""

Array = Any


# --- by correlation id ------------------------------------------------------------------------------------------------


@kernel
def _place(lookup: Array, room: Any, connection: int, wanted: int) -> int:
    """Where in the hash table the list of a correlation id of a connection begins."""
    place: int = hash_two(room.key_a, room.key_b, connection, wanted) & (lookup.shape[0] - 1)
    return place


@kernel
def _first(waiting: Array, row: int, connection: int, wanted: int) -> int:
    """The first entry with this correlation id, in a list of the hash table that begins with ``row``. -1 for none."""
    while row >= 0 and not (waiting[row].id == wanted and waiting[row].connection == connection):
        row = int64(waiting[row].chain)
    return row


@kernel
def _enter(waiting: Array, lookup: Array, room: Any, row: int) -> None:
    """Puts an entry into the hash table, after those with its correlation id. Tokens have none."""
    entry = waiting[row]
    if entry.api == SASL_TOKEN:
        return
    entry.same = -1
    place = _place(lookup, room, entry.connection, int64(entry.id))
    first = _first(waiting, lookup[place], entry.connection, int64(entry.id))
    if first >= 0:
        entry.entered = FOLLOWS
        entry.back = waiting[first].back
        waiting[entry.back].same = row
        waiting[first].back = row
        return
    entry.entered = LEADS
    entry.back = row
    entry.chain = lookup[place]
    lookup[place] = row


@kernel
def _remove(waiting: Array, lookup: Array, room: Any, row: int) -> None:
    """Takes an entry out of the hash table."""
    entry = waiting[row]
    place = _place(lookup, room, entry.connection, int64(entry.id))
    heir = int64(entry.same)
    if entry.entered == FOLLOWS:
        waiting[entry.back].same = heir
        after = heir
        if heir < 0:
            after = _first(waiting, lookup[place], entry.connection, int64(entry.id))
        waiting[after].back = entry.back
        return
    after = int64(entry.chain)
    if heir >= 0:
        waiting[heir].entered = LEADS
        waiting[heir].back = entry.back
        waiting[heir].chain = after
        after = heir
    if lookup[place] == row:
        lookup[place] = after
        return
    before = int64(lookup[place])
    while waiting[before].chain != row:
        before = int64(waiting[before].chain)
    waiting[before].chain = after


@kernel
def move_lookup(waiting: Array, lookup: Array, room: Any, larger: Array) -> None:
    """Puts what is in the hash table into an empty (-1) one of another size."""
    for place in range(lookup.shape[0]):
        row = lookup[place]
        while row >= 0:
            entry = waiting[row]
            after = int64(entry.chain)
            there = _place(larger, room, entry.connection, int64(entry.id))
            entry.chain = larger[there]
            larger[there] = row
            row = after


@kernel
def find(conn: Any, waiting: Array, lookup: Array, room: Any, wanted: int, until: int) -> int:
    """The first entry of a connection with this correlation id if it is not younger than ``until``, else -1.

    Entries of a connection are in order of time: where the first is too young, all are.
    """
    row = conn.waiting_front if conn.waiting_front >= 0 else conn.waiting_head
    if row < 0:
        return int64(-1)
    if waiting[row].id != wanted or waiting[row].api == SASL_TOKEN:
        row = conn.waiting_new
        while row >= 0:
            _enter(waiting, lookup, room, row)
            row = int64(waiting[row].next)
        conn.waiting_new = -1
        row = _first(waiting, lookup[_place(lookup, room, conn.number, wanted)], conn.number, wanted)
    return row if row >= 0 and waiting[row].clock <= until else int64(-1)


@kernel
def find_request(conn: Any, waiting: Array, lookup: Array, room: Any, wanted: int, until: int) -> int:
    """``find``. For the answer of an old broker with correlation id 0, the FindCoordinator request that is first."""
    row = find(conn, waiting, lookup, room, wanted, until)
    front: int = conn.waiting_front
    if row < 0 and wanted == 0 and front >= 0:
        entry = waiting[front]
        if entry.api == ApiKey.FIND_COORDINATOR and entry.version == 0 and entry.clock <= until:
            return front
    return row


# --- the list of a connection -----------------------------------------------------------------------------------------


@kernel
def drop(conn: Any, waiting: Array, lookup: Array, room: Any, row: int) -> None:
    """Takes row ``row``, one of its own, off a connection's list."""
    entry = waiting[row]
    if entry.entered != NOT_ENTERED:
        _remove(waiting, lookup, room, row)
    if conn.waiting_new == row:
        conn.waiting_new = entry.next
    if conn.waiting_front == row:
        conn.waiting_front = entry.next
    if entry.prev >= 0:
        waiting[entry.prev].next = entry.next
    else:
        conn.waiting_head = entry.next
    if entry.next >= 0:
        waiting[entry.next].prev = entry.prev
    else:
        conn.waiting_tail = entry.prev
    conn.waiting -= 1
    conn.overtaken -= entry.overtaken
    entry.next = room.free
    room.free = row


@inlined
def answered(conn: Any, waiting: Array, lookup: Array, room: Any, which: int) -> None:
    """Takes the entry ``which``, to which a response has come, off a connection's list. Those before it are overtaken,
    or have no answer where responses are missing."""
    entry = waiting[which]
    if entry.overtaken == 1:
        conn.disordered += 1
    else:
        if entry.prev >= 0:
            _overtake(conn, waiting, lookup, room, int64(entry.prev))
        conn.waiting_front = which
        conn.missed = 0
    drop(conn, waiting, lookup, room, which)


@kernel
def _overtake(conn: Any, waiting: Array, lookup: Array, room: Any, row: int) -> None:
    """Notes that an entry and those before it are overtaken. They have no answer if responses are missing."""
    while row >= 0 and waiting[row].overtaken == 0:
        before = int64(waiting[row].prev)
        # What was looked for has been entered, so all before it have.
        if waiting[row].api == SASL_TOKEN or waiting[row].same >= 0:
            conn.unanswered += 1
            drop(conn, waiting, lookup, room, row)
        else:
            waiting[row].overtaken = 1
            conn.overtaken += 1
        row = before
    most = 0 if conn.missed == 1 else MOST_OVERTAKEN
    while conn.overtaken > most:
        conn.unanswered += 1
        drop(conn, waiting, lookup, room, conn.waiting_head)


@inlined
def _append(conn: Any, waiting: Array, row: int) -> None:
    """Puts a row that is filled at the end of a connection's list."""
    entry = waiting[row]
    entry.connection = conn.number
    entry.next = -1
    entry.prev = conn.waiting_tail
    entry.entered = NOT_ENTERED
    if conn.waiting_front >= 0:
        entry.overtaken = 0  # they stand before all others
    conn.overtaken += entry.overtaken
    if conn.waiting_new < 0:
        conn.waiting_new = row
    if conn.waiting_front < 0 and entry.overtaken == 0:
        conn.waiting_front = row
    if conn.waiting_tail >= 0:
        waiting[conn.waiting_tail].next = row
    else:
        conn.waiting_head = row
    conn.waiting_tail = row
    conn.waiting += 1


@inlined
def wait_for(
    conn: Any,
    waiting: Array,
    lookup: Array,
    room: Any,
    wanted: int,
    api: int,
    version: int,
    client: int,
    time: int,
    order: int,
    clock: int,
) -> None:
    """Appends an entry to a connection's list. One that was overtaken and has its id has no answer."""
    if conn.overtaken > 0 and api != SASL_TOKEN:
        _drop_overtaken(conn, waiting, lookup, room, wanted)
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
    entry.clock = clock
    entry.overtaken = 0
    _append(conn, waiting, row)


@kernel
def _drop_overtaken(conn: Any, waiting: Array, lookup: Array, room: Any, wanted: int) -> None:
    """Drops the entries that were overtaken and have this correlation id, which another request has now."""
    row = conn.waiting_head
    while row >= 0 and waiting[row].overtaken == 1:
        after = int64(waiting[row].next)
        if waiting[row].id == wanted:
            conn.unanswered += 1
            drop(conn, waiting, lookup, room, row)
        row = after


@kernel
def give_up(connections: Array, count: int, waiting: Array, lookup: Array, room: Any, until: int) -> None:
    """Forgets what waits since ``until`` or longer, in all of the first ``count`` connections."""
    for slot in range(count):
        conn = connections[slot]
        while conn.waiting_head >= 0 and waiting[conn.waiting_head].clock <= until:
            drop(conn, waiting, lookup, room, conn.waiting_head)
            conn.given_up += 1


@kernel
def append_all(connections: Array, slots: Array, waiting: Array) -> None:
    """Puts the first rows, which are filled, at the ends of the lists of the connections ``slots``."""
    for row in range(slots.shape[0]):
        _append(connections[slots[row]], waiting, row)


@kernel
def list_all(connections: Array, slots: Array, waiting: Array, rows: Array) -> None:
    """Writes the rows of what waits in the connections ``slots``, one list after the other. There is room for all."""
    n = int64(0)
    for k in range(slots.shape[0]):
        row = connections[slots[k]].waiting_head
        while row >= 0:
            rows[n] = row
            n += 1
            row = int64(waiting[row].next)


# --- where a response may begin ---------------------------------------------------------------------------------------


@kernel
def plausible_response(
    window: Window,
    conn: Any,
    waiting: Array,
    lookup: Array,
    room: Any,
    table: Apis,
    scratch: Any,
    at: int,
    end: int,
    touching: bool,
    ends_here: bool,
    until: int,
) -> int:
    """Whether a response (size first) can begin at ``at``, where the boundary is not known.

    An id that is waited for is believed if the body is what the request's layout says, and if what follows fits as
    well. Values of records may be frames themselves. At the beginning of a segment (``touching``), a whole response is
    also believed if it answers a request shortly before the first that was seen. If no request was seen at all, any
    whole response is. Nothing is known of its body. So the body of the next one, or the end of what there is, has to
    stand where its size says. ``ends_here``: nothing will follow without a gap.
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
    following = at + 4 + size
    row = find(conn, waiting, lookup, room, wanted, until)
    known = False
    if row >= 0:
        entry = waiting[row]
        api = int64(entry.api)
        if 0 <= api < table.apis.shape[0] and size < table.apis[api].least_response:
            return NO
        said, _ = fits(buf, at, end, int64(1), api, int64(entry.version), table, scratch)
        if said in (UNFIT, TRAILS):
            return NO
        if said == SO_FAR:
            if ends_here:
                return YES if touching else NO
            return NEED_MORE
        known = said == FITS
    else:
        first = conn.first_id
        if not touching or (first >= 0 and not 0 < first - wanted <= NEAR) or (first < 0 and wanted < 0):
            return NO
    if following + 8 <= end:
        size = i32(buf, following)
        next_id = i32(buf, following + 4)
        least = -NEAR if known else 0
        return YES if 4 <= size <= LARGEST_FRAME and least <= next_id - wanted <= NEAR and next_id != wanted else NO
    if following == end or known:
        return YES
    return NO if ends_here else NEED_MORE
