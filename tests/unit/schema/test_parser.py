"""The schema language: what a text means, what is refused and where, and that writing is the inverse of reading."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire import schema
from kwire.errors import SchemaError
from kwire.schema import model
from kwire.schema.format import to_text
from kwire.schema.model import NO_VERSIONS, OPEN, Array, Primitive, StructRef, Versions

SCHEMAS = Path(__file__).parents[3] / "schemas"

EVERYTHING = """\
# Everything: all that the language has.
#
# More words.
# v3   another thing                                                                         KIP-482
# v12  and one more

request Everything key 900 versions 0-12 flexible 3+ kafka4 2-12
  a_bool      bool = true
  an_int8     int8 = -1
  an_int16    int16
  a_uint16    uint16 = 65535       2-5
  an_int32    int32                4
  a_uint32    uint32
  an_int64    int64 = 9223372036854775807
  a_float     float64 = 1.5
  an_id       uuid
  a_string    string = "a \\"quoted\\" # \\\\"  # a comment
  a_null      string? = null
  later_null  string?7+
  some_null   bytes?2-4
  a_set       records?
  numbers     [int32]
  things      [Thing]?1+
    name      string  as NAME
    inner     Inner?  = null
      x       int8    ignorable
  again       [Thing]  5+
  one         Thing    3+  tag 0
  two         string   0+  tag 1 4+ ignorable
  old         string  plain
  password    string?  secret
  key         bytes   4+  secret as kEY
  a_value     string? = null  secret config ignorable
  a_frame     bytes  secret frame
  log         records?  secret topic
"""


def parse_one(text: str) -> model.Message:
    (message,) = schema.parse(text, "some.kwire")
    return message


def field(message: model.Message, name: str) -> model.Field:
    return next(one for one in message.fields if one.name == name)


def test_a_head_says_kind_key_and_ranges():
    message = parse_one(EVERYTHING.replace("more\n\n", "more\n"))
    assert message.name == "EverythingRequest"
    assert message.api_name == "Everything"
    assert (message.kind, message.api_key) == ("request", 900)
    assert (message.versions, message.flexible, message.kafka4) == (Versions(0, 12), Versions(3, OPEN), Versions(2, 12))
    assert message.doc == "Everything: all that the language has.\n\nMore words."
    assert message.notes == {3: "another thing KIP-482", 12: "and one more"}


def test_a_blank_line_ends_the_comments_of_a_message():
    message = parse_one(EVERYTHING)
    assert (message.doc, message.notes) == ("", {})


@pytest.mark.parametrize(
    ("name", "type_", "default"),
    [
        ("a_bool", Primitive("bool"), True),
        ("an_int8", Primitive("int8"), -1),
        ("an_int16", Primitive("int16"), 0),
        ("a_uint16", Primitive("uint16"), 65535),
        ("an_int64", Primitive("int64"), 2**63 - 1),
        ("a_float", Primitive("float64"), 1.5),
        ("an_id", Primitive("uuid"), bytes(16)),
        ("a_string", Primitive("string"), 'a "quoted" # \\'),
        ("a_null", Primitive("string"), None),
        ("some_null", Primitive("bytes"), b""),
        ("numbers", Array(Primitive("int32")), ()),
        ("things", Array(StructRef("Thing")), ()),
        ("one", StructRef("Thing"), ()),
    ],
)
def test_a_field_has_its_type_and_a_resolved_default(name: str, type_: model.Type, default: object):
    found = field(parse_one(EVERYTHING), name)
    assert found.type == type_
    assert found.default == default
    assert type(found.default) is type(default)


def test_a_field_has_its_ranges_and_attributes():
    message = parse_one(EVERYTHING)
    assert field(message, "a_bool").versions == Versions(0, OPEN)
    assert field(message, "a_uint16").versions == Versions(2, 5)
    assert field(message, "an_int32").versions == Versions(4, 4)
    assert field(message, "a_bool").nullable == NO_VERSIONS
    assert field(message, "a_null").nullable == Versions(0, OPEN)
    assert field(message, "later_null").nullable == Versions(7, OPEN)
    assert field(message, "some_null").nullable == Versions(2, 4)
    assert (field(message, "one").tag, field(message, "one").tagged) == (0, Versions(3, OPEN))
    assert (field(message, "two").tag, field(message, "two").tagged) == (1, Versions(4, OPEN))
    assert field(message, "two").ignorable
    assert field(message, "old").plain
    assert field(message, "a_string").comment == "a comment"
    assert message.structs["Thing"].fields[0].kafka_name == "NAME"


def test_structs_are_found_by_name_and_may_be_used_again():
    message = parse_one(EVERYTHING)
    assert list(message.structs) == ["Thing", "Inner"]
    assert field(message, "again").type == Array(StructRef("Thing"))


def test_a_field_says_in_which_way_it_is_secret():
    message = parse_one(EVERYTHING)
    secret = {one.name: one.secret for one in message.fields if one.secret}
    assert secret == {
        "password": "always",
        "key": "always",
        "a_value": "config",
        "a_frame": "frame",
        "log": "topic",
    }
    assert {one.name: one.secret for one in model.layout(message, 4).fields if one.secret} == secret


def test_writing_is_the_inverse_of_reading():
    for text in (EVERYTHING, EVERYTHING.replace("more\n\n", "more\n")):
        messages = schema.parse(text)
        written = to_text(messages)
        assert schema.parse(written) == messages
        assert to_text(schema.parse(written)) == written


@pytest.mark.parametrize("file", sorted(SCHEMAS.rglob("*.kwire")), ids=lambda file: file.stem)
def test_the_schema_files_are_in_canonical_form(file: Path):
    text = file.read_text("utf-8")
    assert to_text(schema.parse(text, file.name)) == text, "make docs"


def one_field(line: str) -> str:
    return f"data D versions 0-3 flexible 2+\n  first  int8\n  {line}\n"


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("  a  int8\n", 1, "a field outside of a message"),
        ("produce X versions 0\n", 1, "expected a message"),
        ("request lower key 0 versions 0\n", 1, "CamelCase"),
        ("request ProduceRequest key 0 versions 0\n", 1, "leave out 'Request'"),
        ("request P versions 0\n", 1, "needs its API key"),
        ("request P key 0\n", 1, "versions missing"),
        ("request P key 0 versions\n", 1, "versions needs a value"),
        ("request P key -1 versions 0\n", 1, "key '-1'"),
        ("request P key 99999 versions 0\n", 1, "key '99999'"),
        ("request P key 0 key 1 versions 0\n", 1, "key given twice"),
        ("request P key 0 versions 0 since 1\n", 1, "unknown attribute 'since'"),
        ("data D versions 3-1\n", 1, "version range 3-1"),
        ("data D versions x\n", 1, "'x' is not a version range"),
        ("data D versions 0-99999\n", 1, "too large"),
        ("data D versions 0+\n", 1, "write both ends"),
        ("data D versions 0 flexible 1+\n", 1, "flexible 1+ is not inside"),
        ("data D versions 0-3 kafka4 2-5\n", 1, "kafka4 2-5 is not inside"),
        ("data D versions 0 # no\n", 1, "comments on a message stand above"),
        ("# v5  gone\ndata D versions 0\n", 2, "a note for v5"),
        ("# v0  a\n# v0  b\ndata D versions 0\n", 2, "a second note for v0"),
        ("data D versions 0\ndata D versions 1\n", 2, "stands in this file already (line 1)"),
        ("data D versions 0\n\ta int8\n", 2, "a tab"),
        ("data D versions 0\n   a  int8\n", 2, "indented by 3 spaces"),
        ("data D versions 0\n    a  int8\n", 2, "indented deeper"),
        (one_field("  b  int8"), 3, "indented deeper"),
        (one_field("B  int8"), 3, "'B' is not snake_case"),
        (one_field("b"), 3, "field b has no type"),
        (one_field("b  int9"), 3, "unknown type 'int9'"),
        (one_field("b  [int8"), 3, "'[int8' is not a type"),
        (one_field("b  Missing"), 3, "unknown type Missing"),
        (one_field("b  int8 ="), 3, "'=' without a default"),
        (one_field("b  int8 = x"), 3, "x is not a default for int8"),
        (one_field("b  int8 = 128"), 3, "128 does not fit int8"),
        (one_field("b  uint16 = -1"), 3, "-1 does not fit uint16"),
        (one_field("b  string = a"), 3, "a is not a default for string"),
        (one_field('b  string = "a'), 3, "closing quote"),
        (one_field("b  bool = 1"), 3, "1 is not a default for bool"),
        (one_field("b  [int8] = 0"), 3, "an array or a struct"),
        (one_field("b  string = null"), 3, "not nullable in all of its versions"),
        (one_field("b  string?2+ = null"), 3, "not nullable in all of its versions"),
        (one_field("b  int8?"), 3, "int8 has no null"),
        (one_field("b  int8  4+"), 3, "has versions 4+, the message 0-3"),
        (one_field("b  int8  0-9"), 3, "has versions 0-9, the message 0-3"),
        (one_field("b  int8  2+ tag"), 3, "tag needs a number"),
        (one_field("b  int8  tag 0"), 3, "flexible are only 2+"),
        (one_field("b  int8  2-2 tag 0 3+"), 3, "in versions that the field does not have"),
        (one_field("b  int8  2+ tag 0\n  c  int8  2+ tag 0"), 4, "tag 0 of c is that of b"),
        (one_field("first  int8"), 3, "a second field first"),
        (one_field("unknown_tagged_fields  int8"), 3, "taken by every message"),
        (one_field("b  int8  plain"), 3, "only a string can be"),
        (one_field("b  int8  secret"), 3, "b is secret, which only string or bytes or records can be"),
        (one_field("b  [string]  secret"), 3, "b is secret, which only string or bytes or records can be"),
        (one_field("b  bytes  secret config"), 3, "b is secret config, which only string can be"),
        (one_field("b  string  secret frame"), 3, "b is secret frame, which only bytes can be"),
        (one_field("b  bytes  secret topic"), 3, "b is secret topic, which only records can be"),
        (one_field("b  string  secret sometimes"), 3, "unknown word 'sometimes'"),
        (one_field("b  string  secret secret"), 3, "secret given twice"),
        (one_field("b  int8  ignorable ignorable"), 3, "ignorable given twice"),
        (one_field("b  int8  sometimes"), 3, "unknown word 'sometimes'"),
        (one_field("b  int8  as"), 3, "'as' needs the name"),
        (one_field("b_c  int8  as BC"), 3, "what b_c means anyway"),
        (one_field("b  S\n    c  int8\n  d  S\n    e  int8"), 6, "struct S already has its fields (line 4)"),
        (one_field("b  S\n    c  [S]"), 4, "struct S contains itself"),
    ],
)
def test_a_mistake_is_an_error_with_file_and_line(text: str, line: int, what: str):
    with pytest.raises(SchemaError) as caught:
        schema.parse(text, "some.kwire")
    assert (caught.value.file, caught.value.line) == ("some.kwire", line), caught.value
    assert what in caught.value.message
    assert str(caught.value).startswith(f"some.kwire:{line}: ")


def test_tags_of_a_layout_are_in_ascending_order():
    message = parse_one("data D versions 0 flexible 0+\n  b  int8  tag 2\n  a  int8  tag 0\n  c  int8\n")
    layout = model.layout(message, 0)
    assert [one.name for one in layout.tagged] == ["a", "b"]
    assert [one.name for one in layout.fields] == ["c"]
