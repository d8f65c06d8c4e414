"""Writes ``kwire/messages.pyi``: the types of all message classes, made from the schemas.

    python -m kwire.codec.stubs            writes the stub
    python -m kwire.codec.stubs --check    fails when it is not what the schemas say (part of ``make check``)

A class in the stub holds what ``kwire.codec.objects.make_classes`` gives the class at run time. Names, order and
defaults are the same. A field that may be null in some version is ``T | None``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kwire import schema
from kwire.codec.objects import holds_numbers
from kwire.schema import model
from kwire.schema.checks import check_generated

__all__ = ["class_source", "main", "stub_source"]

_TYPES: Final = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "records": "bytes | memoryview",
    "uuid": "UUID",
}

_HEAD: Final = '''\
"""Types of the message classes. Generated from schemas/ by ``python -m kwire.codec.stubs``: do not edit."""
# ruff: noqa: A002 - fields have Kafka's names

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from kwire.codec.objects import WireMessage, WireStruct
from kwire.schema.model import Message
'''


def _type(message: model.Message, field: model.Field) -> str:
    inner = field.type.element if isinstance(field.type, model.Array) else field.type
    text = f"{message.name}.{inner.name}" if isinstance(inner, model.StructRef) else _TYPES.get(inner.name, "int")
    if isinstance(field.type, model.Array):
        text = f"Sequence[{text}]" if holds_numbers(field) else f"list[{text}]"
    return f"{text} | None" if field.nullable or field.default is None else text


def _class(message: model.Message, name: str, fields: tuple[model.Field, ...], base: str, indent: str) -> Iterator[str]:
    yield f"{indent}class {name}({base}):"
    inner = indent + "    "
    if base == "WireMessage":
        yield f"{inner}SCHEMA: ClassVar[Message]"
        for struct in message.structs.values():
            yield ""
            yield from _class(message, struct.name, struct.fields, "WireStruct", inner)
        if message.structs:
            yield ""
    for field in fields:
        yield f"{inner}{field.name}: {_type(message, field)}"
    yield f"{inner}def __init__("
    yield f"{inner}    self,"
    yield f"{inner}    *,"
    for field in fields:
        yield f"{inner}    {field.name}: {_type(message, field)} = ...,"
    yield f"{inner}    unknown_tagged_fields: dict[int, bytes] | None = ...,"
    yield f"{inner}) -> None: ..."


def class_source(message: model.Message) -> Iterator[str]:
    """The stub's lines about one message.

    Raises ``SchemaError`` for names that the schema language does not have.
    """
    check_generated(message)
    yield from _class(message, message.name, message.fields, "WireMessage", "")


def stub_source() -> str:
    """Text of the stub for all built-in schemas."""
    lines = [_HEAD]
    for name in schema.names():
        lines += [*class_source(schema.message(name)), ""]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Write or check the stub; 1 when it was not current."""
    check = "--check" in (sys.argv[1:] if arguments is None else arguments)
    path = Path(__file__).parent.parent / "messages.pyi"
    text = stub_source()
    if path.is_file() and path.read_text("utf-8") == text:
        return 0
    if check:
        print(f"{path.name} is not what the schemas say: run python -m kwire.codec.stubs", file=sys.stderr)
        return 1
    path.write_text(text, "utf-8")
    print(f"wrote {path.name}: {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
