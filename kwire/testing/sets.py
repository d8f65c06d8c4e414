"""Record sets and log segments for Hypothesis: any magic and codec, transactions, gaps, damage under a right checksum.

A ``RecordSet`` is a recipe: ``repr`` is code that makes it, ``data`` its bytes, ``records`` what a reader has to give.

    RecordSet(entries=(Entry(records=(Record(value=b"x"),), codec="zstd"),), base_offset=7)

Rules kept here:

- Offsets go on from entry to entry, with the gaps that compaction leaves.
- Messages of magic 0 and 1 have no headers, and magic 0 has no timestamps.
- ``segments`` are what a broker writes: formats do not become older, and transactions end with markers.

Sources: protocol guide, "Record Batch" and "Record"; KIP-31, KIP-32, KIP-98.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kwire import records
from kwire.records import CODECS, Codec, Record, control_key
from kwire.records.crc import crc32c
from kwire.testing.mutation import Damage, damages
from kwire.testing.recipes import Recipe

__all__ = ["Entry", "RecordSet", "record_sets", "segments"]

_CODECS: Final[tuple[Codec, ...]] = CODECS[:5]
_TIME: Final = 1_700_000_000_000
_MARKER: Final = struct.Struct(">hi")
_BATCH_BODY: Final = 21
"""Where that begins which the checksum of a batch is over."""
_MESSAGE_BODY: Final = 16
_LARGEST_GAP: Final = 1 << 20


@dataclass(frozen=True, repr=False, kw_only=True)
class Entry(Recipe):
    """A record batch of magic 2, a compressed message, or plain messages.

    ``gap``: offsets before it that are not there. ``append_time``: the broker's timestamp for all records, in
    milliseconds. ``producer``: id, epoch and first sequence number, -1 for none. ``marker`` ends the transaction of
    the producer; it has no other records.
    """

    records: tuple[Record, ...] = ()
    magic: int = 2
    codec: Codec = "none"
    gap: int = 0
    append_time: int | None = None
    producer: tuple[int, int, int] = (-1, -1, -1)
    transactional: bool = False
    marker: Literal["commit", "abort"] | None = None

    @property
    def written(self) -> list[Record]:
        """Its records, as they are written."""
        if self.marker is None:
            return list(self.records)
        return [Record(control_key(self.marker), _MARKER.pack(0, 0), timestamp=_TIME)]

    def encoded(self, base_offset: int) -> bytes:
        """Its bytes."""
        more: dict[str, Any] = {}
        if self.magic == 2:
            names = ("producer_id", "producer_epoch", "base_sequence")
            more = dict(zip(names, self.producer, strict=True))
            more["is_transactional"] = self.transactional or self.marker is not None
            more["is_control"] = self.marker is not None
        if self.magic:
            more["log_append_time"] = self.append_time
        return records.encode(self.written, magic=self.magic, compression=self.codec, base_offset=base_offset, **more)


@dataclass(frozen=True, repr=False, kw_only=True)
class RecordSet(Recipe):
    """Entries one after the other, from ``base_offset`` on, and what was done to the bytes then.

    With ``sealed``, the size and the checksum of the first entry are right again after the damage: a parser that looks
    at checksums only does not notice it.
    """

    entries: tuple[Entry, ...] = ()
    base_offset: int = 0
    damage: tuple[Damage, ...] = ()
    sealed: bool = False

    @property
    def data(self) -> bytes:
        """The bytes."""
        made = b"".join(one.encoded(base) for base, one in self._placed())
        for one in self.damage:
            made = one.apply(made)
        return _sealed(made) if self.sealed else made

    def _placed(self) -> list[tuple[int, Entry]]:
        placed, offset = [], self.base_offset
        for one in self.entries:
            offset += one.gap
            placed.append((offset, one))
            offset += len(one.written)
        return placed

    @property
    def records(self) -> list[Record]:
        """What a reader of the undamaged set gives, control records too, with offsets and timestamps."""
        made = []
        for base, entry in self._placed():
            for number, one in enumerate(entry.written):
                time = None if entry.magic == 0 or one.timestamp == -1 else one.timestamp
                if entry.magic and entry.append_time is not None:
                    time = entry.append_time
                made.append(Record(one.key, one.value, headers=one.headers, timestamp=time, offset=base + number))
        return made

    @property
    def committed(self) -> list[int]:
        """The offsets that a consumer gets with ``isolation.level=read_committed``, where this is a whole log."""
        entries = self._placed()
        ends: dict[int, str | None] = {}
        kept: list[int] = []
        stable = None
        for base, entry in reversed(entries):
            id_ = entry.producer[0]
            if entry.marker is not None:
                ends[id_] = entry.marker
                continue
            offsets = range(base, base + len(entry.records))
            if entry.transactional and entry.magic == 2:
                end = ends.get(id_)
                if end is None:
                    stable = base
                if end != "commit":
                    continue
            kept += reversed(offsets)
        return [one for one in reversed(kept) if stable is None or one < stable]


def _sealed(data: bytes) -> bytes:
    """The bytes, with size and checksum of the first entry as they should be."""
    if len(data) <= _BATCH_BODY:
        return data
    size = struct.pack(">i", len(data) - 12)
    if data[16] == 2:
        return data[:8] + size + data[12:17] + struct.pack(">I", crc32c(data[_BATCH_BODY:])) + data[_BATCH_BODY:]
    return data[:8] + size + struct.pack(">I", zlib.crc32(data[_MESSAGE_BODY:])) + data[_MESSAGE_BODY:]


# -- strategies

_CONTENTS: Final = st.none() | st.binary(max_size=8) | st.integers(60, 70).map(lambda size: b"x" * size)
_HEADERS: Final = st.lists(st.tuples(st.text(max_size=4), _CONTENTS), max_size=2)
_TIMES: Final = st.just(_TIME) | st.none() | st.integers(0, 1 << 42)


def _records(magic: int, least: int) -> SearchStrategy[tuple[Record, ...]]:
    made = st.builds(
        Record,
        _CONTENTS,
        _CONTENTS,
        timestamp=_TIMES if magic else st.none(),
        headers=_HEADERS if magic == 2 else st.just([]),
    )
    return st.lists(made, min_size=least, max_size=3).map(tuple)


def _entries(magics: list[int], codecs: list[Codec]) -> SearchStrategy[Entry]:
    @st.composite
    def draw_entry(draw: Callable[..., Any]) -> Entry:
        magic = draw(st.sampled_from(magics))
        codec: Codec = draw(st.sampled_from(codecs))
        if codec == "zstd" and magic < 2:
            codec = "none"
        return Entry(
            records=draw(_records(magic, 1)),
            magic=magic,
            codec=codec,
            gap=draw(st.just(0) | st.integers(0, _LARGEST_GAP)),
            append_time=draw(st.none() | st.just(_TIME)) if magic else None,
            producer=draw(st.just((-1, -1, -1)) | st.just((7, 0, 0))) if magic == 2 else (-1, -1, -1),
        )

    return draw_entry()


def record_sets(
    *, magic: int | None = None, codec: Codec | None = None, damaged: bool = False, most: int = 3
) -> SearchStrategy[RecordSet]:
    """A Hypothesis strategy for record sets of 1 to ``most`` entries.

    ``magic`` and ``codec``: only these. With ``damaged``, one to three things were done to the bytes, some of them
    under a checksum that is right. Raises ``ValueError`` for a magic or codec that there is not.
    """
    if magic not in (None, 0, 1, 2):
        raise ValueError(f"magic {magic}: there are 0, 1 and 2")
    if codec is not None and (codec not in _CODECS or (codec == "zstd" and magic in (0, 1))):
        raise ValueError(f"codec {codec!r} with magic {magic}: there are {', '.join(_CODECS)}, zstd with magic 2 only")
    magics = [2, 1, 0] if magic is None else [magic]
    if codec == "zstd":
        magics = [2]
    entry = _entries(magics, list(_CODECS) if codec is None else [codec])

    @st.composite
    def draw_set(draw: Callable[..., Any]) -> RecordSet:
        entries = tuple(draw(st.lists(entry, min_size=1, max_size=most)))
        made = RecordSet(entries=entries, base_offset=draw(st.just(0) | st.integers(0, 1 << 40)))
        if not damaged:
            return made
        some = tuple(draw(st.lists(damages(len(made.data)), min_size=1, max_size=3)))
        return replace(made, damage=some, sealed=draw(st.booleans()))

    return draw_set()


def segments(*, most: int = 5) -> SearchStrategy[RecordSet]:
    """A Hypothesis strategy for log segments of up to ``most`` entries, as a broker writes them.

    ``data`` is the ``.log`` file, ``base_offset`` its name. Producers write transactions one after the other, which are
    committed, aborted, or still open.
    """
    kinds = st.sampled_from(["plain", "transactional", "commit", "abort"])

    @st.composite
    def draw_segment(draw: Callable[..., Any]) -> RecordSet:
        entries: list[Entry] = []
        magic = draw(st.sampled_from([2, 1, 0]))
        sequences: dict[int, int] = {}
        begun: set[int] = set()
        for _ in range(draw(st.integers(0, most))):
            kind = draw(kinds) if magic == 2 else "plain"
            one = draw(_entries([magic], list(_CODECS)))
            id_ = draw(st.integers(1, 2))
            if kind in ("commit", "abort"):
                if id_ not in begun:
                    continue
                begun.discard(id_)
                one = Entry(producer=(id_, 0, -1), marker="commit" if kind == "commit" else "abort", gap=one.gap)
            elif kind == "transactional":
                begun.add(id_)
                first = sequences.get(id_, 0)
                sequences[id_] = first + len(one.records)
                one = replace(one, producer=(id_, 0, first), transactional=True)
            entries.append(one)
            if draw(st.booleans()):
                magic = min(magic + 1, 2)
        return RecordSet(entries=tuple(entries), base_offset=draw(st.just(0) | st.integers(0, 1 << 40)))

    return draw_segment()
