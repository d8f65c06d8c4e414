r"""Media types as header values carry them: RFC 2046 and the tokens of RFC 2045 and RFC 2616.

The patterns mean the same to Python's ``re`` (with ``fullmatch``), which reads one record, and to Arrow's RE2 (between
``\A`` and ``\z``), which reads columns of them in ``kwire.events.columns``, so that the two cannot disagree. They have
no nested repetition: matching takes time linear in the length, whatever the input.
"""

from __future__ import annotations

from typing import Final

__all__ = ["CONTENT_CODING", "MEDIA_TYPE", "TOKEN", "bare", "is_json"]

TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
"""RFC 2616, section 2.2 (RFC 2045 differs in ``{`` and ``}`` only, which nobody uses)."""

MEDIA_TYPE: Final = TOKEN + "/" + TOKEN + r"[ \t]*(?:;[\t\x20-\x7e\x80-\uffff]*)?"
"""``type/subtype`` and, behind a semicolon, parameters, which are not looked into."""

CONTENT_CODING: Final = TOKEN
"""RFC 2616, section 3.5."""


def bare(content_type: str) -> str:
    """A media type without its parameters, in lower case: RFC 2046 compares types regardless of case."""
    return content_type.partition(";")[0].strip(" \t").lower()


def is_json(content_type: str | None) -> bool:
    """Whether a media type declares JSON: ``*/json``, ``*/*+json``, or none at all (CloudEvents JSON format, 3.1)."""
    if content_type is None:
        return True
    subtype = bare(content_type).partition("/")[2]
    return subtype == "json" or subtype.endswith("+json")
