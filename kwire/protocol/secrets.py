"""What Kafka hides in bytes that is not to be shown: frames inside of frames, records of the metadata log, SASL tokens.

The schema of a message says which of its fields are secret. ``kwire.codec.redacting`` says what stands in their place.
This module has what takes knowledge of the protocol:

- ``Envelope`` holds the request of a client with its header, ``embedded`` reads it. Its response cannot be read
  alone, since a response does not say what it answers: all of it is secret.
- ``hidden_record`` says whether the value of a record of ``__cluster_metadata`` is secret. Secret are credentials,
  delegation tokens, and passwords among configurations. So is every type or version that is not known here.
- ``sasl_user`` finds the user in a SASL token; a user's name is no secret.
- ``is_doubtful`` says whether a client_id may reach into the body of a damaged request, which may be a token.

Source: KIP-590 (Envelope), KIP-631 (metadata records); RFC 4616 (PLAIN), RFC 5802 (SCRAM), RFC 7628 (OAUTHBEARER).
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final

from kwire import schema
from kwire.codec import registry
from kwire.codec.redacting import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    REDACTED,
    is_redacted,
    is_secret,
    redact,
    redacted,
)
from kwire.errors import DecodeError, KwireError
from kwire.protocol.headers import Request, decode_request, encode_request
from kwire.schema import model
from kwire.wire import read_uvarint

__all__ = [
    "CONTROLS",
    "ENVELOPE",
    "METADATA_TOPIC",
    "METADATA_TOPIC_ID",
    "REDACTED",
    "embedded",
    "hidden_record",
    "is_cut_off",
    "is_doubtful",
    "is_redacted",
    "is_secret",
    "metadata_record",
    "redact",
    "redacted",
    "sasl_user",
    "secret_beginnings",
    "secret_record",
]

ENVELOPE: Final = "EnvelopeRequest"
"""Name (str) of the message that carries another request (KIP-590)."""
CONTROLS: Final = r"[\x00-\x1f\x7f]"
"""Control characters of ASCII, as a pattern."""
_FIELD: Final = "request_data"


def embedded(data: bytes) -> Request[Any] | None:
    """The request in an ``Envelope``.

    None where it cannot be read, would not be written as it is, or is an ``Envelope`` again, which brokers refuse.
    """
    try:
        request = decode_request(data)
        header = request.header
        if request.body.SCHEMA.name == ENVELOPE or header.unknown_tagged_fields:
            return None
        written = encode_request(
            request.body,
            api_version=header.request_api_version,
            correlation_id=header.correlation_id,
            client_id=header.client_id,
        )
    except KwireError:
        return None
    return request if written == data else None


def metadata_record(value: bytes) -> tuple[model.Message, int, int] | None:
    """Schema and version of a record of ``__cluster_metadata`` and where its content begins in ``value``.

    None for a type, version or framing that is not known. Raises ``DecodeError`` where the framing is cut off.
    """
    try:
        frame, pos = read_uvarint(value, 0)
        kind, pos = read_uvarint(value, pos)
        version, pos = read_uvarint(value, pos)
    except (IndexError, ValueError) as wrong:
        raise DecodeError("the frame of a metadata record is cut off", layout="metadata record", offset=0) from wrong
    message = _metadata_records(schema.generation()).get(kind)
    if message is None or frame not in (0, 1) or version not in message.versions:
        return None
    return message, version, pos


def is_cut_off(message: model.Message, version: int, size: int) -> bool:
    """Whether ``size`` bytes are fewer than any record of this kind has: to find out so is cheaper than an error."""
    return size < model.layout(message, version).min_size


@lru_cache(maxsize=1)
def _metadata_records(generation: int) -> dict[int, model.Message]:
    found = {}
    for name in schema.names("kraft"):
        message = schema.message(name)
        if message.api_key is not None:
            found[message.api_key] = message
    return found


def secret_record(value: bytes | None, *, sure: bool = True) -> bool:
    """Whether the value of a record of ``__cluster_metadata``, not of a control record, must not be shown as bytes.

    Without ``sure`` it may be another record. Then the answer is true only if the value is such a record to the last
    byte, with something secret in it.
    """
    if not value:
        return False
    try:
        found = metadata_record(value)
        if found is None:
            return sure
        message, version, pos = found
        if is_cut_off(message, version, len(value) - pos):
            return sure
        kind = registry.message_class(message)
        if not kind.SECRET_FIELDS and not sure:
            return False
        made, end = registry.codec(message, version).decode_prefix(value, pos)
    except DecodeError:
        return sure
    shown = made.to_dict(version)
    redact(kind, shown)
    return (sure and end != len(value)) or (shown != made.to_dict(version) and (sure or end == len(value)))


@lru_cache(maxsize=1)
def _secret_beginnings(generation: int) -> tuple[bytes, ...]:
    kinds = (kind for kind, one in _metadata_records(generation).items() if registry.message_class(one).SECRET_FIELDS)
    return tuple(bytes((frame, kind)) for kind in kinds if kind < 0x80 for frame in (0, 1))


def secret_beginnings() -> tuple[bytes, ...]:
    """What the values of such records begin with that may have secrets: two bytes each."""
    return _secret_beginnings(schema.generation())


def hidden_record(value: bytes | None, *, sure: bool = True) -> bytes | None:
    """What stands in a column of bytes in place of the value of such a record: ``{"redacted": 212}`` as text.

    None where the value can be shown. ``sure`` as for ``secret_record``.
    """
    if value is None or not secret_record(value, sure=sure):
        return None
    return json.dumps(redacted(len(value))).encode()


_CONTROLS: Final = re.compile(CONTROLS)


def is_doubtful(client_id: str | None) -> bool:
    """Whether this is no client_id but bytes of the body, where the request is not what its layout says.

    If a byte of its length is damaged, a client_id extends past its end. There zeros stand: of the size of what
    follows, or of tagged fields (in captures: ``_client_of`` of ``kwire.kernels.framing``).
    """
    return client_id is not None and _CONTROLS.search(client_id) is not None


_MOST_USER: Final = 1024
"""Bytes of the part of a token in which a user is looked for."""
_SCRAM: Final = re.compile(rb"(?:n|y|p=[A-Za-z0-9.-]{1,64}),(?:a=[^,\0]*)?,n=([^,\0]+),r=")
_BEARER: Final = re.compile(rb"n,(?:a=([^,\x00\x01]*))?,\x01")


def sasl_user(auth_bytes: bytes | None) -> str | None:
    """The user in the first token of a client: the name of PLAIN and SCRAM, the identity that OAUTHBEARER asks for.

    None where no user is named: in later tokens, in those of brokers, in OAUTHBEARER without ``a=``, in GSSAPI. A token
    does not say its mechanism. One that is not entirely of the form of one of these gives nothing.
    """
    if not auth_bytes:
        return None
    token = bytes(auth_bytes)
    head = token[:_MOST_USER]
    if (found := _SCRAM.match(head)) is not None:
        return _saslname(found[1])
    if (found := _BEARER.match(head)) is not None:
        return _saslname(found[1]) if found[1] else None
    parts = token.split(b"\0", 3)
    if len(parts) == 3 and parts[1] and parts[2] and len(parts[1]) <= _MOST_USER:
        return parts[1].decode() if _utf8(token) and _printable(parts[1]) else None
    return None


def _saslname(raw: bytes) -> str | None:
    """A name in which ``,`` and ``=`` are escaped."""
    if re.search(rb"=(?!2C|3D)", raw) or not _utf8(raw) or not _printable(raw):
        return None
    return raw.decode().replace("=2C", ",").replace("=3D", "=")


def _utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _printable(raw: bytes) -> bool:
    return raw.decode().isprintable()
