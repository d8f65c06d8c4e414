"""The corpus: its cases are what they say, and kwire gives the verdict of each with both codecs."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

import kwire
from kwire import capture, cli, records, schema
from kwire.codec import registry
from kwire.errors import DecodeError, KwireError
from kwire.testing import corpus
from kwire.testing.corpus import Case
from kwire.testing.corpus.shapes import UNKNOWN

SOME = ["ApiVersions", "ConsumerGroupHeartbeat", "Fetch", "Metadata", "SaslHandshake"]
"""APIs with old and new versions, tagged fields, nullable structs, record sets, and a header that is an exception."""


def read(one: Case, implementation: registry.Implementation) -> object:
    if one.role == "request":
        return kwire.decode_request(one.data, implementation=implementation).body
    how = {"api_key": one.api_key, "api_version": one.version}
    return kwire.decode_response(one.data, implementation=implementation, **how).body


def disagreements(cases: Iterable[Case]) -> list[str]:
    """The cases that kwire reads and ought not to, or the other way round."""
    wrong = []
    for one in cases:
        for implementation in registry.IMPLEMENTATIONS:
            try:
                got = read(one, implementation)
            except DecodeError as error:
                if one.verdict == "must-accept":
                    wrong.append(f"{one.name} ({implementation}): {error}")
                continue
            if one.verdict == "must-refuse":
                wrong.append(f"{one.name} ({implementation}): {one.data.hex()} is read")
            elif one.body_at is not None and got != one.decoded():
                wrong.append(f"{one.name} ({implementation}): {got}")
    return wrong


def newest(api: str) -> list[int]:
    key = {name: key for key, name in schema.api_keys().items()}[api]
    request = schema.request(key)
    assert request is not None
    return [request.versions.high]


@pytest.mark.parametrize("api", SOME)
def test_kwire_gives_the_verdict_of_each_case(api: str) -> None:
    assert disagreements(corpus.cases([api], versions=newest(api))) == []


@pytest.mark.wide
@pytest.mark.parametrize("api", list(schema.api_keys().values()))
def test_kwire_gives_the_verdict_of_each_case_of_all_apis(api: str) -> None:
    assert disagreements(corpus.cases([api])) == []


@pytest.mark.parametrize("api", SOME)
def test_a_valid_case_is_what_kwire_writes(api: str) -> None:
    for one in corpus.cases([api], list(corpus.SHAPES)):
        assert one.recipe is not None
        assert one.body_at is not None
        assert one.decoded() == one.recipe.body, one.name
        assert one.canonical() == one.data[one.body_at :], one.name


def test_kwire_gives_the_verdict_of_each_record_set() -> None:
    wrong = []
    for one in corpus.cases([corpus.RECORDS]):
        problems: list[DecodeError] = []
        list(records.decode(one.data, problems=problems))
        if one.verdict != "may" and bool(problems) != (one.verdict == "must-refuse"):
            wrong.append(f"{one.name}: {problems}")
    assert wrong == []


def test_a_checksum_of_a_record_set_is_wrong_only_where_it_is_said() -> None:
    for one in corpus.cases([corpus.RECORDS]):
        right = all(batch.crc_ok for batch in records.decode(one.data, problems=[]))
        assert right == (one.damage != "batch-checksum"), one.name


IMPAIRED = [one.damage or "" for one in corpus.cases([corpus.CAPTURES])]


@pytest.mark.wide(keep=8)
@pytest.mark.parametrize("kind", IMPAIRED)
def test_kwire_finds_the_frames_of_each_capture(kind: str) -> None:
    (one,) = corpus.cases([corpus.CAPTURES], [kind])
    if one.verdict == "may":
        assert one.line()["decodes"] is None
        return
    rows = [row for batch in capture.read(io.BytesIO(one.data), "frames") for row in batch.to_pylist()]
    found = [(row["direction"], row["api_name"], row["api_version"], row["correlation_id"]) for row in rows]
    assert sorted(found) == sorted(one.frames)
    assert {row["status"] for row in rows} == {"ok"}
    assert len(one.line()["decodes"]) == len(rows) == 30


def test_a_line_of_a_record_set_has_its_records() -> None:
    lines = {one.name: one.line() for one in corpus.cases([corpus.RECORDS], ["records-one", "batch-bomb"])}
    made = lines["records/gzip/records-one-c"]["decodes"]
    assert made == [{"offset": 7, "timestamp": 1_700_000_000_000, "key": "a2V5", "value": "dmFsdWU=", "headers": []}]
    assert lines["records/gzip/batch-bomb-a"]["decodes"] is None


def test_a_header_has_unknown_tags_where_the_body_has_them() -> None:
    for one in corpus.cases(["Heartbeat"], ["unknown-tags"], versions=[4]):
        if one.role == "request":
            header = kwire.decode_request(one.data).header
        else:
            header = kwire.decode_response(one.data, api_key=one.api_key, api_version=one.version).header
        assert header.unknown_tagged_fields == dict.fromkeys(UNKNOWN, b"new")


@pytest.mark.parametrize("version", [0, 4])
def test_the_client_id_is_null_where_the_body_has_nulls(version: int) -> None:
    for shape, client_id in (("nulls", None), ("one", "kwire")):
        (one,) = (one for one in corpus.cases(["Heartbeat"], [shape], versions=[version]) if one.role == "request")
        header = kwire.decode_request(one.data).header
        assert (header.correlation_id, header.client_id) == (7, client_id)
        assert one.data[8:10] == (b"\xff\xff" if client_id is None else b"\0\5")  # by the bytes, not by a decoder


def test_the_same_arguments_give_the_same_cases() -> None:
    def digest(seed: int) -> str:
        made = hashlib.sha256()
        for one in corpus.cases(["Heartbeat"], seed=seed):
            made.update(f"{one.name} {one.data.hex()} {one.offset} {one.verdict}\n".encode())
        return made.hexdigest()

    assert digest(0) == digest(0)
    assert digest(0) != digest(1)


def test_names_are_unique_and_each_kind_is_there() -> None:
    made = list(corpus.cases(SOME))
    assert len({one.name for one in made}) == len(made)
    assert {one.shape for one in made} == set(corpus.SHAPES)
    assert not corpus.SHAPES.keys() & corpus.KINDS.keys()
    assert {one.damage for one in made} == {None, *corpus.KINDS}


def test_a_damaged_case_differs_from_the_offset_that_it_states() -> None:
    """No byte before the offset is another one, but for the size of a tagged field around the damage."""
    for api in ("Metadata", "Heartbeat"):
        valid = {one.name.rpartition("/")[0]: one.data for one in corpus.cases([api], ["one"])}
        for one in corpus.cases([api], list(corpus.KINDS)):
            assert one.offset is not None
            before = valid[one.name.rpartition("/")[0]]
            assert one.data[: one.offset] == before[: one.offset], one.name
            assert one.data != before


def test_the_folder_has_a_file_for_each_line_of_the_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "corpus"
    assert cli.main(["fuzz", "corpus", "--out", str(out), "--api", "Heartbeat", "--version", "0,4"]) == 0
    lines = [json.loads(line) for line in (out / corpus.MANIFEST).read_text().splitlines()]
    assert f"{len(lines)} files and manifest.jsonl: " in capsys.readouterr().out
    files = {one.relative_to(out).as_posix() for one in out.rglob("*.bin")}
    assert files == {line["file"] for line in lines}
    assert {line["version"] for line in lines} == {0, 4}
    for line, one in zip(lines, corpus.cases(["Heartbeat"], versions=[0, 4]), strict=True):
        assert (out / line["file"]).read_bytes() == one.data
        assert line["verdict"] == one.verdict
        assert line["source"]
        assert (line["canonical"] is None) == (one.canonical() is None)
    (shown,) = [line for line in lines if line["file"] == "Heartbeat/response-v4/one.bin"]
    assert shown["decodes"] == {"throttle_time_ms": 27, "error_code": 12}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--api", "Fech"], "no API 'Fech': did you mean 'Fetch'"),
        (["--kind", "nul"], "did you mean 'null"),
        (["--version", "x"], "--version takes numbers, not 'x'"),
    ],
)
def test_a_mistake_is_one_line(args: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fuzz", "corpus", "--out", str(tmp_path / "new"), *args]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("")
    assert cli.main(["fuzz", "corpus", "--out", str(tmp_path), "--api", "Heartbeat"]) == 2
    assert "is not empty: give the name of a new folder" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]


def test_kinds_that_there_are_not_are_refused() -> None:
    with pytest.raises(ValueError, match="no kind 'nothing'"):
        list(corpus.cases(kinds=["nothing"]))
    assert issubclass(DecodeError, KwireError)
