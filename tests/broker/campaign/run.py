"""Play scenarios on a real cluster of three nodes, and hold what ``kwire findings`` says against what was expected.

    python tests/broker/campaign/run.py record [--version 4.4.0] [--lanes 6] [SCENARIO ...]      twenty minutes
    python tests/broker/campaign/run.py judge

``record`` writes VERSION/SCENARIO.pcap in the folder ``--out``, for each scenario that has no capture yet. It needs
Java with ``javac``, kcat, tcpdump, and the right to capture on loopback. Scenarios run at the same time, each on a
listener (ports) of its own. Those that stop brokers run alone, at the end.

The decorator of a scenario names the rules that must find it. Write it before you record the scenario. Use ``?`` for a
fault that no rule is about. ``judge`` prints a table with what was missed, and what was false: found, but not expected.
docs/results/real-clusters.md has the results.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import queue
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent), str(TESTS / "golden"), str(TESTS / "support"), str(TESTS.parent)]

import capturing  # noqa: E402
import healthy  # noqa: E402
import kafka_cluster  # noqa: E402
import misbehaving  # noqa: E402
from capturing import Recording  # noqa: E402
from kafka_cluster import Cluster  # noqa: E402
from world import LANES, SCENARIOS, USERS, Scenario, World  # noqa: E402

from kwire import capture  # noqa: E402
from kwire.report.findings import Finder, Finding, needed  # noqa: E402

OUT = TESTS.parent / ".cache" / "campaign"
NODES = 3


def cluster(version: str) -> Cluster:
    """Three nodes that are brokers and controllers, with an authorizer that listens to ``USERS``."""
    kafka_cluster.START_SECONDS = 240
    capturing.LARGEST = 1 << 30
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:kwire",
        "listener.name.sasl.plain.sasl.jaas.config": f"{misbehaving.LOGIN} {users};",
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.replication.factor": "3",
        "default.replication.factor": "3",
    }
    if not version.startswith("3"):
        config["share.coordinator.state.topic.replication.factor"] = "3"
    return Cluster(version=version, brokers=NODES, controllers=NODES, listeners=LANES, config=config)


def play(one: Scenario, lane: str, running: Cluster, classes: Path, out: Path) -> None:
    """Plays and records a scenario. One that fails prints its error, and leaves no capture."""
    world, began = World(running, lane, one.name, out, classes), time.monotonic()
    ports = [*running.ports(lane), world.spare]
    try:
        with Recording(out / one.name, ports, one.about, f"Apache Kafka {running.version}", exact=False):
            one.play(world)
            world.rest()
        print(f"{one.name}: {time.monotonic() - began:.0f} s", flush=True)
    except Exception:
        world.kill()
        print(f"{one.name} failed\n{traceback.format_exc()}", flush=True)


def record(version: str, out: Path, chosen: list[Scenario], lanes: int) -> None:
    """Plays scenarios on several lanes at a time, and then those that stop brokers."""
    waiting: dict[str, queue.SimpleQueue[Scenario]] = {lane: queue.SimpleQueue() for lane in ("", "SASL", "TLS")}
    for one in chosen:
        if not one.alone:
            waiting[one.lane].put(one)
    with tempfile.TemporaryDirectory() as folder, cluster(version) as running:
        classes = Path(folder)
        command = ["javac", "-cp", running.classpath, "-d", folder, str(HERE / "Scenes.java")]
        subprocess.run(command, check=True)

        def work(lane: str) -> None:
            mine = waiting.get(lane, waiting[""])
            with contextlib.suppress(queue.Empty):
                while True:
                    play(mine.get_nowait(), lane, running, classes, out)

        threads = [threading.Thread(target=work, args=(lane,)) for lane in [*list(LANES)[:lanes], "SASL", "TLS"]]
        for thread in threads:
            thread.start()
            time.sleep(2)
        for thread in threads:
            thread.join()
        for one in chosen:
            if one.alone:
                play(one, "LANE0", running, classes, out)


def findings(file: Path) -> list[Finding]:
    """What ``kwire findings`` says of a capture."""
    finder, columns = Finder(), needed()
    for name, batch in capture.read(file, tables=list(columns), columns=columns, name=file.stem):
        finder.add(name, batch)
    return finder.result()


def verdict(one: Scenario, version: str, told: list[Finding]) -> tuple[str, dict[str, int]]:
    """A cell of the table, and how many rules were expected, found, missed and false."""
    expected, rules = one.expected(version), {each.rule for each in told}
    parts = {
        "expected": expected,
        "found": expected & rules,
        "missed": expected - rules,
        "false": rules - expected - one.true,
    }
    said = [f"{name} {', '.join(sorted(parts[name]))}" for name in ("missed", "false") if parts[name]]
    if not said:
        said = ["silent" if not expected else "found"]
    return "; ".join(said), {name: len(part) for name, part in parts.items()}


def judge(out: Path) -> bool:
    """Prints a table of all captures, and what was found. Returns whether nothing was missed, and nothing was false."""
    versions = sorted((folder.name for folder in out.iterdir() if folder.is_dir()), reverse=True)
    total = {version: Counter[str]() for version in versions}
    said: list[str] = []
    print(f"| scenario | clients | expected | {' | '.join(versions)} |\n|---|---|---{'|---' * len(versions)}|")
    for one in SCENARIOS.values():
        cells = []
        for version in versions:
            file = out / version / f"{one.name}.pcap"
            if not file.with_suffix(".json").exists():
                cells.append("-")
                continue
            told = findings(file)
            cell, counts = verdict(one, version, told)
            cells.append(cell)
            total[version].update(counts | {"scenarios": 1, "healthy": not one.expected(version)})
            for each in told:
                who = " ".join(str(part) for part in (each.client_id, each.group_id, each.topic) if part is not None)
                said.append(f"{version} {one.name}: {each.severity} {each.rule} {who}: {each.summary}")
        print(
            f"| {one.name} | {one.clients} | {', '.join(sorted(one.expects)) or '-'} | {' | '.join(cells)} |",
            flush=True,
        )
    print("", *said, "", *(f"{version}: {dict(counts)}" for version, counts in total.items()), sep="\n")
    return not any(counts["missed"] or counts["false"] for counts in total.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "judge"))
    parser.add_argument("scenario", nargs="*", help="all, if none is named")
    parser.add_argument("--version", default="4.4.0", help="release of the brokers")
    parser.add_argument("--lanes", type=int, default=6, help="how many scenarios run at a time, six at most")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the captures")
    args = parser.parse_intermixed_args()
    for name in args.scenario:
        if name not in SCENARIOS:
            parser.error(f"no scenario {name!r}: there are {', '.join(SCENARIOS)}")
    logging.basicConfig(level=logging.CRITICAL)
    if args.what == "judge":
        return 0 if judge(args.out) else 1
    out = args.out / args.version
    out.mkdir(parents=True, exist_ok=True)
    named = args.scenario or list(SCENARIOS)
    release = tuple(map(int, args.version.split(".")[:2]))
    chosen = [
        one for one in map(SCENARIOS.__getitem__, named)
        if not (out / f"{one.name}.json").exists() and tuple(map(int, one.since.split("."))) <= release
    ]  # fmt: skip
    record(args.version, out, chosen, args.lanes)
    return 0


if __name__ == "__main__":
    assert healthy
    sys.exit(main())
