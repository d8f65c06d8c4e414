"""The blocks of code of the pages in ``docs``, and the files that they read.

A block runs unless a line ``<!-- not run: WHY -->`` stands before it. Blocks of Python of a page run in order and share
their names; ``SETUP`` is what a page takes for granted. SQL is in ``tests/spark/docs_queries.py``.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
GOLDEN: Final = ROOT / "tests" / "golden"
ELSEWHERE: Final = {
    "how-to/payload-columns.md": "tests/spark/test_payloads_docs.py",
    "how-to/cloudevents.md": "tests/spark/test_events_docs.py",
    "how-to/hono.md": "tests/spark/test_events_docs.py",
    "how-to/client-metrics.md": "tests/spark/test_telemetry.py",
    "how-to/sql/README.md": "tests/spark/test_sql_docs.py",
}
"""Pages whose blocks a test of their own runs, and checks more of."""
SETUP: Final = {
    "how-to/fewer-rows-and-columns.md": "path = 'captures/first-light.pcap'",
    "how-to/sessions.md": "import kwire.spark\npath = ['captures/first-light.pcap']",
    "how-to/one-huge-file.md": "import kwire.spark",
    "how-to/export.md": "import kwire.spark",
    "how-to/records.md": "import numpy as np\nfrom kwire import records as made\nrecords = [made.Record(b'k', b'v')]\n"
    "data = made.encode(records)\nbuffer = np.frombuffer(data, np.uint8)\n"
    "starts, lengths = np.array([0]), np.array([len(data)])",
    "reference/options.md": "import kwire, kwire.capture",
    "reference/column-functions.md": "import kwire.spark\nfrom pyspark.sql import functions as sql\n"
    "df = spark.createDataFrame([('t', b'\\0', b'')], 'topic string, payload binary, record_set binary')",
    "how-to/streams-without-packets.md": "import kwire.spark\nevents = spark.createDataFrame("
    "[('a', 1, 1, 'request', None, b'')], "
    "'host string, pid int, fd int, direction string, time timestamp, data binary')",
}
_BLOCK = re.compile(r"(<!-- not run: (.*?) -->\n)?^```(python|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """``why_not``: why it does not run; empty if it does."""

    page: str
    number: int
    language: str
    code: str
    why_not: str


def pages() -> list[str]:
    """The pages that have blocks, but for those of other tests and notes of decisions."""
    found = (one.relative_to(DOCS).as_posix() for one in sorted(DOCS.rglob("*.md")))
    return [one for one in found if one.split("/")[0] not in ("design", "tutorial") and blocks(one)]


def blocks(page: str) -> list[Block]:
    """The blocks of Python and of commands of a page, in order."""
    found = enumerate(_BLOCK.finditer((DOCS / page).read_text("utf-8")))
    return [Block(page, number, one[3], one[4], one[2] or "") for number, one in found]


def python(page: str) -> list[Block]:
    """The blocks of Python of a page that run, after what it takes for granted."""
    if page in ELSEWHERE:
        return []
    found = [one for one in blocks(page) if one.language == "python" and not one.why_not]
    return [Block(page, -1, "python", SETUP[page], ""), *found] if found and page in SETUP else found


def needs_spark(page: str) -> bool:
    """Whether a block of Python of the page has a session."""
    return any("spark" in one.code for one in python(page))


def lay_out(folder: Path, page: str = "") -> None:
    """Puts the files there that pages read."""
    light = GOLDEN / "kafka-3.9-zk-kafka-python" / "first-light.pcap"
    tls = GOLDEN / "tls" / "kafka-4.3-kraft-kafka-python"
    segments = GOLDEN / "segments" / "4.3-kraft"
    keys = sorted(tls.glob("*.keys"))[0]
    captures = folder / "captures"
    if page == "how-to/folders-as-columns.md":
        captures /= "date=2026-11-22/sensor=east"
    captures.mkdir(parents=True)
    for name in ("first-light.pcap", "day.pcap"):
        shutil.copy(light, captures / name)
    if page in ("how-to/rotated-captures.md", "how-to/spark.md"):
        day = captures / "2026-11-22" / ("east" if page == "how-to/rotated-captures.md" else "")
        day.mkdir(parents=True)
        shutil.copy(light, day / "a.pcap")
    if page == "how-to/tls.md":
        (folder / "captures" / "keys").mkdir()
        shutil.copy(keys, folder / "captures" / "keys" / "a.log")
    if page == "how-to/streaming.md":
        (folder / "captures" / "live").mkdir()
        shutil.copy(light, folder / "captures" / "live" / "a.pcap")
    if page in ("how-to/values.md", "how-to/lineage.md"):
        shutil.rmtree(folder / "captures")
        captures.mkdir()
        for name in ("registry.pcap", "shop.pcap"):
            shutil.copy(GOLDEN / "values" / name, folder / "captures" / name)
    of_flows = page in ("how-to/what-happened.md", "reference/tables/transactions.md")
    shutil.copy(GOLDEN / "kafka-4.3-kraft-java" / "clients.pcap" if of_flows else light, folder / "broker.pcap")
    if of_flows:
        shutil.copy(GOLDEN / "groups" / "java.gz", folder / "groups.pcap.gz")
    shutil.copy(keys, folder / "keys.log")
    shutil.copy(next(tls.glob(f"{keys.stem}.pcap*")), folder / "tls.pcap")
    shutil.copy(GOLDEN / "tunnels" / "vxlan" / "plain.pcap", folder / "tunnel.pcap")
    shutil.copy(GOLDEN / "kafka-4.3-kraft-events" / "events.pcap", folder / "events.pcap")
    for kind in ("zstd", "snappy"):
        shutil.copy(GOLDEN / "kafka-4-telemetry" / f"{kind}.pcap", folder / "captures" / f"{kind}.pcap")
    shutil.copytree(segments / "log-tx-0", folder / "orders-0")
    shutil.copytree(segments / "log-tx-0", folder / "logs" / "orders-0")
    shutil.copytree(segments / "__consumer_offsets-0", folder / "__consumer_offsets-0")
