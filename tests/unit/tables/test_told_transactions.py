"""The table ``transactions``: random histories with a known truth, whole, with holes and in several files."""

from __future__ import annotations

from io import BytesIO
from random import Random
from typing import Any
from uuid import UUID

import pytest
from made_captures import read
from packets import Connection, pcap
from told_transactions import Told, check_part, check_whole, rows_of

import kwire
from kwire import messages
from kwire.capture import frames
from kwire.records import Record, encode
from kwire.tables.reading import read as tables_of
from kwire.tables.transactions import Steps
from kwire.testing import packets


@pytest.mark.parametrize("seed", range(2))
def test_each_transaction_is_a_row(seed: int) -> None:
    told = Told(seed)
    check_whole(told, rows_of([told.packets()]))


@pytest.mark.parametrize("seed", range(2))
def test_with_holes_rows_are_part_of_the_truth(seed: int) -> None:
    told = Told(100 + seed)
    check_part(told, rows_of([told.lossy(0.1)]))


@pytest.mark.parametrize("seed", range(2))
def test_files_give_the_rows_of_the_whole(seed: int) -> None:
    told = Told(200 + seed)
    whole = told.packets()
    cuts = sorted(Random(seed).sample(range(1, len(whole)), 3))
    parts = [whole[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    rows, in_parts = rows_of([whole]), rows_of(parts)
    free = ("capture", "frame", "end_frame", "events", "connection", "end_connection", "cause")
    assert [{k: v for k, v in row.items() if k not in free} for row in in_parts] == [
        {k: v for k, v in row.items() if k not in free} for row in rows
    ]


@pytest.mark.parametrize("loss", [0, 0.1])
@pytest.mark.parametrize("windows", [1, 4, 100])
def test_what_waits_for_other_windows_gives_the_same_rows(
    windows: int, loss: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(300)
    data = packets.write_pcapng(told.lossy(loss) if loss else told.packets())
    rows = read(data, "transactions")
    waited: list[int] = []
    plain = Steps.of

    def of(self: Steps, *args: Any) -> Any:
        waited.append(len(self._waiting))
        return plain(self, *args)

    monkeypatch.setattr(Steps, "of", of)
    monkeypatch.setattr(frames, "SMALL_WINDOW", 0)
    monkeypatch.setattr(frames, "GATHERED_WINDOWS", windows)
    assert read(data, "transactions", window=5000) == rows
    assert rows
    assert (max(waited) > 1) == (windows > 1)


@pytest.mark.parametrize("table", ["group_events", "share_deliveries", "journeys", "transactions"])
def test_a_name_that_no_topic_can_have_is_not_repeated(table: str) -> None:
    """A name of a megabyte that Metadata gives an id, and many partitions that are named by it."""
    id_, many = UUID(int=7), list(range(300))
    one = Connection().open()

    def say(asked: Any, answered: Any, version: int) -> None:
        number = len(one.packets)
        one.send(kwire.encode_request(asked, api_version=version, correlation_id=number, client_id="c"))
        one.answer(kwire.encode_response(answered, api_version=version, correlation_id=number))

    topic = {"name": "t" * 100_000, "topic_id": id_}
    say(messages.MetadataRequest(), messages.MetadataResponse.from_dict({"topics": [topic]}), 12)
    has = {"assignment": {"topic_partitions": [{"topic_id": id_, "partitions": many}]}, "member_epoch": 1}
    beat = messages.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m")
    say(beat, messages.ConsumerGroupHeartbeatResponse.from_dict({"member_id": "m", **has}), 1)
    records = encode([Record(None, b"x", timestamp=1)], producer_id=7, producer_epoch=0, is_transactional=True)
    parts = [{"index": number, "records": records} for number in many]
    sent = {"transactional_id": "tx", "acks": -1, "topic_data": [{"topic_id": id_, "partition_data": parts}]}
    parts = [{"index": number, "base_offset": 0} for number in many]
    written = {"responses": [{"topic_id": id_, "partition_responses": parts}]}
    say(messages.ProduceRequest.from_dict(sent), messages.ProduceResponse.from_dict(written), 13)
    parts = [{"partition_index": number, "acquired_records": [{"delivery_count": 1}]} for number in many]
    got = messages.ShareFetchResponse.from_dict({"responses": [{"topic_id": id_, "partitions": parts}]})
    say(messages.ShareFetchRequest(group_id="s", member_id="m"), got, 1)
    data = pcap(one.packets)
    batches = [batch for _, batch in tables_of(BytesIO(data), {table: None})]
    assert sum(batch.num_rows for batch in batches)
    assert sum(batch.nbytes for batch in batches) < 2 * len(data)
