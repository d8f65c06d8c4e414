"""Client programs that are not in the recorder's own environment: how each is made ready and started.

Each function returns the start of a command line. What is fetched or built goes to ``.cache/recording``; the package
managers decide from where. ``ToolchainError`` says in one line why a client is not available here.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["CLIENTS", "ToolchainError", "aiokafka", "franz", "kafkajs", "librdkafka", "old_librdkafka", "tls_agent"]

HERE = Path(__file__).resolve().parent
CLIENTS = HERE / "clients"
CACHE = HERE.parent.parent / ".cache" / "recording"

OLD_CONFLUENT = "2.1.1"
"""From 2.2 on librdkafka fails on Metadata v0 ("tmpabuf memory shortage"): broker.version.fallback=0.9 needs this."""

TLS_AGENT = "4.0.0"


class ToolchainError(Exception):
    """A client cannot be made ready on this machine."""


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise ToolchainError(f"{command[0]} {command[1]} failed: {(done.stderr or done.stdout)[-500:]}")


def _need(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise ToolchainError(f"no {program} on this machine")
    return found


def _environment(name: str, requirement: str) -> Path:
    """The Python of a virtual environment that holds one requirement."""
    folder = CACHE / name
    python = folder / "bin" / "python"
    marker = folder / "ready"
    if not marker.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        _run([sys.executable, "-m", "venv", str(folder)], folder.parent)
        _run([str(python), "-m", "pip", "install", "-q", requirement], folder)
        marker.touch()
    return python


def librdkafka() -> list[str]:
    return [str(_environment("librdkafka", "confluent-kafka==2.16.1")), str(CLIENTS / "librdkafka.py")]


def old_librdkafka() -> list[str]:
    return [
        str(_environment("librdkafka-old", f"confluent-kafka=={OLD_CONFLUENT}")),
        str(CLIENTS / "librdkafka.py"),
    ]


def aiokafka() -> list[str]:
    return [str(_environment("aiokafka", "aiokafka[lz4,snappy,zstd]==0.14.0")), str(CLIENTS / "aio.py")]


def kafkajs() -> list[str]:
    folder = CACHE / "kafkajs"
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(CLIENTS / "kafkajs" / "package.json", folder)
        _run([_need("npm"), "install", "--no-audit", "--no-fund"], folder)
        (folder / "ready").touch()
    shutil.copy(CLIENTS / "kafkajs" / "main.js", folder)
    return [_need("node"), str(folder / "main.js")]


def franz() -> list[str]:
    CACHE.mkdir(parents=True, exist_ok=True)
    target = CACHE / "franz"
    _run([_need("go"), "build", "-o", str(target), "."], CLIENTS / "franz")
    return [str(target)]


def java_client(version: str) -> str:
    """The class path of Kafka's own client of a release, 0.9 and later."""
    folder = CACHE / f"kafka-clients-{version}"
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for artifact in (f"org.apache.kafka:kafka-clients:{version}", "org.slf4j:slf4j-api:1.7.36"):
            copy = ["dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
            _run([_need("mvn"), "-B", "-q", *copy], folder)
        (folder / "ready").touch()
    return str(folder / "*")


def tls_agent() -> Path:
    """The jar of a Java agent that writes a key log of the TLS connections of its JVM (its argument: the file)."""
    target = CACHE / f"extract-tls-secrets-{TLS_AGENT}.jar"
    if not target.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        artifact = f"-Dartifact=name.neykov:extract-tls-secrets:{TLS_AGENT}"
        _run([_need("mvn"), "-B", "-q", "dependency:copy", artifact, f"-DoutputDirectory={CACHE}"], CACHE)
    return target
