"""Avro values to Arrow: kwire, fastavro, pyruhvro.

    python benchmarks/values.py [--rounds 5] [--rows 1000000] [--only TEXT] [--json OUT]
    python benchmarks/values.py --one CONTESTANT --only nested      # the first call of a process

Each case is a column of Avro values without framing, all of one schema. ``flat`` has a record of 12 fields, ``nested``
one of 40, with records, arrays, a map, nullable fields and logical types. Contestants:

- kwire: ``kwire.values.avro.decode``.
- fastavro: ``schemaless_reader`` for each value, and ``pyarrow.array`` of all objects, as one does without kwire. It
  reads a tenth of the rows, and its time counts ten times.
- pyruhvro: ``deserialize_array``. Like fastavro it takes a list of bytes, which is made of the column first.

Interleaved in one process, in nanoseconds of processor time per value (of all threads). In each round each
contestant has ``CALLS`` calls one after the other, as one who reads column after column has them: what a call has made
is freed before the next. "first" is the first of them, after the others have had the memory, and "next" the others.
Figures are medians over the rounds. "x" is how many times as long the other one takes. What they make is compared
before.

With ``--one``, one contestant reads a few values, and then the column once: run it for each of them in turn. The pages
of its memory are new then.
"""

from __future__ import annotations

import argparse
import datetime
import io
import json
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa

from kwire.kernels.engine import MACHINE, using
from kwire.values.avro import Schema, decode, parse

OBJECTS = 10
"""One in so many rows is read as an object."""
CALLS = 3
"""Calls of a contestant in a round."""
DISTINCT = 50_000
"""Values that are different. A column has them again and again."""


def _nullable(kind: Any) -> list[Any]:
    return ["null", kind]


_TIME = {"type": "long", "logicalType": "timestamp-millis"}

FLAT: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SENT", "DONE"]}},
        {"name": "amount", "type": "double"},
        {"name": "quantity", "type": "int"},
        {"name": "paid", "type": "boolean"},
        {"name": "created", "type": _TIME},
        {"name": "updated", "type": _nullable(_TIME)},
        {"name": "note", "type": _nullable("string")},
        {"name": "country", "type": "string"},
        {"name": "weight", "type": "float"},
        {"name": "items", "type": "int"},
    ],
}

NESTED: dict[str, Any] = {
    "type": "record",
    "name": "Session",
    "fields": [
        *({"name": f"id{n}", "type": "long"} for n in range(4)),
        *({"name": f"name{n}", "type": "string"} for n in range(4)),
        *({"name": f"maybe{n}", "type": _nullable("string")} for n in range(4)),
        *({"name": f"count{n}", "type": _nullable("int")} for n in range(4)),
        *({"name": f"rate{n}", "type": "double"} for n in range(4)),
        *({"name": f"flag{n}", "type": "boolean"} for n in range(4)),
        {
            "name": "device",
            "type": {
                "type": "record",
                "name": "Device",
                "fields": [
                    {"name": "model", "type": "string"},
                    {"name": "system", "type": "string"},
                    {"name": "width", "type": "int"},
                    {"name": "height", "type": "int"},
                    {"name": "seen", "type": _TIME},
                ],
            },
        },
        {
            "name": "place",
            "type": _nullable(
                {
                    "type": "record",
                    "name": "Place",
                    "fields": [
                        {"name": "latitude", "type": "double"},
                        {"name": "longitude", "type": "double"},
                        {"name": "city", "type": _nullable("string")},
                    ],
                }
            ),
        },
        {
            "name": "events",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Event",
                    "fields": [
                        {"name": "at", "type": _TIME},
                        {"name": "kind", "type": "string"},
                        {"name": "size", "type": _nullable("long")},
                    ],
                },
            },
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "labels", "type": {"type": "map", "values": "string"}},
        {"name": "score", "type": "float"},
        {"name": "created", "type": _TIME},
    ],
}


def _made(type_: Any, some: random.Random) -> Any:
    """A value of a type."""
    kind = type_ if isinstance(type_, str | list) else type_["type"]
    if isinstance(kind, list):
        return None if some.random() < 0.3 else _made(kind[1], some)
    if isinstance(type_, dict) and type_.get("logicalType"):
        return datetime.datetime.fromtimestamp(1_700_000_000 + some.randrange(10**7), datetime.UTC)
    make: dict[str, Callable[[], Any]] = {
        "int": lambda: some.choice((some.randrange(60), some.randrange(10**6))),
        "long": lambda: some.randrange(10**12),
        "float": lambda: some.randrange(1000) / 8,
        "double": lambda: some.random() * 1000,
        "boolean": lambda: some.random() < 0.5,
        "string": lambda: "".join(some.choices("abcdefghijklmnopqrstuvwxyz", k=some.randrange(4, 20))),
        "enum": lambda: some.choice(type_["symbols"]),
        "record": lambda: {one["name"]: _made(one["type"], some) for one in type_["fields"]},
        "array": lambda: [_made(type_["items"], some) for _ in range(some.randrange(4))],
        "map": lambda: {f"label{n}": _made(type_["values"], some) for n in range(some.randrange(4))},
    }
    return make[kind]()


@dataclass
class Case:
    """A column of values."""

    name: str
    schema: dict[str, Any]
    values: pa.Array

    @property
    def parsed(self) -> Schema:
        """Its schema, as kwire has it."""
        return parse(json.dumps(self.schema))


def case(name: str, schema: dict[str, Any], rows: int) -> Case:
    """A column of so many rows."""
    some, parsed = random.Random(7), fastavro.parse_schema(json.loads(json.dumps(schema)))
    made = []
    for _ in range(min(rows, DISTINCT)):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, _made(schema, some))
        made.append(out.getvalue())
    return Case(name, schema, pa.array((made * (rows // len(made) + 1))[:rows], pa.binary()))


def by_kwire(one: Case) -> pa.Array:
    """All values."""
    return decode(one.values, [one.parsed]).values


def by_fastavro(one: Case) -> pa.Array:
    """All values, as objects first."""
    parsed, type_ = fastavro.parse_schema(json.loads(json.dumps(one.schema))), one.parsed.arrow_type(spark=True)
    read = fastavro.schemaless_reader
    return pa.array([read(io.BytesIO(each), parsed, None) for each in one.values.to_pylist()], type_)


def by_pyruhvro(one: Case) -> pa.RecordBatch:
    """All values."""
    import pyruhvro

    return pyruhvro.deserialize_array(one.values.to_pylist(), json.dumps(one.schema))


CONTESTANTS: dict[str, Callable[[Case], Any]] = {"kwire": by_kwire, "fastavro": by_fastavro, "pyruhvro": by_pyruhvro}


def timed(run: Callable[[Case], Any], one: Case) -> float:
    """Nanoseconds of processor time for each value."""
    began = time.process_time_ns()
    run(one)
    return (time.process_time_ns() - began) / len(one.values)


def check(one: Case) -> None:
    """All make the same of the first values."""
    few = Case(one.name, one.schema, one.values.slice(0, 1000))
    ours = decode(few.values, [one.parsed], spark=True).values
    assert ours.equals(by_fastavro(few)), "fastavro"
    theirs = by_pyruhvro(few)
    for name in ("id", "customer", "amount") if one.name == "flat" else ("id0", "name1", "rate2", "tags"):
        assert theirs.column(name).to_pylist() == ours.field(name).to_pylist(), f"pyruhvro: {name}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--one", choices=CONTESTANTS)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    results = []
    for name, schema in (("flat", FLAT), ("nested", NESTED)):
        if args.only not in name:
            continue
        one = case(name, schema, args.rows)
        cases = dict.fromkeys(CONTESTANTS, one)
        cases["fastavro"] = Case(name, schema, one.values.slice(0, max(1, len(one.values) // OBJECTS)))
        with using(MACHINE):
            if args.one:
                CONTESTANTS[args.one](Case(name, schema, one.values.slice(0, 1000)))
                print(f"{name}: {args.one} {timed(CONTESTANTS[args.one], cases[args.one]):.1f} ns, first of a process")
                continue
            check(one)
            first: dict[str, list[float]] = {each: [] for each in CONTESTANTS}
            later: dict[str, list[float]] = {each: [] for each in CONTESTANTS}
            for _ in range(args.rounds):
                for each, run in CONTESTANTS.items():
                    times = [timed(run, cases[each]) for _ in range(CALLS)]
                    first[each].append(times[0])
                    later[each].extend(times[1:])
        size = one.values.nbytes / len(one.values)
        print(f"{name}: {len(one.values):,} values of {size:.0f} bytes")
        found = {}
        for words, every in (("first", first), ("next", later)):
            found[words] = {each: statistics.median(times) for each, times in every.items()}
            for each, median in found[words].items():
                low, high = min(every[each]), max(every[each])
                ratio = median / found[words]["kwire"]
                print(f"  {words:6}{each:10} {median:9.1f} ns ({low:.1f} to {high:.1f})   x{ratio:.1f}")
        results.append({"case": name, "rows": len(one.values), "bytes": size, "ns": found})
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
