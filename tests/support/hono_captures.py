"""Captures of producers of Hono telemetry: restarted ones, two at a time, and messages that are sent again."""

from __future__ import annotations

from packets import Connection, pcap
from record_sets import batch, record

import kwire
from kwire import messages

TOPIC = "hono.telemetry.t"
MS = 1_000_000
CREATED = b"1763700000000"


def telemetry(device: str, value: bytes = b"x", created: bytes | None = CREATED) -> bytes:
    """A record."""
    headers = [(b"content-type", b"a/b"), (b"device_id", device.encode())]
    if created is not None:
        headers.append((b"creation-time", created))
    return record(device.encode(), value, headers=tuple(headers))


class Producer:
    """A producer with a client id, on a connection of its own from a host; times in ms."""

    def __init__(self, client_id: str, host: str, producer_id: int, port: int = 40_000, at: int = 0) -> None:
        self.client_id, self.producer_id = client_id, producer_id
        time = 1_763_700_000_000 * MS + at * MS
        self.connection = Connection(client=(host, port), time=time, step=1).open()
        self._number = self._sequence = 0

    def sends(self, at: int, *records: bytes, error: int = 0) -> None:
        """A Produce request and its answer, 10 ms later."""
        self._number += 1
        numbers = (self.producer_id, 0, self._sequence) if self.producer_id >= 0 else (-1, -1, -1)
        self._sequence += len(records)
        data = batch(b"".join(records), len(records), producer=numbers)
        partition = {"index": 0, "records": data}
        topic = {"name": TOPIC, "partition_data": [partition]}
        request = messages.ProduceRequest.from_dict({"acks": -1, "timeout_ms": 1000, "topic_data": [topic]})
        told = {"index": 0, "error_code": error, "base_offset": -1 if error else 0}
        answer = messages.ProduceResponse.from_dict({"responses": [{"name": TOPIC, "partition_responses": [told]}]})
        start = 1_763_700_000_000 * MS + at * MS
        self.connection.time = start
        self.connection.send(
            kwire.encode_request(request, api_version=7, correlation_id=self._number, client_id=self.client_id)
        )
        self.connection.time = start + 10 * MS
        self.connection.answer(kwire.encode_response(answer, api_version=7, correlation_id=self._number))


def capture(*producers: Producer) -> bytes:
    packets = [packet for one in producers for packet in one.connection.packets]
    return pcap(sorted(packets, key=lambda packet: packet.time), nano=True)


def restarted(device: str = "d") -> bytes:
    """A producer with id 1 that is started again and has id 2; it sends for a device before and after."""
    before, after = Producer("adapter", "10.0.0.7", 1), Producer("adapter", "10.0.0.7", 2, port=40_001, at=500)
    before.sends(100, telemetry(device), telemetry(device + "e"))
    before.sends(200, telemetry(device, b"y"))
    after.sends(600, telemetry(device, b"z"))
    after.sends(700, telemetry(device, b"u"))
    return capture(before, after)


def two_of_a_client(device: str = "d") -> bytes:
    """Two producers of one client, side by side."""
    one, other = Producer("adapter", "10.0.0.7", 1), Producer("adapter", "10.0.0.7", 2, port=40_001)
    one.sends(100, telemetry(device))
    other.sends(200, telemetry(device, b"y"))
    one.sends(300, telemetry(device, b"z"))
    return capture(one, other)


def two_clients(device: str = "d") -> bytes:
    """Two producers of two hosts, of which the first sends no more."""
    one, other = Producer("adapter", "10.0.0.7", 1), Producer("adapter", "10.0.0.8", 2)
    one.sends(100, telemetry(device))
    other.sends(200, telemetry(device, b"y"))
    return capture(one, other)


INVALID_RECORD, NOT_LEADER, TOO_LARGE = 87, 6, 10


def rejected(device: str = "d") -> bytes:
    """Messages that are rejected for good and sent again (``d``), and near misses."""
    one = Producer("adapter", "10.0.0.7", 1)
    one.sends(100, telemetry(device), telemetry(device + "-not-again"), error=INVALID_RECORD)
    one.sends(200, telemetry(device + "-retriable"), error=NOT_LEADER)
    one.sends(300, telemetry(device + "-split"), error=TOO_LARGE)
    one.sends(400, telemetry(device + "-untimed", created=None), error=INVALID_RECORD)
    one.sends(500, telemetry(device, b"other value"), telemetry(device + "-taken"))
    one.sends(600, telemetry(device), telemetry(device + "-not-again", created=b"1763700000001"))
    one.sends(
        700,
        telemetry(device + "-retriable"),
        telemetry(device + "-split"),
        telemetry(device + "-untimed", created=None),
        telemetry(device + "-taken"),
    )
    return capture(one)
