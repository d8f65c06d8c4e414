"""Secrets that are easy to recognise, in every place where Kafka's protocol has some; and where they turn up again.

Each ``Case`` is a message with canaries. ``frames`` makes requests and responses of them, ``capture_of`` a capture of
these, ``metadata_records`` a record set of ``__cluster_metadata``. ``found`` says which canaries an output shows, in
any form: as they are, in hexadecimal, base64 or UTF-16, whole or in part.
"""

from __future__ import annotations

import base64
import random
import re
import string
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from packets import Connection, pcap, request, response

import kwire
from kwire import messages, schema, wire
from kwire.codec import registry
from kwire.codec.objects import WireMessage
from kwire.errors import EncodeError
from kwire.protocol.secrets import METADATA_TOPIC, METADATA_TOPIC_ID
from kwire.records import Record, encode

__all__ = ["CASES", "Case", "bodies", "canary", "capture_of", "found", "frames", "metadata_records", "metadata_values"]

PART = 6
"""Characters of a canary that are recognised alone: outputs cut what is long."""


@cache
def canary(name: str) -> str:
    """A text of 18 characters that occurs nowhere else."""
    return "".join(random.Random(name).choices(string.ascii_letters + string.digits, k=18))


def found(output: bytes | str, names: Iterable[str]) -> set[str]:
    """The canaries of which ``output`` shows something."""
    data = output.encode("utf-8", "surrogateescape") if isinstance(output, str) else output
    squeezed = re.sub(rb"[\s:]|\\x|0x", b"", data).lower()
    return {name for name in names if any(_forms(name, data, squeezed))}


def _forms(name: str, data: bytes, squeezed: bytes) -> Iterable[bool]:
    text = canary(name).encode()
    for at in range(len(text) - PART + 1):
        part = text[at : at + PART]
        yield part in data
        yield part.decode().encode("utf-16-le") in data
        yield part.hex().encode() in squeezed
    for shift in range(3):
        # What the bytes before and behind do to the characters is left out.
        inner = base64.b64encode(bytes(shift) + text)[4:-4]
        for at in range(len(inner) - 8 + 1):
            yield inner[at : at + 8] in data


@dataclass(frozen=True)
class Case:
    """A message with secrets: ``names`` are those of its canaries.

    ``since``: in older versions there is none, or nothing that says so.
    """

    name: str
    message: Any
    names: tuple[str, ...]
    since: int = 0


def _sasl(name: str, form: bytes) -> Case:
    token = form.replace(b"CANARY", canary(name).encode())
    return Case(name, messages.SaslAuthenticateRequest(auth_bytes=token), (name,))


def _b(name: str) -> bytes:
    return canary(name).encode()


def _configs() -> list[Case]:
    made = []
    entries = {
        "password": ("ssl.keystore.password", ""),
        "jaas": ("listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config", "org.apache.Some required "),
        "key": ("listener.name.internal.ssl.keystore.key", ""),
        "unknown": ("rsm.config.storage.aws.secret.access.key", ""),
        "value": ("some.reporter.options", "https://me:"),
    }
    for kind, (key, head) in entries.items():
        name = f"configs {kind}"
        value = head + canary(name) + ("@host/" if kind == "value" else "")
        for cls in (messages.AlterConfigsRequest, messages.IncrementalAlterConfigsRequest):
            entry = cls.AlterableConfig(name=key, value=value)
            resource = cls.AlterConfigsResource(resource_type=4, resource_name="1", configs=[entry])
            made.append(Case(f"{cls.__name__} {kind}", cls(resources=[resource]), (name,)))
        topics = messages.CreateTopicsRequest
        config = topics.CreatableTopicConfig(name=key, value=value)
        topic = topics.CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=[config])
        made.append(Case(f"CreateTopics {kind}", topics(topics=[topic]), (name,)))
        answers = messages.CreateTopicsResponse
        told = answers.CreatableTopicConfigs(name=key, value=value)
        result = answers.CreatableTopicResult(name="t", configs=[told])
        made.append(Case(f"CreateTopics answer {kind}", answers(topics=[result]), (name,), 5))
        record = messages.ConfigRecord(resource_type=4, resource_name="1", name=key, value=value)
        made.append(Case(f"ConfigRecord {kind}", record, (name,)))
    cls = messages.DescribeConfigsResponse
    for kind, facts in {
        "named": {"name": "ssl.key.password"},
        "typed": {"name": "a.b", "config_type": 9},
        "marked": {"name": "a.b", "is_sensitive": True},
    }.items():
        names = (f"described {kind}", f"synonym {kind}")
        synonym = cls.DescribeConfigsSynonym(name="c.d", value=canary(names[1]))
        entry = cls.DescribeConfigsResourceResult(value=canary(names[0]), synonyms=[synonym], **facts)
        result = cls.DescribeConfigsResult(resource_type=4, resource_name="1", configs=[entry])
        made.append(Case(f"DescribeConfigs {kind}", cls(results=[result]), names, 3 if kind == "typed" else 1))
    synonym = cls.DescribeConfigsSynonym(name="ssl.key.password", value=canary("synonym alone"))
    entry = cls.DescribeConfigsResourceResult(name="a.b", value=None, synonyms=[synonym])
    result = cls.DescribeConfigsResult(resource_type=4, resource_name="1", configs=[entry])
    made.append(Case("DescribeConfigs synonym", cls(results=[result]), ("synonym alone",), 1))
    return made


def _fields() -> list[Case]:
    described = messages.DescribeDelegationTokenResponse
    scram = messages.AlterUserScramCredentialsRequest
    upsertion = scram.ScramCredentialUpsertion(
        name="u", mechanism=1, iterations=4096, salt=_b("salt"), salted_password=_b("salted")
    )
    return [
        _sasl("PLAIN", b"\0alice\0CANARY"),
        _sasl("SCRAM", b"c=biws,r=abc,p=CANARY"),
        _sasl("OAUTHBEARER", b"n,,\x01auth=Bearer CANARY\x01\x01"),
        _sasl("GSSAPI", b"\x60\x82\x01\x02\x06\x09CANARY\xff\xfe"),
        Case("SASL answer", messages.SaslAuthenticateResponse(auth_bytes=b"r=x,s=" + _b("server")), ("server",)),
        Case("token made", messages.CreateDelegationTokenResponse(token_id="id", hmac=_b("hmac made")), ("hmac made",)),
        Case("token renewed", messages.RenewDelegationTokenRequest(hmac=_b("hmac renewed")), ("hmac renewed",)),
        Case("token expired", messages.ExpireDelegationTokenRequest(hmac=_b("hmac expired")), ("hmac expired",)),
        Case(
            "token described",
            described(tokens=[described.DescribedDelegationToken(token_id="id", hmac=_b("hmac described"))]),
            ("hmac described",),
        ),
        Case("SCRAM credentials", scram(upsertions=[upsertion]), ("salt", "salted")),
        Case(
            "UserScramCredentialRecord",
            messages.UserScramCredentialRecord(
                name="u", mechanism=1, salt=_b("k salt"), stored_key=_b("k stored"), server_key=_b("k server")
            ),
            ("k salt", "k stored", "k server"),
        ),
        Case("DelegationTokenRecord", messages.DelegationTokenRecord(token_id=canary("k token")), ("k token",)),
    ]


def metadata_values(cases: Iterable[Case]) -> list[bytes]:
    """The values of the cases that are records of the metadata log, as KRaft writes them."""
    values = []
    for case in cases:
        known = case.message.SCHEMA
        if known.kind == "data" and known.api_key is not None:
            head = b"".join(map(wire.pack_uvarint, (1, known.api_key, known.versions.high)))
            values.append(head + registry.codec(known, known.versions.high).encode(case.message))
    return values


def metadata_records(*, compression: Any = "none") -> bytes:
    """A record set of ``__cluster_metadata``: every such record, two that nobody knows, and harmless ones."""
    unknown = [b"\x01\x63\x00" + _b("unknown type"), b"\x01\x0b\x0c" + _b("unknown version")]
    cut = [metadata_values(_fields())[0][:-9] + _b("malformed")]
    plain = metadata_values([Case("", messages.NoOpRecord(), ())])
    values = [*plain, *metadata_values(_fields() + _configs()), *unknown, *cut, b"", None]
    return encode([Record(None, value) for value in values], compression=compression)


IN_RECORDS = (
    *(name for case in _fields() + _configs() if case.message.SCHEMA.kind == "data" for name in case.names),
    "unknown type",
    "unknown version",
    "malformed",
)
"""The canaries in ``metadata_records``."""


def _sets() -> list[Case]:
    """Messages with record sets of the metadata topic."""
    made = []
    for compression in ("none", "gzip"):
        records = metadata_records(compression=compression)
        # Nobody can recognise a canary that is compressed.
        names = IN_RECORDS if compression == "none" else ()
        fetch, produce = messages.FetchResponse, messages.ProduceRequest
        partition = fetch.PartitionData(partition_index=0, records=records)
        topic = fetch.FetchableTopicResponse(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
        made.append(Case("Fetch", fetch(responses=[topic]), names))
        data = produce.PartitionProduceData(index=0, records=records)
        written = produce.TopicProduceData(name=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partition_data=[data])
        made.append(Case("Produce", produce(acks=1, topic_data=[written]), names))
    snapshot = messages.FetchSnapshotResponse
    part = snapshot.PartitionSnapshot(unaligned_records=metadata_records()[70:])
    topic = snapshot.TopicSnapshot(name=METADATA_TOPIC, partitions=[part])
    made.append(Case("FetchSnapshot", snapshot(topics=[topic]), IN_RECORDS))
    return made


def _envelopes(cases: Iterable[Case]) -> list[Case]:
    made = []
    for case in cases:
        for frame in frames(case)[-1:]:
            if case.message.SCHEMA.kind == "request":
                message: Any = messages.EnvelopeRequest(request_data=frame, client_host_address=b"\x7f\0\0\1")
            else:
                message = messages.EnvelopeResponse(response_data=frame)
            made.append(Case(f"Envelope of {case.name}", message, case.names))
    odd = Case("", messages.SaslAuthenticateRequest(auth_bytes=_b("enveloped")), ())
    for name, data in {"cut": frames(odd)[0][:-2], "twice": frames(Case("", _wrapped(odd), ()))[0]}.items():
        message = messages.EnvelopeRequest(request_data=data, client_host_address=b"\x7f\0\0\1")
        made.append(Case(f"Envelope {name}", message, ("enveloped",)))
    return made


def _wrapped(case: Case) -> WireMessage:
    made: WireMessage = messages.EnvelopeRequest(request_data=frames(case)[0])
    return made


def bodies(case: Case) -> list[tuple[int, bytes]]:
    """The message in each version that it can be written in."""
    made = []
    known = case.message.SCHEMA
    for version in known.versions:
        if version < case.since:
            continue
        try:
            made.append((version, registry.codec(known, version).encode(case.message)))
        except EncodeError:
            continue
    assert made, case.name
    return made


def frames(case: Case) -> list[bytes]:
    """The frame of a request or response in each of these versions."""
    if case.message.SCHEMA.kind == "request":
        return [
            kwire.encode_request(case.message, api_version=version, correlation_id=7, client_id="test")
            for version, _ in bodies(case)
        ]
    return [kwire.encode_response(case.message, api_version=version, correlation_id=7) for version, _ in bodies(case)]


def capture_of(cases: Iterable[Case], *, cut: int = 0) -> bytes:
    """A capture with a connection for each case and version, and one with raw SASL tokens.

    ``cut`` bytes are missing at the end of each frame, so that none can be read to its end.
    """
    packets = []
    port = 20000
    for case in cases:
        known = case.message.SCHEMA
        if known.kind == "data":
            continue
        for (version, _), frame in zip(bodies(case), frames(case), strict=True):
            port += 1
            made = Connection(client=("10.0.0.1", port)).open()
            if known.kind == "request":
                made.send(frame[: len(frame) - cut])
            else:
                asks = schema.request(known.api_key)
                asked: Any = registry.message_class(asks)()
                made.send(kwire.encode_request(asked, api_version=version, correlation_id=7, client_id="test"))
                made.answer(frame[: len(frame) - cut])
            packets += made.close().packets
    raw = Connection(client=("10.0.0.1", port + 1)).open()
    raw.send(request(17, 0, 1, b"\0\5PLAIN")).answer(response(1, b"\0\0\0\0\0\1\0\5PLAIN"))
    raw.send(b"\0alice\0" + _b("raw token")).answer(b"ok" + _b("raw answer"))
    return pcap([*packets, *raw.close().packets])


CASES = [*_fields(), *_configs(), *_sets()]
CASES += _envelopes([case for case in CASES if case.message.SCHEMA.kind != "data" and case.names])
"""Every place of a secret."""
