"""CloudEvents and Hono messages from whole columns of records, for Spark and the command line.

``cloudevents`` and ``hono_messages`` take the columns of a batch as Arrow arrays. They give a struct array with a row
for each record: null where the record is none of it. They say the same as ``kwire.events.cloudevents.row`` and
``kwire.events.hono.read``, which ``tests/unit/events/test_columns.py`` checks.

Strategy: what is right is computed by columns, and what is not by the row. The names of all headers of a batch are
numbered; there are few different ones. Each header that means something becomes a column. Its values are checked and
converted as columns. A record in which everything is as the common producers write it is *clean* and done. The others
are read one by one. They have something wrong, something unusual (an upper-case ``Z``, a percent sign in a source), or
an event in JSON. So the rules stand once, in the modules named above. A check here may only be stricter, never more
lenient, and no wording is repeated.

Rules kept here: no input raises; every step is linear in the size of the batch.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.events import cloudevents as ce
from kwire.events import hono, media
from kwire.events.sessions import OF_METRICS
from kwire.limits import DEFAULT_LIMITS, Limits, check_limits
from kwire.records.arrow_types import TIMESTAMP
from kwire.records.headers import Headers
from kwire.wire import LAST_MS

__all__ = [
    "CLOUDEVENT",
    "HONO_MESSAGE",
    "PLACE",
    "RENAMED",
    "cloudevents",
    "each_violation",
    "hono_messages",
    "http_events",
    "kinds_of",
]

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]

PLACE: Final = (
    "capture",
    "connection",
    "frame",
    "frame_timestamp",
    "source",
    "topic",
    "partition",
    "offset",
    "timestamp",
)
"""Columns of the table ``records`` that say which record it is.

They come before what the record means.
"""

RENAMED: Final = {"source": "record_source", "timestamp": "record_timestamp"}
"""What two of ``PLACE`` are called there: ``source`` is an attribute of events, and a record has more than one time."""

_OTHERS: Final = {"time": TIMESTAMP, "data": pa.binary(), "extensions": pa.map_(pa.string(), pa.string())}

CLOUDEVENT: Final = pa.struct([pa.field(name, _OTHERS.get(name, pa.string())) for name in ce.COLUMNS])
"""What ``cloudevents`` gives: the keys of ``kwire.events.cloudevents.row``."""

VIOLATIONS: Final = pa.list_(
    pa.field("element", pa.struct([pa.field("rule", pa.string()), pa.field("detail", pa.string())]))
)

HONO_MESSAGE: Final = pa.struct(
    [
        pa.field("kind", pa.string()),
        pa.field("tenant", pa.string()),
        pa.field("device_id", pa.string()),
        pa.field("content_type", pa.string()),
        pa.field("content_encoding", pa.string()),
        pa.field("creation_time", TIMESTAMP),
        pa.field("qos", pa.int32()),
        pa.field("ttd", pa.int32()),
        pa.field("ttl", pa.int64()),
        pa.field("correlation_id", pa.string()),
        pa.field("response_status", pa.int32()),
        pa.field("expired", pa.bool_()),
        pa.field("connected_until", TIMESTAMP),
        pa.field("violations", VIOLATIONS),
    ]
)
"""What ``hono_messages`` gives: ``kwire.events.hono.Message`` with ``expired``; times instead of milliseconds."""

PLAIN_URI: Final = r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]+"
"""Characters of a URI-reference without the percent sign, which needs a look at what follows."""
PLAIN_TIME: Final = (
    r"(?:[1-8][0-9]{3}|9[0-8][0-9]{2})-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(?:\.[0-9]+)?(?:Z|[+-](?:0[0-9]|1[0-9]|2[0-3]):[0-5][0-9])"
)
"""RFC 3339 in capitals, of years that are in range whatever the offset."""
EVERY_MONTH: Final = r"\A.{8}(?:[01][0-9]|2[0-8])"
"""Days that every month has."""
DECIMAL: Final = "-?[0-9]{1,18}"


def _re2(pattern: str) -> str:
    """A pattern of the rules for Arrow's RE2, which spells code points beyond a byte differently."""
    for code in ("fdd0", "fdef", "fffe", "ffff"):
        pattern = pattern.replace(rf"\u{code}", rf"\x{{{code}}}")
    return pattern


def _matches(texts: pa.Array, pattern: str) -> Mask:
    """Which texts match as a whole; null does not."""
    return _mask(pc.match_substring_regex(texts, rf"\A(?:{_re2(pattern)})\z"))


def _mask(array: pa.Array) -> Mask:
    """Booleans with null as false."""
    made: Mask = pc.fill_null(array, False).to_numpy(zero_copy_only=False)
    return made


def _there(array: pa.Array) -> Mask:
    made: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return made


def _texts(values: pa.Array) -> tuple[pa.Array, Mask]:
    """Bytes as text, and which of those that are there are not UTF-8 (null in the texts)."""
    try:
        return values.cast(pa.string()), np.zeros(len(values), bool)
    except pa.ArrowInvalid:
        bad = np.array([not _is_utf8(value) for value in values.to_pylist()], bool)
        return pc.if_else(pa.array(~bad), values, pa.scalar(None, values.type)).cast(pa.string()), bad


def _is_utf8(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _together(clean: Mask, columns: list[pa.Array], type_: pa.DataType, slow: pa.Array) -> pa.Array:
    """A struct array of the clean rows from columns, and of the others from ``slow``, in their order."""
    if len(clean) and not clean.any():
        return slow
    fast = pa.StructArray.from_arrays(
        [one.cast(f.type) for one, f in zip(columns, type_, strict=True)], fields=[*type_]
    )
    if clean.all():
        return fast
    place = np.where(clean, np.cumsum(clean) - 1, clean.sum() + np.cumsum(~clean) - 1)
    return pa.concat_arrays([fast.filter(pa.array(clean)), slow]).take(pa.array(place))


# --- CloudEvents ------------------------------------------------------------------------------------------------


def cloudevents(
    headers: pa.Array, value: pa.Array, magic: pa.Array | None = None, limits: Limits = DEFAULT_LIMITS
) -> pa.Array:
    """The CloudEvents in records, as an array of ``CLOUDEVENT``; null for what is no CloudEvent.

    - ``headers``: ``list<struct<key: string, value: binary>>``.
    - ``value``: binary.
    - ``magic``: the message format as an integer. None means that all records can have headers; a null element means
      the same for its record.
    - ``limits``: what an event in JSON may become.
    """
    check_limits(limits)
    found = Headers(headers)
    content_type, times = found.column(ce.CONTENT_TYPE)
    of_event = found.which(lambda name: name.startswith(ce.PREFIX))
    count = np.bincount(found.row[of_event], minlength=found.rows)
    types, not_utf8 = _texts(content_type)
    clean = (count > 0) & ~not_utf8 & (times < 2)
    has_type = times > 0
    clean &= ~has_type | (_matches(types, media.MEDIA_TYPE) & ~_structured(types))

    # Each name once in a record; the names themselves; no header without a value.
    good_names = found.which(_plain_name)
    there = _there(found.values)
    bad = of_event & ~(good_names & there)
    clean &= np.bincount(found.row[bad], minlength=found.rows) == 0
    pairs = found.row[of_event] * (len(found.names) + 1) + found.number[of_event]
    _, first = np.unique(pairs, return_index=True)
    repeated = np.ones(len(pairs), bool)
    repeated[first] = False
    clean &= np.bincount(found.row[of_event][repeated], minlength=found.rows) == 0

    columns: dict[str, pa.Array] = {"datacontenttype": types}
    for name in ce.CORE:
        if name == "datacontenttype":
            continue
        texts, not_utf8 = _texts(found.column(ce.PREFIX + name)[0])
        clean &= ~not_utf8
        absent = ~_there(texts)
        if name == "time":
            columns[name], known = _times(texts)
            clean &= known | absent
            continue
        if name == "source":
            good = _matches(texts, PLAIN_URI)
        elif name == "dataschema":
            good = _matches(texts, ce.URI) & _matches(texts, PLAIN_URI)
        elif name == "specversion":
            good = _mask(pc.equal(texts, "1.0"))
        else:
            good = _plain_text(texts) & _mask(pc.greater(pc.binary_length(texts), 0))
        clean &= good if name in ce.REQUIRED else good | absent
        columns[name] = texts

    extensions, bad_rows = _extensions(found, of_event)
    clean &= ~bad_rows
    nothing = pa.nulls(found.rows, pa.string())
    made = {**columns, "data": value, "extensions": extensions, "error": nothing}
    made["mode"] = pa.array(np.full(found.rows, "binary", object), pa.string())
    others = pa.array(_each(clean, headers, value, magic, limits), CLOUDEVENT)
    return _together(clean, [made[name] for name in ce.COLUMNS], CLOUDEVENT, others)


def http_events(headers: pa.Array) -> int:
    """How many records have headers of CloudEvents, as the HTTP binding spells them.

    Give it those that are none.
    """
    found = Headers(headers)
    spelled = found.which(ce.http_name)
    for at in np.flatnonzero(found.which(lambda name: name.lower() == ce.CONTENT_TYPE)).tolist():
        spelled[at] = ce.http_content_type(found.names[found.number[at]] or "", found.values[at].as_py())
    return len(np.unique(found.row[spelled]))


def _plain_name(name: str) -> bool:
    attribute = name[len(ce.PREFIX) :]
    return attribute.isascii() and attribute.isalnum() and attribute.islower() and attribute not in _RESERVED


_RESERVED: Final = ("data", "datacontenttype")


def _plain_text(texts: pa.Array) -> Mask:
    return ~_mask(pc.match_substring_regex(texts, _re2(ce.CONTROL))) & _there(texts)


def _structured(types: pa.Array) -> Mask:
    return _mask(pc.match_substring_regex(types, rf"\A[ \t]*(?i:{ce.MEDIA})"))


def _times(texts: pa.Array) -> tuple[pa.Array, Mask]:
    """Timestamps of the usual form, and which texts have it."""
    good = _matches(texts, PLAIN_TIME)
    cut = pc.replace_substring_regex(texts, r"(\.[0-9]{6})[0-9]+", r"\1")
    null = pa.scalar(None, pa.string())
    try:
        return pc.if_else(pa.array(good), cut, null).cast(TIMESTAMP), good
    except pa.ArrowInvalid:
        # A day that its month does not have.
        good &= _mask(pc.match_substring_regex(texts, EVERY_MONTH))
        return pc.if_else(pa.array(good), cut, null).cast(TIMESTAMP), good


def _extensions(found: Headers, of_event: Mask) -> tuple[pa.Array, Mask]:
    """The other attributes as a map, and the records in which one of them is not plain text."""
    core = {ce.PREFIX + name for name in ce.CORE}
    more = of_event & ~found.which(lambda name: name in core)
    at = np.flatnonzero(more)
    texts, bad = _texts(found.values.take(pa.array(at)))
    bad |= ~_plain_text(texts)
    ends = np.cumsum(np.bincount(found.row[at], minlength=found.rows))
    names = pa.array([(name or "")[len(ce.PREFIX) :] for name in found.names], pa.string())
    keys = names.take(pa.array(found.number[at]))
    offsets = np.concatenate([np.zeros(1, np.int64), ends]).astype(np.int32)
    made = pa.MapArray.from_arrays(pa.array(offsets), keys, texts)
    return made, np.bincount(found.row[at][bad], minlength=found.rows) > 0


def _each(clean: Mask, headers: pa.Array, value: pa.Array, magic: pa.Array | None, limits: Limits) -> list[Any]:
    rows = pa.array(~clean)
    formats = [2] * int((~clean).sum()) if magic is None else magic.filter(rows).to_pylist()
    values = zip(_pairs(headers.filter(rows)), value.filter(rows).to_pylist(), formats, strict=True)
    return [ce.row(pairs, data, magic=2 if form is None else form, limits=limits) for pairs, data, form in values]


def _pairs(headers: pa.Array) -> Iterator[list[tuple[str, bytes | None]]]:
    """The headers of each record, as pairs of name and value."""
    lengths = pc.fill_null(pc.list_value_length(headers), 0).to_pylist()
    names, values = (one.to_pylist() for one in headers.flatten().flatten())
    at = 0
    for length in lengths:
        end = at + length
        pairs = zip(names[at:end], values[at:end], strict=True)
        yield [(name, content) for name, content in pairs if name is not None]
        at = end


# --- Hono -------------------------------------------------------------------------------------------------------


def hono_messages(topic: pa.Array, key: pa.Array, headers: pa.Array, value: pa.Array, now: pa.Array) -> pa.Array:
    """The Hono messages in records, as an array of ``HONO_MESSAGE``; null where the topic is none of Hono's.

    ``topic``: string, ``key`` and ``value``: binary, ``headers`` as in ``cloudevents``, ``now``: when ``expired`` is
    judged, in ms since 1970.
    """
    found = Headers(headers)
    kinds = kinds_of(topic)
    tenant = _tenants(topic, kinds)
    has_tenant = _mask(pc.greater(pc.binary_length(tenant), 0))
    clean = has_tenant & _there(value) & (kinds != _RESPONSE)
    for name in hono.MANDATORY:
        clean &= found.column(name)[1] == 1
    if not clean.any():
        return _messages(~clean, kinds, tenant, key, headers, value, now)
    got: dict[str, pa.Array] = {}
    given: dict[str, Mask] = {}
    for name in hono.HEADERS:
        values, count = found.column(name)
        clean &= (count < 2) & ((count > 0) == _there(values))
        given[name] = count > 0
        if name in hono.NUMBERS:
            got[name], good = _numbers(values, name)
        else:
            got[name], not_utf8 = _texts(values)
            good = ~not_utf8 & _mask(pc.greater(pc.binary_length(got[name]), 0))
            if name in hono.PATTERNS:
                good &= _matches(got[name], hono.PATTERNS[name])
            if name == "device_id":
                clean &= _mask(pc.equal(key, values))
        clean &= good if name in hono.MANDATORY else good | ~given[name]
    clean &= given["creation-time"] | ~(given["ttd"] | given["ttl"])
    created, ttd, ttl = got["creation-time"], got["ttd"], got["ttl"]
    until = pc.if_else(pc.greater_equal(ttd, 0), pc.add(created, pc.multiply(ttd, 1000)), pa.scalar(None, pa.int64()))
    until = pc.if_else(pc.less_equal(until, LAST_MS), until, pa.scalar(None, pa.int64()))
    none = pa.ListArray.from_arrays(
        pa.array(np.zeros(found.rows + 1, np.int32)), pa.array([], VIOLATIONS.value_type), type=VIOLATIONS
    )
    columns = [
        _KINDS.take(pa.array(kinds, mask=kinds < 0)),
        tenant,
        got["device_id"],
        got["content-type"],
        got["content-encoding"],
        pc.multiply(created, 1000),
        got["qos"],
        ttd,
        ttl,
        pa.nulls(found.rows, pa.string()),
        pa.nulls(found.rows, pa.int32()),
        pc.less(ttl, pc.subtract(now, created)),
        pc.multiply(until, 1000),
        none,
    ]
    return _together(clean, columns, HONO_MESSAGE, _messages(~clean, kinds, tenant, key, headers, value, now))


_KINDS: Final = pa.array([*hono.KINDS])
_RESPONSE: Final = [*hono.KINDS].index(hono.RESPONSE)


def kinds_of(topic: pa.Array) -> Numbers:
    """Which of ``hono.KINDS`` each topic has, counted from 0; -1 where it is none of Hono's."""
    made = np.full(len(topic), -1, np.int64)
    for number, prefix in enumerate(hono.KINDS.values()):
        made[_mask(pc.starts_with(topic, prefix))] = number
    return made


def _tenants(topic: pa.Array, kinds: Numbers) -> pa.Array:
    """What follows the prefix of Hono's topics; null for other topics."""
    prefixes = [*hono.KINDS.values()]
    if len(topic) > 1 and kinds[0] >= 0 and topic[1:].equals(topic[:-1]):
        # One topic is the rule. A name of 32 kB in each of many rows is then cut once, and copied.
        return pa.repeat(topic[0].as_py()[len(prefixes[kinds[0]]) :], len(topic))
    # The prefix is ASCII: what follows it is UTF-8 as well.
    texts = [
        pc.binary_replace_slice(topic.filter(pa.array(kinds == number)), 0, len(prefix), "")
        for number, prefix in enumerate(prefixes)
    ]
    place = np.empty(len(kinds), np.int64)
    # The rows of the first kind stand first, then those of the second; what is none of Hono's is null.
    place[np.argsort(kinds, kind="stable")] = np.arange(len(kinds)) - int((kinds < 0).sum())
    return pa.concat_arrays(texts).take(pa.array(place, mask=kinds < 0))


def _numbers(values: pa.Array, name: str) -> tuple[pa.Array, Mask]:
    """The numbers in a header, and which records have a good one: in its range, decimal or big-endian."""
    size = hono.NUMBERS[name]
    texts, _ = _texts(values)
    decimal = _matches(texts, DECIMAL)
    null = pa.scalar(None, pa.string())
    made: Numbers = (
        pc.if_else(pa.array(decimal), texts, null).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).copy()
    )
    binary = _mask(pc.equal(pc.binary_length(values), size)) & ~_matches(texts, hono.PRINTABLE)
    if binary.any():
        chosen = values.filter(pa.array(binary)).cast(pa.binary(size))
        raw = np.frombuffer(chosen.buffers()[1], f">i{size}", len(chosen), chosen.offset * size)
        made[binary] = raw
    low, high = hono.RANGES[name]
    good = (decimal | binary) & (made >= low) & (made <= high)
    return pa.array(np.where(good, made, 0), pa.int64(), mask=~good), good


def _messages(
    chosen: Mask, kinds: Numbers, tenant: pa.Array, key: pa.Array, headers: pa.Array, value: pa.Array, now: pa.Array
) -> pa.Array:
    """The chosen records, read one by one. Names of tenants, which may be long, are not looked at again."""
    if not chosen.all():
        rows = pa.array(chosen)
        tenant, key, headers, value, now = (one.filter(rows) for one in (tenant, key, headers, value, now))
        kinds = kinds[chosen]
    is_message = kinds >= 0
    named, keyed, valued = _mask(pc.greater(pc.binary_length(tenant), 0)), _there(key), _there(value)
    with_headers = is_message & (pc.fill_null(pc.list_value_length(headers), 0).to_numpy() > 0)
    rows = pa.array(with_headers)
    pairs = _pairs(headers.filter(rows))
    parts = (one.tolist() for one in (kinds[with_headers], named[with_headers], valued[with_headers]))
    found = [_NONE, *_bare()]
    # Of records without headers hardly anything tells one from another, and there may be one for seven bytes.
    which = np.where(is_message, 1 + 8 * kinds + 4 * named + 2 * keyed + valued, 0)
    which[with_headers] = np.arange(len(found), len(found) + int(with_headers.sum()))
    for kind, has_name, has_value, key_, given in zip(*parts, key.filter(rows).to_pylist(), pairs, strict=True):
        found.append(_read(kind, has_name, key_, given, has_value))
    violations = [violation for one in found for violation in one.violations]
    texts = pa.StructArray.from_arrays(
        [pa.array([getattr(one, name) for one in violations], pa.string()) for name in ("rule", "detail")],
        fields=[*VIOLATIONS.value_type],
    )
    ends = np.cumsum([0, *(len(one.violations) for one in found)]).astype(np.int32)

    def of(name: str) -> pa.Array:
        return pa.array([getattr(one, name) for one in found], HONO_MESSAGE.field(name).type)

    def time(name: str) -> pa.Array:
        numbers = pa.array([getattr(one, name) for one in found], pa.int64())
        return pc.multiply(numbers, 1000).cast(TIMESTAMP)

    asked = [None] * (len(found) - int(with_headers.sum())) + now.filter(rows).to_pylist()
    expired = [
        None if at is None else hono.expired(one.creation_time, one.ttl, at)
        for one, at in zip(found, asked, strict=True)
    ]
    columns = {
        **{name: of(name) for name in _AS_THEY_ARE},
        "creation_time": time("creation_time"),
        "connected_until": time("connected_until"),
        "expired": pa.array(expired, pa.bool_()),
        "violations": pa.ListArray.from_arrays(pa.array(ends), texts, type=VIOLATIONS),
    }
    at = pa.array(which)
    columns = {name: one.take(at) for name, one in columns.items()} | {"tenant": tenant}
    nulls = pa.array(~is_message)
    return pa.StructArray.from_arrays([columns[f.name] for f in HONO_MESSAGE], fields=[*HONO_MESSAGE], mask=nulls)


@functools.cache
def _bare() -> tuple[hono.Message, ...]:
    """The messages without headers: by kind, then with a tenant or without, with a key, and with a value."""
    some = (False, True)
    each = itertools.product(range(len(hono.KINDS)), some, some, some)
    return tuple(_read(kind, name, b"" if key else None, [], value) for kind, name, key, value in each)


def _read(
    kind: int, has_name: bool, key: bytes | None, pairs: list[tuple[str, bytes | None]], has_value: bool
) -> hono.Message:
    """A message without its tenant, whose name may be long."""
    topic = [*hono.KINDS.values()][kind] + ("t" if has_name else "")
    made = hono.read(topic, key, pairs, b"" if has_value else None)
    assert made is not None
    return made


_NONE: Final = hono.Message("")
_AS_THEY_ARE: Final = (
    "kind",
    "device_id",
    "content_type",
    "content_encoding",
    "qos",
    "ttd",
    "ttl",
    "correlation_id",
    "response_status",
)


# --- Client telemetry -------------------------------------------------------------------------------------------


def each_violation(metrics: pa.RecordBatch) -> pa.RecordBatch:
    """One row for each violation in rows of ``client_metrics``, which have ``metric`` and ``violations``.

    The columns are the others of ``metrics``, then ``metric`` (null where a request as a whole is meant), ``rule`` and
    ``detail``.
    """
    lists = metrics.column("violations")
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    place = [name for name in metrics.schema.names if name not in ("metric", "violations")]
    rows = metrics.select([*place, "metric"]).take(pa.array(np.repeat(np.arange(len(lengths)), lengths)))
    rule, detail = lists.flatten().flatten()
    metric = pc.if_else(pc.is_in(rule, pa.array(OF_METRICS)), rows.column("metric"), pa.scalar(None, pa.string()))
    columns = [*(rows.column(one) for one in place), metric, rule, detail]
    return pa.RecordBatch.from_arrays(columns, [*place, "metric", "rule", "detail"])
