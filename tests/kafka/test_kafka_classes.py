"""Every layout that Kafka's own classes know, against those classes: bytes and values, both ways.

For each class and version of a release: kwire's bytes are read by Kafka's class, whose JSON must say what the message
says and whose own bytes must be the same; and the message as JSON, written by Kafka's class, must give kwire's bytes
and decode to the message. Both codec implementations take part.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from messages_of_kafka import json_names, same_shape, samples, to_json, without_unknown_tags
from peer import KafkaPeer

from kwire import schema
from kwire.codec import registry
from kwire.schema import kafka, model
from kwire.schema.format import message_to_text

RELEASES = ("3.9.2", "4.0.2", "4.4.0")

NEWEST = "4.4.0"

DIFFERENT: dict[str, set[str]] = {
    "3.9.2": {"ReadShareGroupStateSummaryResponse v0"},
    "4.0.2": {"ReadShareGroupStateSummaryResponse v0"},
    "4.4.0": set(),
}
"""Layouts of early-access APIs that a later release changed under the same version number: kwire has the later form."""

_RENAMED = {"ListClientMetricsResourcesRequest", "ListClientMetricsResourcesResponse"}
UNKNOWN: dict[str, set[str]] = {"3.9.2": _RENAMED, "4.0.2": _RENAMED, "4.4.0": set()}
"""Classes of a release that kwire has under another name (ListConfigResources, since 4.1)."""

VERIFIED = {"3.9.2": 663, "4.0.2": 574, "4.4.0": 744}
"""How many layouts each release verifies."""

VERIFIED_BY_ANY = 863
"""How many layouts at least one release verifies; docs/supported.md says so."""

Outcome = dict[str, set[str]]


@pytest.fixture(scope="module")
def peers(peer_of: Callable[[str], KafkaPeer]) -> dict[str, KafkaPeer]:
    return {release: peer_of(release) for release in RELEASES}


@pytest.fixture(scope="module")
def outcomes(peers: dict[str, KafkaPeer]) -> dict[str, Outcome]:
    return {release: exchange_all(peer) for release, peer in peers.items()}


@pytest.mark.parametrize("release", RELEASES)
def test_every_layout_of_kafka_reads_and_writes_the_same_bytes_and_values(outcomes: dict[str, Outcome], release: str):
    outcome = outcomes[release]
    assert not outcome["failures"], "\n".join(sorted(outcome["failures"])[:20])
    assert outcome["different"] == DIFFERENT[release]
    assert outcome["unknown"] == UNKNOWN[release]
    assert len(outcome["verified"]) == VERIFIED[release]


def test_the_releases_together_verify_all_layouts_that_any_of_them_knows(outcomes: dict[str, Outcome]):
    assert len(set().union(*(one["verified"] for one in outcomes.values()))) == VERIFIED_BY_ANY


def exchange_all(peer: KafkaPeer) -> Outcome:
    outcome: Outcome = {"verified": set(), "different": set(), "unknown": set(), "failures": set()}
    known = set(schema.names())
    for name, class_name in sorted(peer.classes.items()):
        if name not in known:
            outcome["unknown"].add(name)
            continue
        theirs, ours = peer.definitions[name], schema.message(name)
        (supported,) = peer.ask([("versions", class_name)])
        assert [int(one) for one in supported] == [theirs.versions.low, theirs.versions.high], name
        for version in theirs.versions:
            label = f"{name} v{version}"
            if version not in ours.versions or not same_shape(
                model.layout(ours, version), model.layout(theirs, version)
            ):
                outcome["different"].add(label)
                continue
            problems = exchange(peer, class_name, ours, theirs, version)
            outcome["failures"] |= {f"{label}: {one}" for one in problems}
            if not problems:
                outcome["verified"].add(label)
    return outcome


def exchange(peer: KafkaPeer, class_name: str, ours: model.Message, theirs: model.Message, version: int) -> list[str]:
    layout, their_layout, names = model.layout(ours, version), model.layout(theirs, version), json_names(theirs)
    compiled = registry.codec(ours, version)
    reference = registry.codec(ours, version, "reference")
    messages = samples(ours, version)
    commands: list[tuple[str, ...]] = []
    expected = []
    for one in messages:
        data = compiled.encode(one)
        plain = without_unknown_tags(one)
        in_json = to_json(plain, layout, their_layout, names, records=True)
        expected.append((data, to_json(plain, layout, their_layout, names, records=False), compiled.encode(plain)))
        commands.append(("read", class_name, str(version), data.hex()))
        commands.append(("write", class_name, str(version), json.dumps(in_json)))
    answers = peer.ask(commands)
    problems = []
    for index, (one, (data, values, plain_data)) in enumerate(zip(messages, expected, strict=True)):
        read, written = answers[2 * index], answers[2 * index + 1]
        if read[0].startswith("!"):
            problems.append(f"Kafka does not read {one!r} ({data.hex()}): {read[0]}")
        elif json.loads(read[0]) != values:
            problems.append(f"Kafka reads {read[0]}, kwire meant {json.dumps(values)}")
        elif bytes.fromhex(read[1]) != data:
            problems.append(f"Kafka writes {read[1]}, kwire {data.hex()}")
        if written[0].startswith("!"):
            problems.append(f"Kafka does not write {commands[2 * index + 1][3]}: {written[0]}")
        elif bytes.fromhex(written[0]) != plain_data:
            problems.append(f"Kafka writes {written[0]} for JSON, kwire {plain_data.hex()}")
        for codec in (compiled, reference):
            if codec.encode(one) != data or codec.decode(data) != one:
                problems.append(f"kwire itself does not read {data.hex()} as {one!r}")
    return problems


def test_the_schemas_are_those_of_the_newest_release(peers: dict[str, KafkaPeer]):
    known = set(schema.names())
    found = []
    for name, theirs in peers[NEWEST].definitions.items():
        found += kafka.compare(theirs, schema.message(name) if name in known else None)
    assert not found, "\n".join(map(str, found))


def test_a_wrong_layout_is_noticed(peers: dict[str, KafkaPeer]):
    peer = peers[NEWEST]
    theirs = peer.definitions["HeartbeatRequest"]
    text = message_to_text(schema.message("HeartbeatRequest"))
    (wrong,) = schema.parse(text.replace("int32", "uint32"))
    problems = exchange(peer, peer.classes["HeartbeatRequest"], wrong, theirs, 4)
    assert any(one.startswith("Kafka reads") for one in problems)
