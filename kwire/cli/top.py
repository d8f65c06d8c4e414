"""``kwire top``: what happens now, in a terminal, of a capture that grows."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from kwire.cli.reading import add_options, given, is_live, opened, opened_keylog
from kwire.errors import CaptureError, KwireError, needed
from kwire.naming import public
from kwire.tables.showing import SAID, readable

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from kwire.report.live import Live, Rates

__all__ = ["register"]

_ROWS: Final = {"api": 14, "topic": 8, "client": 8}
_FINDINGS: Final = 5
_NAME, _WIDE = 20, 9
"""Characters that a name has at least, where there is room, and those of any other column."""
_LESS: Final = ("p50", "rec/s", "bytes/s", "out/s", "err/s", "p99")
"""Columns that a narrow screen does without, the first first."""
_LOOK: Final = 2.0
"""Seconds between two looks for findings."""
SORTS: Final = ("requests", "bytes", "errors", "p99")

EPILOG = """\
examples:
  tcpdump -i any -U -w - port 9092 | kwire top
  kwire top --follow broker.pcap
  kwire top --sort p99 --seconds 60 broker.pcap

A capture that does not grow is read to its end, and its last seconds are shown. Ctrl-C ends it.
"""


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "top",
        help="what happens now: rates, latencies, errors, findings",
        description="Shows requests and bytes a second, latencies and errors of the last seconds by API, topic and "
        "client, and findings as they appear.",
        epilog=EPILOG,
    )
    parser.add_argument("file", nargs="?", metavar="CAPTURE", default="-", help="a capture (default: standard input)")
    parser.add_argument("--follow", action="store_true", help="go on when the end of a growing capture is reached")
    parser.add_argument(
        "--seconds", type=_seconds, default=10, metavar="N", help="how far it looks back (default: 10, at most 600)"
    )
    parser.add_argument("--sort", choices=SORTS, default=SORTS[0], help="what stands first (default: requests)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=N", help="another threshold of findings; several"
    )
    add_options(parser, "ports", "vxlan_ports", "keylog", "limits")
    parser.set_defaults(run=run, more=[], parser=parser)


def _seconds(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 600:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds from 1 to 600")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Shows what happens until the capture ends. Returns 0, or 2 if it could not be read to its end."""
    if args.more:
        # A capture after --port is taken for one more port.
        if args.file != "-" or len(args.more) > 1:
            args.parser.error("one capture at a time")
        (args.file,) = args.more
    if args.file == "-" and sys.stdin is not None and sys.stdin.isatty():
        args.parser.error("a capture is needed: a file, or standard input from a pipe")
    with needed("kwire top", "capture"):
        from kwire.report import findings
        from kwire.report.live import RULES as OF_LIVE
        from kwire.report.live import Live
    from rich.console import Console
    from rich.live import Live as Screen

    try:
        seen = Live(args.seconds, findings.Thresholds.of(args.set, OF_LIVE))
    except ValueError as wrong:
        raise KwireError(str(wrong)) from None
    console = Console()
    shown = _Shown(seen, args, is_live(args.file, follow=args.follow), lambda: console.width)
    error: KwireError | OSError | None = None
    with Screen(
        get_renderable=shown.render, console=console, refresh_per_second=2, screen=console.is_terminal, transient=True
    ):
        try:
            _read(args, seen, shown)
        except (KwireError, OSError) as problem:
            error = problem
    with shown.lock:
        seen.look()
    shown.live = False
    if seen.frames:
        console.print(shown.render())
    elif error is None:
        error = CaptureError("; ".join(shown.notes) or "no Kafka traffic", file=args.file)
    if error is not None:
        from kwire.cli.stderr import BAD_INPUT, print_error

        print_error(error, args.file)
        return BAD_INPUT
    return 0


def _read(args: argparse.Namespace, seen: Live, shown: _Shown) -> None:
    from kwire.report.live import TABLES
    from kwire.tables.reading import read

    keys = opened_keylog(args.keylog, growing=shown.live)
    looked = 0.0
    with opened(args.file, follow=args.follow) as (stream, _):
        for table, batch in read(
            stream,
            TABLES,
            name=args.file,
            **given(args) | {"live": shown.live, "keylog": keys, "on_note": shown.notes.append, "dictionaries": True},
        ):
            with shown.lock:
                seen.add(table, batch)
                shown.came = time.monotonic()
                if shown.came - looked >= _LOOK:
                    looked = shown.came
                    seen.look()


class _Shown:
    """What is on the screen. ``lock``: held while what it shows changes. ``width``: of the screen, in characters."""

    def __init__(self, seen: Live, args: argparse.Namespace, live: bool, width: Callable[[], int]) -> None:
        self.lock = threading.Lock()
        self.live = live
        self.came = time.monotonic()
        """When something came last."""
        self.notes: list[str] = []
        self._seen = seen
        self._name = "standard input" if args.file == "-" else public(args.file)
        self._sort = args.sort
        self._width = width

    def render(self) -> Group:
        """The screen."""
        from rich.console import Group
        from rich.text import Text

        from kwire.report.findings import who
        from kwire.report.page import bytes_text, count_text, ms_text, slow_text, time_text

        with self.lock:
            seen = self._seen
            now = seen.last
            if now is not None and self.live:
                # Time goes on even if nothing comes.
                now += int((time.monotonic() - self.came) * 1e6)
            total, seconds = seen.all(now), seen.span(now)
            head = (
                f"{readable(self._name)}  {time_text(now)}  {count_text(seen.frames)} frames  in {seconds:.0f} s: "
                f"{count_text(total.requests / seconds)} requests/s  {bytes_text(total.bytes / seconds)}/s  "
                f"p50 {ms_text(total.latencies.quantile(0.5))}  p99 {ms_text(total.latencies.quantile(0.99))}  "
                f"{_rate(total.errors / seconds)} errors/s"
            )
            parts: list[Any] = [Text(head, style="bold")]
            slow = seen.slowest()
            if slow is not None:
                parts.append(Text(f"slow at {time_text(slow.at * 1_000_000)}: {slow_text(slow)}", style="yellow"))
            parts.append(Text())
            parts += [self._table(kind, now) for kind in _ROWS]
            # What a capture that has ended says does not depend on when it was looked at.
            for one in seen.found[: -_FINDINGS - 1 : -1] if self.live else seen.worst[:_FINDINGS]:
                style = {"high": "red", "medium": "yellow"}.get(one.severity, "")
                parts.append(Text(f"{one.severity} {one.rule}: {who(one.row())}: {readable(one.summary, SAID)}", style))
            if (more := len(seen.found) - _FINDINGS) > 0:
                parts.append(Text(f"and {more} more: kwire findings shows them all", style="dim"))
            return Group(*parts)

    def _table(self, kind: str, now: int | None) -> Table:
        from rich.table import Table
        from rich.text import Text

        from kwire.report.page import bytes_text, ms_text

        seconds = self._seen.span(now)
        rows = self._seen.rates(kind, now)
        if self._sort != SORTS[0]:
            rows.sort(key=lambda one: -self._by(one[1]))
        elif kind == "topic":
            rows.sort(key=lambda one: -one[1].bytes)
        more = len(rows) - _ROWS[kind]
        table = Table(box=None, pad_edge=False, collapse_padding=True, expand=True, header_style="bold")
        table.add_column(kind, ratio=1, no_wrap=True, overflow="ellipsis")
        topic = kind == "topic"
        ours = ("in/s", "out/s", "rec/s") if topic else ("req/s", "bytes/s")
        shown = self._fitting((*ours, "p50", "p99", "err/s"))
        for name in shown:
            table.add_column(name, justify="right", width=_WIDE, no_wrap=True)
        for key, one in rows[: _ROWS[kind]]:
            name = key if isinstance(key, str) else " ".join(text for text in key if text is not None)
            sums = (
                [bytes_text(one.written / seconds), bytes_text(one.read / seconds), _rate(one.records / seconds)]
                if topic
                else [_rate(one.requests / seconds), bytes_text(one.bytes / seconds)]
            )
            cells: dict[str, Any] = dict(zip(ours, sums, strict=True))
            cells |= {word: ms_text(one.latencies.quantile(part)) for word, part in (("p50", 0.5), ("p99", 0.99))}
            cells["err/s"] = Text(_rate(one.errors / seconds), "red" if one.errors else "")
            table.add_row(Text(readable(name)), *(cells[word] for word in shown))
        if more > 0:
            table.add_row(Text(f"… and {more} more", "dim"))
        table.add_row()
        return table

    def _fitting(self, columns: Sequence[str]) -> list[str]:
        """Those of the columns beside which a name has room."""
        left = [*columns]
        for one in _LESS:
            if self._width() - (_WIDE + 1) * len(left) >= _NAME:
                break
            if one in left:
                left.remove(one)
        return left

    def _by(self, one: Rates) -> float:
        if self._sort == "p99":
            return one.latencies.quantile(0.99) or 0.0
        found: int = getattr(one, self._sort)
        return found


def _rate(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 or not number else f"{number:.2g}" if number < 10 else f"{number:.1f}"
