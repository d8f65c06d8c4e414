"""One payload by itself, decoded as an object: for what the kernels leave, and the words for what is wrong.

A row is a dict, as Arrow takes it for a struct. Rules kept here:

- Whatever could be read before an error stays: the API is known even where the version is not.
- A client_id that may be other bytes of a damaged frame is not shown.
- ``sized`` is one of ``kwire.kernels.payloads``: whether a payload begins with a size. ``UNKNOWN``: no field is read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import kwire
from kwire import schema, wire
from kwire.codec import registry
from kwire.codec.objects import WireMessage
from kwire.errors import DecodeError, KwireError, LimitError, UnsupportedVersionError
from kwire.kernels.payloads import LEAST_REQUEST, LEAST_RESPONSE, NO_SIZE, SIZED, UNKNOWN
from kwire.limits import Limits
from kwire.protocol.headers import request_header_version
from kwire.protocol.secrets import is_doubtful

__all__ = ["Made", "Row", "name_of", "nothing", "request_row", "response_row", "sized_as"]

Row = dict[str, Any]
"""Type: the columns of one row, by name."""
Made = Callable[[WireMessage, int], Any]
"""Makes what ``body`` is to be, of a body and its version."""


def request_row(data: bytes, made: Made | None, limits: Limits, sized: int) -> Row:
    """A request. Without ``made`` there is no body, and ``status`` speaks of the header."""
    if sized == UNKNOWN:
        return _undecided(data, LEAST_REQUEST, partial(request_row, made=nothing, limits=limits))
    frame, wrong = _without_size(data, LEAST_REQUEST) if sized == SIZED else (data, {})
    if wrong.get("status") == "malformed":
        return wrong
    row: Row = {}
    if len(frame) >= 4:
        # Known even where the API or the version is not.
        row["api_key"] = api_key = int.from_bytes(frame[:2], "big", signed=True)
        row["api_version"] = int.from_bytes(frame[2:4], "big", signed=True)
        row["api_name"] = name_of(api_key)
    header = None
    try:
        header, _ = kwire.decode_request_header(frame)
        if made is None or wrong:
            registry.request_codec(header.request_api_key, header.request_api_version)
            row["status"] = "ok"
        else:
            request = kwire.decode_request(frame, limits=limits, trailing=True)
            row["body"] = made(request.body, header.request_api_version)
            row.update(_all_read(request.trailing))
    except KwireError as error:
        row.update(_status(error))
    if wrong and row["status"] != "ok":
        # Nothing shows that this is the beginning of a frame.
        return wrong
    if header is not None:
        row["correlation_id"] = header.correlation_id
        # Where the body is not read, nobody knows whether it is what it should be.
        whole = row["status"] == "ok" and "body" in row
        api = header.request_api_key, header.request_api_version
        has_id = header.client_id is not None and request_header_version(*api) > 0
        if has_id and (whole or not is_doubtful(header.client_id)):
            row["client_id"] = wire.printable(header.client_id)
    return row | wrong


def response_row(
    data: bytes, api_key: int | None, api_version: int | None, made: Made | None, limits: Limits, sized: int
) -> Row:
    """A response to a request of this API and version. Without ``made`` there is no body."""
    if api_key is None or api_version is None:
        return _status(UnsupportedVersionError("the request's API key and version are not known"))
    if not (-32768 <= api_key <= 32767 and -32768 <= api_version <= 32767):
        return _status(UnsupportedVersionError(f"no API key {api_key} version {api_version}: both are 16-bit numbers"))
    row: Row = {"api_key": api_key, "api_version": api_version, "api_name": name_of(api_key)}
    if sized == UNKNOWN:
        way = partial(response_row, api_key=api_key, api_version=api_version, made=nothing, limits=limits)
        return row | _undecided(data, LEAST_RESPONSE, way)
    frame, wrong = _without_size(data, LEAST_RESPONSE) if sized == SIZED else (data, {})
    if wrong.get("status") == "malformed":
        return row | wrong
    if len(frame) >= 4:
        # Every response header begins with it.
        row["correlation_id"] = int.from_bytes(frame[:4], "big", signed=True)
    if wrong:
        return row | wrong
    try:
        response = kwire.decode_response(frame, api_key=api_key, api_version=api_version, limits=limits, trailing=True)
        row["api_version"] = response.api_version
        if made is not None:
            row["body"] = made(response.body, response.api_version)
        row.update(_all_read(response.trailing))
    except KwireError as error:
        row.update(_status(error))
    return row


def sized_as(data: bytes, of: tuple[int | None, int | None] | None, limits: Limits) -> int:
    """``NO_SIZE`` or ``SIZED``, if the body is read whole in this way and in no other. Otherwise ``UNKNOWN``.

    A response that cannot be read with a size is ``NO_SIZE``: its row says whether it can be read without.

    ``of``: the API key and version of the request, for a response.
    """
    least, row = LEAST_REQUEST, partial(request_row, made=nothing, limits=limits)
    if of is not None:
        least, row = (
            LEAST_RESPONSE,
            partial(response_row, api_key=of[0], api_version=of[1], made=nothing, limits=limits),
        )
    sized = row(_first(data, least), sized=SIZED)["status"] == "ok"
    if of is not None and not sized:
        # It is read in this way in any case, many at once, and that shows whether it can be.
        return NO_SIZE
    without = row(data, sized=NO_SIZE)["status"] == "ok"
    return UNKNOWN if without == sized else SIZED if sized else NO_SIZE


def nothing(body: WireMessage, version: int) -> None:
    """Makes nothing of a body."""


def _first(data: bytes, least: int) -> bytes:
    """The first frame of a payload that begins with a size. All of it, if there is no such frame."""
    size = int.from_bytes(data[:4], "big", signed=True)
    return data[: 4 + size] if size >= least else data


def _undecided(data: bytes, least: int, row: Callable[..., Row]) -> Row:
    """What is said of a payload that may begin with a size, and may begin without."""
    without, sized = row(data, sized=NO_SIZE), row(_first(data, least), sized=SIZED)
    if without["status"] == sized["status"] == "ok":
        said = "it can be read with a size in front, and without one"
        return {"status": "malformed", "error": f"{said}: {_GIVE}"}
    said = "; ".join(
        f"{how} a size: {one.get('error', 'nothing is wrong')}" for how, one in (("without", without), ("with", sized))
    )
    worst = sized if without["status"] == "ok" else without
    return {"status": worst["status"], "error": f"{said}: {_GIVE}"}


_GIVE: Final = "give sized=True or sized=False"


def _without_size(data: bytes, least: int) -> tuple[bytes, Row]:
    """A frame that begins with its size without it, and what is wrong with the size."""
    rest = len(data) - 4
    if rest < 0:
        return b"", _status(DecodeError(f"{len(data)} bytes are too few for a size", layout="size", offset=0))
    size = int.from_bytes(data[:4], "big", signed=True)
    if size == rest:
        return data[4:], {}
    error = DecodeError(f"the size says {size} bytes, {rest} follow", layout="size", offset=0)
    if size > rest:
        return data[4:], {"status": "cut_off", "error": str(error)}
    following = data[4 + size : 8 + size] if size >= least else b""
    more = len(following) == 4 and int.from_bytes(following, "big", signed=True) >= least
    hint = ": several=True makes an array of more frames" if more else ""
    return data[4:], {"status": "malformed", "error": f"{error}{hint}"}


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
