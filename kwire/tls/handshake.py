"""What both ends of a TLS connection agreed on, and the keys that follow from it and from a key log: ``Handshake``.

It gets handshake messages (``client_hello``, ``server_hello``, ``key_exchange``), and gives what opens records. Nothing
of a handshake is verified: a key that is wrong opens nothing. Each key that is derived is paid for
(``kwire.tls.allowance``).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

from kwire import stored
from kwire.tls import keylog as labels
from kwire.tls.allowance import GENERATION, Allowance
from kwire.tls.hellos import ClientHello, ServerHello, client_hello, server_hello
from kwire.tls.keylog import KeyLog
from kwire.tls.protection import Opener, key_block_openers, master_of, next_generation, opener13
from kwire.tls.suites import TLS13_SUITES, Suite, suite
from kwire.tls.verdicts import Verdict
from kwire.tls.versions import TLS11, TLS13, version_name

__all__ = ["Handshake", "Phase"]

_LARGEST_FLIGHT: Final = 256 << 10
"""Bytes of handshake messages of one end that are kept for a master secret."""


class Phase(IntEnum):
    """The secrets that seal a direction of TLS 1.3, one after the other."""

    EARLY = 0
    SHAKING = 1
    TRAFFIC = 2


_LABELS: Final = (
    (labels.EARLY, labels.CLIENT_HANDSHAKE, labels.CLIENT_TRAFFIC),
    (b"", labels.SERVER_HANDSHAKE, labels.SERVER_TRAFFIC),
)


class Handshake:
    """What is known of a handshake.

    ``hello`` and ``answer`` are the hellos, ``suite`` the cipher suite of the latter.

    ``count`` says how many there were: more than one in TLS 1.2 where keys were agreed on anew. ``early`` says whether
    the server took early data (None: not known yet). Where something is asked of an ``end``, 0 is the client.
    """

    def __init__(self, keys: KeyLog, allowance: Allowance) -> None:
        self._keys = keys
        self._allowance = allowance
        self.hello: ClientHello | None = None
        self.answer: ServerHello | None = None
        self.suite: Suite | None = None
        self.early: bool | None = None
        self.count: int = 0
        self.unpaid: bool = False
        """Whether a key could not be derived because nothing was left to spend."""
        self.premaster_name: bytes = b""
        """The first bytes of the encrypted premaster secret, by which a key log may name it."""
        self.flights: tuple[bytearray, bytearray] = (bytearray(), bytearray())
        """Messages of client and server up to ClientKeyExchange: an extended master secret is made of them."""
        self.messages: list[bytes] = [b"", b""]
        """The hellos as they were; without an answer, the suite that ``guess`` found."""
        self._latest: dict[int, tuple[int, bytes]] = {}
        """The latest generation of each end that was asked for, and its secret."""
        self.before: dict[str, Any] | None = None
        """In TLS 1.2, the state of the handshake before this one: its keys seal records until the new ones do."""
        self._openers: dict[tuple[int, Phase], tuple[int, bytes, int, Opener]] = {}
        """What was derived last for an end and a phase, and what of: suite, secret and generation."""

    @property
    def is_tls13(self) -> bool:
        """Whether it is known to be TLS 1.3."""
        return self.answer is not None and self.answer.version >= TLS13

    @property
    def is_agreed(self) -> bool:
        """Whether both hellos are there."""
        return self.hello is not None and self.answer is not None and not self.answer.retry

    @property
    def resumes(self) -> bool:
        """Whether the server went on with an earlier session."""
        if self.answer is None or self.hello is None:
            return False
        if self.is_tls13:
            return self.answer.resumed
        # A server that makes a new session gives it another number, or none.
        return bool(self.hello.session_id) and self.answer.session_id == self.hello.session_id

    def state(self) -> dict[str, Any]:
        """All of it, as JSON can hold it: no secret among it."""
        return {
            "hellos": [stored.as_text(one) for one in self.messages],
            "early": self.early,
            "count": self.count,
            "premaster_name": stored.as_text(self.premaster_name),
            "flights": [stored.as_text(one) for one in self.flights],
            "before": self.before,
        }

    def restore(self, state: Any) -> bool:
        """Take over what ``state`` gave: whether such a connection can be read.

        Raises ``DecodeError``, or an ordinary exception, for anything else.
        """
        hello, answer = (stored.as_bytes(one) for one in state["hellos"])
        if hello:
            self.client_hello(client_hello(hello[4:]), hello)
        readable = True
        if len(answer) == 2:
            self.guessed(int.from_bytes(answer, "big"))
            readable = int.from_bytes(answer, "big") in TLS13_SUITES
        elif answer:
            readable = None is self.server_hello(server_hello(answer[4:]), answer)
        self.early = None if state["early"] is None else stored.truth(state["early"])
        self.count = stored.number(state["count"], 0)
        self.premaster_name = stored.as_bytes(state["premaster_name"])
        for flight, one in zip(self.flights, state["flights"], strict=True):
            flight[:] = stored.as_bytes(one)
        before = state.get("before")
        if before is not None:
            earlier = Handshake(self._keys, self._allowance)
            if before.get("before") is not None or not earlier.restore(before):
                raise ValueError("a handshake before this one that was not read")
            before = earlier.state()
            # Until the server answers, records are sealed as before.
            self.suite = self.suite or earlier.suite
        self.before = before
        return readable

    # -- what was said

    def client_hello(self, hello: ClientHello, message: bytes) -> None:
        """A ClientHello; ``message`` is the whole of it."""
        if self.hello is not None and hello.random == self.hello.random:
            # The same once more, after a HelloRetryRequest.
            return
        if self.is_agreed and not self.is_tls13:
            self.before = {**self.state(), "before": None}
        self.count += 1
        self.hello, self.answer = hello, None
        self.messages = [message, b""]
        self._latest.clear()
        self.early = None if hello.early_data else False
        self.premaster_name = b""
        for flight in self.flights:
            flight.clear()
        self.collect(0, message)

    def server_hello(self, answer: ServerHello, message: bytes) -> tuple[Verdict, str] | None:
        """A ServerHello, ``message`` being the whole of it: why the connection cannot be read, and in a sentence."""
        self.answer = answer
        self.messages[1] = message
        self._latest.clear()
        if answer.retry:
            self.early = False
            return None
        self.suite = suite(answer.suite)
        if not TLS11 <= answer.version <= TLS13:
            return Verdict.VERSION, f"{version_name(answer.version)} is not supported"
        if not self.suite.cipher or self.suite.tls13 != (answer.version == TLS13):
            return Verdict.SUITE, f"the cipher suite {self.suite.name} is not supported"
        return (Verdict.COMPRESSED, Verdict.COMPRESSED.value) if answer.compression else None

    def collect(self, end: int, message: bytes) -> None:
        """A message of the first flights, which are over with ClientKeyExchange."""
        flight = self.flights[end]
        if not self.premaster_name and len(flight) + len(message) <= _LARGEST_FLIGHT:
            flight += message

    def key_exchange(self, body: bytes) -> None:
        """A ClientKeyExchange, which ``collect`` has had.

        With RSA, it is an encrypted premaster secret after its length.
        """
        self.premaster_name = body[2:10].ljust(8, b"\0")

    # -- keys

    def opener(self, end: int, phase: Phase, generation: int) -> Opener | None:
        """What opens the records of TLS 1.3 of an end in a phase, after ``generation`` KeyUpdates.

        None where there is no secret, or nothing left to derive it with.
        """
        if self.hello is None or self.suite is None:
            return None
        secret = self._keys.secret(_LABELS[end][phase], self.hello.random)
        if secret is None or len(secret) != (48 if self.suite.digest == "sha384" else 32):
            return None
        *of, found = self._openers.get((end, phase), (0, b"", 0, None))
        if found is not None and of == [self.suite.number, secret, generation]:
            return found
        made = secret
        if phase == Phase.TRAFFIC and generation:
            first, latest = self._latest.get(end, (0, secret))
            first, made = (first, latest) if first <= generation else (0, secret)
            if not self._pays(self._allowance.spend(GENERATION * (generation - first))):
                return None
            for _ in range(generation - first):
                made = next_generation(made, self.suite.digest)
            self._latest[end] = generation, made
        if not self._pays(self._allowance.keys(1)):
            return None
        opener = opener13(self.suite, made)
        self._openers[end, phase] = self.suite.number, secret, generation, opener
        return opener

    def openers(self) -> tuple[Opener, Opener] | None:
        """What opens the records of client and server, in TLS 1.2 and 1.1; None as ``opener``."""
        if self.hello is None or self.answer is None or self.suite is None:
            return None
        master = self._master(self.hello, self.answer, self.suite)
        if master is None or not self._pays(self._allowance.keys(2)):
            return None
        randoms = self.hello.random, self.answer.random
        return key_block_openers(self.suite, master, randoms, self.answer.version, self.answer.encrypt_then_mac)

    def openers_before(self) -> tuple[Opener, Opener] | None:
        """``openers`` of the handshake before this one; None where there was none."""
        if self.before is None:
            return None
        earlier = Handshake(self._keys, self._allowance)
        earlier.restore(self.before)
        return earlier.openers()

    def _master(self, hello: ClientHello, answer: ServerHello, chosen: Suite) -> bytes | None:
        found = self._keys.secret(labels.MASTER, hello.random)
        for session in (answer.session_id, hello.session_id):
            if found is None and session:
                found = self._keys.secret(labels.SESSION, session)
        if found is not None or not self.premaster_name:
            return found
        premaster = self._keys.secret(labels.PREMASTER, self.premaster_name)
        if premaster is None or not self._pays(self._allowance.keys(1, sum(map(len, self.flights)))):
            return None
        seed = hello.random + answer.random
        if answer.extended_master_secret:
            from_client, from_server = self.flights
            first = 4 + int.from_bytes(from_client[1:4], "big")
            seed = bytes(from_client[:first] + from_server + from_client[first:])
        return master_of(premaster, seed, answer.extended_master_secret, answer.version, chosen.digest)

    def _pays(self, paid: bool) -> bool:
        self.unpaid |= not paid
        return paid

    def guess(self, head: bytes, body: bytes) -> bool:
        """Without a ServerHello: whether a suite of TLS 1.3 has a key that opens the first sealed record.

        The record is the client's. The answer is made up accordingly.
        """
        if self.hello is None or TLS13 not in self.hello.versions:
            return False
        for number in TLS13_SUITES:
            if number not in self.hello.suites:
                continue
            self.suite = suite(number)
            for phase in Phase:
                opener = self.opener(0, phase, 0)
                if opener is None or not self._pays(self._allowance.attempt(self.suite, len(body))):
                    continue
                if opener.open(head, body, 0) is not None:
                    self.guessed(number)
                    return True
        self.suite = None
        return False

    def guessed(self, number: int) -> None:
        """Take a suite of TLS 1.3 for the one that a server chose whose hello is not there."""
        self.suite = suite(number)
        self.answer = ServerHello(b"", b"", number, TLS13, 0, False, False, False, False)
        self.messages[1] = number.to_bytes(2, "big")
