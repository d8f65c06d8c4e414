"""Record the golden captures: real brokers, real clients, real bytes.

    python tests/golden/record.py                     everything, about eleven minutes
    python tests/golden/record.py first-light         one of them (see --list)
    python tests/golden/record.py --release 4.3.1     the KRaft captures on another Kafka release
    python tests/golden/record.py --out DIR           somewhere else than tests/golden

Needs root (packet capture), Java 17+ with javac, Maven, tcpdump and dumpcap; everything else is fetched through the
package managers of the languages. See docs/results/golden-captures.md for what comes out.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "broker"), str(HERE.parent / "support")]

import scenarios  # noqa: E402  (found through the path that the line above sets)


def main() -> int:
    parser = argparse.ArgumentParser(description="Record the golden captures.")
    parser.add_argument("names", nargs="*", help="captures to record; all of them when none is named")
    parser.add_argument("--list", action="store_true", help="name the captures and end")
    parser.add_argument("--release", help="Kafka release for the KRaft captures, instead of the default")
    parser.add_argument("--out", type=Path, default=HERE, help="folder that receives the captures")
    arguments = parser.parse_args()
    if arguments.list:
        for name, scenario in scenarios.ALL.items():
            print(f"{name:24} {scenario.__doc__.splitlines()[0] if scenario.__doc__ else ''}")
        return 0
    unknown = [name for name in arguments.names if name not in scenarios.ALL]
    if unknown:
        parser.error(f"no such capture: {', '.join(unknown)}; see --list")
    failed = []
    for name in arguments.names or scenarios.ALL:
        started = time.monotonic()
        try:
            scenarios.ALL[name](scenarios.Target(arguments.out, arguments.release))
        except Exception:
            # One client that cannot be installed or a broker that stumbles does not end a run of ten minutes.
            failed.append(name)
            traceback.print_exc()
            continue
        print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)
    if failed:
        print(f"NOT RECORDED: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
