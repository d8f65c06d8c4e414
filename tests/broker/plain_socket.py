"""A Kafka client that is a socket and kwire's codec, and nothing else.

``Connection.ask(body, version)`` sends one request and returns the decoded response. Used by the broker tests, where it
shows that brokers take what kwire writes, and by the recorder for API versions that no client sends.
"""

from __future__ import annotations

import itertools
import socket
import struct
from types import TracebackType
from typing import Any, Self

import kwire

__all__ = ["Connection"]


class Connection:
    """One connection to a broker; a context manager. ``client_id`` goes into every request header."""

    def __init__(self, address: str, client_id: str = "kwire-raw", seconds: float = 60.0) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout=seconds)
        self.client_id = client_id
        self._correlation = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def ask(self, body: Any, version: int, *, answer: bool = True) -> Any:
        """Send a request; returns the body of the response, or None with ``answer=False`` (Produce with acks=0).

        Raises ``ConnectionError`` when the broker hangs up instead, ``TimeoutError``, and what kwire raises.
        """
        correlation = next(self._correlation)
        frame = kwire.encode_request(body, api_version=version, correlation_id=correlation, client_id=self.client_id)
        self.send(frame)
        if not answer:
            return None
        reply = self.receive()
        got = kwire.decode_response(reply, api_key=body.SCHEMA.api_key, api_version=version)
        if got.header.correlation_id != correlation:
            raise ConnectionError(f"answer {got.header.correlation_id} to request {correlation}")
        return got.body

    def send(self, frame: bytes) -> None:
        """Send one frame as it is, with its size in front."""
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self) -> bytes:
        """The next frame, without its size."""
        size = struct.unpack(">i", self._exactly(4))[0]
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise ConnectionError("the broker closed the connection")
            data += more
        return bytes(data)
