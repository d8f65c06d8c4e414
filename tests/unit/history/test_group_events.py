"""The table ``group_events``: against what the broker of random histories knows, whole, with losses, in parts."""

from __future__ import annotations

import dataclasses
import io
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from group_histories import check, exchanges, lossy, simulated, told
from made_captures import exchange, read
from packets import pcap

import kwire
from kwire import messages, stored
from kwire.history.fold import Story
from kwire.history.groups import GROUPS
from kwire.history.steps import Steps, packed, step_of, unpacked
from kwire.kernels.engine import MACHINE, PYTHON, using
from kwire.tables import histories
from kwire.tables.reading import read_in_order
from kwire.testing import packets

GOLDEN = Path(__file__).parents[2] / "golden"
PROTOCOLS = ("classic", "consumer", "streams")

Row = dict[str, Any]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", range(3))
def test_a_group_is_told_as_the_broker_knows_it(protocol: str, seed: int) -> None:
    data, truth, bench = simulated(seed, protocol)
    told(read(data, "group_events"), truth, exchanges(data, bench))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", range(3, 6))
def test_of_a_capture_with_losses_nothing_is_invented(protocol: str, seed: int) -> None:
    data, truth, bench = simulated(seed, protocol)
    some = lossy(data, seed)
    check(read(some, "group_events"), truth, exchanges(some, bench), whole=False)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_rows_are_the_same_in_parts_at_any_window_and_on_both_engines(protocol: str) -> None:
    data, _, _ = simulated(7, protocol, seconds=60)
    whole = read(data, "group_events")
    assert len(whole) > 20
    assert read(data, "group_events", window=3000) == whole
    for engine in (PYTHON, MACHINE):
        with using(engine):
            assert read(data, "group_events") == whole
    listed = packets.read(data)
    places = [0, len(listed) // 3, len(listed) // 2, len(listed)]
    files = [io.BytesIO(packets.write_pcapng(listed[a:b])) for a, b in itertools.pairwise(places)]
    parts = [
        row for _, batch in read_in_order(files, {"group_events": None}, ["", "", ""]) for row in batch.to_pylist()
    ]

    def plain(rows: list[Row]) -> list[Row]:
        # Frames have numbers of their own in each file.
        return [
            {name: value for name, value in row.items() if not name.endswith(("frame", "connection"))} for row in rows
        ]

    assert plain(parts) == plain(whole)


def steps_of(data: bytes) -> list[Any]:
    """The steps of a capture."""
    columns = ["capture", "connection", "frame", "step"]
    return [unpacked(*row.values()) for row in read(data, "group_events", name="x", columns=columns)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_state_goes_on_where_it_was_left(protocol: str) -> None:
    data, _, _ = simulated(3, protocol, seconds=60)
    steps = steps_of(data)
    once = Story(GROUPS)
    whole = [row for step in steps for row in once.take(step)]
    story, rows = Story(GROUPS), []
    for number, step in enumerate(steps):
        if number % 7 == 0:
            state = json.loads(json.dumps(story.save()))
            story = Story(GROUPS)
            story.restore(state)
            assert json.loads(json.dumps(story.save())) == state
        rows += story.take(step)
    assert rows == whole
    assert step_of(json.loads(json.dumps(steps[0]))) == steps[0]
    assert unpacked(*steps[0][:3], packed(steps[0])) == steps[0]
    state = json.loads(json.dumps(story.save()))
    for damaged in ({}, {**state, "folds": 7}, {**state, "folds": [["g", "", {}, None]]}, {**state, "asked": [[[]]]}):
        with pytest.raises(stored.UNFIT):
            Story(GROUPS).restore(damaged)


def test_what_is_given_up_is_a_row_that_says_so() -> None:
    data, _, _ = simulated(1, "classic", seconds=30)
    steps = steps_of(data)
    other = [one._replace(owner="h" if one.owner else None) for one in steps]
    story = Story(dataclasses.replace(GROUPS, most=10))
    rows = [row for both in zip(steps, other, strict=True) for one in both for row in story.take(one)]
    gone = [row for row in rows if row["status"] == "given_up"]
    assert {row["group_id"] for row in gone} == {"g", "h"}
    assert gone[0]["error"] == "more than 10 things are kept of all histories at once"


def test_frames_that_cannot_be_read_and_answers_without_a_request_have_a_status() -> None:
    data, _, _ = simulated(1, "classic", seconds=30)
    listed = packets.read(data)
    found = read(packets.write_pcapng(listed[: len(listed) // 2 + 1]), "group_events")
    assert {row["status"] for row in found} <= {"ok", "unreadable", "unpaired"}
    late = Story(GROUPS)
    answers = [one for one in steps_of(data) if one.response and one.owner is None]
    assert {row["status"] for one in answers[:3] for row in late.take(one)} == {"unpaired"}


def test_a_group_whose_name_is_no_text_is_shown_as_far_as_it_is() -> None:
    connection = exchange()
    asked = messages.JoinGroupRequest(group_id="g\udcff", session_timeout_ms=9, protocol_type="consumer")
    connection.send(kwire.encode_request(asked, api_version=0, correlation_id=9, client_id="c"))
    told = messages.JoinGroupResponse(generation_id=1, member_id="m\udcff", protocol_name="range", leader="m\udcff")
    connection.answer(kwire.encode_response(told, api_version=0, correlation_id=9))
    rows = read(pcap(connection.packets), "group_events")
    assert {row["group_id"] for row in rows} == {"g\ufffd"}
    assert [row["event"] for row in rows] == ["rebalance_began", "epoch_bumped", "joined"]
    assert rows[-1]["member_id"] == "m\ufffd"


def test_steps_of_bodies_that_are_alike_are_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    reads = {
        kind: lambda body, names, of=reader: decoded.append(1) or of(body, names)
        for kind, reader in GROUPS.reads.items()
    }
    data, _, _ = simulated(1, "classic", seconds=60)
    monkeypatch.setattr(
        histories, "Steps", lambda name, _, limits, secrets: Steps(name, reads, limits, secrets=secrets)
    )
    rows = read(data, "group_events", columns=["step"])
    assert len(decoded) * 2 < len(rows)


@pytest.mark.parametrize(
    ("capture", "kinds"),
    [
        ("kafka-4.3-kraft-java/share.pcap", {"share"}),
        ("kafka-4.3-kraft-java/streams.pcap", {"streams"}),
        ("kafka-4.3-kraft-java/clients.pcap", {"classic", "consumer"}),
        ("kafka-4.3-kraft-librdkafka/current.pcap", {"classic", "consumer"}),
    ],
)
def test_groups_of_real_clients_are_told(capture: str, kinds: set[str]) -> None:
    rows = read((GOLDEN / capture).read_bytes(), "group_events")
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["kind"] for row in rows} - {None} == kinds
    joined = {row["member_id"] for row in rows if row["event"] == "joined"}
    assert joined
    assert {row["member_id"] for row in rows if row["event"] == "left"} <= joined
    assert all(row["cause"] == "join" for row in rows if row["event"] == "rebalance_began" and row["epoch"] is None)


def test_a_member_that_was_silent_through_a_loss_says_what_it_has() -> None:
    data, truth, bench = simulated(527, "consumer")
    some = lossy(data, 527)
    rows = read(some, "group_events")
    # Its partitions were others before: without a row of this, what members gain and lose would not add up.
    check(rows, truth, exchanges(some, bench), whole=False)
    assert any(row["event"] == "assigned" and row["gained"] is None and row["partitions"] == 3 for row in rows)
