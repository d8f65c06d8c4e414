"""Message codecs against each other: kwire, kafka-python 3, kio, and construct (plain and compiled).

    python benchmarks/codec.py [--rounds 7] [--seconds 0.05] [--only TEXT] [--frames] [--json OUT]

- kwire: what a user of kwire gets, generated Python from the schemas. All figures are relative to it.
- kafka-python: the messages of the client library kafka-python 3, in pure Python.
- kio: typed dataclasses for every message; its decoder is written in Rust, its encoder in Python.
- construct: the same layouts declared with the stock classes of construct, the general package for binary formats
  (``_construct_messages.py``), as it interprets them: what it costs to write Kafka's messages down oneself.
- construct compiled: the same declarations through construct's own ``compile()``.

Every library decodes the same bytes, and then every field of what it made is read, since some decode lazily and some
do not; and encodes objects that it decoded from them. All in one process, interleaved, so that the machine's mood is
the same for all; each figure is the median of CPU time over the rounds, and ratios are taken of medians. "x" is how
many times as long the other library takes: above 1 kwire is faster. The last rows are geometric means.

Values vary within a message (lengths, topics, offsets), and each case has several messages that are taken in turn, so
that nothing which is learnt from one message is all that is measured.

With ``--frames`` kwire reads and writes whole frames, header and body, by the functions that users call
(``kwire.decode_request`` and its sisters), and the others the bare bodies: one case more, Heartbeat, shows what a
header costs.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

import _construct_messages

import kwire
from kwire import messages
from kwire.codec import registry
from kwire.codec.objects import WireMessage
from kwire.schema import model

VARIANTS = 4


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

    walk("o", sample, layout, 1)
    namespace: dict[str, Any] = {}
    exec("def read(o):\n" + "\n".join(lines), namespace)
    read: Callable[[Any], None] = namespace["read"]
    return read


# --- measuring ------------------------------------------------------------------------------------------------------


def measure(tasks: dict[str, Callable[[], None]], rounds: int, seconds: float) -> dict[str, float]:
    """Median seconds per call of each task; the tasks take turns within every round.

    The collector runs as it does for users. What others left behind (construct many cycles) is collected before each
    turn, on nobody's time.
    """
    counts = {}
    for name, task in tasks.items():
        task()
        start = time.process_time()
        task()
        counts[name] = max(1, int(seconds / max(time.process_time() - start, 1e-7)))
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            n = counts[name]
            gc.collect()  # whoever's turn it is: to do so before some of them only would favour those
            start = time.process_time()
            for _ in range(n):
                task()
            times[name].append((time.process_time() - start) / n)
    return {name: statistics.median(values) for name, values in times.items()}


def run_case(
    case: Case, libraries: dict[str, Callable[[Case], Codec]], rounds: int, seconds: float, frames: bool
) -> dict[str, Any]:
    layout = model.layout(case.values[0].SCHEMA, case.version)
    codec = registry.codec(case.values[0].SCHEMA, case.version)
    bodies = [codec.encode(value) for value in case.values]
    ours = kwire_frames(case) if frames else kwire_codec(case)
    whole = [ours[1](value) for value in case.values]
    decoding: dict[str, Callable[[], None]] = {}
    encoding: dict[str, Callable[[], None]] = {}
    codecs: dict[str, Codec] = {}
    for name, make in {"kwire": lambda case: ours, **libraries}.items():
        encoded = whole if name == "kwire" else bodies
        try:
            decode, encode = make(case)
        except (ImportError, LookupError, AttributeError):
            continue  # the library does not have this layout; the table shows a dash
        codecs[name] = decode, encode
        read = reader_of(decode(encoded[0]), layout)

        def decode_all(
            decode: Callable[[bytes], Any] = decode,
            read: Callable[[Any], None] = read,
            encoded: list[bytes] = encoded,
        ) -> None:
            for data in encoded:
                read(decode(data))

        decoding[name] = decode_all
    # Decoding first: the objects that encoding needs, of all libraries, would be in the way of the collector.
    decoded = measure(decoding, rounds, seconds)
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

        encoding[name] = encode_all
    return {
        "label": case.label,
        "bytes": sum(map(len, bodies)) // len(bodies),
        "decode": {name: value / VARIANTS for name, value in decoded.items()},
        "encode": {name: value / VARIANTS for name, value in measure(encoding, rounds, seconds).items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.05, help="time per library, case and round")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--frames", action="store_true", help="whole frames for kwire, bare bodies for the others")
    parser.add_argument("--json", help="write the figures there as well")
    args = parser.parse_args()
    libraries = LIBRARIES
    widths = {name: max(14, len(name) + 2) for name in libraries}

    def cells(ratios: dict[str, float]) -> str:
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
        result = run_case(case, libraries, args.rounds, args.seconds, args.frames)
        results.append(result)
        row = f"{result['label']:26}{result['bytes']:>8}  "
        for way in ("decode", "encode"):
            ours = result[way]["kwire"]
            row += f"{ours * 1e6:>11.1f}" + cells({name: value / ours for name, value in result[way].items()})
        print(row, flush=True)
    row = f"{'geometric mean':26}{'':8}  "
    for way in ("decode", "encode"):
        means = {}
        for name in libraries:
            ratios = [r[way][name] / r[way]["kwire"] for r in results if name in r[way]]
            if ratios:
                means[name] = statistics.geometric_mean(ratios)
        row += f"{'':11}" + cells(means)
    print(row)
    means = {}
    for name in libraries:
        both = [
            (r["decode"][name] + r["encode"][name]) / (r["decode"]["kwire"] + r["encode"]["kwire"])
            for r in results
            if name in r["decode"]
        ]
        if both:
            means[name] = statistics.geometric_mean(both)
    print(f"{'decode and encode':26}{'':8}  {'':11}" + cells(means))
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1), "utf-8")


if __name__ == "__main__":
    main()
