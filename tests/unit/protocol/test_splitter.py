"""``FrameSplitter``: a stream in any portions, limits, and streams that end within a frame."""

from __future__ import annotations

import struct

import pytest

from kwire.errors import DecodeError, LimitError
from kwire.protocol.splitter import FrameSplitter

FRAMES = [b"first", b"", b"x" * 300, b"last"]
STREAM = b"".join(struct.pack(">i", len(one)) + one for one in FRAMES)


def test_a_whole_stream_at_once() -> None:
    splitter = FrameSplitter()
    assert list(splitter.feed(STREAM)) == FRAMES
    splitter.close()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64, 310])
def test_a_stream_in_portions(size: int) -> None:
    splitter = FrameSplitter()
    found = []
    for at in range(0, len(STREAM), size):
        found += splitter.feed(STREAM[at : at + size])
    assert found == FRAMES
    assert splitter.pending == 0
    assert splitter.offset == len(STREAM)
    splitter.close()


def test_a_tail_waits_for_its_rest() -> None:
    splitter = FrameSplitter()
    assert list(splitter.feed(STREAM + b"\0\0\0\x02a")) == FRAMES
    assert splitter.pending == 5
    assert list(splitter.feed(memoryview(b"b"))) == [b"ab"]


def test_bytes_are_taken_even_if_nobody_collects_the_frames() -> None:
    splitter = FrameSplitter()
    splitter.feed(STREAM[:100])
    assert list(splitter.feed(bytearray(STREAM[100:]))) == FRAMES


@pytest.mark.parametrize(("tail", "text"), [(b"\0\0", "2 of the 4 bytes"), (b"\0\0\0\x09abc", "3 of 9 bytes")])
def test_a_stream_that_ends_within_a_frame_is_an_error_on_close(tail: bytes, text: str) -> None:
    splitter = FrameSplitter()
    list(splitter.feed(STREAM + tail))
    with pytest.raises(DecodeError, match=text) as caught:
        splitter.close()
    assert caught.value.offset == len(STREAM)


def test_a_size_above_the_limit_is_an_error_after_the_frames_before_it() -> None:
    splitter = FrameSplitter(limit=300)
    frames = splitter.feed(STREAM + struct.pack(">i", 301))
    assert [next(frames) for _ in FRAMES] == FRAMES
    with pytest.raises(LimitError, match="301") as caught:
        next(frames)
    assert caught.value.offset == len(STREAM)
    assert splitter.pending == 0


def test_a_negative_size_is_an_error_for_good() -> None:
    splitter = FrameSplitter()
    with pytest.raises(DecodeError, match="-1"):
        list(splitter.feed(b"\xff\xff\xff\xff"))
    with pytest.raises(DecodeError, match="-1"):
        list(splitter.feed(STREAM))
    assert splitter.pending == 0
    with pytest.raises(DecodeError, match="-1"):
        splitter.close()
