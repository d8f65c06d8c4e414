"""The table ``messages``: bodies that cannot be decoded."""

from __future__ import annotations

import json

import pytest
from made_captures import exchange, read
from packets import metadata_answer, pcap, request, response

import kwire
from kwire import messages, tables
from kwire.kernels.engine import MACHINE, PYTHON, Engine, using


def test_a_body_that_is_not_what_its_version_says_is_malformed_in_both_tables() -> None:
    connection = exchange().send(request(3, 0, 2, b"\0\0\0\x09"))
    *_, row = read(pcap(connection.packets), "messages")
    assert (row["status"], row["body"]) == ("malformed", None)
    assert "MetadataRequest v0" in row["error"]
    *_, row = read(pcap(connection.packets), "frames")
    assert (row["status"], row["error"]) == ("malformed", "the body is not what version 0 says")


@pytest.mark.parametrize("engine", [PYTHON, MACHINE])
def test_a_body_with_bytes_behind_it_keeps_it_and_says_so_in_both_tables(engine: Engine) -> None:
    connection = exchange().send(request(3, 0, 2, bytes(4) + b"secret")).answer(metadata_answer(2) + b"\0")
    connection.send(request(18, 3, 3, b"\0\x01\x01\0")).answer(response(3, b"\0\x23" + bytes(4)))
    connection.send(request(18, 3, 4, b"\0\x01\x01\0")).answer(response(4, b"\0\x23" + bytes(4) + b"more"))
    with using(engine):
        rows = read(pcap(connection.packets), "messages")
        frames = read(pcap(connection.packets), "frames")
    said = "bytes after the end of the body: %d"
    assert [(row["status"], row["error"]) for row in rows] == [
        ("ok", None),
        ("ok", None),
        ("trailing", said % 6),
        ("trailing", said % 1),
        ("ok", None),
        ("ok", None),
        ("ok", None),
        ("trailing", said % 4),
    ]
    assert [json.loads(row["body"]) for row in rows[2:4]] == [json.loads(row["body"]) for row in rows[:2]]
    assert json.loads(rows[7]["body"])["error_code"] == "UNSUPPORTED_VERSION"
    assert not any("secret" in str(row) for row in rows)
    assert frames == [{name: row[name] for name in tables.table("frames").schema.names} for row in rows]


def test_what_is_wrong_before_the_end_of_a_body_is_not_its_trailing_bytes() -> None:
    # A tagged field whose content is not what its type says: programs pass over it.
    frame = kwire.encode_request(messages.FetchRequest(), api_version=12, correlation_id=2)[:-1]
    connection = exchange().send(frame + b"\x01\x00\x01\x09" + b"left over")
    rows = read(pcap(connection.packets), "messages")
    assert (rows[2]["status"], rows[2]["body"]) == ("malformed", None)
    for engine in (PYTHON, MACHINE):
        with using(engine):
            assert [row["status"] for row in read(pcap(connection.packets))] == ["ok"] * 3
