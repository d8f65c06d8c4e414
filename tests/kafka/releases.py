"""Makes ``schemas/releases.txt``: which versions the brokers of each Kafka release accept, asked of their own classes.

    python tests/kafka/releases.py            writes the table anew (Maven fetches some 70 jars)
    python tests/kafka/releases.py --check    compares it instead; ends with 1 when they differ

``tests/java/ReleaseVersions.java`` asks. The first and the last patch release of every line are asked (of 4.0 all):
where they agree, the table has the line (``3.9``); one that differs from the last stands in front of it (``4.0.0``).
What the classes do not say, and brokers do, is ``BESIDE``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLE = ROOT / "schemas" / "releases.txt"

sys.path.insert(0, str(ROOT / "tests" / "broker"))

import kafka_jars  # noqa: E402

LISTED = """
    0.8.0 0.8.1 0.8.1.1 0.8.2.0 0.8.2.2 0.9.0.0 0.9.0.1 0.10.0.0 0.10.0.1 0.10.1.0 0.10.1.1 0.10.2.0 0.10.2.2
    0.11.0.0 0.11.0.3 1.0.0 1.0.2 1.1.0 1.1.1 2.0.0 2.0.1 2.1.0 2.1.1 2.2.0 2.2.2 2.3.0 2.3.1 2.4.0 2.4.1 2.5.0
    2.5.1 2.6.0 2.6.3 2.7.0 2.7.2 2.8.0 2.8.2 3.0.0 3.0.2 3.1.0 3.1.2 3.2.0 3.2.3 3.3.1 3.3.2 3.4.0 3.4.1 3.5.0
    3.5.2 3.6.0 3.6.2 3.7.0 3.7.2 3.8.0 3.8.1 3.9.0 3.9.2 4.0.0 4.0.1 4.0.2 4.1.0 4.1.1 4.2.0 4.3.0 4.3.1 4.4.0
"""
RELEASES = tuple(LISTED.split())

BESIDE = {("zookeeper", 7, line): (0, 1, 1) for line in ("0.9.0", "0.10.0", "0.10.1", "0.10.2", "0.11.0")}
"""(listener, API key, line) -> lowest, highest, lowest announced. ControlledShutdown v0, whose header has no client_id,
is read by the Scala core of these brokers and has no schema among their classes."""

# What the classes of some releases need to be loaded; none of it is called.
BESIDES = (
    "org.slf4j:slf4j-api:1.7.36",
    "org.slf4j:slf4j-nop:1.7.36",
    "com.fasterxml.jackson.core:jackson-databind:2.21.2",
    "com.fasterxml.jackson.core:jackson-core:2.21.2",
    "com.fasterxml.jackson.core:jackson-annotations:2.21",
)
CORE = ("org.scala-lang:scala-library:2.10.6", "ch.qos.reload4j:reload4j:1.2.25")
"""Only the Scala core of 0.8 needs these."""

HEAD = """\
# Which versions of which APIs the brokers of each Kafka release accept.
#
# Written by tests/kafka/releases.py, which asks the classes of each release; read by kwire/versions.py.
#
# releases: each line of releases, oldest first. 4.0 is its last patch release, and one that differs from it (4.0.0)
# stands in front of it. Then by API, and by who listens (a broker with ZooKeeper, a KRaft broker, a KRaft controller):
# the release since which it is so, and the versions. 3-12/0-12: accepts 3-12, but announces 0-12; -: none any more.
"""

Row = tuple[int, int, int]
Answers = dict[tuple[str, str, int], Row]
"""(release, listener, API key) -> lowest, highest and lowest announced version."""


def number(release: str) -> tuple[int, ...]:
    return tuple(int(one) for one in release.split("."))


def line_of(release: str) -> str:
    """``0.10.1`` of 0.10.1.1, ``3.9`` of 3.9.2."""
    parts = release.split(".")
    return ".".join(parts[: 3 if parts[0] == "0" else 2])


def jars(releases: Iterable[str], folder: Path) -> dict[str, list[Path]]:
    """The jars of each release, and what they need, by Maven."""
    wanted = [*BESIDES, *(f"org.apache.kafka:kafka-clients:{one}" for one in releases if number(one) >= (0, 9))]
    old = [one for one in releases if number(one) < (0, 9)]
    if old:
        wanted += [*CORE, *(f"org.apache.kafka:kafka_2.10:{one}" for one in old)]
    items = "".join(
        "<artifactItem><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></artifactItem>".format(
            *one.split(":")
        )
        for one in wanted
    )
    pom = folder / "pom.xml"
    pom.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>kwire</groupId><artifactId>releases</artifactId>"
        "<version>1</version><packaging>pom</packaging><build><plugins><plugin>"
        "<groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId>"
        f"<configuration><outputDirectory>{folder}</outputDirectory><artifactItems>{items}</artifactItems>"
        "</configuration></plugin></plugins></build></project>"
    )
    done = subprocess.run(
        ["mvn", "-B", "-q", "-ntp", "-f", str(pom), "dependency:copy"], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise kafka_jars.KafkaUnavailableError(f"Maven could not bring the releases: {done.stdout[-2000:]}")
    found = sorted(folder.glob("*.jar"))
    shared = [one for one in found if not one.name.startswith("kafka")]
    return {one: [jar for jar in found if jar.name.endswith(f"-{one}.jar")] + shared for one in releases}


def ask(releases: Iterable[str]) -> tuple[Answers, dict[int, str]]:
    """What the classes of the releases say, and the newest name of each API."""
    with tempfile.TemporaryDirectory(prefix="kwire-releases-") as scratch:
        folder = Path(scratch)
        found = jars(tuple(releases), folder)
        source = ROOT / "tests" / "java" / "ReleaseVersions.java"
        subprocess.run([kafka_jars.jdk_tool("javac"), "-d", scratch, str(source)], check=True, capture_output=True)
        arguments = [f"{one}={os.pathsep.join(map(str, paths))}" for one, paths in found.items()]
        command = [kafka_jars.java(), "-cp", scratch, "ReleaseVersions", *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    answers: Answers = {}
    names = {}
    for text in done.stdout.splitlines():
        release, listener, key, name, low, high, announced = text.split("\t")
        answers[release, listener, int(key)] = int(low), int(high), int(announced)
        names[int(key)] = name
    for (listener, key, name), row in BESIDE.items():
        for release in releases:
            if line_of(release) == name:
                answers[release, listener, key] = row
    return answers, names


def points(releases: Iterable[str], answers: Answers) -> Iterator[tuple[str, str]]:
    """What stands in the table, and the release that was asked for it: ``("3.9", "3.9.2")``, ``("4.0.0", "4.0.0")``."""
    lines: dict[str, list[str]] = {}
    for one in releases:
        lines.setdefault(line_of(one), []).append(one)

    def said(release: str) -> dict[tuple[str, int], Row]:
        return {(listener, key): row for (of, listener, key), row in answers.items() if of == release}

    for name, patches in lines.items():
        last = patches[-1]
        yield from ((one, one) for one in patches[:-1] if said(one) != said(last))
        yield name, last


def table(releases: Iterable[str], answers: Answers, names: dict[int, str]) -> str:
    """The text of ``schemas/releases.txt``."""
    known = list(points(releases, answers))
    out = [HEAD, "releases " + " ".join(name for name, _ in known), ""]
    for key in sorted(names):
        out.append(f"{key} {names[key]}")
        for listener in ("zookeeper", "broker", "controller"):
            before: Row | None = None
            parts = []
            for name, release in known:
                if listener == "zookeeper" and number(name) >= (4,):
                    continue  # these releases have none: it did not stop accepting anything
                row = answers.get((release, listener, key))
                if row != before:
                    parts.append(f"{name} {written(row)}")
                before = row
            if parts:
                out.append(f"  {listener:<10} {', '.join(parts)}")
    return "\n".join(out) + "\n"


def written(row: Row | None) -> str:
    if row is None:
        return "-"
    low, high, announced = row
    accepted = f"{low}-{high}" if low < high else str(low)
    return accepted if announced == low else f"{accepted}/{announced}-{high}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare the table instead of writing it")
    options = parser.parse_args()
    text = table(RELEASES, *ask(RELEASES))
    if options.check:
        same = TABLE.read_text() == text
        print(f"{TABLE.name} {'says what the releases say' if same else 'is not what the releases say'}")
        return 0 if same else 1
    TABLE.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
