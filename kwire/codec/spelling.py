"""Messages that keep the bytes that they were read from, where these are not the canonical ones (``preserve=True``).

Such a message is of a subclass, which says that it is the message's own class. So ordinary messages have no field for
the bytes, and nothing that reads or writes them looks for any. The rules:

- The bytes are written while the message, written canonically, is what it was when it was read, in the same version.
  A message that was changed is written canonically, all of it.
- Bytes that followed a body still follow it.
- A copy, pickled ones too, keeps the bytes; ``to_dict``, ``to_json`` and ``repr`` know nothing of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from kwire.codec.objects import WireMessage

__all__ = ["Spelling", "keep", "plain", "spelling_of"]


@dataclass(frozen=True, slots=True, repr=False)
class Spelling:
    """The bytes of a message that was ``read``.

    With its ``version``, its ``canonical`` bytes, and the bytes ``trailing`` it.
    """

    version: int
    canonical: bytes
    read: bytes
    trailing: bytes

    def written(self, version: int, canonical: bytes) -> bytes:
        """The bytes of the message, whose canonical ones are these now."""
        unchanged = version == self.version and canonical == self.canonical
        return (self.read if unchanged else canonical) + self.trailing


def keep(message: WireMessage, spelling: Spelling) -> Any:
    """``message``, which was just decoded, as one that keeps its bytes."""
    kind = message.__class__
    kept = _copied(message, _keeping(kind))
    kept._spelling = spelling
    return kept


def plain(message: WireMessage) -> Any:
    """``message`` without the bytes that it keeps; what is inside is shared."""
    return _copied(message, message.__class__)


def spelling_of(message: object) -> Spelling | None:
    """What ``message`` keeps, if anything."""
    return getattr(message, "_spelling", None)


def _copied(message: WireMessage, kind: type[WireMessage]) -> Any:
    made = object.__new__(kind)
    for field in message.FIELDS:
        setattr(made, field.name, getattr(message, field.name))
    made.unknown_tagged_fields = message.unknown_tagged_fields
    return made


_KINDS: Final[dict[type[WireMessage], type[WireMessage]]] = {}


def _keeping(kind: type[WireMessage]) -> type[WireMessage]:
    """The class of those messages of a ``kind`` that keep their bytes."""
    found = _KINDS.get(kind)
    if found is None:
        members = {
            "__slots__": ("_spelling",),
            "__qualname__": kind.__qualname__,
            "__module__": kind.__module__,
            "__doc__": kind.__dict__["__doc__"],
            "__class__": property(lambda self: kind),
            "__hash__": None,
            "__reduce__": lambda self: (_restored, (kind, spelling_of(self)), self.__getstate__()),
        }
        found = _KINDS[kind] = type(kind.__name__, (kind,), members)
    return found


def _restored(kind: type[WireMessage], spelling: Spelling | None) -> Any:
    """A copy that is about to be filled."""
    made: Any = object.__new__(_keeping(kind))
    made._spelling = spelling
    return made
