"""The registry of tables, several tables in one pass, and the choice of columns.

What each table holds is tested where its rows come from (captures, segments, events, telemetry), what the documents say
of them in ``house/test_docs_tables.py``.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from made_captures import exchange
from packets import (
    Connection,
    metadata,
    metadata_answer,
    pcap,
    produce,
    produce_answer,
    sized,
)
from valid_batches import valid

from kwire import capture, log, records, tables
from kwire.capture.frames import Frames
from kwire.errors import DecodeError
from kwire.kernels.engine import MACHINE, PYTHON, using
from kwire.kernels.layouts import Status
from kwire.records import columnar, verdicts
from kwire.tables.definition import Table
from kwire.tables.partitions import PartitionStatus
from kwire.tables.reading import of_capture
from kwire.tables.records import RecordStatus
from kwire.tables.topics import Topics

GOLDEN = Path(__file__).parents[2] / "golden"
EVENTS = GOLDEN / "kafka-4.3-kraft-events" / "events.pcap"
TELEMETRY = GOLDEN / "kafka-4-telemetry" / "refusals.pcap"
ODD = GOLDEN / "kafka-4.3-kraft-kafka-python" / "unpinned.pcap"
SEGMENT = GOLDEN / "segments" / "4.3-kraft" / "__consumer_offsets-0"

OF_CAPTURES = (*tables.names("capture"), *tables.names("events"))


def damaged() -> bytes:
    """A capture with a wrong checksum, bytes that are no record, and requests that end within their records."""
    good = records.encode([records.Record(b"k", b"v"), records.Record(b"l", b"other")])
    wrong = good.replace(b"other", b"wrong")
    connection = Connection().open()
    for number, body in enumerate((good, wrong, good + wrong[:20] + bytes(30))):
        connection.send(produce(number, 1, body))
    connection.send(metadata(3)).answer(metadata_answer(3)).send(produce(4, 1, good)[:-20])
    connection.send_raw(sized(produce(5, 1, good))[:-20])
    return pcap(connection.packets)


CAPTURES: dict[str, Callable[[], bytes]] = {
    "events": EVENTS.read_bytes,
    "telemetry": TELEMETRY.read_bytes,
    "many APIs": ODD.read_bytes,
    "damaged": damaged,
}


def read(data: bytes, table: str, **options: Any) -> pa.Table:
    """A table of a capture, as far as it can be read."""
    schema = of_capture(table).chosen(options.get("columns"))
    return pa.Table.from_batches(list(valid(capture.read(io.BytesIO(data), table, name="x", **options))), schema)


def same(one: Any, other: Any) -> bool:
    """Whether two columns or tables have the same rows; NaN is NaN."""
    return str(one.to_pylist()) == str(other.to_pylist())


# The registry


def test_every_table_is_found_under_its_name() -> None:
    for kind in ("capture", "events", "log"):
        for name in tables.names(kind):
            assert tables.table(name, kind).name == name
    assert len(tables.every()) == len(OF_CAPTURES) + len(tables.names("log")) + 1


def test_an_unknown_table_is_a_value_error_that_names_those_there_are() -> None:
    with pytest.raises(
        ValueError,
        match="no table 'packets': there are frames, messages, partitions, records, batches, client_metrics, calls",
    ):
        tables.table("packets")
    with pytest.raises(ValueError, match=r"no table 'packets': there are frames, .*, hono"):
        capture.read(io.BytesIO(), "packets")


@pytest.mark.parametrize("table", tables.every(), ids=lambda table: f"{table.file} {table.name}")
def test_schemas_use_only_types_that_spark_takes(table: Table) -> None:
    def allowed(kind: pa.DataType) -> bool:
        if pa.types.is_map(kind):
            return allowed(kind.key_type) and allowed(kind.item_type)
        if pa.types.is_list(kind):
            return allowed(kind.value_type)
        if pa.types.is_struct(kind):
            return all(allowed(kind.field(k).type) for k in range(kind.num_fields))
        plain = (pa.string(), pa.binary(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float64())
        return kind in plain or kind == pa.timestamp("us", tz="UTC")

    assert all(allowed(field.type) for field in table.schema)


def test_words_of_status_are_the_names_of_what_the_rows_are_made_from() -> None:
    for name in ("frames", "messages"):
        assert list(tables.table(name).statuses) == [one.name.lower() for one in Status]
    assert list(tables.table("records").statuses) == [one.name.lower() for one in RecordStatus]
    assert list(tables.table("partitions").statuses) == [one.name.lower() for one in PartitionStatus]
    for name in ("records", "batches"):
        assert list(tables.table(name, "log").statuses) == [
            verdicts.OK,
            verdicts.CORRUPT,
            verdicts.MALFORMED,
            verdicts.TOO_LARGE,
        ]
    for table in tables.every():
        assert bool(table.statuses) == ("status" in table.schema.names)
    shared = (RecordStatus.OK, RecordStatus.CORRUPT, RecordStatus.MALFORMED, RecordStatus.TOO_LARGE)
    of_records = [one.name.lower() for one in shared]
    assert of_records == [verdicts.OK, verdicts.CORRUPT, verdicts.MALFORMED, verdicts.TOO_LARGE]


# Several tables in one pass


class Counted(io.BytesIO):
    """Bytes, and how many of them were read."""

    taken = 0

    def read(self, size: int | None = -1, /) -> bytes:
        part = super().read(size)
        self.taken += len(part)
        return part


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("window", [None, 5000])
def test_tables_of_one_pass_are_those_of_a_pass_each(name: str, window: int | None) -> None:
    source = Counted(CAPTURES[name]())
    found: dict[str, list[pa.RecordBatch]] = {one: [] for one in OF_CAPTURES}
    for table, batch in capture.read(source, tables=OF_CAPTURES, name="x", window=window):
        found[table].append(batch)
    assert source.taken == len(source.getvalue())
    for table, batches in found.items():
        together = pa.Table.from_batches(batches, of_capture(table).schema)
        assert same(together, read(source.getvalue(), table, window=window))


def test_tables_come_side_by_side_and_not_one_behind_the_other() -> None:
    order = [table for table, _ in capture.read(io.BytesIO(damaged()), tables=["frames", "records"], window=300)]
    assert order.index("records") < len(order) - 1 - order[::-1].index("frames")


# The choice of columns


@pytest.mark.wide(keep=8)
@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("table", OF_CAPTURES)
def test_a_column_alone_is_the_column_of_the_whole_table(name: str, table: str) -> None:
    data = CAPTURES[name]()
    whole = read(data, table)
    for column in whole.schema.names:
        alone = read(data, table, columns=[column])
        assert alone.schema == pa.schema([whole.schema.field(column)])
        assert same(alone.column(column), whole.column(column)), column


@pytest.mark.parametrize("table", [*tables.names("log"), "deep"])
def test_a_column_alone_is_the_column_of_the_whole_table_of_a_segment(table: str) -> None:
    plain = tables.table("records" if table == "deep" else table, "log")
    one = plain.deep if table == "deep" else plain
    assert one is not None
    partitions = (SEGMENT, *sorted(SEGMENT.parent.iterdir()))
    segments = (segment for partition in partitions for segment in log.find(partition))
    segment = next((file for file in segments if any(batch.num_rows for batch in one.read(file))), None)
    assert segment is not None, f"no segment below {SEGMENT.parent} has a row of {table}: record one that has"
    whole = pa.Table.from_batches(one.read(segment), one.schema)
    for column in one.schema.names:
        alone = pa.Table.from_batches(one.read(segment, columns=[column]))
        assert alone.schema == pa.schema([one.schema.field(column)])
        assert same(alone.column(column), whole.column(column)), column


def test_the_capture_with_damage_has_rows_of_every_kind() -> None:
    # What is too large is so by a limit: see test_limits_in_tables.py. Not acquired is no damage: see test_share.py.
    words = {one.name.lower() for one in RecordStatus} - {"too_large", "not_acquired"}
    assert set(read(damaged(), "records").column("status").to_pylist()) == words


@pytest.mark.parametrize("table", OF_CAPTURES)
def test_columns_come_in_the_order_that_was_asked_for(table: str) -> None:
    backwards = of_capture(table).schema.names[::-1]
    found = read(EVENTS.read_bytes(), table, columns=backwards)
    assert found.schema.names == backwards


def test_columns_are_chosen_by_table_where_there_are_several() -> None:
    columns = {"records": ["offset", "topic"]}
    found = dict(capture.read(io.BytesIO(damaged()), tables=["frames", "records"], columns=columns))
    assert found["frames"].schema == tables.table("frames").schema
    assert found["records"].schema.names == ["offset", "topic"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": ["packet"]}, "no column 'packet' in the table frames: there are capture, connection"),
        ({"columns": ["size", "size"]}, "column 'size' of the table frames was chosen twice"),
        ({"columns": []}, "no column of the table frames was chosen"),
        ({"columns": {"frames": ["size"]}}, "columns by table go with tables"),
        ({"tables": ["frames"], "columns": ["size"]}, "with tables, columns are a dict"),
        ({"tables": ["frames"], "columns": {"records": ["offset"]}}, "columns of the table 'records', which is not"),
        ({"tables": ["frames"], "columns": {"frames": ["offset"]}}, "no column 'offset' in the table frames"),
        ({"tables": ["frames", "packets"]}, "no table 'packets'"),
    ],
)
def test_a_wrong_choice_is_a_value_error_at_once(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        capture.read(io.BytesIO(), **options)


# What no column needs is not done


class Calls:
    """Counts the calls of a function that it stands in for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, holder: Any, name: str) -> None:
        inner = getattr(holder, name)
        self.arguments: list[dict[str, Any]] = []

        def counted(*args: Any, **options: Any) -> Any:
            self.arguments.append(options)
            return inner(*args, **options)

        monkeypatch.setattr(holder, name, counted)

    def __len__(self) -> int:
        return len(self.arguments)


def names_of(table: str, *without: str) -> list[str]:
    """All columns of a table but some."""
    return [one for one in of_capture(table).schema.names if one not in without]


def calls_of(calls: Calls, table: str, columns: Iterable[str]) -> int:
    """How many calls a read of these columns makes."""
    before = len(calls)
    read(damaged(), table, columns=[*columns])
    return len(calls) - before


def test_bodies_are_decoded_where_body_status_error_or_errors_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    from kwire.tables import messages

    decoded = Calls(monkeypatch, messages, "decode_request")
    written = Calls(monkeypatch, messages, "dump_json")
    for column, counts in {"body": (5, 5), "status": (5, 0), "error": (5, 0), "errors": (5, 0)}.items():
        with using(PYTHON):
            assert (calls_of(decoded, "messages", [column]), calls_of(written, "messages", [column])) == counts
        with using(MACHINE):
            # The kernel has dealt with all others.
            assert (calls_of(decoded, "messages", [column]), calls_of(written, "messages", [column])) == (1, 0)
    assert calls_of(decoded, "messages", names_of("messages", *messages._DECODED)) == 0


def test_addresses_are_written_where_a_host_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = Calls(monkeypatch, Frames, "ends")
    assert calls_of(ends, "frames", names_of("frames", "client_host", "broker_host")) == 0
    assert calls_of(ends, "frames", ["broker_host"]) == 1


def test_topics_are_learnt_where_their_names_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    learnt = Calls(monkeypatch, Topics, "learn")
    named = Calls(monkeypatch, Topics, "names")
    identified = Calls(monkeypatch, Topics, "ids")
    assert calls_of(learnt, "records", names_of("records", "topic")) == 0
    assert calls_of(learnt, "records", ["topic"]) == 1
    assert calls_of(named, "records", names_of("records", "topic")) == 0
    assert calls_of(identified, "records", names_of("records", "topic_id")) == 0


def test_of_a_record_nothing_is_copied_that_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = Calls(monkeypatch, columnar, "decode_pieces")
    for columns, wanted in (
        (["offset", "topic"], ["offset"]),
        (["frame", "partition"], []),
        (["key", "status"], ["key", "crc_ok"]),
        (["error"], ["crc_ok"]),
        (names_of("records"), [*(one for one in names_of("records") if one in records.SCHEMA.names), "position"]),
    ):
        read(damaged(), "records", columns=columns)
        assert list(decoded.arguments[-1]["columns"]) == wanted


def test_events_ask_records_for_what_they_are_made_from_only(monkeypatch: pytest.MonkeyPatch) -> None:
    learnt = Calls(monkeypatch, Topics, "learn")
    decoded = Calls(monkeypatch, columnar, "decode_pieces")
    read(EVENTS.read_bytes(), "cloudevents", columns=["id", "type"])
    assert set(decoded.arguments[-1]["columns"]) == {"headers", "value", "magic"}
    assert len(learnt) == 0


def test_records_of_kafkas_own_topics_are_decoded_where_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    from kwire.tables import log_records

    decoded = Calls(monkeypatch, log_records, "decoded")
    deep = tables.table("records", "log").deep
    assert deep is not None
    (segment,) = log.find(SEGMENT)
    assert list(deep.read(segment, columns=["offset", "key"]))
    assert len(decoded) == 0
    assert list(deep.read(segment, columns=["record_type"]))
    assert len(decoded) > 0


# What tables remember from one capture to the next


def test_devices_are_remembered_from_capture_to_capture_in_the_same_memory() -> None:
    from kwire.tables import reading

    def rules(memory: dict[str, Any]) -> list[str]:
        found = reading.read(io.BytesIO(EVENTS.read_bytes()), {"hono": ["violations"]}, memory=memory)
        rows = (row for _, batch in found for row in batch.to_pylist())
        return [one["rule"] for row in rows for one in row["violations"]]

    memory: dict[str, Any] = {}
    assert rules(memory).count("two_partitions") == 1
    assert rules(memory).count("two_partitions") == 0
    assert rules({}).count("two_partitions") == 1


def test_a_frame_knows_its_error_as_the_table_does() -> None:
    from kwire.capture.reading import Reading

    told = read(damaged(), "frames", columns=["status", "error"]).to_pylist()
    own = [frame for frames in Reading(io.BytesIO(damaged())) for frame in frames]
    assert [{"status": frame.status.name.lower(), "error": frame.error} for frame in own] == told
    with pytest.raises(DecodeError):
        _ = own[-1].body


@pytest.mark.parametrize("table", ["frames", "messages", "records"])
def test_batches_have_exactly_the_schema_of_their_table(table: Any) -> None:
    connection = exchange()
    connection.send(produce(2, 1, b"\x00" * 8 + b"\x00\x00\x00\x10" + bytes(16))).answer(produce_answer(2))
    batches = list(capture.read(io.BytesIO(pcap(connection.packets)), table))
    assert batches
    for batch in batches:
        assert batch.schema.equals(tables.table(table).schema, check_metadata=True)
        batch.validate(full=True)
        for field in batch.schema:
            assert field.nullable or batch.column(field.name).null_count == 0


def test_an_unknown_table_is_a_mistake_of_the_program() -> None:
    with pytest.raises(ValueError, match="frames, messages, partitions, records"):
        capture.read(io.BytesIO(b""), "packets")  # type: ignore[arg-type]
