"""Records captures of what is not Kafka: real servers and real clients of other protocols, on loopback.

    python tests/golden/record_foreign.py               everything
    python tests/golden/record_foreign.py redis nats    some of it

Needs root, tcpdump, Java, Node, and of Debian: redis-server, postgresql, nats-server, memcached, mosquitto,
mosquitto-clients, nghttp2-server, nghttp2-client, dnsmasq-base, bind9-dnsutils, zookeeper. Clients of Python (kazoo,
nats-py, thrift, pulsar-client) come into a virtual environment of their own in ``.cache/``, those of Node (rsocket)
into a folder.

Each is a line of ``PROTOCOLS``: how the server is started, and what a client does. They write
``foreign/NAME/NAME.pcap`` and beside it ``NAME.json`` as all golden captures have. Several frame their messages as
Kafka does, by a size of four bytes: ZooKeeper, Thrift, Pulsar, Python's ``multiprocessing``; RSocket by three, DNS by
two. Pulsar's broker is a small one of our own.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from capturing import Recording

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "foreign"
CACHE = HERE.parents[1] / ".cache" / "foreign"
HOST = "127.0.0.1"


@dataclass(frozen=True)
class Protocol:
    """``server`` gives the command that listens to a port, with a folder for its files; ``talk`` is what a client does
    with that port. ``version`` is the command that says which program it was."""

    about: str
    port: int
    server: Callable[[int, Path], list[str]]
    talk: Callable[[int, Path], None]
    version: Callable[[], list[str]]


def run(*command: str | Path, text: str = "") -> str:
    """Runs a client to its end; what it printed. Raises where it fails."""
    done = subprocess.run([*map(str, command)], input=text, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


CLIENTS = ["kazoo", "nats-py", "thrift", "pulsar-client"]


@cache
def python() -> str:
    """A Python with the clients."""
    folder = CACHE / "venv"
    if not folder.exists():
        run(sys.executable, "-m", "venv", folder)
        subprocess.run([folder / "bin" / "pip", "-q", "install", *CLIENTS], check=True)
    return str(folder / "bin" / "python")


@cache
def node() -> Path:
    """A folder with the clients of Node."""
    folder = CACHE / "node"
    if not folder.exists():
        folder.mkdir(parents=True)
        names = ["rsocket-core", "rsocket-tcp-server", "rsocket-tcp-client", "rsocket-flowable"]
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", *names], cwd=folder, check=True)
    return folder


def program(text: str, folder: Path, name: str) -> Path:
    """A file with this program."""
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


# --- what clients do --------------------------------------------------------------------------------------------------


def redis(port: int, folder: Path) -> None:
    commands = ["PING", "SET a 1", "GET a", "INCR a", "LPUSH l x y z", "LRANGE l 0 -1", "HSET h f v", "HGETALL h"]
    commands += ["SET big " + "v" * 5000, "GET big", "SUBSCRIBE_IS_NO_COMMAND", "INFO server"]
    for command in commands:
        run("redis-cli", "-p", str(port), *command.split())
    run("redis-cli", "-3", "-p", str(port), "HGETALL", "h")
    run("redis-benchmark", "-p", str(port), "-n", "40", "-c", "3", "-P", "8", "-q", "-t", "set,get,lpush")


def postgres_server(port: int, folder: Path) -> list[str]:
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    shutil.chown(folder, "postgres")
    as_user = ["runuser", "-u", "postgres", "--"]
    subprocess.run(
        [*as_user, binaries / "initdb", "-A", "trust", "-D", folder / "data"], check=True, capture_output=True
    )
    return [
        *as_user, str(binaries / "postgres"), "-D", str(folder / "data"), "-h", HOST, "-p", str(port),
        "-k", str(folder),
    ]  # fmt: skip


def postgres(port: int, folder: Path) -> None:
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    about = ["-h", HOST, "-p", str(port), "-U", "postgres"]
    rows = "select n, 'row ' || n, decode(md5(n::text), 'hex') from generate_series(1, 200) n"
    statements = ["create table t(a int, b text, c bytea)", f"insert into t {rows}", "table t", "copy t to stdout"]
    for statement in [*statements, "table pg_namespace", "select 1/0"]:
        subprocess.run([binaries / "psql", *about, "-c", statement], capture_output=True, timeout=60)
    run(binaries / "pgbench", *about, "-i", "-s", "1", "-I", "dt", "postgres")
    script = program("select a, b, c from t where a < 5;\n", folder, "script.sql")
    script.chmod(0o644)
    run(binaries / "pgbench", *about, "-n", "-c", "2", "-t", "20", "-M", "prepared", "-f", script, "postgres")


def nats(port: int, folder: Path) -> None:
    run(python(), program(
        f"""
        import asyncio, nats
        async def main():
            one = await nats.connect("nats://{HOST}:{port}")
            other = await nats.connect("nats://{HOST}:{port}")
            async def answer(message):
                await message.respond(b"pong " + message.data)
            await one.subscribe("ask", cb=answer)
            await one.subscribe("all.>")
            await one.flush()
            for n in range(40):
                await other.publish(f"all.{{n}}", bytes(range(n)) * n, headers={{"n": str(n)}} if n % 2 else None)
                await other.request("ask", b"%d" % n)
            await other.drain()
            await one.drain()
        asyncio.run(main())
        """, folder, "nats_client.py"))  # fmt: skip


def zookeeper_server(port: int, folder: Path) -> list[str]:
    config = program(f"dataDir={folder}\nclientPort={port}\nclientPortAddress={HOST}\ntickTime=2000\n"
                     "admin.enableServer=false\n", folder, "zoo.cfg")  # fmt: skip
    jars = "/usr/share/java"
    wanted = [
        "zookeeper",
        "zookeeper-jute",
        "slf4j-api",
        "slf4j-nop",
        "netty-*",
        "metrics-*",
        "snappy-java",
        "jackson-*",
    ]
    found = [str(path) for name in wanted for path in sorted(Path(jars).glob(f"{name}.jar"))]
    return ["java", "-cp", ":".join(found), "org.apache.zookeeper.server.ZooKeeperServerMain", str(config)]


def zookeeper(port: int, folder: Path) -> None:
    run(python(), program(
        f"""
        from kazoo.client import KazooClient
        clients = [KazooClient("{HOST}:{port}", timeout=4) for _ in range(2)]
        for client in clients:
            client.start()
        one, other = clients
        one.ensure_path("/brokers/ids")
        seen = []
        other.ChildrenWatch("/brokers/ids", seen.append)
        for n in range(30):
            one.create(f"/brokers/ids/{{n}}", b'{{"host":"broker","port":9092}}' * (n + 1), ephemeral=n % 2 == 0)
            other.get(f"/brokers/ids/{{n}}")
            one.set(f"/brokers/ids/{{n}}", bytes(n))
        with one.transaction() as several:
            several.create("/a", b"1")
            several.delete("/brokers/ids/1")
        other.get_children("/brokers/ids")
        for client in clients:
            client.stop()
        """, folder, "zookeeper_client.py"))  # fmt: skip


def http2(port: int, folder: Path) -> None:
    (folder / "page.html").write_text("<p>Kafka</p>" * 300)
    run("nghttp", "-v", "-n", f"http://{HOST}:{port}/page.html")
    run("nghttp", "-n", "-H", "x-header: " + "v" * 300, f"http://{HOST}:{port}/page.html", f"http://{HOST}:{port}/none")
    run("h2load", "-n", "20", "-c", "2", "-m", "5", f"http://{HOST}:{port}/page.html")


def dns(port: int, folder: Path) -> None:
    for name, kind in (("a.test", "A"), ("a.test", "AAAA"), ("none.test", "MX"), ("text.test", "TXT")):
        subprocess.run(["dig", "+tcp", f"@{HOST}", "-p", str(port), name, kind], check=True, capture_output=True)
    lines = "".join(f"+tcp +keepopen @{HOST} -p {port} host{n}.test A\n" for n in range(40))
    run("dig", "-f", program(lines, folder, "queries"))


def memcached(port: int, folder: Path) -> None:
    with socket.create_connection((HOST, port)) as text:
        for n in range(40):
            value = b"v" * (n * n)
            text.sendall(b"set k%d 0 0 %d\r\n%s\r\nget k%d\r\nmg k%d v t f\r\n" % (n, len(value), value, n, n))
            text.recv(65536)
        text.sendall(b"stats\r\n")
        text.recv(65536)
    with socket.create_connection((HOST, port)) as binary:
        for n in range(40):
            # Its binary protocol: a header of 24 bytes, then extras, key and value.
            body = bytes(8) + b"key%d" % n + b"value" * n
            size = len(body)
            head = bytes([0x80, 1, 0, 3 + len(str(n)), 8, 0, 0, 0]) + size.to_bytes(4, "big") + n.to_bytes(4, "big")
            binary.sendall(head + bytes(8) + body)
            binary.recv(65536)


def mqtt(port: int, folder: Path) -> None:
    listen = ["mosquitto_sub", "-h", HOST, "-p", str(port), "-t", "a/#", "-q", "1", "-C", "30", "-W", "20"]
    with subprocess.Popen([*listen, "-V", "5"], stdout=subprocess.DEVNULL) as subscriber:
        time.sleep(0.5)
        about = ["mosquitto_pub", "-h", HOST, "-p", str(port), "-t", "a/b", "-q", "1", "-l"]
        run(*about, text="".join(f"line {n} {'x' * n}\n" for n in range(30)))
        subscriber.wait(timeout=30)


THRIFT = """
    import sys, threading
    from thrift.protocol.TBinaryProtocol import TBinaryProtocolFactory
    from thrift.protocol.TCompactProtocol import TCompactProtocolFactory
    from thrift.Thrift import TMessageType, TType
    from thrift.transport import TSocket, TTransport
    HOST, PORT = "127.0.0.1", int(sys.argv[1])
    PROTOCOLS = (TBinaryProtocolFactory(), TCompactProtocolFactory())
    def strings(protocol, name, kind, number, values):
        protocol.writeMessageBegin(name, kind, number)
        protocol.writeStructBegin("values")
        for field, value in enumerate(values):
            protocol.writeFieldBegin("f", TType.STRING, field + 1)
            protocol.writeString(value)
            protocol.writeFieldEnd()
        protocol.writeFieldStop()
        protocol.writeStructEnd()
        protocol.writeMessageEnd()
        protocol.trans.flush()
    def read(protocol):
        name, kind, number = protocol.readMessageBegin()
        protocol.readStructBegin()
        found = []
        while True:
            _, type_, _ = protocol.readFieldBegin()
            if type_ == TType.STOP:
                break
            found.append(protocol.readString())
            protocol.readFieldEnd()
        protocol.readStructEnd()
        protocol.readMessageEnd()
        return name, number, found
"""
"""Thrift without a compiler: calls of a method with strings, in frames with a size of four bytes."""


def thrift_server(port: int, folder: Path) -> list[str]:
    more = """
    listening = TSocket.TServerSocket(HOST, PORT)
    listening.listen()
    def serve(client, factory):
        protocol = factory.getProtocol(TTransport.TFramedTransport(client))
        try:
            while True:
                name, number, found = read(protocol)
                strings(protocol, name, TMessageType.REPLY, number, [one.upper() for one in found])
        except TTransport.TTransportException:
            client.close()
    count = -1
    while True:
        client = listening.accept()
        first = client.handle.recv(1, __import__("socket").MSG_PEEK)
        if not first:
            continue
        count += 1
        threading.Thread(target=serve, args=(client, PROTOCOLS[count % 2]), daemon=True).start()
    """
    return [python(), str(program(THRIFT + more, folder, "thrift_server.py")), str(port)]


def thrift(port: int, folder: Path) -> None:
    more = """
    for factory in PROTOCOLS:
        transport = TTransport.TFramedTransport(TSocket.TSocket(HOST, PORT))
        transport.open()
        protocol = factory.getProtocol(transport)
        for n in range(40):
            strings(protocol, "ask", TMessageType.CALL, n, ["x" * n] * (n % 5))
            read(protocol)
        transport.close()
    """
    run(python(), program(THRIFT + more, folder, "thrift_client.py"), str(port))


def multiprocessing_server(port: int, folder: Path) -> list[str]:
    return [sys.executable, str(program(
        f"""
        from multiprocessing.connection import Listener
        with Listener(("{HOST}", {port}), authkey=b"not a secret") as listener:
            while True:
                try:
                    with listener.accept() as connection:
                        while True:
                            connection.send(connection.recv())
                except (EOFError, OSError):
                    pass
        """, folder, "server.py"))]  # fmt: skip


def multiprocessing(port: int, folder: Path) -> None:
    run(sys.executable, program(
        f"""
        from multiprocessing.connection import Client
        for _ in range(2):
            with Client(("{HOST}", {port}), authkey=b"not a secret") as connection:
                for n in range(40):
                    connection.send({{"n": n, "text": "x" * n, "more": [None] * n}})
                    connection.recv()
        """, folder, "client.py"))  # fmt: skip


PULSAR_SERVER = """
    import asyncio, struct, sys
    HOST, PORT = "127.0.0.1", int(sys.argv[1])
    CONNECT, CONNECTED, SUBSCRIBE, PRODUCER, SEND, RECEIPT = range(2, 8)
    MESSAGE, ACK, FLOW, UNSUBSCRIBE, SUCCESS = range(9, 14)
    CLOSE_PRODUCER, CLOSE_CONSUMER, PRODUCER_SUCCESS, PING, PONG = range(15, 20)
    PARTITIONS, PARTITIONS_ANSWER, LOOKUP, LOOKUP_ANSWER = range(21, 25)

    def varint(number):
        made = bytearray()
        while number > 127:
            made.append(number & 127 | 128)
            number >>= 7
        return bytes([*made, number])

    def message(**fields):
        # Of Protocol Buffers: f3 is the field 3.
        made = b""
        for name, value in fields.items():
            number = int(name[1:])
            if isinstance(value, int):
                made += varint(number << 3) + varint(value)
            else:
                made += varint(number << 3 | 2) + varint(len(value)) + value
        return made

    def fields(data):
        found, at = {}, 0
        def number():
            nonlocal at
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value
        while at < len(data):
            key = number()
            if key & 7 == 0:
                found[key >> 3] = number()
            else:
                size = number()
                found[key >> 3] = data[at : at + size]
                at += size
        return found

    consumers, entries = {}, {}

    def give(writer, kind, rest=b"", **said):
        command = message(f1=kind, **{f"f{kind}": message(**said)})
        sizes = struct.pack(">II", 4 + len(command) + len(rest), len(command))
        writer.write(sizes + command + rest)

    async def serve(reader, writer):
        topics = {}
        try:
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                size = int.from_bytes(frame[:4], "big")
                command, rest = fields(frame[4 : 4 + size]), frame[4 + size :]
                kind = command[1]
                said = fields(command.get(kind, b""))
                if kind == CONNECT:
                    give(writer, CONNECTED, f1=b"a small broker", f2=said.get(4, 0))
                elif kind == PING:
                    give(writer, PONG)
                elif kind == PARTITIONS:
                    give(writer, PARTITIONS_ANSWER, f1=0, f2=said[2], f3=0)
                elif kind == LOOKUP:
                    give(writer, LOOKUP_ANSWER, f1=b"pulsar://%s:%d" % (HOST.encode(), PORT), f3=1, f4=said[2], f5=1)
                elif kind == SUBSCRIBE:
                    consumers.setdefault(said[1], []).append((writer, said[4]))
                    give(writer, SUCCESS, f1=said[5])
                elif kind == PRODUCER:
                    topics[said[2]] = said[1]
                    give(writer, PRODUCER_SUCCESS, f1=said[3], f2=b"producer-%d" % said[2])
                elif kind == SEND:
                    topic = topics[said[1]]
                    entry = entries[topic] = entries.get(topic, -1) + 1
                    where = message(f1=7, f2=entry)
                    give(writer, RECEIPT, f1=said[1], f2=said[2], f3=where)
                    for other, number in consumers.get(topic, ()):
                        give(other, MESSAGE, rest, f1=number, f2=where)
                elif kind in (CLOSE_PRODUCER, CLOSE_CONSUMER, UNSUBSCRIBE):
                    give(writer, SUCCESS, f1=said[2])
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main():
        async with await asyncio.start_server(serve, HOST, PORT) as server:
            await server.serve_forever()
    asyncio.run(main())
"""
"""What a client of Pulsar needs of a broker to write and read: PulsarApi.proto says which field is
which. That of a command has the number of its kind."""


def pulsar_server(port: int, folder: Path) -> list[str]:
    return [sys.executable, str(program(PULSAR_SERVER, folder, "pulsar_server.py")), str(port)]


def pulsar(port: int, folder: Path) -> None:
    run(python(), program(
        f"""
        import pulsar
        client = pulsar.Client("pulsar://{HOST}:{port}", operation_timeout_seconds=20)
        consumer = client.subscribe("persistent://public/default/orders", "billing")
        plain = client.create_producer("persistent://public/default/orders")
        batching = client.create_producer("persistent://public/default/orders", batching_enabled=True,
                                          compression_type=pulsar.CompressionType.LZ4)
        for n in range(40):
            plain.send(b"x" * n * n, properties={{"n": str(n)}}, partition_key=str(n % 5))
        for n in range(40):
            batching.send_async(b"order %d" % n, lambda result, where: None)
        batching.flush()
        for _ in range(80):
            consumer.acknowledge(consumer.receive(10_000))
        client.close()
        """, folder, "pulsar_client.py"))  # fmt: skip


def rsocket_server(port: int, folder: Path) -> list[str]:
    return ["node", str(program(
        f"""
        const {{RSocketServer}} = require("{node()}/node_modules/rsocket-core");
        const RSocketTCPServer = require("{node()}/node_modules/rsocket-tcp-server").default;
        const {{Single, Flowable}} = require("{node()}/node_modules/rsocket-flowable");
        new RSocketServer({{
          getRequestHandler: () => ({{
            requestResponse: payload => Single.of({{data: "answer " + payload.data, metadata: payload.metadata}}),
            requestStream: payload => Flowable.just(...[1, 2, 3, 4, 5].map(n => ({{data: payload.data + n}}))),
            fireAndForget: () => {{}},
          }}),
          transport: new RSocketTCPServer({{host: "{HOST}", port: {port}}}),
        }}).start();
        """, folder, "server.js"))]  # fmt: skip


def rsocket(port: int, folder: Path) -> None:
    run("node", program(
        f"""
        const {{RSocketClient}} = require("{node()}/node_modules/rsocket-core");
        const RSocketTcpClient = require("{node()}/node_modules/rsocket-tcp-client").default;
        const client = new RSocketClient({{
          setup: {{keepAlive: 500, lifetime: 10000, dataMimeType: "text/plain", metadataMimeType: "text/plain"}},
          transport: new RSocketTcpClient({{host: "{HOST}", port: {port}}}),
        }});
        const fail = error => {{ console.error(error); process.exit(1); }};
        client.connect().then(async socket => {{
          for (let n = 0; n < 40; n++) {{
            await new Promise((good, bad) => socket.requestResponse({{data: "x".repeat(n), metadata: "m"}})
              .subscribe({{onComplete: good, onError: bad}}));
          }}
          socket.fireAndForget({{data: "forget", metadata: ""}});
          await new Promise((good, bad) => socket.requestStream({{data: "s", metadata: ""}})
            .subscribe({{onSubscribe: one => one.request(10), onComplete: good, onError: bad}}));
          setTimeout(() => process.exit(0), 1500);
        }}, fail);
        """, folder, "client.js"))  # fmt: skip


def versions(*command: str) -> Callable[[], list[str]]:
    """The command that says which program it is."""
    return lambda: list(command)


def package(name: str) -> Callable[[], list[str]]:
    """The same of a package of Python."""
    return lambda: [python(), "-c", f"import importlib.metadata as m; print('{name}', m.version('{name}'))"]


PROTOCOLS: dict[str, Protocol] = {
    "redis": Protocol(
        "RESP2 and RESP3 of redis-cli, pipelines of redis-benchmark.", 16379,
        lambda port, folder: ["redis-server", "--port", str(port), "--bind", HOST, "--save", "", "--dir", str(folder)],
        redis, versions("redis-server", "--version"),
    ),
    "postgres": Protocol(
        "psql (simple queries, COPY, an error) and pgbench (prepared statements).", 15432,
        postgres_server, postgres, versions("psql", "--version"),
    ),
    "nats": Protocol(
        "nats-py: publish with and without headers, requests and their answers.", 14222,
        lambda port, folder: ["nats-server", "-a", HOST, "-p", str(port)], nats, versions("nats-server", "--version"),
    ),
    "zookeeper": Protocol(
        "kazoo: two sessions with watches, ephemeral nodes, a transaction. Frames with a size of four bytes.", 12181,
        zookeeper_server, zookeeper, versions("dpkg-query", "-W", "zookeeper"),
    ),
    "http2": Protocol(
        "nghttp and h2load over cleartext, with prior knowledge.", 18080,
        lambda port, folder: ["nghttpd", "--no-tls", "-a", HOST, "-d", str(folder), str(port)],
        http2, versions("nghttpd", "--version"),
    ),
    "dns": Protocol(
        "dig over TCP, one query a connection and many in one. Messages with a size of two bytes.", 15353,
        lambda port, folder: ["dnsmasq", "-k", "-p", str(port), "--listen-address", HOST, "-z", "-R", "-h", "-u",
                              "root", "--address=/test/192.0.2.1",
                              "--txt-record=text.test,words", "-x", str(folder / "pid")],
        dns, versions("dnsmasq", "--version"),
    ),
    "memcached": Protocol(
        "The text protocol and the binary one, from a socket.", 21211,
        lambda port, folder: ["memcached", "-u", "root", "-l", HOST, "-p", str(port)],
        memcached, versions("memcached", "--version"),
    ),
    "mqtt": Protocol(
        "mosquitto_pub and mosquitto_sub, 3.1.1 and 5.", 11883,
        lambda port, folder: ["mosquitto", "-p", str(port)], mqtt, versions("dpkg-query", "-W", "mosquitto"),
    ),
    "thrift": Protocol(
        "Calls with the binary and the compact protocol, in frames with a size of four bytes.", 19090,
        thrift_server, thrift, package("thrift"),
    ),
    "multiprocessing": Protocol(
        "Python's multiprocessing.connection: pickles behind a size of four bytes.", 15555,
        multiprocessing_server, multiprocessing, versions(sys.executable, "--version"),
    ),
    "pulsar": Protocol(
        "pulsar-client: producers with and without batches, a consumer; the broker is a small one of our own. "
        "Frames with a size of four bytes.", 16650,
        pulsar_server, pulsar, package("pulsar-client"),
    ),
    "rsocket": Protocol(
        "rsocket-js (Node): requests with an answer, a stream, keep-alives. Frames with a size of three bytes.", 17878,
        rsocket_server, rsocket, versions("node", "--version"),
    ),
}  # fmt: skip


@contextmanager
def listening(protocol: Protocol, folder: Path) -> Iterator[None]:
    """The server, while it can be reached."""
    with (folder / "server.log").open("w+b") as log:
        command = protocol.server(protocol.port, folder)
        server = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=folder)
        try:
            for _ in range(300):
                if server.poll() is not None:
                    raise RuntimeError(f"{command[0]} ended: {Path(log.name).read_text()}")
                try:
                    socket.create_connection((HOST, protocol.port), 1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            time.sleep(0.5)
            yield
        finally:
            server.terminate()
            server.wait(timeout=30)


def record(name: str) -> None:
    protocol = PROTOCOLS[name]
    said = run(*protocol.version()).splitlines()[0].replace("\t", " ")
    target = FOLDER / name / name
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        with (
            listening(protocol, folder),
            Recording(target, [protocol.port], protocol.about, said, exact=False) as recording,
        ):
            protocol.talk(protocol.port, folder)
    print(name, recording.file.stat().st_size, "bytes:", said)


def main() -> None:
    """Records what is asked for."""
    for name in sys.argv[1:] or PROTOCOLS:
        record(name)


if __name__ == "__main__":
    main()
