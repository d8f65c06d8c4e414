"""Rules about errors that brokers answer with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.report.findings.rule import CLIENT, Finding, Rule
from kwire.report.sums import tuples
from kwire.report.tallies import Array, Rows, Tally

__all__ = ["Denied", "Errors", "Fenced", "Limits", "Repeated", "StaleLeaders"]


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding. Rates are per minute of the capture's clock."""

    stale_leaders: int = 20
    """Errors of one client that tell it to look for the leader."""
    fenced: int = 1
    """Errors that tell a producer that another one has taken over, or that it is not known."""
    denials: int = 1
    """Requests that were refused for want of authorization."""
    repeated_errors: int = 20
    """The same error, of one client and API."""


class Errors(Rule[Limits]):
    """Errors in responses: what clients are told, by kind."""

    tables = ("frames",)
    keys: tuple[str, ...] = (*CLIENT, "api_name", "error")
    errors: frozenset[str] = frozenset()

    def take(self, name: str, rows: Rows) -> None:
        told = rows.errors
        if not told.table.num_rows:
            return
        # How a client finds out which versions there are (KIP-511): it asks once more, and no harm is done.
        asked = told.mask("api_name", "ApiVersions") & told.mask("error", "UNSUPPORTED_VERSION")
        self.tallies.add(told, np.flatnonzero(self.wanted(told) & ~asked))

    def wanted(self, rows: Rows) -> Array:
        """Which of these errors this rule is about."""
        return rows.mask("error", tuple(sorted(self.errors)))

    def enough(self) -> int:
        """How many are a finding."""
        raise NotImplementedError

    def findings(self) -> Iterator[Finding]:
        for (host, client, api, error), one in self.tallies.items(self.tallies.totals().count >= self.enough()):
            yield self.found(f"{error} in {one.count} {api} responses", one, client_host=host, client_id=client)


class StaleLeaders(Errors):
    """A client goes on asking brokers that do not lead the partition."""

    name = "stale-leaders"
    advice = "see whether leaders change all the time, and whether the client refreshes its metadata after such errors"
    errors = frozenset(
        ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "LEADER_NOT_AVAILABLE")
    )

    def wanted(self, rows: Rows) -> Array:
        # Members of a quorum find out so who leads it.
        of_quorum = pc.fill_null(pc.starts_with(rows.table["client_id"].cast(pa.string()), "raft-client-"), False)
        return super().wanted(rows) & ~of_quorum.to_numpy()

    def enough(self) -> int:
        return self.limits.stale_leaders


class Fenced(Errors):
    """A producer was told that another has taken its place, or that it is not known."""

    name = "fenced-producers"
    severity = "high"
    advice = "give each running producer its own transactional.id; a zombie of an earlier one has to stop"
    errors = frozenset(
        ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "UNKNOWN_PRODUCER_ID", "INVALID_PRODUCER_ID_MAPPING",
         "TRANSACTION_COORDINATOR_FENCED", "TRANSACTIONAL_ID_NOT_FOUND")
    )  # fmt: skip

    def enough(self) -> int:
        return self.limits.fenced


class Denied(Errors):
    """Requests that were refused for want of authorization, by principal where secrets are shown."""

    name = "denials"
    also = ("connections",)
    # Apart by connection, since its principal is known when it ends.
    keys: tuple[str, ...] = ("capture", "connection", *CLIENT, "api_name", "error")
    severity = "high"
    advice = "grant what the client needs (ACLs), or stop it from asking"
    errors = frozenset(
        ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED",
         "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "DELEGATION_TOKEN_AUTHORIZATION_FAILED")
    )  # fmt: skip

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._principals: dict[tuple[str, int], str] = {}

    def take(self, name: str, rows: Rows) -> None:
        if name == "frames":
            told = rows.errors
            self.tallies.add(told, np.flatnonzero(self.wanted(told)), each=True)
            return
        known = np.flatnonzero(rows.valid("principal"))
        for capture, connection, principal in tuples(rows.part(("capture", "connection", "principal"), known)):
            self._principals[capture, connection] = principal

    def enough(self) -> int:
        return self.limits.denials

    def findings(self) -> Iterator[Finding]:
        together: dict[tuple[Any, ...], Tally] = {}
        for (capture, connection, *key), one in self.tallies.items():
            together.setdefault((*key, self._principals.get((capture, connection))), Tally()).join(one)
        for (host, client, api, error, principal), one in together.items():
            if one.count >= self.enough():
                said = f"{error} in {one.count} {api} responses"
                yield self.found(said, one, client_host=host, client_id=client, principal=principal)


class Repeated(Errors):
    """The same error over and over, of those that no other rule is about."""

    name = "repeated-errors"
    advice = "see what the error means for this request, and why the client does not change what it does"
    _OTHERS = StaleLeaders.errors | Fenced.errors | Denied.errors | {"MESSAGE_TOO_LARGE", "SASL_AUTHENTICATION_FAILED"}

    def wanted(self, rows: Rows) -> Array:
        return ~rows.mask("error", tuple(sorted(self._OTHERS)))

    def enough(self) -> int:
        return self.limits.repeated_errors
