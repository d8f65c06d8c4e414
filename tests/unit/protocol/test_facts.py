"""What framing is told about APIs is what the schemas say that are loaded, whenever they were."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from kwire import schema
from kwire.protocol.facts import facts
from kwire.schema.keys import ApiKey

LATER = """\
request Later key 200 versions 0-3 flexible none
  name string

response Later key 200 versions 0-3 flexible none
  error_code int16
"""


def test_every_api_has_its_latest_version_and_its_shortest_response() -> None:
    apis = facts().apis
    for key in schema.api_keys():
        request, response = schema.request(key), schema.response(key)
        assert request is not None
        assert apis["latest"][key] == request.versions.high
        assert response is None or apis["least_response"][key] >= 4
    # An error code behind the correlation id; a flexible header would have one byte more.
    assert apis["least_response"][ApiKey.HEARTBEAT] == 6
    assert set(np.flatnonzero(apis["latest"] >= 0)) == set(schema.api_keys())


def test_facts_are_made_once_and_again_when_a_folder_was_loaded(tmp_path: Path) -> None:
    (tmp_path / "later.kwire").write_text(LATER)
    program = (
        "import sys\n"
        "from kwire import schema\n"
        "from kwire.protocol.facts import facts\n"
        "before = facts()\n"
        "assert facts() is before\n"
        "schema.load_folder(sys.argv[1])\n"
        "after = facts().apis\n"
        "print(len(before.apis), len(after), after['latest'][200], after['least_response'][200])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    before, *after = map(int, done.stdout.split())
    assert before == max(schema.api_keys()) + 1
    assert after == [201, 3, 6]
