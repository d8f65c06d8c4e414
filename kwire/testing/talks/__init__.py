"""Conversations of clients with a broker, for Hypothesis: any, each consistent, each a recipe that can be pasted.

    from hypothesis import given
    from kwire.testing import Conversation, conversations

    @given(conversations(release="3.9"))
    def test_my_parser(talk: Conversation) -> None:
        for stream in talk.streams:            # the bytes of both sides of each connection
            my_parser.feed(stream.client, stream.broker)
        assert my_parser.frames == [(one.direction, one.api_key, one.correlation_id) for one in talk.frames]

What fails is printed as ``Conversation(release='3.9', steps=(Write(values=(b'x',)), Read()))``. Steps make requests
(``steps``), clients keep what they are told (``clients``), and the mock broker without its sockets answers. So
versions, ids, sessions, groups and transactions fit together. ``strategies`` draws conversations, and captures of them
after impairments.
"""

from __future__ import annotations

from kwire.testing.talks.clients import Said
from kwire.testing.talks.playing import TOPICS, Stream
from kwire.testing.talks.steps import (
    Ask,
    Beat,
    Close,
    Commit,
    Committed,
    End,
    Find,
    Join,
    Leave,
    Metadata,
    Pause,
    Read,
    Step,
    Write,
)

__all__ = [
    "TOPICS",
    "Ask",
    "Beat",
    "Close",
    "Commit",
    "Committed",
    "End",
    "Find",
    "Join",
    "Leave",
    "Metadata",
    "Pause",
    "Read",
    "Said",
    "Step",
    "Stream",
    "Write",
]
