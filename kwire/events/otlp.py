"""OTLP ``MetricsData`` with the fields that were in it before 1.0, for clients that still send them.

KIP-714 is about OTLP 0.10. That version had fields which later ones took out. protobuf skips them silently where they
are not declared. They are gauges, sums and histograms of integers, labels in place of attributes, and the former names
of scopes. Here they are declared with the others, in a copy of the description that ``opentelemetry-proto`` has, in a
pool of its own. ``plain``, ``labels`` and ``scopes`` say what they mean now:

- ``int_gauge``, ``int_sum`` and ``int_histogram`` are what took their place, with whole numbers;
- a label is an attribute with a text; an attribute of the same name counts.

Source: opentelemetry-proto, metrics.proto of 0.9 to 0.19. The fields are 1 of data points, 4, 6 and 8 of ``Metric``,
and 1000 of ``ResourceMetrics``.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from kwire.errors import MissingExtraError

__all__ = ["labels", "metrics_data", "plain", "scopes"]

_PACKAGE: Final = ".opentelemetry.proto.metrics.v1."

_NOW: Final = {"int_gauge": "gauge", "int_sum": "sum", "int_histogram": "histogram"}

_FIELDS: Final[dict[str, tuple[tuple[str, int, str, bool], ...]]] = {
    "ResourceMetrics": (("instrumentation_library_metrics", 1000, "OldScopeMetrics", True),),
    "OldScopeMetrics": (("metrics", 2, "Metric", True),),
    "Metric": (
        ("int_gauge", 4, "IntGauge", False),
        ("int_sum", 6, "IntSum", False),
        ("int_histogram", 8, "IntHistogram", False),
    ),
    "NumberDataPoint": (("labels", 1, "StringKeyValue", True),),
    "HistogramDataPoint": (("labels", 1, "StringKeyValue", True),),
    "SummaryDataPoint": (("labels", 1, "StringKeyValue", True),),
    "StringKeyValue": (("key", 1, "string", False), ("value", 2, "string", False)),
    "IntGauge": (("data_points", 1, "IntDataPoint", True),),
    "IntSum": (
        ("data_points", 1, "IntDataPoint", True),
        ("aggregation_temporality", 2, "int32", False),
        ("is_monotonic", 3, "bool", False),
    ),
    "IntHistogram": (
        ("data_points", 1, "IntHistogramDataPoint", True),
        ("aggregation_temporality", 2, "int32", False),
    ),
    "IntDataPoint": (
        ("labels", 1, "StringKeyValue", True),
        ("start_time_unix_nano", 2, "fixed64", False),
        ("time_unix_nano", 3, "fixed64", False),
        ("value", 4, "sfixed64", False),
    ),
    "IntHistogramDataPoint": (
        ("labels", 1, "StringKeyValue", True),
        ("start_time_unix_nano", 2, "fixed64", False),
        ("time_unix_nano", 3, "fixed64", False),
        ("count", 4, "fixed64", False),
        ("sum", 5, "sfixed64", False),
        ("bucket_counts", 6, "fixed64", True),
        ("explicit_bounds", 7, "double", True),
    ),
}
"""By message: name, number, type and whether it is repeated, of each field that is no more."""


@functools.cache
def metrics_data() -> Any:
    """The class of ``MetricsData``. Raises ``MissingExtraError`` without the extra ``events``."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
        from opentelemetry.proto.common.v1 import common_pb2
        from opentelemetry.proto.metrics.v1 import metrics_pb2
        from opentelemetry.proto.resource.v1 import resource_pb2
    except ModuleNotFoundError as missing:
        raise MissingExtraError("reading client metrics", "events") from missing
    pool = descriptor_pool.DescriptorPool()
    for known in (common_pb2, resource_pb2, metrics_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        known.DESCRIPTOR.CopyToProto(file)
        if known is metrics_pb2:
            _extend(file)
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE[1:]}MetricsData"))


def _extend(file: Any) -> None:
    """Add the old fields to the description of ``metrics.proto``."""
    known = {one.name: one for one in file.message_type}
    for name, fields in _FIELDS.items():
        message = known.get(name)
        if message is None:
            message = file.message_type.add(name=name)
        # Numbers that are free now are reserved for nobody.
        del message.reserved_range[:]
        del message.reserved_name[:]
        for field_name, number, kind, repeated in fields:
            made = message.field.add(name=field_name, number=number)
            made.label = made.LABEL_REPEATED if repeated else made.LABEL_OPTIONAL
            if kind[0].isupper():
                made.type = made.TYPE_MESSAGE
                made.type_name = _PACKAGE + kind
            else:
                made.type = getattr(made, f"TYPE_{kind.upper()}")
            if name == "Metric":
                made.oneof_index = 0


def plain(kind: str) -> str:
    """What a kind of metric is called now: ``int_gauge`` is a ``gauge``."""
    return _NOW.get(kind, kind)


def labels(point: Any) -> Any:
    """The labels of a data point, or nothing where it never had such a field."""
    return getattr(point, "labels", ())


def scopes(resource_metrics: Any) -> tuple[Any, Any]:
    """What holds metrics in a ``ResourceMetrics``, under its name and its former one."""
    return resource_metrics.scope_metrics, resource_metrics.instrumentation_library_metrics
