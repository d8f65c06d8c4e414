"""What importing kwire costs and needs.

The promise (README, ARCHITECTURE.md): ``import kwire`` needs the core dependencies only, brings none of the heavy
libraries with it, and loads hardly anything else; ``benchmarks/startup.py`` measures how long that takes. Each test
runs in a new interpreter, where nothing is imported yet.
"""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("construct", "numba", "numpy", "pandas", "pyarrow", "pyspark", "rich")


def python(code: str, *args: str) -> str:
    """Standard output of ``code`` in a new interpreter."""
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip()


def test_import_kwire_brings_no_heavy_library() -> None:
    code = "import sys, kwire; print([name for name in sys.argv[1:] if name in sys.modules])"
    assert python(code, *HEAVY) == "[]"


def test_decoding_a_message_brings_no_heavy_library() -> None:
    # ApiVersions v0 of correlation id 7 with client_id "x": an empty body.
    code = (
        "import sys, kwire\n"
        "frame = kwire.decode_request(bytes.fromhex('0012' '0000' '00000007' '0001' '78'))\n"
        "assert frame.header.correlation_id == 7, frame\n"
        "print([name for name in sys.argv[1:] if name in sys.modules])"
    )
    assert python(code, *HEAVY) == "[]"


def test_import_kwire_loads_two_modules_of_its_own_and_reads_no_other_file() -> None:
    code = (
        "import json, sys\n"
        "opened, before = [], set(sys.modules)\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "import kwire\n"
        "print(json.dumps([sorted(set(sys.modules) - before), [one for one in opened if '/kwire/' in one]]))"
    )
    loaded, opened = json.loads(python(code))
    assert [name for name in loaded if name.partition(".")[0] == "kwire"] == ["kwire", "kwire.errors"]
    others = [name for name in loaded if name.partition(".")[0] not in {"kwire", *sys.stdlib_module_names}]
    assert others == []
    assert len(loaded) <= 40, "what kwire.errors needs of the standard library: about 30 modules"
    assert opened
    assert [one for one in opened if ".py" not in one] == []


def test_help_of_the_command_brings_no_heavy_library() -> None:
    code = (
        "import sys, kwire.cli\n"
        "try:\n    kwire.cli.main(['--help'])\nexcept SystemExit as exit:\n    assert exit.code == 0\n"
        "print([name for name in sys.argv[1:] if name in sys.modules], file=sys.stdout)"
    )
    assert python(code, *HEAVY, "asyncio", "ssl", "secrets").splitlines()[-1] == "[]"


def test_the_schemas_of_tables_cost_no_kernel() -> None:
    code = (
        "import sys\n"
        "from kwire import tables\n"
        "from kwire.records import arrow_types\n"
        "for kind in ('capture', 'events'):\n"
        "    assert all(tables.table(name, kind).schema.names for name in tables.names(kind))\n"
        "assert tables.table('records').schema.field('headers').type == arrow_types.HEADERS\n"
        "print([name for name in sys.argv[1:] if name in sys.modules])"
    )
    assert python(code, "numba", "llvmlite", "kwire.kernels.compiling", "kwire.records.columnar") == "[]"


def test_names_of_tables_cost_no_heavy_library() -> None:
    code = (
        "import sys; from kwire import tables; found = [tables.names(kind) for kind in ('capture', 'events', 'log')]\n"
        "print([one for one in ('numba', 'numpy', 'pyarrow', 'pyspark', 'rich') if one in sys.modules])"
    )
    assert python(code) == "[]"


def test_connections_and_versions_need_no_heavy_library() -> None:
    code = (
        "import sys; from kwire import messages, versions; from kwire.protocol import Connection, names, sasl;"
        "Connection('client').send(messages.ApiVersionsRequest(client_software_name='k', client_software_version='1'));"
        "versions.choose(versions.announced('4.4')); names.to_dict(messages.FetchRequest(), 3);"
        "print([name for name in sys.argv[1:] if name in sys.modules])"
    )
    assert python(code, *HEAVY) == "[]"
