"""Connections of the golden captures, said again by both roles of ``Connection``: the same bodies and bytes.

The quick profile takes some of the captures, ``exhaustive`` all of them, and cuts their bytes in every way.
"""

from __future__ import annotations

import collections
import random
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from kwire.capture.frames import Frame
from kwire.capture.reading import Reading
from kwire.errors import ProtocolError
from kwire.kernels.layouts import Status
from kwire.protocol.connection import Authenticated, Connection, RequestReceived, ResponseReceived, State, Token
from kwire.protocol.error_codes import ErrorCode
from kwire.schema.keys import ApiKey

HERE = Path(__file__).parent
EVERYTHING = settings.get_current_profile_name() == "exhaustive"
SOME = [
    HERE / "kafka-3.9-zk-auth" / "mechanisms.pcap",
    HERE / "kafka-4.3-kraft-auth" / "mechanisms.pcap",
    HERE / "kafka-3.9-zk-kafka-python" / "pinned-0.10.1.pcap",
    HERE / "kafka-4.3-kraft-franz-go" / "current.pcap",
    HERE / "kafka-4.4-kraft-raw" / "every-version.pcap",
    HERE / "kafka-3.9-zk-kerberos" / "gssapi.pcap",
    HERE / "kafka-4.3-kraft-kerberos" / "gssapi.pcap",
]
ALL = sorted(path for kind in ("kafka-*", "odd/kafka-*", "tunnels/*") for path in HERE.glob(f"{kind}/*.pcap*"))
REFUSED = {HERE / "kafka-4.4-kraft-raw" / "every-version.pcap": 3}
"""Connections with a step that is not legal: the recorder itself sends SaslAuthenticate where no handshake was, to have
it in every version, and the broker refuses it too (error 34, ILLEGAL_SASL_STATE)."""

Cut = Any
"""Takes the bytes of one direction up to the next of the other, gives them in pieces."""


def in_halves(data: bytes) -> Iterator[bytes]:
    yield data[: len(data) // 2]
    yield data[len(data) // 2 :]


def byte_by_byte(data: bytes) -> Iterator[bytes]:
    for k in range(len(data)):
        yield data[k : k + 1]


def at_random(data: bytes) -> Iterator[bytes]:
    some, pos = random.Random(len(data)), 0
    while pos < len(data):
        size = some.choice([1, 2, 3, 4, 5, 9, 60, 1500, 65536])
        yield data[pos : pos + size]
        pos += size


def conversations(path: Path) -> dict[int, list[Frame]]:
    """The frames of each connection of which every frame is whole, in order of time."""
    found: dict[int, list[Frame]] = collections.defaultdict(list)
    with path.open("rb") as file:
        for frames in Reading(file):
            for frame in frames:
                found[frame.connection].append(frame)
    return {
        number: frames
        for number, frames in found.items()
        if all(frame.status in (Status.OK, Status.SASL) for frame in frames)
    }


def say_again(frames: list[Frame], cut: Cut) -> list[Any]:
    """Both roles side by side: what one sends is what was captured, and what the other receives. All events."""
    first = frames[0].message.header.client_id if frames[0].status == Status.OK else None
    raw = frames[0].status == Status.SASL  # GSSAPI as 0.9 has it: both sides know that it comes
    client, broker = Connection("client", client_id=first, sasl=raw), Connection("broker", sasl=raw)
    told: list[Any] = []
    left = [frame.status == Status.SASL or frame.api_key == ApiKey.SASL_AUTHENTICATE for frame in frames]
    place = 0
    # The last raw token of GSSAPI is the client's, and has no answer.
    sasl = [frame for frame in frames if frame.status == Status.SASL]
    unanswered = bool(sasl) and not sasl[-1].is_response
    # What one side sends without anything from the other in between comes at once, and may be cut anywhere.
    for is_response, group in groupby(frames, key=lambda frame: frame.is_response):
        sender, receiver = (broker, client) if is_response else (client, broker)
        sent, bodies, tokens = b"", [], []
        for frame in group:
            place += 1
            last = not any(left[place:])
            sized = len(frame.data).to_bytes(4, "big") + frame.data
            if frame.status == Status.SASL:
                made = sender.send_token(frame.data, done=last and is_response)
                tokens.append(frame.data)
                if last and unanswered:
                    sender.authenticated()
            elif is_response:
                made = sender.send(frame.message.body)
                bodies.append(frame.message.body)
                if frame.api_key == ApiKey.SASL_AUTHENTICATE and last and sender.state is State.AUTHENTICATING:
                    sender.authenticated()
            else:
                message = frame.message
                client._client_id = message.header.client_id  # a client may give itself another name as it goes
                if client.state is State.AUTHENTICATING and frame.api_key != ApiKey.SASL_AUTHENTICATE:
                    client.authenticated()
                number = message.header.correlation_id
                made = sender.send(message.body, version=frame.api_version, correlation_id=number)
                bodies.append(message.body)
            assert made == sized
            sent += made
        events: list[Any] = []
        for piece in cut(sent):
            for event in receiver.receive(piece):
                events.append(event)
                if unanswered and isinstance(event, Token) and event.data == sasl[-1].data:
                    receiver.authenticated()
        assert [one.body for one in events if isinstance(one, (RequestReceived, ResponseReceived))] == bodies
        assert [one.data for one in events if isinstance(one, Token) and one.message is None] == tokens
        told += events
    for one in (client, broker):
        told += one.receive(b"")
    assert [type(one).__name__ for one in told[-2:]] == ["Closed", "Closed"]
    return told


@pytest.mark.parametrize("path", ALL if EVERYTHING else SOME, ids=lambda one: f"{one.parent.name}-{one.name}")
def test_what_was_captured_is_said_again(path: Path) -> None:
    told: collections.Counter[str] = collections.Counter()
    found = conversations(path)
    refused = [number for number, frames in found.items() if frames[0].api_key == ApiKey.SASL_AUTHENTICATE]
    assert len(refused) == REFUSED.get(path, 0)
    for number in refused:
        frames = found.pop(number)
        with pytest.raises(ProtocolError, match="SaslAuthenticateRequest cannot be sent before SaslHandshake"):
            say_again(frames, in_halves)
        assert frames[1].message.body.error_code == ErrorCode.ILLEGAL_SASL_STATE
    for number, frames in found.items():
        events = say_again(frames, in_halves)
        for turn, cut in ((2, at_random), (8, byte_by_byte)):
            if EVERYTHING or number % turn == 1:
                assert say_again(frames, cut) == events
        told.update(type(one).__name__ for one in events)
    if path in SOME:
        assert len(found) > 3
        assert told["RequestReceived"] > 20
        assert told["RequestReceived"] >= told["ResponseReceived"] > 20
    if "auth" in path.parent.name:
        assert told[Authenticated.__name__] > 5
        assert told["Token"] > 10
