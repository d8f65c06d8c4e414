# Invariant: any bytes as a capture give histories whose rows fit the tables' schemas and do not depend on how much is
# read at once; findings of them and the page of a report are made; a conversation of any steps, damaged or whole, too.
# Nothing but one CaptureError is raised.
"""Histories of groups, transactions, share groups and calls, from captures that are bytes or conversations of steps."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from fuzz import small_captures
from kwire import capture
from kwire.errors import CaptureError
from kwire.kernels.engine import choose, using
from kwire.report import page
from kwire.report.overview import TABLES, Overview
from kwire.tables.reading import of_capture
from kwire.testing import Conversation, Damage, talks
from kwire.testing.mutation import KINDS
from kwire.testing.talks.steps import Step

HISTORIES = ("group_events", "transactions", "share_deliveries", "journeys", "streams_tasks")
WINDOWS = (None, 300, 1000, 4096)
_BYTES, _STEPS = 0, 1
_REPORT = len(HISTORIES)
MOST = 12
"""Steps of a conversation."""
RELEASES = ("4.4", "3.9", "2.8", "1.1", "0.10.1")


def _step(three: bytes) -> Step:
    """A step by what its bytes say."""
    kind, one, other = three[0] % 12, three[1], three[2]
    client, topic, partition = one & 1, "ab"[one >> 1 & 1], one >> 2 & 1
    group = "gh"[one >> 3 & 1]
    place: dict[str, Any] = {"client": client, "topic": topic, "partition": partition}
    producers = ("plain", "idempotent", "transactional", "transactional")
    made: list[Step] = [
        talks.Write(**place, values=(b"x" * (other % 8), None), producer=producers[one >> 4 & 3]),
        talks.Write(**place, values=(b"y",), producer="transactional", held=bool(other & 1)),
        talks.End(client=client, commit=bool(other & 1), group=(None, group)[other >> 1 & 1]),
        talks.Read(**place, offset=(None, other >> 3)[other & 1], committed=bool(other & 2)),
        talks.Join(
            client=client, group=group, topics=(topic,), instance=(None, "i")[other & 1], consumer=bool(other & 2)
        ),
        talks.Beat(client=client),
        talks.Commit(**place, group=group, offset=other % 6),
        talks.Committed(**place, group=group),
        talks.Leave(client=client),
        talks.Find(**place, timestamp=(-1, -2, 0)[other % 3], held=bool(other & 4)),
        talks.Close(client=client),
        talks.Pause(client=client, seconds=(1, 15)[other & 1]),
    ]
    return made[kind]


def _played(data: bytes) -> bytes:
    """The capture of a conversation: a byte for the release, one for how many steps, three for each, then damages of
    five bytes."""
    if len(data) < 2:
        return b""
    steps = [_step(data[at : at + 3]) for at in range(2, min(2 + 3 * min(data[1], MOST), len(data) - 2), 3)]
    made = Conversation(RELEASES[data[0] % len(RELEASES)], tuple(steps)).capture
    rest = data[2 + 3 * len(steps) :]
    for at in range(0, min(len(rest), 50) - 4, 5):
        kind, amount, byte = KINDS[rest[at] % len(KINDS)], 1 + rest[at + 3] % 8, rest[at + 4]
        made = Damage(kind, int.from_bytes(rest[at + 1 : at + 3], "big"), amount, byte).apply(made)
    return made


def seeds() -> Iterator[bytes]:
    """The beginnings of golden captures, and conversations with groups and transactions."""
    for number, data in enumerate(small_captures(1 << 30)):
        yield bytes([_BYTES, number % (_REPORT + 1), number % 4]) + data[: 2000 + 1000 * (number % 4)]
    steps = bytes([4, 0, 0, 0, 0, 3, 1, 32, 2, 6, 0, 2, 2, 0, 3, 5, 0, 0, 4, 1, 0, 3, 0, 2, 5, 1, 0, 8, 0, 0, 10, 1, 0])
    consumer = bytes([4, 0, 2, 5, 0, 0, 4, 1, 2, 5, 1, 0, 1, 0, 1, 2, 0, 0, 11, 0, 1, 3, 0, 2, 8, 1, 0])
    for table in range(_REPORT + 1):
        for release in range(len(RELEASES)):
            for one in (steps, consumer):
                yield bytes([_STEPS, table, release, release, len(one) // 3]) + one


def words() -> Iterator[bytes]:
    """Steps."""
    for kind in range(12):
        yield bytes([kind, 0, 0])
        yield bytes([kind, 1, 3])


def _rows(data: bytes, table: str, window: int | None) -> tuple[list[dict[str, Any]], str | None]:
    found: list[dict[str, Any]] = []
    schema = of_capture(table).schema
    try:
        for batch in capture.read(io.BytesIO(data), table, name="fuzz", window=window):  # type: ignore[call-overload]
            assert batch.schema.equals(schema)
            batch.validate(full=True)
            found += batch.to_pylist()
    except CaptureError as error:
        return found, str(error)
    return found, None


def _report(data: bytes, window: int | None) -> None:
    over = Overview()
    try:
        for name, batch in capture.read(
            io.BytesIO(data), tables=list(TABLES), columns=TABLES, name="fuzz", window=window, dictionaries=True
        ):
            over.add(name, batch)
    except CaptureError:
        pass
    over.finish()
    assert page.render(over, [page.Source("fuzz")]).endswith("</html>\n")


def check(data: bytes) -> None:
    """Asserts the invariant for one input: where the capture comes from, a table, a window, and the rest."""
    if len(data) < 4:
        return
    content = data[3:] if data[0] % 2 == _BYTES else _played(data[3:])
    number, window = data[1] % (_REPORT + 1), WINDOWS[data[2] % len(WINDOWS)]
    with using(choose(0)):
        if number == _REPORT:
            _report(content, window)
            return
        one, other = (_rows(content, HISTORIES[number], each) for each in (None, window))
    assert sorted(map(repr, one[0])) == sorted(map(repr, other[0]))
    assert one[1] == other[1]
