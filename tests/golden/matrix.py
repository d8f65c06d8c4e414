"""The table in docs/results/golden-matrix.md: which APIs, versions, magics and codecs the golden captures hold.

    python tests/golden/matrix.py            print the table and what is wrong with the captures
    python tests/golden/matrix.py --write    put the table into docs/results/golden-matrix.md
    python tests/golden/matrix.py --check DIR ...   only look at these folders

It reads the captures with a reader of its own (whole files in memory, an object per packet), which shares nothing with
``kwire.capture`` and so can be held against it; bodies are decoded and encoded again with kwire's codec. Frames that
are not Kafka's (raw SASL tokens, TLS) are counted and left alone.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kwire
from kwire import schema

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parent.parent / "docs" / "results" / "golden-matrix.md"
BEGIN, END = "<!-- matrix: made by tests/golden/matrix.py -->", "<!-- end of matrix -->"
CODECS = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
RAW_CLIENT = "kwire-raw"
"""The client_id of requests that a recording script wrote itself, for versions that no client sends."""
GSSAPI = b"\x60"
"""With what a raw GSSAPI token begins, which may open a connection (0.9)."""
LAST_TOKEN = b"\x05\x04"
"""With what the last one of the client begins, to which brokers send nothing."""

Endpoint = tuple[bytes, int]


@dataclass(slots=True)
class Stream:
    """The bytes of one direction, put in order by sequence number (serial arithmetic, first byte counts)."""

    start: int | None = None
    parts: dict[int, bytes] = field(default_factory=dict)
    opened: bool = False

    def data(self) -> bytes:
        out = bytearray()
        for at, part in sorted(self.parts.items()):
            if at > len(out):
                break
            out[at : at + len(part)] = part
        return bytes(out)


@dataclass(slots=True)
class Findings:
    """What the captures hold, and what is wrong with them."""

    pairs: dict[tuple[int, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    raw: set[tuple[int, int]] = field(default_factory=set)
    answered: set[tuple[int, int]] = field(default_factory=set)
    record_sets: dict[tuple[int, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    frames: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Link type and bytes of each packet of a pcap or pcapng file (little-endian, as the recorder writes them)."""
    if data[:4] == b"\xd4\xc3\xb2\xa1":
        link = struct.unpack_from("<I", data, 20)[0]
        at = 24
        while at + 16 <= len(data):
            size = struct.unpack_from("<I", data, at + 8)[0]
            yield link, data[at + 16 : at + 16 + size]
            at += 16 + size
        return
    at, links = 0, []
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 1:
            links.append(struct.unpack_from("<H", data, at + 8)[0])
        elif kind == 6:
            interface, size = struct.unpack_from("<I", data, at + 8)[0], struct.unpack_from("<I", data, at + 20)[0]
            yield links[interface], data[at + 28 : at + 28 + size]
        at += length


def segments(data: bytes) -> Iterator[tuple[Endpoint, Endpoint, int, int, bytes]]:
    """Source, destination, sequence number, flags and payload of each TCP segment."""
    ethernet, sll, sll2 = 1, 113, 276
    for link, packet in packets(data):
        skip = {ethernet: 14, sll: 16, sll2: 20}[link]
        if (link == sll2 and packet[10] == 4) or (link == sll and packet[1] == 4):
            continue  # "any" sees what goes over loopback twice: once going out
        version = packet[skip] >> 4
        if version == 4:
            head = (packet[skip] & 15) * 4
            total = struct.unpack_from(">H", packet, skip + 2)[0]
            source, target = packet[skip + 12 : skip + 16], packet[skip + 16 : skip + 20]
        else:
            head, total = 40, 40 + int(struct.unpack_from(">H", packet, skip + 4)[0])
            source, target = packet[skip + 8 : skip + 24], packet[skip + 24 : skip + 40]
        tcp = skip + head
        sport, dport, sequence = struct.unpack_from(">HHI", packet, tcp)
        offset, flags = (packet[tcp + 12] >> 4) * 4, packet[tcp + 13]
        yield (source, sport), (target, dport), sequence, flags, packet[tcp + offset : skip + total]


def connections(data: bytes, ports: set[int]) -> Iterator[tuple[Stream, Stream]]:
    """Each connection to one of ``ports``: what the client sent, what the broker sent."""
    open_: dict[tuple[Endpoint, Endpoint], tuple[Stream, Stream]] = {}
    done: list[tuple[Stream, Stream]] = []
    for source, target, sequence, flags, payload in segments(data):
        client = (source, target) if target[1] in ports else (target, source)
        if flags & 2 and target[1] in ports and client in open_:
            done.append(open_.pop(client))
        pair = open_.setdefault(client, (Stream(), Stream()))
        stream = pair[0] if target[1] in ports else pair[1]
        if flags & 2:
            stream.start, stream.opened = (sequence + 1) & 0xFFFFFFFF, True
        if stream.start is None:
            stream.start = sequence
        if payload:
            at = (sequence - stream.start) & 0xFFFFFFFF
            if at < 1 << 31 and len(stream.parts.get(at, b"")) < len(payload):
                stream.parts[at] = payload
    yield from [*done, *open_.values()]


def frames(data: bytes, found: Findings) -> Iterator[bytes]:
    """The frames of one direction. The last one may be cut off: a client hangs up while a broker is still sending."""
    at = 0
    while at + 4 <= len(data):
        size = struct.unpack_from(">i", data, at)[0]
        if size < 0:
            raise ValueError(f"frame of {size} bytes at {at} of {len(data)}")
        if at + 4 + size > len(data):
            found.frames["responses that were cut off"] += 1
            return
        yield data[at + 4 : at + 4 + size]
        at += 4 + size
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes left")


def magics(value: Any) -> Iterator[tuple[int, str]]:
    """Magic and codec of every record set anywhere in a decoded message."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "records" and isinstance(inner, bytes | memoryview):
                yield from entries(bytes(inner))
            else:
                yield from magics(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from magics(inner)


def entries(data: bytes) -> Iterator[tuple[int, str]]:
    at = 0
    while at + 17 <= len(data):
        size, magic = struct.unpack_from(">i", data, at + 8)[0], data[at + 16]
        if at + 12 + size > len(data) or size <= 0:
            return
        attributes = struct.unpack_from(">h", data, at + 21)[0] if magic == 2 else data[at + 17]
        yield magic, CODECS.get(attributes & 7, "?")
        at += 12 + size


def is_about(told: Any) -> bool:
    """Whether a JSON file is what the recorder says about a capture: folders hold other things as well."""
    return isinstance(told, dict) and isinstance(told.get("capture"), str)


def look(path: Path, found: Findings) -> None:
    about = json.loads(path.read_text())
    capture = path.with_name(about["capture"])
    name = f"{path.parent.name}/{capture.name}"
    skipped = set(about["encrypted_ports"])
    for there, back in connections(capture.read_bytes(), set(about["ports"])):
        if not there.opened:
            found.problems.append(f"{name}: a connection was open before the capture began")
        if skipped and _is_tls(there):
            found.frames["encrypted connections"] += 1
            continue
        try:
            _exchange(name, there.data(), back.data(), found)
        except ValueError as error:
            found.problems.append(f"{name}: {error}")


def _is_tls(stream: Stream) -> bool:
    return stream.data()[:2] == b"\x16\x03"


def _exchange(name: str, sent: bytes, got: bytes, found: Findings) -> None:
    waiting: dict[int, tuple[int, int]] = {}
    tokens = sent[4:5] == GSSAPI
    requests, responses = list(frames(sent, found)), list(frames(got, found))
    answers = iter(responses)
    unmatched: list[bytes] = []
    for frame in requests:
        if tokens and not _looks_like_request(frame):
            found.frames["raw SASL tokens"] += 1
            if not frame.startswith(LAST_TOKEN):
                next(answers, None)
            continue
        key, version, correlation = struct.unpack_from(">hhi", frame)
        found.frames["requests"] += 1
        client = _client(frame)
        try:
            request = kwire.decode_request(frame)
        except kwire.UnsupportedVersionError:
            found.frames["unsupported versions"] += 1
            waiting[correlation] = (key, 0 if key == 18 else version)
            _match(name, answers, waiting, unmatched, found)
            continue
        except kwire.KwireError as error:
            waiting[correlation] = (key, version)
            found.problems.append(f"{name}: request {key} v{version}: {error}")
            continue
        if client == RAW_CLIENT:
            found.raw.add((key, version))
        else:
            found.pairs[key, version].add(name)
        again = kwire.encode_request(
            request.body, api_version=version, correlation_id=correlation, client_id=request.header.client_id
        )
        if bytes(again) != frame:
            found.problems.append(f"{name}: request {key} v{version} does not encode to the same bytes")
        body = request.body.to_dict()
        for kind in magics(body):
            found.record_sets[kind].add(name)
        if key == 0 and body["acks"] == 0:
            continue
        waiting[correlation] = (key, version)
        tokens = tokens or (key == 17 and version == 0)
        if key == 17 and version == 0:
            while correlation in waiting and _match(name, answers, waiting, unmatched, found):
                pass
    while _match(name, answers, waiting, unmatched, found):
        pass
    if unmatched:
        found.problems.append(f"{name}: {len(unmatched)} responses without a request")
    found.frames["requests without an answer"] += len(waiting)


def _client(frame: bytes) -> str | None:
    size = struct.unpack_from(">h", frame, 8)[0] if len(frame) >= 10 else -1
    return frame[10 : 10 + size].decode(errors="replace") if size >= 0 else None


def _looks_like_request(frame: bytes) -> bool:
    if len(frame) < 10:
        return False
    key, version, _, size = struct.unpack_from(">hhih", frame)
    return 0 <= key <= 92 and 0 <= version <= 20 and -1 <= size <= len(frame) - 10 and frame[0] == 0


def _match(
    name: str,
    answers: Iterator[bytes],
    waiting: dict[int, tuple[int, int]],
    unmatched: list[bytes],
    found: Findings,
) -> bool:
    frame = next(answers, None)
    if frame is None:
        return False
    found.frames["responses"] += 1
    correlation = struct.unpack_from(">i", frame)[0]
    if correlation not in waiting:
        unmatched.append(frame)
        return True
    key, version = waiting.pop(correlation)
    try:
        response = kwire.decode_response(frame, api_key=key, api_version=version)
    except kwire.KwireError as error:
        found.problems.append(f"{name}: response {key} v{version}: {error}")
        return True
    # A broker that does not know the version of an ApiVersions request answers in version 0.
    version = response.api_version
    found.answered.add((key, version))
    if bytes(kwire.encode_response(response.body, api_version=version, correlation_id=correlation)) != frame:
        found.problems.append(f"{name}: response {key} v{version} does not encode to the same bytes")
    for kind in magics(response.body.to_dict()):
        found.record_sets[kind].add(name)
    return True


def known() -> dict[int, tuple[str, list[int]]]:
    """Every API that kwire has a schema for: name and versions."""
    out: dict[int, tuple[str, list[int]]] = {}
    for key, name in schema.api_keys().items():
        message = schema.request(key)
        assert message is not None
        out[key] = (name, list(range(message.versions.low, message.versions.high + 1)))
    return out


def ranges(numbers: list[int]) -> str:
    parts: list[str] = []
    for number in sorted(numbers):
        if parts and int(parts[-1].rpartition("-")[2]) == number - 1:
            parts[-1] = f"{parts[-1].partition('-')[0]}-{number}"
        else:
            parts.append(str(number))
    return ", ".join(parts)


def table(found: Findings) -> str:
    apis = known()
    total = sum(len(versions) for _, versions in apis.values())
    seen = {pair for pair in found.pairs if pair[0] in apis}
    either = seen | {pair for pair in found.raw if pair in found.answered}
    keys = {key for key, _ in seen}
    lines = [
        BEGIN,
        "",
        f"Sent by real clients and brokers: **{len(keys)} of {len(apis)} API keys, {len(seen)} of {total}",
        "(API, version) pairs**. With the requests that the recorder wrote itself and a real broker answered:",
        f"{len({key for key, _ in either})} keys, {len(either)} pairs.",
        f"In all {found.frames['requests']:,} requests and {found.frames['responses']:,} responses.",
        "",
        "| key | API | versions | by clients and brokers | recorder's requests only | never seen |",
        "|---|---|---|---|---|---|",
    ]
    for key, (name, versions) in apis.items():
        real = [version for version in versions if (key, version) in seen]
        own = [version for version in versions if (key, version) in either and version not in real]
        never = [version for version in versions if version not in real and version not in own]
        lines.append(f"| {key} | {name} | {ranges(versions)} | {ranges(real)} | {ranges(own)} | {ranges(never)} |")
    lines += [
        "",
        "Record sets (in Produce, Fetch, ShareFetch and FetchSnapshot), as number of captures that hold them:",
        "",
    ]
    lines += ["| magic | " + " | ".join(CODECS.values()) + " |", "|---" * (len(CODECS) + 1) + "|"]
    for magic in (0, 1, 2):
        counts = [str(len(found.record_sets.get((magic, codec), ())) or "-") for codec in CODECS.values()]
        lines.append(f"| {magic} | " + " | ".join(counts) + " |")
    lines += ["", END]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Say what the golden captures hold.")
    parser.add_argument("folders", nargs="*", type=Path, help="folders of captures (default: all beside this script)")
    parser.add_argument("--write", action="store_true", help="put the table into docs/results/golden-matrix.md")
    arguments = parser.parse_args()
    everything = [*HERE.glob("kafka-*"), *HERE.glob("odd/kafka-*")]
    folders = arguments.folders or sorted(path for path in everything if path.is_dir())
    found = Findings()
    for folder in folders:
        for path in sorted(folder.glob("*.json")):
            if is_about(json.loads(path.read_text())):
                look(path, found)
    text = table(found)
    if arguments.write:
        document = DOCUMENT.read_text()
        if BEGIN in document:
            document = document[: document.index(BEGIN)] + text + document[document.index(END) + len(END) :]
        else:
            document = document.rstrip() + "\n\n## What is in them\n\n" + text + "\n"
        DOCUMENT.write_text(document)
    else:
        print(text)
    for line, count in Counter(found.problems).most_common():
        print(f"{count:5d} {line}", file=sys.stderr)
    print(dict(found.frames), file=sys.stderr)
    return 1 if found.problems else 0


if __name__ == "__main__":
    sys.exit(main())
