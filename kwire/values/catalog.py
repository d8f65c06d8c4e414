"""Schemas by the names that they go by: what a folder, a topic or an answer of a registry becomes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from kwire.errors import KwireError
from kwire.values.framing import Space
from kwire.values.written import AVRO, Reference, Written, closure

__all__ = ["Catalog", "Source"]


class Source(Protocol):
    """What has schemas."""

    def named(self, space: Space, name: int | str) -> Sequence[Written]:
        """The schemas that have this name: several, where a folder has those of several registries."""

    def versions(self, subject: str) -> Sequence[Written]:
        """The versions of a subject, the oldest first."""

    def version(self, subject: str, version: int) -> Written | None:
        """One version of a subject (-1: the newest)."""

    def fetched(self, subjects: Iterable[str] | None) -> Catalog:
        """The schemas of some subjects (None: all), which need no source any more."""


class Catalog:
    """Schemas by their names. ``files``: texts that schemas of Protobuf may import, by their paths."""

    def __init__(self, found: Iterable[Written] = (), files: Mapping[str, str] | None = None) -> None:
        self._named: dict[tuple[Space, int | str], list[Written]] = {}
        self._subjects: dict[str, dict[int, Written]] = {}
        self._prints: int = 0
        self._avro: list[Written] = []
        self.files: dict[str, str] = dict(files or {})
        self.damaged: int = 0
        """Records of the topic ``_schemas`` that could not be read."""
        for one in found:
            self.add(one)

    def __len__(self) -> int:
        return len({id(one) for one in self})

    def __iter__(self) -> Iterator[Written]:
        seen: set[int] = set()
        for several in (*self._named.values(), *(list(one.values()) for one in self._subjects.values())):
            for one in several:
                if id(one) not in seen:
                    seen.add(id(one))
                    yield one

    def add(self, one: Written) -> None:
        """One more schema. A version of a subject that is there takes the place of that."""
        if one.id is not None:
            self._put((Space.ID, one.id), one)
        if one.guid is not None:
            self._put((Space.GUID, one.guid), one)
        if one.format == AVRO:
            self._avro.append(one)
        if one.subject is not None:
            versions = self._subjects.setdefault(one.subject, {})
            versions[max(versions, default=0) + 1 if one.version is None else one.version] = one

    def _put(self, name: tuple[Space, int | str], one: Written) -> None:
        others = self._named.setdefault(name, [])
        # A subject with the same text as another has its id.
        same = [at for at, other in enumerate(others) if other.content == one.content and other.subject == one.subject]
        if same:
            others[same[0]] = one
        else:
            others.append(one)

    def remove(self, subject: str, version: int | None) -> None:
        """Forget a version of a subject (None: all). Values that name its id can still be read."""
        versions = self._subjects.get(subject, {})
        for number in [version] if version is not None else list(versions):
            if number in versions:
                versions[number] = replace(versions[number], deleted=True)

    def named(self, space: Space, name: int | str) -> Sequence[Written]:
        """``Source.named``."""
        if space in (Space.GLOBAL_ID, Space.CONTENT_ID):
            # A folder and the topic have one kind of numbers.
            space = Space.ID
        if space is Space.FINGERPRINT:
            self._fingerprint()
        return self._named.get((space, name), ())

    def _fingerprint(self) -> None:
        from kwire.values import avro

        while self._prints < len(self._avro):
            one = self._avro[self._prints]
            self._prints += 1
            try:
                schema = avro.parse(one.text, closure(one, self.referred))
            except KwireError:
                continue
            self._put((Space.FINGERPRINT, schema.fingerprint), one)

    def versions(self, subject: str) -> Sequence[Written]:
        """``Source.versions``."""
        found = self._subjects.get(subject, {})
        return [found[number] for number in sorted(found) if not found[number].deleted]

    def version(self, subject: str, version: int) -> Written | None:
        """``Source.version``."""
        if version < 0:
            return next(reversed(self.versions(subject)), None)
        return self._subjects.get(subject, {}).get(version)

    def subjects(self) -> list[str]:
        """The names of the subjects, sorted."""
        return sorted(self._subjects)

    def referred(self, reference: Reference) -> Written | None:
        """The schema that a reference means."""
        return self.version(reference.subject, reference.version)

    def fetched(self, subjects: Iterable[str] | None) -> Catalog:
        """``Source.fetched``."""
        return self
