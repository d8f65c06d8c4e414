r"""Media types as header values carry them: ``type/subtype; name=value; name="a value"``.

Source: RFC 9110 (8.3.1, 5.6.6).

The patterns mean the same in two engines, so that the two cannot disagree:

- Python's ``re`` (with ``fullmatch``) reads one record.
- Arrow's RE2 (between ``\A`` and ``\z``) reads columns of them in ``kwire.events.columns``.

A repetition inside of another begins with a character that ends the one before it. So matching takes time linear in the
length, whatever the input.

``codec`` says what reads text in the charset that a media type names. Known are charsets of the standard library that
are text: none that unpacks, escapes or takes more than linear time.
"""

from __future__ import annotations

import re
from encodings import normalize_encoding
from encodings.aliases import aliases
from typing import Final

__all__ = ["CONTENT_CODING", "MEDIA_TYPE", "TOKEN", "bare", "charset", "codec", "is_json", "parameters"]

TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
"""RFC 9110, section 5.6.2 (RFC 2045 differs in ``{`` and ``}`` only, which nobody uses)."""

QUOTED: Final = r'"(?:[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\uffff]|\\[\t\x20-\x7e\x80-\uffff])*"'
"""A quoted string, section 5.6.4."""

MEDIA_TYPE: Final = f"{TOKEN}/{TOKEN}[ \\t]*(?:;[ \\t]*(?:{TOKEN}=(?:{TOKEN}|{QUOTED})[ \\t]*)?)*"
"""``type/subtype`` and, each after a semicolon, parameters."""

CONTENT_CODING: Final = TOKEN
"""RFC 9110, section 8.4.1."""

_MEDIA_TYPE: Final = re.compile(MEDIA_TYPE)
_PARAMETER: Final = re.compile(f"({TOKEN})=(?:({TOKEN})|({QUOTED}))")

_NO_TEXT: Final = frozenset(
    ("base64_codec", "bz2_codec", "hex_codec", "mbcs", "quopri_codec", "rot_13", "utf_7", "uu_codec", "zlib_codec")
)
_MODULES: Final = (frozenset(aliases.values()) - _NO_TEXT) | {"cp874", "koi8_u", "koi8_t"}


def bare(content_type: str) -> str:
    """A media type without its parameters, in lower case: RFC 9110 compares types regardless of case."""
    return content_type.partition(";")[0].strip(" \t").lower()


def is_json(content_type: str | None) -> bool:
    """Whether a media type declares JSON: ``*/json``, ``*/*+json``, or none at all (CloudEvents JSON format, 3.1)."""
    if content_type is None:
        return True
    subtype = bare(content_type).partition("/")[2]
    return subtype == "json" or subtype.endswith("+json")


def parameters(content_type: str) -> dict[str, str] | None:
    """The parameters of a media type, names in lower case, values without quotes; the first of equal names counts.

    None for what is no media type.
    """
    if _MEDIA_TYPE.fullmatch(content_type) is None:
        return None
    found: dict[str, str] = {}
    for name, token, quoted in _PARAMETER.findall(content_type.partition(";")[2]):
        value = token or re.sub(r"\\(.)", r"\1", quoted[1:-1])
        found.setdefault(name.lower(), value)
    return found


def charset(content_type: str | None) -> str | None:
    """The charset that a media type names, as it stands there; None where it names none, or is no media type."""
    return None if content_type is None else (parameters(content_type) or {}).get("charset")


def codec(name: str) -> str | None:
    """Python's codec for a charset, ``utf_8`` for UTF-8; None for one that is not known, or no charset of text.

    Names are compared with a table: looking one up as a codec would import a module of that name.
    """
    if not name.isascii() or len(name) > 40:
        return None
    module = normalize_encoding(name.lower())
    module = aliases.get(module, module)
    return module if module in _MODULES else None
