"""Where large captures are cut, and that their splits have the rows of the whole."""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_captures import exchange
from packets import Connection, block, enhanced, interface, pcap, pcapng, produce, produce_answer, section, sized
from split_captures import Row, compared, parts_of, pieces_of, rows_of

from kwire.capture.containers import Container
from kwire.capture.splits import HEAD, LOOKED_AT, Split, find
from kwire.errors import CaptureError
from kwire.kernels.packets import Count
from kwire.tables.reading import read
from kwire.testing import packets

GOLDEN = Path(__file__).parents[2] / "golden"
MEGABYTE = 1 << 20


def found(data: bytes, most: int = 2 * LOOKED_AT) -> list[Split]:
    return find(lambda offset, count: data[offset : offset + count], len(data), most)


def boundaries(data: bytes) -> list[int]:
    """Where the packets of a capture begin."""
    order, pcapng_ = ("little", False) if data[:1] != b"\x0a" else ("little", True)
    at, places = 0 if pcapng_ else 24, []
    while at < len(data):
        size = int.from_bytes(data[at + (4 if pcapng_ else 8) :][:4], order)
        if not pcapng_ or data[at] in (2, 6):
            places.append(at)
        at += size if pcapng_ else size + 16
    return places


def by_hand(data: bytes, at: Sequence[int]) -> list[Split]:
    """Splits at the packets ``at``."""
    container = Container(np.zeros(len(Count), np.int64))
    first = container.described(data)
    places = boundaries(data)
    assert first == places[0]
    cuts = [places[0], *(places[k] for k in at), None]
    return [Split(a, b, container.state()) for a, b in itertools.pairwise(cuts) if a is not None]


def whole(data: bytes, table: str = "frames", columns: Sequence[str] | None = None, **options: Any) -> list[Row]:
    return [row for _, batch in read(io.BytesIO(data), {table: columns}, **options) for row in batch.to_pylist()]


def talk(values: Sequence[bytes]) -> Connection:
    """A connection with a Produce request for each value, in segments of 1,448 bytes."""
    connection = exchange()
    for number, value in enumerate(values, 2):
        body = sized(produce(number, 1, value))
        for at in range(0, len(body), 1448):
            connection.send_raw(body[at : at + 1448])
        connection.answer(produce_answer(number))
    return connection


# --- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize(
    ("name", "form"),
    [("kafka-4.3-kraft-java/share.pcap", "pcap"), ("kafka-4.3-kraft-brokers/quorum.pcap", "pcapng")],
)
def test_splits_have_the_rows_of_the_whole(name: str, form: str) -> None:
    packets_ = packets.read((GOLDEN / name).read_bytes())
    data = packets.write_pcap(packets_, nano=True) if form == "pcap" else packets.write_pcapng(packets_)
    at = [len(packets_) * k // 9 for k in range(1, 9)]
    splits = pieces_of(data, by_hand(data, at))
    for table in ("frames", "messages", "records"):
        # Names of topics are learnt from all parts by whoever reads them all.
        wanted = None if table != "records" else ["partition", "offset", "key", "value", "status", "error"]
        assert compared(rows_of(splits, table, wanted)) == compared(whole(data, table, wanted))


def test_a_cut_may_be_anywhere() -> None:
    data = packets.write_pcap(packets.read((GOLDEN / "kafka-4-telemetry/refusals.pcap").read_bytes()), nano=True)
    expected = compared(whole(data))
    for at in range(1, len(boundaries(data)), 7):
        assert compared(rows_of(pieces_of(data, by_hand(data, [at])), "frames")) == expected


def test_damage_is_the_end_of_the_file_and_told_where_it_is() -> None:
    data = pcap(talk([b"x" * 3000] * 12).packets)
    places = boundaries(data)
    damaged = bytearray(data)
    damaged[places[20] + 8 : places[20] + 12] = b"\xff" * 4
    with pytest.raises(CaptureError) as told:
        whole(bytes(damaged))
    before = whole(data[: places[20]])
    with pytest.raises(CaptureError) as here:
        rows_of(pieces_of(bytes(damaged), by_hand(data, [10, 15, 25, 30])), "frames")
    assert (here.value.message, here.value.offset) == (told.value.message, told.value.offset)
    assert compared(here.value.rows) == compared(before)  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong", [-3, 5, 16, 700])
def test_a_wrong_cut_costs_time_and_no_row(wrong: int) -> None:
    """Two in a row: what the first split took in, the third one does not have either."""
    data = pcap(talk([b"x" * 5000] * 10).packets)
    splits = by_hand(data, [12, 20, 30])
    first, second, third, last = splits
    cut = first.end + wrong if first.end is not None else 0
    wrongly = [Split(first.begin, cut, first.container), Split(cut, second.end, first.container), third, last]
    assert compared(rows_of(pieces_of(data, wrongly), "frames")) == compared(whole(data))


def test_a_split_may_be_scanned_in_windows_of_any_size() -> None:
    data = pcap(talk([b"x" * 3000] * 8).packets)
    pieces = pieces_of(data, by_hand(data, [10, 20]))
    expected = parts_of(pieces)[0]
    for window in (100, 1000):
        for found, part in zip(parts_of(pieces, window)[0], expected, strict=True):
            assert (found is None) == (part is None)
            assert found is None or part is None or found.state.to_pylist() == part.state.to_pylist()


def test_what_is_said_of_packets_later_is_known_to_those_behind() -> None:
    """A new interface, and a new section, in the middle of a pcapng file: it is read on from there."""
    made = talk([b"x" * 3000] * 8).packets
    for more in (interface(resolution=9), section() + interface(resolution=6)):
        number = 0 if more.startswith(section()[:4]) else 1
        data = section() + interface(resolution=6)
        data += b"".join(enhanced(one) for one in made[:9]) + more
        data += b"".join(enhanced(one, number=number, resolution=6 if number == 0 else 9) for one in made[9:])
        splits = by_hand(data, [4, 14, 20])
        parts, _ = parts_of(pieces_of(data, splits))
        assert [part is not None for part in parts] == [True, True, False, False]
        assert compared(rows_of(pieces_of(data, splits), "frames")) == compared(whole(data))


# --- where cuts are made ----------------------------------------------------------------------------------------------


def values(kind: str, count: int, size: int) -> list[bytes]:
    draw = random.Random(7)
    if kind == "random":
        return [draw.randbytes(size) for _ in range(count)]
    if kind == "zeros":
        return [bytes(size)] * count
    if kind == "text":
        return [b'{"name": "value", "number": 12}' * (size // 31)] * count
    # A capture inside of a capture: its packets are of 100 bytes.
    inner = talk([b"y" * 100] * 40)
    return [(pcap(inner.packets) * 10)[:size]] * count


@pytest.mark.wide
@pytest.mark.parametrize("kind", ["random", "zeros", "text", "captures"])
@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_cuts_are_made_at_packets(kind: str, form: str) -> None:
    made = talk(values(kind, 300, 20_000)).packets
    data = pcap(made) if form == "pcap" else pcapng(made)
    splits = found(data)
    places = boundaries(data)
    assert len(splits) == -(-len(data) // (2 * LOOKED_AT))
    assert [one.begin for one in splits[1:]] == [one.end for one in splits[:-1]]
    assert {one.begin for one in splits} <= set(places)
    assert splits[0].begin == places[0]
    assert splits[-1].end is None
    assert all(one.begin > MEGABYTE for one in splits[1:])


@pytest.mark.wide
def test_headers_that_a_sender_made_up_are_no_cut() -> None:
    """Values that have, in each segment and at the same place of it, a header of a packet that ends at the next one: a
    chain as good as the true one."""
    step = 1448
    segment = 16 + 14 + 20 + 20 + step
    header = (1_700_000_000).to_bytes(4, "little") + bytes(4) + 2 * (segment - 16).to_bytes(4, "little")
    inside = b"".join([b"z" * 200, header, b"z" * (step - 200 - len(header))])
    connection = exchange()
    body = sized(produce(2, 1, inside * 4000))
    lead = body.index(inside)
    connection.send_raw(body[:lead])
    for at in range(lead, len(body), step):
        connection.send_raw(body[at : at + step])
    connection.answer(produce_answer(2))
    data = pcap(connection.packets)
    places = boundaries(data)
    one = places[40]
    assert places[41] - one == segment, "the made-up lengths are those of the packets"
    assert found(data) == []
    # A cut at such a header would be seen by the one who reads up to it.
    splits = by_hand(data, [2000])
    false = places[2000] + 16 + 54 + 200
    wrongly = [Split(splits[0].begin, false, splits[0].container), Split(false, None, splits[0].container)]
    assert compared(rows_of(pieces_of(data, wrongly), "frames", ports=[9092])) == compared(whole(data, ports=[9092]))


def test_what_is_not_cut() -> None:
    data = pcap(talk(values("random", 100, 20_000)).packets)
    assert found(data, len(data)) == []
    assert found(b"\x1f\x8b" + data) == []
    assert found(b"nothing" * MEGABYTE) == []
    assert found(section() + block(5, bytes(HEAD)) + data, MEGABYTE) == []
    assert (
        find(lambda offset, count: data[: HEAD // 2][offset : offset + count], len(data), MEGABYTE) == []
    )  # became shorter
    with pytest.raises(ValueError, match="splits of 10 bytes"):
        found(data, 10)
