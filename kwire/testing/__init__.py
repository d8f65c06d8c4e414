"""Valid and hostile input, for the tests of kwire and of anyone else's Kafka parser.

``strategies`` makes messages, frames and layouts for Hypothesis; ``mutation`` damages bytes. ``impair`` does to
captures what networks, hosts and disks do to them. ``judge`` says what a parser makes of that. Needs the ``fuzz`` extra
(``pip install 'kwire[fuzz]'``). ``judge``, and record values that are frames, need the ``capture`` extra too.
"""

from __future__ import annotations

from kwire.errors import MissingExtraError

try:
    import hypothesis as _hypothesis  # noqa: F401
except ImportError:
    raise MissingExtraError("kwire.testing", "fuzz") from None

from kwire.testing.impair import KINDS, Account, Grade, Impaired, Kind, impair
from kwire.testing.mutation import mutate, mutations
from kwire.testing.strategies import Frame, frames, layouts, messages

__all__ = [
    "KINDS",
    "Account",
    "Frame",
    "Grade",
    "Impaired",
    "Kind",
    "frames",
    "impair",
    "layouts",
    "messages",
    "mutate",
    "mutations",
]
