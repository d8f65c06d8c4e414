"""The table ``messages``: bodies that cannot be decoded."""

from __future__ import annotations

from made_captures import read
from packets import (
    Connection,
    pcap,
    request,
)


def test_a_body_that_is_not_what_its_version_says_is_malformed_in_messages() -> None:
    connection = Connection().open().send(request(3, 0, 1, b"\0\0\0\x09"))
    (row,) = read(pcap(connection.packets), "messages")
    assert (row["status"], row["body"]) == ("malformed", None)
    assert "MetadataRequest v0" in row["error"]
    (row,) = read(pcap(connection.packets), "frames")
    assert row["status"] == "ok"
