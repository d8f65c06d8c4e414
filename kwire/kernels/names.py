"""Byte strings that occur over and over (client ids, topics) as numbers.

A ``NameTable`` gives each different byte string a number, once and for all. Its tables are a pool of bytes, a row of
NAME for each number, and a hash table with open addressing. Kernels fill them. Python makes them larger when a kernel
says that they are full. ``intern`` itself never grows anything: its caller has looked whether ``has_room``.

Names are what others chose, so they are hashed with the key of their table (``kwire.kernels.hashing``). Numbers are
given in the order in which names appear, whatever the key is.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kwire.kernels.engine import Engine, inlined, kernel
from kwire.kernels.hashing import fresh_key, hash_bytes
from kwire.kernels.layouts import NAME, NAMES_USED
from kwire.kernels.numbers import grown, int64, load64, prefetch

__all__ = ["LONGEST_NAME", "NameTable", "has_room", "intern", "intern_texts", "same_bytes"]

LONGEST_NAME: Final = 0x7FFF
"""Bytes: lengths of names are int16, or stand in a frame that is no longer than its size."""

RECENT: Final = 256
"""A power of 2."""
_AHEAD: Final = 8
"""So many names before it is its turn, a name is fetched. Each stands in another frame, far from the one before."""

Array = Any


@inlined
def same_bytes(one: Array, at: int, other: Array, where: int, length: int) -> bool:
    """Whether two ranges, which the caller has checked, hold the same."""
    if length >= 8 and 0 <= at <= one.shape[0] - length and 0 <= where <= other.shape[0] - length:
        same: bool = load64(one, at + length - 8) == load64(other, where + length - 8)
        k = int64(0)
        while same and k + 8 < length:
            same = load64(one, at + k) == load64(other, where + k)
            k += 8
        return same
    same = True
    for i in range(length):
        same = same and one[at + i] == other[where + i]
    return same


@kernel
def has_room(used: Any, names: Array, pool: Array, lookup: Array, length: int) -> bool:
    """Whether one more name of ``length`` bytes fits, with the lookup table at most half full."""
    fits: bool = used.count < names.shape[0] and used.bytes + length <= pool.shape[0]
    return fits and 2 * (used.count + 1) <= lookup.shape[0]


@kernel
def intern(buf: Array, off: int, length: int, names: Array, pool: Array, lookup: Array, used: Any) -> int:
    """The number of the name ``buf[off : off + length]``, which is added if it is new."""
    mask = lookup.shape[0] - 1
    place = hash_bytes(used.key_a, used.key_b, buf, off, length) & mask
    while lookup[place] >= 0:
        number: int = lookup[place]
        known = names[number]
        if known.len == length and same_bytes(buf, off, pool, known.off, length):
            return number
        place = (place + 1) & mask
    number = used.count
    begin = used.bytes
    for k in range(length):
        pool[begin + k] = buf[off + k]
    names[number].off = begin
    names[number].len = length
    lookup[place] = number
    used.count = number + 1
    used.bytes = begin + length
    return number


@kernel
def intern_all(
    buf: Array,
    offsets: Array,
    lengths: Array,
    begin: int,
    numbers: Array,
    names: Array,
    pool: Array,
    lookup: Array,
    used: Array,
    recent: Array,
) -> int:
    """``intern`` for many names from ``begin`` on; where a length is negative, the number is -1.

    ``recent`` (RECENT places, -1 at first) remembers numbers by length and last byte. The same few names come again and
    again, and hashing takes longer than comparing. ``used`` has one row of NAMES_USED. Returns how far it came: less
    than all where the tables are full.
    """
    for k in range(begin, offsets.shape[0]):
        if k + _AHEAD < offsets.shape[0]:
            prefetch(buf, offsets[k + _AHEAD])
        length = lengths[k]
        if length < 0:
            numbers[k] = -1
            continue
        if k > begin and offsets[k] == offsets[k - 1] and length == lengths[k - 1]:
            # What many things stand within is not read again for each of them.
            numbers[k] = numbers[k - 1]
            continue
        last = int64(buf[offsets[k] + length - 1]) if length > 0 else int64(0)
        spot = (length ^ last << 2) & (RECENT - 1)
        known = recent[spot]
        if known >= 0 and names[known].len == length and same_bytes(buf, offsets[k], pool, names[known].off, length):
            numbers[k] = known
        elif has_room(used[0], names, pool, lookup, lengths[k]):
            numbers[k] = intern(buf, offsets[k], lengths[k], names, pool, lookup, used[0])
            recent[spot] = numbers[k]
        else:
            return k
    return offsets.shape[0]


@kernel
def intern_texts(
    buf: Array, rows: Array, columns: Array, begin: int, names: Array, pool: Array, lookup: Array, used: Array
) -> int:
    """``intern`` for texts of ``rows``, whose places become those in the pool. ``columns`` has those of places: the
    lengths stand behind them.

    Texts are counted through the columns of each row, from ``begin`` on. Returns how far it came: less than all where
    the tables are full.
    """
    count = columns.shape[0]
    for k in range(begin, rows.shape[0] * count):
        row, column = rows[k // count], columns[k % count]
        length = row[column + 1]
        if length <= 0:
            continue
        if not has_room(used[0], names, pool, lookup, length):
            return k
        row[column] = names[intern(buf, row[column], length, names, pool, lookup, used[0])].off
    return rows.shape[0] * count


@kernel
def fill_lookup(names: Array, pool: Array, lookup: Array, used: Any) -> None:
    """Enters the names that there are into an empty (-1) lookup table."""
    mask = lookup.shape[0] - 1
    for number in range(used.count):
        place = hash_bytes(used.key_a, used.key_b, pool, names[number].off, names[number].len) & mask
        while lookup[place] >= 0:
            place = (place + 1) & mask
        lookup[place] = number


class NameTable:
    """Numbers for byte strings, in the tables ``names``, ``pool`` and ``lookup``, of which ``used`` is in use."""

    def __init__(self) -> None:
        self.pool: Array = np.zeros(1024, np.uint8)
        self.names: Array = np.zeros(64, NAME)
        self.lookup: Array = np.full(256, -1, np.int64)
        self.used: Array = np.zeros(1, NAMES_USED)
        self.used["key_a"], self.used["key_b"] = fresh_key()
        self._recent: Array = np.full(RECENT, -1, np.int64)
        self._values: list[bytes] = []

    def __len__(self) -> int:
        return int(self.used["count"][0])

    def make_room(self, length: int, engine: Engine) -> None:
        """Makes the tables large enough for one more name of ``length`` bytes at least; mostly for as many again."""
        count, size = int(self.used["count"][0]), int(self.used["bytes"][0])
        if count >= len(self.names):
            self.names = grown(self.names)
        if size + length > len(self.pool):
            self.pool = grown(self.pool, size + length)
        if 2 * (count + 1) > len(self.lookup):
            self.lookup = np.full(2 * len(self.lookup), -1, np.int64)
            engine(fill_lookup)(self.names, self.pool, self.lookup, self.used[0])

    def numbers(self, data: Array, offsets: Array, lengths: Array, engine: Engine) -> Array:
        """The number of each ``data[offset : offset + length]``, -1 where the length is negative (null, or ABSENT)."""
        offsets, lengths = np.ascontiguousarray(offsets), np.ascontiguousarray(lengths)
        numbers = np.empty(len(offsets), np.int64)
        done = 0
        while True:
            done = engine(intern_all)(
                data, offsets, lengths, done, numbers, self.names, self.pool, self.lookup, self.used,
                self._recent,
            )  # fmt: skip
            if done == len(offsets):
                return numbers
            self.make_room(int(lengths[done]), engine)

    def copy(self, data: Array, rows: Array, columns: Array, engine: Engine) -> None:
        """``intern_texts`` for all rows."""
        done = 0
        while True:
            done = engine(intern_texts)(data, rows, columns, done, self.names, self.pool, self.lookup, self.used)
            if done == len(rows) * len(columns):
                return
            row, column = divmod(done, len(columns))
            self.make_room(int(rows[row, columns[column] + 1]), engine)

    def add(self, value: bytes, engine: Engine) -> int:
        """The number of one byte string."""
        data = np.frombuffer(value or b"\0", np.uint8).copy()
        return int(self.numbers(data, np.zeros(1, np.int64), np.array([len(value)], np.int64), engine)[0])

    def values(self) -> list[bytes]:
        """All byte strings, by number."""
        for off, length in self.names[len(self._values) : len(self)].tolist():
            self._values.append(self.pool[off : off + length].tobytes())
        return self._values
