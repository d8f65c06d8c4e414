"""A process whose output goes to a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Mapping
from typing import Any


def on_terminal(command: list[str], env: Mapping[str, str], **streams: Any) -> tuple[int, bytes]:
    """The exit code, and all that the terminal was given: both streams, but what ``streams`` sends elsewhere."""
    leader, follower = pty.openpty()
    streams = {"stdin": subprocess.DEVNULL, "stdout": follower, "stderr": follower} | streams
    with subprocess.Popen(command, env=os.environ | env, **streams) as process:
        os.close(follower)
        seen = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        code = process.wait(60)
    os.close(leader)
    return code, seen
