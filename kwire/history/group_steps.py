"""What the messages of groups say, in few words: the readers of ``kwire.history.groups``.

Partitions in ``said`` are lists of [topic, topic id, partitions]; tasks of Kafka Streams are lists of [subtopology,
partitions]. A name or id that is not known is None.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

from kwire.history.steps import NOBODY, Names, Reader, Said, kind_of, topic_of
from kwire.protocol.embedded import ASSIGNMENT, SUBSCRIPTION, member_data
from kwire.schema.keys import ApiKey

__all__ = ["CLASSIC", "HEARTBEATS", "KINDS", "READS"]

CLASSIC: Final = (ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP)
"""The APIs of the classic protocol (tuple of ``ApiKey``)."""
HEARTBEATS: Final = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "consumer",
    ApiKey.SHARE_GROUP_HEARTBEAT: "share",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "streams",
}
"""The kind of group (dict of str) by the API of its heartbeats."""
KINDS: Final = {**dict.fromkeys(CLASSIC, "classic"), **HEARTBEATS}
"""The kind of group (dict of str) by API."""

_GROUP: Final = 0
"""The type of key in FindCoordinator that is a group."""

_Made = Iterator[tuple[str | None, str, Said]]


def digest(texts: Iterable[str]) -> str:
    """Names in any order as a short text, the same for the same names."""
    joined = "\0".join(sorted(texts)).encode("utf-8", "surrogatepass")
    return f"{zlib.crc32(joined):08x}{len(joined):x}"


def _by_id(listed: Any, names: Names) -> list[Any] | None:
    """Partitions of topics that are named by id."""
    if listed is None:
        return None
    return [[*topic_of(one.topic_id, names), list(one.partitions)] for one in listed]


def _tasks(listed: Any) -> list[Any] | None:
    if listed is None:
        return None
    return [[one.subtopology_id, list(one.partitions)] for one in listed]


# --- classic ----------------------------------------------------------------------------------------------------------


def _join(body: Any, names: Names) -> _Made:
    topics: set[str] = set()
    for one in body.protocols:
        found = member_data(SUBSCRIPTION, bytes(one.metadata), body.protocol_type or None, None)
        topics.update(found.get("topics", ()) if isinstance(found, dict) else ())
    yield (
        body.group_id,
        "",
        {
            "member": body.member_id,
            "instance": body.group_instance_id,
            "session": body.session_timeout_ms,
            "rebalance": body.rebalance_timeout_ms,
            "type": body.protocol_type,
            "topics": digest(topics) if topics else "",
            "reason": body.reason,
        },
    )


def _joined(body: Any, names: Names) -> _Made:
    yield (
        None,
        "",
        {
            "code": body.error_code,
            "generation": body.generation_id,
            "assignor": body.protocol_name or None,
            "member": body.member_id,
            "leader": body.leader,
            "members": [[one.member_id, one.group_instance_id] for one in body.members],
        },
    )


def _sync(body: Any, names: Names) -> _Made:
    said = {
        "member": body.member_id,
        "instance": body.group_instance_id,
        "generation": body.generation_id,
        "assignor": body.protocol_name,
    }
    yield body.group_id, "", said


def _synced(body: Any, names: Names) -> _Made:
    found = member_data(ASSIGNMENT, bytes(body.assignment), body.protocol_type, body.protocol_name)
    has = None
    if isinstance(found, dict) and "assigned_partitions" in found:
        has = [[one["topic"], None, list(one["partitions"])] for one in found["assigned_partitions"]]
    elif not body.assignment:
        has = []
    yield None, "", {"code": body.error_code, "assignor": body.protocol_name, "has": has}


def _beat(body: Any, names: Names) -> _Made:
    said = {"member": body.member_id, "instance": body.group_instance_id, "generation": body.generation_id}
    yield body.group_id, "", said


def _leave(body: Any, names: Names) -> _Made:
    some = [[one.member_id, one.group_instance_id, one.reason] for one in body.members]
    yield body.group_id, "", {"members": some or [[body.member_id, None, None]]}


def _left(body: Any, names: Names) -> _Made:
    some = [[one.member_id, one.group_instance_id, one.error_code] for one in body.members]
    yield None, "", {"code": body.error_code, "members": some}


def _answer(body: Any, names: Names) -> _Made:
    yield None, "", {"code": body.error_code}


# --- heartbeats of KIP-848, KIP-932, KIP-1071 -------------------------------------------------------------------------


def _consumer(body: Any, names: Names) -> _Made:
    topics = body.subscribed_topic_names
    regex = body.subscribed_topic_regex
    wants = None if topics is None and regex is None else digest([*(topics or ()), f"~{regex or ''}"])
    yield (
        body.group_id,
        "",
        {
            "member": body.member_id,
            "instance": body.instance_id,
            "epoch": body.member_epoch,
            "rebalance": body.rebalance_timeout_ms,
            "topics": wants,
            "assignor": body.server_assignor,
            "has": _by_id(body.topic_partitions, names),
        },
    )


def _share(body: Any, names: Names) -> _Made:
    topics = body.subscribed_topic_names
    wants = None if topics is None else digest(topics)
    yield body.group_id, "", {"member": body.member_id, "epoch": body.member_epoch, "topics": wants}


def _streams(body: Any, names: Names) -> _Made:
    topology = body.topology
    yield (
        body.group_id,
        "",
        {
            "member": body.member_id,
            "instance": body.instance_id,
            "epoch": body.member_epoch,
            "rebalance": body.rebalance_timeout_ms,
            "topics": None if topology is None else f"topology {topology.epoch}",
            "tasks": _tasks(body.active_tasks),
        },
    )


def _told(body: Any, names: Names) -> _Made:
    assignment = body.assignment
    yield (
        None,
        "",
        {
            "code": body.error_code,
            "member": body.member_id,
            "epoch": body.member_epoch,
            "interval": body.heartbeat_interval_ms,
            "has": None if assignment is None else _by_id(assignment.topic_partitions, names),
        },
    )


def _told_tasks(body: Any, names: Names) -> _Made:
    yield (
        None,
        "",
        {
            "code": body.error_code,
            "member": body.member_id,
            "epoch": body.member_epoch,
            "interval": body.heartbeat_interval_ms,
            "tasks": _tasks(body.active_tasks),
        },
    )


# --- of all kinds -----------------------------------------------------------------------------------------------------


def _commit(body: Any, names: Names) -> _Made:
    said = {
        "member": body.member_id,
        "instance": body.group_instance_id,
        "generation": body.generation_id_or_member_epoch,
    }
    yield body.group_id, "", said


def _committed(body: Any, names: Names) -> _Made:
    codes: dict[int, int] = {}
    for topic in body.topics:
        for one in topic.partitions:
            if one.error_code:
                codes[one.error_code] = codes.get(one.error_code, 0) + 1
    yield None, "", {"code": 0, "codes": [[code, count] for code, count in codes.items()]}


def _find(body: Any, names: Names) -> _Made:
    if body.key_type == _GROUP and not body.coordinator_keys:
        yield body.key, "", {}
    elif body.key_type == _GROUP:
        # The answer names the groups itself.
        for key in body.coordinator_keys:
            yield key, "", {}
    else:
        yield NOBODY, "", {}


def _found(body: Any, names: Names) -> _Made:
    if not body.coordinators:
        yield None, "", {"code": body.error_code, "node": body.node_id, "host": body.host, "port": body.port}
    for one in body.coordinators:
        yield one.key, "", {"code": one.error_code, "node": one.node_id, "host": one.host, "port": one.port}


READS: Final[dict[int, Reader]] = {
    kind_of(api, bool(response)): reader
    for api, both in {
        ApiKey.JOIN_GROUP: (_join, _joined),
        ApiKey.SYNC_GROUP: (_sync, _synced),
        ApiKey.HEARTBEAT: (_beat, _answer),
        ApiKey.LEAVE_GROUP: (_leave, _left),
        ApiKey.CONSUMER_GROUP_HEARTBEAT: (_consumer, _told),
        ApiKey.SHARE_GROUP_HEARTBEAT: (_share, _told),
        ApiKey.STREAMS_GROUP_HEARTBEAT: (_streams, _told_tasks),
        ApiKey.OFFSET_COMMIT: (_commit, _committed),
        ApiKey.TXN_OFFSET_COMMIT: (_commit, _committed),
        ApiKey.FIND_COORDINATOR: (_find, _found),
    }.items()
    for response, reader in enumerate(both)
}
"""The readers by kind of message."""
