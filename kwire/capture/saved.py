"""Whether a saved state of a capture can be one: what ``Tracker.restore`` asks before it takes anything over.

A state may have been stored, sent and put together by others, so it is input like any other. What is wrong with it is a
``CaptureError``. Kernels trust the numbers in the tables of a capture, because they wrote them. This module makes sure
that numbers from elsewhere are of the same kind.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.capture.magics import PCAP
from kwire.errors import CaptureError
from kwire.kernels.doubting import BATCHES, TORN
from kwire.kernels.layouts import ABSENT, AT_THE_END, INTERFACE, STREAM, Role
from kwire.kernels.names import LONGEST_NAME
from kwire.kernels.packets import BINARY_UNITS, FINE_UNITS, MAX_PACKET, Count
from kwire.kernels.pairing import MOST_OVERTAKEN, MOST_WAITING
from kwire.kernels.tracking import BEGINS, ENOUGH_SUMS, MOST_SUMS
from kwire.stored import parsed

__all__ = ["check_common", "check_connections", "what_is_stated"]

_ANY: Final = (-(1 << 63), (1 << 63) - 1)
_COUNT: Final = (0, 1 << 61)
_POSITION: Final = (-1, 1 << 61)
_ORDER: Final = (-1, AT_THE_END)
_FLAG: Final = (0, 1)
_INT16: Final = (-0x8000, 0x7FFF)
_INT32: Final = (-0x80000000, 0x7FFFFFFF)
_WORD: Final = (0, 0xFFFFFFFF)
_PORT: Final = (0, 0xFFFF)
_PLACE: Final = (-1, 0xFFFF)
_LEAST_HEAD: Final = 20
"""Bytes of an IP header."""

_CONNECTION: Final = {
    "number": _COUNT,
    "first_order": _ORDER,
    "family": (4, 6),
    "a_port": _PORT,
    "b_port": _PORT,
    "role": (min(Role), max(Role)),
    "opener": (-1, 1),
    "closed": _FLAG,
    "closed_order": _ORDER,
    "opener_order": _ORDER,
    "settled_order": _ORDER,
    "begun_order": _ORDER,
    "looks": _COUNT,
    "next_look": _COUNT,
    "by_broker": (0, 2),
    "overtaken": (0, MOST_OVERTAKEN),
    "disordered": _COUNT,
    "missed": _FLAG,
    "given_up": _COUNT,
    "raw_tokens": _FLAG,
    "first_id": (-1, _INT32[1]),
    "latest_id": (-1, _INT32[1]),
    "spoken": (0, 2 * BATCHES - 1),
    "told": _FLAG,
    "unanswered": _COUNT,
    "handshake": (ABSENT, _ANY[1]),
    "summed": (0, ENOUGH_SUMS),
}
_SEQUENCE: Final = 0xFFFFFFFF
_STREAM: Final = {
    "reference": _POSITION,
    "start": _POSITION,
    "start_order": _ORDER,
    "next": _POSITION,
    "synced": (-1, 1),
    "certain": (-1, TORN),
    "sure": _POSITION,
    "proven": _POSITION,
    "began": _ANY,
    "searched": _POSITION,
    "noted": _POSITION,
    "alone": _FLAG,
    "answered": _COUNT,
    "end": _POSITION,
    "end_order": _ORDER,
    "skipped": _POSITION,
    "acked": _POSITION,
    "reached": _POSITION,
    "lowest": _POSITION,
    "holed": (0, BEGINS),
    "origin": _POSITION,
    "earlier": _POSITION,
    "placed": _POSITION,
    "placed_order": _ORDER,
    "heard": _POSITION,
    "since": _ORDER,
    "sums": (0, MOST_SUMS),
    "mapped": (-1, _SEQUENCE),
    "shift": (0, _SEQUENCE),
}
_WAITING: Final = {
    "id": _INT32,
    "api": _INT16,
    "version": _INT16,
    "order": _ORDER,
    "overtaken": _FLAG,
    "doubted": (0, TORN),
    "ack": _POSITION,
    "end": _POSITION,
}
_SEGMENT: Final = {
    "side": _FLAG,
    "pos": _COUNT,
    "len": (1, 1 << 32),
    "order": _ORDER,
    "doubt": _FLAG,
    "packet": _ANY,
    "ack": _POSITION,
}
"""The least and the largest that a column can hold, where that is not every number."""

_RESOLUTIONS: Final = frozenset(
    {*range(10), *range(FINE_UNITS + 10, FINE_UNITS + 29), *range(BINARY_UNITS, BINARY_UNITS + 63)}
)
_INTERFACE: Final = (_PORT, (0, 0xFFFFFFFF), (0, max(_RESOLUTIONS)), (-(1 << 33), 1 << 33))


def _wrong(what: str) -> CaptureError:
    return CaptureError(f"not the state of a capture: {what}")


# --- what is known of the capture as a whole --------------------------------------------------------------------------


def what_is_stated(metadata: Mapping[bytes, bytes] | None, version: int) -> dict[str, Any]:
    """What the metadata of a state says. ``rest`` is bytes in it, the rest as ``Tracker.save`` wrote it."""
    try:
        stated = parsed((metadata or {}).get(b"kwire", b"{}"))
    except ValueError:
        raise _wrong("its metadata is no JSON") from None
    if not isinstance(stated, dict):
        raise _wrong("its metadata is no JSON object")
    if stated.get("version") != version:
        raise CaptureError(f"a state of version {stated.get('version')}: this is version {version}")
    _number(stated, "now", *_ANY)
    if "container" not in stated:
        return stated
    for name in ("base", "packets", "frames"):
        _number(stated, name, *_COUNT)
    _truth(stated, "ended")
    _numbers(stated, "ports", *_ANY)
    _numbers(stated, "vxlan_ports", *_ANY)
    _check_fragments(stated.get("fragments"))
    if len(_numbers(stated, "counts", *_COUNT)) != len(Count):
        raise _wrong("counts")
    try:
        stated["rest"] = base64.b64decode(stated["rest"], validate=True)
    except (KeyError, TypeError, ValueError):
        raise _wrong("rest") from None
    if stated["container"] is not None:
        _check_container(stated["container"])
    return stated


def check_common(common: Any) -> None:
    """Look at what ``Tracker.common`` gave."""
    if not isinstance(common, Mapping):
        raise _wrong("what is known besides connections")
    _number(common, "now", *_ANY)
    brokers = common.get("brokers")
    if not isinstance(brokers, list) or not all(_are_numbers(one, _ANY, _ANY, _PORT) for one in brokers):
        raise _wrong("brokers")
    if common.get("fragments") is not None:
        _check_fragments(common["fragments"])


def _check_container(container: Any) -> None:
    if not isinstance(container, dict) or container.get("kind") not in ("pcap", "pcapng"):
        raise _wrong("container")
    _truth(container, "little")
    _truth(container, "nano")
    if _number(container, "packet_header", *_COUNT) not in {header for _, _, header in PCAP.values()}:
        raise _wrong("packet_header")
    _number(container, "limit", 0, MAX_PACKET)
    _number(container, "link", *_PORT)
    unsupported = container.get("unsupported")
    if not isinstance(unsupported, list) or not all(_are_numbers(one, _PORT, _COUNT) for one in unsupported):
        raise _wrong("unsupported")
    try:
        base64.b64decode(container["secrets"], validate=True)
    except (KeyError, TypeError, ValueError):
        raise _wrong("secrets") from None
    interfaces = container.get("interfaces")
    if not isinstance(interfaces, list):
        raise _wrong("interfaces")
    for one in interfaces:
        if not isinstance(one, list) or len(one) != len(INTERFACE.names):
            raise _wrong("interfaces")
        row = dict(zip(INTERFACE.names, one, strict=True))
        for name, bounds in zip(INTERFACE.names, _INTERFACE, strict=True):
            _number(row, name, *bounds)
        if row["resolution"] not in _RESOLUTIONS:
            raise _wrong("resolution")


def _check_fragments(fragments: Any) -> None:
    """Look at what ``Fragments.state`` gave; its base64 can be decoded then."""
    if not isinstance(fragments, dict):
        raise _wrong("fragments")
    _number(fragments, "seen", *_COUNT)
    waiting, known = fragments.get("waiting"), fragments.get("joined")
    if not isinstance(waiting, list) or not isinstance(known, list):
        raise _wrong("fragments")
    for one in waiting:
        if not isinstance(one, list) or len(one) != 7 or not _are_numbers(one[1:4], _ANY, _COUNT, _PLACE):
            raise _wrong("fragments that wait")
        key, _, _, total, head, starts, parts = one
        sizes = [_size(part) for part in parts] if isinstance(parts, list) else []
        if (
            not isinstance(starts, list)
            or not _size(key)
            or not 0 < len(starts) == len(sizes)
            or not _are_numbers(starts, *[_PLACE] * len(starts))
            or not all(sizes)
        ):
            raise _wrong("fragments that wait")
        ends = [at + size for at, size in zip(starts, sizes, strict=True)]
        if (
            any(at < end for at, end in zip(starts[1:], ends, strict=False))
            or not starts[0] >= 0
            or ends[-1] > (total if total >= 0 else _PLACE[1])
            or (starts[0] == 0 and _size(head) < _LEAST_HEAD)
            or sum(sizes) == total
        ):
            raise _wrong("fragments that wait")
    for one in known:
        if not isinstance(one, list) or len(one) != 3 or not _size(one[0]) or not _are_numbers(one[1:2], _ANY):
            raise _wrong("fragments that were joined")
        if not isinstance(one[2], list) or not all(_are_numbers(mark, _PLACE, _PLACE, _WORD) for mark in one[2]):
            raise _wrong("fragments that were joined")


def _size(text: Any) -> int:
    """How many bytes a text in base64 stands for; 0 where it is none."""
    try:
        return len(base64.b64decode(text, validate=True)) if isinstance(text, str) else 0
    except ValueError:
        return 0


def _are_numbers(values: Any, *bounds: tuple[int, int]) -> bool:
    return (
        isinstance(values, list)
        and len(values) == len(bounds)
        and all(_is_number(one, *within) for one, within in zip(values, bounds, strict=True))
    )


def _is_number(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _number(stated: Mapping[str, Any], name: str, least: int, most: int) -> int:
    value = stated.get(name)
    if not _is_number(value, least, most):
        raise _wrong(name)
    return int(value)  # type: ignore[arg-type] # that it is one has been asked


def _numbers(stated: Mapping[str, Any], name: str, least: int, most: int) -> Sequence[int]:
    values = stated.get(name)
    if not isinstance(values, list) or not all(_is_number(one, least, most) for one in values):
        raise _wrong(name)
    return values


def _truth(stated: Mapping[str, Any], name: str) -> None:
    if not isinstance(stated.get(name), bool):
        raise _wrong(name)


# --- connections ------------------------------------------------------------------------------------------------------


def check_connections(saved: pa.Table, whole: bool) -> None:
    """Look at the rows of a state, which has the columns of ``STATE``; ``whole``: it is that of a whole capture."""
    try:
        saved.validate(full=True)
    except pa.ArrowInvalid:
        raise _wrong("the table is damaged") from None
    _check_structs(saved.column("connection"), "connection", _CONNECTION)
    _check_structs(saved.column("a_to_b"), "a_to_b", _STREAM)
    _check_structs(saved.column("b_to_a"), "b_to_a", _STREAM)
    _check_names(saved.column("client_id"))
    waiting = _check_lists(saved.column("waiting"), "waiting", _WAITING)
    _check_names(pc.struct_field(waiting, "client_id"))
    if len(waiting) > MOST_WAITING:
        raise _wrong("too many requests wait")
    segments = _check_lists(saved.column("segments"), "segments", _SEGMENT)
    lengths, held = pc.struct_field(segments, "len"), pc.binary_length(pc.struct_field(segments, "bytes"))
    if pc.any(pc.not_equal(lengths, held)).as_py():
        raise _wrong("segments are not as long as they say")
    for one in saved.column("tls").to_pylist():
        if one is not None:
            _check_tls(one)
    for one in saved.column("hello").to_pylist():
        if one is not None:
            _check_hello(one)
    if whole:
        numbers = pc.struct_field(saved.column("connection"), "number").to_numpy()
        if not np.array_equal(np.sort(numbers), np.arange(len(numbers))):
            raise _wrong("connections are missing, or there twice")


def _check_hello(text: str) -> None:
    try:
        said = parsed(text)
    except ValueError:
        raise _wrong("hello is no JSON") from None
    if not isinstance(said, list) or len(said) != 3 or not all(one is None or isinstance(one, str) for one in said):
        raise _wrong("hello")


def _check_tls(text: str) -> None:
    """Look at what is known of a connection of TLS, but for its ``decryptor``, which is looked at when it is made."""
    try:
        state = parsed(text)
    except ValueError:
        raise _wrong("tls is no JSON") from None
    if not isinstance(state, dict) or not isinstance(state.get("rows"), list) or len(state["rows"]) != 2:
        raise _wrong("tls")
    _truth(state, "given")
    _number(state, "lost", *_COUNT)
    begun = state.get("begun")
    if not isinstance(begun, list) or len(begun) != 2 or not all(map(_is_base64, begun)):
        raise _wrong("begun")
    told = state.get("told", "")
    if told is not None and not (
        isinstance(told, list)
        and len(told) == 4
        and all(one is None or isinstance(one, str) for one in told[:3])
        and isinstance(told[3], str)
    ):
        raise _wrong("told")
    for row in state["rows"]:
        if not isinstance(row, list) or len(row) != len(STREAM.names):
            raise _wrong("tls.rows")
        _check_row(dict(zip(STREAM.names, row, strict=True)), STREAM.names, _STREAM)
    _number(state, "order", *_ORDER)
    for name, count in (("plain", 2), ("first", 3), ("times", 4)):
        if len(_numbers(state, name, *_ANY)) != count:
            raise _wrong(name)
    if min(state["plain"]) < -1:
        raise _wrong("plain")
    if not -1 <= state["first"][0] <= 1:
        raise _wrong("first")
    if not isinstance(state.get("segments"), list):
        raise _wrong("tls.segments")
    for one in state["segments"]:
        if not isinstance(one, dict):
            raise _wrong("tls.segments")
        _check_row(one, ("side", "pos", "len", "time", "order", "clock", "doubt", "packet", "ack"), _SEGMENT)
        try:
            held = one["bytes"] if one["bytes"] is None else base64.b64decode(one["bytes"], validate=True)
        except (KeyError, TypeError, ValueError):
            raise _wrong("tls.segments") from None
        if held is not None and len(held) != one["len"]:
            raise _wrong("segments are not as long as they say")


def _is_base64(text: Any) -> bool:
    try:
        return isinstance(text, str) and len(base64.b64decode(text, validate=True)) <= 16
    except ValueError:
        return False


def _check_row(row: Mapping[str, Any], names: Sequence[str], bounds: Mapping[str, tuple[int, int]]) -> None:
    for name in names:
        _number(row, name, *bounds.get(name, _ANY))


def _check_lists(lists: pa.ChunkedArray, name: str, bounds: Mapping[str, tuple[int, int]]) -> pa.ChunkedArray:
    """The elements of all lists, which have been checked."""
    if lists.null_count:
        raise _wrong(name)
    elements = pc.list_flatten(lists)
    _check_structs(elements, name, bounds)
    return elements


def _check_structs(structs: pa.ChunkedArray, name: str, bounds: Mapping[str, tuple[int, int]]) -> None:
    if structs.null_count:
        raise _wrong(name)
    # numpy finds the least and the largest of few numbers in a tenth of the time that Arrow takes.
    for chunk in structs.chunks:
        for place, field in enumerate(structs.type):
            values = chunk.field(place)
            if not field.nullable and values.null_count:
                raise _wrong(f"{name}.{field.name}")
            if field.name in bounds and len(values):
                least, most = bounds[field.name]
                numbers = values.to_numpy()
                if not least <= numbers.min() <= numbers.max() <= most:
                    raise _wrong(f"{name}.{field.name}")


def _check_names(names: pa.ChunkedArray) -> None:
    if (pc.max(pc.binary_length(names)).as_py() or 0) > LONGEST_NAME:
        raise _wrong("client_id")
