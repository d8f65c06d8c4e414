"""Fields whose values are shown to nobody: null, their size, or a name that stands for them.

    Mask(["*.email", "card*"])                              # null
    Mask(["*.email"], how="size")                           # {"redacted": 17}
    Mask(["*.email"], how="pseudonym", key=b"...")          # the same text for the same value, in every capture

    Mask(["tag:PII"])                                       # fields with this tag of Confluent's registry

A pattern is that of a path, ``customer.email``, where ``*`` is any text. A pattern without a dot is that of a name,
wherever it stands. Elements of lists and values of maps have the path of their field. Case makes no difference.

Rules kept here:

- A field that contains others is masked as a whole.
- A pseudonym is HMAC-SHA256 by the user's key, of which 16 bytes are kept. Without the key nobody can try values.
- A type that was asked for stays: a text or bytes hold what stands for them, all else is null.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Sequence
from copy import copy
from fnmatch import translate
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kwire.errors import KwireError

__all__ = ["HOW", "Mask"]

HOW: Final = ("null", "size", "pseudonym")
"""What may stand in place of a value (tuple of str)."""
_KEPT: Final = 16
"""Bytes of a pseudonym."""
_LEAST_KEY: Final = 16
"""Bytes of a key, at least."""
_DEEPEST: Final = 500
_TAG: Final = "tag:"


class Mask:
    """Which fields are masked, and how. ``key``: for pseudonyms, at least 16 bytes.

    Raises ``KwireError`` for a way that there is not, and for pseudonyms without such a key.
    """

    def __init__(self, patterns: str | Sequence[str], how: str = "null", key: bytes | None = None) -> None:
        several = [patterns] if isinstance(patterns, str) else list(patterns)
        if how not in HOW:
            raise KwireError(f"no way {how!r} to mask: there are {', '.join(HOW)}")
        if how == "pseudonym" and (key is None or len(key) < _LEAST_KEY):
            raise KwireError(f"pseudonyms need a key of at least {_LEAST_KEY} bytes, which others do not know")
        if not several:
            raise KwireError("no field is named that is to be masked")
        self.how = how
        self._key = key
        self._tags = [re.compile(translate(one[4:].lower())) for one in several if one.lower().startswith(_TAG)]
        several = [one for one in several if not one.lower().startswith(_TAG)]
        self._paths = [re.compile(translate(one.lower())) for one in several if "." in one]
        self._names = [re.compile(translate(one.lower())) for one in several if "." not in one]
        self._tagged: list[re.Pattern[str]] = []

    def __repr__(self) -> str:
        return f"Mask(how={self.how!r})"

    @property
    def has_tags(self) -> bool:
        """Whether it names tags, so that it needs those of a schema (``of``)."""
        return bool(self._tags)

    def hides(self, path: tuple[str, ...]) -> bool:
        """Whether the field at this path is masked."""
        if not path:
            return False
        dotted = ".".join(path).lower()
        return (
            any(one.match(dotted) for one in self._paths)
            or any(one.match(path[-1].lower()) for one in self._names)
            or any(one.fullmatch(dotted) for one in self._tagged)
        )

    def of(self, tagged: Iterable[tuple[str, re.Pattern[str]]]) -> Mask:
        """The same for a schema whose fields have tags: pairs of a tag, and what the paths of fields match."""
        if not self._tags:
            return self
        made = copy(self)
        made._tagged = [one for tag, one in tagged if any(each.match(tag.lower()) for each in self._tags)]
        return made

    def values(self, array: pa.Array) -> pa.Array:
        """An array with its fields masked, of the same type."""
        return self._masked(array, ())

    def _masked(self, array: pa.Array, path: tuple[str, ...]) -> pa.Array:
        type_ = array.type
        if self.hides(path):
            return self._instead(array)
        if pa.types.is_struct(type_) and type_.num_fields:
            children = zip(type_, array.flatten(), strict=True)
            made = [self._masked(child, (*path, field.name)) for field, child in children]
            return pa.StructArray.from_arrays(made, fields=list(type_), mask=array.is_null())
        if pa.types.is_list(type_):
            child = self._masked(array.flatten(), path)
            return pa.ListArray.from_arrays(_offsets(array), child, type=type_, mask=array.is_null())
        if pa.types.is_map(type_):
            entries = array.cast(pa.list_(pa.struct([("key", type_.key_type), ("value", type_.item_type)])))
            keys, items = entries.flatten().flatten()
            child = self._masked(items, path)
            return pa.MapArray.from_arrays(_offsets(entries), keys, child, type=type_, mask=array.is_null())
        return self._inside(array, path) if _is_text(type_) else array

    def _inside(self, array: pa.Array, path: tuple[str, ...]) -> pa.Array:
        """Texts, of which JSON is masked inside: a type that has itself inside is JSON text there."""
        likely = pc.fill_null(pc.match_substring_regex(array, r"(?s)\A[\[{].*[\]}]\z"), False)
        if not likely.true_count:
            return array
        made = [self._text(one, path) for one in array.filter(likely).to_pylist()]
        return pc.replace_with_mask(array, likely, pa.array(made, array.type))

    def _instead(self, array: pa.Array) -> pa.Array:
        type_ = array.type
        if self.how == "null" or not (_is_text(type_) or pa.types.is_binary(type_)):
            return pa.nulls(len(array), type_)
        if self.how == "size":
            sizes = pc.binary_length(array).cast(pa.string())
            return pc.binary_join_element_wise('{"redacted": ', sizes, "}", "").cast(type_)
        numbered = array.dictionary_encode()
        names = [None if one is None else self._pseudonym(one) for one in numbered.dictionary.to_pylist()]
        return pa.array(names, pa.string()).take(numbered.indices).cast(type_)

    def _pseudonym(self, value: str | bytes) -> str:
        data = value.encode() if isinstance(value, str) else value
        return hmac.new(self._key or b"", data, hashlib.sha256).digest()[:_KEPT].hex()

    def texts(self, array: pa.Array) -> pa.Array:
        """JSON texts with their members masked."""
        made = [None if one is None else self._text(one, ()) for one in array.to_pylist()]
        return pa.array(made, pa.string())

    def _text(self, text: str, path: tuple[str, ...]) -> str:
        try:
            found = json.loads(text)
            made = self._member(found, path)
        except RecursionError:
            return "null"
        except ValueError:
            return text  # of a field that is no JSON, and only looks like it
        return text if path and made == found else json.dumps(made, ensure_ascii=False, separators=(",", ":"))

    def _member(self, value: Any, path: tuple[str, ...]) -> Any:
        if self.hides(path):
            return self._single(value)
        if isinstance(value, dict):
            return {name: self._member(one, (*path, name)) for name, one in value.items()}
        if isinstance(value, list):
            return [self._member(one, path) for one in value]
        return value

    def _single(self, value: Any) -> Any:
        if value is None or self.how == "null":
            return None
        if isinstance(value, list):
            return [self._single(one) for one in value]
        if not isinstance(value, str):
            return None
        return self._pseudonym(value) if self.how == "pseudonym" else json.dumps({"redacted": len(value.encode())})


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _offsets(array: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
