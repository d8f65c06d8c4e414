"""What the commands that give answers have in common: several captures, and what cannot be read."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from packets import Connection, pcap

import kwire
from kwire.cli import answers, main
from kwire.messages import OffsetCommitRequest
from kwire.testing.packets import read as packets_of
from kwire.testing.packets import write_pcap

GOLDEN = Path(__file__).parents[2] / "golden"
PORT = (9092).to_bytes(2, "big")
TLS = str(GOLDEN / "tls" / "kafka-4.3-kraft-java" / "agent.pcap")


def committing(path: Path, offset: int, hour: int) -> str:
    """A capture of that hour, in which a group commits an offset."""
    of = OffsetCommitRequest
    partition = of.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = of.OffsetCommitRequestTopic(name="t", partitions=[partition])
    request = kwire.encode_request(of(group_id="g", topics=[topic]), api_version=2, correlation_id=1, client_id="c")
    time = 1_700_000_000_000_000_000 + hour * 3_600_000_000_000
    path.write_bytes(pcap(Connection(time=time).open().send(request).packets))
    return str(path)


def told(capsys: pytest.CaptureFixture[str], *args: str) -> list[dict[str, Any]]:
    assert main([*args, "--format", "json"]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["rows"]
    return rows


@pytest.mark.wide
def test_captures_are_read_in_order_of_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # As a shell sorts what tcpdump has rotated: x, x1, x10, x2.
    names = [
        committing(tmp_path / name, offset, offset) for name, offset in (("x", 1), ("x1", 2), ("x10", 9), ("x2", 3))
    ]
    for order in itertools.permutations(names):
        assert told(capsys, "findings", *order, "--rule", "offsets-back") == []
    (row,) = told(capsys, "findings", committing(tmp_path / "y", 0, 10), *names, "--rule", "offsets-back")
    assert row["count"] == 1
    assert [one["capture"] for one in row["evidence"]] == [str(tmp_path / "y")]


def test_names_of_topics_go_on_from_one_capture_to_the_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packets = packets_of((GOLDEN / "kafka-4.3-kraft-librdkafka" / "current.pcap").read_bytes())
    files = []
    for number in range(8):
        files.append(str(tmp_path / f"{number}.pcap"))
        Path(files[-1]).write_bytes(write_pcap(packets[number * len(packets) // 8 : (number + 1) * len(packets) // 8]))
    whole = {row["topic"] for row in told(capsys, "lineage", *files)}
    assert whole == {f"new-{name}" for name in ("gzip", "lz4", "none", "snappy", "tx", "zstd")}
    assert {row["topic"] for row in told(capsys, "lineage", *files[::-1])} == whole
    by_id = {name: {row["topic"] for row in told(capsys, "lineage", name)} - whole for name in files}
    file, alone = max(by_id.items(), key=lambda one: len(one[1]))
    assert alone
    table = tmp_path / "ids.csv"
    table.write_text("topic_id,name\n" + "".join(f"{id_},named-{id_}\n" for id_ in alone))
    named = {row["topic"] for row in told(capsys, "lineage", file, "--topic-ids", str(table))}
    assert {f"named-{id_}" for id_ in alone} <= named


@pytest.mark.parametrize(("command", "nothing"), [("findings", "No findings."), ("lineage", "No topic was")])
def test_what_is_not_decrypted_is_said(command: str, nothing: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, TLS]) == 0
    said = capsys.readouterr()
    assert "10 connections over TLS were not decrypted" in said.err
    assert said.out.startswith(nothing)
    assert main([command, TLS, "--format", "html"]) == 0
    assert "10 connections over TLS were not decrypted: nothing is known of them." in capsys.readouterr().out


@pytest.mark.parametrize(("way", "other"), [("requests", "responses"), ("responses", "requests")])
def test_one_direction_alone_is_said(way: str, other: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = GOLDEN / "kafka-4.3-kraft-librdkafka" / "current.pcap"
    # Ethernet and IPv4 without options.
    sent = [one for one in packets_of(whole.read_bytes()) if (one.data[36:38] == PORT) == (way == "requests")]
    part = tmp_path / "part.pcap"
    part.write_bytes(write_pcap(sent))
    said = f"there are {way} and no {other}: what needs both is not found"
    assert main(["findings", str(part)]) == 0
    assert said in capsys.readouterr().err
    assert main(["findings", str(whole)]) == 0
    assert "what needs both" not in capsys.readouterr().err


def test_json_of_rows_one_by_one_is_that_of_all() -> None:
    about: dict[str, Any] = {"target": "4.0", "counts": {"works": 1}}
    for rows in ([], [{"a": 1}], [{"a": "x\ny", "b": [{"c": None}, []]}, {"a": {}}]):
        for head in (about, {}):
            assert "".join(answers._as_json(head, rows)) == json.dumps({**head, "rows": rows}, indent=1) + "\n"
