"""Message codecs against each other: kwire, four peers in Python, and three in Java, Go and Rust.

    python benchmarks/codec.py [--rounds 7] [--seconds 0.05] [--only TEXT] [--outside] [--frames] [--json OUT]

- kwire: what a user of kwire gets, generated Python from the schemas. All figures are relative to it.
- kwire columns: a column of frames, decoded to an Arrow struct with all fields (``kwire.payloads``). Headers too.
- kafka-python: the messages of the client library kafka-python 3, in pure Python.
- aiokafka: the messages of the client library aiokafka, in pure Python. Its structs inside of messages are tuples. It
  has old versions only.
- kio: typed dataclasses for every message; its decoder is written in Rust, its encoder in Python.
- construct: the same layouts declared with the stock classes of construct, the general package for binary formats
  (``_construct_messages.py``), as it interprets them: what it costs to write Kafka's messages down oneself.
- construct compiled: the same declarations through construct's own ``compile()``.
- With ``--outside``, Kafka's own classes in Java, kmsg in Go and kafka-protocol in Rust (``peers``), each a process.

Every library decodes the same bytes, and then every field of what it made is read, since some decode lazily and some
do not; and encodes objects that it decoded from them. Before that each must write what it read as the same bytes. So
none leaves a field out. All take turns, so that the machine's mood is the same for all; each figure is the median of
CPU time over the rounds, and ratios are taken of medians. "x" is how many times as long the other library takes: above
1 kwire is faster. The last rows are geometric means.

Values vary within a message (lengths, topics, offsets), and each case has several messages that are taken in turn, so
that nothing which is learnt from one message is all that is measured.

With ``--frames`` kwire reads and writes whole frames, header and body, by the functions that users call
(``kwire.decode_request`` and its sisters), and the others the bare bodies: one case more, Heartbeat, shows what a
header costs.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

import _construct_messages
import pyarrow as pa
from _measuring import Spread, Turn, measure, passes
from peers import Peer, UnableError, pieces, started

import kwire
from kwire import messages, payloads
from kwire.codec import registry
from kwire.codec.objects import WireMessage
from kwire.kernels.engine import MACHINE, using
from kwire.payloads import BodyOptions
from kwire.schema import model

VARIANTS = 4
COLUMN = 256
"""Frames in a column."""


@dataclass
class Case:
    """One layout with the messages to measure it on."""

    name: str
    version: int
    values: list[WireMessage]

    @property
    def label(self) -> str:
        return f"{self.name} v{self.version}"


# --- the messages ---------------------------------------------------------------------------------------------------


def _word(rnd: random.Random, low: int = 4, high: int = 24) -> str:
    return "".join(rnd.choices("abcdefghijklmnopqrstuvwxyz.-_", k=rnd.randint(low, high)))


def _api_versions(rnd: random.Random, version: int) -> WireMessage:
    kind = messages.ApiVersionsResponse
    keys = [
        kind.ApiVersion(api_key=key, min_version=rnd.randint(0, 4), max_version=rnd.randint(5, 18)) for key in range(60)
    ]
    return kind(api_keys=keys)


def _metadata(rnd: random.Random, version: int) -> WireMessage:
    kind = messages.MetadataResponse
    brokers = [kind.MetadataResponseBroker(node_id=i, host=_word(rnd), port=9092, rack=_word(rnd)) for i in range(6)]
    topics = []
    for _ in range(100):
        partitions = []
        for index in range(10):
            replicas = rnd.sample(range(6), 3)
            partitions.append(
                kind.MetadataResponsePartition(
                    partition_index=index,
                    leader_id=replicas[0],
                    leader_epoch=rnd.randint(0, 900) if version >= 7 else -1,
                    replica_nodes=replicas,
                    isr_nodes=replicas[: rnd.choice((3, 3, 3, 3, 2))],
                )
            )
        topic_id = UUID(int=rnd.getrandbits(128)) if version >= 10 else UUID(int=0)
        topics.append(kind.MetadataResponseTopic(name=_word(rnd), topic_id=topic_id, partitions=partitions))
    return kind(brokers=brokers, cluster_id=_word(rnd) if version >= 2 else None, controller_id=1, topics=topics)


def _fetch(rnd: random.Random, version: int) -> WireMessage:
    kind = messages.FetchResponse
    topics = []
    for _ in range(3):
        partitions = [
            kind.PartitionData(
                partition_index=index,
                high_watermark=rnd.getrandbits(40),
                last_stable_offset=rnd.getrandbits(40),
                log_start_offset=rnd.getrandbits(20) if version >= 5 else -1,
                aborted_transactions=None,
                records=rnd.randbytes(rnd.randint(200, 1500)),
            )
            for index in range(5)
        ]
        topics.append(kind.FetchableTopicResponse(topic=_word(rnd), partitions=partitions))
    return kind(responses=topics)


def _produce(rnd: random.Random, version: int) -> WireMessage:
    kind = messages.ProduceRequest
    topics = [
        kind.TopicProduceData(
            name=_word(rnd),
            partition_data=[
                kind.PartitionProduceData(index=index, records=rnd.randbytes(rnd.randint(200, 1500)))
                for index in range(5)
            ],
        )
        for _ in range(3)
    ]
    return kind(acks=-1, timeout_ms=rnd.randint(1000, 30000), topic_data=topics)


def _join_group(rnd: random.Random, version: int) -> WireMessage:
    kind = messages.JoinGroupResponse
    members = [
        kind.JoinGroupResponseMember(
            member_id=_word(rnd, 30, 50),
            group_instance_id=_word(rnd) if version >= 5 and rnd.random() < 0.5 else None,
            metadata=rnd.randbytes(rnd.randint(20, 120)),
        )
        for _ in range(20)
    ]
    leader = members[0].member_id
    return kind(
        generation_id=rnd.randint(1, 500), protocol_name="range", leader=leader, member_id=leader, members=members
    )


def _offset_commit(rnd: random.Random, version: int) -> WireMessage:
    kind = messages.OffsetCommitRequest
    topics = [
        kind.OffsetCommitRequestTopic(
            name=_word(rnd),
            partitions=[
                kind.OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=rnd.getrandbits(36), committed_metadata=_word(rnd, 0, 12)
                )
                for index in range(10)
            ],
        )
        for _ in range(5)
    ]
    return kind(
        group_id=_word(rnd),
        generation_id_or_member_epoch=rnd.randint(0, 99),
        member_id=_word(rnd, 30, 50),
        topics=topics,
    )


CASES: list[tuple[Callable[[random.Random, int], WireMessage], str, tuple[int, ...]]] = [
    (_api_versions, "ApiVersionsResponse", (0, 3)),
    (_metadata, "MetadataResponse", (1, 12)),
    (_fetch, "FetchResponse", (4, 12)),
    (_produce, "ProduceRequest", (3, 9)),
    (_join_group, "JoinGroupResponse", (5, 9)),
    (_offset_commit, "OffsetCommitRequest", (2, 8)),
]


def _heartbeat(rnd: random.Random, version: int) -> WireMessage:
    return messages.HeartbeatRequest(
        group_id=_word(rnd), generation_id=rnd.randint(0, 99), member_id=_word(rnd, 30, 50)
    )


def cases(frames: bool = False) -> list[Case]:
    """All cases, the same in every run; with ``frames`` the one whose header is as long as its body too."""
    rnd = random.Random(20260101)
    return [
        Case(name, version, [make(rnd, version) for _ in range(VARIANTS)])
        for make, name, versions in [*CASES, *([(_heartbeat, "HeartbeatRequest", (0, 4))] if frames else [])]
        for version in versions
    ]


# --- the libraries --------------------------------------------------------------------------------------------------

Codec = tuple[Callable[[bytes], Any], Callable[[Any], Any]]


def kwire_frames(case: Case) -> Codec:
    version, key = case.version, case.values[0].SCHEMA.api_key
    assert key is not None

    def decode(data: bytes) -> Any:
        return kwire.decode_request(data).body

    def decode_response(data: bytes) -> Any:
        return kwire.decode_response(data, api_key=key, api_version=version).body

    def encode(value: Any) -> bytes:
        return kwire.encode_request(value, api_version=version, correlation_id=7, client_id="benchmark")

    def encode_response(value: Any) -> bytes:
        return kwire.encode_response(value, api_version=version, correlation_id=7)

    return (decode, encode) if case.values[0].SCHEMA.kind == "request" else (decode_response, encode_response)


def kwire_codec(case: Case) -> Codec:
    codec = registry.codec(case.values[0].SCHEMA, case.version)
    return codec.decode, codec.encode


def kwire_columns(case: Case) -> Callable[[], pa.ChunkedArray]:
    """Decodes a column that has each of the messages many times, as frames."""
    schema, version = case.values[0].SCHEMA, case.version
    encode = kwire_frames(case)[1]
    column = pa.array([encode(value) for value in case.values] * (COLUMN // VARIANTS), pa.binary())
    options: BodyOptions = {"sized": False, "api": schema.api_name, "payloads": True, "secrets": True}
    key = schema.api_key
    assert key is not None

    def decode() -> pa.ChunkedArray:
        with using(MACHINE):
            if schema.kind == "request":
                return payloads.decode_requests(column, **options)
            return payloads.decode_responses(column, key, version, **options)

    return decode


def construct_codec(case: Case) -> Codec:
    declared = _construct_messages.declare(model.layout(case.values[0].SCHEMA, case.version))
    return declared.parse, declared.build


def compiled_construct_codec(case: Case) -> Codec:
    compiled = _construct_messages.declare(model.layout(case.values[0].SCHEMA, case.version)).compile()
    return compiled.parse, compiled.build


def kafka_python_codec(case: Case) -> Codec:
    import kafka.protocol.consumer
    import kafka.protocol.metadata
    import kafka.protocol.producer

    for module in (kafka.protocol.consumer, kafka.protocol.metadata, kafka.protocol.producer):
        kind = getattr(module, case.name, None)
        if kind is not None:
            break
    else:
        raise LookupError(case.label)
    version = case.version

    def decode(data: bytes) -> Any:
        return kind.decode(data, version=version)

    def encode(value: Any) -> Any:
        return value.encode(version=version)

    return decode, encode


def aiokafka_codec(case: Case) -> Codec:
    modules = ("admin", "metadata", "fetch", "produce", "group", "commit")
    name = f"{case.name.replace('ApiVersions', 'ApiVersion')}_v{case.version}"
    for module in modules:
        kind = getattr(import_module(f"aiokafka.protocol.{module}"), name, None)
        if kind is not None:
            return kind.decode, kind.encode
    raise LookupError(case.label)


def kio_codec(case: Case) -> Codec:
    from io import BytesIO

    from kio.serial import entity_reader, entity_writer

    schema = case.values[0].SCHEMA
    snake = "".join("_" + c.lower() if c.isupper() else c for c in schema.api_name).lstrip("_")
    module = import_module(f"kio.schema.{snake}.v{case.version}.{schema.kind}")
    kind = getattr(module, case.name)
    read, write = entity_reader(kind), entity_writer(kind)

    def encode(value: Any) -> bytes:
        buffer = BytesIO()
        write(buffer, value)
        return buffer.getvalue()

    return (lambda data: read(data, 0)[0]), encode


LIBRARIES: dict[str, Callable[[Case], Codec]] = {
    "kafka-python": kafka_python_codec,
    "aiokafka": aiokafka_codec,
    "kio": kio_codec,
    "construct": construct_codec,
    "construct compiled": compiled_construct_codec,
}


def reader_of(sample: Any, layout: model.StructLayout) -> Callable[[Any], None]:
    """A function that reads every field of objects like ``sample``, whatever library made them."""
    lines: list[str] = []

    def walk(one: str, value: Any, type_: model.StructLayout, depth: int) -> None:
        pad = "    " * depth
        for field in (*type_.fields, *type_.tagged):
            name = next((n for n in (field.name, field.name.removesuffix("_ms")) if hasattr(value, n)), None)
            if name is None:
                continue  # kio renames a few; what it does not show under our name is not read from it
            inner = field.type.element if isinstance(field.type, model.ArrayLayout) else field.type
            found = getattr(value, name)
            if isinstance(field.type, model.ArrayLayout) and isinstance(inner, model.StructLayout) and found:
                lines.append(f"{pad}for o{depth} in {one}.{name} or ():")
                walk(f"o{depth}", found[0], inner, depth + 1)
            else:
                lines.append(f"{pad}{one}.{name}")

    def walk_tuples(one: str, values: Any, depth: int) -> None:
        pad, names = "    " * depth, [f"o{depth}_{number}" for number in range(len(values[0]))]
        lines.append(f"{pad}for {', '.join(names)} in {one} or ():")
        lines.append(f"{pad}    {'; '.join(names)}")
        for name, value in zip(names, values[0], strict=True):
            if isinstance(value, list) and value and isinstance(value[0], tuple):
                walk_tuples(name, value, depth + 1)

    if type(sample).__module__.startswith("aiokafka."):
        for name in sample.SCHEMA.names:
            value = getattr(sample, name)
            if isinstance(value, list) and value and isinstance(value[0], tuple):
                walk_tuples(f"o.{name}", value, 1)
            else:
                lines.append(f"    o.{name}")
    else:
        walk("o", sample, layout, 1)
    namespace: dict[str, Any] = {}
    exec("def read(o):\n" + "\n".join(lines), namespace)
    read: Callable[[Any], None] = namespace["read"]
    return read


# --- measuring ------------------------------------------------------------------------------------------------------


def run_case(
    case: Case,
    libraries: Mapping[str, Callable[[Case], Codec]],
    outside: Mapping[str, Peer],
    rounds: int,
    seconds: float,
    frames: bool = False,
) -> dict[str, Any]:
    """Seconds of CPU for a message: ``decode`` and ``encode`` by contestant. ``unable``: who does not have it, and why.

    ``frames``: whole frames for kwire."""
    layout = model.layout(case.values[0].SCHEMA, case.version)
    codec = registry.codec(case.values[0].SCHEMA, case.version)
    bodies = [codec.encode(value) for value in case.values]
    ours = kwire_frames(case) if frames else kwire_codec(case)
    whole = [ours[1](value) for value in case.values]
    decoding: dict[str, Turn] = {}
    encoding: dict[str, Turn] = {}
    codecs: dict[str, Codec] = {}
    unable: dict[str, str] = {}
    for name, make in {"kwire": lambda case: ours, **libraries}.items():
        encoded = whole if name == "kwire" else bodies
        try:
            decode, encode = make(case)
        except (ImportError, LookupError, AttributeError):
            unable[name] = "it does not have this version"
            continue
        codecs[name] = decode, encode
        read = reader_of(decode(encoded[0]), layout)

        def decode_all(
            decode: Callable[[bytes], Any] = decode,
            read: Callable[[Any], None] = read,
            encoded: list[bytes] = encoded,
        ) -> None:
            for data in encoded:
                read(decode(data))

        decoding[name] = passes(decode_all)
    columns = kwire_columns(case)
    made = columns()
    assert made.type.field("body").type.num_fields >= len(layout.fields), case.label
    assert all(one["status"] == "ok" and one["body"] is not None for one in made[:VARIANTS].to_pylist()), case.label
    decoding["kwire columns"] = passes(columns)
    able = _able(case, bodies, outside, unable)
    for name, peer in able.items():
        decoding[name] = peer.turn("decode")
    # Decoding first: the objects that encoding needs, of all libraries, would be in the way of the collector.
    decoded_in = measure(decoding, rounds, seconds)
    for name, (decode, encode) in codecs.items():
        encoded = whole if name == "kwire" else bodies
        objects = [decode(data) for data in encoded]
        if name == "kafka-python":
            for one in objects:
                one._header = None  # its decoder leaves this unset, and its encoder asks for it
        for value, data in zip(objects, encoded, strict=True):
            if bytes(encode(value)) != data:
                raise SystemExit(f"{name} does not write {case.label} as it was read: nothing to compare")

        def encode_all(encode: Callable[[Any], Any] = encode, objects: list[Any] = objects) -> None:
            for value in objects:
                encode(value)

        encoding[name] = passes(encode_all)
    for name, peer in able.items():
        encoding[name] = peer.turn("encode")
    encoded_in = measure(encoding, rounds, seconds)
    return {
        "label": case.label,
        "bytes": sum(map(len, bodies)) // len(bodies),
        "decode": {
            name: value.each(COLUMN if name == "kwire columns" else VARIANTS) for name, value in decoded_in.items()
        },
        "encode": {name: value.each(VARIANTS) for name, value in encoded_in.items()},
        "unable": unable,
    }


def _able(case: Case, bodies: list[bytes], outside: Mapping[str, Peer], unable: dict[str, str]) -> dict[str, Peer]:
    """The peers of other languages that have this layout: the messages are loaded."""
    schema, found = case.values[0].SCHEMA, {}
    with tempfile.TemporaryDirectory() as folder:
        file = pieces(Path(folder) / "bodies", bodies)
        for name, peer in outside.items():
            try:
                peer.ask("codec", schema.kind, schema.api_key, case.version, file)
            except UnableError as error:
                unable[name] = str(error)
            else:
                found[name] = peer
    return found


def means(results: list[dict[str, Any]], ways: tuple[str, ...] = ("decode", "encode")) -> dict[str, float]:
    """How many times as long each contestant takes as kwire, for all ``ways`` together: geometric means of the cases
    that it has."""

    def took(one: dict[str, Any], name: str) -> float:
        return sum(Spread(*one[way][name]).median for way in ways)

    found: dict[str, list[float]] = {}
    for one in results:
        for name in one[ways[0]]:
            if name != "kwire" and all(name in one[way] for way in ways):
                found.setdefault(name, []).append(took(one, name) / took(one, "kwire"))
    return {name: statistics.geometric_mean(ratios) for name, ratios in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.05, help="time per library, case and round")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--outside", action="store_true", help="peers in Java, Go and Rust, too")
    parser.add_argument("--frames", action="store_true", help="whole frames for kwire, bare bodies for the others")
    parser.add_argument("--json", help="write the figures there as well")
    args = parser.parse_args()
    outside, missing = started() if args.outside else ({}, {})
    for name, why in missing.items():
        print(f"{name}: {why}")
    widths = {name: max(14, len(name) + 2) for name in ["kwire columns", *LIBRARIES, *outside]}

    def cells(ratios: Mapping[str, float]) -> str:
        return "".join(
            f"{f'{ratios[name]:.2f}x':>{width}}" if name in ratios else f"{'-':>{width}}"
            for name, width in widths.items()
        )

    print("time per message in microseconds for kwire; for the others how many times as long they take\n")
    head = f"{'':26}{'bytes':>8}  " + "".join(
        f"{way + ' µs':>11}" + "".join(f"{name:>{width}}" for name, width in widths.items())
        for way in ("decode", "encode")
    )
    print(head)
    results = []
    for case in cases(args.frames):
        if args.only not in case.label:
            continue
        result = run_case(case, LIBRARIES, outside, args.rounds, args.seconds, args.frames)
        results.append(result)
        row = f"{result['label']:26}{result['bytes']:>8}  "
        for way in ("decode", "encode"):
            row += f"{result[way]['kwire'].median * 1e6:>11.1f}" + cells(means([result], (way,)))
        print(row, flush=True)
    row = f"{'geometric mean':26}{'':8}  "
    for way in ("decode", "encode"):
        row += f"{'':11}" + cells(means(results, (way,)))
    print(row)
    print(f"{'decode and encode':26}{'':8}  {'':11}" + cells(means(results)))
    for peer in outside.values():
        print(f"{peer.label}: {peer.versions}")
        peer.close()
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1), "utf-8")


if __name__ == "__main__":
    main()
