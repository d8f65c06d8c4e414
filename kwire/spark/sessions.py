"""Which partitions each Fetch request asks for, although it says only what has changed.

- ``fetch_sessions``: of Fetch (KIP-227)
- ``share_sessions``: of ShareFetch (KIP-932)

Strategy: ``calls`` has the session and epoch of each Fetch request, ``partitions`` what it adds, changes and forgets. A
request with an epoch of 0 begins a session on its connection. One of -1 is whole by itself. The others, in order,
change what those before them have left. So a partition of a session is a row from the request that names it to the one
that changes it. Windows of SQL find these rows. Nothing is collected on the driver.

Rules kept here:

- A broker applies what a request adds before what it forgets.
- Requests of versions before 7 know no sessions: each is whole.
- If the beginning of a session, or a request of it, is not in the capture, ``complete`` says so from there on.
- A share session is that of a member of a group on its connection. ShareAcknowledge counts among its requests. It only
  changes a session by ending it, with -1. A ShareFetch with -1 acknowledges, and fetches nothing.
- A partition that is named again in a share session is acknowledged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kwire.errors import KwireError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["fetch_sessions", "share_sessions"]

_NEEDED: Final = ("calls", "partitions")

_SQL: Final = """
WITH asked AS (
    SELECT capture, connection, frame, frame_timestamp, client_host, client_port, client_id, session_id,
        coalesce(session_epoch, -1) AS epoch
    FROM {calls} WHERE api_name = 'Fetch' AND direction = 'request' AND status = 'ok'
), numbered AS (
    SELECT *, row_number() OVER connections AS n,
        coalesce(sum(if(epoch <= 0, 1, 0)) OVER connections, 0) AS session,
        epoch > 0 AND epoch <> coalesce(if(lag(epoch) OVER connections = 2147483647, 1,
            lag(epoch) OVER connections + 1), -1) AS misses
    FROM asked WINDOW connections AS (PARTITION BY {of} ORDER BY frame)
), followed AS (
    SELECT *,
        sum(if(misses, 1, 0)) OVER (PARTITION BY {of}, session ORDER BY frame) = 0 AS complete,
        max(if(epoch <> 0, session_id, NULL)) OVER (PARTITION BY {of}, session) AS id,
        max(n) OVER (PARTITION BY {of}) + 1 AS behind_all,
        min(if(epoch <= 0, struct(n, frame, frame_timestamp), NULL)) OVER (
            PARTITION BY {of} ORDER BY n ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS next
    FROM numbered
), changes AS (
    SELECT a.*, p.topic, p.topic_id, p.partition, p.offset, p.path LIKE 'forgotten%' AS forgotten
    FROM followed AS a JOIN {partitions} AS p ON {joined} AND p.frame = a.frame
    WHERE p.api_name = 'Fetch' AND p.direction = 'request' AND p.status = 'ok'
), spans AS (
    SELECT *, coalesce(lead(struct(n, frame, frame_timestamp)) OVER (
        PARTITION BY {of}, session, coalesce(topic_id, topic), partition ORDER BY frame, forgotten), next) AS end
    FROM changes
)
SELECT capture, connection, client_host, client_port, client_id, nullif(id, 0) AS session_id, topic, topic_id,
    partition, offset, frame, frame_timestamp AS since, end.frame AS until_frame, end.frame_timestamp AS until,
    coalesce(end.n, behind_all) - n AS requests, complete
FROM spans WHERE NOT forgotten AND (end IS NULL OR end.n > n)
"""

_SHARED: Final = """
WITH asked AS (
    SELECT capture, connection, frame, frame_timestamp, client_host, client_port, client_id, group_id, member_id,
        session_epoch AS epoch, api_name = 'ShareFetch' AND session_epoch >= 0 AS fetches
    FROM {calls} WHERE api_name IN ('ShareFetch', 'ShareAcknowledge') AND direction = 'request' AND status = 'ok'
), numbered AS (
    SELECT *, count_if(fetches) OVER sessions - if(fetches, 1, 0) AS n,
        count_if(epoch <= 0) OVER sessions AS session,
        epoch > 0 AND epoch <> coalesce(if(lag(epoch) OVER sessions = 2147483647, 1,
            lag(epoch) OVER sessions + 1), -1) AS misses
    FROM asked WINDOW sessions AS (PARTITION BY {of}, group_id, member_id ORDER BY frame)
), followed AS (
    SELECT *,
        count_if(misses) OVER (PARTITION BY {of}, group_id, member_id, session ORDER BY frame) = 0 AS complete,
        count_if(fetches) OVER (PARTITION BY {of}, group_id, member_id) AS behind_all,
        min(if(epoch <= 0, struct(n, frame, frame_timestamp), NULL)) OVER (
            PARTITION BY {of}, group_id, member_id
            ORDER BY frame ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS next
    FROM numbered
), named AS (
    SELECT a.*, p.topic, p.topic_id, p.partition, p.path LIKE 'forgotten%' AS forgotten
    FROM followed AS a JOIN {partitions} AS p ON {joined} AND p.frame = a.frame
    WHERE a.fetches AND p.api_name = 'ShareFetch' AND p.direction = 'request' AND p.status = 'ok'
), changes AS (
    SELECT * FROM (
        SELECT *, forgotten <> coalesce(lag(forgotten) OVER (
            PARTITION BY {of}, group_id, member_id, session, topic_id, partition
            ORDER BY frame, forgotten), true) AS changes
        FROM named
    ) WHERE changes
), spans AS (
    SELECT *, coalesce(lead(struct(n, frame, frame_timestamp)) OVER (
        PARTITION BY {of}, group_id, member_id, session, topic_id, partition ORDER BY frame, forgotten), next) AS end
    FROM changes
)
SELECT capture, connection, client_host, client_port, client_id, group_id, member_id, topic, topic_id, partition,
    frame, frame_timestamp AS since, end.frame AS until_frame, end.frame_timestamp AS until,
    coalesce(end.n, behind_all) - n AS requests, complete
FROM spans WHERE NOT forgotten AND (end IS NULL OR end.n > n)
"""


def fetch_sessions(tables: Mapping[str, DataFrame], *, across: bool = False) -> DataFrame:
    """Which partitions Fetch requests cover, and from which offset on.

    A row goes from the request that says so (``frame``) up to the one that says otherwise (``until_frame``). The latter
    does not cover the partition any more. It is null if none is in the capture.

    ``tables``: ``calls`` and ``partitions``, as the data source ``kwire`` gives them. ``across``: connections go on
    from file to file, as with ``kwire.spark.read`` or the option ``across``. A request covers the rows of its
    connection with ``frame`` up to it and ``until_frame`` after it or null.

    Columns:

    - ``capture``, ``connection``, ``client_host``, ``client_port``, ``client_id``
    - ``session_id`` (int): null if the broker gave none, or no request with it was captured
    - ``topic``, ``topic_id``, ``partition``
    - ``offset`` (bigint): fetched from there on
    - ``frame``, ``since`` (timestamp), ``until_frame``, ``until``
    - ``requests`` (bigint): how many Fetch requests cover it. All but the first inherit it.
    - ``complete`` (boolean): whether all requests of the session up to there are in the capture. If not, there may be
      partitions that no row has.

    Raises ``KwireError`` without one of the tables.
    """
    return _made(_SQL, "fetch sessions", tables, across)


def share_sessions(tables: Mapping[str, DataFrame], *, across: bool = False) -> DataFrame:
    """Which partitions ShareFetch requests of members of share groups cover.

    A row goes from the request that adds a partition (``frame``) up to the request that forgets it or ends the session
    (``until_frame``). The latter does not cover it any more. It is null if none is in the capture. ``tables`` and
    ``across`` are those of ``fetch_sessions``.

    Columns:

    - ``capture``, ``connection``, ``client_host``, ``client_port``, ``client_id``
    - ``group_id``, ``member_id``, ``topic``, ``topic_id``, ``partition``
    - ``frame``, ``since`` (timestamp), ``until_frame``, ``until``
    - ``requests`` (bigint): how many ShareFetch requests cover it. All but the first inherit it.
    - ``complete`` (boolean)

    In version 0, of Kafka 4.0, a request names a partition that is only acknowledged like one that is fetched.

    Raises ``KwireError`` without one of the tables.
    """
    return _made(_SHARED, "share sessions", tables, across)


def _made(query: str, what: str, tables: Mapping[str, DataFrame], across: bool) -> DataFrame:
    missing = [name for name in _NEEDED if name not in tables]
    if missing:
        raise KwireError(f"{what} need the table {missing[0]}")
    of = ("connection",) if across else ("capture", "connection")
    calls, partitions = (tables[name] for name in _NEEDED)
    query = query.replace("{of}", ", ".join(of))
    query = query.replace("{joined}", " AND ".join(f"p.{one} = a.{one}" for one in of))
    return calls.sparkSession.sql(query, calls=calls, partitions=partitions)
