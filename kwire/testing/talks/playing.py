"""A conversation: a recipe, and what was said when it is played."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from kwire import versions
from kwire.testing.broker.recording import Exchange
from kwire.testing.recipes import Recipe
from kwire.testing.talks.clients import Client, Said, World
from kwire.testing.talks.steps import Find, Step, Write

__all__ = ["TOPICS", "Conversation", "Stream"]

TOPICS: Final = (("a", 2), ("b", 1))
"""Topics (str) of the broker of every conversation, with their number of partitions (int)."""


class Stream(NamedTuple):
    """The bytes of both sides of a connection."""

    client: bytes
    broker: bytes


@dataclass(frozen=True, repr=False)
class Conversation(Recipe):
    """Clients that talk with a broker of ``release``, in ``steps``.

    ``speaks``: the releases that clients speak like, the first one that of client 0. Others speak like the broker. The
    same conversation always has the same bytes. Raises ``UnsupportedVersionError`` for a release that is not known.
    """

    release: str = versions.releases()[-1]
    steps: tuple[Step, ...] = ()
    speaks: tuple[str, ...] = ()

    @cached_property
    def _played(self) -> World:
        world = World(self.release, TOPICS)
        count = max((one.client for one in self.steps), default=0) + 1
        for number in range(count):
            release = self.speaks[number] if number < len(self.speaks) else self.release
            world.clients.append(Client(world, number, versions.release_name(release)))
        for step in self.steps:
            client = world.clients[step.client]
            if not client.holds:
                client.wait()
            step.play(client, world)
            if not (isinstance(step, Write | Find) and step.held):
                client.flush()
        for client in world.clients:
            client.wait()
        return world

    @property
    def frames(self) -> list[Said]:
        """Requests and responses in the order in which clients have sent and taken them."""
        return self._played.said

    @property
    def exchanges(self) -> list[Exchange]:
        """The same as the broker has recorded it."""
        return list(self._played.core.recording.exchanges)

    @property
    def streams(self) -> list[Stream]:
        """The bytes of each connection, in the order in which they were opened."""
        return [Stream(bytes(one.sent), bytes(one.received)) for one in self._played.links]

    @property
    def errors(self) -> list[Exception]:
        """Why the broker has closed connections."""
        return list(self._played.core.recording.errors)

    @cached_property
    def capture(self) -> bytes:
        """All connections as a pcapng file."""
        return self._played.core.recording.pcapng()

    def segment(self, topic: str, partition: int = 0) -> bytes:
        """What the broker has written into a partition: a log segment that begins with offset 0.

        Raises ``KeyError`` for a topic that there is not.
        """
        logs = self._played.core.cluster.topics[topic].logs
        return b"".join(one.data for one in logs[partition].entries)
