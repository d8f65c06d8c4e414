"""Saved states of a capture: one that cannot be one is an error, and nothing of it is taken over."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from made_captures import exchange
from packets import Connection, metadata, pcap, sized

from kwire.capture.parts import Part
from kwire.capture.tracker import Tracker
from kwire.errors import CaptureError
from kwire.kernels.layouts import Status

FRAGMENT = ["AAAA", 5, 1, 16, "RQ" + "A" * 26, [0, 8], ["AAAAAAAAAAA=", "AAA="]]
"""Of a packet that waits for its last bytes, as a state has it."""


def waiting(**fields: Any) -> Any:
    names = ("key", "since", "latest", "total", "head", "starts", "parts")

    def change(rows: Any, stated: Any) -> None:
        one = [fields.get(name, value) for name, value in zip(names, FRAGMENT, strict=True)]
        stated["fragments"].update(waiting=[one])

    return change


def half() -> tuple[Tracker, pa.Table, bytes]:
    """A capture of two connections, half of which was fed: its tracker, its state and the other half."""
    packets = exchange(count=1).send(metadata(2)).send_raw(sized(metadata(3))[:9]).packets
    packets += exchange(Connection(client=("10.0.0.3", 50000)), 1).packets
    data = pcap(packets)
    tracker = Tracker()
    tracker.feed(data[:-30])
    return tracker, tracker.save(), data[-30:]


def changed(saved: pa.Table, change: Any) -> pa.Table:
    rows, stated = saved.to_pylist(), json.loads(saved.schema.metadata[b"kwire"])
    change(rows, stated)
    return pa.Table.from_pylist(rows, saved.schema.with_metadata({"kwire": json.dumps(stated)}))


WRONG_STATES: dict[str, Any] = {
    "role": lambda rows, stated: rows[0]["connection"].update(role=99),
    "number": lambda rows, stated: rows[0]["connection"].update(number=7),
    "position": lambda rows, stated: rows[0]["a_to_b"].update(next=-2),
    "order": lambda rows, stated: rows[0]["connection"].update(begun_order=-2),
    "null": lambda rows, stated: rows[0]["b_to_a"].update(acked=None),
    "client_id": lambda rows, stated: rows[0].update(client_id=bytes(0x8000)),
    "side": lambda rows, stated: rows[0]["segments"][0].update(side=-5),
    "length": lambda rows, stated: rows[0]["segments"][0].update(len=-1),
    "bytes": lambda rows, stated: rows[0]["segments"][0].update(bytes=b""),
    "waiting api": lambda rows, stated: rows[0]["waiting"][0].update(api=1 << 40),
    "a connection left out": lambda rows, stated: rows.pop(0),
    "a connection twice": lambda rows, stated: rows.append(rows[0]),
    "now": lambda rows, stated: stated.update(now="soon"),
    "truth": lambda rows, stated: stated.update(ended=0),
    "huge": lambda rows, stated: stated.update(frames=1 << 70),
    "counts": lambda rows, stated: stated.update(counts=[1]),
    "ports": lambda rows, stated: stated.update(ports=["9092"]),
    "rest": lambda rows, stated: stated.update(rest="?"),
    "no rest": lambda rows, stated: stated.pop("rest"),
    "container": lambda rows, stated: stated.update(container=[]),
    "kind": lambda rows, stated: stated["container"].update(kind=5),
    "packet header": lambda rows, stated: stated["container"].update(packet_header=0),
    "interfaces": lambda rows, stated: stated["container"].update(interfaces=[[1, 2]]),
    "resolution": lambda rows, stated: stated["container"].update(interfaces=[[1, 0, 20, 0]]),
    "unsupported": lambda rows, stated: stated["container"].update(unsupported=[147]),
    "vxlan_ports": lambda rows, stated: stated.update(vxlan_ports=None),
    "fragments": lambda rows, stated: stated.update(fragments=[]),
    "fragments seen": lambda rows, stated: stated["fragments"].update(seen=-1),
    "no fragments": lambda rows, stated: stated["fragments"].pop("waiting"),
    "a fragment of no form": lambda rows, stated: stated["fragments"].update(waiting=[[1]]),
    "fragments without a key": waiting(key=""),
    "a time of fragments": waiting(since="now"),
    "fragments that overlap": waiting(starts=[0, 7]),
    "fragments in the wrong order": waiting(starts=[8, 0]),
    "a fragment before the first": waiting(starts=[-1, 8]),
    "a fragment too many": waiting(starts=[0, 8, 16]),
    "no fragment": waiting(starts=[], parts=[]),
    "empty fragments": waiting(parts=["", ""]),
    "fragments of no bytes": waiting(parts=[5, "?"]),
    "fragments behind the end": waiting(total=9),
    "fragments that are whole": waiting(total=10),
    "fragments without a header": waiting(head="AAAA"),
    "what was joined": lambda rows, stated: stated["fragments"].update(joined=[["AAAA", 5, [[1, 2]]]]),
    "when it was joined": lambda rows, stated: stated["fragments"].update(joined=[["AAAA", None, []]]),
}


def test_fragments_that_wait_are_taken_over() -> None:
    _, saved, _ = half()
    tracker = Tracker()
    tracker.restore(changed(saved, waiting()))
    assert tracker._fragments.state()["waiting"] == [FRAGMENT]


@pytest.mark.parametrize("wrong", WRONG_STATES)
def test_what_cannot_be_the_state_of_a_capture_is_an_error_and_nothing_is_taken_over(wrong: str) -> None:
    first, saved, rest = half()
    tracker = Tracker()
    with pytest.raises(CaptureError, match="not the state of a capture"):
        tracker.restore(changed(saved, WRONG_STATES[wrong]))
    tracker.restore(saved)
    found, expected = (list(map(repr, one.feed(rest, final=True))) for one in (tracker, first))
    assert found == expected != []


@pytest.mark.parametrize(
    "wrong",
    [
        {"now": "soon"},
        {"now": 1 << 80},
        {"now": None},
        {"brokers": None},
        {"brokers": [[1, [2], 3]]},
        {"brokers": [[1, 2]]},
        {"brokers": [[1 << 70, 2, 9092]]},
        {"brokers": [[1, 2, 70_000]]},
        {"fragments": []},
        {"fragments": {"seen": 0, "waiting": [["A", 0, 0, -1, "A", [0], ["A"]]], "joined": []}},
        {"fragments": {"seen": 0, "waiting": [], "joined": [["AA==", "x", []]]}},
    ],
    ids=repr,
)
def test_what_is_known_besides_connections_is_looked_at_too(wrong: dict[str, Any]) -> None:
    tracker, _, _ = half()
    common = json.loads(json.dumps(tracker.common()))
    assert common["brokers"]
    Part(common=common).tracker()
    for one in (common | wrong, [1]):
        with pytest.raises(CaptureError, match="not the state of a capture"):
            Part(common=one).tracker()  # type: ignore[arg-type]


def test_more_requests_than_may_wait_are_no_state(monkeypatch: pytest.MonkeyPatch) -> None:
    _, saved, _ = half()
    many = changed(saved, lambda rows, _: rows[0].update(waiting=rows[0]["waiting"] * 100))
    count = sum(map(len, many.column("waiting").to_pylist()))
    monkeypatch.setattr("kwire.capture.saved.MOST_WAITING", count)
    tracker = Tracker()
    tracker.restore(many)
    assert tracker.save().column("waiting").equals(many.column("waiting"))
    monkeypatch.setattr("kwire.capture.saved.MOST_WAITING", count - 1)
    with pytest.raises(CaptureError, match="not the state of a capture: too many requests wait"):
        Tracker().restore(many)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, '{"version": 2}', '{"version": 1}', "\udcff"])
def test_metadata_that_a_state_cannot_have_is_an_error(text: str) -> None:
    saved = half()[1].replace_schema_metadata({b"kwire": text.encode(errors="surrogateescape")})
    with pytest.raises(CaptureError):
        Tracker().restore(saved)
    with pytest.raises(CaptureError):
        Tracker().restore(saved.replace_schema_metadata(None))


def test_the_order_of_the_rows_of_a_state_does_not_matter() -> None:
    first, again = exchange(count=1), exchange(Connection(client_isn=77_000_000, broker_isn=5, step=1).open(), 1)
    data = pcap([*first.packets, *again.packets])
    ends = len(pcap([*first.packets, *again.packets[:-1]]))
    tracker = Tracker()
    tracker.feed(data[:ends])
    saved = tracker.save()
    expected = [(one.connection, one.correlation_id, one.status) for one in tracker.feed(data[ends:], final=True)]
    other = Tracker()
    other.restore(saved.take([1, 0]))
    found = [(one.connection, one.correlation_id, one.status) for one in other.feed(data[ends:], final=True)]
    assert found == expected == [(1, 1, Status.OK)]


def test_equal_states_are_equal_tables() -> None:
    first, saved, _ = half()
    again = Tracker()
    again.restore(saved)
    assert again.save().equals(saved, check_metadata=True)
    assert first.save().equals(saved, check_metadata=True)
