"""No secret is in any output unless it is asked for; asked for, it is there."""

from __future__ import annotations

import base64
import contextlib
import copy
import io
import json
import pickle
import traceback
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from canaries import CASES, IN_RECORDS, Case, bodies, canary, capture_of, found, frames, metadata_records

import kwire
from kwire import capture, cli, log, tables
from kwire.capture.reading import Reading
from kwire.codec import reference, registry
from kwire.errors import EncodeError, KwireError
from kwire.kernels.engine import MACHINE, PYTHON, using
from kwire.log.internal import decode_record
from kwire.protocol.describe import describe, to_json, undescribe
from kwire.tables.log_records import DEEP

EVERY = sorted({name for case in CASES for name in case.names} | {"raw token", "raw answer"})
DECODABLE = [case for case in CASES if case.message.SCHEMA.kind != "data"]
BY_NAME = {f"{case.name} {number}": case for number, case in enumerate(CASES)}


@pytest.fixture(params=BY_NAME, scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    return BY_NAME[request.param]


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("canaries") / "all.pcap"
    file.write_bytes(capture_of(CASES))
    return file


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("canaries") / "__cluster_metadata-0"
    folder.mkdir()
    file = folder / "00000000000000000000.log"
    file.write_bytes(metadata_records() + metadata_records(compression="gzip"))
    return file


@pytest.mark.parametrize(
    "form",
    [
        canary("PLAIN"),
        canary("PLAIN")[5:13],
        f"..{canary('PLAIN')}..".encode("utf-16-le"),
        canary("PLAIN").encode().hex(),
        canary("PLAIN").encode().hex(" ").upper(),
        "".join(f"\\x{byte:02x}" for byte in canary("PLAIN").encode()),
        *(base64.b64encode(bytes(shift) + canary("PLAIN").encode() + b"..") for shift in range(3)),
    ],
)
def test_a_canary_is_recognised_in_any_form(form: bytes | str):
    assert found(form, EVERY) == {"PLAIN"}


def test_repr_shows_no_secret(case: Case):
    shown = [repr(case.message), f"{case.message}"]
    for version, data in bodies(case):
        shown.append(repr(registry.codec(case.message.SCHEMA, version).decode(data)))
    assert not found(" ".join(shown), case.names)


def test_json_shows_secrets_only_when_asked(case: Case):
    for version, _ in bodies(case):
        values = case.message.to_dict(version)
        sent = {name for name in case.names if found(json.dumps(values, default=_plain), [name])}
        hidden = [describe(case.message, version), to_json(case.message, version), case.message.to_json(version)]
        assert not found(repr(hidden), case.names)
        assert '"redacted":' in hidden[1] or not sent
        for shown in (to_json(case.message, version, secrets=True), case.message.to_json(version, secrets=True)):
            assert found(shown, case.names) >= sent
        # The plain values are left alone.
        assert case.message.to_dict(version) == values
    assert sent or not case.names


def _plain(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def test_what_was_left_out_is_not_written_back(case: Case):
    version, _ = bodies(case)[-1]
    name = case.message.SCHEMA.name
    with pytest.raises(EncodeError, match="left out as a secret"):
        undescribe(name, json.loads(to_json(case.message, version)))
    with pytest.raises(EncodeError, match="left out as a secret"):
        type(case.message).from_dict(json.loads(case.message.to_json(version)))
    whole = undescribe(name, json.loads(to_json(case.message, version, secrets=True)))
    codec = registry.codec(case.message.SCHEMA, version)
    assert codec.encode(whole) == codec.encode(case.message)


def test_a_frame_shows_no_secret(case: Case):
    if case.message.SCHEMA.kind == "request":
        for frame in frames(case):
            assert not found(repr(kwire.decode_request(frame)), case.names)
    elif case.message.SCHEMA.kind == "response":
        for (version, _), frame in zip(bodies(case), frames(case), strict=True):
            made = kwire.decode_response(frame, api_key=case.message.SCHEMA.api_key, api_version=version)
            assert not found(repr(made), case.names)


def test_errors_of_decoding_quote_no_secret(case: Case):
    version, data = bodies(case)[-1]
    for cut in (1, 3, len(data) // 2):
        for implementation in registry.IMPLEMENTATIONS:
            with pytest.raises(KwireError) as failed:
                registry.codec(case.message.SCHEMA, version, implementation).decode(data[:-cut])
            assert not found("".join(traceback.format_exception(failed.value)), case.names)


@pytest.mark.wide(keep=72)
@pytest.mark.parametrize(
    "odd", [lambda text: text, lambda text: [text], lambda text: {"a": text}, lambda text: (text,)]
)
def test_errors_of_encoding_quote_no_secret(case: Case, odd: Any):
    """Whatever was assigned where a secret, or what holds some, belongs."""
    version, _ = bodies(case)[-1]
    wrong = [odd(canary(case.names[0])) if case.names else odd("x"), odd(canary("PLAIN").encode()), 5]
    for field, _, inner in type(case.message).SECRET_FIELDS:
        for value in wrong:
            if inner is None and isinstance(value, (str, bytes)):
                continue
            made = copy.copy(case.message)
            setattr(made, field, value)
            assert not found(repr(made), EVERY)
            for implementation in registry.IMPLEMENTATIONS:
                with pytest.raises(EncodeError) as failed:
                    registry.codec(case.message.SCHEMA, version, implementation).encode(made)
                assert not found(str(failed.value), EVERY)


def test_a_secret_that_is_not_base64_is_not_quoted():
    with pytest.raises(EncodeError) as failed:
        kwire.messages.SaslAuthenticateRequest.from_dict({"auth_bytes": canary("PLAIN") + "!"})
    assert "not base64" in str(failed.value)
    assert not found(str(failed.value), EVERY)


def test_copies_and_pickles_are_whole(case: Case):
    assert pickle.loads(pickle.dumps(case.message)) == case.message == copy.deepcopy(case.message)


@pytest.mark.wide
def test_frames_of_a_capture_show_no_secret(traffic: Path):
    with traffic.open("rb") as source:
        for part in Reading(source):
            for frame in part:
                assert not found(repr(frame) + str(frame.error), EVERY)
                if frame.status.name == "OK":
                    assert not found(repr(frame.message) + repr(frame.body), EVERY)


TABLES = [*tables.names(tables.CAPTURE), *tables.names(tables.EVENTS)]


@pytest.mark.wide(keep=7)
@pytest.mark.parametrize("cut", [0, 1, 9])
@pytest.mark.parametrize("table", TABLES)
def test_tables_of_captures_show_no_secret(table: str, cut: int):
    rows = _rows(table, capture_of(CASES, cut=cut))
    assert not found(repr(rows), EVERY)
    if table == "records":
        for columns in (["value"], ["offset", "value"], ["value", "is_control", "topic"]):
            assert not found(repr(_rows(table, capture_of(CASES, cut=cut), columns=columns)), EVERY)


def _rows(table: str, data: bytes, **options: Any) -> list[dict[str, Any]]:
    return [row for batch in capture.read(io.BytesIO(data), table, **options) for row in batch.to_pylist()]


@pytest.mark.wide
@pytest.mark.parametrize("cut", [0, 1, 9])
def test_bodies_that_kernels_write_show_no_secret(cut: int):
    data = capture_of(CASES, cut=cut)
    kinds: set[tuple[str, str]] = set()
    for options in ({}, {"payloads": True}, {"secrets": True}):
        with using(PYTHON):
            expected = _rows("messages", data, **options)
        with using(MACHINE):
            rows = _rows("messages", data, **options)
        assert rows == expected
        assert options.get("secrets") or not found(repr(rows), EVERY)
        kinds.update((row["api_name"], row["direction"]) for row in rows if row["api_name"])
    for api, direction in kinds:
        with using(MACHINE):
            rows = _rows("messages", data, api=api, direction=direction, payloads=True)
        assert rows
        assert not found(repr(rows), EVERY)


def test_tables_of_captures_show_secrets_when_asked(traffic: Path):
    shown = _rows("messages", traffic.read_bytes(), secrets=True)
    wanted = {name for case in DECODABLE for name in case.names}
    assert found(repr(shown), wanted) == wanted
    records = _rows("records", traffic.read_bytes(), secrets=True)
    assert found(repr(records), IN_RECORDS) == set(IN_RECORDS)
    hidden = _rows("records", traffic.read_bytes())
    assert [row["status"] for row in hidden] == [row["status"] for row in records]
    # What is harmless stays, and what was left out says how much it was.
    assert {bytes(row["value"]) for row in hidden if row["value"] and b"redacted" not in row["value"]} == {
        b"\x01\x14\x00\x00"
    }
    for row, whole in zip(hidden, records, strict=True):
        if row["value"] != whole["value"]:
            assert json.loads(row["value"]) == {"redacted": len(whole["value"])}
    assert all({**row, "value": None} == {**whole, "value": None} for row, whole in zip(hidden, records, strict=True))


def test_the_user_of_a_token_is_no_secret_and_there_where_asked_for(capsys: pytest.CaptureFixture[str], traffic: Path):
    data = traffic.read_bytes()
    assert "sasl_user" not in _rows("messages", data)[0]
    for columns in (["sasl_user"], ["status", "sasl_user", "body", "api_name", "direction"]):
        rows = _rows("messages", data, columns=columns)
        assert not found(repr(rows), EVERY)
        # PLAIN in each of three versions, and as a raw token.
        assert [row["sasl_user"] for row in rows if row["sasl_user"] is not None] == ["alice"] * 4
    assert {(row["status"], row["api_name"], row["direction"]) for row in rows if row["sasl_user"]} == {
        ("ok", "SaslAuthenticate", "request"),
        ("sasl", None, "request"),
    }
    said = _command(capsys, "decode", traffic, "--table", "messages", "--columns", "frame,sasl_user")
    assert "alice" in said
    with pytest.raises(ValueError, match="no column 'sasl_user'"):
        _rows("frames", data, columns=["sasl_user"])


@pytest.mark.parametrize("columns", [None, ["value"], ["decoded_value"], ["record_type", "value"]])
def test_segments_show_secrets_only_when_asked(segment: Path, columns: list[str] | None):
    assert not found(repr(_of_segment(DEEP, segment, columns)), IN_RECORDS)
    shown = found(repr(_of_segment(DEEP, segment, columns, secrets=True)), IN_RECORDS)
    unread = {"unknown type", "unknown version", "malformed"} if columns == ["decoded_value"] else set()
    assert shown == set(IN_RECORDS) - unread
    if columns is None or columns == ["value"]:
        assert not found(repr(_of_segment(tables.table("records", tables.LOG), segment, columns)), IN_RECORDS)
        shown = found(
            repr(_of_segment(tables.table("records", tables.LOG), segment, columns, secrets=True)), IN_RECORDS
        )
        assert shown == set(IN_RECORDS)
    assert not found(repr(_of_segment(tables.table("batches", tables.LOG), segment, None)), IN_RECORDS)


def _of_segment(table: Any, file: Path, columns: list[str] | None, **options: Any) -> list[dict[str, Any]]:
    (one,) = log.find(file)
    return [row for batch in table.read(one, columns=columns, **options) for row in batch.to_pylist()]


def test_decoded_records_keep_what_is_no_secret(segment: Path):
    for row in _of_segment(DEEP, segment, None):
        if row["record_type"] == "UserScramCredentialRecord":
            values = json.loads(row["decoded_value"])
            assert values["name"] == "u"
            assert values["salt"] == {"redacted": 18}


def test_control_records_of_the_metadata_topic_are_shown():
    folder = Path(__file__).parents[1] / "golden" / "segments" / "4.3-kraft"
    seen = 0
    for one in log.find(folder):
        if one.topic == "__cluster_metadata":
            pairs = zip(DEEP.read(one), DEEP.read(one, secrets=True), strict=True)
            for hidden, whole in pairs:
                for row, other in zip(hidden.to_pylist(), whole.to_pylist(), strict=True):
                    if row["is_control"]:
                        seen += 1
                        assert row == other
    assert seen


UNREAD = {"unknown type", "unknown version", "malformed"}
"""Secrets in records of which no schema says so."""


def test_where_the_topic_is_not_known_each_record_tells_for_itself():
    rows = [row for batch in log.read(io.BytesIO(metadata_records())) for row in batch.to_pylist()]
    assert rows[0]["topic"] is None
    # The malformed one is the first of the others, cut off.
    cut = {"k salt", "k stored", "k server"}
    assert found(repr([row["value"] for row in rows]), IN_RECORDS) == UNREAD | cut
    assert found(repr([row["value"] for row in rows[:-3]]), IN_RECORDS) == {"unknown type", "unknown version"}


def test_one_record_is_decoded_without_secrets():
    values = [r["value"] for b in log.read(io.BytesIO(metadata_records()), secrets=True) for r in b.to_pylist()]
    known = values[1:-5]
    assert not found(repr([decode_record("__cluster_metadata", None, one) for one in known]), IN_RECORDS)
    whole = [decode_record("__cluster_metadata", None, one, secrets=True) for one in known]
    assert found(repr(whole), IN_RECORDS) == set(IN_RECORDS) - UNREAD


# --- The command line -------------------------------------------------------------------------------------------------


def _command(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    with contextlib.suppress(SystemExit):
        cli.main([*map(str, args)])
    said = capsys.readouterr()
    return said.out + said.err


@pytest.mark.wide(keep=3)
@pytest.mark.parametrize("format_", ["table", "jsonl", "parquet"])
@pytest.mark.parametrize("table", TABLES)
def test_decode_of_captures(
    capsys: pytest.CaptureFixture[str], traffic: Path, tmp_path: Path, table: str, format_: str
):
    for option in ([], ["--secrets", "redact"], ["--secrets", "show"]):
        out = tmp_path / f"out{len(option)}"
        more = ["-o", out] if format_ == "parquet" else []
        out.unlink(missing_ok=True)
        which = ["--table" if table in tables.names(tables.CAPTURE) else "--as", table]
        said = _command(capsys, "decode", traffic, *which, "--format", format_, *option, *more)
        assert "usage" not in said
        if out.exists():
            said += repr(pq.read_table(out).to_pylist())
            said += out.read_bytes().decode("latin-1")
        shown = found(said, EVERY)
        if "show" not in option:
            assert not shown
        elif format_ != "table" and table in ("messages", "records"):
            assert shown == set(IN_RECORDS if table == "records" else EVERY) - {"raw token", "raw answer"} - (
                {name for case in CASES if case.message.SCHEMA.kind == "data" for name in case.names} - set(IN_RECORDS)
            )


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("format_", ["table", "jsonl", "parquet"])
def test_decode_of_segments(
    capsys: pytest.CaptureFixture[str], segment: Path, tmp_path: Path, format_: str, deep: bool
):
    for option in ([], ["--secrets", "show"]):
        out = tmp_path / f"out{len(option)}"
        more = ["-o", out] if format_ == "parquet" else []
        said = _command(capsys, "decode", segment, "--format", format_, *option, *more, *["--deep"] * deep)
        if format_ == "parquet":
            said += repr(pq.read_table(out).to_pylist())
        shown = found(said, IN_RECORDS)
        if not option:
            assert not shown
        elif format_ != "table":
            assert shown == set(IN_RECORDS)


@pytest.mark.wide(keep=20)
def test_explain(capsys: pytest.CaptureFixture[str], case: Case, tmp_path: Path):
    for number, args in enumerate(_explained(case, tmp_path)):
        said = _command(capsys, "explain", *args)
        assert not found(said, case.names), (number, args)
        if case.names:
            assert "redacted, " in said
            assert ".. .. .." in said
        # Only the first bytes of a field are drawn.
        shown = _command(capsys, "explain", *args, "--secrets", "show")
        assert "redacted" not in shown
        if case.message.SCHEMA.kind == "data":
            assert found(shown, case.names) == set(case.names)


def known_request(case: Case) -> bool:
    return bool(case.message.SCHEMA.kind == "request")


def _explained(case: Case, folder: Path) -> list[list[str]]:
    known = case.message.SCHEMA
    if known_request(case):
        return [[frame.hex()] for frame in frames(case)]
    name = ["--message", known.name] if known.kind == "data" else ["--response", str(known.api_key)]
    made = [data for _, data in bodies(case)] if known.kind == "data" else frames(case)
    args = []
    for number, ((version, _), data) in enumerate(zip(bodies(case), made, strict=True)):
        file = folder / str(number)
        file.write_bytes(data.hex().encode())
        args.append([str(file), *name, "--version", str(version)])
    return args


@pytest.mark.wide(keep=7)
def test_explain_of_what_cannot_be_read_to_its_end(capsys: pytest.CaptureFixture[str], case: Case, tmp_path: Path):
    for args in _explained(case, tmp_path)[-1:]:
        whole = args[0] if known_request(case) else Path(args[0]).read_text()
        size = len(whole) // 2
        for kept in sorted({*range(size - 5, size), *range(0, size, max(1, size // 5))}):
            said = _command(capsys, "explain", whole[: 2 * kept] or "00", *args[1:])
            assert not found(said, case.names), kept
        for text in (whole[:-1], whole + "zz", whole[:-1] + "!", base64.b64encode(bytes.fromhex(whole)).decode()[:-1]):
            assert not found(_command(capsys, "explain", text, *args[1:]), case.names)


def test_explain_of_frames_of_a_capture(capsys: pytest.CaptureFixture[str], traffic: Path):
    with traffic.open("rb") as source:
        kinds = {frame.number: frame.status.name for part in Reading(source) for frame in part}
    tokens = [number for number, kind in kinds.items() if kind == "SASL"]
    assert len(tokens) == 2
    for number in [*list(kinds)[:40], *tokens]:
        assert not found(_command(capsys, "explain", traffic, "--frame", number), EVERY)
    shown = [_command(capsys, "explain", traffic, "--frame", number, "--secrets", "show") for number in tokens]
    assert found(" ".join(shown), EVERY) == {"raw token", "raw answer"}


def test_the_tree_says_what_is_secret():
    case = next(one for one in CASES if one.name == "PLAIN")
    node, error = reference.trace(case.message.SCHEMA, 2, bodies(case)[-1][1])
    assert error is None
    assert [child.secret for child in node.children] == ["always", ""]
