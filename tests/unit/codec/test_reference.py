"""The reference codec's account of where each field stands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kwire import schema
from kwire.codec import reference, registry
from kwire.errors import DecodeError
from kwire.schema import model

INVENTED = """\
data Invented versions 0 flexible 0+
  number   int32
  name     string?
  things   [Thing]
    id     uuid
  maybe    Maybe?
    flag   bool
  extra    string  tag 1
"""


(MESSAGE,) = schema.parse(INVENTED)


BODY = bytes.fromhex(
    "00000001"  # number                    [0..4)
    "03 6869"  # name                       [4..7)
    "02" + "11" * 16 + "00"  # things       [7..25): count, one id, its tagged section
    "ff"  # maybe, null                     [25..26)
    "02"  # two tagged fields               [26..34)
    "01 02 02 78"  # tag 1, 2 bytes: extra  [29..31)
    "05 01 aa"  # tag 5, 1 byte             [33..34)
)


def walk(node: reference.Node, path: str = "") -> Iterator[tuple[str, reference.Node]]:
    yield path + node.step, node
    for child in node.children:
        yield from walk(child, path + node.step)


def test_both_codecs_say_the_same_where_the_bytes_end() -> None:
    compiled = registry.codec(MESSAGE, 0, "compiled")
    for size in range(len(BODY)):
        with pytest.raises(DecodeError) as one:
            compiled.decode(BODY[:size])
        with pytest.raises(DecodeError) as other:
            reference.decode(MESSAGE, 0, BODY[:size])
        assert str(other.value) == str(one.value)


@pytest.mark.parametrize("codec", ["compiled", "reference"])
def test_what_is_null_or_unknown_is_written_as_it_was_read(codec: registry.Implementation) -> None:
    one = registry.codec(MESSAGE, 0, codec)
    assert one.encode(one.decode(BODY)) == BODY


def test_every_field_has_its_bytes():
    top, error = reference.trace(MESSAGE, 0, BODY)
    assert error is None
    assert {path: (node.start, node.end) for path, node in walk(top)} == {
        "$": (0, 34),
        "$.number": (0, 4),
        "$.name": (4, 7),
        "$.things": (7, 25),
        "$.things[0]": (8, 25),
        "$.things[0].id": (8, 24),
        "$.things[0].unknown_tagged_fields": (24, 25),
        "$.maybe": (25, 26),
        "$.extra": (29, 31),
        "$.unknown_tagged_fields": (26, 34),
        "$.unknown_tagged_fields[5]": (33, 34),
    }


def test_what_could_be_read_is_there_when_the_bytes_end_early():
    top, error = reference.trace(MESSAGE, 0, BODY[:24])
    assert error is not None
    assert (error.path, error.offset) == ("$.things", 7)
    found = dict(walk(top))
    assert found["$.name"].value == "hi"
    assert [path for path, node in found.items() if node.end < 0] == ["$", "$.things"]


def test_bytes_after_the_message_are_an_error_only_where_it_should_be_whole():
    assert reference.trace(MESSAGE, 0, BODY + b"\0", whole=False)[1] is None
    _, error = reference.trace(MESSAGE, 0, BODY + b"\0")
    assert error is not None
    assert (error.path, error.offset) == ("$", len(BODY))


def test_the_trace_agrees_with_the_decoded_object():
    decoded = reference.decode(MESSAGE, 0, BODY)
    values = {path: node.value for path, node in walk(reference.trace(MESSAGE, 0, BODY)[0]) if not node.children}
    assert values["$.number"] == decoded.number
    assert values["$.name"] == decoded.name
    assert values["$.extra"] == decoded.extra == "x"
    assert decoded.unknown_tagged_fields == {5: b"\xaa"}


def test_a_layout_is_declared_once():
    assert reference._declared(MESSAGE, 0) is reference._declared(MESSAGE, 0)
    assert reference._declared(MESSAGE, 0).layout is model.layout(MESSAGE, 0)
