"""Apache Kafka releases for the tests: fetched with Maven once, kept in a cache folder.

``install(version)`` returns the folder that holds every jar of that release. The cache is ``.cache/kafka/<version>``
in the checkout (``KWIRE_KAFKA_CACHE`` moves it). Rules:

- Maven, configured as the machine has it, decides where artifacts come from.
- A folder appears in the cache complete or not at all: jars are copied beside it and renamed into place, under a lock.
- Failures keep two cases apart, since a test run may skip for the first only: ``RegistryUnreachableError`` (the network
  or the registry is not there) and ``KafkaUnavailableError`` (no Java, no Maven, an unknown release: the set-up).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = [
    "KRAFT3",
    "NEWEST",
    "NEWEST_BROKER",
    "ZOOKEEPER",
    "KafkaUnavailableError",
    "RegistryUnreachableError",
    "compile_java",
    "install",
    "java",
    "spark_source",
]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

ZOOKEEPER = "3.9.2"
"""The last release line that runs with ZooKeeper and still stores message format 0.10.1."""
KRAFT3 = "3.9.2"
NEWEST = os.environ.get("KWIRE_KAFKA_NEWEST", "4.3.1")
"""The newest release whose artifacts are all published."""
NEWEST_BROKER = os.environ.get("KWIRE_KAFKA_NEWEST", "4.4.0")
"""The newest release whose broker is published; its tools may not be."""
TOOLS_OF = {"4.4.0": "4.3.1"}
"""Release -> the release whose command-line tools and Streams are put beside its broker, where its own are missing."""

SPARK_SOURCE_OF = {"4.3.0": "4.2.0"}
"""Release of Spark -> the release whose Kafka source is taken, where its own is not published."""

MAVEN_SECONDS = 420
JAVA_MAJOR = 17

# What Maven and Java say when nothing answers, as opposed to "there is no such artifact".
UNREACHABLE = re.compile(
    r"UnknownHost|Unknown host|Temporary failure in name resolution|Name or service not known|Connection refused"
    r"|Connection reset|Network is unreachable|No route to host|timed out|Connect(ion)?TimeoutException|PKIX path"
    r"|Could not transfer (artifact|metadata)|status code: (407|50\d)|Cannot access .* in offline mode"
)


class KafkaUnavailableError(Exception):
    """Kafka cannot be run here; the message is one line that says why and what would help."""


class RegistryUnreachableError(KafkaUnavailableError):
    """The artifacts are not in the cache and the registry does not answer."""


def java() -> str:
    """The path of a Java 17+ launcher; installs one with apt-get when root and there is none."""
    home = os.environ.get("JAVA_HOME")
    found = (
        str(Path(home) / "bin" / "java") if home and (Path(home) / "bin" / "java").exists() else shutil.which("java")
    )
    if found is None and _apt("openjdk-17-jdk-headless"):
        found = shutil.which("java")
    if found is None:
        raise KafkaUnavailableError(f"no java on this machine: install a JDK, {JAVA_MAJOR} or newer")
    return found


def jdk_tool(name: str) -> str:
    """A tool that stands beside ``java`` (``javac``, ``keytool``)."""
    beside = Path(java()).resolve().parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None and name == "javac" and _apt("openjdk-17-jdk-headless"):
        found = shutil.which(name)
    if found is None:
        raise KafkaUnavailableError(
            f"no {name} on this machine: install a JDK, {JAVA_MAJOR} or newer (not only its runtime)"
        )
    return found


def cache_folder() -> Path:
    return Path(os.environ.get("KWIRE_KAFKA_CACHE", ROOT / ".cache" / "kafka"))


def install(version: str) -> Path:
    """The folder with the jars of Kafka ``version``, fetched on first use.

    Raises ``RegistryUnreachableError`` or ``KafkaUnavailableError``.
    """
    target = cache_folder() / version
    if target.is_dir():
        return target
    java()
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f".{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.is_dir():
            return target
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{version}.") as scratch:
            jars = Path(scratch) / "jars"
            _copy_dependencies(version, jars)
            jars.rename(target)
    return target


def spark_source(version: str) -> list[Path]:
    """The jars of the Kafka source of Spark ``version``, without those that Spark has itself. Fetched on first use.

    Raises ``RegistryUnreachableError`` or ``KafkaUnavailableError``.
    """
    version = SPARK_SOURCE_OF.get(version, version)
    target = cache_folder() / f"spark-{version}"
    java()
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f".spark-{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".spark-{version}.") as scratch:
                jars = Path(scratch) / "jars"
                options = ["-f", str(HERE / "spark-source.xml"), f"-Dspark.version={version}"]
                _maven(f"the Kafka source of Spark {version}", options, jars, "spark-sql-kafka-*.jar")
                jars.rename(target)
    names = ("spark-sql-kafka-", "spark-token-provider-kafka-", "kafka-clients-", "commons-pool2-")
    return sorted(path for path in target.glob("*.jar") if path.name.startswith(names))


def compile_java(version: str) -> Path:
    """The folder with the classes of ``tests/broker/java``, compiled against Kafka ``version`` on first use.

    Sources in ``java/kafka4`` use what only Kafka 4 has.
    """
    jars = install(version)
    sources = sorted((HERE / "java").glob("*.java"))
    if int(version.split(".")[0]) >= 4:
        sources += sorted((HERE / "java" / "kafka4").glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    target = cache_folder() / f"{version}-classes-{digest}"
    if target.is_dir():
        return target
    with tempfile.TemporaryDirectory(dir=cache_folder(), prefix=f".{version}.") as scratch:
        classes = Path(scratch) / "classes"
        command = [jdk_tool("javac"), "--release", str(JAVA_MAJOR), "-nowarn", "-encoding", "UTF-8"]
        command += ["-cp", f"{jars}/*", "-d", str(classes), *map(str, sources)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise KafkaUnavailableError(f"javac failed: {done.stderr[:2000]}")
        with contextlib.suppress(OSError):  # somebody else was faster
            classes.rename(target)
    return target


def _copy_dependencies(version: str, folder: Path) -> None:
    options = ["-f", str(HERE / "pom.xml"), f"-Dkafka.version={version}"]
    if int(version.split(".")[0]) >= 4:
        options.append("-Pkafka4")
    if version in TOOLS_OF:
        options.append(f"-Dkafka.tools.version={TOOLS_OF[version]}")
    _maven(f"Kafka {version}", options, folder, "kafka_2.13-*.jar")


def _maven(what: str, options: list[str], folder: Path, wanted: str) -> None:
    """Copies the jars of a POM into a folder. One of them has a name like ``wanted``."""
    maven = shutil.which("mvn")
    if maven is None and _apt("maven"):
        maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailableError("no mvn on this machine: install Maven 3.8 or newer")
    # Not quietly: that a transfer failed is a warning, and it decides between skipping and failing.
    command = [maven, "-B", "-ntp", *options]
    command += ["dependency:copy-dependencies", f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise RegistryUnreachableError(f"Maven did not bring {what} within {MAVEN_SECONDS} s") from None
    if done.returncode == 0 and any(folder.glob(wanted)):
        return
    output = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    errors = [line.removeprefix("[ERROR]").strip() for line in output.splitlines() if line.startswith("[ERROR]")]
    reason = errors[0] if errors else f"mvn ended with {done.returncode}"
    kind = RegistryUnreachableError if UNREACHABLE.search(output) else KafkaUnavailableError
    raise kind(f"Maven could not bring {what}: {reason}")


def _apt(package: str) -> bool:
    """Install a Debian package when that is possible without asking anyone."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-q"],
        ["apt-get", "install", "-q", "-y", "--no-install-recommends", package],
    ):
        if subprocess.run(command, env=environment, capture_output=True, timeout=600).returncode != 0:
            return False
    return True
