"""What the rows of ``client_metrics`` say of subscriptions, and what clients do against KIP-714: row after row.

A row alone does not know which subscription a push was made for, nor what the request of an answer asked for. Both
stand in other frames, perhaps in another capture. So the table is made in two steps:

1. ``kwire.tables.client_metrics`` takes frames apart, each alone. The ``account`` of each first row says what was
   asked, answered or pushed.
2. ``Judge`` goes over these rows in order of time and fills in ``FILLED``.

Captures that are parts of a whole share one judge. Or they give their rows with the account to a later judge
(``kwire.spark.read``).

Rules kept here:

- The rows depend on the accounts and their order alone, not on which capture a row is of.
- What is remembered is bounded (``kwire.events.sessions``). A subscription is repeated in the rows of a push until
  these have ``MOST_TEXT`` bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final
from uuid import UUID

from kwire import stored
from kwire.events.rules import Violation
from kwire.events.sessions import LONGEST_REQUESTED, Known, Recent, Sessions, size_of
from kwire.events.telemetry import OF_TIME, PLACE
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.schema.keys import ApiKey
from kwire.wire import ZERO_UUID, uuid_text

__all__ = ["ANSWERED", "FILLED", "MOST_TEXT", "Judge", "account_of", "cost_of"]

_SUBSCRIPTION: Final = (
    "client_instance_id",
    "subscription_id",
    "push_interval_ms",
    "requested_metrics",
    "accepted_compression_types",
    "telemetry_max_bytes",
    "delta_temporality",
)
"""The columns of what a client was asked to push."""

FILLED: Final = (
    *_SUBSCRIPTION,
    "requested",
    "violations",
    "status",
    "error",
)
"""The columns that a judge may write."""

MOST_TEXT: Final = 32 << 20
"""About how many bytes the rows of one push may have. Each repeats the subscription and the attributes of its
resource."""
MOST_PENDING: Final = 65_536

ANSWERED: Final = "answered"
"""The status of a row that exists for its account only: of an answer to a push, or of a frame that is not wanted."""

_Row = dict[str, Any]


def account_of(frame: Any) -> list[Any]:
    """What a frame of the two APIs says to the rules. It is numbers, texts and lists, so that it can become JSON.

    Raises ``DecodeError`` if its body is bad.
    """
    body = frame.body
    of_push = frame.api_key == ApiKey.PUSH_TELEMETRY
    head = [frame.time, frame.correlation_id]
    if frame.is_response:
        if of_push:
            return ["answered", *head, body.error_code]
        requested = list(body.requested_metrics)
        return [
            "told",
            *head,
            body.error_code,
            body.client_instance_id.hex,
            body.subscription_id,
            body.push_interval_ms,
            requested if size_of(requested) <= LONGEST_REQUESTED else None,
            list(dict.fromkeys(body.accepted_compression_types)),
            body.telemetry_max_bytes,
            bool(body.delta_temporality),
        ]
    if not of_push:
        return ["asks", *head, body.client_instance_id.hex]
    return [
        "pushes",
        *head,
        body.client_instance_id.hex,
        body.subscription_id,
        bool(body.terminating),
        body.compression_type,
        len(body.metrics),
    ]


def cost_of(row: Mapping[str, Any]) -> int:
    """About how many bytes the row of a data point has, without its subscription."""
    size = 200 + len(row["metric"]) + len(row.get("unit") or "")
    for name in ("attributes", "resource_attributes"):
        size += sum(16 + len(key) + len(text or "") for key, text in (row.get(name) or {}).items())
    return size + 24 * len(row.get("buckets") or ()) + 16 * len(row.get("quantiles") or ())


class Judge:
    """Fills in the rows of ``client_metrics``, in order of time, those of a frame one after the other.

    ``limits``: what the rows of one push may be.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.is_over: bool = False
        """Whether the rows of the present push have become too many: the rest of them is left out."""
        self._sessions = Sessions()
        self._asked: Recent[tuple[UUID, int | None]] = Recent(MOST_PENDING)
        self._row: _Row = {}
        self._known: Known | None = None
        self._wrong: list[Violation] = []
        self._seen: set[str] = set()
        self._text = 0

    def filled(self, row: _Row, account: Sequence[Any] | None) -> _Row | None:
        """The row with what is known of its subscription. None for one that is left out.

        ``account``: that of the frame whose first row it is, else None. Changes ``row``. Where rows say how large they
        are, under the empty name, this grows with it.
        """
        if account is not None:
            self._begin(row, account)
        elif row.get("frame") is None or row["frame"] != self._row.get("frame"):
            # A frame that could not be read, or a file.
            self._row, self._known, self._wrong, self.is_over = {}, None, [], False
            return row
        if self.is_over or row["status"] == ANSWERED:
            return None
        known = self._known
        if known is not None:
            row.update(
                push_interval_ms=known.subscription.push_interval_ms,
                requested_metrics=known.shown,
                accepted_compression_types=known.accepted,
                telemetry_max_bytes=known.subscription.telemetry_max_bytes,
                delta_temporality=known.subscription.delta_temporality,
            )
            row[""] = row.get("", 0) + known.size
        if row.get("metric") is not None:
            cost = cost_of(row) + (0 if known is None else known.size)
            self._text += cost
            most = min(MOST_TEXT, self.limits.text)
            if self._text > most:
                return self._cut(row, most)
            row[""] = cost
            if known is not None:
                self._measured(row, known)
        row["violations"], self._wrong = self._wrong, []
        return row

    def _measured(self, row: _Row, known: Known) -> None:
        metric = row["metric"]
        row["requested"] = known.requested.has(metric)
        if metric not in self._seen:
            self._seen.add(metric)
            self._wrong = [*self._wrong, *known.measured(metric, row["temporality"], row["type"] in OF_TIME)]

    def _cut(self, row: _Row, most: int) -> _Row:
        self.is_over = True
        why = f": {self.limits.said('text')}" if most < MOST_TEXT else ""
        error = f"the push has more than {most} bytes of rows: the rest is left out{why}"
        kept = {name: row.get(name) for name in (*self._row, *_SUBSCRIPTION[2:])}
        return kept | {"violations": self._wrong, "status": "too_large", "error": error}

    def _begin(self, row: _Row, account: Sequence[Any]) -> None:
        """A new frame."""
        kind, time, correlation, *said = account
        connection = row["connection"]
        self._row = {name: row.get(name) for name in _OF_PUSH}
        self._known, self._text, self.is_over = None, 0, False
        self._seen = set()
        sessions = self._sessions
        if kind == "asks":
            instance = UUID(said[0])
            self._asked.put((connection, correlation), (instance, None))
            asked = SimpleNamespace(client_instance_id=instance)
            self._wrong = sessions.asks(connection, asked, time)
        elif kind == "pushes":
            instance, subscription_id, terminating, codec, size = UUID(said[0]), *said[1:]
            self._asked.put((connection, correlation), (instance, subscription_id))
            pushed = SimpleNamespace(
                client_instance_id=instance,
                subscription_id=subscription_id,
                terminating=terminating,
                compression_type=codec,
            )
            found = sessions.pushes(connection, pushed, time, size)
            self._wrong, self._known = list(found.violations), found.known
        else:
            self._answer(row, kind, (connection, correlation), time, said)

    def _answer(self, row: _Row, kind: str, of: tuple[Any, Any], time: int | None, said: Sequence[Any]) -> None:
        instance, subscription_id = self._asked.pop(of) or (ZERO_UUID, None)
        connection, code = of[0], said[0]
        self._wrong = []
        if kind == "answered":
            self._sessions.answered(connection, code)
        else:
            answer = SimpleNamespace(**dict(zip(_ANSWER, said, strict=True)))
            answer.client_instance_id = UUID(answer.client_instance_id)
            self._wrong = self._sessions.subscribed(connection, instance, answer, time)
            if answer.client_instance_id != ZERO_UUID:
                instance = answer.client_instance_id
            if code == 0:
                subscription_id = answer.subscription_id
                if answer.requested_metrics is not None:
                    self._known = self._sessions.known(instance, answer.subscription_id)
        row["client_instance_id"] = None if instance == ZERO_UUID else uuid_text(instance)
        row["subscription_id"] = subscription_id

    # --- from one capture to the next ---------------------------------------------------------------------------------

    def other_capture(self) -> None:
        """The next capture has connections of its own. Clients may continue in it, their connections do not."""
        self._asked = Recent(MOST_PENDING)
        self._sessions.leave_connections()

    def save(self) -> dict[str, Any]:
        """All that is known, as JSON has it, to continue elsewhere."""
        asked = [[*key, instance.hex, number] for key, (instance, number) in self._asked.items()]
        return {"asked": asked, **self._sessions.save()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes over what ``save`` gave. Raises one of ``stored.UNFIT`` for what that is not."""
        self._sessions.restore(state)
        for connection, correlation, instance, number in state["asked"]:
            of = stored.instance(instance), stored.optional(number, -(1 << 31), (1 << 31) - 1)
            self._asked.put((connection, correlation), of)


_OF_PUSH: Final = (*PLACE, "terminating", "compression", "metrics_bytes")
_ANSWER: Final = ("error_code", *_SUBSCRIPTION)
