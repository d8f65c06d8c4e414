"""The broker of ``kwire.testing`` on sockets of this machine: beside blocking code, and in asyncio."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from broker_sockets import Blocking, produce_request
from broker_talk import BATCH
from tls_connections import contexts

from kwire import messages
from kwire.protocol import Connection
from kwire.protocol.connection import ResponseReceived
from kwire.records import Record
from kwire.testing.broker import Broker, Sasl, Settings


def test_beside_code_that_blocks() -> None:
    with Broker(release="3.9", topics={"orders": 1}) as broker:
        assert broker.bootstrap.startswith("127.0.0.1:")
        assert broker.release == "3.9"
        client = Blocking(broker.bootstrap)
        broker.on("Produce", nth=2).error("NOT_ENOUGH_REPLICAS")
        answers = [client.ask(produce_request("orders"), 9) for _ in range(3)]
        codes = [one.responses[0].partition_responses[0].error_code for one in answers]
        assert codes == [0, 19, 0]
        assert broker.append("orders", [Record(b"k", b"more")]) == 6
        assert [one.offset for one in broker.records("orders")] == list(range(7))
        assert [one.fault for one in broker.exchanges("Produce")] == ["", "NOT_ENOUGH_REPLICAS", ""]
        assert broker.errors() == []
        broker.forget_rules()
        with pytest.raises(ValueError, match="already exists"):
            broker.create_topic("orders")
        client.close()


def test_a_fetch_is_answered_when_another_client_produces() -> None:
    with Broker(topics={"orders": 1}) as broker:
        reader, writer = Blocking(broker.bootstrap), Blocking(broker.bootstrap)
        kind = messages.FetchRequest
        part = kind.FetchPartition(partition=0, partition_max_bytes=1 << 20)
        topic = kind.FetchTopic(topic="orders", partitions=[part])
        request = kind(max_wait_ms=60_000, min_bytes=1, topics=[topic])
        reader.socket.sendall(reader.connection.send(request, version=12))
        writer.ask(produce_request("orders"), 9)
        (event,) = reader.connection.receive(reader.socket.recv(65536))
        assert isinstance(event, ResponseReceived)
        assert len(event.body.responses[0].partitions[0].records) == len(BATCH)
        for one in (reader, writer):
            one.close()


def test_time_passes_by_itself() -> None:
    with Broker(topics={"orders": 1}) as broker:
        client = Blocking(broker.bootstrap)
        kind = messages.FetchRequest
        part = kind.FetchPartition(partition=0, partition_max_bytes=1 << 20)
        request = kind(max_wait_ms=20, min_bytes=1, topics=[kind.FetchTopic(topic="orders", partitions=[part])])
        assert client.ask(request, 12).responses[0].partitions[0].high_watermark == 0
        client.close()


def test_each_node_has_a_port() -> None:
    with Broker(nodes=3, topics={"orders": 3}) as broker:
        addresses = broker.bootstrap.split(",")
        assert len(set(addresses)) == 3
        client = Blocking(addresses[1])
        answer = client.ask(messages.MetadataRequest(topics=None), 12)
        assert [f"{one.host}:{one.port}" for one in answer.brokers] == addresses
        assert {one.leader_id for one in answer.topics[0].partitions} == {1, 2, 3}
        broker.move_leader("orders", 0, 2)
        moved = client.ask(messages.MetadataRequest(topics=None), 12).topics[0].partitions[0]
        assert (moved.leader_id, moved.leader_epoch) == (2, 1)
        client.close()


def test_in_asyncio() -> None:
    async def run() -> int:
        async with Broker(topics={"orders": 1}) as broker:
            host, _, port = broker.bootstrap.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            connection = Connection("client")
            writer.write(connection.send(messages.MetadataRequest(topics=None), version=12))
            (event,) = connection.receive(await reader.read(65536))
            assert isinstance(event, ResponseReceived)
            writer.close()
            assert len(broker.exchanges()) == 1
            return len(event.body.topics)

    assert asyncio.run(run()) == 1


@pytest.mark.wide
def test_what_is_sent_while_a_request_waits_is_bounded() -> None:
    # A client that floods: the broker stops reading, and goes on when the request is answered.
    with Broker(topics={"orders": 1}, settings=Settings(max_frame=1 << 20)) as broker:
        client = Blocking(broker.bootstrap)
        kind = messages.FetchRequest
        part = kind.FetchPartition(partition=0, partition_max_bytes=1 << 20)
        request = kind(max_wait_ms=100, min_bytes=1, topics=[kind.FetchTopic(topic="orders", partitions=[part])])
        client.socket.sendall(client.connection.send(request, version=12))
        many = [client.connection.send(messages.MetadataRequest(topics=[]), version=12) for _ in range(60_000)]
        client.socket.setblocking(False)
        flood, sent = b"".join(many), 0
        got = bytearray()
        while len(got) < 1 << 18:
            with suppress(BlockingIOError):
                sent += client.socket.send(flood[sent : sent + 65536]) if sent < len(flood) else 0
            with suppress(BlockingIOError):
                got += client.socket.recv(65536)
        client.close()
        assert broker.errors() == []


def test_with_tls_and_a_password() -> None:
    theirs, server, _ = contexts(ssl.TLSVersion.TLSv1_3, None, "ec")
    with Broker(tls=server, sasl=Sasl(users={"alice": "wonderland"})) as broker:
        client = Blocking(broker.bootstrap)
        client.socket = theirs.wrap_socket(client.socket)
        client.connection = Connection("client", sasl=True)
        client.ask(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1)
        client.ask(messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0wonderland"), 2)
        assert client.ask(messages.MetadataRequest(topics=[]), 12).brokers
        assert b"wonderland" in broker.pcapng()  # what was said, without TLS
        client.close()


def test_who_does_not_speak_tls_is_closed() -> None:
    _, server, _ = contexts(ssl.TLSVersion.TLSv1_3, None, "ec")
    with Broker(tls=server) as broker:
        plain = Blocking(broker.bootstrap)
        plain.socket.sendall(plain.connection.send(messages.MetadataRequest(topics=[]), version=12))
        with suppress(ConnectionResetError):
            while plain.socket.recv(65536):
                pass
        plain.close()
        assert broker.exchanges() == []


def test_a_port_in_use_is_said() -> None:
    with Broker() as broker:
        port = int(broker.bootstrap.rpartition(":")[2])
        with pytest.raises(OSError, match=r"[Aa]ddress already in use"), Broker(ports=[port]):
            pass
    with pytest.raises(ValueError, match="2 nodes with 1 ports"):
        Broker(nodes=2, ports=[9092])


def test_a_capture_replaces_a_link_and_does_not_follow_it(tmp_path: Path) -> None:
    other, link = tmp_path / "other", tmp_path / "said.pcapng"
    other.write_bytes(b"kept")
    link.symlink_to(other)
    with Broker() as broker:
        broker.write_pcapng(link)
    assert other.read_bytes() == b"kept"
    assert not link.is_symlink()
