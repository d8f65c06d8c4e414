"""Captures that are not read as they should be so far: somebody who knew only the documentation found them.

Each is expected to fail, strictly: whoever mends one takes the mark away. What is wrong stands in its docstring.
"""

from __future__ import annotations

import struct

import pytest
from made_captures import exchange, read
from packets import metadata, metadata_answer, pcap, request, sized


@pytest.mark.xfail(strict=True, reason="a chain of requests behind a hole counts where it leads to a segment")
def test_a_value_that_is_a_chain_of_requests_of_the_same_client_behind_a_loss() -> None:
    """300 heartbeats are the value of one record. The packet that begins the request is missing, and the border of a
    segment is one of the value's as well."""
    heartbeat = sized(request(12, 0, 0, b"\0\1g\0\0\0\1\0\1m"))
    chain = b"".join(sized(request(12, 0, 50 + k, b"\0\1g\0\0\0\1\0\1m")) for k in range(300))
    talk = exchange(count=3)
    body = b"\xff\xff" + struct.pack(">iii", 1000, 1, len(chain)) + chain
    frame = sized(request(0, 2, 4, body))
    head = len(frame) - len(chain)
    begin = len(talk.packets)
    # The first segment ends with the tenth of the chain's requests.
    cut = head + 10 * len(heartbeat)
    talk.mss = cut
    talk.send_raw(frame[:cut])
    talk.mss = 1460
    talk.send_raw(frame[cut:])
    for number in range(5, 9):
        talk.send(metadata(number)).answer(metadata_answer(number))
    rows = read(pcap([*talk.packets[:begin], *talk.packets[begin + 1 :]]))
    assert not [row for row in rows if row["api_name"] == "Heartbeat"]
