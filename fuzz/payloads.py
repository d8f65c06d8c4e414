# Invariant: each payload of a column is what it is by itself, whatever stands beside it; rows of records and partitions
# are valid to Arrow, one list for each payload; nothing is raised.
"""Columns of payloads: requests, responses and record sets that stand in Arrow arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from fuzz import cut, golden_frames, joined, sized
from kwire import payloads, schema
from kwire.kernels.payloads import NO_SIZE, SIZED
from kwire.limits import Limits
from kwire.payloads import singly, types
from kwire.protocol.describe import to_json

LIMITS = Limits(decompressed=1 << 20, total=4 << 20)
_REQUESTS, _RESPONSES, _RECORDS = range(3)


def seeds() -> Iterator[bytes]:
    """Columns of frames of real brokers, two or three in each, and record sets."""
    from fuzz import records

    every = [one for one in golden_frames() if len(one.data) < 800]
    asked = [one.data for one in every if not one.response]
    for at in range(0, len(asked), 3):
        some = asked[at : at + 3]
        yield bytes([_REQUESTS, 0, 0]) + joined(some)
        yield bytes([_REQUESTS | 4, 0, 0]) + joined([sized(one) for one in some])
    for one in every:
        if one.response:
            yield bytes([_RESPONSES, one.api & 0xFF, one.version & 0xFF]) + joined([one.data])
            yield bytes([_RESPONSES | 4, one.api & 0xFF, one.version & 0xFF]) + joined([sized(one.data)])
    for data in records.seeds():
        yield bytes([_RECORDS, 0, 0]) + joined([data])


def words() -> Iterator[bytes]:
    """API keys with their newest version."""
    for key in schema.api_keys():
        message = schema.request(key)
        assert message is not None
        yield key.to_bytes(2, "big") + max(message.versions.high, 0).to_bytes(2, "big")


def _same(made: pa.ChunkedArray, rows: list[Any], type_: pa.DataType) -> None:
    made.validate(full=True)
    expected = pa.array(rows, type_).to_pylist()
    assert made.to_pylist() == expected


def check(data: bytes) -> None:
    """Asserts the invariant for one input: what the payloads are, and a column of them."""
    if len(data) < 3:
        return
    kind, has_size = data[0] % 4, bool(data[0] & 4)
    api, version, parts = data[1], data[2], cut(data[3:])
    column = pa.array(parts, pa.binary())
    way = SIZED if has_size else NO_SIZE
    if kind == _REQUESTS:
        rows = [singly.request_row(one, to_json, LIMITS, way) for one in parts]
        _same(payloads.decode_requests(column, sized=has_size, limits=LIMITS), rows, types.REQUEST)
        heads = [singly.request_row(one, None, LIMITS, way) for one in parts]
        _same(payloads.decode_requests(column, sized=has_size, body=False, limits=LIMITS), heads, types.HEADER)
        lists = [payloads.request_records(column, sized=has_size, limits=LIMITS)]
        lists.append(payloads.request_partitions(column, sized=has_size, limits=LIMITS))
    elif kind == _RESPONSES:
        rows = [singly.response_row(one, api, version, to_json, LIMITS, way) for one in parts]
        _same(payloads.decode_responses(column, api, version, sized=has_size, limits=LIMITS), rows, types.RESPONSE)
        lists = [payloads.response_records(column, api, version, sized=has_size, limits=LIMITS)]
        lists.append(payloads.response_partitions(column, api, version, sized=has_size, limits=LIMITS))
    else:
        lists = [payloads.decode_records(column, limits=LIMITS, strict=has_size)]
        alone = [payloads.decode_records(pa.array([one], pa.binary()), limits=LIMITS, strict=has_size) for one in parts]
        assert lists[0].to_pylist() == [row for one in alone for row in one.to_pylist()]
    for one in lists:
        one.validate(full=True)
        assert len(one) == len(parts)
