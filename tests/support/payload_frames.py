"""Frames of real clients and brokers for columns of payloads, damaged ones, and what each is by itself."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from kwire import schema
from kwire.capture.reading import Reading
from kwire.kernels.engine import MACHINE, using
from kwire.kernels.layouts import Status
from kwire.kernels.payloads import NO_SIZE, SIZED, UNKNOWN
from kwire.limits import DEFAULT_LIMITS
from kwire.payloads import decode_requests, decode_responses, singly, types
from kwire.protocol.describe import to_json
from kwire.protocol.headers import request_header_version

GOLDEN = Path(__file__).parents[1] / "golden"
Response = tuple[bytes | None, int | None, int | None]


@cache
def golden(most: int = 5) -> tuple[list[bytes], list[Response]]:
    """Frames of real clients and brokers: of each API and version the first ones."""
    seen: dict[tuple[int, int, int], int] = {}
    requests: list[bytes] = []
    responses: list[Response] = []
    with using(MACHINE):
        for path in sorted(GOLDEN.glob("*/*.pcap")):
            with path.open("rb") as file:
                for frames in Reading(file):
                    about = zip(
                        *(frames[one].tolist() for one in ("response", "api", "version", "status")), strict=True
                    )
                    for row, (response, api, version, status) in enumerate(about):
                        kind = response, api, version
                        if status != Status.OK or seen.get(kind, 0) == most:
                            continue
                        seen[kind] = seen.get(kind, 0) + 1
                        data = frames.bytes_of(row)
                        if response:
                            responses.append((data, api, version))
                        else:
                            requests.append(data)
    assert len(requests) > 500
    assert len(responses) > 500
    return requests, responses


def damaged(data: bytes, random: Random) -> bytes:
    kind, bent = random.randrange(4), bytearray(data)
    if kind == 0:
        return data[: random.randrange(len(data) + 1)]
    if kind == 1:
        return data + bytes(random.randrange(1, 9))
    for _ in range(random.randrange(1, 4)):
        bent[random.randrange(len(bent) if kind == 2 else min(14, len(bent)))] = random.randrange(256)
    return bytes(bent)


def text(body: Any, version: int) -> str:
    return to_json(body, version)


def as_type(rows: list[Any], type_: pa.DataType) -> list[Any]:
    return pa.array(rows, type_).to_pylist()


def with_damage(frames: list[Any], count: int, seed: int) -> Iterator[Any]:
    random = Random(seed)
    yield from frames
    for _ in range(count):
        one = random.choice(frames)
        yield damaged(one, random) if isinstance(one, bytes) else (damaged(one[0], random), *one[1:])


def check_requests(payloads: list[bytes | None]) -> pa.ChunkedArray:
    column = pa.array(payloads, pa.binary())
    each = [None if one is None else singly.request_row(one, text, DEFAULT_LIMITS, NO_SIZE) for one in payloads]
    made = decode_requests(column)
    assert made.to_pylist() == as_type(each, types.REQUEST)
    heads = [None if one is None else singly.request_row(one, None, DEFAULT_LIMITS, NO_SIZE) for one in payloads]
    assert decode_requests(column, body=False).to_pylist() == as_type(heads, types.HEADER)
    return made


def check_responses(payloads: list[Response]) -> pa.ChunkedArray:
    each = [
        None if data is None else singly.response_row(data, key, version, text, DEFAULT_LIMITS, NO_SIZE)
        for data, key, version in payloads
    ]
    data, keys, versions = zip(*payloads, strict=True)
    made = decode_responses(pa.array(data, pa.binary()), pa.array(keys, pa.int32()), pa.array(versions, pa.int32()))
    assert made.to_pylist() == as_type(each, types.RESPONSE)
    return made


GIVE = "give sized=True or sized=False"
"""What is said of a payload that does not show whether it begins with a size."""


def size_in_front(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _has_header(data: bytes) -> bool:
    """Whether a request begins here: an API and version that are known, and a client_id that fits."""
    if len(data) < 8:
        return False
    api_key, version = struct.unpack_from(">hh", data)
    message = schema.request(api_key)
    if message is None or version not in message.versions:
        return False
    form = request_header_version(api_key, version)
    if form == 0:
        return True
    if len(data) < 10:
        return False
    (length,) = struct.unpack_from(">h", data, 8)
    rest = len(data) - 10 - max(length, 0)
    return length >= -1 and rest >= (form == 2)


def _frames(data: bytes, least: int) -> tuple[list[bytes], bytes]:
    """The whole frames at the beginning, each with its size, and what is left."""
    found = []
    while len(data) >= 4 and least <= (size := int.from_bytes(data[:4], "big", signed=True)) <= len(data) - 4:
        found.append(data[: 4 + size])
        data = data[4 + size :]
    return found, data


def _told(ways: tuple[bool, bool], whole: tuple[bool, bool]) -> int:
    if ways == (True, True):
        ways = whole
    return {(True, False): NO_SIZE, (False, True): SIZED}.get(ways, UNKNOWN)


def check_told(payloads: list[bytes | None]) -> None:
    """Requests of which each shows whether it has a size, and how many frames it is."""
    wanted: list[Any] = []
    for data in payloads:
        if data is None:
            wanted.append(None)
            continue
        frames, rest = _frames(data, 8)
        first = frames[0] if frames else data

        def row(one: bytes, sized: int) -> Any:
            return singly.request_row(one, text, DEFAULT_LIMITS, sized)

        ways = _has_header(data), (bool(frames) and not rest) or _has_header(first[4:])
        sized = _told(ways, (row(data, NO_SIZE)["status"] == "ok", row(first, SIZED)["status"] == "ok"))
        pieces = [*frames, rest] if rest or not frames else frames
        wanted.append([row(one, sized) for one in (pieces if sized == SIZED else [data])])
    made = decode_requests(pa.array(payloads, pa.binary()), sized="auto", several=True)
    assert made.to_pylist() == as_type(wanted, made.type)
    made = decode_requests(pa.array(payloads, pa.binary()), sized="auto")
    alone = [
        rows and (rows[0] if len(rows) == 1 else {"status": "malformed"}) for rows in wanted
    ]  # fmt: skip
    for one, expected in zip(made.to_pylist(), as_type(alone, types.REQUEST), strict=True):
        assert one == expected or (one["status"] == "malformed" and " follow" in one["error"])


def check_told_responses(payloads: list[Response]) -> None:
    wanted: list[Any] = []
    for data, *of in payloads:
        assert data is not None
        frames, rest = _frames(data, 4)
        first = frames[0] if frames else data

        def row(one: bytes, sized: int, of: Any = of) -> Any:
            return singly.response_row(one, *of, text, DEFAULT_LIMITS, sized)

        whole = row(data, NO_SIZE)["status"] == "ok", row(first, SIZED)["status"] == "ok"
        sized = _told((True, bool(frames)), whole)
        if not whole[0] and sized == NO_SIZE:
            sized = UNKNOWN
        pieces = [*frames, rest] if rest or not frames else frames
        wanted.append([row(one, sized) for one in (pieces if sized == SIZED else [data])])
    data, keys, versions = zip(*payloads, strict=True)
    column = pa.array(data, pa.binary())
    made = decode_responses(column, pa.array(keys), pa.array(versions), sized="auto", several=True)
    assert made.to_pylist() == as_type(wanted, made.type)
