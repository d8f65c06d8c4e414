"""Reports of the golden captures: their totals are those of the tables, and a browser opens their pages.

The quick profile takes some of the captures, ``exhaustive`` all of them. Where there is no headless Chromium (on the
path, or named by ``KWIRE_CHROMIUM``) the tests of pages say that they were skipped.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser
import pytest
from hypothesis import settings
from made_captures import exchange
from missing import give_up, no_program
from packets import Connection, pcap

from kwire import capture
from kwire.errors import CaptureError
from kwire.report.overview import TABLES, Overview, of_tables
from kwire.report.page import Source, render

HERE = Path(__file__).parent
EVERY = sorted(path for path in HERE.rglob("*.pcap*") if path.suffix in (".pcap", ".pcapng"))
SOME = ("kafka-4.3-kraft-java/share", "kafka-3.9-zk-auth/mechanisms", "kafka-3.9-zk-kafka-python/pinned-0.9")
CAPTURES = (
    EVERY
    if settings.get_current_profile_name() == "exhaustive"
    else [path for path in EVERY if path.relative_to(HERE).with_suffix("").as_posix() in SOME]
)
assert len(CAPTURES) >= len(SOME)

Row = dict[str, Any]


def tables_of(data: bytes) -> dict[str, list[Row]]:
    """Every row of the tables that a report reads, with every column."""
    made: dict[str, list[Row]] = {name: [] for name in TABLES}
    with contextlib.suppress(CaptureError):
        for name, batch in capture.read(io.BytesIO(data), tables=list(TABLES), name="x"):
            made[name] += batch.to_pylist()
    return made


def overview(data: bytes) -> Overview:
    def batches() -> Iterator[Any]:
        with contextlib.suppress(CaptureError):
            yield from capture.read(io.BytesIO(data), tables=list(TABLES), columns=TABLES, name="x")

    return of_tables(batches())


def exact(tables: dict[str, list[Row]]) -> Counter[str]:
    """The totals, row by row."""
    made: Counter[str] = Counter()
    for row in tables["frames"]:
        asked = row["direction"] == "request"
        made["frames"] += 1
        made["requests" if asked else "responses"] += 1
        made["request_bytes" if asked else "response_bytes"] += row["size"]
        made["errors"] += bool(row["errors"])
        made["error_codes"] += len(row["errors"] or ())
        made["not_ok"] += row["status"] != "ok"
        made["latencies"] += row["latency_ms"] is not None
    for row in tables["partitions"]:
        made["partition_rows"] += 1
        api, way = row["api_name"], row["direction"]
        name = "written" if (api, way) == ("Produce", "request") else "read"
        moves = name == "written" or (way == "response" and api in ("Fetch", "ShareFetch"))
        if moves and row["status"] == "ok" and row["record_bytes"]:
            made[f"{name}_sets"] += 1
            made[f"{name}_bytes"] += row["record_bytes"]
            made[f"{name}_batches"] += row["batches"] or 0
            made[f"{name}_records"] += row["records"] or 0
    for row in tables["connections"]:
        if row["status"] in ("ok", "encrypted"):
            made["connections"] += 1
            made["unanswered"] += row["unanswered"]
            made["tls"] += row["tls"]
            for name in ("missing_bytes", "late", "repeats", "wire_bytes"):
                made[name] += row[f"client_{name}"] + row[f"broker_{name}"]
    made["throttle_ms"] = sum(row["throttle_ms"] or 0 for row in tables["calls"] if row["status"] == "ok")
    made["records"] = sum(row["status"] in ("ok", "corrupt") for row in tables["records"])
    return made


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_totals_are_those_of_the_tables(path: Path) -> None:
    data = path.read_bytes()
    tables, over = tables_of(data), overview(data)
    assert +over.totals == +exact(tables)
    by_api: Counter[Any] = Counter((row["api_name"] or "?", row["direction"]) for row in tables["frames"])
    assert {(api, "request"): sums[0] for api, sums in over.apis.sums.items() if sums[0]} | {
        (api, "response"): sums[1] for api, sums in over.apis.sums.items() if sums[1]
    } == by_api
    totals = over.totals
    assert over.apis.total()[:5] == [
        totals[name] for name in ("requests", "responses", "request_bytes", "response_bytes", "errors")
    ]
    assert over.clients.total()[0] == totals["request_bytes"] + totals["response_bytes"]
    assert over.topics.total()[1:4] == [totals[f"written_{name}"] for name in ("bytes", "batches", "records")]
    assert over.topics.total()[4:] == [totals[f"read_{name}"] for name in ("bytes", "batches", "records")]
    assert over.partitions.total()[0] == over.data.total()[0] == totals["written_bytes"] + totals["read_bytes"]
    assert over.versions.total()[0] == sum(
        row["direction"] == "request" and row["api_version"] is not None for row in tables["frames"]
    )
    assert sum(one.count for one in over.latencies.values()) == totals["latencies"]
    told = (row for row in tables["partitions"] if row["direction"] == "response" and row["status"] == "ok")
    assert over.topic_errors.total() == [sum(row["error"] not in (None, "NONE") for row in told)]
    # Over time it is the same again.
    times = over.clock.range()
    assert sum(sum(over.traffic.values(api, times)) for api in over.traffic.of) == totals["frames"]
    assert sum(sum(over.waits.values(key, times)) for key in over.waits.of) == totals["latencies"]
    assert sum(sum(over.flow.values(key, times)) for key in over.flow.of) == over.topics.total()[0]
    assert sum(over.auditor.formats.values()) == sum(
        row["status"] == "ok" and row["magic"] is not None for row in tables["records"]
    )
    for api in over.apis.sums:
        waits = sorted(row["latency_ms"] for row in tables["frames"] if row["api_name"] == api and row["latency_ms"])
        if waits:
            median = over.latency(api).quantile(0.5)
            assert median == pytest.approx(waits[(len(waits) + 1) // 2 - 1], rel=0.011, abs=0.002)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Browser]:
    path = browser.found()
    if path is None:
        give_up(no_program("a headless Chromium", "chromium"))
    with browser.Browser.run(path, tmp_path_factory.mktemp("profile")) as running:
        yield running


def opened(chromium: browser.Browser, page: Path, **options: Any) -> None:
    chromium.open(page, **options)
    assert chromium.wrong() == []
    assert chromium.requests() == [page.resolve().as_uri()]


@pytest.mark.wide
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_page_opens_without_an_error_or_a_request(path: Path, chromium: browser.Browser, tmp_path: Path) -> None:
    over = overview(path.read_bytes())
    page = tmp_path / "report.html"
    page.write_text(render(over, [Source(path.name)]))
    opened(chromium, page)
    assert chromium.of("document.querySelectorAll('h2').length") == 14
    frames = chromium.of("JSON.parse(document.getElementById('figures').textContent).totals.frames || 0")
    assert frames == over.totals["frames"]
    if not over.totals["frames"]:
        return
    charts = chromium.of("document.querySelectorAll('.plot canvas').length")
    assert charts >= 1
    # Closer with the keyboard, and all of it again.
    seen = "document.querySelector('.plot .u-legend') && document.querySelectorAll('.plot canvas').length"
    chromium.of("document.querySelector('.plot').focus()")
    for key in ("+", "ArrowRight", "-", "0"):
        chromium.key(key, key if len(key) == 1 else "")
    assert chromium.of(seen) == charts
    # A table that is sorted and filtered.
    head = "document.querySelector('#traffic thead th:nth-child(2) button')"
    order = "[...document.querySelector('#traffic .t tbody').rows].map(row => +row.cells[1].dataset.v)"
    chromium.of(f"{head}.click(); {head}.click()")
    numbers = chromium.of(order)
    assert numbers[: len(over.apis.sums)] == sorted(sums[0] for sums in over.apis.sums.values())
    assert chromium.wrong() == []
    opened(chromium, page, width=390, height=800, dark=True, phone=True)
    assert chromium.of("document.documentElement.scrollWidth") <= 390


@pytest.mark.wide
@pytest.mark.parametrize("width", [390, 1000, 1280])
def test_names_are_whole_at_every_width(width: int, chromium: browser.Browser, tmp_path: Path) -> None:
    over = overview((HERE / "kafka-3.9-kraft-java" / "clients.pcap").read_bytes())
    over.topics.add("t" * 249, 5, 5, 1, 1, 0, 0, 0)
    page = tmp_path / "report.html"
    page.write_text(render(over, [Source("clients.pcap")]))
    opened(chromium, page, width=width, height=800, phone=width < 500)
    line = "parseFloat(getComputedStyle(document.body).lineHeight)"
    broken = chromium.of(
        "[...document.querySelector('#traffic .t tbody').rows].map(row => row.cells[0])"
        f".filter(cell => cell.firstChild && cell.clientHeight > 1.9 * {line}).map(cell => cell.textContent)"
    )
    assert broken == []
    assert chromium.of("document.querySelector('#traffic .t tbody').rows.length") > 5
    # A topic's name of the greatest length is broken into lines.
    widest = "Math.max(...[...document.querySelectorAll('.t td:first-child')].map(cell => cell.clientWidth))"
    assert chromium.of(widest) < 600
    assert chromium.of("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [390, 1280])
def test_names_in_the_picture_of_lineage_stay_in_their_boxes(
    width: int, chromium: browser.Browser, tmp_path: Path
) -> None:
    from kwire.report.lineage import Edge

    over = overview(pcap(exchange(Connection().open(), 3).packets))
    names = [f"{'com.example.' * 20}{letter * 9}.v1" for letter in "WiM語"]
    edges = [Edge(name, "writes", "2001:db8:1234:5678:9abc:def0:1234:5678", name, [], 1, 2, 3, 0, 1) for name in names]
    edges += [Edge(name, "reads", "10.0.0.1", "app", [f"group-{name}"], 1, 2, 3, 0, 1) for name in names]
    edges += [Edge("short", "reads", "10.0.0.1", "app", [], 1, 2, 3, 0, 1)]
    over.lineage.result = lambda: edges  # type: ignore[method-assign]
    page = tmp_path / "report.html"
    page.write_text(render(over, [Source("x")]))
    opened(chromium, page, width=width, height=800, phone=width < 500)
    nodes = chromium.of(
        "[...document.querySelectorAll('.graph g')].map(node => [node.querySelector('rect'), "
        "...node.querySelectorAll('text')].map(part => { const { x, width } = part.getBBox(); "
        "return [x, x + width, part.textContent]; }))"
    )
    assert len(nodes) == 4 * 3 + 2
    for box, called, where in nodes:
        assert box[0] < called[0]
        assert called[1] < (where[0] if where[2] else box[1])
        assert where[1] < box[1]
    # The ends of names are there: they say which it is.
    ends = {called[2][-4:] for _, called, where in nodes if not where[2]}
    assert ends == {"W.v1", "i.v1", "M.v1", "語.v1", "hort"}


def test_a_topic_is_drawn_with_all_of_its_arrows_or_not_at_all() -> None:
    from kwire.report.lineage import Edge

    over = overview(pcap(exchange(Connection().open(), 3).packets))
    edges = [
        Edge(f"t{k}", role, "h", f"c{n}", [], 1, 2, size, 0, 1)
        for k in range(9)
        for role, size, clients in (("writes", 1, 1), ("reads", 100 - k, 9))
        for n in range(clients)
    ]
    over.lineage.result = lambda: edges  # type: ignore[method-assign]
    page = render(over, [Source("x")])
    assert "The 6 of 9 topics with the most bytes are drawn." in page
    graph = json.loads(page.split('id="charts">')[1].split("</script>")[0])["graph"]
    topics = {k: name for k, (kind, name, _) in enumerate(graph["nodes"]) if kind == "topic"}
    assert sorted(topics.values()) == [f"t{k}" for k in range(6)]
    ends = Counter(end for one, other, *_ in graph["arrows"] for end in (one, other) if end in topics)
    assert set(ends.values()) == {10}
    # One that has too many alone has the largest of them.
    over.lineage.result = lambda: [Edge("t", "reads", "h", f"c{n}", [], 1, 2, n, 0, 1) for n in range(99)]  # type: ignore[method-assign]
    page = render(over, [Source("x")])
    graph = json.loads(page.split('id="charts">')[1].split("</script>")[0])["graph"]
    assert sorted(size for _, _, size, _ in graph["arrows"]) == list(range(39, 99))


def test_names_that_are_scripts_do_nothing(chromium: browser.Browser, tmp_path: Path) -> None:
    name = "<script>document.title='x'</script><img src=//10.0.0.1/x onerror=document.title='x'>"
    over = overview(pcap(exchange(Connection().open(), 3).packets))
    for _ in range(3):
        over.topics.add(name, 5, 5, 1, 1, 0, 0, 0)
        over.clients.add((name, name), 5, 1, 1, 1, 1)
        over.traffic.add(name, over.clock.range()[0], 1, 1, 1, 1)
        over.waits.add((name, 10), over.clock.range()[0], 1)
        over.groups.add(name, 1, 1, 1, 1, 1)
        over.errors.add((name, name, name, name), 1)
    from kwire.report.lineage import Edge

    over.lineage.result = lambda: [Edge(name, "writes", name, name, [], 1, 2, 3, 0, 1)]  # type: ignore[method-assign]
    page = tmp_path / "report.html"
    page.write_text(render(over, [Source(name, [name])], None, name))
    opened(chromium, page)
    assert chromium.of("document.title").startswith("Kafka traffic")
    assert chromium.of("document.images.length") == 0
    assert chromium.of("[...document.scripts].length") == 4
    assert chromium.of("document.body.textContent").count("<script>document.title") > 5
    assert not re.search("<img", page.read_text())
