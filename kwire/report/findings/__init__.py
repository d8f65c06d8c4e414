"""What goes wrong in the traffic, with evidence: what ``kwire findings`` says.

Strategy: a rule reads some columns of some tables, batch by batch. It adds up what it needs by client, group or topic
(``kwire.report.tallies``, which keeps columns). At the end it says what it found. What is done for single rows in
Python is little. Rules stand by family in the modules of this package. What counts as too much stands beside them, in
``Limits``. Each limit has a default that the traffic of clients in their default settings does not reach.

Rules kept here:

- A finding says who it concerns, how often, where to look (frames by number) and what to change.
- Sums are kept, not rows: memory grows with the number of clients, groups and partitions, not with the traffic.
- What the capture does not show is not guessed: a rule that needs a request and its response has seen both.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kwire.naming import counted, no_such, public
from kwire.records.arrow_types import TIMESTAMP
from kwire.report.findings import (
    brokers,
    clients,
    consuming,
    errors,
    groups,
    histories,
    offsets,
    producing,
    resent,
    sessions,
    transactions,
    values,
)
from kwire.report.findings.committed import Committed
from kwire.report.findings.rule import COLUMNS, SCHEMA, SEVERITIES, Finding, Rule, rules_of
from kwire.report.findings.values import OF_VALUES
from kwire.report.sums import tuples
from kwire.report.tallies import Rows, rows_of
from kwire.tables import showing
from kwire.tables.showing import Column

if TYPE_CHECKING:
    from kwire.values import Schemas

__all__ = [
    "COLUMNS", "OF_VALUES", "RULES", "SCHEMA", "SEVERITIES", "Finder", "Finding", "Thresholds",
    "batch_of", "needed", "shown", "summary", "who",
]  # fmt: skip


@dataclass(frozen=True)
class Thresholds(
    producing.Limits,
    clients.Limits,
    groups.Limits,
    histories.Limits,
    consuming.Limits,
    offsets.Limits,
    errors.Limits,
    brokers.Limits,
    resent.Limits,
    sessions.Limits,
    transactions.Limits,
    values.Limits,
):
    """From where on something is a finding: the ``Limits`` of all families.

    Rates are per minute of the capture's clock.
    """

    @classmethod
    def of(cls, changes: Iterable[str], rules: Iterable[str] | None = None) -> Thresholds:
        """The defaults with some changes, such as ``lag=500``.

        Raises ``ValueError`` for what is none, and for a threshold that none of ``rules`` (None: all) has.
        """
        used = {name for rule in _chosen(rules) for name in rule.thresholds}
        types: dict[str, type[int | float]] = {one.name: type(getattr(cls(), one.name)) for one in fields(cls)}
        values: dict[str, Any] = {}
        for change in changes:
            name, equals, text = change.partition("=")
            if not equals or name not in types:
                if name not in types:
                    raise ValueError(no_such("threshold", name, types))
                raise ValueError(f"{name!r} needs a number: {name}=N")
            if name not in used:
                whose = ", ".join(rule.name for rule in RULES.values() if name in rule.thresholds)
                raise ValueError(f"the threshold {name!r} is for {whose}, which is not looked for")
            try:
                values[name] = types[name](text)
            except ValueError:
                raise ValueError(f"{name}: {text!r} is no number") from None
            if not values[name] >= 0:
                raise ValueError(f"{name}: {text!r} is {'less than 0' if values[name] < 0 else 'no number'}")
        return cls(**values)


FAMILIES: Final = (
    producing, clients, groups, histories, consuming, offsets, errors, brokers, resent, sessions, transactions,
    values,
)  # fmt: skip
"""The modules of rules: a rule is in use once its class stands in one of them."""

RULES: Final[dict[str, type[Rule[Any]]]] = {
    rule.name: rule
    for rule in sorted((one for family in FAMILIES for one in rules_of(family)), key=lambda one: one.place)
}
"""The rules, by name; findings of one severity stand in their order."""


_AROUND: Final = 60_000_000
"""Microseconds before and after a cause in which what follows from it may be."""
_MOST_NAMED: Final = 1 << 16
"""Connections whose software is remembered."""


def needed(rules: Iterable[str] | None = None, *, also: bool = True, schemas: bool = False) -> dict[str, Sequence[str]]:
    """The tables that rules (None: all) read, with their columns; ``also``: those too that only tell more.

    ``schemas``: there are sources of schemas, so that rules about values can be looked for. Raises ``ValueError`` for
    an unknown rule, and for one about values that is named although there are none.
    """
    chosen = _chosen(rules)
    if rules is not None and not schemas and (of_values := [rule.name for rule in chosen if rule.of_values]):
        raise ValueError(f"the rule {of_values[0]} needs the schemas of values: give their sources (--values)")
    chosen = [rule for rule in chosen if schemas or not rule.of_values]
    wanted = {name for rule in chosen for name in (*rule.tables, *(rule.also if also else ()))}
    made = {name: columns for name, columns in COLUMNS.items() if name in wanted}
    if any(rule.of_values for rule in chosen):
        made["records"] = (*made["records"], *OF_VALUES)
    return made


def _chosen(rules: Iterable[str] | None) -> list[type[Rule[Any]]]:
    names = list(RULES) if rules is None else list(rules)
    for name in names:
        if name not in RULES:
            raise ValueError(no_such("rule", name, RULES))
    return [RULES[name] for name in names]


def _kept(one: object, deep: int = 4) -> int:
    if isinstance(kept := getattr(one, "kept", None), int):
        return kept
    if not deep or isinstance(one, str | bytes):
        return 0
    if isinstance(one, Mapping):
        return len(one) + sum(_kept(value, deep - 1) for value in one.values())
    if isinstance(one, Sequence | Set | deque):
        return len(one) + sum(_kept(value, deep - 1) for value in one)
    return sum(_kept(value, deep - 1) for value in getattr(one, "__dict__", {}).values())


class Finder:
    """Takes batches of the tables that ``needed`` names, in the order of each capture, and gives findings.

    ``schemas``: the sources of schemas that the columns of values were made with, for rules about values.

    Raises ``ValueError`` for a rule that does not exist, and for ``thresholds`` that are none.
    """

    def __init__(
        self,
        rules: Iterable[str] | None = None,
        thresholds: Thresholds | None = None,
        schemas: Schemas | None = None,
    ) -> None:
        limits = Thresholds() if thresholds is None else thresholds
        if not isinstance(limits, Thresholds):
            raise ValueError(f"not {limits!r}: thresholds is kwire.report.findings.Thresholds")
        self._rules = [rule(limits) for rule in _chosen(rules)]
        self._by_process = any(rule.by_process for rule in self._rules)
        self._software: dict[tuple[str, int], str] = {}
        """Of connections: what clients call themselves."""
        commits = Committed()
        for rule in self._rules:
            if isinstance(rule, offsets.Offsets):
                rule.commits = commits
            elif isinstance(rule, values.Breaking):
                rule.schemas = schemas
            elif isinstance(rule, errors.Repeated):
                rule.others = frozenset().union(*(one.errors for one in RULES.values()))

    def lags(self) -> Iterator[tuple[str, str | None, int | None, int]]:
        """How far the last commits of groups are from the end of the log, where both are known.

        The columns are group, topic, partition, records.
        """
        for rule in self._rules:
            if isinstance(rule, offsets.Lag):
                yield from rule.lags()

    def newest(self) -> dict[tuple[str | None, int | None], int]:
        """The end of each topic and partition, as far as it is known."""
        return next((rule.newest for rule in self._rules if isinstance(rule, offsets.Lag)), {})

    def add(self, name: str, batch: pa.RecordBatch) -> None:
        """Take rows of the table ``name``; texts may be dictionaries."""
        self.add_rows(name, rows_of(name, [batch]))

    def add_rows(self, name: str, rows: Rows) -> None:
        """The same of several batches at once."""
        if name == "connections" and self._by_process:
            self._take_software(rows)
        for rule in self._rules:
            if name in rule.tables or name in rule.also:
                rule.take(name, rows)

    def kept(self) -> int:
        """How many things the rules remember, about: keys, rows and waiting rows."""
        return _kept(self._rules)

    def _take_software(self, rows: Rows) -> None:
        columns = ("capture", "connection", "software_name", "software_version")
        for capture, connection, *software in tuples(rows.part(columns, np.flatnonzero(rows.valid("software_name")))):
            if len(self._software) < _MOST_NAMED:
                self._software[capture, connection] = " ".join(filter(None, software))

    def result(self) -> list[Finding]:
        """What was found so far, the worst first."""
        found = _without_explained([one for rule in self._rules for one in rule.findings()])
        for one in found:
            if one.process is not None:
                one.software = self._software.get(one.process)
        order = list(RULES)
        found.sort(key=lambda one: (SEVERITIES.index(one.severity), order.index(one.rule), -one.count))
        return found


def _without_explained(found: list[Finding]) -> list[Finding]:
    """Findings without those whose cause another one names.

    A finding explains what began no earlier than a minute before it, and ended no later than a minute after it, of the
    same client and topic where both name one.
    """
    causes: dict[tuple[Any, ...], list[Finding]] = {}
    for one in found:
        for rule in one.explains:
            causes.setdefault((rule, one.client_host, one.client_id), []).append(one)

    def explained(one: Finding) -> bool:
        first, last = one.busy or (one.first_seen or 0, one.last_seen or 0)
        return any(
            (one.topic == cause.topic or None in (one.topic, cause.topic))
            and first >= (cause.first_seen or 0) - _AROUND
            and last <= (cause.last_seen or 0) + _AROUND
            for cause in causes.get((one.rule, one.client_host, one.client_id), ())
        )

    return [one for one in found if not explained(one)]


def batch_of(found: Iterable[Finding]) -> pa.RecordBatch:
    """Findings as Arrow data, with the columns of ``SCHEMA``."""
    rows = [one.row() for one in found]
    columns = []
    for wanted in SCHEMA:
        values = [row[wanted.name] for row in rows]
        if pa.types.is_timestamp(wanted.type):
            columns.append(pa.array(values, pa.int64()).cast(TIMESTAMP))
        else:
            columns.append(pa.array(values, wanted.type))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def summary(found: Sequence[Finding]) -> list[str]:
    """What findings say together, in a sentence."""
    counts = Counter(one.severity for one in found)
    said = ", ".join(f"{counts[word]} {word}" for word in SEVERITIES if counts[word])
    return [f"{counted(len(found), 'finding')}: {said}." if found else "No findings."]


def _evidence(row: showing.Row, *, several: bool) -> str:
    """Some of the frames, each once. ``several``: of several captures, so that each is said."""
    said: dict[str, None] = {}
    for one in row["evidence"]:
        what = f"connection {one['connection']}" if one["frame"] is None else f"frame {one['frame']}"
        of = f" of {showing.readable(public(one['capture']).rpartition('/')[2])}" if several else ""
        said[what + of] = None
    return ", ".join(list(said)[:3]) + (", …" if len(said) > 3 else "")


def who(row: showing.Row) -> str:
    """Who a finding is about: ``app on 10.0.0.1, group billing, partition orders-3``."""
    name, host = row["client_id"], row["client_host"]
    said = [] if name is None else [showing.readable(name)]
    if host is not None:
        where = host if row["client_port"] is None else showing.host("client")(row)
        said = [f"{said[0]} on {where}" if said else where]
    for title, name in (("", "software"), ("as ", "principal"), ("group ", "group_id")):
        said += [] if row[name] is None else [title + showing.readable(row[name])]
    if row["topic"] is not None:
        title = "topic" if row["partition"] is None else "partition"
        said.append(f"{title} {showing.partition(row | {'topic_id': None})}")
    return ", ".join(said) or "-"


_SHOW: Callable[[str], Callable[[showing.Row], str]] = showing.plain


def shown(captures: int = 1) -> tuple[Column, ...]:
    """The columns of a terminal and of a page."""
    return (
        Column("severity", _SHOW("severity")),
        Column("rule", _SHOW("rule")),
        Column("who", who, shrink=16, wrap=True),
        Column("what", showing.said("summary"), shrink=36, wrap=True),
        Column("evidence", partial(_evidence, several=captures > 1), shrink=12, wrap=True),
        Column("what to change", showing.said("advice"), shrink=30, wrap=True),
    )
