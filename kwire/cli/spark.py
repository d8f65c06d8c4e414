"""``kwire spark``: what needs a cluster, or all cores of a machine. ``kwire spark export`` writes tables as Parquet."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["register"]


def register(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "spark", help="write tables of many files with Spark", description="Reads many files with Spark."
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    export: argparse.ArgumentParser = commands.add_parser(
        "export",
        help="write a table as Parquet, from the workers",
        description="Writes a table of captures or log segments as files of Parquet. Each of Spark's workers writes "
        "what it reads. Files that cannot be read are rows with the status bad_file; they are counted, and the exit "
        "code is 1.",
        epilog="examples:\n"
        "  kwire spark export 'captures/*.pcap.gz' frames\n"
        "  kwire spark export s3a://captures/2026 s3a://tables/records --table records --partition-by topic\n"
        "  kwire spark export /var/lib/kafka/data records --table records --option format=log\n",
    )
    export.add_argument("input", nargs="+", metavar="INPUT", help="files, folders, patterns or URIs")
    export.add_argument(
        "output", metavar="OUTPUT", help="a folder, or its URI; a table of Iceberg: CATALOG.NAMESPACE.TABLE"
    )
    export.add_argument("--table", default="frames", help="the table (default: frames)")
    export.add_argument("--columns", metavar="NAMES", help="the columns that are wanted, separated by commas")
    export.add_argument(
        "--partition-by", metavar="NAMES", default="", help="columns whose values become folders, separated by commas"
    )
    export.add_argument("--format", default="parquet", choices=("parquet", "delta", "iceberg"), help="default: parquet")
    export.add_argument(
        "--mode",
        default="error",
        choices=("error", "append", "overwrite"),
        help="what to do where OUTPUT is not empty (default: error)",
    )
    export.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of Spark's data source kwire, such as ports=9092 or format=log; several are possible",
    )
    export.add_argument(
        "--master",
        help="Spark's master, or sc://HOST:PORT of Spark Connect (default: that of its settings, or local[*])",
    )
    export.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs ``kwire spark export``."""
    from kwire.cli.stderr import say
    from kwire.errors import KwireError

    options = {}
    for one in args.option:
        name, equal, value = one.partition("=")
        if not equal:
            # It may be the value of a secret.
            raise KwireError("--option is NAME=VALUE: one has no =")
        options[name] = value
    # First: it sets which Python the workers run, and says so where Spark is missing.
    import kwire.spark
    from kwire.spark.exports import export, session_for

    session = session_for("kwire spark export", args.master)
    kwire.spark.register(session)
    made = export(
        session,
        args.input,
        args.output,
        table=args.table,
        partition_by=_names(args.partition_by),
        form=args.format,
        mode=args.mode,
        columns=_names(args.columns) if args.columns is not None else None,
        options=options,
    )
    bad = f", of which {made.bad_files} stand for files that could not be read," if made.bad_files else ""
    files = "1 file" if made.files == 1 else f"{made.files:,} files"
    say(f"{args.output}: {made.rows:,} rows{bad} in {files}, {made.bytes:,} bytes")
    return 1 if made.bad_files else 0


def _names(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]
