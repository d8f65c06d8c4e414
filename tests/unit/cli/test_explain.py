"""``kwire explain``: where each field stands, drawn."""

from __future__ import annotations

import argparse
import base64
import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from counted_work import lines

import kwire
from kwire import messages
from kwire.capture.magics import is_capture
from kwire.cli import dumps, explain
from kwire.errors import CaptureError, DecodeError

REQUEST = kwire.encode_request(
    messages.HeartbeatRequest(group_id="g", generation_id=7, member_id="m"),
    api_version=4,
    correlation_id=3,
    client_id="test",
)
RESPONSE = kwire.encode_response(messages.HeartbeatResponse(error_code=25), api_version=4, correlation_id=3)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def of(*words: str) -> tuple[int, str, str]:
        parser = argparse.ArgumentParser()
        explain.register(parser.add_subparsers(required=True))
        args = parser.parse_args(["explain", *words])
        code: int = args.run(args)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return of


def test_a_request_is_drawn_with_its_header(run: Run):
    code, out, _ = run(REQUEST.hex())
    assert code == 0
    lines = out.split("\n")
    assert lines[0] == "RequestHeader v2  [0..15)"
    assert "├── client_id = 'test'  string?  [8..14)  00 04 74 65 73 74" in lines
    assert "HeartbeatRequest v4  [15..25)" in lines
    assert "├── generation_id = 7  int32  [17..21)  00 00 00 07" in lines


@pytest.mark.parametrize(
    "form",
    [
        REQUEST.hex(" "),
        "0x" + REQUEST.hex(),
        base64.b64encode(REQUEST).decode(),
    ],
)
def test_hex_and_base64_say_the_same(run: Run, form: str):
    assert run(form) == run(REQUEST.hex())


def test_a_file_may_hold_raw_bytes_hex_or_base64(run: Run, tmp_path: Path):
    expected = run(REQUEST.hex())
    for number, content in enumerate((REQUEST, REQUEST.hex().encode() + b"\n", base64.b64encode(REQUEST))):
        file = tmp_path / str(number)
        file.write_bytes(content)
        assert run(str(file)) == expected


def test_a_size_in_front_is_shown_and_passed_over(run: Run):
    _, out, _ = run((len(REQUEST).to_bytes(4, "big") + REQUEST).hex())
    assert out.startswith(f"size = {len(REQUEST)}  [0..4)\nRequestHeader v2  [4..19)\n")


def test_a_response_is_drawn_for_the_api_and_version_asked_for(run: Run):
    code, out, _ = run(RESPONSE.hex(), "--response", "Heartbeat", "--version", "4")
    assert code == 0
    assert "ResponseHeader v1  [0..5)" in out
    assert "error_code = 25  int16  [9..11)  00 19" in out


def test_a_bare_message_is_drawn_by_its_name(run: Run):
    code, out, _ = run("00000000", "--message", "EndTxnMarker", "--version", "0")
    assert (code, out.split("\n")[0]) == (0, "EndTxnMarker v0  [0..4)")


def test_a_damaged_frame_is_drawn_as_far_as_it_goes(run: Run):
    code, out, err = run(REQUEST[:-6].hex())
    assert code == 2
    assert "generation_id" in out
    assert "<- reading stopped here" in out
    assert err.startswith("kwire: HeartbeatRequest v4 $.generation_id at byte 17: ")
    assert len(err.strip().split("\n")) == 1


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("neither!",), "neither a file nor hex nor base64"),
        (("00",), "too few for a request"),
        (("7fff0000" + "00" * 8,), "API key 32767 is not known"),
        (("000003e7" + "00" * 8,), "version 999 is not known"),
        (("00" * 8, "--response", "Heartbeat", "--version", "9"), "version 9 is not known"),
        (("00" * 8, "--response", "Heartbeet", "--version", "9"), "no API or message"),
    ],
)
def test_bad_input_is_one_clear_line(run: Run, words: tuple[str, ...], what: str):
    try:
        code, _, err = run(*words)
    except kwire.KwireError as error:  # kwire.cli.main prints it, with exit code 2
        code, err = 2, str(error)
    assert code == 2
    assert what in err
    assert len(err.strip().split("\n")) == 1


CAPTURE = Path(__file__).parents[2] / "golden" / "kafka-3.9-zk-kafka-python" / "first-light.pcap"


def test_a_frame_of_a_capture_is_drawn_by_its_number(run: Run):
    code, out, _ = run(str(CAPTURE), "--frame", "0")
    assert code == 0
    assert out.startswith("RequestHeader ")
    drawn = [run(str(CAPTURE), "--frame", str(number))[1].split(" ")[0] for number in range(6)]
    assert set(drawn) == {"RequestHeader", "ResponseHeader"}


MAGICS = ["a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "a1b2cd34", "34cdb2a1", "0a0d0d0a"]
"""pcap in microseconds, in nanoseconds and of patched Linux kernels, each in both byte orders; pcapng."""


def test_a_capture_may_be_compressed(run: Run, tmp_path: Path):
    (tmp_path / "broker.pcap.gz").write_bytes(gzip.compress(CAPTURE.read_bytes()))
    assert run(str(tmp_path / "broker.pcap.gz"), "--frame", "2") == run(str(CAPTURE), "--frame", "2")


@pytest.mark.parametrize("magic", MAGICS)
def test_a_capture_of_every_kind_is_told_from_a_frame(run: Run, magic: str, tmp_path: Path):
    assert is_capture(bytes.fromhex(magic))
    file = tmp_path / "some.file"
    file.write_bytes(bytes.fromhex(magic) + bytes(40))
    with pytest.raises(DecodeError, match=r"some\.file is a capture: say which of its frames, with --frame N"):
        run(str(file))


@pytest.mark.parametrize("head", [b"", b"\xa1\xb2\xc3", bytes(4), REQUEST])
def test_what_does_not_begin_like_a_capture_is_none(head: bytes):
    assert not is_capture(head)


def test_a_frame_that_a_capture_does_not_have_is_an_error(run: Run):
    with pytest.raises(CaptureError, match=r"no frame 100000: \d+ frames, counted from 0"):
        run(str(CAPTURE), "--frame", "100000")
    with pytest.raises(DecodeError, match="is a capture: say which"):
        run(str(CAPTURE))


def test_options_of_values_go_with_schemas(run: Run, capsys: pytest.CaptureFixture[str]):
    for more, said in ((["--mask", "who"], "--mask goes with --values"), (["--frame", "0", "--mask", "who"], "--mask")):
        with pytest.raises(SystemExit):
            run(str(CAPTURE), *more)
        assert said in capsys.readouterr().err


@pytest.mark.wide
def test_of_a_large_frame_the_first_fields_are_drawn_and_what_is_wrong_behind_them_is_said(run: Run):
    topics = [messages.MetadataRequest.MetadataRequestTopic(name="t") for _ in range(5000)]
    frame = kwire.encode_request(messages.MetadataRequest(topics=topics), api_version=9, correlation_id=1)
    code, out, _ = run(frame.hex())
    assert code == 0
    assert len(out.split("\n")) < 1100
    assert "... these are the first 1000 fields: --fields N draws more" in out
    assert "reading stopped here" not in out
    code, out, err = run(frame[:-1].hex(), "--fields", "10")
    assert code == 2
    assert len(out.split("\n")) < 50
    assert err.startswith("kwire: MetadataRequest v9 $.unknown_tagged_fields at byte ")
    code, out, _ = run(frame.hex(), "--fields", "100000")
    assert out.count("name = 't'") == 5000


@pytest.mark.wide
def test_work_for_a_frame_of_80_kb_is_that_of_its_first_fields(tmp_path: Path):
    data = kwire.encode_request(
        messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="")] * 40_000),
        api_version=9,
        correlation_id=1,
    )
    assert len(data) > 80_000
    file = tmp_path / "frame"
    file.write_bytes(data)
    parser = argparse.ArgumentParser()
    explain.register(parser.add_subparsers(required=True))
    args = parser.parse_args(["explain", str(file)])
    args.run(args)
    # One line of Python for each byte would be more than that.
    assert lines(lambda: args.run(args), 80_000) > 1000


def test_bytes_after_a_body_are_drawn_unless_they_may_be_secret(run: Run) -> None:
    code, out, err = run((REQUEST + b"more").hex())
    assert code == 2
    assert "bytes after the end = 4 bytes" in out
    assert b"more".hex(" ") in out
    assert "HeartbeatRequest v4" in err
    token = kwire.encode_request(messages.SaslAuthenticateRequest(auth_bytes=b"x"), api_version=2, correlation_id=3)
    _, out, _ = run((token + b"more").hex())
    assert "bytes after the end = 4 bytes" in out
    assert b"more".hex(" ") not in out
    _, out, _ = run((token + b"more").hex(), "--secrets", "show")
    assert b"more".hex(" ") in out


def test_of_a_file_that_is_larger_than_any_frame_no_more_is_read(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "frame.bin"
    path.write_text(REQUEST.hex())
    monkeypatch.setattr(explain, "LARGEST", len(REQUEST) * 2)
    assert run(str(path)) == run(REQUEST.hex())
    monkeypatch.setattr(explain, "LARGEST", len(REQUEST) * 2 - 1)
    with pytest.raises(DecodeError, match="larger than the largest frame"):
        run(str(path))


def test_text_of_hex_is_told_without_memory_for_each_byte():
    good, bad = "ab" * 100_000, "ab" * 100_000 + "x"
    tracemalloc.start()
    try:
        assert dumps._HEX.match(good)
        assert not dumps._HEX.match(bad)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_what_is_behind_the_fields_that_are_drawn_has_limits(run: Run):
    names = b"\1\0" * 2000
    frame = kwire.encode_request(messages.MetadataRequest(), api_version=9, correlation_id=1, client_id="c")
    header = frame[: frame.index(b"\1c") + 3]
    whole = header + b"\xd1\x0f" + names + bytes(4)
    assert run(whole.hex(), "--fields", "3")[0] == 0
    code, _, said = run(whole.hex(), "--fields", "3", "--limits", "objects=1000")
    assert code == 2
    assert "beyond the limit objects of 1000" in said


def test_a_client_id_that_reaches_into_a_token_is_not_drawn(run: Run) -> None:
    asked = messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0wonderland")
    frame = bytearray(kwire.encode_request(asked, api_version=1, correlation_id=2, client_id="app"))
    frame[9] = 3 + 4 + 17
    code, out, _ = run(frame.hex())
    assert code
    assert "wonderland" not in out
    assert b"wonderland".hex(" ") not in out
    assert "client_id = redacted, 24 bytes" in out
    _, out, _ = run(frame.hex(), "--secrets", "show")
    assert "wonderland" in out
    # A good one is drawn, whatever is in it.
    good = kwire.encode_request(messages.ApiVersionsRequest(), api_version=0, correlation_id=2, client_id="a\0b")
    assert "redacted" not in run(good.hex())[1]
