"""The pages of APIs and KIPs, and the data of the protocol explorer, made of the schemas.

They are 95 and some 130 pages, which change with each schema: too many for git. ``docs/make_site.py`` writes them for
the site. ``reference/apis.md``, the list, is in git.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from kwire import cli, schema, versions
from kwire.capture.reading import Reading
from kwire.cli.schema import since
from kwire.report.findings import RULES
from kwire.schema.checks import struct_ref
from kwire.schema.format import type_text
from kwire.schema.model import OPEN, Field, Message
from kwire.tables import calls, partitions

GOLDEN: Final = Path(__file__).parents[1] / "tests" / "golden"
KIP: Final = re.compile(r"KIP-(\d+)")
LISTENERS: Final = {"zookeeper": "with ZooKeeper", "broker": "KRaft broker", "controller": "KRaft controller"}
DRAWN: Final = 60
"""Fields of an example that are drawn."""
TYPICAL: Final = 200
"""Bytes of a frame that is a good example."""
RECORDS: Final = {0: ("request",), 1: ("response",), 78: ("response",)}
"""APIs whose messages have records that the tables ``records`` and ``batches`` show."""


def messages(api_key: int) -> list[Message]:
    """The request and the response of an API."""
    return [one for one in (schema.request(api_key), schema.response(api_key)) if one is not None]


def page_of(api_key: int) -> str:
    """The name of the page of an API."""
    return f"{api_key:02}-{schema.api_keys()[api_key]}.md"


def rows(message: Message) -> Iterator[tuple[int, Field, list[int]]]:
    """The fields of a message: how deep each is, and the versions that have it."""

    def walk(fields: Iterable[Field], depth: int, within: list[int]) -> Iterator[tuple[int, Field, list[int]]]:
        for one in fields:
            have = [version for version in within if version in one.versions]
            if have:
                yield depth, one, have
                ref = struct_ref(one)
                if ref is not None:
                    yield from walk(message.structs[ref.name].fields, depth + 1, have)

    yield from walk(message.fields, 0, list(message.versions))


# --- one API ----------------------------------------------------------------------------------------------------------


def api_page(api_key: int) -> str:
    """The page of an API."""
    name = schema.api_keys()[api_key]
    both = messages(api_key)
    first = both[0]
    served = {text: _accepted(api_key, listener) for listener, text in LISTENERS.items()}
    lines = [f"# {name}", "", _with_kips(first.doc) or f"The API {name}.", "", "| | |", "|---|---|"]
    lines += [
        f"| key | {api_key} |",
        f"| versions | {first.versions} |",
        f"| flexible versions | {first.flexible} |",
        f"| since Kafka | {since(api_key) or 'not known'} |",
        *(f"| Kafka {versions.releases()[-1]} accepts, {text} | {said} |" for text, said in served.items() if said),
        f"| tables | {', '.join(f'[{one}](../tables/{one}.md)' for one in tables_of(api_key))} |",
        f"| findings | {', '.join(f'`{one}`' for one in rules_of(name)) or 'none of its own'} |",
        "",
        f'<a href="../../../explorer/index.html#api={api_key}">Compare two versions</a> in the explorer.',
        "",
        "## What each version changed",
        "",
        "| version | since Kafka | change |",
        "|---|---|---|",
    ]
    for version in first.versions:
        releases = versions.accepting(api_key, version)
        said = "; ".join(dict.fromkeys(one.notes[version] for one in both if version in one.notes))
        lines.append(f"| {version} | {releases[0] if releases else 'not as installed'} | {_with_kips(said)} |")
    for one in both:
        lines += ["", f"## {one.kind.capitalize()}", "", *_layouts(one)]
        if one is not first and one.doc:
            lines[-len(_layouts(one)) : -len(_layouts(one))] = [_with_kips(one.doc), ""]
        drawn = example(api_key, one.kind)
        if drawn:
            lines += ["", f"A {one.kind} of version {drawn.version}, from `{drawn.capture}`:", "", "```text"]
            lines += [*drawn.text.splitlines(), "```"]
    return "\n".join(lines) + "\n"


def _accepted(api_key: int, listener: Any) -> str:
    found = versions.accepted(versions.releases()[-1], listener).get(api_key)
    return str(found) if found else ""


def _layouts(message: Message) -> list[str]:
    """Every version of a message, side by side."""
    numbers = list(message.versions)
    lines = [
        f"| field | type | {' | '.join(map(str, numbers))} |",
        f"|---|---|{'---|' * len(numbers)}",
    ]
    for depth, one, have in rows(message):
        cells = [_mark(one, version) if version in have else "" for version in numbers]
        indent = "&emsp;" * depth
        lines.append(f"| {indent}`{one.name}` | `{type_text(one)}` | {' | '.join(cells)} |")
    if len(lines) == 2:
        return ["It has no fields."]
    return [*lines, "", "● the version has the field; a number: it is a tagged field with this tag."]


def _mark(one: Field, version: int) -> str:
    return str(one.tag) if one.tag is not None and version in one.tagged else "●"


def _with_kips(text: str) -> str:
    text = re.sub(r"\s*\n\s*", " ", text).strip()
    text = re.sub(r"\s{2,}", " ", text).replace("|", "\\|").replace("<", "&lt;")
    return KIP.sub(r"[KIP-\1](../kips/KIP-\1.md)", text)


@lru_cache(maxsize=1)
def _code_of_rules() -> dict[str, str]:
    return {one: inspect.getsource(rule) for one, rule in RULES.items()}


def rules_of(name: str) -> list[str]:
    """The rules of findings whose code names an API."""
    return [one for one, code in _code_of_rules().items() if f'"{name}"' in code]


def tables_of(api_key: int) -> list[str]:
    """The tables that have rows of an API."""
    found = ["frames", "messages", "connections"]
    fields = {name for _, known in calls._ALL.values() for name, _ in known}
    if any(one.name in fields for message in messages(api_key) for depth, one, _ in rows(message) if not depth):
        found.append("calls")
    kinds = partitions._kinds(schema.generation())
    if kinds[2 * api_key : 2 * api_key + 2].any():
        found.append("partitions")
    return [
        *found,
        *(("records", "batches") if api_key in RECORDS else ()),
        *(("client_metrics",) if api_key in (71, 72) else ()),
    ]


# --- examples ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """A frame of a golden capture, as ``kwire explain`` draws it."""

    capture: str
    version: int
    data: bytes
    text: str = ""


@lru_cache(maxsize=1)
def _frames() -> dict[tuple[int, str], list[Example]]:
    """Of each API and kind the best example of each capture: first the newest version, then those of a good size."""
    best: dict[tuple[int, str], dict[tuple[str, int], Example]] = {}
    for path in sorted(GOLDEN.glob("kafka-*/*.pcap*")):
        name = path.relative_to(GOLDEN).as_posix()
        with path.open("rb") as file:
            for frames in Reading(file):
                for frame in frames:
                    if frame.status.name == "OK" and frame.api_key in schema.api_keys():
                        known = best.setdefault((frame.api_key, "response" if frame.is_response else "request"), {})
                        one = Example(name, frame.api_version, bytes(frame.data))
                        old = known.setdefault((name, one.version), one)
                        if _rank(one) < _rank(old):
                            known[name, one.version] = one
    return {key: sorted(known.values(), key=_rank) for key, known in best.items()}


def _rank(one: Example) -> tuple[int, bool, int, str]:
    return -one.version, "raw" in one.capture, abs(len(one.data) - TYPICAL), one.capture


def example(api_key: int, kind: str) -> Example | None:
    """The example of an API, drawn; None if no golden capture has one."""
    for found in _frames().get((api_key, kind), ()):
        words = ["explain", found.data.hex(), "--fields", str(DRAWN)]
        if kind == "response":
            words += ["--response", str(api_key), "--version", str(found.version)]
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            code = cli.main(words)
        # An ApiVersions response may be one of version 0 all the same.
        if code == 0:
            return Example(found.capture, found.version, found.data, out.getvalue())
    return None


# --- KIPs, the list, the explorer -------------------------------------------------------------------------------------


def kips() -> dict[int, list[tuple[Message, int | None, str]]]:
    """By KIP the messages whose schemas name it: the version (None: its description), and what it changed."""
    found: dict[int, list[tuple[Message, int | None, str]]] = {}
    for name in schema.names():
        message = schema.message(name)
        said: list[tuple[int | None, str]] = [(None, message.doc), *message.notes.items()]
        for version, text in said:
            for number in sorted({int(one) for one in KIP.findall(text)}):
                found.setdefault(number, []).append((message, version, text))
    return dict(sorted(found.items()))


def kip_page(number: int) -> str:
    """The page of a KIP."""
    lines = [
        f"# KIP-{number}",
        "",
        "What this proposal changed on the wire, as the schemas say. Apache Kafka has",
        "[the proposals](https://cwiki.apache.org/confluence/display/KAFKA/Kafka+Improvement+Proposals).",
        "",
        "| message | version | change |",
        "|---|---|---|",
    ]
    for message, version, text in sorted(kips()[number], key=lambda one: (one[0].api_key is None, one[0].api_key or 0)):
        linked = f"`{message.name}`"
        if message.kind in ("request", "response") and message.api_key is not None:
            linked = f"[{message.name}](../apis/{page_of(message.api_key)})"
        # Its own number, at the end of each line, says nothing here.
        change = _with_kips(re.sub(rf"\s*KIP-{number}\s*$", "", text)).replace("(../kips/", "(")
        lines.append(f"| {linked} | {'all' if version is None else version} | {change} |")
    return "\n".join(lines) + "\n"


def listed(site: bool = False) -> str:
    """docs/reference/apis.md; on the site with links to the page of each API."""
    newest = versions.releases()[-1]
    lines = [
        "# APIs",
        "",
        "Every API that the schemas have. This page is made from the code (`make docs`). The site has a page for",
        "each, with all versions side by side, and one for each KIP: `make site`. `kwire schema NAME` shows the same",
        "in a terminal.",
        "",
        f"| key | API | versions | flexible | since Kafka | brokers of {newest} | controllers of {newest} |",
        "|---|---|---|---|---|---|---|",
    ]
    for api_key, name in schema.api_keys().items():
        first = messages(api_key)[0]
        shown = f"[{name}](apis/{page_of(api_key)})" if site else name
        lines.append(
            f"| {api_key} | {shown} | {first.versions} | {first.flexible} | {since(api_key)} | "
            f"{_accepted(api_key, 'broker')} | {_accepted(api_key, 'controller')} |"
        )
    if site:
        toc = "\n".join(f"apis/{page_of(one).removesuffix('.md')}" for one in schema.api_keys())
        lines += ["", '<a href="../../explorer/index.html">The explorer</a> compares two versions.', "", _toctree(toc)]
    return "\n".join(lines) + "\n"


def _toctree(pages: str) -> str:
    return f"```{{toctree}}\n:hidden:\n\n{pages}\n```"


def site_pages() -> Iterator[tuple[str, str]]:
    """The pages that only the site has, by their place below ``docs``."""
    yield "reference/apis.md", listed(site=True)
    for key in schema.api_keys():
        yield f"reference/apis/{page_of(key)}", api_page(key)
    found = kips()
    lines = [f"| [KIP-{one}](KIP-{one}.md) | {_about(some)} |" for one, some in found.items()]
    lines = ["# KIPs", "", "The proposals that the schemas name.", "", "| KIP | messages |", "|---|---|", *lines, ""]
    yield "reference/kips/index.md", "\n".join([*lines, _toctree("\n".join(f"KIP-{one}" for one in found)), ""])
    for one in found:
        yield f"reference/kips/KIP-{one}.md", kip_page(one)


def _about(some: list[tuple[Message, int | None, str]]) -> str:
    return ", ".join(dict.fromkeys(message.api_name for message, _, _ in some))


def explorer_data() -> str:
    """What the explorer knows, as JSON."""
    names = versions.releases()
    apis = []
    for key, name in schema.api_keys().items():
        both = messages(key)
        apis.append(
            {
                "key": key,
                "name": name,
                "doc": re.sub(r"\s+", " ", both[0].doc),
                "versions": _ends(both[0].versions),
                "flexible": _ends(both[0].flexible),
                "since": since(key),
                "notes": {
                    version: "; ".join(dict.fromkeys(one.notes[version] for one in both if version in one.notes))
                    for version in both[0].versions
                    if any(version in one.notes for one in both)
                },
                **{one.kind: _fields(one, one.fields) for one in both},
            }
        )
    accepted: dict[str, dict[str, dict[int, list[int]]]] = {}
    for release in names:
        for listener in LISTENERS:
            served = versions.accepted(release, listener)  # type: ignore[arg-type]
            if served:
                accepted.setdefault(release, {})[listener] = {key: _ends(one) for key, one in sorted(served.items())}
    return json.dumps(
        {"apis": apis, "releases": names, "listeners": LISTENERS, "accepted": accepted}, separators=(",", ":")
    )


def _ends(range_: Any) -> list[int]:
    return [range_.low, min(range_.high, OPEN)] if range_ else []


def _fields(message: Message, fields: Iterable[Field]) -> list[dict[str, Any]]:
    found = []
    for one in fields:
        ref = struct_ref(one)
        plain = type_text(one).partition("?")[0]
        made: dict[str, Any] = {"n": one.name, "t": plain, "v": _ends(one.versions)}
        if one.nullable:
            made["null"] = _ends(one.nullable)
        if one.tag is not None:
            made |= {"tag": one.tag, "tagged": _ends(one.tagged)}
        if ref is not None:
            made["f"] = _fields(message, message.structs[ref.name].fields)
        found.append(made)
    return found
