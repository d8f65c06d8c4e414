"""Frames of real clients and brokers for columns of payloads, damaged ones, and what each is by itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from kwire.capture.reading import Reading
from kwire.kernels.engine import MACHINE, using
from kwire.kernels.layouts import Status
from kwire.limits import DEFAULT_LIMITS
from kwire.payloads import decode_requests, decode_responses, singly, types
from kwire.protocol.describe import to_json

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
    each = [None if one is None else singly.request_row(one, text, DEFAULT_LIMITS, False) for one in payloads]
    made = decode_requests(column)
    assert made.to_pylist() == as_type(each, types.REQUEST)
    heads = [None if one is None else singly.request_row(one, None, DEFAULT_LIMITS, False) for one in payloads]
    assert decode_requests(column, body=False).to_pylist() == as_type(heads, types.HEADER)
    return made


def check_responses(payloads: list[Response]) -> pa.ChunkedArray:
    each = [
        None if data is None else singly.response_row(data, key, version, text, DEFAULT_LIMITS, False)
        for data, key, version in payloads
    ]
    data, keys, versions = zip(*payloads, strict=True)
    made = decode_responses(pa.array(data, pa.binary()), pa.array(keys, pa.int32()), pa.array(versions, pa.int32()))
    assert made.to_pylist() == as_type(each, types.RESPONSE)
    return made
