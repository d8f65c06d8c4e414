"""The tables that captures and log segments become: one module per table, and the registry of them, which is here.

A module says everything about its table:

- the Arrow schema
- the words that its columns use
- how its rows are made
- what a person is shown of it

The command line, the Spark source, ``kwire.capture.read`` and ``docs/reference/tables`` ask only this registry. So a
new table is a module with a ``TABLE`` and a line here.

    frames = table("frames")                    # a kwire.tables.definition.CaptureTable
    frames.schema.names, frames.statuses

Rules kept here:

- Importing this package costs nothing. A table's module, and pyarrow with it, is imported when somebody asks for the
  table.
- Only Arrow types that Spark's Python data source accepts are used:
    - no large or view types
    - no dictionaries (unless ``capture.read`` is asked for them)
    - no unsigned integers
    - timestamps in microseconds with the time zone ``UTC``
- A Kafka timestamp has milliseconds. A capture has at most nanoseconds, which are cut to microseconds.
- ``capture``, ``connection`` and ``frame`` together name a frame. They are never null and join the tables of a capture.
- ``connection`` counts from 0 in the order in which a capture's connections appear. ``frame`` counts from 0 in the
  order in which frames are settled, over the whole capture.
- Frames and connections that a table leaves out still count. So a number means the same thing in each table.
- Nullable means "not known": a column is non-nullable only where every row has a value.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final, Literal, overload

from kwire.errors import needed
from kwire.naming import no_such

if TYPE_CHECKING:
    from kwire.tables.definition import CaptureTable, LogTable, Table

__all__ = ["CAPTURE", "EVENTS", "LOG", "Kind", "every", "names", "table"]

Kind = Literal["capture", "events", "log"]
"""What a table is made from: a capture, the records of a capture read as events, or a log segment."""

CAPTURE: Final = "capture"
"""The kind (str) of tables that are made of a capture."""
EVENTS: Final = "events"
"""The kind (str) of tables that are made of the events in a capture's records."""
LOG: Final = "log"
"""The kind (str) of tables that are made of a log segment."""

_MODULES: Final[dict[Kind, dict[str, str]]] = {
    CAPTURE: {
        "frames": "frames",
        "messages": "messages",
        "partitions": "partitions",
        "records": "records",
        "batches": "batches",
        "client_metrics": "client_metrics",
        "calls": "calls",
        "connections": "connections",
        "group_events": "group_events",
        "share_deliveries": "share_deliveries",
        "streams_tasks": "streams_tasks",
        "transactions": "transactions",
        "journeys": "journeys",
    },
    EVENTS: {
        "cloudevents": "cloudevents",
        "hono": "hono",
    },
    LOG: {
        "records": "log_records",
        "batches": "log_batches",
    },
}
"""The module of each table, by what it is made from and its name. The default of each kind is first."""


def names(kind: Kind = CAPTURE) -> tuple[str, ...]:
    """The names of the tables of a kind, the default first. Imports nothing."""
    return tuple(_MODULES[kind])


@overload
def table(name: str, kind: Literal["capture", "events"] = ...) -> CaptureTable: ...
@overload
def table(name: str, kind: Literal["log"]) -> LogTable: ...
def table(name: str, kind: Kind = CAPTURE) -> Table:
    """The table ``name`` of a kind.

    Raises ``ValueError`` for one that there is not, ``MissingExtraError`` without the extra ``capture``.
    """
    module = _MODULES[kind].get(name)
    if module is None:
        raise ValueError(no_such("table", name, _MODULES[kind]))
    with needed("reading captures and log segments", "capture"):
        found: Table = importlib.import_module(f"{__name__}.{module}").TABLE
    return found


def every() -> list[Table]:
    """All tables, with the deep variants of those of log segments after the plain ones."""
    found: list[Table] = [table(name, kind) for kind in (CAPTURE, EVENTS) for name in names(kind)]
    for name in names(LOG):
        one = table(name, LOG)
        found += [one] if one.deep is None else [one, one.deep]
    return found
