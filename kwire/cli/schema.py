"""``kwire schema``: what the schemas say, and how they compare with Kafka's own definitions.

Without a name it prints a table of all APIs. With a name it prints one of these:

- the grammar of a version as the protocol guide writes it
- the generated Python (``--source``)
- JSON

``import`` turns one of Kafka's JSON definitions into the format of ``schemas/``. ``compare`` compares the definitions
in a folder or a jar with it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from typing import Any, Final

from kwire import schema
from kwire.errors import SchemaError
from kwire.naming import no_such
from kwire.schema import model
from kwire.tables.showing import readable

__all__ = ["grammar", "messages_of", "register", "since"]

EPILOG = """\
examples:
  kwire schema                                   all APIs
  kwire schema Fetch                             what changed when, and the newest version
  kwire schema Fetch --version 4 --kind response
  kwire schema OffsetCommitValue --version 1     an embedded schema
  kwire schema Fetch --version 4 --source        the Python that reads and writes it
  kwire schema import FetchRequest.json          one of Kafka's definitions in kwire's format
  kwire schema compare kafka-clients-4.4.0.jar   what differs; exit code 1 if anything does
"""

SINCE: Final = (
    (3, "0.8.0"),
    (7, "0.8.0"),
    (9, "0.8.1"),
    (10, "0.8.2"),
    (16, "0.9.0"),
    (18, "0.10.0"),
    (20, "0.10.1"),
    (33, "0.11.0"),
    (37, "1.0"),
    (42, "1.1"),
    (43, "2.2"),
    (44, "2.3"),
    (47, "2.4"),
    (49, "2.6"),
    (57, "2.7"),
    (64, "2.8"),
    (67, "3.0"),
    (68, "3.5"),
    (74, "3.7"),
    (75, "3.8"),
    (82, "3.9"),
    (87, "4.0"),
    (92, "4.1"),
    (94, "4.4"),
)
"""Up to this API key -> the Kafka release that brought it. Keys were given out in order."""

_KIPS: Final = re.compile(r"(?<= )KIP-\d+(, KIP-\d+)*$")
GUIDE_NAMES: Final = {"bool": "BOOLEAN"}


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "schema",
        help="messages, versions and layouts; compare with Kafka's definitions",
        description="Prints what the schemas say of an API, a version or an embedded message.",
        epilog=EPILOG,
    )
    parser.add_argument("name", nargs="?", metavar="API", help="an API, its key, or a message; or import, compare")
    parser.add_argument("path", nargs="?", metavar="PATH", help="for import and compare: a JSON file, a folder, a jar")
    parser.add_argument("--version", type=int, dest="api_version", metavar="N", help="default: the newest")
    parser.add_argument("--kind", choices=("request", "response"), help="default: both")
    parser.add_argument("--source", action="store_true", help="print the generated Python")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--schemas", metavar="FOLDER", help="load this folder of schemas as well")
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    """Runs the command. Returns the exit code. ``compare`` returns 1 when something differs."""
    if args.schemas:
        schema.load_folder(args.schemas)
    if args.name in ("import", "compare"):
        if args.path is None:
            args.parser.error(f"{args.name} needs a path")
        return _import(args.path) if args.name == "import" else _compare(args.path, as_json=args.json)
    if args.path is not None:
        args.parser.error(f"unexpected argument {args.path!r}")
    if args.name is None:
        return _table(as_json=args.json)
    return _show(messages_of(args.name, args.kind), args)


# -- all APIs


def since(api_key: int) -> str:
    """The Kafka release that brought an API key. Empty if it is not known."""
    return next((release for last, release in SINCE if api_key <= last), "")


def _table(*, as_json: bool) -> int:
    rows = []
    for api_key, name in schema.api_keys().items():
        request = schema.request(api_key)
        assert request is not None
        rows.append((api_key, name, request.versions, request.flexible, request.kafka4, since(api_key)))
    if as_json:
        keys = ("api_key", "name", "versions", "flexible", "kafka4", "since")
        print(json.dumps([dict(zip(keys, (r[0], r[1], *map(str, r[2:])), strict=True)) for r in rows], indent=1))
        return 0
    heads = ("key", "API", "versions", "flexible", "Kafka 4", "since")
    texts = [heads, *(tuple(_blank(str(one)) for one in row) for row in rows)]
    widths = [max(len(row[column]) for row in texts) for column in range(len(heads))]
    for row in texts:
        cells = [row[0].rjust(widths[0]), *(one.ljust(width) for one, width in zip(row[1:], widths[1:], strict=True))]
        print(readable("  ".join(cells).rstrip(), None))
    embedded = len(schema.names()) - 2 * len(rows)
    print(f"\n{len(rows)} APIs; {embedded} headers and embedded schemas beside them: kwire schema RequestHeader")
    return 0


def _print_exactly(text: str) -> None:
    """Writes ``text``, which a program is to read: as it is, but for what a terminal would obey."""
    if sys.stdout.isatty():
        text = "\n".join(readable(line, None) for line in text.split("\n"))
    sys.stdout.write(text)


def _blank(text: str) -> str:
    return "" if text == "none" else text


# -- one API or message


def messages_of(name: str, kind: str | None) -> list[model.Message]:
    """The messages that a user means: of an API by name or key, or one by its own name. Raises ``SchemaError``."""
    found: list[model.Message | None]
    apis = {one.lower(): key for key, one in schema.api_keys().items()}
    key = int(name) if name.isascii() and name.isdecimal() and len(name) < 10 else apis.get(name.lower())
    if key is not None:
        found = [
            schema.request(key) if kind != "response" else None,
            schema.response(key) if kind != "request" else None,
        ]
    else:
        exact = {one.lower(): one for one in schema.names()}.get(name.lower())
        found = [schema.message(exact)] if exact else []
    made = [one for one in found if one is not None]
    if not made:
        known = (*schema.api_keys().values(), *schema.names())
        close = [one for one in known if name.lower() in one.lower()][:5]
        raise SchemaError(
            f"no API or message {name!r}: did you mean {', '.join(close)}?"
            if close
            else no_such("API or message", name, known),
            file="schemas",
        )
    return made


def _show(messages: list[model.Message], args: argparse.Namespace) -> int:
    for message in messages:
        if args.api_version is not None and args.api_version not in message.versions:
            known = f"version {args.api_version} is not known, versions {message.versions} are"
            raise SchemaError(f"{message.name}: {known}", file="schemas")
    if args.json:
        values = [
            _as_json(one, one.versions.high if args.api_version is None else args.api_version) for one in messages
        ]
        print(json.dumps(values[0] if len(values) == 1 else values, indent=1))
        return 0
    if args.source:
        from kwire.codec import registry

        for message in messages:
            codec = registry.codec(message, message.versions.high if args.api_version is None else args.api_version)
            assert isinstance(codec, registry.CompiledCodec)
            _print_exactly(codec.source() + "\n")
        return 0
    for number, message in enumerate(messages):
        if number:
            print()
        if args.api_version is None:
            for line in _history(message):
                print(readable(line, None))
        version = message.versions.high if args.api_version is None else args.api_version
        for line in grammar(message, version):
            print(readable(line, None))
    return 0


def _history(message: model.Message) -> Iterator[str]:
    head = [f"{message.name}", f"versions {message.versions}"]
    if message.flexible:
        head.append(f"flexible {message.flexible}")
    if message.kafka4:
        head.append(f"Kafka 4 accepts {message.kafka4}")
    if message.api_key is not None:
        head.insert(1, f"key {message.api_key}")
    yield ", ".join(head)
    if message.doc:
        yield from (f"  {line}" for line in message.doc.split("\n"))
    for version, note in sorted(message.notes.items()):
        text = _KIPS.sub(r"(\g<0>)", note)
        yield f"  {f'v{version}':<4} {text}"
    yield ""


def grammar(message: model.Message, version: int) -> list[str]:
    """The lines of the layout of ``message`` in ``version``, in the notation of the Kafka protocol guide."""
    layout = model.layout(message, version)
    kind = {"request": " Request", "response": " Response"}.get(message.kind, "")
    title = f"{message.api_name}{kind} (Version: {version}) => {_production(layout)}"
    return [title.rstrip(), *_productions(layout, 1)]


def _production(layout: model.StructLayout) -> str:
    parts = [f"[{one.name}]" if isinstance(one.type, model.ArrayLayout) else one.name for one in layout.fields]
    return " ".join([*parts, "_tagged_fields"] if layout.flexible else parts)


def _productions(layout: model.StructLayout, depth: int) -> Iterator[str]:
    for one in (*layout.fields, *layout.tagged):
        type_ = one.type.element if isinstance(one.type, model.ArrayLayout) else one.type
        tag = "" if one.tag is None else f"<tag: {one.tag}> "
        if isinstance(type_, model.StructLayout):
            yield f"{'  ' * depth}{tag}{one.name} => {_production(type_)}{_nullable_note(one)}".rstrip()
            yield from _productions(type_, depth + 1)
        else:
            yield f"{'  ' * depth}{tag}{one.name} => {_guide_type(one, type_)}{_nullable_note(one)}"


def _nullable_note(one: model.FieldLayout) -> str:
    # The guide's notation has names for nullable strings and bytes, but none for nullable arrays and structs.
    return "  (nullable)" if one.nullable and not isinstance(one.type, model.PrimitiveLayout) else ""


def _guide_type(one: model.FieldLayout, type_: model.PrimitiveLayout) -> str:
    nullable = one.nullable and isinstance(one.type, model.PrimitiveLayout)
    name = GUIDE_NAMES.get(type_.name, type_.name.upper())
    return f"{'COMPACT_' if type_.compact else ''}{'NULLABLE_' if nullable else ''}{name}"


def _as_json(message: model.Message, version: int) -> dict[str, Any]:
    layout = model.layout(message, version)
    return {
        "name": message.name,
        "kind": message.kind,
        "api_key": message.api_key,
        "version": version,
        "versions": str(message.versions),
        "flexible": layout.flexible,
        "doc": message.doc,
        "notes": {str(one): note for one, note in sorted(message.notes.items())},
        "fields": _fields_as_json(layout),
    }


def _fields_as_json(layout: model.StructLayout) -> list[dict[str, Any]]:
    out = []
    for one in (*layout.fields, *layout.tagged):
        array = isinstance(one.type, model.ArrayLayout)
        type_ = one.type.element if isinstance(one.type, model.ArrayLayout) else one.type
        made: dict[str, Any] = {"name": one.name, "type": f"[{type_.name}]" if array else type_.name}
        if one.nullable:
            made["nullable"] = True
        if one.tag is not None:
            made["tag"] = one.tag
        if one.secret:
            made["secret"] = one.secret
        made["default"] = [] if array and one.default is not None else _plain(one.default)
        if isinstance(type_, model.StructLayout):
            made["fields"] = _fields_as_json(type_)
        out.append(made)
    return out


def _plain(default: object) -> object:
    if isinstance(default, bytes):
        return default.hex()
    return {} if default == () and isinstance(default, tuple) else default


# -- Kafka's definitions


def _import(path: str) -> int:
    from kwire.schema import kafka
    from kwire.schema.format import to_text

    known = set(schema.names())
    made = [
        kafka.marked(one, schema.message(one.name)) if one.name in known else one
        for one in kafka.definitions(path)
        if one.versions
    ]
    if not made:
        raise SchemaError("Kafka has dropped what it defines: it has no versions", file=path)
    _print_exactly(to_text(made))
    return 0


def _compare(path: str, *, as_json: bool) -> int:
    from kwire.schema import kafka

    known = set(schema.names())
    compared = 0
    found: list[kafka.Difference] = []
    for theirs in kafka.definitions(path):
        compared += 1
        found += kafka.compare(theirs, schema.message(theirs.name) if theirs.name in known else None)
    if as_json:
        keys = ("message", "versions", "path", "what")
        print(json.dumps([{key: getattr(one, key) for key in keys} for one in found], indent=1))
    else:
        for one in found:
            print(readable(str(one), None))
        print(f"{compared} definitions compared, {len(found) or 'no'} difference{'' if len(found) == 1 else 's'}")
    return 1 if found else 0
