"""One captured TLS connection, from the bytes of both directions to what was said in them: ``Decryptor``.

Strategy: each direction is read by itself, record by record, as far as it can be. A direction stands still
where it needs something that the other one says (the server's hello). What is held meanwhile is bounded. Handshake
messages are read, encrypted or not, for what keys depend on. No certificate is looked at. Whoever has the keys decides
what the bytes say, and every record proves by its tag that they fit.

Rules kept here:

- Nothing is guessed: a plaintext is one whose tag (or MAC) fits. Where packets are missing, sequence numbers are tried
  until a record fits. Sometimes it is not certain which key seals a record: with early data, without a secret in the
  key log, after a missing KeyUpdate. Then later keys are tried. The number of attempts, and of keys, is bounded. The
  bounds are the bytes read of the connection (``ATTEMPTS``) and of the capture (``kwire.tls.allowance``).
- Any bytes give plaintext or a ``Verdict``, never an exception.
- Memory: one unfinished record of each direction, and ``HELD`` bytes while a direction stands still.
- Secrets are in no ``repr``, in no sentence, and not in ``state``: who goes on needs the key log as well.
- No I/O, and no clock.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from kwire import stored
from kwire.errors import CaptureError, DecodeError
from kwire.tls.allowance import Allowance
from kwire.tls.direction import MOST_GENERATIONS, NOTHING, Direction
from kwire.tls.handshake import Handshake, Phase
from kwire.tls.hellos import accepts_early_data, client_hello, server_hello
from kwire.tls.keylog import KeyLog
from kwire.tls.protection import Opener, require
from kwire.tls.verdicts import Verdict
from kwire.tls.versions import version_name

__all__ = ["Decryptor", "Plain"]

HELD: Final = 256 << 10
"""Bytes of one direction that are held while the other one must be seen first."""
LARGEST_RECORD: Final = (1 << 14) + 2048
"""Bytes after a record's header (RFC 5246, 6.2.3); TLS 1.3 has less."""
LARGEST_MESSAGE: Final = 256 << 10
"""Bytes of a handshake message that is read; what is longer is passed over."""
PASSED: Final = 256 << 10
"""Bytes of records that may be passed over for want of their secret, until there is one that a key opens."""
ATTEMPTS: Final = 1 << 14
"""How many records of a connection may be tried without success, if the capture's allowance permits it."""
ATTEMPTS_EACH: Final = 2
"""How many more may be for each one that is opened."""
SMALLEST_RECORD: Final = 5 + 8 + 1
"""Bytes of a sealed record: what is missing cannot have had more records than this allows."""

_HEAD: Final = 5
_CCS, _ALERT, _HANDSHAKE, _DATA, _HEARTBEAT = 20, 21, 22, 23, 24
"""Types of records."""
_CLIENT_HELLO, _SERVER_HELLO, _END_OF_EARLY_DATA, _ENCRYPTED_EXTENSIONS = 1, 2, 5, 8
_CLIENT_KEY_EXCHANGE, _FINISHED, _KEY_UPDATE = 16, 20, 24
"""Types of handshake messages."""
_SERVER_HELLO_BYTE: Final = bytes((_SERVER_HELLO,))
_READ: Final = frozenset(
    {
        _CLIENT_HELLO, _SERVER_HELLO, _ENCRYPTED_EXTENSIONS, _CLIENT_KEY_EXCHANGE,
        _END_OF_EARLY_DATA, _FINISHED, _KEY_UPDATE,
    }
)  # fmt: skip
"""Those that say something about keys."""
_NOT_IN_FLIGHTS: Final = frozenset({0, _CLIENT_HELLO, 4})
"""HelloRequest and NewSessionTicket, which no master secret depends on; and what ``Handshake`` collects by itself."""
_MESSAGE_TYPES: Final = frozenset({0, 1, 2, 4, 5, 8, 11, 12, 13, 14, 15, 16, 20, 22, 24, 25})

_UNPAID: Final = "as much was tried in this capture as its bytes allow"

_MAY_BEGIN: Final = re.compile(rb"[\x14-\x17]\x03[\x01-\x04]")
"""The beginning of a record, to be found after a hole."""


@dataclass(slots=True)
class Plain:
    """Application data of one direction, record by record.

    ``side`` is that of ``feed``. Record ``k`` has ``lengths[k]`` bytes of ``data``, in which they follow each other. It
    was there when the stream was there up to position ``ends[k]``. ``lost``: how many bytes of the stream before
    ``data`` could not be read, because packets are missing or no key opens them.
    """

    side: int
    lost: int = 0
    data: bytes = b""
    lengths: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


class Decryptor:
    """What was said in one TLS connection.

    ``keys`` is asked for the connection's secrets. ``allowance`` is what its capture has left to try. ``feed`` takes
    the bytes of both directions, in about the order of time. A few hundred kilobytes of disorder are accepted.
    ``finish`` says that nothing more will come. Directions are 0 and 1; which one is the client's is found out.

    ``verdict`` says what became of the connection and ``why`` says it in a sentence. Raises ``MissingExtraError``
    without the extra ``tls``.
    """

    def __init__(self, keys: KeyLog, allowance: Allowance | None = None) -> None:
        require()
        self._keys = keys
        self._allowance = Allowance() if allowance is None else allowance
        self._agreed = Handshake(keys, self._allowance)
        self._directions = (Direction(), Direction())
        self._attempts = ATTEMPTS
        self._tired = False
        """Whether the latest record may have been opened by an attempt that there was nothing left for."""
        self._final = False
        """Whether what was waited for is not waited for any more."""
        self._why = ""
        self.verdict: Verdict = Verdict.UNDECIDED
        self.key_updates: int = 0
        """How many there were, of both directions."""

    def __repr__(self) -> str:
        return f"<Decryptor: {self.version}, {self.cipher}, {self.verdict.name.lower()}>"

    # -- what is known

    @property
    def why(self) -> str:
        """The verdict in a sentence; of a connection that is decrypted, what of it cannot be read."""
        if self._why:
            return self._why
        told = (
            [direction.why for direction in self._directions if direction.why]
            if self.verdict is Verdict.DECRYPTED
            else []
        )
        return "; ".join(dict.fromkeys(told)) or self.verdict.value

    @property
    def has_failed(self) -> bool:
        """Whether nothing (more) can be read of the connection: what is fed is not looked at."""
        return self.verdict not in (Verdict.UNDECIDED, Verdict.DECRYPTED)

    @property
    def version(self) -> str | None:
        """``TLS 1.3`` and so on, as it was agreed on; None: not known."""
        return None if self._agreed.answer is None else version_name(self._agreed.answer.version)

    @property
    def cipher(self) -> str | None:
        """The name of the cipher suite, as it was agreed on; None: not known."""
        return None if self._agreed.suite is None else self._agreed.suite.name

    @property
    def numbers(self) -> tuple[int, int]:
        """Version and cipher suite as they are on the wire (0x0304: TLS 1.3); 0: not known."""
        answer = self._agreed.answer
        return (0, 0) if answer is None else (answer.version, answer.suite)

    @property
    def server_name(self) -> str | None:
        """The host that the client asked for."""
        return None if self._agreed.hello is None else self._agreed.hello.server_name

    @property
    def resumed(self) -> bool:
        """Whether the server went on with an earlier session."""
        return self._agreed.resumes

    @property
    def renegotiations(self) -> int:
        """How often both ends agreed on keys anew (TLS 1.2)."""
        return max(0, self._agreed.count - 1)

    @property
    def client_side(self) -> int | None:
        """The direction in which the client speaks; None: not known."""
        for side, direction in enumerate(self._directions):
            if direction.end >= 0:
                return side ^ direction.end
        return None

    def position(self, side: int) -> int:
        """Up to where a direction has been processed; what follows is held here."""
        return self._directions[side].pos

    # -- bytes in, plaintext out

    def feed(self, side: int, data: bytes | bytearray | memoryview, position: int) -> list[Plain]:
        """Take the next bytes of a direction, which stand at ``position`` in its stream; give what can be read now.

        If a position is after that of the expected byte, those between are missing. Bytes from before are passed over.
        """
        if self.has_failed:
            return []
        direction = self._directions[side]
        if not direction.started:
            direction.started, direction.pos = True, position
        missing = position - (direction.pos + len(direction.held))
        if missing < 0:
            data = memoryview(data)[-missing:]
        elif missing > 0:
            self._hole(direction, missing)
        if not direction.is_open:
            direction.lost += len(data)
            direction.pos += len(data)
            return []
        out: list[Plain] = []
        if not len(data):
            return out
        self._allowance.earn(len(data))
        direction.held += data
        if len(direction.held) >= direction.need:
            self._pump(out)
            if len(direction.held) > HELD:
                self._go_on(out)
        return out

    def end(self, side: int) -> list[Plain]:
        """Note that nothing more will come of one direction, and give what could not be read at its end.

        Records that wait for the other direction still wait.
        """
        direction = self._directions[side]
        if (
            self.verdict is not Verdict.DECRYPTED
            or direction.passed
            or (direction.opener is None and direction.is_open)
        ):
            return []
        if direction.held:
            self._hole(direction, 0)
        lost, direction.lost = direction.lost, 0
        return [Plain(side, lost)] if lost else []

    def finish(self) -> list[Plain]:
        """Note that nothing more will come, and give what can be read without it and what could not be."""
        out: list[Plain] = []
        if self.has_failed:
            return out
        self._go_on(out)
        over = [direction.over for direction in self._directions if direction.over is not None]
        if self.verdict is Verdict.UNDECIDED:
            if over:
                self._fail(over[0])
            elif any(direction.opened for direction in self._directions):
                self.verdict = Verdict.DECRYPTED
            else:
                self._fail(Verdict.NO_HANDSHAKE)
        for side, direction in enumerate(self._directions):
            left = direction.lost + len(direction.held)
            if self.verdict is Verdict.DECRYPTED and left:
                out.append(Plain(side, left))
                direction.pos += len(direction.held)
                direction.lost = 0
                direction.held.clear()
        return out

    def _pump(self, out: list[Plain]) -> None:
        """Read both directions as far as they go: what one says may let the other go on."""
        moved = True
        while moved and not self.has_failed:
            moved = False
            for side, direction in enumerate(self._directions):
                if len(direction.held) >= direction.need and direction.over is None:
                    moved |= self._read(side, direction, out)

    def _go_on(self, out: list[Plain]) -> None:
        """Too much is held, or nothing more will come: goes on without what was waited for, or gives up."""
        agreed = self._agreed
        if agreed.answer is None:
            for direction in self._directions:
                stop = _HEAD + int.from_bytes(direction.held[3:_HEAD], "big")
                if (
                    direction.end == 0
                    and direction.opener is None
                    and len(direction.held) >= stop
                    and direction.held[0] == _DATA
                ):
                    agreed.guess(bytes(direction.held[:_HEAD]), bytes(direction.held[_HEAD:stop]))
        self._final = True
        self._pump(out)
        if not self.has_failed and any(len(direction.held) > HELD for direction in self._directions):
            self._fail(Verdict.NO_HANDSHAKE)

    def _fail(self, verdict: Verdict, why: str = "") -> None:
        """Nothing more can be read of the connection."""
        self.verdict, self._why = verdict, why
        for direction in self._directions:
            direction.held.clear()
            direction.message.clear()
            direction.opener = None

    def _end(self, direction: Direction, verdict: Verdict, why: str = "") -> None:
        """Nothing more can be read of one direction."""
        if self._agreed.unpaid:
            why = _UNPAID
        direction.over, direction.why = verdict, why or verdict.value
        if self.verdict is Verdict.UNDECIDED and not any(one.is_open for one in self._directions):
            self._fail(verdict, why)

    def _hole(self, direction: Direction, missing: int) -> None:
        """Bytes are missing after what is held, which is the beginning of a record or waits for something."""
        gone = len(direction.held) + missing
        direction.pos += gone
        direction.lost += gone
        direction.unread += gone
        direction.held.clear()
        direction.message.clear()
        direction.skip, direction.need = 0, _HEAD
        direction.searching = direction.blind = True

    # -- records

    def _read(self, side: int, direction: Direction, out: list[Plain]) -> bool:
        """Read records of one direction: whether anything but application data came, so that the other may go on.

        What was not read stays in ``held``.
        """
        data = bytes(direction.held)
        view = memoryview(data)
        end = len(data)
        at = 0
        plain = Plain(side)
        parts: list[bytes] = []
        direction.need = _HEAD
        moved = False
        while end - at >= _HEAD:
            is_plain = direction.phase == Phase.TRAFFIC or not self._agreed.is_tls13
            if (
                direction.opener is not None
                and is_plain
                and not (direction.lost or direction.unread or direction.passed)
            ):
                at = self._run(direction, data, view, at, parts, plain)
                if end - at < _HEAD:
                    break
            moved = True
            if direction.over is not None or self.has_failed:
                break
            if direction.searching:
                at = self._search(direction, data, view, at)
                if direction.searching:
                    break
                continue
            kind = data[at]
            stop = at + _HEAD + (data[at + 3] << 8 | data[at + 4])
            if not (_CCS <= kind <= _HEARTBEAT and data[at + 1] == 3 and stop - at <= _HEAD + LARGEST_RECORD):
                self._not_a_record(direction, direction.pos + at)
                break
            if stop > end:
                direction.need = stop - at
                moved = at > 0
                break
            opener = direction.opener
            head, body = data[at : at + _HEAD], view[at + _HEAD : stop]
            if opener is None or (kind != _DATA and self._agreed.is_tls13):
                if self._in_clear(direction, kind, body):
                    at = stop
                elif direction.opener is None:
                    break
                continue
            opened = opener.open(head, body, direction.number)
            if opened is None:
                opened = self._with_another_key(direction, head, body)
                if opened is None:
                    if direction.is_open:
                        at = stop
                    continue
            direction.number += 1
            direction.opened = True
            if direction.unread or direction.passed:
                self._is_certain(direction)
            self._attempts += ATTEMPTS_EACH
            if self._agreed.is_tls13:
                kind = opened[-1] if opened else 0
                if kind == 0:
                    opened = opened.rstrip(b"\0")
                    kind = opened[-1] if opened else _HEARTBEAT
                opened = opened[:-1]
            if kind != _DATA:
                self._sealed(direction, kind, opened)
            elif direction.phase == Phase.EARLY and self._agreed.is_tls13 and not self._agreed.early:
                # What the server did not take comes again; where that is not known, it is not given twice.
                direction.lost += stop - at if self._agreed.early is None else 0
            elif opened:
                self.verdict = Verdict.DECRYPTED
                if direction.lost:
                    if parts:
                        plain.data = b"".join(parts)
                        out.append(plain)
                    plain, parts = Plain(side, direction.lost), []
                    direction.lost = 0
                parts.append(opened)
                plain.lengths.append(len(opened))
                plain.ends.append(direction.pos + stop)
            at = stop
        if parts:
            plain.data = b"".join(parts)
            out.append(plain)
        if self.has_failed:
            return True
        if not direction.is_open:
            direction.lost += end - at
            at = end
        direction.pos += at
        if at == end:
            direction.held.clear()
        else:
            del direction.held[:at]
        return moved and at > 0

    def _run(
        self, direction: Direction, data: bytes, view: memoryview, at: int, parts: list[bytes], plain: Plain
    ) -> int:
        """Read records of application data, one after the other, as most of them are: up to where it is otherwise."""
        assert direction.opener is not None
        opening, number, base, end = direction.opener.open, direction.number, direction.pos, len(data)
        lengths, ends, is_tls13 = plain.lengths, plain.ends, self._agreed.is_tls13
        while end - at >= _HEAD and data[at] == _DATA:
            stop = at + _HEAD + (data[at + 3] << 8 | data[at + 4])
            if stop > end or data[at + 1] != 3 or stop - at > _HEAD + LARGEST_RECORD:
                break
            opened = opening(data[at : at + _HEAD], view[at + _HEAD : stop], number)
            if opened is None:
                break
            if is_tls13:
                if not opened or opened[-1] != _DATA:
                    break
                opened = opened[:-1]
            at = stop
            number += 1
            if opened:
                parts.append(opened)
                lengths.append(len(opened))
                ends.append(base + at)
        if number != direction.number:
            self._attempts += ATTEMPTS_EACH * (number - direction.number)
            direction.number, direction.opened = number, True
            if parts:
                self.verdict = Verdict.DECRYPTED
        return at

    def _not_a_record(self, direction: Direction, position: int) -> None:
        """What stands here has no header of a record."""
        if direction.end < 0:
            self._fail(Verdict.NO_HANDSHAKE)
        else:
            self._end(direction, Verdict.NOT_TLS, f"no TLS record begins at byte {position}, where one is due")

    def _in_clear(self, direction: Direction, kind: int, body: memoryview) -> bool:
        """A record that is not sealed, or whose key must be made first: whether it has been processed."""
        agreed = self._agreed
        if direction.end < 0 and kind != _HANDSHAKE:
            return self._without_hello(direction)
        if kind == _HEARTBEAT:
            return True
        if kind == _CCS:
            # In TLS 1.3 it means nothing; which version this is may be known later only.
            direction.changed = True
            return True
        if kind == _HANDSHAKE and agreed.hello is None and body[:1] == _SERVER_HELLO_BYTE and not self._final:
            # Captured before the client's: without that it says nothing of keys.
            return False
        if kind != _DATA and not (direction.changed and not agreed.is_tls13 and direction.opener is None):
            if kind == _HANDSHAKE and not (direction.opener is not None and agreed.is_tls13):
                self._messages(direction, bytes(body), sealed=False)
            return not self.has_failed
        if agreed.is_agreed:
            self._arm(direction)
        elif self._final:
            self._fail(Verdict.NO_HANDSHAKE)
        return False

    def _without_hello(self, direction: Direction) -> bool:
        """A direction that does not begin with a hello. The client can be read all the same if it is the server's."""
        if any(other.end == 0 for other in self._directions):
            direction.end = 1
        else:
            self._fail(Verdict.NO_HANDSHAKE)
        return False

    def _sealed(self, direction: Direction, kind: int, opened: bytes) -> None:
        """The plaintext of a record that is no application data."""
        if kind == _HANDSHAKE:
            self._messages(direction, opened, sealed=True)
        elif kind == _CCS and not self._agreed.is_tls13:
            # Keys were agreed on anew.
            direction.opener, direction.changed = None, True

    # -- handshake messages

    def _messages(self, direction: Direction, data: bytes, sealed: bool) -> None:
        """Take what a record has of handshake messages."""
        if direction.blind:
            if not _whole_messages(data):
                direction.unread += len(data)
                return
            direction.blind = False
        passed = min(direction.skip, len(data))
        direction.skip -= passed
        direction.message += data[passed:]
        message = direction.message
        while len(message) >= 4 and not self.has_failed:
            kind, size = message[0], 4 + int.from_bytes(message[1:4], "big")
            if direction.end < 0 and kind not in (_CLIENT_HELLO, _SERVER_HELLO):
                self._fail(Verdict.NO_HANDSHAKE)
                return
            first_flight = not (sealed or self._agreed.is_tls13 or self._agreed.premaster_name)
            if size > LARGEST_MESSAGE or not (first_flight or kind in _READ):
                direction.skip = max(0, size - len(message))
                del message[:size]
                continue
            if len(message) < size or not direction.is_open:
                return
            whole = bytes(message[:size])
            del message[:size]
            if first_flight and kind not in _NOT_IN_FLIGHTS:
                self._agreed.collect(1 if kind == _SERVER_HELLO else max(0, direction.end), whole)
            try:
                self._message(direction, kind, whole, sealed)
            except DecodeError as problem:
                self._fail(Verdict.NOT_TLS, f"a handshake message that cannot be read: {problem}")

    def _message(self, direction: Direction, kind: int, whole: bytes, sealed: bool) -> None:
        """A handshake message. Raises ``DecodeError``."""
        agreed, body = self._agreed, whole[4:]
        if sealed and agreed.is_tls13:
            self._sealed_message(direction, kind, body)
        elif kind == _CLIENT_HELLO:
            if direction.end == 1:
                self._fail(Verdict.NOT_TLS, "both directions are those of a client")
                return
            direction.end = 0
            agreed.client_hello(client_hello(body), whole)
        elif kind == _SERVER_HELLO:
            if direction.end == 0:
                self._fail(Verdict.NOT_TLS, "both directions are those of a server")
                return
            direction.end = 1
            if agreed.is_agreed and not agreed.is_tls13:
                # It answers a ClientHello that could not be read: keys that nobody can derive follow.
                return
            wrong = agreed.server_hello(server_hello(body), whole)
            if wrong is not None:
                self._fail(*wrong)
        elif kind == _CLIENT_KEY_EXCHANGE and not sealed:
            agreed.key_exchange(body)

    def _sealed_message(self, direction: Direction, kind: int, body: bytes) -> None:
        """A handshake message that TLS 1.3 has sealed. Raises ``DecodeError``."""
        if kind == _ENCRYPTED_EXTENSIONS and direction.end == 1 and direction.phase == Phase.SHAKING:
            self._agreed.early = accepts_early_data(body)
        elif kind == _FINISHED and direction.phase == Phase.SHAKING:
            self._next_key(direction, Phase.TRAFFIC, 0)
        elif kind == _END_OF_EARLY_DATA and direction.phase == Phase.EARLY:
            self._next_key(direction, Phase.SHAKING, 0)
        elif kind == _KEY_UPDATE and direction.phase == Phase.TRAFFIC:
            self.key_updates += 1
            if direction.generation < MOST_GENERATIONS:
                self._next_key(direction, Phase.TRAFFIC, direction.generation + 1)

    # -- keys

    def _arm(self, direction: Direction) -> None:
        """Give a direction the key that seals its next record, the first sealed one; or say why there is none."""
        agreed = self._agreed
        assert agreed.hello is not None
        if not agreed.is_tls13:
            openers = agreed.openers()
            if openers is not None:
                direction.opener, direction.number, direction.changed, direction.era = (
                    openers[max(0, direction.end)],
                    0,
                    False,
                    agreed.count,
                )
            else:
                self._no_key(direction)
            return
        early = direction.end == 0 and agreed.hello.early_data
        told = any(one.end == 1 and one.is_open and one.phase != Phase.TRAFFIC for one in self._directions)
        if early and agreed.early is None and told and not self._final:
            # Whether the server took early data is about to come.
            return
        for phase in Phase if early else (Phase.SHAKING, Phase.TRAFFIC):
            opener = agreed.opener(direction.end, phase, 0)
            if opener is not None:
                direction.opener, direction.number, direction.phase = opener, 0, phase
                return
        self._no_key(direction)

    def _no_key(self, direction: Direction) -> None:
        if self._final or not (self._keys.growing or self._may_be_named(direction)):
            self._end(direction, Verdict.NO_KEY)

    def _may_be_named(self, direction: Direction) -> bool:
        """Whether the client must still say by which name a key log has the secret.

        Then its part of the handshake was captured after the server's.
        """
        if direction.end != 1 or self._agreed.is_tls13 or self._agreed.premaster_name:
            return False
        return any(one.is_open and one.opener is None and not one.changed for one in self._directions if one.end == 0)

    def _next_key(self, direction: Direction, phase: Phase, generation: int) -> None:
        """Take the key of TLS 1.3 that seals what follows."""
        opener = self._agreed.opener(direction.end, phase, generation)
        direction.phase, direction.generation, direction.number = phase, generation, 0
        direction.opener = opener or NOTHING
        if opener is None and phase == Phase.TRAFFIC:
            self._end(direction, Verdict.NO_KEY)

    def _with_another_key(self, direction: Direction, head: bytes, body: memoryview) -> bytes | None:
        """The plaintext of a record that the present key does not open.

        None where there is no way on, or where the record may be passed over.
        """
        opened = self._try_others(direction, head, body)
        if opened is not None:
            return opened
        if self._tired and self._attempts > 0:
            self._end(direction, Verdict.NOT_TLS, _UNPAID)
        elif self._may_pass(direction):
            size = len(body) + _HEAD
            direction.passed += size
            direction.lost += size
        elif direction.number == 0 and direction.generation == 0 and not direction.unread:
            self._end(direction, Verdict.WRONG_KEY)
        else:
            self._end(
                direction, Verdict.NOT_TLS, f"record {direction.number} is not sealed with the key that it should be"
            )
        return None

    def _may_pass(self, direction: Direction) -> bool:
        """Whether records that no key opens may be due here: early data, or a handshake that has no secret."""
        agreed = self._agreed
        if (
            not agreed.is_tls13
            or agreed.hello is None
            or direction.number
            or direction.generation
            or direction.passed >= PASSED
        ):
            return False
        if direction.end == 0 and agreed.hello.early_data and direction.phase != Phase.TRAFFIC:
            return True
        return direction.phase == Phase.TRAFFIC and agreed.opener(direction.end, Phase.SHAKING, 0) is None

    def _others(self, direction: Direction) -> list[tuple[Phase, int, int, Opener]]:
        """What else may seal a record: phase, generation, lowest sequence number, and what opens it."""
        assert direction.opener is not None
        found: list[tuple[Phase, int, int, Opener]] = []
        if direction.unread:
            found.append((direction.phase, direction.generation, direction.number, direction.opener))
        if self._agreed.is_tls13:
            later = [(phase, 0) for phase in Phase if phase > direction.phase]
            if direction.unread and direction.phase == Phase.TRAFFIC:
                later.append((direction.phase, min(direction.generation + 1, MOST_GENERATIONS)))
            for phase, generation in later:
                opener = self._agreed.opener(direction.end, phase, generation)
                if opener is not None:
                    found.append((phase, generation, 0, opener))
        return found

    def _may_try(self, body: memoryview) -> bool:
        """Whether a record may be tried once more, which is paid for then."""
        if self._attempts <= 0 or not self._allowance.attempt(self._agreed.suite, len(body)):
            self._tired = True
            return False
        self._attempts -= 1
        return True

    def _try_others(self, direction: Direction, head: bytes, body: memoryview) -> bytes | None:
        """The plaintext of a record by another key or number, which are those of the direction then."""
        most = direction.unread // SMALLEST_RECORD + 2 if direction.unread else 1
        self._tired = False
        if not self._may_try(body):
            return None
        for phase, generation, lowest, opener in self._others(direction):
            for number in range(lowest, lowest + most):
                if not self._may_try(body):
                    return None
                opened = opener.open(head, body, number)
                if opened is None:
                    continue
                direction.phase, direction.generation, direction.number, direction.opener = (
                    phase,
                    generation,
                    number,
                    opener,
                )
                self._is_certain(direction)
                return opened
        return None

    def _is_certain(self, direction: Direction) -> None:
        """A record was opened, after some that could not be."""
        direction.unread = 0
        if direction.end == 1 or self._agreed.early is False:
            # What was passed over was the handshake, or early data that the server did not take.
            direction.lost -= direction.passed
        direction.passed = 0

    def _search(self, direction: Direction, data: bytes, view: memoryview, at: int) -> int:
        """After a hole: the position of a record from which the direction can be read again.

        ``searching`` is over then. If there is none: how far there is none.
        """
        begun = at
        while True:
            found = _MAY_BEGIN.search(data, at)
            if found is None:
                at = max(at, len(data) - _HEAD + 1)
                break
            at = found.start()
            if len(data) - at < _HEAD:
                break
            stop = at + _HEAD + (data[at + 3] << 8 | data[at + 4])
            follows = stop + 2 > len(data) or (_CCS <= data[stop] <= _HEARTBEAT and data[stop + 1] == 3)
            if not (0 < stop - at - _HEAD <= LARGEST_RECORD and follows):
                at += 1
                continue
            if stop > len(data):
                direction.need = stop - at
                break
            opener, number = direction.opener, direction.number
            if opener is None or (data[at] != _DATA and self._agreed.is_tls13):
                direction.searching = False
                break
            direction.unread += at - begun
            direction.lost += at - begun
            begun = at
            head, body = data[at : at + _HEAD], view[at + _HEAD : stop]
            if opener.open(head, body, number) is not None or self._try_others(direction, head, body) is not None:
                direction.searching = False
                break
            if self._tired:
                self._end(direction, Verdict.NOT_TLS, "packets are missing, and no record behind them could be opened")
                break
            at += 1
        direction.unread += at - begun
        direction.lost += at - begun
        return at

    # -- state out and in

    def state(self) -> dict[str, Any]:
        """What has been read of the connection so far, as JSON can hold it, without any secret."""
        return {
            "verdict": self.verdict.name,
            "why": self._why,
            "attempts": self._attempts,
            "final": self._final,
            "key_updates": self.key_updates,
            "agreed": self._agreed.state(),
            "ways": [direction.state() for direction in self._directions],
        }

    @classmethod
    def restored(cls, state: Any, keys: KeyLog, allowance: Allowance | None = None) -> Decryptor:
        """Go on where the decryptor was that gave ``state``.

        Raises ``CaptureError`` for what is no state, and ``MissingExtraError``.
        """
        made = cls(keys, allowance)
        try:
            made._restore(state)
        except (*stored.UNFIT, DecodeError):
            raise CaptureError("not the state of a TLS connection") from None
        return made

    def _restore(self, state: Any) -> None:
        """Raise whatever a state that is none leads to."""
        agreed = self._agreed
        self.verdict, self._why = Verdict[state["verdict"]], stored.text(state["why"])
        self._final = stored.truth(state["final"])
        self._attempts = min(stored.number(state["attempts"], 0), ATTEMPTS)
        self.key_updates = stored.number(state["key_updates"], 0)
        if not agreed.restore(state["agreed"]) and not self.has_failed:
            raise ValueError("what cannot be read has not failed")
        for direction, saved in zip(self._directions, state["ways"], strict=True):
            if direction.restore(saved) and direction.is_open and not self.has_failed:
                self._open_again(direction)

    def _open_again(self, direction: Direction) -> None:
        """Give a direction the key that it had."""
        agreed = self._agreed
        if direction.end < 0 or not (agreed.is_agreed or agreed.count > direction.era):
            raise ValueError("a key without a handshake")
        if agreed.is_tls13:
            direction.opener = agreed.opener(direction.end, direction.phase, direction.generation) or NOTHING
            return
        # Between two keys, a direction may still have that of the handshake before.
        openers = agreed.openers() if direction.era == agreed.count else None
        if direction.era == agreed.count - 1:
            openers = agreed.openers_before()
        if openers is None:
            self._end(direction, Verdict.NO_KEY)
        else:
            direction.opener = openers[direction.end]


def _whole_messages(data: bytes) -> bool:
    """Whether a record has handshake messages from their beginning to their end."""
    at = 0
    while at + 4 <= len(data) and data[at] in _MESSAGE_TYPES:
        at += 4 + int.from_bytes(data[at + 1 : at + 4], "big")
    return at == len(data)
