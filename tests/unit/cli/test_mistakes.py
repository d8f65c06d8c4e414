"""A mistake in the arguments is one line that says what was meant; what a filter leaves out is said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kwire import capture, cli, options, schema, tables
from kwire.naming import counted, meant, no_such
from kwire.protocol.error_codes import ErrorCode
from kwire.report.findings import RULES, Thresholds

CAPTURE = str(Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-java" / "clients.pcap")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["decod", CAPTURE], "no choice 'decod': (there are decode, .*; )?did you mean 'decode'"),
        (["decode", CAPTURE, "--tabel", "frames"], "unrecognized arguments: --tabel frames; did you mean --table"),
        (["decode", CAPTURE, "--table", "frmes"], "did you mean 'frames'"),
        (["decode", CAPTURE, "--format", "jsn"], "did you mean 'jsonl'"),
        (["decode", CAPTURE, "--format", "parquet"], "--format parquet needs -o OUT"),
        (["decode", CAPTURE, "--api", "Prodce"], "no API 'Prodce': did you mean 'Produce'"),
        (["decode", CAPTURE, "--api", "Prodce,Fetch"], "no API 'Prodce': did you mean 'Produce'"),
        (["decode", CAPTURE, "--status", "okk"], "did you mean 'ok'"),
        (["decode", CAPTURE, "--since", "yesterday"], "no time 'yesterday'"),
        (["decode", CAPTURE, "--columns", "siz"], "no column 'siz' in the table frames: did you mean 'size'"),
        (["decode", CAPTURE, "--limits", "txt=1"], "no limit 'txt': (there are .*; )?did you mean 'text'"),
        (["decode", CAPTURE, "--payloads"], "--payloads is for the table messages, not frames"),
        (["decode", "there is none", "--deep"], "there is none: No such file or directory"),
        (["decode"], "the following arguments are required: FILE"),
        (["findings", CAPTURE, "--rule", "lagg"], "no rule 'lagg': did you mean 'lag'"),
        (["findings", CAPTURE, "--set", "comits=1"], "no threshold 'comits': did you mean 'commits'"),
        (["schema", "Ftch"], "no API or message 'Ftch': did you mean 'Fetch'"),
        (["spark", "exprt"], "did you mean 'export'"),
    ],
)
def test_a_mistake_is_one_line(args: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: Any = cli.main(args)
    except SystemExit as stopped:
        code = stopped.code
    assert code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert re.search(said, line)


@pytest.mark.parametrize(
    ("options_", "said"),
    [
        ({"table": "framse"}, "did you mean 'frames'"),
        ({"table": "messages", "api": "Prodce"}, "no API 'Prodce': did you mean 'Produce'"),
        ({"apis": ["Prodce"]}, "no API 'Prodce': did you mean 'Produce'"),
        ({"ports": 9092}, r"not 9092: the option 'ports' is numbers from 1 to 65535, such as \[9092\]"),
        ({"limits": "nope=1"}, "the option 'limits': no limit 'nope'"),
        ({"columns": ["siz"]}, "did you mean 'size'"),
        ({"status": ["malfrmed"]}, "did you mean 'malformed'"),
        ({"payloads": True}, "payloads is for the table messages, not frames"),
        ({"tables": ["messages", "frames"], "payloads": True}, "payloads is for the table messages, not frames"),
    ],
)
def test_a_mistake_in_python_says_what_was_meant(options_: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        list(capture.read(CAPTURE, **options_))


def test_each_set_of_names_gives_the_nearest() -> None:
    for known in (
        schema.api_keys().values(),
        schema.names(),
        tables.names(tables.CAPTURE),
        options.OPTIONS,
        RULES,
        vars(Thresholds()),
        ErrorCode.__members__,
    ):
        for name in known:
            if len(name) > 4:
                assert meant(f"{name[:2]}{name[3:]}", known), name
                assert meant(name.swapcase(), known) == name


def test_long_lists_are_left_out_where_a_name_is_near() -> None:
    few, many = ["frames", "calls"], [f"name{k}" for k in range(70)]
    assert no_such("table", "frmes", few) == "no table 'frmes': there are frames, calls; did you mean 'frames'?"
    assert no_such("table", "x", few, "of captures") == "no table 'x' of captures: there are frames, calls"
    assert no_such("rule", "name7x", [*many[:20], "other"]) == "no rule 'name7x': did you mean 'name7'?"
    assert no_such("rule", "x", many) == "no rule 'x'"


def test_what_is_counted_is_one_or_several() -> None:
    assert [counted(k, "member") for k in (0, 1, 2)] == ["0 members", "1 member", "2 members"]
    assert counted(2, "batch", "batches") == "2 batches"


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_filter_that_matches_nothing_says_so(jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = [CAPTURE] if jobs == "1" else [CAPTURE, CAPTURE]
    assert cli.main(["decode", *files, "-j", jobs, "--client-id", "nobody"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    count = sum(batch.num_rows for batch in capture.read(CAPTURE, "frames"))
    said = f"kwire: {CAPTURE}: note: no row of frames matches the filters; {count} frames were looked at"
    assert printed.err.splitlines() == [said] * len(files)
    assert cli.main(["decode", CAPTURE, "--api", "AlterConfigs"]) == 0
    assert "note: no row of messages matches --api AlterConfigs; " in capsys.readouterr().err
    assert cli.main(["decode", CAPTURE, "--client-id", "nobody,java-java", "--format", "jsonl"]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("\n") == sum(
        batch.num_rows for batch in capture.read(CAPTURE, "frames", client_ids=["java-java"])
    )
    assert printed.err == ""


def test_client_ids_are_separated_by_commas_and_may_hold_some() -> None:
    assert options.TEXTS.read("a, b") == ("a", "b")
    assert options.TEXTS.read(r"a\,b,c\d") == ("a,b", r"c\d")
    with pytest.raises(ValueError, match="it is empty"):
        options.TEXTS.read("")
    told = options.texts({"client_ids": ["a,b", "c"], "topics": ["x", "y"]}, options.LOAD)
    assert told == {"client_ids": r"a\,b,c", "topics": "x,y"}
    assert options.values(told)["client_ids"] == ("a,b", "c")
