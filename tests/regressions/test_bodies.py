"""``bodies.txt``: bodies that other parsers get wrong. kwire reads each as Kafka does, with both codecs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kwire import schema
from kwire.codec import registry
from kwire.errors import DecodeError

LINES = [
    [part.strip() for part in line.split("|")]
    for line in Path(__file__).with_name("bodies.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize("implementation", registry.IMPLEMENTATIONS)
@pytest.mark.parametrize("line", LINES, ids=[one[0] for one in LINES])
def test_a_body_that_another_parser_gets_wrong(line: list[str], implementation: registry.Implementation) -> None:
    _, message, version, data, expected, _ = line
    codec = registry.codec(schema.message(message), int(version), implementation)
    if expected.startswith("!"):
        with pytest.raises(DecodeError) as raised:
            codec.decode(bytes.fromhex(data))
        assert raised.value.path == expected[1:].strip()
        return
    field, _, value = expected.partition("=")
    made = codec.decode(bytes.fromhex(data))
    assert getattr(made, field) == ast.literal_eval(value)
    assert codec.decode(codec.encode(made)) == made


def test_each_line_has_a_name_of_its_own_and_says_who() -> None:
    assert len({line[0] for line in LINES}) == len(LINES)
    assert all(len(line) == 6 and line[5] for line in LINES)
