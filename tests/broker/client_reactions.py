"""What clients with default settings make of a fault at the proxy of ``kwire.testing``: docs/results/client-faults.md.

    PYTHONPATH=.:tests/support:tests/broker python tests/broker/client_reactions.py [CLIENT ...]
    PYTHONPATH=.:tests/support:tests/broker python tests/broker/client_reactions.py --write

Each fault of ``test_proxy.FAULTS`` happens once, in front of the broker of ``kwire.testing`` (release 3.9, two nodes).
Each is tried ``TIMES`` times: the table has every reaction that was seen. ``--write`` asks all clients, and puts the
table, their versions and the date into the page. A client that is missing is an error then.
"""

from __future__ import annotations

import collections
import datetime
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from broker_clients import BUILT, CLIENTS, TOPIC, VALUES
from missing import MissingError
from test_mock_broker import SOURCES, run
from test_proxy import FAULTS

from kwire.testing.broker import Broker, Rule
from kwire.testing.proxy import Proxy

PAGE = Path(__file__).parents[2] / "docs" / "results" / "client-faults.md"
TABLE = re.compile(r"^\| API \| fault .*\n(?:\|.*\n)+", re.MULTILINE)
VERSIONS = re.compile(r"^Versions: (?:.+\n)+", re.MULTILINE)
WIDTH = 140
TIMES = 5


def reaction(client: str, api: str, fault: Callable[[Rule], Rule]) -> str:
    """In a few words. Raises ``MissingError``."""
    with Broker(release="3.9", nodes=2, topics={TOPIC: 3}) as broker, Proxy(broker.bootstrap) as proxy:
        rule = fault(proxy.on(api, nth=1))
        try:
            got = run(client, proxy) if client in BUILT else CLIENTS[client](proxy)
        except MissingError:
            raise
        except subprocess.TimeoutExpired:
            return "waits"
        except Exception:
            return "gives up"
        written = sum(len(broker.records(TOPIC, number)) for number in range(3))
        if not rule.acted:
            return "does not ask"
        if written > len(VALUES):
            return "writes twice"
        if sorted(got) == sorted(VALUES):
            return "goes on"
        return "reads twice" if len(got) > len(set(got)) else "reads less"


def reactions(client: str, api: str, fault: Callable[[Rule], Rule]) -> str:
    """All that were seen, the most frequent first, with how often if there are several."""
    seen = collections.Counter(reaction(client, api, fault) for _ in range(TIMES))
    if len(seen) == 1:
        return next(iter(seen))
    return ", ".join(f"{word} ({count} of {TIMES})" for word, count in seen.most_common())


def table(clients: list[str]) -> Iterator[str]:
    """The lines of the table."""
    yield f"| API | fault | {' | '.join(clients)} |"
    yield "|---" * (len(clients) + 2) + "|"
    for api, fault in FAULTS:
        said = fault(Rule(api)).said
        yield f"| {api} | {said} | {' | '.join(reactions(client, api, fault) for client in clients)} |"


def versions() -> dict[str, str]:
    """Of each client."""
    found = {name: importlib.metadata.version(name) for name in CLIENTS if name != "kcat"}
    said = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=True).stdout
    found["kcat"] = re.search(r"\((?:.*?librdkafka ([\d.]+).*?)\)", said)[1]  # type: ignore[index]
    found["Java"] = "4.4.0"
    for client, folder in (("franz-go", "franz"), ("Sarama", "sarama")):
        name = client.lower()
        found[client] = re.search(rf"/{name} v([\d.]+)", (SOURCES / folder / "go.mod").read_text())[1]  # type: ignore[index]
    found["KafkaJS"] = re.search(r'"kafkajs": "\D*([\d.]+)"', (SOURCES / "kafkajs" / "package.json").read_text())[1]  # type: ignore[index]
    return found


def write(lines: list[str]) -> None:
    """Put the table into the page."""
    words = [f"{name} {version}" for name, version in versions().items()]
    words = [f"kcat of librdkafka {one[5:]}" if one.startswith("kcat ") else one for one in words]
    text = f"Versions: {', '.join(words)}. Measured on {datetime.date.today()}."
    said = [""]
    for word in text.split():
        if said[-1] and len(said[-1]) + len(word) >= WIDTH:
            said.append("")
        said[-1] += f" {word}" if said[-1] else word
    page = TABLE.sub(lambda _: "".join(f"{line}\n" for line in lines), PAGE.read_text("utf-8"), count=1)
    page = VERSIONS.sub(lambda _: "".join(f"{line}\n" for line in said), page, count=1)
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    wanted = [one for one in sys.argv[1:] if one != "--write"] or [*CLIENTS, *BUILT]
    printed = []
    for made in table(wanted):
        print(made, flush=True)
        printed.append(made)
    if "--write" in sys.argv:
        write(printed)
