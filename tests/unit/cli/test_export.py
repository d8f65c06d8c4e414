"""``kwire export``: spans, and smaller captures that are read like the whole."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from made_captures import exchange
from missing import give_up, no_program
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from packets import Connection, metadata, pcap

from kwire import capture
from kwire.cli import main
from kwire.testing.packets import read as packets_of

GOLDEN = Path(__file__).parents[2] / "golden"
NAMES = ("client_port", "direction", "api_name", "correlation_id", "timestamp", "size", "latency_ms", "status")


def rows(data: bytes, **options: Any) -> list[tuple[Any, ...]]:
    made = [row for batch in capture.read(io.BytesIO(data), **options) for row in batch.to_pylist()]
    return sorted(tuple(str(row[name]) for name in NAMES) for row in made)


@pytest.mark.parametrize("place", ["kafka-3.9-zk-kafka-python/pinned-0.9.pcap", "tunnels/vxlan/ipv6.pcap"])
def test_a_smaller_capture_has_the_rows_of_its_connections(place: str, tmp_path: Path) -> None:
    path = GOLDEN / place
    whole = path.read_bytes()
    ids = {row["client_id"] for batch in capture.read(io.BytesIO(whole)) for row in batch.to_pylist()} - {None}
    chosen = sorted(ids)[0]
    out = tmp_path / "some.pcapng"
    assert main(["export", str(path), "--pcapng", str(out), "--client-id", chosen]) == 0
    some = out.read_bytes()
    only = {"client_ids": [chosen]}
    assert rows(some, **only) == rows(whole, **only)
    connections = {row[0] for row in rows(some)}
    assert connections == {row[0] for row in rows(whole, **only)}
    originals = {(one.time, one.data, one.size) for one in packets_of(whole)}
    written = packets_of(some)
    assert {(one.time, one.data, one.size) for one in written} <= originals
    assert [one.time for one in written] == sorted(one.time for one in written)


def test_spans_of_some_apis_as_lines_and_as_protobuf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(exchange(Connection().open(), 3).send(metadata(9)).packets))
    lines, binary = tmp_path / "spans.jsonl", tmp_path / "spans.pb"
    assert main(["export", str(path), "--otlp", str(lines), "--api", "Metadata"]) == 0
    assert main(["export", str(path), str(path), "--otlp", str(binary)]) == 0
    assert "4 spans" in capsys.readouterr().err
    spans = [
        span
        for line in lines.read_text().splitlines()
        for of in json.loads(line)["resourceSpans"]
        for span in of["scopeSpans"][0]["spans"]
    ]
    assert [span["name"] for span in spans] == ["Metadata"] * 4
    assert sum(len(of.scope_spans[0].spans) for of in TracesData.FromString(binary.read_bytes()).resource_spans) == 8
    assert main(["export", str(path), "--otlp", str(lines), "--api", "Fetch"]) == 0
    assert lines.read_text() == ""


def test_what_stands_before_damage_and_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(exchange(Connection().open(), 3).packets)[:-5])
    for option, name in (("--otlp", "s.json"), ("--pcapng", "s.pcapng")):
        assert main(["export", str(path), option, str(tmp_path / name)]) == 2
        assert "truncated" in capsys.readouterr().err
    assert len(json.loads((tmp_path / "s.json").read_text())["resourceSpans"][0]["scopeSpans"][0]["spans"]) == 3
    assert len(packets_of((tmp_path / "s.pcapng").read_bytes())) == len(packets_of(path.read_bytes()))
    for wrong in (["--otlp", "x"], [str(path)], ["-", "--pcapng", "x"], [str(path), "--otlp", "x", "--api", "Nothing"]):
        with pytest.raises(SystemExit):
            main(["export", *wrong])


@pytest.mark.wide
def test_wireshark_opens_what_is_written(tmp_path: Path) -> None:
    tshark = shutil.which("tshark")
    if tshark is None:
        give_up(no_program("tshark"))
    path = GOLDEN / "kafka-4.3-kraft-librdkafka" / "current.pcap"
    out = tmp_path / "some.pcapng"
    assert main(["export", str(path), "--pcapng", str(out), "--client-id", "rdkafka-new"]) == 0

    def said(file: Path, *more: str) -> list[str]:
        command = [tshark, "-r", str(file), "-T", "fields", "-e", "frame.time_epoch", "-e", "tcp.srcport", *more]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()

    both = ("-e", "tcp.seq_raw", "-e", "tcp.payload")
    some, whole = said(out, *both), said(path, *both)
    assert 0 < len(some) <= len(whole)
    assert set(some) <= set(whole)
    # All packets, and connections without holes.
    assert len(some) == len(packets_of(out.read_bytes()))
    assert said(out, "-Y", "tcp.analysis.lost_segment") == []


@pytest.mark.parametrize("outputs", [["--otlp"], ["--pcapng"], ["--otlp", "--pcapng"]])
def test_what_was_left_out_is_said_once(outputs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = [word for number, one in enumerate(outputs) for word in (one, str(tmp_path / str(number)))]
    other = tmp_path / "other.pcap"
    other.write_bytes(pcap(Connection(broker=("10.0.0.2", 80)).open().send_raw(b"GET / HTTP/1.1\r\n\r\n").packets))
    assert main(["export", str(other), *to]) == 2
    assert capsys.readouterr().err.count("no Kafka traffic") == 1
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(pcap(exchange(Connection().open(), 3).packets, snaplen=74))
    assert main(["export", str(cut), *to]) == 0
    assert capsys.readouterr().err.count("cut off by the snapshot length") == 1
    assert main(["export", str(cut), *to, "--client-id", "nobody"]) == 0
