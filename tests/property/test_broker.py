"""Whatever a client sends to the broker of ``kwire.testing``, it stays alive, and says why it has closed a connection.

Requests are any valid ones, damaged ones, and any bytes. An exception that is no ``KwireError`` fails the test.
"""

from __future__ import annotations

from typing import Any

from broker_talk import BATCH, Bench, produce
from hypothesis import given
from hypothesis import strategies as st

from kwire import messages
from kwire.errors import KwireError
from kwire.schema.keys import ApiKey
from kwire.testing import frames, mutations
from kwire.testing.broker.apis import HANDLERS

RELEASES = ("0.9.0", "0.10.1", "2.8", "3.9", "4.0", "4.4")


def sized(frame: bytes) -> bytes:
    return len(frame).to_bytes(4) + frame


REQUESTS = st.one_of(*(frames(kinds=("request",), api_key=key) for key in HANDLERS)).map(lambda one: sized(one.data))
DAMAGED = REQUESTS.flatmap(mutations)
SAID = st.lists(st.one_of(REQUESTS, DAMAGED, st.binary(max_size=64)), max_size=6)


def alive(bench: Bench) -> None:
    """Another client gets its answer, and what was closed has its reason."""
    client = bench.client(client_id="after")
    version = bench.cluster.accepted[ApiKey.METADATA].high
    answer = client.ask(messages.MetadataRequest(topics=[]), version)
    assert [one.node_id for one in answer.brokers] == [1]
    assert all(isinstance(one, KwireError) for one in bench.core.recording.errors)


@given(st.sampled_from(RELEASES), SAID, st.lists(st.integers(1, 40), max_size=8))
def test_the_broker_survives_what_clients_say(release: str, said: list[bytes], cuts: list[int]) -> None:
    bench = Bench(release)
    bench.cluster.create_topic("orders", 2)
    stream = b"".join(said)
    client = bench.client()
    for cut in cuts:
        client.talk.receive(stream[:cut] or b"\0")
        stream = stream[cut:]
    if stream:
        client.talk.receive(stream)
    bench.wait(3600)
    assert client.closed or not client.talk.full
    client.talk.receive(b"")
    alive(bench)


@given(st.lists(REQUESTS, max_size=3))
def test_each_request_is_carried_out_or_closes_its_connection(said: list[bytes]) -> None:
    bench = Bench("4.4")
    for one in said:
        client = bench.client()
        client.talk.receive(one)
        bench.wait(10_000)
        (exchange,) = list(bench.core.recording.exchanges)[-1:] or (None,)
        assert client.closed or client.got or _no_answer(exchange), exchange
    alive(bench)


def _no_answer(exchange: Any) -> bool:
    return exchange is not None and exchange.api_key == ApiKey.PRODUCE and exchange.request.acks == 0


@given(mutations(BATCH))
def test_no_damaged_record_set_is_kept_in_pieces(data: bytes) -> None:
    bench = Bench()
    topic = bench.cluster.create_topic("orders")
    answer = produce(bench.client(), topic, data, 9)
    log = topic.logs[0]
    if answer.error_code:
        assert (log.end, log.size, log.entries) == (0, 0, [])
    else:
        assert log.size == len(data)
        assert log.end == sum(len(batch.records) for entry in log.entries for batch in entry.batches())
