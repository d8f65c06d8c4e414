"""Writes what the docs take from the code, and schemas in their canonical form: ``make docs``.

With ``--check`` it only says which files are not current.

Some pages are made as a whole (``WHOLE``). In other pages, what stands between ``<!-- made: NAME ARGUMENTS -->`` and
``<!-- end -->`` is made by the function ``NAME`` of ``PARTS``. Such a function gets the arguments, and the text that
stands there now: meanings of columns are written by hand, all else of a row is what the registry of tables says.
"""

from __future__ import annotations

import argparse
import dataclasses
import html
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))

import apis

from kwire import cli, options, tables
from kwire.capture import links as link_types
from kwire.kernels.layers import _ETHER_LAYERS, _IP_LAYERS, _UDP_TUNNELS, TUNNELS, Layer
from kwire.limits import DEFAULT_LIMITS
from kwire.records import compression
from kwire.report.findings import RULES, SEVERITIES, Thresholds
from kwire.schema.format import to_text
from kwire.schema.parser import parse
from kwire.tables.definition import LogTable, Table
from kwire.testing import KINDS, corpus

DOCS: Final = Path(__file__).parent
SCHEMAS: Final = DOCS.parent / "schemas"
MARKED: Final = re.compile(r"(<!-- made: (\w+)((?: [\w-]+)*) -->)(.*?)(<!-- end -->)", re.DOTALL)
SIMPLE: Final = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.timestamp("us", tz="UTC"): "timestamp",
}


def rules(old: str) -> str:
    """The table of the rules of ``kwire findings``."""
    lines = ["| rule | severity | what it finds | thresholds (defaults) |", "|---|---|---|---|"]
    for name, rule in sorted(RULES.items(), key=lambda one: SEVERITIES.index(one[1].severity)):
        thresholds = ", ".join(
            f"`{one}` ({said.format(_number(getattr(Thresholds, one)))})" for one, said in rule.thresholds.items()
        )
        finds = f"{rule.finds} (`--values`)" if rule.of_values else rule.finds
        lines.append(f"| `{name}` | {rule.severities or rule.severity} | {finds} | {thresholds} |")
    return "\n".join(["", *lines, ""])


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else repr(value)


def tunnels(old: str) -> str:
    """The words of tunnels, as the column ``tunnels`` has them."""
    return ", ".join(f"`{word}:`" for word in dict.fromkeys(TUNNELS.values()))


def links(old: str) -> str:
    """The link types that are read, by the names of the registry of tcpdump.org."""
    return link_types.supported()


def layers(old: str, table: str) -> str:
    """What a kind of packet is met in carries, with the numbers. Other lines of such a table are counts."""
    found: dict[str, list[str]] = {}
    names = {int(one): one.name for one in Layer}
    written = {"ether": "0x{:04X}"}.get(table, "{}")
    for number, layer in {"ether": _ETHER_LAYERS, "ip": _IP_LAYERS, "udp": _UDP_TUNNELS}[table].tolist():
        if layer in names:
            found.setdefault(names[layer].replace("_", "-"), []).append(written.format(number))
    return ", ".join(f"{name} ({', '.join(numbers)})" for name, numbers in found.items())


def codecs(old: str) -> str:
    """The codecs of records, by their numbers, with their levels."""
    lines = ["", "| name | number | levels |", "|---|---|---|"]
    for number, name in enumerate(compression.CODECS):
        kind = compression._KINDS.get(number)
        levels = f"{kind.levels[0]:,} to {kind.levels[-1]:,}" if kind and kind.levels else ""
        lines.append(f"| `{name}` | {number} | {levels} |".replace("|  |", "| |"))
    return "\n".join([*lines, ""])


def extras(old: str) -> str:
    """The extras of ``pyproject.toml`` with the packages that each brings, and what the page says of them."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text("utf-8"))["project"]
    said = {name: meaning for names, written, meaning in meanings(old) for name in names or [written]}
    lines = ["", "| extra | packages | what for |", "|---|---|---|"]
    for name, packages in {"none": project["dependencies"], **project["optional-dependencies"]}.items():
        named = ", ".join(f"`{one}`" for one in packages)
        lines.append(f"| {name if name == 'none' else f'`{name}`'} | {named} | {said.get(name, '')} |")
    return "\n".join([*lines, ""])


# --- tables -----------------------------------------------------------------------------------------------------------


def named(page: str, deep: str = "") -> Table:
    """The table that a page is about, by the name of its file."""
    if not page.startswith("log-"):
        return tables.table(page, "events" if page in tables.names("events") else "capture")
    found = tables.table(page.removeprefix("log-"), "log")
    assert isinstance(found, LogTable)
    if not deep:
        return found
    assert found.deep is not None
    return found.deep


def page_of(table: Table) -> str:
    """The name of the page of a table, without ``.md``."""
    return f"log-{table.name}" if isinstance(table, LogTable) else table.name


def in_sql(kind: pa.DataType) -> str:
    """An Arrow type as SQL spells it."""
    if pa.types.is_map(kind):
        return f"map<{in_sql(kind.key_type)}, {in_sql(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{in_sql(kind.value_type)}>"
    if pa.types.is_struct(kind):
        fields = (kind.field(k) for k in range(kind.num_fields))
        return f"struct<{', '.join(f'{one.name}: {in_sql(one.type)}' for one in fields)}>"
    return SIMPLE[kind]


def meanings(old: str) -> list[tuple[list[str], str, str]]:
    """The rows of a table of columns: the columns of each, how they are written, and what they mean."""
    rows = [
        line.removesuffix("|").split(" |")[:3]
        for line in old.splitlines()
        if line.startswith("| ") and "---" not in line
    ]
    return [(re.findall(r"`(\w+)`", row[0]), row[0].strip("| "), row[-1].strip()) for row in rows[1:]]


def _columns(fields: dict[str, str], old: str) -> str:
    """The rows in the order of the schema: those that are there with what they mean, and new ones."""
    places = {name: place for place, name in enumerate(fields)}
    rows: list[tuple[int, str]] = []
    left = dict(fields)
    for names, written, meaning in meanings(old):
        page = re.search(r"those of \[[^]]+\]\((.+?)\.md\)", written)
        if page:
            others = [name for name in named(page[1]).schema.names if left.pop(name, None) is not None]
            place = min((places[name] for name in others), default=-1)
            rows.append((place, f"| {written} | | {meaning} |".replace("|  |", "| |")))
            continue
        kept = [name for name in names if name in left]
        if kept:
            kinds = [left.pop(name) for name in kept]
            types = kinds[0] if len(set(kinds)) == 1 else ", ".join(kinds)
            said = ", ".join(f"`{one}`" for one in kept)
            rows.append((places[kept[0]], f"| {said} | {html.escape(types)} | {meaning} |"))
    rows += [(places[name], f"| `{name}` | {kind} | |") for name, kind in left.items()]
    lines = [line for _, line in sorted(rows, key=lambda row: row[0])]
    return "\n".join(["", "| column | type | meaning |", "|---|---|---|", *lines, ""])


def columns(old: str, page: str, deep: str = "") -> str:
    """The columns of a table, with what the page says of them."""
    return _columns({one.name: in_sql(one.type) for one in named(page, deep).schema}, old)


def asked(old: str, page: str, deep: str = "") -> str:
    """The columns that a table has where they are asked for by name."""
    return _columns({one.name: in_sql(one.type) for one in named(page, deep).asked}, old)


def statuses(old: str, page: str) -> str:
    """The words of ``status`` of a table."""
    lines = [f"| `{word}` | {text.replace('``', '`')} |" for word, text in named(page).statuses.items()]
    return "\n".join(["", "| `status` | meaning |", "|---|---|", *lines, ""])


def words(old: str, page: str, column: str) -> str:
    """The words of another column of a table."""
    lines = [f"| `{word}` | {text.replace('``', '`')} |" for word, text in named(page).words[column].items()]
    return "\n".join(["", f"| `{column}` | meaning |", "|---|---|", *lines, ""])


def all_tables(old: str, *kinds: tables.Kind) -> str:
    """The tables of some kinds, with the first sentence of the page of each."""
    lines = ["", "| table | one row for |", "|---|---|"]
    for table in (tables.table(name, kind) for kind in kinds for name in tables.names(kind)):
        page = f"{page_of(table)}.md"
        file = DOCS / "reference" / "tables" / page
        assert file.exists(), f"the table {table.name} has no page docs/reference/tables/{page}"
        found = re.match(rf"# {table.name}.*\n\nOne row for (.+?)[.\n]", file.read_text("utf-8"))
        assert found, f"docs/reference/tables/{page} does not begin with '# {table.name}' and 'One row for ...'"
        lines.append(f"| [`{table.name}`]({page}) | {found[1]} |")
    return "\n".join([*lines, ""])


def all_statuses() -> str:
    """docs/reference/statuses.md."""
    found: dict[str, dict[str, list[str]]] = {}
    for table in tables.every():
        for word, text in table.statuses.items():
            pages = found.setdefault(word, {}).setdefault(text.replace("``", "`"), [])
            page = page_of(table)
            pages += [page] if page not in pages else []
    lines = [
        "# Statuses",
        "",
        "Each word that the column `status` of a [table](tables/README.md) may have. This page is made from the code",
        "(`make docs`). The Spark data source adds `bad_file`: a file that could not be read, or not to its end.",
        "",
        "| `status` | meaning | tables |",
        "|---|---|---|",
    ]
    for word, texts in sorted(found.items()):
        for text, pages in texts.items():
            lines.append(f"| `{word}` | {text} | {', '.join(f'[{one}](tables/{one}.md)' for one in pages)} |")
    return "\n".join(lines) + "\n"


# --- commands, limits, impairments ------------------------------------------------------------------------------------


def overview(old: str) -> str:
    """All commands, as ``kwire --help`` lists them."""
    (below,) = (one for one in cli.make_parser()[0]._actions if isinstance(one, argparse._SubParsersAction))
    lines = ["", "| command | what it gives |", "|---|---|"]
    for one in below._choices_actions:
        lines.append(f"| [`kwire {one.dest}`](commands.md#kwire-{one.dest}) | {_cell(one.help or '')} |")
    return "\n".join([*lines, ""])


def commands() -> str:
    """docs/reference/commands.md."""
    lines = [
        "# Commands",
        "",
        "Every command of [`kwire`](command-line.md) with its arguments. This page is made from the code",
        "(`make docs`).",
    ]
    for name, parser in cli.make_parser()[1].items():
        lines += _command(f"kwire {name}", parser)
    return "\n".join(lines) + "\n"


def _command(title: str, parser: argparse.ArgumentParser) -> list[str]:
    below = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    rows = [_argument(one) for one in parser._actions if one not in below and one.dest != "help"]
    lines = ["", f"## {title}", "", _cell(parser.description or "")] if parser.description else ["", f"## {title}"]
    if rows:
        lines += ["", "| argument | meaning |", "|---|---|", *rows]
    for one in below:
        for name, child in one.choices.items():
            lines += _command(f"{title} {name}", child)
    return lines


def _argument(action: argparse.Action) -> str:
    words = list(action.option_strings)
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    values = " ".join(value) if isinstance(value, tuple) else str(value)
    if action.nargs != 0:
        many = " ..." if action.nargs in ("*", "+") else ""
        values = f"[{values}]" if action.nargs == "?" else values
        words = [f"{one} {values}{many}" for one in words] or [f"{values}{many}"]
    said = argparse.HelpFormatter("kwire")._expand_help(action) if action.help else ""
    return f"| {', '.join(f'`{_cell(one)}`' for one in words)} | {_cell(said)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`")


def limits(old: str) -> str:
    """The limits with their defaults, and what the page says of them."""
    said = {name: meaning for names, _, meaning in meanings(old) for name in names}
    lines = ["", "| limit | default | meaning |", "|---|---|---|"]
    for one in dataclasses.fields(DEFAULT_LIMITS):
        value = getattr(DEFAULT_LIMITS, one.name)
        size = f"{value >> 30} GiB" if value >= 1 << 30 else f"{value >> 20} MiB" if value >= 1 << 20 else f"{value:,}"
        lines.append(f"| `{one.name}` | {size} | {said.get(one.name, '')} |")
    return "\n".join([*lines, ""])


def impairments() -> str:
    """docs/reference/impairments.md."""
    lines = [
        "# Impairments",
        "",
        "What `kwire.testing.impair` does to captures ([how to use it](../how-to/fuzz-a-parser.md)).",
        "This page is made from the code (`make docs`).",
        "",
        "| grade | what a parser may be held to |",
        "|---|---|",
        "| `lossless` | the same result as of the original; the same times if the kind keeps them (each byte is first "
        "captured when it was before), and the same order if it keeps that |",
        "| `repeated` | the same, and connections of `account.repeated` once more: they are there again on the same "
        "ports |",
        "| `lossy` | nothing is made up, and what is missing is said |",
        "| `payload` | another capture, with other content: read it as an original |",
        "",
        "| kind | grade | what | times | order |",
        "|---|---|---|---|---|",
    ]
    for kind in KINDS.values():
        kept = " | ".join("kept" if one else "" for one in (kind.keeps_times, kind.keeps_order))
        lines.append(
            f"| `{kind.name}` | {kind.grade.value} | {_cell(kind.about.rstrip('.'))} | {kept} |".replace("|  |", "| |")
        )
    return "\n".join(lines) + "\n"


def cases() -> str:
    """docs/reference/corpus.md."""
    lines = [
        "# Corpus",
        "",
        "What `kwire fuzz corpus` writes ([how to use it](../how-to/test-a-parser.md)).",
        "This page is made from the code (`make docs`).",
        "",
        "| verdict | what it means |",
        "|---|---|",
        "| `must-accept` | a parser has to read it, and get the value in `decodes` |",
        "| `must-refuse` | a parser has to say that it is wrong |",
        "| `may` | the protocol leaves it open: a parser that reads it has to get the value in `decodes` |",
        "",
        "`kafka` says what Kafka's own classes do (4.4.0). `make test-kafka` has them read every frame.",
        "",
        "| shape | what a message is like |",
        "|---|---|",
        *(f"| `{name}` | {_cell(about)} |" for name, about in corpus.SHAPES.items()),
        "",
        "Each kind of damage is done to the shape `one`, at every field to which it applies.",
        "",
        "| damage | what | verdict | source | Kafka |",
        "|---|---|---|---|---|",
    ]
    for kind in corpus.KINDS.values():
        reads = "reads it" if kind.kafka else "refuses it"
        about = _cell(kind.about.rstrip("."))
        lines.append(f"| `{kind.name}` | {about} | `{kind.verdict}` | {_cell(kind.source)} | {reads} |")
    lines += [
        "",
        "Record sets (`--api records`) are made with each codec. Checksums are right, but for `batch-checksum`.",
        "",
        "| record set | what | verdict | source | Kafka |",
        "|---|---|---|---|---|",
    ]
    for one in corpus.RECORD_KINDS.values():
        reads = "reads it" if one.kafka else "refuses it"
        lines.append(f"| `{one.name}` | {_cell(one.about)} | `{one.verdict}` | {_cell(one.source)} | {reads} |")
    lines += [
        "",
        "Captures (`--api captures`) have one connection each, after one kind of [impairment](impairments.md).",
        "What loses nothing is `must-accept`, with its frames in `decodes`. The others are `may`.",
    ]
    return "\n".join(lines) + "\n"


WHOLE: Final[dict[str, Callable[[], str]]] = {
    "reference/options.md": options.page,
    "reference/statuses.md": all_statuses,
    "reference/commands.md": commands,
    "reference/impairments.md": impairments,
    "reference/corpus.md": cases,
    "reference/apis.md": apis.listed,
}
PARTS: Final[dict[str, Callable[..., str]]] = {
    "rules": rules,
    "tunnels": tunnels,
    "links": links,
    "layers": layers,
    "codecs": codecs,
    "overview": overview,
    "columns": columns,
    "asked": asked,
    "statuses": statuses,
    "words": words,
    "tables": all_tables,
    "limits": limits,
    "extras": extras,
}


def filled(text: str) -> str:
    """A page with its made parts as the code has them."""
    return MARKED.sub(lambda found: found[1] + PARTS[found[2]](found[4], *found[3].split()) + found[5], text)


def pages() -> Iterator[tuple[Path, str]]:
    """The pages that are made or have made parts, and the schemas, with the text of each."""
    for name, make in WHOLE.items():
        yield DOCS / name, make()
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text("utf-8")
        if MARKED.search(text) and page.relative_to(DOCS).as_posix() not in WHOLE:
            yield page, filled(text)
    for file in sorted(SCHEMAS.rglob("*.kwire")):
        yield file, to_text(parse(file.read_text("utf-8"), file.name))


def main(arguments: list[str]) -> int:
    """Writes the pages, or checks them. Returns 1 if one is not current."""
    old = [(page, text) for page, text in pages() if not page.exists() or page.read_text("utf-8") != text]
    for page, text in old:
        is_page = page.suffix == ".md"
        name = (
            f"docs/{page.relative_to(DOCS).as_posix()}"
            if is_page
            else f"schemas/{page.relative_to(SCHEMAS).as_posix()}"
        )
        if "--check" in arguments:
            said = "what the code says" if is_page else "in its canonical form"
            print(f"{name} is not {said}: run make docs", file=sys.stderr)
        else:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, "utf-8")
            print(f"wrote {name}")
    return int("--check" in arguments and bool(old))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
