"""Rules about what is in the records: schemas that nobody knows, framings that are mixed, versions that break readers.

They need to know what values mean: sources of schemas (``--values``), and the columns ``OF_VALUES`` of ``records``.

- Keys and values are looked at alike.
- A value counts as one of a schema when the schema consumes it to its last byte. What only looks like a name of a
  schema is different in each value: a single one is no finding.
- How much is remembered has a limit: names of schemas are bytes of values, and may be anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kwire.naming import counted
from kwire.report.findings.rule import Finding, Rule, Together, keyed
from kwire.report.sums import tuples
from kwire.report.tallies import Array, Rows, Tallies, Tally, firsts

if TYPE_CHECKING:
    from kwire.values import Schemas, Written
    from kwire.values.compatible import Verdict

__all__ = ["OF_VALUES", "Breaking", "Invalid", "Limits", "MixedFramings", "NoLonger", "Unknown"]

PARTS: Final = ("value", "key")
OF_VALUES: Final = tuple(
    f"{part}_{name}"
    for part in PARTS
    for name in ("framing", "format", "schema_id", "schema_guid", "schema", "status", "error")
)
"""Columns of ``records`` (tuple of str) that these rules read besides those of ``COLUMNS``."""
_MOST: Final = 1 << 14
"""Names of schemas, and of clients, that are remembered."""
_SHOWN: Final = 3


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding."""

    unknown_values: int = 2
    """Values of a topic that name the same schema, which no source has."""
    mixed_values: int = 1
    """Values of a topic with each of two framings, or more."""
    failed_values: int = 1
    """Values of a schema that do not decode, after values of another one that do."""
    invalid_values: int = 1
    """Values that break their JSON Schema."""
    breaking_values: int = 1
    """Values of a version that breaks readers."""


class _OfValues(Rule[Limits]):
    """What the rules of this module have in common."""

    tables: tuple[str, ...] = ("records",)
    also: tuple[str, ...] = ("connections",)
    together: Together = "topic"
    of_values = True

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._known: dict[Any, None] = {}
        self._clients: dict[tuple[str, int], tuple[str, str | None]] = {}
        self._errors: dict[Any, str] = {}

    def take(self, name: str, rows: Rows) -> None:
        if name == "connections":
            columns = ("capture", "connection", "client_host", "client_id")
            at = np.arange(rows.table.num_rows)
            for capture, connection, *client in tuples(rows.part(columns, at)):
                if len(self._clients) < _MOST:
                    self._clients[capture, connection] = (client[0], client[1])
            return
        if "value_status" not in rows.table.column_names:
            return
        for part in PARTS:
            there = rows.mask("status", "ok") & rows.valid("topic", f"{part}_status")
            if there.any():
                self.take_part(part, rows, np.flatnonzero(there))

    def take_part(self, part: str, rows: Rows, at: Array) -> None:
        """Take the keys or values of some records, which are there and of a topic whose name is known."""
        raise NotImplementedError

    def keep_errors(self, part: str, rows: Rows, at: Array, columns: tuple[str, ...]) -> None:
        """Remember the first error of some rows by the part and ``columns``."""
        if len(at):
            of, names = keyed(rows, columns, at)
            texts = tuples(rows.part((f"{part}_error",), at[firsts(of)]))
            for name, (text,) in zip(names, texts, strict=True):
                self._errors.setdefault((part, *name), text or "")

    def bounded(self, rows: Rows, at: Array, columns: tuple[str, ...]) -> Array:
        """Those of some rows whose ``columns`` are remembered."""
        if not len(at):
            return at
        of, names = keyed(rows, columns, at)
        for name in names:
            if len(self._known) < _MOST:
                self._known.setdefault((columns, name))
        return at[np.array([(columns, name) in self._known for name in names])[of]]


def _parts(*names: str) -> dict[str, Tallies]:
    """Tallies of keys and of values, by columns: those of a part begin with ``_``."""
    return {part: Tallies(*(f"{part}{one}" if one[0] == "_" else one for one in names)) for part in PARTS}


class Unknown(_OfValues):
    """Values name a schema that no source has: consumers that ask the same registry cannot read them."""

    name = "unknown-schemas"
    finds = "a topic with several values that name the same schema, which no source of schemas has"
    thresholds: Mapping[str, str] = {"unknown_values": "{} of a schema"}
    place = 240
    advice = (
        "see which registry the producer writes to, and whether somebody has deleted the schema for good; give its "
        "registry as a source too"
    )

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._of = _parts("topic", "_framing", "_schema_id", "_schema_guid")
        self._by = Tallies("topic", "capture", "connection")

    def take_part(self, part: str, rows: Rows, at: Array) -> None:
        columns = ("topic", f"{part}_framing", f"{part}_schema_id", f"{part}_schema_guid")
        at = self.bounded(rows, at[rows.mask(f"{part}_status", "unknown_schema")[at]], columns)
        self._of[part].add(rows, at)
        written = at[rows.mask("source", "produce")[at]]
        self._by.add(rows, self.bounded(rows, written, ("topic", "capture", "connection")))

    def findings(self) -> Iterator[Finding]:
        writers: dict[str, dict[str, None]] = {}
        for (topic, capture, connection), _ in self._by.items():
            if (client := self._clients.get((capture, connection))) is not None:
                writers.setdefault(topic, {})[_client(*client)] = None
        for part, tallies in self._of.items():
            found: dict[str, tuple[Tally, list[str]]] = {}
            much = tallies.totals().count >= self.limits.unknown_values
            for (topic, framing, id_, guid), one in tallies.items(much):
                tally, names = found.setdefault(topic, (Tally(), []))
                tally.join(one)
                names.append(f"{_named(framing, id_, guid)} ({one.count})")
            for topic, (tally, names) in found.items():
                said = f"{counted(tally.count, part)} of a schema that no source has: {_some(names)}"
                if topic in writers:
                    said += f"; written by {_some(list(writers[topic]))}"
                yield self.found(said, tally, topic=topic)


class MixedFramings(_OfValues):
    """Values of a topic name their schemas in several ways: most consumers know one of them."""

    name = "mixed-framings"
    finds = "a topic whose values, or keys, name their schemas in several ways, or some of them in none"
    thresholds: Mapping[str, str] = {"mixed_values": "{} of each"}
    place = 245
    advice = "let all producers of a topic use the same serializer, with the same settings"

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._of = _parts("topic", "_framing")

    def take_part(self, part: str, rows: Rows, at: Array) -> None:
        self._of[part].add(rows, at[rows.mask(f"{part}_status", "ok")[at]])

    def findings(self) -> Iterator[Finding]:
        for part, tallies in self._of.items():
            found: dict[str, list[tuple[str, Tally]]] = {}
            for (topic, framing), one in tallies.items(tallies.totals().count >= self.limits.mixed_values):
                found.setdefault(topic, []).append((framing, one))
            for topic, several in found.items():
                if len(several) < 2:
                    continue
                several.sort(key=lambda one: -one[1].count)
                tally = Tally()
                for _, one in several[1:]:
                    tally.join(one)
                names = ", ".join(f"{framing} ({one.count})" for framing, one in several)
                yield self.found(f"{part}s with {len(several)} framings: {names}", tally, topic=topic)


_Claim = tuple[str | None, int | None, str | None, str | None]
"""Framing, id, GUID, and what the schema is called."""


class NoLonger(_OfValues):
    """Values do not decode since a producer began to write another schema, while those before do."""

    name = "no-longer-decodes"
    finds = (
        "values that do not decode since a producer began to write them with another schema or framing, while values "
        "before it do; by topic and producer"
    )
    thresholds: Mapping[str, str] = {"failed_values": "{}"}
    place = 75
    severity = "high"
    advice = (
        "take the deployment of this producer back, or see what its serializer does: consumers stop at these values"
    )
    _BAD = ("malformed", "unsupported", "no_schema")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        own = ("_framing", "_schema_id", "_schema_guid", "_schema", "_status")
        self._of = _parts("topic", "source", "capture", "connection", *own)

    def take_part(self, part: str, rows: Rows, at: Array) -> None:
        bad = rows.mask(f"{part}_status", self._BAD)
        at = at[(bad | rows.mask(f"{part}_status", "ok"))[at]]
        at = self.bounded(rows, at, ("topic", "capture", "connection", f"{part}_schema_id", f"{part}_schema_guid"))
        self._of[part].add(rows, at)
        columns = ("topic", f"{part}_framing", f"{part}_schema_id", f"{part}_schema_guid")
        self.keep_errors(part, rows, at[bad[at]], columns)

    def findings(self) -> Iterator[Finding]:
        for part, tallies in self._of.items():
            topics: dict[str, dict[str, list[tuple[Any, ...]]]] = {}
            for (topic, source, capture, connection, *claim, status), one in tallies.items():
                client = self._clients.get((capture, connection), (None, None)) if source == "produce" else (None, None)
                row = (client, tuple(claim), status == "ok", one)
                topics.setdefault(topic, {}).setdefault(source, []).append(row)
            for topic, sources in topics.items():
                # Who writes is seen where it is written. What is fetched says it only of others.
                yield from self._of_topic(part, topic, sources.get("produce") or sources["fetch"])

    def _of_topic(self, part: str, topic: str, rows: list[tuple[Any, ...]]) -> Iterator[Finding]:
        good: dict[_Claim, Tally] = {}
        bad: dict[tuple[tuple[str | None, str | None], _Claim], Tally] = {}
        for client, claim, is_good, one in rows:
            tally = good.setdefault(claim, Tally()) if is_good else bad.setdefault((client, claim), Tally())
            tally.join(one)
        # Where values of one schema both do and do not decode, it is no change of the schema.
        read = {claim[:3] for claim in good}
        for (client, claim), one in bad.items():
            before = [
                (other, tally)
                for other, tally in good.items()
                if tally.first is not None
                and one.first is not None
                and tally.first <= one.first
                # Texts beside JSON are no other schema.
                and (claim[0] is not None or other[0] != "none")
            ]
            if one.count < self.limits.failed_values or claim[:3] in read or not before:
                continue
            other, tally = max(before, key=lambda each: each[1].last or 0)
            error = self._errors.get((part, topic, *claim[:3]), "")
            said = (
                f"{counted(one.count, part)} of {_claim(claim)} that cannot be decoded: {error or 'no schema fits'}; "
            )
            said += f"{tally.count} of {_claim(other)} can"
            yield self.found(said, one, client_host=client[0], client_id=client[1], topic=topic)


class Invalid(_OfValues):
    """Values break the JSON Schema that they name: readers get what the schema rules out."""

    name = "invalid-values"
    finds = "values that break their JSON Schema, with `--validate`; by topic and producer"
    thresholds: Mapping[str, str] = {"invalid_values": "{}"}
    place = 242
    advice = (
        "let the serializer of this producer validate (json.fail.invalid.schema=true), or write a version of the "
        "schema that allows what it sends"
    )

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._of = _parts("topic", "source", "capture", "connection")

    def take_part(self, part: str, rows: Rows, at: Array) -> None:
        at = at[rows.mask(f"{part}_status", "invalid")[at]]
        at = self.bounded(rows, at, ("topic", "capture", "connection"))
        self._of[part].add(rows, at)
        self.keep_errors(part, rows, at, ("topic",))

    def findings(self) -> Iterator[Finding]:
        for part, tallies in self._of.items():
            by: dict[str, dict[str, dict[tuple[str | None, str | None], Tally]]] = {}
            for (topic, source, *connection), one in tallies.items():
                client = self._clients.get(tuple(connection), (None, None)) if source == "produce" else (None, None)
                by.setdefault(topic, {}).setdefault(source, {}).setdefault(client, Tally()).join(one)
            for topic, sources in by.items():
                # Who writes is seen where it is written. What is fetched says it only of others.
                for (host, client_id), one in (sources.get("produce") or sources["fetch"]).items():
                    if one.count >= self.limits.invalid_values:
                        verb = "breaks" if one.count == 1 else "break"
                        said = f"{counted(one.count, part)} that {verb} the schema: {self._errors[part, topic]}"
                        yield self.found(said, one, client_host=host, client_id=client_id, topic=topic)


class Breaking(_OfValues):
    """A version of a schema that was written breaks readers with the version before, or cannot read its values."""

    name = "breaking-versions"
    finds = (
        "a topic with values of a version of its schema that cannot read the values of the version before (by the "
        "rules of Avro and of Confluent's registry); or, where both are written, whose values that one cannot read"
    )
    thresholds: Mapping[str, str] = {"breaking_values": "{}"}
    place = 250
    severities = "high, medium or low: both ways, new readers, old readers"
    advice = "give new fields defaults and keep the old ones, or write to another topic; set a compatibility level"

    schemas: Schemas | None = None
    """Where versions come from. None: nothing is found."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._of = _parts("topic", "_schema_id", "_schema_guid", "_schema")

    def take_part(self, part: str, rows: Rows, at: Array) -> None:
        at = at[rows.mask(f"{part}_status", "ok")[at]]
        self._of[part].add(rows, at[rows.valid(f"{part}_schema")[at]])

    def findings(self) -> Iterator[Finding]:
        if self.schemas is None:
            return
        for part, tallies in self._of.items():
            topics: dict[str, dict[Written, Tally]] = {}
            for (topic, id_, guid, called), one in tallies.items():
                version = _version(self.schemas, topic, part, (id_, guid, called))
                if version is not None:
                    topics.setdefault(topic, {}).setdefault(version, Tally()).join(one)
            for topic, seen in topics.items():
                yield from self._of_topic(topic, seen)

    def _of_topic(self, topic: str, seen: dict[Written, Tally]) -> Iterator[Finding]:
        from kwire.values.compatible import reads

        assert self.schemas is not None
        for later, one in seen.items():
            before = [each for each in self.schemas.versions(later.subject or "") if _number(each) < _number(later)]
            earlier = {_number(each): each for each in (*before[-1:], *(each for each in before if each in seen))}
            if one.count < self.limits.breaking_values:
                continue
            for other in earlier.values():
                backward = reads(later, other, self.schemas)
                forward = reads(other, later, self.schemas)
                changed = other in seen and (seen[other].first or 0) <= (one.first or 0)
                if backward.breaks or (forward.breaks and changed):
                    yield self._found(topic, (other, later), (backward, forward), one)
                    break

    def _found(
        self, topic: str, versions: tuple[Written, Written], verdicts: tuple[Verdict, Verdict], tally: Tally
    ) -> Finding:
        other, later = versions
        backward, forward = (one.breaks for one in verdicts)
        reader, writer, broken = (later, other, backward) if backward else (other, later, forward)
        said = f"{reader} cannot read values of {writer}: {broken[0]}"
        if len(broken) > 1:
            said += f" and {len(broken) - 1} more"
        made = self.found(said + ("; nor the other way round" if backward and forward else ""), tally, topic=topic)
        made.severity = "high" if backward and forward else "medium" if backward else "low"
        return made


def _version(
    schemas: Schemas, topic: str, part: str, names: tuple[int | None, str | None, str | None]
) -> Written | None:
    """The version of a subject that a value has: of its topic's own, or of the one that its source says."""
    from kwire.values.framing import Framing, Named, Space

    id_, guid, called = names
    found = schemas.versions(f"{topic}-{part}")
    for one in found:
        if str(one) == called or (id_ is not None and one.id == id_) or (guid is not None and one.guid == guid):
            return one
    # The answer of a registry to an id says no subject.
    named = [Named(Framing.CONFLUENT, *each) for each in ((Space.ID, id_), (Space.GUID, guid)) if each[1] is not None]
    several = [one for name in named for one in schemas.find(name)]
    same = [one for one in found if one.content in [each.content for each in several]]
    return next((one for one in (*same, *several) if one.subject is not None and one.version is not None), None)


def _number(written: Written) -> int:
    return written.version or 0


def _client(host: str, client_id: str | None) -> str:
    return host if client_id is None else f"{client_id} ({host})"


def _named(framing: str | None, id_: int | None, guid: str | None) -> str:
    if id_ is not None:
        return f"id {id_}"
    return f"GUID {guid}" if guid is not None else f"{framing}"


def _claim(claim: _Claim) -> str:
    framing, id_, guid, called = claim
    if called is not None:
        return called
    if id_ is None and guid is None and framing in (None, "none"):
        return "no schema"
    return _named(framing, id_, guid)


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
