"""What a body is as JSON text, as programs that ``kwire.kernels.bodies`` runs: ``describe``, without the objects.

A program is made of a layout and of all that ``kwire.protocol.describe`` does with a message: error codes by name, the
group protocol decoded, secrets and record sets left out. Text and rows are those of ``describe``, character for
character: tests hold the two together for every layout.

Rules kept here:

- ``compile_text`` gives None for a message that is not worth a program (numbers with a fraction, ``Envelope``, a field
  ``error_code`` of another type), and the kernel declines frames one by one: both go the way of ``describe``.
- A record set of the metadata log is secret: a frame in which a topic has its name or id is declined, if it can hold
  record sets.
- ``typed`` is the text that becomes Arrow structs (``kwire.tables.typed``): each field has one type there, whatever it
  holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kwire import schema
from kwire.codec import costs, registry
from kwire.codec.objects import dump_json
from kwire.kernels.bodies import CODE, Of, Pool, Write
from kwire.kernels.programs import COMPACT
from kwire.limits import DEFAULT_LIMITS
from kwire.protocol.describe import CONSUMER, EMBEDDED, Place, Shown, show
from kwire.protocol.embedded import CONNECT, USER_DATA
from kwire.protocol.error_codes import ErrorCode
from kwire.protocol.headers import request_header_version, response_header_version
from kwire.protocol.secrets import ENVELOPE, METADATA_TOPIC, METADATA_TOPIC_ID
from kwire.schema import model

__all__ = ["TextProgram", "compile_text", "error_texts"]

Array = Any

_WIDTHS: Final = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint16": -2, "uint32": -4}
"""As ``Write.NUMBER`` has them."""
_TOPIC_NAMES: Final = ("topic", "name")

# The kernel knows these by heart.
assert (CONSUMER, CONNECT) == ("consumer", "connect")
assert METADATA_TOPIC == "__cluster_metadata"
assert METADATA_TOPIC_ID.int == 1


@dataclass(frozen=True, slots=True)
class TextProgram:
    """A table of CODE, whose jumps count from its first row and whose text is in a pool, and how many places of tagged
    fields it remembers."""

    code: Any
    slots: int


class _UnfitError(Exception):
    """What no program is made for."""


def error_texts(pool: Pool) -> Array:
    """What ``kwire.kernels.bodies.write`` needs of error names, which are put into ``pool``."""
    names = np.zeros((max(ErrorCode) + 2, 2), np.int64)
    for one in ErrorCode:
        text = f'"{one.name}"'.encode()
        names[one + 1] = pool.add(text), len(text)
    return names


def compile_text(api: int, response: int, version: int, shown: Shown, pool: Pool) -> TextProgram | None:
    """The program that writes the bodies of one kind of frame, header and all; None where there is none.

    ``shown``: what of a body, and how.
    """
    message = schema.response(api) if response else schema.request(api)
    if message is None or version not in message.versions:
        return None
    if message.name == ENVELOPE and not shown.typed:
        return None
    if response:
        header = model.layout(schema.message("ResponseHeader"), response_header_version(api, version))
    else:
        header = model.layout(schema.message("RequestHeader"), request_header_version(api, version))
    made = _Assembler(pool, shown)
    try:
        made.skip(header)
        made.message(message, version)
    except _UnfitError:
        return None
    made.add(Write.STOP)
    return made.program()


def _by_topic(message: model.Message) -> bool:
    """Whether something in a message is secret by its topic."""
    every = [*message.fields, *(one for struct in message.structs.values() for one in struct.fields)]
    return any(one.secret == "topic" for one in every)


_TARGET: Final = list(CODE.names or ()).index("target")


class _Assembler:
    def __init__(self, pool: Pool, shown: Shown) -> None:
        self._pool = pool
        self._shown = shown
        self._rows: list[list[int]] = []
        self._pending = b""
        self._slots = 0
        self._message: model.Message
        self._version = 0
        self._embedding = False
        self._by_topic = False

    def program(self) -> TextProgram:
        return TextProgram(np.array(self._rows, np.int64).reshape(-1).view(CODE), self._slots)

    def add(
        self,
        op: Write,
        *,
        width: int = 0,
        nullable: int = 0,
        of: int = 0,
        least: int = 0,
        cost: int = 0,
        free: int = 0,
        target: int = 0,
        slot: int = 0,
    ) -> int:
        """Adds an instruction, with the text that was put before it; its number. The fields are those of ``CODE``."""
        text = self._pool.add(self._pending) if self._pending else 0
        self._rows.append([op, text, len(self._pending), width, nullable, of, least, cost, free, target, slot])
        self._pending = b""
        return len(self._rows) - 1

    def _here(self, instruction: int) -> None:
        """Lets an instruction jump to what is added next."""
        if self._pending:
            self.add(Write.TEXT)
        self._rows[instruction][_TARGET] = len(self._rows)

    def skip(self, layout: model.StructLayout) -> None:
        """A header."""
        for one in layout.fields:
            assert isinstance(one.type, model.PrimitiveLayout)
            width = model.FIXED_SIZES.get(one.type.name)
            if width is None:
                self.add(Write.SKIP_STRING, width=_prefix(one.type), nullable=int(one.nullable))
            else:
                self.add(Write.SKIP, width=width)
        if layout.flexible:
            self._tags([])

    def message(self, message: model.Message, version: int, begin: bytes = b"{") -> None:
        before = self._embedding, self._by_topic
        self._message, self._version = message, version
        # Where there is nothing but a size in any case, it does not matter.
        sizes = self._shown.typed and not self._shown.payloads
        self._by_topic = _by_topic(message) and not self._shown.secrets and not sizes
        place = EMBEDDED.get(message.name) if not self._shown.typed else None
        self._struct(model.layout(message, version), message.fields, place, begin)
        self._embedding, self._by_topic = before

    def _struct(
        self, layout: model.StructLayout, fields: tuple[model.Field, ...], place: Place | None, begin: bytes = b"{"
    ) -> None:
        plain = {one.name: one for one in layout.fields}
        tagged = {one.name: one for one in layout.tagged}
        self._pending += begin
        comma = b"" if begin == b"{" else b","
        places: list[tuple[model.FieldLayout, int]] = []
        for one in fields:
            found = plain.get(one.name)
            if found is not None:
                self._pending += comma + f'"{one.name}":'.encode()
                self._value(found, (place or {}).get(one.name), named="protocol_type" if place is not None else "")
            elif one.name in tagged:
                default = self._default(layout, one.name)
                self._pending += comma + f'"{one.name}":'.encode() + default
                self.add(Write.MARK, width=len(default), slot=self._slots)
                places.append((tagged[one.name], self._slots))
                self._slots += 1
            else:
                continue
            comma = b","
        if layout.flexible:
            self._tags(places)
        self._pending += b"}"

    def _default(self, layout: model.StructLayout, name: str) -> bytes:
        """The text of a field that is not on the wire."""
        whole = self._message.name == layout.name
        kind = registry.message_class(self._message)
        owner: Any = (kind if whole else registry.struct_class(self._message, layout.name))()
        values = {name: owner.to_dict(self._version)[name]}
        show(type(owner), values, self._shown, errors=not self._embedding)
        return dump_json(values[name]).encode()

    def _tags(self, places: list[tuple[model.FieldLayout, int]]) -> None:
        begin = self.add(Write.TAGS)
        table = self.add(Write.NEXT_TAG, width=len(places))
        rows = [self.add(Write.TAG, of=one.tag or 0, slot=slot) for one, slot in places]
        for row, (one, slot) in zip(rows, places, strict=True):
            self._here(row)
            self._value(one, None)
            self.add(Write.END_TAG, target=table, slot=slot)
        self._here(table)
        self._here(begin)

    def _value(self, field: model.FieldLayout, inside: Place | str | None, named: str = "") -> None:
        type_ = field.type
        if field.name == "error_code" and (
            not isinstance(type_, model.PrimitiveLayout) or type_.name != "int16" or self._embedding
        ):
            raise _UnfitError
        if isinstance(type_, model.StructLayout):
            test = self.add(Write.IF_PRESENT if field.tag is None else Write.IF_TAGGED) if field.nullable else None
            self._struct(type_, self._message.structs[type_.name].fields, inside if isinstance(inside, dict) else None)
            if test is not None:
                self._here(test)
        elif isinstance(type_, model.ArrayLayout):
            self._array(field, type_, inside)
        elif type_.name in model.FIXED_SIZES:
            self._fixed(field.name, type_)
        elif isinstance(inside, str):
            self._embedded(field, type_, inside)
        else:
            self._text(field, type_, named)

    def _array(self, field: model.FieldLayout, type_: model.ArrayLayout, inside: Place | str | None) -> None:
        element = type_.element
        about = {
            "width": COMPACT if type_.compact else 4,
            "nullable": int(field.nullable),
            "least": element.min_size,
            # What is embedded is counted apart, and is not large.
            "cost": 0 if self._embedding else costs.element(element),
            "free": costs.free(element),
        }
        if isinstance(element, model.PrimitiveLayout) and element.name in _WIDTHS:
            self.add(Write.NUMBERS, of=_WIDTHS[element.name], **about)
            return
        begin = self.add(Write.ARRAY, **about)
        first = len(self._rows)
        if isinstance(element, model.StructLayout):
            structs = self._message.structs
            self._struct(element, structs[element.name].fields, inside if isinstance(inside, dict) else None)
        elif element.name in model.FIXED_SIZES:
            self._fixed("", element)
        else:
            self._text(model.FieldLayout("", element, False, None, None, ""), element, "")
        self.add(Write.NEXT, target=first)
        self._here(begin)

    def _fixed(self, name: str, type_: model.PrimitiveLayout) -> None:
        if name == "error_code":
            self.add(Write.ERROR, nullable=int(self._shown.typed))
        elif type_.name == "bool":
            self.add(Write.BOOL)
        elif type_.name == "uuid":
            self.add(Write.UUID, of=Of.TOPIC if self._by_topic and name == "topic_id" else Of.NOTHING)
        elif type_.name in _WIDTHS:
            self.add(Write.NUMBER, width=_WIDTHS[type_.name])
        else:
            raise _UnfitError

    def _text(self, field: model.FieldLayout, type_: model.PrimitiveLayout, protocol: str) -> None:
        about = {"width": _prefix(type_), "nullable": int(field.nullable)}
        secret = "" if self._shown.secrets else field.secret
        if type_.name == "records" and self._shown.typed and not self._shown.payloads:
            self.add(Write.SIZE, **about)
        elif secret in ("always", "frame"):
            self.add(Write.SECRET, of=int(self._shown.typed), **about)
        elif secret == "config":
            self.add(Write.DOUBTFUL, **about)
        elif type_.name == "records" and not self._shown.payloads:
            self.add(Write.SIZE, **about)
        elif type_.name != "string":
            of_assignor = self._embedding and field.name == USER_DATA
            self.add(Write.BYTES, of=Of.USER_DATA if of_assignor else Of.NOTHING, **about)
        else:
            of = Of.NOTHING
            if protocol and field.name == protocol:
                of = Of.PROTOCOL
            elif self._by_topic and field.name in _TOPIC_NAMES:
                of = Of.TOPIC
            self.add(Write.STRING, of=of, **about)

    def _embedded(self, field: model.FieldLayout, type_: model.PrimitiveLayout, name: str) -> None:
        inner = schema.message(name)
        if inner.versions.low != 0:
            raise _UnfitError
        outer = self._message, self._version
        versions = list(inner.versions)
        least = min(costs.uncounted(model.layout(inner, one), DEFAULT_LIMITS) for one in versions)
        begin = self.add(
            Write.EMBEDDED,
            width=_prefix(type_),
            nullable=int(field.nullable),
            of=inner.versions.high,
            least=least,
        )
        # Behind bytes that were not looked into, and behind those that were.
        over = self.add(Write.JUMP)
        self._rows[begin][_TARGET] = len(self._rows)
        entries = [self.add(Write.JUMP) for _ in versions]
        for entry, version in zip(entries, versions, strict=True):
            self._here(entry)
            self._embedding = True
            self.message(inner, version, begin=b"")
            self._embedding = False
            self.add(Write.END_EMBEDDED)
        self._message, self._version = outer
        self._here(over)


def _prefix(type_: model.PrimitiveLayout) -> int:
    """The width of the length of a string or bytes."""
    return COMPACT if type_.compact else 2 if type_.name == "string" else 4
