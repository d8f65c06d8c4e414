# Invariant: a damaged capture of TLS with its key log, damaged as well, gives rows that fit the table's schema and at
# most one CaptureError; the bytes of a damaged connection give plaintext that was said, and a saved state that was
# damaged is refused or goes on. No other exception, and no hang.
"""Captures of TLS, key logs, connections and their states, damaged."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from typing import Any

from fuzz import GOLDEN
from kwire import capture
from kwire.errors import CaptureError, DecodeError
from kwire.tables.reading import of_capture
from kwire.testing.mutation import mutate
from kwire.tls import Decryptor, KeyLog
from kwire.tls.hellos import accepts_early_data, client_hello, server_hello

_captures: list[tuple[bytes, bytes]] = []
_connections: list[tuple[list[tuple[int, bytes]], bytes]] = []


def _load() -> None:
    if _captures:
        return
    for path in sorted((GOLDEN / "tls").glob("kafka*/*.pcap*")):
        _captures.append((path.read_bytes(), path.with_name(path.name.rsplit(".", 1)[0] + ".keys").read_bytes()))
    for path in sorted((GOLDEN / "tls" / "openssl").glob("*.json")):
        told = json.loads(path.read_text())
        _connections.append(([(side, bytes.fromhex(data)) for side, data in told["wire"]], told["keys"].encode()))


def run(rng: random.Random) -> None:
    """One round."""
    _load()
    rng.choice((_capture, _connection, _connection, _connection))(rng)


def _capture(rng: random.Random) -> None:
    data, keys = rng.choice(_captures)
    data = mutate(data, rng, rng.choice((0, 1, 3, 20)))
    keys = mutate(keys, rng, rng.choice((0, 0, 1, 20)))
    window = rng.choice((None, 4096, 50_000))
    try:
        for batch in capture.read(io.BytesIO(data), "frames", name="fuzz", window=window, keylog=KeyLog(keys)):
            assert batch.schema.equals(of_capture("frames").schema)
            batch.validate(full=True)
    except CaptureError:
        return


def _heard(decryptor: Decryptor, wire: list[tuple[int, bytes]], at: list[int]) -> tuple[bytes, bytes]:
    said = [b"", b""]
    for side, data in wire:
        for plain in decryptor.feed(side, data, at[side]):
            said[plain.side] += plain.data
        at[side] += len(data)
    return said[0], said[1]


def _connection(rng: random.Random) -> None:
    wire, text = rng.choice(_connections)
    keys = KeyLog(text)
    whole = _heard(Decryptor(keys), wire, [0, 0])
    damaged = [(side, mutate(data, rng, 1) if rng.random() < 0.2 else data) for side, data in wire]
    half = rng.randrange(len(damaged) + 1)
    decryptor, at = Decryptor(keys), [0, 0]
    first = _heard(decryptor, damaged[:half], at)
    if rng.random() < 0.3:
        state: Any = json.loads(json.dumps(decryptor.state()))
        if rng.random() < 0.7:
            name = rng.choice(sorted(state))
            state[name] = rng.choice((None, -1, 1 << 70, "", [], {}, True, "x" * 40))
        try:
            decryptor = Decryptor.restored(state, keys)
        except CaptureError:
            return
    rest = _heard(decryptor, damaged[half:], at)
    decryptor.finish()
    for side in (0, 1):
        # Records are whole or not there: what was said holds each letter that was heard, in order.
        said = iter(whole[side])
        assert all(one in said for one in first[side] + rest[side])


_HELLO, _ANSWER, _KEYS, _WIRE = range(4)
"""What an input is: a ClientHello, a ServerHello, a key log, a connection in pieces."""
_LARGEST = 3000
"""Bytes of a connection among the seeds."""


def _in_pieces(wire: list[tuple[int, bytes]]) -> bytes:
    return b"".join(bytes([side]) + len(data).to_bytes(2, "big") + data for side, data in wire)


def _pieces(data: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 0
    while at + 3 <= len(data):
        size = int.from_bytes(data[at + 1 : at + 3], "big")
        found.append((data[at] & 1, data[at + 3 : at + 3 + size]))
        at += 3 + size
    return found


def seeds() -> Iterator[bytes]:
    """Recorded connections, and their hellos and key logs."""
    _load()
    for number, (wire, keys) in enumerate(_connections):
        whole = _in_pieces(wire)
        if len(whole) <= _LARGEST:
            yield bytes([_WIRE, number]) + whole
        yield bytes([_KEYS, 0]) + keys
        for kind, side in ((_HELLO, 0), (_ANSWER, 1)):
            said = b"".join(data for one, data in wire if one == side)
            yield bytes([kind, 0]) + said[9 : 9 + int.from_bytes(said[6:9], "big")]


def words() -> Iterator[bytes]:
    """Labels of key logs, heads of records and of handshake messages, types of extensions."""
    yield from (b"CLIENT_RANDOM ", b"CLIENT_TRAFFIC_SECRET_0 ", b"RSA Session-ID:", b" Master-Key:", b"RSA ")
    for kind in range(20, 25):
        yield from (bytes([kind, 3, 3]), bytes([kind, 3, 1]))
    for message in (1, 2, 5, 8, 16, 20, 24):
        yield bytes([22, 3, 3, 0, 4, message, 0, 0])
    for extension in (0, 22, 23, 41, 42, 43, 51):
        yield extension.to_bytes(2, "big")


def check(data: bytes) -> None:
    """Asserts the invariant for one input."""
    if len(data) < 2:
        return
    kind, number, rest = data[0] % 4, data[1], data[2:]
    if kind in (_HELLO, _ANSWER):
        try:
            accepts_early_data(rest)
            client_hello(rest) if kind == _HELLO else server_hello(rest)
        except DecodeError:
            return
    elif kind == _KEYS:
        keys = KeyLog(rest)
        again = KeyLog(keys.text())
        assert (len(again), again.damaged, again.conflicting) == (len(keys), 0, 0)
        assert again.text() == keys.text()
    else:
        _load()
        _from_state(_pieces(rest), KeyLog(_connections[number % len(_connections)][1]))


def _from_state(wire: list[tuple[int, bytes]], keys: KeyLog) -> None:
    """A connection says the same where its reader is saved and restored on the way."""
    whole, at = Decryptor(keys), [0, 0]
    said = _heard(whole, wire, at)
    half = len(wire) // 2
    decryptor, at = Decryptor(keys), [0, 0]
    first = _heard(decryptor, wire[:half], at)
    decryptor = Decryptor.restored(json.loads(json.dumps(decryptor.state())), keys)
    rest = _heard(decryptor, wire[half:], at)
    whole.finish()
    decryptor.finish()
    assert (first[0] + rest[0], first[1] + rest[1]) == said
    assert (decryptor.verdict, decryptor.why) == (whole.verdict, whole.why)
