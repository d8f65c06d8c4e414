"""A corpus for any Kafka parser: frames and record sets, valid and damaged, each with the verdict of the protocol.

``cases`` makes them, ``write`` puts them into a folder with a manifest. ``kwire fuzz corpus`` does it on the command
line.

Rules kept here:

- The same arguments give the same cases, on every machine.
- A verdict comes from the protocol: from how the bytes were made, with its source. No decoder is asked.
- Tests hold kwire to every case with both codecs, and Kafka's own classes too (``tests/kafka/test_corpus.py``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from kwire import schema
from kwire.naming import no_such, public
from kwire.opening import create_file
from kwire.testing.corpus.captures import capture_cases
from kwire.testing.corpus.case import Case
from kwire.testing.corpus.damage import KINDS, Kind
from kwire.testing.corpus.messages import frame_cases, hurt
from kwire.testing.corpus.record_sets import RECORD_KINDS, RecordKind, record_cases
from kwire.testing.corpus.shapes import SHAPES
from kwire.testing.impair import KINDS as IMPAIRMENTS

__all__ = [
    "KINDS",
    "MANIFEST",
    "RECORDS",
    "RECORD_KINDS",
    "SHAPES",
    "Case",
    "Kind",
    "RecordKind",
    "cases",
    "check",
    "hurt",
    "spread",
    "write",
]

MANIFEST: Final = "manifest.jsonl"
"""The file that says what each of the others is."""

RECORDS: Final = "records"
"""What stands for an API where the cases are record sets."""
CAPTURES: Final = "captures"
"""What stands for an API where the cases are captures."""


def cases(
    apis: Sequence[str] = (), kinds: Sequence[str] = (), *, versions: Sequence[int] = (), seed: int = 0
) -> Iterator[Case]:
    """The cases of the corpus, those of an API one after the other.

    ``apis`` are names such as ``Fetch``, and ``records`` and ``captures``. ``kinds`` are names of ``SHAPES``,
    ``KINDS``, ``RECORD_KINDS`` and ``kwire.testing.KINDS``, ``versions`` those of an API. None of them: all. ``seed``
    changes the values in messages. Raises ``ValueError`` for a name that there is not.
    """
    check(apis, kinds)
    shapes = [one for one in SHAPES if not kinds or one in kinds]
    damages = [one for one in KINDS if not kinds or one in kinds]
    for api_key, api in schema.api_keys().items():
        if apis and api not in apis:
            continue
        for message in (schema.request(api_key), schema.response(api_key)):
            for version in () if message is None else message.versions:
                if message is not None and (not versions or version in versions):
                    yield from frame_cases(message, version, shapes, damages, seed)
    if not versions and (not apis or RECORDS in apis):
        yield from record_cases([one for one in RECORD_KINDS if not kinds or one in kinds])
    if not versions and (not apis or CAPTURES in apis):
        yield from capture_cases([one for one in IMPAIRMENTS if not kinds or one in kinds], seed)


def check(apis: Iterable[str], kinds: Iterable[str]) -> None:
    """Raises ``ValueError`` for a name of an API or a kind that there is not."""
    for what, names, known in (
        ("API", apis, [*schema.api_keys().values(), RECORDS, CAPTURES]),
        ("kind", kinds, [*SHAPES, *KINDS, *RECORD_KINDS, *IMPAIRMENTS]),
    ):
        for one in names:
            if one not in known:
                kinds_there = f"; there are {', '.join([*SHAPES, *KINDS])}, and those of records and captures"
                raise ValueError(no_such(what, one, known) + kinds_there * (what == "kind"))


def spread(some: Sequence[Case], most: int) -> list[Case]:
    """At most so many cases, evenly spread; 0 or less: all of them."""
    if most <= 0 or most >= len(some):
        return list(some)
    return [some[number * len(some) // most] for number in range(most)]


def write(folder: Path, some: Iterable[Case]) -> Counter[str]:
    """Writes cases into a folder, which must be new or empty: a file for each, and a manifest of JSON lines.

    Returns how many cases have each verdict. Raises ``FileExistsError`` where the folder has something in it.
    """
    count: Counter[str] = Counter()
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(f"{public(folder)} is not empty: give the name of a new folder")
    made: set[Path] = set()
    with create_file(folder / MANIFEST) as manifest:
        for one in some:
            file = folder / one.file
            if file.parent not in made:
                made.add(file.parent)
                file.parent.mkdir(parents=True, exist_ok=True)
            with create_file(file) as out:
                out.write(one.data)
            manifest.write(json.dumps(one.line()).encode() + b"\n")
            count[one.verdict] += 1
    return count
