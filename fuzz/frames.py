# Invariant: any bytes as a request or response give a message or a KwireError, the same by both implementations; what
# is kept to be written again is written again, byte for byte; what people are shown of a message is text, the same by
# the objects and by the kernel.
"""Whole frames: headers, bodies, spellings that are kept, and text for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import kwire
from fuzz import golden_frames
from kwire import schema
from kwire.capture.frames import Frames
from kwire.codec.objects import dump_json
from kwire.errors import DecodeError, KwireError
from kwire.kernels.engine import choose
from kwire.kernels.layouts import FRAME
from kwire.limits import DEFAULT_LIMITS
from kwire.protocol.describe import Shown, described
from kwire.tables.bodies import Bodies

SHOWN = [Shown(secrets, payloads) for secrets in (False, True) for payloads in (False, True)]
_HEAD = 4
"""Bytes before a frame: 0 for a request, else 1, API key and version of what it answers, how it is shown."""

_bodies: dict[Shown, Bodies] = {}


def seeds() -> Iterator[bytes]:
    """Frames of real brokers and clients."""
    for response, api, version, data in golden_frames():
        yield bytes([response, api & 0xFF, version & 0xFF, api % 4]) + data


def words() -> Iterator[bytes]:
    """API keys with their newest version, and names that decide what is shown."""
    for key in schema.api_keys():
        message = schema.request(key)
        assert message is not None
        yield key.to_bytes(2, "big") + max(message.versions.high, 0).to_bytes(2, "big")
    yield from (b"__cluster_metadata", b"consumer", b"connect", b"range", b"sticky", b"ssl.key.password", b"PLAIN")


def _decode(data: bytes, of: tuple[int, int] | None, **how: Any) -> Any:
    if of is None:
        return kwire.decode_request(data, **how)
    return kwire.decode_response(data, api_key=of[0], api_version=of[1], **how)


def _verdict(data: bytes, of: tuple[int, int] | None, **how: Any) -> tuple[Any, Any]:
    try:
        return _decode(data, of, **how), None
    except KwireError as error:
        place = (error.path, error.offset) if isinstance(error, DecodeError) else ()
        return None, (type(error), place)


def text_by_kernel(data: bytes, response: bool, api: int, version: int, shown: Shown) -> str | None:
    """The text that the kernel writes of a frame. None where it leaves that to objects."""
    table = np.zeros(1, FRAME)
    table[0].off, table[0].seen, table[0].size = 3, len(data), len(data)
    table[0].api, table[0].response, table[0].version = api, int(response), version
    nothing = np.zeros(0, np.int64)
    made = Frames(table, np.frombuffer(b"###" + data, np.uint8), nothing, nothing, nothing)
    if shown not in _bodies:
        _bodies[shown] = Bodies(shown, DEFAULT_LIMITS)
    (part,) = _bodies[shown].text(made, np.arange(1), choose(0))
    column = part.column(0, 1)
    column.validate(full=True)
    found: str | None = column.to_pylist()[0]
    return found


def check(data: bytes) -> None:
    """Asserts the invariant for one input."""
    if len(data) < _HEAD:
        return
    response, frame = bool(data[0] & 1), data[_HEAD:]
    of = (data[1], data[2]) if response else None
    shown = SHOWN[data[3] % len(SHOWN)]
    made, error = _verdict(frame, of)
    other, other_error = _verdict(frame, of, implementation="reference")
    assert error == other_error, f"{error} and {other_error}"
    kept, kept_error = _verdict(frame, of, preserve=True)
    assert error == kept_error, f"preserve: {error} and {kept_error}"
    if made is None:
        api, version = of or (int.from_bytes(frame[:2], "big", signed=True), int.from_bytes(frame[2:4], "big"))
        message = schema.response(api) if response else schema.request(api)
        # A broker that does not know the version answers ApiVersions in another one: nobody asks a kernel to.
        if message is not None and version in message.versions and error[0] is not kwire.errors.LimitError:
            assert text_by_kernel(frame, response, api, version, shown) is None
        return
    assert repr(made) == repr(other)
    written = kwire.encode_response(kept) if response else kwire.encode_request(kept)
    assert written == frame
    version = made.api_version if response else made.header.request_api_version
    text = dump_json(described(made.body, version, shown))
    api = made.body.SCHEMA.api_key
    found = text_by_kernel(frame, response, api, version, shown)
    assert found is None or found == text
