"""Records the frames of a golden capture once more, over Multipath TCP of the kernel.

    python tests/golden/record_multipath.py      (root, Linux with namespaces and MPTCP, tcpdump)

Two network namespaces are joined by two cables (veth). In one a program listens and gives the answers of the capture,
in the other one asks its questions, connection by connection, as in ``record_vxlan.py``, but over sockets of Multipath
TCP. ``tcpdump`` listens to both cables. The answers are those that a real broker gave.

``FORMS`` says what is recorded: connections with one path, and such that may use both cables. Of these the first one is
slow, so that the kernel sends a part over the other.

Beside each ``NAME.pcap`` stands ``NAME.json``: what was replayed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from operator import itemgetter

from record_vxlan import HERE, conversations, play, run, sniffed

FOLDER = HERE / "paths" / "multipath"
BROKER = "198.51.101.2"
MULTIPATH = 262
"""IPPROTO_MPTCP, which has no name in Python."""


@dataclass(frozen=True)
class Form:
    """One recording: the capture that is ``replayed``, and over how many cables."""

    about: str
    replayed: str
    cables: int


FORMS = {
    "one-path": Form("Multipath TCP with one path", "kafka-3.9-zk-kafka-python/first-light.pcap", 1),
    "two-paths": Form("Multipath TCP with two paths", "kafka-4.3-kraft-java/clients.pcap", 2),
}


@contextmanager
def namespaces(form: Form) -> Iterator[list[str]]:
    """Two namespaces with cables between them: their names."""
    names = [f"kwire-{os.getpid()}-{side}" for side in "ab"]
    try:
        for name in names:
            run("ip", "netns", "add", name)
            run("ip", "netns", "exec", name, "sysctl", "-qw", "net.mptcp.enabled=1")
            run("ip", "-n", name, "mptcp", "limits", "set", "subflow", "2", "add_addr_accepted", "2")
        for number in range(1, form.cables + 1):
            cable = f"cable{number}"
            run("ip", "link", "add", cable, "netns", names[0], "type", "veth", "peer", "name", cable, "netns", names[1])
            for k, name in enumerate(names):
                run("ip", "-n", name, "addr", "add", f"198.51.{100 + number}.{k + 1}/24", "dev", cable)
                # Each segment is a packet here already, as it is on a wire.
                run("ip", "-n", name, "link", "set", cable, "gso_max_segs", "1", "up")
                if form.cables > number:
                    limited = ("rate", "2mbit", "burst", "4kb", "latency", "400ms")
                    run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", cable, "root", "tbf", *limited)
        if form.cables > 1:
            run("ip", "-n", names[0], "mptcp", "endpoint", "add", "198.51.102.1", "dev", "cable2", "subflow")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def record(name: str, form: Form) -> None:
    """Makes one recording."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with namespaces(form) as (a, b), sniffed(a, "any", FOLDER / f"{name}.pcap", "tcp"):
        me = [sys.executable, __file__, form.replayed]
        server = subprocess.Popen(["ip", "netns", "exec", b, *me, "answer", str(form.cables)])
        time.sleep(3)
        subprocess.run(["ip", "netns", "exec", a, *me, "ask", str(form.cables)], check=True, timeout=120)
        if server.wait(timeout=10):
            raise RuntimeError("the end that answers has failed")
    about = {"kernel": f"{os.uname().sysname} {os.uname().release}", **asdict(form)}
    (FOLDER / f"{name}.json").write_text(json.dumps(about, indent=1) + "\n")


def main() -> None:
    if len(sys.argv) > 1:
        side = ["ask", "answer"].index(sys.argv[2])
        talks = conversations(HERE / sys.argv[1])
        if int(sys.argv[3]) > 1:
            # All requests first, then all responses: enough at once for more than one path.
            talks = [sorted(steps, key=itemgetter(0)) for steps in talks]
        play(side, talks, BROKER, MULTIPATH)
        return
    for name, form in FORMS.items():
        record(name, form)


if __name__ == "__main__":
    main()
