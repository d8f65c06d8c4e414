"""Answers real clients with responses that are damaged, one at a time, and says what they make of it.

``Clients`` runs a client, a command, against a broker of its own for each ``Plan``: the answer to the nth request of an
API is damaged. The plans are made of what the client asks in a run without damage (``rehearse``). ``run`` does them.

``reactions`` says what clients did that somebody else has started.

What is held against a client: a crash, a hang, too much memory, and that it fails where it must accept what came. It is
not held against it that it goes on after damage: it may have asked again.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kwire.errors import KwireError
from kwire.testing.broker import Broker, Exchange, Settings
from kwire.testing.broker.faults import DAMAGES
from kwire.testing.corpus import KINDS, RECORD_KINDS, Case
from kwire.testing.feeding import Answer, Bounds, Outcome, count, ran, words_of

__all__ = ["REACTIONS", "Clients", "Plan", "kinds", "reactions", "run"]

REACTIONS: Final = {
    "went on": "it sent another request on the connection",
    "asked again": "it sent the same request again on the connection",
    "closed and asked again": "it closed the connection, and sent a request of the API on another one",
    "closed": "it closed the connection, and did not ask again",
    "was cut off": "the damage ended the connection, and it did not ask again",
    "waits": "it sent nothing more, and keeps the connection",
}
"""What a client did after a damaged response, in words."""
_MOST_NTH: Final = 2
"""Of the requests of an API, the answers to so many are damaged."""


class Plan(NamedTuple):
    """What is done to a client."""

    api: str
    nth: int
    kind: str
    seed: int


def kinds(api: str) -> list[str]:
    """The kinds of damage for an API."""
    of_records = [name for name, kind in RECORD_KINDS.items() if kind.damage] if api == "Fetch" else []
    return [*KINDS, *(one for one in DAMAGES if one not in KINDS), *of_records]


class Clients:
    """A client as a command, in which ``{}`` stands for the bootstrap servers.

    ``refused``: the exit codes with which it says that it failed; any other but 0 is a crash. ``topics``: those of the
    broker, with their number of partitions. Raises ``ValueError`` for a command without ``{}``.
    """

    def __init__(
        self,
        command: str,
        bounds: Bounds,
        refused: Collection[int] = (1,),
        *,
        release: str | None = None,
        topics: Mapping[str, int] | None = None,
    ) -> None:
        self._words = words_of(command)
        if not any("{}" in one for one in self._words):
            raise ValueError(f"{command!r} has no {{}}, which is where the bootstrap servers go")
        self._bounds = bounds
        self._refused = refused
        self._release = release
        self._topics = topics

    def _broker(self, seed: int) -> Broker:
        return Broker(release=self._release, topics=self._topics, settings=Settings(seed=seed))

    def _ran(self, broker: Broker) -> Answer:
        words = [one.replace("{}", broker.bootstrap) for one in self._words]
        return ran(words, self._bounds, self._refused)

    def rehearse(self) -> dict[str, int]:
        """Run the client without damage. Gives how many answers of each API it gets. Raises ``KwireError``."""
        with self._broker(0) as broker:
            answer = self._ran(broker)
            asked = Counter(one.api for one in broker.exchanges() if one.answered is not None)
        if answer.said != "accept":
            raise KwireError(f"the client fails where nothing is damaged: {answer.said} {answer.detail}".strip())
        if not asked:
            raise KwireError("the client asked the broker for nothing: does its command connect to {}?")
        return dict(asked)

    def plans(self, apis: Sequence[str] = (), wanted: Sequence[str] = (), seed: int = 0) -> list[Plan]:
        """What can be done to it, in an order by chance. ``apis``, ``wanted`` kinds: only these."""
        made = [
            Plan(api, nth, kind, seed)
            for api, times in self.rehearse().items()
            if not apis or api in apis
            for nth in range(1, min(times, _MOST_NTH) + 1)
            for kind in kinds(api)
            if not wanted or kind in wanted
        ]
        random.Random(seed).shuffle(made)
        return made

    def ask(self, plan: Plan) -> tuple[Case, Answer] | None:
        """What the client makes of a plan. None where its response had no place for the damage."""
        with self._broker(plan.seed) as broker:
            broker.on(plan.api, nth=plan.nth).damage(plan.kind)
            answer = self._ran(broker)
            cases = broker.cases()
        if not cases:
            return None
        if answer.said == "accept" and cases[0].verdict == "must-refuse":
            answer = Answer("refuse", "went on")
        return cases[0], answer


def reactions(exchanges: Sequence[Exchange]) -> list[tuple[Exchange, str]]:
    """The exchanges whose responses were damaged, each with a word of ``REACTIONS``.

    What a client sent before the response came counts as well: it may have several requests under way.
    """
    found = []
    for place, one in enumerate(exchanges):
        if one.damage is None:
            continue
        later = exchanges[place + 1 :]
        on_it = next((other for other in later if other.connection == one.connection), None)
        elsewhere = any(
            (other.client_id, other.api_key) == (one.client_id, one.api_key) and other.connection != one.connection
            for other in later
        )
        if on_it is not None:
            same = on_it.api_key == one.api_key and on_it.request == one.request
            word = "asked again" if same else "went on"
        elif elsewhere:
            word = "closed and asked again"
        else:
            word = "closed" if one.left else "was cut off" if one.damage.damage == "cut_off" else "waits"
        found.append((one, word))
    return found


def run(
    clients: Clients,
    plans: Iterable[Plan],
    *,
    most: int = 0,
    seconds: float = 0,
    progress: Callable[[int], None] | None = None,
    keep: Callable[[Case], None] | None = None,
) -> Outcome:
    """Carries plans out. ``most`` and ``seconds``: ends after so many, 0 is never. ``keep`` gets each case."""
    outcome = Outcome()
    began = time.monotonic()
    for plan in plans:
        if (most and outcome.asked >= most) or (seconds and time.monotonic() - began > seconds):
            break
        found = clients.ask(plan)
        if found is None:
            outcome.skipped += 1
        else:
            outcome.asked += 1
            count(outcome, *found)
            if keep is not None:
                keep(found[0])
        if progress is not None:
            progress(outcome.asked)
    outcome.seconds = time.monotonic() - began
    return outcome
