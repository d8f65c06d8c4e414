"""A client that blocks, for the broker and the proxy of ``kwire.testing`` on sockets."""

from __future__ import annotations

import socket
from typing import Any

from broker_talk import BATCH

from kwire import messages
from kwire.protocol import Connection
from kwire.protocol.connection import ResponseReceived


class Blocking:
    """A client that blocks."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), 5)
        self.connection = Connection("client", client_id="blocking")

    def ask(self, message: Any, version: int) -> Any:
        self.socket.sendall(self.connection.send(message, version=version))
        while True:
            # All events are taken: a token comes after its response.
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            got = [one for one in self.connection.receive(data) if isinstance(one, ResponseReceived)]
            if got:
                return got[-1].body

    def close(self) -> None:
        self.socket.close()


def produce_request(topic: str) -> Any:
    kind = messages.ProduceRequest
    part = kind.PartitionProduceData(index=0, records=BATCH)
    return kind(acks=-1, topic_data=[kind.TopicProduceData(name=topic, partition_data=[part])])
