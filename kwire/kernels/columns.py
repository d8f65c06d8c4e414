"""The numbers of frames as columns, all in one pass over their rows; also texts that few rows differ in.

A row of a frame is two cache lines, and a window has more of them than the caches. So each row is looked at once. All
columns that need no more than the row and its connection are made then.

Rules kept here:

- Ends of connections and client_ids are texts in which few frames differ. Their column has numbers: the place of each
  frame's text in a list of those that occur. The list is in the order in which they are met first. What makes the
  list is as before when the kernel returns.
- A value that is ABSENT is 0, and counted: the caller says where it is null.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np

from kwire.kernels.engine import kernel
from kwire.kernels.layouts import ABSENT, NO_TIME, Reason, Status
from kwire.kernels.numbers import SLACK, copy_wide, int64, load64
from kwire.schema.keys import ApiKey

__all__ = ["Columns", "Seen", "Stat", "begin_alike", "columns_of", "frame_columns", "spread_texts"]

Array = Any

_MICROSECOND: Final = 1000
_MILLISECOND: Final = 1e6


class Stat(IntEnum):
    """Places of what ``frame_columns`` returns in ``Columns.stats``."""

    ENDS = 0
    """How many clients there are."""
    CLIENTS = 1
    """How many client_ids, none counts as one."""
    RESPONSES = 2
    NO_API = 3
    """How many frames have none, and so on."""
    NO_VERSION = 4
    NO_ID = 5
    NO_LATENCY = 6
    NO_NAME = 7
    """How many frames have an API without a name."""
    MIXED = 8
    """Not 0 where they are not all of one API."""
    WRONG = 9
    """How many frames have a reason, which is what is wrong with them."""
    ASKING = 10
    """How many are ApiVersions requests or responses."""
    NOT_OK = 11
    """How many have another status."""
    NO_TIME = 12
    """How many frames have none."""
    COUNT = 13


class Seen(NamedTuple):
    """What makes lists of what occurs: a place for everything that may, all -1."""

    ends: Array
    """By twice the slot of a connection, one more for its end B."""
    clients: Array
    """By one more than the number of a client_id."""


class Columns(NamedTuple):
    """Arrays with a place for each frame, or for each that occurs."""

    connection: Array
    number: Array
    micros: Array
    """Since 1970."""
    response: Array
    end: Array
    """The place of its client in ``ends``."""
    client_port: Array
    broker_port: Array
    api: Array
    named: Array
    """The API again, as wide as an index of Arrow's."""
    version: Array
    id: Array
    client: Array
    """The place of its client_id in ``clients``."""
    size: Array
    millis: Array
    """The latency."""
    status: Array
    timed: Array
    """A bit for each frame, the lowest first: whether it has one."""
    ends: Array
    """Those that are clients, as ``Seen`` counts them."""
    clients: Array
    """The numbers of client_ids, -1 for none."""
    stats: Array


def columns_of(count: int) -> Columns:
    """Room for the columns of so many frames."""
    wide, half = np.empty((6, count), np.int64), np.empty((8, count), np.int32)
    short, millis, timed = np.empty((2, count), np.int16), np.empty(count), np.empty((count + 7) // 8, np.uint8)
    return Columns(
        connection=wide[0],
        number=wide[1],
        micros=wide[2],
        response=half[0],
        end=half[1],
        client_port=half[2],
        broker_port=half[3],
        api=short[0],
        named=half[4],
        version=short[1],
        id=half[5],
        client=half[6],
        size=wide[3],
        millis=millis,
        status=half[7],
        timed=timed,
        ends=wide[4],
        clients=wide[5],
        stats=np.empty(Stat.COUNT, np.int64),
    )


@kernel
def frame_columns(
    rows: Array, first: int, which: Array, connections: Array, has_name: Array, seen: Any, made: Any
) -> None:
    """Fills ``made`` with the columns of the frames from ``first`` on. If ``which`` has any numbers, it takes those
    frames. It fills as many as there is room for. ``has_name`` says by its key whether an API has a name."""
    n_ends = int64(0)
    n_clients = int64(0)
    responses = int64(0)
    no_api = int64(0)
    no_version = int64(0)
    no_id = int64(0)
    no_latency = int64(0)
    no_name = int64(0)
    wrong = int64(0)
    asking = int64(0)
    not_ok = int64(0)
    no_time = int64(0)
    mixed = int64(rows.shape[0] == 0 or made.connection.shape[0] == 0)
    bits = int64(0)
    count = made.connection.shape[0]
    chosen = which.shape[0] > 0
    for k in range(count):
        row = rows[which[k] if chosen else first + k]
        slot = row.slot
        side = row.client_side
        end = 2 * slot + side
        conn = connections[slot]
        made.connection[k] = conn.number
        made.client_port[k] = conn.b_port if side == 1 else conn.a_port
        made.broker_port[k] = conn.a_port if side == 1 else conn.b_port
        place = int64(seen.ends[end])
        if place < 0:
            place = n_ends
            seen.ends[end] = place
            made.ends[place] = end
            n_ends += 1
        made.end[k] = place
        client = row.client
        place = int64(seen.clients[client + 1])
        if place < 0:
            place = n_clients
            seen.clients[client + 1] = place
            made.clients[place] = client
            n_clients += 1
        made.client[k] = place
        made.number[k] = row.number
        no_time += row.time == NO_TIME
        made.micros[k] = row.time // _MICROSECOND
        made.size[k] = row.size
        response = int64(row.response)
        made.response[k] = response
        responses += response
        api = row.api
        if 0 <= api < has_name.shape[0]:
            no_name += 1 - has_name[api]
        else:
            no_name += 1
        status = row.status
        made.status[k] = status
        not_ok += status != Status.OK
        wrong += row.reason != Reason.NONE
        asking += api == ApiKey.API_VERSIONS
        if api == ABSENT:
            no_api += 1
            api = int64(0)
        mixed |= api ^ made.named[0] if k > 0 else int64(0)
        made.api[k] = api
        made.named[k] = api
        version = row.version
        if version == ABSENT:
            no_version += 1
            version = int64(0)
        made.version[k] = version
        number = row.id
        if number == ABSENT:
            no_id += 1
            number = int64(0)
        made.id[k] = number
        latency = row.latency
        if latency == ABSENT:
            no_latency += 1
        else:
            bits |= int64(1) << (k & 7)
        made.millis[k] = max(latency, int64(0)) / _MILLISECOND
        if k & 7 == 7 or k == count - 1:
            made.timed[k >> 3] = bits
            bits = int64(0)
    for k in range(n_ends):
        seen.ends[made.ends[k]] = -1
    for k in range(n_clients):
        seen.clients[made.clients[k] + 1] = -1
    stats = made.stats
    stats[int64(Stat.ENDS)] = n_ends
    stats[int64(Stat.CLIENTS)] = n_clients
    stats[int64(Stat.RESPONSES)] = responses
    stats[int64(Stat.NO_API)] = no_api
    stats[int64(Stat.NO_VERSION)] = no_version
    stats[int64(Stat.NO_ID)] = no_id
    stats[int64(Stat.NO_LATENCY)] = no_latency
    stats[int64(Stat.NO_NAME)] = no_name
    stats[int64(Stat.MIXED)] = mixed
    stats[int64(Stat.WRONG)] = wrong
    stats[int64(Stat.ASKING)] = asking
    stats[int64(Stat.NOT_OK)] = not_ok
    stats[int64(Stat.NO_TIME)] = no_time


@kernel
def spread_texts(numbers: Array, ends: Array, texts: Array, offsets: Array, out: Array) -> int:
    """Writes text number ``numbers[k]`` of ``texts``, which end at ``ends[1:]``, for each row k. The texts go one after
    the other into ``out``. ``offsets`` gets where they begin and where the last one ends; returns that. Both end with
    ``numbers.SLACK`` bytes that mean nothing. The caller has checked that all of it fits."""
    at = int64(0)
    for k in range(numbers.shape[0]):
        one = numbers[k]
        begin = int64(ends[one])
        size = ends[one + 1] - begin
        offsets[k] = at
        if begin + size > texts.shape[0] - SLACK or at + size > out.shape[0] - SLACK:
            raise ValueError("a text lies outside of the buffer")
        copy_wide(texts, begin, out, at, size)
        at += size
    offsets[numbers.shape[0]] = at
    return at


@kernel
def begin_alike(data: Array, ends: Array, size: int) -> bool:
    """Whether all values begin with the same ``size`` bytes, 8 at most. They lie one after the other in ``data``, and
    end at ``ends[1:]``. False as well where ``data`` has no 8 bytes from the beginning of each on."""
    last = int64(data.shape[0] - 8)
    other = np.uint64(64 - 8 * size)
    first = int64(ends[0])
    if first < 0 or first > last:
        return False
    head = load64(data, first) << other
    good = True
    for k in range(ends.shape[0] - 1):
        begin = int64(ends[k])
        if begin < 0 or begin > last:
            return False
        good = good & (load64(data, begin) << other == head) & (int64(ends[k + 1]) - begin >= size)
    return good
