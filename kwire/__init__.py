"""kwire reads and writes the Kafka wire protocol.

``decode_request(frame)`` and ``decode_response(frame, api_key=, api_version=)`` turn frames (the bytes after the 4-byte
size) into objects; ``encode_request`` and ``encode_response`` do the reverse. ``kwire.messages`` holds the classes,
``kwire.records`` the records inside, ``kwire.capture`` reads whole captures, ``kwire.spark`` makes tables of them.

Importing this package imports none of the optional dependencies, and parses no schema.
"""

from kwire.errors import (
    CaptureError,
    CorruptRecordError,
    DecodeError,
    EncodeError,
    KwireError,
    LimitError,
    MissingExtraError,
    SchemaError,
    UnsupportedVersionError,
)
from kwire.protocol.headers import (
    Request,
    Response,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)

__version__ = "0.1.0"

__all__ = [
    "CaptureError",
    "CorruptRecordError",
    "DecodeError",
    "EncodeError",
    "KwireError",
    "LimitError",
    "MissingExtraError",
    "Request",
    "Response",
    "SchemaError",
    "UnsupportedVersionError",
    "__version__",
    "decode_request",
    "decode_request_header",
    "decode_response",
    "encode_request",
    "encode_response",
]
