"""Processes with the classes of a Kafka release: one each for all tests, since starting one costs some seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest
from peer import KafkaPeer


@pytest.fixture(scope="session")
def peer_of() -> Iterator[Callable[[str], KafkaPeer]]:
    """``peer_of(release)`` is the process that has the classes of a release."""
    with ExitStack() as stack:

        @cache
        def made(release: str) -> KafkaPeer:
            peer = KafkaPeer(release)
            stack.callback(peer.close)
            return peer

        yield made
