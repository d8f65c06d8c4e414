"""What happened to one group, transaction or record: the lines of ``kwire why``, in order of time.

A ``Story`` says which tables it reads. It takes their rows, and keeps those of its subject as ``Line`` objects: when,
what, who, and the frame that shows it.

Rules kept here:

- A line says what a row says. What is not in the capture has no line, and the headline names it.
- At most ``MOST_LINES`` lines are kept, the latest ones. The headline says how many were left out.
"""

from __future__ import annotations

import heapq
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from kwire.errors import KwireError
from kwire.naming import counted, joined, nearest
from kwire.records.arrow_types import TIMESTAMP
from kwire.tables import group_events, showing
from kwire.tables.showing import Column
from kwire.tables.terminal import texts_of_times

__all__ = ["MOST_LINES", "SCHEMA", "SHOWN", "Group", "Line", "Record", "Story", "Transaction", "batch_of", "text_of"]

MOST_LINES: Final = 2000
"""Lines of a story (int)."""
_MOST_NAMED: Final = 10
_MOST_OTHERS: Final = 10_000
"""Names that are looked at, where there is no row of the subject."""
_DIGITS: Final = 19
"""Digits of the largest offset."""

SCHEMA: Final = pa.schema(
    [
        pa.field("time", TIMESTAMP),
        pa.field("what", pa.string(), nullable=False),
        pa.field("who", pa.string()),
        pa.field("detail", pa.string()),
        pa.field("capture", pa.string(), nullable=False),
        pa.field("connection", pa.int64()),
        pa.field("frame", pa.int64()),
    ]
)
"""One row for each line of a story."""


@dataclass(slots=True, order=True)
class Line:
    """A line of a story. ``time``: microseconds since 1970, None if the capture does not state it."""

    time: int | None
    what: str
    who: str | None = None
    detail: str | None = None
    capture: str = ""
    connection: int | None = None
    frame: int | None = None


@dataclass(slots=True)
class Story:
    """What is told of one subject."""

    NAMES: ClassVar[str] = ""
    """The column that names subjects. Empty: those that there are, are not named."""
    lines: list[tuple[int, int, Line, dict[str, Any]]] = field(default_factory=list)
    """With what a line is of, where it is worded at the end."""
    count: int = 0
    others: dict[str, None] = field(default_factory=dict)
    """Names of other subjects, as long as there is no row of this one."""

    @property
    def tables(self) -> Mapping[str, Sequence[str] | None]:
        """The tables that it reads, with their columns."""
        raise NotImplementedError

    def add(self, name: str, batch: pa.RecordBatch) -> None:
        """Take rows of the table ``name``."""
        rows = self.chosen(name, batch).to_pylist()
        for one in rows:
            self.take(name, one)
        if self.NAMES and not rows and len(self.others) < _MOST_OTHERS:
            names = pc.drop_null(pc.unique(batch.column(self.NAMES)))
            self.others.update(dict.fromkeys(names.to_pylist()))

    def chosen(self, name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of the subject, with times as microseconds."""
        columns = [_numbers(one) for one in batch.filter(self.mask(name, batch)).columns]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def mask(self, name: str, batch: pa.RecordBatch) -> Any:
        """Which rows are of the subject."""
        raise NotImplementedError

    def take(self, name: str, row: dict[str, Any]) -> None:
        """Take a row of the subject."""
        raise NotImplementedError

    def headline(self) -> list[str]:
        """What the story says together, in sentences."""
        raise NotImplementedError

    def there_are(self, name: str, what: str) -> list[str]:
        """The sentence that names other subjects, the nearest to ``name`` first. ``what``: one of them."""
        if not self.others:
            return []
        names = [showing.readable(one) for one in nearest(name, self.others)]
        more = len(names) - _MOST_NAMED
        said = ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        return [f"It has {counted(len(names), what)}: {said}."]

    def say(self, line: Line, row: dict[str, Any] = {}) -> None:  # noqa: B006
        """Keep a line. ``row``: what ``worded`` gets at the end."""
        self.count += 1
        at = -(1 << 62) if line.time is None else line.time
        heapq.heappush(self.lines, (at, self.count, line, row))
        if len(self.lines) > MOST_LINES:
            heapq.heappop(self.lines)

    def result(self) -> list[Line]:
        """The lines in order."""
        return [self.worded(line, row) for _, _, line, row in sorted(self.lines, key=lambda one: one[:2])]

    def worded(self, line: Line, row: dict[str, Any]) -> Line:
        """The line with what is known only at the end."""
        return line

    def left_out(self) -> list[str]:
        """Says how many lines were not kept."""
        more = self.count - len(self.lines)
        return [f"{counted(more, 'earlier line')} left out."] if more else []


def _numbers(column: pa.Array) -> pa.Array:
    """Times, also those in structs, as microseconds."""
    type_ = column.type
    if pa.types.is_dictionary(type_):
        return column.dictionary_decode()
    if pa.types.is_timestamp(type_):
        return column.cast(pa.int64())
    if pa.types.is_list(type_) and pa.types.is_struct(type_.value_type):
        inner = column.flatten()
        names = [one.name for one in type_.value_type]
        parts = [_numbers(inner.field(k)) for k in range(len(names))]
        values = pa.StructArray.from_arrays(parts, names)
        lengths = [0 if one is None else one for one in pc.list_value_length(column).to_pylist()]
        offsets = [0]
        for one in lengths:
            offsets.append(offsets[-1] + one)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
    return column


# --- subjects ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Transaction(Story):
    """All transactions of a transactional id."""

    NAMES: ClassVar[str] = "transactional_id"
    name: str = ""
    ends: dict[str, int] = field(default_factory=dict)
    last: dict[str, Any] | None = None

    @property
    def tables(self) -> Mapping[str, Sequence[str] | None]:
        return {"transactions": None}

    def mask(self, name: str, batch: pa.RecordBatch) -> Any:
        return pc.equal(batch.column("transactional_id"), self.name)

    def take(self, name: str, row: dict[str, Any]) -> None:
        self.ends[row["end"]] = self.ends.get(row["end"], 0) + 1
        self.last = row
        who = _client(row["client_id"], row["client_host"], row["client_port"])
        of = f"producer {row['producer_id']}, epoch {row['producer_epoch']}"
        for event in row["events"]:
            last = event is row["events"][-1]
            detail = f"{of}: {row['cause']}" if last and row["cause"] else of
            self.say(Line(event["time"], event["event"], who, detail, event["capture"], event["connection"],
                          event["frame"]))  # fmt: skip
        if row["end"] in ("open", "unknown"):
            time = row["events"][-1]["time"] if row["events"] else None
            said = row["cause"] or "no end of it is in the capture"
            self.say(Line(time, f"end {row['end']}", who, f"{of}: {said}", row["capture"], row["connection"],
                          row["frame"]))  # fmt: skip
        if row["held_records"]:
            said = f"by up to {counted(row['held_records'], 'record')}, for {row['held_ms']:.0f} ms"
            if row["held_readers"]:
                said += f"; {joined(row['held_readers'])} waited"
            time = max((one["time"] for one in row["events"] if one["time"] is not None), default=row["began"])
            self.say(Line(time, "held the last stable offset back", who, said, row["capture"], row["connection"],
                          row["frame"]))  # fmt: skip

    def headline(self) -> list[str]:
        if self.last is None:
            none = f"The capture has no transaction of {_named(self.name)}."
            return [none, *self.there_are(self.name, "transactional id")]
        ends = ", ".join(f"{count} {end.replace('_', ' ')}" for end, count in self.ends.items())
        said = [f"{counted(sum(self.ends.values()), 'transaction')} of {_named(self.name)}: {ends}."]
        one, end = self.last, self.last["end"].replace("_", " ")
        took = "" if one["duration_ms"] is None else f" after {one['duration_ms']:.1f} ms"
        where = ", ".join(f"{part['topic']}:{part['partition']}" for part in one["partitions"][:5]) or "no partition"
        said.append(
            showing.readable(
                f"The last one wrote {counted(one['records'], 'record')} to {where}: {end}{took}"
                + (f" ({one['cause']})." if one["cause"] else "."),
                None,
            )
        )
        return said


@dataclass(slots=True)
class Record(Story):
    """One record: who wrote it, and who got it."""

    NAMES: ClassVar[str] = "topic"
    topic: str = ""
    partition: int = 0
    offset: int = 0
    groups: dict[str, list[str]] = field(default_factory=dict)
    shared: dict[str, list[str]] = field(default_factory=dict)
    """By share group: what became of each delivery."""
    acquired: set[tuple[str, int]] = field(default_factory=set)
    """Frames that brought it to members of share groups."""
    written: bool = False
    rows: int = 0
    known: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of the topic: by partition the least and the largest offset."""

    @classmethod
    def of(cls, text: str) -> Record:
        """``topic:partition:offset``. Raises ``KwireError``."""
        topic, *numbers = text.rsplit(":", 2)
        if len(numbers) != 2 or not topic or not all(one.isdecimal() for one in numbers):
            raise KwireError(f"{text!r} is no record: name it topic:partition:offset, as orders:3:1500")
        if any(len(one) > _DIGITS or int(one) >> bits for one, bits in zip(numbers, (31, 63), strict=True)):
            raise KwireError(f"{text!r} is no record: partitions are below 2^31, and offsets below 2^63")
        return cls(topic=topic, partition=int(numbers[0]), offset=int(numbers[1]))

    @property
    def tables(self) -> Mapping[str, Sequence[str] | None]:
        return {"journeys": None, "share_deliveries": None}

    def add(self, name: str, batch: pa.RecordBatch) -> None:
        Story.add(self, name, batch)
        mine = batch.filter(pc.equal(batch.column("topic"), self.topic))
        columns = [mine.column(one).to_pylist() for one in ("partition", "first_offset", "last_offset")]
        for partition, first, last in zip(*columns, strict=True):
            least, most = self.known.get(partition, (first, last))
            if None not in (first, last) and (partition in self.known or len(self.known) < _MOST_OTHERS):
                self.known[partition] = min(least, first), max(most, last)

    def mask(self, name: str, batch: pa.RecordBatch) -> Any:
        equal, both = pc.equal, pc.and_
        here = both(equal(batch.column("topic"), self.topic), equal(batch.column("partition"), self.partition))
        offset = pa.scalar(self.offset, pa.int64())
        begins = pc.less_equal(batch.column("first_offset"), offset)
        return both(here, both(begins, pc.greater_equal(batch.column("last_offset"), offset)))

    def take(self, name: str, row: dict[str, Any]) -> None:
        self.rows += 1
        if name == "share_deliveries":
            self._take_shared(row)
            return
        capture = row["capture"]
        offsets = f"offsets {row['first_offset']} to {row['last_offset']}"
        if not self.written and row["produced"] is not None:
            self.written = True
            who = _client(row["producer_client_id"], row["producer_host"])
            where = row["produce_connection"], row["produce_frame"]
            self.say(Line(row["produced"], "written (Produce)", who, offsets, capture, *where))
            if row["acknowledged"] is not None:
                took = None if row["ack_ms"] is None else f"after {row['ack_ms']:.1f} ms"
                self.say(Line(row["acknowledged"], "acknowledged", who, took, capture, row["produce_connection"]))
        who = _client(row["client_id"], row["client_host"])
        if row["group_id"] is not None:
            who = f"{who} of group {row['group_id']}"
        reader = row["group_id"] or who or ""
        where = row["connection"], row["frame"]
        if row["status"] in ("committed", "delivered"):
            said: list[str] = [] if row["fetch_ms"] is None else [f"{row['fetch_ms']:.1f} ms after it was written"]
            said += [] if row["lag"] is None else [f"{counted(row['lag'], 'record')} behind"]
            said += [f"delivered {row['deliveries']} times by now"] if row["deliveries"] > 1 else []
            self.say(Line(row["fetched"], "delivered (Fetch)", who, ", ".join(said) or None, capture, *where))
            if row["status"] == "committed":
                said = [f"{row['commit_ms']:.1f} ms after it was delivered"] if row["commit_ms"] is not None else []
                by = row["commit_connection"], row["commit_frame"]
                self.say(Line(row["committed"], "committed", who, ", ".join(said) or None, capture, *by))
        elif row["status"] != "undelivered":
            why = "it asked for a later offset" + ("; packets of it are missing" if row["status"] == "missing" else "")
            self.say(Line(None, "passed over", who, why, capture, *where))
        self.groups.setdefault(reader, []).append(row["status"])

    def _take_shared(self, row: dict[str, Any]) -> None:
        group, outcome = row["group_id"] or "-", row["outcome"] or row["status"]
        # What nobody acknowledged may be shown by a frame of another member.
        late = outcome in ("expired", "taken_back", "unknown")
        name = row["member_id"] if late else _client(row["client_id"], row["client_host"])
        who = f"{name or '-'} of share group {group}"
        time, came = row["timestamp"], (row["acquired_capture"], row["acquired_frame"])
        mine = self.shared.setdefault(group, [])
        if row["acquired_frame"] is not None and came not in self.acquired:
            self.acquired.add(came)
            said = f"delivery {row['delivery_count']}, to acknowledge within {row['lock_timeout_ms']} ms"
            said = "" if None in (row["delivery_count"], row["lock_timeout_ms"]) else said
            where = row["acquired_capture"], row["acquired_connection"], row["acquired_frame"]
            self.say(Line(row["acquired_at"], "delivered (ShareFetch)", who, said or None, *where))
        if outcome == "expired" and row["acquired_at"] is not None and row["held_ms"] is not None:
            # The frame is the first that shows it.
            time = row["acquired_at"] + int(row["held_ms"] * 1000)
        said = "" if row["held_ms"] is None else f"after {row['held_ms']:.1f} ms"
        said = "; ".join(filter(None, (said, row["error_name"])))
        what = _OUTCOMES.get(outcome, outcome.replace("_", " "))
        self.say(Line(time, what, who, said or None, row["capture"], row["connection"], row["frame"]))
        if outcome != "refused":
            mine.append(outcome)

    def headline(self) -> list[str]:
        name = showing.readable(f"{self.topic}:{self.partition}:{self.offset}", None)
        if not self.rows:
            none = f"The capture does not show the record {name}: nobody wrote it, and nobody got it."
            return [none, *self._there_are()]
        got = {reader: words for reader, words in self.groups.items() if reader and words != ["undelivered"]}
        said = [f"The record {name} was {'written' if self.written else 'written before, or unseen'}."]
        if not got and not any(self.shared.values()):
            said.append("Nobody in the capture got it.")
        for reader, words in got.items():
            times = sum(one in ("committed", "delivered") for one in words)
            one = "did not get it" if not times else "got it once" if times == 1 else f"got it {times} times"
            fate = "and committed it" if "committed" in words else "and no commit covers it" if times else "passed it"
            said.append(showing.readable(f"{reader} {one}{' ' if times else ': it '}{fate}.", None))
        for group, words in self.shared.items():
            if words:
                often = "once" if len(words) == 1 else f"{len(words)} times"
                fates = ", ".join(one.replace("_", " ") for one in words)
                said.append(showing.readable(f"The share group {group} got it {often}: {fates}.", None))
        return said

    def _there_are(self) -> list[str]:
        if self.partition in self.known:
            least, most = self.known[self.partition]
            return [f"Of this partition it shows offsets from {least} to {most}."]
        if self.known:
            some = [str(one) for one in sorted(self.known)[: _MOST_NAMED + 1]]
            more = ["others"] if len(some) > _MOST_NAMED else []
            return [f"Of this topic it shows the partitions {joined([*some[:_MOST_NAMED], *more])}."]
        return self.there_are(self.topic, "topic")


@dataclass(slots=True)
class Group(Story):
    """A group: its members, and why it rebalanced."""

    NAMES: ClassVar[str] = "group_id"
    name: str = ""
    events: dict[str, int] = field(default_factory=dict)
    causes: dict[str, dict[str | None, int]] = field(default_factory=dict)
    """By cause of rebalances: how often by which member."""
    clients: dict[str, tuple[str, str | None, str | None]] = field(default_factory=dict)
    """By member id: its name, the client id and the host."""
    topics: dict[str, str] = field(default_factory=dict)
    """Names by ids. A capture may show a name after the first assignment."""

    @property
    def tables(self) -> Mapping[str, Sequence[str] | None]:
        return {"group_events": None}

    def mask(self, name: str, batch: pa.RecordBatch) -> Any:
        return pc.equal(batch.column("group_id"), self.name)

    def take(self, name: str, row: dict[str, Any]) -> None:
        event = row["event"] or row["status"]
        self.events[event] = self.events.get(event, 0) + 1
        member = row["group_instance_id"] or row["member_id"]
        if member is not None and event not in _BY_OTHERS and len(self.clients) < _MOST_OTHERS:
            self.clients.setdefault(row["member_id"] or member, (member, row["client_id"], row["client_host"]))
        for one in (*(row["gained"] or ()), *(row["lost"] or ())):
            if None not in (one["topic"], one["topic_id"]) and len(self.topics) < _MOST_OTHERS:
                self.topics[one["topic_id"]] = one["topic"]
        if event == "rebalance_began":
            why = self.causes.setdefault(row["cause"] or "not_in_capture", {})
            by = row["cause_member_id"]
            by = by if by in why or len(why) < _MOST_OTHERS else None
            why[by] = why.get(by, 0) + 1
        # As texts partitions take little memory.
        row["moved"] = list(group_events.moves(row))
        del row["gained"], row["lost"]
        where = row["capture"], row["connection"], row["frame"]
        self.say(Line(row["timestamp"], event.replace("_", " "), None, None, *where), row)

    def worded(self, line: Line, row: dict[str, Any]) -> Line:
        some = [(sign, self.topics.get(topic, topic), parts) for sign, topic, parts in row["moved"]]
        said = [group_events.moved(some)] if some else []
        said += [] if row["epoch"] is None else [f"epoch {row['epoch']}"]
        said += [] if row["duration_ms"] is None else [f"took {row['duration_ms']:.1f} ms"]
        if row["cause"]:
            of = "" if row["cause_member_id"] is None else f" by {self._member(row['cause_member_id'])}"
            frame = "" if row["cause_frame"] is None else f" in frame {row['cause_frame']}"
            cause = f"because of {row['cause'].replace('_', ' ')}{of}{frame}"
            said.append("its cause is not in the capture" if row["cause"] == "not_in_capture" else cause)
        said += [one for one in (row["error_name"], row["detail"], row["error"]) if one]
        if row["member_id"] or row["group_instance_id"]:
            line.who = self._member(row["member_id"] or row["group_instance_id"], row["group_instance_id"])
        elif row["event"] not in _OF_THE_GROUP:
            line.who = _client(row["client_id"], row["client_host"])
        line.detail = "; ".join(said) or None
        return line

    def _member(self, member: str, instance: str | None = None) -> str:
        """The member by its client, host and name: members of Kafka 4 have random names."""
        name, client_id, host = self.clients.get(member, (instance or member, None, None))
        if client_id is None or name.startswith(client_id):
            return _client(name, host) or name
        return f"{_client(client_id, host)} ({name})"

    def headline(self) -> list[str]:
        name = _named(self.name)
        if not self.events:
            return [f"The capture has no event of the group {name}.", *self.there_are(self.name, "group")]
        said = [counted(self.events.get("rebalance_began", 0), "rebalance")]
        said += [f"{count} {event.replace('_', ' ')}" for event, count in self.events.items() if event not in _LESS]
        return [f"The group {name}: {', '.join(said)}.", *self._why()]

    def _why(self) -> Iterator[str]:
        """A sentence for each cause of rebalances, the most frequent first: how often, and who."""
        for cause, who in sorted(self.causes.items(), key=lambda one: -sum(one[1].values())):
            times: dict[str, int] = {}
            for member in filter(None, who):
                name, client_id, host = self.clients.get(member, (member, None, None))
                called = _client(client_id or name, host) or name
                times[called] = times.get(called, 0) + who[member]
            order = sorted(times, key=lambda one: -times[one])
            names = [f"{one} ({times[one]} times)" if times[one] > 1 else one for one in order]
            if len(names) > _MOST_NAMED:
                names[_MOST_NAMED:] = [f"{len(names) - _MOST_NAMED} more"]
            why = "a cause that is not in the capture" if cause == "not_in_capture" else cause.replace("_", " ")
            said = f"{counted(sum(who.values()), 'rebalance')} because of {why}" + (
                f": {joined(names)}" if names else ""
            )
            yield showing.readable(f"{said}.", None)


_OUTCOMES: Final = {
    "accepted": "accepted", "released": "released: it comes again", "rejected": "rejected: it does not come again",
    "expired": "not acknowledged in time", "refused": "acknowledged too late", "renewed": "got more time",
}  # fmt: skip
"""What became of a delivery to a share group, in words for people."""
_OF_THE_GROUP: Final = ("rebalance_began", "rebalance_ended", "epoch_bumped")
"""Events that are of no member, whoever is told of them."""
_LESS: Final = (*_OF_THE_GROUP, "synced")
"""Events that a headline does not count."""
_BY_OTHERS: Final = ("left", "fenced")
"""Events that the frame of another client may show."""


def _named(name: str) -> str:
    return showing.readable(name) or "''"


def _client(client_id: str | None, host: str | None, port: int | None = None) -> str | None:
    if host is None:
        return client_id
    where = host if port is None else f"{host}:{port}"
    return f"{client_id} on {where}" if client_id else where


# --- what is shown ----------------------------------------------------------------------------------------------------


def batch_of(lines: Iterable[Line]) -> pa.RecordBatch:
    """Lines as Arrow data, with the columns of ``SCHEMA``."""
    rows = list(lines)
    columns = []
    for wanted in SCHEMA:
        values = [getattr(row, wanted.name) for row in rows]
        if pa.types.is_timestamp(wanted.type):
            columns.append(pa.array(values, pa.int64()).cast(pa.timestamp("us")).cast(TIMESTAMP))
        else:
            columns.append(pa.array(values, wanted.type))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def text_of(lines: Iterable[Line], width: int) -> Iterator[str]:
    """The lines for a terminal of ``width`` characters: what happened in one column, who and how in another."""
    rows = list(lines)
    wide = min(max((len(showing.readable(row.what, None)) for row in rows), default=0), _WHAT)
    day = ""
    for row in rows:
        date, _, clock = ("-", "", "-") if row.time is None else _texts(row.time)
        if date not in (day, "-"):
            day = date
            yield day
        what = showing.readable(row.what, None)
        how = ": ".join(showing.readable(one, None) for one in (row.who, row.detail) if one)
        where = f"[{_evidence({'frame': row.frame, 'connection': row.connection})}]"
        head = f"{clock:<15}  {what:<{wide}}"
        beside = len(head) <= 17 + wide and width - len(head) - 2 >= _HOW
        indent = len(head) + 2 if beside else 17
        # The evidence is not broken into lines: control characters are never in a text that is shown.
        text = f"{how} {where.replace(' ', _KEPT)}"
        parts = [
            one.replace(_KEPT, " ") for one in textwrap.wrap(text, max(width - indent, _HOW), break_on_hyphens=False)
        ]
        if not beside:
            yield head.rstrip()
        for number, part in enumerate(parts):
            yield f"{head}  {part}" if beside and not number else " " * indent + part


def _texts(micros: int) -> tuple[str, str, str]:
    text = texts_of_times(pa.array([micros]).cast(pa.timestamp("us")).cast(TIMESTAMP))[0] or "-"
    return text.rstrip("Z").partition("T")


_KEPT: Final = "\0"
_WHAT: Final = 34
"""Characters of what happened that stand in a column,"""
_HOW: Final = 30
"""and of the rest at least."""


def _evidence(row: showing.Row) -> str:
    if row["frame"] is not None:
        return f"frame {row['frame']}"
    return "-" if row["connection"] is None else f"connection {row['connection']}"


SHOWN: Final = (
    Column("time", showing.time("time")),
    Column("what happened", showing.said("what"), shrink=18, wrap=True),
    Column("who", showing.said("who"), shrink=14, wrap=True),
    Column("how", showing.said("detail"), shrink=20, wrap=True),
    Column("evidence", _evidence),
)
"""The columns of a terminal and of a page."""
