"""The three tables that a capture becomes: their Arrow schemas and the words that their columns use.

``FRAMES`` has one row per frame (and a few rows that stand for bytes in which no frame can be seen), ``MESSAGES``
the same plus the decoded body, ``RECORDS`` one row per record. ``docs/tables.md`` explains every column to the
reader of a table.

Rules kept here:

- Only Arrow types that Spark's Python data source accepts: no large or view types, no dictionaries, no unsigned
  integers, timestamps in microseconds with the time zone ``UTC``. A Kafka timestamp has milliseconds, a capture at
  most nanoseconds (which are cut to microseconds).
- ``capture``, ``connection`` and ``frame`` together name a frame. They are never null and are the key that joins
  RECORDS to FRAMES. ``connection`` counts from 0 in the order in which a capture's connections appear; ``frame``
  counts from 0 in the order in which frames are complete, over the whole capture. Frames and connections that a
  reader leaves out still count, so that a number means the same thing in each of the three tables.
- Nullable means "not known": a column is non-nullable only where every row has a value.

This module imports pyarrow and no kernel, so that a schema costs no compilation.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

import pyarrow as pa

from kwire.records.arrow_types import HEADERS, TIMESTAMP

__all__ = [
    "FRAMES",
    "FRAME_STATUSES",
    "MESSAGES",
    "RECORDS",
    "RECORD_STATUSES",
    "SCHEMAS",
    "Table",
]

Table = Literal["frames", "messages", "records"]
"""Names of the tables, as ``kwire.capture.read(table=...)`` and the Spark option ``table`` take them."""

FRAME_STATUSES: Final = {
    "ok": "a request, or a response that was paired with its request",
    "unpaired": "a response whose request is not in the capture, so that its API and version are not known",
    "malformed": "the header cannot be read, or (in messages) the body is not what its version says",
    "unsupported": "an API key or version that kwire has no layout for",
    "cut_off": "the stream ended, or the capture did, in the middle of this frame; or it was given up to bound memory",
    "gap": "packets are missing from the capture: what is left of a frame, or bytes skipped up to the next one",
    "encrypted": "TLS: no frame can be seen; one row for the connection",
    "sasl": "a raw SASL token: a length and opaque bytes, no header (after SaslHandshake v0, or GSSAPI of 0.9 clients)",
}
"""``status`` of FRAMES and MESSAGES, and what each means. ``error`` says more, in a sentence, unless it is ``ok``."""

RECORD_STATUSES: Final = {
    "ok": "a record, its checksum verified",
    "corrupt": "a record (or a whole batch: then offset, key and value are null) whose checksum does not match",
    "malformed": "bytes that are no record set entry, or a batch that cannot be decompressed or read to its end",
    "unreadable": "the frame that holds the records is incomplete or malformed",
}
"""``status`` of RECORDS, and what each means. ``error`` says more, in a sentence, unless it is ``ok``."""

_FRAME_KEY: Final = [
    pa.field("capture", pa.string(), nullable=False),
    pa.field("connection", pa.int64(), nullable=False),
    pa.field("frame", pa.int64(), nullable=False),
]

FRAMES: Final = pa.schema(
    [
        *_FRAME_KEY,
        pa.field("timestamp", TIMESTAMP, nullable=False),
        pa.field("direction", pa.string(), nullable=False),
        pa.field("client_host", pa.string(), nullable=False),
        pa.field("client_port", pa.int32(), nullable=False),
        pa.field("broker_host", pa.string(), nullable=False),
        pa.field("broker_port", pa.int32(), nullable=False),
        pa.field("api_key", pa.int16()),
        pa.field("api_name", pa.string()),
        pa.field("api_version", pa.int16()),
        pa.field("correlation_id", pa.int32()),
        pa.field("client_id", pa.string()),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("latency_ms", pa.float64()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("error", pa.string()),
    ]
)
"""One row per frame.

``timestamp`` is when the capture had the frame's last byte and all bytes before it. ``size`` counts the bytes after the
4-byte length, as the length says (what was really seen of a frame that is cut off stands in ``error``); of a
``gap`` that holds no frame, the bytes skipped. A response has the API, version and client_id of its request;
``latency_ms`` is the time in milliseconds from the last byte of the request to the last byte of its response, null
in requests.
"""

MESSAGES: Final = pa.schema([*FRAMES, pa.field("body", pa.string())])
"""FRAMES plus ``body``: the decoded body as JSON text (bytes are base64); null unless ``status`` is ok."""

RECORDS: Final = pa.schema(
    [
        *_FRAME_KEY,
        pa.field("frame_timestamp", TIMESTAMP, nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("topic", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP),
        pa.field("timestamp_type", pa.string()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS),
        pa.field("magic", pa.int8()),
        pa.field("compression", pa.string()),
        pa.field("crc_ok", pa.bool_()),
        pa.field("producer_id", pa.int64()),
        pa.field("producer_epoch", pa.int16()),
        pa.field("sequence", pa.int32()),
        pa.field("partition_leader_epoch", pa.int32()),
        pa.field("is_transactional", pa.bool_()),
        pa.field("is_control", pa.bool_()),
        pa.field("control_type", pa.string()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("error", pa.string()),
    ]
)
"""One row per record of a Produce request (``source`` is ``produce``), a Fetch or ShareFetch response (``fetch``).

``frame_timestamp`` is FRAMES' ``timestamp``, ``timestamp`` the record's own. ``topic_id`` is the uuid in Kafka's
URL-safe base64 form where the frame has one; ``topic`` is then the name that a message earlier in the capture gave
to it, or null. Bytes that are no record become one row with a status other than ``ok`` and the record columns null.
"""

SCHEMAS: Final[dict[Table, pa.Schema]] = {"frames": FRAMES, "messages": MESSAGES, "records": RECORDS}
"""The schema of each table."""

assert tuple(SCHEMAS) == get_args(Table)
