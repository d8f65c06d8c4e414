"""Avro: pairs of schemas of all types, related by the rules of resolution, with values, whole and damaged. kwire and
fastavro read the same, or both refuse. The classes of damage that fastavro reads all the same are those of
``tests/support/avro_pairs.py``.

    python -m fuzz.avro [--pairs 100000] [--values 10] [--first 0] [--python]
"""

from __future__ import annotations

import argparse
import sys
import time

from kwire.kernels.engine import MACHINE, PYTHON, using
from tests.support.avro_pairs import differences

STEP = 5000
"""Pairs after which it says how far it is."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--values", type=int, default=10, help="of each pair, and as many that are damaged")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first pair")
    parser.add_argument("--python", action="store_true", help="the kernel as Python")
    args = parser.parse_args()
    began, found = time.monotonic(), 0
    with using(PYTHON if args.python else MACHINE):
        for done, seed in enumerate(range(args.first, args.first + args.pairs), 1):
            for one in differences(seed, args.values):
                found += 1
                print(f"seed {seed}: {one}", flush=True)
            if done % STEP == 0 or done == args.pairs:
                took = time.monotonic() - began
                print(f"{done:,} pairs of {2 * args.values} values in {took:.0f} s: {found} differences", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
