"""What is beyond a limit is a row with the status ``too_large``, and all other rows stay."""

from __future__ import annotations

import io
from typing import Any

import pytest
import zstandard
from made_captures import read
from packets import Connection, metadata, pcap, produce, request
from record_sets import batch

from kwire import log, tables
from kwire.kernels.engine import MACHINE, PYTHON, using
from kwire.limits import Limits

SMALL = b"\x0c\0\0\0\1\1\0"
"""A record of seven bytes: no key, no value, no headers."""


def topics(count: int) -> bytes:
    """A Metadata request v9 of so many topics without a name."""
    number = count + 1
    varint = b""
    while number > 127:
        varint += bytes([number & 127 | 128])
        number >>= 7
    return request(3, 9, 2, b"\0" + varint + bytes([number]) + b"\1\0" * count + bytes(4))


def told(rows: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    return [(row["status"], "beyond the limit " in (row["error"] or "")) for row in rows]


@pytest.mark.parametrize("columns", [None, ["status", "error"], ["body", "status", "error"]])
def test_a_body_of_structs_of_two_bytes_is_too_large_and_other_rows_stay(columns: list[str] | None) -> None:
    data = pcap(Connection(mss=60_000).open().send(metadata(1), topics(1 << 20), metadata(3)).packets)
    rows = read(data, "messages", columns=columns)
    assert told(rows) == [("ok", False), ("too_large", True), ("ok", False)]
    assert "Limits(objects=...) raises it" in rows[1]["error"]
    if columns is None:
        assert [row["body"] is None for row in rows] == [False, True, False]
        assert [row["status"] for row in read(data, "frames")] == ["ok"] * 3


def test_a_body_that_would_be_too_much_text_is_too_large() -> None:
    # Six bytes for each control character: told before there is text, and after.
    body = b"\0\0\0\1\0\x64" + b"\1" * 100
    data = pcap(Connection().open().send(request(3, 0, 1, body)).packets)
    assert told(read(data, "messages", limits=Limits(text=700))) == [("ok", False)]
    for most in (620, 610, 100):
        (row,) = read(data, "messages", limits=Limits(text=most))
        assert (row["status"], row["body"]) == ("too_large", None)
        assert f"beyond the limit text of {most}; Limits(text=...) raises it" in row["error"]
    # Where the text is not wanted, it is not made.
    assert told(read(data, "messages", columns=["status", "error"], limits=Limits(text=1))) == [("ok", False)]


def test_a_body_with_an_unknown_tagged_field_that_would_be_too_much_text_is_too_large() -> None:
    body = b"\0\2" + b"\0" * 16 + b"\x65" + b"\1" * 100 + b"\0" + bytes(2) + b"\1\x63\1x"
    data = pcap(Connection().open().send(request(3, 12, 1, body)).packets)
    (row,) = read(data, "messages")
    assert '"unknown_tagged_fields":{"99":"eA=="}' in row["body"]
    size = len(row["body"])
    for engine in (PYTHON, MACHINE):
        with using(engine):
            assert read(data, "messages", limits=Limits(text=size)) == [row]
            for most in (size - 1, 100):
                assert told(read(data, "messages", limits=Limits(text=most))) == [("too_large", True)]


def test_a_bomb_in_a_record_set_is_too_large_and_what_is_around_it_stays() -> None:
    bomb = batch(zstandard.ZstdCompressor().compress(bytes(4096)), 1, attributes=4)
    good = batch(SMALL, 1)
    data = pcap(Connection().open().send(produce(1, 1, good + bomb + good)).packets)
    limits = Limits(decompressed=1000)
    rows = read(data, "records", limits=limits)
    assert told(rows) == [("ok", False), ("ok", False), ("too_large", True)]
    assert "beyond the limit decompressed of 1000; Limits(decompressed=...) raises it" in rows[2]["error"]
    segment = [row for part in log.read(io.BytesIO(good + bomb), limits=limits) for row in part.to_pylist()]
    assert told(segment) == [("ok", False), ("too_large", True)]


def test_of_many_problems_the_last_row_says_how_many_more_there_were() -> None:
    sets = batch(SMALL, 1) + (bytes(8) + b"\0\0\0\x0e" + bytes(4) + b"\7" + bytes(9)) * 1000
    data = pcap(Connection().open().send(produce(1, 1, sets)).packets)
    rows = read(data, "records", limits=Limits(problems=10))
    assert told(rows) == [("ok", False), *[("malformed", False)] * 10, ("too_large", True)]
    assert "990 more problems, up to here: beyond the limit problems of 10" in rows[-1]["error"]


def test_what_a_capture_may_decompress_in_all_does_not_begin_anew_with_each_window() -> None:
    bomb = batch(zstandard.ZstdCompressor().compress(SMALL + bytes(200_000)), 1, attributes=4)
    sent = [produce(number, 1, bomb) for number in range(20)]
    data = pcap(Connection().open().send(*sent).packets)
    for window in (None, 2000):
        rows = read(data, "records", limits=Limits(total=1_000_000), window=window)
        # Trailing zeros are a problem of each batch that could be decompressed.
        found = [row["status"] for row in rows if row["offset"] is None or row["status"] == "ok"]
        beyond = [row for row in rows if row["status"] == "too_large"]
        assert found.count("ok") == 20 - len(beyond)
        assert 14 <= len(beyond) <= 17
        assert "beyond the limit total of 1000000" in beyond[-1]["error"]
    parts = [
        row for part in log.read(io.BytesIO(bomb * 20), limits=Limits(total=1_000_000)) for row in part.to_pylist()
    ]
    assert [row["status"] for row in parts].count("too_large") in range(14, 18)


def test_records_of_kafkas_own_topics_have_limits_with_deep() -> None:
    key, value = b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\3" + bytes(8) + b"\xff\xff\xff\xff\0\0" + bytes(8)
    data = batch(record(value, key=key), 1)
    deep = tables.table("records", "log").deep
    assert deep is not None

    def rows(**limits: int) -> list[dict[str, Any]]:
        name = "__consumer_offsets-0/00000000000000000000.log"
        terms = {"limits": Limits(**limits)}
        return [row for one in deep.read(io.BytesIO(data), name=name, **terms) for row in one.to_pylist()]

    (good,) = rows()
    assert good["record_type"] == "OffsetCommit"
    (bad,) = rows(text=50)
    assert (bad["record_type"], bad["decoded_value"], bad["status"]) == (None, None, "too_large")
    assert bad["value"] == value
    assert "beyond the limit text of 50; Limits(text=...) raises it" in bad["error"]
    assert good | dict.fromkeys(("record_type", "decoded_key", "decoded_value")) == bad | {
        "status": "ok",
        "error": None,
    }


def test_an_event_in_json_has_a_limit() -> None:
    event = b'{"specversion":"1.0","id":"1","source":"s","type":"t","data":{}}'
    headers = b"\2\x18content-type\x38application/cloudevents+json"
    data = pcap(Connection().open().send(produce(1, 1, batch(record(event, headers), 1))).packets)
    (good,) = read(data, "cloudevents")
    assert (good["id"], good["error"]) == ("1", None)
    (bad,) = read(data, "cloudevents", limits=Limits(objects=1000))
    assert (bad["id"], bad["mode"]) == (None, "structured")
    assert f"value of {len(event)} bytes beyond the limit objects of 1000" in bad["error"]


def test_a_name_that_no_topic_can_have_is_not_repeated_without_end() -> None:
    long, good = "t" * 250, batch(SMALL, 1)
    data = pcap(
        Connection()
        .open()
        .send(
            produce(1, 1, good * 5 + good[:17] + bytes(4) + good[21:], topic=long),
            produce(2, 1, good * 2 + bytes(8) + b"\0\0\0\x0e" + bytes(4) + b"\7" + bytes(9), topic=long),
            produce(3, 1, good * 5, topic="t" * 249),
        )
        .packets
    )
    rows = read(data, "records", limits=Limits(text=1000))
    every = read(data, "records")
    assert [row["topic"] for row in rows] == [long] * 4 + [None] * (len(rows) - 9) + ["t" * 249] * 5
    for row, whole in zip(rows, every, strict=True):
        if row["topic"] is None:
            assert row["status"] == "too_large"
            assert "the name of the topic, 250 bytes: beyond the limit text of 1000" in row["error"]
            assert (whole["error"] or "") in row["error"]
            row |= {name: whole[name] for name in ("topic", "status", "error")}
        assert row == whole
    assert {row["status"] for row in every} == {"ok", "corrupt", "malformed"}
    # Where the names are not wanted, they cost nothing.
    assert "too_large" not in {
        row["status"] for row in read(data, "records", columns=["status"], limits=Limits(text=1))
    }


def record(value: bytes, headers: bytes = b"\0", key: bytes | None = None) -> bytes:
    """A record of magic 2; ``headers`` with their count in front."""

    def varint(number: int) -> bytes:
        number <<= 1
        return bytes([number]) if number < 128 else bytes([number & 127 | 128, number >> 7])

    named = b"\1" if key is None else varint(len(key)) + key
    body = b"\0\0\0" + named + varint(len(value)) + value + headers
    return varint(len(body)) + body
