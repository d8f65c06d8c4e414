"""Records the frames of a golden capture once more, on their way through a VXLAN device of the kernel.

    python tests/golden/record_vxlan.py          (root, Linux with namespaces and vxlan, tcpdump)

Two network namespaces are joined by a cable (veth), and each has a VXLAN device on it. In one a program listens and
gives the answers of the capture, in the other one asks its questions, connection by connection, over TCP through the
tunnel. ``tcpdump`` listens to the cable, where packets are in the tunnel, and at the same time to the device, where
they are not. The answers are those that a real broker gave, only the network is another one.

``FORMS`` says what is recorded: tunnels over IPv4 and IPv6 whose device leaves room for their headers, and one over
IPv4 whose device does not, so that the kernel sends fragments. (Over IPv6 it sends none, and tells TCP to send less.)

Beside each ``NAME.pcap`` (the cable) and ``NAME-inside.pcap`` (the device) stands ``NAME.json``: what was replayed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from kwire.capture.reading import Reading

HERE = Path(__file__).parent
FOLDER = HERE / "tunnels" / "vxlan"
PORT = 9092
BROKER = "198.51.100.2"
DRAIN_SECONDS = 1.3

Step = tuple[int, bytes]
"""0 for a request, 1 for a response, and the frame with its size."""


@dataclass(frozen=True)
class Form:
    """One recording: the capture that is ``replayed``, ``ends`` of the tunnel, the largest packets of its device and of
    the cable, and what tcpdump is to take of the cable."""

    about: str
    replayed: str
    ends: tuple[str, str]
    mtu: int
    cable: int
    wanted: str


FIRST = "kafka-3.9-zk-kafka-python/first-light.pcap"
EVENTS = "kafka-4.3-kraft-events/events.pcap"

FORMS = {
    "plain": Form("VXLAN over IPv4", FIRST, ("192.0.2.1", "192.0.2.2"), 1450, 1500, "ip"),
    "ipv6": Form("VXLAN over IPv6", EVENTS, ("2001:db8::1", "2001:db8::2"), 1430, 1500, "ip6"),
    "fragments": Form("VXLAN over IPv4, in fragments", EVENTS, ("192.0.2.1", "192.0.2.2"), 1500, 300, "ip"),
}


def conversations(path: Path) -> list[list[Step]]:
    """The frames of a capture by connection, each in the order in which the capture had them."""
    found: dict[int, list[tuple[int, int, bytes]]] = {}
    with path.open("rb") as file:
        for frames in Reading(file):
            for frame in frames:
                whole = struct.pack(">i", frame.size) + frame.data
                found.setdefault(frame.connection, []).append((frame.number, int(frame.is_response), whole))
    return [[(way, data) for _, way, data in sorted(found[number])] for number in sorted(found)]


def play(side: int, conversations: list[list[Step]], broker: str = BROKER, protocol: int = 0) -> None:
    """One end of all conversations: 0 asks, 1 answers. ``protocol`` is that of the sockets."""
    listener = socket.socket(proto=protocol)
    if side:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((broker, PORT))
        listener.listen()
    for steps in conversations:
        if side:
            connection = listener.accept()[0]
        else:
            connection = socket.socket(proto=protocol)
            connection.connect((broker, PORT))
        with connection:
            connection.settimeout(10)
            for way, data in steps:
                if way == side:
                    connection.sendall(data)
                    continue
                left = len(data)
                while left:
                    part = connection.recv(left)
                    if not part:
                        raise ConnectionError("the other end hung up")
                    left -= len(part)


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


@contextmanager
def namespaces(form: Form) -> Iterator[list[str]]:
    """Two namespaces with a cable and a tunnel between them: their names."""
    names = [f"kwire-{os.getpid()}-{side}" for side in "ab"]
    try:
        for name in names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "cable", "netns", names[0], "type", "veth", "peer", "name", "cable", "netns", names[1])
        for k, name in enumerate(names):
            here, there = form.ends[k], form.ends[1 - k]
            six = ":" in here
            address = [f"{here}/{64 if six else 24}", *(["nodad"] if six else [])]
            # Without the name of the cable, on which the kernel would allow no packets that need fragments.
            vxlan = ["id", "4242", "dstport", "4789", "local", here, "remote", there]
            for arguments in (
                ["addr", "add", *address, "dev", "cable"],
                ["link", "set", "cable", "mtu", str(form.cable), "up"],
                ["link", "add", "tunnel", "type", "vxlan", *vxlan],
                # Each segment is a packet here already, as it is on a wire.
                ["link", "set", "tunnel", "mtu", str(form.mtu), "gso_max_segs", "1", "up"],
                ["addr", "add", f"198.51.100.{k + 1}/24", "dev", "tunnel"],
            ):
                run("ip", "-n", name, *arguments)
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@contextmanager
def sniffed(namespace: str, device: str, path: Path, wanted: str) -> Iterator[None]:
    """What passes a device while the block runs. Raises ``RuntimeError`` where packets were dropped."""
    command = ["ip", "netns", "exec", namespace, "tcpdump", "-i", device, "-s", "0", "-B", "32768", "-n", "-U"]
    sniffer = subprocess.Popen([*command, "-Z", "root", "-w", str(path), wanted], stderr=subprocess.PIPE, text=True)
    assert sniffer.stderr is not None
    said = sniffer.stderr.readline()
    while "listening on" not in said:
        if not said:
            raise RuntimeError(f"tcpdump does not listen to {device}")
        said = sniffer.stderr.readline()
    try:
        yield
        time.sleep(DRAIN_SECONDS)
    finally:
        sniffer.send_signal(signal.SIGINT)
        said = sniffer.communicate(timeout=10)[1]
    if "\n0 packets dropped" not in said:
        raise RuntimeError(said)
    path.chmod(0o644)


def record(name: str, form: Form) -> None:
    """Makes one recording."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with namespaces(form) as (a, b), ExitStack() as stack:
        stack.enter_context(sniffed(a, "cable", FOLDER / f"{name}.pcap", form.wanted))
        stack.enter_context(sniffed(a, "tunnel", FOLDER / f"{name}-inside.pcap", "tcp"))
        me = [sys.executable, __file__, form.replayed]
        server = subprocess.Popen(["ip", "netns", "exec", b, *me, "answer"])
        time.sleep(3)
        subprocess.run(["ip", "netns", "exec", a, *me, "ask"], check=True, timeout=120)
        if server.wait(timeout=10):
            raise RuntimeError("the end that answers has failed")
    about = {"kernel": f"{os.uname().sysname} {os.uname().release}", **asdict(form)}
    (FOLDER / f"{name}.json").write_text(json.dumps(about, indent=1) + "\n")


def main() -> None:
    if len(sys.argv) > 1:
        play(["ask", "answer"].index(sys.argv[2]), conversations(HERE / sys.argv[1]))
        return
    for name, form in FORMS.items():
        record(name, form)


if __name__ == "__main__":
    main()
