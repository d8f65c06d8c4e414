"""The corpus against Kafka's own classes: they read every frame that it says they read, and refuse the others.

What they read they write again. These bytes are the ``canonical`` ones of the manifest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest
from messages_of_kafka import same_shape
from peer import KafkaPeer

from kwire.schema import model
from kwire.testing import corpus

CHECKED = {"3.9.2": 45_000, "4.4.0": 50_000}
"""At least so many cases each release is asked about."""

REGRESSIONS = Path(__file__).parents[1] / "regressions" / "bodies.txt"

UNWRITTEN = {"tag-repeated", "tag-order"}
"""Kafka keeps unknown tags as they came. It does not write them again out of order."""


@pytest.fixture(params=CHECKED)
def peer(request: pytest.FixtureRequest, peer_of: Callable[[str], KafkaPeer]) -> KafkaPeer:
    return peer_of(request.param)


def _asked(peer: KafkaPeer) -> Iterator[tuple[corpus.Case, tuple[str, ...]]]:
    """The cases of layouts that this release has too, each with the command for it."""
    for one in corpus.cases():
        if one.kafka is None:
            continue
        if one.role == corpus.RECORDS:
            yield one, ("records", one.data.hex())
            continue
        assert one.recipe is not None
        whole = one.recipe.message
        name = whole.name
        if one.body_at is None:
            name = "RequestHeader" if one.role == "request" else "ResponseHeader"
        theirs = peer.definitions.get(whole.name)
        if theirs is None or one.version not in theirs.versions:
            continue
        if not same_shape(model.layout(whole, one.version), model.layout(theirs, one.version)):
            continue
        flexible = one.version in whole.flexible
        version = one.version
        if one.body_at is None:
            version = 1 + flexible if one.role == "request" else int(flexible)
        header = peer.definitions[name]
        if version not in header.versions:
            continue
        yield one, ("accepts", peer.classes[name], str(version), one.data[one.body_at or 0 :].hex())


OLDER = {("3.9.2", "tags-negative")}
"""What an older release reads, and the newest one does not."""


def _wrong(release: str, one: corpus.Case, answer: list[str]) -> str:
    reads = not answer[0].startswith("!")
    if reads != (one.kafka or (release, one.damage) in OLDER):
        return f"{one.name}: Kafka {'reads' if reads else 'refuses'} it: {answer}"
    if not reads or one.body_at is None or one.role == corpus.RECORDS:
        return ""
    canonical = one.canonical()
    if int(answer[0]) != (one.damage == "trailing"):
        return f"{one.name}: {answer[0]} bytes are left"
    if canonical is not None and answer[1] != canonical.hex() and one.damage not in UNWRITTEN:
        return f"{one.name}: Kafka writes {answer[1]}, the corpus says {canonical.hex()}"
    return ""


def test_kafka_reads_and_refuses_what_the_corpus_says(peer: KafkaPeer):
    wrong = []
    count: Counter[str] = Counter()
    asked = _asked(peer)
    while some := list(islice(asked, 2000)):
        answers = peer.ask([command for _, command in some])
        for (one, _), answer in zip(some, answers, strict=True):
            count[one.verdict] += 1
            wrong.append(_wrong(peer.release, one, answer))
    wrong = [one for one in wrong if one]
    assert not wrong, f"{len(wrong)} of {count}\n" + "\n".join(wrong[:12])
    assert count.total() >= CHECKED[peer.release]


def test_kafka_reads_and_refuses_the_bodies_that_other_parsers_get_wrong(peer_of: Callable[[str], KafkaPeer]):
    lines = [line.split("|") for line in REGRESSIONS.read_text().splitlines() if line and not line.startswith("#")]
    peer = peer_of("4.4.0")
    names = [line[1].strip() for line in lines]
    newest = [(name, line) for name, line in zip(names, lines, strict=True) if name in peer.classes]
    old = {name for name, line in newest if int(line[2]) not in peer.definitions[name].versions}
    asked = [one for one in newest if one[0] not in old]
    answers = peer.ask(
        [("accepts", peer.classes[name], line[2].strip(), bytes.fromhex(line[3]).hex()) for name, line in asked]
    )
    assert len(asked) > 10
    for (_, line), answer in zip(asked, answers, strict=True):
        assert answer[0].startswith("!") == line[4].strip().startswith("!"), (line[0], answer)
