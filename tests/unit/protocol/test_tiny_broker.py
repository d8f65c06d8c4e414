"""The broker of ``examples/`` and a client that is a ``Connection``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

import tiny_broker

from kwire import messages, records
from kwire.protocol.connection import Connection, ResponseReceived


async def talk(requests: list[object]) -> tuple[list[Any], list[Any]]:
    broker = tiny_broker.TinyBroker()
    server = await broker.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    connection, answers = Connection("client", client_id="test"), []
    for request in [messages.ApiVersionsRequest(client_software_name="t", client_software_version="1"), *requests]:
        # The first version of ApiVersions is newer than the broker's, and is answered with error 35.
        while True:
            writer.write(connection.send(request))
            if getattr(request, "acks", None) == 0:
                break
            events: list[Any] = []
            while not events:
                events = list(connection.receive(await reader.read(65536)))
            answers += [one.body for one in events if isinstance(one, ResponseReceived)]
            if getattr(answers[-1], "error_code", 0) != 35:
                break
    writer.close()
    await asyncio.sleep(0.05)  # the broker sees that, and ends
    server.close()
    return answers, broker.log


def test_a_record_goes_in_and_comes_back() -> None:
    sent = [records.Record(key=b"k", value=b"v%d" % n, timestamp=n) for n in range(3)]
    kind, fetch = messages.ProduceRequest, messages.FetchRequest
    part = kind.PartitionProduceData(index=0, records=records.encode(sent, compression="gzip"))
    topic = kind.TopicProduceData(name="example", partition_data=[part])
    wanted = fetch.FetchPartition(partition=0, fetch_offset=4, partition_max_bytes=1 << 20)
    asked = fetch.FetchTopic(topic="example", partitions=[wanted])
    answers, log = asyncio.run(
        talk(
            [
                messages.MetadataRequest(topics=None),
                kind(acks=-1, topic_data=[topic]),
                kind(acks=0, topic_data=[topic]),
                fetch(max_wait_ms=1, min_bytes=1, topics=[asked]),
            ]
        )
    )
    refused, offered, metadata, produced, fetched = answers
    assert (refused.error_code, offered.error_code) == (35, 0)
    assert metadata.topics[0].name == "example"
    assert produced.responses[0].partition_responses[0].base_offset == 0
    assert len(log) == 6
    got = [one for batch in records.decode(fetched.responses[0].partitions[0].records) for one in batch.records]
    assert [(one.offset, one.value) for one in got] == [(4, b"v1"), (5, b"v2")]
