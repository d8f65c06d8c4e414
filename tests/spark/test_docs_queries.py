"""Every query that a page, a notebook or an example shows has a test that compares its rows."""

from __future__ import annotations

from pathlib import Path

import pytest
import test_pages_docs
import test_recipes
import test_sql_docs
import test_tables_docs
from docs_queries import Case, pages, written


def _sql() -> dict[str, list[Case]]:
    left = iter(test_sql_docs.CASES)
    return {page: [next(left) for _ in range(count)] for page, count in test_sql_docs.PAGES.items()}


CASES: dict[str, list[Case]] = {
    "docs/how-to/ten-questions.md": test_recipes.CASES,
    **_sql(),
    **test_tables_docs.CASES,
    **test_pages_docs.CASES,
}


@pytest.mark.parametrize("page", pages())
def test_each_query_of_a_page_has_a_case(page: str) -> None:
    queries, cases = written(page), CASES.get(page, [])
    assert len(queries) == len(cases), f"{page} has a query whose rows no test compares"
    for query, case in zip(queries, cases, strict=True):
        assert case.text in query


@pytest.mark.parametrize("page", CASES)
def test_no_query_compares_structs_or_divides_by_what_may_be_nothing(page: str) -> None:
    for query in written(page):
        # Two nulls are equal in structs.
        assert ") = (" not in query
        # try_divide is null where / is an error.
        assert "/ sum(" not in query
        assert "/ count_if(" not in query


def test_queries_are_found_wherever_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docs_queries.ROOT", tmp_path)
    code = "spark.sql('SELECT 3')\nx = '''\n  WITH a AS (SELECT 4) SELECT 5'''"
    (tmp_path / "a.md").write_text(f"```sql\nSELECT 1;\nSELECT 2\n```\n```python\n{code}\n```\n```sh\nSELECT\n```\n")
    (tmp_path / "b.py").write_text("queries = {'one': 'SELECT 6', 'two': 'SELECTED'}\n")
    (tmp_path / "c.ipynb").write_text('{"cells": [{"cell_type": "code", "source": ["spark.sql(\\"SELECT 7\\")"]}]}')
    assert [len(written(name)) for name in ("a.md", "b.py", "c.ipynb")] == [4, 1, 1]
