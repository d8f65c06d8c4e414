"""One payload by itself, decoded as an object: for what the kernels leave, and the words for what is wrong.

A row is a dict, as Arrow takes it for a struct. Rules kept here:

- Whatever could be read before an error stays: the API is known even where the version is not.
- A client_id that may be other bytes of a damaged frame is not shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kwire
from kwire import schema, wire
from kwire.codec import registry
from kwire.codec.objects import WireMessage
from kwire.errors import DecodeError, KwireError, LimitError, UnsupportedVersionError
from kwire.limits import Limits
from kwire.protocol.headers import request_header_version
from kwire.protocol.secrets import is_doubtful

__all__ = ["Made", "Row", "header_row", "name_of", "request_row", "response_row", "without_size"]

Row = dict[str, Any]
Made = Callable[[WireMessage, int], Any]
"""Makes what ``body`` is to be, of a body and its version."""


def without_size(data: bytes) -> bytes | KwireError:
    """A frame that begins with its size, without it. An error if that is not the size of what follows."""
    if len(data) < 4:
        return DecodeError(f"{len(data)} bytes are too few for a size", layout="size", offset=0)
    if (size := int.from_bytes(data[:4], "big", signed=True)) != len(data) - 4:
        return DecodeError(f"the size says {size} bytes, {len(data) - 4} follow", layout="size", offset=0)
    return data[4:]


def request_row(data: bytes, made: Made | None, limits: Limits, sized: bool) -> Row:
    """A request. Without ``made`` there is no body, and ``status`` speaks of the header."""
    frame = without_size(data) if sized else data
    if isinstance(frame, KwireError):
        return _status(frame)
    row: Row = {}
    if len(frame) >= 4:
        # Known even where the API or the version is not.
        row["api_key"] = api_key = int.from_bytes(frame[:2], "big", signed=True)
        row["api_version"] = int.from_bytes(frame[2:4], "big", signed=True)
        row["api_name"] = name_of(api_key)
    header = None
    try:
        header, _ = kwire.decode_request_header(frame)
        if made is None:
            registry.request_codec(header.request_api_key, header.request_api_version)
            row["status"] = "ok"
        else:
            request = kwire.decode_request(frame, limits=limits, trailing=True)
            row["body"] = made(request.body, header.request_api_version)
            row.update(_all_read(request.trailing))
    except KwireError as error:
        row.update(_status(error))
    if header is not None:
        row["correlation_id"] = header.correlation_id
        # Where the body is not read, nobody knows whether it is what it should be.
        whole = row["status"] == "ok" and "body" in row
        api = header.request_api_key, header.request_api_version
        has_id = header.client_id is not None and request_header_version(*api) > 0
        if has_id and (whole or not is_doubtful(header.client_id)):
            row["client_id"] = wire.printable(header.client_id)
    return row


def header_row(data: bytes, limits: Limits, sized: bool) -> Row:
    """The header of a request."""
    return request_row(data, None, limits, sized)


def response_row(
    data: bytes, api_key: int | None, api_version: int | None, made: Made | None, limits: Limits, sized: bool
) -> Row:
    """A response to a request of this API and version. Without ``made`` there is no body."""
    frame = without_size(data) if sized else data
    if isinstance(frame, KwireError):
        return _status(frame)
    if api_key is None or api_version is None:
        return _status(UnsupportedVersionError("the request's API key and version are not known"))
    if not (-32768 <= api_key <= 32767 and -32768 <= api_version <= 32767):
        return _status(UnsupportedVersionError(f"no API key {api_key} version {api_version}: both are 16-bit numbers"))
    row: Row = {"api_key": api_key, "api_version": api_version, "api_name": name_of(api_key)}
    if len(frame) >= 4:
        # Every response header begins with it.
        row["correlation_id"] = int.from_bytes(frame[:4], "big", signed=True)
    try:
        response = kwire.decode_response(frame, api_key=api_key, api_version=api_version, limits=limits, trailing=True)
        row["api_version"] = response.api_version
        if made is not None:
            row["body"] = made(response.body, response.api_version)
        row.update(_all_read(response.trailing))
    except KwireError as error:
        row.update(_status(error))
    return row


def name_of(api_key: int) -> str | None:
    """The name of an API. None for a key that no API has."""
    message = schema.request(api_key)
    return None if message is None else message.api_name


def _status(error: KwireError) -> Row:
    word = "too_large" if isinstance(error, LimitError) else "malformed"
    return {"status": "unsupported" if isinstance(error, UnsupportedVersionError) else word, "error": str(error)}


def _all_read(left: int) -> Row:
    """The status and error of a body that was read, if ``left`` bytes follow it."""
    return {"status": "trailing", "error": f"bytes after the end of the body: {left}"} if left else {"status": "ok"}
