"""Rows as a notebook shows them: the same in text and HTML, safe whatever a capture says, and not too many."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from kwire import capture
from kwire.report.shown import MOST, show

CAPTURE = Path(__file__).parents[2] / "golden" / "kafka-3.9-zk-kafka-python" / "first-light.pcap"
COLUMNS = ["frame", "timestamp", "client_id", "api_name", "latency_ms"]


def frames() -> list[pa.RecordBatch]:
    return list(capture.read(CAPTURE, "frames", columns=COLUMNS))


def texts(page: str) -> list[list[str]]:
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in page.split("<tr>")[1:]]


def test_text_and_html_have_the_same_cells() -> None:
    shown = show(frames(), 5)
    head, rule, *lines, rest = repr(shown).splitlines()
    assert set(rule) == {"─", " "}
    rows = texts(shown._repr_html_())
    assert head.split() == rows[0] == COLUMNS
    assert [re.split("  +", line.strip()) for line in lines] == rows[1:]
    total = sum(batch.num_rows for batch in frames())
    assert rest == f"… {total - 5} more"
    assert f"<p>{rest}</p>" in shown._repr_html_()
    assert (shown.rows, shown.left) == (5, total - 5)


def test_tables_batches_and_readings_are_shown_alike() -> None:
    batches = frames()
    reading = capture.read(CAPTURE, "frames", columns=COLUMNS)
    assert repr(show(pa.Table.from_batches(batches))) == repr(show(reading)) == repr(show(batches))
    assert show(batches[0]).rows == min(MOST, batches[0].num_rows)


@pytest.mark.parametrize("most", [0, 1, 3, 4, 100])
def test_rows_that_are_not_shown_are_counted(most: int) -> None:
    batches = [pa.record_batch({"number": pa.array([1, 2], pa.int64())})] * 2
    shown = show(batches, most)
    assert (shown.rows, shown.left) == (min(most, 4), 4 - min(most, 4))
    assert len(texts(shown._repr_html_())) == 1 + min(most, 4)


def test_no_rows_are_said_to_be_none() -> None:
    empty = pa.table({"number": pa.array([], pa.int64())})
    for shown in show([]), show(empty):
        assert repr(shown) == "no rows"
        assert "<p>no rows</p>" in shown._repr_html_()


def test_texts_of_a_capture_are_escaped() -> None:
    hostile = "<script>\x1b[31m&\u202e</div>\n\nx"
    shown = show(pa.table({"client_id": [hostile], "key": [b"<b>"]}))
    page = shown._repr_html_()
    assert "<script" not in page
    assert "<b>" not in page
    assert not set("\x1b\u202e\n") & set(page.replace("</tr>\n", "").replace("<tbody>\n", ""))
    assert "&lt;script&gt;\\x1b[31m&amp;\\u202e&lt;/div&gt;\\n\\nx" in page
    assert "\x1b" not in repr(shown)


def test_times_are_those_of_the_terminal() -> None:
    time = pa.array([datetime(2026, 11, 22, 19, 7, tzinfo=UTC)], pa.timestamp("us", tz="UTC"))
    assert "2026-11-22 19:07:00.000000" in repr(show(pa.table({"timestamp": time})))


def test_what_is_wrong_with_a_capture_is_raised(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(CAPTURE.read_bytes()[:-5])
    from kwire import CaptureError

    with pytest.raises(CaptureError, match=r"cut\.pcap"):
        show(capture.read(cut, "frames"))
