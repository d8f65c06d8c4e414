"""The exceptions of kwire.

One root, a short tree. Bad input of any kind raises a ``KwireError`` and nothing else. Where the input is a sequence of
bytes, the error is a ``DecodeError``. It says which field failed and where:

- ``path``: the field, in the JSONPath-like form ``$.responses[0].partitions[2].records``
- ``offset``: bytes from the start of what the caller passed in

What is no sequence of bytes is one as well, and a record of text an ``EncodeError``. Other programming mistakes (a
wrong argument type) stay ``TypeError`` and friends.

Errors name files without the credentials that a URI may have (``kwire.naming``), whoever raises them.

    KwireError
      SchemaError              a schema text is wrong: file:line: what
      DecodeError              bytes are not what the layout says
        UnsupportedVersionError    no layout for this API key or version
        LimitError                 bytes are well-formed so far, but ask for more than a limit allows
        CorruptRecordError         a record set whose checksum does not match
      EncodeError              a message cannot be written in this version
      ProtocolError            a step that the protocol does not allow where a conversation stands
      CaptureError             a file is not a capture, or is one that cannot be read on
      MissingExtraError        an optional dependency is not installed
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

__all__ = [
    "CaptureError",
    "CorruptRecordError",
    "DecodeError",
    "EncodeError",
    "KwireError",
    "LimitError",
    "MissingExtraError",
    "ProtocolError",
    "SchemaError",
    "UnsupportedVersionError",
    "needed",
]


def _hidden(text: str, file: str = "") -> str:
    """``text`` without credentials of URIs, of that of ``file`` in particular."""
    if ":/" not in text and ":/" not in file:
        return text
    from kwire.naming import hidden  # importing kwire is to load little

    return hidden(text, file)


class KwireError(Exception):
    """Root of everything that kwire raises about its input."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(_hidden(one) if isinstance(one, str) else one for one in args))


class SchemaError(KwireError):
    """A schema text is wrong.

    ``file`` is the name that the caller gave to the text, ``line`` counts from 1 (0: the file as a whole).
    """

    def __init__(self, message: str, file: str = "<schema>", line: int = 0) -> None:
        self.message: str = _hidden(message, file)
        self.file: str = _hidden(file, file)
        super().__init__(self.message, self.file, line)
        self.line = line

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.message}"


class DecodeError(KwireError):
    """Bytes are not what the layout says.

    ``message`` says what is wrong, and ``layout`` which layout was read (``FetchResponse v4``). ``path`` is the field
    (``$`` is the message itself). ``offset`` is the byte at which that field starts, counted from the first byte that
    the caller passed in. It is ``None`` where it is not known.
    """

    def __init__(self, message: str, *, layout: str = "", path: str = "$", offset: int | None = None) -> None:
        super().__init__(message, layout, path, offset)
        self.message = message
        self.layout = layout
        self.path = path
        self.offset = offset

    def __str__(self) -> str:
        subject = " ".join(part for part in (self.layout, self.path if self.layout or self.path != "$" else "") if part)
        at = "" if self.offset is None else f" at byte {self.offset}"
        return f"{subject}{at}: {self.message}" if subject or at else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.message, {"layout": self.layout, "path": self.path, "offset": self.offset})


def _rebuilt(cls: Callable[..., KwireError], message: str, where: dict[str, object]) -> KwireError:
    # Keyword-only arguments do not survive Exception's own pickling, and Spark pickles what its workers raise.
    return cls(message, **where)


class UnsupportedVersionError(DecodeError):
    """No layout is known for this API key or version; the message names the supported range."""


class LimitError(DecodeError):
    """The bytes ask for more than a limit of ``kwire.limits.Limits`` allows; the message says how to raise it."""


class CorruptRecordError(DecodeError):
    """The checksum of a record set entry does not match its bytes (raised only where the caller asked for it)."""


class EncodeError(KwireError):
    """A message cannot be written: a value does not fit its field, or the version does not have the field."""

    def __init__(self, message: str, *, layout: str = "", path: str = "$") -> None:
        super().__init__(message, layout, path)
        self.message = message
        self.layout = layout
        self.path = path

    def __str__(self) -> str:
        return f"{self.layout} {self.path}: {self.message}".lstrip()

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.message, {"layout": self.layout, "path": self.path})


class ProtocolError(KwireError):
    """A step that the protocol does not allow where a conversation stands: something sent, or something received.

    The bytes may be well-formed; what is wrong is that they come now. The message says which step, and what is allowed.
    """


class CaptureError(KwireError):
    """A file is not a capture, or one that cannot be read any further.

    ``file`` is its name where known, ``offset`` the byte in the file.
    """

    def __init__(self, message: str, *, file: str | None = None, offset: int | None = None) -> None:
        self.message: str = _hidden(message, file or "")
        self.file: str | None = None if file is None else _hidden(file, file)
        super().__init__(self.message, self.file, offset)
        self.offset = offset

    def __str__(self) -> str:
        at = "" if self.offset is None else f" at byte {self.offset}"
        return f"{self.file}{at}: {self.message}" if self.file else f"{self.message}{at}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.message, {"file": self.file, "offset": self.offset})


class MissingExtraError(KwireError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional part of kwire: pip install 'kwire[{extra}]'")
        self.extra = extra


_PACKAGES: Final = {
    "capture": ("numba", "llvmlite", "numpy", "pyarrow"),
    "values": ("google", "grpc_tools", "jsonschema_rs", "urllib3"),
}


@contextmanager
def needed(feature: str, extra: str) -> Iterator[None]:
    """Let an import in the block that fails for want of a package of ``extra`` raise ``MissingExtraError``."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] in _PACKAGES[extra]:
            raise MissingExtraError(feature, extra) from None
        raise
