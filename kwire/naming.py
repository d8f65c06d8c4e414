"""How files are named in errors, notes and on screens: without the credentials that a URI may have.

People give credentials in a URI (``s3://KEY:SECRET@bucket``, ``?secret_key=SECRET``), also to commands that open no
URI. ``public`` names one path, ``hidden`` is for sentences that others have made of paths.

Rules kept here:

- What is shown has neither user information nor options. A secret may have any character in it, ``/``, ``?`` and spaces
  too. It ends at its ``@``. Where there is no ``@``, nothing of the rest is shown.
- ``pathlib`` makes one slash of two, so ``s3:/KEY:SECRET@bucket`` is a URI, also inside a longer path.
- A name that is public already stays as it is.

``no_such`` words the error about a name that is none of those that there are, ``counted`` how many there are of
something.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final
from urllib.parse import unquote

__all__ = ["OPTIONS", "counted", "hidden", "joined", "meant", "nearest", "no_such", "public", "secrets_of"]

OPTIONS: Final = re.compile(r"\?\w+=.*$", re.DOTALL)
"""The options of a file system at the end of a URI (``?region=eu-west-1``).

Their form distinguishes them from the wildcard.
"""

_SCHEME: Final = re.compile(r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]+):/+")
_FILE_USER: Final = re.compile(r"file:/{1,2}[^/:@]*:[^/@]*@", re.IGNORECASE)
"""A file of a host, with a user and a password. A path has no host: its slashes are three, or one."""
_URI: Final = re.compile(_SCHEME.pattern + r"[^\s'\"<>]*")
_USER: Final = r"[^/@:]*@"
# What follows the colon of a host is a port; a bucket has none.
_HOST: Final = re.compile(rf"{_USER}|(?!\[)[^/@:]*:(?!\d*(?:/|$))[^@]*(?:@|$)")
_BUCKET: Final = re.compile(rf"{_USER}|[^/@:]*:(?:[^@]*@|(?!\d*(?:/|$)).*$)", re.DOTALL)
_MORE: Final = re.compile(r"[^/]*@")
_BUCKETS: Final = frozenset(("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "wasb", "wasbs"))
_CONTAINERS: Final = frozenset(("abfs", "abfss", "wasb", "wasbs"))
_HARMLESS: Final = frozenset(
    (
        *("allow_bucket_creation", "allow_bucket_deletion", "anonymous", "endpoint_override", "region", "scheme"),
        *("force_virtual_addressing", "request_timeout", "connect_timeout", "user", "replication", "buffer_size"),
    )
)
"""Options whose values errors may quote."""
_SHORTEST: Final = 4
"""Characters of a piece of a secret that is looked for by itself: less is in any sentence."""


def public(path: str | os.PathLike[str]) -> str:
    """``path`` as anybody may see it: a URI without user information and options."""
    return _parts(os.fspath(path))[0]


def secrets_of(path: str | os.PathLike[str]) -> set[str]:
    """The texts in ``path`` that must be shown to nobody, as they are and unquoted; none without credentials."""
    return _parts(os.fspath(path))[1]


def hidden(text: str, *given: str) -> str:
    """``text`` with the public names of the URIs in it, and without the secrets of ``given``.

    ``given`` are paths that the text may quote in whatever form.
    """
    for path in given:
        name, secrets = _parts(path)
        if not secrets:
            continue
        folded = re.sub("/+", "/", path)
        for form in (path, repr(path)[1:-1], folded, repr(folded)[1:-1], " ".join(path.split())):
            text = text.replace(form, name)
        for one in sorted(secrets, key=len, reverse=True):
            if len(one) >= _SHORTEST:
                text = text.replace(one, "***")
    return _URI.sub(_found, text) if ":/" in text else text


def _found(one: re.Match[str]) -> str:
    uri = one.group().rstrip(".,:;!)]}")
    return _parts(uri)[0] + one.group()[len(uri) :]


def _parts(path: str) -> tuple[str, set[str]]:
    """``path`` as anybody may see it, and the texts that are left out."""
    found = _SCHEME.search(path) if ":/" in path else None
    if found is None or (found[1].lower() == "file" and _FILE_USER.match(path, found.start()) is None):
        return path, set()
    scheme, head, rest = found[1].lower(), path[: found.end()], path[found.end() :]
    secrets: list[str] = []
    if options := OPTIONS.search(rest):
        rest = rest[: options.start()]
        for option in options.group()[1:].split("&"):
            name, _, value = option.partition("=")
            if name not in _HARMLESS:
                secrets.append(value)
    user = (_BUCKET if scheme in _BUCKETS else _HOST).match(rest)
    if user is not None:
        end = user.end()
        while more := _MORE.match(rest, end):
            end = more.end()
        theirs, rest = rest[:end], rest[end:]
        if scheme in _CONTAINERS and theirs.endswith("@"):
            # The container stands before the account, and is no secret.
            container, _, theirs = theirs[:-1].partition(":")
            rest = f"{container}@{rest}"
        secrets += [theirs.rstrip("@"), *re.split(r"[:/@?#\s]", theirs)]
    return head + rest, {form for one in secrets for form in (one, unquote(one)) if one}


_FEW, _MANY = 12, 90
_LISTED = dict.fromkeys(("API", "API or message"), "`kwire schema` lists them")
"""Where names are listed that are too many for an error."""
"""Names that an error lists: so many where one of them is near to what was given, and so many where none is."""


def meant(name: str, known: Iterable[str]) -> str | None:
    """The one of the ``known`` names that is nearest to a name which is none of them. None if nothing is near."""
    names = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), names, 1)
    return names[near[0]] if near else None


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The ``known`` names: first those that are near to ``name``, then the others in their order."""
    names = list(known)
    lower = name.lower()
    near = get_close_matches(lower, {one.lower() for one in names}, 10)
    first = [one for at in near for one in names if one.lower() == at]
    return list(dict.fromkeys([*first, *names]))


def no_such(what: str, name: str, known: Iterable[str], where: str = "") -> str:
    """The sentence for a name that is not among those that there are: ``no table 'x': there are ...``.

    Every error about a name of a closed set is made here. ``where`` follows the name: ``in the table frames``.
    """
    names = list(known)
    near = meant(name, names)
    said = f"no {what} {name!r}{where and ' '}{where}"
    if len(names) > (_MANY if near is None else _FEW):
        if near is not None:
            return f"{said}: did you mean {near!r}?"
        return f"{said}: {_LISTED[what]}" if what in _LISTED else said
    return f"{said}: there are {', '.join(names)}" + ("" if near is None else f"; did you mean {near!r}?")


def counted(number: int, one: str, several: str = "") -> str:
    """``1 member``, ``2 members``. ``several``: the plural, where it has more than an ``s``."""
    return f"{number} {one if number == 1 else several or one + 's'}"


def joined(names: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    known = list(names)
    return " and ".join([", ".join(known[:-1]), known[-1]] if known[1:] else known)
