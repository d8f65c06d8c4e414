"""Captures fed to trackers in parts: where their packets end, and what all parts together gave."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

from kwire.capture.frames import Frames
from kwire.capture.tracker import Tracker

PCAP_HEADER = 24


class Seen(NamedTuple):
    """A frame as it was given: everything that is known of it."""

    number: int
    connection: int
    client: tuple[str, int]
    broker: tuple[str, int]
    response: int
    time: int
    order: int
    size: int
    api: int
    version: int
    id: int
    latency: int
    status: int
    reason: int
    detail: int
    client_id: str | None
    data: bytes


def seen(frames: Frames) -> list[Seen]:
    names = [name for name in Seen._fields if name in frames.table.dtype.names and name != "client"]
    columns = {name: frames[name].tolist() for name in names}
    slots = frames["slot"].tolist()
    numbers = frames.of_connections("number", frames["slot"]).tolist()
    found = []
    for row, slot in enumerate(slots):
        ends, side = [(end.host, end.port) for end in frames.ends(slot)], int(frames["client_side"][row])
        found.append(
            Seen(
                connection=numbers[row],
                client=ends[side],
                broker=ends[1 - side],
                client_id=frames.client_id(int(frames["client"][row])),
                data=frames.bytes_of(row),
                **{name: columns[name][row] for name in names},
            )
        )
    return found


def packet_ends(data: bytes) -> list[int]:
    """Where the packets (or blocks) of a little-endian capture end, the file header too; not the last one."""
    ends = []
    at = 0
    if data.startswith(b"\x0a\x0d\x0d\x0a"):
        while at < len(data):
            at += struct.unpack_from("<I", data, at + 4)[0]
            ends.append(at)
    else:
        at = PCAP_HEADER
        while at < len(data):
            ends.append(at)
            at += 16 + struct.unpack_from("<I", data, at + 8)[0]
        ends.append(at)
    assert at == len(data)
    return ends[:-1]


def fed(data: bytes, cuts: Iterable[int] = (), *, handed_on: bool = False, **options: Any) -> list[Seen]:
    """The frames of a capture that is fed in parts, by number. ``handed_on``: each part to a tracker of its own, which
    takes over the state of the one before it."""
    tracker = Tracker(**options)
    found: list[Seen] = []
    at = 0
    for cut in cuts:
        found += seen(tracker.feed(data[at:cut]))
        at = cut
        if handed_on:
            another = Tracker(**options)
            another.restore(tracker.save())
            tracker = another
    found += seen(tracker.feed(data[at:], final=True))
    assert tracker.error is None
    return sorted(found)
