"""Record TLS connections between OpenSSL's own client and server, as vectors for the decryption of TLS.

    python tests/golden/record_tls.py            all of them, about half a minute (needs the program ``openssl``, 3.0+)
    python tests/golden/record_tls.py early-data

Each becomes ``tests/golden/tls/openssl/NAME.json``: what went over the wire (direction 0 is the client's), in the order
in which a proxy between both passed it on, the key log that the client wrote, and what each of them said. The client
sends lines, the server sends each of them back in reverse.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = HERE / "tls" / "openssl"
LINES = (b"a first line from the client\n", b"and another one " + b"0123456789" * 4 + b"\n")
LARGE = b"x" * 20_000 + b"\n"


@dataclass
class Case:
    """One vector. ``before``: a first connection, that this one resumes. ``commands``: what ``s_client`` is told in
    between (K: update keys, R: agree on keys anew)."""

    about: str
    client: Sequence[str] = ()
    server: Sequence[str] = ()
    both: Sequence[str] = ()
    commands: Sequence[bytes] = ()
    resumed: bool = False
    early: bool = False
    lines: Sequence[bytes] = LINES
    rsa: bool = False


def suite13(name: str) -> Case:
    return Case(f"TLS 1.3 with {name}", both=["-tls1_3", "-ciphersuites", name])


def suite12(name: str, *more: str, rsa: bool = False) -> Case:
    return Case(f"TLS 1.2 with {name}", both=["-tls1_2", "-cipher", f"{name}:@SECLEVEL=0", *more], rsa=rsa)


PSK = ("-psk", "00112233445566778899aabbccddeeff")
CASES = {
    **{
        f"tls13-{name.removeprefix('TLS_').removesuffix('_SHA256').removesuffix('_SHA384').lower()}": suite13(name)
        for name in (
            "TLS_AES_128_GCM_SHA256",
            "TLS_AES_256_GCM_SHA384",
            "TLS_CHACHA20_POLY1305_SHA256",
            "TLS_AES_128_CCM_SHA256",
            "TLS_AES_128_CCM_8_SHA256",
        )
    },
    "tls12-dhe-rsa-aes256-gcm": suite12("DHE-RSA-AES256-GCM-SHA384", rsa=True),
    "tls12-rsa-aes128-gcm": suite12("AES128-GCM-SHA256", rsa=True),
    "tls12-rsa-aes128-ccm8": suite12("AES128-CCM8", rsa=True),
    "tls12-ecdhe-ecdsa-aes256-ccm": suite12("ECDHE-ECDSA-AES256-CCM"),
    "tls12-psk-aes128-gcm": suite12("PSK-AES128-GCM-SHA256", *PSK),
    "tls12-dhe-psk-chacha20": suite12("DHE-PSK-CHACHA20-POLY1305", *PSK),
    "tls12-psk-aes256-ccm": suite12("PSK-AES256-CCM", *PSK),
    "tls12-ecdhe-psk-aes128-cbc": suite12("ECDHE-PSK-AES128-CBC-SHA256", *PSK),
    "tls12-cbc-sha384": suite12("ECDHE-ECDSA-AES256-SHA384"),
    "tls12-cbc-mac-then-encrypt": Case(
        "TLS 1.2, AES-CBC with the MAC inside: the client does not offer encrypt-then-MAC",
        client=["-legacy_renegotiation", "-no_etm"],
        both=["-tls1_2", "-cipher", "AES256-SHA:@SECLEVEL=0"],
        rsa=True,
    ),
    "tls11-cbc": Case("TLS 1.1", both=["-tls1_1", "-cipher", "ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0"]),
    "tls10-cbc": Case("TLS 1.0", both=["-tls1", "-cipher", "ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0"]),
    "tls12-aria": suite12("ECDHE-ECDSA-ARIA128-GCM-SHA256"),
    "tls13-retry": Case(
        "TLS 1.3 with a HelloRetryRequest", client=["-groups", "X25519:P-384"], server=["-groups", "P-384"],
        both=["-tls1_3"],
    ),
    "tls13-key-update": Case(
        "TLS 1.3 with KeyUpdates of both", both=["-tls1_3"], commands=[b"K\n", b"k\n", b"K\n"]
    ),
    "tls12-renegotiation": Case(
        "TLS 1.2, keys agreed on anew", client=["-legacy_renegotiation"], server=["-client_renegotiation"],
        both=["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"], commands=[b"R\n"],
    ),
    "tls13-resumed": Case("TLS 1.3 with a pre-shared key of an earlier connection", both=["-tls1_3"], resumed=True),
    "tls12-ticket": Case("TLS 1.2, resumed with a ticket", both=["-tls1_2"], resumed=True),
    "tls12-session-id": Case("TLS 1.2, resumed by number", both=["-tls1_2", "-no_ticket"], resumed=True),
    "tls13-early-data": Case(
        "TLS 1.3 with early data", both=["-tls1_3"], server=["-early_data"], resumed=True, early=True
    ),
    "tls13-early-data-refused": Case(
        "TLS 1.3 with early data that the server refuses, since the client has sent it before",
        both=["-tls1_3"], server=["-early_data"], resumed=True, early=True,
    ),
    "tls13-padding": Case("TLS 1.3 with padding", both=["-tls1_3", "-record_padding", "512"]),
    "tls13-small-records": Case(
        "TLS 1.3 with records of 512 bytes", client=["-maxfraglen", "512"], both=["-tls1_3"],
        lines=[LARGE[:3000] + b"\n"],
    ),
    "tls12-large": Case("TLS 1.2 with lines of more than a record", both=["-tls1_2"], lines=[LARGE]),
    "tls13-client-certificate": Case(
        "TLS 1.3 with a certificate of the client", client=["-cert", "{cert}", "-key", "{key}"],
        server=["-Verify", "1"], both=["-tls1_3"],
    ),
}  # fmt: skip


@dataclass
class Wire:
    """A proxy that records."""

    port: int
    target: int
    passed: list[tuple[int, bytes]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.target))
            for side, source, sink in ((0, near, far), (1, far, near)):
                threading.Thread(target=self._pass_on, args=(side, source, sink), daemon=True).start()

    def _pass_on(self, side: int, source: socket.socket, sink: socket.socket) -> None:
        while True:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            if not data:
                break
            with self.lock:
                self.passed.append((side, data))
            sink.sendall(data)
        try:
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def certificate(folder: Path, kind: str) -> tuple[Path, Path]:
    key, cert = folder / f"{kind}.key", folder / f"{kind}.pem"
    how = ["rsa:2048"] if kind == "rsa" else ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command = ["openssl", "req", "-x509", "-newkey", *how, "-nodes", "-keyout", key, "-out", cert, "-days", "3650"]
    subprocess.run([*command, "-subj", "/CN=localhost"], check=True, capture_output=True)
    return cert, key


def listen(program: subprocess.Popen[bytes], said: bytearray) -> None:
    assert program.stdout is not None
    for line in program.stdout:
        said += line


def record(name: str, case: Case, folder: Path, certificates: dict[str, tuple[Path, Path]]) -> None:
    cert, key = certificates["rsa" if case.rsa else "ec"]
    places = {"{cert}": str(cert), "{key}": str(key)}
    server_port = free_port()
    given = [] if "-psk" in case.both else ["-cert", str(cert), "-key", str(key)]
    both = [places.get(one, one) for one in case.both]
    server = ["openssl", "s_server", "-accept", f"127.0.0.1:{server_port}", *given, "-rev", *both, *case.server]
    if "-psk" in case.both:
        server.append("-nocert")
    if case.early:
        # The server takes early data once per session; it must be the one and same process.
        server.remove("-rev")
    environment = {**os.environ, "OPENSSL_CONF": "/dev/null"}
    serving = subprocess.Popen(
        server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    )
    said = bytearray()
    threading.Thread(
        target=lambda: [said.extend(one) for one in iter(lambda: serving.stdout.read(1), b"")], daemon=True
    ).start()
    time.sleep(0.4)
    session, keys = folder / f"{name}.session", folder / f"{name}.keys"
    early = folder / "early"
    early.write_bytes(b"early data of the client\n")
    times = (2 if case.resumed else 1) + name.endswith("refused")
    wire = None
    for attempt in range(times):
        last = attempt == times - 1
        keys.unlink(missing_ok=True)
        wire = Wire(free_port(), server_port)
        wire.start()
        client = ["openssl", "s_client", "-connect", f"127.0.0.1:{wire.port}", "-servername", "broker.example"]
        client += ["-keylogfile", str(keys), *both, *(places.get(one, one) for one in case.client)]
        if case.resumed:
            client += ["-sess_out" if attempt == 0 else "-sess_in", str(session)]
        if case.early and attempt > 0:
            client += ["-early_data", str(early)]
        asking = subprocess.Popen(
            client, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
        )
        assert asking.stdin is not None
        time.sleep(0.5)
        for k, line in enumerate(case.lines):
            asking.stdin.write(line)
            asking.stdin.flush()
            time.sleep(0.25)
            if last and k < len(case.commands):
                asking.stdin.write(case.commands[k])
                asking.stdin.flush()
                time.sleep(0.25)
                if k == len(case.lines) - 1:
                    for more in case.commands[k + 1 :]:
                        asking.stdin.write(more)
                        asking.stdin.flush()
                        time.sleep(0.2)
                        asking.stdin.write(LINES[0])
                        asking.stdin.flush()
                        time.sleep(0.2)
            if case.early and serving.stdin is not None:
                serving.stdin.write(b"the server says this\n")
                serving.stdin.flush()
                time.sleep(0.2)
        asking.stdin.write(b"Q\n")
        asking.stdin.flush()
        out, _ = asking.communicate(timeout=10)
        time.sleep(0.2)
        wire.listener.close()
    serving.kill()
    serving.wait()
    assert wire is not None
    if not keys.exists() or len(wire.passed) < 4:
        raise SystemExit(f"{name}: no connection\n{out.decode(errors='replace')}\n{said.decode(errors='replace')}")
    made = {
        "about": case.about,
        "keys": keys.read_text(),
        "wire": [[side, data.hex()] for side, data in wire.passed],
    }
    (OUT / f"{name}.json").write_text(json.dumps(made, indent=1) + "\n")
    print(name, sum(len(data) for _, data in wire.passed), flush=True)


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        certificates = {kind: certificate(folder, kind) for kind in ("ec", "rsa")}
        for name in sys.argv[1:] or CASES:
            record(name, CASES[name], folder, certificates)


if __name__ == "__main__":
    main()
