"""The table ``messages``: bodies that cannot be decoded."""

from __future__ import annotations

from made_captures import exchange, read
from packets import (
    pcap,
    request,
)


def test_a_body_that_is_not_what_its_version_says_is_malformed_in_messages() -> None:
    connection = exchange().send(request(3, 0, 2, b"\0\0\0\x09"))
    *_, row = read(pcap(connection.packets), "messages")
    assert (row["status"], row["body"]) == ("malformed", None)
    assert "MetadataRequest v0" in row["error"]
    *_, row = read(pcap(connection.packets), "frames")
    assert row["status"] == "ok"
