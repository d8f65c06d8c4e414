"""The pages of APIs and KIPs, and the explorer, have what the schemas say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import browser
import pytest
from docs_site import apis, site

from kwire import schema, versions
from kwire.schema.model import ArrayLayout, StructLayout, layout

SAMPLE = [(1, 12, 17), (0, 8, 9), (3, 0, 13), (18, 2, 3), (11, 0, 9), (24, 3, 4), (71, 0, 0)]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """All of them: they take seconds, so each process that collects tests does not make them."""
    return dict(apis.site_pages())


@pytest.mark.wide
def test_there_is_a_page_for_each_api_with_each_version_and_two_examples(pages: dict[str, str]) -> None:
    for key, name in schema.api_keys().items():
        text = pages[f"reference/apis/{apis.page_of(key)}"]
        request = schema.request(key)
        assert request is not None
        assert text.startswith(f"# {name}\n")
        for version in request.versions:
            assert re.search(rf"^\| {version} \| ", text, re.MULTILINE), (name, version)
        assert text.count("```text\n") == 2, name


def test_there_is_a_page_for_each_kip_that_schemas_name(pages: dict[str, str]) -> None:
    named = set()
    for file in (site.ROOT / "schemas").rglob("*.kwire"):
        named |= set(re.findall(r"KIP-\d+", file.read_text("utf-8")))
    assert {f"reference/kips/{one}.md" for one in named} <= pages.keys()
    assert len(named) > 100


def test_examples_have_no_secrets(pages: dict[str, str]) -> None:
    text = pages[f"reference/apis/{apis.page_of(36)}"]
    assert "redacted" in text or "····" in text or "bytes" in text
    for one in pages.values():
        assert "wonderland" not in one
        assert "alice-secret" not in one


def test_the_layouts_of_a_page_are_those_of_the_codec() -> None:
    for key, _, version in SAMPLE:
        for message in apis.messages(key):
            shown = [(depth, one.name) for depth, one, have in apis.rows(message) if version in have]
            assert sorted(shown) == sorted(walked(layout(message, version)))


def walked(struct: StructLayout, depth: int = 0) -> list[tuple[int, str]]:
    found = []
    for one in (*struct.fields, *struct.tagged):
        found.append((depth, one.name))
        inside: Any = one.type.element if isinstance(one.type, ArrayLayout) else one.type
        if isinstance(inside, StructLayout):
            found += walked(inside, depth + 1)
    return found


def test_the_explorer_fetches_nothing() -> None:
    text = site.explorer()
    assert "default-src 'none'" in text
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", text)
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    known = json.loads(data)
    assert [one["key"] for one in known["apis"]] == list(schema.api_keys())
    assert known["releases"] == list(versions.releases())
    for release in known["releases"]:
        for listener, served in known["accepted"][release].items():
            accepted = versions.accepted(release, listener)
            assert served == {str(key): [one.low, one.high] for key, one in accepted.items()}


@pytest.mark.wide
@pytest.mark.skipif(browser.found() is None, reason="no Chromium")
def test_the_explorer_shows_what_layouts_say(tmp_path: Path) -> None:
    path = browser.found()
    assert path is not None
    page = tmp_path / "index.html"
    page.write_text(site.explorer(), "utf-8")
    script = """history.replaceState(null, '', '#api=%s&a=%s&b=%s'); dispatchEvent(new Event('hashchange'));
        [...document.querySelectorAll('#layouts h2')].map((title) => [title.textContent.split(':')[0],
        [...(title.nextElementSibling?.matches('.wide') ? title.nextElementSibling.querySelectorAll('tbody tr') : [])]
        .map((row) => [...row.cells].slice(1).map((cell) => cell.textContent))])"""
    with browser.Browser.run(path, tmp_path / "profile") as one:
        one.open(page)
        for key, a, b in SAMPLE:
            shown = dict(one.of(script % (key, a, b)))
            for message in apis.messages(key):
                rows = shown[message.kind.capitalize()]
                for column, version in ((1, a), (2, b)):
                    names = sorted(row[0] for row in rows if row[column])
                    assert names == sorted(name for _, name in walked(layout(message, version)))
        assert one.wrong() == []
        assert one.requests() == [page.as_uri()]
