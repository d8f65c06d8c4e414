"""A headless Chromium for tests, over its own debugging pipe: no driver and no package.

``found()`` names a browser of the machine (the variable ``KWIRE_CHROMIUM``, or one on the path), ``Browser`` runs it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "headless_shell")


def found() -> str | None:
    """The browser, or None."""
    named = os.environ.get("KWIRE_CHROMIUM")
    return named or next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """A running browser with one page. ``events`` are what it told, in order."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int) -> None:
        self._process, self._to, self._back = process, to, back
        self._next = 0
        self._rest = b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    @classmethod
    @contextlib.contextmanager
    def run(cls, path: str, profile: Path) -> Iterator[Browser]:
        """A browser with a profile of its own."""
        to_read, to_write = os.pipe()
        back_read, back_write = os.pipe()

        def wired() -> None:
            # The pipes are 3 and 4 there; both ends go through free numbers first, as they may be 3 or 4 themselves.
            one, other = os.dup2(to_read, 60), os.dup2(back_write, 61)
            os.dup2(one, 3)
            os.dup2(other, 4)

        process = subprocess.Popen(
            [path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=wired, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(back_write)
        made = cls(process, to_write, back_read)
        try:
            target = made.call("Target.createTarget", url="about:blank")["targetId"]
            made._session = made.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                made.call(f"{domain}.enable")
            yield made
        finally:
            with contextlib.suppress(OSError, EOFError, TimeoutError):
                made._session = None
                made.call("Browser.close")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
            os.close(to_write)
            os.close(back_read)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Calls a method of the protocol."""
        self._next += 1
        asked: dict[str, Any] = {"id": self._next, "method": method, "params": params}
        if self._session is not None:
            asked["sessionId"] = self._session
        os.write(self._to, json.dumps(asked).encode() + b"\0")
        while True:
            said = self._read()
            if said.get("id") == asked["id"]:
                assert "error" not in said, (method, said)
                result: dict[str, Any] = said["result"]
                return result

    def _read(self, patience: float = 60) -> dict[str, Any]:
        until = time.monotonic() + patience
        while b"\0" not in self._rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._back], [], [], left)[0]:
                raise TimeoutError("the browser says nothing")
            part = os.read(self._back, 1 << 20)
            if not part:
                raise EOFError("the browser has ended")
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        said: dict[str, Any] = json.loads(text)
        if "method" in said:
            self.events.append(said)
        return said

    def open(
        self, path: Path, width: int = 1280, height: int = 900, *, dark: bool = False, phone: bool = False
    ) -> None:
        """Shows a page and waits until it is there."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not any(one["method"] == "Page.loadEventFired" for one in self.events):
            self._read()

    def of(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def key(self, key: str, text: str = "") -> None:
        """A key is pressed."""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def wrong(self) -> list[dict[str, Any]]:
        """What went wrong on the page: exceptions, what was written to the console, what the policy refused."""
        words = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [one for one in self.events if one["method"] in words]

    def requests(self) -> list[str]:
        """What was fetched."""
        return [one["params"]["request"]["url"] for one in self.events if one["method"] == "Network.requestWillBeSent"]

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Writes a picture of the page."""
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))
