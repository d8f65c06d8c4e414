"""What tshark decrypts of the captures of TLS, as an account that tests can hold against kwire's.

    python tests/golden/tls_oracle.py           (needs tshark)

``NAME.tshark.json`` beside each capture of ``tests/golden/tls``: for each connection that tshark follows, the port of
its client, and of both directions (it does not say which is which) the number of decrypted bytes and their SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CAPTURES = sorted((HERE / "tls").glob("kafka*/*.pcap*"))


def tshark(capture: Path, *arguments: str) -> str:
    keys = capture.with_name(capture.name.rsplit(".", 1)[0] + ".keys")
    ports = json.loads(capture.with_name(capture.name.rsplit(".", 1)[0] + ".json").read_text())["ports"]
    command = ["tshark", "-r", str(capture), "-o", f"tls.keylog_file:{keys}", "-o", "tls.desegment_ssl_records:TRUE"]
    for port in ports:
        command += ["-d", f"tcp.port=={port},tls"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=True).stdout


def account(capture: Path) -> list[dict[str, Any]]:
    columns = ["-T", "fields", "-e", "tcp.stream", "-e", "tcp.srcport"]
    opened = tshark(capture, "-Y", "tcp.flags.syn==1 && tcp.flags.ack==0", *columns)
    found = []
    for stream, port in sorted({tuple(map(int, line.split())) for line in opened.splitlines()}):
        said = tshark(capture, "-q", "-z", f"follow,tls,raw,{stream}")
        lines = [line for line in said.splitlines() if re.fullmatch(r"\t?[0-9a-f]+", line)]
        ways = [
            b"".join(bytes.fromhex(line.strip()) for line in lines if line.startswith("\t") == back)
            for back in (False, True)
        ]
        if any(ways):
            digests = sorted([len(way), hashlib.sha256(way).hexdigest()] for way in ways)
            found.append({"client_port": port, "bytes": digests})
    return found


def main() -> None:
    for capture in CAPTURES:
        made = account(capture)
        target = capture.with_name(capture.name.rsplit(".", 1)[0] + ".tshark.json")
        target.write_text("[\n" + ",\n".join(json.dumps(one) for one in made) + "\n]\n")
        print(capture.name, len(made), "connections", sum(size for one in made for size, _ in one["bytes"]), "bytes")


if __name__ == "__main__":
    main()
