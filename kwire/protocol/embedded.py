"""What Kafka embeds in bytes fields, and what the members of a classic group tell each other in them.

``decode_embedded`` reads an int16 version and a message. ``member_data`` reads what the members of a group wrote: a
broker does not look at it. What it is depends on the type of the group's protocol:

- ``consumer``: subscriptions and assignments. Their user data depends on the name of the protocol, which is that of the
  assignor: ``sticky``, ``cooperative-sticky``, ``stream`` (Kafka Streams).
- ``connect``: what a worker of Kafka Connect says of itself, and what it is to run. The state of a worker holds its
  assignment once more.

A dict has its ``version`` first, user data the name of its ``schema`` before it. Bytes that are not what they should be
stay bytes.

Source: KIP-429, KIP-792, KIP-881 (consumers); KIP-341 and StickyAssignor, CooperativeStickyAssignor (user data);
ConnectProtocol and IncrementalCooperativeConnectProtocol (KIP-415, KIP-507); SubscriptionInfo and AssignmentInfo of
Kafka Streams.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Final

from kwire import schema
from kwire.codec import registry
from kwire.errors import DecodeError, EncodeError, LimitError
from kwire.limits import Limits

__all__ = [
    "ASSIGNMENT",
    "CONNECT",
    "CONSUMER",
    "SUBSCRIPTION",
    "USER_DATA",
    "decode_embedded",
    "encode_embedded",
    "member_bytes",
    "member_data",
]

CONSUMER: Final = "consumer"
"""Protocol type (str) of groups of consumers. Source: Kafka's ``ConsumerProtocol``."""
CONNECT: Final = "connect"
"""Protocol type (str) of groups of Connect workers. Source: Kafka's ``WorkerGroupMember``."""

SUBSCRIPTION: Final = "ConsumerProtocolSubscription"
"""Schema (str) of the metadata with which a consumer joins its group."""
ASSIGNMENT: Final = "ConsumerProtocolAssignment"
"""Schema (str) of what a consumer is assigned."""

_OF_CONNECT: Final = {SUBSCRIPTION: "ConnectWorkerState", ASSIGNMENT: "ConnectAssignment"}
"""What stands in the same place where the protocol is that of Connect."""

USER_DATA: Final = "user_data"
"""The field of both that belongs to the assignor."""
_SCHEMA: Final = "schema"
_BY_ASSIGNOR: Final = {
    (SUBSCRIPTION, "sticky"): "StickyUserData",
    (SUBSCRIPTION, "cooperative-sticky"): "CooperativeStickyUserData",
    (SUBSCRIPTION, "stream"): "SubscriptionInfoData",
    (ASSIGNMENT, "stream"): "AssignmentInfoData",
}
_WITH_VERSION: Final = frozenset(("SubscriptionInfoData", "AssignmentInfoData"))
"""User data whose first field, an int32, is its version.

Others are of the version that fits to the last byte.
"""

_SAYS_ANOTHER_VERSION: Final = frozenset({SUBSCRIPTION})
"""Messages that some clients write in an earlier version than they say."""

_ERROR, _ASSIGNOR_ERROR = "error_code", "assignor_error"


def decode_embedded(name: str, data: bytes, *, exact: bool = False, limits: Limits | None = None) -> dict[str, Any]:
    """An int16 version and a message of the schema ``name`` in that version, as a dict with ``version`` first.

    A version newer than the schema is read as its newest. With ``exact``, the version must be known and nothing may be
    left over. ``limits``: what it may become, None is ``DEFAULT_LIMITS``. Raises ``DecodeError``.
    """
    if len(data) < 2:
        raise DecodeError(f"{len(data)} bytes are too few for a version", layout=name, offset=0)
    version = int.from_bytes(data[:2], "big", signed=True)
    message = schema.message(name)
    if version < message.versions.low or (exact and version > message.versions.high):
        raise DecodeError(f"version {version} is not known, versions {message.versions} are", layout=name, offset=0)
    known = min(version, message.versions.high)
    try:
        made, end = registry.codec(message, known).decode_prefix(data, 2, limits)
    except LimitError:
        raise
    except DecodeError:
        # kafka-go says version 1 of a subscription and writes version 0: to the last byte, that is what it is.
        if name not in _SAYS_ANOTHER_VERSION or known == message.versions.low:
            raise
        known = message.versions.low
        try:
            made, end = registry.codec(message, known).decode(data, 2, limits), len(data)
        except DecodeError:
            made = None
        if made is None:
            raise
    if exact and end != len(data):
        raise DecodeError(f"{len(data) - end} bytes after the end of the message", layout=name, offset=end)
    return {"version": version, **made.to_dict(known)}


def encode_embedded(name: str, values: Mapping[str, Any]) -> bytes:
    """The reverse of ``decode_embedded``. Raises ``EncodeError``."""
    left = dict(values)
    version = left.pop("version", None)
    message = schema.message(name)
    if not isinstance(version, int) or version not in message.versions:
        raise EncodeError(f"version {version!r} is not known, versions {message.versions} are", layout=name)
    body = registry.codec(message, version).encode(registry.message_class(message).from_dict(left))
    return version.to_bytes(2, "big", signed=True) + body


def member_data(
    place: str, data: bytes, protocol_type: str | None, assignor: str | None, *, limits: Limits | None = None
) -> dict[str, Any] | bytes:
    """What a member of a group wrote in a ``place`` (``SUBSCRIPTION``, ``ASSIGNMENT``); bytes where that is not known.

    ``protocol_type``: that of the group. None: the layout does not carry it, and bytes have to fit exactly.
    ``assignor``: the name of the protocol, None where it is not known. What would become more than ``limits`` allow
    stays bytes too.
    """
    if protocol_type in (None, CONSUMER):
        with contextlib.suppress(DecodeError):
            found = decode_embedded(place, data, exact=protocol_type is None, limits=limits)
            _open_user_data(place, found, assignor, limits)
            return found
    if protocol_type in (None, CONNECT):
        with contextlib.suppress(DecodeError):
            found = decode_embedded(_OF_CONNECT[place], data, exact=True, limits=limits)
            if found.get("allocation"):
                with contextlib.suppress(DecodeError):
                    inside = decode_embedded(_OF_CONNECT[ASSIGNMENT], found["allocation"], exact=True, limits=limits)
                    found["allocation"] = inside
            return found
    return data


def member_bytes(place: str, values: Mapping[str, Any]) -> bytes:
    """The reverse of ``member_data``. Raises ``EncodeError``."""
    plain = dict(values)
    if "url" in plain or "leader" in plain:
        if isinstance(plain.get("allocation"), Mapping):
            plain["allocation"] = encode_embedded(_OF_CONNECT[ASSIGNMENT], plain["allocation"])
        return encode_embedded(_OF_CONNECT[place], plain)
    if isinstance(plain.get(USER_DATA), Mapping):
        plain[USER_DATA] = _user_bytes(plain[USER_DATA])
    return encode_embedded(place, plain)


def _open_user_data(place: str, values: dict[str, Any], assignor: str | None, limits: Limits | None) -> None:
    name = _BY_ASSIGNOR.get((place, assignor or ""))
    data = values.get(USER_DATA)
    if name is None or not data:
        return
    message = schema.message(name)
    versions = list(message.versions)[::-1]
    if name in _WITH_VERSION:
        said = int.from_bytes(data[:4], "big", signed=True)
        versions = [said] if said in message.versions else []
    for version in versions:
        with contextlib.suppress(DecodeError):
            made = registry.codec(message, version).decode(data, 0, limits).to_dict(version)
            if _ERROR in made:
                # It is none of Kafka's error codes, and must not get one of their names.
                made[_ASSIGNOR_ERROR] = made.pop(_ERROR)
            values[USER_DATA] = {_SCHEMA: name, "version": version} | made
            return


def _user_bytes(values: Mapping[str, Any]) -> bytes:
    left = dict(values)
    name, version = left.pop(_SCHEMA, None), left.get("version")
    if name not in _BY_ASSIGNOR.values():
        raise EncodeError(f"{name!r} is no user data of an assignor", path=f"$..{USER_DATA}")
    message = schema.message(name)
    if not isinstance(version, int) or version not in message.versions:
        raise EncodeError(f"version {version!r} is not known, versions {message.versions} are", layout=name)
    if name not in _WITH_VERSION:
        del left["version"]
    if name == "SubscriptionInfoData" and _ASSIGNOR_ERROR in left:
        left[_ERROR] = left.pop(_ASSIGNOR_ERROR)
    return registry.codec(message, version).encode(registry.message_class(message).from_dict(left))
