"""What the framing kernels have to know about every API, made from the schemas that are loaded.

Kernels know no schemas. They get three things:

- a table of numbers by API key
- the programs that read ``acks`` of a Produce request
- the programs that judge whether bytes are a frame of some API and version, header included

All are made when they are first needed, and again when a folder of schemas was loaded in between.

Those of the built-in schemas take 0.3 s to make. So they are kept beside the machine code, in a file whose name is a
digest of everything they are made of. The file begins with a digest of its contents: one that is damaged or missing is
made again.
"""

from __future__ import annotations

import hashlib
import io
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

import numpy as np

from kwire import schema
from kwire.kernels import cache
from kwire.kernels.layouts import KNOWN_API
from kwire.kernels.programs import COMPACT, INSTRUCTION, Op, ProgramSet, compile_program
from kwire.kernels.roles import Apis
from kwire.protocol.headers import request_header_version, response_header_version
from kwire.schema.keys import ApiKey
from kwire.schema.model import layout

__all__ = ["api_table"]


def api_table() -> Apis:
    """What kernels know of the APIs of the schemas that are loaded now."""
    return _made(schema.generation())


_INT64: Final = np.dtype(np.int64)
_TYPES: Final = Apis(KNOWN_API, INSTRUCTION, _INT64, _INT64, INSTRUCTION, _INT64)
"""The types in a file, in this order."""


@lru_cache(maxsize=1)
def _made(generation: int) -> Apis:
    name = f"apis-{_digest()}.npy" if generation == 0 else None
    found = _unpacked(cache.read(name)) if name else None
    if found is None:
        keys = list(schema.api_keys())
        found = Apis(_numbers(keys), *_acks_programs(), *_layout_programs(keys))
        if name:
            packed = io.BytesIO()
            for one in found:
                np.save(packed, one.view(_plain(one.dtype)), allow_pickle=False)
            data = packed.getvalue()
            cache.write(name, hashlib.sha256(data).digest() + data)
    return found


def _plain(dtype: Any) -> Any:
    """The fields of a dtype, without the class of its rows."""
    return np.dtype([(name, dtype[name]) for name in dtype.names]) if dtype.names else dtype


def _unpacked(data: bytes | None) -> Apis | None:
    size = hashlib.sha256().digest_size
    if data is None or hashlib.sha256(data[size:]).digest() != data[:size]:
        return None
    packed, arrays = io.BytesIO(data[size:]), []
    try:
        for dtype in _TYPES:
            one = np.load(packed, allow_pickle=False)
            if one.dtype != _plain(dtype):
                return None
            arrays.append(one.view(dtype))
    except (ValueError, OSError, EOFError):
        return None
    return Apis(*arrays)


def _digest() -> str:
    """What the table is made of: kernels, what reads schemas, and the schemas, as 16 hexadecimal digits."""
    made = hashlib.sha256(cache.digest().encode())
    package = files("kwire")
    code = [package.joinpath("protocol", name) for name in ("api_table.py", "headers.py")]
    code += [one for one in package.joinpath("schema").iterdir() if one.name.endswith(".py")]
    texts = [(one.name, one.read_bytes()) for one in code]
    for name, text in (*sorted(texts), *schema.texts()):
        made.update(f"{name} {len(text)}\n".encode() + text)
    return made.hexdigest()[:16]


def _numbers(keys: list[int]) -> Any:
    made = np.full(max(keys) + 1, -1, KNOWN_API)
    for key in keys:
        request, response = schema.request(key), schema.response(key)
        if request is not None:
            made["latest"][key] = request.versions.high
        if response is not None:
            # 4 for the correlation id, 1 for the tagged section of a flexible header (that of ApiVersions has none).
            made["least_response"][key] = 4 + min(
                layout(response, version).min_size + (version in response.flexible and key != ApiKey.API_VERSIONS)
                for version in response.versions
            )
    return made


def _acks_programs() -> tuple[Any, Any, Any]:
    """The programs that read acks of a Produce request: code, and the first instruction by version.

    Also the bytes that nearly always come before it, by version.
    """
    produce = schema.request(ApiKey.PRODUCE)
    header = schema.message("RequestHeader")
    assert produce is not None
    programs = {
        (int(ApiKey.PRODUCE), version): compile_program(
            [layout(header, request_header_version(ApiKey.PRODUCE, version)), layout(produce, version)],
            ["acks"],
            stop_after="acks",
        )
        for version in produce.versions
    }
    made = ProgramSet(programs, 1)
    before_acks = np.full((produce.versions.high + 1, 2), -1, np.int64)
    for version in produce.versions:
        before_acks[version] = _empty_before(programs[ApiKey.PRODUCE, version].code)
    return made.code, made.starts(ApiKey.PRODUCE, produce.versions.high + 1), before_acks


def _empty_before(code: Any) -> tuple[int, int]:
    """How many bytes optional fields before an int16 take if they are empty, and these bytes as a number.

    This is for a program that reads a header, and an int16 after fields that may be empty. (-1, 0) for another program.
    """
    stop = list(code["op"]).index(Op.STOP_EARLY)
    head, empty, wanted = code[:2], code[2 : stop - 1], code[stop - 1]
    if list(head["op"]) != [Op.SKIP, Op.BYTES] or (wanted["op"], wanted["width"]) != (Op.INT, 2):
        return -1, 0
    made = b""
    for one in empty:
        if one["op"] == Op.TAGS or (one["op"] == Op.BYTES and one["nullable"] and one["width"] == COMPACT):
            made += b"\0"
        elif one["op"] == Op.BYTES and one["nullable"]:
            made += b"\xff" * one["width"]
        else:
            return -1, 0
    return len(made), int.from_bytes(made, "big")


def _layout_programs(keys: list[int]) -> tuple[Any, Any]:
    """The programs of whole frames, headers included.

    Returns the code, and the first instruction by ``2 * key + response`` and version, -1 where there is none. Programs
    of responses write the error codes where the output has rows for them.
    """
    request_header, response_header = schema.message("RequestHeader"), schema.message("ResponseHeader")
    assert request_header is not None
    assert response_header is not None
    programs = {}
    for key in keys:
        request = schema.request(key)
        response = schema.response(key)
        if request is not None:
            for version in request.versions:
                header = layout(request_header, request_header_version(key, version))
                programs[2 * key, version] = compile_program([header, layout(request, version)], [])
        if response is not None:
            for version in response.versions:
                header = layout(response_header, response_header_version(key, version))
                programs[2 * key + 1, version] = compile_program([header, layout(response, version)], [], errors=True)
    made = ProgramSet(programs, 0)
    versions = max(version for _, version in programs) + 1
    return made.code, np.array([made.starts(kind, versions) for kind in range(2 * max(keys) + 2)])
