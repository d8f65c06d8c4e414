"""``kwire decode --as cloudevents|hono``."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from packets import Connection, pcap, produce

from kwire import cli, tables
from kwire.records import Record, encode

SCHEMAS = {name: tables.table(name, "events").schema for name in ("cloudevents", "hono")}
CAPTURES = Path(__file__).parents[2] / "golden"
EVENTS = CAPTURES / "kafka-4.3-kraft-events" / "events.pcap"
OTHER = CAPTURES / "kafka-3.9-zk-kafka-python" / "first-light.pcap"
MEANT = json.loads(EVENTS.with_suffix(".meant.json").read_text(encoding="utf-8"))


def rows(capsys: pytest.CaptureFixture[str], name: str, *files: Path) -> list[dict[str, Any]]:
    assert cli.main(["decode", *map(str, files or (EVENTS,)), "--as", name, "--format", "jsonl"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    found = [json.loads(line) for line in said.out.splitlines()]
    assert all(list(row) == SCHEMAS[name].names for row in found)
    return found


@pytest.mark.parametrize("source", ["produce", "fetch"])
def test_events_are_those_that_the_sdk_wrote(capsys: pytest.CaptureFixture[str], source: str) -> None:
    found = [row for row in rows(capsys, "cloudevents") if row["record_source"] == source]
    good = {row["id"]: row for row in found if row["error"] is None}
    for one in MEANT["events"]:
        if one.get("error") is not None or one.get("id") is None:
            continue
        row = good.pop(one["id"])
        for name in ("type", "source", "subject", "mode", "key", "extensions"):
            assert row[name] == one[name]
        data = None if row["data"] is None else json.loads(base64.b64decode(row["data"]))
        assert data == one["data"]
        assert row["time"] == one["time"].replace("+00:00", "Z")
    assert good == {}
    bad = Counter((row["mode"], row["error"]) for row in found if row["error"])
    assert bad == Counter((one["mode"], one["error"]) for one in MEANT["events"] if one.get("error"))


def test_hono_messages_have_the_violations_that_were_sent(capsys: pytest.CaptureFixture[str]) -> None:
    found = [row for row in rows(capsys, "hono") if row["record_source"] == "produce"]
    assert len(found) == MEANT["messages"]
    wrong = [[row["tenant"], row["device_id"], one["rule"]] for row in found for one in row["violations"]]
    # Only producers with a producer id can be told apart here.
    want = [one for one in MEANT["violations"] if one[2] != "two_producers"]
    assert sorted(map(str, wrong)) == sorted(map(str, want))
    assert {row["device_id"] for row in found if row["expired"]} == set(MEANT["expired"])


def test_devices_are_remembered_from_file_to_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    twice = tmp_path / "again.pcap"
    twice.write_bytes(EVENTS.read_bytes())
    found = Counter(one["rule"] for row in rows(capsys, "hono", EVENTS, twice) for one in row["violations"])
    assert found["two_partitions"] == 1
    assert found["missing_header"] == 8


def test_headers_of_the_http_binding_are_told_in_a_note(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    http = Record(b"k", b"{}", headers=[("ce-id", b"1"), ("ce-source", b"/me"), ("ce-type", b"t")])
    kafka = [("ce_id", b"1"), ("ce_source", b"/me"), ("ce_type", b"t"), ("ce_specversion", b"1.0")]
    path = tmp_path / "http.pcap"
    for others, said in (
        ([http], "1 record has the headers of CloudEvents over HTTP (ce-id, Content-Type)"),
        ([http, http, Record(b"k", b"x")], "2 records have the headers of CloudEvents over HTTP (ce-id, Content-Type)"),
    ):
        sent = encode([Record(b"k", b"{}", headers=kafka), *others])
        path.write_bytes(pcap(Connection().open().send(produce(1, 0, sent)).packets))
        for more in ([], ["--topic", "t"]):
            assert cli.main(["decode", str(path), "--as", "cloudevents", "--format", "jsonl", *more]) == 0
            found = capsys.readouterr()
            assert [json.loads(line)["id"] for line in found.out.splitlines()] == ["1"]
            rest = "in Kafka they are ce_id and content-type, so there are no events in them"
            assert found.err == f"kwire: {path}: note: {said}: {rest}\n"


@pytest.mark.parametrize("name", SCHEMAS)
def test_parquet_and_the_table_for_people(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    want = rows(capsys, name)
    out = tmp_path / "out.parquet"
    assert cli.main(["decode", str(EVENTS), "--as", name, "--format", "parquet", "-o", str(out)]) == 0
    table = pq.read_table(out)
    assert table.schema.names == SCHEMAS[name].names
    assert table.num_rows == len(want)
    assert cli.main(["decode", str(EVENTS), "--as", name, "--table", "records"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(want) + 2
    assert ("press-1" if name == "hono" else "placed-1") in "\n".join(lines)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_capture_without_any_gives_no_rows_and_no_error(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rows(capsys, name, OTHER) == []


def test_it_reads_records_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["decode", str(EVENTS), "--as", "hono", "--table", "messages"])
    assert stopped.value.code == 2
    assert "--as hono reads records, not messages" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "columns"), [("cloudevents", ["id", "error"]), ("hono", ["device_id", "violations"])])
def test_columns_are_those_that_were_asked_for(
    name: str, columns: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    want = [{one: row[one] for one in columns} for row in rows(capsys, name)]
    args = ["decode", str(EVENTS), "--as", name, "--columns", ",".join(columns), "--format", "jsonl"]
    assert cli.main(args) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == want
