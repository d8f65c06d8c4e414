r"""CloudEvents in Kafka records: the Kafka protocol binding of CloudEvents 1.0, both content modes, both ways.

    event = cloudevents.from_record(record)                    # a kwire.records.Record
    record = cloudevents.to_record(event, key=b"k")            # binary content mode
    record = cloudevents.to_record(event, mode="structured", key_mapper=cloudevents.partitionkey)

``read`` takes a record apart and says everything that is wrong with it. ``from_record`` makes an event of the result,
``row`` a row of a table. The rules, their patterns and the wording of the problems stand here, once.
``kwire.events.columns`` reads whole columns of records with them, and Spark (``kwire.spark.events``) calls that.

Events are those of the ``cloudevents`` package (extra ``events``), and its JSON format writes structured records. Its
own Kafka binding is not used, because it does not keep these rules of the specification (version 2.2):

- 3: the content mode follows from the content type. The package looks for ``ce_`` headers, which structured records may
  have as well (3.3.3). It reads batches and unknown formats as JSON.
- 3.1: the record key is the user's, and a key mapper is opt-in and leaves the event alone. The package maps
  ``partitionkey`` by default, and makes an attribute of the key of every record that it reads.
- 3.2.2: no data is no value, a tombstone. The package writes a value of no bytes.
- 3.2.3: values have CloudEvents' canonical text (``true``, not ``True``); each attribute appears once. The package
  keeps headers in a dict.
- JSON format 2.2 and 3.1: null is an attribute that is not set, and ``data`` and ``data_base64`` exclude each other.
  The package's event invents an id and a time where there are none. It does so in its constructor, so that what is read
  is checked before, and an invented time taken out again.

Decisions where the specification leaves room:

- Header names are compared as they are: Kafka's are case-sensitive and the binding spells them in lower case. Media
  types are compared without regard to case (RFC 2046). Names of attributes are ``[a-z0-9]+``.
- A record of message format 0 or 1 has no headers and may only be structured (1.3). Without a content type, it is
  structured when its value is a JSON object with the member ``specversion``.
- A record with no ``ce_`` header and no CloudEvents content type is no CloudEvent, and that is not an error. Where its
  headers are those of the HTTP binding (``ce-id``, ``Content-Type``), this is reported all the same.
- In binary mode, data are the bytes of the value. In the JSON format they are bytes (``data_base64``), a string, or a
  JSON value. An explicit ``null`` is the bytes ``null``, because None means no data.
- A structured event in a format other than JSON is refused. With ``unknown_formats="binary"`` it is read as binary,
  which the binding allows. Then the value stays as it is, the content type is that of the format, and attributes come
  from ``ce_`` headers.
- ``ce_`` headers beside a structured event are those of binary mode (3.3.3). A header that contradicts the event, or
  that the event does not have, is a problem. Times are compared as times.
- A structured event may be in any charset that its content type names, where Python has it (``kwire.events.media``).
- Only specversion 1.0.
"""

from __future__ import annotations

import base64
import copy
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from kwire import strict
from kwire.errors import DecodeError, EncodeError, MissingExtraError
from kwire.events import media
from kwire.limits import DEFAULT_LIMITS, Limits, check_limits
from kwire.records import Record

if TYPE_CHECKING:
    from cloudevents.core.base import BaseCloudEvent
    from cloudevents.core.v1.event import CloudEvent

__all__ = [
    "COLUMNS",
    "KeyMapper",
    "Mode",
    "Reading",
    "UnknownFormatError",
    "content_mode",
    "from_record",
    "partitionkey",
    "read",
    "row",
    "to_record",
]

Mode = Literal["binary", "structured"]
"""Content mode of an event: "binary" (attributes are headers) or "structured" (one JSON value).

Source: Kafka Protocol Binding for CloudEvents 1.0.2, section 3.
"""

Headers: TypeAlias = Iterable[tuple[str, bytes | None]]

KeyMapper: TypeAlias = "Callable[[BaseCloudEvent], bytes | str | None]"
"""Makes the key of a record from a copy of the event.

None leaves the key that the user gave (section 3.1).
"""

CONTENT_TYPE: Final = "content-type"
PREFIX: Final = "ce_"
MEDIA: Final = "application/cloudevents"
BATCH: Final = "application/cloudevents-batch"
JSON: Final = "application/cloudevents+json"
JSON_WRITTEN: Final = "application/cloudevents+json; charset=UTF-8"
"""As in the example of section 3.3.4."""

REQUIRED: Final = ("id", "source", "type", "specversion")
CORE: Final = (*REQUIRED, "subject", "time", "datacontenttype", "dataschema")

COLUMNS: Final = (*CORE, "data", "extensions", "mode", "error")
"""Columns of a table of events, in order.

All are text but ``time`` (a timestamp), ``data`` (bytes) and ``extensions`` (a map from name to canonical text).
"""

NAME: Final = "[a-z0-9]+"
TIMESTAMP: Final = (
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
"""RFC 3339, section 5.6."""
CONTROL: Final = r"[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]"
"""Characters that no attribute may have. (The non-characters beyond U+FFFF are not looked for.)"""
URI_REFERENCE: Final = r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+"
URI: Final = "[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9._~:/?#\\[\\]@!$&'()*+,;=%-]*"
"""RFC 3986: the characters, and for the second a scheme."""
BAD_PERCENT: Final = "%(?![0-9A-Fa-f]{2})"
"""What they must not contain."""
BASE64: Final = "[A-Za-z0-9+/]*={0,2}"
"""RFC 4648, together with a length that 4 divides."""

PATTERNS: Final = {
    "source": (URI_REFERENCE, "is not a URI-reference"),
    "specversion": (r"1\.0", "is not 1.0"),
    "datacontenttype": (media.MEDIA_TYPE, "is not a media type"),
    "dataschema": (URI, "is not a URI"),
    "time": (TIMESTAMP, "is not an RFC 3339 timestamp"),
}
"""What the text of an attribute must match as a whole, and the sentence where it does not."""

URIS: Final = ("source", "dataschema")

_AS_HEADER: Final = {name: f"header {PREFIX}{name}" for name in REQUIRED}
_NAME: Final = re.compile(NAME)
_CONTROL: Final = re.compile(CONTROL)
_PATTERNS: Final = {name: (re.compile(pattern), words) for name, (pattern, words) in PATTERNS.items()}
_TIMESTAMP: Final = re.compile(TIMESTAMP)

MISSING: Final = "is missing"
EMPTY: Final = "is empty"
NOT_TEXT: Final = "has characters that are not allowed"
NOT_STRING: Final = "is not a string"
NOT_VALUE: Final = "is not a boolean, a 32-bit integer or a string"
NO_NAME: Final = "is no name of an attribute"
NULL: Final = "is null"
NOT_UTF8: Final = "is not UTF-8"
TWICE: Final = "appears more than once"
IN_CONTENT_TYPE: Final = "must travel as content-type"
RESERVED: Final = "is a reserved name"
NOT_JSON: Final = "is not a JSON object, or repeats a name"
BOTH: Final = "has both data and data_base64"
NOT_BASE64: Final = "is not base64"
NOT_DATA_STRING: Final = "is not a string, although datacontenttype is not JSON"
DIFFERS: Final = "is not what the event has"
NOT_IN_EVENT: Final = "is not in the event"
NOT_MEDIA_TYPE: Final = "is not a media type"
NO_VALUE: Final = "is null: a structured event has a value"
NO_BATCH: Final = "is batch content mode, which Kafka's binding does not have"
UNKNOWN_FORMAT: Final = "is not an event format that is known"

JSON_GROWTH: Final = 24
"""How many times its bytes JSON may take as objects: those of empty objects and lists."""

INT32: Final = range(-(1 << 31), 1 << 31)


class UnknownFormatError(DecodeError):
    """A structured event in an event format other than JSON.

    The record can be passed on as it is (section 3).
    """


@dataclass(slots=True)
class Reading:
    """A record taken apart.

    ``mode`` is None for what is no CloudEvent. ``attributes`` by name, as text or, in JSON, as booleans and integers;
    ``time`` stays text here. ``data``: bytes, text, a JSON value, or None for no data. ``problems``: what is wrong, as
    pairs of what (``header ce_id``, ``id``, ``data``) and words; nothing is wrong where it is empty.
    ``unknown_format``: the event format is not JSON, and the attributes are those of ``ce_`` headers.
    """

    mode: Mode | None
    attributes: dict[str, Any] = field(default_factory=dict)
    data: Any = None
    problems: list[tuple[str, str]] = field(default_factory=list)
    unknown_format: bool = False

    @property
    def error(self) -> str | None:
        """All problems as one sentence each, separated by semicolons; None where there are none."""
        return "; ".join(f"{what} {words}" for what, words in self.problems) or None


def http_name(name: str) -> bool:
    """Whether a header has the name of a mandatory attribute, but not as Kafka's binding spells it: ``ce-id``."""
    plain = name.lower().replace("-", "_")
    return name[: len(PREFIX)] != PREFIX and plain.startswith(PREFIX) and plain[len(PREFIX) :] in REQUIRED


def http_content_type(name: str, value: bytes | None) -> bool:
    """Whether this is the content type of an event, but not as Kafka's binding spells the name: ``Content-Type``."""
    if name == CONTENT_TYPE or name.lower() != CONTENT_TYPE or value is None:
        return False
    return value.lstrip(b" \t").lower().startswith(MEDIA.encode())


OF_HTTP: Final = "the headers of CloudEvents over HTTP (ce-id, Content-Type): in Kafka they are ce_id and content-type"
"""The sentence for a record that would be an event if its headers were spelled otherwise."""


def content_mode(headers: Headers, value: bytes | None = None, *, magic: int = 2) -> Mode | None:
    """The content mode of a record (section 3); None where nothing says that it is a CloudEvent.

    ``value`` is looked at in message formats 0 and 1 only, which have no headers.
    """
    names = set()
    for name, content in headers:
        first = name == CONTENT_TYPE and name not in names
        if first and content is not None and content.lstrip(b" \t").lower().startswith(MEDIA.encode()):
            return "structured"
        names.add(name)
    if any(name.startswith(PREFIX) for name in names):
        return "binary"
    if magic < 2 and value is not None and value.lstrip(b" \t\r\n").startswith(b"{") and b'"specversion"' in value:
        return "structured"
    return None


def read(headers: Headers, value: bytes | None, *, magic: int = 2, limits: Limits = DEFAULT_LIMITS) -> Reading:
    """Take a record apart; never raises. ``magic`` is the record's message format.

    A structured event that might become more objects than ``limits`` allow is not read, and ``problems`` say so.
    """
    check_limits(limits)
    headers = list(headers)
    mode = content_mode(headers, value, magic=magic)
    if mode is None:
        return Reading(None)
    found = Reading(mode)
    content_type = _content_type(headers, found)
    if mode == "binary":
        _binary(headers, value, content_type, found)
    elif content_type is None or media.bare(content_type) == JSON:
        _json(value, content_type, found, limits)
        _contradictions(headers, found)
    else:
        if media.bare(content_type).startswith(BATCH):
            found.problems.append((CONTENT_TYPE, NO_BATCH))
        else:
            found.unknown_format = True
            found.problems.append((CONTENT_TYPE, UNKNOWN_FORMAT))
        _headers(headers, Reading(mode, found.attributes))
        found.attributes["datacontenttype"] = content_type
        found.data = value
        return found
    _check(found)
    return found


def _content_type(headers: list[tuple[str, bytes | None]], found: Reading) -> str | None:
    values = [value for name, value in headers if name == CONTENT_TYPE]
    if len(values) > 1:
        found.problems.append((f"header {CONTENT_TYPE}", TWICE))
    return _text(CONTENT_TYPE, values[0], found) if values else None


def _text(name: str, value: bytes | None, found: Reading) -> str | None:
    if value is None:
        found.problems.append((f"header {name}", NULL))
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        found.problems.append((f"header {name}", NOT_UTF8))
        return None


def _headers(headers: list[tuple[str, bytes | None]], found: Reading) -> None:
    """The attributes in ``ce_`` headers (section 3.2.3)."""
    seen: dict[str, bool] = {}
    for name, value in headers:
        if not name.startswith(PREFIX):
            continue
        attribute = name[len(PREFIX) :]
        known = seen.get(name)
        # Whether it was said that it is there twice.
        seen[name] = known is not None
        if known is not None:
            if not known:
                found.problems.append((f"header {name}", TWICE))
            continue
        if attribute == "datacontenttype":
            found.problems.append((f"header {name}", IN_CONTENT_TYPE))
        elif attribute == "data":
            found.problems.append((f"header {name}", RESERVED))
        elif _NAME.fullmatch(attribute) is None:
            found.problems.append((f"header {name}", NO_NAME))
        elif (text := _text(name, value, found)) is not None:
            found.attributes[attribute] = text


def _binary(
    headers: list[tuple[str, bytes | None]], value: bytes | None, content_type: str | None, found: Reading
) -> None:
    _headers(headers, found)
    if content_type is not None:
        found.attributes["datacontenttype"] = content_type
    found.data = None if value is None else bytes(value)


def _contradictions(headers: list[tuple[str, bytes | None]], found: Reading) -> None:
    """Where ``ce_`` headers of a structured event contradict the event.

    Section 3.3.3 demands the same headers.
    """
    if "value" in {what for what, _ in found.problems} or not any(name.startswith(PREFIX) for name, _ in headers):
        return
    beside = Reading("structured")
    _headers(headers, beside)
    found.problems += beside.problems
    for name, text in sorted(beside.attributes.items()):
        own = found.attributes.get(name)
        if own is None:
            found.problems.append((f"header {PREFIX}{name}", NOT_IN_EVENT))
            continue
        written = canonical(name, own)
        if text == written or (name == "time" and instant(text) is not None and instant(text) == instant(written)):
            continue
        found.problems.append((f"header {PREFIX}{name}", DIFFERS))


def _in_utf_8(value: bytes, content_type: str | None, found: Reading) -> bytes | None:
    """A value in the charset of its content type, as UTF-8; None, and a problem, where that cannot be read."""
    if content_type is None:
        return value
    given = media.parameters(content_type.strip(" \t"))
    if given is None:
        found.problems.append((CONTENT_TYPE, NOT_MEDIA_TYPE))
        return value
    name = given.get("charset")
    codec = "utf_8" if name is None else media.codec(name)
    if codec is None:
        found.problems.append(("value", f"is in a charset that is not known: {shown(name or '')}"))
        return None
    if codec in ("utf_8", "ascii"):
        # ASCII is UTF-8; what is beyond is judged with the rest.
        return value
    try:
        return value.decode(codec).encode()
    except ValueError:
        found.problems.append(("value", f"is not {shown(name or '')}"))
        return None


def shown(name: str) -> str:
    """The name of a charset, in a sentence."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."


_LONGEST_NAME: Final = 40


def _json(value: bytes | None, content_type: str | None, found: Reading, limits: Limits) -> None:
    """The JSON event format (its sections 2.2 and 3.1)."""
    if value is None:
        found.problems.append(("value", NO_VALUE))
        return
    if JSON_GROWTH * len(value) > limits.objects:
        found.problems.append(("value", f"of {len(value)} bytes {limits.said('objects')}"))
        return
    value = _in_utf_8(value, content_type, found)
    if value is None:
        return
    members = parse_json(value)
    if not isinstance(members, dict):
        found.problems.append(("value", NOT_JSON))
        return
    has_data, data = "data" in members, members.pop("data", None)
    encoded = members.pop("data_base64", None)
    for name, one in members.items():
        if one is None:
            continue
        if _NAME.fullmatch(name) is None:
            found.problems.append((f"member {name}", NO_NAME))
        elif name in CORE and not isinstance(one, str):
            found.problems.append((name, NOT_STRING))
        elif not isinstance(one, (str, int)) or (isinstance(one, int) and one not in INT32):
            found.problems.append((name, NOT_VALUE))
        else:
            found.attributes[name] = one
    if encoded is not None:
        if has_data:
            found.problems.append(("value", BOTH))
        if isinstance(encoded, str) and len(encoded) % 4 == 0 and re.fullmatch(BASE64, encoded):
            found.data = base64.b64decode(encoded)
        else:
            found.problems.append(("data_base64", NOT_BASE64))
    elif has_data:
        declared = found.attributes.get("datacontenttype")
        if media.is_json(declared):
            found.data = b"null" if data is None else data
        elif isinstance(data, str):
            found.data = data
        elif data is not None:
            found.data = json_bytes(data)
            found.problems.append(("data", NOT_DATA_STRING))


def _check(found: Reading) -> None:
    """The rules of the attributes themselves, in the order of ``CORE``; extensions last."""
    attributes = found.attributes
    known = {what for what, _ in found.problems}
    readable = "value" not in known
    for name in CORE:
        text = attributes.get(name)
        if text is None:
            if readable and name in REQUIRED and name not in known and _AS_HEADER[name] not in known:
                found.problems.append((name, MISSING))
        elif not text:
            found.problems.append((name, EMPTY))
        elif name in _PATTERNS:
            pattern, words = _PATTERNS[name]
            bad = pattern.fullmatch(text) is None
            if bad or (name == "time" and instant(text) is None) or (name in URIS and re.search(BAD_PERCENT, text)):
                found.problems.append((name, words))
        elif _CONTROL.search(text):
            found.problems.append((name, NOT_TEXT))
    for name, text in sorted(attributes.items()):
        if name not in CORE and isinstance(text, str) and _CONTROL.search(text):
            found.problems.append((name, NOT_TEXT))


def from_record(
    record: Record, *, magic: int = 2, unknown_formats: Literal["refuse", "binary"] = "refuse"
) -> CloudEvent:
    """The CloudEvent in a record, in either content mode; ``magic`` is the record's message format.

    Raises ``DecodeError`` for what is no CloudEvent or not a valid one. The message has all reasons, ``path`` the first
    attribute or header. Its subclass ``UnknownFormatError`` is raised for a structured event in another format than
    JSON. ``unknown_formats="binary"`` then reads it as a binary event, if its headers are those of one. So
    ``to_record`` can forward it as it came. Raises ``MissingExtraError`` without the extra ``events``.
    """
    found = read(record.headers, record.value, magic=magic)
    if found.mode is None:
        said = "no ce_ header and no CloudEvents content type"
        if any(http_name(name) or http_content_type(name, value) for name, value in record.headers):
            said = f"it has {OF_HTTP}"
        raise DecodeError(said, layout="CloudEvent", path="$.headers")
    if found.unknown_format and unknown_formats == "binary":
        content_type = found.attributes["datacontenttype"]
        found = Reading("binary")
        _binary(record.headers, record.value, content_type, found)
        _check(found)
    if found.problems:
        kind = UnknownFormatError if found.unknown_format else DecodeError
        raise kind(found.error or "", layout="CloudEvent", path=_path(found.problems[0][0]))
    attributes = dict(found.attributes)
    if "time" in attributes:
        attributes["time"] = instant(attributes["time"])
    return _event(attributes, found.data)


def _path(what: str) -> str:
    kind, _, name = what.rpartition(" ")
    if kind == "header" or what == CONTENT_TYPE:
        return f"$.headers.{name}"
    return "$.value" if what == "value" else f"$.{name}"


def _event(attributes: dict[str, Any], data: Any) -> CloudEvent:
    try:
        from cloudevents.core.exceptions import BaseCloudEventException
        from cloudevents.core.v1.event import CloudEvent
    except ModuleNotFoundError as missing:
        raise MissingExtraError("kwire.events.cloudevents", "events") from missing
    has_time = "time" in attributes
    try:
        event = CloudEvent(attributes, data)
    except BaseCloudEventException as error:
        # The rules here are stricter; the package has the last word all the same.
        raise DecodeError(" ".join(str(error).split()), layout="CloudEvent") from None
    if not has_time:
        # An event without a time gets the current one from the package.
        event.get_attributes().pop("time", None)
    return event


def partitionkey(event: BaseCloudEvent) -> bytes | None:
    """The opt-in key mapper of section 3.1: the extension ``partitionkey`` as it is, if present."""
    value = event.get_attributes().get("partitionkey")
    return None if value is None else canonical("partitionkey", value).encode()


def to_record(
    event: BaseCloudEvent,
    *,
    mode: Mode = "binary",
    key: bytes | str | None = None,
    key_mapper: KeyMapper | None = None,
    magic: int = 2,
    headers: Headers = (),
    attribute_headers: bool = False,
    timestamp: int | None = None,
) -> Record:
    """The record that carries an event.

    - ``key`` is the record's key unless ``key_mapper`` finds one in the event (it works on a copy).
    - ``magic`` is the message format that the record will be written in. 0 and 1 have no headers, so only structured
      mode is left, and no content type.
    - ``headers``: other headers to add.
    - ``attribute_headers``: structured mode, with the ``ce_`` headers of binary mode beside it (section 3.3.3).
    - ``timestamp``: of the record, in ms.

    Raises ``EncodeError`` for an event that is not valid or that the mode cannot carry.
    """
    attributes = {name: value for name, value in event.get_attributes().items() if value is not None}
    texts = {name: canonical(name, value) for name, value in attributes.items()}
    check = Reading(mode, dict(texts))
    for name in texts:
        if name == "data":
            check.problems.append((name, RESERVED))
        elif _NAME.fullmatch(name) is None:
            check.problems.append((f"attribute {name}", NO_NAME))
    _check(check)
    if check.problems:
        raise EncodeError(check.error or "", layout="CloudEvent", path=_path(check.problems[0][0]))
    more = list(headers)
    for name, _ in more:
        if name == CONTENT_TYPE or name.startswith(PREFIX):
            raise EncodeError(f"the header {name} is the event's own", layout="CloudEvent", path="$.headers")
    data = event.get_data()
    if mode == "binary":
        if magic < 2:
            raise EncodeError(f"message format {magic} has no headers: only structured mode", layout="CloudEvent")
        if "datacontenttype" not in texts and data is not None and not isinstance(data, (bytes, bytearray)):
            # JSON format, section 3.1.2: what was implied becomes explicit in another representation.
            texts["datacontenttype"] = "application/json"
        value = None if data is None else data_bytes(data, texts.get("datacontenttype"))
        own = _as_headers(texts)
    elif magic < 2:
        if more or attribute_headers:
            raise EncodeError(f"message format {magic} has no headers", layout="CloudEvent", path="$.headers")
        value, own = _structured(attributes, data), []
    else:
        value, own = _structured(attributes, data), [(CONTENT_TYPE, JSON_WRITTEN.encode())]
        if attribute_headers:
            own += [one for one in _as_headers(texts) if one[0] != CONTENT_TYPE]
    if key_mapper is not None:
        mapped = key_mapper(copy.deepcopy(event))
        key = key if mapped is None else mapped
    return Record(key.encode() if isinstance(key, str) else key, value, headers=[*own, *more], timestamp=timestamp)


def _as_headers(texts: dict[str, str]) -> list[tuple[str, bytes | None]]:
    return [
        (CONTENT_TYPE if name == "datacontenttype" else PREFIX + name, text.encode()) for name, text in texts.items()
    ]


def _structured(attributes: dict[str, Any], data: Any) -> bytes:
    """The event in JSON, through the package's format, which gets what it can write as the specification says."""
    from cloudevents.core.formats.json import JSONFormat

    declared = attributes.get("datacontenttype")
    if isinstance(data, bytearray):
        data = bytes(data)
    if not isinstance(data, (bytes, type(None))):
        as_json = data_bytes(data, declared)
        known = declared is None or re.match(JSONFormat.JSON_CONTENT_TYPE_PATTERN, declared)
        if not isinstance(data, str) and not known:
            # JSON by the specification (a capital letter, image/x+json); the package would write Python's repr.
            data = as_json
    values = {
        name: value if isinstance(value, (bool, int, str, datetime)) else canonical(name, value)
        for name, value in attributes.items()
    }
    if isinstance(values.get("time"), datetime):
        values["time"] = canonical("time", values["time"])
    return JSONFormat().write(cast("BaseCloudEvent", _Written(values, data)))


class _Written:
    """What the package's JSON format asks an event for; its own class would not take a time that is text."""

    def __init__(self, attributes: dict[str, Any], data: Any) -> None:
        self._attributes, self._data = attributes, data

    def get_attributes(self) -> dict[str, Any]:
        return self._attributes

    def get_data(self) -> Any:
        return self._data


def canonical(name: str, value: object) -> str:
    """The canonical text of an attribute (CloudEvents, type system).

    Raises ``EncodeError`` for other types.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value in INT32:
        return str(value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise EncodeError(f"{name} {NOT_TEXT}", layout="CloudEvent", path=f"$.{name}") from None
        return value
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime) and value.tzinfo is not None:
        offset = value.utcoffset() or timedelta()
        if offset % timedelta(minutes=1):
            value = value.astimezone(UTC)
        text = value.isoformat()
        return f"{text[:-6]}Z" if text.endswith("+00:00") else text
    raise EncodeError(f"{name} has no text: {type(value).__name__}", layout="CloudEvent", path=f"$.{name}")


def data_bytes(data: Any, declared: str | None) -> bytes:
    """Data as the bytes of a record's value; ``declared`` is its datacontenttype.

    Bytes stay as they are. Text of another type than JSON gets the charset that its type names, if that is known and
    has all its characters. Otherwise it becomes UTF-8. Everything else becomes JSON text (a string with its quotes).
    Raises ``EncodeError`` for what is none of it.
    """
    if isinstance(data, (bytes, bytearray)):
        return bytes(data)
    try:
        if media.is_json(declared):
            return json_bytes(data)
        if isinstance(data, str):
            return _in_charset(data, declared)
    except (TypeError, ValueError, RecursionError) as error:
        raise EncodeError(f"data cannot be written: {error}", layout="CloudEvent", path="$.data") from None
    raise EncodeError(
        f"data is a {type(data).__name__}, although datacontenttype is not JSON", layout="CloudEvent", path="$.data"
    )


def _in_charset(text: str, declared: str | None) -> bytes:
    name = media.charset(declared)
    codec = None if name is None else media.codec(name)
    if codec is not None:
        try:
            return text.encode(codec)
        except UnicodeEncodeError:
            pass
    return text.encode()


def json_bytes(data: Any) -> bytes:
    """A JSON value as UTF-8."""
    return _ENCODER.encode(data).encode()


DEEPEST: Final = 500
"""Arrays and objects inside each other in a JSON value.

Where Python itself gives up depends on its version and on how deep the call is. A record that is an event in one place
and none in another would be worse than a limit.
"""


def parse_json(value: bytes) -> Any:
    """A JSON text in UTF-8 (RFC 8259).

    None where it is none, repeats a name, has half a surrogate pair, or is nested deeper than ``DEEPEST``.
    """
    try:
        return strict.read(value, DEEPEST, whole=True)
    except ValueError:
        return None


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def instant(text: str) -> datetime | None:
    """An RFC 3339 timestamp with its offset, cut to microseconds; None where it is none.

    Second 60, a leap second, is the first of the next minute, as Python and Spark have no other.
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    fraction, sign, hours, minutes = match.groups()[6:]
    leap = second == 60
    try:
        zone = UTC
        if sign is not None:
            if int(hours) > 23 or int(minutes) > 59:
                return None
            offset = timedelta(hours=int(hours), minutes=int(minutes))
            zone = timezone(-offset if sign == "-" else offset)
        micros = int(f"{fraction or '':0<6}"[:6])
        made = datetime(year, month, day, hour, minute, 59 if leap else second, micros, tzinfo=zone)
        # A time that leaves the years 1 to 9999 in UTC cannot be compared with any other.
        (made + timedelta(seconds=leap)).astimezone(UTC)
        return made + timedelta(seconds=leap)
    except (ValueError, OverflowError):
        return None


def row(
    headers: Headers, value: bytes | None, *, magic: int = 2, limits: Limits = DEFAULT_LIMITS
) -> dict[str, Any] | None:
    """A record as a row with the keys ``COLUMNS``; None for what is no CloudEvent.

    Never raises. ``limits`` as in ``read``.

    ``time`` is an aware datetime, ``data`` bytes (JSON data as text), ``extensions`` a dict of canonical texts. An
    event that is not valid has what could be read, and ``error``.
    """
    found = read(headers, value, magic=magic, limits=limits)
    if found.mode is None:
        return None
    made: dict[str, Any] = {name: found.attributes.get(name) for name in CORE}
    made["time"] = None if made["time"] is None else instant(made["time"])
    made["data"] = None if found.data is None else data_bytes(found.data, made["datacontenttype"])
    made["extensions"] = {
        name: canonical(name, one) for name, one in sorted(found.attributes.items()) if name not in CORE
    }
    made["mode"] = found.mode
    made["error"] = found.error
    return made
