"""The SQL that pages, notebooks and examples show, and the comparison of its rows with those that Python makes.

``written(page)`` gives the queries of a page in order. A test module has a ``Case`` for each, with a function that
makes its rows out of the same tables by loops; ``test_docs_queries.py`` sees to it that no query has none.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import VariantType

from kwire import capture
from kwire.tables import table

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"

Row = dict[str, Any]
Tables = dict[str, list[Row]]
Rows = Counter[tuple[Any, ...]]

_QUERY = re.compile(r"\s*(SELECT|WITH|CREATE)\s")


@dataclass(frozen=True)
class Case:
    """A query of a page, which has ``text`` in it, and what makes its rows.

    ``chosen``: the columns that are compared, all by default."""

    text: str
    rows: Callable[[Tables], Rows]
    chosen: tuple[str, ...] = ()


def pages() -> list[str]:
    """Whatever may show a query: pages, notebooks and examples."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.ipynb"), *ROOT.glob("examples/*.py")]
    return sorted(one.relative_to(ROOT).as_posix() for one in found)


def written(page: str) -> list[str]:
    """The queries of a page, in order: its blocks of SQL, and texts of Python that are queries."""
    text = (ROOT / page).read_text("utf-8")
    if page.endswith(".py"):
        return _of_python(text)
    if page.endswith(".ipynb"):
        cells = (cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")
        return [query for cell in cells for query in _of_python("".join(cell["source"]))]
    found: list[str] = []
    for language, block in re.findall(r"^```(\w+)\n(.*?)\n^```", text, re.DOTALL | re.MULTILINE):
        if language == "sql":
            found += [one.strip() for one in block.split(";") if one.strip()]
        elif language == "python":
            found += _of_python(block)
    return found


def _of_python(code: str) -> list[str]:
    texts = [one for one in ast.walk(ast.parse(code)) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    texts.sort(key=lambda one: (one.lineno, one.col_offset))
    return [str(one.value) for one in texts if _QUERY.match(str(one.value))]


def path_of(name: str) -> Path:
    """A golden capture."""
    (found,) = (GOLDEN / name).parent.glob(f"{Path(name).name}.pcap*")
    return found


def read(captures: Sequence[str], columns: Mapping[str, Iterable[str]]) -> dict[str, pa.Table]:
    """Tables of golden captures; ``columns``: of each what it has by name besides."""
    parts: dict[str, list[pa.RecordBatch]] = {name: [] for name in columns}
    wanted = {name: [*table(name).schema.names, *more] for name, more in columns.items()}
    for one in captures:
        for name, batch in capture.read(path_of(one), tables=list(columns), columns=wanted, name=one):
            parts[name].append(batch)
    return {name: pa.Table.from_batches(some) for name, some in parts.items()}


@contextmanager
def views(spark: SparkSession, made: Mapping[str, pa.Table]) -> Iterator[Tables]:
    """The tables as views of the session, and their rows."""
    for name, one in made.items():
        spark.createDataFrame(one).coalesce(1).createOrReplaceTempView(name)
    yield {name: one.to_pylist() for name, one in made.items()}
    for name in made:
        spark.catalog.dropTempView(name)


def compare(spark: SparkSession, query: str, case: Case, tables: Tables, *, empty: bool = False) -> None:
    """The rows of a query are those that Python makes, and there are some, unless there may be none."""
    asked = spark.sql(query)
    at = [asked.columns.index(name) for name in case.chosen] or range(len(asked.columns))
    variant = [isinstance(asked.schema[one].dataType, VariantType) for one in at]
    # By numbers: two columns may have the same name.
    numbered = asked.toDF(*map(str, range(len(asked.columns))))
    found = numbered.select(
        *(sql.to_json(str(one)) if text else str(one) for one, text in zip(at, variant, strict=True))
    )
    columns = [one.to_pylist() for one in found.toArrow().columns]
    columns = [list(map(_sorted, one)) if text else one for one, text in zip(columns, variant, strict=True)]
    rows = Counter(tuple(map(_plain, row)) for row in zip(*columns, strict=True))
    wanted = Counter({tuple(map(_plain, row)): count for row, count in case.rows(tables).items()})
    assert wanted or empty
    assert rows == wanted


def _sorted(text: str | None) -> str | None:
    """JSON of VARIANT, with its keys in order."""
    return None if text is None else json.dumps(json.loads(text), sort_keys=True)


def _plain(value: Any) -> Any:
    """Something that compares: sums of floats depend on their order."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return tuple(map(_plain, value.values()))
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def total(values: Iterable[Any]) -> Any:
    """As SQL sums: nulls are passed over, and of nothing else the sum is null."""
    known = [one for one in values if one is not None]
    return sum(known) if known else None


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by the values of columns."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for one in rows:
        found.setdefault(tuple(_plain(one[name]) for name in names), []).append(one)
    return found
