"""Real Kafka clusters on loopback, for tests and for the recording scripts.

    with Cluster(mode="kraft", listeners={"CLIENT": Listener()}) as cluster:
        cluster.bootstrap("CLIENT")        # "127.0.0.1:21034"

A cluster is one JVM per node (plus one for ZooKeeper), with its own data folder and ports, so that several run at a
time. Strategy and rules:

- Every node has an ``INTERNAL`` plaintext listener for the brokers among themselves and for set-up; KRaft nodes that
  are controllers have ``CONTROLLER``. What clients use are further listeners, each with its own security.
- A cluster whose inter-broker protocol is older than 0.10.2 (``legacy``) knows no listener names, only security
  protocols: there each protocol exists once, and INTERNAL becomes SASL_PLAINTEXT when clients have PLAINTEXT.
- Ports are taken below the range that the kernel hands out to outgoing connections, so that no client can sit on one
  between the choice and the bind; when a node still finds its port taken, the whole cluster starts again on others.
- Start-up is tuned for seconds, not for load: small heap, first-tier compiler only, one partition in internal topics.
- A cluster never outlives its owner: ``stop`` runs on every way out of ``with`` and at interpreter exit, and where
  the kernel can do it (``setpriv --pdeathsig``) a node dies with the process that started it.
- The tail of a node's log is part of the error when it does not come up.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import kafka_jars

__all__ = ["PASSWORD", "USER", "BrokerError", "Cluster", "Listener", "Node", "Tls", "free_port"]

USER = "kwire"
PASSWORD = "kwire-secret"
"""The one account of every SASL listener (a test credential of brokers that live on loopback for seconds)."""

HOST = "127.0.0.1"
PORTS = range(20000, 32000)
START_SECONDS = 60.0
STOP_SECONDS = 20.0
JVM = [
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Xss512k",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=false",
    # Kafka 4 logs through slf4j-simple, Kafka 3 through reload4j.
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    # What an authorizer denies.
    "-Dorg.slf4j.simpleLogger.log.kafka.authorizer.logger=info",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
]
LOG4J = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c %m%n
"""

# The entry points of the tools, newest place first: several moved between packages from release to release.
TOOLS: dict[str, tuple[str, ...]] = {
    "acls": ("org.apache.kafka.tools.AclCommand", "kafka.admin.AclCommand"),
    "configs": ("kafka.admin.ConfigCommand",),
    "console-consumer": ("org.apache.kafka.tools.consumer.ConsoleConsumer",),
    "console-producer": ("org.apache.kafka.tools.ConsoleProducer", "kafka.tools.ConsoleProducer"),
    "console-share-consumer": ("org.apache.kafka.tools.consumer.ConsoleShareConsumer",),
    "consumer-groups": (
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        "kafka.admin.ConsumerGroupCommand",
    ),
    "consumer-perf": ("org.apache.kafka.tools.ConsumerPerformance",),
    "dump-log": ("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments"),
    "producer-perf": ("org.apache.kafka.tools.ProducerPerformance",),
    "storage": ("kafka.tools.StorageTool",),
}


class BrokerError(Exception):
    """A node did not start or stop; the message ends with the tail of its log."""


@dataclass(frozen=True, slots=True)
class Listener:
    """One listener of every broker: how clients reach it.

    ``port`` is wished for on the first broker (next one on the second), taken when it is free.
    """

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanisms: tuple[str, ...] = ("PLAIN",)
    host: str = HOST
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Tls:
    """What a TLS listener presents, and what its clients need: ``ca`` is the certificate in PEM."""

    keystore: Path
    truststore: Path
    ca: Path
    password: str = PASSWORD


@dataclass(slots=True)
class Node:
    """One JVM: a broker, a controller, both, or ZooKeeper."""

    node_id: int
    role: str
    folder: Path
    ports: dict[str, int] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / "node.log"

    def tail(self, lines: int = 25) -> str:
        if not self.log.exists():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


class Cluster:
    """A running Kafka cluster; a context manager.

    ``mode``       "kraft" or "zookeeper".
    ``version``    a Kafka release; by default the newest for KRaft, the last with ZooKeeper otherwise.
    ``brokers``    how many brokers; ``controllers`` how many of them are KRaft controllers as well (a voter set).
    ``listeners``  name -> Listener, besides INTERNAL.
    ``config``     further broker properties; they win over the fixture's.
    ``scram``      make the account known for SCRAM (implied by a listener that offers it).
    ``dynamic``    KRaft: dynamic voters (kraft.version 1) instead of a fixed voter set.
    ``classpath``  further folders or jars for the brokers (plugins of the tests).
    ``features``   KRaft: feature levels to format with, e.g. {"transaction.version": 2}.
    ``log_dirs``   how many log folders each node has.
    ``spares``     KRaft, dynamic: so many further controllers that are not voters yet.
    """

    def __init__(
        self,
        *,
        mode: Literal["kraft", "zookeeper"] = "kraft",
        version: str | None = None,
        brokers: int = 1,
        controllers: int = 1,
        listeners: Mapping[str, Listener] | None = None,
        config: Mapping[str, object] | None = None,
        scram: bool = False,
        dynamic: bool = False,
        classpath: Sequence[Path] = (),
        features: Mapping[str, int] | None = None,
        spares: int = 0,
        log_dirs: int = 1,
    ) -> None:
        self.mode = mode
        self.version = version or (kafka_jars.NEWEST if mode == "kraft" else kafka_jars.ZOOKEEPER)
        self.listeners = dict(listeners or {})
        self.config = {key: str(value) for key, value in (config or {}).items()}
        self.dynamic = dynamic
        self.log_dirs = log_dirs
        self.features = dict(features or {})
        self.scram = scram or any(
            name.startswith("SCRAM") for spec in self.listeners.values() for name in self._mechanisms(spec)
        )
        self.legacy = self.config.get("inter.broker.protocol.version", "3.0").startswith(
            ("0.8", "0.9", "0.10.0", "0.10.1")
        )
        self.jars = kafka_jars.install(self.version)
        self.classpath = os.pathsep.join([str(self.jars / "*"), *(str(path) for path in classpath)])
        self.cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if self.cluster_id.startswith("-"):
            self.cluster_id = "k" + self.cluster_id[1:]
        self.folder = Path(tempfile.mkdtemp(prefix="kwire-kafka-"))
        self.tls: Tls | None = None
        self.zookeeper: Node | None = None
        self.nodes: list[Node] = []
        self._counts = (brokers, controllers, spares)
        self._directory_ids: dict[int, str] = {}
        self._stopped = False

    # -- life ---------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        atexit.register(self.stop)
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start every node and wait until each broker knows all the others."""
        for attempt in range(3):
            self.prepare()
            try:
                self.launch()
                return
            except BrokerError as error:
                self.halt()
                if attempt == 2 or "BindException" not in str(error):
                    raise

    def prepare(self) -> None:
        """Choose ports and write all that the nodes need, without starting one: ``start`` is this and ``launch``.

        Recordings use the two halves, since a sniffer wants to know the ports before the first connection is made.
        """
        if self.tls is None and any("SSL" in spec.protocol for spec in self.listeners.values()):
            self.tls = make_tls(self.folder)
        (self.folder / "log4j.properties").write_text(LOG4J)
        self._plan()
        if self.mode == "kraft":
            self._format_all()

    def launch(self) -> None:
        """Start every node of a prepared cluster and wait until each broker knows all the others."""
        if self.zookeeper is not None:
            self._launch(self.zookeeper)
            self._wait_for_port(self.zookeeper, self.zookeeper.ports["ZOOKEEPER"])
            if self.scram:
                self._zookeeper_scram(self.zookeeper)
        for node in self.nodes:
            self._launch(node)
        self.wait_until_ready()

    def halt(self) -> None:
        """Stop every node; data, configuration and ports stay, and ``launch`` starts them again."""
        self._terminate(self.nodes)
        if self.zookeeper is not None:
            self._terminate([self.zookeeper])

    def stop(self) -> None:
        """Stop every node and remove the data; safe to call more than once."""
        if self._stopped:
            return
        self._stopped = True
        self.halt()
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.stop)

    def stop_node(self, node: Node) -> None:
        """Stop one node cleanly and wait for its end; ``start_node`` brings it back on the same ports and data."""
        self._terminate([node])

    def start_node(self, node: Node) -> None:
        self._launch(node)
        self._wait_for_port(node, next(iter(node.ports.values())))

    # -- addresses ----------------------------------------------------------------------------------------------

    @property
    def internal_protocol(self) -> str:
        taken = self.legacy and any(spec.protocol == "PLAINTEXT" for spec in self.listeners.values())
        return "SASL_PLAINTEXT" if taken else "PLAINTEXT"

    @property
    def plaintext(self) -> str:
        """The name of a listener that needs neither TLS nor SASL."""
        if self.internal_protocol == "PLAINTEXT":
            return "INTERNAL"
        return next(name for name, spec in self.listeners.items() if spec.protocol == "PLAINTEXT")

    @property
    def brokers(self) -> list[Node]:
        return [node for node in self.nodes if "broker" in node.role]

    @property
    def controllers(self) -> list[Node]:
        return [node for node in self.nodes if "controller" in node.role]

    def address(self, listener: str, node: Node) -> str:
        host = self.listeners[listener].host if listener in self.listeners else HOST
        return f"[{host}]:{node.ports[listener]}" if ":" in host else f"{host}:{node.ports[listener]}"

    def bootstrap(self, listener: str = "INTERNAL") -> str:
        """The comma-separated addresses of one listener."""
        return ",".join(self.address(listener, node) for node in self.nodes if listener in node.ports)

    def ports(self, *listeners: str) -> list[int]:
        """The ports of the named listeners (of all of them when none is named), every node."""
        return sorted(
            port for node in self.nodes for name, port in node.ports.items() if not listeners or name in listeners
        )

    # -- tools --------------------------------------------------------------------------------------------------

    def java(self, *arguments: str, heap: str = "-Xmx256m") -> list[str]:
        """A command line for a JVM with Kafka's jars on its class path."""
        logging = f"-Dlog4j.configuration=file:{self.folder / 'log4j.properties'}"
        return [kafka_jars.java(), heap, *JVM, logging, "-cp", self.classpath, *arguments]

    def tool(
        self, name: str, *arguments: str, stdin: str | bytes | None = None, check: bool = True, seconds: float = 60
    ) -> str:
        """Run one of Kafka's own tools and return what it printed."""
        return run_tool(self, name, arguments, stdin, check, seconds)

    # -- inside -------------------------------------------------------------------------------------------------

    @staticmethod
    def _mechanisms(spec: Listener) -> tuple[str, ...]:
        return spec.mechanisms if spec.protocol.startswith("SASL") else ()

    def _plan(self) -> None:
        """Choose ports and write the configuration of every node."""
        brokers, controllers, spares = self._counts
        taken: set[int] = set()
        self.nodes, self.zookeeper = [], None
        shutil.rmtree(self.folder / "nodes", ignore_errors=True)
        if self.mode == "zookeeper":
            self.zookeeper = Node(0, "zookeeper", self._node_folder("zookeeper"), {"ZOOKEEPER": free_port(taken)})
        for index in range(brokers + spares):
            node_id = index + 1
            role = "broker" if index < brokers else "controller"
            if self.mode == "kraft" and index < controllers:
                role = "broker,controller"
            node = Node(node_id, role, self._node_folder(f"node-{node_id}"))
            if "broker" in role:
                node.ports["INTERNAL"] = free_port(taken)
                for name, spec in self.listeners.items():
                    wish = None if spec.port is None else spec.port + index
                    node.ports[name] = free_port(taken, wish=wish, host=spec.host)
            if "controller" in role:
                node.ports["CONTROLLER"] = free_port(taken)
            self.nodes.append(node)
        for node in self.nodes:
            lines = "".join(f"{key}={value}\n" for key, value in self._properties(node).items())
            (node.folder / "server.properties").write_text(lines)

    def _node_folder(self, name: str) -> Path:
        folder = self.folder / "nodes" / name
        folder.mkdir(parents=True)
        return folder

    def _properties(self, node: Node) -> dict[str, str]:
        many = len(self.brokers) > 1
        properties = {
            "log.dirs": ",".join(str(node.folder / ("data" if n == 0 else f"data-{n}")) for n in range(self.log_dirs)),
            "num.network.threads": "1",
            "num.io.threads": "3",
            "background.threads": "2",
            "num.recovery.threads.per.data.dir": "1",
            "log.cleaner.dedupe.buffer.size": "2097152",
            "log.cleaner.threads": "1",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            "controlled.shutdown.enable": str(many).lower(),
            "num.partitions": "1",
            "default.replication.factor": "1",
            "auto.create.topics.enable": "true",
            "delete.topic.enable": "true",
        }
        protocols = {"INTERNAL": self.internal_protocol, "CONTROLLER": "PLAINTEXT"}
        protocols |= {name: spec.protocol for name, spec in self.listeners.items()}
        wire = protocols if self.legacy else {name: name for name in protocols}
        addresses = {name: f"{wire[name]}://{self.address(name, node)}" for name in node.ports}
        properties["listeners"] = ",".join(addresses.values())
        if "broker" in node.role:
            advertised = [address for name, address in addresses.items() if name != "CONTROLLER"]
            properties["advertised.listeners"] = ",".join(advertised)
        if self.legacy:
            properties["security.inter.broker.protocol"] = self.internal_protocol
        else:
            used = {*node.ports, "INTERNAL", *(["CONTROLLER"] if self.mode == "kraft" else [])}
            mapped = [f"{name}:{protocol}" for name, protocol in protocols.items() if name in used]
            properties["listener.security.protocol.map"] = ",".join(mapped)
            properties["inter.broker.listener.name"] = "INTERNAL"
        if self.internal_protocol == "SASL_PLAINTEXT":
            properties["sasl.mechanism.inter.broker.protocol"] = "PLAIN"
            properties |= self._security("SASL_PLAINTEXT", Listener("SASL_PLAINTEXT"))
        if self.mode == "zookeeper":
            assert self.zookeeper is not None
            properties["broker.id"] = str(node.node_id)
            properties["zookeeper.connect"] = f"{HOST}:{self.zookeeper.ports['ZOOKEEPER']}"
            properties["zookeeper.connection.timeout.ms"] = "20000"
        else:
            properties |= self._kraft_properties(node)
        if "broker" in node.role:
            for name, spec in self.listeners.items():
                properties |= self._security(wire[name], spec)
        return properties | self.config

    def _kraft_properties(self, node: Node) -> dict[str, str]:
        properties = {
            "node.id": str(node.node_id),
            "process.roles": node.role,
            "controller.listener.names": "CONTROLLER",
            "initial.broker.registration.timeout.ms": "20000",
            "broker.heartbeat.interval.ms": "500",
            "controller.quorum.election.timeout.ms": "500",
            "controller.quorum.election.backoff.max.ms": "200",
        }
        voters = [peer for peer in self.controllers if "broker" in peer.role]
        if self.dynamic:
            properties["controller.quorum.bootstrap.servers"] = ",".join(
                self.address("CONTROLLER", peer) for peer in voters
            )
        else:
            properties["controller.quorum.voters"] = ",".join(
                f"{peer.node_id}@{self.address('CONTROLLER', peer)}" for peer in voters
            )
        major = int(self.version.split(".")[0])
        # Members of these groups learn their assignment from a heartbeat, every five seconds by default.
        for kind in ("consumer", "share", "streams") if major >= 4 else ("consumer",):
            properties[f"group.{kind}.min.heartbeat.interval.ms"] = "100"
            properties[f"group.{kind}.heartbeat.interval.ms"] = "500"
        if major >= 4:
            properties["share.coordinator.state.topic.num.partitions"] = "1"
            properties["share.coordinator.state.topic.replication.factor"] = "1"
            properties["share.coordinator.state.topic.min.isr"] = "1"
        return properties

    def _security(self, name: str, spec: Listener) -> dict[str, str]:
        prefix = f"listener.name.{name.lower()}."
        properties: dict[str, str] = {}
        mechanisms = self._mechanisms(spec)
        if mechanisms:
            properties[prefix + "sasl.enabled.mechanisms"] = ",".join(mechanisms)
            for mechanism in mechanisms:
                if mechanism in _JAAS:  # that of GSSAPI depends on a KDC, and is given as ``config``
                    properties[f"{prefix}{mechanism.lower()}.sasl.jaas.config"] = _JAAS[mechanism]
        if "SSL" in spec.protocol:
            assert self.tls is not None
            properties[prefix + "ssl.keystore.location"] = str(self.tls.keystore)
            properties[prefix + "ssl.keystore.password"] = self.tls.password
            properties[prefix + "ssl.key.password"] = self.tls.password
            properties[prefix + "ssl.truststore.location"] = str(self.tls.truststore)
            properties[prefix + "ssl.truststore.password"] = self.tls.password
        return properties

    def _launch(self, node: Node) -> None:
        if node.role == "zookeeper":
            port = str(node.ports["ZOOKEEPER"])
            settings = f"dataDir={node.folder / 'data'}\nclientPort={port}\nclientPortAddress={HOST}\n"
            settings += "admin.enableServer=false\nmaxClientCnxns=0\ntickTime=1000\n"
            (node.folder / "zookeeper.properties").write_text(settings)
            entry = ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(node.folder / "zookeeper.properties")]
            command = self.java("-Dzookeeper.4lw.commands.whitelist=*", *entry, heap="-Xmx96m")
        else:
            command = self.java("kafka.Kafka", str(node.folder / "server.properties"), heap="-Xmx320m")
        setpriv = shutil.which("setpriv")
        if setpriv is not None:
            command = [setpriv, "--pdeathsig", "KILL", "--", *command]
        with node.log.open("ab") as log:
            node.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=node.folder, start_new_session=True
            )

    def _format_all(self) -> None:
        """Give every KRaft node its metadata folder; the tool runs once per node, all of them at the same time."""
        arguments: list[str] = []
        if self.scram:
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                arguments += ["--add-scram", f"{mechanism}=[name={USER},password={PASSWORD}]"]
        for feature, level in self.features.items():
            arguments += ["--feature", f"{feature}={level}"]
        voters = [node for node in self.controllers if "broker" in node.role]
        for node in voters:
            self._directory_ids.setdefault(node.node_id, urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="))
            if self._directory_ids[node.node_id].startswith("-"):
                self._directory_ids[node.node_id] = "k" + self._directory_ids[node.node_id][1:]
        running = []
        for node in self.nodes:
            own = list(arguments)
            if self.dynamic:
                if node in voters:
                    initial = ",".join(
                        f"{peer.node_id}@{self.address('CONTROLLER', peer)}:{self._directory_ids[peer.node_id]}"
                        for peer in voters
                    )
                    own += ["--initial-controllers", initial]
                else:
                    own += ["--no-initial-controllers"]
            command = self.java("kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c")
            command += [str(node.folder / "server.properties"), *own]
            with node.log.open("ab") as log:
                running.append((node, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)))
        for node, process in running:
            try:
                status = process.wait(timeout=START_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                status = -1
            if status != 0:
                raise BrokerError(f"node {node.node_id} could not be formatted:\n{node.tail()}")

    def _zookeeper_scram(self, node: Node) -> None:
        mechanisms = ",".join(f"{name}=[password={PASSWORD}]" for name in ("SCRAM-SHA-256", "SCRAM-SHA-512"))
        arguments = ["--zookeeper", f"{HOST}:{node.ports['ZOOKEEPER']}", "--alter", "--add-config", mechanisms]
        self.tool("configs", *arguments, "--entity-type", "users", "--entity-name", USER)

    def _wait_for_port(self, node: Node, port: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            self._check_alive(node)
            with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
                return
            if time.monotonic() > deadline:
                raise BrokerError(f"{node.role} {node.node_id} does not listen on {port}:\n{node.tail()}")
            time.sleep(0.05)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        for node in self.brokers:
            while known_brokers(node.ports[self.plaintext]) < len(self.brokers):
                for each in [*self.nodes, *([self.zookeeper] if self.zookeeper else [])]:
                    self._check_alive(each)
                if time.monotonic() > deadline:
                    raise BrokerError(f"broker {node.node_id} is not ready after {START_SECONDS:.0f} s:\n{node.tail()}")
                time.sleep(0.1)

    def _check_alive(self, node: Node) -> None:
        if node.process is not None and node.process.poll() is not None:
            code = node.process.returncode
            raise BrokerError(f"{node.role} {node.node_id} ended with {code} while starting:\n{node.tail()}")

    def _terminate(self, nodes: Sequence[Node]) -> None:
        running = [node for node in nodes if node.process is not None]
        for node in running:
            assert node.process is not None
            with contextlib.suppress(ProcessLookupError):
                node.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for node in running:
            assert node.process is not None
            try:
                node.process.wait(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                node.process.kill()
                node.process.wait()
            node.process = None


_LOGIN = "org.apache.kafka.common.security"
_JAAS = {
    "PLAIN": f'{_LOGIN}.plain.PlainLoginModule required username="{USER}" password="{PASSWORD}" '
    f'user_{USER}="{PASSWORD}";',
    "SCRAM-SHA-256": f'{_LOGIN}.scram.ScramLoginModule required username="{USER}" password="{PASSWORD}";',
    "SCRAM-SHA-512": f'{_LOGIN}.scram.ScramLoginModule required username="{USER}" password="{PASSWORD}";',
    "OAUTHBEARER": f'{_LOGIN}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{USER}";',
}


def run_tool(
    cluster: Cluster,
    name: str,
    arguments: Sequence[str],
    stdin: str | bytes | None = None,
    check: bool = True,
    seconds: float = 60,
) -> str:
    """Run one of Kafka's command-line tools with the jars of ``cluster``; returns standard output and error."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    for entry in TOOLS[name]:
        command = cluster.java(entry, *arguments)
        done = subprocess.run(command, input=data if data is not None else b"", capture_output=True, timeout=seconds)
        output = (done.stdout + done.stderr).decode(errors="replace")
        if "Could not find or load main class" in output and entry != TOOLS[name][-1]:
            continue
        if check and done.returncode != 0:
            raise BrokerError(f"{name} ended with {done.returncode}:\n{output[-2000:]}")
        return output
    raise BrokerError(f"no tool {name} in Kafka {cluster.version}")


def free_port(taken: set[int], *, wish: int | None = None, host: str = HOST) -> int:
    """A port that nobody listens on, below the kernel's ephemeral range; ``wish`` first when it is given."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    candidates = [wish] if wish is not None else []
    candidates += random.sample(PORTS, 200)
    for port in candidates:
        if port in taken:
            continue
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
        taken.add(port)
        return port
    raise BrokerError("no free port on loopback")


def known_brokers(port: int) -> int:
    """How many brokers the one behind ``port`` knows, asked with a Metadata v1 request for no topic; 0: no answer."""
    body = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", 0)
    try:
        with socket.create_connection((HOST, port), timeout=2) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            head = _receive(connection, 12)
            return int(struct.unpack(">iii", head)[2])
    except (OSError, struct.error):
        return 0


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            break
        data += more
    return data


def make_tls(folder: Path) -> Tls:
    """A self-signed certificate for loopback, as the stores of a broker and as PEM for clients."""
    keystore, truststore, certificate = folder / "keystore.p12", folder / "truststore.p12", folder / "ca.pem"
    keytool = kafka_jars.jdk_tool("keytool")
    common = ["-storetype", "PKCS12", "-storepass", PASSWORD, "-alias", "kwire"]
    subject = ["-dname", "CN=localhost", "-ext", "SAN=DNS:localhost,IP:127.0.0.1,IP:0:0:0:0:0:0:0:1"]
    key = ["-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-validity", "3650", "-keypass", PASSWORD]
    steps = [
        [keytool, *key, *subject, *common, "-keystore", str(keystore)],
        [keytool, "-exportcert", "-rfc", "-file", str(certificate), *common, "-keystore", str(keystore)],
        [keytool, "-importcert", "-noprompt", "-file", str(certificate), *common, "-keystore", str(truststore)],
    ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True)
        if done.returncode != 0:
            raise BrokerError(f"keytool failed: {done.stdout}{done.stderr}")
    return Tls(keystore, truststore, certificate)
