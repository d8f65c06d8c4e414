"""A capture of 64 connections, with all that goes on in a file's middle: ``capture(seed)`` gives its packets.

Pipelined requests, transactions, SASL with and without headers, requests that wait for seconds, frames of a hundred
segments, lost packets, connections whose beginning is missing, and others that are no Kafka. Times go over some twenty
seconds, so that each connection has something in most of them. The same for the same seed.
"""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

from packets import Connection, Packet, request, response, sized

import kwire
from kwire import messages
from kwire.records import Record, encode

START = 1_700_000_000_000_000_000
SECONDS = 20
CONNECTIONS = 64
KAFKA = CONNECTIONS - 2

Exchange = tuple[bytes, bytes]


def _exchange(number: int, version: int, asked: Any, answered: Any) -> Exchange:
    return (
        kwire.encode_request(asked, api_version=version, correlation_id=number, client_id="shop"),
        kwire.encode_response(answered, api_version=version, correlation_id=number),
    )


def _made(name: str, number: int, version: int, asked: dict[str, Any], answered: dict[str, Any]) -> Exchange:
    return _exchange(
        number,
        version,
        getattr(messages, f"{name}Request").from_dict(asked),
        getattr(messages, f"{name}Response").from_dict(answered),
    )


def produced(number: int, chance: random.Random, size: int, transaction: str | None = None) -> Exchange:
    """A Produce request of some records, and its answer."""
    values = [chance.randbytes(size) for _ in range(chance.randint(1, 3))]
    records = encode([Record(b"key", one, timestamp=START // 1_000_000) for one in values])
    partition = chance.randrange(4)
    topic = {"name": "orders", "partition_data": [{"index": partition, "records": records}]}
    done = {"name": "orders", "partition_responses": [{"index": partition, "base_offset": 10 * number}]}
    asked = {"transactional_id": transaction, "acks": -1, "timeout_ms": 1000, "topic_data": [topic]}
    return _made("Produce", number, 9, asked, {"responses": [done]})


def transaction(number: int, chance: random.Random, size: int) -> list[Exchange]:
    """A transaction: partitions, records, its end."""
    ids = {"transactional_id": "shop-1"}
    who = {"producer_id": 4000 + number, "producer_epoch": 0}
    added = {"name": "orders", "partitions": [0, 1]}
    done = {"name": "orders", "results_by_partition": [{"partition_index": k} for k in (0, 1)]}
    return [
        _made("InitProducerId", number, 2, {**ids, "transaction_timeout_ms": 1000}, who),
        _made(
            "AddPartitionsToTxn",
            number + 1,
            1,
            {
                "v3_and_below_transactional_id": "shop-1",
                "v3_and_below_producer_id": who["producer_id"],
                "v3_and_below_topics": [added],
            },
            {"results_by_topic_v3_and_below": [done]},
        ),
        produced(number + 2, chance, size, "shop-1"),
        _made("EndTxn", number + 3, 1, {**ids, **who, "committed": chance.random() < 0.5}, {}),
    ]


def authenticated(connection: Connection, number: int, *, raw: bool) -> None:
    """SASL: a handshake, and tokens in requests or without any header."""
    asked, answered = _made("SaslHandshake", number, 0 if raw else 1, {"mechanism": "PLAIN"}, {"mechanisms": ["PLAIN"]})
    connection.send(asked).answer(answered)
    if raw:
        connection.send(b"\0user\0word").answer(b"")
    else:
        token = _made("SaslAuthenticate", number + 1, 1, {"auth_bytes": b"\0user\0word"}, {})
        connection.send(token[0]).answer(token[1])


def conversation(port: int, chance: random.Random) -> list[Packet]:
    """A connection of Kafka that lasts for the whole capture."""
    connection = Connection(
        client=(f"10.0.0.{port % 7 + 1}", port),
        broker=(f"10.0.1.{port % 3 + 1}", 9092),
        client_isn=chance.getrandbits(32),
        broker_isn=chance.getrandbits(32),
        mss=chance.choice([200, 536, 1460]),
        time=START + chance.randrange(900_000_000),
        step=chance.choice([20_000, 200_000, 3_000_000]),
    )
    number = chance.randint(1, 1000)
    begins = chance.random() < 0.7
    if begins:
        connection.open()
    if begins and chance.random() < 0.5:
        authenticated(connection, number, raw=chance.random() < 0.5)
        number += 2
    while connection.time < START + SECONDS * 1_000_000_000:
        kind = chance.random()
        if kind < 0.4:
            some = [produced(number + k, chance, chance.choice([20, 300])) for k in range(chance.randint(1, 4))]
        elif kind < 0.6:
            some = transaction(number, chance, 100)
        elif kind < 0.7:
            some = [produced(number, chance, 20_000)]
        else:
            topics = [{"name": "orders", "topic_id": UUID(int=7), "partitions": []}]
            some = [
                _made("Metadata", number, 12, {"topics": None}, {"topics": topics}),
                (request(10, 0, number + 1, b"\0\1g"), response(number + 1, b"\0\0\0\0\0\1\0\1h\0\0\x23\x84")),
            ]
        number += len(some)
        if chance.random() < 0.6:
            # Pipelined: all are asked before the first is answered, which may take seconds.
            connection.send_raw(b"".join(sized(asked) for asked, _ in some))
            connection.time += chance.choice([1_000_000, 50_000_000, 1_500_000_000])
            connection.answer_raw(b"".join(sized(answered) for _, answered in some))
        else:
            for asked, answered in some:
                connection.send(asked).answer(answered)
        connection.time += chance.randrange(2_500_000_000)
    end = chance.random()
    if end < 0.3:
        connection.close()
    elif end < 0.5:
        connection.reset()
    return connection.packets


def capture(seed: int = 1, *, loss: float = 0.01) -> list[Packet]:
    """The packets in order of time; ``loss``: which share of those with data is missing."""
    chance = random.Random(seed)
    every = [conversation(40_000 + k, chance) for k in range(KAFKA)]
    # One file has a hundred segments of it, whatever the files are: it goes over three and more.
    long = Connection(client=("10.0.0.9", 50_000), time=START + 2_000_000_000, step=70_000_000, mss=1000).open()
    asked, answered = produced(1, chance, 60_000)
    every.append(long.send(asked).answer(answered).packets)
    web = Connection(client=("10.0.0.9", 50_001), broker=("10.0.1.9", 80), time=START, step=400_000_000).open()
    every.append(web.send_raw(b"GET / HTTP/1.1\r\n\r\n").answer_raw(chance.randbytes(30_000)).packets)
    packets = sorted((one for some in every for one in some), key=lambda packet: packet.time)
    return [one for one in packets if not one.payload or chance.random() >= loss]
