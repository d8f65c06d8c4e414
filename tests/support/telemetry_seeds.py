"""Recorded telemetry sessions, each with one thing in it that goes against KIP-714.

A session is a list of ``Frame`` in the order of a golden capture. A seed changes some frames of one client and says
what is to be reported: client, rule and metric. ``as_pcap`` makes a capture of a session again, with its times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from packets import Connection, pcap
from telemetry_samples import GOLDEN, OTHER

import kwire
from kwire import messages
from kwire.capture.reading import Reading
from kwire.events.telemetry import unpack
from kwire.records.compression import compress
from kwire.wire import ZERO_UUID

Expected = list[tuple[str, str, str | None]]
MS = 1_000_000


@dataclass(frozen=True)
class Frame:
    """A frame of one of the two APIs; ``time`` in ns."""

    time: int
    connection: int
    client: str
    number: int
    body: Any
    is_response: bool

    @property
    def data(self) -> bytes:
        if self.is_response:
            return kwire.encode_response(self.body, api_version=0, correlation_id=self.number)
        return kwire.encode_request(self.body, api_version=0, correlation_id=self.number, client_id=self.client)


def recorded(name: str) -> list[Frame]:
    """The frames of the two APIs in a golden capture."""
    found = []
    with (GOLDEN / f"{name}.pcap").open("rb") as file:
        for frames in Reading(file):
            for one in frames:
                if one.api_key in (71, 72):
                    client, number = one.client_id or "", one.correlation_id or 0
                    found.append(Frame(one.time, one.connection, client, number, one.body, one.is_response))
    clients = {one.connection: one.client for one in found if not one.is_response}
    return [replace(one, client=clients[one.connection]) for one in found]


def as_pcap(frames: list[Frame]) -> bytes:
    connections: dict[int, Connection] = {}
    packets = []
    for frame in sorted(frames, key=lambda one: one.time):
        one = connections.get(frame.connection)
        if one is None:
            one = Connection(client=("10.0.0.1", 40_000 + frame.connection), time=frame.time - 5 * MS, step=1).open()
            connections[frame.connection] = one
        one.time = frame.time
        (one.answer if frame.is_response else one.send)(frame.data)
    for one in connections.values():
        packets += one.packets
    return pcap(sorted(packets, key=lambda packet: packet.time), nano=True)


def _changed(frame: Frame, **fields: Any) -> Frame:
    body = type(frame.body).from_dict(frame.body.to_dict() | fields)
    return replace(frame, body=body)


def _of(frames: list[Frame], client: str, kind: type, last: bool | None = None) -> list[int]:
    return [
        at
        for at, one in enumerate(frames)
        if one.client == client and isinstance(one.body, kind) and (last is None or one.body.terminating is last)
    ]


def _pushes(frames: list[Frame], client: str, last: bool | None = None) -> list[int]:
    return _of(frames, client, messages.PushTelemetryRequest, last)


def _told(frames: list[Frame], client: str) -> int:
    return _of(frames, client, messages.GetTelemetrySubscriptionsResponse)[0]


def _rewritten(frame: Frame, change: Callable[[Any], None]) -> Frame:
    """A push with other metrics."""
    codec = frame.body.compression_type
    data = MetricsData.FromString(unpack(codec, frame.body.metrics))
    change(data.resource_metrics[0].scope_metrics[0].metrics)
    metrics = data.SerializeToString()
    return _changed(frame, metrics=compress(codec, metrics) if codec else metrics)


def nothing(frames: list[Frame]) -> Expected:
    return []


def second_handshake(frames: list[Frame]) -> Expected:
    client = "java-producer"
    at = _pushes(frames, client)[-1]
    body = messages.GetTelemetrySubscriptionsRequest(client_instance_id=ZERO_UUID)
    frames.append(replace(frames[at], body=body, time=frames[at].time + 1500 * MS, number=9001))
    return [(client, "second_handshake", None)]


def other_instance(frames: list[Frame]) -> Expected:
    client = "librdkafka-producer"
    at = _pushes(frames, client)[0]
    frames[at] = _changed(frames[at], client_instance_id=OTHER)
    return [(client, "other_instance", None)]


def subscription_id(frames: list[Frame]) -> Expected:
    client = "java-consumer"
    for at in (_told(frames, client), *_pushes(frames, client)):
        frames[at] = _changed(frames[at], subscription_id=77)
    return [(client, "subscription_id", None)]


def before_interval(frames: list[Frame]) -> Expected:
    """A push that comes 300 ms too early (and its answer with it)."""
    client = "librdkafka-producer"
    first, second = _pushes(frames, client, False)[:2]
    frames[second] = replace(frames[second], time=frames[first].time + 700 * MS)
    return [(client, "before_interval", None)]


def first_before_half_an_interval(frames: list[Frame]) -> Expected:
    client = "java-consumer"
    at = _pushes(frames, client, False)[0]
    frames[at] = replace(frames[at], time=frames[_told(frames, client)].time + 400 * MS)
    return [(client, "before_interval", None)]


def after_terminating(frames: list[Frame]) -> Expected:
    client = "java-consumer"
    (at,) = _pushes(frames, client, True)
    frames.append(replace(frames[at], time=frames[at].time + 3000 * MS, number=9002))
    return [(client, "after_terminating", None)]


def compression_not_accepted(frames: list[Frame]) -> Expected:
    client = "java-producer"
    at = _pushes(frames, client)[1]
    codec = frames[at].body.compression_type
    other = 1 if codec != 1 else 4
    metrics = compress(other, unpack(codec, frames[at].body.metrics))
    frames[at] = _changed(frames[at], compression_type=other, metrics=metrics)
    return [(client, "compression_not_accepted", None)]


def too_many_bytes(frames: list[Frame]) -> Expected:
    client = "librdkafka-consumer"
    told = _told(frames, client)
    sizes = [len(frames[at].body.metrics) for at in _pushes(frames, client)]
    frames[told] = _changed(frames[told], telemetry_max_bytes=max(sizes) - 1)
    return [(client, "too_many_bytes", None)] * sizes.count(max(sizes))


def not_requested(frames: list[Frame]) -> Expected:
    client = "librdkafka-consumer"
    at = _pushes(frames, client)[0]

    def change(metrics: Any) -> None:
        points = metrics.add(name="nobody.asked").gauge.data_points
        points.add(as_int=1)
        points.add(as_int=2)

    frames[at] = _rewritten(frames[at], change)
    return [(client, "not_requested", "nobody.asked")]


def other_temporality(frames: list[Frame]) -> Expected:
    client = "librdkafka-producer"
    at = _pushes(frames, client)[-1]
    changed = []

    def change(metrics: Any) -> None:
        one = next(one for one in metrics if one.WhichOneof("data") == "sum")
        one.sum.aggregation_temporality = 2
        changed.append(one.name)

    frames[at] = _rewritten(frames[at], change)
    return [(client, "other_temporality", changed[0])]


SEEDS: tuple[Callable[[list[Frame]], Expected], ...] = (
    nothing,
    second_handshake,
    other_instance,
    subscription_id,
    before_interval,
    first_before_half_an_interval,
    after_terminating,
    compression_not_accepted,
    too_many_bytes,
    not_requested,
    other_temporality,
)


def seeded(name: str, seed: Callable[[list[Frame]], Expected]) -> tuple[bytes, Expected]:
    """The capture of a recorded session with a seed in it, and what is to be reported."""
    frames = recorded(name)
    expected = seed(frames)
    return as_pcap(frames), expected
