"""A case of the corpus: some bytes, what was done to them, and the verdict of the protocol."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from kwire import records
from kwire.codec import registry
from kwire.codec.objects import WireStruct, dump_json
from kwire.errors import DecodeError
from kwire.schema import model
from kwire.testing.corpus.damage import Verdict

__all__ = ["Case", "Recipe", "Role"]

Role = Literal["request", "response", "records", "capture"]
"""What the bytes are: a frame without its 4-byte size, a record set, or a file of packets."""


_MOST_SHOWN: Final = 1 << 16
"""Bytes of values that a line of the manifest has at most."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a frame was made, so that a smaller one of its kind can be made."""

    message: model.Message
    body: WireStruct
    damage: str = ""
    path: str = ""
    part: str = ""
    """Of the piece that was damaged: ``Piece.part``."""
    variant: int = 0


@dataclass(frozen=True, slots=True)
class Case:
    """Bytes for a parser, and what it has to say of them."""

    name: str
    """Of the corpus, and unique in it; also the path of its file, without the ending."""
    role: Role
    data: bytes
    verdict: Verdict
    source: str
    """Where the verdict comes from."""
    kafka: bool | None
    """Whether Kafka's own classes read it. None: they were not asked."""
    api: str = ""
    api_key: int = -1
    version: int = -1
    """Of the API; of a record set its magic."""
    body_at: int | None = 0
    """Where the body begins in the frame. None where the header is damaged."""
    shape: str = "one"
    damage: str | None = None
    """The kind of damage, None for a valid one."""
    path: str | None = None
    """The field that was damaged."""
    offset: int | None = None
    """Where the damage begins, in bytes of the frame."""
    recipe: Recipe | None = field(default=None, repr=False, compare=False)
    frames: tuple[tuple[str, str, int, int], ...] = ()
    """Of a capture: each frame by direction, API, version and correlation id."""

    @property
    def file(self) -> str:
        """The name of its file in the folder of the corpus."""
        return f"{self.name}.{'pcap' if self.role == 'capture' else 'bin'}"

    def decoded(self) -> WireStruct | None:
        """The body that a parser gets, if it accepts the bytes. None where kwire refuses them, and for record sets."""
        if self.recipe is None or self.body_at is None or self.verdict == "must-refuse":
            return None
        codec = registry.codec(self.recipe.message, self.version)
        try:
            made: WireStruct = codec.decode_prefix(self.data, self.body_at)[0]
        except DecodeError:
            return None
        return made

    def canonical(self) -> bytes | None:
        """The body as Kafka writes it, if a parser accepts the bytes.

        None where that is open: what a parser keeps of a string that is not UTF-8.
        """
        made = self.decoded()
        if made is None or self.recipe is None or self.damage == "not-utf-8":
            return None
        return registry.codec(self.recipe.message, self.version).encode(made)

    def line(self) -> dict[str, Any]:
        """Its line of the manifest."""
        canonical = self.canonical()
        said: dict[str, Any] = {
            "file": self.file,
            "role": self.role,
            "api": self.api,
            "api_key": self.api_key,
            "version": self.version,
            "body_at": self.body_at,
            "shape": self.shape,
            "damage": self.damage,
            "path": self.path,
            "offset": self.offset,
            "verdict": self.verdict,
            "source": self.source,
            "kafka": {True: "accepts", False: "refuses", None: None}[self.kafka],
            "decodes": self._shown(),
            "canonical": None if canonical is None else canonical.hex(),
        }
        return said

    def _shown(self) -> Any:
        """What it decodes to, as JSON has it."""
        if self.role == "records":
            return self._records()
        if self.role == "capture":
            names = ("direction", "api", "version", "correlation_id")
            return [dict(zip(names, one, strict=True)) for one in self.frames] or None
        made = self.decoded()
        return None if made is None else json.loads(dump_json(made.to_dict(self.version)))

    def _records(self) -> list[dict[str, Any]] | None:
        """The records of a set. None where a parser must refuse it, and for what is too large to show."""
        if self.verdict == "must-refuse":
            return None
        try:
            some = [one for batch in records.decode(self.data) for one in batch.records]
        except DecodeError:
            return None
        if sum(len(one.value or b"") for one in some) > _MOST_SHOWN:
            return None
        names = ("offset", "timestamp", "key", "value", "headers")
        shown: list[dict[str, Any]] = json.loads(
            dump_json([{name: getattr(one, name) for name in names} for one in some])
        )
        return shown
