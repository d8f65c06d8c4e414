# Invariant: any bytes, in any pieces, give a connection events or a KwireError, the same ones as if they came at once;
# after an error each call gives the same error. In the role of a client, responses that were not asked for are errors.
"""Live connections of both roles, SASL included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fuzz import golden_frames, sized
from kwire import messages, schema
from kwire.errors import KwireError
from kwire.protocol.connection import Connection
from kwire.protocol.secrets import sasl_user
from kwire.schema import model

LIMIT = 1 << 20
"""Bytes of a frame."""
_BROKER, _CLIENT = 0, 1
_HEAD = 4
"""Bytes before what is received: the role, API key and version of the request, and how long a piece is."""


def seeds() -> Iterator[bytes]:
    """What real clients and brokers sent, one to three frames of each."""
    every = list(golden_frames())
    for at, one in enumerate(every):
        if one.response:
            yield bytes([_CLIENT, one.api & 0xFF, one.version & 0xFF, at % 40]) + sized(one.data)
        else:
            more = [other for other in every[at : at + 3] if not other.response]
            yield bytes([_BROKER, 0, 0, at % 40]) + b"".join(sized(other.data) for other in more)
            yield bytes([_BROKER | 2, 0, 0, at % 40]) + sized(one.data)


def words() -> Iterator[bytes]:
    """Sizes, and the beginnings of SASL tokens."""
    yield from (b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0user\0password", b"n,,n=user,r=nonce")
    yield from (b"\x60\x82\x01\x00", b"PLAIN", b"SCRAM-SHA-256", b"OAUTHBEARER", b"GSSAPI")


def _begun(head: bytes) -> Connection | None:
    """A connection in a state that bytes may meet."""
    role, sasl = head[0] & 1, bool(head[0] & 2)
    if role == _BROKER:
        return Connection("broker", sasl=sasl, limit=LIMIT)
    key, version = head[1], head[2]
    message = schema.request(key)
    if message is None or version not in message.versions:
        return None
    made = Connection("client", client_id="fuzz", versions={key: version}, sasl=sasl, limit=LIMIT)
    try:
        made.send(_asked(message), version=version)
        made.send(messages.ApiVersionsRequest(), version=0)
    except KwireError:
        return made
    return made


def _asked(message: model.Message) -> Any:
    kind: Any = getattr(messages, message.name)
    return kind()


def _error_of(connection: Connection) -> str | None:
    """What a connection raises of more bytes."""
    try:
        list(connection.receive(b"more"))
    except KwireError as error:
        return str(error)
    return None


def _received(connection: Connection, pieces: list[bytes]) -> tuple[list[str], Any]:
    events: list[str] = []
    try:
        for piece in [*pieces, b""]:
            for event in connection.receive(piece):
                events.append(repr(event))
                token = getattr(event, "data", None)
                sasl_user(token if isinstance(token, bytes) else None)
    except KwireError as error:
        return events, (type(error), str(error))
    return events, None


def check(data: bytes) -> None:
    """Asserts the invariant for one input."""
    if len(data) < _HEAD:
        return
    head, said = data[:_HEAD], data[_HEAD:]
    one, other = _begun(head), _begun(head)
    if one is None or other is None:
        return
    size = 1 + head[3]
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    whole = _received(one, [said] if said else [])
    assert whole == _received(other, pieces)
    error = whole[1]
    if error is not None:
        assert _error_of(one) == _error_of(one) == error[1], "it goes on after an error"
    assert one.state is other.state
