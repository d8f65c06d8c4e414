"""Which header a frame begins with, and whole frames: header and body together.

A frame is the bytes after the 4-byte size. The rules of headers (Kafka protocol guide, KIP-482, KIP-511):

- A request has header v1, or v2 when its version is flexible; ControlledShutdown v0 has v0, without client_id.
- A response has header v0, or v1 when its version is flexible. That of ApiVersions is always v0: a client that reads it
  does not know yet what the broker speaks.
- A broker that does not know the ApiVersions version answers in v0 with error code 35; ``decode_response`` falls back.

Objects here are what ``kwire.decode_request`` and its sisters take and return. Header and body are read, and written,
by one generated function (``registry.FrameCodec``), which is found by what a frame begins with. What that cannot read
or write is done in two steps (``_request_in_steps`` and its sisters): header and body each by its own codec. These say
what is wrong, and where. They also keep the bytes of a frame that is not canonical (``preserve=True``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, overload

from kwire import schema
from kwire.codec import generated, registry
from kwire.codec.objects import WireMessage
from kwire.codec.redacting import quoted
from kwire.codec.registry import Implementation
from kwire.codec.spelling import spelling_of
from kwire.errors import DecodeError, EncodeError, UnsupportedVersionError
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.schema.keys import ApiKey
from kwire.schema.model import Message
from kwire.wire import as_bytes

__all__ = [
    "API_VERSIONS",
    "Request",
    "Response",
    "decode_body",
    "decode_request",
    "decode_request_header",
    "decode_response",
    "encode_body",
    "encode_request",
    "encode_response",
    "request_header_version",
    "response_header_version",
]

# Looking a member up in its enumeration takes five times as long as the comparison.
API_VERSIONS: Final = ApiKey.API_VERSIONS
"""``ApiKey.API_VERSIONS``. Its responses have header version 0 in all versions (KIP-511)."""
CONTROLLED_SHUTDOWN: Final = ApiKey.CONTROLLED_SHUTDOWN
"""``ApiKey.CONTROLLED_SHUTDOWN``. Its requests of version 0 have no client id."""
_UNSUPPORTED_VERSION: Final = (35).to_bytes(2, "big")


Body = TypeVar("Body")
M = TypeVar("M", bound=WireMessage)


@dataclass(slots=True)
class Request(Generic[Body]):
    """A decoded request: ``header`` is a ``RequestHeader``, ``body`` a message such as ``ProduceRequest``.

    ``trailing``: how many bytes follow the body, where that was allowed.
    """

    header: Any
    body: Body
    trailing: int = 0


@dataclass(slots=True)
class Response(Generic[Body]):
    """A decoded response: ``header`` is a ``ResponseHeader``, ``body`` a message such as ``ProduceResponse``.

    ``api_version`` is the version that the body was read in: the one asked for, or 0 after the ApiVersions fallback.
    ``trailing``: how many bytes follow the body, where that was allowed.
    """

    header: Any
    body: Body
    api_version: int
    trailing: int = 0


def request_header_version(api_key: int, api_version: int) -> int:
    """The header version of a request. Raises ``UnsupportedVersionError`` for an unknown API key."""
    if api_key == CONTROLLED_SHUTDOWN and api_version == 0:
        return 0
    message = schema.request(api_key)
    if message is None:
        raise registry.unknown_api(api_key)
    return 2 if api_version in message.flexible else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """The header version of a response. Raises ``UnsupportedVersionError`` for an unknown API key."""
    if api_key == API_VERSIONS:
        return 0
    message = schema.response(api_key)
    if message is None:
        raise registry.unknown_api(api_key)
    return 1 if api_version in message.flexible else 0


def _with_its_size(error: DecodeError, data: bytes) -> DecodeError:
    """``error``, which says so where the frame begins with its size: that is left on by mistake."""
    if len(data) < 4 or int.from_bytes(data[:4], "big") != len(data) - 4:
        return error
    text = f"{error.message}; the first 4 bytes look like the size of the frame, which is no part of it: give frame[4:]"
    return type(error)(text, layout=error.layout, path=error.path, offset=error.offset)


def _key_of(message: type[WireMessage], kind: str) -> int:
    """The API key of a class of messages.

    Raises ``DecodeError`` where it is not the one that headers name.
    """
    found = getattr(message, "SCHEMA", None)
    key = None if found is None or found.kind != kind else found.api_key
    if key is None or (schema.request(key) if kind == "request" else schema.response(key)) is not found:
        raise DecodeError(
            f"{getattr(message, '__qualname__', message)!s} is no {kind} of Kafka; decode_body reads any message"
        )
    return int(key)


def decode_request_header(
    frame: bytes | bytearray | memoryview,
    *,
    implementation: Implementation = "compiled",
    limits: Limits | None = None,
    preserve: bool = False,
) -> tuple[Any, int]:
    """The header of a request frame and the offset at which its body begins.

    Works for every version of a known API, known or not. Raises ``DecodeError``. ``limits``: None is
    ``DEFAULT_LIMITS``. ``preserve``: as for ``decode_request``.
    """
    data = as_bytes(frame, "frame")
    if len(data) < 4:
        raise DecodeError(f"{len(data)} bytes are too few for a request", layout="RequestHeader", offset=0)
    api_key = int.from_bytes(data[:2], "big", signed=True)
    api_version = int.from_bytes(data[2:4], "big", signed=True)
    version = request_header_version(api_key, api_version)
    return _read_header("RequestHeader", version, data, implementation, limits, preserve)


def _read_header(
    name: str, version: int, data: bytes, implementation: Implementation, limits: Limits | None, preserve: bool
) -> tuple[Any, int]:
    codec = registry.codec(schema.message(name), version, implementation)
    header, end = codec.decode_prefix(data, 0, limits)
    return codec.keeping(header, data[:end]) if preserve else header, end


def _read(
    codec: registry.Codec, data: bytes, pos: int, limits: Limits | None, trailing: bool, preserve: bool
) -> tuple[Any, int]:
    """The body at ``pos``, and how many bytes follow it: none, unless that is allowed."""
    if trailing:
        body, end = codec.decode_prefix(data, pos, limits)
    else:
        body, end = codec.decode(data, pos, limits), len(data)
    return codec.keeping(body, data[pos:end], data[end:]) if preserve else body, len(data) - end


# What reads and writes in one step. The keys are the first four bytes of a request, (API key, version) of a response,
# and (class, version) of what is written.
_requests: Final[dict[bytes, registry.FrameCodec]] = schema.kept()
_responses: Final[dict[tuple[int, int], registry.FrameCodec]] = schema.kept()
_written_requests: Final[dict[tuple[type, int], registry.FrameCodec]] = schema.kept()
_written_responses: Final[dict[tuple[type, int], registry.FrameCodec]] = schema.kept()


# Python fills in defaults of positional parameters in half of the time. It finds a method by its slot faster in two
# steps. Together that is 0.1 of the 0.6 µs that a header may take.


@overload
def decode_request(
    frame: bytes | bytearray | memoryview,
    implementation: Implementation = ...,
    limits: Limits | None = ...,
    trailing: bool = ...,
    message: None = ...,
    preserve: bool = ...,
) -> Request[Any]: ...
@overload
def decode_request(
    frame: bytes | bytearray | memoryview,
    implementation: Implementation = ...,
    limits: Limits | None = ...,
    trailing: bool = ...,
    *,
    message: type[M],
    preserve: bool = ...,
) -> Request[M]: ...
def decode_request(
    frame: bytes | bytearray | memoryview,
    implementation: Implementation = "compiled",
    limits: Limits | None = None,
    trailing: bool = False,
    message: type[WireMessage] | None = None,
    preserve: bool = False,
) -> Request[Any]:
    """Decode a request frame (without its 4-byte size).

    Offsets in errors count from the start of the frame.

    ``limits``: what the body may become, None is ``DEFAULT_LIMITS``. Bytes after the body are an error, unless they are
    allowed: ``trailing=True`` counts them in ``Request.trailing``. ``message``: the class that the body must have, as
    ``kwire.messages.MetadataRequest``; editors then know its fields. ``preserve=True``: ``encode_request`` of what is
    returned gives ``frame`` again, byte for byte, where Kafka would write it otherwise too. Raises
    ``UnsupportedVersionError`` for an unknown API key or version, ``LimitError`` for a body that is beyond a limit,
    ``DecodeError`` for bad bytes.
    """
    if (
        frame.__class__ is bytes
        and (limits is None or limits is DEFAULT_LIMITS)
        and implementation == "compiled"
        and message is None
        and not preserve
    ):
        try:
            read = _requests[frame[:4]].read
            return read(frame)  # type: ignore[no-any-return]
        except generated.FAILURES:
            pass
    data = as_bytes(frame, "frame")
    if message is not None:
        key = _key_of(message, "request")
        if len(data) >= 2 and (found := int.from_bytes(data[:2], "big", signed=True)) != key:
            error = DecodeError(
                f"a request with API key {found} is no {message.__qualname__}", layout="frame", offset=0
            )
            raise _with_its_size(error, data)
    try:
        return _request_in_steps(data, implementation, limits, trailing, preserve)
    except DecodeError as error:
        raise _with_its_size(error, data) from None


def _request_in_steps(
    data: bytes,
    implementation: Implementation,
    limits: Limits | None,
    trailing: bool = False,
    preserve: bool = False,
) -> Request[Any]:
    header, pos = decode_request_header(data, implementation=implementation, limits=limits, preserve=preserve)
    codec = registry.request_codec(header.request_api_key, header.request_api_version, implementation)
    if data[:4] not in _requests:
        whole = _request_frame(codec.message, codec.version)
        if whole is not None:
            _requests[data[:4]] = whole
    return Request(header, *_read(codec, data, pos, limits, trailing, preserve))


def _request_frame(message: Message, version: int) -> registry.FrameCodec | None:
    """Read and write this request with its header; None where that is not one of Kafka's own."""
    assert message.api_key is not None
    header = registry.codec(schema.message("RequestHeader"), request_header_version(message.api_key, version))
    fields = [one.name for one in header.layout.fields]
    if fields not in (_HEADER_FIELDS[:3], _HEADER_FIELDS) or header.layout.tagged:
        return None
    constants = {"request_api_key": message.api_key, "request_api_version": version}
    return registry.FrameCodec(message, version, header, Request, constants=constants, attributes={"trailing": 0})


_HEADER_FIELDS: Final = ["request_api_key", "request_api_version", "correlation_id", "client_id"]


def _response_frame(message: Message, version: int) -> registry.FrameCodec | None:
    """Read and write this response with its header; None where that is not one of Kafka's own."""
    assert message.api_key is not None
    header = registry.codec(schema.message("ResponseHeader"), response_header_version(message.api_key, version))
    if [one.name for one in header.layout.fields] != ["correlation_id"] or header.layout.tagged:
        return None
    return registry.FrameCodec(
        message, version, header, Response, constants={}, attributes={"api_version": version, "trailing": 0}
    )


@overload
def decode_response(
    frame: bytes | bytearray | memoryview,
    *,
    api_key: int,
    api_version: int,
    implementation: Implementation = ...,
    limits: Limits | None = ...,
    trailing: bool = ...,
    preserve: bool = ...,
) -> Response[Any]: ...
@overload
def decode_response(
    frame: bytes | bytearray | memoryview,
    message: type[M],
    api_version: int,
    *,
    implementation: Implementation = ...,
    limits: Limits | None = ...,
    trailing: bool = ...,
    preserve: bool = ...,
) -> Response[M]: ...
def decode_response(
    frame: bytes | bytearray | memoryview,
    message: type[WireMessage] | None = None,
    api_version: int | None = None,
    *,
    api_key: int | None = None,
    implementation: Implementation = "compiled",
    limits: Limits | None = None,
    trailing: bool = False,
    preserve: bool = False,
) -> Response[Any]:
    """Decode a response frame (without its 4-byte size), given what its request asked for.

    That is ``api_key`` and ``api_version``, or the class of the body in place of the key. An example is
    ``decode_response(frame, kwire.messages.MetadataResponse, 12)``; editors then know its fields. An ApiVersions answer
    with error 35 (unsupported version) that is not in that version is read as v0 (KIP-511). ``limits``, ``trailing``,
    ``preserve`` and errors are those of ``decode_request``.
    """
    if (
        frame.__class__ is bytes
        and (limits is None or limits is DEFAULT_LIMITS)
        and implementation == "compiled"
        and message is None
        and not preserve
    ):
        try:
            read = _responses[api_key, api_version].read  # type: ignore[index]
            return read(frame)  # type: ignore[no-any-return]
        except generated.FAILURES:
            pass
    if message is not None and api_key is None:
        api_key = _key_of(message, "response")
    if api_key is None or api_version is None:
        raise TypeError("a response does not say what it is: give api_key and api_version of its request")
    data = as_bytes(frame, "frame")
    try:
        return _response_in_steps(data, api_key, api_version, implementation, limits, trailing, preserve)
    except DecodeError as error:
        raise _with_its_size(error, data) from None


def _response_in_steps(
    data: bytes,
    api_key: int,
    api_version: int,
    implementation: Implementation,
    limits: Limits | None,
    trailing: bool = False,
    preserve: bool = False,
) -> Response[Any]:
    version = response_header_version(api_key, api_version)
    header, pos = _read_header("ResponseHeader", version, data, implementation, limits, preserve)
    fallback = api_key == API_VERSIONS and data[pos : pos + 2] == _UNSUPPORTED_VERSION
    found = problem = None
    try:
        codec = registry.response_codec(api_key, api_version, implementation)
        if (api_key, api_version) not in _responses:
            whole = _response_frame(codec.message, api_version)
            if whole is not None:
                _responses[api_key, api_version] = whole
        body, left = _read(codec, data, pos, limits, trailing, preserve)
        found = Response(header, body, api_version, left)
        if not left or not fallback:
            return found
    except DecodeError as error:
        if not fallback:
            raise
        problem = error
    try:
        codec = registry.response_codec(api_key, 0, implementation)
        body, left = _read(codec, data, pos, limits, trailing, preserve)
        if found is None or not left:
            return Response(header, body, 0, left)
    except DecodeError:
        pass
    if found is not None:
        return found
    assert problem is not None
    raise problem


def decode_body(
    data: bytes | bytearray | memoryview,
    message: type[M],
    api_version: int,
    *,
    implementation: Implementation = "compiled",
    limits: Limits | None = None,
    preserve: bool = False,
) -> M:
    """The message that ``data`` is, without a header: ``decode_body(data, kwire.messages.MetadataRequest, 12)``.

    Works for every class of messages, those of ``kwire.messages`` and of your own schemas. ``limits``, ``preserve``
    (for ``encode_body``) and errors are those of ``decode_request``; bytes after the message are an error.
    """
    codec = registry.codec(message.SCHEMA, api_version, implementation)
    return _read(codec, as_bytes(data, codec.label), 0, limits, False, preserve)[0]  # type: ignore[no-any-return]


def encode_body(body: WireMessage, api_version: int, *, implementation: Implementation = "compiled") -> bytes:
    """A message without a header, in one of its versions: what ``decode_body`` reads.

    Raises ``EncodeError``.
    """
    if not isinstance(body, WireMessage):
        raise EncodeError(f"expected a message, not {type(body).__qualname__}")
    return _for_encoding(body, api_version, implementation).encode(body)


def _body(body: object, kind: str) -> tuple[WireMessage, int]:
    if not isinstance(body, WireMessage) or body.SCHEMA.kind != kind or body.SCHEMA.api_key is None:
        raise EncodeError(f"expected a {kind} message, not {type(body).__qualname__}")
    return body, body.SCHEMA.api_key


@overload
def encode_request(
    body: Request[Any],
    *,
    implementation: Implementation = ...,
) -> bytes: ...
@overload
def encode_request(
    body: WireMessage,
    *,
    api_version: int,
    correlation_id: int,
    client_id: str | None = ...,
    implementation: Implementation = ...,
) -> bytes: ...
def encode_request(
    body: WireMessage | Request[Any],
    *,
    api_version: int | None = None,
    correlation_id: int | None = None,
    client_id: str | None = None,
    implementation: Implementation = "compiled",
) -> bytes:
    """The frame (without its 4-byte size) of a request: of a body, or of a ``Request``, which has its own header.

    Raises ``EncodeError``.
    """
    if implementation == "compiled":
        try:
            write = _written_requests[type(body), api_version].write  # type: ignore[index]
            return write(body, correlation_id, client_id)
        except generated.FAILURES:
            pass
    if isinstance(body, Request):
        if (api_version, correlation_id, client_id) != (None, None, None):
            raise TypeError("a Request has a header of its own: change that, or give request.body")
        return _encode_whole_request(body, implementation)
    if api_version is None or correlation_id is None:
        raise TypeError("a body has no header: give api_version and correlation_id, or a whole Request")
    return _encode_request_in_steps(body, api_version, correlation_id, client_id, implementation)


def _encode_request_in_steps(
    body: object, api_version: int, correlation_id: int, client_id: str | None, implementation: Implementation
) -> bytes:
    message, api_key = _body(body, "request")
    codec = _for_encoding(message, api_version, implementation)
    version = request_header_version(api_key, api_version)
    if version > 0 and (message.__class__, api_version) not in _written_requests:
        whole = _request_frame(message.SCHEMA, api_version)
        if whole is not None:
            _written_requests[message.__class__, api_version] = whole
    schema_ = schema.message("RequestHeader")
    header: Any = registry.message_class(schema_)()
    header.request_api_key = api_key
    header.request_api_version = api_version
    header.correlation_id = correlation_id
    if version > 0:
        header.client_id = client_id
    return registry.codec(schema_, version, implementation).encode(header) + codec.encode(message)


def _encode_whole_request(request: Request[Any], implementation: Implementation) -> bytes:
    header = request.header
    message, api_key = _body(request.body, "request")
    found = getattr(header, "request_api_key", None)
    if found != api_key:
        raise EncodeError(f"the header says API key {quoted(found)}, that of {type(message).__qualname__} is {api_key}")
    codec = _for_encoding(message, header.request_api_version, implementation)
    _check_trailing(request)
    version = request_header_version(api_key, codec.version)
    written = registry.codec(schema.message("RequestHeader"), version, implementation).encode(header)
    return written + codec.encode(message)


def _check_trailing(whole: Request[Any] | Response[Any]) -> None:
    kept = spelling_of(whole.body)
    size = 0 if kept is None else len(kept.trailing)
    if size != whole.trailing:
        raise EncodeError(
            f"{whole.trailing} bytes stand behind the body, and {size} were kept: decode with preserve=True"
        )


@overload
def encode_response(
    body: Response[Any],
    *,
    implementation: Implementation = ...,
) -> bytes: ...
@overload
def encode_response(
    body: WireMessage,
    *,
    api_version: int,
    correlation_id: int,
    implementation: Implementation = ...,
) -> bytes: ...
def encode_response(
    body: WireMessage | Response[Any],
    *,
    api_version: int | None = None,
    correlation_id: int | None = None,
    implementation: Implementation = "compiled",
) -> bytes:
    """The frame (without its 4-byte size) of a response: of a body, or of a ``Response``, which has its own header.

    Raises ``EncodeError``.
    """
    if implementation == "compiled":
        try:
            write = _written_responses[type(body), api_version].write  # type: ignore[index]
            return write(body, correlation_id)
        except generated.FAILURES:
            pass
    if isinstance(body, Response):
        if (api_version, correlation_id) != (None, None):
            raise TypeError("a Response has a header of its own: change that, or give response.body")
        return _encode_whole_response(body, implementation)
    if api_version is None or correlation_id is None:
        raise TypeError("a body has no header: give api_version and correlation_id, or a whole Response")
    return _encode_response_in_steps(body, api_version, correlation_id, implementation)


def _encode_response_in_steps(
    body: object, api_version: int, correlation_id: int, implementation: Implementation
) -> bytes:
    message, api_key = _body(body, "response")
    codec = _for_encoding(message, api_version, implementation)
    version = response_header_version(api_key, api_version)
    if (message.__class__, api_version) not in _written_responses:
        whole = _response_frame(message.SCHEMA, api_version)
        if whole is not None:
            _written_responses[message.__class__, api_version] = whole
    schema_ = schema.message("ResponseHeader")
    header: Any = registry.message_class(schema_)()
    header.correlation_id = correlation_id
    return registry.codec(schema_, version, implementation).encode(header) + codec.encode(message)


def _encode_whole_response(response: Response[Any], implementation: Implementation) -> bytes:
    message, api_key = _body(response.body, "response")
    codec = _for_encoding(message, response.api_version, implementation)
    _check_trailing(response)
    version = response_header_version(api_key, codec.version)
    written = registry.codec(schema.message("ResponseHeader"), version, implementation).encode(response.header)
    return written + codec.encode(message)


def _for_encoding(message: WireMessage, version: int, implementation: Implementation) -> registry.Codec:
    # The body's own schema, which a user may have loaded, and not what the API key stands for in the built-in ones.
    try:
        return registry.codec(message.SCHEMA, version, implementation)
    except UnsupportedVersionError as error:
        raise EncodeError(error.message, layout=message.SCHEMA.name) from None
