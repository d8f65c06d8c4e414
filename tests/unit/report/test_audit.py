"""Which clients an upgrade breaks: verdicts, and the golden captures of old and current clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire import capture
from kwire.errors import UnsupportedVersionError
from kwire.report import audit
from kwire.report.audit import CONNECTIONS, RECORDS, Auditor, Client
from kwire.report.html import page
from kwire.tables import table

GOLDEN = Path(__file__).parents[2] / "golden"
FETCH, PRODUCE, API_VERSIONS, HEARTBEAT = 1, 0, 18, 12

FIELDS = table("connections").chosen(CONNECTIONS)


def connection(
    uses: dict[tuple[int, int], int], announced: dict[int, int] | None = None, **more: Any
) -> dict[str, Any]:
    """A row of ``connections``. ``announced``: by API key, the newest version that the broker says it has."""
    said = None
    if announced is not None:
        said = [{"api_key": key, "min_version": 0, "max_version": newest} for key, newest in announced.items()]
    return {
        "capture": "x",
        "connection": 0,
        "client_host": "10.0.0.1",
        "client_ids": ["one"],
        "software_name": None,
        "software_version": None,
        "apis": [
            {"api_key": key, "api_name": None, "api_version": version, "requests": count}
            for (key, version), count in uses.items()
        ],
        "broker_apis": said,
        "requests": sum(uses.values()),
        "status": "ok",
    } | more


def judged(*rows: dict[str, Any], target: str = "4.0", records: list[dict[str, Any]] | None = None) -> list[Client]:
    auditor = Auditor(target)
    auditor.add_connections(pa.RecordBatch.from_pylist(list(rows), schema=FIELDS))
    if records:
        auditor.add_records(pa.RecordBatch.from_pylist(records, schema=table("records").chosen(RECORDS)))
    return auditor.result().clients


def verdict(*rows: dict[str, Any], **options: Any) -> str:
    (client,) = judged(*rows, **options)
    return client.verdict


def test_what_the_target_serves_works() -> None:
    assert verdict(connection({(PRODUCE, 3): 1, (FETCH, 17): 1})) == "works"


def test_what_it_does_not_serve_breaks() -> None:
    (client,) = judged(connection({(PRODUCE, 2): 7, (FETCH, 4): 1}))
    assert (client.verdict, client.reasons) == ("breaks", ["Produce v2 (7): 4.0 serves v3-12"])
    assert client.advice is not None
    assert "0.11" in client.advice
    assert verdict(connection({(PRODUCE, 2): 7}), target="3.9") == "works"


def test_an_old_version_beside_a_newer_broker_is_the_clients_own() -> None:
    assert verdict(connection({(API_VERSIONS, 0): 1, (FETCH, 3): 1}, {FETCH: 17})) == "breaks"


def test_an_old_version_beside_an_old_broker_tells_nothing() -> None:
    (client,) = judged(connection({(API_VERSIONS, 0): 1, (FETCH, 3): 1}, {FETCH: 3}))
    assert client.verdict == "unknown"
    assert "the broker had no newer one" in client.reasons[0]
    # Nor does one whose answer was not captured. A client that does not ask has one version.
    assert verdict(connection({(API_VERSIONS, 0): 1, (FETCH, 3): 1})) == "unknown"
    assert verdict(connection({(FETCH, 3): 1}, {FETCH: 3})) == "breaks"


def test_a_newer_version_is_no_harm_where_the_client_asks() -> None:
    assert verdict(connection({(API_VERSIONS, 4): 1, (FETCH, 18): 1})) == "works"
    assert verdict(connection({(FETCH, 18): 1})) == "breaks"


def test_an_api_that_is_gone_breaks_and_one_that_is_newer_is_not_known() -> None:
    assert verdict(connection({(API_VERSIONS, 3): 1, (88, 0): 1}), target="3.9") == "unknown"
    assert verdict(connection({(88, 0): 1}), target="3.9") == "breaks"


def test_a_patch_release_that_was_different_is() -> None:
    assert verdict(connection({(11, 0): 1}), target="4.0.0") == "breaks"
    assert verdict(connection({(11, 0): 1}), target="4.0.1") == "works"


def test_records_in_an_old_format_break() -> None:
    record = {"capture": "x", "connection": 0, "source": "produce", "magic": 1, "compression": "gzip", "status": "ok"}
    row = connection({(PRODUCE, 3): 1})
    (client,) = judged(row, records=[record, record])
    assert client.verdict == "breaks"
    assert client.formats == {("produce", 1, "gzip"): 2}
    assert verdict(row, records=[record | {"magic": 2}]) == "works"
    assert verdict(row, records=[record | {"source": "fetch"}]) == "works"
    assert verdict(row, records=[record | {"connection": 9}]) == "works"
    assert verdict(row, records=[record], target="3.9") == "works"


def test_brokers_are_not_judged() -> None:
    assert verdict(connection({(FETCH, 3): 1}, client_ids=["broker-1-fetcher-0"])) == "broker"
    assert verdict(connection({(6, 7): 1})) == "broker"
    assert verdict(connection({(FETCH, 3): 1}, client_ids=["my-broker-1-fetcher-0"])) == "breaks"


def test_encrypted_connections_are_not_cleared() -> None:
    (client,) = judged(connection({}, status="encrypted"), connection({}, status="encrypted"))
    assert (client.verdict, client.encrypted) == ("unknown", 2)


def test_other_connections_are_left_out_and_clients_are_told_apart() -> None:
    assert judged(connection({(0, 0): 1}, status="other"), connection({})) == []
    found = judged(
        connection({(FETCH, 17): 5}),
        connection({(FETCH, 3): 1}, client_ids=["two"]),
        connection({(FETCH, 17): 1}),
        connection({(FETCH, 17): 1}, software_name="x"),
    )
    assert [(one.verdict, one.client_ids, one.software_name, one.connections) for one in found] == [
        ("breaks", ("two",), None, 1),
        ("works", ("one",), None, 2),
        ("works", ("one",), "x", 1),
    ]


def test_an_unknown_release_is_an_error() -> None:
    with pytest.raises(UnsupportedVersionError):
        Auditor("7.3")


EXPECTED = {
    "kafka-3.9-zk-kafka-python/pinned-0.9.pcap": {"breaks": 3, "unknown": 0, "works": 1, "broker": 0},
    "kafka-3.9-zk-kafka-python/pinned-0.10.1.pcap": {"breaks": 4, "unknown": 0, "works": 0, "broker": 0},
    "kafka-3.9-zk-librdkafka/fallback-0.9.pcap": {"breaks": 1, "unknown": 0, "works": 0, "broker": 0},
    "kafka-4.3-kraft-librdkafka/current.pcap": {"breaks": 0, "unknown": 0, "works": 1, "broker": 0},
    "kafka-4.3-kraft-aiokafka/current.pcapng": None,
    "kafka-4.3-kraft-franz-go/current.pcap": None,
    "kafka-4.3-kraft-kafka-python/unpinned.pcap": None,
    "kafka-3.9-kraft-kafkajs/current.pcap": None,
    "kafka-4.3-kraft-java/clients.pcap": {"breaks": 0, "unknown": 0, "works": 5, "broker": 0},
}
"""Verdicts on the capture matrix; None: every client works."""


@pytest.mark.parametrize("name", EXPECTED)
def test_the_capture_matrix(name: str) -> None:
    columns = {"connections": CONNECTIONS, "records": RECORDS}
    with (GOLDEN / name).open("rb") as file:
        found = audit.of_tables(capture.read(file, tables=list(columns), columns=columns, name=name))
    counts = EXPECTED[name]
    if counts is None:
        assert {one.verdict for one in found.clients} == {"works"}
    else:
        assert found.counts() == counts
    assert found.breaks == any(one.verdict == "breaks" for one in found.clients)
    found.batch().validate(full=True)


def test_the_page_shows_what_is_hostile_as_text() -> None:
    auditor = Auditor()
    ids = ["<script>alert(1)</script>", "\x1b[31m"]
    row = connection({(FETCH, 3): 1}, client_ids=ids, software_name='"><img src=x>')
    auditor.add_connections(pa.RecordBatch.from_pylist([row], schema=FIELDS))
    found = auditor.result()
    text = page("Audit", audit.summary(found), audit.SHOWN, found.rows())
    assert "<script" not in text
    assert "<img" not in text
    assert "\x1b" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "default-src 'none'" in text
