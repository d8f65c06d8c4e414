"""Valid and hostile input, for the tests of kwire and of anyone else's Kafka parser, and a broker for tests of clients.

``strategies`` makes messages, frames and layouts for Hypothesis; ``mutation`` damages bytes. ``impair`` does to
captures what networks, hosts and disks do to them. ``judge`` says what a parser makes of that. ``corpus`` makes cases
with the verdict of the protocol, and ``feeding`` gives them to a parser of any language. ``broker`` is a Kafka
broker in the process of a test.

``strategies`` and ``mutation`` need the ``fuzz`` extra (``pip install 'kwire[fuzz]'``). ``judge``, and record values
that are frames, need the ``capture`` extra. The others need none.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from kwire.errors import MissingExtraError
from kwire.testing.impair import KINDS, Account, Grade, Impaired, Kind, impair

if TYPE_CHECKING:
    from kwire.testing.mutation import Damage, mutate, mutations
    from kwire.testing.sets import Entry, RecordSet, record_sets, segments
    from kwire.testing.strategies import Frame, frames, layouts, messages
    from kwire.testing.talks.playing import Conversation
    from kwire.testing.talks.strategies import Capture, captures, conversations

__all__ = [
    "KINDS",
    "Account",
    "Capture",
    "Conversation",
    "Damage",
    "Entry",
    "Frame",
    "Grade",
    "Impaired",
    "Kind",
    "RecordSet",
    "captures",
    "conversations",
    "frames",
    "impair",
    "layouts",
    "messages",
    "mutate",
    "mutations",
    "record_sets",
    "segments",
]

_MODULES: Final = {
    "mutation": ("Damage", "mutate", "mutations"),
    "sets": ("Entry", "RecordSet", "record_sets", "segments"),
    "strategies": ("Frame", "frames", "layouts", "messages"),
    "talks.playing": ("Conversation",),
    "talks.strategies": ("Capture", "captures", "conversations"),
}


def __getattr__(name: str) -> Any:
    # Imported when first used (PEP 562): the broker needs no Hypothesis.
    module = next((one for one, names in _MODULES.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import hypothesis as _hypothesis  # noqa: F401
    except ImportError:
        raise MissingExtraError("kwire.testing", "fuzz") from None
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
