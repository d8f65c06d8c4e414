"""Frames in frames, records of the metadata log, and the users in SASL tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest
from canaries import canary, found

import kwire
from kwire import messages, schema
from kwire.codec import reference, registry
from kwire.codec.redacting import emptied, is_secret
from kwire.errors import EncodeError
from kwire.protocol.describe import describe, to_json, undescribe
from kwire.protocol.secrets import (
    embedded,
    hidden_record,
    is_doubtful,
    sasl_user,
    secret_beginnings,
    secret_record,
)
from kwire.wire import pack_uvarint

PLAIN = messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + canary("a").encode())


@pytest.mark.parametrize(
    ("token", "user"),
    [
        (b"\0alice\0wonder", "alice"),
        (b"root\0alice\0wonder", "alice"),
        ("\0zoë\0wonder".encode(), "zoë"),
        (b"n,,n=alice,r=abc", "alice"),
        (b"n,a=root,n=alice,r=abc", "alice"),
        (b"y,,n=a=2Cb=3Dc,r=abc,tokenauth=true", "a,b=c"),
        (b"p=tls-unique,,n=alice,r=abc", "alice"),
        (b"n,a=alice,\x01auth=Bearer abc\x01\x01", "alice"),
        (b"n,a=a=2Cb,\x01auth=Bearer abc\x01\x01", "a,b"),
        # No user, or nothing that is surely one.
        (b"n,,\x01auth=Bearer abc\x01\x01", None),
        (b"n,a=,\x01auth=Bearer abc\x01\x01", None),
        (b"c=biws,r=abc,p=secret", None),
        (b"r=abc,s=salt,i=4096", None),
        (b"v=signature", None),
        (b"n,,n=al=41ice,r=abc", None),
        (b"\0\0wonder", None),
        (b"\0alice\0", None),
        (b"\0alice\0won\0der", None),
        (b"\0al\x1bice\0wonder", None),
        (b"\0al\xffice\0wonder", None),
        (b"\0alice\0wonder\xff", None),
        (b"\x60\x82\0a\0b", None),
        (b"\x05\x04\x05\xff\0\x0c\0\0", None),
        (b"", None),
        (None, None),
    ],
)
def test_the_user_of_a_token(token: bytes | None, user: str | None):
    assert sasl_user(token) == user


def test_a_token_that_is_left_out_says_its_size():
    assert describe(PLAIN, 1) == {"auth_bytes": {"redacted": 25}}
    assert json.loads(to_json(PLAIN, 1)) == {"auth_bytes": {"redacted": 25}}
    assert describe(PLAIN, 1, secrets=True) == PLAIN.to_dict(1)
    assert repr(PLAIN) == "SaslAuthenticateRequest(auth_bytes={'redacted': 25})"


def test_null_and_empty_hold_nothing():
    assert describe(messages.SaslAuthenticateRequest(), 1) == {"auth_bytes": b""}
    assert describe(messages.EnvelopeResponse(), 0)["response_data"] is None
    assert "response_data=None" in repr(messages.EnvelopeResponse())
    cls = messages.IncrementalAlterConfigsRequest
    for value in (None, ""):
        entry = cls.AlterableConfig(name="ssl.key.password", value=value)
        made = cls(resources=[cls.AlterConfigsResource(configs=[entry])])
        assert describe(made, 1)["resources"][0]["configs"][0]["value"] == value
        assert f"value={value!r}" in repr(made)


def test_the_size_of_text_counts_bytes():
    entry = messages.ConfigRecord(name="ssl.key.password", value="zoë\udcff")
    assert describe(entry, 0)["value"] == {"redacted": 5}
    assert repr(messages.ConfigRecord(name="ssl.key.password", value="\ud800")).count("redacted") == 1


def wrapped(request: object, version: int) -> messages.EnvelopeRequest:
    frame = kwire.encode_request(request, api_version=version, correlation_id=3, client_id="c")
    return messages.EnvelopeRequest(request_data=frame, client_host_address=b"1234")


def test_the_request_in_an_envelope_is_read():
    made = wrapped(PLAIN, 2)
    header = {"request_api_key": 36, "request_api_version": 2, "correlation_id": 3, "client_id": "c"}
    assert describe(made, 0)["request_data"] == {"header": header, "body": {"auth_bytes": {"redacted": 25}}}
    assert describe(made, 0, secrets=True)["request_data"]["body"] == PLAIN.to_dict(2)
    assert undescribe("EnvelopeRequest", json.loads(to_json(made, 0, secrets=True))) == made


def test_an_envelope_without_secrets_goes_both_ways():
    made = wrapped(messages.MetadataRequest(topics=None), 9)
    assert undescribe("EnvelopeRequest", json.loads(to_json(made, 0))) == made


@pytest.mark.parametrize(
    "data",
    [
        kwire.encode_request(PLAIN, api_version=2, correlation_id=3, client_id="c")[:-1],
        kwire.encode_request(PLAIN, api_version=2, correlation_id=3, client_id="c") + b"\0",
        kwire.encode_request(wrapped(PLAIN, 2), api_version=0, correlation_id=3, client_id="c"),
        b"\x7f\xff\0\0",
        b"a",
    ],
)
def test_an_envelope_that_cannot_be_read_is_left_out_as_a_whole(data: bytes):
    assert embedded(data) is None
    made = messages.EnvelopeRequest(request_data=data)
    assert describe(made, 0)["request_data"] == {"redacted": len(data)}
    assert undescribe("EnvelopeRequest", describe(made, 0, secrets=True)) == made


@pytest.mark.parametrize(
    "inside",
    [{"header": {}}, {"body": {}}, {"header": {"request_api_key": 999}, "body": {}}, {"header": {}, "body": 5}, {}],
)
def test_what_no_request_is_does_not_become_an_envelope(inside: object):
    with pytest.raises(EncodeError):
        undescribe("EnvelopeRequest", {"request_data": inside})


def record(message: object, version: int = 0) -> bytes:
    known = message.SCHEMA  # type: ignore[attr-defined]
    head = b"".join(map(pack_uvarint, (1, known.api_key, version)))
    return head + registry.codec(known, version).encode(message)


def test_records_of_the_metadata_log_are_left_out_by_what_they_say():
    secret = record(messages.UserScramCredentialRecord(salt=b"a", stored_key=b"b", server_key=b"c"))
    assert hidden_record(secret) == b'{"redacted": %d}' % len(secret)
    for value, shown in (("1", True), ("https://a:b@c", False)):
        entry = record(messages.ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value=value))
        assert (hidden_record(entry) is None) == shown
    assert hidden_record(None) is None
    assert hidden_record(b"") is None


def test_only_records_of_known_types_are_shown():
    fine = record(messages.NoOpRecord())
    assert hidden_record(fine) is None
    for odd in (fine[:1], b"\x07" + fine[1:], fine[:2] + b"\x09" + fine[3:], b"\x01\x63\0", b"\xff" * 9):
        assert hidden_record(odd) is not None
    entry = record(messages.ConfigRecord(name="retention.ms", value="1"))
    assert hidden_record(entry[:-1]) is not None
    assert hidden_record(entry + b"more") is not None
    assert hidden_record(fine + b"more") is not None
    topic = record(messages.TopicRecord(name="t"))
    assert hidden_record(topic) is None
    assert hidden_record(topic + b"more") is not None
    assert hidden_record(topic + b"more", sure=False) is None


def test_every_message_with_a_password_in_its_name_is_marked():
    """A new schema with a field of such a name needs the word."""
    names = ("auth_bytes", "hmac", "salt", "password", "secret", "stored_key", "server_key", "credential")
    for name in schema.names():
        message = schema.message(name)
        for field in [*message.fields, *(one for struct in message.structs.values() for one in struct.fields)]:
            base = getattr(field.type, "name", "")
            if base in ("string", "bytes") and any(part in field.name for part in names):
                assert field.secret == "always", f"{name}.{field.name}"


def test_a_canary_in_an_error_would_be_found():
    assert found(f"expected {canary('a')!r}", ["a"]) == {"a"}


@pytest.mark.parametrize(
    ("message", "hidden"),
    [
        (messages.SaslAuthenticateRequest(auth_bytes=b""), True),
        (messages.DescribeConfigsResponse(results=[]), True),
        (messages.AlterUserScramCredentialsRequest(), True),
        (messages.ProduceRequest(), True),
        (messages.HeartbeatRequest(), False),
    ],
)
def test_tagged_fields_that_nobody_knows_are_secret_where_others_are(message: Any, hidden: bool):
    message.unknown_tagged_fields = {77: b"who knows", 78: b""}
    version = message.SCHEMA.versions.high
    shown = json.loads(to_json(message, version))["unknown_tagged_fields"]
    assert shown == {"77": {"redacted": 9} if hidden else "d2hvIGtub3dz", "78": ""}
    assert ("who knows" in repr(message)) == (not hidden)
    assert message.to_dict(version)["unknown_tagged_fields"] == {77: b"who knows", 78: b""}
    assert json.loads(to_json(message, version, secrets=True))["unknown_tagged_fields"]["77"] == "d2hvIGtub3dz"
    if hidden:
        with pytest.raises(EncodeError, match="left out as a secret"):
            undescribe(message.SCHEMA.name, json.loads(to_json(message, version)))
    data = registry.codec(message.SCHEMA, version).encode(message)
    node, _ = reference.trace(message.SCHEMA, version, data)
    leaves = [one for one in node.children[-1].children if one.step == "[77]"]
    assert [bool(one.secret) for one in leaves] == [hidden]
    message.unknown_tagged_fields = [b"who knows"]
    assert ("who knows" in repr(message)) == (not hidden)


def test_the_name_of_an_entry_is_judged_once_for_all_its_synonyms(monkeypatch: pytest.MonkeyPatch):
    from kwire.schema import configs

    judged: list[str] = []

    class Counting:
        def fullmatch(self, name: str) -> None:
            judged.append(name)

    compiled = configs._compiled
    monkeypatch.setattr(configs, "_compiled", lambda text: Counting() if text is configs._KNOWN else compiled(text))
    configs._names_a_secret.cache_clear()
    name = "." * 512
    entry = {"name": name, "value": "v", "synonyms": [{"name": "a", "value": "v"}] * 1000}
    message = messages.DescribeConfigsResponse.from_dict({"results": [{"configs": [entry]}]})
    shown = describe(message, 4)
    configs._names_a_secret.cache_clear()
    assert "redacted" not in str(shown)
    assert sorted(judged) == [name, "a"]


def test_of_other_topics_only_whole_records_with_secrets_are_left_out():
    """Not ``sure``: a value may be anybody's."""
    value = record(messages.UserScramCredentialRecord(salt=b"s", stored_key=b"k", server_key=b"x"))
    assert secret_record(value)
    assert secret_record(value, sure=False)
    for other in (value + b"\0", value[:-1], value[:4], b"", b"text", b"\1\x7f\0", b"\1\x02\0" + value[3:]):
        assert not secret_record(other, sure=False), other
        assert secret_record(other) == bool(other), other
    assert value[:2] in secret_beginnings()
    assert {one[0] for one in secret_beginnings()} == {0, 1}
    assert hidden_record(value, sure=False) == b'{"redacted": %d}' % len(value)
    assert hidden_record(None) is None


def test_the_secret_fields_of_a_message_are_emptied_in_a_copy():
    token = messages.SaslAuthenticateRequest(auth_bytes=b"password")
    made = emptied(token)
    assert made.auth_bytes == b""
    assert token.auth_bytes == b"password"
    plain = messages.HeartbeatRequest(group_id="g")
    assert emptied(plain) is plain


@pytest.mark.parametrize(("client_id", "doubtful"), [(None, False), ("", False), ("app-1 é", False), ("a\0\0", True)])
def test_a_client_id_with_control_characters_is_doubtful(client_id: str | None, doubtful: bool):
    assert is_doubtful(client_id) == doubtful


@pytest.mark.parametrize("sensitive", [True, False])
def test_a_synonym_is_as_secret_as_the_entry_that_it_stands_in(sensitive: bool) -> None:
    entry = {"name": "a", "value": "x", "is_sensitive": sensitive, "config_type": 2}
    for outside in ((), ({},), ({}, {"name": "b", "value": "x", "is_sensitive": not sensitive})):
        assert is_secret("config", "x", [*outside, entry, {"name": "c", "value": "x"}]) == sensitive
