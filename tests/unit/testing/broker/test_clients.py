"""Real clients with default settings produce, fetch and join a group: the table of docs/how-to/mock-broker.md.

Each cell of the table is a test. A client that is not installed is skipped, and the summary of pytest names it. Clients
that have to be built are in tests/broker/test_mock_broker.py.
"""

from __future__ import annotations

import pytest
from broker_clients import CLIENTS, cells, check


@pytest.mark.parametrize(("client", "release", "said"), cells(CLIENTS))
def test_a_client_does_what_the_page_says(client: str, release: str, said: str) -> None:
    check(CLIENTS[client], release, said)
