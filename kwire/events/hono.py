"""Eclipse Hono's messages in Kafka records: telemetry, events and command responses, and what goes against their APIs.

    message = hono.read(topic, key, headers, value)        # None where the topic is none of Hono's
    message.device_id, message.creation_time, message.violations
    devices = hono.Devices()                               # rules over several records
    devices.see(message, partition, producer)

An event has the format of telemetry. A command response has other headers, and its value may be null.

The rules about one record and their wording stand here, once. ``kwire.events.columns`` reads whole columns of records
with them, and Spark (``kwire.spark.events``) calls that. Spark's own expressions, with the wording of this module,
check what concerns several records. They also check what concerns producers and needs frames (acks, requests in
flight).

Rules kept here:

- Nothing raises: what is wrong with a record is a violation, a rule's name and a sentence, and the rest is read.
- Numbers are decimal text, as Hono writes them. They may also be big-endian integers of the size of their type (``int``
  4 bytes, ``long`` 8). A serializer of Kafka's Java client writes these. Bytes that are all printable ASCII are text
  and never an integer. Such an integer would be a ``qos`` beyond 1, a ``ttd`` of 17 years or more, a time 73 million
  years away. Anything else is reported.
- If a header is there twice, the first counts, as in Hono, and it is reported.
- A message is expired when creation time plus time-to-live is before now. The document's sentence has it the other way
  round ("is greater than the current time"). That would discard every message that is still alive.
- ``creation-time`` and ``ttl`` are milliseconds, ``ttd`` is seconds, as the document says. A creation time outside
  of the years 1 to 9999 is reported.
- The value of an event may be null where its content type says that it has none (``EMPTY_NOTIFICATION``).
- Devices are followed kind by kind: the topics of a tenant may have other numbers of partitions, and other producers.
  Command responses have several producers: adapters, and the component that reports a failed delivery.

Sources: Hono's Telemetry API, Event API and Command & Control API for Kafka.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from kwire.events import media
from kwire.events.rules import MOST_NAMED, Violation, some_of
from kwire.protocol.error_codes import RETRIABLE, ErrorCode
from kwire.wire import FIRST_MS, LAST_MS

__all__ = ["RULES", "Devices", "Message", "Violation", "expired", "number", "read", "rejects"]

TELEMETRY: Final = "telemetry"
EVENT: Final = "event"
RESPONSE: Final = "command_response"
KINDS: Final = {one: f"hono.{one}." for one in (TELEMETRY, EVENT, RESPONSE)}
"""The kinds of messages, and what their topics begin with; the name of the tenant follows."""

EMPTY_NOTIFICATION: Final = "application/vnd.eclipse-hono-empty-notification"
"""The content type of an event without a value."""

INT: Final = 4
LONG: Final = 8
"""Bytes of the two number types."""

DECIMAL: Final = "-?[0-9]{1,19}"
PRINTABLE: Final = "[ -~]*"

NUMBERS: Final = {"creation-time": LONG, "qos": INT, "ttd": INT, "ttl": LONG, "status": INT}
HEADERS: Final = ("content-type", "content-encoding", "creation-time", "device_id", "qos", "ttd", "ttl")
"""The headers of telemetry and events, in the order of the document's table."""
MANDATORY: Final = ("content-type", "device_id")

OF_RESPONSES: Final = ("correlation-id", "device_id", "status", "content-type", "creation-time")
"""The headers of command responses; the first three are mandatory."""
MANDATORY_IN_RESPONSES: Final = OF_RESPONSES[:3]

PATTERNS: Final = {"content-type": media.MEDIA_TYPE, "content-encoding": media.CONTENT_CODING}

RANGES: Final = {
    "creation-time": (FIRST_MS, LAST_MS),
    "qos": (0, 1),
    "ttd": (-1, (1 << 31) - 1),
    "ttl": (0, (1 << 63) - 1),
    "status": (100, 599),
}

RULES: Final = {
    "bad_topic": "the topic names a tenant: hono.telemetry.${tenant_id}",
    "missing_header": "content-type and device_id are mandatory, in responses correlation-id, device_id and status",
    "bad_header": "a header has the type and a value of the document's table",
    "repeated_header": "a header appears once",
    "creation_time_missing": "creation-time is mandatory if ttd or ttl is set",
    "key_is_not_device_id": "the key of the message is the device id",
    "no_value": "the value is a byte array with the data",
    "two_partitions": "messages with the same key always go to the same partition",
    "two_producers": "no two producers send telemetry data, or events, for the same device",
    "order_not_kept": "a producer keeps the order: idempotent with at most 5 requests in flight, or one, or no retries",
    "sent_again": "a message that was rejected is not sent again",
    "qos_1_at_most_once": "a producer that sends messages with qos 1 waits for the acknowledgements of all replicas",
    "event_at_most_once": "a producer of events waits for the acknowledgements of all replicas",
}
"""Names of the rules, and what each asks."""

HANDLED: Final = frozenset(
    (
        ErrorCode.NONE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    )
)
"""Errors of Produce after which a producer sends again by itself, in addition to the retriable ones.

It makes batches smaller, or begins a new sequence. With any other the application gets an exception.
"""

NULL: Final = "is null"
NOT_UTF8: Final = "is not UTF-8"
EMPTY: Final = "is empty"
NOT_MEDIA: Final = "is not a MIME type"
NOT_CODING: Final = "is not a content encoding"
NOT_NUMBER: Final = {
    INT: "is neither a decimal number nor 4 bytes of an int",
    LONG: "is neither a decimal number nor 8 bytes of a long",
}
OUT_OF_RANGE: Final = "is out of range"
MISSING: Final = "is missing"
TWICE: Final = "appears more than once"
NO_TENANT: Final = "the topic has no tenant"
NO_CREATION_TIME: Final = "creation-time is missing beside ttd or ttl"
NO_KEY: Final = "the key is null"
OTHER_KEY: Final = "the key is not the device id"
NO_VALUE: Final = "the value is null"


MOST_PLACES: Final = MOST_NAMED
"""Partitions and producers of one device that are named. Each further one names those before it again."""


@dataclass(slots=True)
class Message:
    """A message of Hono: its kind, what its headers say, typed, and what is wrong with it.

    ``correlation_id`` and ``response_status`` are those of a command response. ``creation_time`` is in ms since 1970,
    ``ttl`` in ms, ``ttd`` in seconds (-1: until further notice). A header that is absent or wrong is None.
    """

    tenant: str
    device_id: str | None = None
    content_type: str | None = None
    content_encoding: str | None = None
    creation_time: int | None = None
    qos: int | None = None
    ttd: int | None = None
    ttl: int | None = None
    correlation_id: str | None = None
    response_status: int | None = None
    kind: str = TELEMETRY
    violations: list[Violation] = field(default_factory=list)

    @property
    def connected_until(self) -> int | None:
        """Creation time plus ``ttd``, in ms since 1970: None where one is not known, or -1 (until further notice)."""
        if self.creation_time is None or self.ttd is None or self.ttd < 0:
            return None
        until = self.creation_time + self.ttd * 1000
        return until if until <= LAST_MS else None

    @property
    def error(self) -> str | None:
        """The violations' sentences, separated by semicolons; None where there are none."""
        return "; ".join(detail for _, detail in self.violations) or None


def number(value: bytes, size: int) -> int | None:
    """A signed integer of ``size`` bytes from decimal text or from its big-endian bytes; None where it is neither."""
    if re.fullmatch(PRINTABLE.encode(), value):
        if re.fullmatch(DECIMAL.encode(), value) is None:
            return None
        found = int(value)
        return found if -(1 << 8 * size - 1) <= found < 1 << 8 * size - 1 else None
    return int.from_bytes(value, "big", signed=True) if len(value) == size else None


def expired(creation_time: int | None, ttl: int | None, now: int) -> bool | None:
    """Whether a consumer should discard a message at ``now`` (ms since 1970); None where the message does not say."""
    return None if creation_time is None or ttl is None else creation_time + ttl < now


def read(
    topic: str | None, key: bytes | None, headers: Iterable[tuple[str, bytes | None]], value: bytes | None
) -> Message | None:
    """A record as a message of Hono; None where its topic is none of Hono's. Never raises."""
    kind = next((one for one, prefix in KINDS.items() if topic is not None and topic.startswith(prefix)), None)
    if topic is None or kind is None:
        return None
    message = Message(topic[len(KINDS[kind]) :], kind=kind)
    known, mandatory = (OF_RESPONSES, MANDATORY_IN_RESPONSES) if kind == RESPONSE else (HEADERS, MANDATORY)
    wrong = message.violations
    if not message.tenant:
        wrong.append(_NO_TENANT)
    given: dict[str, bytes | None] = {}
    repeated = set()
    for name, content in headers:
        if name in given:
            repeated.add(name)
        elif name in known:
            given[name] = content
    found: dict[str, Any] = {}
    for name in known if given else mandatory:
        if name in repeated:
            wrong.append(_said("repeated_header", name, TWICE))
        if name not in given:
            if name in mandatory:
                wrong.append(_said("missing_header", name, MISSING))
            continue
        made, words = _header(name, given[name])
        if words is not None:
            wrong.append(_said("bad_header", name, words))
        else:
            found[_FIELDS.get(name, name)] = made
    for name, made in found.items():
        setattr(message, name, made)
    if "creation-time" not in given and ("ttd" in given or "ttl" in given):
        wrong.append(_NO_CREATION_TIME)
    if key is None:
        wrong.append(_NO_KEY)
    elif message.device_id is not None and key != message.device_id.encode():
        wrong.append(_OTHER_KEY)
    if value is None and not _may_be_empty(message):
        wrong.append(_NO_VALUE)
    return message


def _may_be_empty(message: Message) -> bool:
    if message.kind == EVENT and message.content_type is not None:
        return message.content_type.partition(";")[0].strip().lower() == EMPTY_NOTIFICATION
    return message.kind == RESPONSE


_FIELDS: Final = {
    "content-type": "content_type",
    "content-encoding": "content_encoding",
    "creation-time": "creation_time",
    "correlation-id": "correlation_id",
    "status": "response_status",
}
"""Fields of ``Message`` that have another name than their header."""


@functools.cache
def _said(rule: str, header: str, words: str) -> Violation:
    """A violation by one of the document's headers; there are few of them, so each is made once."""
    return Violation(rule, f"{header} {words}")


_NO_TENANT: Final = Violation("bad_topic", NO_TENANT)
_NO_CREATION_TIME: Final = Violation("creation_time_missing", NO_CREATION_TIME)
_NO_KEY: Final = Violation("key_is_not_device_id", NO_KEY)
_OTHER_KEY: Final = Violation("key_is_not_device_id", OTHER_KEY)
_NO_VALUE: Final = Violation("no_value", NO_VALUE)


def _header(name: str, value: bytes | None) -> tuple[Any, str | None]:
    """The typed value of a header, or what is wrong with it."""
    if value is None:
        return None, NULL
    if name in NUMBERS:
        size = NUMBERS[name]
        found = number(value, size)
        if found is None:
            return None, NOT_NUMBER[size]
        low, high = RANGES[name]
        return (found, None) if low <= found <= high else (None, OUT_OF_RANGE)
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None, NOT_UTF8
    if not text:
        return None, EMPTY
    if name in PATTERNS and re.fullmatch(PATTERNS[name], text) is None:
        return None, NOT_MEDIA if name == "content-type" else NOT_CODING
    return text, None


class Devices:
    """The rules over several messages: a device stays on one partition and with one producer.

    Keeps a few values per device; for traffic that is larger than memory there is ``kwire.spark.hono_violations``. Up
    to ``MOST_PLACES`` partitions and producers of one device are distinguished. More of them are reported once.

    An idempotent producer that was started again has another id. So a producer that replaces another of the same
    client, which sends no more, is the same one. Where the other one sends again, there are two.
    """

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, str, str], list[Any]] = {}
        self._producers: dict[tuple[str, str, str], _Producers] = {}

    def see(
        self, message: Message, partition: int | None, producer: str | None, client: str | None = None
    ) -> list[Violation]:
        """The rules that this message breaks: its device was seen on another partition, or from another producer.

        ``producer`` names who sent it, in any way that tells two apart; None where that is not known. ``client`` names
        the client that the producer belongs to, where the message is seen as it is sent. Each further partition and
        producer of a device is reported once. The violations are added to the message's own.
        """
        if message.device_id is None:
            return []
        wrong = self.saw(message.tenant, message.device_id, partition, producer, client, message.kind)
        message.violations += wrong
        return wrong

    def saw(
        self,
        tenant: str,
        device_id: str,
        partition: int | None,
        producer: str | None,
        client: str | None = None,
        kind: str = TELEMETRY,
    ) -> list[Violation]:
        """``see`` for a device by its names."""
        wrong = []
        device = (kind, tenant, device_id)
        if partition is not None:
            known = self._partitions.setdefault(device, [])
            if partition not in known and len(known) <= MOST_PLACES:
                known.append(partition)
                if len(known) > 1:
                    wrong.append(Violation("two_partitions", on_partitions(sorted(known))))
        if producer is not None and kind != RESPONSE:
            producers = self._producers.get(device)
            if producers is None:
                producers = self._producers[device] = _Producers()
            if producers.sends(producer, client):
                wrong.append(Violation("two_producers", from_producers(sorted(producers.active))))
        return wrong


class _Producers:
    """The producers of a device: those that are ``active``, with their clients, and those that were replaced."""

    __slots__ = ("active", "replaced")

    def __init__(self) -> None:
        self.active: dict[str, str | None] = {}
        self.replaced: dict[str, None] = {}

    def sends(self, producer: str, client: str | None) -> bool:
        """Whether this producer is one more."""
        active = self.active
        if producer in active:
            if active[producer] is None:
                active[producer] = client
            return False
        if producer in self.replaced:
            # It is read again, which says nothing, or it is there beside the one that took its place.
            if client is None:
                return False
            del self.replaced[producer]
        elif client is not None:
            for other in [one for one, of in active.items() if of == client]:
                del active[other]
                self.replaced[other] = None
                if len(self.replaced) > MOST_PLACES:
                    del self.replaced[next(iter(self.replaced))]
        if len(active) > MOST_PLACES:
            return False
        active[producer] = client
        return len(active) > 1


def rejects(error_code: int) -> bool:
    """Whether an error of a Produce response rejects messages for good.

    Then the application gets the error.
    """
    return error_code not in RETRIABLE and error_code not in HANDLED


def again(error: str) -> str:
    """The sentence about a message that was rejected with an error, by its name, and is sent again."""
    return f"the message was rejected with {error} and is sent again"


def on_partitions(partitions: Iterable[int]) -> str:
    """The sentence about a device on several partitions."""
    return f"the device is on partitions {some_of(map(str, partitions))}"


def from_producers(producers: Iterable[str]) -> str:
    """The sentence about a device with several producers."""
    return f"the device has the producers {some_of(producers)}"
