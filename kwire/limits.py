"""How much reading may ask for: one object for codecs, records, tables, schemas and definitions.

Rules kept here:

- Every length and count in the input is checked against the bytes that are there before anything is allocated. What is
  bounded here is what may be larger than its input all the same.
- Above a limit there is a ``LimitError`` that names the limit. In tables it is a row with a status, and all others
  stay.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

from kwire.naming import no_such

__all__ = ["BEYOND", "DEFAULT_LIMITS", "GROWTH", "Limits", "check_limits", "size_of"]

_UNITS: Final = {"": 1, "k": 1000, "m": 10**6, "g": 10**9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}

BEYOND: Final = "beyond the limit"
"""What every sentence about a limit has.

A problem that is text is recognised by it as one of these.
"""

GROWTH: Final = 12
"""How many times its own size a large body may take as objects."""


def size_of(text: str) -> int:
    """The number that a text says: ``64MiB``, ``100000``.

    Units are k, M, G (thousands), Ki, Mi and Gi, with or without a B. Raises ``ValueError``.
    """
    digits = text.rstrip("BbiKkMmGg ")
    unit = text[len(digits) :].strip().lower().removesuffix("b")
    if unit not in _UNITS or not (digits.isascii() and digits.isdecimal()) or len(digits) > 18:
        raise ValueError(f"a number, such as 64MiB or 100000, not {text!r}")
    return int(digits) * _UNITS[unit]


@dataclass(frozen=True, slots=True)
class Limits:
    """What decoding may use. All sizes are in bytes.

    - ``objects``: the most that one body may take as Python objects, by an estimate (``kwire.codec.costs``). A body may
      take a twelfth of it whatever its size, and beyond that 12 times its own bytes. Ordinary ones take 1 to 10 times.
      For one entry of a record set, at most this many bytes of ``Record`` are made, whatever its size (200 bytes each).
      The default, 96 MiB, is a Metadata response of 10 MB, of a cluster of 240,000 partitions.
    - ``text``: the most that one body may become as JSON text in a table, 96 MiB: record sets of 72 MiB. In the table
      ``records``, a capture may have this much text of topic names that are longer than Kafka's may be.
    - ``problems``: how many problems are reported, 40,000. As objects they are those of one record set. As columns and
      tables they are all those of one window of a capture or segment. The last one says how many more there were.
    - ``decompressed``: the most that one compressed batch or wrapper message may decompress to. The default, 32 MiB, is
      what a producer with default settings may hold in memory for all its batches together (``buffer.memory``).
    - ``total``: the most that all of them in one call may decompress to together, 1 GiB. For a capture or segment it
      holds for the whole run. The run may decompress 32 times the bytes of its record sets on top, since captures can
      be long. In a column of payloads it holds for each payload.
    - ``nesting``: how many wrapper messages may stand inside each other in message sets (magic 0 and 1). Kafka itself
      has not written more than one since 0.11. A batch of magic 2 cannot be nested.
    """

    decompressed: int = 32 << 20
    total: int = 1 << 30
    nesting: int = 4
    objects: int = 96 << 20
    text: int = 96 << 20
    problems: int = 40_000

    def __post_init__(self) -> None:
        if min(getattr(self, one.name) for one in fields(self)) < 0:
            raise ValueError("limits cannot be negative")
        if self.total > 1 << 30:
            # Arrow's binary columns count bytes with an int32; input and decompressed data together must stay below.
            raise ValueError("the limit for one call cannot be above 1 GiB")
        if self.text > 1 << 30:
            raise ValueError("the limit for the text of one body cannot be above 1 GiB")

    def for_objects(self, size: int) -> int:
        """The most that a body of ``size`` bytes may take as objects."""
        return min(self.objects, self.objects // GROWTH + GROWTH * size)

    def said(self, name: str) -> str:
        """A limit in a sentence, with how to raise it: ``beyond the limit objects of 1000; Limits(objects=...) raises
        it``."""
        return f"{BEYOND} {name} of {getattr(self, name)}; Limits({name}=...) raises it"

    @classmethod
    def parse(cls, text: str) -> Limits:
        """The limits that a text names, ``decompressed=64MiB, nesting=2``, and the defaults of the others.

        Numbers may have a unit: k, M, G (thousands), Ki, Mi, Gi, with or without a B. Raises ``ValueError``.
        """
        known = [one.name for one in fields(cls)]
        found: dict[str, int] = {}
        for part in filter(None, (one.strip() for one in text.split(","))):
            name, _, value = (one.strip() for one in part.partition("="))
            if name not in known:
                raise ValueError(no_such("limit", name, known))
            if name in found:
                raise ValueError(f"the limit {name} is given twice")
            try:
                found[name] = size_of(value)
            except ValueError as wrong:
                raise ValueError(f"{name} is {wrong}") from None
        return replace(DEFAULT_LIMITS, **found)


DEFAULT_LIMITS: Final = Limits()
"""What readers use by default."""


def check_limits(value: object) -> None:
    """Raise ``ValueError`` where ``value`` is no ``Limits``."""
    if not isinstance(value, Limits):
        raise ValueError(f"not {value!r}: limits is kwire.limits.Limits")
