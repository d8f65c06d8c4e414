"""Asks a parser that listens on a port: each case of the corpus is a request of a client (``kwire fuzz tcp``).

``Listening`` is a parser as ``feeding`` knows it. What it says of a case:

- ``accept``: a response came that can be read. ``refuse``: the connection was closed, or the response has an error code
  where the request has to be refused.
- ``garbled``: a response came that nobody can read, or that answers another request.
- ``hang``: neither, in time. ``crash``: nobody listens any more.
- ``skip``: the peer does not serve this version, or it may wait by what the request says.

Rules kept here:

- The address must be one of this machine, unless ``anywhere`` says otherwise. There are no more than ``rate`` cases a
  second.
- Requests between brokers, which shut a broker down or change its partitions, are asked with ``control`` only.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any, Final

from kwire import messages, versions
from kwire.codec.objects import WireStruct
from kwire.errors import KwireError
from kwire.protocol.headers import decode_response, encode_request
from kwire.schema.keys import ApiKey
from kwire.schema.model import NO_VERSIONS, Versions
from kwire.testing.corpus.case import Case
from kwire.testing.corpus.damage import REFUSE
from kwire.testing.feeding import Answer, Bounds, words_of

__all__ = ["SIZES", "Listening", "is_local", "size_cases"]

SIZES: Final = "sizes"
"""What stands for an API where the size of a frame is wrong."""

CONTROL: Final = frozenset(
    (
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.UPDATE_FEATURES,
    )
)
"""APIs with which brokers control each other, or that change a cluster for good."""

_SOURCE: Final = "protocol guide, Network: a size, and so many bytes"
_START: Final = 30.0
"""Seconds in which a command must listen."""
_MOST: Final = 128 << 20
"""Bytes of a response at most."""
_SHORT: Final = 0.5
"""Seconds for an answer that may take longer by what the request says."""
_WAITS: Final = ("max_wait_ms", "timeout_ms", "rebalance_timeout_ms", "session_timeout_ms")
"""Fields that say how long an answer may take."""
_WAITING: Final = frozenset((ApiKey.SYNC_GROUP, ApiKey.JOIN_GROUP, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS))
"""APIs whose answer may wait: for other clients, or for the share coordinator. Of a partition that there is not, Kafka
4.4 asks it five times, with pauses of 1 to 16 s (PersisterStateManager)."""


def size_cases() -> Iterator[Case]:
    """Requests whose size is wrong. Their bytes have the size."""
    frame = _api_versions(1)
    for name, data in (
        ("size-negative", struct.pack(">i", -1) + frame),
        ("size-least", struct.pack(">i", -(1 << 31)) + frame),
        ("size-largest", struct.pack(">i", (1 << 31) - 1) + frame),
        ("size-zero", struct.pack(">i", 0)),
        ("size-of-three", struct.pack(">i", 3) + frame[:3]),
        ("size-too-large", struct.pack(">i", len(frame) + 1) + frame),
        ("size-cut", b"\0\0"),
    ):
        yield Case(
            name=f"{SIZES}/{name}",
            role="request",
            data=data,
            verdict=REFUSE,
            source=_SOURCE,
            kafka=None,
            api=SIZES,
            api_key=int(ApiKey.API_VERSIONS),
            version=0,
            body_at=None,
            damage=name,
        )


def _api_versions(number: int) -> bytes:
    return encode_request(messages.ApiVersionsRequest(), api_version=0, correlation_id=number, client_id="kwire")


class Listening:
    """A parser at ``address``, such as ``127.0.0.1:9092``.

    ``command`` starts it, and starts it again where it has ended. ``rate``: cases a second at most, 0 for no end.
    Raises ``ValueError`` for an address that is none, or is not on this machine.
    """

    def __init__(
        self,
        address: str,
        bounds: Bounds,
        *,
        command: str | None = None,
        rate: float = 0.0,
        anywhere: bool = False,
        control: bool = False,
    ) -> None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(f"{address!r} is no address such as 127.0.0.1:9092")
        self._address = host.strip("[]"), int(port)
        if not anywhere and not is_local(self._address[0]):
            raise ValueError(f"{host} is not this machine; --anywhere asks others, which must want to be asked")
        self._bounds = bounds
        self._words = None if command is None else words_of(command)
        self._gap = 1 / rate if rate else 0.0
        self._next = 0.0
        self._control = control
        self._child: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - close() does it
        self._socket: socket.socket | None = None
        self._served: dict[int, Versions] | None = None
        self._begin()

    # -- the peer

    def _begin(self) -> None:
        """Start the command, and ask what is served. Raises ``KwireError``."""
        if self._words is not None:
            self._child = subprocess.Popen(
                self._words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._errors
            )
        until = time.monotonic() + (_START if self._words is not None else 0.0)
        while not self._alive():
            if time.monotonic() >= until or (self._child is not None and self._child.poll() is not None):
                raise KwireError(f"nobody listens on {self._address[0]}:{self._address[1]}{self._last_words()}")
            time.sleep(0.05)
        if self._served is None:
            with contextlib.suppress(OSError, KwireError, EOFError):
                link = self._connected()
                link.sendall(_sized(_api_versions(1)))
                answer = decode_response(_frame(link), api_key=ApiKey.API_VERSIONS, api_version=0)
                self._served = versions.served(answer.body)
            self._drop()

    def _alive(self) -> bool:
        try:
            socket.create_connection(self._address, self._bounds.seconds).close()
        except OSError:
            return False
        return True

    def _answers(self) -> bool:
        """Whether the peer is still there. One that ends may take connections a little longer."""
        if self._served is None:
            return self._alive()
        try:
            link = self._connected()
            link.sendall(_sized(_api_versions(1)))
            _frame(link, time.monotonic() + self._bounds.seconds)
        except (OSError, EOFError, ValueError):
            self._drop()
            return False
        return True

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection(self._address, self._bounds.seconds)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _last_words(self) -> str:
        self._errors.seek(0)
        text = self._errors.read()[-4096:].decode("utf-8", "replace").strip().rpartition("\n")[2]
        code = None if self._child is None else self._child.poll()
        return (f", exit code {code}" if code is not None else "") + (f": {text[-300:]}" if text else "")

    def close(self) -> None:
        """Ends the connection, and the command."""
        self._drop()
        if self._child is not None:
            self._child.terminate()
            try:
                self._child.wait(10)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
            self._child = None
        self._errors.close()

    # -- cases

    def serves(self, case: Case) -> bool:
        """Whether it is to be asked about a case: a request of a version that the peer says it serves."""
        if case.role != "request" or (case.api_key in CONTROL and not self._control):
            return False
        return self._served is None or case.version in self._served.get(case.api_key, NO_VERSIONS)

    def ask(self, case: Case) -> Answer:
        """What the peer makes of a case. Raises ``KwireError`` where it cannot be started again."""
        if not self.serves(case):
            return Answer("skip")
        time.sleep(max(0.0, self._next - time.monotonic()))
        self._next = max(self._next + self._gap, time.monotonic())
        reused = self._socket is not None
        answer = self._asked(case)
        if reused and self._socket is None and answer.said == "refuse":
            # The peer may have closed the connection after the answer before: a new one tells.
            answer = self._asked(case)
        if self._socket is not None and answer.said in ("accept", "refuse"):
            return answer
        self._drop()
        if not self._answers():
            if self._child is not None:
                _wait(self._child)  # its last words
            answer = Answer("crash", f"nobody listens any more{self._last_words()}")
            if self._words is None:
                raise KwireError(f"after {case.name} ({case.data[:64].hex()}): {answer.detail}")
            assert self._child is not None
            self._child.kill()
            self._child.wait()
            self._begin()
        return answer

    def _asked(self, case: Case) -> Answer:
        sizes = case.api == SIZES
        may_wait = not sizes and _may_wait(case)
        try:
            link = self._connected()
            link.sendall(case.data if sizes else _sized(case.data))
            if sizes:
                link.shutdown(socket.SHUT_WR)
            seconds = min(_SHORT, self._bounds.seconds) if may_wait else self._bounds.seconds
            frame = _frame(link, time.monotonic() + seconds)
        except TimeoutError:
            self._drop()
            return Answer("skip" if may_wait else "hang", f"no answer in {self._bounds.seconds} s")
        except (EOFError, OSError) as error:
            self._drop()
            how = "closed" if isinstance(error, EOFError) else "reset"
            return Answer("skip" if may_wait and case.verdict != REFUSE else "refuse", f"{how} the connection")
        except ValueError as error:
            return Answer("garbled", str(error))
        return self._read(case, frame)

    def _read(self, case: Case, frame: bytes) -> Answer:
        try:
            made = decode_response(frame, api_key=case.api_key, api_version=case.version)
        except KwireError as error:
            return Answer("garbled", str(error))
        if case.body_at is not None:
            wanted = int.from_bytes(case.data[4:8], signed=True)
            if made.header.correlation_id != wanted:
                return Answer("garbled", f"correlation id {made.header.correlation_id}, asked with {wanted}")
        code = next(_codes(made.body), 0)
        if code and case.verdict == REFUSE:
            return Answer("refuse", f"error {code}")
        return Answer("accept", f"error {code}" if code else "")


def is_local(host: str) -> bool:
    """Whether all addresses of a host are of this machine's loopback. Raises ``ValueError`` for an unknown host."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ValueError(f"{host}: {error.strerror}") from None
    return all(ipaddress.ip_address(str(one[4][0]).partition("%")[0]).is_loopback for one in found)


def _wait(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(1.0)


def _sized(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def _frame(link: socket.socket, until: float | None = None) -> bytes:
    """The next frame. Raises ``EOFError``, ``TimeoutError``, and ``ValueError`` for a size that none has."""

    def take(count: int) -> bytes:
        got = bytearray()
        while len(got) < count:
            if until is not None:
                left = until - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                link.settimeout(left)
            part = link.recv(min(count - len(got), 1 << 16))
            if not part:
                raise EOFError
            got += part
        return bytes(got)

    size = int.from_bytes(take(4), signed=True)
    if not 4 <= size <= _MOST:
        raise ValueError(f"a response of {size} bytes")
    return take(size)


def _may_wait(case: Case) -> bool:
    """Whether no answer, or none in time, may be right: by a timeout in the request, or as acks=0 wants it."""
    body: Any = None if case.recipe is None else case.recipe.body
    if case.api_key in _WAITING or getattr(body, "acks", None) == 0:
        return True
    return any(getattr(body, name, 0) for name in _WAITS)


def _codes(body: WireStruct) -> Iterator[int]:
    """The error codes in a body that are not 0."""
    for field in body.FIELDS:
        value = getattr(body, field.name)
        if field.name.endswith("error_code") and value:
            yield int(value)
        elif isinstance(value, WireStruct):
            yield from _codes(value)
        elif isinstance(value, list):
            for one in value:
                if isinstance(one, WireStruct):
                    yield from _codes(one)
