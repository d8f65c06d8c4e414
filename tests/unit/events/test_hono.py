"""Hono's Telemetry API for Kafka: a test per rule of the document, about headers, keys and devices.

The rules about producers that need frames are tested in ``tests/spark/test_events.py``.
"""

from __future__ import annotations

import struct
from collections import Counter
from typing import Any

import pytest
from hono_samples import MESSAGES, seeded_tenant

from kwire.events import hono
from kwire.events.hono import Devices, Message, Violation

TOPIC = "hono.telemetry.DEFAULT_TENANT"
GOOD: list[tuple[str, bytes | None]] = [("content-type", b"application/json"), ("device_id", b"4711")]


def read(*more: tuple[str, bytes | None], key: bytes | None = b"4711", value: bytes | None = b"{}") -> Message:
    message = hono.read(TOPIC, key, [*GOOD, *more], value)
    assert message is not None
    return message


def rules(message: Message) -> list[tuple[str, str]]:
    return [tuple(one) for one in message.violations]


def test_the_tenant_is_in_the_topic() -> None:
    assert read().tenant == "DEFAULT_TENANT"
    for topic, tenant in (("hono.telemetry.a.b", "a.b"), ("hono.telemetry.ü", "ü")):
        message = hono.read(topic, b"4711", GOOD, b"")
        assert message is not None
        assert message.tenant == tenant
        assert message.violations == []
    bad = hono.read("hono.telemetry.", b"4711", GOOD, b"")
    assert bad is not None
    assert rules(bad) == [("bad_topic", "the topic has no tenant")]


@pytest.mark.parametrize(
    "topic", ["hono.command.t", "hono.events.t", "telemetry.t", "hono.telemetry", "xhono.telemetry.t", "", None]
)
def test_other_topics_are_none_of_hono(topic: str | None) -> None:
    assert hono.read(topic, b"4711", GOOD, b"") is None


def test_mandatory_headers_are_enough() -> None:
    message = read()
    assert (message.content_type, message.device_id, message.violations) == ("application/json", "4711", [])
    assert (message.content_encoding, message.creation_time, message.qos, message.ttd, message.ttl) == (None,) * 5


@pytest.mark.parametrize("name", ["content-type", "device_id"])
def test_a_missing_mandatory_header_is_a_violation(name: str) -> None:
    message = hono.read(TOPIC, b"4711", [one for one in GOOD if one[0] != name], b"")
    assert message is not None
    assert rules(message) == [("missing_header", f"{name} is missing")]


def test_every_header_of_the_document_is_typed() -> None:
    message = read(
        ("content-encoding", b"gzip"),
        ("creation-time", b"1763700000123"),
        ("qos", b"1"),
        ("ttd", b"-1"),
        ("ttl", b"60000"),
        ("orig_adapter", b"hono-mqtt"),
    )
    assert message.violations == []
    assert (message.content_encoding, message.creation_time) == ("gzip", 1763700000123)
    assert (message.qos, message.ttd, message.ttl) == (1, -1, 60000)


def test_other_headers_may_be_there() -> None:
    message = read(("x-of-mine", b"\xff"), ("empty", None))
    assert message.violations == []


def test_numbers_may_be_big_endian_integers() -> None:
    message = read(
        ("creation-time", struct.pack(">q", 1763700000123)),
        ("qos", struct.pack(">i", 1)),
        ("ttd", struct.pack(">i", -1)),
        ("ttl", struct.pack(">q", 60000)),
    )
    assert message.violations == []
    assert (message.creation_time, message.qos, message.ttd, message.ttl) == (1763700000123, 1, -1, 60000)


@pytest.mark.parametrize(
    ("value", "size", "number"),
    [
        (b"0", 4, 0),
        (b"-1", 4, -1),
        (b"007", 4, 7),
        (b"1234", 4, 1234),
        (b"12345678", 8, 12345678),
        (b"2147483647", 4, 2147483647),
        (b"-2147483648", 4, -2147483648),
        (b"9223372036854775807", 8, (1 << 63) - 1),
        (b"-9223372036854775808", 8, -(1 << 63)),
        (b"\x00\x00\x00\x05", 4, 5),
        (b"\xff\xff\xff\xff", 4, -1),
        (b"\x00\x00\x00\x00\x00\x00\x00\x05", 8, 5),
        (b"2147483648", 4, None),
        (b"9223372036854775808", 8, None),
        (b"00000000000000000005", 8, None),
        (b"", 4, None),
        (b"-", 4, None),
        (b"+1", 4, None),
        (b" 1", 4, None),
        (b"1\n", 4, None),
        (b"1.5 ", 4, None),
        (b"true", 4, None),
        (b"12345.78", 8, None),
        (b"\x00\x05", 4, None),
        (b"\x00\x00\x00\x05", 8, None),
        (b"\x00\x00\x00\x00\x00\x00\x00\x05", 4, None),
        ("٣".encode(), 4, None),
    ],
)
def test_number(value: bytes, size: int, number: int | None) -> None:
    assert hono.number(value, size) == number


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("content-encoding", b"", "is empty"),
        ("content-encoding", b"g zip", "is not a content encoding"),
        ("content-encoding", b"\xff", "is not UTF-8"),
        ("creation-time", b"today", "is neither a decimal number nor 8 bytes of a long"),
        ("creation-time", b"253402300800000", "is out of range"),
        ("creation-time", None, "is null"),
        ("qos", b"2", "is out of range"),
        ("qos", b"-1", "is out of range"),
        ("qos", b"\x01", "is neither a decimal number nor 4 bytes of an int"),
        ("ttd", b"-2", "is out of range"),
        ("ttd", b"2147483648", "is neither a decimal number nor 4 bytes of an int"),
        ("ttl", b"-1", "is out of range"),
        ("ttl", b"1h", "is neither a decimal number nor 8 bytes of a long"),
    ],
)
def test_anything_else_is_reported_and_the_rest_goes_on(name: str, value: bytes | None, said: str) -> None:
    more = () if name == "creation-time" else (("creation-time", b"0"),)
    message = read(*more, (name, value))
    assert rules(message) == [("bad_header", f"{name} {said}")]
    assert getattr(message, name.replace("-", "_")) is None
    assert message.device_id == "4711"


@pytest.mark.parametrize(
    ("value", "said"),
    [(b"json", "is not a MIME type"), (b"a/b\nc", "is not a MIME type"), (b"", "is empty"), (None, "is null")],
)
def test_content_type_is_a_MIME_type(value: bytes | None, said: str) -> None:  # noqa: N802
    message = hono.read(TOPIC, b"4711", [("content-type", value), GOOD[1]], b"")
    assert message is not None
    assert rules(message) == [("bad_header", f"content-type {said}")]


@pytest.mark.parametrize("value", [b'text/plain; charset="utf-8"', b"application/octet-stream", b"application/x+json"])
def test_content_types_of_the_document(value: bytes) -> None:
    message = hono.read(TOPIC, b"4711", [("content-type", value), GOOD[1]], b"")
    assert message is not None
    assert message.violations == []


@pytest.mark.parametrize("name", ["ttd", "ttl"])
def test_creation_time_is_mandatory_if_ttd_or_ttl_is_set(name: str) -> None:
    assert rules(read((name, b"1"))) == [("creation_time_missing", "creation-time is missing beside ttd or ttl")]
    assert read((name, b"1"), ("creation-time", b"0")).violations == []
    assert read(("creation-time", b"0")).violations == []


def test_the_key_must_be_the_device_id() -> None:
    assert rules(read(key=b"4712")) == [("key_is_not_device_id", "the key is not the device id")]
    assert rules(read(key=None)) == [("key_is_not_device_id", "the key is null")]


def test_the_value_must_be_a_byte_array() -> None:
    assert rules(read(value=None)) == [("no_value", "the value is null")]
    assert read(value=b"").violations == []


def test_of_a_repeated_header_the_first_counts_and_it_is_reported() -> None:
    message = read(("qos", b"0"), ("qos", b"1"), ("x", b"1"), ("x", b"2"))
    assert (message.qos, rules(message)) == (0, [("repeated_header", "qos appears more than once")])


@pytest.mark.parametrize(
    ("creation_time", "ttl", "now", "expired"),
    [
        (1000, 500, 1499, False),
        (1000, 500, 1500, False),
        (1000, 500, 1501, True),
        (1000, 0, 1001, True),
        (1000, (1 << 63) - 1, 1 << 62, False),
        (None, 500, 1501, None),
        (1000, None, 1501, None),
    ],
)
def test_a_message_is_expired_when_creation_time_plus_ttl_is_before_now(
    creation_time: int | None, ttl: int | None, now: int, expired: bool | None
) -> None:
    assert hono.expired(creation_time, ttl, now) is expired


def test_ttd_is_in_seconds_after_the_creation_time() -> None:
    assert read(("creation-time", b"1000"), ("ttd", b"30")).connected_until == 31_000
    assert read(("creation-time", b"1000"), ("ttd", b"0")).connected_until == 1000
    assert read(("creation-time", b"1000"), ("ttd", b"-1")).connected_until is None
    assert read(("creation-time", b"1000")).connected_until is None


def test_a_device_on_two_partitions_is_reported_once_per_partition() -> None:
    devices = Devices()
    assert devices.see(read(), 0, None) == []
    assert devices.see(read(), 0, None) == []
    message = read()
    assert devices.see(message, 1, None) == [Violation("two_partitions", "the device is on partitions 0, 1")]
    assert message.error == "the device is on partitions 0, 1"
    assert devices.see(read(), 1, None) == devices.see(read(), None, None) == []


def test_two_producers_for_one_device_are_reported() -> None:
    devices = Devices()
    for producer in ("a", "a", None):
        assert devices.see(read(), 0, producer) == []
    assert devices.see(read(), 0, "b") == [Violation("two_producers", "the device has the producers a, b")]


def test_a_producer_of_the_same_client_takes_the_place_of_another() -> None:
    devices = Devices()
    two = [Violation("two_producers", "the device has the producers 1, 2")]
    assert devices.saw("t", "d", None, "1", "c") == []
    assert devices.saw("t", "d", None, "2", "c") == []
    # What the first one wrote is read by somebody.
    assert devices.saw("t", "d", None, "1") == []
    assert devices.saw("t", "d", None, "2", "c") == []
    # It sends again: there are two.
    assert devices.saw("t", "d", None, "1", "c") == two
    assert devices.saw("t", "d", None, "2", "c") == devices.saw("t", "d", None, "1", "c") == []
    # Of another client, or of one that is not known, it is one more.
    assert devices.saw("t", "e", None, "1", "c") == []
    assert devices.saw("t", "e", None, "2", "other") == two
    assert devices.saw("t", "f", None, "1") == []
    assert devices.saw("t", "f", None, "2", "c") == two


def test_a_device_whose_producer_is_started_ever_again_is_not_remembered_ever_longer() -> None:
    devices = Devices()
    assert not any(devices.saw("t", "d", None, str(number), "c") for number in range(1000))
    (known,) = devices._producers.values()
    assert len(known.active) == 1
    assert len(known.replaced) == hono.MOST_PLACES


def test_errors_that_a_producer_handles_reject_nothing() -> None:
    rejected = {code for code in range(-1, 130) if hono.rejects(code)}
    assert {87, 29, 17, 2} - rejected == {2}  # a corrupt message is sent again by the producer
    assert rejected.isdisjoint({0, 3, 5, 6, 7, 10, 13, 19, 20, 45, 46, 47, 59})


def test_a_device_on_ever_more_partitions_is_not_named_ever_longer() -> None:
    devices = Devices()
    said = [devices.saw("t", "d", partition, None) for partition in range(1000)]
    assert [len(one) for one in said] == [0, *[1] * hono.MOST_PLACES, *[0] * (999 - hono.MOST_PLACES)]
    (last,) = said[hono.MOST_PLACES]
    assert last.detail == f"the device is on partitions {', '.join(map(str, range(hono.MOST_PLACES)))}, ..."


def test_devices_of_different_tenants_are_different() -> None:
    devices = Devices()
    for tenant in ("t", "u"):
        message = hono.read(f"hono.telemetry.{tenant}", b"4711", GOOD, b"")
        assert message is not None
        assert devices.see(message, 0 if tenant == "t" else 1, tenant) == []


def test_a_device_is_followed_kind_by_kind() -> None:
    devices = Devices()
    said = []
    for partition, kind in enumerate((hono.TELEMETRY, hono.EVENT, hono.RESPONSE) * 2):
        headers: list[tuple[str, bytes | None]] = [*GOOD, ("correlation-id", b"c"), ("status", b"200")]
        message = hono.read(f"hono.{kind}.t", b"4711", headers, b"")
        assert message is not None
        assert (message.kind, message.tenant, message.violations) == (kind, "t", [])
        said.append([one.rule for one in devices.see(message, partition, f"producer {partition}")])
    # An adapter sends command responses, and so does whatever reports that a command was not delivered.
    assert said == [[], [], [], *[["two_partitions", "two_producers"]] * 2, ["two_partitions"]]


def test_a_command_response_says_what_it_answers_and_how_it_went() -> None:
    headers: list[tuple[str, bytes | None]] = [("correlation-id", b"c-1"), ("device_id", b"4711"), ("status", b"404")]
    message = hono.read("hono.command_response.t", b"4711", headers, None)
    assert message is not None
    assert (message.correlation_id, message.response_status, message.violations) == ("c-1", 404, [])


def test_samples_have_the_violations_that_they_are_named_after() -> None:
    for name, topic, key, headers, value, wanted in MESSAGES:
        message = hono.read(topic, key, headers, value)
        assert ([one.rule for one in message.violations] if message else None) == wanted, name


def test_a_tenant_of_10000_devices_reports_exactly_the_seeded_violations() -> None:
    records, seeded = seeded_tenant()
    devices = Devices()
    found: list[tuple[Any, ...]] = []
    for topic, partition, key, value, headers, producer in records:
        message = hono.read(topic, key, headers, value)
        assert message is not None
        devices.see(message, partition, f"producer id {producer}")
        found += [(message.tenant, message.device_id, *one) for one in message.violations]
    assert len(records) > 20_000
    assert len(seeded) == 200
    assert Counter(found) == Counter(seeded)
    assert {rule for _, _, rule, _ in seeded} == {
        *(
            rule
            for rule in hono.RULES
            if rule not in ("bad_topic", "order_not_kept", "qos_1_at_most_once", "event_at_most_once", "sent_again")
        )
    }
