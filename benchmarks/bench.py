"""One page of how fast kwire is beside others: codec, records and captures.

    python benchmarks/bench.py [--family codec] [--out build/bench] [--rounds 5] [--page docs/results/benchmarks.md]

It writes ``index.html`` (one file, nothing to fetch), an SVG for each family, and ``bench.json`` with all figures. The
families are those of ``codec.py``, ``records.py`` and ``tshark.py``, where each contestant and what it has to do is
described. All three take less than ten minutes once the peers in Java, Go and Rust are built (``peers``). What cannot
be measured here is a line that says why.

``--page`` writes the same figures as a page of the docs, with the pictures beside it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, NamedTuple

import codec
import records
import tshark
from _drawing import STYLE, alone, sheet, time_text
from _measuring import Spread
from peers import Peer, started

import kwire
from kwire.report.html import document, safe

ROOT = Path(__file__).resolve().parents[1]
PEERS = ("kafka-python", "aiokafka", "kio", "construct", "cramjam", "crc32c", "numpy", "numba", "pyarrow")
"""Packages whose versions are said."""
RECORDS = 4000
"""Records of a case: construct takes half a second for as many."""
MEGABYTES = 8

_PAGE = """
:root{color-scheme:light dark}
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:76rem;padding:0 1rem}
h1{font-size:1.5rem}h2{margin-top:2.2rem}
.panels{display:flex;flex-wrap:wrap;gap:1rem}.panels figure{margin:0;flex:1 1 21rem;max-width:26rem}
.panels svg{width:100%;height:auto}
div.t{overflow-x:auto}table{border-collapse:collapse}
th,td{text-align:left;padding:.25rem .7rem;border-bottom:1px solid #8884;white-space:nowrap}
td.r,th.r{text-align:right;font-variant-numeric:tabular-nums}
@media(max-width:40rem){body{margin:1rem auto;padding:0 .6rem}th,td{padding:.25rem .35rem;font-size:.9rem}}
"""


class Family(NamedTuple):
    """Cases of one kind. ``ways``: what is measured of each. ``base``: beside whom the others stand."""

    title: str
    about: str
    unit: str
    ways: tuple[str, ...]
    base: str
    cases: Callable[[Mapping[str, Peer], argparse.Namespace], Iterator[dict[str, Any]]]


def _codec(outside: Mapping[str, Peer], args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for one in codec.cases():
        if args.only in one.label:
            yield codec.run_case(one, codec.LIBRARIES, outside, args.rounds, args.seconds)


def _records(outside: Mapping[str, Peer], args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for one in records.all_cases(RECORDS):
        # All codecs for small values; headers, large values and the old format for one of them.
        chosen = (one.magic == 2 and "100 B          " in one.name) or one.codec == "none"
        if chosen and args.only in one.name:
            yield records.run_case(one, outside, args.rounds, args.seconds)


def _captures(outside: Mapping[str, Peer], args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for title in tshark.CASES:
        if tshark.version() is not None and args.only in title:
            yield tshark.run_case(title, MEGABYTES, min(args.rounds, 3))


FAMILIES: dict[str, Family] = {
    "codec": Family(
        "Messages",
        "One message, decoded to objects of which every field is read, and encoded. Every contestant gets the same "
        "bytes, and has to write what it read as the same bytes. Record sets within messages stay bytes. kwire columns "
        "is one Arrow struct of 256 frames, with headers and all fields.",
        "message",
        ("decode", "encode"),
        "kwire",
        _codec,
    ),
    "records": Family(
        "Records",
        "Record sets of 100 records a batch. Checksums are verified, all fields of all records are read, and what they "
        "add up to is the same for all. kwire's columns are Arrow arrays, which Python does not look into. Go and Rust "
        "give pieces of what was decompressed, all others copies. kio cuts times to seconds. The floor decompresses, "
        "checksums and copies, and does nothing else.",
        "record",
        ("read",),
        "kwire columns",
        _records,
    ),
    "captures": Family(
        "Captures",
        "Whole processes, with their start, that read a capture file and write a line for each Kafka frame: time, both "
        "ends, API, version, correlation id and client id.",
        "capture",
        ("read",),
        "kwire",
        _captures,
    ),
}


def ratios(family: Family, found: list[dict[str, Any]], way: str) -> dict[str, tuple[float, int]]:
    """How many times as long each contestant takes as the base: the geometric mean, and of how many cases."""
    each: dict[str, list[float]] = {}
    for one in found:
        for name, spread in one[way].items():
            each.setdefault(name, []).append(spread.median / one[way][family.base].median)
    return {name: (statistics.geometric_mean(some), len(some)) for name, some in each.items()}


def machine() -> dict[str, str]:
    """What it was measured on."""
    model = platform.processor()
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        model = next(
            (one.partition(":")[2].strip() for one in cpus.read_text().splitlines() if "model name" in one), ""
        )
    said = f"{platform.python_implementation()} {platform.python_version()}"
    return {
        "processor": model or "unknown",
        "processors": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "Python": said,
    }


def versions(outside: Mapping[str, Peer]) -> dict[str, str]:
    """Of kwire, of packages, and of the peers outside."""
    found = {"kwire": kwire.__version__}
    for name in PEERS:
        try:
            found[name] = version_of(name)
        except ModuleNotFoundError:
            continue
    found |= {name: peer.versions for name, peer in outside.items()}
    return found | ({"tshark": tshark.version() or ""} if tshark.version() else {})


def lines_of(families: Mapping[str, list[dict[str, Any]]], missing: Mapping[str, str]) -> list[str]:
    """What was not measured, and why: a line for each contestant and reason."""
    lines = [f"{name}: {why}" for name, why in missing.items()]
    told: dict[tuple[str, str, str], list[str]] = {}
    for family, found in families.items():
        for one in found:
            for name, why in one["unable"].items():
                told.setdefault((family, name, why), []).append(one["label"])
    for (family, name, why), cases in told.items():
        which = " ".join(cases[0].split()) if len(cases) == 1 else f"{len(cases)} of {len(families[family])} cases"
        lines.append(f"{FAMILIES[family].title}, {name}: {why} ({which})")
    return lines


def panels(name: str, found: list[dict[str, Any]]) -> list[tuple[str, dict[str, Spread]]]:
    """The panels of a family: a title, and the spreads of its contestants."""
    made = []
    for way in FAMILIES[name].ways:
        for one in found:
            what = f"{one['label']}, {way}" if len(FAMILIES[name].ways) > 1 else one["label"]
            made.append((" ".join(what.split()), one[way]))
    return made


def _rows(family: Family, found: list[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """Each contestant, and its cells: times as long as the base for each way, and of how many cases."""
    by = {way: ratios(family, found, way) for way in family.ways}
    names = sorted(by[family.ways[0]], key=lambda name: by[family.ways[0]][name][0])
    for name in names:
        cells = [f"{by[way][name][0]:.2f}" if name in by[way] else "" for way in family.ways]
        yield name, [*cells, str(by[family.ways[0]][name][1])]


def html_page(made: dict[str, Any], families: Mapping[str, list[dict[str, Any]]]) -> str:
    """The page."""
    facts = {**made["machine"], **made["versions"]}
    body = ["<h1>kwire beside others</h1>"]
    body.append(f"<p>{safe(made['how'])}</p><p>Measured on {safe(made['day'])}.</p>")
    for name, found in families.items():
        family = FAMILIES[name]
        body.append(f"<h2>{family.title}</h2><p>{safe(family.about)}</p>")
        body.append(f"<p>How many times as long as {family.base}, geometric means:</p>")
        heads = "".join(f'<th class="r">{way}</th>' for way in (*family.ways, "cases"))
        body.append(f'<div class="t"><table><thead><tr><th>contestant</th>{heads}</tr></thead><tbody>')
        for who, cells in _rows(family, found):
            body.append(f"<tr><td>{safe(who)}</td>" + "".join(f'<td class="r">{one}</td>' for one in cells) + "</tr>")
        body.append(f"</tbody></table></div><p>CPU time for a {family.unit}:</p>" + '<div class="panels">')
        body += [f"<figure>{alone(title, rows)}</figure>" for title, rows in panels(name, found)]
        body.append("</div>")
    if made["missing"]:
        body.append(
            "<h2>What was not measured</h2><ul>" + "".join(f"<li>{safe(one)}" for one in made["missing"]) + "</ul>"
        )
    body.append('<h2>Machine and versions</h2><div class="t"><table><tbody>')
    body += [f"<tr><td>{safe(name)}</td><td>{safe(value)}</td></tr>" for name, value in facts.items()]
    body.append("</tbody></table></div>")
    return document("kwire beside others", body, styles=[_PAGE, STYLE])


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, 140, break_long_words=False, break_on_hyphens=False))


def docs_page(made: dict[str, Any], families: Mapping[str, list[dict[str, Any]]]) -> str:
    """The same as a page of the docs, without the panels: those are pictures."""
    parts = [
        "# kwire beside others\n",
        "How fast kwire is, and where others are faster. `make bench` makes this page.\n",
    ]
    parts.append(_wrapped(f"{made['how']} Measured on {made['day']}.") + "\n")
    for name, found in families.items():
        family = FAMILIES[name]
        parts.append(f"## {family.title}\n\n{_wrapped(family.about)}\n")
        parts.append(f"How many times as long as {family.base}, geometric means. Below 1 is faster:\n")
        heads = ["contestant", *family.ways, "cases"]
        parts.append(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
        parts += [f"| {who} | {' | '.join(cells)} |" for who, cells in _rows(family, found)]
        parts.append(
            f"\nCPU time for a {family.unit}. The point is the median, the bar the middle half of the rounds:\n"
        )
        parts.append(f"![CPU time of each contestant for a {family.unit}](benchmarks-{name}.svg)\n")
    parts.append("## What was not measured\n")
    parts += [f"- {one}" for one in made["missing"] or ["Nothing was left out."]]
    parts.append("\n## Machine and versions\n\n| | |\n|---|---|")
    parts += [f"| {name} | {value} |" for name, value in {**made["machine"], **made["versions"]}.items()]
    parts.append("\nAll figures: `docs/results/benchmarks.json`.")
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=FAMILIES, action="append", help="one of them (default: all)")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.05, help="CPU of a contestant in a round")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench")
    parser.add_argument("--page", type=Path, help="write a page of the docs, too")
    args = parser.parse_args()
    names = args.family or list(FAMILIES)
    needed = any(name != "captures" for name in names)
    outside, missing = started() if needed else ({}, {})
    if "captures" in names and tshark.version() is None:
        missing["tshark"] = "tshark not found"
    for name, why in missing.items():
        print(f"{name}: {why}", flush=True)
    families: dict[str, list[dict[str, Any]]] = {}
    for name in names:
        for one in FAMILIES[name].cases(outside, args):
            families.setdefault(name, []).append(one)
            base, way = FAMILIES[name].base, FAMILIES[name].ways[0]
            print(f"{name}: {one['label']}: {base} {time_text(one[way][base].median)}", flush=True)
    made: dict[str, Any] = {
        "day": f"{datetime.datetime.now(datetime.UTC):%d %B %Y}".lstrip("0"),
        "how": "CPU time of one process for each contestant. All of them are warm, and take turns in "
        f"{args.rounds} rounds of about {args.seconds * 1000:.0f} ms. Figures are medians.",
        "machine": machine(),
        "versions": versions(outside),
        "missing": lines_of(families, missing),
    }
    for peer in outside.values():
        peer.close()
    if not families:
        sys.exit("benchmarks/bench.py: nothing was measured")
    write(args, made, families)


def write(args: argparse.Namespace, made: dict[str, Any], families: Mapping[str, list[dict[str, Any]]]) -> None:
    """All files."""
    said = json.dumps({**made, "families": _figures(families)}, indent=1, ensure_ascii=False) + "\n"
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "index.html").write_text(html_page(made, families), "utf-8")
    (args.out / "bench.json").write_text(said, "utf-8")
    for name, found in families.items():
        (args.out / f"{name}.svg").write_text(sheet(panels(name, found)), "utf-8")
    print(f"{args.out}/index.html")
    if args.page is not None:
        args.page.write_text(docs_page(made, families), "utf-8")
        args.page.with_suffix(".json").write_text(said, "utf-8")
        for name, found in families.items():
            args.page.with_name(f"{args.page.stem}-{name}.svg").write_text(sheet(panels(name, found)), "utf-8")


def _figures(families: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """All figures in seconds, rounded to four digits."""

    def plain(value: Any) -> Any:
        if isinstance(value, Spread):
            return {key: float(f"{number:.4g}") for key, number in value._asdict().items()}
        return {key: plain(one) for key, one in value.items()} if isinstance(value, dict) else value

    return {name: [plain(one) for one in found] for name, found in families.items()}


if __name__ == "__main__":
    main()
