"""``kwire explain``: one frame as an annotated tree, with the bytes of every field.

A frame comes in one of these forms:

- as text: hex, base64, a dump of xxd or ``hexdump -C``, an array of C (``kwire.cli.dumps``)
- as a file that holds such text or the raw bytes
- out of a capture (``--frame N``)

The tree is drawn from the reference codec (``kwire.codec.reference``), which knows where each field stands. If a frame
cannot be read to its end, the tree ends there. The error follows it, and the exit code is 2.

A password, a token and the like are drawn as their size, with dots in place of their bytes, unless ``--secrets show``.
The request in an ``Envelope`` is drawn as fields of its own if it can be read.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kwire.capture.magics import is_capture
from kwire.cli.captures import Files, captures
from kwire.cli.dumps import bytes_of
from kwire.cli.reading import add_options, opened_keylog
from kwire.codec.redacting import REDACTED, is_secret, redacted
from kwire.errors import CaptureError, DecodeError, KwireError, needed
from kwire.opening import open_file
from kwire.protocol.splitter import DEFAULT_LIMIT
from kwire.tables.showing import readable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    from kwire.capture.frames import Frame
    from kwire.codec.reference import EnoughError, Node
    from kwire.limits import Limits
    from kwire.schema.model import Message

__all__ = ["register"]

EPILOG = """\
examples:
  kwire explain 001200000000000100046b7769             a request, in hex
  kwire explain frame.txt                               a file with a dump of xxd, or with raw bytes
  kwire explain --response ApiVersions --version 0 answer.bin
  kwire explain --message OffsetCommitValue --version 3 AAMAAAAAAAAAKg==
  kwire explain broker.pcap --frame 12                  frame 12 of a capture, counted from 0
  kwire explain broker.pcap --frame 12 --values schemas/     and what its keys and values say
  kwire explain broker.pcap* --frame 12                 captures that were rotated: frames are numbered through
"""

MAX_HEX: Final = 16
"""Bytes of a field that are shown. Longer ones are cut."""
MAX_TEXT: Final = 60
MAX_QUOTED: Final = 16
MAX_VALUE: Final = 2000
"""Characters of what a value says."""
MOST_RECORDS: Final = 1000
"""Records of a frame whose values are shown."""
_OF_VALUE: Final = ("schema", "message", "framing", "status", "error", "json")
WHOLE: Final = ""
"""In what is known of a struct: whether it could be read to its end."""
MOST_FIELDS: Final = 1000
"""A line costs as much as decoding a hundred fields."""

LARGEST: Final = DEFAULT_LIMIT * 6 + 4096
"""Bytes that are read of a file: the largest frame as an array of C. It takes six characters for a byte."""


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "explain",
        help="one frame as an annotated tree with byte ranges",
        description="Draws one frame (without its 4-byte size, or with it) as a tree of fields and bytes.",
        epilog=EPILOG,
    )
    add = parser.add_argument
    add(
        "frame",
        metavar="FRAME",
        nargs="+",
        help="hex, base64, a dump (xxd, hexdump -C), an array of C, a file with one of these or with raw bytes, or a "
        "capture (several: one that was rotated)",
    )
    add("--frame", type=int, dest="number", metavar="N", help="frame N of a capture, counted from 0")
    add("--response", metavar="API", help="it is a response of this API (name or key); needs --version")
    add("--message", metavar="NAME", help="it is a bare message such as OffsetCommitValue; needs --version")
    add("--version", type=int, dest="api_version", metavar="N", help="version of a response or message")
    add_options(parser, "keylog", "limits", "secrets", "schemas", "validate", "mask")
    parser.add_argument(
        "--fields",
        type=int,
        default=MOST_FIELDS,
        metavar="N",
        help=f"draw N fields and elements of header and body each (default: {MOST_FIELDS})",
    )
    parser.set_defaults(run=run, parser=parser)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the frame and the layout that it has: the header, or the body."""

    title: str
    message: Message
    version: int
    start: int
    whole: bool
    """Whether it reaches to the end of the frame."""


def run(args: argparse.Namespace) -> int:
    """Runs the command. Returns the exit code."""
    if (args.response is not None or args.message is not None) and args.api_version is None:
        args.parser.error("--response and --message need --version")
    for name in ("mask", "validate"):
        if getattr(args, name) and args.schemas is None:
            args.parser.error(f"--{name} goes with --values")
    asked = (args.secrets, args.fields, args.limits)
    if args.number is None:
        if args.schemas is not None:
            args.parser.error("--values goes with a capture and --frame N")
        if len(args.frame) > 1:
            args.parser.error("several captures go with --frame N")
        return _draw(_read(args.frame[0]), args.response, args.api_version, args.message, *asked)
    frame = _of_capture(args.frame, args.number, args.keylog)
    if frame.status.name == "SASL":
        return _draw_token(frame.data, args.secrets)
    api, version = (str(frame.api_key), frame.api_version) if frame.is_response else (None, None)
    code = _draw(frame.data, api, version, None, *asked)
    if args.schemas is not None:
        _draw_values(args, frame.number)
    return code


# -- where the bytes come from


def _read(text: str) -> bytes:
    path = Path(text)
    try:
        is_file = path.is_file()
    except OSError:  # too long for a file name
        is_file = False
    if not is_file:
        found = bytes_of(text, DEFAULT_LIMIT)
        if found is None:
            # Others must not read a frame that was not copied right. They may read a name, which mostly has a dot.
            shown = f"{text[:40]!r}" if "." in text or len(text) <= MAX_QUOTED else f"text of {len(text)} characters"
            raise DecodeError(f"{shown} is neither a file nor hex nor base64, nor a dump")
        return found
    with open_file(path) as file:
        content = file.read(4)
        if is_capture(content):
            raise DecodeError(f"{text} is a capture: say which of its frames, with --frame N")
        content += file.read(LARGEST)
    if len(content) > LARGEST:
        raise DecodeError(f"{text} is larger than the largest frame ({DEFAULT_LIMIT >> 20} MiB), even as text")
    try:
        shown = content.decode("ascii")
    except UnicodeDecodeError:
        return content
    return bytes_of(shown, DEFAULT_LIMIT) or content


@contextlib.contextmanager
def _named(path: str, kind: type[OSError]) -> Iterator[None]:
    """Lets an error of this kind name the file."""
    try:
        yield
    except kind as error:
        raise CaptureError(str(error), file=path) from None


@contextlib.contextmanager
def _open(files: Sequence[str]) -> Iterator[Files]:
    """The files of one capture."""
    from kwire.capture.compressed import DamagedError
    from kwire.cli.stderr import print_error

    first, *more = captures(files)
    with _named(first, DamagedError), Files(print_error, first, deque(more)) as found:
        yield found


def _of_capture(paths: Sequence[str], number: int, keylog: Sequence[str] | None) -> Frame:
    """Frame ``number`` of a capture, which can be explained.

    Of several files, as if they were one; or, as ``decode --across`` and ``why`` have it, the place of a file in the
    upper bits.
    """
    with needed("reading captures", "capture"):
        from kwire.capture.reading import Reading
        from kwire.capture.tracker import PART_BITS
    place, within = number >> PART_BITS, number & ((1 << PART_BITS) - 1)
    count, begins = 0, [0]
    with _open(paths) as files:
        path = files.name
        for frames in Reading(files.source, name=path, keys=opened_keylog(keylog)):
            begins += [count] * (1 + len(files.later) - len(begins))
            count += len(frames)
            if place >= len(begins):
                continue
            found = (frames.numbers == begins[place] + within).nonzero()[0].tolist()
            if not found:
                continue
            frame: Frame = frames[found[0]]
            if not frame.data:
                raise CaptureError(f"frame {number} has no bytes that could be explained", file=files.name)
            if frame.is_response and frame.status.name != "SASL" and (frame.api_key is None or frame.api_key < 0):
                raise CaptureError(f"frame {number} is a response whose request is not in the capture", file=files.name)
            return frame
        apart = f"; {files.more[0]} does not go on with it" if files.more else ""
    raise CaptureError(f"no frame {number}: {count} frames, counted from 0{apart}", file=path)


# -- drawing


def _console() -> Console:
    from rich.console import Console

    # A terminal wraps lines. A pipe gets them whole, whatever their length.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 10_000)


def _draw_token(data: bytes, secrets: bool) -> int:
    """A SASL token, which has no header and whose mechanism it does not say."""
    from rich.text import Text

    shown = _Shown(f"{len(data)} bytes", _hex(data)) if secrets else _Shown.secret(data, data)
    line = Text.assemble(("SASL token", "bold"), f" = {shown.value}", (f"  {_range(0, len(data))}", "dim"))
    _console().print(line.append(f"  {shown.hex}", "yellow"))
    return 0


def _draw_values(args: argparse.Namespace, number: int) -> None:
    """What the keys and values of a frame's records say, by the schemas that ``--values`` names."""
    import pyarrow.compute as pc
    from rich.text import Text
    from rich.tree import Tree

    from kwire.tables import reading

    names = [f"{part}_{name}" for part in ("key", "value") for name in _OF_VALUE]
    columns = ["frame", "topic", "partition", "offset", *names]
    options = {name: getattr(args, name) for name in ("schemas", "validate", "mask", "limits")}
    options["keylog"] = opened_keylog(args.keylog)
    tree, left = Tree(Text("what the records say", "bold")), MOST_RECORDS
    with _open(args.frame) as files:
        for _, batch in reading.read(files.source, {"records": columns}, name=files.name, **options):
            for row in batch.filter(pc.equal(batch.column("frame"), number)).to_pylist():
                left -= 1
                if left < 0:
                    continue
                place = f"{readable(str(row['topic']), None)}-{row['partition']}, offset {row['offset']}"
                record = tree.add(Text(place, "bold cyan"))
                for part in ("key", "value"):
                    if row[f"{part}_status"] is not None:
                        record.add(_said_of(part, {name: row[f"{part}_{name}"] for name in _OF_VALUE}))
    if tree.children:
        console = _console()
        console.print(tree)
        if left < 0:
            console.print(f"... and {-left} more records", style="dim")


def _said_of(part: str, row: Mapping[str, Any]) -> Text:
    from rich.text import Text

    of = [
        readable(str(row[name]), None) for name in ("schema", "message", "framing") if row[name] not in (None, "none")
    ]
    line = Text(part, "bold").append(f"  {', '.join(of)}" if of else "", "green")
    if row["status"] == "ok":
        text = row["json"] if len(row["json"]) <= MAX_VALUE else row["json"][:MAX_VALUE] + "..."
        return line.append(f" = {readable(text, None)}", "none")
    return line.append(f"  {row['status']}: {readable(row['error'] or 'no schema fits', None)}", "bold red")


def _draw(
    data: bytes,
    response: str | None,
    version: int | None,
    message: str | None,
    secrets: bool,
    most: int,
    limits: Limits,
) -> int:
    from rich.text import Text

    from kwire.codec import reference, registry

    console = _console()
    failed: KwireError | None = None
    position = 0
    # A frame that was cut out of a stream often still begins with its size.
    if not message and len(data) >= 8 and int.from_bytes(data[:4], "big") == len(data) - 4:
        console.print(Text.assemble(("size", "bold"), f" = {len(data) - 4}", (f"  {_range(0, 4)}", "dim")))
        position = 4
    try:
        for part in _parts(data, position, response, version, message):
            tree, error, end = _tree(part, data, secrets, most)
            left = len(data) - end if part.whole and error is None else 0
            if left:
                _add_trailing(tree, part, data, end, secrets)
            console.print(tree)
            if left:
                label = f"{part.message.name} v{part.version}"
                raise DecodeError(f"{left} bytes after the end of the message", layout=label, offset=end)
            if isinstance(error, reference.EnoughError):
                console.print(f"... these are the first {most} fields: --fields N draws more", style="dim")
                # An error after them is still reported.
                codec = registry.codec(part.message, part.version)
                (codec.decode if part.whole else codec.decode_prefix)(data, part.start, limits)
            elif error is not None:
                raise error
    except KwireError as error:
        failed = error
    if failed is not None:
        from kwire.cli.stderr import BAD_INPUT, print_error

        print_error(failed)
        return BAD_INPUT
    return 0


def _tree(part: Part, data: bytes, secrets: bool, most: int) -> tuple[Tree, DecodeError | EnoughError | None, int]:
    """What is drawn of a part, what stopped its reading, and where it ends. Bytes after it are not looked at."""
    from rich.text import Text
    from rich.tree import Tree

    from kwire.codec import reference

    node, error = reference.trace(part.message, part.version, data, part.start, whole=False, most=most)
    if part.message.name == "RequestHeader" and not _is_request(data[part.start :]):
        _doubt(node)
    title = Text.assemble((readable(part.title, None), "bold"), (f"  {_range(part.start, node.end)}", "dim"))
    tree = Tree(title)
    _add(tree, node, data, secrets, most, ())
    return tree, error, node.end


def _is_request(data: bytes) -> bool:
    """Whether this is a request to the last byte."""
    from kwire.protocol.headers import decode_request

    try:
        decode_request(data)
    except KwireError:
        return False
    return True


def _doubt(header: Node) -> None:
    """Treats the client_id of a damaged request as a secret."""
    from kwire.protocol.secrets import is_doubtful

    for one in header.children:
        if one.step == ".client_id" and is_doubtful(one.value):
            one.secret = "always"


def _add_trailing(tree: Tree, part: Part, data: bytes, end: int, secrets: bool) -> None:
    """Adds what follows a part within the frame. Of a message that may have secrets its bytes may be one."""
    from rich.text import Text

    from kwire.codec import registry

    hides = not secrets and registry.message_class(part.message).SECRET_FIELDS
    line = Text("bytes after the end", "bold red").append(f" = {len(data) - end} bytes", "none")
    line.append(f"  {_range(end, len(data))}", "dim")
    tree.add(line.append(f"  {_dots(len(data) - end) if hides else _hex(data[end:])}", "yellow"))


def _parts(data: bytes, start: int, response: str | None, version: int | None, message: str | None) -> Any:
    """The parts of the frame, one after the other. Where the body starts is known once the header was read."""
    from kwire import schema
    from kwire.cli.schema import messages_of
    from kwire.codec import registry
    from kwire.protocol import headers

    if message is not None:
        assert version is not None
        (found,) = messages_of(message, None)[:1]
        registry.codec(found, version)  # says so when the version is not known
        yield Part(f"{found.name} v{version}", found, version, start, True)
        return
    if response is not None:
        assert version is not None
        (body,) = messages_of(response, "response")
        assert body.api_key is not None
        header_version = headers.response_header_version(body.api_key, version)
        header = schema.message("ResponseHeader")
    else:
        if len(data) - start < 4:
            raise DecodeError(f"{len(data) - start} bytes are too few for a request", offset=start)
        api_key, version = (int.from_bytes(data[start + at : start + at + 2], "big", signed=True) for at in (0, 2))
        header_version = headers.request_header_version(api_key, version)
        header = schema.message("RequestHeader")
        body = registry.request_codec(api_key, version).message
    registry.codec(body, version)
    yield Part(f"{header.name} v{header_version}", header, header_version, start, False)
    _, end = registry.codec(header, header_version).decode_prefix(data, start)
    yield Part(f"{body.name} v{version}", body, version, end, True)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is drawn of the value of a field and of its bytes."""

    value: str
    hex: str

    @classmethod
    def secret(cls, value: bytes | str, data: bytes) -> _Shown:
        size = redacted(value)[REDACTED]
        return cls(f"redacted, {size} bytes", _dots(len(data)))


def _add(tree: Tree, node: Node, data: bytes, secrets: bool, most: int, around: tuple[dict[str, object], ...]) -> None:
    """Adds the fields of ``node``. ``around``: what is known of the structs in which it stands."""
    from rich.text import Text

    if node.children and node.children[0].step.startswith("."):
        known = {one.step[1:]: one.value for one in node.children if one.end >= 0 and not one.children}
        around = (*around, {**known, WHOLE: node.end >= 0 and not node.cut})
    for child in node.children:
        line = Text(readable(child.step.removeprefix("."), None), "bold cyan")
        leaf = child.end >= 0 and not child.children
        shown = None
        if leaf:
            shown = _Shown(_value(child.value), _hex(data[child.start : child.end]))
            if not secrets and child.secret and _is_secret(child, around):
                assert isinstance(child.value, (bytes, str))
                shown = _Shown.secret(child.value, data[child.start : child.end])
            line.append(f" = {shown.value}", "none")
        line.append(f"  {readable(child.type, None)}", "green")
        line.append(f"  {_range(child.start, child.end)}", "dim")
        if shown is not None:
            line.append(f"  {shown.hex}", "yellow")
        if child.end < 0:
            line.append("  <- reading stopped here", "bold red")
        below = tree.add(line)
        _add(below, child, data, secrets, most, around)
        if leaf and child.secret == "frame" and isinstance(child.value, bytes):
            _add_request(below, child.value, child.end, data, secrets, most)


def _is_secret(child: Node, around: tuple[dict[str, object], ...]) -> bool:
    if not child.value:
        return False
    # The next field of the entry may say that it is secret, and could not be read.
    entries = (one for one in around[-2:] if "value" in one)
    unknown = child.secret == "config" and not all(one[WHOLE] for one in entries)
    return unknown or is_secret(child.secret, child.value, around)


def _add_request(tree: Tree, request: bytes, end: int, data: bytes, secrets: bool, most: int) -> None:
    """Adds the request in an ``Envelope``, which ends at ``end``."""
    from kwire.protocol.secrets import embedded

    if embedded(request) is None:
        return
    for part in _parts(data[:end], end - len(request), None, None, None):
        tree.add(_tree(part, data[:end], secrets, most)[0])


def _value(value: object) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, str):
        text = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return readable(repr(text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "..."), None)
    if value is None:
        return "null"
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _range(start: int, end: int) -> str:
    return f"[{start}..]" if end < 0 else f"[{start}..{end})"


def _dots(size: int) -> str:
    """The text in place of a number of hidden bytes in hexadecimal."""
    shown = " ".join([".."] * min(size, MAX_HEX))
    return shown if size <= MAX_HEX else f"{shown} ..."


def _hex(data: bytes) -> str:
    shown = data[:MAX_HEX].hex(" ")
    return shown if len(data) <= MAX_HEX else f"{shown} ..."
