"""Any text as a name in a schema or a definition is a field, struct or message that works, or a ``SchemaError``.

That it works means: classes are made, a value is encoded and decoded by both implementations to equal bytes and values,
and ``to_dict`` and ``from_dict`` are each other's inverse. Nothing but ``SchemaError`` is ever raised.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kwire import schema
from kwire.codec import registry
from kwire.codec.objects import WireMessage
from kwire.errors import SchemaError
from kwire.schema import kafka, model
from kwire.schema.checks import RESERVED, RESERVED_CLASSES
from kwire.schema.format import message_to_text

OF_GENERATED_SOURCE = (
    *("o", "o1", "n", "e", "t", "u", "w", "w1", "data", "pos", "view", "size", "parts", "new", "repeat", "retry"),
    *("self", "tuple", "list", "len", "nan", "inf", "none", "true", "print", "plain", "C_D", "DEFAULT_S", "TEXT_0"),
    *("__class__", "__init__", "__slots__", "__dict__", "__doc__", "mro", "FIELDS", "STRUCTS", "SCHEMA", "D", "S"),
)

words = st.sampled_from(
    [*keyword.kwlist, *sorted(RESERVED | RESERVED_CLASSES), *dir(WireMessage), *OF_GENERATED_SOURCE]
)
names = st.one_of(
    words,
    words.map(str.lower),
    words.map(str.capitalize),
    st.text(),
    st.text(alphabet="abcxyzABCXYZ0129_", min_size=1, max_size=8),
    st.from_regex(r"[a-z][a-z0-9_]*", fullmatch=True),
    st.tuples(words, st.text(alphabet="=()[]{}:,;.'\"\\\n #", max_size=6), words).map("".join),
)

several = settings(max_examples=max(200, settings().max_examples), suppress_health_check=[HealthCheck.too_slow])


def check_works(message: model.Message) -> None:
    """Every field gets a value that is not its default, and comes back."""
    assert schema.parse(message_to_text(message)) == [message]
    cls = registry.message_class(message)
    for version in message.versions:
        value = filled(message, message.fields, cls)
        codecs = [registry.codec(message, version, one) for one in registry.IMPLEMENTATIONS]
        encoded = [codec.encode(value) for codec in codecs]
        assert encoded[0] == encoded[1]
        for codec in codecs:
            again = codec.decode(encoded[0])
            assert again == value
            assert codec.encode(again) == encoded[0]
            assert cls.from_dict(again.to_dict()) == value
            assert cls.from_dict(json.loads(again.to_json())) == value
        empty = cls()
        assert codecs[0].decode(codecs[1].encode(empty)) == empty
        assert repr(value).startswith(cls.__name__ + "(")


def filled(message: model.Message, fields: tuple[model.Field, ...], cls: Callable[..., Any]) -> Any:
    values: dict[str, Any] = {}
    for one in fields:
        type_ = one.type.element if isinstance(one.type, model.Array) else one.type
        if isinstance(type_, model.StructRef):
            struct = registry.struct_class(message, type_.name)
            made = filled(message, message.structs[type_.name].fields, struct)
        else:
            made = "text" if type_.name == "string" else 5
        values[one.name] = [made, made] if isinstance(one.type, model.Array) else made
    return cls(**values)


def works_or_is_refused(make: Callable[[], model.Message]) -> bool:
    try:
        message = make()
    except SchemaError:
        return False
    check_works(message)
    return True


def schema_text(name: str, struct: str, whole: str) -> str:
    return (
        f"data {whole} versions 0-1 flexible 1\n"
        f"  {name}  [int32]\n"
        f"  other  {struct}\n"
        f'    {name}  string = "{name}"\n'
        f"    numbers  [int16]\n"
        f"  many  [{struct}]\n"
    )


def definition_text(name: str, struct: str, whole: str) -> str:
    inner = [
        {"name": name, "type": "string", "versions": "0+", "default": name},
        {"name": "Numbers", "type": "[]int16", "versions": "0+"},
    ]
    fields = [
        {"name": name, "type": "[]int32", "versions": "0+"},
        {"name": "Other", "type": struct, "versions": "0+", "fields": inner},
        {"name": "Many", "type": f"[]{struct}", "versions": "0+"},
    ]
    values = {"type": "data", "name": whole, "validVersions": "0-1", "flexibleVersions": "1+", "fields": fields}
    return json.dumps(values)


@given(names)
@example("class")
@example("self")
@example("to_dict")
@example("tuple")
@example("nan")
@example("y=[][__import__('os').system('true')],z")
@several
def test_any_text_as_the_name_of_a_field_in_a_schema_works_or_is_refused(name: str):
    text = schema_text(name, "S", "D")
    # A line feed or a # in the name makes other lines of it, which may be good ones.
    works_or_is_refused(lambda: schema.parse(text, "some.file")[0])


@given(names)
@example("Class")
@example("Self")
@example("ToDict")
@example("Tuple")
@example("NaN")
@example("y=[][__import__('os').system('true')],z")
@several
def test_any_text_as_the_name_of_a_field_in_a_definition_works_or_is_refused(name: str):
    works_or_is_refused(lambda: kafka.read_definition(definition_text(name, "S", "D"), "some.file"))


@given(names, names)
@example("None", "D")
@example("D", "D")
@example("FIELDS", "UUID")
@several
def test_any_text_as_the_name_of_a_struct_or_message_works_or_is_refused(struct: str, whole: str):
    for one, other in ((struct, "D"), ("S", whole), (struct, whole)):
        text = schema_text("a", one, other)
        works_or_is_refused(lambda text=text: schema.parse(text, "some.file")[0])
        works_or_is_refused(
            lambda one=one, other=other: kafka.read_definition(definition_text("A", one, other), "some.file")
        )


@given(st.text())
@several
@example("null")
def test_any_text_as_a_default_is_a_constant_or_is_refused(text: str):
    field = {"name": "A", "type": "string", "versions": "0+", "default": text}
    values = {"type": "data", "name": "D", "validVersions": "0", "flexibleVersions": "none", "fields": [field]}
    try:
        message = kafka.read_definition(json.dumps(values), "some.file")
    except SchemaError:
        # The field is not nullable.
        assert text == "null" or not text.isprintable() or len(text) > 1_000
        return
    assert registry.message_class(message)().to_dict()["a"] == text
    check_works(message)


WORDS = ("Class", "self", "toDict", "FromDict", "toJson", "nan", "None", "print", "UnknownTaggedFields", "S")


def test_words_that_python_and_kwire_use_work_in_a_definition():
    found = [
        works_or_is_refused(lambda name=name: kafka.read_definition(definition_text(name, "S", "D"), "some.file"))
        for name in (
            "Class",
            "self",
            "toDict",
            "FromDict",
            "toJson",
            "nan",
            "None",
            "print",
            "UnknownTaggedFields",
            "S",
        )
    ]
    assert all(found)
