"""Real clients with default settings produce, fetch and join a group: the table of docs/how-to/mock-broker.md.

Each cell of the table is a test. A client that is not installed is skipped, and the summary of pytest names it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from broker_clients import CLIENTS, TOPIC, VALUES, MissingError

from kwire.testing.broker import Broker

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "mock-broker.md"


def table() -> list[tuple[str, str, str]]:
    """Client, release, and what the page says of them."""
    lines = re.search(r"^\| client \|.*\n(?:\|.*\n)+", PAGE.read_text(), re.MULTILINE)
    assert lines is not None
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in lines[0].splitlines(keepends=False)]
    releases = rows[0][1:]
    return [(row[0], release, said) for row in rows[2:] for release, said in zip(releases, row[1:], strict=True)]


def test_the_table_has_every_client() -> None:
    assert {client for client, _, _ in table()} == set(CLIENTS)


@pytest.mark.parametrize(("client", "release", "said"), table())
def test_a_client_does_what_the_page_says(client: str, release: str, said: str) -> None:
    with Broker(release=release, nodes=2, topics={TOPIC: 3}) as broker:
        try:
            if said != "yes":
                with pytest.raises(Exception, match=r".") as refused:
                    CLIENTS[client](broker)
                if isinstance(refused.value, MissingError):
                    raise refused.value
                return
            got = CLIENTS[client](broker)
        except MissingError as missing:
            pytest.skip(str(missing))
        assert sorted(got) == sorted(VALUES)
        kept = [one.value for number in range(3) for one in broker.records(TOPIC, number)]
        assert sorted(str(one) for one in kept) == sorted(map(str, VALUES))
        assert broker.exchanges("JoinGroup")
        assert broker.exchanges("OffsetCommit")
        assert broker.errors() == []
