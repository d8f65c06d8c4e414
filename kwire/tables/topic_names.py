"""Names of topics by their ids, from elsewhere than the capture: tables, folders of brokers, the metadata of KRaft.

Rules kept here:

- The name of a file says what it is:
    - ``.csv``: with a line of names
    - ``.json``: objects, in lines or in a list, or one object from id to name
    - ``partition.metadata``: the topic is that of its folder
    - ``.log``, ``.checkpoint``: segments and snapshots of ``__cluster_metadata``
- An id is in Kafka's text form, or in that of other uuids. Any other text is an error: names would be missing silently.
- If an id has several names, the last one counts.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final
from uuid import UUID

from kwire.errors import KwireError
from kwire.log.files import named
from kwire.opening import below, open_file
from kwire.protocol.secrets import METADATA_TOPIC
from kwire.wire import parse_uuid, printable, uuid_text

__all__ = ["has_names", "names_of", "topic_names"]

MOST: Final = 256 << 20
"""Bytes of a table of names that are read."""
_METADATA: Final = "partition.metadata"
_TABLES: Final = (".csv", ".json", ".jsonl", ".ndjson")
_SEGMENTS: Final = (".log", ".checkpoint")
_LONGEST_QUOTED: Final = 80
"""Characters of what is no name or id that an error quotes."""
_IDS, _NAMES = ("topic_id", "topicid", "id", "uuid"), ("topic_name", "topic", "name")


def has_names(path: str) -> bool:
    """Whether a file of this name in a folder says names of topics. Tables are to be named: others lie there too."""
    one = PurePosixPath(path)
    of_metadata = one.suffix in _SEGMENTS and one.parent.name.startswith(f"{METADATA_TOPIC}-")
    return one.name == _METADATA or of_metadata


def topic_names(paths: Iterable[str | Path]) -> dict[str, str]:
    """Names by id in Kafka's text form, out of files and folders, for ``kwire.capture.read(topic_ids=...)``.

    Of a folder, the files that brokers leave in it or in its folders are read. A data folder has the
    ``partition.metadata`` of all of its topics. Tables must be named. Raises ``OSError``, and ``KwireError`` for a file
    that is none of these.
    """
    found: dict[bytes, str] = {}
    for path in map(Path, paths):
        for one in sorted(filter(has_names, below(path))) if path.is_dir() else [str(path)]:
            with open_file(one) as stream:
                found.update(names_of(os.path.abspath(one), stream))  # noqa: PTH100 - as it is named
    return {uuid_text(UUID(bytes=id_)): name for id_, name in found.items()}


def names_of(path: str, stream: BinaryIO) -> dict[bytes, str]:
    """The names in one file, by the 16 bytes of the id. Raises ``KwireError`` for what is no such file."""
    one = PurePosixPath(path)
    if one.suffix in _SEGMENTS:
        return dict(_of_metadata_log(path, stream))
    # A stream may give less than it is asked for.
    data = b""
    while len(data) <= MOST and (more := stream.read(MOST + 1 - len(data))):
        data += more
    if len(data) > MOST:
        raise KwireError(f"{path}: more than {MOST} bytes of names of topics")
    try:
        return _of_text(path, one, data.decode("utf-8-sig", "replace"))
    except (csv.Error, RecursionError):
        raise KwireError(f"{path}: cannot be read as a table of names") from None


def _of_text(path: str, one: PurePosixPath, text: str) -> dict[bytes, str]:
    if one.name == _METADATA:
        segment = named(Path(path).with_name("00000000000000000000.log"), text)
        if segment.topic is None or segment.topic_id is None:
            raise KwireError(f"{path}: no topic and id in it and the name of its folder")
        return {parse_uuid(segment.topic_id).bytes: segment.topic}
    if one.suffix == ".csv":
        return dict(_of_rows(path, csv.DictReader(io.StringIO(text))))
    if one.suffix not in _TABLES:
        raise KwireError(f"{path}: names of topics are in {', '.join((*_TABLES, *_SEGMENTS))} and {_METADATA}")
    try:
        said = json.loads(text)
    except ValueError:
        try:
            said = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError:
            raise KwireError(f"{path}: neither JSON nor lines of it") from None
    if isinstance(said, dict) and not any(name.lower() in _IDS for name in said):
        return {_id(path, id_): _name(path, name) for id_, name in said.items()}
    rows = said if isinstance(said, list) else [said]
    if not all(isinstance(row, dict) for row in rows):
        raise KwireError(f"{path}: no objects with an id and a name")
    return dict(_of_rows(path, rows))


def _of_rows(path: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[bytes, str]]:
    for row in rows:
        low = {str(name).strip().lower(): value for name, value in row.items()}
        id_ = next((low[name] for name in _IDS if name in low), None)
        name = next((low[name] for name in _NAMES if name in low), None)
        if id_ is None or name is None:
            raise KwireError(f"{path}: no columns topic_id and name")
        yield _id(path, id_), _name(path, name)


def _of_metadata_log(path: str, stream: BinaryIO) -> Iterator[tuple[bytes, str]]:
    from kwire.tables.log_records import DEEP

    for batch in DEEP.read(stream, columns=["record_type", "decoded_value"], name=path):
        for row in batch.to_pylist():
            if row["record_type"] == "TopicRecord" and row["decoded_value"] is not None:
                said = json.loads(row["decoded_value"])
                yield _id(path, said["topic_id"]), printable(said["name"])


def _name(path: str, name: object) -> str:
    """The name of a topic: a text, or a number in place of one."""
    if not isinstance(name, str | int) or isinstance(name, bool):
        raise KwireError(f"{path}: {str(name)[:_LONGEST_QUOTED]!r} is no name of a topic")
    return printable(str(name))


def _id(path: str, text: object) -> bytes:
    try:
        return parse_uuid(str(text).strip()).bytes
    except ValueError:
        raise KwireError(f"{path}: {str(text)[:_LONGEST_QUOTED]!r} is no id of a topic") from None
