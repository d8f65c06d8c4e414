"""Peers in other languages, built on the spot: Kafka's own classes in Java, kmsg and kgo in Go, kafka-protocol in Rust.

Each is a small program (``go/main.go``, ``java/.../Peer.java``, ``rust/src/main.rs``) that reads commands, a line each,
and answers each with a line. It says first ``ready`` and its versions. Then:

    codec KIND KEY VERSION FILE   bodies of one API and version (KIND: request, response); ``ok``, if what is
                                  read of each is written as the same bytes, and the program is warm
    records FILE                  record sets; ``ok``, how many records, and what their fields add up to
    run WHAT TIMES                WHAT is decode, encode or read; ``ok`` and nanoseconds of CPU of the process

A file has pieces, each with four bytes of its length before it. An answer ``no`` says why not. The fields of a record
add up to its offset, its time in milliseconds, and the lengths of its key, its value, and the names and values of
its headers. So a peer that leaves something out is noticed.

A missing tool, or one that does not come to an end, is a line in the results and no error.
"""

from __future__ import annotations

import re
import select
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from _measuring import Turn

__all__ = ["LANGUAGES", "Peer", "UnableError", "pieces", "started"]

HERE: Final = Path(__file__).parent
BUILT: Final = HERE.parent.parent / "build" / "peers"

BUILDING: Final = 300
"""Seconds that building one may take: what it needs may have to be fetched."""
ANSWERING: Final = 120
"""Seconds for an answer."""


class UnableError(Exception):
    """A peer that cannot do this. The message says why."""


@dataclass(frozen=True)
class Language:
    """How a peer is built and started. ``label`` is its name in results."""

    label: str
    tools: tuple[str, ...]
    build: tuple[str, ...]
    start: tuple[str, ...]


LANGUAGES: Final = {
    "java": Language(
        "Kafka (Java)",
        ("java", "mvn"),
        ("mvn", "-q", "-B", "-ntp", "-f", str(HERE / "java" / "pom.xml"), "package"),
        ("java", "-XX:+UseSerialGC", "-cp", f"{HERE}/java/target/classes:{HERE}/java/target/lib/*", "Peer"),
    ),
    "go": Language(
        "franz-go (Go)",
        ("go",),
        ("go", "build", "-C", str(HERE / "go"), "-o", str(BUILT / "go"), "."),
        (str(BUILT / "go"),),
    ),
    "rust": Language(
        "kafka-protocol (Rust)",
        ("cargo",),
        (
            *("cargo", "build", "--quiet", "--release", "--locked"),
            *("--manifest-path", str(HERE / "rust" / "Cargo.toml"), "--target-dir", str(BUILT / "rust")),
        ),
        (str(BUILT / "rust" / "release" / "peer"),),
    ),
}


class Peer:
    """A program that runs. ``versions`` is what it says of itself."""

    def __init__(self, language: Language) -> None:
        self.label = language.label
        self._process = subprocess.Popen(
            language.start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        ready, _, self.versions = self._line().partition(" ")
        if ready != "ready":
            self.close()
            raise UnableError("it does not start")

    def _line(self) -> str:
        out = self._process.stdout
        assert out is not None
        if not select.select([out], [], [], ANSWERING)[0]:
            self.close()
            raise UnableError(f"no answer in {ANSWERING} s")
        return out.readline().decode().strip()

    def ask(self, *words: object) -> list[str]:
        """What it says after ``ok``. Raises ``UnableError``."""
        into = self._process.stdin
        assert into is not None
        try:
            into.write(" ".join(map(str, words)).encode() + b"\n")
            into.flush()
        except OSError:
            raise UnableError("it has ended") from None
        word, *said = self._line().split(" ")
        if word != "ok":
            raise UnableError(" ".join(said) or "it has ended")
        return [one for one in said if one]

    def turn(self, what: str) -> Turn:
        """It as a contestant: what was loaded last, to ``decode``, ``encode`` or ``read``."""

        def turn(count: int) -> float:
            return int(self.ask("run", what, count)[0]) / 1e9

        return turn

    def close(self) -> None:
        """Ends it."""
        self._process.kill()
        self._process.communicate()


def pieces(file: Path, parts: Iterable[bytes]) -> Path:
    """Writes what peers load."""
    file.write_bytes(b"".join(len(one).to_bytes(4, "big") + one for one in parts))
    return file


def started(names: Iterable[str] = LANGUAGES) -> tuple[dict[str, Peer], dict[str, str]]:
    """The peers that run here by their labels, and why the others do not."""
    running: dict[str, Peer] = {}
    missing: dict[str, str] = {}
    for name in names:
        language = LANGUAGES[name]
        try:
            _build(language)
            running[language.label] = Peer(language)
        except UnableError as error:
            missing[language.label] = str(error)
    return running, missing


def _build(language: Language) -> None:
    absent = [tool for tool in language.tools if shutil.which(tool) is None]
    if absent:
        raise UnableError(f"{' and '.join(absent)} not found")
    BUILT.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(language.build, capture_output=True, text=True, timeout=BUILDING, check=False)
    except subprocess.TimeoutExpired:
        raise UnableError(f"not built in {BUILDING} s") from None
    if done.returncode:
        lines = [one for one in re.split(r"\n+", done.stderr + done.stdout) if one.strip()]
        wrong = next((one for one in lines if "error:" in one or ".java:" in one), lines[-1] if lines else "no reason")
        raise UnableError(f"not built: {wrong.strip()[:200]}")
