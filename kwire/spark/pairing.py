"""``exchanges`` of a stream: requests wait in Spark's state for their responses, from one batch to the next.

Each connection has a state of its own (``transformWithState``): the headers of the requests that wait. Bodies do not
wait. They are decoded after the pairing, by functions without a state. Rules kept here:

- Each frame has its row in the batch in which it comes. So a response that comes in an earlier batch than its request
  is ``unpaired``.
- A state is bounded, by ``max_waiting`` requests and ``max_wait``. A request that is given up has one more row, with
  the status ``given_up`` and without a body. It says why.
- Times are those of the table. A connection that has no more frames gives up its requests by the clock, in a batch that
  other connections fill.
- The event time of Spark is the time of the batch: by the times of the table, Spark would drop rows that are late.
- A Produce request with acks=0 has no response, and does not wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import Row
from pyspark.sql import functions as sql
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import kwire
from kwire import wire
from kwire.codec import registry
from kwire.errors import KwireError
from kwire.protocol.secrets import is_doubtful
from kwire.schema.keys import ApiKey
from kwire.spark.arrow import stateful
from kwire.spark.functions import api_name, decode_request, decode_response

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["MAX_WAIT", "MAX_WAITING", "Frame", "Terms", "Waiting", "pair", "paired"]

MAX_WAIT: Final = 300.0
"""How long a request waits for its response (float, seconds), unless somebody says otherwise."""
MAX_WAITING: Final = 1000
"""The most requests of a connection that wait at once (int), unless somebody says otherwise."""

_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
_ROCKS: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_LATE: Final = 86_400
"""Seconds by which the clock may be set back without a loss: Spark drops rows that are later than this. Timers do not
wait for it."""
_STATE: Final = (
    "latest bigint, timer bigint, "
    "waiting array<struct<id int, time bigint, api_key smallint, api_version smallint, client_id string>>"
)
_FOUND: Final = (
    "direction string, time bigint, payload binary, api_key smallint, api_version smallint, correlation_id int, "
    "client_id string, latency bigint, status string, error string"
)


class Frame(NamedTuple):
    """A frame of a connection. ``time``: nanoseconds since 1970. ``order``: of frames with the same time."""

    is_request: bool
    direction: str | None
    time: int | None
    order: Any
    payload: bytes

    def key(self) -> tuple[Any, ...]:
        """Sorts frames of a connection. A request comes before a response of the same time."""
        return (
            self.time is not None,
            self.time or 0,
            self.order is not None,
            0 if self.order is None else self.order,
            not self.is_request,
        )


class Waiting(NamedTuple):
    """A request that waits for its response."""

    id: int
    time: int | None
    api_key: int
    api_version: int
    client_id: str | None


@dataclass(frozen=True, slots=True)
class Terms:
    """What bounds the state of a connection: seconds that a request waits, and requests that do. ``requests``: the
    direction that stands for the client."""

    max_wait: float = MAX_WAIT
    max_waiting: int = MAX_WAITING
    requests: str = "request"


def pair(
    frames: Iterable[Frame], waiting: list[Waiting], latest: int | None, terms: Terms
) -> tuple[list[dict[str, Any]], list[Waiting], int | None]:
    """Pairs frames of a connection, in their order, with the requests that wait.

    Returns rows, which requests wait now, and the latest time of the connection.
    """
    rows: list[dict[str, Any]] = []
    waiting = list(waiting)
    for one in sorted(frames, key=Frame.key):
        if one.time is not None and (latest is None or one.time > latest):
            latest = one.time
        if latest is not None:
            too_old = latest - int(terms.max_wait * 1e9)
            rows += (given_up(old, terms, _waited(terms)) for old in waiting if _before(old, too_old))
            waiting = [each for each in waiting if not _before(each, too_old)]
        row: dict[str, Any] = {"direction": one.direction, "time": one.time, "payload": one.payload}
        rows.append(row)
        if not one.is_request:
            row.update(_answered(one, waiting))
        elif (asks := _asks(one)) is not None:
            waiting.append(asks)
            if len(waiting) > terms.max_waiting:
                rows.append(given_up(waiting.pop(0), terms, f"more than {terms.max_waiting} requests wait"))
    return rows, waiting, latest


def _before(one: Waiting, time: int) -> bool:
    return one.time is not None and one.time < time


def _waited(terms: Terms) -> str:
    return f"no response within {terms.max_wait:g} s"


def given_up(one: Waiting, terms: Terms, why: str) -> dict[str, Any]:
    """The row of a request that waits no more."""
    return {
        "direction": terms.requests,
        "time": one.time,
        "api_key": one.api_key,
        "api_version": one.api_version,
        "correlation_id": one.id,
        "client_id": one.client_id,
        "status": "given_up",
        "error": f"{why}: the request is given up",
    }


def _asks(one: Frame) -> Waiting | None:
    """The request, if it waits for a response."""
    try:
        header, _ = kwire.decode_request_header(one.payload)
        registry.request_codec(header.request_api_key, header.request_api_version)
        if header.request_api_key == ApiKey.PRODUCE:
            body: Any = kwire.decode_request(one.payload, trailing=True).body
            if body.acks == 0:
                return None
    except KwireError:
        return None
    client_id = header.client_id
    if client_id is not None:
        client_id = None if is_doubtful(client_id) else wire.printable(client_id)
    api = header.request_api_key, header.request_api_version
    return Waiting(header.correlation_id, one.time, *api, client_id)


def _answered(one: Frame, waiting: list[Waiting]) -> dict[str, Any]:
    """What a response is known by. Its request waits no more."""
    if len(one.payload) < 4:
        said = f"{len(one.payload)} bytes are too few for a correlation id"
        return {"status": "malformed", "error": said, "payload": None}
    number = int.from_bytes(one.payload[:4], "big", signed=True)
    for place, request in enumerate(waiting):
        if request.id == number:
            del waiting[place]
            times = request.time, one.time
            return {
                "api_key": request.api_key,
                "api_version": request.api_version,
                "correlation_id": number,
                "client_id": request.client_id,
                "latency": None if None in times else times[1] - times[0],  # type: ignore[operator]
            }
    said = f"no request with the correlation id {number} waits on this connection"
    return {"status": "unpaired", "error": said, "correlation_id": number}


class _Pairs(StatefulProcessor):
    """What Spark calls for each connection."""

    def __init__(self, terms: Terms, names: tuple[str, ...]) -> None:
        self._terms = terms
        self._names = names

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._state = handle.getValueState("kwire", _STATE)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        state = self._state.get()
        latest, timer, kept = (None, None, []) if state is None else state
        frames, now = [], 0
        for row in rows:
            frames.append(Frame(row.side == self._terms.requests, row.side, row.time, row.order, bytes(row.payload)))
            now = row.now
        found, waiting, latest = pair(frames, [Waiting(*one) for one in kept or ()], latest, self._terms)
        if timer is not None:
            self._handle.deleteTimer(timer)
            timer = None
        if waiting:
            timer = now + int((self._terms.max_wait - _LATE) * 1000)
            self._handle.registerTimer(timer)
            self._state.update((latest, timer, [tuple(one) for one in waiting]))
        else:
            self._state.clear()
        return self._rows(key, found)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        state = self._state.get()
        self._state.clear()
        why = f"no frame of the connection came for {self._terms.max_wait:g} s"
        kept = () if state is None else state[2] or ()
        return self._rows(key, [given_up(Waiting(*one), self._terms, why) for one in kept])

    def _rows(self, key: Any, found: list[dict[str, Any]]) -> Iterator[Row]:
        for one in found:
            yield Row(connection=key[0], **{name: one.get(name) for name in self._names})

    def close(self) -> None:
        """Nothing is open."""


def paired(frames: DataFrame, terms: Terms, **shown: Any) -> DataFrame:
    """The rows of a stream of frames, which are those of ``chunks_of``.

    ``shown`` are the options ``secrets`` and ``payloads`` of bodies.

    Raises ``KwireError`` if the session keeps states where ``transformWithState`` cannot use them.
    """
    from pyspark.sql.types import StructField, StructType

    provider = str(frames.sparkSession.conf.get(_PROVIDER, ""))
    if not provider.endswith("RocksDBStateStoreProvider"):
        raise KwireError(f'a stream pairs by state, which RocksDB keeps: spark.conf.set("{_PROVIDER}", "{_ROCKS}")')
    made: Any = StructType.fromDDL(_FOUND)
    names = tuple(made.names)
    schema = StructType([StructField("connection", frames.schema["connection"].dataType), *made.fields])
    arriving = frames.withColumn("arrived", sql.current_timestamp()).withColumn("now", sql.unix_millis("arrived"))
    found = stateful(arriving.withWatermark("arrived", f"{_LATE} seconds"), "connection", _Pairs(terms, names), schema)
    whole = found.select(
        "*",
        decode_request(sql.when(_is_open("request", terms), sql.col("payload")), **shown).alias("asked"),
        decode_response(
            sql.when(_is_open("response", terms), sql.col("payload")), "api_key", "api_version", **shown
        ).alias("answered"),
    )
    return whole.select(
        "connection",
        sql.timestamp_micros(sql.expr("time DIV 1000")).alias("timestamp"),
        "direction",
        _first("api_key"),
        api_name(_first("api_key")).alias("api_name"),
        _first("api_version"),
        _first("correlation_id"),
        sql.coalesce("asked.client_id", "client_id").alias("client_id"),
        (sql.col("latency") / 1e6).alias("latency_ms"),
        sql.coalesce("status", "asked.status", "answered.status").alias("status"),
        sql.coalesce("error", "asked.error", "answered.error").alias("error"),
        sql.coalesce("asked.body", "answered.body").alias("body"),
    )


def _is_open(kind: str, terms: Terms) -> Column:
    """Whether a row is one of this kind whose body is decoded."""
    same = sql.coalesce(sql.col("direction") == terms.requests, sql.lit(False))
    return (same if kind == "request" else ~same) & sql.col("status").isNull()


def _first(name: str) -> Column:
    # What a body says of itself goes first: a broker answers ApiVersions in v0 whatever was asked.
    return sql.coalesce(f"asked.{name}", f"answered.{name}", name).alias(name)
