"""Text of the schema format -> ``model.Message`` objects.

The format is read line by line; ``schemas/README.md`` has the grammar. A line is a message head, a field, a comment or
blank. The indentation says which struct a field belongs to. One regular expression cuts a line into tokens; there is no
look-ahead beyond one token.

Rules kept here:

- Every mistake is a ``SchemaError`` with file and line. Nothing is guessed: an unknown word, a tab, a third space of
  indentation, an attribute given twice are errors.
- A field without a version range exists in every version (``0+``); ``T?`` is nullable wherever the field exists.
- Text is printable: no control character comes into a message, nor from there to a terminal. Numbers have no more
  digits than they can need. Lines have at most ``LONGEST_LINE`` characters.
- Defaults are resolved here, so that nobody else has to know the zero of a type.
- What a line cannot know by itself (is the struct defined, does the tag clash) is left to ``checks``.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Final, NoReturn

from kwire.errors import SchemaError
from kwire.schema.checks import MOST_TAG, check, is_field_name
from kwire.schema.model import (
    NO_VERSIONS,
    OPEN,
    PRIMITIVES,
    Array,
    Default,
    Field,
    Kind,
    Message,
    Primitive,
    Secret,
    Struct,
    StructRef,
    Type,
    Versions,
)

__all__ = ["camel_case", "parse", "zero"]

KINDS: Final[dict[str, tuple[Kind, str]]] = {
    "request": ("request", "Request"),
    "response": ("response", "Response"),
    "header": ("header", ""),
    "data": ("data", ""),
}
"""First word of a head line -> kind and the suffix that Kafka's class name has."""

SECRETS: Final[dict[str, Secret]] = {"config": "config", "frame": "frame", "topic": "topic"}
"""What may follow ``secret``."""

LONGEST_LINE: Final = 10_000
"""Characters of a line of schema text."""

EVERY_VERSION: Final = Versions(0, OPEN)
INTEGER_TYPES: Final = frozenset({"int8", "int16", "uint16", "int32", "uint32", "int64"})

_TOKEN: Final = re.compile(r'\s*(?:(#.*)|("(?:[^"\\]|\\["\\])*")|([^\s"#]+)|(["]))')
_RANGE: Final = re.compile(r"(\d{1,5})(?:(\+)|-(\d{1,5}))?$")
_TYPE: Final = re.compile(r"(\[)?([A-Za-z][A-Za-z0-9]*)(\])?(?:(\?)(.*))?$")
_NUMBER: Final = re.compile(r"[0-9]{1,10}")
_CLASS: Final = re.compile(r"[A-Z][A-Za-z0-9]*$")
_NOTE: Final = re.compile(r"v(\d{1,5})\s+(\S.*)$")


def parse(text: str, file: str = "<schema>") -> list[Message]:
    """Parse the messages of one schema text and check each of them.

    ``file`` is only a name for error messages and ``Message.file``. Raises ``SchemaError``.
    """
    return _Parser(file).run(text)


def camel_case(name: str) -> str:
    """``topic_id`` -> ``TopicId``, Kafka's usual spelling of a field name."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def zero(type_: Type) -> Default | tuple[()]:
    """The default of a field that states none; see ``model.Field.default``."""
    if not isinstance(type_, Primitive):
        return ()
    if type_.name in INTEGER_TYPES:
        return 0
    if type_.name == "uuid":
        return bytes(16)
    zeros: dict[str, Default] = {"bool": False, "float64": 0.0, "string": "", "bytes": b"", "records": b""}
    return zeros[type_.name]


@dataclass(slots=True)
class _Block:
    """A struct (or the message itself) whose fields are being collected."""

    name: str
    line: int
    fields: list[Field] = field(default_factory=list)


@dataclass(slots=True)
class _Head:
    """The head line of a message and the comments above it."""

    kind: Kind
    name: str
    line: int
    versions: Versions
    flexible: Versions
    key: int | None
    kafka4: Versions
    notes: dict[int, str]
    doc: str


class _Parser:
    def __init__(self, file: str) -> None:
        self.file = file
        self.line = 0
        self.messages: dict[str, Message] = {}
        self.comments: list[tuple[int, str]] = []
        self.head: _Head | None = None
        self.blocks: list[_Block] = []  # innermost last; blocks[0] is the message
        self.structs: dict[str, Struct] = {}
        self.opens: str | None = None  # struct that the previous field refers to, and whose fields may follow

    def fail(self, what: str, line: int | None = None) -> NoReturn:
        raise SchemaError(what, self.file, self.line if line is None else line)

    def run(self, text: str) -> list[Message]:
        for number, raw in enumerate(text.split("\n"), 1):
            self.line = number
            self.read_line(raw)
        self.finish()
        return list(self.messages.values())

    def read_line(self, raw: str) -> None:
        stripped = raw.strip()
        if not stripped:
            self.comments.clear()  # a blank line ends a comment block: what stood above it belongs to nothing
            return
        if "\t" in raw:
            self.fail("a tab: indent and align with spaces")
        if len(raw) > LONGEST_LINE:
            self.fail(f"a line of more than {LONGEST_LINE} characters")
        if not stripped.isprintable():
            self.refuse_controls(stripped)
        indent = len(raw) - len(raw.lstrip(" "))
        if stripped.startswith("#"):
            if indent == 0:
                self.comments.append((self.line, stripped[1:]))
            return
        tokens, comment = self.tokens(stripped)
        if indent == 0:
            self.finish()
            self.read_head(tokens, comment)
        else:
            self.read_field(indent, tokens, comment)
        self.comments.clear()

    def refuse_controls(self, text: str) -> None:
        for char in text:
            # Control, format (bidirectional ones too), surrogate and separator characters; other blanks only look odd.
            if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
                self.fail(f"U+{ord(char):04X}, a character that cannot be shown")

    def tokens(self, text: str) -> tuple[list[str], str]:
        tokens: list[str] = []
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                break
            comment, quoted, word, stray = match.groups()
            if stray:
                self.fail("a string without its closing quote")
            if comment is not None:
                return tokens, comment[1:].strip()
            tokens.append(quoted or word)
            position = match.end()
        return tokens, ""

    # -- heads

    def read_head(self, tokens: list[str], comment: str) -> None:
        word = tokens[0]
        if word not in KINDS:
            self.fail(f"expected a message (request, response, header or data), found {word!r}")
        if comment:
            self.fail("comments on a message stand above its head line")
        kind, suffix = KINDS[word]
        if len(tokens) < 2 or not _CLASS.match(tokens[1]):
            self.fail(f"{word} needs a name in CamelCase")
        if suffix and tokens[1].endswith(suffix):
            self.fail(f"leave out {suffix!r}: 'request Produce' is ProduceRequest")
        said: dict[str, str] = {}
        rest = tokens[2:]
        for index in range(0, len(rest), 2):
            attribute = rest[index]
            if attribute not in ("key", "versions", "flexible", "kafka4"):
                self.fail(f"unknown attribute {attribute!r} (key, versions, flexible, kafka4)")
            if attribute in said:
                self.fail(f"{attribute} given twice")
            if index + 1 == len(rest):
                self.fail(f"{attribute} needs a value")
            said[attribute] = rest[index + 1]
        if "versions" not in said:
            self.fail("versions missing, as in 'versions 0-13'")
        key = said.get("key")
        if key is not None and not (_NUMBER.fullmatch(key) and int(key) <= OPEN):
            self.fail(f"key {key!r} is not a number from 0 to {OPEN}")
        if kind in ("request", "response") and key is None:
            self.fail(f"a {kind} needs its API key, as in 'key 0'")
        notes, doc = self.read_comments()
        self.head = _Head(
            kind=kind,
            name=tokens[1] + suffix,
            line=self.line,
            versions=self.range(said["versions"]),
            flexible=self.range(said.get("flexible", "none"), none=True),
            key=None if key is None else int(key),
            kafka4=self.range(said.get("kafka4", "none"), none=True),
            notes=notes,
            doc=doc,
        )
        self.blocks = [_Block(self.head.name, self.line)]
        self.structs = {}
        self.opens = None

    def read_comments(self) -> tuple[dict[int, str], str]:
        notes: dict[int, str] = {}
        doc: list[str] = []
        for line, raw in self.comments:
            text = " ".join(raw.split())
            match = _NOTE.match(text)
            if match is None:
                doc.append(text)
                continue
            version = int(match[1])
            if version in notes:
                self.fail(f"a second note for v{version}", line)
            notes[version] = match[2]
        return notes, "\n".join(doc).strip()

    def range(self, text: str, *, none: bool = False) -> Versions:
        if none and text == "none":
            return NO_VERSIONS
        match = _RANGE.match(text)
        if match is None:
            self.fail(f"{text!r} is not a version range such as 3, 0-13 or 7+")
        low = int(match[1])
        high = OPEN if match[2] else int(match[3] or low)
        if low > high or high > OPEN:
            self.fail(f"version range {text} is empty or too large")
        return Versions(low, high)

    # -- fields

    def read_field(self, indent: int, tokens: list[str], comment: str) -> None:
        if self.head is None:
            self.fail("a field outside of a message: message heads start in the first column")
        if indent % 2:
            self.fail(f"indented by {indent} spaces: use two per level")
        depth = indent // 2
        if depth > len(self.blocks):
            if depth > len(self.blocks) + 1 or self.opens is None:
                self.fail("indented deeper than the line above, which is not of a struct type")
            self.blocks.append(_Block(self.opens, self.line))
        while depth < len(self.blocks):
            self.close_block()
        made = self.field(tokens, comment)
        self.blocks[-1].fields.append(made)
        base = made.type.element if isinstance(made.type, Array) else made.type
        self.opens = base.name if isinstance(base, StructRef) else None

    def close_block(self) -> None:
        block = self.blocks.pop()
        if block.name in self.structs:
            first = self.structs[block.name].line
            self.fail(
                f"struct {block.name} already has its fields (line {first}): refer to it by name only", block.line
            )
        self.structs[block.name] = Struct(block.name, tuple(block.fields), block.line)

    def field(self, tokens: list[str], comment: str) -> Field:
        name = tokens[0]
        if not is_field_name(name):
            self.fail(f"field name {name!r} is not snake_case")
        if len(tokens) < 2:
            self.fail(f"field {name} has no type")
        type_, nullable = self.type(tokens[1])
        rest = tokens[2:]
        literal: str | None = None
        if rest and rest[0] == "=":
            if len(rest) < 2:
                self.fail("'=' without a default")
            literal = rest[1]
            rest = rest[2:]
        versions = EVERY_VERSION
        if rest and _RANGE.match(rest[0]):
            versions = self.range(rest.pop(0))
        tag: int | None = None
        tagged = NO_VERSIONS
        kafka_name = ""
        secret: Secret = ""
        seen: set[str] = set()
        while rest:
            word = rest.pop(0)
            if word in seen:
                self.fail(f"{word} given twice")
            seen.add(word)
            if word == "tag":
                if not rest or not _NUMBER.fullmatch(rest[0]) or int(rest[0]) > MOST_TAG:
                    self.fail("tag needs a number, as in 'tag 0'")
                tag = int(rest.pop(0))
                tagged = versions
                if rest and _RANGE.match(rest[0]):
                    tagged = self.range(rest.pop(0)) & versions
                    if not tagged:
                        self.fail(f"tag {tag} in versions that the field does not have")
            elif word == "as":
                if not rest:
                    self.fail("'as' needs the name that Kafka uses")
                kafka_name = rest.pop(0)
                if kafka_name == camel_case(name):
                    self.fail(f"'as {kafka_name}' is what {name} means anyway")
            elif word == "secret":
                secret = SECRETS[rest.pop(0)] if rest and rest[0] in SECRETS else "always"
            elif word not in ("ignorable", "plain"):
                self.fail(f"unknown word {word!r} (version range, tag, ignorable, plain, secret, as)")
        return Field(
            name=name,
            type=type_,
            versions=versions,
            nullable=nullable & versions or NO_VERSIONS,
            tag=tag,
            tagged=tagged,
            default=zero(type_) if literal is None else self.default(type_, literal),
            ignorable="ignorable" in seen,
            plain="plain" in seen,
            secret=secret,
            kafka_name=kafka_name,
            comment=comment,
            line=self.line,
        )

    def type(self, text: str) -> tuple[Type, Versions]:
        match = _TYPE.match(text)
        if match is None or bool(match[1]) != bool(match[3]):
            self.fail(f"{text!r} is not a type such as int32, string?, [int32] or [TopicData]?7+")
        name = match[2]
        if name not in PRIMITIVES and not _CLASS.match(name):
            self.fail(f"unknown type {name!r}: a struct name starts with a capital letter")
        base: Primitive | StructRef = Primitive(name) if name in PRIMITIVES else StructRef(name)
        nullable = NO_VERSIONS
        if match[4]:
            nullable = self.range(match[5]) if match[5] else EVERY_VERSION
        return (Array(base) if match[1] else base), nullable

    def default(self, type_: Type, literal: str) -> Default | tuple[()]:
        if literal == "null":
            return None
        if isinstance(type_, Primitive):
            if type_.name == "string" and literal.startswith('"'):
                return re.sub(r"\\(.)", r"\1", literal[1:-1])
            if type_.name == "bool" and literal in ("true", "false"):
                return literal == "true"
            try:
                if type_.name in INTEGER_TYPES:
                    return int(literal)
                if type_.name == "float64":
                    return float(literal)
            except ValueError:
                pass
        what = type_.name if isinstance(type_, Primitive) else "an array or a struct, which can only state null"
        raise SchemaError(f"{literal} is not a default for {what}", self.file, self.line)

    def finish(self) -> None:
        head = self.head
        if head is None:
            return
        while len(self.blocks) > 1:
            self.close_block()
        message = Message(
            name=head.name,
            kind=head.kind,
            versions=head.versions,
            flexible=head.flexible,
            fields=tuple(self.blocks[0].fields),
            structs={one.name: one for one in sorted(self.structs.values(), key=_line)},
            api_key=head.key,
            kafka4=head.kafka4,
            notes=head.notes,
            doc=head.doc,
            file=self.file,
            line=head.line,
        )
        first = self.messages.get(message.name)
        if first is not None:
            self.fail(f"{message.name} stands in this file already (line {first.line})", head.line)
        check(message)
        self.messages[message.name] = message
        self.head = None


def _line(struct: Struct) -> int:
    return struct.line
