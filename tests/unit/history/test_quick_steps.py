"""What changes nothing is taken quickly: the rows and the state are those of the long way."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from group_histories import lossy, simulated
from made_captures import read
from packets import Connection, pcap

import kwire
from kwire import capture, messages
from kwire.capture import frames
from kwire.capture.frames import Gathered
from kwire.history import fold
from kwire.history.fold import Fold
from kwire.history.groups import Group

GOLDEN = Path(__file__).parents[2] / "golden"


def slowly(data: bytes, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    with monkeypatch.context() as patch:
        patch.setattr(Group, "beats", Fold.beats)
        return read(data, "group_events")


def counted(monkeypatch: pytest.MonkeyPatch) -> dict[bool, int]:
    """How many exchanges were taken quickly, and how many steps were not."""
    found = {True: 0, False: 0}
    plain, slow = Group.beats, Group.take

    def beats(self: Group, some: Any, *args: Any) -> bool:
        made = plain(self, some, *args)
        found[True] += made
        return made

    def take(self: Group, step: Any) -> Any:
        found[False] += 1
        return slow(self, step)

    monkeypatch.setattr(Group, "beats", beats)
    monkeypatch.setattr(Group, "take", take)
    return found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("at_once", [4, 64])
def test_rows_are_those_of_the_long_way(protocol: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _, _ = simulated(1, protocol)
    monkeypatch.setattr(fold, "_FEW", at_once)
    for data in (whole, lossy(whole, 1)):
        long_way = slowly(data, monkeypatch)
        found = counted(monkeypatch)
        assert read(data, "group_events") == long_way
        assert found[True] or at_once > 4


@pytest.mark.parametrize("capture", ["kafka-4.3-kraft-java/clients.pcap", "kafka-4.3-kraft-librdkafka/current.pcap"])
def test_so_are_those_of_real_clients(capture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (GOLDEN / capture).read_bytes()
    monkeypatch.setattr(fold, "_FEW", 8)
    long_way = slowly(data, monkeypatch)
    found = counted(monkeypatch)
    assert read(data, "group_events") == long_way
    assert found[True]


def test_a_late_heartbeat_is_not_taken_quickly() -> None:
    connection = Connection().open()
    asked = messages.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0, topic_partitions=[])
    told = messages.ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=1, heartbeat_interval_ms=1000)
    for number, wait in enumerate((0, 1, 1, 1, 5, 1)):
        connection.time += wait * 1_000_000_000
        asked.member_epoch = int(number > 0)
        connection.send(kwire.encode_request(asked, api_version=0, correlation_id=number, client_id="c"))
        connection.answer(kwire.encode_response(told, api_version=0, correlation_id=number))
    rows = read(pcap(connection.packets), "group_events")
    (late,) = [row for row in rows if row["event"] == "heartbeat_late"]
    assert late["duration_ms"] == pytest.approx(5000, abs=5)


def committing(*, cut: bool) -> list[dict[str, Any]]:
    """The rows of a group with a member that commits, the last time with a body that ends too early, or is whole."""
    connection = Connection().open()
    for number in range(4):
        part = {"partition_index": 0, "committed_offset": number}
        asked = messages.OffsetCommitRequest.from_dict(
            {"group_id": "g", "member_id": "m", "generation_id_or_member_epoch": 3}
            | {"topics": [{"name": "t", "partitions": [part]}]}
        )
        data = kwire.encode_request(asked, api_version=7, correlation_id=number, client_id="c")
        connection.send(data[:-9] if cut and number == 3 else data)
        part = {"partition_index": 0, "error_code": 25 if number == 2 else 0}
        told = messages.OffsetCommitResponse.from_dict({"topics": [{"name": "t", "partitions": [part]}]})
        connection.answer(kwire.encode_response(told, api_version=7, correlation_id=number))
    return read(pcap(connection.packets), "group_events")


def test_a_commit_is_known_by_its_head_only_where_all_of_it_can_be_read() -> None:
    whole, cut = committing(cut=False), committing(cut=True)
    assert [(row["event"], row["error_name"], row["status"]) for row in whole] == [
        ("commit_refused", "UNKNOWN_MEMBER_ID", "ok")
    ]
    assert [row["status"] for row in cut] == ["ok", "malformed", "unpaired"]


@pytest.mark.parametrize("table", ["group_events", "streams_tasks"])
def test_frames_that_wait_for_those_of_other_windows_give_the_same_rows(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _, _ = simulated(2, "streams", seconds=60)
    data = lossy(whole, 2)
    rows = read(data, table)
    given: list[int] = []
    monkeypatch.setattr(frames, "SMALL_WINDOW", 0)
    monkeypatch.setattr(frames, "GATHERED_WINDOWS", 4)
    plain = Gathered.rest

    def rest(self: Gathered) -> Iterator[Any]:
        for one in plain(self):
            given.append(len(one))
            yield one

    monkeypatch.setattr(Gathered, "rest", rest)
    assert read(data, table, window=3000) == rows
    assert rows
    assert len(given) > 1


def test_tables_that_share_the_frames_that_wait_have_the_rows_of_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = ["group_events", "share_deliveries", "streams_tasks", "transactions"]
    seen = dict.fromkeys(tables, 0)
    for name in ("clients", "share", "streams"):
        whole = (GOLDEN / "kafka-4.3-kraft-java" / f"{name}.pcap").read_bytes()
        for data in (whole, lossy(whole, 3)):
            monkeypatch.undo()
            alone = {one: read(data, one) for one in tables}
            monkeypatch.setattr(frames, "SMALL_WINDOW", 0)
            monkeypatch.setattr(frames, "GATHERED_WINDOWS", 4)
            found: dict[str, list[dict[str, Any]]] = {one: [] for one in tables}
            for one, batch in capture.read(io.BytesIO(data), tables=tables, window=3000):
                found[one] += batch.to_pylist()
                seen[one] += len(batch)
            assert found == alone
    assert all(seen.values())
