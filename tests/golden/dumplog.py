"""What Kafka's dump-log tool prints of a segment, and how it compares with what ``kwire.log`` reads.

The lines are those of ``kafka-dump-log --deep-iteration --print-data-log`` of Kafka 3.7 and later. Shared by the tests
of the segments in this folder and of those that ``tests/broker`` has a broker write. A line ends with a line feed and
nothing else: what else Python takes for the end of a line stands in somebody's record.
"""

from __future__ import annotations

import base64
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from valid_batches import valid

from kwire import log
from kwire.codec.objects import dump_json
from kwire.log.internal import decode_control, decode_record
from kwire.protocol.describe import encode_embedded

Row = dict[str, Any]

DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__share_group_state": "--share-group-state-decoder",
}
"""Options of the tool for Kafka's own topics, with which their lines must have been printed."""

DERIVED = {"lastSequence"}
"""Follows from other numbers of the same line."""


def printed(file: Path) -> str:
    """What the tool printed for ``file``, from the text that is stored beside it."""
    return file.with_name(file.name + ".txt").read_bytes().decode("utf-8", "replace")


def rows(batches: Any) -> list[Row]:
    """All rows of some Arrow batches."""
    return [row for batch in valid(batches) for row in batch.to_pylist()]


def ms(time: datetime | None) -> int:
    return -1 if time is None else round(time.timestamp() * 1000)


def number(value: int | None) -> int:
    return -1 if value is None else value


def size(field: bytes | None) -> int:
    return -1 if field is None else len(field)


def kind(row: Row) -> str:
    """The tool's word for the timestamp type."""
    return row["timestamp_type"] or "NoTimestampType"


def compare(segment: log.Segment, text: str) -> None:
    """Asserts that the batches and the records of ``segment`` are those in the tool's ``text``, field by field."""
    # Remarks behind the last record are not about the format: on gaps, and since 4.0 on a first offset that is not 0.
    text = re.sub(r"\nNon-consecutive offsets in \S+\n(?:  -?\d+ is followed by \d+\n)+\Z", "\n", text)
    # A record goes on behind a line's end that is in its value.
    lines = re.split(r"\n(?=\| offset: |baseOffset: |offset: )", text.removesuffix("\n"))
    batch_lines = [one for one in lines if one.startswith(("baseOffset: ", "offset: "))]
    record_lines = [one for one in lines if one.startswith("| ")]
    assert batch_lines
    for row, line in zip(rows(log.batches(segment)), batch_lines, strict=True):
        compare_batch(row, line)
    for row, line in zip(rows(log.read(segment, secrets=True)), record_lines, strict=True):
        compare_record(row, line)


def compare_indexes(segment: log.Segment, offsets: str, times: str) -> int:
    """Asserts that the entries of both indexes are those in the tool's texts. Returns how many there are."""
    told = [tuple(map(int, one)) for one in re.findall(r"^offset: (\d+) position: (\d+)$", offsets, re.MULTILINE)]
    assert log.read_index(segment) == told
    count = len(told)
    told = [tuple(map(int, one)) for one in re.findall(r"^timestamp: (-?\d+) offset: (\d+)$", times, re.MULTILINE)]
    assert log.read_time_index(segment) == told
    return count + len(told)


def compare_batch(row: Row, line: str) -> None:
    told = dict(re.findall(r"(\w+): (\S+)", line))
    expected: Row = {
        "position": row["position"],
        "size": row["size"],
        "magic": row["magic"],
        "crc": row["crc"],
        kind(row): ms(row["max_timestamp"]),
    }
    if row["magic"] == 2:
        horizon = row["delete_horizon"]
        expected |= {
            "baseOffset": row["base_offset"],
            "lastOffset": row["last_offset"],
            "count": row["count"],
            "baseSequence": number(row["base_sequence"]),
            "producerId": number(row["producer_id"]),
            "producerEpoch": number(row["producer_epoch"]),
            "partitionLeaderEpoch": number(row["partition_leader_epoch"]),
        }
        assert told["isTransactional"] == str(row["is_transactional"]).lower()
        assert told["isControl"] == str(row["is_control"]).lower()
        assert told["deleteHorizonMs"] == ("OptionalLong.empty" if horizon is None else f"OptionalLong[{ms(horizon)}]")
    else:
        expected["offset"] = row["last_offset"]
    assert expected == {
        name: int(value) for name, value in told.items() if re.fullmatch(r"-?\d+", value) and name not in DERIVED
    }
    assert told["compresscodec"] == row["compression"]
    assert told["isvalid"] == str(row["crc_ok"]).lower()
    assert row["status"] == "ok"


def compare_record(row: Row, line: str) -> None:
    head = (
        f"| offset: {row['offset']} {kind(row)}: {ms(row['timestamp'])} "
        f"keySize: {size(row['key'])} valueSize: {size(row['value'])}"
    )
    if row["magic"] == 2:
        names = ",".join(header["key"] for header in row["headers"])
        head += f" sequence: {number(row['sequence'])} headerKeys: [{names}]"
    else:
        head += f" isValid: {str(row['crc_ok']).lower()} crc: "
    assert line.startswith(head)
    assert row["status"] == "ok"
    rest = line[len(head) :]
    if row["magic"] < 2:
        # The checksum of a message inside of a wrapper is in no column.
        rest = re.sub(r"^\d+}", "", rest)
    if row["is_control"]:
        compare_control_record(row, rest.strip())
    elif row["topic"] in DECODERS:
        compare_own_record(row, rest)
    else:
        key = "" if row["key"] is None else f" key: {row['key'].decode('utf-8', 'replace')}"
        value = "" if row["value"] is None else f" payload: {row['value'].decode('utf-8', 'replace')}"
        assert rest == key + value


def compare_control_record(row: Row, text: str) -> None:
    """``text`` is ``endTxnMarker: COMMIT coordinatorEpoch: 0``, a type and JSON, or ``controlType: NAME(number)``."""
    found = decode_control(row["key"], row["value"])
    assert found is not None
    name, head, value = found
    assert head is not None
    assert value is not None
    if text.startswith("endTxnMarker"):
        assert text == f"endTxnMarker: {name.upper()} coordinatorEpoch: {value['coordinator_epoch']}"
    elif text.startswith("controlType"):
        assert text == f"controlType: {name.upper()}({head['type']})"
    else:
        kind, _, printed = text.partition(" ")
        assert plain(kind.rstrip(":")) == plain(name)
        contains(json.loads(dump_json(value)), json.loads(printed))


def compare_own_record(row: Row, text: str) -> None:
    """``text`` is JSON of the key, where there is one, and of the value, made by the tool's decoder of the topic."""
    found = decode_record(row["topic"], row["key"], row["value"])
    assert found is not None, text
    name, key, value = found
    ours = None if value is None else json.loads(dump_json(value))
    before, _, printed = text.partition(" payload: ")
    if row["topic"] == "__cluster_metadata":
        told = json.loads(printed)
        assert plain(told["type"]) == plain(name)
        contains(ours, {"version": told["version"], **told["data"]})
        return
    if before.startswith(" key: transaction_metadata::"):
        compare_transaction(key, ours, text)
        return
    told = json.loads(before.removeprefix(" key: "))
    assert int(told["type"]) == int.from_bytes(row["key"][:2], "big")
    contains(json.loads(dump_json(key)), told["data"])
    if printed == "<DELETE>":
        assert ours is None
    else:
        told = json.loads(printed)
        contains(ours, {"version": int(told["version"]), **told["data"]})


STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead")
"""The tool's words for ``transaction_status``."""


def compare_transaction(key: Any, value: Any, text: str) -> None:
    """Up to Kafka 3.9 the tool has a form of its own for ``__transaction_state``."""
    partitions = ",".join(
        f"{topic['topic']}-{partition}"
        for topic in value["transaction_partitions"] or []
        for partition in topic["partition_ids"]
    )
    assert text == (
        f" key: transaction_metadata::transactionalId={key['transactional_id']} payload: "
        f"producerId:{value['producer_id']},producerEpoch:{value['producer_epoch']},"
        f"state={STATES[value['transaction_status']]},partitions=[{partitions}],"
        f"txnLastUpdateTimestamp={value['transaction_last_update_timestamp_ms']},"
        f"txnTimeoutMs={value['transaction_timeout_ms']}"
    )


def plain(name: str) -> str:
    """A name of any spelling, ``lastOffset`` or ``LAST_OFFSET``, without its spelling."""
    return name.replace("_", "").lower()


def contains(ours: Any, told: Any) -> None:
    """Asserts that ``ours`` says all that was ``told``. The tool leaves out tagged fields that have their default."""
    if isinstance(told, dict):
        fields = {plain(name): value for name, value in ours.items()}
        for name, value in told.items():
            one = fields[plain(name)]
            if isinstance(one, dict) and isinstance(value, str):
                # What the members of a group told each other: bytes to the tool.
                schema = f"ConsumerProtocol{name.capitalize()}"
                assert encode_embedded(schema, one) == base64.b64decode(value)
            else:
                contains(one, value)
    elif isinstance(told, list):
        for one, value in zip(ours, told, strict=True):
            contains(one, value)
    else:
        assert ours == told
