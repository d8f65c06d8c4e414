"""What a schema or a definition names is data: none of it is executed, and generated source holds only checked names.

A name reaches source in four places: the initializer of a class, the decoder, the encoder, and the type stub. Each is
held against the same hostile input, and each source is parsed and its names compared with those that it may have.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import json
import keyword
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire import schema
from kwire.cli import schema as command
from kwire.codec import generated, objects, registry, stubs
from kwire.errors import SchemaError
from kwire.schema import checks, kafka, model
from kwire.schema.format import message_to_text, to_text
from kwire.schema.parser import LONGEST_LINE

HOSTILE = "y=[][__import__('os').system('touch X')],z"
"""A field's name that ran a command when a class was made of it: X is replaced by a file that must not come to be."""


def definition(*fields: dict[str, Any], **values: Any) -> str:
    whole = {"type": "data", "name": "D", "validVersions": "0-2", "flexibleVersions": "none", "fields": fields}
    return json.dumps({**whole, **values})


def field(name: str = "A", type_: str = "int8", **values: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "versions": "0+", **values}


# -- a hostile name, in each generator


def by_hand(name: str) -> model.Message:
    """A message with a field of any name, past all that reads texts."""
    one = model.Field(name, model.Array(model.Primitive("string")), model.Versions(0, 0), default=(), line=7)
    return model.Message("D", "data", model.Versions(0, 0), model.NO_VERSIONS, (one,), file="by-hand.kwire", line=6)


def make_class(message: model.Message) -> object:
    return registry.message_class(message)()


def compile_decoder(message: model.Message) -> object:
    return registry.codec(message, 0).decode(b"\0\0\0\0")


def compile_encoder(message: model.Message) -> object:
    return registry.codec(message, 0).encode(object())


def write_stub(message: model.Message) -> object:
    return "\n".join(stubs.class_source(message))


GENERATORS = pytest.mark.parametrize("generate", [make_class, compile_decoder, compile_encoder, write_stub])


@GENERATORS
def test_a_hostile_name_in_a_definition_runs_nothing(generate: Callable[[model.Message], object], tmp_path: Path):
    touched = tmp_path / "touched"
    name = HOSTILE.replace("X", str(touched))
    with pytest.raises(SchemaError) as caught:
        generate(kafka.read_definition(definition(field(name)), "X.json"))
    assert caught.value.file == "X.json"
    assert caught.value.message.startswith("$.fields[0].name: ")
    assert not touched.exists()


@GENERATORS
def test_a_hostile_name_in_a_schema_runs_nothing(generate: Callable[[model.Message], object], tmp_path: Path):
    touched = tmp_path / "touched"
    name = HOSTILE.replace("X", str(touched)).replace(" ", "")
    with pytest.raises(SchemaError) as caught:
        generate(schema.parse(f"data D versions 0\n  {name}  int8\n", "x.kwire")[0])
    assert (caught.value.file, caught.value.line) == ("x.kwire", 2)
    assert not touched.exists()


@GENERATORS
def test_a_hostile_name_in_a_model_made_by_hand_runs_nothing(
    generate: Callable[[model.Message], object], tmp_path: Path
):
    touched = tmp_path / "touched"
    with pytest.raises(SchemaError) as caught:
        generate(by_hand(HOSTILE.replace("X", str(touched))))
    assert (caught.value.file, caught.value.line) == ("by-hand.kwire", 7)
    assert not touched.exists()


@pytest.mark.parametrize("name", ["Class", "Thing"])
def test_a_hostile_default_in_a_model_made_by_hand_is_an_error(name: str):
    class Shown(str):
        __slots__ = ()

        def __repr__(self) -> str:
            return "__import__('os').getcwd()"

    one = dataclasses.replace(by_hand(name.lower() + "s").fields[0], type=model.Primitive("string"), default=Shown("a"))
    with pytest.raises(SchemaError, match="the default of"):
        registry.message_class(dataclasses.replace(by_hand("a"), fields=(one,)))


@pytest.mark.parametrize("name", ["D\nE", "D()", "None", "FIELDS", "UUID", "d", "D" * 101, "\uff24", ""])
def test_a_message_or_struct_has_a_name_that_a_class_can_have(name: str):
    for text in (
        definition(field(), name=name),
        definition(field(type_=name, fields=[field()])),
        definition(field(type_="S"), commonStructs=[{"name": name, "fields": [field()]}]),
    ):
        with pytest.raises(SchemaError):
            kafka.read_definition(text)
    hand = by_hand("a")
    struct = model.Struct(name, hand.fields, line=9)
    for made in (
        dataclasses.replace(hand, name=name),
        dataclasses.replace(hand, structs={name: struct}),
        dataclasses.replace(hand, structs={"Fine": struct}),
        dataclasses.replace(hand, fields=(dataclasses.replace(hand.fields[0], type=model.StructRef(name)),)),
    ):
        with pytest.raises(SchemaError):
            registry.message_class(made)


# -- names that Python and kwire's classes use

TAKEN = sorted([*keyword.kwlist, *checks.RESERVED], key=str.lower)


@pytest.mark.parametrize("name", [one for one in TAKEN if one.islower()])
def test_a_name_that_is_taken_is_an_error_in_a_schema_which_says_what_to_write(name: str):
    with pytest.raises(SchemaError) as caught:
        schema.parse(f"data D versions 0\n  {name}  int8\n", "x.kwire")
    assert (caught.value.file, caught.value.line) == ("x.kwire", 2)
    assert caught.value.message.endswith(f"write {name}_")


@pytest.mark.parametrize("name", [one for one in TAKEN if one.islower()])
def test_a_name_that_is_taken_has_an_underscore_where_a_definition_has_it(name: str):
    made = kafka.read_definition(definition(field(name)))
    assert made.fields[0].name == name + "_"
    assert schema.parse(message_to_text(made)) == [made]
    cls = registry.message_class(made)
    value = cls(**{name + "_": 5})
    assert value.to_dict() == {name + "_": 5}
    assert cls.from_dict(value.to_dict()) == value
    for implementation in registry.IMPLEMENTATIONS:
        codec = registry.codec(made, 0, implementation)
        assert codec.decode(codec.encode(value)) == value


@pytest.mark.parametrize(
    "name", ["nan", "inf", "none", "true", "print", "tuple", "list", "len", "data", "pos", "o", "w", "d", "new", "type"]
)
def test_names_that_generated_source_uses_are_good_names_of_fields(name: str):
    text = f'data D versions 0-1 flexible 1\n  {name}  [int32]\n  other  [Thing]\n    {name}  string = "{name}"\n'
    (message,) = schema.parse(text)
    cls, thing = registry.message_class(message), registry.struct_class(message, "Thing")
    value = cls(**{name: [1, 2]}, other=[thing(), thing(**{name: "a"})])
    assert getattr(value, name) == (1, 2)
    assert cls.from_dict(value.to_dict()) == value
    for version in (0, 1):
        encoded = registry.codec(message, version).encode(value)
        assert registry.codec(message, version, "reference").encode(value) == encoded
        for implementation in registry.IMPLEMENTATIONS:
            assert registry.codec(message, version, implementation).decode(encoded) == value


def test_a_struct_of_the_name_of_its_message_is_an_error():
    with pytest.raises(SchemaError, match="cannot have the name of its message") as caught:
        schema.parse("data D versions 0\n  a  D\n    b  int8\n", "x.kwire")
    assert caught.value.line == 3


@pytest.mark.parametrize("literal", ["nan", "inf", "-inf", "1e999"])
def test_a_number_that_has_no_literal_is_no_default(literal: str):
    with pytest.raises(SchemaError, match="finite"):
        schema.parse(f"data D versions 0\n  a  float64 = {literal}\n")
    with pytest.raises(SchemaError):
        kafka.read_definition(definition(field(type_="float64", default=literal)))


@pytest.mark.parametrize("char", ["\x1b", "\x00", "\x7f", "\x9b", "\u202e", "\u2028", "\ufeff"])
def test_characters_that_a_terminal_obeys_come_into_no_message(char: str):
    for line in (f'  a  string = "{char}."', f"  a  string  # {char}.", f"  a  string  as A{char}b"):
        with pytest.raises(SchemaError) as caught:
            schema.parse(f"data D versions 0\n{line}\n", "x.kwire")
        assert caught.value.line == 2
        assert char not in str(caught.value)
    with pytest.raises(SchemaError, match="that can be shown"):
        kafka.read_definition(definition(field(type_="string", default=f"a{char}")))


# -- what exec is given

OWN_NAMES = {
    # arguments and fixed locals of decoders, encoders and initializers
    *("data", "pos", "view", "size", "parts", "w", "o", "n", "e", "t", "u", "i", "_", "self", "unknown_tagged_fields"),
    *("LIST", "TUPLE", "ZERO_UUID", "b"),
    # builtins
    *("len", "range", "zip", "memoryview", "tuple", "list"),
    *generated.namespace({}),
}
OWN_ATTRIBUTES = {
    *("__class__", "append", "bytes", "count", "decode", "encode", "join", "pack", "unknown_tagged_fields"),
}
FUNCTIONS = {"decode", "encode", "__init__"}


def check_source(source: str, message: model.Message, known: dict[str, Any]) -> None:
    """Every name is the generator's own, a constant in its table, or a field's; every constant is a number, None, or
    text that the generator writes, such as a format. ``known`` is the table."""
    fields = {one.name for part in (message, *message.structs.values()) for one in part.fields}
    assert all(checks.is_field_name(one) and not keyword.iskeyword(one) for one in fields)
    texts = {one.default for part in (message, *message.structs.values()) for one in part.fields}
    initializer = source.startswith("def __init__")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            numbered = node.id[:1].islower() and node.id[1:].isdecimal()
            assert node.id in OWN_NAMES or node.id in known or numbered or (initializer and node.id in fields), node.id
        elif isinstance(node, ast.Attribute):
            assert node.attr in OWN_ATTRIBUTES or node.attr in fields, node.attr
        elif isinstance(node, ast.arg):
            assert node.arg in OWN_NAMES or (initializer and node.arg in fields), node.arg
        elif isinstance(node, ast.FunctionDef):
            assert node.name in FUNCTIONS
        elif isinstance(node, ast.keyword):
            pytest.fail("generated source has no keyword arguments")
        elif isinstance(node, ast.Constant):
            value = node.value
            if isinstance(value, str):
                # Formats of struct, and what an f-string of the encoder makes them of.
                assert value == "" or (set(value) <= set(">0123456789sbhiqBHIQd?x") and value not in texts), value
            elif isinstance(value, bytes):
                assert value in (b"", b"\0", b"\xff")
            else:
                assert value is None or type(value) in (int, float, bool)
        else:
            assert not isinstance(node, (ast.Import, ast.ImportFrom, ast.Lambda, ast.ClassDef, ast.Global))


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """What is given to ``compile`` and ``exec`` of the generators: source, and the table that it runs with."""
    given: list[tuple[str, dict[str, Any]]] = []
    sources: dict[int, tuple[Any, str]] = {}

    def compile_(source: str, file: str, mode: str) -> Any:
        assert all(char.isalnum() or char in "<>._ " for char in file), file
        code = builtins.compile(source, file, mode)
        sources[id(code)] = code, source
        return code

    def exec_(code: Any, namespace: dict[str, Any]) -> None:
        given.append((sources[id(code)][1], namespace))
        builtins.exec(code, namespace)

    for module in (objects, registry):
        monkeypatch.setattr(module, "compile", compile_, raising=False)
        monkeypatch.setattr(module, "exec", exec_, raising=False)
    yield given
    assert given


def run_all(message: model.Message) -> None:
    """Makes the classes, and each codec of each version, with and without guesses, by new functions."""
    objects.make_classes(message)
    for version in message.versions:
        codec = registry.CompiledCodec(message, version)
        codec._compile("decode", codec._decoder_source)
        codec._compile("encode", codec._encoder_source)
        codec._guesses = {site: [(2, 1, 3, 0), (1, 1, 1, 1)] for site in range(20)}
        codec._compile("decode", codec._decoder_source)


@pytest.mark.wide
@pytest.mark.parametrize("start", range(4))
def test_generated_source_of_the_schemas_holds_only_checked_names(
    executed: list[tuple[str, dict[str, Any]]], start: int
):
    for name in schema.names()[start::4]:
        message = schema.message(name)
        executed.clear()
        run_all(message)
        for source, known in executed:
            check_source(source, message, known)


WORST = """\
data Worst versions 0-1 flexible 1
  nan        float64 = -0.0
  print      string = "__import__('os')"
  lists      [Exec]
    eval     string = "'''\\"); eval(\\"1"
    compile  int64 = -9223372036854775808
    inner    Import?  1  tag 2147483647
      globals  string? = null
      system   [string]
  os         string = "x"  as Os_Path__
"""


def test_generated_source_of_hostile_schemas_holds_only_checked_names(executed: list[tuple[str, dict[str, Any]]]):
    (message,) = schema.parse(WORST)
    run_all(message)
    for source, known in executed:
        check_source(source, message, known)
        assert "__import__" not in source
        assert "eval(" not in source
    cls = registry.message_class(message)
    assert cls().print == "__import__('os')"
    for implementation in registry.IMPLEMENTATIONS:
        codec = registry.codec(message, 1, implementation)
        value = cls(lists=[registry.struct_class(message, "Exec")(compile=1)])
        assert codec.decode(codec.encode(value)) == value


def test_the_check_of_generated_source_finds_what_a_schema_wrote():
    message = schema.parse(WORST)[0]
    for source in (
        "def encode(o):\n    return __import__('os')\n",
        "def encode(o):\n    return o.system_\n",
        'def encode(o):\n    return o.os != "x"\n',
        "def other(o):\n    return o\n",
    ):
        with pytest.raises(AssertionError):
            check_source(source, message, {})


def test_the_stub_holds_only_declarations():
    allowed = (ast.Module, ast.Expr, ast.Constant, ast.Import, ast.ImportFrom, ast.alias, ast.ClassDef, ast.AnnAssign)
    allowed += (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.BitOr, ast.FunctionDef, ast.arguments, ast.arg)
    allowed += (ast.Load, ast.Store, ast.Tuple)
    for source in (stubs.stub_source(), "\n".join(stubs.class_source(schema.parse(WORST)[0]))):
        for node in ast.walk(ast.parse(source)):
            assert isinstance(node, allowed), ast.dump(node)
            if isinstance(node, ast.FunctionDef):
                assert node.name == "__init__"
            elif isinstance(node, ast.Constant):
                assert node.value is ... or node.value is None or "Generated from" in node.value
        assert "eval(" not in source


# -- small definitions that cost much, and other exceptions


def nested(levels: int) -> dict[str, Any]:
    one = field()
    for level in range(levels):
        one = field(type_=f"[]S{level}", fields=[one])
    return one


def doubling(levels: int) -> str:
    structs = [
        {"name": f"S{level}", "fields": [field("A", f"S{level + 1}"), field("B", f"S{level + 1}")]}
        for level in range(levels)
    ]
    structs.append({"name": f"S{levels}", "fields": [field()]})
    return definition(field(type_="S0"), commonStructs=structs)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (r"\"" * 20_000, "not JSON"),
        ('"' + r"\"" * 20_000, "not JSON"),
        ("/*" * 20_000, "not JSON"),
        ("[" * 100_000, "brackets inside of each other"),
        (definition(nested(9)), "structs inside of each other"),
        (definition(nested(40)), "brackets inside of each other"),
        (doubling(8), "inside of each other"),
        (doubling(100), "inside of each other"),
        (definition(*[field(f"A{index}") for index in range(1_001)]), "more than 1000 fields"),
        (definition(*[field(f"A{index}", "S", fields=[field()]) for index in range(600)]), "more than 1000 fields"),
        ('{"name": ' + "9" * 5_000 + "}", "not JSON"),
        (definition(field(default="9" * 5_000)), "is no default for its type"),
        (definition(field(tag="9" * 5_000, taggedVersions="0+")), "is not a number"),
        (definition(field(tag=2**31, taggedVersions="0+")), "is not a number"),
        (definition(field(tag=True, taggedVersions="0+")), "is not a number"),
        (definition(field(versions="9" * 5_000)), "is not a range"),
        (definition(field(versions="0-32768")), "is not a range"),
        (definition(field(versions=[])), "is not a range"),
        (definition(type=[]), "unknown type [] of message"),
        (definition(type={}), "unknown type {} of message"),
        (definition(apiKey=[]), "apiKey [] is not a number"),
        (definition(apiKey=True), "apiKey True is not a number"),
        (definition(field(type_="string", default=[])), "[] is no default"),
        (definition(field(type_="string", default={"a": 1})), "is no default"),
        (definition(field(ignorable=[])), "ignorable is []"),
        (definition(field(), type="request"), "schemas cannot say this"),
        (definition(field(type_="string", default="a" * 1_001)), "at most 1000 characters"),
        ("{}" + " " * 1_000_000, "more than 1000000 bytes"),
    ],
)
def test_a_definition_beyond_a_limit_or_of_odd_types_is_a_schema_error(text: str, what: str):
    with pytest.raises(SchemaError) as caught:
        kafka.read_definition(text, "X.json")
    assert what in caught.value.message
    assert caught.value.file == "X.json"


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("data D versions 0\n" + "".join("  " * n + f"a  S{n}\n" for n in range(1, 2_000)), 10, "more than 8 structs"),
        ("data D versions 0\n" + "".join(f"  a{n}  int8\n" for n in range(1_001)), 1_002, "more than 1000 fields"),
        ("data D versions 0 flexible 0\n  a  int8  tag " + "9" * 5_000, 2, "tag needs a number"),
        ("data D versions 0 flexible 0\n  a  int8  tag 2147483648", 2, "tag needs a number"),
        ("data D key " + "9" * 5_000 + " versions 0\n", 1, "is not a number from 0 to"),
        ("data D versions 0\n  a  int8 = " + "9" * 5_000, 2, "is not a default for int8"),
        ("data D versions 0\n  a  int8  # " + "a" * LONGEST_LINE, 2, "a line of more than"),
        ("data D versions 0\n  a  int8  as B(c)\n", 2, "that is not a name"),
        ("data D versions 0\n  a" + "b" * 100 + "  int8\n", 2, "is not snake_case"),
    ],
)
def test_a_schema_beyond_a_limit_is_a_schema_error(text: str, line: int, what: str):
    with pytest.raises(SchemaError) as caught:
        schema.parse(text, "x.kwire")
    assert (caught.value.line, what in caught.value.message) == (line, True), caught.value


def test_structs_that_hold_each_other_twice_are_counted_wherever_they_are_used():
    text = "data D versions 0\n  a  S0\n"
    for level in range(7):
        text += "  " * (level + 2) + f"a  S{level + 1}\n" if level < 6 else "  " * (level + 2) + "a  [int8]\n"
    lines = text.split("\n")
    text = "\n".join(lines)
    (message,) = schema.parse(text)
    structs = {
        name: dataclasses.replace(
            one,
            fields=tuple(dataclasses.replace(one.fields[0], name=f"f{index}") for index in range(4)),
        )
        for name, one in message.structs.items()
    }
    with pytest.raises(SchemaError, match="more than 1000 fields"):
        checks.check(dataclasses.replace(message, structs=structs))


def test_the_deepest_message_that_the_limit_allows_can_be_compiled():
    lines = ["data D versions 0 flexible 0"]
    for level in range(checks.MOST_LEVELS):
        lines.append("  " * (level + 1) + f"a  [S{level}]?  tag 0")
    lines.append("  " * (checks.MOST_LEVELS + 1) + "a  [string]?  tag 0")
    (message,) = schema.parse("\n".join(lines))
    value: Any = ["x"]
    for level in reversed(range(checks.MOST_LEVELS)):
        value = [registry.struct_class(message, f"S{level}")(a=value)]
    whole = registry.message_class(message)(a=value)
    for implementation in registry.IMPLEMENTATIONS:
        codec = registry.codec(message, 0, implementation)
        assert codec.decode(codec.encode(whole)) == whole


def test_a_file_that_is_too_long_is_an_error_if_it_is_a_definition(tmp_path: Path):
    (tmp_path / "a.json").write_text(definition(field()))
    (tmp_path / "b.json").write_text('{"a": 1}' + " " * kafka.LONGEST_DEFINITION)
    assert [one.name for one in kafka.definitions(tmp_path)] == ["D"]
    (tmp_path / "c.json").write_text(definition(field()) + " " * kafka.LONGEST_DEFINITION)
    with pytest.raises(SchemaError, match="more than 1000000 bytes") as caught:
        list(kafka.definitions(tmp_path))
    assert caught.value.file == str(tmp_path / "c.json")


def test_a_message_that_kafka_has_dropped_is_read_and_not_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    dropped = tmp_path / "a.json"
    dropped.write_text(definition(field(), validVersions="none"))
    assert not kafka.read_definition(dropped.read_text()).versions
    with pytest.raises(SchemaError, match="has no versions"):
        command._import(str(dropped))
    (tmp_path / "b.json").write_text(definition(field(), name="E"))
    assert command._import(str(tmp_path)) == 0
    assert [one.name for one in schema.parse(capsys.readouterr().out)] == ["E"]


# -- mutated definitions

PIECES = (
    '"', "\\", "{", "}", "[", "]", ",", ":", "//", "/*", "*/", "\n", " ", "0", "9" * 20, "-", "+", "null", "true",
    "1.5", "[]", "{}", "none", "0+", "\x1b[2J", "\\u001b", "\\ud800", "é", "class", "Self", "string", "int8", "Thing",
    "NaN", "1e999", '"tag": 0, "taggedVersions": "0+"', '"fields": []', "coordinator-key", "header", "_", "'", "()",
)  # fmt: skip


def definitions_to_mutate() -> list[str]:
    rich = definition(
        field("TopicId", "uuid", ignorable=True),
        field("isKRaft", "bool", default="true"),
        field("Limit", "int64", default="0x7fffffff"),
        field("Maybe", "string", nullableVersions="1+", default='a \\ " é'),
        field("Extra", "[]Thing", taggedVersions="1+", tag=0, versions="1+"),
        field("Things", "[]Thing", fields=[field("Name", "string"), field("Other", "Shared", versions="2+")]),
        commonStructs=[{"name": "Shared", "versions": "0+", "fields": [field("Data", "bytes")]}],
        name="MutatedRequest",
        type="request",
        apiKey=900,
        flexibleVersions="1+",
    )
    return [rich, definition(field("Value", "float64", default="1.5"), field("Class", "[]int32"))]


def mutated(text: str, chance: random.Random) -> str:
    """Damaged as text, or with a few of its values replaced."""
    if chance.random() < 0.5:
        whole = json.loads(text)
        for _ in range(chance.randint(1, 3)):
            replace_one(whole, chance)
        return json.dumps(whole)
    for _ in range(chance.randint(1, 3)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice((0, 0, 1, 1, 2, 8)))
        text = text[:start] + chance.choice(PIECES) + text[end:]
    return text


def replace_one(node: Any, chance: random.Random) -> None:
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = chance.choice(keys)
        if isinstance(node[key], (dict, list)) and chance.random() < 0.9:
            node = node[key]
            continue
        old = node[key]
        if isinstance(old, str) and chance.random() < 0.5:
            at = chance.randrange(len(old) + 1)
            node[key] = old[:at] + chance.choice(PIECES) + old[at + chance.randint(0, 1) :]
        elif chance.random() < 0.2:
            del node[key]
        else:
            node[key] = chance.choice(
                (*PIECES, 0, -1, 7, 2**40, 1.5, True, None, [], {}, "1+", "0-1", "2", "Name", "D")
            )
        return


def test_a_mutated_definition_is_a_schema_error_or_an_import_that_kwire_accepts():
    chance = random.Random(11)
    imported = refused = 0
    originals = definitions_to_mutate()
    for text in originals:
        kafka.read_definition(text)
    for _ in range(4_000):
        text = mutated(chance.choice(originals), chance)
        try:
            made = kafka.read_definition(text)
        except SchemaError:
            refused += 1
            continue
        if made.versions:
            written = to_text([made])
            assert written.replace("\n", "").isprintable()
            assert schema.parse(written) == [made], text
            registry.message_class(made)
            imported += 1
    assert imported > 100
    assert refused > 100
