"""What messages say of partitions, by walking their objects: what the table ``partitions`` is held against."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

from kwire.protocol.error_codes import ErrorCode
from kwire.records import decode
from kwire.schema.model import Array, Field, Message, Primitive, StructRef
from kwire.wire import LAST_MS, uuid_text

Row = dict[str, Any]

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
NOTHING: Row = dict.fromkeys(
    (
        "path",
        "group_id",
        "topic",
        "topic_id",
        "partition",
        "offset",
        "offset_spec",
        "timestamp",
        "leader_epoch",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "leader",
        "isr",
        "record_bytes",
        "batches",
        "records",
        "compression",
        "error",
    )
)
SPECS = ("latest", "earliest", "max_timestamp", "earliest_local", "latest_tiered", "earliest_pending_upload")

NUMBERS = ("partition_index", "partition", "partition_id", "index")
EPOCHS = ("leader_epoch", "committed_leader_epoch", "current_leader_epoch", "replica_epoch")
OFFSETS = (
    "offset",
    "base_offset",
    "fetch_offset",
    "committed_offset",
    "end_offset",
    "start_offset",
    "last_offset",
)
ISRS = ("isr_nodes", "isr", "new_isr", "new_isr_with_epochs")


def partitions(body: Any, version: int) -> list[Row]:
    """The rows of a message object, without what they have of their frame."""
    return list(_walk(body.SCHEMA, body.SCHEMA.fields, body, version, "", None))


def _of(fields: tuple[Field, ...], thing: Any, version: int) -> Row:
    """The values of the fields that the version has; of a tagged one that is its default, none."""
    made = {}
    for one in fields:
        if version not in one.versions:
            continue
        value = getattr(thing, one.name)
        if value.__class__ is not type(value):
            # The shared default: it was not sent.
            continue
        if version not in one.tagged or value != one.default:
            made[one.name] = value
    return made


def _walk(
    message: Message, fields: tuple[Field, ...], thing: Any, version: int, path: str, group: str | None
) -> Iterator[Row]:
    own = _of(fields, thing, version)
    group = own.get("group_id", group)
    topic = _topic(own)
    for one in fields:
        value = own.get(one.name)
        if value is None:
            continue
        name = path + one.name
        if isinstance(one.type, StructRef):
            yield from _walk(message, message.structs[one.type.name].fields, value, version, f"{name}.", group)
        elif isinstance(one.type, Array) and isinstance(one.type.element, Primitive):
            if topic and one.name in ("partitions", "partition_indexes"):
                for number in value:
                    yield NOTHING | topic | {"path": name, "group_id": group, "partition": number}
        elif isinstance(one.type, Array):
            assert isinstance(one.type.element, StructRef)
            inner = message.structs[one.type.element.name].fields
            kinds = {each.name for each in inner if version in each.versions and each.type == Primitive("int32")}
            number = next((one for one in NUMBERS if one in kinds), None)
            flat = {"topic_name"} <= {each.name for each in inner if version in each.versions}
            if number is not None and (topic or flat):
                for each in value:
                    found = _of(inner, each, version)
                    place = _topic(found) if flat else topic
                    yield _row(message, found, number) | place | {"path": name, "group_id": group}
                if not value and topic and "error_code" in own:
                    yield NOTHING | topic | {"path": name, "group_id": group, "error": _error(own["error_code"])}
            else:
                for each in value:
                    yield from _walk(message, inner, each, version, f"{name}.", group)


def _topic(own: Row) -> Row:
    made: Row = {}
    for name in ("topic", "topic_name", "name"):
        if isinstance(own.get(name), str):
            made["topic"] = own[name]
            break
    if "topic_id" in own:
        made["topic_id"] = uuid_text(own["topic_id"]) if own["topic_id"].int else None
    return made


def _error(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def _first(own: Row, names: tuple[str, ...]) -> Any:
    return next((own[name] for name in names if name in own), None)


def _row(message: Message, own: Row, number: str) -> Row:
    made = NOTHING | {"partition": own[number]}
    made["offset"] = _first(own, OFFSETS)
    if own.get("old_style_offsets"):
        made["offset"] = own["old_style_offsets"][0]
    if message.api_name == "FetchSnapshot":
        made["offset"] = own["snapshot_id"].end_offset
    when = _first(own, ("timestamp", "log_append_time_ms", "commit_timestamp"))
    if when is not None and 0 <= when <= LAST_MS:
        made["timestamp"] = EPOCH + datetime.timedelta(milliseconds=when)
    if message.name == "ListOffsetsRequest" and -6 <= when < 0:
        made["offset_spec"] = SPECS[-1 - when]
    made["leader_epoch"] = _first(own, EPOCHS)
    made["leader"] = _first(own, ("leader_id", "leader"))
    if "current_leader" in own:
        made["leader"] = own["current_leader"].leader_id
        if made["leader_epoch"] is None:
            made["leader_epoch"] = own["current_leader"].leader_epoch
    for name in ("high_watermark", "last_stable_offset"):
        made[name] = own.get(name)
    made["log_start_offset"] = _first(own, ("log_start_offset", "low_watermark"))
    isr = _first(own, ISRS)
    if isr is not None:
        made["isr"] = [one if isinstance(one, int) else one.broker_id for one in isr]
    code = _first(own, ("error_code", "partition_error_code"))
    if code is not None:
        made["error"] = _error(code)
    sent = _first(own, ("records", "unaligned_records"))
    if sent is not None:
        made["record_bytes"] = len(sent)
        if "records" in own:
            ranges = [(one.first_offset, one.last_offset) for one in own.get("acquired_records", ())]
            made |= _counted(bytes(sent), ranges if "acquired_records" in own else None)
    return made


def _counted(data: bytes, ranges: list[tuple[int, int]] | None) -> Row:
    """``ranges``: those that were acquired; None: all records are the client's."""
    batches = list(decode(data))
    codecs = {one.compression for one in batches}
    known = all(one.magic == 2 or one.compression == "none" for one in batches)
    if ranges is not None:
        numbers = [one for each in ranges for one in (each[0], each[1] + 1)]
        known = known and numbers == sorted(numbers) and all(first <= last for first, last in ranges)
        begins = [one.base_offset if one.magic == 2 else one.last_offset for one in batches]
        ends = [-1, *(one.last_offset for one in batches)]
        known = known and all(begin > end for begin, end in zip(begins, ends, strict=False))

    def has(offset: int) -> bool:
        return ranges is None or any(first <= offset <= last for first, last in ranges)

    return {
        "batches": len(batches),
        "records": sum(has(one.offset) for each in batches for one in each.records) if known else None,
        "compression": None if not codecs else codecs.pop() if len(codecs) == 1 else "mixed",
    }
