"""``kwire why``: one story in order, with the frames that show it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from packets import Connection, pcap

import kwire
from kwire import messages
from kwire.cli import main
from kwire.report import why

CAPTURE = str(Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-java" / "clients.pcap")


def told(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert main(["why", *args, CAPTURE]) == 0
    return capsys.readouterr().out


def test_a_transaction_is_told_from_begin_to_end(capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, "--transaction", "java-id")
    assert said.index("began") < said.index("wrote java-tx:0 from offset 0") < said.index("commit asked")
    assert "4 transactions of java-id: 3 committed, 1 aborted." in said
    assert "kwire explain" in said
    assert "--frame 141" in said


def test_a_record_is_told_from_produce_to_commit(capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads(told(capsys, "--record", "java-none:0:3", "--format", "json"))
    # The first reader commits in a transaction, and begins anew.
    assert [one["what"] for one in said["rows"][:5]] == [
        "written (Produce)",
        "acknowledged",
        "delivered (Fetch)",
        "committed",
        "delivered (Fetch)",
    ]
    assert "java-classic got it once and committed it." in said["summary"]
    times = [one["time"] for one in said["rows"]]
    assert times == sorted(times)
    assert all(one["frame"] is not None or one["what"] == "acknowledged" for one in said["rows"])


def test_a_group_is_told_with_its_causes(capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, "--group", "java-classic")
    assert said.index("rebalance began") < said.index("assigned")
    assert "because of join" in said
    assert "+java-gzip[0-1]" in said
    assert "The group java-classic: 2 rebalances, 2 joined" in said


def test_lines_fit_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = "".join(told(capsys, "--record", "java-none:0:3").split())
    for width in (60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        said = told(capsys, "--record", "java-none:0:3")
        assert max(map(len, said.splitlines()[:-5])) <= width
        assert "".join(said.split()) == whole


def test_what_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "The capture has no transaction of none." in told(capsys, "--transaction", "none")
    assert "does not show the record java-none:0:99" in told(capsys, "--record", "java-none:0:99")
    assert "no event of the group none" in told(capsys, "--group", "none")


def test_of_a_name_that_is_not_there_those_that_are_there_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, "--group", "Java-clasic")
    assert "no event of the group Java-clasic.\nIt has " in said
    assert " groups: java-classic, " in said
    assert "It has 1 transactional id: java-id." in told(capsys, "--transaction", "none")
    story = why.Group(name="g7")
    events = ["g1", None, *(f"group-{number}" for number in range(20)), "g77"]
    story.add("group_events", pa.record_batch({"group_id": events}))
    assert story.headline()[1].startswith("It has 22 groups: g77, g1, group-")
    assert story.headline()[1].endswith(" and 12 more.")


@pytest.mark.parametrize("name", ["java-none", "java-none:0", "java-none:0:x", ":0:1", "java-none:-1:0"])
def test_a_record_that_is_none_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "--record", name, CAPTURE]) == 2
    assert "name it topic:partition:offset" in capsys.readouterr().err


def test_it_writes_parquet(tmp_path: Path) -> None:
    path = tmp_path / "why.parquet"
    assert main(["why", "--transaction", "java-id", "--format", "parquet", "-o", str(path), CAPTURE]) == 0
    assert pq.read_table(path)["what"].to_pylist().count("began") == 4


GROUPS = str(Path(__file__).parents[2] / "golden" / "groups" / "java.gz")


def test_a_record_of_a_share_group_is_told_with_each_delivery(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "--record", "shared:1:1", "--format", "json", GROUPS]) == 0
    said = json.loads(capsys.readouterr().out)
    again = ["delivered (ShareFetch)", "released: it comes again"]
    assert [one["what"] for one in said["rows"]] == [
        "written (Produce)", "acknowledged", *again, *again, "delivered (ShareFetch)", "accepted",
    ]  # fmt: skip
    assert said["summary"][-1] == "The share group share got it 3 times: released, released, accepted."
    assert main(["why", "--record", "shared:0:4", GROUPS]) == 0
    late = capsys.readouterr().out
    assert late.count("not acknowledged in time") == late.count("acknowledged too late") == 3
    assert "Nobody" not in late


def test_a_cause_that_the_capture_has_not_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    groups = str(Path(__file__).parents[2] / "golden" / "groups" / "java.gz")
    assert main(["why", "--group", "share", groups]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "its cause is not in the capture" in said
    assert "because of not" not in said


def test_an_empty_name_is_shown_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert "The capture has no transaction of ''." in told(capsys, "--transaction", "")
    assert "no event of the group ''." in told(capsys, "--group", "")


@pytest.mark.parametrize("subject", ["--group", "--transaction"])
def test_a_name_that_is_not_utf_8_is_that_of_the_tables(
    subject: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # Python gives such bytes of an argument as lone surrogates.
    name = "\udcff\udc80x"
    one = Connection().open()
    asked = messages.AddOffsetsToTxnRequest(transactional_id=name, producer_id=7, group_id=name)
    beat = messages.ConsumerGroupHeartbeatRequest(group_id=name, member_id=name)
    answered = messages.ConsumerGroupHeartbeatResponse(member_id=name, member_epoch=1)
    for number, (body, answer, version) in enumerate(
        [(asked, messages.AddOffsetsToTxnResponse(), 3), (beat, answered, 1)]
    ):
        one.send(kwire.encode_request(body, api_version=version, correlation_id=number, client_id="c"))
        one.answer(kwire.encode_response(answer, api_version=version, correlation_id=number))
    file = tmp_path / "one.pcap"
    file.write_bytes(pcap(one.packets))
    assert main(["why", subject, name, str(file)]) == 0
    said = capsys.readouterr().out
    assert "no event" not in said
    assert "no transaction" not in said
    assert "\ufffd\ufffdx" in said
    assert main(["decode", "--table", "group_events", "--topic", name, str(file)]) == 0
