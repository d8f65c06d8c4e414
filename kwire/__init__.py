"""kwire reads and writes the Kafka wire protocol.

``decode_request(frame)`` and ``decode_response(frame, api_key=, api_version=)`` turn frames into objects. A frame is
the bytes after the 4-byte size. ``encode_request`` and ``encode_response`` do the reverse. ``decode_body`` and
``encode_body`` do it without headers. ``kwire.messages`` holds the classes, ``kwire.records`` the records inside,
``kwire.capture`` reads whole captures, ``kwire.spark`` makes tables of them.

Importing this package imports none of the optional dependencies, and parses no schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kwire.errors import (
    CaptureError,
    CorruptRecordError,
    DecodeError,
    EncodeError,
    KwireError,
    LimitError,
    MissingExtraError,
    ProtocolError,
    SchemaError,
    UnsupportedVersionError,
)

if TYPE_CHECKING:
    from kwire.protocol.headers import (
        Request,
        Response,
        decode_body,
        decode_request,
        decode_request_header,
        decode_response,
        encode_body,
        encode_request,
        encode_response,
    )
    from kwire.protocol.splitter import FrameSplitter

__version__ = "0.2.0"
"""The version of this package (str), as PEP 440 writes it."""

__all__ = [
    "CaptureError",
    "CorruptRecordError",
    "DecodeError",
    "EncodeError",
    "FrameSplitter",
    "KwireError",
    "LimitError",
    "MissingExtraError",
    "ProtocolError",
    "Request",
    "Response",
    "SchemaError",
    "UnsupportedVersionError",
    "__version__",
    "decode_body",
    "decode_request",
    "decode_request_header",
    "decode_response",
    "encode_body",
    "encode_request",
    "encode_response",
]

# Imported when first used (PEP 562): a program that imports kwire does not pay for the codec until it decodes.
_LAZY = {
    "FrameSplitter": "kwire.protocol.splitter",
    "Request": "kwire.protocol.headers",
    "Response": "kwire.protocol.headers",
    "decode_body": "kwire.protocol.headers",
    "decode_request": "kwire.protocol.headers",
    "decode_request_header": "kwire.protocol.headers",
    "decode_response": "kwire.protocol.headers",
    "encode_body": "kwire.protocol.headers",
    "encode_request": "kwire.protocol.headers",
    "encode_response": "kwire.protocol.headers",
}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
