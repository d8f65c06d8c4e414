"""Quotas: how much clients may write and read in a second, and for how long they are throttled above that.

Each client id has its own share. What is above the rate is a debt in time. A client is throttled for the debt beyond
one second, up to ``MOST`` seconds.

Sources: KIP-13, KIP-219.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kwire.schema.keys import ApiKey

__all__ = ["MOST", "Quotas"]

MOST: Final = 30.0
"""The longest time (float, seconds) that a client is throttled."""
_BURST: Final = 1.0
_MOST_CLIENTS: Final = 10_000


class Quotas:
    """What clients have used up. ``rates``: API key -> bytes a second."""

    def __init__(self, rates: Mapping[int, float]) -> None:
        self._rates = dict(rates)
        self._until: dict[tuple[int, str], float] = {}
        """API key and client id -> the time until which the rate is used up."""

    def charge(self, key: int, client_id: str, request: Any, response: Any, now: float) -> float:
        """Count a request. Gives the seconds for which the client is throttled."""
        rate = self._rates.get(key)
        if not rate:
            return 0.0
        if len(self._until) >= _MOST_CLIENTS:
            self._until.pop(next(iter(self._until)))
        place = key, client_id
        until = max(self._until.get(place, 0.0), now) + _size(key, request, response) / rate
        self._until[place] = until
        return min(max(0.0, until - now - _BURST), MOST)


def _size(key: int, request: Any, response: Any) -> int:
    """Bytes of records."""
    if key == ApiKey.PRODUCE:
        return sum(len(part.records or b"") for topic in request.topic_data for part in topic.partition_data)
    if key == ApiKey.FETCH:
        return sum(len(part.records or b"") for topic in response.responses for part in topic.partitions)
    return 0
