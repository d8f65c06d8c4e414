"""Damaged bodies are the same rows whether kernels are machine code or Python."""

from __future__ import annotations

import io
import random

from packets import Connection, pcap, request

from kwire import capture
from kwire.kernels.engine import MACHINE, PYTHON, using

BODY = bytes(25) + b"\1\1\1" + b"\2\0\3\3ab\5\2de"
"""FetchRequest v12 of nothing, with the tagged field ``cluster_id`` and one that nobody knows."""


def test_damaged_bodies_and_tags_are_judged_alike():
    some = random.Random(4)
    made = Connection().open()
    for number in range(400):
        body = bytearray(BODY)
        for _ in range(some.choice((1, 1, 2))):
            body[some.randrange(24, len(body))] = some.choice((0, 1, 2, 3, 7, 0x7F, 0x80, 0xFF))
        made.send(request(1, 12, number, b"\0" + bytes(body)))
    data = pcap(made.close().packets)
    rows = {}
    for engine in (MACHINE, PYTHON):
        with using(engine):
            rows[engine] = [
                row for batch in capture.read(io.BytesIO(data), "frames", ports=(9092,)) for row in batch.to_pylist()
            ]
    assert rows[MACHINE] == rows[PYTHON]
    assert len({row["status"] for row in rows[PYTHON]}) > 1
