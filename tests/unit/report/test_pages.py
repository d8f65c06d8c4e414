"""Pages: nothing of a capture is more than text, and nothing but what is named may run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from kwire.report import html
from kwire.report.overview import Overview
from kwire.report.page import Source, bytes_text, figures, ms_text, render, span_text, time_text
from kwire.tables.showing import Column, plain

HOSTILE = ["</script><script>alert(1)</script>", "<!--", "]]>", "\u2028", '"><img src=x onerror=alert(1)>', "\x1b[2J"]
ASSETS = Path(html.__file__).parent / "assets"


@pytest.mark.parametrize("text", HOSTILE)
def test_json_ends_no_element_and_comes_back(text: str) -> None:
    said = html.json_text({text: [text]})
    assert not set("<>&\u2028\x1b") & set(said)
    assert json.loads(said) == {key: [key] for key in json.loads(said)}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_json_has_not_are_an_error(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        html.json_text([value])


def test_cells_are_escaped_and_sorted_by_their_numbers() -> None:
    columns = [Column("a", plain("a")), Column("b", plain("b"), right=True, value=lambda row: row["b"])]
    made = html.page("<b>", ["<i>"], columns, [{"a": one, "b": float("nan")} for one in HOSTILE] + [{"a": "", "b": 7}])
    assert 'data-v="7"' in made
    assert 'nan"' not in made
    assert not re.search(r"<(script|img|b>|i>)", made)


def test_the_policy_names_what_is_there_and_nothing_else() -> None:
    made = render(Overview(), [Source(HOSTILE[0], [HOSTILE[4]])])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', made)
    assert policy is not None
    rules = dict(one.split(" ", 1) for one in policy.group(1).split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for rule, element in (("script-src", "script"), ("style-src", "style")):
        texts = re.findall(f"<{element}>(.*?)</{element}>", made, re.DOTALL)
        digests = [f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in texts]
        assert rules[rule].split() == digests
    assert made.count("<script") == 4
    html = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", made, flags=re.DOTALL)
    assert not re.search(r"<[^>]*\s(on\w+|style|src|href)=(?!\"#)", html)
    json.loads(json.dumps(figures(Overview()), allow_nan=False))


def test_the_library_of_charts_is_what_its_makers_gave_out() -> None:
    told = dict(line.split()[::-1] for line in (ASSETS / "SHA256SUMS").read_text().splitlines())
    for name, digest in told.items():
        assert hashlib.sha256((ASSETS / name).read_bytes()).hexdigest() == digest
    assert set(told) == {"uplot.js", "uplot.css", "uplot-LICENSE.txt"}
    assert "MIT License" in (ASSETS / "uplot-LICENSE.txt").read_text()


def test_texts_of_numbers() -> None:
    assert [bytes_text(one) for one in (None, 0, 999, 1000, 12_345, 1e6, 5e18)] == [
        "-", "0 B", "999 B", "1.00 kB", "12.3 kB", "1.00 MB", "5,000 PB",
    ]  # fmt: skip
    assert [ms_text(one) for one in (None, 0.0123, 1.234, 12.34, 123.4, 61_000)] == [
        "-", "0.012 ms", "1.23 ms", "12.3 ms", "123 ms", "61.00 s",
    ]  # fmt: skip
    assert [span_text(one) for one in (0, 1.5, 61, 7260)] == ["0 s", "1.5 s", "1 min 1 s", "2 h 1 min"]
    assert [time_text(one) for one in (None, 0, 10**18)] == ["-", "1970-01-01 00:00:00.000", "@1000000000000.000"]


def test_rows_of_answers_are_cards_on_a_phone() -> None:
    columns = [Column("rule", plain("rule")), Column("what", plain("what"), wrap=True)]
    made = html.page("x", [], columns, [{"rule": "lag", "what": '"<b>'}])
    assert '<div class="t a">' in made
    assert '<td data-t="what">&quot;&lt;b&gt;</td>' in made
    assert 'class="t a"' not in html.page("x", [], columns[:1], [])
