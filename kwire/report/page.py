"""The report of captures as a page: what ``kwire report`` writes of an ``Overview``.

Strategy: tables are HTML, so that the page is whole without a script. Its script sorts and filters them, and draws the
charts from JSON that stands in the page. The same JSON has the figures that a later report is compared with.

Rules kept here:

- A table has at most ``MOST_ROWS`` rows and says how many more there are. A chart has at most ``MOST_LINES`` lines. So
  the size of a page does not grow with the traffic.
- Nothing of a capture is written but through ``html``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from kwire import __version__
from kwire.naming import counted, public
from kwire.report import audit, changes, findings, lineage
from kwire.report.contents import Contents
from kwire.report.flows import ENDS
from kwire.report.html import document, json_text, safe, table
from kwire.report.members import Members, Rebalance, called
from kwire.report.overview import COARSE, Overview
from kwire.report.sums import Latencies, Slow, Timeline
from kwire.tables import showing
from kwire.tables.showing import Column, Row, plain, readable
from kwire.wire import FIRST_US, LAST_US

__all__ = ["MOST_ROWS", "Source", "figures", "render"]

MOST_ROWS: Final = 200
"""The most rows of a table on the page (int)."""
MOST_LINES: Final = 10
_MOST_FIGURES: Final = 500
"""Names of a kind that figures for later reports have."""
_MOST_COURSES: Final = 10
"""Groups whose members are shown over time."""
_MOST_GRAPH: Final = 60
"""Arrows of the graph of lineage."""
_ASSETS: Final = Path(__file__).parent / "assets"


@dataclass(frozen=True, slots=True)
class Source:
    """A capture that was read: its name, and what was said of it."""

    name: str
    notes: Sequence[str] = ()


@cache
def _asset(name: str) -> str:
    return (_ASSETS / name).read_text("utf-8")


# --- texts ------------------------------------------------------------------------------------------------------------


def _scaled(number: float, units: Sequence[str]) -> str:
    size, at = float(number), 0
    while abs(size) >= 1000 and at < len(units) - 1:
        size, at = size / 1000, at + 1
    digits = 0 if not at or abs(size) >= 100 else 1 if abs(size) >= 10 else 2
    return f"{size:,.{digits}f} {units[at]}"


def bytes_text(number: float | None) -> str:
    """``1.23 MB``."""
    return "-" if number is None else _scaled(number, ("B", "kB", "MB", "GB", "TB", "PB"))


def count_text(number: float | None) -> str:
    """``1,234``."""
    return "-" if number is None else f"{number:,.0f}"


def ms_text(number: float | None) -> str:
    """``1.23 ms``."""
    if number is None:
        return "-"
    if number >= 1000:
        return f"{number / 1000:,.2f} s"
    return f"{number:.{0 if number >= 100 else 1 if number >= 10 else 2 if number >= 1 else 3}f} ms"


def time_text(micros: int | None) -> str:
    """``2026-11-21 02:18:00.123`` in UTC."""
    if micros is None:
        return "-"
    if not FIRST_US <= micros <= LAST_US:
        return f"@{micros / 1e6:.3f}"
    return datetime.fromtimestamp(micros / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def span_text(seconds: float) -> str:
    """``2 h 3 min``."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def slow_text(slow: Slow) -> str:
    """What was slow."""
    return (
        f"{count_text(slow.slow)} of {count_text(slow.responses)} responses took ten times as long as usual or longer, "
        f"up to {ms_text(slow.longest)}"
    )


def _number(title: str, name: str, text: Callable[[float | None], str]) -> Column:
    return Column(title, lambda row: text(row[name]), right=True, value=lambda row: row[name])


def _count(title: str, name: str | None = None) -> Column:
    return _number(title, name or title, count_text)


def _bytes(title: str, name: str | None = None) -> Column:
    return _number(title, name or title, bytes_text)


def _ms(title: str, name: str | None = None) -> Column:
    return _number(title, name or title, ms_text)


def _text(title: str, name: str | None = None) -> Column:
    return Column(title, plain(name or title))


def _shown(columns: Sequence[Column]) -> list[Column]:
    """Columns of a terminal: those that stand right are numbers."""

    def numeric(column: Column) -> Callable[[Row], float | None]:
        def value(row: Row) -> float | None:
            try:
                return float(column.text(row))
            except ValueError:
                return None

        return value

    return [replace(one, value=numeric(one) if one.right else None) for one in columns]


# --- parts of the page ------------------------------------------------------------------------------------------------


class _Part:
    """A section of the page."""

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.title = title
        self.parts: list[str] = []

    def say(self, text: str) -> _Part:
        """A sentence."""
        self.parts.append(f'<p class="sum">{safe(text)}</p>\n')
        return self

    def chart(self, name: str, title: str) -> _Part:
        """A place for a chart that the script draws."""
        self.parts.append(
            f'<figure class="chart" data-chart="{name}"><figcaption>{safe(title)}</figcaption>'
            "<noscript>This chart needs a script.</noscript></figure>\n"
        )
        return self

    def table(self, title: str, columns: Sequence[Column], rows: Sequence[Row], more: int = 0, said: str = "") -> _Part:
        """A table. ``more``: rows that are left out."""
        self.parts.append(f"<h3>{safe(title)}</h3>\n")
        if said:
            self.say(said)
        if not rows:
            return self.say("None.")
        left_out = more + max(0, len(rows) - MOST_ROWS)
        self.parts += table(columns, rows[:MOST_ROWS], title)
        return self.say(f"… and {left_out:,} more.") if left_out else self

    def answer(
        self, title: str, columns: Sequence[Column], rows: Sequence[Any], made: Callable[[Sequence[Any]], Any]
    ) -> _Part:
        """The table of an answer. ``made``: what makes a batch of some of its rows."""
        first = rows[:MOST_ROWS]
        return self.table(title, _shown(columns), _rows_of(made(first)), len(rows) - len(first))

    def bars(self, title: str, rows: Sequence[tuple[str, int, int]]) -> _Part:
        """Bars for what is written and read: a label and two numbers each."""
        self.parts.append(f'<figure class="bars"><figcaption>{safe(title)}</figcaption>\n')
        most = max((max(one, other) for _, one, other in rows), default=0)
        self.parts.append("<table><thead><tr><th></th><th>written</th><th>read</th></tr></thead><tbody>\n")
        for label, *numbers in rows:
            cells = "".join(
                f'<td><svg class="{direction}" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
                f'<rect width="{100 * number / most:.2f}" height="8"/></svg>{number:,}</td>'
                for direction, number in zip(("written", "read"), numbers, strict=True)
            )
            self.parts.append(f"<tr><th>{safe(label)}</th>{cells}</tr>\n")
        self.parts.append("</tbody></table></figure>\n")
        return self

    def courses(self, group: str, members: Members) -> _Part:
        """Who was there from when to when, and what it had: a line each."""
        one = members.groups[group]
        first, width = one.first or 0, max(one.last - (one.first or 0), 1)
        clock = slice(11, 23 if width < 10_000_000 else 19)

        def bar(begin: int, end: int, kind: str, said: str, label: str = "") -> str:
            where = f'x="{100 * (begin - first) / width:.2f}%" width="{max(100 * (end - begin) / width, 0.2):.2f}%"'
            text = f'<text x="4" y="14">{safe(label)}</text>' if label else ""
            title = f"<title>{safe(f'{said}, {time_text(begin)[11:]} to {time_text(end)[11:]}')}</title>"
            return f'<svg {where}>{title}<rect class="{kind}" width="100%" height="100%"/>{text}</svg>'

        def line(name: str, below: str, bars: Iterable[str], count: str) -> None:
            small = f"<small>{safe(below)}</small>" if below else ""
            self.parts.append(
                f'<tr><th scope="row">{safe(name)}{small}</th><td class="bar"><svg height="20">{"".join(bars)}</svg>'
                f"</td><td>{count}</td></tr>\n"
            )

        ticks = "".join(
            f'<text x="{part}%" y="14" class="{side}">{time_text(first + width * part // 100)[clock]}</text>'
            for part, side in ((0, "begin"), (25, "mid"), (50, "mid"), (75, "mid"), (100, "end"))
        )
        self.parts.append(
            f'<figure class="there"><figcaption>{safe(group)}</figcaption>\n<table><thead><tr><th>member</th>'
            f'<th class="bar"><svg height="18">{ticks}</svg></th><th>partitions at last</th></tr></thead><tbody>\n'
        )
        rebalances, *found = members.courses(group)
        whys = [
            bar(begin, end, "two", _why_text(why, members.who(group, why.member)))
            for (begin, end), why in zip(rebalances.spans, one.whys, strict=True)
        ]
        line("rebalances", "", whys, counted(len(whys) + rebalances.more, "time"))
        for each in found:
            bars = [bar(begin, end, "dim", "there") for begin, end in each.spans]
            for span in filter(lambda span: span.count, each.held):
                had, said = counted(span.count, "partition"), members.text(span)
                label = said if span.topics == 1 else f"{had} of {span.topics} topics" if span.topics else had
                bars.append(bar(span.begin, span.end, "one", f"{had}: {said}", label))
            below = "" if each.name == each.client_id else each.name.removeprefix(f"{each.client_id}-")
            count = "" if each.partitions is None else f"{each.partitions:,}"
            line(called(each.client_id or each.name, each.host), below, bars, count)
        self.parts.append("</tbody></table></figure>\n")
        return self.say(f"The first {len(found)} members are drawn.") if one.more else self

    def html(self) -> Iterator[str]:
        """The section."""
        yield f'<section id="{self.name}"><h2>{safe(self.title)}</h2>\n'
        yield from self.parts
        yield "</section>\n"


_APIS: Final = (
    _text("API", "api"), _count("requests"), _count("responses"), _count("with errors", "errors"),
    _count("not ok", "odd"), _bytes("sent", "request_bytes"), _bytes("answered", "response_bytes"),
    _ms("p50"), _ms("p90"), _ms("p99"), _ms("longest", "most"),
)  # fmt: skip
_LATENCIES: Final = (
    _text("API", "api"), _text("broker"), _count("responses", "count"), _ms("p50"), _ms("p90"), _ms("p99"),
    _ms("longest", "most"),
)  # fmt: skip
_BROKERS: Final = (
    _text("broker"), _count("requests"), _count("responses"), _count("with errors", "errors"),
    _bytes("sent to it", "request_bytes"), _bytes("answered", "response_bytes"), _ms("p50"), _ms("p99"),
)  # fmt: skip
_MOVED: Final = (
    _bytes("written", "written_bytes"), _count("records written", "written_records"), _bytes("read", "read_bytes"),
    _count("records read", "read_records"),
)  # fmt: skip
_TOPICS: Final = (
    _text("topic"), _count("partitions"), *_MOVED, _count("batches written", "written_batches"),
    _bytes("a batch", "mean"), _count("errors"),
)  # fmt: skip
_CONTENTS: Final = (
    _text("topic"), _text("of", "part"), _text("schema"), _text("format"), _text("message"), _text("framing"),
    _text("status"), _count("records"), _bytes("bytes"),
    _number("share", "share", lambda number: "-" if number is None else f"{number:.1f} %"),
)  # fmt: skip
_FRAMINGS: Final = (_text("topic"), _text("of", "part"), _text("framings"))
_PARTITIONS: Final = (_text("topic"), _count("partition"), *_MOVED, _count("end of the log", "newest"))
_CLIENTS: Final = (
    _text("client"), _text("client_id"), _text("software"), _count("requests"), _count("with errors", "errors"),
    _bytes("sent", "request_bytes"), _bytes("answered", "response_bytes"), *_MOVED,
    _ms("throttled", "throttle_ms"),
)  # fmt: skip
_COMPRESSION: Final = (
    _text("way"), _text("compression"), _bytes("bytes"), _count("batches"), _count("records"),
    _bytes("a batch", "mean"), _count("records a batch", "fill"),
)  # fmt: skip
_FORMATS: Final = (_text("from", "source"), _text("format", "magic"), _text("compression"), _count("records"))
_ERRORS: Final = (_text("error"), _text("API", "api"), _text("client"), _text("client_id"), _count("times", "count"))
_STATUSES: Final = (_text("status"), _text("API", "api"), _count("frames"))
_GAPS: Final = (
    _text("capture"), _count("connection"), _text("client"), _text("broker"),
    _bytes("missing of the client", "client_missing"), _bytes("missing of the broker", "broker_missing"),
    _count("late"), _count("sent again", "repeats"), _count("unanswered"),
)  # fmt: skip
_VERSIONS: Final = (_text("API", "api"), _count("version"), _count("requests"), Column("clients", showing.said("who")))
_GROUPS: Final = (
    _text("group"), Column("members", showing.said("who")), _count("generation"), _count("joins"), _count("leaves"),
    _count("heartbeats"), _count("commits"), _count("lag"), _count("partitions with known lag", "partitions"),
)  # fmt: skip
_REBALANCES: Final = (
    _text("group"), _text("began"), _ms("took"), _text("because of", "cause"), _text("who"), _text("member"),
    _count("frame"),
)  # fmt: skip
_TRANSACTIONS: Final = (
    _text("transaction"), Column("clients", showing.said("clients")), _ms("readers held back", "held_ms"),
    _count("by records", "held_records"), Column("who waited", showing.said("waited")), _count("all"),
    _count("committed"), _count("aborted"), _count("timed out", "timed_out"), _count("fenced"), _count("open"),
    _count("unknown"), _count("records"), _bytes("bytes"), _ms("p50"), _ms("p99"), _ms("longest", "most"),
)  # fmt: skip
_JOURNEYS: Final = (
    _text("topic"), _text("group or reader", "reader"), _count("records got", "got"), _count("got again", "again"),
    _count("skipped"), _count("missing"), _count("largest lag", "lag"), _ms("p50 to fetch", "p50"),
    _ms("p90"), _ms("p99"), _ms("longest", "most"), _ms("p50 to commit", "commit_p50"), _ms("p99", "commit_p99"),
)  # fmt: skip
_NOBODY: Final = (_text("topic"), _count("records"))
_CHANGES: Final = (
    _text("what"), _text("name"), _text("measure"),
    Column("", plain("word"), empty=None),
    _number("before", "before", lambda number: "-" if number is None else f"{number:,.4g}"),
    _number("now", "now", lambda number: "-" if number is None else f"{number:,.4g}"),
    _number("change", "change", lambda number: "-" if number is None else f"{number:+.0%}"),
)  # fmt: skip
_TOTALS: Final = (
    ("requests", "requests", count_text), ("responses", "responses", count_text),
    ("with errors", "errors", count_text), ("not ok", "not_ok", count_text),
    ("bytes of requests", "request_bytes", bytes_text), ("bytes of responses", "response_bytes", bytes_text),
    ("records written", "written_records", count_text), ("records read", "read_records", count_text),
    ("connections", "connections", count_text), ("missing bytes", "missing_bytes", bytes_text),
    ("unanswered requests", "unanswered", count_text),
)  # fmt: skip


def _quantiles(found: Latencies) -> dict[str, Any]:
    return {
        "count": found.count,
        "p50": found.quantile(0.5),
        "p90": found.quantile(0.9),
        "p99": found.quantile(0.99),
        "most": found.most if found.count else None,
    }


_MOVED_NAMES: Final = ("bytes", "written_bytes", "written_records", "read_bytes", "read_records")


class _Page:
    """The parts of one report."""

    def __init__(self, over: Overview, captures: int = 1) -> None:
        over.finish()
        self.captures = captures
        self.over = over
        self.found = over.finder.result()
        self.judged = over.auditor.result()
        self.edges = over.lineage.result()
        self.drawn = self._drawn()

    # -- sections

    def sections(self) -> Iterator[_Part]:
        """All of them, in their order."""
        yield self._findings()
        yield self._traffic()
        yield self._latency()
        yield self._topics()
        if self.over.contents is not None:
            yield self._contents(self.over.contents)
        yield self._clients()
        yield self._batches()
        yield self._errors()
        yield self._gaps()
        yield self._versions()
        yield self._groups()
        yield self._transactions()
        yield self._journeys()
        yield self._lineage()
        yield self._audit()

    def _findings(self) -> _Part:
        part = _Part("findings", "Findings")
        (said,) = findings.summary(self.found)
        part.say(said)
        if self.found:
            part.answer("What goes wrong, and where", findings.shown(self.captures), self.found, findings.batch_of)
        return part

    def _traffic(self) -> _Part:
        over = self.over
        part = _Part("traffic", "Traffic")
        part.chart("traffic", "By API over time")
        rows = []
        for api, (requests, responses, sent, got, errors, odd) in over.apis.largest(MOST_ROWS):
            rows.append(
                {
                    "api": api, "requests": requests, "responses": responses, "request_bytes": sent,
                    "response_bytes": got, "errors": errors, "odd": odd, **_quantiles(over.latency(api)),
                }
            )  # fmt: skip
        part.table("APIs", _APIS, rows, len(over.apis) - len(rows))
        rows = []
        for broker, (requests, responses, sent, got, errors) in over.brokers.largest(MOST_ROWS):
            rows.append(
                {
                    "broker": broker, "requests": requests, "responses": responses, "request_bytes": sent,
                    "response_bytes": got, "errors": errors, **_quantiles(over.latency(broker=broker)),
                }
            )  # fmt: skip
        return part.table("Brokers", _BROKERS, rows, len(over.brokers) - len(rows))

    def _latency(self) -> _Part:
        part = _Part("latency", "Latency")
        part.say("From a request to its response. Brokers make Fetch, JoinGroup and others wait on purpose.")
        slow = self.over.slowest()
        if slow is not None:
            part.say(f"Slow from {time_text(slow[0])} to {time_text(slow[1])}: {slow_text(slow[2])}.")
        part.chart("waits", "Over time")
        rows = [
            {"api": api, "broker": broker, **_quantiles(found)} for (api, broker), found in self.over.latencies.items()
        ]
        rows.sort(key=lambda row: (-row["count"], row["api"], row["broker"]))
        return part.table("By API and broker", _LATENCIES, rows)

    def _topics(self) -> _Part:
        over = self.over
        part = _Part("topics", "Topics")
        part.say("Produce requests write, and Fetch responses (those to followers too) read.")
        part.chart("flow", "By topic over time")
        partitions: dict[Any, int] = {}
        for topic, _ in over.partitions.sums:
            partitions[topic] = partitions.get(topic, 0) + 1
        errors: dict[Any, int] = {}
        for (topic, _), (count,) in over.topic_errors.sums.items():
            errors[topic] = errors.get(topic, 0) + count
        rows = []
        for topic, (_, size, batches, records, read, _, fetched) in over.topics.largest(MOST_ROWS):
            rows.append(
                {
                    "topic": topic, "partitions": partitions.get(topic), "written_bytes": size,
                    "written_records": records, "read_bytes": read, "read_records": fetched,
                    "written_batches": batches, "mean": size / batches if batches else None,
                    "errors": errors.get(topic, 0),
                }
            )  # fmt: skip
        part.table("Topics", _TOPICS, rows, len(over.topics) - len(rows))
        rows = []
        marks = over.finder.newest()
        for (topic, partition), sums in over.partitions.largest(MOST_ROWS):
            newest = marks.get((topic, partition))
            moved = dict(zip(_MOVED_NAMES, sums, strict=True))
            rows.append({"topic": topic, "partition": partition, "newest": newest, **moved})
        return part.table("Partitions", _PARTITIONS, rows, len(over.partitions) - len(rows))

    def _contents(self, contents: Contents) -> _Part:
        part = _Part("contents", "What is in the records")
        unread = contents.unread()
        said = ", ".join(f"{count:,} {word.replace('_', ' ')}" for word, count in unread.items())
        part.say("Keys and values by the schemas that they have. A record that is read counts each time it is read.")
        part.say(f"Not decoded: {said}." if said else "All of them could be decoded.")
        rows = list(contents.rows(MOST_ROWS))
        part.table("Schemas of topics", _CONTENTS, rows, len(contents.schemas) - len(rows))
        framings: dict[tuple[str, str], dict[str, None]] = {}
        for row in rows:
            if row["status"] == "ok":
                framings.setdefault((row["topic"], row["part"]), {})[row["framing"]] = None
        mixed = [
            {"topic": topic, "part": which, "framings": ", ".join(names)}
            for (topic, which), names in framings.items()
            if len(names) > 1
        ]
        return part.table("Topics with several framings", _FRAMINGS, mixed) if mixed else part

    def _clients(self) -> _Part:
        over = self.over
        part = _Part("clients", "Clients")
        rows = []
        for (host, client), (size, requests, _, errors, sent) in over.clients.largest(MOST_ROWS):
            moved = dict(zip(_MOVED_NAMES, over.data.sums.get((host, client), (0,) * 5), strict=True))
            rows.append(
                {
                    **moved, "client": host, "client_id": client, "software": over.software.get((host, client)),
                    "requests": requests, "errors": errors, "request_bytes": sent, "response_bytes": size - sent,
                    "throttle_ms": over.throttled(host, client),
                }
            )  # fmt: skip
        return part.table("Clients", _CLIENTS, rows, len(over.clients) - len(rows))

    def _batches(self) -> _Part:
        over = self.over
        part = _Part("batches", "Batches")
        part.bars("Batches by their bytes", _powers(over.sizes, bytes_text))
        part.bars("Batches by their records", _powers(over.fills, count_text))
        rows = []
        by_size = sorted(over.compression.items(), key=lambda one: -one[1][0])
        for (direction, codec), (size, batches, records) in by_size:
            rows.append(
                {
                    "way": direction, "compression": codec, "bytes": size, "batches": batches, "records": records,
                    "mean": size / batches if batches else None, "fill": records / batches if batches else None,
                }
            )  # fmt: skip
        part.table("Compression", _COMPRESSION, rows)
        rows = [
            {"source": source, "magic": f"v{magic}", "compression": codec or "?", "records": count}
            for (source, magic, codec), count in over.auditor.formats.most_common()
        ]
        part.table("Record formats", _FORMATS, rows)
        said = ", ".join(f"{count:,} with acks={'all' if acks == -1 else acks}" for acks, count in over.acks.items())
        return part.say(f"Produce requests: {said}.") if said else part

    def _errors(self) -> _Part:
        over = self.over
        part = _Part("errors", "Errors")
        if over.errors.sums:
            part.chart("wrong", "By error over time")
        rows = [
            {"api": api, "error": error, "client": host, "client_id": client, "count": count}
            for (api, error, host, client), (count,) in over.errors.largest(MOST_ROWS)
        ]
        part.table("What clients were told", _ERRORS, rows, len(over.errors) - len(rows))
        rows = [{"status": status, "api": api, "frames": count} for (status, api), count in over.statuses.most_common()]
        return part.table("Frames that could not be read as they should", _STATUSES, rows)

    def _gaps(self) -> _Part:
        over = self.over
        part = _Part("gaps", "Gaps")
        ended = ", ".join(f"{count:,} {word}" for word, count in over.ended.most_common())
        shake = over.handshakes
        part.say(f"How connections ended: {ended or '-'}.")
        if shake.count:
            half, most = ms_text(shake.quantile(0.5)), ms_text(shake.quantile(0.99))
            part.say(f"Handshakes of TCP took {half} (p50) and {most} (p99).")
        rows = []
        for (capture, connection, client, broker), sums in over.gaps.largest(MOST_ROWS):
            _, mine, others, late, repeats, unanswered = sums
            rows.append(
                {
                    "capture": capture, "connection": connection, "client": client, "broker": broker,
                    "client_missing": mine, "broker_missing": others, "late": late, "repeats": repeats,
                    "unanswered": unanswered,
                }
            )  # fmt: skip
        said = "Bytes that the capture has not, segments that came late or again, requests without a response."
        return part.table("Connections that are not whole", _GAPS, rows, len(over.gaps) - len(rows), said)

    def _versions(self) -> _Part:
        part = _Part("versions", "Versions in use")
        over = self.over
        used: dict[tuple[str, int], dict[str, int]] = {}
        for (api, version, client), (count,) in over.users.sums.items():
            who = used.setdefault((api, version), {})
            name = "-" if client is None else client
            who[name] = who.get(name, 0) + count
        rows = [
            {"api": api, "version": version, "requests": count, "who": _names(used.get((api, version), {}))}
            for (api, version), (count,) in sorted(over.versions.largest(MOST_ROWS))
        ]
        return part.table("Versions of APIs", _VERSIONS, rows, len(over.versions) - len(rows))

    def _groups(self) -> _Part:
        over = self.over
        part = _Part("groups", "Groups")
        if over.generations.of:
            part.chart("groups", "Over time")
        who: dict[str, dict[str, int]] = {}
        for (group, _, client), (count,) in over.members.largest(10_000):
            who.setdefault(group, {})["-" if client is None else client] = count
        lags = {group: (lag, partitions) for group, lag, partitions in over.lags()}
        rows = []
        for group, (_, joins, leaves, beats, commits) in over.groups.largest(MOST_ROWS):
            line = over.generations.of.get(group, {})
            lag, partitions = lags.get(group, (None, None))
            rows.append(
                {
                    "group": group, "who": _names(who.get(group, {})), "joins": joins, "leaves": leaves,
                    "heartbeats": beats, "commits": commits, "lag": lag, "partitions": partitions,
                    "generation": max((values[1] for values in line.values()), default=None),
                }
            )  # fmt: skip
        said = "Lag: the end of the log less what was committed last, where the capture has both."
        part.table("Groups", _GROUPS, rows, len(over.groups) - len(rows), said)
        self._rebalances(part)
        courses = over.courses
        busiest = sorted(
            (name for name, one in courses.groups.items() if one.members),
            key=lambda name: (-len(courses.groups[name].members), name),
        )
        if busiest:
            part.parts.append("<h3>Members over time</h3>\n")
            part.say("Who was there, and who had which partitions. Grey: it had none.")
        if len(busiest) > _MOST_COURSES:
            part.say(f"The {_MOST_COURSES} of {len(busiest)} groups with the most members are drawn.")
        for group in busiest[:_MOST_COURSES]:
            part.courses(group, courses)
        return part

    def _rebalances(self, part: _Part) -> None:
        """Why groups rebalanced, and who made them."""
        courses = self.over.courses
        every = sorted(courses.rebalances(), key=lambda one: one[1].time)
        rows = [
            {
                "group": group, "began": time_text(one.time), "took": one.took_ms, "cause": one.cause.replace("_", " "),
                "who": courses.who(group, one.member), "member": one.member, "frame": one.frame,
                "capture": one.capture and public(one.capture).rpartition("/")[2],
            }
            for group, one in every
        ]  # fmt: skip
        more = sum(one.rebalances.more for one in courses.groups.values())
        if rows:
            columns = [*_REBALANCES, *([_text("capture")] if self.captures > 1 else [])]
            part.table("Rebalances", columns, rows, more, "Whose request began each, and the frame of that.")

    def _transactions(self) -> _Part:
        flows = self.over.flows
        part = _Part("transactions", "Transactions")
        rows = []
        for name, (count, *ends) in flows.ends.largest(MOST_ROWS):
            records, size, held, long, _ = flows.wrote.sums.get(name, [0] * 5)
            rows.append(
                {
                    "transaction": name, "clients": _names(flows.clients.get(name, {})) or None, "all": count,
                    "waited": _names(flows.waited.get(name, {})) or None,
                    **dict(zip(ENDS, ends, strict=True)), "records": records, "bytes": size,
                    **_quantiles(flows.durations.get(name, Latencies())), "held_ms": float(long) if held else None,
                    "held_records": held,
                }
            )  # fmt: skip
        said = "From begin to end; readers of committed records wait for the earliest transaction that is open."
        return part.table("By transactional id", _TRANSACTIONS, rows, len(flows.ends) - len(rows), said)

    def _journeys(self) -> _Part:
        flows = self.over.flows
        part = _Part("journeys", "From producer to consumer")
        if flows.waits.of:
            part.chart("ways", "From Produce to Fetch over time")
        rows = []
        for key, (got, again, skipped, missing, lag) in flows.ways.largest(MOST_ROWS):
            after = flows.committed.get(key, Latencies())
            rows.append(
                {
                    "topic": key[0], "reader": key[1], "got": got, "again": again, "skipped": skipped,
                    "missing": missing, "lag": lag, **_quantiles(flows.fetched.get(key, Latencies())),
                    "commit_p50": after.quantile(0.5), "commit_p99": after.quantile(0.99),
                }
            )  # fmt: skip
        said = "Records, and how long after their Produce request they were fetched and committed."
        part.table("By topic and group", _JOURNEYS, rows, len(flows.ways) - len(rows), said)
        # The way of records ends at a Fetch. What a share group got is another table.
        nobody = [one for one in flows.nobody.most_common() if one[0] not in self.over.shared]
        rows = [{"topic": topic, "records": count} for topic, count in nobody[:MOST_ROWS]]
        said = "Topics that share groups read are left out." if len(nobody) < len(flows.nobody) else ""
        return part.table("Records that nobody got in the capture", _NOBODY, rows, len(nobody) - len(rows), said)

    def _lineage(self) -> _Part:
        part = _Part("lineage", "Lineage")
        for said in lineage.summary(self.edges):
            part.say(said)
        if self.edges:
            part.chart("graph", "Who writes and who reads")
            if 0 < len(self.drawn) < (topics := len({one.topic for one in self.edges if one.role != "replicates"})):
                part.say(f"The {len(self.drawn):,} of {topics:,} topics with the most bytes are drawn.")
            part.answer("Edges", lineage.SHOWN, self.edges, lineage.batch_of)
        return part

    def _audit(self) -> _Part:
        part = _Part("audit", f"Upgrade to Kafka {self.judged.target}")
        for said in audit.summary(self.judged):
            part.say(said)
        return part.answer("Clients", audit.SHOWN, self.judged.clients, self.judged.batch_of)

    # -- what the script draws

    def charts(self) -> dict[str, Any]:
        """What the script draws."""
        over, clock = self.over, self.over.clock
        buckets = clock.range()
        seconds = clock.width / 1e6
        return {
            "x": [bucket * clock.width / 1e6 for bucket in buckets],
            "width": seconds,
            "traffic": {
                name: _lines(over.traffic, buckets, which, seconds)
                for which, name in enumerate(("frames", "requests", "bytes", "errors"))
            },
            "waits": self._waits(buckets),
            "flow": {
                f"{measure} {direction}": _lines(over.flow, buckets, which, seconds, direction)
                for direction in ("written", "read")
                for which, measure in enumerate(("bytes", "records"))
            },
            "wrong": {"errors": _lines(over.wrong, buckets, 0, seconds)},
            "groups": {
                "generation": [[name, list(_rising(some))] for name, some in _lines(over.generations, buckets, 1)],
                "members": _lines(over.generations, buckets, 2),
                "requests": _lines(over.generations, buckets, 0, seconds),
            },
            "ways": self._ways(buckets),
            "graph": self._graph(),
        }

    def _waits(self, buckets: range) -> dict[str, list[list[Any]]]:
        return self._over_time(self.over.waits, buckets)

    def _ways(self, buckets: range) -> dict[str, list[list[Any]]]:
        """How long records take, by topic and group."""
        made: dict[str, list[list[Any]]] = {}
        for key, lines in self._over_time(self.over.flows.waits, buckets).items():
            made[f"{key[0]} to {key[1]}" if key else ""] = lines
        return made

    @staticmethod
    def _over_time(waits: Timeline, buckets: range) -> dict[Any, list[list[Any]]]:
        by_api: dict[Any, dict[int, Latencies]] = {}
        for key, line in waits.of.items():
            if key is None:
                continue
            api, step = key
            for bucket, (count,) in line.items():
                for name in (api, ""):
                    by_api.setdefault(name, {}).setdefault(bucket, Latencies()).add(step, count)
        counts = {api: sum(one.count for one in line.values()) for api, line in by_api.items()}
        chosen = sorted(counts, key=lambda api: (-counts[api], str(api)))[: MOST_LINES + 1]
        return {
            api: [
                [f"p{part}", [_rounded(line[b].quantile(part / 100, COARSE)) if b in line else None for b in buckets]]
                for part in (50, 90, 99)
            ]
            for api in chosen
            for line in (by_api[api],)
        }

    def _drawn(self) -> dict[str, dict[tuple[str, str, str], int]]:
        """Topics of the graph, those with the most bytes first: who writes and reads each, and how many bytes.

        A topic is drawn with all of its arrows, or not at all. Of one that has too many alone, the largest are drawn.
        """
        topics: dict[str, dict[tuple[str, str, str], int]] = {}
        for edge in self.edges:
            if edge.role == "replicates":
                continue
            kind = "writer" if edge.role == "writes" else "reader"
            names = [(kind, group, "group") for group in edge.groups] if kind == "reader" else []
            mine = topics.setdefault(edge.topic, {})
            for name in names or [(kind, edge.client_id or "-", edge.client_host)]:
                mine[name] = mine.get(name, 0) + edge.bytes
        made: dict[str, dict[tuple[str, str, str], int]] = {}
        left = _MOST_GRAPH
        for topic, mine in sorted(topics.items(), key=lambda one: -sum(one[1].values())):
            if len(mine) > left and made:
                break
            made[topic] = dict(sorted(mine.items(), key=lambda one: -one[1])[:left])
            left -= len(made[topic])
        return made

    def _graph(self) -> dict[str, Any]:
        nodes: dict[tuple[str, str, str], int] = {}
        arrows: list[list[Any]] = []
        for topic, mine in self.drawn.items():
            middle = nodes.setdefault(("topic", topic, ""), len(nodes))
            for name, size in mine.items():
                at = nodes.setdefault(name, len(nodes))
                pair = (at, middle) if name[0] == "writer" else (middle, at)
                arrows.append([*pair, size, bytes_text(size)])
        return {"nodes": [list(name) for name in nodes], "arrows": arrows}


def _why_text(why: Rebalance, who: str | None) -> str:
    said = "a cause that is not in the capture" if why.cause == "not_in_capture" else why.cause.replace("_", " ")
    return said + (f" of {who}" if who else "")


def _rising(values: Iterable[float | None]) -> Iterator[float | None]:
    """What was reached so far: members of the newer protocols have epochs of their own, and join with 0."""
    most = 0.0
    for one in values:
        most = max(most, one or 0)
        yield None if one is None else most


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.3g}")


def _lines(
    line: Timeline, buckets: range, which: int, seconds: float | None = None, direction: str | None = None
) -> list[list[Any]]:
    """The lines of a chart: a name and its values, by the second. ``direction``: only keys that begin with it."""
    sums: dict[Any, float] = {}
    for key, values in line.of.items():
        if key is not None and (direction is None or key[0] == direction):
            sums[key] = sum(one[which] for one in values.values())
    chosen = [key for key in sorted(sums, key=lambda key: (-sums[key], str(key))) if sums[key]][:MOST_LINES]
    made = []
    for key in chosen:
        values_of = line.values(key, buckets, which)
        if seconds is not None:
            made.append([key if direction is None else key[1], [_rounded((one or 0) / seconds) for one in values_of]])
        else:
            made.append([key if direction is None else key[1], values_of])
    return made


def _powers(counted: Mapping[tuple[str, int], int], text: Callable[[float | None], str]) -> list[tuple[str, int, int]]:
    powers = [power for _, power in counted]
    made = []
    for power in range(min(powers), max(powers) + 1) if powers else ():
        label = f"{text(2**power)} to {text(2 ** (power + 1))}"
        made.append((label, counted.get(("written", power), 0), counted.get(("read", power), 0)))
    return made


def _names(who: Mapping[str, int], most: int = 5) -> str:
    names = sorted(who, key=lambda name: (-who[name], name))
    said = ", ".join(map(readable, names[:most]))
    return said + (f" and {len(names) - most} more" if len(names) > most else "")


def _rows_of(batch: Any) -> list[Row]:
    """The rows of an answer, with times as text."""
    times = [field.name for field in batch.schema if str(field.type).startswith("timestamp")]
    columns = {name: batch.column(name) for name in batch.schema.names}
    made = {
        name: [None if one is None else time_text(one) for one in column.cast("int64").to_pylist()]
        if name in times
        else column.to_pylist()
        for name, column in columns.items()
    }
    return [dict(zip(made, values, strict=True)) for values in zip(*made.values(), strict=True)]


# --- figures ----------------------------------------------------------------------------------------------------------


def figures(over: Overview) -> dict[str, Any]:
    """What a later report is compared with (``kwire.report.changes``)."""
    return _figures(_Page(over))


def _figures(page: _Page) -> dict[str, Any]:
    over = page.over

    def part(rows: Iterable[tuple[str, Mapping[str, Any]]], known: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, row in rows:
            made.setdefault(readable(name, None), dict(row))
        return {"whole": len(made) == known, "rows": made}

    def counted(counts: Mapping[str, int], measure: str) -> dict[str, Any]:
        return part(((name, {measure: count}) for name, count in list(counts.items())[:_MOST_FIGURES]), len(counts))

    def client(host: str, name: str | None) -> str:
        return f"{host} {'-' if name is None else name}"

    apis = []
    for api, (requests, _, sent, got, errors, _) in over.apis.largest(_MOST_FIGURES):
        found = over.latency(api)
        waits = {"p50": _rounded(found.quantile(0.5)), "p99": _rounded(found.quantile(0.99))}
        apis.append((api, {"requests": requests, "bytes": sent + got, "errors": errors, **waits}))
    counts: dict[str, int] = {}
    for (_, error, _, _), (count,) in over.errors.sums.items():
        counts[error] = counts.get(error, 0) + count
    by_error = [(name, {"errors": count}) for name, count in list(counts.items())[:_MOST_FIGURES]]
    found_by: dict[str, int] = {}
    for one in page.found:
        who = [text for text in (one.client_host, one.client_id, one.group_id, one.topic) if text is not None]
        name = " ".join([one.rule, *who, *([str(one.partition)] if one.partition is not None else [])])
        found_by[name] = found_by.get(name, 0) + one.count
    judged = {
        f"{one.verdict}: {one.host} {', '.join(name or '-' for name in one.client_ids)}": one.requests
        for one in page.judged.clients
    }
    used = [
        (f"{api} v{version}", {"requests": count}) for (api, version), (count,) in over.versions.largest(_MOST_FIGURES)
    ]
    clients = [
        (client(*key), {"requests": sums[1], "bytes": sums[0], "errors": sums[3]})
        for key, sums in over.clients.largest(_MOST_FIGURES)
    ]
    topics = [
        (topic, {"written bytes": sums[1], "written records": sums[3], "read bytes": sums[4], "read records": sums[6]})
        for topic, sums in over.topics.largest(_MOST_FIGURES)
    ]
    return {
        "format": changes.FORMAT,
        "version": changes.VERSION,
        "kwire": __version__,
        "seconds": over.seconds(),
        "target": over.auditor.target,
        "totals": {name: over.totals[name] for name in sorted(over.totals)},
        "parts": {
            "findings": counted(found_by, "count"),
            "verdicts": counted(judged, "requests"),
            "apis": part(apis, len(over.apis)),
            "errors": part(by_error, len(counts) + over.errors.dropped),
            "clients": part(clients, len(over.clients)),
            "topics": part(topics, len(over.topics)),
            "versions": part(used, len(over.versions)),
        },
    }


# --- the page ---------------------------------------------------------------------------------------------------------


def render(over: Overview, captures: Sequence[Source], against: changes.Figures | None = None, before: str = "") -> str:
    """The page. ``against``: the figures of another report, ``before`` its name."""
    page = _Page(over, len(captures))
    sums = _figures(page)
    parts = list(page.sections())
    if against is not None:
        part = _Part("changes", "What changed")
        rows = changes.changes(against, sums)
        said = "Changes of a tenth and more; rates where time matters."
        if against.get("target", sums["target"]) != sums["target"]:
            said += f" Verdicts are not compared: those of before are about Kafka {against['target']}."
        part.table(f"Against {before}", _CHANGES, rows, said=said)
        parts.insert(0, part)
    title = "Kafka traffic"
    if captures:
        first = Path(captures[0].name).name or captures[0].name
        title += f": {first}" + (f" and {len(captures) - 1} more" if len(captures) > 1 else "")
    body = [f"<header><h1>{safe(title)}</h1>\n", '<nav aria-label="Sections">']
    body += [f'<a href="#{one.name}">{safe(one.title)}</a>' for one in parts]
    body.append("</nav></header>\n<main>\n")
    body += _summary(over, captures)
    for part in parts:
        body += part.html()
    body.append("</main>\n")
    body.append(f"<footer><p>kwire {safe(__version__)}. Times are UTC. Charts: uPlot 1.6.32.</p></footer>\n")
    body.append(f"{changes.DATA}{json_text(sums)}</script>\n")
    body.append(f'<script type="application/json" id="charts">{json_text(page.charts())}</script>\n')
    return document(
        title,
        body,
        styles=[_asset("uplot.css"), _asset("report.css")],
        scripts=[_asset("uplot.js"), _asset("report.js")],
        notice=f"This page contains uPlot 1.6.32:\n\n{_asset('uplot-LICENSE.txt')}",
    )


def _summary(over: Overview, captures: Sequence[Source]) -> Iterator[str]:
    between = over.clock.between()
    yield '<section id="summary" class="cards" aria-label="Summary">\n'
    cards = [
        ("from", time_text(between and between[0])),
        ("for", span_text(over.seconds())),
        *((title, text(over.totals[name])) for title, name, text in _TOTALS),
        ("brokers", count_text(len(over.brokers))),
        ("clients", count_text(len(over.clients))),
        ("topics", count_text(len(over.topics))),
    ]
    yield "<dl>" + "".join(f"<div><dt>{safe(name)}</dt><dd>{safe(text)}</dd></div>" for name, text in cards) + "</dl>\n"
    slow = over.slowest()
    if slow is not None:
        said = f"Slow from {time_text(slow[0])} to {time_text(slow[1])}: {slow_text(slow[2])}."
        yield f'<p class="sum"><a href="#latency">{safe(said)}</a></p>\n'
    encrypted = over.connection_statuses["encrypted"]
    if encrypted:
        yield f'<p class="sum">{encrypted:,} connections over TLS were not decrypted.</p>\n'
    strays = over.strays()
    if strays is not None:
        said = f"{strays[0]:,} frames have times that are far from all others ({time_text(strays[1])} to "
        yield f'<p class="sum">{safe(f"{said}{time_text(strays[2])}): the charts leave them out.")}</p>\n'
    for one in captures:
        for note in one.notes:
            yield f'<p class="sum">{safe(one.name)}: {safe(note)}</p>\n'
    yield "</section>\n"
