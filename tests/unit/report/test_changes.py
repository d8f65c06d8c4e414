"""Reports held against each other: what is new, gone and otherwise; pages that are no reports."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kwire.errors import KwireError
from kwire.report.changes import DATA, PARTS, changes, figures_of_page


def figures(seconds: float = 10.0, totals: dict[str, float] | None = None, **parts: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"whole": True, "rows": {}}
    return {
        "format": "kwire-report",
        "version": 1,
        "seconds": seconds,
        "totals": totals or {},
        "parts": {part: parts.get(part, empty) for part in PARTS},
    }


def page(found: Any) -> str:
    return f"<!doctype html><body>{DATA}{json.dumps(found)}</script></body>"


def test_rates_and_latencies() -> None:
    apis = {"whole": True, "rows": {"Fetch": {"requests": 100, "p99": 5.0}, "Produce": {"requests": 100, "p99": None}}}
    more = {"whole": True, "rows": {"Fetch": {"requests": 300, "p99": 10.0}, "Produce": {"requests": 205, "p99": 1.0}}}
    rows = changes(figures(10, {"frames": 10}, apis=apis), figures(20, {"frames": 20}, apis=more))
    said = [(row["name"], row["measure"], row["before"], row["now"], row["change"]) for row in rows]
    assert said == [("Fetch", "p99", 5.0, 10.0, 1.0), ("Fetch", "requests a second", 10.0, 15.0, 0.5)]
    assert changes(figures(0, {"frames": 10}), figures(5, {"frames": 20}))[0]["measure"] == "frames"


def test_new_and_gone_where_the_lists_are_whole() -> None:
    one = {"whole": True, "rows": {"lag": {"count": 1}}}
    assert [(row["what"], row["word"]) for row in changes(figures(findings=one), figures())] == [("findings", "gone")]
    assert [(row["what"], row["word"]) for row in changes(figures(), figures(findings=one))] == [("findings", "new")]
    cut = {"whole": False, "rows": {}}
    assert changes(figures(findings=one), figures(findings=cut)) == []
    assert changes(figures(findings=cut), figures(findings=one)) == []


def test_verdicts_are_compared_where_they_are_about_one_release() -> None:
    bad = {"whole": True, "rows": {"breaks: 10.0.0.1 old": {"requests": 5}}}
    for before, now, count in (("4.0", "4.0", 1), ("4.0", "4.3", 0), (None, "4.3", 1)):
        old, new = figures(), figures(verdicts=bad)
        for one, target in ((old, before), (new, now)):
            if target is not None:
                one["target"] = target
        assert len(changes(old, new)) == count


def test_a_page_gives_its_figures_back() -> None:
    assert figures_of_page(page(figures()), "x") == figures()


def damaged() -> list[Any]:
    made: list[Any] = [[], None, 1, {}, {**figures(), "version": 2}, {**figures(), "format": "other"}]
    made += [{**figures(), "seconds": value} for value in (None, "1", True, float("nan"), float("inf"), 10**400)]
    made += [{**figures(), "totals": value} for value in ([], {"a": "b"}, {"a": None}, {"a": float("inf")})]
    made += [{**figures(), "parts": {}}, {**figures(), "target": 4.0}, {**figures(), "target": "4" * 100}]
    made += [figures(apis=value) for value in ([], {}, {"whole": 1, "rows": {}}, {"whole": True, "rows": {"a": 1}})]
    made += [figures(apis={"whole": True, "rows": {"a": {"b": "c"}}})]
    return made


@pytest.mark.parametrize("found", damaged())
def test_damaged_figures_are_an_error(found: Any) -> None:
    with pytest.raises(KwireError, match=r"x: .*figures"):
        figures_of_page(page(found), "x")


@pytest.mark.parametrize(
    "text", ["", "<!doctype html>", DATA, f"{DATA}{{</script>", DATA + "[" * 100_000 + "</script>"]
)
def test_what_is_no_report_is_an_error(text: str) -> None:
    with pytest.raises(KwireError, match=r"x: "):
        figures_of_page(text, "x")


def test_no_more_than_a_thousand_changes_are_said() -> None:
    many = {"whole": True, "rows": {f"t{k}": {"requests": 100} for k in range(1500)}}
    more = {"whole": True, "rows": {f"t{k}": {"requests": 300} for k in range(1500)}}
    assert len(changes(figures(topics=many), figures(topics=more))) == 1000
