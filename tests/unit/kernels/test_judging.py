"""Whether bytes are a frame: what real brokers and clients sent is, what was cut off may be, the rest is not."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from packets import METADATA_REQUEST, buffer, metadata_answer, request, response, sized
from placed_streams import scratch

from kwire.capture.tracker import Tracker
from kwire.kernels.engine import MACHINE, PYTHON, Engine, using
from kwire.kernels.judging import (
    FITS,
    MOST_JUDGED,
    NOT_KNOWN,
    SO_FAR,
    TRAILS,
    UNFIT,
    UNREADABLE,
    fits,
    fits_some_response,
    left_over,
)
from kwire.kernels.layouts import FRAME, Status
from kwire.kernels.programs import MAX_DEPTH, registers_of
from kwire.kernels.shapes import memory_for
from kwire.protocol.api_table import api_table
from kwire.schema.keys import ApiKey

GOLDEN = Path(__file__).parents[2] / "golden"

Frame = tuple[int, int, int, bytes]
"""0 for a request and 1 for a response, API key, version, and the bytes with their size."""


def judged(engine: Engine, data: bytes, way: int, api: int, version: int, stop: int | None = None) -> tuple[int, int]:
    """What is said of ``data``, of which ``stop`` bytes are there; behind them stand others, which must not count."""
    there = data[:stop]
    buf = buffer(b"\xee" * 5 + there + b"\xee" * 20)
    said, looked = engine(fits)(buf, 5, 5 + len(there), way, api, version, api_table(), scratch())
    return int(said), int(looked)


def captured(folder: str) -> list[Frame]:
    """The good frames of golden captures."""
    found = []
    paths = [GOLDEN / folder] if folder.endswith(".pcap") else sorted((GOLDEN / folder).glob("*.pcap*"))
    for path in paths:
        frames = Tracker().feed(path.read_bytes(), final=True)
        columns = [frames[name].tolist() for name in ("status", "response", "api", "version")]
        for row, (status, way, api, version) in enumerate(zip(*columns, strict=True)):
            if status == Status.OK:
                found.append((way, api, version, sized(frames.bytes_of(row))))
    return found


def folders() -> list[str]:
    return sorted(one.name for one in GOLDEN.iterdir() if one.is_dir() and any(one.glob("*.pcap*")))


@pytest.mark.wide(keep=11)
@pytest.mark.parametrize("folder", folders())
def test_every_good_frame_that_was_captured_fits(folder: str) -> None:
    frames = captured(folder)
    for way, api, version, data in frames:
        # They are many: as machine code only.
        said, looked = judged(MACHINE, data, way, api, version)
        assert said == FITS, (way, api, version, data)
        assert looked <= MOST_JUDGED


@pytest.mark.wide
def test_every_cut_of_a_frame_fits_so_far(engine: Engine) -> None:
    seen = set()
    with using(PYTHON):
        frames = captured("kafka-4.3-kraft-aiokafka") + captured("kafka-3.9-zk-kafka-python")
    for way, api, version, data in frames:
        if (way, api, version) in seen or len(data) > 1500:
            continue
        seen.add((way, api, version))
        for stop in range(4, len(data)):
            assert judged(engine, data, way, api, version, stop)[0] == SO_FAR, (way, api, version, stop)
    assert len(seen) > 40


BROKER = struct.pack(">iih", 1, 0, 9) + b"localhost" + struct.pack(">i", 9092)
"""Of a Metadata v0 response: one broker, and no topics behind it."""


@pytest.mark.wide
def test_counts_and_lengths_that_cannot_be_do_not_fit(engine: Engine) -> None:
    good = sized(response(7, BROKER + bytes(4)))
    assert judged(engine, good, 1, ApiKey.METADATA, 0) == (FITS, len(good) - 4)
    for at, enough in ((8, 12), (16, 30), (len(good) - 4, len(good))):
        for bit in (0x80, 0x40, 0x01):
            wrong = bytearray(good)
            # The first byte of a count or length: a negative number, or far more than there is.
            wrong[at] ^= bit
            assert judged(engine, bytes(wrong), 1, ApiKey.METADATA, 0)[0] == UNFIT
            # Cut off as well, as soon as there is what all elements that are counted need at least.
            assert judged(engine, bytes(wrong), 1, ApiKey.METADATA, 0, enough)[0] == UNFIT


def test_bytes_that_are_left_over_trail(engine: Engine) -> None:
    for more in (1, 2, 100):
        data = sized(response(7, BROKER + bytes(4 + more)))
        assert judged(engine, data, 1, ApiKey.METADATA, 0)[0] == TRAILS
        # It is over where the layout ends, whether the rest is there or not.
        assert judged(engine, data, 1, ApiKey.METADATA, 0, len(data) - 1)[0] == TRAILS
    fewer = sized(response(7, BROKER + bytes(3)))
    assert judged(engine, fewer, 1, ApiKey.METADATA, 0)[0] == UNFIT


def test_a_broker_answers_a_version_of_api_versions_that_it_does_not_know_in_version_0(engine: Engine) -> None:
    answer = sized(response(7, struct.pack(">hi", 35, 1) + struct.pack(">hhh", 18, 0, 3)))
    for version in (0, 3, 4):
        assert judged(engine, answer, 1, ApiKey.API_VERSIONS, version)[0] == FITS
    # No other API does so, and no request.
    assert judged(engine, answer, 1, ApiKey.METADATA, 9)[0] == UNFIT
    asked = sized(request(18, 0, 7))
    assert judged(engine, asked, 0, ApiKey.API_VERSIONS, 0)[0] == FITS
    assert judged(engine, asked, 0, ApiKey.API_VERSIONS, 3)[0] == UNFIT


@pytest.mark.parametrize(
    ("way", "api", "version"),
    [(0, 3, 99), (0, 3, -1), (1, 3, 99), (0, 999, 0), (0, -1, 0), (1, -2, 0), (0, 32767, 32767)],
)
def test_an_api_or_version_without_a_layout_is_not_known(engine: Engine, way: int, api: int, version: int) -> None:
    assert judged(engine, sized(bytes(40)), way, api, version)[0] == NOT_KNOWN


def test_only_the_beginning_of_a_large_frame_is_looked_at(engine: Engine) -> None:
    names = struct.pack(">i", 2000) + b"\0\3abc" * 2000
    data = sized(request(3, 0, 7, names))
    said, looked = judged(engine, data, 0, ApiKey.METADATA, 0)
    assert said == FITS
    assert MOST_JUDGED - 5 <= looked <= MOST_JUDGED
    # The same verdict as soon as that much is there, whatever follows.
    assert judged(engine, data, 0, ApiKey.METADATA, 0, 4 + MOST_JUDGED) == (said, looked)
    assert judged(engine, data, 0, ApiKey.METADATA, 0, 3 + MOST_JUDGED)[0] == SO_FAR
    wrong = data[: 5 + MOST_JUDGED] + b"\xff" * (len(data) - 5 - MOST_JUDGED)
    assert judged(engine, wrong, 0, ApiKey.METADATA, 0) == (said, looked)


def least(engine: Engine, body: bytes, size: int, api: int, version: int, way: int = 0) -> int:
    """What is said of a frame of ``size`` bytes of which the capture ends with ``body``."""
    return judged(engine, struct.pack(">i", size) + body, way, api, version)[0]


def test_what_is_cut_off_may_go_on_as_far_as_the_size_says(engine: Engine) -> None:
    """A length, a count, a tagged section and a tagged field: each may be whole in what is missing, or not."""
    head = struct.pack(">hhi", 3, 0, 7) + b"\0\4test"
    # A string of 60 bytes (LONG) and an array of 30 strings of 2 bytes at least (COUNT), in what is left.
    for body, needs in ((struct.pack(">ih", 1, 60) + b"abc", 60 + 6), (struct.pack(">i", 30), 4 + 60)):
        for size, said in ((len(head) + needs, SO_FAR), (len(head) + needs - 1, UNFIT)):
            assert least(engine, head + body, size, ApiKey.METADATA, 0) == said
    # Header v2 of ApiVersions v3: 100 tagged fields, and then two strings; a field of 50 bytes.
    flexible = struct.pack(">hhi", 18, 3, 7) + b"\0\4test"
    for tags, needs in ((b"\x64", 201), (b"\x01\x05\x32abc", 3 + 50)):
        assert least(engine, flexible + tags, len(flexible) + needs, ApiKey.API_VERSIONS, 3) == SO_FAR
        assert least(engine, flexible + tags, len(flexible) + needs - 1, ApiKey.API_VERSIONS, 3) == UNFIT
    # A number of which bytes are missing (SHORT) is always possible; one of six bytes is none at all.
    assert least(engine, head + b"\0\0", len(head) + 4, ApiKey.METADATA, 0) == SO_FAR
    assert least(engine, flexible + b"\xff" * 6, len(flexible) + 100, ApiKey.API_VERSIONS, 3) == UNFIT


def test_some_response_is_one_of_any_api_and_version(engine: Engine) -> None:
    def some(data: bytes) -> bool:
        return bool(engine(fits_some_response)(buffer(data + bytes(8)), 0, len(data), api_table(), scratch()))

    assert some(sized(metadata_answer(7)))
    assert some(sized(response(7, BROKER + bytes(4))))
    assert not some(sized(request(3, 0, 7, METADATA_REQUEST))[:-1])
    assert not some(sized(response(7, b"\x7e" * 3)))


def test_work_is_bounded_by_what_is_looked_at(engine: Engine) -> None:
    """Whatever is claimed: a count of 2 ** 31 elements without bytes ends at once, one of 4,000 at ``MOST_JUDGED``."""
    for count in (0x7FFFFFFF, 0x7FFFFFFF // 2, 1 << 20):
        data = struct.pack(">i", 100 << 20) + request(3, 0, 7, struct.pack(">i", count) + b"\0\0" * 4000)
        _, looked = judged(engine, data, 0, ApiKey.METADATA, 0)
        assert looked <= MOST_JUDGED


def test_error_35_of_another_api_is_no_reason_for_version_0(engine: Engine) -> None:
    answer = sized(response(7, struct.pack(">h", 35)))
    assert judged(engine, answer, 1, ApiKey.HEARTBEAT, 0)[0] == FITS
    assert judged(engine, answer, 1, ApiKey.HEARTBEAT, 4)[0] == UNFIT
    # The same where whole bodies are read: of Heartbeat in version 4 it is none, of ApiVersions one in version 0.
    versions = sized(response(7, struct.pack(">hi", 35, 0)))
    rows, data = np.zeros(3, FRAME), answer + answer + versions
    rows["response"], rows["size"] = 1, [len(answer) - 4, len(answer) - 4, len(versions) - 4]
    rows["off"] = [4, 4 + len(answer), 4 + 2 * len(answer)]
    rows["api"], rows["version"] = [ApiKey.HEARTBEAT, ApiKey.HEARTBEAT, ApiKey.API_VERSIONS], [0, 4, 4]
    found, no_rows = np.zeros(3, np.int64), np.zeros((0, 3), np.int64)
    left = np.empty(MAX_DEPTH, np.int64)
    memory = memory_for(api_table().layout_starts)
    said = engine(left_over)(buffer(data), rows, 0, api_table(), registers_of(1), left, no_rows, 0, found, memory)
    assert said == (3, 0, 1)
    assert found.tolist() == [0, UNREADABLE, 0]
