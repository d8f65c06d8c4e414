"""Names of the time: what Kafka called error codes, APIs and fields before they got the names that they have.

Documents, logs and clients of their time say ``NOT_LEADER_FOR_PARTITION``, ``GroupCoordinator`` and ``record_set``
where this package says ``NOT_LEADER_OR_FOLLOWER``, ``FindCoordinator`` and ``records``. Here both are accepted, and
those of a release shown::

    error_code("NOT_LEADER_FOR_PARTITION")               # ErrorCode.NOT_LEADER_OR_FOLLOWER
    error_name(6, "0.10.1")                              # 'NOT_LEADER_FOR_PARTITION'
    api_name(10, "0.10.1")                               # 'GroupCoordinator'; api_key("GroupCoordinator") is 10
    to_dict(fetch_response, 3)                           # {'responses': [{'topic': ..., 'partition_responses': ...
    from_dict(messages.FetchResponse, values)            # the reverse

Rules kept here:

- A name is a name of its release: without one, it is that of today. Names that Kafka has given to one code only are
  accepted whatever the release.
- Names of fields are those of 0.10.1, for the versions that it has. They are in ``schemas/names.txt``, made of its
  classes by ``tests/kafka/names.py``. Only names differ: ``from_dict(cls, to_dict(message, version))`` is the message.

Error codes and their names: the ``Errors`` of each release's kafka-clients, 0.8.2 to 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar

from kwire import schema, versions
from kwire.codec.objects import WireMessage
from kwire.errors import EncodeError, UnsupportedVersionError
from kwire.naming import no_such
from kwire.protocol.error_codes import RETRIABLE, ErrorCode
from kwire.protocol.error_codes import error_name as error_name_of_today
from kwire.schema.loader import builtin_root
from kwire.schema.model import NO_VERSIONS

__all__ = [
    "FORMER_ERROR_NAMES",
    "RETRIABLE_CHANGED",
    "api_key",
    "api_name",
    "error_code",
    "error_name",
    "field_names",
    "from_dict",
    "retriable",
    "to_dict",
]

RELEASE: Final = "0.10.1"
"""The release whose names of fields are known."""

FORMER_ERROR_NAMES: Final = {
    ErrorCode.UNKNOWN_SERVER_ERROR: ("UNKNOWN", "1.0"),
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ("NOT_LEADER_FOR_PARTITION", "2.6"),
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ("GROUP_LOAD_IN_PROGRESS", "0.11.0"),
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ("GROUP_COORDINATOR_NOT_AVAILABLE", "0.11.0"),
    ErrorCode.NOT_COORDINATOR: ("NOT_COORDINATOR_FOR_GROUP", "0.11.0"),
}
"""Code -> its former name, and the release that gave it the one of today."""

RETRIABLE_CHANGED: Final = {
    ErrorCode.OFFSET_OUT_OF_RANGE: (True, "0.9.0"),
    ErrorCode.REPLICA_NOT_AVAILABLE: (False, "2.6"),
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: (True, "1.0"),
    ErrorCode.CONCURRENT_TRANSACTIONS: (False, "3.3"),
}
"""Code -> whether it was retriable before a release, and that release. (CONCURRENT_TRANSACTIONS: 3.3.2.)"""

_FORMER_API_NAMES: Final = {
    2: (("Offsets", "1.0"),),
    10: (("ConsumerMetadata", "0.9.0"), ("GroupCoordinator", "0.11.0")),
    43: (("ElectPreferredLeaders", "2.4"),),
    56: (("AlterIsr", "3.2"),),
    74: (("ListClientMetricsResources", "4.1"),),
}
"""API key -> its former names, each with the release that gave it the next one."""

M = TypeVar("M", bound=WireMessage)


def _before(release: str | None, since: str) -> bool:
    if release is None:
        return False
    known = versions.releases()
    return known.index(versions.release_name(release)) < known.index(since)


# --- error codes ----------------------------------------------------------------------------------------------------


def error_name(code: int, release: str | None = None) -> str | None:
    """What ``release`` calls an error code, or Kafka today; None for a code that Kafka has not defined.

    Raises ``UnsupportedVersionError`` for an unknown release.
    """
    found = FORMER_ERROR_NAMES.get(code)  # type: ignore[call-overload]
    if found is not None and _before(release, found[1]):
        return str(found[0])
    return error_name_of_today(code)


def error_code(name: str) -> ErrorCode:
    """The code of a name of any time.

    Raises ``UnsupportedVersionError`` for a name that Kafka has not given.
    """
    if name in ErrorCode.__members__:
        return ErrorCode[name]
    for code, (former, _) in FORMER_ERROR_NAMES.items():
        if name == former:
            return code
    raise UnsupportedVersionError(no_such("error code", name, ErrorCode.__members__))


def retriable(code: int, release: str | None = None) -> bool:
    """Whether a client of ``release``, or of today, may simply try again after an error."""
    found = RETRIABLE_CHANGED.get(code)  # type: ignore[call-overload]
    if found is not None and _before(release, found[1]):
        return bool(found[0])
    return code in RETRIABLE


# --- APIs -----------------------------------------------------------------------------------------------------------


def api_name(key: int, release: str | None = None) -> str | None:
    """What ``release`` calls an API, or Kafka today; None for a key that no schema has."""
    for former, since in _FORMER_API_NAMES.get(key, ()):
        if _before(release, since):
            return former
    return schema.api_keys().get(key)


def api_key(name: str) -> int:
    """The key of an API by a name of any time.

    Raises ``UnsupportedVersionError`` for one that Kafka has not given.
    """
    for key, names in _FORMER_API_NAMES.items():
        if any(name == former for former, _ in names):
            return key
    return versions.api_key(name)


# --- fields ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    fields: dict[str, str] = {}
    for line in builtin_root().joinpath("names.txt").read_bytes().decode().splitlines():
        if line.startswith("  "):
            path, name = line.split()
            fields[path] = name
        elif line and not line.startswith("#"):
            fields = found[line] = {}
    return found


def field_names(message: str) -> Mapping[str, str]:
    """Path of a field -> its name in 0.10.1, where that is another one (``{"topic_data.records": "record_set"}``)."""
    return dict(_table().get(message, {}))


def to_dict(message: WireMessage, version: int) -> dict[str, Any]:
    """``message.to_dict(version)`` with the names that fields had in 0.10.1.

    It holds passwords and tokens, as ``to_dict`` does. Raises ``UnsupportedVersionError`` for a version that 0.10.1
    does not have.
    """
    name, key = message.SCHEMA.name, message.SCHEMA.api_key
    known = NO_VERSIONS if key is None else versions.accepted(RELEASE).get(key, NO_VERSIONS)
    if version not in known:
        raise UnsupportedVersionError(f"{RELEASE} has versions {known}, not {version}", layout=name)
    made = _renamed(message.to_dict(version), "", _table().get(name, {}))
    assert isinstance(made, dict)
    return made


def _renamed(value: Any, path: str, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(one, path, names) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        names.get(f"{path}{name}", name): _renamed(one, f"{path}{name}.", names) if isinstance(name, str) else one
        for name, one in value.items()
    }


def from_dict(cls: type[M], values: Mapping[str, Any]) -> M:
    """The message of a dictionary in which fields have the names of 0.10.1, or those of today.

    Raises ``EncodeError`` for a name that is neither, and for a field that is given under both.
    """
    name = cls.SCHEMA.name
    return cls.from_dict(_restored(values, "", _table().get(name, {}), name))


def _restored(value: Any, path: str, names: Mapping[str, str], layout: str) -> Any:
    if isinstance(value, list | tuple):
        return [_restored(one, path, names, layout) for one in value]
    if not isinstance(value, Mapping):
        return value
    made: dict[Any, Any] = {}
    inside = {now.removeprefix(path): then for now, then in names.items() if now.startswith(path)}
    today = {then: now for now, then in inside.items() if "." not in now}
    for name, one in value.items():
        now = today.get(name, name)
        if now in made:
            raise EncodeError(f"given as {name!r} and as {now!r}", layout=layout, path=f"$.{path}{now}")
        made[now] = _restored(one, f"{path}{now}.", names, layout) if isinstance(now, str) else one
    return made
