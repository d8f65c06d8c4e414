"""One capture of 64 connections, cut in every way: the tables are those of the capture that was not cut.

With ``--hypothesis-profile=exhaustive`` more captures, each with all tables.
"""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import busy_capture
import pyarrow as pa
import pytest
from hypothesis import settings
from packets import Packet, pcap
from split_captures import Given, batches_of, compared, opened, parts_of

from kwire.capture.across import Chain, scan, together
from kwire.capture.containers import Container
from kwire.capture.joining import digest
from kwire.capture.splits import Split
from kwire.errors import CaptureError
from kwire.kernels.packets import Count
from kwire.tables import table
from kwire.tables.reading import read

EXHAUSTIVE = settings.default.max_examples > 50
SEEDS = range(1, 5) if EXHAUSTIVE else range(1, 2)
TABLES = ("frames", "records", "messages", "partitions", "batches", "calls") if EXHAUSTIVE else ("frames", "records")
CUTS = ("second", "200 packets", "bytes", "1 file", "7 files", "200 files")

COLUMNS = {
    "records": [*table("records").schema.names, "committed_offset"],
    "batches": [*table("batches").schema.names, "committed_offset"],
}
WANTED = {name: COLUMNS.get(name) for name in TABLES}

Tables = dict[str, list[str]]


@cache
def packets_of(seed: int, loss: float = 0.01) -> tuple[Packet, ...]:
    return tuple(busy_capture.capture(seed, loss=loss))


def written(packets: Sequence[Packet]) -> bytes:
    return pcap(packets, nano=True)


def tables_of(pieces: Sequence[Given]) -> Tables:
    parts, _ = parts_of(pieces)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for piece, part in zip(pieces, parts, strict=True):
        # Files that are no captures say so, behind the rows of the others.
        with contextlib.suppress(CaptureError):
            for name, batch in batches_of(piece, part, WANTED):
                found[name] += batch.to_pylist()
    return {name: compared(rows) for name, rows in found.items()}


@cache
def uncut(seed: int, loss: float = 0.01) -> Tables:
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for name, batch in read(io.BytesIO(written(packets_of(seed, loss))), WANTED):
        found[name] += batch.to_pylist()
    return {name: compared(rows) for name, rows in found.items()}


def places_of(packets: Sequence[Packet], cut: str) -> list[int]:
    """Before which packets a capture is cut."""
    count = len(packets)
    if cut == "second":
        seconds = [packet.time // 1_000_000_000 for packet in packets]
        return [k for k in range(1, count) if seconds[k] != seconds[k - 1]]
    if cut == "200 packets":
        return list(range(200, count, 200))
    if cut == "bytes":
        ends = list(itertools.accumulate(len(packet.payload) + 70 for packet in packets))
        return [k for k in range(1, count) if ends[k] // 100_000 != ends[k - 1] // 100_000]
    files = int(cut.split()[0])
    return [count * k // files for k in range(1, files)]


def files_of(packets: Sequence[Packet], cut: str) -> list[bytes]:
    places = [0, *places_of(packets, cut), len(packets)]
    return [written(packets[a:b]) for a, b in itertools.pairwise(places)]


def test_the_capture_has_what_is_to_be_cut() -> None:
    packets = packets_of(1)
    assert len({frozenset((one.src, one.dst)) for one in packets}) == busy_capture.CONNECTIONS
    frames, records = uncut(1)["frames"], uncut(1)["records"]
    for word in ("ok", "gap", "unpaired", "sasl"):
        assert sum(f"'status': '{word}'" in one for one in frames) > 10
    for name in ("InitProducerId", "AddPartitionsToTxn", "EndTxn", "SaslAuthenticate"):
        assert any(name in one for one in frames)
    assert len(records) > 1000
    long = [k for k, one in enumerate(packets) if 50_000 in (one.src[1], one.dst[1]) and len(one.payload) == 1000]
    seconds = {packets[k].time // 1_000_000_000 for k in long}
    assert len(seconds) > 3
    assert len({k // 200 for k in long}) > 3


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("cut", CUTS)
def test_files_have_the_rows_of_the_whole(cut: str, seed: int) -> None:
    assert tables_of(files_of(packets_of(seed), cut)) == uncut(seed)


@pytest.mark.wide
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("together", [2, 7, 60, 1000])
def test_files_may_be_read_together(together: int, seed: int) -> None:
    """Several as one part: 67 files of 3 packets and more, and some that are no captures."""
    files = files_of(packets_of(seed), "200 packets")
    files[5:5] = [b"", b"no capture"]
    parts = [files[k : k + together] for k in range(0, len(files), together)]
    assert tables_of(parts) == uncut(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_splits_of_one_file_have_the_rows_of_the_whole(seed: int) -> None:
    packets = packets_of(seed)
    data = written(packets)
    container = Container(_counts())
    begin = container.described(data)
    assert begin is not None
    ends = [begin, *itertools.accumulate((len(written([one])) - begin for one in packets), initial=begin)]
    cuts = [ends[1 + k] for k in [0, *places_of(packets, "bytes")]]
    splits = [Split(a, b, container.state()) for a, b in zip(cuts, [*cuts[1:], None], strict=True)]
    assert tables_of([(data[one.begin :], one) for one in splits]) == uncut(seed)


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("buckets", [2, 7, 64])
def test_any_number_of_partitions_and_order_of_arrival_gives_the_same_states(buckets: int) -> None:
    """Scans are made in any order, and connections are shared out among any number of chains."""
    files = files_of(packets_of(1), "7 files")
    scans = {place: scan([io.BytesIO(files[place])]) for place in (3, 0, 6, 1, 5, 2, 4)}
    assert dict(sorted(states(files, scans, 1))) == dict(sorted(states(files, scans, buckets)))


def states(files: Sequence[bytes], scans: Any, buckets: int) -> Iterator[tuple[tuple[int, bytes], Any]]:
    """For each file and connection: what matters of its state before the file, and the file that it was in last."""
    for bucket in reversed(range(buckets)):
        chain, common = Chain(), {}
        for place, data in enumerate(files):
            edges = scans[place].edges
            mine = [k for k, ends in enumerate(edges.column("ends").to_pylist()) if sum(ends) % buckets == bucket]
            link = chain.add(place, edges.take(pa.array(mine, pa.int64())), common, lambda data=data: opened([data]))
            for row, (ends, last) in zip(link.state.to_pylist(), link.gone_on.items(), strict=True):
                yield (place, ends), (digest(row), last)
            common = together(common, scans[place].common)


def _counts() -> Any:
    import numpy as np

    return np.zeros(len(Count), np.int64)
