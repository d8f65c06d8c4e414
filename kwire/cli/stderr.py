"""What commands say on standard error, and the exit code for bad input.

Rules kept here:

- Bad input is one line, ``kwire: what``. A traceback is a bug.
- Credentials of URIs among the arguments are in no line (``kwire.naming.hidden``).
- What a terminal would obey, of a file's name or contents, is escaped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kwire.errors import KwireError
from kwire.naming import hidden
from kwire.tables.showing import readable

__all__ = ["BAD_INPUT", "print_error", "public_text", "say", "set_arguments", "worded"]

BAD_INPUT: Final = 2
"""Exit status (int) of a command whose input or arguments are wrong, as argparse uses it."""

_given: list[str] = []


def set_arguments(arguments: Sequence[str]) -> None:
    """Keeps the URIs among the arguments: people give some with credentials to a command that takes files."""
    _given[:] = [one for one in arguments if ":/" in one]


def public_text(text: str) -> str:
    """``text`` without credentials of the arguments."""
    return hidden(text, *_given)


def say(line: str) -> None:
    """Writes a line to standard error. What a terminal would obey in it, of a file's name or contents, is escaped."""
    line = " ".join(public_text(line).split())
    print(f"kwire: {readable(line, None)}", file=sys.stderr)


def worded(error: KwireError | OSError, file: str | None = None) -> str:
    """What went wrong. ``file``: what was read, for errors that do not name it."""
    said = str(error)
    if not isinstance(error, KwireError):
        said = error.strerror or said
        name = file if error.filename is None else os.fspath(error.filename)
        if name is not None:
            said = f"{name}: {_way_out(error, os.fsdecode(name)) or said}"
    return public_text(said)


def _way_out(error: OSError, name: str) -> str | None:
    """In place of the system's words: what to do, where a newcomer cannot see it."""
    if isinstance(error, IsADirectoryError):
        return "a folder, not a file: commands that take several captures read those in a folder"
    if isinstance(error, FileNotFoundError) and "://" not in name and not Path(name).parent.exists():
        return f"{error.strerror}: its folder is missing too"
    return None


def print_error(error: KwireError | OSError, file: str | None = None) -> None:
    """Says ``worded`` in one line on standard error."""
    say(worded(error, file))
