"""``kwire segments``: what stands in a broker's data directory. The exit code is 1 if something in it is wrong."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kwire.errors import KwireError
from kwire.naming import public
from kwire.tables.showing import readable

if TYPE_CHECKING:
    from kwire.log.entries import Entries
    from kwire.log.folders import Folder, Partition

__all__ = ["register"]

WRONG: Final = 1
"""The exit code where something is wrong."""

EPILOG = """\
examples:
  kwire segments /var/lib/kafka/data
  kwire segments orders-0
  kwire segments data --format jsonl | jq 'select(.problems != [])'
  kwire segments orders-0/00000000000000000042.index

The exit code is 0 where all is as it should be, 1 where something is not, 2 where a directory cannot be read.
"""


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "segments",
        help="what stands in a broker's data directory",
        description="Says of each partition in a data directory, or of one, which segments it has, up to where it is "
        "flushed, replicated and compacted, its leader epochs, producers and aborted transactions. Says what is wrong "
        "too: segments that overlap, files that are damaged.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "folders",
        nargs="+",
        metavar="FOLDER",
        help="a data directory, or that of a partition; or a file in one: an index, a snapshot, a checkpoint",
    )
    parser.add_argument(
        "--format",
        choices=("text", "jsonl"),
        default="text",
        help="for people, or a line for each partition or entry",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Describes the folders. Returns 0, 1 if something is wrong, or 2 if a folder could not be read."""
    from kwire import log
    from kwire.cli.stderr import BAD_INPUT, print_error
    from kwire.log.entries import Entries, entries, has_entries

    code = 0
    for name in args.folders:
        try:
            is_file = has_entries(Path(name).name) and not Path(name).is_dir()
            found = entries(name) if is_file else log.describe(name)
        except (KwireError, OSError) as error:
            print_error(error, name)
            code = BAD_INPUT
            continue
        as_json = args.format == "jsonl"
        if isinstance(found, Entries):
            lines, sound = _entries(name, found, as_json=as_json), not found.problems
        else:
            lines, sound = _lines(found) if as_json else _text(found), found.sound
        for line in lines:
            sys.stdout.write(line + "\n")
        if not sound:
            code = code or WRONG
    return code


# --- A file by itself -------------------------------------------------------------------------------------------------


def _entries(name: str, found: Entries, *, as_json: bool) -> Iterator[str]:
    """The lines of a file: its entries, each with what is wrong with it."""
    rows: list[dict[str, Any]] = [*found.rows]
    # An error at the end of a file is of no entry.
    rows += [{}] * (max(found.problems, default=-1) + 1 - len(rows))
    if not as_json:
        checked = ", held against the segment" if found.is_checked else ""
        counted = _counted(len(found.rows), "entry", "entries")
        yield readable(f"{public(name)}: {found.kind}, {counted}{checked}", None)
    for number, row in enumerate(rows):
        problem = found.problems.get(number)
        if as_json:
            yield json.dumps({"file": public(name), "entry": number, **row, "problem": problem}, ensure_ascii=True)
            continue
        said = ", ".join(f"{one.replace('_', ' ')} {value}" for one, value in row.items() if value is not None)
        wrong = "" if problem is None else f"{': ' if said else ''}problem: {problem}"
        yield readable(f"  {number}: {said}{wrong}", None)


# --- As JSON ----------------------------------------------------------------------------------------------------------


def _lines(folder: Folder) -> Iterator[str]:
    for one in folder.partitions:
        yield json.dumps(_object(folder, one), ensure_ascii=True)
    if folder.problems or folder.gone:
        gone = [f"{topic}-{partition}" for topic, partition in folder.gone]
        yield json.dumps({"folder": str(folder.path), "gone": gone, "problems": folder.problems}, ensure_ascii=True)


def _object(folder: Folder, one: Partition) -> dict[str, Any]:
    return {
        "folder": str(one.path),
        "node_id": folder.properties.get("node.id", folder.properties.get("broker.id")),
        "cluster_id": folder.properties.get("cluster.id"),
        "directory_id": folder.properties.get("directory.id"),
        "topic": one.topic,
        "partition": one.partition,
        "topic_id": one.topic_id,
        "log_start": one.log_start,
        "recovery_point": one.recovery_point,
        "high_watermark": one.high_watermark,
        "cleaned_up_to": one.cleaned_up_to,
        "leader_epochs": [epoch._asdict() for epoch in one.epochs],
        "segments": [
            {
                "file": each.segment.path.name,
                "first_offset": each.first,
                "last_offset": each.last,
                "batches": each.batches,
                "bytes": each.size,
            }
            for each in one.segments
        ],
        "producers": [each._asdict() for each in one.producers],
        "aborted": [each._asdict() for each in one.aborted],
        "problems": one.problems,
    }


# --- For people -------------------------------------------------------------------------------------------------------


def _text(folder: Folder) -> Iterator[str]:
    said = folder.properties
    known = {
        "node": said.get("node.id", said.get("broker.id")),
        "cluster": said.get("cluster.id"),
        "directory": said.get("directory.id"),
    }
    about = ", ".join(f"{name} {text}" for name, text in known.items() if text is not None)
    yield readable(f"{folder.path}: {about}" if about else str(folder.path), None)
    for one in folder.partitions:
        yield from _partition(one)
    if folder.gone:
        names = ", ".join(f"{topic}-{partition}" for topic, partition in folder.gone)
        yield readable(f"in checkpoints, but not there: {names}", None)
    for problem in folder.problems:
        yield readable(f"problem: {problem}", None)


def _partition(one: Partition) -> Iterator[str]:
    parts = [
        f"{name} {value}"
        for name, value in (
            ("topic id", one.topic_id),
            ("log start", one.log_start),
            ("recovery point", one.recovery_point),
            ("high watermark", one.high_watermark),
            ("cleaned up to", one.cleaned_up_to),
        )
        if value is not None
    ]
    yield readable(f"{one.topic}-{one.partition}: {', '.join(parts) or 'no checkpoint names it'}", None)
    if one.epochs:
        each = ", ".join(f"{epoch} from {start}" for epoch, start in one.epochs[-_MOST:])
        more = f" (the last {_MOST} of {len(one.epochs)})" if len(one.epochs) > _MOST else ""
        yield f"  leader epochs{more}: {each}"
    for extent in one.segments:
        offsets = "empty" if extent.first is None else f"offsets {extent.first} to {extent.last}"
        name = readable(extent.segment.path.name, None)
        yield f"  {name}: {offsets}, {_counted(extent.batches, 'batch', 'batches')}, {extent.size} bytes"
    for producer in one.producers[:_MOST]:
        is_open = producer.current_first_offset
        yield (
            f"  producer {producer.producer_id} epoch {producer.producer_epoch}: sequence {producer.last_sequence} at "
            f"offset {producer.last_offset}{'' if is_open is None else f', transaction open since offset {is_open}'}"
        )
    if len(one.producers) > _MOST:
        yield f"  ... and {len(one.producers) - _MOST} more producers"
    for gone in one.aborted[:_MOST]:
        yield f"  aborted: offsets {gone.first_offset} to {gone.last_offset} of producer {gone.producer_id}"
    if len(one.aborted) > _MOST:
        yield f"  ... and {len(one.aborted) - _MOST} more aborted transactions"
    for problem in one.problems:
        yield readable(f"  problem: {problem}", None)


_MOST: Final = 20
"""Lines of a kind for one partition. ``--format jsonl`` has all of them."""


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"
