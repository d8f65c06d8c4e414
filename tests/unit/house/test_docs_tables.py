"""docs/reference/tables says what the registry of tables says: every table, every column with a meaning, in its order.

Types and the words of ``status`` are written by ``docs/fill.py``, which ``test_docs_made.py`` holds.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from kwire import tables
from kwire.tables.definition import LogTable, Table

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "reference" / "tables"

spec = importlib.util.spec_from_file_location("fill", ROOT / "docs" / "fill.py")
assert spec is not None
assert spec.loader is not None
fill: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fill)


def title(table: Table) -> str:
    """The page of a table, and whether it is the deep part."""
    deep = isinstance(table, LogTable) and table is not tables.table(table.name, "log")
    return f"{fill.page_of(table)}{' deep' if deep else ''}"


def part(kind: str, of: str) -> str:
    """What a page has between the marks of a made part."""
    text = (PAGES / f"{of.split()[0]}.md").read_text("utf-8")
    found = re.search(rf"<!-- made: {kind} {of} -->(.*?)<!-- end -->", text, re.DOTALL)
    assert found, f"no part 'made: {kind} {of}'"
    return found[1]


every_table = pytest.mark.parametrize("table", tables.every(), ids=title)


@every_table
def test_every_column_is_explained_in_its_order(table: Table) -> None:
    explained = []
    for names, written, meaning in fill.meanings(part("columns", title(table))):
        page = re.search(r"those of \[[^]]+\]\((.+?)\.md\)", written)
        assert page or meaning, f"docs/reference/tables/{title(table).split()[0]}.md: write what {written} means"
        explained += fill.named(page[1]).schema.names if page else names
    assert explained == table.schema.names, "make docs, then put the rows of the page in the order of the schema"


@every_table
def test_every_column_that_is_asked_for_is_explained(table: Table) -> None:
    if table.asked:
        rows = fill.meanings(part("asked", title(table)))
        for _, written, meaning in rows:
            assert meaning, f"docs/reference/tables/{title(table)}.md: write what {written} means"
        assert {name for names, _, _ in rows for name in names} == {one.name for one in table.asked}


@every_table
def test_every_word_of_status_is_on_the_page(table: Table) -> None:
    if table.statuses:
        assert all(f"| `{word}` |" in part("statuses", title(table).split()[0]) for word in table.statuses), "make docs"


def test_a_column_without_a_meaning_is_seen() -> None:
    old = "\n| column | type | meaning |\n|---|---|---|\n| `frame` | x | a number |\n| `gone` | x | y |\n"
    made = fill.columns(old, "frames")
    assert "| `frame` | bigint | a number |" in made
    # It has its place in the order of the schema.
    assert made.splitlines()[3] == "| `capture` | string | |"
    assert "gone" not in made


def test_the_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    golden = ROOT / "tests" / "golden" / "kafka-3.9-zk-kafka-python" / "first-light.pcap"
    (tmp_path / "broker.pcap").write_bytes(golden.read_bytes())
    monkeypatch.chdir(tmp_path)
    text = (PAGES / "README.md").read_text("utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    namespace: dict[str, Any] = {}
    exec(compile(block, "tables/README.md", "exec"), namespace)
    assert capsys.readouterr().out.splitlines() == [
        "208 ['timestamp', 'client_id', 'body']",
        "frames 208",
        "records 516",
        "32",
    ]
