"""What tshark says of the Kafka frames of the golden captures, as an account that tests can hold against kwire's.

    python tests/golden/frames_oracle.py           (needs tshark)

``frames.tshark.json`` beside this file: by capture, for each connection and direction in which tshark finds frames, the
ports of sender and receiver in front of them, and then its frames in their order, each as the size, the correlation id,
the API key, the API version and the client_id; ``-`` where tshark does not say it, or there is none, ``*`` behind what
it calls malformed. It is told the ports of the brokers, does not know all versions that there are, and reads raw SASL
tokens as if they had a header.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = HERE / "frames.tshark.json"
FIELDS = (
    "tcp.stream", "tcp.srcport", "tcp.dstport", "frame.number", "kafka.len", "kafka.correlation_id",
    "kafka.request_key", "kafka.request.version", "kafka.response_key", "kafka.response.version", "kafka.client_id",
    "_ws.malformed",
)  # fmt: skip
UNKNOWN = "-"
NULL = "[ Null ]"


def captures() -> list[Path]:
    """The golden captures whose brokers' ports are written down, in the clear."""
    found = sorted((*HERE.glob("kafka*/*.pcap"), *HERE.glob("kafka*/*.pcapng"), *HERE.glob("odd/*.pcap*")))
    return [path for path in found if path.with_suffix(".json").exists()]


def frames(capture: Path) -> Iterator[tuple[tuple[str, str, str], str]]:
    """The frames that tshark finds: connection and ports, and what it says of each."""
    ports = json.loads(capture.with_suffix(".json").read_text())["ports"]
    command = ["tshark", "-r", str(capture), "-Y", "kafka", "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=;"]
    for port in ports:
        command += ["-d", f"tcp.port=={port},kafka"]
    for field in FIELDS:
        command += ["-e", field]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line in said.splitlines():
        stream, source, target, _, *columns = line.split("\t")
        sizes, ids, asked, asked_version, answered, answered_version, clients = (one.split(";") for one in columns[:7])
        is_request = asked != [""]
        keys, versions = (asked, asked_version) if is_request else (answered, answered_version)
        alike = len(sizes) == len(ids) == len(keys) == len(versions)
        for n, size in enumerate(sizes):
            known = [one[n] if alike else UNKNOWN for one in (ids, keys, versions)]
            client = clients[n] if is_request and alike and len(clients) == len(sizes) else UNKNOWN
            known.append(UNKNOWN if client == NULL else client)
            mark = "*" if columns[7] else ""
            yield (stream, source, target), " ".join([size, *(one or UNKNOWN for one in known)]) + mark


def account(capture: Path) -> dict[str, list[str]]:
    """By connection and direction."""
    found: dict[str, list[str]] = {}
    for way, said in frames(capture):
        found.setdefault(" ".join(way), []).append(said)
    return found


def main() -> None:
    told = {}
    for capture in captures():
        name = capture.relative_to(HERE).as_posix()
        told[name] = account(capture)
        print(name, sum(map(len, told[name].values())))
    TARGET.write_text(json.dumps(told, indent=0, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
