"""How records are sealed: keys out of secrets, plaintext out of records.

Sources: RFC 8446, 5 and 7; RFC 5246, 6 and 8.1.

A secret becomes an ``Opener`` for one direction. Its ``open`` gives the plaintext of a record. It gives None where the
record was not sealed with this key and this sequence number. All that is supported is authenticated, so an answer is
never a guess.

Only this module uses the package ``cryptography``, and only once a key is there (``MissingExtraError`` without it).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Any, Final, Protocol

from kwire.errors import MissingExtraError
from kwire.tls.suites import Suite

__all__ = ["Opener", "key_block_openers", "master_of", "next_generation", "opener13", "require"]

_SEALED_WITH: Final = Struct(">QBHH")
"""What the tag of a TLS 1.2 record covers in addition to its bytes.

This is: sequence number, type, version, length of the plaintext.
"""
_EXPLICIT_NONCE: Final = 8
_NONCE: Final = 12
_BLOCK: Final = 16


class Opener(Protocol):
    """Opens the records of one direction that one key seals."""

    def open(self, head: bytes, body: Any, number: int) -> bytes | None:
        """The plaintext of a record; None where it was not sealed so.

        ``head`` is its header of five bytes, ``body`` what follows (bytes or a memoryview), ``number`` its sequence
        number. In TLS 1.3 the plaintext ends with its type and padding.
        """


@lru_cache(maxsize=1)
def require() -> Any:
    """The parts of ``cryptography`` that are used. Raises ``MissingExtraError``."""
    try:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers import Cipher, aead, algorithms, modes
    except ModuleNotFoundError:
        raise MissingExtraError("decrypting TLS", "tls") from None

    class Parts:
        invalid = InvalidTag
        ciphers = aead
        cipher = Cipher
        aes = algorithms.AES
        cbc = modes.CBC

    return Parts


# --- secrets --------------------------------------------------------------------------------------------------------


def _expand_label(secret: bytes, label: bytes, length: int, digest: str) -> bytes:
    """HKDF-Expand-Label with an empty context (RFC 8446, 7.1)."""
    label = b"tls13 " + label
    info = length.to_bytes(2, "big") + bytes((len(label),)) + label + b"\0"
    made, block, count = b"", b"", 1
    while len(made) < length:
        block = hmac.digest(secret, block + info + bytes((count,)), digest)
        made += block
        count += 1
    return made[:length]


def _p_hash(secret: bytes, seed: bytes, length: int, digest: str) -> bytes:
    made, a = b"", seed
    while len(made) < length:
        a = hmac.digest(secret, a, digest)
        made += hmac.digest(secret, a + seed, digest)
    return made[:length]


def _prf(secret: bytes, label: bytes, seed: bytes, length: int, version: int, digest: str) -> bytes:
    """The pseudo-random function of TLS 1.2, or of TLS 1.1 (RFC 5246, 5; RFC 4346, 5)."""
    if version >= 0x0303:
        return _p_hash(secret, label + seed, length, digest)
    half = (len(secret) + 1) // 2
    one = _p_hash(secret[:half], label + seed, length, "md5")
    other = _p_hash(secret[-half:], label + seed, length, "sha1")
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def next_generation(secret: bytes, digest: str) -> bytes:
    """The traffic secret after a KeyUpdate."""
    return _expand_label(secret, b"traffic upd", len(secret), digest)


def master_of(premaster: bytes, seed: bytes, extended: bool, version: int, digest: str) -> bytes:
    """The master secret.

    ``seed``: both randoms, or all handshake messages up to ClientKeyExchange if ``extended`` (RFC 7627).
    """
    if not extended:
        return _prf(premaster, b"master secret", seed, 48, version, digest)
    if version >= 0x0303:
        seed = hashlib.new(digest, seed).digest()
    else:
        seed = hashlib.new("md5", seed).digest() + hashlib.new("sha1", seed).digest()
    return _prf(premaster, b"extended master secret", seed, 48, version, digest)


# --- records --------------------------------------------------------------------------------------------------------


def _aead(suite: Suite, key: bytes) -> Callable[[bytes, Any, bytes], bytes]:
    """What takes nonce, sealed bytes and what the tag covers in addition to them."""
    ciphers = require().ciphers
    if suite.cipher == "GCM":
        return ciphers.AESGCM(key).decrypt  # type: ignore[no-any-return]
    if suite.cipher == "CCM":
        return ciphers.AESCCM(key, tag_length=suite.tag).decrypt  # type: ignore[no-any-return]
    return ciphers.ChaCha20Poly1305(key).decrypt  # type: ignore[no-any-return]


class _Tls13:
    """AEAD as TLS 1.3 uses it, and ChaCha20-Poly1305 as TLS 1.2 does.

    The nonce is the IV and the sequence number.
    """

    __slots__ = ("_decrypt", "_invalid", "_iv", "_least")

    def __init__(self, suite: Suite, key: bytes, iv: bytes) -> None:
        self._decrypt = _aead(suite, key)
        self._iv = int.from_bytes(iv, "big")
        self._least = suite.tag
        self._invalid = require().invalid

    def open(self, head: bytes, body: Any, number: int) -> bytes | None:
        if len(body) < self._least:
            return None
        try:
            return self._decrypt((self._iv ^ number).to_bytes(_NONCE, "big"), body, head)
        except self._invalid:
            return None


class _ChaCha12(_Tls13):
    """ChaCha20-Poly1305 in TLS 1.2 (RFC 7905)."""

    __slots__ = ()

    def open(self, head: bytes, body: Any, number: int) -> bytes | None:
        covered = _SEALED_WITH.pack(number, head[0], head[1] << 8 | head[2], max(0, len(body) - self._least))
        return _Tls13.open(self, covered, body, number)


class _Explicit12:
    """AES-GCM and AES-CCM in TLS 1.2: half of the nonce stands in the record (RFC 5288, RFC 6655)."""

    __slots__ = ("_decrypt", "_invalid", "_overhead", "_salt")

    def __init__(self, suite: Suite, key: bytes, salt: bytes) -> None:
        self._decrypt = _aead(suite, key)
        self._salt = salt
        self._overhead = _EXPLICIT_NONCE + suite.tag
        self._invalid = require().invalid

    def open(self, head: bytes, body: Any, number: int) -> bytes | None:
        length = len(body) - self._overhead
        if length < 0:
            return None
        covered = _SEALED_WITH.pack(number, head[0], head[1] << 8 | head[2], length)
        try:
            return self._decrypt(self._salt + body[:_EXPLICIT_NONCE], body[_EXPLICIT_NONCE:], covered)
        except self._invalid:
            return None


class _Cbc:
    """AES-CBC with a MAC, in TLS 1.1 and 1.2: the MAC inside, or around what is encrypted (RFC 7366)."""

    __slots__ = ("_around", "_cipher", "_digest", "_key", "_mac", "_mode", "_size")

    def __init__(self, suite: Suite, key: bytes, mac_key: bytes, around: bool) -> None:
        parts = require()
        self._cipher, self._mode = parts.cipher, parts.cbc
        self._key = parts.aes(key)
        self._mac, self._digest, self._size = mac_key, suite.mac_digest, suite.mac
        self._around = around

    def open(self, head: bytes, body: Any, number: int) -> bytes | None:
        body = bytes(body)
        if self._around:
            body, said = body[: -self._size], body[-self._size :]
            if not self._fits(head, body, said, number):
                return None
        if len(body) < 2 * _BLOCK or len(body) % _BLOCK:
            return None
        opening = self._cipher(self._key, self._mode(body[:_BLOCK])).decryptor()
        plain: bytes = opening.update(body[_BLOCK:]) + opening.finalize()
        padding = plain[-1] + 1
        if padding > len(plain) or plain[-padding:] != plain[-1:] * padding:
            return None
        plain = plain[:-padding]
        if self._around:
            return plain
        if len(plain) < self._size:
            return None
        plain, said = plain[: -self._size], plain[-self._size :]
        return plain if self._fits(head, plain, said, number) else None

    def _fits(self, head: bytes, data: bytes, said: bytes, number: int) -> bool:
        covered = _SEALED_WITH.pack(number, head[0], head[1] << 8 | head[2], len(data)) + data
        return hmac.compare_digest(hmac.digest(self._mac, covered, self._digest), said)


def opener13(suite: Suite, secret: bytes) -> Opener:
    """What opens the records that a traffic secret of TLS 1.3 seals."""
    key = _expand_label(secret, b"key", suite.key, suite.digest)
    return _Tls13(suite, key, _expand_label(secret, b"iv", _NONCE, suite.digest))


def key_block_openers(
    suite: Suite, master: bytes, randoms: tuple[bytes, bytes], version: int, encrypt_then_mac: bool
) -> tuple[Opener, Opener]:
    """What opens the client's records, and the server's, in TLS 1.2 and 1.1 (RFC 5246, 6.3).

    ``randoms`` are those of client and server.
    """
    fixed = {"CBC": 0, "CHACHA20": _NONCE}.get(suite.cipher, _NONCE - _EXPLICIT_NONCE)
    client, server = randoms
    length = 2 * (suite.mac + suite.key + fixed)
    block = _prf(master, b"key expansion", server + client, length, version, suite.digest)
    parts = []
    for size in (suite.mac, suite.mac, suite.key, suite.key, fixed, fixed):
        parts.append(block[:size])
        block = block[size:]
    macs, keys, ivs = parts[0:2], parts[2:4], parts[4:6]

    def one(side: int) -> Opener:
        if suite.cipher == "CBC":
            return _Cbc(suite, keys[side], macs[side], encrypt_then_mac)
        made = _ChaCha12 if suite.cipher == "CHACHA20" else _Explicit12
        return made(suite, keys[side], ivs[side])

    return one(0), one(1)
