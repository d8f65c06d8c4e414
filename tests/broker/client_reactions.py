"""What clients with default settings make of a fault at the proxy of ``kwire.testing``: docs/results/client-faults.md.

    PYTHONPATH=.:tests/support:tests/broker python tests/broker/client_reactions.py [CLIENT ...]

Each fault of ``test_proxy.FAULTS`` happens once, in front of the broker of ``kwire.testing`` (release 3.9, two nodes).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

from broker_clients import BUILT, CLIENTS, TOPIC, VALUES, MissingError
from test_mock_broker import run
from test_proxy import FAULTS

from kwire.testing.broker import Broker, Rule
from kwire.testing.proxy import Proxy


def reaction(client: str, api: str, fault: Callable[[Rule], Rule]) -> str:
    """In a few words."""
    with Broker(release="3.9", nodes=2, topics={TOPIC: 3}) as broker, Proxy(broker.bootstrap) as proxy:
        rule = fault(proxy.on(api, nth=1))
        try:
            got = run(client, proxy) if client in BUILT else CLIENTS[client](proxy)
        except MissingError:
            return "-"
        except subprocess.TimeoutExpired:
            return "waits"
        except Exception:
            return "gives up"
        written = sum(len(broker.records(TOPIC, number)) for number in range(3))
        if not rule.acted:
            return "does not ask"
        if written > len(VALUES):
            return "writes twice"
        return "goes on" if sorted(got) == sorted(VALUES) else "reads twice"


def table(clients: list[str]) -> Iterator[str]:
    """The lines of the table."""
    yield f"| API | fault | {' | '.join(clients)} |"
    yield "|---" * (len(clients) + 2) + "|"
    for api, fault in FAULTS:
        said = fault(Rule(api)).said
        yield f"| {api} | {said} | {' | '.join(reaction(client, api, fault) for client in clients)} |"


if __name__ == "__main__":
    for line in table(sys.argv[1:] or [*CLIENTS, *BUILT]):
        print(line, flush=True)
