"""Random histories of groups against what their broker knows: 1,000 by default, whole, with losses, and cut in two.

    PYTHONPATH=. python benchmarks/histories.py [--histories 1000] [--first 0]

Each is made without sockets (``tests/support/group_histories.py``): a mock broker, members that join, leave, crash and
change their topics, and a clock that jumps. What the table says has to be what the broker knows, or a part of it.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from group_histories import check, exchanges, lossy, simulated, told
from made_captures import read

from kwire.tables.reading import read_in_order
from kwire.testing import packets


def one(seed: int, protocol: str) -> int:
    """Checks a history. Returns how many rows it had."""
    data, truth, bench = simulated(seed, protocol)
    rows = read(data, "group_events")
    told(rows, truth, exchanges(data, bench))
    some = lossy(data, seed)
    check(read(some, "group_events"), truth, exchanges(some, bench), whole=False)
    listed = packets.read(data)
    at = seed * 7919 % len(listed)
    files = [io.BytesIO(packets.write_pcapng(part)) for part in (listed[:at], listed[at:])]
    parts = [row for _, batch in read_in_order(files, {"group_events": None}, ["", ""]) for row in batch.to_pylist()]
    assert [row["event"] for row in parts] == [row["event"] for row in rows]
    return len(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    begin, wrong, rows = time.perf_counter(), Counter[str](), 0
    for number in range(args.first, args.first + args.histories):
        protocol = ("classic", "consumer")[number % 2]
        try:
            rows += one(number // 2, protocol)
        except AssertionError as error:
            wrong[protocol] += 1
            print(f"{protocol}, seed {number // 2}: {str(error).splitlines()[:1]}")
    took = time.perf_counter() - begin
    print(f"{args.histories} histories, {rows:,} rows, {sum(wrong.values())} wrong, {took:.0f} s")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
