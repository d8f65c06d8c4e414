"""Which captures belong together: the files of one sensor, in order of time.

A *sensor* is whoever wrote captures of one place in a network, one file after the other. Connections go on from one of
its files to the next.

Rules kept here:

- Captures are put in order by the time of their first packet, then by their name.
- Captures of several sensors that see the same connection are kept apart: ``sensor`` says which file is whose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from warnings import warn

import pyarrow as pa

from kwire.errors import KwireError
from kwire.spark.workers import of_file

if TYPE_CHECKING:
    from kwire.spark.files import Broken, File

__all__ = ["Sensor", "SensorFiles", "begin_of", "by_sensor", "one_by_one", "parts_of", "sensor_of"]

Sensor = int | str | Callable[[str], str] | None
"""Which sensor a file is of. One of these:

- a level of its folders from the file upwards (1: the folder it is in)
- a pattern: its first group, or all that it finds, is the sensor's name
- a function of the file's name
- None: all are of one sensor
"""

OPENED_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class SensorFiles:
    """The captures of one sensor, in order of time."""

    files: tuple[File, ...]
    places: tuple[int, ...]
    """Their places in the data set."""


def by_sensor(files: Sequence[File], sensor: Sensor, most: int | None = None) -> list[SensorFiles]:
    """The captures of each sensor, in order of the time of their first packets. Files without a first packet come
    first.

    ``most``: files of more bytes are given as several splits. Opens the files. Raises ``KwireError`` for a ``sensor``
    that says nothing of a file.
    """
    with ThreadPoolExecutor(OPENED_AT_ONCE) as pool:
        begun = list(pool.map(begin_of, files))
        files = [replace(file, broken=broken) for file, (_, broken) in zip(files, begun, strict=True)]
        splits = list(pool.map(lambda file: [file] if most is None else file.splits(most), files))
    begins = [begin for begin, _ in begun]
    of: dict[str, list[tuple[int, str, list[File]]]] = {}
    for file, begin, parts in zip(files, begins, splits, strict=True):
        of.setdefault(sensor_of(file.name, sensor), []).append((begin, file.name, parts))
    _warn_of_dates(of, files, sensor)
    found = []
    place = 0
    for _, some in sorted(of.items()):
        some.sort(key=lambda one: one[:2])
        captures = tuple(one for *_, parts in some for one in parts)
        found.append(SensorFiles(captures, tuple(range(place, place + len(captures)))))
        place += len(captures)
    return found


_DATED: Final = re.compile(
    r"(?:date|day|dt|ds|hour|hr|month|year|time)=.*"
    r"|.*(?<!\d)(?:19|20)\d\d([-_.]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?:\d\d){0,3}(?!\d).*",
    re.IGNORECASE | re.DOTALL,
)
"""Names that say a time: ``date=2026-11-22``, ``20261122``."""
_CALENDAR: Final = re.compile(r"(?:.*/)?(?:19|20)\d\d(?:/(?:0?[1-9]|1[0-2])(?:/\d{1,2}){0,2})?", re.DOTALL)
"""Folders that do, one in the other: ``2026/11/22``."""


def _warn_of_dates(of: Iterable[str], files: Sequence[File], sensor: Sensor) -> None:
    """Warns if all sensors that were found are dates. Then connections end with the folder of a day, and sensors that
    share it are taken for one."""
    if sensor is None or callable(sensor) or not files:
        return
    names = list(of)

    def dated(file: File, level: int) -> bool:
        folders = PurePosixPath(file.name).parts[:-1]
        return 0 < level < len(folders) and bool(
            _DATED.fullmatch(folders[-level]) or _CALENDAR.fullmatch("/".join(folders[: len(folders) - level + 1]))
        )

    if isinstance(sensor, str):
        if all(map(_DATED.fullmatch, names)):
            warn(f"{_such(names)}: give a pattern that finds the name of the sensor", stacklevel=2)
    elif all(dated(file, sensor) for file in files):
        level = sensor
        while dated(files[0], level):
            level += 1
        folders = PurePosixPath(files[0].name).parts[:-1]
        better = f": sensor={level} is {folders[-level]!r}" if level < len(folders) else ""
        warn(f"{_such(names)}: the option is a level of folders, counted from the file{better}", stacklevel=2)


def _such(names: Sequence[str]) -> str:
    shown = ", ".join(sorted(names)[:3])
    return f"the option 'sensor' finds dates ({shown}), so connections are cut where a folder ends"


def parts_of(some: Sequence[SensorFiles], most: int) -> list[tuple[tuple[File, ...], int]]:
    """The files of all sensors in parts of about ``most`` bytes, in order. Each with the number of its sensor."""
    from kwire.spark.files import in_groups

    return [(group, sensor) for sensor, captures in enumerate(some) for group in in_groups(captures.files, most)]


def begin_of(file: File) -> tuple[int, Broken | None]:
    """The time of a capture's first packet in nanoseconds since 1970, and what is wrong with a damaged file.

    A file that is no capture comes before all times. If a file is damaged from its beginning on, its place is not
    known. Raises ``KwireError`` if it cannot be read for another reason."""
    from kwire.capture.compressed import DamagedError
    from kwire.capture.containers import first_time_in
    from kwire.spark.files import Broken

    try:
        with of_file(file.name), file.open() as stream:
            begin, damage = first_time_in(stream)
    except DamagedError as error:
        begin, damage = None, error
    return -(1 << 63) if begin is None else begin, None if damage is None else Broken(0, str(damage))


def sensor_of(name: str, sensor: Sensor, option: str = "sensor") -> str:
    """Whose file this is. Raises ``KwireError`` where ``sensor``, the value of ``option``, does not say it."""
    if sensor is None:
        return ""
    if callable(sensor):
        return str(sensor(name))
    if isinstance(sensor, int):
        folders = PurePosixPath(name).parts[:-1]
        if not 0 < sensor <= len(folders):
            raise KwireError(f"{name} has no folder {sensor} levels up: the option {option!r}")
        return folders[-sensor]
    try:
        found = re.search(sensor, name)
    except re.error as error:
        raise KwireError(f"the option {option!r} is no pattern: {error}") from None
    of: str | None = None if found is None else found.group(1) if found.re.groups else found.group()
    if of is None:
        raise KwireError(f"the option {option!r}: nothing in {name} matches {sensor!r}")
    return of


Decode = Callable[[Any, Any, Callable[[Any], None]], Iterator[pa.RecordBatch]]


def one_by_one(captures: SensorFiles, decode: Decode) -> Iterator[pa.RecordBatch]:
    """The rows of the captures of one sensor, read in order. Each continues where the one before it ended.

    ``decode(file, part, ended)`` gives those of one file and calls ``ended`` with the tracker that has read it."""
    from kwire.capture.across import in_order

    for file, (part, ended) in zip(captures.files, in_order(captures.places), strict=True):
        yield from decode(file, part, ended)
