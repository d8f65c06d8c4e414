"""Connections of the golden captures, said again by both roles of ``Connection``: the same bodies and bytes."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import pytest

from kwire.capture.frames import Frame
from kwire.capture.reading import Reading
from kwire.kernels.layouts import Status
from kwire.protocol.connection import Answer, Asked, Authenticated, Connection, State, Token
from kwire.schema.keys import ApiKey

HERE = Path(__file__).parent
CAPTURES = [
    HERE / "kafka-3.9-zk-auth" / "mechanisms.pcap",
    HERE / "kafka-4.3-kraft-auth" / "mechanisms.pcap",
    HERE / "kafka-3.9-zk-kafka-python" / "pinned-0.10.1.pcap",
    HERE / "kafka-4.3-kraft-franz-go" / "current.pcap",
]


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


def say_again(frames: list[Frame]) -> collections.Counter[str]:
    """Both roles side by side: what one sends is what was captured, and what the other receives."""
    first = frames[0].message.header.client_id if frames[0].status == Status.OK else None
    client, broker = Connection("client", client_id=first), Connection("broker")
    told: collections.Counter[str] = collections.Counter()
    for place, frame in enumerate(frames):
        sized = len(frame.data).to_bytes(4, "big") + frame.data
        sender, receiver = (broker, client) if frame.is_response else (client, broker)
        if frame.status == Status.SASL:
            last = not any(one.status == Status.SASL for one in frames[place + 1 :])
            sent = sender.send_token(frame.data, done=last and frame.is_response)
        elif frame.is_response:
            last = not any(one.api_key == ApiKey.SASL_AUTHENTICATE for one in frames[place + 1 :])
            sent = sender.send(frame.message.body)
            if frame.api_key == ApiKey.SASL_AUTHENTICATE and last and sender.state is State.AUTHENTICATING:
                sender.authenticated()
        else:
            message = frame.message
            client._client_id = message.header.client_id  # a client may give itself another name as it goes
            if client.state is State.AUTHENTICATING and frame.api_key != ApiKey.SASL_AUTHENTICATE:
                client.authenticated()
            number = message.header.correlation_id
            sent = sender.send(message.body, version=frame.api_version, correlation_id=number)
        assert sent == sized
        events: list[Any] = []
        cut = len(sized) // 2
        for piece in (sized[:cut], sized[cut:]):
            events += receiver.receive(piece)
        bodies = [one.body for one in events if isinstance(one, (Asked, Answer))]
        tokens = [one.data for one in events if isinstance(one, Token)]
        if frame.status == Status.SASL:
            assert tokens == [frame.data]
        else:
            assert bodies == [frame.message.body]
        told.update(type(one).__name__ for one in events)
    assert [type(one).__name__ for one in client.receive(b"")] == ["Closed"]
    assert [type(one).__name__ for one in broker.receive(b"")] == ["Closed"]
    return told


@pytest.mark.parametrize("path", CAPTURES, ids=lambda one: one.parent.name)
def test_what_was_captured_is_said_again(path: Path) -> None:
    told: collections.Counter[str] = collections.Counter()
    found = conversations(path)
    for frames in found.values():
        told += say_again(frames)
    assert len(found) > 5
    assert told["Asked"] > 50
    assert told["Asked"] >= told["Answer"] > 50
    if "auth" in path.parent.name:
        assert told[Authenticated.__name__] > 5
        assert told["Token"] > 10
