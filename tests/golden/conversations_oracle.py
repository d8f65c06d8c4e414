"""What tshark says of the TCP connections of the golden captures, as an account that tests can hold against kwire's.

    python tests/golden/conversations_oracle.py           (needs tshark)

``conversations.tshark.json`` beside this file: by capture, for each conversation that tshark follows, in its order
(which is that of the first packets), what ``COLUMNS`` names: both ends, the one that sent the first packet in front,
and for each of them packets, their bytes on the wire, bytes of segments, and how many segments with bytes
``tcp.analysis`` finds to be retransmissions or out of order; how often it finds that a segment before one is not in the
capture; when the conversation began and ended, in nanoseconds since 1970; and the time of its handshake, in nanoseconds
(null: not seen).

What is added up here of single packets is held against ``-z conv,tcp``, whose own numbers are rounded from 10,000 bytes
on.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TARGET = HERE / "conversations.tshark.json"
FIELDS = (
    "tcp.stream", "ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport", "frame.time_epoch",
    "frame.len", "tcp.len", "tcp.analysis.retransmission", "tcp.analysis.out_of_order", "tcp.analysis.lost_segment",
    "tcp.analysis.initial_rtt", "tcp.analysis.keep_alive", "tcp.flags.reset",
)  # fmt: skip
COLUMNS = (
    "ends", "packets", "wire_bytes", "bytes", "retransmissions", "out_of_order", "not_captured", "first", "last",
    "handshake",
)  # fmt: skip
UNITS = {"bytes": 1, "kB": 1000, "MB": 1_000_000}


def captures() -> list[Path]:
    """All golden captures, but those of other protocols."""
    # Bytes of paths that share a connection stand where they do in that, and tshark counts those of each path.
    found = {*HERE.rglob("*.pcap"), *HERE.rglob("*.pcapng")} - {HERE / "paths" / "multipath" / "two-paths.pcap"}
    return sorted(path for path in found if "foreign" not in path.relative_to(HERE).parts)


def tshark(capture: Path, *arguments: str) -> str:
    """What tshark prints."""
    command = ["tshark", "-r", str(capture), "-o", "tcp.relative_sequence_numbers:FALSE", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def nanoseconds(text: str) -> int:
    """Seconds as decimal text."""
    whole, _, rest = text.partition(".")
    return int(whole) * 10**9 + int(rest.ljust(9, "0")[:9])


def account(capture: Path) -> list[dict[str, Any]]:
    """The conversations of a capture."""
    columns = [word for field in FIELDS for word in ("-e", field)]
    # Of packets in tunnels: the innermost headers, which are the last.
    said = tshark(capture, "-Y", "tcp", "-T", "fields", "-E", "occurrence=l", *columns)
    found: dict[int, dict[str, Any]] = {}
    for line in said.splitlines():
        stream, ip, ip6, port, ip_to, ip6_to, port_to, time, size, length, again, late, lost, rtt, alive, reset = (
            line.split("\t")
        )
        source, target = [ip or ip6, int(port)], [ip_to or ip6_to, int(port_to)]
        one = found.setdefault(
            int(stream),
            {
                "ends": [source, target],
                "packets": [0, 0],
                "wire_bytes": [0, 0],
                "bytes": [0, 0],
                "retransmissions": [0, 0],
                "out_of_order": [0, 0],
                "not_captured": [0, 0],
                "first": nanoseconds(time),
                "last": nanoseconds(time),
                "handshake": None,
            },
        )
        side = one["ends"].index(source)
        one["packets"][side] += 1
        one["wire_bytes"][side] += int(size)
        one["bytes"][side] += int(length)
        one["retransmissions"][side] += bool(again) and int(length) > 0 and not alive
        one["out_of_order"][side] += bool(late) and int(length) > 0
        one["not_captured"][side] += bool(lost)
        one["first"] = min(one["first"], nanoseconds(time))
        one["last"] = max(one["last"], nanoseconds(time))
        # Where a connection is refused, tshark takes the RST for the end of a handshake.
        if rtt and reset not in ("1", "True") and one["handshake"] is None:
            one["handshake"] = nanoseconds(rtt)
    made = [found[stream] for stream in sorted(found)]
    check(capture, made)
    return made


def check(capture: Path, made: list[dict[str, Any]]) -> None:
    """Holds what was added up against what tshark adds up."""
    mine = {tuple(sorted(f"{host}:{port}" for host, port in one["ends"])): one for one in made}
    assert len(mine) == len(made), f"{capture}: ports that are used twice"
    row = re.compile(r"(\S+)\s+<->\s+(\S+)\s+" + r"(\d+)\s+(\d+)\s+(bytes|kB|MB)\s+" * 3 + r"(\S+)\s+(\S+)")
    count = 0
    for line in tshark(capture, "-q", "-z", "conv,tcp").splitlines():
        found = row.fullmatch(line.strip())
        if found is None:
            continue
        count += 1
        one = mine[tuple(sorted(found.group(1, 2)))]
        back, forth, both = (int(found[k]) for k in (3, 6, 9))
        first = [f"{host}:{port}" for host, port in one["ends"]].index(found[1])
        assert [forth, back] == [one["packets"][first], one["packets"][1 - first]], line
        assert both == sum(one["packets"])
        for size, unit, bytes_ in (
            (found[4], found[5], one["wire_bytes"][1 - first]),
            (found[7], found[8], one["wire_bytes"][first]),
            (found[10], found[11], sum(one["wire_bytes"])),
        ):
            assert abs(int(size) * UNITS[unit] - bytes_) < UNITS[unit], line
        assert abs((one["last"] - one["first"]) / 1e9 - float(found[13])) < 1e-4, line
    assert count == len(made), capture


def main() -> None:
    """Writes the account."""
    lines = []
    for capture in captures():
        made = account(capture)
        rows = ",\n".join(json.dumps([one[name] for name in COLUMNS], separators=(",", ":")) for one in made)
        lines.append(f"{json.dumps(capture.relative_to(HERE).as_posix())}: [\n{rows}\n]")
        print(capture.name, len(made), "connections")
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
