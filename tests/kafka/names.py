"""Makes ``schemas/names.txt``: what the classes of Kafka 0.10.1 call the fields that have another name since.

python tests/kafka/names.py            writes the table anew
python tests/kafka/names.py --check    compares it instead; ends with 1 when they differ
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from releases import ROOT, jars, kafka_jars

from kwire import schema
from kwire.schema import model

RELEASE = "0.10.1.1"
TABLE = ROOT / "schemas" / "names.txt"
HEAD = """\
# What Kafka 0.10.1 called fields that have another name since: the name of today, and the one of then.  Written by
# tests/kafka/names.py, which asks the classes of 0.10.1.1; read by kwire/protocol/names.py. A field of a struct
# stands behind those that lead to it. What is not here had the name that it has.
"""

Names = list[tuple[str, "Names"]]


def parsed(text: str) -> Names:
    """``a b(c d)`` as a tree."""
    stack: list[Names] = [[]]
    for part in re.findall(r"\w+|[()]", text):
        if part == "(":
            stack.append(stack[-1][-1][1])
        elif part == ")":
            stack.pop()
        else:
            stack[-1].append((part, []))
    return stack[0]


def changed(theirs: Names, ours: model.StructLayout, path: str = "") -> Iterator[tuple[str, str]]:
    """(path of today, name of then) of each field that was called otherwise."""
    if len(theirs) != len(ours.fields):
        # The coordinator of FindCoordinator v0, a struct of then: the same bytes are fields of the response today.
        theirs = [each for name, inside in theirs for each in (inside or [(name, inside)])]
    for (name, inside), field in zip(theirs, ours.fields, strict=True):
        where = f"{path}{field.name}"
        if name != field.name:
            yield where, name
        inner = field.type.element if isinstance(field.type, model.ArrayLayout) else field.type
        # A string of then may be a struct of today with one field, as in Metadata.
        if inside and isinstance(inner, model.StructLayout):
            yield from changed(inside, inner, f"{where}.")


def table() -> str:
    """The text of ``schemas/names.txt``."""
    with tempfile.TemporaryDirectory(prefix="kwire-names-") as scratch:
        found = jars((RELEASE,), Path(scratch))[RELEASE]
        source = ROOT / "tests" / "java" / "FieldNames.java"
        subprocess.run([kafka_jars.jdk_tool("javac"), "-d", scratch, str(source)], check=True, capture_output=True)
        path = os.pathsep.join([scratch, *map(str, found)])
        command = [kafka_jars.java(), "-cp", path, "FieldNames"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    names: dict[str, dict[str, str]] = {}
    for line in done.stdout.splitlines():
        which, key, version, text = line.split("\t")
        message = schema.request(int(key)) if which == "REQUESTS" else schema.response(int(key))
        assert message is not None
        for where, name in changed(parsed(text), model.layout(message, int(version))):
            known = names.setdefault(message.name, {}).setdefault(where, name)
            assert known == name, f"{message.name} {where}: {known} and {name}"
    out = [HEAD]
    for message_name, fields in sorted(names.items()):
        out.append(message_name)
        out += [f"  {where:<44} {name}" for where, name in fields.items()]
    return "\n".join(out) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare the table instead of writing it")
    options = parser.parse_args()
    text = table()
    if options.check:
        same = TABLE.read_text() == text
        print(f"{TABLE.name} {'says what the classes say' if same else 'is not what the classes say'}")
        return 0 if same else 1
    TABLE.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
