"""Wireshark's dissector, by tshark: ``kwire fuzz run --lines --cmd 'python -m fuzz.peers.of_tshark' --most 500``.

Each frame becomes a capture of one connection: a request, and its response. tshark is started for each, which takes a
third of a second. A frame is refused if tshark calls it malformed, or gives an expert note of the severity error.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import kwire
from fuzz.peers import SkipError, serve
from kwire import schema
from kwire.testing.corpus.captures import BROKER, CLIENT, connection
from kwire.testing.corpus.shapes import value

_ERROR = "8388608"
"""The severity ``error`` of an expert note."""


def dissect(data: bytes) -> list[list[str]]:
    """What tshark says of the packets with payloads: API key, malformed or not, severities, notes."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "frame.pcap")
        file.write_bytes(data)
        fields = ("tcp.len", "kafka.len", "_ws.malformed", "_ws.expert.severity", "_ws.expert.message")
        words = ["tshark", "-r", str(file), "-T", "fields", "-d", "tcp.port==9092,kafka", "-Y", "tcp.len > 0"]
        for one in fields:
            words += ["-e", one]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise MemoryError(f"tshark ended with {done.returncode}: {done.stderr[-200:]}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def read(role: str, api_key: int, version: int, at: int | None, frame: bytes) -> None:
    """A frame in a connection."""
    if role in ("records", "capture"):
        raise SkipError
    parts = [(CLIENT, BROKER, frame)]
    if role == "response":
        message = schema.request(api_key)
        if message is None or version not in message.versions or frame[:4] != (7).to_bytes(4, "big"):
            raise SkipError
        request = kwire.encode_request(value(message, version, "one"), api_version=version, correlation_id=7)
        parts = [(CLIENT, BROKER, request), (BROKER, CLIENT, frame)]
    said = dissect(connection(parts))
    _, _, malformed, severities, notes = said[-1]
    if "Unsupported" in notes:
        raise SkipError
    if malformed or _ERROR in severities.split(","):
        raise ValueError(notes or malformed)


if __name__ == "__main__":
    serve(read)
