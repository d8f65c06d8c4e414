"""SASL tokens against the examples of the RFCs, and challenges of nonsense."""

from __future__ import annotations

import pytest

from kwire.errors import ProtocolError
from kwire.protocol.sasl import OAuthBearer, Plain, Scram

# RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
PROOF = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def scram() -> Scram:
    return Scram("SCRAM-SHA-256", "user", "pencil", nonce=NONCE)


def test_scram_is_the_example_of_its_rfc() -> None:
    exchange = scram()
    assert exchange.first() == b"n,,n=user,r=" + NONCE.encode()
    assert exchange.next(CHALLENGE) == PROOF
    assert exchange.next(SIGNATURE) is None
    with pytest.raises(ProtocolError):
        exchange.next(SIGNATURE)


def test_scram_names_and_extensions() -> None:
    exchange = Scram("SCRAM-SHA-512", "a=b,c", "x", nonce="n", extensions={"tokenauth": "true"})
    assert exchange.first() == b"n,,n=a=3Db=2Cc,r=n,tokenauth=true"
    assert Scram("SCRAM-SHA-512", "a", "b").first() != Scram("SCRAM-SHA-512", "a", "b").first()
    with pytest.raises(ProtocolError, match="no SCRAM mechanism"):
        Scram("SCRAM-SHA-1", "a", "b")


@pytest.mark.parametrize(
    ("challenge", "text"),
    [
        (b"e=unknown-user", "refuses: unknown-user"),
        (CHALLENGE.replace(b"r=rO", b"r=xx"), "nonce"),
        (f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode(), "nonce"),
        (CHALLENGE.replace(b"i=4096", b"i=0"), "iterations"),
        (CHALLENGE.replace(b"i=4096", b"i=99999999999999999999"), "iterations"),
        (CHALLENGE.replace(b"i=4096", b"i=-1"), "iterations"),
        (CHALLENGE.replace(b"s=W", b"s=!"), "base64"),
        (b"", "base64"),
        (b"\xff", "UTF-8"),
    ],
)
def test_scram_challenges_of_nonsense(challenge: bytes, text: str) -> None:
    with pytest.raises(ProtocolError, match=text):
        scram().next(challenge)


def test_scram_knows_a_broker_that_does_not_know_the_password() -> None:
    exchange = scram()
    exchange.next(CHALLENGE)
    with pytest.raises(ProtocolError, match="does not know the password"):
        exchange.next(SIGNATURE.replace(b"6r", b"7r"))


def test_plain() -> None:
    exchange = Plain("alice", "wonderland")
    assert exchange.first() == b"\0alice\0wonderland"
    exchange.next(b"")
    with pytest.raises(ProtocolError):
        exchange.next(b"?")
    with pytest.raises(ProtocolError, match="NUL"):
        Plain("a\0b", "c")


def test_oauthbearer() -> None:
    exchange = OAuthBearer("abc.def", {"cluster": "x"})
    assert exchange.first() == b"n,,\x01auth=Bearer abc.def\x01cluster=x\x01\x01"
    assert exchange.next(b"") is None
    assert exchange.next(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(ProtocolError):
        OAuthBearer("a\x01b")


@pytest.mark.parametrize(
    "exchange",
    [Plain("alice", "wonderland"), OAuthBearer("wonderland"), Scram("SCRAM-SHA-256", "alice", "wonderland")],
    ids=lambda one: one.mechanism,
)
def test_no_password_is_shown(exchange: object) -> None:
    assert "wonderland" not in repr(exchange)
