"""What the broker and the proxy share: a test scripts faults, and asks what was said."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING

from kwire.errors import KwireError
from kwire.opening import replaced
from kwire.protocol import names
from kwire.testing.broker.faults import Faults, Rule
from kwire.testing.broker.hosting import Hosted
from kwire.testing.broker.recording import Exchange, Recording

if TYPE_CHECKING:
    from kwire.testing.corpus import Case

__all__ = ["Scripted"]


class Scripted(Hosted):
    """Something with sockets that has faults and a recording. All methods may be called from any thread."""

    @property
    @abstractmethod
    def bootstrap(self) -> str:
        """The bootstrap servers for a client."""

    @property
    @abstractmethod
    def _faults(self) -> Faults:
        """What tests have scripted."""

    @property
    @abstractmethod
    def _recording(self) -> Recording:
        """What was said."""

    def on(
        self,
        api: str | None = None,
        *,
        topic: str | None = None,
        partition: int | None = None,
        client: str | None = None,
        node: int | None = None,
        nth: int | None = None,
        times: int | None = None,
        share: float = 1.0,
    ) -> Rule:
        """A rule for some requests. Say with its methods what happens to them.

        - ``api``: the name of the API; None for all.
        - ``topic``, ``partition``: requests that name it. An error is answered for it alone.
        - ``client``: the client id. ``node``: the id of the node that is asked; at a proxy -1 on connections to
          ``upstream`` itself.
        - ``nth``: only this one of them, counted from 1. ``times``: no more than so many.
        - ``share``: this share of them, by chance (``Settings.seed``, ``Proxy(seed=...)``).

        A broker answers an error in place of the work. A proxy sets it in the response of the cluster.

        Raises ``UnsupportedVersionError`` for a name that no API has, and ``ValueError`` for a topic in an API that
        names none.
        """
        rule = Rule(api, topic=topic, partition=partition, client=client, node=node, nth=nth, times=times, share=share)
        self.add_rules([rule])
        return rule

    def add_rules(self, rules: Iterable[Rule]) -> None:
        """More rules, such as those of a script (``kwire.testing.broker.script``)."""
        self.in_loop(lambda: self._faults.rules.extend(rules))

    def forget_rules(self) -> None:
        """No faults from here on."""
        self.in_loop(self._faults.rules.clear)

    def cases(self) -> list[Case]:
        """The responses that were damaged by kinds of the corpus, each with its verdict, the oldest first."""
        return self.in_loop(lambda: list(self._faults.cases))

    def exchanges(self, api: str | None = None) -> list[Exchange]:
        """What clients have asked so far; of one API by its name.

        A broker has the messages. Of a proxy they are in its capture only.
        """
        key = None if api is None else names.api_key(api)
        return self.in_loop(lambda: [one for one in self._recording.exchanges if key in (None, one.api_key)])

    def errors(self) -> list[KwireError]:
        """Why connections were closed: each about what a client, or the cluster behind a proxy, has sent."""
        return self.in_loop(lambda: list(self._recording.errors))

    def pcapng(self) -> bytes:
        """All connections as a capture, without TLS. Passwords that clients have sent are in it."""
        return self.in_loop(self._recording.pcapng)

    def write_pcapng(self, path: str | PathLike[str]) -> None:
        """Write ``pcapng`` into a new file, which takes the place of one of its name. Raises ``OSError``."""
        with replaced(path) as (partial, mode), partial.open(f"{mode}b") as file:
            file.write(self.pcapng())
