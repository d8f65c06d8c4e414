"""One part of a whole: a file of several that follow each other, with what the parts before it know.

``Part`` is what ``Reading`` needs to give the frames that this part has of the whole. ``kwire.capture.across`` finds it
out for many parts at once, without reading one after the other.

A connection is called by its ``ends`` in all parts. These are addresses and ports of both ends, the lesser one first,
whichever of them sent the first packet.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kwire.capture.tracker import Tracker

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.capture.splits import Split
    from kwire.tls import KeyLog

__all__ = ["Part", "ends", "latest"]

Array = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a whole, and what is known before it is read.

    - ``place``: which one, from 0; later parts have larger numbers.
    - ``state``: the connections that came before and are in this part again, as ``Tracker.save`` gives them.
    - ``left``: the ``ends`` of those that go on in a later part. None: all do, and nothing unfinished is reported.
    - ``common``: what ``Tracker.common`` gives, of all parts before.
    - ``topics``: names of topics by id, to which the tables of this part add what they learn.
    - ``memory``: what tables remember of the parts before. The tables of this part add to it too.
    - ``split``: it is not a file but a piece of one, and the source has the bytes from there on.
    - ``answers``: what later parts answer to its requests, where a table is to know it
      (``kwire.tables.committed.ANSWERS``).
    - ``after``: this is another file of the part that the tracker has read so far. Only the last file of a part has
      ``left``.
    """

    place: int = 0
    state: pa.Table | None = field(default=None, repr=False)
    left: frozenset[bytes] | None = frozenset()
    common: Mapping[str, Any] = field(default_factory=dict)
    topics: dict[bytes, str] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    split: Split | None = None
    answers: pa.Table | None = None
    after: Tracker | None = None

    @property
    def carried(self) -> bool:
        """Whether what tables remember is kept after it, for parts that come another time."""
        return False

    def tracker(
        self,
        *,
        ports: Iterable[int] | None = None,
        vxlan_ports: Iterable[int] | None = None,
        keys: KeyLog | None = None,
    ) -> Tracker:
        """A tracker that is where this part begins. Raises what ``Tracker`` and ``Tracker.restore`` do."""
        if self.after is not None:
            self.after.begin_file()
            return self.after
        made = Tracker(ports=ports, vxlan_ports=vxlan_ports, keys=keys, part=self.place, split=self.split)
        if self.state is not None:
            made.restore(self.state)
        if self.common:
            made.take_over(self.common)
        return made

    def of_files(self, count: int) -> Iterator[tuple[Part, Callable[[Tracker], None]]]:
        """What each file of this part must be read as, one after the other.

        With each comes a function to call with the tracker that has read it. Where it is not, the next goes on from the
        one before.
        """
        after: Tracker | None = None

        def ended(tracker: Tracker) -> None:
            nonlocal after
            after = tracker

        for number in range(1, count + 1):
            yield replace(self, left=self.left if number == count else None, after=after), ended

    def going_on(self, tracker: Tracker) -> Iterator[int]:
        """The numbers of the connections that go on in a later part."""
        if self.left:
            rows, _ = tracker.rows()
            for key, slot in latest(rows).items():
                if key in self.left:
                    yield int(rows["number"][slot])


_NUMBERS = ("family", "a_high", "a_low", "a_port", "b_high", "b_low", "b_port")
_END = struct.Struct(">qqH")


def ends(rows: Array) -> list[tuple[bytes, bool]]:
    """What the connections in rows of CONNECTION are called, and whether B is the lesser one of their ends."""
    made = []
    for family, a_high, a_low, a_port, b_high, b_low, b_port in zip(
        *(rows[name].tolist() for name in _NUMBERS), strict=True
    ):
        a, b = _END.pack(a_high, a_low, a_port), _END.pack(b_high, b_low, b_port)
        made.append((bytes([family]) + (b + a if b < a else a + b), b < a))
    return made


def latest(rows: Array) -> dict[bytes, int]:
    """The last row of each connection, by its ends: ports are used again."""
    return {key: slot for slot, (key, _) in enumerate(ends(rows))}
