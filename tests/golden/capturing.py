"""Recording: a packet capture of loopback ports, and beside it what the clients say they sent and read.

``Recording`` is a context manager around one capture file; inside it, clients report records to ``Recording.produced``
and ``Recording.fetched`` and anything else worth checking to ``Recording.note``. On the way out it stops the sniffer
after traffic has drained, and writes

    NAME.pcap | NAME.pcapng     the packets (full length, only the ports of the brokers)
    NAME.jsonl                  one JSON object per record and direction (see ``Record``), in the order of reporting:
                                an exact account, nothing else was on the wire (``exact=True``), or
    NAME.told.jsonl             the same, but the wire may hold more: fetched and not handed out, moved between brokers
    NAME.json                   broker, clients, ports, what the capture is about, notes

Rules: the sniffer runs before the first connection is opened and ends after the last one is closed, so that every
connection is whole; a capture from which the kernel dropped packets is an error, never a file.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import signal
import subprocess
import threading
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["Record", "Recording", "RecordingError"]

DRAIN_SECONDS = 1.3
"""The kernel hands a block of packets over once a second. (In tcpdump's immediate mode each packet takes a slot of the
full snapshot length in the kernel's buffer, and a busy machine drops packets.)"""
LARGEST = 2_000_000
"""Bytes of a capture: more is a mistake, not a recording."""


class RecordingError(Exception):
    """A capture could not be made, or is not whole."""


@dataclass(frozen=True, slots=True)
class Record:
    """What a client sent or read. ``offset`` and ``timestamp`` are None where the client was not told (acks=0).

    ``timestamp`` is in milliseconds since 1970, ``timestamp_type`` 0 create time, 1 log append time, None unknown.
    """

    topic: str
    partition: int | None
    offset: int | None
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_type: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "timestamp": self.timestamp,
            "timestamp_type": self.timestamp_type,
            "key": _text(self.key),
            "value": _text(self.value),
            "headers": [[name, _text(value)] for name, value in self.headers],
        }


def _text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


@dataclass(slots=True)
class Recording:
    """One capture while it is being made.

    ``path`` without suffix; ``ports`` of the brokers; ``form`` "pcap" (Ethernet, tcpdump), "pcapng" (Ethernet,
    dumpcap), "sll" or "sll2" (pcap with Linux cooked headers, version 1 or 2), "none" (only expectations: for log
    segments); ``encrypted`` those of the ports that speak TLS; ``exact`` see above.
    """

    path: Path
    ports: Sequence[int]
    about: str
    broker: str
    form: str = "pcap"
    lines: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    clients: dict[str, str] = field(default_factory=dict)
    encrypted: Sequence[int] = ()
    exact: bool = True
    _sniffer: subprocess.Popen[str] | None = None
    _said: list[str] = field(default_factory=list)
    _reader: threading.Thread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def file(self) -> Path:
        return self.path.with_name(self.path.name + (".pcapng" if self.form == "pcapng" else ".pcap"))

    def produced(self, client: str, record: Record, **more: Any) -> None:
        with self._lock:
            self.lines.append({"client": client, "direction": "produce", **record.as_json(), **more})

    def fetched(self, client: str, record: Record, **more: Any) -> None:
        with self._lock:
            self.lines.append({"client": client, "direction": "fetch", **record.as_json(), **more})

    def note(self, client: str, what: str, **more: Any) -> None:
        """Something else that a client did or was told, such as an error code that the capture must show."""
        with self._lock:
            self.notes.append({"client": client, "what": what, **more})

    def run(self, client: str, command: Sequence[str], *, seconds: float = 120, **more: Any) -> None:
        """Run a client program to its end and take over the records and notes that it prints (see ``samples``).

        ``more`` is added to each of its lines. Raises ``RecordingError`` when the program fails.
        """
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL)
        for text in done.stdout.split("\n"):
            if not text.startswith("{"):
                continue
            line = json.loads(text) | more
            if line.get("note") == "version":
                self.clients[client] = line["version"]
            elif "direction" in line:
                with self._lock:
                    self.lines.append({"client": client, **line})
            else:
                self.note(client, line.pop("note"), **line)
        if done.returncode != 0:
            raise RecordingError(f"{client} ended with {done.returncode}: {(done.stderr or done.stdout)[-3000:]}")

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.form == "none":
            return self
        ports = " or ".join(f"port {port}" for port in sorted(set(self.ports)))
        pattern = f"tcp and ({ports})"
        if self.form == "pcapng":
            command = [
                _program("dumpcap"),
                "-q",
                "-i",
                "lo",
                "-s",
                "0",
                "-B",
                "32",
                "-f",
                pattern,
                "-w",
                str(self.file),
            ]
        else:
            link = {"pcap": ["-i", "lo"], "sll": ["-i", "any", "-y", "LINUX_SLL"], "sll2": ["-i", "any"]}[self.form]
            command = [_program("tcpdump"), *link, "-s", "0", "-B", "32768", "-n", "-Z", "root", "-U"]
            command += ["-w", str(self.file), pattern]
        self._sniffer = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        deadline = time.monotonic() + 10
        while not any("listening on" in line or "File:" in line for line in self._said):
            if self._sniffer.poll() is not None or time.monotonic() > deadline:
                raise RecordingError(f"{command[0]} does not start: {' '.join(self._said)}")
            time.sleep(0.02)
        time.sleep(0.1)
        return self

    def _listen(self) -> None:
        assert self._sniffer is not None
        assert self._sniffer.stderr is not None
        for line in self._sniffer.stderr:
            self._said.append(line.strip())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sniffer is not None:
            self._stop_sniffing(self._sniffer)
        if error is not None:
            self.file.unlink(missing_ok=True)
            return
        self._check_drops()
        if self.form == "pcap":
            _keep_whole(self.file)
        self._write()

    def _stop_sniffing(self, sniffer: subprocess.Popen[str]) -> None:
        time.sleep(DRAIN_SECONDS)
        sniffer.send_signal(signal.SIGINT)
        try:
            sniffer.wait(timeout=10)
        except subprocess.TimeoutExpired:
            sniffer.kill()
            sniffer.wait()
        if self._reader is not None:
            self._reader.join(timeout=5)

    def _check_drops(self) -> None:
        dropped = [line for line in self._said if re.match(r"[1-9]\d* packets dropped", line)]
        dropped += [line for line in self._said if re.search(r"dropped on interface.*: \d+/[1-9]", line)]
        size = self.file.stat().st_size if self.form != "none" else 0
        if dropped or size > LARGEST:
            self.file.unlink(missing_ok=True)
            raise RecordingError(f"{self.file.name}: {dropped[0] if dropped else f'{size} bytes, a client runs wild'}")

    def _write(self) -> None:
        if self.form != "none":
            self.file.chmod(0o644)
        if self.lines or self.exact:
            told = self.path.with_name(self.path.name + (".jsonl" if self.exact else ".told.jsonl"))
            told.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in self.lines))
        about = {
            "capture": None if self.form == "none" else self.file.name,
            "about": inspect.cleandoc(self.about),
            "broker": self.broker,
            "clients": self.clients,
            "ports": sorted(set(self.ports)),
            "encrypted_ports": sorted(self.encrypted),
            "notes": self.notes,
        }
        self.path.with_name(self.path.name + ".json").write_text(json.dumps(about, indent=1) + "\n")


def _keep_whole(path: Path) -> None:
    """Drop the packets of connections that were open before the capture began (brokers among themselves)."""
    data = path.read_bytes()
    packets: list[tuple[frozenset[bytes], bool, bytes]] = []
    at = 24
    while at + 16 <= len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "little")
        packet = data[at + 16 : at + 16 + size]
        # Ethernet, then IPv4 (loopback has no options) or IPv6: both ends as address and port.
        width, addresses, tcp = (4, 26, 34) if packet[14] >> 4 == 4 else (16, 22, 54)
        ends = [packet[addresses + n * width : addresses + (n + 1) * width] for n in (0, 1)]
        ports = [packet[tcp + n * 2 : tcp + n * 2 + 2] for n in (0, 1)]
        flow = frozenset(end + port for end, port in zip(ends, ports, strict=True))
        packets.append((flow, bool(packet[tcp + 13] & 2), data[at : at + 16 + size]))
        at += 16 + size
    opened = {flow for flow, syn, _ in packets if syn}
    path.write_bytes(data[:24] + b"".join(packet for flow, _, packet in packets if flow in opened))


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise RecordingError(f"recording needs {name} (Debian: tcpdump, wireshark-common)")
    return found
