"""What a person is shown of a row: ``Column``, and the texts that the tables' columns have in common.

Rules kept here:

- Nothing from a capture reaches the terminal as it is. These are shown as ``\\x1b`` and the like:
    - control characters
    - escape sequences
    - characters that write from right to left
- Bytes that are text are shown as text, others in hexadecimal after ``0x``. Null is ``null`` where a null means
  something (keys, values), else ``-``.

A row is a dict by the names of the columns, with times as text (``kwire.tables.terminal``).
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Column",
    "Row",
    "api",
    "attributes",
    "client_ids",
    "direction",
    "full",
    "headers",
    "host",
    "latency",
    "offset",
    "outcome",
    "partition",
    "plain",
    "readable",
    "record_format",
    "said",
    "status",
    "texts",
    "time",
]

Row = dict[str, Any]
"""Type: the columns of one row, by name."""

SHOWN: Final = 200
"""Bytes or characters of a value that are looked at: more fit no column."""
SAID: Final = 4_000
"""Characters of what kwire says: names of captures, which may be of any length, are in it."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table in a terminal: its title, its text for a row, and how it is laid out.

    - ``shrink``: the width down to which it may be cut, or wrapped (``None``: it may not).
    - ``right``: numbers are aligned right.
    - ``least``: how wide it is even if the first rows need less.
    """

    title: str
    text: Callable[[Row], str]
    right: bool = False
    shrink: int | None = None
    least: int = 0
    empty: str | None = "-"
    """A column of nothing else than this text is left out. ``None``: it is shown in any case."""
    value: Callable[[Row], float | None] | None = None
    """The number that its text is made of, where it is one: what a page sorts by."""
    wrap: bool = False
    """Whether its text is what was asked for: it continues in further lines, and is never cut."""


def readable(value: bytes | str, most: int | None = SHOWN) -> str:
    """``value`` for people: text with what is not printable escaped, or hexadecimal after ``0x``.

    All that a terminal is given and kwire did not write goes through here: messages and file names too. ``most``: how
    many characters of a text are shown (``None``: all). Of bytes it is always ``SHOWN``.
    """
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
        text = value[:most]
        cut = len(text) < len(value)
    if not text.isprintable() or not text.isascii():
        text = "".join(map(_visible, text))
    return text + "…" if cut else text


def _hex(value: bytes) -> str:
    return f"0x{value[: SHOWN // 2].hex()}" + ("…" if len(value) > SHOWN // 2 else "")


def _visible(char: str) -> str:
    if char.isprintable() and unicodedata.bidirectional(char) not in ("R", "AL", "AN"):
        return char
    return char.encode("unicode_escape", "backslashreplace").decode("ascii")


# --- Columns by name --------------------------------------------------------------------------------------------------


def plain(name: str, missing: str = "-") -> Callable[[Row], str]:
    """The text of a column of text, bytes or numbers."""

    def text(row: Row) -> str:
        value = row[name]
        return missing if value is None else readable(value) if isinstance(value, (str, bytes)) else str(value)

    return text


def said(name: str) -> Callable[[Row], str]:
    """The text of a column of sentences."""
    return lambda row: "-" if row[name] is None else readable(row[name], SAID)


def time(name: str) -> Callable[[Row], str]:
    """The text of a column of times."""
    return lambda row: "-" if row[name] is None else row[name].replace("T", " ").rstrip("Z")


def attributes(name: str) -> Callable[[Row], str]:
    """The text of a column of maps."""

    def text(row: Row) -> str:
        pairs = row[name] or {}
        return (
            ", ".join(f"{readable(key)}={'null' if one is None else readable(one)}" for key, one in pairs.items())
            or "-"
        )

    return text


def headers(row: Row) -> str:
    """The headers of a record."""
    if not row["headers"]:
        return "-"
    return ", ".join(
        f"{'null' if one['key'] is None else readable(one['key'])}="
        f"{'null' if one['value'] is None else readable(one['value'])}"
        for one in row["headers"]
    )


def host(side: str) -> Callable[[Row], str]:
    """The address and port of an end of a connection: ``client`` or ``broker``."""

    def text(row: Row) -> str:
        address, port = row[f"{side}_host"], row[f"{side}_port"]
        if address is None:
            return "-"
        return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

    return text


def texts(*names: str) -> Callable[[Row], str]:
    """Those of some columns that have a text."""

    def text(row: Row) -> str:
        return " ".join(readable(row[name]) for name in names if row[name]) or "-"

    return text


def client_ids(row: Row) -> str:
    """All client_ids of a row."""
    return ", ".join("null" if one is None else readable(one) for one in row["client_ids"]) or "-"


def direction(row: Row) -> str:
    """An arrow for the direction of a frame."""
    return {"request": "→", "response": "←"}.get(row["direction"], "-")


def api(row: Row) -> str:
    """The API and version of a frame."""
    if row["api_key"] is None:
        return "-"
    return f"{row['api_name'] or row['api_key']} v{row['api_version']}"


def latency(row: Row) -> str:
    """The latency of a response in milliseconds."""
    return "-" if row["latency_ms"] is None else f"{row['latency_ms']:.3f}"


def status(row: Row) -> str:
    """Status of a row, and its error where the table has that column."""
    error = row.get("error")
    return str(row["status"]) if error is None else f"{row['status']}: {readable(error)}"


def partition(row: Row) -> str:
    """Topic, by its name or else its id, and partition."""
    topic = row["topic"] if row["topic"] is not None else row.get("topic_id")
    if topic is None:
        return "-"
    return readable(topic) if row["partition"] is None else f"{readable(topic)}-{row['partition']}"


def offset(row: Row) -> str:
    """An offset, or the word for the one that is asked for."""
    if row["offset"] is None:
        return row["offset_spec"] or "-"
    return str(row["offset"])


def outcome(row: Row) -> str:
    """The error that a message reports, and what is wrong with the message."""
    if row["status"] != "ok":
        return status(row)
    return "ok" if row["error"] in (None, "NONE") else readable(row["error"])


def record_format(row: Row) -> str:
    """Magic and compression of a record or batch."""
    if row["magic"] is None:
        return "-"
    return f"v{row['magic']} {row['compression'] or '?'}"


# --- Columns that were asked for by name ------------------------------------------------------------------------------


def full(field: pa.Field) -> Column:
    """A column of a table as it is, for those who choose what they are shown."""
    import pyarrow as pa

    kind, name = field.type, field.name
    if pa.types.is_timestamp(kind):
        return Column(name, time(name), empty=None)
    if pa.types.is_map(kind):
        return Column(name, attributes(name), shrink=12, empty=None)
    if pa.types.is_nested(kind):
        return Column(name, headers if name == "headers" else _nested(name), shrink=12, empty=None)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return Column(name, plain(name, "null" if name in ("key", "value") else "-"), shrink=8, empty=None)
    return Column(name, plain(name), right=not pa.types.is_boolean(kind), empty=None)


def _nested(name: str) -> Callable[[Row], str]:
    def text(row: Row) -> str:
        return readable(json.dumps(row[name], default=readable, ensure_ascii=False)) if row[name] else "-"

    return text
