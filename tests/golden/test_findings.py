"""Findings of recorded clients: those that behave badly, those that nearly do; and what brokers themselves say.

The captures and what stands beside them are made by ``record_findings.py``.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from pathlib import Path

import pytest

from kwire import capture
from kwire.kernels.engine import MACHINE, using
from kwire.report.findings import RULES, Finder, needed

HERE = Path(__file__).parent / "findings"


def finder_of(name: str, rules: list[str] | None = None, **options: bool) -> Finder:
    columns = needed(rules)
    finder = Finder(rules)
    with using(MACHINE), gzip.open(HERE / f"{name}.gz") as file:
        for one, batch in capture.read(file, tables=list(columns), columns=columns, name=name, **options):
            finder.add(one, batch)
    return finder


GOLDEN = Path(__file__).parent
HEALTHY = (
    *("kafka-4.3-kraft-*", "kafka-3.9-kraft-*", "kafka-3.9-zk-*", "kafka-4-telemetry", "tls/*", "tunnels/*"),
    *("groups", "transactions"),
)
OF_TOURS = {"mixed-acks", "classic-group"}
"""Each client of a tour sends with acks=0, 1 and all, and joins groups of the old protocol too."""
ON_PURPOSE = {
    "kafka-4.3-kraft-auth/mechanisms.pcap": {"sasl-failures"},
    "kafka-3.9-zk-auth/mechanisms.pcap": {"sasl-failures"},
    # An old consumer reads what is compressed with zstd.
    "kafka-3.9-kraft-kafka-python/conversions.pcap": {"fatal-errors"},
    "kafka-4-telemetry/refusals.pcap": {"fatal-errors"},
    # Share groups let locks run out, and reject records. Producers fence each other.
    "groups/java.gz": {"lock-timeouts"},
    "groups/letters.gz": {"dead-letters"},
    "transactions/transactions.gz": {"zombie-producers", "fenced-producers"},
}
"""What was done wrong in order to record it."""


def healthy() -> list[str]:
    found = [file for pattern in HEALTHY for file in GOLDEN.glob(f"{pattern}/**/*")]
    captures = [file for file in found if file.suffix in (".pcap", ".pcapng", ".gz") and "-raw" not in str(file)]
    return sorted({str(file.relative_to(GOLDEN)) for file in captures})


@pytest.mark.wide
@pytest.mark.parametrize("name", healthy())
def test_healthy_clients_give_no_finding_that_an_expert_would_not_sign(name: str) -> None:
    columns, finder = needed(), Finder()
    for one, batch in capture.read(GOLDEN / name, tables=list(columns), columns=columns, name=name):
        finder.add(one, batch)
    found = {one.rule for one in finder.result()}
    assert found - OF_TOURS == ON_PURPOSE.get(name, set())


def test_lag_is_what_the_tool_of_the_broker_says() -> None:
    rows = (line.split() for line in (HERE / "lag.txt").read_text().splitlines())
    told = {
        (row[0], row[1], int(row[2])): [int(one) for one in row[3:6]]
        for row in rows
        if len(row) == 9 and row[2].isdigit()
    }
    assert len(told) == 12
    finder = finder_of("lag", ["lag"])
    ends = finder.newest()
    assert {(group, topic, partition): lag for group, topic, partition, lag in finder.lags()} == {
        place: lag for place, (_, _, lag) in told.items()
    }
    assert {place: ends[place[1:]] for place in told} == {place: end for place, (_, end, _) in told.items()}


def test_denials_and_principals_are_those_of_the_authorizers_log() -> None:
    log = (HERE / "denials.log").read_text()
    told = Counter(re.findall(r"Principal = User:(\w+) is Denied operation .* for request = (\w+)", log))
    assert sum(told.values()) == len(log.splitlines()) == 7
    found = finder_of("denials", ["denials", "sasl-failures"], secrets=True).result()
    denied: Counter[tuple[str, str]] = Counter()
    for one in found:
        if one.rule == "denials":
            api = re.search(r"in \d+ (\w+) responses?", one.summary)
            assert api is not None
            assert one.client_id == f"of-{one.principal}"
            denied[str(one.principal), api[1]] += one.count
    assert denied == told
    (failed,) = (one for one in found if one.rule == "sasl-failures")
    assert (failed.principal, failed.client_id) == ("kwire", "of-kwire")
    # Without leave nobody is named.
    hidden = finder_of("denials", ["denials", "sasl-failures"]).result()
    assert {one.principal for one in hidden} == {None}
    assert sum(one.count for one in hidden) == sum(one.count for one in found)


ELSEWHERE = {
    *("stale-leaders", "denials", "sasl-failures", "fatal-errors", "cut-off-clients", "out-of-order-responses"),
    *("offset-resets", "stalled-brokers", "aborted-transactions", "duplicate-produces"),
    *("late-acks", "lookup-storm", "no-progress", "offline-partitions"),
    *("small-fetches", "tls-mismatch", "unreachable-brokers", "wrong-times"),
}
"""Rules of the other captures, and of what no client of this one was told."""

OF_GROUPS = {
    "shares": {"poison-records", "lock-timeouts", "released-records", "dead-letters", "stuck-reconciliation",
               "classic-group"},
    "classic": {"cooperative-churn", "commits-in-rebalance", "unknown-topics", "no-acks", "unordered-retries"},
    "sessions": {"short-sasl-sessions", "mixed-versions", "fetch-sessions"},
    "coordinators": {"coordinator-churn"},
    "committed": {"hanging-transactions", "held-back-readers", "zombie-producers"},
}  # fmt: skip
"""Rules of the captures that ``record_group_findings.py`` makes."""


def test_clients_that_behave_badly_are_found_and_no_others() -> None:
    found = finder_of("findings").result()
    by = {(one.rule, one.client_id or one.group_id or one.topic) for one in found}
    of_values = {name for name, rule in RULES.items() if rule.of_values}
    shown = set(RULES) - of_values - ELSEWHERE - set().union(*OF_GROUPS.values())
    assert {rule for rule, _ in by} == shown
    of_topics = {"no-compression": "no-compression", "skewed-partitions": "bad-skewed", "retried-batches": "retried"}
    wanted = {(rule, of_topics.get(rule, f"bad-{rule}")) for rule in shown}
    assert by == wanted
    for one in found:
        assert one.evidence


ALSO = {
    ("rebalance-loop", "bad-cooperative-churn"),
    ("poison-records", "bad-lock-timeouts"),
    ("fenced-producers", "bad-zombie-producers"),
    # Each commits all the time, so that some commits come too late.
    *(("over-committing", f"{name}-commits-in-rebalance") for name in ("bad", "near")),
}
"""What else is true of these clients."""


@pytest.mark.wide
@pytest.mark.parametrize("name", OF_GROUPS)
def test_groups_and_sessions_that_go_badly_are_found_and_no_others(name: str) -> None:
    found = finder_of(name).result()
    by = {(one.rule, one.client_id or one.group_id or one.topic) for one in found}
    assert by - ALSO == {(rule, f"bad-{rule}") for rule in OF_GROUPS[name]}
    assert all(one.evidence for one in found)


def test_members_that_come_and_go_or_freeze_are_found_in_groups_of_each_newer_protocol() -> None:
    found = finder_of("protocols").result()
    assert {(one.rule, one.group_id) for one in found} == {
        (rule, f"bad-{rule}-{kind}")
        for rule in ("rebalance-loop", "late-heartbeats")
        for kind in ("consumer", "share", "streams")
    }
    for one in found:
        if one.rule == "rebalance-loop":
            assert "; causes: join (9), leave (" in one.summary
        else:
            # Another one froze for 30 s.
            assert one.summary.startswith("up to 52.")


def test_a_member_of_a_share_group_that_acknowledges_too_late_is_found_and_the_other_is_not() -> None:
    (one,) = finder_of("../groups/java", ["lock-timeouts"]).result()
    assert (one.group_id, one.count) == ("share", 5)
    assert one.summary.endswith("within 2 s")


def test_dead_letters_of_a_share_group_are_found_where_the_broker_writes_them() -> None:
    (one,) = finder_of("../groups/letters").result()
    assert (one.rule, one.topic, one.count) == ("dead-letters", "dlq.shared", 4)
    # A record was rejected there too, but the group has no such topic.
    assert not finder_of("../groups/java", ["dead-letters"]).result()


def test_clients_that_write_to_a_broker_that_does_not_lead_are_found() -> None:
    (one,) = finder_of("leaders").result()
    assert (one.rule, one.client_id, one.count) == ("stale-leaders", "bad-stale-leaders", 25)
    assert one.evidence


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("no-tls-where-there-is-some", [("tls-mismatch", "kcat", 14), ("tls-mismatch", "java", 2)]),
        ("tls-where-there-is-none", [("tls-mismatch", None, 69)]),
        ("times-in-seconds", [("wrong-times", None, 5)]),
        ("process-that-freezes", [("late-heartbeats", "kcat", 1)]),
    ],
)
def test_scenarios_on_a_cluster_of_three_nodes_are_found(
    scenario: str, expected: list[tuple[str, str | None, int]]
) -> None:
    found = finder_of(scenario).result()
    assert [(one.rule, one.client_id, one.count) for one in found] == [
        (rule, client and f"{scenario}-{client}", count) for rule, client, count in expected
    ]


def test_faults_of_brokers_and_what_clients_make_of_them_are_found() -> None:
    found = finder_of("faults").result()
    assert {(one.rule, one.client_id) for one in found} == {
        ("stalled-brokers", None),
        *((rule, f"bad-{rule}") for rule in ("offset-resets", "duplicate-produces", "aborted-transactions", "lag")),
        # In the end these groups commit a lower offset.
        *(("offsets-back", f"{name}-offset-resets") for name in ("bad", "near")),
    }
    by = {one.rule: one for one in found}
    assert by["offset-resets"].topic == "reset"
    assert by["offset-resets"].summary.endswith("; then it asked for the earliest one")
    assert by["stalled-brokers"].count == 1
    assert by["aborted-transactions"].summary == "12 of 16 transactions were aborted"
    assert by["lag"].count < 10_000
    assert "although the group works" in by["lag"].summary
