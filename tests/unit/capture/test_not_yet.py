"""Captures that are not read as they should be so far: somebody who knew only the documentation found them.

Each is expected to fail, strictly: whoever mends one takes the mark away. What is wrong stands in its docstring.
"""

from __future__ import annotations

import struct

import pytest
from made_captures import exchange, read
from packets import Connection, pcap, sized


@pytest.mark.xfail(strict=True, reason="at the address of a broker, a whole request tells that there is Kafka")
def test_a_protocol_that_spells_a_request_at_the_address_of_a_broker() -> None:
    """A type of 2 bytes, a number of 6 and an empty name are ListGroups v0; its answers are none of that."""
    known = exchange(count=3)
    other = Connection(client=("10.0.0.1", 40_001), time=known.time).open()
    for number in range(4):
        other.send_raw(sized(struct.pack(">hqh", 16, number, 0)[:10])).answer_raw(sized(struct.pack(">hq", 16, number)))
    rows = read(pcap([*known.packets, *other.packets]))
    assert not [row for row in rows if row["client_port"] == 40_001 and row["status"] in ("ok", "trailing")]
