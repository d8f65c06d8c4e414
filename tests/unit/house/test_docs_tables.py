"""docs/tables.md says what the registry of tables says: every table, every column with its type, every status word."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire import tables
from kwire.tables.definition import LogTable, Table

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))
SIMPLE = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.timestamp("us", tz="UTC"): "timestamp",
}


def title(table: Table) -> str:
    """The heading of a table."""
    if not isinstance(table, LogTable):
        return table.name
    deep = table is not tables.table(table.name, "log")
    return f"{table.name} of log segments{', deep' if deep else ''}"


def in_sql(kind: pa.DataType) -> str:
    """An Arrow type as SQL spells it."""
    if pa.types.is_map(kind):
        return f"map<{in_sql(kind.key_type)},{in_sql(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{in_sql(kind.value_type)}>"
    if pa.types.is_struct(kind):
        fields = (kind.field(k) for k in range(kind.num_fields))
        return f"struct<{','.join(f'{one.name}:{in_sql(one.type)}' for one in fields)}>"
    return SIMPLE[kind]


def cells(section: str, head: str) -> list[list[str]]:
    """The rows of the table in a section whose first title is ``head``; none where there is no such table."""
    found = re.search(rf"^\| {head} \|.*\n\|---.*\n((?:\|.*\n)+)", SECTIONS[section], re.MULTILINE)
    rows = found.group(1).splitlines() if found else []
    return [[html.unescape(cell.strip()) for cell in row.strip("|").split("|")] for row in rows]


def linked(text: str) -> str | None:
    """The heading that a text calls its own columns or words."""
    found = re.search(r"those of\s+\[([^]]+)]", text)
    return found and found.group(1)


def explained(section: str) -> list[tuple[str, str]]:
    """The columns that a section explains, and their types."""
    made: list[tuple[str, str]] = []
    for names, types, _ in cells(section, "column"):
        other = linked(names)
        if other is not None:
            made += explained(other)
            continue
        found = re.findall(r"`(\w+)`", names)
        kinds = re.split(r",(?![^<]*>)", types.replace(" ", ""))
        assert len(kinds) in (1, len(found)), names
        made += zip(found, kinds * len(found) if len(kinds) == 1 else kinds, strict=True)
    return made


def words(section: str) -> dict[str, str]:
    """The words of ``status`` that a section explains."""
    found = {row[0].strip("`"): row[1] for row in cells(section, "`status`")}
    other = re.search(r"The words of\s+`status`\s+are\s+those of", SECTIONS[section])
    if not found and other:
        heading = linked(SECTIONS[section][other.start() :])
        assert heading is not None
        return words(heading)
    return found


every_table = pytest.mark.parametrize("table", tables.every(), ids=title)


@every_table
def test_every_column_is_explained_with_its_type_in_its_order(table: Table) -> None:
    assert explained(title(table)) == [(one.name, in_sql(one.type)) for one in table.schema]


@every_table
def test_every_word_of_status_is_explained_as_the_table_does(table: Table) -> None:
    assert words(title(table)) == {word: text.replace("``", "`") for word, text in table.statuses.items()}


def test_there_is_a_section_for_every_table_and_the_list_names_those_of_captures() -> None:
    assert {title(table) for table in tables.every()} <= set(SECTIONS)
    _, _, rest = TEXT.partition("\n| table | one row for |")
    named = re.findall(r"^\| \[`(\w+)`\]", rest.partition("\n\n")[0], re.MULTILINE)
    assert named == [*tables.names("capture"), *tables.names("events")]


def test_the_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    golden = ROOT / "tests" / "golden" / "kafka-3.9-zk-kafka-python" / "first-light.pcap"
    (tmp_path / "broker.pcap").write_bytes(golden.read_bytes())
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    namespace: dict[str, Any] = {}
    exec(compile(block, "tables.md", "exec"), namespace)
    assert capsys.readouterr().out.splitlines() == [
        "208 ['timestamp', 'client_id', 'body']",
        "frames 208",
        "records 516",
        "32",
    ]
