"""A broker for tests in forty lines: one topic of one partition, kept in memory. python examples/tiny_broker.py [PORT]

Answers ApiVersions, Metadata, Produce and Fetch in the versions of ``SERVES``; other requests close the connection.
"""

import asyncio
import sys
from typing import Any

from kwire import messages, records
from kwire.protocol.connection import Connection, RequestReceived

SERVES = {0: (3, 9), 1: (4, 11), 3: (1, 9), 18: (0, 3)}


class TinyBroker:
    """``log`` holds the records that were produced; ``port`` where clients find it once ``start`` is done."""

    def __init__(self, topic: str = "example") -> None:
        self.topic, self.log, self.port = topic, list[Any](), 0

    async def start(self, port: int = 0) -> asyncio.Server:
        server = await asyncio.start_server(self.serve, "127.0.0.1", port)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection("broker")
        while data := await reader.read(65536):
            for event in connection.receive(data):
                assert isinstance(event, RequestReceived)
                response = getattr(self, f"api_{event.api_key}")(event)
                if event.answered:
                    writer.write(connection.send(response))
        writer.close()

    def api_18(self, asked: RequestReceived) -> Any:
        kind = messages.ApiVersionsResponse
        known = SERVES[18][0] <= asked.api_version <= SERVES[18][1]
        rows = [kind.ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in SERVES.items()]
        return kind(error_code=0 if known else 35, api_keys=rows)

    def api_3(self, asked: RequestReceived) -> Any:
        kind = messages.MetadataResponse
        broker = kind.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)
        part = kind.MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1])
        topic = kind.MetadataResponseTopic(name=self.topic, partitions=[part])
        return kind(brokers=[broker], controller_id=1, topics=[topic])

    def api_0(self, asked: RequestReceived) -> Any:
        kind, offset = messages.ProduceResponse, len(self.log)
        sent = asked.body.topic_data[0].partition_data[0].records
        for one in (one for batch in records.decode(sent) for one in batch.records):
            one.offset = len(self.log)
            self.log.append(one)
        part = kind.PartitionProduceResponse(index=0, base_offset=offset)
        return kind(responses=[kind.TopicProduceResponse(name=self.topic, partition_responses=[part])])

    def api_1(self, asked: RequestReceived) -> Any:
        kind, offset = messages.FetchResponse, asked.body.topics[0].partitions[0].fetch_offset
        data = records.encode(self.log[offset:], base_offset=offset) if self.log[offset:] else b""
        part = kind.PartitionData(partition_index=0, high_watermark=len(self.log), records=data)
        return kind(responses=[kind.FetchableTopicResponse(topic=self.topic, partitions=[part])])


async def main(port: int) -> None:
    broker = TinyBroker()
    async with await broker.start(port) as server:
        print(f"listening on 127.0.0.1:{broker.port}", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 9092))
