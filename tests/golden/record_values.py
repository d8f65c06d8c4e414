"""Records bytes of real serialisers as ``tests/golden/values/*.json``: run it by hand, with what they need installed.

    pip install "confluent-kafka[avro,json,protobuf,schemaregistry]" azure-schemaregistry-avroencoder fastavro
    mvn dependency:copy-dependencies -DoutputDirectory=FOLDER     # of the two that apicurio() and glue() name
    APICURIO=apicurio GLUE=glue python tests/golden/record_values.py

- ``confluent.json``: confluent-kafka's serializers of Avro, Protobuf (a message inside of another) and JSON Schema, in
  prefix and header mode, against a registry on loopback that gives ids and GUIDs
- ``azure.json``: Azure's encoder, against a client that gives ids
- ``apicurio.json``: Apicurio's serializer of Java in four modes, against a registry on loopback that gives every schema
  the content id 12 and the global id 21
- ``glue.json``: AWS Glue's encoder of Java, with zlib and without
- ``glue_protobuf.json``: its serializer of Protobuf, with messages inside of others, whose numbers are those by name
- ``fastavro.json``: single objects, whose fingerprint is fastavro's

- ``registry.pcap`` and ``shop.pcap``: the values of ``confluent.json`` in packets, and the topic ``_schemas``

With names of files as arguments only those are made anew. A file has the versions, the schemas as a registry gives them
(``GET /schemas``), and for each value the topic, the headers, the bytes, and what was put in.
"""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FOLDER = HERE / "values"
SPACE = uuid.UUID("0d0f6f6c-5d0c-4d53-9b0a-0f4f5c3a5f10")

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
            {"name": "sku", "type": "string"}, {"name": "n", "type": "int"}]}}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
    ],
}  # fmt: skip
ORDERS: list[dict[str, Any]] = [
    {"id": 1, "customer": "Grete", "note": None, "lines": [{"sku": "a", "n": 2}], "tags": {"k": "v"}},
    {"id": -(2**40), "customer": "Zoë \"x\"", "note": "n", "lines": [], "tags": {}},
]  # fmt: skip
PROTO = """\
syntax = "proto3";
package shop;
message First { int32 x = 1; }
message Outer {
  message Middle { message Inner { string text = 1; int64 n = 2; } Inner inner = 1; }
  Middle middle = 1;
  repeated string names = 2;
}
"""
SHOP = """\
syntax = "proto3";
package shop;
message Zebra { int32 x = 1; }
message Order {
  map<string, int32> counts = 1;
  message Line { message Part { int32 n = 1; string text = 2; } string sku = 1; Part part = 2; }
  repeated Line lines = 2;
  string name = 3;
}
message Apple { string name = 1; }
"""
SHOP_VALUES: list[tuple[str, dict[str, Any]]] = [
    ("Zebra", {"x": 7}),
    ("Order", {"counts": {"a": 1}, "lines": [{"sku": "s", "part": {"n": 2, "text": "t"}}], "name": "Zo\u00eb"}),
    ("Order.Line.Part", {"n": -1, "text": "deep"}),
    ("Order.Line", {"sku": "s", "part": None}),
    ("Apple", {"name": ""}),
    ("Apple", {"name": "Elstar"}),
]
DOCUMENT = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
}


def confluent() -> dict[str, Any]:
    from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from confluent_kafka.schema_registry.json_schema import JSONSerializer
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    sys.path.insert(0, str(HERE.parent / "support"))
    from mock_registry import serving

    first, outer = messages()
    inner = outer.Middle.Inner
    made: list[dict[str, Any]] = []
    with serving([]) as registry:
        registry.registers = lambda subject, text: str(uuid.uuid5(SPACE, subject + text))
        client = SchemaRegistryClient({"url": registry.url})

        def add(name: str, topic: str, make: Callable[..., Any], given: Any, expected: Any) -> None:
            for mode in ("prefix", "header"):
                conf = {} if mode == "prefix" else {"schema.id.serializer": header_schema_id_serializer}
                context = SerializationContext(topic, MessageField.VALUE, [])
                data = make(conf)(given, context)
                made.append(value(f"{name}, {mode}", topic, data, context.headers, expected))

        for order in ORDERS:
            add("avro", "orders", lambda conf: AvroSerializer(client, json.dumps(ORDER), conf=conf), order, order)
        for kind, given, expected in (
            (first, first(x=7), {"x": 7}),
            (outer, outer(names=["a", ""]), {"middle": None, "names": ["a", ""]}),
            (inner, inner(text="deep", n=-1), {"text": "deep", "n": -1}),
        ):
            add(kind.DESCRIPTOR.full_name, kind.DESCRIPTOR.name.lower(),
                lambda conf, kind=kind: ProtobufSerializer(kind, client, {"use.deprecated.format": False, **conf}),
                given, expected)  # fmt: skip
        document = {"id": 5, "name": "Zoë"}
        add(
            "json",
            "documents",
            lambda conf: JSONSerializer(json.dumps(DOCUMENT), client, conf=conf),
            document,
            document,
        )
        schemas = registry.schemas
    return {"made_with": {"confluent-kafka": version("confluent-kafka")}, "schemas": schemas, "values": made}


def messages() -> tuple[Any, Any]:
    """The messages of ``PROTO``, compiled by protoc."""
    first, outer = (message(compiled(PROTO), f"shop.{name}") for name in ("First", "Outer"))
    return first, outer


def compiled(text: str) -> bytes:
    """The descriptor set of a schema, by protoc."""
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "shop.proto").write_text(text)
        out = Path(folder, "out")
        assert protoc.main(["protoc", f"-I{folder}", f"--descriptor_set_out={out}", "shop.proto"]) == 0
        return out.read_bytes()


def message(descriptors: bytes, name: str) -> Any:
    """The class of a message."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    (file,) = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def azure() -> dict[str, Any]:
    from azure.schemaregistry import SchemaProperties
    from azure.schemaregistry.encoder.avroencoder import AvroEncoder

    guid = uuid.uuid5(SPACE, json.dumps(ORDER)).hex

    class Client:
        fully_qualified_namespace = "loopback"

        def register_schema(self, group: str, name: str, definition: str, form: str, **more: Any) -> Any:
            return SchemaProperties(id=guid, format=form, group_name=group, name=name, version=1)

        get_schema_properties = register_schema

    encoder = AvroEncoder(client=Client(), group_name="shop", auto_register=True)
    made = []
    for order in ORDERS:
        found = encoder.encode(order, schema=json.dumps(ORDER))
        headers = [("content-type", found["content_type"].encode())]
        made.append(value("azure", "orders", found["content"], headers, order))
    schemas = [{"subject": "shop.Order", "version": 1, "guid": str(uuid.UUID(guid)), "schema": json.dumps(ORDER)}]
    name = "azure-schemaregistry-avroencoder"
    return {"made_with": {name: version(name)}, "schemas": schemas, "values": made}


class _Apicurio(BaseHTTPRequestHandler):
    """Gives each schema that is registered the same ids."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        ids = {"globalId": 21, "contentId": 12, "version": "1", "state": "ENABLED", "createdOn": "2026-01-01T00:00:00Z"}
        place = {"groupId": "default", "artifactId": "orders-value", "artifactType": "AVRO"}
        body = json.dumps({"artifact": place, "version": {**place, **ids}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


def apicurio() -> dict[str, Any]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Apicurio)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made = of_java("APICURIO", "apicurio", f"http://127.0.0.1:{server.server_port}/apis/registry/v3")
    server.shutdown()
    schemas = [
        {"subject": "orders-value", "version": at, "id": id_, "schema": json.dumps(ORDER)}
        for at, id_ in ((1, 12), (2, 21))
    ]
    return {"made_with": {"apicurio-registry-avro-serde-kafka": "3.1.7"}, "schemas": schemas, "values": made}


def glue() -> dict[str, Any]:
    guid = str(uuid.uuid5(SPACE, "glue"))
    made = of_java("GLUE", "glue", guid)
    schemas = [{"subject": "shop.Order", "version": 1, "guid": guid, "schema": json.dumps(ORDER)}]
    return {"made_with": {"schema-registry-serde": "1.1.20"}, "schemas": schemas, "values": made}


def glue_protobuf() -> dict[str, Any]:
    from google.protobuf import json_format

    guid, descriptors = str(uuid.uuid5(SPACE, "glue, protobuf")), compiled(SHOP)
    lines = []
    for name, expected in SHOP_VALUES:
        one = json_format.ParseDict(expected, message(descriptors, f"shop.{name}")())
        lines.append(f"{name} {one.SerializeToString(deterministic=True).hex()}")
    file = str(HERE / "GlueProtobuf.java")
    command = ["java", "-cp", f"{os.environ['GLUE']}/*", file, guid, base64.b64encode(descriptors).decode()]
    ran = subprocess.run(command, env={**os.environ, "MESSAGES": "\n".join(lines)}, capture_output=True, check=True)
    schema, *rows = [json.loads(one) for one in ran.stdout.splitlines() if one.startswith(b"{")]
    text = base64.b64decode(schema["schema"]).decode()
    schemas = [{"subject": "shop", "version": 1, "guid": guid, "schemaType": "PROTOBUF", "schema": text}]
    made = [{**one, "topic": "shop", "expected": SHOP_VALUES[at % len(lines)][1]} for at, one in enumerate(rows)]
    return {"made_with": {"schema-registry-serde": "1.1.20"}, "schemas": schemas, "values": made}


def of_java(jars: str, *args: str) -> list[dict[str, Any]]:
    """What ``JavaValues.java`` prints: each of ``ORDERS`` in turn."""
    command = ["java", "-cp", f"{os.environ[jars]}/*", str(HERE / "JavaValues.java"), *args]
    ran = subprocess.run(command, env={**os.environ, "ORDER": json.dumps(ORDER)}, capture_output=True, check=True)
    lines = [json.loads(one) for one in ran.stdout.splitlines() if one.startswith(b"{")]
    return [{**one, "topic": "orders", "expected": ORDERS[at % len(ORDERS)]} for at, one in enumerate(lines)]


def single_objects() -> dict[str, Any]:
    import fastavro

    parsed = fastavro.parse_schema(ORDER)
    canonical = fastavro.schema.to_parsing_canonical_form(ORDER)
    head = b"\xc3\x01" + bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))
    made = []
    for order in ORDERS:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, order)
        made.append(value("single object", "orders", head + out.getvalue(), [], order))
    schemas = [{"subject": "shop.Order", "version": 1, "id": 1, "schema": json.dumps(ORDER)}]
    return {"made_with": {"fastavro": fastavro.__version__}, "schemas": schemas, "values": made}


def value(name: str, topic: str, data: bytes, headers: Any, expected: Any) -> dict[str, Any]:
    pairs: Iterator[Any] = iter(headers.items() if isinstance(headers, dict) else headers or [])
    return {
        "name": name,
        "topic": topic,
        "headers": [[key, one.hex()] for key, one in pairs],
        "value": data.hex(),
        "expected": expected,
    }


def captures() -> dict[str, bytes]:
    """Two captures of a broker: in one the registry reads its topic, in the other values are produced.

    The values are those of ``confluent.json``. The packets are made here.
    """
    from packets import Connection, pcap, produce, produce_answer
    from record_sets import batch, record

    found = json.loads((FOLDER / "confluent.json").read_text())
    registry, shop = Connection().open(), Connection().open()

    def sent(connection: Any, topic: str, pairs: list[tuple[bytes, bytes, Any]]) -> None:
        records = b"".join(
            record(key, value, offset=at, headers=tuple((name.encode(), bytes.fromhex(one)) for name, one in headers))
            for at, (key, value, headers) in enumerate(pairs)
        )
        number = len(connection.packets)
        connection.send(produce(number, 1, batch(records, len(pairs)), topic)).answer(produce_answer(number, topic))

    keys = [{"keytype": "SCHEMA", "subject": one["subject"], "version": one["version"]} for one in found["schemas"]]
    topic = [
        (json.dumps(key).encode(), json.dumps(one).encode(), [])
        for key, one in zip(keys, found["schemas"], strict=True)
    ]
    sent(registry, "_schemas", topic)
    for name in dict.fromkeys(one["topic"] for one in found["values"]):
        some = [one for one in found["values"] if one["topic"] == name]
        sent(shop, name, [(b"k", bytes.fromhex(one["value"]), one["headers"]) for one in some])
    return {"registry.pcap": pcap(registry.packets), "shop.pcap": pcap(shop.packets)}


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent / "support"))
    FOLDER.mkdir(exist_ok=True)
    every = {
        "confluent": confluent,
        "azure": azure,
        "fastavro": single_objects,
        "apicurio": apicurio,
        "glue": glue,
        "glue_protobuf": glue_protobuf,
    }
    for name, made in every.items():
        if name in sys.argv[1:] or len(sys.argv) < 2:
            (FOLDER / f"{name}.json").write_text(json.dumps(made(), indent=1, ensure_ascii=False) + "\n")
    for name, data in captures().items():
        (FOLDER / name).write_bytes(data)
