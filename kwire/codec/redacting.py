"""What parts of a message are not shown, and what is shown in their place.

The schema says which fields are secret (``model.Secret``). This module applies that to an object, to the result of
``to_dict``, and to the fields that ``kwire explain`` draws. All that shows a value asks here; decoding, encoding,
``to_dict`` and ``from_dict`` do not.

- In place of a secret stands its size in bytes, ``{"redacted": 26}``: no digest, which could be guessed at.
- Null and the empty value hold nothing, and stay.
- The fields beside a configuration entry say whether its value is secret (``kwire.schema.configs``). The topic says
  whether a record set is. The fields of the structs around a field count as well. A record set whose topic is not known
  is not secret.
- If a struct has secrets or holds such, its tagged fields that no schema knows are secret. A later version may have put
  one there.
- Errors quote neither secrets nor what may hold some: ``quoted``.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from kwire.schema import configs, model

if TYPE_CHECKING:
    from kwire.codec.objects import WireStruct

__all__ = [
    "METADATA_TOPIC",
    "METADATA_TOPIC_ID",
    "REDACTED",
    "SIZE",
    "Secrets",
    "by_topic",
    "emptied",
    "hides_tags",
    "is_left_out",
    "is_redacted",
    "is_secret",
    "quoted",
    "redact",
    "redacted",
    "secrets_of",
]

METADATA_TOPIC: Final = "__cluster_metadata"
"""The topic whose records hold credentials and configurations (KIP-500)."""
METADATA_TOPIC_ID: Final = UUID(int=1)
"""Its id, which is the same in every cluster: ``AAAAAAAAAAAAAAAAAAAAAQ`` as Kafka writes it."""

REDACTED: Final = "redacted"
"""The key (str) of what ``redact`` puts in place of a secret, beside its size: ``{"redacted": 12}``."""
UNKNOWN: Final = "unknown_tagged_fields"
SIZE: Final = "bytes"
"""What stands in place of a record set that is left out, ``{"bytes": 13225}``, is named so."""

_TOPIC_FIELDS: Final = frozenset({"topic", "name", "topic_id"})
"""What may say the topic of a record set."""

Message = TypeVar("Message", bound="WireStruct")

Secrets = tuple[tuple[str, model.Secret, "type[WireStruct] | None"], ...]
"""The fields of a class that are secret, or structs with such: name, in which way, class of the struct."""

_LONGEST: Final = 60
"""Characters (or bytes) of a value that an error quotes."""


def secrets_of(fields: Sequence[model.Field], structs: Mapping[str, type[WireStruct]]) -> Secrets:
    """What ``redact`` must look at in a class with these fields."""
    found: list[tuple[str, model.Secret, type[WireStruct] | None]] = []
    for field in fields:
        inner = structs.get(field.name)
        if field.secret or (inner is not None and inner.SECRET_FIELDS):
            found.append((field.name, field.secret, inner))
    return tuple(found)


def by_topic(fields: Sequence[model.Field], secrets: Secrets) -> bool:
    """Whether nothing in a class is secret but record sets, by a topic that the class itself names.

    Where that is another one, ``redact`` need not look inside.
    """
    names = {field.name for field in fields}
    return not names.isdisjoint(_TOPIC_FIELDS) and all(
        kind == "topic" if inner is None else _only_topics(inner) for _, kind, inner in secrets
    )


def _only_topics(kind: type[WireStruct]) -> bool:
    return all(how == "topic" if inner is None else _only_topics(inner) for _, how, inner in kind.SECRET_FIELDS)


def hides_tags(kind: type[WireStruct]) -> bool:
    """Whether tagged fields that are not known are secret in a ``kind``."""
    return bool(kind.SECRET_FIELDS)


def redact(kind: type[WireStruct], values: dict[str, Any], around: tuple[object, ...] = ()) -> None:
    """Replace what is secret in ``values``, which ``to_dict`` of a ``kind`` gave.

    ``around``: the dicts around it.
    """
    inside = (*around, values)
    for name, secret, inner in kind.SECRET_FIELDS:
        value = values.get(name)
        if not value:
            continue
        if inner is not None:
            for one in value if isinstance(value, list) else (value,):
                # Fetch responses have many partitions.
                if not inner.SECRET_BY_TOPIC or _of_metadata(one):
                    redact(inner, one, inside)
        elif isinstance(value, (bytes, str)) and is_secret(secret, value, inside):
            values[name] = redacted(value)
    unknown = values.get(UNKNOWN)
    if unknown and hides_tags(kind):
        values[UNKNOWN] = {tag: redacted(content) if content else content for tag, content in unknown.items()}


def emptied(message: Message, *, within: bool = False) -> Message:
    """``message``, or a copy of it in which the secret fields at its top are empty: for what makes columns of objects.

    ``within``: also those of structs in it. A record set that is secret by its topic stays.
    """
    names = [name for name, secret, inner in message.SECRET_FIELDS if inner is None and secret != "topic"]
    deeper = [name for name, _, inner in message.SECRET_FIELDS if within and inner and not _only_topics(inner)]
    if not names and not deeper:
        return message
    made = copy.copy(message)
    for name in names:
        value = getattr(made, name)
        if value is not None:
            setattr(made, name, type(value)())
    for name in deeper:
        value = getattr(made, name)
        if isinstance(value, list):
            setattr(made, name, [emptied(one, within=True) for one in value])
        elif value is not None:
            setattr(made, name, emptied(value, within=True))
    return made


def is_secret(secret: model.Secret, value: object, around: Sequence[object]) -> bool:
    """Whether the ``value`` of a field that is ``secret`` in one way is not to be shown.

    ``around`` are the structs in which it stands, its own last: objects, or mappings of the fields that are known.
    """
    if secret == "config":
        own = around[-1]
        if _is_secret_entry(own, value, around):
            return True
        # The synonyms of an entry are inside of it, so the verdict on the entry holds for them too. The value itself
        # was looked at above.
        entry = around[-2] if len(around) > 1 else own
        return entry is not own and _has(entry, "value") and _is_secret_entry(entry, None, around)
    if secret == "topic":
        return any(map(_of_metadata, around))
    return bool(secret)


def _is_secret_entry(entry: object, value: object, around: Sequence[object]) -> bool:
    name, sensitive, config_type = _field(entry, "name"), _field(entry, "is_sensitive"), _field(entry, "config_type")
    if not configs.is_secret(name, value, sensitive, config_type):
        return False
    # Less is secret of a resource whose type is known. To look for it at each entry takes long.
    return configs.is_secret(name, value, sensitive, config_type, _nearest(around, "resource_type"))


def _of_metadata(holder: object) -> bool:
    return bool(
        _field(holder, "topic") == METADATA_TOPIC
        or _field(holder, "name") == METADATA_TOPIC
        or _field(holder, "topic_id") == METADATA_TOPIC_ID
    )


def _field(holder: object, name: str) -> Any:
    # A dictionary is recognised at once, any other mapping is not.
    if type(holder) is dict or isinstance(holder, Mapping):
        return holder.get(name)
    return getattr(holder, name, None)


def _has(holder: object, name: str) -> bool:
    return name in holder if isinstance(holder, (dict, Mapping)) else hasattr(holder, name)


def _nearest(around: Sequence[object], name: str) -> Any:
    for one in reversed(around):
        found = _field(one, name)
        if found is not None:
            return found
    return None


def redacted(value: bytes | str | int) -> dict[str, int]:
    """What is shown of a secret, given as it is, or its number of bytes."""
    if isinstance(value, int):
        return {REDACTED: value}
    if isinstance(value, bytes):
        return {REDACTED: len(value)}
    try:
        return {REDACTED: len(value.encode("utf-8", "surrogateescape"))}
    except UnicodeEncodeError:  # a surrogate that no bytes gave
        return {REDACTED: len(value.encode("utf-8", "surrogatepass"))}


def is_redacted(value: object) -> bool:
    """Whether ``value`` is what ``redacted`` gives."""
    return isinstance(value, Mapping) and list(value) == [REDACTED]


def is_left_out(value: object) -> bool:
    """Whether ``value`` stands in place of a record set."""
    return isinstance(value, Mapping) and list(value) == [SIZE]


def quoted(value: object, secret: str = "") -> str:
    """How an error speaks of a value that is not what it should be.

    ``secret`` is that of the field which the value was given for.

    Numbers, and text and bytes of fields that are not secret, are quoted in short. Anything else may hold what must not
    be shown, and is named by its type.
    """
    if value is None or type(value) in (bool, float, UUID):
        return repr(value)
    if type(value) is int and not secret:
        return repr(value) if value.bit_length() <= 128 else f"an integer of {value.bit_length()} bits"
    if type(value) in (str, bytes) and not secret:
        assert isinstance(value, (str, bytes))
        return repr(value) if len(value) <= _LONGEST else f"{value[:_LONGEST]!r}..."
    return f"a value of type {type(value).__name__}"
