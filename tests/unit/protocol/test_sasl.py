"""SASL tokens against the examples of the RFCs, and challenges of nonsense."""

from __future__ import annotations

import pytest

from kwire.errors import DecodeError, ProtocolError, UnsupportedVersionError
from kwire.protocol.sasl import OAuthBearer, Plain, Scram, refusal, refused_by

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


def answered(body: bytes) -> bytes:
    return b"\0\0\0\7" + body


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\0\x3a\0\4oops\0\0\0\0", "oops"),
        (b"\0\x3a\xff\xff\0\0\0\0", None),
        # A null token, which no version allows.
        (b"\0\x3a\0\4oops\xff\xff\xff\xff", "oops"),
        # Cut off within the token, within the message, before it.
        (b"\0\x3a\0\4oops\0\0", "oops"),
        (b"\0\x3a\0\4oo", ""),
        (b"\0\x3a", ""),
    ],
)
def test_a_refusal_is_read_as_far_as_it_is_there(body: bytes, message: str | None) -> None:
    found = refusal(answered(body), 36, 0)
    assert found is not None
    assert (found.body.error_code, found.body.error_message) == (58, message)
    assert found.header.correlation_id == 7


def test_what_is_no_refusal_is_none() -> None:
    assert refusal(answered(b"\0\0\xff\xff\0\0\0\3tok"), 36, 0) is None
    # Damaged, without an error, or with one that has no name.
    assert refusal(answered(b"\0\0\xff\xff\xff\xff\xff\xff"), 36, 0) is None
    assert refusal(answered(b"\x7f\xff\xff\xff\xff\xff\xff\xff"), 36, 0) is None
    with pytest.raises(DecodeError):
        refusal(answered(b"\0"), 36, 0)
    with pytest.raises(UnsupportedVersionError):
        refusal(answered(b"\0\x3a"), 36, 99)


def test_a_refused_handshake_names_the_mechanisms_that_it_can() -> None:
    whole = refusal(answered(b"\0\x21\0\0\0\1\0\5PLAIN"), 17, 1)
    cut = refusal(answered(b"\0\x21\0\0\0\1\0\5PL"), 17, 1)
    assert whole is not None
    assert cut is not None
    assert whole.body.mechanisms == ["PLAIN"]
    assert (cut.body.error_code, cut.body.mechanisms) == (33, [])


@pytest.mark.parametrize(
    ("mechanism", "token", "error"),
    [
        ("SCRAM-SHA-256", b"e=unknown-user", "unknown-user"),
        ("SCRAM-SHA-512", b"e=other-error,x=1", "other-error"),
        ("SCRAM-SHA-256", b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=", None),
        ("SCRAM-SHA-256", b"e=" + b"a" * 65, None),
        ("OAUTHBEARER", b'{"status":"invalid_token"}', "invalid_token"),
        ("OAUTHBEARER", b'{"scope":"a", "status" : "expired-token"}', "expired-token"),
        ("OAUTHBEARER", b"", None),
        ("PLAIN", b"e=unknown-user", None),
        (None, b"e=unknown-user", None),
    ],
)
def test_the_error_in_a_brokers_token(mechanism: str | None, token: bytes, error: str | None) -> None:
    assert refused_by(mechanism, token) == error
