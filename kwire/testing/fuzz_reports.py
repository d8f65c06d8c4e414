"""What came out of ``kwire fuzz run``: as text, as JSON, and as JUnit's XML for continuous integration."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final
from xml.etree import ElementTree

from kwire.opening import replaced
from kwire.testing.feeding import Group, Outcome

__all__ = ["as_json", "junit", "text", "write"]

SENTENCES: Final = {
    "crash": "crashes",
    "hang": "does not answer in time",
    "memory": "takes too much memory",
    "garbled": "answers with bytes that are no answer",
    "accepts": "accepts what it must refuse",
    "refuses": "refuses what it must accept",
    "value": "reads another value",
}
_SHOWN: Final = 160
"""Bytes of an example that are printed."""


def _ordered(outcome: Outcome) -> list[Group]:
    """The worst first: what ends a program, then what is wrong, and of these what is frequent."""
    order = list(SENTENCES)
    return sorted(outcome.groups.values(), key=lambda one: (order.index(one.wrong), -one.count))


def text(outcome: Outcome) -> Iterator[str]:
    """Lines for a terminal."""
    for one in _ordered(outcome):
        case = one.example
        assert case is not None
        apis = list(one.apis)
        where = ", ".join(apis[:3]) + (f" and {len(apis) - 3} more APIs" if len(apis) > 3 else "")
        times = "once" if one.count == 1 else f"{one.count:,} times"
        yield f"{SENTENCES[one.wrong]}: {one.kind}, {times} ({where})"
        if one.detail:
            yield f"  it said: {one.detail}"
        yield f"  why: {case.source}"
        field = f", field {case.path}" if case.path else ""
        what = f"{case.api} {case.role} v{case.version}{field}"
        if case.role == "records":
            what = f"record set of magic {case.version}"
        yield f"  smallest: {what}, {len(case.data)} bytes"
        yield f"  {case.data[:_SHOWN].hex()}{'...' if len(case.data) > _SHOWN else ''}"
    wrong = sum(one.count for one in outcome.groups.values())
    skipped = f", {outcome.skipped:,} skipped" if outcome.skipped else ""
    yield f"{outcome.asked:,} frames asked{skipped}, {wrong:,} answers wrong, in {outcome.seconds:.1f} s"


def as_json(outcome: Outcome) -> bytes:
    """An object: what was counted, and ``wrong``, a list of what is wrong."""
    made: dict[str, Any] = {
        "asked": outcome.asked,
        "skipped": outcome.skipped,
        "seconds": round(outcome.seconds, 3),
        "wrong": [_group(one) for one in _ordered(outcome)],
    }
    return json.dumps(made, indent=1).encode() + b"\n"


def _group(one: Group) -> dict[str, Any]:
    case = one.example
    assert case is not None
    return {
        "wrong": one.wrong,
        "kind": one.kind,
        "count": one.count,
        "apis": list(one.apis),
        "detail": one.detail,
        "source": case.source,
        "example": {
            "role": case.role,
            "api": case.api,
            "api_key": case.api_key,
            "version": case.version,
            "body_at": case.body_at,
            "path": case.path,
            "verdict": case.verdict,
            "hex": case.data.hex(),
        },
    }


def junit(outcome: Outcome) -> bytes:
    """A test suite for each API, in it a test case for each role and kind."""
    root = ElementTree.Element("testsuites", name="kwire fuzz run")
    suites: dict[str, ElementTree.Element] = {}
    failed: dict[str, list[int]] = {}
    for (api, role, kind), (asked, wrong) in outcome.suites.items():
        suite = suites.get(api)
        if suite is None:
            suite = suites[api] = ElementTree.SubElement(root, "testsuite", name=api)
        counts = failed.setdefault(api, [0, 0])
        counts[0] += 1
        case = ElementTree.SubElement(suite, "testcase", classname=f"{api}.{role}", name=kind)
        if wrong:
            counts[1] += 1
            said = f"{wrong} of {asked} answers are wrong"
            failure = ElementTree.SubElement(case, "failure", message=said)
            failure.text = "\n".join(_sentences(outcome, kind))
    for api, (tests, failures) in failed.items():
        suites[api].set("tests", str(tests))
        suites[api].set("failures", str(failures))
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _sentences(outcome: Outcome, kind: str) -> Iterator[str]:
    for one in _ordered(outcome):
        if one.kind == kind and one.example is not None:
            detail = "".join(c if c.isprintable() else "?" for c in one.detail)
            yield f"{SENTENCES[one.wrong]} ({one.example.source}). {detail} {one.example.data[:_SHOWN].hex()}"


def write(path: str, data: bytes) -> None:
    """Writes a report. The file takes its name when it is whole. Raises ``OSError``."""
    with replaced(path) as (partial, mode), partial.open(f"{mode}b") as file:
        file.write(data)
