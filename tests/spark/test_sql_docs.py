"""The SQL of docs/how-to/sql: its rows are those that Python makes by loops, and the pages show the first of them.

``python tests/spark/test_sql_docs.py`` writes the rows into the pages.
"""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from docs_queries import ROOT, Case, Row, Rows, Tables, compare, grouped, path_of, read, total, views, written
from pyspark.sql import SparkSession

PAGES = {
    f"docs/how-to/sql/{name}.md": cases for name, cases in (("README", 1), ("groups", 3), ("flow", 3), ("clients", 4))
}
"""The pages, with the number of queries of each."""
JAVA = "kafka-4.3-kraft-java/clients"
COLUMNS = {
    "frames": (),
    "messages": (),
    "partitions": (),
    "calls": (),
    "connections": (),
    "records": ("delivery_count", "committed_offset"),
}
SHOWN = 6
"""Rows of a query that the page has."""
MORE = {"VIEW exchanges": 2, "'is told '": 16}
"""The same of some queries."""
MOST = 48
"""Characters of a value there."""

Body = dict[str, Any]


def exchanges(made: Tables) -> list[Row]:
    """Requests that can be read, each with the response to it, if there is one."""
    ids: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for one in made["messages"]:
        if one["status"] == "ok":
            ids[one["capture"], one["connection"], one["correlation_id"]].append(one)
    found = []
    for same in ids.values():
        waiting: Row | None = None
        for one in sorted(same, key=lambda each: (each["timestamp"], each["direction"])):
            if one["direction"] == "request":
                waiting = {**one, "request": one["body"], "response": None, "answered": None}
                found.append(waiting)
            elif waiting is not None:
                waiting.update(response=one["body"], answered=one["timestamp"])
                waiting = None
    return found


def opened(made: Tables, *apis: str) -> Iterable[tuple[Row, Body, Body]]:
    for one in exchanges(made):
        if one["api_name"] in apis:
            yield one, json.loads(one["request"]), json.loads(one["response"] or "{}")


def view(made: Tables) -> Rows:
    names = (
        *("capture", "connection", "frame", "timestamp", "client_host", "client_id", "api_name", "api_version"),
        *("request", "response", "answered"),
    )
    return Counter(tuple(one[name] for name in names) for one in exchanges(made))


def history(made: Tables) -> Rows:
    found: Rows = Counter()
    apis = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "ConsumerGroupHeartbeat")
    for one, asked, answer in opened(made, *apis):
        api, error, epoch = one["api_name"], answer.get("error_code"), asked.get("member_epoch")
        if not answer:
            event = f"{api} without an answer"
        elif error != "NONE":
            event = f"is told {error}"
        elif api == "LeaveGroup" or (epoch is not None and epoch < 0):
            event = "leaves"
        elif api == "JoinGroup" or epoch == 0:
            event = "joins"
        elif api == "SyncGroup" or answer.get("assignment") is not None:
            event = "gets partitions"
        else:
            continue
        generation = next(
            (
                body[name]
                for body, name in ((answer, "generation_id"), (answer, "member_epoch"), (asked, "generation_id"))
                if body.get(name) is not None
            ),
            None,
        )
        for member in asked.get("members") or [{}]:
            who = member.get("member_id") or asked.get("member_id") or answer.get("member_id")
            why = member.get("reason") or asked.get("reason")
            found[one["timestamp"], asked["group_id"], one["client_id"], event, generation, why, who] += 1
    return found


def generations(made: Tables) -> Rows:
    some: dict[tuple[Any, ...], list[tuple[Row, Body, Body]]] = defaultdict(list)
    for one, asked, answer in opened(made, "JoinGroup", "SyncGroup"):
        if answer.get("error_code") == "NONE":
            generation = answer["generation_id"] if "generation_id" in answer else asked["generation_id"]
            some[asked["group_id"], generation].append((one, asked, answer))
    return Counter(
        (
            *key,
            len({answer.get("member_id") or asked["member_id"] for _, asked, answer in each}),
            max((answer["protocol_name"] for *_, answer in each if answer.get("protocol_name")), default=None),
            max((answer["leader"] for *_, answer in each if answer.get("leader")), default=None),
            min(one["timestamp"] for one, *_ in each),
            millis(max(one["answered"] for one, *_ in each)) - millis(min(one["timestamp"] for one, *_ in each)),
        )
        for key, each in some.items()
    )


def millis(at: datetime) -> int:
    return (at - datetime.fromtimestamp(0, at.tzinfo)) // timedelta(milliseconds=1)


def names(made: Tables) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in made["partitions"]:
        if one["topic_id"] is not None and one["topic"] is not None:
            found[one["topic_id"]] = max(one["topic"], found.get(one["topic_id"], ""))
    return found


def assignments(made: Tables) -> Rows:
    topics = names(made)
    found: Rows = Counter()
    for one, asked, answer in opened(made, "ConsumerGroupHeartbeat"):
        if answer.get("assignment") is not None:
            has = sorted(
                f"{topics.get(of['topic_id'], of['topic_id'])}:{','.join(map(str, sorted(of['partitions'])))}"
                for of in answer["assignment"]["topic_partitions"]
            )
            found[one["answered"], asked["group_id"], one["client_id"], answer["member_epoch"], " ".join(has)] += 1
    return found


def latencies(made: Tables) -> Rows:
    sent: dict[tuple[Any, ...], list[datetime]] = defaultdict(list)
    got: dict[tuple[Any, ...], list[datetime]] = defaultdict(list)
    for one in made["records"]:
        if one["status"] == "ok" and one["topic"] is not None:
            mine, offset = (sent, one["committed_offset"]) if one["source"] == "produce" else (got, one["offset"])
            if offset is not None:
                mine[one["topic"], one["partition"], offset].append(one["frame_timestamp"])
    of: dict[str, list[float | None]] = defaultdict(list)
    for key, times in sent.items():
        took = (min(got[key]) - min(times)) / timedelta(milliseconds=1) if key in got else None
        of[key[0]].append(took)
    found: Rows = Counter()
    for topic, each in of.items():
        known = [one for one in each if one is not None]
        spread = (min(known), statistics.median(known), float(np.percentile(known, 99)), max(known)) if known else ()
        found[topic, len(each), len(each) - len(known), *(spread or (None,) * 4)] += 1
    return found


def transactions(made: Tables) -> Rows:
    key = ("capture", "connection", "correlation_id")
    refused = {
        tuple(one[name] for name in key)
        for one in made["frames"]
        if one["api_name"] == "EndTxn" and one["direction"] == "response" and one["errors"]
    }
    begins = ("AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "Produce")
    calls = [
        one
        for one in made["calls"]
        if one["direction"] == "request" and one["status"] == "ok" and one["transactional_id"] is not None
        if one["api_name"] in (*begins, "EndTxn", "InitProducerId")
        if tuple(one[name] for name in key) not in refused
    ]
    began: dict[str, datetime] = {}
    ends: dict[str, Counter[str]] = defaultdict(Counter)
    times: dict[str, list[float]] = defaultdict(list)
    for one in sorted(calls, key=lambda each: (each["frame_timestamp"], each["frame"])):
        producer = one["transactional_id"]
        if one["api_name"] in begins:
            began.setdefault(producer, one["frame_timestamp"])
        elif producer in began:
            since = began.pop(producer)
            if one["api_name"] == "InitProducerId":
                ends[producer]["given up"] += 1
            else:
                ends[producer]["committed" if one["committed"] else "aborted"] += 1
                times[producer].append((one["frame_timestamp"] - since) / timedelta(milliseconds=1))
    for producer in began:
        ends[producer]["open"] += 1
    return Counter(
        (
            producer,
            some.total(),
            *(some[end] for end in ("committed", "aborted", "given up", "open")),
            max(times[producer], default=None),
        )
        for producer, some in ends.items()
    )


def shared(made: Tables) -> Rows:
    topics = names(made)
    acquired: dict[tuple[str, str], list[int]] = {}
    answers: dict[tuple[str, str], Counter[int]] = {}
    for _, asked, answer in opened(made, "ShareFetch", "ShareAcknowledge"):
        for topic in answer.get("responses") or ():
            for part in topic["partitions"]:
                for some in part.get("acquired_records") or ():
                    sums = acquired.setdefault((asked["group_id"], topic["topic_id"]), [0, 0, 0])
                    count = some["last_offset"] - some["first_offset"] + 1
                    sums[0] += count
                    sums[1] += count if some["delivery_count"] > 1 else 0
                    sums[2] = max(sums[2], some["delivery_count"])
        for topic in asked.get("topics") or ():
            for part in topic["partitions"]:
                for some in part.get("acknowledgement_batches") or ():
                    types = some["acknowledge_types"]
                    count = some["last_offset"] - some["first_offset"] + 1
                    types = types if len(types) == count else types * count
                    answers.setdefault((asked["group_id"], topic["topic_id"]), Counter()).update(types)
    found: Rows = Counter()
    for key in {*acquired, *answers}:
        types = [answers[key][one] for one in (1, 2, 3, 0)] if key in answers else [None] * 4
        found[key[0], topics.get(key[1], key[1]), *acquired.get(key, [None] * 3), *types] += 1
    return found


def payloads(made: Tables) -> Rows:
    rows = []
    for one in made["records"]:
        if one["source"] == "produce" and one["status"] == "ok":
            header = next((each["value"] for each in one["headers"] or () if each["key"] == "ce_type"), None)
            fields = parsed(one["value"])
            rows.append({"topic": one["topic"], "type": text(header), **fields})
    return Counter(
        (*key, len(each), sum(one["order"] is not None for one in each), total(one["total"] for one in each))
        for key, each in grouped(rows, "topic", "type").items()
    )


def text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def parsed(value: bytes | None) -> Row:
    try:
        found = json.loads(text(value) or "")
    except ValueError:
        found = None
    found = found if isinstance(found, dict) else {}
    return {"order": found.get("order"), "total": found.get("total")}


def software(made: Tables) -> Rows:
    rows = (one for one in made["connections"] if one["status"] == "ok")
    return Counter(
        (
            *key,
            len(each),
            len({one["client_host"] for one in each}),
            ", ".join(sorted({client for one in each for client in one["client_ids"]})),
            sum(one["requests"] for one in each),
            min(one["first_seen"] for one in each),
        )
        for key, each in grouped(rows, "software_name", "software_version").items()
    )


def failures(made: Tables) -> Rows:
    rows = (one for one in made["frames"] if one["direction"] == "response" and one["status"] == "ok")
    found: Rows = Counter()
    for key, each in grouped(rows, "client_id", "client_host", "api_name").items():
        failed = sum(bool(one["errors"]) for one in each)
        if failed:
            words = ", ".join(sorted({error for one in each for error in one["errors"] or ()}))
            found[*key, len(each), failed, round(100 * failed / len(each), 1), words] += 1
    return found


def lags(made: Tables) -> Rows:
    commits, key = (
        ("OffsetCommit", "TxnOffsetCommit"),
        ("capture", "connection", "correlation_id", "topic", "partition"),
    )
    refused = {
        tuple(one[name] for name in key)
        for one in made["partitions"]
        if one["api_name"] in commits and one["direction"] == "response" and one["error"] not in (None, "NONE")
    }
    rows = [one for one in made["partitions"] if one["status"] == "ok" and one["topic"] is not None]
    ends = [
        one
        for one in rows
        if one["api_name"] == "Fetch" and one["direction"] == "response" and one["high_watermark"] is not None
    ]
    of: dict[tuple[Any, ...], list[tuple[datetime, int]]] = defaultdict(list)
    for one in rows:
        if one["api_name"] in commits and one["direction"] == "request" and tuple(map(one.get, key)) not in refused:
            known = [
                end["high_watermark"]
                for end in ends
                if (end["topic"], end["partition"]) == (one["topic"], one["partition"])
                and end["frame_timestamp"] <= one["frame_timestamp"]
            ]
            if known and max(known) >= 0:
                lag = max(known) - one["offset"]
                of[one["group_id"], one["topic"], one["partition"]].append((one["frame_timestamp"], lag))
    return Counter(
        (*group, len(each), max(each)[0], max(each)[1], max(lag for _, lag in each)) for group, each in of.items()
    )


CASES = [
    Case("VIEW exchanges", view),
    Case("'is told '", history),
    Case("AS took_ms", generations),
    Case("AS has", assignments),
    Case("AS not_fetched", latencies),
    Case("AS longest_ms", transactions),
    Case("AS most_deliveries", shared),
    Case("with_order", payloads),
    Case("software_version", software),
    Case("AS percent", failures),
    Case("AS last_commit", lags),
]
CAPTURES = [JAVA] * 6 + [
    "kafka-4.3-kraft-java/share",
    "kafka-4.3-kraft-events/events",
    "kafka-4-telemetry/none",
    *(["kafka-4.3-kraft-librdkafka/current"] * 2),
]
"""Of which capture the page shows rows."""
OTHERS = (
    "kafka-4.3-kraft-franz-go/current",
    "kafka-4.3-kraft-kafka-python/unpinned",
    # What nobody answers, and what cannot be read.
    "kafka-4.4-kraft-raw/every-version",
    "kafka-3.9-zk-kafka-python/pinned-0.9",
)


def prepared(spark: SparkSession, number: int) -> str:
    """A query, after the view that others need; of the view, what reads it."""
    queries = [query for page in PAGES for query in written(page)]
    spark.sql(queries[0])
    return "SELECT * FROM exchanges ORDER BY timestamp, frame" if number == 0 else queries[number]


@pytest.mark.wide
@pytest.mark.parametrize("name", list(dict.fromkeys((*CAPTURES, *OTHERS))))
def test_rows_are_those_that_python_makes_of_the_tables(spark: SparkSession, name: str) -> None:
    made = read([name], COLUMNS)
    with views(spark, made) as tables:
        for number, case in enumerate(CASES):
            compare(spark, prepared(spark, number), case, tables, empty=name != CAPTURES[number])
    spark.catalog.dropTempView("exchanges")


def shown(spark: SparkSession, number: int) -> str:
    """The first rows of a query, as the page has them."""
    rows = MORE.get(CASES[number].text, SHOWN)
    found: pa.Table = spark.sql(prepared(spark, number)).limit(rows).toArrow()
    lines = [found.schema.names, ["---"] * found.num_columns]
    lines += [[_cell(value) for value in row] for row in zip(*(one.to_pylist() for one in found.columns), strict=True)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%H:%M:%S.%f")[:-3]
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    word = "" if value is None else str(value).replace("|", "\\|")
    return word if len(word) <= MOST else f"{word[: MOST - 1]}…"


_PLACE = re.compile(r"(^```sql\n.*?\n```\n\n)(<!-- rows -->\n|(?:\|[^\n]*\n)+)", re.DOTALL | re.MULTILINE)


def filled(spark: SparkSession) -> dict[str, str]:
    """The pages with the rows that their queries give now."""
    rows = []
    for number, name in enumerate(CAPTURES):
        with views(spark, read([name], COLUMNS)):
            rows.append(shown(spark, number))
    left = iter(rows)
    texts = {page: (ROOT / page).read_text("utf-8") for page in PAGES}
    return {page: _PLACE.sub(lambda place: f"{place[1]}{next(left)}\n", text) for page, text in texts.items()}


@pytest.mark.wide
def test_the_views_are_made_as_the_page_says(spark: SparkSession) -> None:
    page = (ROOT / next(iter(PAGES))).read_text("utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert '"captures/*.pcap"' in code
    exec(code.replace('"captures/*.pcap"', repr(str(path_of(JAVA)))), {"spark": spark})
    of_arrow = read([JAVA], COLUMNS)
    for number in range(len(CASES)):
        spark.sql(prepared(spark, number)).limit(1).collect()
    for name, one in of_arrow.items():
        assert spark.table(name).count() == one.num_rows
        spark.catalog.dropTempView(name)


@pytest.mark.wide
def test_the_pages_show_the_first_rows(spark: SparkSession) -> None:
    texts = {page: (ROOT / page).read_text("utf-8") for page in PAGES}
    assert {page: len(_PLACE.findall(text)) for page, text in texts.items()} == PAGES
    assert filled(spark) == texts


if __name__ == "__main__":
    import kwire.spark

    made = SparkSession.builder.master("local[2]").config("spark.log.level", "ERROR").getOrCreate()
    kwire.spark.register(made)
    for page, text in filled(made).items():
        (ROOT / page).write_text(text, "utf-8")
