"""What a client does against KIP-714, by what it asked, got and pushed.

    sessions = Sessions()
    sessions.asks(connection, request, time)             # GetTelemetrySubscriptions, each in order of time
    sessions.subscribed(connection, request, response, time)
    pushed = sessions.pushes(connection, request, time)  # PushTelemetry
    pushed.violations, pushed.subscription

``kwire.tables.subscribed`` does this for captures. ``RULES`` names the rules and says what each asks.

Rules kept here:

- There is no verdict on what is not known. A subscription whose answer was not seen asks for nothing. A connection on
  which no instance id was given has none to keep.
- What is remembered is bounded: the clients that were silent longest are forgotten.
- A push is early when it comes sooner than ``LATITUDE`` before the interval is over. An interval is measured where the
  packets were captured, and the way there takes a little longer one time than another. The first push after a
  subscription may come after half of the interval. KIP-714, as it was adopted, spreads it between 0.5 and 1.5
  intervals.
- Metrics that are not compressed are always taken: what a client falls back to when all types are exhausted.

Source: KIP-714. It says in outline how a subscription id is made (a CRC, XORed with the instance id). The details are
those of Kafka's brokers, and hold for every answer in ``tests/golden``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

from kwire import stored
from kwire.events.rules import Violation, some_of
from kwire.protocol.error_codes import ErrorCode
from kwire.records.compression import CODECS
from kwire.records.crc import crc32c
from kwire.wire import ZERO_UUID, printable, uuid_text

__all__ = [
    "LATITUDE",
    "LONGEST_REQUESTED",
    "OF_METRICS",
    "RULES",
    "Known",
    "Pushed",
    "Recent",
    "Requested",
    "Sessions",
    "Subscription",
    "codec_name",
    "is_requested",
    "size_of",
    "subscription_id",
]

RULES: Final = {
    "second_handshake": "a client asks once without an instance id, and uses the one that it is given from then on",
    "other_instance": "a client uses the instance id that it was given, in all requests",
    "subscription_id": "the id of a subscription is a CRC of what is asked for and how often, XORed with the instance",
    "before_interval": "a client waits for the push interval, but for its last push",
    "after_terminating": "the terminating push is the last one",
    "compression_not_accepted": "metrics are compressed with one of the types that the broker accepts, or not at all",
    "too_many_bytes": "metrics have at most telemetry_max_bytes, as they are sent",
    "not_requested": "a client pushes the metrics that its subscription asks for",
    "other_temporality": "sums and histograms have the temporality that the subscription asks for",
}
"""Names of the rules, and what each asks."""

OF_METRICS: Final = ("not_requested", "other_temporality")
"""The rules about one metric; the others are about a request or an answer as a whole."""

LATITUDE: Final = 0.01
"""How much of an interval a push may be early."""
FIRST: Final = 0.5
"""How much of an interval the first push after a subscription waits at least."""

MOST_REMEMBERED: Final = 16 << 20
MOST_CONNECTIONS: Final = 65_536
LONGEST_REQUESTED: Final = 64 << 10
"""Bytes of the metrics that a subscription asks for: of a longer one nothing is remembered.

A broker's has some 100.
"""

_TIMES: Final = (-(1 << 63), (1 << 63) - 1)
_INT32: Final = (-(1 << 31), (1 << 31) - 1)
"""The least and the largest, in what is saved."""

_AT_ONCE: Final = (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
"""After these a client asks for its subscription at once."""

_V = TypeVar("_V")


class Recent(Generic[_V]):
    """A dict that forgets its oldest entries when their costs together exceed ``most``."""

    def __init__(self, most: int, cost: Callable[[_V], int] = lambda _: 1) -> None:
        self._most = most
        self._cost = cost
        self._used = 0
        self._entries: OrderedDict[Hashable, _V] = OrderedDict()

    def get(self, key: Hashable) -> _V | None:
        """The value of ``key``, or None. It becomes no younger."""
        return self._entries.get(key)

    def items(self) -> Iterator[tuple[Any, _V]]:
        """Keys and values, the oldest first."""
        return iter(self._entries.items())

    def pop(self, key: Hashable) -> _V | None:
        """Take ``key`` out. Returns its value, or None."""
        value = self._entries.pop(key, None)
        if value is not None:
            self._used -= self._cost(value)
        return value

    def put(self, key: Hashable, value: _V) -> None:
        """Set the value of ``key``, which is the youngest then. Forgets the oldest entries above ``most``."""
        self.pop(key)
        self._entries[key] = value
        self._used += self._cost(value)
        while self._used > self._most:
            self.pop(next(iter(self._entries)))


# --- Subscriptions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a broker asked a client for.

    ``push_interval_ms`` is in milliseconds, ``telemetry_max_bytes`` in bytes.
    """

    push_interval_ms: int
    requested_metrics: tuple[str, ...]
    accepted_compression_types: tuple[int, ...] = ()
    telemetry_max_bytes: int = 1 << 20
    delta_temporality: bool = True


def codec_name(compression_type: int) -> str:
    """``zstd`` for 4; of a type that is not defined ``unknown(9)``."""
    known = 0 <= compression_type < len(CODECS)
    return CODECS[compression_type] if known else f"unknown({compression_type})"


def is_requested(requested_metrics: Sequence[str], metric: str) -> bool:
    """Whether a subscription asks for ``metric``.

    An empty list asks for none, and a single empty string for all of them. Anything else asks for those that begin with
    one of the strings (KIP-714, GetTelemetrySubscriptionsResponse). Kafka's brokers write a single ``*`` for all, and
    its clients understand that.
    """
    return Requested(requested_metrics).has(metric)


class Requested:
    """``is_requested`` for many metrics: looks among the sorted strings, and not at each of them."""

    __slots__ = ("_prefixes",)

    def __init__(self, requested_metrics: Sequence[str]) -> None:
        if isinstance(requested_metrics, str):
            raise TypeError("requested_metrics are a list of prefixes, not one text")
        self._prefixes: list[str] = []
        every = [""] if len(requested_metrics) == 1 and requested_metrics[0] == "*" else sorted(set(requested_metrics))
        for one in every:
            # What begins with a shorter string is asked for by that one. So none of those that are left begins with
            # another. A metric can only begin with the last one that is not after it in order.
            if not self._prefixes or not one.startswith(self._prefixes[-1]):
                self._prefixes.append(one)

    def has(self, metric: str) -> bool:
        """Whether ``metric`` is asked for."""
        at = bisect_right(self._prefixes, metric) - 1
        return at >= 0 and metric.startswith(self._prefixes[at])


def subscription_id(requested_metrics: Sequence[str], push_interval_ms: int, client_instance_id: UUID) -> int:
    """The id that Kafka's brokers give to a subscription, an int32.

    CRC-32C of the metrics and the interval, XORed with the instance id's hash.

    The metrics are as Java writes a set (``[a, b]``, in the order of the answer), and the interval follows. The hash is
    the one of Java's ``Uuid``. The KIP says as much without the details; other brokers may have others.
    """
    written = f"[{', '.join(requested_metrics)}]{push_interval_ms}".encode("utf-8", "surrogateescape")
    number = client_instance_id.int
    halves = (number >> 64) ^ (number & 0xFFFF_FFFF_FFFF_FFFF)
    found = crc32c(written) ^ ((halves >> 32) ^ halves) & 0xFFFF_FFFF
    return found - (1 << 32) if found >> 31 else found


def size_of(texts: Iterable[str]) -> int:
    """About how many bytes these texts have."""
    return sum(8 + len(text) for text in texts)


class Known:
    """A subscription, with what each push of it needs, made once."""

    __slots__ = ("accepted", "requested", "shown", "size", "subscription")

    def __init__(self, subscription: Subscription) -> None:
        self.subscription: Subscription = subscription
        self.shown: list[str] = list(map(printable, subscription.requested_metrics))
        self.accepted: list[str] = list(map(codec_name, subscription.accepted_compression_types))
        self.size: int = size_of(subscription.requested_metrics) + 16 * len(self.accepted)
        self.requested: Requested = Requested(subscription.requested_metrics)

    def measured(self, metric: str, temporality: str | None, has_temporality: bool) -> list[Violation]:
        """What is wrong with a metric that was pushed; ``has_temporality``: it is a sum or a histogram."""
        found = []
        if not self.requested.has(metric):
            found.append(Violation("not_requested", f"nobody asked for the metric {printable(metric)}"))
        asked = "delta" if self.subscription.delta_temporality else "cumulative"
        if has_temporality and temporality != asked:
            found.append(
                Violation(
                    "other_temporality",
                    f"{printable(metric)} has the temporality {temporality}, and {asked} was asked for",
                )
            )
        return found


# --- Sessions ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Instance:
    """What is known of a client instance; times in ns, None where nothing was seen."""

    interval_ms: int | None = None
    subscribed: int | None = None
    pushed: int | None = None
    terminated: bool = False


@dataclass(slots=True)
class _Link:
    """What is known of a connection: its instance, and when it last got its subscription."""

    instance: UUID | None = None
    subscribed: int | None = None
    interval_ms: int = 0
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Pushed:
    """What is wrong with a push as a whole, and what it was to hold; None where that is not known."""

    violations: list[Violation] = field(default_factory=list)
    known: Known | None = None

    @property
    def subscription(self) -> Subscription | None:
        """What the push was asked for."""
        return None if self.known is None else self.known.subscription


class Sessions:
    """The rules about clients and what they get, of many clients side by side.

    ``connection`` names a connection in any way that distinguishes two. Times are in nanoseconds, None where they are
    not known. Then there is no verdict on how long somebody waited.
    """

    def __init__(self) -> None:
        self._links: Recent[_Link] = Recent(MOST_CONNECTIONS)
        self._instances: Recent[_Instance] = Recent(MOST_CONNECTIONS)
        self._subscriptions: Recent[Known] = Recent(MOST_REMEMBERED, lambda one: 200 + one.size)

    def _link(self, connection: Hashable) -> _Link:
        found = self._links.get(connection)
        if found is None:
            found = _Link()
            self._links.put(connection, found)
        return found

    def _instance(self, instance: UUID) -> _Instance:
        found = self._instances.get(instance)
        if found is None:
            found = _Instance()
        self._instances.put(instance, found)
        return found

    def asks(self, connection: Hashable, request: Any, time: int | None) -> list[Violation]:
        """A GetTelemetrySubscriptions request."""
        link = self._link(connection)
        instance: UUID = request.client_instance_id
        if instance != ZERO_UUID:
            found = _kept(link, instance)
        elif link.instance is not None:
            said = f"asks without an instance id, although it was given {uuid_text(link.instance)}"
            found = [Violation("second_handshake", said)]
        else:
            found = []
        if time is not None and link.subscribed is not None and not link.at_once:
            found += _early(
                time - link.subscribed, link.interval_ms, 1 - LATITUDE, "asks", "it was told its subscription"
            )
        link.at_once = False
        return found

    def subscribed(self, connection: Hashable, asked: UUID, response: Any, time: int | None) -> list[Violation]:
        """The answer to a request of the instance ``asked``. One with an error tells nothing else."""
        link = self._link(connection)
        if response.error_code:
            link.at_once = response.error_code in _AT_ONCE
            return []
        # The KIP lets a broker leave the id out where the client knows it; Kafka's own repeats it.
        instance: UUID = response.client_instance_id if response.client_instance_id != ZERO_UUID else asked
        link.subscribed, link.interval_ms = time, response.push_interval_ms
        if instance == ZERO_UUID:
            return []
        link.instance = instance
        one = self._instance(instance)
        one.interval_ms, one.subscribed = response.push_interval_ms, time
        if response.requested_metrics is None or size_of(response.requested_metrics) > LONGEST_REQUESTED:
            return []
        wanted = tuple(response.requested_metrics)
        subscription = Subscription(
            response.push_interval_ms,
            wanted,
            tuple(dict.fromkeys(response.accepted_compression_types)),
            response.telemetry_max_bytes,
            bool(response.delta_temporality),
        )
        self._subscriptions.put((instance, response.subscription_id), Known(subscription))
        right = subscription_id(wanted, response.push_interval_ms, instance)
        if right == response.subscription_id:
            return []
        return [Violation("subscription_id", f"the subscription has the id {response.subscription_id}, not {right}")]

    def known(self, instance: UUID, subscription: int) -> Known | None:
        """A subscription that an instance got."""
        return self._subscriptions.get((instance, subscription))

    def pushes(self, connection: Hashable, request: Any, time: int | None, size: int | None = None) -> Pushed:
        """A PushTelemetry request; ``known.measured`` says what is wrong with its metrics.

        ``size``: the bytes of its metrics, where it does not have them itself."""
        if size is None:
            size = len(request.metrics)
        instance: UUID = request.client_instance_id
        link = self._link(connection)
        one = self._instance(instance)
        known = self.known(instance, request.subscription_id)
        found = _kept(link, instance)
        if one.terminated:
            found.append(Violation("after_terminating", "pushes after its terminating push"))
        elif not request.terminating:
            interval = known.subscription.push_interval_ms if known is not None else one.interval_ms
            if interval is not None and time is not None:
                found += _too_soon(one, time, interval)
        one.pushed = time
        one.terminated = one.terminated or bool(request.terminating)
        if known is not None:
            asked = known.subscription
            if request.compression_type and request.compression_type not in asked.accepted_compression_types:
                accepted = some_of(map(codec_name, asked.accepted_compression_types)) or "no compression"
                said = f"pushes with {codec_name(request.compression_type)}, and the broker accepts {accepted}"
                found.append(Violation("compression_not_accepted", said))
            if size > asked.telemetry_max_bytes:
                said = f"pushes {size} bytes, and the broker takes {asked.telemetry_max_bytes}"
                found.append(Violation("too_many_bytes", said))
        return Pushed(found, known)

    def answered(self, connection: Hashable, error_code: int) -> None:
        """The answer to a push."""
        self._link(connection).at_once = error_code in _AT_ONCE

    def leave_connections(self) -> None:
        """What follows is of other connections, which may have the names of those before; clients go on."""
        self._links = Recent(MOST_CONNECTIONS)

    def save(self) -> dict[str, Any]:
        """All that is known, as JSON has it. Connections must be named by what JSON has."""
        return {
            "links": [
                [key, None if one.instance is None else one.instance.hex, one.subscribed, one.interval_ms, one.at_once]
                for key, one in self._links.items()
            ],
            "instances": [
                [key.hex, one.interval_ms, one.subscribed, one.pushed, one.terminated]
                for key, one in self._instances.items()
            ],
            "subscriptions": [
                [
                    instance.hex,
                    number,
                    known.subscription.push_interval_ms,
                    known.subscription.requested_metrics,
                    known.subscription.accepted_compression_types,
                    known.subscription.telemetry_max_bytes,
                    known.subscription.delta_temporality,
                ]
                for (instance, number), known in self._subscriptions.items()
            ],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what ``save`` gave. Raises one of ``stored.UNFIT`` for what that is not."""
        for connection, held, subscribed, interval, at_once in state["links"]:
            of = None if held is None else stored.instance(held)
            link = _Link(
                of, stored.optional(subscribed, *_TIMES), stored.number(interval, *_INT32), stored.truth(at_once)
            )
            self._links.put(connection, link)
        for instance, interval, *times, terminated in state["instances"]:
            subscribed, pushed = (stored.optional(one, *_TIMES) for one in times)
            one = _Instance(stored.optional(interval, *_INT32), subscribed, pushed, stored.truth(terminated))
            self._instances.put(stored.instance(instance), one)
        for instance, number, interval, requested, accepted, most, delta in state["subscriptions"]:
            wanted = tuple(map(stored.text, requested))
            if size_of(wanted) > LONGEST_REQUESTED:
                raise ValueError("a subscription that nobody remembers")
            subscription = Subscription(
                stored.number(interval, *_INT32),
                wanted,
                tuple(stored.number(one, -128, 127) for one in accepted),
                stored.number(most, *_INT32),
                stored.truth(delta),
            )
            of_instance = stored.instance(instance), stored.number(number, *_INT32)
            self._subscriptions.put(of_instance, Known(subscription))


def _kept(link: _Link, instance: UUID) -> list[Violation]:
    """Whether a client keeps its id. One that was not seen being given is taken for its own."""
    if link.instance is None:
        link.instance = instance if instance != ZERO_UUID else None
        return []
    if instance == link.instance:
        return []
    used = "no instance id" if instance == ZERO_UUID else f"the instance id {uuid_text(instance)}"
    return [Violation("other_instance", f"uses {used}, although it was given {uuid_text(link.instance)}")]


def _too_soon(one: _Instance, time: int, interval: int) -> list[Violation]:
    if one.subscribed is not None and (one.pushed is None or one.subscribed >= one.pushed):
        return _early(time - one.subscribed, interval, FIRST, "pushes", "its subscription")
    if one.pushed is None:
        return []
    return _early(time - one.pushed, interval, 1 - LATITUDE, "pushes", "its last push")


def _early(waited: int, interval: int, part: float, does: str, since: str) -> list[Violation]:
    # A clock that was set back says nothing.
    if waited < 0 or waited >= interval * 1_000_000 * part:
        return []
    said = f"{does} {waited // 1_000_000} ms after {since}, and the interval is {interval} ms"
    return [Violation("before_interval", said)]
