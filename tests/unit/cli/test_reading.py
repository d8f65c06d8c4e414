"""Sources that others are still writing."""

from __future__ import annotations

import os
import time

import pytest

from kwire.cli.reading import Live


def test_a_pipe_is_emptied_before_anybody_reads() -> None:
    read, write = os.pipe()
    live = Live(read, follow=False)
    os.close(read)
    sent = bytes(range(256)) * 20_000
    # More than a pipe holds: this would wait for ever.
    with os.fdopen(write, "wb") as pipe:
        pipe.write(sent)
    got = [live.read(size) for size in (1, 100_000, 3)]
    assert [len(part) for part in got] == [1, 100_000, 3]
    while part := live.read(1 << 22):
        got.append(part)
    assert b"".join(got) == sent
    assert live.read(1) == b""


def test_what_is_read_ahead_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Live, "PREFETCH", 1 << 16)
    read, write = os.pipe()
    live = Live(read, follow=False)
    os.close(read)
    os.set_blocking(write, False)
    taken = 0
    for _ in range(100):
        try:
            taken += os.write(write, bytes(1 << 16))
        except BlockingIOError:
            time.sleep(0.01)
    assert taken < 20 << 16
    got = 0
    while got < taken:
        got += len(live.read(1 << 20))
    os.close(write)
    assert live.read(1) == b""
    assert got == taken
