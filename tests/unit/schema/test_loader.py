"""Which messages there are, where they come from, and that little is parsed to find one."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kwire import schema
from kwire.errors import SchemaError
from kwire.schema import model
from kwire.schema.keys import ApiKey
from kwire.schema.loader import Catalog

ROOT = Path(__file__).parents[3]

EMBEDDED = {
    "groups": ("ConsumerProtocolSubscription", "OffsetCommitValue", "GroupMetadataValue", "ShareGroupMetadataKey"),
    "members": ("ConnectAssignment", "StickyUserData", "AssignmentInfoData"),
    "transactions": ("TransactionLogKey", "TransactionLogValue"),
    "share": ("ShareSnapshotValue", "ShareUpdateKey"),
    "kraft": ("TopicRecord", "PartitionChangeRecord", "QuorumStateData"),
    "log": ("LeaderChangeMessage", "EndTxnMarker", "SnapshotHeaderRecord"),
    "remote": ("RemoteLogSegmentMetadataRecord",),
}


def test_every_api_key_has_its_request_and_response():
    keys = schema.api_keys()
    assert list(keys) == list(range(95))
    assert (keys[0], keys[1], keys[18], keys[92]) == ("Produce", "Fetch", "ApiVersions", "DeleteShareGroupOffsets")
    for key, name in keys.items():
        request, response = schema.request(key), schema.response(key)
        assert request is not None
        assert response is not None
        assert (request.name, response.name) == (f"{name}Request", f"{name}Response")
        assert (request.kind, response.kind) == ("request", "response")
        assert request.versions == response.versions
        assert request.kafka4 == response.kafka4


def test_the_names_of_api_keys_are_those_of_the_schemas_spelt_as_kafka_spells_constants():
    spelt = {key: re.sub("(?<!^)(?=[A-Z])", "_", name).upper() for key, name in Catalog().api_keys().items()}
    assert {member.value: member.name for member in ApiKey} == spelt
    assert (ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS) == (24, 71)


def test_there_are_at_least_736_layouts_of_requests_and_responses():
    counted = sum(
        len(list(one.versions))
        for key in schema.api_keys()
        for one in (schema.request(key), schema.response(key))
        if one is not None
    )
    assert counted >= 736


@pytest.mark.parametrize(
    ("key", "versions"),
    [(0, "0-13"), (1, "0-18"), (3, "0-13"), (7, "0-3"), (18, "0-5"), (22, "0-6"), (28, "0-6"), (92, "0"), (94, "0")],
)
def test_versions_reach_from_the_first_to_the_newest(key: int, versions: str):
    message = schema.request(key)
    assert message is not None
    assert str(message.versions) == versions


def test_an_unknown_key_is_none_and_an_unknown_name_an_error():
    assert schema.request(9999) is None
    assert schema.response(-1) is None
    with pytest.raises(SchemaError, match="no message is called 'NoSuchThing'"):
        schema.message("NoSuchThing")


def test_embedded_schemas_stand_in_folders():
    for folder, names in EMBEDDED.items():
        assert set(names) <= set(schema.names(folder))
        for name in names:
            assert schema.message(name).kind == "data"
    assert {"RequestHeader", "ResponseHeader"} <= set(schema.names())


def test_every_message_that_is_not_a_response_says_what_it_is_for():
    missing = [name for name in schema.names() if not schema.message(name).doc]
    assert [name for name in missing if not name.endswith("Response")] == []


def test_every_version_of_a_request_has_a_note_on_what_changed():
    for key in schema.api_keys():
        message = schema.request(key)
        assert message is not None
        assert sorted(message.notes) == list(message.versions)[1:], message.name


def test_asking_for_one_api_parses_one_file():
    catalog = Catalog()
    assert catalog.by_key("response", 1) is not None
    assert catalog._parsed == {"01_fetch.kwire"}
    catalog.names()
    assert catalog._parsed == {"01_fetch.kwire"}


def test_a_message_is_the_same_object_however_it_is_asked_for():
    assert schema.request(1) is schema.message("FetchRequest")


def write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, "utf-8")


def test_a_loaded_folder_adds_messages_and_replaces_built_in_ones(tmp_path: Path):
    write(tmp_path, "mine.kwire", "request Mine key 1000 versions 0\n  a  int8\n\nresponse Mine key 1000 versions 0\n")
    write(tmp_path / "deeper", "fetch.kwire", "request Fetch key 1 versions 0-99\n  a  int8\n")
    catalog = Catalog()
    built_in = catalog.by_name("FetchRequest")
    loaded = catalog.load_folder(tmp_path)
    assert sorted(one.name for one in loaded) == ["FetchRequest", "MineRequest", "MineResponse"]
    mine = catalog.by_key("request", 1000)
    assert mine is not None
    assert mine.fields[0].type == model.Primitive("int8")
    assert catalog.api_keys()[1000] == "Mine"
    assert "MineResponse" in catalog.names()
    assert catalog.by_name("FetchRequest") is not built_in
    assert catalog.by_key("request", 1) is catalog.by_name("FetchRequest")
    response = catalog.by_key("response", 1)
    assert response is not None
    assert response.versions.high == 18


def test_a_loaded_folder_wins_over_a_file_that_is_parsed_later(tmp_path: Path):
    write(tmp_path, "fetch.kwire", "request Fetch key 1 versions 0-99\n  a  int8\n")
    catalog = Catalog()
    catalog.load_folder(tmp_path)
    assert catalog.by_key("response", 1) is not None
    assert catalog.by_name("FetchRequest").versions.high == 99


@pytest.mark.parametrize(
    ("files", "what"),
    [
        ({}, "no .kwire files"),
        ({"a.kwire": "data A versions 0\n", "b.kwire": "data A versions 1\n"}, "stands in .*a.kwire:1 already"),
        ({"a.kwire": "request A key 900 versions 0\n", "b.kwire": "request B key 900 versions 1\n"}, "or its key"),
        ({"a.kwire": "nonsense\n"}, "expected a message"),
    ],
)
def test_a_folder_with_a_mistake_adds_nothing(tmp_path: Path, files: dict[str, str], what: str):
    for name, text in files.items():
        write(tmp_path, name, text)
    catalog = Catalog()
    with pytest.raises(SchemaError, match=what):
        catalog.load_folder(tmp_path)
    assert "A" not in catalog.names()


def test_a_folder_that_does_not_exist_or_is_not_text_is_a_schema_error(tmp_path: Path):
    with pytest.raises(SchemaError, match="not a folder"):
        Catalog().load_folder(tmp_path / "nowhere")
    (tmp_path / "a.kwire").write_bytes(b"\xff\xfe")
    with pytest.raises(SchemaError, match="not UTF-8"):
        Catalog().load_folder(tmp_path)


@pytest.mark.parametrize("layout", ["wheel", "clone"])
def test_schemas_are_found_inside_a_zip_on_the_path(tmp_path: Path, layout: str):
    archive = tmp_path / "kwire.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for file in sorted((ROOT / "kwire").rglob("*.py")):
            out.write(file, file.relative_to(ROOT))
        for file in sorted((ROOT / "schemas").rglob("*.kwire")):
            inside = file.relative_to(ROOT / "schemas")
            out.write(file, Path("kwire/_schemas" if layout == "wheel" else "schemas") / inside)
    program = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); import kwire.schema as s;"
        "print(s.__file__, s.request(1).name, len(s.names()), s.message('OffsetCommitValue').kind)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0].startswith(str(archive))
    assert done.stdout.split()[1:] == ["FetchRequest", str(len(schema.names())), "data"]
