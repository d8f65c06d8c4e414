"""How much work the TLS connections of a capture may ask for, in addition to reading each record once.

The class is ``Allowance``.

A few bytes can ask for much:

- A hole says that thousands of records may be missing. Each has another sequence number to try.
- A hello asks for keys.
- A KeyUpdate asks for the next one.

So all of it is paid for in bytes, which the connections earn as they are read. One budget holds for the capture: what
one connection leaves over, others may need.

The unit is a byte of ciphertext. Prices follow what the work costs in addition to the promise of 2 us a byte.
"""

from __future__ import annotations

from typing import Final

from kwire.tls.suites import Suite

__all__ = ["GRANT", "Allowance"]

GRANT: Final = 1 << 15
"""The allowance at the beginning.

A hole near the beginning of a capture may need thousands of attempts. These are 4,096: a small capture takes 40 ms for
them, and is promised 50 ms besides 2 us a byte.
"""
GENERATION: Final = 8
"""Deriving the secret after a KeyUpdate from the one before."""

_ATTEMPT: Final = 8
"""An attempt to open a record, whose tag is looked at before anything is decrypted."""
_ATTEMPT_CBC: Final = 20
"""One with a cipher that decrypts first."""
_OPENED_FOR_ONE: Final = 256
"""Bytes of a record whose attempt costs one more."""
_KEY: Final = 32
"""Deriving the key of a direction."""
_HASHED_FOR_ONE: Final = 512
"""Bytes of handshake messages in a master secret that cost one more."""


class Allowance:
    """What is left to spend."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = GRANT

    def earn(self, count: int) -> None:
        """Note that this many bytes of ciphertext were read."""
        self._left += count

    def spend(self, price: int) -> bool:
        """Whether there is enough for this price, which is paid then."""
        if price > self._left:
            return False
        self._left -= price
        return True

    def attempt(self, suite: Suite | None, size: int) -> bool:
        """Pay for an attempt to open a record of ``size`` bytes. ``suite``: None where a new one is being agreed on."""
        dear = suite is None or suite.cipher == "CBC"
        return self.spend((_ATTEMPT_CBC if dear else _ATTEMPT) + size // _OPENED_FOR_ONE)

    def keys(self, count: int, hashed: int = 0) -> bool:
        """Pay for a number of keys, and for bytes that are hashed for them."""
        return self.spend(_KEY * count + hashed // _HASHED_FOR_ONE)
