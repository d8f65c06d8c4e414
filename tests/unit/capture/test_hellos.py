"""Hellos of TLS that is not decrypted: in pieces of any size, and without an end."""

from __future__ import annotations

from typing import Any

import pytest
from counted_work import lines
from made_captures import read
from packets import Connection, pcap
from tls_connections import clear, hello13

CLIENT, SERVER = hello13(0x1301)


def in_records(hello: bytes, size: int) -> bytes:
    """A record of a hello as records of ``size`` bytes."""
    return b"".join(clear(22, hello[at : min(at + size, len(hello))]) for at in range(5, len(hello), size))


def told(data: bytes, **options: Any) -> list[tuple[Any, ...]]:
    names = ("tls_version", "tls_cipher", "tls_server_name")
    return [tuple(row[name] for name in names) for row in read(data, "connections", **options)]


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize("mss", [1, 3, 6, 1000])
def test_a_hello_in_records_and_segments_of_any_size_is_read(size: int, mss: int) -> None:
    client, server, one = in_records(CLIENT, size), in_records(SERVER, size), Connection().open()
    # It is known by the type of its message, which stands in the first segment.
    one.send_raw(client[:6]).answer_raw(server[:6])
    one.mss = mss
    one.send_raw(client[6:]).answer_raw(server[6:])
    for window in (None, 300):
        assert told(pcap(one.packets), window=window) == [("TLS 1.3", "TLS_AES_128_GCM_SHA256", "broker")]


@pytest.mark.parametrize("side", [0, 1])
def test_each_byte_of_a_hello_without_an_end_is_looked_at_once(side: int) -> None:
    def one(count: int) -> int:
        from kwire.capture.hellos import _Begun

        wire = clear(22, bytes((1 + side, 255, 255, 255))) + clear(22, b"x") * count
        begun = _Begun(0)

        def run() -> None:
            for at in range(0, len(wire), 1):
                assert begun.add(wire[at : at + 1]) is None

        return lines(run, 40 * len(wire))

    assert one(4000) < 2.1 * one(2000)


def test_a_hello_without_an_end_tells_nothing() -> None:
    one = Connection(mss=6).open().send_raw(clear(22, b"\1\xff\xff\xff") + clear(22, b"x") * 200)
    assert told(pcap(one.packets)) == [(None, None, None)]


def test_a_record_without_a_byte_is_no_hello() -> None:
    one = Connection().open().send_raw(clear(22, CLIENT[5:9]) + clear(22, b"") + clear(22, CLIENT[9:]))
    assert told(pcap(one.packets)) == [(None, None, None)]
