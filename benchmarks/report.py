"""What a report costs beside reading: CPU time of ``kwire report`` against reading the same tables.

    python benchmarks/report.py [--size 48] [--rounds 5] [--only TEXT] [--parts]

The captures are those of ``capture.py``. Reading is one pass over the tables and columns that a report needs, as
anybody reads them. The report is such a pass, in which texts are dictionaries as the command has them, all sums, and
the page. Both run in turn in one process; figures are medians of CPU time, and the ratio is of these. ``--parts`` says
which rules and sums the time goes to.
"""

from __future__ import annotations

import argparse
import io
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from capture import case

from kwire import capture
from kwire.kernels.engine import MACHINE, using
from kwire.report import page
from kwire.report.overview import TABLES, Overview

CASES: dict[str, dict[str, Any]] = {
    "small requests": {"per_batch": 0},
    "1 record a batch": {"per_batch": 1},
    "100 records a batch": {"per_batch": 100},
}


def read(data: bytes, over: Overview | None = None) -> tuple[float, int]:
    """CPU seconds of reading, and of adding it up in ``over`` and writing the page; characters of the page."""
    began, text = time.process_time(), ""
    for name, batch in _tables(data, dictionaries=over is not None):
        if over is not None:
            over.add(name, batch)
    if over is not None:
        over.finish()
        text = page.render(over, [page.Source("x")])
    return time.process_time() - began, len(text)


def _tables(data: bytes, *, dictionaries: bool) -> Iterator[tuple[str, pa.RecordBatch]]:
    return capture.read(io.BytesIO(data), tables=list(TABLES), columns=TABLES, name="x", dictionaries=dictionaries)


def parts(data: bytes) -> Counter[str]:
    """CPU seconds of each rule and sum."""
    spent: Counter[str] = Counter()

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            began = time.process_time()
            try:
                return function(*arguments)
            finally:
                spent[name] += time.process_time() - began

        return call

    over = Overview()
    for name, taker in over._takers.items():
        over._takers[name] = timed(f"sums of {name}", taker)
    for rule in over.finder._rules:
        rule.take = timed(rule.name, rule.take)  # type: ignore[method-assign]
    over.lineage.add_rows = timed("lineage", over.lineage.add_rows)  # type: ignore[method-assign]
    over.auditor.add_records = timed("audit", over.auditor.add_records)  # type: ignore[method-assign]
    for name, batch in _tables(data, dictionaries=True):
        over.add(name, batch)
    over.finish()
    began = time.process_time()
    page.render(over, [page.Source("x")])
    spent["page"] = time.process_time() - began
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=48, metavar="MB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with this in their names")
    parser.add_argument("--parts", action="store_true", help="which rules and sums take the time")
    args = parser.parse_args()
    for name, options in CASES.items():
        if args.only not in name:
            continue
        data = case(name, args.size, **options).data
        with using(MACHINE):
            read(case(name, 2, **options).data)
            pairs = [(read(data), read(data, Overview())) for _ in range(args.rounds)]
            reading, report = (statistics.median(one[0] for one in times) for times in zip(*pairs, strict=True))
            said = f"reading {reading:.2f} s, report {report:.2f} s, {report / reading:.2f} times"
            print(f"{name}: {said}, page {pairs[0][1][1] / 1e3:.0f} kB", flush=True)
            if args.parts:
                for what, seconds in parts(data).most_common(20):
                    print(f"    {what:24} {seconds:.3f} s", flush=True)


if __name__ == "__main__":
    main()
