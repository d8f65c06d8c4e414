"""Who leads a partition: the errors of a node that does not, and where the leader is (KIP-320, KIP-951)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.cluster import Cluster, Node
from kwire.testing.broker.logs import Log

__all__ = ["current_leader", "leader_error", "newer_leaders"]

_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def leader_error(log: Log, node: Node, epoch: int = -1) -> int:
    """The error that a client gets which takes ``node`` for the leader in ``epoch`` (-1: it says none), or 0."""
    if log.leader != node.id:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if 0 <= epoch < log.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH if epoch > log.epoch else ErrorCode.NONE


def current_leader(log: Log, code: int, kind: Callable[..., Any]) -> Any:
    """The leader, to be named beside an error that says that it is another one; None beside other errors."""
    return kind(leader_id=log.leader, leader_epoch=log.epoch) if code in _MOVED else None


def newer_leaders(cluster: Cluster, numbers: Iterable[int], kind: Callable[..., Any]) -> list[Any]:
    """Where nodes can be reached."""
    found = [one for one in map(cluster.node, dict.fromkeys(numbers)) if one is not None]
    return [kind(node_id=one.id, host=one.host, port=one.port, rack=one.rack) for one in found]
