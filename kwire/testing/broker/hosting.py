"""Running something with sockets: in the loop that runs, or in a loop with a thread of its own beside code that blocks.

``Hosted`` is the base of the broker and the proxy. ``async with`` uses the loop that runs. ``with`` begins a thread,
and ``in_loop`` does there what is asked for, so that only the loop touches the state.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Self, TypeVar

from kwire.testing.broker.asking import NEVER

__all__ = ["Hosted", "check_host"]

T = TypeVar("T")

_LABEL: Final = 63
"""Bytes between two dots of a name."""
_START: Final = 30.0
"""Seconds in which the thread must have begun."""


def check_host(host: str) -> str:
    """The host, if it can be the name or the address of one. Raises ``ValueError``."""
    # Asyncio takes an empty one for all addresses of the machine. A URL or user:password@ is no host.
    fine = all(one.isalnum() or one in "-._:%" for one in host)
    labels = host.rstrip(".").split(".") if host.count(":") == 0 else [host]
    if not fine or not all(1 <= len(one.encode()) <= _LABEL for one in labels):
        raise ValueError(f"{host!r} is no host: it is the name or the address of one, such as 127.0.0.1")
    return host


class Hosted(ABC):
    """Something with sockets, that has to do something by itself from time to time."""

    _loop: asyncio.AbstractEventLoop | None = None
    _thread: threading.Thread | None = None
    _timer: asyncio.TimerHandle | None = None

    @abstractmethod
    async def listen(self) -> None:
        """Open the sockets."""

    @abstractmethod
    def shut(self) -> None:
        """Close all sockets."""

    @abstractmethod
    def settle(self) -> float:
        """Do what is due. Gives the time of the next thing, on the clock ``time.monotonic``."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    def __enter__(self) -> Self:
        ready = threading.Event()
        failed: list[BaseException] = []

        def run() -> None:
            loop = asyncio.new_event_loop()
            try:
                loop.run_until_complete(self.start())
            except BaseException as error:  # it is raised where the thread was begun
                failed.append(error)
                return
            finally:
                ready.set()
            loop.run_forever()
            loop.run_until_complete(self.stop())
            loop.close()

        self._thread = threading.Thread(target=run, name=f"kwire {type(self).__name__}", daemon=True)
        self._thread.start()
        ready.wait(_START)
        if failed:
            raise failed[0]
        return self

    def __exit__(self, *error: object) -> None:
        assert self._loop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._thread = None

    async def start(self) -> None:
        """Listen, in the loop that runs."""
        self._loop = asyncio.get_running_loop()
        await self.listen()

    async def stop(self) -> None:
        """Close all connections, and listen no more."""
        if self._timer is not None:
            self._timer.cancel()
        self.shut()
        await asyncio.sleep(0)

    def in_loop(self, work: Callable[[], T]) -> T:
        """What ``work`` gives, done where the state may be touched."""
        if self._thread is None or self._thread is threading.current_thread() or self._loop is None:
            made = work()
            self.wake()
            return made

        async def run() -> T:
            made = work()
            self.wake()
            return made

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def wake(self) -> None:
        """Do what is due, and come back when the next thing is."""
        if self._loop is None:
            return
        due = self.settle()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due != NEVER:
            self._timer = self._loop.call_later(max(0.0, due - self._loop.time()), self.wake)
