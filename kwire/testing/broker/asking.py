"""A request on its way through the broker: who asks what, and answers that must wait.

``Ask`` is what a handler gets. It returns a response, or a ``Wait`` where the answer is not known yet: a Fetch without
enough bytes, a JoinGroup of a group that waits for its members.

Rules kept here:

- A wait is asked again after every change of state, and at its ``due`` time, when it must answer.
- An error that a test has scripted is in ``forced``. A handler asks ``refused`` before it changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from kwire.codec.objects import WireMessage
from kwire.schema.keys import ApiKey
from kwire.testing.broker.places import places

if TYPE_CHECKING:
    from kwire.testing.broker.authentication import Login
    from kwire.testing.broker.cluster import Cluster, Node

__all__ = ["NEVER", "Ask", "Wait"]

NEVER: Final = float("inf")
"""The time (float, seconds on the clock of the cluster) at which nothing is due."""


@dataclass(slots=True)
class Wait:
    """An answer that is not known yet."""

    due: float
    """Seconds on the clock of the cluster, at which there must be an answer."""
    poll: Callable[[float], WireMessage | None]
    """Gives the answer if there is one at this time. At ``due`` there is."""


@dataclass(slots=True)
class Ask:
    """One request, and where it came from."""

    cluster: Cluster
    node: Node
    key: int
    version: int
    body: Any
    client_id: str
    host: str
    connection: int
    """The number of the connection."""
    login: Login
    """Who the client is."""
    now: float
    """Seconds on the clock of the cluster."""
    forced: int = 0
    """The error code that a test wants as the answer; 0 for none."""
    topic: str | None = None
    """The only topic for which it wants that; None for all."""
    partition: int | None = None

    @property
    def node_id(self) -> int:
        """The id of the node that is asked."""
        return self.node.id

    def places(self) -> Iterator[tuple[str, int]]:
        """The topics and partitions that it names, or that its session of Fetch has."""
        if self.key == ApiKey.FETCH and self.body.session_epoch > 0:
            session = self.cluster.sessions.known(self.body.session_id)
            for topic, number in session.partitions if session is not None else ():
                yield self._name(topic) if isinstance(topic, UUID) else topic, number
        yield from places(self.body, self._name)

    def _name(self, number: UUID) -> str:
        found = self.cluster.by_id.get(number)
        return "" if found is None else found.name

    def refused(self, topic: str | None = None, partition: int | None = None) -> int:
        """The error code that a test wants for this topic and partition, or for the request; 0 for none."""
        if self.topic is not None and topic is not None and topic != self.topic:
            return 0
        if self.partition is not None and partition is not None and partition != self.partition:
            return 0
        return self.forced
