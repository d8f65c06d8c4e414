"""``kwire fuzz server``: responses are damaged where the corpus says, and what is wrong with a client is found."""

from __future__ import annotations

import json
import random
import re
import shlex
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from broker_sockets import Blocking, produce_request
from hypothesis import given
from hypothesis import strategies as st

import kwire
from kwire import cli, messages
from kwire.errors import KwireError
from kwire.testing import Conversation, conversations
from kwire.testing.broker import Broker, Settings
from kwire.testing.broker.faults import DAMAGES
from kwire.testing.corpus import KINDS, RECORD_KINDS, hurt
from kwire.testing.feeding import Bounds
from kwire.testing.hostile import REACTIONS, Clients, Plan, kinds, reactions

ROOT = Path(__file__).parents[3]
CLIENT = """
import os, socket, struct, sys, time
host, port = sys.argv[1].split(":")
link = socket.create_connection((host, int(port)), 5)
for turn in range(2):
    link.sendall(struct.pack(">ihhih", 10, 18, 0, turn, -1))
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        part = link.recv(65536)
        if not part:
            sys.exit(3)
        data += part
    count = int.from_bytes(data[10:14], "big", signed=True)
    if count < 0:
        {}
    if len(data) != 14 + 6 * count:
        sys.exit(3)
"""


@given(conversations(release="3.9"), st.sampled_from([*KINDS, *RECORD_KINDS]), st.integers(0, 99))
def test_damage_to_a_response_has_the_verdict_of_its_kind(talk: Conversation, kind: str, seed: int) -> None:
    answers = [one for one in talk.frames if one.direction == "response" and one.body.SCHEMA.api_key != 18]
    for one in answers[:4]:
        about = {"api_key": one.api_key, "api_version": one.api_version}
        frame = kwire.encode_response(one.body, api_version=one.api_version, correlation_id=one.correlation_id)
        made = hurt(frame, one.api_key, one.api_version, kind, random.Random(seed))
        if made is None:
            continue
        assert made == hurt(frame, one.api_key, one.api_version, kind, random.Random(seed))
        try:
            kwire.decode_response(made.data, trailing=True, **about)
        except KwireError:
            assert made.verdict != "must-accept"
        else:
            assert kind in RECORD_KINDS or made.verdict != "must-refuse"


def test_a_rule_takes_kinds_of_the_corpus() -> None:
    with Broker(release="3.9", topics={"orders": 1}, settings=Settings(seed=3)) as broker:
        broker.on("Metadata", nth=1).damage("cut")
        broker.on("Metadata", nth=2).damage("truncated")
        broker.on("Produce").damage("null", "too-large")
        client = Blocking(broker.bootstrap)
        for _ in range(2):
            with pytest.raises(KwireError):
                client.ask(messages.MetadataRequest(topics=None), 12)
            client = Blocking(broker.bootstrap)
        with pytest.raises(KwireError):
            client.ask(produce_request("orders"), 8)
        first, second, third = broker.cases()
    assert (first.api, first.damage, first.verdict) == ("Metadata", "cut", "must-refuse")
    assert first.path is not None
    assert (second.damage, second.body_at) == ("truncated", None)
    assert third.damage in ("null", "too-large")


def test_each_api_has_its_kinds() -> None:
    assert set(kinds("Metadata")) == {*KINDS, *DAMAGES}
    assert set(kinds("Fetch")) > {*KINDS, *DAMAGES, "batch-bomb"}


def command(folder: Path, what: str) -> str:
    file = folder / "client.py"
    file.write_text(CLIENT.format(what))
    return f"{shlex.quote(sys.executable)} {file} {{}}"


@pytest.mark.parametrize(
    ("what", "said"),
    [("sys.exit(3)", "refuse"), ("os.abort()", "crash"), ("time.sleep(60)", "hang"), ("sys.exit(0)", "refuse")],
)
def test_what_a_client_makes_of_damage(what: str, said: str, tmp_path: Path) -> None:
    clients = Clients(command(tmp_path, what), Bounds(1.5), (3,), release="2.8")
    found = clients.ask(Plan("ApiVersions", 1, "negative-length", 0))
    assert found is not None
    case, answer = found
    assert (case.api, case.damage, case.verdict) == ("ApiVersions", "negative-length", "must-refuse")
    assert answer.said == said


def test_what_a_response_has_no_place_for_is_left_out(tmp_path: Path) -> None:
    clients = Clients(command(tmp_path, "pass"), Bounds(5.0), (3,))
    assert clients.ask(Plan("ApiVersions", 1, "bool-not-1", 0)) is None


def test_the_command_reports_and_writes_each_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["fuzz", "server", "--cmd", command(tmp_path, "os.abort()"), "--refused", "3", "--release", "2.8"]
    words += ["--kind", "negative-length,cut", "--out", str(tmp_path / "cases"), "--json", str(tmp_path / "out.json")]
    assert cli.main(words) == 1
    assert "crashes: negative-length" in capsys.readouterr().out
    report = json.loads((tmp_path / "out.json").read_text())
    assert {one["wrong"] for one in report["wrong"]} == {"crash"}
    lines = (tmp_path / "cases" / "manifest.jsonl").read_text().splitlines()
    assert len(lines) == report["asked"] == 4


def test_a_client_that_fails_anyway_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["fuzz", "server", "--cmd"]
    assert cli.main([*words, f"{shlex.quote(sys.executable)} -c 'import sys; sys.exit(5)' {{}}"]) == 2
    assert "fails where nothing is damaged: crash exit code 5" in capsys.readouterr().err
    assert cli.main([*words, f"{shlex.quote(sys.executable)} -c pass {{}}"]) == 2
    assert "asked the broker for nothing" in capsys.readouterr().err
    assert cli.main([*words, "client"]) == 2
    assert "has no {}" in capsys.readouterr().err


def test_without_a_client_it_is_a_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["fuzz", "server", "--seconds", "0.2", "--share", "1", "--kind", "cut"]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert out.startswith("127.0.0.1:")
    assert out.endswith("0 responses damaged\n")


def asked(link: socket.socket, message: Any) -> None:
    """A request, and the bytes of its answer or the end of the connection."""
    frame = kwire.encode_request(message, api_version=12, correlation_id=7, client_id="me")
    link.sendall(len(frame).to_bytes(4) + frame)
    assert link.recv(65536)


@pytest.mark.parametrize("word", REACTIONS)
def test_it_says_what_a_client_did_after_damage(word: str) -> None:
    with Broker(release="3.9", topics={"orders": 1}) as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        broker.on("Metadata", nth=1).damage("cut_off" if word == "was cut off" else "trailing")
        link = socket.create_connection((host, int(port)), 5)
        asked(link, messages.MetadataRequest(topics=None))
        if word in ("went on", "asked again"):
            asked(link, messages.MetadataRequest(topics=None if word == "asked again" else []))
        elif word.startswith("closed"):
            link.close()
            until = time.monotonic() + 10
            while not broker.exchanges()[0].left and time.monotonic() < until:
                time.sleep(0.01)
        if word == "closed and asked again":
            asked(socket.create_connection((host, int(port)), 5), messages.MetadataRequest(topics=[]))
        ((exchange, said),) = reactions(broker.exchanges())
        link.close()
    assert said == word
    assert exchange.damage is not None
    assert exchange.damage.api == "Metadata"


def test_the_page_has_all_reactions() -> None:
    page = (ROOT / "docs" / "how-to" / "test-a-client.md").read_text()
    assert dict(re.findall(r"^\| `([a-z ]+)` \| (.+) \|$", page, re.MULTILINE)) == REACTIONS
