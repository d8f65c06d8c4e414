"""``kwire export``: a capture for other tools: spans of OpenTelemetry, and a smaller capture for Wireshark."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from kwire.cli.captures import captures
from kwire.cli.reading import add_options, check_outputs, given, opened, opened_keylog, progress_bar
from kwire.errors import CaptureError, KwireError, needed
from kwire.options import FilterOptions, TrafficOptions, chosen

if TYPE_CHECKING:
    from kwire.report.spans import Exchange
    from kwire.tables.filters import Filter

__all__ = ["register"]

_LINES: Final = (".json", ".jsonl")
_AT_ONCE: Final = 1000
"""Spans of a message, which is a line of JSON."""

EPILOG = """\
examples:
  kwire export broker.pcap --otlp spans.jsonl
  kwire export *.pcap.gz --otlp spans.pb --client-id billing
  kwire export broker.pcap --pcapng orders.pcapng --topic orders

The guide on spans and smaller captures says what the spans have.
"""


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "export",
        help="captures for other tools: spans, smaller captures",
        description="Writes a span of OpenTelemetry for each request and its response (--otlp), or the packets of the "
        "connections that are wanted (--pcapng).",
        epilog=EPILOG,
    )
    parser.add_argument(
        "files", nargs="*", metavar="CAPTURE", help="a capture, a folder with captures, - for standard input"
    )
    parser.add_argument(
        "--otlp",
        metavar="FILE",
        help="write spans: lines of JSON to .json and .jsonl, else protobuf (TracesData)",
    )
    parser.add_argument(
        "--pcapng", metavar="FILE", help="write the connections in which something is wanted, whole, as pcapng"
    )
    add_options(parser, "ports", "vxlan_ports", "apis", "topics", "client_ids", "start", "end", "keylog", "limits")
    parser.set_defaults(run=run, more=[], parser=parser, command="export")


def run(args: argparse.Namespace) -> int:
    """Exports captures. Returns 0, or 2 if one could not be read to its end."""
    args.files = captures([*args.files, *args.more])
    if not args.files:
        args.parser.error("the following arguments are required: CAPTURE")
    if args.otlp is None and args.pcapng is None:
        args.parser.error("one of --otlp FILE and --pcapng FILE is required")
    if args.pcapng is not None and "-" in args.files:
        args.parser.error("--pcapng reads a capture twice: it has to be a file")
    check_outputs((*args.files, *(args.keylog or ())), args.otlp, args.pcapng)
    with needed("kwire export", "capture"):
        from kwire.tables import reading
    try:
        only = reading.Filter.of(**chosen(given(args), FilterOptions))
    except ValueError as wrong:
        args.parser.error(str(wrong))
    code = 0
    if args.otlp is not None:
        code = _otlp(args, only)
    return _pcapng(args, only) or code if args.pcapng is not None else code


# --- spans ------------------------------------------------------------------------------------------------------------


def _otlp(args: argparse.Namespace, only: Filter) -> int:
    from kwire.cli.output import open_binary
    from kwire.cli.stderr import BAD_INPUT, print_error, say
    from kwire.report.spans import json_line, traces

    traces([])  # whether the extra is there
    lines = args.otlp.lower().endswith(_LINES)
    code = count = 0
    keys = opened_keylog(args.keylog)
    with open_binary(args.otlp) as file:
        waiting: list[Exchange] = []

        def flush() -> None:
            nonlocal count
            if waiting:
                file.write(json_line(waiting).encode() + b"\n" if lines else traces(waiting).SerializeToString())
            count += len(waiting)
            waiting.clear()

        for name in args.files:
            try:
                for one in _exchanges(args, name, only, keys):
                    waiting.append(one)
                    if len(waiting) >= _AT_ONCE:
                        flush()
            except (KwireError, OSError) as error:
                print_error(error, name)
                code = BAD_INPUT
        flush()
    say(f"{args.otlp}: {count:,} spans")
    return code


def _exchanges(args: argparse.Namespace, file: str, only: Filter, keys: Any) -> Iterator[Exchange]:
    from kwire.report.spans import TABLES, Spans
    from kwire.tables.reading import read

    spans = Spans()
    name = "standard input" if file == "-" else file
    notes: list[str] = []
    rows = 0
    try:
        with opened(file) as (stream, size), progress_bar(name, size) as progress:
            for table, batch in read(
                stream,
                TABLES,
                name=name,
                **given(args) | {"keylog": keys, "progress": progress, "on_note": notes.append},
            ):
                rows += batch.num_rows
                yield from spans.add(table, batch)
    except CaptureError:
        yield from spans.rest()
        raise
    yield from spans.rest()
    _say(name, notes, bool(rows), only)


def _say(name: str, notes: Sequence[str], found: bool, only: Filter) -> None:
    """Says what was left out of a capture. Raises ``CaptureError`` where nothing was found that was not filtered."""
    from kwire.cli.stderr import say

    if not found and not only:
        raise CaptureError("; ".join(notes) or "no Kafka traffic", file=name)
    for note in notes:
        say(f"{name}: note: {note}")


# --- packets ----------------------------------------------------------------------------------------------------------


def _pcapng(args: argparse.Namespace, only: Filter) -> int:
    from kwire.capture.writing import PcapngWriter, packets_of
    from kwire.cli.output import open_binary
    from kwire.cli.stderr import BAD_INPUT, print_error, say

    code = connections = 0
    with open_binary(args.pcapng) as file:
        writer = PcapngWriter(file)
        for name in args.files:
            keys = opened_keylog(args.keylog)
            wanted: set[int] = set()
            notes: list[str] = []
            try:
                # A capture that is damaged says so in the second pass.
                with contextlib.suppress(CaptureError):
                    _connections(args, name, keys, wanted, notes)
                connections += len(wanted)
                with opened(name) as (stream, size), progress_bar(name, size) as progress:
                    for packet in packets_of(
                        stream, wanted, keys=keys, name=name, progress=progress, **chosen(given(args), TrafficOptions)
                    ):
                        if _is_within(packet.time, only):
                            writer.write(packet)
                if args.otlp is None:
                    # Else it was reported with the spans.
                    _say(name, notes, bool(wanted), only)
            except (KwireError, OSError) as error:
                print_error(error, name)
                code = BAD_INPUT
    say(f"{args.pcapng}: {writer.packets:,} packets of {connections:,} connections")
    return code


def _is_within(time: int | None, only: Filter) -> bool:
    """Whether a packet is of the wanted time. A packet without a time is, if all times are wanted."""
    if time is None:
        return only.start is None and only.end is None
    return (only.start is None or time >= only.start) and (only.end is None or time < only.end)


def _connections(args: argparse.Namespace, name: str, keys: Any, wanted: set[int], notes: list[str]) -> None:
    """Finds the connections with a frame that is wanted. Adds their numbers to ``wanted`` as they are found. Adds what
    was left out to ``notes``."""
    from kwire.capture.parts import Part
    from kwire.tables.reading import read

    with opened(name) as (stream, size), progress_bar(name, size) as progress:
        for _, batch in read(
            stream,
            {"frames": ("connection",)},
            name=name,
            part=Part(),
            **given(args) | {"keylog": keys, "progress": progress, "on_note": notes.append},
        ):
            wanted.update(batch.column(0).to_pylist())
