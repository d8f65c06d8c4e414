# Invariant: a damaged capture of TLS with its key log, damaged as well, gives rows that fit the table's schema and at
# most one CaptureError; the bytes of a damaged connection give plaintext that was said, and a saved state that was
# damaged is refused or goes on. No other exception, and no hang.
"""Captures of TLS, key logs, connections and their states, damaged."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

from kwire import capture
from kwire.errors import CaptureError
from kwire.tables.reading import of_capture
from kwire.testing.mutation import mutate
from kwire.tls import Decryptor, KeyLog

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "tls"

_captures: list[tuple[bytes, bytes]] = []
_connections: list[tuple[list[tuple[int, bytes]], bytes]] = []


def _load() -> None:
    for path in sorted(GOLDEN.glob("kafka*/*.pcap*")):
        _captures.append((path.read_bytes(), path.with_name(path.name.rsplit(".", 1)[0] + ".keys").read_bytes()))
    for path in sorted((GOLDEN / "openssl").glob("*.json")):
        told = json.loads(path.read_text())
        _connections.append(([(side, bytes.fromhex(data)) for side, data in told["wire"]], told["keys"].encode()))


def run(rng: random.Random) -> None:
    """One round."""
    if not _captures:
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
