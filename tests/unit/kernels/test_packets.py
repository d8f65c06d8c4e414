"""Packets out of capture bytes, and the headers of one packet, on both engines."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from packets import (
    Connection,
    block,
    buffer,
    link,
    pcap,
)

from kwire.capture.containers import Container
from kwire.kernels.engine import Engine
from kwire.kernels.layouts import NO_TIME
from kwire.kernels.packets import (
    BINARY_UNITS,
    EARLIEST,
    FINE_UNITS,
    LATEST,
    Count,
    Stopped,
    nanoseconds,
    pcap_packets,
    pcapng_packets,
)


def rows(result: tuple[Any, ...]) -> list[tuple[int, ...]]:
    return [tuple(row) for row in result[0].tolist()]


@pytest.mark.parametrize("little", [True, False])
@pytest.mark.parametrize("nano", [True, False])
def test_pcap_records_are_found_up_to_the_first_that_is_not_complete(engine: Engine, little: bool, nano: bool) -> None:
    packets = Connection().open().packets
    data = pcap(packets, little=little, nano=nano)
    size = len(link(packets[0]))
    wanted = [(24 + k * (16 + size) + 16, size, size, one.time, 1) for k, one in enumerate(packets)]
    for end in range(24, len(data) + 1):
        found = pcap_packets(buffer(data), 24, end, little, nano, 16, 262144, 1, engine)
        complete = (end - 24) // (16 + size)
        assert rows(found) == wanted[:complete]
        assert found[1:] == (24 + complete * (16 + size), Stopped.MORE)


def test_a_pcap_record_that_is_longer_than_any_stops_with_what_came_before(engine: Engine) -> None:
    packets = Connection().open().packets
    data = bytearray(pcap(packets))
    at = 24 + 16 + len(link(packets[0]))
    data[at + 8 : at + 12] = struct.pack("<I", 262145)
    found = pcap_packets(buffer(data), 24, len(data), True, False, 16, 262144, 1, engine)
    assert len(rows(found)) == 1
    assert found[1:] == (at, Stopped.BAD)


def test_tables_of_packets_grow(engine: Engine) -> None:
    small = struct.pack("<IIII", 1, 2, 1, 1) + b"x"
    found = pcap_packets(buffer(small * 100), 0, 1700, True, True, 16, 262144, 113, engine)
    assert rows(found) == [(17 * k + 16, 1, 1, 1_000_000_002, 113) for k in range(100)]
    counts = np.zeros(len(Count), np.int64)
    data = buffer(block(3, struct.pack("<I", 1) + b"x") * 100)
    table = Container(counts)
    table.restore(table.state() | {"interfaces": [[1, 0, 6, 0]]})
    found = pcapng_packets(data, 0, len(data), True, table._interfaces, counts, engine)
    assert rows(found) == [(20 * k + 12, 1, 1, NO_TIME, 1) for k in range(100)]


@pytest.mark.parametrize(
    ("resolution", "units", "wanted"),
    [
        (0, 3, 3_000_000_000),
        (6, 1_700_000_000_123_456, 1_700_000_000_123_456_000),
        (9, (1 << 62) + 1, (1 << 62) + 1),
        (FINE_UNITS + 12, 1_700_000_000_123_456_789_012 % (1 << 64), 1_700_000_000_123_456_789_012 % (1 << 64) // 1000),
        (FINE_UNITS + 20, (1 << 64) - 1, ((1 << 64) - 1) // 10**11),
        (BINARY_UNITS + 0, 7, 7_000_000_000),
        (BINARY_UNITS + 20, 5 << 20 | 1 << 19, 5_500_000_000),
        (BINARY_UNITS + 33, (1 << 64) - 1, ((1 << 64) - 1) * 10**9 >> 33),
        (BINARY_UNITS + 62, (1 << 64) - 1, 3_999_999_999),
    ],
)
def test_timestamps_of_any_resolution(engine: Engine, resolution: int, units: int, wanted: int) -> None:
    assert engine(nanoseconds)(units >> 32, units & 0xFFFFFFFF, resolution, 0) == wanted
    assert engine(nanoseconds)(units >> 32, units & 0xFFFFFFFF, resolution, -2) == wanted - 2_000_000_000


@pytest.mark.parametrize("resolution", [0, 3, 6, 9, BINARY_UNITS, BINARY_UNITS + 1, BINARY_UNITS + 20])
@pytest.mark.parametrize("high", [0xFFFFFFFF, 0x7FFFFFFF, 1 << 31])
def test_timestamps_that_do_not_fit_are_the_last_and_the_first(engine: Engine, resolution: int, high: int) -> None:
    second = 1_000_000_000
    made = int(engine(nanoseconds)(high, 1, resolution, 0))
    assert LATEST <= made < LATEST + second
    assert EARLIEST <= int(engine(nanoseconds)(0, 5, resolution, -(1 << 38))) < EARLIEST + second
    shown = np.array([EARLIEST, LATEST]).astype("datetime64[ns]").astype("datetime64[s]")
    assert [str(one) for one in shown] == ["1677-09-22T00:00:01", "2262-04-10T23:59:59"]


def test_packets_of_times_that_no_clock_has_are_counted(engine: Engine) -> None:
    counts = np.zeros(len(Count), np.int64)
    table = Container(counts)
    table.restore(table.state() | {"interfaces": [[1, 0, 6, 0]]})
    times = (0x7FFFFFFF << 32, 1_700_000_000_000_000, (1 << 64) - 1)
    packets = [struct.pack("<IIIII", 0, one >> 32, one & 0xFFFFFFFF, 1, 1) + b"x" for one in times]
    data = buffer(b"".join(block(6, one) for one in packets))
    found = pcapng_packets(data, 0, len(data), True, table._interfaces, counts, engine)
    made = [time for _, _, _, time, _ in rows(found)]
    assert made[1] == 1_700_000_000_000_000_000
    assert made[0] // 1_000_000_000 == made[2] // 1_000_000_000 == LATEST // 1_000_000_000
    assert counts[Count.TIME] == 2
