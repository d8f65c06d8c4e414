"""Multipath TCP: what the option of a packet says about where its bytes stand. Nothing here remembers anything.

A connection of Multipath TCP has several paths, each of which looks like a TCP connection. Its bytes are spread over
them. Each path has a part, one part after the other. Only an option says how far they were apart. Paths are read as
connections of their own, in which the bytes of other paths are missing. A frame is never put together of parts that
were apart. So a connection with one path is read as without the option.

Source: RFC 8684 (v1), RFC 6824 (v0): section 3.1 to 3.3 of both.
"""

from __future__ import annotations

from typing import Any, Final

from kwire.kernels.engine import kernel
from kwire.kernels.numbers import int64, u16, u32

__all__ = ["JOINS", "NONE", "is_joining", "option_of", "said_by"]

Array = Any

NONE: Final = int64(-1)
"""No option, or nothing that it says."""
JOINS: Final = int64(-2)
"""In place of a number: a SYN with which another path begins."""

_OPTION: Final = 30
_END: Final = 0
_NOTHING: Final = 1
"""Kinds of TCP options."""
_TIMESTAMPS: Final = 0x0101080A
"""What the options begin with that nearly all packets have, and these alone: two that say nothing, and a time."""
_TIMESTAMPS_SIZE: Final = 12

_JOIN: Final = 1
_SEQUENCE: Final = 2
"""Subtypes: MP_JOIN and DSS."""
_HAS_ACK: Final = 1
_LONG_ACK: Final = 2
_HAS_MAPPING: Final = 4
_LONG_MAPPING: Final = 8
"""Flags of DSS."""
_BITS: Final = 0xFFFFFFFF


@kernel
def option_of(buf: Array, at: int, end: int) -> int:
    """Where the option of Multipath TCP stands among those between ``at`` and ``end``, ``NONE`` without one."""
    if end - at == _TIMESTAMPS_SIZE and u32(buf, at) == _TIMESTAMPS:
        return NONE
    while at + 2 < end:
        kind = int64(buf[at])
        if kind == _END:
            break
        if kind == _NOTHING:
            at += 1
            continue
        size = int64(buf[at + 1])
        if size < 2 or at + size > end:
            break
        if kind == _OPTION and size > 2:
            return at
        at += size
    return NONE


@kernel
def is_joining(buf: Array, at: int) -> bool:
    """Whether the option at ``at``, of a SYN, says that another path of a connection begins."""
    return bool(int64(buf[at + 2]) >> 4 == _JOIN)


@kernel
def said_by(buf: Array, at: int) -> tuple[int, int]:
    """What the option at ``at`` says, as two numbers. The first is the sequence number of the connection's bytes before
    all that this path has, if the bytes of the packet continued it. The second is the one up to which the other end has
    the connection's bytes.

    Both modulo 2**32, ``NONE`` where it does not say it.
    """
    size = int64(buf[at + 1])
    if int64(buf[at + 2]) >> 4 != _SEQUENCE or size < 4:
        return NONE, NONE
    flags = int64(buf[at + 3])
    end = at + size
    at += 4
    base, acknowledged = NONE, NONE
    if flags & _HAS_ACK:
        width = int64(8 if flags & _LONG_ACK else 4)
        if at + width > end:
            return NONE, NONE
        acknowledged = u32(buf, at + width - 4)
        at += width
    if flags & _HAS_MAPPING:
        width = int64(8 if flags & _LONG_MAPPING else 4)
        if at + width + 6 <= end:
            # Where it is 0, the end of the data is signalled, and no byte. Without a length, bytes are as they come.
            place = u32(buf, at + width)
            if place > 0 and u16(buf, at + width + 4) > 0:
                base = (u32(buf, at + width - 4) - place) & _BITS
    return base, acknowledged
