"""Scripts of faults, the command ``kwire broker`` and the plug-in of pytest."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from kwire import capture, cli, messages
from kwire.protocol import Connection
from kwire.protocol.connection import ResponseReceived
from kwire.testing.broker.faults import Rule
from kwire.testing.broker.script import read

SCRIPT = """
[topics]
orders = 3

[[fault]]
api = "Metadata"
topic = "orders"
nth = 2
error = "LEADER_NOT_AVAILABLE"

[[fault]]
client = "slow"
delay = 2
drop = true
handled = false
"""


def test_a_script_is_topics_and_rules() -> None:
    made = read(SCRIPT)
    assert made.topics == {"orders": 3}
    first, second = made.rules
    assert (first.key, first.topic, first.nth, first.times) == (3, "orders", 2, None)
    assert (second.key, second.client) == (None, "slow")
    assert read("").rules == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[fault]", "no TOML"),
        ("[[fult]]", "no entry 'fult': .*did you mean 'fault'"),
        ("topics = 3", "topics = 3 has another type"),
        ("[topics]\norders = 0", "topic orders: 0 is no number of partitions"),
        ('[[fault]]\napi = "Fetch"', "fault 1: it does nothing"),
        ('[[fault]]\napi = "Fetsh"\ndrop = true', "fault 1: no API 'Fetsh': .*did you mean 'Fetch'"),
        ('[[fault]]\nerror = "NOT_A_LEADER"', "fault 1: no error code 'NOT_A_LEADER'"),
        ("[[fault]]\ndrop = true\n[[fault]]\nnht = 3\ndrop = true", "fault 2: it has no entry 'nht'"),
        ("[[fault]]\nnth = true\ndrop = true", "nth = True has another type"),
        ('[[fault]]\nraw = "xyz"', "fault 1: raw = 'xyz' is not hexadecimal"),
        ('fault = ["x"]', "fault 1: no table"),
        ("x = " + "[" * 5000, "too deep"),
        ("x = " + "{y = " * 5000, "too deep"),
        ("[topics]\nx = " + "9" * 5000, "no TOML: "),
        ("[[fault]]\ndelay = nan", "delay takes 0 to 1000000 seconds, not nan"),
        ("[[fault]]\ndelay = -1", "delay takes 0 to 1000000 seconds, not -1"),
        ("[[fault]]\nthrottle = inf", "throttle takes 0 to 1000000 seconds, not inf"),
        ("[[fault]]\nthrottle = 1e30", "throttle takes 0 to 1000000 seconds, not 1e\\+30"),
    ],
)
def test_a_text_that_is_no_script_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read(text)


def test_the_command_runs_until_it_is_told_to_stop(tmp_path: Path) -> None:
    script, said = tmp_path / "faults.toml", tmp_path / "said.pcapng"
    script.write_text(SCRIPT)
    words = ["broker", "--release", "2.8", "--script", str(script), "--pcapng", str(said), "--topic", "more:1"]
    running = subprocess.Popen([sys.executable, "-m", "kwire.cli", *words], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    try:
        host, _, port = running.stdout.readline().strip().rpartition(":")
        with socket.create_connection((host, int(port)), 10) as client:
            connection = Connection("client", client_id="me")
            found = []
            for _ in range(2):
                client.sendall(connection.send(messages.MetadataRequest(topics=[_topic("orders")]), version=11))
                (event,) = connection.receive(client.recv(65536))
                assert isinstance(event, ResponseReceived)
                found.append((event.body.topics[0].error_code, len(event.body.topics[0].partitions)))
        assert found == [(0, 3), (5, 0)]
    finally:
        running.send_signal(signal.SIGTERM)
        code = running.wait(10)
    assert code == 0
    rows = sum(batch.num_rows for batch in capture.read(said, "frames"))
    assert rows == 4


def _topic(name: str) -> messages.MetadataRequest.MetadataRequestTopic:
    return messages.MetadataRequest.MetadataRequestTopic(name=name)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--release", "9.9"], "release '9.9' is not known"),
        (["--topic", "orders"], "--topic orders: a name and a number of partitions"),
        (["--topic", "a/b:1"], "topic 'a/b': a name has 1 to 249 letters"),
        (["--topic", "a:100000"], "topic 'a': 100000 partitions"),
        (["--topic", "a:" + "9" * 5000], "a name and a number of partitions"),
        (["--host", "a..b"], "'a..b' is no host"),
        (["--host", ""], "'' is no host"),
        (["--host", "x" * 64], "is no host"),
        (["--pcapng", "nowhere/said.pcapng"], "nowhere/said.pcapng: No such file or directory"),
        (["--pcapng", "/"], "/: a folder: the output is a file, which needs a name"),
        (["--script", "empty.toml", "--pcapng", "empty.toml"], "empty.toml: is read, and cannot be the output too"),
        (["--nodes", "0"], "--nodes 0"),
        (["--port", "70000"], "--port 70000"),
        (["--script", "there is none"], "there is none: No such file or directory"),
        (["--script", "faults.toml"], "faults.toml: fault 1: it does nothing"),
    ],
)
def test_arguments_that_cannot_be_used_are_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "faults.toml").write_text("[[fault]]")
    (tmp_path / "empty.toml").write_text("")
    assert cli.main(["broker", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_a_fault_takes_bytes_and_a_kind() -> None:
    for wrong in (5, "abc", None):
        with pytest.raises(TypeError, match="raw takes bytes, not "):
            Rule(None).raw(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="damage takes one kind or more"):
        Rule(None).damage()


PLUGGED = """
import socket
import pytest
from kwire import messages
from kwire.protocol import Connection


@pytest.mark.kafka_broker(release="2.8", topics={"orders": 2})
@pytest.mark.parametrize("right", [True, False])
def test_it(kafka_broker, right):
    host, _, port = kafka_broker.bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as client:
        client.sendall(Connection("client", client_id="me").send(messages.MetadataRequest(topics=None), version=9))
        assert client.recv(65536)
    assert kafka_broker.release == "2.8"
    assert len(kafka_broker.exchanges()) == (1 if right else 7)


@pytest.mark.kafka_broker(topic={"orders": 2})
def test_unknown(kafka_broker):
    pass


@pytest.mark.kafka_proxy("kafka:9092")
def test_unnamed(kafka_proxy):
    pass


def test_behind(kafka_broker, kafka_proxy):
    host, _, port = kafka_proxy.bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as client:
        client.sendall(Connection("client", client_id="me").send(messages.MetadataRequest(topics=None), version=9))
        assert not client.recv(65536)
"""


def test_the_plug_in_gives_a_broker_and_shows_what_was_said(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(PLUGGED)
    # Where kwire is installed, pytest has loaded it.
    known = any(one.value == "kwire.testing.plugin" for one in entry_points(group="pytest11"))
    words = ["-m", "pytest", "-q", "--strict-markers", *([] if known else ["-p", "kwire.testing.plugin"])]
    done = subprocess.run(
        [sys.executable, *words, "test_it.py"],
        cwd=tmp_path,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "2 failed, 1 passed, 2 errors" in done.stdout, done.stdout + done.stderr
    assert "kafka_broker has no argument 'topic': " in done.stdout
    assert "did you mean 'topics'?" in done.stdout
    assert "kafka_proxy takes arguments by name, as Proxy does" in done.stdout
    assert "#1 Metadata v9 of 'me' to node -1; answered after " in done.stdout
    assert "#1 Metadata v9 of 'me' to node 1" in done.stdout
