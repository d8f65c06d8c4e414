"""Rows as a table that fits the terminal.

The first rows decide how wide each column is; from then on rows are written as they come, and what does not fit ends
in an ellipsis. Where the columns do not fit the terminal, the flexible ones shrink. Rules kept here:

- Nothing from a capture reaches the terminal as it is: control characters, escape sequences and characters that write
  from right to left are shown as ``\\x1b`` and the like.
- Bytes that are text are shown as text, others in hexadecimal after ``0x``. Null is ``null`` where a null means
  something (keys, values), else ``-``.
"""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final

__all__ = ["Column", "TableWriter", "readable", "render"]

Row = dict[str, Any]

SAMPLE: Final = 200
"""Rows that are looked at before the first is written."""

UNBOUND: Final = 160
"""Width of a table that goes to a file or a pipe."""

SHOWN: Final = 200
"""Bytes or characters of a value that are looked at: more fit no column."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table: its title, its text for a row, and how it is laid out.

    ``shrink`` is the width down to which it may be cut (``None``: it may not), ``right``: numbers stand right,
    ``least``: how wide it is even where the first rows need less.
    """

    title: str
    text: Callable[[Row], str]
    right: bool = False
    shrink: int | None = None
    least: int = 0
    empty: str = "-"
    """A column of nothing else than this text is left out."""


def readable(value: bytes | str) -> str:
    """``value`` for people: text with what is not printable escaped, or hexadecimal after ``0x``."""
    if isinstance(value, bytes):
        head = value[:SHOWN]
        try:
            text = head.decode()
        except UnicodeDecodeError as error:
            # A character that the cut went through is no reason for hexadecimal.
            if len(value) <= SHOWN or error.start < len(head) - 3:
                return _hex(value)
            text = head[: error.start].decode()
        if len(text) > 4 and sum(map(str.isprintable, text)) * 2 < len(text):
            return _hex(value)
        cut = len(value) > SHOWN
    else:
        text = value[:SHOWN]
        cut = len(value) > SHOWN
    if not text.isprintable() or not text.isascii():
        text = "".join(map(_visible, text))
    return text + "…" if cut else text


def _hex(value: bytes) -> str:
    return f"0x{value[: SHOWN // 2].hex()}" + ("…" if len(value) > SHOWN // 2 else "")


def _visible(char: str) -> str:
    if char.isprintable() and unicodedata.bidirectional(char) not in ("R", "AL", "AN"):
        return char
    return char.encode("unicode_escape", "backslashreplace").decode("ascii")


def _width(text: str) -> int:
    """Cells that ``text`` takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _fit(text: str, width: int, column: Column) -> str:
    """``text`` in ``width`` cells, or in more where it may not be cut."""
    own = _width(text)
    if own > width and column.shrink is not None:
        if text.isascii():
            text = text[: width - 1]
        else:
            from rich.cells import set_cell_size

            text = set_cell_size(text, width - 1).rstrip()
        text += "…"
        own = _width(text)
    space = " " * (width - own)
    return space + text if column.right else text + space


def widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], total: int) -> list[int]:
    """How wide each column is, so that all of them and the two spaces between take ``total`` cells where possible."""
    found = [
        max([column.least, _width(column.title), *map(_width, texts)])
        for column, texts in zip(columns, cells, strict=True)
    ]
    excess = sum(found) + 2 * (len(found) - 1) - total
    while excess > 0:
        # The widest gives first, down to the next one, so that narrow columns stay whole.
        able = [i for i, column in enumerate(columns) if column.shrink is not None and found[i] > column.shrink]
        if not able:
            break
        widest = max(able, key=lambda i: found[i])
        shrink = columns[widest].shrink
        assert shrink is not None
        others = [found[i] for i in able if i != widest]
        give = min(excess, max(1, found[widest] - max([shrink, *others])))
        found[widest] -= give
        excess -= give
    return found


def _line(columns: Sequence[Column], wide: Sequence[int], texts: Sequence[str]) -> str:
    fitted = (_fit(text, width, column) for column, width, text in zip(columns, wide, texts, strict=True))
    return "  ".join(fitted).rstrip()


def render(columns: Sequence[Column], rows: Iterable[Row], total: int) -> list[str]:
    """A whole table as lines: the titles, a rule, and the rows."""
    texts = [[column.text(row) for column in columns] for row in rows]
    wide = widths(columns, list(zip(*texts, strict=True)) if texts else [()] * len(columns), total)
    head = _line(columns, wide, [column.title for column in columns])
    return [head, "  ".join("─" * width for width in wide), *(_line(columns, wide, line) for line in texts)]


class TableWriter:
    """Writes the rows of one of kwire's tables to a file as they come."""

    def __init__(self, file: IO[str], table: str) -> None:
        self._file = file
        self._columns: Sequence[Column] = COLUMNS[table]
        self._waiting: list[Row] = []
        self._wide: list[int] = []

    def write(self, rows: Iterable[Row]) -> None:
        """Writes ``rows``, or keeps them until there are enough to decide the widths of the columns."""
        for row in rows:
            if self._wide:
                self._write(row)
            else:
                self._waiting.append(row)
                if len(self._waiting) >= SAMPLE:
                    self.flush()

    def flush(self) -> None:
        """Writes the rows that wait."""
        if self._waiting and not self._wide:
            # Too narrow a terminal gets one line per row all the same, and wraps it.
            total = shutil.get_terminal_size((UNBOUND, 0)).columns if self._file.isatty() else UNBOUND
            cells = [[column.text(row) for row in self._waiting] for column in self._columns]
            kept = [i for i, column in enumerate(self._columns) if any(text != column.empty for text in cells[i])]
            self._columns = [self._columns[i] for i in kept]
            self._wide = widths(self._columns, [cells[i] for i in kept], total)
            self._file.write(_line(self._columns, self._wide, [column.title for column in self._columns]) + "\n")
            self._file.write("  ".join("─" * width for width in self._wide) + "\n")
            for row in self._waiting:
                self._write(row)
            self._waiting = []
        self._file.flush()

    def _write(self, row: Row) -> None:
        self._file.write(_line(self._columns, self._wide, [column.text(row) for column in self._columns]) + "\n")


# --- The columns of the tables ---------------------------------------------------------------------------------


def _plain(name: str, missing: str = "-") -> Callable[[Row], str]:
    def text(row: Row) -> str:
        value = row[name]
        return missing if value is None else readable(value) if isinstance(value, (str, bytes)) else str(value)

    return text


def _time(name: str) -> Callable[[Row], str]:
    return lambda row: "-" if row[name] is None else row[name].replace("T", " ").rstrip("Z")


def _host(row: Row, side: str) -> str:
    host, port = row[f"{side}_host"], row[f"{side}_port"]
    if host is None:
        return "-"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _way(row: Row) -> str:
    return {"request": "→", "response": "←"}.get(row["direction"], "-")


def _api(row: Row) -> str:
    if row["api_key"] is None:
        return "-"
    return f"{row['api_name'] or row['api_key']} v{row['api_version']}"


def _latency(row: Row) -> str:
    return "-" if row["latency_ms"] is None else f"{row['latency_ms']:.3f}"


def _status(row: Row) -> str:
    return row["status"] if row["error"] is None else f"{row['status']}: {readable(row['error'])}"


def _partition(row: Row) -> str:
    topic = row["topic"] if row["topic"] is not None else row["topic_id"]
    if topic is None:
        return "-"
    return readable(topic) if row["partition"] is None else f"{readable(topic)}-{row['partition']}"


def _headers(row: Row) -> str:
    if not row["headers"]:
        return "-"
    return ", ".join(
        f"{'null' if one['key'] is None else readable(one['key'])}="
        f"{'null' if one['value'] is None else readable(one['value'])}"
        for one in row["headers"]
    )


def _attributes(row: Row) -> str:
    if not row["attributes"]:
        return "-"
    return ", ".join(
        f"{readable(key)}={'null' if value is None else readable(value)}" for key, value in row["attributes"].items()
    )


def _kind(row: Row) -> str:
    return " ".join(row[name] for name in ("type", "temporality") if row[name] is not None) or "-"


def _measured(row: Row) -> str:
    """The value of a gauge or a sum; of a distribution, how many values it has and their sum."""
    if row["count"] is not None:
        return str(row["count"]) if row["sum"] is None else f"{row['count']}, sum {_rounded(row['sum'])}"
    return "-" if row["value"] is None else _rounded(row["value"])


def _rounded(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _last(row: Row) -> str:
    return "yes" if row["terminating"] else "-"


def _format(row: Row) -> str:
    if row["magic"] is None:
        return "-"
    return f"v{row['magic']} {row['compression'] or '?'}"


FRAMES: Final = (
    Column("time", _time("timestamp")),
    Column("client", lambda row: _host(row, "client"), shrink=15),
    Column("", _way),
    Column("broker", lambda row: _host(row, "broker"), shrink=12),
    Column("api", _api, shrink=12),
    Column("corr", _plain("correlation_id"), right=True),
    Column("client_id", _plain("client_id"), shrink=8),
    Column("size", _plain("size"), right=True, least=7),
    Column("ms", _latency, right=True, least=8),
    Column("status", _status, shrink=8),
)

MESSAGES: Final = (
    Column("time", _time("timestamp"), shrink=15),
    Column("client", lambda row: _host(row, "client"), shrink=15),
    Column("", _way),
    Column("api", _api, shrink=12),
    Column("corr", _plain("correlation_id"), right=True),
    Column("status", _status, shrink=8, empty="ok"),
    Column("body", _plain("body"), shrink=30),
)

RECORDS: Final = (
    Column("source", _plain("source"), least=len("produce")),
    Column("partition", _partition, shrink=12),
    Column("offset", _plain("offset"), right=True, least=8),
    Column("timestamp", _time("timestamp")),
    Column("key", _plain("key", "null"), shrink=8, empty="null"),
    Column("value", _plain("value", "null"), shrink=16),
    Column("headers", _headers, shrink=12),
    Column("format", _format, least=len("v1 snappy")),
    Column("control", _plain("control_type")),
    Column("status", _status, shrink=8, empty="ok"),
)

CLIENT_METRICS: Final = (
    Column("time", _time("timestamp")),
    Column("client_id", _plain("client_id"), shrink=8),
    Column("instance", _plain("client_instance_id"), shrink=8),
    Column("metric", _plain("metric"), shrink=54),
    Column("attributes", _attributes, shrink=12),
    Column("type", _kind, shrink=9),
    Column("value", _measured, right=True),
    Column("unit", _plain("unit")),
    Column("last", _last),
    Column("compression", _plain("compression"), shrink=4),
    Column("status", _status, shrink=8, empty="ok"),
)

LOG_RECORDS: Final = RECORDS[1:]

LOG_RECORDS_DEEP: Final = (
    *(column for column in LOG_RECORDS if column.title not in ("key", "value", "headers", "control")),
    Column("record", _plain("record_type"), shrink=16),
    Column("key", _plain("decoded_key"), shrink=20),
    Column("value", _plain("decoded_value"), shrink=20),
)

BATCHES: Final = (
    Column("position", _plain("position"), right=True, least=8),
    Column("partition", _partition, shrink=12),
    Column("first", _plain("base_offset"), right=True),
    Column("last", _plain("last_offset"), right=True),
    Column("records", _plain("count"), right=True),
    Column("size", _plain("size"), right=True, least=7),
    Column("latest", _time("max_timestamp")),
    Column("format", _format, least=len("v1 snappy")),
    Column("producer", _plain("producer_id"), right=True),
    Column("epoch", _plain("partition_leader_epoch"), right=True),
    Column("crc", lambda row: "ok" if row["crc_ok"] else "wrong"),
    Column("status", _status, shrink=8, empty="ok"),
)

CLOUDEVENTS: Final = (
    Column("source", _plain("record_source")),
    Column("partition", _partition, shrink=12),
    Column("offset", _plain("offset"), right=True),
    Column("key", _plain("key", "null"), shrink=8, empty="null"),
    Column("mode", _plain("mode")),
    Column("type", _plain("type"), shrink=16),
    Column("event source", _plain("source"), shrink=12),
    Column("id", _plain("id"), shrink=8),
    Column("subject", _plain("subject"), shrink=8),
    Column("time", _time("time")),
    Column("data type", _plain("datacontenttype"), shrink=8),
    Column("data", _plain("data", "null"), shrink=16),
    Column("extensions", lambda row: _attributes({"attributes": row["extensions"]}), shrink=12),
    Column("error", _plain("error"), shrink=24),
)

HONO: Final = (
    Column("source", _plain("record_source")),
    Column("tenant", _plain("tenant"), shrink=8),
    Column("device", _plain("device_id"), shrink=8),
    Column("partition", _plain("partition"), right=True),
    Column("offset", _plain("offset"), right=True),
    Column("created", _time("creation_time")),
    Column("qos", _plain("qos"), right=True),
    Column("ttd", _plain("ttd"), right=True),
    Column("ttl", _plain("ttl"), right=True),
    Column("expired", _plain("expired")),
    Column("content type", _plain("content_type"), shrink=12),
    Column("encoding", _plain("content_encoding"), shrink=8),
    Column("error", _plain("error"), shrink=24),
)

COLUMNS: Final = {
    "frames": FRAMES,
    "messages": MESSAGES,
    "records": RECORDS,
    "client_metrics": CLIENT_METRICS,
    "log_records": LOG_RECORDS,
    "log_records_deep": LOG_RECORDS_DEEP,
    "batches": BATCHES,
    "cloudevents": CLOUDEVENTS,
    "hono": HONO,
}
"""What a person is shown of each table; the other formats have every column."""
