"""Responses that a proxy changes: addresses of nodes, errors that a test wants, how long a client is throttled.

Addresses stand in structs with ``host`` and ``port``, beside an id of the node. All of these are changed, in whichever
response they are: Metadata, FindCoordinator, DescribeCluster, and the hints of new leaders in Produce and Fetch
(KIP-951).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kwire import messages, schema
from kwire.codec.objects import WireStruct
from kwire.schema.model import Field
from kwire.testing.broker.faults import Plan

__all__ = ["add_errors", "has_addresses", "learned", "readdress", "set_errors"]

Address = Callable[[int, str, int], tuple[str, int]]
"""Gives what clients are told in place of the address of a node."""

_ERRORS: Final = ("error_code", "partition_error_code")
_NUMBERS: Final = ("partition_index", "partition", "index")
_NODES: Final = ("node_id", "broker_id")


def has_addresses(key: int, version: int) -> bool:
    """Whether responses of this version may have addresses of nodes."""
    message = schema.response(key)
    if message is None:
        return False

    def there(fields: tuple[Field, ...]) -> bool:
        return {"host", "port"} <= {one.name for one in fields if version in one.versions}

    return there(message.fields) or any(there(one.fields) for one in message.structs.values())


def readdress(body: Any, address: Address) -> bool:
    """Change all addresses. Gives whether there were any."""
    changed = False
    names = {one.name for one in body.FIELDS}
    if {"host", "port"} <= names and body.host and body.port > 0:
        node = next((getattr(body, name) for name in _NODES if name in names), -1)
        body.host, body.port = address(node, body.host, body.port)
        changed = True
    for inner in _inside(body):
        changed |= readdress(inner, address)
    return changed


def set_errors(body: Any, version: int, plan: Plan, name_of: Callable[[Any], str], inside: bool = False) -> None:
    """Set all error codes that this version has, or those of a topic and partition alone."""
    names = {one.name for one in body.FIELDS if version in one.versions}
    topic, partition = plan.topic, plan.partition
    mine = topic is None or inside
    if "Topic" in type(body).__name__ and topic is not None:
        named = getattr(body, "topic", None) or getattr(body, "name", None) or name_of(getattr(body, "topic_id", None))
        mine = inside = named == topic
        if not mine:
            return
    number = next((getattr(body, name) for name in _NUMBERS if name in names), None)
    if partition is not None and number is not None and number != partition:
        return
    for name in _ERRORS:
        if name in names and mine and (partition is None or number is not None):
            setattr(body, name, plan.code)
            if "records" in names:
                body.records = b""
            if "base_offset" in names:
                body.base_offset = -1
    for inner in _inside(body):
        set_errors(inner, version, plan, name_of, inside)


def add_errors(body: Any, plan: Plan, fetched: Iterable[tuple[str, int]], ids: Mapping[str, Any] | None) -> None:
    """Put errors of a fault into a Fetch response for partitions of the session that it does not list.

    ``ids``: the ids of topics, by name, where the version names them by id.
    """
    kind = messages.FetchResponse
    listed = {
        (one.topic if ids is None else one.topic_id, part.partition_index)
        for one in body.responses
        for part in one.partitions
    }
    for name, number in fetched:
        topic = name if ids is None else ids.get(name)
        if plan.topic not in (None, name) or plan.partition not in (None, number) or (topic, number) in listed:
            continue
        if topic is not None:
            named: dict[str, Any] = {"topic": topic} if ids is None else {"topic_id": topic}
            part = kind.PartitionData(partition_index=number, error_code=plan.code, high_watermark=-1, records=b"")
            body.responses = [*body.responses, kind.FetchableTopicResponse(**named, partitions=[part])]


def learned(body: Any) -> dict[Any, str]:
    """Topic id -> name, of a response that has both."""
    found = {}
    for one in _inside(body):
        number, name = getattr(one, "topic_id", None), getattr(one, "name", None)
        if number is not None and name:
            found[number] = name
    return found


def _inside(body: Any) -> list[WireStruct]:
    found = []
    for field in body.FIELDS:
        value = getattr(body, field.name)
        if isinstance(value, WireStruct):
            found.append(value)
        elif isinstance(value, list):
            found += [one for one in value if isinstance(one, WireStruct)]
    return found
