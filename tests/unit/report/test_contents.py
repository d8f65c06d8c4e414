"""What is in the records of each topic: on the page of a report, and in lineage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwire.cli import main
from kwire.report.contents import Contents
from kwire.report.tallies import rows_of

VALUES = Path(__file__).parents[2] / "golden" / "values"
SHOP, REGISTRY = str(VALUES / "shop.pcap"), str(VALUES / "registry.pcap")


def contents(**more: Any) -> list[dict[str, Any]]:
    from kwire import capture
    from kwire.report.contents import OF_VALUES

    made = Contents()
    columns = ["status", "topic", *OF_VALUES]
    for batch in capture.read(SHOP, "records", columns=columns, **more):
        made.add(rows_of("records", [batch]))
    return list(made.rows(100))


def test_the_schemas_of_a_topic_have_shares_of_its_bytes() -> None:
    found = contents(schemas=REGISTRY)
    orders = [one for one in found if one["topic"] == "orders" and one["part"] == "value"]
    assert {(one["schema"], one["format"], one["status"]) for one in orders} == {("orders-value v1", "avro", "ok")}
    assert {one["framing"] for one in orders} == {"confluent", "confluent_header"}
    assert sum(one["records"] for one in orders) == 4
    assert round(sum(one["share"] for one in orders)) == 100
    assert [one["bytes"] for one in found] == sorted((one["bytes"] for one in found), reverse=True)


def test_a_schema_that_no_source_has_is_said_by_its_id(tmp_path: Path) -> None:
    (tmp_path / "other.avsc").write_text('"string"')
    found = [one for one in contents(schemas=str(tmp_path)) if one["topic"] == "orders" and one["part"] == "value"]
    assert ("unknown_schema", "confluent") in {(one["status"], one["framing"]) for one in found}
    assert all(one["schema"].startswith(("id ", "GUID ")) for one in found)


def test_the_page_has_a_chapter_of_the_records_where_schemas_are_given(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    assert main(["report", SHOP, "--values", REGISTRY, "-o", str(out)]) == 0
    page = out.read_text()
    assert '<section id="contents">' in page
    assert "All of them could be decoded." not in page  # keys are plain text
    assert "orders-value v1" in page
    assert "mixed-framings" in page
    assert main(["report", SHOP, "-o", str(out)]) == 0
    assert '<section id="contents">' not in out.read_text()


def test_lineage_names_the_schemas_that_a_client_writes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lineage", SHOP, "--values", REGISTRY, "--format", "jsonl"]) == 0
    found = {row["topic"]: row["schemas"] for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found["orders"] == ["orders-value v1"]
    assert main(["lineage", SHOP, "--format", "jsonl"]) == 0
    assert all(json.loads(line)["schemas"] == [] for line in capsys.readouterr().out.splitlines())


def test_explain_shows_what_the_values_of_a_frame_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", SHOP, "--frame", "0", "--values", REGISTRY, "--mask", "customer"]) == 0
    said = capsys.readouterr().out
    assert "what the records say" in said
    assert "orders-value v1" in said
    assert '"customer":null' in said
    assert "Grete" not in said.partition("what the records say")[2]
    with pytest.raises(SystemExit):
        main(["explain", "00", "--values", REGISTRY])
