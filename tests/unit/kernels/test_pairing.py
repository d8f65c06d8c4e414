"""Responses to their requests: the lists of requests that wait, on both engines."""

from __future__ import annotations

import random
import struct
from typing import Any

import numpy as np
from packets import response, sized
from placed_streams import connection, scratch, window

from kwire.kernels.engine import Engine
from kwire.kernels.hashing import fresh_key
from kwire.kernels.layouts import FOLLOWS, LEADS, ROOM, WAITING, joined
from kwire.kernels.pairing import (
    MOST_OVERTAKEN,
    MOST_UNANSWERED,
    MOST_WAITING,
    NEAR,
    SASL_TOKEN,
    answered,
    append_all,
    drop,
    find,
    find_request,
    give_up,
    list_all,
    move_lookup,
    plausible_response,
    wait_for,
)
from kwire.kernels.roles import LARGEST_FRAME, NEED_MORE, NO, YES
from kwire.protocol.api_table import api_table
from kwire.schema.keys import ApiKey


class Lists:
    """The requests that wait of some connections, in one table."""

    def __init__(self, engine: Engine, connections: int = 1, rows: int = 100, places: int = 128) -> None:
        self.engine = engine
        self.connections = joined([connection(number=number) for number in range(connections)])
        self.table = np.zeros(rows, WAITING)
        self.lookup = np.full(places, -1, np.int64)
        self.room = np.zeros(1, ROOM)
        self.room["free"] = -1
        self.room["key_a"], self.room["key_b"] = fresh_key()

    @property
    def tables(self) -> tuple[Any, Any, Any]:
        return self.table, self.lookup, self.room[0]

    def add(self, number: int, *, slot: int = 0, api: int = 3, version: int = 0, time: int = 0) -> Lists:
        self.engine(wait_for)(self.connections[slot], *self.tables, number, api, version, -1, time, time, time)
        return self

    def forget(self, count: int, slot: int = 0) -> Lists:
        for _ in range(min(count, int(self.connections["waiting"][slot]))):
            head = int(self.connections["waiting_head"][slot])
            self.engine(drop)(self.connections[slot], *self.tables, head)
        return self

    def answer(self, number: int, slot: int = 0) -> Lists:
        found = self.find(number, 1 << 60, slot=slot)
        assert found >= 0
        self.engine(answered)(self.connections[slot], *self.tables, found)
        return self

    def numbers(self, slot: int = 0) -> list[int]:
        """The correlation ids of a connection's list, which must be as long as it says."""
        found, overtaken = [], []
        row, last = int(self.connections["waiting_head"][slot]), -1
        front = int(self.connections["waiting_front"][slot])
        while row >= 0:
            assert self.table["prev"][row] == last
            assert self.table["overtaken"][row] == (front not in (row, *overtaken))
            overtaken.append(row)
            found.append(int(self.table["id"][row]))
            last, row = row, int(self.table["next"][row])
        assert self.connections["waiting"][slot] == len(found)
        assert self.connections["waiting_tail"][slot] == last
        assert self.connections["overtaken"][slot] == self.table["overtaken"][overtaken].sum()
        return found

    def find(self, number: int, until: int = 0, which: Any = find, slot: int = 0) -> int:
        return int(self.engine(which)(self.connections[slot], *self.tables, number, until))

    def chains(self) -> list[int]:
        """How long the lists of the hash table are; each row with a correlation id is new or stands in one, once."""
        found, rows = [], []
        for first in self.lookup.tolist():
            length = 0
            while first >= 0:
                length += 1
                one, last = first, -1
                while one >= 0:
                    rows.append(one)
                    assert self.table["entered"][one] == (LEADS if one == first else FOLLOWS)
                    assert one == first or self.table["back"][one] == last
                    last, one = one, int(self.table["same"][one])
                assert self.table["back"][first] == last
                first = int(self.table["chain"][first])
            found.append(length)
        waits = []
        for slot, new in enumerate(self.connections["waiting_new"].tolist()):
            of = self.rows(slot)
            waits += of[: of.index(new)] if new >= 0 else of
        assert sorted(rows) == sorted(one for one in waits if self.table["api"][one] != SASL_TOKEN)
        return found

    def rows(self, slot: int = 0) -> list[int]:
        made = np.full(int(self.connections["waiting"][slot]), -1, np.int64)
        self.engine(list_all)(self.connections, np.array([slot]), self.table, made)
        return [int(one) for one in made]


def test_requests_wait_in_order_and_are_taken_off_anywhere(engine: Engine) -> None:
    lists = Lists(engine)
    assert lists.numbers() == []
    for number in range(5):
        lists.add(number)
    assert lists.numbers() == [0, 1, 2, 3, 4]
    assert lists.forget(2).numbers() == [2, 3, 4]
    assert lists.forget(0).numbers() == [2, 3, 4]
    lists.chains()
    assert lists.forget(99).numbers() == []
    assert lists.add(7).numbers() == [7]


def test_rows_are_used_again_and_connections_do_not_mix(engine: Engine) -> None:
    lists = Lists(engine, connections=3)
    for number in range(9):
        lists.add(number, slot=number % 3)
    lists.forget(2, slot=1).forget(1, slot=0)
    assert [lists.numbers(slot) for slot in range(3)] == [[3, 6], [7], [2, 5, 8]]
    for number in (10, 11, 12):
        lists.add(number, slot=2)
    assert lists.room["waiting"][0] == 9
    lists.add(13, slot=1)
    assert lists.room["waiting"][0] == 10
    assert [lists.numbers(slot) for slot in range(3)] == [[3, 6], [7, 13], [2, 5, 8, 10, 11, 12]]


def test_what_waits_for_longest_is_given_up_in_all_connections(engine: Engine) -> None:
    lists = Lists(engine, connections=3)
    for number in range(30):
        lists.add(number, slot=number % 2, time=number, api=SASL_TOKEN if number % 7 == 3 else 3)
    engine(give_up)(lists.connections, 3, *lists.tables, 10)
    assert lists.connections["given_up"].tolist() == [6, 5, 0]
    assert [lists.numbers(slot) for slot in range(3)] == [list(range(12, 30, 2)), list(range(11, 30, 2)), []]
    assert (lists.find(9, until=99, slot=1), lists.find(12, until=99)) == (-1, 12)
    lists.chains()
    engine(give_up)(lists.connections, 3, *lists.tables, 99)
    assert lists.connections["given_up"].tolist() == [15, 15, 0]
    assert lists.chains() == [0] * 128


def test_a_bound_in_bytes_is_said_in_rows() -> None:
    assert MOST_WAITING * (WAITING.itemsize + 8) <= MOST_UNANSWERED < 2 * MOST_WAITING * (WAITING.itemsize + 8)
    assert MOST_WAITING & MOST_WAITING - 1 == 0


def test_lists_that_are_taken_back_are_those_that_were_listed(engine: Engine) -> None:
    lists = Lists(engine, connections=4)
    for number in range(40):
        lists.add(number % 5, slot=number * 7 % 3, time=number, api=SASL_TOKEN if number % 9 == 4 else 3)
    rows = [lists.rows(slot) for slot in range(4)]
    again = Lists(engine, connections=4)
    again.table[:40] = lists.table[[one for of in rows for one in of]]
    slots = np.repeat(np.arange(4), [len(one) for one in rows])
    again.room["waiting"] = 40
    engine(append_all)(again.connections, slots, again.table)
    assert [again.numbers(slot) for slot in range(4)] == [lists.numbers(slot) for slot in range(4)]
    again.chains()
    for slot in range(3):
        for number in range(5):
            found, wanted = again.find(number, 99, slot=slot), lists.find(number, 99, slot=slot)
            assert again.table["order"][found] == lists.table["order"][wanted]


def test_ids_that_wait_often_or_were_chosen_are_found_at_once(engine: Engine) -> None:
    """A response searches one list of the hash table, in which each correlation id stands once."""
    count = 4096
    lists = Lists(engine, connections=3, rows=count, places=count)
    for k in range(count // 2):
        lists.add(k << 12, slot=0, time=k)  # alike in the bits that a table would be indexed with
        lists.add(7, slot=1, time=k)
    # As long as the first is the one that is answered, nothing has to be entered.
    assert lists.find(0, until=99, slot=0) == 0
    assert lists.find(7, until=99, slot=1) == 1
    assert sum(lists.chains()) == 0
    assert lists.find(8, until=99, slot=1) == -1
    assert lists.find(7, until=99, slot=2) == -1
    assert lists.find(5 << 12, until=99, slot=0) == 10
    assert sum(lists.chains()) == count // 2 + 1
    assert max(lists.chains()) < 20
    larger = np.full(4 * count, -1, np.int64)
    engine(move_lookup)(*lists.tables, larger)
    lists.lookup = larger
    assert max(lists.chains()) < 20
    for k in range(count // 2):
        assert lists.find(7, until=99_999, slot=1) == 2 * k + 1
        lists.forget(1, slot=1)
    assert lists.find(7, until=99_999, slot=1) == -1
    lists.chains()


def test_any_requests_and_responses_are_paired_as_by_a_search_of_all(engine: Engine) -> None:
    chance = random.Random(3)
    lists = Lists(engine, connections=3, rows=512, places=64)
    # Of each request its id, API and time, and whether it was overtaken.
    model: list[list[tuple[int, int, int, bool]]] = [[], [], []]
    unanswered, disordered = [0, 0, 0], [0, 0, 0]
    for step in range(1500):
        slot = chance.randrange(3)
        of = model[slot]
        if chance.random() < 0.7 and sum(map(len, model)) < 500:
            api = SASL_TOKEN if chance.random() < 0.1 else 3
            number = chance.randrange(40)
            lists.add(number, slot=slot, api=api, time=step)
            left = [one for one in of if not (one[3] and one[0] == number and api != SASL_TOKEN)]
            unanswered[slot] += len(of) - len(left)
            model[slot] = [*left, (number, api, step, False)]
            continue
        wanted, until = chance.randrange(41), step - chance.choice([0, 0, 5, 50])
        match = [k for k, one in enumerate(of) if one[0] == wanted and one[1] != SASL_TOKEN and one[2] <= until]
        found = lists.find(wanted, until, slot=slot)
        assert (found >= 0) == bool(match)
        if match:
            assert int(lists.table["order"][found]) == of[match[0]][2]
            lists.connections["missed"][slot] |= chance.random() < 0.1
            missed = bool(lists.connections["missed"][slot])
            engine(answered)(lists.connections[slot], *lists.tables, found)
            if of[match[0]][3]:
                disordered[slot] += 1
                del of[match[0]]
            else:
                before = of[: match[0]]
                later = [{one[0] for one in of[k + 1 :] if one[1] != SASL_TOKEN} for k in range(len(before))]
                later = [
                    ids - {wanted} if wanted not in {one[0] for one in of[match[0] + 1 :]} else ids for ids in later
                ]
                passed = [
                    (*one[:3], True)
                    for one, ids in zip(before, later, strict=True)
                    if one[1] != SASL_TOKEN and one[0] not in ids
                ]
                most = 0 if missed else MOST_OVERTAKEN
                passed = passed[len(passed) - most :] if len(passed) > most else passed
                unanswered[slot] += len(before) - len(passed)
                model[slot] = passed + of[match[0] + 1 :]
        if step % 50 == 0:
            lists.chains()
            assert [lists.numbers(k) for k in range(3)] == [[one[0] for one in of] for of in model]
            assert lists.connections["unanswered"].tolist() == unanswered
            assert lists.connections["disordered"].tolist() == disordered
    assert min(disordered) > 10


def test_what_was_overtaken_waits_on_but_not_where_responses_are_missing(engine: Engine) -> None:
    lists = Lists(engine)
    for number in range(1, 7):
        lists.add(number)
    assert lists.answer(3).numbers() == [1, 2, 4, 5, 6]
    assert lists.answer(2).answer(5).numbers() == [1, 4, 6]
    assert lists.connections["disordered"][0] == 1
    lists.connections["missed"] = 1
    assert lists.answer(6).numbers() == []
    assert (lists.connections["unanswered"][0], lists.connections["missed"][0]) == (2, 0)


def test_few_of_those_that_were_overtaken_wait_on(engine: Engine) -> None:
    lists = Lists(engine, rows=300, places=512)
    for number in range(200):
        lists.add(number)
    assert lists.answer(199).numbers() == list(range(199 - MOST_OVERTAKEN, 199))
    assert lists.connections["unanswered"][0] == 199 - MOST_OVERTAKEN
    # An id that is used again has no answer to come.
    lists.add(198)
    assert lists.numbers()[-2:] == [197, 198]
    assert lists.connections["overtaken"][0] == MOST_OVERTAKEN - 1


def test_the_first_request_with_the_correlation_id_is_found_if_it_is_old_enough(engine: Engine) -> None:
    lists = Lists(engine).add(5, time=10).add(6, time=20).add(5, time=30)
    assert lists.find(5, until=30) == 0
    assert lists.find(6, until=20) == 1
    assert lists.find(6, until=19) == -1
    assert lists.find(9, until=99) == -1
    lists.forget(1)
    assert lists.find(5, until=29) == -1
    assert lists.find(5, until=30) == 2


def test_a_token_waits_without_a_correlation_id(engine: Engine) -> None:
    lists = Lists(engine).add(0, api=SASL_TOKEN).add(0)
    assert lists.find(0) == 1


def test_find_coordinator_v0_may_be_answered_with_0_where_it_is_first(engine: Engine) -> None:
    old = ApiKey.FIND_COORDINATOR
    lists = Lists(engine).add(5, api=old).add(6)
    assert lists.find(0, which=find_request) == 0
    assert lists.find(6, which=find_request) == 1
    assert lists.find(1, which=find_request) == -1
    # A request that has 0 itself is the one that is meant.
    assert Lists(engine).add(5, api=old).add(0).find(0, which=find_request) == 1
    assert Lists(engine).add(5, api=old, version=1).find(0, which=find_request) == -1
    assert Lists(engine).add(6).add(5, api=old).find(0, which=find_request) == -1
    assert Lists(engine).find(0, which=find_request) == -1
    # Nor is it one that was sent later.
    young = Lists(engine).add(5, api=old, time=50)
    assert [young.find(0, until, which=find_request) for until in (49, 50)] == [-1, 0]


# Where no frame is known to begin


def plausible(
    engine: Engine,
    data: bytes,
    *waits: tuple[int, int],
    first: int = -1,
    touching: bool = False,
    ends_here: bool = False,
    until: int = 0,
) -> int:
    """What ``plausible_response`` says of ``data`` where these requests wait: correlation id and API key."""
    lists = Lists(engine)
    for number, api in waits:
        lists.add(number, api=api)
    lists.connections["first_id"] = first
    conn = lists.connections[0]
    made = window([], [(0, data)])
    return int(
        engine(plausible_response)(
            made, conn, *lists.tables, api_table(), scratch(), 0, len(data), touching, ends_here, until
        )
    )


def frame(number: int, size: int = 12) -> bytes:
    return struct.pack(">ii", size, number) + bytes(size - 4)


def test_a_response_that_is_waited_for_is_believed_if_what_follows_fits(engine: Engine) -> None:
    waits = [(7, ApiKey.METADATA), (8, ApiKey.METADATA)]
    assert plausible(engine, frame(7), *waits) == YES
    assert plausible(engine, frame(7) + frame(8), *waits) == YES
    assert plausible(engine, frame(7) + frame(7 + NEAR), *waits) == YES
    assert plausible(engine, frame(7) + frame(8 + NEAR), *waits) == NO
    assert plausible(engine, frame(7) + frame(7), *waits) == NO
    assert plausible(engine, frame(7) + struct.pack(">ii", 3, 8), *waits) == NO
    assert plausible(engine, frame(7) + struct.pack(">ii", LARGEST_FRAME + 1, 8), *waits) == NO
    # It is waited for as long as it can be seen whole; then it has to begin a segment.
    long = sized(response(7, struct.pack(">iih", 1, 0, 90) + b"h" * 90 + struct.pack(">ii", 9092, 0)))
    for touching in (False, True):
        assert plausible(engine, long, *waits, touching=touching) == YES
        for end in range(8, len(long)):
            assert plausible(engine, long[:end], *waits, touching=touching) == NEED_MORE
            said = plausible(engine, long[:end], *waits, touching=touching, ends_here=True)
            assert said == (YES if touching else NO)


def test_a_response_that_is_waited_for_has_the_body_of_its_version(engine: Engine) -> None:
    """A size, and an id that is waited for, are found by chance in record values and behind holes."""
    for touching in (False, True):
        assert plausible(engine, frame(7), (7, ApiKey.METADATA), touching=touching) == YES
        # Bytes are left over; a count that there cannot be.
        assert plausible(engine, frame(7, 13), (7, ApiKey.METADATA), touching=touching) == NO
        assert plausible(engine, sized(response(7, b"\x7f" * 8)), (7, ApiKey.METADATA), touching=touching) == NO


def test_a_response_needs_a_size_that_its_api_can_have(engine: Engine) -> None:
    least = int(api_table().apis["least_response"][ApiKey.METADATA])
    assert least > 5
    assert plausible(engine, frame(7, least), (7, ApiKey.METADATA)) == YES
    assert plausible(engine, frame(7, least - 1), (7, ApiKey.METADATA)) == NO
    for size in (-1, 3, LARGEST_FRAME + 1):
        assert plausible(engine, struct.pack(">ii", size, 7), (7, ApiKey.METADATA)) == NO
    assert plausible(engine, frame(7)[:3], (7, ApiKey.METADATA)) == NEED_MORE
    assert plausible(engine, frame(7)[:7], (7, ApiKey.METADATA)) == NEED_MORE


def test_a_response_that_is_not_waited_for_is_believed_at_the_beginning_of_a_segment_only(engine: Engine) -> None:
    assert plausible(engine, frame(7)) == NO
    assert plausible(engine, frame(7), touching=True) == YES
    assert plausible(engine, frame(-7), touching=True) == NO
    # Where a request was seen, only those shortly before it can be answered now.
    for first, said in ((7, NO), (8, YES), (7 + NEAR, YES), (8 + NEAR, NO), (6, NO)):
        assert plausible(engine, frame(7), first=first, touching=True) == said


def test_a_request_that_is_younger_than_the_response_is_not_answered_by_it(engine: Engine) -> None:
    lists = Lists(engine).add(7, time=50)
    for until, said in ((49, NO), (50, YES)):
        data = frame(7)
        made = window([], [(0, data)])
        conn = lists.connections[0]
        found = engine(plausible_response)(
            made, conn, *lists.tables, api_table(), scratch(), 0, len(data), False, False, until
        )
        assert found == said
