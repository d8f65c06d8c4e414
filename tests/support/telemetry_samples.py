"""Pushes of client metrics that tests make, and the captures of those of real clients."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Metric,
    MetricsData,
    NumberDataPoint,
)
from packets import Connection, pcap

import kwire
from kwire import messages
from kwire.events import telemetry
from kwire.wire import ZERO_UUID, parse_uuid

Row = dict[str, Any]

GOLDEN = Path(__file__).parents[1] / "golden" / "kafka-4-telemetry"
INSTANCE = parse_uuid("dp06ONA9T_2NQL1USxsj1g")
OTHER = parse_uuid("L--9YdnRSlmic3GI_cBhVg")
SECOND = 1_000_000_000
START, NOW = 1_700_000_000 * SECOND, 1_700_000_060 * SECOND


def rows_of(data: bytes, *, told: bool = False, **options: Any) -> list[Row]:
    """The rows of a capture; those of what clients asked and were told only when they are asked for."""
    rows = [row for batch in telemetry.read(io.BytesIO(data), **options) for row in batch.to_pylist()]
    return rows if told else [row for row in rows if row["status"] not in ("asked", "subscribed")]


def golden(capture: str, **options: Any) -> list[Row]:
    return rows_of((GOLDEN / f"{capture}.pcap").read_bytes(), **options)


def otlp(*metrics: Metric, **resource: str) -> bytes:
    data = MetricsData()
    one = data.resource_metrics.add()
    for key, value in resource.items():
        one.resource.attributes.add(key=key).value.string_value = value
    one.scope_metrics.add().metrics.extend(metrics)
    made: bytes = data.SerializeToString()
    return made


def gauge(name: str = "a.b", *values: float) -> Metric:
    made = Metric(name=name)
    made.gauge.data_points.extend(NumberDataPoint(as_double=value, time_unix_nano=NOW) for value in values or (1.5,))
    return made


def push(
    number: int, metrics: bytes, codec: int = 0, *, instance: Any = INSTANCE, subscription: int = 7, last: bool = False
) -> bytes:
    body = messages.PushTelemetryRequest(
        client_instance_id=instance,
        subscription_id=subscription,
        terminating=last,
        compression_type=codec,
        metrics=metrics,
    )
    return kwire.encode_request(body, api_version=0, correlation_id=number, client_id="client")


def pushed(number: int, code: int = 0) -> bytes:
    body = messages.PushTelemetryResponse(error_code=code)
    return kwire.encode_response(body, api_version=0, correlation_id=number)


def asked(number: int, instance: Any = ZERO_UUID) -> bytes:
    body = messages.GetTelemetrySubscriptionsRequest(client_instance_id=instance)
    return kwire.encode_request(body, api_version=0, correlation_id=number, client_id="client")


def told(
    number: int,
    wanted: list[str],
    instance: Any = INSTANCE,
    code: int = 0,
    interval: int = 60_000,
    subscription: int = 7,
    **more: Any,
) -> bytes:
    fields = {
        "error_code": code,
        "client_instance_id": instance,
        "subscription_id": subscription,
        "push_interval_ms": interval,
        "requested_metrics": wanted,
        "accepted_compression_types": [4, 3],
        "telemetry_max_bytes": 1 << 20,
        "delta_temporality": True,
    }
    body = messages.GetTelemetrySubscriptionsResponse(**(fields | more))
    return kwire.encode_response(body, api_version=0, correlation_id=number)


def read(connection: Connection, *more: Connection, **options: Any) -> list[Row]:
    packets = sorted((one for each in (connection, *more) for one in each.packets), key=lambda one: one.time)
    return rows_of(pcap(packets, nano=True), **options)
