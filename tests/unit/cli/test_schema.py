"""``kwire schema``: the table, the grammar, JSON, generated source, import and compare."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire import schema
from kwire.cli import schema as command
from kwire.errors import SchemaError

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def of(*words: str) -> tuple[int, str]:
        parser = argparse.ArgumentParser()
        command.register(parser.add_subparsers(required=True))
        args = parser.parse_args(["schema", *words])
        code: int = args.run(args)
        return code, capsys.readouterr().out

    return of


def test_the_table_has_every_api_with_its_versions(run: Run):
    code, out = run()
    lines = out.split("\n")
    assert code == 0
    assert lines[0].split() == ["key", "API", "versions", "flexible", "Kafka", "4", "since"]
    assert lines[1].split() == ["0", "Produce", "0-13", "9+", "3-13", "0.8.0"]
    assert lines[5].split() == ["4", "LeaderAndIsr", "0-7", "4+", "0.8.0"]
    assert sum(line[:3].strip().isdecimal() and "  " in line for line in lines) >= len(schema.api_keys())


def test_the_table_as_json_is_one_object_per_api(run: Run):
    _, out = run("--json")
    values = json.loads(out)
    assert len(values) == len(schema.api_keys())
    assert values[18] == {
        "api_key": 18,
        "name": "ApiVersions",
        "versions": "0-5",
        "flexible": "3+",
        "kafka4": "0-5",
        "since": "0.10.0",
    }


def test_a_version_is_printed_in_the_grammar_of_the_protocol_guide(run: Run):
    code, out = run("produce", "--version", "2", "--kind", "request")
    assert code == 0
    assert out == (
        "Produce Request (Version: 2) => acks timeout_ms [topic_data]\n"
        "  acks => INT16\n"
        "  timeout_ms => INT32\n"
        "  topic_data => name [partition_data]\n"
        "    name => STRING\n"
        "    partition_data => index records\n"
        "      index => INT32\n"
        "      records => NULLABLE_RECORDS\n"
    )


def test_the_grammar_of_a_flexible_version_shows_compact_types_and_tags(run: Run):
    _, out = run("68", "--version", "0", "--kind", "response")
    lines = out.split("\n")
    assert lines[0].endswith("heartbeat_interval_ms assignment _tagged_fields")
    assert "  error_message => COMPACT_NULLABLE_STRING" in lines
    assert "  assignment => [topic_partitions] _tagged_fields  (nullable)" in lines
    _, out = run("Produce", "--version", "10", "--kind", "response")
    assert "      <tag: 0> current_leader => leader_id leader_epoch _tagged_fields" in out


def test_without_a_version_the_history_comes_first(run: Run):
    _, out = run("Heartbeat")
    known = schema.request(12)
    assert known is not None
    ranges = f"versions {known.versions}, flexible {known.flexible}, Kafka 4 accepts {known.kafka4}"
    assert out.startswith(f"HeartbeatRequest, key 12, {ranges}\n")
    assert "  v3   group_instance_id: static membership (KIP-345)\n" in out
    assert f"Heartbeat Response (Version: {known.versions.high}) =>" in out


def test_embedded_schemas_and_headers_are_found_by_name(run: Run):
    _, out = run("requestheader", "--version", "1")
    assert out.startswith(
        "RequestHeader (Version: 1) => request_api_key request_api_version correlation_id client_id\n"
    )


def test_json_says_what_is_secret(run: Run):
    _, out = run("AlterConfigs", "--kind", "request", "--json")
    (resources, _) = json.loads(out)["fields"]
    assert [one.get("secret") for one in resources["fields"][2]["fields"]] == [None, "config"]


def test_json_has_types_defaults_and_nesting(run: Run):
    _, out = run("Fetch", "--kind", "request", "--version", "12", "--json")
    value = json.loads(out)
    assert (value["name"], value["version"], value["flexible"]) == ("FetchRequest", 12, True)
    topics = next(one for one in value["fields"] if one["name"] == "topics")
    assert topics["type"] == "[FetchTopic]"
    assert topics["fields"][0] == {"name": "topic", "type": "string", "default": ""}
    cluster_id = next(one for one in value["fields"] if one["name"] == "cluster_id")
    assert cluster_id == {"name": "cluster_id", "type": "string", "nullable": True, "tag": 0, "default": None}


def test_source_is_python_that_compiles(run: Run):
    _, out = run("Fetch", "--kind", "response", "--version", "4", "--source")
    compile(out, "<source>", "exec")
    assert "def decode(" in out
    assert "def encode(" in out


def test_import_prints_a_definition_in_our_format(run: Run, tmp_path: Path):
    file = tmp_path / "X.json"
    file.write_text('{"type": "data", "name": "X", "validVersions": "0", "fields": []}  // the end')
    assert run("import", str(file)) == (0, "data X versions 0\n")


def test_import_knows_what_is_secret_in_messages_of_that_name(run: Run, tmp_path: Path):
    field = {"name": "AuthBytes", "type": "bytes", "versions": "0+"}
    other = {"name": "More", "type": "bytes", "versions": "0+"}
    values = {"type": "request", "name": "SaslAuthenticateRequest", "apiKey": 36, "validVersions": "0-9"}
    file = tmp_path / "SaslAuthenticateRequest.json"
    file.write_text(json.dumps(values | {"flexibleVersions": "2+", "fields": [field, other]}))
    code, out = run("import", str(file))
    assert code == 0
    assert [line.split() for line in out.splitlines()[1:]] == [["auth_bytes", "bytes", "secret"], ["more", "bytes"]]
    # A field of another type is another field.
    file.write_text(json.dumps(values | {"flexibleVersions": "2+", "fields": [field | {"type": "int32"}]}))
    assert "secret" not in run("import", str(file))[1]


def test_compare_lists_differences_and_says_so_in_its_exit_code(run: Run, tmp_path: Path):
    field = {"name": "CorrelationId", "type": "int32", "versions": "0+"}
    same = {
        "type": "header",
        "name": "ResponseHeader",
        "validVersions": "0-1",
        "flexibleVersions": "1+",
        "fields": [field],
    }
    file = tmp_path / "ResponseHeader.json"
    file.write_text(json.dumps(same))
    assert run("compare", str(file)) == (0, "1 definitions compared, no differences\n")
    file.write_text(json.dumps({**same, "fields": [{**field, "type": "int64"}]}))
    code, out = run("compare", str(file))
    assert code == 1
    assert out.startswith("ResponseHeader v0-1 $.correlation_id: int64, ours int32\n")
    code, out = run("compare", str(file), "--json")
    assert json.loads(out) == [
        {"message": "ResponseHeader", "versions": [0, 1], "path": "$.correlation_id", "what": "int64, ours int32"}
    ]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("Fetc",), "did you mean Fetch"),
        (("9999",), "no API or message '9999'"),
        (("Fetch", "--version", "99"), "versions 0-18 are"),
        (("Fetch", "--version", "99", "--source"), "versions 0-18 are"),
        (("compare", "/nowhere/at/all"), "cannot be read"),
    ],
)
def test_what_is_not_there_is_one_clear_error(run: Run, words: tuple[str, ...], what: str):
    with pytest.raises(SchemaError, match=what):
        run(*words)


def test_compare_without_a_path_is_a_mistake_in_the_arguments(run: Run):
    with pytest.raises(SystemExit) as caught:
        run("compare")
    assert caught.value.code == 2
