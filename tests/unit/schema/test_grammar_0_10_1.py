"""The layouts of Kafka 0.10.1 against the grammar of its protocol guide.

``data/grammar-0.10.1.json`` holds what the guide's grammars say, reduced to types and nesting (``int32 [string
[int32]]``), for each request and response of its 21 APIs. Where the guide itself lies beside the project, the file is
held against it as well.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kwire import schema
from kwire.schema import model

FACTS: dict[str, str] = json.loads((Path(__file__).parent / "data" / "grammar-0.10.1.json").read_text())
GUIDE = Path(__file__).parents[3].parent / "shared" / "seeds" / "kafka-0.10.1-protocol-guide.txt"

RENAMED = {"Offsets": "ListOffsets", "GroupCoordinator": "FindCoordinator"}
"""What Kafka called an API in 0.10.1 -> what it is called since."""

TITLE = re.compile(r"(?:\w+:)?(\w+) (Request|Response) \(Version: (\d+)\) =>(.*)$")
TYPES = {"BOOLEAN": "bool", "NULLABLE_STRING": "string?"}


def of_guide(text: str) -> dict[str, str]:
    """The grammars of the guide as types and nesting, by ``ProduceRequest v0``."""
    lines = [line.strip() for line in text.split("\n")]
    found = {}
    for number, line in enumerate(lines):
        title = TITLE.match(line)
        if title is None:
            continue
        productions = []
        for below in lines[number + 1 :]:
            if "=>" not in below or TITLE.match(below):
                break
            name, _, right = below.partition("=>")
            productions.append((name.strip(), right.split()))
        api = RENAMED.get(title[1], title[1])
        found[f"{api}{title[2]} v{title[3]}"] = expand(title[4].split(), productions)
        assert not productions, (line, productions)
    return found


def expand(symbols: list[str], productions: list[tuple[str, list[str]]]) -> str:
    """Sub-parts follow their symbol depth first, so each symbol takes the next production."""
    out = []
    for symbol in symbols:
        name = symbol.strip("[]")
        if name.isupper():
            out.append(TYPES.get(name, name.lower()))
            continue
        left, right = productions.pop(0)
        assert left == name, (left, name)
        inner = expand(right, productions)
        out.append(f"[{inner}]" if symbol.startswith("[") else inner)
    return " ".join(out)


def of_layout(type_: model.TypeLayout, nullable: bool = False) -> str:
    if isinstance(type_, model.StructLayout):
        assert not type_.flexible
        return " ".join(of_layout(one.type, one.nullable) for one in type_.fields)
    if isinstance(type_, model.ArrayLayout):
        return f"[{of_layout(type_.element)}]"
    name = "bytes" if type_.name == "records" else type_.name
    return "string?" if nullable and name == "string" else name


def test_the_facts_cover_all_apis_of_0_10_1():
    assert len({name.rpartition("Re")[0] for name in FACTS}) == 21
    assert len(FACTS) == 70


@pytest.mark.parametrize("name", FACTS)
def test_layout_equals_the_grammar_of_0_10_1(name: str):
    message_name, _, version = name.partition(" v")
    ours = of_layout(model.layout(schema.message(message_name), int(version)))
    # Where the guide does not say that a string may be null, a schema may still allow it: that reads more, not less.
    pattern = re.escape(FACTS[name]).replace(r"string\?", "NULLABLE").replace("string", r"string\??")
    assert re.fullmatch(pattern.replace("NULLABLE", r"string\?").replace("\\ ", " "), ours), (FACTS[name], ours)


@pytest.mark.skipif(not GUIDE.exists(), reason="the protocol guide of 0.10.1 does not lie beside the project")
def test_the_facts_are_those_of_the_guide():
    assert of_guide(GUIDE.read_text("utf-8")) == FACTS
