"""TLS connections for tests: recorded ones of OpenSSL, ones between two ends of Python's ``ssl``, and made records.

A ``Talk`` is what went over the wire, in order, with the key log and what both ends said. ``heard`` gives it to a
``Decryptor`` in pieces of any size.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
import ssl
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from kwire.tls import Decryptor, KeyLog, Plain

__all__ = ["VECTORS", "Heard", "Talk", "between", "heard", "made13", "vector"]

VECTORS = Path(__file__).parents[1] / "golden" / "tls" / "openssl"


@dataclass(frozen=True)
class Talk:
    """``wire``: direction (0: the client's) and bytes, in order of time. ``said``: what both ends said."""

    wire: Sequence[tuple[int, bytes]]
    keys: bytes
    said: tuple[bytes, bytes] = (b"", b"")


@dataclass
class Heard:
    """What a decryptor made of it: the plaintext and the number of lost bytes of both directions, and all it gave."""

    decryptor: Decryptor
    said: tuple[bytes, bytes]
    lost: tuple[int, int]
    plains: list[Plain]


_FOLDER = tempfile.TemporaryDirectory(prefix="kwire-tls-")
"""Removed when Python ends."""


def pieces(wire: Iterable[tuple[int, bytes]], size: int) -> Iterable[tuple[int, bytes]]:
    for side, data in wire:
        for at in range(0, len(data), size):
            yield side, data[at : at + size]


def heard(
    talk: Talk,
    *,
    size: int = 1 << 30,
    keys: KeyLog | None = None,
    without: Callable[[int, int], bool] = lambda side, position: False,
    between: Callable[[Decryptor], Decryptor] = lambda decryptor: decryptor,
) -> Heard:
    """Gives the connection to a decryptor, ``size`` bytes at a time. ``without``: which bytes are missing, by side and
    position. ``between``: what is done with the decryptor before each piece."""
    decryptor = Decryptor(KeyLog(talk.keys) if keys is None else keys)
    plains: list[Plain] = []
    at = [0, 0]
    for side, data in pieces(talk.wire, size):
        decryptor = between(decryptor)
        if not without(side, at[side]):
            plains += decryptor.feed(side, data, at[side])
        at[side] += len(data)
    plains += decryptor.finish()
    for plain in plains:
        assert sum(plain.lengths) == len(plain.data)
        assert len(plain.ends) == len(plain.lengths)
    said = [b"".join(one.data for one in plains if one.side == side) for side in (0, 1)]
    lost = [sum(one.lost for one in plains if one.side == side) for side in (0, 1)]
    return Heard(decryptor, (said[0], said[1]), (lost[0], lost[1]), plains)


def vector(name: str) -> Talk:
    """A recorded connection of OpenSSL."""
    told = json.loads((VECTORS / f"{name}.json").read_text())
    return Talk([(side, bytes.fromhex(data)) for side, data in told["wire"]], told["keys"].encode())


@functools.cache
def _certificate(kind: str) -> Path:
    """A self-signed certificate with its key."""
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
    key = ec.generate_private_key(ec.SECP256R1()) if kind == "ec" else rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    form = serialization.Encoding.PEM
    text = key.private_bytes(form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = Path(tempfile.mkdtemp(dir=_FOLDER.name)) / "both.pem"
    path.write_bytes(text + made.public_bytes(form))
    return path


def contexts(version: ssl.TLSVersion, ciphers: str | None, kind: str) -> tuple[ssl.SSLContext, ssl.SSLContext, Path]:
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.load_cert_chain(_certificate(kind))
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    for one in (client, server):
        one.minimum_version = one.maximum_version = version
        if ciphers is not None:
            one.set_ciphers(f"{ciphers}:@SECLEVEL=0")
    keys = Path(tempfile.mkdtemp(dir=_FOLDER.name)) / "keys"
    client.keylog_filename = str(keys)
    return client, server, keys


def between(
    lines: Sequence[tuple[int, bytes]],
    version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
    ciphers: str | None = None,
    kind: str = "ec",
) -> Talk:
    """A connection of two ends of ``ssl`` that say ``lines``, one after the other, and hang up.

    Raises ``ssl.SSLError`` for ciphers that OpenSSL does not take.
    """
    client, server, keys = contexts(version, ciphers, kind)
    to_client, to_server, from_client, from_server = (ssl.MemoryBIO() for _ in range(4))
    ends = (
        client.wrap_bio(to_client, from_client, server_hostname="broker.example"),
        server.wrap_bio(to_server, from_server, server_side=True),
    )
    wire: list[tuple[int, bytes]] = []

    def pass_on() -> None:
        for side, (source, sink) in enumerate(((from_client, to_server), (from_server, to_client))):
            data = source.read()
            if data:
                wire.append((side, data))
                sink.write(data)

    def attempt(what: Callable[[], object]) -> None:
        with contextlib.suppress(ssl.SSLWantReadError):
            what()
        pass_on()

    for _ in range(3):
        for end in ends:
            attempt(end.do_handshake)
    said = [b"", b""]
    for side, line in lines:
        ends[side].write(line)
        said[side] += line
        pass_on()
        got = b""
        while len(got) < len(line):
            got += ends[1 - side].read(len(line))
        assert got == line
    for end in ends:
        attempt(end.unwrap)
    return Talk(wire, keys.read_bytes(), (said[0], said[1]))


# --- records of TLS 1.3 that are made here ----------------------------------------------------------------------------

SUITES = {
    0x1301: (hashes.SHA256(), 16, AESGCM),
    0x1302: (hashes.SHA384(), 32, AESGCM),
    0x1303: (hashes.SHA256(), 32, ChaCha20Poly1305),
    0x1304: (hashes.SHA256(), 16, AESCCM),
    0x1305: (hashes.SHA256(), 16, lambda key: AESCCM(key, tag_length=8)),
}
RANDOM = bytes(range(32))
LABELS = (
    ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0"),
    ("SERVER_HANDSHAKE_TRAFFIC_SECRET", "SERVER_TRAFFIC_SECRET_0"),
)


def _expanded(suite: int, secret: bytes, label: bytes, length: int) -> bytes:
    label = b"tls13 " + label
    info = length.to_bytes(2, "big") + bytes((len(label),)) + label + b"\0"
    return HKDFExpand(SUITES[suite][0], length, info).derive(secret)


@dataclass
class End:
    """One end that seals: ``sealed`` gives a record, ``update`` takes the next key."""

    suite: int
    secret: bytes
    number: int = 0

    def sealed(self, kind: int, data: bytes, padding: int = 0) -> bytes:
        _, size, cipher = SUITES[self.suite]
        key, iv = _expanded(self.suite, self.secret, b"key", size), _expanded(self.suite, self.secret, b"iv", 12)
        nonce = (int.from_bytes(iv, "big") ^ self.number).to_bytes(12, "big")
        plain = data + bytes((kind,)) + bytes(padding)
        tag = 8 if self.suite == 0x1305 else 16
        head = b"\x17\x03\x03" + (len(plain) + tag).to_bytes(2, "big")
        self.number += 1
        return head + cipher(key).encrypt(nonce, plain, head)

    def update(self) -> None:
        self.secret = _expanded(self.suite, self.secret, b"traffic upd", len(self.secret))
        self.number = 0


def message(kind: int, body: bytes = b"") -> bytes:
    """A handshake message."""
    return bytes((kind,)) + len(body).to_bytes(3, "big") + body


def clear(kind: int, data: bytes) -> bytes:
    """A record that is not sealed."""
    return bytes((kind, 3, 3)) + len(data).to_bytes(2, "big") + data


def hello13(suite: int, *, session: bytes = b"") -> tuple[bytes, bytes]:
    """The hellos of both ends, as records."""
    versions = b"\x00\x2b\x00\x03\x02\x03\x04"
    name = b"\x00\x00\x00\x0b\x00\x09\x00\x00\x06broker"
    rest = bytes((len(session),)) + session
    offered = suite.to_bytes(2, "big")
    extensions = versions + name
    client = b"\x03\x03" + RANDOM + rest + b"\x00\x02" + offered + b"\x01\x00" + _vector(extensions)
    server = b"\x03\x03" + bytes(32) + rest + offered + b"\x00" + _vector(b"\x00\x2b\x00\x02\x03\x04")
    return clear(22, message(1, client)), clear(22, message(2, server))


def _vector(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data


def made13(
    lines: Sequence[tuple[int, bytes]],
    suite: int = 0x1301,
    padding: int = 0,
    updates: Sequence[int] = (),
    certificate: int = 900,
) -> Talk:
    """A connection of TLS 1.3 in which ``lines`` are said, one record each. ``updates``: before which of them the end
    that speaks takes a new key."""
    size = 48 if suite == 0x1302 else 32
    secrets = [[bytes((side, phase)) * (size // 2) for phase in (1, 2)] for side in (0, 1)]
    keys = "".join(
        f"{LABELS[side][phase]} {RANDOM.hex()} {secrets[side][phase].hex()}\n" for side in (0, 1) for phase in (0, 1)
    )
    shaking = [End(suite, secrets[side][0]) for side in (0, 1)]
    ends = [End(suite, secrets[side][1]) for side in (0, 1)]
    first, second = hello13(suite)
    flight = message(8, b"\0\0") + message(11, bytes(certificate)) + message(20, bytes(size))
    wire = [
        (0, first),
        (1, second + clear(20, b"\x01") + shaking[1].sealed(22, flight, padding)),
        (0, clear(20, b"\x01") + shaking[0].sealed(22, message(20, bytes(size)), padding)),
        (1, ends[1].sealed(22, message(4, bytes(60)))),
    ]
    said = [b"", b""]
    for k, (side, line) in enumerate(lines):
        record = b""
        if k in updates:
            record = ends[side].sealed(22, message(24, b"\0"))
            ends[side].update()
        wire.append((side, record + ends[side].sealed(23, line, padding)))
        said[side] += line
    wire += [(side, ends[side].sealed(21, b"\x01\x00")) for side in (0, 1)]
    return Talk(wire, keys.encode(), (said[0], said[1]))
