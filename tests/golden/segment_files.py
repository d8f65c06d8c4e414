"""Files of a broker's log folder as golden files, each with what Kafka's dump-log tool prints for it.

``keep(cluster, place, target)`` copies the files of one partition, of a broker that has been shut down cleanly (until
then the indexes of the active segment are files of 10 MB). Beside ``FILE`` stands ``FILE.txt``; with ``indexes``, the
``.index`` and ``.timeindex`` files are kept too, with what the tool says about all of them together in
``index-sanity-check.txt`` and ``verify-index-only.txt``, and the small files that say what a partition is.
``dump(cluster, file)`` prints one file.

Rules: what the tool printed is stored line by line as it was, with the folder taken out. It ends its lines with a line
feed; anything else that Python's ``splitlines`` takes for the end of a line is a character of somebody's record. The
tool gets a copy of the files, since it creates the indexes that it does not find.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from dumplog import DECODERS
from kafka_cluster import Cluster

__all__ = ["dump", "keep"]

LARGEST = 200_000
"""Bytes of a file that is kept."""
KEPT = (".log", ".txnindex", ".snapshot", ".checkpoint")
INDEXES = (".index", ".timeindex")
ABOUT = ("partition.metadata", "leader-epoch-checkpoint")
CHECKS = ("index-sanity-check", "verify-index-only")


def keep(cluster: Cluster, place: Path, target: Path, *, indexes: bool = False) -> None:
    """Copy the files of the partition in ``place`` to the folder ``target``, and write what the tool says about each.

    Empty files are left out, but for the indexes of what is kept: a short segment has an empty offset index.
    """
    kept = []
    for file in sorted(place.iterdir()):
        size = file.stat().st_size
        index = indexes and file.suffix in INDEXES and file.with_suffix(".log").stat().st_size
        if (file.suffix in KEPT and 0 < size < LARGEST) or index or (indexes and file.name in ABOUT):
            if size >= LARGEST:
                raise ValueError(f"{file.name} has {size} bytes: the broker was not shut down cleanly")
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target / file.name)
            kept.append(target / file.name)
    for file in kept:
        # The tool does not know the producer snapshots of the metadata log.
        known = file.suffix != ".snapshot" or not place.name.startswith("__cluster_metadata-")
        if known and file.name not in ABOUT:
            file.with_name(file.name + ".txt").write_bytes(dump(cluster, file))
    if indexes:
        files = [file for file in kept if file.suffix in INDEXES]
        for check in CHECKS:
            (target / f"{check}.txt").write_bytes(_run(cluster, files, [f"--{check}"]))


def dump(cluster: Cluster, file: Path) -> bytes:
    """What the tool prints for a file with everything that is in it: of a segment every batch and record."""
    options = []
    if file.suffix in (".log", ".checkpoint"):
        decoder = DECODERS.get(file.parent.name.rpartition("-")[0])
        options = ["--deep-iteration", "--print-data-log", *([decoder] if decoder else [])]
    return _run(cluster, [file], options)


def _run(cluster: Cluster, files: Iterable[Path], options: Iterable[str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="kwire-dump-") as scratch:
        copies = []
        for file in files:
            # What belongs to the same segment: an index is checked against the others and the log.
            for one in file.parent.glob(f"{file.stem}.*"):
                shutil.copy(one, scratch)
            copies.append(str(Path(scratch) / file.name))
        text = cluster.tool("dump-log", *options, "--files", ",".join(copies), check=False)
    # The first line of Kafka 3.9 is about its own logging.
    lines = text.replace(f"{scratch}/", "").removesuffix("\n").split("\n")
    return "".join(line + "\n" for line in lines if "ERROR Reconfiguration failed" not in line).encode()
