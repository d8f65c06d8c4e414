"""``kwire fuzz tcp``: what is wrong with a server is found, and only servers of this machine are asked."""

from __future__ import annotations

import shlex
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kwire import cli
from kwire.errors import KwireError
from kwire.testing import corpus, feeding
from kwire.testing.broker import Broker
from kwire.testing.corpus import Case
from kwire.testing.feeding import Bounds
from kwire.testing.listening import Listening, size_cases

SERVED = b"\0\0\0\x16" + b"\0\0\0\x01" + b"\0\0" + b"\0\0\0\x02" + b"\0\x0c\0\0\0\x04" + b"\0\x12\0\0\0\0"
"""The answer to ApiVersions v0 with correlation id 1: Heartbeat v0-4, ApiVersions v0."""


def case(kind: str = "one", version: int = 4, api: str = "Heartbeat") -> Case:
    return next(one for one in corpus.cases([api], [kind], versions=[version]) if one.role == "request")


@contextmanager
def serving(answer: Callable[[socket.socket, bytes], None]) -> Iterator[str]:
    """A server that says which versions it has, and then does as ``answer`` says with each request."""

    def one(link: socket.socket) -> None:
        with link:
            while data := link.recv(65536):
                if data[4:8] == b"\0\x12\0\0":
                    link.sendall(SERVED)
                else:
                    answer(link, data)

    def accept() -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(link,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def said(answer: Callable[[socket.socket, bytes], None], some: Case, seconds: float = 5.0) -> feeding.Answer:
    with serving(answer) as address:
        parser = Listening(address, Bounds(seconds))
        try:
            return parser.ask(some)
        finally:
            parser.close()


def right(link: socket.socket, data: bytes) -> None:
    link.sendall(b"\0\0\0\x0c" + data[8:12] + b"\0" + bytes(4) + b"\0\0" + b"\0")


def test_an_answer_accepts() -> None:
    assert said(right, case()).said == "accept"
    assert said(right, case("null")).said == "accept"
    assert feeding.judge(case("null"), said(right, case("null"))) == "accepts"


def test_an_error_code_refuses_what_is_damaged() -> None:
    def error(link: socket.socket, data: bytes) -> None:
        link.sendall(b"\0\0\0\x0c" + data[8:12] + b"\0" + bytes(4) + b"\0\x2a" + b"\0")

    answer = said(error, case("null"))
    assert (answer.said, answer.detail) == ("refuse", "error 42")
    assert said(error, case()).said == "accept"


def test_a_closed_connection_refuses() -> None:
    answer = said(lambda link, data: link.shutdown(socket.SHUT_RDWR), case())
    assert (answer.said, answer.detail) == ("refuse", "closed the connection")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\0\0\0\x0c\0\0\0\x63\0\0\0\0\0\0\0\0", "correlation id 99, asked with 7"),
        (b"\0\0\0\x05\0\0\0\x07\0", "HeartbeatResponse"),
        (b"\xff\xff\xff\xff", "a response of -1 bytes"),
    ],
)
def test_what_is_no_answer_is_garbled(data: bytes, why: str) -> None:
    answer = said(lambda link, _: link.sendall(data), case())
    assert answer.said == "garbled"
    assert why in answer.detail


def test_silence_is_a_hang_but_where_the_request_may_wait() -> None:
    assert said(lambda link, data: None, case(), 0.2).said == "hang"
    with serving(lambda link, data: None) as address:
        parser = Listening(address, Bounds(0.2))
        parser._served = None
        fetch = next(one for one in corpus.cases(["Fetch"], ["largest"], versions=[4]) if one.role == "request")
        assert parser.ask(fetch).said == "skip"
        parser.close()


def test_what_a_server_does_not_serve_is_skipped() -> None:
    assert said(right, case(api="Metadata", version=1)).said == "skip"
    assert said(right, next(corpus.cases(["Heartbeat"], ["one"], versions=[9]), case(version=4))).said == "accept"


def test_requests_between_brokers_are_asked_on_demand_only() -> None:
    shutdown = case(api="ControlledShutdown", version=2)
    with serving(right) as address:
        for control in (False, True):
            parser = Listening(address, Bounds(1.0), control=control)
            parser._served = None
            assert parser.serves(shutdown) is control
            parser.close()


def test_a_server_that_ends_has_crashed_and_is_started_again(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script = tmp_path / "server.py"
    script.write_text(
        "import os, socket\n"
        f"listener = socket.create_server(('127.0.0.1', {port}))\n"
        "while True:\n"
        "    link, _ = listener.accept()\n"
        "    data = link.recv(1000)\n"
        f"    if data[4:8] == bytes([0, 18, 0, 0]): link.sendall({SERVED!r})\n"
        "    elif data: raise IndexError('of the server')\n"
    )
    command = f"{shlex.quote(sys.executable)} {script}"
    parser = Listening(f"127.0.0.1:{port}", Bounds(5.0), command=command)
    try:
        for _ in range(2):
            answer = parser.ask(case())
            assert answer.said == "crash"
            assert "exit code 1: IndexError: of the server" in answer.detail
    finally:
        parser.close()


def test_the_end_of_a_server_without_a_command_is_an_error() -> None:
    with Broker() as broker:
        parser = Listening(broker.bootstrap, Bounds(1.0))
    with pytest.raises(KwireError, match="nobody listens any more"):
        parser.ask(case())
    parser.close()


def test_the_mock_broker_does_what_the_protocol_says(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with Broker(release="3.9", topics={"a": 3}) as broker:
        apis = "Heartbeat,Metadata,OffsetFetch,ListGroups,sizes"
        out = str(tmp_path / "out.json")
        words = ["fuzz", "tcp", broker.bootstrap, "--api", apis, "--most", "300", "--rate", "0", "--json", out]
        assert cli.main(words) == 0, capsys.readouterr().out
    assert "0 answers wrong" in capsys.readouterr().out
    assert '"wrong": []' in (tmp_path / "out.json").read_text()


def test_wrong_sizes_close_the_connection() -> None:
    with Broker() as broker:
        parser = Listening(broker.bootstrap, Bounds(5.0))
        for one in size_cases():
            assert parser.ask(one).said == "refuse", one.name
        parser.close()


def test_only_this_machine_is_asked() -> None:
    with pytest.raises(ValueError, match="--anywhere"):
        Listening("192.0.2.1:9092", Bounds(1.0))
    with pytest.raises(ValueError, match="no address"):
        Listening("localhost", Bounds(1.0))
    with pytest.raises(KwireError, match="nobody listens"):
        Listening("127.0.0.1:1", Bounds(1.0))
    assert cli.main(["fuzz", "tcp", "192.0.2.1:9092"]) == 2
    assert cli.main(["fuzz", "server", "--host", "192.0.2.1"]) == 2
