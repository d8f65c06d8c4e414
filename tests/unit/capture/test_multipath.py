"""Multipath TCP: bytes of a connection that are spread over several paths, each of which looks like a connection."""

from __future__ import annotations

import random
import struct
from dataclasses import replace

import pytest
from made_captures import brief, exchange, read
from packets import ACK, SYN, Packet, metadata, metadata_answer, pcap, request, sized

MASK = 0xFFFFFFFF


def option(body: bytes) -> bytes:
    """An option of Multipath TCP, padded."""
    whole = struct.pack(">BB", 30, 2 + len(body)) + body
    return whole + b"\1" * (-len(whole) % 4)


def mapping(number: int, place: int, size: int, acknowledged: int | None = None, wide: bool = False) -> bytes:
    """Bytes from ``number`` of the connection on stand from ``place`` of the path on (1 is its first byte)."""
    flags = 4 | (1 if acknowledged is not None else 0) | (8 | 2 if wide else 0)
    ack = b"" if acknowledged is None else struct.pack(">Q" if wide else ">I", acknowledged)
    return option(
        bytes([0x20, flags]) + ack + struct.pack(">Q" if wide else ">I", number) + struct.pack(">IH", place, size)
    )


class Paths:
    """A connection with several paths: the client's bytes go where they are told to, all answers on the first."""

    def __init__(self, first: int = 77_000, wide: bool = False) -> None:
        self.wide = wide
        self.number = [first, 5]
        self.time = 1_700_000_000_000_000_000
        self.packets: list[Packet] = []
        self.ends = [(("10.0.0.1", 40_000), ("10.0.0.2", 9092)), (("10.9.0.1", 40_777), ("10.9.0.2", 9092))]
        self.isn = [[1000, 5000], [30_000, 70_000]]
        self.sent = [[1, 1], [1, 1]]
        for path in (0, 1):
            hello = option(b"\x00\x81") if path == 0 else option(b"\x10\1" + b"token678")
            for side, flags in ((0, SYN), (1, SYN | ACK)):
                self._add(path, side, b"", flags, hello, self.isn[path][side])

    def _add(self, path: int, side: int, data: bytes, flags: int, options: bytes, seq: int) -> None:
        ends = self.ends[path]
        ack = (self.isn[path][1 - side] + self.sent[path][1 - side]) & MASK
        self.packets.append(Packet(ends[side], ends[1 - side], seq & MASK, data, flags, ack, self.time, options))
        self.time += 1_000_000

    def put(self, path: int, data: bytes, side: int = 0, mss: int = 1 << 14) -> Paths:
        """Bytes of the connection on a path: one mapping, in segments."""
        place, number = self.sent[path][side], self.number[side]
        acknowledged = self.number[1 - side]
        said = mapping(number if self.wide else number & MASK, place, len(data), acknowledged & MASK, self.wide)
        for at in range(0, len(data), mss):
            part = data[at : at + mss]
            self._add(path, side, part, ACK, said, self.isn[path][side] + self.sent[path][side])
            self.sent[path][side] += len(part)
        self.number[side] += len(data)
        return self


def asked(number: int, size: int = 0) -> bytes:
    """A Metadata request for one topic with a long name."""
    body = struct.pack(">ih", 1, size) + b"t" * size
    return sized(request(3, 0, number, body))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("first", [77_000, MASK - 3000])
def test_one_path_is_read_as_without_the_option(first: int, wide: bool) -> None:
    plain = exchange(count=20)
    paths = Paths(first, wide)
    for number in range(1, 21):
        paths.put(0, sized(metadata(number))).put(0, sized(metadata_answer(number)), side=1)
    assert brief(read(pcap(paths.packets))) == brief(read(pcap(plain.packets)))


@pytest.mark.parametrize("mss", [1 << 14, 100])
@pytest.mark.parametrize("window", [None, 1000])
def test_a_frame_is_never_put_together_of_parts_that_were_apart(mss: int, window: int | None) -> None:
    for seed in range(10):
        rng = random.Random(seed)
        frames = [asked(number, rng.choice([0, 10, 700, 3000])) for number in range(60)]
        stream, paths, at, path, whole = b"".join(frames), Paths(), 0, 0, set()
        ends = [sum(map(len, frames[:k])) for k in range(61)]
        parts = []
        while at < len(stream):
            size = rng.choice([200, 1000, 3000, 4000])
            parts.append((at, min(len(stream), at + size)))
            paths.put(path, stream[at : at + size], mss=mss)
            at, path = at + size, 1 - path
        for begin, end in parts:
            whole |= {k for k in range(60) if begin <= ends[k] and ends[k + 1] <= end}
        notes: list[str] = []
        rows = read(pcap(paths.packets), window=window, on_note=notes.append)
        ok = [row["correlation_id"] for row in rows if row["status"] in ("ok", "unconfirmed")]
        assert len(set(ok)) == len(ok)
        assert set(ok) <= whole
        assert ok
        assert any("other paths of Multipath TCP" in note for note in notes)
        assert any(row["status"] == "gap" for row in rows)


@pytest.mark.wide
def test_what_an_option_says_may_be_anything() -> None:
    rng = random.Random(5)
    talk = exchange(count=60)
    for _ in range(40):
        packets = []
        for one in talk.packets:
            size = rng.choice([0, 4, 8, 12, 20, 28, 40])
            said = bytes(rng.choice([30, 30, 1, 0, 2, 8, 12, 20, 0x20, 255, rng.randrange(256)]) for _ in range(size))
            packets.append(replace(one, options=said))
        read(pcap(packets), window=rng.choice([None, 300]))
