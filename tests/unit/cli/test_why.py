"""``kwire why``: one story in order, with the frames that show it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from packets import Connection, pcap

import kwire
from kwire import messages
from kwire.cli import main
from kwire.report import why
from kwire.tables.group_events import SCHEMA as GROUP_EVENTS

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


def test_members_are_named_by_their_client_and_host_also_where_they_are_a_cause(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["why", "--group", "consumer", "--format", "json", GROUPS]) == 0
    said = json.loads(capsys.readouterr().out)
    first, second = (
        f"{name} on 127.0.0.1 ({member})"
        for name, member in (
            ("first-consumer", "VfExe5_VQ3eA2-qJxXHx-w"),
            ("second-consumer", "ZmsakCseSQ6rui9zqVx0yQ"),
        )
    )
    (revoked,) = [one for one in said["rows"] if one["what"] == "revoked"]
    assert revoked["who"] == first
    assert revoked["detail"] == f"-orders[3-5]; epoch 2; because of join by {second} in frame 473"
    # A rebalance is of the group, whoever is told of it first. Its cause is known before the answer to it.
    began = [one for one in said["rows"] if one["what"] == "rebalance began"]
    assert [one["who"] for one in began] == [None] * 3
    assert began[0]["detail"] == f"because of join by {first} in frame 392"
    assert said["summary"] == [
        "The group consumer: 3 rebalances, 2 joined, 3 assigned, 1 revoked, 2 left.",
        "2 rebalances because of join: first-consumer on 127.0.0.1 and second-consumer on 127.0.0.1.",
        "1 rebalance because of leave: second-consumer on 127.0.0.1.",
    ]
    # The name of a classic member begins with its client id.
    assert main(["why", "--group", "cooperative", GROUPS]) == 0
    assert "joined           first-cooperative-a36d7e88-7279-41bc-a1a7-ae8f8ef0b4e3 on 127.0.0.1: epoch 1" in (
        capsys.readouterr().out
    )


def events_of(*some: dict[str, Any]) -> why.Group:
    story = why.Group(name="g")
    story.add("group_events", pa.RecordBatch.from_pylist([{"group_id": "g", **one} for one in some], GROUP_EVENTS))
    return story


def test_a_topic_is_named_although_its_name_comes_after_its_id() -> None:
    part = {"topic_id": "5EPfeJVYRn-bqR-vegJCBA", "partition": 0}
    story = events_of(
        {"event": "assigned", "member_id": "m", "gained": [part], "capture": "c", "status": "ok"},
        {"event": "revoked", "member_id": "m", "lost": [{**part, "topic": "orders"}], "capture": "c", "status": "ok"},
    )
    assert [line.detail for line in story.result()] == ["+orders[0]", "-orders[0]"]


def test_many_causes_are_counted_by_client() -> None:
    some = [
        {"event": "rebalance_began", "cause": "leave", "cause_member_id": f"m{k}", "capture": "c", "status": "ok"}
        for k in range(12)
    ]
    joins = [{"event": "joined", "member_id": f"m{k}", "client_id": "app", "client_host": "h", "capture": "c",
              "status": "ok"} for k in range(3)]  # fmt: skip
    story = events_of(*some, *joins, some[0] | {"cause": "not_in_capture", "cause_member_id": None})
    _, leave, unknown = story.headline()
    assert (
        leave
        == f"12 rebalances because of leave: app on h (3 times), {', '.join(f'm{k}' for k in range(3, 12))}.".replace(
            ", m11", " and m11"
        )
    )
    assert unknown == "1 rebalance because of a cause that is not in the capture."


def test_of_a_transaction_that_holds_readers_back_it_is_said_who_waited(capsys: pytest.CaptureFixture[str]) -> None:
    capture = str(Path(GROUPS).parents[1] / "transactions" / "transactions.gz")
    assert main(["why", "--transaction", "hang", "--format", "json", capture]) == 0
    last = json.loads(capsys.readouterr().out)["rows"][-1]
    assert last["what"] == "held the last stable offset back"
    assert last["who"].startswith("fourth on 127.0.0.1:")
    assert last["detail"] == "by up to 2 records, for 10834 ms; reader on 127.0.0.1 waited"


def test_of_a_record_that_is_not_there_what_is_near_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for record, said in (
        ("orders:0:99", "Of this partition it shows offsets from 0 to 4."),
        ("orders:7:0", "Of this topic it shows the partitions 0, 1, 2, 3, 4 and 5."),
        ("order:0:0", "It has 5 topics: orders, "),
        ("shared:0:99", "Of this partition it shows offsets from 0 to 4."),
    ):
        assert main(["why", "--record", record, GROUPS]) == 0
        assert said in capsys.readouterr().out


def test_what_cannot_be_read_has_no_story_and_another_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(pcap([]))
    for file, said in ((empty, "no Kafka traffic among 0 packets"), (tmp_path / "none", "No such file")):
        assert main(["why", "--group", "g", str(file)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert f"kwire: {file}" in err
        assert said in err
    tls = str(Path(GROUPS).parents[1] / "findings" / "tls-where-there-is-none.gz")
    assert main(["why", "--group", "g", tls]) == 0
    assert "70 connections over TLS were not decrypted" in capsys.readouterr().err


def test_captures_that_continue_each_other_tell_the_story_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = gzip.decompress(Path(GROUPS).read_bytes())
    places = [24]
    while places[-1] < len(whole):
        places.append(places[-1] + 16 + int.from_bytes(whole[places[-1] + 8 : places[-1] + 12], "little"))
    files = []
    for k, (begin, end) in enumerate(((0, 900), (900, 1500), (1500, -1))):
        files.append(str(tmp_path / f"{k}.pcap"))
        Path(files[-1]).write_bytes(whole[:24] + whole[places[begin] : places[end]])
    for subject in (["--group", "consumer"], ["--record", "orders:0:1"], ["--transaction", "pays"]):
        told = []
        for some in ([GROUPS], files[::-1]):
            assert main(["why", *subject, "--format", "json", *some]) == 0
            told.append(json.loads(capsys.readouterr().out))
        for one in told:
            for row in one["rows"]:
                del row["capture"], row["connection"]
        assert told[0]["summary"] == told[1]["summary"]
        assert told[0]["rows"] == told[1]["rows"]
