"""What a table is: ``CaptureTable`` and ``LogTable``, and the ``Maker`` that makes the rows of one of a capture.

Imports neither numpy nor pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

from kwire.naming import no_such
from kwire.options import CaptureOptions, settled

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.capture.frames import Frames
    from kwire.capture.tracker import Tracker
    from kwire.history.fold import History
    from kwire.tables.filters import Filter
    from kwire.tables.showing import Column

__all__ = ["DIRECTIONS", "ByRow", "CaptureTable", "LogTable", "Maker", "Remembered", "Run", "Table", "words"]

DIRECTIONS: Final = ("request", "response")
"""Words of the column ``direction`` (tuple of str)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How one capture is read: what is the same for all the tables that are made of it.

    ``name``: for the column ``capture``. ``memory``: what tables remember from one capture to the next of a command or
    job, each under its own name. ``options``: those of ``kwire.capture.read``, with defaults for what was not given.
    ``only``: which rows are wanted. ``topics``: names of topics by their ids, as far as they are known. ``learns``:
    frames add to them. ``goes_on``: it
    is a part of a whole, and its connections are those of the parts before it. ``later``: a part after it is read with
    the same ``memory``. ``carried``: what tables remember is kept, and goes on another time: what is open is not over.
    ``answers``: what parts after it answer to Produce requests of this one, where that is known
    (``committed.ANSWERS``).
    """

    name: str = ""
    memory: dict[str, Any] = field(default_factory=dict)
    options: CaptureOptions = field(default_factory=lambda: settled({}))
    only: Filter | None = None
    topics: dict[bytes, str] = field(default_factory=dict)
    learns: bool = True
    goes_on: bool = False
    later: bool = False
    carried: bool = False
    answers: pa.Table | None = None


class Maker:
    """Makes the rows of one table of one capture. ``frames`` are to come in the order of the capture.

    ``sees_all``: it is given all frames, since it learns from others, and applies ``Run.only`` to frames and topics.
    ``kinds``: it is a ``kwire.capture.frames.Looker``. Then ``batches`` is given what ``Gathered`` gives.
    """

    sees_all = False
    kinds: Any = None

    @property
    def full(self) -> bool:
        """That of ``Looker``."""
        return False

    def look(self, frames: Frames, rows: Any, there: Any, copied: Any) -> None:
        """That of ``Looker``, for a maker that has ``kinds``."""

    @property
    def short(self) -> bool:
        """Whether something was not decompressed that might have been, had others not taken so much."""
        return False

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        """The rows that these frames give, with the schema that was chosen. A batch may be empty."""
        raise NotImplementedError

    def rest(self, tracker: Tracker) -> Iterator[pa.RecordBatch]:
        """The rows that only the end of the capture gives, where a table has such. ``tracker`` has read the capture."""
        return iter(())

    def notes(self) -> list[str]:
        """Sentences about what is in no row although somebody may look for it."""
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What there is to know about a table.

    ``name``: what ``--table``, the Spark option and ``kwire.capture.read`` call it. ``file``: the column with the name
    of the file that was read. ``statuses``: the words of its column ``status`` and what each means, empty if it has
    no such column. ``shown``: what a person in a terminal is shown of it; the other formats have every column of
    ``schema``. ``asked``: further columns, which are there only where they are asked for by name. ``words``: of other
    columns, by their names, the words that they have and what each means.
    """

    name: str
    schema: pa.Schema
    file: str
    shown: Sequence[Column]
    statuses: Mapping[str, str] = field(default_factory=dict)
    asked: Sequence[pa.Field] = ()
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def chosen(self, columns: Iterable[str] | None) -> pa.Schema:
        """The schema of some columns, in the order given; None: all, a text: one. Raises ``ValueError`` for what is
        none."""
        import pyarrow as pa

        if columns is None:
            return self.schema
        wanted = [columns] if isinstance(columns, str) else list(columns)
        if not wanted:
            raise ValueError(f"no column of the table {self.name} was chosen: {', '.join(self.schema.names)}")
        known = {one.name: one for one in (*self.schema, *self.asked)}
        for name in wanted:
            if name not in known:
                raise ValueError(no_such("column", name, known, f"in the table {self.name}"))
            if wanted.count(name) > 1:
                raise ValueError(f"column {name!r} of the table {self.name} was chosen twice")
        return pa.schema([known[name] for name in wanted])


class Remembered(Protocol):
    """What a table keeps from one capture to the next."""

    def save(self) -> Any:
        """All of it, as JSON has it."""

    def restore(self, state: Any) -> None:
        """Takes over what ``save`` gave. Raises one of ``stored.UNFIT``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByRow:
    """How a filter chooses among the rows of a table: once they are made, by these columns.

    So it is where a row says what several frames said: a filter of frames would change it. ``times`` and ``clients``:
    the first of them that is not null counts, and any of them. ``topics``: texts, or lists of structs with ``topic``.
    """

    times: tuple[str, ...] = ("timestamp",)
    clients: tuple[str, ...] = ("client_id",)
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureTable(Table):
    """A table that is made from the frames of a capture.

    ``maker(schema, run)`` makes a ``Maker`` for one capture. ``schema`` is what ``chosen`` gave. Columns that are not
    in it are not worked out.
    """

    maker: Callable[[pa.Schema, Run], Maker]
    filters: bool = True
    """Whether each row is of one frame (or of a request and its response), so that a ``Filter`` can choose."""
    by_row: ByRow | None = None
    """How a ``Filter`` chooses, where it chooses among rows that are made. Its maker knows the column ``API``."""
    dictionaries: bool = False
    """Whether its texts may be dictionaries."""
    of_one_file: bool = False
    """Whether its rows are of a whole file: they cannot be put together from parts yet."""
    history: History | None = None
    """What its rows are made by, where they are those of a history (``kwire.tables.histories``)."""
    in_order: bool = False
    """Whether its rows need what came before, of all connections: files are read one after the other."""
    remembers: Callable[[], Remembered] | None = None
    """Makes what it keeps under its name in ``Run.memory``, empty, where that can be saved and is no history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTable(Table):
    """A table that is made from a log segment.

    ``read(source, columns=, limits=, secrets=, name=, metadata=, progress=, on_note=)`` gives its batches. None of them
    is empty. Arguments and errors are those of ``kwire.log.read``. ``deep``: the same table with the records of Kafka's
    own topics decoded, if there is one.
    """

    read: Callable[..., Iterator[pa.RecordBatch]]
    deep: LogTable | None = None


def words(meanings: Mapping[Any, str]) -> dict[str, str]:
    """``Table.statuses`` of the members of an enum: the words are their names in lower case."""
    assert all(isinstance(one, IntEnum) for one in meanings)
    return {one.name.lower(): text for one, text in meanings.items()}
