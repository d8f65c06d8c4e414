"""Several captures or log segments at once, each decoded by a process of its own: ``kwire decode -j``.

A process writes the rows of its file into Arrow streams in a temporary folder. They are read back in the order of the
files. So rows, notes and errors come as they do without ``-j``. Rules kept here:

- At most ``jobs`` files are decoded at a time and ``PREFETCH`` more wait to be written.
- An early stop (Ctrl-C, a pipe that is closed) ends the processes.
- A process that dies is an error of the command, which names its file.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kwire.errors import KwireError
from kwire.opening import create_file

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.cli.output import Output

__all__ = ["Outcome", "decoded"]

PREFETCH: Final = 2
"""Files that are decoded before their turn, besides those that are being decoded."""


@dataclass(slots=True)
class Outcome:
    """What became of a task of a ``file``: where the rows of each table are, what to print, whether all is right, and
    what went wrong."""

    file: str
    paths: dict[str, str]
    notes: list[str] = field(default_factory=list)
    right: bool = True
    error: str | None = None

    def batches(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows, with the names of their tables. They are gone then."""
        import pyarrow as pa

        for table, path in self.paths.items():
            with pa.OSFile(path) as raw, pa.ipc.open_stream(raw) as stream:
                for batch in stream:
                    yield table, batch
            Path(path).unlink()


Work = Callable[[Any, "Mapping[str, Output]", Callable[[str], None]], bool]
"""What a process does. It gets a task, the outputs and a receiver of lines, and returns whether all is well."""


def decoded(
    tasks: Sequence[tuple[str, Any]], jobs: int, work: Work, schemas: Mapping[str, pa.Schema]
) -> Generator[Outcome]:
    """The outcomes of ``work`` in the order of the tasks, each with the name of its file. Both can be pickled;
    ``schemas`` are those of the tables that are made."""
    waiting: deque[tuple[str, Future[Outcome]]] = deque()
    left = iter(enumerate(tasks))
    pool = ProcessPoolExecutor(
        min(jobs, len(tasks)), mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_the_parent
    )
    with tempfile.TemporaryDirectory(prefix="kwire-") as folder:
        try:
            while True:
                while len(waiting) < jobs + PREFETCH and (one := next(left, None)) is not None:
                    number, (file, task) = one
                    waiting.append((file, pool.submit(_done, file, task, work, schemas, f"{folder}/{number}")))
                if not waiting:
                    break
                file, future = waiting.popleft()
                try:
                    yield future.result()
                except BrokenProcessPool:
                    raise KwireError(f"{file}: the process that decoded it, or one beside it, was ended") from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()
                child.join()


def _end_with_the_parent() -> None:
    # Ctrl-C reaches all of them. The parent prints the messages, and ends them with SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _done(file: str, task: Any, work: Work, schemas: Mapping[str, pa.Schema], place: str) -> Outcome:
    """Does a task, in a process of its own."""
    from kwire.cli.output import ArrowOutput
    from kwire.cli.stderr import worded

    made = Outcome(file, {table: f"{place}.{table}" for table in schemas})
    with contextlib.ExitStack() as stack:
        outputs: dict[str, Any] = {}
        for table, schema in schemas.items():
            raw = stack.enter_context(create_file(made.paths[table]))
            output = stack.enter_context(contextlib.closing(ArrowOutput(raw, schema, stream=True)))
            # No bar: there would be several.
            output.to_terminal = True
            outputs[table] = output
        try:
            made.right = work(task, outputs, made.notes.append)
        except (KwireError, OSError) as error:
            made.error = worded(error, file)
    return made
