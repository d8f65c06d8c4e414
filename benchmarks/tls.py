"""How fast TLS is decrypted: megabytes of ciphertext per second of CPU time, on one core.

    python benchmarks/tls.py [--size 32] [--rounds 5]

Between two ends of Python's ``ssl`` (OpenSSL) goes a stream of Produce requests, in records of the sizes that the
column says. ``decryptor`` is ``kwire.tls.Decryptor`` alone, fed with pieces of 64 kB; ``segments`` the same with the
pieces of 1,448 bytes that packets bring; ``capture`` a capture with that traffic, read to the table of frames, and
``plain`` the same capture without TLS, for comparison. Rounds of all cases are interleaved; figures are medians.
"""

from __future__ import annotations

import argparse
import io
import ssl
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from packets import Connection, pcap, produce, sized
from tls_connections import Talk, between

from kwire import capture
from kwire.tls import Decryptor, KeyLog

CIPHERS = {
    "TLS 1.3 AES-256-GCM": (ssl.TLSVersion.TLSv1_3, None),
    "TLS 1.2 AES-128-GCM": (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-GCM-SHA256"),
    "TLS 1.2 ChaCha20": (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-CHACHA20-POLY1305"),
    "TLS 1.2 AES-128-CBC": (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-SHA256"),
}
RECORDS = {"16 kB": 16_384, "1 kB": 1024, "100 B": 100}
MSS = 1448


def lines(size: int, record: int) -> list[tuple[int, bytes]]:
    """What is said: frames that fill a record each; fewer of them where they are small."""
    count = max(100, size // record if record > 1000 else size // 16 // record)
    frame = sized(produce(1, 0, bytes(record - 60)))
    return [(0, frame)] * count


def decrypt(talk: Talk, piece: int) -> int:
    decryptor = Decryptor(KeyLog(talk.keys))
    at, found = [0, 0], 0
    for side, data in talk.wire:
        view = memoryview(data)
        for k in range(0, len(data), piece):
            for plain in decryptor.feed(side, view[k : k + piece], at[side] + k):
                found += len(plain.data)
        at[side] += len(data)
    return found


def packets_of(wire: list[tuple[int, bytes]]) -> bytes:
    connection = Connection(mss=MSS).open()
    waiting = b""
    for side, data in [*wire, (1, b"")]:
        if side == 0:
            waiting += data
            if len(waiting) < 1 << 20:
                continue
        connection.send_raw(waiting)
        waiting = b""
        if side == 1:
            connection.answer_raw(data)
    return pcap(connection.packets)


def rows(data: bytes, keys: KeyLog | None) -> int:
    return sum(batch.num_rows for batch in capture.read(io.BytesIO(data), keylog=keys))


def measured(rounds: int, cases: dict[str, Callable[[], int]]) -> dict[str, float]:
    spent: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds + 1):
        for name, case in cases.items():
            began = time.process_time()
            case()
            spent[name].append(time.process_time() - began)
    return {name: statistics.median(times[1:]) for name, times in spent.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=32, help="megabytes of each case")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{'':22}{'records':>8}{'decryptor':>11}{'segments':>10}{'capture':>9}{'plain':>7}   MB/s")
    for cipher, (version, name) in CIPHERS.items():
        for kind, record in RECORDS.items():
            talk = between(lines(arguments.size << 20, record), version, name)
            size = sum(len(data) for _, data in talk.wire)
            sealed, plain = packets_of(list(talk.wire)), packets_of([(0, talk.said[0])])
            keys = KeyLog(talk.keys)
            spent = measured(
                arguments.rounds,
                {
                    "decryptor": lambda talk=talk: decrypt(talk, 65_536),  # type: ignore[misc]
                    "segments": lambda talk=talk: decrypt(talk, MSS),  # type: ignore[misc]
                    "capture": lambda sealed=sealed, keys=keys: rows(sealed, keys),  # type: ignore[misc]
                    "plain": lambda plain=plain: rows(plain, None),  # type: ignore[misc]
                },
            )
            speeds = "".join(
                f"{size / spent[case] / 1e6:{width}.0f}"
                for case, width in (("decryptor", 11), ("segments", 10), ("capture", 9), ("plain", 7))
            )
            print(f"{cipher:22}{kind:>8}{speeds}", flush=True)
            assert rows(sealed, keys) == rows(plain, None) == len(talk.said[0]) // len(lines(1 << 20, record)[0][1])


if __name__ == "__main__":
    main()
