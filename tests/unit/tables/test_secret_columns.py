"""A field that its schema marks as secret is in no column of any table."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kwire import capture, schema, tables
from kwire.capture.reading import Reading
from kwire.errors import SchemaError
from kwire.schema.format import message_to_text
from kwire.schema.loader import Catalog
from kwire.schema.model import Field, Message, Primitive

GOLDEN = Path(__file__).parents[2] / "golden"
CAPTURES = [
    GOLDEN / name
    for name in (
        "kafka-4.3-kraft-java/clients.pcap",
        "kafka-4.3-kraft-java/share.pcap",
        "kafka-4.3-kraft-auth/mechanisms.pcap",
        "kafka-4-telemetry/gzip.pcap",
    )
]
EVERY = [*tables.names(tables.CAPTURE), *tables.names(tables.EVENTS)]
PROGRAM = """
import json, sys
from kwire import capture, schema

folder, tables, *captures = sys.argv[1:]
schema.load_folder(folder)
for secrets in (False, True):
    print(json.dumps({
        f"{file} {table}": [row for batch in capture.read(file, table, secrets=secrets) for row in batch.to_pylist()]
        for file in captures for table in tables.split(",")
    }, default=repr))
"""


def hidden(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """The fields, where each text and each array of bytes is secret."""
    return tuple(
        replace(one, secret=one.secret or ("always" if one.type in (Primitive("string"), Primitive("bytes")) else ""))
        for one in fields
    )


def secret(message: Message) -> Message:
    structs = {name: replace(one, fields=hidden(one.fields)) for name, one in message.structs.items()}
    return replace(message, fields=hidden(message.fields), structs=structs)


def texts(values: Any, *, listed: bool = False) -> set[str]:
    """The texts in a value. ``listed``: those in arrays of texts alone, which cannot be secret."""
    if isinstance(values, dict):
        return {text for one in values.values() for text in texts(one, listed=listed)}
    if isinstance(values, list):
        own = {one for one in values if isinstance(one, str)}
        return own | {text for one in values if not isinstance(one, str) for text in texts(one, listed=listed)}
    return {values} if isinstance(values, str) and not listed else set()


def told(file: Path) -> tuple[set[str], set[str]]:
    """What bodies of a capture say, as text: (in fields, and what is known without them)."""
    said: set[str] = set()
    known = {name for name in schema.api_keys().values() if name}
    with file.open("rb") as source:
        for frames in Reading(source):
            for frame in frames:
                known.add(frame.client_id or "")
                if frame.status.name == "OK":
                    body = frame.body.to_dict(frame.api_version)
                    said |= texts(body)
                    known |= texts(body, listed=True)
    return said, known


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[dict[str, Any]]]]:
    """All tables, where each text of a body is secret: without secrets, and with them."""
    folder = tmp_path_factory.mktemp("schemas")
    every = [one for key in schema.api_keys() for one in (schema.request(key), schema.response(key)) if one is not None]
    text = "\n".join(message_to_text(secret(one)) for one in every)
    (folder / "all.kwire").write_text(text)
    command = [sys.executable, "-c", PROGRAM, str(folder), ",".join(EVERY), *map(str, CAPTURES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


LEAST = 5
"""Characters of a text that occurs nowhere else by chance."""


@pytest.mark.parametrize("file", CAPTURES, ids=lambda file: file.stem)
def test_no_table_shows_a_field_that_is_secret(read: list[dict[str, list[dict[str, Any]]]], file: Path) -> None:
    said, known = told(file)
    without, shown = ({table: every[f"{file} {table}"] for table in EVERY} for every in read)
    known |= {row[f"{end}_host"] for row in without["frames"] for end in ("client", "broker")}
    wanted = {one for one in said if len(one) >= LEAST and not any(one in other for other in known)}
    assert wanted
    for table, rows in without.items():
        values = {
            (name, text)
            for row in rows
            for name, value in row.items()
            if name not in ("capture", "key", "value", "headers")
            for text in texts(json.loads(value) if name == "body" and value else value)
        }
        assert not {one for one in values if one[1] in wanted}, table
    # What is pushed is one array of bytes.
    assert not any(row["metric"] for row in without["client_metrics"])
    assert file.stem != "gzip" or any(row["metric"] for row in shown["client_metrics"])
    # Asked for, it is all there, as if nothing were secret.
    for table, rows in shown.items():
        plain = [row for batch in capture.read(file, table, secrets=True) for row in batch.to_pylist()]
        expected = json.loads(json.dumps(plain, default=repr))
        assert len(rows) == len(expected)
        for one, other in zip(rows, expected, strict=True):
            assert {name: value for name, value in one.items() if value != other[name]} == {}, (table, other)


def test_a_field_of_a_header_cannot_be_secret(tmp_path: Path) -> None:
    (tmp_path / "headers.kwire").write_text("header RequestHeader versions 0-1\n  client_id  string  secret\n")
    with pytest.raises(SchemaError, match="client_id is secret, which no field of a header can be"):
        Catalog().load_folder(tmp_path)
