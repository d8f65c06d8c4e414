"""The records of Kafka's own topics, decoded: ``__consumer_offsets``, ``__transaction_state``, ``__share_group_state``
and ``__cluster_metadata``, and control records of any topic.

``decode_record(topic, key, value)`` gives what one record says. ``decoded(batch)`` adds it to a table of records as
three columns:

- ``record_type``: the name of the schema, ``OffsetCommit``
- ``decoded_key`` and ``decoded_value``: JSON text, with bytes in base64

``of_metadata`` leaves secrets out of the columns of records.

How these topics say what a record is:

- The coordinators' topics: the key starts with an int16. In ``__consumer_offsets`` and ``__share_group_state`` it is
  the type of the record, in ``__transaction_state`` a version. The value is an int16 version and a message. No value
  means that the thing is gone.
- ``__cluster_metadata`` has no keys. A value is a frame version, the type and the version as unsigned varints, then the
  message (KIP-631).
- Control records: the key is a version and a type, the value a message whose schema goes by the type.

Rules kept here:

- A type or version that no schema has gives null columns, never an error. So do bytes that do not match their type. A
  newer broker's log stays readable.
- A version newer than the newest known is read as that one if it has an int16 version, as Kafka does for group data.
- Secrets of ``__cluster_metadata`` are left out of what is decoded, and a value that holds some is replaced as a whole,
  unless ``secrets`` are wanted (``kwire.protocol.secrets``). The topic must be known for that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kwire import schema
from kwire.codec import registry
from kwire.codec.objects import dump_json
from kwire.errors import DecodeError, LimitError
from kwire.limits import DEFAULT_LIMITS, Limits, check_limits
from kwire.protocol.embedded import ASSIGNMENT, SUBSCRIPTION, decode_embedded, member_data
from kwire.protocol.secrets import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    REDACTED,
    hidden_record,
    is_cut_off,
    metadata_record,
    redact,
    secret_beginnings,
)
from kwire.records.control import CONTROL_TYPES, control_type
from kwire.schema.model import Message
from kwire.wire import read_uvarint, uuid_text

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "DECODED",
    "MAY_HIDE",
    "TOPICS",
    "decode_control",
    "decode_record",
    "decoded",
    "of_metadata",
    "redacted_columns",
]

DECODED: Final = ("record_type", "decoded_key", "decoded_value")
"""The columns that ``decoded`` adds."""

MAY_HIDE: Final = ("key", "value", "headers")
"""The columns of records in which something may be hidden."""

Decoded = tuple[str, dict[str, Any] | None, dict[str, Any] | None]
"""The record's type, its key and its value. None if there is none."""

_MEMBER: Final = {"subscription": SUBSCRIPTION, "assignment": ASSIGNMENT}
_OWN_VERSION: Final = frozenset(
    {"leader_change", "snapshot_header", "snapshot_footer", "kraft_version", "kraft_voters"}
)
_CONTROL_VALUES: Final = {
    "abort": "EndTxnMarker",
    "commit": "EndTxnMarker",
    "leader_change": "LeaderChangeMessage",
    "snapshot_header": "SnapshotHeaderRecord",
    "snapshot_footer": "SnapshotFooterRecord",
    "kraft_version": "KRaftVersionRecord",
    "kraft_voters": "VotersRecord",
}
assert set(_CONTROL_VALUES) == set(CONTROL_TYPES)


def decode_record(
    topic: str, key: bytes | None, value: bytes | None, *, secrets: bool = False, limits: Limits | None = None
) -> Decoded | None:
    """What a record of one of Kafka's own topics says, None if that is not known. Raises ``DecodeError`` for bytes that
    do not match their type. Raises ``LimitError`` for more than ``limits`` allow (None: ``DEFAULT_LIMITS``)."""
    if topic == METADATA_TOPIC:
        return _metadata(value, secrets, limits)
    read = _COORDINATORS.get(topic)
    return None if read is None else read(key, value, limits)


def decode_control(key: bytes | None, value: bytes | None, *, limits: Limits | None = None) -> Decoded | None:
    """What a control record says, as ``decode_record``. The type is that of ``kwire.records.CONTROL_TYPES``."""
    kind = control_type(key)
    name = _CONTROL_VALUES.get(kind or "")
    if kind is None or key is None or name is None:
        return None
    head = {
        "version": int.from_bytes(key[:2], "big", signed=True),
        "type": int.from_bytes(key[2:4], "big", signed=True),
    }
    if value is None:
        return kind, head, None
    if kind not in _OWN_VERSION:
        return kind, head, decode_embedded(name, value, limits=limits)
    # These carry their version as the first field of the message itself.
    if len(value) < 2:
        raise DecodeError(f"{len(value)} bytes are too few for a version", layout=name, offset=0)
    message = schema.message(name)
    version = min(max(int.from_bytes(value[:2], "big", signed=True), message.versions.low), message.versions.high)
    made, _ = registry.codec(message, version).decode_prefix(value, 0, limits)
    return kind, head, made.to_dict(version)


@lru_cache(maxsize=8)
def _by_type(folder: str, generation: int) -> dict[int, str]:
    """Names of a topic's records by the int16 that their keys start with, in a generation of the schemas."""
    found = {}
    for name in schema.names(folder):
        if name.endswith("Key"):
            message = schema.message(name)
            if message.api_key is not None:
                found[message.api_key] = name.removesuffix("Key")
    return found


def _typed(folder: str) -> Callable[[bytes | None, bytes | None, Limits | None], Decoded | None]:
    def read(key: bytes | None, value: bytes | None, limits: Limits | None) -> Decoded | None:
        if key is None or len(key) < 2:
            return None
        name = _by_type(folder, schema.generation()).get(int.from_bytes(key[:2], "big", signed=True))
        if name is None:
            return None
        message = schema.message(name + "Key")
        made = registry.codec(message, message.versions.high).decode(key, 2, limits).to_dict(message.versions.high)
        if value is None:
            return name, made, None
        return name, made, _with_members(name, decode_embedded(name + "Value", value, limits=limits), limits)

    return read


def _with_members(name: str, value: dict[str, Any], limits: Limits | None) -> dict[str, Any]:
    """What the members of a classic group sent each other, if they are consumers (KIP-62) or workers of Connect."""
    if name == "GroupMetadata":
        for member in value["members"]:
            for field, place in _MEMBER.items():
                if member[field]:
                    member[field] = member_data(
                        place, member[field], value.get("protocol_type"), value.get("protocol"), limits=limits
                    )
    return value


def _is_short(value: bytes | None) -> bool:
    """Whether there is too little for a record of ``__cluster_metadata``. Raises ``DecodeError``."""
    found = None if value is None else metadata_record(value)
    return value is not None and found is not None and is_cut_off(*found[:2], len(value) - found[2])


def _metadata(value: bytes | None, secrets: bool, limits: Limits | None) -> Decoded | None:
    found = None if value is None else metadata_record(value)
    if value is None or found is None:
        return None
    message, version, pos = found
    made, _ = registry.codec(message, version).decode_prefix(value, pos, limits)
    values = made.to_dict(version)
    if not secrets:
        redact(type(made), values)
    return message.name, None, {"version": version, **values}


def _remote(_key: bytes | None, value: bytes | None, limits: Limits | None) -> Decoded | None:
    """A record of tiered storage: API key and version as varints, and the message (KIP-405)."""
    if value is None:
        return None
    try:
        kind, pos = read_uvarint(value, 0)
        version, pos = read_uvarint(value, pos)
    except (IndexError, ValueError):
        raise DecodeError(f"{len(value)} bytes are too few for a type and a version", offset=0) from None
    message = _by_key(REMOTE, schema.generation()).get(kind)
    if message is None:
        return None
    made = registry.codec(message, version).decode(value, pos, limits)
    return message.name, None, {"version": version, **made.to_dict(version)}


@lru_cache(maxsize=2)
def _by_key(folder: str, generation: int) -> dict[int, Message]:
    """The messages of a folder of schemas by their keys."""
    found = [schema.message(name) for name in schema.names(folder)]
    return {one.api_key: one for one in found if one.api_key is not None}


REMOTE: Final = "remote"
_COORDINATORS: Final[dict[str, Callable[[bytes | None, bytes | None, Limits | None], Decoded | None]]] = {
    "__consumer_offsets": _typed("groups"),
    "__remote_log_metadata": _remote,
    "__share_group_state": _typed("share"),
    "__transaction_state": _typed("transactions"),
}

TOPICS: Final = (*_COORDINATORS, METADATA_TOPIC)
"""Kafka's own topics, whose records ``decode_record`` knows."""


def with_redacted(values: pa.Array, rows: Any, *, sure: bool = True) -> pa.Array:
    """``values`` (binary) with text such as ``{"redacted": 212}`` in place of those that hold secrets.

    ``rows`` are the numbers, in order, of those that are values of records of ``__cluster_metadata``, not of control
    records. Not ``sure``: of those that may be. Most others are recognised by their first bytes.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    chosen = pa.array(rows, pa.int64())
    if not sure:
        begins = pc.binary_slice(values.take(chosen), 0, 2)
        chosen = chosen.filter(pc.is_in(begins, value_set=pa.array(secret_beginnings(), values.type)))
    hidden = pa.array([hidden_record(one, sure=sure) for one in values.take(chosen).to_pylist()], values.type)
    if hidden.null_count == len(hidden):
        return values
    chosen = chosen.filter(pc.is_valid(hidden))
    mask = pc.is_in(pa.array(range(len(values)), pa.int64()), value_set=chosen)
    return pc.replace_with_mask(values, mask, hidden.drop_null())


def may_hold_secrets(topic: str | None, topic_id: str | None) -> bool:
    """Whether ``redacted_columns`` looks at the records of such a segment."""
    return topic in (None, METADATA_TOPIC) or topic_id == uuid_text(METADATA_TOPIC_ID)


def redacted_columns(
    columns: Mapping[str, pa.Array], is_control: pa.Array, topic: str | None, topic_id: str | None
) -> dict[str, pa.Array]:
    """``columns`` of the records of one segment (by name) without their secrets.

    The topic says whether a segment is of ``__cluster_metadata``. If the topic is not known (a file that was copied
    elsewhere, or has another name) or contradicts the id, each value is checked by itself.
    """
    import numpy as np

    made = dict(columns)
    if topic == METADATA_TOPIC:
        return of_metadata(made, np.ones(len(is_control), bool), is_control.to_numpy(False))
    if "value" in made and may_hold_secrets(topic, topic_id):
        made["value"] = with_redacted(made["value"], range(len(is_control)), sure=False)
    return made


def of_metadata(columns: Mapping[str, pa.Array], rows: Any, is_control: Any) -> dict[str, pa.Array]:
    """``columns`` of records (by name) without the secrets of those that are of ``__cluster_metadata``: ``rows``, a
    mask, as ``is_control`` is.

    Values are hidden that hold secrets or may (``with_redacted``). A bit of the batch says that a record is a control
    record, so its value is checked by itself. Kafka writes no headers there, and keys only to control records, of four
    bytes (KIP-631). All other bytes in a key or in headers are hidden. The headers of a record become one header
    ``redacted``.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    made = dict(columns)
    if not rows.any():
        return made
    if (value := made.get("value")) is not None:
        value = with_redacted(value, np.flatnonzero(rows & ~is_control))
        made["value"] = with_redacted(value, np.flatnonzero(rows & is_control), sure=False)
    if (key := made.get("key")) is not None and key.null_count < len(key):
        sizes = _sizes(key)
        hidden = rows & (sizes > 0) & ~(is_control & (sizes == _CONTROL_KEY))
        if hidden.any():
            made["key"] = pc.replace_with_mask(key, pa.array(hidden), _said(sizes[hidden]))
    if (headers := made.get("headers")) is not None:
        counts = pc.fill_null(pc.list_value_length(headers), 0).to_numpy(False)
        hidden = np.flatnonzero(rows & (counts > 0))
        if len(hidden):
            made["headers"] = _without_headers(headers, hidden, counts[hidden])
    return made


_CONTROL_KEY: Final = 4
"""Bytes of the key of a control record: a version and a type."""


def _without_headers(headers: pa.Array, rows: Any, counts: Any) -> pa.Array:
    """``headers`` with one header that says how many bytes those of ``rows`` have, in place of them."""
    import numpy as np
    import pyarrow as pa

    inner = headers.take(pa.array(rows)).flatten()
    sums = np.concatenate([[0], np.cumsum(_sizes(inner.field("key")) + _sizes(inner.field("value")))])
    ends = np.cumsum(counts)
    values = _said(sums[ends] - sums[ends - counts])
    one = headers.type.value_type
    names = pa.repeat(pa.scalar(REDACTED, one.field("key").type), len(rows))
    structs = pa.StructArray.from_arrays([names, values], fields=[one.field("key"), one.field("value")])
    offsets = pa.array(np.arange(len(rows) + 1), pa.int32())
    place = np.arange(len(headers))
    place[rows] = len(headers) + np.arange(len(rows))
    both = pa.concat_arrays([headers, pa.ListArray.from_arrays(offsets, structs, type=headers.type)])
    return both.take(pa.array(place))


def _sizes(column: pa.Array) -> Any:
    """The bytes of each of its values. Null has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.fill_null(pc.binary_length(column), 0).cast(pa.int64()).to_numpy(False)


def _said(sizes: Any) -> pa.Array:
    """``{"redacted": 212}`` for each size, as bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    before, after = json.dumps({REDACTED: 0}).split("0")
    return pc.binary_join_element_wise(before, pa.array(sizes).cast(pa.string()), after, "").cast(pa.binary())


def decoded(batch: pa.RecordBatch, *, secrets: bool = False, limits: Limits = DEFAULT_LIMITS) -> pa.RecordBatch:
    """``batch`` with the columns ``record_type``, ``decoded_key`` and ``decoded_value`` added (all nullable strings).

    It needs the columns ``topic``, ``key``, ``value`` and ``is_control``. Rows of other topics get nulls unless they
    are control records. It needs values as they are (``log.read(..., secrets=True)``), and leaves out secrets itself. A
    record that would become more than ``limits`` allow is not decoded. ``status`` and ``error``, if they are there, say
    so.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    check_limits(limits)
    types: list[str | None] = [None] * batch.num_rows
    keys: list[str | None] = [None] * batch.num_rows
    values: list[str | None] = [None] * batch.num_rows
    known = pc.is_in(batch.column("topic"), value_set=pa.array([*TOPICS], pa.string()))
    rows = pc.indices_nonzero(pc.or_(known, pc.fill_null(batch.column("is_control"), False)))
    beyond: dict[int, str] = {}
    picked = batch.select(["topic", "key", "value", "is_control"]).take(rows)
    for row, one in zip(rows.to_pylist(), picked.to_pylist(), strict=True):
        try:
            if one["topic"] == METADATA_TOPIC and not one["is_control"] and _is_short(one["value"]):
                continue
            found = (
                decode_control(one["key"], one["value"], limits=limits)
                if one["is_control"]
                else decode_record(one["topic"], one["key"], one["value"], secrets=secrets, limits=limits)
            )
        except LimitError as error:
            beyond[row] = str(error)
            continue
        except DecodeError:
            continue
        if found is not None:
            key, value = (None if one is None else dump_json(one) for one in found[1:])
            if len(key or "") + len(value or "") > limits.text:
                beyond[row] = f"{found[0]} as JSON text: {limits.said('text')}"
                continue
            types[row], keys[row], values[row] = found[0], key, value
    fields = [*batch.schema, *(pa.field(name, pa.string()) for name in DECODED)]
    if beyond:
        batch = _too_large(batch, beyond)
    columns = [*batch.columns, *(pa.array(column, pa.string()) for column in (types, keys, values))]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _too_large(batch: pa.RecordBatch, beyond: dict[int, str]) -> pa.RecordBatch:
    """``batch`` with status and error of rows that were beyond a limit, if they have none."""
    import pyarrow as pa

    from kwire.records.verdicts import OK, TOO_LARGE

    names = batch.schema.names
    if "status" not in names:
        return batch
    statuses = batch.column("status").to_pylist()
    rows = [row for row in beyond if statuses[row] == OK]
    for row in rows:
        statuses[row] = TOO_LARGE
    batch = batch.set_column(names.index("status"), batch.schema.field("status"), pa.array(statuses, pa.string()))
    if "error" in names:
        errors = batch.column("error").to_pylist()
        for row in rows:
            errors[row] = beyond[row]
        batch = batch.set_column(names.index("error"), batch.schema.field("error"), pa.array(errors, pa.string()))
    return batch
