"""``kwire.history.journeys``: what columns say of the way of records is what one would say of them one by one."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from kwire.history.journeys import EVENT, MOST_PASSED, NONE, ROW, Journeys, Kind, Way

_NAMES = tuple(EVENT.names or ())


def _event(kind: Kind, order: int, **values: int) -> tuple[int, ...]:
    said = {"kind": kind, "order": order, "time": 1000 * order, **values}
    return tuple(said.get(name, NONE) for name in _NAMES)


class _World:
    """A partition or two, producers, and readers: gives events, and what is true of them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.order = 0
        self.events: list[tuple[int, ...]] = []
        self.log: dict[int, list[tuple[int, int, int]]] = {0: [], 1: []}
        self.end = {0: 0, 1: 0}
        self.position: dict[tuple[int, int], int] = {}
        self.id = 0

    def put(self, kind: Kind, **values: int) -> int:
        self.events.append(_event(kind, self.order, **values))
        self.order += 1
        return self.order - 1

    def produce(self) -> None:
        part, records = self.random.randrange(2), self.random.randint(1, 5)
        self.id += 1
        said = {"connection": 1, "id": self.id, "part": part}
        asked = self.put(Kind.PRODUCE, records=records, size=10 * records, who=0, **said)
        fails = self.random.random() < 0.1
        first = NONE if fails else self.end[part]
        if self.random.random() < 0.9:
            self.put(Kind.ACKNOWLEDGED, first=first, asked=1000 * asked, who=0, **said)
        if not fails:
            if self.random.random() < 0.1:
                self.end[part] += 1  # a marker, which nobody produces
            self.end[part] = max(self.end[part], first) + records

    def read(self) -> None:
        who, part = self.random.randint(1, 3), self.random.randrange(2)
        here = self.position.setdefault((who, part), 0)
        if self.random.random() < 0.1:
            here = self.random.randint(0, self.end[part])
        said = {"connection": 10 + who, "part": part, "who": who}
        self.put(Kind.ASK, first=here, **said)
        last = min(self.end[part] - 1, here + self.random.randint(0, 12))
        if last < here:
            return
        begin = max(0, here - self.random.randint(0, 3))
        if self.random.random() < 0.9:
            self.put(Kind.FETCH, first=begin, last=last, records=1, more=self.end[part], **said)
        self.position[who, part] = last + 1

    def commit(self) -> None:
        # Readers 1 and 2 are of group 7, 3 is of none.
        who, part = self.random.randint(1, 2), self.random.randrange(2)
        self.id += 1
        said = {"connection": 20 + who, "id": self.id, "part": part, "who": who, "group": 7}
        offset = max(0, self.position.get((who, part), 0) - self.random.choice((0, 0, 0, 3)))
        asked = self.put(Kind.COMMIT, first=offset, **said)
        for _ in range(self.random.choice((0, 0, 0, 1, 2))):
            # The broker takes its time, and answers others before.
            self.random.choice((self.produce, self.read, self.commit))()
        if self.random.random() < 0.9:
            self.put(Kind.COMMITTED, first=self.random.choice((0, 0, 0, NONE)), asked=1000 * asked, **said)

    def run(self, steps: int) -> np.ndarray[Any, Any]:
        for _ in range(steps):
            self.random.choice((self.produce, self.read, self.read, self.commit, self._gap, self._joined))()
        return np.array(self.events, EVENT)

    def _gap(self) -> None:
        if self.random.random() < 0.1:
            self.put(Kind.GAP, connection=10 + self.random.randint(1, 3))

    def _joined(self) -> None:
        if self.random.random() < 0.2:
            self.put(Kind.GROUP, connection=21, part=self.random.randrange(2), who=self.random.randint(1, 2), group=7)


def _rows(events: Any, cuts: list[int], **bounds: int) -> list[tuple[int, ...]]:
    made = Journeys(**bounds)
    found, last = [], 0
    for cut in [*cuts, int(events["order"].max()) + 1]:
        found.append(made.add(events[(events["order"] >= last) & (events["order"] < cut)], cut))
        last = cut
    found.append(made.rest())
    rows: list[tuple[int, ...]] = np.concatenate(found).tolist()
    return rows


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("seed", range(7))
def test_rows_do_not_depend_on_windows(seed: int) -> None:
    world = _World(seed)
    events = world.run(150)
    bounds = {"at_once": 0} if seed % 2 else {"late": 3, "produced": 9, "delivered": 7, "at_once": seed * 8}
    whole = _rows(events, [], **bounds)
    assert whole
    cuts = sorted(world.random.sample(range(1, int(events["order"].max())), 12))
    assert _rows(events, cuts, **bounds) == whole
    assert _rows(events, list(range(1, int(events["order"].max()))), **bounds) == whole


# --- one by one -------------------------------------------------------------------------------------------------------


def _one_by_one(events: Any) -> set[tuple[Any, ...]]:
    """What is true of each record: (way, partition, offset, produce frame, fetch frame, deliveries, commit frame)."""
    rows = [dict(zip(_NAMES, one, strict=True)) for one in events.tolist()]
    asked: dict[tuple[int, ...], dict[str, int]] = {}
    wrote: dict[tuple[int, int], tuple[int, int]] = {}
    commits: list[tuple[int, dict[str, int]]] = []
    for row in rows:
        key = (row["connection"], row["id"], row["part"])
        if row["kind"] in (Kind.PRODUCE, Kind.COMMIT):
            asked[key] = row
        elif row["kind"] == Kind.ACKNOWLEDGED and row["first"] >= 0:
            for one in range(asked[key]["records"]):
                wrote[row["part"], row["first"] + one] = asked[key]["order"], row["order"]
        elif row["kind"] == Kind.COMMITTED and row["first"] >= 0:
            commits.append((row["order"], asked[key]))
    groups: dict[tuple[int, int], int] = {}
    known = [(row["order"], row) for row in rows if row["kind"] == Kind.GROUP] + commits
    for order, row in sorted(known, key=lambda one: one[0]):
        groups.setdefault((row["who"], row["part"]), order)

    def entity(row: dict[str, int], order: int) -> Any:
        return 7 if groups.get((row["who"], row["part"]), 1 << 60) <= order else ("client", row["who"])

    made: set[tuple[Any, ...]] = set()
    last: dict[tuple[int, int], int] = {}
    top: dict[Any, tuple[int, int, int]] = {}
    had: dict[Any, int] = {}
    got: set[tuple[int, int]] = set()
    gaps = [(row["order"], row["connection"]) for row in rows if row["kind"] == Kind.GAP]
    for row in rows:
        order, part = row["order"], row["part"]
        if row["kind"] == Kind.ASK:
            last[row["connection"], part] = row["first"]
            mine = (entity(row, order), part)
            reached, since, where = top.get(mine, (row["first"], order, row["connection"]))
            lost = any(since < at < order and on in (row["connection"], where) for at, on in gaps)
            for offset in range(reached, row["first"]):
                if (part, offset) in wrote:
                    way = Way.MISSING if lost else Way.SKIPPED
                    made.add((way, part, offset, wrote[part, offset][0], order, 0, NONE))
                    got.add((part, offset))
            top[mine] = max(reached, row["first"]), order, row["connection"]
        elif row["kind"] == Kind.FETCH:
            mine = (entity(row, order), part)
            reached, _, _ = top.get(mine, (0, 0, 0))
            top[mine] = max(reached, row["last"] + 1), order, row["connection"]
            for offset in range(max(row["first"], last.get((row["connection"], part), NONE)), row["last"] + 1):
                had[mine, offset] = had.get((mine, offset), 0) + 1
                by = wrote.get((part, offset), (NONE, NONE))[0]
                got.add((part, offset))
                cover = next(
                    (
                        one["order"]
                        for at, one in sorted(commits, key=lambda one: one[0])
                        if one["order"] > order
                        and one["part"] == part
                        and one["first"] > offset
                        and groups.get((row["who"], part), 1 << 60) <= at
                    ),
                    NONE,
                )
                way = Way.DELIVERED if cover == NONE else Way.COMMITTED
                made.add((way, part, offset, by, order, had[mine, offset], cover))
    for (part, offset), (by, _) in wrote.items():
        if (part, offset) not in got:
            made.add((Way.UNDELIVERED, part, offset, by, NONE, 0, NONE))
    return made


@pytest.mark.parametrize("seed", range(7))
def test_ranges_say_what_is_true_of_each_record(seed: int) -> None:
    events = _World(1000 + seed).run(120)
    true = _one_by_one(events)
    place = (ROW.names or ()).index
    names = ("way", "part", "first", "produce_order", "fetch_order", "deliveries", "commit_order")
    said: dict[tuple[int, ...], int] = {}
    undelivered = set()
    commits = {one[1:5]: (one[0], one[6]) for one in true}
    for row in _rows(events, []):
        way, part, first, by, fetched, deliveries, commit = (row[place(name)] for name in names)
        last = row[place("last")]
        for offset in range(first, last + 1):
            said[part, offset, by, fetched] = deliveries
            if way == Way.UNDELIVERED:
                undelivered.add((part, offset, by, fetched))
        if way != Way.UNDELIVERED:
            # A commit covers a range when it covers its last record.
            assert commits[part, last, by, fetched] == (way, commit)
    assert undelivered <= (of_none := {one[1:5] for one in true if one[0] == Way.UNDELIVERED})
    assert said.keys() - undelivered == commits.keys() - of_none
    # How often is said of a range, by the record that came most often.
    assert all(one[5] <= said[one[1:5]] for one in true if one[0] != Way.UNDELIVERED)
    assert all((count > 1) <= any(one[5] > 1 for one in true if one[4] == key[3]) for key, count in said.items())


def test_an_acknowledgement_may_come_after_the_delivery() -> None:
    said = {"connection": 1, "id": 5, "part": 0}
    events = np.array(
        [
            _event(Kind.PRODUCE, 0, records=3, size=9, who=0, **said),
            _event(Kind.ASK, 1, first=0, connection=2, part=0, who=1),
            _event(Kind.FETCH, 2, first=0, last=2, records=1, more=3, connection=2, part=0, who=1),
            _event(Kind.ACKNOWLEDGED, 3, first=0, asked=0, **said),
        ],
        EVENT,
    )
    (row,) = np.array(_rows(events, [3]), ROW)
    assert (row["way"], row["produce_order"], row["fetch_order"], row["lag"]) == (Way.DELIVERED, 0, 2, 0)


def test_a_commit_covers_what_came_before_its_request() -> None:
    reader = {"connection": 2, "part": 0, "who": 1}
    first, second = ({"connection": 3, "id": id_, "part": 0, "who": 1, "group": 7} for id_ in (1, 2))
    events = np.array(
        [
            _event(Kind.PRODUCE, 0, records=3, size=9, who=0, connection=1, id=5, part=0),
            _event(Kind.ACKNOWLEDGED, 1, first=0, asked=0, connection=1, id=5, part=0),
            _event(Kind.ASK, 2, first=0, **reader),
            _event(Kind.COMMIT, 3, first=3, **first),
            _event(Kind.FETCH, 4, first=0, last=2, records=1, more=3, **reader),
            _event(Kind.COMMITTED, 5, first=0, asked=3000, **first),
            _event(Kind.COMMIT, 6, first=3, **second),
            _event(Kind.COMMITTED, 7, first=0, asked=6000, **second),
        ],
        EVENT,
    )
    for cuts in ([], [5], list(range(1, 8))):
        (row,) = np.array(_rows(events, cuts, at_once=0), ROW)
        assert (row["way"], row["commit_order"], row["committed"]) == (Way.COMMITTED, 6, 7000)
    (row,) = np.array(_rows(events[:6], []), ROW)
    assert (row["way"], row["commit_order"]) == (Way.DELIVERED, NONE)


def test_nothing_is_delivered_or_passed_before_it_was_produced() -> None:
    reader = {"connection": 2, "part": 0, "who": 1}
    said = {"connection": 1, "id": 5, "part": 0}
    events = np.array(
        [
            _event(Kind.ASK, 0, first=0, **reader),
            _event(Kind.FETCH, 1, first=0, last=2, records=1, more=3, **reader),
            _event(Kind.ASK, 2, first=9, **reader),
            # The same offsets again: the topic was made again, or it is one of another cluster.
            _event(Kind.PRODUCE, 3, records=9, size=9, who=0, **said),
            _event(Kind.ACKNOWLEDGED, 4, first=0, asked=3000, **said),
        ],
        EVENT,
    )
    rows = np.array(_rows(events, [3]), ROW)
    found = sorted((row["way"], row["first"], row["last"], row["produce_order"]) for row in rows)
    assert found == [(Way.DELIVERED, 0, 2, NONE), (Way.UNDELIVERED, 0, 8, 3)]


def test_few_events_wait_for_ten_seconds() -> None:
    """Of the capture's clock, whatever year it says: work is done for many at once."""
    now = 1_700_000_000 * 10**9
    said = {"connection": 1, "id": 5, "part": 0}
    first = [
        _event(Kind.PRODUCE, 0, records=3, size=9, who=0, **said),
        _event(Kind.ACKNOWLEDGED, 1, first=0, asked=0, **said),
        _event(Kind.ASK, 2, first=0, connection=2, part=0, who=1),
        _event(Kind.FETCH, 3, first=0, last=2, records=1, more=3, connection=2, part=0, who=1),
    ]
    later = [_event(Kind.ASK, 4, first=3, connection=2, part=0, who=1)]
    for seconds, waiting in ((9, 2), (10, 0)):
        made = Journeys()
        events, last = np.array(first, EVENT), np.array(later, EVENT)
        events["time"], last["time"] = now, now + seconds * 10**9
        made.add(events, 4)
        assert len(made._new) == 1
        made.add(last, 5)
        assert len(made._new) == waiting


def test_state_is_bounded() -> None:
    made = Journeys(late=4, produced=50, delivered=50, at_once=0)
    world = _World(3)
    world.run(3000)
    events = np.array(world.events, EVENT)
    most = 0
    for first in range(0, len(events), 100):
        part = events[first : first + 100]
        made.add(part, int(part["order"].max()) + 1)
        most = max(most, made.kept)
    assert most < 800


def _found(events: list[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Way, range, request that produced it, and deliveries of each row."""
    table = np.array(events, EVENT)
    found = []
    for cuts in ([], list(range(1, len(events)))):
        rows = np.array(_rows(table, cuts), ROW)
        found.append({tuple(row[["way", "first", "last", "produce_order", "deliveries"]].tolist()) for row in rows})
    assert found[0] == found[1]
    return found[0]


def _wrote(order: int, id_: int, first: int, records: int, **more: int) -> list[tuple[int, ...]]:
    said = {"connection": 1, "id": id_, "part": 0, "who": 0, **more}
    return [
        _event(Kind.PRODUCE, order, records=records, size=records, **said),
        _event(Kind.ACKNOWLEDGED, order + 1, first=first, asked=1000 * order, **said),
    ]


def _read(order: int, first: int, last: int) -> list[tuple[int, ...]]:
    reader = {"connection": 2, "part": 0, "who": 1}
    return [
        _event(Kind.ASK, order, first=first, **reader),
        _event(Kind.FETCH, order + 1, first=first, last=last, records=1, more=last + 1, **reader),
    ]


def test_offsets_that_are_written_again_are_others() -> None:
    """The topic was removed and made again, with batches of another size."""
    got = (Way.DELIVERED,)
    events = [
        *_wrote(0, 5, 0, 10), *_read(2, 0, 3), *_read(4, 4, 9), *_wrote(6, 6, 0, 4), *_wrote(8, 7, 4, 4),
        *_read(10, 0, 7),
    ]  # fmt: skip
    assert _found(events) == {
        (*got, 0, 3, 0, 1), (*got, 4, 9, 0, 1), (*got, 0, 3, 6, 1), (*got, 4, 7, 8, 1),
    }  # fmt: skip


def test_of_offsets_that_a_new_leader_did_not_have_a_reader_gets_what_was_written_last() -> None:
    events = [*_wrote(0, 5, 0, 10), *_wrote(2, 6, 5, 2), *_wrote(4, 7, 6, 1), *_read(6, 0, 9)]
    got = (Way.DELIVERED,)
    assert _found(events) == {
        (*got, 0, 4, 0, 1), (*got, 5, 5, 2, 1), (*got, 6, 6, 4, 1), (*got, 7, 9, 0, 1),
        (Way.UNDELIVERED, 6, 6, 2, 0),
    }  # fmt: skip


def test_a_batch_that_is_sent_again_without_an_answer_is_one_range() -> None:
    first, again = _wrote(0, 5, 3, 2), _wrote(1, 6, 3, 2, connection=3)
    answered = [_event(Kind.ACKNOWLEDGED, 3, first=3, asked=0, connection=1, id=5, part=0, who=0)]
    assert _found([first[0], *again, *answered, *_read(4, 3, 4)]) == {(Way.DELIVERED, 3, 4, 1, 1)}


def test_an_offset_beyond_all_is_none() -> None:
    assert not _found(_wrote(0, 5, (1 << 63) - 5, 10))


def test_a_reader_that_passes_very_many_ranges_has_a_row_for_those_that_are_left() -> None:
    """A request of some bytes is not a row for each range that there is."""
    many = MOST_PASSED + 50
    events = [one for number in range(many) for one in _wrote(2 * number, number, number, 1)]
    events += [*_read(2 * many, 0, 0), *_read(2 * many + 2, many, many)[:1]]
    rows = [row for row in _found(events) if row[0] == Way.SKIPPED]
    assert len(rows) == MOST_PASSED + 1
    assert (Way.SKIPPED, 1, 1, 2, 0) in rows
    assert (Way.SKIPPED, MOST_PASSED + 1, many - 1, NONE, 0) in rows


def test_one_batch_is_of_few_ranges_whatever_offsets_it_says_that_it_has() -> None:
    events = [one for number in range(200) for one in _wrote(2 * number, number, number, 1)]
    events += _read(400, 0, 1 << 40)
    rows = [row for row in _found(events) if row[0] == Way.DELIVERED]
    assert len(rows) < 30
    assert max(last for _, _, last, *_ in rows) == 1 << 40
