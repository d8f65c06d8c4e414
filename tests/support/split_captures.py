"""A capture in parts, files or splits of one, and the rows that they have together."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from valid_batches import valid

from kwire.capture.across import SCAN_WINDOW, Chain, Scan, scan, together
from kwire.capture.parts import Part
from kwire.capture.splits import Split
from kwire.errors import CaptureError
from kwire.tables.committed import Answered
from kwire.tables.reading import read
from kwire.tables.topics import Topics

Row = dict[str, Any]
Piece = tuple[bytes, Split | None]
"""The bytes of a part, from its beginning on, and its split where it is one."""
Given = bytes | Piece | list[bytes]
"""A part: a file, a split, or several files."""

NOT_COMPARED = ("capture", "connection", "frame")
"""Numbers are those of files; what they say is looked at on its own."""


def pieces_of(data: bytes, splits: Sequence[Split]) -> list[Piece]:
    """The splits of a file, with the bytes that their tasks may read."""
    return [(data[one.begin :], one) for one in splits]


def parts_of(files: Sequence[Given], window: int = SCAN_WINDOW, **options: Any) -> tuple[list[Part | None], Chain]:
    """What each of the parts is to know of the others; None for a split that is none. ``window``: of their scans."""
    pieces = [(files_of(one), one[1] if isinstance(one, tuple) else None) for one in files]
    scans: list[Scan | None] = []
    over = False
    # Names of topics: what was said before, or else what is said first behind that.
    topics, said = Topics(), []
    for data, split in pieces:
        names: dict[bytes, str] = {}
        found = scan(opened(data), split=split, seen=partial(_learn, topics, names), window=window, **options)
        said.append(names)
        scans.append(None if split is not None and over else found)
        over = over or (split is not None and found.over)
    later: dict[bytes, str] = {}
    for names in reversed(said):
        later.update(names)
    known: list[dict[bytes, str]] = [{}]
    for names in said:
        known.append({**known[-1], **names})
    answered = Answered()
    chain = Chain(**options, heard=answered.hear)
    answers: dict[int, list[pa.Table]] = {}
    links, common = [], {}
    seen: list[Any] = []
    for place, ((data, split), one) in enumerate(zip(pieces, scans, strict=True)):
        seen.append(common)
        if one is None:
            links.append(None)
            continue
        link = chain.add(place, one.edges, common, partial(opened, data), split)
        links.append(link)
        for asker, some in answered.of(link).items():
            answers.setdefault(asker, []).append(some)
        common = together(common, one.common)
    left: list[set[bytes]] = [set() for _ in files]
    for link in filter(None, links):
        for key, place in link.gone_on.items():
            left[place].add(key)
    made = [
        None
        if link is None
        else Part(
            place=place,
            state=link.state,
            left=frozenset(left[place]),
            common=seen[place],
            split=split,
            topics={**later, **known[place]},
            answers=pa.concat_tables(answers[place]) if place in answers else None,
        )
        for place, (link, (_, split)) in enumerate(zip(links, pieces, strict=True))
    ]
    return made, chain


def _learn(topics: Topics, names: dict[bytes, str], frames: Any) -> None:
    names.update(topics.learn(frames))


def files_of(part: Given) -> list[bytes]:
    """The bytes of each file of a part."""
    if isinstance(part, list):
        return part
    return [part if isinstance(part, bytes) else part[0]]


def opened(files: Sequence[bytes]) -> list[io.BytesIO]:
    return [io.BytesIO(one) for one in files]


def batches_of(
    given: Given, part: Part | None, tables: Mapping[str, Sequence[str] | None], **options: Any
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows that some tables have of a part; none of a split that is none. What is wrong with a file is raised at
    the end."""
    if part is None:
        return
    files = files_of(given)
    problem: CaptureError | None = None
    for source, (one, ended) in zip(opened(files), part.of_files(len(files)), strict=True):
        try:
            yield from read(source, tables, part=one, on_end=ended, **options)
        except CaptureError as wrong:
            problem = problem or wrong
    if problem is not None:
        raise problem


def rows_of(files: Sequence[Given], table: str, columns: Sequence[str] | None = None, **options: Any) -> list[Row]:
    """The rows of all parts. Raises what the first damaged one raises, when all are read."""
    parts, _ = parts_of(files, **options)
    found = []
    error = None
    for one, part in zip(files, parts, strict=True):
        try:
            for _, batch in batches_of(one, part, {table: columns}, **options):
                valid([batch])
                found += batch.to_pylist()
        except CaptureError as problem:
            error = error or problem
    if error is not None:
        error.rows = found  # type: ignore[attr-defined]
        raise error
    return found


def compared(rows: Iterable[Row]) -> list[str]:
    """Rows without what depends on how they were cut, in an order of their own."""
    return sorted(repr({name: value for name, value in row.items() if name not in NOT_COMPARED}) for row in rows)
