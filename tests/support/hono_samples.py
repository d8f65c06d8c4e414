"""Telemetry messages with and without violations, on which the object layer and Spark must agree."""

from __future__ import annotations

import random
import struct

Headers = list[tuple[str, bytes | None]]

T = "hono.telemetry.t"
E = "hono.event.t"
R = "hono.command_response.t"
CT: tuple[str, bytes | None] = ("content-type", b"text/plain")
EMPTY: tuple[str, bytes | None] = ("content-type", b"application/vnd.eclipse-hono-empty-notification")
ID: tuple[str, bytes | None] = ("device_id", b"d")
CREATED: tuple[str, bytes | None] = ("creation-time", b"1763700000000")

MESSAGES: list[tuple[str, str | None, bytes | None, Headers, bytes | None, list[str] | None]] = [
    ("good", T, b"d", [CT, ID], b"x", []),
    ("no message", "orders", b"d", [CT, ID], b"x", None),
    ("no topic", None, b"d", [CT, ID], b"x", None),
    ("no tenant", "hono.telemetry.", b"d", [CT, ID], b"x", ["bad_topic"]),
    ("all headers", T, b"d", [CT, ID, CREATED, ("qos", b"0"), ("ttd", b"5"), ("ttl", b"1"), ("z", None)], b"", []),
    (
        "integers",
        T,
        b"d",
        [
            CT,
            ID,
            ("creation-time", struct.pack(">q", -1)),
            ("qos", struct.pack(">i", 1)),
            ("ttd", struct.pack(">i", -1)),
            ("ttl", struct.pack(">q", (1 << 63) - 1)),
        ],
        b"",
        [],
    ),
    ("ttd at its end", T, b"d", [CT, ID, CREATED, ("ttd", struct.pack(">i", (1 << 31) - 1))], b"", []),
    ("creation time at its end", T, b"d", [CT, ID, ("creation-time", b"253402300799999"), ("ttd", b"1")], b"", []),
    ("creation time too far", T, b"d", [CT, ID, ("creation-time", b"253402300800000")], b"", ["bad_header"]),
    ("creation time of digits", T, b"d", [CT, ID, ("creation-time", b"12345678")], b"", []),
    ("negative integer of 4 bytes", T, b"d", [CT, ID, CREATED, ("ttd", b"\x80\x00\x00\x00")], b"", ["bad_header"]),
    ("integer of 8 bytes for an int", T, b"d", [CT, ID, ("qos", bytes(8))], b"", ["bad_header"]),
    ("integer of 4 bytes for a long", T, b"d", [CT, ID, CREATED, ("ttl", bytes(4))], b"", ["bad_header"]),
    ("text of 4 bytes", T, b"d", [CT, ID, CREATED, ("ttd", b"true")], b"", ["bad_header"]),
    ("20 digits", T, b"d", [CT, ID, CREATED, ("ttl", b"99999999999999999999")], b"", ["bad_header"]),
    ("19 nines", T, b"d", [CT, ID, CREATED, ("ttl", b"9999999999999999999")], b"", ["bad_header"]),
    ("line break behind digits", T, b"d", [CT, ID, CREATED, ("ttl", b"1\n")], b"", ["bad_header"]),
    ("empty number", T, b"d", [CT, ID, ("qos", b"")], b"", ["bad_header"]),
    ("not UTF-8", T, b"d", [("content-type", b"\xff"), ID], b"", ["bad_header"]),
    ("device not UTF-8", T, b"\xff", [CT, ("device_id", b"\xff")], b"", ["bad_header"]),
    (
        "all null",
        T,
        None,
        [("content-type", None), ("device_id", None), ("qos", None)],
        None,
        [*["bad_header"] * 3, "key_is_not_device_id", "no_value"],
    ),
    ("nothing", T, None, [], None, ["missing_header", "missing_header", "key_is_not_device_id", "no_value"]),
    ("twice", T, b"d", [CT, ID, ID, ("qos", b"1"), ("qos", b"\xff"), ("qos", b"7")], b"", ["repeated_header"] * 2),
    ("ttl without time", T, b"d", [CT, ID, ("ttl", b"1")], b"", ["creation_time_missing"]),
    ("ttd without time, wrong", T, b"d", [CT, ID, ("ttd", b"x")], b"", ["bad_header", "creation_time_missing"]),
    ("wrong time", T, b"d", [CT, ID, ("creation-time", b"x"), ("ttl", b"1")], b"", ["bad_header"]),
    ("other key", T, b"e", [CT, ID], b"", ["key_is_not_device_id"]),
    ("empty device", T, b"", [CT, ("device_id", b"")], b"", ["bad_header"]),
    ("encoding", T, b"d", [CT, ID, ("content-encoding", b"gzip")], b"", []),
    ("two encodings", T, b"d", [CT, ID, ("content-encoding", b"gzip, br")], b"", ["bad_header"]),
    ("names in another case", T, b"d", [("Content-Type", b"a/b"), ("Device_ID", b"d")], b"", ["missing_header"] * 2),
    ("event", E, b"d", [CT, ID, CREATED, ("ttl", b"5000"), ("qos", b"1")], b"x", []),
    ("event without a tenant", "hono.event.", b"d", [CT, ID], b"x", ["bad_topic"]),
    ("event without headers", E, b"d", [], b"x", ["missing_header"] * 2),
    ("event without a value", E, b"d", [CT, ID], None, ["no_value"]),
    ("empty notification", E, b"d", [EMPTY, ID], None, []),
    ("empty telemetry", T, b"d", [EMPTY, ID], None, ["no_value"]),
    ("response", R, b"d", [("correlation-id", b"c"), ID, ("status", b"200")], None, []),
    ("response of an adapter", R, b"d", [("correlation-id", b"c"), ID, ("status", b"503"), CT, CREATED], b"{}", []),
    ("status as an integer", R, b"d", [("correlation-id", b""), ID, ("status", b"\0\0\1\xf4")], b"", ["bad_header"]),
    ("no status", R, b"d", [("correlation-id", b"c"), ID, ("status", b"1")], b"", ["bad_header"]),
    ("telemetry in place of a response", R, b"d", [CT, ID], b"x", ["missing_header"] * 2),
    ("response without headers", R, None, [], None, [*["missing_header"] * 3, "key_is_not_device_id"]),
    ("command", "hono.command.t", b"d", [("subject", b"s"), ID], b"x", None),
]  # fmt: skip

Seeded = tuple[str | None, str | None, str, str]
Sent = tuple[str, int, bytes | None, bytes | None, Headers, int]


def seeded_tenant(devices: int = 10_000, seed: int = 4711) -> tuple[list[Sent], list[Seeded]]:
    """Two or three messages of each device of a tenant, and the violations that were put into some of them.

    A message is topic, partition, key, value, headers, producer id; a violation tenant, device, rule, detail.
    """
    rng = random.Random(seed)
    names = [f"device-{i:05d}" for i in range(devices)]
    kinds = [
        "content-type is missing",
        "device_id is missing",
        "qos is out of range",
        "ttd is neither a decimal number nor 4 bytes of an int",
        "ttl appears more than once",
        "creation-time is missing beside ttd or ttl",
        "the key is not the device id",
        "the value is null",
        "partitions",
        "producers",
    ]
    bad = {device: kinds[i % len(kinds)] for i, device in enumerate(rng.sample(names, devices // 50))}
    records: list[Sent] = []
    seeded: list[Seeded] = []
    tenant = "greenhouse"
    for i, device in enumerate(names):
        producer, partition = i % 3, i % 8
        kind = bad.get(device)
        for turn in range(rng.choice((2, 3))):
            binary = rng.random() < 0.5
            time = 1_763_700_000_000 + 1000 * turn

            def number(value: int, form: str, binary: bool = binary) -> bytes:
                return struct.pack(form, value) if binary else str(value).encode()

            headers: dict[str, bytes | None] = {
                "content-type": b"application/json",
                "device_id": device.encode(),
                "creation-time": number(time, ">q"),
                "qos": number(rng.randrange(2), ">i"),
                "ttd": number(rng.choice((-1, 0, 30)), ">i"),
                "ttl": number(60_000, ">q"),
            }
            key: bytes | None = device.encode()
            value: bytes | None = b'{"t":21.5}'
            more: Headers = []
            sender, place = producer, partition
            found: tuple[str | None, str] | None = None
            if kind is not None and turn == 1:
                if kind == "content-type is missing":
                    del headers["content-type"]
                    found = device, "missing_header"
                elif kind == "device_id is missing":
                    del headers["device_id"]
                    found = None, "missing_header"
                elif kind.startswith("qos"):
                    headers["qos"] = number(2, ">i")
                    found = device, "bad_header"
                elif kind.startswith("ttd"):
                    headers["ttd"] = b"soon"
                    found = device, "bad_header"
                elif kind.startswith("ttl"):
                    more = [("ttl", b"1")]
                    found = device, "repeated_header"
                elif kind.startswith("creation-time"):
                    del headers["creation-time"]
                    found = device, "creation_time_missing"
                elif kind.startswith("the key"):
                    key = b"another"
                    found = device, "key_is_not_device_id"
                elif kind.startswith("the value"):
                    value = None
                    found = device, "no_value"
                elif kind == "partitions":
                    place = partition + 8
                    kind = f"the device is on partitions {partition}, {place}"
                    found = device, "two_partitions"
                else:
                    sender = producer + 3
                    kind = f"the device has the producers producer id {producer}, producer id {sender}"
                    found = device, "two_producers"
            if found is not None and kind is not None:
                seeded.append((tenant, *found, kind))
            records.append((f"hono.telemetry.{tenant}", place, key, value, [*headers.items(), *more], sender))
            kind = bad.get(device)
    return records, seeded
