"""Which clients an upgrade of the brokers breaks: what ``kwire audit`` and ``kwire.spark.audit`` say.

Strategy: a client is what comes from one host with the same client_ids and software. Its connections say which APIs it
uses in which versions; ``kwire.versions`` says which of those brokers of a release serve. What else it could use
follows from the broker's announcement. A client takes the newest version that both have. So a client that took an older
one than the broker's newest has no newer one.

Rules kept here:

- A client is only cleared for what was seen: APIs that it did not use in the capture are not judged.
- Where the traffic cannot show it, the verdict is ``unknown`` and says why. Reasons are encrypted connections, or an
  old version that was the newest of an old broker.
- Brokers that talk to each other are clients too, but they are upgraded with the cluster: they are listed, not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire import schema, versions
from kwire.naming import joined
from kwire.report import DEFAULT_TARGET
from kwire.report.sums import ROWS_AT_ONCE, dicts, runs
from kwire.schema.keys import ApiKey
from kwire.schema.model import NO_VERSIONS
from kwire.tables import showing
from kwire.tables.connections import APIS
from kwire.tables.frames import OF_BROKERS
from kwire.tables.showing import Column

__all__ = [
    "CONNECTIONS",
    "OF_BROKERS",
    "RECORDS",
    "SCHEMA",
    "SHOWN",
    "VERDICTS",
    "Audit",
    "Auditor",
    "Client",
    "Use",
    "of_tables",
    "summary",
]

CONNECTIONS: Final = (
    "capture", "connection", "client_host", "client_ids", "software_name", "software_version", "apis", "broker_apis",
    "requests", "status",
)  # fmt: skip
"""The columns of the table ``connections`` that are read."""
RECORDS: Final = ("capture", "connection", "source", "magic", "compression", "status")
"""Those of the table ``records``."""

VERDICTS: Final = {
    "breaks": "brokers of the target release refuse something that the client does",
    "unknown": "the capture does not tell whether it would work",
    "works": "brokers of the target release serve all that the client was seen to use",
    "broker": "a broker or controller: it is upgraded with the others",
}
"""What each verdict means, the worst first."""

_FORMATS: Final = pa.list_(
    pa.field(
        "element",
        pa.struct(
            [
                pa.field("source", pa.string()),
                pa.field("magic", pa.int8()),
                pa.field("compression", pa.string()),
                pa.field("records", pa.int64()),
            ]
        ),
    )
)
_USED: Final = pa.list_(pa.field("element", pa.struct([*APIS.value_type, pa.field("served", pa.string())])))
_TEXTS: Final = pa.list_(pa.field("element", pa.string()))

SCHEMA: Final = pa.schema(
    [
        pa.field("client_host", pa.string(), nullable=False),
        pa.field("client_ids", _TEXTS, nullable=False),
        pa.field("software_name", pa.string()),
        pa.field("software_version", pa.string()),
        pa.field("connections", pa.int64(), nullable=False),
        pa.field("requests", pa.int64(), nullable=False),
        pa.field("negotiates", pa.bool_(), nullable=False),
        pa.field("apis", _USED, nullable=False),
        pa.field("formats", _FORMATS, nullable=False),
        pa.field("target", pa.string(), nullable=False),
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("reasons", _TEXTS, nullable=False),
        pa.field("advice", pa.string()),
    ]
)
"""One row per client.

``negotiates``: it asks brokers for their versions (ApiVersions). ``apis``: what it used, and in ``served`` what the
target release serves of that API (null: nothing).
"""

_BROKERS_ONLY: Final = frozenset(
    (
        ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH,
        ApiKey.ALTER_PARTITION, ApiKey.ENVELOPE, ApiKey.FETCH_SNAPSHOT, ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT, ApiKey.ALLOCATE_PRODUCER_IDS, ApiKey.CONTROLLER_REGISTRATION,
    )
)  # fmt: skip
"""APIs that brokers and controllers use among themselves."""

_JAVA: Final = "apache-kafka-java"
_MOST_REASONS: Final = 20
_MOST_SHARED: Final = 1 << 12
_NONE: Final[Mapping[Any, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Use:
    """An API in a version, as a client used it.

    ``served``: the versions that the target release serves, as text.
    """

    api_key: int
    api_version: int
    requests: int
    served: str | None

    @property
    def api_name(self) -> str:
        """Its name, or its number where kwire does not know it."""
        return schema.api_keys().get(self.api_key, str(self.api_key))


@dataclass(slots=True)
class Client:
    """What is known of a client, and the verdict."""

    host: str
    client_ids: tuple[str | None, ...]
    software_name: str | None
    software_version: str | None
    connections: int = 0
    requests: int = 0
    encrypted: int = 0
    """Connections whose bytes could not be read."""
    uses: Sequence[Use] = ()
    formats: Mapping[tuple[str, int, str | None], int] = field(default_factory=lambda: _NONE)
    """Records by (``produce`` or ``fetch``, magic, compression)."""
    verdict: str = "unknown"
    reasons: Sequence[str] = ()
    advice: str | None = None

    @property
    def negotiates(self) -> bool:
        """Whether it asks brokers for their versions."""
        return any(use.api_key == ApiKey.API_VERSIONS for use in self.uses)

    def row(self, target: str) -> dict[str, Any]:
        """The client as a row of ``SCHEMA``."""
        return {
            "client_host": self.host,
            "client_ids": list(self.client_ids),
            "software_name": self.software_name,
            "software_version": self.software_version,
            "connections": self.connections,
            "requests": self.requests,
            "negotiates": self.negotiates,
            "apis": [
                {
                    "api_key": use.api_key,
                    "api_name": schema.api_keys().get(use.api_key),
                    "api_version": use.api_version,
                    "requests": use.requests,
                    "served": use.served,
                }
                for use in self.uses
            ],
            "formats": [
                {"source": source, "magic": magic, "compression": codec, "records": count}
                for (source, magic, codec), count in sorted(self.formats.items(), key=str)
            ],
            "target": target,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "advice": self.advice,
        }


@dataclass(frozen=True, slots=True)
class Audit:
    """The clients of some captures, the worst first, against one release."""

    target: str
    clients: list[Client]

    @property
    def breaks(self) -> bool:
        """Whether something would break."""
        return any(client.verdict == "breaks" for client in self.clients)

    def rows(self) -> list[dict[str, Any]]:
        """The clients as rows of ``SCHEMA``."""
        return [client.row(self.target) for client in self.clients]

    def batch(self) -> pa.RecordBatch:
        """The same as Arrow data."""
        return self.batch_of(self.clients)

    def batch_of(self, clients: Sequence[Client]) -> pa.RecordBatch:
        """Some of the clients. Rows are objects for a thousand of them at a time."""
        parts = [
            pa.RecordBatch.from_pylist([one.row(self.target) for one in clients[first : first + ROWS_AT_ONCE]], SCHEMA)
            for first in range(0, max(len(clients), 1), ROWS_AT_ONCE)
        ]
        return pa.concat_batches(parts)

    def counts(self) -> dict[str, int]:
        """How many clients have each verdict, the worst first."""
        return {word: sum(one.verdict == word for one in self.clients) for word in VERDICTS}


@dataclass(slots=True)
class _Seen:
    """A client while its connections are added up."""

    client: Client
    uses: tuple[tuple[int, int, int], ...] = ()
    """API key, version, requests. Most clients do what others do, so these are shared."""
    limited: tuple[tuple[int, int], ...] = ()
    """API keys, and the newest version of each that any broker announced to it."""


_T = TypeVar("_T")
_Key = tuple[str, tuple[str | None, ...], str | None, str | None]


class Auditor:
    """Takes batches of the tables ``connections`` and ``records``, in any order, and gives an ``Audit``.

    ``target`` is a release of Kafka (``4.0``, ``3.9``). Raises ``UnsupportedVersionError`` for an unknown one.

    It keeps a client for each host, client_ids and software, and until ``result`` the formats of each connection.
    """

    def __init__(self, target: str = DEFAULT_TARGET) -> None:
        self.target: str = versions.release_name(target)
        self._accepted = versions.accepted(self.target)
        self._seen: dict[_Key, _Seen] = {}
        self._of: dict[str, dict[int, _Seen]] = {}
        """By capture and connection."""
        self.formats: Counter[tuple[str, int, str | None]] = Counter()
        """Records by source, magic and compression."""
        self._formats: dict[tuple[str, int], dict[tuple[str, int, str | None], int]] = {}
        self._shared: dict[Any, Any] = {}

    def add_connections(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Take rows of ``connections`` that have the columns ``CONNECTIONS``."""
        for row in dicts(pa.table(batch.select(list(CONNECTIONS)))):
            self._add(row)

    def add_records(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Take rows of ``records`` that have the columns ``RECORDS``."""
        table = pa.table(batch.select(list(RECORDS))) if isinstance(batch, pa.RecordBatch) else batch
        # Records of a batch are alike: what is the same is counted by its length.
        keys = ["capture", "connection", "source", "magic", "compression"]
        first = runs(table, [*keys, "status"])
        length = np.diff(np.append(first, table.num_rows))
        table = table.take(pa.array(first)).append_column("length", pa.array(length))
        known = table.filter(pc.and_(pc.is_valid(table["magic"]), pc.equal(table["status"], "ok")))
        counted = known.group_by(keys, use_threads=False).aggregate([("length", "sum")])
        for row in dicts(counted):
            form = (row["source"], row["magic"], row["compression"])
            self.add_format((row["capture"], row["connection"]), *form, row["length_sum"])

    def add_format(
        self, connection: tuple[str, int], source: str, magic: int, compression: str | None, records: int
    ) -> None:
        """Take a number of records of one format, of the connection with this capture and number."""
        self.formats[source, magic, compression] += records
        of = self._formats.setdefault(connection, {})
        form = (source, magic, compression)
        of[form] = of.get(form, 0) + records

    def _add(self, row: Mapping[str, Any]) -> None:
        if row["status"] == "encrypted":
            key: _Key = (row["client_host"], (), None, None)
        elif row["status"] != "ok" or not row["requests"]:
            return
        else:
            ids = tuple(sorted(row["client_ids"], key=lambda one: (one is None, one)))
            key = (row["client_host"], ids, row["software_name"], row["software_version"])
        seen = self._seen.get(key)
        if seen is None:
            seen = self._seen[key] = _Seen(Client(*key))
        seen.client.connections += 1
        seen.client.requests += row["requests"]
        seen.client.encrypted += row["status"] == "encrypted"
        self._of.setdefault(row["capture"], {})[row["connection"]] = seen
        uses = {(api, version): requests for api, version, requests in seen.uses}
        for use in row["apis"]:
            if use["api_key"] is not None:
                pair = (use["api_key"], use["api_version"])
                uses[pair] = uses.get(pair, 0) + use["requests"]
        seen.uses = self._share(tuple((*pair, count) for pair, count in sorted(uses.items())))
        if row["broker_apis"]:
            limited = dict(seen.limited)
            for one in row["broker_apis"]:
                limited[one["api_key"]] = max(limited.get(one["api_key"], -1), one["max_version"])
            seen.limited = self._share(tuple(sorted(limited.items())))

    def _share(self, value: _T) -> _T:
        """The value, as one object for all clients that have it."""
        if len(self._shared) >= _MOST_SHARED:
            self._shared.clear()
        found: _T = self._shared.setdefault(value, value)
        return found

    def result(self) -> Audit:
        """The verdicts on what was added so far."""
        for (capture, connection), formats in self._formats.items():
            seen = self._of.get(capture, {}).get(connection)
            if seen is not None:
                client = seen.client
                client.formats = dict(Counter(client.formats) + Counter(formats))
        self._formats.clear()
        made = [self._judged(one) for one in self._seen.values()]
        order = list(VERDICTS)
        # One after the other, the last first: there may be very many. A tuple for each takes as much memory as it does.
        made.sort(key=lambda one: str(one.client_ids))
        made.sort(key=lambda one: one.host)
        made.sort(key=lambda one: -one.requests)
        made.sort(key=lambda one: order.index(one.verdict))
        return Audit(self.target, made)

    # -- verdicts

    def _judged(self, seen: _Seen) -> Client:
        client = seen.client
        client.uses = self._uses(seen.uses)
        client.reasons, client.advice = (), None
        if any(use.api_key in _BROKERS_ONLY for use in client.uses) or any(
            one is not None and OF_BROKERS.fullmatch(one) for one in client.client_ids
        ):
            client.verdict = "broker"
            return client
        refused: list[Use] = []
        limited: list[Use] = []
        for use in client.uses:
            served = self._accepted.get(use.api_key, NO_VERSIONS)
            # Brokers answer any version of ApiVersions in one that they have (KIP-511).
            if use.api_key == ApiKey.API_VERSIONS or use.api_version in served:
                continue
            if served and use.api_version > served.high and client.negotiates:
                continue  # of brokers that say so, it takes an older one
            (limited if self._may_do_better(use, client, seen) else refused).append(use)
        reasons = [self._said(use) for use in refused[:_MOST_REASONS]]
        old = sorted({magic for source, magic, _ in client.formats if source == "produce" and magic < _MAGIC})
        if old and self._takes_batches_only:
            reasons.append(
                f"it sends records in format {joined(f'v{magic}' for magic in old)}: {self.target} takes v2 only"
            )
        if reasons:
            client.reasons, client.verdict = reasons, "breaks"
            client.advice = self._advice(client, refused)
        elif limited:
            client.verdict = "unknown"
            client.reasons = [
                f"{self._said(use)}{', but the broker had no newer one' if use.served else ''}"
                for use in limited[:_MOST_REASONS]
            ]
            needed = self._needed(limited)
            client.advice = f"capture it at a broker that serves {needed}" if needed else "see what it does without"
        elif client.encrypted:
            client.verdict = "unknown"
            client.reasons = [f"{client.encrypted} connections over TLS were not decrypted"]
            client.advice = "give a key log (--keylog)"
        else:
            client.verdict = "works"
        return client

    @property
    def _takes_batches_only(self) -> bool:
        """Whether brokers of the target refuse message sets: those of 4.x do (KIP-724)."""
        return self._accepted[ApiKey.PRODUCE].low >= _BATCHES

    def _served(self, api: int) -> str | None:
        found = self._accepted.get(api, NO_VERSIONS)
        return str(found) if found else None

    def _uses(self, uses: tuple[tuple[int, int, int], ...]) -> Sequence[Use]:
        return self._share(tuple(Use(api, version, count, self._served(api)) for api, version, count in uses))

    def _may_do_better(self, use: Use, client: Client, seen: _Seen) -> bool:
        """Whether a client that asks brokers may use another version with those of the target."""
        served = self._accepted.get(use.api_key, NO_VERSIONS)
        if not client.negotiates or not served:
            # An API that is newer than the target: a client that asks knows that it is not there.
            return client.negotiates and self._is_newer(use)
        newest = dict(seen.limited).get(use.api_key)
        # What the target refuses as too old was the broker's newest, or else the client has none that is newer.
        return newest is None or newest <= use.api_version

    def _is_newer(self, use: Use) -> bool:
        """Whether only releases after the target serve this API."""
        names = versions.releases()
        after = names[names.index(self.target) + 1 :]
        return any(use.api_key in versions.accepted(name) for name in after)

    def _said(self, use: Use) -> str:
        served = f"serves v{use.served}" if use.served else "does not have this API"
        return f"{use.api_name} v{use.api_version} ({use.requests}): {self.target} {served}"

    def _needed(self, uses: Iterable[Use]) -> str:
        return ", ".join(
            f"{use.api_name} v{self._accepted[use.api_key].low}+" for use in uses if use.api_key in self._accepted
        )

    def _advice(self, client: Client, refused: list[Use]) -> str:
        if client.software_name == _JAVA and self._takes_batches_only:
            return "upgrade the Java client to 2.1 or later (KIP-896)"
        gone = sorted({use.api_name for use in refused if use.served is None})
        since = self._since(refused)
        if since is None and not gone:
            since = "0.11"  # the first with record batches
        said = [f"do without {', '.join(gone)}"] if gone else []
        if since:
            said.append(
                f"where its version is pinned ({_PINS}), let it ask the brokers; else upgrade to a client that speaks "
                f"Kafka {since} or later"
            )
        return "; ".join(said)

    def _since(self, refused: Iterable[Use]) -> str | None:
        """The first release that has a version of each of these APIs that the target serves."""
        names = versions.releases()
        latest = -1
        for use in refused:
            served = self._accepted.get(use.api_key)
            if served is None:
                continue
            first = next(
                k for k, name in enumerate(names) if served & versions.accepted(name).get(use.api_key, NO_VERSIONS)
            )
            latest = max(latest, first)
        return names[latest] if latest >= 0 else None


_PINS: Final = "api_version, broker.version.fallback, api.version.request=false"
_MAGIC: Final = 2
_BATCHES: Final = 3
"""Produce takes record batches only from this version on."""


def of_tables(tables: Iterable[tuple[str, pa.RecordBatch]], target: str = DEFAULT_TARGET) -> Audit:
    """The audit of pairs of a table's name and a batch, as ``kwire.capture.read(tables=...)`` gives them."""
    auditor = Auditor(target)
    for name, batch in tables:
        if name == "connections":
            auditor.add_connections(batch)
        elif name == "records":
            auditor.add_records(batch)
    return auditor.result()


# --- what a person is shown -------------------------------------------------------------------------------------------


def _formats(row: showing.Row) -> str:
    said = dict.fromkeys(
        f"v{one['magic']} {one['compression'] or '?'}" for one in row["formats"] if one["source"] == "produce"
    )
    return ", ".join(said) or "-"


def _reasons(row: showing.Row) -> str:
    return showing.readable("; ".join(row["reasons"]), showing.SAID) or "-"


SHOWN: Final = (
    Column("verdict", showing.plain("verdict")),
    Column("client", showing.plain("client_host"), shrink=9, wrap=True),
    Column("client_ids", showing.client_ids, shrink=10, wrap=True),
    Column("software", showing.texts("software_name", "software_version"), shrink=8, wrap=True),
    Column("requests", showing.plain("requests"), right=True),
    Column("sends", _formats, shrink=7, wrap=True),
    Column("why", _reasons, shrink=36, wrap=True),
    Column("what to do", showing.said("advice"), shrink=30, wrap=True),
)
"""The columns of a terminal and of a page."""


def summary(audit: Audit) -> list[str]:
    """What an audit says, in a few sentences."""
    counts = audit.counts()
    said = ", ".join(f"{count} {_PLURALS[word]}" for word, count in counts.items() if count)
    return [f"Brokers of Kafka {audit.target}: {said or 'no client was seen'}."]


_PLURALS: Final = {"breaks": "would break", "unknown": "unknown", "works": "would work", "broker": "brokers"}
