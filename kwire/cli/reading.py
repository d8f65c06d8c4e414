"""How commands read files, and the options of reading that several commands have.

Files are opened, and decompressed while they are read. A bar shows the progress.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import select
import signal
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from kwire import options
from kwire.errors import KwireError
from kwire.naming import no_such, public
from kwire.opening import open_file
from kwire.options import OPTIONS, CaptureOptions

if TYPE_CHECKING:
    from kwire.capture.reading import Source
    from kwire.cli.output import Output
    from kwire.tls import KeyLog

__all__ = [
    "Names",
    "add_options",
    "add_output",
    "check_outputs",
    "flag_of",
    "given",
    "is_live",
    "named_topics",
    "opened",
    "opened_keylog",
    "progress_bar",
]


class Secrets(argparse.Action):
    """``--secrets redact`` or ``--secrets show``: whether they are shown."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Sets a bool."""
        setattr(namespace, self.dest, values == "show")


class Names(argparse.Action):
    """``--table frames``, ``--table frames,records``, or several of them: a list of names, each once.

    ``one_of``: the names that there are, where the parser is to know them. ``each``: a name that is given twice is
    there twice, for who refuses that. ``read`` takes the names from a text where commas may stand in names.
    """

    def __init__(
        self,
        *args: Any,
        one_of: Sequence[str] = (),
        each: bool = False,
        read: Callable[[str], Iterable[str] | None] = lambda text: map(str.strip, text.split(",")),
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self._one_of = one_of
        self._read = read
        self._each = each

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Adds the names in ``values``."""
        found = [*(getattr(namespace, self.dest) or ())]
        for name in self._read(values) or [values.strip()]:
            if not name and not self._each:
                raise argparse.ArgumentError(self, f"{values!r} has an empty name")
            if self._one_of and name not in self._one_of:
                raise argparse.ArgumentError(self, no_such("choice", name, self._one_of))
            found.append(name)
        setattr(namespace, self.dest, found if self._each else list(dict.fromkeys(found)))


_LIKE_A_NUMBER: Final = re.compile(r"[-+0-9.,]*[0-9][-+0-9.,]*")
"""What is given as a port, and is no file."""


class Ports(argparse.Action):
    """``--port 9092``, ``--port 9092 9093``, ``--port 9092,9093``, or several of them; ``--vxlan-port`` likewise.

    A capture may follow the ports: a word that is no number is one more file.
    """

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Sorts ``values`` into ports and files."""
        for value in values:
            parts = value.split(",")
            if not all(part.isascii() and part.isdecimal() for part in parts):
                if _LIKE_A_NUMBER.fullmatch(value):
                    raise argparse.ArgumentError(self, f"{value} is no port: ports are 1 to 65535")
                namespace.more = [*namespace.more, value]
                continue
            if not all(len(part) <= 5 and 0 < int(part) < 65536 for part in parts):
                raise argparse.ArgumentError(self, f"{value} is no port: ports are 1 to 65535")
            setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or ()), *map(int, parts)])


def _reader(kind: options.Kind) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return kind.read(text)
        except ValueError as wrong:
            raise argparse.ArgumentTypeError(f"{text!r} is not {kind.such}" if kind.such else str(wrong)) from None

    return read


_FORMS: Final[Mapping[options.Kind, dict[str, Any]]] = {
    options.PORTS: {"action": Ports, "nargs": "+"},
    options.NAMES: {"action": Names},
    options.TEXTS: {"action": Names, "read": options.TEXTS.read},
    options.PATHS: {"action": "append"},
    options.SWITCH: {"action": "store_true"},
    options.SECRETS: {"action": Secrets},
}
"""How the command line takes kinds of options (``kwire.options``). It reads others as Spark does."""


def flag_of(name: str) -> str:
    """What the command line calls an option."""
    return (OPTIONS[name].flag if name in OPTIONS else "") or f"--{name.replace('_', '-')}"


def add_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Adds the flags of some options of ``kwire.options``, or of all that have one. ``given`` takes their values."""
    for name in names or [name for name, option in OPTIONS.items() if option.flag]:
        option = OPTIONS[name]
        assert option.kind is not None
        form = dict(_FORMS.get(option.kind, {}))
        if option.kind.words:
            form["choices"] = option.kind.words
        elif option.kind not in _FORMS:
            form["type"] = _reader(option.kind)
        if option.kind.metavar:
            form["metavar"] = option.kind.metavar
        usual = f" (default: {option.unset})" if option.unset else ""
        parser.add_argument(option.flag, dest=name, default=option.default, help=option.help + usual, **form)


def given(args: argparse.Namespace) -> CaptureOptions:
    """The options of reading among the arguments of a command."""
    return cast(CaptureOptions, {name: getattr(args, name) for name in CaptureOptions.__annotations__ if name in args})


def add_output(parser: argparse.ArgumentParser) -> None:
    """Adds ``-o``. ``output`` is then a path, or None for standard output."""
    parser.add_argument(
        "-o",
        "--output",
        type=lambda text: None if text == "-" else text,
        metavar="OUT",
        help="write to this file, not to standard output",
    )


def named_topics(paths: Sequence[str] | None) -> dict[bytes, str]:
    """The names of topics by their ids that ``--topic-ids`` names. Raises ``KwireError`` and ``OSError``."""
    if not paths:
        return {}
    from kwire.tables.topic_names import topic_names
    from kwire.wire import parse_uuid

    return {parse_uuid(id_).bytes: name for id_, name in topic_names(paths).items()}


def opened_keylog(paths: Sequence[str] | None, *, growing: bool = False, quiet: bool = False) -> KeyLog | None:
    """The secrets of ``--keylog``, and a line on standard error where there are none. ``growing``: more may come, as
    from programs that run. ``quiet``: no line. Raises ``OSError``."""
    if not paths:
        return None
    from kwire.cli.stderr import say
    from kwire.tls import KeyLog

    keys = KeyLog.open(*paths, growing=growing)
    if not len(keys) and not growing and not quiet:
        wrong = f": none of {keys.damaged} lines can be read" if keys.damaged else ""
        say(f"{', '.join(paths)}: note: there is no secret in the key log{wrong}")
    return keys


def check_outputs(inputs: Iterable[str], *outputs: str | None) -> None:
    """Raises ``KwireError`` if an output would replace another output, or a file that is read. A capture cannot be
    taken again."""
    wanted = [one for one in outputs if one is not None]
    for number, output in enumerate(wanted):
        if any(os.path.abspath(output) == os.path.abspath(other) for other in wanted[:number]):  # noqa: PTH100
            raise KwireError(f"{output}: two outputs cannot go to one file")
        for file in inputs:
            # Only what is replaced is in danger: a terminal may be both.
            with contextlib.suppress(OSError):
                if os.path.isfile(output) and os.path.samefile(file, output):  # noqa: PTH113, PTH121
                    raise KwireError(f"{output}: is read, and cannot be the output too")


class Live:
    """What others are still writing: a pipe, or (``follow``) a file that grows.

    A read gives the bytes that came within ``PATIENCE`` of its first byte. So a slow source shows each packet, and a
    fast one fills whole windows. A pipe ends if its writers are gone. A followed file ends at Ctrl-C.

    A thread reads a pipe ahead. ``tcpdump -w -`` drops packets while nobody takes its output. Loading or compiling the
    first machine code may take longer than a pipe can buffer of a busy broker.
    """

    PATIENCE: Final = 0.1
    """Seconds."""
    PIECE: Final = 1 << 20
    """Bytes."""
    PREFETCH: Final = 64 << 20
    """Bytes that are read ahead."""

    def __init__(self, descriptor: int, *, follow: bool) -> None:
        # A descriptor of its own: a thread may read it after the owner of the other has closed that.
        self._descriptor = descriptor if follow else os.dup(descriptor)
        self._follow = follow
        self._prefetched: deque[bytes] = deque()
        self._held = 0
        self._ended: bool | OSError = False
        self._changed = threading.Condition()
        self._piped = not follow
        if self._piped:
            threading.Thread(target=self._prefetch, name="kwire-read-ahead", daemon=True).start()

    @contextlib.contextmanager
    def ended_by_signals(self) -> Iterator[None]:
        """Lets the first Ctrl-C or SIGTERM within the block be the end of what is followed."""
        before: dict[int, Any] = {}

        def give_back() -> None:
            while before:
                signal.signal(*before.popitem())

        def end(number: int, frame: object) -> None:
            self._follow = False
            give_back()

        if self._follow:
            before |= {one: signal.signal(one, end) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            give_back()

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes, none at the end."""
        parts: list[bytes] = []
        until = math.inf
        while size > 0 and (left := until - time.monotonic()) > 0:
            wait = self.PATIENCE if self._follow else None if left == math.inf else left
            part = self._next(min(size, self.PIECE), wait)
            if part is None:
                if parts or not self._follow:
                    break
                continue
            if not part:
                if not self._follow or parts:
                    break
                time.sleep(self.PATIENCE)
                continue
            parts.append(part)
            size -= len(part)
            until = min(until, time.monotonic() + self.PATIENCE)
        return b"".join(parts)

    def _next(self, size: int, wait: float | None) -> bytes | None:
        """Up to ``size`` bytes: none at the end, and None where nothing came in time."""
        if not self._piped:
            if not select.select([self._descriptor], [], [], wait)[0]:
                return None
            return os.read(self._descriptor, size)
        with self._changed:
            if not self._changed.wait_for(lambda: self._prefetched or self._ended, wait):
                return None
            if not self._prefetched:
                if isinstance(self._ended, OSError):
                    raise self._ended
                return b""
            part = self._prefetched.popleft()
            if len(part) > size:
                self._prefetched.appendleft(part[size:])
                part = part[:size]
            self._held -= len(part)
            self._changed.notify_all()
            return part

    def _prefetch(self) -> None:
        ended: bool | OSError = True
        try:
            while part := os.read(self._descriptor, self.PIECE):
                with self._changed:
                    self._prefetched.append(part)
                    self._held += len(part)
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._held < self.PREFETCH)
        except OSError as wrong:
            ended = wrong
        os.close(self._descriptor)
        with self._changed:
            self._ended = ended
            self._changed.notify_all()

    def close(self) -> None:
        """Nothing: the opener of the descriptor closes it."""


def is_live(file: str, *, follow: bool) -> bool:
    """Whether ``opened`` gives a ``Live`` source for ``file``."""
    if file != "-":
        return follow
    if sys.stdin is None:
        raise KwireError("standard input is closed")
    try:
        return follow or not stat.S_ISREG(os.fstat(sys.stdin.buffer.fileno()).st_mode)
    except OSError:  # not a file of the system
        return False


@contextlib.contextmanager
def opened(file: str, *, follow: bool = False) -> Iterator[tuple[Source, int | None]]:
    """The bytes of ``file`` (``-``: standard input), decompressed if they are compressed, and how many there are if
    that is known. With ``follow``, or from a pipe, a ``Live`` source. Raises ``OSError``."""
    from kwire.capture.compressed import decompressed

    if file == "-":
        if is_live(file, follow=follow):
            live = Live(sys.stdin.fileno(), follow=follow)
            with live.ended_by_signals():
                yield decompressed(live), None
        else:
            yield decompressed(sys.stdin.buffer), None
        return
    with open_file(file, named=True, buffering=0 if follow else -1) as raw:
        if follow:
            live = Live(raw.fileno(), follow=True)
            with live.ended_by_signals():
                yield decompressed(live), None
            return
        stream = decompressed(raw)
        yield stream, os.fstat(raw.fileno()).st_size if stream is raw else None


@contextlib.contextmanager
def progress_bar(name: str, size: int | None, *outputs: Output) -> Iterator[Callable[[int], None] | None]:
    """Shows a bar while the block runs, if there is a terminal to show it on and no rows appear there.

    Gives a function to call with the number of bytes read so far, or ``None``.
    """
    if any(output.to_terminal for output in outputs) or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from kwire.tables.showing import readable

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(readable(public(name))), total=size)
        yield lambda done: bar.update(task, completed=done)
