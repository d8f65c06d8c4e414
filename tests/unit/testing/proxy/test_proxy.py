"""The proxy of ``kwire.testing``, in front of its broker: faults, addresses, what passes as it came, the recorder."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from broker_clients import CLIENTS, TOPIC, VALUES
from broker_sockets import Blocking, produce_request
from missing import MissingError, give_up
from tls_connections import contexts

from kwire import capture, cli, messages, schema
from kwire.errors import KwireError
from kwire.protocol.headers import encode_body
from kwire.records import Record
from kwire.schema.keys import ApiKey
from kwire.testing import packets
from kwire.testing.broker import Broker, Sasl
from kwire.testing.broker.apis import HANDLERS
from kwire.testing.broker.faults import DAMAGES, Plan
from kwire.testing.proxy import Proxy
from kwire.testing.proxy.answers import set_errors


def fetch(client: Blocking, topic_id: Any = None, name: str = TOPIC, **more: Any) -> Any:
    kind = messages.FetchRequest
    part = kind.FetchPartition(partition=0, partition_max_bytes=1 << 20)
    named: dict[str, Any] = {"topic": name} if topic_id is None else {"topic_id": topic_id}
    topics = more.pop("topics", [kind.FetchTopic(**named, partitions=[part])])
    request = kind(max_wait_ms=10, min_bytes=1, max_bytes=1 << 20, topics=topics, **more)
    return client.ask(request, 12 if topic_id is None else 13)


def test_clients_stay_behind_the_proxy() -> None:
    with Broker(nodes=3, topics={TOPIC: 3}) as broker, Proxy(broker.bootstrap) as proxy:
        client = Blocking(proxy.bootstrap)
        own = {proxy.bootstrap}
        behind = set(broker.bootstrap.split(","))
        answers = [
            client.ask(messages.MetadataRequest(topics=None), 12).brokers,
            client.ask(messages.DescribeClusterRequest(), 1).brokers,
            client.ask(messages.FindCoordinatorRequest(coordinator_keys=["g"]), 4).coordinators,
            [client.ask(messages.FindCoordinatorRequest(key="g"), 3)],
        ]
        told = {f"{one.host}:{one.port}" for listed in answers for one in listed}
        assert len(told) == 3
        assert not told & (behind | own)
        for address in told:
            other = Blocking(address)
            assert len(other.ask(messages.MetadataRequest(topics=None), 12).brokers) == 3
            other.close()
        assert len({one.node for one in broker.exchanges("Metadata")}) == 3
        client.close()


@pytest.mark.parametrize("client", CLIENTS)
def test_real_clients_go_through(client: str) -> None:
    with Broker(release="3.9", nodes=2, topics={TOPIC: 3}) as broker, Proxy(broker.bootstrap) as proxy:
        try:
            got = CLIENTS[client](proxy)
        except MissingError as missing:
            give_up(missing)
        assert sorted(got) == sorted(VALUES)
        assert proxy.errors() == []
        # None of them has found a way around it.
        assert len(proxy.exchanges()) >= len(broker.exchanges())


def test_what_needs_no_change_passes_as_it_came() -> None:
    with Broker(topics={TOPIC: 1}) as broker, Proxy(broker.bootstrap) as proxy:
        client = Blocking(proxy.bootstrap)
        client.ask(produce_request(TOPIC), 9)
        fetch(client)
        client.close()
        theirs, ours = payloads(broker.pcapng()), payloads(proxy.pcapng())
        assert len(theirs) == 4
        assert theirs == ours


def payloads(data: bytes) -> list[bytes]:
    """What the segments of a capture hold."""
    found = [packets.segment(one) for one in packets.read(data)]
    return [one.payload for one in found if one is not None and one.payload]


def test_an_error_is_about_its_topic_alone() -> None:
    with Broker(topics={TOPIC: 1, "other": 1}) as broker, Proxy(broker.bootstrap) as proxy:
        for name in (TOPIC, "other"):
            broker.append(name, [Record(b"k", b"v")])
        proxy.on("Fetch", topic=TOPIC, times=2).error("NOT_LEADER_OR_FOLLOWER")
        client = Blocking(proxy.bootstrap)
        ids = {one.name: one.topic_id for one in client.ask(messages.MetadataRequest(topics=None), 12).topics}
        assert fetch(client, name="other").responses[0].partitions[0].error_code == 0
        first = fetch(client, ids[TOPIC], session_epoch=0)
        part = first.responses[0].partitions[0]
        assert (part.error_code, part.records) == (6, b"")
        again = fetch(client, ids[TOPIC], topics=[], session_id=first.session_id, session_epoch=1)
        assert [(one.topic_id, one.partitions[0].error_code) for one in again.responses] == [(ids[TOPIC], 6)]
        assert [one.fault for one in proxy.exchanges("Fetch")] == ["", *["NOT_LEADER_OR_FOLLOWER"] * 2]
        client.close()


APIS = [key for key in HANDLERS if key not in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)]


@pytest.mark.parametrize("key", APIS)
def test_every_version_of_every_response_takes_an_error(key: int) -> None:
    message = schema.response(key)
    assert message is not None
    kind = getattr(messages, message.name)
    for version in message.versions:
        body = filled(kind, version)
        set_errors(body, version, Plan(code=15), lambda number: "")
        assert encode_body(body, version)
        assert "_code': 15" in str(body.to_dict(version)), version


def filled(kind: Any, version: int) -> Any:
    """A message with one element in each array of structs."""
    body = kind()
    for one in kind.FIELDS:
        inner = kind.STRUCTS.get(one.name)
        if inner is not None and version in one.versions and isinstance(getattr(body, one.name), list):
            setattr(body, one.name, [filled(inner, version)])
    return body


def test_faults_at_the_wire() -> None:
    with Broker() as broker, Proxy(broker.bootstrap, seed=3) as proxy:
        ask = messages.MetadataRequest(topics=[])
        for kind in DAMAGES:
            proxy.on("Metadata", times=1).damage(kind)
            client = Blocking(proxy.bootstrap)
            right = Blocking(broker.bootstrap)
            with suppress(KwireError, EOFError, TimeoutError):
                assert client.ask(ask, 12) != right.ask(ask, 12)
            client.close()
            right.close()
            proxy.forget_rules()
        proxy.on("Metadata", nth=1).raw(b"HTTP/1.1 400")
        proxy.on("Metadata", nth=2).close()
        proxy.on("Metadata", nth=3).close(handled=False)
        proxy.on("Metadata", nth=4).throttle(2)
        before = len(broker.exchanges())
        found = []
        for _ in range(4):
            client = Blocking(proxy.bootstrap)
            client.socket.sendall(client.connection.send(ask, version=12))
            found.append(client.socket.recv(65536))
            client.close()
        assert found[0] == b"HTTP/1.1 400"
        assert found[1:3] == [b"", b""]
        assert found[3][8 + 1 : 8 + 5] == (2000).to_bytes(4)
        assert len(broker.exchanges()) - before == 3


def test_a_delay_keeps_the_order() -> None:
    with Broker() as broker, Proxy(broker.bootstrap) as proxy:
        proxy.on("Metadata", nth=1).delay(0.05)
        client = Blocking(proxy.bootstrap)
        asks = [client.connection.send(messages.MetadataRequest(topics=[]), version=12) for _ in range(3)]
        client.socket.sendall(b"".join(asks))
        got = 0
        while got < 3:
            got += len(list(client.connection.receive(client.socket.recv(65536))))
        client.close()


def test_bytes_that_are_no_kafka_end_the_connection() -> None:
    with Broker() as broker, Proxy(broker.bootstrap) as proxy:
        client = Blocking(proxy.bootstrap)
        client.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert client.socket.recv(65536) == b""
        client.close()
        assert isinstance(proxy.errors()[0], KwireError)
        assert broker.exchanges() == []


@pytest.mark.parametrize("version", [0, 1])
def test_tls_to_clients_and_passwords_in_raw_tokens(version: int) -> None:
    theirs, server, _ = contexts(ssl.TLSVersion.TLSv1_3, None, "ec")
    with (
        Broker(sasl=Sasl(users={"alice": "wonderland"})) as broker,
        Proxy(broker.bootstrap, tls=server) as proxy,
    ):
        client = Blocking(proxy.bootstrap)
        client.socket = theirs.wrap_socket(client.socket)
        token = b"\0alice\0wonderland"
        client.ask(messages.SaslHandshakeRequest(mechanism="PLAIN"), version)
        if version:
            client.ask(messages.SaslAuthenticateRequest(auth_bytes=token), 2)
        else:
            client.socket.sendall(len(token).to_bytes(4) + token)
            assert client.socket.recv(64) == bytes(4)
        # The next request has a header again.
        client.connection = type(client.connection)("client")
        answer = client.ask(messages.MetadataRequest(topics=[]), 12)
        assert f"127.0.0.1:{answer.brokers[0].port}" != broker.bootstrap
        client.close()


def test_tls_to_the_cluster() -> None:
    upstream, at_broker, _ = contexts(ssl.TLSVersion.TLSv1_3, None, "ec")
    with Broker(tls=at_broker) as broker, Proxy(broker.bootstrap, upstream_tls=upstream) as proxy:
        client = Blocking(proxy.bootstrap)
        assert client.ask(messages.MetadataRequest(topics=[]), 12).brokers
        client.close()
        assert len(proxy.exchanges()) == 1


def test_a_cluster_that_wants_tls_is_told_from_one_that_answers() -> None:
    _, at_broker, _ = contexts(ssl.TLSVersion.TLSv1_3, None, "ec")
    with Broker(tls=at_broker) as broker, Proxy(broker.bootstrap) as proxy:
        client = Blocking(proxy.bootstrap)
        with pytest.raises((ConnectionError, EOFError)):
            client.ask(messages.MetadataRequest(topics=[]), 12)
        client.close()
        (error,) = proxy.errors()
    assert "in place of its first answer, to Metadata v12: it may want TLS" in str(error)


def test_a_cluster_that_is_not_there_closes_the_connection() -> None:
    with Broker() as broker:
        address = broker.bootstrap
    with Proxy(address) as proxy:
        client = Blocking(proxy.bootstrap)
        with suppress(ConnectionResetError):
            assert client.socket.recv(64) == b""
        client.close()


@pytest.mark.parametrize(("host", "port"), [("a..b", 9092), ("x" * 64, 9092), ("127.0.0.1", 70_000), ("", -1)])
def test_a_node_at_an_address_that_is_none_closes_the_connection(host: str, port: int) -> None:
    with Broker() as broker, Proxy(broker.bootstrap) as proxy:
        own, to = proxy.in_loop(lambda: proxy.door(7, host, port))
        client = Blocking(f"{own}:{to}")
        with suppress(ConnectionResetError):
            assert client.socket.recv(64) == b""
        client.close()
        (error,) = proxy.errors()
        assert "no connection to " in str(error)


def test_a_node_for_which_there_is_no_port_leads_to_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(24, "Too many open files")

    with Broker() as broker, Proxy(broker.bootstrap) as proxy:
        monkeypatch.setattr(socket, "create_server", refuse)
        client = Blocking(proxy.bootstrap)
        answer = client.ask(messages.MetadataRequest(topics=[]), 12)
        assert f"{answer.brokers[0].host}:{answer.brokers[0].port}" == proxy.bootstrap
        assert "Too many open files" in str(proxy.errors()[0])
        client.close()


def test_the_command_writes_a_capture(tmp_path: Path) -> None:
    script, said = tmp_path / "faults.toml", tmp_path / "said.pcapng"
    script.write_text('[[fault]]\napi = "Metadata"\nnth = 2\nthrottle = 1')
    with Broker() as broker:
        words = ["proxy", "--upstream", broker.bootstrap, "--script", str(script), "--pcapng", str(said)]
        running = subprocess.Popen([sys.executable, "-m", "kwire.cli", *words], stdout=subprocess.PIPE, text=True)
        assert running.stdout is not None
        try:
            client = Blocking(running.stdout.readline().strip())
            asked = messages.MetadataRequest(topics=[])
            assert [client.ask(asked, 12).throttle_time_ms for _ in range(2)] == [0, 1000]
            client.close()
        finally:
            running.send_signal(signal.SIGTERM)
            code = running.wait(10)
    assert code == 0
    assert sum(batch.num_rows for batch in capture.read(said, "frames")) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--upstream", "kafka"], "'kafka' is no address such as kafka:9092"),
        (["--upstream", "kafka:9092", "--listen", "19092x"], "--listen 19092x: an address such as :19092"),
        (["--upstream", "kafka:9092", "--script", "topics.toml"], "a proxy makes no topics"),
        (["--upstream", "kafka:9092", "--certificate", "none.pem"], "none.pem: No such file"),
        (["--upstream", "kafka:9092", "--certificate", "topics.toml"], "topics.toml: no certificate in PEM"),
        (["--upstream", "kafka:9092", "--upstream-ca", "topics.toml"], "topics.toml: no certificate in PEM"),
        (["--upstream", "kafka:9092", "--key", "key.pem"], "--key needs --certificate"),
        (["--upstream", "user:password@kafka:9092"], "is no host"),
        (["--upstream", "kafka://kafka:9092"], "is no host"),
        (["--upstream", "ka..fka:9092"], "'ka..fka' is no host"),
        (["--upstream", "kafka:9092", "--pcapng", "nowhere/x"], "nowhere/x: No such file or directory"),
    ],
)
def test_arguments_that_cannot_be_used_are_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics.toml").write_text("[topics]\norders = 1")
    assert cli.main(["proxy", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
