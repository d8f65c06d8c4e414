"""Which topic a request means: by its name, or from some version on by its id (KIP-516)."""

from __future__ import annotations

from uuid import UUID

from kwire.testing.broker.cluster import Cluster
from kwire.testing.broker.logs import Topic

__all__ = ["topic_of"]


def topic_of(cluster: Cluster, name: str, number: UUID, by_id: bool) -> Topic | None:
    """The topic of a name, or of an id. None if there is none."""
    return cluster.by_id.get(number) if by_id else cluster.topics.get(name)
