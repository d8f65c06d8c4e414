"""Turns a layout into the Python source of a flat decoder; ``kwire.codec.encoder`` does so for encoders.

What makes the generated code fast (figures in docs/design):

- Neighbouring fixed-width fields, the length prefix or tag count that follows them included, are one ``struct`` call.
- Objects are allocated in bulk, without ``__init__``; every slot is then assigned, absent fields with their default.
- An array of structs that are all fixed-width is one ``iter_unpack`` with attributes as loop targets. Only where one of
  them has tagged fields that are not known, they are read one by one.
- Where structs hold only numbers and arrays of numbers, an element is one ``struct`` call. For that, the lengths of the
  arrays are guessed from earlier messages (decoding) or remembered from the previous element (encoding).
- One-byte varints are read inline; only longer ones cost a call.

What keeps it correct:

- It may fail with any exception. Then ``kwire.codec.tracked`` runs over the same bytes. It words the error, or finds
  the value that the fast path cannot read. So the code here raises ``RetryError`` where something is odd.
- Reads of fixed width check themselves (``struct.error``, ``IndexError``). A slice past the end is silently short. But
  then ``pos`` has run past the end, and the caller's single comparison of ``pos`` with the length catches it.
- Negative lengths are refused where they are read, so ``pos`` never moves back. Counts are compared with the bytes left
  before objects are allocated.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from kwire import wire
from kwire.codec import costs
from kwire.codec.generated import READERS
from kwire.codec.objects import WireStruct, default_expression
from kwire.codec.source import Source, describe, plus, plus_equal
from kwire.codec.tracked import STRUCT_CODES
from kwire.schema import model

__all__ = ["LONGEST_GUESS", "MOST_SHAPES", "PLAIN", "Frame", "Guesses", "Variant", "decoder_source", "guessable"]

Guesses = dict[int, list[tuple[int, ...]]]
"""Site -> shapes to try in turn: the expected length of each inner array of an element, in wire order.

A site is an array of structs that hold nothing but numbers and arrays of numbers (the partitions of a Metadata
response). Sites are numbered in the order of the source. An element is then read by one ``struct`` call, as if its
arrays had the expected lengths. These are compared afterwards. An element that has none of the shapes takes the plain
path.
"""

VIEW_FROM: Final = 1023
"""Record sets of this many bytes and more are a ``memoryview`` of the frame instead of a copy of their bytes.

A length in compact form has 8 or more in its second byte from here on.
"""

LONGEST_GUESS: Final = costs.FEW_NUMBERS
"""The longest inner array whose length is guessed (int, elements)."""
MOST_SHAPES: Final = 2
"""Clusters mix replication factors, and have replicas that are not in sync: one shape is often not enough."""


def guessable(element: model.StructLayout) -> bool:
    """Whether elements of this layout can be read in one call once their inner arrays' lengths are known."""
    return not element.tagged and all(
        (isinstance(field.type, model.PrimitiveLayout) and field.type.name in STRUCT_CODES)
        or (
            isinstance(field.type, model.ArrayLayout)
            and isinstance(field.type.element, model.PrimitiveLayout)
            and field.type.element.name in READERS
            and not field.nullable
        )
        for field in element.fields
    )


class Variant(NamedTuple):
    """Which decoder: ``counted`` takes what objects may cost as a third argument and counts it, ``lenient`` reads
    strings that are not UTF-8."""

    counted: bool = False
    lenient: bool = False


PLAIN: Final = Variant()
"""The decoder that counts nothing and is strict (``Variant``)."""


class Frame(NamedTuple):
    """What comes before a message, for code that reads and writes both.

    ``constants`` are fields of the header that are the same in all its frames. ``attributes`` are those of a frame
    beside ``header`` and ``body``. Up to ``most`` bytes nothing needs to be counted. The header has no tagged
    fields that are known.
    """

    header: model.StructLayout
    constants: dict[str, int]
    attributes: dict[str, int]
    most: int

    def arguments(self) -> list[str]:
        """The other fields of the header, in wire order."""
        return [field.name for field in self.header.fields if field.name not in self.constants]


class _Decoder(Source):
    """Emits the body of ``decode(data, pos)``."""

    def __init__(
        self,
        globals_: dict[str, Any],
        structs: dict[str, type[WireStruct]],
        guesses: Guesses | None = None,
        variant: Variant = PLAIN,
    ) -> None:
        super().__init__(globals_)
        self.counted = variant.counted
        self.decoded = '.decode("utf-8", "surrogateescape")' if variant.lenient else ".decode()"
        self.path = ["$"]
        self.end = "len(data)"
        self.structs = structs
        self.run: list[tuple[str, str]] = []
        self.after: list[str] = []
        self.ahead = 0
        self.start = False
        """Whether nothing was read yet, and ``pos`` not set: of whole frames, which begin at 0."""
        self.views = False
        self.sites = 0
        # A copy: another thread may make new guesses in the meantime.
        self.guesses = dict(guesses or {})

    # ``pos`` lags behind what was read by ``ahead`` bytes, known when the source is made. Adding them where the next
    # read happens costs nothing more. Often it saves a constant (``pos + 1 + n - 1``). Where branches or rounds of a
    # loop meet, all must have come to the same ``ahead``.

    def at(self, offset: int = 0) -> str:
        """The expression of the next unread position, ``offset`` bytes further on."""
        return plus("pos", self.ahead + offset)

    def settle(self, ahead: int = 0) -> None:
        if ahead != self.ahead:
            self.add(plus_equal("pos", self.ahead - ahead))
            self.ahead = ahead

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Code of a branch, which works with ``ahead`` 0 and comes back to what it was."""
        ahead = self.ahead
        self.settle()
        yield
        self.settle(ahead)
        self.ahead = ahead

    # A run of fixed-width reads that has not been written out yet: (format, assignment target).

    def fixed(self, code: str, target: str) -> None:
        self.run.append((code, target))

    def flush(self) -> None:
        if self.run:
            format_ = "".join(code for code, _ in self.run)
            named = [target for _, target in self.run if target]
            targets = ", ".join(named)
            if format_ in ("B", "BB") and len(named) == len(format_):
                # Two bytes by their places are half of a call.
                for target in named:
                    self.add(f"{target} = data[{self.at()}]")
                    self.ahead += 1
            else:
                size = struct.calcsize(">" + format_)
                reader = f"u_{describe(format_)}"
                self.globals[reader] = struct.Struct(">" + format_).unpack_from
                comma = "," if len(named) == 1 else ""
                if self.start:
                    self.start, self.ahead = False, 0
                    self.add(f"{targets}{comma} = {reader}(data)", f"pos = {size}")
                else:
                    self.add(f"{targets}{comma} = {reader}(data, {self.at()})")
                    self.ahead += size
            self.run = []
        if self.after:
            self.add(*self.after)
            self.after = []

    def length(self, type_: model.PrimitiveLayout | model.ArrayLayout) -> None:
        """Read a length prefix into ``n``: the length itself, or in compact form the length + 1."""
        if type_.compact:
            self.fixed("B", "n")
            self.flush()
            back = f"; pos -= {self.ahead}" if self.ahead else ""
            self.add(f"if n > 127: n, pos = uvarint_rest(data, {self.at()}, n){back}")
        else:
            self.fixed("h" if isinstance(type_, model.PrimitiveLayout) and type_.name == "string" else "i", "n")
            self.flush()
            self.settle()

    @contextmanager
    def unless_null(
        self, type_: model.PrimitiveLayout | model.ArrayLayout, nullable: bool, target: str
    ) -> Iterator[None]:
        """The code that reads a value of length ``n`` goes inside; null and refused lengths are handled around it."""
        if not nullable:
            self.add("if not n: retry()" if type_.compact else "if n < 0: retry()")
            yield
            return
        before = self.ahead
        with self.block("if n:" if type_.compact else "if n >= 0:"):
            yield
        with self.block("else:"):
            self.add(f"{target} = None")
            after, self.ahead = self.ahead, before
            self.settle(after)

    def primitive(self, type_: model.PrimitiveLayout, nullable: bool, target: str) -> None:
        if type_.name == "uuid":
            raw = self.name("x")
            self.fixed("16s", raw)
            self.after.append(f"{target} = uuid({raw})")
            return
        if type_.name in STRUCT_CODES:
            self.fixed(STRUCT_CODES[type_.name], target)
            return
        if type_.name == "records":
            self.views = True
            if type_.compact:
                self.compact_records(nullable, target)
                return
        self.length(type_)
        with self.unless_null(type_, nullable, target):
            content = f"data[{self.at()}:e]"
            if type_.name == "string":
                content += self.decoded
            elif type_.name == "records":
                content += f" if n < {VIEW_FROM} else view[{self.at()}:e]"
            self.add(f"e = {plus('pos + n', self.ahead - type_.compact)}", f"{target} = {content}", "pos = e")
            self.ahead = 0

    def compact_records(self, nullable: bool, target: str) -> None:
        """Record sets have two bytes of length as a rule, and at least the tag count comes after: both in one call."""
        self.fixed("B", "n")
        self.fixed("B", "t")
        self.flush()
        ahead = self.ahead
        with self.block("if n > 127:"):
            # A second byte of 8 or more is a record set of VIEW_FROM bytes or more.
            middle = (VIEW_FROM + 1) >> 7
            for kind, least, most in (("view", middle - 1, 128), ("data", 0, middle)):
                with self.block(f"{'if' if kind == 'view' else 'elif'} {least} < t < {most}:"):
                    self.add(f"e = {plus('pos + n + (t << 7)', ahead - 129)}", f"{target} = {kind}[{self.at()}:e]")
            with self.block("else:"):
                self.add(f"n, pos = uvarint_rest(data, {self.at(-1)}, n)", "if not n: retry()")
                self.add("e = pos + n - 1", f"{target} = data[pos:e] if n <= {VIEW_FROM} else view[pos:e]")
        with self.block("elif n:"):
            self.add(f"e = {plus('pos + n', ahead - 2)}", f"{target} = data[{self.at(-1)}:e]")
        with self.block("else:"):
            self.add(f"{target} = None" if nullable else "retry()", f"e = {self.at(-1)}")
        self.add("pos = e")
        self.ahead = 0

    def array(self, type_: model.ArrayLayout, nullable: bool, target: str) -> None:
        self.length(type_)
        with self.unless_null(type_, nullable, target):
            if type_.compact:
                self.add("n -= 1")
            element = type_.element
            least = f"n * {element.min_size}" if element.min_size > 1 else "n"
            if self.counted:
                self.count(element, least)
            else:
                self.add(f"if {least} > len(data) - pos: retry()")
            if isinstance(element, model.StructLayout):
                self.structs_array(element, target)
            elif element.name in READERS:
                self.add(f"{target} = read_{element.name}s(data, {self.at()}, n)")
                self.add(f"pos += n * {element.min_size}" if element.min_size > 1 else "pos += n")
            elif element.name == "uuid":
                self.settle()
                self.add(f"{target} = [uuid(data[i:i + 16]) for i in range(pos, pos + n * 16, 16)]", "pos += n * 16")
            else:
                items, item = self.name("l"), self.name("v")
                self.add(f"{target} = {items} = []")
                self.settle()
                with self.block("for _ in range(n):"):
                    self.primitive(element, False, item)
                    self.flush()
                    self.settle()
                    self.add(f"{items}.append({item})")

    def count(self, element: model.PrimitiveLayout | model.StructLayout, least: str) -> None:
        """Take the elements of an array from what is left of the limit, if there are bytes enough for them."""
        if element.min_size:
            # Exactly: what has too few bytes is not refused for its objects.
            self.add(f"if {least} > {plus(f'{self.end} - pos', -self.ahead)}: retry()")
        path = "".join(self.path)
        beyond = f"if left < 0: beyond({path!r}, {self.at()})"
        take = f"left -= n * {costs.element(element)}"
        if costs.elements(element, 1):
            self.add(take, beyond)
            return
        with self.block(f"if n > {costs.FEW_NUMBERS}:"):
            self.add(take, beyond)

    def structs_array(self, element: model.StructLayout, target: str) -> None:
        items, one = self.name("l"), self.name("o")
        self.add(f"{target} = {items} = [*starmap(new, repeat((C_{element.name},), n))]")
        formats = [
            STRUCT_CODES[field.type.name]
            for field in element.fields
            if isinstance(field.type, model.PrimitiveLayout) and field.type.name in STRUCT_CODES
        ]
        only_fixed = len(formats) == len(element.fields) and formats and not element.tagged
        if not only_fixed:
            if guessable(element):
                self.guessed_array(element, items, one)
                return
            with self.rounds(element, one, items):
                self.struct(element, one)
                self.flush()
            return
        # All elements in one call. A tagged section is then one zero byte at the end of each element. A strided slice
        # checks it for all of them. If one has tags after all, they are read one by one.
        format_ = "".join(formats) + ("x" if element.flexible else "")
        size = struct.calcsize(">" + format_)
        reader = f"i_{describe(format_)}"
        self.globals[reader] = struct.Struct(">" + format_).iter_unpack
        self.settle()
        self.add(f"e = pos + n * {size}")
        if not element.flexible:
            self.fixed_elements(element, items, one, reader)
            return
        with self.block(f"if data[pos + {size - 1}:e:{size}].count(0) == n:"):
            self.fixed_elements(element, items, one, reader)
        with self.block("else:"):
            with self.rounds(element, one, items):
                self.struct(element, one)
                self.flush()
            self.settle()

    def fixed_elements(self, element: model.StructLayout, items: str, one: str, reader: str) -> None:
        """Read elements of one size, those from ``pos`` to ``e``."""
        targets: list[str] = []
        inside: list[str] = []
        for field in element.fields:
            if isinstance(field.type, model.PrimitiveLayout) and field.type.name == "uuid":
                raw = self.name("x")
                targets.append(raw)
                inside.append(f"{one}.{field.name} = uuid({raw})")
            else:
                targets.append(f"{one}.{field.name}")
        with self.block(f"for {one}, ({', '.join(targets)},) in zip({items}, {reader}(data[pos:e])):"):
            self.add(*inside)
            self.defaults(element, one)
            self.add(f"{one}.unknown_tagged_fields = None")
        self.add("pos = e")

    @contextmanager
    def rounds(self, element: model.StructLayout, one: str, items: str) -> Iterator[None]:
        """A loop over objects to fill. What ends a flexible struct is a count of tags, one byte as a rule."""
        ahead = 1 if element.flexible else 0
        self.settle(ahead)
        with self.block(f"for {one} in {items}:"):
            self.path.append("[*]")
            yield
            self.path.pop()
            self.settle(ahead)

    def guessed_array(self, element: model.StructLayout, items: str, one: str) -> None:
        site, self.sites = self.sites, self.sites + 1
        shapes = self.guesses.get(site)
        with self.rounds(element, one, items):
            for shape in shapes or ():
                self.guessed_element(element, one, shape)
            self.struct(element, one)
            self.flush()
            if shapes:
                self.add(f"plain({site}, ({one},))")
        if not shapes:
            self.add(f"if {items}: plain({site}, {items})")

    def guessed_element(self, element: model.StructLayout, one: str, shape: tuple[int, ...]) -> None:
        """Read an element as if its arrays had these lengths, and go on to the next one if they have."""
        format_ = ""
        targets: list[str] = []
        checks: list[str] = []
        inside: list[str] = []
        lengths = iter(shape)
        for field in element.fields:
            target = f"{one}.{field.name}"
            if isinstance(field.type, model.ArrayLayout):
                assert isinstance(field.type.element, model.PrimitiveLayout)
                length = next(lengths)
                count, numbers = self.name("n"), [self.name("x") for _ in range(length)]
                targets += [count, *numbers]
                code = STRUCT_CODES[field.type.element.name]
                format_ += ("B" if field.type.compact else "i") + code * length
                checks.append(f"{count} == {length + field.type.compact}")
                inside.append(f"{target} = ({', '.join(numbers)}{',' * (length == 1)})")
            else:
                assert isinstance(field.type, model.PrimitiveLayout)
                format_ += STRUCT_CODES[field.type.name]
                if field.type.name == "uuid":
                    targets.append(self.name("x"))
                    inside.append(f"{target} = uuid({targets[-1]})")
                else:
                    targets.append(target)
        if element.flexible:
            tags = self.name("t")
            format_ += "B"
            targets.append(tags)
            checks.append(f"{tags} == 0")
        size = struct.calcsize(">" + format_)
        reader = f"u_{describe(format_)}"
        self.globals[reader] = struct.Struct(">" + format_).unpack_from
        # Near the end of the data the guess may ask for more than there is, and yet the element be good.
        with self.block(f"if {self.at(size)} <= size:"):
            self.add(f"{', '.join(targets)}, = {reader}(data, {self.at()})")
            with self.block(f"if {' and '.join(checks)}:"):
                self.add(f"pos += {size}", *inside)
                self.defaults(element, one)
                self.add(f"{one}.unknown_tagged_fields = None", "continue")

    def value(self, field: model.FieldLayout, target: str) -> None:
        self.path.append("." + field.name)
        self.of_type(field, target)
        self.path.pop()

    def of_type(self, field: model.FieldLayout, target: str) -> None:
        type_ = field.type
        if isinstance(type_, model.PrimitiveLayout):
            self.primitive(type_, field.nullable, target)
        elif isinstance(type_, model.ArrayLayout):
            self.array(type_, field.nullable, target)
        elif field.nullable:
            # In a tagged section Kafka writes a varint instead: 0 for null (MessageDataGenerator, tagged structs).
            if field.tag is None:
                self.fixed("b", "n")
                self.flush()
            else:
                self.settle()
                self.add("n, pos = read_uvarint(data, pos)")
            before = self.ahead
            with self.block("if n >= 0:" if field.tag is None else f"if 0 < n <= {wire.MOST_POSITIVE}:"):
                self.inner_struct(type_, target)
                self.flush()
            with self.block("else:"):
                self.add(f"{target} = None")
                after, self.ahead = self.ahead, before
                self.settle(after)
        else:
            self.inner_struct(type_, target)

    def inner_struct(self, type_: model.StructLayout, target: str) -> None:
        one = self.name("o")
        self.add(f"{target} = {one} = new(C_{type_.name})")
        self.struct(type_, one)

    def defaults(self, type_: model.StructLayout, one: str) -> None:
        """Assign what this version does not have: immutable values together, by value."""
        same: dict[str, list[str]] = {}
        cls = self.structs[type_.name]
        for field in type_.absent:
            self.default(field, cls, one, same)
        for expression, targets in same.items():
            self.add(f"{' = '.join(targets)} = {expression}")

    def default(
        self, field: model.Field | model.FieldLayout, cls: type[WireStruct], one: str, same: dict[str, list[str]]
    ) -> None:
        """Assign a default: fresh lists here, values that can be shared by way of ``same``."""
        expression = default_expression(field, self.globals, cls.STRUCTS.get(field.name))
        if expression == "[]":
            self.add(f"{one}.{field.name} = []")
        else:
            same.setdefault(expression, []).append(f"{one}.{field.name}")

    def struct(self, type_: model.StructLayout, one: str) -> None:
        for field in type_.fields:
            self.value(field, f"{one}.{field.name}")
        if not type_.flexible:
            self.flush()
            self.defaults(type_, one)
            self.add(f"{one}.unknown_tagged_fields = None")
            return
        alone = not self.run and not self.after
        self.fixed("B", "t")
        if alone:
            self.run = []
            self.ahead += 1
            count = f"data[{self.at(-1)}]"
        else:
            self.flush()
            count = "t"
        self.defaults(type_, one)
        if type_.tagged:
            self.known_tags(type_, one, count)
            return
        with self.block(f"if {count}:"), self.aside():
            self.unknown(f"{one}.unknown_tagged_fields")
        with self.block("else:"):
            self.add(f"{one}.unknown_tagged_fields = None")

    def unknown(self, target: str) -> None:
        """Read the tagged section of a struct that knows no tags."""
        if not self.counted:
            self.add(f"{target}, pos = unknown_tags(data, pos)")
            return
        path = "".join(self.path) + ".unknown_tagged_fields"
        self.add(f"{target}, pos, left = counted_tags(data, pos, {self.end}, left, {path!r})")

    def known_tags(self, type_: model.StructLayout, one: str, count: str) -> None:
        cls = self.structs[type_.name]
        same = {"None": [f"{one}.unknown_tagged_fields"]}
        for field in type_.tagged:
            self.default(field, cls, one, same)
        for expression, targets in same.items():
            self.add(f"{' = '.join(targets)} = {expression}")
        unknown, tag, end = self.name("w"), self.name("g"), self.name("z")
        with self.block(f"if {count}:"), self.aside():
            self.add("t, pos = read_uvarint(data, pos - 1)", f"{unknown} = {{}}")
            with self.block("for _ in range(t):"):
                self.add(f"{tag}, pos = read_uvarint(data, pos)", "n, pos = read_uvarint(data, pos)")
                self.add(f"{end} = pos + n", f"if {end} > {self.end if self.counted else 'len(data)'}: retry()")
                outer, self.end = self.end, end
                word = "if"
                for field in type_.tagged:
                    with self.block(f"{word} {tag} == {field.tag}:"):
                        self.value(field, f"{one}.{field.name}")
                        self.flush()
                        self.settle()
                        self.add(f"if pos != {end}: retry()")
                    word = "elif"
                self.end = outer
                with self.block("else:"):
                    if self.counted:
                        path = "".join(self.path) + ".unknown_tagged_fields"
                        self.add(f"left -= {costs.UNKNOWN_TAG}", f"if left < 0: beyond({path!r}, pos)")
                    self.add(f"{unknown}[{tag}] = data[pos:{end}]", f"pos = {end}")
            self.add(f"if {unknown}: {one}.unknown_tagged_fields = {unknown}")

    def frame(self, frame: Frame, layout: model.StructLayout) -> None:
        header = frame.header
        self.add(f"h = new(C_{header.name})", f"o = new(C_{layout.name})")
        for field in header.fields:
            if field.name in frame.constants:
                self.add(f"h.{field.name} = {frame.constants[field.name]}")
                self.run.append((f"{field.min_size}x", ""))
            else:
                self.value(field, f"h.{field.name}")
        if header.flexible:
            # Tags are odd in a header. Of a name of their own: the message's first byte may come in the same call.
            tags = self.name("t")
            self.fixed("B", tags)
            self.after.append(f"if {tags}: retry()")
        self.defaults(header, "h")
        self.add("h.unknown_tagged_fields = None")
        self.struct(layout, "o")
        self.flush()
        self.add(f"if {self.at()} != end: retry()", "f = new(C_frame)", "f.header = h", "f.body = o")
        self.add(*(f"f.{name} = {value}" for name, value in frame.attributes.items()), "return f")


def decoder_source(
    layout: model.StructLayout,
    structs: dict[str, type[WireStruct]],
    globals_: dict[str, Any],
    guesses: Guesses | None = None,
    variant: Variant = PLAIN,
    frame: Frame | None = None,
) -> str:
    """Source of ``decode(data: bytes, pos: int) -> (object, position after it)``; its constants go to ``globals_``.

    One that counts takes a third argument, what objects may cost, and may raise ``BeyondError``.

    ``guesses`` are expected lengths of inner arrays (see ``Guesses``). A layout may be able to use guesses. Then the
    source calls ``plain(site, objects)`` with what was decoded without a guess, or against a wrong one. The caller puts
    that name into ``globals_``.

    With a ``frame`` it is the source of ``decode(data: bytes) -> frame``: a header comes before the message. The first
    numbers of the message come with the header's last ones. No bytes may be left after the message.
    """
    emitter = _Decoder(globals_, structs, guesses, variant)
    if frame is None:
        head = ["def decode(data, pos, left):" if variant.counted else "def decode(data, pos):"]
        emitter.add(f"o = new(C_{layout.name})")
        emitter.struct(layout, "o")
        emitter.flush()
        emitter.add(f"return o, {emitter.at()}")
    else:
        head = ["def decode(data):", "    end = len(data)", f"    if end > {frame.most}: retry()"]
        emitter.start = True
        emitter.frame(frame, layout)
    if emitter.views:
        head.append("    view = memoryview(data)")
    if emitter.guesses:
        head.append("    size = len(data)")
    return "\n".join([*head, *emitter.lines, ""])
