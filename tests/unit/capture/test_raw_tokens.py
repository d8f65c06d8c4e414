"""Raw SASL tokens whose handshake was not captured: nobody makes numbers or names of what may be a password."""

from __future__ import annotations

import io
import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packets import Connection, pcap, request

import kwire
from kwire import capture, messages, tables
from kwire.kernels.engine import MACHINE, PYTHON, Engine, using

SECRET = b"Secr3tPassw0rd-with-more-than-a-hundred-characters-" * 3
TOKENS = (
    b"\0alice\0" + SECRET,
    b"\0u\0" + SECRET,
    b"\0\0\0" + SECRET,
    # The byte behind the zero is the length of a client_id, which is the password then.
    b"\0a-user7\0" + SECRET,
    # Two zeros among the first eight bytes, as headers have, and a password longer than what two letters say.
    b"\0u\0" + SECRET * 200,
    b"\0\0" + SECRET * 200,
    b"a\0bcdef\0" + SECRET * 200,
    b"az\0user1\0" + SECRET,
    b"n,,n=user,r=" + SECRET,
    b"c=biws,r=abc,p=" + SECRET,
    b"n,,\x01auth=Bearer " + SECRET + b"\x01\x01",
)
BROKERS = (b"v=" + SECRET[:40], b"v=abc", b"v=" + SECRET * 100)
"""Last messages of a broker in SCRAM: its signature."""
BEYOND_FRAMES = sorted({*tables.names(tables.CAPTURE)} - {"frames", "messages"})


def _rows(table: str, data: bytes, **options: Any) -> list[dict[str, Any]]:
    return [row for batch in capture.read(io.BytesIO(data), table, **options) for row in batch.to_pylist()]


def _captured(token: bytes, known: bool, kept: int | None = None) -> bytes:
    """A connection on which a token is sent, behind a request that is good where the connection is ``known``."""
    made = Connection().open()
    if known:
        made.send(request(18, 0, 1, b""))
    made.send(token) if kept is None else made.send_raw(struct.pack(">i", len(token)) + token[:kept])
    return pcap(made.close().packets)


def _numbers(row: dict[str, Any]) -> list[Any]:
    return [row[name] for name in ("api_key", "api_name", "api_version", "correlation_id", "client_id")]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("token", TOKENS)
def test_a_token_is_shown_by_its_size_alone(token: bytes, known: bool):
    for ports in ((9092,), None):
        data = _captured(token, known)
        for table in ("frames", "messages"):
            rows = [row for row in _rows(table, data, ports=ports) if row["status"] != "ok"]
            assert len(rows) == (known or ports is not None)
            for row in rows:
                assert row["status"] == "malformed"
                assert row["size"] == len(token)
                assert _numbers(row) == [None] * 5
                assert row["error"].endswith("a SASL token, perhaps")
        assert "Secr" not in repr([_rows(table, data, ports=ports) for table in BEYOND_FRAMES])


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_that_is_cut_off_is_not_shown(token: bytes):
    for kept in (3, 4, 8, 9, 10, 40):
        (row,) = [row for row in _rows("frames", _captured(token, True, kept), ports=(9092,)) if row["status"] != "ok"]
        assert _numbers(row) == [None] * 5, kept


@pytest.mark.parametrize("token", BROKERS)
@pytest.mark.parametrize("engine", [MACHINE, PYTHON])
def test_the_signature_of_a_broker_gives_no_number(token: bytes, engine: Engine):
    def captured(answer: bytes) -> bytes:
        made = Connection().open()
        for number in (1, 2):
            made.send(request(18, 0, number, b"")).answer(struct.pack(">i", number) + bytes(6))
            if number == 1:
                made.answer(answer)
        return pcap(made.close().packets)

    with using(engine):
        # That of other responses is what there is to know about them.
        for answer, number in ((token, None), (struct.pack(">i", 77) + b"some response", 77)):
            data = captured(answer)
            for table in ("frames", "messages"):
                (row,) = [row for row in _rows(table, data) if row["status"] != "ok"]
                assert (row["status"], row["correlation_id"], row["size"]) == ("unpaired", number, len(answer))
        everything = [_rows(name, captured(token)) for name in tables.names(tables.CAPTURE)]
    assert str(struct.unpack(">i", token[:4])[0]) not in repr(everything)


SHOWN = st.text(st.characters(exclude_categories=("C",)), min_size=1, max_size=40)
LONG = st.integers(1, 400)


@pytest.mark.wide
@given(st.one_of(st.just(""), SHOWN), SHOWN, SHOWN, LONG, st.sampled_from(("PLAIN", "SCRAM", "OAUTHBEARER")))
@settings(max_examples=200, deadline=None)
def test_no_token_of_text_is_a_request(authzid: str, user: str, password: str, times: int, mechanism: str):
    who = f"a={authzid}" if authzid else ""
    token = {
        "PLAIN": f"{authzid}\0{user}\0{password * times}",
        "SCRAM": f"n,{who},n={user},r={password * times}",
        "OAUTHBEARER": f"n,{who},\1auth=Bearer {password * times}\1\1",
    }[mechanism].encode()
    with using(PYTHON):
        for row in _rows("frames", _captured(token, known=True), ports=(9092,)):
            if row["status"] != "ok":
                assert _numbers(row) == [None] * 5


def test_requests_that_a_later_release_may_send_are_shown():
    for api, version in ((3, 99), (3, 300), (999, 0), (10_000, 1)):
        data = _captured(request(api, version, 7, b""), True)
        (row,) = [row for row in _rows("frames", data) if row["status"] != "ok"]
        assert row["status"] == "unsupported"
        assert [row["api_key"], row["api_version"], row["correlation_id"], row["client_id"]] == [
            api,
            version,
            7,
            "test",
        ]


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("engine", [PYTHON, MACHINE])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_client_id_that_reaches_into_a_token_is_not_shown(version: int, engine: Engine):
    asked = messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0wonderland")
    frame = kwire.encode_request(asked, api_version=version, correlation_id=2, client_id="app")
    for length in (*range(4, len(frame) - 10 + 2), 0x103):
        damaged = frame[:8] + struct.pack(">h", length) + frame[10:]
        made = Connection().open().send(request(18, 0, 1, b"", client="app")).send(damaged)
        made.send(request(3, 0, 3, b"\0\0\0\0", client="app"))
        with using(engine):
            found = [_rows(table, pcap(made.packets), ports=(9092,)) for table in ("frames", "messages", "connections")]
        frames, bodies, (connection,) = found
        assert {row["client_id"] for row in (*frames, *bodies)} == {"app", None}
        assert [row["client_id"] for row in frames if row["status"] == "ok"] == ["app", "app"]
        assert connection["client_ids"] == ["app"]


@pytest.mark.parametrize("engine", [PYTHON, MACHINE])
def test_a_client_id_with_control_characters_is_shown_of_a_good_request(engine: Engine):
    data = pcap(Connection().open().send(request(3, 0, 1, b"\0\0\0\0", client="a\x1b\0b")).packets)
    with using(engine):
        assert [row["client_id"] for row in _rows("frames", data, ports=(9092,))] == ["a\x1b\0b"]


def test_few_tokens_wait_for_their_answer():
    made = Connection().open()
    made.send(request(17, 0, 1, b"\0\5PLAIN")).answer(b"\0\0\0\1\0\0\0\0\0\1\0\5PLAIN")
    for _ in range(3):
        made.send(b"t").answer(b"u")
    for _ in range(100):
        made.send(b"t")
    rows = _rows("frames", pcap(made.close().packets))
    assert [row["status"] for row in rows[2:8]] == ["sasl"] * 6
    assert [row["latency_ms"] is None for row in rows[2:8]] == [True, False] * 3
    assert [row["status"] for row in rows[8:]] == ["sasl"] * 100


def test_a_token_of_kerberos_is_one_behind_a_hole_too():
    token = b"\x60\x28" + bytes.fromhex("06092a864886f712010202") + bytes(29)

    def captured(mss: int) -> bytes:
        # The broker is known before this connection has anything to tell.
        told = Connection(step=1000).open().send(request(18, 0, 1, b"")).answer(struct.pack(">i", 1) + bytes(6))
        made = Connection(client=("10.0.0.9", 40001), time=told.time, step=30_000_000, mss=mss).open()
        made.send(request(17, 0, 1, b"\0\x06GSSAPI"))
        lost = len(made.packets)
        made.answer(struct.pack(">i", 1) + b"\0\0\0\0\0\1\0\x06GSSAPI").send(token).answer(b"\x60" + bytes(20))
        made.send(b"abcd").send(request(18, 0, 2, b"")).answer(struct.pack(">i", 2) + bytes(6))
        return pcap(told.packets + made.packets[:3] + made.packets[lost:])

    for mss in (1, 3, 5, 20, 1460):
        data = captured(mss)
        for engine in (MACHINE, PYTHON):
            with using(engine):
                rows = _rows("frames", data)
                asked = [row for row in rows if row["connection"] == 1 and row["direction"] == "request"]
                assert [(row["status"], row["size"]) for row in asked] == [
                    ("gap", 26), ("sasl", 42), ("sasl", 4), ("ok", 14),
                ]  # fmt: skip
                answered = [row for row in rows if row["connection"] == 1 and row["direction"] == "response"]
                assert [row["status"] for row in answered] == ["unpaired", "sasl", "ok"]
        for window in range(40, 900, 60) if mss == 1460 else (70,):
            assert _rows("frames", data, window=window) == rows


@pytest.mark.parametrize("engine", [MACHINE, PYTHON])
def test_a_response_that_is_captured_before_its_request_is_no_token(engine: Engine):
    """The last token of GSSAPI has no answer: one would still be waited for."""
    made = Connection(step=1_000_000).open().send(request(17, 0, 1, b"\0\x06GSSAPI"))
    made.answer(struct.pack(">i", 1) + b"\0\0\0\0\0\1\0\x06GSSAPI")
    made.send(b"\x60first").answer(b"\x60" + bytes(20)).send(b"last")
    before = len(made.packets)
    made.send(request(18, 0, 2, b"")).answer(struct.pack(">i", 2) + bytes(6))
    asked, answered = made.packets[before:]
    with using(engine):
        in_order = _rows("frames", pcap(made.packets))
        assert [row["status"] for row in in_order] == ["ok", "ok", "sasl", "sasl", "sasl", "ok", "ok"]
        for step in (1_000_000, 19_000_000, 30_000_000):
            late = replace(asked, time=answered.time + step)
            data = pcap([*made.packets[:before], answered, late])
            rows = sorted(_rows("frames", data), key=lambda row: (row["direction"], row["timestamp"]))
            about = [(row["direction"], row["status"], row["size"]) for row in rows]
            if step < 20_000_000:
                assert about == sorted(((row["direction"], row["status"], row["size"]) for row in in_order), key=_way)
            for window in (50, 90, 1000):
                assert sorted(_rows("frames", data, window=window), key=repr) == sorted(rows, key=repr)


def _way(about: tuple[str, str, int]) -> str:
    return about[0]
