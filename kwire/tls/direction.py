"""One direction of a TLS connection: what is remembered of it between two calls (``Direction``).

Who changes a direction is ``kwire.tls.decryptor``. Its state can be given out without the key, and taken back.
"""

from __future__ import annotations

from typing import Any, Final

from kwire import stored
from kwire.tls.handshake import Phase
from kwire.tls.protection import Opener
from kwire.tls.verdicts import Verdict

__all__ = ["MOST_GENERATIONS", "NOTHING", "Direction"]

MOST_GENERATIONS: Final = 1 << 16
"""How many KeyUpdates of a direction are followed."""


class _Nothing:
    """Opens no record: stands where a secret is missing."""

    def open(self, head: bytes, body: Any, number: int) -> bytes | None:
        return None


NOTHING: Final = _Nothing()
"""The opener of records (``Opener``) that stands where a secret is missing."""


class Direction:
    """One direction."""

    __slots__ = (
        "blind", "changed", "end", "era", "generation", "held", "lost", "message", "need", "number", "opened", "opener",
        "over", "passed", "phase", "pos", "searching", "skip", "started", "unread", "why",
    )  # fmt: skip

    def __init__(self) -> None:
        self.started: bool = False
        self.end: int = -1
        """Who speaks: 0 the client, 1 the server, as hellos showed."""
        self.pos: int = 0
        """Position in the stream of the first byte that is not processed."""
        self.held: bytearray = bytearray()
        """The bytes from there."""
        self.need: int = 5
        """How many there must be before it is worth looking."""
        self.message: bytearray = bytearray()
        """The beginning of a handshake message."""
        self.skip: int = 0
        """How many bytes are still to come of a handshake message that is of no interest."""
        self.blind: bool = False
        """Whether it is not known where a handshake message begins, since bytes are missing."""
        self.changed: bool = False
        """Whether there was a ChangeCipherSpec, and no key yet for what follows it."""
        self.opener: Opener | None = None
        self.opened: bool = False
        """Whether any record was opened."""
        self.number: int = 0
        """Sequence number of the next record."""
        self.era: int = 0
        """Which handshake the key is of (``Handshake.count``)."""
        self.phase: Phase = Phase.EARLY
        self.generation: int = 0
        """How many KeyUpdates there were."""
        self.searching: bool = False
        """Whether it is not known where a record begins, since bytes are missing."""
        self.unread: int = 0
        """How many bytes may have been records that counted, since the last one that was opened."""
        self.lost: int = 0
        """How many bytes could not be read, since the last application data."""
        self.passed: int = 0
        """How many of them were passed over because their secret is not known."""
        self.over: Verdict | None = None
        """Why nothing more can be read of it."""
        self.why: str = ""

    @property
    def is_open(self) -> bool:
        """Whether records are still read."""
        return self.over is None

    def state(self) -> dict[str, Any]:
        """All of it but the key, as JSON can hold it."""
        return {
            **{name: int(getattr(self, name)) for name in _NUMBERS},
            **{name: getattr(self, name) for name in _TRUTHS},
            "held": stored.as_text(self.held),
            "message": stored.as_text(self.message),
            "over": None if self.over is None else self.over.name,
            "why": self.why,
            "sealed": self.opener is not None,
        }

    def restore(self, state: Any) -> bool:
        """Take over what ``state`` gave: whether there was a key.

        Raises an ordinary exception for anything else.
        """
        for name, least in _NUMBERS.items():
            setattr(self, name, stored.number(state[name], least))
        for name in _TRUTHS:
            setattr(self, name, stored.truth(state[name]))
        self.phase = Phase(self.phase)
        if self.end > 1 or self.generation > MOST_GENERATIONS:
            raise ValueError("no such end, or too many keys")
        self.held[:] = stored.as_bytes(state["held"])
        self.message[:] = stored.as_bytes(state["message"])
        self.over = None if state["over"] is None else Verdict[state["over"]]
        self.why = stored.text(state["why"])
        return stored.truth(state["sealed"])


_NUMBERS: Final = {
    "end": -1,
    "pos": 0,
    "need": 0,
    "skip": 0,
    "number": 0,
    "era": 0,
    "phase": 0,
    "generation": 0,
    "unread": 0,
    "lost": 0,
    "passed": 0,
}
"""The numbers of a direction, and the least that each can be."""
_TRUTHS: Final = ("started", "opened", "blind", "changed", "searching")
