"""Metadata, a record produced and consumed, with Kafka 4 over TLS: python examples/client_4.py HOST:PORT --ca CA.PEM

With ``--user NAME --password WORD`` it logs in with SCRAM-SHA-512. Without ``--ca`` nothing is encrypted.
"""

import argparse
import asyncio
import ssl
from typing import Any

from kwire import messages, records
from kwire.messages import FetchRequest, MetadataRequest, ProduceRequest
from kwire.protocol.connection import Closed, Connection, ResponseReceived, Token
from kwire.protocol.sasl import Scram


async def main(address: str, topic: str, ca: str | None, user: str | None, password: str) -> list[Any]:
    host, _, port = address.rpartition(":")
    tls = ssl.create_default_context(cafile=ca) if ca else None
    reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
    connection = Connection("client", client_id="example", sasl=user is not None)

    async def say(data: bytes) -> list[Any]:
        writer.write(data)
        while not (events := list(connection.receive(await reader.read(65536)))):
            pass
        if isinstance(events[-1], Closed):
            raise ConnectionError("the broker has closed the connection")
        return events

    async def ask(request: object) -> Any:
        return next(one.body for one in await say(connection.send(request)) if isinstance(one, ResponseReceived))

    software = {"client_software_name": "example", "client_software_version": "1"}
    while (await ask(messages.ApiVersionsRequest(**software))).error_code:
        pass  # asked again in a version that the broker has
    if user is not None:
        exchange = Scram("SCRAM-SHA-512", user, password)
        await ask(messages.SaslHandshakeRequest(mechanism=exchange.mechanism))
        token: bytes | None = exchange.first()
        while token is not None:
            events = await say(connection.send_token(token))
            token = exchange.next(next(one.data for one in events if isinstance(one, Token)))
    name = MetadataRequest.MetadataRequestTopic(name=topic)
    while (found := (await ask(MetadataRequest(topics=[name]))).topics[0]).error_code:
        await asyncio.sleep(0.1)  # a broker makes a topic that is asked for, and its leader comes later
    print(f"{found.name} is {found.topic_id}, leader of its first partition: {found.partitions[0].leader_id}")
    data = records.encode([records.Record(key=b"k", value=b"hello", timestamp=1)], compression="zstd")
    part = ProduceRequest.PartitionProduceData(index=0, records=data)
    sent = ProduceRequest.TopicProduceData(topic_id=found.topic_id, partition_data=[part])
    request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[sent])
    while (done := (await ask(request)).responses[0].partition_responses[0]).error_code:
        await asyncio.sleep(0.1)  # the leader itself may be the last to know that it is one
    wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=done.base_offset, partition_max_bytes=1 << 20)
    topics = [FetchRequest.FetchTopic(topic_id=found.topic_id, partitions=[wanted])]
    got = await ask(FetchRequest(max_wait_ms=500, min_bytes=1, topics=topics))
    writer.close()
    return [one for batch in records.decode(got.responses[0].partitions[0].records) for one in batch.records]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    for option, default in (("--topic", "example"), ("--ca", None), ("--user", None), ("--password", "")):
        parser.add_argument(option, default=default)
    print(asyncio.run(main(**vars(parser.parse_args()))))
