"""Connections across files: what each file needs to know of those before it, found out for all files at once.

Captures are rotated in the middle of connections. To read a file as part of a whole, one needs the state of its
connections at the end of the file before. That state depends on the file before that. Reading all of them one after the
other would be the way without any parallel work. Here it is done in three steps:

1. ``scan`` reads each file alone, whatever comes before it, and makes no rows. It gives the **edges** of each
   connection: its state at the end of the file, and its **head**. The head is the packets from its first in this file
   up to where its state is likely to be the true one. There, a response to a request of this file was found.
2. ``Chain`` goes from file to file with edges only. The true state at the end of one file is restored and fed the head
   of the next. That may lead to the very state that the scan had at the end of the head. Then the scan went on as the
   truth does. So the state at its end is true. If not, the earlier file is right: the connection's part of the later
   file is read again, from the true state. So nothing rests on a likely guess.
3. Each file is decoded as a ``Part``, with the true states of its connections. The rows are those of one file that was
   never cut.

Steps 1 and 3 are done for each file on its own, in any order and anywhere. Step 2 is done for each connection on its
own, as long as the files come in order of time.

Rules kept here:

- Two states are compared without what does not matter later (``kwire.capture.joining``).
- Some connections cannot be recognised from inside of the file: their role is known from earlier files only, or one
  direction was captured. Then the connection's whole part of the file is read again. Where it is known not to be Kafka,
  it is not.
- A connection may begin in a file with too little captured to recognise it. Then a broker that an earlier file has
  shown may decide what it is. The scan of the one does not know the other: what it held of the connection is read with
  that knowledge.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kwire.capture.joining import END, digest, has_ended, is_another, is_let_go, moved_on
from kwire.capture.parts import Part, ends, latest
from kwire.capture.reading import UNREADABLE, Reading, is_damage, said_of
from kwire.capture.state import STATE, STATE_VERSION
from kwire.capture.tracker import PART_BITS, Packets, Tracker
from kwire.errors import CaptureError
from kwire.kernels.layouts import ABSENT, AT_THE_END, CONNECTION, NO_TIME, PACKET, Role, Status

if TYPE_CHECKING:
    from kwire.capture.frames import Frames
    from kwire.capture.reading import Source
    from kwire.capture.splits import Split
    from kwire.tls import KeyLog

__all__ = ["EDGES", "Chain", "Link", "Scan", "in_order", "scan", "still_open", "together"]

Array = Any

SCAN_WINDOW: Final = 1 << 20
"""Bytes that are read at once: heads end where a window does."""
LATER_WINDOWS: Final = 2
"""Times as many are read at once where no head goes on."""
LONGEST_HEAD: Final = 1 << 20
"""Bytes of packets of one connection, after which its head ends whatever is known then."""
ENOUGH_HEAD: Final = LONGEST_HEAD >> 2
"""Bytes of packets after which a head may end within a response."""
MOST_HEADS: Final = 64 << 20
"""Bytes of the heads of all connections of a file.

Beyond that none is kept, and files are read again where needed.
"""

_HEAD: Final = pa.list_(
    pa.field(
        "element",
        pa.struct(
            [
                pa.field("order", pa.int64(), nullable=False),
                pa.field("time", pa.int64(), nullable=False),
                pa.field("clock", pa.int64(), nullable=False),
                pa.field("link", pa.int64(), nullable=False),
                pa.field("bytes", pa.binary(), nullable=False),
            ]
        ),
        nullable=False,
    )
)

EDGES: Final = pa.schema(
    [
        pa.field("ends", pa.binary(), nullable=False),
        pa.field("began", pa.bool_(), nullable=False),
        pa.field("reset", pa.bool_(), nullable=False),
        pa.field("head", _HEAD, nullable=False),
        pa.field("agreed", pa.binary()),
        pa.field("a_seen", pa.int64(), nullable=False),
        pa.field("b_seen", pa.int64(), nullable=False),
        *STATE,
    ]
)
"""What ``scan`` knows of a connection of one file.

- ``ends``: what it is called in all files (``parts.ends``).
- ``began``: its first packet here was the SYN of the end that opens it.
- ``reset``: that packet was an RST, which belongs to no connection unless an earlier file has it.
- ``head``: its packets up to where its state had the digest ``agreed`` (null: no head was kept).
- ``a_seen`` and ``b_seen`` were the highest positions seen there of its streams, A to B and B to A (-1: none).

The other columns are its state at the end of the file.
"""


@dataclass(frozen=True, slots=True)
class Scan:
    """What is known of a file that was read alone: a table of ``EDGES``, and ``Tracker.common`` at its end.

    ``over``: the splits after this one have no rows (``Reading.over``). ``broken``: files that could not be read, or
    not to their end, by their numbers. The value says after how many bytes, and why. A second reading must stop there.
    Else connections would go on from a state that nobody knows here.
    """

    edges: pa.Table
    common: Mapping[str, Any]
    over: bool = False
    broken: Mapping[int, tuple[int, str]] = field(default_factory=dict)


@dataclass(slots=True)
class _Head:
    """The head of a connection, as far as it was read."""

    slot: int
    began: bool = False
    reset: bool = False
    only: bool = True
    """Whether these ports were used once in this file."""
    packets: list[dict[str, Any]] = field(default_factory=list)
    size: int = 0
    agreed: bytes | None = None
    seen: tuple[int, int] = (-1, -1)


def scan(
    sources: Iterable[Source],
    *,
    ports: Iterable[int] | None = None,
    vxlan_ports: Iterable[int] | None = None,
    keys: KeyLog | None = None,
    seen: Callable[[Frames], None] | None = None,
    window: int = SCAN_WINDOW,
    split: Split | None = None,
) -> Scan:
    """The edges of a part, which is read alone: files that follow each other, or a split of one.

    ``seen`` is called with the frames of each window.

    A file that is damaged or no capture at all has the edges of the bytes before the damage.
    """
    heads = _Heads()
    tracker: Tracker | None = None
    over = False
    broken: dict[int, tuple[int, str]] = {}
    how: dict[str, Any] = {"ports": ports, "vxlan_ports": vxlan_ports, "keys": keys, "window": window}
    for number, reading in enumerate(_readings(sources, Part(left=None, split=split), how)):
        tracker = reading.tracker
        if not number:
            tracker.let_resets_begin()
        try:
            for frames in reading:
                if seen is not None:
                    seen(frames)
                heads.note(tracker, frames)
                # Nothing of a window has to be kept: then the work of each is worth more bytes.
                reading.window = window if heads.open else LATER_WINDOWS * window
        except (CaptureError, *UNREADABLE) as error:
            if not is_damage(error):
                raise
            # Whoever reads a capture that is none, or damaged, again finds the same.
            if not isinstance(error, CaptureError):
                broken[number] = 0, said_of(error)
        if reading.broken is not None:
            broken[number] = reading.broken
        over = reading.over
    if tracker is None:
        return Scan(EDGES.empty_table(), {})
    rows, _ = tracker.rows()
    if not len(rows):
        return Scan(EDGES.empty_table(), tracker.common(), over, broken)
    last = latest(rows)
    heads.agree(tracker, heads.open)
    keys_ = [key for key in last if not _is_over(tracker, heads.of[key], last[key])]
    state = tracker.save(int(rows["number"][last[key]]) for key in keys_)
    # States come in order of their slots.
    keys_.sort(key=last.__getitem__)
    found = [heads.of[key] for key in keys_]
    columns = {
        "ends": pa.array(keys_, pa.binary()),
        "began": pa.array([one.began for one in found], pa.bool_()),
        "reset": pa.array([one.reset for one in found], pa.bool_()),
        "head": pa.array([one.packets for one in found], _HEAD),
        "agreed": pa.array([one.agreed for one in found], pa.binary()),
        "a_seen": pa.array([one.seen[0] for one in found], pa.int64()),
        "b_seen": pa.array([one.seen[1] for one in found], pa.int64()),
    }
    made = [columns[name] if name in columns else state.column(name).combine_chunks() for name in EDGES.names]
    return Scan(pa.Table.from_arrays(made, schema=EDGES), tracker.common(), over, broken)


def _readings(sources: Iterable[Source], part: Part, how: Mapping[str, Any]) -> Iterator[Reading]:
    """The files of a part, which one tracker reads one after the other."""
    for source in sources:
        reading = Reading(source, part=part, **how)
        yield reading
        part = replace(part, after=reading.tracker)


class _Heads:
    """The heads of the connections of a part, as far as it was read."""

    def __init__(self) -> None:
        self.of: dict[bytes, _Head] = {}
        """The last of each pair of ports."""
        self.open: set[int] = set()
        """The slots of those that go on."""
        self._of_slot: list[_Head] = []
        self._size = 0
        """Bytes of the packets of all of them."""

    def note(self, tracker: Tracker, frames: Frames) -> None:
        """Take in what a window had: new connections, packets of heads, and which heads end here."""
        window = tracker.window
        if window is None:
            return
        rows, streams = tracker.rows()
        self._begin(rows, streams)
        if not self.open:
            return
        self._add(window)
        candidates = np.array(sorted(self.open), np.int64)
        if self._size > MOST_HEADS:
            for slot in candidates.tolist():
                self._drop(slot)
            self.open.clear()
            return
        role = rows["role"][candidates]
        synced = (streams["synced"][2 * candidates] == 1) & (streams["synced"][2 * candidates + 1] == 1)
        # In doubt, it is hardly what the truth says.
        synced &= (streams["certain"][2 * candidates] == 1) & (streams["certain"][2 * candidates + 1] == 1)
        # Responses that wait for a request of an earlier file would be there in this state only.
        responses = 2 * candidates + (role == Role.A_REQUESTS)
        caught_up = streams["next"][responses] >= streams["reference"][responses]
        sizes = np.array([self._of_slot[slot].size for slot in candidates.tolist()], np.int64)
        # A response without a request has another status.
        paired = (frames["status"] == Status.OK) & (frames["response"] == 1)
        answered = np.isin(candidates, frames["slot"][paired])
        settled = answered & synced & (caught_up | (sizes > ENOUGH_HEAD))
        settled |= (role == Role.OTHER) | (role == Role.ENCRYPTED)
        settled |= sizes > LONGEST_HEAD
        self.agree(tracker, candidates[settled].tolist())

    def _begin(self, rows: Array, streams: Array) -> None:
        """Add the connections that the window began with."""
        first_new = len(self._of_slot)
        if first_new == len(rows):
            return
        for slot, (key, _) in enumerate(ends(rows[first_new:]), first_new):
            both = streams[2 * slot : 2 * slot + 2]
            head = _Head(slot, began=_began(rows[slot], both), reset=_is_reset(rows[slot], both))
            self._of_slot.append(head)
            if key in self.of:
                # Another connection on the same ports. What became of the one before is not asked any more.
                before = self.of[key]
                head.only = before.only = False
                self._drop(before.slot)
                before.agreed = None
            elif not head.began:
                self.open.add(slot)
            self.of[key] = head

    def _drop(self, slot: int) -> None:
        """Keep no head of a connection."""
        head = self._of_slot[slot]
        self._size -= head.size
        head.packets, head.size = [], 0
        self.open.discard(slot)

    def _add(self, window: Packets) -> None:
        """Add the packets of a window to the heads that go on."""
        is_open = np.zeros(len(self._of_slot), bool)
        is_open[list(self.open)] = True
        wanted = np.flatnonzero((window.slots >= 0) & is_open[window.slots])
        packets = window.packets[wanted]
        first_order = window.first_order
        for k, slot, off, size, time, link, clock in zip(
            wanted.tolist(),
            window.slots[wanted].tolist(),
            packets["off"].tolist(),
            packets["captured"].tolist(),
            packets["time"].tolist(),
            packets["link"].tolist(),
            window.clock[wanted].tolist(),
            strict=True,
        ):
            head = self._of_slot[slot]
            data = window.data[off : off + size].tobytes()
            head.packets.append({"order": first_order + k, "time": time, "clock": clock, "link": link, "bytes": data})
            head.size += size
            self._size += size

    def agree(self, tracker: Tracker, slots: Iterable[int]) -> None:
        """Ends the heads of some connections, and notes the state that they have here."""
        chosen = sorted(slots)
        if not chosen:
            return
        rows, _ = tracker.rows()
        for slot, row in zip(chosen, tracker.save(rows["number"][chosen].tolist()).to_pylist(), strict=True):
            head = self._of_slot[slot]
            self.open.discard(slot)
            head.agreed = digest(row)
            head.seen = row["a_to_b"]["reference"], row["b_to_a"]["reference"]


def _began(row: Any, streams: Array) -> bool:
    """Whether the end that sent the first packet opened the connection with it."""
    return bool(row["opener"] == 0 and streams["start"][0] >= 0)


def _is_reset(row: Any, streams: Array) -> bool:
    """Whether the first packet was an RST."""
    return bool(streams["over_order"][0] == row["first_order"] != streams["end_order"][0])


def _is_over(tracker: Tracker, head: _Head, slot: int) -> bool:
    """Whether a connection began and ended in this file: no other file needs to know of it."""
    rows, streams = tracker.rows()
    both = streams[2 * slot : 2 * slot + 2]
    ended = (both["end"] >= 0) & (both["next"] >= both["end"])
    return head.began and head.only and bool(rows["closed_order"][slot] < AT_THE_END or ended.all())


# --- from file to file ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Link:
    """What ``Chain`` found out for one file.

    ``state``: the connections that came before and are in this file again, with the states that they have before it.
    ``gone_on``: for those, the place of the file that they were in last.
    """

    state: pa.Table
    gone_on: Mapping[bytes, int]


class Chain:
    """The true states of connections, from file to file: ``add`` takes the edges of one file after the other.

    Any choice of connections can have a chain of its own. It remembers the states of its connections (some 1 kB each,
    and what is unfinished), but not of those that have ended. ``read_again`` counts the connections whose part of a
    file had to be. ``heard`` gets the frames that the chain comes upon: all responses to requests of earlier files are
    among them, some frames twice.
    """

    def __init__(
        self,
        *,
        ports: Iterable[int] | None = None,
        vxlan_ports: Iterable[int] | None = None,
        keys: KeyLog | None = None,
        heard: Callable[[Frames], None] | None = None,
    ) -> None:
        self._how: dict[str, Any] = {"ports": ports, "vxlan_ports": vxlan_ports, "keys": keys}
        self._heard: Callable[[Frames], None] = heard or _unheard
        self._known: pa.Table = STATE.empty_table()
        self._place_of: dict[bytes, int] = {}
        """By the ends of the connections of ``_known``, in their order: the file that each was in last."""
        self.joined: int = 0
        """Connections that went on from one file to another, whose states were found to agree."""
        self.read_again: int = 0

    def add(
        self,
        place: int,
        edges: pa.Table,
        common: Mapping[str, Any],
        again: Callable[[], Iterable[Source]],
        split: Split | None = None,
    ) -> Link:
        """Go on to the next part.

        ``edges`` are those of its scan, or of some of its connections. ``common`` is what is known at the end of all
        parts before it (empty: nothing). ``again`` opens its files one after the other. ``split``: it is that of a
        file, which is opened there.
        """
        names = edges.column("ends").to_pylist()
        rows_of = {key: row for row, key in enumerate(self._place_of)}
        before = [key for key in names if key in rows_of]
        given = _stated(_taken(self._known, [rows_of[key] for key in before]), common)
        link = Link(given, {key: self._place_of[key] for key in before})
        true: dict[bytes, dict[str, Any]] = {}
        if before:
            true = self._gone_on(place, edges, given, common, again, split)
        states = edges.select(STATE.names)
        base = place << PART_BITS
        reset = self._begun_by_resets(edges, before)
        if reset:
            true |= self._read_again(place, given, reset, common, again, split)
        true |= self._known_by_brokers(place, edges, [*before, *reset], common)
        new = []
        for key, row in zip(names, _rows(states, [key not in true for key in names]), strict=True):
            if row is not None:
                row["connection"]["number"] = base | max(0, row["connection"]["first_order"])
            new.append(true[key] if row is None else row)
        kept = [(key, row) for key, row in zip(names, new, strict=True) if not has_ended(row)]
        going = [key for key in self._place_of if key not in set(names)]
        old = _taken(self._known, [rows_of[key] for key in going])
        self._known = pa.concat_tables([old, pa.Table.from_pylist([row for _, row in kept], STATE)]).combine_chunks()
        self._place_of = {key: self._place_of[key] for key in going} | {key: place for key, _ in kept}
        return link

    def _begun_by_resets(self, edges: pa.Table, before: list[bytes]) -> list[bytes]:
        """Connections that no earlier file had, and that have more packets than an RST at their beginning.

        The scan took the RST for their beginning. In truth they begin after it, as something else.
        """
        known = set(before)
        resets = np.flatnonzero(edges.column("reset").to_numpy()).tolist()
        return [
            row["ends"]
            for row in _taken(edges, resets).to_pylist()
            if row["ends"] not in known
            and any(row[direction]["packets"] > row[direction]["resets"] for direction in ("a_to_b", "b_to_a"))
        ]

    def _known_by_brokers(
        self, place: int, edges: pa.Table, before: list[bytes], common: Mapping[str, Any]
    ) -> dict[bytes, dict[str, Any]]:
        """The true states of new connections that only a known broker can decide.

        These connections began in this file, and too little was captured to recognise them. One end is a broker that
        earlier files have shown. Their held bytes are read with this knowledge.
        """
        brokers = set(map(tuple, common.get("brokers", ())))
        rows = _connections(edges)
        a, b = (
            np.fromiter(
                (end in brokers for end in zip(*(rows[f"{one}_{name}"].tolist() for name in END), strict=True)),
                bool,
                len(rows),
            )
            for one in "ab"
        )
        unknown = np.flatnonzero((rows["role"] == Role.UNKNOWN) & (a != b) & (rows["begun_order"] >= 0)).tolist()
        names = edges.column("ends").to_pylist()
        chosen = [row for row in unknown if names[row] not in set(before)]
        if not chosen:
            return {}
        states = []
        for row in _taken(edges, chosen).select(STATE.names).to_pylist():
            row["connection"]["number"] = place << PART_BITS | max(0, row["connection"]["first_order"])
            states.append(row)
        states.sort(key=lambda row: row["connection"]["number"])
        tracker = self._tracker(place, _stated(pa.Table.from_pylist(states, STATE), common), common)
        tracker.rows()[0]["begun_order"] = 0
        none = np.zeros(0, np.int64)
        tracker.feed_packets(Packets(np.zeros(0, np.uint8), np.zeros(0, PACKET), none, none, 0))
        return _latest_states(tracker)

    def _tracker(self, place: int, state: pa.Table, common: Mapping[str, Any]) -> Tracker:
        return Part(place=place, state=state, common=common, left=None).tracker(**self._how)

    def _gone_on(
        self,
        place: int,
        edges: pa.Table,
        given: pa.Table,
        common: Mapping[str, Any],
        again: Callable[[], Iterable[Source]],
        split: Split | None,
    ) -> dict[bytes, dict[str, Any]]:
        """The true states, at the end of a file, of connections that came before it, whose states were ``given``."""
        row_of = {key: row for row, key in enumerate(edges.column("ends").to_pylist())}
        before = [key for key, _ in ends(_connections(given))]
        mine = _taken(edges, [row_of[key] for key in before])
        found: dict[bytes, dict[str, Any]] = {}
        doubtful: list[bytes] = []
        scanned = mine.to_pylist()
        at_head = self._fed(place, given, [one for edge in scanned for one in edge["head"]], common)
        began = [edge["began"] for edge in scanned]
        for key, edge, was in zip(before, scanned, _rows(given, began), strict=True):
            if was is not None:
                if is_another(was, edge):
                    edge["connection"]["number"] = place << PART_BITS | max(0, edge["connection"]["first_order"])
                    found[key] = {name: edge[name] for name in STATE.names}
                else:
                    doubtful.append(key)
                continue
            true = at_head[key]
            if edge["agreed"] is not None and digest(true) == edge["agreed"]:
                found[key] = moved_on(true, edge, place)
                self.joined += 1
            elif is_let_go(true, edge):
                found[key] = moved_on(true, edge, place)
            else:
                doubtful.append(key)
        if doubtful:
            found |= self._read_again(place, given, doubtful, common, again, split)
        return found

    def _fed(
        self, place: int, given: pa.Table, packets: list[dict[str, Any]], common: Mapping[str, Any]
    ) -> dict[bytes, dict[str, Any]]:
        """The states to which the packets of heads lead from those that are true before the file."""
        tracker = self._tracker(place, given, common)
        packets = sorted(packets, key=itemgetter("order"))
        table = np.zeros(len(packets), PACKET)
        for name in ("time", "link"):
            table[name] = [one[name] for one in packets]
        table["captured"] = [len(one["bytes"]) for one in packets]
        table["off"] = np.cumsum(table["captured"]) - table["captured"]
        clock = np.array([one["clock"] for one in packets], np.int64)
        data = np.frombuffer(b"".join(one["bytes"] for one in packets), np.uint8)
        self._heard(tracker.feed_packets(Packets(data, table, clock, table["link"], 0)))
        return _latest_states(tracker)

    def _read_again(
        self,
        place: int,
        given: pa.Table,
        doubtful: list[bytes],
        common: Mapping[str, Any],
        again: Callable[[], Iterable[Source]],
        split: Split | None,
    ) -> dict[bytes, dict[str, Any]]:
        self.read_again += len(doubtful)
        part = Part(place=place, state=given, common=common, left=None, split=split)
        tracker = part.tracker(**self._how)
        for reading in _readings(again(), part, self._how):
            tracker = reading.tracker
            try:
                for frames in reading:
                    self._heard(frames)
            except (CaptureError, *UNREADABLE) as error:
                if not is_damage(error):
                    raise
        states = _latest_states(tracker)
        return {key: states[key] for key in doubtful}


def _unheard(frames: Frames) -> None:
    """Where nobody wants to know."""


def together(before: Mapping[str, Any], here: Mapping[str, Any]) -> dict[str, Any]:
    """What is known at the end of a file in addition to connections (``Tracker.common``), after what was known
    ``before`` it.
    """
    if not before or not here:
        return dict(before or here)
    brokers = {*map(tuple, before["brokers"]), *map(tuple, here["brokers"])}
    return {
        "now": max(before["now"], here["now"]),
        "brokers": sorted(map(list, brokers)),
        "fragments": here["fragments"],
    }


def in_order(places: Sequence[int]) -> Iterator[tuple[Part, Callable[[Tracker], None]]]:
    """Parts that are read one after the other, each from where the one before it was.

    With each comes a function to call with the tracker that has read it. Where there is no function, the part is none.
    """
    state: pa.Table | None = None
    common: Mapping[str, Any] = {}
    topics: dict[bytes, str] = {}
    memory: dict[str, Any] = {}

    def ended(tracker: Tracker) -> None:
        nonlocal state, common
        state, common = still_open(tracker), tracker.common()

    for place in places:
        left = frozenset[bytes]() if place == places[-1] else None
        yield Part(place=place, state=state, common=common, topics=topics, memory=memory, left=left), ended


def still_open(tracker: Tracker, since: int | None = None) -> pa.Table:
    """The states of the connections of a part that a later one may go on with.

    ``since``: only connections that had a packet at this time or later, in nanoseconds since 1970.
    """
    rows, streams = tracker.rows()
    ended = (streams["end"] >= 0) & (streams["next"] >= streams["end"])
    over = (rows["closed"] == 1) | (ended[0::2] & ended[1::2])
    if since is not None:
        times = np.maximum(streams["last_time"][0::2], streams["last_time"][1::2])
        over |= (times < since) & (times > ABSENT)
    return tracker.save(int(rows["number"][slot]) for slot in latest(rows).values() if not over[slot])


def _stated(rows: pa.Table, common: Mapping[str, Any]) -> pa.Table:
    said = {"version": STATE_VERSION, "now": common.get("now", NO_TIME)}
    return rows.replace_schema_metadata({"kwire": json.dumps(said)})


def _taken(table: pa.Table, rows: list[int]) -> pa.Table:
    # Each of these columns is taken by itself. It is left out where all rows are wanted, or none.
    if rows == list(range(table.num_rows)):
        return table
    return table.take(pa.array(rows, pa.int64())) if rows else table.slice(0, 0)


def _connections(states: pa.Table) -> Array:
    rows = np.zeros(states.num_rows, CONNECTION)
    structs = states.column("connection").combine_chunks()
    for name in CONNECTION.names:
        rows[name] = structs.field(name).to_numpy()
    return rows


def _rows(states: pa.Table, wanted: list[bool]) -> list[dict[str, Any] | None]:
    chosen = iter(_taken(states, [row for row, one in enumerate(wanted) if one]).to_pylist())
    return [next(chosen) if one else None for one in wanted]


def _latest_states(tracker: Tracker) -> dict[bytes, dict[str, Any]]:
    """The rows of STATE of the last connection on each pair of ports."""
    rows, _ = tracker.rows()
    last = sorted(latest(rows).items(), key=lambda one: one[1])
    saved = tracker.save(int(rows["number"][slot]) for _, slot in last)
    # States are in order of slots.
    return dict(zip([key for key, _ in last], saved.to_pylist(), strict=True))
