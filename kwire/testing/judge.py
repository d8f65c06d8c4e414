"""What a parser makes of an impaired capture, held against what it makes of the original.

``Original`` reads a capture once, and finds out at which bytes of its connections each frame stands. ``judge`` compares
the rows of an impaired capture with it and returns a ``Verdict``. It lists rows that differ where nothing was lost, and
frames that were made up. It lists frames that are gone without a row that says so. It says how long it took to find
frames again after a loss. ``rows`` are kwire's; another parser can be judged as well by rows that are made from its
output.

Rules kept here:

- What is right is known without the parser's help. It comes from the original, and from which bytes of it are in the
  impaired capture.
- A frame is recognised if all of its bytes are given out as one frame, with its time. Its request need not be known.
- Statuses are those that users see, by whole bodies. What is ``trailing`` is said to have been sent as what is ``ok``.
- Where bytes are in the capture and no frame is given out, rows that are no frames must stand for at least as many
  bytes. Such rows are gaps and frames that are cut off. They must be between the same two frames.
- Sometimes it is not known which bytes of a capture are those of a frame. It was encrypted, or its connection was not
  captured from its beginning. Where such a frame is gone between two that are given out, a row must stand between
  these.
- A connection of which nothing shows that it is Kafka has no frames. 16 bytes may be all that was captured of it.
  `connections` says so, with status ``unknown`` and its bytes. This counts as a row that is no frame. One that is said
  not to be Kafka (``other``) is gone without a word.
"""

from __future__ import annotations

import io
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Final, NamedTuple

from kwire.capture.connections import Connections
from kwire.capture.frames import Frames
from kwire.capture.reading import Reading
from kwire.errors import CaptureError
from kwire.kernels.layouts import ABSENT, Reason, Role, Status
from kwire.testing.impair import Account, Grade, Impaired
from kwire.testing.packets import End, Flows, Side, read
from kwire.tls import KeyLog

__all__ = ["Original", "Row", "Verdict", "judge", "rows"]

_SEQUENCES: Final = 1 << 32
_FARTHEST: Final = 1 << 28
_RIGHT: Final = 1
_WRONG: Final = 2
_WITHOUT_SYN: Final = frozenset(("ports-again-without-syn", "ports-again-without-fin-and-syn"))
_SENT: Final = ("ok", "trailing")
"""Statuses of what is said to have been sent as it is shown."""
_NO_FRAME: Final = (Reason.SIZE, Reason.NO_FRAME)
"""Of rows that stand for a size alone."""


class Row(NamedTuple):
    """What a parser says of a frame, or of bytes in which it sees none."""

    sender: End
    receiver: End
    is_response: bool
    api: int | None
    version: int | None
    id: int | None
    client_id: str | None
    size: int
    """Bytes after the frame's size, or that were skipped; 0 where the size is none."""
    status: str
    """``ok``, ``unpaired`` and so on."""
    error: str | None
    skipped: bool
    """Not a frame: bytes in which none was seen."""
    digest: bytes
    """Of what there is of the frame."""
    time: int
    latency: int | None
    number: int
    connection: int


def rows(
    capture: bytes, *, window: int | None = None, ports: Iterable[int] | None = None, keys: KeyLog | None = None
) -> list[Row]:
    """What kwire says of a capture, by number. It goes up to the capture's end, or to where it is damaged. With
    ``keys`` also of what is encrypted by them."""
    return _rows_and_rest(capture, window=window, ports=ports, keys=keys)[0]


def _rows_and_rest(
    capture: bytes, *, window: int | None = None, ports: Iterable[int] | None = None, keys: KeyLog | None = None
) -> tuple[list[Row], list[Row]]:
    """``rows``, and one for each direction of the connections of unknown kind, which `connections` has."""
    found: list[Row] = []
    hosts: dict[tuple[int, int], tuple[End, End]] = {}
    clients: dict[int, str | None] = {}
    reading = Reading(io.BytesIO(capture), ports=ports, window=window, keys=keys)
    try:
        for frames in reading:
            found += _rows(frames, hosts, clients)
    except CaptureError:
        pass  # what stands before the damage was read
    return sorted(found, key=lambda row: row.number), _of_unknown_kind(reading.tracker.known())


def _of_unknown_kind(known: Connections) -> list[Row]:
    """Rows, which are no frames, for what was captured of connections of which nothing shows that they are Kafka."""
    made = []
    hosts = known.hosts(0, len(known))
    for slot in (known.rows["role"] == Role.UNKNOWN).nonzero()[0].tolist():
        row = known.rows[slot]
        ends = [End(hosts[side][slot], int(row[f"{'ab'[side]}_port"])) for side in (0, 1)]
        for side in (0, 1):
            sent = known.sent[side][slot]
            size = int(sent["payload"] - sent["repeated"])
            made.append(
                Row(
                    sender=ends[side],
                    receiver=ends[1 - side],
                    is_response=False,
                    api=None,
                    version=None,
                    id=None,
                    client_id=None,
                    size=size,
                    status="unknown",
                    error=None,
                    skipped=True,
                    digest=b"",
                    time=int(sent["first_time"]),
                    latency=None,
                    number=-1,
                    connection=int(row["number"]),
                )
            )
    return [row for row in made if row.size]


def _rows(frames: Frames, hosts: dict[tuple[int, int], tuple[End, End]], clients: dict[int, str | None]) -> list[Row]:
    if not len(frames):
        return []
    columns: dict[str, list[Any]] = {name: frames[name].tolist() for name in frames.table.dtype.names}
    connections = frames.of_connections("number", frames["slot"]).tolist()
    statuses = frames.statuses.tolist()
    errors = dict(frames.errors(frames.statuses.nonzero()[0]))
    made = []
    for k, connection in enumerate(connections):
        row = {name: column[k] for name, column in columns.items()}
        side = row["client_side"]
        ends = hosts.get((connection, side))
        if ends is None:
            pair = [End(end.host, end.port) for end in frames.ends(row["slot"])]
            ends = hosts[connection, side] = pair[side], pair[1 - side]
        if row["client"] not in clients:
            clients[row["client"]] = frames.client_id(row["client"])
        known = [None if row[name] == ABSENT else row[name] for name in ("api", "version", "id", "latency")]
        response = row["response"] == 1
        made.append(
            Row(
                sender=ends[1] if response else ends[0],
                receiver=ends[0] if response else ends[1],
                is_response=response,
                api=known[0],
                version=known[1],
                id=known[2],
                client_id=clients[row["client"]],
                size=0 if row["reason"] in _NO_FRAME else row["size"],
                status=Status(statuses[k]).name.lower(),
                error=errors.get(k),
                skipped=row["reason"] in (Reason.SKIPPED, *_NO_FRAME) or statuses[k] == Status.ENCRYPTED,
                digest=_digest(frames.bytes_of(k)),
                time=row["time"],
                latency=known[3],
                number=row["number"],
                connection=connection,
            )
        )
    return made


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=12).digest()


class _Place(NamedTuple):
    """Where a frame of the original stands in its stream."""

    row: Row
    begin: int
    end: int


class _Stream:
    """The bytes of one direction of a connection, and its frames."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.there = bytearray()
        self.places: list[_Place] = []

    def put(self, at: int, payload: bytes) -> None:
        """Enters bytes; those that are there stay."""
        end = at + len(payload)
        if at < 0 or end > _FARTHEST:
            return
        if end > len(self.data):
            self.data.extend(bytes(end - len(self.data)))
            self.there.extend(bytes(end - len(self.there)))
        if not any(self.there[at:end]):
            self.data[at:end] = payload
            self.there[at:end] = bytes([_RIGHT]) * len(payload)
            return
        for k, byte in enumerate(payload, at):
            if not self.there[k]:
                self.data[k] = byte
                self.there[k] = _RIGHT


class Original:
    """A capture that is not damaged: its rows, and where its frames stand. ``keys`` are the secrets of what it has
    encrypted.

    ``unplaced`` counts frames whose place is not known (they are encrypted, or their connection was not captured from
    its beginning). Of those less is said.
    """

    def __init__(self, capture: bytes, keys: KeyLog | None = None) -> None:
        self.capture = capture
        self.keys = keys
        self.rows: list[Row] = rows(capture, keys=keys)
        self.parsed: Flows = Flows(read(capture))
        self.streams: dict[Side, _Stream] = defaultdict(_Stream)
        self.starts: dict[Side, int] = {}
        self.unplaced: int = 0
        for part, side in zip(self.parsed.segments, self.parsed.sides, strict=True):
            if part is not None and side is not None and part.length and not part.flags & 4:
                start = self.parsed.flows[side.flow].starts[side.end]
                if start is not None:
                    self.starts[side] = start
                    self.streams[side].put((part.seq - start) % _SEQUENCES, part.payload)
        self._place()

    def _place(self) -> None:
        """Finds the bytes of each frame."""
        directions: dict[tuple[int, End], list[Row]] = defaultdict(list)
        for row in self.rows:
            directions[row.connection, row.sender].append(row)
        candidates: dict[End, list[Side]] = defaultdict(list)
        for number, flow in enumerate(self.parsed.flows):
            for end in (0, 1):
                candidates[flow.ends[end]].append(Side(number, end))
        for (_, sender), own in directions.items():
            for side in candidates[sender]:
                flow = self.parsed.flows[side.flow]
                if flow.ends[1 - side.end] != own[0].receiver or side not in self.streams:
                    continue
                places = _placed(own, self.streams[side])
                if places is not None and not self.streams[side].places:
                    self.streams[side].places = places
                    break
            else:
                self.unplaced += sum(row.status in _SENT for row in own)


def _placed(own: Sequence[Row], stream: _Stream) -> list[_Place] | None:
    """The places of all frames of a stream; None if its bytes are not those of the frames."""
    places = []
    at = 0
    for row in own:
        if row.skipped:
            return None
        end = at + 4 + row.size
        if row.status != "cut_off":
            if end > len(stream.data) or _digest(bytes(stream.data[at + 4 : end])) != row.digest:
                return None
            places.append(_Place(row, at, end))
        at = end
    return places


@dataclass(slots=True)
class Verdict:
    """What is to be said of a parser and an impaired capture."""

    frames: int
    """Frames of the original."""
    differing: list[tuple[str, Row]] = field(default_factory=list)
    """Rows that are ``missing``, and rows that are there ``instead``, with which of the two it is.

    Where nothing was lost, of the rows of the original. Else of those that are found in one window, where a small one
    was asked for.
    """
    invented: list[Row] = field(default_factory=list)
    """Rows with the status ``ok`` or ``trailing`` of what was never sent."""
    unseen: list[Row] = field(default_factory=list)
    """Frames that are not given out, though bytes of them are in the capture, and no row stands for those bytes."""
    intact: int = 0
    """Frames of the original all of whose bytes are there."""
    missed: int = 0
    """Of those, frames that are not given out, whether or not a row says so."""
    unconfirmed: int = 0
    """Rows with that status of frames that were sent."""
    passed_over: list[int] = field(default_factory=list)
    """For each loss that frames follow: how many whole frames were skipped until one was recognised again."""

    @property
    def good(self) -> bool:
        """Whether nothing differs, was made up or lost without a word."""
        return not (self.differing or self.invented or self.unseen)


def judge(
    original: Original, impaired: Impaired, *, window: int | None = None, found: Sequence[Row] | None = None
) -> Verdict:
    """What is to be said of the rows of an impaired capture. They are ``found``, or what kwire reads with this
    ``window``.

    Raises ``ValueError`` for an account with a kind of ``Grade.PAYLOAD``. What such a kind makes is an original.
    """
    account = impaired.account
    grades = {kind.grade for kind in account.kinds}
    if Grade.PAYLOAD in grades:
        raise ValueError("a capture with another content is an original of its own")
    keys = original.keys
    twice = found is None and window is not None and Grade.LOSSY in grades
    at_once = rows(impaired.data, keys=keys) if twice else None
    rest: Sequence[Row] = ()
    if found is None:
        found, rest = _rows_and_rest(impaired.data, window=window, keys=keys)
    found = [_as_before(row, account) for row in found]
    rest = [_as_before(row, account) for row in rest]
    verdict = Verdict(frames=sum(row.status in _SENT for row in original.rows))
    if Grade.LOSSY in grades:
        _judge_lossy(original, impaired, found, rest, verdict)
        if at_once is not None:
            verdict.differing = _difference(
                (_comparable(_as_before(row, account), True, False) for row in at_once),
                (_comparable(row, True, False) for row in found),
            )
    else:
        verdict.differing = _differing(original.rows, found, account)
    return verdict


def _as_before(row: Row, account: Account) -> Row:
    if not account.hosts:
        return row
    sender, receiver = row.sender, row.receiver
    return row._replace(
        sender=End(account.hosts.get(sender.host, sender.host), sender.port),
        receiver=End(account.hosts.get(receiver.host, receiver.host), receiver.port),
    )


def _differing(before: Sequence[Row], found: Sequence[Row], account: Account) -> list[tuple[str, Row]]:
    """Rows that are missing, and those that are there instead. Only as far as the account says that they are the
    same."""
    wanted = list(before)
    for ends in account.repeated:
        wanted += [row for row in before if row.sender in ends and row.receiver in ends]
    if any(kind.name in _WITHOUT_SYN for kind in account.kinds):
        # Where the handshake is missing, a frame may have been a value within another one.
        found = [row._replace(status="ok", error=None) if row.status == "unconfirmed" else row for row in found]
        # Of the response to an old Produce request that may have been one, the client is not known.
        names = {_key(row._replace(client_id=None)): row.client_id for row in wanted if row.is_response}
        found = [row._replace(client_id=names[_key(row)]) if _key(row) in names else row for row in found]
    times = account.keeps_times and not account.repeated
    order = account.keeps_order and not account.repeated
    # A row too many gives all that follow another number. That is said only where nothing else is to be said.
    for numbered in (False, True)[: 1 + order]:
        said = _difference(
            (_comparable(row, times, numbered) for row in wanted), (_comparable(row, times, numbered) for row in found)
        )
        if said:
            return said
    return []


def _comparable(row: Row, times: bool, order: bool) -> Row:
    if not times:
        row = row._replace(time=0, latency=None)
    return row if order else row._replace(number=0, connection=0)


def _difference(wanted: Iterable[Row], found: Iterable[Row]) -> list[tuple[str, Row]]:
    missing, there = Counter(wanted), Counter(found)
    said = [("missing", row) for row in (missing - there).elements()]
    return said + [("instead", row) for row in (there - missing).elements()]


def _judge_lossy(
    original: Original, impaired: Impaired, found: Sequence[Row], rest: Sequence[Row], verdict: Verdict
) -> None:
    left = _left(original, impaired)
    sent = {(row.sender, row.receiver, row.size, row.digest) for row in original.rows if row.status in _SENT}
    verdict.unconfirmed = sum(
        row.status == "unconfirmed" and (row.sender, row.receiver, row.size, row.digest) in sent for row in found
    )
    verdict.invented = _invented(original, found, left, bool(impaired.account.altered))
    by_direction: dict[tuple[End, End], list[Row]] = defaultdict(list)
    # Connections on the same ports follow one another. What is left of one may be said when the next has begun.
    for row in sorted(found, key=lambda row: row.connection):
        by_direction[row.sender, row.receiver].append(row)
    for row in rest:
        # Connections on the same ports have numbers in the order of time.
        own = by_direction[row.sender, row.receiver]
        own.insert(next((k for k, one in enumerate(own) if one.connection > row.connection), len(own)), row)
    directions: dict[tuple[End, End], list[Side]] = defaultdict(list)
    for side, stream in original.streams.items():
        if stream.places:
            ends = original.parsed.flows[side.flow].ends
            directions[ends[side.end], ends[1 - side.end]].append(side)
    for direction, sides in directions.items():
        # Connections on the same ports follow each other.
        _judge_direction([(original.streams[side], left[side]) for side in sides], by_direction[direction], verdict)
    unplaced: dict[tuple[End, End], list[_Place]] = defaultdict(list)
    for row in original.rows:
        if row.status in _SENT:
            unplaced[row.sender, row.receiver].append(_Place(row, 0, 0))
    for direction in unplaced.keys() - directions.keys():
        _judge_unplaced(unplaced[direction], by_direction[direction], verdict)


def _left(original: Original, impaired: Impaired) -> dict[Side, tuple[bytearray, bytearray]]:
    """Of each stream: for each byte whether it is there, and right; and the bytes as they are now."""
    left = {side: (bytearray(len(one.data)), bytearray(one.data)) for side, one in original.streams.items()}
    damaged = Flows(read(impaired.data) if len(impaired.data) >= 24 else [])
    for part, sources in zip(damaged.segments, impaired.account.sources, strict=True):
        side = original.parsed.sides[sources[0]] if sources else None
        if part is None or side is None or side not in left or part.flags & 4:
            continue
        mask, data = left[side]
        at = (part.seq - impaired.account.jumped.get(sources[0], 0) - original.starts[side]) % _SEQUENCES
        for k, byte in enumerate(part.payload, at):
            if k < len(mask) and not mask[k]:
                mask[k] = _RIGHT if data[k] == byte else _WRONG
                data[k] = byte
    return left


def _key(row: Row) -> tuple[Any, ...]:
    return (*row[:8], row.digest)


def _invented(
    original: Original, found: Sequence[Row], left: dict[Side, tuple[bytearray, bytearray]], altered: bool
) -> list[Row]:
    """Rows that say ``ok`` or ``trailing`` of what is not in the original, or more often than it is."""
    known = Counter(_key(row) for row in original.rows if row.status in _SENT)
    loose: set[tuple[Any, ...]] = set()
    if altered:
        # Between its borders, a frame with wrong bytes is what it is now; so is what its response says of it.
        asked = set()
        for side, stream in original.streams.items():
            mask, data = left[side]
            for row, begin, end in stream.places:
                if _WRONG in mask[begin + 4 : end]:
                    asked.add((row.connection, row.id))
                    loose.add((row.sender, row.receiver, row.size, _digest(bytes(data[begin + 4 : end]))))
        for row in original.rows:
            if row.is_response and (row.connection, row.id) in asked:
                loose.add((row.sender, row.receiver, row.size, row.digest))
    whose: dict[tuple[Any, ...], list[str | None]] = defaultdict(list)
    for row in original.rows:
        whose[_key(row._replace(client_id=None))].append(row.client_id)
    made_up = []
    for row in found:
        if row.status not in _SENT:
            continue
        key = _key(row)
        if row.client_id is None:
            # Of a response whose request was cut short, it is not known.
            key = next((one for name in whose[key] if known[one := _key(row._replace(client_id=name))] > 0), key)
        if known[key] > 0:
            known[key] -= 1
        elif (row.sender, row.receiver, row.size, row.digest) not in loose:
            made_up.append(row)
    return made_up


def _judge_direction(
    streams: Sequence[tuple[_Stream, tuple[bytearray, bytearray]]], found: Sequence[Row], verdict: Verdict
) -> None:
    """What became of the frames of one direction."""
    places: list[_Place] = []
    masks: list[bytearray] = []
    for stream, (mask, _) in streams:
        places += stream.places
        masks += [mask[begin:end] for _, begin, end in stream.places]
    whole = [bool(mask) and mask.count(_RIGHT) == len(mask) for mask in masks]
    matched = _matched(places, whole, found)
    verdict.intact += sum(whole)
    verdict.missed += sum(is_whole and k not in matched for k, is_whole in enumerate(whole))
    pending: int | None = None
    for k, is_whole in enumerate(whole):
        if not is_whole:
            if pending:
                verdict.passed_over.append(pending)
            pending = 0
        elif k in matched:
            if pending is not None:
                verdict.passed_over.append(pending)
            pending = None
        elif pending is not None:
            pending += 1
    if pending:
        verdict.passed_over.append(pending)
    # Between two frames that were recognised, rows stand for what was not.
    borders = [(-1, -1), *sorted(matched.items()), (len(places), len(found))]
    for (before, row_before), (after, row_after) in pairwise(borders):
        needed = sum(len(mask) - mask.count(0) for mask in masks[before + 1 : after])
        if not needed:
            continue
        covered = sum(row.size if row.skipped else 4 + row.size for row in found[row_before + 1 : row_after])
        if covered < needed:
            gone = [place.row for place, mask in zip(places, masks, strict=True)][before + 1 : after]
            there = [row for row, mask in zip(gone, masks[before + 1 : after], strict=True) if any(mask)]
            count = -(-len(there) * (needed - covered) // needed)
            verdict.unseen += there[:count]


def _judge_unplaced(places: Sequence[_Place], found: Sequence[Row], verdict: Verdict) -> None:
    """What became of the frames of one direction of which it is not known where they stand. Of those that are gone
    between two others without a row: that nothing says so."""
    matched = sorted(_matched(places, [True] * len(places), found).items())
    for (before, row_before), (after, row_after) in pairwise(matched):
        if row_after == row_before + 1:
            verdict.unseen += [place.row for place in places[before + 1 : after]]


def _matched(places: Sequence[_Place], whole: Sequence[bool], found: Sequence[Row]) -> dict[int, int]:
    """The frames that were recognised: which row (by place in ``found``) each of them (by place in ``places``) is."""
    # The time belongs to it: a value may be a copy of a frame that is sent before or after it.
    where: dict[tuple[bool, int, bytes, int], list[int]] = defaultdict(list)
    for k, place in enumerate(places):
        if whole[k]:
            where[place.row.is_response, place.row.size, place.row.digest, place.row.time].append(k)
    # As many as can be, in order: bytes that were changed may make a frame into a later one.
    links: list[tuple[int, int, int]] = []
    tails: list[int] = []
    ends: list[int] = []
    for number, row in enumerate(found):
        if row.skipped or row.status in ("gap", "cut_off"):
            continue
        for k in reversed(where.get((row.is_response, row.size, row.digest, row.time), ())):
            at = bisect_left(tails, k)
            links.append((k, number, ends[at - 1] if at else -1))
            tails[at : at + 1] = [k]
            ends[at : at + 1] = [len(links) - 1]
    matched: dict[int, int] = {}
    link = ends[-1] if ends else -1
    while link >= 0:
        k, number, link = links[link]
        matched[k] = number
    return matched
