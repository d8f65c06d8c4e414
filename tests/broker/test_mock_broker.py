"""Clients that have to be built, against the broker of ``kwire.testing``: the table of docs/how-to/mock-broker.md.

``tests/broker/clients`` has a small program for each. It is built once, in the cache. Where its registry does not
answer, its tests are skipped, and the summary of pytest says so. Where its tools are missing, they are skipped too, but
fail in continuous integration.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

import kafka_jars
import pytest
from broker_clients import BUILT, TOPIC, VALUES, cells, check
from missing import MissingError, give_up
from streams_truth import in_capture, observed

from kwire.testing.broker import Broker, Settings
from kwire.testing.proxy import Proxy

SOURCES = Path(__file__).parent / "clients"
NAMES = {"franz-go": "franz", "Sarama": "sarama", "KafkaJS": "kafkajs"}
SECONDS = 60
UNREACHABLE = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONN|dial tcp|no such host|i/o timeout|TLS handshake|proxyconnect"
)
"""What npm and go say when nothing answers."""


def _build(name: str, command: list[str]) -> Path:
    """The folder of a client, built."""
    if shutil.which(command[0]) is None:
        raise MissingError(f"{command[0]} is not installed")
    folder = kafka_jars.cache_folder() / "clients" / name
    shutil.copytree(SOURCES / name, folder, dirs_exist_ok=True)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=400)
    if done.returncode:
        unreachable = UNREACHABLE.search(done.stderr) is not None
        raise MissingError(f"{name} could not be built: {done.stderr[-200:]}", unreachable=unreachable)
    return folder


def java(program: str) -> list[str]:
    """What runs a Java program with Kafka's clients, compiled before. Raises ``MissingError``."""
    try:
        jars = f"{kafka_jars.install('4.4.0')}/*"
        made = kafka_jars.cache_folder() / "clients" / "java"
        words = [kafka_jars.jdk_tool("javac"), "-cp", jars, "-d", str(made), str(SOURCES / "java" / program)]
        subprocess.run(words, check=True, capture_output=True)
        short = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # it runs for a second
        return [kafka_jars.java(), *short, "-cp", f"{made}{os.pathsep}{jars}", program.removesuffix(".java")]
    except kafka_jars.KafkaUnavailableError as error:
        unreachable = isinstance(error, kafka_jars.RegistryUnreachableError)
        raise MissingError(str(error), unreachable=unreachable) from None


@functools.cache
def command(client: str) -> list[str]:
    """What runs a client. Raises ``MissingError``."""
    if client == "Java 4.4":
        return java("Client.java")
    name = NAMES[client]
    if client == "KafkaJS":
        return ["node", str(_build(name, ["npm", "install", "--no-audit", "--no-fund"]) / "main.js")]
    return [str(_build(name, ["go", "build", "-o", "client", "."]) / "client")]


def run(client: str, broker: Broker | Proxy) -> list[bytes]:
    words = [*command(client), broker.bootstrap, TOPIC]
    return subprocess.run(words, capture_output=True, check=True, timeout=SECONDS).stdout.splitlines()


@pytest.mark.parametrize(("client", "release", "said"), cells(BUILT))
def test_a_client_does_what_the_page_says(client: str, release: str, said: str) -> None:
    check(functools.partial(run, client), release, said)


@pytest.mark.parametrize("client", BUILT)
def test_a_client_goes_through_the_proxy(client: str) -> None:
    with Broker(nodes=2, topics={TOPIC: 3}) as broker, Proxy(broker.bootstrap) as proxy:
        try:
            assert sorted(run(client, proxy)) == sorted(VALUES)
        except MissingError as missing:
            give_up(missing)
        assert proxy.errors() == []
        assert len(proxy.exchanges()) >= len(broker.exchanges())


def test_java_shares_records_and_ends_transactions_of_version_2() -> None:
    with Broker(topics={TOPIC: 1}) as broker:
        try:
            words = [*java("Share.java"), broker.bootstrap, TOPIC]
        except MissingError as missing:
            give_up(missing)
        said = subprocess.run(words, capture_output=True, check=True, timeout=SECONDS, text=True).stdout.splitlines()
        values = [f"value {number}{place}" for number in (0, 2) for place in range(4)]
        again = [one for one in values if one[-1] in "02"]
        assert sorted(said) == sorted([f"{one} 1" for one in values] + [f"{one} 2" for one in again])
        assert {one.api_version for one in broker.exchanges("EndTxn")} == {5}
        assert not broker.exchanges("AddPartitionsToTxn")
        assert broker.errors() == []


def test_a_streams_application_shares_its_tasks_and_the_capture_says_so(tmp_path: Path) -> None:
    settings = Settings(consumer_heartbeat=0.3)
    topics = {TOPIC: 4, f"{TOPIC}-counts": 2}
    with observed() as truth, Broker(topics=topics, settings=settings) as broker:
        try:
            words = [*java("Streams.java"), broker.bootstrap, TOPIC, str(tmp_path)]
        except MissingError as missing:
            give_up(missing)
        done = subprocess.run(words, capture_output=True, timeout=240, text=True)
        assert done.returncode == 0, done.stderr[-4000:]
        said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
        everything = [f"{part}_{number}" for part in (0, 1) for number in range(4)]
        assert said["alone"] == said["left"] == str(everything).replace("'", "")
        halves = [one.strip("[]").split(", ") for one in (said["first"], said["second"])]
        assert sorted(halves[0] + halves[1]) == everything
        assert said["state"] == "Stable members 2 subtopologies 2"
        assert said["counts"] == "{word0=8, word1=8, word2=8, word3=8, word4=8}"
        assert broker.errors() == []
        broker.write_pcapng(tmp_path / "said.pcapng")
    truth.over()
    found = in_capture((tmp_path / "said.pcapng").read_bytes())
    assert found == truth.ended
    assert {span[1] for span, _ in found} == {"active"}
    assert {how for _, how in found} <= {"revoked", "left", "open"}
