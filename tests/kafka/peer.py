"""Kafka's own message classes of one release, in a Java process of their own.

``KafkaPeer(release)`` has Maven find the jars (``tests/java/pom.xml``), compiles ``tests/java/KafkaMessages.java``
against them and talks to it over its standard input and output. It also reads the JSON definitions that the jars carry,
so that a class's fields can be named as that release names them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from kwire.errors import SchemaError
from kwire.schema import kafka, model

JAVA_SOURCES = Path(__file__).parents[1] / "java"

sys.path.insert(0, str(Path(__file__).parents[1] / "broker"))

import kafka_jars  # noqa: E402

MAVEN_SECONDS = 420
PROFILES = {"4.4.0": ("embedded",)}
"""Of ``tests/java/pom.xml``: which jars beside kafka-clients some releases have."""


class KafkaPeer:
    """A running ``KafkaMessages``; ``classes`` maps message names to class names, ``definitions`` to their schemas."""

    def __init__(self, release: str) -> None:
        self.release = release
        self._scratch = tempfile.TemporaryDirectory(prefix="kwire-kafka-")
        scratch = Path(self._scratch.name)
        class_path = _class_path(release, PROFILES.get(release, ()), scratch / "class-path")
        self.jars = [Path(one) for one in class_path.split(os.pathsep) if Path(one).name.startswith("kafka-")]
        self.definitions: dict[str, model.Message] = {}
        self.classes: dict[str, str] = {}
        for jar in self.jars:
            self._read(jar)
        command = [kafka_jars.jdk_tool("javac"), "-nowarn", "-encoding", "UTF-8", "-cp", class_path]
        command += ["-d", str(scratch / "classes"), str(JAVA_SOURCES / "KafkaMessages.java")]
        subprocess.run(command, check=True, capture_output=True, text=True)
        self._process = subprocess.Popen(
            [
                kafka_jars.java(),
                "-Xmx512m",
                # Each class is used a few times: what the second compiler makes of it would not pay.
                *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                "-cp",
                os.pathsep.join([str(scratch / "classes"), class_path]),
                "KafkaMessages",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def _read(self, jar: Path) -> None:
        try:
            self.definitions |= {one.name: one for one in kafka.definitions(jar)}
        except SchemaError as error:
            if "no Kafka message definitions" not in error.message:
                raise
        with zipfile.ZipFile(jar) as inside:
            for name in inside.namelist():
                if name.endswith("JsonConverter.class") and "$" not in name:
                    full = name.removesuffix("JsonConverter.class").replace("/", ".")
                    simple = full.rpartition(".")[2]
                    # Requests, responses and headers have Data at the end of their class names, embedded schemas not.
                    known = simple if simple in self.definitions else simple.removesuffix("Data")
                    self.classes[known] = full

    def ask(self, commands: list[tuple[str, ...]]) -> list[list[str]]:
        """Has the commands carried out: the parts of each answer. An answer that begins with ``!`` is a failure."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("".join("\t".join(one) + "\n" for one in commands) + "\n")
        self._process.stdin.flush()
        answers = [self._process.stdout.readline() for _ in commands]
        assert all(answers), f"the Java process has ended ({self._process.poll()})"
        return [one.rstrip("\n").split("\t") for one in answers]

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()
        self._scratch.cleanup()


def _class_path(release: str, profiles: tuple[str, ...], target: Path) -> str:
    maven = shutil.which("mvn")
    if maven is None:
        raise kafka_jars.KafkaUnavailableError("no mvn on this machine: install Maven 3.8 or newer")
    command = [maven, "-B", "-q", "-f", str(JAVA_SOURCES / "pom.xml"), f"-Dkafka.version={release}"]
    command += [f"-P{one}" for one in profiles]
    command += ["dependency:build-classpath", f"-Dmdep.outputFile={target}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_SECONDS, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise kafka_jars.KafkaUnavailableError(f"Maven cannot get Kafka {release}: {done.stdout[-2000:]}")
    return target.read_text().strip()
