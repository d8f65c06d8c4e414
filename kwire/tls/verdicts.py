"""What may become of a TLS connection, or of one of its directions: ``Verdict``."""

from __future__ import annotations

from enum import Enum

__all__ = ["Verdict"]


class Verdict(Enum):
    """What became of it. The value is a sentence for people; ``Decryptor.why`` may say more."""

    UNDECIDED = "nothing could be told yet"
    DECRYPTED = "decrypted"
    NO_KEY = "no key for this connection in the key log"
    WRONG_KEY = "the key in the key log does not fit this connection"
    VERSION = "this version of TLS is not supported"
    SUITE = "this cipher suite is not supported"
    COMPRESSED = "records that TLS has compressed are not supported"
    NO_HANDSHAKE = "the handshake of this connection was not captured"
    NOT_TLS = "what follows is not TLS"
