"""Key logs: the secrets of TLS connections, as the programs that made the connections wrote them down.

The format is that of NSS, which every TLS library writes (``SSLKEYLOGFILE``). A line is a label, what the secret
belongs to, and the secret, both in hexadecimal. What is understood:

    CLIENT_RANDOM <client random> <master secret>            TLS 1.2 and before
    CLIENT_EARLY_TRAFFIC_SECRET <client random> <secret>     TLS 1.3, as the following
    CLIENT_HANDSHAKE_TRAFFIC_SECRET, SERVER_HANDSHAKE_TRAFFIC_SECRET, CLIENT_TRAFFIC_SECRET_0, SERVER_TRAFFIC_SECRET_0
    RSA Session-ID:<session id> Master-Key:<master secret>   what agents for older JVMs write
    RSA <8 bytes> <premaster secret>                         named by the first bytes of the encrypted premaster secret

Other labels (``EXPORTER_SECRET``) are passed over. Other lines are counted as damaged and passed over. A key log has
several writers, and its last line may be half a line.

Rules kept here:

- A secret is in no ``repr`` and in no error.
- Any bytes can be read. How many secrets are kept is bounded (``MOST_SECRETS``).
- Files are read once, and again from where they ended whenever something is looked for that is not there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kwire.opening import open_file

__all__ = ["MOST_SECRETS", "KeyLog"]

MOST_SECRETS: Final = 1 << 20
"""Secrets of one key log that are kept.

Later ones are counted (``dropped``).
"""

LONGEST_LINE: Final = 4096
"""Bytes. The longest that there is has 226."""
PIECE: Final = 1 << 20
"""Bytes of a file that are read at once."""

MASTER: Final = b"CLIENT_RANDOM"
SESSION: Final = b"Session-ID"
PREMASTER: Final = b"RSA"
EARLY: Final = b"CLIENT_EARLY_TRAFFIC_SECRET"
CLIENT_HANDSHAKE: Final = b"CLIENT_HANDSHAKE_TRAFFIC_SECRET"
SERVER_HANDSHAKE: Final = b"SERVER_HANDSHAKE_TRAFFIC_SECRET"
CLIENT_TRAFFIC: Final = b"CLIENT_TRAFFIC_SECRET_0"
SERVER_TRAFFIC: Final = b"SERVER_TRAFFIC_SECRET_0"

_TRAFFIC: Final = frozenset({EARLY, CLIENT_HANDSHAKE, SERVER_HANDSHAKE, CLIENT_TRAFFIC, SERVER_TRAFFIC})
_RANDOM_SIZE: Final = 32
_MASTER_SIZE: Final = 48
_TRAFFIC_SIZES: Final = (32, 48)
_LARGEST_SESSION_ID: Final = 32
_PREMASTER_NAME_SIZE: Final = 8


class KeyLog:
    """The secrets of one or several key logs.

    ``text``: lines to begin with. ``secret`` looks one up. ``ignored``, ``damaged`` and ``dropped`` count lines that
    were passed over: those of other labels, unreadable ones, and those beyond ``MOST_SECRETS``. ``conflicting`` counts
    lines that gave another secret for what had one. The later one is kept, since a file that is written anew in place
    has the newer line later.

    ``growing`` says that secrets may still come: then a connection without one is not given up at once. ``also``:
    another one, that is asked for what is not in this one.
    """

    def __init__(self, text: bytes = b"", *, growing: bool = False, also: KeyLog | None = None) -> None:
        self._growing = growing
        self._also = also
        self.ignored: int = 0
        self.damaged: int = 0
        self.dropped: int = 0
        self.conflicting: int = 0
        self._secrets: dict[tuple[bytes, bytes], bytes] = {}
        self._files: dict[str, tuple[int, bytes]] = {}
        """For each file: how far it was read, and the beginning of a line that is there."""
        if text:
            self.add(text)

    @classmethod
    def open(cls, *paths: str | Path, growing: bool = False) -> KeyLog:
        """The secrets of files. Raises ``OSError`` for one that cannot be read."""
        found = cls(growing=growing)
        for path in paths:
            found.add_file(path)
        return found

    @classmethod
    def of(cls, what: KeyLog | str | Path | Iterable[str | Path] | None) -> KeyLog | None:
        """A key log as it is, or one or several files as ``open`` takes them; None stays None."""
        if what is None or isinstance(what, KeyLog):
            return what
        return cls.open(what) if isinstance(what, str | Path) else cls.open(*what)

    def __repr__(self) -> str:
        return f"<KeyLog: {len(self._secrets)} secrets>"

    @property
    def growing(self) -> bool:
        """Whether secrets may still come."""
        return self._growing or (self._also is not None and self._also.growing)

    def text(self) -> bytes:
        """All secrets as lines of a key log (``also`` left out)."""
        lines = []
        for (label, name), secret in self._secrets.items():
            form = b"RSA Session-ID:%s Master-Key:%s\n" if label == SESSION else label + b" %s %s\n"
            lines.append(form % (name.hex().encode(), secret.hex().encode()))
        return b"".join(lines)

    def __len__(self) -> int:
        return len(self._secrets)

    def secret(self, label: bytes, name: bytes) -> bytes | None:
        """The secret of this label that belongs to ``name`` (a client random, for most labels)."""
        found = self._secrets.get((label, name))
        if found is None and self._files and self.refresh():
            found = self._secrets.get((label, name))
        if found is None and self._also is not None:
            found = self._also.secret(label, name)
        return found

    def add(self, text: bytes) -> None:
        """Take the lines of ``text``; the last one need not be ended."""
        self._lines(text.splitlines())

    def add_file(self, path: str | Path) -> None:
        """Take what a file has, and remember it as one that may grow. Raises ``OSError``."""
        name = str(path)
        if name not in self._files:
            self._files[name] = 0, b""
            try:
                self._read(name)
            except OSError:
                del self._files[name]
                raise

    def refresh(self) -> bool:
        """Whether the files have grown; what they got is taken. One that cannot be read any more got nothing."""
        grown = False
        for name in list(self._files):
            try:
                grown |= self._read(name)
            except OSError:
                continue
        return grown

    def _read(self, name: str) -> bool:
        """Read on in a file: whether there was something."""
        at, begun = self._files[name]
        before = at
        if at:
            found = os.stat(name)  # noqa: PTH116 - asked for each secret that is not there, and three times as fast
            if found.st_size == at and stat.S_ISREG(found.st_mode):
                return False
        with open_file(name, named=True) as file:
            if file.seekable():
                if file.seek(0, 2) < at:
                    # It was written anew.
                    at, begun = 0, b""
                file.seek(at)
            while piece := file.read(PIECE):
                at += len(piece)
                lines = (begun + piece).split(b"\n")
                begun = lines.pop()[: LONGEST_LINE + 1]
                self._lines(lines)
        if begun and self._line(begun.strip(), complete=False):
            # The last line has all that it needs; that it is not ended says nothing.
            begun = b""
        self._files[name] = at, begun
        return at != before

    def _lines(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self._line(line.strip(), complete=True)

    def _line(self, line: bytes, complete: bool) -> bool:
        """Take one line: whether it was a secret.

        What is wrong is counted only where the line is ``complete``.
        """
        if not line or line.startswith(b"#"):
            return False
        words = line.split() if len(line) <= LONGEST_LINE else []
        if len(words) == 3:
            label, name, secret = words
            if label == PREMASTER and name.startswith(b"Session-ID:") and secret.startswith(b"Master-Key:"):
                label, name, secret = SESSION, name[11:], secret[11:]
            if self._keep(label, _bytes(name), _bytes(secret)):
                return True
            if label not in _TRAFFIC and label not in (MASTER, SESSION, PREMASTER) and _is_label(label):
                self.ignored += complete
                return False
        self.damaged += complete
        return False

    def _keep(self, label: bytes, name: bytes, secret: bytes) -> bool:
        if label in _TRAFFIC:
            fits = len(name) == _RANDOM_SIZE and len(secret) in _TRAFFIC_SIZES
        elif label == MASTER:
            fits = len(name) == _RANDOM_SIZE and len(secret) == _MASTER_SIZE
        elif label == SESSION:
            fits = 0 < len(name) <= _LARGEST_SESSION_ID and len(secret) == _MASTER_SIZE
        elif label == PREMASTER:
            fits = len(name) == _PREMASTER_NAME_SIZE and len(secret) == _MASTER_SIZE
        else:
            fits = False
        if not fits:
            return False
        known = self._secrets.get((label, name))
        if known is None and len(self._secrets) >= MOST_SECRETS:
            self.dropped += 1
        else:
            self.conflicting += known is not None and known != secret
            self._secrets[label, name] = secret
        return True


def _bytes(digits: bytes) -> bytes:
    """What hexadecimal digits say; nothing where they are none."""
    try:
        return bytes.fromhex(digits.decode("ascii"))
    except ValueError:
        return b""


def _is_label(word: bytes) -> bool:
    return all(one in b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_" for one in word)
