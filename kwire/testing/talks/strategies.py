"""Hypothesis strategies: any conversation of clients with a broker, and captures of them after impairments."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kwire import schema, versions
from kwire.records import CODECS
from kwire.schema.keys import ApiKey
from kwire.testing.broker.cluster import Cluster
from kwire.testing.impair import KINDS, Grade, Impaired, impair
from kwire.testing.recipes import Recipe
from kwire.testing.strategies import messages
from kwire.testing.talks.playing import TOPICS, Conversation
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

__all__ = ["Capture", "captures", "conversations"]

_RELEASES: Final = ("4.4", "3.9", "2.8", "1.1", "0.10.1", "0.9.0", "0.8.2")
_LAST: Final = ("checksums-wrong", "corrupt-copies", "fragmented")
"""Kinds that come after all others: what builds segments anew gives them right checksums, and leaves out fragments."""
_NEVER: Final = frozenset((ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE))
"""There is no authentication in these conversations."""

_CLIENT: Final = st.integers(0, 1)
_TOPIC: Final = st.sampled_from([name for name, _ in TOPICS])
_PARTITION: Final = st.integers(0, 1)
_GROUP: Final = st.sampled_from(["g", "h"])
_VALUES: Final = st.lists(st.binary(max_size=6) | st.none() | st.integers(100, 300).map(bytes), min_size=1, max_size=3)
_PLACE: Final[dict[str, Any]] = {"client": _CLIENT, "topic": _TOPIC, "partition": _PARTITION}


def _steps() -> list[SearchStrategy[Any]]:
    """Each kind of step, those that say most first: examples shrink to them."""
    return [
        st.builds(
            Write,
            **_PLACE,
            values=_VALUES.map(tuple),
            codec=st.sampled_from(CODECS[:5]),
            acks=st.sampled_from([-1, 1, 0]),
            producer=st.sampled_from(["plain", "idempotent", "transactional"]),
            held=st.booleans(),
        ),
        st.builds(
            Read,
            **_PLACE,
            offset=st.none() | st.integers(0, 5),
            wait=st.sampled_from([0, 500]),
            committed=st.booleans(),
        ),
        st.builds(End, client=_CLIENT, commit=st.booleans(), group=st.none() | _GROUP),
        st.builds(
            Join,
            client=_CLIENT,
            group=_GROUP,
            topics=st.lists(_TOPIC, min_size=1, max_size=2, unique=True).map(tuple),
            instance=st.none() | st.just("i"),
            consumer=st.booleans(),
        ),
        st.builds(Beat, client=_CLIENT),
        st.builds(Commit, **_PLACE, group=_GROUP, offset=st.integers(0, 5)),
        st.builds(Committed, **_PLACE, group=_GROUP),
        st.builds(Leave, client=_CLIENT),
        st.builds(Find, **_PLACE, timestamp=st.sampled_from([-1, -2, 0]), held=st.booleans()),
        st.builds(Metadata, client=_CLIENT, topics=st.none() | st.lists(_TOPIC, max_size=2).map(tuple)),
        st.builds(Close, client=_CLIENT),
        st.builds(Pause, client=_CLIENT, seconds=st.sampled_from([1, 15])),
    ]


@cache
def _asked(release: str, speaks: str, client: int) -> SearchStrategy[Ask]:
    """Any request that this client and broker have a version for."""
    cluster = Cluster(release, [], lambda: 0.0, lambda: 0.0)
    common = versions.choose(dict(cluster.announced), pin=speaks)
    known = [(schema.request(key), version) for key, version in sorted(common.items()) if key not in _NEVER]
    each = [messages(message, version) for message, version in known if message is not None]
    return st.one_of(each).map(lambda request: Ask(client=client, request=request))


def conversations(*, release: str | None = None, most: int = 8, requests: bool = False) -> SearchStrategy[Conversation]:
    """A Hypothesis strategy for conversations of up to two clients, of up to ``most`` steps.

    ``release``: that of the broker; None is any from 0.8.2 on. With ``requests``, clients also send any other request,
    to which the broker may answer with an error, or close the connection. Raises ``UnsupportedVersionError`` for a
    release that is not known.
    """
    releases = _RELEASES if release is None else (versions.release_name(release),)
    plain = _steps()

    @st.composite
    def draw_conversation(draw: Callable[..., Any]) -> Conversation:
        of = draw(st.sampled_from(releases))
        speaks = tuple(draw(st.lists(st.sampled_from(_RELEASES), max_size=2)))
        each = list(plain)
        if requests:
            each += [_asked(of, speaks[client] if client < len(speaks) else of, client) for client in (0, 1)]
        steps: list[Step] = draw(st.lists(st.one_of(each), min_size=1, max_size=most))
        return Conversation(of, tuple(steps), speaks)

    return draw_conversation()


@dataclass(frozen=True, repr=False)
class Capture(Recipe):
    """A capture of a conversation, and what networks, hosts and disks have done to it (``kwire.testing.KINDS``)."""

    conversation: Conversation
    kinds: tuple[str, ...] = ()
    seed: int = 0

    @cached_property
    def impaired(self) -> Impaired:
        """The capture, with an account of what was done."""
        return impair(self.conversation.capture, *self.kinds, seed=self.seed)

    @property
    def data(self) -> bytes:
        """The capture as a file."""
        return self.impaired.data


def captures(
    *,
    conversation: SearchStrategy[Conversation] | None = None,
    grades: Collection[Grade] = (Grade.LOSSLESS, Grade.LOSSY),
    most: int = 2,
) -> SearchStrategy[Capture]:
    """A Hypothesis strategy for captures of a conversation after up to ``most`` impairments of some grades."""
    names = [kind.name for kind in KINDS.values() if kind.grade in grades]

    def ordered(chosen: list[str]) -> tuple[str, ...]:
        return tuple(sorted(chosen, key=lambda name: _LAST.index(name) if name in _LAST else -1))

    return st.builds(
        Capture,
        conversations() if conversation is None else conversation,
        st.lists(st.sampled_from(names), max_size=most, unique=True).map(ordered),
        st.integers(0, 1 << 16),
    )
