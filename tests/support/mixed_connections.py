"""Captures of several connections side by side, of every kind, and what a network or a capture may do to their packets.

``mixture(seed)`` always gives the same packets for the same seed.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import replace

from packets import SYN, Connection, Packet, metadata, metadata_answer, produce, produce_answer, request, response

START = 1_700_000_000_000_000_000
MECHANISMS = struct.pack(">hih", 0, 1, 5) + b"PLAIN"
COORDINATOR = struct.pack(">hih", 0, 1, 1) + b"h" + struct.pack(">i", 9092)


def conversation(port: int, chance: random.Random, *, opened: bool, old: bool, ends: bool) -> Connection:
    """A connection of Kafka: pipelined requests of several APIs, some of them without an answer."""
    connection = Connection(
        client=("10.0.0.1", port),
        client_isn=chance.getrandbits(32),
        broker_isn=chance.getrandbits(32),
        mss=chance.choice([7, 60, 500, 1460]),
        time=START + chance.randrange(5_000_000),
        step=chance.choice([1_000, 1_000_000, 30_000_000]),
    )
    if opened:
        connection.open()
    number = chance.randint(1, 100)
    if old and chance.random() < 0.3:
        connection.send(request(17, 0, number, b"\0\x05PLAIN")).answer(response(number, MECHANISMS))
        connection.send(b"\0u\0p").answer(b"")
    for _ in range(chance.randint(1, 5)):
        answers = []
        for _ in range(chance.randint(1, 4)):
            number += 1
            kind = chance.randint(0, 4)
            if kind == 0:
                connection.send(metadata(number, chance.choice(["test", "other", None])))
                answers.append(metadata_answer(number))
            elif kind == 1:
                connection.send(produce(number, 0, chance.randbytes(chance.randint(0, 900))))
            elif kind == 2:
                connection.send(produce(number, 1, chance.randbytes(chance.randint(0, 2000))))
                answers.append(produce_answer(number))
            elif kind == 3:
                connection.send(request(10, 0, number, b"\0\x01g"))
                answers.append(response(0 if old else number, COORDINATOR))
            else:
                connection.send(metadata(number))
                answers.append(response(number, chance.randbytes(chance.randint(8, 3000))))
        if chance.random() < 0.9:
            connection.answer(*answers)
    if ends:
        _ = connection.close() if chance.random() < 0.5 else connection.reset()
    return connection


def mixture(seed: int, *, opened: bool = True, old: bool = True, ends: bool = True) -> list[Packet]:
    """Packets in order of time. ``opened``: the beginning of every connection was captured; ``old``: there may be
    SASL tokens without a header, and FindCoordinator is answered with correlation id 0, as by old brokers; ``ends``:
    connections may be closed, and others follow on their ports."""
    chance = random.Random(seed)

    def one(port: int) -> Connection:
        return conversation(
            port,
            chance,
            opened=opened or chance.random() < 0.5,
            old=old,
            ends=ends and chance.random() < 0.5,
        )

    every = [one(40000 + k) for k in range(3)]
    if ends and chance.random() < 0.5:
        again = one(40000)
        later = every[0].packets[-1].time + 400_000_000 - again.packets[0].time
        again.packets = [replace(packet, time=packet.time + later) for packet in again.packets]
        every.append(again)
    hello = b"\x16\x03\x01\x00\x2e" + bytes(46)
    tls = Connection(client=("10.0.0.3", 50000), broker=("10.0.0.2", 9093), mss=9, time=START)
    http = Connection(client=("10.0.0.3", 50001), broker=("10.0.0.2", 80), time=START)
    other = Connection(client=("10.0.0.3", 50002), broker=("10.0.0.2", 5432), time=START)
    gssapi = Connection(client=("10.0.0.3", 50003), mss=13, time=START)
    if chance.random() < 0.5:
        every.append(tls.open().send_raw(hello).answer_raw(hello * 3))
    if chance.random() < 0.5:
        every.append(http.open().send_raw(b"GET / HTTP/1.1\r\n\r\n").answer_raw(b"x" * 3000))
    if not opened:
        every.append(other.answer_raw(chance.randbytes(3000)).send_raw(chance.randbytes(300)))
    if old and chance.random() < 0.5:
        gssapi.open().send(b"\x60\x82\x02\x58\x06\x09" + bytes(40)).answer(b"\x60" + bytes(20))
        every.append(gssapi.send(metadata(1)).answer(metadata_answer(1)))
    packets = [packet for connection in every for packet in connection.packets]
    packets.sort(key=lambda packet: packet.time)
    if not opened:
        del packets[: chance.randrange(len(packets) // 2)]
    return packets


def with_loss(packets: Sequence[Packet], seed: int) -> list[Packet]:
    """Some packets with data are missing."""
    chance = random.Random(seed)
    can = [k for k, packet in enumerate(packets) if packet.payload and not packet.flags & SYN]
    gone = set(chance.sample(can, min(len(can), chance.choice([1, 2, 5, len(packets) // 5]))))
    return [packet for k, packet in enumerate(packets) if k not in gone]


def out_of_order(packets: Sequence[Packet], seed: int) -> list[Packet]:
    """Packets with data come a few places too late, and some twice."""
    chance = random.Random(seed)
    places = [k + chance.random() * 4 if packet.payload else k for k, packet in enumerate(packets)]
    out = [packets[k] for k in sorted(range(len(packets)), key=places.__getitem__)]
    for _ in range(3):
        at = chance.randrange(len(out))
        if out[at].payload:
            out.insert(min(len(out), at + chance.randint(0, 4)), out[at])
    return out


def close_together(packets: Sequence[Packet]) -> list[Packet]:
    """A microsecond from packet to packet: nothing is given up because it has been waited for long enough."""
    return [replace(packet, time=START + 1000 * k) for k, packet in enumerate(packets)]
