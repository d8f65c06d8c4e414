"""Captures in an object store: a server on this machine that speaks S3 (moto), counts requests and refuses some."""

from __future__ import annotations

import contextlib
import io
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import busy_capture
import pyarrow as pa
import pytest
from packets import pcap
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import kwire.spark
from kwire import capture
from kwire.errors import CaptureError, KwireError
from kwire.spark.files import File, filesystem_of, find
from kwire.spark.options import Options
from kwire.spark.prefetch import AT_ONCE, ATTEMPTS, FIRST, PIECE, Prefetched, StoreError
from kwire.spark.stores import Stores

pytestmark = pytest.mark.wide

SECRET = "wJalrXUtnFEMIhunter2"
TOKEN = "FwoGZXhunter3"
COLUMNS = ["timestamp", "client_port", "broker_port", "api_name", "correlation_id", "size", "latency_ms", "status"]


class Store:
    """A server that speaks S3, and what it was asked."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Quiet(WSGIRequestHandler):
            def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - as its base has it
                """Says nothing."""

        self._application = application
        self.asked: list[tuple[str, str, str]] = []
        self.tokens: set[str | None] = set()
        """Of sessions."""
        self.refuse = 0
        """Of so many GET requests for objects, one is refused: try again. Not the same one twice in a row, however many
        others come in between: clients give up after three times."""
        self._refused: set[tuple[str, str, str]] = set()
        self._lock = threading.Lock()
        self._server = make_server("127.0.0.1", 0, self, threaded=True, request_handler=Quiet)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        range_ = environ.get("HTTP_RANGE", "")
        asked = environ["REQUEST_METHOD"], environ["PATH_INFO"], range_
        with self._lock:
            self.asked.append(asked)
            self.tokens.add(environ.get("HTTP_X_AMZ_SECURITY_TOKEN"))
            refused = self.refuse and range_ and len(self.asked) % self.refuse == 0 and asked not in self._refused
            (self._refused.add if refused else self._refused.discard)(asked)
        if refused:
            start_response("503 Slow Down", [("Content-Type", "application/xml")])
            return [b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"]
        return self._application(environ, start_response)

    def uri(self, path: str) -> str:
        options = f"region=us-east-1&scheme=http&endpoint_override=127.0.0.1%3A{self._server.port}"
        return f"s3://AKIDEXAMPLE:{SECRET}@{path}?{options}&allow_bucket_creation=true"

    def options(self) -> dict[str, str]:
        """What ``uri`` says, as options."""
        return {
            "s3.access_key": "AKIDEXAMPLE",
            "s3.secret_key": SECRET,
            "s3.session_token": TOKEN,
            "s3.region": "us-east-1",
            "s3.scheme": "http",
            "s3.endpoint_override": f"127.0.0.1:{self._server.port}",
        }

    def hadoop(self) -> dict[str, str]:
        """The same as Hadoop calls it."""
        return {
            "fs.s3a.access.key": "AKIDEXAMPLE",
            "fs.s3a.secret.key": SECRET,
            "fs.s3a.session.token": TOKEN,
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.endpoint": f"http://127.0.0.1:{self._server.port}",
        }

    def put(self, path: str, data: bytes) -> None:
        filesystem, key, _ = filesystem_of(self.uri(path))
        filesystem.create_dir(key.partition("/")[0])
        with filesystem.open_output_stream(key) as stream:
            stream.write(data)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    for name in ("moto", "flask", "flask_cors"):
        pytest.importorskip(name, reason="the object store of these tests, of the extra dev")
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    made = Store(DomainDispatcherApplication(create_backend_app))
    yield made
    made.close()


@pytest.fixture
def cut(store: Store) -> Iterator[list[bytes]]:
    """The capture of 64 connections in three objects, with others beside them."""
    whole = busy_capture.capture()
    count = len(whole)
    files = [pcap(whole[count * k // 3 : count * (k + 1) // 3], nano=True) for k in range(3)]
    for k, data in enumerate(files):
        store.put(f"captures/2026-11/{k}/dump.pcap", data)
    store.put("captures/2026-11/_SUCCESS", b"")
    store.put("captures/2026-11/notes.json", b"{}")
    store.asked.clear()
    yield files
    store.refuse = 0


def rows(table: pa.Table) -> Counter[str]:
    return Counter(repr(row) for row in table.select(COLUMNS).to_pylist())


def uncut() -> int:
    """The rows of the capture that was not cut."""
    return sum(one.num_rows for one in capture.read(io.BytesIO(pcap(busy_capture.capture(), nano=True)), "frames"))


def test_objects_are_found_as_files_are(store: Store, cut: list[bytes]) -> None:
    for path, names in (
        ("captures/2026-11", ["0/dump.pcap", "1/dump.pcap", "2/dump.pcap", "notes.json"]),
        ("captures/2026-11/[01]/*.pcap", ["0/dump.pcap", "1/dump.pcap"]),
        ("captures/2026-11/2/dump.pcap", ["2/dump.pcap"]),
    ):
        found = find([store.uri(path)])
        assert [one.name for one in found] == [f"s3://captures/2026-11/{name}" for name in names]
        assert [one.size for one in found if one.name.endswith("p")] == [
            len(cut[int(one.path[-11])]) for one in found if one.name.endswith("p")
        ]
        assert all(one.changed is not None for one in found)
        assert SECRET not in repr(found)


@pytest.mark.parametrize("refuse", [0, 3])
def test_reading_is_that_of_files(
    spark: SparkSession, store: Store, cut: list[bytes], tmp_path: Path, refuse: int
) -> None:
    """Also where every third request is to be made again."""
    store.refuse = refuse
    for k, data in enumerate(cut):
        (tmp_path / f"{k}.pcap").write_bytes(data)
    local = spark.read.format("kwire").load(str(tmp_path)).toArrow()
    frame = spark.read.format("kwire").load(store.uri("captures/2026-11"))
    assert rows(frame.toArrow()) == rows(local)
    assert {row.capture for row in frame.select("capture").distinct().collect()} == {
        f"s3://captures/2026-11/{k}/dump.pcap" for k in range(3)
    }
    for part_bytes in (0, None):
        across, whole = (
            kwire.spark.read(path, table="frames", part_bytes=part_bytes).toArrow()
            for path in (store.uri("captures/2026-11"), str(tmp_path))
        )
        assert rows(across) == rows(whole)
        assert across.num_rows == uncut() != local.num_rows


def test_secrets_are_in_no_plan_and_no_error(
    spark: SparkSession, store: Store, cut: list[bytes], capfd: pytest.CaptureFixture[str]
) -> None:
    store.put("broken/a.pcap", cut[0][:-7])
    uri = store.uri("broken")
    alone, across = spark.read.format("kwire").load(uri), kwire.spark.read(uri)
    shown = []
    for frame in (alone, across):
        frame.explain("extended")
        (bad,) = frame.where("status = 'bad_file'").collect()
        assert "truncated" in bad.error
        shown += [str(bad), repr(frame), frame._jdf.queryExecution().toString(), frame.schema.json()]
    for path in ("nothing/here.pcap", "captures/2026-11/*.cap"):
        with pytest.raises(PySparkException) as caught:
            spark.read.format("kwire").load(store.uri(path)).collect()
        shown.append(str(caught.value))
        with pytest.raises(CaptureError) as wrong:
            kwire.spark.read(store.uri(path))
        shown.append(f"{wrong.value} {wrong.value!r}")
    printed = capfd.readouterr()
    assert SECRET not in "".join([*shown, printed.out, printed.err])


PLACE = "s3://captures/2026-11"


@pytest.mark.parametrize(("path", "form"), [(PLACE, Store.options), (PLACE.replace("s3:", "s3a:"), Store.hadoop)])
def test_credentials_as_options(
    spark: SparkSession,
    store: Store,
    cut: list[bytes],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    path: str,
    form: Callable[[Store], dict[str, str]],
) -> None:
    """Of captures and what stands beside them, of streams and exports; they are shown nowhere."""
    store.put("beside/ids.csv", b"topic_id,name\n")
    store.put("broken/a.pcap", cut[0][:-7])
    store.tokens.clear()
    shown, given = [], form(store)
    reader = spark.read.format("kwire").options(**given, topic_ids="s3://beside/ids.csv")
    across = kwire.spark.read(path, topic_ids="s3://beside/ids.csv", **given)
    assert across.count() == uncut()
    alone = reader.load(path)
    for frame in (alone, across):
        frame.explain("extended")
        shown += [repr(frame), frame._jdf.queryExecution().toString(), frame.schema.json()]
    (bad,) = reader.load("s3://broken").where("status = 'bad_file'").collect()
    assert "truncated" in bad.error
    stream = spark.readStream.format("kwire").options(**given, idle="0s", across="true")
    stream = stream.option("stateLocation", f"s3://captures/state-{form.__name__}").load(path)
    query = stream.writeStream.format("memory").queryName("stored").trigger(availableNow=True).start()
    query.awaitTermination()
    # What is unfinished is in the state.
    assert spark.table("stored").count() > alone.count()
    assert find([f"s3://captures/state-{form.__name__}"], lambda name: True, stores=Stores.of(given))
    shown += [str(query.lastProgress), str(bad), repr(stream)]
    stream.explain("extended")
    options = {**given, "s3.allow_bucket_creation": "true"}
    assert kwire.spark.export(spark, path, f"s3://exported/{form.__name__}", options=options).rows == alone.count()
    assert any(name.endswith("_SUCCESS") for _, name, _ in store.asked)
    assert store.tokens == {TOKEN}
    with pytest.raises(CaptureError) as missing:
        kwire.spark.read("s3://captures/nothing", **given)
    shown += [str(missing.value), repr(Options.of({**given, "path": path}))]
    printed = capfd.readouterr()
    everything = "".join([*shown, printed.out, printed.err])
    assert SECRET not in everything
    assert TOKEN not in everything


def test_a_uri_goes_before_options(store: Store, cut: list[bytes]) -> None:
    wrong = Stores.of({"s3.region": "eu-west-9", "s3.access_key": "x", "s3.secret_key": "y", "s3.session_token": TOKEN})
    store.tokens.clear()
    assert len(find([store.uri("captures/2026-11/*/*.pcap")], stores=wrong)) == 3
    assert store.tokens == {None}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"s3.anonymous": "perhaps"}, "the option 's3.anonymous' cannot have this value"),
        ({"gcs.credential_token_expiration": "x"}, "the option 'gcs.credential_token_expiration' cannot have"),
        ({"s3.secret": SECRET}, "no option 's3.secret'"),
    ],
)
def test_options_that_cannot_be(options: dict[str, str], said: str) -> None:
    with pytest.raises(KwireError, match=said) as wrong:
        Options.of({**options, "path": "s3://x"})
    assert SECRET not in str(wrong.value)


def test_what_libraries_quote_is_hidden() -> None:
    stores = Stores.of({"s3.secret_key": SECRET, "s3.region": "eu-west-1"})
    assert stores.hidden(f"eu-west-1: {SECRET}") == "eu-west-1: ***"
    assert repr(stores) == "Stores()"


def test_other_stores() -> None:
    stores = Stores.of({"azure.account_key": "c2VjcmV0", "gcs.anonymous": "true", "gcs.scheme": "http"})
    for path, name, root in (
        ("abfss://box@busy_capture.dfs.core.windows.net/a/b.pcap", "abfss://", "box/a/b.pcap"),
        ("abfss://busy_capture.dfs.core.windows.net/box/a", "abfss://busy_capture.dfs.core.windows.net", "/box/a"),
        ("gs://box/a", "gs://", "box/a"),
    ):
        filesystem, below, before = filesystem_of(path, stores)
        assert (below, before) == (root, name)
        assert filesystem.type_name == ("gcs" if path.startswith("gs") else "abfs")


def test_secrets_are_no_options_of_a_table(spark: SparkSession, store: Store, cut: list[bytes]) -> None:
    given = store.options()
    every = ", ".join(f"'{name}' '{value}'" for name, value in given.items())
    with pytest.raises(PySparkException, match="is no option of a table") as refused:
        spark.sql(f"CREATE TABLE stored_captures USING kwire OPTIONS (path '{PLACE}', {every})")
    assert SECRET not in str(refused.value)
    secrets = {name: given.pop(name) for name in ("s3.secret_key", "s3.session_token")}
    public = ", ".join(f"'{name}' '{value}'" for name, value in given.items())
    spark.sql(f"CREATE TABLE stored_captures USING kwire OPTIONS (path '{PLACE}', {public})")
    try:
        beside = ", ".join(f"'{name}' '{value}'" for name, value in secrets.items())
        (found,) = spark.sql(f"SELECT count(*) FROM stored_captures WITH ({beside})").collect()
        assert found[0] > 1000
    finally:
        spark.sql("DROP TABLE stored_captures")


def test_pieces_are_fetched_while_others_are_read(store: Store) -> None:
    data = bytes(range(256)) * (3 * PIECE // 256 + 1000)
    store.put("captures/large", data)
    (file,) = find([store.uri("captures/large")])
    store.asked.clear()
    with file.open() as stream:
        assert stream.read(4) == data[:4]
    assert [range_ for _, _, range_ in store.asked if range_] == [f"bytes=0-{FIRST - 1}"]
    store.asked.clear()
    with file.open() as stream:
        assert b"".join(iter(lambda: stream.read(1_000_000), b"")) == data
    asked = sorted(int(range_[6:].partition("-")[0]) for _, _, range_ in store.asked if range_)
    assert asked == [0, *range(FIRST, len(data), PIECE)]


class Slow:
    """A file whose requests are answered when they are let."""

    def __init__(self, data: bytes, broken: int | None = None) -> None:
        self._data, self._broken = data, broken
        self.asked: list[tuple[int, int]] = []
        self.let = threading.Event()
        self.closed = False

    def size(self) -> int:
        return len(self._data)

    def read_at(self, count: int, begin: int) -> bytes:
        self.asked.append((begin, count))
        if begin:
            self.let.wait(10)
        if self._broken is not None and begin >= self._broken:
            raise OSError("no more of it")
        return self._data[begin : begin + count]

    def close(self) -> None:
        self.closed = True


def test_no_more_is_out_than_is_said() -> None:
    file = Slow(bytes(6 * PIECE))
    with Prefetched(file) as stream:
        assert len(stream.read(PIECE) or b"") == FIRST
        assert len(file.asked) == 1
        file.let.set()
        assert len(stream.read(5) or b"") == 5
        begins = [FIRST + k * PIECE for k in range(1 + AT_ONCE)]
    assert sorted(begin for begin, _ in file.asked)[1:] == begins[: len(file.asked) - 1]
    assert 1 < len(file.asked) <= 2 + AT_ONCE
    assert file.closed


def test_what_fails_fails_where_it_is_read() -> None:
    file = Slow(bytes(4 * PIECE), broken=FIRST + PIECE)
    file.let.set()
    stream = Prefetched(file)
    found = 0
    with contextlib.suppress(OSError):
        while more := stream.read(PIECE):
            found += len(more)
    assert found == FIRST + PIECE
    stream.close()
    shorter = Slow(bytes(FIRST + 10))
    shorter.let.set()
    stream = Prefetched(shorter)
    assert stream.read(FIRST)
    shorter._data = bytes(FIRST + 3)
    with pytest.raises(OSError, match=f"has become shorter: 3 of 10 bytes from byte {FIRST} on"):
        stream.read(10)
    stream.close()


class Moody(Slow):
    """A file whose first requests fail."""

    def __init__(self, data: bytes, errors: list[OSError]) -> None:
        super().__init__(data)
        self._errors = errors

    def read_at(self, count: int, begin: int) -> bytes:
        found = super().read_at(count, begin)
        if self._errors:
            raise self._errors.pop(0)
        return found


def test_a_piece_is_asked_for_again_if_an_answer_was_cut_off() -> None:
    cut = [OSError("the answer ended early")] * (ATTEMPTS - 1)
    file = Moody(b"0123456789", cut)
    with Prefetched(file) as stream:
        assert stream.read(10) == b"0123456789"
    assert len(file.asked) == ATTEMPTS
    for errors in (
        [OSError("the answer ended early")] * ATTEMPTS,
        [PermissionError("no")],
        [FileNotFoundError("gone")],
    ):
        count, file = len(errors), Moody(b"0123456789", errors)
        with Prefetched(file) as stream, pytest.raises(StoreError):
            stream.read(10)
        assert len(file.asked) == count


def test_a_split_is_read_from_where_it_begins(store: Store) -> None:
    from kwire.capture.splits import Split

    store.put("captures/split", bytes(range(256)) * 1000)
    (found,) = find([store.uri("captures/split")])
    file = File(found.filesystem, found.path, found.name, found.size, True, split=Split(1000, None, {}))
    with file.open() as stream:
        assert stream.read(4) == bytes([232, 233, 234, 235])
