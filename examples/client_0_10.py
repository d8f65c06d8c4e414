"""Metadata, a record produced and consumed, as a client of Kafka 0.10.1 does it: python examples/client_0_10.py
HOST:PORT

With ``--user NAME --password WORD`` it logs in with SASL/PLAIN, with ``--ca CA.PEM`` it speaks TLS. Works with
brokers from 0.10.0 to 3.9.
"""

import argparse
import asyncio
import ssl
from typing import Any

from kwire import messages, records
from kwire.messages import FetchRequest, MetadataRequest, ProduceRequest
from kwire.protocol.connection import Closed, Connection, ResponseReceived, Token
from kwire.protocol.sasl import Plain


async def main(address: str, topic: str, ca: str | None, user: str | None, password: str) -> list[Any]:
    host, _, port = address.rpartition(":")
    tls = ssl.create_default_context(cafile=ca) if ca else None
    reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
    connection = Connection("client", client_id="example", pin="0.10.1", sasl=user is not None)

    async def say(data: bytes) -> Any:
        writer.write(data)
        while True:
            for event in list(connection.receive(await reader.read(65536))):
                if isinstance(event, Closed):
                    raise ConnectionError("the broker has closed the connection")
                if isinstance(event, ResponseReceived | Token):
                    return event.body if isinstance(event, ResponseReceived) else event.data

    await say(connection.send(messages.ApiVersionsRequest()))
    if user is not None:
        exchange = Plain(user, password)
        await say(connection.send(messages.SaslHandshakeRequest(mechanism=exchange.mechanism)))
        exchange.next(await say(connection.send_token(exchange.first())))
    name = MetadataRequest.MetadataRequestTopic(name=topic)
    while (found := (await say(connection.send(MetadataRequest(topics=[name])))).topics[0]).error_code:
        await asyncio.sleep(0.1)  # a broker makes a topic that is asked for, and its leader comes later
    print(f"{found.name}: {len(found.partitions)} partitions, leader of the first: {found.partitions[0].leader_id}")
    data = records.encode([records.Record(key=b"k", value=b"hello", timestamp=1)], magic=1)
    part = ProduceRequest.PartitionProduceData(index=0, records=data)
    sent = ProduceRequest.TopicProduceData(name=topic, partition_data=[part])
    request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[sent])
    while (done := (await say(connection.send(request))).responses[0].partition_responses[0]).error_code:
        await asyncio.sleep(0.1)  # the leader itself may be the last to know that it is one
    wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=done.base_offset, partition_max_bytes=1 << 20)
    asked = FetchRequest.FetchTopic(topic=topic, partitions=[wanted])
    got = await say(connection.send(FetchRequest(max_wait_ms=500, min_bytes=1, topics=[asked])))
    writer.close()
    return [one for batch in records.decode(got.responses[0].partitions[0].records) for one in batch.records]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    for option, default in (("--topic", "example"), ("--ca", None), ("--user", None), ("--password", "")):
        parser.add_argument(option, default=default)
    print(asyncio.run(main(**vars(parser.parse_args()))))
