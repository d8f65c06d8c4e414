"""The state of a connection, from the end of one file to that of the next.

Files are read alone first (``kwire.capture.across``). Here rows of ``STATE`` are compared without what does not matter
later. A row that a file gave on its own becomes the one that follows from the true state before it.

Rules kept here:

- Two states are the same to what follows whatever their numbers of packets are, which end is called A, and how often
  sequence numbers wrapped around. Once the role is known, it does not matter either whether the beginning was seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from kwire.capture.state import STATE
from kwire.capture.tracker import PART_BITS
from kwire.kernels.layouts import NO_TIME, Role
from kwire.kernels.tracking import LATEST_COPY, LATEST_SYN

__all__ = ["END", "digest", "has_ended", "is_another", "is_let_go", "moved_on"]

END: Final = ("high", "low", "port")
"""The columns of an end of a connection, after ``a_`` or ``b_``."""
_SWAPPED: Final = {int(Role.A_REQUESTS): int(Role.B_REQUESTS), int(Role.B_REQUESTS): int(Role.A_REQUESTS)}
_READABLE: Final = tuple(_SWAPPED)
_SEQUENCE: Final = (1 << 32) - 1
_POSITIONS: Final = (
    "reference",
    "start",
    "next",
    "end",
    "acked",
    "reached",
    "placed",
    "heard",
    "lowest",
    "origin",
    "earlier",
    "sure",
    "proven",
    "searched",
    "noted",
)
_HOLES: Final = tuple(f"hole_{k}{end}" for k in range(1, 5) for end in ("", "_end"))
_WAITS: Final = ("id", "api", "version", "time", "clock", "overtaken", "doubted", "client_id")
_HELD: Final = ("len", "time", "clock", "doubt")


def _b_is_less(connection: Mapping[str, int]) -> bool:
    a, b = ([connection[f"{end}_{name}"] for name in END] for end in "ab")
    return b < a


def digest(row: Mapping[str, Any]) -> bytes:
    """A digest of what matters, in a row of ``STATE``, to what becomes of the connection."""
    return hashlib.blake2b(repr(_essence(row)).encode(), digest_size=16).digest()


def _essence(row: Mapping[str, Any]) -> Any:
    connection = row["connection"]
    swap = _b_is_less(connection)
    role = connection["role"]
    kind = _SWAPPED.get(role, role) if swap else role
    known = [kind, connection["closed"], connection["closed_clock"]]
    streams = [row["b_to_a"], row["a_to_b"]] if swap else [row["a_to_b"], row["b_to_a"]]
    if role not in _READABLE and role != Role.UNKNOWN:
        return [*known, connection["told"], *([_wrapped(one["reference"]), _wrapped(one["end"])] for one in streams)]
    known += [connection["raw_tokens"], connection["summed"], connection["first_id"] < 0, connection["latest_id"]]
    known.append(connection["missed"])
    known += [row["client_id"], row["tls"]]
    if role == Role.UNKNOWN:
        opener = connection["opener"]
        known += [1 - opener if swap and opener >= 0 else opener, *(_wrapped(one["start"]) for one in streams)]
        # With which packet it is looked at again.
        known += [connection["looks"], connection["next_look"]]
    by_direction = [
        (
            one["synced"],
            one["certain"],
            _wrapped(one["sure"]),
            _wrapped(one["proven"]),
            (_wrapped(one["noted"]), one["alone"]),
            *((_wrapped(one["searched"]), one["answered"]) if one["certain"] == 0 else (-1, 0)),
            max(0, one["skipped"]),
            one["holed"],
            # What was acknowledged says which holes will not be filled: none is left before ``next``.
            *(_wrapped(one[name] if one[name] > one["next"] else -1) for name in ("acked", "heard")),
            *(_wrapped(one[name]) for name in ("reference", "next", "end", "reached", "placed")),
            *(one[name] for name in ("time", "latest", "clock", "sums")),
        )
        for one in streams
    ]
    read = row["b_to_a" if role == Role.A_REQUESTS else "a_to_b"]["next"]
    waiting = [
        (*(one[name] for name in _WAITS), _wrapped(one["ack"] if one["ack"] > read else -1), _wrapped(one["end"]))
        for one in row["waiting"]
    ]
    held = sorted(
        (one["side"] ^ swap, _wrapped(one["pos"]), *(one[name] for name in _HELD), one["bytes"] or b"")
        for one in row["segments"]
    )
    return [*known, by_direction, waiting, held]


def _wrapped(position: int) -> int:
    """A position without how often sequence numbers wrapped around before it."""
    return position & _SEQUENCE if position >= 0 else -1


def has_ended(row: Mapping[str, Any]) -> bool:
    """Whether nothing of a connection is to be expected, nor unfinished."""
    ended = all(
        row[direction]["end"] >= 0 and row[direction]["next"] >= row[direction]["end"]
        for direction in ("a_to_b", "b_to_a")
    )
    return ended or bool(row["connection"]["closed"])


def is_another(was: Mapping[str, Any], edge: Mapping[str, Any]) -> bool:
    """Whether a connection that begins with a SYN differs from the earlier one on its ports.

    See ``tracking._begins_another``.
    """
    start = edge["a_to_b"]["start"]
    a = [edge["connection"][f"a_{name}"] for name in END]
    same_ends = [was["connection"][f"a_{name}"] for name in END] == a
    stream, other = (was["a_to_b"], was["b_to_a"]) if same_ends else (was["b_to_a"], was["a_to_b"])
    if stream["start"] >= 0 and _wrapped(stream["start"]) == _wrapped(start):
        latest = max(one["last_time"] for one in (stream, other) if one["packets"] or one is stream)
        return bool(latest != NO_TIME and edge["a_to_b"]["first_time"] > latest + LATEST_COPY)
    if stream["start"] >= 0:
        return True
    if stream["reference"] >= 0:
        ahead = (start - 1 - stream["reference"]) & _SEQUENCE
        return bool(ahead <= _SEQUENCE + 1 - LATEST_SYN)
    return bool(other["start"] < 0 <= other["reference"])


def _begin_earlier(end: dict[str, int], true: Mapping[str, int]) -> None:
    """Let a stream begin where it truly does, if an earlier file has its beginning.

    The scan took those bytes to be before its beginning. They are not.
    """
    if true["lowest"] >= 0:
        end["lowest"] = min(true["lowest"], end["lowest"]) if end["lowest"] >= 0 else true["lowest"]
    if true["next"] < 0:
        return
    earlier = [one for one in (end["earlier"], true["earlier"]) if 0 <= one < true["origin"]]
    end["origin"], end["earlier"] = true["origin"], min(earlier, default=-1)


def is_let_go(true: Mapping[str, Any], edge: Mapping[str, Any]) -> bool:
    """Whether a connection is known to be none that is read: what this file has of it changes nothing."""
    return true["connection"]["role"] in (Role.OTHER, Role.ENCRYPTED) and true["tls"] is None


def moved_on(true: Mapping[str, Any], edge: Mapping[str, Any], place: int) -> dict[str, Any]:
    """The true state at the end of a file.

    It is the state of its scan, as seen from the ``true`` one at the end of the head.
    """
    end = {name: edge[name] for name in STATE.names}
    connection, before = dict(end["connection"]), true["connection"]
    streams = [dict(end["a_to_b"]), dict(end["b_to_a"])]
    seen = [edge["a_seen"], edge["b_seen"]]
    turned = [before[f"a_{name}"] for name in END] != [connection[f"a_{name}"] for name in END]
    if turned:
        streams.reverse()
        seen.reverse()
        connection["role"] = _SWAPPED.get(connection["role"], connection["role"])
        if connection["opener"] >= 0:
            connection["opener"] = 1 - connection["opener"]
        for name in END:
            connection[f"a_{name}"], connection[f"b_{name}"] = connection[f"b_{name}"], connection[f"a_{name}"]
    shifts = []
    for one, direction, at in zip(streams, ("a_to_b", "b_to_a"), seen, strict=True):
        here = true[direction]["reference"]
        # The same sequence number, or nearly, where a connection that is not read was let go.
        shift = (here - at + _SEQUENCE // 2) & ~_SEQUENCE if at >= 0 <= here else 0
        for name in _POSITIONS:
            one[name] += shift if one[name] >= 0 else 0
        for name in _HOLES:
            one[name] += shift if one[name] > 0 else 0
        if one["start"] < 0:
            one["start"] = true[direction]["start"]
        _begin_earlier(one, true[direction])
        shifts.append(shift)
    segments = []
    for segment in end["segments"]:
        side = segment["side"] ^ turned
        segments.append(segment | {"side": side, "pos": segment["pos"] + shifts[side]})
        segments[-1]["ack"] += shifts[1 - side] if segment["ack"] >= 0 else 0
    answers = 1 if connection["role"] == Role.A_REQUESTS else 0
    end["waiting"] = [
        one
        | {
            name: one[name] + (shifts[side] if one[name] >= 0 else 0)
            for name, side in (("ack", answers), ("end", 1 - answers))
        }
        for one in end["waiting"]
    ]
    new = before["first_order"] >= 0
    connection["number"] = place << PART_BITS | connection["first_order"] if new else before["number"]
    for name in ("by_broker", "first_id"):
        connection[name] = before[name]
    connection["given_up"] += before["given_up"]
    # It may have been said long ago, so no state is expected to have it. After a hole, this leaves more in doubt.
    connection["spoken"] |= before["spoken"]
    if connection["opener"] < 0:
        connection["opener"] = before["opener"]
    if before["role"] not in _READABLE and before["role"] != Role.UNKNOWN:
        connection["role"], connection["told"] = before["role"], before["told"]
        end |= {"waiting": [], "segments": []}
        segments = []
    end |= {"connection": connection, "a_to_b": streams[0], "b_to_a": streams[1], "segments": segments}
    end["client_id"] = end["client_id"] if end["client_id"] is not None else true["client_id"]
    return end
