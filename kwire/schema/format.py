"""``model.Message`` objects -> canonical schema text; the inverse of ``parser``.

There is one canonical form:

- two spaces per level
- types in one column and version ranges in another for each message
- the fields of a struct below its first use

``parse(to_text(messages)) == messages`` holds for every message that ``check`` accepts and whose comments are single
lines. A test keeps the schema files of the project in this form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from kwire.schema.checks import struct_ref
from kwire.schema.model import OPEN, Array, Field, Message, Versions
from kwire.schema.parser import zero

__all__ = ["fields_to_text", "message_to_text", "to_text", "type_text"]

WIDTH: Final = 100
"""Column at which the KIP of a version note ends."""

_KIPS: Final = re.compile(r"(.*\S) (KIP-\d+(?:, KIP-\d+)*)$")


def to_text(messages: Iterable[Message]) -> str:
    """The schema text of ``messages``, with a blank line between two of them."""
    return "\n".join(message_to_text(one) for one in messages)


def message_to_text(message: Message) -> str:
    """The schema text of one message: comments, head line, fields."""
    lines = list(_comments(message))
    suffix = {"request": "Request", "response": "Response"}.get(message.kind, "")
    head = [message.kind, message.name.removesuffix(suffix) if suffix else message.name]
    if message.api_key is not None:
        head += ["key", str(message.api_key)]
    head += ["versions", str(message.versions)]
    if message.flexible:
        head += ["flexible", str(message.flexible)]
    if message.kafka4:
        head += ["kafka4", str(message.kafka4)]
    lines.append(" ".join(head))
    return "\n".join(lines) + "\n" + fields_to_text(message, message.fields)


def fields_to_text(message: Message, fields: tuple[Field, ...]) -> str:
    """The lines of the fields of a message or of one of its structs, with those of the structs in them."""
    return "".join(f"{line}\n" for line in _aligned(list(_rows(message, fields, 1, set()))))


def type_text(one: Field) -> str:
    """A field's type as the schema writes it: ``[TopicData]?7+``."""
    text = f"[{one.type.element.name}]" if isinstance(one.type, Array) else one.type.name
    if not one.nullable:
        return text
    if one.nullable == one.versions:
        return text + "?"
    # The parser cuts nullable ranges to the field's, so an end in common may be written open.
    open_end = one.nullable.high == one.versions.high
    return f"{text}?{Versions(one.nullable.low, OPEN if open_end else one.nullable.high)}"


def _comments(message: Message) -> Iterator[str]:
    for line in message.doc.split("\n") if message.doc else ():
        yield f"# {line}" if line else "#"
    label = max((len(str(version)) for version in message.notes), default=0) + 1
    for version, note in sorted(message.notes.items()):
        text = f"# {f'v{version}':<{label}}  "
        match = _KIPS.match(note)
        if match is None:
            yield text + note
        else:
            text += match[1] + "  "
            yield text.ljust(WIDTH - len(match[2])) + match[2]


def _rows(
    message: Message, fields: tuple[Field, ...], depth: int, written: set[str]
) -> Iterator[tuple[str, str, str, str, str]]:
    for one in fields:
        yield "  " * depth + one.name, _type_and_default(one), _versions(one), _attributes(one), one.comment
        ref = struct_ref(one)
        if ref is not None and ref.name not in written:
            written.add(ref.name)
            yield from _rows(message, message.structs[ref.name].fields, depth + 1, written)


def _type_and_default(one: Field) -> str:
    text = type_text(one)
    if one.default == zero(one.type) and one.default is not None:
        return text
    return f"{text} = {_literal(one)}"


def _literal(one: Field) -> str:
    if one.default is None:
        return "null"
    if isinstance(one.default, bool):
        return "true" if one.default else "false"
    if isinstance(one.default, str):
        return '"' + one.default.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(one.default)


def _versions(one: Field) -> str:
    return "" if one.versions == Versions(0, OPEN) else str(one.versions)


def _attributes(one: Field) -> str:
    words: list[str] = []
    if one.tag is not None:
        words.append(f"tag {one.tag}")
        if one.tagged != one.versions:
            open_end = one.tagged.high == one.versions.high
            words.append(str(Versions(one.tagged.low, OPEN if open_end else one.tagged.high)))
    if one.ignorable:
        words.append("ignorable")
    if one.plain:
        words.append("plain")
    if one.secret:
        words.append("secret" if one.secret == "always" else f"secret {one.secret}")
    if one.kafka_name:
        words.append(f"as {one.kafka_name}")
    return " ".join(words)


def _aligned(rows: list[tuple[str, str, str, str, str]]) -> list[str]:
    names = max((len(row[0]) for row in rows), default=0) + 2
    types = max((len(row[1]) for row in rows), default=0) + 2
    ranges = max((len(row[2]) for row in rows), default=0)
    lines: list[str] = []
    for name, type_, versions, attributes, comment in rows:
        text = f"{name:<{names}}{type_:<{types}}"
        if ranges:
            text += f"{versions:<{ranges}}  "
        text += attributes
        if comment:
            text = f"{text.rstrip()}  # {comment}"
        lines.append(text.rstrip())
    return lines
