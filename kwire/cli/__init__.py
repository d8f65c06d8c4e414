"""The command ``kwire``.

Each command is a module with ``register(subparsers)``. It adds the command's parser and sets ``run``: a function that
takes the parsed arguments and returns the exit code. Rules kept here:

- ``kwire --help`` imports nothing heavy: a command imports what it needs when it runs.
- Bad input is one line on standard error (``stderr``) and exit code 2, as is a mistake in the arguments.
- Text that kwire did not write never reaches the terminal as it is: text of captures, schemas and definitions, and the
  names of files (``kwire.tables.showing.readable``).
- These end the program silently, with the exit code that a shell expects. Nothing unfinished stays.
    - the reader of the output goes away (``kwire ... | head``): 141
    - Ctrl-C: 130
    - SIGTERM: 143
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NoReturn

from kwire import __version__
from kwire.cli import (
    audit,
    broker,
    decode,
    explain,
    export,
    findings,
    folders,
    fuzz,
    lineage,
    proxy,
    report,
    schema,
    spark,
    top,
    why,
)
from kwire.cli import compile as compile_
from kwire.cli.stderr import BAD_INPUT, print_error, public_text, set_arguments
from kwire.errors import KwireError
from kwire.naming import joined, meant, no_such
from kwire.options import OPTIONS, FilterOptions
from kwire.tables.showing import readable

__all__ = ["main", "make_parser", "use_memory_of_the_system"]

COMMANDS = (
    decode,
    report,
    audit,
    findings,
    why,
    lineage,
    folders,
    top,
    export,
    explain,
    schema,
    broker,
    proxy,
    fuzz,
    spark,
    compile_,
)

EPILOG = """\
begin with:
  tcpdump -i any -s 0 -w broker.pcap port 9092      take a capture, on a broker
  kwire decode broker.pcap                          what is in it, row by row
  kwire report broker.pcap -o report.html           all on a page with charts
  kwire COMMAND --help                              its arguments, with examples
"""


_FILTERS: Final = frozenset(OPTIONS[name].flag for name in FilterOptions.__annotations__)
"""Flags that choose rows."""


class _Help(argparse.HelpFormatter):
    """A description is wrapped, and examples stand as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n  " not in text:
            return super()._fill_text(text, width, indent)
        return "".join(indent + line for line in text.splitlines(keepends=True))


class _Parser(argparse.ArgumentParser):
    """Its complaints quote arguments, which can be names of files that somebody else has made."""

    def __init__(self, *args: Any, **options: Any) -> None:
        # An abbreviation could be another option: --topic would be --topic-ids where there is no --topic.
        super().__init__(*args, **{"allow_abbrev": False, **options, "formatter_class": _Help})
        self._given: list[str] = []

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """As argparse does. It keeps what was given, for what it complains about."""
        self._given = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(self._given, namespace)

    def unknown(self, words: Sequence[str], commands: Mapping[str, _Parser] = MappingProxyType({})) -> NoReturn:
        """Ends the program with the line for arguments that there are not. ``commands``: those that may have them."""
        flag = words[0].partition("=")[0]
        theirs = [name for name, one in commands.items() if flag in one.options()]
        near = meant(flag, self.options()) if flag.startswith("-") else None
        hint = f"; did you mean {near}?" if near else ""
        if theirs:
            hint = f"; kwire {joined(theirs)} {'has' if len(theirs) == 1 else 'have'} it"
            if flag in _FILTERS and "--format" in self.options():
                hint += ", and here jq can filter --format jsonl"
        self.error(f"unrecognized arguments: {' '.join(words)}{hint}")

    def error(self, message: str) -> NoReturn:
        """Ends the program with one line: what is wrong, and where the arguments are listed."""
        strange = [one for one in self._given if one.startswith("--") and one.partition("=")[0] not in self.options()]
        if strange and "required" in message:
            # argparse looks at these last. Whoever mistypes --help misses no file.
            self._given = []
            self.unknown(strange[:1])
        said = readable(public_text(message), None)
        self.exit(BAD_INPUT, f"{self.prog}: error: {said} (see {self.prog} --help)\n")

    def options(self) -> list[str]:
        """The flags of this command."""
        return list(self._option_string_actions)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        # argparse of Python 3.11 drops the value of --group=--, and gives an empty list.
        if action.option_strings and "--" in arg_strings:
            given = [self._get_value(action, one) for one in arg_strings]
            for one in given:
                self._check_value(action, one)
            return given if action.nargs in ("+", "*") else given[0]
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        # As argparse does, with the nearest name.
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, no_such("choice", str(value), map(str, action.choices)))


def use_memory_of_the_system() -> None:
    """Lets Arrow use the allocator of the process, unless somebody has chosen. Its own pool keeps some 30 MB."""
    if "ARROW_DEFAULT_MEMORY_POOL" in os.environ:
        return
    # Most commands load it when they need it, and some never.
    loaded = sys.modules.get("pyarrow")
    if loaded is None:
        os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    else:
        loaded.set_memory_pool(loaded.system_memory_pool())


class _Terminated(BaseException):
    """SIGTERM: unfinished files are removed on its way out."""


@contextlib.contextmanager
def _unwound_by_sigterm() -> Iterator[None]:
    """Lets SIGTERM leave the block as Ctrl-C does, unless somebody has other plans for it."""
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(number: int, frame: object) -> None:
        raise _Terminated

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def make_parser() -> tuple[_Parser, dict[str, _Parser]]:
    """The parser of ``kwire``, and those of its commands by their names."""
    parser = _Parser(
        prog="kwire",
        description="Reads the Kafka wire protocol: captures, messages, records and schemas.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"kwire {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for command in COMMANDS:
        command.register(subparsers)
    return parser, subparsers.choices


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command that ``argv`` (default: ``sys.argv[1:]``) names, and returns its exit code."""
    set_arguments(sys.argv[1:] if argv is None else argv)
    parser, commands = make_parser()
    args, rest = parser.parse_known_args(argv)
    if rest:
        commands[args.command].unknown(rest, commands)
    use_memory_of_the_system()
    if sys.stdout is None:
        # The program's parent has closed it.
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character gets its escape.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with _unwound_by_sigterm():
            code: int = args.run(args)
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        # What is still in the buffer must not fail again when the interpreter flushes it at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except _Terminated:
        return 128 + signal.SIGTERM
    except (KwireError, OSError) as error:
        print_error(error)
        return BAD_INPUT
