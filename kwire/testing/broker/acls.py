"""Access rules in memory: they are kept, found and deleted as Kafka's authorizer does it, and hold for nobody here.

A rule is for a resource by a pattern: its name (``LITERAL``, of which ``*`` is all), or its prefix (``PREFIXED``).

Rules kept here, as Kafka's ResourcePatternFilter and AclControlManager have them:

- A filter of pattern type ``ANY``, ``LITERAL`` or ``PREFIXED`` wants the same name, and the last two the same type.
- ``MATCH`` finds all rules that hold for a resource: those of its name, those of ``*``, and those of its prefixes.
- The same rule is kept once.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.logs import RefusedError

__all__ = ["Acl", "AclFilter", "Acls", "Pattern"]

_UNKNOWN, _ANY = 0, 1
_RESOURCES: Final = range(2, 8)
_CLUSTER: Final = 4
_OPERATIONS: Final = range(2, 16)
_PERMISSIONS: Final = range(2, 4)
_MOST: Final = 4 << 20
"""Characters of all rules together."""


class Pattern(IntEnum):
    """How the name of a rule or of a filter is meant (PatternType)."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Acl(NamedTuple):
    """A rule. Numbers are those of Kafka's enums."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class AclFilter(NamedTuple):
    """What is looked for; None and 1 stand for anything."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def check(self) -> None:
        """Raises ``RefusedError`` for a number that Kafka does not know."""
        for number, known in (
            (self.resource_type, _RESOURCES),
            (self.pattern_type, range(2, 5)),
            (self.operation, _OPERATIONS),
            (self.permission_type, _PERMISSIONS),
        ):
            if number != _ANY and number not in known:
                raise RefusedError(ErrorCode.INVALID_REQUEST, "The filter has UNKNOWN elements.")

    def matches(self, acl: Acl) -> bool:
        """Whether it finds a rule."""
        return (
            self.resource_type in (_ANY, acl.resource_type)
            and self._names(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (_ANY, acl.operation)
            and self.permission_type in (_ANY, acl.permission_type)
        )

    def _names(self, acl: Acl) -> bool:
        if self.pattern_type not in (Pattern.ANY, Pattern.MATCH, acl.pattern_type):
            return False
        name = self.resource_name
        if name is None:
            return True
        if self.pattern_type != Pattern.MATCH:
            return name == acl.resource_name
        if acl.pattern_type == Pattern.LITERAL:
            return acl.resource_name in (name, "*")
        return name.startswith(acl.resource_name)


class Acls:
    """All rules of a cluster."""

    def __init__(self) -> None:
        self._kept: dict[Acl, None] = {}
        self._size = 0

    def add(self, acl: Acl) -> None:
        """Keep a rule. Raises ``RefusedError`` for one that Kafka refuses."""
        why = _wrong(acl)
        size = len(acl.resource_name) + len(acl.principal) + len(acl.host) + 64
        if not why and self._size + size > _MOST:
            why = "There are too many rules."
        if why:
            raise RefusedError(ErrorCode.INVALID_REQUEST, why)
        if acl not in self._kept:
            self._kept[acl] = None
            self._size += size

    def found(self, wanted: AclFilter) -> Iterator[Acl]:
        """The rules that a filter finds, oldest first. Raises ``RefusedError``."""
        wanted.check()
        return (one for one in list(self._kept) if wanted.matches(one))

    def remove(self, acl: Acl) -> None:
        """Forget a rule."""
        if acl in self._kept:
            del self._kept[acl]
            self._size -= len(acl.resource_name) + len(acl.principal) + len(acl.host) + 64


def _wrong(acl: Acl) -> str:
    """Why Kafka refuses to keep a rule; nothing if it does not."""
    if acl.resource_type not in _RESOURCES:
        return f"Invalid resourceType {acl.resource_type}"
    if acl.pattern_type not in (Pattern.LITERAL, Pattern.PREFIXED):
        return f"Invalid patternType {acl.pattern_type}"
    if acl.operation not in _OPERATIONS:
        return f"Invalid operation {acl.operation}"
    if acl.permission_type not in _PERMISSIONS:
        return f"Invalid permissionType {acl.permission_type}"
    if not acl.resource_name:
        return "Invalid empty resource name"
    if acl.resource_type == _CLUSTER and acl.resource_name != "kafka-cluster":
        return "The only valid name for the CLUSTER resource is kafka-cluster"
    if not all(acl.principal.partition(":")):
        return f"Could not parse principal from `{acl.principal}` (no colon is present separating the principal type)"
    return ""
