"""Whether values in JSON hold to their JSON Schema, by jsonschema-rs.

Rules kept here:

- Nothing is fetched: a ``$ref`` leads into the schema, or to one that its source has as a reference.
- A schema is input like any other. Branches that refer to the same branches, twice each, multiply. So the steps that a
  value may take are counted from the schema before the value is looked at, and have a budget.
- Patterns may look back (Rust's ``fancy-regex``) within a limit. Their size has one, too.
- What is said of a value never has its content, which may be secret: it has the path, and what the schema asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urljoin

from kwire import stored, strict
from kwire.errors import SchemaError, needed
from kwire.limits import BEYOND
from kwire.values.json import DEEPEST_VALUE

__all__ = ["Budget", "Validity", "library", "of"]

_BACKTRACKS: Final = 100_000
_PATTERN_SIZE: Final = 1 << 20
_LONGEST_ERROR: Final = 300
_PER_BYTE: Final = 1000
_ALWAYS: Final = 20_000_000
"""Steps that the values of a column may take, for each of their bytes, and without any. A step is a schema that is held
against a part of a value; 20 million take a second, about."""
_EXPLAINED: Final = 100_000
"""Steps beyond which nobody looks for the place at which a value breaks its schema: that takes much longer."""
_MOST_COUNTED: Final = 5_000_000
_DIGITS: Final = 4000
_NO_BASE: Final = "json-schema:///"
"""What jsonschema-rs takes a reference to be relative to, where the schema has no ``$id``."""
_NESTED: Final = 200
"""Arrays and objects inside each other: jsonschema-rs ends at 255."""


def library() -> Any:
    """The module ``jsonschema_rs``. Raises ``MissingExtraError`` without the extra ``values``."""
    with needed("validation by JSON Schema", "values"):
        import jsonschema_rs
    return jsonschema_rs


class Budget:
    """The steps that values may still take. ``size``: their bytes."""

    def __init__(self, size: int) -> None:
        self.left: int = _ALWAYS + _PER_BYTE * size


def of(text: str, references: Mapping[str, str]) -> Validity:
    """What checks values by a JSON Schema. ``references``: the texts of what it may refer to, by their names.

    Raises ``SchemaError`` for what is none, ``MissingExtraError`` without the extra ``values``.
    """
    return _of(text, tuple(references.items()))


@lru_cache(maxsize=64)
def _of(text: str, references: tuple[tuple[str, str], ...]) -> Validity:
    try:
        return Validity(stored.parsed(text), {name: stored.parsed(one) for name, one in references})
    except stored.UNFIT as error:
        raise SchemaError(f"this is no JSON Schema: {_first_line(error)}") from None


class Validity:
    """A JSON Schema that is ready to check values."""

    def __init__(self, root: Any, others: Mapping[str, Any]) -> None:
        found = library()
        base = root.get("$id", root.get("id")) if isinstance(root, dict) else None
        known = {
            made: one for name, one in others.items() for made in (_NO_BASE + name, urljoin(str(base or ""), name))
        }
        missing: list[str] = []

        def retrieve(uri: str) -> Any:
            if uri not in known:
                missing.append(uri.removeprefix(_NO_BASE))
                raise ValueError("no source has it")
            return known[uri]

        # What does not say its draft is of draft 7, as for Confluent's registry.
        make = found.validator_for if isinstance(root, dict) and "$schema" in root else found.Draft7Validator
        patterns = found.FancyRegexOptions(
            backtrack_limit=_BACKTRACKS, size_limit=_PATTERN_SIZE, dfa_size_limit=_PATTERN_SIZE
        )
        self._steps = _Steps(root, others)
        try:
            self._validator = make(root, retriever=retrieve, mask="the value", pattern_options=patterns)
        except ValueError:
            if missing:
                raise SchemaError(f"refers to {missing[0][:_LONGEST_ERROR]}, which no source has") from None
            raise

    def wrong(self, value: bytes, budget: Budget) -> str | None:
        """At which path a JSON text breaks the schema, and what it asks for there. None where it holds.

        A text that is above a limit has ``kwire.limits.BEYOND`` in it.
        """
        places = 1 + value.count(b",") + value.count(b"[") + value.count(b"{")
        depth = strict.nesting(value.decode("utf-8", "replace"), 8) or value.count(b"[") + value.count(b"{")
        if depth > _NESTED:
            return f"its schema, {BEYOND} of {_NESTED} arrays and objects inside each other"
        steps = places * self._steps.at(depth)
        budget.left -= steps
        if budget.left < 0:
            return f"its schema, {BEYOND} of {_ALWAYS} steps: its branches multiply"
        try:
            found = strict.read(value, DEEPEST_VALUE, _integer, whole=True)
            if self._validator.is_valid(found):
                return None
            if steps > _EXPLAINED:
                return "$: it breaks the schema"
            self._validator.validate(found)
        except ValueError as error:
            if "Backtrack" in type(getattr(error, "kind", None)).__name__:
                return f"{_path(error.instance_path)}: {BEYOND} of {_BACKTRACKS} steps of a pattern"  # type: ignore[attr-defined]
            return f"{_path(getattr(error, 'instance_path', ()))}: {_first_line(error)}"
        return None


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"a number {BEYOND} of {_DIGITS} digits")
    return int(digits)


def _path(steps: Any) -> str:
    made = "$"
    for one in steps:
        made += f"[{one}]" if isinstance(one, int) else f".{one}"
    return made if len(made) <= _LONGEST_ERROR else f"{made[:_LONGEST_ERROR]}..."


def _first_line(error: BaseException) -> str:
    text = str(getattr(error, "message", "") or error)
    line = text.splitlines()[0] if text else type(error).__name__
    return line if len(line) <= _LONGEST_ERROR else f"{line[:_LONGEST_ERROR]}..."


# --- how many steps a value may take ----------------------------------------------------------------------------------

_HERE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
"""Words whose schemas are held against the same value."""
_ONE: Final = ("properties",)
"""Words of whose schemas one at most is held against each part of a value."""
_PARTS: Final = (
    "patternProperties", "additionalProperties", "propertyNames", "items", "additionalItems", "prefixItems", "contains",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
"""Words whose schemas are held against parts of a value."""
_BY_NAMES: Final = frozenset(("properties", "patternProperties", "dependentSchemas", "dependencies"))
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


class _Steps:
    """How many schemas are held against one part of a value, at most.

    References are followed without their rules: one leads to all that may be meant by it. So it is never too few.
    """

    def __init__(self, root: Any, others: Mapping[str, Any]) -> None:
        self._documents = {"": root, **others}
        self._named: dict[str, list[Any]] = {}
        self._nodes: list[dict[str, Any]] = []
        self._counted = 0
        for name, document in self._documents.items():
            self._collect(name, document)
        self._numbers = {id(one): number for number, one in enumerate(self._nodes)}
        self._root = self._numbers.get(id(root), -1)
        own = (one for one in self._nodes if isinstance(one.get("$id", one.get("id")), str))
        self._resources = [*self._documents.values(), *own]
        self._links = [self._linked(one) for one in self._nodes]
        self._deep: list[list[int]] = []

    def at(self, depth: int) -> int:
        """The steps for each part of a value with so many arrays and objects inside each other."""
        if self._root < 0:
            return 1
        while len(self._deep) <= depth:
            self._count(len(self._nodes))
            self._deep.append(self._counts(self._deep[-1] if self._deep else None))
        return self._deep[depth][self._root]

    def _count(self, more: int) -> None:
        self._counted += more
        if self._counted > _MOST_COUNTED:
            raise SchemaError(f"the JSON Schema is too large, {BEYOND} of {_MOST_COUNTED} steps to count its branches")

    def _collect(self, name: str, document: Any) -> None:
        """Notes all objects of a document, and those that have names."""
        self._named.setdefault(_last(name), []).append(document)
        open_ = [document]
        while open_:
            one = open_.pop()
            if isinstance(one, dict):
                self._nodes.append(one)
                for word in ("$id", "id", "$anchor", "$dynamicAnchor"):
                    if isinstance(one.get(word), str):
                        self._named.setdefault(_last(one[word]), []).append(one)
                open_.extend(one.values())
            elif isinstance(one, list):
                open_.extend(one)

    def _linked(self, one: dict[str, Any]) -> tuple[list[int], list[int], list[int]]:
        here = _schemas(one, _HERE)
        for word in _REFERENCES:
            if isinstance(one.get(word), str):
                here.extend(self._meant(one[word]))
        return self._known(here), self._known(_schemas(one, _ONE)), self._known(_schemas(one, _PARTS))

    def _known(self, several: list[Any]) -> list[int]:
        return [self._numbers[id(one)] for one in several if id(one) in self._numbers]

    def _meant(self, reference: str) -> Iterator[Any]:
        document, _, fragment = reference.partition("#")
        by_name = fragment and not fragment.startswith("/")
        several = (
            self._named.get(fragment if by_name else _last(document), ()) if document or by_name else self._resources
        )
        self._count(len(several))
        for one in several:
            if by_name:
                yield one
                continue
            found = _pointed(one, fragment)
            if found is not None:
                yield found

    def _counts(self, below: list[int] | None) -> list[int]:
        """Steps of each schema, where ``below`` are those for the parts of a value (None: it has no parts)."""
        made = [-1] * len(self._nodes)
        for first in range(len(self._nodes)):
            stack = [first]
            while stack:
                number = stack[-1]
                here, either, parts = self._links[number]
                if made[number] == -1:
                    made[number] = _OPEN
                    stack.extend(one for one in here if made[one] == -1)
                    continue
                stack.pop()
                if made[number] != _OPEN:
                    continue
                # What leads to itself at the same value has no end.
                count = 1 + sum(_STEPS_MOST if made[one] == _OPEN else made[one] for one in here)
                if below is not None:
                    count += max((below[one] for one in either), default=0) + sum(below[one] for one in parts)
                made[number] = min(count, _STEPS_MOST)
        return made


_OPEN: Final = -2
_STEPS_MOST: Final = 1 << 60


def _last(name: str) -> str:
    """The last part of a name: what is left of it, wherever it is relative to."""
    return re.split(r"[/:#]", name.rstrip("#"))[-1]


def _schemas(parent: dict[str, Any], words: tuple[str, ...]) -> list[Any]:
    """The schemas that stand at some words: one, several, or several by names."""
    made: list[Any] = []
    for word in words:
        found = parent.get(word)
        if isinstance(found, dict):
            made.extend(found.values() if word in _BY_NAMES else [found])
        elif isinstance(found, list):
            made.extend(found)
    return made


def _pointed(document: Any, pointer: str) -> Any:
    found = document
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isdecimal() and int(step[:9]) < len(found):
            found = found[int(step[:9])]
        else:
            return None
    return found
