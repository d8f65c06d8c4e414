"""kafkajs with every codec, each by a library of its own: the records are exactly those that it sent and read."""

from __future__ import annotations

import collections
import json
from base64 import b64decode
from pathlib import Path

from kwire import capture
from kwire.records import CODECS

PATH = Path(__file__).parent / "kafka-3.9-kraft-kafkajs" / "codecs.pcap"


def data(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def test_every_codec_of_kafkajs_is_read_exactly() -> None:
    lines = [json.loads(line) for line in PATH.with_suffix(".told.jsonl").read_text().splitlines()]
    with PATH.open("rb") as file:
        rows = [row for batch in capture.read(file, "records") for row in batch.to_pylist()]
    assert {row["status"] for row in rows} == {"ok"}
    for source in ("produce", "fetch"):
        found = collections.Counter(
            (row["topic"], row["compression"], row["partition"], row["key"], row["value"],
             tuple((one["key"], one["value"]) for one in row["headers"]))
            for row in rows if row["source"] == source
        )  # fmt: skip
        told = collections.Counter(
            (line["topic"], line["topic"].removeprefix("codecs-"), line["partition"], data(line["key"]),
             data(line["value"]), tuple((name, data(value)) for name, value in line["headers"]))
            for line in lines if line["direction"] == source
        )  # fmt: skip
        assert found == told
        assert {codec for _, codec, *_ in found} == {"none", *CODECS}
        times = [round(row["timestamp"].timestamp() * 1000) for row in rows if row["source"] == source]
        assert sorted(times) == sorted(line["timestamp"] for line in lines if line["direction"] == source)
