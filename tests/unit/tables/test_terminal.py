"""The table that ``kwire decode`` prints: what it shows of hostile values, and how it fits a terminal."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from kwire import capture, tables
from kwire.tables.showing import Column, Row, readable
from kwire.tables.terminal import TableWriter, render, rows_of


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"", ""),
        (b"order-17", "order-17"),
        ("Zürich".encode(), "Zürich"),
        (b'{"a": 1}', '{"a": 1}'),
        (b"a\nb\x00", "a\\nb\\x00"),
        (b"\xff\xfe\x00\x01", "0xfffe0001"),
        (bytes(8), "0x0000000000000000"),
        ("plain", "plain"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("abc\u202edef", "abc\\u202edef"),
        ("\ud800", "\\ud800"),
    ],
)
def test_readable_shows_text_and_escapes_what_a_terminal_would_obey(value: bytes | str, shown: str) -> None:
    assert readable(value) == shown


def test_readable_cuts_a_long_text_even_in_the_middle_of_a_character() -> None:
    text = readable("é".encode() * 101 + b"x")
    assert text == "é" * 100 + "…"
    # The cut at 200 bytes goes through the last character.
    assert readable(b"x" + "é".encode() * 200) == "x" + "é" * 99 + "…"


def test_readable_shows_long_bytes_as_shortened_hexadecimal() -> None:
    assert readable(b"\xff" * 1000) == "0x" + "ff" * 100 + "…"


COLUMNS = (
    Column("id", lambda row: str(row["id"]), right=True),
    Column("text", lambda row: str(row["text"]), shrink=6),
)


def test_render_aligns_columns() -> None:
    rows = [{"id": 1, "text": "abc"}, {"id": 20, "text": "d"}]
    assert render(COLUMNS, rows, 80) == ["id  text", "──  ────", " 1  abc", "20  d"]


def test_render_shrinks_a_flexible_column_to_the_width_of_the_terminal() -> None:
    rows = [{"id": 1, "text": "abcdefghijklmnop"}]
    assert render(COLUMNS, rows, 14)[2] == " 1  abcdefghi…"
    # Not below what makes sense, however narrow the terminal.
    assert render(COLUMNS, rows, 5)[2] == " 1  abcde…"


def test_render_counts_the_cells_of_wide_characters() -> None:
    rows = [{"id": 1, "text": "注文注文注文"}]
    assert render(COLUMNS, rows, 12)[2] == " 1  注文注…"


def record(**values: object) -> dict[str, object]:
    row: dict[str, object] = {
        "source": "produce",
        "topic": "orders",
        "topic_id": None,
        "partition": 0,
        "offset": 5,
        "timestamp": "2026-11-21T02:18:00.123456Z",
        "key": b"k",
        "value": None,
        "headers": [{"key": "h", "value": b"\x00\xff"}, {"key": "n", "value": None}],
        "magic": 2,
        "compression": "lz4",
        "control_type": None,
        "status": "ok",
        "error": None,
    }
    return row | values


def test_table_writer_leaves_out_columns_without_content() -> None:
    out = io.StringIO()
    writer = TableWriter(out, tables.table("records").shown)
    writer.write([record()])
    writer.flush()
    head, _, row = out.getvalue().splitlines()
    assert head.split() == ["source", "partition", "offset", "timestamp", "key", "value", "headers", "format"]
    assert "orders-0" in row
    assert "h=0x00ff, n=null" in row
    assert "v2 lz4" in row


def test_table_writer_writes_rows_as_they_come_after_the_first_ones() -> None:
    out = io.StringIO()
    writer = TableWriter(out, tables.table("records").shown)
    writer.write(record(offset=n) for n in range(199))
    assert out.getvalue() == ""
    writer.write([record(offset=199)])
    assert len(out.getvalue().splitlines()) == 202
    writer.write([record(offset=200)])
    assert len(out.getvalue().splitlines()) == 203


SAID = (
    Column("verdict", lambda row: str(row["verdict"])),
    Column("client", lambda row: str(row["client"]), shrink=6),
    Column("why", lambda row: str(row["why"]), shrink=20, wrap=True),
    Column("what to do", lambda row: str(row["do"]), shrink=16, wrap=True),
)
WHY = "writes of this client are refused because too few replicas are in sync 日本語の長い名前 " + "x" * 90


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200, None])
def test_text_that_is_the_answer_is_wrapped_and_never_cut(width: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO() if width is None else Terminal()
    monkeypatch.setenv("COLUMNS", str(width))
    writer = TableWriter(file, SAID)
    base = {"verdict": "breaks", "client": "10.0.0.1"}
    rows = [base | {"why": WHY * (1 + k % 2), "do": f"upgrade it {k}"} for k in range(3)]
    # The last is wider than those that decided.
    writer.write([*rows, rows[0]])
    writer.flush()
    writer.write([{**rows[0], "why": WHY * 3, "do": "-"}])
    said = file.getvalue()
    assert "…" not in said
    assert said.count("x") == 90 * 8
    everything = "".join(said.split())
    assert all("".join(row["do"].split()) in everything for row in rows)
    lines = said.splitlines()
    if width is None:
        assert len(lines) == 2 + 5
    else:
        from rich.cells import cell_len

        assert max(map(cell_len, lines)) <= width
    if width in (20, 40):
        assert lines[0].startswith("breaks")
        assert any(line.startswith("  why: ") for line in lines)


def on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, wide: int, columns: tuple[Column, ...], rows: list[Row]
) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(wide))
    file = Terminal()
    writer = TableWriter(file, columns)
    writer.write(rows)
    writer.flush()
    return file.getvalue().splitlines()


OF_SEVERAL = (
    Column("time", lambda row: row["time"]),
    Column("name", lambda row: row["name"], shrink=4),
    Column("size", lambda row: str(row["size"]), right=True),
)


def test_a_row_that_is_wider_than_the_terminal_takes_several_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"time": "10:30:00.123", "name": "first", "size": 7}, {"time": "10:30:01.000", "name": "b", "size": 120}]
    whole = [
        "time          name   size",
        "────────────  ─────  ────",
        "10:30:00.123  first     7",
        "10:30:01.000  b       120",
    ]
    assert on_a_terminal(monkeypatch, 25, OF_SEVERAL, rows) == whole
    # A text that may be cut is cut first.
    assert on_a_terminal(monkeypatch, 24, OF_SEVERAL, rows)[2] == "10:30:00.123  fir…     7"
    assert on_a_terminal(monkeypatch, 20, OF_SEVERAL, rows) == [
        "time          name",
        "  size",
        "─" * 20,
        "10:30:00.123  first",
        "     7",
        "10:30:01.000  b",
        "   120",
    ]
    narrow = on_a_terminal(monkeypatch, 14, OF_SEVERAL, rows)
    assert narrow == [
        "time",
        "  name   size",
        "─" * 14,
        "10:30:00.123",
        "  first     7",
        "10:30:01.000",
        "  b       120",
    ]
    assert max(map(len, narrow)) == 14


def test_no_text_is_cut_in_a_pipe_and_a_row_is_a_line() -> None:
    # ``grep`` of a long client_id found nothing, since the table ended it in an ellipsis.
    piped = io.StringIO()
    writer = TableWriter(piped, OF_SEVERAL)
    rows = [{"time": "t" * 170, "name": "n" * 40, "size": 1}, {"time": "t", "name": "m" * 150, "size": 20}]
    writer.write(rows)
    writer.flush()
    writer.write([{"time": "t", "name": "l" * 190, "size": 3}])
    head, rule, *lines = piped.getvalue().splitlines()
    assert head.split() == ["time", "name", "size"]
    assert rule == f"{'─' * 170}  {'─' * 60}  {'─' * 4}"
    assert [line.split() for line in lines] == [
        ["t" * 170, "n" * 40, "1"],
        ["t", "m" * 150, "20"],
        ["t", "l" * 190, "3"],
    ]


@pytest.mark.parametrize("wide", [40, 80])
@pytest.mark.parametrize("table", [one.name for one in tables.every() if one.file == "capture"])
def test_tables_fit_a_terminal_and_their_times_are_whole(
    monkeypatch: pytest.MonkeyPatch, table: str, wide: int
) -> None:
    file = Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-java" / "clients.pcap"
    made = tables.table(table, "events" if table in tables.names("events") else "capture")
    rows = [row for batch in capture.read(file, table) for row in rows_of(batch)][:50]
    if not rows:
        return
    lines = on_a_terminal(monkeypatch, wide, tuple(made.shown), rows)
    assert max(map(cell_len, lines)) <= wide
    assert not [line for line in lines if re.search(r"\d{4}-\d\d-\d\d [\d:.]*…", line)]
