"""Fragments of IP packets, joined before anything looks into them.

Most captures have none, and pay nothing. ``tracking.tcp_segments`` stops before a fragment, and only then the fragment
is taken in (``put``). The fragment that completes a packet is replaced by it. The packet's bytes are written after
those of the window, and it has the time and number of that fragment. In the place of the others nothing is left. A
packet that was joined may be a fragment itself, of the packet inside of a tunnel: ``tcp_segments`` stops there once
more.

Rules kept here:

- First come, first kept. A fragment that says the same again is passed over. One that says something else about bytes
  that are there is left out. Bytes of two packets are never mixed as far as that can be seen. A fragment that comes
  more than ``FARTHEST`` fragments or ``LONGEST_WAIT`` after the others belongs to another packet with the same number.
- Waiting fragments are bounded, in time (of the packets), bytes and packets. What is given up is counted
  (``Count.FRAGMENT``), and so is what still waits at the end.
- All of it is part of the state of a capture: windows do not matter, and nor does who reads them.

Source: IPv4 RFC 791, IPv6 RFC 8200 (section 4.5); why old fragments are dangerous: RFC 4963.
"""

from __future__ import annotations

import base64
import struct
import zlib
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from kwire.kernels.layers import JOINED, PART
from kwire.kernels.packets import Count
from kwire.kernels.tracking import Fragment

__all__ = ["LONGEST_WAIT", "MOST_BYTES", "MOST_JOINED", "MOST_WAITING", "Fragments"]

LONGEST_WAIT: Final = 30_000_000_000
"""Nanoseconds that a fragment waits for the others; so does Linux (``ipfrag_time``)."""
FARTHEST: Final = 8192
"""Fragments of others that may come in between: numbers of packets are used again after 65,536 of them."""
MOST_BYTES: Final = 4 << 20
"""Bytes that wait at the same time; so does Linux (``ipfrag_high_thresh``)."""
MOST_WAITING: Final = 4096
"""Packets that wait at the same time."""
MOST_JOINED: Final = 256
"""Packets whose fragments are known again after they have been joined: captures of several interfaces, and networks,
have them twice."""

_COST: Final = 128
"""Bytes that a fragment takes in addition to its own."""
_LARGEST: Final = 65535
_IPV6_SIZE: Final = 40
_FRAGMENT: Final = 44
_AUTHENTICATION: Final = 51

Array = Any


class _Content(NamedTuple):
    """A fragment, read.

    ``head`` comes before the joined bytes: that of the first fragment is used.
    """

    key: bytes
    at: int
    more: bool
    head: bytes
    data: bytes


@dataclass(slots=True)
class _Waiting:
    """The fragments of a packet so far.

    ``total``: its bytes after the header, -1 while the last one is missing.
    """

    since: int
    latest: int
    total: int = -1
    head: bytes = b""
    starts: list[int] = field(default_factory=list)
    parts: list[bytes] = field(default_factory=list)
    size: int = 0

    @property
    def cost(self) -> int:
        """Bytes that it takes."""
        return self.size + _COST * len(self.parts)


class Fragments:
    """The fragments of a capture that wait for others, and what is still known of those that were joined.

    ``counts`` is the array that kernels count in, one place for each member of ``Count``.
    """

    def __init__(self, counts: Array) -> None:
        self.counts = counts
        self._seen = 0
        self._size = 0
        self._waiting: dict[bytes, _Waiting] = {}
        self._joined: dict[bytes, tuple[int, set[tuple[int, int, int]]]] = {}

    @property
    def waiting(self) -> int:
        """How many fragments wait."""
        return sum(len(one.parts) for one in self._waiting.values())

    def put(self, buf: Array, used: int, packets: Array, k: int, one: Fragment, now: int) -> tuple[Array, int]:
        """Take in a fragment, which packet ``k`` of a window is, and write in its place what it completes.

        ``used`` are the bytes of ``buf`` that are needed, ``now`` is the time at this packet, which never goes back.
        Returns the two, as they are then.
        """
        whole = self._add(buf[one.off : one.off + one.captured].tobytes(), one.tunnel, now)
        if whole is None:
            packets["link"][k] = PART
            return buf, used
        end = used + len(whole)
        if end > len(buf):
            larger = np.empty(end + used // 2, np.uint8)
            larger[:used] = buf[:used]
            buf = larger
        buf[used:end] = np.frombuffer(whole, np.uint8)
        packets["link"][k], packets["off"][k], packets["captured"][k] = JOINED, used, len(whole)
        return buf, end

    def _add(self, data: bytes, tunnel: int, now: int) -> bytes | None:
        """The packet that is complete with this fragment, which is that of an IP packet, header and all."""
        self._seen += 1
        self._forget(now)
        one = _read(data, tunnel)
        if one is None:
            self.counts[Count.FRAGMENT] += 1
            return None
        mark = (one.at, len(one.data), zlib.crc32(one.data))
        if mark in self._joined.get(one.key, (0, ()))[1]:
            return None
        waiting = self._waiting.get(one.key)
        if waiting is not None and self._seen - waiting.latest > FARTHEST:
            self._give_up(one.key)
            waiting = None
        if waiting is None:
            waiting = self._waiting[one.key] = _Waiting(now, self._seen)
        if not self._place(waiting, one):
            return None
        waiting.latest = self._seen
        if waiting.total != waiting.size:
            self._make_room()
            return None
        del self._waiting[one.key]
        self._size -= waiting.cost
        marks = {(at, len(part), zlib.crc32(part)) for at, part in zip(waiting.starts, waiting.parts, strict=True)}
        self._joined.pop(one.key, None)
        self._joined[one.key] = now, marks
        if len(self._joined) > MOST_JOINED:
            del self._joined[next(iter(self._joined))]
        return _with_length(waiting.head, b"".join(waiting.parts))

    def _place(self, waiting: _Waiting, one: _Content) -> bool:
        """Take a fragment in, if it says nothing else than those that are there."""
        at, end = one.at, one.at + len(one.data)
        k = bisect_left(waiting.starts, at)
        if k < len(waiting.starts) and waiting.starts[k] == at and waiting.parts[k] == one.data:
            return False
        last = waiting.starts[-1] + len(waiting.parts[-1]) if waiting.starts else 0
        fits = (
            (k == 0 or waiting.starts[k - 1] + len(waiting.parts[k - 1]) <= at)
            and (k == len(waiting.starts) or end <= waiting.starts[k])
            and (waiting.total < 0 or (one.more and end <= waiting.total))
            and (one.more or last <= at)
        )
        if not fits:
            self.counts[Count.FRAGMENT] += 1
            return False
        waiting.starts.insert(k, at)
        waiting.parts.insert(k, one.data)
        waiting.size += len(one.data)
        self._size += len(one.data) + _COST
        if at == 0:
            waiting.head = one.head
        if not one.more:
            waiting.total = end
        return True

    def _forget(self, now: int) -> None:
        """Give up what has waited too long."""
        while self._waiting:
            key = next(iter(self._waiting))
            if now - self._waiting[key].since <= LONGEST_WAIT:
                break
            self._give_up(key)
        while self._joined:
            key = next(iter(self._joined))
            if now - self._joined[key][0] <= LONGEST_WAIT:
                break
            del self._joined[key]

    def _make_room(self) -> None:
        while self._size > MOST_BYTES or len(self._waiting) > MOST_WAITING:
            self._give_up(next(iter(self._waiting)))

    def _give_up(self, key: bytes) -> None:
        waiting = self._waiting.pop(key)
        self._size -= waiting.cost
        self.counts[Count.FRAGMENT] += len(waiting.parts)

    def state(self) -> dict[str, Any]:
        """The waiting fragments, as JSON can hold them."""
        return {
            "seen": self._seen,
            "waiting": [
                [
                    _text(key), one.since, one.latest, one.total, _text(one.head), one.starts,
                    [_text(part) for part in one.parts],
                ]
                for key, one in self._waiting.items()
            ],
            "joined": [[_text(key), since, sorted(marks)] for key, (since, marks) in self._joined.items()],
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where the one that gave ``state`` was."""
        self._seen = state["seen"]
        self._waiting = {}
        for key, since, latest, total, head, starts, parts in state["waiting"]:
            data = [base64.b64decode(part) for part in parts]
            self._waiting[base64.b64decode(key)] = _Waiting(
                since, latest, total, base64.b64decode(head), list(starts), data, sum(map(len, data))
            )
        self._size = sum(one.cost for one in self._waiting.values())
        self._joined = {
            base64.b64decode(key): (since, {tuple(mark) for mark in marks}) for key, since, marks in state["joined"]
        }


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _read(data: bytes, tunnel: int) -> _Content | None:
    """A fragment of an IP packet; None for one that is not all there, or makes no sense."""
    return (_read_4 if data[0] >> 4 == 4 else _read_6)(data, tunnel)


def _read_4(data: bytes, tunnel: int) -> _Content | None:
    _, total, number, place, protocol = struct.unpack_from(">HHHHxB", data)
    size = (data[0] & 15) * 4
    at, more = (place & 0x1FFF) * 8, bool(place & 0x2000)
    body = data[size:total]
    if total > len(data) or not body or size + at + len(body) > _LARGEST or (more and len(body) % 8):
        return None
    key = struct.pack(">qHB", tunnel, number, protocol) + data[12:20]
    return _Content(key, at, more, data[:6] + b"\0\0" + data[8:size], body)


def _read_6(data: bytes, tunnel: int) -> _Content | None:
    end = _IPV6_SIZE + struct.unpack_from(">H", data, 4)[0]
    # Where the number of the next header stands, and where that begins: the kernel has followed them to the fragment's.
    named, at = 6, _IPV6_SIZE
    while data[named] != _FRAGMENT:
        size = (data[at + 1] + 2) * 4 if data[named] == _AUTHENTICATION else (data[at + 1] + 1) * 8
        named, at = at, at + size
    protocol, place, number = struct.unpack_from(">BxHI", data, at)
    body = data[at + 8 : end]
    start, more = place & 0xFFF8, bool(place & 1)
    if end > len(data) or not body or at - _IPV6_SIZE + start + len(body) > _LARGEST or (more and len(body) % 8):
        return None
    head = bytearray(data[:at])
    head[named] = protocol
    return _Content(struct.pack(">qI", tunnel, number) + data[8:40], start, more, bytes(head), body)


def _with_length(head: bytes, body: bytes) -> bytes:
    """An IP packet of a header that says that it is none, and of all that belongs to it."""
    whole = bytearray(head + body)
    if head[0] >> 4 == 4:
        struct.pack_into(">H", whole, 2, len(whole))
    else:
        struct.pack_into(">H", whole, 4, len(whole) - _IPV6_SIZE)
    return bytes(whole)
