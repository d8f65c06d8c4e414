"""Adapters of other parsers for ``kwire fuzz run --lines``: each answers lines (see ``kwire.testing.feeding``)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

__all__ = ["SkipError", "serve"]


class SkipError(Exception):
    """The parser does not know this API or version."""


Read = Callable[[str, int, int, int | None, bytes], bytes | None]
"""Reads a frame (role, API key, version, where the body begins, bytes). Returns the body as the parser writes it."""


def serve(read: Read) -> None:
    """Answers lines until there are no more. Any exception is taken for a refusal."""
    for line in sys.stdin:
        role, api_key, version, at, *data = line.split()
        try:
            frame = bytes.fromhex(data[0] if data else "")
            written = read(role, int(api_key), int(version), None if at == "-" else int(at), frame)
            said = {"verdict": "accept"} | ({} if written is None else {"canonical": written.hex()})
        except SkipError:
            said = {"verdict": "skip"}
        except (MemoryError, RecursionError) as error:
            said = {"crash": f"{type(error).__name__}: {error}"}
        except Exception as error:
            said = {"verdict": "refuse", "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), flush=True)
